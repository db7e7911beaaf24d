"""Bitmaps in each encoding of RoaringBitmap's format, put together by hand.

The format is https://github.com/RoaringBitmap/RoaringFormatSpec; bitmaps that Flink wrote are
among the cases of `test_serializer_cases.py`.
"""

from __future__ import annotations

import pickle
import random
import struct
from collections.abc import Iterable
from dataclasses import FrozenInstanceError
from itertools import islice
from typing import Any

import pytest
from support.growth import count_bytes, count_steps

from keygroups.errors import InvalidTypeError, InvalidValueError, KeyGroupsError
from keygroups.savepoint.values import Bitmap

SPAN = 1 << 16
Container = tuple[int, str, Any]  # the high bits, the encoding, numbers or pairs of runs


def encoded(kind: str, numbers: Any) -> tuple[int, bytes]:
    """Return the number of numbers, and their bytes."""
    if kind == "runs":
        runs = b"".join(struct.pack("<HH", first, last - first) for first, last in numbers)
        return sum(last - first + 1 for first, last in numbers), struct.pack(
            "<H", len(numbers)
        ) + runs
    if kind == "array":
        return len(numbers), struct.pack(f"<{len(numbers)}H", *numbers)
    bits = sum(1 << number for number in numbers)
    return len(numbers), bits.to_bytes(8_192, "little")


