"""Tables that are written by whole columns, against the same ones written row by row."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from support.inside.columns import batch_sorter, table_writer
from support.inside.savepoints import EncodedEntry, NewState, spill
from support.inside.serializers import is_in_order
from support.selections import first_by_default

from keygroups import InvalidValueError, KeyGroupsError, assign_to_key_group
from keygroups.errors import SavepointError
from keygroups.progress import Progress
from keygroups.savepoint import (
    ListStateDescriptor,
    MapStateDescriptor,
    OperatorWriter,
    SavepointWriter,
    Serializer,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.state_keys import serializer_of
from keygroups.types import (
    BIG_DEC,
    BIG_INT,
    BOOLEAN,
    CHAR,
    INT,
    LONG,
    MAP,
    ROW,
    SQL_ROW,
    STRING,
    TUPLE,
)

pa: Any = pytest.importorskip("pyarrow")

from support.bytes.written_values import VALUES  # noqa: E402
from support.inside.columns import (  # noqa: E402
    arrow_array,
    column_of,
    column_writer,
    entries_of,
    entry_batch,
    key_column_of,
    table_rows,
)

Fill = Callable[[OperatorWriter], object]
TIME = 1_700_000_000_000
OTHERS: dict[Any, list[Any]] = {  # not written by column
    CHAR: ["a", "\uffff"],
    BIG_INT: [0, -1, 2**64],
    MAP(STRING, INT): [{}, {"a": 1}],
    SQL_ROW("STRING", "INT"): [("a", 1), (None, None)],
}
# Columns of rows have a row_kind, and those of BIG_DEC are text: no array of these is hashed.
KEYS_BY_ROW = {
    *(type_ for type_ in [*VALUES, *OTHERS] if isinstance(type_, (ROW, SQL_ROW))),
    TUPLE(TUPLE(INT, ROW(STRING)), BOOLEAN),
    TUPLE(BIG_DEC, STRING),
}


def contents(folder: Path) -> list[bytes]:
    """Return the files of keyed state, without their names."""
    return sorted(path.read_bytes() for path in folder.iterdir() if path.name != "_metadata")


def outcome(
    folder: Path, key_type: Any, states: list[NewState], fill: Fill, **options: Any
) -> list[bytes] | tuple[type[KeyGroupsError], str]:
    """Return the files that a function has written, or why there are none."""
    try:
        with SavepointWriter(folder) as writer:
            fill(writer.add_operator("uid", key_type, states, 128, 3, **options))
    except KeyGroupsError as error:
        return type(error), str(error)
    return contents(folder)


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """What returns the outcome by columns and the same by rows, if it is, and what was made so."""
    monkeypatch.setattr("time.time", lambda: 1_800_000_000.0)

    def call(*arguments: Any, **options: Any) -> tuple[Any, list[bool]]:
        entries, made = table_writer.TableWriter.entries, []

        def watched(*passed: Any) -> Any:
            batch = entries(*passed)
            made.append(batch is not None)
            return batch

        with monkeypatch.context() as patch:
            patch.setattr(table_writer.TableWriter, "entries", watched)
            by_columns = outcome(tmp_path / "columns", *arguments, **options)
            patch.setattr(table_writer.TableWriter, "entries", lambda *_: None)
            by_rows = outcome(tmp_path / "rows", *arguments, **options)
        assert by_columns == by_rows
        return by_columns, made

    return call


def array_of(value_type: Any, values: list[Any], is_key: bool = False) -> Any:
    """Return the column that `Operator.to_arrow` gives values."""
    serializer = value_type if isinstance(value_type, Serializer) else serializer_of(value_type)
    column = (key_column_of if is_key else column_of)(serializer)
    assert column is not None
    return arrow_array(column.convert(values), column.data_type)


def test_a_sorter_of_no_entries() -> None:
    """A batch without entries takes no bytes."""
    with closing(batch_sorter.BatchSorter(None)) as sorter:
        sorter.add(entry_batch([]))
        assert [*sorter.entries()] == []


@pytest.mark.parametrize("value_type", first_by_default(4, [*VALUES, *OTHERS]), ids=str)
def test_each_type_has_the_bytes_of_its_rows(both: Callable[..., Any], value_type: Any) -> None:
    """As a key, a value, an element, a user key and a value of one, with times and without."""
    serializer = value_type if isinstance(value_type, Serializer) else serializer_of(value_type)
    read, write = serializer.read, serializer.write
    assert read is not None
    assert write is not None
    distinct = dict.fromkeys(map(write, (VALUES | OTHERS)[value_type]))  # Keys come once.
    values = [read(data, 0)[0] for data in distinct]
    is_key = serializer.key_type is not None and is_in_order(serializer)
    count = len(values)
    key = array_of(value_type, values, is_key=True) if is_key else pa.array(range(count))
    value = array_of(value_type, values)
    columns = {"key": key, "value": value, "user_key": key}
    lists = pa.ListArray.from_arrays([0, *range(2, count + 1), count], value)
    listed = {"key": key.take(pa.array(range(count))), "value": lists}
    times = {"last_access": pa.array(range(TIME, TIME + count))}
    tables = {
        "value": columns,
        "value TTL": columns | times,
        "map": columns,
        "map TTL": columns | times,
        "list": {name: array.slice(0, count - 1) for name, array in listed.items()},
    }
    states = [
        ValueStateDescriptor("value", value_type),
        ValueStateDescriptor("value TTL", value_type, has_ttl=True),
        MapStateDescriptor("map", value_type if is_key else LONG, value_type),
        MapStateDescriptor("map TTL", value_type if is_key else LONG, value_type, has_ttl=True),
        ListStateDescriptor("list", value_type),
    ]

    def fill(operator: OperatorWriter) -> None:
        for name, table in tables.items():
            operator.write_table(name, pa.table(table))

    written, made = both(value_type if is_key else LONG, states, fill, sort=True)
    assert isinstance(written, list)
    if value_type in KEYS_BY_ROW:
        assert not made[0]  # The list's keys alone may have no text.
    else:
        assert set(made) == {column_writer(serializer) is not None}


COUNT = ValueStateDescriptor("count", LONG)
TIMED = ValueStateDescriptor("timed", LONG, has_ttl=True)
TAGS = ListStateDescriptor("tags", STRING)
CITIES = MapStateDescriptor("cities", STRING, LONG)
NAMES = MapStateDescriptor("names", STRING, STRING)
PAIR = ValueStateDescriptor("pair", TUPLE(LONG, STRING))
STATES: list[NewState] = [COUNT, TIMED, TAGS, CITIES, NAMES, PAIR]
PAIRS = pa.struct([("f0", pa.int64()), ("f1", pa.string())])
# Each with rows that are an entry around the one that is none, or that columns do not write.
REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "a null key": ("count", {"key": ["a", None, "c"], "value": [1, 2, 3]}),
    "a null value": ("count", {"key": ["a", "b", "c"], "value": [1, None, 3]}),
    "a number that is too large": (
        "count",
        {"key": ["a"], "value": pa.array([2**63], pa.uint64())},
    ),
    "no UTF-8": (
        "tags",
        {
            "key": ["a"],
            "value": pa.array([[b"\xff"]]).cast(pa.list_(pa.binary())).view(pa.list_(pa.string())),
        },
    ),
    "a null element": ("tags", {"key": ["a", "b"], "value": [["x"], ["x", None]]}),
    "an empty list": ("tags", {"key": ["a", "b"], "value": [["x"], []]}),
    "a null list": ("tags", {"key": ["a", "b"], "value": [["x"], None]}),
    "a null user key": ("cities", {"key": ["a"] * 2, "value": [1, 2], "user_key": ["x", None]}),
    "a null that a map does not keep": (
        "cities",
        {"key": ["a"] * 2, "value": [1, None], "user_key": ["x", "y"]},
    ),
    "a null that a map keeps": (
        "names",
        {"key": ["a"] * 2, "value": ["1", None], "user_key": ["x", "y"]},
    ),
    "no last access": ("timed", {"key": ["a", "b"], "value": [1, 2], "last_access": [TIME, None]}),
    "seconds": (
        "timed",
        {"key": ["a", "b"], "value": [1, 2], "last_access": [TIME, 10**9]},
    ),
    "microseconds": ("timed", {"key": ["a"], "value": [1], "last_access": [TIME * 1000]}),
    "a null field": ("pair", {"key": ["a"], "value": pa.array([(None, "x")], PAIRS)}),
    "a null field that is kept": ("pair", {"key": ["a"], "value": pa.array([(1, None)], PAIRS)}),
    "a key twice": ("count", {"key": ["a", "b", "a"], "value": [1, 2, 3]}),
    "a user key twice": ("cities", {"key": ["a"] * 2, "value": [1, 2], "user_key": ["x"] * 2}),
}
KEPT = ("a null that a map keeps", "a null field that is kept")


def table_of(state: str, columns: dict[str, Any]) -> Any:
    """Return a table of the columns, whose nulls have the type of the others."""
    return pa.table(
        {
            name: pa.array(column) if isinstance(column, list) else column
            for name, column in columns.items()
        }
    )


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_is_refused_in_the_same_words(both: Callable[..., Any], case: str) -> None:
    state, columns = REFUSED[case]

    def fill(operator: OperatorWriter) -> None:
        operator.write_table(state, table_of(state, columns))

    written, made = both(STRING, STATES, fill, sort=True)
    assert isinstance(written, list) == (case in KEPT)
    assert all(made) == (case in KEPT or "twice" in case or "too large" in case)


def test_any_last_access(both: Callable[..., Any]) -> None:
    def fill(operator: OperatorWriter) -> None:
        columns = {"key": ["a", "b"], "value": [1, 2], "last_access": [-(2**63), 2**63 - 1]}
        operator.write_table("timed", pa.table(columns))

    written, made = both(STRING, STATES, fill, sort=True, allow_any_last_access=True)
    assert isinstance(written, list)
    assert made == [True]


def test_rows_before_one_that_is_refused_are_written(tmp_path: Path) -> None:
    """Whoever goes on has them, as those of `write`."""
    with SavepointWriter(tmp_path / "new") as writer:
        operator = writer.add_operator("uid", STRING, STATES, 128, 3, sort=True)
        with pytest.raises(InvalidValueError, match="key must not be null"):
            operator.write_table("count", pa.table({"key": ["a", None, "c"], "value": [1, 2, 3]}))
        operator.write_table("count", pa.table({"key": ["d"], "value": [4]}))
    entries = read_savepoint(tmp_path / "new").operator("uid").entries()
    assert {entry.key: entry.value for entry in entries} == {"a": 1, "d": 4}


# --- in the order of key groups, and in any -------------------------------------------------


def keys_in_order(count: int) -> list[str]:
    """Return keys in the order of their key groups, of which some have several."""
    keys = [f"user {number}" for number in range(count)]
    return sorted(keys, key=lambda key: assign_to_key_group(key, 128))


def counts_of(keys: list[str]) -> Any:
    return pa.table({"key": keys, "value": pa.array(map(len, keys), pa.int64())})


@pytest.mark.parametrize("at_once", [1, 3, 7, 1 << 14])
@pytest.mark.parametrize("seed", range(3))
def test_tables_and_rows_take_turns(
    both: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, at_once: int, seed: int
) -> None:
    """Within a key group too, over the ends of batches, and of the subtasks."""
    monkeypatch.setattr(table_rows, "_AT_ONCE", at_once)
    keys = keys_in_order(200)

    def fill(operator: OperatorWriter) -> None:
        numbers, rest = random.Random(seed), keys
        while rest:
            count = numbers.choice((1, 2, 5, 40))
            if numbers.random() < 0.5:
                operator.write_table("count", counts_of(rest[:count]))
            else:
                for key in rest[:count]:
                    operator.write("count", key, len(key))
                    operator.write("tags", key, ["x"])
            rest = rest[count:]

    written, _ = both(STRING, STATES, fill)
    assert isinstance(written, list)
    assert len(written) == 3


@pytest.mark.parametrize("at", ["in a table", "between tables", "after a row"])
def test_a_key_group_after_a_higher_one(both: Callable[..., Any], at: str) -> None:
    keys = keys_in_order(60)
    wrong = [*keys[:20], keys[40], *keys[20:40]]

    def fill(operator: OperatorWriter) -> None:
        if at == "in a table":
            operator.write_table("count", counts_of(wrong))
        elif at == "between tables":
            operator.write_table("count", counts_of(keys[20:]))
            operator.write_table("count", counts_of(keys[:20]))
        else:
            operator.write("count", keys[20], 5)
            operator.write_table("count", counts_of(keys[:20]))

    written, made = both(STRING, STATES, fill)
    assert all(made)
    assert "entries must come in the order of key groups, got key 'user " in written[1]
    assert "pass sort=True to add_operator" in written[1]


@pytest.mark.parametrize("sort", [True, False], ids=["any order", "in order"])
@pytest.mark.parametrize("how", ["two tables", "a row and a table", "a table and a row"])
def test_a_key_that_comes_twice(both: Callable[..., Any], how: str, sort: bool) -> None:
    def fill(operator: OperatorWriter) -> None:
        for is_table in (how != "a row and a table", how != "a table and a row"):
            if is_table:
                operator.write_table("count", counts_of(["ann"]))
            else:
                operator.write("count", "ann", 3)

    written, _ = both(STRING, STATES, fill, sort=sort)
    message = "each key must come once, got key 'ann' in state 'count' twice"
    assert written == (InvalidValueError, message)


@pytest.mark.long
@pytest.mark.parametrize("held", [1 << 26, 3_000, 200])
@pytest.mark.parametrize("most", [128, 3])
def test_tables_that_memory_does_not_hold(
    both: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, held: int, most: int
) -> None:
    """Sorted by way of files, with rows between; the bytes are those of rows alone."""
    monkeypatch.setattr(spill, "_HELD", held)
    monkeypatch.setattr(spill, "_MOST_RUNS", most)
    monkeypatch.setattr(batch_sorter, "_WRITTEN", 100)
    monkeypatch.setattr(batch_sorter, "_ROWS", 3)
    monkeypatch.setattr(table_rows, "_AT_ONCE", 9)
    keys = [f"user {number}" for number in range(150)]
    random.Random(0).shuffle(keys)
    spilled = []
    spill_of = batch_sorter.BatchSorter.spill

    def counted(sorter: Any) -> None:
        spilled.append(sorter)
        spill_of(sorter)

    monkeypatch.setattr(batch_sorter.BatchSorter, "spill", counted)

    def fill(operator: OperatorWriter) -> None:
        operator.write_table("count", counts_of(keys[:100]))
        for key in keys[100:]:
            operator.write("count", key, len(key))
        tags = pa.table({"key": keys, "value": [[key, "x"] for key in keys]})
        operator.write_table("tags", tags)

    written, made = both(STRING, STATES, fill, sort=True)
    assert isinstance(written, list)
    assert all(made)
    assert bool(spilled) == (held < 1 << 20)


def entries_of_groups(key_groups: Sequence[int], start: int = 0) -> list[EncodedEntry]:
    """Return an entry for each key group, whose keys are in no order."""
    return [
        EncodedEntry(group, number % 2, f"{number * 7919 % 1000:03}".encode(), b"%d" % number)
        for number, group in enumerate(key_groups, start)
    ]


class Spilled:
    """A BatchSorter that got entries, some of them by way of files, and the files as they are."""

    def __init__(self, parts: Sequence[Sequence[EncodedEntry]], folder: Path | None) -> None:
        self.sorter = batch_sorter.BatchSorter(folder)
        self.expected = sorted(entry for part in parts for entry in part)
        for part in parts:
            half = len(part) // 2
            for entries in (part[:half], part[half:]):
                if entries:
                    self.sorter.add(entry_batch(entries))
            self.sorter.spill()

    def parts(self) -> list[list[list[int]]]:
        """Return the key groups of each batch of each part."""
        firsts = range(len(self.sorter._firsts))
        read = (self.sorter._read_part(part) for part in firsts)
        return [[batch.column(0).to_pylist() for batch in batches] for batches in read]

    def check(self) -> None:
        found = [entry for batch in self.sorter.entries() for entry in entries_of(batch)]
        self.sorter.close()
        assert found == self.expected


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files have four parts, at the least three."""
    monkeypatch.setattr(batch_sorter, "_PARTS", 4)
    monkeypatch.setattr(batch_sorter, "_LEAST_PARTS", 3)


