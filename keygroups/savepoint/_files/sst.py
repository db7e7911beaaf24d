"""One SST file of RocksDB: its properties, its records in order, its range deletions.

The format is RocksDB's block-based table, format version 0 to 5; where memory is managed, Flink
1.10 to 1.13 write 0. Numbers are little endian; varints have 7 bits a byte, the lowest first. Each
block that is read has its checksum verified. The footer has none: its padding has to be zeros, and
its two places those where RocksDB puts such blocks. A file written without checksums (kNoChecksum,
which only a job's own options choose) is read as RocksDB reads it: a flipped bit in its blocks may
give another entry.
`FORMAT.md` in `keygroups/savepoint` describes the format. Where a method names a class of RocksDB
alone, this is in table/block_based/block.cc.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain, islice, repeat
from operator import lt, neg
from typing import NamedTuple

from keygroups._serializers.base import TRUNCATED
from keygroups._serializers.scalars import read_varint
from keygroups.errors import SavepointError
from keygroups.savepoint._files.checksums import CRC32C, block_checksum
from keygroups.savepoint._files.compression import decompress_block
from keygroups.savepoint._files.files import CHUNK, OpenStream

_MAGIC, _LEGACY_MAGIC = 0x88E241B785F4CFF7, 0xDB4775248B80FB57
_FOOTER = 53  # bytes: kind of checksum 1, two places padded to 40, version 4, magic 8
_LEGACY_FOOTER = 48  # bytes: two places padded to 40, magic 8
_PLACES = 40
_TRAILER = 5  # bytes after a block: compression 1, checksum 4
_FORMAT_VERSIONS = range(1, 6)
_SIZES_AS_VARINTS = 2
"""First format version whose compressed blocks say their size as a varint.

RocksDB: GetCompressFormatForVersion.
"""
_PROPERTIES, _RANGE_DELETIONS = b"rocksdb.properties", b"rocksdb.range_del"
_DICTIONARY = b"rocksdb.compression_dict"
_DATA_SIZE = b"rocksdb.data.size"
_FAMILY = b"rocksdb.column.family.name"
_INDEX_TYPE = b"rocksdb.block.based.table.index.type"
_IS_USER_KEY = b"rocksdb.index.key.is.user.key"
_IS_DELTA_ENCODED = b"rocksdb.index.value.is.delta.encoded"
_GLOBAL_NUMBER = b"rocksdb.external_sst_file.global_seqno"
_BINARY_SEARCH, _TWO_LEVEL = 0, 2  # types of index; RocksDB: BlockBasedTableOptions
_KNOWN = {*(_DATA_SIZE, _FAMILY, _INDEX_TYPE, _IS_USER_KEY, _IS_DELTA_ENCODED, _GLOBAL_NUMBER)}
_MAX_SHARING = 256
"""Bytes that a block's keys may take over from the keys before, in sizes of the block.

RocksDB writes every 16th key whole unless a job's options say otherwise: 15 keys share bytes.
"""

TAIL = 64 << 10
"""Bytes at the end of a file that one request asks for: the blocks that say where data is."""
_AHEAD = 16  # windows asked for ahead of the one that is read
_HELD = 1 << 12  # entries of a block that are decoded at once

_u32 = struct.Struct("<I").unpack_from
_u64 = struct.Struct("<Q").unpack_from
_version_and_magic = struct.Struct("<IQ").unpack_from

DELETION, VALUE, MERGE, SINGLE_DELETION = 0, 1, 2, 7
"""Types of a record: the low byte of its mark. RocksDB: ValueType in db/dbformat.h."""

Runs = Sequence[tuple[bytes, bytes]]
"""Half-open ranges of keys, each (first, past the last), in ascending order."""
BlockSpan = tuple[int, int]
"""Offset and size of a block in bytes; the trailer after it does not count."""

Record = tuple[bytes, int, bytes]
"""One version of a key: the key, the negated mark, the value.

