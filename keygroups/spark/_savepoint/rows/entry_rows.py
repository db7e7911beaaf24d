"""The columns of rows as `read_keyed_state` gives them, checked before they become entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from keygroups._checks import show
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
)
from keygroups.spark._columns.key_columns import cast_advice, simple_type
from keygroups.spark._savepoint.rows.spark_types import spark_type_of
from keygroups.spark._savepoint.rows.state_columns import sent
from keygroups.spark._savepoint.rows.struct_fields import first_difference
from keygroups.spark.dataframe import named_column


class EntryRows(NamedTuple):
    """A DataFrame of the columns that executors get, and each state's fields in these columns.

    `fields` are by column, then by state: the number of the state's field in a struct of states,
    None where the column is its own.
    """

    df: DataFrame
    fields: Mapping[str, Mapping[str, int | None]]


def entry_rows(
    df: DataFrame, columns: Iterable[tuple[str, bool, Any, Mapping[str, Any]]]
) -> EntryRows:
    """Return the columns of a DataFrame that some states are written from.

    `columns` has the name of each, whether it is needed, and its type, or the types by state.

    Raises InvalidTypeError or InvalidValueError where a column is missing that a state needs, or
    is not of the type that `read_keyed_state` gives it.
    """
    present = {name.lower() for name in df.columns}
    fields: dict[str, dict[str, int | None]] = {}
    sent_columns = []
    for role, is_needed, shared_type, types in columns:
        if role not in present:
            if is_needed:
                raise InvalidValueError(
                    f"df must have the column {role}, as read_keyed_state gives it, got "
                    f"{show(df.columns)}"
                )
            continue
        column = named_column(df, role, role)
        spark_type = column.spark_type
        assert spark_type is not None  # a column of a DataFrame has a type
        if shared_type is not None and is_needed:
            wanted = spark_type_of(shared_type)
            if not _is_same(spark_type, wanted):
                raise _unfit(role, wanted, spark_type)
        fields[role] = {
            name: _field_of(role, name, spark_type_of(state_type), spark_type)
            for name, state_type in types.items()
        }
        sent_columns.append(sent(column).alias(role))
    return EntryRows(df.select(*sent_columns), fields)


def _field_of(role: str, state: str, wanted: T.DataType, spark_type: T.DataType) -> int | None:
    """Return the place of a state's field in a struct of states, None if the column has its type.

    Raises InvalidTypeError for a column that is neither.
    """
    if _is_same(spark_type, wanted):
        return None
    names = spark_type.names if isinstance(spark_type, T.StructType) else []
    if names.count(state) != 1:
        raise _unfit(role, wanted, spark_type, f" for state {state!r}")
    place = names.index(state)
    assert isinstance(spark_type, T.StructType)
    if not _is_same(spark_type[place].dataType, wanted):
        raise _unfit(f"{role}.{state}", wanted, spark_type[place].dataType)
    return place


def _unfit(
    role: str, wanted: T.DataType, spark_type: T.DataType, why: str = ""
) -> InvalidTypeError:
    differing = first_difference(spark_type, wanted, _is_same)
    advice = differing or cast_advice(spark_type, wanted.simpleString()) or ": cast it"
    return InvalidTypeError(
        f"{role} must be {wanted.simpleString()}{why}, as read_keyed_state gives it, got "
        f"{spark_type.simpleString()}{advice}"
    )


def _is_same(spark_type: T.DataType, wanted: T.DataType) -> bool:
    """Return whether two types are equal, names of fields included, but for nullability."""
    if isinstance(wanted, T.StringType):
        return simple_type(spark_type) == "string"
    if isinstance(spark_type, T.StructType) and isinstance(wanted, T.StructType):
        return spark_type.names == wanted.names and all(
            _is_same(field.dataType, other.dataType) for field, other in zip(spark_type, wanted)
        )
    if isinstance(spark_type, T.ArrayType) and isinstance(wanted, T.ArrayType):
        return _is_same(spark_type.elementType, wanted.elementType)
    if isinstance(spark_type, T.MapType) and isinstance(wanted, T.MapType):
        return _is_same(spark_type.keyType, wanted.keyType) and _is_same(
            spark_type.valueType, wanted.valueType
        )
    return spark_type == wanted
