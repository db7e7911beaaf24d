"""Questions about keyed state as a PartedJob: what differs in two savepoints, the size of keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa

from keygroups._checks import check_states, check_str
from keygroups.savepoint._columns.arrow_values import arrow_array
from keygroups.savepoint._columns.batches import apart_of, bytes_apart, layout_of, typed_columns
from keygroups.savepoint._columns.columns import ArrowColumn
from keygroups.savepoint._comparison.difference_columns import DifferenceLayout, difference_layout
from keygroups.savepoint._comparison.shares import ComparisonTask, comparison_tasks
from keygroups.savepoint._jobs.parted_job import PartedJob
from keygroups.savepoint._jobs.state_query import read_tasks
from keygroups.savepoint._key_sizes import key_sizes_of
from keygroups.savepoint._operator import Operator
from keygroups.savepoint._savepoint import Savepoint, id_in_either
from keygroups.savepoint._tasks.read import TASK_BYTES, ReadTask

_KEYS = 1 << 10  # keys that are weighed and become a batch


def difference_job(
    old: Savepoint, new: Savepoint, operator: str, states: Iterable[str] | None
) -> PartedJob:
    """Return the job whose batches are an operator's entries that differ in two savepoints."""
    operator_id = id_in_either((old, new), check_str("operator", operator))
    sides = [
        next((known for known in side.operators if known.operator_id == operator_id), None)
        for side in (old, new)
    ]
    described = [[] if side is None else [*side.states] for side in sides]
    names = None
    if states is not None:
        known = [state.name for side in described for state in side]
        names = check_states(states, known, operator)
        described = [[state for state in side if state.name in names] for side in described]
    layout = difference_layout(*described)
    tasks = comparison_tasks(sides[0], sides[1], names, TASK_BYTES)
    return PartedJob(tuple(tasks), _Comparer(layout).run, layout.schema)


@dataclass(frozen=True)
class _Comparer:
    layout: DifferenceLayout

    def run(self, task: ComparisonTask) -> Iterator[pa.RecordBatch]:
        """Yield differences; raises SavepointError where state is damaged."""
        return self.layout.batches(task.differences())


def key_size_job(operator: Operator) -> PartedJob:
    """Return the job whose batches have the KeySize of each key of an operator."""
    states = operator.states
    key_column = typed_columns(states[0])[0] if states else None
    key_type = layout_of(states).schema.field("key").type
    fields = [
        ("key", key_type),
        *(("key_group", pa.int32()), ("subtask", pa.int32())),
        *(("entries", pa.int64()), ("bytes", pa.int64())),
    ]
    if key_type != pa.binary() and any("key" in bytes_apart(state) for state in states):
        fields.append(("key_bytes", pa.binary()))
    schema = pa.schema(fields)
    weigher = _KeyWeigher(operator.label, key_column, schema)
    return PartedJob(tuple(read_tasks(operator, None, None)), weigher.run, schema)


@dataclass(frozen=True)
class _KeyWeigher:
    """Weighs keys. All entries of a key group, and so of a key, are in one part of the job."""

    label: str
    key_column: ArrowColumn | None
    schema: pa.Schema

    def run(self, tasks: Iterable[ReadTask]) -> Iterator[pa.RecordBatch]:
        """Yield the keys with their sizes; raises SavepointError where state is damaged."""
        sizes = (size for task in tasks for size in key_sizes_of(task, self.label))
        while chunk := [*islice(sizes, _KEYS)]:
            columns: list[Sequence[Any]] = [*zip(*chunk)]
            if "key_bytes" in self.schema.names:
                columns[0], apart = apart_of(columns[0])
                columns.append(apart)
            keys, *numbers = columns
            assert self.key_column is not None
            key_array = arrow_array(self.key_column.convert(keys), self.key_column.data_type)
            arrays = [
                pa.array(column, field.type) for column, field in zip(numbers, [*self.schema][1:])
            ]
            yield pa.RecordBatch.from_arrays([key_array, *arrays], schema=self.schema)
