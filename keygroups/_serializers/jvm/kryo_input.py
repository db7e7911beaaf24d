"""A reader of Kryo's values without the job's classes: numbers, texts, classes, references.

A value is a class and an object: 02 D8 04 is class 0 (plus 2), an Integer, and 300 in zigzag. An
object of most classes has a mark before its body: 00 is null, 01 a new object, and 02 + n a
reference to object n of the value, counted from 0.

All work is bounded by the bytes of a value. A reference counts as all bytes of its object each
time, and a null without bytes as one; together they may be a fixed multiple of the bytes read.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keygroups._checks import MAX_DEPTH, show
from keygroups._serializers.base import UnreadableError
from keygroups._serializers.data_input import MOST_REPEATED
from keygroups._serializers.jvm.kryo_classes import (
    FINAL,
    PRIMITIVES,
    DeclaredClass,
    KryoClass,
    KryoEnum,
    KryoFields,
)
from keygroups._serializers.scalars import write_varint
from keygroups._values.java_values import pojo_of

_FREELY_REPEATED = 1 << 12  # bytes that references may repeat in any value
_FIRST_OF_JOB = 85

_PRIMITIVES = ("int", "", "float", "boolean", "byte", "char", "short", "long", "double", "void")
_CLASSES = {
    0: "java.lang.Integer",
    1: "java.lang.String",
    2: "java.lang.Float",
    3: "java.lang.Boolean",
    4: "java.lang.Byte",
    5: "java.lang.Character",
    6: "java.lang.Short",
    7: "java.lang.Long",
    8: "java.lang.Double",
    9: "java.lang.Void",
    73: "java.util.Arrays$ArrayList",
    74: "java.util.BitSet",
    75: "java.util.PriorityQueue",
    76: "java.util.regex.Pattern",
    77: "java.sql.Date",
    78: "java.sql.Time",
    79: "java.sql.Timestamp",
    80: "java.net.URI",
    81: "java.net.InetSocketAddress",
    82: "java.util.UUID",
    83: "java.util.Locale",
    84: "java.text.SimpleDateFormat",
}
"""The classes that Flink itself registers, by their numbers; 10 to 72 are Scala's."""
_NUMBERED = frozenset(_CLASSES.values())
_WRAPPERS = {name: number for number, name in _CLASSES.items() if number < 10 and number != 1}

Body = Callable[["KryoInput"], Any]


class Registrations:
    """The numbers of classes in the values of a job, and the readers of their objects.

    `registered` are the classes of the job's snapshot in order, `own` those of them that have a
    serializer of the job's own, `bodies` the readers by class, `described` the classes that a
    user describes.
    """

    def __init__(
        self,
        registered: Sequence[str],
        own: Sequence[str],
        bodies: Mapping[str, Body],
        described: Mapping[str, KryoClass],
    ) -> None:
        # A class with a number gets another one where the job gives it a serializer of its own.
        others = [name for name in registered if name in own or name not in _NUMBERED]
        self.classes: dict[int, str] = {**_CLASSES, **dict(enumerate(others, _FIRST_OF_JOB))}
        self.bodies = {name: body for name, body in bodies.items() if name not in own}
        self.bodies.update({name: _body_of(name, made) for name, made in described.items()})
        self.finals = {*FINAL, *(name for name, made in described.items() if made.is_final)}
        enums = [name for name, made in described.items() if isinstance(made, KryoEnum)]
        # Classes whose objects have no mark and are never referred to, by the version of Kryo.
        self.unreferenced = {2: {*_WRAPPERS}, 5: {*_WRAPPERS, *enums}}

    def head_of(self, name: str) -> bytes | None:
        """Return the class, by its number, and the mark before the object of a whole value.

        For java.util.UUID, number 82, they are 54 01; None if the class has no number.
        """
        numbers = {known: number for number, known in self.classes.items()}
        if name not in numbers:
            return None
        return write_varint(numbers[name] + 2) + (b"" if name in _WRAPPERS else b"\1")


