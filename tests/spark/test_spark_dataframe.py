"""Routing and load of whole DataFrames."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from support.hostile_values import in_itself
from support.selections import first_by_default

import keygroups
from keygroups import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    ParallelismError,
    UnsupportedKeyTypeError,
)
from keygroups.spark import (
    infer_key_type,
    infer_sql_row,
    key_group_load,
    pre_aggregate,
    rebalance_keys,
    repartition_by_subtask,
    rescale_report,
    skew_report,
    with_routing,
)
from keygroups.types import BIG_DEC, INT, LIST, LONG, SQL_ROW, STRING, TUPLE, UUID, KeyType


@pytest.mark.parametrize(
    ("ddl", "name"),
    [
        ("boolean", "BOOLEAN"),
        ("tinyint", "BYTE"),
        ("smallint", "SHORT"),
        ("int", "INT"),
        ("bigint", "LONG"),
        ("float", "FLOAT"),
        ("double", "DOUBLE"),
        ("string", "STRING"),
        ("varchar(5)", "STRING"),
        ("decimal(10,2)", "BIG_DEC"),
        ("date", "LOCAL_DATE"),
        ("timestamp_ntz", "LOCAL_DATE_TIME"),
        ("timestamp", "INSTANT"),
    ],
)
def test_key_type_of_a_column(spark: SparkSession, ddl: str, name: str) -> None:
    df = spark.sql(f"select cast(null as {ddl}) as key")
    assert repr(infer_key_type(df, "key")) == name
    assert repr(infer_key_type(df, F.col("key"))) == name
    assert infer_key_type(df, ["key", "key"]) == TUPLE(*[infer_key_type(df, "key")] * 2)


@pytest.mark.parametrize(
    "ddl", ["binary", "array<int>", "map<string,int>", "struct<a:int>", "interval day", "void"]
)
def test_column_that_holds_no_key_type(spark: SparkSession, ddl: str) -> None:
    df = spark.sql(f"select cast(null as {ddl}) as payload")
    with pytest.raises(UnsupportedKeyTypeError, match="key column payload of type"):
        with_routing(df, "payload", 128, 3)
    error: type[KeyGroupsError] = UnsupportedKeyTypeError
    says = "key column payload of type"
    if ddl == "void":  # a null key before all, where one is refused
        error, says = InvalidValueError, "key must not be null, which Flink refuses, but payload"
    with pytest.raises(error, match=says):
        key_group_load(df, "payload", 128)


@pytest.mark.parametrize(
    ("value", "proposed"),
    [
        (["a"], LIST(STRING)),
        ([[1]], LIST(LIST(LONG))),
        (("a", 1), TUPLE(STRING, LONG)),
        ({"a": 1}, None),
    ],
)
def test_a_key_type_is_proposed(
    spark: SparkSession, value: object, proposed: KeyType | None
) -> None:
    """The types that PySpark gives Python's values; with the key type proposed they are taken."""
    df = spark.createDataFrame([(value,)], ["key"])
    says = " by itself: pass key_type, or use a column of type"
    if proposed is not None:
        says = f" by itself: pass key_type, such as {proposed}, or use a column of type"
        with_routing(df, "key", 128, 3, proposed)
    with pytest.raises(UnsupportedKeyTypeError, match=re.escape(says)):
        with_routing(df, "key", 128, 3)


@pytest.mark.long
def test_routing_keeps_rows_and_order(spark: SparkSession) -> None:
    keys = [f"user-{i}" for i in range(500)] + [None]
    df = spark.createDataFrame([(key, i) for i, key in enumerate(keys)], "key string, n int")
    rows = with_routing(df, "key", 128, 3).collect()
    assert [row["n"] for row in rows] == list(range(501))
    assert rows[-1] == Row(key=None, n=500, key_group=None, subtask=None)
    for row in rows[:-1]:
        assert row["key_group"] == keygroups.assign_to_key_group(row["key"], 128)
        assert row["subtask"] == keygroups.assign_key_to_parallel_operator(row["key"], 128, 3)
    assert dict(with_routing(df, "key", 128, 3).dtypes) == {
        "key": "string",
        "n": "int",
        "key_group": "int",
        "subtask": "int",
    }


@pytest.mark.long
def test_routing_of_a_tuple_and_of_a_declared_type(spark: SparkSession) -> None:
    df = spark.createDataFrame([("JFK", None), (None, "LAX")], "origin string, dest string")
    rows = with_routing(df, ["origin", "dest"], 128, 3).collect()
    assert [row["key_group"] for row in rows] == [
        keygroups.assign_to_key_group(key, 128, TUPLE(STRING, STRING))
        for key in (("JFK", None), (None, "LAX"))
    ]
    text = "123e4567-e89b-12d3-a456-426614174000"
    df = spark.createDataFrame([(text,)], "id string")
    assert with_routing(df, "id", 128, 3).first() != with_routing(df, "id", 128, 3, UUID).first()


