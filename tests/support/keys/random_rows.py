"""Random rows of SQL fields, the same in every run."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from decimal import Decimal

# Characters of 1, 2, 3 and 4 bytes in UTF-8, of every plane; lone surrogates among the third.
_PLANES = [range(0x80), range(0x800), range(0x10000), range(0x110000)]
_MICROSECOND = dt.timedelta(microseconds=1)
_MICROSECONDS = (dt.datetime.max - dt.datetime.min) // _MICROSECOND + 1
_EPOCH = dt.datetime(1970, 1, 1)

# One field in 8 is None, and one in 64 one of these. A string of up to 7 bytes is in its field.
_EDGES: dict[str, list[object]] = {
    "BOOLEAN": [False, True],
    "INT": [0, 1, -1, 2**31 - 1, -(2**31)],
    "BIGINT": [0, -1, 2**31 - 1, 2**31, -(2**31), 2**32, 2**63 - 1, -(2**63)],
    "STRING": [
        *["", "\0", "\0" * 7, "\0" * 8, "1234567", "12345678", "12345678\0", "?"],
        *["\u00e9\u00e9\u00e97", "\u00e9\u00e9\u00e9\u00e9", "\u20ac\u20ac7", "\u20ac\u20ac78"],
        *["abc\U0001f600", "abcd\U0001f600", "\ud800" * 7, "\udfff" * 8, "\ude00\ud83d"],
        *["\ud83d\ude00abc", "\ud83d\ude00abcd"],  # a pair of surrogates is one character to Java
    ],
    "DECIMAL(38,10)": [
        *map(Decimal, ["0", "-0.00", "0.0000000001", "-0.0000000001", "1E+27", "-1E+27"]),
        *[Decimal(f"{sign}{10**38 - 1}E-10") for sign in "+-"],
    ],
    "TIME(3)": [dt.time.min, dt.time(23, 59, 59, 999_000)],
    "TIMESTAMP(6)": [
        *[dt.datetime.min, dt.datetime.max, _EPOCH, _EPOCH - _MICROSECOND, _EPOCH + _MICROSECOND],
    ],
}

BULK = {
    ("BIGINT", "STRING"): 250_000,
    ("INT",): 250_000,
    ("STRING", "INT", "BOOLEAN"): 250_000,
    ("DECIMAL(38,10)",): 250_000,
    ("TIMESTAMP(6)", "STRING"): 250_000,
}
"""Key columns, and how many rows of them to compare."""


def random_rows(types: tuple[str, ...], count: int, seed: int = 0) -> list[tuple[object, ...]]:
    """Return rows of fields of these types, which are the keys of `_EDGES`."""
    rng = random.Random(seed)
    return [tuple(_field(rng, name) for name in types) for _ in range(count)]


def _field(rng: random.Random, name: str) -> object:
    use = rng.randrange(64)
    if use < 8:
        return None
    return rng.choice(_EDGES[name]) if use == 8 else _RANDOM[name](rng)


def _integer(bits: int) -> Callable[[random.Random], int]:
    least = -(2 ** (bits - 1))
    return lambda rng: (rng.getrandbits(bits) + least) >> rng.randrange(bits)  # every size


def _text(rng: random.Random) -> str:
    """Return 0 to 30 characters, of one kind or of all."""
    size = rng.randrange(31)
    kind = rng.randrange(len(_PLANES) + 1)
    if kind < len(_PLANES):
        return "".join(map(chr, rng.choices(_PLANES[kind], k=size)))
    return "".join(chr(rng.choice(plane)) for plane in rng.choices(_PLANES, k=size))


def _decimal_38_10(rng: random.Random) -> Decimal:
    places = rng.randrange(11)
    unscaled = rng.randrange(10 ** rng.randint(1, 28 + places))
    return Decimal(f"{rng.choice('+-')}{unscaled}E-{places}")


_RANDOM: dict[str, Callable[[random.Random], object]] = {
    "BOOLEAN": lambda rng: rng.random() < 0.5,
    "INT": _integer(32),
    "BIGINT": _integer(64),
    "STRING": _text,
    "DECIMAL(38,10)": _decimal_38_10,
    "TIME(3)": lambda rng: (_EPOCH + rng.randrange(86_400_000) * 1_000 * _MICROSECOND).time(),
    "TIMESTAMP(6)": lambda rng: dt.datetime.min + rng.randrange(_MICROSECONDS) * _MICROSECOND,
}
