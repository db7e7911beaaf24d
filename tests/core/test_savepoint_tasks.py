"""Parts of an operator's keyed state, each of which another process may read."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.real_savepoints import point
from support.bytes.sst_bytes import VALUE, sst
from support.inside.savepoints import FORMATS, KeyedHandle, KeyGroupRanges, OpenStream, ReadTask

from keygroups.savepoint import read_savepoint

NAMES = ["2.3.0-heap-canonical", "2.3.0-heap-native", "2.3.0-rocksinc-checkpoint"]


def test_every_handle_has_a_format() -> None:
    assert FORMATS.keys() == set(get_args(KeyedHandle))


def parts_of(task: ReadTask, size: int) -> list[ReadTask]:
    return [pickle.loads(pickle.dumps(part)) for part in task.split(size)]


@pytest.mark.long
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


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_part_is_as_large_as_asked_for(name: str) -> None:
    operator = point(name).read().operator("by-string")
    for task in operator.tasks():
        counts = [len(parts_of(task, size)) for size in (1, 1000, 3000, 10_000, 30_000, 10**9)]
        assert counts == sorted(counts, reverse=True)
        assert counts[0] > counts[-1] == 1
        assert len(set(counts)) > 2
        assert [len(parts_of(task, task.bytes - less)) for less in (0, 1)] == [1, 2]


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


def test_a_key_takes_its_block_of_an_sst_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside what tells where blocks are; timers, whose keys are behind their time, take all."""
    states = [
        sb.state("count", "VALUE", sb.simple("Long")),
        sb.state("timers", "", sb.timer_of(sb.simple("Int"), sb.NONE), backend_type=3),
    ]
    header = sb.inline(sb.keyed_header(sb.simple("Int"), states))
    keys = [sb.i32(number) for number in (*range(998), 0x7FFFFFFF, -1)]
    tables = {
        "count": [(b"\3" + key + b"\0", 7, VALUE, sb.i64(5)) for key in keys],
        "timers": [(b"\3" + sb.i64(1) + key + b"\0", 7, VALUE, b"") for key in keys],
    }
    files = [
        (f"{name}.sst", sb.inline(sst(records, name, per_block=10)))
        for name, records in tables.items()
    ]
    subtask = sb.subtask(managed_keyed=sb.rocksdb(3, 4, header, files))
    (operator,) = read_savepoint(sb.write(tmp_path, [sb.operator([subtask])])).operators
    reads = []

    def read(stream: OpenStream, start: int, end: int) -> bytes:
        reads.append((start, end))
        return whole(stream, start, end)

    whole = OpenStream.read
    monkeypatch.setattr(OpenStream, "read", read)
    (task,) = operator.tasks(["count"])
    assert sum(1 for _ in task.entries()) == 1000
    all_reads = len(reads)
    for key in (0, 500, 997, 2**31 - 1, -1):
        reads.clear()
        wanted = replace(task, keys=frozenset([b"\3" + sb.i32(key)]))
        assert [entry.key for entry in wanted.entries()] == [key]
        assert len(reads) <= all_reads - 99
    of_timers = replace(task, states=frozenset(["timers"]), keys=frozenset([b"\3" + sb.i32(5)]))
    assert sum(1 for _ in of_timers.entries()) == 1000


def test_key_groups_take_their_bytes_of_a_canonical_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = sb.keyed_header(sb.simple("Int"), [sb.state("count", "VALUE", sb.simple("Long"))])
    content, offsets = header, []
    for key_group in range(3, 8):
        offsets.append(len(content))
        members = [(bytes([key_group]) + sb.i32(key) + b"\0", sb.i64(5)) for key in range(100)]
        content += sb.canonical_key_group([(0, members)])
    subtask = sb.subtask(managed_keyed=sb.canonical(3, offsets, sb.inline(content)))
    (operator,) = read_savepoint(sb.write(tmp_path, [sb.operator([subtask])])).operators
    read = Counter[int]()

    def counted(stream: OpenStream, start: int, end: int) -> bytes:
        read.update(range(start, end))
        return whole(stream, start, end)

    whole = OpenStream.read
    monkeypatch.setattr(OpenStream, "read", counted)
    (task,) = operator.tasks(None, [4, 7])
    assert sum(1 for _ in task.entries()) == 200
    spans = (range(len(header)), range(offsets[1], offsets[2]), range(offsets[4], len(content)))
    assert set(read) == {place for span in spans for place in span}


@pytest.mark.parametrize("name", NAMES)
def test_bytes_of_a_task_are_those_of_its_parts(name: str) -> None:
    operator = point(name).read().operator("by-string")
    for task in operator.tasks():
        parts = parts_of(task, 1000)
        assert sum(part.bytes for part in parts) == task.bytes > 1000
        assert all(part.bytes <= 1000 or len([*part.key_groups]) == 1 for part in parts)
