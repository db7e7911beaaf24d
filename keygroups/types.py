"""Key types: the Java class that a key *is* in the Flink job.

The names follow PyFlink's `Types`: its `Types.INT()` is PYFLINK(INT) here, but the LOCAL_ ones are
LocalTimeTypeInfo's. Scalar types are constants (`INT`, `STRING`), the
others are classes with arguments (`TUPLE(STRING, INT)`, `SQL_DATE("UTC")`).
Key types are immutable, hashable, picklable and compare by value. They and keys nest at most
50 deep. The scalar types, with Java class, Python value and Spark column:

    BOOLEAN          Boolean            bool                     boolean
    BYTE SHORT       Byte Short         int                      tinyint smallint
    INT LONG         Integer Long       int                      int bigint
    FLOAT            Float              float that is a single   float
    DOUBLE           Double             float                    double
    STRING           String             str                      string
    CHAR             Character          str of one UTF-16 unit   -
    BIG_DEC          BigDecimal         Decimal                  decimal
    BIG_INT          BigInteger         int                      -
    SCALA_BIG_INT    BigInt             int                      -
    LOCAL_DATE       LocalDate          date                     date
    LOCAL_TIME       LocalTime          time                     -
    LOCAL_DATE_TIME  LocalDateTime      naive datetime           timestamp_ntz
    INSTANT          Instant            aware datetime           timestamp
    UUID             java.util.UUID     uuid.UUID                string, canonical text
    BYTE_BUFFER      ByteBuffer         bytes                    binary
    HASHED           any of that hash   int                      int

Without a key type it is inferred from the class of the Python value: a float is a DOUBLE, a str a
STRING, and an int from 0 to 2^31-1, where Integer and Long hash alike, an INT, beyond 32 bits a
LONG. Where the key type is given, NumPy's integers, `float32` for FLOAT, `float64` for DOUBLE,
`bool_` and `str_` are taken too. Flink's IntValue, ShortValue, ByteValue, CharValue, FloatValue,
StringValue and Either hash as what is in them: use that type.

A tuple without a key type is Flink's Java Tuple. Scala's tuples and case classes hash otherwise,
and otherwise in 2.12 than in 2.13: they are SCALA_TUPLE, CASE_CLASS and, of an Option and an
Either, SCALA_OPTION and SCALA_EITHER. `Objects.hash`, lists of several types and Java's records
are OBJECTS_HASH. Beam on Flink keys by the ByteBuffer of the encoded key, which is BYTE_BUFFER.

HASHED is for any other class whose hashCode can be computed: the key is that hash, by itself or as
a field. These are such:

    java.util.Date      hash_code(epoch milliseconds, LONG)
    Duration            hash_code(datetime(1970, 1, 1, tzinfo=utc) + timedelta, INSTANT)
    OffsetDateTime      hash_code(naive datetime, LOCAL_DATE_TIME) ^ offset in seconds
    ZonedDateTime       the same ^ the zone's hash, rotated by 3 bits to the left, as below
    Map.Entry           hash_code(key, k) ^ hash_code(value, v)
    Utf8 of Avro 1.12   hash_code(tuple(memoryview(utf8).cast("b")), OBJECTS_HASH(*[BYTE] * size))

A zone's hash is that of its id, a STRING, and of a mere offset, as in "+01:00", its seconds:

    >>> from keygroups import hash_code
    >>> moment = dt.datetime(2024, 2, 29, 1, 2, 3)  # +01:00[Europe/Berlin]
    >>> zone = hash_code("Europe/Berlin", STRING) % 2**32
    >>> code = hash_code(moment, LOCAL_DATE_TIME) ^ 3600 ^ (zone << 3 | zone >> 29)
    >>> (code + 2**31) % 2**32 - 2**31
    -1188739433

Keys that no tool can place, since their hash is another one in each JVM or version:

    an enum                   identity: key the job by its name(), a STRING
    an array, byte[] too      identity, and Flink refuses it: key by a ByteBuffer or a String
    GenericRowData            has the hash of its RowKind, an enum, in it: key by its fields
    a protobuf message        has the hash of its Descriptor in it: key by a field
    a class without hashCode  identity: key by its fields, or give it a hashCode
    AtomicInteger, AtomicLong identity: key by its get()
    Scala's collections       a Seq, List, Vector, Set or Map: by other rules in 2.12 and 2.13, and
                              changed within 2.13: key by a String of it, or by fields
    Scala's BigDecimal        goes by the digits of Double.toString, others since JDK 19: key by
                              its bigDecimal, a BIG_DEC, or by a String of it

1.5 and 1.50 are different BigDecimals, 0.0 and -0.0 different Doubles. None inside a key is Java's
null; a key that is None raises, as in Flink, but for PYFLINK, OPTIONAL and SCALA_OPTION.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, ClassVar, NoReturn

from keygroups._checks import (
    INT_MAX,
    INT_MIN,
    MAX_DEPTH,
    check_choice,
    check_class,
    check_int,
    check_str,
    did_you_mean,
    iterate,
    show,
)
from keygroups._values.java_zones import time_zone
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    UnsupportedKeyTypeError,
    printable,
)
from keygroups.logical_types import LogicalType, parse_logical_type


class KeyType:
    """The base of all key types; immutable, since hashers are kept by key type."""

    __slots__ = ()

    parts: tuple[KeyType, ...] = ()
    """The key types that this one is made of: fields, elements, keys and values."""

    is_whole_key: ClassVar[bool] = False
    """Whether it is a key by itself and never a part of one."""

    _depth = 0

    def walk(self) -> Iterator[KeyType]:
        """Yield this key type, its parts, and theirs."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise InvalidTypeError(f"key type {self!r} is immutable")

    def __delattr__(self, name: str) -> NoReturn:
        raise InvalidTypeError(f"key type {self!r} is immutable")


