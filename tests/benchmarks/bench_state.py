"""Keys through count and count_distinct in Spark's state store: rate, CPU, memory.

`python tests/benchmarks/bench_state.py [KEYS [NAME ...]]` with PySpark 4.1, pandas, PyArrow and
protobuf. Each query gets the same batches, one after the other: DENSE of them bring KEYS keys,
all new, with two rows each of one user, and a row of each of 1,000 keys that were there before;
SPARSE of them bring 10 rows of 10 keys that were there. Beside `group_aggregate` in mini-batches
and row by row there are a bare `transformWithState` that gets and updates a value of each key,
and Spark's own aggregate, which has no distinct count in a stream but a set. CPU is that of
the JVM and of the Python workers, in microseconds a key of the batch.

To see another version of keygroups beside this one, run the script with PYTHONPATH set to it.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from keygroups.spark.state import GroupAggregate, group_aggregate, state_accesses

DENSE, SPARSE = 3, 3
BACK, FEW = 1000, 10
SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.log.level": "FATAL",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def grouped(source: DataFrame, mini_batch: bool) -> DataFrame:
    """Return the changes of the keys by keygroups."""
    aggregates = {"n": ("count", "*"), "users": ("count_distinct", "user")}
    processor = GroupAggregate(source.schema, aggregates, mini_batch=mini_batch)
    return group_aggregate(source, "id", processor, 128, 2)


class Bare(StatefulProcessor):
    """Counts the rows of a key, which is the least that `transformWithState` can do."""

    def init(self, handle: Any) -> None:
        self._count = handle.getValueState("count", "n bigint")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:
        known = self._count.get()
        count = (known[0] if known else 0) + sum(1 for _ in rows)
        self._count.update((count,))
        yield Row(id=key[0], n=count)


def bare(source: DataFrame) -> DataFrame:
    """Return the counts of the keys by a processor that does no more."""
    counts: DataFrame = source.groupBy("id").transformWithState(
        Bare(), "id bigint, n bigint", "Update", "ProcessingTime"
    )
    return counts


def native(source: DataFrame) -> DataFrame:
    """Return the aggregates of the keys by Spark itself."""
    return source.groupBy("id").agg(F.count("*"), F.size(F.collect_set("user")))


QUERIES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "mini-batch": lambda source: grouped(source, True),
    "row": lambda source: grouped(source, False),
    "bare": bare,
    "native": native,
}


def main(keys: int, names: list[str]) -> None:
    """Run the queries and print a line for each batch."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    with tempfile.TemporaryDirectory(prefix="bench_state") as name:
        folder = Path(name)
        for number in range(DENSE + SPARSE):
            first = number * keys
            new = spark.range(first, first + keys)
            rows = new.unionAll(new).unionAll(spark.range(min(BACK, first)))
            if number >= DENSE:
                rows = spark.range(number, DENSE * keys, DENSE * keys // FEW).limit(FEW)
            rows = rows.withColumn("user", F.col("id") * 7).withColumn("kind", F.lit("+I"))
            made = folder / f"made-{number}"
            rows.coalesce(1).write.parquet(str(made))
            (part,) = made.glob("part-*.parquet")
            (folder / "in").mkdir(exist_ok=True)
            part.rename(folder / "in" / f"{number}.parquet")
            os.utime(folder / "in" / f"{number}.parquet", (number, number))
        for name in names:
            run(spark, folder, name, keys)
    spark.stop()


def run(spark: SparkSession, folder: Path, name: str, keys: int) -> None:
    """Run a query and print a line for each batch."""
    source = spark.readStream.schema("id bigint, user bigint, kind string")
    source = source.option("maxFilesPerTrigger", 1).option("maxFileAge", "99999d")
    print("query       batch     s   keys/s  us/key  MB of the JVM, of workers", flush=True)
    started, used = time.monotonic(), processor_seconds()

    def count(batch: DataFrame, number: int) -> None:
        nonlocal started, used
        batch.write.format("noop").mode("overwrite").save()
        seconds, cpu = time.monotonic() - started, processor_seconds() - used
        held = FEW if number >= DENSE else keys + (BACK if number else 0)
        jvm, workers = memory()
        print(
            f"{name:10}{number:7}{seconds:6.1f}{held / seconds:9,.0f}{cpu / held * 1e6:8,.0f}"
            f"{jvm:8.0f}{workers:8.0f}",
            flush=True,
        )
        started, used = time.monotonic(), processor_seconds()

    query = (
        QUERIES[name](source.parquet(str(folder / "in")))
        .writeStream.foreachBatch(count)
        .outputMode("update")
        .option("checkpointLocation", str(folder / f"checkpoint-{name}"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    for batch in query.recentProgress:
        reads, writes = state_accesses(batch)
        print(f"batch {batch.batchId}: {reads:,} reads, {writes:,} writes", flush=True)


def below() -> dict[int, list[str]]:
    """Return the stats in /proc of the processes below this one, from their names on."""
    stats: dict[int, list[str]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, rest = stat.read_text().split(" (", 1)
        except OSError:  # it has ended
            continue
        name, fields = rest.rsplit(") ", 1)
        stats[int(number)] = [name, *fields.split()]
    found = {os.getpid()}
    for _ in range(5):
        found |= {process for process, fields in stats.items() if int(fields[2]) in found}
    return {process: stats[process] for process in found - {os.getpid()} if process in stats}


def processor_seconds() -> float:
    """Return the CPU seconds of the JVM and of the workers, those that have ended among them."""
    ticks = sum(int(number) for fields in below().values() for number in fields[12:16])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory() -> tuple[float, float]:
    """Return the MB that the JVM below this process has, and the Python workers below that."""
    megabytes = os.sysconf("SC_PAGE_SIZE") / 2**20
    resident = [(fields[0], int(fields[22]) * megabytes) for fields in below().values()]
    jvm = sum(size for name, size in resident if name == "java")
    return jvm, sum(size for name, size in resident) - jvm


if __name__ == "__main__":
    keys = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    main(keys, sys.argv[2:] or list(QUERIES))
