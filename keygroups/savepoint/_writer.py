"""Writes savepoints in the canonical format, which a Flink job restores."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from keygroups._checks import (
    check_choice,
    check_class,
    check_parallelisms,
    check_str,
    iterate,
    show,
)
from keygroups._serializers.base import Serializer
from keygroups.errors import InvalidTypeError, InvalidValueError, KeyGroupsError, SavepointError
from keygroups.key_group_range import compute_operator_index_for_key_group
from keygroups.savepoint._files.output_folder import FolderWriter, OutputFolder
from keygroups.savepoint._metadata.handles import (
    Metadata,
    OperatorMetadata,
    SubtaskState,
    operator_id_of,
)
from keygroups.savepoint._metadata.writer import write_metadata
from keygroups.savepoint._state.entry_encoder import EncodedEntry, EntryEncoder, joined_lists
from keygroups.savepoint._state.header import StateDescriptor, write_keyed_header, write_state
from keygroups.savepoint._state.keyed_state_file import KeyedStateFile
from keygroups.savepoint._state.new_states import (
    EVENT_TIME,
    TIME_DOMAINS,
    USER_TIMERS,
    NewState,
    TimerServiceDescriptor,
    described,
    key_to_write,
    timer_state_name,
    timer_states,
)
from keygroups.savepoint._tasks.write import OperatorFiles, WriteTask
from keygroups.savepoint._windows.assigners import WindowAssigner
from keygroups.savepoint._windows.window_writer import (
    SESSIONS,
    WindowContents,
    WindowOperatorWriter,
    check_lateness,
    window_states,
)
from keygroups.types import KeyType

_VERSION = 3  # of _metadata, with which no object of Java is needed
_MOST_STATES = 32767


class SavepointWriter(FolderWriter):
    """Writes a savepoint in the canonical format, which Flink 1.17 to 2.3 reads.

    Jobs of 1.17.2, 1.19.3, 1.20.5, 2.1.3 and 2.3.0 have restored what it wrote, entry by entry.

    `path` is a folder that is not there yet, or its URL (extra `savepoint`). It is there, whole,
    when the `with` block ends; if that raises, it never is. The job that restores it has to set
    its max parallelism explicitly, to the one given here.

    A local one is written in a folder `.NAME.<32 hexadecimal digits>.writing` beside it, and
    renamed. One that a killed writer left is a LeftoverWarning, which names it.

    Raises InvalidValueError where the folder is there, and for URLs of several parts (::) or of
    what is no store, such as http; InvalidTypeError for what is no path; SavepointError where it
    cannot be written.

    >>> from tempfile import mkdtemp
    >>> from keygroups.savepoint import ValueStateDescriptor, read_savepoint
    >>> from keygroups.types import LONG, STRING
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
        super().__init__("path", path)
        self._operators: list[OperatorWriter] = []

    def add_operator(
        self,
        uid: str,
        key_type: KeyType | Serializer,
        states: Iterable[NewState | TimerServiceDescriptor],
        max_parallelism: int,
        parallelism: int,
        *,
        allow_any_last_access: bool = False,
    ) -> OperatorWriter:
        """Add an operator with keyed state, and return what writes its entries.

        `uid` is the one set in the job, `key_type` that of its keyed stream, or its Serializer if
        it has a key type, `states` the descriptors of its states, and a TimerServiceDescriptor if
        it has timers. `max_parallelism`, 1..32768,
        has to be the job's; `parallelism`, 1..max_parallelism, is how many files are written: the
        job may run with any other. `allow_any_last_access` takes times of last access before
        September 2001, as which seconds are refused, and more than a day from now, as which
        microseconds are.

        Raises InvalidValueError for a uid or a state that is there twice or has no name,
        UnsupportedKeyTypeError for a type whose serializer is not known, ParallelismError,
        InvalidTypeError.
        """
        groups, subtasks = check_parallelisms(max_parallelism, parallelism)
        operator_id = self._new_operator_id("uid", uid)
        key = key_to_write("key_type", key_type)
        names: set[str] = set()
        descriptors: list[StateDescriptor] = []
        for state in iterate("states", "descriptors", states):
            if isinstance(state, NewState):
                new = [described(state, key)]
            elif isinstance(state, TimerServiceDescriptor):
                new = timer_states(state, key)
            else:
                raise InvalidTypeError(
                    f"states must be descriptors such as ValueStateDescriptor, got {show(state)}"
                )
            if new[0].name in names:
                raise InvalidValueError(
                    f"states must differ in name, got {show(state.name)} twice"
                )
            names.update(descriptor.name for descriptor in new)
            descriptors += new
        if not 1 <= len(names) <= _MOST_STATES:
            raise InvalidValueError(f"states must be 1 to {_MOST_STATES}, got {len(names)}")
        header = write_keyed_header(key.snapshot_bytes(), [*map(write_state, descriptors)])
        allow = check_class("allow_any_last_access", allow_any_last_access, bool, "a bool")
        operator = OperatorWriter(
            self._folder, operator_id, header, tuple(descriptors), groups, subtasks, allow
        )
        self._operators.append(operator)
        return operator

    def add_window_operator(
        self,
        uid: str,
        key_type: KeyType | Serializer,
        assigner: WindowAssigner,
        contents: WindowContents,
        max_parallelism: int,
        parallelism: int,
        allowed_lateness: int = 0,
        *,
        has_evictor: bool = False,
    ) -> WindowOperatorWriter:
        """Add the operator of a WindowedStream, and return what writes its windows.

        `assigner` is that of the job, such as TumblingEventTimeWindows, with the trigger that it
        has by itself. `contents` is named "window-contents": a ListStateDescriptor of the
        elements where the job calls `process` or `apply`, a ReducingStateDescriptor where it
        calls `reduce`, an AggregatingStateDescriptor where it calls `aggregate`.
        `allowed_lateness`, in milliseconds, is that of event time, and `has_evictor` whether the
        job has one. The other arguments are those of `add_operator`, and so is what is raised.

        A job that is restored is before all watermarks: a window ends as its first one has
        passed it, or as the clock of the machine has.

        Flink: WindowOperator.

        >>> from tempfile import mkdtemp
        >>> from keygroups.savepoint import ReducingStateDescriptor, TumblingEventTimeWindows
        >>> from keygroups.savepoint import read_savepoint
        >>> from keygroups.types import LONG, STRING
        >>> path = mkdtemp() + "/savepoint"
        >>> minutes = TumblingEventTimeWindows(60_000)
        >>> sums = ReducingStateDescriptor("window-contents", LONG)
        >>> with SavepointWriter(path) as writer:
        ...     by_user = writer.add_window_operator("sums", STRING, minutes, sums, 128, 3)
        ...     [window] = minutes.assign_windows(1_700_000_000_000)
        ...     by_user.write("ann", window, 7)
        >>> for entry in read_savepoint(path).operator("sums").entries():
        ...     print(entry.state, entry.key, entry.value, entry.timestamp)
        window-contents ann 7 None
        _timer_state/event_window-timers ann None 1700000039999
        """
        groups, subtasks = check_parallelisms(max_parallelism, parallelism)
        operator_id = self._new_operator_id("uid", uid)
        key = key_to_write("key_type", key_type)
        states = window_states(assigner, contents, key, has_evictor)
        lateness = check_lateness(assigner, allowed_lateness)
        header = write_keyed_header(key.snapshot_bytes(), [*map(write_state, states)])
        elements_of = [number for number, state in enumerate(states) if state.name == SESSIONS]
        operator = OperatorWriter(
            self._folder,
            operator_id,
            header,
            states,
            groups,
            subtasks,
            elements_of=elements_of,
        )
        self._operators.append(operator)
        encoder = EntryEncoder(states, groups)
        return WindowOperatorWriter(assigner, lateness, encoder, operator._hold)

    def _new_operator_id(self, name: str, uid: str) -> str:
        """Return the id of a uid that no operator of the savepoint has."""
        operator_id = operator_id_of(check_str(name, uid))
        if not uid or operator_id in [operator.operator_id for operator in self._operators]:
            raise InvalidValueError(
                f"{name} must be one of the job's, and new here, got {show(uid)}"
            )
        return operator_id

    def _finish(self) -> tuple[Collection[str], bytes]:
        for operator in self._operators:
            operator.close()
        metadata = Metadata(
            _VERSION, 1, None, tuple(operator.metadata() for operator in self._operators)
        )
        names = {name for operator in self._operators for name in operator.file_names}
        return names, write_metadata(metadata)

    def _abandon(self) -> None:
        for operator in self._operators:
            operator.abandon()


