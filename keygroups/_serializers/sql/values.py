"""The values of Flink SQL's rows, arrays and maps, from their bytes and back.

Rows are as `keygroups.binary_row` has them. An array is its count, a null bit an element and a
slot an element, which is as large as its type; a map is the size of the array of its keys, that
array, and the array of its values. ARRAY<INT> of 5 and NULL is 02000000, a count; 02000000, the
null bits; 05000000 00000000.

Values that Python cannot hold exactly stay as Flink has them: a date or a time beyond Python's is
the number of days or milliseconds, a timestamp beyond Python's years or finer than the
microsecond a `TimestampData`, and a value of a RAW type its bytes.

Values are checked less than keys: a NOT NULL column holds NULL where it is a processing time, and
texts may be longer than declared, as Flink does not check that.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, InvalidOperation
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

from keygroups._checks import LONG_MAX, LONG_MIN, show
from keygroups._serializers.collections import as_dict
from keygroups._values import checks
from keygroups._values.bitmaps import Bitmap
from keygroups._values.checks import EPOCH, UTC_EPOCH
from keygroups._values.java_values import Variant
from keygroups._values.rows import ROW_KINDS, Row, row_of_kind
from keygroups._values.sql import (
    TimestampData,
    day_millis,
    day_of,
    epoch_day,
    millis_and_nanos,
    time_of,
)
from keygroups.binary_row import Converter, array_writer, items_of, map_writer, row_writer
from keygroups.errors import InvalidTypeError, InvalidValueError, UnsupportedKeyTypeError
from keygroups.logical_types import LogicalType, array_header_size, row_header_size

Decode = Callable[[bytes], Any]
Encode = Callable[[Any], bytes]
Convert = Callable[[bytes, Any], Any]
"""`convert(data, number)` returns a value by the row or array and the number in its slot."""

_MILLI_NANOS = 1_000_000
EXACT = Context(38, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[InvalidOperation, Inexact])
"""The context of decimals, as the caller's own may round."""

_FORMATS = {
    **{"BOOLEAN": "?", "TINYINT": "b", "SMALLINT": "h", "INT": "i", "BIGINT": "q"},
    **{"FLOAT": "f", "DOUBLE": "d", "INTERVAL_YEAR_MONTH": "i", "INTERVAL_DAY_TIME": "q"},
}

_long = struct.Struct("<q").unpack_from
_count = struct.Struct("<i").unpack_from


# --- reading ----------------------------------------------------------------------------


class _Slot(NamedTuple):
    """The way to read a value of a type from the number in its slot.

    The number is the value itself; or `convert` makes the value of row and number; or the number
    is size and offset of the bytes that `decode` reads, which may be in the slot if `is_inline`.
    """

    packed: str  # format of the module struct
    convert: Convert | None = None
    decode: Decode | None = None
    is_inline: bool = False


