"""The serializers of Flink's table runtime: lists, maps, views, windows and multisets of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from keygroups._serializers.base import (
    TABLE,
    Composite,
    Read,
    Serializer,
    check_and_write,
    class_of,
    nested_contents,
    read_nested,
    read_versioned_snapshot,
)
from keygroups._serializers.collections import as_dict
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.data_output import i32
from keygroups._serializers.jvm.objects import JavaEnum, JavaObject, read_java_object
from keygroups._serializers.records import LONG as LONG_FIELD
from keygroups._serializers.records import part, record
from keygroups._serializers.scalars import pack_int, read_count, read_int
from keygroups._serializers.sql.rows import WithStreams, read_stream
from keygroups._serializers.sql.values import map_items
from keygroups._values import checks
from keygroups._values.rows import Row
from keygroups._values.sql import Node, WindowKey

_VIEWS = "org.apache.flink.table.dataview."
_MULTISETS = "org.apache.flink.table.runtime.sequencedmultisetstate.linked."

Writes = Callable[[Any], bytes]


class LinkedListSerializer(Composite):
    """A list: a count, a mask of nulls if it has one, then the elements that are not null.

    In outer version 1 no list has a mask, in version 2 each has, and later ones say it. With a
    mask the INTs 7 and null are 00000002 40 00000007.
    """

    name, snapshot, outer_versions = "LINKED_LIST", class_of(TABLE, "LinkedList"), (1, 2, 3)

    def __init__(self, element: Serializer, has_null_mask: bool = True) -> None:
        self.parts = (element,)
        self._has_null_mask = has_null_mask
        super().__init__(element, has_null_mask)

    def bind(self, reads: Sequence[Read]) -> None:
        [read], [element], name = reads, self.parts, str(self)
        has_null_mask = self._has_null_mask

        def read_list(data: bytes, pos: int) -> tuple[list[Any], int]:
            if has_null_mask:
                count, pos = read_int(data, pos)
                nulls, pos = _mask(data, pos, count)
            else:
                count, pos = read_count(data, pos)
                nulls = b""
            elements = []
            for index in range(count):
                value = None
                if not (nulls and nulls[index // 8] & 0x80 >> index % 8):
                    value, pos = read(data, pos)
                elements.append(value)
            return elements, pos

        def write_list(values: object) -> bytes:
            elements = checks.expect(name, values, list, "a list")
            mask = bytearray((len(elements) + 7) // 8 if has_null_mask else 0)
            written = []
            for index, value in enumerate(elements):
                if value is None and has_null_mask:
                    mask[index // 8] |= 0x80 >> index % 8
                else:
                    written.append(check_and_write(element, value))
            return pack_int(len(elements)) + bytes(mask) + b"".join(written)

        self.read, self.write = read_list, write_list

    @classmethod
    def read_outer(cls, cursor: Cursor, outer_version: int) -> bool:
        return outer_version == 2 or (outer_version > 2 and cursor.bool())

    @classmethod
    def made_of(cls, cursor: Cursor, nested: list[Serializer], outer: bool) -> Serializer:
        [element] = nested
        return cls(element, outer)

    def outer(self) -> bytes:
        return bytes([self._has_null_mask])


def _mask(data: bytes, pos: int, count: int) -> tuple[bytes, int]:
    if count < 0:
        raise ValueError(f"a count of {count}")
    end = pos + (count + 7) // 8
    if end > len(data):
        raise IndexError("too few bytes")
    return data[pos:end], end


class Items(Serializer):
    """A map: a count, then of each item the key, and 01 for a null or 00 and the value.

    With `_takes_null_keys` keys are written as values are.
    """

    _takes_null_keys = False

    def bind(self, reads: Sequence[Read]) -> None:
        read_key, read_value = reads
        key_part, value_part = self.parts
        name, takes_null_keys = str(self), self._takes_null_keys
        if takes_null_keys:
            read_key = partial(_read_nullable, read_key)
            write_key: Writes = partial(_write_nullable, key_part)
        else:
            write_key = partial(check_and_write, key_part)

        def read_map(data: bytes, pos: int) -> tuple[Any, int]:
            count, pos = read_count(data, pos)
            items = []
            for _ in range(count):
                key, pos = read_key(data, pos)
                value, pos = _read_nullable(read_value, data, pos)
                items.append((key, value))
            return as_dict(items), pos

        def write_map(values: object) -> bytes:
            items = map_items(name, values)
            written = [pack_int(len(items))]
            for key, value in items:
                written += write_key(key), _write_nullable(value_part, value)
            return b"".join(written)

        self.read, self.write = read_map, write_map


def _read_nullable(read: Read, data: bytes, pos: int) -> tuple[Any, int]:
    is_null, pos = data[pos], pos + 1
    return (None, pos) if is_null else read(data, pos)


def _write_nullable(serializer: Serializer, value: Any) -> bytes:
    return b"\1" if value is None else b"\0" + check_and_write(serializer, value)


class SortedMapSerializer(WithStreams, Items):
    """A sorted map, in the order of a comparator of the class `java_class`.

    Two are equal if keys, values and the class of the comparator are; the comparator's contents,
    such as code that Flink generated, do not count.
    """

    name, snapshot, versions = "SORTED_MAP", f"{TABLE}SortedMapSerializerSnapshot", (3,)

    def __init__(
        self,
        comparator: str,
        key: Serializer,
        value: Serializer,
        streams: tuple[bytes, ...] | None = None,
    ) -> None:
        self.java_class = comparator
        self.parts = (key, value)
        super().__init__(comparator, key, value, streams)

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        comparator, stream = read_stream(cursor, read_java_object)
        if not isinstance(comparator, (JavaObject, JavaEnum)):
            raise cursor.error("the comparator of a sorted map is no object")
        nested = read_nested(cursor, depth)
        cursor.expect("number of nested serializers", len(nested), 2)
        key, value = nested
        return cls(comparator.java_class, key, value, (stream,))

    def contents(self) -> bytes:
        return self.written_streams() + nested_contents(self.parts)


class NullAwareMapSerializer(Items, Composite):
    """A map that may have null keys."""

    name, snapshot = "NULL_AWARE_MAP", f"{_VIEWS}NullAwareMapSerializerSnapshot"
    outer_versions, arity = (1,), 2
    _takes_null_keys = True


class ListViewSerializer(Composite):
    """A ListView, written as the list in it."""

    name, snapshot, outer_versions = "LIST_VIEW", f"{_VIEWS}ListViewSerializerSnapshot", (1,)

    def bind(self, reads: Sequence[Read]) -> None:
        [self.read], [viewed] = reads, self.parts
        self.write = partial(check_and_write, viewed)


class MapViewSerializer(ListViewSerializer):
    """A MapView, written as the map in it."""

    name, snapshot = "MAP_VIEW", f"{_VIEWS}MapViewSerializerSnapshot"


class WindowKeySerializer(Composite):
    """A window and a key: the window's time, then the row."""

    name, snapshot, outer_versions = "WINDOW_KEY", class_of(TABLE, "WindowKey"), (1,)

    def bind(self, reads: Sequence[Read]) -> None:
        [row] = self.parts
        self.read, self.write = record(WindowKey, LONG_FIELD, part(row)).named(self.name)


