"""Writes the keyed state of one subtask, on another machine too."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, groupby
from operator import itemgetter
from typing import NamedTuple

from keygroups._checks import check_class
from keygroups._serializers.data_output import longs
from keygroups.errors import InvalidValueError
from keygroups.key_group_range import (
    KeyGroupRange,
    compute_key_group_range_for_operator_index,
    compute_operator_index_for_key_group,
)
from keygroups.savepoint._files.output_folder import OutputFolder
from keygroups.savepoint._metadata.handles import KeyGroupsHandle, StreamHandle
from keygroups.savepoint._state.entries import EncodedEntry
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.writing.entry_encoder import EntryEncoder, name_of
from keygroups.savepoint._state.writing.keyed_state_file import KeyedStateFile


class WrittenFile(NamedTuple):
    """The file of a subtask; `entries` and `bytes` are by the number of a state."""

    subtask: int
    handle: KeyGroupsHandle
    entries: Mapping[int, int]
    bytes: Mapping[int, int]


@dataclass(frozen=True)
class WriteTask:
    """Writes the file of one subtask; it may be pickled, and tried again.

    What `write` returns is for `OperatorWriter.add`; a file that is never added is removed when
    the savepoint is complete.
    """

    folder: OutputFolder
    operator_id: str
    subtask: int
    max_parallelism: int
    key_groups: KeyGroupRange
    header: bytes
    states: tuple[StateDescriptor, ...]
    allow_any_last_access: bool = False

    def encoder(self) -> EntryEncoder:
        """Return an encoder of the operator's entries."""
        return EntryEncoder(self.states, self.max_parallelism, self.allow_any_last_access)

    def write(self, entries: Iterable[EncodedEntry]) -> WrittenFile:
        """Write entries that come ordered by key group and state, and of a state by key.

        Raises InvalidValueError where one comes twice, or a key group is not the subtask's or
        not in order, SavepointError where the file cannot be written.
        """
        with self.open() as file:
            for entry in entries:
                file.add(entry)
        return self.written(file)

    @contextmanager
    def open(self) -> Iterator[KeyedStateFile]:
        """Make the file, to which the caller adds entries; it is whole when it is closed."""
        name = f"{self.operator_id}-{self.subtask}-{uuid.uuid4().hex}"
        with self.folder.create(name) as stream:
            file = KeyedStateFile(
                stream, name, self.header, self.max_parallelism, self.key_groups, self._name
            )
            yield file
            file.finish()

    def written(self, file: KeyedStateFile) -> WrittenFile:
        """Return the handle of a file that is whole, and how much is in it."""
        stream = StreamHandle(file.size, path=file.name, is_relative=True)
        handle = KeyGroupsHandle(self.key_groups, longs(file.offsets), stream, is_canonical=True)
        return WrittenFile(self.subtask, handle, file.entries, file.bytes)

    def _name(self, entry: EncodedEntry) -> str:
        return name_of(entry, self.states)


class OperatorFiles:
    """The files of keyed state of one operator: their tasks, and those that were written.

    `states` are its states by number, `written` the files that were added, by subtask.
    """

    def __init__(
        self,
        folder: OutputFolder,
        operator_id: str,
        header: bytes,
        states: tuple[StateDescriptor, ...],
        max_parallelism: int,
        parallelism: int,
        allow_any_last_access: bool = False,
    ) -> None:
        self.operator_id = operator_id
        self.max_parallelism = max_parallelism
        self.parallelism = parallelism
        self.written: dict[int, WrittenFile] = {}
        self._folder = folder
        self.states = states
        self._header = header
        self._allow_any_last_access = allow_any_last_access

    def task(self, subtask: int) -> WriteTask:
        """Return the task that writes the file of a subtask."""
        groups = self.max_parallelism
        key_groups = compute_key_group_range_for_operator_index(groups, self.parallelism, subtask)
        return WriteTask(
            self._folder,
            self.operator_id,
            subtask,
            groups,
            key_groups,
            self._header,
            self.states,
            self._allow_any_last_access,
        )

    def _write_sorted(self, entries: Iterable[EncodedEntry]) -> None:
        """Write the files of all subtasks from entries in the order of `WriteTask.write`."""
        groups, parallelism = self.max_parallelism, self.parallelism
        subtasks = [
            compute_operator_index_for_key_group(groups, parallelism, key_group)
            for key_group in range(groups)
        ]
        # A key group has many entries: one call of Python for each of it, none for these.
        key_groups = groupby(entries, itemgetter(0))
        for subtask, of_subtask in groupby(key_groups, lambda group: subtasks[group[0]]):
            self.add(self.task(subtask).write(chain.from_iterable(map(itemgetter(1), of_subtask))))

    def add(self, written: WrittenFile) -> None:
        """Add the file that a task wrote to the savepoint.

        Raises InvalidValueError where that subtask is there already, as when a task was tried
        twice and both are added, and for another operator's; InvalidTypeError for what no task
        returned.
        """
        check_class("written", written, WrittenFile, "what WriteTask.write returns")
        path = written.handle.stream.path
        if not path.startswith(self.operator_id):
            raise InvalidValueError(
                f"written must be of the operator {self.operator_id}, got the file {path}"
            )
        if written.subtask in self.written:
            raise InvalidValueError(f"written must be of a new subtask, got {written.subtask}")
        self.written[written.subtask] = written

    @property
    def file_names(self) -> list[str]:
        """The names of the files that were added."""
        return [written.handle.stream.path for written in self.written.values()]
