"""Rows of `read_keyed_state` that become the keyed state of a savepoint again.

What real Flink wrote comes back byte for byte; what rows change is told by the entries as
`keygroups.savepoint` reads them, changed in plain Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from support.bytes import savepoint_bytes as sb
from support.bytes.framed_entries import framed_entries
from support.bytes.real_savepoints import Point, point
from support.selections import first_by_default

from keygroups import assign_to_key_group
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    SavepointError,
    UnsupportedKeyTypeError,
)
from keygroups.savepoint import Operator, Savepoint, StateDescriptor, read_savepoint
from keygroups.spark import read_keyed_state, write_keyed_state, write_savepoint
from keygroups.spark._savepoint.rows.entry_rows import (
    entry_rows,
)

pa: Any = pytest.importorskip("pyarrow")

from support.inside.columns import long_columns  # noqa: E402

HEAP = point("2.3.0-heap-canonical")


def framed(operator: Operator, states: Iterable[str] | None = None) -> Counter[tuple[Any, ...]]:
    """Return the bytes of all entries of some states."""
    names = None if states is None else frozenset(states)
    return Counter(
        (entry.state, entry.key_group, entry.encoded_key, entry.encoded_value)
        for task in operator.tasks()
        for entry in framed_entries(replace(task, states=names))
    )


def others(savepoint: Savepoint, operator: Operator) -> list[Any]:
    """Return the metadata of all other operators."""
    return [
        metadata
        for metadata in savepoint.metadata.operators
        if metadata.operator_id != operator.operator_id
    ]


def states_of(operator: Operator, name: str) -> list[StateDescriptor]:
    return [state for state in operator.states if state.name == name]


def rows_of(spark: SparkSession, saved: Point, uid: str, state: str | None = None) -> DataFrame:
    return read_keyed_state(spark, saved.path, uid, state, moved=saved.moved)


# --- unchanged ----------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "uid"),
    first_by_default(
        1,
        [
            # All kinds of state, times to live, timers; windows that merge, with theirs.
            ("2.3.0-heap-canonical", "by-string"),
            ("2.3.0-heap-canonical", "session"),
            ("2.3.0-heap-canonical", "by-tuple"),
            ("2.3.0-heap-canonical", "sliding-list"),
            ("2.3.0-rocksinc-checkpoint", "by-string"),
            ("2.3.0-changelog-checkpoint", "by-string"),
            ("1.20.5-heap-native", "by-string"),
            ("1.17.2-rocks-canonical", "by-int"),
            ("2.3.0-extraheap-canonical", "string-namespace"),
            ("2.3.0-extraheap-canonical", "count-window"),
            ("2.3.0-rowkey-canonical", "by-row"),
        ],
    ),
)
def test_rows_as_they_were_read_are_the_entries_that_were_there(
    spark: SparkSession, tmp_path: Path, name: str, uid: str
) -> None:
    saved = point(name)
    old = saved.read()
    df = rows_of(spark, saved, uid).orderBy("bytes")
    new = write_keyed_state(df, tmp_path / "new", from_savepoint=old, operator=uid)
    before, after = old.operator(uid), new.operator(uid)
    assert framed(after) == framed(before)
    assert {*after.states} == {*before.states}
    assert after.max_parallelism == before.max_parallelism
    assert after.parallelism == before.parallelism
    assert [*after.operator_state()] == [*before.operator_state()]
    if old.kind == "canonical savepoint":
        assert others(new, before) == others(old, before)


# --- changed ------------------------------------------------------------------------------


@pytest.mark.long
def test_rows_are_filtered_and_changed_and_get_other_keys(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Of one state, read by itself; all others are kept."""
    old = HEAP.read()
    before = old.operator("by-string")
    df = rows_of(spark, HEAP, "by-string", "count").where("value <> 3")
    df = df.withColumn("key", F.concat("key", F.lit("!")))
    df = df.select("state", (F.col("value") + 1).alias("value"), "key")
    new = write_keyed_state(
        df, tmp_path / "new", from_savepoint=HEAP.path, operator="by-string", states=["count"]
    )
    after = new.operator("by-string")
    expected = {
        f"{entry.key}!": entry.value + 1 for entry in before.entries(["count"]) if entry.value != 3
    }
    assert {entry.key: entry.value for entry in after.entries(["count"])} == expected
    assert len(expected) > 10
    kept = [state.name for state in before.states if state.name != "count"]
    assert framed(after, kept) == framed(before, kept)
    assert after.states == before.states


