"""Keyed state read by Spark with two task threads, against the reader alone on one core.

Run `python tests/benchmarks/bench_spark_savepoint.py [ENTRIES]`. The sides read a generated
savepoint in turn, round by round; Spark makes every column of every row, or `key` and `value`,
and drops them (`noop`). The best wall-clock times and their ratio to entries alone are printed,
then CPU seconds of all processes, and the ratio that two cores without other work would give, as
such work spoils the first. Then come CPU seconds of one process that makes columns, by how many
times Spark takes more than it, and the data source more than `read_keyed_state`: all without the
CPU time for a savepoint of a thousand entries, which is that of a query and not of entries.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.append(str(Path(__file__).parents[1]))

from pyspark.sql import DataFrame, SparkSession
from support.bytes import large_savepoints
from support.flink.flink_oracle import local_session

from keygroups.savepoint import read_savepoint
from keygroups.spark import read_keyed_state, register_data_source

ROUNDS, CORES, LIMIT, FEW = 5, 2, 1.6, 1_000
FORMS = {"canonical": 4_096_000, "native": 4_096_000, "rocksdb": 1_024_000}
_TICKS = 100  # a second, in /proc


def processes() -> dict[int, list[str]]:
    """Return the stats in /proc of this process and all that it started, JVM and workers too."""
    stats: dict[int, list[str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            stats[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
    found, todo = {}, [os.getpid()]
    while todo:
        process = todo.pop()
        found[process] = stats[process]
        todo += [child for child, fields in stats.items() if int(fields[1]) == process]
    return found


def cpu_seconds() -> float:
    """Return the CPU time of all these processes."""
    return sum(sum(map(int, fields[11:15])) for fields in processes().values()) / _TICKS


def measured(side: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds that a side takes, by the clock and in CPU time."""
    clock, cpu = time.perf_counter(), cpu_seconds()
    side()
    return time.perf_counter() - clock, cpu_seconds() - cpu


def dropped(df: DataFrame) -> None:
    """Have Spark make all rows."""
    df.write.format("noop").mode("overwrite").save()


def read_entries(_: SparkSession, path: Path) -> None:
    """Read entry by entry."""
    for _entry in read_savepoint(path).operator("by-string").entries():
        pass


def read_columns(_: SparkSession, path: Path) -> None:
    """Read batches of Arrow."""
    for _batch in read_savepoint(path).operator("by-string").to_arrow_batch_reader("count"):
        pass


def read_rows(spark: SparkSession, path: Path, columns: Sequence[str] | None = None) -> None:
    """Read with Spark."""
    dropped(read_keyed_state(spark, path, "by-string", columns=columns))


def read_source(spark: SparkSession, path: Path) -> None:
    """Read with Spark's data source."""
    dropped(spark.read.format("flink-state").option("operator", "by-string").load(str(path)))


SIDES: Mapping[str, Callable[[SparkSession, Path], None]] = {
    "entries": read_entries,
    "columns": read_columns,
    "rows": read_rows,
    "two columns": partial(read_rows, columns=["key", "value"]),
    "data source": read_source,
}
Measured = tuple[tuple[float, float], tuple[float, float]]
"""Wall-clock and CPU seconds of the large savepoint, and of the small one."""


def main() -> None:
    """Print the lines of each form of state."""
    spark = local_session()
    register_data_source(spark)
    print(f"Spark {spark.version}, Python {sys.version.split()[0]}, goal {LIMIT} times one core")
    with TemporaryDirectory() as folder:
        for form, entries in FORMS.items():
            wanted = int(sys.argv[1]) if len(sys.argv) > 1 else entries
            paths = [Path(folder, f"{form}-{number}") for number in range(2)]
            count = large_savepoints.write(paths[0], form, wanted)
            large_savepoints.write(paths[1], form, FEW)
            large, small = (
                {name: partial(side, spark, path) for name, side in SIDES.items()}
                for path in paths
            )
            for side in (*large.values(), *small.values()):
                side()
            rounds = [
                {name: (measured(large[name]), measured(small[name])) for name in SIDES}
                for _ in range(ROUNDS)
            ]
            report(form, count, rounds)
    spark.stop()


def report(form: str, count: int, rounds: Sequence[Mapping[str, Measured]]) -> None:
    """Print the lines of a form of state."""
    clocks = {name: min(each[name][0][0] for each in rounds) for name in SIDES}
    cpu = {name: min(each[name][0][1] for each in rounds) for name in SIDES}
    net = {name: cpu[name] - min(each[name][1][1] for each in rounds) for name in SIDES}
    print(
        f"{form}: {count:,} entries; {clocks['entries']:.2f} s alone, {clocks['rows']:.2f} s with "
        f"Spark: {clocks['entries'] / clocks['rows']:.2f} times; CPU {cpu['entries']:.2f} and "
        f"{cpu['rows']:.2f} s: {CORES * cpu['entries'] / cpu['rows']:.2f} times\n"
        f"  CPU net of a query: columns {net['columns']:.2f} s, Spark {net['rows']:.2f} s, "
        f"{net['rows'] / net['columns']:.2f} times, of two columns {net['two columns']:.2f} s, "
        f"{net['two columns'] / net['columns']:.2f} times; data source {net['data source']:.2f} "
        f"s, {net['data source'] / net['rows']:.2f} times read_keyed_state",
        flush=True,
    )


if __name__ == "__main__":
    main()
