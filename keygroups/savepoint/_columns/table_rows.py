"""The rows of a table of Arrow, pandas or Polars, checked against the columns of a state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

try:
    import numpy  # noqa: F401  # only to say which extra is missing
    import pyarrow as pa
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "write_table needs NumPy and PyArrow: pip install 'keygroups[arrays]'", name=error.name
    ) from None

from keygroups._checks import show
from keygroups.errors import InvalidTypeError, InvalidValueError, UnsupportedKeyTypeError
from keygroups.savepoint._columns.arrow_values import values
from keygroups.savepoint._columns.batches import TYPED, times_of, typed_columns
from keygroups.savepoint._columns.column_types import is_written
from keygroups.savepoint._columns.columns import ArrowColumn
from keygroups.savepoint._state.header import StateDescriptor

_ROWS = 1 << 12  # rows that are decoded at once
_AT_ONCE = 1 << 14  # rows that become bytes at once
_REASON = 200  # characters of another library's message
_REFUSED = (pa.ArrowException, TypeError, ValueError, OverflowError, NotImplementedError)


class TableRow(NamedTuple):
    """A row, as the arguments of `OperatorWriter.write` behind the state."""

    key: Any
    value: Any
    user_key: Any
    last_access: int | None
    namespace: Any


class TableColumns(NamedTuple):
    """Some rows of a table: a column for each argument of `write` that the state has.

    `columns` restore the values of the arrays, the times aside.
    """

    state: str
    arrays: Mapping[str, pa.Array]
    columns: Mapping[str, ArrowColumn]

    def rows(self) -> Iterator[TableRow]:
        """Yield the rows; InvalidValueError for what Arrow can hold and Python cannot."""
        size = len(self.arrays["key"])
        for start in range(0, size, _ROWS):
            count = min(_ROWS, size - start)
            fields = {name: self._values(name, start) for name in self.arrays}
            yield from map(
                TableRow, *(fields.get(name, repeat(None, count)) for name in TableRow._fields)
            )

    def _values(self, name: str, start: int) -> list[Any]:
        array = self.arrays[name].slice(start, _ROWS)
        if name not in self.columns:
            times: list[Any] = array.to_pylist()
            return times
        return values(f"{name} of state {self.state!r}", array, self.columns[name])


def table_columns(table: object, state: StateDescriptor) -> Iterator[TableColumns]:
    """Return an iterator over chunks of the rows of a table of one state.

    Raises what `OperatorWriter.write_table` raises for a table, before it returns.
    """
    reader = reader_of_table("table", table)
    names = reader.schema.names
    types: dict[str, pa.DataType] = {}
    columns = {}
    for role, column in zip(TYPED, typed_columns(state)):
        if column is not None:
            check_written(role, state)
            columns[role], types[role] = column, column.data_type
    types |= dict.fromkeys(times_of(state), pa.int64())
    for name, data_type in types.items():
        if names.count(name) != 1:
            raise InvalidValueError(
                f"table must have the column {name} once for state {state.name!r}, got "
                f"{show(names)}"
            )
        check_type(name, f"state {state.name!r}", reader.schema.field(name).type, data_type)

    def parts() -> Iterator[TableColumns]:
        for whole in reader:
            for start in range(0, len(whole), _AT_ONCE):
                batch = whole.slice(start, _AT_ONCE)
                arrays = {
                    name: cast(f"{name} of state {state.name!r}", batch.column(name), data_type)
                    for name, data_type in types.items()
                }
                yield TableColumns(state.name, arrays, columns)

    return parts()


def check_written(role: str, state: StateDescriptor) -> None:
    """Raise UnsupportedKeyTypeError where the column of a role does not hold its values."""
    serializer = getattr(state, f"{role}_serializer")
    if not is_written(serializer):
        raise UnsupportedKeyTypeError(
            f"{role} of state {state.name!r} cannot be written from a table: its column is text "
            f"or bytes, which are not what a {serializer} writes"
        )


def check_type(name: str, whole: str, actual: pa.DataType, wanted: pa.DataType) -> None:
    """Raise InvalidTypeError for the type of a column of `whole`, unless only widths differ."""
    if not _is_same(actual, wanted):
        field = "".join(_differing(name, actual, wanted))
        raise InvalidTypeError(f"{name} of {whole} must be {wanted}, got {actual}{field}")


def _differing(name: str, actual: Any, wanted: Any) -> Iterator[str]:
    """Yield the end of a message that names the first part of a type that differs, if it has any.

    For struct<f0: string, f1: int64> and a field f1 of strings that is "f1 must be int64".
    """
    parts = [(f"{name}.{field.name}", field.type) for field in _fields(wanted)]
    others = {f"{name}.{field.name}": field.type for field in _fields(actual)}
    if not parts or not others:
        return
    for part, part_type in parts:
        other = others.pop(part, None)
        if other is None:
            yield f": {part} is not there"
            return
        if not _is_same(other, part_type):
            deeper = [*_differing(part, other, part_type)]
            yield from deeper or [f": {part} must be {part_type}, got {other}"]
            return
    named = " and ".join(others)
    yield f": {named} must not be there" if others else ": its fields must be in this order"


def _fields(data_type: Any) -> Sequence[Any]:
    """Return the fields of a type, none of one that is no struct, list or map."""
    if pa.types.is_map(data_type):
        return [data_type.key_field, data_type.item_field]
    if pa.types.is_struct(data_type):
        return list(data_type)
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return [data_type.value_field.with_name("element")]
    return []


def reader_of_table(name: str, table: object) -> Any:
    """Return a reader of the batches of a table; InvalidTypeError with its name for another."""
    if isinstance(table, pa.RecordBatchReader):
        return table
    try:
        # Not every PyArrow casts the text that Polars exports.
        whole = table.to_arrow() if hasattr(table, "to_arrow") else table
        is_stream = hasattr(whole, "__arrow_c_stream__")
        reader = pa.RecordBatchReader.from_stream(whole) if is_stream else None
    except _REFUSED as error:  # such as a column of pandas with several classes
        reason = " ".join(str(error).split())[:_REASON]
        raise InvalidTypeError(
            f"{name} must be a table that Arrow takes, got a {type(table).__name__}: {reason}"
        ) from None
    if reader is not None:
        _check_no_addresses(name, table, reader.schema)
        return reader
    raise InvalidTypeError(
        f"{name} must be a table of Arrow, pandas (2.2 and newer) or Polars, got {show(table)}"
    )


def _check_no_addresses(name: str, table: object, schema: pa.Schema) -> None:
    """Refuse columns of Polars' Object, which it exports as the addresses of the objects.

    Polars has no other type that becomes binary of a fixed size.
    """
    if type(table).__module__.partition(".")[0] != "polars":
        return
    names = [field.name for field in schema if pa.types.is_fixed_size_binary(field.type)]
    if names:
        raise InvalidTypeError(
            f"{name} must have no column of Polars' Object, which Arrow has not, but of the type "
            f"of its values, such as Binary, got {show(names)}"
        )


def cast(name: str, array: Any, data_type: pa.DataType) -> Any:
    """Return a column as one of another type; InvalidValueError for a value that it has not."""
    try:
        return array.cast(data_type)
    except pa.ArrowException as error:
        raise InvalidValueError(f"{name} must be {data_type}, got another: {error}") from None


_KINDS = (
    (pa.types.is_integer,),
    (pa.types.is_string, pa.types.is_large_string),
    (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary),
    (pa.types.is_decimal,),
)


def _is_same(actual: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether a type is the wanted one but for widths, such as int64 for int32.

    `_cast` then refuses the values that are too large.
    """
    if pa.types.is_null(actual):
        return True
    if any(_is_any(actual, kind) and _is_any(wanted, kind) for kind in _KINDS):
        return True
    if pa.types.is_timestamp(actual) and pa.types.is_timestamp(wanted):
        return (actual.tz is None) == (wanted.tz is None)
    if pa.types.is_list(wanted):
        is_list = pa.types.is_list(actual) or pa.types.is_large_list(actual)
        return is_list and _is_same(actual.value_type, wanted.value_type)
    if pa.types.is_map(actual) and pa.types.is_map(wanted):
        return _is_same(actual.key_type, wanted.key_type) and _is_same(
            actual.item_type, wanted.item_type
        )
    if pa.types.is_struct(actual) and pa.types.is_struct(wanted):
        return [field.name for field in actual] == [field.name for field in wanted] and all(
            _is_same(field.type, other.type) for field, other in zip(actual, wanted)
        )
    return bool(actual == wanted)


def _is_any(data_type: pa.DataType, tests: Sequence[Callable[[pa.DataType], bool]]) -> bool:
    return any(test(data_type) for test in tests)
