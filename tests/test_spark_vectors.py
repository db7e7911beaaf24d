"""Real Flink's vectors through Spark's columns: those here and those beside the checkout."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import pytest
import test_binary_row as sql_rows
import test_shared_vectors as shared
from key_encoding import decode_key, decode_key_type
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.utils import is_remote
from spark_values import NoSparkTypeError, in_spark, sql_type, sql_value
from test_vectors import read

from keygroups.spark import portable
from keygroups.spark.expressions import hash_key
from keygroups.spark.key_columns import KeyColumn
from keygroups.spark.path import SETTING
from keygroups.types import SQL_ROW, KeyType, ScalarType, SqlType

Vector = tuple[KeyType, T.DataType, Any, int, int]  # the last two: hash, key group of 1000
MAX_PARALLELISM = 1000


def own_vectors() -> Iterator[tuple[KeyType, Any, int, int]]:
    header, lines = read("keys")
    index = header["max_parallelisms"].index(MAX_PARALLELISM)
    for line in lines:
        key_type = decode_key_type(line["type"])
        key = decode_key(key_type, line["key"])
        yield key_type, key, line["hash"], line["key_groups"][index]


def shared_vectors() -> Iterator[tuple[KeyType, Any, int, int]]:
    for line in shared.lines("keys"):
        try:
            key_type, key = shared.decode(line["type"], line["value"])
        except (shared.NoKeyTypeError, shared.BeyondPythonError):
            continue
        yield key_type, key, line["hash"], line["kg"][str(MAX_PARALLELISM)]


def held(vectors: Iterator[tuple[KeyType, Any, int, int]]) -> Iterator[Vector]:
    for key_type, key, code, key_group in vectors:
        try:
            same_type, spark_type, value = in_spark(key_type, key)
        except NoSparkTypeError:
            continue
        if not (isinstance(value, float) and math.isnan(value)):
            yield same_type, spark_type, value, code, key_group


@pytest.fixture(params=["fast", "portable"])
def path(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    if request.param == "fast" and is_remote():
        pytest.skip("Spark Connect has no fast path")
    settings = {
        SETTING: request.param,
        # Compiling these queries takes far longer than their few rows: interpret them.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield request.param
    for name in settings:
        spark.conf.unset(name)


@pytest.mark.parametrize("source", ["own", "shared"])
def test_scalars(spark: SparkSession, path: str, source: str) -> None:
    if source == "shared" and not shared.VECTORS.is_dir():
        pytest.skip("no ../shared/vectors here")
    groups: dict[tuple[KeyType, T.DataType], list[Vector]] = defaultdict(list)
    for vector in held(own_vectors() if source == "own" else shared_vectors()):
        if isinstance(vector[0], (ScalarType, SqlType)):
            groups[vector[:2]].append(vector)
    for (key_type, spark_type), vectors in groups.items():
        schema = T.StructType([T.StructField("key", spark_type)])
        df = spark.createDataFrame([(value,) for _, _, value, _, _ in vectors], schema)
        code, key = hash_key(KeyColumn(F.col("key"), "key", spark_type), key_type)
        key_group = portable.key_group(F, code, F.lit(MAX_PARALLELISM), key)
        found = [tuple(row) for row in df.select(code, key_group).collect()]
        assert found == [vector[3:] for vector in vectors], key_type
    count = sum(map(len, groups.values()))
    print(f"{source} {path}: {count} scalar vectors of {len(groups)} types agree")
    assert count > (600 if source == "own" else 3000)


@pytest.mark.parametrize("source", ["own", "shared"])
def test_compounds(spark: SparkSession, path: str, source: str) -> None:
    """Tuples, rows and lists, a batch of columns of different types in one row."""
    if source == "shared" and not shared.VECTORS.is_dir():
        pytest.skip("no ../shared/vectors here")
    vectors = [
        vector
        for vector in held(own_vectors() if source == "own" else shared_vectors())
        if not isinstance(vector[0], (ScalarType, SqlType))
    ]
    size = 50
    if is_remote():
        # Analysing these takes a server seconds each: a sample, and less at a time.
        vectors, size = vectors[::5], 10
    for start in range(0, len(vectors), size):
        batch = vectors[start : start + size]
        schema = T.StructType([T.StructField(f"k{i}", v[1]) for i, v in enumerate(batch)])
        df = spark.createDataFrame([tuple(v[2] for v in batch)], schema)
        codes = [
            hash_key(KeyColumn(F.col(f"k{i}"), f"k{i}", v[1]), v[0])[0]
            for i, v in enumerate(batch)
        ]
        row = df.select(codes).first()
        assert row is not None
        for vector, found in zip(batch, row):
            assert found == vector[3], vector
    print(f"{source} {path}: {len(vectors)} compound vectors agree")
    assert len(vectors) > (30 if source == "own" else 100)


@pytest.mark.skipif(not sql_rows.VECTORS.is_file(), reason="no ../shared/vectors here")
def test_sql_rows(spark: SparkSession, path: str) -> None:
    """Every row that Spark can hold; of the portable path, slow to analyse, a sample."""
    groups: dict[SQL_ROW, list[tuple[tuple[Any, ...], int, int]]] = defaultdict(list)
    for line in sql_rows.vectors():
        key_type = SQL_ROW(*(sql_rows.SCHEMA.get(text, text) for text in line["schema"]))
        try:
            list(map(sql_type, key_type.fields))
            key = tuple(
                sql_value(field, sql_rows.python(field, value))
                for field, value in zip(key_type.fields, line["values"])
            )
        except (NoSparkTypeError, sql_rows.BeyondPythonError):
            continue
        groups[key_type].append((key, line["hash"], line["kg"][str(MAX_PARALLELISM)]))
    chosen = list(groups)[:: 1 if path == "fast" else 8 if is_remote() else 3]
    for start in range(0, len(chosen), 10):
        check_sql_rows(spark, [(key_type, groups[key_type]) for key_type in chosen[start:][:10]])
    count = sum(len(groups[key_type]) for key_type in chosen)
    print(f"{path}: {count} SQL rows of {len(chosen)} of {len(groups)} schemas agree")
    assert count > (1500 if path == "fast" else 100)


def check_sql_rows(
    spark: SparkSession, groups: list[tuple[SQL_ROW, list[tuple[tuple[Any, ...], int, int]]]]
) -> None:
    """Ask for rows of several key types side by side; shorter lists go on in nulls."""
    schema, columns = T.StructType(), []
    for i, (key_type, _) in enumerate(groups):
        fields = [
            KeyColumn(F.col(f"k{i}_{j}"), f"k{i}_{j}", sql_type(field))
            for j, field in enumerate(key_type.fields)
        ]
        for j, field in enumerate(key_type.fields):
            schema.add(f"k{i}_{j}", sql_type(field))
        code, key = hash_key(fields, key_type)
        columns += [code, portable.key_group(F, code, F.lit(MAX_PARALLELISM), key)]
    nulls = [[None] * len(key_type.fields) for key_type, _ in groups]
    rows = [
        [value for keys, null in zip(line, nulls) for value in (keys[0] if keys else null)] + [0]
        for line in zip_longest(*(vectors for _, vectors in groups))
    ]
    found = (
        spark.createDataFrame(rows, schema.add("more", T.IntegerType())).select(columns).collect()
    )
    for i, (key_type, vectors) in enumerate(groups):
        pairs = [tuple(row[2 * i : 2 * i + 2]) for row in found]
        assert pairs[: len(vectors)] == [vector[1:] for vector in vectors], key_type
