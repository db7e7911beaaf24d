"""The backends `portable` and `arrow` over Spark Connect, beside the bare scan.

Run `python tests/benchmarks/bench_connect.py` where PySpark has Connect: 4.1 or newer, as
`pyspark[connect]`, with `keygroups[arrays]`. A local server runs with one task thread. The
backends give key groups of the same cached rows and must agree; then they take turns, round by
round. Figures are medians of the CPU time of all processes, Python workers included, net of the
scan.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from support.inside.adapter import SETTING

from keygroups.spark import functions as KF
from keygroups.types import LONG, SQL_ROW, STRING, KeyType

MAX_PARALLELISM = 128
CHECKED_ROWS = 50_000
BACKENDS = ("portable", "arrow")


def kinds() -> dict[str, tuple[KeyType, Column]]:
    """Return the kinds of keys by name, as functions of `id`."""
    bits = F.xxhash64("id")
    text = F.concat(F.lit("user-"), F.lpad(F.pmod(bits, F.lit(10**9)).cast("string"), 9, "0"))
    # Every other string has characters of two, three and four bytes.
    other = F.translate(text, "13579", "\u00e9\u0436\u65e5\U0001f600\U00020000")
    return {
        "STRING, 14 ASCII": (STRING, text),
        "STRING, half not ASCII": (STRING, F.when(F.col("id") % 2 == 0, other).otherwise(text)),
        "LONG": (LONG, bits),
        "SQL_ROW(BIGINT)": (SQL_ROW("BIGINT"), bits),
    }


def cpu_seconds() -> float:
    """Return the CPU time of this process and all that it started; it ticks every 10 ms."""
    ticks, parents = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text("ascii", "replace").rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        parents[int(folder.name)] = int(fields[1])
        ticks[int(folder.name)] = sum(map(int, fields[11:15]))  # its ended children count too
    total, todo = 0, [os.getpid()]
    while todo:
        process = todo.pop()
        total += ticks.get(process, 0)
        todo += [child for child, parent in parents.items() if parent == process]
    return total / os.sysconf("SC_CLK_TCK")


def on_backend(spark: SparkSession, backend: str, key_type: KeyType) -> Column:
    """Return our expression for the key group, built on one of the two backends."""
    spark.conf.set(SETTING, backend)
    return KF.assign_to_key_group("key", MAX_PARALLELISM, key_type)


def measure(spark: SparkSession, name: str, count: int, rounds: int) -> None:
    """Measure a kind of keys and print a row of the table."""
    key_type, key = kinds()[name]
    rows = spark.range(0, count, 1, 1).select("id", key.alias("key")).persist()
    rows.count()
    groups = {backend: on_backend(spark, backend, key_type) for backend in BACKENDS}
    differ = F.count_if(~groups["portable"].eqNullSafe(groups["arrow"]))
    wrong = rows.where(F.col("id") < CHECKED_ROWS).select(differ).collect()[0][0]
    if wrong:
        raise RuntimeError(f"{name}: {wrong} of {CHECKED_ROWS} key groups differ")
    touch = F.octet_length("key") if key_type is STRING else F.col("key")
    queries: dict[str, DataFrame] = {"scan": rows.agg(F.max(touch))}
    for backend, group in groups.items():
        # In one stage: after a UDF Spark forgets that there is one partition.
        queries[backend] = rows.select(group.alias("group")).coalesce(1).agg(F.max("group"))
    used: dict[str, list[float]] = {label: [] for label in queries}
    for turn in range(-2, rounds):  # two rounds for the JIT compiler
        for label, query in queries.items():
            start = cpu_seconds()
            query.collect()
            if turn >= 0:
                used[label].append((cpu_seconds() - start) / count * 1e9)
    rows.unpersist()
    scan, portable, arrow = (statistics.median(used[label]) for label in queries)
    ratio = (portable - scan) / (arrow - scan)
    print(f"| {name} | {portable - scan:,.0f} | {arrow - scan:,.0f} | {ratio:.2f} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.remote("local[1]").getOrCreate()
    print("| keys | portable, ns | arrow, ns | portable / arrow |\n|---|---|---|---|")
    for name in kinds():
        measure(spark, name, options.rows, options.rounds)
    spark.stop()


if __name__ == "__main__":
    main()
