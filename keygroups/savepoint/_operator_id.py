"""From the uid of an operator to its id."""

from __future__ import annotations

from mmh3 import hash_bytes


def operator_id_of(uid: str) -> str:
    """Return the id in hex.

    Flink: StreamGraphHasherV2.generateUserSpecifiedHash, murmur3_128 with seed 0.
    """
    # What UTF-8 has no bytes for is a "?" in Java's too.
    return hash_bytes(uid.encode("utf-8", "replace"), 0, x64arch=True).hex()
