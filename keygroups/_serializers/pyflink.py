"""The serializers of PyFlink's state, the values of which are in Flink as arrays of bytes.

Their bytes are those of PyFlink's coders: big endian, text in UTF-8 behind its length, and a mark
of null only where a list, a map or a row has one.
"""

from __future__ import annotations

import datetime as dt
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from keygroups import types as kt
from keygroups._checks import check_class, show
from keygroups._serializers.arrays import (
    BooleanPrimitiveArraySerializer,
    DoublePrimitiveArraySerializer,
    FloatPrimitiveArraySerializer,
    IntPrimitiveArraySerializer,
    LongPrimitiveArraySerializer,
    ShortPrimitiveArraySerializer,
)
from keygroups._serializers.base import TRUNCATED, Read, Serializer, Simple, check_and_write
from keygroups._serializers.big_numbers import BigDecSerializer
from keygroups._serializers.collections import GenericArraySerializer, MapSerializer
from keygroups._serializers.compounds import RowSerializer, TupleSerializer
from keygroups._serializers.jvm.time import InstantSerializer
from keygroups._serializers.pickles import ForeignPickleError, read_pickle
from keygroups._serializers.scalars import (
    BOOLEAN,
    BYTE,
    BYTES,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    SHORT,
    SQL_STRING,
    STRING,
    BytePrimitiveArraySerializer,
    read_bytes,
    write_bytes,
)
from keygroups._serializers.sql.python_scalars import (
    PythonBigDecSerializer,
    PythonDateSerializer,
    PythonTimeSerializer,
    PythonTimestampSerializer,
)
from keygroups._values.checks import UTC_EPOCH, check_date, check_time
from keygroups._values.java_lang import signed
from keygroups._values.java_values import Instant
from keygroups._values.pickled import hash_key_pickle, write_key_pickle, write_pickle
from keygroups._values.python import Pickle
from keygroups.errors import InvalidTypeError, InvalidValueError, UnsupportedKeyTypeError

_PROTOCOL = (
    4  # State has pickles of this protocol. PyFlink: pickle.DEFAULT_PROTOCOL of Python 3.8 to 3.13
)
_TEXT = Context(capitals=1)  # The caller's own context may write a small "e".
_AS_DECLARED = ", if it is declared as in the job"
_MILLIS = 3  # digits of a second in SQL_TIMESTAMP


class FramedSerializer(Serializer):
    """A value in an array of bytes, which it takes up."""

    name = "FRAMED"

    def __init__(self, value: Serializer) -> None:
        self.parts = (value,)
        super().__init__(value)

    def bind(self, reads: Sequence[Read]) -> None:
        [read], [value] = reads, self.parts

        def read_framed(data: bytes, pos: int) -> tuple[Any, int]:
            framed, pos = read_bytes(data, pos)
            held, end = _read_within(value, read, framed, 0)
            if end != len(framed):
                raise ValueError(f"{end} of {len(framed)} bytes are a {value}{_AS_DECLARED}")
            return held, pos

        self.read = read_framed
        self.write = lambda held: write_bytes(check_and_write(value, held))


class ChunkSerializer(Serializer):
    """Some elements of a list in an array of bytes, one behind the other: a list of them."""

    name = "CHUNK"

    def __init__(self, element: Serializer) -> None:
        self.parts = (element,)
        super().__init__(element)

    def bind(self, reads: Sequence[Read]) -> None:
        [read], [element] = reads, self.parts

        def read_chunk(data: bytes, pos: int) -> tuple[list[Any], int]:
            chunk, pos = read_bytes(data, pos)
            elements, end = [], 0
            while end < len(chunk):
                held, after = _read_within(element, read, chunk, end)
                if after == end:
                    raise ValueError(f"a {element} of no bytes, of which there may be any number")
                elements.append(held)
                end = after
            return elements, pos

        self.read = read_chunk
        self.write = lambda elements: write_bytes(
            b"".join(check_and_write(element, held) for held in elements)
        )


def _read_within(part: Serializer, read: Read, data: bytes, pos: int) -> tuple[Any, int]:
    """Read a value in an array of bytes, of which there are no more to fetch."""
    try:
        return read(data, pos)
    except TRUNCATED:
        text = f"{len(data) - pos} bytes are too few for a {part}"
    except ValueError as error:
        text = str(error)
    raise ValueError(f"{text}{_AS_DECLARED}")


class PickleSerializer(BytePrimitiveArraySerializer):
    """A pickle behind its length: its value, or a Pickle where it is not one of Python's own."""

    name, takes_null = "PICKLED", True

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[Any, int]:
        pickled, pos = read_bytes(data, pos)
        try:
            return read_pickle(pickled), pos
        except ForeignPickleError:
            return Pickle(pickled), pos

    @staticmethod
    def write(value: object) -> bytes:
        if isinstance(value, Pickle):
            return write_bytes(bytes(value))
        return write_bytes(write_pickle(value, _PROTOCOL))


