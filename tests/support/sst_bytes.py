"""Writes SST files: RocksDB's block-based table, as its wiki and format.cc have it.

The reader is not used. Numbers are little endian; varints have 7 bits a byte, the lowest first.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

MAGIC = 0x88E241B785F4CFF7
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


def block(entries: Entries, *, share: bool = True, hashed: bool = False) -> bytes:
    """A block of one run of entries, each of which leaves out what it shares with the last."""
    out, last = b"", b""
    for key, value in entries:
        shared = 0
        while share and shared < min(len(key), len(last)) and key[shared] == last[shared]:
            shared += 1
        out += varint(shared) + varint(len(key) - shared) + varint(len(value))
        out += key[shared:] + value
        last = key
    return out + struct.pack("<II", 0, 1 | hashed << 31)


def sst(
    records: Sequence[tuple[bytes, int, int, bytes]],
    family: str,
    *,
    deletions: Entries = (),
    per_block: int = 3,
    properties: dict[str, bytes] | None = None,
    delta_index: bool = True,
    user_key_index: bool = True,
    compression: int = 0,
    hashed: bool = False,
    version: int = 5,
) -> bytes:
    """A file of records (key, sequence, kind, value), in their order; deletions as in the file."""
    out = bytearray()

    def add(content: bytes, compression: int = 0) -> tuple[int, int]:
        handle = len(out), len(content)
        out.extend(content + bytes([compression, 0, 0, 0, 0]))  # no checksum is looked at
        return handle

    handles, last_keys = [], []
    for start in range(0, len(records), per_block):
        part = records[start : start + per_block]
        entries = [(internal_key(k, seq, kind), value) for k, seq, kind, value in part]
        content = block(entries, hashed=hashed)
        handles.append(add(content, compression))
        last_keys.append(entries[-1][0])
    index, before = bytearray(), b""
    for place, ((offset, size), key) in enumerate(zip(handles, last_keys)):
        name = key[:-8] if user_key_index else key
        shared = 0
        while (
            delta_index and shared < min(len(name), len(before)) and name[shared] == before[shared]
        ):
            shared += 1
        before = name
        value = varint(offset) + varint(size)
        if shared:  # then how much larger the block is than the one before, which it follows
            difference = size - handles[place - 1][1]
            value = varint(difference << 1 ^ difference >> 63)
        length = b"" if delta_index else varint(len(value))
        index += varint(shared) + varint(len(name) - shared) + length + name[shared:] + value
    index += struct.pack("<II", 0, 1)
    flags = {"key.is.user.key": user_key_index, "value.is.delta.encoded": delta_index}
    found = {
        "rocksdb.block.based.table.index.type": bytes(4),
        "rocksdb.column.family.name": family.encode(),
        # Format versions before 3 and 4 have no such indexes, and no properties that say so.
        **{f"rocksdb.index.{name}": varint(on) for name, on in flags.items() if on or version > 2},
        **(properties or {}),
    }
    named = [(name.encode(), value) for name, value in sorted(found.items())]
    meta = {b"rocksdb.properties": add(block(named, share=False))}
    if deletions:
        meta[b"rocksdb.range_del"] = add(block(deletions, share=False))
    index_handle = add(bytes(index))
    meta_entries = [(name, varint(at) + varint(size)) for name, (at, size) in sorted(meta.items())]
    meta_handle = add(block(meta_entries, share=False))
    handle_bytes = b"".join(varint(number) for number in (*meta_handle, *index_handle))
    return (
        bytes(out) + b"\x01" + handle_bytes.ljust(40, b"\0") + struct.pack("<IQ", version, MAGIC)
    )
