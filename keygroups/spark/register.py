"""Flink's routing in Spark SQL text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from keygroups._checks import check_class, iterate, show
from keygroups.assignment import UPPER_BOUND_MAX_PARALLELISM
from keygroups.errors import InvalidValueError, KeyGroupsError, UnsupportedKeyTypeError
from keygroups.hashing import hash_code
from keygroups.spark._columns.arguments import check_session
from keygroups.spark._columns.key_hash import SPARK_TYPES
from keygroups.spark._columns.portable import Portable
from keygroups.spark._columns.sql_string import LambdaFree
from keygroups.spark._columns.sql_text import SqlFunctions, SqlText
from keygroups.types import (
    BIG_DEC,
    BYTE_BUFFER,
    HASHED,
    INSTANT,
    LOCAL_DATE,
    LOCAL_DATE_TIME,
    STRING,
    KeyType,
)

__all__ = ["register"]
__dir__ = __all__.copy

# A SQL function's parameter has one precision and scale, and the scale is part of the hash of a
# BIG_DEC. That of a BYTE_BUFFER takes a lambda function, and HASHED are numbers as they are.
_LEFT_OUT = (BIG_DEC, BYTE_BUFFER, HASHED)
_KEY_TYPES = {
    key_type: spark for key_type, spark in SPARK_TYPES.items() if key_type not in _LEFT_OUT
}
_KEY_TYPES[INSTANT] = "timestamp_ltz"  # a setting makes a mere "timestamp" one without a zone
_PORTABLE = Portable(SqlFunctions())
_LAMBDA_FREE = LambdaFree(SqlFunctions())
_KEY: Any = SqlText("key")
_MAX_PARALLELISM: Any = SqlText("max_parallelism")
_PARALLELISM: Any = SqlText("parallelism")
_PARALLELISM_BOUNDS = (_PARALLELISM, 1, _MAX_PARALLELISM)
_ANSI, _ZONE = "spark.sql.ansi.enabled", "spark.sql.session.timeZone"
_OF_TIME = (LOCAL_DATE, LOCAL_DATE_TIME, INSTANT)
_TIME_TEXT = "[0-9]-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}"
"""A date and time somewhere in a text, as Spark writes a timestamp in the session's zone."""
# Known keys, to try the hash of strings on: of each length of UTF-8, and every byte's top bit.
_PROBES = ["", "hello", "h\u00e9llo", "\u9020 \uff0f", "\U0001f600"]


def register(spark: SparkSession, key_types: Iterable[KeyType] | None = None) -> list[str]:
    """Make temporary SQL functions for Flink's routing, and return their names.

    For each of `key_types`, which are scalar and, if None, all that a column holds but for
    BIG_DEC, BYTE_BUFFER and HASHED, in lower case:

    - `flink_hash_code_string(key)`, `flink_hash_code_long(key)`, ...: the Java hashCode
    - `flink_key_group_string(key, max_parallelism)`, ...: the key group
    - `flink_subtask_string(key, max_parallelism, parallelism)`, ...: the subtask

    and of numbers:

    - `flink_key_group_for_key_hash(key_hash, max_parallelism)`: the key group of a hash code
    - `flink_operator_index(max_parallelism, parallelism, key_group)`: the subtask

    They are SQL functions, so they work over Spark Connect too, and take one another's results.
    A null gives null; an argument out of bounds fails the query. Name the type that the Flink
    job has: Spark casts an argument of another to it, as it does for any function. These casts
    are of ANSI mode whatever the session's is, so that text that is no number and a number out of
    range fail the query, but a fraction is cut off, as are nanoseconds. Casts of times are in the
    session's time zone when `register` was called. Once the session has another one, functions of
    dates and times fail the query, as do those of strings for text with a date and time in it:
    call it again.

    Spark refuses SQL functions in ORDER BY, DISTRIBUTE BY, CLUSTER BY, `explode`, VALUES,
    persistent views and functions, and with a lambda's variable as an argument: name that column
    in a subquery first.

    Raises KeyGroupsError before Spark 4.0, which has no SQL functions, InvalidTypeError for
    what is no session or no iterable of key types, UnsupportedKeyTypeError for a key type
    without a function, and InvalidValueError for one given twice.

    >>> names = register(spark)
    >>> spark.sql("SELECT flink_subtask_string('A', 128, 3) AS subtask").first()
    Row(subtask=2)
    """
    check_session(spark)
    chosen = list(_KEY_TYPES) if key_types is None else _checked(key_types)
    if int(spark.version.partition(".")[0]) < 4:
        raise KeyGroupsError(
            f"register needs SQL functions, which Spark has from 4.0 and {spark.version} has not: "
            "use keygroups.spark.functions, or with_routing and a temporary view"
        )
    zone = str(spark.conf.get(_ZONE))
    functions = _functions_of_numbers()
    for key_type in chosen:
        # A function without a lambda function may be an argument of one that has one.
        backend = _LAMBDA_FREE if key_type is STRING else _PORTABLE
        functions |= _functions_of_keys(key_type, zone, backend)
    _create(spark, functions)
    if STRING in chosen and not _is_right(spark):
        _create(spark, _functions_of_keys(STRING, zone, _PORTABLE))
    return list(functions)


