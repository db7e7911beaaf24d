"""Entries made of whole columns, against those made one by one; no Spark runs.

What is made one by one has the bytes of Flink: its serializers are held to those.
"""

from __future__ import annotations

import datetime as dt
import random
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest
from support.inside.columns import column_encoder, entries_of, entry_batch, row_encoder
from support.inside.savepoints import EncodedEntry, NewState, joined_lists, stored_value
from support.selections import first_by_default

from keygroups import (
    InvalidValueError,
    KeyGroupsError,
    UnsupportedKeyTypeError,
    assign_to_key_group,
)
from keygroups.binary_row import binary_row
from keygroups.savepoint import (
    ListStateDescriptor,
    MapStateDescriptor,
    OperatorWriter,
    SavepointWriter,
    Serializer,
    StateDescriptor,
    ValueStateDescriptor,
)
from keygroups.state_keys import BYTES, TIME_WINDOW, VOID_NAMESPACE, serializer_of
from keygroups.types import (
    BIG_DEC,
    CHAR,
    INSTANT,
    INT,
    LIST,
    LOCAL_DATE,
    LONG,
    MAP,
    SQL_ROW,
    STRING,
    TUPLE,
    KeyType,
)

np: Any = pytest.importorskip("numpy")
pa: Any = pytest.importorskip("pyarrow")

from support.bytes.written_values import TEXTS, VALUES, Type, arrow_type  # noqa: E402
from support.inside.columns import (  # noqa: E402
    ColumnPlace,
    FileWriter,
    LongRows,
    StateColumns,
    UnwrittenError,
    WideRows,
    column_of_key_type,
    column_to_write,
    column_writer,
)
from support.inside.serializers import SQL_STRING, DateSerializer, KryoSerializer  # noqa: E402


@pytest.mark.parametrize("value_type", VALUES, ids=str)
def test_a_column_has_the_bytes_of_its_values(value_type: Type) -> None:
    """As they are, with others before and behind, and none at all."""
    serializer = value_type if isinstance(value_type, Serializer) else serializer_of(value_type)
    assert serializer.write is not None
    values = VALUES[value_type]
    expected = [serializer.write(value) for value in values]
    writer = column_writer(value_type)
    assert writer is not None
    array = pa.array(values, arrow_type(value_type))
    assert writer.write(array).to_pylist() == expected
    assert writer.write(array.slice(1)).to_pylist() == expected[1:]
    assert writer.write(array.slice(0, 1)).to_pylist() == expected[:1]
    assert writer.write(array.slice(0, 0)).to_pylist() == []


def test_rows_without_any_entry(tmp_path: Path) -> None:
    states: list[NewState] = [ValueStateDescriptor("n", LONG)]
    task = operator_of(tmp_path, STRING, states).task(0)
    encode = WideRows("by-key", task, STRING, False, (StateColumns("n", 3, LONG),))
    batch = batch_of(STRING, ["a", "b"], 128, pa.nulls(2, pa.int64()))
    assert not [*encode([batch])]


LEFT: dict[str, tuple[Type, Any]] = {
    "text that begins within a character": (
        STRING,
        pa.array([b"\xc3", b"\xa9"], pa.binary()),
    ),
    "no UTF-8": (STRING, pa.array([b"a\xff"], pa.binary())),
    "the least byte that is no ASCII": (STRING, pa.array([b"\x80"], pa.binary())),
    "the same in text of SQL": (SQL_STRING, pa.array([b"a\x80"], pa.binary())),
    "half of a surrogate pair": (STRING, pa.array([b"\xed\xa0\x80"], pa.binary())),
    "no UTF-8 in text of SQL": (SQL_STRING, pa.array([b"\xff"], pa.binary())),
    "a year before 1": (LOCAL_DATE, pa.array([-719_163], pa.int32()).cast(pa.date32())),
    "a year after 9999": (LOCAL_DATE, pa.array([2_932_897], pa.int32()).cast(pa.date32())),
    "a moment after the year 9999": (INSTANT, pa.array([2**62], pa.timestamp("us", tz="UTC"))),
    "a moment before the year 1": (INSTANT, pa.array([-(2**62)], pa.timestamp("us", tz="UTC"))),
    "the moment that is NumPy's NaT": (
        INSTANT,
        pa.array([0, -(2**63)], pa.timestamp("us", tz="UTC")),
    ),
    "a moment after the year 9999 beside a NaT": (
        INSTANT,
        pa.array([-(2**63), 2**62], pa.timestamp("us", tz="UTC")),
    ),
    "a part of a millisecond": (DateSerializer(), pa.array([1], pa.timestamp("us", tz="UTC"))),
    "a decimal that takes more than a long": (
        BIG_DEC,
        pa.array([Decimal(2**63), Decimal(-(2**63) - 1)], pa.decimal128(38, 0)),
    ),
    "a null element": (LIST(STRING), pa.array([["a", None]])),
    "a null field": (
        TUPLE(INT),
        pa.array([(None,)], pa.struct([("f0", pa.int32())])),
    ),
}


