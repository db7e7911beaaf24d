"""Hash codes by an Arrow UDF around `keygroups.arrays`: the backend that has to be asked for.

A string costs a fraction of what it does in the portable backend's expressions; a number costs
more, as each row goes to a Python worker and back. Executors need `keygroups[arrays]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import types as T

from keygroups import arrays, types
from keygroups.logical_types import LogicalType
from keygroups.spark._columns.binary_row import FIELD_TYPES
from keygroups.spark._columns.key_columns import KeyColumn, KeyTree, renamed, typed
from keygroups.spark._columns.key_hash import SPARK_TYPES
from keygroups.spark._columns.portable import Portable

AnyType: TypeAlias = types.KeyType | LogicalType  # the type of a key or of an SQL_ROW's field


class Arrow(Portable):
    """The expressions of the portable backend, around the hash code of a whole key by a UDF."""

    in_sql = False

    def of_whole_key(self, code: Column, key: Any, key_type: types.KeyType) -> Column:
        """Return the UDF's hash code; `code` is the portable one, which has checked the key."""
        if any(isinstance(inside, types.SQL_TIMESTAMP) for inside in key_type.walk()):
            return code  # `arrays` refuses instants without a certain local time.
        columns: list[Column] = []
        shape = self._shape(key, key_type, columns)
        if not _is_full(shape):
            return code  # A key or a row in it has no column to hand over.

        def hash_code(*columns: pa.Array) -> pa.Array:  # on executors, a batch at a time
            key = _filled(shape, iter(columns))
            codes: Any = arrays.hash_code(key, key_type, nulls="mask")
            return pa.array(codes.data, mask=codes.mask)

        made: Column = self.F.arrow_udf(hash_code, T.IntegerType())(*columns)
        return made

    def _shape(self, key: KeyTree, field_type: AnyType, columns: list[Column]) -> Any:
        """Return a key as lists with None for its columns, and add these to `columns`."""
        if isinstance(field_type, types.PYFLINK):
            field_type = field_type.element
        nested_types: Sequence[AnyType] | None = None
        if isinstance(field_type, LogicalType):
            nested_types = field_type.fields if field_type.name == "ROW" else None
        elif isinstance(field_type, (types.FieldsType, types.SQL_ROW)):
            nested_types = field_type.fields
        if isinstance(key, KeyColumn):
            whole = isinstance(key.spark_type, T.StructType)
            if isinstance(field_type, types.SQL_ROW):
                whole = len(field_type.fields) > 1
            if nested_types is None or whole:
                columns.append(self._column(key, field_type))
                return None
            key = [key]  # the only field
        if nested_types is None:
            [only] = key
            return self._shape(only, field_type, columns)
        return [self._shape(field, nested, columns) for field, nested in zip(key, nested_types)]

    def _column(self, key: KeyColumn, field_type: AnyType) -> Column:
        """Return a column as the UDF takes it; the query checks one whose type is not known."""
        if key.spark_type is None:
            name = (
                f"{field_type} of SQL_ROW"
                if isinstance(field_type, LogicalType)
                else f"key type {field_type}"
            )
            return typed(self, key.column, _spark_type(field_type), name)
        # Arrow has no struct of two fields of one name.
        has_struct = "struct<" in key.spark_type.simpleString()
        return key.column.cast(renamed(key.spark_type)) if has_struct else key.column


def _is_full(shape: Any) -> bool:
    return shape is None or (bool(shape) and all(map(_is_full, shape)))


def _spark_type(field_type: AnyType) -> str:
    """Return the start of the text of `typeof` for a column of a key type or a field's type."""
    if isinstance(field_type, types.LIST):
        return _array_type(field_type.element)
    if isinstance(field_type, types.SCALA_OPTION):
        return _spark_type(field_type.element)
    if isinstance(field_type, types.JavaSqlType):
        return "date" if isinstance(field_type, types.SQL_DATE) else "timestamp"
    if not isinstance(field_type, LogicalType):
        return SPARK_TYPES[field_type]
    if field_type.name == "ARRAY":
        return _array_type(field_type.fields[0])
    if field_type.name == "DECIMAL":
        return f"decimal({field_type.precision},{field_type.scale})"
    return FIELD_TYPES[field_type.name]


def _array_type(element: AnyType) -> str:
    inner = _spark_type(element)
    return f"array<{inner}" if inner.endswith("decimal") else f"array<{inner}>"


def _filled(shape: Any, columns: Iterator[pa.Array]) -> Any:
    return next(columns) if shape is None else [_filled(field, columns) for field in shape]