class PickledKeySerializer(BytePrimitiveArraySerializer):
    """A pickled key behind its length: its value if that has no other pickle, else a Pickle."""

    name = "PICKLED_KEY"

    def __new__(cls, protocol: int) -> PickledKeySerializer:
        return object.__new__(cls)

    def __init__(self, protocol: int) -> None:
        self.protocol = protocol
        Serializer.__init__(self, protocol)

    def bind(self, reads: Sequence[Read]) -> None:
        protocol = self.protocol

        def read_key(data: bytes, pos: int) -> tuple[Any, int]:
            held, pos = read_bytes(data, pos)
            with suppress(ForeignPickleError, UnsupportedKeyTypeError):
                key = read_pickle(held)
                if write_key_pickle(key, protocol) == held:
                    return key, pos
            return Pickle(held), pos

        self.read = read_key
        self.write = lambda value: write_bytes(write_key_pickle(value, protocol))
        self.key_hash = lambda key: hash_key_pickle(key, protocol)


class DecimalTextSerializer(PythonBigDecSerializer):
    """A Decimal as Python's text of it, which has more than BigDecimal: -0, NaN and infinity."""

    name = "BIG_DEC"

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[Decimal, int]:
        encoded, pos = read_bytes(data, pos)
        text = encoded.decode("ascii")
        try:
            number = Decimal(text)
        except InvalidOperation:
            raise ValueError(f"{show(text)} is no text of a Decimal") from None
        if _TEXT.to_sci_string(number) != text.replace("e", "E"):
            raise ValueError(f"{show(text)} is no text of a Decimal")
        return number, pos

    @staticmethod
    def write(value: object) -> bytes:
        number: Decimal = check_class("BIG_DEC", value, Decimal, "a Decimal")
        return write_bytes(_TEXT.to_sci_string(number).encode())


class _SqlKey(Serializer):
    """A key of java.sql as the Python job has it, for a JVM in UTC."""

    def __init__(self, stored: Serializer) -> None:
        self.parts = (stored,)
        self.size = stored.size
        super().__init__(stored)

    def bind(self, reads: Sequence[Read]) -> None:
        [read], [stored], convert, restore = reads, self.parts, self.convert, self.restore

        def read_key(data: bytes, pos: int) -> tuple[Any, int]:
            value, pos = read(data, pos)
            return convert(value) if isinstance(value, dt.datetime) else value, pos

        self.read = read_key
        self.write = lambda key: check_and_write(stored, _moment(key, restore))

        def hash_key(key: Any) -> int:
            millis = _millis(_moment(key, restore))
            return signed(millis ^ millis >> 32)  # JDK: Date.hashCode

        self.key_hash = hash_key

    @staticmethod
    @abstractmethod
    def convert(moment: dt.datetime) -> Any:
        """Return the key that Flink has as a moment in UTC; ValueError where none is."""

    @staticmethod
    @abstractmethod
    def restore(key: Any) -> dt.datetime:
        """Return the moment of a key."""

    def versioned_snapshot(self) -> bytes:
        """Return the snapshot of what is stored."""
        [stored] = self.parts
        return stored.versioned_snapshot()


def _moment(key: Any, restore: Callable[[Any], dt.datetime]) -> Any:
    """Return the stored form of a key; what is not in Python's years stays as it was read."""
    return key if type(key) in (int, Instant) else restore(key)


def _millis(moment: Any) -> int:
    if isinstance(moment, Instant):
        return moment.epoch_second * 1_000 + moment.nano // 1_000_000
    if isinstance(moment, dt.datetime):
        return (moment - UTC_EPOCH) // dt.timedelta(milliseconds=1)
    return int(moment)


class SqlDateKeySerializer(_SqlKey):
    """A date: its midnight."""

    name = "SQL_DATE"

    @staticmethod
    def convert(moment: dt.datetime) -> dt.date:
        if moment.timetz() != UTC_EPOCH.timetz():
            raise ValueError(f"{moment} is no midnight in UTC: the JVM was in another zone")
        return moment.date()

    @staticmethod
    def restore(key: Any) -> dt.datetime:
        return dt.datetime.combine(check_date("SQL_DATE", key), UTC_EPOCH.timetz())


class SqlTimeKeySerializer(_SqlKey):
    """A time: that of the first day of the epoch."""

    name = "SQL_TIME"

    @staticmethod
    def convert(moment: dt.datetime) -> dt.time:
        if moment.date() != UTC_EPOCH.date():
            raise ValueError(f"{moment} is not on the first day in UTC: the JVM was elsewhere")
        return moment.time()

    @staticmethod
    def restore(key: Any) -> dt.datetime:
        return dt.datetime.combine(UTC_EPOCH, check_time("SQL_TIME", key), dt.timezone.utc)


class SqlTimestampKeySerializer(_SqlKey):
    """A datetime without a zone."""

    name = "SQL_TIMESTAMP"

    @staticmethod
    def convert(moment: dt.datetime) -> dt.datetime:
        return moment.replace(tzinfo=None)

    @staticmethod
    def restore(key: Any) -> dt.datetime:
        moment: dt.datetime = check_class("SQL_TIMESTAMP", key, dt.datetime, "a datetime")
        if moment.tzinfo is not None:
            raise InvalidValueError(f"SQL_TIMESTAMP must have no zone, got {show(key)}")
        return moment.replace(tzinfo=dt.timezone.utc)