@pytest.mark.parametrize("case", LEFT)
def test_what_is_refused_is_left_to_the_serializer(case: str) -> None:
    item, array = LEFT[case]
    writer = column_writer(item)
    assert writer is not None
    with pytest.raises(UnwrittenError):
        writer.write(array)


def test_keys_of_another_serializer_are_left_to_it() -> None:
    """A column of LONG beside keys that the savepoint has as INT."""
    encoder = column_encoder.KeyColumnEncoder(LONG, serializer_of(INT), 128)
    for encode in (encoder.encoded, encoder.key_groups):
        with pytest.raises(UnwrittenError):
            encode(pa.array([1], pa.int64()))


@pytest.mark.parametrize("value_type", [serializer_of(BIG_DEC), CHAR, TUPLE(INT, CHAR)], ids=str)
def test_a_type_without_a_writer(value_type: Type) -> None:
    assert column_writer(value_type) is None


# --- rows -------------------------------------------------------------------------------


def operator_of(
    folder: Path,
    key_type: KeyType,
    states: list[NewState],
    parallelism: int = 1,
    groups: int = 128,
) -> OperatorWriter:
    writer = SavepointWriter(folder / "s")
    return writer.add_operator("by-key", key_type, states, groups, parallelism)


def batch_of(
    key_type: KeyType, keys: list[Any], groups: int, *columns: Any, last_access: Any = None
) -> Any:
    key_groups = [None if k is None else assign_to_key_group(k, groups, key_type) for k in keys]
    times = pa.nulls(len(keys), pa.int64()) if last_access is None else last_access
    arrays = [pa.array(key_groups, pa.int32()), pa.array(keys, arrow_type(key_type)), times]
    arrays += columns
    return pa.RecordBatch.from_arrays(arrays, [f"c{n}" for n in range(len(arrays))])


def outcome(encode: Callable[[Iterable[Any]], Iterator[Any]], batch: Any) -> Any:
    """Return the entries of a batch, or why there are none."""
    try:
        return [entry for entries in encode([batch]) for entry in entries_of(entries)]
    except KeyGroupsError as error:
        return type(error), str(error)


def both(
    monkeypatch: pytest.MonkeyPatch, encode: WideRows, batch: Any, *, is_column_wise: bool = True
) -> tuple[Any, Any]:
    """Return the entries of a batch by columns, and those row by row."""
    rows = []

    def counted(entries: Iterable[EncodedEntry]) -> Any:
        rows.extend(listed := [*entries])
        return entry_batch(listed)

    with monkeypatch.context() as patch:
        patch.setattr(row_encoder, "entry_batch", counted)
        by_columns = outcome(encode, batch)
        assert not (is_column_wise and rows)
        patch.setattr(column_encoder, "column_writer", lambda _: None)
        patch.setattr(column_encoder, "key_writer", lambda _: None)
        by_rows = outcome(encode, batch)
        assert rows or not isinstance(by_rows, list)
    return by_columns, by_rows


