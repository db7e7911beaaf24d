"""Real Flink writes the golden vectors of `tests/vectors` again, line by line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.flink.flink_oracle import FlinkOracle
from support.golden import FOLDER

pytestmark = pytest.mark.flink


@pytest.fixture(scope="module")
def made(flink: FlinkOracle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with what the Flink at hand writes."""
    folder = tmp_path_factory.mktemp("vectors")
    command = [sys.executable, str(FOLDER / "make_vectors.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def lines(folder: Path, name: str) -> list[bytes]:
    """Return the lines of a file without the header, which names the Flink and the Java."""
    return (folder / f"{name}.jsonl").read_bytes().splitlines()[1:]


@pytest.mark.parametrize("name", ["keys", "ranges", "default_max_parallelism", "murmur"])
def test_flink_still_makes_these_vectors(made: Path, name: str) -> None:
    assert lines(made, name) == lines(FOLDER, name)


@pytest.mark.flink_since("2.3", "the list of types")
def test_flink_still_reads_these_types(made: Path) -> None:
    assert lines(made, "logical_types") == lines(FOLDER, "logical_types")
