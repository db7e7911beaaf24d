"""The checks of what callers pass to the adapter: DataFrames, columns, keys, key types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from keygroups._checks import MAX_DEPTH, check_class, check_str, show
from keygroups.errors import InvalidTypeError, InvalidValueError, KeyGroupsError
from keygroups.types import KeyType

_MOST_COLUMNS = 10_000  # columns of one key; lists that share lists may have any number


def is_connect(thing: object) -> bool:
    """Return whether a session, DataFrame or column is one of Spark Connect.

    In Spark 3.5 those share no class with the classic ones, nor one among themselves.
    """
    return any(cls.__module__.startswith("pyspark.sql.connect.") for cls in type(thing).__mro__)


def check_session(spark: object) -> None:
    """Raise InvalidTypeError for anything but a session, classic or of Spark Connect."""
    cls = type(spark)
    if not issubclass(cls, SparkSession) and not (is_connect(spark) and hasattr(cls, "sql")):
        raise InvalidTypeError(f"spark must be a SparkSession, got {show(spark)}")


def check_df(df: object) -> None:
    """Raise InvalidTypeError for anything but a DataFrame, classic or of Spark Connect."""
    if not is_df(df):
        raise InvalidTypeError(f"df must be a DataFrame, got {show(df)}")


def is_df(thing: object) -> TypeGuard[DataFrame]:
    """Return whether something is a DataFrame, classic or of Spark Connect."""
    cls = type(thing)
    return issubclass(cls, DataFrame) or (is_connect(thing) and hasattr(cls, "withColumn"))


def is_column(thing: object) -> TypeGuard[Column]:
    """Return whether something is a column, classic or of Spark Connect."""
    cls = type(thing)
    return issubclass(cls, Column) or (is_connect(thing) and hasattr(cls, "isNotNull"))


def check_column_or_name(name: str, column: object) -> Column | str:
    """Return a column, or a name that one column may have, else refuse it."""
    if is_column(column):
        return column
    if not isinstance(column, str):
        raise InvalidTypeError(f"{name} must be a column or a column name, got {show(column)}")
    text = check_text(name, column)
    if text == "*" or text.endswith(".*"):
        raise InvalidValueError(f"{name} must be one column, got {show(text)}")
    return text


def check_column(name: str, column: object) -> Column:
    """Return a column, or the one of a name."""
    checked = check_column_or_name(name, column)
    if not isinstance(checked, str):
        return checked
    try:
        return F.col(checked)
    except (AssertionError, RuntimeError):  # Which one depends on the version of PySpark.
        raise KeyGroupsError(
            "there is no running Spark session, in which to make columns: start one first"
        ) from None


def check_text(name: str, text: object) -> str:
    """Return text that Spark can hold as a plain str, else refuse it."""
    checked = check_str(name, text)
    try:
        checked.encode()
    except UnicodeEncodeError:
        raise InvalidValueError(
            f"{name} must have no surrogates, which no text of Spark holds, got {show(text)}"
        ) from None
    return checked


def check_key_type(key_type: object, name: str = "key_type") -> KeyType:
    """Return a key type, else refuse it."""
    return check_class(name, key_type, KeyType, "a value of keygroups.types such as STRING")


def map_key(key: object, leaf: Callable[[Any], Any]) -> Any:
    """Return a key with each of its columns mapped, in lists as the key is in lists or tuples."""
    columns = 0

    def mapped(field: object, depth: int) -> Any:
        nonlocal columns
        if isinstance(field, (list, tuple)):
            if depth > MAX_DEPTH:
                raise InvalidValueError(f"key must be lists at most {MAX_DEPTH} deep")
            return [mapped(nested, depth + 1) for nested in field]
        columns += 1
        if columns > _MOST_COLUMNS:
            raise InvalidValueError(f"key must be at most {_MOST_COLUMNS} columns")
        return leaf(field)

    return mapped(key, 0)
