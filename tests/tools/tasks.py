"""Thirteen tasks of a new user, each solved with what README.md, help() and --help say.

    .venv/bin/python tests/tools/tasks.py
    .venv/bin/python tests/tools/tasks.py 7 9 -v

In a fresh clone, with the environment that README.md makes for the tests and Java for Spark. The
tasks, all or those of these numbers, run one after the other in this folder: lines that begin with
"$ " in a shell, all else as a program of Python. What they print is compared with what Flink's own
classes read in the same savepoints, or with plain Python. A table has the lines of code of each
task, the seconds it took, and the outcome; `-v` shows the code and what it printed.

The exit status is 1 if a task was not solved.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pyarrow.parquet as pq

sys.path.append(str(Path(__file__).parents[1]))

from support.bytes.real_savepoints import Point, point
from support.golden import read

CHECKOUT = Path(__file__).parents[2]
SAVEPOINT = point("2.3.0-heaptimers-canonical")  # the one of examples/data
NEW = point("2.3.0-rocks-canonical")
NATIVE = point("2.3.0-rocksinc-native")
FLINK_1 = point("1.20.5-heap-canonical")
SQL = point("2.3.0-sqlheap-canonical")
TOKEN = "s3cret"


class Step(NamedTuple):
    """Lines of a shell or a program; `fails` says that it ends with an error."""

    text: str
    fails: bool = False

    @property
    def lines(self) -> list[str]:
        return [line for line in self.text.splitlines() if line.strip()]


class Output(NamedTuple):
    """What a step printed."""

    out: str
    err: str


class Task(NamedTuple):
    """A question of a user; `check` raises where its answer is not the true one."""

    question: str
    steps: Sequence[Step]
    check: Callable[..., None]


# --- what is true, without keygroups ------------------------------------------------------


def java_hash(text: str) -> int:
    """Return the JDK's String.hashCode modulo 2^32."""
    units = text.encode("utf-16-be")
    code = 0
    for high, low in zip(units[::2], units[1::2]):
        code = (31 * code + (high << 8 | low)) % 2**32
    return code


def murmur_hash(code: int) -> int:
    """Return Flink's MathUtils.murmurHash."""

    def rotated(word: int, bits: int) -> int:
        return (word << bits | word >> (32 - bits)) % 2**32

    word = rotated(code * 0xCC9E2D51 % 2**32, 15) * 0x1B873593 % 2**32
    word = (rotated(word, 13) * 5 + 0xE6546B64) % 2**32 ^ 4
    word = (word ^ word >> 16) * 0x85EBCA6B % 2**32
    word = (word ^ word >> 13) * 0xC2B2AE35 % 2**32
    word ^= word >> 16
    return abs(word - 2**32) % 2**31 if word >> 31 else word


def key_group(text: str, max_parallelism: int) -> int:
    return murmur_hash(java_hash(text)) % max_parallelism


def subtask(text: str, max_parallelism: int, parallelism: int) -> int:
    return key_group(text, max_parallelism) * parallelism // max_parallelism


def flights(column: str) -> Counter[str]:
    """Return the number of flights of each value of a column."""
    table = pq.read_table(CHECKOUT / "examples/data/nycflights13.parquet", columns=[column])
    return Counter(table[column].to_pylist())


def loads(column: str, max_parallelism: int, parallelism: int) -> list[int]:
    """Return the number of flights of each subtask, keyed by a column of text."""
    load = [0] * parallelism
    for key, records in flights(column).items():
        load[subtask(key, max_parallelism, parallelism)] += records
    return load


def operator_id(uid: str) -> str:
    """Return the id of an operator, as Flink 2.3 wrote it beside the uid."""
    (line,) = (line for line in NEW.truth("metadata") if line.get("uid") == uid)
    return str(line["operator"])


