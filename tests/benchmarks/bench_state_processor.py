"""Savepoints read, written and changed against Flink's own State Processor API in a JVM.

Run `python tests/benchmarks/bench_state_processor.py --classes PATH [--entries N] [--rounds N]
[WORK ...]`; it needs the extra `flink`, a JDK and, which PyPI has not, the classes of Flink's
module flink-state-processor-api: PATH, or what the environment variable STATE_PROCESSOR names, is
a class path of its jar or of a folder of classes, of the version of Flink that is installed.

Each side is a process of its own, and the sides take turns. A cell has the CPU microseconds an
entry: those of the whole process, JVM and garbage collector, less those of one that does the same
with a thousand entries. What reads has one process for both, since processes that do the same
differ by more in what they take to start than a million entries take: it reads the thousand, and
then, three times, the thousand and all, of which the difference is a cell. The first time has
what a JVM's compilers do for it, the later ones less; where others have the ratio of processes,
these rows have the times without the compilers, ours and theirs. Of `get`, which takes one key, a
cell has the milliseconds of the call, and there of the process. It also has the most MB of the
process. Both sides print the number of entries they read, and the sums of their numbers and of
the characters of their texts, which must be equal; a savepoint written here is read again by the
State Processor API. The savepoints that are read are those that it wrote, RocksDB's with RocksDB's
own snapshots. `--memory` gives a JVM's heap. A JVM takes 10 s and more to start: beside other
work, or with few entries, that hides what they take.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).parents[1]))

from support.flink.flink_oracle import flink_class_path, flink_jar, local_session
from support.flink.flink_sql import JAVA_FOLDER, OPENED_PACKAGES, jdk_folder

from keygroups.savepoint import (
    Operator,
    Pojo,
    Row,
    SavepointWriter,
    change_max_parallelism,
    read_savepoint,
)

ENTRIES, FEW, ROUNDS, GOAL = 500_000, 1_000, 1, 5
TIMES = ("first", "again", "once more")
PROGRAM, UID, STATE = "StateProcessor", "visits", "s"
NEW_MAX_PARALLELISM, BATCH = 4_096, 65_536
CREATED = 1_700_000_000_000
POJO = f"{PROGRAM}$Visit"


def operator(path: str) -> Operator:
    return read_savepoint(path).operator(UID)


def show(count: int, numbers: int, texts: int) -> None:
    print(count, numbers, texts)


def read_paths(side: str, kind: str, paths: Sequence[str]) -> None:
    """Have a side read some paths, and print the CPU seconds of each behind its sums.

    Behind them are those of a JVM's compilers, and at the end those of all.
    """
    clock: Callable[[], float] = time.process_time
    of_compilers: Callable[[], float] = float
    if side == "read_spark":
        import bench_spark_savepoint

        clock = bench_spark_savepoint.cpu_seconds
        of_compilers = bench_spark_savepoint.compiler_seconds
    for path in paths:
        before, compiled = clock(), of_compilers()
        OURS[side](kind, path)
        compiled = of_compilers() - compiled
        print(clock() - before, compiled)
    print(clock())


def read_entries(kind: str, path: str) -> None:
    """Read entry by entry."""
    count = numbers = texts = 0
    for entry in operator(path).entries():
        count += 1
        texts += len(entry.key) + len(entry.user_key or "")
        value = entry.value
        if kind == "POJO":
            numbers += value.id + int(2 * value.score) + value.count
            numbers += value.created + value.active
            texts += len(value.name) + len(value.city) + len(value.note or "")
        elif kind == "SQL_ROW":
            numbers += value[0] + int(value[2] * 100)
            texts += len(value[1])
        else:
            numbers += value
    show(count, numbers, texts)


def read_columns(kind: str, path: str) -> None:
    """Read batches of Arrow."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def total(column: Any) -> int:
        return int(pc.sum(column, min_count=0).as_py())

    count = numbers = texts = 0
    for batch in operator(path).to_arrow_batch_reader(STATE):
        count += len(batch)
        value = batch["value"]
        columns = [batch["key"]]
        if kind == "MAP":
            columns.append(batch["user_key"])
        if pa.types.is_struct(value.type):
            names = [field.name for field in value.type]
            columns += [value.field(name) for name in names if name != "row_kind"]
        else:
            columns.append(value)
        for column in columns:
            if pa.types.is_string(column.type):
                texts += total(pc.utf8_length(column))
            elif pa.types.is_decimal(column.type):
                numbers += int(pc.sum(column).as_py() * 100)
            elif pa.types.is_floating(column.type):
                numbers += int(2 * pc.sum(column).as_py())
            else:
                numbers += total(column)
    show(count, numbers, texts)


