"""Logical types of Flink SQL as the Java objects that a serializer's snapshot keeps of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from keygroups._checks import show
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.data_output import i32, i64, u16, utf
from keygroups._serializers.jvm.objects import JavaEnum, JavaObject, read_java_object
from keygroups.logical_types import LogicalType

# By LogicalTypeRoot: our name, and which numbers of the Java object the type has.
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
    "STRUCTURED_TYPE": ("ROW",),  # whose bytes are those of a row
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
_MAX_DEPTH = 100  # as of a type's text
_MAX_WRAPPERS = 10  # lists in one another, of the JDK's own; it nests two


_LOGICAL = "org.apache.flink.table.types.logical."
_NO_PARENT = b"\x70"
_FIRST_HANDLE = 0x7E0000
_SERIALIZABLE, _ENUM = b"\2", b"\x12"
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
}


def write_logical_type(field: LogicalType) -> bytes | None:
    """Return the Java object that a logical type is in Flink; None of one that is not written.

    That is all that is nested: a ROW's fields have names there, which they have not here, and of
    an ARRAY or a MAP the snapshot has serializers too, which only Flink writes.

    The bytes are the same in Flink 1.14 to 2.3.
    """
    if field.name not in _CLASSES:
        return None
    root, numbers = next(
        (root, numbers) for root, (name, *numbers) in _ROOTS.items() if name == field.name
    )
    fields = [_field("I", number) for number in numbers]
    values = [i32(getattr(field, number)) for number in numbers]
    if field.name.startswith("TIMESTAMP"):
        fields.append(_field("L", "kind", "TimestampKind"))
        # Handles count classes, texts and objects: that of java.lang.Enum is the seventh.
        values.append(_constant("TimestampKind", b"\x71" + i32(_FIRST_HANDLE + 6), "REGULAR"))
    of_all = [_field("Z", "isNullable"), _field("L", "typeRoot", "LogicalTypeRoot")]
    enum = _class("java.lang.Enum", 0, _ENUM) + _NO_PARENT
    return b"".join(
        (
            b"\xac\xed\0\5\x73",
            _class(_LOGICAL + _CLASSES[field.name], 1, _SERIALIZABLE, fields),
            _class(f"{_LOGICAL}LogicalType", 1, _SERIALIZABLE, of_all),
            _NO_PARENT,
            bytes([field.nullable]),
            _constant("LogicalTypeRoot", enum, root),
            *values,
        )
    )


def _class(name: str, version: int, flags: bytes, fields: Sequence[bytes] = ()) -> bytes:
    """Return the description of a class, after which that of its parent is to come."""
    described = b"\x72" + utf("class", name) + i64(version) + flags + u16(len(fields))
    return described + b"".join(fields) + b"\x78"


def _field(code: str, name: str, java_class: str = "") -> bytes:
    described = code.encode() + utf("field", name)
    if not java_class:
        return described
    return described + b"\x74" + utf("class", f"L{_LOGICAL}{java_class};".replace(".", "/"))


def _constant(enum: str, parent: bytes, constant: str) -> bytes:
    described = _class(_LOGICAL + enum, 0, _ENUM) + parent
    return b"\x7e" + described + b"\x74" + utf("constant", constant)


def read_logical_type(cursor: Cursor) -> LogicalType:
    """Read a logical type that was written as a Java object.

    It is refused where it has more types in it, each counted wherever it stands, than it has
    bytes: objects that name another one twice make exponentially many.
    """
    start = cursor.pos
    found = read_java_object(cursor)
    made, _ = _TypeReader(cursor, cursor.pos - start).read(found, 0)
    return made


class _TypeReader:
    """Makes logical types of Java objects, at most `most`; each comes with how deep it is."""

    def __init__(self, cursor: Cursor, most: int) -> None:
        self._cursor = cursor
        self._most = most
        self._count = 0
        # By the Java object's identity, with how many types it is; None while it is being read.
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
        given: dict[str, int] = {}
        for number in numbers:
            value = found.fields.get(number)
            low, high = _BOUNDS.get((name, number), (0, LogicalType.MAX_LENGTH))
            if number == "scale":
                high = given["precision"]
            if type(value) is not int or not low <= value <= high:
                # What is in an object may be the object itself, or exponentially much.
                is_large = isinstance(value, (JavaObject, list))
                shown = type(value).__name__ if is_large else show(value)
                raise self._cursor.error(f"the {number} of a {name} cannot be {shown}")
            given[number] = value
        inner: Iterable[Any] = ()
        if name in _INNER:
            inner = [found.fields.get(inner_name) for inner_name in _INNER[name]]
        elif name == "ROW":
            inner = self._field_types(found.fields.get("fields", found.fields.get("attributes")))
        fields = [self.read(one, depth + 1) for one in inner]
        made = LogicalType(
            name,
            **given,
            fields=tuple(field for field, _ in fields),
            nullable=bool(found.fields.get("isNullable", True)),
        )
        return made, 1 + max((height for _, height in fields), default=-1)

    def _field_types(self, members: Any) -> Iterator[Any]:
        """Yield the type of each member of a row, which are in a java.util.List of some class."""
        for _ in range(_MAX_WRAPPERS):
            if not isinstance(members, JavaObject):
                break
            members = members.written or members.fields.get("list", members.fields.get("a"))
        if not isinstance(members, list):
            raise self._cursor.error("the fields of a row are in no list")
        for one in members:
            if not isinstance(one, bytes):  # in which a list says how long it is
                yield one.fields.get("type") if isinstance(one, JavaObject) else None
