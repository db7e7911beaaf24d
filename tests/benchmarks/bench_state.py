"""A GROUP BY over changes: keygroups in Spark's state store, Flink's own job, Spark's aggregate.

`python tests/benchmarks/bench_state.py [ROWS [NAME ...]]` needs `keygroups[state]`, the `flink`
extra and a JDK. ROWS rows have keys three tenths as many, and each side counts the rows of a key
and adds up a column; sides whose name ends in "distinct" count them and the distinct values of a
column. Spark gets the rows as batches of a stream, of which each brings keys that are new; Flink
2.3 gets them in a job, SQL's GROUP BY with its state in RocksDB, for each round. Both have two
subtasks and a JVM that is warm after two rounds. Where both emit a changelog, the number of
changes of each kind and the sums of the results have to be the same.

Printed are the seconds of a round by the clock and of CPU time of all processes, without that of
the JVM's compilers, both the least of the rounds; and that CPU time by the one of Flink's own job.
A round of Spark ends with the state in the checkpoint; Flink takes none.

To see another version of keygroups beside this one, run the script with PYTHONPATH set to it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[1]))

from bench_spark_savepoint import Took, measured, now
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from support.flink.flink_oracle import flink_jar
from support.flink.flink_sql import JAVA_FOLDER, OPENED_PACKAGES, java_sources, jdk_folder

from keygroups.spark.state import GroupAggregate, group_aggregate

WARM_UP, ROUNDS = 2, 3
PARALLELISM, MAX_PARALLELISM = 2, 128
SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.log.level": "FATAL",
    "spark.sql.shuffle.partitions": str(PARALLELISM),
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


class Side(NamedTuple):
    """A side: Spark's query of a stream, or the options of Flink's job; and what it aggregates."""

    query: Callable[[DataFrame, bool], DataFrame] | None
    options: Mapping[str, str]
    distinct: bool = False

    def emits_changes(self) -> bool:
        """Return whether it has a changelog."""
        return self.query is not native


def grouped(source: DataFrame, distinct: bool, mini_batch: bool) -> DataFrame:
    """Return the changes of the keys by keygroups."""
    second = "count_distinct" if distinct else "sum"
    aggregates = {"n": ("count", "*"), "result": (second, "v")}
    processor = GroupAggregate(source.schema, aggregates, mini_batch=mini_batch)
    return group_aggregate(source, "k", processor, MAX_PARALLELISM, PARALLELISM)


def native(source: DataFrame, distinct: bool) -> DataFrame:
    """Return the aggregates of the keys by Spark itself; a stream has no distinct count."""
    second = F.size(F.collect_set("v")) if distinct else F.sum("v")
    return source.groupBy("k").agg(F.count("*").alias("n"), second.alias("result"))


ROCKSDB = {"state.backend.type": "rocksdb"}
IN_BATCHES = {
    **ROCKSDB,
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "10 s",
    "table.exec.mini-batch.size": "100000",
}
FLINK = "Flink, row by row"
SIDES = {
    FLINK: Side(None, ROCKSDB),
    "Flink, mini-batches": Side(None, IN_BATCHES),
    "keygroups, row by row": Side(partial(grouped, mini_batch=False), {}),
    "keygroups, mini-batches": Side(partial(grouped, mini_batch=True), {}),
    "Spark's aggregate": Side(native, {}),
}
SIDES |= {f"{name}, distinct": side._replace(distinct=True) for name, side in SIDES.items()}

Answer = dict[str, int]
"""The number of changes of each kind, and the sums of the results."""


class FlinkJobs:
    """A JVM with Flink's local cluster and the program `GroupBySpeed.java`."""

    def __init__(self, folder: Path) -> None:
        jdk, jar = jdk_folder(), flink_jar()
        if jdk is None or jar is None:
            sys.exit("bench_state needs a JDK and Flink's jars: pip install -e '.[flink]'")
        sources = java_sources(jar.parent)
        class_path = os.pathsep.join([str(folder), str(jar.parent / "*")])
        program = "GroupBySpeed"
        javac = [str(jdk / "javac"), "-sourcepath", sources, "-d", str(folder), "-cp", class_path]
        subprocess.run([*javac, str(JAVA_FOLDER / f"{program}.java")], check=True)
        java = [str(jdk / "java"), "-Xmx2g", "-XX:+UseSerialGC"]
        java += [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED_PACKAGES]
        java += [f"-Djava.io.tmpdir={folder}", "-cp", class_path, program, str(PARALLELISM)]
        pipe = subprocess.PIPE
        with Path(folder, "log").open("w") as log:
            self._jvm = subprocess.Popen(java, stdin=pipe, stdout=pipe, stderr=log, text=True)

    def run(self, rows: int, side: Side) -> Answer:
        """Run a job to its end."""
        second = "COUNT(DISTINCT v)" if side.distinct else "SUM(v)"
        job = {
            "options": side.options,
            "parallelism": PARALLELISM,
            "max_parallelism": MAX_PARALLELISM,
            "rows": rows,
            "view": f"SELECT f0 * 7919 % CAST({keys_of(rows)} AS BIGINT) AS k, "
            "f0 % CAST(1000 AS BIGINT) AS v FROM numbers",
            "query": f"SELECT k, COUNT(*) AS n, {second} AS r FROM t GROUP BY k",
        }
        assert self._jvm.stdin is not None
        assert self._jvm.stdout is not None
        self._jvm.stdin.write(json.dumps(job) + "\n")
        self._jvm.stdin.flush()
        answer: Answer = json.loads(self._jvm.stdout.readline())
        return answer

    def end(self) -> None:
        """End the JVM."""
        self._jvm.communicate()


