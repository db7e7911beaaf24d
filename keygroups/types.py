"""Key types: what the key of the Flink job *is*, as a Java class.

The names follow PyFlink's `Types`. Scalar types are constants (`INT`, `STRING`), the
others are called with what they are made of (`TUPLE(STRING, INT)`, `SQL_DATE("UTC")`).
Key types are immutable, hashable, picklable and compare by value.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable
from decimal import Decimal
from enum import Enum
from zoneinfo import ZoneInfo

from keygroups.errors import (
    AmbiguousKeyTypeError,
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    UnsupportedKeyTypeError,
    show,
)

__all__ = [
    "BIG_DEC",
    "BIG_INT",
    "BOOLEAN",
    "BYTE",
    "CHAR",
    "DOUBLE",
    "FLOAT",
    "INSTANT",
    "INT",
    "LIST",
    "LOCAL_DATE",
    "LOCAL_DATE_TIME",
    "LOCAL_TIME",
    "LONG",
    "MAP",
    "NULL",
    "OPTIONAL",
    "ROW",
    "SET",
    "SHORT",
    "SQL_DATE",
    "SQL_TIME",
    "SQL_TIMESTAMP",
    "STRING",
    "TUPLE",
    "UUID",
    "KeyType",
    "ScalarType",
    "SqlType",
    "infer_key_type",
    "refused_key",
]

_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1
_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1
_MAX_TUPLE_ARITY = 25  # org.apache.flink.api.java.tuple.Tuple.MAX_ARITY
_ROW_KINDS = ("+I", "-U", "+U", "-D")  # in the order of RowKind.toByteValue()


class KeyType:
    """The base of all key types."""

    __slots__ = ()


class ScalarType(KeyType):
    """A key type without parameters; each is one constant of this module."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return self.name  # pickles as the constant of this module, so identity survives


BOOLEAN = ScalarType("BOOLEAN")
BYTE = ScalarType("BYTE")
SHORT = ScalarType("SHORT")
INT = ScalarType("INT")
LONG = ScalarType("LONG")
FLOAT = ScalarType("FLOAT")
DOUBLE = ScalarType("DOUBLE")
CHAR = ScalarType("CHAR")
STRING = ScalarType("STRING")
BIG_INT = ScalarType("BIG_INT")
BIG_DEC = ScalarType("BIG_DEC")
LOCAL_DATE = ScalarType("LOCAL_DATE")
LOCAL_TIME = ScalarType("LOCAL_TIME")
LOCAL_DATE_TIME = ScalarType("LOCAL_DATE_TIME")
INSTANT = ScalarType("INSTANT")
UUID = ScalarType("UUID")
NULL = ScalarType("NULL")
"""A field that is always null: what inference gives `None` inside a tuple or list."""


class _Parametric(KeyType):
    """A key type made of other things: equal where class and parts are equal."""

    __slots__ = ("_hash", "_parts")

    def __init__(self, *parts: object) -> None:
        self._parts = parts
        self._hash = hash((type(self), parts))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._parts == other._parts

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._parts))})"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self._parts


def _check_parts(owner: str, parts: Iterable[object]) -> None:
    for index, part in enumerate(parts):
        if not isinstance(part, KeyType):
            raise InvalidTypeError(
                f"{owner} is made of key types such as INT or SQL_DATE('UTC'), "
                f"got {part!r} at position {index}"
            )


class TUPLE(_Parametric):
    """org.apache.flink.api.java.tuple.TupleN: 0 to 25 fields; the key is a tuple.

    Any field may be None, which is Java's null.

    >>> TUPLE(STRING, INT)
    TUPLE(STRING, INT)
    """

    __slots__ = ("fields",)

    def __init__(self, *fields: KeyType) -> None:
        _check_parts("TUPLE", fields)
        if len(fields) > _MAX_TUPLE_ARITY:
            raise InvalidValueError(
                f"TUPLE has at most {_MAX_TUPLE_ARITY} fields in Flink, got {len(fields)}"
            )
        super().__init__(*fields)
        self.fields = fields


class ROW(_Parametric):
    """org.apache.flink.types.Row; the key is a tuple of the fields, None for null.

    `kind` is the row kind: "+I" (insert, Flink's default), "-U", "+U" or "-D". `names`
    makes it a row of `Row.withNames()`, whose hash counts the names and not the order;
    a row that is positional and *also* has names hashes as one without.

    >>> ROW(STRING, INT, kind="+U")
    ROW(STRING, INT, kind='+U')
    """

    __slots__ = ("fields", "kind", "names")

    def __init__(
        self, *fields: KeyType, kind: str = "+I", names: Iterable[str] | None = None
    ) -> None:
        _check_parts("ROW", fields)
        if kind not in _ROW_KINDS:
            raise InvalidValueError(f"kind must be one of {', '.join(_ROW_KINDS)}, got {kind!r}")
        if names is not None:
            names = tuple(names)
            if len(names) != len(fields) or len(set(names)) != len(names):
                raise InvalidValueError(
                    f"names must be {len(fields)} different names, one per field, got {names!r}"
                )
        super().__init__(fields, kind, names)
        self.fields = fields
        self.kind = kind
        self.names = names

    @property
    def kind_byte(self) -> int:
        """RowKind.toByteValue(): 0 to 3."""
        return _ROW_KINDS.index(self.kind)

    def __repr__(self) -> str:
        parts = [repr(field) for field in self.fields]
        if self.kind != "+I":
            parts.append(f"kind={self.kind!r}")
        if self.names is not None:
            parts.append(f"names={self.names!r}")
        return f"ROW({', '.join(parts)})"

    def __reduce__(self) -> tuple[object, ...]:
        return _make_row, self._parts


