"""The serializers of values with their own encodings: Java objects, variants, bitmaps."""

from __future__ import annotations

from typing import Any

from keygroups._checks import check_class, show
from keygroups._serializers.base import (
    BASE,
    STATE,
    TRUNCATED,
    Simple,
    UnreadableError,
    class_of,
)
from keygroups._serializers.data_output import utf
from keygroups._serializers.jvm.java_util import value_of, with_number
from keygroups._serializers.jvm.objects import java_object_end, read_java_value
from keygroups._serializers.scalars import pack_int, read_bytes, read_int, write_bytes
from keygroups._values.bitmaps import Bitmap
from keygroups._values.checks import check_variant_version
from keygroups._values.java_values import Variant
from keygroups.errors import InvalidTypeError, InvalidValueError

_NULL_OBJECT, _STRING = b"\xac\xed\0\5p", b"\xac\xed\0\5t"


class JavaSerializer(Simple):
    """A stream of Java's own serialization: its value, or the bytes of the stream.

    An Integer or Long is an int, a Double a float, a Boolean a bool, a String a str; lists and
    maps of java.util that hold such, or one another, are a list and a dict. An object of any other
    class is the bytes of its stream. A number, a list and a dict are not written, as nothing says
    of which class they are to be; `write_over` writes a number in the place of another.

    JDK: Java Object Serialization Specification, 6.4.2, where a String of at most 65,535 bytes is
    a TC_STRING.
    """

    name, snapshot = "JAVA", f"{STATE}JavaSerializer$JavaSerializerSnapshot"
    takes_null = True

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[Any, int]:
        content, end = read_java_value(data, pos)
        if isinstance(content, str) and not data.startswith(_STRING, pos):
            return data[pos:end], end
        try:
            return value_of(content, end - pos), end
        except UnreadableError:
            return data[pos:end], end

    @staticmethod
    def write(value: object) -> bytes:
        if value is None:
            return _NULL_OBJECT
        if isinstance(value, str):
            return _STRING + utf("JAVA", value)
        if isinstance(value, (int, float, list, dict)):
            raise InvalidTypeError(
                "JAVA must be the bytes of a Java object where its class is not that of a value "
                f"that was there, got {show(value)}"
            )
        stream = check_class("JAVA", value, bytes, "a str or the bytes of a Java object")
        try:
            end = java_object_end(stream, 0)
        except (*TRUNCATED, ValueError) as error:
            raise InvalidValueError(f"JAVA must be the bytes of a Java object: {error}") from None
        if end != len(stream):
            raise InvalidValueError(
                f"JAVA must be one Java object, got {show(stream[end:])} after"
            )
        return stream

    @classmethod
    def write_over(cls, value: object, old: bytes) -> bytes:
        """Return the stream of a value; a number is of the class that `old` is of."""
        if isinstance(value, (int, float)) and isinstance(cls.read(old, 0)[0], (int, float)):
            return with_number(old, value)
        return cls.write(value)


class VariantSerializer(Simple):
    """A VARIANT: the sizes of value and metadata in bytes, then both."""

    name, snapshot = "VARIANT", class_of(BASE, "Variant")

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[Variant, int]:
        value_size, pos = read_int(data, pos)
        metadata_size, pos = read_int(data, pos)
        if min(value_size, metadata_size) < 0:
            raise ValueError(f"a variant of {value_size} and {metadata_size} bytes")
        middle, end = pos + value_size, pos + value_size + metadata_size
        if end > len(data):
            raise IndexError("too few bytes")
        return Variant(data[pos:middle], data[middle:end]), end

    @staticmethod
    def write(value: object) -> bytes:
        variant = check_class("VARIANT", value, Variant, "a Variant")
        encoded = check_class("value of a Variant", variant.value, bytes, "bytes")
        metadata = check_class("metadata of a Variant", variant.metadata, bytes, "bytes")
        check_variant_version(metadata)
        return pack_int(len(encoded)) + pack_int(len(metadata)) + encoded + metadata


class BitmapSerializer(Simple):
    """A BITMAP: its size in bytes, then a RoaringBitmap."""

    name, snapshot = "BITMAP", class_of(BASE, "Bitmap")

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[Bitmap, int]:
        encoded, pos = read_bytes(data, pos)
        return Bitmap(encoded), pos

    @staticmethod
    def write(value: object) -> bytes:
        return write_bytes(check_class("BITMAP", value, Bitmap, "a Bitmap").data)
