"""Damaged savepoints: whatever byte is another or missing, no exception but a KeyGroupsError.

Four small savepoints of real bytes (`trimmed_savepoints.py`). Each byte of each file
is changed, and each file cut at each place; then all is read that there is. It may be refused,
by an error that names the file, or be the same, or another value; and it takes no more than ten
times the memory of the undamaged one. `pytest -rP` shows what came of how many.
"""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from support.bytes.damaged_files import damages
from support.bytes.trimmed_savepoints import HEADERS, SMALL

from keygroups.errors import KeyGroupsError
from keygroups.savepoint import Operator, read_savepoint

pytest.importorskip("cramjam", reason="one is compressed: the extra savepoint")

Record = Callable[[str, object], None]

SAMPLE = 197  # damages for one that the default suite takes; a prime, so all flips have a turn
MEASURED = 13  # damages for one whose memory is measured, which is slow; a prime too
FLOOR = 1 << 20  # bytes, below which ten times is not asked

PARTS: dict[str, Callable[[Operator], object]] = {
    "states": lambda operator: list(map(str, operator.states)),
    "subtasks": lambda operator: operator.subtasks,
    "entries": lambda operator: list(operator.entries()),
    "operator state": lambda operator: list(operator.operator_state()),
    "bytes": lambda operator: operator.key_group_bytes().weights,
    "key sizes": lambda operator: operator.key_sizes(2),
}


def read_all(folder: Path) -> dict[str, str]:
    """Return all that a savepoint says, or the error in the place of what it does not."""
    try:
        savepoint = read_savepoint(folder)
    except KeyGroupsError as error:
        return {"savepoint": refusal(folder, error)}
    found = {"str": str(savepoint)}
    for index, operator in enumerate(savepoint.operators):
        for name, part in PARTS.items():
            try:
                text = repr(part(operator))
            except KeyGroupsError as error:
                text = refusal(folder, error)
            found[f"{name} of operator {index}"] = text
    return found


def refusal(folder: Path, error: KeyGroupsError) -> str:
    """Return an error as text, which names the file, or at least the savepoint, in one line."""
    message = str(error)
    assert folder.name in message
    assert "\n" not in message
    assert len(message) < 1000
    return f"error: {message}"


def peak(folder: Path) -> tuple[int, dict[str, str]]:
    """Return the most memory that reading takes, and what was read."""
    tracemalloc.start()
    try:
        found = read_all(folder)
        return tracemalloc.get_traced_memory()[1], found
    finally:
        tracemalloc.stop()


@pytest.mark.long
@pytest.mark.parametrize("small", SMALL)
@pytest.mark.parametrize("every", [SAMPLE, pytest.param(1, marks=pytest.mark.slow)])
def test_damage(small: str, every: int, tmp_path: Path, record_property: Record) -> None:
    folder = SMALL[small](tmp_path / small)
    read_all(folder)  # so that what Python makes once is there
    most, intact = peak(folder)
    assert not [text for text in intact.values() if text.startswith("error")]
    limit = max(10 * most, FLOOR)
    counts: Counter[str] = Counter()
    highest, number = 0, 0
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        first = HEADERS.get(small, {}).get(path.name, 0)
        for what, damaged in damages(content, first):
            number += 1
            if number % every:
                continue
            path.write_bytes(damaged)
            try:
                memory, found = peak(folder) if number % MEASURED == 0 else (0, read_all(folder))
            except Exception as error:
                raise AssertionError(f"{path.name}, {what}: {error!r}") from error
            if memory > limit:  # a table of Python's own may have grown: 4 MB for interned names
                memory, found = peak(folder)
            assert memory <= limit, (path.name, what, memory, most)
            highest = max(highest, memory)
            if found == intact:
                counts["the same"] += 1
            elif any(text.startswith("error") for text in found.values()):
                counts["an error"] += 1
            else:
                counts["another value"] += 1
        path.write_bytes(content)
    shown = f"{dict(counts)}, memory at most {highest / most:.1f} times"
    record_property(small, shown)
    print(f"{small}, {sum(counts.values()):,} damages: {shown}")
    assert counts["an error"] > counts.total() / 4
    # Where sizes and checksums tell of damage few values are others, too few for a sample.
    assert counts["another value"] > 0 or (small, every) == ("snappy", SAMPLE)
