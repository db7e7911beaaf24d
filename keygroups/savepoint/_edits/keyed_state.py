"""The keyed state of one operator, written with the edits that were asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from keygroups.errors import InvalidValueError, SavepointError
from keygroups.progress import Meter, ProgressCallback, measured
from keygroups.savepoint._edits.edit_task import (
    LEAST_OF_COLUMNS,
    EditedFile,
    Edits,
    EditTask,
    StatePlan,
)
from keygroups.savepoint._edits.merged_header import MergedHeader, refused
from keygroups.savepoint._edits.moved_entries import MovedEntries
from keygroups.savepoint._edits.steps import FunctionError
from keygroups.savepoint._files.files import Files
from keygroups.savepoint._files.output_folder import OutputFolder
from keygroups.savepoint._metadata.handles import OperatorMetadata, SubtaskState
from keygroups.savepoint._metadata.key_group_ranges import KeyGroupRanges
from keygroups.savepoint._operator import Operator
from keygroups.savepoint._state.entries import EncodedEntry
from keygroups.savepoint._state.writing.keyed_state_file import KeyedStateFile
from keygroups.savepoint._state.writing.spill import sorted_entries
from keygroups.savepoint._state.writing.write_task import OperatorFiles, WriteTask, WrittenFile
from keygroups.savepoint._tasks.read import ReadTask, ahead

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from keygroups.savepoint._columns.batch_sorter import BatchSorter


class WrittenState(NamedTuple):
    """The numbers of entries and bytes of a state in a subtask of the new savepoint."""

    state: str
    subtask: int
    entries: int
    bytes: int


class EditedState(NamedTuple):
    """The numbers of entries of a state that were kept as they were, changed, deleted and added.

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

    `tasks` edit a subtask each, on any machine. Their EditedFiles go to `done`, which returns the
    tasks that take in moved entries; the EditedFiles of these go there too. `write` does all that
    in this process.

    With `is_anew` every entry moves: `new` may have another max parallelism and parallelism.
    `has_steps` then says whether the entries change too. If not, the caller may sort the entries
    that the tasks yield by their new key groups, and write them with the tasks of OperatorFiles.
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
        # With the same key groups and no step the old order is the new one; a step may change a
        # key without leaving its key group.
        self._is_sorted = not self.has_steps and operator.max_parallelism == new.max_parallelism
        self._base = operator._files.base
        self._bytes = sum(subtask.bytes for subtask in operator.subtasks)
        self._numbers = {name: plan.number for name, plan in plans.items()}
        self._new_names = new_names
        self._keys_to_delete = keys_to_delete  # bytes to key, as DeleteKeys.add returns them
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

    def done(self, edited: Iterable[EditedFile]) -> list[EditTask]:
        """Add files that tasks have written, and return the tasks that follow, none after these.

        A file is final if no entry of any subtask moved to it; each other has a task.
        """
        files = {file.subtask: file for file in edited}
        moved: dict[int, list[MovedEntries]] = {}
        for file in files.values():
            self._count(file)
            for subtask, entries in file.moved.items():
                moved.setdefault(subtask, []).extend(entries)
        for subtask, file in files.items():
            if file.written is not None and subtask not in moved:
                self.add(file.written)
        return [
            self._merge(subtask, files.get(subtask), moved[subtask]) for subtask in sorted(moved)
        ]

    def _merge(
        self, subtask: int, file: EditedFile | None, moved: Iterable[MovedEntries]
    ) -> EditTask:
        """Return the task that writes a file once more, with moved entries."""
        write = self.task(subtask)
        written = None if file is None else file.written
        key_groups = write.key_groups.start_key_group, write.key_groups.end_key_group
        read = ReadTask(
            self._files,
            self._context,
            () if written is None else (written.handle,),
            subtask,
            self.max_parallelism,
            KeyGroupRanges.of([key_groups]),
            None,
        )
        plans = {state.name: StatePlan(number, ()) for number, state in enumerate(self.states)}
        return EditTask(read, write, self.parallelism, plans, moved=tuple(moved))

    def write(self, scratch: Path | None, progress: ProgressCallback | None = None) -> None:
        """Write all of it in this process; sorts spill to files in `scratch`.

        Raises what `EditTask.run` raises, and SavepointError where a key is there twice in what
        no step has changed.
        """
        if self.is_anew:
            try:
                self._write_anew(scratch, progress)
            except FunctionError as error:
                raised = error.error
            else:
                return
            raise raised
        merges = self.done(_run(self.tasks, progress, f"edit {self.label}", scratch))
        self.done(_run(merges, progress, f"merge {self.label}", scratch))

    def _write_anew(self, scratch: Path | None, progress: ProgressCallback | None) -> None:
        size = self._bytes
        work = size if self._is_sorted else 2 * size  # bytes: a sort reads them and writes them
        with measured(progress, f"write {self.label}", lambda: work) as meter:
            sorter = self._sorted_columns(scratch, meter)
            try:
                if sorter is not None:
                    self._write_sorter(sorter, meter)
                    return
                entries = self._entries(meter)
                if not self._is_sorted:
                    entries = sorted_entries(entries, scratch, size, meter)
                with closing(entries):
                    self._write_sorted(entries)
            except InvalidValueError as error:  # key groups out of order, or a key twice
                if self.has_steps:
                    raise
                raise SavepointError(f"{self._base}: {error}") from None

    def _sorted_columns(self, scratch: Path | None, meter: Meter | None) -> BatchSorter | None:
        """Return all entries with their new key groups as columns, which are to be sorted.

        Returns None where they are left to `_entries`: without NumPy and PyArrow, in their old
        order, and where some are damaged and there are no steps: it names the first. So are few,
        which take less time than to import those two.
        """
        if self._is_sorted or self._bytes < LEAST_OF_COLUMNS:
            return None
        try:
            import numpy  # noqa: F401  # This and PyArrow are of an extra.

            from keygroups.savepoint._columns.batch_sorter import BatchSorter
        except ModuleNotFoundError:
            return None
        with ExitStack() as unless_whole:
            sorter = BatchSorter(scratch)
            unless_whole.callback(sorter.close)
            try:
                for task, edits in self._reads(meter):
                    for batch in task.batches(edits):
                        if sorter.add(batch):
                            sorter.spill()
            except SavepointError:
                if self.has_steps:  # Each is applied once to an entry, and names it itself.
                    raise
                return None
            unless_whole.pop_all()
        return sorter

    def _write_sorter(self, sorter: BatchSorter, meter: Meter | None) -> None:
        """Write the entries of a sorter, and close it."""
        with closing(sorter), closing(sorter.entries()) as batches:
            self._write_sorted_batches(batches)
        if meter is not None:
            meter.add(self._bytes)

    def _write_sorted_batches(self, batches: Iterable[RecordBatch]) -> None:
        """Write the files of all subtasks from batches in the order of `WriteTask.write`."""
        from keygroups.savepoint._columns.entry_frames import write_batches

        with ExitStack() as closing:
            opened: list[tuple[WriteTask, KeyedStateFile]] = []

            def finish() -> None:
                closing.close()
                for task, file in opened:
                    self.add(task.written(file))
                opened.clear()

            def file_of(subtask: int) -> KeyedStateFile:
                finish()
                task = self.task(subtask)
                opened.append((task, closing.enter_context(task.open())))
                return opened[0][1]

            write_batches(batches, file_of, self.max_parallelism, self.parallelism)
            finish()

    def _entries(self, meter: Meter | None) -> Generator[EncodedEntry, None, None]:
        """Yield the edited entries in the order of the old key groups, and count the edits."""
        for task, edits in self._reads(meter):
            yield from task.entries(edits)

    def _reads(self, meter: Meter | None) -> Iterator[tuple[EditTask, Edits | None]]:
        """Yield each task as it is read ahead, and its Edits if there are any steps.

        What these counted is added when the next task is asked for.
        """
        reads = ahead([task.read for task in self.tasks], meter=meter)
        for task, read in zip(self.tasks, reads):
            task = replace(task, read=read)
            edits = Edits(task) if self.has_steps else None
            yield task, edits
            if edits is not None:
                self._count(edits.done())

    def _count(self, file: EditedFile) -> None:
        self._deleted_keys |= file.deleted_keys
        for name, counts in file.counts.items():
            self._changed[name] += counts.changed
            self._deleted[name] += counts.deleted
            self._added[name] += counts.added

    def deleted_keys(self) -> tuple[int, tuple[Any, ...]]:
        """Return the number of deleted keys that had entries, and the keys that had none."""
        missing = [
            key for data, key in self._keys_to_delete.items() if data not in self._deleted_keys
        ]
        return len(self._deleted_keys), tuple(missing)

    def edited_states(self) -> tuple[EditedState, ...]:
        """Return the EditedState of each state of the old savepoint."""
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
        """Return the WrittenState of each state and subtask if all entries moved, else nothing."""
        return tuple(
            WrittenState(state.name, subtask, file.entries[number], file.bytes[number])
            for number, state in enumerate(self.states if self.is_anew else ())
            for subtask, file in sorted(self.written.items())
            if number in file.entries
        )


def _run(
    tasks: Sequence[EditTask], progress: ProgressCallback | None, work: str, scratch: Path | None
) -> list[EditedFile]:
    """Run tasks in this process."""
    with measured(progress, work, lambda: sum(task.bytes for task in tasks)) as meter:
        return [task.metered(meter).run(scratch) for task in tasks]


def with_keyed_state(
    operator: OperatorMetadata, written: Mapping[int, WrittenFile]
) -> OperatorMetadata:
    """Return an operator whose keyed state is that of the written files, by subtask, alone."""
    old = {subtask.index: subtask for subtask in operator.subtasks}
    subtasks = []
    for index in sorted({*old, *written}):
        subtask = old.get(index, SubtaskState(index))
        as_read = {name: data for name, data in subtask.as_read.items() if "keyed" not in name}
        handle = written[index].handle if index in written else None
        subtasks.append(replace(subtask, managed_keyed=handle, raw_keyed=None, as_read=as_read))
    return replace(operator, subtasks=tuple(subtasks))
