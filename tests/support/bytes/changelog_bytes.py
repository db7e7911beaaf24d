"""Writes the log of the changelog backend, as its StateChangeFormat and its loggers have it.

The reader is not used.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from support.bytes import savepoint_bytes as sb

CLEAR, SET, SET_INTERNAL, ADD, MERGE_NAMESPACES = range(5)
ADD_ELEMENT, ADD_OR_UPDATE_ELEMENT, REMOVE_ELEMENT, METADATA = range(5, 9)

Change = tuple[int, bytes]
"""A change with its key group, which is -1 for what a header says of a state."""


def logged(number: int, state: bytes, *, version: int = 7, kind: int = 0) -> Change:
    """What the log says of a state, with neither a time to live nor a default value."""
    return -1, bytes([METADATA]) + sb.i32(version) + state + b"\0\0" + sb.i16(number) + bytes(
        [kind]
    )


def change(operation: int, number: int, *parts: bytes, key_group: int = 3) -> Change:
    return key_group, bytes([operation]) + sb.i16(number) + b"".join(parts)


def change_set(changes: Sequence[Change]) -> bytes:
    """Changes as they are written at once, those of a key group together, as they come."""
    groups = [(group, list(item)) for group, item in groupby(changes, lambda one: one[0])]
    out = [sb.i32(len(groups))]
    for group, item in groups:
        out.append(sb.i32(len(item), group))
        out += [sb.i32(len(data)) + data for _, data in item]
    return b"".join(out)


def changes_of(data: bytes) -> list[Change]:
    """Take a change set apart."""
    found = []
    (groups,), pos = struct.unpack_from(">i", data), 4
    for _ in range(groups):
        count, group = struct.unpack_from(">ii", data, pos)
        pos += 8
        for _ in range(count):
            (size,) = struct.unpack_from(">i", data, pos)
            found.append((group, data[pos + 4 : pos + 4 + size]))
            pos += 4 + size
    return found


def inline(changes: Iterable[Change], count: int = 128) -> bytes:
    """A handle of changes that are in `_metadata` itself."""
    listed = [sb.i32(group, len(data)) + data for group, data in changes]
    return b"".join(
        (b"\x09", sb.i32(0, count), sb.i64(0, 5), sb.i32(len(listed)), *listed, sb.utf("id"))
    )


def in_streams(streams: Sequence[tuple[int, bytes]], code: int = 13, count: int = 128) -> bytes:
    """A handle of changes in streams, in each from an offset on."""
    listed = b"".join(sb.i64(offset) + stream for offset, stream in streams)
    head = bytes([code]) + sb.i32(0, count) + sb.i32(len(streams)) + listed
    return head + sb.i64(6, 2) + sb.utf("id") + (sb.utf("fs") if code == 13 else b"")


def changelog(
    materialized: Sequence[bytes], changes: Sequence[bytes], code: int = 14, count: int = 128
) -> bytes:
    lists = b"".join(sb.i32(len(one)) + b"".join(one) for one in (materialized, changes))
    numbers = sb.i64(0) + (sb.i64(1) if code == 14 else b"")
    return bytes([code]) + sb.i32(0, count) + sb.i64(0) + lists + numbers + sb.utf("id")


def write_log(folder: Path, *sets: bytes) -> list[tuple[int, bytes]]:
    """Write change sets to one file, whose handle does not count its first byte."""
    folder.mkdir(exist_ok=True)
    (folder / "log").write_bytes(b"\0" + b"".join(sets))
    stream = sb.relative("log", sum(map(len, sets)))
    offsets = [sum(map(len, sets[:number])) for number in range(len(sets))]
    return [(offset, stream) for offset in offsets]