@pytest.mark.parametrize(
    "key_type",
    first_by_default(2, [key for key in reversed(VALUES) if isinstance(key, KeyType)]),
    ids=repr,
)
def test_rows_make_the_same_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key_type: KeyType
) -> None:
    """Of each type as a key, a value, an element, a list and a user key, with nulls between."""
    values = VALUES[key_type]
    keys = [value for value in values for _ in range(3)]
    some = [value if n % 3 else None for n, value in enumerate(keys)]
    lists = [[value] * (n % 3) if n % 4 else None for n, value in enumerate(keys)]
    array, optional = pa.array(keys, arrow_type(key_type)), pa.array(some, arrow_type(key_type))
    listed = pa.array(lists, pa.list_(arrow_type(key_type)))
    states = {
        "value": ValueStateDescriptor("value", key_type),
        "list": ListStateDescriptor("list", key_type),
        "element": ListStateDescriptor("element", key_type),
        "map": MapStateDescriptor("map", key_type, key_type),
        "sparse map": MapStateDescriptor("sparse map", key_type, STRING),
    }
    columns = (
        StateColumns("value", 4, key_type),
        StateColumns("list", 5, key_type, is_array=True),
        StateColumns("element", 4, key_type, is_element=True),
        StateColumns("map", 3, key_type, 3, key_type),
        StateColumns("sparse map", 6, STRING, 4, key_type),
    )
    operator = operator_of(tmp_path, key_type, [*states.values()], groups=200)
    encode = WideRows("by-key", operator.task(0), key_type, False, columns)
    names = pa.array([None if n % 3 != 1 else "x" for n in range(len(keys))])
    batch = batch_of(key_type, keys, 200, array, optional, listed, names)
    by_columns, by_rows = both(monkeypatch, encode, batch)
    assert by_columns == by_rows
    assert {entry.state for entry in by_columns} == set(range(5))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("BIGINT", 7),
        ("STRING", "longer than a slot"),
        ("DECIMAL(18, 2)", Decimal("1.25")),
        ("DECIMAL(19, 2)", Decimal("1.25")),
        ("DECIMAL(38, 10)", Decimal("1.2500000000")),
        ("TIMESTAMP(3)", dt.datetime(2020, 1, 2, 3, 4, 5)),
        ("TIMESTAMP(6)", dt.datetime(2020, 1, 2, 3, 4, 5, 678_901)),
        ("TIMESTAMP_LTZ(6)", dt.datetime(2020, 1, 2, 3, 4, 5, 678_901, dt.timezone.utc)),
        ("ROW<f0 DECIMAL(19), f1 TIMESTAMP(6)>", (None, dt.datetime(2020, 1, 2))),
    ],
)
def test_nulls_in_keys_of_sql(
    field: str, value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where Flink's code keeps room for one it is there, and within a nested row it is not.

    The bytes of `binary_row` are Flink's: tests/vectors has the hashes of them.
    """
    key_type = SQL_ROW(field, "INT", field)
    rows = [*product((value, None), (5, None), (value, None))]
    states: list[NewState] = [ValueStateDescriptor("n", key_type)]
    task = operator_of(tmp_path, key_type, states).task(0)
    encode = WideRows("by-key", task, key_type, False, (StateColumns("n", 3, key_type),))
    for keys in (rows, rows[-1:], rows[:1]):
        column = pa.array(keys, column_of_key_type(key_type).data_type)
        key_groups = [assign_to_key_group(key, 128, key_type) for key in keys]
        arrays = [pa.array(key_groups, pa.int32()), column, pa.nulls(len(keys), pa.int64())]
        arrays.append(column)
        batch = pa.RecordBatch.from_arrays(arrays, ["c0", "c1", "c2", "c3"])
        by_columns, by_rows = both(monkeypatch, encode, batch)
        assert by_columns == by_rows
        for entry, key in zip(by_columns, keys):
            data = binary_row(key, key_type)
            assert entry.key == struct.pack(">i", len(data)) + data + b"\0"  # and no namespace


@pytest.mark.parametrize(
    ("field", "item", "value"),
    [
        ("DECIMAL(10, 3)", pa.decimal128(9, 2), Decimal("-1.50")),
        ("DECIMAL(10, 1)", pa.decimal128(10, 2), Decimal("1.50")),
        ("DECIMAL(18, 18)", pa.decimal128(38, 38), Decimal("0." + "9" * 18 + "0" * 20)),
        ("DECIMAL(30, 3)", pa.decimal128(10, 2), Decimal("1.55")),
        ("DECIMAL(38, 20)", pa.decimal128(38, 0), Decimal(10**18 - 1)),
        ("DECIMAL(19, 0)", pa.decimal128(38, 19), Decimal(1 - 10**19)),
        ("TIMESTAMP(9)", pa.timestamp("us"), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)),
        (
            "TIMESTAMP_LTZ(9)",
            pa.timestamp("us", tz="America/Los_Angeles"),
            dt.datetime(2026, 11, 1, 9, 30, 0, 1, dt.timezone.utc),
        ),
    ],
    ids=str,
)
def test_keys_of_columns_of_another_type(
    field: str, item: Any, value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A DataFrame's decimals have any scale, and its timestamps no nanoseconds."""
    key_type = SQL_ROW(field, "INT")
    task = operator_of(tmp_path, key_type, [ValueStateDescriptor("n", LONG)]).task(0)
    encode = WideRows("by-key", task, key_type, False, (StateColumns("n", 3, LONG),))
    keys = [(value, 1), (None, 2)]
    column = pa.array(keys, pa.struct([("f0", item), ("f1", pa.int32())]))
    key_groups = [assign_to_key_group(key, 128, key_type) for key in keys]
    arrays = [pa.array(key_groups, pa.int32()), column, pa.nulls(2, pa.int64()), pa.array([3, 4])]
    batch = pa.RecordBatch.from_arrays(arrays, ["c0", "c1", "c2", "c3"])
    by_columns, by_rows = both(monkeypatch, encode, batch)
    assert by_columns == by_rows
    for entry, key in zip(by_columns, keys, strict=True):
        data = binary_row(key, key_type)
        assert entry.key == struct.pack(">i", len(data)) + data + b"\0"


@pytest.mark.parametrize("allow", [False, True])
def test_rows_with_times_make_the_same_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allow: bool
) -> None:
    states = [
        ValueStateDescriptor("value", LONG, has_ttl=True),
        ListStateDescriptor("list", STRING, has_ttl=True),
        ListStateDescriptor("element", STRING, has_ttl=True),
        MapStateDescriptor("map", STRING, LONG, has_ttl=True),
    ]
    columns = (
        StateColumns("value", 3, LONG),
        StateColumns("list", 5, STRING, is_array=True),
        StateColumns("element", 4, STRING, is_element=True),
        StateColumns("map", 3, LONG, 4, STRING),
    )
    writer = SavepointWriter(tmp_path / "s")
    operator = writer.add_operator("by-key", STRING, states, 128, 1, allow_any_last_access=allow)
    encode = WideRows("by-key", operator.task(0), STRING, True, columns)
    start = -5 if allow else 1_700_000_000_000
    batch = batch_of(
        *(STRING, TEXTS, 128, pa.array(range(len(TEXTS))), pa.array(TEXTS)),
        pa.array([[text, "b"] for text in TEXTS]),
        last_access=pa.array(range(start, start + len(TEXTS))),
    )
    by_columns, by_rows = both(monkeypatch, encode, batch)
    assert by_columns == by_rows
    assert len(by_columns) == 4 * len(TEXTS)


