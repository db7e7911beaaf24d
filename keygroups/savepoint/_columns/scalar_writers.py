"""Writers of arrays of scalars: the bytes that serializers write, for all values at once.

A writer takes an array without nulls, of the type of its column. It raises UnwrittenError for
whatever it does not write, invalid values among it: the serializer then writes value by value, and
its error names the one that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from keygroups._serializers import big_numbers, scalars, value_types
from keygroups._serializers.base import Serializer
from keygroups._serializers.jvm import time as java_time
from keygroups.savepoint._columns.byte_arrays import (
    Int64s,
    Octets,
    Pieces,
    assembled,
    bounds_of,
    octets_of,
    of_octets,
    varints,
    with_others,
)

WritePieces = Callable[[pa.Array], Pieces]
"""A function from an array of values to the pieces of their bytes; raises UnwrittenError."""

_MICROS = 1_000_000
# The years 1 to 9999, which Python has, less a day that a time zone may take.
FIRST_DAY, LAST_DAY = np.datetime64("0001-01-02"), np.datetime64("9999-12-30")
# Bounds are numbers, as the least timestamp of Arrow is NumPy's NaT, which no day is beyond.
_FIRST_MICRO, _LAST_MICRO = (
    int(day.astype("M8[us]").astype(np.int64)) for day in (FIRST_DAY, LAST_DAY)
)
_DATE = np.dtype([("year", ">i4"), ("month", "u1"), ("day", "u1")])
_TIME = np.dtype([("hour", "u1"), ("minute", "u1"), ("second", "u1"), ("nano", ">i4")])


class UnwrittenError(Exception):
    """A column has values that only the serializer writes, or refuses, one by one."""


class ColumnWriter(NamedTuple):
    """The writer of a column's values, and the bytes of a null, None if nulls are refused."""

    pieces: WritePieces
    null: bytes | None

    def write(self, array: pa.Array) -> pa.Array:
        """Return the bytes of values."""
        return assembled(self.pieces(array))

    def all_pieces(self, array: pa.Array) -> Pieces:
        """Return the bytes of values and nulls; raises UnwrittenError for a null without bytes."""
        if not array.null_count:
            return self.pieces(array)
        if self.null is None:
            raise UnwrittenError
        return [with_others(self.write(array.drop_null()), array.is_null(), self.null)]


def _numbers_as(dtype: str) -> WritePieces:
    return lambda array: [array.to_numpy().astype(dtype)]


def _floats_as(dtype: str, bits: str, nan: int) -> WritePieces:
    def write(array: pa.Array) -> Pieces:
        values = array.to_numpy()
        return [np.where(np.isnan(values), nan, values.view(bits)).astype(dtype)]

    return write


def _write_booleans(array: pa.Array) -> Pieces:
    return [array.to_numpy(zero_copy_only=False).view("u1")]


def _write_strings(array: pa.Array) -> Pieces:
    """Write text as Flink's StringValue does: a varint of the length plus 1, one of each unit.

    Units are UTF-16: "a" is 02 61, and "é" 02 e9 01. Text below U+0080 needs no decoding: its
    bytes are its units. Otherwise all rows are decoded as one text, and the units of each row are
    counted: one for a byte that starts a character, two if it is >= f0 (a surrogate pair).
    """
    data, bounds = octets_of(array)
    if data.size and data.max() >= 0x80:
        text = _decoded(data, bounds)
        begins = np.add((data & 0xC0) != 0x80, data >= 0xF0, dtype=np.int64)  # UTF-16 units a byte
        counts = np.zeros(len(data) + 1, np.int64)
        np.cumsum(begins, out=counts[1:])
        units = np.frombuffer(text.encode("utf-16-le"), "<u2").astype(np.int64)
        data, starts = varints(units)
        lengths = np.diff(counts[bounds])
        bounds = starts[counts[bounds]]
    else:
        lengths = np.diff(bounds)
    return [_varint_piece(lengths + 1), of_octets(data, bounds)]


def _varint_piece(numbers: Int64s) -> Any:
    sizes, bounds = varints(numbers)
    return sizes if len(sizes) == len(numbers) else of_octets(sizes, bounds)


def check_text(data: Octets, bounds: Int64s) -> None:
    """Raise UnwrittenError for bytes that are no texts of UTF-8."""
    if data.size and data.max() >= 0x80:
        _decoded(data, bounds)


def _decoded(data: Octets, bounds: Int64s) -> str:
    starts = bounds[:-1][np.diff(bounds) > 0]
    if ((data[starts] & 0xC0) == 0x80).any():
        raise UnwrittenError
    try:
        return data.tobytes().decode()
    except UnicodeDecodeError:
        raise UnwrittenError from None


def _write_sql_strings(array: pa.Array) -> Pieces:
    check_text(*octets_of(array))
    return _write_bytes(array)


def _write_bytes(array: pa.Array) -> Pieces:
    data, bounds = octets_of(array)
    return [np.diff(bounds).astype(">i4"), of_octets(data, bounds)]