def _make_row(fields: tuple[KeyType, ...], kind: str, names: tuple[str, ...] | None) -> ROW:
    return ROW(*fields, kind=kind, names=names)


class _OfOne(_Parametric):
    __slots__ = ("element",)

    def __init__(self, element: KeyType) -> None:
        _check_parts(type(self).__name__, (element,))
        super().__init__(element)
        self.element = element


class LIST(_OfOne):
    """java.util.List of one element type; the key is a list, None for null elements."""

    __slots__ = ()


class SET(_OfOne):
    """java.util.Set of one element type; the key is a set or frozenset."""

    __slots__ = ()


class OPTIONAL(_OfOne):
    """java.util.Optional; the key is the value, or None for Optional.empty()."""

    __slots__ = ()


class MAP(_Parametric):
    """java.util.Map; the key is a dict, None for a null key or value in it."""

    __slots__ = ("key", "value")

    def __init__(self, key: KeyType, value: KeyType) -> None:
        _check_parts("MAP", (key, value))
        super().__init__(key, value)
        self.key = key
        self.value = value


class SqlType(_Parametric):
    """A java.sql type: an epoch count that depends on the time zone of Flink's JVM.

    `zone` is that zone, an IANA name such as "Europe/Berlin"; it is never assumed. Its rules
    are those of this machine's time zone data, which should be as old as the JVM's.
    """

    __slots__ = ("name", "zone")

    def __init__(self, zone: str) -> None:
        if not isinstance(zone, str):
            raise InvalidTypeError(f"zone must be the name of a time zone, got {zone!r}")
        self.zone: dt.tzinfo = dt.timezone.utc
        if zone != "UTC":
            try:
                self.zone = ZoneInfo(zone)
            except (LookupError, ValueError, OSError):
                raise InvalidValueError(
                    f"zone must be an IANA time zone that this machine knows, got {zone!r}"
                ) from None
        super().__init__(zone)
        self.name = zone


class SQL_DATE(SqlType):
    """java.sql.Date at local midnight in `zone`; the key is a date.

    >>> SQL_DATE("UTC")
    SQL_DATE('UTC')
    """

    __slots__ = ()


class SQL_TIME(SqlType):
    """java.sql.Time on 1970-01-01 in `zone`; the key is a time of whole milliseconds."""

    __slots__ = ()


class SQL_TIMESTAMP(SqlType):
    """java.sql.Timestamp in `zone`; the key is a naive datetime.

    Its hash ignores what is below the millisecond, as Java's does.
    """

    __slots__ = ()


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
    cls = type(key)
    if isinstance(key, int) and cls is int:
        return INT if 0 <= key <= _INT_MAX else _infer_wide_int(key)
    if cls in _INFERRED:
        return _INFERRED[cls]
    if isinstance(key, dt.datetime) and cls is dt.datetime:
        return LOCAL_DATE_TIME if key.utcoffset() is None else INSTANT
    if isinstance(key, tuple) and cls is tuple:
        return TUPLE(*map(_infer_field, key))
    if isinstance(key, list) and cls is list:
        return LIST(_infer_common("list", key))
    if isinstance(key, (set, frozenset)) and cls in (set, frozenset):
        return SET(_infer_common("set", key))
    if isinstance(key, dict) and cls is dict:
        return MAP(_infer_common("dict", key), _infer_common("dict", key.values()))
    raise refused_key(key)


def _infer_field(value: object) -> KeyType:
    return NULL if value is None else infer_key_type(value)


def _infer_wide_int(key: int) -> ScalarType:
    if _INT_MIN <= key < 0:
        raise AmbiguousKeyTypeError(
            f"key {key} hashes differently as Integer and as Long: pass key_type=INT or "
            "key_type=LONG (ints from 0 to 2147483647 hash alike)"
        )
    if _LONG_MIN <= key <= _LONG_MAX:
        return LONG
    raise UnsupportedKeyTypeError(
        f"key {show(key)} is beyond Long's 64 bits: pass key_type=BIG_INT if it is a BigInteger"
    )


def _infer_common(what: str, values: Iterable[object]) -> KeyType:
    """Return the one type of all values; nulls have every type, small ints are also Long."""
    types = {_infer_field(value) for value in values} - {NULL}
    if types == {INT, LONG}:
        return LONG
    if len(types) > 1:
        raise UnsupportedKeyTypeError(
            f"key is a {what} of several types ({', '.join(sorted(map(repr, types)))}): "
            "pass its key_type"
        )
    return types.pop() if types else NULL


def refused_key(key: object) -> KeyGroupsError:
    """Build the error for a key that no key type takes: what Flink does, and the way out."""
    if key is None:
        return InvalidValueError("key is None: assigned key must not be null")
    cls = type(key).__qualname__
    way_out = "; compute_key_group_for_key_hash takes a hash of your own"
    if isinstance(key, Enum):
        why = (
            "a Java enum's hashCode is its identity, another one in every JVM: "
            "key the job by its name (STRING)"
        )
    elif isinstance(key, (bytes, bytearray, memoryview)):
        why = "Flink refuses byte[] as a key, because an array's hashCode is its identity"
    elif isinstance(key, (bool, int, float, str, Decimal, dt.date, dt.time, uuid.UUID)):
        why = "a subclass may stand for another Java class: pass key_type"
    elif isinstance(key, (tuple, list, set, frozenset, dict)):
        why = "it may be a TUPLE, a ROW, a POJO or another class in Flink: pass key_type"
    else:
        why = "the hashCode of its Java class is not known here"
    return UnsupportedKeyTypeError(
        f"key {show(key)} of class {cls} is not supported: {why}{way_out}"
    )
