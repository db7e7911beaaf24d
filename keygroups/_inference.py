"""The key type of a Python value, where the value leaves no doubt, and the refusal where not."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable
from decimal import Decimal

from keygroups._checks import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, MAX_DEPTH, refused_key, show
from keygroups.errors import (
    AmbiguousKeyTypeError,
    InvalidValueError,
    UnsupportedKeyTypeError,
)
from keygroups.types import (
    BIG_DEC,
    BOOLEAN,
    DOUBLE,
    INSTANT,
    INT,
    LIST,
    LOCAL_DATE,
    LOCAL_DATE_TIME,
    LOCAL_TIME,
    LONG,
    MAP,
    NULL,
    SET,
    STRING,
    TUPLE,
    UUID,
    KeyType,
    ScalarType,
)

_INFERRED: dict[type, ScalarType] = {
    bool: BOOLEAN,
    str: STRING,
    float: DOUBLE,
    Decimal: BIG_DEC,
    dt.date: LOCAL_DATE,
    dt.time: LOCAL_TIME,
    uuid.UUID: UUID,
}


def infer_key_type(key: object) -> KeyType:
    """Return the key type of a Python value, where the value leaves no doubt.

    The class has to be exactly bool, int, str, float, Decimal, date, time, datetime,
    UUID, tuple, list, set, frozenset or dict; a subclass (an enum, a namedtuple, a NumPy
    scalar) has to be declared. The elements of a list, set or dict have to share one type.

    Raises AmbiguousKeyTypeError for an int from -2^31 to -1, whose hash differs between
    Integer and Long, and UnsupportedKeyTypeError for any other class, for a mixed list
    and for an int beyond 64 bits.

    >>> infer_key_type(("a", 2**40))
    TUPLE(STRING, LONG)
    """
    return _infer(key, 0)


def _infer(key: object, depth: int) -> KeyType:
    """Infer the type of what is that many containers deep in a key."""
    cls = type(key)
    if isinstance(key, int) and cls is int:
        return INT if 0 <= key <= INT_MAX else _infer_wide_int(key)
    if cls in _INFERRED:
        return _INFERRED[cls]
    if isinstance(key, dt.datetime) and cls is dt.datetime:
        return LOCAL_DATE_TIME if key.utcoffset() is None else INSTANT
    if depth >= MAX_DEPTH and isinstance(key, (tuple, list, set, frozenset, dict)):
        raise InvalidValueError(f"key must nest at most {MAX_DEPTH} deep, got {show(key)}")
    if isinstance(key, tuple) and cls is tuple:
        return TUPLE(*(_infer_field(field, depth) for field in key))
    if isinstance(key, list) and cls is list:
        return LIST(_infer_common("list", key, depth))
    if isinstance(key, (set, frozenset)) and cls in (set, frozenset):
        return SET(_infer_common("set", key, depth))
    if isinstance(key, dict) and cls is dict:
        return MAP(_infer_common("dict", key, depth), _infer_common("dict", key.values(), depth))
    raise refused_key(key)


def _infer_field(value: object, depth: int) -> KeyType:
    return NULL if value is None else _infer(value, depth + 1)


def _infer_wide_int(key: int) -> ScalarType:
    if INT_MIN <= key < 0:
        raise AmbiguousKeyTypeError(
            f"key {key} hashes differently as Integer and as Long: pass key_type=INT or "
            "key_type=LONG (ints from 0 to 2147483647 hash alike)"
        )
    if LONG_MIN <= key <= LONG_MAX:
        return LONG
    raise UnsupportedKeyTypeError(
        f"key {show(key)} is beyond Long's 64 bits: pass key_type=BIG_INT if it is a BigInteger"
    )


def _infer_common(what: str, values: Iterable[object], depth: int) -> KeyType:
    """Return the one type of all values; nulls have every type, small ints are also Long."""
    types = {_infer_field(value, depth) for value in values} - {NULL}
    if types == {INT, LONG}:
        return LONG
    if len(types) > 1:
        raise UnsupportedKeyTypeError(
            f"key is a {what} of several types ({', '.join(sorted(map(repr, types)))}): "
            "pass its key_type"
        )
    return types.pop() if types else NULL
