"""Writes SST files: RocksDB's block-based table, as its wiki and format.cc have it.

The reader is not used. A file that a test damages is one without checksums. Numbers are little
endian; varints have 7 bits a byte, the lowest first.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from random import Random
from typing import Any

import google_crc32c

MAGIC, LEGACY_MAGIC = 0x88E241B785F4CFF7, 0xDB4775248B80FB57
NO_CHECKSUM, CRC32C = 0, 1
DELETION, VALUE, MERGE, SINGLE_DELETION = 0, 1, 2, 7

Entries = Sequence[tuple[bytes, bytes]]


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def internal_key(key: bytes, sequence: int, kind: int) -> bytes:
    return key + struct.pack("<Q", sequence << 8 | kind)


def trailer(content: bytes, compression: int = 0, checksum: int = CRC32C) -> bytes:
    """What follows a block: its compression, and the checksum of both, rotated and moved."""
    covered = content + bytes([compression])
    crc = google_crc32c.value(covered)
    masked = (crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8 & 0xFFFFFFFF
    return covered[-1:] + struct.pack("<I", masked if checksum == CRC32C else 0)


def shared_prefix(key: bytes, other: bytes) -> int:
    """How many bytes they start with alike; of long keys too in no time, as one number each."""
    size = min(len(key), len(other))
    difference = int.from_bytes(key[:size], "big") ^ int.from_bytes(other[:size], "big")
    return size - (difference.bit_length() + 7) // 8


def block(
    entries: Entries, *, share: bool = True, hashed: bool = False, per_run: int | None = None
) -> bytes:
    """A block of entries, each of which leaves out what it shares with the last.

    The first of a run leaves out nothing; all are one run unless `per_run` says how many are.
    """
    out, last, restarts = bytearray(), b"", [0]
    for number, (key, value) in enumerate(entries):
        if per_run is not None and number and number % per_run == 0:
            restarts.append(len(out))
            last = b""
        shared = shared_prefix(key, last) if share else 0
        out += varint(shared) + varint(len(key) - shared) + varint(len(value))
        out += key[shared:] + value
        last = key
    return bytes(out) + struct.pack(f"<{len(restarts)}II", *restarts, len(restarts) | hashed << 31)


def delta_index(names: Sequence[bytes], places: Sequence[tuple[int, int]]) -> bytes:
    """An index without lengths; a name that shares bytes with the last has a difference."""
    out, before = b"", b""
    for number, (name, (offset, size)) in enumerate(zip(names, places)):
        shared = shared_prefix(name, before)
        before = name
        value = varint(offset) + varint(size)
        if shared:  # then how much larger the block is than the one before, which it follows
            difference = size - places[number - 1][1]
            value = varint(difference << 1 ^ difference >> 63)
        out += varint(shared) + varint(len(name) - shared) + name[shared:] + value
    return out + struct.pack("<II", 0, 1)


def sst_of_blocks(
    data: Entries,
    family: str,
    *,
    deletions: bytes = b"",
    dictionary: bytes = b"",
    between: Sequence[bytes] = (),
    index: bytes | None = None,
    properties: dict[str, bytes] | None = None,
    has_deltas: bool = True,
    user_key_index: bool = True,
    per_part: int = 0,
    compression: int = 0,
    version: int = 5,
    checksum: int = CRC32C,
) -> bytes:
    """A file of blocks: each of data with its last key, range deletions, perhaps the index.

    `between` are blocks behind the data; `per_part` is how many blocks each part of an index of
    two levels has, 0 for one of one level. Version 0 has a footer without kind and version.
    """
    out = bytearray()

    def add(content: bytes, compression: int = 0) -> tuple[int, int]:
        place = len(out), len(content)
        out.extend(content + trailer(content, compression, checksum))
        return place

    places = [add(content, compression) for _, content in data]
    data_size = len(out)

    def index_of(names: Sequence[bytes], places: Sequence[tuple[int, int]]) -> bytes:
        if has_deltas:
            return delta_index(names, places)
        values = [varint(offset) + varint(size) for offset, size in places]
        return block(list(zip(names, values)), share=False)

    for content in between:
        add(content)
    if index is None:
        names = [key[:-8] if user_key_index else key for key, _ in data]
        if per_part:
            starts = range(0, len(names), per_part)
            ends = [start + per_part for start in starts]
            places = [add(index_of(names[i:j], places[i:j])) for i, j in zip(starts, ends)]
            names = [names[min(end, len(names)) - 1] for end in ends]
        index = index_of(names, places)
    flags = {"key.is.user.key": user_key_index, "value.is.delta.encoded": has_deltas}
    found = {
        "rocksdb.block.based.table.index.type": struct.pack("<I", 2 if per_part else 0),
        "rocksdb.column.family.name": family.encode(),
        "rocksdb.data.size": varint(data_size),
        # Format versions before 3 and 4 have no such indexes, and no properties that say so.
        **{f"rocksdb.index.{name}": varint(on) for name, on in flags.items() if on or version > 2},
        **(properties or {}),
    }
    named = [(name.encode(), value) for name, value in sorted(found.items())]
    index_place = add(index)
    meta_blocks = {b"rocksdb.range_del": deletions, b"rocksdb.compression_dict": dictionary}
    meta = {name: add(content) for name, content in meta_blocks.items() if content}
    meta[b"rocksdb.properties"] = add(block(named, share=False))
    meta_entries = [(name, varint(at) + varint(size)) for name, (at, size) in sorted(meta.items())]
    meta_place = add(block(meta_entries, share=False))
    handles = b"".join(varint(number) for number in (*meta_place, *index_place)).ljust(40, b"\0")
    if not version:
        return bytes(out) + handles + struct.pack("<Q", LEGACY_MAGIC)
    return bytes(out) + bytes([checksum]) + handles + struct.pack("<IQ", version, MAGIC)


def sst(
    records: Sequence[tuple[bytes, int, int, bytes]],
    family: str,
    *,
    deletions: Entries = (),
    per_block: int = 3,
    per_run: int | None = None,
    hashed: bool = False,
    **more: Any,
) -> bytes:
    """A file of records (key, sequence, kind, value), in their order; deletions as in the file."""
    data = []
    for start in range(0, len(records), per_block):
        entries = [
            (internal_key(key, sequence, kind), value)
            for key, sequence, kind, value in records[start : start + per_block]
        ]
        data.append((entries[-1][0], block(entries, hashed=hashed, per_run=per_run)))
    deleted = block(deletions, share=False) if deletions else b""
    return sst_of_blocks(data, family, deletions=deleted, **more)


class Crafted:
    """Makes tables as no store writes them: of a few keys, which are often equal or out of order.

    Whole in all their blocks: only what stands beside what is wrong, where keys or ranges meet.
    """

    def __init__(self, seed: int, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        self._random = Random(seed)
        self._keys, self._values = keys, values

    def tables(self, family: str) -> list[bytes]:
        """Return up to three tables of a column family."""
        return [self._table(family) for _ in range(self._random.randint(1, 3))]

    def _record(self) -> tuple[bytes, int, int, bytes]:
        choice = self._random.choice
        kind = choice((VALUE, VALUE, VALUE, DELETION, SINGLE_DELETION, MERGE, 15))
        sequence = choice((0, 1, 1, 2, (1 << 56) - 1))
        return choice(self._keys), sequence, kind, choice(self._values)

    def _order(self, record: tuple[bytes, int, int, bytes]) -> tuple[bytes, int]:
        return record[0], -(record[1] << 8 | record[2])

    def _table(self, family: str) -> bytes:
        random = self._random
        records = sorted((self._record() for _ in range(random.randint(0, 9))), key=self._order)
        how = random.randrange(6)
        if how == 0:
            random.shuffle(records)
        elif how == 1 and records:
            records.insert(random.randrange(len(records)), random.choice(records))
        elif how > 2:  # nothing is there twice, and so it is in a store
            records = [*{self._order(record): record for record in records}.values()]
        data: list[tuple[bytes, bytes]] = []
        while records:
            size = random.randint(0, 4)  # an empty block has one too
            entries = [(internal_key(*record[:3]), record[3]) for record in records[:size]]
            records = records[size:]
            last = entries[-1][0] if entries else internal_key(*self._record()[:3])
            if random.randrange(12) == 0:  # a name that leaves a gap, or does not reach the block
                last = internal_key(*self._record()[:3])
            data.append((last, block(entries)))
        return sst_of_blocks(data, family, deletions=self._deletions())

    def _deletions(self) -> bytes:
        """Return range deletions, which may overlap, be empty, or end before they start."""
        random = self._random
        if random.randrange(3):
            return b""
        ranges = [
            (internal_key(random.choice(self._keys), random.randint(0, 3), 15), end)
            for end in random.choices(self._keys, k=random.randint(1, 3))
        ]
        return block(sorted(ranges) if random.randrange(4) else ranges, share=False)
