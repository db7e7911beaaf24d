"""The writer of savepoints: on one core, and Spark with two task threads against it.

Run `python tests/benchmarks/bench_savepoint_writer.py`. Both sides write the same entries, String
to Long: one computes the key groups, sorts by them and writes; the other does the same from a
DataFrame. They run in turn, round by round; the best wall-clock times and their ratio are printed,
then CPU seconds of all processes, and the ratio that two cores without other work would give, as
such work spoils the first. With `--python` it prints the CPU time of Spark's Python workers for an
entry, which is measured without Spark: for rows that become entries, and entries that become a
file. With `--memory` it prints the most memory that the driver and the
Python workers have while Spark writes, of ten times the entries too.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

sys.path.append(str(Path(__file__).parents[1]))

from bench_spark_savepoint import Took, measured, processes
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from support.flink.flink_oracle import local_session
from support.inside.columns import FileWriter, StateColumns, WideRows

from keygroups import arrays
from keygroups.savepoint import SavepointWriter, ValueStateDescriptor, read_savepoint
from keygroups.spark import KeyedState, ValueState, write_savepoint
from keygroups.types import LONG, STRING

ROUNDS, CORES, ENTRIES = 3, 2, 1_000_000
LIMIT, GOAL = 100_000, 1.6
SMALL, LARGE = 1_000_000, 10_000_000
KEY_GROUPS, PARALLELISM = 128, 4
BATCH = 10_000  # rows that Spark sends at once
COUNTS = KeyedState(None, "user", STRING, {"count": ValueState("n", LONG)})


def write_alone(path: Path, rows: list[tuple[str, int]]) -> None:
    """Write with the core."""
    states = [ValueStateDescriptor("count", LONG)]
    with SavepointWriter(path) as writer:
        operator = writer.add_operator("by-user", STRING, states, KEY_GROUPS, PARALLELISM)
        for user, n in sorted(rows, key=lambda row: operator.key_group(row[0])):
            operator.write("count", user, n)


def write_with_spark(path: Path, df: DataFrame) -> None:
    """Write with Spark."""
    write_savepoint(df, path, {"by-user": COUNTS}, KEY_GROUPS, PARALLELISM)


def users(spark: SparkSession, count: int) -> DataFrame:
    """Return so many rows, which Spark makes as it goes."""
    return spark.range(count).select(
        F.format_string("user-%09d", "id").alias("user"), F.col("id").alias("n")
    )


def compare(spark: SparkSession, folder: str) -> None:
    """Print how long both sides take."""
    df = users(spark, ENTRIES)
    rows = [(row["user"], row["n"]) for row in df.collect()]
    run = 0

    def times(write: Callable[[Path], None]) -> Took:
        nonlocal run
        run += 1
        path = Path(folder, str(run))
        found = measured(lambda: write(path))
        size = sum(part.bytes for part in read_savepoint(path).operator("by-user").subtasks)
        assert size > 32 * ENTRIES
        return found

    sides = (lambda path: write_alone(path, rows), lambda path: write_with_spark(path, df))
    times(sides[1])
    rounds = [tuple(map(times, sides)) for _ in range(ROUNDS)]
    (clock_alone, cpu_alone), (clock_spark, cpu_spark) = (
        tuple(min(one[side][unit] for one in rounds) for unit in (0, 1)) for side in (0, 1)
    )
    print(
        f"alone: {ENTRIES:,} entries; {ENTRIES / cpu_alone:,.0f} a second and core, limit "
        f"{LIMIT:,}\n{clock_alone:.2f} s alone, {clock_spark:.2f} s with Spark: "
        f"{clock_alone / clock_spark:.2f} times; CPU {cpu_alone:.2f} and {cpu_spark:.2f} s: "
        f"{CORES * cpu_alone / cpu_spark:.2f} times; goal {GOAL}",
        flush=True,
    )


def python_halves(folder: str) -> None:
    """Print what the two functions that Spark calls take for an entry."""
    keys = pa.array([f"user-{number:09d}" for number in range(ENTRIES)])
    key_groups = pa.array(arrays.assign_to_key_group(keys, KEY_GROUPS, STRING))
    columns = [key_groups, keys, pa.nulls(ENTRIES, pa.int64()), pa.array(range(ENTRIES))]
    rows = pa.RecordBatch.from_arrays(columns, [f"c{number}" for number in range(4)])
    with SavepointWriter(Path(folder, "alone")) as writer:
        states = [ValueStateDescriptor("count", LONG)]
        operator = writer.add_operator("by-user", STRING, states, KEY_GROUPS, 1)
        encode = WideRows(
            *("by-user", operator.task(0), STRING, False), (StateColumns("count", 3, LONG),)
        )
        batches = [rows.slice(start, BATCH) for start in range(0, ENTRIES, BATCH)]
        entries, encoding = timed(lambda: list(encode(batches)))
        order = [("key_group", "ascending"), ("key", "ascending")]
        in_order = pa.Table.from_batches(entries).sort_by(order).combine_chunks()
        write = FileWriter((operator.task(0),), frozenset())
        sorted_batches = in_order.to_batches(max_chunksize=BATCH)
        _, writing = timed(lambda: write.write(sorted_batches))
    print(f"CPU of Python for an entry: {encoding:.2f} us encoded, {writing:.2f} us written")


def timed(side: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result, and the least CPU time that it took, in microseconds an entry."""
    took = []
    for _ in range(ROUNDS):
        start = time.process_time()
        result = side()
        took.append(time.process_time() - start)
    return result, min(took) / ENTRIES * 1e6


class Watch(threading.Thread):
    """Looks at the memory of this process and of Spark's Python workers until it is over."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most: Counter[str] = Counter()
        self.is_over = threading.Event()

    def run(self) -> None:
        """Keep the most of each, in MB."""
        while not self.is_over.wait(0.2):
            for process in processes():
                try:
                    command = Path(f"/proc/{process}/cmdline").read_text()
                    status = Path(f"/proc/{process}/status").read_text()
                except OSError:  # it has ended
                    continue
                side = "driver" if process == os.getpid() else "worker"
                if side == "driver" or "pyspark.daemon" in command:
                    found = int(status.partition("VmRSS:")[2].split()[0]) // 1024
                    self.most[side] = max(self.most[side], found)


def memory(spark: SparkSession, folder: str) -> None:
    """Print the most memory of each side, for a million entries and for ten."""
    for count in (SMALL, LARGE):
        watch = Watch()
        watch.start()
        start = time.perf_counter()
        write_with_spark(Path(folder, str(count)), users(spark, count))
        watch.is_over.set()
        watch.join()
        most = ", ".join(f"{side} {found}" for side, found in sorted(watch.most.items()))
        took = time.perf_counter() - start
        print(f"peak memory in MB, {count:,} entries: {most} ({took:.0f} s)", flush=True)


def main() -> None:
    """Print the lines of what is asked for."""
    if "--python" in sys.argv:
        with TemporaryDirectory() as folder:
            python_halves(folder)
        return
    spark = local_session()
    print(f"Spark {spark.version}, Python {sys.version.split()[0]}")
    with TemporaryDirectory() as folder:
        (memory if "--memory" in sys.argv else compare)(spark, folder)
    spark.stop()


if __name__ == "__main__":
    main()
