"""Two savepoints compared, one verified, and keys weighed, on Spark's executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

from keygroups._checks import check_str
from keygroups.savepoint import Operator, Savepoint
from keygroups.savepoint._comparison.shares import ComparisonTask, comparison_tasks
from keygroups.savepoint._operator import check_states, key_sizes_of
from keygroups.savepoint._savepoint import id_in_either
from keygroups.savepoint._tasks.read import ReadTask
from keygroups.savepoint._tasks.verify import VerifyTask
from keygroups.savepoint._verification.faults import Tally
from keygroups.spark._savepoint.arrow_map import map_in_arrow
from keygroups.spark._savepoint.results import run_tasks
from keygroups.spark._savepoint.tasks import TASK_BYTES, read_tasks

if TYPE_CHECKING:
    from keygroups.savepoint._columns.columns import ArrowColumn
    from keygroups.savepoint._comparison.difference_columns import DifferenceLayout

_KEYS = 1 << 10  # keys that are sent at once


def compared(
    spark: SparkSession,
    old: Savepoint,
    new: Savepoint,
    operator: str,
    states: Iterable[str] | None,
) -> DataFrame:
    """Return the entries that are not the same in two savepoints."""
    # Both need PyArrow.
    from keygroups.savepoint._comparison.difference_columns import difference_layout
    from keygroups.spark._savepoint.rows.spark_types import spark_schema

    operator_id = id_in_either((old, new), check_str("operator", operator))
    here, there = (
        next((of for of in side.operators if of.operator_id == operator_id), None)
        for side in (old, new)
    )
    of_sides = [[] if side is None else [*side.states] for side in (here, there)]
    names = None
    if states is not None:
        names = check_states(states, [state.name for side in of_sides for state in side], operator)
        of_sides = [[state for state in side if state.name in names] for side in of_sides]
    layout = difference_layout(*of_sides)
    tasks = tuple(comparison_tasks(here, there, names, TASK_BYTES))
    numbers = spark.range(0, len(tasks), 1, max(len(tasks), 1))
    return map_in_arrow(numbers, Comparer(tasks, layout), spark_schema(layout.schema))


@dataclass(frozen=True)
class Comparer:
    """Compares what the tasks have whose numbers a partition has; it may be pickled."""

    tasks: tuple[ComparisonTask, ...]
    layout: DifferenceLayout

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield differences; raises SavepointError where state is damaged."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self.layout.batches(self.tasks[number].differences())


def run_verification(spark: SparkSession, tasks: Iterable[VerifyTask]) -> list[Tally]:
    """Verify what tasks read, in many tasks of Spark's."""
    splits = [VerifyTask(read) for task in tasks for read in task.read.split(TASK_BYTES)]
    return run_tasks(spark, [task.run for task in splits])


def weighed(spark: SparkSession, operator: Operator) -> DataFrame:
    """Return how much state each key of an operator has."""
    # All need PyArrow.
    import pyarrow as pa

    from keygroups.savepoint._columns.batches import bytes_apart, layout_of, typed_columns
    from keygroups.spark._savepoint.rows.spark_types import spark_schema

    states = operator.states
    key_type = layout_of(states).schema.field("key").type
    key_column = typed_columns(states[0])[0] if states else None
    fields = [
        ("key", key_type),
        *(("key_group", pa.int32()), ("subtask", pa.int32())),
        *(("entries", pa.int64()), ("bytes", pa.int64())),
    ]
    if key_type != pa.binary() and any("key" in bytes_apart(state) for state in states):
        fields.append(("key_bytes", pa.binary()))
    schema = pa.schema(fields)
    tasks = tuple(read_tasks(operator, None, None))
    numbers = spark.range(0, len(tasks), 1, max(len(tasks), 1))
    weigher = KeyWeigher(tasks, operator.label, key_column, schema)
    return map_in_arrow(numbers, weigher, spark_schema(schema))


@dataclass(frozen=True)
class KeyWeigher:
    """Weighs the keys of the tasks whose numbers a partition has; it may be pickled.

    A key group is in one task, so that a key is too.
    """

    tasks: tuple[tuple[ReadTask, ...], ...]
    label: str
    key_column: ArrowColumn | None
    schema: Any

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the keys with their sizes; raises SavepointError where state is damaged."""
        import pyarrow as pa

        from keygroups.savepoint._columns.arrow_values import arrow_array
        from keygroups.savepoint._columns.batches import apart_of

        for batch in batches:
            for number in batch.column(0).to_pylist():
                sizes = (
                    size for task in self.tasks[number] for size in key_sizes_of(task, self.label)
                )
                while chunk := list(islice(sizes, _KEYS)):
                    columns: list[Sequence[Any]] = [*zip(*chunk)]
                    if "key_bytes" in self.schema.names:
                        columns[0], apart = apart_of(columns[0])
                        columns.append(apart)
                    keys, *numbers = columns
                    assert self.key_column is not None
                    key_array = arrow_array(
                        self.key_column.convert(keys), self.key_column.data_type
                    )
                    arrays = [
                        pa.array(of, field.type) for of, field in zip(numbers, [*self.schema][1:])
                    ]
                    yield pa.RecordBatch.from_arrays([key_array, *arrays], schema=self.schema)