def test_a_state_that_is_named_may_lose_all_entries(spark: SparkSession, tmp_path: Path) -> None:
    """As a struct of all states holds it; no row is left."""
    df = rows_of(spark, HEAP, "by-string").where("false")
    new = write_keyed_state(
        df, tmp_path / "new", from_savepoint=HEAP.path, operator="by-string", states=["byCity"]
    )
    before, after = HEAP.read().operator("by-string"), new.operator("by-string")
    assert [*after.entries(["byCity"])] == []
    kept = [state.name for state in before.states if state.name != "byCity"]
    assert framed(after, kept) == framed(before, kept)


@pytest.mark.long
def test_rows_of_some_states_for_all_of_them_are_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Else the others were lost in silence; timers of which there are none are no such."""
    df = rows_of(spark, HEAP, "by-string").where("state <> 'sum'")
    with pytest.raises(InvalidValueError, match="got none of 'sum', of which the savepoint has"):
        write_keyed_state(df, tmp_path / "new", from_savepoint=HEAP.path, operator="by-string")
    assert not list(tmp_path.iterdir())


# --- what is refused ----------------------------------------------------------------------


def of(count: int) -> Callable[[DataFrame], DataFrame]:
    return lambda df: df.limit(count)


REFUSED: dict[str, tuple[type[Exception], str, dict[str, Any]]] = {
    "no operator": (InvalidTypeError, "operator must be a str, got None", {"operator": None}),
    "no such operator": (InvalidValueError, "operator must be .* 'x'", {"operator": "x"}),
    "no keyed state": (
        InvalidValueError,
        "operator must be one with keyed state, got 'src-by-string'",
        {"operator": "src-by-string"},
    ),
    "no such state": (InvalidValueError, "states must be of by-string", {"states": ["x"]}),
    "no state": (InvalidValueError, "states must be at least one", {"states": []}),
    "states as text": (InvalidTypeError, "states must be", {"states": "count"}),
    "no df": (InvalidTypeError, "df must be a DataFrame, got None", {"df": None}),
    "no bool": (InvalidTypeError, "allow_any_last_access", {"allow_any_last_access": 1}),
    "no savepoint": (SavepointError, "/nowhere/_metadata", {"from_savepoint": "/nowhere"}),
    "within": (InvalidValueError, "path must be outside", {"path": HEAP.path / "new"}),
    "None for a savepoint": (InvalidTypeError, "path must be a str", {"from_savepoint": None}),
    "keys without a hash": (
        UnsupportedKeyTypeError,
        r"operator pojo cannot be written from rows: the hash of keys of POJO\(.*\) is not known",
        {"from_savepoint": point("2.3.0-pojo-canonical").path, "operator": "pojo"},
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_arguments_are_refused_by_name(spark: SparkSession, tmp_path: Path, case: str) -> None:
    cls, message, arguments = REFUSED[case]
    valid: dict[str, Any] = {
        "df": rows_of(spark, HEAP, "by-string"),
        "path": tmp_path / "new",
        "from_savepoint": HEAP.path,
        "operator": "by-string",
    }
    with pytest.raises(cls, match=message) as error:
        write_keyed_state(**(valid | arguments))
    assert isinstance(error.value, KeyGroupsError)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("columns", "cls", "message"),
    [
        (["state", "value"], InvalidValueError, "df must have the column key"),
        (["key", "value"], InvalidValueError, "df must have the column state"),
        (
            ["state", "key", "cast(value as int) value"],
            InvalidTypeError,
            "value must be bigint for state 'count', as read_keyed_state gives it, got int",
        ),
        (
            ["state", "key", "named_struct('count', 'x') value"],
            InvalidTypeError,
            r"value\.count must be bigint.* got string",
        ),
        (["5 state", "key", "value"], InvalidTypeError, "state must be string.* got int"),
    ],
)
def test_other_columns_are_refused_by_name(
    spark: SparkSession, columns: list[str], cls: type[Exception], message: str
) -> None:
    df = rows_of(spark, HEAP, "by-string", "count").selectExpr(*columns)
    with pytest.raises(cls, match=message):
        entry_rows(df, long_columns(states_of(HEAP.read().operator("by-string"), "count")))


def test_times_are_needed_where_a_state_has_them(spark: SparkSession) -> None:
    operator = HEAP.read().operator("by-string")
    df = rows_of(spark, HEAP, "by-string")
    for name, state in (("last_access", "label"), ("timestamp", "_timer_state/event_user-timers")):
        with pytest.raises(InvalidValueError, match=f"df must have the column {name}"):
            entry_rows(df.drop(name), long_columns(states_of(operator, state)))
    columns = long_columns(states_of(operator, "visits"))
    entry_rows(df.drop("last_access"), columns)  # elements have theirs


# --- what only the job can read -----------------------------------------------------------


@pytest.mark.long
def test_bytes_of_a_serializer_that_is_not_known_come_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A value, a list with its separators, a map with a null, a time to live."""
    money = sb.snapshot("a.MoneySnapshot", 1, sb.utf("EUR"))
    kryo = sb.kryo_of("a.B")
    states = [
        sb.state("paid", "VALUE", money),
        sb.state("all", "LIST", sb.list_of(kryo)),
        sb.state("seen", "VALUE", sb.ttl_of(kryo)),
        sb.state("by", "MAP", sb.map_of(sb.simple("Long"), kryo)),
        sb.state("opened", "VALUE", sb.kryo_of("java.util.List")),
    ]
    header = sb.keyed_header(sb.simple("String"), states)
    group = assign_to_key_group("a", 128)
    key = bytes([group]) + b"\2a\0"
    entries = [
        (0, [(key, b"\1\2,\3")]),
        (1, [(key, b"any,\0,any")]),
        (2, [(key, sb.i64(1_700_000_000_000) + b"\xff")]),
        (3, [(key + sb.i64(1), b"\0any"), (key + sb.i64(2), b"\1")]),
    ]
    keyed = sb.canonical(group, [len(header)], sb.inline(header + sb.canonical_key_group(entries)))
    path = sb.write(
        tmp_path / "old", [sb.operator([sb.subtask(managed_keyed=keyed)], uid="by-user")]
    )
    df = read_keyed_state(spark, path, "by-user")
    with pytest.raises(
        UnsupportedKeyTypeError,
        match=r"state 'opened' of operator by-user cannot be written from rows: values of KRYO.* "
        "are text or bytes in Spark, .*; without it in states it is kept as it is",
    ):
        write_keyed_state(df, tmp_path / "new", from_savepoint=path, operator="by-user")
    names = ["paid", "all", "seen", "by"]
    new = write_keyed_state(
        df, tmp_path / "new", from_savepoint=path, operator="by-user", states=names
    )
    before = read_savepoint(path).operator("by-user")
    assert framed(new.operator("by-user")) == framed(before)
    assert framed(before).total() == 5


