"""Entries in an order of their own, more of them than memory holds."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from heapq import merge
from tempfile import TemporaryFile, gettempdir
from typing import IO, Any

from keygroups.savepoint._files.files import file_error
from keygroups.savepoint._state.entry_encoder import EncodedEntry
from keygroups.savepoint._state.spill import packed, unpacked

Place = Callable[[EncodedEntry], Any]
"""What entries are sorted by."""

_RUN = 32 << 20  # bytes in memory, about
_OF_ENTRY = 200  # bytes that Python needs for an entry, about
_BLOCK = 1 << 16  # bytes of a run that are read at once, and at least an entry

_size = struct.Struct("<Q")


def in_order(entries: Iterable[EncodedEntry], place: Place) -> Iterator[EncodedEntry]:
    """Yield entries by their places.

    Those of about 32 MB are held; more go to a temporary file, in runs that are sorted. Raises
    SavepointError where that cannot be written.
    """
    entries = iter(entries)
    run, is_all = _next_run(entries, place)
    if is_all:
        yield from run
        return
    with _scratch_file() as file:
        spans = []
        while run:
            start = file.tell()
            with _file_errors():
                _write(file, run)
            spans.append((start, file.tell()))
            run, _ = _next_run(entries, place)
        yield from merge(*(_read(file, *span) for span in spans), key=place)


def _next_run(entries: Iterator[EncodedEntry], place: Place) -> tuple[list[EncodedEntry], bool]:
    """Return as many entries as are held, sorted, and whether they are the last."""
    run, size = [], 0
    for entry in entries:
        run.append(entry)
        size += _OF_ENTRY + len(entry.key) + len(entry.value)
        if size >= _RUN:
            break
    run.sort(key=place)
    return run, size < _RUN


@contextmanager
def _file_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise file_error(gettempdir(), "written", error) from None


def _scratch_file() -> IO[bytes]:
    with _file_errors():
        return TemporaryFile(prefix="keygroups-")


def _write(file: IO[bytes], run: Iterable[EncodedEntry]) -> None:
    """Write a run in blocks, each of entries after their size."""
    block: list[bytes] = []
    size = 0
    for entry in run:
        block.append(packed(entry))
        size += len(block[-1])
        if size >= _BLOCK:
            file.write(_size.pack(size) + b"".join(block))
            block, size = [], 0
    file.write(_size.pack(size) + b"".join(block))


def _read(file: IO[bytes], start: int, end: int) -> Iterator[EncodedEntry]:
    """Yield the entries of a run, a block at a time."""
    while start < end:
        file.seek(start)
        (size,) = _size.unpack(file.read(_size.size))
        yield from unpacked(file.read(size))
        start += _size.size + size
