"""The serializers of Value types: Flink's own, mutable numbers and texts, and the job's.

A Value writes itself. The bytes of Flink's own are known; a class of the job's is not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from keygroups import types as kt
from keygroups._serializers import scalars
from keygroups._serializers.base import BASE, JAVA, Read, Serializer, Simple, class_of
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.data_output import utf

_FLINK = "org.apache.flink.types."


class ValueOf(Simple):
    """A Value with the bytes of another type, whose serializer is `base`.

    It has a hash of its own, so it has no key type.
    """

    base: ClassVar[Simple]

    def bind(self, reads: Sequence[Read]) -> None:
        base = self.base
        assert base.write is not None
        assert base.key_type is not None
        self.read, self.size = base.read, base.size
        self.write = scalars.checked(base.write, base.key_type)


class BooleanValueSerializer(ValueOf):
    name, snapshot, base = "BOOLEAN_VALUE", class_of(BASE, "BooleanValue"), scalars.BOOLEAN


class ByteValueSerializer(ValueOf):
    name, snapshot, base = "BYTE_VALUE", class_of(BASE, "ByteValue"), scalars.BYTE


class ShortValueSerializer(ValueOf):
    name, snapshot, base = "SHORT_VALUE", class_of(BASE, "ShortValue"), scalars.SHORT


class IntValueSerializer(ValueOf):
    name, snapshot, base = "INT_VALUE", class_of(BASE, "IntValue"), scalars.INT


class LongValueSerializer(ValueOf):
    name, snapshot, base = "LONG_VALUE", class_of(BASE, "LongValue"), scalars.LONG


class FloatValueSerializer(ValueOf):
    name, snapshot, base = "FLOAT_VALUE", class_of(BASE, "FloatValue"), scalars.FLOAT


class DoubleValueSerializer(ValueOf):
    name, snapshot, base = "DOUBLE_VALUE", class_of(BASE, "DoubleValue"), scalars.DOUBLE


class CharValueSerializer(ValueOf):
    name, snapshot, base = "CHAR_VALUE", class_of(BASE, "CharValue"), scalars.CHAR


class StringValueSerializer(Simple):
    name, snapshot = "STRING_VALUE", class_of(BASE, "StringValue")
    read = staticmethod(scalars.read_string_value)
    write = staticmethod(scalars.checked(scalars.write_string_value, kt.STRING))


OF_FLINK: dict[str, Simple] = {
    f"{_FLINK}BooleanValue": BooleanValueSerializer(),
    f"{_FLINK}ByteValue": ByteValueSerializer(),
    f"{_FLINK}ShortValue": ShortValueSerializer(),
    f"{_FLINK}IntValue": IntValueSerializer(),
    f"{_FLINK}LongValue": LongValueSerializer(),
    f"{_FLINK}FloatValue": FloatValueSerializer(),
    f"{_FLINK}DoubleValue": DoubleValueSerializer(),
    f"{_FLINK}CharValue": CharValueSerializer(),
    f"{_FLINK}StringValue": StringValueSerializer(),
    f"{_FLINK}NullValue": scalars.NullValueSerializer(),
}
"""The serializers of Flink's own Value types, by class."""


class ValueSerializer(Serializer):
    """A Value of any class, which is read if it is one of Flink's."""

    name, snapshot, versions = "VALUE", f"{JAVA}ValueSerializer$ValueSerializerSnapshot", (2,)

    def __init__(self, java_class: str) -> None:
        self.java_class = java_class
        super().__init__(java_class)

    def bind(self, reads: Sequence[Read]) -> None:
        known = OF_FLINK.get(self.java_class)
        if known is not None:
            self.read, self.write, self.takes_null = known.read, known.write, known.takes_null

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        return cls(cursor.utf())

    def contents(self) -> bytes:
        return utf("class", self.java_class)


class CopyableValueSerializer(ValueSerializer):
    """A Value with a fixed size, which is known for Flink's own classes only."""

    name = "COPYABLE_VALUE"
    snapshot = f"{JAVA}CopyableValueSerializer$CopyableValueSerializerSnapshot"

    def bind(self, reads: Sequence[Read]) -> None:
        super().bind(reads)
        if self.java_class in OF_FLINK:
            self.size = OF_FLINK[self.java_class].size