class NodeSerializer(Composite):
    """A row in a multiset: the row, its number, those of its neighbours, and a timestamp."""

    name, snapshot = "MULTISET_NODE", class_of(_MULTISETS, "Node")
    outer_versions, arity = (0,), len(Node._fields)

    def bind(self, reads: Sequence[Read]) -> None:
        self.read, self.write = record(Node, *map(part, self.parts)).named(self.name)


class RowDataKeySerializer(WithStreams):
    """A row by which a multiset finds its rows; it is read as one of kind +I.

    Two are equal if the row's serializers are; the code that Flink generated to compare rows does
    not count.

    Flink: RowDataKey, which is made of rows of kind +I.
    """

    name, snapshot, versions = "MULTISET_KEY", f"{_MULTISETS}RowDataKeySerializerSnapshot", (0,)

    def __init__(self, row: Serializer, streams: tuple[bytes, ...] | None = None) -> None:
        self.parts = (row,)
        super().__init__(row, streams)

    def bind(self, reads: Sequence[Read]) -> None:
        [read], [row] = reads, self.parts

        def read_key(data: bytes, pos: int) -> tuple[Row, int]:
            key, pos = read(data, pos)
            return Row(tuple(key)), pos

        self.read = read_key
        self.write = partial(check_and_write, row)

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        generated = [cursor.take(cursor.i32()) for _ in range(2)]
        row = read_versioned_snapshot(cursor, depth + 1)
        return cls(row, tuple(i32(len(code)) + code for code in generated))

    def contents(self) -> bytes:
        [row] = self.parts
        return self.written_streams() + row.versioned_snapshot()