class ParametricType(KeyType):
    """A key type with arguments: two are equal where class and arguments are equal."""

    __slots__ = ("_arguments", "_depth", "_hash", "parts")

    _arguments: tuple[object, ...]
    _depth: int
    _hash: int
    parts: tuple[KeyType, ...]

    def __init__(
        self, *arguments: object, parts: tuple[KeyType, ...] = (), **attributes: object
    ) -> None:
        """Set the arguments that make the type, the key types among them, and attributes."""
        attributes["_depth"] = _check_parts(type(self).__name__, parts)
        attributes |= {"_arguments": arguments, "parts": parts}
        attributes["_hash"] = hash((type(self), arguments))
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._arguments == other._arguments

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._arguments))})"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self._arguments


def _check_parts(owner: str, parts: Iterable[object]) -> int:
    """Check the parts of a key type, and return the depth of its nesting, 1 without any."""
    depth = 0
    for index, part in enumerate(parts):
        if not isinstance(part, KeyType):
            raise InvalidTypeError(
                f"{owner} is made of key types such as INT or SQL_DATE('UTC'), "
                f"got {show(part)} at position {index}"
            )
        if part.is_whole_key:
            raise InvalidTypeError(
                f"{owner} cannot hold {show(part)} at position {index}: that is a whole key in "
                "Flink"
            )
        depth = max(depth, part._depth)
    if depth >= MAX_DEPTH:
        raise InvalidValueError(f"key types may nest at most {MAX_DEPTH} deep")
    return depth + 1


__all__ = [
    "BIG_DEC",
    "BIG_INT",
    "BOOLEAN",
    "BYTE",
    "BYTE_BUFFER",
    "CASE_CLASS",
    "CHAR",
    "DOUBLE",
    "FLOAT",
    "HASHED",
    "INSTANT",
    "INT",
    "LIST",
    "LOCAL_DATE",
    "LOCAL_DATE_TIME",
    "LOCAL_TIME",
    "LONG",
    "MAP",
    "NULL",
    "OBJECTS_HASH",
    "OPTIONAL",
    "PYFLINK",
    "ROW",
    "SCALA_BIG_INT",
    "SCALA_EITHER",
    "SCALA_OPTION",
    "SCALA_TUPLE",
    "SET",
    "SHORT",
    "SQL_DATE",
    "SQL_ROW",
    "SQL_TIME",
    "SQL_TIMESTAMP",
    "STRING",
    "TUPLE",
    "UUID",
    "JavaSqlType",
    "KeyType",
    "ScalarType",
]
__dir__ = __all__.copy

