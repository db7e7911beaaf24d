"""Hypothesis strategies of the keys of each key type; needs Hypothesis."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st

from keygroups import types
from keygroups._checks import show
from keygroups._values.java_values import Left, Right
from keygroups.errors import UnsupportedKeyTypeError
from keygroups.logical_types import LogicalType
from keygroups.types import KeyType

Strategy = st.SearchStrategy[Any]

_MOST_ELEMENTS = 5
_LONGEST_TEXT = 30

SCALARS: dict[KeyType, Strategy] = {
    types.BOOLEAN: st.booleans(),
    types.BYTE: st.integers(-(2**7), 2**7 - 1),
    types.SHORT: st.integers(-(2**15), 2**15 - 1),
    types.INT: st.integers(-(2**31), 2**31 - 1),
    types.LONG: st.integers(-(2**63), 2**63 - 1),
    types.FLOAT: st.floats(width=32),
    types.DOUBLE: st.floats(),
    types.CHAR: st.characters(exclude_categories=(), max_codepoint=0xFFFF),
    types.STRING: st.text(st.characters(exclude_categories=())),
    **dict.fromkeys(
        (types.BIG_INT, types.SCALA_BIG_INT), st.integers() | st.integers(-(2**300), 2**300)
    ),
    types.BIG_DEC: st.builds(
        lambda sign, digits, exponent: Decimal((sign, digits, exponent)),
        st.integers(0, 1),
        st.lists(st.integers(0, 9), min_size=1, max_size=60),
        st.integers(-60, 60) | st.integers(-(2**30), 2**30),
    ),
    types.LOCAL_DATE: st.dates(),
    types.LOCAL_TIME: st.times(),
    types.LOCAL_DATE_TIME: st.datetimes(),
    types.INSTANT: st.datetimes(timezones=st.timezones()),
    types.UUID: st.uuids(),
    types.BYTE_BUFFER: st.binary(max_size=_LONGEST_TEXT),
    types.HASHED: st.integers(-(2**31), 2**31 - 1),
}
_SQL_SCALARS: dict[str, Strategy] = {
    "BOOLEAN": SCALARS[types.BOOLEAN],
    "TINYINT": SCALARS[types.BYTE],
    "SMALLINT": SCALARS[types.SHORT],
    "INT": SCALARS[types.INT],
    "BIGINT": SCALARS[types.LONG],
    "FLOAT": SCALARS[types.FLOAT],
    "DOUBLE": SCALARS[types.DOUBLE],
    "DATE": SCALARS[types.LOCAL_DATE],
}
_SQL_TIMES: dict[str, tuple[Strategy, int]] = {  # values and fraction digits
    "TIME": (SCALARS[types.LOCAL_TIME], 3),
    "TIMESTAMP": (SCALARS[types.LOCAL_DATE_TIME], 6),
    "TIMESTAMP_LTZ": (SCALARS[types.INSTANT], 6),
}


@lru_cache(maxsize=10_000)
def values(key_type: KeyType) -> Strategy:
    """Return the strategy of Python values of a key type.

    A few of the values are no keys: java.sql values at a change of the clock, timestamps that
    PyFlink rounds, sets and maps whose elements are equal in Java.
    """
    if isinstance(key_type, types.SQL_ROW):
        return st.tuples(*map(_sql_field, key_type.fields))
    if isinstance(key_type, types.FieldsType):
        return st.tuples(*map(nullable, key_type.fields))
    if isinstance(key_type, types.LIST):
        return st.lists(nullable(key_type.element), max_size=_MOST_ELEMENTS)
    if isinstance(key_type, types.SET):
        element = _hashable(key_type, key_type.element)
        return st.frozensets(element, max_size=_MOST_ELEMENTS)
    if isinstance(key_type, types.MAP):
        key = _hashable(key_type, key_type.key)
        return st.dictionaries(key, nullable(key_type.value), max_size=_MOST_ELEMENTS)
    if isinstance(key_type, (types.OPTIONAL, types.SCALA_OPTION, types.PYFLINK)):
        return nullable(key_type.element)
    if isinstance(key_type, types.SCALA_EITHER):
        left_value, right_value = nullable(key_type.left), nullable(key_type.right)
        return st.builds(Left, left_value) | st.builds(Right, right_value)
    if isinstance(key_type, types.JavaSqlType):
        return _java_sql(key_type)
    if isinstance(key_type, types.PickledKey):
        return st.text() | st.integers() | st.booleans() | st.binary()
    return st.none() if key_type is types.NULL else SCALARS[key_type]


def nullable(key_type: KeyType) -> Strategy:
    """Return the strategy of the values of a field, None among them."""
    return st.none() | values(key_type)


def _hashable(owner: KeyType, element: KeyType) -> Strategy:
    for part in element.walk():
        if isinstance(part, (types.LIST, types.MAP)):
            raise UnsupportedKeyTypeError(
                f"key_type {show(owner)} has no keys in Python: it is made of {show(part)}, whose "
                "lists or dicts cannot be in a set, nor be keys of a dict"
            )
    return nullable(element)


def _java_sql(key_type: types.JavaSqlType) -> Strategy:
    if isinstance(key_type, types.SQL_TIME):
        return st.times().map(lambda time: _cut(time, 3))
    low, high = key_type.certain_span
    if isinstance(key_type, types.SQL_DATE):
        return st.dates(low.date(), high.date())
    return st.datetimes(low, high)


def _sql_field(field: LogicalType) -> Strategy:
    required = _sql_values(field)
    return st.none() | required if field.nullable else required


def _sql_values(field: LogicalType) -> Strategy:
    most = min(field.length or 0, _LONGEST_TEXT)
    if field.name in ("CHAR", "VARCHAR"):
        return st.text(st.characters(exclude_categories=()), max_size=most)
    if field.name in ("BINARY", "VARBINARY"):
        return st.binary(max_size=most)
    if field.name == "DECIMAL":
        largest, scale = 10 ** (field.precision or 0) - 1, field.scale or 0
        unscaled = st.integers(-largest, largest)
        return unscaled.map(lambda number: Decimal(f"{number}E-{scale}"))
    if field.name in _SQL_TIMES:
        moments, most = _SQL_TIMES[field.name]
        digits = min(field.precision or 0, most)
        return moments.map(lambda moment: _cut(moment, digits))
    if field.name == "ROW":
        return st.tuples(*map(_sql_field, field.fields))
    if field.name == "ARRAY":
        return st.lists(_sql_field(field.fields[0]), max_size=_MOST_ELEMENTS)
    return _SQL_SCALARS[field.name]


def _cut(moment: Any, digits: int) -> Any:
    """Return a time or datetime with at most `digits` digits of a fraction of a second."""
    unit = 10 ** (6 - digits)
    return moment.replace(microsecond=moment.microsecond // unit * unit)
