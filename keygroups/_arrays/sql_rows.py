"""BinaryRowData.hashCode of columns: murmur3 of rows' bytes, a word of all rows at a time.

The layout is that of `keygroups.binary_row`: 8-byte words of the header, a slot a field, and the
variable part. No row is put together; header and slots are words in arrays, and the hash goes on
over the variable parts, together for the rows in which they have the same size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from mmh3 import hash as murmur3

from keygroups import types
from keygroups._arrays.dates import seconds_and_nanos
from keygroups._arrays.kernels import MASK32, Array, Codes, Nulls, Word, murmur_end, murmur_word
from keygroups._arrays.rows import (
    RowError,
    check_type,
    is_timestamp,
    limbs,
    null_rows,
    numbers,
    on_values,
    plain,
    refuse,
)
from keygroups._arrays.scalars import check_range, doubles, is_text, single_bits, singles
from keygroups._arrays.text import padded, text_bytes
from keygroups._checks import show
from keygroups.errors import InvalidValueError, UnsupportedKeyTypeError
from keygroups.logical_types import LogicalType

_SEED = 42
_LONG = 2_048  # bytes of a variable part that is worth a call of its own
_INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_TEXT, _BINARY = ("CHAR", "VARCHAR"), ("BINARY", "VARBINARY")


@dataclass(frozen=True)
class _Part:
    """What a field has in the variable part: `sizes` are the bytes of each row, of 8 a multiple.

    `take` gives those of some rows with zeros behind, up to a size: a matrix of 32-bit words.
    """

    sizes: Array
    take: Callable[[Array, int], Codes]


@dataclass(frozen=True)
class _Field:
    """The slots of a field, 64-bit words without the offset of the variable part, and that."""

    slots: Array
    nulls: Nulls | None
    part: _Part | None = None


def sql_row_codes(columns: list[pa.Array], key_type: types.SQL_ROW, rows: int) -> Codes:
    """Hash rows by their columns."""
    fields = []
    for index, (column, logical_type) in enumerate(zip(columns, key_type.fields)):
        try:
            fields.append(_field(plain(column), logical_type))
        except RowError as error:
            raise error.at(error.row, f"field {index}: ") from None
    words: list[Word] = []
    header = (len(fields) + 63 + 8) // 64
    for null_bits in _null_bits(fields, header, rows):
        words += [0, 0] if null_bits is None else _halves(null_bits)
    lengths = np.full(rows, 8 * (header + len(fields)), dtype=np.int64)
    for field in fields:
        low, high = _halves(field.slots)
        if field.part is not None:
            sizes = field.part.sizes
            high = np.where(sizes > 0, lengths, high).astype(np.uint32)
            lengths += sizes
        words += [low, high]
    spare = np.empty(rows, dtype=np.uint32)
    state: Word = _SEED
    for word in words:
        state = murmur_word(state, word, spare)
    if isinstance(state, int):  # of no fields
        state = np.full(rows, state, dtype=np.uint32)
    parts = [field.part for field in fields if field.part is not None]
    if not parts:
        return murmur_end(state, 4 * len(words), spare)
    return _hash_parts(state, parts, words, lengths)


def _hash_parts(state: Codes, parts: list[_Part], words: list[Word], lengths: Array) -> Codes:
    """Let the state take the variable parts, and end it."""
    is_long = lengths > _LONG
    for part in parts:
        sizes = np.where(is_long, 0, part.sizes)
        room, most = 8, int(sizes.max())
        while room // 2 < most:
            chosen = np.flatnonzero((sizes > room // 2) & (sizes <= room))
            if chosen.size:
                # The longest first: so those that have a word more are always the first ones.
                chosen = chosen[np.argsort(-sizes[chosen], kind="stable")]
                state[chosen] = _hash_part(
                    state[chosen], part.take(chosen, room), sizes[chosen] // 4
                )
            room *= 2
    spare = np.empty(len(state), dtype=np.uint32)
    codes = murmur_end(state, lengths.astype(np.uint32), spare)
    for row in np.flatnonzero(is_long).tolist():
        data = b"".join(_word_bytes(word, row) for word in words)
        for part in parts:
            size = int(part.sizes[row])
            data += part.take(np.array([row]), size).tobytes() if size else b""
        codes[row] = murmur3(data, _SEED) & MASK32
    return codes


def _hash_part(state: Codes, part: Codes, counts: Array) -> Codes:
    """Let the state take as many words of each row as it has, which are ever fewer."""
    columns = np.ascontiguousarray(part.T)
    spare = np.empty(len(state), dtype=np.uint32)
    fewest = int(counts[-1])
    for index in range(int(counts[0])):
        taken = len(counts)
        if index >= fewest:
            taken -= int(np.searchsorted(counts[::-1], index, side="right"))
        mixed = murmur_word(state[:taken], columns[index, :taken], spare[:taken])
        if taken == len(state):
            assert not isinstance(mixed, int)
            state = mixed
        else:
            state[:taken] = mixed
    return state


def _word_bytes(word: Word, row: int) -> bytes:
    return (word if isinstance(word, int) else int(word[row])).to_bytes(4, "little")


def _halves(words: Array) -> list[Word]:
    halves = np.ascontiguousarray(words).view(np.uint32)
    return [halves[::2], halves[1::2]]


def _null_bits(fields: list[_Field], header: int, rows: int) -> list[Array | None]:
    """Return the words of the header, None where it is 0: the row kind +I, then the null bits."""
    found: list[Array | None] = [None] * header
    for index, field in enumerate(fields):
        if field.nulls is not None:
            word, bit = divmod(8 + index, 64)
            bits = field.nulls.astype(np.uint64) << np.uint64(bit)
            before = found[word]
            found[word] = bits if before is None else before | bits
    return found


def _field(array: pa.Array, logical_type: LogicalType) -> _Field:
    what, name = f"{logical_type} of SQL_ROW", logical_type.name
    rows = len(array)
    if pa.types.is_null(array.type):
        nulls: Nulls | None = np.ones(rows, dtype=np.bool_)
        array = pa.nulls(rows, pa.int64())
    else:
        nulls = null_rows(array)
    if nulls is not None and not logical_type.nullable:
        message = f"key of type {logical_type} must not be None"
        raise RowError(int(np.argmax(nulls)), InvalidValueError(message))
    if name in (*_TEXT, *_BINARY):
        return _text(array, nulls, logical_type, what)
    if logical_type.reserved:
        return _long_form(array, nulls, logical_type, what)
    slots = np.zeros(rows, dtype=np.uint64)
    chosen = slice(None) if nulls is None else np.flatnonzero(~nulls)
    values = array if nulls is None else array.drop_null()
    if len(values):
        try:
            slots[chosen] = _fixed(values, logical_type, what)
        except RowError as error:
            row = error.row if nulls is None else int(np.flatnonzero(~nulls)[error.row])
            raise error.at(row) from None
    return _Field(slots, nulls)


def _fixed(array: pa.Array, logical_type: LogicalType, what: str) -> Array:
    """Return the slots of values without nulls that fit a slot always."""
    name = logical_type.name
    if name == "BOOLEAN":
        check_type(pa.types.is_boolean(array.type), what, "booleans", array)
        flags: Array = array.to_numpy(zero_copy_only=False)
        return flags.astype(np.uint64)
    if name in _INTEGERS:
        bits = _INTEGERS[name]
        values = check_range(array, str(logical_type), bits).astype(np.int64).view(np.uint64)
        return values & np.uint64(2**bits - 1)
    if name == "FLOAT":
        return single_bits(singles(array, what, raw=True), raw=True).astype(np.uint64)
    if name == "DOUBLE":
        return doubles(array, what).view(np.uint64)
    if name == "DATE":
        check_type(pa.types.is_date32(array.type), what, "dates (date32)", array)
        return numbers(array).view(np.uint32).astype(np.uint64)
    if name == "DECIMAL":
        unscaled: Array = _unscaled(array, logical_type, what)[:, 0]
        return unscaled
    if name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        millis, _ = _millis_and_nanos(array, logical_type, what)
        return millis.view(np.uint64)
    raise UnsupportedKeyTypeError(f"{what} is not hashed in arrays")


def _unscaled(array: pa.Array, logical_type: LogicalType, what: str) -> Array:
    """Return the unscaled values of decimals at the scale of their type, in two words."""
    check_type(pa.types.is_decimal(array.type), what, "decimals", array)
    precision, scale = logical_type.precision or 0, logical_type.scale or 0
    wanted = pa.decimal128(precision, scale)
    try:
        found: Array = limbs(array.cast(wanted))[0]
    except pa.ArrowInvalid:
        pass
    else:
        return found
    first, last = 0, len(array)  # the first that does not fit is at or behind first
    while last - first > 1:
        middle = (first + last) // 2
        try:
            array.slice(first, middle - first).cast(wanted)
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
    array: pa.Array, logical_type: LogicalType, what: str
) -> tuple[Array, Array]:
    """Return the epoch milliseconds of timestamps and the nanoseconds above them."""
    zoned = logical_type.name == "TIMESTAMP_LTZ"
    takes = "timestamps with a zone" if zoned else "timestamps without a zone"
    check_type(is_timestamp(array, zoned), what, takes, array)
    seconds, nanos = seconds_and_nanos(array, f"key of type {logical_type}")
    precision = logical_type.precision or 0
    message = (
        f"key of type {logical_type} must have at most {precision} digits of a fraction of a "
        "second"
    )
    refuse(nanos % 10 ** (9 - precision) != 0, numbers(array), message)
    millis = nanos // 1_000_000
    return seconds * 1_000 + millis, nanos - millis * 1_000_000


def _long_form(
    array: pa.Array, nulls: Nulls | None, logical_type: LogicalType, what: str
) -> _Field:
    """Return the field of a type that takes room in the variable part even where it is null."""
    rows, room = len(array), logical_type.reserved
    slots = np.zeros(rows, dtype=np.uint64)
    data = np.zeros((rows, room), dtype=np.uint8)

    def fill(values: pa.Array) -> Codes:
        chosen = slice(None) if nulls is None else np.flatnonzero(~nulls)
        if logical_type.name == "DECIMAL":
            slots[chosen], data[chosen] = _big_endian(_unscaled(values, logical_type, what))
        else:
            millis, slots[chosen] = _millis_and_nanos(values, logical_type, what)
            data[chosen] = millis[:, None].view(np.uint8)
        return np.zeros(len(values), dtype=np.uint32)

    on_values(array, nulls, fill)
    sizes = np.full(rows, room, dtype=np.int64)
    return _Field(slots, nulls, _Part(sizes, lambda chosen, _: data[chosen].view(np.uint32)))


def _big_endian(words: Array) -> tuple[Array, Array]:
    """Return what BigInteger.toByteArray gives: the sizes, and the bytes with zeros behind."""
    octets = words[:, ::-1].astype(">u8").view(np.uint8)
    spare = np.where(octets[:, :1] > 127, np.uint8(255), np.uint8(0))
    # A byte is spare if all before are and the sign is still that of the next one.
    same = (octets == spare)[:, :-1] & ((octets[:, 1:] > 127) == (spare > 127))
    leading = np.logical_and.accumulate(same, axis=1).sum(axis=1)
    wide = np.concatenate([octets, np.zeros_like(octets)], axis=1)
    found = np.take_along_axis(wide, leading[:, None] + np.arange(16), axis=1)
    return 16 - leading, found


def _text(array: pa.Array, nulls: Nulls | None, logical_type: LogicalType, what: str) -> _Field:
    """Return the field of text or bytes; what is shorter than declared is taken as it is."""
    is_binary = logical_type.name in _BINARY
    if nulls is not None and nulls.all():
        array = pa.nulls(len(array), pa.binary() if is_binary else pa.string())
    if is_binary:
        right = pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type)
        check_type(right, what, "binaries", array)
    else:
        check_type(is_text(array), what, "text", array)
    if nulls is not None:
        array = array.fill_null(b"" if is_binary else "")
    _, offsets = text_bytes(array)
    lengths = np.diff(offsets)
    limit = logical_type.length or 0
    if lengths.max(initial=0) > limit:
        counts, unit = lengths, "bytes"
        if not is_binary:
            counts, unit = pc.utf8_length(array).to_numpy(zero_copy_only=False), "characters"
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

    return _Field(slots, nulls, _Part(sizes, take))


def _padded_bytes(array: pa.Array, chosen: Array, size: int) -> Array:
    """Return the bytes of some rows with zeros behind, as a matrix."""
    data, offsets = text_bytes(array.take(pa.array(chosen)))
    return padded(data, offsets, size, pc.ascii_rpad)