OF_OTHERS = {
    **{"TINYINT": "BYTE", "SMALLINT": "SHORT", "INTEGER": "INT", "BIGINT": "LONG"},
    **{"DECIMAL": "BIG_DEC", "NUMERIC": "BIG_DEC", "DEC": "BIG_DEC", "VARCHAR": "STRING"},
    **{"DATE": "LOCAL_DATE", "TIME": "LOCAL_TIME", "TIMESTAMP": "LOCAL_DATE_TIME"},
    **{"TIMESTAMP_LTZ": "INSTANT", "ARRAY": "LIST", "TEXT": "STRING"},
    "BYTES": "",  # It is like BYTE, and Flink refuses arrays as keys.
}
"""Type names of Flink SQL and of databases, with the key type that is likely meant; "" if none."""

_COLLECTION = (
    "no tool can place a collection of Scala, whose hash changed within 2.13: key the job by a "
    "String of it, or by fields"
)
_BIG_DECIMAL = (
    "no tool can place a BigDecimal of Scala, whose hash goes by the JDK's Double.toString: key "
    "the job by its bigDecimal, a BIG_DEC, or by a String of it"
)
UNPLACED = {
    **dict.fromkeys(("SEQ", "VECTOR", "TRAVERSABLE", "ITERABLE"), _COLLECTION),
    **{f"SCALA_{name}": _COLLECTION for name in ("LIST", "SEQ", "VECTOR", "SET", "MAP")},
    **dict.fromkeys(("SCALA_BIG_DEC", "SCALA_BIG_DECIMAL"), _BIG_DECIMAL),
}
"""Names without a key type, with the reason and the cure; the module's docstring lists more."""


def meant_by(text: str, names: Iterable[str]) -> str:
    """Return the end of the message that refuses a name: the reason, or a guess, or ""."""
    why = UNPLACED.get(text.partition("(")[0].strip().upper())
    return f": {why}" if why else did_you_mean(text, names, OF_OTHERS)


_MAX_TUPLE_ARITY = 25  # org.apache.flink.api.java.tuple.Tuple.MAX_ARITY
_ROW_KINDS = ("+I", "-U", "+U", "-D")  # The index is RowKind.toByteValue().


class ScalarType(KeyType):
    """A key type without parameters; each is one constant of this module."""

    __slots__ = ("name",)

    name: str

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "name", check_str("name", name))

    def __repr__(self) -> str:
        return printable(self.name)

    def __reduce__(self) -> str:
        return self.name  # It pickles as this module's constant, so that identity survives.


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
SCALA_BIG_INT = ScalarType("SCALA_BIG_INT")
"""scala.math.BigInt, which hashes as the Int or Long that equals it; alike in 2.12 and 2.13."""
BYTE_BUFFER = ScalarType("BYTE_BUFFER")
"""java.nio.ByteBuffer: its bytes between position and limit."""
HASHED = ScalarType("HASHED")
"""An object of any class, in place of which the key is its Java hashCode, -2^31..2^31-1."""
NULL = ScalarType("NULL")
"""A field that is always null: the inferred type of `None` inside a tuple or list."""


class FieldsType(ParametricType):
    """A key type of several fields: the key is a tuple of them, None for null."""

    __slots__ = ()

    @property
    def fields(self) -> tuple[KeyType, ...]:
        """The key types of the fields."""
        return self.parts


