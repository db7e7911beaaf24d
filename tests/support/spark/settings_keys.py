"""Keys of every kind in one DataFrame, and the key groups that the core gives them."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.utils import is_remote

import keygroups
from keygroups.spark import (
    ListState,
    MapState,
    ValueState,
    kafka_offsets,
    key_group_load,
    pre_aggregate,
    skew_report,
    with_routing,
)
from keygroups.spark import functions as KF
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
    PYFLINK,
    ROW,
    SHORT,
    SQL_DATE,
    SQL_ROW,
    SQL_TIMESTAMP,
    STRING,
    TUPLE,
    UUID,
    KeyType,
)

MAX_PARALLELISM = 1000
UTC = dt.timezone.utc
SCALARS: dict[str, tuple[KeyType, T.DataType, Sequence[Any]]] = {
    "boolean": (BOOLEAN, T.BooleanType(), (True, False)),
    "byte": (BYTE, T.ByteType(), (-128, 5)),
    "short": (SHORT, T.ShortType(), (-300, 7)),
    "int": (INT, T.IntegerType(), (-(2**31), 7)),
    "long": (LONG, T.LongType(), (-(2**63), 2**40)),
    "float": (FLOAT, T.FloatType(), (-0.0, 1.5)),
    "double": (DOUBLE, T.DoubleType(), (-0.0, 1e300)),
    "text": (STRING, T.StringType(), ("h\u00e9 \U0001f600", "2026-01-01")),
    "uuid": (UUID, T.StringType(), ("326a7488-92a3-3829-e41c-dffe3daa8d61",) * 2),
    "long_decimal": (
        BIG_DEC,
        T.DecimalType(38, 10),
        (Decimal("-12345678901234567890.0123456789"), Decimal("1E-10")),
    ),
    "decimal": (BIG_DEC, T.DecimalType(18, 2), (Decimal("-1234.50"), Decimal("0.00"))),
    "date": (LOCAL_DATE, T.DateType(), (dt.date(2026, 7, 1), dt.date(1582, 10, 1))),
    "local": (
        LOCAL_DATE_TIME,
        T.TimestampNTZType(),
        (dt.datetime(2026, 3, 8, 2, 30, 0, 123456), dt.datetime(1500, 1, 1)),
    ),
    "instant": (
        INSTANT,
        T.TimestampType(),
        (dt.datetime(2026, 7, 1, 3, 0, 0, 5, UTC), dt.datetime(1900, 1, 1, tzinfo=UTC)),
    ),
    # No instant is certain before the zone had rules.
    "recent": (
        SQL_DATE("Europe/Berlin"),
        T.DateType(),
        (dt.date(2026, 7, 1), dt.date(1999, 12, 31)),
    ),
}
"""Each scalar key type's column: its name, type and two values that settings may change."""
TEXTS, INSTANTS = T.ArrayType(T.StringType()), T.ArrayType(T.TimestampType())
# Fields of one name but for the case of a letter.
PAIR = T.StructType([T.StructField("x", T.LongType()), T.StructField("X", T.TimestampType())])
MOMENTS = SCALARS["instant"][2]
OTHERS: dict[str, tuple[T.DataType, Sequence[Any]]] = {
    "bytes": (T.BinaryType(), (b"\x01\xff\x80zz" * 3, b"")),
    "texts": (TEXTS, (["a", None, "\u00e9" * 9], [])),
    "instants": (INSTANTS, ([MOMENTS[0], None], [MOMENTS[1]])),
    "pair": (PAIR, ((5, MOMENTS[0]), (-5, None))),
}
SCHEMA = T.StructType(
    [T.StructField("id", T.LongType())]
    + [T.StructField(name, spark_type) for name, (_, spark_type, _) in SCALARS.items()]
    + [T.StructField(name, spark_type) for name, (spark_type, _) in OTHERS.items()]
)
_VALUES = [values for _, _, values in SCALARS.values()] + [values for _, values in OTHERS.values()]
ROWS: list[tuple[Any, ...]] = [
    *((index, *(values[index] for values in _VALUES)) for index in range(2)),
    (2, *(None for _ in _VALUES)),
]

