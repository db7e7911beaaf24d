"""From rows as `read_keyed_state` gives them back to the bytes of entries, type for type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from keygroups._checks import show
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
)
from keygroups.savepoint import StateDescriptor
from keygroups.savepoint._columns.row_shapes import Place, long_columns
from keygroups.spark._columns.key_columns import cast_advice, simple_type
from keygroups.spark._savepoint.rows.spark_types import spark_type_of
from keygroups.spark._savepoint.rows.state_columns import sent
from keygroups.spark.dataframe import named_column


@dataclass(frozen=True)
class EntryRows:
    """A DataFrame of the columns that are sent, and where each state has its values in them.

    `places` are by the names of states, and of `TYPED`; a state has none for what is always
    null, which then is to be null in the columns that are there.
    """

    df: DataFrame
    columns: tuple[str, ...]
    places: Mapping[str, Mapping[str, Place]]


def entry_rows(df: DataFrame, states: Sequence[StateDescriptor]) -> EntryRows:
    """Return the columns of a DataFrame that some states are written from.

    Raises InvalidTypeError or InvalidValueError where a column is missing that a state needs, or
    is not of the type that `read_keyed_state` gives it.
    """
    there = {name.lower() for name in df.columns}
    columns: list[str] = []
    places: dict[str, dict[str, Place]] = {state.name: {} for state in states}
    sent_columns = []
    for role, is_needed, of_all, of_states in long_columns(states):
        if role not in there:
            if is_needed:
                raise InvalidValueError(
                    f"df must have the column {role}, as read_keyed_state gives it, got "
                    f"{show(df.columns)}"
                )
            continue
        column = named_column(df, role, role)
        spark_type = column.spark_type
        assert spark_type is not None  # of a column in a DataFrame
        taken = None if of_all is None or not is_needed else spark_type_of(of_all)
        if taken is not None and not _is_same(spark_type, taken):
            raise _unfit(role, taken, spark_type)
        for name, of_state in of_states.items():
            field = _field_of(role, name, spark_type_of(of_state), spark_type)
            places[name][role] = Place(len(columns), field)
        columns.append(role)
        sent_columns.append(sent(column).alias(role))
    return EntryRows(df.select(*sent_columns), tuple(columns), places)


def _field_of(role: str, state: str, taken: T.DataType, spark_type: T.DataType) -> int | None:
    """Return the place of a state's field in a struct of states, None where there is no such."""
    if _is_same(spark_type, taken):
        return None
    names = spark_type.names if isinstance(spark_type, T.StructType) else []
    if names.count(state) != 1:
        raise _unfit(role, taken, spark_type, f" for state {state!r}")
    place = names.index(state)
    assert isinstance(spark_type, T.StructType)
    if not _is_same(spark_type[place].dataType, taken):
        raise _unfit(f"{role}.{state}", taken, spark_type[place].dataType)
    return place


def _unfit(
    role: str, taken: T.DataType, spark_type: T.DataType, why: str = ""
) -> InvalidTypeError:
    advice = cast_advice(spark_type, taken.simpleString()) or ": cast it"
    return InvalidTypeError(
        f"{role} must be {taken.simpleString()}{why}, as read_keyed_state gives it, got "
        f"{spark_type.simpleString()}{advice}"
    )


def _is_same(spark_type: T.DataType, taken: T.DataType) -> bool:
    """Return whether a type is another, names and all, whatever may be null in it."""
    if isinstance(taken, T.StringType):
        return simple_type(spark_type) == "string"
    if isinstance(spark_type, T.StructType) and isinstance(taken, T.StructType):
        return spark_type.names == taken.names and all(
            _is_same(field.dataType, of.dataType) for field, of in zip(spark_type, taken)
        )
    if isinstance(spark_type, T.ArrayType) and isinstance(taken, T.ArrayType):
        return _is_same(spark_type.elementType, taken.elementType)
    if isinstance(spark_type, T.MapType) and isinstance(taken, T.MapType):
        return _is_same(spark_type.keyType, taken.keyType) and _is_same(
            spark_type.valueType, taken.valueType
        )
    return spark_type == taken
