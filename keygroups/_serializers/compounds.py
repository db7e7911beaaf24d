"""The serializers with nested ones: tuples, rows and the like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keygroups import types as kt
from keygroups._checks import check_str, show
from keygroups._serializers.base import (
    BASE,
    JAVA,
    Composite,
    Read,
    Serializer,
    Simple,
    key_type_of,
    total_size,
    write_part,
    writers,
)
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.data_output import i32, utf
from keygroups._serializers.scalars import pack_int, read_int
from keygroups._values.checks import expect, expect_fields
from keygroups._values.java_lang import signed
from keygroups._values.java_values import Left, Right
from keygroups._values.rows import ROW_KINDS, Row, row_of_kind
from keygroups.errors import InvalidValueError


class TupleSerializer(Composite):
    """A tuple: one field after the other.

    `java_class` is "" for Flink's own tuples, else a class that may hash otherwise: one of the
    job's own, or a Scala case class.
    """

    name, snapshot = "TUPLE", f"{JAVA}TupleSerializerSnapshot"
    outer_versions, arity = (2,), None

    def __init__(self, parts: Sequence[Serializer], java_class: str = "") -> None:
        self.parts = tuple(parts)
        self.java_class = java_class
        self.size = total_size(self.parts)
        self.key_type = self._key_type()
        super().__init__(self.parts, java_class)

    def _key_type(self) -> kt.KeyType | None:
        return None if self.java_class else key_type_of(kt.TUPLE, self.parts)

    def bind(self, reads: Sequence[Read]) -> None:
        key_type, writes = self.key_type, writers(self.parts, self.key_type)
        name = f"TUPLE({', '.join(map(str, self.parts))})"

        def read_tuple(data: bytes, pos: int) -> tuple[tuple[Any, ...], int]:
            values = []
            for read in reads:
                value, pos = read(data, pos)
                values.append(value)
            return tuple(values), pos

        def write_tuple(values: tuple[Any, ...]) -> bytes:
            if key_type is None:
                expect_fields(name, len(writes), values)
            written = []
            for write, value in zip(writes, values):
                written.append(write(value))
            return b"".join(written)

        self.read, self.write = read_tuple, write_tuple

    @classmethod
    def read_outer(cls, cursor: Cursor, outer_version: int) -> str:
        return cursor.utf()

    @classmethod
    def made_of(cls, cursor: Cursor, nested: list[Serializer], outer: str) -> Serializer:
        if not nested:  # Any number of them would fit no bytes, and Tuple0 has its own serializer.
            raise cursor.error("a tuple of no fields is written by no serializer of tuples")
        return cls(nested, "" if outer == _tuple_class(len(nested)) else outer)

    def outer(self) -> bytes:
        return utf("class", self.java_class or _tuple_class(len(self.parts)))


def _tuple_class(arity: int) -> str:
    return f"org.apache.flink.api.java.tuple.Tuple{arity}"


class Tuple0Serializer(Simple):
    """The tuple of no fields, which has a byte."""

    name, size, key_type = "TUPLE", 1, kt.TUPLE()
    snapshot = f"{JAVA}Tuple0SerializerSnapshot"

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[tuple[()], int]:
        data[pos]  # The byte has to exist; Flink ignores its value too.
        return (), pos + 1

    @staticmethod
    def write(value: object) -> bytes:
        return b"*"


class RowSerializer(Composite):
    """A Row: a bit for each null, then the other fields.

    With `has_row_kind` two bits before them are its kind: before outer version 3 no row has them,
    in version 3 each has, and later ones say it. (7, None) of INT and STRING is 10 00000007: the
    kind +I and the mask 01; of kind -D it is D0 00000007. `names` are those of the fields, which
    no bytes have, where a PyFlink job has declared some.
    """

    name, snapshot = "ROW", f"{JAVA}RowSerializer$RowSerializerSnapshot"
    outer_versions, arity = (1, 2, 3, 4), None

    def __init__(
        self,
        parts: Sequence[Serializer],
        has_row_kind: bool = True,
        names: tuple[str, ...] = (),
    ) -> None:
        self.parts = tuple(parts)
        self.has_row_kind = has_row_kind
        self.names = names
        self.key_type = None if names else key_type_of(kt.ROW, parts)
        super().__init__(self.parts, has_row_kind, names)

    def bind(self, reads: Sequence[Read]) -> None:
        key_type, writes = self.key_type, writers(self.parts, self.key_type)
        kind_bits = 2 if self.has_row_kind else 0
        bits = kind_bits + len(writes)
        mask_size = (bits + 7) // 8
        name = f"ROW({', '.join(map(str, self.parts))})"
        places = [(bit // 8, 0x80 >> bit % 8) for bit in range(kind_bits, bits)]
        never_null = {place for place, part in zip(places, self.parts) if part.none_is_value}
        without_nulls = [
            bytes([(kind & 1) << 7 | kind >> 1 << 6]) + bytes(mask_size - 1)
            if kind_bits
            else bytes(mask_size)
            for kind in range(len(ROW_KINDS))
        ]

        def read_row(data: bytes, pos: int) -> tuple[Row, int]:
            if pos + mask_size > len(data):
                raise IndexError("too few bytes")
            mask = data[pos : pos + mask_size]
            kind = data[pos] >> 7 | data[pos] >> 5 & 2 if kind_bits else 0
            pos += mask_size
            values: list[Any] = []
            for (index, bit), read in zip(places, reads):
                value = None
                if not mask[index] & bit:
                    value, pos = read(data, pos)
                values.append(value)
            return row_of_kind(values, kind), pos

        def write_row(values: tuple[Any, ...]) -> bytes:
            if key_type is None:
                expect_fields(name, len(writes), values)
            kind = ROW_KINDS.index(values.row_kind) if isinstance(values, Row) else 0
            if kind and not kind_bits:
                raise InvalidValueError(
                    f"key of type {name} must be a row of kind +I, got {show(values)}"
                )
            nulls, written = [], []
            for place, write, value in zip(places, writes, values):
                if value is None and place not in never_null:
                    nulls.append(place)
                else:
                    written.append(write(value))
            mask = without_nulls[kind]
            if nulls:
                changed = bytearray(mask)
                for index, bit in nulls:
                    changed[index] |= bit
                mask = bytes(changed)
            return mask + b"".join(written)

        self.read, self.write = read_row, write_row
        names = self.names
        if names:

            def read_named(data: bytes, pos: int) -> tuple[Row, int]:
                row, pos = read_row(data, pos)
                return row.named(names), pos

            self.read = read_named

    @classmethod
    def read_outer(cls, cursor: Cursor, outer_version: int) -> bool:
        return outer_version == 3 or (outer_version > 3 and cursor.bool())

    @classmethod
    def made_of(cls, cursor: Cursor, nested: list[Serializer], outer: bool) -> Serializer:
        if not nested and not outer:
            raise cursor.error("a row of no fields and without a row kind has no bytes")
        return cls(nested, outer)

    def outer(self) -> bytes:
        return bytes([self.has_row_kind])


class NullableSerializer(Composite):
    """A value after a 0, or a 1 for null, which may be padded to the size of a value.

    `padding` is the bytes after the mark of a null. The key type is that of the value.
    """

    name, snapshot = "NULLABLE", f"{JAVA}NullableSerializer$NullableSerializerSnapshot"
    outer_versions, takes_null = (2,), True

    def __init__(self, value: Serializer, padding: int = 0) -> None:
        self.parts = (value,)
        self.padding = padding
        self.key_type = value.key_type
        if padding:
            self.size = 1 + padding
        super().__init__(value, padding)

    def bind(self, reads: Sequence[Read]) -> None:
        [read], [part], padding = reads, self.parts, self.padding
        [write] = writers(self.parts, self.key_type)
        null, is_null = b"\1" + bytes(padding), not part.none_is_value

        def read_nullable(data: bytes, pos: int) -> tuple[Any, int]:
            if not data[pos]:
                return read(data, pos + 1)
            end = pos + 1 + padding
            if end > len(data):
                raise IndexError("too few bytes")
            return None, end

        def write_nullable(value: Any) -> bytes:
            return null if value is None and is_null else b"\0" + write(value)

        self.read, self.write = read_nullable, write_nullable

    @classmethod
    def read_outer(cls, cursor: Cursor, outer_version: int) -> int:
        return cursor.i32()

    @classmethod
    def made_of(cls, cursor: Cursor, nested: list[Serializer], outer: int) -> Serializer:
        [value] = nested
        if outer < 0 or (outer and value.read is not None and outer != value.size):
            raise cursor.error(f"a null of {value} cannot be padded by {outer} bytes")
        return cls(value, outer)

    def outer(self) -> bytes:
        return i32(self.padding)


class EitherSerializer(Composite):
    """An Either: 1 for Left or 0 for Right, then the value."""

    name, snapshot = "EITHER", f"{JAVA}JavaEitherSerializerSnapshot"
    outer_versions, arity, is_its_parts = (1,), 2, True

    def bind(self, reads: Sequence[Read]) -> None:
        (read_left, read_right), name = reads, str(self)
        write_left, write_right = writers(self.parts, None)

        def read_either(data: bytes, pos: int) -> tuple[Left | Right, int]:
            if data[pos]:
                value, pos = read_left(data, pos + 1)
                return Left(value), pos
            value, pos = read_right(data, pos + 1)
            return Right(value), pos

        def write_either(value: Any) -> bytes:
            either: Any = expect(name, value, (Left, Right), "a Left or a Right")
            if isinstance(either, Left):
                return b"\1" + write_left(either.value)
            return b"\0" + write_right(either.value)

        self.read, self.write = read_either, write_either


class PyFlinkSerializer(Serializer):
    """A key that PyFlink puts in a Row by itself.

    Where the element says its own hash, no key type does.
    """

    name, takes_null = "PYFLINK", True
    key_type: kt.PYFLINK | None

    def __init__(self, key_type: kt.PYFLINK | None, element: Serializer) -> None:
        self.key_type = key_type
        self.parts = (element,)
        key_hash = element.key_hash
        if key_type is None and key_hash is not None:
            # PyFlink: a Row of the key, whose hash is that of its kind and of a list of its field.
            self.key_hash = lambda key: signed(31 if key is None else 62 + key_hash(key))
        super().__init__(key_type, element)

    @property
    def in_thread(self) -> bool:
        """Whether what is written is for a job of PyFlink's thread mode."""
        return self.key_type is not None and self.key_type.thread_mode

    def versioned_snapshot(self) -> bytes:
        """Return the snapshot of the Row, which its header has."""
        return RowSerializer(self.parts).versioned_snapshot()

    def bind(self, reads: Sequence[Read]) -> None:
        row = RowSerializer(self.parts)
        read = row.read

        def read_only_field(data: bytes, pos: int) -> tuple[Any, int]:
            [field], pos = read(data, pos)  # type: ignore[misc]  # It is set, as the field's is.
            return field, pos

        self.read, self.write = read_only_field, lambda key: write_part(row, (key,))