SQL_KEY_TYPES = [
    *(BOOLEAN, BYTE, SHORT, INT, LONG, FLOAT, DOUBLE, STRING, UUID),
    *(LOCAL_DATE, LOCAL_DATE_TIME, INSTANT),
]
"""The key types that SQL functions take."""
KEYS: list[tuple[str | list[str], KeyType]] = [
    *((name, key_type) for name, (key_type, _, _) in SCALARS.items()),
    ("texts", LIST(STRING)),
    ("instants", LIST(INSTANT)),
    ("instant", SQL_TIMESTAMP("UTC")),
    ("instant", PYFLINK(INSTANT)),
    (["text", "int"], TUPLE(STRING, INT)),
    (["double", "instants", "text"], ROW(DOUBLE, LIST(INSTANT), STRING)),
    ("text", SQL_ROW("STRING")),
    ("texts", SQL_ROW("ARRAY<STRING>")),
    (["bytes", "int"], SQL_ROW("BYTES", "INT")),
    (["long_decimal", "decimal"], SQL_ROW("DECIMAL(38, 10)", "DECIMAL(18, 2)")),
    (["double", "float", "boolean"], SQL_ROW("DOUBLE", "FLOAT", "BOOLEAN")),
    (["instant", "local", "date"], SQL_ROW("TIMESTAMP_LTZ(6)", "TIMESTAMP(6)", "DATE")),
    (["int"] * 17, SQL_ROW(*["INT"] * 17)),
]
"""Keys whose columns have a type of their own; those of a struct have it from a DataFrame."""
STRUCTS: list[tuple[str, KeyType]] = [
    ("pair", TUPLE(LONG, INSTANT)),
    ("pair", SQL_ROW("BIGINT", "TIMESTAMP_LTZ(6)")),
]
NAMES = [f"k{index}" for index in range(len(KEYS) + len(STRUCTS))]


def rows_of(spark: SparkSession) -> DataFrame:
    """Return the rows, which on a classic session no setting changes any more."""
    df = spark.createDataFrame(ROWS, SCHEMA)
    return df if is_remote() else df.coalesce(1).localCheckpoint()


def key_columns() -> list[Column]:
    """Return the key groups as columns that belong to no DataFrame yet."""
    return [
        KF.assign_to_key_group(key, MAX_PARALLELISM, key_type).alias(name)
        for name, (key, key_type) in zip(NAMES, KEYS)
    ]


def key_groups(df: DataFrame, columns: list[Column]) -> DataFrame:
    """Return the key groups of each row's keys, a column each."""
    routed = NAMES[len(KEYS) :]
    for name, (key, key_type) in zip(routed, STRUCTS):
        df = with_routing(df, key, MAX_PARALLELISM, 3, key_type)
        df = df.drop("subtask").withColumnRenamed("key_group", name)
    return df.select("id", *columns, *routed)


def wrong_key_groups(df: DataFrame) -> list[str]:
    """Return the key groups that are other than the core's, as text."""
    rows = {row["id"]: row for row in df.collect()}
    assert len(rows) == len(ROWS)
    return [
        f"{key_type} of row {values[0]}: {rows[values[0]][name]}, not {key_group}"
        for values in ROWS
        for name, (key, key_type) in zip(NAMES, [*KEYS, *STRUCTS])
        if rows[values[0]][name] != (key_group := _key_group(values, key, key_type))
    ]


def _key_group(values: tuple[Any, ...], key: str | list[str], key_type: KeyType) -> int | None:
    columns = dict(zip(SCHEMA.names, values))
    value: Any = columns[key] if isinstance(key, str) else tuple(columns[name] for name in key)
    if isinstance(key_type, SQL_ROW) and len(key_type.fields) == 1:
        value = (value,)  # it takes the only field
    elif value is None and not isinstance(key_type, PYFLINK):
        return None
    elif key_type is UUID:
        value = uuid.UUID(value)
    elif isinstance(key_type, SQL_TIMESTAMP):
        value = value.replace(tzinfo=None)
    return keygroups.assign_to_key_group(value, MAX_PARALLELISM, key_type)


COUNTED = [(number % 7, "clicks", number % 4, number) for number in range(40)]
"""Rows of a key, a topic, a partition and a number, which is as a key is."""


