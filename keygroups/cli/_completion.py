"""The command that prints what lets a shell complete the others, made from their parser."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from keygroups.cli._key_text import TYPE_NAMES
from keygroups.cli._parser import AddCommand
from keygroups.cli._streams import json_line

_FILES = {"FILE", "PATH", "PREFIX", "OLD", "NEW"}


class _Argument(NamedTuple):
    """An option by its names, or a positional argument, and the values that it may have."""

    names: tuple[str, ...]
    help: str
    takes_value: bool
    is_file: bool
    values: tuple[str, ...]


class _Command(NamedTuple):
    name: str
    help: str
    arguments: list[_Argument]

    @property
    def options(self) -> list[_Argument]:
        return [argument for argument in self.arguments if argument.names]

    @property
    def has_files(self) -> bool:
        return any(argument.is_file for argument in self.arguments if not argument.names)

    @property
    def values(self) -> list[str]:
        """What may stand for the positional arguments that have choices."""
        return [
            value for argument in self.arguments if not argument.names for value in argument.values
        ]


def add_commands(command: AddCommand) -> None:
    """Add the command."""
    add = command(_completion)
    add("shell", choices=[*_SCRIPTS], help="whose syntax the script has")


def _completion(options: argparse.Namespace) -> Iterator[str]:
    """Print a script with which a shell completes this command.

    For bash put it in ~/.bashrc, for zsh in ~/.zshrc behind compinit: eval "$(keygroups completion
    bash)", or zsh. For fish: keygroups completion fish > ~/.config/fish/completions/keygroups.fish

    JSON: shell, script.
    """
    script = _SCRIPTS[options.shell](_commands(options.parser), _arguments(options.parser))
    yield json_line({"shell": options.shell, "script": script}) if options.json else script


def _commands(parser: argparse.ArgumentParser) -> list[_Command]:
    [action] = (one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
    return [
        _Command(name, helps[name], _arguments(added)) for name, added in action.choices.items()
    ]


def _arguments(parser: argparse.ArgumentParser) -> list[_Argument]:
    return [
        _argument(action)
        for action in parser._actions
        if not isinstance(action, argparse._SubParsersAction)
    ]


def _argument(action: argparse.Action) -> _Argument:
    values: tuple[Any, ...] = tuple(action.choices or ())
    if action.dest == "type":
        values = TYPE_NAMES
    is_file = action.metavar in _FILES
    names = tuple(action.option_strings)
    return _Argument(names, action.help or "", action.nargs != 0, is_file, values)


def _words(command: _Command) -> list[str]:
    return [*command.values, *(name for option in command.options for name in option.names)]


def _bash(commands: list[_Command], own: list[_Argument]) -> str:
    def offer(words: Sequence[str], has_files: bool) -> str:
        of_words = [f'compgen -W "{" ".join(words)}" -- "$cur"'] if words else []
        return "; ".join(of_words + ['compgen -f -- "$cur"'] * has_files) or ":"

    return _by_cases(_BASH, offer, commands, own)


def _zsh(commands: list[_Command], own: list[_Argument]) -> str:
    def offer(words: Sequence[str], has_files: bool) -> str:
        of_words = [f"compadd -- {' '.join(words)}"] if words else []
        return "; ".join(of_words + ["_files"] * has_files) or ":"

    return _by_cases(_ZSH, offer, commands, own)


def _by_cases(
    script: str,
    offer: Callable[[Sequence[str], bool], str],
    commands: list[_Command],
    own: list[_Argument],
) -> str:
    """Return a script that looks at the command and the word before, then at the command."""
    cases = []
    for command in commands:
        for option in command.options:
            if option.takes_value:
                before = "|".join(f"'{command.name} {name}'" for name in option.names)
                cases.append(f"{before}) {offer(option.values, option.is_file)} ;;")
    for command in commands:
        cases.append(f"'{command.name} '*) {offer(_words(command), command.has_files)} ;;")
    names = [command.name for command in commands]
    first = offer([*names, *(name for option in own for name in option.names)], False)
    return script.replace("FIRST", first).replace("CASES", "\n    ".join(cases))


_BASH = """_keygroups_words() {
  local cur=$1 prev=$2
  [ "$3" = 1 ] && { FIRST; return; }
  case "$4 $prev" in
    CASES
  esac
}
_keygroups() {
  local word
  COMPREPLY=()
  while IFS= read -r word; do
    COMPREPLY+=("$word")
  done < <(_keygroups_words "$2" "$3" "$COMP_CWORD" "${COMP_WORDS[1]}")
}
complete -o filenames -F _keygroups keygroups"""

_ZSH = """#compdef keygroups
_keygroups() {
  (( CURRENT == 2 )) && { FIRST; return }
  case "$words[2] $words[CURRENT-1]" in
    CASES
  esac
}
compdef _keygroups keygroups"""


def _fish(commands: list[_Command], own: list[_Argument]) -> str:
    lines = ["complete -c keygroups -f"]
    for option in own:
        lines.append(f"complete -c keygroups -n __fish_use_subcommand{_fish_option(option)}")
    for command in commands:
        lines.append(
            f"complete -c keygroups -n __fish_use_subcommand -a {command.name} "
            f"-d {_fish_text(command.help)}"
        )
        start = f"complete -c keygroups -n '__fish_seen_subcommand_from {command.name}'"
        if command.has_files:
            lines.append(f"{start} -F")
        if command.values:
            lines.append(f"{start} -a '{' '.join(command.values)}'")
        lines += [start + _fish_option(option) for option in command.options]
    return "\n".join(lines)


def _fish_option(option: _Argument) -> str:
    names = "".join(
        f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}" for name in option.names
    )
    if option.takes_value:
        names += " -r -F" if option.is_file else " -x"
    if option.values:
        names += f" -a '{' '.join(option.values)}'"
    return f"{names} -d {_fish_text(option.help)}"


def _fish_text(text: str) -> str:
    """Return a text in quotes. Fish: in single quotes a backslash escapes itself and a quote."""
    escaped = text.replace("%%", "%").replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


_SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