def row_reader(fields: Sequence[LogicalType]) -> Callable[[bytes], Row]:
    """Return the function from the bytes of a BinaryRowData to a Row, with None for NULL.

    It raises IndexError or struct.error for too few bytes, ValueError for bytes that are no values
    of the types.
    """
    header = row_header_size(len(fields))
    slots = [*map(_slot, fields)]
    padded = (f"{slot.packed}{8 - struct.calcsize(f'<{slot.packed}')}x" for slot in slots)
    unpack = struct.Struct(f"<{header}x{''.join(padded)}").unpack_from
    bits = [(index, index // 8, 1 << index % 8) for index in range(len(fields))]
    no_nulls = bytes(header - 1)
    converts = [(i, slot.convert) for i, slot in enumerate(slots) if slot.convert is not None]
    decodes = [
        (i, _inline_or_part if slot.is_inline else _part, slot.decode)
        for i, slot in enumerate(slots)
        if slot.decode is not None
    ]
    new = tuple.__new__

    def read_row(row: bytes) -> Row:
        values: list[Any] = [*unpack(row)]
        nulls = row[1:header]
        if nulls != no_nulls:
            for index, null_byte, null_bit in bits:
                if nulls[null_byte] & null_bit:
                    values[index] = None
        for index, convert in converts:
            if (number := values[index]) is not None:
                values[index] = convert(row, number)
        if decodes:
            room = len(row)
            for index, part, decode in decodes:
                if (number := values[index]) is not None:
                    data = part(row, number)
                    room -= len(data)
                    if room < 0:
                        raise _overlapping(row)
                    values[index] = decode(data)
        kind = row[0]
        if not kind:  # Nearly all rows are of kind +I: this saves a call of `row_of_kind`.
            return new(Row, values)
        if kind >= len(ROW_KINDS):
            raise ValueError(f"a row of kind {kind}")
        return row_of_kind(values, kind)

    return read_row


def array_reader(element: LogicalType) -> Callable[[bytes], list[Any]]:
    """Return the function from the bytes of a BinaryArrayData to a list; see `row_reader`."""
    packed, convert, decode, is_inline = _slot(element)
    part = _inline_or_part if is_inline else _part

    def read_array(array: bytes) -> list[Any]:
        (count,) = _count(array, 0)
        if not 0 <= count <= len(array):
            raise ValueError(f"an array of {count} elements in {len(array)} bytes")
        header = array_header_size(count)
        values: list[Any] = [*struct.unpack_from(f"<{count}{packed}", array, header)]
        nulls = array[4:header]
        if nulls.strip(b"\0"):
            values = [
                None if nulls[index // 8] & 1 << index % 8 else value
                for index, value in enumerate(values)
            ]
        if convert is not None:
            return [None if value is None else convert(array, value) for value in values]
        if decode is None:
            return values
        room, elements = len(array), []
        for value in values:
            if value is not None:
                data = part(array, value)
                room -= len(data)
                if room < 0:
                    raise _overlapping(array)
                value = decode(data)
            elements.append(value)
        return elements

    return read_array


def map_reader(key: LogicalType, value: LogicalType) -> Decode:
    """Return the function from the bytes of a BinaryMapData to a dict; see `row_reader`.

    It returns a list of pairs where keys are equal in Python or not hashable.
    """
    read_keys, read_values = array_reader(key), array_reader(value)

    def read_map(data: bytes) -> Any:
        (size,) = _count(data, 0)
        if not 0 <= size <= len(data) - 4:
            raise ValueError(f"keys of {size} bytes in a map of {len(data)}")
        keys, values = read_keys(data[4 : 4 + size]), read_values(data[4 + size :])
        if len(keys) != len(values):
            raise ValueError(f"a map of {len(keys)} keys and {len(values)} values")
        return as_dict([*zip(keys, values)])

    return read_map


def reader_of(field: LogicalType) -> Decode | None:
    """Return the reader of a ROW, ARRAY, MAP or MULTISET, None for any other type."""
    name, fields = field.name, field.fields
    if name == "ROW":
        return row_reader(fields)
    if name == "ARRAY":
        return array_reader(*fields)
    if name in ("MAP", "MULTISET"):
        return map_reader(*items_of(field))
    return None


def _slot(field: LogicalType) -> _Slot:
    name = field.name
    if (packed := _FORMATS.get(name)) is not None:
        return _Slot(packed)
    if name in ("DATE", "TIME"):
        to_value = day_of if name == "DATE" else time_of
        return _Slot("i", lambda _, number: to_value(number))
    if name == "DECIMAL":
        to_decimal = decimal_reader(field)
        return _Slot("Q", decode=to_decimal) if field.reserved else _compact_decimal(field)
    if name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return _timestamp_slot(field)
    if name in ("CHAR", "VARCHAR"):
        return _Slot("Q", decode=bytes.decode, is_inline=True)
    if name in ("BINARY", "VARBINARY", "BITMAP"):
        return _Slot("Q", decode=Bitmap if name == "BITMAP" else bytes, is_inline=True)
    if name == "RAW":
        return _Slot("Q", decode=bytes)
    return _Slot("Q", decode=reader_of(field) or read_variant)


def _inline_or_part(data: bytes, slot: int) -> bytes:
    """Return the bytes of a value: those in its slot if the highest bit is set, else its part."""
    if not slot >> 63:
        return _part(data, slot)
    size = slot >> 56 & 0x7F
    if size > LogicalType.MAX_INLINE:
        raise ValueError(f"{size} bytes in a slot of {LogicalType.MAX_INLINE}")
    return slot.to_bytes(8, "little")[:size]


def _part(data: bytes, slot: int) -> bytes:
    size, offset = slot & 0xFFFFFFFF, slot >> 32
    if offset + size > len(data):
        raise IndexError("too few bytes")
    return data[offset : offset + size]


def _overlapping(data: bytes) -> ValueError:
    """Return the error for values that share bytes.

    BinaryRowWriter and BinaryArrayWriter put one after the other, so that all together are at
    most as long as the row. Shared bytes, level by level, could make exponentially many values.
    """
    return ValueError(f"values in a row of {len(data)} bytes overlap")


def timestamp_reader(epoch: datetime = EPOCH) -> Callable[[int, int], datetime | TimestampData]:
    """Return the function from epoch milliseconds and the nanoseconds above to a timestamp."""

    def to_timestamp(millis: int, nanos: int) -> datetime | TimestampData:
        if not 0 <= nanos < _MILLI_NANOS:
            raise ValueError(f"{nanos} nanoseconds of a millisecond")
        micros, rest = divmod(nanos, 1_000)
        if rest:
            return TimestampData(millis, nanos)
        try:
            return epoch + timedelta(0, 0, micros, millis)
        except OverflowError:
            return TimestampData(millis, nanos)

    return to_timestamp


def _timestamp_slot(field: LogicalType) -> _Slot:
    to_timestamp = timestamp_reader(_epoch_of(field))
    if not field.reserved:
        return _Slot("q", lambda _, millis: to_timestamp(millis, 0))

    def convert(data: bytes, slot: int) -> datetime | TimestampData:
        (millis,) = _long(data, slot >> 32)
        return to_timestamp(millis, slot & 0xFFFFFFFF)

    return _Slot("Q", convert)


def _epoch_of(field: LogicalType) -> datetime:
    return UTC_EPOCH if field.name == "TIMESTAMP_LTZ" else EPOCH


def _compact_decimal(field: LogicalType) -> _Slot:
    scale = -(field.scale or 0)
    # The precision is not checked, as Flink's DecimalData.fromUnscaledLong ignores it.
    return _Slot("q", lambda _, unscaled: Decimal(unscaled).scaleb(scale, EXACT))


def decimal_reader(field: LogicalType) -> Callable[[bytes], Decimal]:
    """Return the function from the bytes of a DECIMAL's unscaled value to the Decimal."""
    scale = -(field.scale or 0)
    limit = 10 ** (field.precision or 0)

    def to_decimal(data: bytes) -> Decimal:
        # DecimalData.fromUnscaledBytes returns null for more digits, and 16 bytes are reserved.
        if not 0 < len(data) <= field.reserved:
            raise ValueError(f"a {field} of {len(data)} bytes")
        unscaled = int.from_bytes(data, signed=True, byteorder="big")
        if not -limit < unscaled < limit:
            raise ValueError(f"a {field} of more digits: {unscaled}")
        return Decimal(unscaled).scaleb(scale, EXACT)

    return to_decimal


def read_variant(data: bytes) -> Variant:
    """Return a VARIANT: in a row it is the metadata's size in big endian, metadata, value."""
    size = int.from_bytes(data[:4], "big")
    if size > len(data) - 4:
        raise ValueError(f"metadata of {size} bytes in a variant of {len(data)}")
    return Variant(data[4 + size :], data[4 : 4 + size])


# --- writing ----------------------------------------------------------------------------


def value_encoder(field: LogicalType, is_projected: bool = False) -> Encode:
    """Return the function that checks a value and returns the bytes of a ROW, ARRAY or MAP.

    It raises InvalidTypeError or InvalidValueError. The bytes are those of Flink's serializers,
    in which a NULL takes no room. A ROW that `is_projected` is written as the planner's code
    writes a key, in which a NULL takes the room of a value that does not fit its slot.
    """
    convert, write = value_converter(field), _writer_of(field, is_projected)
    name = str(field)

    def encode(value: Any) -> bytes:
        try:
            return bytes(write(convert(value)))
        except UnsupportedKeyTypeError:  # The error of an enum has a remedy for keys only.
            raise InvalidTypeError(
                f"value of type {name} must not be an enum or hold one, got {show(value)}"
            ) from None

    return encode


def _writer_of(field: LogicalType, is_projected: bool) -> Callable[[Any], bytearray]:
    if field.name == "ROW":
        return row_writer(field.fields, is_key=is_projected)
    if field.name == "ARRAY":
        return array_writer(*field.fields)
    return map_writer(items_of(field))


def value_converter(field: LogicalType) -> Converter:
    """Return the function that checks a value and returns the internal one for `binary_row`.

    It is never called with None, which is NULL whatever the type says.
    """
    name, text = field.name, str(field)
    if name == "ROW":
        return _row_converter(text, [*map(value_converter, field.fields)])
    if name == "ARRAY":
        return _array_converter(text, *map(value_converter, field.fields))
    if name in ("MAP", "MULTISET"):
        return _map_converter(text, *map(value_converter, items_of(field)))
    if name == "DECIMAL":
        return decimal_converter(field)
    if name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return timestamp_converter(field)
    if name in _INTEGER_BITS:
        return checks.integer_checker(text, _INTEGER_BITS[name])
    return partial(_CONVERTERS[name], text)


def _nullable(convert: Converter) -> Converter:
    return lambda value: None if value is None else convert(value)


def _row_converter(text: str, converters: Sequence[Converter]) -> Converter:
    each_field = [*map(_nullable, converters)]

    def convert_row(value: object) -> Sequence[Any]:
        fields = checks.expect_fields(text, len(each_field), value)
        values = [*checks.each("field", each_field, fields)]
        if isinstance(value, Row) and value.row_kind != "+I":
            return Row(values, value.row_kind)
        return values

    return convert_row


def _array_converter(text: str, element: Converter) -> Converter:
    convert = _nullable(element)

    def convert_array(value: object) -> list[Any]:
        elements = checks.expect(text, value, list, "a list")
        return [*checks.each("element", repeat(convert), elements)]

    return convert_array


def _map_converter(text: str, key: Converter, value: Converter) -> Converter:
    convert_key, convert_value = _nullable(key), _nullable(value)

    def convert_map(items: object) -> tuple[list[Any], list[Any]]:
        pairs = map_items(text, items)
        keys = [*checks.each("key", repeat(convert_key), (key for key, _ in pairs))]
        values = (mapped for _, mapped in pairs)
        return keys, [*checks.each("value", repeat(convert_value), values)]

    return convert_map


def map_items(text: str, value: object) -> Sequence[tuple[Any, Any]]:
    """Return the items of a map, a dict or, for keys that no dict holds, a list of pairs."""
    if isinstance(value, dict):
        return [*value.items()]
    items = checks.expect(text, value, list, "a dict, or a list of pairs")
    for item in items:
        if not isinstance(item, tuple) or len(item) != 2:
            raise InvalidTypeError(
                f"key of type {text} must be a dict, or a list of pairs, got {show(item)} in one"
            )
    return items


def _convert_bool(text: str, value: object) -> bool:
    return checks.expect_bool(text, value)


def _float_bits(text: str, value: object) -> int:
    number = checks.expect_single(text, value)
    return int.from_bytes(checks.pack_single(text, number), "little")


def _double_bits(text: str, value: object) -> int:
    number = checks.expect(text, value, float, "a float")
    return int.from_bytes(struct.pack("<d", number), "little")


def text_bytes(text: str, value: object) -> bytes:
    """Return the UTF-8 of a text, or raise for a lone surrogate."""
    string = checks.expect(text, value, str, "a str")
    try:
        return string.encode()
    except UnicodeEncodeError:
        raise InvalidValueError(
            f"key of type {text} must have no half of a surrogate pair, got {show(value)}"
        ) from None


def _convert_bytes(text: str, value: object) -> bytes:
    return bytes(checks.expect(text, value, (bytes, bytearray), "bytes"))


def _convert_bitmap(text: str, value: object) -> bytes:
    return checks.expect(text, value, Bitmap, "a Bitmap").data


def _convert_variant(text: str, value: object) -> bytes:
    variant = checks.expect(text, value, Variant, "a Variant")
    data, metadata = (_convert_bytes(text, part) for part in variant)
    checks.check_variant_version(metadata)
    return len(metadata).to_bytes(4, "big") + metadata + data


def timestamp_converter(field: LogicalType) -> Callable[[object], tuple[int, int]]:
    """Return the function from a timestamp to epoch milliseconds and the nanoseconds above."""
    text = str(field)
    since_epoch = (
        checks.instant_since_epoch if field.name == "TIMESTAMP_LTZ" else checks.local_since_epoch
    )

    def convert_timestamp(value: object) -> tuple[int, int]:
        millis, nanos = millis_and_nanos(text, value, since_epoch)
        if nanos and not field.reserved:
            raise InvalidValueError(
                f"key of type {text} must be whole milliseconds, got {show(value)}"
            )
        return millis, nanos

    return convert_timestamp


def decimal_converter(field: LogicalType) -> Callable[[object], int]:
    """Return the function from a Decimal to its unscaled value."""
    text, scale = str(field), field.scale or 0
    limit = 10 ** (field.precision or 0)
    low, high = (1 - limit, limit - 1) if field.reserved else (LONG_MIN, LONG_MAX)
    # The context traps digits that are lost after the scale.
    context = Context(60, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[InvalidOperation, Inexact])
    unit = Decimal((0, (1,), -scale))

    def convert_decimal(value: object) -> int:
        decimal = checks.expect(text, value, Decimal, "a Decimal")
        if not decimal.is_finite():
            raise InvalidValueError(f"key of type {text} must be finite, got {show(decimal)}")
        try:
            unscaled = int(context.scaleb(context.quantize(decimal, unit), scale))
        except (Inexact, InvalidOperation):
            unscaled = None
        if unscaled is None or not low <= unscaled <= high:
            raise InvalidValueError(
                f"key of type {text} must have at most {field.precision} digits, {scale} of them "
                f"after the point, got {show(decimal)}"
            )
        return unscaled

    return convert_decimal


_INTEGER_BITS = {
    **{"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64},
    **{"INTERVAL_YEAR_MONTH": 32, "INTERVAL_DAY_TIME": 64},
}
_CONVERTERS: dict[str, Callable[[str, Any], Any]] = {
    "BOOLEAN": _convert_bool,
    "FLOAT": _float_bits,
    "DOUBLE": _double_bits,
    "CHAR": text_bytes,
    "VARCHAR": text_bytes,
    "BINARY": _convert_bytes,
    "VARBINARY": _convert_bytes,
    "RAW": _convert_bytes,
    "BITMAP": _convert_bitmap,
    "VARIANT": _convert_variant,
    "DATE": epoch_day,
    "TIME": day_millis,
}
