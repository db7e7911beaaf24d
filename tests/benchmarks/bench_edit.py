"""Edits of keyed state on one core, against a plain rewrite of the same savepoint.

Run `python tests/benchmarks/bench_edit.py`, with `--large` on ten million entries. A canonical
savepoint, String to Long with each key once, is written anew by `convert_to_canonical`, and then
with each edit: the entries in a second of CPU time are printed, their ratio to the plain rewrite,
and the most memory that the process had up to there.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.append(str(Path(__file__).parents[1]))

import pyarrow as pa
import pyarrow.compute as pc
from support.bytes import large_savepoints

from keygroups.savepoint import (
    DELETE,
    OperatorEditor,
    SavepointWriter,
    change_max_parallelism,
    convert_to_canonical,
)

ENTRIES, LARGE = 512_000, 10_000_000
KEYS = [f"user-{number:09d}" for number in range(0, 12_800, 128)]


def grown(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch's values, one more each."""
    columns = {"row": batch["row"], "value": pc.add(batch["value"], 1)}
    return pa.RecordBatch.from_pydict(columns)


def without_sevens(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of a batch whose key does not end with 7."""
    return batch.filter(pc.invert(pc.ends_with(batch["key"], "7"))).select(["row"])


EDITS: dict[str, Callable[[OperatorEditor], object]] = {
    "delete_keys": lambda operator: operator.delete_keys(KEYS),
    "rename_state": lambda operator: operator.rename_state("count", "number"),
    "set_ttl": lambda operator: operator.set_ttl("count", last_access=1_700_000_000_000),
    "map: as it was": lambda operator: operator.map_entries("count", lambda entry: entry.value),
    "map: some deleted": lambda operator: operator.map_entries(
        "count", lambda entry: DELETE if entry.key.endswith("7") else entry.value
    ),
    "map: all changed": lambda operator: operator.map_entries(
        "count", lambda entry: entry.value + 1
    ),
    "batches: some deleted": lambda operator: operator.map_batches("count", without_sevens),
    "batches: all changed": lambda operator: operator.map_batches("count", grown),
}


def edit(old: Path, new: Path, verbs: Callable[[OperatorEditor], object]) -> None:
    """Write a savepoint with an edit of its operator."""
    with SavepointWriter.from_existing_savepoint(old, new) as writer:
        verbs(writer.operator("by-string"))


def edit_in_one_pass(old: Path, new: Path) -> None:
    """Write a savepoint with another max parallelism, mapped entries and a renamed state."""
    with SavepointWriter.from_existing_savepoint(old, new) as writer:
        writer.set_max_parallelism(4096)
        EDITS["map: all changed"](writer.operator("by-string"))
        EDITS["rename_state"](writer.operator("by-string"))


def rate(entries: int, call: Callable[[], object]) -> float:
    """Return the number of entries that are written in a second of CPU time."""
    start = time.process_time()
    call()
    return entries / (time.process_time() - start)


def main() -> None:
    """Print a line for the plain rewrite, and one for each edit."""
    with TemporaryDirectory() as folder:
        old = Path(folder, "old")
        large_savepoints.DISTINCT = sys.maxsize  # each key once
        entries = large_savepoints.write(
            old, "canonical", LARGE if "--large" in sys.argv else ENTRIES
        )
        print(f"{entries:,} entries")
        plain = rate(entries, partial(convert_to_canonical, old, Path(folder, "plain")))
        print(f"{'convert_to_canonical':22} {plain:10,.0f} a second")
        edits: dict[str, Callable[[Path, Path], object]] = {
            name: partial(edit, verbs=verbs) for name, verbs in EDITS.items()
        }
        edits["change_max_parallelism"] = lambda old, new: change_max_parallelism(old, 4096, new)
        edits["the same, map, rename"] = edit_in_one_pass
        for number, (name, write) in enumerate(edits.items()):
            new = Path(folder, str(number))
            edited = rate(entries, partial(write, old, new))
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
            print(f"{name:22} {edited:10,.0f} a second, {edited / plain:.2f} times; {memory} MiB")


if __name__ == "__main__":
    main()
