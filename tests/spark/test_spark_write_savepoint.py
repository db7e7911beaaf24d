"""Savepoints written from DataFrames, against the same written by the core without Spark.

The `flink` tests restore what the core writes; here the bytes have to be the same.
"""

from __future__ import annotations

import datetime as dt
import os
import pickle
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from support.bytes.column_values import VALUES
from support.bytes.serializer_cases import cases
from support.inside.adapter import is_connect, spark_type_of
from support.inside.columns import ArrowColumn, FileWriter, column_of, column_to_write, entry_batch
from support.inside.savepoints import EncodedEntry, NewState
from support.selections import first_by_default

from keygroups import (
    KeyGroupsError,
    UnsupportedKeyTypeError,
    assign_key_to_parallel_operator,
)
from keygroups.savepoint import (
    ListStateDescriptor,
    MapStateDescriptor,
    Pojo,
    ReducingStateDescriptor,
    Savepoint,
    SavepointWriter,
    Serializer,
    StateEntry,
    TtlValue,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.savepoint.values import Bitmap
from keygroups.spark import (
    KeyedState,
    ListState,
    MapState,
    ReducingState,
    ValueState,
    write_savepoint,
)
from keygroups.spark import functions as KF
from keygroups.spark import savepoint as spark_savepoint
from keygroups.spark._savepoint.entry_files import FileRunner
from keygroups.state_keys import serializer_of
from keygroups.types import (
    BIG_DEC,
    BOOLEAN,
    BYTE,
    DOUBLE,
    FLOAT,
    INSTANT,
    INT,
    LIST,
    LOCAL_DATE,
    LOCAL_DATE_TIME,
    LONG,
    ROW,
    SHORT,
    STRING,
    TUPLE,
    KeyType,
)

pa: Any = pytest.importorskip("pyarrow")

Entry = tuple[Any, ...]  # state, key, value, and if there are, user key and last access
EPOCH = dt.datetime(1970, 1, 1)
NAMES = ["", "a", "ann", "\0", "\u00e9", "\u6771\u4eac", "\U0001f600", "x" * 200, "\uffff"]


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    yield
    if before is None:
        spark.conf.unset(name)
    else:
        spark.conf.set(name, before)


def written_alone(
    path: Path,
    key_type: KeyType,
    states: Iterable[NewState],
    entries: Iterable[Entry],
    max_parallelism: int,
    parallelism: int,
) -> Savepoint:
    """Write entries of the operator `by-key` with the core alone."""
    with SavepointWriter(path) as writer:
        operator = writer.add_operator(
            *("by-key", key_type, states, max_parallelism, parallelism), allow_any_last_access=True
        )
        for entry in sorted(entries, key=lambda entry: operator.key_group(entry[1])):
            operator.write(*entry)
    return read_savepoint(path)


def files_of(savepoint: Savepoint) -> dict[tuple[str, int], tuple[Any, ...]]:
    """Return key groups, offsets and bytes of each file, by operator and subtask."""
    found = {}
    for operator in savepoint.metadata.operators:
        for subtask in operator.subtasks:
            handle: Any = subtask.managed_keyed
            data = Path(savepoint.path, handle.stream.path).read_bytes()
            found[operator.operator_id, subtask.index] = (handle.key_groups, handle.offsets, data)
    return found


def entries_of(savepoint: Savepoint, uid: str = "by-key") -> list[StateEntry]:
    return list(savepoint.operator(uid).entries())


def counts(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(list(rows), "user string, n bigint")


COUNT = KeyedState(None, "user", STRING, {"count": ValueState("n", LONG)})


# --- the bytes are those of the core -----------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    ("groups", "parallelism"),
    first_by_default(1, [(129, 3), (128, 1), (32768, 100)]),
)
def test_every_kind_of_state_is_written_as_by_the_core(
    spark: SparkSession, tmp_path: Path, ansi: None, groups: int, parallelism: int
) -> None:
    """Rows of two grains in one DataFrame: some states of a row are null, or missing."""
    users = [*NAMES, *(f"user-{number}" for number in range(200))]
    numbers = {user: None if n % 7 == 0 else n for n, user in enumerate(users)}
    tags = {user: [f"tag-{n % 3}", f"{user}!"][: n % 3] for n, user in enumerate(users)}
    rows = [(user, numbers[user], tags[user]) for user in users]
    by_user = spark.createDataFrame(rows, "user string, n bigint, tags array<string>")
    by_tag = by_user.select("user", F.explode("tags").alias("tag"))
    by_tag = by_tag.union(by_tag).withColumn("size", F.length("tag"))
    df = by_user.withColumn("x", F.col("n") / 4).unionByName(by_tag, allowMissingColumns=True)
    states = {
        "count": ValueState("n", LONG),
        "quarter": ReducingState(F.col("x"), DOUBLE),
        "tags": ListState("tags", STRING),
        "seen": ListState("tag", STRING),
        "sizes": ListState("size", INT),
    }
    ours = write_savepoint(
        df,
        tmp_path / "ours",
        {"by-key": KeyedState(None, "user", STRING, states)},
        groups,
        parallelism,
    )
    write = serializer_of(STRING).write
    assert write is not None
    entries: list[Entry] = []
    for user in users:
        if (n := numbers[user]) is not None:
            entries += [("count", user, n), ("quarter", user, n / 4)]
        if tags[user]:
            entries.append(("tags", user, tags[user]))
            seen = sorted(tags[user] * 2, key=write)
            entries += [("seen", user, seen), ("sizes", user, sorted(map(len, seen)))]
    descriptors: list[NewState] = [
        ValueStateDescriptor("count", LONG),
        ReducingStateDescriptor("quarter", DOUBLE),
        ListStateDescriptor("tags", STRING),
        ListStateDescriptor("seen", STRING),
        ListStateDescriptor("sizes", INT),
    ]
    alone = written_alone(tmp_path / "alone", STRING, descriptors, entries, groups, parallelism)
    assert files_of(ours) == files_of(alone)
    assert {(one.state, one.key, repr(one.value)) for one in entries_of(ours)} == {
        (state, key, repr(value)) for state, key, value in entries
    }
    files = [path.name for path in (tmp_path / "ours").iterdir()]
    assert len(files) == len(files_of(ours)) + 1  # and _metadata


KEYS: dict[KeyType, tuple[str, list[Any]]] = {
    BOOLEAN: ("boolean", [False, True]),
    BYTE: ("tinyint", [0, 1, -1, 127, -128]),
    SHORT: ("smallint", [0, 1, -1, 2**15 - 1, -(2**15)]),
    INT: ("int", [0, 1, -1, 2**31 - 1, -(2**31), -2089875627]),
    LONG: ("bigint", [0, 1, -1, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63)]),
    FLOAT: ("float", [0.0, -0.0, 1.5, -(2.0**127), float("inf"), float("nan"), 2.0**-149]),
    DOUBLE: ("double", [0.0, -0.0, 0.1, -1e300, float("-inf"), float("nan"), 5e-324]),
    STRING: ("string", NAMES),
    TUPLE(STRING, LONG): (
        "struct<a:string,a:bigint>",  # Spark takes one name twice
        [(None, 0), *((name, len(name)) for name in NAMES)],
    ),
    TUPLE(LONG): ("struct<f0:bigint>", [(5,)]),
    ROW(INT, STRING, DOUBLE): (
        "struct<a:int,b:string,c:double>",
        [(1, "a", 0.5), (None, "a", None), (None, None, None)],
    ),
    TUPLE(TUPLE(INT, ROW(STRING)), BOOLEAN): (
        "struct<a:struct<b:int,c:struct<d:string>>,e:boolean>",
        [((7, ("x",)), True), ((-7, (None,)), False), ((8, None), None)][:2],
    ),
    BIG_DEC: ("decimal(38,10)", [Decimal("0.0000000000"), Decimal("-12345.6789000000")]),
    LOCAL_DATE: ("date", [dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    LOCAL_DATE_TIME: ("timestamp_ntz", [dt.datetime(1, 1, 1, 0, 0, 0, 1), EPOCH]),
    INSTANT: ("timestamp", [EPOCH.replace(tzinfo=dt.timezone.utc)]),
    TUPLE(BIG_DEC, LOCAL_DATE, LOCAL_DATE_TIME, INSTANT): (
        "struct<a:decimal(5,2),b:date,c:timestamp_ntz,d:timestamp>",
        [
            (
                Decimal("-1.50"),
                dt.date(1969, 12, 31),
                dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
                dt.datetime(2024, 7, 1, 12, 0, 0, 5, tzinfo=dt.timezone.utc),
            )
        ],
    ),
}


@pytest.mark.parametrize("key_type", first_by_default(2, [*reversed(KEYS)]), ids=repr)
def test_every_key_type_is_written_as_by_the_core(
    spark: SparkSession, tmp_path: Path, key_type: KeyType
) -> None:
    """Each as a key, a value, the elements of both kinds of list, and as a user key."""
    spark_type, keys = KEYS[key_type]
    rows = [(key, key, [key, key]) for key in keys]
    df = spark.createDataFrame(rows, f"k {spark_type}, v {spark_type}, list array<{spark_type}>")
    states = {
        "value": ValueState("v", key_type),
        "list": ListState("list", key_type),
        "elements": ListState("v", key_type),
        "lists": ValueState("list", LIST(key_type)),
        "map": MapState("v", "v", key_type, key_type),
    }
    keyed = KeyedState(df, "k", key_type, states)
    ours = write_savepoint(None, tmp_path / "ours", {"by-key": keyed}, 200, 2)
    entries = [
        entry
        for key in keys
        for entry in (
            ("value", key, key),
            ("list", key, [key, key]),
            ("elements", key, [key]),
            ("lists", key, [key, key]),
            ("map", key, key, key),
        )
    ]
    descriptors: list[NewState] = [
        ValueStateDescriptor("value", key_type),
        ListStateDescriptor("list", key_type),
        ListStateDescriptor("elements", key_type),
        ValueStateDescriptor("lists", LIST(key_type)),
        MapStateDescriptor("map", key_type, key_type),
    ]
    alone = written_alone(tmp_path / "alone", key_type, descriptors, entries, 200, 2)
    assert files_of(ours) == files_of(alone)


NOT_WRITTEN = {
    # the type of the values: why no state of them is written from a column
    "COPYABLE_VALUE": "a class of the job's own",
    "EXTERNAL": "made by hand: its snapshot is written as it was read only",
    "JAVA": "it is text, as any class may be in it",
    "KRYO": "a class of the job's own",
    "NOTHING": "it has no values",
    "NULL": "all are None",
    "NULL_VALUE": "all are None",
    "POJO": "one with subclasses, which is text",
    "PYTHON_ROW": "made by hand: its snapshot is written as it was read only",
    "SORTED_MAP": "made by hand: its snapshot is written as it was read only",
    "SQL_ARRAY": "made by hand: its snapshot is written as it was read only",
    "SQL_MAP": "made by hand: its snapshot is written as it was read only",
    "SQL_ROW": "made by hand: its snapshot is written as it was read only",
    "STREAM_ELEMENT": "it is text",
    "TTL": "the type without it is given, with `ttl`",
    "TUPLE": "one with what Kryo wrote, which is text",
    "VOID": "all are None",
    "VOID_NAMESPACE": "all are None",
}


@pytest.mark.long
def test_every_type_that_is_read_is_written_as_by_the_core(
    spark: SparkSession, tmp_path: Path
) -> None:
    """From the very columns that `read_keyed_state` gives: a state of each, by its Serializer."""
    values = [
        (serializer, [value for value, _ in pairs if value is not None])
        for serializer, _, pairs in VALUES
    ]
    ours, alone, refused = written_by_both(spark, tmp_path, values)
    assert files_of(ours) == files_of(alone)
    assert len(entries_of(ours)) > 85
    assert {serializer.name for serializer in refused} == NOT_WRITTEN.keys()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(6))
def test_flinks_own_values_are_written_as_by_the_core(
    spark: SparkSession, tmp_path: Path, part: int
) -> None:
    """Those of Flink's cases of every serializer that Spark holds; maps lose their order there."""
    values = []
    for case in cases()[part::6]:
        snapshot = b"\0\0\0\2" + case.snapshot
        serializer = Serializer.from_snapshot(snapshot, kryo_version=case.kryo_version)
        if case.group != "timer" and serializer.read is not None:
            decoded = [decode(serializer, value.data) for value in case.values]
            left_out = (type(None), list) if serializer.name == "SET" else type(None)
            values.append(
                (serializer, [value for value in decoded if not isinstance(value, left_out)])
            )
    ours, alone, refused = written_by_both(spark, tmp_path, values)
    seen, expected = (
        {(entry.state, entry.key): in_any_order(entry.value) for entry in entries_of(savepoint)}
        for savepoint in (ours, alone)
    )
    assert seen == expected
    assert len(seen) > 900
    assert len(refused) < len(values) / 2


def in_any_order(value: Any) -> Any:
    """Return a value as what is equal to the same but for the order of maps and sets in it."""
    if isinstance(value, Pojo):
        return value.java_class, in_any_order(value._asdict())
    if is_dataclass(value) and not isinstance(value, (type, Bitmap)):
        return type(value), in_any_order(vars(value))
    if isinstance(value, dict):
        return sorted(repr(in_any_order(pair)) for pair in value.items())
    if isinstance(value, (set, frozenset)):
        return sorted(repr(in_any_order(element)) for element in value)
    if isinstance(value, (list, tuple)):
        kind = getattr(value, "row_kind", None)
        return type(value), kind, [in_any_order(element) for element in value]
    return repr(value)


def decode(serializer: Serializer, data: bytes) -> Any:
    try:
        return serializer.decode(data)
    except UnsupportedKeyTypeError:
        return None


def written_by_both(
    spark: SparkSession, folder: Path, item: list[tuple[Serializer, list[Any]]]
) -> tuple[Savepoint, Savepoint, list[Serializer]]:
    """Write a state of each Serializer on Spark and alone, and return the refused too.

    Values that Spark or the Serializer refuses are left out.
    """
    states: dict[str, ValueState] = {}
    descriptors: list[NewState] = []
    fields, columns, refused = [T.StructField("k", T.LongType())], [], []
    for serializer, values in item:
        name = f"v{len(states)}"
        column = column_of(serializer)
        try:
            descriptor = ValueStateDescriptor(name, serializer)
            column_to_write(serializer)
        except KeyGroupsError:
            refused.append(serializer)
            continue
        assert column is not None
        fit = [value for value in values if fits(serializer, column, value)]
        descriptors.append(descriptor)
        states[name] = ValueState(name, serializer)
        fields.append(T.StructField(name, spark_type_of(column.data_type)))
        columns.append((fit, column.convert(fit)))
    count = max(len(values) for values, _ in columns)
    rows = [
        (key, *(converted[key] if key < len(converted) else None for _, converted in columns))
        for key in range(count)
    ]
    df = spark.createDataFrame(rows, T.StructType(fields))
    keyed = KeyedState(df, "k", LONG, states)
    ours = write_savepoint(None, folder / "ours", {"by-key": keyed}, 128, 1)
    entries = [
        (name, key, value)
        for name, (values, _) in zip(states, columns)
        for key, value in enumerate(values)
    ]
    alone = written_alone(folder / "alone", LONG, descriptors, entries, 128, 1)
    return ours, alone, refused


def fits(serializer: Serializer, column: ArrowColumn, value: object) -> bool:
    try:
        serializer.encode(value)
        column.convert([value])
    except KeyGroupsError:
        return False
    return True


def test_keys_of_several_columns_are_written_as_by_the_core(
    spark: SparkSession, tmp_path: Path
) -> None:
    key_type = TUPLE(STRING, ROW(INT, LONG))
    keys = [(name, (len(name), 7)) for name in NAMES]
    rows = [(name, row[0], row[1], "x") for name, row in keys]
    df = spark.createDataFrame(rows, "name string, i int, l bigint, v string")
    key: KF.Key = ["name", ["i", F.col("l")]]
    keyed = KeyedState(None, key, key_type, {"v": ListState("v", STRING)})
    ours = write_savepoint(df, tmp_path / "ours", {"by-key": keyed}, 128, 2)
    alone = written_alone(
        tmp_path / "alone",
        key_type,
        [ListStateDescriptor("v", STRING)],
        [("v", key, ["x"]) for key in keys],
        128,
        2,
    )
    assert files_of(ours) == files_of(alone)


@pytest.mark.long
@pytest.mark.parametrize("ttl", first_by_default(1, ["moment", "millis"]))
def test_times_to_live_are_written_as_by_the_core(
    spark: SparkSession, tmp_path: Path, ttl: str
) -> None:
    rows = [
        (name, n, [name, "b"], 1_700_000_000_000 * (n % 2) - n) for n, name in enumerate(NAMES)
    ]
    df = spark.createDataFrame(rows, "k string, n bigint, tags array<string>, millis bigint")
    df = df.withColumn("moment", F.timestamp_millis("millis"))
    states = {
        "n": ValueState("n", LONG),
        "tags": ListState("tags", STRING),
        "elements": ListState("k", STRING),
        "map": MapState("n", "k", LONG, STRING),
    }
    later = df.union(
        df.withColumn("millis", F.col("millis") + 5).withColumn(
            "moment", F.timestamp_millis("millis")
        )
    )
    keyed = {
        "by-key": KeyedState(df, "k", STRING, states, ttl, allow_any_last_access=True),
        "twice": KeyedState(
            *(None, "k", STRING, {"elements": states["elements"]}, F.col(ttl)),
            allow_any_last_access=True,
        ),
    }
    ours = write_savepoint(later, tmp_path / "ours", keyed, 128, 2)
    entries = [
        entry
        for name, n, tags, millis in rows
        for entry in (
            ("n", name, n, None, millis),
            ("tags", name, tags, None, millis),
            ("elements", name, [name], None, millis),
            ("map", name, name, n, millis),
        )
    ]
    descriptors: list[NewState] = [
        ValueStateDescriptor("n", LONG, has_ttl=True),
        ListStateDescriptor("tags", STRING, has_ttl=True),
        ListStateDescriptor("elements", STRING, has_ttl=True),
        MapStateDescriptor("map", LONG, STRING, has_ttl=True),
    ]
    alone = written_alone(tmp_path / "alone", STRING, descriptors, entries, 128, 2)
    by_key = ours.operator("by-key").operator_id
    found = {key: file for key, file in files_of(ours).items() if key[0] == by_key}
    assert found == files_of(alone)
    # The last access decides which element comes first; the bytes of numbers below zero are last.
    assert {one.key: one.value for one in entries_of(ours, "twice")} == {
        name: sorted(
            [TtlValue(millis, name), TtlValue(millis + 5, name)],
            key=lambda one: one.last_access % 2**64,
        )
        for name, _, _, millis in rows
    }


def test_a_null_value_in_a_map_is_written(spark: SparkSession, tmp_path: Path) -> None:
    """Of the types that Flink writes no null of, see test_spark_write_savepoint_refused."""
    df = spark.createDataFrame(
        [("a", "x", None), ("a", None, None)], "k string, u string, v string"
    )
    keyed = KeyedState(None, "k", STRING, {"map": MapState("u", "v", STRING, STRING)})
    savepoint = write_savepoint(df, tmp_path / "s", {"by-key": keyed}, 128, 2)
    assert [(one.user_key, one.value) for one in entries_of(savepoint)] == [("x", None)]


def test_maps_are_written_as_their_pairs(spark: SparkSession, tmp_path: Path) -> None:
    """In one column, beside other states, with the same bytes as by the core; keys may come twice.

    An empty map and a null have no entry, as in Flink.
    """
    maps: list[tuple[str, dict[str | None, int | None] | None]] = [
        ("ann", {"Rome": 1, "\u00e9": 2}),
        ("bob", {}),
        ("eve", None),
        ("ann", {"Oslo": 3}),
    ]
    df = spark.createDataFrame(
        [(*row, None if n == 3 else f"{n}") for n, row in enumerate(maps)],
        "user string, cities map<string, bigint>, n string",
    ).withColumn(
        "names", F.expr("map_from_arrays(array(ifnull(n, '')), array(if(n = '0', null, user)))")
    )
    states = {
        "cities": MapState(None, "cities", STRING, LONG),
        "n": ValueState("n", STRING),
        "names": MapState(None, F.expr("if(n is null, null, names)"), STRING, STRING),
    }
    keyed = {"by-key": KeyedState(None, "user", STRING, states)}
    ours = write_savepoint(df, tmp_path / "ours", keyed, 128, 2)
    entries: list[Entry] = [
        ("cities", user, count, city)
        for user, cities in maps
        for city, count in (cities or {}).items()
    ]
    entries += [("n", user, f"{n}") for n, (user, _) in enumerate(maps[:3])]
    entries += [
        ("names", user, user if n else None, f"{n}") for n, (user, _) in enumerate(maps[:3])
    ]
    descriptors: list[NewState] = [
        MapStateDescriptor("cities", STRING, LONG),
        ValueStateDescriptor("n", STRING),
        MapStateDescriptor("names", STRING, STRING),
    ]
    alone = written_alone(tmp_path / "alone", STRING, descriptors, entries, 128, 2)
    assert files_of(ours) == files_of(alone)


@pytest.mark.long
def test_operators_have_rows_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    """Each with a DataFrame of its own, or that of the call; one has no rows at all."""
    by_city = KeyedState(
        counts(spark, ("Rome", 2)), "user", STRING, {"count": ValueState("n", LONG)}
    )
    by_nobody = KeyedState(counts(spark), "user", STRING, {"count": ValueState("n", LONG)})
    operators = {"by-user": COUNT, "by-city": by_city, "by-nobody": by_nobody}
    savepoint = write_savepoint(
        counts(spark, ("ann", 7), ("bob", None)), tmp_path / "s", operators, 128, 4
    )
    assert [one.uid for one in savepoint.operators] == [*operators]
    assert [one.operator_id for one in savepoint.operators] == [
        savepoint.operator(uid).operator_id for uid in operators
    ]
    assert [(one.key, one.value) for one in entries_of(savepoint, "by-user")] == [("ann", 7)]
    assert [(one.key, one.value) for one in entries_of(savepoint, "by-city")] == [("Rome", 2)]
    assert entries_of(savepoint, "by-nobody") == []
    assert "128" in str(savepoint)  # the job has to set it


def test_states_go_on_over_the_ends_of_batches(spark: SparkSession, tmp_path: Path) -> None:
    """Keys, key groups and the elements of a list go on over the ends of batches."""
    users = [f"user-{number % 3}" for number in range(40)]
    df = counts(spark, *((user, number) for number, user in enumerate(users)))
    keyed = {"by-key": KeyedState(None, "user", STRING, {"n": ListState("n", LONG)})}
    with setting(spark, "spark.sql.execution.arrow.maxRecordsPerBatch", "2"):
        savepoint = write_savepoint(df, tmp_path / "s", keyed, 128, 1)
    assert {one.key: one.value for one in entries_of(savepoint)} == {
        f"user-{start}": list(range(start, 40, 3)) for start in range(3)
    }


@pytest.mark.slow
@pytest.mark.parametrize("coalesce", ["true", "false"])
def test_adaptive_execution_leaves_the_files_alone(
    spark: SparkSession, tmp_path: Path, coalesce: str
) -> None:
    """One hot key, and subtasks of a few rows."""
    rows = [("hot", number) for number in range(3000)] + [(name, 1) for name in NAMES]
    df = counts(spark, *rows).repartition(5)
    keyed = {"by-key": KeyedState(None, "user", STRING, {"n": ListState("n", LONG)})}
    with (
        setting(spark, "spark.sql.adaptive.enabled", coalesce),
        setting(spark, "spark.sql.adaptive.advisoryPartitionSizeInBytes", "10"),
        setting(spark, "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes", "10"),
    ):
        savepoint = write_savepoint(df, tmp_path / "s", keyed, 128, 12)
    expected = [("hot", list(range(3000))), *((name, [1]) for name in NAMES)]
    assert sorted((one.key, one.value) for one in entries_of(savepoint)) == sorted(expected)
    subtasks = {assign_key_to_parallel_operator(key, 128, 12) for key, _ in expected}
    assert {index for _, index in files_of(savepoint)} == subtasks


def test_pandas_is_not_needed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keygroups.spark._savepoint.arrow_map.find_spec", lambda name: None)
    savepoint = write_savepoint(
        counts(spark, ("ann", 7)), tmp_path / "s", {"by-user": COUNT}, 128, 2, flink="1.17"
    )
    assert [one.value for one in entries_of(savepoint, "by-user")] == [7]


def test_the_jobs_say_what_they_are_for(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_connect(spark):
        pytest.skip("Spark Connect describes its jobs itself")
    text = []

    def write(*_: object) -> None:
        text.append(spark.sparkContext.getLocalProperty("spark.job.description"))

    monkeypatch.setattr(spark_savepoint, "write_entries", write)
    spark.sparkContext.setJobDescription("mine")
    write_savepoint(counts(spark), tmp_path / "s", {"by-user": COUNT}, 128, 1)
    assert text == [f"write_savepoint: by-user, to {tmp_path / 's'}"]
    assert spark.sparkContext.getLocalProperty("spark.job.description") == "mine"
    spark.sparkContext.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]


# --- tasks -------------------------------------------------------------------------------


def test_a_task_that_is_tried_twice_leaves_one_file(tmp_path: Path) -> None:
    entries = entry_batch([EncodedEntry(5, 0, b"\2a\0", bytes(8))])
    with SavepointWriter(tmp_path / "s") as writer:
        states = [ValueStateDescriptor("n", LONG)]
        operator = writer.add_operator("by-key", STRING, states, 128, 2)
        tasks = operator.task(0), operator.task(1)
        write = FileRunner(FileWriter(tasks, frozenset()).write)
        [first], [second] = write([entries]), pickle.loads(pickle.dumps(write))([entries])
        assert list(write([])) == []
        assert first != second
        operator.add(pickle.loads(second.column(0)[0].as_py()))
    assert len(list((tmp_path / "s").iterdir())) == 2


FAILING = """
import os, signal, sys
from pathlib import Path
from support.flink.flink_oracle import local_session
from keygroups.spark import KeyedState, ValueState, write_savepoint
from keygroups.spark._savepoint import entry_files
from keygroups.types import LONG, STRING

FOLDER = sys.argv[1]

class FailsOnce(entry_files.FileRunner):
    def __call__(self, batches):
        batches = list(batches)
        subtask = batches[0].column(0)[0].as_py() // 64
        try:
            Path(FOLDER, f"tried-{subtask}").touch(exist_ok=False)
        except FileExistsError:
            return super().__call__(batches)
        list(super().__call__(self.ending(batches, subtask)))
        raise OSError("the first attempt fails when its file is whole")

    def ending(self, batches, subtask):
        yield from batches
        if subtask == 1:  # the other one is in the middle of its file
            os.kill(os.getpid(), signal.SIGKILL)

entry_files.FileRunner = FailsOnce
spark = local_session("local[2,2]")
df = spark.range(1000).selectExpr("cast(id as string) user", "id n")
counts = KeyedState(None, "user", STRING, {"count": ValueState("n", LONG)})
write_savepoint(df, FOLDER + "/s", {"by-user": counts}, 128, 2)
spark.stop()
"""


@pytest.mark.slow
def test_tasks_that_fail_are_tried_again(spark: SparkSession, tmp_path: Path) -> None:
    """One fails when its file is whole, the process of the other is killed in the middle."""
    if is_connect(spark):
        pytest.skip("the server of Spark Connect tries a task once")
    command = [sys.executable, "-c", FAILING, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"s", "tried-0", "tried-1"}
    assert len(list((tmp_path / "s").iterdir())) == 3
    entries = entries_of(read_savepoint(tmp_path / "s"), "by-user")
    assert sorted((one.value, one.key) for one in entries) == [(n, str(n)) for n in range(1000)]
