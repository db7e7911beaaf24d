"""Entries that come in batches of any size, written with the same bytes."""

from __future__ import annotations

from io import BytesIO
from itertools import pairwise, product

import pytest

from keygroups import KeyGroupRange

pytest.importorskip("pyarrow")

from support.inside.columns import EntryFrames, entry_batch
from support.inside.savepoints import EncodedEntry, keyed_state_file

KeyedStateFile = keyed_state_file.KeyedStateFile

ROWS = [
    EncodedEntry(1, 0, b"k", b"a"),  # a list of three elements
    EncodedEntry(1, 0, b"k", b"b"),
    EncodedEntry(1, 0, b"k", b"c"),
    EncodedEntry(1, 0, b"m", b"d"),
    EncodedEntry(1, 1, b"m", b"e"),
    EncodedEntry(3, 0, b"m", b"f"),
    EncodedEntry(3, 0, b"m", b"g"),
]


def test_lists_whose_elements_are_in_several_batches() -> None:
    """However the rows are cut: a list goes on in the next batch, or in the ones after it."""
    whole = KeyedStateFile(expected := BytesIO(), "f", b"", 128, KeyGroupRange(0, 9), str)
    for entry in (
        EncodedEntry(1, 0, b"k", b"a,b,c"),
        *ROWS[3:5],
        EncodedEntry(3, 0, b"m", b"f,g"),
    ):
        whole.add(entry)
    whole.finish()
    for cuts in product((False, True), repeat=len(ROWS) - 1):
        bounds = [0, *(row for row, is_cut in enumerate(cuts, 1) if is_cut), len(ROWS)]
        file = KeyedStateFile(written := BytesIO(), "f", b"", 128, KeyGroupRange(0, 9), str)
        frames = EntryFrames(file, 1, {0})
        for start, end in pairwise(bounds):
            frames.add(entry_batch(ROWS[start:end]))
        frames.finish()
        file.finish()
        assert written.getvalue() == expected.getvalue()
        assert file.offsets == whole.offsets
