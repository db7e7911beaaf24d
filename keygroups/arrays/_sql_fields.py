"""The fields of Flink SQL in arrays: their slots, and their bytes in a row's variable part.

The layout is that of `keygroups.binary_row`. A ROW or ARRAY is in `keygroups.arrays._sql_rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from keygroups._checks import show
from keygroups.arrays._kernels import Array, Codes, Nulls
from keygroups.arrays._rows import (
    RowError,
    Rows,
    bools,
    check_type,
    for_values,
    from_numpy,
    is_timestamp,
    limbs,
    null_rows,
    numbers,
    refuse,
)
from keygroups.arrays._scalars import (
    check_range,
    double_bits,
    doubles,
    is_text,
    nano_of_day,
    seconds_and_nanos,
    single_bits,
    singles,
)
from keygroups.arrays._text import check_utf8, padded, text_bytes
from keygroups.errors import InvalidValueError
from keygroups.logical_types import LogicalType, row_header_size

_INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_TEXT, _BINARY = ("CHAR", "VARCHAR"), ("BINARY", "VARBINARY")


class Container(Enum):
    """The container of a value; it decides on reserved room and on the bits of a NaN."""

    KEY = 1
    ROW = 2
    ARRAY = 3


@dataclass(frozen=True)
class VariablePart:
    """The bytes of a field in the variable part; `sizes`, one a row, are multiples of 8.

    `take(rows, size)` returns them as a matrix of 32-bit words, `size` bytes a row; a row's words
    beyond its own size mean nothing.
    """

    sizes: Array
    take: Callable[[Array, int], Codes]


@dataclass(frozen=True)
class FieldSlots:
    """The slots of a field, 64-bit words that lack the offset of its `part`, if it has one."""

    slots: Array
    nulls: Nulls | None
    part: VariablePart | None = None


def by_size(sizes: Array) -> Iterator[tuple[Array, int]]:
    """Yield rows by the least room of 8, 16, 32, ... bytes for their parts, and the room."""
    room, most = 8, int(sizes.max(initial=0))
    while room // 2 < most:
        chosen = np.flatnonzero((sizes > room // 2) & (sizes <= room))
        if chosen.size:
            yield chosen, room
        room *= 2


def header_words(fields: list[FieldSlots]) -> list[Array | None]:
    """Return the header in 64-bit words, None for a 0: the row kind +I, then the null bits."""
    words: list[Array | None] = [None] * (row_header_size(len(fields)) // 8)
    for index, field in enumerate(fields):
        if field.nulls is not None:
            word, bit = divmod(8 + index, 64)
            bits = field.nulls.astype(np.uint64) << np.uint64(bit)
            before = words[word]
            words[word] = bits if before is None else before | bits
    return words


def check_nulls(array: pa.Array, logical_type: LogicalType) -> tuple[pa.Array, Nulls | None]:
    """Return values and the mask of nulls, if the type allows any; Arrow's null type is int64."""
    nulls = null_rows(array)
    if pa.types.is_null(array.type):
        array, nulls = pa.nulls(len(array), pa.int64()), np.ones(len(array), dtype=np.bool_)
    if nulls is not None and not logical_type.nullable:
        message = f"key of type {logical_type} must not be None"
        raise RowError(int(np.argmax(nulls)), InvalidValueError(message))
    return array, nulls


def scalar_field(array: pa.Array, logical_type: LogicalType, container: Container) -> FieldSlots:
    """Return the field of values of any type but ROW and ARRAY."""
    array, nulls = check_nulls(array, logical_type)
    type_name = f"{logical_type} of SQL_ROW"
    if logical_type.name in (*_TEXT, *_BINARY):
        return _text(array, nulls, logical_type, type_name)
    if logical_type.reserved:
        return _long_form(array, nulls, logical_type, type_name, container)
    slots = np.zeros(len(array), dtype=np.uint64)

    def fill(values: pa.Array, chosen: Rows) -> None:
        slots[chosen] = _fixed(values, logical_type, type_name, container)

    for_values(array, nulls, fill)
    return FieldSlots(slots, nulls)


