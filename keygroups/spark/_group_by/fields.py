"""The bytes of values of Spark in state: of keys, accumulators and values of map states.

A row of values is a bit for each, least first, that says whether it is null, in whole bytes, and
then the values that are not null, in little endian without padding: of types int, int, string
`(1, None, "a")` is `02`, `01 00 00 00`, `01 00 00 00 61`.

| Spark type | bytes |
|---|---|
| boolean, tinyint, smallint, int, bigint, double | 1, 1, 2, 4, 8, 8 |
| date | 4: the days since 1970-01-01 |
| timestamp, timestamp_ntz | 8: the microseconds since 1970-01-01, of UTC or of the local time |
| string, decimal, binary | 4 with the length, and as many: UTF-8, the digits, the bytes |
| array | 4 with the length, and a row of its elements |
| struct | a row of its fields |
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from pyspark.sql import types as T

from keygroups._checks import show
from keygroups.errors import UnsupportedKeyTypeError

_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_LOCAL_EPOCH = dt.datetime(1970, 1, 1)
_EPOCH = _LOCAL_EPOCH.replace(tzinfo=dt.timezone.utc)
_MICROSECOND = dt.timedelta(microseconds=1)
_LENGTH = struct.Struct("<I")

EncodeField = Callable[[Any], bytes]
DecodeField = Callable[[bytes, int], tuple[Any, int]]
"""Returns the value at an offset, and the offset of its end."""


class RowCodec:
    """The bytes of rows of values whose types are given.

    `decode` raises ValueError, struct.error or OverflowError for bytes that are no such row.
    """

    def __init__(self, types: Sequence[T.DataType]) -> None:
        self._codecs = [_codec(spark_type) for spark_type in types]
        self._nulls = (len(types) + 7) // 8
        layouts = [_NUMBERS.get(type(spark_type)) for spark_type in types]
        # Numbers alone, none of them null, are packed and unpacked at once.
        self._numbers: struct.Struct | None = None
        if types and None not in layouts:
            self._numbers = struct.Struct(f"<{self._nulls}s{''.join(map(str, layouts))}")
            self._no_nulls = bytes(self._nulls)

    def encode(self, values: Sequence[Any]) -> bytes:
        """Return the bytes of a row."""
        if self._numbers is not None and None not in values:
            return self._numbers.pack(self._no_nulls, *values)
        nulls, encoded, bit = 0, [b""], 1
        for value, (encode, _) in zip(values, self._codecs):
            if value is None:
                nulls |= bit
            else:
                encoded.append(encode(value))
            bit <<= 1
        encoded[0] = nulls.to_bytes(self._nulls, "little")
        return b"".join(encoded)

    def decode(self, data: bytes, start: int = 0) -> tuple[list[Any], int]:
        """Return the row at an offset, and the offset of its end."""
        at = start + self._nulls
        values: list[Any] = []
        if self._numbers is not None and data[start:at] == self._no_nulls:
            _, *values = self._numbers.unpack_from(data, start)
            return values, start + self._numbers.size
        nulls = int.from_bytes(data[start:at], "little")
        for _, decode in self._codecs:
            if nulls & 1:
                values.append(None)
            else:
                value, at = decode(data, at)
                values.append(value)
            nulls >>= 1
        return values, at


def _codec(spark_type: T.DataType) -> tuple[EncodeField, DecodeField]:
    if isinstance(spark_type, T.ArrayType):
        return _array(spark_type.elementType)
    if isinstance(spark_type, T.StructType):
        return _struct(spark_type)
    codec = _CODECS.get(type(spark_type))
    if codec is not None:
        return codec
    raise UnsupportedKeyTypeError(
        f"key must be of types that state is kept of, got {show(spark_type.simpleString())}"
    )


def _array(element: T.DataType) -> tuple[EncodeField, DecodeField]:
    codec = _codec(element)

    def fields(length: int) -> RowCodec:
        made = RowCodec([])
        made._codecs, made._nulls = [codec] * length, (length + 7) // 8
        return made

    def encode(value: Any) -> bytes:
        return _LENGTH.pack(len(value)) + fields(len(value)).encode(value)

    def decode(data: bytes, at: int) -> tuple[Any, int]:
        (length,) = _LENGTH.unpack_from(data, at)
        if length > 8 * (len(data) - at):
            raise ValueError("an array is longer than the bytes there are")
        return fields(length).decode(data, at + 4)

    return encode, decode


def _struct(spark_type: T.StructType) -> tuple[EncodeField, DecodeField]:
    fields, names = RowCodec([field.dataType for field in spark_type.fields]), spark_type.names

    def encode(value: Any) -> bytes:
        return fields.encode([value[name] for name in names])

    def decode(data: bytes, at: int) -> tuple[Any, int]:
        values, end = fields.decode(data, at)
        return dict(zip(names, values)), end

    return encode, decode


def _fixed(
    layout: str,
    to_number: Callable[[Any], Any] | None = None,
    of_number: Callable[[Any], Any] | None = None,
) -> tuple[EncodeField, DecodeField]:
    number = struct.Struct(layout)
    pack, unpack_from, size = number.pack, number.unpack_from, number.size
    if to_number is None or of_number is None:
        return pack, lambda data, at: (unpack_from(data, at)[0], at + size)
    return (
        lambda value: pack(to_number(value)),
        lambda data, at: (of_number(unpack_from(data, at)[0]), at + size),
    )


def _variable(
    to_bytes: Callable[[Any], bytes], of_bytes: Callable[[bytes], Any]
) -> tuple[EncodeField, DecodeField]:
    def encode(value: Any) -> bytes:
        data = to_bytes(value)
        return _LENGTH.pack(len(data)) + data

    def decode(data: bytes, at: int) -> tuple[Any, int]:
        end = at + 4 + _LENGTH.unpack_from(data, at)[0]
        if end > len(data):
            raise ValueError("a value is longer than the bytes there are")
        return of_bytes(data[at + 4 : end]), end

    return encode, decode


def _instant(epoch: dt.datetime) -> tuple[EncodeField, DecodeField]:
    return _fixed(
        "<q",
        lambda value: (value - epoch) // _MICROSECOND,
        lambda number: epoch + dt.timedelta(microseconds=number),
    )


_NUMBERS: dict[type[T.DataType], str] = {
    T.LongType: "q",
    T.IntegerType: "i",
    T.ShortType: "h",
    T.ByteType: "b",
    T.BooleanType: "?",
    T.DoubleType: "d",
}
_CODECS: dict[type[T.DataType], tuple[EncodeField, DecodeField]] = {
    **{spark_type: _fixed(f"<{layout}") for spark_type, layout in _NUMBERS.items()},
    T.StringType: _variable(lambda value: value.encode(), lambda data: data.decode()),
    T.DateType: _fixed(
        "<i",
        lambda value: value.toordinal() - _EPOCH_DAY,
        lambda number: dt.date.fromordinal(number + _EPOCH_DAY),
    ),
    T.TimestampType: _instant(_EPOCH),
    T.TimestampNTZType: _instant(_LOCAL_EPOCH),
    T.DecimalType: _variable(
        lambda value: str(value).encode(), lambda data: Decimal(data.decode())
    ),
    T.BinaryType: _variable(bytes, bytes),
}
