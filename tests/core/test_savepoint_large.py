"""Savepoints that are read piece by piece: memory does not grow with them."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from pathlib import Path

import pytest
from large_savepoints import KEY_GROUPS, wide_metadata, write

from keygroups import assign_to_key_group
from keygroups.savepoint import Operator, read_savepoint
from keygroups.savepoint._files import files as files_module
from keygroups.savepoint._metadata.reader import read_metadata
from keygroups.types import STRING

FORMS = ("canonical", "native", "rocksdb")


def large(folder: Path, form: str, entries: int) -> Operator:
    count = write(folder, form, entries)
    operator = read_savepoint(folder).operator("by-string")
    assert count == entries
    return operator


@pytest.mark.parametrize("form", FORMS)
def test_entries(form: str, tmp_path: Path) -> None:
    """As many as were written, in the key groups where Flink has them."""
    operator = large(tmp_path, form, 12_800)
    counts: Counter[int] = Counter()
    for entry in operator.entries():
        assert entry.value == 5
        counts[entry.key_group] += 1
        assert entry.key_group == assign_to_key_group(entry.key, KEY_GROUPS, STRING)
    assert counts.total() == 12_800
    part = sum(1 for _ in operator.entries(["count"], [5, 100]))
    assert part == counts[5] + counts[100]


@pytest.mark.parametrize("form", ["canonical", "native"])
def test_memory_is_flat(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the entries, hardly more memory; one piece is what is held."""
    monkeypatch.setattr(files_module, "CHUNK", 1 << 10)
    peaks = []
    for entries in (12_800, 12_800 * 4):
        operator = large(tmp_path / str(entries), form, entries)
        tracemalloc.start()
        try:
            assert sum(1 for _ in operator.entries()) == entries
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_wide_metadata() -> None:
    """A thousand subtasks, 128 key groups each."""
    metadata = read_metadata(wide_metadata(1_000), "_metadata")
    subtasks = [subtask for operator in metadata.operators for subtask in operator.subtasks]
    assert len(subtasks) == 1_000
    assert all(
        subtask.managed_keyed is not None and len(subtask.managed_keyed.key_groups) == 128
        for subtask in subtasks
    )
