"""Checksums of the blocks of RocksDB's files, by google-crc32c and xxhash."""

from __future__ import annotations

from collections.abc import Callable

from keygroups.errors import KeyGroupsError, SavepointError

_NONE, CRC32C, _XXH32, _XXH64, _XXH3 = range(5)
_CRC32C_DELTA = 0xA282EAD8
_XXH3_FACTOR = 0x6B9083D9
_U32 = 0xFFFFFFFF


def block_checksum(kind: int, name: str) -> Callable[[bytes], int]:
    """Return the function that computes the checksum of a block.

    It takes the block and the byte of its compression after it. A file without checksums has
    zeros in their place. RocksDB: ComputeBuiltinChecksum in table/format.cc.
    """
    if kind == _NONE:
        return lambda block: 0
    if kind > _XXH3:
        raise SavepointError(f"{name}: checksums of kind {kind} are not known")
    try:
        if kind == CRC32C:
            from google_crc32c import value as crc32c
        else:
            from xxhash import xxh3_64_intdigest, xxh32_intdigest, xxh64_intdigest
    except ImportError:
        raise KeyGroupsError(
            f"{name}: checksums of RocksDB's files are verified with google-crc32c and xxhash: "
            "pip install 'keygroups[savepoint]'"
        ) from None

    def masked_crc32c(block: bytes) -> int:
        crc: int = crc32c(block)
        return (crc >> 15 | crc << 17) + _CRC32C_DELTA & _U32

    def xxh3(block: bytes) -> int:
        return (xxh3_64_intdigest(block[:-1]) ^ block[-1] * _XXH3_FACTOR) & _U32

    return {
        CRC32C: masked_crc32c,
        _XXH32: lambda block: xxh32_intdigest(block),
        _XXH64: lambda block: xxh64_intdigest(block) & _U32,
        _XXH3: xxh3,
    }[kind]
