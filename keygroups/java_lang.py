"""Java hash codes of numbers, text and UUIDs: java.lang, java.math, java.util.UUID.

Each `hash_*` function takes a Python value, checks it, and returns a signed 32-bit int.
"""

from __future__ import annotations

import math
import struct
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from enum import Enum
from typing import Any, TypeVar

from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    check_int,
    from_numpy,
    show,
    to_int,
)
from keygroups.inference import refused_key

__all__ = [
    "INT_MAX",
    "INT_MIN",
    "LONG_MAX",
    "LONG_MIN",
    "each",
    "expect",
    "expect_bool",
    "expect_fields",
    "expect_single",
    "fold",
    "hash_big_dec",
    "hash_big_int",
    "hash_boolean",
    "hash_char",
    "hash_double",
    "hash_float",
    "hash_long",
    "hash_string",
    "hash_uuid",
    "integer_checker",
    "long_bits",
    "pack_single",
    "signed",
]

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
_BIG_INT_MAX_BITS = 2**31 - 1  # java.math.BigInteger's documented limit
_DIGITS_AT_ONCE = 1_000
_MASK32 = 0xFFFFFFFF
_MASK64 = 0xFFFFFFFFFFFFFFFF
_SIGN32 = 0x80000000
_FLOAT_NAN = 0x7FC00000  # floatToIntBits and doubleToLongBits know one NaN only
_DOUBLE_NAN = 0x7FF8000000000000

T = TypeVar("T")


def signed(code: int) -> int:
    """Wrap an int to Java's signed 32 bits."""
    return ((code & _MASK32) ^ _SIGN32) - _SIGN32


def long_bits(bits: int) -> int:
    """Long.hashCode of the low 64 bits: low word xor high word."""
    return signed(bits ^ (bits & _MASK64) >> 32)


def fold(codes: Iterable[int], start: int) -> int:
    """Java's 31-fold over hash codes, as in List.hashCode (which starts from 1)."""
    result = start
    for code in codes:
        result = (31 * result + code) & _MASK32
    return signed(result)


def expect(name: str, key: object, cls: type[T] | tuple[type[T], ...], what: str) -> T:
    """Return the key if it is a `cls`, which is `what` in words; an enum is none."""
    if isinstance(key, cls) and not isinstance(key, Enum):
        return key
    _not_refused(key)
    raise InvalidTypeError(
        f"key of type {name} must be {what}, got {show(key)} of class {type(key).__name__}"
    )


def expect_bool(name: str, key: object) -> bool:
    """Return the key if it is a bool, Python's or NumPy's."""
    if type(key) is bool:
        return key
    return expect(name, from_numpy(key, "bool_"), bool, "a bool")


def expect_single(name: str, key: object) -> float:
    """Return the key if it is a float, Python's or NumPy's single."""
    if type(key) is float:
        return key
    return expect(name, from_numpy(key, "float32"), float, "a float")


def expect_fields(name: str, arity: int, key: object) -> tuple[object, ...]:
    """Return the key if it is a tuple of as many fields."""
    what = "a tuple of one field, (value,)" if arity == 1 else "a tuple"
    values = expect(name, key, tuple, what)
    if len(values) != arity:
        raise InvalidValueError(
            f"key of type {name} must have {arity} fields, got {len(values)}: {show(key)}"
        )
    return values


def each(
    what: str, functions: Iterable[Callable[[Any], T]], values: Iterable[object]
) -> Iterator[T]:
    """Yield each function of its value, and say in an error which value it was."""
    for index, (function, value) in enumerate(zip(functions, values)):
        try:
            yield function(value)
        except KeyGroupsError as error:
            raise type(error)(f"{what} {index}: {error}") from None


def integer_checker(name: str, low: int, high: int) -> Callable[[object], int]:
    """Make what checks a Java integer and returns it; up to 32 bits it is its own hash."""

    def check_integer(key: object) -> int:
        if type(key) is int and low <= key <= high:
            return key
        return check_int(f"key of type {name}", _not_refused(key), low, high)

    return check_integer


def hash_long(key: object) -> int:
    """Long.hashCode."""
    if type(key) is not int or not LONG_MIN <= key <= LONG_MAX:
        key = check_int("key of type LONG", _not_refused(key), LONG_MIN, LONG_MAX)
    return long_bits(key)


def hash_big_int(key: object) -> int:
    """BigInteger.hashCode: the 31-fold of the magnitude's words, times the sign."""
    number = to_int("key of type BIG_INT", _not_refused(key))
    if number.bit_length() > _BIG_INT_MAX_BITS:
        raise InvalidValueError(
            f"key of type BIG_INT must have at most {_BIG_INT_MAX_BITS} bits, "
            f"got {number.bit_length()}"
        )
    size = (abs(number).bit_length() + 31) // 32
    code = fold(struct.unpack(f">{size}I", abs(number).to_bytes(4 * size, "big")), 0)
    return signed(-code if number < 0 else code)


def hash_big_dec(key: object) -> int:
    """BigDecimal.hashCode: the hash of the unscaled value times 31, plus the scale."""
    decimal = expect("BIG_DEC", key, Decimal, "a Decimal")
    sign, digits, exponent = decimal.as_tuple()
    if not isinstance(exponent, int):
        raise InvalidValueError(f"key of type BIG_DEC must be finite, got {show(decimal)}")
    scale = check_int("the scale of a key of type BIG_DEC", -exponent, INT_MIN, INT_MAX)
    unscaled = _to_int("".join(map(str, digits)))
    return signed(31 * hash_big_int(-unscaled if sign else unscaled) + scale)


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
    """Float.hashCode: the bits of the single; the key has to be one exactly."""
    number = expect_single("FLOAT", key)
    if math.isnan(number):
        return _FLOAT_NAN
    return int.from_bytes(pack_single("FLOAT", number), "little", signed=True)


def pack_single(name: str, number: float) -> bytes:
    """Return the four bytes of a number that is exactly a single, a NaN's payload included."""
    try:
        packed = struct.pack("<f", number)
    except OverflowError:
        packed = b""
    if not packed or struct.pack("<d", *struct.unpack("<f", packed)) != struct.pack("<d", number):
        raise InvalidValueError(
            f"key of type {name} must be a single-precision number, got {show(number)}: round it "
            "first, for instance with struct.unpack('f', struct.pack('f', key))[0]"
        )
    return packed


def hash_double(key: object) -> int:
    """Double.hashCode: its bits as a Long; -0.0 differs from 0.0."""
    number = expect("DOUBLE", key, float, "a float")
    if math.isnan(number):
        return long_bits(_DOUBLE_NAN)
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
    code = 0
    for unit in text.encode() if text.isascii() else _utf16_units(text):
        code = (31 * code + unit) & _MASK32
    return (code ^ _SIGN32) - _SIGN32


def _utf16_units(text: str) -> Sequence[int]:
    # Without an endianness in its name the codec writes native order, behind one unit of
    # byte-order mark.
    return memoryview(text.encode("utf-16", "surrogatepass")).cast("H")[1:]


def hash_uuid(key: object) -> int:
    """java.util.UUID.hashCode: high word xor low word, as a Long."""
    number = expect("UUID", key, uuid.UUID, "a uuid.UUID").int
    return long_bits(number >> 64 ^ number & _MASK64)


def _not_refused(key: object) -> object:
    if key is None or isinstance(key, Enum):
        raise refused_key(key)
    return key
