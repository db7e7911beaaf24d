"""The bytes of a Flink SQL key and of the rows, arrays and maps in it: BinaryRowData.

A row is a header of 8-byte words (the row kind in the first byte, then a null bit a field), one
8-byte slot a field, and a variable part. What does not fit its slot goes to the variable part,
padded to 8 bytes, and the slot holds its size and its offset. All numbers are little endian.

`keygroups.binary_row` checks a key and makes Flink's internal values of it, of which
`row_writer` writes the bytes. Values of state, which may be more than keys, are checked elsewhere.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from datetime import time, timedelta
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, InvalidOperation
from functools import lru_cache, partial
from itertools import repeat
from typing import Any

from keygroups._checks import check_class, show
from keygroups._values import checks
from keygroups._values.java_lang import DOUBLE_NAN, FLOAT_NAN
from keygroups._values.rows import ROW_KINDS, Row
from keygroups._values.sql import day_millis, epoch_day, millis_and_nanos
from keygroups.errors import InvalidValueError
from keygroups.logical_types import LogicalType, array_header_size, row_header_size
from keygroups.types import SQL_ROW

__all__ = ["binary_row"]
__dir__ = __all__.copy

Put = Callable[[bytearray, int, Any], None]
"""`put(target, slot, value)` writes an internal value, not None, at the offset of its slot."""
Writer = Callable[[Sequence[Any]], bytearray]
MapItems = tuple[Sequence[Any], Sequence[Any]]  # all keys, and all values

_put_long = struct.Struct("<q").pack_into
_put_pair = struct.Struct("<II").pack_into
_long = struct.Struct("<q").pack


def binary_row(key: object, key_type: SQL_ROW) -> bytes:
    """Return the bytes of a Flink SQL key, whose murmur3 with seed 42 is its hash.

    `key` is a tuple with one value a field, None for NULL: bool for BOOLEAN; int for TINYINT,
    SMALLINT, INT and BIGINT; float for DOUBLE, and for FLOAT one that is a single exactly; str
    for CHAR and VARCHAR; bytes for BINARY and VARBINARY; Decimal; date; time; a naive datetime
    for TIMESTAMP and an aware one for TIMESTAMP_LTZ; a tuple for ROW and a list for ARRAY. What
    Python has no class for is as keys are read from state: a `TimestampData` of
    `keygroups.savepoint` for nanoseconds and other years, the int of a day of another year for
    DATE, the int of milliseconds that no day has for TIME.

    What Flink would change is refused where it would lose something: a DECIMAL with digits
    beyond its scale (Flink rounds half up; 1.5 for scale 2 is the same as 1.50) or too large
    (Flink: NULL), a fraction of a second finer than the precision of TIME and TIMESTAMP or, for
    TIME, finer than the millisecond that Flink keeps, and text or bytes longer than declared.
    A CHAR or BINARY shorter than declared is taken as it is: Flink pads it in CAST, and on
    writing to a sink if `table.exec.sink.type-length-enforcer` says so, but not in a key. A
    lone surrogate becomes "?", as in Java's UTF-8. A NaN keeps its bits, but in an ARRAY.

    For Flink's exchange hashes what reaches it: a CAST, `fromValues` and CSV's TIME cut a value to
    its type, other sources seen do not. So cut it yourself, or declare the type that the message
    names (STRING, TIMESTAMP(3)), which gives the same bytes. A NULL DECIMAL of more than 18
    digits, or TIMESTAMP of more than 3, has other bytes than any other NULL.

    A nested ROW is written as by Flink's RowDataSerializer. One that reaches the key as bytes
    already keeps them, which may be others if it has a NULL of DECIMAL(p > 18), TIMESTAMP(p > 3)
    or TIMESTAMP_LTZ(p > 3).

    Raises InvalidTypeError and InvalidValueError, which name the field.

    Flink: BinaryRowWriter as the planner's key projections call it, BinaryRowData.

    >>> binary_row((7, "flink"), SQL_ROW("BIGINT", "STRING")).hex(" ", 8)
    '0000000000000000 0700000000000000 666c696e6b000085'
    """
    checked = check_class("key_type", key_type, SQL_ROW, "a SQL_ROW such as SQL_ROW('INT')")
    return _cached_encoder(checked)(key)


def row_encoder(key_type: SQL_ROW) -> Callable[[object], bytes]:
    """Make the function from a key to its bytes."""
    convert = _row_converter(repr(key_type), key_type.fields)
    write = row_writer(key_type.fields, is_key=True)
    return lambda key: bytes(write(convert(key)))


_cached_encoder = lru_cache(maxsize=1024)(row_encoder)


def row_writer(fields: Iterable[LogicalType], is_key: bool) -> Writer:
    """Make the function from a row's internal values to its bytes.

    In a key, which the planner's generated code writes, a NULL of DECIMAL and TIMESTAMP in
    their long forms takes room in the variable part; in a nested row it does not.
    """
    types = tuple(fields)
    header = row_header_size(len(types))
    size = header + 8 * len(types)
    plan = [
        (
            _put(field),
            header + 8 * index,
            1 + index // 8,
            1 << index % 8,
            bytes(field.reserved if is_key else 0),
        )
        for index, field in enumerate(types)
    ]

    def write_row(values: Sequence[Any]) -> bytearray:
        row = bytearray(size)
        if isinstance(values, Row):
            row[0] = ROW_KINDS.index(values.row_kind)
        for (put, slot, null_byte, null_bit, reserved), value in zip(plan, values):
            if value is not None:
                put(row, slot, value)
            else:
                row[null_byte] |= null_bit
                if reserved:
                    _put_pair(row, slot, 0, len(row))
                    row += reserved
        return row

    return write_row


def array_writer(element: LogicalType) -> Writer:
    """Make the function from an array's internal values to its bytes."""
    put = _ARRAY_PUTS.get(element.name) or _put(element)
    step = element.element_size

    def write_array(values: Sequence[Any]) -> bytearray:
        count = len(values)
        header = array_header_size(count)
        array = bytearray((header + step * count + 7) // 8 * 8)
        array[:4] = count.to_bytes(4, "little")
        for index, value in enumerate(values):
            if value is not None:
                put(array, header + step * index, value)
            else:
                array[4 + index // 8] |= 1 << index % 8
        return array

    return write_array


def items_of(field: LogicalType) -> tuple[LogicalType, LogicalType]:
    """Return the types of the keys and values of a MAP, or of a MULTISET, which counts.

    Flink: InternalSerializers has one serializer for both.
    """
    if field.name == "MULTISET":
        [element] = field.fields
        return element, LogicalType("INT", nullable=False)
    key, value = field.fields
    return key, value


def map_writer(types: tuple[LogicalType, LogicalType]) -> Callable[[MapItems], bytearray]:
    """Make the function from a map's internal keys, and its values, to its bytes."""
    write_keys, write_values = map(array_writer, types)

    def write_map(items: MapItems) -> bytearray:
        keys, values = items
        key_bytes = write_keys(keys)
        return bytearray(len(key_bytes).to_bytes(4, "little")) + key_bytes + write_values(values)

    return write_map


def _put(field: LogicalType) -> Put:
    if field.packed is not None:
        return struct.Struct(field.packed).pack_into
    if field.name == "DECIMAL":
        return _put_decimal if field.reserved else _put_long
    if field.name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return _put_timestamp if field.reserved else _put_millis
    if field.name == "ROW":
        return partial(_put_nested, row_writer(field.fields, is_key=False))
    if field.name == "ARRAY":
        return partial(_put_nested, array_writer(*field.fields))
    if field.name in ("MAP", "MULTISET"):
        return partial(_put_nested, map_writer(items_of(field)))
    if field.name in ("RAW", "VARIANT"):  # Not even short ones are kept in their slots.
        return partial(_put_nested, bytes)
    return _put_bytes


def _put_bytes(target: bytearray, slot: int, data: bytes) -> None:
    size = len(data)
    if size <= LogicalType.MAX_INLINE:
        target[slot : slot + size] = data
        target[slot + 7] = 0x80 | size
    else:
        _put_pair(target, slot, size, len(target))
        target += data
        target += bytes(-size % 8)


def _put_decimal(target: bytearray, slot: int, unscaled: int) -> None:
    # BigInteger.toByteArray: as few bytes as hold the number and its sign.
    size = max(unscaled, ~unscaled).bit_length() // 8 + 1
    _put_pair(target, slot, size, len(target))
    target += unscaled.to_bytes(size, "big", signed=True).ljust(16, b"\0")


def _put_millis(target: bytearray, slot: int, value: tuple[int, int]) -> None:
    millis, _ = value
    _put_long(target, slot, millis)


def _put_timestamp(target: bytearray, slot: int, value: tuple[int, int]) -> None:
    millis, nanos = value
    _put_pair(target, slot, nanos, len(target))
    target += _long(millis)


def _put_nested(
    write: Callable[[Any], bytes | bytearray], target: bytearray, slot: int, values: Any
) -> None:
    data = write(values)
    _put_pair(target, slot, len(data), len(target))
    target += data
    target += bytes(-len(data) % 8)


def _put_float_element(target: bytearray, slot: int, bits: int) -> None:
    struct.pack_into("<I", target, slot, FLOAT_NAN if bits & 0x7FFFFFFF > 0x7F800000 else bits)


def _put_double_element(target: bytearray, slot: int, bits: int) -> None:
    is_nan = bits & 0x7FFFFFFFFFFFFFFF > 0x7FF0000000000000
    struct.pack_into("<Q", target, slot, DOUBLE_NAN if is_nan else bits)


# BinaryArrayWriter knows one NaN only; BinaryRowWriter writes the bits as they are.
_ARRAY_PUTS: dict[str, Put] = {"FLOAT": _put_float_element, "DOUBLE": _put_double_element}


Converter = Callable[[Any], Any]
"""`converter(value)` checks a Python value and returns the one that is written."""


def _to_internal(logical_type: LogicalType) -> Converter:
    """Return the function that checks a Python value and makes the internal one, None for NULL."""
    if logical_type.name == "ROW":
        convert: Converter = _row_converter(str(logical_type), logical_type.fields)
    elif logical_type.name == "ARRAY":
        convert = _array_converter(logical_type)
    else:
        convert = _CONVERTERS[logical_type.name](logical_type)
    if logical_type.nullable:
        return lambda value: None if value is None else convert(value)

    def convert_required(value: object) -> Any:
        if value is None:
            raise InvalidValueError(f"key of type {logical_type} must not be None")
        return convert(value)

    return convert_required


def _row_converter(name: str, fields: Sequence[LogicalType]) -> Callable[[object], Sequence[Any]]:
    """Return the function that checks a tuple and makes the internal values of its fields.

    In a key every row is "+I", as the planner's key projections write it.
    """
    converters = [*map(_to_internal, fields)]

    def convert_row(key: object) -> Sequence[Any]:
        fields = checks.expect_fields(name, len(converters), key)
        values = list(checks.each("field", converters, fields))
        if isinstance(key, Row) and key.row_kind != "+I":
            raise InvalidValueError(
                f"key of type {name} must be a row of kind +I, as Flink's keys are, got "
                f"{show(key)}"
            )
        return values

    return convert_row


def _array_converter(logical_type: LogicalType) -> Converter:
    name = str(logical_type)
    [element] = map(_to_internal, logical_type.fields)

    def convert_array(key: object) -> list[Any]:
        elements = checks.expect(name, key, list, "a list")
        return list(checks.each("element", repeat(element), elements))

    return convert_array


def _named(convert: Callable[[str, object], Any]) -> Callable[[LogicalType], Converter]:
    """Return a maker of converters by a function of the type's text, for messages, and a value."""
    return lambda logical_type: partial(convert, str(logical_type))


def _integer_converter(bits: int) -> Callable[[LogicalType], Converter]:
    return lambda logical_type: checks.integer_checker(str(logical_type), bits)


def _float_bits(name: str, key: object) -> int:
    number = checks.expect_single(name, key)
    return int.from_bytes(checks.pack_single(name, number), "little")


def _double_bits(name: str, key: object) -> int:
    number = checks.expect(name, key, float, "a float")
    return int.from_bytes(struct.pack("<d", number), "little")


def _text_converter(logical_type: LogicalType) -> Converter:
    name, limit = str(logical_type), logical_type.length or 0

    def convert_text(key: object) -> bytes:
        text = key if type(key) is str else checks.expect(name, key, str, "a str")
        try:
            data = text.encode()
        except UnicodeEncodeError:
            data = _java_utf8(text)
        if len(data) > limit:  # A character has a byte at least.
            _check_length(logical_type, len(data.decode()), "characters", key)
        return data

    return convert_text


def _java_utf8(text: str) -> bytes:
    """Return Java's UTF-8: two surrogates that make a pair are one, a lone one is a "?"."""
    units = text.encode("utf-16-le", "surrogatepass")
    return units.decode("utf-16-le", "surrogatepass").encode("utf-8", "replace")


def _binary_converter(logical_type: LogicalType) -> Converter:
    name = str(logical_type)

    def convert_binary(key: object) -> bytes:
        data = bytes(checks.expect(name, key, (bytes, bytearray), "bytes"))
        _check_length(logical_type, len(data), "bytes", key)
        return data

    return convert_binary


def _check_length(logical_type: LogicalType, length: int, unit: str, key: object) -> None:
    limit = logical_type.length or 0
    if length <= limit:
        return
    name, unlimited = logical_type.name, "STRING" if unit == "characters" else "BYTES"
    default = ""
    if limit == 1:
        default = f"; {name} without a length is {name}(1)"
        default += f", but {unlimited} in DDL and CAST" if name.startswith("VAR") else ""
    raise InvalidValueError(
        f"key of type {logical_type} must have at most {limit} {unit}, got {length}: {show(key)}"
        f"{default}; Flink cuts a key where a CAST does, and hashes it as it is elsewhere: cut it "
        f"in the first case, and declare {unlimited}, which gives the same bytes, in the other"
    )


def _decimal_converter(logical_type: LogicalType) -> Converter:
    name, scale = str(logical_type), logical_type.scale or 0
    # The context traps digits that are lost after the scale, and more than the precision has.
    context = Context(
        prec=logical_type.precision,
        Emax=MAX_EMAX,
        Emin=MIN_EMIN,
        traps=[Inexact, InvalidOperation],
    )
    unit = Decimal((0, (1,), -scale))

    def convert_decimal(key: object) -> int:
        decimal = checks.expect(name, key, Decimal, "a Decimal")
        if not decimal.is_finite():
            raise InvalidValueError(f"key of type {name} must be finite, got {show(decimal)}")
        try:
            return int(context.scaleb(context.quantize(decimal, unit), scale))
        except (Inexact, InvalidOperation):
            raise InvalidValueError(
                f"key of type {name} must have at most {logical_type.precision} digits, "
                f"{scale} of them after the point, got {show(decimal)}"
            ) from None

    return convert_decimal


def _time_converter(logical_type: LogicalType) -> Converter:
    name, check_fraction = str(logical_type), _fraction_checker(logical_type, at_most=3)

    def convert_time(key: object) -> int:
        if isinstance(key, time):
            check_fraction(key.microsecond * 1_000, key)
        return day_millis(name, key)

    return convert_time


def _timestamp_converter(
    since_epoch: Callable[[str, object], timedelta], logical_type: LogicalType
) -> Converter:
    name, check_fraction = str(logical_type), _fraction_checker(logical_type, at_most=9)

    def convert_timestamp(key: object) -> tuple[int, int]:
        millis, nanos = millis_and_nanos(name, key, since_epoch)
        check_fraction(millis % 1_000 * 1_000_000 + nanos, key)
        return millis, nanos

    return convert_timestamp


def _fraction_checker(logical_type: LogicalType, at_most: int) -> Callable[[int, object], None]:
    precision = logical_type.precision or 0
    digits = min(precision, at_most)
    step = 10 ** (9 - digits)
    # A key of a precision up to 3 holds milliseconds: Flink cuts off no digit of them.
    kept = 3 if precision <= 3 else at_most
    advice = "Flink keeps no more of a key: drop the rest"
    if digits < kept:
        advice = (
            "Flink drops the rest where a CAST or a format does, and hashes it elsewhere: drop it "
            f"in the first case, and declare {logical_type.name}({kept}), which gives the same "
            "bytes, in the other"
        )

    def check_fraction(nanos: int, key: object) -> None:
        if nanos % step:
            raise InvalidValueError(
                f"key of type {logical_type} must have at most {digits} digits of a fraction of "
                f"a second, got {show(key)}; {advice}"
            )

    return check_fraction


_CONVERTERS: dict[str, Callable[[LogicalType], Converter]] = {
    "BOOLEAN": _named(checks.expect_bool),
    "TINYINT": _integer_converter(8),
    "SMALLINT": _integer_converter(16),
    "INT": _integer_converter(32),
    "BIGINT": _integer_converter(64),
    "FLOAT": _named(_float_bits),
    "DOUBLE": _named(_double_bits),
    "DECIMAL": _decimal_converter,
    "CHAR": _text_converter,
    "VARCHAR": _text_converter,
    "BINARY": _binary_converter,
    "VARBINARY": _binary_converter,
    "DATE": _named(epoch_day),
    "TIME": _time_converter,
    "TIMESTAMP": partial(_timestamp_converter, checks.local_since_epoch),
    "TIMESTAMP_LTZ": partial(_timestamp_converter, checks.instant_since_epoch),
}
