"""Keys in Arrow for `soak.py`: random over their whole range, one in four at an edge."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

Maker = Callable[[np.random.Generator, int], Any]

_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)
PYTHON = ((dt.datetime.min - _EPOCH) // _MICROSECOND, (dt.datetime.max - _EPOCH) // _MICROSECOND)
GREGORIAN = (dt.datetime(1582, 10, 15) - _EPOCH) // _MICROSECOND
DAY = 86_400_000_000


def _mixed(rng: np.random.Generator, keys: Any, edges: Any) -> Any:
    chosen = len(keys) + rng.integers(0, len(edges), len(keys))
    is_edge = rng.integers(0, 4, len(keys)) == 0
    indexes = np.where(is_edge, chosen, np.arange(len(keys)))
    return pa.concat_arrays([keys, edges.cast(keys.type)]).take(pa.array(indexes))


def _ends(least: int, most: int) -> list[int]:
    """Return the numbers of a range beside its ends, zero, and the powers of two."""
    near = {sign * 2**bit + by for sign in (1, -1) for bit in range(64) for by in range(-2, 3)}
    near |= {end + by for end in (least, most, 0) for by in range(-40, 41)}
    return sorted(number for number in near if least <= number <= most)


def integers(bits: int) -> Maker:
    ends = _ends(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if bits >= 32:
        ends += [-2089875627, -1035494534]  # murmur makes the least int and -1 of these
    if bits == 64:
        halves = _ends(-(2**31), 2**31 - 1)[::7]
        ends += [high << 32 | low & 0xFFFFFFFF for high in halves for low in halves]

    def make(rng: np.random.Generator, count: int) -> Any:
        found = rng.integers(-(2**63), 2**63 - 1, count, endpoint=True) >> (64 - bits)
        return _mixed(rng, pa.array(found.astype(f"int{bits}")), pa.array(ends))

    return make


def floats(bits: int, *, payloads: bool = True) -> Maker:
    """Make floats of any bits; the edges are the ends of each exponent, that of NaN too."""
    digits = 23 if bits == 32 else 52
    exponents = np.arange(2 ** (bits - digits), dtype=f"uint{bits}") << digits
    last = 2**digits - 1
    edges = np.concatenate([exponents + m for m in (0, 1, 2, last // 2, last // 2 + 1, last)])

    def make(rng: np.random.Generator, count: int) -> Any:
        found = rng.integers(0, 2**bits - 1, count, f"uint{bits}", endpoint=True)
        values: Any = found.view(f"float{bits}"), edges.astype(f"uint{bits}").view(f"float{bits}")
        if not payloads:
            values = tuple(np.where(np.isnan(one), one.dtype.type("nan"), one) for one in values)
        return _mixed(rng, *map(pa.array, values))

    return make


def texts(rng: np.random.Generator, count: int) -> Any:
    """Make strings of 0 to 24 characters, some of 400; of one plane, or of all."""
    lengths = np.where(rng.integers(0, 1000, count) == 0, 400, rng.integers(0, 25, count))
    planes = rng.choice([0x80, 0x100, 0x800, 0x10000, 0x110000], count)
    codes = (rng.random(lengths.sum()) * np.repeat(planes, lengths)).astype("<u4")
    codes[(codes >= 0xD800) & (codes < 0xE000)] -= 0x2000
    text, ends = codes.tobytes().decode("utf-32-le"), np.cumsum(lengths).tolist()
    found = pa.array([text[start:end] for start, end in zip([0, *ends], ends)])
    chars = "\0\x7f\x80\xff\u0100\u07ff\u0800\ud7ff\ue000\ufffd\uffff\U00010000\U0010ffff aA?"
    edges = [one * size + more for one in chars for size in (0, 1, 2, 7, 8, 31) for more in chars]
    return _mixed(rng, found, pa.array(["", *edges]))


def lone_surrogates(rng: np.random.Generator, count: int) -> Any:
    """Make UTF-16 of which every other unit is a surrogate, mostly one without another."""
    lengths = rng.integers(0, 25, count)
    units = rng.integers(0, 2**16, lengths.sum()).astype("<u2")
    surrogates = rng.integers(0, 2, len(units)) == 0
    units[surrogates] = 0xD800 + units[surrogates] % 0x800
    data, ends = units.tobytes(), (2 * np.cumsum(lengths)).tolist()
    return pa.array([data[start:end] for start, end in zip([0, *ends], ends)], pa.binary())


def decimals(*chosen: tuple[int, int]) -> Maker:
    def make(rng: np.random.Generator, count: int) -> Any:
        precision, scale = rng.choice(chosen).tolist()
        powers = [10 ** (1 + size) for size in range(precision)]
        edges = [*powers[:-1], powers[-1] - 1, *(3 << b for b in (62, 63, 64, 95, 96))]
        edges += [2**b + by for b in (31, 32, 63, 64, 95, 96, 120) for by in (-1, 0, 1)]
        edges = [number for number in edges if number < powers[-1]]
        sizes = rng.integers(0, precision, count).tolist()
        signs = rng.integers(0, 2, count).tolist()
        words = rng.integers(0, 2**64 - 1, (count, 2), "uint64").tolist()
        found = [
            (high << 64 | low) % powers[size] * (2 * sign - 1)
            for (high, low), size, sign in zip(words, sizes, signs)
        ]
        kind = pa.decimal128(precision, scale)

        def in_arrow(numbers: Sequence[int]) -> Any:
            data = b"".join(number.to_bytes(16, "little", signed=True) for number in numbers)
            return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(data)])

        return _mixed(rng, in_arrow(found), in_arrow([0, *edges, *(-edge for edge in edges)]))

    return make


def decimal_texts(rng: np.random.Generator, count: int) -> Any:
    """Make BigDecimals of any scale, which no column holds, as text."""
    factors = rng.integers(-(2**63), 2**63 - 1, (count, 2)).tolist()
    scales = (rng.integers(-(2**30), 2**30, count) >> rng.integers(0, 31, count)).tolist()
    return pa.array([f"{one * more}E{scale}" for (one, more), scale in zip(factors, scales)])


def big_ints(rng: np.random.Generator, count: int) -> Any:
    """Make BigIntegers of 1 to 40 bytes; ends with 0x00, 0x7f, 0x80 or 0xff are its edges."""
    data, sizes = rng.bytes(41 * count), rng.integers(1, 41, count).tolist()
    found = [data[41 * i : 41 * i + size] for i, size in enumerate(sizes)]
    edges = [
        bytes([a]) + bytes([b]) * n
        for a in (0, 127, 128, 255)
        for b in (0, 255)
        for n in range(40)
    ]
    return _mixed(rng, pa.array(found, pa.binary()), pa.array(edges, pa.binary()))


def uuids(rng: np.random.Generator, count: int) -> Any:
    data = rng.bytes(16 * count)
    halves = [bytes([a]) + bytes([b]) * 7 for a in (0, 127, 128, 255) for b in (0, 255)]
    edges = [high + low for high in halves for low in halves]
    found = [data[16 * i : 16 * i + 16] for i in range(count)]
    return _mixed(
        rng, *(pa.array([str(uuid.UUID(bytes=b)) for b in part]) for part in (found, edges))
    )


def between(least: int, most: int, kind: Any, unit: int = 1) -> Maker:
    """Make numbers of a range that are of an Arrow type, whole multiples of a unit."""
    storage = pa.int32() if kind.bit_width == 32 else pa.int64()
    ends = [number - number % unit for number in _ends(least + unit, most)]

    def make(rng: np.random.Generator, count: int) -> Any:
        found = rng.integers(least // unit + 1, most // unit, count, endpoint=True) * unit
        keys = _mixed(rng, pa.array(found), pa.array([*ends, least])).cast(storage)
        return keys.view(kind)

    return make


def struct(makers: dict[str, Maker]) -> Maker:
    """Make structs of fields, one in eight of which is null."""

    def make(rng: np.random.Generator, count: int) -> Any:
        fields = [nullable(maker)(rng, count) for maker in makers.values()]
        return pa.StructArray.from_arrays(fields, names=list(makers))

    return make


def nullable(maker: Maker) -> Maker:
    def make(rng: np.random.Generator, count: int) -> Any:
        keys = maker(rng, count)
        places = np.where(rng.integers(0, 8, count) == 0, -1, np.arange(count))
        return keys.take(pa.array(places, mask=places < 0))

    return make


def booleans(rng: np.random.Generator, count: int) -> Any:
    return pa.array(rng.integers(0, 2, count) == 0)


def moments(zone: str | None, least: int = PYTHON[0], unit: int = 1) -> Maker:
    return between(least, PYTHON[1], pa.timestamp("us", zone), unit)
