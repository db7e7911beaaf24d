"""A Spark job that writes what `repartition_by_subtask` placed, killed half-way for real."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from support.spark.killed_jobs import (
    MAX_PARALLELISM,
    PARALLELISM,
    PLACED_WRITER,
    ROWS,
    Job,
    random_points,
)

from keygroups import assign_key_to_parallel_operator

pytest.importorskip("pyspark")
pq: Any = pytest.importorskip("pyarrow.parquet")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no process groups and no SIGKILL")
@pytest.mark.skipif("KEYGROUPS_TEST_REMOTE" in os.environ, reason="it starts a Spark of its own")
def test_killed_twenty_times(tmp_path: Path) -> None:
    output = tmp_path / "out"
    job = Job(
        [sys.executable, "-c", PLACED_WRITER, str(output), "2"],
        output,
        "writing batch ",
        {
            "being written": "batch={}/_temporary",
            "first task done": "batch={}/_temporary/0/task_*",
            "being committed": "batch={}/part-*",
            "committed": "batch={}/_SUCCESS",
        },
        lambda: len(list(output.glob("batch=*/_SUCCESS"))),
    )
    job.run()
    for point in random_points(list(job.steps), 20, seed=0):
        job.command[-1] = str(job.done() + 6)
        job.check_killed(point)
        check_batches(output, job.done())
    job.run()
    check_batches(output, int(job.command[-1]))


def check_batches(output: Path, count: int) -> None:
    """Check that the first batches hold each row once, in the file of its key's subtask."""
    for number in range(count):
        found: list[int] = []
        for file in Path(output, f"batch={number}").glob("part-*"):
            rows = pq.ParquetFile(file).read().to_pydict()
            found += rows["id"]
            for user in set(rows["user"]):
                subtask = assign_key_to_parallel_operator(user, MAX_PARALLELISM, PARALLELISM)
                assert file.name.startswith(f"part-{subtask:05}-")
        assert sorted(found) == list(range(number * ROWS, (number + 1) * ROWS))
