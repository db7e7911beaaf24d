"""The columns of a key, and the check that their types hold its key type.

A key is a tree of columns as deep as its key type. What is known of the columns' types (all
of them under a DataFrame, none for a bare Column) is checked before any job starts; for the
rest the query checks itself when it is analysed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyspark.sql import Column
from pyspark.sql import types as T

from keygroups.errors import InvalidTypeError, InvalidValueError

__all__ = ["KeyColumn", "KeyTree", "checked", "counted", "simple_type", "struct_fields", "typed"]


@dataclass(frozen=True)
class KeyColumn:
    """A column of a key: its name for messages, and its type where that is known."""

    column: Column
    name: str
    spark_type: T.DataType | None = None


KeyTree: TypeAlias = "KeyColumn | Sequence[KeyTree]"


def simple_type(spark_type: T.DataType) -> str:
    """Return a type's name without parameters: "decimal" for decimal(10,2)."""
    return spark_type.simpleString().partition("(")[0].partition("<")[0]


def struct_fields(key: KeyColumn) -> list[KeyColumn] | None:
    """Return the fields of a column that is known to be a struct, else None."""
    if not isinstance(key.spark_type, T.StructType):
        return None
    return [
        KeyColumn(key.column.getField(field.name), f"{key.name}.{field.name}", field.dataType)
        for field in key.spark_type.fields
    ]


def counted(key: KeyTree, count: int, what: object) -> Sequence[KeyTree]:
    """Return the columns of a key if they are as many as its fields, else refuse them."""
    keys = [key] if isinstance(key, KeyColumn) else key
    if len(keys) != count:
        raise InvalidValueError(f"key of type {what} must be {count} columns, got {len(keys)}")
    return keys


def checked(F: Any, key: KeyColumn, spark_type: str, what: str) -> Column:
    """Return a column if it is of a Spark type, given without parameters, else refuse it."""
    if key.spark_type is None:
        return typed(F, key.column, spark_type, what)
    if simple_type(key.spark_type) != spark_type:
        raise InvalidTypeError(
            f"{what} takes a column of type {spark_type}, but {key.name} is "
            f"{key.spark_type.simpleString()}"
        )
    return key.column


def typed(F: Any, column: Column, spark_type: str, what: str) -> Column:
    """Let a column of a Spark type through; with one of another type the analysis fails.

    Spark has no function that refuses a type by name, but `to_number` refuses a malformed
    format when the plan is analysed, and shows it. So the format here is "9" if `typeof` says
    the right type, and else the message. All of it is constant, and gone from the plan after.
    """
    says = F.concat(F.lit(f"{what} takes a column of type {spark_type} not "), F.typeof(column))
    right = F.lit(f"^.* not {re.escape(spark_type)}([(<].*)?$")
    number = F.to_number(F.lit("1"), F.regexp_replace(says, right, F.lit("9")))
    return F.when(number.isNotNull(), column)
