"""The keyed state of one operator, written with the edits that were asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from keygroups.errors import InvalidValueError, SavepointError
from keygroups.progress import Meter, ProgressCallback, measured
from keygroups.savepoint._edits.edit_task import (
    EditedFile,
    Edits,
    EditTask,
    MergeTask,
    MovedEntries,
    StatePlan,
)
from keygroups.savepoint._edits.merged_header import MergedHeader, refused
from keygroups.savepoint._edits.steps import FunctionError
from keygroups.savepoint._files.files import Files
from keygroups.savepoint._files.output_folder import OutputFolder
from keygroups.savepoint._metadata.handles import OperatorMetadata, SubtaskState
from keygroups.savepoint._operator import Operator
from keygroups.savepoint._state.writing.entry_encoder import EncodedEntry
from keygroups.savepoint._state.writing.spill import sorted_entries
from keygroups.savepoint._tasks.read import ahead
from keygroups.savepoint._tasks.write import OperatorFiles, WrittenFile


class WrittenState(NamedTuple):
    """How many entries of a state, in how many bytes, a subtask of the new savepoint has."""

    state: str
    subtask: int
    entries: int
    bytes: int


class EditedState(NamedTuple):
    """How many entries of a state were kept as they were, changed and deleted, and came new.

    `state` is its name in the old savepoint, `new_name` that in the new one, None if it was
    removed: then its entries are not read, and the numbers are None.
    """

    state: str
    new_name: str | None
    kept: int | None
    changed: int | None
    deleted: int | None
    added: int | None


class EditedKeyedState(OperatorFiles):
    """The edited keyed state of one operator.

    `tasks` edit a subtask each, on any machine. What they return is for `merges`, which returns
    the tasks that are left then; what these return is for `add`. `write` does all that here.

    With `is_anew` all entries get a new place: `new` may have another max parallelism and
    parallelism. Then `has_steps` says whether anything else is done to them; where it is not,
    the entries that the tasks yield, in the order of the new key groups, may be written by the
    tasks of OperatorFiles instead.
    """

    def __init__(
        self,
        folder: OutputFolder,
        operator: Operator,
        new: OperatorMetadata,
        header: MergedHeader,
        plans: Mapping[str, StatePlan],
        new_names: Mapping[str, str | None],
        keys_to_delete: Mapping[bytes, Any],
        is_anew: bool,
    ) -> None:
        super().__init__(
            folder,
            new.operator_id,
            header.data,
            header.states,
            new.max_parallelism,
            new.parallelism,
        )
        self.label = operator.label
        self.is_anew = is_anew
        self.has_steps = any(plan.steps for plan in plans.values())
        # A step may move entries inside of a key group too.
        self._is_sorted = not self.has_steps and operator.max_parallelism == new.max_parallelism
        self._base = operator._files.base
        self._bytes = sum(subtask.bytes for subtask in operator.subtasks)
        self._numbers = {name: plan.number for name, plan in plans.items()}
        self._new_names = new_names
        self._keys_to_delete = keys_to_delete  # by their bytes
        self._deleted_keys: set[bytes] = set()
        self._files = Files(folder.writing_path, {})
        self._context = operator._context
        self._changed: Counter[str] = Counter()
        self._deleted: Counter[str] = Counter()
        self._added: Counter[str] = Counter()
        self.tasks: list[EditTask] = []
        names = plans if None in new_names.values() else None
        for read in operator.tasks(names) if plans else ():
            task = self.task(0 if is_anew else read.subtask)
            for key_groups in () if is_anew else read.key_groups.ranges:
                if (
                    key_groups.start_key_group not in task.key_groups
                    or key_groups.end_key_group not in task.key_groups
                ):
                    raise refused(
                        operator,
                        f"has {key_groups} in subtask {read.subtask}, whose are {task.key_groups}",
                    )
            self.tasks.append(EditTask(read, task, self.parallelism, plans, is_anew))

    def merges(self, edited: Iterable[EditedFile]) -> list[MergeTask]:
        """Take what the tasks did, and return those that write files with entries that moved."""
        files = {file.subtask: file for file in edited}
        moved: dict[int, list[MovedEntries]] = {}
        for file in files.values():
            self._count(file)
            for subtask, entries in file.moved.items():
                moved.setdefault(subtask, []).extend(entries)
        for subtask, file in files.items():
            if file.written is not None and subtask not in moved:
                self.add(file.written)
        tasks = []
        for subtask in sorted(moved):
            written = files[subtask].written if subtask in files else None
            tasks.append(
                MergeTask(
                    self._files,
                    self._context,
                    self.task(subtask),
                    None if written is None else written.handle,
                    tuple(moved[subtask]),
                )
            )
        return tasks

    def write(self, scratch: Path | None, progress: ProgressCallback | None = None) -> None:
        """Write all of it, on this machine; what is sorted is meanwhile in a folder.

        Raises what `EditTask.run` and `MergeTask.run` raise, and SavepointError where a key is
        there twice in what no step has changed.
        """
        if self.is_anew:
            try:
                self._write_anew(scratch, progress)
            except FunctionError as error:
                raised = error.error
            else:
                return
            raise raised
        with measured(
            progress,
            f"edit {self.label}",
            lambda: sum(task.read.bytes_to_read for task in self.tasks),
        ) as meter:
            merges = self.merges([task.metered(meter).run() for task in self.tasks])
        with measured(
            progress, f"merge {self.label}", lambda: sum(task.bytes for task in merges)
        ) as meter:
            for task in merges:
                self.add(task.metered(meter).run(scratch))

    def _write_anew(self, scratch: Path | None, progress: ProgressCallback | None) -> None:
        size = self._bytes
        work = size if self._is_sorted else 2 * size  # what is sorted counts twice
        with measured(progress, f"write {self.label}", lambda: work) as meter:
            entries = self._entries(meter)
            if not self._is_sorted:
                entries = sorted_entries(entries, scratch, size, meter)
            with closing(entries):
                try:
                    self._write_sorted(entries)
                except InvalidValueError as error:  # of key groups or keys that are there twice
                    if self.has_steps:
                        raise
                    raise SavepointError(f"{self._base}: {error}") from None

    def _entries(self, meter: Meter | None) -> Generator[EncodedEntry, None, None]:
        """Yield the entries in the order of the old key groups, and count what is done to them."""
        reads = ahead([task.read for task in self.tasks], meter=meter)
        for task, read in zip(self.tasks, reads):
            task = replace(task, read=read)
            if self.has_steps:
                edits = Edits(task)
                yield from task.entries(edits)
                self._count(edits.done())
            else:
                yield from task.entries()

    def _count(self, file: EditedFile) -> None:
        self._deleted_keys |= file.deleted_keys
        for name, counts in file.counts.items():
            self._changed[name] += counts.changed
            self._deleted[name] += counts.deleted
            self._added[name] += counts.added

    def deleted_keys(self) -> tuple[int, tuple[Any, ...]]:
        """Return how many keys that were to be deleted had entries, and those that had none."""
        missing = [
            key for data, key in self._keys_to_delete.items() if data not in self._deleted_keys
        ]
        return len(self._deleted_keys), tuple(missing)

    def edited_states(self) -> tuple[EditedState, ...]:
        """Return what became of the entries of each state of the old savepoint."""
        return tuple(
            EditedState(name, None, None, None, None, None)
            if new_name is None
            else self._edited_state(name, new_name)
            for name, new_name in self._new_names.items()
        )

    def _edited_state(self, name: str, new_name: str) -> EditedState:
        changed, added = self._changed[name], self._added[name]
        number = self._numbers[name]
        entries = sum(file.entries.get(number, 0) for file in self.written.values())
        kept = entries - changed - added
        return EditedState(name, new_name, kept, changed, self._deleted[name], added)

    def written_states(self) -> tuple[WrittenState, ...]:
        """Return what each subtask has of each state, where all entries got a new place."""
        return tuple(
            WrittenState(state.name, subtask, file.entries[number], file.bytes[number])
            for number, state in enumerate(self.states if self.is_anew else ())
            for subtask, file in sorted(self.written.items())
            if number in file.entries
        )


def with_keyed_state(
    operator: OperatorMetadata, written: Mapping[int, WrittenFile]
) -> OperatorMetadata:
    """Return an operator with the keyed state that was written, by subtask, and no other."""
    old = {subtask.index: subtask for subtask in operator.subtasks}
    subtasks = []
    for index in sorted({*old, *written}):
        subtask = old.get(index, SubtaskState(index))
        as_read = {name: data for name, data in subtask.as_read.items() if "keyed" not in name}
        handle = written[index].handle if index in written else None
        subtasks.append(replace(subtask, managed_keyed=handle, raw_keyed=None, as_read=as_read))
    return replace(operator, subtasks=tuple(subtasks))
