"""The names of streams in `_metadata`: by them Flink tells the operator state of subtasks apart.

Its ByteStreamStateHandle is equal to another of the same name, whatever the bytes.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from savepoints import point

from keygroups.savepoint import Savepoint, change_max_parallelism, read_savepoint


@pytest.mark.parametrize("name", ["2.3.0-heap-canonical", "1.14.6-heap-canonical"])
def test_streams_keep_their_names(name: str, tmp_path: Path) -> None:
    old = point(name).read()
    change_max_parallelism(old, 129, tmp_path / "new")
    before, after = names(old), names(read_savepoint(tmp_path / "new"))
    assert after == before
    assert len({*after}) == len(after) == 9
    assert all(after)


def names(savepoint: Savepoint) -> list[str]:
    """Return the name of each stream of operator state."""
    return [
        subtask.managed_operator.stream.name
        for operator in savepoint.metadata.operators
        for subtask in sorted(operator.subtasks, key=lambda one: one.index)
        if subtask.managed_operator is not None
    ]