@pytest.mark.parametrize("has_ttl", [False, True], ids=["plain", "TTL"])
@pytest.mark.parametrize(
    ("key_type", "keys"),
    [(STRING, [*"abcdef"]), (TUPLE(STRING, LONG), [*zip([None, *"bcdef"], range(6))])],
    ids=repr,
)
def test_maps_make_the_entries_of_their_pairs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    key_type: KeyType,
    keys: list[Any],
    has_ttl: bool,
) -> None:
    """As rows of a pair each; empty maps and nulls have none, whatever is behind a null."""
    monkeypatch.setattr(column_encoder, "_PAIRS", 3)
    pairs: list[Any] = [
        [("x", "1"), ("y", None)],
        [],
        [(text, "2") for text in TEXTS],
        [("z", "5")],
    ]
    pairs = [[("before", "9")], *pairs, [("hidden", "9")]]
    times = [1_700_000_000_000 + n for n in range(6)]
    offsets = [0]
    for of_key in pairs:
        offsets.append(offsets[-1] + len(of_key))
    user_keys, values = zip(*(pair for of_key in pairs for pair in of_key))
    maps = pa.MapArray.from_arrays(offsets, pa.array(user_keys), pa.array(values))
    fields = [pa.field("key", pa.string(), nullable=False), pa.field("value", pa.string())]
    children = pa.StructArray.from_arrays([maps.keys, maps.items], fields=fields)
    buffers = [pa.py_buffer(bytes([0b011111])), maps.buffers()[1]]
    maps = pa.Array.from_buffers(maps.type, 6, buffers, children=[children])
    assert maps.to_pylist()[4:] == [[("z", "5")], None]
    states: list[NewState] = [MapStateDescriptor("map", STRING, STRING, has_ttl=has_ttl)]
    task = operator_of(tmp_path, key_type, states).task(0)

    def encode(columns: StateColumns, rows: Sequence[int], *arrays: Any) -> Any:
        batch = batch_of(
            *(key_type, [keys[row] for row in rows], 128, *arrays),
            last_access=pa.array([times[row] for row in rows]),
        )
        encoder = WideRows("by-key", task, key_type, has_ttl, (columns,))
        return both(monkeypatch, encoder, batch, is_column_wise=not has_ttl)  # for a null

    of_maps = StateColumns("map", 3, STRING, None, STRING, is_map=True)
    ours, by_rows = encode(of_maps, range(1, 6), maps.slice(1))
    rows = [row for row in range(1, 5) for _ in pairs[row]]
    used = pa.array(range(1, len(user_keys) - 1))
    of_pairs = StateColumns("map", 3, STRING, 4, STRING)
    expected, _ = encode(of_pairs, rows, maps.items.take(used), maps.keys.take(used))
    assert ours == by_rows == expected
    assert len(ours) == len(TEXTS) + 3


