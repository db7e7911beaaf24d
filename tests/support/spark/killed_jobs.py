"""Spark jobs in batches, killed with SIGKILL at one moment after another and started again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from support.flink.flink_oracle import QUICK_JVM

DEADLINE = 1200  # seconds for what takes ten or twenty on an idle machine
STARTING, RUNNING = "starting", "running"
MAX_PARALLELISM, PARALLELISM = 128, 16
ROWS = 5_000  # rows in a batch of PLACED_WRITER

# Writes as many batches as it is told, but not again those that an earlier run has finished.
PLACED_WRITER = f"""
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from keygroups.spark import repartition_by_subtask

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
for name in ("spark.driver.bindAddress", "spark.driver.host"):
    builder = builder.config(name, "127.0.0.1")
spark = builder.getOrCreate()
for number in range(int(sys.argv[2])):
    directory = Path(sys.argv[1], f"batch={{number}}")
    if (directory / "_SUCCESS").exists():
        continue
    print("writing batch", number, file=sys.stderr, flush=True)
    rows = spark.range(number * {ROWS}, (number + 1) * {ROWS})
    users = rows.withColumn("user", F.concat(F.lit("user-"), F.col("id") % 997))
    placed = repartition_by_subtask(users, "user", {MAX_PARALLELISM}, {PARALLELISM})
    placed.write.mode("overwrite").parquet(str(directory))
"""


class Point(NamedTuple):
    """When a job is killed.

    In the step of a batch so many after the one it begins with, in `STARTING`, or `RUNNING`
    anything: then `share` is that of the seconds that a start takes, or a batch.
    """

    step: str
    ahead: int
    share: float


@dataclass
class Job:
    """A job that prints a line on standard error when it begins a batch, with its number last.

    `steps` has for each step of a batch the files, as a pattern with {} for the batch, by which
    it is known to have come so far.
    """

    command: list[str]
    output: Path
    begins: str
    steps: dict[str, str]
    done: Callable[[], int]  # the number of batches that are finished
    seconds_to_start = 0.0
    seconds_of_batch = 0.0

    def run(self) -> str:
        """Run it to the end, measure how long that takes, and return what it prints."""
        before, begin = self.done(), time.monotonic()
        with self._start() as process:
            assert process.stderr is not None
            self._first_batch(process.stderr)
            begun = time.monotonic()
            out, err = process.communicate(timeout=DEADLINE)
        assert process.returncode == 0, err
        self.seconds_to_start = begun - begin
        self.seconds_of_batch = (time.monotonic() - begun) / (self.done() - before)
        return out

    def check_killed(self, point: Point) -> None:
        """Start it, check that it goes on where it should, kill it at a point; say what is left.

        The line has the batch that it began with, the point, the first batch that is not finished,
        and the steps of which there are files.
        """
        batch = self.done()
        with self._start() as process:
            assert process.stderr is not None
            try:
                if point.step == STARTING:
                    time.sleep(point.share * self.seconds_to_start)
                else:
                    assert self._first_batch(process.stderr) == batch
                    if point.step == RUNNING:
                        time.sleep(point.share * self.seconds_of_batch)
                    else:
                        self._wait(process, self.steps[point.step].format(batch + point.ahead))
            finally:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate(timeout=DEADLINE)  # ends when Python and the JVM are gone
        assert process.returncode == -signal.SIGKILL
        where = "" if point.step in (STARTING, RUNNING) else f" batch {batch + point.ahead}"
        rest = [
            name for name, files in self.steps.items() if self._there(files.format(self.done()))
        ]
        print(
            f"| {batch} | {point.step}{where} | {self.done()} | {', '.join(rest) or 'nothing'} |"
        )

    def _start(self) -> subprocess.Popen[str]:
        # The JVMs live for seconds, in which the better compiler does not pay.
        quick = {"JDK_JAVA_OPTIONS": QUICK_JVM, "PYSPARK_PYTHON": sys.executable}
        scratch = {"SPARK_LOCAL_DIRS": str(self.output.with_name("scratch"))}
        return subprocess.Popen(
            self.command,
            env={**os.environ, **quick, **scratch},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # a process group: Python, and the JVM that does the work
        )

    def _first_batch(self, lines: IO[str]) -> int:
        text = []
        for line in lines:
            text.append(line)
            if line.startswith(self.begins):
                return int(line.removeprefix(self.begins).split()[0])
        raise AssertionError("".join(text))

    def _wait(self, process: subprocess.Popen[str], pattern: str) -> None:
        deadline = time.monotonic() + DEADLINE
        while not self._there(pattern):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline, f"no {pattern} in {DEADLINE} seconds"
            time.sleep(0.002)

    def _there(self, pattern: str) -> bool:
        return next(self.output.glob(pattern), None) is not None


def random_points(steps: list[str], count: int, seed: int) -> list[Point]:
    """Return points in any order: all steps equally often, a third at any time.

    A step is that of a batch after the one that a run begins with, whose files may be there.
    """
    rng = random.Random(seed)
    anywhere = count // 10 * [STARTING] + count * 3 // 10 * [RUNNING]
    chosen = anywhere + (steps * count)[: count - len(anywhere)]
    rng.shuffle(chosen)
    return [Point(step, rng.randint(1, 2), rng.random()) for step in chosen]
