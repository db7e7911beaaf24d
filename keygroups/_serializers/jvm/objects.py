"""Java's object streams, read as data: no class in them is looked up, loaded or instantiated.

Flink writes logical types and the properties of a checkpoint in them. The grammar is that of the
Java Object Serialization Specification, chapter 6, but for exceptions and proxies.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

from keygroups._serializers.data_input import Cursor

_MAGIC = 0xACED
_VERSION = 5
_NULL, _REFERENCE, _CLASSDESC, _OBJECT, _STRING, _ARRAY, _CLASS = range(0x70, 0x77)
_BLOCKDATA, _ENDBLOCKDATA, _RESET, _BLOCKDATALONG, _EXCEPTION = range(0x77, 0x7C)
_LONGSTRING, _PROXYCLASSDESC, _ENUM = range(0x7C, 0x7F)
_FIRST_HANDLE = 0x7E0000
_WRITE_METHOD, _SERIALIZABLE = 1, 2
_MAX_DEPTH = 100
_PRIMITIVES = {
    **{"B": ">b", "C": ">H", "D": ">d", "F": ">f"},
    **{"I": ">i", "J": ">q", "S": ">h", "Z": ">?"},
}


@dataclass
class JavaObject:
    """An object: its class, its fields, and the data that its class wrote besides them."""

    java_class: str
    fields: dict[str, Any] = field(default_factory=dict)
    written: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class JavaEnum:
    """An enum's constant."""

    java_class: str
    constant: str


@dataclass
class _ClassDescription:
    name: str
    flags: int = 0
    fields: tuple[tuple[str, str], ...] = ()  # pairs of type code and name
    parent: _ClassDescription | None = None


def read_java_object(cursor: Cursor) -> Any:
    """Read a stream with one object: JavaObject, JavaEnum, str, list or None."""
    if (cursor.u16(), cursor.u16()) != (_MAGIC, _VERSION):
        cursor.pos -= 4
        raise cursor.error("a Java object stream was to follow")
    return _Stream(cursor).content(0)


def java_object_end(data: bytes, pos: int) -> int:
    """Return the end of a stream with one object, for bytes that may be too few."""
    _, end = read_java_value(data, pos)
    return end


def read_java_value(data: bytes, pos: int) -> tuple[Any, int]:
    """Read a stream with one object from bytes that may be too few, which is an IndexError."""
    cursor = _ValueCursor(data, "a Java object")
    cursor.pos = pos
    return read_java_object(cursor), cursor.pos


class _ValueCursor(Cursor):
    """A cursor in the bytes of a value, whose end may not be fetched yet: it is an IndexError."""

    def skip(self, count: int) -> int:
        if count > self.left:
            raise IndexError("too few bytes")
        return super().skip(count)

    def count(self, size: int = 1) -> int:
        count = self.i32()
        if count * size > self.left:
            raise IndexError("too few bytes")
        self.pos -= 4
        return super().count(size)


class _Stream:
    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._handles: list[Any] = []

    def content(self, depth: int) -> Any:
        cursor = self._cursor
        if depth > _MAX_DEPTH:
            raise cursor.error(f"Java objects nest more than {_MAX_DEPTH} deep")
        code = cursor.u8()
        if code == _NULL:
            return None
        if code == _REFERENCE:
            return self._reference()
        if code == _CLASSDESC:
            return self._new_class_description(depth)
        if code == _OBJECT:
            return self._object(depth)
        if code in (_STRING, _LONGSTRING):
            length = cursor.u16() if code == _STRING else cursor.i64()
            return self._keep(cursor.decode(cursor.take(length)))
        if code == _ARRAY:
            return self._array(depth)
        if code == _CLASS:
            return self._keep(self._class_description(depth))
        if code == _ENUM:
            return self._enum(depth)
        cursor.pos -= 1
        raise cursor.error(f"type code {code:#x} of a Java object stream is not known")

    def _keep(self, value: Any) -> Any:
        self._handles.append(value)
        return value

    def _reference(self) -> Any:
        index = self._cursor.i32() - _FIRST_HANDLE
        if not 0 <= index < len(self._handles):
            raise self._cursor.error(f"no Java object has the handle {index}")
        return self._handles[index]

    def _class_description(self, depth: int) -> _ClassDescription:
        description = self.content(depth + 1)
        if not isinstance(description, _ClassDescription):
            raise self._cursor.error("the description of a Java class was to come")
        return description

    def _new_class_description(self, depth: int) -> _ClassDescription:
        cursor = self._cursor
        description = _ClassDescription(cursor.utf())
        self._handles.append(description)
        cursor.i64()  # the serialVersionUID
        description.flags = cursor.u8()
        fields = []
        for _ in range(cursor.u16()):
            code, name = chr(cursor.u8()), cursor.utf()
            if code in "[L":
                self.content(depth + 1)  # the name of the field's class
            elif code not in _PRIMITIVES:
                raise cursor.error(f"a Java field of type {code!r}")
            fields.append((code, name))
        description.fields = tuple(fields)
        self._annotation(depth)
        parent = self.content(depth + 1)
        if parent is not None and not isinstance(parent, _ClassDescription):
            raise cursor.error("the description of a Java class was to come")
        description.parent = parent
        return description

    def _object(self, depth: int) -> JavaObject:
        description = self._class_description(depth)
        made: JavaObject = self._keep(JavaObject(description.name))
        for level in self._lineage(description):
            if not level.flags & _SERIALIZABLE:
                raise self._cursor.error(f"Java class {level.name} writes itself in its own way")
            for code, name in level.fields:
                made.fields[name] = self._value(code, depth)
            if level.flags & _WRITE_METHOD:
                made.written += self._annotation(depth)
        return made

    def _lineage(self, description: _ClassDescription) -> list[_ClassDescription]:
        """Return a class and those above it, from the top."""
        lineage = [description]
        while (parent := lineage[-1].parent) is not None:
            if len(lineage) > _MAX_DEPTH:  # A forged stream may put a class above itself.
                raise self._cursor.error(f"Java class {description.name} has no top")
            lineage.append(parent)
        return lineage[::-1]

    def _annotation(self, depth: int) -> list[Any]:
        cursor, written = self._cursor, []
        while (code := cursor.u8()) != _ENDBLOCKDATA:
            if code == _BLOCKDATA:
                written.append(cursor.take(cursor.u8()))
            elif code == _BLOCKDATALONG:
                written.append(cursor.take(cursor.i32()))
            else:
                cursor.pos -= 1
                written.append(self.content(depth + 1))
        return written

    def _array(self, depth: int) -> list[Any]:
        code = self._class_description(depth).name[1:]
        values: list[Any] = self._keep([])
        for _ in range(self._cursor.count()):
            values.append(self._value(code, depth))
        return values

    def _enum(self, depth: int) -> JavaEnum:
        description = self._class_description(depth)
        place = len(self._handles)
        self._keep(None)
        constant = self.content(depth + 1)
        if not isinstance(constant, str):
            raise self._cursor.error(f"a constant of {description.name} was to come")
        self._handles[place] = JavaEnum(description.name, constant)
        return self._handles[place]  # type: ignore[no-any-return]  # The line above sets it.

    def _value(self, code: str, depth: int) -> Any:
        packed = _PRIMITIVES.get(code)
        if packed is None:
            return self.content(depth + 1)
        (value,) = struct.unpack(packed, self._cursor.take(struct.calcsize(packed)))
        return value