class TUPLE(FieldsType):
    """org.apache.flink.api.java.tuple.TupleN: 0 to 25 fields; the key is a tuple.

    Any field may be None, which is Java's null.

    >>> TUPLE(STRING, INT)
    TUPLE(STRING, INT)
    """

    __slots__ = ()

    def __init__(self, *fields: KeyType) -> None:
        if len(fields) > _MAX_TUPLE_ARITY:
            raise InvalidValueError(
                f"TUPLE has at most {_MAX_TUPLE_ARITY} fields in Flink, got {len(fields)}"
            )
        super().__init__(*fields, parts=fields)


class ROW(FieldsType):
    """org.apache.flink.types.Row; the key is a tuple of the fields, None for null.

    `kind` is the row kind: "+I" (insert, Flink's default), "-U", "+U" or "-D". `names`
    makes it a row of `Row.withNames()`, whose hash counts the names and not the order;
    a row that is positional and *also* has names hashes as one without.

    >>> ROW(STRING, INT, kind="+U")
    ROW(STRING, INT, kind='+U')
    """

    __slots__ = ("kind", "names")

    kind: str
    names: tuple[str, ...] | None

    def __init__(
        self, *fields: KeyType, kind: str = "+I", names: Iterable[str] | None = None
    ) -> None:
        kind = check_choice("kind", kind, _ROW_KINDS)
        names = None if names is None else _check_names(names, len(fields))
        super().__init__(fields, kind, names, parts=fields, kind=kind, names=names)

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
        return partial(ROW, kind=self.kind, names=self.names), self.fields


def _check_names(names: Iterable[str], count: int) -> tuple[str, ...]:
    listed = enumerate(islice(iterate("names", "str", names), count + 1))
    checked = tuple(check_str(f"name {index}", name) for index, name in listed)
    if len(checked) != count or len(set(checked)) != count:
        raise InvalidValueError(
            f"names must be {count} different names, one per field, got {show(checked)}"
        )
    return checked


class OBJECTS_HASH(FieldsType):
    """An object that hashes as `Objects.hash(f0, f1, ...)`; the key is a tuple of the fields.

    So do Arrays.asList and List.of of several types, and classes whose hashCode is that call.
    `start`, -2^31..2^31-1, is the number from which the 31-fold starts: 1 there, 0 in a Java
    record (as the JDK has it so far), 17 in some classes. A primitive field counts as its box.

    Raises InvalidTypeError or InvalidValueError for a start that is none.

    >>> from keygroups import hash_code
    >>> hash_code(("hello", 7), OBJECTS_HASH(STRING, INT))
    -1220934346
    >>> hash_code(("hello", 7), OBJECTS_HASH(STRING, INT, start=0))
    -1220935307
    """

    __slots__ = ("start",)

    start: int

    def __init__(self, *fields: KeyType, start: int = 1) -> None:
        start = check_int("start", start, INT_MIN, INT_MAX)
        super().__init__(fields, start, parts=fields, start=start)

    def __repr__(self) -> str:
        parts = [repr(field) for field in self.fields]
        if self.start != 1:
            parts.append(f"start={self.start}")
        return f"OBJECTS_HASH({', '.join(parts)})"

    def __reduce__(self) -> tuple[object, ...]:
        return partial(OBJECTS_HASH, start=self.start), self.fields


_SCALA_VERSIONS = ("2.12", "2.13")
_MAX_SCALA_TUPLE_ARITY = 22


def _check_scala(scala: object, parts: Iterable[object]) -> str:
    """Return a version of Scala, after checking that no part is of another one."""
    # A float has its own message: "must be one of 2.12, 2.13, got 2.12" would be a riddle.
    text = check_str("scala", scala, "the text of a version")
    version = check_choice("scala", text, _SCALA_VERSIONS)
    for part in parts:
        for nested in part.walk() if isinstance(part, KeyType) else ():
            other = getattr(nested, "scala", version)
            if other != version:
                raise InvalidValueError(
                    f"scala must be one version throughout a key type, got {version} around "
                    f"{nested!r}"
                )
    return version


