"""A key that is looked up, and a state as a table and as a file, against reading all entries.

Run `python tests/benchmarks/bench_tables.py [entries]`; it prints CPU seconds, the best of three
of each, by the form of the savepoint. With `--memory` it prints the peak of a process that exports
a tenth of the entries and of one that exports all of them.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.extend(map(str, Path(__file__).parents[1].glob("support/**/")))

import large_savepoints

from keygroups.cli import main
from keygroups.savepoint import read_savepoint

ROUNDS, ENTRIES = 3, 1_024_000
FORMS = ("canonical", "native", "rocksdb")
GOAL = 50  # of how many times the look-up of a key may take a full read


def best(side: Callable[[], object]) -> float:
    """Return the best CPU time of some rounds."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        side()
        times.append(time.process_time() - start)
    return min(times)


def compare(form: str, entries: int) -> None:
    """Print what a form takes."""
    with TemporaryDirectory() as folder:
        path = Path(folder)
        large_savepoints.write(path, form, entries)
        operator = read_savepoint(path).operator("by-string")
        key = f"user-{entries // 2:09d}"
        assert operator.get(key, "count") == 5
        found = best(lambda: read_savepoint(path).operator("by-string").get(key, "count"))
        read = best(lambda: deque(operator.entries(), 0))
        table = best(operator.to_arrow)
        print(
            f"{form}: get {found * 1000:.1f} ms, all entries {read:.2f} s, {read / found:,.0f} "
            f"times as long (goal {GOAL}), as a table {table:.2f} s, {table / found:,.0f} times"
        )


def memory(form: str, entries: int) -> None:
    """Print the peak of processes that export more and more."""
    for number in (entries // 10, entries):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "savepoint"
            large_savepoints.write(path, form, number)
            run = [sys.executable, __file__, "--export", str(path), f"{folder}/count.parquet"]
            peak = subprocess.check_output(run, text=True).split()[-1]
            print(f"{form}, {number:,} entries: {peak} MB")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--export"]:
        assert main(["savepoint", sys.argv[2], "--state", "count", "--export", sys.argv[3]]) == 0
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
    else:
        numbers = [int(argument) for argument in sys.argv[1:] if argument.isdecimal()]
        large_savepoints.DISTINCT = ENTRIES * 100  # each key once
        for form in FORMS:
            (memory if "--memory" in sys.argv else compare)(form, *numbers or [ENTRIES])
