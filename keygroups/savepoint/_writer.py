"""Writes savepoints in the canonical format, which a Flink job restores."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from keygroups._checks import check_class, check_parallelisms, check_str, iterate, show
from keygroups.assignment import (
    compute_key_group_range_for_operator_index,
    compute_operator_index_for_key_group,
)
from keygroups.errors import InvalidTypeError, InvalidValueError
from keygroups.savepoint._entry_encoder import EncodedEntry, EntryEncoder
from keygroups.savepoint._files import check_path
from keygroups.savepoint._keyed_header import write_keyed_header, write_state
from keygroups.savepoint._keyed_state_file import KeyedStateFile
from keygroups.savepoint._metadata import (
    KeyGroupsHandle,
    Metadata,
    OperatorMetadata,
    SubtaskState,
)
from keygroups.savepoint._metadata_writer import write_metadata
from keygroups.savepoint._operator_id import operator_id_of
from keygroups.savepoint._output_folder import OutputFolder
from keygroups.savepoint._snapshots import write_serializer
from keygroups.savepoint._state_descriptors import (
    NEW_STATES,
    NewState,
    described,
    serializer_to_write,
)
from keygroups.savepoint._write_task import WriteTask, WrittenFile
from keygroups.types import KeyType

_VERSION = 3  # of _metadata, with which no object of Java is needed
_MOST_STATES = 32767


class SavepointWriter:
    """Writes a savepoint in the canonical format, which Flink 1.17 to 2.3 restores.

    `path` is a folder that is not there yet, or its URL (extra `savepoint`). It is there, whole,
    when the `with` block ends; if that raises, it never is. The job that restores it has to set
    its max parallelism explicitly, to the one given here.

    Raises InvalidValueError where the folder is there, InvalidTypeError for what is no path,
    SavepointError where it cannot be written.

    >>> from tempfile import mkdtemp
    >>> path = mkdtemp() + "/savepoint"
    >>> counts = [ValueStateDescriptor("count", LONG)]
    >>> with SavepointWriter(path) as writer:
    ...     by_user = writer.add_operator("by-user", STRING, counts, 128, parallelism=3)
    ...     for user in sorted(["ann", "bob"], key=by_user.key_group):
    ...         by_user.write("count", user, 7)
    >>> [(entry.key, entry.value) for entry in read_savepoint(path).operator("by-user").entries()]
    [('bob', 7), ('ann', 7)]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._folder = OutputFolder(check_path("path", path))
        self._operators: list[OperatorWriter] = []

    def __enter__(self) -> SavepointWriter:
        self._folder.make()
        return self

    def __exit__(
        self,
        cls: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            for operator in self._operators:
                operator.close(error)
            if error is None:
                self._commit()
        except BaseException:
            self._folder.remove()
            raise
        if error is not None:
            self._folder.remove()

    def add_operator(
        self,
        uid: str,
        key_type: KeyType,
        states: Iterable[NewState],
        max_parallelism: int,
        parallelism: int,
    ) -> OperatorWriter:
        """Add an operator with keyed state, and return what writes its entries.

        `uid` is the one set in the job, `key_type` that of its keyed stream, `states` the
        descriptors of its states. `max_parallelism`, 1..32768, has to be the job's;
        `parallelism`, 1..max_parallelism, is how many files are written: the job may run with
        any other.

        Raises InvalidValueError for a uid or a state that is there twice or has no name,
        UnsupportedKeyTypeError for a type whose serializer is not known, ParallelismError,
        InvalidTypeError.
        """
        groups, subtasks = check_parallelisms(max_parallelism, parallelism)
        operator_id = operator_id_of(check_str("uid", uid))
        if not uid or operator_id in [one.operator_id for one in self._operators]:
            raise InvalidValueError(f"uid must be one of the job's, and new here, got {show(uid)}")
        key = serializer_to_write("key_type", key_type)
        names, state_bytes = set(), []
        for state in iterate("states", "descriptors", states):
            if not isinstance(state, NEW_STATES):
                raise InvalidTypeError(
                    f"states must be descriptors such as ValueStateDescriptor, got {show(state)}"
                )
            if state.name in names:
                raise InvalidValueError(
                    f"states must differ in name, got {show(state.name)} twice"
                )
            names.add(state.name)
            state_bytes.append(write_state(described(state, key)))
        if not 1 <= len(names) <= _MOST_STATES:
            raise InvalidValueError(f"states must be 1 to {_MOST_STATES}, got {len(names)}")
        header = write_keyed_header(write_serializer(key), state_bytes)
        operator = OperatorWriter(self._folder, operator_id, header, groups, subtasks)
        self._operators.append(operator)
        return operator

    def _commit(self) -> None:
        operators = tuple(one.metadata() for one in self._operators)
        names = {
            subtask.managed_keyed.stream.path
            for one in operators
            for subtask in one.subtasks
            if isinstance(subtask.managed_keyed, KeyGroupsHandle)
        }
        metadata = Metadata(_VERSION, 1, None, operators)
        self._folder.commit(names, write_metadata(metadata))


class OperatorWriter:
    """Writes the entries of one operator; `SavepointWriter.add_operator` makes it.

    `states` are the states as the reader will find them.
    """

    def __init__(
        self,
        folder: OutputFolder,
        operator_id: str,
        header: bytes,
        max_parallelism: int,
        parallelism: int,
    ) -> None:
        self.operator_id = operator_id
        self.max_parallelism = max_parallelism
        self.parallelism = parallelism
        self._folder = folder
        self._header = header
        self._encoder = EntryEncoder(header, max_parallelism)
        self.states = self._encoder.states
        self._numbers = {state.name: number for number, state in enumerate(self.states)}
        self._written: dict[int, WrittenFile] = {}
        self._key_group = -1
        self._entries: list[EncodedEntry] = []  # of that key group
        self._task: WriteTask | None = None  # of the subtask that is being written
        self._opened = ExitStack()
        self._file: KeyedStateFile | None = None

    def key_group(self, key: Any) -> int:
        """Return the key group of a key, by which entries have to be sorted."""
        return self._encoder.key_group(key)

    def write(
        self,
        state: str,
        key: Any,
        value: Any,
        user_key: Any = None,
        last_access: int | None = None,
    ) -> None:
        """Write an entry: the value of a key, or of a user key in a MAP.

        `state` is a state's name. Key groups come in ascending order, within one the order is
        free; the entries of one are held until the next. A `value` is that of a VALUE or
        REDUCING state, a list of at least one element, or one value in a MAP, which may be None
        if it is a STRING. `last_access` is the epoch milliseconds at which a state with a time to
        live was last used; elements of a LIST may each have theirs, as a TtlValue.

        Raises InvalidValueError for a state that is not the operator's, a key group after a
        higher one, the same entry twice, which is found when its key group ends, and values
        beyond their types; InvalidTypeError; SavepointError where the file cannot be written.
        """
        number = self._numbers.get(check_str("state", state))
        if number is None:
            names = ", ".join(self._numbers)
            raise InvalidValueError(f"state must be one of {names}, got {show(state)}")
        entry = self._encoder.encode(number, key, value, user_key, last_access)
        if entry.key_group != self._key_group:
            if entry.key_group < self._key_group:
                raise InvalidValueError(
                    f"entries must come in the order of key groups, got key {show(key)} of key "
                    f"group {entry.key_group} after key group {self._key_group}"
                )
            self._end_key_group()
            self._key_group = entry.key_group
        self._entries.append(entry)

    def tasks(self) -> list[WriteTask]:
        """Return what writes each subtask's file elsewhere, instead of `write` here."""
        return [self._new_task(subtask) for subtask in range(self.parallelism)]

    def add(self, written: WrittenFile) -> None:
        """Take what a task wrote into the savepoint.

        Raises InvalidValueError where that subtask is there already, as when a task that was
        tried twice is added twice.
        """
        check_class("written", written, WrittenFile, "what WriteTask.write returns")
        if written.subtask in self._written:
            raise InvalidValueError(f"written must be of a new subtask, got {written.subtask}")
        self._written[written.subtask] = written

    def close(self, error: BaseException | None = None) -> None:
        """Write what is held, unless there was an error, and close the file."""
        try:
            if error is None:
                self._end_key_group()
        finally:
            self._end_subtask()

    def metadata(self) -> OperatorMetadata:
        """Return what `_metadata` says of the operator."""
        subtasks = tuple(
            SubtaskState(subtask, managed_keyed=self._written[subtask].handle)
            for subtask in sorted(self._written)
        )
        return OperatorMetadata(
            self.operator_id, "", "", self.parallelism, self.max_parallelism, subtasks
        )

    def _new_task(self, subtask: int) -> WriteTask:
        groups = self.max_parallelism
        key_groups = compute_key_group_range_for_operator_index(groups, self.parallelism, subtask)
        return WriteTask(self._folder, self.operator_id, subtask, groups, key_groups, self._header)

    def _end_key_group(self) -> None:
        if not self._entries:
            return
        subtask = compute_operator_index_for_key_group(
            self.max_parallelism, self.parallelism, self._key_group
        )
        if self._task is None or self._task.subtask != subtask:
            self._end_subtask()
            self._task = self._new_task(subtask)
            self._file = self._opened.enter_context(self._task.open())
        assert self._file is not None
        for entry in sorted(self._entries):
            self._file.add(entry)
        self._entries = []

    def _end_subtask(self) -> None:
        if self._task is not None and self._file is not None:
            task, file = self._task, self._file
            self._task = self._file = None
            self._opened.close()
            self.add(task.written(file))
