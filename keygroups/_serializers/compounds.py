"""The serializers that are made of others: tuples, rows, lists, maps, POJOs and the like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from keygroups import types as kt
from keygroups._checks import check_str, show
from keygroups._serializers.base import (
    BASE,
    JAVA,
    STATE,
    STREAMING,
    Composite,
    Read,
    Serializer,
    UnknownSerializer,
    UnknownSnapshotError,
    UnreadableError,
    Write,
    check_and_write,
    read_versioned_snapshot,
    write_part,
)
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.data_output import i32, utf
from keygroups._serializers.scalars import LONG, pack_int, read_count, read_int, read_long
from keygroups._values.checks import expect, expect_fields
from keygroups._values.rows import ROW_KINDS, Row, TtlValue, row_of_kind
from keygroups.errors import InvalidValueError, KeyGroupsError

_SIGN = 2**63
_OPTIONAL_MAP_MAGIC = 0x4F2C69A3D70


def _key_type(make: Callable[..., kt.KeyType], parts: Sequence[Serializer]) -> kt.KeyType | None:
    key_types = [part.key_type for part in parts]
    if None in key_types:
        return None
    try:
        return make(*key_types)
    except KeyGroupsError:  # more fields than Flink has, whole keys as parts
        return None


def _writers(parts: Sequence[Serializer], key_type: kt.KeyType | None) -> list[Write]:
    """Return what writes each part: with a check where no key type has checked the whole."""
    if key_type is None:
        return [partial(check_and_write, part) for part in parts]
    return [*map(_writer, parts)]


def _writer(part: Serializer) -> Write:
    write = part.write
    if write is None:
        return partial(write_part, part)
    if part.takes_null:
        return write  # at once, which is faster
    return lambda value: write_part(part, value) if value is None else write(value)


class TupleSerializer(Composite):
    """A tuple: one field after the other.

    `java_class` is that of a tuple which is none of Flink's own, and may hash otherwise: one of
    the job's own, or a Scala case class.
    """

    name, snapshot = "TUPLE", f"{JAVA}TupleSerializerSnapshot"
    outer_versions, arity = (2,), None

    def __init__(self, parts: Sequence[Serializer], java_class: str = "") -> None:
        self.parts = tuple(parts)
        self.java_class = java_class
        sizes = [part.size for part in parts]
        if None not in sizes:
            self.size = sum(filter(None, sizes))
        if not java_class:
            self.key_type = _key_type(kt.TUPLE, parts)
        super().__init__(self.parts, java_class)

    def bind(self, reads: Sequence[Read]) -> None:
        key_type, writes = self.key_type, _writers(self.parts, self.key_type)
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
        if not nested:  # any number fits no bytes, and Tuple0 has a serializer of its own
            raise cursor.error("a tuple of no fields is written by no serializer of tuples")
        return cls(nested, "" if outer == _tuple_class(len(nested)) else outer)

    def outer(self) -> bytes:
        return utf("class", self.java_class or _tuple_class(len(self.parts)))


def _tuple_class(arity: int) -> str:
    return f"org.apache.flink.api.java.tuple.Tuple{arity}"


class RowSerializer(Composite):
    """A Row: a bit for each null, then the other fields."""

    name, snapshot = "ROW", f"{JAVA}RowSerializer$RowSerializerSnapshot"
    outer_versions, arity = (3, 4), None

    def __init__(self, parts: Sequence[Serializer], has_row_kind: bool = True) -> None:
        self.parts = tuple(parts)
        self.has_row_kind = has_row_kind
        self.key_type = _key_type(kt.ROW, parts)
        super().__init__(self.parts, has_row_kind)

    def bind(self, reads: Sequence[Read]) -> None:
        key_type, writes = self.key_type, _writers(self.parts, self.key_type)
        kind_bits = 2 if self.has_row_kind else 0
        bits = kind_bits + len(writes)
        mask_size = (bits + 7) // 8
        name = f"ROW({', '.join(map(str, self.parts))})"
        places = [(bit // 8, 0x80 >> bit % 8) for bit in range(kind_bits, bits)]
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
            nulls, written = [], []
            for place, write, value in zip(places, writes, values):
                if value is None:
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

    @classmethod
    def read_outer(cls, cursor: Cursor, outer_version: int) -> bool:
        return outer_version == 3 or cursor.bool()

    @classmethod
    def made_of(cls, cursor: Cursor, nested: list[Serializer], outer: bool) -> Serializer:
        if not nested and not outer:
            raise cursor.error("a row of no fields and without a row kind has no bytes")
        return cls(nested, outer)

    def outer(self) -> bytes:
        return bytes([self.has_row_kind])


class ListSerializer(Composite):
    """A List: a count, then the elements."""

    name, snapshot, outer_versions = "LIST", f"{BASE}ListSerializerSnapshot", (1,)

    def __init__(self, element: Serializer) -> None:
        self.parts = (element,)
        self.key_type = _key_type(kt.LIST, self.parts)
        super().__init__(element)

    def bind(self, reads: Sequence[Read]) -> None:
        [read], key_type = reads, self.key_type
        [write] = _writers(self.parts, key_type)
        name = str(self)

        def write_list(values: list[Any]) -> bytes:
            if key_type is None:
                expect(name, values, list, "a list")
            return pack_int(len(values)) + b"".join(map(write, values))

        def read_list(data: bytes, pos: int) -> tuple[list[Any], int]:
            count, pos = read_count(data, pos)
            values = []
            for _ in range(count):
                value, pos = read(data, pos)
                values.append(value)
            return values, pos

        self.read, self.write = read_list, write_list


class MapSerializer(Composite):
    """A Map: a count, then key, whether the value is null, value."""

    name, snapshot, outer_versions, arity = "MAP", f"{BASE}MapSerializerSnapshot", (1,), 2

    def __init__(self, key: Serializer, value: Serializer) -> None:
        self.parts = (key, value)
        self.key_type = _key_type(kt.MAP, self.parts)
        super().__init__(key, value)

    def bind(self, reads: Sequence[Read]) -> None:
        read_key, read_value = reads

        def read_map(data: bytes, pos: int) -> tuple[Any, int]:
            count, pos = read_count(data, pos)
            items = []
            for _ in range(count):
                key, pos = read_key(data, pos)
                is_null, pos = data[pos], pos + 1
                value = None
                if not is_null:
                    value, pos = read_value(data, pos)
                items.append((key, value))
            return as_dict(items), pos

        self.read = read_map


def as_dict(items: list[tuple[Any, Any]]) -> Any:
    """Return a dict, or the pairs where Python takes keys for one, or cannot hash them."""
    try:
        mapping = dict(items)
    except TypeError:
        return items
    return mapping if len(mapping) == len(items) else items


class PyFlinkSerializer(Serializer):
    """A key that PyFlink puts in a Row by itself."""

    name, takes_null = "PYFLINK", True

    def __init__(self, key_type: kt.PYFLINK, element: Serializer) -> None:
        self.key_type = key_type
        self.parts = (element,)
        super().__init__(key_type, element)

    def bind(self, reads: Sequence[Read]) -> None:
        row = RowSerializer(self.parts)
        read = row.read

        def read_only_field(data: bytes, pos: int) -> tuple[Any, int]:
            fields, pos = read(data, pos)  # type: ignore[misc]  # as its only field can be
            return fields[0], pos

        self.read, self.write = read_only_field, lambda key: write_part(row, (key,))


class TtlSerializer(Composite):
    """A value with the time of its last access before it."""

    name, snapshot = "TTL", f"{STATE}ttl.TtlStateFactory$TtlSerializerSnapshot"
    outer_versions, arity = (2,), 2

    def __init__(self, value: Serializer) -> None:
        self.parts = (value,)
        super().__init__(value)

    def bind(self, reads: Sequence[Read]) -> None:
        [read] = reads

        def read_ttl(data: bytes, pos: int) -> tuple[TtlValue, int]:
            last_access, pos = read_long(data, pos)
            value, pos = read(data, pos)
            return TtlValue(last_access, value), pos

        self.read = read_ttl

    @classmethod
    def made_of(cls, cursor: Cursor, nested: list[Serializer], outer: None) -> Serializer:
        _, value = nested
        return cls(value)

    def nested(self) -> tuple[Serializer, ...]:
        return LONG, *self.parts


class TimerSerializer(Composite):
    """A timer: its time with the sign bit flipped, key, namespace."""

    name, snapshot = "TIMER", f"{STREAMING}operators.TimerSerializerSnapshot"
    outer_versions, arity = (2,), 2

    def __init__(self, key: Serializer, namespace: Serializer) -> None:
        self.parts = (key, namespace)
        super().__init__(key, namespace)

    def bind(self, reads: Sequence[Read]) -> None:
        read_key, read_namespace = reads

        def read_timer(data: bytes, pos: int) -> tuple[tuple[int, Any, Any], int]:
            flipped, pos = read_long(data, pos)
            key, pos = read_key(data, pos)
            namespace, pos = read_namespace(data, pos)
            return (flipped ^ -_SIGN, key, namespace), pos

        self.read = read_timer


class PojoSerializer(Serializer):
    """A POJO: flags, then whether null and the value of each field.

    `names` is None where the snapshot does not tell how all fields are written.
    """

    name, snapshot, versions = "POJO", f"{JAVA}PojoSerializerSnapshot", (2,)

    def __init__(
        self,
        java_class: str,
        names: Sequence[str] | None = None,
        parts: Sequence[Serializer] = (),
    ) -> None:
        self.java_class = java_class
        self.parts = tuple(parts)
        self.names = tuple(names or ())
        self._is_known = names is not None
        super().__init__(java_class, self.names if self._is_known else None, self.parts)

    def bind(self, reads: Sequence[Read]) -> None:
        if not self._is_known:
            return
        names, java_class = self.names, self.java_class

        def read_pojo(data: bytes, pos: int) -> tuple[dict[str, Any] | None, int]:
            flags = data[pos]
            pos += 1
            if flags == 1:
                return None, pos
            if flags != 2:
                raise UnreadableError(f"a POJO with flags {flags}: of a subclass of {java_class}")
            values = {}
            for name, read in zip(names, reads):
                value = None
                is_null = data[pos]
                pos += 1
                if not is_null:
                    value, pos = read(data, pos)
                values[name] = value
            return values, pos

        self.read = read_pojo

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        java_class = cursor.utf()
        fields = _optional_map(cursor, depth)
        _optional_map(cursor)  # registered subclasses
        _optional_map(cursor)  # subclasses that were met
        parts = [part for part in fields.values() if part is not None]
        return cls(java_class) if len(parts) < len(fields) else cls(java_class, [*fields], parts)


class KryoSerializer(Serializer):
    """What Kryo wrote, which takes the job's classes to read."""

    name, snapshot, versions = "KRYO", f"{JAVA}kryo.KryoSerializerSnapshot", (2,)

    def __init__(self, java_class: str) -> None:
        self.java_class = java_class
        super().__init__(java_class)

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        java_class = cursor.utf()
        for _ in range(3):
            _optional_map(cursor)
        return cls(java_class)


def _optional_map(cursor: Cursor, depth: int | None = None) -> dict[str, Serializer | None]:
    """Read a map by names; where a depth is given, its values as snapshots.

    Each value has its length before it, so that one of an unknown class costs no other.

    Flink: LinkedOptionalMapSerializer.readOptionalMap.
    """
    if cursor.i64() != _OPTIONAL_MAP_MAGIC:
        cursor.pos -= 8
        raise cursor.error("a map of a POJO's or Kryo's serializer was to follow")
    values: dict[str, Serializer | None] = {}
    for _ in range(cursor.count(4)):
        name = cursor.utf()
        if cursor.bool():
            cursor.take(cursor.i32())
        values[name] = None
        if cursor.bool():
            value = cursor.frame()
            if depth is not None:
                try:
                    values[name] = read_versioned_snapshot(value, depth + 1)
                except UnknownSnapshotError as error:
                    values[name] = UnknownSerializer(error.snapshot)
    return values


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
        return cls(java_class, [cursor.utf() for _ in range(cursor.count(2))])

    def contents(self) -> bytes:
        names = (utf("constant", constant) for constant in self.constants)
        return b"".join((utf("class", self.java_class), i32(len(self.constants)), *names))