def _fixed(
    array: pa.Array, logical_type: LogicalType, type_name: str, container: Container
) -> Array:
    """Return the slots of values, none of them null, of a type that always fits a slot."""
    # The writer of an ARRAY canonicalizes NaN, that of a row does not.
    name, raw = logical_type.name, container is not Container.ARRAY
    if name == "BOOLEAN":
        check_type(pa.types.is_boolean(array.type), type_name, "booleans", array)
        flags = bools(array)
        return flags.astype(np.uint64)
    if name in _INTEGERS:
        bits = _INTEGERS[name]
        values = check_range(array, str(logical_type), bits).astype(np.int64).view(np.uint64)
        return values & np.uint64(2**bits - 1)
    if name == "FLOAT":
        return single_bits(singles(array, type_name, raw), raw).astype(np.uint64)
    if name == "DOUBLE":
        return double_bits(doubles(array, type_name), raw)
    if name == "DATE":
        check_type(pa.types.is_date32(array.type), type_name, "dates (date32)", array)
        return numbers(array).view(np.uint32).astype(np.uint64)
    if name == "DECIMAL":
        unscaled: Array = _unscaled(array, logical_type, type_name)[:, 0]
        return unscaled
    if name == "TIME":
        return _millis_of_day(array, logical_type, type_name).view(np.uint64)
    millis, _ = _millis_and_nanos(array, logical_type, type_name)
    return millis.view(np.uint64)


def _unscaled(array: pa.Array, logical_type: LogicalType, type_name: str) -> Array:
    """Return the unscaled values of decimals at the scale of the SQL type, in two words."""
    check_type(pa.types.is_decimal(array.type), type_name, "decimals", array)
    precision, scale = logical_type.precision or 0, logical_type.scale or 0
    wanted = pa.decimal128(precision, scale)

    def fitted(decimals: pa.Array) -> pa.Array:
        if decimals.type != wanted:
            return decimals.cast(wanted)
        # In some Arrows a sum exceeds its type's digits, and a cast to the same type is no check.
        decimals.validate(full=True)
        return decimals

    try:
        unscaled: Array = limbs(fitted(array))[0]
    except pa.ArrowInvalid:
        pass
    else:
        return unscaled
    first, last = 0, len(array)  # The first row that does not fit is in [first, last).
    while last - first > 1:
        middle = (first + last) // 2
        try:
            fitted(array.slice(first, middle - first))
        except pa.ArrowInvalid:
            last = middle
        else:
            first = middle
    message = (
        f"key of type {logical_type} must have at most {precision} digits, {scale} of them after "
        f"the point, got {show(array[first].as_py())}"
    )
    raise RowError(first, InvalidValueError(message))


def _millis_and_nanos(
    array: pa.Array, logical_type: LogicalType, type_name: str
) -> tuple[Array, Array]:
    """Return the epoch milliseconds of timestamps and the nanoseconds above them."""
    zoned = logical_type.name == "TIMESTAMP_LTZ"
    takes = "timestamps with a zone" if zoned else "timestamps without a zone"
    check_type(is_timestamp(array, zoned), type_name, takes, array)
    seconds, nanos = seconds_and_nanos(array, f"key of type {logical_type}")
    _check_fraction(array, nanos, logical_type, logical_type.precision or 0)
    millis = nanos // 1_000_000
    return seconds * 1_000 + millis, nanos - millis * 1_000_000


def _millis_of_day(array: pa.Array, logical_type: LogicalType, type_name: str) -> Array:
    """Return times in milliseconds since midnight, which Flink keeps for a TIME(p) of any p."""
    nanos = nano_of_day(array, type_name, f"key of type {logical_type}")
    _check_fraction(array, nanos, logical_type, min(logical_type.precision or 0, 3))
    return nanos // 1_000_000


def _check_fraction(array: pa.Array, nanos: Array, logical_type: LogicalType, digits: int) -> None:
    message = (
        f"key of type {logical_type} must have at most {digits} digits of a fraction of a second"
    )
    refuse(nanos % 10 ** (9 - digits) != 0, numbers(array), message)


