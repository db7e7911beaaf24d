"""NumPy's kinds and units in arrays: what the core says of each value, or refused.

The values that are expected are made by Python, of the integers and bytes that an array has.
"""

from __future__ import annotations

import datetime as dt
import math
import random
import re
import struct
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import pytest

import keygroups
from keygroups import InvalidTypeError, InvalidValueError, UnsupportedKeyTypeError, arrays
from keygroups.types import (
    BOOLEAN,
    BYTE,
    DOUBLE,
    FLOAT,
    INT,
    LOCAL_DATE,
    LOCAL_DATE_TIME,
    LONG,
    SHORT,
    SQL_DATE,
    SQL_ROW,
    STRING,
    TUPLE,
    KeyType,
)

np: Any = numpy  # whose stubs know less of dtypes than is asked here

Made = tuple[Any, list[Any]]
EPOCH = dt.datetime(1970, 1, 1)


class Kind(NamedTuple):
    """Keys of a dtype: their type, and what makes an array and the values in it."""

    key_type: KeyType
    make: Callable[[random.Random, int], Made]


def numbers(dtype: str, code: str) -> Callable[[random.Random, int], Made]:
    """Make numbers of random bytes, which `struct` reads as well; floats have every NaN."""

    def make(rng: random.Random, count: int) -> Made:
        size = struct.calcsize(f"={code}")
        octets = bytearray(rng.randbytes(count * size))
        if code == "Q":  # the highest is 2^63 - 1, a Long's
            big = dtype.startswith(">")
            octets[0 if big else 7 :: 8] = bytes(b & 127 for b in octets[0 if big else 7 :: 8])
        if code == "?":
            octets = bytearray(b & 1 for b in octets)
        order = ">" if dtype.startswith(">") else "<"
        values = list(struct.unpack(f"{order}{count}{code}", octets))
        return np.frombuffer(bytes(octets), dtype), values

    return make


def text(rng: random.Random) -> str:
    return "".join(rng.choices("ab\0\0\u00e9\u65e5\U0001f600", k=rng.choice((0, 1, 3, 7))))


def fixed(dtype: str) -> Callable[[random.Random, int], Made]:
    """Make texts of fixed width, of which NumPy fills up with NULs those that are shorter."""

    def make(rng: random.Random, count: int) -> Made:
        values = [text(rng) for _ in range(count)]
        return np.array(values, dtype), [value.rstrip("\0") for value in values]

    return make


def whole(dtype: Callable[[], Any], missing: bool) -> Callable[[random.Random, int], Made]:
    """Make texts that are kept as they are."""

    def make(rng: random.Random, count: int) -> Made:
        values = [None if missing and not rng.randrange(9) else text(rng) for _ in range(count)]
        return np.array(values, dtype()), values

    return make


