"""Work on keyed state in parts that yield batches of Arrow, on Spark's executors or any others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import pyarrow as pa

from keygroups._checks import check_states, check_str, iterate, show
from keygroups.errors import InvalidValueError, KeyGroupsError
from keygroups.savepoint._columns.arrow_values import arrow_array
from keygroups.savepoint._columns.batches import (
    BatchLayout,
    apart_of,
    bytes_apart,
    layout_of,
    named_schema,
    record_batches,
    typed_columns,
)
from keygroups.savepoint._columns.columns import ArrowColumn
from keygroups.savepoint._comparison.difference_columns import DifferenceLayout, difference_layout
from keygroups.savepoint._comparison.shares import ComparisonTask, comparison_tasks
from keygroups.savepoint._key_sizes import key_sizes_of
from keygroups.savepoint._metadata.key_group_ranges import KeyGroupRanges
from keygroups.savepoint._operator import Operator
from keygroups.savepoint._savepoint import Savepoint, id_in_either
from keygroups.savepoint._tasks.read import TASK_BYTES, ReadTask
from keygroups.state_keys import CompositeKeySerializer, key_group_prefix_bytes
from keygroups.types import BYTE, INT, LONG, SHORT, STRING

_KEYS = 1 << 10  # keys that are weighed and become a batch
SAME_IN_SPARK = (STRING, BYTE, SHORT, INT, LONG)
"""The types of keys that are equal where Spark's values are."""


@dataclass(frozen=True)
class PartedJob:
    """The parts of some work; `run` yields batches of `schema` for one part. It may be pickled."""

    parts: tuple[Any, ...]
    run: Callable[[Any], Iterator[pa.RecordBatch]]
    schema: pa.Schema


@dataclass(frozen=True)
class StateReader:
    """Reads keyed state of an operator, as rows of some columns, all if None.

    It may be pickled.
    """

    layout: BatchLayout
    columns: tuple[str, ...] | None = None

    @classmethod
    def of(
        cls, operator: Operator, state: str | None, columns: Iterable[str] | None = None
    ) -> StateReader:
        """Return a reader of a state, of all if None; SavepointError for a damaged header."""
        states = [
            described for described in operator.states if state is None or described.name == state
        ]
        if not states and state is not None:
            operator.tasks([state])  # raises the error that names the operator's states
        layout = layout_of(states)
        names = None if columns is None else _checked_columns(columns, layout.schema.names)
        return cls(layout, names)

    @property
    def schema(self) -> pa.Schema:
        """The schema of batches."""
        return named_schema(self.layout, self.columns or self.layout.schema.names)

    def read(self, tasks: Iterable[ReadTask]) -> Iterator[pa.RecordBatch]:
        """Yield the entries; raises SavepointError where the state is damaged."""
        for task in tasks:
            yield from record_batches(task, self.layout, self.columns)


def _checked_columns(columns: Iterable[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return names of columns; InvalidValueError unless each is known, and there once."""
    names: list[str] = []
    for column in iterate("columns", "names", columns):
        name = check_str("columns", column, "names")
        if name not in known or name in names:
            twice = " twice" if name in names else ""
            raise InvalidValueError(
                f"columns must be some of {', '.join(known)}, each once, got {show(name)}{twice}"
            )
        names.append(name)
    if not names:
        raise InvalidValueError(f"columns must be some of {', '.join(known)}, got none")
    return tuple(names)


def read_tasks(
    operator: Operator,
    states: Collection[str] | None,
    key_groups: Iterable[int] | None,
    keys: frozenset[bytes] | None = None,
) -> list[tuple[ReadTask, ...]]:
    """Return the tasks that read some states, all if None, in some key groups, of some keys.

    `keys` are as `encoded_keys` returns them; key groups without any of them are left out.
    The tasks of a tuple are one part of the work: subtasks up to about TASK_BYTES in all, or some
    key groups of one larger subtask. Under a limit of 8 the sizes 3, 4, 9, 2 become (3, 4), parts
    of the 9, and (2,).
    """
    names = None if states is None else frozenset(states)
    if names is not None and not names:
        return []
    groups: list[tuple[ReadTask, ...]] = []
    room = 0  # bytes
    tasks = operator.tasks(None, key_groups)
    if keys is not None:
        tasks = [*_with_keys(tasks, keys, key_group_prefix_bytes(operator.max_parallelism))]
    for task in tasks:
        task = replace(task, states=names)
        size = task.bytes or TASK_BYTES  # 0 for a changelog, whose size is not known
        if size > TASK_BYTES:
            groups += [(split,) for split in task.split(TASK_BYTES)]
            room = 0
        elif size > room:
            groups.append((task,))
            room = TASK_BYTES - size
        else:
            groups[-1] += (task,)
            room -= size
    return groups


def _with_keys(
    tasks: Iterable[ReadTask], keys: Iterable[bytes], prefix_bytes: int
) -> Iterator[ReadTask]:
    """Yield tasks that read the key groups of some keys, each with those keys that it may find."""
    by_key_group: dict[int, list[bytes]] = {}
    for key in keys:
        by_key_group.setdefault(int.from_bytes(key[:prefix_bytes], "big"), []).append(key)
    for task in tasks:
        wanted = [key_group for key_group in task.key_groups if key_group in by_key_group]
        if wanted:
            of_task = frozenset(key for group in wanted for key in by_key_group[group])
            ranges = KeyGroupRanges.of((key_group, key_group) for key_group in wanted)
            yield replace(task, key_groups=ranges, keys=of_task)


def encoded_keys(operator: Operator, values: Iterable[Iterable[Any]]) -> frozenset[bytes] | None:
    """Return the keys that every filter lists, each as the bytes of its key group and its own.

    `values` has a list of Spark's values for each filter. None is for all keys: there is no
    filter, or one has a value that is not of the keys' type.
    """
    keys: frozenset[bytes] | None = None
    for listed in values:
        key_type = operator.states[0].key_type
        if key_type not in SAME_IN_SPARK:
            return None
        serializer = CompositeKeySerializer(operator.max_parallelism, key_type)
        try:
            # The last byte, the VoidNamespace's, is cut off: entries of all namespaces match.
            encoded = frozenset(serializer.serialize(value)[:-1] for value in listed)
        except KeyGroupsError:
            return None
        keys = encoded if keys is None else keys & encoded
    return keys


def parse_key_groups(text: str) -> list[int]:
    """Return the key groups of a text such as "0-63,70"; their bounds are checked later."""
    key_groups: list[int] = []
    for span in text.split(",") if text else ():
        first, dash, last = span.partition("-")
        try:
            start = int(first)
            key_groups += range(start, int(last) + 1 if dash else start + 1)
        except ValueError:
            raise InvalidValueError(
                f"keyGroups must be such as 0-63,70, got {show(text)}"
            ) from None
    return key_groups


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