def _checked(key_types: Iterable[KeyType]) -> list[KeyType]:
    """Return the key types, or raise for one that has no function or is there twice."""
    chosen: list[KeyType] = []
    for key_type in iterate("key_types", "key types", key_types):
        check_class("key_types", key_type, KeyType, "values of keygroups.types such as STRING")
        if key_type not in _KEY_TYPES:
            raise UnsupportedKeyTypeError(
                f"key_types must be of {', '.join(map(repr, _KEY_TYPES))}, got {show(key_type)}: "
                "use keygroups.spark.functions, or with_routing and a temporary view"
            )
        if key_type in chosen:
            raise InvalidValueError(f"key_types must name each once, got {key_type} twice")
        chosen.append(key_type)
    return chosen


def _create(spark: SparkSession, functions: dict[str, str]) -> None:
    """Create functions that cast their arguments in ANSI mode, whatever the session has later.

    Spark keeps the settings with a function at the moment when it is made.
    """
    before = spark.conf.get(_ANSI, None)
    spark.conf.set(_ANSI, "true")
    try:
        for name, definition in functions.items():
            spark.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION {name}{definition}")
    finally:
        if before is None:
            spark.conf.unset(_ANSI)
        else:
            spark.conf.set(_ANSI, before)


def _is_right(spark: SparkSession) -> bool:
    """Return whether the lambda-free expression gives Java's hash codes on this Spark."""
    keys = ", ".join(f"('{key}')" for key in _PROBES)
    try:
        rows = spark.sql(f"SELECT flink_hash_code_string(key) FROM VALUES {keys} AS t(key)")
        return [row[0] for row in rows.collect()] == [hash_code(key, STRING) for key in _PROBES]
    except PySparkException:
        return False


def _functions_of_keys(key_type: KeyType, zone: str, backend: Portable) -> dict[str, str]:
    """Return parameters and body of the functions of a key type, by name.

    The bodies call no other SQL functions, which Spark would analyse anew for each that does.
    """
    code = _in_zone(key_type, backend.hashers[key_type](_KEY), zone)
    # Spark computes once what a code has twice, if the code is not within a CASE: those of bounds
    # are gone where the bounds are constants, and that of a null key is in the divisor.
    group = _PORTABLE.finalise(code) % _PORTABLE.F.when(_KEY.isNotNull(), _MAX_PARALLELISM)
    index = _PORTABLE.operator_index(group, _MAX_PARALLELISM, _PARALLELISM)
    return _defined(key_type, code.text, _in_bounds(group), _in_bounds(index, _PARALLELISM_BOUNDS))


def _in_zone(key_type: KeyType, code: Any, zone: str) -> Any:
    """Wrap a hash code so that the query fails where the argument was cast in another time zone.

    Spark casts it in the zone when the function was made; that of the query is a constant of it.
    A function does not know which type its argument had before.
    """
    F = _PORTABLE.F
    if key_type is STRING:
        is_at_stake = _KEY.rlike(_TIME_TEXT)
    elif key_type in _OF_TIME:
        is_at_stake = _KEY.isNotNull()
    else:
        return code
    message = (
        f"flink functions of {key_type} are of the time zone {zone}, in which register was "
        f"called, and {_ZONE} is another one now: call register again"
    )
    is_wrong = (F.current_timezone() != zone) & is_at_stake
    return F.when(is_wrong, F.raise_error(F.lit(message)).cast("int")).otherwise(code)


def _defined(key_type: KeyType, code: str, group: str, index: str) -> dict[str, str]:
    name, key = repr(key_type).lower(), f"key {_KEY_TYPES[key_type]}"
    parameters = f"{key}, max_parallelism INT"
    return {
        f"flink_hash_code_{name}": f"({key}) RETURNS INT RETURN {code}",
        f"flink_key_group_{name}": f"({parameters}) RETURNS INT RETURN {group}",
        f"flink_subtask_{name}": f"({parameters}, parallelism INT) RETURNS INT RETURN {index}",
    }


def _functions_of_numbers() -> dict[str, str]:
    """Return parameters and body of the functions of hash codes and key groups, by name."""
    key_hash: Any = SqlText("key_hash")
    key_group: Any = SqlText("key_group")
    group = _PORTABLE.key_group(key_hash, _MAX_PARALLELISM, key_hash)
    index: Any = _PORTABLE.operator_index(key_group, _MAX_PARALLELISM, _PARALLELISM)
    of_key_group = (key_group, 0, _MAX_PARALLELISM - 1)
    return {
        "flink_key_group_for_key_hash": "(key_hash INT, max_parallelism INT) "
        f"RETURNS INT RETURN {_in_bounds(group)}",
        "flink_operator_index": "(max_parallelism INT, parallelism INT, key_group INT) "
        f"RETURNS INT RETURN {_in_bounds(index, _PARALLELISM_BOUNDS, of_key_group)}",
    }


def _in_bounds(body: Any, *bounds: tuple[Any, int, Any]) -> str:
    """Wrap a body so that the query fails where an argument is not from a number to another.

    An error is cast, and its text not put together by `concat`, which takes its numbers for text:
    Spark's analyser takes one more pass for a cast that it has to find by itself.
    """
    F, checked = _PORTABLE.F, SqlText("")
    for argument, low, high in ((_MAX_PARALLELISM, 1, UPPER_BOUND_MAX_PARALLELISM), *bounds):
        message = f"{argument.text} must be from {low} to %d, got %d"
        refused = F.raise_error(F.printf(F.lit(message), high, argument)).cast("int")
        checked = checked.when((argument < low) | (argument > high), refused)
    return checked.otherwise(body).text
