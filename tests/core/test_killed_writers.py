"""A writer that is killed leaves a whole savepoint or none, and what it read as it was."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from killed_writers import (
    EDITOR,
    KEYS,
    OLD_MAX_PARALLELISM,
    REWRITER,
    UID,
    WRITER,
    check_whole,
    kill,
    readable_savepoints,
    run_time,
    start,
)

from keygroups.savepoint import SavepointWriter, ValueStateDescriptor
from keygroups.types import LONG, STRING


def write_nothing(path: Path) -> None:
    """Do without a savepoint to read."""


def write_old(path: Path) -> None:
    """Write what is then rewritten."""
    with SavepointWriter(path) as writer:
        states = [ValueStateDescriptor("count", LONG)]
        written = writer.add_operator(UID, STRING, states, OLD_MAX_PARALLELISM, parallelism=3)
        keys = [f"user-{number}" for number in range(KEYS)]
        for key in sorted(keys, key=written.key_group):
            written.write("count", key, int(key[5:]))


@pytest.mark.parametrize("moments", [3, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("program", "prepare"),
    [(WRITER, write_nothing), (REWRITER, write_old), (EDITOR, write_old)],
    ids=["new", "anew", "edited"],
)
def test_it_leaves_a_whole_savepoint_or_none(
    program: str, prepare: Callable[[Path], None], moments: int, tmp_path: Path
) -> None:
    old = tmp_path / "old"
    prepare(old)
    before = contents(old)
    seconds = run_time(program, tmp_path / "whole", old)
    check_whole(tmp_path / "whole")
    rng = random.Random(moments)
    killed = 0
    for number in range(moments):
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
    assert killed >= moments / 2
    assert contents(old) == before


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*")}
