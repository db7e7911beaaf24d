"""RocksDB's files as columns: records decoded, put in order and told apart thousands at a time.

What is unusual is left to the reader of single records, which reads from the start, and checks all
again: keys of 128 bytes and values of 16 KiB, deleted ranges, lists with parts in several records,
more files than a few dozen, and all damage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from keygroups.errors import SavepointError
from keygroups.savepoint._columns.readers.parts import Ints, numbers_at
from keygroups.savepoint._files.sst import (
    DELETION,
    MERGE,
    SINGLE_DELETION,
    VALUE,
    Block,
    Runs,
    SstFile,
)
from keygroups.savepoint._state.entries import not_an_entry
from keygroups.savepoint._state.entry_columns import (
    BYTES,
    ColumnDecoder,
    EntryColumns,
    FramedRows,
    Pairs,
    of_pairs,
)

_MOST_FILES = 64  # files of a state; each step goes through all
_AT_ONCE = 1 << 20  # bytes of blocks
_MOST_BLOCK = 1 << 20  # bytes
_MOST_SHARED = 16  # bytes that keys take in a matrix, to each byte of their blocks
_LEAST_RUNS = 16  # runs of records that are worth a step of NumPy
_MOST_IN_A_RUN = 64  # records between two restarts; RocksDB: 16
_MOST_DEPTH = 255  # keys that share bytes with the one before; RocksDB: 15
_MOST_VERSIONS = 1_000  # records of the key that a piece of a file ends with
_LONG = 0x80  # varints from here on have more than a byte, from its square on more than two
_MARK = 8  # bytes behind a key: its sequence number and kind
_BEHIND = 1 + _MARK  # bytes behind a key in a row

Bytes = NDArray[np.uint8]
Run = tuple[bytes, bytes]


class Irregular(Exception):
    """These records are left to the reader of single ones."""


class _Records(NamedTuple):
    """Records in order: a row for each, and where its value is in `data`.

    A row has the key with zeros behind it, its length, and its sequence number and kind, of which
    each bit is inverted: so rows compare as RocksDB orders records, the newest of a key first.
    """

    rows: Bytes
    value_starts: Ints
    value_ends: Ints
    data: bytes

    @property
    def width(self) -> int:
        """The number of bytes in a row for the key and the zeros behind it."""
        return int(self.rows.shape[1]) - _BEHIND

    @property
    def ordered(self) -> NDArray[np.bytes_]:
        """The rows as what NumPy compares byte by byte."""
        return _ordered(self.rows)

    @property
    def last_key(self) -> bytes:
        """The key of the last one."""
        row = bytes(self.rows[-1])
        return row[: row[self.width]]

    def before(self, key: bytes) -> int:
        """Return the number of records with lower keys."""
        if len(key) > self.width:
            raise Irregular
        row = key.ljust(self.width, b"\0") + bytes([len(key)]) + bytes(_MARK)
        wanted = np.frombuffer(row, f"S{len(row)}")
        return int(np.searchsorted(self.ordered, wanted)[0])

    def some(self, start: int, end: int | None = None) -> _Records:
        """Return the records from a number on, up to another."""
        some = slice(start, end)
        return self._replace(
            rows=self.rows[some],
            value_starts=self.value_starts[some],
            value_ends=self.value_ends[some],
        )

    def widened(self, width: int) -> _Records:
        """Return them with rows of wider keys."""
        if width == self.width:
            return self
        rows = np.zeros((len(self.rows), width + _BEHIND), np.uint8)
        rows[:, : self.width] = self.rows[:, : self.width]
        rows[:, width:] = self.rows[:, self.width :]
        return self._replace(rows=rows)


def _ordered(rows: Bytes) -> NDArray[np.bytes_]:
    return np.ascontiguousarray(rows).view(f"S{rows.shape[1]}")[:, 0]


def of_files(
    decoder: ColumnDecoder,
    name: str,
    files: Sequence[SstFile],
    runs: Runs,
    prefix_bytes: int,
    pairs_of: Callable[[Runs], Pairs],
) -> Iterator[EntryColumns]:
    """Return the entries of a state that is in some files, those of which the keys are in runs.

    The first blocks are asked for before there is an entry. `pairs_of` reads runs record by
    record; `name` is for errors.
    """
    if len(runs) != 1 or len(files) > _MOST_FILES or any(file.range_deletions for file in files):
        return of_pairs(decoder, name, pairs_of(runs), prefix_bytes)
    size = min(_AT_ONCE, BYTES // max(1, len(files)))
    pieces = [_pieces(file.blocks(runs), runs[0], size) for file in files]
    return _of_pieces(decoder, name, pieces, runs[0], prefix_bytes, pairs_of)


def _of_pieces(
    decoder: ColumnDecoder,
    name: str,
    files: Sequence[Iterator[_Records]],
    run: Run,
    prefix_bytes: int,
    pairs_of: Callable[[Runs], Pairs],
) -> Iterator[EntryColumns]:
    """Yield the entries of a state, of which each file has its records in pieces."""
    count = 0
    try:
        for parts in _side_by_side(files):
            rows = _live(name, parts, prefix_bytes)
            if rows is not None:
                yield decoder.framed(rows)
                count += len(rows.key_ends)
    except Irregular:
        yield from of_pairs(decoder, name, _behind(count, pairs_of([run])), prefix_bytes)


def _behind(count: int, pairs: Pairs) -> Pairs:
    """Yield all but the first ones."""
    for keys, values in pairs:
        if count < len(keys):
            yield keys[count:], values[count:]
        count = max(0, count - len(keys))


def _pieces(blocks: Iterator[Block], run: Run, size: int) -> Iterator[_Records]:
    """Yield the records in some blocks of which the keys are in a run, so many bytes at a time."""
    start, end = run
    while held := [*_some(blocks, size)]:
        records = _decoded(held)
        ordered = records.ordered
        if not (ordered[1:] > ordered[:-1]).all():
            raise Irregular
        if len(ordered):
            records = records.some(records.before(start), records.before(end))
        if len(records.rows):
            yield records


def _some(blocks: Iterator[Block], size: int) -> Iterator[Block]:
    """Yield blocks until they have so many bytes."""
    for block in blocks:
        if block.end > _MOST_BLOCK:
            raise Irregular
        yield block
        size -= block.end
        if size <= 0:
            return


def _decoded(blocks: Sequence[Block]) -> _Records:
    """Return the records in some blocks, whatever their order is.

    RocksDB: DecodeEntry in table/block_based/block_util.h.
    """
    data, heads, block_starts = _heads(blocks)
    count = len(heads)
    if not count:
        return _Records(np.empty((0, _BEHIND), np.uint8), heads, heads, data)
    octets = np.frombuffer(data, np.uint8)
    shared, unshared = octets[heads], octets[heads + 1]
    key_starts, sizes = heads + 3, octets[heads + 2].astype(np.int64)
    is_long = sizes >= _LONG
    if is_long.any():
        sizes += np.where(is_long, (octets[key_starts].astype(np.int64) - 1) * _LONG, 0)
        key_starts += is_long
    lengths = shared + unshared
    before = np.zeros(count, np.uint8)
    before[1:] = lengths[:-1]
    firsts = np.searchsorted(heads, block_starts)
    before[firsts[firsts < count]] = 0  # an empty block has none
    width = int(lengths.max())
    if (
        (shared | unshared).max() >= _LONG
        or (shared > before).any()
        or lengths.min() < _MARK
        or count * width > _MOST_SHARED * len(data)
    ):
        raise Irregular
    keys = _whole_keys(octets, key_starts, shared, width)
    user_lengths = lengths - np.uint8(_MARK)
    marks = numbers_at(keys.ravel(), np.arange(count) * width + user_lengths, np.dtype("<u8"))
    rows = np.empty((count, width + 1), np.uint8)
    key = slice(width - _MARK)
    is_key = np.arange(width, dtype=np.uint8)[key] < user_lengths[:, None]
    np.multiply(keys[:, key], is_key, out=rows[:, key])
    rows[:, width - _MARK] = user_lengths
    rows[:, width - _MARK + 1 :] = (~marks).astype(">u8").view(np.uint8).reshape(-1, _MARK)
    values = key_starts + unshared
    return _Records(rows, values, values + sizes, data)


def _heads(blocks: Sequence[Block]) -> tuple[bytes, Ints, Ints]:
    """Return the bytes of some blocks, where records start there, and where each block starts.

    Before and behind the bytes is as much as a key may have beyond them.
    """
    data = b"".join(
        [bytes(_LONG), *(block.octets[: block.end] for block in blocks), bytes(2 * _LONG)]
    )
    starts = np.cumsum([_LONG, *(block.end for block in blocks)])
    heads = _heads_by_restarts(blocks, np.frombuffer(data, np.uint8), starts)
    if heads is None:
        heads = _heads_in_order(blocks, starts)
    return data, heads, starts[:-1]


def _heads_by_restarts(blocks: Sequence[Block], octets: Bytes, block_starts: Ints) -> Ints | None:
    """Return the places of records, found in all runs between two restarts side by side.

    A restart is where RocksDB writes a whole key, at every 16th record. None where a block has few
    of them, or they are no places of records: reading in order needs none.
    """
    restarts = [np.frombuffer(block.octets, "<u4", block.restarts, block.end) for block in blocks]
    sizes = np.array([block.restarts for block in blocks])
    pos = np.concatenate(restarts).astype(np.int64) + np.repeat(block_starts[:-1], sizes)
    bounds = np.append(pos[1:], block_starts[-1])
    firsts = np.cumsum(sizes) - sizes
    if len(pos) < _LEAST_RUNS or not sizes.all() or (pos[firsts] != block_starts[:-1]).any():
        return None
    found: list[Ints] = []
    while len(found) < _MOST_IN_A_RUN:
        if (pos > bounds).any():
            return None
        is_open = pos < bounds
        pos, bounds = pos[is_open], bounds[is_open]
        if not len(pos):
            return np.sort(np.concatenate(found), kind="stable")
        found.append(pos)
        sizes = octets[pos + 2].astype(np.int64)
        is_long = sizes >= _LONG
        if is_long.any():
            high = octets[pos + 3].astype(np.int64)
            if (high[is_long] >= _LONG).any():
                raise Irregular
            sizes += np.where(is_long, (high - 1) * _LONG + 1, 0)
        pos = pos + 3 + octets[pos + 1] + sizes
    return None


def _heads_in_order(blocks: Sequence[Block], block_starts: Ints) -> Ints:
    """Return the places of records, found one after the other."""
    places: list[int] = []
    counts = []
    for octets, end, _ in blocks:
        pos, before = 0, len(places)
        while pos < end:
            size, key = octets[pos + 2], pos + 3
            if size >= _LONG:
                high, key = octets[key], key + 1
                if high >= _LONG:
                    raise Irregular
                size += (high - 1) * _LONG
            places.append(pos)
            pos = key + octets[pos + 1] + size
        if pos != end:
            raise Irregular
        counts.append(len(places) - before)
    return np.array(places, np.int64) + np.repeat(block_starts[:-1], counts)


def _whole_keys(octets: Bytes, starts: Ints, shared: Bytes, width: int) -> Bytes:
    """Return a row for each key, with what it shares with others; behind it may be anything."""
    row = np.dtype(f"V{width}")  # NumPy copies a record at once, and a row byte by byte
    whole = numbers_at(octets, starts - shared, row)
    keys = whole.view(np.uint8).reshape(-1, width)
    numbers = np.arange(len(starts))
    depths = numbers - np.maximum.accumulate(np.where(shared == 0, numbers, 0))
    if depths.max() > _MOST_DEPTH:
        raise Irregular
    columns = np.arange(width, dtype=np.uint8)
    by_depth = np.argsort(depths.astype(np.uint8), kind="stable")
    for first, end in pairwise(np.cumsum(np.bincount(depths)).tolist()):
        chosen = by_depth[first:end]
        some = keys[chosen]
        before = whole[chosen - 1].view(np.uint8).reshape(some.shape)
        np.copyto(some, before, where=columns < shared[chosen, None])
        whole[chosen] = some.view(row)[:, 0]
    return keys


def _side_by_side(files: Sequence[Iterator[_Records]]) -> Iterator[list[_Records]]:
    """Yield the parts of the files for one range of keys after another, with all its records."""
    held = {number: records for number, file in enumerate(files) for records in islice(file, 1)}
    open_ = set(held)
    while open_:
        width = max(records.width for records in held.values())
        held = {number: records.widened(width) for number, records in held.items()}
        last_keys = {number: held[number].last_key for number in open_}
        bound = min(last_keys.values())
        parts = []
        for number, records in [*held.items()]:
            count = records.before(bound)
            if count:
                parts.append(records.some(0, count))
                held[number] = records.some(count)
            if count == len(records.rows):  # An open file keeps its last key.
                del held[number]
        yield parts
        for number, last_key in last_keys.items():
            if last_key != bound:
                continue
            if len(held[number].rows) > _MOST_VERSIONS:
                raise Irregular
            open_.discard(number)
            for records in islice(files[number], 1):
                open_.add(number)
                held[number] = _joined(held[number], records)
    yield [*held.values()]


def _joined(records: _Records, more: _Records) -> _Records:
    """Return records of a file and those behind them."""
    width = max(records.width, more.width)
    records, more = records.widened(width), more.widened(width)
    if records.ordered[-1:] >= more.ordered[:1]:
        raise Irregular
    return _gathered([records, more])


def _gathered(parts: Sequence[_Records]) -> _Records:
    """Return all of some records, of one width, as they come; of their bytes only the values."""
    starts, ends, pieces, size = [], [], [], 0
    for part in parts:
        first, last = int(part.value_starts[0]), int(part.value_ends[-1])
        pieces.append(part.data[first:last])
        starts.append(part.value_starts + (size - first))
        ends.append(part.value_ends + (size - first))
        size += last - first
    rows = np.concatenate([part.rows for part in parts])
    return _Records(rows, np.concatenate(starts), np.concatenate(ends), b"".join(pieces))


def _live(name: str, parts: Sequence[_Records], prefix_bytes: int) -> FramedRows | None:
    """Return the entries that are there, of all records with some keys."""
    if not parts:
        return None
    records = _gathered(parts)
    rows, value_starts, value_ends, data = records
    if len(parts) > 1:
        order = np.argsort(records.ordered, kind="stable")
        rows, value_starts, value_ends = rows[order], value_starts[order], value_ends[order]
    width = records.width
    kinds = ~rows[:, -1]
    is_older = np.zeros(len(rows), np.bool_)
    keys = _ordered(rows[:, : width + 1])
    np.equal(keys[1:], keys[:-1], out=is_older[1:])
    older = np.flatnonzero(is_older)
    if (rows[older, -_MARK:] == rows[older - 1, -_MARK:]).all(axis=1).any():
        raise Irregular
    is_merge = kinds == MERGE
    is_live = (kinds == VALUE) | is_merge
    if (
        not (is_live | (kinds == DELETION) | (kinds == SINGLE_DELETION)).all()
        or (is_merge[:-1] & is_older[1:]).any()
    ):
        raise Irregular
    is_live &= ~is_older
    if not is_live.all():
        rows, value_starts, value_ends = rows[is_live], value_starts[is_live], value_ends[is_live]
    count = len(rows)
    if not count:
        return None
    starts = np.arange(count) * rows.shape[1]
    ends = starts + rows[:, width]
    key_data = rows.tobytes()
    key_groups = rows[:, :prefix_bytes].astype(np.int32) @ (256 ** np.arange(prefix_bytes))[::-1]

    def error(number: int, cause: Exception) -> SavepointError:
        return not_an_entry(name, key_data[starts[number] : ends[number]], cause)

    if len(parts) > 1:
        data, value_starts, value_ends = _in_order(data, value_starts, value_ends)
    return FramedRows(
        key_data + data,
        key_groups.astype(np.int32),
        np.minimum(starts + prefix_bytes, ends),
        ends,
        value_starts + len(key_data),
        value_ends + len(key_data),
        error,
    )


def _in_order(data: bytes, starts: Ints, ends: Ints) -> tuple[bytes, Ints, Ints]:
    """Return the bytes between these places, one after the other, and where they are then."""
    sizes = ends - starts
    size = int(sizes[0])
    if size and (sizes == size).all():
        data = sliding_window_view(np.frombuffer(data, np.uint8), size)[starts].tobytes()
    else:
        data = b"".join([data[start:end] for start, end in zip(starts.tolist(), ends.tolist())])
    new_ends = np.cumsum(sizes)
    return data, new_ends - sizes, new_ends
