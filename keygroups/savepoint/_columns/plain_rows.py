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
from keygroups._values.java_values import Pojo, fields_of
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
_UNCHANGING = (bytes, date, datetime, time_of_day, float)


class PlainRows:
    """Holds plain rows of one state until they become columns; `count` is how many."""

    def __init__(self, state: StateDescriptor, checks: Sequence[IsPlain]) -> None:
        parts = state.key_serializer, state.value_serializer, state.user_key_serializer
        self.width = sum(max(len(part.fields or part.parts), 1) for part in parts if part)
        """How many numbers and texts a row has, each of which takes little memory."""
        self._state = state
        self._is_key, self._is_value, *is_user_key = checks
        self._is_user_key = is_user_key[0] if is_user_key else None
        self._columns = typed_columns(state)
        # A list for each argument of `write` behind the state: fewer objects than one a row.
        self._rows: tuple[list[Any], ...] = ([], [], [], [])

    @property
    def count(self) -> int:
        """The number of rows that are held."""
        return len(self._rows[0])

    @classmethod
    def of(cls, state: StateDescriptor) -> PlainRows | None:
        """Return the PlainRows of a state, None for one whose values are never plain."""
        value = state.value_serializer
        if value is None or state.kind == "LIST" or state.is_python:
            return None
        if state.namespace_serializer != VOID_NAMESPACE:
            return None
        parts = [state.key_serializer, value, state.user_key_serializer]
        checks = [_plain_check(part) for part in parts if part is not None]
        present = [check for check in checks if check is not None]
        return cls(state, present) if len(present) == len(checks) else None

    def take(self, key: Any, value: Any, user_key: Any, last_access: int | None) -> bool:
        """Hold a row and return True, or return False for one that is not plain."""
        if not (self._is_key(key) and self._is_value(value)):
            return False
        keys, values, user_keys, times = self._rows
        if self._is_user_key is None:
            if user_key is not None:
                return False
        elif not self._is_user_key(user_key):
            return False
        if self._state.has_ttl:
            if not _is_past(last_access):
                return False
            times.append(last_access)
        elif last_access is not None:
            return False
        if self._is_user_key is not None:
            user_keys.append(user_key)
        keys.append(key)
        values.append(value)
        return True

    def taken(self) -> tuple[Iterable[tuple[Any, ...]], TableColumns | None]:
        """Return the rows, which are held no longer, and their columns; None if these cannot be.

        A row has the arguments of `write` behind the state.
        """
        keys, values, user_keys, times = held = self._rows
        self._rows = ([], [], [], [])
        nones = [None] * len(keys)
        rows = zip(*(part or nones for part in held))
        key, _, user_key, value = self._columns
        arrays = {"last_access": pa.array(times, pa.int64())} if times else {}
        fields = {"key": (key, keys), "value": (value, values), "user_key": (user_key, user_keys)}
        for name, (column, of_column) in fields.items():
            if column is not None:
                try:
                    arrays[name] = arrow_array(column.convert(of_column), column.data_type)
                except InvalidValueError:
                    return rows, None
        return rows, TableColumns(self._state.name, arrays, {})


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
    if len(serializer.parts or serializer.fields) > _MOST_FIELDS:
        return None
    if cls is compounds.TupleSerializer:
        return _tuple_check(serializer.parts)
    if cls is PojoSerializer:
        assert isinstance(serializer, PojoSerializer)
        return _pojo_check(serializer)
    return _sql_row_check(serializer.fields) if cls is RowDataSerializer else None


def _field_checks(parts: Iterable[Serializer]) -> list[IsPlain]:
    return [_SCALARS.get(type(part)) or _check_by_writing(part) for part in parts]


def _tuple_check(parts: Sequence[Serializer]) -> IsPlain:
    checks = _field_checks(parts)

    def is_plain(value: Any) -> bool:
        if type(value) is not tuple or len(value) != len(checks):
            return False
        return all(check(field) for check, field in zip(checks, value))

    return is_plain


def _pojo_check(serializer: PojoSerializer) -> IsPlain:
    java_class, names = serializer.java_class, serializer.names
    checks = dict(zip(names, _field_checks(serializer.parts)))

    def is_plain(value: Any) -> bool:
        if type(value) is not Pojo or value.java_class != java_class:
            return False
        fields = fields_of(value)
        if fields.keys() != checks.keys():
            return False
        for name, field in fields.items():
            if field is not None and not checks[name](field):
                return False
        return True

    return is_plain


def _sql_row_check(fields: Sequence[LogicalType]) -> IsPlain | None:
    checks = [check for check in map(_sql_check, fields) if check is not None]
    if len(checks) < len(fields):
        return None

    def is_plain(value: Any) -> bool:
        if type(value) is not Row or value.row_kind != "+I" or len(value) != len(checks):
            return False
        return all(field is None or check(field) for check, field in zip(checks, value))

    return is_plain


def _sql_check(field: LogicalType) -> IsPlain | None:
    if field.name in _SQL_SCALARS:
        return _SQL_SCALARS[field.name]
    if field.name == "DECIMAL" and field.precision:
        unit = Decimal((0, (1,), -(field.scale or 0)))
        return _decimal_check(unit, unit * 10**field.precision)
    return _check_by(value_converter(field)) if field.name in _SQL_UNCHANGING else None


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
