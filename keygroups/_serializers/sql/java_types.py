"""Logical types of Flink SQL as Java objects, which serializers keep in their snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from keygroups._checks import show
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.data_output import i32, i64, u16, utf
from keygroups._serializers.jvm.objects import JavaEnum, JavaObject, read_java_object
from keygroups.errors import UnsupportedKeyTypeError
from keygroups.logical_types import LogicalType

# By LogicalTypeRoot: our name of the type, and the fields of the Java object that are its numbers.
_ROOTS = {
    "CHAR": ("CHAR", "length"),
    "VARCHAR": ("VARCHAR", "length"),
    "BOOLEAN": ("BOOLEAN",),
    "BINARY": ("BINARY", "length"),
    "VARBINARY": ("VARBINARY", "length"),
    "DECIMAL": ("DECIMAL", "precision", "scale"),
    "TINYINT": ("TINYINT",),
    "SMALLINT": ("SMALLINT",),
    "INTEGER": ("INT",),
    "BIGINT": ("BIGINT",),
    "FLOAT": ("FLOAT",),
    "DOUBLE": ("DOUBLE",),
    "DATE": ("DATE",),
    "TIME_WITHOUT_TIME_ZONE": ("TIME", "precision"),
    "TIMESTAMP_WITHOUT_TIME_ZONE": ("TIMESTAMP", "precision"),
    "TIMESTAMP_WITH_LOCAL_TIME_ZONE": ("TIMESTAMP_LTZ", "precision"),
    "INTERVAL_YEAR_MONTH": ("INTERVAL_YEAR_MONTH",),
    "INTERVAL_DAY_TIME": ("INTERVAL_DAY_TIME",),
    "ARRAY": ("ARRAY",),
    "ROW": ("ROW",),
    "STRUCTURED_TYPE": ("ROW",),  # Its values have the bytes of rows.
    "MAP": ("MAP",),
    "MULTISET": ("MULTISET",),
    "RAW": ("RAW",),
    "VARIANT": ("VARIANT",),
    "BITMAP": ("BITMAP",),
}


# The fields of the Java object that are types.
_INNER = {
    "ARRAY": ("elementType",),
    "MULTISET": ("elementType",),
    "MAP": ("keyType", "valueType"),
}

# The least and the most of a number, as the classes of Flink's logical types check it.
_BOUNDS = {
    ("DECIMAL", "precision"): (1, 38),
    **{(name, "precision"): (0, 9) for name in ("TIME", "TIMESTAMP", "TIMESTAMP_LTZ")},
}
_MAX_DEPTH = 100  # levels of types, as in the text of a type
_MAX_WRAPPERS = 10  # lists around a list of fields; the JDK itself nests two
_NAMES = 64  # characters in names of fields that count as one type


_LOGICAL = "org.apache.flink.table.types.logical."
_NULL, _REFERENCE, _CLASS, _OBJECT, _STRING = b"\x70", b"\x71", b"\x72", b"\x73", b"\x74"
_BLOCK, _END, _CONSTANT = b"\x77", b"\x78", b"\x7e"
_FIRST_HANDLE = 0x7E0000
# The flags of a class, which tell the format of its objects.
_SERIALIZABLE, _WRITE_METHOD, _ENUM = b"\2", b"\3", b"\x12"
# The classes of the types that are written, by our name. Flink's own names are in `_ROOTS`.
_CLASSES = {
    "CHAR": "CharType",
    "VARCHAR": "VarCharType",
    "BOOLEAN": "BooleanType",
    "BINARY": "BinaryType",
    "VARBINARY": "VarBinaryType",
    "DECIMAL": "DecimalType",
    "TINYINT": "TinyIntType",
    "SMALLINT": "SmallIntType",
    "INT": "IntType",
    "BIGINT": "BigIntType",
    "FLOAT": "FloatType",
    "DOUBLE": "DoubleType",
    "DATE": "DateType",
    "TIME": "TimeType",
    "TIMESTAMP": "TimestampType",
    "TIMESTAMP_LTZ": "LocalZonedTimestampType",
    "ROW": "RowType",
}
_JavaClass = tuple[str, int, bytes, "Sequence[tuple[bytes, str, str]]"]
"""A class of Java: name, serialVersionUID, flags, and the type code, name and class of fields."""
_JAVA_ENUM: _JavaClass = ("java.lang.Enum", 0, _ENUM, ())
_ARRAY_LIST: _JavaClass = (
    "java.util.ArrayList",
    0x7881D21D99C7619D,
    _WRITE_METHOD,
    [(b"I", "size", "")],
)
_UNMODIFIABLE_LIST: tuple[_JavaClass, ...] = (
    (
        "java.util.Collections$UnmodifiableList",
        -0x3F0DACE4A1371F0,
        _SERIALIZABLE,
        [(b"L", "list", "java.util.List")],
    ),
    (
        "java.util.Collections$UnmodifiableCollection",
        0x19420080CB5EF71E,
        _SERIALIZABLE,
        [(b"L", "c", "java.util.Collection")],
    ),
)
_ROW_FIELD: _JavaClass = (
    f"{_LOGICAL}RowType$RowField",
    1,
    _SERIALIZABLE,
    [
        (b"L", "description", "java.lang.String"),
        (b"L", "name", "java.lang.String"),
        (b"L", "type", f"{_LOGICAL}LogicalType"),
    ],
)


def write_logical_type(field: LogicalType) -> bytes | None:
    """Return the stream of Flink's Java object for a logical type, None for an unsupported one.

    Types with an ARRAY or a MAP are not supported: their snapshots have serializers in them too,
    which only Flink writes. Raises UnsupportedKeyTypeError for a ROW with fields without names.

    The bytes are the same in Flink 1.14 to 2.3.
    """
    if any(part.name not in _CLASSES for part in field.walk()):
        return None
    return b"\xac\xed\0\5" + _TypeWriter().type_object(field)


class _TypeWriter:
    """A writer of one object stream, in which handles refer to whatever was written before.

    Handles count classes, objects, constants and texts in the order in which they start. Classes,
    constants and the texts that name the classes of fields are one and the same in Java.
    """

    def __init__(self) -> None:
        self._handles: dict[str, int] = {}
        self._count = 0

    def type_object(self, field: LogicalType) -> bytes:
        """Return the object of a type: the fields of its superclass, then its own."""
        root, numbers = next(
            (root, numbers) for root, (name, *numbers) in _ROOTS.items() if name == field.name
        )
        fields = [(b"I", number, "") for number in numbers]
        if field.name == "ROW":
            fields.append((b"L", "fields", "java.util.List"))
        elif field.name.startswith("TIMESTAMP"):
            fields.append((b"L", "kind", f"{_LOGICAL}TimestampKind"))
        inherited = [(b"Z", "isNullable", ""), (b"L", "typeRoot", f"{_LOGICAL}LogicalTypeRoot")]
        written = [
            self._object(
                (_LOGICAL + _CLASSES[field.name], 1, _SERIALIZABLE, fields),
                (f"{_LOGICAL}LogicalType", 1, _SERIALIZABLE, inherited),
            ),
            bytes([field.nullable]),
            self._constant("LogicalTypeRoot", root),
            *(i32(getattr(field, number)) for number in numbers),
        ]
        if field.name == "ROW":
            written.append(self._members(field))
        elif field.name.startswith("TIMESTAMP"):
            written.append(self._constant("TimestampKind", "REGULAR"))
        return b"".join(written)

    def _members(self, row: LogicalType) -> bytes:
        """Return the fields of a row, an ArrayList within an unmodifiable list."""
        if len(row.names) != len(row.fields):
            raise UnsupportedKeyTypeError(
                f"{row} has fields without names, which Flink compares: name them, as in "
                "ROW<id INT>"
            )
        outer = self._object(*_UNMODIFIABLE_LIST)
        inner = self._object(_ARRAY_LIST)
        handle = self._count - 1
        count = i32(len(row.fields))
        written = [outer, inner, count, _BLOCK, bytes([len(count)]), count]
        for name, field in zip(row.names, row.fields):
            written += [self._object(_ROW_FIELD), _NULL, self._text(name), self.type_object(field)]
        return b"".join((*written, _END, _reference(handle)))

    def _object(self, *lineage: _JavaClass) -> bytes:
        """Return the start of an object: its class, then its superclasses upwards."""
        described = _OBJECT + self._class(*lineage)
        self._count += 1
        return described

    def _class(self, *lineage: _JavaClass) -> bytes:
        if not lineage:
            return _NULL
        (name, version, flags, fields), *parents = lineage
        if name in self._handles:
            return _reference(self._handles[name])
        self._add(name)
        written = [_CLASS, utf("class", name), i64(version), flags, u16(len(fields))]
        for code, field, java_class in fields:
            written += [code, utf("field", field), self._class_name(java_class)]
        return b"".join((*written, _END, self._class(*parents)))

    def _class_name(self, java_class: str) -> bytes:
        """Return the name of the class of a field; nothing for a number."""
        if not java_class:
            return b""
        name = f"L{java_class.replace('.', '/')};"
        if name in self._handles:
            return _reference(self._handles[name])
        self._add(name)
        return _STRING + utf("class", name)

    def _text(self, text: str) -> bytes:
        self._count += 1
        return _STRING + utf("name of a field", text)

    def _constant(self, enum: str, constant: str) -> bytes:
        name = f"{enum}.{constant}"
        if name in self._handles:
            return _reference(self._handles[name])
        described = _CONSTANT + self._class((_LOGICAL + enum, 0, _ENUM, ()), _JAVA_ENUM)
        self._add(name)
        return described + self._text(constant)

    def _add(self, name: str) -> None:
        self._handles[name] = self._count
        self._count += 1


def _reference(handle: int) -> bytes:
    return _REFERENCE + i32(_FIRST_HANDLE + handle)


def read_logical_type(cursor: Cursor) -> LogicalType:
    """Read a logical type that was written as a Java object.

    A type with more types in it than it has bytes is refused; each counts wherever it occurs, as
    objects that refer to another one twice, level by level, make exponentially many.
    """
    start = cursor.pos
    java_object = read_java_object(cursor)
    made, _ = _TypeReader(cursor, cursor.pos - start).read(java_object, 0)
    return made


class _TypeReader:
    """A maker of logical types from Java objects, at most `most`; each comes with its height."""

    def __init__(self, cursor: Cursor, most: int) -> None:
        self._cursor = cursor
        self._most = most
        self._count = 0
        # Type, height and number of types by the object's identity; None while it is read.
        self._made: dict[int, tuple[LogicalType, int, int] | None] = {}

    def read(self, found: Any, depth: int) -> tuple[LogicalType, int]:
        root = found.fields.get("typeRoot") if isinstance(found, JavaObject) else None
        if not isinstance(root, JavaEnum) or root.constant not in _ROOTS:
            what = root.constant if isinstance(root, JavaEnum) else "what is none"
            raise self._cursor.error(f"logical type {what} is not known")
        assert isinstance(found, JavaObject)
        if id(found) not in self._made:
            self._made[id(found)] = None
            before = self._count
            self._add(1, depth)
            made, height = self._new(found, root.constant, depth)
            self._made[id(found)] = made, height, self._count - before
            return made, height
        known = self._made[id(found)]
        if known is None:
            raise self._cursor.error("a logical type is within itself")
        made, height, count = known
        self._add(count, depth + height)
        return made, height

    def _add(self, count: int, depth: int) -> None:
        self._count += count
        if self._count > self._most:
            raise self._cursor.error(
                f"a logical type of {self._most} bytes has more types than that in it"
            )
        if depth > _MAX_DEPTH:
            raise self._cursor.error(f"logical types nest more than {_MAX_DEPTH} deep")

    def _new(self, found: JavaObject, root: str, depth: int) -> tuple[LogicalType, int]:
        name, *numbers = _ROOTS[root]
        parameters: dict[str, int] = {}
        for number in numbers:
            value = found.fields.get(number)
            low, high = _BOUNDS.get((name, number), (0, LogicalType.MAX_LENGTH))
            if number == "scale":
                high = parameters["precision"]
            if type(value) is not int or not low <= value <= high:
                # The text of an object may be endless, as objects may contain themselves.
                is_large = isinstance(value, (JavaObject, list))
                shown = type(value).__name__ if is_large else show(value)
                raise self._cursor.error(f"the {number} of a {name} cannot be {shown}")
            parameters[number] = value
        inner: Iterable[Any] = ()
        names: tuple[str, ...] = ()
        if name in _INNER:
            inner = [found.fields.get(inner_name) for inner_name in _INNER[name]]
        elif name == "ROW":
            members = [*self._fields(found)]
            inner = [member.get("type") for member in members]
            names = _names(members) if root == "ROW" else ()
            self._add(sum(map(len, names)) // _NAMES, depth)
        fields = [self.read(one, depth + 1) for one in inner]
        made = LogicalType(
            name,
            **parameters,
            fields=tuple(field for field, _ in fields),
            nullable=bool(found.fields.get("isNullable", True)),
            names=names,
        )
        return made, 1 + max((height for _, height in fields), default=-1)

    def _fields(self, row: JavaObject) -> Iterator[dict[str, Any]]:
        """Yield the Java fields of each member of a row, those of a supertype first.

        Flink: StructuredType.getChildren.
        """
        lineage = [row]
        while isinstance(parent := lineage[-1].fields.get("superType"), JavaObject):
            lineage.append(parent)
            if len(lineage) > _MAX_DEPTH:
                raise self._cursor.error(f"a structured type has over {_MAX_DEPTH} supertypes")
        for one in reversed(lineage):
            yield from self._members(one.fields.get("fields", one.fields.get("attributes")))

    def _members(self, members: Any) -> list[dict[str, Any]]:
        """Return the Java fields of each member of a row, from a java.util.List of any class."""
        for _ in range(_MAX_WRAPPERS):
            if not isinstance(members, JavaObject):
                break
            members = members.written or members.fields.get("list", members.fields.get("a"))
        if not isinstance(members, list):
            raise self._cursor.error("the fields of a row are in no list")
        return [
            member.fields if isinstance(member, JavaObject) else {}
            for member in members
            if not isinstance(member, bytes)  # A list writes its size as bytes.
        ]


def _names(members: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Return the names of a row's fields; none where a member has no name, or a description.

    Flink compares descriptions too; the planner sets none: FlinkTypeFactory.toLogicalRowType.
    """
    names = {
        name: None
        for member in members
        if isinstance(name := member.get("name"), str)
        and name.strip()
        and member.get("description") is None
    }
    return tuple(names) if len(names) == len(members) else ()