class OperatorWriter(OperatorFiles):
    """Writes the entries of one operator; `SavepointWriter.add_operator` makes it.

    `states` are the states as the reader will find them.
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
        elements_of: Collection[int] = (),
    ) -> None:
        super().__init__(
            folder,
            operator_id,
            header,
            states,
            max_parallelism,
            parallelism,
            allow_any_last_access,
        )
        self._encoder = EntryEncoder(states, max_parallelism, allow_any_last_access)
        self._elements_of = elements_of  # states, each entry of which is a part of a list
        self._numbers = {state.name: number for number, state in enumerate(self.states)}
        self._key_group = -1
        self._entries: list[EncodedEntry] = []  # of that key group
        self._open: tuple[WriteTask, KeyedStateFile] | None = None
        self._closing = ExitStack()
        self._is_broken = False

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
        if it is a STRING; `user_key` is its key there, never None. `last_access` is the epoch
        milliseconds at which a state with a time to live was last used; elements of a LIST may
        each have theirs, as a TtlValue.

        Raises InvalidValueError for a state that is not the operator's, a key group after a
        higher one, the same entry twice, which is found when its key group ends, and values
        beyond their types; InvalidTypeError; SavepointError where the file cannot be written.
        """
        number = self._numbers.get(check_str("state", state))
        if number is None or self.states[number].value_serializer is None:
            names = ", ".join(
                state.name for state in self.states if state.value_serializer is not None
            )
            raise InvalidValueError(f"state must be one of {names}, got {show(state)}")
        self._hold(key, self._encoder.encode(number, key, value, user_key, last_access))

    def write_timer(
        self,
        key: Any,
        timestamp: int,
        time_domain: str = EVENT_TIME,
        namespace: Any = None,
        service: str = USER_TIMERS,
    ) -> None:
        """Write a timer of a key: `timestamp` is the epoch milliseconds at which it fires.

        `time_domain` is "EVENT_TIME" or "PROCESSING_TIME", `namespace` a value of the
        `namespace_type` of the TimerServiceDescriptor that has the name `service`, None for none.
        The order is that of `write`, with whose entries timers take turns.

        A job that is restored is before all watermarks: timers of event time wait for its first
        one, those of processing time fire as soon as the clock of the machine has passed them.

        Raises InvalidValueError for a timer service that is not the operator's, a timestamp
        beyond Java's longs, a key group after a higher one and the same timer twice, which Flink
        has once; InvalidTypeError.
        """
        check_choice("time_domain", time_domain, TIME_DOMAINS)
        number = self._numbers.get(timer_state_name(check_str("service", service), time_domain))
        if number is None:
            raise InvalidValueError(
                "service must be the name of a TimerServiceDescriptor of the operator, got "
                f"{show(service)}"
            )
        entry = self._encoder.encode(number, key, namespace=namespace, timestamp=timestamp)
        self._hold(key, entry)

    def _hold(self, key: Any, entry: EncodedEntry) -> None:
        """Take an entry of a key, until the next key group comes."""
        if entry.key_group != self._key_group:
            if entry.key_group < self._key_group:
                raise InvalidValueError(
                    f"entries must come in the order of key groups, got key {show(key)} of key "
                    f"group {entry.key_group} after key group {self._key_group}"
                )
            with self._unbroken():
                self._end_key_group()
            self._key_group = entry.key_group
        self._entries.append(entry)

    def close(self) -> None:
        """Write what is held, and close the file."""
        with self._unbroken():
            self._end_key_group()
            self._end_subtask()

    def abandon(self) -> None:
        """Close the file, whatever it lacks."""
        with suppress(KeyGroupsError):
            self._closing.close()

    def metadata(self) -> OperatorMetadata:
        """Return what `_metadata` says of the operator."""
        subtasks = tuple(
            SubtaskState(subtask, managed_keyed=self.written[subtask].handle)
            for subtask in sorted(self.written)
        )
        return OperatorMetadata(
            self.operator_id, "", "", self.parallelism, self.max_parallelism, subtasks
        )

    @contextmanager
    def _unbroken(self) -> Iterator[None]:
        """Close the file after an error, after which there is no savepoint, whoever catches it."""
        if self._is_broken:
            raise SavepointError(f"operator {self.operator_id} cannot be written after an error")
        self._is_broken = True
        try:
            yield
        except BaseException as error:
            self._closing.__exit__(type(error), error, error.__traceback__)
            raise
        self._is_broken = False

    def _end_key_group(self) -> None:
        if not self._entries:
            return
        subtask = compute_operator_index_for_key_group(
            self.max_parallelism, self.parallelism, self._key_group
        )
        if self._open is None or self._open[0].subtask != subtask:
            self._end_subtask()
            task = self.task(subtask)
            self._open = task, self._closing.enter_context(task.open())
        _, file = self._open
        for entry in joined_lists(sorted(self._entries), self._elements_of):
            file.add(entry)
        self._entries = []

    def _end_subtask(self) -> None:
        if self._open is not None:
            task, file = self._open
            self._open = None
            self._closing.close()
            self.add(task.written(file))
