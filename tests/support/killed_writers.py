"""Programs that write, ended by a signal at some moment, and what they leave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from keygroups.errors import KeyGroupsError
from keygroups.savepoint import read_savepoint

KEYS = 4_000
MAX_PARALLELISM = 720
OLD_MAX_PARALLELISM = 128  # the edited savepoint's
UID = "by-user"
READY = "ready"

WRITER = f"""
import sys
from keygroups.savepoint import SavepointWriter, ValueStateDescriptor
from keygroups.types import LONG, STRING

print("{READY}", flush=True)
with SavepointWriter(sys.argv[1]) as writer:
    states = [ValueStateDescriptor("count", LONG)]
    written = writer.add_operator("{UID}", STRING, states, {MAX_PARALLELISM}, parallelism=5)
    keys = [f"user-{{number}}" for number in range({KEYS})]
    for key in sorted(keys, key=written.key_group):
        written.write("count", key, int(key[5:]))
"""
REWRITER = f"""
import sys
from keygroups.savepoint import change_max_parallelism

print("{READY}", flush=True)
change_max_parallelism(sys.argv[2], {MAX_PARALLELISM}, sys.argv[1], parallelism=5)
"""
EDITOR = f"""
import sys
from keygroups.savepoint import SavepointWriter

print("{READY}", flush=True)
with SavepointWriter.from_existing_savepoint(sys.argv[2], sys.argv[1]) as writer:
    writer.operator("{UID}").map_entries("count", lambda entry: entry.value)
    writer.add_operator_from(sys.argv[2], "{UID}", "again")
"""
COMMAND = f"""
import sys
import keygroups.cli

run = keygroups.cli._run

def ready(arguments):
    print("{READY}", flush=True)
    return run(arguments)

keygroups.cli._run = ready
sys.exit(keygroups.cli.main())
"""
_BUILDER = """
import sys
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
for name in ("spark.driver.bindAddress", "spark.driver.host"):
    builder = builder.config(name, "127.0.0.1")
"""
_SPARK = f"""{_BUILDER}
spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
"""
SPARK_WRITER = f"""{_SPARK}
from keygroups.spark.savepoint import KeyedState, ValueState, write_savepoint
from keygroups.types import LONG, STRING

users = spark.range({KEYS}).select(F.concat(F.lit("user-"), F.col("id")).alias("user"), "id")
users.count()
print("{READY}", flush=True)
counts = KeyedState(users, "user", STRING, {{"count": ValueState("id", LONG)}})
write_savepoint(None, sys.argv[1], {{"{UID}": counts}}, {MAX_PARALLELISM}, parallelism=5)
"""
SPARK_EDITOR = f"""{_SPARK}
from keygroups.spark import edit_savepoint

spark.range({KEYS}).count()
print("{READY}", flush=True)
with edit_savepoint(spark, sys.argv[2], sys.argv[1]) as writer:
    writer.operator("{UID}").map_entries("count", lambda entry: entry.value)
"""

# The first attempt of each task is killed half-way, or stands still until another one is done.
SPARK_ATTEMPTS = f"""{_BUILDER}
import os, signal, time
from pathlib import Path
from pyspark import TaskContext
from keygroups.spark._savepoint import arrow_map, entry_files, jobs
from keygroups.spark.savepoint import KeyedState, ListState, ValueState, write_savepoint
from keygroups.types import LONG, STRING

path, attempts, master, seconds = sys.argv[1:]

class Killed:
    def __init__(self, function):
        self.function = function

    def __call__(self, batches):
        return self.function(self.killed(batches))

    def killed(self, batches):
        task = TaskContext.get()
        where = f"{{task.stageId()}}-{{task.partitionId()}}"
        Path(attempts, f"{{where}}-{{task.attemptNumber()}}").touch()
        for number, batch in enumerate(batches):
            if number == 3 and task.attemptNumber() == 0:
                if task.partitionId() % 2:
                    os.kill(os.getpid(), signal.SIGKILL)
                time.sleep(float(seconds))
                Path(attempts, f"{{where}}-went-on").touch()
            yield batch

def killed_map(df, function, schema):
    return arrow_map.map_in_arrow(df, Killed(function), schema)

jobs.map_in_arrow = entry_files.map_in_arrow = killed_map
for name, value in {{
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.5",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
}}.items():
    builder = builder.config(name, value)
if master == "two hosts":  # as an attempt is not repeated on the host of another one
    import atexit, pyspark, socket, subprocess
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    master = f"spark://127.0.0.1:{{port}}"
    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    def run(name, *arguments):
        names = ("--webui-port", "0", *arguments)
        command = [program, f"org.apache.spark.deploy.{{name}}", *names]
        quiet = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
        atexit.register(subprocess.Popen(command, **quiet).terminate)
    run("master.Master", "--host", "127.0.0.1", "--port", str(port))
    for host in ("127.0.0.1", "127.0.0.2"):
        folder = f"{{attempts}}-{{host}}"
        run("worker.Worker", "--host", host, "-c", "8", "-m", "1g", "-d", folder, master)
spark = builder.master(master).getOrCreate()
print("{READY}", flush=True)
rows = spark.range(0, {KEYS}, 1, 6)
users = rows.select(F.concat(F.lit("user-"), F.col("id")).alias("user"), "id")
states = {{"count": ValueState("id", LONG), "list": ListState("id", LONG)}}
counts = KeyedState(users, "user", STRING, states)
write_savepoint(None, path, {{"{UID}": counts}}, {MAX_PARALLELISM}, parallelism=5)
spark.stop()
"""


def start(program: str, *arguments: Path | str) -> subprocess.Popen[str]:
    """Start a program, and return when it begins to write."""
    started = subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if program is COMMAND else None,
        text=True,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
        start_new_session=True,  # a process group of it and what it starts, such as Spark's JVM
    )
    assert started.stdout is not None
    assert started.stdout.readline() == f"{READY}\n"
    return started


def run_time(program: str, *arguments: Path | str) -> float:
    """Return the seconds that a program takes that nobody kills."""
    with start(program, *arguments) as started:
        begin = time.perf_counter()
        assert started.wait() == 0
        return time.perf_counter() - begin


def kill(started: subprocess.Popen[str], after: float) -> float | None:
    """Kill a program after some seconds, and what it started; return how long it took if less."""
    with started:
        begin = time.perf_counter()
        try:
            assert started.wait(after) == 0
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            return None
        return time.perf_counter() - begin


def interrupt(started: subprocess.Popen[str], after: float) -> tuple[int, str]:
    """Send SIGINT to a command after some seconds; return its status and what it complained of."""
    with started:
        assert started.stderr is not None
        with suppress(subprocess.TimeoutExpired):
            started.wait(after)
        started.send_signal(signal.SIGINT)
        complaint = started.stderr.read()
        return started.wait(), complaint


def readable_savepoints(folder: Path) -> Iterator[Path]:
    """Yield every folder in a folder in which a savepoint is read."""
    for metadata in folder.rglob("_metadata"):
        try:
            read_savepoint(metadata.parent)
        except KeyGroupsError:
            continue
        yield metadata.parent


def check_whole(path: Path) -> None:
    """Check that a savepoint has all that the programs write."""
    operator = read_savepoint(path).operator(UID)
    assert operator.max_parallelism in (MAX_PARALLELISM, OLD_MAX_PARALLELISM)
    found = {entry.key: entry.value for entry in operator.entries()}
    assert found == {f"user-{number}": number for number in range(KEYS)}