The mark is the version's sequence number, times 256, plus its type. As it is negated, records in
ascending order have the newest version of a key first: VALUE number 6 is -1537, number 5 -1281.
"""


class Block(NamedTuple):
    """A decompressed block: its entries up to `end`, so many restarts, perhaps its trailer."""

    octets: bytes
    end: int
    restarts: int


class RangeDeletion(NamedTuple):
    """Keys from `start` up to and without `end`, deleted as of `sequence`.

    RocksDB writes it whole into each file that has a part of it, and it counts only between the
    first and the last key of its file: `is_bounded` says that it ends there. Behind these keys a
    newer record may have number 0, which RocksDB gives to those that no older one can follow.
    """

    start: bytes
    end: bytes
    sequence: int
    is_bounded: bool = False

    def within(self, start: bytes, end: bytes) -> RangeDeletion:
        """Return it as far as it is between the bounds of its file."""
        return RangeDeletion(max(start, self.start), min(end, self.end), self.sequence, True)


class SstFile:
    """An SST file that is open; SavepointError for one that is damaged or not read here.

    RocksDB: Footer::DecodeFrom in table/format.cc.
    """

    def __init__(self, stream: OpenStream) -> None:
        self._stream = stream
        end = stream.size - _FOOTER
        if end < 0:
            raise self._error(0, "this is no SST file")
        footer = stream.read(end, stream.size)
        version, magic = _version_and_magic(footer, 41)
        kind, places = footer[0], footer[1:41]
        if magic == _LEGACY_MAGIC:
            end = stream.size - _LEGACY_FOOTER
            version, kind, places = 0, CRC32C, footer[-_LEGACY_FOOTER:][:_PLACES]
        elif magic != _MAGIC or version not in _FORMAT_VERSIONS:
            raise self._error(end, "this is no SST file of a known version")
        self._has_varints = version >= _SIZES_AS_VARINTS
        self._checksum = block_checksum(kind, stream.name)
        meta, pos = self._place(places, 0)
        self._index, pos = self._place(places, pos)
        if (
            any(places[pos:])
            or sum(meta) + _TRAILER != end
            or sum(self._index) + _TRAILER > meta[0]
        ):
            raise self._error(end, "the footer is damaged")
        blocks: dict[bytes, BlockSpan] = {}
        for name, value in self._pairs(*meta):
            place, _ = self._place(value, 0)
            if place == self._index:
                raise self._error(end, "the footer is damaged: its index is another block")
            if name == _DICTIONARY:
                raise self._error(
                    place[0], "blocks compressed with a dictionary are not read here"
                )
            if name in (_PROPERTIES, _RANGE_DELETIONS):
                blocks[name] = place
        self._read_properties(blocks.get(_PROPERTIES))
        if self._index[0] < self._data_size:
            raise self._error(end, "the footer is damaged: its index is among the data")
        self.range_deletions = list(self._read_deletions(blocks.get(_RANGE_DELETIONS)))

    def bound_deletions(self, start: bytes, end: bytes) -> None:
        """Have range deletions count from the first key of the file up to `end`, past its last.

        RocksDB: TruncatedRangeDelIterator in db/range_del_aggregator.cc.
        """
        self.range_deletions = [one.within(start, end) for one in self.range_deletions]

    def ask_index(self) -> None:
        """Ask for the index, where that takes a while, and do not wait for it."""
        offset, size = self._index
        self._stream.ahead(offset, offset + size + _TRAILER)

    def records(self, runs: Runs) -> Iterator[list[Record]]:
        """Return an iterator over lists of the records whose keys are in some runs, in order.

        The call itself reads the index up to the first blocks and asks for these.
        """
        return self._records(self._places(runs), runs)

    def blocks(self, runs: Runs) -> Iterator[Block]:
        """Return an iterator over the blocks that may have keys of some runs.

        The call itself asks for the first window of them.
        """
        windows = self._windows(runs)
        first = [*islice(windows, 1)]
        return chain.from_iterable(map(self._blocks_of, chain(first, windows)))

    def _blocks_of(self, window: Sequence[BlockSpan]) -> Iterator[Block]:
        """Return an iterator over the blocks of a window, which is read at once."""
        start = window[0][0]
        last, size = window[-1]
        try:
            octets = self._stream.read(start, last + size + _TRAILER)
        except SavepointError:  # each of them alone says which one it is
            return (self._block(*place) for place in window)
        return (
            self._checked(offset, octets[offset - start : offset - start + size + _TRAILER], size)
            for offset, size in window
        )

    def _places(self, runs: Runs) -> Iterator[BlockSpan]:
        """Return an iterator over the places of the blocks that may have keys of some runs.

        The call itself asks for the first window of them.
        """
        windows = self._windows(runs)
        first = [*islice(windows, 1)]
        return chain.from_iterable(chain(first, windows))

    def _windows(self, runs: Runs) -> Iterator[list[BlockSpan]]:
        """Yield windows: places of neighbouring blocks that may have keys of some runs.

        One request fetches a window. A reader that stops early should have fetched little, one
        that goes on should not wait: the bytes of a window, and the windows asked for ahead,
        double as it goes (256 KiB, 512 KiB ... ; 1, 2, 4, 8, 16).
        """
        stream = self._stream
        asked: deque[list[BlockSpan]] = deque()
        window: list[BlockSpan] = []
        start = end = 0
        most, ahead = min(CHUNK, stream.window), 1
        for offset, size in self._wanted(runs):
            past = offset + size + _TRAILER
            if window and (offset != end or past - start > most):
                stream.ahead(start, end)
                asked.append(window)
                window = []
                while len(asked) > ahead or (asked and not stream.has_room):
                    yield asked.popleft()
                    ahead = min(2 * ahead, _AHEAD)
                most = min(2 * most, stream.window)
            if not window:
                start = offset
            window.append((offset, size))
            end = past
        if window:
            stream.ahead(start, end)
            asked.append(window)
        yield from asked

    def _wanted(self, runs: Runs) -> Iterator[BlockSpan]:
        """Yield the places of the blocks that may have keys of some runs."""
        ahead = iter(runs)
        run = next(ahead, None)
        if run is None:
            return
        start, end = run
        for highest, offset, size in self._data_blocks(start):
            if highest < start:
                continue
            yield offset, size
            while highest >= end:
                run = next(ahead, None)
                if run is None:
                    return
                start, end = run

    def _records(self, places: Iterator[BlockSpan], runs: Runs) -> Iterator[list[Record]]:
        """Yield the records in some blocks whose keys are in some runs.

        A key in a block ends in its mark, little endian: `b"k" + 01 05 00 00 00 00 00 00` is
        sequence number 5, type VALUE, of the key b"k", and becomes (b"k", -0x501, value). Keys
        ascend, and versions of one key from the newest: where whole blocks of other keys ascend,
        C code sees that, and only else the loop compares marks. Blocks and runs are then walked
        side by side, as a block may begin before a run, and hold several.
        RocksDB: ParseInternalKey in db/dbformat.h.
        """
        ahead = iter(runs)
        start = end = b""
        last, last_order = b"", -(1 << 64)
        entries = ((at, *some) for at, size in places for some in self._entries(at, size))
        for offset, keys, values in entries:
            ends = b"".join([key[-8:] for key in keys])
            if len(ends) < 8 * len(keys):
                raise self._error(offset, f"a key of {min(map(len, keys))} bytes")
            user_keys = [key[:-8] for key in keys]
            marks = struct.unpack(f"<{len(keys)}Q", ends)
            records = [*zip(user_keys, map(neg, marks), values)]
            if user_keys[0] <= last or not all(map(lt, user_keys, islice(user_keys, 1, None))):
                for user_key, order, _ in records:
                    if user_key <= last and (user_key < last or order <= last_order):
                        raise self._error(offset, "the keys are not in order")
                    last, last_order = user_key, order
            last, last_order, _ = records[-1]
            pos = 0
            while pos < len(records):
                while user_keys[pos] >= end:
                    run = next(ahead, None)
                    if run is None:
                        return
                    start, end = run
                pos = bisect_left(user_keys, start, pos)
                past = bisect_left(user_keys, end, pos)
                if past > pos:
                    yield records[pos:past]
                pos = past

    def _read_properties(self, place: BlockSpan | None) -> None:
        """Set what the file's properties say of its data and its index.

        RocksDB: ReadTablePropertiesHelper in table/meta_blocks.cc.
        """
        entries = self._pairs(*place) if place else ()
        properties = {name: value for name, value in entries if name in _KNOWN}
        index_type = int.from_bytes(properties.get(_INDEX_TYPE, b""), "little")
        if index_type not in (_BINARY_SEARCH, _TWO_LEVEL):
            raise self._error(
                0, f"an SST file with an index of type {index_type} is not read here"
            )
        self._is_two_level = index_type == _TWO_LEVEL
        if any(properties.get(_GLOBAL_NUMBER, b"")):
            raise self._error(0, "an ingested SST file, with a global number, is not read here")
        try:
            self._data_size, _ = read_varint(properties.get(_DATA_SIZE, b""), 0, 64)
        except (*TRUNCATED, ValueError):
            raise self._error(0, "the properties do not say where the data ends") from None
        self.column_family = properties.get(_FAMILY, b"")
        self._has_user_keys = any(properties.get(_IS_USER_KEY, b""))
        self._has_deltas = any(properties.get(_IS_DELTA_ENCODED, b""))

    def _read_deletions(self, place: BlockSpan | None) -> Iterator[RangeDeletion]:
        """Yield the range deletions. RocksDB: RangeTombstone in db/dbformat.h."""
        if place is None:
            return
        offset, room = place
        for key, end in self._pairs(*place):
            room -= len(key) + len(end)
            if room < 0:  # RocksDB neither compresses the block nor lets keys share bytes in it
                raise self._error(offset, "range deletions of more bytes than their block has")
            if len(key) < 8:
                raise self._error(offset, f"a range deletion with a key of {len(key)} bytes")
            (mark,) = _u64(key, len(key) - 8)
            yield RangeDeletion(key[:-8], end, mark >> 8)

    def _data_blocks(self, lowest: bytes) -> Iterator[tuple[bytes, int, int]]:
        """Yield a separating key, the offset and the size of each data block.

        No key in the block is above the separator, none in a later block below it. Parts of an
        index of two levels are left out where all keys are below `lowest`.
        """
        index = self._index_entries(*self._index)
        if self._is_two_level:
            index = self._partition_entries(index, lowest)
        free = 0
        for key, (offset, size) in index:
            if offset < free or size < 0 or offset + size + _TRAILER > self._data_size:
                raise self._damaged_index(f"a block of {size} bytes at {offset}")
            free = offset + size + _TRAILER
            if not self._has_user_keys:
                if len(key) < 8:
                    raise self._damaged_index(f"a key of {len(key)} bytes")
                key = key[:-8]
            yield key, offset, size

    def _partition_entries(
        self, partitions: Iterator[tuple[bytes, BlockSpan]], lowest: bytes
    ) -> Iterator[tuple[bytes, BlockSpan]]:
        """Yield the entries of the second level of an index, whose blocks `partitions` names.

        These blocks stand between the data and the first level.
        RocksDB: PartitionedIndexBuilder in table/block_based/index_builder.cc.
        """
        free, end = self._data_size, self._index[0]
        for key, (offset, size) in partitions:
            if offset < free or size < 0 or offset + size + _TRAILER > end:
                raise self._damaged_index(f"a part of {size} bytes at {offset}")
            free = offset + size + _TRAILER
            if key >= lowest:
                yield from self._index_entries(offset, size)

    def _index_entries(self, offset: int, size: int) -> Iterator[tuple[bytes, BlockSpan]]:
        """Return an iterator over the separators and places in a block of the index."""
        if self._has_deltas:
            return self._delta_entries(offset, size)
        return ((key, self._place(value, 0)[0]) for key, value in self._pairs(offset, size))

    def _delta_entries(self, offset: int, size: int) -> Iterator[tuple[bytes, BlockSpan]]:
        """Yield separators and places out of an index block that writes places as differences.

        An entry is how many bytes its key shares with the last, how many follow, these bytes and
        the place. A key that shares none has the whole place, offset and size; else its block
        follows the last one, and only the difference of sizes is there, in zigzag:
        `00 02 "k1" 00 64` is a block of 100 bytes at 0, and `01 01 "2" 08` after it has key "k2",
        100 + 4 bytes, at 0 + 100 + 5, as a trailer takes 5.
        RocksDB: IndexBlockIter::DecodeCurrentValue.
        """
        block, end, _ = self._block(offset, size)
        most = _MAX_SHARING * end
        pos, key = 0, b""
        try:
            while pos < end:
                shared, unshared = block[pos], block[pos + 1]
                pos += 2
                if shared | unshared >= 0x80:
                    shared, pos = read_varint(block, pos - 2)
                    unshared, pos = read_varint(block, pos)
                most -= shared
                if shared > len(key) or most < 0:
                    raise ValueError(f"a key that shares {shared} bytes")
                key = key[:shared] + block[pos : pos + unshared]
                pos += unshared
                if shared:  # The block follows the one before.
                    delta = block[pos]
                    pos += 1
                    if delta >= 0x80:
                        delta, pos = read_varint(block, pos - 1, 64)
                    offset += size + _TRAILER
                    size += delta >> 1 ^ -(delta & 1)
                else:
                    offset, pos = read_varint(block, pos, 64)
                    size, pos = read_varint(block, pos, 64)
                if pos > end:
                    raise IndexError("an entry ends beyond its block")
                yield key, (offset, size)
        except (*TRUNCATED, ValueError) as error:
            raise self._damaged_index(str(error)) from None

    def _damaged_index(self, message: str) -> SavepointError:
        return self._error(self._index[0], f"the index is damaged: {message}")

    def _place(self, data: bytes, pos: int) -> tuple[BlockSpan, int]:
        """Return the place of a block, two varints from `pos` on, and the position after them.

        RocksDB: BlockHandle::DecodeFrom in table/format.cc.
        """
        try:
            offset, pos = read_varint(data, pos, 64)
            size, pos = read_varint(data, pos, 64)
        except (*TRUNCATED, ValueError) as error:
            raise self._error(0, f"the place of a block is damaged: {error}") from None
        return (offset, size), pos

    def _block(self, offset: int, size: int) -> Block:
        """Return the block at a place, once its checksum is verified, without compression.

        After its entries come the offsets of the keys that share nothing ("restarts"), and their
        count: reading in order needs neither.
        RocksDB: BlockFetcher::ReadBlockContents in table/block_fetcher.cc, Block::Block.
        """
        return self._checked(offset, self._stream.read(offset, offset + size + _TRAILER), size)

    def _checked(self, offset: int, block: bytes, size: int) -> Block:
        """Return a block of so many bytes and its trailer; the offset is for errors."""
        (checksum,) = _u32(block, size + 1)
        if self._checksum(block[:-4]) != checksum:
            raise self._error(offset, "the checksum of the block does not match")
        compression = block[size]
        if compression:
            block = decompress_block(
                compression, block[:size], self._stream.name, offset, self._has_varints
            )
            size = len(block)
        if size < 4:
            raise self._error(offset, f"a block of {size} bytes")
        (restarts,) = _u32(block, size - 4)
        if restarts >> 31:
            raise self._error(offset, "blocks with a hash index are not read here")
        end = size - 4 - 4 * restarts
        if end < 0:
            raise self._error(offset, f"{restarts} restarts in a block of {size} bytes")
        return Block(block, end, restarts)

    def _pairs(self, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries of a block one by one."""
        for keys, values in self._entries(offset, size):
            yield from zip(keys, values)

    def _entries(self, offset: int, size: int) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """Yield lists of the keys of a block, and of their values, at most `_HELD` at once.

        An entry is three varints, the rest of the key and the value: how many bytes the key
        shares with the last, the size of its rest, the size of the value. So
        `00 02 01 "k1" "a"`, `01 01 01 "2" "b"` are k1: a and k2: b.
        RocksDB: DecodeEntry in table/block_based/block_util.h.
        """
        block, end, _ = self._block(offset, size)
        most = _MAX_SHARING * end
        pos, key, key_size = 0, b"", 0
        try:
            while pos < end:
                keys: list[bytes] = []
                values: list[bytes] = []
                room = end  # Keys that share bytes may together be larger than the block.
                for _ in repeat(None, _HELD):
                    shared = block[pos]
                    unshared = block[pos + 1]
                    length = block[pos + 2]
                    start = pos + 3
                    if shared | unshared | length >= 0x80:
                        shared, start = read_varint(block, pos)
                        unshared, start = read_varint(block, start)
                        length, start = read_varint(block, start)
                        most -= shared
                        if most < 0:
                            raise ValueError(f"a key that shares {shared} bytes")
                        room -= shared + unshared + length
                    middle = start + unshared
                    pos = middle + length
                    if shared > key_size or pos > end:
                        raise IndexError("an entry ends beyond its block")
                    key = key[:shared] + block[start:middle]
                    key_size = shared + unshared
                    keys.append(key)
                    values.append(block[middle:pos])
                    if pos >= end or room < 0:
                        break
                yield keys, values
        except (*TRUNCATED, ValueError) as error:
            raise self._error(offset, f"the block is damaged: {error}") from None

    def _error(self, offset: int, message: str) -> SavepointError:
        return SavepointError(f"{self._stream.name}, offset {offset}: {message}")
