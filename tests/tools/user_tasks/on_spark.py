"""Tasks of people whose data is in PySpark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pyarrow.parquet as pq

from user_tasks.asking import NATIVE, HalfSolvedError, Output, Step, tasks, work
from user_tasks.truth import entries, flights, java_hash, loads, murmur_hash, subtask

TASKS, task = tasks()
HEAD = """
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
"""


@task("Run the main example on Spark", "$ VENV/bin/python examples/route_events.py")
def main_example(printed: Output) -> None:
    check_aircraft(printed)


def check_aircraft(printed: Output) -> None:
    for index, records in enumerate(loads_of_aircraft()):
        assert re.search(rf"^ +{index} +{records:,} ", printed.out, re.MULTILINE)


def loads_of_aircraft() -> list[int]:
    """Return the number of flights with a tail number of each of 4 subtasks."""
    load = [0] * 4
    for key, records in flights("tailnum").items():
        if key is not None:
            load[subtask(key, 128, 4)] += records
    return load


MESSY = """
df = spark.sql('''
    select if(id = 3, null, concat('user-', id)) as `User Id`, named_struct('City.Name',
    concat('c', id)) as `at`, array('a', concat('b', id)) as tags from range(5)
''')
"""


@task(
    "Route messy columns: spaces, dots, nulls, nested, arrays",
    HEAD
    + MESSY
    + """
from keygroups.spark import with_routing
for key in ("`User Id`", "at.`City.Name`"):
    print(*(f"{row.subtask}" for row in with_routing(df, key, 128, 5).orderBy(key).collect()))
""",
    Step(
        HEAD
        + MESSY
        + "from keygroups.spark import with_routing\nwith_routing(df, 'tags', 128, 5)",
        True,
    ),
    HEAD
    + MESSY
    + """
from keygroups.spark import with_routing
from keygroups.types import LIST, STRING
routed = with_routing(df, "tags", 128, 5, LIST(STRING))
print(*(f"{row.subtask}" for row in routed.orderBy("tags").collect()))
""",
)
def messy_columns(routed: Output, refused: Output, lists: Output) -> None:
    users = ["None", *(f"{subtask(f'user-{number}', 128, 5)}" for number in (0, 1, 2, 4))]
    cities = [f"{subtask(f'c{number}', 128, 5)}" for number in range(5)]
    assert routed.out.split() == users + cities
    assert "such as LIST(STRING)" in refused.err.splitlines()[-1]
    codes = [(31 * (31 + java_hash("a")) + java_hash(f"b{number}")) % 2**32 for number in range(5)]
    assert lists.out.split() == [f"{murmur_hash(code) % 128 * 5 // 128}" for code in codes]


@task(
    "Lay a DataFrame of Spark out as the job reads it",
    """
from keygroups.spark import repartition_by_subtask, with_routing
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
flights = spark.read.parquet("examples/data/nycflights13.parquet")
routed = with_routing(flights, "carrier", 128, 4)
placed = repartition_by_subtask(routed, "carrier", 128, 4)
placed.drop("key_group").write.partitionBy("subtask").parquet("WORK/routed")
""",
)
def lay_out(_: Output) -> None:
    written = pq.read_table(work() / "routed").to_pylist()
    seen = Counter((row["carrier"], row["subtask"]) for row in written)
    true = {(key, subtask(key, 128, 4)): records for key, records in flights("carrier").items()}
    assert seen == true


@task(
    "The same, of a key that is sometimes null",
    Step(
        HEAD
        + """
from keygroups.spark import repartition_by_subtask
flights = spark.read.parquet("examples/data/nycflights13.parquet")
repartition_by_subtask(flights, "tailnum", 128, 4).write.parquet("WORK/refused")
""",
        fails=True,
    ),
    HEAD
    + """
from keygroups.spark import repartition_by_subtask
flights = spark.read.parquet("examples/data/nycflights13.parquet")
placed = repartition_by_subtask(flights, "tailnum", 128, 4, nulls="drop")
print(placed.count(), placed.rdd.getNumPartitions())
""",
)
def null_keys(refused: Output, placed: Output) -> None:
    assert "nulls='drop'" in refused.err
    assert placed.out.split() == [f"{sum(loads_of_aircraft())}", "4"]


@task(
    "Join rows with a table of metrics per subtask",
    HEAD
    + """
from keygroups.spark import with_routing
metrics = spark.createDataFrame([(0, 97), (1, 20), (2, 30), (3, 10)], "subtask int, cpu int")
flights = spark.read.parquet("examples/data/nycflights13.parquet")
joined = with_routing(flights, "carrier", 128, 4).join(metrics, "subtask")
for row in joined.groupBy("subtask", "cpu").count().collect():
    print(*row)
