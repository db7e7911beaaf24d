"""Arrays take their short ways where these are meant to be taken, and no more rows at once.

A way that is refused to what it is for has the same hash codes, is many times slower, and is seen
by no test of hash codes. What is expected is the rule beside each way in the core; the codes are
those of the core, key by key.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

np: Any = pytest.importorskip("numpy")
pa: Any = pytest.importorskip("pyarrow")

from support.inside.arrays import _blocks, _kernels, _scalars, _text, _utf8  # noqa: E402

from keygroups import arrays, hash_code  # noqa: E402
from keygroups.types import (  # noqa: E402
    BYTE_BUFFER,
    DOUBLE,
    FLOAT,
    INT,
    LIST,
    LONG,
    SCALA_TUPLE,
    SQL_DATE,
    STRING,
    KeyType,
)

Watch = Callable[..., list[Any]]


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Return a function that has calls of names in a module noted, in the list that it returns."""

    def watched(module: Any, note: Callable[..., Any], *names: str) -> list[Any]:
        noted: list[Any] = []
        for name in names:
            call = getattr(module, name)

            def noting(*args: Any, _name: str = name, _call: Any = call, **more: Any) -> Any:
                noted.append(note(_name, *args))
                return _call(*args, **more)

            monkeypatch.setattr(module, name, noting)
        return noted

    return watched


def name_and_length(name: str, *args: Any) -> tuple[str, int]:
    return name, len(args[0])


def assert_as_the_core(array: Any, key_type: KeyType) -> None:
    expected = [hash_code(key, key_type) for key in array.to_pylist()]
    assert arrays.hash_code(array, key_type).tolist() == expected


def assert_fields_as_the_core(array: Any, key_type: KeyType) -> None:
    """The same of products of Scala of one field, which has its `##`."""
    product = SCALA_TUPLE(key_type, scala="2.13")
    expected = [hash_code((key,), product) for key in array.to_pylist()]
    assert arrays.hash_code(array, product).tolist() == expected


# --- rows at a time -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "size", "expected"),
    [
        (32_768, 1, [32_768]),
        (32_769, 1, [32_768, 1]),
        (0, 1, []),
        # 2 MiB of texts of a KiB and an offset of 4 bytes: 2^21 * 3000 // (3000 * 1028 + 4) rows
        (3_000, 1_024, [2_040, 960]),
        (2, 3 << 20, [1, 1]),
    ],
)
def test_keys_are_hashed_in_blocks(
    rows: int, size: int, expected: list[int], watch: Watch
) -> None:
    """Of 32,768 rows, or of 2 MiB where these are fewer, and of a row at least."""
    blocks = watch(_blocks, lambda _, block: len(block), "hash_array")
    array = pa.array(["x" * size] * rows, pa.string())
    assert len(arrays.hash_code(array, STRING)) == rows
    assert blocks == expected


# --- texts ----------------------------------------------------------------------------------

OF_TEXTS = ("fold_segments", "fold_matrix", "padded", "utf8_codes", "_decoded_codes")


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([""], []),
        (["a" * 256, "b" * 256], ["fold_matrix"]),
        (["a" * 257, "b" * 257], ["fold_segments"]),
        (["", "a" * 64], ["padded", "fold_matrix"]),
        (["", "a" * 65], ["fold_segments"]),
        (["é" * 64, "a" * 128], ["utf8_codes"]),
        (["é" * 64 + "a"], ["_decoded_codes", "fold_segments"]),
        (["é" * 65, "a", "é"], ["_decoded_codes", "fold_segments", "utf8_codes"]),
        (["é" * 65, "a"], ["_decoded_codes", "fold_segments", "fold_matrix"]),
        (["é" + "a" * 99, "a" * 129], ["_decoded_codes", "fold_segments", "utf8_codes"]),
    ],
    ids=lambda case: str(case)[:20],
)
def test_texts_by_their_length(texts: list[str], expected: list[str], watch: Watch) -> None:
    """As a matrix up to 256 bytes, or 64 with gaps; what is no ASCII by words up to 128 bytes."""
    ways = watch(_text, lambda name, *_: name, *OF_TEXTS)
    assert_as_the_core(pa.array(texts), STRING)
    assert ways == expected


