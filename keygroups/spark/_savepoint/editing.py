"""Editors of savepoints whose new keyed state Spark writes: edited entries, or rows."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from keygroups._checks import check_states, show
from keygroups.errors import InvalidValueError, SavepointError
from keygroups.savepoint import Operator, Savepoint, SavepointEditor, StateDescriptor
from keygroups.savepoint._edits.edit_task import EditTask, StatePlan
from keygroups.savepoint._edits.keyed_state import EditedKeyedState, with_keyed_state
from keygroups.savepoint._edits.merged_header import merged_header
from keygroups.savepoint._tasks.write import OperatorFiles
from keygroups.spark._savepoint.entry_pieces import (
    first_state,
    old_pieces,
    pieces_of_rows,
    write_pieces,
)
from keygroups.spark._savepoint.results import described, run_tasks


class SparkEditor(SavepointEditor):
    """Writes a savepoint from another, its edited keyed state in tasks of Spark.

    A task edits the state of one subtask, and further tasks merge the entries that moved. Where
    entries move only as the max parallelism or parallelism changes, Spark moves them in pieces.
    """

    _path_name = "output"

    def __init__(
        self, spark: SparkSession, savepoint: Savepoint, path: str | os.PathLike[str]
    ) -> None:
        super().__init__(savepoint, path)
        self._spark = spark

    def _write_keyed_state(self, keyed_state: EditedKeyedState) -> None:
        spark, tasks = self._spark, keyed_state.tasks
        with described(spark, f"edit_savepoint: {keyed_state.label}, to {self._folder.path}"):
            if keyed_state.is_anew and not keyed_state.has_steps:
                write_pieces(old_pieces(spark, tasks), keyed_state)
                return
            edited = run_tasks(spark, [task.run for task in tasks])
            for file in run_tasks(spark, [task.run for task in keyed_state.merges(edited)]):
                keyed_state.add(file)


class RowsEditor(SavepointEditor):
    """Writes a savepoint from another, with the keyed state of one operator taken from rows.

    `operator` is its uid, name or id; `states` are the names of the states in the rows, all if
    None. Raises what `write_keyed_state` raises before a job starts.
    """

    def __init__(
        self,
        savepoint: Savepoint,
        path: str | os.PathLike[str],
        operator: str,
        states: Iterable[str] | None,
        df: DataFrame,
        allow_any_last_access: bool,
    ) -> None:
        super().__init__(savepoint, path)
        self._edited = self._copied.find(operator)
        self._old = old = self._edited.operator
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
        metadata = self._edited.metadata
        groups = metadata.max_parallelism
        self._files = OperatorFiles(
            *(self._folder, metadata.operator_id, header.data, header.states, groups),
            metadata.parallelism,
        )
        self._is_whole = states is None
        wanted = _chosen(old, header.states, states)
        # Both need NumPy and PyArrow.
        from keygroups.savepoint._columns.row_shapes import LongRows, check_states_of_rows
        from keygroups.spark._savepoint.rows.entry_rows import entry_rows

        check_states_of_rows(old.label, wanted)
        rows = entry_rows(df, wanted)
        self._spark = df.sparkSession
        self._numbers = {state.name: number for number, state in enumerate(header.states)}
        encoder = LongRows(
            *(header.states, groups, allow_any_last_access, rows.columns, rows.places)
        )
        self._pieces = pieces_of_rows(rows.df, encoder, self._files)
        kept = self._numbers.keys() - {state.name for state in wanted}
        if kept:
            self._pieces = self._pieces.unionAll(self._old_pieces(kept))

    def write_rows(self) -> None:
        """Write the keyed state of the operator on Spark.

        Raises InvalidValueError where there are rows of some states only, and entries of others.
        """
        label = self._old.label
        with described(self._spark, f"write_keyed_state: {label}, to {self._folder.path}"):
            write_pieces(self._pieces, self._files)
            if self._is_whole:
                self._check_whole()

    def _check_whole(self) -> None:
        written = {number for file in self._files.written.values() for number in file.entries}
        missing = {name for name, number in self._numbers.items() if number not in written}
        if missing:
            for row in self._old_pieces(missing).limit(1).collect():
                number = first_state(row["heads"])
                [name] = (name for name in missing if self._numbers[name] == number)
                raise InvalidValueError(
                    f"df must have rows of all states of operator {self._old.label}, got none of "
                    f"{show(name)}, of which the savepoint has: name those that it has rows of "
                    "in states, and the others are kept"
                )

    def _old_pieces(self, states: Collection[str]) -> DataFrame:
        """Return the entries of some states as they are."""
        plans = {name: StatePlan(self._numbers[name], ()) for name in states}
        write, names = self._files.task(0), frozenset(states)
        return old_pieces(
            self._spark,
            [
                EditTask(
                    replace(task, states=names),
                    write,
                    self._files.parallelism,
                    plans,
                    is_anew=True,
                )
                for task in self._old.tasks()
            ],
        )

    def _finish(self) -> tuple[Collection[str], bytes]:
        self._edited.metadata = with_keyed_state(self._edited.metadata, self._files.written)
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
