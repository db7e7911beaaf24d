"""Writes Java object streams, by the Java Object Serialization Specification, chapter 6."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from support.bytes.savepoint_bytes import i64, utf

NULL = b"\x70"
END = b"\x78"


def stream(content: bytes) -> bytes:
    return b"\xac\xed\0\5" + content


def text(value: str) -> bytes:
    return b"\x74" + utf(value)


def class_of(
    name: str,
    fields: Sequence[tuple[str, str]] = (),
    *,
    flags: int = 2,
    parent: bytes = NULL,
    annotation: bytes = b"",
) -> bytes:
    """A class: fields by type code and name; flags 2 is serializable, 1 that it writes more."""
    parts = [b"\x72", utf(name), i64(1), bytes([flags]), len(fields).to_bytes(2, "big")]
    for code, field in fields:
        parts.append(code.encode() + utf(field))
        if code in "[L":
            parts.append(text("Ljava/lang/Object;"))
    return b"".join([*parts, annotation, END, parent])


def instance(
    name: str,
    fields: Sequence[tuple[str, str, bytes]] = (),
    *,
    flags: int = 2,
    parent: bytes = NULL,
    before: bytes = b"",
    after: bytes = b"",
) -> bytes:
    """An object: fields by type code, name and value; what its parents wrote comes before."""
    described = class_of(name, [one[:2] for one in fields], flags=flags, parent=parent)
    return b"\x73" + described + before + b"".join(value for _, _, value in fields) + after


def enum(name: str, constant: str) -> bytes:
    parent = class_of("java.lang.Enum", flags=0x12)
    return b"\x7e" + class_of(name, flags=0x12, parent=parent) + text(constant)


def logical_type(root: str, *numbers: tuple[str, int], nullable: bool = True) -> bytes:
    """A logical type of Flink's, its numbers (length, precision, scale) as ints."""
    fields = [("I", name, value.to_bytes(4, "big", signed=True)) for name, value in numbers]
    kind = enum("org.apache.flink.table.types.logical.LogicalTypeRoot", root)
    fields += [("Z", "isNullable", bytes([nullable])), ("L", "typeRoot", kind)]
    return instance("org.apache.flink.table.types.logical.SomeType", fields)


def reference(handle: int) -> bytes:
    """What has been written before: classes, texts, objects and constants count from 0."""
    return b"\x71" + (0x7E0000 + handle).to_bytes(4, "big")


class TypeGraph:
    """A logical type as a graph of lists: a list that is there again is written as a reference.

    `["INTEGER"]` and the like; `["ARRAY", type]`; `["ROW", [type, ...]]`, where the inner list is
    a java.util.ArrayList. What a ROW has after it is written in the place of an element type,
    where no reader looks.
    """

    def __init__(self, root: list[Any]) -> None:
        self._handles: dict[int | str, int] = {}
        self._count = 0
        self.data = stream(self._type(root))

    def _handle(self, item: int | str) -> None:
        self._handles[item] = self._count
        self._count += 1

    def _class(self, name: str, *fields: str, flags: int = 2) -> bytes:
        if name in self._handles:
            return reference(self._handles[name])
        self._handle(name)
        self._count += len(fields)  # for the text that names the class of each
        return class_of(name, [("L", field) for field in fields], flags=flags)

    def _type(self, item: list[Any]) -> bytes:
        if id(item) in self._handles:
            return reference(self._handles[id(item)])
        start = b"\x73" + self._class("T", "elementType", "fields", "typeRoot")
        self._handle(id(item))
        element = (
            self._type(item[1])
            if item[0] == "ARRAY"
            else self._list(item[2])
            if item[2:]
            else NULL
        )
        members = self._list(item[1]) if item[0] == "ROW" else NULL
        return start + element + members + self._root(item[0])

    def _list(self, members: list[Any]) -> bytes:
        if id(members) in self._handles:
            return reference(self._handles[id(members)])
        data = b"\x73" + self._class("java.util.ArrayList", flags=3)
        self._handle(id(members))
        data += b"\x77\4" + len(members).to_bytes(4, "big")
        for member in members:
            data += b"\x73" + self._class("F", "type")
            self._count += 1
            data += self._type(member)
        return data + END

    def _root(self, constant: str) -> bytes:
        if constant in self._handles:
            return reference(self._handles[constant])
        data = b"\x7e" + self._class("R")
        self._handle(constant)
        self._count += 1  # for the text of its name
        return data + text(constant)
