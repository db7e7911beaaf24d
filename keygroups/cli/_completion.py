"""The command that prints a shell's completion script of all commands, made by shtab."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from keygroups.cli._key_text import TYPE_NAMES
from keygroups.cli._parser import AddCommand
from keygroups.cli._streams import json_line
from keygroups.errors import KeyGroupsError

_SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")
_FILES = {"FILE", "PATH", "PREFIX", "OLD", "NEW"}


def add_commands(command: AddCommand) -> None:
    """Add the command."""
    add = command(_completion)
    add("shell", choices=_SHELLS, help="whose syntax the script has")


def _completion(options: argparse.Namespace) -> Iterator[str]:
    """Print a script with which a shell completes this command; it needs keygroups[completion].

    For bash put it in ~/.bashrc, for zsh in ~/.zshrc behind compinit: eval "$(keygroups completion
    bash)", or zsh. For fish: keygroups completion fish > ~/.config/fish/completions/keygroups.fish

    JSON: shell, script.
    """
    try:
        import shtab
    except ImportError:
        raise KeyGroupsError(
            "completion needs shtab: pip install 'keygroups[completion]'"
        ) from None
    _describe(options.parser, shtab.FILE)
    script = shtab.complete(options.parser, options.shell).rstrip("\n")
    yield json_line({"shell": options.shell, "script": script}) if options.json else script


def _describe(parser: argparse.ArgumentParser, file: object) -> None:
    """Mark the arguments of all commands that are files or key types, for shtab."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for added in action.choices.values():
                _describe(added, file)
        elif action.metavar in _FILES:
            action.complete = file  # type: ignore[attr-defined]  # shtab reads this attribute.
        elif action.dest == "type":
            action.choices = TYPE_NAMES
