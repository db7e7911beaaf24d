"""Work on a savepoint that Spark's executors do, each part in a task."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from keygroups.spark._savepoint.arrow_map import map_in_arrow

if TYPE_CHECKING:
    import pyarrow as pa

    from keygroups.savepoint._jobs.parted_job import PartedJob


def frame_of(spark: SparkSession, job: PartedJob) -> DataFrame:
    """Return a DataFrame of the batches of a job, whose parts run in a task of Spark each."""
    numbers = spark.range(0, len(job.parts), 1, max(len(job.parts), 1))
    return mapped(numbers, JobRunner(job), job.schema)


def classic_frame_of(spark: SparkSession, job: PartedJob) -> DataFrame:
    """Return the DataFrame of a job in a classic session, which sends each task its part alone."""
    # The user's script may define the serializers: cloudpickle sends their code with them.
    rows = [(cloudpickle.dumps(part),) for part in job.parts]  # type: ignore[no-untyped-call]
    pickled = spark.sparkContext.parallelize(rows, max(len(rows), 1))
    schema = T.StructType([T.StructField("part", T.BinaryType())])
    sent = spark.createDataFrame(pickled, schema, verifySchema=False)
    return mapped(sent, PickledRunner(job.run), job.schema)


def mapped(
    df: DataFrame, function: Callable[[Iterable[Any]], Iterator[Any]], schema: pa.Schema
) -> DataFrame:
    """Return the DataFrame of the batches, of a schema of Arrow, that a function makes of one."""
    from keygroups.spark._savepoint.rows.spark_types import spark_schema  # needs PyArrow

    return map_in_arrow(df, function, spark_schema(schema))


@dataclass(frozen=True)
class JobRunner:
    """Runs the parts whose numbers a partition has; `mapInArrow` calls it. It may be pickled."""

    job: PartedJob

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the batches; raises SavepointError where state is damaged."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self.job.run(self.job.parts[number])


@dataclass(frozen=True)
class PickledRunner:
    """Runs the parts that a partition has, pickled; it may be pickled."""

    run: Callable[[Any], Iterator[Any]]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the batches; raises SavepointError where state is damaged."""
        for batch in batches:
            for part in batch.column(0).to_pylist():
                yield from self.run(pickle.loads(part))
