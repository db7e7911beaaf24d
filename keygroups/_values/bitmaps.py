"""Flink's Bitmap, a set of 32-bit numbers, in the bytes of a RoaringBitmap."""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice, pairwise, zip_longest
from typing import NamedTuple

from keygroups._checks import INT_MAX, INT_MIN, check_class
from keygroups.errors import InvalidValueError

_WITHOUT_RUNS, _WITH_RUNS = 12_346, 12_347
_FEW = 4  # the least containers for which a bitmap with runs has offsets
_MOST = 1 << 16  # the most containers, and the most numbers in one
_MOST_IN_ARRAY = 4_096
_BITS_SIZE = _MOST // 8
_ARRAY, _BITS, _RUNS = range(3)
_SHOWN = 10

_u16 = struct.Struct("<H").unpack_from
_u32 = struct.Struct("<I").unpack_from
_pair = struct.Struct("<HH").unpack_from


class _Container(NamedTuple):
    """The numbers with the same high 16 bits: their format, offset and count."""

    high: int
    kind: int
    start: int
    cardinality: int


@dataclass(frozen=True, eq=False, repr=False)
class Bitmap:
    r"""A BITMAP: a set of ints, those of a RoaringBitmap, in its order: negative ones last.

    `data` is the bitmap in RoaringBitmap's portable format, which other libraries read and write.
    Its numbers are -2^31..2^31-1. They are decoded one by one, as a few bytes may stand for
    millions. Two bitmaps are equal if their numbers are.

    Raises InvalidTypeError where `data` is no bytes, InvalidValueError for bytes of no bitmap.

    Flink: org.apache.flink.types.bitmap.Bitmap.

    >>> bitmap = Bitmap(b"\x3a\x30\0\0\1\0\0\0" b"\0\0\1\0" b"\x10\0\0\0" b"\3\0\x0a\0")
    >>> list(bitmap), len(bitmap), 10 in bitmap
    ([3, 10], 2, True)
    """

    data: bytes
    _containers: list[_Container] = field(init=False)

    def __post_init__(self) -> None:
        data = check_class("data", self.data, bytes, "bytes")
        try:
            containers = _containers(data)
        except (IndexError, struct.error):
            raise InvalidValueError(
                f"data must be a bitmap, and {len(data)} bytes end it"
            ) from None
        object.__setattr__(self, "_containers", containers)

    def __len__(self) -> int:
        return sum(container.cardinality for container in self._containers)

    def __iter__(self) -> Iterator[int]:
        for container in self._containers:
            # The highest bit is the sign.
            high = (
                container.high << 16 if container.high < 1 << 15 else container.high - _MOST << 16
            )
            for first, last in _spans(self.data, container):
                yield from range(high + first, high + last + 1)

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int) or not INT_MIN <= number <= INT_MAX:
            return False
        high, low = number >> 16 & 0xFFFF, number & 0xFFFF
        index = bisect_left(self._containers, (high,))
        if index == len(self._containers) or self._containers[index].high != high:
            return False
        return _has(self.data, self._containers[index], low)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bitmap):
            return NotImplemented
        return len(self) == len(other) and all(
            one == another for one, another in zip_longest(self._ranges(), other._ranges())
        )

    def __hash__(self) -> int:
        code = 0
        for numbers in self._ranges():
            code = hash((code, numbers))
        return code

    def __repr__(self) -> str:
        shown = ", ".join(map(str, islice(self, _SHOWN)))
        count = len(self)
        return f"<Bitmap of {count} numbers: {shown}{', ...' if count > _SHOWN else ''}>"

    def _ranges(self) -> Iterator[tuple[int, int]]:
        """Yield the first and last number of each run without a gap, as unsigned ones.

        The runs are the same in whichever format the numbers are.
        """
        first, last = 0, -1
        for container in self._containers:
            for low, high in _spans(self.data, container):
                low, high = container.high << 16 | low, container.high << 16 | high
                if low > last + 1:
                    yield first, last
                    first = low
                last = high
        yield first, last


