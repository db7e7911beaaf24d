"""The columns that the states of an operator are written from, checked against the schema."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from keygroups import types
from keygroups.errors import InvalidTypeError
from keygroups.logical_types import LogicalType
from keygroups.savepoint._columns.row_shapes import StateColumns
from keygroups.savepoint._jobs.row_jobs import wide_shapes
from keygroups.spark._columns.key_columns import (
    KeyColumn,
    KeyTree,
    cast_advice,
    counted,
    renamed,
    simple_type,
    single,
)
from keygroups.spark._columns.key_hash import key_fields
from keygroups.spark._savepoint.rows.keyed_states import KeyedState, ListState, MapState, State
from keygroups.spark._savepoint.rows.spark_types import spark_type_of
from keygroups.spark._savepoint.rows.struct_fields import first_difference
from keygroups.spark.dataframe import (
    check_deterministic,
    key_group_column,
    named_column,
    routable,
)
from keygroups.spark.functions import ColumnOrName
from keygroups.types import KeyType


class KeyedRows(NamedTuple):
    """A DataFrame of key group, key, last access and the states' columns, and their places."""

    df: DataFrame
    states: tuple[StateColumns, ...]


def rows_of(df: DataFrame, keyed: KeyedState, max_parallelism: int, nulls: str) -> KeyedRows:
    """Return the KeyedRows that the states of an operator are written from.

    A null key is refused later, when its row is encoded, unless `nulls` drops it.
    Raises InvalidTypeError, InvalidValueError or UnsupportedKeyTypeError where a column does not
    hold its type, or the key is not deterministic.
    """
    df, tree, _ = routable(df, keyed.key, keyed.key_type, nulls)
    check_deterministic(df, tree)
    key_group = key_group_column(df, tree, max_parallelism, keyed.key_type)
    key = _key_column(tree, keyed.key_type)
    last_access = F.lit(None).cast("bigint") if keyed.ttl is None else _millis(df, keyed.ttl)
    columns = [key_group, key, last_access]
    states = [_state_columns(df, name, state, columns) for name, state in keyed.states.items()]
    named = [column.alias(f"c{number}") for number, column in enumerate(columns)]
    return KeyedRows(df.select(*named), tuple(states))


def _key_column(key: KeyTree, key_type: KeyType) -> Column:
    """Return the whole key as one column, a struct if the key has fields."""
    if not isinstance(key_type, (types.FieldsType, types.SQL_ROW)):
        [only] = counted(key, 1, key_type)
        return sent(single(only, f"key of type {key_type}"))
    if isinstance(key_type, types.SQL_ROW):
        if isinstance(key, KeyColumn) and len(key_type.fields) > 1:
            return sent(key)  # a struct, else its hash has refused it
        return _row_column(key, key_type.fields, key_type)
    fields, struct = key_fields(key, key_type)
    if struct is not None and isinstance(key, KeyColumn):
        return sent(key)
    pairs = enumerate(zip(fields, key_type.fields))
    return F.struct(
        *(_key_column(field, field_type).alias(f"f{n}") for n, (field, field_type) in pairs)
    )


def _row_column(key: KeyTree, row_types: Sequence[LogicalType], row_type: object) -> Column:
    """Return a row of Flink SQL, given by its fields, as a struct."""
    pairs = zip(counted(key, len(row_types), row_type), row_types)
    columns = [
        sent(field) if isinstance(field, KeyColumn) else _row_column(field, nested.fields, nested)
        for field, nested in pairs
    ]
    return F.struct(*(column.alias(f"f{n}") for n, column in enumerate(columns)))


def sent(column: KeyColumn) -> Column:
    """Return a column for executors, with numbered fields, as a struct may have a name twice."""
    spark_type = _type(column)
    if isinstance(spark_type, (T.StructType, T.ArrayType, T.MapType)):
        return column.column.cast(renamed(spark_type))
    return column.column


