"""RocksDB's MANIFEST, which says from which key to which each SST file goes.

It is a log of blocks of 32 KiB. A record, in one piece or in several, is an edit of what files
there are: tags, each with its fields. Numbers are little endian; varints have 7 bits a byte.
RocksDB: db/log_reader.cc; VersionEdit::DecodeFrom in db/version_edit.cc.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from keygroups._serializers.base import TRUNCATED
from keygroups._serializers.scalars import read_varint
from keygroups.errors import SavepointError
from keygroups.savepoint._files.checksums import CRC32C, block_checksum
from keygroups.savepoint._files.files import OpenStream

_BLOCK = 1 << 15  # bytes
_HEADER = 7  # bytes before a piece: checksum 4, size 2, which piece of a record it is 1
_WHOLE, _FIRST, _MIDDLE, _LAST = range(1, 5)
_NEW_FILES = {7: (0, 0), 100: (0, 2), 102: (1, 2), 103: (0, 2)}
"""Tags of new files: the numbers before their size, and those behind their keys."""
_WITH_FIELDS = 103  # A new file of this tag has tags of its own, each with a text, up to 1.
_TEXTS = (1, 201)  # tags of a text: the comparator, a new column family
_NUMBERS = (2, 3, 4, 9, 10, 200, 203, 300)  # tags of a number
_IS_IGNORED = 1 << 13  # the bit of tags of a text that readers may leave out
_MARK = 8  # bytes behind a key: its sequence number and kind
_PAST_THE_FILE = b"\x0f" + b"\xff" * 7
"""The mark of a largest key that no record of the file has, as a range deletion ends there."""

_header = struct.Struct("<IHB").unpack_from


def read_bounds(stream: OpenStream) -> dict[int, tuple[bytes, bytes]]:
    """Return the bounds of each SST file by its number: its first key, and one past its last.

    Raises SavepointError for a log that is damaged, or that has what is not known.
    """
    bounds: dict[int, tuple[bytes, bytes]] = {}
    for offset, record in _records(stream):
        try:
            bounds.update(_new_files(record))
        except (*TRUNCATED, ValueError) as error:
            raise _error(stream, offset, f"the record is damaged: {error}") from None
    return bounds


def _records(stream: OpenStream) -> Iterator[tuple[int, bytes]]:
    """Yield each record with the offset of its last piece."""
    checksum = block_checksum(CRC32C, stream.name)
    pieces: list[bytes] = []
    for start in range(0, stream.size, _BLOCK):
        block = stream.read(start, min(start + _BLOCK, stream.size))
        pos = 0
        while pos + _HEADER <= len(block):
            expected, size, kind = _header(block, pos)
            piece = block[pos + _HEADER : pos + _HEADER + size]
            if len(piece) < size or kind not in range(_WHOLE, _LAST + 1):
                raise _error(stream, start + pos, f"no piece of {size} bytes and kind {kind}")
            if checksum(block[pos + 6 : pos + _HEADER + size]) != expected:
                raise _error(stream, start + pos, "the checksum is wrong")
            if (kind in (_WHOLE, _FIRST)) is bool(pieces):
                raise _error(stream, start + pos, "the pieces of a record are out of order")
            pieces.append(piece)
            if kind in (_WHOLE, _LAST):
                yield start + pos, b"".join(pieces)
                pieces = []
            pos += _HEADER + size
    if pieces:
        raise _error(stream, stream.size, "the last record has no end")


def _new_files(record: bytes) -> Iterator[tuple[int, tuple[bytes, bytes]]]:
    """Yield the number and the bounds of each file that a record adds."""
    pos = 0
    while pos < len(record):
        tag, pos = read_varint(record, pos)
        if tag in _NEW_FILES:
            before, behind = _NEW_FILES[tag]
            _, pos = read_varint(record, pos)  # the level
            number, pos = read_varint(record, pos, 64)
            pos = _skipped(record, pos, before + 1)
            smallest, pos = _text(record, pos)
            largest, pos = _text(record, pos)
            pos = _skipped(record, pos, behind)
            if tag == _WITH_FIELDS:
                pos = _behind_fields(record, pos)
            yield number, _bounds(smallest, largest)
        elif tag in _TEXTS or tag & _IS_IGNORED:
            _, pos = _text(record, pos)
        elif tag == 5:  # the key at which a compaction of a level goes on
            _, pos = read_varint(record, pos)
            _, pos = _text(record, pos)
        elif tag == 6:  # a file that is gone: its level and its number
            pos = _skipped(record, pos, 2)
        elif tag in _NUMBERS:
            pos = _skipped(record, pos, 1)
        elif tag != 202:  # a column family that is gone
            raise ValueError(f"tag {tag} is not known")


def _behind_fields(record: bytes, pos: int) -> int:
    tag, pos = read_varint(record, pos)
    while tag != 1:
        _, pos = _text(record, pos)
        tag, pos = read_varint(record, pos)
    return pos


def _bounds(smallest: bytes, largest: bytes) -> tuple[bytes, bytes]:
    if min(len(smallest), len(largest)) < _MARK:
        raise ValueError("a key without its mark")
    end = largest[:-_MARK]
    return smallest[:-_MARK], end if largest[-_MARK:] == _PAST_THE_FILE else end + b"\0"


def _skipped(record: bytes, pos: int, count: int) -> int:
    for _ in range(count):
        _, pos = read_varint(record, pos, 64)
    return pos


def _text(record: bytes, pos: int) -> tuple[bytes, int]:
    size, pos = read_varint(record, pos)
    if pos + size > len(record):
        raise IndexError("too few bytes")
    return record[pos : pos + size], pos + size


def _error(stream: OpenStream, offset: int, message: str) -> SavepointError:
    return SavepointError(f"{stream.name}, offset {offset}: {message}")
