"""Which states and key groups are read, and in which tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from keygroups._checks import show
from keygroups.errors import InvalidValueError
from keygroups.savepoint import Operator, StateDescriptor
from keygroups.savepoint._tasks.read import ReadTask

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
    operator: Operator, states: Collection[str] | None, key_groups: Iterable[int] | None
) -> list[ReadTask]:
    """Return the tasks that read some states, all if None, in some key groups."""
    names = None if states is None else frozenset(states)
    if names is not None and not names:
        return []
    return [
        split
        for task in operator.tasks(None, key_groups)
        for split in replace(task, states=names).split(TASK_BYTES)
    ]


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
