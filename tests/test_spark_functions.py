"""Column expressions: the same answers as the core, for every value that Spark can hold."""

from __future__ import annotations

import datetime as dt
import math
import random
import struct
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import keygroups
from keygroups import KeyGroupsError, ParallelismError, UnsupportedKeyTypeError
from keygroups.spark import functions as KF
from keygroups.types import (
    BIG_DEC,
    BIG_INT,
    BOOLEAN,
    BYTE,
    CHAR,
    DOUBLE,
    FLOAT,
    INSTANT,
    INT,
    LIST,
    LOCAL_DATE,
    LOCAL_DATE_TIME,
    LOCAL_TIME,
    LONG,
    ROW,
    SHORT,
    STRING,
    TUPLE,
    UUID,
    KeyType,
)

RANDOM = random.Random(20130101)
QUERY_FAILS = (PySparkException, Py4JJavaError)  # Spark 3.5 lets the latter through


@pytest.fixture(params=["true", "false"], ids=["ansi", "no-ansi"])
def ansi(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    before = spark.conf.get("spark.sql.ansi.enabled")
    assert before is not None
    spark.conf.set("spark.sql.ansi.enabled", request.param)
    yield request.param
    spark.conf.set("spark.sql.ansi.enabled", before)


def bits(code: str, count: int) -> list[float]:
    size = struct.calcsize(code)
    return [struct.unpack(f">{code}", RANDOM.randbytes(size))[0] for _ in range(count)]


def text(length: int) -> str:
    planes = [range(128), range(0x80, 0xD800), range(0xE000, 0x10000), range(0x10000, 0x110000)]
    return "".join(chr(RANDOM.choice(RANDOM.choice(planes))) for _ in range(length))


def decimals(precision: int, scale: int) -> list[Decimal]:
    numbers = [RANDOM.randrange(10 ** RANDOM.randint(1, precision)) for _ in range(100)]
    numbers += [0, 1, 10**precision - 1]
    return [Decimal(f"{sign}{number}E-{scale}") for number in numbers for sign in "+-"]


SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan]
DOUBLES = [
    *SPECIAL,
    *bits("d", 500),
    *(sign * 2.0**e for e in range(-1074, 1024) for sign in (1, -1)),
    *(math.nextafter(2.0**e, 0.0) for e in range(-1074, 1024)),
    *(math.nextafter(2.0**e, math.inf) for e in range(-1074, 1023)),
]
FLOATS = [
    *SPECIAL,
    *bits("f", 500),
    *(2.0**e for e in range(-149, 128)),
    *(2.0**e * (2 - 2.0**-23) for e in range(-126, 128)),
]
MOMENTS = [
    dt.datetime(1, 1, 3) + dt.timedelta(microseconds=RANDOM.randrange(315_537_000_000_000_000))
    for _ in range(200)
] + [dt.datetime(1970, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)]

COLUMNS: list[tuple[KeyType, str, list[Any]]] = [
    (BOOLEAN, "boolean", [True, False]),
    (BYTE, "tinyint", list(range(-128, 128))),
    (SHORT, "smallint", [-(2**15), -1, 0, 2**15 - 1]),
    (INT, "int", [0, -1, -(2**31), 2**31 - 1, -2089875627, -1035494534]),
    (LONG, "bigint", [0, -1, -(2**63), 2**63 - 1, *(RANDOM.randrange(2**63) for _ in range(99))]),
    (DOUBLE, "double", DOUBLES),
    (FLOAT, "float", FLOATS),
    (STRING, "string", ["", "A", "\U0001f600", "\x00", *map(text, range(200))]),
    (BIG_DEC, "decimal(10,2)", decimals(10, 2)),
    (BIG_DEC, "decimal(18,2)", decimals(18, 2)),
    (BIG_DEC, "decimal(38,0)", decimals(38, 0)),
    (BIG_DEC, "decimal(38,10)", decimals(38, 10)),
    (BIG_DEC, "decimal(38,38)", decimals(38, 38)),
    (LOCAL_DATE, "date", [dt.date(1, 1, 1), dt.date(9999, 12, 31), *(m.date() for m in MOMENTS)]),
    (LOCAL_DATE_TIME, "timestamp_ntz", MOMENTS),
    (INSTANT, "timestamp", [m.replace(tzinfo=dt.timezone.utc) for m in MOMENTS]),
]


