"""Substitute keys as columns: those of the core, for every row."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from support.selections import first_by_default

import keygroups
from keygroups import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    ParallelismError,
    SubtaskKeySelector,
    UnsupportedKeyTypeError,
    keys_for_subtasks,
)
from keygroups.source_partitions import partition_for_key
from keygroups.spark import functions as KF
from keygroups.spark import rebalance_keys, with_routing
from keygroups.types import (
    BIG_INT,
    BOOLEAN,
    BYTE,
    DOUBLE,
    INT,
    LONG,
    SHORT,
    STRING,
    TUPLE,
    KeyType,
)

FLIGHTS = Path(__file__).resolve().parents[2] / "examples" / "data" / "nycflights13.parquet"
QUERY_FAILS = (PySparkException, Py4JJavaError)  # Spark 3.5 lets the latter through


def test_known_answer(spark: SparkSession, ansi: None) -> None:
    """The keys 4, 9, 10, 0, 2 are those that Flink sends to the subtasks 0 to 4."""
    df = spark.createDataFrame([(n,) for n in (3, None, 0, 1, 2, 4)], "subtask int")
    for subtask in ("subtask", F.col("subtask")):
        keys = [
            row.key
            for row in df.select(KF.key_for_subtask(subtask, 128, 5).alias("key")).collect()
        ]
        assert keys == [0, None, 4, 9, 10, 2]


@pytest.mark.long
@pytest.mark.parametrize(
    ("key_type", "ddl", "max_parallelism", "parallelism", "prefix"),
    first_by_default(
        3,
        [
            (STRING, "string", 4096, 200, "bucket-"),
            (INT, "int", 2**15, 1024, ""),
            (BYTE, "tinyint", 128, 7, ""),
            (SHORT, "smallint", 720, 100, ""),
            (INT, "int", 1, 1, ""),
            (LONG, "bigint", 2**15, 2**15, ""),
            (BOOLEAN, "boolean", 4, 2, ""),
            (STRING, "string", 128, 128, ""),
            (STRING, "string", 128, 7, "1,2,'\\\"ä$1\n"),
        ],
    ),
)
def test_same_keys_as_the_core(
    spark: SparkSession,
    ansi: None,
    key_type: KeyType,
    ddl: str,
    max_parallelism: int,
    parallelism: int,
    prefix: str,
) -> None:
    subtasks = spark.range(parallelism).select(F.col("id").cast("int").alias("subtask"))
    key = KF.key_for_subtask("subtask", max_parallelism, parallelism, key_type, prefix=prefix)
    keyed = subtasks.select("subtask", key.alias("key"))
    assert dict(keyed.dtypes)["key"] == ddl
    routed = with_routing(keyed.toDF("wanted", "key"), "key", max_parallelism, parallelism)
    rows = routed.orderBy("wanted").collect()
    assert [row.key for row in rows] == keys_for_subtasks(
        max_parallelism, parallelism, key_type, prefix=prefix
    )
    assert [row.subtask for row in rows] == list(range(parallelism))


@pytest.mark.long
@pytest.mark.parametrize("backend", ["fast", "portable"])
@pytest.mark.parametrize(
    ("partitions", "max_parallelism", "parallelism"), [(4, 128, 4), (29, 720, 7), (9, 9, 9)]
)
def test_partitions_that_the_subtasks_of_keys_read(
    spark: SparkSession,
    ansi: None,
    backend: str,
    partitions: int,
    max_parallelism: int,
    parallelism: int,
) -> None:
    """They are those of the core, whose owners are those of Kafka's connector."""
    keys = [*(f"user-{number}" for number in range(50)), "", "h\u00e9\U0001f600"]
    job = (max_parallelism, parallelism)
    previous = spark.conf.get("spark.keygroups.path", "auto") or "auto"
    spark.conf.set("spark.keygroups.path", backend)
    try:
        df = spark.createDataFrame([(key,) for key in [*keys, None]], "user string")
        partition = KF.partition_for_key("user", "clicks", partitions, *job, STRING)
        rows = df.select(partition.alias("partition")).collect()
    finally:
        spark.conf.set("spark.keygroups.path", previous)
    assert [row.partition for row in rows] == [
        *(partition_for_key(key, "clicks", partitions, *job) for key in keys),
        None,
    ]


def test_partitions_that_no_subtask_would_read() -> None:
    with pytest.raises(InvalidValueError, match="partitions must be at least the parallelism"):
        KF.partition_for_key("user", "clicks", 3, 128, 4, STRING)


@pytest.mark.parametrize("subtask", first_by_default(1, [5, -1, 2**31 - 1]))
def test_no_such_subtask(spark: SparkSession, ansi: None, subtask: int) -> None:
    df = spark.createDataFrame([(0,), (subtask,)], "subtask int")
    with pytest.raises(QUERY_FAILS, match=f"subtask must be from 0 to 4, got {subtask}"):
        df.select(KF.key_for_subtask("subtask", 128, 5)).collect()


