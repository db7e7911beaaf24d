"""Completion in the shells themselves, where they are installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import keygroups
from keygroups.cli import main

# Lines, after which Tab is pressed, and what is offered in a folder of the files a and b c.
LINES = {
    "keygroups ev": {"evenness"},
    "keygroups --v": {"--version"},
    "keygroups savepoint --u": {"--uids"},
    "keygroups savepoint a --uids ": {"a", "b c"},
    "keygroups savepoint b": {"b c"},
    "keygroups trace --type LOCAL_": {"LOCAL_DATE", "LOCAL_TIME", "LOCAL_DATE_TIME"},
    "keygroups trace x -m ": set(),
    "keygroups range 128 --": {"--help", "--json", "--quiet"},
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