PICKLED = PickleSerializer()
SQL_DATE = PythonDateSerializer()
SQL_TIME = PythonTimeSerializer()
SQL_TIMESTAMP = PythonTimestampSerializer(_MILLIS)

_SCALARS: dict[kt.KeyType, Serializer] = {
    kt.BOOLEAN: BOOLEAN,
    kt.BYTE: BYTE,
    kt.SHORT: SHORT,
    kt.INT: INT,
    kt.LONG: LONG,
    kt.FLOAT: FLOAT,
    kt.DOUBLE: DOUBLE,
    kt.STRING: SQL_STRING,
    kt.CHAR: SQL_STRING,
    kt.BIG_INT: LONG,
    kt.BIG_DEC: DecimalTextSerializer(),
    kt.INSTANT: InstantSerializer(),
}
_IN_THREAD: dict[Serializer, Serializer] = {
    BOOLEAN: BOOLEAN,
    **dict.fromkeys((BYTE, SHORT, INT, LONG), LONG),
    **dict.fromkeys((FLOAT, DOUBLE), DOUBLE),
    SQL_STRING: STRING,
    DecimalTextSerializer(): BigDecSerializer(),
    PICKLED: PICKLED,
}
"""The serializers of thread mode by those of process mode."""

_PRIMITIVES: dict[Serializer, Simple] = {
    BOOLEAN: BooleanPrimitiveArraySerializer(),
    BYTE: BYTES,
    SHORT: ShortPrimitiveArraySerializer(),
    INT: IntPrimitiveArraySerializer(),
    LONG: LongPrimitiveArraySerializer(),
    FLOAT: FloatPrimitiveArraySerializer(),
    DOUBLE: DoublePrimitiveArraySerializer(),
}


def python_serializer(name: str, type_: object) -> Serializer:
    """Return the serializer of a type's values in state of PyFlink's process mode.

    `type_` is a key type, or a Serializer for itself; `name` is that of the argument in errors.
    Raises InvalidTypeError, UnsupportedKeyTypeError for a type that PyFlink does not declare.
    """
    if isinstance(type_, Serializer):
        return type_
    if not isinstance(type_, kt.KeyType):
        raise InvalidTypeError(
            f"{name} must be a key type such as LONG or a Serializer, got {show(type_)}"
        )
    if type_ in _SCALARS:
        return _SCALARS[type_]
    make = _COMPOUNDS.get(type(type_))
    if make is None:
        raise UnsupportedKeyTypeError(f"{name} {type_!r} is no type of PyFlink's state")
    return make(type_, [python_serializer(name, part) for part in type_.parts])


def thread_serializer(name: str, type_: object) -> Serializer:
    """Return the serializer of a type's values in state of PyFlink's thread mode.

    Arguments and errors are those of `python_serializer`; UnsupportedKeyTypeError also for a type
    whose values PyFlink itself fails to write in that mode.
    """
    serializer = python_serializer(name, type_)
    if isinstance(serializer, TupleSerializer):
        return PICKLED
    if isinstance(serializer, MapSerializer):
        parts = type_.parts  # type: ignore[attr-defined]  # Both have parts.
        return MapSerializer(*(thread_serializer(name, part) for part in parts))
    if serializer not in _IN_THREAD or type_ == kt.BIG_INT:
        raise UnsupportedKeyTypeError(
            f"{name} {type_!r} cannot be written for PyFlink's thread mode, which writes "
            f"{', '.join(map(str, _IN_THREAD))}, TUPLE and MAP of these"
        )
    return _IN_THREAD[serializer]


def array(element: Serializer) -> Serializer:
    """Return the serializer of a list or an array of objects."""
    return GenericArraySerializer("", element)


def primitive_array(element: Serializer) -> Serializer:
    """Return the serializer of an array of primitives, or raise InvalidTypeError."""
    if element not in _PRIMITIVES:
        raise InvalidTypeError(
            f"element_type must be one of {', '.join(map(str, _PRIMITIVES))}, got {element}"
        )
    return _PRIMITIVES[element]


_MakeCompound = Callable[[Any, Sequence[Serializer]], Serializer]
_COMPOUNDS: dict[type[kt.KeyType], _MakeCompound] = {
    kt.SQL_DATE: lambda _, parts: SQL_DATE,
    kt.SQL_TIME: lambda _, parts: SQL_TIME,
    kt.SQL_TIMESTAMP: lambda _, parts: SQL_TIMESTAMP,
    kt.LIST: lambda _, parts: array(*parts),
    kt.MAP: lambda _, parts: MapSerializer(*parts),
    kt.TUPLE: lambda _, parts: TupleSerializer(parts),
    kt.ROW: lambda made, parts: RowSerializer(parts, names=made.names or ()),
}
