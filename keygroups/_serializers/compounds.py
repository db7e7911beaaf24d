"""The serializers that are made of others: tuples, rows, lists, maps, POJOs and the like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from keygroups import types as kt
from keygroups._serializers.scalars import (
    TRUNCATED,
    Read,
    Serializer,
    UnreadableError,
    maker,
    pack_int,
    read_bytes,
    read_count,
    read_int,
    read_long,
    write_bytes,
)
from keygroups._serializers.sql_rows import row_reader
from keygroups._serializers.value_checks import check_value
from keygroups._values.checks import expect, expect_fields
from keygroups._values.rows import ROW_KINDS, Row, TtlValue, row_of_kind
from keygroups.binary_row import value_row
from keygroups.errors import InvalidValueError, KeyGroupsError, UnsupportedKeyTypeError
from keygroups.logical_types import LogicalType

NOT_NULL = {  # whose serializers have no way to write a null; those of rows skip one
    *("BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "CHAR"),
    *("TUPLE", "ROW", "LIST", "SQL_ROW"),
}
_SIGN = 2**63


def _readers(parts: Sequence[Serializer]) -> list[Read] | None:
    reads = [part.read for part in parts if part.read is not None]
    return reads if len(reads) == len(parts) else None


def _key_type(make: Callable[..., kt.KeyType], parts: Sequence[Serializer]) -> kt.KeyType | None:
    key_types = [part.key_type for part in parts]
    if None in key_types:
        return None
    try:
        return make(*key_types)
    except KeyGroupsError:  # more fields than Flink has, whole keys as parts
        return None


def checked_write(name: str, serializer: Serializer, value: Any) -> bytes:
    """Return the bytes of a value after checking that it is one of the type.

    Raises InvalidTypeError, InvalidValueError, UnsupportedKeyTypeError where only Flink writes it;
    they say `name`, which is the argument that the value is.
    """
    try:
        return _checked_write(serializer, value)
    except KeyGroupsError as error:
        text = str(error).replace("key of type", "value of type", 1)  # in the words of hashing
        raise type(error)(f"{name}: {text}") from None


def _checked_write(serializer: Serializer, value: Any) -> bytes:
    if serializer.key_type is not None:
        check_value(value, serializer.key_type)
    return _write(serializer, value)


def _write(serializer: Serializer, value: Any) -> bytes:
    if serializer.write is None:
        raise UnsupportedKeyTypeError(f"a value of {serializer} cannot be written here")
    if value is None and serializer.name in NOT_NULL:
        raise InvalidValueError(f"a {serializer} must not be None: its serializer writes no null")
    return serializer.write(value)


def _part_writer(key_type: kt.KeyType | None) -> Callable[[Serializer, Any], bytes]:
    """Return what writes a part: with a check where there is no key type to check the whole."""
    return _checked_write if key_type is None else _write


@maker
def tuple_of(parts: Sequence[Serializer], java_class: str = "") -> Serializer:
    """Return the serializer of a tuple: one field after the other.

    `java_class` is that of a tuple which is none of Flink's own, and may hash otherwise.
    """
    reads = _readers(parts)
    if reads is None:
        return Serializer("TUPLE", parts=tuple(parts), java_class=java_class)
    sizes = [part.size for part in parts]
    key_type = None if java_class else _key_type(kt.TUPLE, parts)
    name = f"TUPLE({', '.join(map(str, parts))})"
    write = _part_writer(key_type)

    def read_tuple(data: bytes, pos: int) -> tuple[tuple[Any, ...], int]:
        values = []
        for read in reads:
            value, pos = read(data, pos)
            values.append(value)
        return tuple(values), pos

    def write_tuple(values: tuple[Any, ...]) -> bytes:
        if key_type is None:
            expect_fields(name, len(parts), values)
        return b"".join(map(write, parts, values))

    return Serializer(
        "TUPLE",
        read_tuple,
        write_tuple,
        None if None in sizes else sum(filter(None, sizes)),
        tuple(parts),
        key_type,
        java_class=java_class,
    )


@maker
def row_of(parts: Sequence[Serializer], has_row_kind: bool = True) -> Serializer:
    """Return the serializer of a Row: a bit for each null, then the other fields."""
    reads = _readers(parts)
    if reads is None:
        return Serializer("ROW", parts=tuple(parts))
    kind_bits = 2 if has_row_kind else 0
    bits = kind_bits + len(parts)
    mask_size = (bits + 7) // 8
    key_type = _key_type(kt.ROW, parts)
    name = f"ROW({', '.join(map(str, parts))})"
    write = _part_writer(key_type)
    places = [1 << 8 * mask_size - 1 - bit for bit in range(kind_bits, bits)]

    def read_row(data: bytes, pos: int) -> tuple[Row, int]:
        if pos + mask_size > len(data):
            raise IndexError("too few bytes")
        mask = int.from_bytes(data[pos : pos + mask_size], "big")
        kind = data[pos] >> 7 | data[pos] >> 5 & 2 if kind_bits else 0
        pos += mask_size
        values: list[Any] = []
        for place, read in zip(places, reads):
            value = None
            if not mask & place:
                value, pos = read(data, pos)
            values.append(value)
        return row_of_kind(values, kind), pos

    def write_row(values: tuple[Any, ...]) -> bytes:
        if key_type is None:
            expect_fields(name, len(parts), values)
        kind = ROW_KINDS.index(values.row_kind) if isinstance(values, Row) else 0
        mask = ((kind & 1) << 1 | kind >> 1) << 8 * mask_size - 2 if kind_bits else 0
        written = []
        for place, part, value in zip(places, parts, values):
            if value is None:
                mask |= place
            else:
                written.append(write(part, value))
        return mask.to_bytes(mask_size, "big") + b"".join(written)

    return Serializer(
        "ROW",
        read_row,
        write_row,
        parts=tuple(parts),
        key_type=key_type,
    )


@maker
def list_of(element: Serializer) -> Serializer:
    """Return the serializer of a List: a count, then the elements."""
    read = element.read
    if read is None:
        return Serializer("LIST", parts=(element,))
    key_type = _key_type(kt.LIST, [element])
    write = _part_writer(key_type)

    def write_list(values: list[Any]) -> bytes:
        if key_type is None:
            expect(f"LIST({element})", values, list, "a list")
        return pack_int(len(values)) + b"".join(write(element, value) for value in values)

    def read_list(data: bytes, pos: int) -> tuple[list[Any], int]:
        count, pos = read_count(data, pos)
        values = []
        for _ in range(count):
            value, pos = read(data, pos)
            values.append(value)
        return values, pos

    return Serializer(
        "LIST",
        read_list,
        write_list,
        parts=(element,),
        key_type=key_type,
    )


@maker
def map_of(key: Serializer, value: Serializer) -> Serializer:
    """Return the serializer of a Map: a count, then key, whether the value is null, value."""
    read_key, read_value = key.read, value.read
    if read_key is None or read_value is None:
        return Serializer("MAP", parts=(key, value))

    def read_map(data: bytes, pos: int) -> tuple[Any, int]:
        count, pos = read_count(data, pos)
        items = []
        for _ in range(count):
            found, pos = read_key(data, pos)
            is_null, pos = data[pos], pos + 1
            inner = None
            if not is_null:
                inner, pos = read_value(data, pos)
            items.append((found, inner))
        return as_dict(items), pos

    return Serializer(
        "MAP",
        read_map,
        parts=(key, value),
        key_type=_key_type(kt.MAP, [key, value]),
    )


def as_dict(items: list[tuple[Any, Any]]) -> Any:
    """Return a dict, or the pairs where Python takes keys for one, or cannot hash them."""
    try:
        found = dict(items)
    except TypeError:
        return items
    return found if len(found) == len(items) else items


@maker
def sql_row(fields: Sequence[LogicalType]) -> Serializer:
    """Return the serializer of a SQL row: how many bytes, then a BinaryRowData."""
    read_fields = row_reader(fields)
    key_type = None
    with suppress(KeyGroupsError):  # of a type that makes no key, such as RAW
        key_type = kt.SQL_ROW(*map(str, fields))

    def read_sql_row(data: bytes, pos: int) -> tuple[Row, int]:
        row, pos = read_bytes(data, pos)
        try:
            return read_fields(row), pos
        except TRUNCATED:  # more bytes after the row would not help
            raise ValueError(f"{len(row)} bytes are no row of {len(fields)} fields") from None

    def write_sql_row(values: Any) -> bytes:
        return write_bytes(value_row(values, key_type))  # type: ignore[arg-type]  # see below

    return Serializer(
        "SQL_ROW",
        read_sql_row,
        write_sql_row if key_type else None,
        key_type=key_type,
        fields=tuple(fields),
    )


@maker
def pyflink_of(key_type: kt.PYFLINK, element: Serializer) -> Serializer:
    """Return the serializer of a key that PyFlink puts in a Row by itself."""
    row = row_of([element])
    read = row.read

    def read_only_field(data: bytes, pos: int) -> tuple[Any, int]:
        fields, pos = read(data, pos)  # type: ignore[misc]  # key types have serializers that read
        return fields[0], pos

    return Serializer(
        "PYFLINK", read_only_field, lambda key: _write(row, (key,)), None, (element,), key_type
    )


@maker
def ttl_of(value: Serializer) -> Serializer:
    """Return the serializer of a value with the time of its last access before it."""
    read = value.read
    if read is None:
        return Serializer("TTL", parts=(value,))

    def read_ttl(data: bytes, pos: int) -> tuple[TtlValue, int]:
        last_access, pos = read_long(data, pos)
        inner, pos = read(data, pos)
        return TtlValue(last_access, inner), pos

    return Serializer("TTL", read_ttl, parts=(value,))


@maker
def timer_of(key: Serializer, namespace: Serializer) -> Serializer:
    """Return the serializer of a timer: its time with the sign bit flipped, key, namespace."""
    read_key, read_namespace = key.read, namespace.read
    if read_key is None or read_namespace is None:
        return Serializer("TIMER", parts=(key, namespace))

    def read_timer(data: bytes, pos: int) -> tuple[tuple[int, Any, Any], int]:
        flipped, pos = read_long(data, pos)
        found, pos = read_key(data, pos)
        window, pos = read_namespace(data, pos)
        return (flipped ^ -_SIGN, found, window), pos

    return Serializer("TIMER", read_timer, parts=(key, namespace))


@maker
def pojo_of(java_class: str, names: Sequence[str], parts: Sequence[Serializer]) -> Serializer:
    """Return the serializer of a POJO: flags, then whether null and the value of each field."""
    reads = _readers(parts)
    if reads is None:
        return Serializer("POJO", parts=tuple(parts), names=tuple(names), java_class=java_class)

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

    return Serializer(
        "POJO",
        read_pojo,
        parts=tuple(parts),
        names=tuple(names),
        java_class=java_class,
    )


@maker
def enum_of(java_class: str, constants: Sequence[str]) -> Serializer:
    """Return the serializer of an enum: the index of the constant, whose name is the value."""

    def read_enum(data: bytes, pos: int) -> tuple[str, int]:
        index, pos = read_int(data, pos)
        if not 0 <= index < len(constants):
            raise ValueError(f"constant {index} of the {len(constants)} of {java_class}")
        return constants[index], pos

    return Serializer("ENUM", read_enum, size=4, java_class=java_class)
