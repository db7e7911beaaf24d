"""Sorts more batches of entries than memory holds: sorted runs in files of Arrow, then a merge."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa

from keygroups.savepoint._columns.byte_arrays import taken
from keygroups.savepoint._columns.entry_batches import KEY, SCHEMA, VALUE, entry_batch
from keygroups.savepoint._columns.entry_order import places_in_order, states_of
from keygroups.savepoint._state.writing import spill

if TYPE_CHECKING:
    from pathlib import Path

    from keygroups.savepoint._state.entries import EncodedEntry

_WRITTEN = 1 << 18  # bytes of a batch in a sorted file
_MOST_READ, _READ = 4, 32  # batches that a merge reads of a file at once, and about of all of them
_ROWS = 1 << 12  # entries of a batch that is made of single entries

_Place = tuple[np.uint64, bytes]
"""What an entry is sorted by: the number of its key group and state, and its key."""


def in_order(batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the entries of some batches as one, sorted by key group, state and key."""
    joined = _joined(batches)
    places = places_in_order(joined)
    if (places[1:] > places[:-1]).all():
        return joined
    rows = pa.array(places)
    numbers = (joined.column(column).take(rows) for column in range(KEY))
    octets = (taken(joined.column(column), places) for column in (KEY, VALUE))
    return pa.RecordBatch.from_arrays([*numbers, *octets], schema=SCHEMA)


def _joined(batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    columns = zip(*(batch.columns for batch in batches))
    return pa.RecordBatch.from_arrays([*map(pa.concat_arrays, columns)], schema=SCHEMA)


class BatchSorter(spill.Sorter[pa.RecordBatch]):
    """Sorts batches of entries by key group, state and key: all batches are one table."""

    def add(self, batch: pa.RecordBatch) -> bool:
        """Hold a batch; return whether memory is full, so that the caller has to `spill`."""
        self._held.append(batch)
        self._size += batch.nbytes
        return self._size >= spill._HELD

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
                for piece in _cut(batch, _WRITTEN):
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

    first: _Place
    last: _Place
    batch: pa.RecordBatch
    run: Iterator[pa.RecordBatch]


def _cut(batch: pa.RecordBatch, size: int) -> Iterator[pa.RecordBatch]:
    """Yield the entries of a batch in batches of about so many bytes."""
    rows = max(len(batch) * size // batch.nbytes, 1)
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


def _count_up_to(batch: pa.RecordBatch, bound: _Place) -> int:
    """Return the number of entries of a sorted batch that come before a bound, or are at it."""
    number, key = bound
    numbers, keys = states_of(batch), batch.column(KEY)
    first, last = (int(np.searchsorted(numbers, number, side)) for side in ("left", "right"))
    return bisect_right(range(last), key, first, key=lambda row: keys[row].as_py())


def _place(batch: pa.RecordBatch, row: int) -> _Place:
    """Return the sort key of an entry of a batch: key group and state number, and key bytes."""
    [number] = states_of(batch.slice(row, 1))
    return number, batch.column(KEY)[row].as_py()
