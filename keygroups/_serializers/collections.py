"""The serializers of lists, sets, maps and arrays of objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from keygroups import types as kt
from keygroups._serializers.base import (
    BASE,
    STATE,
    Composite,
    Read,
    Serializer,
    Write,
    key_type_of,
    writers,
)
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.data_output import utf
from keygroups._serializers.scalars import pack_int, read_count
from keygroups._values.checks import elements_of, expect, items_of
from keygroups.errors import InvalidValueError

_MOST_OF_A_HASH = 100  # values of one hash, each of which a set compares with the others


class ListSerializer(Composite):
    """A List: a count, then the elements."""

    name, snapshot, outer_versions = "LIST", f"{BASE}ListSerializerSnapshot", (1,)
    is_its_parts = True

    def __init__(self, element: Serializer) -> None:
        self.parts = (element,)
        self.key_type = key_type_of(kt.LIST, self.parts)
        super().__init__(element)

    def bind(self, reads: Sequence[Read]) -> None:
        [read], key_type = reads, self.key_type
        [write] = writers(self.parts, key_type)
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


class ArrayListSerializer(ListSerializer):
    """An ArrayList of Flink's own, with the bytes of a List."""

    snapshot = f"{STATE}ArrayListSerializerSnapshot"


class SetSerializer(Composite):
    """A Set: a count, then whether it is null and the value of each element."""

    name, snapshot, outer_versions = "SET", f"{BASE}SetSerializerSnapshot", (1,)
    is_its_parts = True

    def __init__(self, element: Serializer) -> None:
        self.parts = (element,)
        self.key_type = key_type_of(kt.SET, self.parts)
        super().__init__(element)

    def bind(self, reads: Sequence[Read]) -> None:
        [read], [element], name = reads, self.parts, str(self)
        [write] = writers(self.parts, self.key_type)
        is_by_content, is_null = is_equal_by_content(element), not element.none_is_value

        def read_set(data: bytes, pos: int) -> tuple[Any, int]:
            count, pos = read_count(data, pos)
            elements = []
            for _ in range(count):
                is_null, pos = data[pos], pos + 1
                element = None
                if not is_null:
                    element, pos = read(data, pos)
                elements.append(element)
            return as_set(elements), pos

        def write_set(values: Any) -> bytes:
            elements = elements_of(name, values)
            written = [
                b"\1" if one is None and is_null else b"\0" + write(one) for one in elements
            ]
            compared = written if is_by_content else [one for one in written if one == b"\1"]
            _check_distinct(name, "element", compared)
            if not isinstance(values, list):
                written.sort()  # The order of a set differs between runs of Python.
            return pack_int(len(written)) + b"".join(written)

        self.read, self.write = read_set, write_set


class MapSerializer(Composite):
    """A Map: a count, then key, whether the value is null, value."""

    name, snapshot, outer_versions, arity = "MAP", f"{BASE}MapSerializerSnapshot", (1,), 2
    is_its_parts = True

    def __init__(self, key: Serializer, value: Serializer) -> None:
        self.parts = (key, value)
        self.key_type = key_type_of(kt.MAP, self.parts)
        super().__init__(key, value)

    def bind(self, reads: Sequence[Read]) -> None:
        (read_key, read_value), (key_part, value_part), name = reads, self.parts, str(self)
        write_key, write_value = writers(self.parts, self.key_type)
        is_by_content, is_null = is_equal_by_content(key_part), not value_part.none_is_value

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

        def write_map(mapping: Any) -> bytes:
            keys, written = [], []
            for key, value in items_of(name, mapping):
                keys.append(write_key(key))
                if value is None and is_null:
                    written.append(b"\1")
                else:
                    written.append(b"\0" + write_value(value))
            if is_by_content:
                _check_distinct(name, "key", keys)
            items = (key + value for key, value in zip(keys, written))
            return pack_int(len(keys)) + b"".join(items)

        self.read, self.write = read_map, write_map


