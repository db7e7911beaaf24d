"""Writes Java object streams, by the Java Object Serialization Specification, chapter 6."""

from __future__ import annotations

from collections.abc import Sequence

from savepoint_bytes import i64, utf

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
