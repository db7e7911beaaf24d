"""The serializers of BigInteger and BigDecimal."""

from __future__ import annotations

import operator
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, Inexact, InvalidOperation
from typing import Any

from keygroups import types as kt
from keygroups._serializers.base import BASE, Simple, class_of
from keygroups._serializers.scalars import pack_int, read_int
from keygroups._values.java_lang import unscaled_value

_SMALL = (0, 1, 10)
"""Numbers with the codes 1, 2 and 3; Flink writes them in full too, if they are other objects."""
_FIRST_LENGTH = 4
_BITS_AT_ONCE = 4_096

# The caller's own context may round.
EXACT = Context(MAX_PREC, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[InvalidOperation, Inexact])


def read_big_int(data: bytes, pos: int) -> tuple[int | None, int]:
    """Read a BigInteger: 0 for null, 1 to 3 for 0, 1, 10, else its length + 4 and its bytes.

    10 is 00 00 00 03, and 300 is 00 00 00 06, 01 2C.

    Flink: BigIntSerializer.readBigInteger.
    """
    code, pos = read_int(data, pos)
    length = code - _FIRST_LENGTH
    if length > 0:
        if length > len(data) - pos:
            raise IndexError("too few bytes")
        return int.from_bytes(data[pos : pos + length], "big", signed=True), pos + length
    if 0 < code < _FIRST_LENGTH:
        return _SMALL[code - 1], pos
    if code:
        raise ValueError(f"a BigInteger of {length} bytes")
    return None, pos


def write_big_int(number: int | None) -> bytes:
    """Write a BigInteger in as few bytes as it takes."""
    if number is None:
        return pack_int(0)
    if number in _SMALL:
        return pack_int(_SMALL.index(number) + 1)
    length = max(number, ~number).bit_length() // 8 + 1
    return pack_int(length + _FIRST_LENGTH) + number.to_bytes(length, "big", signed=True)


class BigIntSerializer(Simple):
    name, snapshot, key_type = "BIG_INT", class_of(BASE, "BigInt"), kt.BIG_INT
    takes_null = True
    read = staticmethod(read_big_int)

    @staticmethod
    def write(number: Any) -> bytes:
        return write_big_int(None if number is None else operator.index(number))


class BigDecSerializer(Simple):
    """A BigDecimal: its unscaled value as a BigInteger, and its scale."""

    name, snapshot, key_type = "BIG_DEC", class_of(BASE, "BigDec"), kt.BIG_DEC
    takes_null = True

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[Decimal | None, int]:
        unscaled, pos = read_big_int(data, pos)
        if unscaled is None:
            return None, pos
        scale, pos = read_int(data, pos)
        return to_decimal(unscaled).scaleb(-scale, EXACT), pos

    @staticmethod
    def write(number: Decimal | None) -> bytes:
        if number is None:
            return write_big_int(None)
        unscaled, scale = unscaled_value(number)
        return write_big_int(unscaled) + pack_int(scale)


def to_decimal(number: int) -> Decimal:
    """Return an int as a Decimal; Decimal() itself is slow for very many digits."""
    bits = number.bit_length()
    if bits <= _BITS_AT_ONCE:
        return Decimal(number)
    half = bits // 2
    high, low = number >> half, number & (1 << half) - 1
    return EXACT.fma(to_decimal(high), EXACT.power(2, half), to_decimal(low))
