"""The serializers of Java's primitive arrays, but that of bytes, and of String[].

A value is an `array.array` of the type of the same size; of booleans and strings a list.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, ClassVar, Union

from keygroups import types as kt
from keygroups._checks import check_class, show
from keygroups._serializers.base import BASE, Read, Simple, class_of
from keygroups._serializers.scalars import (
    pack_int,
    read_bytes,
    read_count,
    read_string,
    write_string,
)
from keygroups._serializers.value_checks import check_value
from keygroups._values.checks import each, expect_bool
from keygroups.errors import InvalidTypeError

AnyArray = Union["array[int]", "array[float]"]

_ARRAY = f"{BASE}array."

_swap: Callable[[Any], None] = (
    array.byteswap if sys.byteorder == "little" else lambda numbers: None
)


class NumberArray(Simple):
    """An array of numbers: a count, then each, high byte first; `typecode` is that of `array`."""

    typecode: ClassVar[str]

    def bind(self, reads: Sequence[Read]) -> None:
        name, typecode = self.name, self.typecode
        size = array(typecode).itemsize
        is_floating = typecode in "fd"

        def read_array(data: bytes, pos: int) -> tuple[AnyArray, int]:
            count, pos = read_count(data, pos)
            end = pos + count * size
            if end > len(data):
                raise IndexError("too few bytes")
            numbers = array(typecode, data[pos:end])
            _swap(numbers)
            return numbers, end

        def write_array(value: object) -> bytes:
            if not isinstance(value, array) or value.typecode != typecode:
                raise InvalidTypeError(
                    f"{name} must be an array.array of type {typecode!r}, got {show(value)}"
                )
            numbers = value[:]
            if is_floating:  # The JDK writes any NaN as the canonical one.
                for index, number in enumerate(value):
                    if number != number:
                        numbers[index] = float("nan")
            _swap(numbers)
            return pack_int(len(value)) + numbers.tobytes()

        self.read, self.write = read_array, write_array


class CharPrimitiveArraySerializer(NumberArray):
    name, typecode = "CHAR_ARRAY", "H"
    snapshot = class_of(_ARRAY, "CharPrimitiveArray")


class ShortPrimitiveArraySerializer(NumberArray):
    name, typecode = "SHORT_ARRAY", "h"
    snapshot = class_of(_ARRAY, "ShortPrimitiveArray")


class IntPrimitiveArraySerializer(NumberArray):
    name, typecode = "INT_ARRAY", "i"
    snapshot = class_of(_ARRAY, "IntPrimitiveArray")


class LongPrimitiveArraySerializer(NumberArray):
    name, typecode = "LONG_ARRAY", "q"
    snapshot = class_of(_ARRAY, "LongPrimitiveArray")


class FloatPrimitiveArraySerializer(NumberArray):
    name, typecode = "FLOAT_ARRAY", "f"
    snapshot = class_of(_ARRAY, "FloatPrimitiveArray")


class DoublePrimitiveArraySerializer(NumberArray):
    name, typecode = "DOUBLE_ARRAY", "d"
    snapshot = class_of(_ARRAY, "DoublePrimitiveArray")


class BooleanPrimitiveArraySerializer(Simple):
    name, snapshot = "BOOLEAN_ARRAY", class_of(_ARRAY, "BooleanPrimitiveArray")

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[list[bool], int]:
        flags, pos = read_bytes(data, pos)
        return list(map(bool, flags)), pos

    @staticmethod
    def write(value: object) -> bytes:
        flags = check_class("BOOLEAN_ARRAY", value, list, "a list")
        written = bytes(each("element", repeat(lambda flag: expect_bool("BOOLEAN", flag)), flags))
        return pack_int(len(flags)) + written


class StringArraySerializer(Simple):
    name, snapshot = "STRING_ARRAY", class_of(_ARRAY, "StringArray")

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[list[str | None], int]:
        count, pos = read_count(data, pos)
        texts = []
        for _ in range(count):
            text, pos = read_string(data, pos)
            texts.append(text)
        return texts, pos

    @staticmethod
    def write(value: object) -> bytes:
        texts = check_class("STRING_ARRAY", value, list, "a list")
        return pack_int(len(texts)) + b"".join(each("element", repeat(_write_text), texts))


def _write_text(text: str | None) -> bytes:
    if text is not None:
        check_value(text, kt.STRING)
    return write_string(text)
