"""Values like a given one, of any of the classes that a serializer reads: sizes and ends vary."""

from __future__ import annotations

import datetime as dt
from array import array
from dataclasses import fields, is_dataclass, replace
from decimal import Decimal
from random import Random
from typing import Any
from uuid import UUID

from keygroups.savepoint.values import Row

# Of texts, bytes and lists: around those at which something is written otherwise.
SIZES = [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 62, 63, 64, 65, 126, 127, 128, 129, 255, 256]
BITS = [0, 1, 6, 7, 8, 13, 14, 15, 16, 20, 21, 27, 28, 31, 32, 35, 42, 49, 56, 62, 63]
_CHARACTERS = ((1, 0x80), (0x80, 0x800), (0x800, 0xD800), (0xD800, 0xE000), (0x10000, 0x110000))


def varied(value: Any, rng: Random, depth: int = 0) -> Any:
    """Return the value, or another one of its class; its serializer may refuse what it is."""
    if value is None or rng.random() < 0.25:
        return value
    if isinstance(value, bool):
        return rng.random() < 0.5
    if isinstance(value, int):
        return varied_int(rng)
    if isinstance(value, float):
        return rng.choice([0.0, -0.0, float("inf"), float("nan"), rng.uniform(-1e9, 1e9)])
    if isinstance(value, str):
        return varied_text(rng)
    if isinstance(value, bytes):
        return rng.randbytes(rng.choice(SIZES))
    if isinstance(value, Decimal):
        digits = [rng.randrange(10) for _ in range(rng.choice([1, 5, 17, 18, 19, 20, 38]))]
        return Decimal((rng.randrange(2), tuple(digits), -rng.choice([0, 2, 3, 10, 18, 39])))
    if isinstance(value, UUID):
        return UUID(int=rng.getrandbits(128))
    if isinstance(value, dt.datetime):
        return value.replace(year=rng.randrange(1, 9999), day=rng.randrange(1, 29))
    if isinstance(value, dt.date):
        return dt.date.fromordinal(rng.randrange(1, dt.date.max.toordinal()))
    if isinstance(value, dt.time):
        return value.replace(hour=rng.randrange(24), second=rng.randrange(60))
    return _varied_parts(value, rng, depth + 1)


def varied_int(rng: Random) -> int:
    bits = rng.choice(BITS)
    number = (1 << bits) + rng.choice([-1, 0, 1, rng.randrange(1 << bits)])
    return rng.choice([number, -number])


def varied_text(rng: Random) -> str:
    ranges = _CHARACTERS[:1] if rng.random() < 0.5 else _CHARACTERS
    return "".join(chr(rng.randrange(*rng.choice(ranges))) for _ in range(rng.choice(SIZES)))


def _varied_parts(value: Any, rng: Random, depth: int) -> Any:
    if isinstance(value, array):
        if value.typecode in "fdu":
            return value[: rng.randrange(len(value) + 1)]
        return array(value.typecode, rng.randbytes(rng.choice(SIZES) * value.itemsize))
    if isinstance(value, list):
        size = rng.choice([0, 1, 2, len(value), rng.choice(SIZES)]) if depth < 3 else len(value)
        return [varied(rng.choice(value), rng, depth) for _ in range(size)] if value else value
    if isinstance(value, dict):
        return {varied(k, rng, depth): varied(one, rng, depth) for k, one in value.items()}
    if isinstance(value, (set, frozenset)):
        return type(value)(varied(one, rng, depth) for one in value)
    if isinstance(value, Row):
        return Row(tuple(varied(one, rng, depth) for one in value), value.row_kind)
    if isinstance(value, tuple):
        parts = [varied(one, rng, depth) for one in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value) if field.init]
        return replace(value, **{n: varied(getattr(value, n), rng, depth) for n in names})
    return value