def test_nested_and_computed_key_columns(spark: SparkSession) -> None:
    df = spark.sql("select named_struct('id', 7) as user, -1 as n")
    [row] = with_routing(df, "user.id", 128, 3).take(1)
    assert row["key_group"] == 113
    minus_one = keygroups.assign_to_key_group(-1, 128, LONG)
    found = with_routing(df, F.col("n").cast("bigint"), 128, 3).first()
    assert found is not None
    assert found["key_group"] == minus_one


@pytest.mark.long
def test_load_counts_rows(spark: SparkSession) -> None:
    keys = [f"user-{i % 97}" for i in range(1000)]
    df = spark.createDataFrame([(key,) for key in keys], "key string")
    load = key_group_load(df, "key", 64)
    counts = Counter(keygroups.assign_to_key_group(key, 64) for key in keys)
    assert list(load.weights) == [counts[kg] for kg in range(64)]
    assert key_group_load(df.limit(0), "key", 4).weights == (0, 0, 0, 0)


@pytest.mark.long
@pytest.mark.parametrize(
    ("ddl", "weights", "total"),
    first_by_default(
        2,
        [
            ("bigint", [2**62, 2**62, 2**62], 3 * 2**62),  # beyond a bigint, exact
            ("double", [0.5, 0.25, 1.0], 1.75),
            ("tinyint", [1, 2, 3], 6),
            ("decimal(10,2)", [Decimal("0.50"), Decimal("1.00"), Decimal("2.00")], 3.5),
        ],
    ),
)
def test_load_sums_weights(
    spark: SparkSession, ddl: str, weights: list[Any], total: float
) -> None:
    df = spark.createDataFrame([("A", w) for w in weights], f"key string, w {ddl}")
    load = key_group_load(df, "key", 128, weight="w")
    assert load.weights[104] == sum(load.weights) == total
    assert key_group_load(df, "key", 128, weight=F.col("w")) == load


@pytest.mark.long
@pytest.mark.parametrize(
    ("ddl", "weight"), [("int", None), ("int", -1), ("double", float("nan")), ("double", -0.5)]
)
def test_bad_weights(spark: SparkSession, ddl: str, weight: Any) -> None:
    df = spark.createDataFrame([("A", weight)], f"key string, w {ddl}")
    with pytest.raises(InvalidValueError, match="weight must be a number >= 0 in every row, 1"):
        key_group_load(df, "key", 128, weight="w")


@pytest.mark.parametrize(
    "weight", [["n"], ("n",), 5, object()], ids=["list", "tuple", "int", "object"]
)
def test_weight_that_is_no_column(spark: SparkSession, weight: Any) -> None:
    df = spark.createDataFrame([("A", 1)], "key string, n int")
    with pytest.raises(InvalidTypeError, match="weight must be a column or a column name, got"):
        key_group_load(df, "key", 128, weight=weight)


def test_weight_that_is_no_number(spark: SparkSession) -> None:
    df = spark.createDataFrame([("A", "1")], "key string, w string")
    with pytest.raises(InvalidTypeError, match="weight must be a numeric column, but w is string"):
        key_group_load(df, "key", 128, weight="w")


def test_null_keys_are_not_dropped(spark: SparkSession) -> None:
    df = spark.createDataFrame([("A",), (None,), (None,)], "key string")
    with pytest.raises(
        InvalidValueError, match="key must not be null, got 2 such rows, which Flink refuses"
    ):
        key_group_load(df, "key", 128)


