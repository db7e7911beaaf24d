"""Sorts more entries than memory holds, by way of files."""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from keygroups.progress import Meter
from keygroups.savepoint._files.files import file_error
from keygroups.savepoint._state.entry_encoder import EncodedEntry

_BUCKET = 16 << 20  # bytes that are sorted at once, about
_MOST_BUCKETS = 128  # files that are open at once
_BUFFERED = 1 << 16  # bytes of a bucket that are written at once
_COUNTED = 1 << 12  # entries that are counted at once

_head = struct.Struct("<HIII")


def sorted_entries(
    entries: Iterable[EncodedEntry],
    max_parallelism: int,
    size: int,
    folder: Path | None,
    meter: Meter | None = None,
) -> Generator[EncodedEntry, None, None]:
    """Yield entries of about `size` bytes by key group, state and key.

    Files in a temporary folder in `folder` hold them meanwhile. The entries of some key groups
    that follow one another, at least of one, are in memory at a time. A meter counts `size` as
    they are yielded. Raises SavepointError where the files cannot be written.
    """
    try:
        yield from _sorted_entries(entries, max_parallelism, size, folder, meter)
    except OSError as error:
        raise file_error(str(folder or gettempdir()), "written", error) from None


def _sorted_entries(
    entries: Iterable[EncodedEntry],
    max_parallelism: int,
    size: int,
    folder: Path | None,
    meter: Meter | None,
) -> Generator[EncodedEntry, None, None]:
    buckets = min(size // _BUCKET + 1, _MOST_BUCKETS, max_parallelism)
    with TemporaryDirectory(dir=folder) as scratch:
        paths = [Path(scratch, str(number)) for number in range(buckets)]
        with ExitStack() as opened:
            files = [opened.enter_context(path.open("wb", _BUFFERED)) for path in paths]
            for entry in entries:
                files[entry.key_group * buckets // max_parallelism].write(packed(entry))
        total = sum(path.stat().st_size for path in paths)
        for path in paths:
            data = path.read_bytes()
            share = size * len(data) // max(total, 1)
            bucket = sorted(unpacked(data))
            for start in range(0, len(bucket), _COUNTED):
                yield from bucket[start : start + _COUNTED]
                if meter is not None:
                    meter.add(share * min(_COUNTED, len(bucket) - start) // len(bucket))
            path.unlink()


def packed(entry: EncodedEntry) -> bytes:
    """Return an entry as bytes, of which many may follow one another."""
    key_group, state, key, value = entry
    return b"".join((_head.pack(key_group, state, len(key), len(value)), key, value))


def unpacked(data: bytes) -> Iterator[EncodedEntry]:
    """Yield the entries that `packed` made bytes."""
    pos = 0
    while pos < len(data):
        key_group, state, key_size, value_size = _head.unpack_from(data, pos)
        key = pos + _head.size
        value = key + key_size
        pos = value + value_size
        yield EncodedEntry(key_group, state, data[key:value], data[value:pos])
