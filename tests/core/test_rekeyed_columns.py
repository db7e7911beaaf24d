"""Savepoints whose max parallelism is changed by columns, against entry by entry.

What comes of single entries is held to Flink's own restores elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.all_states import write_all
from support.bytes.column_forms import assert_same, canonical, native, rocksdb
from support.bytes.damaged_files import damages
from support.bytes.real_savepoints import POINTS, Point, point
from support.inside.savepoints import EditTask, EncodedEntry, keyed_state, spill
from support.selections import first_by_default

from keygroups import KeyGroupsError
from keygroups.errors import SavepointError
from keygroups.progress import Progress
from keygroups.savepoint import (
    change_max_parallelism,
    read_savepoint,
)
from keygroups.state_keys import BYTES
from keygroups.types import (
    BOOLEAN,
    BYTE,
    DOUBLE,
    FLOAT,
    INT,
    LOCAL_DATE,
    LONG,
    SHORT,
    STRING,
    TUPLE,
    KeyType,
)

pytest.importorskip("pyarrow")

from support.inside.columns import framed_chunks

Outcome = list[bytes] | tuple[type[BaseException], str]
Both = Callable[[Any, int], tuple[Outcome, Outcome]]


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Both:
    """Return a function to what comes of a change by columns, and what entry by entry."""
    counted = iter(range(1_000))

    def outcome(read: Callable[[], Any], new: int, least: int) -> Outcome:
        monkeypatch.setattr(keyed_state, "LEAST_OF_COLUMNS", least)
        folder = tmp_path / f"new-{next(counted)}"
        try:
            change_max_parallelism(read(), new, folder)
        except KeyGroupsError as error:
            return type(error), str(error).replace(str(folder), "")
        files = folder.iterdir()
        return sorted(path.read_bytes() for path in files if path.name != "_metadata")

    return lambda read, new: (outcome(read, new, 0), outcome(read, new, 1 << 62))


FIRST = ("2.3.0-pojo-canonical", "2.3.0-rowkey-native", "2.3.0-rockschurn-native")
ORDERED = sorted(POINTS, key=lambda one: one.name not in FIRST)


@pytest.mark.parametrize("new", [64, 300])
@pytest.mark.parametrize("one", first_by_default(len(FIRST), ORDERED), ids=str)
def test_recorded_points(one: Point, new: int, both: Both) -> None:
    by_columns, by_entries = both(one.read, new)
    assert by_columns == by_entries


def test_timers_beside_the_files_of_rocksdb(both: Both) -> None:
    """Which are raw state, of a handle of its own."""
    heap_timers = point("2.3.0-heaptimers-checkpoint")
    by_columns, by_entries = both(heap_timers.read, 300)
    assert by_columns == by_entries
    assert isinstance(by_columns, list)


KEYS: dict[KeyType, list[Any]] = {
    BOOLEAN: [False, True],
    BYTE: [*range(-128, 128)],
    SHORT: [0, -1, 2**15 - 1, *range(1, 300)],
    INT: [0, -1, 2**31 - 1, -(2**31), *range(1, 300)],
    LONG: [0, -1, 2**63 - 1, -(2**63), *range(1, 300)],
    FLOAT: [0.0, -0.0, 1.5, float("inf"), float("nan"), *map(float, range(1, 100))],
    DOUBLE: [0.0, -0.0, 0.1, float("-inf"), float("nan"), *map(float, range(1, 100))],
    STRING: ["", "a", "\u00e9", "\U0001f600", "x" * 300, *(f"user-{n}" for n in range(300))],
    LOCAL_DATE: [date(2024, 1, day) for day in range(1, 30)],
    TUPLE(LOCAL_DATE, INT): [(date(2024, 1, day), day) for day in range(1, 30)],
    TUPLE(STRING, LONG): [(f"user-{n}", n) for n in range(1, 300)],
    TUPLE(TUPLE(INT, STRING), BOOLEAN): [((n, "\u00e9" * n), n % 2 == 0) for n in range(130)],
}


@pytest.mark.long
@pytest.mark.parametrize("groups", [128, pytest.param(1_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("key_type", KEYS, ids=repr)
def test_keys_of_each_type(key_type: KeyType, groups: int, tmp_path: Path, both: Both) -> None:
    write_all(tmp_path / "old", key_type, groups, KEYS[key_type])
    by_columns, by_entries = both(lambda: tmp_path / "old", 32_768)
    assert by_columns == by_entries
    assert isinstance(by_columns, list)
    by_columns, by_entries = both(lambda: tmp_path / "old", 7)
    assert by_columns == by_entries


@pytest.mark.parametrize("key_type", KEYS, ids=repr)
def test_keys_are_hashed_as_columns(
    key_type: KeyType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One by one would be as right, and many times slower; dates alone are."""
    write_all(tmp_path / "old", key_type, 128, KEYS[key_type])
    rekeyed, hashed = EditTask._rekeyed, []

    def counted(task: EditTask, entries: Iterable[EncodedEntry]) -> Iterator[EncodedEntry]:
        hashed.append(key_type)
        return rekeyed(task, entries)

    monkeypatch.setattr(EditTask, "_rekeyed", counted)
    monkeypatch.setattr(keyed_state, "LEAST_OF_COLUMNS", 0)
    change_max_parallelism(tmp_path / "old", 300, tmp_path / "new")
    assert bool(hashed) == ("LOCAL_DATE" in repr(key_type))


