"""Results of Spark's tasks: pickled objects, and errors of this library, back at the driver."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from keygroups import errors
from keygroups.spark._columns.arguments import is_connect
from keygroups.spark._savepoint.arrow_map import map_in_arrow

_DESCRIPTION = "spark.job.description"
RESULT = T.StructType([T.StructField("result", T.BinaryType())])
"""The schema of results, each of which is pickled."""
# The last line of a Python traceback, in whatever Spark makes of it.
_RAISED = re.compile(r"^keygroups\.errors\.(\w+): (.*)$", re.MULTILINE)


def result_batch(result: object) -> Any:
    """Return a batch of Arrow with one result."""
    import pyarrow as pa

    column = pa.array([pickle.dumps(result)], pa.binary())
    return pa.RecordBatch.from_arrays([column], ["result"])


def collect_results(df: DataFrame) -> list[Any]:
    """Return the unpickled results of a query; raise a task's KeyGroupsError as it was raised."""
    try:
        rows = df.collect()
    except Exception as error:
        raised = _RAISED.search(str(error))
        cls = vars(errors).get(raised[1]) if raised else None
        if raised is None or cls is None:
            raise
        raise cls(raised[2]) from None
    return [pickle.loads(row["result"]) for row in rows]


def run_tasks(spark: SparkSession, tasks: Iterable[Callable[[], Any]]) -> list[Any]:
    """Call functions, each in a task of Spark, and return their results in any order.

    Spark pickles the functions, with those of a user in them. It may call one again, also while
    the first call runs.
    """
    runner = TaskRunner(tuple(tasks))
    count = len(runner.tasks)
    if not count:
        return []
    numbers = spark.range(0, count, 1, count)
    return collect_results(map_in_arrow(numbers, runner, RESULT))


@dataclass(frozen=True)
class TaskRunner:
    """Calls the functions whose numbers a partition has; `mapInArrow` calls it."""

    tasks: tuple[Callable[[], Any], ...]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the pickled result of each function in a batch."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield result_batch(self.tasks[number]())


@contextmanager
def described(spark: SparkSession, description: str) -> Iterator[None]:
    """Have Spark's UI say what its jobs are for; Spark Connect describes them itself."""
    if is_connect(spark):
        yield
        return
    context: Any = spark.sparkContext  # its stub forbids None, which clears a description
    before = context.getLocalProperty(_DESCRIPTION)
    context.setLocalProperty(_DESCRIPTION, description)
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, before)
