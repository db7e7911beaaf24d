"""Which states and key groups are read, and in which tasks."""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from keygroups._checks import show
from keygroups.errors import InvalidValueError, KeyGroupsError
from keygroups.savepoint import Operator, StateDescriptor
from keygroups.savepoint._tasks.read import ReadTask
from keygroups.state_keys import CompositeKeySerializer
from keygroups.types import BYTE, INT, LONG, SHORT, STRING

if TYPE_CHECKING:
    from keygroups.savepoint._columns.batches import Layout

TASK_BYTES = 16 << 20
"""About how many bytes of state a task reads."""


def wanted_states(operator: Operator, state: str | None) -> list[StateDescriptor]:
    """Return the states to read, all or one; SavepointError where a header cannot be read."""
    states = [
        described for described in operator.states if state is None or described.name == state
    ]
    if not states and state is not None:
        operator.tasks([state])  # says which there are
    return states


def read_tasks(
    operator: Operator,
    states: Collection[str] | None,
    key_groups: Iterable[int] | None,
    keys: frozenset[bytes] | None = None,
) -> list[tuple[ReadTask, ...]]:
    """Return the tasks that read some states, all if None, in some key groups, of some keys.

    Those of a tuple are for one task of Spark: what many subtasks wrote, up to about TASK_BYTES,
    or some key groups of one that wrote more.
    """
    names = None if states is None else frozenset(states)
    if names is not None and not names:
        return []
    groups: list[tuple[ReadTask, ...]] = []
    left = 0
    for task in operator.tasks(None, key_groups):
        task = replace(task, states=names, keys=keys)
        size = task.bytes or TASK_BYTES  # as changes alone do not say how many they are
        if size > TASK_BYTES:
            groups += [(split,) for split in task.split(TASK_BYTES)]
            left = 0
        elif size > left:
            groups.append((task,))
            left = TASK_BYTES - size
        else:
            groups[-1] += (task,)
            left -= size
    return groups


def encoded_keys(operator: Operator, values: Iterable[Iterable[Any]]) -> frozenset[bytes] | None:
    """Return the keys, with their key groups, that are in all of some lists of Spark's values.

    None where that is not known: there is no list, or a value of another type than the keys have.
    """
    keys: frozenset[bytes] | None = None
    for of_filter in values:
        key_type = operator.states[0].key_type
        if key_type not in _SAME_IN_SPARK:
            return None
        serializer = CompositeKeySerializer(operator.max_parallelism, key_type)
        try:
            # Without the byte of the VoidNamespace, as each namespace is wanted.
            encoded = frozenset(serializer.serialize(value)[:-1] for value in of_filter)
        except KeyGroupsError:
            return None
        keys = encoded if keys is None else keys & encoded
    return keys


_SAME_IN_SPARK = (STRING, BYTE, SHORT, INT, LONG)  # keys that are equal where Spark's values are


@dataclass(frozen=True)
class KeyedStateReader:
    """Reads keyed state; `mapInArrow` calls it with the pickled tasks of a partition.

    It may be pickled.
    """

    layout: Layout

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the entries; raises SavepointError where the state is damaged."""
        from keygroups.savepoint._columns.batches import record_batches  # needs PyArrow

        for batch in batches:
            for tasks in batch.column(0).to_pylist():
                for task in pickle.loads(tasks):
                    yield from record_batches(task, self.layout)


def parse_key_groups(text: str) -> list[int]:
    """Return the key groups that text such as "0-63,70" says; all of them are checked later."""
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