def counted_rows(spark: SparkSession) -> DataFrame:
    """Return a DataFrame of the rows in COUNTED."""
    df = spark.createDataFrame(COUNTED, "key bigint, topic string, partition int, offset bigint")
    return df if is_remote() else df.coalesce(1).localCheckpoint()


def wrong_totals(df: DataFrame) -> list[str]:
    """Return the answers about `counted_rows` that are other than the core's."""
    subtasks = {key: keygroups.assign_key_to_parallel_operator(key, 128, 3) for key in range(7)}
    totals: dict[int, int] = {}
    records, keys, weights = [0] * 3, [0] * 3, [0] * 3
    for key, _, _, number in COUNTED:
        keys[subtasks[key]] += key not in totals
        totals[key] = totals.get(key, 0) + number
        records[subtasks[key]] += 1
        weights[subtasks[key]] += number
    summed = pre_aggregate(df, "key", [F.sum("offset").alias("total")], 128, 3)
    placed = summed.withColumn("partition", F.spark_partition_id()).collect()
    found: dict[str, tuple[Any, Any]] = {
        "pre_aggregate": (
            {(row["key"], row["total"], row["partition"]) for row in placed},
            {(key, total, subtasks[key]) for key, total in totals.items()},
        ),
        "key_group_load": (
            key_group_load(df, "key", 128, weight="offset").per_subtask(3),
            weights,
        ),
        "kafka_offsets": (
            kafka_offsets(df.where("offset >= 36")).offsets,
            {("clicks", number % 4): number for number in range(36, 40)},
        ),
    }
    for size in (None, 40):
        rows = skew_report(df, "key", 128, 3, batch_size=size).subtasks
        counts = [(row.records, row.distinct_keys) for row in rows]
        found[f"skew_report, {size}"] = counts, [*zip(records, keys)]
    return [
        f"{name} is {is_}, not {right}" for name, (is_, right) in found.items() if is_ != right
    ]


SQL_KEYS = [(name, kind) for name, (kind, _, _) in SCALARS.items() if kind in SQL_KEY_TYPES]


def wrong_sql(spark: SparkSession) -> list[str]:
    """Return the answers of SQL functions other than the core's, of the view `settings_rows`."""
    calls = (
        f"flink_key_group_{repr(key_type).lower()}(`{name}`, {MAX_PARALLELISM}) AS `{name}`"
        for name, key_type in SQL_KEYS
    )
    rows = spark.sql(f"SELECT id, {', '.join(calls)} FROM settings_rows").collect()
    by_id = {row["id"]: row for row in rows}
    return [
        f"SQL function of {key_type}, row {values[0]}: {by_id[values[0]][name]}, not {key_group}"
        for values in ROWS
        for name, key_type in SQL_KEYS
        if by_id[values[0]][name] != (key_group := _key_group(values, name, key_type))
    ]


def states_of(rows: DataFrame) -> tuple[DataFrame, dict[str, ValueState | ListState | MapState]]:
    """Return a DataFrame of whole rows, and the states of an operator to write from it."""
    df = rows.where(F.col("id") < 2).select(
        *("id", "text", "long_decimal", "instant"),
        F.array("instant").alias("listed"),
        F.struct("id", "instant").alias("nested"),
        F.create_map("text", "instant").alias("mapped"),
    )
    return df, {
        "text": ValueState("text", STRING),
        "decimal": ValueState("long_decimal", BIG_DEC),
        "instant": ValueState("instant", INSTANT),
        "listed": ValueState("listed", LIST(INSTANT)),
        "nested": ValueState("nested", TUPLE(LONG, INSTANT)),
        "list": ListState("listed", INSTANT),
        "mapped": MapState(None, "mapped", STRING, INSTANT),
    }


def expected_entries() -> dict[tuple[str, int], Any]:
    """Return the user key and value of each entry that is to be in the state, by state and key."""
    entries: dict[tuple[str, int], Any] = {}
    for values in ROWS[:2]:
        row = dict(zip(SCHEMA.names, values))
        key, moment = row["id"], row["instant"]
        entries["text", key] = (None, row["text"])
        entries["decimal", key] = (None, row["long_decimal"])
        entries["instant", key] = (None, moment)
        entries["listed", key] = entries["list", key] = (None, [moment])
        entries["nested", key] = (None, (key, moment))
        entries["mapped", key] = (row["text"], moment)
    return entries
