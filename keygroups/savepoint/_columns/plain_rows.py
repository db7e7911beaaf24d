"""Single rows of plain values, which become columns together.

A plain value is sure to be written, cannot change until then, and is short: a number, a text, or a
tuple, a Row or a Pojo of them. Any other value is for the row-by-row encoder, which writes it or
says at once what is wrong with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from datetime import time as time_of_day
from decimal import Decimal
from typing import Any

import pyarrow as pa

from keygroups._serializers import compounds, scalars
from keygroups._serializers.base import Serializer, check_and_write
from keygroups._serializers.jvm.pojos import PojoSerializer
from keygroups._serializers.sql.rows import RowDataSerializer
from keygroups._serializers.sql.values import value_converter
from keygroups._values.java_values import Pojo
from keygroups._values.rows import Row
from keygroups.errors import InvalidValueError, KeyGroupsError
from keygroups.logical_types import LogicalType
from keygroups.savepoint._columns.arrow_values import arrow_array
from keygroups.savepoint._columns.batches import typed_columns
from keygroups.savepoint._columns.table_rows import TableColumns
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.stored_values import check_time
from keygroups.state_keys import VOID_NAMESPACE

IsPlain = Callable[[Any], bool]

_LONGEST = 128  # characters of a text
_MOST_FIELDS = 128
_UNCHANGING = (bytes, date, datetime, time_of_day, float, Decimal)


PlainRow = tuple[Any, Any, Any, "int | None"]
"""The key, the value, the user key and the last access of a row."""


class PlainRows:
    """Holds plain rows of one state, `rows`, until they become columns."""

    def __init__(self, state: StateDescriptor, checks: Sequence[IsPlain]) -> None:
        self.rows: list[PlainRow] = []
        self._state = state
        self._is_key, self._is_value, *is_user_key = checks
        self._is_user_key = is_user_key[0] if is_user_key else _is_none
        self._is_time: IsPlain = _is_past if state.has_ttl else _is_none

    @classmethod
    def of(cls, state: StateDescriptor) -> PlainRows | None:
        """Return those of a state, None for one whose values are never plain."""
        value = state.value_serializer
        if value is None or state.kind == "LIST" or state.is_python:
            return None
        if state.namespace_serializer != VOID_NAMESPACE:
            return None
        parts = [state.key_serializer, value, state.user_key_serializer]
        checks = [_plain_check(part) for part in parts if part is not None]
        present = [check for check in checks if check is not None]
        return cls(state, present) if len(present) == len(checks) else None

    def take(self, row: PlainRow) -> bool:
        """Hold a row and return True, or return False for one that is not plain."""
        key, value, user_key, last_access = row
        is_plain = (
            self._is_key(key)
            and self._is_value(value)
            and self._is_user_key(user_key)
            and self._is_time(last_access)
        )
        if is_plain:
            self.rows.append(row)
        return is_plain

    def columns(self, rows: Sequence[PlainRow]) -> TableColumns | None:
        """Return the columns of rows; None where one does not hold a value."""
        keys, values, user_keys, times = zip(*rows)
        key, _, user_key, value = typed_columns(self._state)
        arrays = {}
        if self._state.has_ttl:
            arrays["last_access"] = pa.array(times, pa.int64())
        columns = {"key": (key, keys), "value": (value, values), "user_key": (user_key, user_keys)}
        for name, (column, of_column) in columns.items():
            if column is not None:
                try:
                    arrays[name] = arrow_array(column.convert(of_column), column.data_type)
                except InvalidValueError:
                    return None
        return TableColumns(self._state.name, arrays, {})


def _is_none(value: object) -> bool:
    return value is None


def _is_past(last_access: Any) -> bool:
    """Return whether a time is plain; whether a later one is allowed depends on the writer."""
    if type(last_access) is not int or last_access > time.time() * 1000:
        return False
    try:
        check_time(last_access)
    except InvalidValueError:
        return False
    return True


def _plain_check(serializer: Serializer) -> IsPlain | None:
    """Return the function that says whether a value is plain, None where none is."""
    cls = type(serializer)
    if cls in _SCALARS:
        return _SCALARS[cls]
    if cls is compounds.TupleSerializer:
        return _tuple_check(serializer.parts)
    if cls is PojoSerializer:
        assert isinstance(serializer, PojoSerializer)
        return _pojo_check(serializer)
    if cls is RowDataSerializer:
        return _sql_row_check(serializer.fields)
    return None


def _field_checks(parts: Iterable[Serializer]) -> list[IsPlain]:
    return [_SCALARS.get(type(part)) or _check_by_writing(part) for part in parts]


def _tuple_check(parts: Sequence[Serializer]) -> IsPlain | None:
    checks = _field_checks(parts)
    if len(checks) > _MOST_FIELDS:
        return None

    def is_plain(value: Any) -> bool:
        if type(value) is not tuple or len(value) != len(checks):
            return False
        return all(check(field) for check, field in zip(checks, value))

    return is_plain


def _pojo_check(serializer: PojoSerializer) -> IsPlain | None:
    java_class, names = serializer.java_class, serializer.names
    checks = [*zip(names, _field_checks(serializer.parts))]
    if len(checks) > _MOST_FIELDS:
        return None

    def is_plain(value: Any) -> bool:
        if type(value) is not Pojo or value.java_class != java_class:
            return False
        if len(value) != len(checks):
            return False
        try:
            for name, check in checks:
                field = value[name]
                if field is not None and not check(field):
                    return False
        except KeyError:
            return False
        return True

    return is_plain


def _sql_row_check(fields: Sequence[LogicalType]) -> IsPlain | None:
    checks = [*map(_sql_check, fields)]
    if len(checks) > _MOST_FIELDS:
        return None

    def is_plain(value: Any) -> bool:
        if type(value) not in (Row, tuple) or len(value) != len(checks):
            return False
        if type(value) is Row and value.row_kind != "+I":
            return False
        return all(field is None or check(field) for check, field in zip(checks, value))

    return is_plain


def _sql_check(field: LogicalType) -> IsPlain:
    if field.name in _SQL_SCALARS:
        return _SQL_SCALARS[field.name]
    if field.name == "DECIMAL" and field.precision:
        unit = Decimal((0, (1,), -(field.scale or 0)))
        return _decimal_check(unit, unit * 10**field.precision)
    if field.name not in _SQL_UNCHANGING:
        return _is_never
    return _check_by(value_converter(field))


def _decimal_check(unit: Decimal, limit: Decimal) -> IsPlain:
    return lambda value: (
        type(value) is Decimal and value.same_quantum(unit) and -limit < value < limit
    )


def _check_by_writing(serializer: Serializer) -> IsPlain:
    return _check_by(lambda value: check_and_write(serializer, value))


def _check_by(convert: Callable[[Any], object]) -> IsPlain:
    """Return a check that a value is of a class without parts, and that nothing refuses it."""

    def is_plain(value: Any) -> bool:
        if type(value) not in _UNCHANGING or (type(value) is bytes and len(value) > _LONGEST):
            return False
        try:
            convert(value)
        except KeyGroupsError:
            return False
        return True

    return is_plain


def _is_never(value: object) -> bool:
    return False


def _is_text(value: Any) -> bool:
    return type(value) is str and len(value) <= _LONGEST


def _is_encodable(value: Any) -> bool:
    if type(value) is not str or len(value) > _LONGEST:
        return False
    return value.isascii() or not any("\ud800" <= unit <= "\udfff" for unit in value)


def _of_bits(bits: int) -> IsPlain:
    limit = 1 << bits - 1
    return lambda value: type(value) is int and -limit <= value < limit


def _is_bool(value: object) -> bool:
    return type(value) is bool


def _is_float(value: object) -> bool:
    return type(value) is float


_SCALARS: dict[type[Serializer], IsPlain] = {
    scalars.StringSerializer: _is_text,
    scalars.StringDataSerializer: _is_encodable,
    scalars.BooleanSerializer: _is_bool,
    scalars.DoubleSerializer: _is_float,
    scalars.ByteSerializer: _of_bits(8),
    scalars.ShortSerializer: _of_bits(16),
    scalars.IntSerializer: _of_bits(32),
    scalars.LongSerializer: _of_bits(64),
}
_SQL_SCALARS: dict[str, IsPlain] = {
    **{"TINYINT": _of_bits(8), "SMALLINT": _of_bits(16)},
    **{"INT": _of_bits(32), "BIGINT": _of_bits(64)},
    **{"BOOLEAN": _is_bool, "DOUBLE": _is_float},
    **dict.fromkeys(("CHAR", "VARCHAR"), _is_encodable),
}
_SQL_UNCHANGING = {"DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "FLOAT", "BINARY", "VARBINARY"}
