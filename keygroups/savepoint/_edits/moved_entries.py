"""Entries that edits move to another key, key group or subtask, on the way to the file there."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import groupby
from typing import BinaryIO, NamedTuple

from keygroups.key_group_range import compute_operator_index_for_key_group
from keygroups.savepoint._files.files import Files
from keygroups.savepoint._metadata.handles import StreamHandle
from keygroups.savepoint._state.entries import EncodedEntry
from keygroups.savepoint._state.writing.spill import packed, unpacked
from keygroups.savepoint._state.writing.write_task import WriteTask

_BUFFERED = 1 << 24  # bytes of moved entries held in memory before they are written


class MovedEntries(NamedTuple):
    """Entries for one subtask in a file of moved entries: `size` bytes, from offset `start`."""

    file: str
    start: int
    size: int


class MovedWriter:
    """Writes moved entries to one file, made on the first flush, in a run for each subtask."""

    def __init__(self, task: WriteTask, parallelism: int) -> None:
        self.written: dict[int, list[MovedEntries]] = {}
        self._task = task
        self._parallelism = parallelism
        self._closing = ExitStack()
        self._file: BinaryIO | None = None
        self._size = 0
        self._held: dict[int, bytearray] = {}
        self._held_size = 0
        self._name = f"{task.operator_id}-{task.subtask}-{uuid.uuid4().hex}.moved"

    def add(self, entry: EncodedEntry) -> None:
        """Hold an entry for the subtask of its key group; flush at `_BUFFERED` held bytes."""
        subtask = compute_operator_index_for_key_group(
            self._task.max_parallelism, self._parallelism, entry.key_group
        )
        data = packed(entry)
        self._held.setdefault(subtask, bytearray()).extend(data)
        self._held_size += len(data)
        if self._held_size >= _BUFFERED:
            self.flush()

    def flush(self) -> None:
        """Append the held entries to the file, those of a subtask together."""
        for subtask, data in self._held.items():
            if self._file is None:
                self._file = self._closing.enter_context(self._task.folder.create(self._name))
            self._file.write(data)
            moved = MovedEntries(self._name, self._size, len(data))
            self.written.setdefault(subtask, []).append(moved)
            self._size += len(data)
        self._held, self._held_size = {}, 0

    def close(self) -> None:
        """Close the file."""
        self._closing.close()


def moved_entries(moved: Iterable[MovedEntries], files: Files) -> Iterator[EncodedEntry]:
    """Yield the entries in the order in which they were written."""
    for file, start, size in moved:
        stream = StreamHandle(size, path=file, is_relative=True, is_segment=True, start=start)
        with files.open(stream) as opened:
            data = opened.read(0, size)
        yield from unpacked(data)


def merged(
    written: Iterator[EncodedEntry], moved: Iterator[EncodedEntry]
) -> Iterator[EncodedEntry]:
    """Yield the entries of a subtask's file and those that moved to it, by key group.

    `written` is ordered by key group; inside of one it has the order of the old file, which may
    be RocksDB's or a hash map's. `moved` is sorted by key group, state number and key. A key group
    without moved entries passes through as it is; one with some is sorted as a whole, so that
    equal keys stand side by side and KeyedStateFile refuses them.

    >>> written = [EncodedEntry(3, 0, b"z", b"1"), EncodedEntry(3, 0, b"a", b"2")]
    >>> written += [EncodedEntry(5, 0, b"z", b"3"), EncodedEntry(5, 0, b"a", b"4")]
    >>> moved = [EncodedEntry(4, 0, b"n", b"5"), EncodedEntry(5, 0, b"m", b"6")]
    >>> [(entry.key_group, entry.key) for entry in merged(iter(written), iter(moved))]
    [(3, b'z'), (3, b'a'), (4, b'n'), (5, b'a'), (5, b'm'), (5, b'z')]
    """
    ahead = next(moved, None)
    for key_group, entries_there in groupby(written, lambda entry: entry.key_group):
        while ahead is not None and ahead.key_group < key_group:
            yield ahead
            ahead = next(moved, None)
        if ahead is None or ahead.key_group > key_group:
            yield from entries_there
        else:
            entries = [*entries_there]
            while ahead is not None and ahead.key_group == key_group:
                entries.append(ahead)
                ahead = next(moved, None)
            yield from sorted(entries)
    if ahead is not None:
        yield ahead
        yield from moved