def _body_of(java_class: str, described: KryoClass) -> Body:
    """Return the reader of objects of a class that a user describes."""
    if isinstance(described, KryoFields):
        fields = [*described.declared()]
        return lambda kryo: pojo_of(
            java_class, {name: kryo.field(declared) for name, declared in fields}
        )
    constants = described.constants

    def read_constant(kryo: KryoInput) -> str | None:
        number = kryo.varint() - 1
        if not -1 <= number < len(constants):
            raise ValueError(f"constant {number} of the {len(constants)} of {java_class}")
        return None if number < 0 else constants[number]

    return read_constant


class KryoInput:
    """A reader of one value of Kryo from a position in bytes.

    `version` is 2 or 5. Objects that take the job's classes raise UnreadableError.
    """

    def __init__(self, data: bytes, pos: int, version: int, registrations: Registrations) -> None:
        self.data = data
        self.pos = pos
        self.version = version
        self._registrations = registrations
        self._unreferenced = registrations.unreferenced[version]
        self._arguments: tuple[DeclaredClass, ...] = ()  # type arguments of the current object
        self._names: list[str] = []
        # Each object so far with its bytes; None while it is read.
        self._objects: list[tuple[Any, int] | None] = []
        self._start = pos
        self._repeated = 0  # bytes that references have repeated
        self._depth = 0

    # --- numbers and texts

    def take(self, count: int) -> bytes:
        """Read and return `count` bytes."""
        end = self.pos + count
        if end > len(self.data):
            raise IndexError("too few bytes")
        data = self.data[self.pos : end]
        self.pos = end
        return data

    def u8(self) -> int:
        """Read a byte."""
        byte = self.data[self.pos]
        self.pos += 1
        return byte

    def i8(self) -> int:
        """Read a signed byte."""
        byte = self.u8()
        return byte - 256 if byte > 127 else byte

    def boolean(self) -> bool:
        """Read a byte that is 0 or 1."""
        byte = self.u8()
        if byte > 1:
            raise ValueError(f"{byte} is neither true nor false")
        return byte == 1

    def fixed(self, code: str) -> Any:
        """Read a number of a format letter of `struct`: little endian since Kryo 5, else big."""
        [number] = self.fixed_array(code, 1)
        return number

    def fixed_array(self, code: str, count: int) -> tuple[Any, ...]:
        """Read `count` numbers of a fixed size."""
        packed = f"{'<' if self.version == 5 else '>'}{count}{code}"
        return struct.unpack(packed, self.take(count * struct.calcsize(f">{code}")))

    def varint(self) -> int:
        """Read an int of 1 to 5 bytes: 7 bits each, the lowest first, unsigned."""
        return self._varint(0, 0)

    def _varint(self, number: int, shift: int) -> int:
        while True:
            byte = self.u8()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                if number >= 1 << 32:
                    raise ValueError("a number of more than 32 bits")
                return number - (1 << 32) if number >= 1 << 31 else number
            shift += 7
            if shift >= 34:
                raise ValueError("a number of more than 32 bits")

    def zigzag(self) -> int:
        """Read an int whose sign is in its lowest bit: 05 is -3, and D8 04 is 300."""
        number = self.varint() & 0xFFFFFFFF
        return number >> 1 ^ -(number & 1)

    def _unsigned_varlong(self) -> int:
        number = shift = 0
        while True:
            byte = self.u8()
            if shift == 56:
                return number | byte << 56
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7

    def varlong(self) -> int:
        """Read a long of 1 to 9 bytes: 7 bits each but 8 of the ninth, unsigned."""
        number = self._unsigned_varlong()
        return number - (1 << 64) if number >= 1 << 63 else number

    def zigzag_long(self) -> int:
        """Read a long whose sign is in its lowest bit."""
        number = self._unsigned_varlong()
        return number >> 1 ^ -(number & 1)

    def count(self, above: int = 0) -> int:
        """Read a number of things that follow, each of at least a byte, less `above`."""
        return self._checked_count(self.varint() - above)

    def _checked_count(self, count: int) -> int:
        if count < 0:
            raise ValueError(f"a count of {count}")
        if count > len(self.data) - self.pos:
            raise IndexError("too few bytes")
        return count

    def string(self) -> str | None:
        """Read a text, or None.

        ASCII has the highest bit set in its last byte: "flink" is 66 6C 69 6E EB. Any other text
        follows its length + 1 with a flag in the highest bit, each UTF-16 unit in 1 to 3 bytes:
        a single e with an acute accent is 82 C3 A9. A length of 0, 80, is null.
        """
        data, pos = self.data, self.pos
        first = data[pos]
        if first < 0x80:
            end = pos
            while data[end] < 0x80:
                end += 1
            self.pos = end + 1
            return data[pos:end].decode("ascii") + chr(data[end] & 0x7F)
        length = self._flagged_varint()[1]
        if not length:
            return None
        count = self._checked_count(length - 1)
        text = data[self.pos : self.pos + count]
        if text.isascii():
            self.pos += count
            return text.decode("ascii")
        return self._units(count)

    def text(self) -> str:
        """Read a text that is not null."""
        text = self.string()
        if text is None:
            raise ValueError("a text that is null")
        return text

    def _flagged_varint(self) -> tuple[bool, int]:
        first = self.u8()
        number = first & 0x3F
        return first >= 0x80, self._varint(number, 6) if first & 0x40 else number

    def _units(self, count: int) -> str:
        units = bytearray()
        for _ in range(count):
            unit = self.u8()
            if unit >> 4 == 14:
                unit = (unit & 0x0F) << 12 | self._rest() << 6 | self._rest()
            elif unit >> 5 == 6:
                unit = (unit & 0x1F) << 6 | self._rest()
            elif unit >= 0x80:
                raise ValueError(f"{unit:#x} starts no character")
            units += unit.to_bytes(2, "little")
        return units.decode("utf-16-le", "surrogatepass")

    def _rest(self) -> int:
        byte = self.u8()
        if byte >> 6 != 2:
            raise ValueError(f"{byte:#x} continues no character")
        return byte & 0x3F

    # --- classes and objects

    def class_name(self) -> str | None:
        """Read a class; None is that of null."""
        number = self.varint() - 2
        if number == -2:
            return None
        if number == -1:
            place = self.varint()
            if place == len(self._names):
                self._names.append(self.text())
            if not 0 <= place < len(self._names):
                raise ValueError(f"class {place} of {len(self._names)} names")
            return self._names[place]
        name = self._registrations.classes.get(number)
        if name is None:
            raise UnreadableError(f"the class that Kryo knows as {number} is not known")
        return name

    def class_value(self) -> str:
        """Read a class that is a value itself, and return its name, such as "int"."""
        name = self.class_name()
        if name is None:
            raise ValueError("a class that is null")
        self._repeat(len(name))
        number = _WRAPPERS.get(name)
        if self.version == 2 or number is not None:
            is_primitive = self.boolean()
            if is_primitive and number is not None:
                return _PRIMITIVES[number]
        return name

    def value(self, arguments: tuple[DeclaredClass, ...] = ()) -> Any:
        """Read a class and an object of it; `arguments` are the declared type arguments."""
        name = self.class_name()
        return None if name is None else self.object(name, arguments=arguments)

    def field(self, declared: DeclaredClass) -> Any:
        """Read a field; Kryo writes its class unless the declared one has no subclasses.

        Kryo: ReflectField.read, and FieldSerializer's fields of primitive types.
        """
        boxed = PRIMITIVES.get(declared.name)
        if boxed is not None:
            return self.body(boxed)
        if declared.name in self._registrations.finals:
            return self.object(declared.name, True, declared.arguments)
        return self.value(declared.arguments)

    def values(self, count: int) -> list[Any]:
        """Read `count` values."""
        return [self.value() for _ in range(count)]

    def object(
        self, name: str, may_be_null: bool = False, arguments: tuple[DeclaredClass, ...] = ()
    ) -> Any:
        """Read an object of a class: a mark, unless it is a number, and the body.

        `may_be_null` says that a number has a mark of null too. `arguments` are the type arguments
        of the declared field.
        """
        body = self._body_of(name)
        if name in self._unreferenced:
            return None if may_be_null and not self.boolean() else body(self)
        reference = self.varint() - 2
        if reference == -2:
            return None
        if reference != -1:
            if arguments and self.version == 2:  # Kryo 2 would use them for a later list.
                raise UnreadableError("a list or map of a type that an object before has too")
            return self._referred(reference)
        place, before = len(self._objects), self._size
        self._objects.append(None)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UnreadableError(f"Kryo's objects nest more than {MAX_DEPTH} deep")
        self._arguments = arguments
        made = body(self)
        self._depth -= 1
        self._objects[place] = made, self._size - before
        return made

    def body(self, name: str) -> Any:
        """Read the body of an object of a class, without a mark before it."""
        return self._body_of(name)(self)

    def _body_of(self, name: str) -> Body:
        body = self._registrations.bodies.get(name)
        if body is None:
            raise UnreadableError(f"an object of {show(name)} takes the job's own classes to read")
        return body

    @property
    def _size(self) -> int:
        """The position plus the bytes that references have repeated so far."""
        return self.pos + self._repeated

    def object_of(self, name: str, *classes: type) -> Any:
        """Read an object of a class that must not be null, and must make one of some classes."""
        made = self.object(name)
        if not isinstance(made, classes):  # A reference may lead to any object.
            raise ValueError(f"an object of {name} was to come")
        return made

    def _referred(self, reference: int) -> Any:
        if not 0 <= reference < len(self._objects):
            raise ValueError(f"object {reference} of {len(self._objects)}")
        referred = self._objects[reference]
        if referred is None:
            raise UnreadableError("an object is in itself")
        made, size = referred
        self._repeat(size)
        return made

    def _repeat(self, size: int) -> None:
        self._repeated += size
        read = self.pos - self._start
        if self._repeated > _FREELY_REPEATED + MOST_REPEATED * read:
            raise UnreadableError(
                f"a value repeats {self._repeated:,} bytes of {read:,}, which are over "
                f"{MOST_REPEATED} times as many and {_FREELY_REPEATED:,}"
            )

    def elements(self, has_null_flag: bool = True, has_comparator: bool = False) -> list[Any]:
        """Read a collection; a comparator is only read where it is that of natural order.

        In Kryo 5 the list of the Integers 1 and 2 is 83 02 00 02 04 (2 + 1 elements and the flag
        that all are of one class, Integer, none is null, both in zigzag), or without the flag 03
        02 02 02 04, where each has its class.

        Kryo: CollectionSerializer.read.
        """
        element = self._arguments[0] if self._arguments else None
        is_final = element is not None and element.name in self._registrations.finals
        if self.version == 2:
            if has_comparator:
                self.natural_order()
            count = self.count()
            return self._declared(element if is_final else None, count, True)
        is_flagged, count = (
            self._flagged_varint()
            if has_null_flag or not is_final
            else (
                False,
                self.varint(),
            )
        )
        count -= 1
        if has_comparator:
            self.natural_order()
        if is_final or count < 1 or not is_flagged:  # An empty collection has no class either.
            return self._declared(element, self._checked_count(count), is_flagged)
        name = self.class_name()
        if name is None:
            self._repeat(count)
            return [None] * count
        may_be_null = has_null_flag and self.boolean()
        arguments = () if element is None else element.arguments
        return [
            self.object(name, may_be_null, arguments) for _ in range(self._checked_count(count))
        ]

    def _declared(
        self, declared: DeclaredClass | None, count: int, may_be_null: bool
    ) -> list[Any]:
        """Read `count` elements, each with its class unless the declared one is final."""
        return [self._part(declared, may_be_null) for _ in range(count)]

    def _part(self, declared: DeclaredClass | None, may_be_null: bool) -> Any:
        """Read an element, key or value; Kryo 2 passes on no type arguments of its class."""
        if declared is None:
            return self.value()
        arguments = declared.arguments if self.version == 5 else ()
        if declared.name in self._registrations.finals:
            return self.object(declared.name, may_be_null, arguments)
        return self.value(arguments)

    def pairs(
        self, has_comparator: bool = False, may_be_null: bool = True
    ) -> list[tuple[Any, Any]]:
        """Read the keys and values of a map. Kryo: MapSerializer.read."""
        declared: tuple[DeclaredClass | None, ...] = (*self._arguments, None, None)
        key, value = declared[:2]
        if self.version == 2 and has_comparator:
            self.natural_order()
        count = self.count(1 if self.version == 5 else 0)
        if self.version == 5 and has_comparator:
            self.natural_order()
        return [
            (self._part(key, may_be_null), self._part(value, may_be_null)) for _ in range(count)
        ]

    def natural_order(self) -> None:
        """Read a comparator, which is null for the natural order."""
        name = self.class_name()
        if name is not None:
            raise UnreadableError(f"the comparator {show(name)} is not known")
