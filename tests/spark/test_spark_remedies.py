"""The remedies that the adapter's error messages name: the other half of `test_remedies`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
from py4j.protocol import Py4JJavaError
from pyspark import __version__
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from support.bytes import savepoint_bytes as sb
from support.golden import read
from support.inside.adapter import LambdaFree
from support.remedies import Remedy, imported, in_another_python, untried

import keygroups
from keygroups.spark import functions as KF
from keygroups.spark import (
    pre_aggregate,
    read_keyed_state,
    register,
    register_data_source,
    repartition_by_subtask,
    with_routing,
)
from keygroups.types import BIG_DEC, LIST, LONG, SQL_ROW, STRING, UUID

QUERY_FAILS = (PySparkException, Py4JJavaError)
SESSIONS: list[SparkSession] = []
"""The session of the tests, as calls below take no fixture."""


@pytest.fixture(autouse=True, scope="module")
def session(spark: SparkSession) -> Iterator[None]:
    SESSIONS.append(spark)
    yield
    SESSIONS.clear()


def rows(ddl: str, *values: tuple[Any, ...]) -> DataFrame:
    return SESSIONS[0].createDataFrame(list(values), ddl)


def first(df: DataFrame, column: Column | str) -> object:
    row = df.select(column).first()
    assert row is not None
    return row[0]


def decimals() -> DataFrame:
    return SESSIONS[0].sql("SELECT cast(0.10 AS decimal(3,2)) AS key")


DECIMAL = SQL_ROW("DECIMAL(5, 1)")
BYTES = next(record for record in read("keys")[1] if record["type"] == "SQL_ROW('BYTES')")


def of_bytes(key_type: SQL_ROW | None = None) -> object:
    """Return the key group at 128 of a key that is in the golden vectors."""
    df = rows("key binary", (bytes.fromhex(BYTES["key"][0]),))
    return first(with_routing(df, "key", 128, 3, key_type), "key_group")


def of_a_list(key_type: LIST | None) -> object:
    """Return the key group of a list, of a type that Python's values have given the column."""
    df = SESSIONS[0].createDataFrame([(["A"],)], ["key"])
    return first(with_routing(df, "key", 128, 3, key_type), "key_group")


def routed(name: str) -> object:
    return first(with_routing(rows(f"key string, {name} int", ("A", 5)), "key", 128, 3), "subtask")


UUIDS = ["123E4567-E89B-12D3-A456-426614174000", "123e4567-e89b-12d3-a456-426614174000"]


def grouped_by_lower_case() -> list[Any]:
    lower = rows("id string", *((text,) for text in UUIDS)).select(F.lower("id").alias("id"))
    placed = repartition_by_subtask(lower.groupBy("id").count(), "id", 128, 3, UUID)
    return [tuple(row) for row in placed.collect()]


def counted(name: str) -> list[Any]:
    ones = [F.count("*").alias(name)]
    found = pre_aggregate(rows("key string", ("A",)), "key", ones, 128, 3)
    return [tuple(row) for row in found.collect()]


def placed(df: DataFrame, key: KF.Key = "key") -> list[int]:
    """Return the partition of each row, which is its subtask."""
    moved = repartition_by_subtask(df, key, 128, 3)
    return [row[0] for row in moved.select(F.spark_partition_id()).collect()]


def by_sql_function() -> object:
    """Hash with what `register` makes of a string, in a Spark that hashes arrays otherwise."""
    other = patch.object(LambdaFree, "array_hash", lambda self, parts: F.xxhash64(*parts) % 7)
    with other:
        return first(rows("key string", ("hello",)), LambdaFree(F).hash_string(F.col("key")))


def through_a_view() -> object:
    df = rows("key decimal(3,2)", (Decimal("1.50"),))
    with_routing(df, "key", 128, 3).createOrReplaceTempView("routed")
    return first(SESSIONS[0].sql("SELECT key_group FROM routed"), "key_group")


# --- keyed state --------------------------------------------------------------------------

STRINGS, LONGS = sb.simple("String"), sb.simple("Long")
# Key group 3 of the first subtask and 100 of the second, String "a", VoidNamespace.
PLACES = [(3, b"\x03\x02a\0"), (100, b"\x64\x02a\0")]


def state_of(folder: str, *states: tuple[bytes, bytes]) -> str:
    """Write a savepoint in which each subtask has a value of a type of its own."""
    tasks = []
    for index, ((key_group, key), (serializer, value)) in enumerate(zip(PLACES, states)):
        header = sb.keyed_header(STRINGS, [sb.state("v", "VALUE", serializer)])
        content = sb.canonical_key_group([(0, [(key, value)])])
        stream = sb.inline(header + content)
        keyed = sb.canonical(key_group, [len(header)], stream)
        tasks.append(sb.subtask(index, managed_keyed=keyed))
    return str(sb.write(Path(folder), [sb.operator(tasks, parallelism=2, uid="by-key")]))


def in_columns(*states: tuple[bytes, bytes]) -> object:
    with TemporaryDirectory() as folder:
        df = read_keyed_state(SESSIONS[0], state_of(folder, *states), "by-key", "v")
        return [row.value for row in df.collect()]


