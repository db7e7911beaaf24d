"""Editors of savepoints whose new keyed state other machines write: edited entries, or rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from keygroups._checks import check_states, show
from keygroups.errors import InvalidValueError, SavepointError
from keygroups.savepoint._columns.row_shapes import (
    ColumnPlace,
    LongRows,
    check_states_of_rows,
    long_columns,
)
from keygroups.savepoint._edits.edit_task import EditTask, StatePlan
from keygroups.savepoint._edits.keyed_state import EditedKeyedState, with_keyed_state
from keygroups.savepoint._edits.merged_header import merged_header
from keygroups.savepoint._edits.operators import find
from keygroups.savepoint._jobs.entry_pieces import first_state
from keygroups.savepoint._jobs.file_jobs import (
    FilesJob,
    moving_jobs,
    old_pieces_job,
)
from keygroups.savepoint._jobs.parted_job import PartedJob
from keygroups.savepoint._jobs.row_jobs import RowsJob, rows_job
from keygroups.savepoint._operator import Operator
from keygroups.savepoint._savepoint import Savepoint
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.writing.write_task import OperatorFiles
from keygroups.savepoint._writing.savepoint_writer import SavepointEditor


class Cluster(Protocol):
    """Machines that do the work of an editor; `what` says in a line what the work is for."""

    def run(self, what: str, tasks: Sequence[Callable[[], Any]]) -> list[Any]:
        """Call functions, each of which is pickled, and return their results in any order."""

    def write(self, what: str, entries: PartedJob, job: FilesJob) -> None:
        """Do a FilesJob with the batches of a PartedJob."""


class ClusterEditor(SavepointEditor):
    """Writes a savepoint from another, its edited keyed state in tasks of a cluster.

    A task edits the state of one subtask, and further tasks merge the entries that moved. Where
    entries move only as the max parallelism or parallelism changes, they are moved in pieces.
    """

    _path_name = "output"

    def __init__(
        self, savepoint: Savepoint, path: str | os.PathLike[str], cluster: Cluster
    ) -> None:
        super().__init__(savepoint, path)
        self._cluster = cluster

    def _write_keyed_state(self, keyed_state: EditedKeyedState) -> None:
        cluster, label = self._cluster, keyed_state.label
        what = f"edit_savepoint: {label}, to {self._folder.path}"
        if keyed_state.is_anew and not keyed_state.has_steps:
            cluster.write(what, *moving_jobs(keyed_state))
            return
        merges = keyed_state.done(cluster.run(what, [task.run for task in keyed_state.tasks]))
        keyed_state.done(cluster.run(what, [task.run for task in merges]))


class RowsEditor(SavepointEditor):
    """Writes a savepoint from another, with the keyed state of one operator taken from rows.

    `operator` is its uid, name or id; `states` are the names of the states in the rows, all if
    None. `columns` are the LongColumns of these rows. Raises what
    `keygroups.spark.write_keyed_state` raises before it looks at its rows.
    """

    def __init__(
        self,
        savepoint: Savepoint,
        path: str | os.PathLike[str],
        operator: str,
        states: Iterable[str] | None,
    ) -> None:
        super().__init__(savepoint, path)
        self._edited = find(self._kept, operator)
        self._old = old = self._edited._operator
        if any(subtask.is_finished for subtask in old.subtasks):
            raise SavepointError(
                f"{savepoint.path}: operator {old.label} cannot be written from rows: it has "
                "subtasks that are finished"
            )
        if not old.tasks():
            raise InvalidValueError(
                f"operator must be one with keyed state, got {show(operator)}, whose types the "
                "savepoint does not tell"
            )
        header = merged_header(old)
        metadata = self._edited._metadata
        self._files = OperatorFiles(
            self._folder,
            metadata.operator_id,
            header.data,
            header.states,
            metadata.max_parallelism,
            metadata.parallelism,
        )
        self._is_whole = states is None
        wanted = _chosen(old, header.states, states)
        check_states_of_rows(old.label, wanted)
        self._names = [state.name for state in wanted]
        self._numbers = {state.name: number for number, state in enumerate(header.states)}
        self.columns = long_columns(wanted)
        self.what = f"write_keyed_state: {old.label}, to {self._folder.path}"

    def rows_job(
        self, fields: Mapping[str, Mapping[str, int | None]], allow_any_last_access: bool
    ) -> RowsJob:
        """Return the job that writes the rows.

        `fields` are the columns that the rows have, in their order, by name: for each state with
        values there the number of its field in the column, None where all of the column is its.
        """
        places: dict[str, dict[str, ColumnPlace]] = {name: {} for name in self._names}
        for number, (role, of_states) in enumerate(fields.items()):
            for name, field in of_states.items():
                places[name][role] = ColumnPlace(number, field)
        encode = LongRows(
            self._files.states,
            self._files.max_parallelism,
            allow_any_last_access,
            tuple(fields),
            places,
        )
        return rows_job(encode, self._files)

    def kept_entries(self) -> PartedJob | None:
        """Return the job that reads the entries of the other states, None without others."""
        kept = self._numbers.keys() - {*self._names}
        return self._old_entries(kept) if kept else None

    def missing_entries(self) -> PartedJob | None:
        """Return the job that reads entries of states without rows, None if there are no such.

        It is asked for when the rows are written. The rows of some states alone were meant so.
        """
        written = {number for file in self._files.written.values() for number in file.entries}
        missing = {name for name, number in self._numbers.items() if number not in written}
        return self._old_entries(missing) if self._is_whole and missing else None

    def refuse(self, heads: bytes) -> None:
        """Raise InvalidValueError for the state of which there is a piece, given by its heads."""
        state = first_state(heads)
        [name] = (name for name, number in self._numbers.items() if number == state)
        raise InvalidValueError(
            f"df must have rows of all states of operator {self._old.label}, got none of "
            f"{show(name)}, of which the savepoint has: name those that it has rows of "
            "in states, and the others are kept"
        )

    def _old_entries(self, states: Collection[str]) -> PartedJob:
        """Return the job that reads the entries of some states as they are."""
        plans = {name: StatePlan(self._numbers[name], ()) for name in states}
        write, names = self._files.task(0), frozenset(states)
        return old_pieces_job(
            EditTask(
                replace(task, states=names), write, self._files.parallelism, plans, is_anew=True
            )
            for task in self._old.tasks()
        )

    def _finish(self) -> tuple[Collection[str], bytes]:
        self._edited._metadata = with_keyed_state(self._edited._metadata, self._files.written)
        names, metadata = super()._finish()
        return [*names, *self._files.file_names], metadata


def _chosen(
    operator: Operator, known: Collection[StateDescriptor], states: Iterable[str] | None
) -> list[StateDescriptor]:
    """Return the states of some names, at least one."""
    if states is None:
        return [*known]
    names = check_states(states, [state.name for state in operator.states], operator.label)
    if not names:
        raise InvalidValueError("states must be at least one, got none")
    return [state for state in known if state.name in names]
