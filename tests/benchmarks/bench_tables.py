"""A key that is looked up, a state as a table and as a file, two savepoints compared.

Run `python tests/benchmarks/bench_tables.py [entries] [form ...]`. For each form of savepoint it
does all of them with a tenth of the entries and with all, each in a process of its own. It prints
CPU seconds, of the look-up the best of three, and the most memory that the process had; how many
times as long as the look-up a full read takes, and a comparison as a read of both; and how much
other work the machine had.

With `--memory [entries ...] [step ...]` each step, and those that have no line of their own here,
is done once with so many entries in canonical form, which a table was written as. The most MB of
each process should be the same for all numbers of entries.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.append(str(Path(__file__).parents[1]))

from support.bytes import large_savepoints

from keygroups import assign_to_key_group
from keygroups.cli import main
from keygroups.savepoint import (
    Operator,
    SavepointWriter,
    ValueStateDescriptor,
    change_max_parallelism,
    read_savepoint,
)
from keygroups.types import LONG, STRING

ROUNDS, ENTRIES = 3, 10_000_000
MEMORY, BATCH = (1_000_000, 20_000_000), 65_536
LATER = 1_000  # keys that a later savepoint has not, has besides, and has another value of
FORMS = ("canonical", "map", "longs", "native", "rocksdb")
GOAL, GOAL_OF_DIFF = 50, 5


def operator(path: str) -> Operator:
    return read_savepoint(path).operator("by-string")


def key_of(form: str, entries: int) -> tuple[object, object]:
    """Return a key in the middle, and what there is of it."""
    if form == "longs":  # whose key groups are not those of their keys, but for some
        each = entries // large_savepoints.KEY_GROUPS
        keys = range(entries // 2, entries)
        groups = large_savepoints.KEY_GROUPS
        key = next(key for key in keys if assign_to_key_group(key, groups, LONG) == key // each)
        return key, key % each
    if form == "map":
        item = {f"city-{number}": 5 for number in range(large_savepoints.USER_KEYS)}
        return f"user-{entries // large_savepoints.USER_KEYS // 2:09d}", item
    return f"user-{entries // 2:09d}", 5


def look_up(folder: str, form: str, entries: int) -> None:
    key, expected = key_of(form, entries)
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        states = operator(f"{folder}/old").get(key)
        times.append(time.process_time() - start)
        assert [*states.values()] == [expected]
    print(min(times))


def peak() -> int:
    """Return the most MB this process had; getrusage's are those of before it was started too."""
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) // 1024


def timed(side: Callable[[], object]) -> None:
    start = time.process_time()
    side()
    print(time.process_time() - start)


def read(folder: str, form: str, entries: int) -> None:
    timed(lambda: deque(operator(f"{folder}/old").entries(), 0))


def table(folder: str, form: str, entries: int) -> None:
    timed(lambda: deque(operator(f"{folder}/old").to_arrow_batch_reader(), 0))


def export(folder: str, form: str, entries: int) -> None:
    state = "byCity" if form == "map" else "count"
    arguments = ["savepoint", f"{folder}/old", "--state", state]
    timed(lambda: main([*arguments, "--export", f"{folder}/{state}.parquet"]))
    from pyarrow import parquet

    assert parquet.ParquetFile(f"{folder}/{state}.parquet").metadata.num_rows == entries


def diff(folder: str, form: str, entries: int) -> None:
    def compare() -> None:
        old, new = (read_savepoint(f"{folder}/{name}") for name in ("old", "new"))
        (of_operator,) = old.compare(new).operators
        (state,) = of_operator.states
        other = LATER * (large_savepoints.USER_KEYS if form == "map" else 1)
        counts = (state.equal, state.changed, state.only_here, state.only_there)
        assert counts == (entries - 2 * other, other, other, other)

    timed(compare)


def verify(folder: str, form: str, entries: int) -> None:
    timed(lambda: read_savepoint(f"{folder}/old").verify())


def key_sizes(folder: str, form: str, entries: int) -> None:
    timed(lambda: operator(f"{folder}/old").key_sizes(100))


def summary(folder: str, form: str, entries: int) -> None:
    timed(lambda: read_savepoint(f"{folder}/old").summary())


def itself(folder: str, form: str, entries: int) -> None:
    """Compare a savepoint with itself."""

    def compare() -> None:
        old = read_savepoint(f"{folder}/old")
        assert not old.compare(old).has_differences

    timed(compare)


def map_entries(folder: str, form: str, entries: int) -> None:
    def edit() -> None:
        with SavepointWriter.from_existing_savepoint(
            f"{folder}/old", f"{folder}/mapped"
        ) as writer:
            writer.operator("by-string").map_entries("count", lambda entry: entry.value + 1)

    timed(edit)


