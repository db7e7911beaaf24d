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

Part: TypeAlias = types.KeyType | LogicalType


class Arrow(Portable):
    """The expressions of the portable backend, around the hash code of a whole key by a UDF."""

    in_sql = False

    def of_whole_key(self, code: Column, key: Any, key_type: types.KeyType) -> Column:
        """Return the UDF's hash code; `code` is the portable one, which has checked the key."""
        columns: list[Column] = []
        shape = self._shape(key, key_type, columns)
        if not _is_full(shape):
            return code  # of no columns, or with a row of none

        def hash_code(*columns: pa.Array) -> pa.Array:  # on executors, a batch at a time
            key = _filled(shape, iter(columns))
            codes: Any = arrays.hash_code(key, key_type, nulls="mask")
            return pa.array(codes.data, mask=codes.mask)

        made: Column = self.F.arrow_udf(hash_code, T.IntegerType())(*columns)
        return made

    def _shape(self, key: KeyTree, part: Part, found: list[Column]) -> Any:
        """Return a key as lists with None for its columns, and add these to what is found."""
        if isinstance(part, types.PYFLINK):
            part = part.element
        fields: Sequence[Part] | None = None
        if isinstance(part, LogicalType):
            fields = part.fields if part.name == "ROW" else None
        elif isinstance(part, (types.TUPLE, types.ROW, types.SQL_ROW)):
            fields = part.fields
        if isinstance(key, KeyColumn):
            whole = isinstance(key.spark_type, T.StructType)
            if isinstance(part, types.SQL_ROW):
                whole = len(part.fields) > 1
            if fields is None or whole:
                found.append(self._column(key, part))
                return None
            key = [key]  # the only field
        if fields is None:
            [only] = key
            return self._shape(only, part, found)
        return [self._shape(one, field, found) for one, field in zip(key, fields)]

    def _column(self, key: KeyColumn, part: Part) -> Column:
        """Return a column as the UDF takes it; one whose type is not known is checked later."""
        if key.spark_type is None:
            what = f"{part} of SQL_ROW" if isinstance(part, LogicalType) else f"key type {part}"
            return typed(self, key.column, _spark_type(part), what)
        # Arrow has no struct of two fields of one name.
        has_struct = "struct<" in key.spark_type.simpleString()
        return key.column.cast(renamed(key.spark_type)) if has_struct else key.column


def _is_full(shape: Any) -> bool:
    return shape is None or (bool(shape) and all(map(_is_full, shape)))


def _spark_type(part: Part) -> str:
    """Return the start of what `typeof` says of a column of a key type or a field's type."""
    if isinstance(part, types.LIST):
        return _array_type(part.element)
    if isinstance(part, types.JavaSqlType):
        return "date" if isinstance(part, types.SQL_DATE) else "timestamp"
    if not isinstance(part, LogicalType):
        return SPARK_TYPES[part]
    if part.name == "ARRAY":
        return _array_type(part.fields[0])
    if part.name == "DECIMAL":
        return f"decimal({part.precision},{part.scale})"
    return FIELD_TYPES[part.name]


def _array_type(element: Part) -> str:
    inner = _spark_type(element)
    return f"array<{inner}" if inner.endswith("decimal") else f"array<{inner}>"


def _filled(shape: Any, columns: Iterator[pa.Array]) -> Any:
    return next(columns) if shape is None else [_filled(part, columns) for part in shape]
