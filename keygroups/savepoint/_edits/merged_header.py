"""The header of an operator's keyed state, merged from those of its subtasks."""

from __future__ import annotations

from typing import NamedTuple

from keygroups.errors import SavepointError
from keygroups.savepoint._operator import Operator
from keygroups.savepoint._state.header import StateDescriptor, write_keyed_header
from keygroups.savepoint._tasks.read import ReadTask, ahead


class MergedHeader(NamedTuple):
    """The states of all subtasks, with the header's bytes for the key and for each state."""

    states: tuple[StateDescriptor, ...]
    key_bytes: bytes
    state_bytes: tuple[bytes, ...]

    @property
    def data(self) -> bytes:
        """The bytes of the header."""
        return write_keyed_header(self.key_bytes, self.state_bytes)


def merged_header(operator: Operator) -> MergedHeader:
    """Return one header for all subtasks, each of which may list the states in another order.

    It is empty for an operator that has only raw keyed state, and no timers in it. Raises
    SavepointError where subtasks disagree on a serializer.
    """
    states: dict[str, tuple[StateDescriptor, bytes]] = {}
    keys = set()
    for task in ahead(operator.tasks(), ReadTask.header_plan):
        for header in task.format.headers():
            if header.key_bytes:  # empty for raw keyed state without timers
                keys.add(header.key_bytes)
            for state, data in zip(header.states, header.state_bytes):
                if states.setdefault(state.name, (state, data))[1] != data:
                    raise refused(operator, f"has other serializers of {state} in one subtask")
    if len(keys) > 1:
        raise refused(operator, "has other serializers of keys in one subtask")
    return MergedHeader(
        tuple(state for state, _ in states.values()),
        next(iter(keys), b""),
        tuple(data for _, data in states.values()),
    )


def refused(operator: Operator, why: str) -> SavepointError:
    """Return the error that an operator cannot be written anew, and why."""
    return SavepointError(
        f"{operator._files.base}: operator {operator.label} cannot be written anew: it {why}"
    )
