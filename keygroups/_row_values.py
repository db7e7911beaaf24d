"""From Python's values to the internal ones of Flink SQL, exactly or not at all.

Internal values are bool; int for the other whole numbers, for the bits of FLOAT and DOUBLE, for
the unscaled value of DECIMAL, for the days of DATE and the milliseconds of TIME; bytes, UTF-8
for text; a pair of milliseconds and the nanoseconds above them for TIMESTAMP and TIMESTAMP_LTZ;
a list of internal values for ROW and ARRAY, for a ROW of another kind than "+I" a Row of them;
and None for NULL.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, InvalidOperation
from functools import partial
from itertools import repeat
from typing import Any

from keygroups import _checks
from keygroups._checks import show
from keygroups._java_time import nano_of_day
from keygroups._serializers import Row
from keygroups.errors import InvalidValueError
from keygroups.logical_types import LogicalType

Converter = Callable[[object], Any]

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MILLISECOND = timedelta(milliseconds=1)


def to_internal(logical_type: LogicalType, is_key: bool) -> Converter:
    """Make what checks a Python value and returns the internal one, None for NULL."""
    if logical_type.name == "ROW":
        convert: Converter = row_converter(str(logical_type), logical_type.fields, is_key)
    elif logical_type.name == "ARRAY":
        convert = _array_converter(logical_type, is_key)
    else:
        convert = _CONVERTERS[logical_type.name](logical_type)
    if logical_type.nullable:
        return lambda value: None if value is None else convert(value)

    def convert_required(value: object) -> Any:
        if value is None:
            raise InvalidValueError(f"key of type {logical_type} must not be None")
        return convert(value)

    return convert_required


def row_converter(
    name: str, fields: Sequence[LogicalType], is_key: bool
) -> Callable[[object], Sequence[Any]]:
    """Make what checks a tuple and returns its fields as internal values.

    In a key every row is "+I", as the planner's key projections write it; other rows keep theirs.
    """
    converters = [to_internal(field, is_key) for field in fields]

    def convert_row(key: object) -> Sequence[Any]:
        fields = _checks.expect_fields(name, len(converters), key)
        values = list(_checks.each("field", converters, fields))
        if isinstance(key, Row) and key.row_kind != "+I":
            if is_key:
                raise InvalidValueError(
                    f"key of type {name} must be a row of kind +I, as Flink's keys are, got "
                    f"{show(key)}"
                )
            return Row(values, key.row_kind)
        return values

    return convert_row


def _array_converter(logical_type: LogicalType, is_key: bool) -> Converter:
    name, element = str(logical_type), to_internal(logical_type.fields[0], is_key)

    def convert_array(key: object) -> list[Any]:
        elements = _checks.expect(name, key, list, "a list")
        return list(_checks.each("element", repeat(element), elements))

    return convert_array


def _named(convert: Callable[[str, object], Any]) -> Callable[[LogicalType], Converter]:
    """Make a converter of what takes the type's text, for messages, and the value."""
    return lambda logical_type: partial(convert, str(logical_type))


def _integer_converter(bits: int) -> Callable[[LogicalType], Converter]:
    return lambda logical_type: _checks.integer_checker(str(logical_type), bits)


def _float_bits(name: str, key: object) -> int:
    number = _checks.expect_single(name, key)
    return int.from_bytes(_checks.pack_single(name, number), "little")


def _double_bits(name: str, key: object) -> int:
    number = _checks.expect(name, key, float, "a float")
    return int.from_bytes(struct.pack("<d", number), "little")


def _epoch_day(name: str, key: object) -> int:
    return _checks.check_date(name, key).toordinal() - _EPOCH_DAY


def _text_converter(logical_type: LogicalType) -> Converter:
    name, limit = str(logical_type), logical_type.length or 0

    def convert_text(key: object) -> bytes:
        text = key if type(key) is str else _checks.expect(name, key, str, "a str")
        try:
            data = text.encode()
        except UnicodeEncodeError:
            data = _java_utf8(text)
        if len(data) > limit:  # only then can there be more characters
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
        data = bytes(_checks.expect(name, key, (bytes, bytearray), "bytes"))
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
    # Raises where digits after the scale are lost, and where more than the precision remain.
    context = Context(
        prec=logical_type.precision,
        Emax=MAX_EMAX,
        Emin=MIN_EMIN,
        traps=[Inexact, InvalidOperation],
    )
    unit = Decimal((0, (1,), -scale))

    def convert_decimal(key: object) -> int:
        decimal = _checks.expect(name, key, Decimal, "a Decimal")
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
        value = _checks.check_time(name, key)
        check_fraction(value.microsecond, key)
        return nano_of_day(value) // 1_000_000

    return convert_time


def _timestamp_converter(
    since_epoch: Callable[[str, object], timedelta], logical_type: LogicalType
) -> Converter:
    name, check_fraction = str(logical_type), _fraction_checker(logical_type, at_most=6)

    def convert_timestamp(key: object) -> tuple[int, int]:
        since = since_epoch(name, key)
        check_fraction(since.microseconds, key)
        return since // _MILLISECOND, since.microseconds % 1_000 * 1_000

    return convert_timestamp


def _fraction_checker(logical_type: LogicalType, at_most: int) -> Callable[[int, object], None]:
    precision = logical_type.precision or 0
    digits = min(precision, at_most)
    step = 10 ** (6 - digits)
    # Up to 3 digits the bytes hold the milliseconds, whatever the precision says.
    kept = 3 if precision <= 3 else at_most
    advice = "Flink keeps no more of a key: drop the rest"
    if digits < kept:
        advice = (
            "Flink drops the rest where a CAST or a format does, and hashes it elsewhere: drop it "
            f"in the first case, and declare {logical_type.name}({kept}), which gives the same "
            "bytes, in the other"
        )

    def check_fraction(microseconds: int, key: object) -> None:
        if microseconds % step:
            raise InvalidValueError(
                f"key of type {logical_type} must have at most {digits} digits of a fraction of "
                f"a second, got {show(key)}; {advice}"
            )

    return check_fraction


_CONVERTERS: dict[str, Callable[[LogicalType], Converter]] = {
    "BOOLEAN": _named(_checks.expect_bool),
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
    "DATE": _named(_epoch_day),
    "TIME": _time_converter,
    "TIMESTAMP": partial(_timestamp_converter, _checks.local_since_epoch),
    "TIMESTAMP_LTZ": partial(_timestamp_converter, _checks.instant_since_epoch),
}
