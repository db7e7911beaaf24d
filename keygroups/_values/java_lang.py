"""Java hash codes of numbers, text and UUIDs: java.lang, java.math, java.util.UUID.

Each `hash_*` function takes a Python value, checks it, and returns a signed 32-bit int.
"""

from __future__ import annotations

import math
import struct
import uuid
from collections.abc import Iterable, Sequence
from decimal import Decimal
from operator import mul

from keygroups._checks import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, check_int, show, to_int
from keygroups._values.checks import (
    check_not_refused,
    expect,
    expect_bool,
    expect_single,
    pack_single,
)
from keygroups.errors import InvalidValueError

_BIG_INT_MAX_BITS = 2**31 - 1  # java.math.BigInteger's documented limit
_DIGITS_AT_ONCE = 1_000
_MASK32 = 0xFFFFFFFF
_MASK64 = 0xFFFFFFFFFFFFFFFF
_SIGN32 = 0x80000000
FLOAT_NAN = 0x7FC00000  # Float.floatToIntBits gives these bits for any NaN.
DOUBLE_NAN = 0x7FF8000000000000


def signed(code: int) -> int:
    """Wrap an int to Java's signed 32 bits."""
    return ((code & _MASK32) ^ _SIGN32) - _SIGN32


def long_bits(bits: int) -> int:
    """Return Long.hashCode of the low 64 bits: low word xor high word."""
    return signed(bits ^ (bits & _MASK64) >> 32)


def fold(codes: Iterable[int], start: int) -> int:
    """Return Java's 31-fold over hash codes, as in List.hashCode (which starts from 1)."""
    result = start
    for code in codes:
        result = (31 * result + code) & _MASK32
    return signed(result)


def hash_long(key: object) -> int:
    """Long.hashCode."""
    if type(key) is not int or not LONG_MIN <= key <= LONG_MAX:
        key = check_int("key of type LONG", check_not_refused(key), LONG_MIN, LONG_MAX)
    return long_bits(key)


def hash_big_int(key: object, name: str = "BIG_INT") -> int:
    """BigInteger.hashCode: the 31-fold of the magnitude's words, times the sign."""
    number = to_int(f"key of type {name}", check_not_refused(key))
    if number.bit_length() > _BIG_INT_MAX_BITS:
        raise InvalidValueError(
            f"key of type {name} must have at most {_BIG_INT_MAX_BITS} bits, "
            f"got {number.bit_length()}"
        )
    size = (abs(number).bit_length() + 31) // 32
    code = fold(struct.unpack(f">{size}I", abs(number).to_bytes(4 * size, "big")), 0)
    return signed(-code if number < 0 else code)


def hash_big_dec(key: object) -> int:
    """BigDecimal.hashCode: the hash of the unscaled value times 31, plus the scale."""
    unscaled, scale = unscaled_value(expect("BIG_DEC", key, Decimal, "a Decimal"))
    return signed(31 * hash_big_int(unscaled) + scale)


def unscaled_value(decimal: Decimal) -> tuple[int, int]:
    """Return the digits of a decimal as an int, and the number of fraction digits."""
    sign, digits, exponent = decimal.as_tuple()
    if not isinstance(exponent, int):
        raise InvalidValueError(f"key of type BIG_DEC must be finite, got {show(decimal)}")
    scale = check_int("the scale of a key of type BIG_DEC", -exponent, INT_MIN, INT_MAX)
    unscaled = _to_int("".join(map(str, digits)))
    return -unscaled if sign else unscaled, scale


def _to_int(digits: str) -> int:
    """Return the int of decimal digits; int() itself is slow for very many."""
    if len(digits) <= _DIGITS_AT_ONCE:
        return int(digits)
    middle = len(digits) // 2
    power: int = 10 ** (len(digits) - middle)
    return _to_int(digits[:middle]) * power + _to_int(digits[middle:])


def hash_boolean(key: object) -> int:
    """Boolean.hashCode."""
    return 1231 if expect_bool("BOOLEAN", key) else 1237


def hash_float(key: object) -> int:
    """Float.hashCode: the bits of the key, which has to be a single exactly."""
    number = expect_single("FLOAT", key)
    if math.isnan(number):
        return FLOAT_NAN
    return int.from_bytes(pack_single("FLOAT", number), "little", signed=True)


def hash_double(key: object) -> int:
    """Double.hashCode: its bits as a Long; -0.0 differs from 0.0."""
    number = expect("DOUBLE", key, float, "a float")
    if math.isnan(number):
        return long_bits(DOUBLE_NAN)
    return long_bits(int.from_bytes(struct.pack(">d", number), "big"))


def hash_char(key: object) -> int:
    """Character.hashCode: the UTF-16 code unit."""
    char = expect("CHAR", key, str, "a str")
    if len(char) != 1 or ord(char) > 0xFFFF:
        raise InvalidValueError(f"key of type CHAR must be one UTF-16 code unit, got {show(char)}")
    return ord(char)


def hash_string(key: object) -> int:
    """String.hashCode: the 31-fold over UTF-16 code units, lone surrogates included."""
    text = key if type(key) is str else expect("STRING", key, str, "a str")
    units = text.encode() if text.isascii() else _utf16_units(text)
    if len(units) <= _MOST_POWERS:  # no step of Python for a unit
        code: int = sum(map(mul, units, _POWERS[_MOST_POWERS - len(units) :])) & _MASK32
    else:
        code = 0
        for unit in units:
            code = (31 * code + unit) & _MASK32
    return (code ^ _SIGN32) - _SIGN32


_MOST_POWERS = 64
_POWERS = [pow(31, power, 2**32) for power in reversed(range(_MOST_POWERS))]


def _utf16_units(text: str) -> Sequence[int]:
    # The codec "utf-16" writes native order after a byte-order mark, which the slice leaves out.
    return memoryview(text.encode("utf-16", "surrogatepass")).cast("H")[1:]


def hash_uuid(key: object) -> int:
    """java.util.UUID.hashCode: high word xor low word, as a Long."""
    number = expect("UUID", key, uuid.UUID, "a uuid.UUID").int
    return long_bits(number >> 64 ^ number & _MASK64)


def hash_byte_buffer(key: object) -> int:
    """java.nio.ByteBuffer.hashCode: the 31-fold from 1 of the signed bytes, the last one first."""
    octets = bytes(expect("BYTE_BUFFER", key, (bytes, bytearray), "bytes"))
    return fold(memoryview(octets).cast("b")[::-1], 1)
