"""Sorts more entries than memory holds, by way of files."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from heapq import merge
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, BinaryIO, Generic, TypeVar

from keygroups.progress import Meter
from keygroups.savepoint._files.files import file_error
from keygroups.savepoint._state.entries import EncodedEntry

_HELD = 64 << 20  # bytes of memory in which entries are sorted, about
_OF_AN_ENTRY = 200  # bytes that Python takes for an entry beside those of its key and value
_MOST_RUNS = 128  # files that are open at once
_BUFFERED = 1 << 16  # bytes of a file that are read or written at once
_COUNTED = 1 << 12  # entries that are counted at once

SortKey = Callable[[EncodedEntry], Any]
"""What entries are sorted by."""

Item = TypeVar("Item")
_head = struct.Struct("<HIII")


class Sorter(ABC, Generic[Item]):
    """Sorts items in memory of a fixed size.

    What is more is in sorted files of a temporary folder in `folder`, None for the machine's own,
    until `close`. What cannot be written there is a SavepointError.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._scratch: TemporaryDirectory[str] | None = None
        self._runs: deque[Path] = deque()
        self._names = count()
        self._held: list[Item] = []
        self._size = 0

    @abstractmethod
    def _in_order(self) -> Iterable[Item]:
        """Return the items that are held, sorted."""

    @abstractmethod
    def _write(self, file: BinaryIO, items: Iterable[Item]) -> None:
        """Write sorted items to a file."""

    @abstractmethod
    def _read(self, path: Path) -> Iterator[Item]:
        """Yield the items of a file."""

    @abstractmethod
    def _merge(self, runs: Iterable[Iterator[Item]]) -> Iterator[Item]:
        """Yield the items of several sorted runs in their order."""

    def spill(self) -> None:
        """Write the items that are held to a file."""
        with self._errors():
            self._write_run(self._in_order())
        self._held, self._size = [], 0

    def entries(self) -> Generator[Item, None, None]:
        """Yield all items in their order, once."""
        if self._runs and self._held:  # held items leave memory to those read of each file
            self.spill()
        held = self._in_order()
        with self._errors():
            while len(self._runs) > _MOST_RUNS:
                too_many = len(self._runs) - _MOST_RUNS
                self._write_run(self._merged(min(too_many + 1, _MOST_RUNS)))
            yield from self._merged(len(self._runs))
        self._held = []
        yield from held

    def close(self) -> None:
        """Remove the files."""
        if self._scratch is not None:
            with self._errors():
                self._scratch.cleanup()

    def _write_run(self, items: Iterable[Item]) -> None:
        with self._new_run() as file:
            self._write(file, items)

    @contextmanager
    def _new_run(self) -> Iterator[BinaryIO]:
        """Return a new file, which is the last of all once it is written."""
        if self._scratch is None:
            self._scratch = TemporaryDirectory(dir=self._folder)
        path = Path(self._scratch.name, str(next(self._names)))
        with path.open("wb", _BUFFERED) as file:
            yield file
        self._runs.append(path)

    def _merged(self, count: int) -> Iterator[Item]:
        """Yield the items of the oldest files, which go then."""
        runs = [self._runs.popleft() for _ in range(count)]
        yield from self._merge(map(self._read, runs))
        for path in runs:
            path.unlink()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise file_error(str(self._folder or gettempdir()), "written", error) from None


class EntrySorter(Sorter[EncodedEntry]):
    """Sorts entries by key group, state, key and value; with a `place` by that alone."""

    def __init__(self, folder: Path | None, place: SortKey | None = None) -> None:
        super().__init__(folder)
        self._place = place

    def add(self, entry: EncodedEntry) -> bool:
        """Take an entry, and return whether `spill` is to be called before the next."""
        self._held.append(entry)
        self._size += len(entry.key) + len(entry.value) + _OF_AN_ENTRY
        return self._size >= _HELD

    def _in_order(self) -> list[EncodedEntry]:
        self._held.sort(key=self._place)
        return self._held

    def _write(self, file: BinaryIO, items: Iterable[EncodedEntry]) -> None:
        for entry in items:
            file.write(packed(entry))

    def _read(self, path: Path) -> Iterator[EncodedEntry]:
        with path.open("rb", _BUFFERED) as file:
            while head := file.read(_head.size):
                key_group, state, key_size, value_size = _head.unpack(head)
                key = file.read(key_size)
                yield EncodedEntry(key_group, state, key, file.read(value_size))

    def _merge(self, runs: Iterable[Iterator[EncodedEntry]]) -> Iterator[EncodedEntry]:
        return merge(*runs, key=self._place)


def sorted_entries(
    entries: Iterable[EncodedEntry],
    folder: Path | None,
    size: int = 0,
    meter: Meter | None = None,
    place: SortKey | None = None,
) -> Generator[EncodedEntry, None, None]:
    """Yield entries as an EntrySorter sorts them, which has its files in a folder, by `place`.

    A meter counts `size` as they are yielded.
    """
    sorter = EntrySorter(folder, place)
    total = 0
    try:
        for entry in entries:
            total += 1
            if sorter.add(entry):
                sorter.spill()
        if meter is None:
            yield from sorter.entries()
            return
        for number, entry in enumerate(sorter.entries(), 1):
            yield entry
            if not number % _COUNTED:
                meter.add(size * _COUNTED // total)
    finally:
        sorter.close()


def packed(entry: EncodedEntry) -> bytes:
    """Return an entry as bytes, of which many may follow one another."""
    key_group, state, key, value = entry
    return b"".join((_head.pack(key_group, state, len(key), len(value)), key, value))


def unpacked(data: bytes) -> Iterator[EncodedEntry]:
    """Yield the entries that `packed` made bytes."""
    pos = 0
    while pos < len(data):
        key_group, state, key_size, value_size = _head.unpack_from(data, pos)
        key = pos + _head.size
        value = key + key_size
        pos = value + value_size
        yield EncodedEntry(key_group, state, data[key:value], data[value:pos])
