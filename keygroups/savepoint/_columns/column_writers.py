"""Writers of whole arrays of Arrow: the bytes that serializers write, for all values at once.

A writer takes an array without nulls, of the type of its column. It raises UnwrittenError for
whatever it does not write, invalid values among it: the serializer then writes value by value, and
its error names the one that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from keygroups._serializers import big_numbers, collections, compounds, scalars, value_types
from keygroups._serializers.base import Serializer
from keygroups._serializers.jvm import time as java_time
from keygroups.savepoint._columns.entry_batches import BYTES
from keygroups.savepoint._state.values import SEPARATOR
from keygroups.state_keys import serializer_of
from keygroups.types import KeyType

Numbers = NDArray[np.int64]
Octets = NDArray[np.uint8]
WriteArray = Callable[[pa.Array], pa.Array]
"""A function from an array of values to an array of type `BYTES`; raises UnwrittenError."""

_NOTHING = pa.scalar(b"", BYTES)
_MICROS = 1_000_000
# The years 1 to 9999, which Python has, less a day that a time zone may take.
_FIRST_DAY, _LAST_DAY = np.datetime64("0001-01-02"), np.datetime64("9999-12-30")
_DATE = np.dtype([("year", ">i4"), ("month", "u1"), ("day", "u1")])
_TIME = np.dtype([("hour", "u1"), ("minute", "u1"), ("second", "u1"), ("nano", ">i4")])


class UnwrittenError(Exception):
    """A column has values that only the serializer writes, or refuses, one by one."""


class ColumnWriter(NamedTuple):
    """The writer of a column's values, and the bytes of a null, None if nulls are refused."""

    write: WriteArray
    null: bytes | None

    def write_all(self, array: pa.Array) -> pa.Array:
        """Return the bytes of values and nulls; raises UnwrittenError for a null without bytes."""
        if not array.null_count:
            return self.write(array)
        if self.null is None:
            raise UnwrittenError
        return with_others(self.write(array.drop_null()), array.is_null(), self.null)


def column_writer(column_type: KeyType | Serializer) -> ColumnWriter | None:
    """Return the writer of the column that state of a type is written from, if there is one."""
    if isinstance(column_type, Serializer):
        return _writer_of(column_type, is_of_key_type=False)
    return _writer_of(serializer_of(column_type), is_of_key_type=True)


def _writer_of(serializer: Serializer, is_of_key_type: bool) -> ColumnWriter | None:
    """Return the writer for a serializer, None without one.

    BIG_DEC and ROW have one column as a key type, and another as a serializer; only the first has
    a writer.
    """
    cls = type(serializer)
    if cls in _OF_KEY_TYPES and not is_of_key_type:
        return None
    write = _WRITERS.get(cls)
    if write is None and cls in _COMPOUND:
        parts = [_writer_of(part, is_of_key_type) for part in serializer.parts]
        if None not in parts:
            write = _COMPOUND[cls]([part for part in parts if part is not None])
    if write is None or serializer.write is None:
        return None
    return ColumnWriter(write, serializer.write(None) if serializer.takes_null else None)


# --- bytes in arrays ----------------------------------------------------------------------


def joined(*parts: pa.Array | pa.Scalar) -> pa.Array:
    """Return the bytes of several arrays one after the other, row by row."""
    return pc.binary_join_element_wise(*parts, _NOTHING)


def joined_runs(elements: pa.Array, offsets: Numbers, separator: bytes = SEPARATOR) -> pa.Array:
    """Return the elements from each offset to the next as one value, with a separator between.

    Elements a, b, c with offsets 0, 2, 3 and the separator "," become "a,b" and "c".
    """
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), elements)
    return pc.binary_join(lists, pa.scalar(separator, BYTES))


def with_others(written: pa.Array, mask: pa.Array, other: bytes) -> pa.Array:
    """Return an array with the bytes `other` in the rows of a mask, which `written` is without.

    Written a, b with the mask no, yes, no and other N become a, N, b.
    """
    is_other = mask.to_numpy(zero_copy_only=False)
    places = np.cumsum(~is_other) - 1
    places[is_other] = len(written)
    return pa.concat_arrays([written, bytes_array([other])]).take(pa.array(places))


def bytes_array(values: Iterable[bytes]) -> pa.Array:
    """Return an array of bytes."""
    return pa.array(values, BYTES)


def fixed(values: NDArray[Any]) -> pa.Array:
    """Return the bytes of the rows of an array of NumPy."""
    size = values.nbytes // max(len(values), 1)
    return _of_octets(values, np.arange(len(values) + 1) * size)


