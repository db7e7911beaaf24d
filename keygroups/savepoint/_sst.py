"""One SST file of RocksDB: its properties, its records in order, its range deletions.

The format is RocksDB's block-based table, format version 2 to 5. Numbers are little endian;
varints have 7 bits a byte, the lowest first.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from keygroups._serializers import TRUNCATED, read_varint
from keygroups.errors import SavepointError
from keygroups.savepoint._files import OpenStream
from keygroups.savepoint._snappy import decompress_block

_MAGIC = 0x88E241B785F4CFF7
_FOOTER = 53
_TRAILER = 5  # of a block: its compression, its checksum
_COMPRESSIONS = {0: "none", 1: "Snappy", 2: "zlib", 3: "bzip2", 4: "LZ4", 5: "LZ4HC", 7: "ZSTD"}
_FORMAT_VERSIONS = range(2, 6)
_PROPERTIES = b"rocksdb."

_u32 = struct.Struct("<I").unpack_from
_u64 = struct.Struct("<Q").unpack_from


class Record(NamedTuple):
    """One version of a key: its number, the larger the newer, what was done, and the value."""

    key: bytes
    sequence: int
    kind: int
    value: bytes


class RangeDeletion(NamedTuple):
    """Keys from `start` up to and without `end`, deleted as of `sequence`."""

    start: bytes
    end: bytes
    sequence: int


class SstFile:
    """An SST file that is open; SavepointError for one that is damaged or not read here."""

    def __init__(self, stream: OpenStream) -> None:
        self._stream = stream
        if stream.size < _FOOTER:
            raise self._error(0, "this is no SST file")
        footer = stream.read(stream.size - _FOOTER, stream.size)
        if _u64(footer, 45)[0] != _MAGIC or _u32(footer, 41)[0] not in _FORMAT_VERSIONS:
            raise self._error(stream.size - _FOOTER, "this is no SST file of a known version")
        meta_handle, pos = self._handle(footer, 1)
        index_handle, _ = self._handle(footer, pos)
        meta = dict(self._entries(*meta_handle))
        properties = self._named_block(meta, b"rocksdb.properties")
        self._check(properties)
        self.column_family = properties.get(_PROPERTIES + b"column.family.name", b"")
        self._read_index(*index_handle, properties)
        self.range_deletions = [
            RangeDeletion(key[:-8], end, _u64(key, len(key) - 8)[0] >> 8)
            for key, end in self._named_block(meta, b"rocksdb.range_del").items()
            if len(key) >= 8
        ]

    def records(self, start: bytes, end: bytes) -> Iterator[Record]:
        """Yield the records of the keys from `start` up to and without `end`, in order."""
        for offset, size in self._blocks[bisect_left(self._last_keys, start) :]:
            for key, value in self._entries(offset, size):
                if len(key) < 8:
                    raise self._error(offset, f"a key of {len(key)} bytes")
                user_key = key[:-8]
                if user_key >= end:
                    return
                if user_key >= start:
                    (mark,) = _u64(key, len(key) - 8)
                    yield Record(user_key, mark >> 8, mark & 0xFF, value)

    def _check(self, properties: dict[bytes, bytes]) -> None:
        index_type = properties.get(_PROPERTIES + b"block.based.table.index.type", bytes(4))
        if index_type != bytes(4):
            raise self._error(0, "an SST file with a partitioned or hashed index is not read here")
        if any(properties.get(_PROPERTIES + b"external_sst_file.global_seqno", b"")):
            raise self._error(0, "an ingested SST file, with a global number, is not read here")

    def _read_index(self, offset: int, size: int, properties: dict[bytes, bytes]) -> None:
        """Read where the data blocks are, and a key that is not below the last of each."""
        has_deltas = any(properties.get(_PROPERTIES + b"index.value.is.delta.encoded", b""))
        suffix = 0 if any(properties.get(_PROPERTIES + b"index.key.is.user.key", b"")) else 8
        self._last_keys: list[bytes] = []
        self._blocks: list[tuple[int, int]] = []
        if not has_deltas:
            for key, value in self._entries(offset, size):
                self._last_keys.append(key[: len(key) - suffix])
                self._blocks.append(self._handle(value, 0)[0])
            return
        block, end = self._block(offset, size)
        pos, key, block_offset, block_size = 0, b"", 0, 0
        try:
            while pos < end:
                shared, pos = read_varint(block, pos)
                unshared, pos = read_varint(block, pos)
                key = key[:shared] + block[pos : pos + unshared]
                pos += unshared
                if shared:  # then the block follows the one before
                    delta, pos = read_varint(block, pos, 64)
                    block_offset += block_size + _TRAILER
                    block_size += delta >> 1 ^ -(delta & 1)
                else:
                    block_offset, pos = read_varint(block, pos, 64)
                    block_size, pos = read_varint(block, pos, 64)
                self._last_keys.append(key[: len(key) - suffix])
                self._blocks.append((block_offset, block_size))
        except (*TRUNCATED, ValueError) as error:
            raise self._error(offset, f"the index is damaged: {error}") from None

    def _named_block(self, meta: dict[bytes, bytes], name: bytes) -> dict[bytes, bytes]:
        if name not in meta:
            return {}
        return dict(self._entries(*self._handle(meta[name], 0)[0]))

    def _handle(self, data: bytes, pos: int) -> tuple[tuple[int, int], int]:
        try:
            offset, pos = read_varint(data, pos, 64)
            size, pos = read_varint(data, pos, 64)
        except (*TRUNCATED, ValueError) as error:
            raise self._error(0, f"the place of a block is damaged: {error}") from None
        return (offset, size), pos

    def _block(self, offset: int, size: int) -> tuple[bytes, int]:
        """Return a block without compression, and where its entries end."""
        data = self._stream.read(offset, offset + size + 1)
        block, compression = data[:-1], data[-1]
        if compression == 1:
            block = decompress_block(block, self._stream.name, offset)
        elif compression:
            name = _COMPRESSIONS.get(compression, str(compression))
            raise self._error(offset, f"blocks compressed with {name} are not read here")
        if len(block) < 4:
            raise self._error(offset, f"a block of {len(block)} bytes")
        (restarts,) = _u32(block, len(block) - 4)
        if restarts >> 31:
            raise self._error(offset, "blocks with a hash index are not read here")
        end = len(block) - 4 - 4 * restarts
        if end < 0:
            raise self._error(offset, f"{restarts} restarts in a block of {len(block)} bytes")
        return block, end

    def _entries(self, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
        """Yield the keys and values of a block; a key leaves out what it shares with the last."""
        block, end = self._block(offset, size)
        pos, key = 0, b""
        try:
            while pos < end:
                shared, unshared, length = block[pos], block[pos + 1], block[pos + 2]
                if shared | unshared | length < 0x80:
                    pos += 3
                else:
                    shared, pos = read_varint(block, pos)
                    unshared, pos = read_varint(block, pos)
                    length, pos = read_varint(block, pos)
                start, pos = pos, pos + unshared + length
                if shared > len(key) or pos > end:
                    raise IndexError("an entry ends beyond its block")
                key = key[:shared] + block[start : start + unshared]
                yield key, block[pos - length : pos]
        except (*TRUNCATED, ValueError) as error:
            raise self._error(offset, f"the block is damaged: {error}") from None

    def _error(self, offset: int, message: str) -> SavepointError:
        return SavepointError(f"{self._stream.name}, offset {offset}: {message}")
