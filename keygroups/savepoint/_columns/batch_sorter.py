"""Sorts more batches of entries than memory holds: sorted runs in files of Arrow, then a merge."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from keygroups.savepoint._columns.byte_arrays import Int64s, taken
from keygroups.savepoint._columns.entry_batches import KEY, KEY_GROUP, SCHEMA, VALUE, entry_batch
from keygroups.savepoint._columns.entry_order import places_in_order, states_of
from keygroups.savepoint._state.writing import spill

if TYPE_CHECKING:
    from pathlib import Path

    from keygroups.savepoint._state.entries import EncodedEntry

_WRITTEN = 1 << 18  # bytes of a batch in a sorted file
_MOST_READ, _READ = 4, 32  # batches that a merge reads of a file at once, and about of all of them
# Parts of a file, by entries and by key groups, and the fewest by entries for which it has any.
_PARTS, _LEAST_PARTS = 32, 8
_ROWS = 1 << 12  # entries of a batch that is made of single entries

_SortKey = tuple[np.uint64, bytes]
"""What an entry is sorted by: the number of its key group and state, and its key."""


def in_order(batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the entries of some batches as one, sorted by key group, state and key."""
    joined = _joined(batches)
    places = places_in_order(joined)
    return joined if (places[1:] > places[:-1]).all() else _taken(joined, places)


def _taken(batch: pa.RecordBatch, places: Int64s) -> pa.RecordBatch:
    """Return the entries of a batch at some places."""
    rows = pa.array(places)
    numbers = (batch.column(column).take(rows) for column in range(KEY))
    octets = (taken(batch.column(column), places) for column in (KEY, VALUE))
    return pa.RecordBatch.from_arrays([*numbers, *octets], schema=SCHEMA)