def read_spark(kind: str, path: str) -> None:
    """Read with Spark."""
    from pyspark.sql import functions as F

    from keygroups.spark import read_keyed_state

    spark = local_session("local[1]")  # All paths have the same session.
    df = read_keyed_state(spark, path, UID, columns=["key", "value"])
    numbers, texts = [], [F.length("key")]
    for name, type_name in df.select("value.*").dtypes:
        column = F.col("value")[name]
        if type_name == "string":
            texts.append(F.length(column))
        elif type_name == "double":
            numbers.append((2 * column).cast("long"))
        else:
            numbers.append(column.cast("long"))
    sums = [
        sum((F.coalesce(F.sum(column), F.lit(0)) for column in some), F.lit(0))
        for some in (numbers, texts)
    ]
    [row] = df.agg(F.count("key"), *sums).collect()
    show(*row)


def rows(kind: str, count: int) -> Iterator[tuple[str, Any]]:
    """Yield the rows that are written one by one."""
    for number in range(count):
        digits = f"{number:09d}"
        value: Any = number
        if kind == "POJO":
            value = Pojo(
                POJO,
                {
                    "id": number,
                    "name": f"name-{digits}",
                    "city": "Berlin" if number % 2 else "Hamburg",
                    "score": number / 2,
                    "count": number % 1000,
                    "active": number % 2 == 0,
                    "created": CREATED + number,
                    "note": "a note of a visit" if number % 10 else None,
                },
            )
        elif kind == "SQL_ROW":
            value = Row((number, f"a name of {digits}", Decimal(number).scaleb(-2)))
        yield f"user-{digits}", value


