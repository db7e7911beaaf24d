"""The key type of a Python value, where the value leaves no doubt, and the refusal where not."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable
from decimal import Decimal

from keygroups import types
from keygroups._checks import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, MAX_DEPTH, refused_key, show
from keygroups.errors import AmbiguousKeyTypeError, InvalidValueError, UnsupportedKeyTypeError
from keygroups.types import KeyType, ScalarType

_INT = types.INT  # a name of this module's own, for the hot path
_INFERRED: dict[type, ScalarType] = {
    bool: types.BOOLEAN,
    str: types.STRING,
    float: types.DOUBLE,
    Decimal: types.BIG_DEC,
    dt.date: types.LOCAL_DATE,
    dt.time: types.LOCAL_TIME,
    uuid.UUID: types.UUID,
}


def infer_key_type(key: object, depth: int = 0) -> KeyType:
    """Return the key type of a Python value, where the value leaves no doubt.

    The class has to be exactly bool, int, str, float, Decimal, date, time, datetime,
    UUID, tuple, list, set, frozenset or dict; a subclass (an enum, a namedtuple, a NumPy
    scalar) has to be declared. The elements of a list, set or dict have to share one type.

    `depth` is how many containers deep in a key the value is.

    Raises AmbiguousKeyTypeError for an int from -2^31 to -1, whose hash differs between
    Integer and Long, and UnsupportedKeyTypeError for any other class, for a mixed list
    and for an int beyond 64 bits.

    >>> infer_key_type(("a", 2**40))
    TUPLE(STRING, LONG)
    """
    if type(key) is int:  # the hot path
        return _INT if 0 <= key <= INT_MAX else _infer_wide_int(key)
    cls = type(key)
    if cls in _INFERRED:
        return _INFERRED[cls]
    if type(key) is dt.datetime:
        return types.LOCAL_DATE_TIME if key.utcoffset() is None else types.INSTANT
    if depth >= MAX_DEPTH and isinstance(key, (tuple, list, set, frozenset, dict)):
        raise InvalidValueError(f"key must nest at most {MAX_DEPTH} deep, got {show(key)}")
    if type(key) is tuple:
        return types.TUPLE(*(_infer_field(field, depth) for field in key))
    if type(key) is list:
        return types.LIST(_infer_common("list", key, depth))
    if isinstance(key, (set, frozenset)) and cls in (set, frozenset):
        return types.SET(_infer_common("set", key, depth))
    if type(key) is dict:
        return types.MAP(
            _infer_common("dict", key, depth), _infer_common("dict", key.values(), depth)
        )
    raise refused_key(key)


def _infer_field(value: object, depth: int) -> KeyType:
    return types.NULL if value is None else infer_key_type(value, depth + 1)


def _infer_wide_int(key: int) -> ScalarType:
    if INT_MIN <= key < 0:
        raise AmbiguousKeyTypeError(
            f"key {key} hashes differently as Integer and as Long: pass key_type=INT or "
            "key_type=LONG (ints from 0 to 2147483647 hash alike)"
        )
    if LONG_MIN <= key <= LONG_MAX:
        return types.LONG
    raise UnsupportedKeyTypeError(
        f"key {show(key)} is beyond Long's 64 bits: pass key_type=BIG_INT if it is a BigInteger"
    )


def _infer_common(what: str, values: Iterable[object], depth: int) -> KeyType:
    """Return the one type of all values; nulls have every type, small ints are also Long."""
    found = {_infer_field(value, depth) for value in values} - {types.NULL}
    if found == {types.INT, types.LONG}:
        return types.LONG
    if len(found) > 1:
        raise UnsupportedKeyTypeError(
            f"key is a {what} of several types ({', '.join(sorted(map(repr, found)))}): "
            "pass its key_type"
        )
    return found.pop() if found else types.NULL