def keys_of(rows: int) -> int:
    """Return the number of keys of so many rows."""
    return rows * 3 // 10


def main(rows: int, names: Sequence[str]) -> None:
    """Measure the sides, and print a line for each."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{PARALLELISM}]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    results: dict[str, list[Took]] = {}
    answers: dict[tuple[bool, bool], Answer] = {}
    with tempfile.TemporaryDirectory(prefix="bench_state") as name:
        folder = Path(name)
        write_rows(spark, folder / "in", rows)
        flink = FlinkJobs(folder)
        print(f"{rows:,} rows of {keys_of(rows):,} keys, the least of {ROUNDS} rounds")
        for name in names:
            side = SIDES[name]
            if side.query is None:
                rounds = [flink_round(flink, rows, side) for _ in range(WARM_UP + ROUNDS)]
            else:
                checkpoint = folder / "".join(filter(str.isalnum, name))
                rounds = spark_rounds(spark, folder / "in", checkpoint, side)
            results[name] = [took for took, _ in rounds[WARM_UP:]]
            if side.emits_changes():
                in_batches = "mini-batches" in name
                [answer] = {tuple(sorted(a.items())) for _, a in rounds}
                first = answers.setdefault((in_batches, side.distinct), dict(answer))
                if not in_batches and dict(answer) != first:
                    raise RuntimeError(f"{name}: {dict(answer)}, and another side has {first}")
            report(name, results)
        flink.end()
    spark.stop()


def write_rows(spark: SparkSession, folder: Path, rows: int) -> None:
    """Write a file for each batch: the same rows, each time of keys that are new."""
    for number in range(WARM_UP + ROUNDS):
        number_of_row = F.col("id")
        key = number_of_row * 7919 % keys_of(rows) + number * keys_of(rows)
        made = spark.range(0, rows, 1, 1).select(
            key.alias("k"), (number_of_row % 1000).alias("v"), F.lit("+I").alias("kind")
        )
        made.write.parquet(str(folder.with_name("made")), mode="overwrite")
        [part] = folder.with_name("made").glob("part-*.parquet")
        folder.mkdir(exist_ok=True)
        file = part.rename(folder / f"{number}.parquet")
        os.utime(file, (number, number))


def flink_round(flink: FlinkJobs, rows: int, side: Side) -> tuple[Took, Answer]:
    """Return the time of a job of Flink, and its answer."""
    answers: list[Answer] = []
    took = measured(lambda: answers.append(flink.run(rows, side)))
    return took, answers[0]


def spark_rounds(
    spark: SparkSession, rows: Path, checkpoint: Path, side: Side
) -> list[tuple[Took, Answer]]:
    """Return the time of each batch of a query, and its answer."""
    assert side.query is not None
    source = spark.readStream.schema("k bigint, v bigint, kind string")
    source = source.option("maxFilesPerTrigger", 1).option("maxFileAge", "99999d")
    moments, answers = [now()], []

    def take(batch: DataFrame, number: int) -> None:
        if side.emits_changes():
            answers.append(answer_of(batch))
        else:
            batch.write.format("noop").mode("overwrite").save()
        moments.append(now())

    query = side.query(source.parquet(str(rows)), side.distinct).writeStream
    query = query.foreachBatch(take).outputMode("update").trigger(availableNow=True)
    query.option("checkpointLocation", str(checkpoint)).start().awaitTermination()
    took = [end - start for start, end in pairwise(moments)]
    return [*zip(took, answers or [{}] * len(took))]


def answer_of(changes: DataFrame) -> Answer:
    """Return the answer of a batch."""
    sums = [F.sum("n"), F.sum("result")]
    kinds = changes.groupBy("kind").agg(F.count("*"), *sums).collect()
    answer = dict.fromkeys(("+I", "-U", "+U", "-D"), 0) | {row[0]: row[1] for row in kinds}
    for number in (1, 2):
        signed = (-row[1 + number] if "-" in row[0] else row[1 + number] for row in kinds)
        answer[f"sum {number}"] = sum(signed)
    return answer


def report(name: str, results: Mapping[str, Sequence[Took]]) -> None:
    """Print the line of a side."""
    base = results.get(f"{FLINK}, distinct" if name.endswith("distinct") else FLINK)
    cpu = least_cpu(results[name])
    times = f"{cpu / least_cpu(base):8.2f}" if base else ""
    clock = min(took.clock for took in results[name])
    print(f"  {name:36}{clock:8.2f}{cpu:8.2f}{times}", flush=True)


def least_cpu(rounds: Sequence[Took]) -> float:
    """Return the least CPU seconds of a round, without the compilers."""
    return min(took.cpu - took.compilers for took in rounds)


if __name__ == "__main__":
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    main(rows, sys.argv[2:] or list(SIDES))
