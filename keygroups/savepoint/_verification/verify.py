"""Verifies a savepoint: its files, and the state of its operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from keygroups._serializers.data_input import ReadingContext
from keygroups.errors import SavepointError
from keygroups.progress import ProgressCallback, measured
from keygroups.savepoint._files.files import Files
from keygroups.savepoint._metadata.handles import Metadata, OperatorStateHandle, StreamHandle
from keygroups.savepoint._state.operator_state import read_encoded_operator_state
from keygroups.savepoint._tasks.read import TASK_BYTES, ReadTask
from keygroups.savepoint._verification.faults import FILE, UNREADABLE, StateFault, Tally
from keygroups.savepoint._verification.task import VerifyTask
from keygroups.savepoint.verifying import OperatorVerification

RunTasks = Callable[[list[Callable[[], Tally]]], Iterable[Tally]]
"""Calls functions elsewhere, each of which may be pickled, and returns what they return."""


class VerifiedOperator(Protocol):
    """The part of an Operator that a verification uses."""

    @property
    def operator_id(self) -> str:
        """The id in hex."""

    @property
    def label(self) -> str:
        """The uid, else the name, else the id."""

    @property
    def _files(self) -> Files:
        """The Files of the savepoint."""

    @property
    def _context(self) -> ReadingContext:
        """The context that headers are read in."""

    @property
    def _progress(self) -> ProgressCallback | None:
        """The callback that hears how far the work has come, None without one."""

    def tasks(self) -> list[ReadTask]:
        """Return the tasks that read the entries of keyed state."""

    def _operator_state_handles(self) -> list[tuple[int, OperatorStateHandle, bool]]:
        """Return the handles of operator state, with their subtasks, and whether they are raw."""


def verify_files(files: Files, metadata: Metadata) -> tuple[int, int, Tally]:
    """Read the last byte of each file; return the number of files, their bytes and the faults."""
    tally, streams = Tally(), dict.fromkeys(_streams(metadata))
    for stream in streams:
        try:
            with files.open(stream) as opened:
                opened.read(max(0, opened.size - 1), opened.size)
        except SavepointError as error:
            tally.add(StateFault(FILE, str(error)))
    return len(streams), sum(stream.file_size for stream in streams), tally


def _streams(metadata: Metadata) -> Iterator[StreamHandle]:
    for named in metadata.said():
        stream = named.stream if isinstance(named, OperatorStateHandle) else named
        if isinstance(stream, StreamHandle) and stream.data is None:
            yield stream


def verify_operator(operator: VerifiedOperator, run: RunTasks | None) -> OperatorVerification:
    """Return the OperatorVerification of an operator: entries, faults, unverified state."""
    tally = Tally()
    if run is None:
        verified: Iterable[Tally] = _run(operator, [*map(VerifyTask, operator.tasks())])
    else:
        parts = [part for task in operator.tasks() for part in task.split(TASK_BYTES)]
        verified = run([VerifyTask(part).run for part in parts])
    for task_tally in verified:
        tally.join(task_tally)
    for subtask, handle, is_raw in operator._operator_state_handles():
        try:
            states = read_encoded_operator_state(
                operator._files, handle, is_raw, operator._context
            )
            for state in states:
                for _ in state.elements:
                    pass
        except SavepointError as error:
            tally.add(StateFault(UNREADABLE, str(error), None, subtask))
    return OperatorVerification(
        operator.label, operator.operator_id, tally.entries, tally.counts, tally.unverified
    )


def _run(operator: VerifiedOperator, tasks: list[VerifyTask]) -> Iterator[Tally]:
    with measured(
        operator._progress,
        f"verify {operator.label}",
        lambda: sum(task.read.bytes_to_read for task in tasks),
    ) as meter:
        for task in tasks:
            yield task.run(meter)
