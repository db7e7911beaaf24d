"""Parts of an operator's keyed state, each of which another process may read."""

from __future__ import annotations

import pickle
from typing import get_args

import pytest
from real_savepoints import point

from keygroups.savepoint._metadata.handles import KeyedHandle
from keygroups.savepoint._metadata.key_group_ranges import KeyGroupRanges
from keygroups.savepoint._state.formats import FORMATS
from keygroups.savepoint._tasks.read import ReadTask

NAMES = ["2.3.0-heap-canonical", "2.3.0-heap-native", "2.3.0-rocksinc-checkpoint"]


def test_every_handle_has_a_format() -> None:
    assert FORMATS.keys() == set(get_args(KeyedHandle))


def parts_of(task: ReadTask, size: int) -> list[ReadTask]:
    return [pickle.loads(pickle.dumps(part)) for part in task.split(size)]


@pytest.mark.parametrize("name", [*NAMES, "2.3.0-heaptimers-checkpoint"])
@pytest.mark.parametrize("size", [1, 300, 10**9])
def test_the_parts_of_a_task_read_what_it_reads(name: str, size: int) -> None:
    for operator in point(name).read().operators:
        for task in operator.tasks():
            parts = parts_of(task, size)
            together = sorted(one for part in parts for one in part.key_groups)
            assert together == sorted(task.key_groups)
            entries = [entry for part in parts for entry in part.entries()]
            assert entries == list(task.entries())


@pytest.mark.parametrize("name", NAMES)
def test_a_part_is_as_large_as_asked_for(name: str) -> None:
    operator = point(name).read().operator("by-string")
    for task in operator.tasks():
        counts = [len(parts_of(task, size)) for size in (1, 1000, 3000, 10_000, 30_000, 10**9)]
        assert counts == sorted(counts, reverse=True)
        assert counts[0] > counts[-1] == 1
        assert len(set(counts)) > 2


def test_without_key_groups_there_are_no_parts() -> None:
    operator = point(NAMES[0]).read().operator("by-string")
    assert operator.tasks(key_groups=[]) == []
    (task, *_) = operator.tasks()
    empty = ReadTask(task.files, task.context, task.handles, 0, 128, KeyGroupRanges(()), None)
    assert list(empty.split(1)) == []


def test_a_changelog_is_one_part() -> None:
    """Its changes are read whole for any of its key groups."""
    for operator in point("2.3.0-changelog-checkpoint").read().operators:
        for task in operator.tasks():
            (part,) = task.split(1)
            assert [*map(str, part.entries())] == [*map(str, task.entries())]
