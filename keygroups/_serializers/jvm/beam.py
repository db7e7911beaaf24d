"""The serializers of Apache Beam's runner, which write keys and values by coders of a pipeline.

A snapshot has the serializer itself as a Java object, with its coder, which is read as data. Facts
from Beam's public source: CoderTypeSerializer, UnversionedTypeSerializerSnapshot, FlinkKeyUtils,
TimerInternals.TimerDataCoderV2, and the coders of the SDK; those of LegacySnapshot from state of
Beam 2.31, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from keygroups._checks import check_class
from keygroups._serializers.base import TRUNCATED, Serializer
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.data_output import i32
from keygroups._serializers.jvm.objects import JavaObject, read_java_value
from keygroups._serializers.scalars import read_varint, write_varint
from keygroups.errors import InvalidValueError
from keygroups.types import BYTE_BUFFER

_BEAM = "org.apache.beam.runners.flink.translation."
_OF_KEYS = f"{_BEAM}wrappers.streaming.FlinkKeyUtils$ByteBufferCoder"
_CODERS = "org.apache.beam.sdk.coders."
# How a value of each coder lies in bytes: numbers of bytes, and a text with its size before it.
_TEXT = -1
_PIECES: dict[str, tuple[int, ...]] = {
    f"{_CODERS}BigEndianIntegerCoder": (4,),
    f"{_CODERS}BigEndianLongCoder": (8,),
    f"{_CODERS}BooleanCoder": (1,),
    f"{_CODERS}ByteArrayCoder": (_TEXT,),
    f"{_CODERS}DoubleCoder": (8,),
    f"{_CODERS}InstantCoder": (8,),
    f"{_CODERS}StringUtf8Coder": (_TEXT,),
    f"{_CODERS}VoidCoder": (),
}
_TIMER = {
    "org.apache.beam.runners.core.TimerInternals$TimerDataCoderV2": (
        *(_TEXT, _TEXT, _TEXT),  # its id, its family and its namespace
        *(8, 8),  # when it fires, and what time its output has
        _TEXT,  # the domain of its time
    ),
}
_ADAPTER_VERSION = 0x7A53C4F0  # Flink: TypeSerializerConfigSnapshot.ADAPTER_VERSION
_ONE = i32(1)  # the version of a serializer in a stream, and that of what Beam writes after it


class CoderSerializer(Serializer):
    """Keys and values of a Beam pipeline: `java_class` is their coder, "" if that is not known.

    A key is the bytes that its own coder makes of it, and hashes as their ByteBuffer; they have
    their number before them. Values are the bytes that the coder makes of them, where it is known
    where they end; those of other coders only the pipeline reads. `stream` is the serializer as a
    Java object.

    Beam: CoderTypeSerializer.LegacySnapshot.
    """

    name = "BEAM"
    snapshot = f"{_BEAM}types.CoderTypeSerializer$LegacySnapshot"
    versions = (_ADAPTER_VERSION,)
    pieces: ClassVar[Mapping[str, tuple[int, ...]]] = _PIECES | _TIMER

    def __init__(self, stream: bytes) -> None:
        self.stream = stream
        self.java_class = _coder_of(stream)
        if self.java_class == _OF_KEYS:
            self.key_type = BYTE_BUFFER
            self.read, self.write = _read_key, _write_key
        elif self.java_class in self.pieces:
            pieces = self.pieces[self.java_class]
            self.read, self.write = partial(_read_pieces, pieces), partial(_write_pieces, pieces)
        super().__init__(stream)

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        """Read the serializer between its version and that of the snapshot."""
        cursor.expect("version of a serializer", cursor.i32(), 1)
        stream = cursor.take(cursor.count())
        cursor.expect("version of the snapshot", cursor.i32(), 1)
        return cls(stream)

    def contents(self) -> bytes:
        """Return the serializer between the versions."""
        return _ONE + _framed(self.stream) + _ONE


class UnversionedCoderSerializer(CoderSerializer):
    """The same in newer Beams, whose snapshot has no versions within.

    Their timers also know whether the pipeline was drained, and so are left to it.
    Beam: UnversionedTypeSerializerSnapshot.
    """

    snapshot = f"{_BEAM}types.UnversionedTypeSerializerSnapshot"
    versions = (1,)
    pieces = _PIECES

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        """Read the serializer."""
        return cls(cursor.take(cursor.count()))

    def contents(self) -> bytes:
        """Return the serializer."""
        return _framed(self.stream)


def _framed(stream: bytes) -> bytes:
    return i32(len(stream)) + stream


def _coder_of(stream: bytes) -> str:
    """Return the class of the coder in a serializer."""
    try:
        serializer, _ = read_java_value(stream, 0)
    except (*TRUNCATED, ValueError):
        return ""
    coder = serializer.fields.get("coder") if isinstance(serializer, JavaObject) else None
    return coder.java_class if isinstance(coder, JavaObject) else ""


def _read_key(data: bytes, pos: int) -> tuple[bytes, int]:
    _, start = read_varint(data, pos)
    _, end = _read_pieces((_TEXT,), data, pos)
    return data[start:end], end


def _read_pieces(pieces: tuple[int, ...], data: bytes, pos: int) -> tuple[bytes, int]:
    end = pos
    for size in pieces:
        if size == _TEXT:
            size, end = read_varint(data, end)
        end += size
    if end > len(data):
        raise IndexError("too few bytes")
    return data[pos:end], end


def _write_pieces(pieces: tuple[int, ...], value: Any) -> bytes:
    data = check_class("BEAM", value, bytes, "bytes")
    try:
        _, end = _read_pieces(pieces, data, 0)
    except (*TRUNCATED, ValueError) as error:
        raise InvalidValueError(f"BEAM must be the bytes of its coder: {error}") from None
    if end != len(data):
        raise InvalidValueError(f"BEAM must end after {end} bytes, got {len(data)}")
    return data


def _write_key(value: Any) -> bytes:
    key = check_class("BEAM", value, bytes, "bytes")
    return write_varint(len(key)) + key
