"""The columns of a key, and the check that their types hold its key type.

A key is a tree of columns as deep as its key type. What is known of the columns' types (all
of them under a DataFrame, none for a bare Column) is checked before any job starts; for the
rest the query checks itself when it is analysed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import Column
from pyspark.sql import types as T

from keygroups.errors import InvalidTypeError, InvalidValueError
from keygroups.spark._columns.portable import Portable


@dataclass(frozen=True)
class KeyColumn:
    """A column of a key: its name for messages, and its type where that is known.

    `nullable` is the schema's word, on which Spark relies too.
    """

    column: Column
    name: str
    spark_type: T.DataType | None = None
    nullable: bool = True


KeyTree: TypeAlias = "KeyColumn | Sequence[KeyTree]"

CHARS = (T.CharType, T.VarcharType)
"""Types of text without their collation: PySpark's types leave it out, `typeof` shows it."""
# `typeof` of text that is equal only where its bytes are, as in Flink.
_TEXT = r"(string|(var)?char[(][0-9]+[)])( collate UTF8_BINARY)?"
_CAST = "cast text of another collation to string, which is UTF8_BINARY"


def simple_type(spark_type: T.DataType) -> str:
    """Return a type's name without parameters: "decimal" for decimal(10,2).

    Text of another collation than UTF8_BINARY is "string collate UTF8_LCASE": values that are
    equal by it may be different keys in Flink. char(n) and varchar(n) are "string", with the
    blanks that Spark gives a char(n). What parameters make another type of keeps them: time(6).
    """
    if isinstance(spark_type, CHARS):
        return "string"
    if isinstance(spark_type, T.DecimalType):
        return "decimal"
    return spark_type.simpleString().partition("<")[0]


def plain_text(spark_type: T.DataType) -> T.DataType:
    """Return a type with string for each char(n) and varchar(n) in it."""
    if isinstance(spark_type, CHARS):
        return T.StringType()
    if isinstance(spark_type, T.ArrayType):
        return T.ArrayType(plain_text(spark_type.elementType), spark_type.containsNull)
    if isinstance(spark_type, T.StructType):
        fields = spark_type.fields
        return T.StructType(
            [T.StructField(f.name, plain_text(f.dataType), f.nullable) for f in fields]
        )
    return spark_type


def cast_advice(spark_type: T.DataType, accepted: str = "string") -> str:
    """Return the advice to cast text of another collation, "" unless that would be accepted."""
    is_collated = "string" in accepted and " collate " in spark_type.simpleString()
    return f": {_CAST}" if is_collated else ""


def struct_fields(key: KeyColumn, wanted: Sequence[str] | None) -> list[KeyColumn] | None:
    """Return the fields of a column that is known to be a struct, else None.

    They are taken by their places. `wanted` are the names of the type's fields, f0, f1 and so on
    if None. Raises InvalidTypeError for a field that has the name of one in another place.
    """
    struct = key.spark_type
    if not isinstance(struct, T.StructType):
        return None
    column, names = key.column, [field.name for field in struct.fields]
    wanted = wanted or [f"f{index}" for index in range(len(names))]
    if any(name != other and name in wanted for name, other in zip(names, wanted)):
        raise InvalidTypeError(
            f"the fields of {key.name} are taken by their places, and must be in the order "
            f"{', '.join(wanted)}, got {', '.join(names)}"
        )
    if len({name.lower() for name in names}) < len(names):
        # Spark finds fields by name, in any case of its letters: give them names of our own.
        column = column.cast(renamed(struct))
        names = [f"f{index}" for index in range(len(names))]
    return [
        KeyColumn(column.getField(name), f"{key.name}.{field.name}", field.dataType)
        for name, field in zip(names, struct.fields)
    ]


def renamed(spark_type: T.DataType) -> T.DataType:
    """Return a type with the fields of structs named by their places."""
    if isinstance(spark_type, T.StructType):
        types = [renamed(field.dataType) for field in spark_type.fields]
        return T.StructType([T.StructField(f"f{i}", named) for i, named in enumerate(types)])
    if isinstance(spark_type, T.ArrayType):
        return T.ArrayType(renamed(spark_type.elementType))
    if isinstance(spark_type, T.MapType):
        return T.MapType(renamed(spark_type.keyType), renamed(spark_type.valueType))
    return spark_type


def counted(key: KeyTree, count: int, key_type: object) -> Sequence[KeyTree]:
    """Return the columns of a key if they are as many as its fields, else refuse them."""
    keys = [key] if isinstance(key, KeyColumn) else key
    if len(keys) != count:
        raise InvalidValueError(f"key of type {key_type} must be {count} columns, got {len(keys)}")
    return keys


def single(key: KeyTree, name: str) -> KeyColumn:
    """Return a key if it is one column, else refuse it."""
    if not isinstance(key, KeyColumn):
        raise InvalidValueError(f"{name} must be one column, got a list")
    return key


def checked(backend: Portable, key: KeyColumn, spark_type: str, name: str) -> Column:
    """Return a column if it is of a Spark type, given without parameters, else refuse it."""
    if key.spark_type is None or isinstance(key.spark_type, CHARS):
        return typed(backend, key.column, spark_type, name)
    if simple_type(key.spark_type) != spark_type:
        raise InvalidTypeError(
            f"{name} takes a column of type {spark_type}, but {key.name} is "
            f"{key.spark_type.simpleString()}{cast_advice(key.spark_type, spark_type)}"
        )
    return key.column


def typed(backend: Portable, column: Column, spark_type: str, name: str) -> Column:
    """Let a column of a Spark type through; with one of another type the analysis fails."""
    return backend.F.when(has_types(backend, [column], spark_type, name), column)


def has_types(backend: Portable, columns: Sequence[Column], spark_type: str, name: str) -> Column:
    """Return a condition, true if all columns are of a Spark type; else the analysis fails.

    Spark has no function that refuses a type, but to ask a struct for a field that it does not
    have is an error of analysis, which names both. So the field's name here is the type if
    `typeof` says the right one, and else the message. All of it is constant, and gone from the
    plan after.
    """
    F = backend.F
    advice = f": {_CAST}" if "string" in spark_type else ""
    says = F.lit(f"{name} takes a column of type {spark_type} not ")
    found = [F.typeof(column) for column in columns]
    each = F.array_join(F.array_distinct(F.array(*found)), "; ") if found[1:] else found[0]
    says = F.concat(says, each, F.lit(advice))
    right = re.escape(spark_type).replace("string", _TEXT)
    # Parameters of other types say that values are others: timestamp_ntz(9) has nanoseconds.
    more = "[(<].*|" if spark_type.endswith(("array", "decimal")) else ""
    all_right = F.lit(f"^.* not {right}({more}(; {right})+)?{advice}$")
    field = F.regexp_replace(says, all_right, F.lit(spark_type))
    return F.named_struct(field, F.lit(1)).getField(spark_type).isNotNull()
