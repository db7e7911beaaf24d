"""A million keys through count and count_distinct in Spark's state store: rate and memory.

`python tests/benchmarks/bench_state.py [KEYS]` with PySpark 4.1, pandas, PyArrow and protobuf.
Each of ten batches brings a tenth of the keys, all new, with two rows each of one user, and a row
of each of 1,000 keys that were there before. The memory is that of the JVM with RocksDB in it and
of the Python workers that have run the processor, after each batch.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from keygroups.spark.state import GroupAggregate, group_aggregate, state_accesses

BATCHES = 10
BACK = 1000
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


def main(keys: int) -> None:
    """Run the query and print a line for each batch."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    with tempfile.TemporaryDirectory(prefix="bench_state") as name:
        folder = Path(name)
        for number in range(BATCHES):
            first = number * keys // BATCHES
            new = spark.range(first, (number + 1) * keys // BATCHES)
            back = spark.range(min(BACK, first))
            rows = new.unionAll(new).unionAll(back).withColumn("user", F.col("id") * 7)
            rows = rows.withColumn("kind", F.lit("+I"))
            made = folder / f"made-{number}"
            rows.coalesce(1).write.parquet(str(made))
            (part,) = made.glob("part-*.parquet")
            (folder / "in").mkdir(exist_ok=True)
            part.rename(folder / "in" / f"{number}.parquet")
        source = spark.readStream.schema("id bigint, user bigint, kind string")
        changes = group_aggregate(
            source.option("maxFilesPerTrigger", 1).parquet(str(folder / "in")),
            "id",
            GroupAggregate(
                spark.read.parquet(str(folder / "in")).schema,
                {"n": ("count", "*"), "users": ("count_distinct", "user")},
                mini_batch=True,
            ),
            128,
            2,
        )
        started = time.monotonic()
        print("batch  changes     s changes/s  MB of the JVM, of workers", flush=True)

        def count(batch: DataFrame, number: int) -> None:
            nonlocal started
            found = batch.count()
            seconds, started = time.monotonic() - started, time.monotonic()
            jvm, workers = memory()
            rate = found / seconds
            print(
                f"{number:5}{found:9,}{seconds:6.0f}{rate:10,.0f}{jvm:8.0f}{workers:8.0f}",
                flush=True,
            )

        query = (
            changes.writeStream.foreachBatch(count)
            .outputMode("update")
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        for batch in query.recentProgress:
            reads, writes = state_accesses(batch)
            (operator,) = batch.stateOperators
            print(
                f"batch {batch.batchId}: {reads:,} reads, {writes:,} writes, "
                f"{operator.commitTimeMs / 1000:.1f} s to commit"
            )
    spark.stop()


def memory() -> tuple[float, float]:
    """Return the MB that the JVM below this process has, and the Python workers below that."""
    parents: dict[int, int] = {}
    resident: dict[int, float] = {}
    names: dict[int, str] = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines())
        except OSError:  # it has ended
            continue
        process = int(fields["Pid"])
        parents[process], names[process] = int(fields["PPid"]), fields["Name"]
        resident[process] = int(fields.get("VmRSS", "0").split()[0]) / 1024
    below = {os.getpid()}
    for _ in range(5):
        below |= {process for process, parent in parents.items() if parent in below}
    below.discard(os.getpid())
    jvm = sum(resident[process] for process in below if names[process] == "java")
    workers = sum(resident[process] for process in below if names[process] != "java")
    return jvm, workers


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
