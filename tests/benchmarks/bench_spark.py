"""Our column expressions against real Flink in a Java UDF, and what else one could do in Spark.

Run `python tests/benchmarks/bench_spark.py`; it needs the `flink` extra and a JDK. All
contenders give key groups of the same cached rows in one Spark session with one task thread,
and must agree before any is timed. They take turns, round by round, so that a slow moment of
the machine meets all of them; figures are medians, and *net* is without the bare scan.

`--linear` measures our two backends alone, on 1, 10 and 50 million rows that are never stored.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType

sys.path.append(str(Path(__file__).parents[1]))
from support.flink.flink_oracle import ASSIGNMENT, FlinkOracle, flink_class_path, flink_jar
from support.flink.flink_sql import JAVA_FOLDER
from support.inside.adapter import SETTING
from support.spark.java_udf import add_java_class

from keygroups import assign_to_key_group
from keygroups.spark import functions as KF
from keygroups.types import BIG_DEC, INT, LONG, SQL_ROW, STRING, TUPLE, KeyType

MAX_PARALLELISM = 128
CHECKED_ROWS = 100_000
SAMPLE_ROWS = 500_000  # for contenders that need a microsecond or more
LINEAR_ROWS = (1_000_000, 10_000_000, 50_000_000)
HEAP, LINEAR_HEAP = "4g", "1g"

SCAN, JAVA = "bare scan", "Java UDF, real Flink"
FAST, PORTABLE = "keygroups, fast", "keygroups, portable"


@dataclass(frozen=True)
class Kind:
    """A kind of key: its columns as functions of `id`, and what each contender needs to know."""

    key_type: KeyType
    columns: dict[str, Column]
    # The cheapest int or long that has to look at the value of the key.
    touch: Column
    # The class of the key and the body of a UDF, or a UDF in JAVA_FOLDER and no body.
    java_class: str
    java_body: str
    # Where a key costs a few nanoseconds, only many rows stand out against starting a job.
    rows_factor: int = 1
    slow_portable: bool = True


def kinds() -> dict[str, Kind]:
    """Return the kinds of keys by name; they need a running session."""
    bits = F.xxhash64("id")
    number = F.shiftright(bits, 32).cast("int")
    digits = F.pmod(bits, F.lit(10**9)).cast("string")
    text = F.concat(F.lit("user-"), F.lpad(digits, 9, "0"))
    # Every other string has characters of two, three and four bytes.
    mixed = F.when(
        F.col("id") % 2 == 0, F.translate(text, "13579", "\u00e9\u0436\u65e5\U0001f600\U00020000")
    ).otherwise(text)
    cents = F.pmod(bits, F.lit(10**18)).cast("decimal(18,0)") - F.lit(5 * 10**17)
    amount = (cents.cast("decimal(20,0)") / F.lit(100)).cast("decimal(18,2)")
    parts = (F.pmod(F.xxhash64("id", F.lit(i)), F.lit(10**n)) for i, n in enumerate((16, 18, 2)))
    digits_36 = [F.lpad(part.cast("string"), n, "0") for part, n in zip(parts, (16, 18, 2))]
    signed = F.concat(F.when(F.col("id") % 2 == 0, "-").otherwise(""), *digits_36[:2])
    large = F.concat(signed, F.lit("."), digits_36[2]).cast("decimal(36,2)")
    call = f"KeyGroupRangeAssignment.assignToKeyGroup({{}}, {MAX_PARALLELISM})"
    one = f"return key == null ? null : (Integer) {call.format('key')};"
    pair = f"return {call.format('Tuple2.of(key, key2)')};"
    octets = F.octet_length("key")
    string = Kind(STRING, {"key": text}, octets, "String", one, rows_factor=2)
    return {
        "INT": Kind(INT, {"key": number}, F.col("key"), "Integer", one, 8, slow_portable=False),
        "LONG": Kind(LONG, {"key": bits}, F.col("key"), "Long", one, 8, slow_portable=False),
        "STRING, ASCII": string,
        "STRING, half non-ASCII": Kind(STRING, {"key": mixed}, octets, "String", one),
        "TUPLE(STRING, INT)": Kind(
            TUPLE(STRING, INT),
            {"key": text, "key2": number},
            octets.bitwiseXOR(F.col("key2")),
            "String",
            pair,
            rows_factor=2,
        ),
        **{
            name: Kind(
                BIG_DEC,
                {"key": number},
                F.when(F.col("key").isNull(), 0).otherwise(1),
                "java.math.BigDecimal",
                one,
            )
            for name, number in (("DECIMAL(18,2)", amount), ("DECIMAL(36,2)", large))
        },
        "SQL_ROW(BIGINT)": Kind(
            SQL_ROW("BIGINT"), {"key": bits}, F.col("key"), "KeyGroupOfBigint", "", 4
        ),
        "SQL_ROW(INT, BIGINT)": Kind(
            SQL_ROW("INT", "BIGINT"),
            {"key": number, "key2": F.xxhash64("id", F.lit(2))},
            F.col("key2").bitwiseXOR(F.col("key")),
            "KeyGroupOfIntBigint",
            "",
            rows_factor=4,
        ),
        "SQL_ROW(BIGINT, STRING)": Kind(
            SQL_ROW("BIGINT", "STRING"),
            {"key": bits, "key2": text},
            F.octet_length("key2").bitwiseXOR(F.col("key")),
            "KeyGroupOfBigintString",
            "",
            rows_factor=2,
        ),
    }


def make_rows(spark: SparkSession, kind: Kind, count: int) -> DataFrame:
    """Return the rows of a kind. No key is null, but as in any table, Spark cannot know."""
    rows = spark.range(0, count, 1, numPartitions=1)
    columns = kind.columns.items()
    keys = (F.when(F.col("id") >= 0, column).alias(name) for name, column in columns)
    return rows.select("id", *keys)


def first(rows: DataFrame, count: int) -> DataFrame:
    """Return the first rows. Batches of cached rows beyond are skipped by their statistics."""
    return rows.where(F.col("id") < count)  # limit() would need a shuffle


def contenders(spark: SparkSession, name: str, kind: Kind) -> dict[str, Column]:
    """Return the timed queries, by name; each but the first two gives the key group."""
    key = list(kind.columns)
    made = {SCAN: kind.touch, "Spark hash()": F.hash(*key)}
    made[JAVA] = java_udf(spark, name, kind)
    made[FAST] = on_backend(spark, "fast", kind)
    made[PORTABLE] = on_backend(spark, "portable", kind)
    key_type = kind.key_type

    def naive(*fields: object) -> int:
        key = fields if isinstance(key_type, (TUPLE, SQL_ROW)) else fields[0]
        return assign_to_key_group(key, MAX_PARALLELISM, key_type)

    made["Python UDF"] = F.udf(naive, "int", useArrow=False)(*key)
    vectorised = arrow_udf(naive, len(key))
    if vectorised is not None:
        made["Arrow UDF"] = vectorised(*key)
    return made


def on_backend(spark: SparkSession, backend: str, kind: Kind) -> Column:
    """Return our expression for the key group, built on one of the two backends."""
    key: list[str | Column] = list(kind.columns)
    spark.conf.set(SETTING, backend)
    try:
        return KF.assign_to_key_group(key, MAX_PARALLELISM, kind.key_type)
    finally:
        spark.conf.unset(SETTING)


def java_udf(spark: SparkSession, name: str, kind: Kind) -> Column:
    """Return a call of a Java UDF that asks Flink."""
    cls, source = java_source(name, kind)
    full_name = add_java_class(spark, ASSIGNMENT, cls, source)
    spark.udf.registerJavaFunction(cls, full_name, IntegerType())
    return F.call_function(cls, *map(F.col, kind.columns))


def java_source(name: str, kind: Kind) -> tuple[str, str]:
    """Return the name and the source of the class of the Java UDF."""
    if not kind.java_body:
        file = JAVA_FOLDER / f"{kind.java_class}.java"
        return kind.java_class, file.read_text(encoding="utf-8")
    cls = "KeyGroupOf" + "".join(filter(str.isalnum, name.title()))
    classes = [kind.java_class, "Integer"][: len(kind.columns)]
    parameters = ", ".join(f"{c} {field}" for c, field in zip(classes, kind.columns))
    udf = f"UDF{len(classes)}"
    source = f"""
        import org.apache.flink.api.java.tuple.Tuple2;
        import org.apache.spark.sql.api.java.{udf};
        public class {cls} implements {udf}<{", ".join(classes)}, Integer> {{
            public Integer call({parameters}) {{ {kind.java_body} }}
        }}"""
    return cls, source


def arrow_udf(naive: Callable[..., int], arity: int) -> Callable[..., Column] | None:
    """Return a UDF on Arrow arrays, or on pandas series before Spark 4.1, where importable."""
    if importlib.util.find_spec("pyarrow") is None:
        return None
    import pyarrow as pa

    def arrays(*arrays: Any) -> Any:
        return pa.array(map(naive, *(array.to_pylist() for array in arrays)), pa.int32())

    made: Callable[..., Any] | None = getattr(F, "arrow_udf", None)
    function, cls = arrays, pa.Array
    if made is None:
        if importlib.util.find_spec("pandas") is None:
            return None
        import pandas as pd

        def series(*columns: Any) -> Any:
            return pd.Series(list(map(naive, *columns)), dtype="int32")

        made, function, cls = F.pandas_udf, series, pd.Series  # type: ignore[attr-defined]
    unary: Callable[..., Any] = lambda key: function(key)  # noqa: E731
    binary: Callable[..., Any] = lambda key, key2: function(key, key2)  # noqa: E731
    chosen = unary if arity == 1 else binary
    chosen.__annotations__ = dict.fromkeys([*["key", "key2"][:arity], "return"], cls)
    udf: Callable[..., Column] = made(chosen, "int")
    return udf


def sink(rows: DataFrame, value: Column) -> DataFrame:
    """Use a value of every row at next to no cost: find the greatest.

    The same sink for all, in one stage without a shuffle, so that the scan can be subtracted.
    A noop write would copy strings in the bare scan that no contender copies; bit_xor() would
    compute the value twice, and sum() of longs could overflow.
    """
    result = rows.agg(F.max(value).alias("result"))
    if "EvalPython" in plan_of(result):  # after which Spark forgets that there is one partition
        result = rows.select(value.alias("value")).coalesce(1).agg(F.max("value"))
    plan = plan_of(result)
    if "Exchange" in plan:  # Spark would reuse its files, and not compute the rows again
        raise RuntimeError(f"the plan must not have a shuffle:\n{plan}")
    return result


def plan_of(df: DataFrame) -> str:
    """Return the physical plan."""
    frame: Any = df
    return str(frame._jdf.queryExecution().executedPlan().toString())


Clock = Callable[[], float]


def seconds(query: DataFrame, clock: Clock) -> float:
    """Time one run of a query that is planned already."""
    start = clock()
    query.collect()
    return clock() - start


def cpu_clock(spark: SparkSession) -> Clock:
    """Return a clock of the CPU time of Spark's processes, Python workers included.

    The JVM's garbage collector and JIT compiler count too. It ticks every 10 ms.
    """
    context: Any = spark.sparkContext
    me = context._jvm.java.lang.ProcessHandle.current()

    def cpu() -> float:
        handles = [me, *me.descendants().toArray()]
        spent = (handle.info().totalCpuDuration() for handle in handles)
        return sum(float(time.get().toMillis()) for time in spent if time.isPresent()) / 1e3

    return cpu


def check_cached(spark: SparkSession) -> None:
    """Raise unless all that was cached is in memory."""
    context: Any = spark.sparkContext
    for info in context._jsc.sc().getRDDStorageInfo():
        if info.numCachedPartitions() != info.numPartitions() or info.diskSize():
            raise RuntimeError(f"the rows must fit in memory: {info.toString()}")


def check_answers(rows: DataFrame, made: dict[str, Column]) -> None:
    """Raise unless every contender gives the key groups that Flink gives."""
    asked = first(rows, CHECKED_ROWS)
    for label, column in made.items():
        if label not in (SCAN, "Spark hash()", JAVA):
            wrong = asked.select(F.count_if(~column.eqNullSafe(made[JAVA]))).collect()[0][0]
            if wrong:
                raise RuntimeError(f"{label}: {wrong} of {CHECKED_ROWS} key groups differ")
    distinct = asked.agg(F.count_distinct(made[JAVA])).collect()[0][0]
    if distinct != MAX_PARALLELISM:
        raise RuntimeError(f"{JAVA}: {distinct} key groups")


def measure(
    spark: SparkSession, name: str, kind: Kind, count: int, rounds: int, clock: Clock
) -> dict[str, float]:
    """Return the median nanoseconds per row of each contender."""
    count *= kind.rows_factor
    rows = make_rows(spark, kind, count).persist(StorageLevel.MEMORY_ONLY)
    rows.count()
    check_cached(spark)
    made = contenders(spark, name, kind)
    check_answers(rows, made)
    queries: dict[str, tuple[DataFrame, int]] = {}
    for label, column in made.items():
        slow = "UDF" in label and label != JAVA
        slow = slow or (label == PORTABLE and kind.slow_portable)
        few = min(count, SAMPLE_ROWS) if slow else count
        query = sink(first(rows, few) if slow else rows, column)
        if label in (FAST, PORTABLE) and "Python" in plan_of(query):
            raise RuntimeError(f"{label} must not start Python:\n{plan_of(query)}")
        queries[label] = query, few
    times: dict[str, list[float]] = {label: [] for label in queries}
    for turn in range(-2, rounds):  # two rounds for the JIT compiler
        for label, (query, few) in queries.items():
            used = seconds(query, clock) / few * 1e9
            if turn >= 0:
                times[label].append(used)
    check_cached(spark)
    rows.unpersist(blocking=True)
    return {label: statistics.median(used) for label, used in times.items()}


def show(name: str, count: int, result: dict[str, float]) -> None:
    """Print the table of a kind."""
    scan, java = result[SCAN], result[JAVA] - result[SCAN]
    print(f"\n{name + f', {count:,} rows':40} {'ns/row':>9} {'net ns':>9} {'net / Java UDF':>15}")
    for label, used in result.items():
        net = used - scan
        line = f"{label:40} {used:9.1f}"
        print(line if label == SCAN else f"{line} {net:9.1f} {net / java:15.2f}")
    sys.stdout.flush()


def show_markdown(results: dict[str, dict[str, float]]) -> None:
    """Print one table of all kinds: net nanoseconds per row, and the ratio to the Java UDF."""
    labels = dict.fromkeys(label for result in results.values() for label in result)
    print("\n| net ns per row (ratio to the Java UDF) | " + " | ".join(results) + " |")
    print("|---|" + "---|" * len(results))
    for label in labels:
        cells = []
        for result in results.values():
            net, java = (result.get(x, 0) - result[SCAN] for x in (label, JAVA))
            if label == SCAN:
                cells.append(f"{result[SCAN]:.1f}")
            else:
                cells.append(f"{net:,.0f} ({net / java:.2f})" if label in result else "")
        print(f"| {label} | " + " | ".join(cells) + " |")


def linear(spark: SparkSession, chosen: dict[str, Kind]) -> None:
    """Print the cost of our backends as rows grow, and what memory they need."""
    jvm: Any = spark.sparkContext._jvm
    memory = jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
    pid = jvm.java.lang.ProcessHandle.current().pid()
    print(
        "MiB of memory: the JVM's heap after a collection and all of it at its peak, the driver's"
    )
    print(f"Python. The heap may grow to {LINEAR_HEAP}.\n")
    print(f"{'':33} {'rows':>11} {'ns/row':>7} {'heap':>7} {'JVM':>7} {'Python':>7}")
    for name, kind in chosen.items():
        for backend in ("fast", "portable"):
            value = on_backend(spark, backend, kind)
            for count in LINEAR_ROWS:
                query = sink(make_rows(spark, kind, count), value)
                if count == LINEAR_ROWS[0]:
                    for _ in range(5):  # for the JIT compiler
                        query.collect()
                used = seconds(query, time.perf_counter) / count * 1e9
                memory.gc()
                heap = memory.getHeapMemoryUsage().getUsed() >> 20
                python = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
                print(f"{f'{name}, {backend}':33} {count:11,} {used:7.1f}", end="")
                print(f" {heap:7} {peak_memory(pid):7} {python:7}", flush=True)


def peak_memory(pid: int) -> int:
    """Return the most MiB a process has had in memory, where the system tells, else 0."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return int(status.partition("VmHWM:")[2].split()[0]) >> 10


