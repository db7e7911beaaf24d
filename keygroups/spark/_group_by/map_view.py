"""One map state of a key: its values and their counts."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from keygroups.spark._group_by.fields import RowCodec
from keygroups.spark._group_by.pages import Pages

_MOST_INLINE = 16  # values in the key's own record; more are in pages
_MOST_BYTES = 1024  # bytes of values in the key's own record
_LENGTH = struct.Struct("<I")
_COUNT = struct.Struct("<q")
_COUNT_UNTIL = struct.Struct("<qq")

Entry = tuple[int, ...]  # the count of a value; with a TTL its end too, in epoch ms
ForPages = Callable[[int], Pages]  # returns the pages of an aggregate of a key, by their number


class MapView:
    """The values of one aggregate of a key at a time, `now`.

    They are in the record of the key, `inline`, or where they are many in pages. `until` is when
    an entry that is written now is forgotten, None for never. With `touch` an entry that is read
    is written again, which renews that: Spark renews a TTL on a write only, Flink's
    OnReadAndWrite on a read too.
    """

    def __init__(
        self, fields: RowCodec, for_pages: ForPages, now: int, until: int | None, touch: bool
    ) -> None:
        self._fields = fields
        self._for_pages = for_pages
        self._now, self._until, self._touch = now, until, touch
        self._entry = entry_bytes(until is not None)
        self._inline: dict[Any, Entry] = {}
        self._pages: Pages | None = None

    def get(self, value: object) -> int:
        """Return the count of a value, 0 where it has none."""
        if self._pages is None:
            entry = self._inline.get(value)
        else:
            data = self._pages.get(self._fields.encode((value,)))
            entry = None if data is None else self._entry.unpack(data)
        if entry is None or not self._lives(entry):
            return 0
        if self._touch:
            self.put(value, entry[0])
        return entry[0]

    def put(self, value: object, count: int) -> None:
        """Set the count of a value; 0 removes it."""
        entry = (count,) if self._until is None else (count, self._until)
        if self._pages is not None:
            self._pages.put(
                self._fields.encode((value,)), self._entry.pack(*entry) if count else None
            )
        elif count:
            self._inline[value] = entry
        else:
            self._inline.pop(value, None)

    def entries(self) -> Iterator[tuple[Any, Entry]]:
        """Yield every value that is not forgotten, with its entry."""
        if self._pages is None:
            entries: Iterable[tuple[Any, Entry]] = list(self._inline.items())
        else:
            entries = read_values(self._fields, self._entry, self._pages.items())
        for value, entry in entries:
            if self._lives(entry):
                if self._touch:
                    self.put(value, entry[0])
                yield value, entry

    def clear(self) -> None:
        """Remove every entry."""
        self._inline.clear()
        if self._pages is not None:
            self._pages.clear()
            self._pages = None

    def read(self, data: bytes, at: int) -> int:
        """Read the values of a record at an offset, and return the offset of their end."""
        (number,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if number & 1:
            self._pages = self._for_pages(number >> 1)
            return at
        for _ in range(number >> 1):
            (value,), at = self._fields.decode(data, at)
            entry = self._entry.unpack_from(data, at)
            at += self._entry.size
            if self._lives(entry):
                self._inline[value] = entry
        return at

    def write(self) -> bytes:
        """Write the pages that have changed, and return the bytes for the record."""
        if self._pages is None:
            encoded = [
                self._fields.encode((value,)) + self._entry.pack(*entry)
                for value, entry in self._inline.items()
            ]
            body = b"".join(encoded)
            if len(encoded) <= _MOST_INLINE and len(body) <= _MOST_BYTES:
                return _LENGTH.pack(len(encoded) << 1) + body
            self._pages = self._for_pages(1)
            end = -self._entry.size
            for entry in encoded:
                self._pages.put(entry[:end], entry[end:])
            self._inline.clear()
        self._pages.flush()
        return _LENGTH.pack(self._pages.size << 1 | 1)

    def _lives(self, entry: Entry) -> bool:
        return self._until is None or entry[1] > self._now


def entry_bytes(forgets: bool) -> struct.Struct:
    """Return the Struct of entries: a count, and with a TTL its end."""
    return _COUNT_UNTIL if forgets else _COUNT


def read_values(
    fields: RowCodec, entry: struct.Struct, encoded: Iterable[tuple[bytes, bytes]]
) -> Iterator[tuple[Any, Entry]]:
    """Yield the values in pages, with their entries."""
    for key, data in encoded:
        yield fields.decode(key)[0][0], entry.unpack(data)
