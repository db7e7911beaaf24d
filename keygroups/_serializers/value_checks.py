"""Checks of values that are to be written: those of hashing a key, without the hash."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import repeat
from typing import Any

from keygroups import types
from keygroups._checks import show
from keygroups._values.checks import each, elements_of, expect, expect_fields, items_of
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    UnsupportedKeyTypeError,
)
from keygroups.hashing import hasher_of
from keygroups.types import KeyType

Check = Callable[[Any], object]


def check_value(value: object, key_type: KeyType) -> None:
    """Raise InvalidTypeError or InvalidValueError for a value of another type.

    The words are those of hashing; unlike there, a row may be of any kind.
    """
    if value is None and not isinstance(key_type, types.PYFLINK):
        raise InvalidValueError(f"value of type {key_type!r} must not be None")
    try:
        _check_of(key_type)(value)
    except UnsupportedKeyTypeError:  # The error of an enum has a remedy for keys only.
        raise InvalidTypeError(
            f"value of type {key_type!r} must not be an enum or hold one, got {show(value)}"
        ) from None


@lru_cache(maxsize=1024)
def _check_of(key_type: KeyType) -> Check:
    if isinstance(key_type, types.FieldsType):
        return _fields_check(key_type)
    if isinstance(key_type, types.LIST):
        element = _nullable(key_type.element)
        return lambda value: _consume(
            each("element", repeat(element), expect("LIST", value, list, "a list"))
        )
    if isinstance(key_type, types.SET):
        element = _nullable(key_type.element)
        return lambda value: _consume(each("element", repeat(element), elements_of("SET", value)))
    if isinstance(key_type, types.MAP):
        return _items_check(_nullable(key_type.key), _nullable(key_type.value))
    if isinstance(key_type, types.SQL_ROW):
        return _accept  # Its serializer checks a row, by weaker rules than those of keys.
    if key_type == types.STRING:
        return lambda value: expect("STRING", value, str, "a str")
    return hasher_of(key_type)  # Hashing a number takes no longer than a check.


def _accept(value: object) -> None:
    """Accept any value."""


def _fields_check(key_type: types.FieldsType) -> Check:
    checks = [_nullable(field) for field in key_type.fields]
    name = repr(key_type)

    def check_fields(value: object) -> None:
        fields = expect_fields(name, len(checks), value)
        _consume(each("field", checks, fields))

    return check_fields


def _items_check(check_key: Check, check_value: Check) -> Check:
    def check_items(value: object) -> None:
        items = items_of("MAP", value)
        _consume(each("map key", repeat(check_key), (key for key, _ in items)))
        _consume(each("map value", repeat(check_value), (mapped for _, mapped in items)))

    return check_items


def _nullable(key_type: KeyType) -> Check:
    check = _check_of(key_type)
    return lambda value: None if value is None else check(value)


def _consume(checked: Iterable[object]) -> None:
    deque(checked, maxlen=0)
