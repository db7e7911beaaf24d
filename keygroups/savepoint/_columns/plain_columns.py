"""The columns of plain rows, field by field, with no object of Python for a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from keygroups._serializers.base import Serializer
from keygroups._serializers.sql.rows import RowDataSerializer
from keygroups.errors import InvalidValueError
from keygroups.savepoint._columns.arrow_values import arrow_array
from keygroups.savepoint._columns.batches import TYPED, typed_columns
from keygroups.savepoint._columns.column_types import logical_column_of, part_column_of
from keygroups.savepoint._columns.columns import ArrowColumn
from keygroups.savepoint._columns.plain_rows import PlainRows
from keygroups.savepoint._columns.table_rows import TableColumns
from keygroups.savepoint._state.header import StateDescriptor


def plain_columns(rows: PlainRows) -> TableColumns | None:
    """Return the columns of rows, None where a value is nothing that a column holds."""
    state = rows.state
    columns = dict(zip(TYPED, typed_columns(state)))
    arrays = {}
    try:
        for role, (part, fields) in rows.held().items():
            column = columns[role]
            assert column is not None
            if part.width == 1 and not pa.types.is_struct(column.data_type):
                arrays[role] = _array(column, fields)
            else:
                arrays[role] = _struct(state, role, column.data_type, part.width, fields)
    except InvalidValueError:
        return None
    if rows.times:
        arrays["last_access"] = pa.array(rows.times, pa.int64())
    return TableColumns(state.name, arrays, {})


def _array(column: ArrowColumn, values: Sequence[Any]) -> pa.Array:
    return arrow_array(column.convert(values), column.data_type)


def _struct(
    state: StateDescriptor, role: str, data_type: pa.DataType, width: int, fields: list[Any]
) -> pa.Array:
    """Return an array of structs, whose fields stand one after the other in `fields`."""
    parts = _parts(getattr(state, f"{role}_serializer"), is_key=role != "value")
    arrays = [_array(part, fields[place::width]) for place, part in enumerate(parts)]
    if len(data_type) > width:  # the kind of rows
        arrays.append(pa.repeat(pa.scalar("+I", data_type[width].type), len(fields) // width))
    return pa.StructArray.from_arrays(arrays, fields=[*data_type])


def _parts(serializer: Serializer, is_key: bool) -> list[ArrowColumn]:
    """Return the columns of the parts of a serializer."""
    if isinstance(serializer, RowDataSerializer):
        return [logical_column_of(field, is_key) for field in serializer.fields]
    return [*map(part_column_of, serializer.parts)]
