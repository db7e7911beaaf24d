"""State written from tables, of Arrow, pandas or Polars."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.bytes.expected_savepoints import DESCRIPTORS
from support.bytes.real_savepoints import POINTS, point
from support.inside.columns import column_types, table_columns
from support.inside.savepoints import NewState
from support.inside.serializers import KryoSerializer

from keygroups import InvalidTypeError, InvalidValueError, KeyGroupsError, UnsupportedKeyTypeError
from keygroups.savepoint import (
    ListStateDescriptor,
    MapStateDescriptor,
    OperatorWriter,
    SavepointWriter,
    StateDescriptor,
    TimestampData,
    TtlValue,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.state_keys import BYTES, VOID_NAMESPACE, serializer_of
from keygroups.types import INSTANT, INT, LIST, LONG, MAP, SQL_ROW, STRING, TUPLE

pa = pytest.importorskip("pyarrow")

STATES = [
    ValueStateDescriptor("count", INT),
    ListStateDescriptor("tags", STRING),
    MapStateDescriptor("cities", STRING, LONG, has_ttl=True),
    ListStateDescriptor("seen", INSTANT, has_ttl=True),
    ValueStateDescriptor("pair", TUPLE(STRING, LONG)),
]
TIME = 1_700_000_000_000


def contents(folder: Path) -> list[bytes]:
    """Return the files of keyed state, without their names."""
    return sorted(path.read_bytes() for path in folder.iterdir() if path.name != "_metadata")


def write(folder: Path, fill: Callable[[OperatorWriter], object]) -> list[bytes]:
    with SavepointWriter(folder) as writer:
        fill(writer.add_operator("by-user", STRING, STATES, 128, 3, sort=True))
    return contents(folder)


def by_rows(operator: OperatorWriter) -> None:
    for number, key in enumerate(["ann", "bob", "\u6771"]):
        operator.write("count", key, number - 1)
        operator.write("tags", key, ["x", str(number)])
        operator.write("cities", key, number, "Rome", TIME)
        operator.write("pair", key, (None, number))
    moment = dt.datetime(2024, 2, 29, tzinfo=dt.timezone.utc)
    operator.write("seen", "bob", [TtlValue(TIME, moment)])


KEYS, NUMBERS = ["\u6771", "bob", "ann"], [2, 1, 0]  # in no order
TABLES = {
    "count": {"key": KEYS, "value": [1, 0, -1], "key_group": [0, 0, 0]},
    "tags": {"key": KEYS, "value": [["x", str(number)] for number in NUMBERS]},
    "cities": {"key": KEYS, "value": NUMBERS, "user_key": ["Rome"] * 3, "last_access": [TIME] * 3},
    "pair": {"key": KEYS, "value": [{"f0": None, "f1": number} for number in NUMBERS]},
}
PAIR = pa.struct([("f0", pa.string()), ("f1", pa.int64())])


def tables() -> dict[str, Any]:
    made = {name: pa.table(columns) for name, columns in TABLES.items()}
    made["pair"] = pa.table({"key": KEYS, "value": pa.array(TABLES["pair"]["value"], PAIR)})
    moment = dt.datetime(2024, 2, 29, tzinfo=dt.timezone.utc)
    kind = pa.list_(pa.struct([("last_access", pa.int64()), ("value", pa.timestamp("us", "UTC"))]))
    seen = pa.array([[{"last_access": TIME, "value": moment}]], kind)
    return made | {"seen": pa.table({"key": ["bob"], "value": seen})}


GIVEN: dict[str, Callable[[Any], Any]] = {
    "a table": lambda table: table,
    "a table of two chunks": lambda table: pa.concat_tables([table.slice(2), table.slice(0, 2)]),
    "a batch": lambda table: table.to_batches()[0],
    "a reader": lambda table: table.to_reader(),
    "large text": lambda table: table.set_column(0, "key", table["key"].cast(pa.large_string())),
    "pandas": lambda table: pytest.importorskip("pandas") and table.to_pandas(),
    "Polars": lambda table: pytest.importorskip("polars").from_arrow(table),
}


@pytest.mark.parametrize(
    "passed",
    [
        pytest.param(table, id=name, marks=[pytest.mark.extras] * (name in ("pandas", "Polars")))
        for name, table in GIVEN.items()
    ],
)
def test_tables_have_the_bytes_of_their_rows(passed: Callable[[Any], Any], tmp_path: Path) -> None:
    def by_table(operator: OperatorWriter) -> None:
        for name, table in tables().items():
            operator.write_table(name, passed(table))

    assert write(tmp_path / "rows", by_rows) == write(tmp_path / "tables", by_table)


class FrameOfPolars:
    """What has its table as a DataFrame of Polars has it."""

    def to_arrow(self) -> Any:
        return tables()["count"]


def test_types_of_other_widths(tmp_path: Path) -> None:
    """Of times, maps and text; what has a table; what is null alone."""
    types: list[NewState] = [
        ValueStateDescriptor("moment", INSTANT),
        ValueStateDescriptor("counts", MAP(STRING, LONG)),
        MapStateDescriptor("names", STRING, STRING),
        ValueStateDescriptor("count", INT),
    ]
    moment = dt.datetime(2024, 2, 29, tzinfo=dt.timezone.utc)
    counts = pa.array([[("x", 1)]], pa.map_(pa.large_string(), pa.int8()))
    times = pa.array([moment], pa.timestamp("ns", "Europe/Berlin"))
    names = {"key": ["ann"], "user_key": ["x"], "value": [None]}
    with SavepointWriter(tmp_path / "new") as writer:
        operator = writer.add_operator("by-user", STRING, types, 128, 3, sort=True)
        operator.write_table("moment", pa.table({"key": ["ann"], "value": times}))
        operator.write_table("counts", pa.table({"key": ["ann"], "value": counts}))
        operator.write_table("names", pa.table(names))
        operator.write_table("count", FrameOfPolars())
    read = read_savepoint(tmp_path / "new").operator("by-user")
    values = {entry.state: entry.value for entry in read.entries() if entry.key == "ann"}
    assert values == {"moment": moment, "counts": {"x": 1}, "names": None, "count": -1}


def test_text_that_is_not_what_is_written() -> None:
    """As Kryo's, which a column has as Python prints it."""
    value = KryoSerializer("java.util.List")
    state = StateDescriptor("k", "VALUE", serializer_of(STRING), VOID_NAMESPACE, value)
    with pytest.raises(UnsupportedKeyTypeError, match="value of state 'k' cannot be written from"):
        table_columns(pa.table({"key": ["a"], "value": ["[]"]}), state)


