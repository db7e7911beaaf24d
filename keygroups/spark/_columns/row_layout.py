"""The bytes of a row of Flink SQL, from its values: fixed part, then variable part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import types as T

from keygroups.logical_types import LogicalType, row_header_size
from keygroups.spark._columns.portable import Portable

_KIND_BITS = 8
"""The bits of a row's kind, before those of its nulls."""
_MOST_TAILS = 6
"""Values with bytes in the variable part, at most, whose offsets are sums of the sizes before."""


@dataclass(frozen=True)
class Value:
    """A field's value. All columns are bigints or bytes, and null where there is nothing.

    Without a tail, `word` is the slot. With one, `word` is the lower half of the slot, whose
    upper half is the offset of the tail, `size` bytes, a multiple of 8, of the variable part;
    `inline` is the slot of a value that is too short for a tail. Both are made of `text`, which
    is that value's bytes.
    """

    word: Column
    tail: Column | None = None
    size: Column | None = None
    inline: Column | None = None
    text: Column | None = None


def laid_out(backend: Portable, field: Value | Column) -> Value:
    """Return a field's value; a column is the bytes of a text or binary, null where it is."""
    if isinstance(field, Value):
        return field
    F, data, most = backend.F, field, LogicalType.MAX_INLINE
    size = F.octet_length(data)
    padded = (size + 7).bitwiseAND(F.lit(-8))
    # The ends of slots of short texts, by their size: zeros, and 0x80 | size. The slot of b"ab" is
    # 61 62 00 00 00 00 00 82.
    ends = b"".join(
        (bytes(most - count) + bytes([0x80 | count])).ljust(most + 1) for count in range(most + 1)
    )
    place = F.shiftleft(size, 3) + 1
    end = F.call_function("substring", F.lit(ends), place, F.lit(most + 1) - size)
    return Value(
        word=size.cast("bigint"),
        tail=F.when(size > most, backend.joined(data, zeros(backend, padded - size))),
        size=F.when(size > most, padded.cast("bigint")),
        inline=F.when(size <= most, backend.joined(data, end)),
        text=data,
    )


def zeros(backend: Portable, count: Column) -> Column:
    """Return `count` zero bytes, at most 16, and none where it is negative.

    rpad() would be shorter, but gives text where a legacy setting says so, and counts characters.
    """
    F = backend.F
    return F.call_function("substring", F.lit(bytes(16)), F.lit(1), count)


