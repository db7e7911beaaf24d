"""The order of entries by numbers, against Python's own of their fields."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from support.inside.columns import entry_batch, entry_order
from support.inside.savepoints import EncodedEntry


def check_order(entries: Sequence[EncodedEntry]) -> None:
    """Check the places of entries, of which equal ones keep their order."""
    expected = sorted(range(len(entries)), key=lambda place: entries[place][:3])
    assert entry_order.places_in_order(entry_batch(entries)).tolist() == expected
    sliced = entry_batch([EncodedEntry(1, 2, b"other", b""), *entries]).slice(1)
    assert entry_order.places_in_order(sliced).tolist() == expected


def entries_of(keys: Sequence[bytes], groups: int, states: int, seed: int) -> list[EncodedEntry]:
    draw = random.Random(seed)
    return [EncodedEntry(draw.randrange(groups), draw.randrange(states), key, b"") for key in keys]


@pytest.mark.parametrize("prefix", [b"", b"seven..", b"\0" * 9, b"x" * 70, b"y" * 700])
@pytest.mark.parametrize(
    "octets", [b"\0", b"\0\1", b"ab", b"\xff\0", bytes(range(256))], ids=lambda octets: octets[:2]
)
@pytest.mark.parametrize("longest", [0, 1, 8, 9, 16, 150])
def test_random_keys(prefix: bytes, octets: bytes, longest: int) -> None:
    draw = random.Random(longest)
    for count in (0, 1, 2, 60):
        keys = [
            prefix[: draw.choice([len(prefix)] * 3 + [draw.randint(0, len(prefix))])]
            + bytes(draw.choices(octets, k=draw.randint(0, longest)))
            for _ in range(count)
        ]
        for groups, states in ((1, 1), (3, 2), (32_768, 32_767)):
            check_order(entries_of(keys, groups, states, count))


@pytest.mark.parametrize("at_once", [1, 3, 1 << 14])
def test_more_bits_than_a_number_has(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """Keys that differ in their last bytes alone, behind many that differ for most of them."""
    monkeypatch.setattr(entry_order, "_AT_ONCE", at_once)
    draw = random.Random(0)
    heads = [draw.randbytes(40) for _ in range(3)]
    keys = [heads[number % 3] + bytes([number % 7, number % 5]) for number in range(200)]
    check_order(entries_of(keys, 128, 4, 1))


def test_keys_that_only_arrow_sorts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with more equal words than are looked at; the others are in order before."""
    asked: list[Any] = []
    whole_order = entry_order._whole_order

    def asking(ranks: Any, keys: Any) -> Any:
        asked.append(len(keys))
        return whole_order(ranks, keys)

    monkeypatch.setattr(entry_order, "_whole_order", asking)
    long = [b"x" * 600 + bytes([number]) for number in (3, 1, 2, 1)]
    check_order(entries_of([*long, b"short", b"x", *long], 1, 1, 0))
    assert asked == [8, 8]  # the slice too
    monkeypatch.setattr(entry_order, "_MORE_WORDS", 0)
    draw = random.Random(0)
    heads = [draw.randbytes(40) for _ in range(3)]
    check_order(
        entries_of([heads[number % 3] + bytes([-number % 50]) for number in range(50)], 3, 1, 0)
    )
    assert len(asked) == 4


def test_places_of_one_key_stay() -> None:
    """As those of the elements of a list."""
    check_order([EncodedEntry(0, 0, b"key", b"")] * 20)
    check_order([EncodedEntry(0, 0, b"", b"")] * 20)


def octets(*words: int, more: bytes = b"") -> bytes:
    return b"".join(word.to_bytes(8, "big") for word in words) + more


HEADS = [random.Random(seed).randbytes(80) for seed in range(3)]
OF_62_BITS = [octets(number) for number in (0, 1, 2**62 - 1, 0b10)]
OF_61_BITS = [octets(number, more=more) for number in (0, 2**61 - 1) for more in (b"\0", b"\1")]


@pytest.mark.parametrize(
    ("keys", "words", "whole"),
    [
        # The places of 4 entries take 2 bits of 64: 62 are left for keys, and none is looked at
        # again where these are enough.
        pytest.param(OF_62_BITS, [0], [], id="all bits of a word"),
        pytest.param(OF_61_BITS, [0, 1], [], id="a bit of the next word"),
        pytest.param([b"a", b"a"], [0, 1], [], id="the length comes last"),
        pytest.param([b"", b""], [0], [], id="the length alone"),
        # Words 0 to 64 of those that are alike there, and 9 more.
        pytest.param([b"x" * 640 + b"a"] * 2, range(65 + 9), [2], id="64 words alike"),
        # Two words have more bits than there is room for: the rest of the second and 8 more.
        pytest.param(
            [head + more for head in HEADS for more in (b"a", b"b")],
            range(2 + 8),
            [6],
            id="8 more",
        ),
        pytest.param(
            [head[:64] + more for head in HEADS for more in (b"a", b"b")], range(10), [], id="all"
        ),
    ],
)
def test_words_that_are_looked_at(
    keys: list[bytes], words: Sequence[int], whole: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more than tell the keys apart, each once: more would give the same order later."""
    looked_at: list[int] = []
    compared: list[int] = []
    read_word, whole_order = entry_order._Words.of, entry_order._whole_order

    def looking(self: Any, rows: Any, word: int) -> Any:
        looked_at.append(word)
        return read_word(self, rows, word)

    def comparing(ranks: Any, keys: Any) -> Any:
        compared.append(len(keys))
        return whole_order(ranks, keys)

    monkeypatch.setattr(entry_order._Words, "of", looking)
    monkeypatch.setattr(entry_order, "_whole_order", comparing)
    entries = [EncodedEntry(1, 2, key, b"") for key in keys]
    expected = sorted(range(len(keys)), key=lambda place: keys[place])
    assert entry_order.places_in_order(entry_batch(entries)).tolist() == expected
    assert looked_at == [*words]
    assert compared == whole