def entries(
    point: Point, uid: str, state: str | None = None, key: str | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the rows that Flink read in keyed state, of all states and keys or of these."""
    wanted = {"operator": operator_id(uid), "state": state, "key": key}
    wanted = {name: value for name, value in wanted.items() if value is not None}
    for line in point.lines(point.entries):
        if line.items() >= wanted.items():
            yield line


# --- the tasks ----------------------------------------------------------------------------

TASKS: list[Task] = []


def task(question: str, *steps: str | Step) -> Callable[[Callable[..., None]], None]:
    """Make the function that follows the check of a new task: it is given each step's output."""

    def add(check: Callable[..., None]) -> None:
        used = [step if isinstance(step, Step) else Step(step) for step in steps]
        TASKS.append(Task(question, used, check))

    return add


@task(
    "Where does a key go, and why?",
    "$ keygroups trace user-89019 --max-parallelism 128 --parallelism 3",
)
def where_a_key_goes(trace: Output) -> None:
    (entry,) = entries(SAVEPOINT, "by-string", "count", "user-89019")
    assert entry["key_group"] == key_group("user-89019", 128)
    assert f"key group    {entry['key_group']} = " in trace.out
    assert f"subtask      {entry['subtask']} = " in trace.out


@task(
    "Which API wrote my job, and which subtask has a key?",
    """
import json
from keygroups.routing_inference import infer_routing

seen = [(tuple(key), subtask) for key, subtask in json.load(open("WORK/seen.json"))]
print(infer_routing(seen, 23))
""",
    Step("""$ keygroups trace "('user-4360', 0)" -m 128 -p 23""", fails=True),
    """$ keygroups trace "('user-4360', 0)" -m 128 -p 23 --type 'SQL_ROW("STRING", "INT")'""",
)
def which_api(inferred: Output, refused: Output, trace: Output) -> None:
    assert "max parallelism 128, SQL_ROW('STRING', 'INT')" in inferred.out
    assert "TUPLE" not in inferred.out
    assert all(name in refused.err for name in ("'TUPLE(STRING, INT)'", "'SQL_ROW("))
    (true,) = (seen for key, seen in seen_in_sql() if key == ["user-4360", 0])
    as_tuple = murmur_hash(31 * java_hash("user-4360")) % 128 * 23 // 128
    assert (true, as_tuple) == (13, 17)
    assert f"subtask      {true} = " in trace.out


def seen_in_sql() -> list[tuple[list[Any], int]]:
    """Return keys of a GROUP BY of two columns, with their subtasks of 23."""
    operator = "8e92d6514aa8ce7d8edc87147109b4a3"
    return [
        ([name, number["int"]], line["key_group"] * 23 // 128)
        for line in SQL.lines(SQL.entries)
        if line["operator"] == operator
        for (_, name), (_, number) in [line["key_fields"]]
    ]


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
    assert {(f"{n:,}", str(key_group(key, 128)), key) for key, n in hot.items()} == {*rows}


@task(
    "What moves from 3 to 4, and which parallelism is better?",
    "$ keygroups plan 128 3 4",
    """
import pyarrow.parquet as pq
from keygroups import arrays

flights = pq.read_table("examples/data/nycflights13.parquet")
load = arrays.key_group_load(flights["dest"], 128)
for recommended in load.recommend(2, 8):
    print(recommended)
""",
)
def what_moves(plan: Output, recommended: Output) -> None:
    moves = sum(group * 3 // 128 != group * 4 // 128 for group in range(128))
    assert f"parallelism 3 -> 4: {moves} move ({moves / 128:.1%}), {128 - moves} stay" in plan.out
    heaviest = {parallelism: max(loads("dest", 128, parallelism)) for parallelism in range(2, 9)}
    best = min(heaviest, key=lambda parallelism: (heaviest[parallelism], parallelism))
    says = f"parallelism {best}: the heaviest subtask has {heaviest[best]:,}, "
    assert recommended.out.startswith(says)
    assert heaviest[4] < heaviest[3]
    assert f"parallelism 4: the heaviest subtask has {heaviest[4]:,}, " in recommended.out


@task(
    "What is in my savepoint of Flink 1?",
    """
from keygroups.savepoint import read_savepoint

uids = ["by-string", "by-long", "by-int", "by-tuple", "session", "tumbling"]
savepoint = read_savepoint("FLINK_1", uids=uids)
print(savepoint)
for uid in uids:
    print(uid, sorted(state.name for state in savepoint.operator(uid).states))
""",
    """$ printf 'by-string\\nsession\\n' > WORK/uids.txt
$ keygroups savepoint FLINK_1 --uids WORK/uids.txt --operator session""",
)
def what_is_in_it(listed: Output, shown: Output) -> None:
    for uid in ("by-string", "by-long", "by-int", "by-tuple", "session", "tumbling"):
        assert re.search(rf"^{uid} +3  128 ", listed.out, re.MULTILINE)
        states = {line["state"] for line in entries(FLINK_1, uid)}
        (line,) = re.findall(rf"^{uid} \[(.*)\]$", listed.out, re.MULTILINE)
        assert states <= set(line.strip("'").split("', '"))
    assert "by-string  " in shown.out
    assert "window-contents: AGGREGATING <STRING, TIME_WINDOW, TUPLE(LONG, INT)>" in shown.out


@task(
    "What is the value of a key?",
    "$ keygroups savepoint NATIVE --operator by-string --state count --key user-5872",
    """
from keygroups.savepoint import read_savepoint

print(read_savepoint("NATIVE").operator("by-string").get("user-5872"))
""",
)
def value_of_a_key(shown: Output, everything: Output) -> None:
    of_key = list(entries(NATIVE, "by-string", key="user-5872"))
    (count,) = (entry["value"]["long"] for entry in of_key if entry["state"] == "count")
    assert re.search(rf"^count  {count}$", shown.out, re.MULTILINE)
    values: dict[str, Any] = eval(everything.out, {"TtlValue": dict})
    assert values.keys() == {entry["state"] for entry in of_key}
    assert values["count"] == count
    of_map = entries(NATIVE, "by-string", "byCity", "user-5872")
    assert values["byCity"] == {entry["user_key"]: entry["value"]["long"] for entry in of_map}


@task(
    "Export a state as Parquet",
    "$ keygroups savepoint NATIVE --operator by-string --state byCity --export WORK/c.parquet",
    """
from keygroups.savepoint import read_savepoint

table = read_savepoint("NATIVE").operator("by-string").to_arrow("byCity")
print(table.num_rows, table["value"].to_numpy().sum())
""",
)
def export(_: Output, arrow: Output) -> None:
    columns = ["key_group", "subtask", "key", "user_key", "value"]
    rows = pq.read_table(work() / "c.parquet", columns=columns).to_pylist()
    true = [
        {name: entry[name] for name in columns} | {"value": entry["value"]["long"]}
        for entry in entries(NATIVE, "by-string", "byCity")
    ]
    assert sorted(rows, key=repr) == sorted(true, key=repr)
    assert arrow.out.split() == [str(len(true)), str(sum(row["value"] for row in true))]


@task(
    "What has changed between two savepoints?",
    "$ keygroups diff examples/data/savepoint NEW --operator by-string",
)
def what_has_changed(diff: Output) -> None:
    for state in ("count", "byCity"):
        old, new = (
            {
                (entry["key"], entry.get("user_key")): entry["value"]
                for entry in entries(savepoint, "by-string", state)
            }
            for savepoint in (SAVEPOINT, NEW)
        )
        both = old.keys() & new.keys()
        equal = sum(old[key] == new[key] for key in both)
        counts = {
            "equal": equal,
            "changed": len(both) - equal,
            "only here": len(old) - len(both),
            "only there": len(new) - len(both),
        }
        line = ", ".join(f"{count} {difference}" for difference, count in counts.items() if count)
        assert re.search(rf"^  {state}: .*\n    {line}$", diff.out, re.MULTILINE)


@task(
    "Change the max parallelism and check the restore",
    """
from keygroups.savepoint import change_max_parallelism, read_savepoint

change_max_parallelism("examples/data/savepoint", 4096, "WORK/4096")
savepoint = read_savepoint("WORK/4096")
print(savepoint.check_restore("by-string", parallelism=200, max_parallelism=4096))
for entry in savepoint.operator("by-string").entries(["count"]):
    print(entry.key_group, entry.value, entry.key)
""",
    Step(
        """
from keygroups.savepoint import read_savepoint

read_savepoint("WORK/4096").check_restore("by-string", 200, 128)
""",
        fails=True,
    ),
)
def change(rewritten: Output, refused: Output) -> None:
    result, *lines = rewritten.out.splitlines()
    assert result == "4096"
    assert sorted(lines) == sorted(
        f"{key_group(entry['key'], 4096)} {entry['value']['long']} {entry['key']}"
        for entry in entries(SAVEPOINT, "by-string", "count")
    )
    says = "keygroups.errors.ParallelismError: max_parallelism must be 4096, "
    assert refused.err.splitlines()[-1].startswith(says)


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
        f"{key_group(key, 128)} {key} {records}" for key, records in flights("carrier").items()
    )


@task(
    "Erase a user's keys",
    """$ echo user-89019 > WORK/keys.txt
$ keygroups savepoint examples/data/savepoint --operator by-string \\
$     --delete-keys WORK/keys.txt --output WORK/erased
$ keygroups savepoint WORK/erased --operator by-string --key user-89019""",
    "$ keygroups diff examples/data/savepoint WORK/erased --json",
)
def erase(report: Output, diff: Output) -> None:
    assert report.out.endswith("key 'user-89019' of by-string, key group 97, subtask 2: nothing\n")
    assert b"user-89019" in (SAVEPOINT.path / "_metadata").read_bytes()
    assert b"user-89019" not in (work() / "erased/_metadata").read_bytes()  # all is inline
    differences: Counter[tuple[str, str]] = Counter()
    for operator in json.loads(diff.out)["operators"]:
        for state in operator["states"]:
            for difference in ("changed", "touched", "only_here", "only_there"):
                differences[difference, state["state"]] += state[difference]
    erased = entries(SAVEPOINT, "by-string", key="user-89019")
    assert +differences == Counter(("only_here", entry["state"]) for entry in erased)


@task(
    "From a running job to the state of its newest savepoint",
    Step("$ keygroups job URL --savepoints", fails=True),
    f"$ KEYGROUPS_FLINK_TOKEN={TOKEN} keygroups job URL --savepoints",
    f"""
from keygroups.job import read_job
from keygroups.savepoint import read_savepoint

job = read_job("URL", headers={{"Authorization": "Bearer {TOKEN}"}})
newest = next(point for point in job.savepoints() if point.path and not point.is_discarded)
print(read_savepoint(newest.path).operator("by-string").get("user-89019", "count"))
""",
)
def from_a_job(refused: Output, listed: Output, state: Output) -> None:
    assert len(refused.err.splitlines()) == 1
    assert "401" in refused.err
    assert "KEYGROUPS_FLINK_TOKEN" in refused.err
    assert f"file:{SAVEPOINT.path}" in listed.out
    assert TOKEN not in listed.out + state.out + listed.err + state.err
    (entry,) = entries(SAVEPOINT, "by-string", "count", "user-89019")
    assert state.out.split() == [str(entry["value"]["long"])]


# --- how they run -------------------------------------------------------------------------

ANSWERS = {line["path"]: line["body"] for line in read("rest")[1]}


class Cluster(BaseHTTPRequestHandler):
    """A REST API with a job of Flink 2.3.0, its recorded answers, for those who have the token."""

    def do_GET(self) -> None:
        status, body = 401, "Unauthorized"
        if self.headers["Authorization"] == f"Bearer {TOKEN}":
            status, body = 200, ANSWERS[self.path]
            body = re.sub(r"file:/[^\"]*/savepoint-[^\"]*", f"file:{SAVEPOINT.path}", body)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def cluster() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Cluster) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def work() -> Path:
    """Return the folder that the tasks write to."""
    return Path(PLACES["WORK"])


PLACES: dict[str, str] = {"VENV": sys.prefix}
OURS = re.compile("PYTHON|KEYGROUPS")  # a new user has set none of these


def run(step: Step) -> Output:
    """Run a step as a user does, and raise where it ends otherwise than it should."""
    text = re.sub(rf"\b({'|'.join(PLACES)})\b", lambda match: PLACES[match[0]], step.text)
    environment = {name: value for name, value in os.environ.items() if not OURS.search(name)}
    folders = environment["PATH"].split(os.pathsep)
    path = [folder for folder in folders if folder != f"{sys.prefix}/bin"]
    if text.startswith("$ "):
        path.insert(0, f"{sys.prefix}/bin")
        command = ["sh", "-ec", text.replace("\n$ ", "\n").removeprefix("$ ")]
    else:
        # Spark's workers are then the system's, as for who calls .venv/bin/python.
        (work() / "job.py").write_text(text)
        command = [sys.executable, str(work() / "job.py")]
    environment["PATH"] = os.pathsep.join(path)
    done = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True)
    assert bool(done.returncode) == step.fails, f"status {done.returncode}: {done.stderr}"
    return Output(done.stdout, done.stderr)