class ScalaProduct(FieldsType):
    """A tuple or case class of Scala, which hashes by MurmurHash3 of the `##` of its fields.

    `scala` is the version of Scala that the job runs on; from 2.13 on the hash has `prefix` in it,
    the name of the class.
    """

    __slots__ = ("prefix", "scala")

    prefix: str
    scala: str

    def __repr__(self) -> str:
        *arguments, scala = self._arguments
        return f"{type(self).__name__}({', '.join(map(repr, arguments))}, scala={scala!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return partial(type(self), scala=self.scala), self._arguments[:-1]


class SCALA_TUPLE(ScalaProduct):
    """scala.TupleN, 1 to 22 fields; the key is a tuple.

    `scala` is "2.12" or "2.13", the version of the job's scala-library: they hash differently. The
    type of a field is that of its Java class, as LONG for a Long: it counts by its `##` as in
    Scala. An Option in it is SCALA_OPTION, a case class CASE_CLASS; LIST and MAP are Java's.

    Raises InvalidTypeError or InvalidValueError for a version that is none of these, or another
    one than that of a field.

    >>> from keygroups import hash_code
    >>> hash_code(("hello", 7), SCALA_TUPLE(STRING, INT, scala="2.12"))
    -1087830591
    >>> hash_code(("hello", 7), SCALA_TUPLE(STRING, INT, scala="2.13"))
    -1769884394
    """

    __slots__ = ()

    def __init__(self, *fields: KeyType, scala: str) -> None:
        if not 1 <= len(fields) <= _MAX_SCALA_TUPLE_ARITY:
            raise InvalidValueError(
                f"SCALA_TUPLE has 1 to {_MAX_SCALA_TUPLE_ARITY} fields, got {len(fields)}"
            )
        version = _check_scala(scala, fields)
        prefix = f"Tuple{len(fields)}"
        super().__init__(*fields, version, parts=fields, prefix=prefix, scala=version)


class CASE_CLASS(ScalaProduct):
    """A case class of Scala, by its name as in its declaration; the key is a tuple.

    `name` is without package and outer objects; it counts in 2.13 only. The hash of a class
    without fields, or of a case object, is that of the name. All else is as in SCALA_TUPLE.
    A class that has a hashCode of its own is HASHED. A field of a value class has the type of
    what it wraps; a BigInt is SCALA_BIG_INT, and Scala's BigDecimal and collections are no BIG_DEC
    and LIST.

    Raises InvalidTypeError or InvalidValueError, as SCALA_TUPLE does.

    >>> from keygroups import hash_code
    >>> hash_code(("hello", 7), CASE_CLASS("Key", STRING, INT, scala="2.13"))
    -1419160025
    """

    __slots__ = ()

    def __init__(self, name: str, *fields: KeyType, scala: str) -> None:
        name = check_str("name", name, "the name of a case class")
        version = _check_scala(scala, fields)
        super().__init__(name, *fields, version, parts=fields, prefix=name, scala=version)

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.prefix


class _OfOne(ParametricType):
    __slots__ = ()

    def __init__(self, element: KeyType) -> None:
        super().__init__(element, parts=(element,))

    @property
    def element(self) -> KeyType:
        """The key type in this one."""
        return self.parts[0]


class LIST(_OfOne):
    """java.util.List of one element type; the key is a list, None for null elements."""

    __slots__ = ()


class SET(_OfOne):
    """java.util.Set of one element type; the key is a set or frozenset."""

    __slots__ = ()


class OPTIONAL(_OfOne):
    """java.util.Optional; the key is the value, or None for Optional.empty()."""

    __slots__ = ()


class SCALA_OPTION(ParametricType):
    """scala.Option; the key is the value, or None for Scala's None.

    A `Some` around the value, as it is read from savepoints, is taken too, and needed for
    Some(None) and Some(null). `scala` is as in SCALA_TUPLE.

    >>> from keygroups import hash_code
    >>> key_type = SCALA_OPTION(INT, scala="2.13")
    >>> hash_code(1, key_type), hash_code(None, key_type)
    (913362633, 2433880)
    """

    __slots__ = ("scala",)

    scala: str

    def __init__(self, element: KeyType, *, scala: str) -> None:
        version = _check_scala(scala, (element,))
        super().__init__(element, version, parts=(element,), scala=version)

    @property
    def element(self) -> KeyType:
        """The key type in this one."""
        return self.parts[0]

    def __repr__(self) -> str:
        return f"SCALA_OPTION({self.element!r}, scala={self.scala!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return partial(SCALA_OPTION, scala=self.scala), self.parts