def delete_keys(folder: str, form: str, entries: int) -> None:
    def edit() -> None:
        with SavepointWriter.from_existing_savepoint(
            f"{folder}/old", f"{folder}/deleted"
        ) as writer:
            writer.operator("by-string").delete_keys(f"user-{key:09d}" for key in range(LATER))

    timed(edit)


def rekey(folder: str, form: str, entries: int) -> None:
    timed(lambda: change_max_parallelism(f"{folder}/old", 4_096, f"{folder}/rekeyed"))


def write_table(folder: str, form: str, entries: int) -> None:
    timed(lambda: write_rows(Path(folder, "written"), entries))


def write_rows(path: Path, entries: int) -> None:
    """Write so many rows as tables, whose keys come in no order of key groups."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, entries, BATCH):
            numbers = pa.array(range(start, min(start + BATCH, entries)), pa.int64())
            digits = pc.utf8_lpad(pc.cast(numbers, pa.string()), 9, "0")
            keys = pc.binary_join_element_wise("user-", digits, "")
            values = pa.array([5] * len(numbers), pa.int64())
            yield pa.RecordBatch.from_arrays([keys, values], schema.names)

    schema = pa.schema({"key": pa.string(), "value": pa.int64()})
    with SavepointWriter(path) as writer:
        states = [ValueStateDescriptor("count", LONG)]
        operator = writer.add_operator(
            "by-string", STRING, states, large_savepoints.KEY_GROUPS, 1, sort=True
        )
        operator.write_table("count", pa.RecordBatchReader.from_batches(schema, batches()))


STEPS = {
    step.__name__: step
    for step in (
        look_up,
        read,
        table,
        export,
        diff,
        verify,
        key_sizes,
        summary,
        itself,
        map_entries,
        delete_keys,
        rekey,
        write_table,
    )
}
COMPARED = ("look_up", "read", "table", "export", "diff")


def run(name: str, folder: str, form: str, entries: int) -> tuple[float, str]:
    """Return the CPU seconds of a step in a process of its own, and the most MB of that."""
    command = [sys.executable, __file__, "--step", name, folder, form, str(entries)]
    *_, took, megabytes = subprocess.check_output(command, text=True).split()
    return float(took), megabytes


def memory(numbers: list[int], steps: list[str]) -> None:
    """Print the most MB of each step, a column for each number of entries."""
    print(f"{'the most MB, CPU s':20}" + "".join(f"{number:>20,}" for number in numbers))
    with TemporaryDirectory() as root:
        folders = [Path(root, str(number)) for number in numbers]
        for folder, number in zip(folders, numbers):
            folder.mkdir()
            write_rows(folder / "old", number)
        for name in steps:
            cells = []
            for folder, number in zip(folders, numbers):
                took, megabytes = run(name, str(folder), "canonical", number)
                cells.append(f"{megabytes:>11}{took:9.1f}")
                for path in {*folder.iterdir()} - {folder / "old"}:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            print(f"{name:20}" + "".join(cells), flush=True)


def measure(form: str, entries: int) -> None:
    """Print what a form takes."""
    with TemporaryDirectory() as folder:
        old, new = Path(folder, "old"), Path(folder, "new")
        if form == "longs":
            entries = large_savepoints.write_longs(old, entries)
        else:
            entries = large_savepoints.write(old, form, entries)
            large_savepoints.write(new, form, entries, LATER)
        print(f"{form}, {entries:,} entries, load {os.getloadavg()[0]:.1f}")
        seconds = {}
        for name in COMPARED:
            if name == "diff" and form == "longs":
                continue
            took, megabytes = run(name, folder, form, entries)
            seconds[name] = took
            rate = "" if name == "look_up" else f", {entries / took:,.0f} entries a second"
            print(f"  {name:7}  {took:9.4f} s{rate}, peak {megabytes} MB", flush=True)
        fastest = min(seconds["read"], seconds["table"])
        print(f"  a full read takes {fastest / seconds['look_up']:,.0f} look-ups, goal {GOAL}")
        if "diff" in seconds:
            ratio = seconds["diff"] / seconds["read"] / 2
            print(f"  diff: {ratio:.2f} times a read of both, at most {GOAL_OF_DIFF}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--step"]:
        _, _, name, savepoints, form, count = sys.argv
        STEPS[name](savepoints, form, int(count))
        print(peak())
    else:
        numbers = [int(argument) for argument in sys.argv[1:] if argument.isdecimal()]
        if "--memory" in sys.argv:
            named = [name for name in STEPS if name in sys.argv]
            memory(numbers or [*MEMORY], named or [name for name in STEPS if name != "diff"])
            sys.exit()
        large_savepoints.DISTINCT = sys.maxsize  # each key once
        for form in [form for form in FORMS if form in sys.argv] or FORMS:
            for number in (numbers or [ENTRIES])[0] // 10, (numbers or [ENTRIES])[0]:
                measure(form, number)