def is_in_order(serializer: Serializer) -> bool:
    """Return whether equal values have the same bytes; maps and sets are in Java's order."""
    if isinstance(serializer, (MapSerializer, SetSerializer)):
        return False
    return all(map(is_in_order, serializer.parts))


def is_equal_by_content(serializer: Serializer) -> bool:
    """Return whether two values that have the same bytes are equal in Java, as arrays are not."""
    if isinstance(serializer, Composite) and serializer.is_its_parts:
        return all(map(is_equal_by_content, serializer.parts))
    return serializer.key_type is not None


def _check_distinct(name: str, place: str, written: list[bytes]) -> None:
    """Raise for elements that are equal in Java: twice in a list, or NaNs, which differ here."""
    if len(set(written)) < len(written):
        raise InvalidValueError(f"a {name} must have each {place} once, got one twice")


def as_dict(items: list[tuple[Any, Any]]) -> Any:
    """Return a dict, or the list of pairs where keys are equal in Python or not hashable."""
    try:
        keys = _hashable([key for key, _ in items])
        mapping = dict(zip(keys, (value for _, value in items)))
    except TypeError:
        return items
    return mapping if len(mapping) == len(items) else items


def as_set(elements: list[Any]) -> Any:
    """Return a set, or the list of elements where some are equal in Python or not hashable."""
    try:
        members = set(_hashable(elements))
    except TypeError:
        return elements
    return members if len(members) == len(elements) else elements


def _hashable(values: list[Any]) -> list[Any]:
    """Return values with sets frozen, or raise TypeError where too many have one hash."""
    values = [frozenset(value) if type(value) is set else value for value in values]
    if len(values) > _MOST_OF_A_HASH:
        # An attacker can make such values, of BigIntegers for instance, among many harmless ones.
        hashes = [*map(hash, values)]
        surplus = len(hashes) - len(set(hashes))
        if surplus >= _MOST_OF_A_HASH and max(Counter(hashes).values()) > _MOST_OF_A_HASH:
            raise TypeError("many values of one hash")
    return values


class GenericArraySerializer(Composite):
    """An array of objects: a count, then whether it is there and the value of each element.

    `java_class` is that of the elements.
    """

    name, snapshot = "ARRAY", f"{BASE}GenericArraySerializerSnapshot"
    outer_versions = (1,)

    def __init__(self, java_class: str, element: Serializer) -> None:
        self.java_class = java_class
        self.parts = (element,)
        super().__init__(java_class, element)

    def bind(self, reads: Sequence[Read]) -> None:
        self.read, self.write = flagged_elements(self, *reads)

    @classmethod
    def read_outer(cls, cursor: Cursor, outer_version: int) -> str:
        return cursor.utf()

    @classmethod
    def made_of(cls, cursor: Cursor, nested: list[Serializer], outer: str) -> Serializer:
        return cls(outer, *nested)

    def outer(self) -> bytes:
        return utf("class", self.java_class)


def flagged_elements(serializer: Serializer, read: Read) -> tuple[Read, Write]:
    """Return reader and writer of a list: a count, then 0 for null or 1 and the element."""
    name, [element] = str(serializer), serializer.parts
    [write], is_null = writers(serializer.parts, None), not element.none_is_value

    def read_elements(data: bytes, pos: int) -> tuple[list[Any], int]:
        count, pos = read_count(data, pos)
        values = []
        for _ in range(count):
            is_there, pos = data[pos], pos + 1
            value = None
            if is_there:
                value, pos = read(data, pos)
            values.append(value)
        return values, pos

    def write_elements(values: Any) -> bytes:
        elements: Iterable[Any] = expect(name, values, list, "a list")
        written = [b"\0" if one is None and is_null else b"\1" + write(one) for one in elements]
        return pack_int(len(written)) + b"".join(written)

    return read_elements, write_elements
