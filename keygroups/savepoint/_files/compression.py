"""Compressed bytes: Snappy, LZ4 and ZSTD by cramjam, zlib's by Python itself."""

from __future__ import annotations

import struct
import zlib
from types import ModuleType

from keygroups._serializers.base import TRUNCATED
from keygroups._serializers.scalars import read_varint
from keygroups.errors import KeyGroupsError, SavepointError

_STREAM_START = b"\xff\x06\x00\x00sNaPpY"  # the first chunk of a framed stream of Snappy
_NAMES = {1: "Snappy", 2: "zlib", 3: "bzip2", 4: "LZ4", 5: "LZ4HC", 7: "ZSTD"}
_MAX_RATIO = {"Snappy": 64, "zlib": 1032, "LZ4": 255, "LZ4HC": 255, "ZSTD": 1032}
"""Bytes of content for one compressed byte; blocks of ZSTD up to `_MAX_SMALL` may have more."""
_MAX_SMALL = 16 << 20  # bytes of content
_ALWAYS_VARINTS = ("Snappy", "ZSTD")
_u64 = struct.Struct("<Q").unpack_from


def decompress_chunk(chunk: bytes, name: str, offset: int) -> bytes:
    """Return the content of one chunk of a framed stream, whose checksum is checked."""
    cramjam = _cramjam("Snappy", name)
    try:
        return bytes(cramjam.snappy.decompress(_STREAM_START + chunk))
    except cramjam.DecompressionError as error:
        raise SavepointError(f"{name}, offset {offset}: {error}") from None


def decompress_block(
    compression: int, block: bytes, name: str, offset: int, has_varints: bool = True
) -> bytes:
    """Return the content of a block without frame, as in an SST file: its size stands first.

    `has_varints` is false for the format versions 0 and 1, where the size is eight bytes before
    an LZ4 block, little endian, and a block of zlib has none.

    RocksDB: UncompressBlockData and what it calls in util/compression.h; Snappy's own size is
    written alike, see its format_description.txt.
    """
    algorithm = _NAMES.get(compression, str(compression))
    where = f"{name}, offset {offset}"
    ratio = _MAX_RATIO.get(algorithm)
    if ratio is None:
        raise SavepointError(f"{where}: blocks compressed with {algorithm} are not read here")
    if algorithm == "zlib" and not has_varints:
        return _inflated(block, None, where)
    try:
        if has_varints or algorithm in _ALWAYS_VARINTS:
            size, start = read_varint(block, 0)
        else:
            (size,), start = _u64(block), 8
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


def _inflated(data: bytes, size: int | None, where: str) -> bytes:
    """Return the content of a raw stream of deflate; it has to be `size` bytes unless None."""
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = inflate.decompress(data, 0 if size is None else size + 1)
    except zlib.error as error:
        raise SavepointError(f"{where}: {error}") from None
    is_size = size is None or len(content) == size
    if not is_size or not inflate.eof or inflate.unused_data:
        expected = "whole" if size is None else f"the {size} bytes it says"
        raise SavepointError(f"{where}: a block of zlib that is not {expected}")
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
