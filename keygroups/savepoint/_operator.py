"""One operator of a savepoint: its subtasks, and its keyed state."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import replace
from functools import partial
from heapq import nlargest
from operator import add
from typing import TYPE_CHECKING, Any, TypeVar

from keygroups._checks import check_class, check_int, check_states, check_str, iterate, show
from keygroups._serializers.base import Serializer
from keygroups._serializers.data_input import ReadingContext
from keygroups._show.tables import Section, html_sections
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    SavepointError,
    UnsupportedKeyTypeError,
    printable,
    short,
)
from keygroups.load import KeyGroupLoad
from keygroups.progress import Meter, ProgressCallback, measured
from keygroups.savepoint._files.files import Files
from keygroups.savepoint._key_sizes import key_sizes_of
from keygroups.savepoint._metadata.handles import (
    ChangelogHandle,
    ChannelState,
    OperatorMetadata,
    SubtaskState,
)
from keygroups.savepoint._metadata.key_group_ranges import KeyGroupRanges, check_key_groups
from keygroups.savepoint._operator_states import OperatorStateReader
from keygroups.savepoint._operator_tables import (
    LABEL,
    Entries,
    KeyContents,
    KeySizes,
    States,
    states_section,
    subtask_sections,
)
from keygroups.savepoint._sources.split_layouts import SplitLayout
from keygroups.savepoint._state.entries import StateEntry
from keygroups.savepoint._state.formats.by_handle import format_of
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.timed_states import states_without_timers
from keygroups.savepoint._state.writing.new_states import NewState
from keygroups.savepoint._tasks.read import ReadTask, ahead
from keygroups.savepoint.entries import KeySize, Subtask
from keygroups.types import KeyType

if TYPE_CHECKING:
    import pyarrow as pa
    from pandas import DataFrame as PandasFrame
    from polars import DataFrame as PolarsFrame

T = TypeVar("T")

_NAMED = 10  # states in a message


class Operator(OperatorStateReader):
    """One operator of a savepoint; its state is read when a method asks for it.

    `operator_id` is hex as in Flink's web UI; `uid` is the one set in the job, None where neither
    the savepoint (Flink before 2.0) nor the caller names it; `name` likewise. `parallelism` and
    `max_parallelism` are those the savepoint was written under, `subtasks` the Subtasks that wrote
    state, by index. It is equal to the same operator of the same savepoint, read once more.
    """

    def __init__(
        self,
        metadata: OperatorMetadata,
        files: Files,
        context: ReadingContext,
        uid: str | None = None,
        progress: ProgressCallback | None = None,
    ) -> None:
        self._subtasks = sorted(metadata.subtasks, key=lambda subtask: subtask.index)
        self._coordinator = metadata.coordinator
        self._files = files
        self._context = context
        self._progress = progress
        self._split_layout: SplitLayout | None = None  # None for a layout that is looked for
        self._ends: Mapping[tuple[str, int], int] | None = None  # None if no caller told them
        self._states: tuple[StateDescriptor, ...] | None = None  # None before the first read
        self.subtasks = tuple(_subtask(subtask, files, context) for subtask in self._subtasks)
        self.operator_id = metadata.operator_id
        self.uid = uid or metadata.uid or None
        self.name = metadata.name or None
        self.parallelism = metadata.parallelism
        self.max_parallelism = metadata.max_parallelism
        self.is_fully_finished = metadata.is_fully_finished

    def __getstate__(self) -> dict[str, Any]:
        # The callback stays in its process: it may hold what cannot be pickled.
        return vars(self) | {"_progress": None}

    def __repr__(self) -> str:
        return f"<Operator {printable(self.label)}>"

    def _repr_html_(self) -> str:
        try:
            states = states_section(self.states)
        except SavepointError as error:  # the summary from `_metadata` is still shown
            states = Section([f"its keyed states cannot be read: {error}"])
        return html_sections(
            [
                Section(operator_lines(self)),
                *subtask_sections(self.subtasks, self.parallelism),
                states,
            ]
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Operator) and (
            (self._files, self._context, self.operator_id, self._subtasks)
            == (other._files, other._context, other.operator_id, other._subtasks)
        )

    def __hash__(self) -> int:
        return hash(self.operator_id)

    @property
    def label(self) -> str:
        """The uid, else the name, else the id."""
        return self.uid or self.name or self.operator_id

    @property
    def states(self) -> tuple[StateDescriptor, ...]:
        """The keyed states, timers among them, of all subtasks.

        A serializer that is not known is UNKNOWN, with the class of its snapshot if that is known.
        Raises SavepointError where a header is damaged, or it is not sure where such a state ends.
        """
        if self._states is None:
            states: dict[str, StateDescriptor] = {}
            for task in ahead(self.tasks(), ReadTask.header_plan):
                for state in task.format.states():
                    states.setdefault(state.name, state)
            # Without a lock: another thread that reads at the same time gets an equal tuple.
            self._states = States(states.values())
        return self._states

    def key_group_bytes(self) -> KeyGroupLoad:
        """Return the KeyGroupLoad of keyed state: the bytes of each key group in the files.

        For canonical savepoints, the hashmap backend's and raw timers these come from the offsets
        in `_metadata`, compressed sizes if the state is compressed; for RocksDB's files the
        entries are read and their sizes added. Raises SavepointError.
        """
        weights = [0] * self.max_parallelism
        tasks = self.tasks()
        with measured(
            self._progress,
            f"weigh the key groups of {self.label}",
            lambda: sum(task.bytes_to_read for task in tasks if not task.format.has_offsets),
        ) as meter:
            for task in ahead(tasks, ReadTask.size_plan, meter):
                for start, sizes in task.key_group_sizes():
                    end = start + len(sizes)
                    weights[start:end] = map(add, weights[start:end], sizes)
        return KeyGroupLoad(self.max_parallelism, weights)

    def entries(
        self, states: Iterable[str] | None = None, key_groups: Iterable[int] | None = None
    ) -> Iterator[StateEntry]:
        """Return an iterator over the entries of keyed state, key group by key group.

        `states` are names of `states`, `key_groups` some of 0..max_parallelism-1; None is all.
        Nothing is held but what is being read, by this process alone;
        `keygroups.spark.read_keyed_state` reads on executors. An entry has the key group that it
        is in, which is not compared with that of its key: `Savepoint.verify` does that. Raises
        InvalidValueError or InvalidTypeError for an argument, SavepointError where the state is
        damaged or takes what is not read here.
        """
        return Entries(partial(self._entries, self.tasks(states, key_groups)))

    def _entries(self, tasks: Sequence[ReadTask]) -> Generator[StateEntry, None, None]:
        with self._measured("read", tasks) as meter:
            for task in ahead(tasks, meter=meter):
                yield from task.entries()

    def _measured(
        self, work: str, tasks: Sequence[ReadTask]
    ) -> AbstractContextManager[Meter | None]:
        """Return a context that reports the bytes that `tasks` read to the callback."""
        return measured(
            self._progress,
            f"{work} {self.label}",
            lambda: sum(task.bytes_to_read for task in tasks),
        )

    def to_arrow_batch_reader(
        self,
        state: str | StateDescriptor | None = None,
        key_groups: Iterable[int] | None = None,
    ) -> pa.RecordBatchReader:
        """Return the entries of one state as a stream of Arrow's record batches.

        `state` is one of `states`, or its name; None is the only one there is besides timers.
        `key_groups` are some of 0..max_parallelism-1; None is all. A row is an entry, of a MAP a
        user key. The columns are those of `StateEntry` that are not null in all of the state,
        without `state` and `kind`, of the types that `keygroups.spark.read_keyed_state` lists,
        which has Spark's in place of Arrow's: `key_group`, `subtask`, `key`, `value` and `bytes`;
        `namespace` of windows; `user_key` of a MAP; `last_access` of state with a time to live,
        which elements of a LIST have in them; `timestamp` of timers; `key_bytes` where keys may be
        ones that only the job reads or writes; and `value_bytes`, `namespace_bytes` and
        `user_key_bytes` where these are text, and may be ones that only the job reads: of these
        the text is null. Rows are in no order.

        What is held is a batch, of some 16,384 entries or 4 MiB, read by this process alone;
        `keygroups.spark.read_keyed_state` reads on executors. The extra `arrays` has what this
        takes. `Operator.entries` reads what no column holds, which raises InvalidValueError when
        its batch is read: half of a surrogate pair, a date beyond the year 9999, the nanoseconds
        of an Instant, a map with a null key.

        Raises InvalidValueError or InvalidTypeError for an argument, ModuleNotFoundError without
        the extra; SavepointError, here or when a batch is read, where the state is damaged, or has
        a long key once for so many user keys that it would be over 256 times as many bytes.
        """
        described = self._one_state(state)
        tasks = self.tasks([described.name], key_groups)
        from keygroups.savepoint._columns.library_tables import batch_reader

        return batch_reader(tasks, described, self._measured("read", tasks))

    def to_arrow(
        self,
        state: str | StateDescriptor | None = None,
        key_groups: Iterable[int] | None = None,
        by_key: bool = False,
    ) -> pa.Table:
        """Return the entries of one state as a table of Arrow, all of it in memory.

        The arguments, the columns and what is raised are those of `to_arrow_batch_reader`, which
        holds a batch; `keygroups.spark.read_keyed_state` reads on executors.

        With `by_key` a row is a key, with a column `key` and one of each state, or of `state`
        alone: what `get` returns, and null where the state has nothing for the key. A MAP is a
        map, state of windows a map of these, and timers are a list of times in epoch milliseconds;
        a value of state with a time to live has its last access beside it. Raises
        InvalidValueError too where no column has the name of a state, such as `key`, or holds a
        value, such as one that only the job reads, or where keys of any class, which are text,
        have the same; and what `entries_by_key` raises.
        """
        if not check_class("by_key", by_key, bool, "a bool"):
            return self.to_arrow_batch_reader(state, key_groups).read_all()
        states = self._states_of(state)
        tasks = self.tasks([described.name for described in states], key_groups)
        from keygroups.savepoint._columns.library_tables import key_table

        return key_table(self._by_key(tasks), states)

    def to_pandas(
        self,
        state: str | StateDescriptor | None = None,
        key_groups: Iterable[int] | None = None,
    ) -> PandasFrame:
        """Return the entries of one state as a DataFrame of pandas, all of it in memory.

        The arguments, the columns and what is raised are those of `to_arrow_batch_reader`. The
        types are `pandas.ArrowDtype`, in which a null is one and changes no number; what is too
        large for a machine is for `keygroups.spark.read_keyed_state`. Raises KeyGroupsError
        without pandas.
        """
        table = self.to_arrow(state, key_groups)
        from keygroups.savepoint._columns.library_tables import pandas_frame

        return pandas_frame(table)

    def to_polars(
        self,
        state: str | StateDescriptor | None = None,
        key_groups: Iterable[int] | None = None,
    ) -> PolarsFrame:
        """Return the entries of one state as a DataFrame of Polars, all of it in memory.

        The arguments, the columns and what is raised are those of `to_arrow_batch_reader`; a map
        is a list of structs of `key` and `value`; what is too large for a machine is for
        `keygroups.spark.read_keyed_state`. Raises KeyGroupsError without Polars.
        """
        table = self.to_arrow(state, key_groups)
        from keygroups.savepoint._columns.library_tables import polars_frame

        return polars_frame(table)

    def get(self, key: Any, state: str | StateDescriptor | None = None) -> Any:
        """Return the state of a key: its value in one state, or a dict by state; None without any.

        `key` is of the operator's key type, as `StateEntry` has it: an int is a Long where keys
        are of LONG. `state` is one of `states`, or its name. Of VALUE, REDUCING and AGGREGATING
        that is the value or the accumulator, of LIST the list of all elements, of MAP a dict, of
        timers a sorted list of their times in epoch milliseconds. A value of state with a time to
        live is a `TtlValue`, with its last access: whether it has expired is for the job to say.
        Of state with namespaces, as that of windows, it is a dict of these by namespace. A dict is
        a list of pairs where Python takes two keys for one, or cannot hash them. Without `state`
        it is a dict by the names of the states that have something for the key.

        Only the key's key group is read, as Flink does: what is in another is not there for it. Of
        RocksDB, where keys are text, integers, tuples of these or rows of Flink SQL, only the
        blocks are that may have the key. Where the hash of keys is not known, as that of a POJO,
        all are read; keys that only the job writes are compared as they are read, and of what only
        the job reads a key is the bytes that Flink wrote.

        Raises InvalidTypeError or InvalidValueError for what is no such key or state, also where
        the operator has no keyed state; UnsupportedKeyTypeError for keys that have a map or a set
        in them; SavepointError where the state is damaged, where several keys are read as this
        one, or it is not known what is of the namespace.
        """
        [found] = self._look_up([key], state, "look up a key of")
        return found

    def get_many(
        self, keys: Iterable[Any], state: str | StateDescriptor | None = None
    ) -> list[Any]:
        """Return the state of many keys: a list of what `get` returns for each, in their order.

        `state`, and what is raised, are those of `get`. Each key group is read once, however many
        of the keys it has, where `get` would read it for each of them. All is held that the keys
        have; `keygroups.spark.read_keyed_state` has `keys` too, and reads on executors.

        >>> from tempfile import mkdtemp
        >>> from keygroups.savepoint import SavepointWriter, ValueStateDescriptor, read_savepoint
        >>> from keygroups.types import LONG, STRING
        >>> states, folder = [ValueStateDescriptor("count", LONG)], mkdtemp() + "/savepoint"
        >>> with SavepointWriter(folder) as writer:
        ...     by_user = writer.add_operator("by-user", STRING, states, 128, 3, sort=True)
        ...     for count, user in enumerate(["ann", "bob", "cid"], 3):
        ...         by_user.write("count", user, count)
        >>> read_savepoint(folder).operator("by-user").get_many(["cid", "eve", "ann"], "count")
        [5, None, 3]
        """
        keys = iterate("keys", "keys of the operator", keys)
        return self._look_up(keys, state, "look up keys of")

    def _look_up(
        self, keys: Iterable[Any], state: str | StateDescriptor | None, work: str
    ) -> list[Any]:
        from keygroups.savepoint._lookup import Lookup

        states = self._states_of(state)
        lookup = Lookup(states[0], keys, self.max_parallelism)
        names = [described.name for described in states]
        tasks = self.tasks(names, lookup.key_groups)
        with self._measured(work, tasks) as meter:
            found = lookup.look_up(tasks, meter)
        if state is not None:
            (name,) = names
            return [of_states.get(name) for of_states in found]
        return [
            KeyContents((name, held[name]) for name in names if name in held) for held in found
        ]

    def _states_of(self, state: str | StateDescriptor | None) -> Sequence[StateDescriptor]:
        """Return one state, or for None all; raises InvalidValueError where there is none."""
        return self.states if state is None and self.states else (self._one_state(state),)

    def entries_by_key(
        self, states: Iterable[str] | None = None, key_groups: Iterable[int] | None = None
    ) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Return an iterator over the keys, each with what all its states have.

        A key comes once, with a dict by the names of the states that have something for it, of
        values as `get` returns them. `states` are names of `states`, `key_groups` some of
        0..max_parallelism-1; None is all. The keys of one key group are held at a time. Raises
        what `entries` raises, and SavepointError where the bytes do not say what is of a key, or
        a key has two values in a state.

        >>> from tempfile import mkdtemp
        >>> from keygroups.savepoint import SavepointWriter, ValueStateDescriptor, read_savepoint
        >>> from keygroups.types import LONG, STRING
        >>> folder = mkdtemp() + "/savepoint"
        >>> with SavepointWriter(folder) as writer:
        ...     states = [ValueStateDescriptor(name, LONG) for name in ("clicks", "views")]
        ...     by_user = writer.add_operator("by-user", STRING, states, 128, 1, sort=True)
        ...     for state, key in [("clicks", "ann"), ("views", "ann"), ("views", "bob")]:
        ...         by_user.write(state, key, 7)
        >>> sorted(read_savepoint(folder).operator("by-user").entries_by_key())
        [('ann', {'clicks': 7, 'views': 7}), ('bob', {'views': 7})]
        """
        return self._by_key(self.tasks(states, key_groups))

    def _by_key(self, tasks: Sequence[ReadTask]) -> Iterator[tuple[Any, dict[str, Any]]]:
        from keygroups.savepoint._lookup import contents_by_key

        with self._measured("read", tasks) as meter:
            for key, contents in contents_by_key(tasks, meter, self.label):
                yield key, KeyContents(contents)

    def as_pyflink(self, key_type: KeyType | Serializer, states: Iterable[NewState]) -> Operator:
        """Return the operator with the keys, the names and the types that its PyFlink job has.

        `key_type` is that of `key_by(..., key_type=t)`, as PYFLINK takes it; for a job of the
        Table API it is the SQL_ROW of the keys. For a `key_by` without a type it is PICKLED: a
        key is then its value, or a Pickle of its bytes where another pickle may be of the same
        value, of a set or where two parts are equal, and where it has an object of the job's
        own. `states` are descriptors as the job has them, with
        a time to live where it has one; a broadcast state is a MapStateDescriptor too, of what
        `operator_state` yields. A state that is not among them stays as the savepoint has it,
        arrays of bytes; of timers the savepoint has all. A type is a key type, such as LONG for
        `Types.LONG()`, or one of `keygroups.savepoint.pyflink`.

        A savepoint of PyFlink's process mode does not say the types: a LONG in a list that is
        declared as one of INT is read as two of these. One of thread mode does, of what Java has a
        serializer for; a BYTE, SHORT or INT is a LONG there and a FLOAT a DOUBLE, and what is not
        Java's is read from its pickle. Values are those of Python's classes in the job; a Row has
        its `names`. For dates and times in keys the JVM is taken to be in UTC. Elements of a list
        are those of the job, whatever arrays of bytes they are in.

        Raises InvalidValueError for a state that is not there, of another kind or time to live;
        InvalidTypeError for another type, UnsupportedKeyTypeError for one that PyFlink does not
        declare, and for a checkpoint with a changelog; SavepointError as `states`.

        >>> from tempfile import mkdtemp
        >>> from keygroups.savepoint import SavepointWriter, ValueStateDescriptor, read_savepoint
        >>> from keygroups.types import LONG, PYFLINK
        >>> states, folder = [ValueStateDescriptor("count", LONG)], mkdtemp() + "/savepoint"
        >>> with SavepointWriter(folder) as writer:
        ...     by_user = writer.add_operator("by-user", PYFLINK(LONG), states, 128, 3)
        ...     by_user.write("count", 7, 5)
        >>> operator = read_savepoint(folder).operator("by-user")
        >>> print(operator.states[0])
        python-state-count: LIST <ROW(LONG), BYTES>
        >>> operator.as_pyflink(LONG, states).get(7, "count")
        5
        """
        from keygroups.savepoint._pyflink.declared import declared_operator

        handles = [handle for subtask in self._subtasks for handle in subtask.keyed]
        if any(isinstance(handle, ChangelogHandle) for handle in handles):
            raise UnsupportedKeyTypeError(
                f"operator {show(self.label)} has a changelog, whose changes are not read as "
                "PyFlink's; those of a savepoint are"
            )
        plain = self._in_context(None)
        others = plain._operator_state_names()
        declared = declared_operator(key_type, states, plain.states, others, self.label)
        return plain._in_context(declared)

    def _in_context(self, declared: object) -> Operator:
        """Return the same operator, of which a PyFlink job declares something or None."""
        operator = copy(self)
        operator._context = replace(self._context, declared=declared)
        operator._states = None
        return operator

    def tasks(
        self, states: Iterable[str] | None = None, key_groups: Iterable[int] | None = None
    ) -> list[ReadTask]:
        """Return the parts that `entries` reads one after the other."""
        names = (
            None
            if states is None
            else check_states(states, [state.name for state in self.states], self.label)
        )
        groups = check_key_groups(key_groups, self.max_parallelism, self.label)
        tasks = []
        for subtask in self._subtasks:
            handles = subtask.keyed
            wanted = KeyGroupRanges.of(
                (run.start_key_group, run.end_key_group)
                for handle in handles
                for run in groups.intersection(handle.key_groups).ranges
            )
            if wanted.ranges:
                tasks.append(
                    ReadTask(
                        self._files,
                        self._context,
                        handles,
                        subtask.index,
                        self.max_parallelism,
                        wanted,
                        names,
                        operator=self.label,
                    )
                )
        return tasks

    def key_sizes(self, top: int = 10) -> list[KeySize]:
        """Return the keys with the most bytes of keyed state, the heaviest first.

        `top` is how many, at least 1. All entries are read, in this process, and the keys of one
        key group held at a time; `keygroups.spark.key_sizes` reads on executors. Raises
        InvalidValueError, InvalidTypeError or SavepointError, the latter also where the bytes do
        not say what is of the key, as in `StateEntry`.
        """
        check_int("top", top, 1, 2**31 - 1)
        tasks = self.tasks()
        with self._measured("weigh the keys of", tasks) as meter:
            sizes = self._key_sizes(tasks, meter)
            return KeySizes(nlargest(top, sizes, key=lambda key: key.bytes))

    def _key_sizes(self, tasks: Sequence[ReadTask], meter: Meter | None) -> Iterator[KeySize]:
        for task in ahead(tasks, meter=meter):
            yield from key_sizes_of(task, self.label)

    @property
    def in_flight_data(self) -> tuple[ChannelState, ...]:
        """The ChannelStates of an unaligned checkpoint: the sizes of its in-flight data.

        Savepoints and aligned checkpoints have none. The data itself is not read; Flink processes
        it first when it restores the checkpoint.
        """
        return tuple(channel for subtask in self._subtasks for channel in subtask.channels)

    @property
    def _has_channel_state(self) -> bool:
        return bool(self.in_flight_data)

    def _one_state(self, state: str | StateDescriptor | None) -> StateDescriptor:
        """Return a state of the operator, by itself or by its name, or its only one."""
        states = self.states
        if state is None:
            states = tuple(state for state in states if state.kind != "PRIORITY_QUEUE")
            if len(states) == 1:
                (described,) = states
                return described
        elif isinstance(state, StateDescriptor):
            if state in states:
                return state
        else:
            if isinstance(state, (list, tuple)):
                named = ", ".join(show(name) for name in state[:_NAMED])
                raise InvalidTypeError(
                    f"state must be one state, as each has columns of its own, got "
                    f"{len(state):,}: {named}"
                )
            name = check_str("state", state)
            for described in states:
                if described.name == name:
                    return described
        names = ", ".join(described.name for described in states) or "none"
        raise InvalidValueError(
            f"state must be one of {self.label}, which has {names}, got {show(state)}"
        )