# --- as it was called before --------------------------------------------------------------


@pytest.mark.long
def test_write_savepoint_takes_rows_with_a_warning(spark: SparkSession, tmp_path: Path) -> None:
    df = rows_of(spark, HEAP, "by-string", "count")
    old: Any = write_savepoint
    arguments: dict[str, Any] = {
        "from_savepoint": HEAP.path,
        "operator": "by-string",
        "states": ["count"],
    }
    with pytest.warns(DeprecationWarning, match="is write_keyed_state now") as warned:
        before = old(df, tmp_path / "before", **arguments)
    assert warned[0].filename == __file__
    now = write_keyed_state(df, tmp_path / "now", **arguments)
    assert framed(before.operator("by-string")) == framed(now.operator("by-string"))


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("operators, .* left out with .* {}", {"operators": {}}),
        ("left out with .* 128", {"max_parallelism": 128}),
        ("left out with .* got 0", {"max_parallelism": 0}),
        ("left out with .* got False", {"operators": False}),
        ("left out without .* got 0", {"from_savepoint": None, "operator": 0}),
        (
            "left out without .* got 0",
            {"from_savepoint": None, "operator": None, "allow_any_last_access": 0},
        ),
        ("left out with .* 'drop'", {"nulls": "drop"}),
        (
            "operator, states and allow_any_last_access must be left out without from_savep",
            {"from_savepoint": None},
        ),
    ],
)
def test_arguments_of_both_are_refused(
    spark: SparkSession, tmp_path: Path, message: str, arguments: dict[str, Any]
) -> None:
    old: Any = write_savepoint
    valid = {"from_savepoint": HEAP.path, "operator": "by-string"}
    with pytest.raises(InvalidValueError, match=message):
        old(rows_of(spark, HEAP, "by-string"), tmp_path / "new", **(valid | arguments))
    assert not list(tmp_path.iterdir())