def test_texts_that_arrow_does_not_hold(tmp_path: Path, both: Both) -> None:
    """Keys with half of a surrogate pair, alone and in tuples, are hashed one by one."""
    keys_of: dict[KeyType, list[Any]] = {
        STRING: ["\ud800", "a", "b"],
        TUPLE(STRING, LONG): [("\ud800", 1), ("a", 2)],
    }
    for number, (key_type, keys) in enumerate(keys_of.items()):
        folder = tmp_path / f"old-{number}"
        write_all(folder, key_type, 128, keys)
        by_columns, by_entries = both(lambda folder=folder: folder, 300)
        assert by_columns == by_entries
        assert isinstance(by_columns, list)


@pytest.mark.long
@pytest.mark.parametrize("step", [97, pytest.param(7, marks=pytest.mark.slow)])
@pytest.mark.parametrize("key_type", [STRING, LONG, TUPLE(STRING, LONG)], ids=repr)
def test_damaged_files(key_type: KeyType, step: int, tmp_path: Path, both: Both) -> None:
    """What is refused is refused in the same words, which name the first damaged entry."""
    old = tmp_path / "old"
    write_all(old, key_type, 128, KEYS[key_type][-6:])
    [path] = [path for path in old.iterdir() if path.name.endswith("x")] or [
        max(old.iterdir(), key=lambda path: path.stat().st_size)
    ]
    content = path.read_bytes()
    first = read_savepoint(old).operators[0].subtasks  # only to show that it is read
    assert first
    start = content.rindex(b"VoidNamespace")
    refused = 0
    for _, data in [*damages(content, start)][::step]:
        path.write_bytes(data)
        by_columns, by_entries = both(lambda: old, 300)
        assert by_columns == by_entries
        refused += not isinstance(by_columns, list)
    assert refused


def test_keys_that_arrays_do_not_hash(tmp_path: Path, both: Both) -> None:
    """A null in a tuple has no hash: the change is refused in the words of single entries."""
    write_all(tmp_path / "old", TUPLE(STRING, LONG), 128, [("a", 1)])
    path = max((tmp_path / "old").iterdir(), key=lambda path: path.stat().st_size)
    content = path.read_bytes()
    written = b"\x02a" + (1).to_bytes(8, "big")
    assert written in content
    for other in (b"\x02b", b"\x00\x00"):  # a key of another key group, and a null
        path.write_bytes(content.replace(written, other + written[2:]))
        by_columns, by_entries = both(lambda: tmp_path / "old", 300)
        assert by_columns == by_entries
        assert by_columns[0] is SavepointError