class SCALA_EITHER(ParametricType):
    """scala.util.Either; the key is a `Left` or a `Right` of `keygroups.savepoint.values`.

    `scala` is as in SCALA_TUPLE; in 2.12 a Left and a Right of the same value hash alike. No array
    and no column of these is hashed: CASE_CLASS("Left", ...) and CASE_CLASS("Right", ...) hash the
    two sides there, and the hash of the one that a key has is HASHED. Flink's Either is another.

    >>> from keygroups import hash_code
    >>> from keygroups.savepoint.values import Left, Right
    >>> key_type = SCALA_EITHER(INT, STRING, scala="2.13")
    >>> hash_code(Left(1), key_type), hash_code(Right("a"), key_type)
    (-1105731701, -18287882)
    """

    __slots__ = ("scala",)

    scala: str

    def __init__(self, left: KeyType, right: KeyType, *, scala: str) -> None:
        version = _check_scala(scala, (left, right))
        super().__init__(left, right, version, parts=(left, right), scala=version)

    @property
    def left(self) -> KeyType:
        """The key type in a Left."""
        return self.parts[0]

    @property
    def right(self) -> KeyType:
        """The key type in a Right."""
        return self.parts[1]

    def __repr__(self) -> str:
        return f"SCALA_EITHER({self.left!r}, {self.right!r}, scala={self.scala!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return partial(SCALA_EITHER, scala=self.scala), self.parts


class MAP(ParametricType):
    """java.util.Map; the key is a dict, None for a null key or value in it."""

    __slots__ = ()

    def __init__(self, key: KeyType, value: KeyType) -> None:
        super().__init__(key, value, parts=(key, value))

    @property
    def key(self) -> KeyType:
        """The key type of the map's keys."""
        return self.parts[0]

    @property
    def value(self) -> KeyType:
        """The key type of the map's values."""
        return self.parts[1]


# In these spans java.util.Date and Python agree. The JDK's old calendar is Julian before
# 1582-10-15. Time zone data of JDKs and systems differ on the history before 1970, and the JDK
# follows a zone's rules only so far ahead.
_UTC_SPAN = (dt.datetime(1582, 10, 15), dt.datetime.max)
_ZONE_SPAN = (dt.datetime(1970, 1, 1), dt.datetime(2036, 12, 31, 23, 59, 59, 999_999))


class JavaSqlType(ParametricType):
    """A java.sql type: an epoch count that depends on the time zone of Flink's JVM.

    `zone` is that zone, an IANA name such as "Europe/Berlin"; it is never assumed. Its rules
    are those of this machine's time zone data, which must be of release 2024a or later, as the
    JVM's must. Keys outside 1970 to 2036, those of a clock change, and those on which the
    releases since 2024a differ are refused. "UTC" has none of these limits, from 1582-10-15 on.

    Raises InvalidTypeError or InvalidValueError for a name that is not in
    `keygroups._values.java_zones.ZONE_NAMES`: one that Java does not know, and so takes for
    GMT, or that means different zones in different JVMs, such as "EST" or "WET".
    """

    __slots__ = ("name", "zone")

    name: str
    zone: dt.tzinfo

    def __init__(self, zone: str) -> None:
        zone = check_str("zone", zone, "the name of a time zone")
        super().__init__(zone, name=zone, zone=time_zone(zone))

    @property
    def certain_span(self) -> tuple[dt.datetime, dt.datetime]:
        """The first and last wall-clock time that Java and Python turn into one instant."""
        return _UTC_SPAN if self.name == "UTC" else _ZONE_SPAN


class SQL_DATE(JavaSqlType):
    """java.sql.Date at local midnight in `zone`; the key is a date.

    >>> SQL_DATE("UTC")
    SQL_DATE('UTC')
    """

    __slots__ = ()