def refused_batches() -> dict[str, tuple[bool, Any]]:
    """Return batches with something to refuse, and whether they have times."""
    keys, last = ["a", "b"], pa.array([1_700_000_000_000] * 2)
    text = pa.array(["x", "y"])
    numbers = pa.array([1, 2])

    def batch(**changed: Any) -> Any:
        item = {"keys": keys, "value": text, "user_key": numbers, "listed": pa.array([["x"]] * 2)}
        item |= changed
        last_access = item.pop("last_access", last)
        keys_of = item.pop("keys")
        return batch_of(STRING, keys_of, 128, *item.values(), last_access=last_access)

    other = batch()
    return {
        "null key": (False, batch(keys=["a", None])),
        "key of another key group": (
            False,
            other.set_column(0, "c0", pa.array([other.column(0)[0].as_py(), 5], pa.int32())),
        ),
        "no UTF-8 in a key": (
            False,
            other.set_column(1, "c1", pa.array([b"x", b"\xff"]).view(pa.string())),
        ),
        "no UTF-8": (False, batch(value=pa.array([b"x", b"\xff"]).view(pa.string()))),
        "no UTF-8 in a user key": (False, batch(value=pa.array([b"\xff"] * 2).view(pa.string()))),
        "null user key": (False, batch(user_key=pa.array([1, None]))),
        "null element": (False, batch(listed=pa.array([["x", None], ["y"]]))),
        "no last access": (True, batch(last_access=pa.array([1_700_000_000_000, None]))),
        "seconds": (True, batch(last_access=pa.array([1_700_000_000_000, 1_700_000_000]))),
        "microseconds": (True, batch(last_access=pa.array([1_700_000_000_000, 2**60]))),
        "null value in a map": (True, batch(value=pa.array(["x", None]))),
    }


IN_TIME = "last_access must be epoch milliseconds, from 1000000000000, in 2001, to 1800086400000,"
WORDS = {
    "null key": "key of operator 'by-key' must not be null, which Flink refuses: "
    "pass nulls='drop' to leave out the rows with one",
    "key of another key group": "key of operator 'by-key' must be the same each time, got key "
    "group 5 and then 'b' of key group 22: save the DataFrame first",
    "no UTF-8": "value of state 'map' must be UTF-8, got b'\\xff'",
    "null user key": "user key of state 'map' is null for key 'b', and its value is 'y'",
    "null element": "state 'list', key 'a': value of LIST state 'list' must not be None: Flink "
    "keeps no null there",
    "no last access": "state 'map', key 'b': last_access must be epoch milliseconds, as the MAP "
    "state 'map' has a time to live, got None",
    "seconds": f"state 'map', key 'b': {IN_TIME} tomorrow, got 1700000000: pass "
    "allow_any_last_access=True if that is meant",
    "microseconds": f"state 'map', key 'b': {IN_TIME} tomorrow, got {2**60}: pass "
    "allow_any_last_access=True if that is meant",
}


@pytest.mark.parametrize("case", refused_batches())
def test_rows_that_are_refused_are_refused_in_the_same_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    has_ttl, batch = refused_batches()[case]
    states: list[NewState] = [
        MapStateDescriptor("map", LONG, STRING, has_ttl=has_ttl),
        ListStateDescriptor("list", STRING, has_ttl=has_ttl),
    ]
    columns = (
        StateColumns("map", 3, STRING, 4, LONG),
        StateColumns("list", 5, STRING, is_array=True),
    )
    operator = operator_of(tmp_path, STRING, states)
    encode = WideRows("by-key", operator.task(0), STRING, has_ttl, columns)
    with monkeypatch.context() as patch:
        patch.setattr("time.time", lambda: 1_800_000_000.0)
        by_columns = outcome(encode, batch)
        patch.setattr(column_encoder, "column_writer", lambda _: None)
        patch.setattr(column_encoder, "key_writer", lambda _: None)
        by_rows = outcome(encode, batch)
    if case == "key of another key group":  # nobody looks for it row by row
        assert by_columns[1].startswith("key of operator 'by-key' must be the same each time")
    else:
        assert by_columns == by_rows
        assert by_columns[0] is InvalidValueError or "null value in a map" in case
    if case in WORDS:
        assert by_columns[1] == WORDS[case]


# --- files ------------------------------------------------------------------------------


