"""Logical types of Flink SQL from the Java objects that a serializer's snapshot keeps of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from keygroups._checks import show
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.java_objects import JavaEnum, JavaObject, read_java_object
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
