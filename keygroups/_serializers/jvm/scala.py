"""The serializers of Flink's Scala API, each under the name of Flink 1 and that of Flink 2."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from keygroups._checks import check_str, show
from keygroups._serializers.base import (
    Composite,
    Read,
    Serializer,
    Simple,
    UnreadableError,
    key_type_of,
    writers,
)
from keygroups._serializers.collections import flagged_elements
from keygroups._serializers.compounds import EitherSerializer, TupleSerializer
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.data_output import i32, utf
from keygroups._serializers.jvm.objects import java_object_end
from keygroups._serializers.scalars import pack_int, read_int, read_varint
from keygroups._values.checks import expect, expect_fields
from keygroups._values.java_values import Failure, Some, Success
from keygroups.errors import InvalidValueError
from keygroups.types import SCALA_TUPLE, KeyType

_SCALA = "org.apache.flink.api.scala.typeutils."
_SCALA_OF_2 = "org.apache.flink.table.api.typeutils."  # Flink 2 has them in the planner's jar.


class CaseClassSerializer(TupleSerializer):
    """A case class or a tuple of Scala, read as a tuple of its fields; it hashes by Scala's rules.

    Flink's own API for Scala is that of 2.12 and, before Flink 1.15, of 2.11, where tuples hash
    alike. A case class may have a hashCode of its own, which no byte shows: it has no key type.
    """

    name, snapshot = "CASE_CLASS", f"{_SCALA}ScalaCaseClassSerializerSnapshot"

    def __init__(self, parts: Sequence[Serializer], java_class: str) -> None:
        super().__init__(parts, java_class)

    def _key_type(self) -> KeyType | None:
        if self.java_class != f"scala.Tuple{len(self.parts)}":
            return None
        return key_type_of(partial(SCALA_TUPLE, scala="2.12"), self.parts)

    @classmethod
    def made_of(cls, cursor: Cursor, nested: list[Serializer], outer: str) -> Serializer:
        if not nested or not outer:  # Any number of values without fields would fit no bytes.
            raise cursor.error("a case class without fields or without a name")
        return cls(nested, outer)


class CaseClassSerializer2(CaseClassSerializer):
    snapshot = f"{_SCALA_OF_2}ScalaCaseClassSerializerSnapshot"


class Tuple2CaseClassSerializer(CaseClassSerializer):
    """A pair, whose fields Scala keeps without boxes."""

    snapshot = f"{_SCALA}Tuple2CaseClassSerializerSnapshot"


class Tuple2CaseClassSerializer2(CaseClassSerializer):
    snapshot = f"{_SCALA_OF_2}Tuple2CaseClassSerializerSnapshot"


class OptionSerializer(Composite):
    """An Option: 00 for None, or 01 and the value.

    A null in the place of an Option is read as None too.
    """

    name, snapshot = "OPTION", f"{_SCALA}ScalaOptionSerializerSnapshot"
    outer_versions, takes_null, none_is_value, is_its_parts = (2,), True, True, True

    def bind(self, reads: Sequence[Read]) -> None:
        [read], [write], name = reads, writers(self.parts, None), str(self)

        def read_option(data: bytes, pos: int) -> tuple[Some | None, int]:
            if not data[pos]:
                return None, pos + 1
            value, pos = read(data, pos + 1)
            return Some(value), pos

        def write_option(option: Any) -> bytes:
            if option is None:
                return b"\0"
            return b"\1" + write(expect(name, option, Some, "None or a Some").value)

        self.read, self.write = read_option, write_option


class OptionSerializer2(OptionSerializer):
    snapshot = f"{_SCALA_OF_2}ScalaOptionSerializerSnapshot"


class ScalaEitherSerializer(EitherSerializer):
    snapshot = f"{_SCALA}ScalaEitherSerializerSnapshot"


class ScalaEitherSerializer2(EitherSerializer):
    snapshot = f"{_SCALA_OF_2}ScalaEitherSerializerSnapshot"


class TrySerializer(Composite):
    """A Try: 01 and the value of a success, or 00 and the exception as Kryo writes it.

    `failure` is Kryo's serializer of exceptions. Its bytes stay as they are: the name of the
    class and a Java object stream.
    """

    name, snapshot = "TRY", f"{_SCALA}ScalaTrySerializerSnapshot"
    outer_versions, arity = (2,), 2

    def __init__(self, value: Serializer, failure: Serializer) -> None:
        self.parts = (value,)
        self._failure = failure
        super().__init__(value, failure)

    def bind(self, reads: Sequence[Read]) -> None:
        [read], [write], name = reads, writers(self.parts, None), str(self)

        def read_try(data: bytes, pos: int) -> tuple[Success | Failure, int]:
            if not data[pos]:
                return _read_failure(data, pos + 1)
            value, pos = read(data, pos + 1)
            return Success(value), pos

        def write_try(value: Any) -> bytes:
            result: Any = expect(name, value, (Success, Failure), "a Success or a Failure")
            if isinstance(result, Success):
                return b"\1" + write(result.value)
            data = expect(name, result.data, bytes, "of a Failure with bytes as its data")
            _check_failure(result.java_class, data)
            return b"\0" + data

        self.read, self.write = read_try, write_try

    def nested(self) -> tuple[Serializer, ...]:
        return *self.parts, self._failure


class TrySerializer2(TrySerializer):
    snapshot = f"{_SCALA_OF_2}ScalaTrySerializerSnapshot"


class TraversableSerializer(Composite):
    """A collection of Scala: a count, then 00 for null or 01 and the value of each element.

    `code` is the Scala code that Flink compiles to make such a collection; it is never run here.
    """

    name, snapshot = "TRAVERSABLE", f"{_SCALA}TraversableSerializerSnapshot"
    outer_versions = (2,)

    def __init__(self, code: str, element: Serializer) -> None:
        self.code = code
        self.parts = (element,)
        super().__init__(code, element)

    def bind(self, reads: Sequence[Read]) -> None:
        self.read, self.write = flagged_elements(self, *reads)

    @classmethod
    def read_outer(cls, cursor: Cursor, outer_version: int) -> str:
        return cursor.utf()

    @classmethod
    def made_of(cls, cursor: Cursor, nested: list[Serializer], outer: str) -> Serializer:
        return cls(outer, *nested)

    def outer(self) -> bytes:
        return utf("code", self.code)


class TraversableSerializer2(TraversableSerializer):
    snapshot = f"{_SCALA_OF_2}TraversableSerializerSnapshot"


class ScalaEnumSerializer(Serializer):
    """A value of an Enumeration, written as a number and read as its name.

    `constants` are pairs of name and number.
    """

    name, snapshot, versions = "ENUM", f"{_SCALA}ScalaEnumSerializerSnapshot", (3,)
    size = 4

    def __init__(self, java_class: str, constants: Sequence[tuple[str, int]]) -> None:
        self.java_class = java_class
        self.constants = tuple(constants)
        super().__init__(java_class, self.constants)

    def bind(self, reads: Sequence[Read]) -> None:
        java_class = self.java_class
        names = {number: name for name, number in self.constants}
        numbers = dict(self.constants)

        def read_enum(data: bytes, pos: int) -> tuple[str, int]:
            number, pos = read_int(data, pos)
            if number not in names:
                raise ValueError(f"no constant of {java_class} has the number {number}")
            return names[number], pos

        def write_enum(value: Any) -> bytes:
            name = check_str(f"constant of {java_class}", value)
            if name not in numbers:
                raise InvalidValueError(
                    f"constant of {java_class} must be one of {', '.join(numbers)}, got "
                    f"{show(name)}"
                )
            return pack_int(numbers[name])

        self.read, self.write = read_enum, write_enum

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        java_class = cursor.utf()
        constants = [(cursor.name_of_values(), cursor.i32()) for _ in range(cursor.count(6))]
        for values in zip(*constants):
            if len(set(values)) < len(values):
                raise cursor.error(f"two constants of {java_class} with one name or number")
        return cls(java_class, constants)

    def contents(self) -> bytes:
        constants = (utf("constant", name) + i32(number) for name, number in self.constants)
        return b"".join((utf("class", self.java_class), i32(len(self.constants)), *constants))


class ScalaEnumSerializer2(ScalaEnumSerializer):
    snapshot = f"{_SCALA_OF_2}ScalaEnumSerializerSnapshot"


class UnitSerializer(Simple):
    """Scala's Unit, whose one value is the empty tuple here."""

    name, snapshot, size = "UNIT", f"{_SCALA}UnitSerializer$UnitSerializerSnapshot", 1

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[tuple[()], int]:
        data[pos]
        return (), pos + 1

    @staticmethod
    def write(value: object) -> bytes:
        expect_fields("UNIT", 0, value)
        return b"\0"


