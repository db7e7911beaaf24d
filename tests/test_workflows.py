"""What runs on each push and every night is what `.ci/run` runs by name."""

from __future__ import annotations

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


def test_steps_are_those_of_ci(workflow: str) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash to list the steps with")
    done = subprocess.run(
        [bash, str(SCRIPT), "--list"], capture_output=True, text=True, check=True
    )
    listed = dict(re.findall(r"^(gate|all): (.+)$", done.stdout, re.MULTILINE))
    gate, rest = (
        text.split(", ") for text in re.findall(r"^ +step: \[(.+)\]$", workflow, re.MULTILINE)
    )
    assert gate == listed["gate"].split()
    assert gate + rest == listed["all"].split()
    assert "- run: bash .ci/run ${{ matrix.step }}\n" in workflow


def test_pythons_are_those_of_the_package(workflow: str) -> None:
    (passed,) = re.findall(r"python-version: \|\n((?: +3\.\d+\n)+)", workflow)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert sorted(passed.split()) == re.findall(
        r'"Programming Language :: Python :: (3\.\d+)"', project
    )
