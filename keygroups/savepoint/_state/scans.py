"""Places of entries, found without decoding them: of many entries those of a key are a few.

Only the bytes of fixed sizes and of Strings are passed over; what is not as expected is left to
the readers of entries, with their errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from keygroups._serializers.base import TRUNCATED, Serializer, total_size
from keygroups._serializers.scalars import StringSerializer, read_string
from keygroups.savepoint._state.layouts import EntryFields
from keygroups.savepoint._state.skips import Scan, Skip

_LEAST_RUN = 16  # entries that are looked at together, and twice as many after those

KeyScan = Callable[[bytes, int, int], tuple[list[int], int, int]]
"""Finds the entries of some keys among as many; returns how many it passed, and their end, too."""


def native_scan(parts: Sequence[tuple[str, Serializer]] | None) -> Scan | None:
    """Return a Scan for entries of these parts; None where one has another form.

    `parts` are those of an entry in the hashmap backend's own format, as `EntryFields` has them.
    """
    if parts is None:
        return None
    gaps, gap = [], 0  # how many bytes there are before each String
    for _, serializer in parts:
        if serializer.size is not None:
            gap += serializer.size
        elif type(serializer) is StringSerializer:
            gaps.append(gap)
            gap = 0
        else:
            return None
    if not gaps:
        return lambda data, pos, count: range(
            pos, pos + gap * min(count, (len(data) - pos) // gap) + 1, gap
        )

    def scan(data: bytes, pos: int, count: int) -> Sequence[int]:
        places = [pos]
        length = len(data)
        try:
            while count:
                for before in gaps:
                    pos += before
                    size = data[pos]
                    end = pos + (size or 1)
                    if size < 0x80 and data[pos:end].isascii():
                        pos = end
                    else:
                        _, pos = read_string(data, pos)
                pos += gap
                if pos > length:
                    break
                places.append(pos)
                count -= 1
        except (*TRUNCATED, ValueError):  # it is left to the reader of single entries
            pass
        return places

    return scan


def skip_scan(skip: Skip) -> Scan:
    """Return a Scan for entries that a skip passes over."""

    def find(data: bytes, pos: int, count: int) -> Sequence[int]:
        places, length = [pos], len(data)
        try:
            for _ in range(count):
                pos = skip(data, pos)
                if pos > length:
                    break
                places.append(pos)
        except (*TRUNCATED, ValueError):  # it is left to the reader of single entries
            pass
        return places

    return find


def key_scan(
    parts: Sequence[tuple[str, Serializer]] | None, starts: tuple[bytes, ...]
) -> KeyScan | None:
    """Return a KeyScan for keys that start as one of some; None where keys are anywhere.

    `parts` are those of `native_scan`.
    """
    scan = native_scan(parts)
    if parts is None or scan is None:
        return None
    names = [name for name, _ in parts]
    before = total_size([serializer for _, serializer in parts[: names.index("key")]])
    if before is None:
        return None

    def find(data: bytes, pos: int, count: int) -> tuple[list[int], int, int]:
        places = scan(data, pos, count)
        count = len(places) - 1
        found = [place for place in places[:-1] if data.startswith(starts, place + before)]
        return found, count, places[-1]

    return find


def framed_size(fields: EntryFields) -> tuple[int, int] | None:
    """Return the sizes of the key and the value of any entry, None where these differ.

    The key is without its key group.
    """
    if fields.key is None or fields.value is None:
        return None
    key, value = (
        total_size([serializer for _, serializer in parts]) for parts in (fields.key, fields.value)
    )
    return None if key is None or value is None else (key, value + len(fields.before_value))


def framed_skip(
    fields: EntryFields, prefix: bytes, before_key: int, starts: tuple[bytes, ...]
) -> Callable[[bytes, int], int] | None:
    """Return a function that passes over entries of other keys in a canonical savepoint, or None.

    `prefix` is that of their key group, `before_key` is how many bytes are between it and the
    key, which starts as one of `starts` where it is not another. It passes over entries of the
    size that all should have, and returns the place of the first one that is not such an entry.
    """
    size = framed_size(fields)
    if size is None:
        return None
    key_size, value_size = len(prefix) + size[0], size[1]
    head = key_size.to_bytes(4, "big") + prefix
    stride = 8 + key_size + value_size
    of_value = enumerate(value_size.to_bytes(4, "big"), 4 + key_size)
    # The last byte comes first, as most other sizes of a value differ in it.
    alike = [(place, bytes([byte])) for place, byte in (*enumerate(head), *of_value)][::-1]
    start = len(head) + before_key

    def skip(data: bytes, pos: int) -> int:
        run = _LEAST_RUN
        while True:
            count = min((len(data) - pos) // stride, run)
            for place, byte in alike:
                if not count:
                    return pos
                of_each = data[pos + place : pos + count * stride : stride]
                count -= len(of_each.lstrip(byte))
            end = pos + count * stride
            if any(data.find(key, pos, end) >= 0 for key in starts):
                for entry in range(pos, end, stride):
                    if data.startswith(starts, entry + start):
                        return entry
            if count < run:
                return end
            pos, run = end, 2 * run

    return skip
