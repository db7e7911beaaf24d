"""Flink's routing in Spark SQL text."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from keygroups.errors import InvalidTypeError, KeyGroupsError, show
from keygroups.key_group_range import UPPER_BOUND_MAX_PARALLELISM
from keygroups.spark import portable
from keygroups.spark.expressions import SPARK_TYPES
from keygroups.spark.sql_text import SqlFunctions, SqlText
from keygroups.types import BIG_DEC, KeyType

__all__ = ["register"]

# A SQL function's parameter has one precision and scale, and the scale is part of the hash.
_KEY_TYPES = {
    key_type: spark for key_type, spark in SPARK_TYPES.items() if key_type is not BIG_DEC
}
_UPPER_BOUND = str(UPPER_BOUND_MAX_PARALLELISM)


def register(spark: SparkSession) -> list[str]:
    """Make temporary SQL functions for Flink's routing, and return their names.

    For each scalar key type that a column holds, but for BIG_DEC, in lower case:

    - `flink_hash_code_string(key)`, `flink_hash_code_long(key)`, ...: the Java hashCode
    - `flink_key_group_string(key, max_parallelism)`, ...: the key group

    and of numbers:

    - `flink_key_group_for_key_hash(key_hash, max_parallelism)`: the key group of a hash code
    - `flink_operator_index(max_parallelism, parallelism, key_group)`: the subtask

    They are SQL functions whose bodies are the portable expressions, so they work over Spark
    Connect too. A null gives null; an argument out of bounds fails the query. Spark casts
    arguments to the type that a function takes, as it does for any: name the type that the
    Flink job has.

    Raises KeyGroupsError before Spark 4.0, which has no SQL functions, and InvalidTypeError
    for what is no session.

    >>> names = register(spark)
    >>> spark.sql("SELECT flink_key_group_string('A', 128) AS key_group").first()
    Row(key_group=104)
    """
    if not hasattr(spark, "version"):  # classic and Connect sessions share no class in 3.5
        raise InvalidTypeError(f"spark must be a SparkSession, got {show(spark)}")
    if int(spark.version.partition(".")[0]) < 4:
        raise KeyGroupsError(
            f"register needs SQL functions, which Spark has from 4.0 and {spark.version} has not: "
            "use keygroups.spark.functions, or with_routing and a temporary view"
        )
    functions = _functions_of_numbers()
    for key_type in _KEY_TYPES:
        functions |= _functions_of_keys(key_type)
    for name, definition in functions.items():
        spark.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION {name}{definition}")
    return list(functions)


def _functions_of_keys(key_type: KeyType) -> dict[str, str]:
    """Return parameters and body of the functions of a key type, by name."""
    F: Any = SqlFunctions()
    key: Any = SqlText("key")
    max_parallelism: Any = SqlText("max_parallelism")
    code: Any = portable.HASHERS[key_type](F, key)
    group: Any = portable.key_group(F, code, max_parallelism, key)
    name, spark_type = repr(key_type).lower(), _KEY_TYPES[key_type]
    return {
        f"flink_hash_code_{name}": f"(key {spark_type}) RETURNS INT RETURN {code.text}",
        f"flink_key_group_{name}": f"(key {spark_type}, max_parallelism INT) RETURNS INT RETURN "
        + _bounded(group.text, "max_parallelism", 1, _UPPER_BOUND),
    }


def _functions_of_numbers() -> dict[str, str]:
    """Return parameters and body of the functions of hash codes and key groups, by name."""
    F: Any = SqlFunctions()
    names = ("key_hash", "max_parallelism", "parallelism", "key_group")
    parameters: list[Any] = [SqlText(name) for name in names]
    key_hash, max_parallelism, parallelism, key_group = parameters
    group: Any = portable.key_group(F, key_hash, max_parallelism, key_hash)
    index: Any = portable.operator_index(F, key_group, max_parallelism, parallelism)
    body = index.text
    for name, low, high in (
        ("key_group", 0, "max_parallelism - 1"),
        ("parallelism", 1, "max_parallelism"),
        ("max_parallelism", 1, _UPPER_BOUND),
    ):
        body = _bounded(body, name, low, high)
    return {
        "flink_key_group_for_key_hash": "(key_hash INT, max_parallelism INT) RETURNS INT RETURN "
        + _bounded(group.text, "max_parallelism", 1, _UPPER_BOUND),
        "flink_operator_index": "(max_parallelism INT, parallelism INT, key_group INT) "
        f"RETURNS INT RETURN {body}",
    }


def _bounded(body: str, name: str, low: int, high: str) -> str:
    """Wrap a body so that the query fails where an argument is out of bounds."""
    return (
        f"CASE WHEN {name} BETWEEN {low} AND {high} THEN {body} WHEN {name} IS NOT NULL THEN "
        f"raise_error(concat('{name} must be from {low} to ', {high}, ', got ', {name})) END"
    )