def test_bytes_by_their_length(watch: Watch) -> None:
    ways = watch(_text, lambda name, *_: name, *OF_TEXTS)
    for size, expected in ((64, ["padded", "fold_matrix"]), (65, ["fold_segments"])):
        ways.clear()
        assert_as_the_core(pa.array([b"", b"\xff" * size]), BYTE_BUFFER)
        assert ways == expected


def test_rows_of_text_beyond_ascii_at_a_time(watch: Watch) -> None:
    sizes = watch(_text, lambda _, data, offsets: (len(data), len(offsets) - 1), "utf8_codes")
    array = pa.array(["é", "ab"] * 8_192 + ["€"])
    codes = arrays.hash_code(array, STRING).tolist()
    assert codes == [233, 3105] * 8_192 + [0x20AC]  # "ab" is 97 * 31 + 98
    assert sizes == [(32_768, 16_384), (3, 1)]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["é", "a", "bc", ""], [("_ascii_sums", 1), ("_sums", 1)]),
        (["é" * 8, "a" * 9], [("_ascii_sums", 2), ("_sums", 2)]),
        (["é" * 8, "", ""], [("_sums", 2)]),
    ],
)
def test_words_of_ascii_are_summed_apart(
    texts: list[str], expected: list[tuple[str, int]], watch: Watch
) -> None:
    """A word is eight bytes; a row without a byte has none."""
    ways = watch(_utf8, name_and_length, "_ascii_sums", "_sums")
    assert_as_the_core(pa.array(texts), STRING)
    assert ways == expected


# --- powers of 31 ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "made"),
    [
        ([1], [2, 4]),  # units + 1 powers of 31, and as many of its inverse as units
        ([3], [4, 8]),
        ([4, 5, 6], [8, 8]),
        ([7], [8, 16]),
    ],
)
def test_powers_are_made_once(
    sizes: list[int], made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as the next power of two, which serve all numbers below it."""
    asked: list[int] = []

    @cache
    def keep(base: int, count: int) -> Any:
        asked.append(count)
        return _kernels._make_powers(base, count)

    monkeypatch.setattr(_kernels, "_keep_powers", keep)
    for size in sizes:
        assert_as_the_core(pa.array([list(range(size))], pa.list_(pa.int32())), LIST(INT))
    assert sorted(asked) == made


@pytest.mark.parametrize(("count", "kept"), [(7, True), (8, True), (9, False)])
def test_many_powers_are_not_kept(count: int, kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_kernels, "_MOST_KEPT", 8)
    asked: list[int] = []
    keep = _kernels._keep_powers

    def keeping(base: int, most: int) -> Any:
        asked.append(most)
        return keep(base, most)

    monkeypatch.setattr(_kernels, "_keep_powers", keeping)
    powers = _kernels._powers(31, count)
    assert powers[:count].tolist() == [pow(31, exponent, 2**32) for exponent in range(count)]
    assert bool(asked) is kept
    exponents = np.array([count, 0, count - 1])
    expected = [pow(31, int(exponent), 2**32) for exponent in exponents]
    assert _kernels.powers_of_31(exponents).tolist() == expected


def test_rows_of_a_matrix_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of as many as have so many numbers, in whichever parts; the codes are the same."""
    products: list[int] = []

    class Watched(np.ndarray):  # type: ignore[misc]
        def astype(self, *args: Any, **options: Any) -> Any:
            products.append(len(self))
            return np.asarray(self).astype(*args, **options)

    for most, parts in ((6, [2, 2, 1]), (8, [2, 2, 1]), (9, [3, 2]), (15, [5]), (3, [1] * 5)):
        products.clear()
        monkeypatch.setattr(_kernels, "_DOUBLES", most)
        octets = np.frombuffer(b"abcdefghijklmno", np.uint8).reshape(5, 3)
        codes = _kernels.fold_matrix(octets.view(Watched))
        texts = [row.tobytes().decode() for row in octets]
        assert codes.tolist() == [hash_code(text, STRING) for text in texts]
        assert products == parts


# --- dates ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zone", "days", "hashed"),
    [("UTC", [0, 1, 0], 0), ("Europe/Berlin", [0, 1, 0, 1], 2)],
)
def test_sql_dates(zone: str, days: list[int], hashed: int, watch: Watch) -> None:
    """The core hashes a date of a zone once, and none of UTC, which has no other days."""
    keys = pa.array(days, pa.int32()).cast(pa.date32())
    key_type = SQL_DATE(zone)
    expected = [hash_code(key, key_type) for key in keys.to_pylist()]
    calls = watch(_scalars, lambda name, key, _: key, "hash_code")
    assert arrays.hash_code(keys, key_type).tolist() == expected
    assert len(calls) == hashed


