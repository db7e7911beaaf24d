"""How the golden vectors write a key as JSON: see `vectors/README.md`."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from keygroups import types
from keygroups.logical_types import LogicalType
from keygroups.savepoint.values import Left, Right
from keygroups.types import (
    LIST,
    MAP,
    OPTIONAL,
    PYFLINK,
    SCALA_EITHER,
    SCALA_OPTION,
    SET,
    SQL_ROW,
    FieldsType,
    KeyType,
)

_READERS: dict[str, Callable[[str], object]] = {
    "FLOAT": float.fromhex,
    "DOUBLE": float.fromhex,
    "BIG_DEC": Decimal,
    "LOCAL_DATE": dt.date.fromisoformat,
    "LOCAL_TIME": dt.time.fromisoformat,
    "LOCAL_DATE_TIME": dt.datetime.fromisoformat,
    "INSTANT": dt.datetime.fromisoformat,
    "SQL_DATE": dt.date.fromisoformat,
    "SQL_TIME": dt.time.fromisoformat,
    "SQL_TIMESTAMP": dt.datetime.fromisoformat,
    "UUID": uuid.UUID,
    "BYTE_BUFFER": bytes.fromhex,
    "DECIMAL": Decimal,
    "BINARY": bytes.fromhex,
    "VARBINARY": bytes.fromhex,
    "DATE": dt.date.fromisoformat,
    "TIME": dt.time.fromisoformat,
    "TIMESTAMP": dt.datetime.fromisoformat,
    "TIMESTAMP_LTZ": dt.datetime.fromisoformat,
}


def decode_key_type(text: str) -> KeyType:
    """Return the key type whose repr is `text`."""
    key_type = eval(text, vars(types).copy())
    assert isinstance(key_type, KeyType)
    return key_type


def encode_key(key_type: KeyType, key: Any) -> Any:
    """Return the JSON of a key of a key type."""
    if isinstance(key_type, PYFLINK):
        return encode_key(key_type.element, key)
    if key is None:
        return None
    if isinstance(key_type, SQL_ROW):
        return _encode_sql(key)
    if isinstance(key_type, FieldsType):
        return [encode_key(field, value) for field, value in zip(key_type.fields, key)]
    if isinstance(key_type, LIST):
        return [encode_key(key_type.element, element) for element in key]
    if isinstance(key_type, SET):  # sorted, as Python walks a set of strings in random order
        return sorted((encode_key(key_type.element, e) for e in key), key=json.dumps)
    if isinstance(key_type, (OPTIONAL, SCALA_OPTION)):
        return encode_key(key_type.element, key)
    if isinstance(key_type, SCALA_EITHER):
        if isinstance(key, Left):
            return {"Left": encode_key(key_type.left, key.value)}
        return {"Right": encode_key(key_type.right, key.value)}
    if isinstance(key_type, MAP):
        return [
            [encode_key(key_type.key, k), encode_key(key_type.value, v)] for k, v in key.items()
        ]
    return _encode_scalar(key)


def _encode_sql(value: Any) -> Any:
    return (
        list(map(_encode_sql, value))
        if isinstance(value, (tuple, list))
        else _encode_scalar(value)
    )


def _encode_scalar(key: Any) -> Any:
    if isinstance(key, (float, bytes)):
        return key.hex()
    if isinstance(key, (dt.date, dt.time)):
        return key.isoformat()
    return str(key) if isinstance(key, (Decimal, uuid.UUID)) else key


def decode_key(key_type: KeyType, data: Any) -> Any:
    """Return the key that `encode_key` wrote."""
    if isinstance(key_type, PYFLINK):
        return decode_key(key_type.element, data)
    if data is None:
        return None
    if isinstance(key_type, SQL_ROW):
        return tuple(map(_decode_sql, key_type.fields, data))
    if isinstance(key_type, FieldsType):
        return tuple(map(decode_key, key_type.fields, data))
    if isinstance(key_type, LIST):
        return [decode_key(key_type.element, element) for element in data]
    if isinstance(key_type, SET):
        return frozenset(decode_key(key_type.element, element) for element in data)
    if isinstance(key_type, (OPTIONAL, SCALA_OPTION)):
        return decode_key(key_type.element, data)
    if isinstance(key_type, SCALA_EITHER):
        if "Left" in data:
            return Left(decode_key(key_type.left, data["Left"]))
        return Right(decode_key(key_type.right, data["Right"]))
    if isinstance(key_type, MAP):
        return {decode_key(key_type.key, k): decode_key(key_type.value, v) for k, v in data}
    reader = _READERS.get(repr(key_type).partition("(")[0])
    return data if reader is None else reader(data)


def _decode_sql(field: LogicalType, data: Any) -> Any:
    if data is None:
        return None
    if field.name == "ROW":
        return tuple(map(_decode_sql, field.fields, data))
    if field.name == "ARRAY":
        return [_decode_sql(field.fields[0], element) for element in data]
    reader = _READERS.get(field.name)
    return data if reader is None else reader(data)