def test_subtask_of_another_type(spark: SparkSession) -> None:
    with pytest.raises(
        AnalysisException, match=r"(?i)subtask takes a column of type int not bigint"
    ):
        spark.range(3).select(KF.key_for_subtask("id", 128, 5)).collect()
    with pytest.raises(InvalidTypeError, match="subtask must be a column or a column name, got 3"):
        KF.key_for_subtask(3, 128, 5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("key_type", "prefix", "error", "says"),
    [
        (DOUBLE, "", InvalidTypeError, "key_type must be an integer type, STRING"),
        ("INT", "", InvalidTypeError, "key_type must be"),
        (BIG_INT, "", UnsupportedKeyTypeError, "BIG_INT has no column expression"),
        (TUPLE(INT, STRING), "", UnsupportedKeyTypeError, "has no column expression"),
        (BOOLEAN, "", InvalidValueError, "all 2 keys of type BOOLEAN were tried"),
        (INT, "a", InvalidValueError, "prefix must be ''"),
        (STRING, None, InvalidTypeError, "prefix must be a str"),
    ],
)
def test_key_types_without_substitutes(
    spark: SparkSession, key_type: Any, prefix: Any, error: type[Exception], says: str
) -> None:
    df = spark.range(1)
    with pytest.raises(error, match=says):
        KF.key_for_subtask("subtask", 128, 5, key_type, prefix=prefix)
    with pytest.raises(error, match=says):
        rebalance_keys(df, "id", 128, 5, substitute_type=key_type, prefix=prefix)


def test_parallelisms(spark: SparkSession) -> None:
    for max_parallelism, parallelism in ((128, 0), (128, 129), (0, 1), (2**15 + 1, 1)):
        with pytest.raises(ParallelismError):
            KF.key_for_subtask("subtask", max_parallelism, parallelism)
        with pytest.raises(ParallelismError):
            rebalance_keys(spark.range(1), "id", max_parallelism, parallelism)


@pytest.mark.slow
def test_every_flight_gets_the_key_of_the_core(spark: SparkSession) -> None:
    keyed = spark.read.parquet(str(FLIGHTS)).select("tailnum", "origin", "flight").distinct()
    keys: list[tuple[Any, KeyType]] = [
        ("tailnum", STRING),
        (["origin", "flight"], TUPLE(STRING, INT)),
    ]
    kinds = [
        (by, key_type, *kind) for by, key_type in keys for kind in ((INT, ""), (STRING, "k,"))
    ]
    for i, (by, _, substitute_type, prefix) in enumerate(kinds):
        keyed = rebalance_keys(
            keyed, by, 720, 11, None, substitute_type, column=f"key{i}", prefix=prefix
        )
    rows = [tuple(row) for row in keyed.collect()]
    assert len(rows) > 100_000
    for i, (_, key_type, substitute_type, prefix) in enumerate(kinds, 3):
        selector = SubtaskKeySelector(720, 11, substitute_type, prefix=prefix)
        found = {(row[0] if key_type == STRING else row[1:3], row[i]) for row in rows}
        assert found == {
            (value, None if value is None else selector.key_for_value(value, key_type))
            for value, _ in found
        }


def test_the_job_that_reads_it_is_even(spark: SparkSession) -> None:
    """1,000 values over 5 subtasks, where the substitutes' buckets 0..4 would reach 3 of them."""
    df = spark.range(1000).select(F.col("id").cast("string").alias("value"))
    keyed = rebalance_keys(df, F.col("value"), 128, 5, column="bucket")
    assert keyed.columns == ["value", "bucket"]
    counts = Counter(
        keygroups.assign_key_to_parallel_operator(row.bucket, 128, 5, INT)
        for row in keyed.collect()
    )
    assert set(counts) == set(range(5))
    assert max(counts.values()) < 1.25 * 200  # four standard deviations
    assert len({keygroups.assign_key_to_parallel_operator(n, 128, 5, INT) for n in range(5)}) < 5


@pytest.mark.long
def test_null_value_and_other_columns(spark: SparkSession) -> None:
    df = spark.createDataFrame([("A", 1), (None, 2)], "value string, n int")
    rows = rebalance_keys(df, "value", 128, 5).collect()
    expected = SubtaskKeySelector(128, 5).key_for_value("A")
    assert rows == [
        Row(value="A", n=1, substitute_key=expected),
        Row(value=None, n=2, substitute_key=None),
    ]


def test_bad_columns(spark: SparkSession) -> None:
    df = spark.createDataFrame([("A", 1)], "value string, Substitute_Key int")
    with pytest.raises(InvalidValueError, match="must not have a column Substitute_Key already"):
        rebalance_keys(df, "value", 128, 5)
    with pytest.raises(InvalidTypeError, match="column must be a str, got None"):
        rebalance_keys(df, "value", 128, 5, column=None)  # type: ignore[arg-type]
    with pytest.raises(KeyGroupsError, match="key type LONG takes a column of type bigint"):
        rebalance_keys(df, "value", 128, 5, LONG, column="bucket")
    with pytest.raises(InvalidValueError, match="key must be of df's columns, got 'nothing'"):
        rebalance_keys(df, "nothing", 128, 5, column="bucket")
