"""Scala's hash codes: `##` of numbers, and MurmurHash3 of products.

Scala: Statics.longHash, doubleHash, floatHash, mix and finalizeHash, which are alike from 2.12 on.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from typing import Any

from keygroups._checks import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, check_int, to_int
from keygroups._values import java_lang
from keygroups._values.checks import check_not_refused, expect
from keygroups._values.java_lang import long_bits, signed

PRODUCT_SEED = 0xCAFEBABE
NONE_CODE = 2433880
"""The hash code of Scala's None, which is that of the text "None"."""

_MASK32 = 0xFFFFFFFF
_pack_single, _unpack_single = struct.Struct("<f").pack, struct.Struct("<f").unpack


def mix(state: int, code: int) -> int:
    """Return the state, from 0 to 2^32 - 1, after one more hash code."""
    word = code * 0xCC9E2D51 & _MASK32
    word = (word << 15 | word >> 17) * 0x1B873593 & _MASK32
    state ^= word
    return ((state << 13 | state >> 19) * 5 + 0xE6546B64) & _MASK32


def product_hash(state: int, codes: Iterable[int], arity: int) -> int:
    """Return the hash of a product from a state and the hash codes of its fields."""
    for code in codes:
        state = mix(state, code)
    state ^= arity
    state = (state ^ state >> 16) * 0x85EBCA6B & _MASK32
    state = (state ^ state >> 13) * 0xC2B2AE35 & _MASK32
    return signed(state ^ state >> 16)


def hash_long(key: object) -> int:
    """`##` of a Long: the value where it is an Int's, else Java's hash code."""
    if type(key) is not int or not LONG_MIN <= key <= LONG_MAX:
        key = check_int("key of type LONG", check_not_refused(key), LONG_MIN, LONG_MAX)
    return key if INT_MIN <= key <= INT_MAX else long_bits(key)


def hash_big_int(key: object) -> int:
    """BigInt.hashCode: `##` of the Long that equals it, else BigInteger's hash code."""
    number = to_int("key of type SCALA_BIG_INT", check_not_refused(key))
    if LONG_MIN <= number <= LONG_MAX:
        return hash_long(number)
    return java_lang.hash_big_int(number, "SCALA_BIG_INT")


def hash_double(key: object) -> int:
    """`##` of a Double: the code of the first of Int, Long, Float and Double that equals it."""
    number = expect("DOUBLE", key, float, "a float")
    if -(2.0**63) <= number <= 2.0**63 and number == int(number):
        return hash_long(min(int(number), LONG_MAX))  # 2^63 becomes Long.MaxValue, and equals it
    try:
        single = _unpack_single(_pack_single(number))[0]
    except OverflowError:
        single = math.nan
    return java_lang.hash_float(single) if single == number else java_lang.hash_double(number)


def hash_float(key: Any) -> int:
    """`##` of a Float: the code of the first of Int, Long and Float that equals it."""
    code = java_lang.hash_float(key)  # It checks the key.
    number = float(key)
    if number == 2.0**31:
        return INT_MAX  # As a Float Int.MaxValue rounds to 2^31, and equals it.
    if -(2.0**63) <= number <= 2.0**63 and number == int(number):
        return hash_long(min(int(number), LONG_MAX))
    return code
