"""Maps in which a key or a value may be missing, in the snapshots of POJOs and of Kryo."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from keygroups._checks import show
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.data_output import i32, i64, utf

_MAGIC = 0x4F2C69A3D70


class OptionalItem(NamedTuple):
    """The name of a key, its bytes and those of its value, None for a missing one."""

    name: str
    key: bytes | None
    value: bytes | None


def read_optional_map(cursor: Cursor) -> list[tuple[str, bytes | None, Cursor | None]]:
    """Read a map: each name, the key's bytes, and a cursor limited to the value's frame.

    Flink: LinkedOptionalMapSerializer.readOptionalMap.
    """
    if cursor.i64() != _MAGIC:
        cursor.pos -= 8
        raise cursor.error("a map of a POJO's or Kryo's serializer was to follow")
    items, names = [], set()
    for _ in range(cursor.count(4)):
        name = cursor.name_of_values()
        if name in names:
            raise cursor.error(f"a map of a serializer has {show(name)} twice")
        names.add(name)
        key = cursor.take(cursor.i32()) if cursor.bool() else None
        items.append((name, key, cursor.frame() if cursor.bool() else None))
    return items


def write_optional_map(items: Iterable[OptionalItem]) -> bytes:
    """Return the bytes of a map: a mark, a count, and each name, key and value.

    Flink: LinkedOptionalMapSerializer.writeOptionalMap.
    """
    written = [utf("name", name) + _optional(key) + _optional(value) for name, key, value in items]
    return i64(_MAGIC) + i32(len(written)) + b"".join(written)


def _optional(data: bytes | None) -> bytes:
    return b"\0" if data is None else b"\1" + i32(len(data)) + data
