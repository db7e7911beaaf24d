"""A Spark job that is killed while it writes a savepoint leaves a whole one or none."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from killed_writers import (
    SPARK_EDITOR,
    SPARK_WRITER,
    WRITER,
    check_whole,
    kill,
    readable_savepoints,
    run_time,
    start,
)

MOMENTS = 10


@pytest.mark.slow
@pytest.mark.skipif("KEYGROUPS_TEST_REMOTE" in os.environ, reason="it starts a Spark of its own")
@pytest.mark.parametrize("program", [SPARK_WRITER, SPARK_EDITOR], ids=["writer", "editor"])
def test_it_leaves_a_whole_savepoint_or_none(tmp_path: Path, program: str) -> None:
    old = tmp_path / "old"
    run_time(WRITER, old)
    seconds = run_time(program, tmp_path / "whole", old)
    check_whole(tmp_path / "whole")
    rng = random.Random(0)
    killed = 0
    for number in range(MOMENTS):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = folder / "savepoint"
        took = kill(start(program, path, old), rng.uniform(0, seconds))
        killed += took is None
        seconds = took or seconds  # the machine may be faster now
        for found in readable_savepoints(folder):
            check_whole(found)
        if path.exists():
            check_whole(path)
    assert killed >= MOMENTS / 2
