"""The bytes of files: damaged in every place, and as one digest a file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

FLIPS = (0x01, 0x80, 0xFF)


def damages(content: bytes, first: int) -> Iterator[tuple[str, bytes]]:
    """Yield a damage and the bytes then: each changed in three ways, and cut everywhere."""
    for pos in range(first, len(content)):
        byte = content[pos]
        for flip in FLIPS:
            yield f"{pos} ^ {flip:#x}", content[:pos] + bytes([byte ^ flip]) + content[pos + 1 :]
    for size in range(first, len(content)):
        yield f"cut at {size}", content[:size]


def digests(folder: Path) -> dict[str, str]:
    """Return the digest of each file in a folder, and in those in it."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
