"""Pickles of values of Python's own, as PyFlink has them in state and hashes them as keys."""

from __future__ import annotations

import datetime as dt
import pickle
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from keygroups._checks import MAX_DEPTH, show
from keygroups._values.java_lang import fold, signed
from keygroups._values.python import Pickle
from keygroups.errors import UnsupportedKeyTypeError

_ATOMS = (type(None), bool, int, float, str, bytes, Decimal, dt.date, dt.time, dt.datetime)
_CONTAINERS = (list, tuple, set, frozenset)
_NAMES = ("datetime", "date", "time", "timedelta", "timezone", "decimal", "Decimal")
"""Texts that may be objects of Python's, by which a pickle has the names of classes."""


def write_pickle(value: Any, protocol: int) -> bytes:
    """Return the pickle of a value of Python's own classes.

    Raises UnsupportedKeyTypeError for one of another class, which the reader would not know.
    """
    _check_known(value, 0)
    return pickle.dumps(value, protocol)


def write_key_pickle(key: Any, protocol: int) -> bytes:
    """Return the only pickle of a key, whose bytes PyFlink hashes; those of a Pickle it is.

    Raises UnsupportedKeyTypeError where there are several: for a set, whose order is that of the
    process, and where equal parts may be one object, which is written once, or two of them.
    """
    if isinstance(key, Pickle):
        return bytes(key)
    pickled = write_pickle(key, protocol)
    parts = _Parts(key)
    if pickle.STACK_GLOBAL in pickled:
        for name in _NAMES:
            parts.number(name)
    parts.number(key)
    return pickled


def hash_key_pickle(key: Any, protocol: int) -> int:
    """Return the hash of what `write_key_pickle` returns. JDK: Arrays.hashCode."""
    return fold(memoryview(write_key_pickle(key, protocol)).cast("b"), 1)


def hash_row_of_pickle(protocol: int, key: Any) -> int:
    """Return the hash of the Row that PyFlink puts round a pickled key, in which None is null."""
    return 31 if key is None else signed(62 + hash_key_pickle(key, protocol))


class _Parts:
    """The parts of a key, each with a number, which equal ones share."""

    def __init__(self, key: Any) -> None:
        self._key = key
        self._numbers: dict[tuple[Any, ...], int] = {}

    def number(self, part: Any) -> int:
        """Return the number of a part; raise for one that the pickle may have in two ways."""
        shown = (type(part), *self._content(part))
        is_written = part is None or part == () or type(part) in (bool, int, float)
        if not is_written and (shown in self._numbers or _is_in_no_order(part)):
            raise UnsupportedKeyTypeError(
                f"key {show(self._key)} has other pickles too, by {show(part)}: pass a Pickle of "
                "the bytes, as entries have it"
            )
        return self._numbers.setdefault(shown, len(self._numbers))

    def _content(self, part: Any) -> Iterable[Any]:
        if isinstance(part, _CONTAINERS):
            return [self.number(item) for item in part]
        if isinstance(part, dict):
            return [self.number(item) for pair in part.items() for item in pair]
        if isinstance(part, (dt.datetime, dt.time)):
            self.number(part.tzinfo)
        elif isinstance(part, Decimal):
            self.number(str(part))
        return [part if type(part) is int else repr(part)]


def _is_in_no_order(part: Any) -> bool:
    return isinstance(part, (set, frozenset)) and len(part) > 1


def _check_known(value: Any, depth: int) -> None:
    if depth <= MAX_DEPTH:
        if type(value) in _CONTAINERS:
            for item in value:
                _check_known(item, depth + 1)
            return
        if type(value) is dict:
            for pair in value.items():
                _check_known(pair, depth)
            return
        if type(value) in (*_ATOMS, dt.timedelta, dt.timezone):
            return
    raise UnsupportedKeyTypeError(
        f"only values of Python's own classes are pickled here, got {show(value)}"
    )