class UnitSerializer2(UnitSerializer):
    snapshot = f"{_SCALA_OF_2}UnitSerializer$UnitSerializerSnapshot"


class NothingSerializer(Simple):
    """Scala's Nothing, which has no values: lists of it are empty."""

    name, snapshot = "NOTHING", f"{_SCALA}NothingSerializerSnapshot"

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[Any, int]:
        raise ValueError("Nothing has no values")

    @staticmethod
    def write(value: object) -> bytes:
        raise InvalidValueError(f"NOTHING has no values, got {show(value)}")


class NothingSerializer2(NothingSerializer):
    snapshot = f"{_SCALA_OF_2}NothingSerializerSnapshot"


# --- exceptions -----------------------------------------------------------------------------


def _read_failure(data: bytes, pos: int) -> tuple[Failure, int]:
    """Read an exception: Kryo's mark of a class by name, the class, a new object, its stream.

    Flink: KryoSerializer, JavaSerializer for Throwable.
    """
    start = pos
    if data[pos : pos + 2] != b"\1\0":
        data[pos + 1]
        raise UnreadableError("an exception of which Kryo wrote no name")
    java_class, pos = _read_kryo_string(data, pos + 2)
    if data[pos] != 1:
        raise ValueError("an exception that is no new object")
    end = java_object_end(data, pos + 1)
    return Failure(java_class, data[start:end]), end


def _read_kryo_string(data: bytes, pos: int) -> tuple[str, int]:
    """Read the name of a class: ASCII with a mark at its end, or its length and its units."""
    start = pos
    if data[pos] < 0x80:
        while data[pos] < 0x80:
            pos += 1
        text = data[start:pos] + bytes([data[pos] & 0x7F])
        return text.decode("ascii"), pos + 1
    length, pos = data[pos] & 0x3F, pos + 1
    if data[start] & 0x40:
        more, pos = read_varint(data, pos)
        length |= more << 6
    end = pos + length - 1
    if end > len(data):
        raise IndexError("too few bytes")
    text = data[pos:end]
    if length < 2 or not text.isascii():
        raise UnreadableError("an exception of a class that is not in ASCII")
    return text.decode("ascii"), end


def _check_failure(java_class: str, data: bytes) -> None:
    try:
        failure, end = _read_failure(data, 0)
    except (IndexError, ValueError) as error:
        raise InvalidValueError(f"data of a Failure must be what Kryo wrote: {error}") from None
    if end != len(data) or failure.java_class != java_class:
        raise InvalidValueError(
            f"data of a Failure must be of a {show(java_class)} alone, got "
            f"{failure.java_class} in {end} of {len(data)} bytes"
        )