class SQL_TIME(JavaSqlType):
    """java.sql.Time on 1970-01-01 in `zone`; the key is a time of whole milliseconds."""

    __slots__ = ()


class SQL_TIMESTAMP(JavaSqlType):
    """java.sql.Timestamp in `zone`; the key is a naive datetime.

    Its hash ignores what is below the millisecond, as Java's does.
    """

    __slots__ = ()


class SQL_ROW(ParametricType):
    """The key of a Flink SQL or Table job: a BinaryRowData; the key is a tuple of the fields.

    Each field is the text of a logical type as Flink DDL writes it; `keygroups.logical_types` has
    them all, and `fields` holds the parsed ones. The order of the fields is the order of
    `hash[...]` in the plan, which `keygroups.explain` reads and which is *not* always that of
    GROUP BY. One column too makes a tuple, `(value,)`. None is NULL, where the type allows it.
    A GenericRowData, as a DataStream job may make one for a key, is none: no tool can place that.

    Raises UnsupportedKeyTypeError for a type that Flink has and that makes no key here,
    InvalidValueError or InvalidTypeError for any other text; the message says where.

    >>> from keygroups import hash_code
    >>> SQL_ROW("bigint", "varchar(20)"), hash_code((1,), SQL_ROW("INT"))
    (SQL_ROW('BIGINT', 'VARCHAR(20)'), 1465514398)
    """

    __slots__ = ("fields",)

    is_whole_key = True

    fields: tuple[LogicalType, ...]

    def __init__(self, *fields: str) -> None:
        parsed = tuple(_parse_field(index, text) for index, text in enumerate(fields))
        super().__init__(*map(str, parsed), fields=parsed)


def _parse_field(index: int, text: str) -> LogicalType:
    try:
        return parse_logical_type(text)
    except KeyGroupsError as error:
        raise type(error)(f"field {index} of SQL_ROW: {error}") from None


