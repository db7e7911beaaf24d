"""Writes the keyed state of one operator with the edits that were asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from keygroups.progress import ProgressCallback, measured
from keygroups.savepoint._files.files import Files
from keygroups.savepoint._files.output_folder import OutputFolder
from keygroups.savepoint._metadata.handles import OperatorMetadata
from keygroups.savepoint._operator import Operator
from keygroups.savepoint._rewriting.operator_rewriter import MergedHeader, refused
from keygroups.savepoint._tasks.edit import (
    EditedFile,
    EditTask,
    MergeTask,
    MovedEntries,
    StatePlan,
)
from keygroups.savepoint._tasks.write import OperatorFiles


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


class EditingRewriter(OperatorFiles):
    """The edited keyed state of one operator.

    `tasks` edit a subtask each, on any machine. What they return is for `merges`, which returns
    the tasks that are left then; what these return is for `add`. `write` does all that here.
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
        self._new_names = new_names
        self._keys_to_delete = keys_to_delete  # by their bytes
        self._deleted_keys: set[bytes] = set()
        self._files = Files(folder.writing_path, {})
        self._context = operator._context
        self._entries: Counter[str] = Counter()
        self._changed: Counter[str] = Counter()
        self._deleted: Counter[str] = Counter()
        self._added: Counter[str] = Counter()
        self.tasks: list[EditTask] = []
        for read in operator.tasks(plans) if plans else ():
            task = self.task(read.subtask)
            for key_groups in read.key_groups.ranges:
                if (
                    key_groups.start_key_group not in task.key_groups
                    or key_groups.end_key_group not in task.key_groups
                ):
                    raise refused(
                        operator,
                        f"has {key_groups} in subtask {read.subtask}, whose are {task.key_groups}",
                    )
            self.tasks.append(EditTask(read, task, self.parallelism, plans))

    def merges(self, edited: Iterable[EditedFile]) -> list[MergeTask]:
        """Take what the tasks did, and return those that write files with entries that moved."""
        files = {file.subtask: file for file in edited}
        moved: dict[int, list[MovedEntries]] = {}
        for file in files.values():
            self._deleted_keys |= file.deleted_keys
            self._entries.update(file.entries)
            for name, counts in file.counts.items():
                self._changed[name] += counts.changed
                self._deleted[name] += counts.deleted
                self._added[name] += counts.added
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

        Raises what `EditTask.run` and `MergeTask.run` raise.
        """
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
            else EditedState(
                name,
                new_name,
                self._entries[name] - self._changed[name] - self._deleted[name],
                self._changed[name],
                self._deleted[name],
                self._added[name],
            )
            for name, new_name in self._new_names.items()
        )
