"""Savepoints that are read piece by piece: memory does not grow with them."""

from __future__ import annotations

import pickle
import tracemalloc
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes import wide_savepoints
from support.bytes.large_savepoints import KEY_GROUPS, wide_metadata, write
from support.bytes.wide_savepoints import Shape
from support.growth import count_bytes, count_steps
from support.inside.savepoints import files as files_module
from support.inside.savepoints import header, read_metadata
from support.inside.serializers import Cursor
from support.selections import first_by_default

from keygroups import RescalePlan, assign_to_key_group
from keygroups.errors import SavepointError
from keygroups.reports import RescaleReport
from keygroups.savepoint import Operator, Savepoint, SavepointWriter, read_savepoint
from keygroups.savepoint.descriptors import ValueStateDescriptor
from keygroups.types import LONG, STRING

FORMS = ("canonical", "native", "rocksdb")


def large(folder: Path, form: str, entries: int) -> Operator:
    count = write(folder, form, entries)
    operator = read_savepoint(folder).operator("by-string")
    assert count == entries
    return operator


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
def test_entries(form: str, tmp_path: Path) -> None:
    """As many as were written, in the key groups where Flink has them."""
    operator = large(tmp_path, form, 12_800)
    counts: Counter[int] = Counter()
    for entry in operator.entries():
        assert entry.value == 5
        counts[entry.key_group] += 1
        assert entry.key_group == assign_to_key_group(entry.key, KEY_GROUPS, STRING)
    assert counts.total() == 12_800
    part = sum(1 for _ in operator.entries(["count"], [5, 100]))
    assert part == counts[5] + counts[100]