def batches(kind: str, count: int, schema: Any) -> Iterator[Any]:
    """Yield the same rows as batches of Arrow."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    for start in range(0, count, BATCH):
        numbers = np.arange(start, min(start + BATCH, count))
        digits = pc.utf8_lpad(pc.cast(pa.array(numbers), pa.string()), 9, "0")

        def text(before: str, digits: Any = digits) -> Any:
            return pc.binary_join_element_wise(before, digits, "")

        even = numbers % 2 == 0
        if kind == "POJO":
            fields = {
                "id": pa.array(numbers),
                "name": text("name-"),
                "city": pc.if_else(pa.array(even), "Hamburg", "Berlin"),
                "score": pa.array(numbers / 2),
                "count": pa.array((numbers % 1000).astype(np.int32)),
                "active": pa.array(even),
                "created": pa.array(CREATED + numbers),
                "note": pc.if_else(
                    pa.array(numbers % 10 == 0), pa.scalar(None, pa.string()), "a note of a visit"
                ),
            }
        elif kind == "SQL_ROW":
            cents = pc.multiply(pc.cast(pa.array(numbers), pa.decimal128(19, 0)), _cent(pa))
            fields = {"f0": pa.array(numbers), "f1": text("a name of "), "f2": cents}
        else:
            fields = {}
        value = pa.array(numbers)
        if fields:
            of_value = schema.field("value").type
            arrays = [
                pa.array(["+I"] * len(numbers))
                if field.name == "row_kind"
                else pc.cast(fields[field.name], field.type)
                for field in of_value
            ]
            value = pa.StructArray.from_arrays(arrays, fields=[*of_value])
        yield pa.RecordBatch.from_arrays([text("user-"), value], ["key", "value"])


def _cent(pa: Any) -> Any:
    return pa.scalar(Decimal("0.01"), pa.decimal128(3, 2))


def write_rows(kind: str, template: str, path: str, count: str) -> None:
    """Write row by row."""
    with SavepointWriter(path, template=template) as writer:
        operator = writer.add_operator(UID, sort=True)
        for key, value in rows(kind, int(count)):
            operator.write(STATE, key, value)


def write_tables(kind: str, template: str, path: str, count: str) -> None:
    """Write batches of Arrow."""
    import pyarrow as pa

    schema = operator(template).to_arrow_batch_reader(STATE).schema
    tables = batches(kind, int(count), schema)
    first = next(tables)

    def all_of_them() -> Iterator[Any]:
        yield first
        yield from tables

    with SavepointWriter(path, template=template) as writer:
        reader = pa.RecordBatchReader.from_batches(first.schema, all_of_them())
        writer.add_operator(UID, sort=True).write_table(STATE, reader)


def change(kind: str, path: str, new: str) -> None:
    """Change the max parallelism."""
    change_max_parallelism(path, NEW_MAX_PARALLELISM, new)


def get(kind: str, path: str, key: str) -> None:
    """Look one key up, and print the CPU time of the best of three calls."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        [value] = operator(path).get(key).values()
        best = min(best, time.process_time() - start)
    show(1, value, len(key))
    print(best)


OURS: dict[str, Callable[..., None]] = {
    side.__name__: side
    for side in (
        read_entries,
        read_columns,
        read_spark,
        write_rows,
        write_tables,
        change,
        get,
    )
}


class Work(NamedTuple):
    """A work: the kind of values, the state backend, the State Processor API's verb, and ours."""

    kind: str
    backend: str
    verb: str
    ours: tuple[str, ...]


READ, WRITTEN = ("read_columns", "read_entries"), ("write_tables", "write_rows")
WORKS = {
    "read-long": Work("LONG", "hashmap", "read", READ),
    "read-rocksdb": Work("LONG", "rocksdb", "read", READ),
    "read-map": Work("MAP", "hashmap", "read", READ),
    "read-pojo": Work("POJO", "hashmap", "read", (*READ, "read_spark")),
    "read-sql-row": Work("SQL_ROW", "hashmap", "read", READ),
    "write-long": Work("LONG", "hashmap", "write", WRITTEN),
    "write-pojo": Work("POJO", "hashmap", "write", WRITTEN),
    "write-sql-row": Work("SQL_ROW", "hashmap", "write", WRITTEN),
    "change": Work("LONG", "hashmap", "change", ("change",)),
    "get": Work("LONG", "hashmap", "get", ("get",)),
}


class Took(NamedTuple):
    """CPU seconds and the most MB of a process, and what it printed."""

    seconds: float
    megabytes: int
    printed: list[str]


class Net(NamedTuple):
    """CPU microseconds an entry, and those of them that are not of a JVM's compilers."""

    whole: float
    work: float


def run(command: list[str]) -> Took:
    """Run a process to its end."""
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        output.seek(0)
        printed = output.read().split()
    return Took(usage.ru_utime + usage.ru_stime, usage.ru_maxrss >> 10, printed)