@pytest.mark.usefixtures("few")
def test_parts_of_files(tmp_path: Path) -> None:
    """Parts of the first file have about as many entries, or key groups; later ones their own."""
    spilled = Spilled(
        [
            entries_of_groups([5, 2, 2, 9, 5, 7, 3, 9]),
            entries_of_groups([9, 0, 4, 8, 3], 100),
            entries_of_groups([12, 9, 32767, 20, 11, 12, 12, 30], 200),
        ],
        tmp_path,
    )
    assert spilled.sorter._firsts == [
        *(0, 2, 3, 4, 6, 8),
        *(10, 13, 31, 8199, 16388, 24577, 32766),
    ]
    assert spilled.parts() == [
        [[0]],
        [[2, 2]],
        [[3], [3]],
        [[5, 5], [4]],
        [[7]],
        [[9, 9], [9, 8], [9]],
        [[12, 11, 12, 12]],
        [[20, 30]],
        *([], [], [], []),
        [[32767]],
    ]
    [scratch] = tmp_path.iterdir()
    assert len([*scratch.iterdir()]) == 3
    spilled.check()
    assert not [*tmp_path.iterdir()]


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("held", [1 << 20, 0], ids=["in memory", "sorted by way of files again"])
def test_files_shrink_as_they_are_read(
    held: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that they and what is written take the room of one savepoint, and not of two."""
    spilled = Spilled([entries_of_groups(range(9), start) for start in (0, 100)], tmp_path)
    monkeypatch.setattr(spill, "_HELD", held)
    [scratch] = tmp_path.iterdir()
    starts = spilled.sorter._starts
    assert [*map(len, starts)] == [5, 5]
    expected = [sum(places[part] for places in starts) for part in sorted(starts[0])]
    assert expected[-1] == 0
    sizes = [
        sum(file.stat().st_size for file in scratch.iterdir()) for _ in spilled.sorter.entries()
    ]
    assert [*dict.fromkeys(sizes)] == expected
    spilled.sorter.close()


def test_parts_of_another_max_parallelism(tmp_path: Path) -> None:
    """Eight key groups of 1,024 become 32 of 4,096 that lie far apart; so do the next eight."""
    some = [
        [old + 1024 * n for old in range(first, first + 8) for n in range(4)] * 30
        for first in (0, 8, 512)
    ]
    spilled = Spilled([*map(entries_of_groups, some)], tmp_path)
    parts = [{group for batch in part for group in batch} for part in spilled.parts()]
    assert max(map(len, parts)) == 8 < 96 == len(set().union(*parts))
    spilled.check()


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("key_groups", "firsts"), [([1, 2, 2, 2], []), ([1, 2, 2, 3], [0, 1, 2, 3])]
)
def test_few_key_groups_are_sorted_in_their_files(
    key_groups: list[int], firsts: list[int]
) -> None:
    """So are those of later files, whatever their key groups."""
    spilled = Spilled([entries_of_groups(key_groups), entries_of_groups(range(9), 10)], None)
    assert spilled.sorter._firsts[:4] == firsts
    assert [*map(len, spilled.sorter._starts)] == ([3, 9] if firsts else [])
    assert spilled.sorter._held == []
    assert spilled.sorter._size == 0
    spilled.check()


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("more", [-1, 0])
def test_parts_that_memory_does_not_hold(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, more: int
) -> None:
    """These have files of their own, which are sorted, beside those of the parts."""
    spilled = Spilled([entries_of_groups([n % 7 for n in range(60)])] * 3, tmp_path)
    sizes = spilled.sorter._sizes
    assert len(sizes) == len(spilled.sorter._firsts) > 3
    largest = max(sizes.values())
    assert sum(sizes.values()) == sum(
        batch.nbytes for part in range(len(sizes)) for batch in spilled.sorter._read_part(part)
    )
    monkeypatch.setattr(spill, "_HELD", largest + more)
    made: list[tuple[Path | None, bool]] = []
    init = batch_sorter.BatchSorter.__init__

    def counted(sorter: Any, folder: Path | None, in_parts: bool = True) -> None:
        made.append((folder, in_parts))
        init(sorter, folder, in_parts)

    monkeypatch.setattr(batch_sorter.BatchSorter, "__init__", counted)
    write = Mock(wraps=spill.Sorter._write_run)
    monkeypatch.setattr(spill.Sorter, "_write_run", lambda *args: write(*args))
    spilled.check()
    assert bool(write.call_count) == (more < 0)
    assert made == [(tmp_path, False)] * [*sizes.values()].count(largest) * (more < 0)
    assert not [*tmp_path.iterdir()]


@pytest.mark.usefixtures("few")
def test_equal_entries_keep_their_order() -> None:
    """That of the batches, those of a file before those of a later one."""
    parts = [
        [
            EncodedEntry(group, 0, b"k", b"%d %02d" % (part, n))
            for n in range(60)
            for group in (3, 1, 2)
        ]
        for part in range(3)
    ]
    spilled = Spilled(parts, None)
    assert spilled.sorter._starts
    spilled.check()


@pytest.mark.usefixtures("few")
def test_entries_held_at_the_end(tmp_path: Path) -> None:
    """They go to a file, as the parts are read from files alone."""
    spilled = Spilled([entries_of_groups(range(9))], tmp_path)
    rest = entries_of_groups(range(12), 20)
    spilled.sorter.add(entry_batch(rest))
    spilled.expected = sorted([*spilled.expected, *rest])
    spilled.check()


@pytest.mark.usefixtures("few")
def test_a_file_of_parts_that_is_gone(tmp_path: Path) -> None:
    spilled = Spilled([entries_of_groups(range(9))], tmp_path)
    for path in tmp_path.rglob("0"):
        path.unlink()
    with pytest.raises(SavepointError, match="cannot be written: No such file"):
        spilled.check()
    spilled.sorter.close()


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever goes on all the same writes no savepoint, and no file is left."""
    monkeypatch.setattr(spill, "_HELD", 100)

    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(batch_sorter.BatchSorter, "_write", fail)

    def write() -> None:
        with SavepointWriter(tmp_path / "new") as writer:
            operator = writer.add_operator("uid", STRING, STATES, 128, 3, sort=True)
            for _ in range(2):
                with pytest.raises(SavepointError, match=r"No space left|after an error"):
                    operator.write_table("count", counts_of(keys_in_order(50)))

    with pytest.raises(SavepointError, match="after an error"):
        write()
    assert not [*tmp_path.iterdir()]


def test_no_rows(both: Callable[..., Any]) -> None:
    """Nor any files."""

    def fill(operator: OperatorWriter) -> None:
        operator.write_table("count", counts_of([]))

    assert both(STRING, STATES, fill, sort=True) == ([], [])


@pytest.mark.parametrize("sort", [True, False], ids=["any order", "in order"])
def test_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sort: bool) -> None:
    """Key groups are counted as they are written."""
    monkeypatch.setattr("keygroups.progress._INTERVAL", -1)
    monkeypatch.setattr(table_rows, "_AT_ONCE", 30)
    monkeypatch.setattr(batch_sorter, "_WRITTEN", 250)
    reports: list[Progress] = []
    with SavepointWriter(tmp_path / "new", progress=reports.append) as writer:
        operator = writer.add_operator("uid", STRING, STATES, 128, 3, sort=sort)
        operator.write_table("count", counts_of(keys_in_order(200)))
    done = [one.done for one in reports]
    assert done == sorted(done)
    assert done[0] < 30
    assert done[-1] == 128
    assert {one[2:] for one in reports} == {(128, "key groups")}
    assert len(done) > 5
    reports.clear()
    by_group = {assign_to_key_group(key, 128): key for key in keys_in_order(2_000)}
    with SavepointWriter(tmp_path / "few", progress=reports.append) as writer:
        operator = writer.add_operator("uid", STRING, STATES, 128, 3, sort=sort)
        for group in (0, 5, 90, 127):
            operator.write_table("count", counts_of([by_group[group]]))
    done = [one.done for one in reports]
    assert done == ([0, 128] if sort else [0, 5, 90, 127, 128])  # One batch is sorted.