@pytest.mark.long
@pytest.mark.parametrize("form", first_by_default(1, ["canonical", "native"]))
def test_memory_is_flat(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the entries, hardly more memory; one piece is what is held."""
    monkeypatch.setattr(files_module, "CHUNK", 1 << 10)
    peaks = []
    for entries in (12_800, 12_800 * 4):
        operator = large(tmp_path / str(entries), form, entries)
        tracemalloc.start()
        try:
            assert sum(1 for _ in operator.entries()) == entries
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_few_entries_hold_no_others(tmp_path: Path) -> None:
    """Columns of a state with an entry in each key group, between those of a large state."""
    pytest.importorskip("pyarrow")
    for key_groups in (16, 256):  # at first modules are imported
        keys = {assign_to_key_group(key, key_groups, LONG): key for key in range(20 * key_groups)}
        assert len(keys) == key_groups
        with SavepointWriter(tmp_path / str(key_groups)) as writer:
            states = [ValueStateDescriptor(name, STRING) for name in ("large", "rare")]
            written = writer.add_operator("by-key", LONG, states, key_groups, 1, sort=True)
            for key in keys.values():
                written.write("large", key, "x" * 2**16)
                written.write("rare", key, "y")
        operator = read_savepoint(tmp_path / str(key_groups)).operator("by-key")
        reader = operator.to_arrow_batch_reader("rare")
        peak = count_bytes(partial(sum, (batch.num_rows for batch in reader)))
    assert peak < key_groups * 2**16 / 8


def test_wide_metadata() -> None:
    """A thousand subtasks, 128 key groups each."""
    metadata = read_metadata(wide_metadata(1_000), "_metadata")
    subtasks = [subtask for operator in metadata.operators for subtask in operator.subtasks]
    assert len(subtasks) == 1_000
    assert all(
        subtask.managed_keyed is not None and len(subtask.managed_keyed.key_groups) == 128
        for subtask in subtasks
    )


def wide(folder: Path, *shape: Any) -> Path:
    wide_savepoints.write(folder, Shape(*shape))
    return folder


@pytest.mark.parametrize("form", ["canonical", "native"])
def test_offsets_are_held_once(form: str, tmp_path: Path) -> None:
    """What is read takes less than `_metadata` has; an int for each offset takes four times it."""
    data = (wide(tmp_path / form, form, 20, 2, 2_000) / "_metadata").read_bytes()
    assert len(data) > 20 * 2_000 * 8
    assert count_bytes(lambda: read_metadata(data, "_metadata")) < len(data)


@pytest.mark.parametrize("form", ["canonical", "native"])
def test_key_groups_are_added_up_by_the_run(form: str, tmp_path: Path) -> None:
    """Python runs hardly more lines for four times the key groups."""
    calls: dict[str, Callable[[Savepoint], object]] = {
        "str": str,
        "key_group_bytes": lambda savepoint: savepoint.operators[0].key_group_bytes(),
        "report": lambda savepoint: str(
            RescaleReport(
                RescalePlan(savepoint.operators[0].max_parallelism, 4, 5),
                savepoint.operators[0].key_group_bytes(),
            )
        ),
    }
    folders = [wide(tmp_path / str(groups), form, 2, 4, groups) for groups in (500, 2_000)]
    for name, call in calls.items():
        savepoints = map(read_savepoint, folders)
        small, large = (count_steps(partial(call, savepoint)) for savepoint in savepoints)
        assert large < 1.5 * small, (name, small, large)
    small, large = (count_steps(partial(read_savepoint, folder)) for folder in folders)
    assert large < 1.5 * small


def test_key_groups_of_many_subtasks(tmp_path: Path) -> None:
    """Each has an entry; they have the bytes that the files have behind the headers."""
    for form, empty in (("canonical", 0), ("native", 4 + 4 * 6)):
        folder = wide(tmp_path / form, form, 2, 7, 100)
        files = [path.stat().st_size for path in folder.glob("000-*")]
        behind = sum(files) - len(files) * len(wide_savepoints.header())
        savepoint = read_savepoint(folder)
        assert len(files) == 7
        for operator in savepoint.operators:
            assert sum(operator.key_group_bytes().weights) == behind - 100 * empty
            assert [entry.key_group for entry in operator.entries()] == [*range(100)]
            assert {entry.value for entry in operator.entries()} == {5}
        assert [line.split()[4] for line in str(savepoint).splitlines()[2:4]] == ["100", "100"]


def test_a_task_takes_its_own_offsets_along(tmp_path: Path) -> None:
    """And not all of `_metadata`, of which these are a view."""
    folder = wide(tmp_path / "wide", "canonical", 20, 2, 2_000)
    task = read_savepoint(folder).operators[7].tasks()[1]
    assert len(pickle.dumps(task)) < 2 * 1_000 * 8 < (folder / "_metadata").stat().st_size / 15
    assert pickle.loads(pickle.dumps(task)) == task


def test_a_header_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All subtasks have the same bytes; an error still names the file."""
    folder = wide(tmp_path / "wide", "native", 1, 16, 64)
    read, count = header._read_header, Counter[str]()

    def counted(cursor: Cursor) -> header.KeyedHeader:
        count["headers"] += 1
        return read(cursor)

    header._read_known_header.cache_clear()
    monkeypatch.setattr(header, "_read_header", counted)
    savepoint = read_savepoint(folder)
    str(savepoint)
    savepoint.operators[0].key_group_bytes()
    assert len(savepoint.operators[0].states) == 4
    editor = SavepointWriter.from_existing_savepoint(savepoint, tmp_path / "new")
    editor.set_max_parallelism(32)
    assert sum(1 for _ in savepoint.operators[0].entries()) == 64
    assert count["headers"] == 1
    for index in (3, 5):
        path = folder / f"000-{index:05d}"
        path.write_bytes(b"\0\0\0\7" + path.read_bytes()[4:])
        task = read_savepoint(folder).operators[0].tasks()[index]
        with pytest.raises(SavepointError, match=f"{path.name}, .*version of keyed state 7"):
            [*task.entries()]


def test_key_groups_with_timers_beside_them(tmp_path: Path) -> None:
    """Managed 0, 2 and 3 bytes; raw in the first, in others too or in none: each counts once."""
    managed = sb.canonical(4, [0, 5, 7], sb.inline(bytes(10)))
    for offsets, used in (([0, 2, 3], "3"), ([0, 4, 4], "3"), ([4, 4, 4], "2")):
        handle = sb.canonical(4, offsets, sb.inline(bytes(4)))
        task = sb.subtask(managed_keyed=managed, raw_keyed=handle)
        savepoint = read_savepoint(sb.write(tmp_path / "point", [sb.operator([task])]))
        assert str(savepoint).splitlines()[2].split()[-2:] == [used, "1.00"]