def new_state(state: StateDescriptor) -> NewState | None:
    """Return the descriptor of a state that is written from a table, None for others."""
    is_void = state.namespace_serializer == VOID_NAMESPACE
    # A MAP of nulls for Longs is of RocksDB alone.
    if state.kind not in DESCRIPTORS or not is_void or state.name == "nulls":
        return None
    types = [one for one in (state.user_key_serializer, state.value_serializer) if one is not None]
    if not all(map(column_types.is_written, (state.key_serializer, *types))):
        return None
    try:
        return DESCRIPTORS[state.kind](state.name, *types, has_ttl=state.has_ttl)
    except UnsupportedKeyTypeError:
        return None


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            one.name, marks=[] if one.name == "2.3.0-rowkey-canonical" else pytest.mark.slow
        )
        for one in POINTS
        if one.kind == "canonical" and one.flink == "2.3.0" and "pojo" not in one.name
    ],
)
def test_what_is_read_as_a_table_is_written_from_it(name: str, tmp_path: Path) -> None:
    """With the bytes of the entries that are read one by one."""
    count = 0
    for number, operator in enumerate(point(name).read().operators):
        states = [new for state in operator.states if (new := new_state(state)) is not None]
        key = operator.states[0].key_serializer if states else None
        if key is None or key.key_type is None or not column_types.is_written(key):
            continue
        folders = [tmp_path / f"{number}-{how}" for how in ("rows", "tables")]
        groups, subtasks = operator.max_parallelism, operator.parallelism
        for folder in folders:
            with SavepointWriter(folder) as writer:
                written = writer.add_operator("uid", key, states, groups, subtasks, sort=True)
                for state in states:
                    if folder == folders[1]:
                        written.write_table(state.name, operator.to_arrow(state.name))
                        continue
                    for entry in operator.entries([state.name]):
                        written.write(
                            state.name, *entry[4:5], entry.value, entry.user_key, entry.last_access
                        )
                        count += 1
        assert contents(folders[0]) == contents(folders[1])
    assert count


