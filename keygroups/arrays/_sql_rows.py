"""BinaryRowData.hashCode of columns: murmur3 of rows' bytes, a word of all rows at a time.

The layout is that of `keygroups.binary_row`: 8-byte words of the header, a slot a field, and the
variable part. No row is put together; header and slots are words in arrays, and the hash goes on
over the variable parts, together for the rows in which they have the same size.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from mmh3 import hash as murmur3

from keygroups import types
from keygroups.arrays._kernels import MASK32, Array, Codes, Word, murmur_end, murmur_word
from keygroups.arrays._nested import fields_of
from keygroups.arrays._sql_fields import Container, Part, by_size, header_words

_SEED = 42
_LONG = 2_048  # bytes of a variable part that is worth a call of its own


def sql_row_codes(columns: list[pa.Array], key_type: types.SQL_ROW, rows: int) -> Codes:
    """Hash rows by their columns."""
    fields = fields_of(columns, key_type.fields, Container.KEY)
    words: list[Word] = []
    header = header_words(fields)
    for word in header:
        words += [0, 0] if word is None else _halves(word)
    lengths = np.full(rows, 8 * (len(header) + len(fields)), dtype=np.int64)
    for field in fields:
        low, high = _halves(field.slots)
        if field.part is not None:
            sizes = field.part.sizes
            high = np.where(sizes > 0, lengths, high).astype(np.uint32)
            lengths += sizes
        words += [low, high]
    spare = np.empty(rows, dtype=np.uint32)
    state: Word = _SEED
    for half in words:
        state = murmur_word(state, half, spare)
    if isinstance(state, int):  # of no fields
        state = np.full(rows, state, dtype=np.uint32)
    parts = [field.part for field in fields if field.part is not None]
    if not parts:
        return murmur_end(state, 4 * len(words), spare)
    return _hash_parts(state, parts, words, lengths)


def _hash_parts(state: Codes, parts: list[Part], words: list[Word], lengths: Array) -> Codes:
    """Let the state take the variable parts, and end it."""
    is_long = lengths > _LONG
    for part in parts:
        sizes = np.where(is_long, 0, part.sizes)
        for rows, room in by_size(sizes):
            # The longest first: so those that have a word more are always the first ones.
            chosen = rows[np.argsort(-sizes[rows], kind="stable")]
            state[chosen] = _hash_part(state[chosen], part.take(chosen, room), sizes[chosen] // 4)
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