def halves_of(array: pa.Array) -> tuple[Int64s, Int64s]:
    """Return the lower and the upper 64 bits of the unscaled numbers of decimals."""
    _, data = array.buffers()
    numbers = np.frombuffer(data, "<i8")[2 * array.offset : 2 * (array.offset + len(array))]
    low, high = numbers.reshape(-1, 2).T
    return low, high


def _write_decimals(array: pa.Array) -> Pieces:
    """Write decimals of one scale as BigDecSerializer does, if a long holds each unscaled number.

    Arrow holds 2.56 of scale 2 as the 128 bits of 256. The bytes are a length plus 4, that many
    bytes of two's complement, and the scale: 00 00 00 06, 01 00, 00 00 00 02. The unscaled numbers
    0, 1 and 10 are the codes 1, 2 and 3 instead, without bytes of their own.
    """
    low, high = halves_of(array)
    sign = low >> 63
    if (high != sign).any():
        raise UnwrittenError
    sizes = np.ones(len(low), np.int64)
    for bits in range(7, 63, 8):
        sizes += (low ^ sign) >> bits > 0
    codes = sizes + 4
    for code, number in enumerate((0, 1, 10), 1):
        is_short = low == number
        codes[is_short], sizes[is_short] = code, 0
    octets = low.astype(">i8").view(np.uint8).reshape(-1, 8)
    digits = of_octets(octets[np.arange(8) >= 8 - sizes[:, None]], bounds_of(sizes))
    scales = np.full(len(low), array.type.scale, ">i4")
    return [codes.astype(">i4"), digits, scales]


def _write_dates(array: pa.Array) -> Pieces:
    days = array.view(pa.int32()).to_numpy().astype(np.int64)
    return [_dates(days.view("M8[D]"))]


def _dates(days: NDArray[np.datetime64]) -> NDArray[np.void]:
    if len(days) and (days.min() < FIRST_DAY or days.max() > LAST_DAY):
        raise UnwrittenError
    months = days.astype("M8[M]")
    dates = np.empty(len(days), _DATE)
    number = months.astype(np.int64)
    dates["year"], dates["month"] = number // 12 + 1970, number % 12 + 1
    dates["day"] = (days.astype("M8[D]") - months.astype("M8[D]")).astype(np.int64) + 1
    return dates


def micros_of(array: pa.Array) -> Int64s:
    """Return timestamps as microseconds since 1970; UnwrittenError beyond the years of Python."""
    micros: Int64s = array.cast(pa.timestamp("us")).view(pa.int64()).to_numpy()
    if len(micros) and (micros.min() < _FIRST_MICRO or micros.max() > _LAST_MICRO):
        raise UnwrittenError
    return micros


def _write_local_date_times(array: pa.Array) -> Pieces:
    micros = micros_of(array)
    seconds, rest = np.divmod(micros, _MICROS)
    times = np.empty(len(micros), _TIME)
    times["hour"], times["minute"] = seconds // 3600 % 24, seconds // 60 % 60
    times["second"], times["nano"] = seconds % 60, rest * 1_000
    return [_dates(micros.view("M8[us]").astype("M8[D]")), times]


def _moments(parts_of: Callable[[Int64s], tuple[Int64s, Int64s]]) -> WritePieces:
    def write(array: pa.Array) -> Pieces:
        micros = micros_of(array)
        moments = np.empty(len(micros), [("long", ">i8"), ("nano", ">i4")])
        moments["long"], moments["nano"] = parts_of(micros)
        return [moments]

    return write


def _write_millis(array: pa.Array) -> Pieces:
    millis, rest = np.divmod(micros_of(array), 1_000)
    if rest.any():
        raise UnwrittenError
    return [millis.astype(">i8")]


SCALARS: dict[type[Serializer], WritePieces] = {
    scalars.BooleanSerializer: _write_booleans,
    scalars.ByteSerializer: _numbers_as("i1"),
    scalars.ShortSerializer: _numbers_as(">i2"),
    scalars.IntSerializer: _numbers_as(">i4"),
    scalars.LongSerializer: _numbers_as(">i8"),
    scalars.FloatSerializer: _floats_as(">u4", "u4", 0x7FC00000),
    scalars.DoubleSerializer: _floats_as(">u8", "u8", 0x7FF8000000000000),
    scalars.StringSerializer: _write_strings,
    scalars.StringDataSerializer: _write_sql_strings,
    scalars.BytePrimitiveArraySerializer: _write_bytes,
    scalars.ByteArrayWrapperSerializer: _write_bytes,
    big_numbers.BigDecSerializer: _write_decimals,
    java_time.LocalDateSerializer: _write_dates,
    java_time.LocalDateTimeSerializer: _write_local_date_times,
    java_time.InstantSerializer: _moments(
        lambda micros: (micros // _MICROS, micros % _MICROS * 1_000)
    ),
    java_time.SqlTimestampSerializer: _moments(
        lambda micros: (micros // 1_000, micros % _MICROS * 1_000)
    ),
    java_time.DateSerializer: _write_millis,
    java_time.SqlDateSerializer: _write_millis,
    java_time.SqlTimeSerializer: _write_millis,
}
SCALARS |= {
    value: SCALARS[type(value.base)]
    for value in value_types.ValueOf.__subclasses__()
    if type(value.base) in SCALARS
}