def _long_form(
    array: pa.Array,
    nulls: Nulls | None,
    logical_type: LogicalType,
    type_name: str,
    container: Container,
) -> FieldSlots:
    """Return the field of a type with room in the variable part; a null has it too in a key."""
    rows, room = len(array), logical_type.reserved
    slots = np.zeros(rows, dtype=np.uint64)
    data = np.zeros((rows, room), dtype=np.uint8)

    def fill(values: pa.Array, chosen: Rows) -> None:
        if logical_type.name == "DECIMAL":
            slots[chosen], data[chosen] = _big_endian(_unscaled(values, logical_type, type_name))
        else:
            millis, slots[chosen] = _millis_and_nanos(values, logical_type, type_name)
            data[chosen] = millis[:, None].view(np.uint8)

    for_values(array, nulls, fill)
    sizes = np.full(rows, room, dtype=np.int64)
    if nulls is not None and container is not Container.KEY:
        sizes[nulls] = 0
    return FieldSlots(
        slots, nulls, VariablePart(sizes, lambda chosen, _: data[chosen].view(np.uint32))
    )


def _big_endian(words: Array) -> tuple[Array, Array]:
    """Return BigInteger.toByteArray of two-word numbers: the sizes, and 16 bytes, zeros last.

    300 is 14 bytes 00 and 01 2C: the size is 2, the bytes 01 2C and 14 zeros. 200 keeps one of its
    zeros, 00 C8, as C8 alone would be negative.
    """
    octets = words[:, ::-1].astype(">u8").view(np.uint8)
    signs = octets.view(np.int8) < 0
    spare = np.where(signs[:, :1], np.uint8(255), np.uint8(0))
    # A leading 00 or FF is spare if the byte after it has the sign bit of the number.
    same = (octets == spare)[:, :-1] & (signs[:, 1:] == signs[:, :1])
    leading = np.logical_and.accumulate(same, axis=1).sum(axis=1)
    wide = np.concatenate([octets, np.zeros_like(octets)], axis=1)
    shifted = np.take_along_axis(wide, leading[:, None] + np.arange(16), axis=1)
    return 16 - leading, shifted


def _text(
    array: pa.Array, nulls: Nulls | None, logical_type: LogicalType, type_name: str
) -> FieldSlots:
    """Return the field of text or bytes; CHAR(n) and BINARY(n) are not padded to n."""
    is_binary = logical_type.name in _BINARY
    if nulls is not None and nulls.all():
        array = pa.nulls(len(array), pa.binary() if is_binary else pa.string())
    if is_binary:
        right = pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type)
        check_type(right, type_name, "binaries", array)
    else:
        check_type(is_text(array), type_name, "text", array)
    if nulls is not None:
        array = array.fill_null("")
    if not is_binary:
        check_utf8(array, f"key of type {logical_type}")
    _, offsets = text_bytes(array)
    lengths = np.diff(offsets)
    limit = logical_type.length or 0
    if lengths.max(initial=0) > limit:
        counts, unit = lengths, "bytes"
        if not is_binary:
            counts, unit = numbers(pc.utf8_length(array)), "characters"
        refuse(
            counts > limit, counts, f"key of type {logical_type} must have at most {limit} {unit}"
        )
    inline = lengths <= LogicalType.MAX_INLINE
    slots = lengths.astype(np.uint64)
    if inline.any():
        chosen = np.flatnonzero(inline)
        marks = (lengths[chosen] | 0x80).astype(np.uint64) << np.uint64(56)
        slots[chosen] = _padded_bytes(array, chosen, 8).view(np.uint64)[:, 0] | marks
    if nulls is not None:
        slots[nulls] = 0
    sizes = np.where(inline, 0, (lengths + 7) & -8)

    def take(chosen: Array, size: int) -> Codes:
        return _padded_bytes(array, chosen, size).view(np.uint32)

    return FieldSlots(slots, nulls, VariablePart(sizes, take))


def _padded_bytes(array: pa.Array, chosen: Array, size: int) -> Array:
    """Return the bytes of chosen rows as a matrix of `size` columns, zeros last."""
    data, offsets = text_bytes(array.take(from_numpy(chosen)))
    return padded(data, offsets, size, pc.ascii_rpad)