""",
)
def join_metrics(joined: Output) -> None:
    busy = zip((97, 20, 30, 10), loads("carrier", 128, 4))
    true = {f"{index} {cpu} {load}" for index, (cpu, load) in enumerate(busy) if load}
    assert {*joined.out.splitlines()} == true


@task(
    "Query the state of a checkpoint by SQL: join, filter",
    HEAD
    + """
from keygroups.spark import read_keyed_state
for state in ("count", "byCity"):
    read_keyed_state(spark, "NATIVE", "by-string", state).createOrReplaceTempView(state)
for row in spark.sql("select c.key, b.user_key, c.value from count c join byCity b using (key) "
                     "where c.value > 3").collect():
    print(row)
""",
)
def state_by_sql(rows: Output) -> None:
    counts = {e["key"]: e["value"]["long"] for e in entries(NATIVE, "by-string", "count")}
    true = [
        f"Row(key={e['key']!r}, user_key={e['user_key']!r}, value={counts[e['key']]})"
        for e in entries(NATIVE, "by-string", "byCity")
        if counts.get(e["key"], 0) > 3
    ]
    assert true
    assert sorted(rows.out.splitlines()) == sorted(true)


@task(
    "How many bytes has each state? Count them on Spark",
    HEAD
    + """
from keygroups.spark import summarize_savepoint
[by_string] = [each for each in summarize_savepoint(spark, "NATIVE").operators
               if each.operator == "by-string"]
for state in by_string.states:
    print(state.state, state.entries, state.bytes)
""",
)
def bytes_on_spark(printed: Output) -> None:
    rows = {
        name: (int(count), int(size))
        for name, count, size in map(str.split, printed.out.splitlines())
    }
    for state in ("count", "byCity"):
        count, size = rows[state]
        assert count == sum(1 for _ in entries(NATIVE, "by-string", state))
        assert size > count


@task(
    "A format of spark.read, and a table of the catalog",
    Step(
        HEAD
        + """
from keygroups.spark import register_data_source
name = register_data_source(spark)
spark.read.format(name).option("operator", "by-strin").load("NATIVE")
""",
        fails=True,
    ),
    HEAD.replace("builder", 'builder.config("spark.sql.warehouse.dir", "WORK/warehouse")')
    + """
from keygroups.spark import register_data_source
name = register_data_source(spark)
count = spark.read.format(name).option("operator", "by-string").option("state", "count")
print(count.load("NATIVE").where("value = 1").count())
spark.sql("create table counts using `flink-state` options (operator 'by-string', state 'count') "
          "location 'NATIVE'")
print(spark.sql("select count(*) n from counts").first().n)
spark.sql("drop table counts")
""",
)
def format_of_spark(refused: Output, rows: Output) -> None:
    values = [e["value"]["long"] for e in entries(NATIVE, "by-string", "count")]
    assert rows.out.split() == [f"{values.count(1)}", f"{len(values)}"]
    says = [line for line in refused.err.splitlines() if "InvalidValueError" in line]
    assert any("operator" in line and "by-strin" in line for line in says)
    if "data_source.py" in refused.err:
        raise HalfSolvedError("a misspelt operator gives the traceback of a worker")


@task(
    "Write each micro-batch of a stream by subtask",
    HEAD
    + """
from keygroups.spark import repartition_by_subtask
def write(batch, number):
    placed = repartition_by_subtask(batch, "carrier", 128, 4)
    placed.write.mode("append").parquet("WORK/stream")
flights = spark.read.parquet("examples/data/nycflights13.parquet")
flights.limit(500).write.parquet("WORK/arrived")
stream = spark.readStream.schema(flights.schema).parquet("WORK/arrived")
stream.writeStream.foreachBatch(write).trigger(availableNow=True).option(
    "checkpointLocation", "WORK/offsets").start().awaitTermination()
""",
)
def micro_batches(_: Output) -> None:
    folders = list((work() / "stream").glob("*.parquet"))
    assert sum(pq.read_table(file).num_rows for file in folders) == 500
    for file in folders:
        keys = {*pq.read_table(file)["carrier"].to_pylist()}
        assert len({subtask(key, 128, 4) for key in keys}) <= 1


def no_connect() -> str:
    return "" if find_spec("grpc") else "Spark Connect needs grpcio, as pyspark[connect] has it"


@task(
    "Over Spark Connect, without a JVM to reach",
    """
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
from keygroups.spark import with_routing

spark = SparkSession.builder.remote("local[1]").getOrCreate()
flights = spark.read.parquet("examples/data/nycflights13.parquet")
for row in with_routing(flights, "carrier", 128, 4).groupBy("subtask").count().collect():
    print(*row)
