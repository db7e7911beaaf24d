"""Keyed state read by Spark with two task threads, against the reader alone on one core.

Run `python tests/benchmarks/bench_spark_savepoint.py`. Both sides read all of a generated
savepoint in turn, round by round; Spark makes every column of every row and drops it (`noop`). The
best wall-clock times and their ratio are printed, then CPU seconds of all processes, and the ratio
that two cores without other work would give, as such work spoils the first.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.append(str(Path(__file__).parents[1]))

from support.bytes import large_savepoints
from support.flink.flink_oracle import local_session

from keygroups.savepoint import read_savepoint
from keygroups.spark import read_keyed_state

ROUNDS, CORES, LIMIT = 5, 2, 1.6
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


def main() -> None:
    """Print a line for each form of state."""
    spark = local_session()
    print(f"Spark {spark.version}, Python {sys.version.split()[0]}, goal {LIMIT} times one core")
    with TemporaryDirectory() as folder:
        for form, entries in FORMS.items():
            path = Path(folder, form)
            count = large_savepoints.write(path, form, entries)

            def alone(path: Path = path) -> None:
                for _ in read_savepoint(path).operator("by-string").entries():
                    pass

            def with_spark(path: Path = path) -> None:
                df = read_keyed_state(spark, path, "by-string")
                df.write.format("noop").mode("overwrite").save()

            with_spark()
            rounds = [(measured(alone), measured(with_spark)) for _ in range(ROUNDS)]
            clock_alone, clock_spark = (min(one[side][0] for one in rounds) for side in (0, 1))
            cpu_alone, cpu_spark = (min(one[side][1] for one in rounds) for side in (0, 1))
            print(
                f"{form}: {count:,} entries; {clock_alone:.2f} s alone, {clock_spark:.2f} s with "
                f"Spark: {clock_alone / clock_spark:.2f} times; CPU {cpu_alone:.2f} and "
                f"{cpu_spark:.2f} s: {CORES * cpu_alone / cpu_spark:.2f} times",
                flush=True,
            )
    spark.stop()


if __name__ == "__main__":
    main()
