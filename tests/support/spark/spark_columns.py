"""Values of every scalar that a Spark column can hold, beside its key type."""

from __future__ import annotations

import datetime as dt
import math
import random
import struct
from decimal import Decimal
from typing import Any

from keygroups.types import (
    BIG_DEC,
    BOOLEAN,
    BYTE,
    DOUBLE,
    FLOAT,
    INSTANT,
    INT,
    LOCAL_DATE,
    LOCAL_DATE_TIME,
    LONG,
    SHORT,
    STRING,
    KeyType,
)

RANDOM = random.Random(20130101)


def bits(code: str, count: int) -> list[float]:
    size = struct.calcsize(code)
    return [struct.unpack(f">{code}", RANDOM.randbytes(size))[0] for _ in range(count)]


def text(length: int) -> str:
    planes = [range(128), range(0x80, 0xD800), range(0xE000, 0x10000), range(0x10000, 0x110000)]
    return "".join(chr(RANDOM.choice(RANDOM.choice(planes))) for _ in range(length))


def decimals(precision: int, scale: int) -> list[Decimal]:
    numbers = [RANDOM.randrange(10 ** RANDOM.randint(1, precision)) for _ in range(100)]
    numbers += [0, 1, 10**precision - 1]
    # Where BigInteger takes one more 32-bit word, and words of zeros.
    edges = [2**bits + more for bits in (31, 32, 63, 64, 95, 96, 120) for more in (-1, 0, 1)]
    numbers += [number for number in [*edges, 3 << 64, 7 << 96] if number < 10**precision]
    return [Decimal(f"{sign}{number}E-{scale}") for number in numbers for sign in "+-"]


SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan]
DOUBLES = [
    *SPECIAL,
    *bits("d", 500),
    *(sign * 2.0**e for e in range(-1074, 1024) for sign in (1, -1)),
    *(math.nextafter(2.0**e, 0.0) for e in range(-1074, 1024)),
    *(math.nextafter(2.0**e, math.inf) for e in range(-1074, 1023)),
]
FLOATS = [
    *SPECIAL,
    *bits("f", 500),
    *(2.0**e for e in range(-149, 128)),
    *(2.0**e * (2 - 2.0**-23) for e in range(-126, 128)),
]
MOMENTS = [
    dt.datetime(1, 1, 3) + dt.timedelta(microseconds=RANDOM.randrange(315_537_000_000_000_000))
    for _ in range(200)
] + [dt.datetime(1970, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)]

COLUMNS: list[tuple[KeyType, str, list[Any]]] = [
    (BOOLEAN, "boolean", [True, False]),
    (BYTE, "tinyint", list(range(-128, 128))),
    (SHORT, "smallint", [-(2**15), -1, 0, 2**15 - 1]),
    (INT, "int", [0, -1, -(2**31), 2**31 - 1, -2089875627, -1035494534]),
    (LONG, "bigint", [0, -1, -(2**63), 2**63 - 1, *(RANDOM.randrange(2**63) for _ in range(99))]),
    (DOUBLE, "double", DOUBLES),
    (FLOAT, "float", FLOATS),
    (STRING, "string", ["", "A", "\U0001f600", "\x00", *map(text, range(200))]),
    (BIG_DEC, "decimal(10,2)", decimals(10, 2)),
    (BIG_DEC, "decimal(18,2)", decimals(18, 2)),
    (BIG_DEC, "decimal(18,6)", decimals(18, 6)),
    (BIG_DEC, "decimal(18,7)", decimals(18, 7)),
    (BIG_DEC, "decimal(18,18)", decimals(18, 18)),
    (BIG_DEC, "decimal(19,6)", decimals(19, 6)),
    (BIG_DEC, "decimal(38,0)", decimals(38, 0)),
    (BIG_DEC, "decimal(38,10)", decimals(38, 10)),
    (BIG_DEC, "decimal(38,38)", decimals(38, 38)),
    (LOCAL_DATE, "date", [dt.date(1, 1, 1), dt.date(9999, 12, 31), *(m.date() for m in MOMENTS)]),
    (LOCAL_DATE_TIME, "timestamp_ntz", MOMENTS),
    (INSTANT, "timestamp", [m.replace(tzinfo=dt.timezone.utc) for m in MOMENTS]),
]