# --- the numbers of Scala -------------------------------------------------------------------


def double(bits: int) -> float:
    number: float = struct.unpack(">d", struct.pack(">Q", bits))[0]
    return number


OF_SCALA = ("_to_longs", "_whole_codes", "_to_ints", "_to_singles", "_with_whole", "fold_long")
SPARSE = double(0x3FF0000000200000)  # 1 + 2^-31: its low word has 21 zeros at its end, an Int's 22
NO_SINGLE = double(0x3FF0000008000000)  # 27 zeros, and a single has 29
MIXED = ["_to_longs", "_to_ints", "fold_long", "_to_singles", "_with_whole", "fold_long"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.1, 0.3], ["fold_long"]),
        ([SPARSE, 0.1], ["fold_long"]),
        ([1.0, -7.0, 2.0**31 - 1, -(2.0**31)], ["_to_ints"]),
        ([7.0, 2.0**31], ["_to_longs", "_whole_codes", "fold_long"]),
        ([1e15, -1e15, 2.0**62], ["_to_longs", "_whole_codes", "fold_long"]),
        ([1e15] * 8 + [0.5], MIXED),
        ([0.5, 1e15], MIXED),
        ([0.5, 1.5], ["_to_ints", "_to_singles", "_with_whole"]),
        ([0.5, 1.0], ["_to_ints", "_to_singles", "_with_whole"]),
        ([0.1, 1.0], ["_to_ints", "fold_long", "_with_whole"]),
        ([NO_SINGLE, 1.0], ["_to_ints", "fold_long", "_with_whole"]),
        ([0.1, 0.5], ["_to_ints", "fold_long", "_to_singles", "_with_whole"]),
    ],
    ids=lambda case: str(case)[:20],
)
def test_doubles_of_scala(values: list[float], expected: list[str], watch: Watch) -> None:
    """The fewest looks at all of a block, by its first values and by zeros at the end of bits."""
    ways = watch(_scalars, lambda name, *_: name, *OF_SCALA)
    assert_fields_as_the_core(pa.array(values, pa.float64()), DOUBLE)
    assert ways == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([5, -(2**31), 2**31 - 1], ["_are_within_ints"]),
        ([-(2**31), 5], ["_are_within_ints"]),
        ([2**31 - 1, 5], ["_are_within_ints"]),
        ([2**31, 5], ["fold_long", "choose"]),
        ([-(2**31) - 1, 5], ["fold_long", "choose"]),
        ([2**40, 2**41], ["fold_long"]),
        ([5, 2**40], ["_are_within_ints", "fold_long", "choose"]),
    ],
)
def test_longs_of_scala(values: list[int], expected: list[str], watch: Watch) -> None:
    """The first value tells whether a look at all of them may be worth it."""
    ways = watch(_scalars, lambda name, *_: name, "_are_within_ints", "fold_long", "choose")
    assert_fields_as_the_core(pa.array(values, pa.int64()), LONG)
    assert ways == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, -7.0], ["_to_ints"]),
        ([0.5, -7.0], ["_to_ints", "_with_whole", "choose"]),
        ([0.5, 1.5], ["_to_ints", "_with_whole"]),
        ([2.0**32, 0.5], ["_to_ints", "_with_whole", "choose"]),
    ],
)
def test_floats_of_scala(values: list[float], expected: list[str], watch: Watch) -> None:
    ways = watch(_scalars, lambda name, *_: name, "_to_ints", "_with_whole", "choose")
    assert_fields_as_the_core(pa.array(values, pa.float32()), FLOAT)
    assert ways == expected
