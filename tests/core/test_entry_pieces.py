"""Entries in pieces, as a cluster moves them."""

from __future__ import annotations

import random
from typing import Any

import pytest

pa: Any = pytest.importorskip("pyarrow")

from support.inside.columns import SCHEMA, entry_batch, entry_pieces  # noqa: E402
from support.inside.savepoints import EncodedEntry  # noqa: E402

pieces_of, entries_of_pieces = entry_pieces.pieces_of, entry_pieces.entries_of_pieces
RANDOM = random.Random(7)
ENTRIES = [
    EncodedEntry(RANDOM.randrange(200), RANDOM.randrange(3), key, RANDOM.randbytes(size))
    for size, key in ((n % 7 * 40, b"k%d" % n if n else b"") for n in range(500))
]


@pytest.mark.parametrize("piece", [1, 500, 1 << 20])
@pytest.mark.parametrize("parallelism", [1, 3, 200])
def test_each_entry_is_in_a_piece_of_its_subtask(
    piece: int, parallelism: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them, whatever the size of pieces is, and with either of Arrow's types of bytes."""
    monkeypatch.setattr(entry_pieces, "_PIECE", piece)
    batches = [entry_batch(ENTRIES[:200]), entry_batch(ENTRIES[200:])]
    pieces = entry_pieces.pieces_of(batches, 200, parallelism)
    assert pieces.schema.types == [pa.int32(), *[pa.binary()] * 3]
    seen: list[tuple[Any, ...]] = []
    for row in range(len(pieces)):
        batch = pieces.slice(row, 1)
        entries = entry_pieces.entries_of_pieces(batch)
        key_groups = entries.column(0).to_pylist()
        assert batch.column(0).to_pylist() == key_groups[:1]
        assert len({group * parallelism // 200 for group in key_groups}) == 1
        seen += map(EncodedEntry, *(column.to_pylist() for column in entries.columns))
    # Those of a subtask are in the order in which they came.
    assert seen == sorted(ENTRIES, key=lambda entry: entry.key_group * parallelism // 200)
    whole = entry_pieces.entries_of_pieces(pieces)
    assert whole.schema == SCHEMA
    assert [*map(EncodedEntry, *(column.to_pylist() for column in whole.columns))] == seen
    large = pieces.cast(pa.schema([("key_group", pa.int32()), *_large_fields()]))
    assert entry_pieces.entries_of_pieces(large) == whole
    # Where it may, a piece has many entries.
    least = {1: 300, 500: 40, 1 << 20: parallelism}[piece]
    assert len(pieces) >= min(least, 120)
    assert len(pieces) <= {1: 500, 500: 400, 1 << 20: parallelism}[piece]


def _large_fields() -> list[tuple[str, Any]]:
    return [(name, pa.large_binary()) for name in ("heads", "keys", "values")]