def _of_octets(data: NDArray[Any], offsets: Numbers) -> pa.Array:
    starts = np.ascontiguousarray(offsets, np.int64)  # NumPy's default integer may have 32 bits
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(BYTES, len(offsets) - 1, buffers)


def octets_of(array: pa.Array) -> tuple[Octets, Numbers]:
    """Return the bytes of all values of an array of bytes or text, and the offset of each."""
    array = array.cast(BYTES)
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(data or b"", np.uint8)[bounds[0] : bounds[-1]], bounds - bounds[0]


def _varints(numbers: Numbers) -> tuple[Octets, Numbers]:
    """Return the varints of numbers, low 7 bits first, and the offset of each.

    5 and 300 are the bytes 05, ac 02 at the offsets 0 and 1; the last offset is their end, 3.
    """
    if numbers.max(initial=0) < 0x80:
        return numbers.astype(np.uint8), np.arange(len(numbers) + 1)
    sizes = np.ones(len(numbers), np.int64)
    for shift in (7, 14, 21, 28):
        sizes += numbers >> shift > 0
    bounds = np.zeros(len(numbers) + 1, np.int64)
    np.cumsum(sizes, out=bounds[1:])
    data = np.empty(bounds[-1], np.uint8)
    for place in range(int(sizes.max(initial=0))):
        is_long = sizes > place
        bits = numbers[is_long] >> 7 * place & 0x7F
        data[bounds[:-1][is_long] + place] = bits | (sizes[is_long] > place + 1) * 0x80
    return data, bounds


# --- writers ------------------------------------------------------------------------------


def _numbers_as(dtype: str) -> WriteArray:
    return lambda array: fixed(array.to_numpy().astype(dtype))


def _floats_as(dtype: str, bits: str, nan: int) -> WriteArray:
    def write(array: pa.Array) -> pa.Array:
        values = array.to_numpy()
        return fixed(np.where(np.isnan(values), nan, values.view(bits)).astype(dtype))

    return write


def _write_booleans(array: pa.Array) -> pa.Array:
    return fixed(array.to_numpy(zero_copy_only=False).astype("u1"))


def _write_strings(array: pa.Array) -> pa.Array:
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
        data, starts = _varints(units)
        lengths = np.diff(counts[bounds])
        bounds = starts[counts[bounds]]
    else:
        lengths = np.diff(bounds)
    return joined(_of_octets(*_varints(lengths + 1)), _of_octets(data, bounds))


def _decoded(data: Octets, bounds: Numbers) -> str:
    starts = bounds[:-1][np.diff(bounds) > 0]
    if ((data[starts] & 0xC0) == 0x80).any():
        raise UnwrittenError
    try:
        return data.tobytes().decode()
    except UnicodeDecodeError:
        raise UnwrittenError from None


def _write_sql_strings(array: pa.Array) -> pa.Array:
    _decoded(*octets_of(array))
    return _write_bytes(array)


def _write_bytes(array: pa.Array) -> pa.Array:
    data, bounds = octets_of(array)
    return joined(fixed(np.diff(bounds).astype(">i4")), _of_octets(data, bounds))


def _write_decimals(array: pa.Array) -> pa.Array:
    """Write decimals of one scale as BigDecSerializer does, if a long holds each unscaled number.

    Arrow holds 2.56 of scale 2 as the 128 bits of 256. The bytes are a length plus 4, that many
    bytes of two's complement, and the scale: 00 00 00 06, 01 00, 00 00 00 02. The unscaled numbers
    0, 1 and 10 are the codes 1, 2 and 3 instead, without bytes of their own.
    """
    _, data = array.buffers()
    numbers = np.frombuffer(data, "<i8")[2 * array.offset : 2 * (array.offset + len(array))]
    low, high = numbers.reshape(-1, 2).T
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
    bounds = np.zeros(len(low) + 1, np.int64)
    np.cumsum(sizes, out=bounds[1:])
    digits = _of_octets(octets[np.arange(8) >= 8 - sizes[:, None]], bounds)
    scale = pa.scalar(array.type.scale.to_bytes(4, "big"), BYTES)
    return joined(fixed(codes.astype(">i4")), digits, scale)


def _write_dates(array: pa.Array) -> pa.Array:
    days = array.view(pa.int32()).to_numpy().astype(np.int64)
    return fixed(_dates(days.view("M8[D]")))


