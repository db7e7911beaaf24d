"""Real Flink's vectors through Spark's columns: our own set and the independent one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from itertools import zip_longest
from typing import Any, NamedTuple

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.utils import is_remote
from support.golden import lines, read
from support.inside.adapter import (
    PORTABLE,
    SETTING,
    KeyColumn,
    KeyTree,
    Portable,
    build,
    current_backend,
    hash_key,
)
from support.keys import java_values, sql_values
from support.keys.key_encoding import decode_key, decode_key_type
from support.selections import first_by_default
from support.spark.spark_backends import BACKENDS, skip_without
from support.spark.spark_values import NoSparkTypeError, in_spark, sql_type, sql_value

from keygroups.types import SQL_ROW, JavaSqlType, KeyType, ScalarType

MAX_PARALLELISM = 1000


class Group(NamedTuple):
    """Vectors of a key type: the values of the columns, and real Flink's hash and key group."""

    key_type: KeyType
    columns: list[T.DataType]
    vectors: list[tuple[tuple[Any, ...], int, int]]


def own_vectors() -> Iterator[tuple[KeyType, Any, int, int]]:
    header, own = read("keys")
    index = header["max_parallelisms"].index(MAX_PARALLELISM)
    for line in own:
        key_type = decode_key_type(line["type"])
        key = decode_key(key_type, line["key"])
        yield key_type, key, line["hash"], line["key_groups"][index]


def independent_vectors() -> Iterator[tuple[KeyType, Any, int, int]]:
    for line in lines("independent/keys"):
        try:
            key_type, key = java_values.decode(line["type"], line["value"])
        except (java_values.NoKeyTypeError, java_values.BeyondPythonError):
            continue
        yield key_type, key, line["hash"], line["kg"][str(MAX_PARALLELISM)]


SOURCES = {"own": own_vectors, "independent": independent_vectors}


def held(vectors: Iterator[tuple[KeyType, Any, int, int]], *, scalar: bool) -> list[Group]:
    """Return the scalar or the other vectors that a Spark column can hold, by type."""
    groups: dict[tuple[KeyType, T.DataType], Group] = {}
    for key_type, key, code, key_group in vectors:
        try:
            same_type, spark_type, value = in_spark(key_type, key)
        except NoSparkTypeError:
            continue
        is_nan = isinstance(value, float) and math.isnan(value)
        if isinstance(same_type, (ScalarType, JavaSqlType)) is scalar and not is_nan:
            group = groups.setdefault((same_type, spark_type), Group(same_type, [spark_type], []))
            group.vectors.append(((value,), code, key_group))
    return list(groups.values())


@pytest.fixture(params=BACKENDS)
def backend(
    request: pytest.FixtureRequest, spark: SparkSession, interpreted: None
) -> Iterator[str]:
    skip_without(request.param)
    spark.conf.set(SETTING, request.param)
    yield request.param
    spark.conf.unset(SETTING)


@pytest.mark.parametrize("source", first_by_default(1, ["independent", "own"]))
def test_scalars(spark: SparkSession, backend: str, source: str) -> None:
    groups = held(SOURCES[source](), scalar=True)
    assert check(spark, groups, f"{source} {backend} scalars") > (600 if source == "own" else 3000)


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_compounds(spark: SparkSession, backend: str, source: str) -> None:
    """Tuples, rows and lists."""
    groups = held(SOURCES[source](), scalar=False)
    if is_remote():
        groups = groups[::5]  # analysing these takes a server seconds each
    assert check(spark, groups, f"{source} {backend} compounds") > (30 if source == "own" else 100)


@pytest.mark.long
@pytest.mark.parametrize("sample", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_sql_rows(spark: SparkSession, backend: str, sample: bool) -> None:
    """Every row that Spark can hold; on the portable backend, which is slow, every third type."""
    groups: dict[SQL_ROW, Group] = {}
    for line in lines("independent/binaryrow"):
        key_type = SQL_ROW(*(sql_values.SCHEMA.get(text, text) for text in line["schema"]))
        try:
            types = list(map(sql_type, key_type.fields))
            key = tuple(
                sql_value(field, sql_values.python(field, value))
                for field, value in zip(key_type.fields, line["values"])
            )
        except (NoSparkTypeError, sql_values.BeyondPythonError):
            continue
        group = groups.setdefault(key_type, Group(key_type, types, []))
        group.vectors.append((key, line["hash"], line["kg"][str(MAX_PARALLELISM)]))
    step = 16 if sample or is_remote() else 3 if backend == "portable" else 1
    chosen = list(groups.values())[::step]
    assert check(spark, chosen, f"{backend} SQL rows") > (1500 if step == 1 else 100)


def check(spark: SparkSession, groups: list[Group], what: str) -> int:
    """Return the number of vectors that agree, which have to be all."""
    at_once = 10 if is_remote() else 50
    # Those of a length together, as they are padded to that of the longest.
    groups = sorted(groups, key=lambda group: len(group.vectors))
    for start in range(0, len(groups), at_once):
        check_side_by_side(spark, groups[start : start + at_once])
    count = sum(len(group.vectors) for group in groups)
    print(f"{what}: {count} vectors of {len(groups)} types agree")
    return count


def hash_of(key_type: KeyType, backend: Portable, key: KeyTree) -> Column:
    code, _ = hash_key(backend, key, key_type)
    return code


def check_side_by_side(spark: SparkSession, groups: list[Group]) -> None:
    """Ask for keys of several types in one query; shorter lists go on in nulls."""
    schema, codes, columns = T.StructType(), [], []
    for i, (key_type, types, _) in enumerate(groups):
        fields = []
        for j, spark_type in enumerate(types):
            name = f"k{i}_{j}"
            schema.add(name, spark_type)
            fields.append(KeyColumn(F.col(name), name, spark_type))
        tree: KeyTree = fields if isinstance(key_type, SQL_ROW) else fields[0]
        code = build(tree, partial(hash_of, key_type))
        _, key = hash_key(current_backend(), tree, key_type)
        codes.append(code.alias(f"code{i}"))
        code = F.col(f"code{i}")  # once in the plan, which is what takes the time
        columns += [code, PORTABLE.key_group(code, F.lit(MAX_PARALLELISM), key)]
    nulls = [(None,) * len(types) for _, types, _ in groups]
    rows = [
        [value for vector, null in zip(line, nulls) for value in (vector[0] if vector else null)]
        for line in zip_longest(*(vectors for _, _, vectors in groups))
    ]
    found = spark.createDataFrame(rows, schema).select("*", *codes).select(columns).collect()
    for i, (key_type, _, vectors) in enumerate(groups):
        pairs = [tuple(row[2 * i : 2 * i + 2]) for row in found]
        assert pairs[: len(vectors)] == [vector[1:] for vector in vectors], key_type
