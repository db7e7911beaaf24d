"""The types of PyFlink's state that `keygroups.types` does not have, by their names in `Types`.

`Operator.as_pyflink` takes descriptors of these, and of key types: what is `Types.LONG()` in the
job is LONG here, `Types.PRIMITIVE_ARRAY(Types.INT())` is PRIMITIVE_ARRAY(INT). What is of a date,
a time, an array or a pickle is made by the functions here, such as LIST(SQL_DATE).

    job                                        here
    Types.BOOLEAN() to Types.DOUBLE()          BOOLEAN to DOUBLE of keygroups.types
    Types.STRING(), CHAR(), BIG_INT()          STRING, CHAR, BIG_INT, likewise
    Types.BIG_DEC(), INSTANT()                 BIG_DEC, INSTANT, likewise
    Types.SQL_DATE(), SQL_TIME()               SQL_DATE, SQL_TIME
    Types.SQL_TIMESTAMP()                      SQL_TIMESTAMP
    Types.PICKLED_BYTE_ARRAY()                 PICKLED
    Types.PRIMITIVE_ARRAY(Types.BYTE())        BYTES, or PRIMITIVE_ARRAY(BYTE)
    Types.PRIMITIVE_ARRAY(t)                   PRIMITIVE_ARRAY(t)
    Types.BASIC_ARRAY(t), OBJECT_ARRAY(t)      LIST(t)
    Types.LIST(t), MAP(k, v)                   LIST(t), MAP(k, v)
    Types.TUPLE([t, ...])                      TUPLE(t, ...)
    Types.ROW([t, ...])                        ROW(t, ...)
    Types.ROW_NAMED([name, ...], [t, ...])     ROW(t, ..., names=[name, ...])

A pickle is read where it is of values of Python's own: None, bools, numbers, texts, bytes, lists,
tuples, dicts, sets, Decimals, dates, times, and rows of PyFlink's. Any other is a `Pickle`, its
bytes. Nothing is unpickled, so that nothing in a pickle is called. PICKLED is the key type of a
`key_by` that names none, too.
"""

from __future__ import annotations

from collections.abc import Iterable

from keygroups._checks import check_str, iterate
from keygroups._serializers import pyflink as _pyflink
from keygroups._serializers.base import Serializer
from keygroups._serializers.collections import MapSerializer as _MapSerializer
from keygroups._serializers.compounds import RowSerializer as _RowSerializer
from keygroups._serializers.compounds import TupleSerializer as _TupleSerializer
from keygroups._serializers.pyflink import PICKLED, SQL_DATE, SQL_TIME, SQL_TIMESTAMP
from keygroups._values.python import Pickle
from keygroups.errors import InvalidValueError
from keygroups.types import KeyType

__all__ = [
    "LIST",
    "MAP",
    "PICKLED",
    "PRIMITIVE_ARRAY",
    "ROW",
    "SQL_DATE",
    "SQL_TIME",
    "SQL_TIMESTAMP",
    "TUPLE",
    "Pickle",
]
__dir__ = __all__.copy


def LIST(element_type: KeyType | Serializer) -> Serializer:
    """Return the type of a list, or of an array of objects; None is an element of any.

    Raises InvalidTypeError, UnsupportedKeyTypeError for a type that PyFlink does not declare.

    >>> LIST(SQL_DATE)
    ARRAY(PYTHON_DATE)
    """
    return _pyflink.array(_pyflink.python_serializer("element_type", element_type))


def PRIMITIVE_ARRAY(element_type: KeyType | Serializer) -> Serializer:
    """Return the type of an array of BOOLEAN, BYTE, SHORT, INT, LONG, FLOAT or DOUBLE.

    A value is an `array.array`, of BOOLEAN a list, of BYTE bytes. Raises InvalidTypeError for
    other elements.

    >>> from keygroups.types import INT
    >>> PRIMITIVE_ARRAY(INT)
    INT_ARRAY
    """
    return _pyflink.primitive_array(_pyflink.python_serializer("element_type", element_type))


def MAP(key_type: KeyType | Serializer, value_type: KeyType | Serializer) -> Serializer:
    """Return the type of a dict, a value of which may be None.

    Raises InvalidTypeError, UnsupportedKeyTypeError for a type that PyFlink does not declare.

    >>> from keygroups.types import STRING
    >>> MAP(STRING, SQL_DATE)
    MAP(SQL_STRING, PYTHON_DATE)
    """
    return _MapSerializer(
        _pyflink.python_serializer("key_type", key_type),
        _pyflink.python_serializer("value_type", value_type),
    )


def TUPLE(*field_types: KeyType | Serializer) -> Serializer:
    """Return the type of a tuple of one field or more, none of which is None.

    Raises InvalidValueError without fields, InvalidTypeError, UnsupportedKeyTypeError for a type
    that PyFlink does not declare.

    >>> from keygroups.types import STRING
    >>> TUPLE(STRING, SQL_DATE)
    TUPLE(SQL_STRING, PYTHON_DATE)
    """
    return _TupleSerializer(_fields(field_types))


def ROW(*field_types: KeyType | Serializer, names: Iterable[str] | None = None) -> Serializer:
    """Return the type of a Row, a field of which may be None; `names` are those of ROW_NAMED.

    Raises InvalidValueError without fields and for other than a name for each; InvalidTypeError,
    UnsupportedKeyTypeError for a type that PyFlink does not declare.

    >>> from keygroups.types import STRING
    >>> ROW(STRING, SQL_DATE, names=["user", "day"])
    ROW(user SQL_STRING, day PYTHON_DATE)
    """
    fields = _fields(field_types)
    if names is None:
        return _RowSerializer(fields)
    checked = tuple(check_str("name of a field", name) for name in iterate("names", "str", names))
    if len(set(checked)) != len(fields) or len(checked) != len(fields):
        raise InvalidValueError(
            f"names must be {len(fields)} different ones, one for each field, got {len(checked)}"
        )
    return _RowSerializer(fields, names=checked)


def _fields(field_types: tuple[KeyType | Serializer, ...]) -> list[Serializer]:
    if not field_types:
        raise InvalidValueError("field_types must be at least one, got none")
    return [
        _pyflink.python_serializer(f"field {number}", field_type)
        for number, field_type in enumerate(field_types)
    ]
