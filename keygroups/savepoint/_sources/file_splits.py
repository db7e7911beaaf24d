"""The splits of Flink's file source, and the pending ones of its enumerator.

The layouts are those of flink-connector-files: FileSourceSplitSerializer, whose version 1 has two,
and PendingSplitsCheckpointSerializer.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from keygroups._serializers.base import TRUNCATED
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.scalars import read_string
from keygroups.errors import SavepointError

VERSION = 1  # the version of both layouts
_MAGIC = 0xDEADBEEF


class FileSplit(NamedTuple):
    """A part of a file that a file source reads: `length` bytes from `offset` on.

    `subtask` has it, None if it is not assigned yet. `position` is where the reader goes on: an
    offset in the file, -1 for none, and how many records to skip there; None for the start of
    the split. `modification_time`, epoch milliseconds, and `file_size`, bytes, are None before
    Flink 1.15.
    """

    split_id: str
    path: str
    offset: int
    length: int
    modification_time: int | None
    file_size: int | None
    hosts: tuple[str, ...]
    position: tuple[int, int] | None
    subtask: int | None


class PendingSplits(NamedTuple):
    """State of the enumerator: splits for readers to come, and files it has seen."""

    splits: tuple[FileSplit, ...]
    processed_paths: tuple[str, ...]


def read_split(version: int, cursor: Cursor, subtask: int | None) -> FileSplit:
    """Read a split, which is all that is left; SavepointError where it is none.

    Flink: FileSourceSplitSerializer.deserializeV1, which since 1.15 has two longs more.
    """
    cursor.expect("version of a split of a file", version, VERSION)
    start = cursor.pos
    # The older layout goes first: its bytes may pass as the newer one, but bytes of the newer one
    # pass as the older only for a file without hosts that is from the first hours of 1970.
    with suppress(SavepointError):
        return _read_split(cursor, subtask, has_times=False)
    cursor.pos = start
    return _read_split(cursor, subtask, has_times=True)


def _read_split(cursor: Cursor, subtask: int | None, *, has_times: bool) -> FileSplit:
    split_id, path = cursor.utf(), _read_path(cursor)
    offset, length = cursor.i64(), cursor.i64()
    time, size = (cursor.i64(), cursor.i64()) if has_times else (None, None)
    hosts = tuple(cursor.utf() for _ in range(cursor.count()))
    position = (cursor.i64(), cursor.i64()) if cursor.bool() else None
    cursor.expect_end("a split")
    return FileSplit(split_id, path, offset, length, time, size, hosts, position, subtask)


def _read_path(cursor: Cursor) -> str:
    """Read a path. Flink: Path.deserializeFromDataInputView, Path.toString."""
    if not cursor.bool():
        raise cursor.error("a split without a path")
    scheme, user, host = (_read_text(cursor) for _ in range(3))
    port = cursor.i32()
    path, query, fragment = (_read_text(cursor) for _ in range(3))
    authority = f"{host}:{port}" if host is not None and port >= 0 else host
    return "".join(
        (
            "" if scheme is None else f"{scheme}:",
            "" if authority is None else "//" if user is None else f"//{user}@",
            authority or "",
            path or "",
            "" if query is None else f"?{query}",
            "" if fragment is None else f"#{fragment}",
        )
    )


def _read_text(cursor: Cursor) -> str | None:
    """Read a text or null. Flink: StringUtils.readNullableString."""
    if not cursor.bool():
        return None
    try:
        text, end = read_string(cursor.data, cursor.pos)
    except (*TRUNCATED, ValueError) as error:
        raise cursor.error(f"no text: {error}") from None
    cursor.take(end - cursor.pos)  # This checks the cursor's end: `data` may go on after it.
    return text


def read_enumerator(version: int, cursor: Cursor) -> PendingSplits:
    """Read the pending splits, all that is left; SavepointError if they are no file source's.

    Flink: PendingSplitsCheckpointSerializer.deserializeV1, in little-endian order.
    """
    cursor.expect("version of pending splits", version, VERSION)
    cursor.expect("mark of pending splits", _unsigned(cursor), _MAGIC)
    split_version, splits, paths = (_unsigned(cursor) for _ in range(3))
    pending = tuple(read_split(split_version, _frame(cursor), None) for _ in range(splits))
    texts = [cursor.take(_unsigned(cursor)) for _ in range(paths)]
    cursor.expect_end("pending splits")
    try:
        return PendingSplits(pending, tuple(text.decode() for text in texts))
    except UnicodeDecodeError:
        raise cursor.error("a path is not in UTF-8") from None


def _frame(cursor: Cursor) -> Cursor:
    size = _unsigned(cursor)
    start = cursor.pos
    cursor.take(size)
    return cursor.within(start, cursor.pos)


def _unsigned(cursor: Cursor) -> int:
    return int.from_bytes(cursor.take(4), "little")
