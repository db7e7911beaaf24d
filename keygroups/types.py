"""Key types: what the key of the Flink job *is*, as a Java class.

The names follow PyFlink's `Types`. Scalar types are constants (`INT`, `STRING`), the
others are called with what they are made of (`TUPLE(STRING, INT)`, `SQL_DATE("UTC")`).
Key types are immutable, hashable, picklable and compare by value.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from zoneinfo import ZoneInfo

from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    UnsupportedKeyTypeError,
)
from keygroups.sql_types import LogicalType, parse_logical_type

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
    "PYFLINK",
    "ROW",
    "SET",
    "SHORT",
    "SQL_DATE",
    "SQL_ROW",
    "SQL_TIME",
    "SQL_TIMESTAMP",
    "STRING",
    "TUPLE",
    "UUID",
    "KeyType",
    "ScalarType",
    "SqlType",
]

_MAX_TUPLE_ARITY = 25  # org.apache.flink.api.java.tuple.Tuple.MAX_ARITY
_ROW_KINDS = ("+I", "-U", "+U", "-D")  # in the order of RowKind.toByteValue()
_IN_PYFLINK = (
    "BOOLEAN, BYTE, SHORT, INT, LONG, FLOAT, DOUBLE, STRING, BIG_DEC, LOCAL_DATE, LOCAL_TIME, "
    "LOCAL_DATE_TIME, INSTANT, SQL_DATE('UTC'), SQL_TIME('UTC')"
)


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
        if isinstance(part, (SQL_ROW, PYFLINK)):
            raise InvalidTypeError(
                f"{owner} cannot hold {part!r} at position {index}: that is a whole key in Flink"
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


class SQL_ROW(_Parametric):
    """The key of a Flink SQL or Table job: a BinaryRowData; the key is a tuple of the fields.

    Each field is the text of a logical type as Flink DDL writes it; `keygroups.sql_types` has
    them all, and `fields` holds what was read. The order of the fields is the order of
    `hash[...]` in the plan, which `keygroups.explain` reads and which is *not* always that of
    GROUP BY. One column too makes a tuple, `(value,)`. None is NULL, where the type allows it.

    Raises UnsupportedKeyTypeError for a type that Flink has and that makes no key here,
    InvalidValueError or InvalidTypeError for any other text; the message says where.

    >>> from keygroups import hash_code
    >>> SQL_ROW("bigint", "varchar(20)"), hash_code((1,), SQL_ROW("INT"))
    (SQL_ROW('BIGINT', 'VARCHAR(20)'), 1465514398)
    """

    __slots__ = ("fields",)

    def __init__(self, *fields: str) -> None:
        self.fields: tuple[LogicalType, ...] = tuple(
            _parse_field(index, text) for index, text in enumerate(fields)
        )
        super().__init__(*map(str, self.fields))


def _parse_field(index: int, text: str) -> LogicalType:
    try:
        return parse_logical_type(text)
    except KeyGroupsError as error:
        raise type(error)(f"field {index} of SQL_ROW: {error}") from None


class PYFLINK(_OfOne):
    """What PyFlink's `key_by(..., key_type=t)` hashes: a Row of kind +I around the key.

    `element` is the key type that stands for PyFlink's `Types` value: BOOLEAN to DOUBLE, STRING,
    BIG_DEC, the dates and times, INSTANT, and TUPLE, ROW, LIST and MAP of these. A None key
    is legal. SQL_DATE, SQL_TIME and SQL_TIMESTAMP are known for a JVM in UTC; in process mode
    PyFlink moves a SQL_TIMESTAMP before 1970 by a second if it has a fraction of one, so those
    keys raise and TUPLE, ROW, LIST and MAP take no SQL_TIMESTAMP.

    `key_by` without a key type hashes the bytes of the pickled key, which depend on the version
    of Python, the pickle protocol and the execution mode: pass `key_type` to it.

    Raises InvalidTypeError without a key type, UnsupportedKeyTypeError for one that PyFlink
    cannot declare or cannot key by: CHAR and BIG_INT (PyFlink and Java disagree on their wire
    format), UUID, SET, OPTIONAL, a ROW with names (PyFlink's named rows hash by position).

    >>> from keygroups import hash_code
    >>> hash_code("a", PYFLINK(STRING)), hash_code(None, PYFLINK(STRING))
    (159, 31)
    """

    __slots__ = ()

    def __init__(self, element: KeyType | None = None) -> None:
        if element is None:
            raise InvalidTypeError(
                "PYFLINK needs the key_type of key_by: without one PyFlink hashes the bytes of "
                "the pickled key, which depend on the version of Python, the pickle protocol and "
                "the execution mode; pass key_type to key_by, and that type to PYFLINK"
            )
        super().__init__(element)
        if not isinstance(element, SQL_TIMESTAMP) or element.name != "UTC":
            _check_pyflink(element)


def _check_pyflink(key_type: KeyType) -> None:
    if isinstance(key_type, TUPLE) or (
        isinstance(key_type, ROW) and key_type == ROW(*key_type.fields)
    ):
        parts = key_type.fields
    elif isinstance(key_type, LIST):
        parts = (key_type.element,)
    elif isinstance(key_type, MAP):
        parts = (key_type.key, key_type.value)
    elif repr(key_type) in _IN_PYFLINK.split(", "):
        parts = ()
    else:
        raise UnsupportedKeyTypeError(
            f"PYFLINK cannot hold {key_type!r}, by which PyFlink cannot key or is not known to; "
            f"it can hold {_IN_PYFLINK}, SQL_TIMESTAMP('UTC') by itself, and TUPLE, ROW without "
            "kind and names, LIST and MAP of these"
        )
    for part in parts:
        _check_pyflink(part)