def null_words(backend: Portable, nulls: Sequence[Column | None]) -> list[Column | None]:
    """Return the 4-byte words of a row's header, None for 0: the row kind +I, then null bits.

    `nulls` has what is true if a field is null, None for one that never is.
    """
    F = backend.F
    words: list[list[Column]] = [[] for _ in range(row_header_size(len(nulls)) // 4)]
    zero = F.lit(0).cast("bigint")
    for index, is_null in enumerate(nulls):
        if is_null is not None:
            word, bit = divmod(_KIND_BITS + index, 32)
            null = F.when(is_null, F.lit(1 << bit).cast("bigint"))
            words[word].append(null.otherwise(zero))
    return [backend.total(terms, 0) if terms else None for terms in words]


def join(
    backend: Portable, nulls: Sequence[Column | None], fields: Sequence[Value | Column]
) -> Column:
    """Return the bytes of a row; a field that is a column is the bytes of a text or binary.

    `nulls` is as in `null_words`.
    """
    F = backend.F
    header_size = row_header_size(len(fields))
    fixed_size = header_size + 8 * len(fields)
    tails = sum(not isinstance(field, Value) or field.tail is not None for field in fields)
    in_place = fixed_size // 8 + 2 * tails <= backend.most_calls
    if not in_place and tails > _MOST_TAILS:
        return _folded(backend, nulls, fields, fixed_size)
    words = []
    header = null_words(backend, nulls)
    for low, high in zip(header[::2], header[1::2]):
        low = F.lit(0).cast("bigint") if low is None else low
        words.append(low if high is None else low.bitwiseOR(F.shiftleft(high, 32)))
    values = [laid_out(backend, field) for field in fields]
    offsets: list[Column] = []
    sizes: list[Column] = []
    for value in values:
        offsets.append(backend.total(sizes, fixed_size))
        if value.size is not None:
            sizes.append(F.coalesce(value.size, F.lit(0).cast("bigint")))
    located = list(zip(values, offsets))
    if in_place:
        return backend.write(backend.total(sizes, fixed_size), *_in_place(backend, words, located))
    return _concat(backend, words, located)


def _in_place(
    backend: Portable, words: list[Column], located: list[tuple[Value, Column]]
) -> tuple[list[Column], list[tuple[Column, Column]]]:
    """Return the words of the fixed part, and (offset, bytes) to write, short texts over slots."""
    F = backend.F
    slots, tails = list(words), []
    for value, offset in located:
        slot, data = slot_of(backend, value, offset), value.tail
        if value.text is not None:
            assert value.size is not None
            data, is_inline = value.text, value.size.isNull()
            mark = F.shiftleft(value.word.bitwiseOR(F.lit(0x80).cast("bigint")), 56)
            mark = F.coalesce(mark, F.lit(0).cast("bigint"))
            offset = F.when(is_inline, F.lit(8 * len(slots)).cast("bigint")).otherwise(offset)
            slot = F.when(is_inline, mark).otherwise(slot)
        slots.append(slot)
        if data is not None:
            tails.append((offset, F.coalesce(data, F.lit(b""))))
    return slots, tails


def _concat(backend: Portable, words: list[Column], located: list[tuple[Value, Column]]) -> Column:
    F = backend.F
    words, pieces, tails = list(words), [], []
    for value, offset in located:
        slot = slot_of(backend, value, offset)
        if value.inline is None:
            words.append(slot)
        else:
            pieces += [backend.words(words)] if words else []
            pieces.append(F.coalesce(value.inline, backend.words([slot])))
            words = []
        if value.tail is not None:
            tails.append(F.coalesce(value.tail, F.lit(b"")))
    pieces += [backend.words(words)] if words else []
    return backend.joined(*pieces, *tails)


def _folded(
    backend: Portable,
    nulls: Sequence[Column | None],
    fields: Sequence[Value | Column],
    fixed_size: int,
) -> Column:
    """Join many values one after another: a sum of sizes for each would grow with their square.

    All that can be is in the lambda function, and so once for all fields.
    """
    F = backend.F
    # What is not texts alone is structs. What no field has is left out of them, what others have
    # is null, which is the same column for all.
    types = {
        "word": T.LongType(),
        "tail": T.BinaryType(),
        "null": T.BooleanType(),
        "text": T.BinaryType(),
    }
    values: list[dict[str, Column | None]] = [
        {
            "word": field.word,
            "tail": field.tail,
            "null": F.lit(False) if is_null is None else is_null,
        }
        if isinstance(field, Value)
        else {"text": field}
        for field, is_null in zip(fields, nulls)
    ]
    if not any(isinstance(field, Value) for field in fields):
        values = []
    used = {name for value in values for name, column in value.items() if column is not None}
    absent = {
        name: F.lit(None).cast(spark_type).alias(name)
        for name, spark_type in types.items()
        if name in used
    }

    def element(value: Mapping[str, Column | None]) -> Column:
        known = {name: column.alias(name) for name, column in value.items() if column is not None}
        return F.struct(*(absent | known).values())

    def step(data: Column, element: Column) -> Column:
        own = {name: element.getField(name) for name in absent} if values else {"text": element}
        parts, nulls = [], []
        if "word" in own:
            parts.append(Value(own["word"], own.get("tail")))
            nulls.append(own["null"])
        if "text" in own:
            parts.append(laid_out(backend, own["text"]))
            nulls.append(own["text"].isNull())
        word = F.coalesce(*(part.word for part in parts))
        tail = F.coalesce(*(part.tail for part in parts if part.tail is not None))
        offset = F.when(tail.isNotNull(), end_of_row(backend, data, F.lit(fixed_size)))
        offset = F.coalesce(offset, F.lit(0).cast("bigint"))
        bit = F.when(F.coalesce(*nulls), F.lit("1")).otherwise(F.lit("0"))
        bits = F.concat(data.getField("bits"), bit).alias("bits")
        return appended(backend, data, Value(word, tail, inline=parts[-1].inline), offset, bits)

    def finish(data: Column) -> Column:
        # The bits of a word are digits, the lowest first.
        digits = (F.substring(data.getField("bits"), 1 + at, 64) for at in range(0, bits_size, 64))
        words = [F.conv(F.reverse(of_word), 2, -10).cast("bigint") for of_word in digits]
        pieces = (data.getField(name) for name in ("slots", "tails"))
        return backend.joined(backend.words(words), *pieces)

    bits_size = 8 * row_header_size(len(fields))
    bits = F.lit("0" * _KIND_BITS).alias("bits")  # the row kind +I is zeros
    start = F.struct(F.lit(b"").alias("slots"), F.lit(b"").alias("tails"), bits)
    elements = list(map(element, values)) if values else fields
    return F.aggregate(F.array(*elements), start, step, finish)


def end_of_row(backend: Portable, data: Column, fixed_size: Column) -> Column:
    """Return the offset of the next tail: behind a fixed part and the tails so far."""
    size = fixed_size + backend.F.octet_length(data.getField("tails"))
    return size.cast("bigint")


def appended(
    backend: Portable,
    data: Column,
    field: Value | Column,
    offset: Column,
    *others: Column,
    slot_size: int = 8,
) -> Column:
    """Return a struct of slots and tails with those of a value more, its tail at an offset.

    `others` are more fields of it.
    """
    F, value = backend.F, laid_out(backend, field)
    slot = low_bytes(backend, backend.words([slot_of(backend, value, offset)]), slot_size)
    slot = slot if value.inline is None else F.coalesce(value.inline, slot)
    more = [] if value.tail is None else [F.coalesce(value.tail, F.lit(b""))]
    return F.struct(
        backend.joined(data.getField("slots"), slot).alias("slots"),
        backend.joined(data.getField("tails"), *more).alias("tails"),
        *others,
    )


def low_bytes(backend: Portable, word: Column, size: int) -> Column:
    """Return the first bytes of a word of 8."""
    F = backend.F
    return word if size == 8 else F.call_function("substring", word, F.lit(1), F.lit(size))


def slot_of(backend: Portable, value: Value, offset: Column | None) -> Column:
    """Return the word in the slot of a value, 0 for null, where it is not inline."""
    F, word = backend.F, value.word
    if value.tail is not None:
        word = F.shiftleft(offset, 32).bitwiseOR(word)
    return F.coalesce(word, F.lit(0).cast("bigint"))
