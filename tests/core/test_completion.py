"""Completion in a shell itself, and scripts for those that are not installed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
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
    "keygroups range 128 --": {"--help", "--json", "--key-groups", "--quiet"},
    "keygroups completion z": {"zsh"},
}

# Calls what `complete` says that it calls, as bash does after Tab.
_OFFERED = """
offered() {
  COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
  local function=$(complete -p keygroups | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
  $function keygroups "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
  printf '%s\\n' "${COMPREPLY[@]}" =
}
"""


def test_what_bash_offers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("shtab")
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    for name in ("a", "b c"):
        (tmp_path / name).touch()
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    asked = (" ".join(f"'{word}'" for word in ["offered", *line.split(" ")]) for line in LINES)
    run = subprocess.run(
        [bash, "-c", "\n".join([script, _OFFERED, *asked])],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert (run.stderr, run.returncode) == ("", 0)
    *parts, last = run.stdout.split("=\n")
    assert last == ""
    assert dict(zip(LINES, (set(part.splitlines()) - {""} for part in parts))) == LINES


@pytest.mark.parametrize("shell", ["zsh", "fish", "tcsh", "powershell"])
def test_a_script_for_another_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It names each command, and in JSON it is the same."""
    pytest.importorskip("shtab")
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in ("trace", "key-groups", "LOCAL_DATE_TIME"):
        assert word in script
    assert main(["completion", shell, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"shell": shell, "script": script[:-1]}


def test_without_shtab(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 1
    assert capsys.readouterr().err == (
        "keygroups completion: completion needs shtab: pip install 'keygroups[completion]'\n"
    )


def test_no_such_shell(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "cmd"]) == 2
    assert "argument shell: invalid choice: 'cmd'" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr() == (f"keygroups {keygroups.__version__}\n", "")
