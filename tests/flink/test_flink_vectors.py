"""Real Flink writes the golden vectors of `tests/vectors` again, line by line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from flink_oracle import FlinkOracle
from golden import FOLDER, read

FILES = ["keys", "ranges", "default_max_parallelism", "murmur", "logical_types"]


@pytest.mark.flink
def test_flink_still_makes_these_vectors(flink: FlinkOracle, tmp_path: Path) -> None:
    versions = {read(name)[0]["flink"] for name in FILES}
    if versions != {flink.flink_version}:
        pytest.skip(f"the vectors are of Flink {versions}, here is {flink.flink_version}")
    command = [sys.executable, str(FOLDER / "make_vectors.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in FILES:
        made = (tmp_path / f"{name}.jsonl").read_bytes()
        # The header also names the Java, which may be another one here.
        assert made.splitlines()[1:] == (FOLDER / f"{name}.jsonl").read_bytes().splitlines()[1:]