class Race:
    """Both sides, and the savepoints that they read: of all entries, and of a few."""

    def __init__(self, folder: Path, classes: str, entries: int, heap: str) -> None:
        jar, jdk = flink_jar(), jdk_folder()
        if jar is None or jdk is None:
            sys.exit("the benchmark needs the extra `flink` and a JDK")
        path = os.pathsep.join([str(folder), classes, flink_class_path(jar), f"{jar.parent}/*"])
        source = str(JAVA_FOLDER / f"{PROGRAM}.java")
        compiler = [str(jdk / "javac"), "-nowarn", "-d", str(folder), "-cp", path]
        subprocess.run([*compiler, source], check=True)
        self._java = [str(jdk / "java"), f"-Xmx{heap}", "-XX:+UseSerialGC"]
        self._java += [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED_PACKAGES]
        self._java += [f"-Djava.io.tmpdir={folder}", "-Dlog4j2.level=ERROR", "-cp", path, PROGRAM]
        self._folder = folder
        self.entries = entries
        self._runs = 0

    def theirs(self, work: Work, *arguments: str, verb: str | None = None) -> Took:
        """Run the State Processor API."""
        return run([*self._java, work.kind, work.backend, verb or work.verb, *arguments])

    def ours(self, work: Work, side: str, *arguments: str) -> Took:
        """Run a side of ours."""
        took = run([sys.executable, __file__, "--side", side, work.kind, *arguments])
        if work.verb in ("read", "get"):  # they print their own time
            *printed, seconds = took.printed
            return Took(float(seconds), took.megabytes, printed)
        return took

    def savepoint(self, work: Work, count: int) -> str:
        """Return a savepoint that the State Processor API wrote, when it is first asked for."""
        path = self._folder / f"{work.kind}-{work.backend}-{count}"
        if not path.exists():
            self.theirs(work, str(path), str(count), verb="write")
        return str(path)

    def new(self) -> str:
        """Return a path to write a savepoint at."""
        self._runs += 1
        return str(self._folder / f"new-{self._runs}")

    def side(self, work: Work, name: str, count: int) -> tuple[Took, list[str]]:
        """Return the time of a side, and the sums to compare."""
        mine = name != "theirs"
        if work.verb == "write":
            new = self.new()
            if mine:
                took = self.ours(work, name, self.savepoint(work, FEW), new, str(count))
            else:
                took = self.theirs(work, new, str(count))
            return took, self._read_and_removed(work, new)
        old = self.savepoint(work, count)
        if work.verb == "change":
            new = self.new()
            took = self.ours(work, name, old, new) if mine else self.theirs(work, old, new)
            return took, self._read_and_removed(work, new)
        arguments = [old, f"user-{count // 2:09d}"]
        took = self.ours(work, name, *arguments) if mine else self.theirs(work, *arguments)
        return took, took.printed

    def _read_and_removed(self, work: Work, path: str) -> list[str]:
        found = self.theirs(work, path, verb="read").printed
        shutil.rmtree(path)
        return found[:3]

    def measure_reading(self, name: str) -> None:
        """Print the rows of each side of ours that reads, one for each time that all is read."""
        work, few = WORKS[name], FEW
        paths = [self.savepoint(work, count) for _ in TIMES for count in (few, self.entries)]
        paths.insert(0, paths[0])  # the first one is of what a process takes to start
        best: dict[str, tuple[Took, list[Net]]] = {}
        for _ in range(self.rounds):
            results = set()
            for side in ("theirs", *work.ours):
                if side == "theirs":
                    took = self.theirs(work, *paths)
                else:
                    took = self.ours(work, side, *paths)
                lines = [took.printed[start : start + 5] for start in range(0, 5 * len(paths), 5)]
                results.add(tuple(tuple(sums) for *sums, _, _ in lines))
                times = [(float(cpu), float(compilers)) for *_, cpu, compilers in lines[1:]]
                net = [*map(self._net, times[::2], times[1::2])]
                known, net_before = best.get(side, (took, net))
                best[side] = min(took, known), [*map(min, net, net_before)]
            [_] = results  # the sides have the same numbers of entries, and sums
        theirs, of_theirs = best["theirs"]
        for side in work.ours:
            mine, of_mine = best[side]
            for when, ours_, theirs_ in zip(TIMES, of_mine, of_theirs):
                ratio, of_work = (other / own for other, own in zip(theirs_, ours_))
                mark = "" if ratio >= GOAL else ", missed"
                print(
                    f"| {name} | `{side}`, {when} | {ours_.whole:.3f} | {theirs_.whole:.3f} | "
                    f"{ratio:,.1f} | {GOAL}{mark} | {ours_.work:.3f}, {theirs_.work:.3f}: "
                    f"{of_work:,.1f} | {mine.megabytes:,} | {theirs.megabytes:,} |",
                    flush=True,
                )

    def _net(self, few: tuple[float, float], all_: tuple[float, float]) -> Net:
        """Return the microseconds of an entry, of CPU times and what compilers have of these."""
        took, compiled = (end - start for start, end in zip(few, all_))
        each = 1e6 / (self.entries - FEW)
        return Net(took * each, (took - compiled) * each)

    def measure(self, name: str) -> None:
        """Print a row for each side of ours, of another verb."""
        work = WORKS[name]
        best: dict[tuple[str, int], Took] = {}
        for _ in range(self.rounds):
            for count in (self.entries, FEW):
                results = set()
                for side in ("theirs", *work.ours):
                    took, result = self.side(work, side, count)
                    results.add(tuple(result))
                    best[side, count] = min(took, best.get((side, count), took))
                [_] = results  # the sides have the same numbers of entries, and sums
        whole = {key: took.seconds for key, took in best.items()}
        net = {
            side: (whole[side, self.entries] - whole[side, FEW]) / (self.entries - FEW) * 1e6
            for side in ("theirs", *work.ours)
        }
        theirs = best["theirs", self.entries]
        for side in work.ours:
            mine = best[side, self.entries]
            of_processes = theirs.seconds / mine.seconds
            if work.verb == "get":
                ratio = (theirs.seconds - whole["theirs", FEW]) / mine.seconds
                cells = f"{mine.seconds * 1e3:.1f} ms | {theirs.seconds * 1e3:,.0f} ms"
            elif min(net["theirs"], net[side]) > 0:
                ratio = net["theirs"] / net[side]
                cells = f"{net[side]:.3f} | {net['theirs']:.3f}"
            else:
                print(f"| {name} | `{side}` | start-up hides what the entries take |", flush=True)
                continue
            mark = "" if ratio >= GOAL else ", missed"
            print(
                f"| {name} | `{side}` | {cells} | {ratio:,.1f} | {GOAL}{mark} | "
                f"{of_processes:,.1f} | {mine.megabytes:,} | {theirs.megabytes:,} |",
                flush=True,
            )

    rounds = ROUNDS