NANOS = {
    **{"W": 7 * 86_400 * 10**9, "D": 86_400 * 10**9, "h": 3_600 * 10**9, "m": 60 * 10**9},
    **{"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1},
}


def moments(unit: str, step: int, order: str = "<") -> Callable[[random.Random, int], Made]:
    """Make dates and times, as far as Python has them, and some NaT."""
    nanos = NANOS[unit] * step
    first, last = (
        (end - EPOCH) // dt.timedelta(seconds=1) * 10**9 // nanos
        for end in (dt.datetime.min, dt.datetime.max)
    )
    bits = 2**63 // (step if unit == "ns" else 1)  # a count of nanoseconds has to fit
    low, high = max(-bits, first) + 1, min(bits - 1, last)
    every = 1_000 // math.gcd(nanos, 1_000)  # Python has whole microseconds only

    def make(rng: random.Random, count: int) -> Made:
        counts = [rng.randrange(-(-low // every), high // every) * every for _ in range(count)]
        counts = [n if rng.randrange(9) else rng.randrange(-5, 5) * every for n in counts]
        values: list[Any] = [EPOCH + dt.timedelta(microseconds=n * nanos // 1000) for n in counts]
        if unit in ("W", "D"):
            values = [value.date() for value in values]
        for index in range(0, count, 7):
            counts[index], values[index] = -(2**63), None  # NaT
        octets = struct.pack(f"{order}{count}q", *counts)
        return np.frombuffer(octets, f"{order}M8[{step}{unit}]"), values

    return make


def in_sql(sql_type: str, kind: Kind) -> Kind:
    """Return keys of one column of Flink SQL, where NULL is a value."""

    def make(rng: random.Random, count: int) -> Made:
        array, values = kind.make(rng, count)
        return [array], [(value,) for value in values]

    return Kind(SQL_ROW(sql_type), make)


def masked(kind: Kind) -> Kind:
    """Return keys of which a mask hides some."""

    def make(rng: random.Random, count: int) -> Made:
        array, values = kind.make(rng, count)
        mask = [rng.random() < 0.3 for _ in values]
        return np.ma.MaskedArray(array, mask), [
            None if hidden else value for hidden, value in zip(mask, values)
        ]

    return Kind(kind.key_type, make)


STEPS: dict[str, tuple[int, ...]] = {
    **{"W": (1, 3), "D": (1, 7), "h": (1, 6), "m": (1, 15), "s": (1, 25), "ms": (1, 2, 10)},
    **{"us": (1, 25, 3_600), "ns": (1, 10, 400, 1_000)},
}
KINDS = {
    "?": Kind(BOOLEAN, numbers("?", "?")),
    "i1": Kind(BYTE, numbers("i1", "b")),
    "u1": Kind(SHORT, numbers("u1", "B")),
    **{f"{order}i2": Kind(SHORT, numbers(f"{order}i2", "h")) for order in "<>"},
    **{f"{order}u2": Kind(INT, numbers(f"{order}u2", "H")) for order in "<>"},
    **{f"{order}i4": Kind(INT, numbers(f"{order}i4", "i")) for order in "<>"},
    **{f"{order}u4": Kind(LONG, numbers(f"{order}u4", "I")) for order in "<>"},
    **{f"{order}i8": Kind(LONG, numbers(f"{order}i8", "q")) for order in "<>"},
    **{f"{order}u8": Kind(LONG, numbers(f"{order}u8", "Q")) for order in "<>"},
    **{f"{order}f4": Kind(FLOAT, numbers(f"{order}f4", "f")) for order in "<>"},
    **{f"{order}f8": Kind(DOUBLE, numbers(f"{order}f8", "d")) for order in "<>"},
    **{f"{order}U7": Kind(STRING, fixed(f"{order}U7")) for order in "<>"},
    "O": Kind(STRING, whole(lambda: object, missing=True)),
    **({"T": Kind(STRING, whole(np.dtypes.StringDType, False))} if hasattr(np, "strings") else {}),
    **{
        f"{order}M8[{step}{unit}]": Kind(
            LOCAL_DATE if unit in ("W", "D") else LOCAL_DATE_TIME, moments(unit, step, order)
        )
        for unit, steps in STEPS.items()
        for step in steps
        for order in ("<" if step == 1 else "<>")
    },
}
KINDS |= {
    f"masked {name}": masked(KINDS[name])
    for name in ("?", "<i8", "<f8", "<U7", "O", "<M8[1D]", "<M8[10ms]", "<M8[1s]", "<M8[1ns]")
}
KINDS |= {
    f"{name} as {sql_type}": in_sql(sql_type, KINDS[name])
    for name, sql_type in {
        **{"?": "BOOLEAN", "i1": "TINYINT", "<i2": "SMALLINT", "<i4": "INT", ">i8": "BIGINT"},
        **{"<U7": "STRING", ">U7": "VARCHAR(7)", "O": "STRING", "<M8[7D]": "DATE"},
        **{"<M8[25s]": "TIMESTAMP(0)", "<M8[10ms]": "TIMESTAMP(3)", "<M8[1ns]": "TIMESTAMP(9)"},
    }.items()
}


def compare(kind: Kind, rng: random.Random, count: int) -> int:
    """Return the number of keys of an array that have another hash code than the core gives."""
    array, values = kind.make(rng, count)
    expected = [None if v is None else keygroups.hash_code(v, kind.key_type) for v in values]
    found = arrays.hash_code(array, kind.key_type, nulls="mask").tolist()
    assert len(found) == len(expected) == count
    return sum(code != right for code, right in zip(found, expected))


@pytest.mark.parametrize("count", [200, pytest.param(20_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_as_the_core(name: str, count: int) -> None:
    rng = random.Random(f"{name} {count}")
    assert compare(KINDS[name], rng, count) == 0


def seen(array: Any) -> Any:
    return arrays.hash_code(array, nulls="mask").tolist()


@pytest.mark.parametrize("layout", ["every other", "reversed", "column", "repeated", "memmap"])
@pytest.mark.parametrize("name", ["<i8", ">f8", "<U7", ">M8[10ms]", "<M8[7D]"])
def test_layouts(name: str, layout: str, tmp_path: Path) -> None:
    """Arrays that are no block of memory, or another's."""
    kind = KINDS[name]
    array, values = kind.make(random.Random(name), 60)
    if layout == "every other":
        array, values = array[::2], values[::2]
    elif layout == "reversed":
        array, values = array[::-1], values[::-1]
    elif layout == "column":
        array, values = array.reshape(20, 3)[:, 1], values[1::3]
    elif layout == "repeated":
        array, values = np.broadcast_to(array[1:2], 9), values[1:2] * 9
    else:
        array.tofile(tmp_path / "keys")
        array = np.memmap(tmp_path / "keys", array.dtype, "r")
    expected = [None if v is None else keygroups.hash_code(v, kind.key_type) for v in values]
    assert arrays.hash_code(array, kind.key_type, nulls="mask").tolist() == expected


def test_nul_in_texts() -> None:
    """Within a text it is a character; behind it NumPy has it for none, and so drops it."""
    texts = ["a\0b", "x\0y\0z", "\0\0c", "", "a\0"]
    expected = [keygroups.hash_code(text) for text in [*texts[:4], "a"]]
    assert np.array(texts)[4] == "a"
    assert seen(np.array(texts)) == expected
    assert seen(np.array(texts, object)) == [*expected[:4], keygroups.hash_code("a\0")]
    for dtype in ("U0", "U1"):
        assert seen(np.ndarray(2, dtype, bytes(8))) == [0, 0]
    # One that ends with some before one that begins otherwise.
    assert seen(np.array(["a", "bcd", "e", "\0f"])) == [97, 97347, 101, 102]
    # One that begins with some, and fills its width.
    assert seen(np.array(["\0b", "cd"])) == [98, 31 * 99 + 100]


@pytest.mark.filterwarnings("ignore:The 'generic' unit:DeprecationWarning")  # newer NumPy warns
@pytest.mark.parametrize("unit", ["Y", "M", "ps", "fs", "as", "generic"])
def test_units_that_no_java_class_has(unit: str) -> None:
    """A year may be a java.time.Year, and Java counts nanoseconds."""
    dtype = "M8" if unit == "generic" else f"M8[{unit}]"
    for array in (np.array(["NaT"], dtype), np.array([], dtype)):
        with pytest.raises(UnsupportedKeyTypeError, match=r"datetime64.* is not supported: units"):
            arrays.hash_code(array, LOCAL_DATE)


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("M8[D]", -(2**31), 2**31 - 1),
        ("M8[7D]", -(2**31 // 7), (2**31 - 1) // 7),
        ("M8[2W]", -(2**31 // 14), (2**31 - 1) // 14),
        ("M8[10ms]", -(2**63 // 10), (2**63 - 1) // 10),
        ("M8[3h]", -(2**63 // 10_800), (2**63 - 1) // 10_800),
    ],
)
def test_dates_beyond_their_bits(dtype: str, low: int, high: int) -> None:
    for value in (low - 1, high + 1):
        array = np.array([5, value], "i8").view(dtype)
        says = rf"{re.escape(np.dtype(dtype).name)} must be from {low} to {high}, got {value}$"
        with pytest.raises(InvalidValueError, match=f"^key 1: key of dtype {says}"):
            arrays.hash_code(array)
        with pytest.raises(InvalidValueError, match=f"^key 1: field 0: column 0 of dtype {says}"):
            arrays.hash_code([array], TUPLE(LOCAL_DATE))
        with pytest.raises(InvalidValueError, match=f"^key_hash 1: key_hash of dtype {says}"):
            arrays.compute_key_group_for_key_hash(array, 128)
        hidden = np.ma.MaskedArray(array, [False, True])
        assert seen(hidden) == [seen(array[:1])[0], None]
    if dtype.endswith(("D]", "W]")):  # the ends themselves: Java's dates go further
        step = {"M8[D]": 1, "M8[7D]": 7, "M8[2W]": 14}[dtype]
        assert seen(np.array([low, high], "i8").view(dtype)) == [
            far_date_code(low * step),
            far_date_code(high * step),
        ]


def far_date_code(days: int) -> int:
    """Return LocalDate.hashCode of a date that Python does not have, 400 years at a time."""
    eras, rest = divmod(days, 146_097)
    date = dt.date(1970, 1, 1) + dt.timedelta(days=rest)
    year = date.year + 400 * eras
    code = (year & 0xFFFFF800) ^ ((year << 11) + (date.month << 6) + date.day) & 0xFFFFFFFF
    return code - 2**32 if code >= 2**31 else code


@pytest.mark.parametrize(("days", "second"), [(2**31 - 1, 86_399), (-(2**31), 0)])
def test_the_last_seconds_of_days_of_32_bits(days: int, second: int) -> None:
    """LocalDateTime.hashCode is that of the date xor that of the time, a Long of nanoseconds."""
    nanos = second * 10**9
    expected = far_date_code(days) ^ (nanos & 0xFFFFFFFF) ^ (nanos >> 32)
    found = arrays.hash_code(np.array([days * 86_400 + second], "M8[s]")).tolist()
    assert found == [expected - 2**32 if expected >= 2**31 else expected]


def test_dates_in_a_time_zone() -> None:
    array = np.array([20, 30], "M8[500D]")
    key_type = SQL_DATE("Europe/Berlin")
    dates = [dt.date(1970, 1, 1) + dt.timedelta(days=days) for days in (10_000, 15_000)]
    expected = [keygroups.hash_code(date, key_type) for date in dates]
    assert arrays.hash_code(array, key_type).tolist() == expected


class Bytes(bytes):
    """Calls itself a str."""


Bytes.__name__ = "str"


@pytest.mark.parametrize(
    "array",
    [
        np.array([b"a"]),
        np.array([1], "m8[10ms]"),
        np.array([(1, 2)], "i4,i4"),
        np.array([1, 2], "c8"),
        np.rec.array([("a",)], dtype=[("k", "U1")]),
        np.array([Bytes(b"a")], object),
        np.array(["a", np.inf], object),
        np.array(1),
        np.array("a"),
        np.array([["a"]]),
        np.array([1.5], "f2"),
        np.array([1.5], "g"),
        np.array([0x110000], "u4").view("U1"),
    ],
    ids=lambda array: str(array.dtype),
)
def test_what_is_no_array_of_keys(array: Any) -> None:
    for key_type in (STRING, LONG, DOUBLE, FLOAT, LOCAL_DATE):
        with pytest.raises(InvalidTypeError):
            arrays.hash_code(array, key_type)


def test_a_chararray_hides_spaces() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy wants to be rid of them
        array = np.char.array(["a  "])
        assert array[0] == "a"
    with pytest.raises(UnsupportedKeyTypeError, match="class chararray is not supported"):
        arrays.hash_code(array, STRING)


_NUMBERS = r"""
import sys
import numpy as np, pyarrow as pa
from keygroups import arrays, types

offsets, octets = np.array([0, 3, 3, 7], np.int32), "abc\N{GRINNING FACE}".encode()
texts = pa.StringArray.from_buffers(3, pa.py_buffer(offsets), pa.py_buffer(octets))
masked = np.ma.array([True, False, True], mask=[False, True, False])
times = np.array(["1970-01-01T00:00:01", "NaT", "2026-01-01"], "M8[s]")
rows = types.SQL_ROW("STRING", "BOOLEAN", "TIMESTAMP(3)", "DOUBLE")
keys = [texts, masked, times, np.array([0.5, 1, 2])]
print(*arrays.hash_code(keys, rows), *arrays.hash_code(times, types.LOCAL_DATE_TIME, nulls="mask"))
print("pandas" in sys.modules)
"""


def test_hashing_does_not_import_pandas() -> None:
    pytest.importorskip("pandas")
    run = subprocess.run(
        [sys.executable, "-c", _NUMBERS], capture_output=True, text=True, check=True
    )
    codes, is_there = run.stdout.splitlines()
    assert is_there == "False"
    times = [dt.datetime(1970, 1, 1, 0, 0, 1), None, dt.datetime(2026, 1, 1)]
    keys = zip(["abc", "", "\U0001f600"], [True, None, True], times, [0.5, 1.0, 2.0])
    row = SQL_ROW("STRING", "BOOLEAN", "TIMESTAMP(3)", "DOUBLE")
    expected: list[int | str] = [keygroups.hash_code(key, row) for key in keys]
    expected += [
        "--" if time is None else keygroups.hash_code(time, LOCAL_DATE_TIME) for time in times
    ]
    assert codes.split() == [*map(str, expected)]