def batches_of(entries: Sequence[EncodedEntry], sizes: Iterable[int]) -> Iterator[Any]:
    rest = iter(entries)
    for size in [*sizes, len(entries)]:
        if batch := list(islice(rest, size)):
            yield entry_batch(batch)


def written(
    folder: Path, write: Callable[[OperatorWriter], Any], groups: int = 128
) -> tuple[Any, ...]:
    """Return key groups, offsets, bytes and counts of the file that a function writes."""
    states: list[NewState] = [ValueStateDescriptor("n", LONG)]
    states += [ListStateDescriptor(name, LONG) for name in ("a", "b")]
    folder.mkdir()
    with SavepointWriter(folder / "s") as writer:
        operator = writer.add_operator("by-key", STRING, states, groups, 1)
        file = write(operator)
        operator.add(file)
    handle = file.handle
    data = (folder / "s" / handle.stream.path).read_bytes()
    return handle.key_groups, handle.offsets, data, dict(file.entries), dict(file.bytes)


def by_file_writer(
    entries: Sequence[EncodedEntry], sizes: Iterable[int], elements_of: frozenset[int]
) -> Callable[[OperatorWriter], Any]:
    def write(operator: OperatorWriter) -> Any:
        empty = entry_batch([])
        batches = [empty, *batches_of(entries, sizes)]
        return FileWriter((operator.task(0),), elements_of).write(batches)

    return write


