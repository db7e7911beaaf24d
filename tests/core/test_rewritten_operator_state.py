"""Operator state in a savepoint that is written anew: as Flink tells it apart, and as it was.

To Flink's ByteStreamStateHandle another of the same name is equal, whatever the bytes. And Flink
opens each handle of operator state, but for the empty ones of merged files, which are of a class
of their own; in the canonical format there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.real_savepoints import point
from support.inside.savepoints import StreamHandle

from keygroups.savepoint import Savepoint, change_max_parallelism, read_savepoint


def streams(savepoint: Savepoint) -> Iterator[StreamHandle]:
    """Yield the stream of each handle of operator state."""
    for operator in savepoint.metadata.operators:
        for subtask in sorted(operator.subtasks, key=lambda one: one.index):
            if subtask.managed_operator is not None:
                yield subtask.managed_operator.stream


@pytest.mark.parametrize("name", ["2.3.0-heap-canonical", "1.14.6-heap-canonical"])
def test_streams_in_metadata_keep_their_names(name: str, tmp_path: Path) -> None:
    old = point(name).read()
    change_max_parallelism(old, 129, tmp_path / "new")
    before = [one.name for one in streams(old)]
    after = [one.name for one in streams(read_savepoint(tmp_path / "new"))]
    assert after == before
    assert len({*after}) == len(after) == 9
    assert all(after)


@pytest.mark.parametrize("name", ["2.3.0-merged-checkpoint", "1.20.5-merged-checkpoint"])
def test_what_is_empty_in_merged_files_is_left_out(name: str, tmp_path: Path) -> None:
    old = point(name).read()
    change_max_parallelism(old, 129, tmp_path / "new", parallelism=5)
    new = read_savepoint(tmp_path / "new")
    assert not all(one.size for one in streams(old))
    assert all(one.size for one in streams(new))
    kept = [list(one.operator_state()) for one in new.operators]
    assert kept == [list(one.operator_state()) for one in old.operators]
    (keyed,) = (one for one in new.operators if one.states)
    assert keyed.parallelism == 5


def test_states_of_hooks_on_the_master(tmp_path: Path) -> None:
    """Whose bytes are of whatever class the job has."""
    old = tmp_path / "old"
    old.mkdir()
    operator = sb.operator([sb.subtask()], max_parallelism=128, uid="a")
    (old / "_metadata").write_bytes(sb.metadata([operator], master_states=[b"hook", b""]))
    change_max_parallelism(old, 256, tmp_path / "new")
    operator = sb.operator([sb.subtask()], max_parallelism=256, uid="a")
    expected = sb.metadata([operator], master_states=[b"hook", b""])
    assert (tmp_path / "new" / "_metadata").read_bytes() == expected