def has_keyed_state(operator: Operator) -> bool:
    """Return whether a subtask of an operator wrote keyed state."""
    return any(subtask.key_groups for subtask in operator.subtasks)


def missing_timers(operator: Operator) -> str | None:
    """Return a warning that names states without the timers they need, None if there are none.

    Native savepoints of RocksDB lack all timers that are on the heap. Only headers are read.
    Raises SavepointError as `states`.

    Flink: RocksIncrementalSnapshotStrategy, which writes no heap timers in a native savepoint.
    """
    names = states_without_timers(operator.states)
    if not names:
        return None
    return (
        f"operator {operator.label} has no timers, so that nothing fires or clears "
        f"{', '.join(names)}: Flink leaves timers on the heap out of native savepoints of "
        "RocksDB, which canonical ones and checkpoints have"
    )


def readable(read: Callable[[], T], unread: list[str]) -> T | None:
    """Return the result of `read`; None for a SavepointError, which `unread` then has once."""
    try:
        return read()
    except SavepointError as error:
        if str(error) not in unread:
            unread.append(str(error))
        return None


def bytes_of(operator: Operator) -> int:
    """Return the size in bytes of the keyed and operator state that all subtasks wrote."""
    return sum(subtask.bytes for subtask in operator.subtasks)


def operator_lines(operator: Operator) -> list[str]:
    """Return two lines: the names of an operator; its parallelisms and size."""
    names = (("uid", operator.uid), ("name", operator.name), ("id", operator.operator_id))
    return [
        ", ".join(f"{title} {short(name, LABEL)}" for title, name in names if name),
        f"parallelism {operator.parallelism:,}, max parallelism {operator.max_parallelism:,}, "
        f"{bytes_of(operator):,} bytes",
    ]


def _subtask(state: SubtaskState, files: Files, context: ReadingContext) -> Subtask:
    size = format_of(files, state.keyed, context).bytes if state.keyed else 0
    for operator in (state.managed_operator, state.raw_operator):
        size += operator.stream.size if operator else 0
    key_groups = state.keyed[0].key_groups if state.keyed else None
    return Subtask(state.index, key_groups, size, state.is_finished)