@pytest.mark.parametrize(
    ("key", "key_type", "says"),
    [
        ("n", INT, "key type INT takes a column of type int, but n is bigint"),
        ("s", LONG, "key type LONG takes a column of type bigint, but s is string"),
        ("s", BIG_DEC, "key type BIG_DEC takes a column of type decimal, but s is string"),
        (["s", "n"], TUPLE(STRING, INT), "key type INT takes a column of type int, but n is"),
        (["s", "n"], TUPLE(STRING), "must be 1 columns, got 2"),
        ("s", "STRING", "key_type must be a value of keygroups.types"),
        ([], None, "key must be at least one column"),
        (["n"] * 26, None, "TUPLE has at most 25 fields"),
        ("*", None, r"key must be one column, got '\*'"),
        (F.expr, None, "key must be a column or a column name, got <function expr"),
        (None, None, "key must be a column or a column name, got None"),
        (5, None, "key must be a column or a column name, got 5"),
        (["s", None], None, "key must be a column or a column name, got None"),
        (["s", []], None, "key must be at least one column, got an empty list"),
        ("\ud800", None, r"key must have no surrogates.*got '\\ud800'"),
        (in_itself(), None, "key must be lists at most 50 deep"),
        (in_itself(), INT, "key must be lists at most 50 deep"),
        pytest.param(
            [["n"] * 101] * 100,
            None,
            "key must be at most 10000 columns",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_bad_keys_raise_before_any_job(
    spark: SparkSession, key: Any, key_type: KeyType, says: str
) -> None:
    df = spark.createDataFrame([("a", 1)], "s string, n bigint")
    with pytest.raises(KeyGroupsError, match=says):
        with_routing(df, key, 128, 3, key_type)


def test_stars(spark: SparkSession) -> None:
    df = spark.createDataFrame([("a", 1)], "s string, n bigint")
    with pytest.raises(InvalidValueError, match="key must be one column each, but 1 are 2: s, n"):
        with_routing(df, F.col("*"), 128, 3)


@pytest.mark.parametrize("df", [None, "df", 5, DataFrame, F], ids=str)
def test_what_is_no_dataframe(df: Any) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: infer_key_type(df, "n"),
        lambda: infer_sql_row(df, "n"),
        lambda: key_group_load(df, "n", 128),
        lambda: pre_aggregate(df, "n", [], 128, 3),
        lambda: rebalance_keys(df, "n", 128, 3),
        lambda: repartition_by_subtask(df, "n", 128, 3),
        lambda: rescale_report(df, "n", 128, 3, 4),
        lambda: skew_report(df, "n", 128, 3),
        lambda: with_routing(df, "n", 128, 3),
    ]
    for call in calls:
        with pytest.raises(InvalidTypeError, match="df must be a DataFrame, got"):
            call()


@pytest.mark.slow
def test_fields_that_differ_in_case_only(spark: SparkSession, ansi: None) -> None:
    """Spark finds no field by such a name; a key has them by their places."""
    ddl = "s struct<a:string,A:int,b:struct<c:bigint,C:string>>, x int"
    keys = [("k", 7, (1, "y")), (None, None, None), ("", -1, (None, None))]
    df = spark.createDataFrame([(key, 1) for key in keys], ddl)
    for key_type in (TUPLE(STRING, INT, TUPLE(LONG, STRING)), SQL_ROW("STRING", "INT", INNER)):
        found = with_routing(df, "s", 1000, 3, key_type).collect()
        assert [row["key_group"] for row in found] == [
            keygroups.assign_to_key_group(key, 1000, key_type) for key in keys
        ]


INNER = "ROW<c BIGINT, C STRING>"


def test_unknown_column(spark: SparkSession) -> None:
    df = spark.sql("SELECT 1 AS n, 'UA' AS carrier, 'LAX' AS dest, 2 AS `a.b`, 3 AS cariers")
    present = "there are carrier, cariers, n, dest, `a.b`$"
    for key in ("carier", F.upper("carier"), ["n", "carier"]):
        says = f"^key must be of df's columns, got 'carier': {present}"
        with pytest.raises(InvalidValueError, match=says):
            with_routing(df, key, 128, 3)
    with pytest.raises(InvalidValueError, match=r"weight must be .*, got 'm': there are n"):
        key_group_load(df, "carrier", 128, weight=F.col("m") * 2)
    with pytest.raises(InvalidValueError, match=r"key must be .*, got 'a.b': there are `a.b`, n"):
        infer_sql_row(df, "a.b")


def test_an_unknown_column_of_many(spark: SparkSession) -> None:
    df = spark.range(1).select(*(F.lit(1).alias(f"c{n}") for n in range(100)))
    with pytest.raises(InvalidValueError, match=r", c18 and 80 more$") as raised:
        with_routing(df, "c99x", 128, 3)
    assert "there are c99, c9, c0, c1, " in str(raised.value)


def test_what_else_analysis_finds_is_left_to_spark(spark: SparkSession) -> None:
    df = spark.sql("SELECT named_struct('x', 1) AS s, 2 AS n")
    for key, condition in (
        ("s.y", "FIELD_NOT_FOUND"),
        (F.expr("nothing(n)"), "UNRESOLVED_ROUTINE"),
    ):
        with pytest.raises(AnalysisException, match=condition):
            with_routing(df, key, 128, 3)


@pytest.mark.parametrize("name", ["key_group", "Subtask"])
def test_columns_that_are_taken(spark: SparkSession, name: str) -> None:
    df = spark.range(1).withColumn(name, F.lit(1))
    with pytest.raises(InvalidValueError, match=f"must not have a column {name} already"):
        with_routing(df, "id", 128, 3)


def test_parallelisms(spark: SparkSession) -> None:
    df = spark.range(1)
    with pytest.raises(ParallelismError, match="parallelism must be from 1 to 128"):
        with_routing(df, "id", 128, 129)
    with pytest.raises(ParallelismError, match="max_parallelism must be"):
        with_routing(df, "id", 0, 1)
    with pytest.raises(ParallelismError, match="max_parallelism must be"):
        key_group_load(df, "id", 2**15 + 1)
