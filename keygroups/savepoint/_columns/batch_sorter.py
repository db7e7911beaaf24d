"""Sorts more batches of entries than memory holds: sorted runs in files of Arrow, then a merge."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa

from keygroups.savepoint._columns.byte_arrays import taken
from keygroups.savepoint._columns.entry_batches import KEY, SCHEMA, VALUE, entry_batch
from keygroups.savepoint._columns.entry_order import places_in_order
from keygroups.savepoint._state.writing import spill

if TYPE_CHECKING:
    from pathlib import Path

    from keygroups.savepoint._state.entries import EncodedEntry

_WRITTEN = 1 << 18  # bytes of a batch in a sorted file; the merge holds one or two of each file
_ROWS = 1 << 12  # entries of a batch that is made of single entries


def in_order(batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the entries of some batches as one, sorted by key group, state and key."""
    joined = _joined(batches)
    places = places_in_order(joined)
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
        return _cut(in_order(self._held)) if self._held else []

    def _write(self, file: BinaryIO, items: Iterable[pa.RecordBatch]) -> None:
        with pa.ipc.new_stream(file, SCHEMA) as stream:
            for batch in items:
                for piece in _cut(batch):
                    stream.write_batch(piece)

    def _read(self, path: Path) -> Iterator[pa.RecordBatch]:
        with path.open("rb") as file:
            yield from pa.ipc.open_stream(file)

    def _merge(self, runs: Iterable[Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
        """Yield the entries of several sorted runs in their order.

        A batch of each run is held, its head. The smallest of the heads' last entries is the
        bound: every entry up to it is in a head already, so that these are sorted and yielded. A
        head of which little is left gets the next batch of its run: else, among many runs, there
        would be a step for each batch, which looks at every head. An example, of key groups: a run
        [1, 4], [9] and a run [2, 3, 20]: the bound is 4, and [1, 2, 3, 4] are yielded; then it is
        9, and [9]; the head [20] alone is left, and follows as it is.
        """
        heads = [(head, run) for run in map(iter, runs) for head in islice(run, 1)]
        while len(heads) > 1:
            bound = min(_place(head, len(head) - 1) for head, _ in heads)
            ready, rest = [], []
            for head, run in heads:
                count = bisect_right(range(len(head)), bound, key=partial(_place, head))
                ready.append(head.slice(0, count))
                rest += [(following, run) for following in _refilled(head.slice(count), run)]
            heads = rest
            yield from _cut(in_order(ready))
        for head, run in heads:
            yield from chain([head], run)


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the entries of a batch in batches of about the same bytes."""
    rows = max(len(batch) * _WRITTEN // batch.nbytes, 1)
    for start in range(0, len(batch), rows):
        yield batch.slice(start, rows)


def _refilled(batch: pa.RecordBatch, run: Iterator[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return the new head of a run: the rest of its batch, and the next batch if it is small."""
    few = [*islice(run, 1)] if batch.nbytes < _WRITTEN // 2 else []
    parts = [part for part in (batch, *few) if len(part)]
    return [_joined(parts)] if few else parts


def _place(batch: pa.RecordBatch, row: int) -> tuple[int, int, bytes]:
    """Return the sort key of an entry of a batch: key group, state number and key bytes."""
    key_group, state, key = (batch.column(place)[row].as_py() for place in range(KEY + 1))
    return key_group, state, key