def main() -> None:
    """Print the table."""
    if sys.argv[1:2] == ["--side"]:
        side, kind, *arguments = sys.argv[2:]
        if side.startswith("read"):
            read_paths(side, kind, arguments)
        else:
            OURS[side](kind, *arguments)
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", default=os.environ.get("STATE_PROCESSOR"))
    parser.add_argument("--entries", type=int, default=ENTRIES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--memory", default="5g", help="the heap of a JVM")
    parser.add_argument("--folder", help="where the savepoints are to be meanwhile")
    parser.add_argument("works", nargs="*", metavar="WORK", help=", ".join(WORKS))
    options = parser.parse_args()
    if options.classes is None or not set(options.works) <= set(WORKS):
        parser.error(f"name the classes, and of the works {', '.join(WORKS)}")
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        race = Race(Path(name), options.classes, options.entries, options.memory)
        race.rounds = options.rounds
        load = os.getloadavg()[0]
        print(f"{options.entries:,} entries, best of {options.rounds}, load {load:.1f}")
        print("| work | ours | us | SPA, us | ratio | goal | of processes | MB | SPA, MB |")
        print("|---|---|---|---|---|---|---|---|---|", flush=True)
        for name in options.works or WORKS:
            if WORKS[name].verb == "read":
                race.measure_reading(name)
            else:
                race.measure(name)


if __name__ == "__main__":
    main()
