"""The functions for Spark SQL text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from test_spark_functions import COLUMNS

import keygroups
from keygroups import InvalidTypeError, KeyGroupsError
from keygroups.spark import register
from keygroups.types import BIG_DEC, INT, STRING, UUID, KeyType

QUERY_FAILS = (PySparkException, Py4JJavaError)


@pytest.fixture
def functions(spark: SparkSession) -> Iterator[list[str]]:
    if spark.version < "4":
        pytest.skip("Spark has SQL functions from 4.0")
    names = register(spark)
    yield names
    for name in names:
        spark.sql(f"DROP TEMPORARY FUNCTION {name}")


SCALARS = [column for column in COLUMNS if column[0] is not BIG_DEC]


@pytest.mark.parametrize(("key_type", "ddl", "keys"), SCALARS, ids=[ddl for _, ddl, _ in SCALARS])
def test_scalar(
    spark: SparkSession, functions: list[str], key_type: KeyType, ddl: str, keys: list[Any]
) -> None:
    keys = keys[:300]
    name = repr(key_type).lower()
    spark.createDataFrame([(key,) for key in [*keys, None]], f"key {ddl}").createOrReplaceTempView(
        "sql_keys"
    )
    rows = spark.sql(
        f"SELECT flink_hash_code_{name}(key), flink_key_group_{name}(key, 1000) FROM sql_keys"
    ).collect()
    assert tuple(rows.pop()) == (None, None)
    assert [tuple(row) for row in rows] == [
        (keygroups.hash_code(key, key_type), keygroups.assign_to_key_group(key, 1000, key_type))
        for key in keys
    ]


def test_uuid_and_codes(spark: SparkSession, functions: list[str]) -> None:
    text = "326a7488-92a3-3829-e41c-dffe3daa8d61"  # its hash is Flink's, in the vectors
    row = spark.sql(
        f"SELECT flink_hash_code_uuid('{text}'), flink_key_group_for_key_hash(99162322, 128), "
        "flink_operator_index(128, 3, 43), flink_operator_index(128, 3, NULL)"
    ).first()
    assert row is not None
    assert tuple(row) == (2038373950, 35, 1, None)


def test_names(functions: list[str]) -> None:
    assert "flink_key_group_string" in functions
    assert {name.removeprefix("flink_hash_code_") for name in functions} >= {
        repr(key_type).lower() for key_type in (STRING, INT, UUID)
    }
    assert not any("big_dec" in name for name in functions)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("flink_key_group_string('a', 0)", "max_parallelism must be from 1 to 32768, got 0"),
        ("flink_key_group_int(1, 32769)", "max_parallelism must be from 1 to 32768, got 32769"),
        ("flink_operator_index(128, 129, 0)", "parallelism must be from 1 to 128, got 129"),
        ("flink_operator_index(128, 3, 128)", "key_group must be from 0 to 127, got 128"),
        ("flink_operator_index(0, 1, 0)", "max_parallelism must be from 1 to 32768, got 0"),
        ("flink_hash_code_uuid('x')", "canonical text, got x"),
    ],
)
def test_bounds(spark: SparkSession, functions: list[str], call: str, says: str) -> None:
    with pytest.raises(QUERY_FAILS, match=says):
        spark.sql(f"SELECT {call}").collect()


def test_before_4(spark: SparkSession) -> None:
    if spark.version >= "4":
        pytest.skip("this Spark has SQL functions")
    with pytest.raises(KeyGroupsError, match="has not: use"):
        register(spark)


def test_what_is_no_session() -> None:
    with pytest.raises(InvalidTypeError, match="spark must be a SparkSession"):
        register("spark")  # type: ignore[arg-type]
