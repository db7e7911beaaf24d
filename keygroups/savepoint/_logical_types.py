"""Logical types of Flink SQL from the Java objects that a serializer's snapshot keeps of them."""

from __future__ import annotations

from typing import Any

from keygroups.logical_types import LogicalType
from keygroups.savepoint._cursor import Cursor
from keygroups.savepoint._java_stream import JavaEnum, JavaObject, read_java_object

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
}


def read_logical_type(cursor: Cursor) -> LogicalType:
    """Read a logical type that was written as a Java object."""
    return _logical_type(cursor, read_java_object(cursor))


def _logical_type(cursor: Cursor, found: Any) -> LogicalType:
    root = found.fields.get("typeRoot") if isinstance(found, JavaObject) else None
    if not isinstance(root, JavaEnum) or root.constant not in _ROOTS:
        what = root.constant if isinstance(root, JavaEnum) else "what is none"
        raise cursor.error(f"logical type {what} is not known")
    assert isinstance(found, JavaObject)
    name, *numbers = _ROOTS[root.constant]
    given = {number: found.fields.get(number) for number in numbers}
    for number, value in given.items():
        if not isinstance(value, int) or not 0 <= value <= LogicalType.MAX_LENGTH:
            raise cursor.error(f"the {number} of a {name} cannot be {value!r}")
    inner: list[Any] = []
    if name == "ARRAY":
        inner = [found.fields.get("elementType")]
    elif name == "ROW":
        inner = _field_types(found.fields.get("fields", found.fields.get("attributes")))
    return LogicalType(
        name,
        **given,
        fields=tuple(_logical_type(cursor, one) for one in inner),
        nullable=bool(found.fields.get("isNullable", True)),
    )


def _field_types(members: Any) -> list[Any]:
    """Return the type of each member of a row, which are in a java.util.List of some class."""
    while isinstance(members, JavaObject):
        elements = [one for one in members.written if isinstance(one, JavaObject)]
        members = elements or members.fields.get("list", members.fields.get("a"))
    return [one.fields.get("type") for one in members or [] if isinstance(one, JavaObject)]