EVERYWHERE = [
    Remedy(
        "spark",
        "pip install 'keygroups[spark]'",
        lambda: imported("keygroups.spark", "pyspark"),
        lambda: first(with_routing(rows("key string", ("A",)), "key", 128, 3), "key_group"),
        104,
    ),
    Remedy(
        "spark/_columns/binary_row",
        "cast it to {} first",
        lambda: with_routing(decimals(), "key", 128, 3, DECIMAL),
        lambda: first(
            decimals().select(F.col("key").cast("decimal(5,1)")), KF.hash_code("key", DECIMAL)
        ),
        1465514398,  # the BIGINT 1 has these bytes
    ),
    Remedy(
        "spark/_columns/sql_string",
        "use keygroups.spark.functions",
        by_sql_function,
        lambda: first(rows("key string", ("hello",)), KF.hash_code("key", STRING)),
        99162322,
        error=QUERY_FAILS,
    ),
    Remedy(
        "spark/dataframe",
        " by itself: pass key_type",
        of_bytes,
        lambda: of_bytes(SQL_ROW("BYTES")),
        BYTES["key_groups"][2],
    ),
    Remedy(
        "spark/dataframe",
        " by itself: pass key_type{}, or use a column of type {}",
        lambda: of_a_list(None),
        lambda: of_a_list(LIST(STRING)),
        keygroups.assign_to_key_group(["A"], 128, LIST(STRING)),
    ),
    Remedy(
        "spark/dataframe",
        "rename it first",
        lambda: routed("subtask"),
        lambda: routed("their_subtask"),
        2,
    ),
    Remedy(
        "spark/placement",
        "group by its lower case, then use repartition_by_subtask",
        lambda: pre_aggregate(
            rows("id string", *((text,) for text in UUIDS)), "id", [F.count("*")], 128, 3, UUID
        ),
        grouped_by_lower_case,
        [(UUIDS[1], 2)],
    ),
    Remedy(
        "spark/placement",
        "name them by alias()",
        lambda: counted("key"),
        lambda: counted("n"),
        [("A", 1)],
    ),
]
ON_CLASSIC = [  # Spark Connect makes columns without a session
    Remedy(
        "spark/_columns/arguments",
        "there is no running Spark session, in which to make columns: start one first",
        lambda: in_another_python(
            "from keygroups.spark import functions as KF; KF.murmur_hash('code')"
        ),
        lambda: first(
            rows("code int", (99162322,)), KF.compute_key_group_for_key_hash("code", 128)
        ),
        35,  # the hash of "hello"
    ),
]
FROM_4 = [
    Remedy(
        "spark/register",
        "got {}: use keygroups.spark.functions, or with_routing and a temporary view",
        lambda: register(SESSIONS[0], [BIG_DEC]),
        lambda: (
            first(rows("key decimal(3,2)", (Decimal("1.50"),)), KF.hash_code("key", BIG_DEC)),
            through_a_view(),
        ),
        (31 * 150 + 2, 5),
    ),
]
BEFORE_4 = [
    Remedy(
        "spark/register",
        "Spark has from 4.0 and {} has not: use keygroups.spark.functions, or with_routing and",
        lambda: register(SESSIONS[0]),
        lambda: (first(rows("key bigint", (-1,)), KF.hash_code("key", LONG)), through_a_view()),
        (0, 5),
    ),
    Remedy(
        "spark/savepoint",
        "use read_keyed_state in a classic session",
        lambda: register_data_source(SESSIONS[0]),
        lambda: in_columns((LONGS, sb.i64(5))),
        [5],
    ),
]


def deep() -> Column:
    """Return a key that Spark itself takes and Spark Connect does not."""
    column = F.col("key")
    for _ in range(47):
        column = F.coalesce(column)
    return column


ON_CONNECT = [
    Remedy(
        "spark/_columns/connect",
        "make it a column of the DataFrame first, with df.withColumn(), and pass that column's",
        lambda: placed(rows("key string", ("A",)), deep()),
        lambda: placed(rows("key string", ("A",)).withColumn("key", deep())),
        [2],
    ),
]

REMEDIES = [*EVERYWHERE, *FROM_4, *BEFORE_4, *ON_CLASSIC, *ON_CONNECT]
IS_BEFORE_4 = __version__.startswith("3.")
TRIED = [
    *EVERYWHERE,
    *(BEFORE_4 if IS_BEFORE_4 else FROM_4),
    *(ON_CONNECT if "KEYGROUPS_TEST_REMOTE" in os.environ else ON_CLASSIC),
]


@pytest.mark.parametrize(
    "remedy",
    [
        remedy.param() if index % 12 == 0 else remedy.param(pytest.mark.slow)
        for index, remedy in enumerate(TRIED)
    ],
)
def test_remedy(remedy: Remedy) -> None:
    remedy.try_it()


# What test_spark_write_savepoint, test_spark_round_trip and the tests of state make fail, beside
# what does not.
TRIED_ELSEWHERE = [
    ("spark/_savepoint/rows/entry_rows", ": cast it"),
    ("spark/savepoint", "{} and {} must be left out {} from_savepoint, got {}"),
    ("spark/_workers", "set the environment variable PYSPARK_PYTHON, or spark.pyspark.python for"),
    ("spark/_workers", "or name the folder in the environment variable PYTHONPATH"),
    ("spark/savepoint", "{} needs NumPy and PyArrow: pip install 'keygroups[arrays]'"),
    (
        "spark/_group_by/query_checks",
        "this Spark session has no transformWithState: use PySpark 4.1's",
    ),
    (
        "spark/_group_by/query_checks",
        "transformWithState needs {}: pip install 'keygroups[state]'",
    ),
    (
        "spark/_group_by/processor",
        "order_by must be given where rows retract, got a {} without it",
    ),
    (
        "spark/_group_by/key_group",
        "{}: the state of a query stays where and as it was put, so give what the checkpoint has, "
        "or take a new checkpoint",
    ),
]


def test_every_remedy_is_tried() -> None:
    """In some version of Spark, classic or over Spark Connect."""
    assert untried(REMEDIES, TRIED_ELSEWHERE, of_spark=True) == []
