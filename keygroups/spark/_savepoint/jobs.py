"""Work on a savepoint that Spark's executors do, each part in a task."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

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
    parts = [cloudpickle.dumps(part) for part in job.parts]  # type: ignore[no-untyped-call]
    lists: Any = spark.sparkContext.parallelize(parts, max(len(parts), 1))
    # `createDataFrame` has a second Python worker in each task make rows of an RDD. The dataset
    # has its bytes as PySpark sends them to the JVM: pickled lists, here of one part each.
    session: Any = spark
    encoder = session._jvm.Encoders.BINARY()
    rows = session._jsparkSession.createDataset(lists._jrdd.rdd(), encoder).toDF()
    return mapped(DataFrame(rows, spark), PickledRunner(job.run), job.schema)


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
    """Runs the parts that a partition has, in pickled lists of pickled ones; it may be pickled."""

    run: Callable[[Any], Iterator[Any]]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the batches; raises SavepointError where state is damaged."""
        for batch in batches:
            for part in chain.from_iterable(map(pickle.loads, batch.column(0).to_pylist())):
                yield from self.run(pickle.loads(part))