@pytest.mark.parametrize("is_small", [False, True])
def test_one_batch_of_each_file_is_held(monkeypatch: pytest.MonkeyPatch, is_small: bool) -> None:
    """The merge takes the next one of a file whose last is yielded, or nearly so."""
    monkeypatch.setattr(batch_sorter, "_MOST_READ", 1)
    if not is_small:
        monkeypatch.setattr(batch_sorter, "_WRITTEN", 2)
    pulled = {"a": 0, "b": 0}

    def run(name: str, key_groups: Sequence[int]) -> Iterator[Any]:
        for key_group in key_groups:
            pulled[name] += 1
            yield entry_batch([EncodedEntry(key_group, 0, b"k", b"v")])

    with closing(batch_sorter.BatchSorter(None)) as sorter:
        merged = sorter._merge([run("a", [1, 2, 3, 9]), run("b", [4, 5])])
        seen = [(batch.column(0).to_pylist(), pulled["a"], pulled["b"]) for batch in merged]
    if is_small:
        assert seen == [
            *(([1], 2, 1), ([2], 3, 1), ([3], 4, 1)),
            *(([4], 4, 2), ([5], 4, 2), ([9], 4, 2)),
        ]
    else:
        assert [key_groups for key_groups, _, _ in seen] == [[1], [2], [3], [4], [5], [9]]
        assert [now for _, *now in seen] == [
            *([2, 1], [3, 1], [4, 1], [4, 2], [4, 2], [4, 2]),
        ]