def solve(task: Task, verbose: bool) -> str:
    """Return "solved", or what was not as it should be."""
    outputs = []
    try:
        for step in task.steps:
            outputs.append(run(step))
            if verbose:
                print(step.text.strip(), *outputs[-1], sep="\n\n")
        task.check(*outputs)
    except Exception as error:  # whatever the answer was, the other tasks run too
        frames = traceback.extract_tb(error.__traceback__)
        line = [frame.lineno for frame in frames if frame.filename == __file__][-1]
        return f"not solved, line {line}: {str(error) or type(error).__name__}"
    return "solved"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("numbers", nargs="*", type=int, metavar="N", help="the tasks (all)")
    parser.add_argument("-v", action="store_true", help="show code and output")
    options = parser.parse_args()
    outcomes = set()
    with TemporaryDirectory(prefix="keygroups-tasks-") as folder, cluster() as url:
        PLACES.update(WORK=folder, URL=url)
        PLACES.update(NEW=str(NEW.path), NATIVE=str(NATIVE.path), FLINK_1=str(FLINK_1.path))
        (work() / "seen.json").write_text(json.dumps(seen_in_sql()))
        width = max(len(task.question) for task in TASKS)
        print(f"task  {'question':{width}}  lines  seconds  outcome")
        for number, task in enumerate(TASKS, 1):
            if options.numbers and number not in options.numbers:
                continue
            start = time.perf_counter()
            outcome = solve(task, options.v)
            seconds = time.perf_counter() - start
            lines = sum(len(step.lines) for step in task.steps)
            row = f"{number:4}  {task.question:{width}}  {lines:5}  {seconds:7.1f}  {outcome}"
            print(row, flush=True)
            outcomes.add(outcome)
    return int(outcomes != {"solved"})


if __name__ == "__main__":
    sys.exit(main())
