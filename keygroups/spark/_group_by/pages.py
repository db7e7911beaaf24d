"""Bytes to bytes in a map state of Spark, many entries a page, so that a call moves many.

The pages have the numbers from 0 on. An entry lies in the page that linear hashing gives (Litwin,
"Linear Hashing: A New Tool for File and Table Addressing", VLDB 1980): by the low bits of its
key's hash, murmur3_x86_32 of seed 0, one bit more where that page has been split. A page that has
become too large makes the table grow by splitting the next page in turn, each in two.

A page is

| bytes | |
|---|---|
| 1 | the version, 1 |
| 4 | the CRC-32 of what follows, in little endian |
| | the entries: the lengths of key and value, 4 bytes each in little endian; key; value |

There is none where no entry is left.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import mmh3

from keygroups.errors import KeyGroupsError

VERSION = 1
_HEAD = struct.Struct("<BI")
_LENGTHS = struct.Struct("<II")
_FULL = 4096  # bytes of entries in a page that is not split yet
_COUNTED = _FULL // 8  # bytes that an entry counts at most: one alone grows no table


def hash_of(key: bytes) -> int:
    """Return the hash of a key."""
    return mmh3.hash(key, 0, False)


def page_of(key_hash: int, pages: int) -> int:
    """Return the number of the page where a key lies that has this hash.

    >>> [page_of(key_hash, 6) for key_hash in range(8)]
    [0, 1, 2, 3, 4, 5, 2, 3]
    """
    level = 1 << pages.bit_length() - 1
    page = key_hash & 2 * level - 1
    return page if page < pages else page - level


class Pages:
    """The entries of a map state, of the group for which its handle is called.

    `key_of` gives the user key of a page in the state. `size`, the number of pages, is to be
    kept by the caller after `flush`.
    """

    def __init__(self, state: Any, key_of: Callable[[int], tuple[Any, ...]], size: int) -> None:
        self._state = state
        self._key_of = key_of
        self.size = size
        self._held: dict[int, dict[bytes, bytes]] = {}
        self._changed: set[int] = set()

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, None where there is none."""
        return self._page(self.number_of(key)).get(key)

    def number_of(self, key: bytes) -> int:
        """Return the number of the page of a key, until the next `flush`."""
        return page_of(hash_of(key), self.size)

    def get_from(self, number: int, key: bytes) -> bytes | None:
        """Return the value of a key whose page has a number, None where there is none."""
        return self._page(number).get(key)

    def put(self, key: bytes, value: bytes | None) -> None:
        """Set the value of a key; None removes it."""
        self.put_into(self.number_of(key), key, value)

    def put_into(self, number: int, key: bytes, value: bytes | None) -> None:
        """Set the value of a key whose page has a number; None removes it."""
        page = self._page(number)
        if value is not None:
            page[key] = value
        elif page.pop(key, None) is None:
            return
        self._changed.add(number)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield every entry; they may be put meanwhile."""
        for number in range(self.size):
            yield from list(self._page(number).items())

    def entries_of(self, numbers: set[int]) -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries of some pages; they may be put meanwhile."""
        for number in sorted(numbers):
            yield from list(self._page(number).items())

    def flush(self) -> None:
        """Split pages that have become too large, and write those that have changed."""
        self._grow(sum(_too_large(self._held[number]) for number in self._changed))
        for number in sorted(self._changed):
            entries = self._held[number]
            if entries:
                self._state.updateValue(self._key_of(number), (encode_page(entries),))
            else:
                self._state.removeKey(self._key_of(number))
        self._held.clear()
        self._changed.clear()

    def clear(self) -> None:
        """Remove every entry at once."""
        for number in range(self.size):
            self._state.removeKey(self._key_of(number))
        self._held.clear()
        self._changed.clear()
        self.size = 1

    def _page(self, number: int) -> dict[bytes, bytes]:
        page = self._held.get(number)
        if page is None:
            row = self._state.getValue(self._key_of(number))
            page = self._held[number] = {} if row is None else decode_page(bytes(row[0]))
        return page

    def _grow(self, count: int) -> None:
        """Split the next pages, `count` times, each once or more often."""
        before, self.size = self.size, self.size + count
        # A page that is split and was not there before has its entries from one that was.
        numbers = {_split_for(made) for made in range(before, self.size)}
        for number in sorted(number for number in numbers if number < before):
            page = self._page(number)
            places = {key: self.number_of(key) for key in page}
            for key, place in places.items():
                if place != number:
                    self._held.setdefault(place, {})[key] = page.pop(key)
                    self._changed |= {number, place}
        for made in range(before, self.size):
            self._held.setdefault(made, {})


def _split_for(made: int) -> int:
    """Return the number of the page that is split when a page is made."""
    return made - (1 << made.bit_length() - 1)


def _too_large(page: dict[bytes, bytes]) -> int:
    """Return the number of pages by which the table should grow, so that pages are half full."""
    if 8 * len(page) + sum(map(len, page)) + sum(map(len, page.values())) <= _FULL:
        return 0
    size = sum(min(len(key) + len(value) + 8, _COUNTED) for key, value in page.items())
    return size // (_FULL // 2) - 1 if size > _FULL else 0


def encode_page(entries: dict[bytes, bytes]) -> bytes:
    """Return the bytes of a page."""
    made = []
    for key, value in entries.items():
        made += [_LENGTHS.pack(len(key), len(value)), key, value]
    body = b"".join(made)
    return _HEAD.pack(VERSION, zlib.crc32(body)) + body


def decode_page(data: bytes) -> dict[bytes, bytes]:
    """Return the entries of a page, or raise KeyGroupsError for bytes that are no page."""
    if data[:1] != bytes([VERSION]):
        raise KeyGroupsError(
            f"a page of state must be of version {VERSION}, which this keygroups reads, got "
            f"{data[0] if data else 'no bytes'}"
        )
    end, at = len(data), _HEAD.size
    if end < at or _HEAD.unpack_from(data)[1] != zlib.crc32(memoryview(data)[at:]):
        raise damaged("its checksum is another")
    entries = {}
    unpack_from = _LENGTHS.unpack_from
    while at + 8 <= end:
        key_length, value_length = unpack_from(data, at)
        at += 8
        middle = at + key_length
        entries[data[at:middle]] = data[middle : middle + value_length]
        at = middle + value_length
    if at != end:
        raise damaged("an entry goes beyond it")
    return entries


def damaged(why: object) -> KeyGroupsError:
    """Return the error for a page that is not as it was written."""
    return KeyGroupsError(f"a page of state in the checkpoint is damaged: {why}")
