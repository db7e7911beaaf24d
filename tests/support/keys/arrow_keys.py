"""Which Arrow type holds a key, for tests that send keys of every type through arrays."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

from keygroups import arrays, hash_code, types
from keygroups.logical_types import LogicalType
from keygroups.types import KeyType

_SCALARS: dict[KeyType, pa.DataType] = {
    types.NULL: pa.null(),
    types.BOOLEAN: pa.bool_(),
    types.BYTE: pa.int8(),
    types.SHORT: pa.int16(),
    types.INT: pa.int32(),
    types.LONG: pa.int64(),
    types.FLOAT: pa.float32(),
    types.DOUBLE: pa.float64(),
    types.STRING: pa.string(),
    types.LOCAL_DATE: pa.date32(),
    types.LOCAL_TIME: pa.time64("us"),
    types.LOCAL_DATE_TIME: pa.timestamp("us"),
    types.INSTANT: pa.timestamp("us", "UTC"),
    types.UUID: pa.string(),
    types.BYTE_BUFFER: pa.binary(),
    types.HASHED: pa.int32(),
}
_SQL: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIME": pa.time64("us"),
    "CHAR": pa.string(),
    "VARCHAR": pa.string(),
    "BINARY": pa.binary(),
    "VARBINARY": pa.binary(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP_LTZ": pa.timestamp("us", "UTC"),
}


class NoArrowTypeError(Exception):
    """No Arrow type holds this key here: a lone surrogate, a decimal of 77 digits, a map, ..."""


class InArrow(NamedTuple):
    """An Arrow type and a value of it."""

    type: pa.DataType
    value: Any


def in_arrow(key_type: KeyType, key: Any) -> InArrow:
    """Return the Arrow type that holds a key, and the value in it."""
    if isinstance(key_type, types.FieldsType):
        values = key if key is not None else (None,) * len(key_type.fields)
        parts = [in_arrow(field, value) for field, value in zip(key_type.fields, values)]
        return _struct(parts, key)
    if isinstance(key_type, types.PYFLINK) and not isinstance(
        key_type.element, types.SQL_TIMESTAMP
    ):
        return in_arrow(key_type.element, key)
    if isinstance(key_type, types.SCALA_OPTION):
        return in_arrow(key_type.element, key)
    if isinstance(key_type, types.SQL_ROW):
        return _struct(list(map(sql_in_arrow, key_type.fields, key)), key)
    if isinstance(key_type, types.LIST):
        elements = [in_arrow(key_type.element, element) for element in key or [None]]
        # A decimal that is null has any scale.
        found = {e.type for e, one in zip(elements, key or [None]) if one is not None}
        if len(found) > 1:
            raise NoArrowTypeError(key_type)
        element_type = found.pop() if found else elements[0].type
        value = None if key is None else [e.value for e in elements][: len(key)]
        return InArrow(pa.list_(element_type), value)
    if isinstance(key_type, types.SQL_DATE):
        return InArrow(pa.date32(), key)
    if isinstance(key_type, types.SQL_TIMESTAMP):
        local = key and key.replace(tzinfo=key_type.zone)
        return InArrow(pa.timestamp("us", "UTC"), local)
    if key_type is types.BIG_DEC:
        return InArrow(_decimal(key), key)
    if key_type not in _SCALARS:
        raise NoArrowTypeError(key_type)
    return InArrow(_SCALARS[key_type], _value(key))


def sql_in_arrow(field: LogicalType, value: Any) -> InArrow:
    """Return the Arrow type that holds a field of Flink SQL, and the value in it."""
    if field.name == "DECIMAL":
        return InArrow(pa.decimal128(field.precision, field.scale), value)
    if field.name == "ROW":
        values = value if value is not None else (None,) * len(field.fields)
        return _struct(list(map(sql_in_arrow, field.fields, values)), value)
    if field.name == "ARRAY":
        [element] = field.fields
        elements = None if value is None else [sql_in_arrow(element, one).value for one in value]
        return InArrow(pa.list_(sql_in_arrow(element, None).type), elements)
    return InArrow(_SQL[field.name], _value(value))


def _struct(parts: list[InArrow], key: Any) -> InArrow:
    names = [f"f{index}" for index in range(len(parts))]
    value = None if key is None else dict(zip(names, (part.value for part in parts)))
    return InArrow(pa.struct([(name, part.type) for name, part in zip(names, parts)]), value)


def _value(key: Any) -> Any:
    if isinstance(key, str) and any("\ud800" <= char <= "\udfff" for char in key):
        raise NoArrowTypeError("a lone surrogate")
    if isinstance(key, dt.datetime) and key.tzinfo is not None:
        # Arrow makes one of UTC first, which at the ends of the calendar Python cannot.
        try:
            return key.astimezone(dt.timezone.utc)
        except OverflowError:
            raise NoArrowTypeError("past the end of the calendar") from None
    return str(key) if isinstance(key, uuid.UUID) else key


def _decimal(key: Decimal | None) -> pa.DataType:
    if key is None:
        return pa.decimal128(38, 0)
    scale, digits = -int(key.as_tuple().exponent), len(key.as_tuple().digits)
    if not -38 <= scale <= 76 or max(digits, digits - scale, scale) > 76:
        raise NoArrowTypeError("beyond 76 digits")
    make = pa.decimal128 if max(digits, scale) <= 38 else pa.decimal256
    return make(max(digits, scale, 1), scale)


def masked(key: Any, key_type: KeyType | None = None) -> Any:
    """Return the hash codes of an array of keys, masked where the key is null."""
    return arrays.hash_code(key, key_type, nulls="mask")


def one_by_one(values: list[Any], key_type: KeyType | None) -> list[int]:
    """Return the core's answer for each key."""
    return [hash_code(value, key_type) for value in values]
