"""Keyed state of an operator that is wanted as rows: its tasks, and the keys that are sought."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from keygroups._checks import check_str, iterate, show
from keygroups.assignment import UPPER_BOUND_MAX_PARALLELISM
from keygroups.errors import InvalidValueError, KeyGroupsError, UnsupportedKeyTypeError
from keygroups.hashing import hash_code
from keygroups.savepoint._columns.batches import (
    BatchLayout,
    layout_of,
    named_schema,
    record_batches,
)
from keygroups.savepoint._jobs.parted_job import PartedJob
from keygroups.savepoint._metadata.key_group_ranges import KeyGroupRanges
from keygroups.savepoint._operator import Operator
from keygroups.savepoint._tasks.read import TASK_BYTES, ReadTask
from keygroups.state_keys import CompositeKeySerializer, key_group_prefix_bytes
from keygroups.types import BYTE, INT, LONG, SHORT, STRING, KeyType

_SPAN = re.compile("([0-9]{1,9})(?:-([0-9]{1,9}))?")
# The types of keys that are equal where Spark's values are.
_SAME_IN_SPARK = (STRING, BYTE, SHORT, INT, LONG)


@dataclass(frozen=True)
class StateReader:
    """Reads keyed state of an operator, as rows of some columns, all if None.

    It may be pickled.
    """

    layout: BatchLayout
    columns: tuple[str, ...] | None = None

    @property
    def schema(self) -> pa.Schema:
        """The schema of batches."""
        return named_schema(self.layout, self.columns or self.layout.schema.names)

    def read(self, tasks: Iterable[ReadTask]) -> Iterator[pa.RecordBatch]:
        """Yield the entries; raises SavepointError where the state is damaged."""
        for task in tasks:
            yield from record_batches(task, self.layout, self.columns)


class StateQuery:
    """A query of one state of an operator, of all if None.

    `columns` are the names of those that are wanted, all if None.
    """

    def __init__(
        self,
        operator: Operator,
        state: str | None = None,
        columns: Iterable[str] | None = None,
    ) -> None:
        self._operator = operator
        self._state = state
        self._columns = columns
        self.max_parallelism = operator.max_parallelism

    @cached_property
    def reader(self) -> StateReader:
        """The reader of the rows; the headers are read for it, and for nothing else.

        Raises SavepointError for a damaged header, and InvalidValueError for a state that is not
        the operator's, and for columns that its rows do not have.
        """
        name = self._state
        states = [
            described
            for described in self._operator.states
            if name is None or described.name == name
        ]
        if not states and name is not None:
            self._operator.tasks([name])  # raises the error that names the operator's states
        layout, columns = layout_of(states), self._columns
        names = None if columns is None else _checked_columns(columns, layout.schema.names)
        return StateReader(layout, names)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        return self.reader.schema

    def with_columns(self, columns: Iterable[str]) -> StateQuery:
        """Return the query of the same state for these columns."""
        return StateQuery(self._operator, self._state, columns)

    def job(
        self, key_groups: Iterable[int] | None, keys: frozenset[bytes] | None = None
    ) -> PartedJob:
        """Return the job that reads some key groups, all if None, as `parts` cuts them."""
        parts = tuple(self.parts(key_groups, keys))
        return PartedJob(parts, self.reader.read, self.schema)

    def parts(
        self, key_groups: Iterable[int] | None, keys: frozenset[bytes] | None = None
    ) -> list[tuple[ReadTask, ...]]:
        """Return the parts of the job, as `read_tasks` cuts them."""
        states = None if self._state is None else [self._state]
        return read_tasks(self._operator, states, key_groups, keys)

    def sought_type(self) -> KeyType:
        """Return the type of keys that may be sought.

        Raises UnsupportedKeyTypeError where Spark may take two of the operator's keys for one.
        """
        state = next(iter(self._operator.states), None)
        key_type = None if state is None else state.key_type
        if key_type is None or key_type not in _SAME_IN_SPARK:
            what = "no keyed state" if state is None else f"keys of {state.key_serializer}"
            raise UnsupportedKeyTypeError(
                f"keys must be None for operator {self._operator.label}, which has {what}: only "
                "text and integers are sought on Spark, others by Operator.get_many"
            )
        return key_type

    def sought_keys(self, keys: Any) -> list[Any]:
        """Return each of some keys once; raises what `hash_code` raises for what is no key."""
        key_type = self.sought_type()
        sought: dict[Any, None] = {}
        for key in iterate("keys", "keys of the operator, or a DataFrame", keys):
            hash_code(key, key_type)  # raises for a key that is not of the type
            sought[key] = None
        return [*sought]

    def encoded_keys(self, keys: Iterable[Any]) -> frozenset[bytes] | None:
        """Return keys of Spark, each as the bytes of its key group and its own.

        None is for keys of which one is not of the operator's type: then all are read.
        """
        serializer = CompositeKeySerializer(self.max_parallelism, self.sought_type())
        try:
            # The last byte, the VoidNamespace's, is cut off: entries of all namespaces match.
            return frozenset(serializer.serialize(key)[:-1] for key in keys)
        except KeyGroupsError:
            return None


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

    `keys` are as `StateQuery.encoded_keys` returns them; key groups without any of them are left
    out. The tasks of a tuple are one part of the work: subtasks up to about TASK_BYTES in all, or
    some key groups of one larger subtask. Under a limit of 8 the sizes 3, 4, 9, 2 become (3, 4),
    parts of the 9, and (2,).
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


def parse_key_groups(text: str) -> list[int]:
    """Return the key groups of a text such as "0-63,70", none of no text."""
    key_groups: list[int] = []
    for span in text.split(",") if text else ():
        match = _SPAN.fullmatch(span.strip())
        bounds = [int(number) for number in match.groups() if number] if match else []
        if not bounds or bounds[0] > bounds[-1] or bounds[-1] >= UPPER_BOUND_MAX_PARALLELISM:
            raise InvalidValueError(
                f"keyGroups must be such as 0-63,70, from 0 to {UPPER_BOUND_MAX_PARALLELISM - 1}, "
                f"got {show(text)}"
            )
        key_groups += range(bounds[0], bounds[-1] + 1)
    return key_groups
