"""The bytes of a row of Flink SQL, from its values: fixed part, then variable part."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column

from keygroups.spark._columns.portable import Portable


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


def join(backend: Portable, header: list[Column | None], values: list[Value]) -> Column:
    """Return the bytes of a row."""
    F = backend.F
    words = []
    for low, high in zip(header[::2], header[1::2]):
        low = F.lit(0).cast("bigint") if low is None else low
        words.append(low if high is None else low.bitwiseOR(F.shiftleft(high, 32)))
    fixed_size = 8 * (len(words) + len(values))
    offsets: list[Column] = []
    sizes: list[Column] = []
    for value in values:
        offsets.append(backend.total(sizes, fixed_size))
        if value.size is not None:
            sizes.append(F.coalesce(value.size, F.lit(0).cast("bigint")))
    located = list(zip(values, offsets))
    slots, tails = _in_place(backend, words, located)
    written = backend.write(backend.total(sizes, fixed_size), slots, tails)
    return _concat(backend, words, located) if written is None else written


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


def slot_of(backend: Portable, value: Value, offset: Column | None) -> Column:
    """Return the word in the slot of a value, 0 for null, where it is not inline."""
    F, word = backend.F, value.word
    if value.tail is not None:
        word = F.shiftleft(offset, 32).bitwiseOR(word)
    slot: Column = F.coalesce(word, F.lit(0).cast("bigint"))
    return slot