@pytest.mark.parametrize("is_apart", [True, False])
def test_a_merge_looks_at_the_heads_that_it_takes_from(
    monkeypatch: pytest.MonkeyPatch, is_apart: bool
) -> None:
    """So that its work is linear in the batches of all files, and not in those times the files.

    Files that lie one behind the other are what another max parallelism makes of key groups.
    """
    monkeypatch.setattr(batch_sorter, "_MOST_READ", 1)
    monkeypatch.setattr(batch_sorter, "_WRITTEN", 2)
    files, batches = 40, 10
    order = range(files * batches)
    numbers = [
        order[file * batches :][:batches] if is_apart else order[file::files]
        for file in range(files)
    ]
    looked: list[int] = []
    count_of = batch_sorter._count_up_to

    def counted(batch: Any, bound: Any) -> int:
        looked.append(count_of(batch, bound))
        return looked[-1]

    monkeypatch.setattr(batch_sorter, "_count_up_to", counted)

    def run(key_groups: Iterable[int]) -> Iterator[Any]:
        return (entry_batch([EncodedEntry(group, 0, b"k", b"v")]) for group in key_groups)

    with closing(batch_sorter.BatchSorter(None)) as sorter:
        merged = [*sorter._merge(map(run, numbers))]
    assert [group for batch in merged for group in batch.column(0).to_pylist()] == [*order]
    assert len(looked) <= files * batches
    assert all(looked)
