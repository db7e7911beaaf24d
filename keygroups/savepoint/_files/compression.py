"""Compressed bytes: Snappy, LZ4 and ZSTD by cramjam, zlib's by Python itself."""

from __future__ import annotations

import zlib
from types import ModuleType

from keygroups._serializers.base import TRUNCATED
from keygroups._serializers.scalars import read_varint
from keygroups.errors import KeyGroupsError, SavepointError

_STREAM_START = b"\xff\x06\x00\x00sNaPpY"  # of a framed stream of Snappy
_NAMES = {1: "Snappy", 2: "zlib", 3: "bzip2", 4: "LZ4", 5: "LZ4HC", 7: "ZSTD"}
_MAX_RATIO = {"Snappy": 64, "zlib": 1032, "LZ4": 255, "LZ4HC": 255, "ZSTD": 1032}
"""How many bytes one may stand for; in ZSTD up to 32768, which small blocks may make use of."""
_MAX_SMALL = 16 << 20


def decompress_chunk(chunk: bytes, name: str, offset: int) -> bytes:
    """Return the content of one chunk of a framed stream, whose checksum is checked."""
    cramjam = _cramjam("Snappy", name)
    try:
        return bytes(cramjam.snappy.decompress(_STREAM_START + chunk))
    except cramjam.DecompressionError as error:
        raise SavepointError(f"{name}, offset {offset}: {error}") from None


def decompress_block(compression: int, block: bytes, name: str, offset: int) -> bytes:
    """Return the content of a block without frame, as in an SST file: its size stands first.

    RocksDB: UncompressBlockData and what it calls in util/compression.h; Snappy's own size is
    written alike, see its format_description.txt.
    """
    algorithm = _NAMES.get(compression, str(compression))
    where = f"{name}, offset {offset}"
    ratio = _MAX_RATIO.get(algorithm)
    if ratio is None:
        raise SavepointError(f"{where}: blocks compressed with {algorithm} are not read here")
    try:
        size, start = read_varint(block, 0)
    except (*TRUNCATED, ValueError) as error:
        raise SavepointError(f"{where}: the size of a block is damaged: {error}") from None
    most = ratio * len(block)
    if size > (max(most, _MAX_SMALL) if algorithm == "ZSTD" else most):
        raise SavepointError(f"{where}: a block of {algorithm} cannot hold {size} bytes")
    if algorithm == "zlib":
        return _inflated(block[start:], size, where)
    cramjam = _cramjam(algorithm, name)
    content = bytearray(size)
    try:
        if algorithm == "Snappy":
            count = cramjam.snappy.decompress_raw_into(block, content)
        elif algorithm == "ZSTD":
            count = cramjam.zstd.decompress_into(block[start:], content)
        else:
            count = cramjam.lz4.decompress_block_into(block[start:], content)
    except cramjam.DecompressionError as error:
        raise SavepointError(f"{where}: {error}") from None
    if count != size:
        raise SavepointError(f"{where}: a block of {algorithm} of {count} bytes, not {size}")
    return bytes(content)


def _inflated(data: bytes, size: int, where: str) -> bytes:
    """Return the content of a raw stream of deflate, which is `size` bytes."""
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = inflate.decompress(data, size + 1)
    except zlib.error as error:
        raise SavepointError(f"{where}: {error}") from None
    if len(content) != size or not inflate.eof or inflate.unused_data:
        raise SavepointError(f"{where}: a block of zlib that is not the {size} bytes it says")
    return content


def _cramjam(algorithm: str, name: str) -> ModuleType:
    try:
        import cramjam
    except ImportError:
        raise KeyGroupsError(
            f"{name}: state compressed with {algorithm} is read with cramjam: "
            "pip install 'keygroups[savepoint]'"
        ) from None
    return cramjam