def _millis(df: DataFrame, ttl: ColumnOrName) -> Column:
    """Return the epoch milliseconds of a column of times."""
    column = named_column(df, "ttl", ttl)
    spark_type = simple_type(_type(column))
    if spark_type == "timestamp":
        return F.unix_millis(column.column)
    if spark_type != "bigint":
        raise InvalidTypeError(
            f"ttl must be a bigint of epoch milliseconds or a timestamp, but {column.name} is "
            f"{_type(column).simpleString()}"
        )
    return column.column


def _state_columns(df: DataFrame, name: str, state: State, columns: list[Column]) -> StateColumns:
    """Append the columns of a state to `columns`, and return their places as a StateColumns."""
    user_key = state.user_key if isinstance(state, MapState) else None
    user_key_type = state.user_key_type if isinstance(state, MapState) else None
    is_map = isinstance(state, MapState) and user_key is None
    shapes = wide_shapes(
        name,
        state.value_type,
        is_list=isinstance(state, ListState),
        user_key_type=user_key_type,
        is_map=is_map,
    )
    types = f"type {state.value_type!r}"
    if is_map:
        types = f"types {user_key_type!r} and {state.value_type!r}"
    label = f"value of state {name!r}"
    value = named_column(df, label, state.value)
    wanted = [spark_type_of(shape.value) for shape in shapes]
    shape = shapes[_fitting(value, wanted, f"{label} of {types}")]
    columns.append(sent(value))
    place = len(columns) - 1
    if user_key is None:
        return shape.at(place)
    label = f"user key of state {name!r}"
    user_keys = named_column(df, label, user_key)
    wanted = [spark_type_of(shape.user_key)]
    _fitting(user_keys, wanted, f"{label} of type {user_key_type!r}")
    columns.append(sent(user_keys))
    return shape.at(place, len(columns) - 1)


def _type(column: KeyColumn) -> T.DataType:
    assert column.spark_type is not None  # a column of a DataFrame has a type
    return column.spark_type


def _fitting(column: KeyColumn, wanted: list[T.DataType], name: str) -> int:
    """Return the number of the first type that a column holds, InvalidTypeError for none."""
    for number, spark_type in enumerate(wanted):
        if _holds(_type(column), spark_type):
            return number
    texts = [*map(_text, wanted)]
    differing = first_difference(_type(column), wanted[0], _holds)
    raise InvalidTypeError(
        f"{name} takes a column of type {' or '.join(texts)}, but {column.name} is "
        f"{_type(column).simpleString()}" + differing + cast_advice(_type(column), texts[0])
    )


def _holds(spark_type: T.DataType, wanted: T.DataType) -> bool:
    """Return whether two types hold the same values, in fields of the same names.

    Decimals match with any precision: their digits are counted when they are written.
    """
    if isinstance(wanted, T.StringType) or type(spark_type) is not type(wanted):
        return simple_type(spark_type) == simple_type(wanted) == "string"
    if isinstance(spark_type, T.ArrayType) and isinstance(wanted, T.ArrayType):
        return _holds(spark_type.elementType, wanted.elementType)
    if isinstance(spark_type, T.MapType) and isinstance(wanted, T.MapType):
        return _holds(spark_type.keyType, wanted.keyType) and _holds(
            spark_type.valueType, wanted.valueType
        )
    if isinstance(spark_type, T.StructType) and isinstance(wanted, T.StructType):
        return _are_named(spark_type.names, wanted.names) and all(
            _holds(field.dataType, other.dataType) for field, other in zip(spark_type, wanted)
        )
    return True


def _are_named(names: list[str], wanted: list[str]) -> bool:
    """Return whether fields have the wanted names, or others for those that have none in Flink.

    Fields are taken by their places: those of another name, or in another order, would become
    others of a POJO. The f0, f1 and so on of a tuple may be called anything else.
    """
    return len(names) == len(wanted) and all(
        name == other or (other == f"f{place}" and name not in wanted)
        for place, (name, other) in enumerate(zip(names, wanted))
    )


def _text(spark_type: T.DataType) -> str:
    """Return a Spark type as messages name it: decimals without precision and scale."""
    return re.sub(r"decimal\(\d+,\d+\)", "decimal", spark_type.simpleString())
