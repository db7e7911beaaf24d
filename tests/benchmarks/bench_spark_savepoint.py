"""Keyed state read by Spark with two task threads, against one process on one core.

Run `python tests/benchmarks/bench_spark_savepoint.py [ENTRIES [FORM ...]]`; it needs pandas. The
sides read a generated savepoint in turn, round by round, and Spark drops its rows (`noop`). A line
has the best wall-clock seconds of a side; its CPU seconds, of all processes but for what the JVM
compiles meanwhile; and the CPU microseconds of an entry, without those of a savepoint of a
thousand entries, which a query takes and not its entries. The last number is how many times that
is what one process takes to make columns. The sides named "moved" read nothing: a function sends
the same batch of such rows again and again, or the reader of a data source does. Their time and
that of one process are the least that Spark could take.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).parents[1]))

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceReader
from support.bytes import large_savepoints
from support.flink.flink_oracle import local_session

from keygroups.savepoint import read_savepoint
from keygroups.spark import read_keyed_state, register_data_source

ROUNDS, FEW, BATCH = 3, 1_000, 10_000
FORMS = {"canonical": 1_024_000, "native": 1_024_000, "rocksdb": 512_000}
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


def compiler_seconds() -> float:
    """Return the CPU time of the JVM's compilers, of those that have not ended."""
    took = 0.0
    for process in processes():
        for thread in Path(f"/proc/{process}/task").glob("*"):
            try:
                if (thread / "comm").read_text().startswith(("C1 ", "C2 ")):
                    took += int((thread / "schedstat").read_text().split()[0]) / 1e9
            except OSError:  # it has ended
                continue
    return took


class Took(NamedTuple):
    """Seconds by the clock, of CPU time, and of that what the JVM's compilers took."""

    clock: float
    cpu: float
    compilers: float

    def __sub__(self, before: Took) -> Took:
        """Return the time between two moments."""
        return Took(*(end - start for end, start in zip(self, before)))


def now() -> Took:
    """Return this moment, from which another one may be subtracted."""
    return Took(time.perf_counter(), cpu_seconds(), compiler_seconds())


def measured(side: Callable[[], object]) -> Took:
    """Return the time that a side takes."""
    before = now()
    side()
    return now() - before


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


def read_source(spark: SparkSession, path: Path, **options: str) -> None:
    """Read with Spark's data source."""
    reader = spark.read.format("flink-state").option("operator", "by-string").options(**options)
    dropped(reader.load(str(path)))


class Moved:
    """Has Spark take as many rows, of the same columns, from a function that makes nothing.

    With `is_source` the function is the reader of a data source.
    """

    def __init__(self, columns: Sequence[str] | None = None, is_source: bool = False) -> None:
        self._columns = columns
        self._is_source = is_source
        self._frames: dict[Path, DataFrame] = {}

    def __call__(self, spark: SparkSession, path: Path) -> None:
        """Drop the rows."""
        if path not in self._frames:
            self._frames[path] = self._frame(spark, path)
        dropped(self._frames[path])

    def _frame(self, spark: SparkSession, path: Path) -> DataFrame:
        rows = partial(read_keyed_state, spark, path, "by-string", columns=self._columns)
        count, some = rows().count(), rows(key_groups=[0]).toArrow()
        many = pa.concat_tables([some] * (BATCH // some.num_rows + 1))
        [batch] = many.slice(0, BATCH).combine_chunks().to_batches()

        def again() -> Iterator[Any]:
            for start in range(0, count, BATCH):
                yield batch.slice(0, count - start)

        if self._is_source:
            return from_source(spark, again, rows().schema)
        return spark.range(0, 1, 1, 1).mapInArrow(
            lambda batches: (each for _ in batches for each in again()), rows().schema
        )


def from_source(
    spark: SparkSession, batches: Callable[[], Iterator[Any]], schema: T.StructType
) -> DataFrame:
    """Return the rows of batches from a data source in Python with one partition."""

    class Reader(DataSourceReader):
        def read(self, partition: object) -> Iterator[Any]:
            return batches()

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "moved"

        def schema(self) -> T.StructType:
            return schema

        def reader(self, schema: T.StructType) -> DataSourceReader:
            return Reader()

    spark.dataSource.register(Source)
    return spark.read.format("moved").load()


TWO = ("key", "value")
SIDES: Mapping[str, Callable[[SparkSession, Path], None]] = {
    "one process, columns": read_columns,
    "one process, entries": read_entries,
    "read_keyed_state": read_rows,
    "the same, moved": Moved(),
    "key and value": partial(read_rows, columns=TWO),
    "the same two, moved": Moved(TWO),
    "key_group alone": partial(read_rows, columns=["key_group"]),
    "flink-state": read_source,
    "flink-state, key and value": partial(read_source, columns=",".join(TWO)),
    "a source of all, moved": Moved(is_source=True),
    "a source of the two, moved": Moved(TWO, is_source=True),
}
Measured = tuple[Took, Took]
"""Of the large savepoint, and of the small one."""


def main() -> None:
    """Print the lines of each form of state."""
    entries = next((int(argument) for argument in sys.argv if argument.isdecimal()), None)
    forms = [form for form in FORMS if form in sys.argv] or [*FORMS]
    spark = local_session()
    register_data_source(spark)
    print(f"Spark {spark.version}, Python {sys.version.split()[0]}", flush=True)
    with TemporaryDirectory() as folder:
        for form in forms:
            paths = [Path(folder, f"{form}-{number}") for number in range(2)]
            count = large_savepoints.write(paths[0], form, entries or FORMS[form])
            large_savepoints.write(paths[1], form, FEW)
            sides = {
                name: [partial(side, spark, path) for path in paths]
                for name, side in SIDES.items()
            }
            for both in sides.values():
                for side in both:
                    side()
            rounds = [
                {
                    name: (measured(large), measured(small))
                    for name, (large, small) in sides.items()
                }
                for _ in range(ROUNDS)
            ]
            report(form, count, rounds)
    spark.stop()


def report(form: str, count: int, rounds: Sequence[Mapping[str, Measured]]) -> None:
    """Print the lines of a form of state."""
    net = {}
    print(f"{form}, {count:,} entries{'clock':>14}{'CPU':>8}{'us':>8}{'times':>8}")
    for name in SIDES:
        large, small = zip(*(each[name] for each in rounds))
        cpu, of_query = (
            min(took.cpu - took.compilers for took in each_size) for each_size in (large, small)
        )
        net[name] = (cpu - of_query) / (count - FEW) * 1e6
        times = net[name] / net["one process, columns"]
        clock = min(took.clock for took in large)
        print(f"  {name:30}{clock:8.2f}{cpu:8.2f}{net[name]:8.3f}{times:8.2f}", flush=True)


if __name__ == "__main__":
    main()
