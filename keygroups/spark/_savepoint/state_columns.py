"""Which columns the states of an operator are written from, checked against the schema."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from keygroups import types
from keygroups.errors import InvalidTypeError, UnsupportedKeyTypeError
from keygroups.spark._columns.arguments import check_column
from keygroups.spark._columns.key_columns import (
    KeyColumn,
    KeyTree,
    counted,
    renamed,
    simple_type,
    single,
)
from keygroups.spark._columns.key_hash import SPARK_TYPES, key_fields
from keygroups.spark._savepoint.new_states import KeyedState, ListState, MapState, State
from keygroups.spark.dataframe import key_group_column, key_tree
from keygroups.spark.functions import ColumnOrName
from keygroups.types import KeyType

KEY_GROUP, KEY, LAST_ACCESS = range(3)
"""Which columns come before those of the states."""

_SCALARS = SPARK_TYPES | {types.CHAR: "string"}


class StateColumns(NamedTuple):
    """Where the columns of a state are, and their types; it may be pickled.

    `is_array` says that a value is a whole list, `is_element` that it is an element of one.
    """

    name: str
    value: int
    value_type: KeyType
    user_key: int | None = None
    user_key_type: KeyType | None = None
    is_array: bool = False
    is_element: bool = False


class Rows(NamedTuple):
    """A DataFrame of what every row has and of the states' columns, and where these are."""

    df: DataFrame
    states: tuple[StateColumns, ...]


def rows_of(df: DataFrame, keyed: KeyedState, max_parallelism: int) -> Rows:
    """Return the columns that the states of an operator are made from.

    Raises InvalidTypeError, InvalidValueError or UnsupportedKeyTypeError where a column does not
    hold its type.
    """
    key = _key_column(key_tree(df, keyed.key), keyed.key_type)
    key_group = key_group_column(df, keyed.key, max_parallelism, keyed.key_type)
    last_access = F.lit(None).cast("bigint") if keyed.ttl is None else _millis(df, keyed.ttl)
    columns = [key_group, key, last_access]
    states = [_state_columns(df, name, state, columns) for name, state in keyed.states.items()]
    named = [column.alias(f"c{number}") for number, column in enumerate(columns)]
    return Rows(df.select(*named), tuple(states))


def _key_column(key: KeyTree, key_type: KeyType) -> Column:
    """Return one column with the whole key, a struct where it has fields."""
    if not isinstance(key_type, (types.TUPLE, types.ROW)):
        [only] = counted(key, 1, key_type)
        return _sent(single(only, f"key of type {key_type}"))
    fields, struct = key_fields(key, key_type)
    if struct is not None and isinstance(key, KeyColumn):
        return _sent(key)
    pairs = enumerate(zip(fields, key_type.fields))
    return F.struct(
        *(_key_column(field, field_type).alias(f"f{n}") for n, (field, field_type) in pairs)
    )


def _sent(column: KeyColumn) -> Column:
    """Return a column as it is sent, with the fields of structs by number: names may be twice."""
    spark_type = _type(column)
    if isinstance(spark_type, (T.StructType, T.ArrayType)):
        return column.column.cast(renamed(spark_type))
    return column.column


def _millis(df: DataFrame, ttl: ColumnOrName) -> Column:
    """Return the epoch milliseconds of a column of times."""
    column = _named(df, "ttl", ttl)
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
    """Add the columns of a state, and return where they are."""
    value = _named(df, f"value of state {name!r}", state.value)
    array = value.spark_type
    is_list = isinstance(state, ListState)
    is_array = (
        is_list
        and isinstance(array, T.ArrayType)
        and not _holds(array, state.value_type)
        and _holds(array.elementType, state.value_type)
    )
    if not is_array:
        taken = _text(state.value_type)
        if is_list:
            taken += f" or array<{taken}>"
        _check(value, state.value_type, f"value of state {name!r}", taken)
    columns.append(_sent(value))
    places = StateColumns(name, len(columns) - 1, state.value_type, is_array=is_array)
    if not isinstance(state, MapState):
        return places._replace(is_element=is_list and not is_array)
    label = f"user key of state {name!r}"
    user_key = _named(df, label, state.user_key)
    _check(user_key, state.user_key_type, label, _text(state.user_key_type))
    columns.append(_sent(user_key))
    return places._replace(user_key=len(columns) - 1, user_key_type=state.user_key_type)


def _named(df: DataFrame, name: str, column: ColumnOrName) -> KeyColumn:
    """Return a column with its name and type in `df`, or raise with `name`."""
    return single(key_tree(df, check_column(name, column), name), name)


def _type(column: KeyColumn) -> T.DataType:
    assert column.spark_type is not None  # of a column in a DataFrame
    return column.spark_type


def _check(column: KeyColumn, key_type: KeyType, name: str, taken: str) -> None:
    if not _holds(_type(column), key_type):
        raise InvalidTypeError(
            f"{name} of type {key_type!r} takes a column of type {taken}, but {column.name} is "
            f"{_type(column).simpleString()}"
        )


def _holds(spark_type: T.DataType, key_type: KeyType) -> bool:
    """Return whether all values of a Spark type but null are such of a key type."""
    if isinstance(key_type, types.LIST):
        return isinstance(spark_type, T.ArrayType) and _holds(
            spark_type.elementType, key_type.element
        )
    if isinstance(key_type, (types.TUPLE, types.ROW)):
        fields = spark_type.fields if isinstance(spark_type, T.StructType) else []
        return len(fields) == len(key_type.fields) and all(
            _holds(field.dataType, field_type)
            for field, field_type in zip(fields, key_type.fields)
        )
    return simple_type(spark_type) == _SCALARS.get(key_type)


def _text(key_type: KeyType) -> str:
    """Return the Spark type that holds a key type."""
    if isinstance(key_type, types.LIST):
        return f"array<{_text(key_type.element)}>"
    if isinstance(key_type, (types.TUPLE, types.ROW)):
        fields = (
            f"f{number}:{_text(field_type)}" for number, field_type in enumerate(key_type.fields)
        )
        return f"struct<{','.join(fields)}>"
    if key_type not in _SCALARS:
        raise UnsupportedKeyTypeError(f"no column here holds values of type {key_type!r}")
    return _SCALARS[key_type]
