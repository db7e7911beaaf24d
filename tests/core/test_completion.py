"""Completion in the shells themselves, where they are installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import keygroups
from keygroups.cli import main
from keygroups.cli._completion import _Argument, _Command, _fish_text

# Lines, after which Tab is pressed, and what is offered in a folder of the files a and b c.
LINES = {
    "keygroups ev": {"evenness"},
    "keygroups --v": {"--version"},
    "keygroups savepoint --u": {"--uids"},
    "keygroups savepoint a --uids ": {"a", "b c"},
    "keygroups savepoint b": {"b c"},
    "keygroups trace --type LOCAL_": {"LOCAL_DATE", "LOCAL_TIME", "LOCAL_DATE_TIME"},
    "keygroups trace x -m ": set(),
    "keygroups range 128 --": {"--help", "--json", "--key-groups", "--quiet"},
    "keygroups completion z": {"zsh"},
}

_BASH = """
offered() {
  COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
  _keygroups keygroups "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
  printf '%s\\n' "${COMPREPLY[@]}" =
}
complete -p keygroups >/dev/null || exit 1
"""
# What Tab does beyond the function is zsh's own: compadd keeps those that begin as the word does.
_ZSH = """
compadd() { shift; for word in "$@"; do [[ $word = $begun* ]] && print -r -- $word; done }
_files() { for word in *; do [[ $word = $begun* ]] && print -r -- $word; done }
offered() { words=("$@"); CURRENT=$#; begun=$words[CURRENT]; _keygroups; print = }
"""


def printed(shell: str, script: str, folder: Path) -> list[set[str]]:
    """Return what a shell prints, in parts that end with a line of its own."""
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    for name in ("a", "b c"):
        (folder / name).touch()
    run = subprocess.run(
        [found, "-c", script],
        cwd=folder,
        env={"HOME": str(folder)},
        capture_output=True,
        text=True,
    )
    assert (run.stderr, run.returncode) == ("", 0)
    *parts, last = run.stdout.split("=\n")
    assert last == ""
    return [set(part.splitlines()) - {""} for part in parts]


def in_words(offered: str) -> Callable[[str], str]:
    """Return what makes of a script one that offers words for each line."""
    calls = []
    for line in LINES:
        words = " ".join(f"'{word}'" for word in line.split(" "))
        calls.append(f"offered {words}")
    return lambda script: "\n".join([script, offered, *calls])


def in_fish(script: str) -> str:
    asked = (f"complete -C '{line}' | string replace -r '\\t.*' ''; echo =" for line in LINES)
    return "\n".join([script, *asked])


@pytest.mark.parametrize(
    ("shell", "asking"),
    [
        ("bash", in_words(_BASH)),
        ("zsh", lambda script: in_words(_ZSH)("compdef() { : }\n" + script)),
        ("fish", in_fish),
    ],
)
def test_what_a_shell_offers(
    shell: str,
    asking: Callable[[str], str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    parts = printed(shell, asking(script), tmp_path)
    found = {line: {word.rstrip("/") for word in part} for line, part in zip(LINES, parts)}
    assert found == LINES


def test_the_script_for_zsh(capsys: pytest.CaptureFixture[str]) -> None:
    """Files after what takes one, values after what has a few, else options; nothing made up."""
    assert main(["completion", "zsh"]) == 0
    script = capsys.readouterr().out
    assert "  (( CURRENT == 2 )) && { compadd -- trace plan range " in script
    cases = dict(re.findall(r"^    ('.+'\*?)\) (.+) ;;$", script, re.MULTILINE))
    assert cases["'savepoint --uids'"] == "_files"
    assert cases["'trace -m'|'trace --max-parallelism'"] == ":"
    assert cases["'trace --type'"].startswith("compadd -- BOOLEAN BYTE SHORT INT ")
    assert cases["'range '*"] == "compadd -- -h --help --json --quiet --key-groups"
    assert cases["'diff '*"].endswith(" --exit-code; _files")
    assert cases["'completion '*"].startswith("compadd -- bash zsh fish -h ")


def test_the_script_for_fish(capsys: pytest.CaptureFixture[str]) -> None:
    """With what each command and each option is for."""
    assert main(["completion", "fish"]) == 0
    lines = capsys.readouterr().out.splitlines()
    first, after = "-n __fish_use_subcommand", "-n '__fish_seen_subcommand_from"
    of_range = "Print the key groups of a subtask, or which subtasks have some key groups."
    for said in (
        "-f",
        f"{first} -l version -d 'print the version and exit'",
        f"{first} -a range -d '{of_range}'",
        f"{after} range' -l json -d 'print JSON'",
        rf"{after} trace' -s p -l parallelism -x -d 'the operator\'s parallelism'",
        f"{after} job' -l ca-file -r -F -d 'trust only servers that these sign, in PEM'",
        f"{after} savepoint' -F",
        f"{after} completion' -a 'bash zsh fish'",
    ):
        assert lines.count(f"complete -c keygroups {said}") == 1
    assert f"complete -c keygroups {after} range' -F" not in lines
    assert _fish_text(r"5%% of C:\it's") == r"'5% of C:\\it\'s'"


def test_files_are_offered_where_one_of_the_arguments_is_a_file() -> None:
    file = _Argument((), "", takes_value=True, is_file=True, values=())
    other = file._replace(is_file=False)
    option = file._replace(names=("--uids",))
    assert _Command("a", "", [other, file]).has_files
    assert not _Command("a", "", [other, option]).has_files


def test_a_script_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "fish"]) == 0
    script = capsys.readouterr().out
    assert main(["completion", "fish", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"shell": "fish", "script": script[:-1]}


def test_no_such_shell(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "cmd"]) == 2
    assert "argument shell: invalid choice: 'cmd'" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr() == (f"keygroups {keygroups.__version__}\n", "")