def session(heap: str = HEAP) -> SparkSession:
    """Start Spark with one task thread, so that times are those of one core."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    jar = flink_jar()
    if jar is None:
        sys.exit("bench_spark needs Flink's jars: pip install -e '.[flink]'")
    os.environ["SPARK_DIST_CLASSPATH"] = flink_class_path(jar)
    builder = SparkSession.builder.master("local[1]").appName("keygroups benchmark")
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": heap,
        "spark.log.level": "ERROR",
        "spark.sql.adaptive.enabled": "false",  # a plan stays as it is, run after run
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=5_000_000, help="times 8 for INT and LONG")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keys", help="only kinds that start with one of these: INT;DECIMAL")
    parser.add_argument("--markdown", action="store_true", help="print a table for the README")
    parser.add_argument("--cpu", action="store_true", help="CPU time, for a busy machine")
    parser.add_argument("--linear", action="store_true", help="our backends at growing sizes")
    options = parser.parse_args(arguments)
    spark = session(LINEAR_HEAP if options.linear else HEAP)
    oracle = FlinkOracle(spark)
    print(
        f"{os.cpu_count()} cores, one task thread; Java {oracle.java_version}, Spark "
        f"{spark.version}, Flink {oracle.flink_version}, Python {sys.version.split()[0]}"
    )
    chosen = {
        name: kind
        for name, kind in kinds().items()
        if any(name.startswith(word) for word in (options.keys or name).split(";"))
    }
    if options.linear:
        linear(spark, chosen)
        return
    what = "CPU time" if options.cpu else "wall-clock time"
    print(f"{what}, medians of {options.rounds} rounds; Python UDFs and slow expressions on")
    print(f"{SAMPLE_ROWS:,} of the rows")
    clock = cpu_clock(spark) if options.cpu else time.perf_counter
    results = {}
    for name, kind in chosen.items():
        results[name] = measure(spark, name, kind, options.rows, options.rounds, clock)
        show(name, options.rows * kind.rows_factor, results[name])
    if options.markdown:
        show_markdown(results)
    spark.stop()


if __name__ == "__main__":
    main()
