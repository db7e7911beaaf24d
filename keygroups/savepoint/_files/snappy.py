"""Snappy, by cramjam."""

from __future__ import annotations

from keygroups.errors import KeyGroupsError, SavepointError

_HEADER = b"\xff\x06\x00\x00sNaPpY"  # what a framed stream starts with
_MAX_RATIO = 64  # no byte of Snappy stands for more


def decompress_chunk(chunk: bytes, name: str, offset: int) -> bytes:
    """Return the content of one chunk of a framed stream, whose checksum is checked."""
    return _decompress("decompress", _HEADER + chunk, name, offset)


def decompress_block(block: bytes, name: str, offset: int) -> bytes:
    """Return the content of a block without frame, as in an SST file.

    RocksDB: util/compression.cc. Snappy: format_description.txt.
    """
    size = 0
    for index, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            break
    if size > _MAX_RATIO * len(block):
        raise SavepointError(
            f"{name}, offset {offset}: a block of Snappy cannot hold {size} bytes"
        )
    return _decompress("decompress_raw", block, name, offset)


def _decompress(function: str, data: bytes, name: str, offset: int) -> bytes:
    try:
        import cramjam
    except ImportError:
        raise KeyGroupsError(
            f"{name}: state compressed with Snappy is read with cramjam: "
            "pip install 'keygroups[savepoint]'"
        ) from None
    try:
        return bytes(getattr(cramjam.snappy, function)(data))
    except cramjam.DecompressionError as error:
        raise SavepointError(f"{name}, offset {offset}: {error}") from None