def _by_key_group(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the entries of a batch sorted by key group alone; those of one keep their order."""
    key_groups = _key_groups(batch).astype(np.uint16)
    if (key_groups[1:] >= key_groups[:-1]).all():
        return batch
    return _taken(batch, np.argsort(key_groups, kind="stable"))  # NumPy sorts 16 bits by radix


def _key_groups(batch: pa.RecordBatch) -> NDArray[np.int32]:
    key_groups: NDArray[np.int32] = batch.column(KEY_GROUP).to_numpy()
    return key_groups


def _joined(batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    table = pa.Table.from_batches(batches, SCHEMA).combine_chunks()
    return pa.RecordBatch.from_arrays([column.chunk(0) for column in table.columns], schema=SCHEMA)


class BatchSorter(spill.Sorter[pa.RecordBatch]):
    """Sorts batches of entries by key group, state and key: all batches are one table.

    A file has entries that are not sorted yet, by parts of the key groups: of all files a part is
    sorted at once, and each entry once. A part that memory does not hold has a sorter of its own,
    without `in_parts`: its files are sorted, and merged. So are they where few key groups fill
    the memory. The first part comes last in a file, which is cut where a part has been read: so
    the files shrink as fast as the savepoint grows.
    """

    def __init__(self, folder: Path | None, in_parts: bool = True) -> None:
        super().__init__(folder)
        self._in_parts = in_parts
        self._firsts: list[int] = []  # the first key group of each part
        self._end = 0  # after the last key group of all parts
        self._sizes: Counter[int] = Counter()  # bytes of each part
        self._starts: list[dict[int, int]] = []  # places of the parts in each file

    def add(self, batch: pa.RecordBatch) -> bool:
        """Hold a batch; return whether memory is full, so that the caller has to `spill`."""
        self._held.append(batch)
        self._size += batch.nbytes
        return self._size >= spill._HELD

    def spill(self) -> None:
        """Write the entries that are held to a file."""
        if self._in_parts:
            self._add_parts()
        if not self._in_parts:
            super().spill()
            return
        self._held = [*map(_by_key_group, self._held)]
        with self._errors(), self._new_run() as file:
            starts = {}
            for part, batch in self._parts_of_held():
                starts[part] = file.tell()
                self._sizes[part] += batch.nbytes
                self._write(file, [batch])
        self._starts.append(starts)
        self._held, self._size = [], 0

    def _add_parts(self) -> None:
        """Add parts for the key groups that come after those of all parts."""
        counts = np.bincount(np.concatenate([*map(_key_groups, self._held)]))
        new = counts[self._end :]
        rows = max(int(counts.sum()) // _PARTS, 1)
        changes = np.flatnonzero(np.diff((np.cumsum(new) - new) // rows)) + 1
        if not self._firsts and len(changes) + 1 < _LEAST_PARTS:
            self._in_parts = False
        elif len(new):
            # Later files may have what lies between the key groups of this one, as those of
            # another max parallelism do.
            even = np.arange(0, len(new), max(len(new) // _PARTS, 1))
            self._firsts += (self._end + np.union1d(even, changes)).tolist()
            self._end = len(counts)

    def _parts_of_held(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the number of each part that has held entries, and these; the last part first."""
        firsts = np.array(self._firsts, np.int32)
        places = [
            [*np.searchsorted(_key_groups(batch), firsts).tolist(), len(batch)]
            for batch in self._held
        ]
        for part, bounds in reversed([*enumerate(zip(*map(pairwise, places)))]):
            slices = [
                batch.slice(start, end - start)
                for batch, (start, end) in zip(self._held, bounds)
                if start < end
            ]
            if slices:
                yield part, _joined(slices)

    def entries(self) -> Generator[pa.RecordBatch, None, None]:
        """Yield all entries in their order, once."""
        if not self._starts:
            yield from super().entries()
            return
        if self._held:
            self.spill()
        for part in sorted(self._sizes):
            yield from self._sorted_part(part)

    def _sorted_part(self, part: int) -> Iterator[pa.RecordBatch]:
        """Yield the entries of a part in their order."""
        if self._sizes[part] <= spill._HELD:
            entries = in_order(self._read_part(part))
            self._give_back(part)
            yield from _cut(entries, _MOST_READ * _WRITTEN)
            return
        with closing(BatchSorter(self._folder, in_parts=False)) as sorter:
            for batch in self._read_part(part):
                if sorter.add(batch):
                    sorter.spill()
            self._give_back(part)
            yield from sorter.entries()

    def _read_part(self, part: int) -> Iterator[pa.RecordBatch]:
        """Yield the entries of a part of all files, not sorted."""
        for path, starts in zip(self._runs, self._starts):
            if part in starts:
                with self._errors(), path.open("rb") as file:
                    file.seek(starts[part])
                    yield from pa.ipc.open_stream(file)

    def _give_back(self, part: int) -> None:
        """Cut all files before a part that was read, with which they end."""
        for path, starts in zip(self._runs, self._starts):
            if part in starts:
                with self._errors():
                    os.truncate(path, starts[part])

    def batches(self, entries: Iterator[EncodedEntry]) -> Generator[pa.RecordBatch, None, None]:
        """Yield all held entries merged with others, which are sorted already; callable once."""
        chunks = iter(lambda: [*islice(entries, _ROWS)], [])
        yield from self._merge([self.entries(), map(entry_batch, chunks)])

    def _in_order(self) -> Iterable[pa.RecordBatch]:
        held, self._held = self._held, []  # Memory has them once as they came, and once sorted.
        return _cut(in_order(held), _MOST_READ * _WRITTEN) if held else []

    def _write(self, file: BinaryIO, items: Iterable[pa.RecordBatch]) -> None:
        with pa.ipc.new_stream(file, SCHEMA) as stream:
            for batch in items:
                for piece in [batch] if self._in_parts else _cut(batch, _WRITTEN):
                    stream.write_batch(piece)

    def _read(self, path: Path) -> Iterator[pa.RecordBatch]:
        with path.open("rb") as file:
            yield from pa.ipc.open_stream(file)

    def _merge(self, runs: Iterable[Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
        """Yield the entries of several sorted runs in their order.

        A batch of each run is held, its head; of few runs it is several in one. The smallest of
        the heads' last entries is the bound: every entry up to it is in a head already, so that
        these are sorted and yielded. A head of which little is left gets the next batch of its
        run: else, among many runs, there would be a step for each batch. A head that starts
        behind the bound stays as it is: of runs that lie one behind the other, as those of
        another max parallelism do, each step takes one. An example, of key groups: a run [1, 4],
        [9] and a run [2, 3, 20]: the bound is 4, and [1, 2, 3, 4] are yielded; then it is 9, and
        [9]; the head [20] alone is left, and follows as it is.
        """
        runs = [*runs]
        at_once = max(1, min(_MOST_READ, _READ // max(len(runs), 1)))
        heads = [head for run in runs for head in _refilled(None, run, at_once)]
        while len(heads) > 1:
            bound = min(head.last for head in heads)
            ready, rest = [], []
            for head in heads:
                if head.first > bound:
                    rest.append(head)
                    continue
                count = _count_up_to(head.batch, bound)
                ready.append(head.batch.slice(0, count))
                rest += _refilled(head.batch.slice(count), head.run, at_once)
            heads = rest
            yield from _cut(in_order(ready), _MOST_READ * _WRITTEN)
        for head in heads:
            yield from chain([head.batch], head.run)


class _Head(NamedTuple):
    """The next entries of a run, the places of the first and the last, and the run."""

    first: _SortKey
    last: _SortKey
    batch: pa.RecordBatch
    run: Iterator[pa.RecordBatch]


def _cut(batch: pa.RecordBatch, size: int) -> Iterator[pa.RecordBatch]:
    """Yield the entries of a batch in batches of about so many bytes."""
    rows = max(len(batch) * size // max(batch.nbytes, 1), 1)
    for start in range(0, len(batch), rows):
        yield batch.slice(start, rows)


def _refilled(
    batch: pa.RecordBatch | None, run: Iterator[pa.RecordBatch], at_once: int
) -> list[_Head]:
    """Return the new head of a run: the rest of its batch, and the next ones if it is small.

    It is the only one of the list, which has none at the end of the run.
    """
    size = 0 if batch is None else batch.nbytes
    few = [*islice(run, at_once)] if size < _WRITTEN * at_once // 2 else []
    parts = [part for part in (batch, *few) if part is not None and len(part)]
    if not parts:
        return []
    head = parts[0] if len(parts) == 1 else _joined(parts)
    return [_Head(_place(head, 0), _place(head, len(head) - 1), head, run)]


def _count_up_to(batch: pa.RecordBatch, bound: _SortKey) -> int:
    """Return the number of entries of a sorted batch that come before a bound, or are at it."""
    number, key = bound
    numbers, keys = states_of(batch), batch.column(KEY)
    first, last = (int(np.searchsorted(numbers, number, side)) for side in ("left", "right"))
    return bisect_right(range(last), key, first, key=lambda row: keys[row].as_py())


def _place(batch: pa.RecordBatch, row: int) -> _SortKey:
    """Return the sort key of an entry of a batch: key group and state number, and key bytes."""
    [number] = states_of(batch.slice(row, 1))
    return number, batch.column(KEY)[row].as_py()
