"""What runs on each push and every night is what `.ci/run` runs by name."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / ".ci" / "run"
WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"


@pytest.fixture(scope="module")
def workflow() -> str:
    if not WORKFLOW.exists():
        pytest.skip("the sdist has no workflow")
    return WORKFLOW.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def bash() -> str:
    found = shutil.which("bash")
    if found is None:
        pytest.skip("no bash to run the steps with")
    return found


def steps(bash: str) -> dict[str, str]:
    """Return the steps of the gate and of all, as the script lists them."""
    done = subprocess.run(
        [bash, str(SCRIPT), "--list"], capture_output=True, text=True, check=True
    )
    return dict(re.findall(r"^(gate|all): (.+)$", done.stdout, re.MULTILINE))


def test_steps_are_those_of_ci(workflow: str, bash: str) -> None:
    listed = steps(bash)
    gate, rest = (
        text.split(", ") for text in re.findall(r"^ +step: \[(.+)\]$", workflow, re.MULTILINE)
    )
    assert gate == listed["gate"].split()
    assert gate + rest == listed["all"].split()
    assert "- run: bash .ci/run ${{ matrix.step }}\n" in workflow


def test_nothing_passes_where_nothing_can_be_installed(
    workflow: str, bash: str, tmp_path: Path
) -> None:
    """Every Python is there, and makes no environment: a step that went on would test nothing."""
    script = tmp_path / "work" / ".ci" / "run"
    script.parent.mkdir(parents=True)
    shutil.copy(SCRIPT, script)
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, script.parents[1])
    for version in ("3", "3.10", "3.11", "3.12", "3.13"):
        python = tmp_path / f"python{version}"
        python.write_text('#!/bin/sh\n[ "$1" = --version ]\n')
        python.chmod(0o755)
    for step in ["", *steps(bash)["all"].split()]:
        done = subprocess.run(
            [bash, str(script), *step.split()],
            capture_output=True,
            env=os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        )
        assert done.returncode, step


def test_pythons_are_those_of_the_package(workflow: str) -> None:
    (passed,) = re.findall(r"python-version: \|\n((?: +3\.\d+\n)+)", workflow)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert sorted(passed.split()) == re.findall(
        r'"Programming Language :: Python :: (3\.\d+)"', project
    )