def _containers(data: bytes) -> list[_Container]:
    """Return the containers of a bitmap, after checking all of it."""
    (cookie,) = _u32(data, 0)
    has_flags = cookie & 0xFFFF == _WITH_RUNS
    if has_flags:
        count = (cookie >> 16) + 1
        pos = 4 + (count + 7) // 8
    elif cookie == _WITHOUT_RUNS:
        (count,) = _u32(data, 4)
        if count > _MOST:
            raise _no_bitmap(f"at most {_MOST} containers, got {count}")
        pos = 8
    else:
        raise _no_bitmap(f"a cookie of {_WITHOUT_RUNS} or {_WITH_RUNS}, got {cookie & 0xFFFF}")
    offsets = end = pos + 4 * count
    has_offsets = not has_flags or count >= _FEW
    if has_offsets:
        end += 4 * count
    containers: list[_Container] = []
    for index in range(count):
        high, fewer = _pair(data, pos + 4 * index)
        if containers and high <= containers[-1].high:
            raise _no_bitmap(f"containers in order, got {high} after {containers[-1].high}")
        if has_offsets and _u32(data, offsets + 4 * index) != (end,):
            raise _no_bitmap(f"container {index} at {end}, got another offset")
        if has_flags and data[4 + index // 8] >> index % 8 & 1:
            kind = _RUNS
        else:
            kind = _ARRAY if fewer < _MOST_IN_ARRAY else _BITS
        containers.append(_Container(high, kind, end, fewer + 1))
        end = _checked_end(data, containers[-1])
    if end != len(data):
        raise _no_bitmap(f"{end} bytes, got {len(data)}")
    return containers


def _no_bitmap(expected: str) -> InvalidValueError:
    return InvalidValueError(f"data must be a bitmap, with {expected}")


def _checked_end(data: bytes, container: _Container) -> int:
    """Return the end of a container, after checking that its numbers are in order."""
    _, kind, start, count = container
    size = 2 * count if kind == _ARRAY else _BITS_SIZE
    if kind == _RUNS:
        (runs,) = _u16(data, start)
        size = 2 + 4 * runs
    end = start + size
    if end > len(data):
        raise IndexError("too few bytes")
    if kind == _BITS:
        numbers = int.from_bytes(data[start:end], "little").bit_count()
        is_in_order = True
    else:
        spans = list(_spans(data, container))
        numbers = sum(last - first + 1 for first, last in spans)
        is_in_order = all(one[1] < other[0] for one, other in pairwise(spans))
        is_in_order = is_in_order and all(last < _MOST for _, last in spans)
    if not is_in_order or numbers != count:
        raise _no_bitmap(f"the {count} numbers of container {container.high} in order")
    return end


def _spans(data: bytes, container: _Container) -> Iterator[tuple[int, int]]:
    """Yield first and last number of runs without a gap, by their low 16 bits.

    A run is as long as the format has it: in an array and in bits each number is one.
    """
    _, kind, start, count = container
    if kind == _RUNS:
        (runs,) = _u16(data, start)
        end = start + 2 + 4 * runs
        for first, more in struct.iter_unpack("<HH", data[start + 2 : end]):
            yield first, first + more
    elif kind == _ARRAY:
        for number in struct.unpack_from(f"<{count}H", data, start):
            yield number, number
    else:
        for at in range(_BITS_SIZE):
            bits = data[start + at]
            while bits:
                lowest = bits & -bits
                number = 8 * at + lowest.bit_length() - 1
                yield number, number
                bits ^= lowest


def _has(data: bytes, container: _Container, low: int) -> bool:
    """Return whether a number is in its container, by its low 16 bits."""
    _, kind, start, count = container
    if kind == _BITS:
        return bool(data[start + low // 8] >> low % 8 & 1)
    if kind == _ARRAY:
        index = bisect_left(range(count), (low,), key=lambda at: _u16(data, start + 2 * at))
        return index < count and _u16(data, start + 2 * index) == (low,)
    (runs,) = _u16(data, start)
    index = bisect_right(range(runs), (low,), key=lambda run: _u16(data, start + 2 + 4 * run)) - 1
    if index < 0:
        return False
    first, more = _pair(data, start + 2 + 4 * index)
    return bool(low <= first + more)
