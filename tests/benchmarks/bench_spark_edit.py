"""A savepoint edited by Spark with two task threads, against the editor alone on one core.

Run `python tests/benchmarks/bench_spark_edit.py [ENTRIES]`. Both sides make the same edits of a
savepoint of so many entries, String to Long, in turn, round by round: keys are deleted, and all
entries mapped. The best wall-clock times and their ratio are printed, then CPU seconds of all
processes, and the ratio that two cores without other work would give, as such work spoils the
first; then the same of rows that go from the savepoint through Spark into another.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.append(str(Path(__file__).parents[1]))

from bench_savepoint_writer import users, write_with_spark
from bench_spark_savepoint import measured
from support.flink.flink_oracle import local_session

from keygroups.savepoint import SavepointEditor, SavepointWriter
from keygroups.spark import edit_savepoint, read_keyed_state, write_keyed_state

ROUNDS, CORES, ENTRIES, GOAL = 3, 2, 2_000_000, 1.6


def delete(writer: SavepointEditor) -> None:
    """Delete a thousand keys."""
    writer.operator("by-user").delete_keys(f"user-{number:09d}" for number in range(1_000))


def increase(writer: SavepointEditor) -> None:
    """Map each entry."""
    writer.operator("by-user").map_entries("count", lambda entry: entry.value + 1)


def main() -> None:
    """Print a line for each edit."""
    entries = int(sys.argv[1]) if len(sys.argv) > 1 else ENTRIES
    spark = local_session()
    print(f"Spark {spark.version}, {entries:,} entries, goal {GOAL} times one core", flush=True)
    with TemporaryDirectory() as folder:
        old = Path(folder, "old")
        write_with_spark(old, users(spark, entries))
        run = 0

        def new() -> Path:
            nonlocal run
            run += 1
            return Path(folder, str(run))

        def alone(edit: Callable[[SavepointEditor], None]) -> None:
            with SavepointWriter.from_existing_savepoint(old, new()) as writer:
                edit(writer)

        def with_spark(edit: Callable[[SavepointEditor], None]) -> None:
            with edit_savepoint(spark, old, new()) as writer:
                edit(writer)

        def rows() -> None:
            df = read_keyed_state(spark, old, "by-user")
            write_keyed_state(df, new(), old, "by-user")

        with_spark(delete)
        for edit in (delete, increase):
            rounds = [
                (measured(partial(alone, edit)), measured(partial(with_spark, edit)))
                for _ in range(ROUNDS)
            ]
            clock_alone, clock_spark = (min(one[side][0] for one in rounds) for side in (0, 1))
            cpu_alone, cpu_spark = (min(one[side][1] for one in rounds) for side in (0, 1))
            print(
                f"{edit.__name__}: {clock_alone:.2f} s alone, {clock_spark:.2f} s with Spark: "
                f"{clock_alone / clock_spark:.2f} times; CPU {cpu_alone:.2f} and {cpu_spark:.2f} "
                f"s: {CORES * cpu_alone / cpu_spark:.2f} times",
                flush=True,
            )
        clock, cpu, _ = measured(rows)
        print(f"rows: {clock:.2f} s, CPU {cpu:.2f} s", flush=True)


if __name__ == "__main__":
    main()