@pytest.mark.parametrize(
    "key",
    [
        b"\0",  # a null, which has no hash
        b"\5a",  # four letters, of which one is there
    ],
)
def test_a_key_that_is_none(key: bytes, tmp_path: Path, both: Both) -> None:
    entries = [(key + b"\0", sb.i64(5))]
    state = sb.state("count", "VALUE", sb.simple("Long"))
    operator = canonical(tmp_path / "old", sb.simple("String"), state, entries)
    by_columns, by_entries = both(lambda: operator._files.base, 300)
    assert by_columns == by_entries
    assert by_columns[0] is SavepointError


def test_keys_without_a_hash(tmp_path: Path, both: Both) -> None:
    """Arrays, which Java hashes by identity: a divisor of the max parallelism takes no hash."""
    entries = [(sb.i32(1) + bytes([number]) + b"\0", sb.i64(number)) for number in range(5)]
    state = sb.state("s", "VALUE", sb.simple("Long"))
    key = BYTES.snapshot_bytes()[4:]
    for form in (canonical, native, rocksdb):
        operator = form(tmp_path / form.__name__, key, state, entries)
        by_columns, by_entries = both(lambda path=operator._files.base: path, 64)
        assert by_columns == by_entries
        assert isinstance(by_columns, list)


@pytest.mark.parametrize("element", ["Long", "String"])
def test_lists_without_elements(element: str, tmp_path: Path, both: Both) -> None:
    """Which have no bytes in the new savepoint, as Flink's ListDelimitedSerializer writes them.

    What was written is read again, by columns and one by one.
    """
    one = {"Long": sb.i64(7), "String": b"\2x"}[element]
    lists = [sb.i32(0), sb.i32(2) + one + one, sb.i32(0)]
    entries = [(sb.i32(1) + bytes([number]) + b"\0", each) for number, each in enumerate(lists)]
    state = sb.state("s", "LIST", sb.list_of(sb.simple(element)))
    old = native(tmp_path / "old", BYTES.snapshot_bytes()[4:], state, entries)
    by_columns, by_entries = both(lambda: old._files.base, 64)
    assert by_columns == by_entries
    change_max_parallelism(old._files.base, 64, tmp_path / "new")
    [new] = read_savepoint(tmp_path / "new").operators
    read = {"Long": 7, "String": "x"}[element]
    expected = [[], [read, read], []]
    assert [entry.value for entry in old.entries()] == expected
    assert [entry.value for entry in new.entries()] == expected
    assert assert_same(new) == 3


def test_more_than_memory_holds(
    tmp_path: Path, both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries are spilled to disk, and merged from there; the progress is that of all bytes."""
    write_all(tmp_path / "old", LONG, 128, [*range(300)])
    monkeypatch.setattr(spill, "_HELD", 2_000)
    heard: list[Progress] = []
    by_columns, by_entries = both(
        lambda: read_savepoint(tmp_path / "old", progress=heard.append), 300
    )
    assert by_columns == by_entries
    assert isinstance(by_columns, list)
    last = [each for each in heard if each.done == each.total]
    assert len(last) >= 2


def test_entries_become_columns_by_their_bytes(tmp_path: Path) -> None:
    """A function may make entries of any size: only a few of a mebibyte are held at once."""
    write_all(tmp_path / "old", LONG, 128, [1])
    states = read_savepoint(tmp_path / "old").operator("by-key").states
    asked = []

    def entries() -> Iterator[EncodedEntry]:
        for key_group in range(100):
            asked.append(key_group)
            yield EncodedEntry(key_group, 1, bytes(9), bytes(1 << 20))

    assert [columns.count for columns in islice(framed_chunks(states, 0, entries()), 2)] == [4, 4]
    assert len(asked) == 8


def test_without_numpy(tmp_path: Path, both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    write_all(tmp_path / "old", LONG, 128, [1, 2, 3])
    monkeypatch.setitem(sys.modules, "numpy", None)
    by_columns, by_entries = both(lambda: tmp_path / "old", 300)
    assert by_columns == by_entries
    assert isinstance(by_columns, list)
