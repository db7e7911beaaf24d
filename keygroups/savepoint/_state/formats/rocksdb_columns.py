"""RocksDB's files as columns: records decoded, put in order and told apart thousands at a time.

What is unusual is left to the reader of single records, which reads from the start, and checks all
again: keys of 128 bytes and values of 16 KiB, deleted ranges, lists with parts in several records,
more files than a few dozen, and all damage.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from keygroups.errors import SavepointError
from keygroups.savepoint._columns.byte_arrays import spans
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
_WORD = 8  # bytes
_BEHIND = 2 * _WORD  # bytes behind a key in a row
_FOUR = np.dtype("<u4")

Bytes = NDArray[np.uint8]
Run = tuple[bytes, bytes]


class Irregular(Exception):
    """These records are left to the reader of single ones."""


class _Records(NamedTuple):
    """Records in order: a row for each, and where its value is in `data`.

    A row has the key with zeros behind it, its length in a byte with zeros behind it, and its
    sequence number and kind, of which each bit is inverted: so rows compare as RocksDB orders
    records, the newest of a key first. Each of the three takes whole words of eight bytes.
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

    def place(self, number: int) -> tuple[bytes, bytes]:
        """Return the key of a record, and what is behind it in its row: they are in order."""
        row = bytes(self.rows[number])
        return row[: row[self.width]], row[self.width :]

    def before(self, key: bytes) -> int:
        """Return the number of records with lower keys."""
        return self._number_of(key, b"\0", "left")

    def through(self, key: bytes) -> int:
        """Return the number of records with keys that are not higher."""
        return self._number_of(key, b"\xff", "right")

    def _number_of(self, key: bytes, mark: bytes, side: Literal["left", "right"]) -> int:
        # A longer key is behind all that it starts with, as its length is.
        padded, length = key[: self.width].ljust(self.width, b"\0"), min(len(key), 0xFF)
        row = padded + bytes([length]) + bytes(_MARK - 1) + _MARK * mark
        wanted = np.frombuffer(row, f"S{len(row)}")
        return int(np.searchsorted(self.ordered, wanted, side)[0])

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


class _Heads(NamedTuple):
    """The places of records: those of whole keys, then those that share with these, and so on.

    `bounds` are the ends of those of each depth, `ranks` the numbers of all in order.
    """

    places: Ints
    bounds: list[int]
    ranks: Ints


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
    """Yield the records in some blocks of which the keys are in a run, so many bytes at a time.

    All records of a key are in one piece: what the next block starts with tells whether the last
    key has more.
    """
    start, end = run
    blocks = (block for block in blocks if block.end)
    ahead = [*islice(blocks, 1)]
    held: _Records | None = None
    last = (b"", b"")
    while ahead:
        records = _decoded([*_some(chain(ahead, blocks), size)])
        ahead = [*islice(blocks, 1)]
        ordered = records.ordered
        if not (ordered[1:] > ordered[:-1]).all() or records.place(0) <= last:
            raise Irregular
        last = records.place(-1)
        if held is not None:
            records, held = _gathered(_of_one_width([held, records])), None
        if ahead and _first_key(ahead[0]) == last[0]:
            count = records.before(last[0])
            records, held = records.some(0, count), records.some(count)
            if len(held.rows) > _MOST_VERSIONS:
                raise Irregular
        records = records.some(records.before(start), records.before(end))
        if len(records.rows):
            yield records


