"""A Spark job that is killed while it writes a savepoint leaves a whole one or none."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from support.killed_writers import (
    KEYS,
    SPARK_ATTEMPTS,
    SPARK_EDITOR,
    SPARK_WRITER,
    UID,
    WRITER,
    check_whole,
    kill,
    readable_savepoints,
    run_time,
    start,
)

from keygroups.savepoint import read_savepoint

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


@pytest.mark.slow
@pytest.mark.skipif("KEYGROUPS_TEST_REMOTE" in os.environ, reason="it starts a Spark of its own")
@pytest.mark.parametrize(
    ("master", "seconds"),
    [("local[2,4]", "0.5"), ("two hosts", "600")],
    ids=["tried again", "speculative"],
)
def test_tasks_that_are_tried_again_write_each_entry_once(
    tmp_path: Path, master: str, seconds: str
) -> None:
    """Half of the first attempts are killed, the others stand still with their file open."""
    path, attempts = tmp_path / "new" / "savepoint", tmp_path / "attempts"
    for folder in (path.parent, attempts):
        folder.mkdir()
    run_time(SPARK_ATTEMPTS, path, attempts, master, seconds)
    entries = [*read_savepoint(path).operator(UID).entries()]
    assert sorted((entry.state, entry.key) for entry in entries) == sorted(
        (state, f"user-{number}") for state in ("count", "list") for number in range(KEYS)
    )
    for entry in entries:
        number = int(entry.key[5:])
        assert entry.value == (number if entry.state == "count" else [number])
    assert len([*path.iterdir()]) == 5 + 1  # and _metadata
    assert [*path.parent.iterdir()] == [path]
    tried = {attempt.name for attempt in attempts.iterdir()}
    again = {name for name in tried if name.endswith("-1")}
    went_on = {name for name in tried if name.endswith("-went-on")}
    assert len(again) >= 5  # five of eleven tasks are killed
    if master == "two hosts":  # elsewhere nothing is speculative
        assert not went_on
        assert len(again) >= 11