def bitmap_of(*containers: Container) -> bytes:
    count = len(containers)
    written = [(high, *encoded(kind, numbers)) for high, kind, numbers in containers]
    has_runs = any(kind == "runs" for _, kind, _ in containers)
    if has_runs:
        flags = sum((kind == "runs") << index for index, (_, kind, _) in enumerate(containers))
        start = struct.pack("<HH", 12_347, count - 1) + flags.to_bytes((count + 7) // 8, "little")
    else:
        start = struct.pack("<II", 12_346, count)
    start += b"".join(struct.pack("<HH", high, size - 1) for high, size, _ in written)
    if not has_runs or count >= 4:
        place = len(start) + 4 * count
        for _, _, data in written:
            start += struct.pack("<I", place)
            place += len(data)
    return start + b"".join(data for *_, data in written)


def as_int(number: int) -> int:
    return number - 2**32 if number >= 2**31 else number


def check(data: bytes, unsigned: Iterable[int]) -> None:
    bitmap, numbers = Bitmap(data), [*map(as_int, unsigned)]
    assert list(bitmap) == numbers
    assert len(bitmap) == len(numbers)
    members = set(numbers)
    near = {number + step for number in islice(numbers, 500) for step in (-1, 0, 1)}
    for number in {*near, *range(-1, 16), 2**31, -(2**31) - 1}:
        assert (number in bitmap) == (number in members), number


def test_encodings() -> None:
    many = sorted(random.Random(7).sample(range(SPAN), 5_000))
    check(bitmap_of(), [])
    check(bitmap_of((0, "array", [3, 10])), [3, 10])
    check(bitmap_of((0, "array", [0]), (SPAN - 1, "array", [SPAN - 1])), [0, 2**32 - 1])
    ends = (32_767, "array", [SPAN - 1]), (32_768, "array", [0])
    check(bitmap_of(*ends), [2**31 - 1, 2**31])
    check(bitmap_of((1, "bits", many)), [SPAN + number for number in many])
    check(bitmap_of((0, "bits", many), (1, "array", [1])), [*many, SPAN + 1])
    check(bitmap_of((0, "array", range(5, SPAN, 257))), range(5, SPAN, 257))
    check(bitmap_of((0, "runs", [(0, 4), (7, 7)])), [0, 1, 2, 3, 4, 7])
    check(bitmap_of((0, "runs", [(10, 12)])), [10, 11, 12])
    mixed: list[Container] = [
        (0, "array", [5]),
        (2, "runs", [(1, 2), (SPAN - 1, SPAN - 1)]),
        (32_767, "bits", many),
        (32_768, "array", [0]),
    ]
    numbers = [5, 2 * SPAN + 1, 2 * SPAN + 2, 3 * SPAN - 1]
    numbers += [32_767 * SPAN + number for number in many] + [2**31]
    check(bitmap_of(*mixed), numbers)
    check(bitmap_of(*mixed[:3]), numbers[:-1])


def test_arrays_have_4096_numbers_at_most() -> None:
    for kind, count in (("array", 4_096), ("bits", 4_097)):
        assert list(Bitmap(bitmap_of((0, kind, range(count))))) == [*range(count)]


def test_each_container_says_whether_it_has_runs() -> None:
    highs = range(20)
    containers: list[Container] = [
        (high, "array", [4]) if high % 3 else (high, "runs", [(4, 5)]) for high in highs
    ]
    pairs = [(SPAN * high + 4, SPAN * high + 5) for high in highs]
    check(
        bitmap_of(*containers),
        [number for high, pair in zip(highs, pairs) for number in pair[: 1 if high % 3 else 2]],
    )


@pytest.mark.parametrize("high", [0, 1, SPAN - 1])
def test_bitmaps_are_equal_if_their_numbers_are(high: int) -> None:
    numbers = range(5_000)
    bits = Bitmap(bitmap_of((high, "bits", numbers)))
    for same in (
        bits,
        Bitmap(bitmap_of((high, "runs", [(0, 4_999)]))),
        Bitmap(bitmap_of((high, "runs", [(0, 7), (8, 4_999)]))),  # no encoder writes such
        pickle.loads(pickle.dumps(bits)),
    ):
        assert bits == same
        assert hash(bits) == hash(same)
    for other in (
        Bitmap(bitmap_of((high, "runs", [(0, 4_998)]))),
        Bitmap(bitmap_of((high, "runs", [(1, 5_000)]))),
        Bitmap(bitmap_of((high ^ 2, "bits", numbers))),
        Bitmap(bitmap_of()),
        set(bits),
    ):
        assert (bits == other) is False


def test_bitmaps_differ_if_their_numbers_do() -> None:
    across = bitmap_of((0, "runs", [(9, SPAN - 1)]), (1, "runs", [(0, 9)]))
    assert Bitmap(across) != Bitmap(bitmap_of((0, "runs", [(9, SPAN - 1)]), (1, "runs", [(0, 8)])))
    gaps = [Bitmap(bitmap_of((0, "array", [3, 5, last]))) for last in (7, 7, 8)]
    assert gaps[0] == gaps[1] != gaps[2]
    first = [Bitmap(bitmap_of((0, "array", [number, 5, 7]))) for number in (1, 2, 3)]
    assert first[0] != first[1] != first[2] != first[0]
    assert hash(gaps[0]) == hash(gaps[1]) != hash(gaps[2])
    assert Bitmap(bitmap_of((0, "array", [1, 3, 4]))) != Bitmap(bitmap_of((0, "array", [1, 2, 4])))
    for high in (0, 1, SPAN - 2):
        in_second = [
            Bitmap(bitmap_of((high, "array", [SPAN - 1]), (high + 1, "array", [middle, 6])))
            for middle in (4, 5)
        ]
        assert in_second[0] != in_second[1]
    assert Bitmap(bitmap_of((0, "array", [0]))) != Bitmap(bitmap_of())
    assert Bitmap(bitmap_of()) == Bitmap(bitmap_of())


def test_printed() -> None:
    assert repr(Bitmap(bitmap_of())) == "<Bitmap of 0 numbers: >"
    assert repr(Bitmap(bitmap_of((0, "runs", [(0, 9)])))) == (
        "<Bitmap of 10 numbers: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9>"
    )
    assert repr(Bitmap(bitmap_of((0, "runs", [(0, 10)])))).endswith("8, 9, ...>")


def test_frozen() -> None:
    bitmap: Any = Bitmap(GOOD)
    with pytest.raises(FrozenInstanceError):
        bitmap.data = b""


def test_what_is_no_number_is_not_in_it() -> None:
    bitmap = Bitmap(bitmap_of((0, "array", [1])))
    assert [one in bitmap for one in (1, True, 1.0, "1", None)] == [
        True,
        True,
        False,
        False,
        False,
    ]


def test_a_few_bytes_stand_for_millions_of_numbers() -> None:
    data = bitmap_of(*((high, "runs", [(0, SPAN - 1)]) for high in range(256)))
    assert len(data) < 4_000
    bitmap = Bitmap(data)
    assert len(bitmap) == 2**24
    assert count_bytes(lambda: Bitmap(data) == bitmap) < 1 << 18
    assert count_steps(lambda: (Bitmap(data) == bitmap, hash(bitmap), 5 in bitmap)) < 50_000
    assert list(islice(bitmap, 3)) == [0, 1, 2]


GOOD = bitmap_of((0, "array", [3, 10]), (2, "runs", [(1, 2)]))
NO_BITMAPS: list[tuple[Any, type[KeyGroupsError], str]] = [
    ("text", InvalidTypeError, "data must be bytes, got 'text'"),
    (b"", InvalidValueError, "data must be a bitmap, and 0 bytes end it"),
    (GOOD[:-1], InvalidValueError, "bytes end it"),
    (bitmap_of((0, "array", [3, 10]))[:-2], InvalidValueError, "and 18 bytes end it"),
    (bitmap_of((0, "bits", range(5_000)))[:-1], InvalidValueError, "and 8207 bytes end it"),
    (bitmap_of((0, "runs", [(0, 3), (7, 9)]))[:-4], InvalidValueError, "and 15 bytes end it"),
    (GOOD + b"\0", InvalidValueError, f"with {len(GOOD)} bytes, got {len(GOOD) + 1}"),
    (b"\x39" + GOOD[1:], InvalidValueError, "a cookie of 12346 or 12347, got 12345"),
    (struct.pack("<II", 12_346, SPAN), InvalidValueError, "8 bytes end it"),
    (struct.pack("<II", 12_346, SPAN + 1), InvalidValueError, "at most 65536 contai"),
    (struct.pack("<II", 12_346 + SPAN, 0), InvalidValueError, "a cookie"),
    (
        bitmap_of((1, "array", [0]), (1, "array", [0])),
        InvalidValueError,
        "containers in order, got 1 after 1",
    ),
    (bitmap_of((5, "array", [3, 3])), InvalidValueError, "2 numbers of container 5 in order"),
    (bitmap_of((5, "runs", [(3, 9), (9, 9)])), InvalidValueError, "numbers of container 5"),
    (bitmap_of((5, "runs", [(3, 9), (5, 12)])), InvalidValueError, "numbers of container 5"),
    (bitmap_of((5, "runs", [(3, 9)])).replace(b"\5\0\6", b"\5\0\5"), InvalidValueError, "the 6"),
    (
        bitmap_of((0, "runs", [(SPAN - 1, SPAN - 1)]))[:-2] + b"\1\0",
        InvalidValueError,
        "numbers of container 0",
    ),
    (bitmap_of((0, "bits", range(5_000)))[:-1] + b"\1", InvalidValueError, "the 5000 numbers"),
    (
        bitmap_of((0, "array", [1])).replace(b"\x10\0\0\0", b"\x11\0\0\0"),
        InvalidValueError,
        "container 0 at 16, got another offset",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("data", "error", "message"), NO_BITMAPS)
def test_what_is_no_bitmap(data: Any, error: type[KeyGroupsError], message: str) -> None:
    with pytest.raises(error, match=message):
        Bitmap(data)


def test_damage() -> None:
    """Whatever byte is another, it is a bitmap or refused."""
    many = bitmap_of(*((high, "runs", [(high, 9)]) for high in range(4)), (9, "array", [1, 2]))
    outcomes = set()
    for data in (GOOD, many):
        for pos in range(len(data)):
            for flip in (1, 0x80, 0xFF):
                damaged = data[:pos] + bytes([data[pos] ^ flip]) + data[pos + 1 :]
                try:
                    bitmap = Bitmap(damaged)
                except InvalidValueError:
                    outcomes.add("refused")
                    continue
                assert len(list(bitmap)) == len(bitmap)
                outcomes.add("read")
    assert outcomes == {"refused", "read"}