def random_entries(rng: random.Random, groups: int) -> list[EncodedEntry]:
    """Return sorted entries: of the LIST states 1 and 2, some keys have several."""
    entries = []
    for _ in range(rng.randrange(1, 60)):
        key = bytes(rng.choices(b"\0\1ab\xff", k=rng.randrange(1, 4)))
        key_group, state = rng.choice([0, groups // 2, groups - 1]), rng.randrange(3)
        for _ in range(rng.choice([1, 1, 2, 40]) if state else 1):
            entries.append(EncodedEntry(key_group, state, key, rng.randbytes(rng.randrange(9))))
    unique = {entry[:3]: entry for entry in entries if not entry.state}
    return sorted([*unique.values(), *(entry for entry in entries if entry.state)])


@pytest.mark.parametrize("seed", first_by_default(4, range(100)))
def test_batches_of_entries_make_the_same_file(tmp_path: Path, seed: int) -> None:
    """However they are cut: keys and lists go on over the ends of batches."""
    rng = random.Random(seed)
    groups = (128, 129, 2, 32768)[seed % 4]
    entries, elements_of = random_entries(rng, groups), frozenset({1, 2})
    sizes: list[int] = []
    while sum(sizes) < len(entries):
        sizes.append(rng.choice([1, 2, 9, 99]))
    alone = written(
        tmp_path / "alone",
        lambda operator: operator.task(0).write(joined_lists(entries, elements_of)),
        groups,
    )
    batches = by_file_writer(entries, sizes, elements_of)
    assert written(tmp_path / "batches", batches, groups) == alone


ENTRIES = [EncodedEntry(5, 0, b"\2a\0", bytes(8)), EncodedEntry(5, 0, b"\2b\0", bytes(8))]


@pytest.mark.parametrize("sizes", [[], [1, 1], [2], [3]])
def test_a_key_that_comes_twice_is_named(tmp_path: Path, sizes: list[int]) -> None:
    entries = [*ENTRIES, EncodedEntry(5, 0, b"\2b\0", b"another.")]
    with pytest.raises(InvalidValueError, match="once, got key 'b' in state 'n' twice"):
        written(tmp_path / "s", by_file_writer(entries, sizes, frozenset({1})))


@pytest.mark.parametrize("sizes", [[], [1, 1]])
@pytest.mark.parametrize(
    ("elements_of", "size", "entry"),
    [
        (set(), 4, EncodedEntry(5, 0, b"\2b\0", b"")),
        (set(), 9, EncodedEntry(5, 0, b"\2c\0", bytes(9))),
        ({1}, 9, EncodedEntry(5, 1, b"\2c\0", bytes(4))),
    ],
    ids=["key", "value", "list"],
)
def test_more_bytes_than_java_counts(
    elements_of: set[int],
    size: int,
    entry: EncodedEntry,
    sizes: list[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a key with its key group, of a value, and of a list of elements that are short."""
    entries = [EncodedEntry(5, 0, b"", b""), entry, entry][: len(elements_of) + 2]
    entries.append(entry._replace(key_group=6))
    write = by_file_writer(entries, sizes, frozenset(elements_of))
    monkeypatch.setattr("keygroups.savepoint._columns.entry_frames.INT_MAX", size)
    written(tmp_path / "fits", write)
    monkeypatch.setattr("keygroups.savepoint._columns.entry_frames.INT_MAX", size - 1)
    name = f"key {entry.key[1:2].decode()!r} in state {'na'[entry.state]!r}"
    with pytest.raises(InvalidValueError, match=f"bytes each, .*, got {size} in {name}$"):
        written(tmp_path / "s", write)


@pytest.mark.parametrize("size", [1 << 16, (1 << 16) + 1])
def test_long_values_of_one_size(size: int, tmp_path: Path) -> None:
    """NumPy has no records of more than 2 GiB: long values are joined as bytes of any size are."""
    entries = [EncodedEntry(5, 0, bytes([2, 97 + n, 0]), bytes([n]) * size) for n in range(3)]
    alone = written(tmp_path / "alone", lambda operator: operator.task(0).write(entries))
    assert written(tmp_path / "s", by_file_writer(entries, [], frozenset())) == alone
    writer = column_writer(BYTES)
    assert writer is not None
    array = writer.write(pa.array([entry.value for entry in entries]))
    assert [*map(len, array.to_pylist())] == [size + 4] * 3


def test_the_same_key_in_another_state_or_key_group_is_another(tmp_path: Path) -> None:
    entries = [
        EncodedEntry(key_group, state, b"\2a\0", bytes(8))
        for key_group in (5, 6)
        for state in range(3)
    ]
    alone = written(tmp_path / "alone", lambda operator: operator.task(0).write(entries))
    for sizes in ([], [1] * 6, [2, 2]):
        path = tmp_path / f"{len(sizes)}"
        assert written(path, by_file_writer(entries, sizes, frozenset({1}))) == alone


def test_no_entries_have_no_file(tmp_path: Path) -> None:
    with SavepointWriter(tmp_path / "s") as writer:
        operator = writer.add_operator("by-key", STRING, [ValueStateDescriptor("n", LONG)], 128, 1)
        assert FileWriter((operator.task(0),), frozenset()).write([entry_batch([])]) is None


def test_entries_out_of_order_are_refused(tmp_path: Path) -> None:
    entries = [ENTRIES[0]._replace(key_group=9), ENTRIES[1]]
    with pytest.raises(InvalidValueError, match="come in order, got 5 after 9"):
        written(tmp_path / "s", by_file_writer(entries, [], frozenset()))


# --- rows as read_keyed_state gives them --------------------------------------------------


def rows_of_state(state: StateDescriptor, **arrays: Any) -> tuple[LongRows, Any]:
    """Return an encoder of a state's rows, and a batch of them."""
    names = pa.array([state.name] * len(arrays["key"]))
    places = {
        name: ColumnPlace(n, None) for n, name in enumerate(arrays, 1) if name != "last_access"
    }
    encode = LongRows((state,), 129, False, ("state", *arrays), {state.name: places})
    return encode, pa.RecordBatch.from_arrays([names, *arrays.values()], ["state", *arrays])


@pytest.mark.parametrize(
    "value_type",
    first_by_default(2, [kind for kind in VALUES if not re.search("ROW|BIG_DEC", str(kind))]),
    ids=str,
)
def test_rows_that_were_read_make_the_same_entries(
    monkeypatch: pytest.MonkeyPatch, value_type: Type
) -> None:
    """Of each type as a key, a value, an element and a user key."""
    serializer = value_type if isinstance(value_type, Serializer) else serializer_of(value_type)
    values, key = pa.array(VALUES[value_type], arrow_type(value_type)), serializer
    keys = values
    if serializer.key_type is None:
        key, keys = serializer_of(LONG), pa.array(range(len(values)))
    lists = pa.array(
        [[value] * 2 for value in VALUES[value_type]], pa.list_(arrow_type(value_type))
    )
    times = pa.array([1_700_000_000_000] * len(values))
    for kind, has_ttl, arrays in (
        ("VALUE", False, {"value": values}),
        ("REDUCING", True, {"value": values, "last_access": times}),
        ("LIST", False, {"value": lists}),
        ("MAP", True, {"user_key": values, "value": values, "last_access": times}),
    ):
        user_key = serializer if kind == "MAP" else None
        state = StateDescriptor("s", kind, key, VOID_NAMESPACE, serializer, user_key, has_ttl)
        encode, batch = rows_of_state(state, key=keys, **arrays)
        with monkeypatch.context() as patch:
            patch.setattr(row_encoder, "entry_batch", None)  # Nobody may call it.
            by_columns = outcome(encode, batch)
        with monkeypatch.context() as patch:
            patch.setattr(column_encoder, "column_writer", lambda _: None)
            patch.setattr(column_encoder, "key_writer", lambda _: None)
            by_rows = outcome(encode, batch)
        assert by_columns == by_rows
        assert len(by_columns) == len(values)


def test_keys_that_arrays_do_not_hash() -> None:
    """Maps are written by columns, and each is hashed by itself."""
    longs, key = serializer_of(LONG), serializer_of(MAP(STRING, LONG))
    keys: list[dict[str, int | None]] = [{"x": 1}, {}, {"y": 2, "z": None}]
    column = pa.array([[*one.items()] for one in keys], pa.map_(pa.string(), pa.int64()))
    state = StateDescriptor("s", "VALUE", key, VOID_NAMESPACE, longs)
    encode, batch = rows_of_state(state, key=column, value=pa.array([1, 2, 3]))
    assert key.write is not None
    assert outcome(encode, batch) == [
        EncodedEntry(
            assign_to_key_group(one, 129, MAP(STRING, LONG)),
            0,
            key.write(one) + b"\0",  # and the namespace
            number.to_bytes(8, "big"),
        )
        for number, one in enumerate(keys, 1)
    ]


@pytest.mark.parametrize(
    ("kind", "arrays", "message"),
    [
        ("VALUE", {"value": [1, None]}, "'b': value of VALUE state 's' must not be None"),
        ("LIST", {"value": [[1], []]}, "'b': value of LIST state 's' must have elements"),
        ("MAP", {"user_key": [1, None], "value": [1, None]}, "'b': .* must not be None"),
    ],
)
def test_a_row_that_was_read_and_is_no_entry_is_refused(
    kind: str, arrays: dict[str, Any], message: str
) -> None:
    """Where the rows of a DataFrame of the user's may be without one."""
    longs = serializer_of(LONG)
    user_key = longs if kind == "MAP" else None
    key = serializer_of(STRING)
    state = StateDescriptor("s", kind, key, VOID_NAMESPACE, longs, user_key)
    item = pa.list_(pa.int64()) if kind == "LIST" else pa.int64()
    encode, batch = rows_of_state(
        state, key=pa.array(["a", "b"]), **{name: pa.array(v, item) for name, v in arrays.items()}
    )
    with pytest.raises(InvalidValueError, match=message):
        list(encode([batch]))


def test_the_column_that_state_is_written_from() -> None:
    for column_type in (LONG, serializer_of(LONG)):
        assert column_to_write(column_type).data_type == pa.int64()
    with pytest.raises(UnsupportedKeyTypeError, match=r"no column here holds .* KRYO\(a.B\)"):
        column_to_write(KryoSerializer("a.B"))


def test_entries_of_windows_are_left_to_single_rows() -> None:
    """Of a state without windows the namespace is one byte, which would be wrong here."""
    key, longs = serializer_of(STRING), serializer_of(LONG)
    keys = column_encoder.KeyColumnEncoder(key, key, 128).keys(pa.array(["a"]))
    rows = column_encoder.StateRows(pa.array([7]))
    for namespace in (VOID_NAMESPACE, TIME_WINDOW):
        state = StateDescriptor("s", "VALUE", key, namespace, longs)
        encoder = column_encoder.table_encoder(0, state, False)
        assert encoder is not None
        if namespace is VOID_NAMESPACE:
            assert len(encoder.entries(keys, rows)) == 1
        else:
            with pytest.raises(UnwrittenError):
                encoder.entries(keys, rows)


@pytest.mark.parametrize("texts", [[b"\0"], [b"\0", b"\0"], [b"\1", b"\2a"], [b"\2a", b"\0"]])
def test_other_times_of_values_in_a_map(texts: list[bytes]) -> None:
    """A text of one byte may be the null behind a time, whose mark changes with the time."""
    text, five = serializer_of(STRING), struct.pack(">q", 5)
    state = StateDescriptor("s", "MAP", text, VOID_NAMESPACE, text, text, has_ttl=True)
    stored = stored_value(state)
    values = [b"\0" + five + written for written in texts]
    column = pa.array(values, pa.large_binary())
    with_times = column_encoder.retimed(stored, column, np.full(len(values), 9))
    assert with_times.to_pylist() == [stored.retimed(9)(value) for value in values]
    with pytest.raises(UnwrittenError):
        column_encoder.retimed(stored, column, None)
    long = [b"\0" + five + b"\2a", b"\0" + five + b"\3ab"]
    without = column_encoder.retimed(stored, pa.array(long, pa.large_binary()), None)
    assert without.to_pylist() == [stored.retimed(None)(value) for value in long]