def _first_key(block: Block) -> bytes:
    """Return the first key of a block, which is whole where it is one that is read here."""
    _, unshared, size = block.octets[:3]
    start = 3 + (size >= _LONG)
    return block.octets[start : start + max(0, unshared - _MARK)]


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

    Keys are put together depth by depth, eight bytes at once: what a key shares with the one
    before comes from there by a mask.
    RocksDB: DecodeEntry in table/block_based/block_util.h.
    """
    data, block_starts = _joined_blocks(blocks)
    octets = np.frombuffer(data, np.uint8)
    heads = _heads_by_restarts(blocks, octets, block_starts)
    if heads is None:
        heads = _heads_in_order(blocks, octets, block_starts)
    places, bounds, ranks = heads
    count = len(places)
    sizes_of_parts = numbers_at(octets, places, _FOUR).view(np.uint8).reshape(-1, 4)
    shared, unshared, low, high = np.ascontiguousarray(sizes_of_parts.T)
    key_starts, sizes = places + 3, low.astype(np.int64)
    is_long = low >= _LONG
    if is_long.any():
        sizes += np.where(is_long, (high.astype(np.int64) - 1) * _LONG, 0)
        key_starts += is_long
    lengths = shared + unshared
    numbers = np.arange(count)
    in_order = np.empty(count, np.int64)
    in_order[ranks] = numbers
    firsts = bounds[0]
    before = in_order[ranks[firsts:] - 1]
    words = (int(lengths.max()) - _MARK + _WORD - 1) // _WORD + 2
    size = words * _WORD
    if (
        (shared | unshared).max() >= _LONG
        or (shared[firsts:] > lengths[before]).any()
        or lengths.min() < _MARK
        or count * size > _MOST_SHARED * len(data)
    ):
        raise Irregular
    row = np.dtype(f"V{size}")  # NumPy copies a record at once, and a row byte by byte
    masks = (np.tri(size + 1, size, -1, np.uint8) * np.uint8(0xFF)).view(row)[:, 0]
    whole = numbers_at(octets, key_starts - shared, row)
    rows = _words(whole)
    for first, end in pairwise(bounds):
        some = rows[first:end]
        mask = _words(masks[shared[first:end]])
        some ^= (some ^ _words(whole[before[first - firsts : end - firsts]])) & mask
    user_lengths = lengths - np.uint8(_MARK)
    marks = numbers_at(whole.view(np.uint8), numbers * size + user_lengths, np.dtype("<u8"))
    rows &= _words(masks[user_lengths])
    rows[:, -2] = user_lengths
    rows.view(">u8")[:, -1] = ~marks
    starts = (key_starts + unshared)[in_order]
    ends = starts + sizes[in_order]
    return _Records(whole[in_order].view(np.uint8).reshape(-1, size), starts, ends, data)


def _words(rows: NDArray[np.void]) -> NDArray[np.uint64]:
    """Return the eight bytes after each other of each row as numbers."""
    return rows.view("<u8").reshape(len(rows), -1)


def _joined_blocks(blocks: Sequence[Block]) -> tuple[bytes, Ints]:
    """Return the bytes of some blocks, and where each starts there.

    Before and behind them is as much as a key may have beyond them.
    """
    octets = [block.octets for block in blocks]
    data = b"".join([bytes(_LONG), *octets, bytes(2 * _LONG)])
    return data, np.cumsum([_LONG, *map(len, octets[:-1])])


def _heads_by_restarts(
    blocks: Sequence[Block], octets: Bytes, block_starts: Ints
) -> _Heads | None:
    """Return the places of records, found in all runs between two restarts side by side.

    A restart is where RocksDB writes a whole key, at every 16th record. None where a block has few
    of them, or they are no places of such records: reading in order needs none.
    """
    block_ends, sizes = np.array([block[1:] for block in blocks]).T
    block_ends = block_starts + block_ends
    lasts = np.cumsum(sizes)
    if lasts[-1] < _LEAST_RUNS or not sizes.all():
        return None
    runs = np.arange(lasts[-1])
    stored = np.repeat(block_ends - 4 * (lasts - sizes), sizes) + 4 * runs
    pos = numbers_at(octets, stored, _FOUR) + np.repeat(block_starts, sizes)
    bounds = np.append(pos[1:], 0)
    bounds[lasts - 1] = block_ends
    if (pos[lasts - sizes] != block_starts).any() or (pos > bounds).any() or octets[pos].any():
        return None
    counts = np.zeros(len(pos), np.int64)
    found: list[Ints] = []
    of_runs: list[Ints] = []
    while len(found) < _MOST_IN_A_RUN:
        is_open = pos < bounds
        if not is_open.all():
            if (pos > bounds).any():
                return None
            counts[runs[~is_open]] = len(found)
            pos, bounds, runs = pos[is_open], bounds[is_open], runs[is_open]
        if not len(pos):
            break
        found.append(pos)
        of_runs.append(runs)
        parts = numbers_at(octets, pos, _FOUR)
        sizes = (parts >> 16 & 0xFF) + (parts >> 8 & 0xFF)
        is_long = parts & _LONG << 16 != 0
        if is_long.any():
            high = parts >> 24
            if (high[is_long] >= _LONG).any():
                raise Irregular
            sizes += np.where(is_long, (high - 1) * _LONG + 1, 0).astype(np.uint32)
        pos = pos + (sizes + 3)
    if len(pos):
        return None
    depths = [*map(len, found)]
    ranks = (np.cumsum(counts) - counts)[np.concatenate(of_runs)]
    ranks += np.repeat(np.arange(len(found)), depths)
    return _Heads(np.concatenate(found), np.cumsum(depths).tolist(), ranks)


def _heads_in_order(blocks: Sequence[Block], octets: Bytes, block_starts: Ints) -> _Heads:
    """Return the places of records, found one after the other."""
    places: list[int] = []
    counts = []
    for block, end, _ in blocks:
        pos, before = 0, len(places)
        while pos < end:
            size, key = block[pos + 2], pos + 3
            if size >= _LONG:
                high, key = block[key], key + 1
                if high >= _LONG:
                    raise Irregular
                size += (high - 1) * _LONG
            places.append(pos)
            pos = key + block[pos + 1] + size
        if pos != end:
            raise Irregular
        counts.append(len(places) - before)
    heads = np.array(places, np.int64) + np.repeat(block_starts, counts)
    numbers = np.arange(len(heads))
    is_whole = octets[heads] == 0
    if not is_whole[np.isin(heads, block_starts)].all():
        raise Irregular
    depths = numbers - np.maximum.accumulate(np.where(is_whole, numbers, 0))
    if depths.max() > _MOST_DEPTH:
        raise Irregular
    by_depth = np.argsort(depths.astype(np.uint8), kind="stable")
    return _Heads(heads[by_depth], np.cumsum(np.bincount(depths)).tolist(), by_depth)


def _side_by_side(files: Sequence[Iterator[_Records]]) -> Iterator[list[_Records]]:
    """Yield the parts of the files for one range of keys after another, with all its records."""
    held: dict[int, _Records] = {}
    wanted = [*range(len(files))]
    while True:
        for number in wanted:
            for records in islice(files[number], 1):
                held[number] = records
        if not held:
            return
        held = dict(zip(held, _of_one_width(held.values())))
        bound = min(records.place(-1)[0] for records in held.values())
        parts, wanted = [], []
        for number, records in [*held.items()]:
            count = records.through(bound)
            if count:
                parts.append(records.some(0, count))
            if count < len(records.rows):
                held[number] = records.some(count)
            else:
                del held[number]
                wanted.append(number)
        yield parts


def _of_one_width(parts: Collection[_Records]) -> list[_Records]:
    """Return records with rows of one width."""
    width = max(records.width for records in parts)
    return [records.widened(width) for records in parts]


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
    rows, value_starts, value_ends, data = parts[0] if len(parts) == 1 else _gathered(parts)
    numbers = np.arange(len(rows))
    if len(parts) > 1:
        numbers = np.argsort(_ordered(rows), kind="stable")
        rows = _chosen(rows, numbers)
    kinds, sizes = ~rows[:, -1], rows[:, -_BEHIND]
    is_older = _have_older_keys(rows)
    older = np.flatnonzero(is_older)
    if (rows[older, -_MARK:] == rows[older - 1, -_MARK:]).all(axis=1).any():
        raise Irregular
    is_merge = kinds == MERGE
    is_live = (kinds == VALUE) | is_merge
    if (
        sizes.min() < prefix_bytes
        or not (is_live | (kinds == DELETION) | (kinds == SINGLE_DELETION)).all()
        or (is_merge[:-1] & is_older[1:]).any()
    ):
        raise Irregular
    is_live &= ~is_older
    if not is_live.all():
        rows, numbers = _chosen(rows, np.flatnonzero(is_live)), numbers[is_live]
    count, size = rows.shape
    if not count:
        return None
    if len(parts) > 1:
        data, value_starts, value_ends = _in_order(data, value_starts, value_ends, numbers)
    elif count < len(value_starts):
        value_starts, value_ends = value_starts[numbers], value_ends[numbers]
    starts = np.arange(count) * size
    ends = starts + rows[:, -_BEHIND]
    key_data = rows.tobytes()
    key_groups = np.zeros(count, np.int32)
    for byte in range(prefix_bytes):
        key_groups = key_groups << 8 | rows[:, byte]

    def error(number: int, cause: Exception) -> SavepointError:
        return not_an_entry(name, key_data[starts[number] : ends[number]], cause)

    return FramedRows(
        key_groups,
        key_data,
        np.minimum(starts + prefix_bytes, ends),
        ends,
        data,
        value_starts,
        value_ends,
        error,
    )


def _chosen(rows: Bytes, numbers: Ints) -> Bytes:
    """Return the rows of some numbers: NumPy copies a record at once, and a row byte by byte."""
    size = rows.shape[1]
    chosen: Bytes = rows.view(f"V{size}")[numbers, 0].view(np.uint8).reshape(-1, size)
    return chosen


def _have_older_keys(rows: Bytes) -> NDArray[np.bool_]:
    """Return whether the key of each row is that of the row before it."""
    words = rows.view("<u8")
    is_older = np.ones(len(rows), np.bool_)
    is_older[:1] = False
    for word in reversed(range(words.shape[1] - 1)):  # the last bytes of most keys differ
        is_older[1:] &= words[1:, word] == words[:-1, word]
        if not is_older.any():
            break
    return is_older


def _in_order(data: bytes, starts: Ints, ends: Ints, numbers: Ints) -> tuple[bytes, Ints, Ints]:
    """Return the bytes between the places of some numbers, and where they are then.

    The places are in order, the numbers need not be.
    """
    sizes = (ends - starts)[numbers]
    size = int(sizes[0])
    if size and (sizes == size).all():
        data = numbers_at(data, starts[numbers], np.dtype(f"V{size}")).tobytes()
    else:
        data = spans(data, starts, ends, numbers).buffers()[2].to_pybytes()
    new_ends = np.cumsum(sizes)
    return data, new_ends - sizes, new_ends
