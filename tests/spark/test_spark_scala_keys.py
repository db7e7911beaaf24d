"""Keys of Scala's classes and of the JDK's as columns: each backend agrees with the core."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from support.inside.adapter import SETTING
from support.spark.spark_backends import BACKENDS, skip_without

from keygroups import InvalidTypeError, UnsupportedKeyTypeError, assign_to_key_group, hash_code
from keygroups.savepoint.values import Left, Right
from keygroups.spark import functions as KF
from keygroups.spark import infer_key_type, skew_report, with_routing
from keygroups.types import (
    BYTE_BUFFER,
    CASE_CLASS,
    DOUBLE,
    FLOAT,
    HASHED,
    INT,
    LONG,
    OBJECTS_HASH,
    ROW,
    SCALA_BIG_INT,
    SCALA_EITHER,
    SCALA_OPTION,
    SCALA_TUPLE,
    SET,
    STRING,
    TUPLE,
    KeyType,
)

_SCHEMA = "d double, f float, l bigint, s string, b binary, i int, k struct<x: bigint, y: string>"
_NUMBERS = [0, 1, -1, 2**31 - 1, -(2**31), 2**31, 2**53, -(2**40), 2**62, -(2**63), 2**63 - 1]
_DOUBLES = [
    0.0,
    -0.0,
    0.1,
    1.5,
    math.nan,
    math.inf,
    -math.inf,
    2.0**31,
    2.0**63,
    -(2.0**63),
    1e300,
]
_DOUBLES += [1e19, 2.0**53, -3.0, 5e-324]


def _single(number: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return math.inf


def _rows() -> list[tuple[Any, ...]]:
    rows = []
    for index in range(24):
        number = _NUMBERS[index % len(_NUMBERS)]
        double = _DOUBLES[index % len(_DOUBLES)]
        text = ["a", "h\u00e9llo", "\U0001f600", ""][index % 4]
        data = [b"", b"abc", b"\x03abc", b"\xff\x80", bytes(70)][index % 5]
        struct_ = None if index % 7 == 0 else (number, None if index % 5 == 0 else text)
        rows.append((double, _single(double), number, text, data, index * 7919 - 50_000, struct_))
    return [*rows, (None,) * 7]


ROWS = _rows()
_NAMES = [column.split()[0] for column in _SCHEMA.partition(", k ")[0].split(", ")] + ["k"]


def key_types(scala: str) -> Iterator[tuple[Any, KeyType]]:
    """Yield columns and a key type of them."""
    pair = CASE_CLASS("Pair", LONG, STRING, scala=scala)
    yield ["d", "f", "l"], SCALA_TUPLE(DOUBLE, FLOAT, LONG, scala=scala)
    yield ["s", "i"], CASE_CLASS("Key", STRING, INT, scala=scala)
    yield (
        ["d", "b", "s"],
        SCALA_TUPLE(
            SCALA_OPTION(DOUBLE, scala=scala), BYTE_BUFFER, OBJECTS_HASH(STRING), scala=scala
        ),
    )
    yield ["k", "i"], SCALA_TUPLE(SCALA_OPTION(pair, scala=scala), HASHED, scala=scala)
    yield "k", pair
    yield "l", SCALA_OPTION(LONG, scala=scala)
    yield ["i", "k"], TUPLE(SCALA_OPTION(INT, scala=scala), pair)
    yield ["i", "s"], ROW(SCALA_OPTION(INT, scala=scala), STRING)
    yield ["l"] * 18, CASE_CLASS("Wide", *[LONG] * 18, scala=scala)


def others() -> Iterator[tuple[Any, KeyType]]:
    yield "b", BYTE_BUFFER
    yield "i", HASHED
    yield ["d", "s"], OBJECTS_HASH(DOUBLE, STRING)
    yield ["b", "i"], OBJECTS_HASH(BYTE_BUFFER, HASHED, start=-17)


@pytest.fixture(params=BACKENDS)
def df(
    request: pytest.FixtureRequest, spark: SparkSession, interpreted: None
) -> Iterator[DataFrame]:
    skip_without(request.param)
    spark.conf.set(SETTING, request.param)
    yield spark.createDataFrame(ROWS, _SCHEMA).coalesce(1)
    spark.conf.unset(SETTING)


def key_of(row: tuple[Any, ...], columns: Any, key_type: KeyType) -> Any:
    if isinstance(columns, str):
        return row[_NAMES.index(columns)]
    if isinstance(key_type, OBJECTS_HASH) and len(columns) == 1:
        return (key_of(row, columns[0], key_type.fields[0]),)
    return tuple(
        (key_of(row, column, field),)
        if isinstance(field, OBJECTS_HASH)
        else key_of(row, column, field)
        for column, field in zip(columns, key_type.parts)
    )


@pytest.mark.long
@pytest.mark.parametrize("ansi", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_every_backend_agrees_with_the_core(
    spark: SparkSession, df: DataFrame, ansi: bool
) -> None:
    spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    cases = [*key_types("2.12"), *key_types("2.13"), *others()]
    routed = df
    for number, (columns, key_type) in enumerate(cases):
        nested = [
            [c] if isinstance(t, OBJECTS_HASH) else c for c, t in zip(columns, key_type.parts)
        ]
        key = columns if isinstance(columns, str) else nested
        routed = with_routing(routed, key, 32768, 8, key_type).drop("subtask")
        routed = routed.withColumnRenamed("key_group", f"key_group{number}")
    found = routed.select(*(f"key_group{number}" for number in range(len(cases)))).collect()
    spark.conf.unset("spark.sql.ansi.enabled")
    for number, (columns, key_type) in enumerate(cases):
        for row, places in zip(ROWS, found):
            key = key_of(row, columns, key_type)
            is_none = key is None and not isinstance(key_type, SCALA_OPTION)
            expected = None if is_none else assign_to_key_group(key, 32768, key_type)
            assert places[number] == expected, (key_type, key)


def test_columns_of_unknown_types(spark: SparkSession) -> None:
    """A Column has none before it is bound: the query checks it."""
    df = spark.createDataFrame([("hello", 7, b"abc")], "s string, i int, b binary")
    pair = CASE_CLASS("Key", STRING, INT, scala="2.13")
    option = SCALA_OPTION(LONG, scala="2.12")
    row = df.select(
        KF.hash_code(["s", "i"], pair),
        KF.hash_code("b", BYTE_BUFFER),
        KF.hash_code("i", HASHED),
        KF.hash_code(["s"], SCALA_OPTION(STRING, scala="2.13")),
    ).first()
    assert row is not None
    assert tuple(row) == (
        hash_code(("hello", 7), pair),
        128065,
        7,
        hash_code("hello", SCALA_OPTION(STRING, scala="2.13")),
    )
    with pytest.raises(Exception, match="key type LONG takes a column of type bigint"):
        df.select(KF.hash_code("i", option)).collect()
    with pytest.raises(InvalidTypeError, match="key type BYTE_BUFFER takes a column of type bin"):
        with_routing(df, "s", 128, 8, BYTE_BUFFER)


def test_case_class_without_fields(spark: SparkSession) -> None:
    df = spark.range(1).select(KF.hash_code([], CASE_CLASS("Empty", scala="2.13")))
    assert df.first() == (hash_code("Empty"),)


def test_no_column_is_a_hash_by_itself(spark: SparkSession) -> None:
    df = spark.createDataFrame([(7, "a")], "i int, s string")
    assert infer_key_type(df, ["i", "s"]) == TUPLE(INT, STRING)


def test_refused(spark: SparkSession) -> None:
    df = spark.createDataFrame([(b"abc", 1)], "b binary, i int")
    with pytest.raises(UnsupportedKeyTypeError, match=r"type binary: .*key_type=BYTE_BUFFER"):
        with_routing(df, "b", 128, 8)
    either = SCALA_EITHER(INT, INT, scala="2.12")
    for key_type in (SET(INT), either, SCALA_BIG_INT):
        says = f"key type {re.escape(repr(key_type))} has no column expression"
        for key in ("i", ["i"]):
            with pytest.raises(UnsupportedKeyTypeError, match=says):
                with_routing(df, key, 128, 8, key_type)
            with pytest.raises(UnsupportedKeyTypeError, match=says):
                KF.hash_code(key, key_type)
        with pytest.raises(UnsupportedKeyTypeError, match=says):
            with_routing(df, ["i"], 128, 8, SCALA_TUPLE(key_type, scala="2.12"))


@pytest.mark.long
def test_an_either_in_two_columns(spark: SparkSession) -> None:
    """The docstring's way: a case class of each side, and the hash of the one that is there."""
    either = SCALA_EITHER(LONG, STRING, scala="2.13")
    keys: list[Any] = [Left(1), Right("a"), Left(2**40), Right(None)]
    rows = [
        (
            isinstance(key, Left),
            *((key.value, None) if isinstance(key, Left) else (None, key.value)),
        )
        for key in keys
    ]
    df = spark.createDataFrame(rows, "is_left boolean, l bigint, r string")
    left = KF.hash_code(["l"], CASE_CLASS("Left", LONG, scala="2.13"))
    right = KF.hash_code(["r"], CASE_CLASS("Right", STRING, scala="2.13"))
    hashed = F.when(F.col("is_left"), left).otherwise(right)
    found = df.select(KF.assign_to_key_group(hashed, 128, HASHED)).collect()
    assert [row[0] for row in found] == [assign_to_key_group(key, 128, either) for key in keys]


@pytest.mark.long
def test_skew_of_options(spark: SparkSession) -> None:
    df = spark.createDataFrame([(0.0,), (-0.0,), (None,), (None,)], "d double")
    report = skew_report(df, "d", 128, 8, SCALA_OPTION(DOUBLE, scala="2.13"), 3)
    assert sum(row.records for row in report.subtasks) == 4