@pytest.mark.parametrize(("key_type", "ddl", "keys"), COLUMNS, ids=[ddl for _, ddl, _ in COLUMNS])
def test_scalar(
    spark: SparkSession, ansi: str, key_type: KeyType, ddl: str, keys: list[Any]
) -> None:
    df = spark.createDataFrame([(key,) for key in [*keys, None]], f"key {ddl}")
    rows = df.select(
        KF.hash_code("key", key_type).alias("code"),
        KF.assign_to_key_group("key", 1000, key_type).alias("key_group"),
        KF.assign_key_to_parallel_operator("key", 1000, 7, key_type).alias("subtask"),
    ).collect()
    assert tuple(rows.pop()) == (None, None, None)
    assert len(rows) == len(keys)
    for key, row in zip(keys, rows):
        assert row["code"] == keygroups.hash_code(key, key_type), key
        assert row["key_group"] == keygroups.assign_to_key_group(key, 1000, key_type), key
        subtask = keygroups.assign_key_to_parallel_operator(key, 1000, 7, key_type)
        assert row["subtask"] == subtask, key


def test_uuid(spark: SparkSession, ansi: str) -> None:
    uuids = [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1)]
    uuids += [uuid.UUID(bytes=RANDOM.randbytes(16)) for _ in range(100)]
    df = spark.createDataFrame([(str(u),) for u in uuids] + [(None,)], "key string")
    found = [row[0] for row in df.select(KF.hash_code("key", UUID)).collect()]
    assert found == [*map(keygroups.hash_code, uuids), None]


def test_tuple(spark: SparkSession, ansi: str) -> None:
    key_type = TUPLE(STRING, INT, TUPLE(LONG), DOUBLE)
    rows = [("a", 1, 2, 0.5), (None, 1, None, -0.0), ("é", None, -(2**63), None), (None,) * 4]
    df = spark.createDataFrame(rows, "a string, b int, c bigint, d double")
    found = df.select(KF.assign_to_key_group(["a", F.col("b"), "c", "d"], 4096, key_type))
    keys = [(a, b, (c,), d) for a, b, c, d in rows]
    assert [row[0] for row in found.collect()] == [
        keygroups.assign_to_key_group(key, 4096, key_type) for key in keys
    ]


def test_murmur_of_the_odd_ints(spark: SparkSession, ansi: str) -> None:
    codes = [0, 1, -1, 2**31 - 1, -(2**31), -2089875627, -1035494534]
    codes += [RANDOM.randrange(-(2**31), 2**31) for _ in range(1000)]
    df = spark.createDataFrame([(code,) for code in codes] + [(None,)], "code int")
    found = [row[0] for row in df.select(KF.murmur_hash("code")).collect()]
    assert found == [*map(keygroups.murmur_hash, codes), None]


@pytest.mark.parametrize(("max_parallelism", "parallelism"), [(1, 1), (128, 3), (32768, 1000)])
def test_operator_index(
    spark: SparkSession, ansi: str, max_parallelism: int, parallelism: int
) -> None:
    df = spark.range(max_parallelism).select(F.col("id").cast("int").alias("kg"))
    subtask = KF.compute_operator_index_for_key_group(max_parallelism, parallelism, "kg")
    assert [row[0] for row in df.select(subtask).collect()] == [
        keygroups.compute_operator_index_for_key_group(max_parallelism, parallelism, kg)
        for kg in range(max_parallelism)
    ]