def _dates(days: NDArray[np.datetime64]) -> NDArray[np.void]:
    if len(days) and (days.min() < _FIRST_DAY or days.max() > _LAST_DAY):
        raise UnwrittenError
    months = days.astype("M8[M]")
    dates = np.empty(len(days), _DATE)
    number = months.astype(np.int64)
    dates["year"], dates["month"] = number // 12 + 1970, number % 12 + 1
    dates["day"] = (days.astype("M8[D]") - months.astype("M8[D]")).astype(np.int64) + 1
    return dates


def _micros(array: pa.Array) -> Numbers:
    """Return timestamps as microseconds since 1970; UnwrittenError beyond the years of Python."""
    moments = array.cast(pa.timestamp("us")).to_numpy()
    if len(moments) and (moments.min() < _FIRST_DAY or moments.max() > _LAST_DAY):
        raise UnwrittenError
    micros: Numbers = moments.astype(np.int64)
    return micros


def _write_local_date_times(array: pa.Array) -> pa.Array:
    micros = _micros(array)
    seconds, rest = np.divmod(micros, _MICROS)
    times = np.empty(len(micros), _TIME)
    times["hour"], times["minute"] = seconds // 3600 % 24, seconds // 60 % 60
    times["second"], times["nano"] = seconds % 60, rest * 1_000
    return joined(fixed(_dates(micros.view("M8[us]").astype("M8[D]"))), fixed(times))


def _moments(parts_of: Callable[[Numbers], tuple[Numbers, Numbers]]) -> WriteArray:
    def write(array: pa.Array) -> pa.Array:
        micros = _micros(array)
        moments = np.empty(len(micros), [("long", ">i8"), ("nano", ">i4")])
        moments["long"], moments["nano"] = parts_of(micros)
        return fixed(moments)

    return write


def _write_millis(array: pa.Array) -> pa.Array:
    millis, rest = np.divmod(_micros(array), 1_000)
    if rest.any():
        raise UnwrittenError
    return fixed(millis.astype(">i8"))


def _tuples(parts: Sequence[ColumnWriter]) -> WriteArray:
    return lambda array: joined(
        *(part.write_all(column) for part, column in zip(parts, array.flatten()))
    )


def _rows(parts: Sequence[ColumnWriter]) -> WriteArray:
    def write(array: pa.Array) -> pa.Array:
        bits = np.zeros((len(array), 2 + len(parts)), np.bool_)  # two bits of row kind: 0 for +I
        written = []
        for place, (part, column) in enumerate(zip(parts, array.flatten()), 2):
            if column.null_count:
                nulls = column.is_null()
                bits[:, place] = nulls.to_numpy(zero_copy_only=False)
                written.append(with_others(part.write(column.drop_null()), nulls, b""))
            else:
                written.append(part.write(column))
        return joined(fixed(np.packbits(bits, axis=1)), *written)

    return write


def _lists(parts: Sequence[ColumnWriter]) -> WriteArray:
    [element] = parts

    def write(array: pa.Array) -> pa.Array:
        written, bounds = write_elements(array, element)
        return joined(fixed(np.diff(bounds).astype(">i4")), joined_runs(written, bounds, b""))

    return write


def write_elements(array: pa.Array, element: ColumnWriter) -> tuple[pa.Array, Numbers]:
    """Return the bytes of all elements of lists, and the number of the first element of each list.

    The last number is that of all elements. Raises UnwrittenError for a null element.
    """
    elements = array.flatten()
    if elements.null_count:
        raise UnwrittenError
    bounds = np.zeros(len(array) + 1, np.int64)
    np.cumsum(array.value_lengths().to_numpy(), out=bounds[1:])
    return element.write(elements), bounds


_WRITERS: dict[type[Serializer], WriteArray] = {
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
_WRITERS |= {
    value: _WRITERS[type(value.base)]
    for value in value_types.ValueOf.__subclasses__()
    if type(value.base) in _WRITERS
}
_COMPOUND: dict[type[Serializer], Callable[[Sequence[ColumnWriter]], WriteArray]] = {
    compounds.TupleSerializer: _tuples,
    compounds.RowSerializer: _rows,
    collections.ListSerializer: _lists,
    collections.ArrayListSerializer: _lists,
}
"""Functions from the writers of the parts to the writer of the whole, by class of serializer."""
_OF_KEY_TYPES = (big_numbers.BigDecSerializer, compounds.RowSerializer)
"""Serializers whose key type has another column: decimals, and structs without a row_kind."""