class EnumSerializer(Serializer):
    """An enum: the index of the constant, whose name is the value."""

    name, snapshot, versions = "ENUM", f"{BASE}EnumSerializer$EnumSerializerSnapshot", (1, 2, 3)
    size = 4

    def __init__(self, java_class: str, constants: Sequence[str]) -> None:
        self.java_class = java_class
        self.constants = tuple(constants)
        super().__init__(java_class, self.constants)

    def bind(self, reads: Sequence[Read]) -> None:
        java_class, constants = self.java_class, self.constants

        def read_enum(data: bytes, pos: int) -> tuple[str, int]:
            index, pos = read_int(data, pos)
            if not 0 <= index < len(constants):
                raise ValueError(f"constant {index} of the {len(constants)} of {java_class}")
            return constants[index], pos

        indices = {constant: index for index, constant in enumerate(constants)}

        def write_enum(value: object) -> bytes:
            constant = check_str(f"ENUM({java_class})", value)
            if constant not in indices:
                raise InvalidValueError(
                    f"ENUM({java_class}) must be the name of one of its {len(constants)} "
                    f"constants, got {show(constant)}"
                )
            return pack_int(indices[constant])

        self.read, self.write = read_enum, write_enum

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        java_class = cursor.utf()
        return cls(java_class, [cursor.name_of_values() for _ in range(cursor.count(2))])

    def contents(self) -> bytes:
        names = (utf("constant", constant) for constant in self.constants)
        return b"".join((utf("class", self.java_class), i32(len(self.constants)), *names))