def test_no_python_worker_starts(spark: SparkSession) -> None:
    df = spark.createDataFrame([("a", 1)], "a string, b int").withColumn(
        "subtask", KF.assign_key_to_parallel_operator(["a", "b"], 128, 3, TUPLE(STRING, INT))
    )
    plan = df._sc._jvm.PythonSQLUtils.explainString(  # type: ignore[union-attr]
        df._jdf.queryExecution(), "extended"
    )
    assert "murmur" not in plan.lower() or "python" not in plan.lower()
    assert "Python" not in plan
    assert "raise_error" not in plan.split("Physical Plan")[1], "type checks are folded away"


# --- bad input -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key_type", "ddl"),
    [(INT, "bigint"), (INT, "string"), (LONG, "int"), (STRING, "int"), (BIG_DEC, "double")],
)
def test_column_of_another_type_fails(spark: SparkSession, key_type: KeyType, ddl: str) -> None:
    df = spark.range(1).select(F.col("id").cast(ddl).alias("key"))
    with pytest.raises(QUERY_FAILS):
        df.select(KF.hash_code("key", key_type)).collect()


def test_column_of_another_type_is_named(spark: SparkSession) -> None:
    with pytest.raises(
        QUERY_FAILS, match="key type INT takes a column of type int, got one of type bigint"
    ):
        spark.range(1).select(KF.hash_code("id", INT)).collect()


def test_key_group_out_of_range_fails(spark: SparkSession) -> None:
    df = spark.createDataFrame([(128,)], "kg int")
    with pytest.raises(QUERY_FAILS, match="key_group_id must be from 0 to 127, got 128"):
        df.select(KF.compute_operator_index_for_key_group(128, 3, "kg")).collect()


def test_uuid_that_is_none_fails(spark: SparkSession) -> None:
    df = spark.createDataFrame([("not-a-uuid",)], "key string")
    with pytest.raises(QUERY_FAILS, match="canonical text, got not-a-uuid"):
        df.select(KF.hash_code("key", UUID)).collect()


@pytest.mark.parametrize("key_type", [CHAR, BIG_INT, LOCAL_TIME, LIST(INT), ROW(INT)], ids=repr)
def test_key_type_without_expression(spark: SparkSession, key_type: KeyType) -> None:
    with pytest.raises(UnsupportedKeyTypeError, match="has no column expression"):
        KF.hash_code("key", key_type)
    with pytest.raises(UnsupportedKeyTypeError, match="has no column expression"):
        KF.hash_code(["a", "b"], TUPLE(INT, key_type))


def test_arguments_are_checked_when_the_expression_is_built(spark: SparkSession) -> None:
    calls: list[Any] = [
        lambda: KF.hash_code("key", "STRING"),  # type: ignore[arg-type]
        lambda: KF.hash_code("key", str),  # type: ignore[arg-type]
        lambda: KF.hash_code(5, INT),  # type: ignore[arg-type]
        lambda: KF.hash_code(["a", "b"], INT),
        lambda: KF.hash_code(["a"], TUPLE(INT, INT)),
        lambda: KF.hash_code("a", TUPLE(INT, INT)),
        lambda: KF.hash_code([], INT),
        lambda: KF.murmur_hash(None),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(KeyGroupsError):
            call()
    for mp in (0, 32769, True, "128", INT):
        with pytest.raises(ParallelismError, match="max_parallelism must be"):
            KF.assign_to_key_group("key", mp, INT)  # type: ignore[arg-type]
        with pytest.raises(ParallelismError, match="max_parallelism must be"):
            KF.compute_key_group_for_key_hash("code", mp)  # type: ignore[arg-type]
    for p in (0, 129, True, 2.0, INT):
        with pytest.raises(ParallelismError, match="parallelism must be"):
            KF.assign_key_to_parallel_operator("key", 128, p, INT)  # type: ignore[arg-type]
        with pytest.raises(ParallelismError, match="parallelism must be"):
            KF.compute_operator_index_for_key_group(128, p, "kg")  # type: ignore[arg-type]


def test_names_are_those_of_the_core() -> None:
    functions = set(KF.__all__) - {"ColumnOrName", "Key"}
    assert functions <= set(keygroups.__all__)
