"""Writes the keyed state of one operator anew, with the key groups of another max parallelism."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from keygroups.errors import InvalidValueError, SavepointError
from keygroups.progress import Meter
from keygroups.savepoint._files.output_folder import OutputFolder
from keygroups.savepoint._metadata.handles import OperatorMetadata
from keygroups.savepoint._operator import Operator
from keygroups.savepoint._state.header import StateDescriptor, write_keyed_header
from keygroups.savepoint._state.key_hashes import has_hash
from keygroups.savepoint._state.writing.spill import sorted_entries
from keygroups.savepoint._tasks.read import ReadTask, ahead
from keygroups.savepoint._tasks.rewrite import RewriteTask
from keygroups.savepoint._tasks.write import OperatorFiles


class OperatorRewriter(OperatorFiles):
    """The keyed state of one operator: `read_tasks` read its entries, `task` writes a subtask.

    `states` are its states. `is_moved` says whether entries change their key groups, so that
    they have to be sorted; `bytes` is about how many they are.
    """

    def __init__(self, folder: OutputFolder, operator: Operator, new: OperatorMetadata) -> None:
        old, groups = operator.max_parallelism, new.max_parallelism
        self.label = operator.label
        self.old_max_parallelism = old
        self.is_moved = old != groups
        self.bytes = sum(subtask.bytes for subtask in operator.subtasks)
        self._base = operator._files.base
        header = merged_header(operator)
        key = None
        if header.states:
            key = header.states[0].key_serializer
            if not has_hash(key) and old % groups:
                raise refused(
                    operator,
                    f"has keys of {key}, whose hash is not known here, so that the new max "
                    f"parallelism must be a divisor of {old}, got {groups}",
                )
        numbers = {state.name: number for number, state in enumerate(header.states)}
        self.read_tasks = [RewriteTask(task, numbers, key, groups) for task in operator.tasks()]
        super().__init__(
            folder, new.operator_id, header.data, header.states, groups, new.parallelism
        )

    @property
    def work(self) -> int:
        """About how many bytes a meter counts: those that are sorted twice."""
        return self.bytes * (2 if self.is_moved else 1)

    def write(self, scratch: Path | None, meter: Meter | None = None) -> None:
        """Write all of it, on this machine; what is sorted is meanwhile in a folder.

        Raises SavepointError where the state is damaged, or the files cannot be written.
        """
        try:
            self._write(scratch, meter)
        except InvalidValueError as error:  # of key groups or keys that are there twice
            raise SavepointError(f"{self._base}: {error}") from None

    def _write(self, scratch: Path | None, meter: Meter | None) -> None:
        tasks = ahead([rewrite.task for rewrite in self.read_tasks], meter=meter)
        entries = (
            entry
            for rewrite, task in zip(self.read_tasks, tasks)
            for entry in replace(rewrite, task=task).entries()
        )
        if self.is_moved:
            entries = sorted_entries(entries, scratch, self.bytes, meter)
        with closing(entries):
            self._write_sorted(entries)


class MergedHeader(NamedTuple):
    """The states of all subtasks, with the bytes that a header says of the key and of each."""

    states: tuple[StateDescriptor, ...]
    key_bytes: bytes
    state_bytes: tuple[bytes, ...]

    @property
    def data(self) -> bytes:
        """The header."""
        return write_keyed_header(self.key_bytes, self.state_bytes)


def merged_header(operator: Operator) -> MergedHeader:
    """Return the header for all subtasks, which may each have the states in another order.

    That of an operator with nothing but raw state without timers is of no key and no state.
    """
    states: dict[str, tuple[StateDescriptor, bytes]] = {}
    keys = set()
    for task in ahead(operator.tasks(), ReadTask.header_plan):
        for handle in task.handles:
            header = task.header(handle)
            if header.key_bytes:  # which raw state without timers has not
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