class PYFLINK(ParametricType):
    """The key of PyFlink's `key_by(..., key_type=t)`, which hashes as a Row of kind +I around it.

    `element` is the key type that stands for PyFlink's `Types` value: BOOLEAN to DOUBLE, STRING,
    BIG_DEC, the dates and times, INSTANT, and TUPLE, ROW, LIST and MAP of these. A None key
    is legal. SQL_DATE, SQL_TIME and SQL_TIMESTAMP are known for a JVM in UTC; in process mode
    PyFlink moves a SQL_TIMESTAMP by a second if it is before 1970 with a fraction of one, or
    after 2514 within microseconds of the next one, so those keys raise and TUPLE, ROW, LIST and
    MAP take no SQL_TIMESTAMP.

    Without `element` it is the key of a `key_by` without a key type, of which Flink hashes the
    pickle: None, a bool, number, text, bytes, date, time, Decimal, or a tuple, list or dict of
    these, of which no part is there twice; a `Pickle` is the bytes of any other. `protocol`, 4 or
    5, is that of the pickles: by default 5, in thread mode 4, as PyFlink has it on Python 3.8 to
    3.13.

    `thread_mode` says that the job runs in PyFlink's thread mode, whose state has other names and
    types than that of process mode: what is written for one, the other does not find.
    `as_pyflink_converts` takes keys of other classes too, as PyFlink's process mode does, which
    says nothing of it: True and 1.5 are the LONG 1, 1 is the DOUBLE 1.0, 0.1 is the nearest FLOAT,
    a SQL_TIME is cut to milliseconds, and an aware datetime or time loses its zone.

    Two surprises of PyFlink's own: it stores a SQL_TIMESTAMP after 2038-01-19 03:14:07 as another
    one, in the key group of the right one; and keys that are equal in Python, as 1 and 1.0, may
    share an entry.

    Raises InvalidTypeError, InvalidValueError for other protocols, UnsupportedKeyTypeError for an
    element that PyFlink cannot declare or cannot key by: CHAR and BIG_INT (PyFlink and Java
    disagree on their wire format), UUID, SET, OPTIONAL, a ROW with names (PyFlink's named rows
    hash by position).

    >>> from keygroups import hash_code
    >>> hash_code("a", PYFLINK(STRING)), hash_code(None, PYFLINK(STRING))
    (159, 31)
    >>> hash_code("a", PYFLINK()), hash_code("a", PYFLINK(protocol=4))
    (-2088826310, 698589177)
    """

    __slots__ = ("as_pyflink_converts", "protocol", "thread_mode")

    is_whole_key = True
    as_pyflink_converts: bool
    protocol: int
    thread_mode: bool

    def __init__(
        self,
        element: KeyType | None = None,
        *,
        thread_mode: bool = False,
        protocol: int | None = None,
        as_pyflink_converts: bool = False,
    ) -> None:
        thread = check_class("thread_mode", thread_mode, bool, "a bool")
        number = _pickle_protocol(element, thread, protocol)
        held = PickledKey(number) if element is None else element
        converts = check_class("as_pyflink_converts", as_pyflink_converts, bool, "a bool")
        if converts and (thread or element is None):
            raise InvalidValueError(
                "as_pyflink_converts must be False in thread mode and without a key type, where "
                "PyFlink converts nothing of this kind, got True"
            )
        super().__init__(
            held,
            thread,
            number,
            converts,
            parts=(held,),
            thread_mode=thread,
            protocol=number,
            as_pyflink_converts=converts,
        )
        if not isinstance(held, PickledKey):
            _check_in_pyflink(held)

    @property
    def element(self) -> KeyType:
        """The key type of the field."""
        return self.parts[0]

    def _options(self) -> dict[str, Any]:
        """Return the arguments that are not what they are by default."""
        options: dict[str, Any] = {}
        if self.thread_mode:
            options["thread_mode"] = True
        if self.protocol != (4 if self.thread_mode else 5):
            options["protocol"] = self.protocol
        if self.as_pyflink_converts:
            options["as_pyflink_converts"] = True
        return options

    def _elements(self) -> tuple[KeyType, ...]:
        return () if isinstance(self.element, PickledKey) else self.parts

    def __repr__(self) -> str:
        options = (f"{name}={value!r}" for name, value in self._options().items())
        return f"PYFLINK({', '.join([*map(repr, self._elements()), *options])})"

    def __reduce__(self) -> tuple[object, ...]:
        return partial(PYFLINK, **self._options()), self._elements()


class PickledKey(ParametricType):
    """The element of a PYFLINK without a type, whose values Flink has as pickles."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "PICKLED"


def _pickle_protocol(element: object, thread_mode: bool, protocol: int | None) -> int:
    if protocol is None:
        return 4 if thread_mode else 5
    if element is not None:
        raise InvalidTypeError(
            f"protocol must be None where there is a key type, of which nothing is pickled, got "
            f"{show(protocol)}"
        )
    return check_int("protocol", protocol, 4, 5)


def _check_in_pyflink(element: KeyType) -> None:
    """Refuse an element by which PyFlink cannot key."""
    if element == SQL_TIMESTAMP("UTC"):
        return
    for part in element.walk():
        plain = part == ROW(*part.fields) if isinstance(part, ROW) else part in _IN_PYFLINK
        if not plain and not isinstance(part, (TUPLE, LIST, MAP)):
            raise UnsupportedKeyTypeError(
                f"PYFLINK cannot hold {part!r}, by which PyFlink cannot key or is not known "
                f"to; it can hold {', '.join(map(repr, _IN_PYFLINK))}, SQL_TIMESTAMP('UTC') "
                "by itself, and TUPLE, ROW without kind and names, LIST and MAP of these"
            )


_IN_PYFLINK = (
    *(BOOLEAN, BYTE, SHORT, INT, LONG, FLOAT, DOUBLE, STRING, BIG_DEC),
    *(LOCAL_DATE, LOCAL_TIME, LOCAL_DATE_TIME, INSTANT, SQL_DATE("UTC"), SQL_TIME("UTC")),
)