""",
    needs=no_connect,
)
def over_connect(rows: Output) -> None:
    check_loads(rows)


def check_loads(rows: Output) -> None:
    true = {f"{index} {load}" for index, load in enumerate(loads("carrier", 128, 4)) if load}
    assert {*rows.out.splitlines()} == true


def oldest_python() -> str:
    """Return the path of a Python 3.10, "" if there is none; a shim of pyenv may run nothing."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for candidate in ("python3.10", *map(str, root.glob("versions/3.10.*/bin/python"))):
        path = shutil.which(candidate)
        if path and not subprocess.run([path, "--version"], capture_output=True).returncode:
            return path
    return ""


def no_oldest() -> str:
    return "" if oldest_python() else "there is no Python 3.10"


@task(
    "With PySpark 3.5 on Python 3.10",
    """$ OLDEST_PYTHON -m venv WORK/oldest
$ WORK/oldest/bin/pip install -q 'pyspark==3.5.*' setuptools 'CHECKOUT[spark]'
$ PYSPARK_PYTHON=WORK/oldest/bin/python WORK/oldest/bin/python examples/route_events.py""",
    needs=no_oldest,
)
def oldest(printed: Output) -> None:
    check_aircraft(printed)


@task(
    "SQL functions, for those who write SQL alone",
    HEAD
    + """
from keygroups.spark import register
register(spark)
spark.read.parquet("examples/data/nycflights13.parquet").createOrReplaceTempView("flights")
for row in spark.sql("select flink_subtask_string(carrier, 128, 4) s, count(*) n from flights "
                     "group by s").collect():
    print(*row)
""",
)
def sql_functions(rows: Output) -> None:
    check_loads(rows)


@task(
    "Bootstrap a GROUP BY of SQL from a template",
    """
from keygroups.savepoint import SavepointWriter, read_savepoint

with SavepointWriter("WORK/group-by", template="SQL_JOB") as writer:
    sums = writer.add_operator("GroupAggregate[4]", sort=True)
    sums.write("accState", ("ann",), (3, 5, "x"), last_access=1_700_000_000_000)
    sums.write("accState", ("bob",), (1, 2, "y"), last_access=1_700_000_000_000)
made = read_savepoint("WORK/group-by")
print(made)
[sums] = made.operators
print(sums.get(("ann",), "accState"))
""",
)
def group_by(made: Output) -> None:
    assert "3, 5, 'x'" in made.out.splitlines()[-1]
    names = [line for line in made.out.splitlines() if line.startswith("GroupAggregate[4]")]
    if not names:
        raise HalfSolvedError("the name of the template's operator is lost")


@task(
    "Why is a subtask hot?",
    """
from keygroups.spark import skew_report
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
flights = spark.read.parquet("examples/data/nycflights13.parquet")
print(skew_report(flights, "carrier", 128, 4))
""",
    """
import pyarrow.parquet as pq
from keygroups.arrays import skew_report

flights = pq.read_table("examples/data/nycflights13.parquet")
print(skew_report(flights, "carrier", 128, 4))
""",
)
def why_hot(spark: Output, arrays: Output) -> None:
    assert spark.out.strip() == arrays.out.strip()
    for index, records in enumerate(loads("carrier", 128, 4)):
        assert re.search(rf"^ +{index} +{records:,} ", arrays.out, re.MULTILINE)
    hot = {key: n for key, n in flights("carrier").items() if subtask(key, 128, 4) == 0}
    rows = re.findall(r"^ *([\d,]+) +[\d.]+% +(\d+)  '(\w\w)'$", arrays.out, re.MULTILINE)
    true = {(f"{n:,}", f"{murmur_hash(java_hash(key)) % 128}", key) for key, n in hot.items()}
    assert true == {*rows}


@task(
    "Bootstrap a savepoint from Spark",
    Step(
        """
from keygroups.spark import KeyedState, ValueState, write_savepoint
from keygroups.types import LONG, STRING
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
flights = spark.read.parquet("examples/data/nycflights13.parquet")
flown = {"flights": ValueState("count", LONG)}
state = KeyedState(flights.groupBy("carrier").count(), "carrier", STRING, flown)
savepoint = write_savepoint(None, "WORK/flown", {"by-carrier": state}, 128, parallelism=4)
for entry in savepoint.operator("by-carrier").entries():
    print(entry.key_group, entry.key, entry.value)
""",
        fails=True,
    ),
    "$ PYSPARK_PYTHON=VENV/bin/python VENV/bin/python WORK/job.py",
)
def bootstrap(refused: Output, written: Output) -> None:
    (line,) = (line for line in refused.err.splitlines() if "PythonWorkerError: " in line)
    assert "PYSPARK_PYTHON" in line
    assert f"such as {sys.prefix}/bin/python" in line
    assert sorted(written.out.splitlines()) == sorted(
        f"{murmur_hash(java_hash(key)) % 128} {key} {records}"
        for key, records in flights("carrier").items()
    )