class FrameWithObjects:
    """What exports objects as their addresses, as a DataFrame of Polars does."""

    __module__ = "polars.dataframe.frame"

    def to_arrow(self) -> Any:
        return pa.table({"key": ["a"], "value": pa.array([b"12345678"], pa.binary(8))})


class FrameOfSeveralClasses:
    """What fails to become Arrow's, as a DataFrame of pandas with 1 and "a" in a column."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        pa.array(["a", 1])
        raise AssertionError


def test_addresses_of_objects_are_no_values(tmp_path: Path) -> None:
    with SavepointWriter(tmp_path / "a") as writer:
        operator = writer.add_operator("op", STRING, [ValueStateDescriptor("v", BYTES)], 128, 2)
        operator.write("v", "a", b"x")
        with pytest.raises(InvalidTypeError, match=r"Polars' Object, .*, got \['value'\]"):
            operator.write_table("v", FrameWithObjects())
        operator.write_table("v", pa.table(FrameWithObjects().to_arrow()).slice(1))


def test_what_does_not_become_arrow_s(tmp_path: Path) -> None:
    with SavepointWriter(tmp_path / "a") as writer:
        operator = writer.add_operator("op", STRING, [ValueStateDescriptor("v", INT)], 128, 2)
        operator.write("v", "a", 1)
        with pytest.raises(
            InvalidTypeError,
            match=r"table must be a table that Arrow takes, got a FrameOfSeveralClasses: .*'int'",
        ):
            operator.write_table("v", FrameOfSeveralClasses())


@pytest.mark.extras
def test_objects_of_polars_and_pandas(tmp_path: Path) -> None:
    """The frames themselves, whose part the classes above play."""
    pl, pd = pytest.importorskip("polars"), pytest.importorskip("pandas")
    objects = pl.DataFrame({"key": ["a"], "value": pl.Series([b"x"], dtype=pl.Object)})
    several = pd.DataFrame({"key": ["a", "b"], "value": ["a", 1]})
    with SavepointWriter(tmp_path / "a") as writer:
        operator = writer.add_operator("op", STRING, [ValueStateDescriptor("v", BYTES)], 128, 2)
        operator.write("v", "a", b"x")
        for table, says in ((objects, "Polars' Object"), (several, "got a DataFrame: ")):
            with pytest.raises(InvalidTypeError, match=says):
                operator.write_table("v", table)


REVERSED = pa.struct([("f1", pa.int64()), ("f0", pa.string())])  # some PyArrows sort by name
REFUSED: dict[str, tuple[type[KeyGroupsError], str, str, Any]] = {
    "no table": (InvalidTypeError, "table must be a table of Arrow, pandas", "count", [1]),
    "a column of none": (
        InvalidValueError,
        r"table must have the column value once for state 'count', got \['key'",
        "count",
        pa.table({"key": ["a"], "n": [1]}),
    ),
    "a column twice": (
        InvalidValueError,
        "table must have the column key once",
        "count",
        pa.table([["a"], ["b"], [1]], ["key", "key", "value"]),
    ),
    "no last access": (
        InvalidValueError,
        "table must have the column last_access once for state 'cities'",
        "cities",
        pa.table({"key": ["a"], "user_key": ["x"], "value": [1]}),
    ),
    "a float for an int": (
        InvalidTypeError,
        "value of state 'count' must be int32, got double",
        "count",
        pa.table({"key": ["a"], "value": [1.0]}),
    ),
    "text for an int": (
        InvalidTypeError,
        "value of state 'count' must be int32, got string",
        "count",
        pa.table({"key": ["a"], "value": ["1"]}),
    ),
    "fields of other names": (
        InvalidTypeError,
        "value of state 'pair' must be struct<f0: string, f1: int64>, got struct<a: string",
        "pair",
        pa.table({"key": ["a"], "value": [{"a": "x", "b": 1}]}),
    ),
    "elements of another type": (
        InvalidTypeError,
        "value of state 'tags' must be list<.*string>, got list<.*int64>",
        "tags",
        pa.table({"key": ["a"], "value": [[1]]}),
    ),
    "times of no zone": (
        InvalidTypeError,
        r"value of state 'seen' must be list<.*tz=UTC.*, got list<.*timestamp\[us\]>",
        "seen",
        pa.table(
            {
                "key": ["a"],
                "value": pa.array(
                    [[{"last_access": 1, "value": dt.datetime(2024, 2, 29)}]],
                    pa.list_(
                        pa.struct([("last_access", pa.int64()), ("value", pa.timestamp("us"))])
                    ),
                ),
            }
        ),
    ),
    "a field of another type": (
        InvalidTypeError,
        r"got struct<.*>: value\.f1 must be int64, got string$",
        "pair",
        pa.table({"key": ["a"], "value": [{"f0": "x", "f1": "1"}]}),
    ),
    "a field that is missing": (
        InvalidTypeError,
        r"got struct<f0: string>: value\.f1 is not there$",
        "pair",
        pa.table({"key": ["a"], "value": [{"f0": "x"}]}),
    ),
    "a field too many": (
        InvalidTypeError,
        r"got struct<.*>: value\.f2 must not be there$",
        "pair",
        pa.table({"key": ["a"], "value": [{"f0": "x", "f1": 1, "f2": 1}]}),
    ),
    "fields in another order": (
        InvalidTypeError,
        "got struct<.*>: its fields must be in this order$",
        "pair",
        pa.table({"key": ["a"], "value": pa.array([{"f1": 1, "f0": "x"}], REVERSED)}),
    ),
    "a field of elements of another zone": (
        InvalidTypeError,
        r"value\.element\.value must be timestamp\[us, tz=UTC\], got timestamp\[us\]$",
        "seen",
        pa.table(
            {
                "key": ["a"],
                "value": pa.array(
                    [[{"last_access": 1, "value": dt.datetime(2024, 2, 29)}]],
                    pa.large_list(
                        pa.struct([("last_access", pa.int64()), ("value", pa.timestamp("us"))])
                    ),
                ),
            }
        ),
    ),
    "a number that is too large": (
        InvalidValueError,
        "value of state 'count' must be int32, got another: .*2147483648",
        "count",
        pa.table({"key": ["a"], "value": [2**31]}),
    ),
    "a null key": (
        InvalidValueError,
        "key must not be null",
        "count",
        pa.table({"key": pa.array([None], pa.string()), "value": [1]}),
    ),
    "a null value": (
        InvalidValueError,
        "value of VALUE state 'count' must not be None",
        "count",
        pa.table({"key": ["a"], "value": pa.array([None], pa.int64())}),
    ),
    "an empty list": (
        InvalidValueError,
        "must have elements",
        "tags",
        pa.table({"key": ["a"], "value": pa.array([[]], pa.list_(pa.string()))}),
    ),
    "a key twice": (
        InvalidValueError,
        "each key must come once, got key 'a' in state 'count' twice",
        "count",
        pa.table({"key": ["a", "b", "a"], "value": [1, 2, 3]}),
    ),
    "another state": (InvalidValueError, "state must be one of count, tags", "x", None),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str, tmp_path: Path) -> None:
    cls, message, state, table = REFUSED[case]
    with pytest.raises(cls, match=message):
        write(tmp_path / "new", lambda operator: operator.write_table(state, table))
    assert not [*tmp_path.iterdir()]


OF_KINDS: dict[str, tuple[Any, Any]] = {
    "int": (INT, pa.array([1], pa.int32())),
    "text": (STRING, pa.array(["a"])),
    "list": (LIST(STRING), pa.array([["a"]])),
    "map": (MAP(STRING, LONG), pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))),
    "struct": (TUPLE(STRING, LONG), pa.array([{"f0": "a", "f1": 1}])),
    "moment": (INSTANT, pa.array([TIME * 1_000], pa.timestamp("us", "UTC"))),
}
"""A type of values of each kind that a column may have, and a column of it."""


@pytest.mark.parametrize("other", OF_KINDS)
@pytest.mark.parametrize("kind", OF_KINDS)
def test_a_column_of_another_kind(kind: str, other: str, tmp_path: Path) -> None:
    """Whichever of the two has parts, it is refused by its type."""
    value_type, array = OF_KINDS[kind][0], OF_KINDS[other][1]
    table = pa.table({"key": ["a"], "value": array})
    with SavepointWriter(tmp_path / "new") as writer:
        states = [ValueStateDescriptor("s", value_type)]
        operator = writer.add_operator("op", STRING, states, 128, 3)
        if kind == other:
            operator.write_table("s", table)
        else:
            with pytest.raises(InvalidTypeError, match="value of state 's' must be"):
                operator.write_table("s", table)
            operator.write_table("s", pa.table({"key": ["a"], "value": OF_KINDS[kind][1]}))


def test_the_part_of_a_map_that_differs_is_named(tmp_path: Path) -> None:
    values = pa.array([[("x", "1")]], pa.map_(pa.string(), pa.string()))
    table = pa.table({"key": ["a"], "value": values})
    says = r"value of state 'm' must be map<.*: value\.value must be int64, got string$"
    with SavepointWriter(tmp_path / "new") as writer:
        states = [ValueStateDescriptor("m", MAP(STRING, LONG))]
        operator = writer.add_operator("op", STRING, states, 128, 3)
        with pytest.raises(InvalidTypeError, match=says):
            operator.write_table("m", table)


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, table_columns.__module__)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with SavepointWriter(tmp_path / "new") as writer:
        counts = [ValueStateDescriptor("n", LONG)]
        operator = writer.add_operator("op", STRING, counts, 128, 3)
        with pytest.raises(ModuleNotFoundError, match=r"pip install 'keygroups\[arrays\]'"):
            operator.write_table("n", 5)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("TIMESTAMP(9)", TimestampData(-1, 999_999)),
        ("TIMESTAMP_LTZ(9)", TimestampData(2**63 - 1, 1)),
        ("TIME(3)", 86_400_000),
    ],
)
def test_keys_beyond_python_are_written_as_they_are_read(
    text: str, value: object, tmp_path: Path
) -> None:
    states = [ValueStateDescriptor("count", INT)]
    key = (value, None)
    with SavepointWriter(tmp_path / "a") as writer:
        operator = writer.add_operator("op", SQL_ROW(text, text), states, 128, 2)
        operator.write("count", key, 7)
    read = read_savepoint(tmp_path / "a").operator("op")
    assert read.get(key) == {"count": 7}
    with SavepointWriter(tmp_path / "b") as writer:
        operator = writer.add_operator("op", SQL_ROW(text, text), states, 128, 2)
        operator.write_table("count", read.to_arrow("count"))
    assert contents(tmp_path / "b") == contents(tmp_path / "a")
    assert [entry.key for entry in read.entries()] == [key]
