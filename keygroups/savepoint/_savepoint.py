"""A savepoint or checkpoint as a whole, and its operators."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from heapq import nlargest
from itertools import compress, groupby, pairwise
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

from keygroups._checks import check_class, check_int, check_str, iterate, show
from keygroups._serializers.base import Serializer, checked_serializers, exact_type
from keygroups._serializers.data_input import ReadingContext
from keygroups._serializers.scalars import VOID_NAMESPACE
from keygroups._show.progress import checked_progress
from keygroups._show.tables import Section, html_sections, text_table
from keygroups.errors import InvalidTypeError, InvalidValueError, SavepointError, printable, short
from keygroups.key_group_range import KeyGroupRange, compute_operator_index_for_key_group
from keygroups.load import HOT, KeyGroupLoad
from keygroups.progress import Meter, ProgressCallback, measured
from keygroups.rescale import check_restore, restore_advice
from keygroups.savepoint._comparison.compare import OperatorPair
from keygroups.savepoint._comparison.report import EntryDifference, SavepointComparison
from keygroups.savepoint._files.files import Files, check_moved, check_path, check_place
from keygroups.savepoint._files.found_files import find_files
from keygroups.savepoint._metadata.handles import (
    OperatorMetadata,
    OperatorStateHandle,
    SubtaskState,
    operator_id_of,
)
from keygroups.savepoint._metadata.key_group_ranges import KeyGroupRanges
from keygroups.savepoint._metadata.reader import read_metadata
from keygroups.savepoint._sources.source_splits import (
    READER_STATE,
    SourceSplits,
    read_source_splits,
)
from keygroups.savepoint._state.entries import StateEntry
from keygroups.savepoint._state.formats.by_handle import format_of
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.operator_state import OperatorStateEntry, read_operator_state
from keygroups.savepoint._tasks.read import ReadTask, ahead

if TYPE_CHECKING:
    import pyarrow as pa
    from pandas import DataFrame as PandasFrame
    from polars import DataFrame as PolarsFrame

_NONE: tuple[str, ...] = ()
FLINK_2 = 5
"""The first version of `_metadata` that Flink 2 writes."""

_NAMED = 10  # uids in a message
_LABEL = 100  # characters of an operator's name in the table
_SHOWN = 50  # operators, and subtasks of one, in a notebook
_STATE_HEADINGS = ("state", "kind", "key", "namespace", "user key", "value", "TTL")
_SUBTASK_HEADINGS = ("subtask", "key groups", "bytes", "x mean", "finished")
_HEADINGS = ("operator", "parallelism", "max", "bytes", "key groups", "imbalance")


class Subtask(NamedTuple):
    """What one subtask wrote: its key groups, None without keyed state, and how many bytes.

    The bytes are those of keyed and operator state, of RocksDB only the SST files.
    """

    subtask_index: int
    key_groups: KeyGroupRange | None
    bytes: int
    is_finished: bool


class KeySize(NamedTuple):
    """How many bytes of state, in how many entries, a key has."""

    key: Any
    key_group: int
    subtask: int
    entries: int
    bytes: int


class UnknownKeysError(SavepointError):
    """Only the job can tell the keys of entries from what is behind them."""


class Operator:
    """One operator of a savepoint; all of its state is read when it is asked for.

    `operator_id` is hex as in Flink's web UI; `uid` is the one set in the job, None where neither
    the savepoint (Flink before 2.0) nor the caller told it; `name` likewise. `parallelism` and
    `max_parallelism` are those the savepoint was written under, `subtasks` who wrote state, by
    index. It is equal to the same operator of the same savepoint, read once more.
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
        self._states: tuple[StateDescriptor, ...] | None = None  # until they are asked for
        self.subtasks = tuple(_subtask(subtask, files, context) for subtask in self._subtasks)
        self.operator_id = metadata.operator_id
        self.uid = uid or metadata.uid or None
        self.name = metadata.name or None
        self.parallelism = metadata.parallelism
        self.max_parallelism = metadata.max_parallelism
        self.is_fully_finished = metadata.is_fully_finished

    def __getstate__(self) -> dict[str, Any]:
        return _without_progress(self)

    def __repr__(self) -> str:
        return f"<Operator {printable(self.label)}>"

    def _repr_html_(self) -> str:
        try:
            states = states_section(self.states)
        except SavepointError as error:  # which what `_metadata` says goes without
            states = Section([f"its keyed states cannot be read: {error}"])
        return html_sections([*_about(self), states])

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
                for state in task.descriptors():
                    states.setdefault(state.name, state)
            # Another thread may do the same at once, and finds the same.
            self._states = tuple(states.values())
        return self._states

    def key_group_bytes(self) -> KeyGroupLoad:
        """Return how many bytes of keyed state each key group has, as they are in the files.

        Canonical savepoints, the hashmap backend's and raw timers tell that in `_metadata`
        (compressed if they are); of RocksDB's files the entries are read and their sizes added.
        Raises SavepointError.
        """
        weights = [0] * self.max_parallelism
        tasks = self.tasks()
        with measured(
            self._progress,
            f"weigh the key groups of {self.label}",
            lambda: sum(task.bytes_to_read for task in tasks if not task.has_offsets),
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
        `keygroups.spark.read_keyed_state` reads on executors. Raises InvalidValueError or
        InvalidTypeError for an argument, SavepointError where the state is damaged or takes what
        is not read here.
        """
        return self._entries(self.tasks(states, key_groups))

    def _entries(self, tasks: Sequence[ReadTask]) -> Iterator[StateEntry]:
        with self._measured("read", tasks) as meter:
            for task in ahead(tasks, meter=meter):
                yield from task.entries()

    def _measured(
        self, work: str, tasks: Sequence[ReadTask]
    ) -> AbstractContextManager[Meter | None]:
        """Return what counts the bytes of tasks that are read."""
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
        which elements of a LIST have in them; `timestamp` of timers; and `key_bytes` where keys
        may be ones that only the job reads. Rows are in no order.

        What is held is a batch, of some 16,384 entries or 4 MiB, read by this process alone;
        `keygroups.spark.read_keyed_state` reads on executors. The extra `arrays` has what this
        takes. `Operator.entries` reads what no column holds, which raises InvalidValueError when
        its batch is read: half of a surrogate pair, a date beyond the year 9999, the nanoseconds
        of an Instant, a map with a null key.

        Raises InvalidValueError or InvalidTypeError for an argument, ModuleNotFoundError without
        the extra; SavepointError, here or when a batch is read, where the state is damaged.
        """
        described = self._one_state(state)
        tasks = self.tasks([described.name], key_groups)
        from keygroups.savepoint._columns.tables import batch_reader

        return batch_reader(tasks, described, self._measured("read", tasks))

    def to_arrow(
        self,
        state: str | StateDescriptor | None = None,
        key_groups: Iterable[int] | None = None,
    ) -> pa.Table:
        """Return the entries of one state as a table of Arrow, all of it in memory.

        The arguments, the columns and what is raised are those of `to_arrow_batch_reader`, which
        holds a batch; `keygroups.spark.read_keyed_state` reads on executors.
        """
        return self.to_arrow_batch_reader(state, key_groups).read_all()

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
        from keygroups.savepoint._columns.tables import pandas_frame

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
        from keygroups.savepoint._columns.tables import polars_frame

        return polars_frame(table)

    def get(self, key: Any, state: str | StateDescriptor | None = None) -> Any:
        """Return what keyed state has for a key; None where it has nothing.

        `key` is of the operator's key type, as `StateEntry` has it: an int is a Long where keys
        are of LONG. `state` is one of `states`, or its name. Of VALUE, REDUCING and AGGREGATING
        that is the value or the accumulator, of LIST the list of all elements, of MAP a dict, of
        timers a sorted list of their times in epoch milliseconds. A value of state with a time to
        live is a `TtlValue`, with its last access: whether it has expired is for the job to say.
        Of state with namespaces, as that of windows, it is a dict of these by namespace. A dict is
        a list of pairs where Python takes two keys for one, or cannot hash them. Without `state`
        it is a dict by the names of the states that have something for the key.

        Only the key's key group is read; of RocksDB, where keys are text, integers, tuples of
        these or rows of Flink SQL, only the blocks that may have the key.

        Raises InvalidTypeError or InvalidValueError for what is no such key or state, also where
        the operator has no keyed state; UnsupportedKeyTypeError for keys whose hash is not known,
        or that have a map or a set in them; SavepointError where the state is damaged, or it is
        not known what is of the namespace.
        """
        from keygroups.savepoint._lookup import Lookup

        states = self.states if state is None and self.states else (self._one_state(state),)
        lookup = Lookup(states[0], key, self.max_parallelism)
        tasks = self.tasks([described.name for described in states], [lookup.key_group])
        with self._measured("look up a key of", tasks) as meter:
            of_states = lookup.look_up(tasks, meter)
        if state is not None:
            return of_states.get(states[0].name)
        return {one.name: of_states[one.name] for one in states if one.name in of_states}

    def tasks(
        self, states: Iterable[str] | None = None, key_groups: Iterable[int] | None = None
    ) -> list[ReadTask]:
        """Return the parts that `entries` reads one after the other."""
        names = None if states is None else check_states(self, states)
        groups = self._check_key_groups(key_groups)
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
            return nlargest(top, self._key_sizes(tasks, meter), key=lambda key: key.bytes)

    def _key_sizes(self, tasks: Sequence[ReadTask], meter: Meter | None) -> Iterator[KeySize]:
        for task in ahead(tasks, meter=meter):
            yield from key_sizes_of(task, self.label)

    def operator_state(self) -> Iterator[OperatorStateEntry]:
        """Return an iterator over the operator states, list, union and broadcast, of all subtasks.

        Raises SavepointError where they are damaged.
        """
        handles = self._operator_state_handles()
        plan = ((handle.stream, [(0, handle.stream.size)]) for _, handle, _ in handles)
        work = f"read the operator state of {self.label}"
        with (
            measured(
                self._progress, work, lambda: sum(handle.stream.size for _, handle, _ in handles)
            ) as meter,
            self._files.metered(meter).ahead(plan) as files,
        ):
            for index, handle, is_raw in handles:
                yield from read_operator_state(files, handle, index, is_raw, self._context)

    def _operator_state_handles(self) -> list[tuple[int, OperatorStateHandle, bool]]:
        """Return the handles of operator state, with their subtasks, and whether they are raw."""
        return [
            (subtask.index, handle, is_raw)
            for subtask in self._subtasks
            for handle, is_raw in (
                (subtask.managed_operator, False),
                (subtask.raw_operator, True),
            )
            if handle is not None
        ]

    @property
    def _has_channel_state(self) -> bool:
        return any(subtask.has_channel_state for subtask in self._subtasks)

    def coordinator_state(self) -> bytes | None:
        """Return the state of the operator's coordinator, None where it has none.

        Raises SavepointError where it cannot be read.
        """
        if self._coordinator is None:
            return None
        with self._files.open(self._coordinator) as stream:
            return stream.read(0, stream.size)

    def source_splits(self, ends: Mapping[tuple[str, int], int] | None = None) -> SourceSplits:
        """Return the splits of a source of the new kind (FLIP-27), where each goes on.

        Those of Kafka's and of file sources are decoded, of others the bytes are told. `ends`
        maps partitions of Kafka, each a topic and a number, to the offset that the next record
        written there gets, which tells the lag of each split; the ends of partitions that the
        source does not read are not looked at.

        Raises InvalidValueError for an operator that is no such source, and for ends of one that
        is not Kafka's, InvalidTypeError, SavepointError where the state is damaged.
        """
        elements: list[tuple[int, object]] = []
        is_source = False
        for state in self.operator_state():
            if state.state == READER_STATE.name and state.mode == "SPLIT_DISTRIBUTE":
                is_source = True
                elements += [(state.subtask, element) for element in state.elements]
        if not is_source:
            raise InvalidValueError(
                f"operator {show(self.label)} must be a source, got one without "
                f"{READER_STATE.name}"
            )
        name = f"{self._files.base}: operator {self.label}"
        return read_source_splits(elements, self.coordinator_state(), name, ends)

    def _one_state(self, state: str | StateDescriptor | None) -> StateDescriptor:
        """Return a state of the operator, by itself or by its name, or its only one."""
        states = self.states
        if state is None:
            states = tuple(one for one in states if one.kind != "PRIORITY_QUEUE")
            if len(states) == 1:
                return states[0]
        elif isinstance(state, StateDescriptor):
            if state in states:
                return state
        else:
            name = check_str("state", state)
            for described in states:
                if described.name == name:
                    return described
        names = ", ".join(described.name for described in states) or "none"
        raise InvalidValueError(
            f"state must be one of {self.label}, which has {names}, got {show(state)}"
        )

    def _check_key_groups(self, key_groups: Iterable[int] | None) -> KeyGroupRanges:
        last = self.max_parallelism - 1
        if key_groups is None:
            return KeyGroupRanges.of([(0, last)])
        checked = set()
        for count, key_group in enumerate(iterate("key_groups", "ints", key_groups)):
            if count > last:
                raise InvalidValueError(
                    f"key_groups must be at most {last + 1} ints, all that {self.label} has, "
                    "got more"
                )
            checked.add(check_int("key group", key_group, 0, last))
        return KeyGroupRanges.of((key_group, key_group) for key_group in checked)


def check_states(operator: Operator, states: Iterable[str]) -> frozenset[str]:
    """Return the names of states, if there are such states."""
    known = {state.name: None for state in operator.states}  # in their order
    names = set()
    for count, name in enumerate(iterate("states", "names", states)):
        names.add(check_str("state", name))
        if name not in known:
            raise InvalidValueError(
                f"states must be of {operator.label}, which has {', '.join(known) or 'none'}, "
                f"got {show(name)}"
            )
        if count == len(known):
            raise InvalidValueError(
                f"states must be at most {len(known)} names, all that {operator.label} has, got "
                "more"
            )
    return frozenset(names)


def key_sizes_of(task: ReadTask, label: str) -> Iterator[KeySize]:
    """Yield how much state each key has that a task reads, of an operator with that label.

    Raises UnknownKeysError where the bytes do not say what is of the key.
    """
    for key_group, entries in groupby(task.entries(), lambda entry: entry.key_group):
        sizes: dict[str, list[Any]] = {}
        for entry in entries:
            if entry.key_bytes is not None and entry.key is None:
                [state] = {state for state in task.descriptors() if state.name == entry.state}
                raise UnknownKeysError(
                    f"{task.files.base}: which keys are how heavy in operator {label} is not "
                    f"known: of {state} the bytes do not say where a key ends"
                )
            # Two keys of Java may be one in Python, such as 0.0 and -0.0.
            size = sizes.setdefault(repr(entry.key), [entry.key, 0, 0])
            size[1] += 1
            size[2] += entry.bytes
        for key, count, total in sizes.values():
            yield KeySize(key, key_group, task.subtask, count, total)


def find_operator(operators: Collection[Operator], name: str) -> Operator:
    """Return an operator by its uid, its name or its id, as `Savepoint.operator` does."""
    text = check_str("operator", name)
    by_uid = operator_id_of(text)
    for operator in operators:
        if by_uid == operator.operator_id:
            operator.uid = text
            return operator
    matching = [
        operator
        for operator in operators
        if text in (operator.operator_id, operator.uid, operator.name)
    ]
    if len(matching) == 1:
        return matching[0]
    labels = ", ".join(operator.label for operator in matching or operators)
    problem = "one operator by its uid or id" if matching else "an operator's uid, name or id"
    raise InvalidValueError(f"operator must be {problem}, of {labels}, got {show(text)}")


class Savepoint:
    """A savepoint or checkpoint; `str()` lists its operators.

    `path` is its folder, `version` that of its `_metadata`, `checkpoint_id` its number, `kind`
    "canonical savepoint", "native savepoint" or "checkpoint", and None before Flink 1.15, which
    did not say. `operators` are all of the job, those without state too. `metadata` is what
    `_metadata` says, `files` is what opens the files it names, `serializers` are the job's own.
    """

    def __init__(
        self,
        files: Files,
        serializers: Mapping[str, type[Serializer]],
        progress: ProgressCallback | None = None,
    ) -> None:
        metadata = read_metadata(*files.metadata())
        files.elsewhere = find_files(files, metadata)
        kryo_version = 5 if metadata.version >= FLINK_2 else 2
        context = ReadingContext(serializers, kryo_version)
        self.files = files
        self.metadata = metadata
        self.serializers = serializers
        self.path = files.base
        self.version = metadata.version
        self.checkpoint_id = metadata.checkpoint_id
        self.kind = metadata.kind
        self.operators = tuple(
            Operator(operator, files, context, progress=progress)
            for operator in metadata.operators
        )
        self._progress = progress

    def __getstate__(self) -> dict[str, Any]:
        return _without_progress(self)

    def operator(self, name: str) -> Operator:
        """Return an operator by its uid, its name or its id in hex.

        A uid is known in every version of Flink, as the id is its hash; the operator has it from
        then on. Raises InvalidValueError where there is none, or more than one of that name.
        """
        return find_operator(self.operators, name)

    def check_restore(
        self, operator: Operator | str, parallelism: int, max_parallelism: int | None = None
    ) -> int:
        """Return the max parallelism that an operator runs with after a restore from here.

        The arguments and what is raised are those of `keygroups.check_restore`; the savepoint's
        max parallelism is the operator's.
        """
        restored = operator if isinstance(operator, Operator) else self.operator(operator)
        return check_restore(restored.max_parallelism, parallelism, max_parallelism)

    def compare(
        self,
        other: Savepoint,
        operators: Iterable[str] | None = None,
        states: Iterable[str] | None = None,
    ) -> SavepointComparison:
        """Return what this savepoint and another have in common, and what not.

        `operators` are uids, names or ids of operators in either, `states` names of their states,
        of keyed and operator state; None is all. Operators are found by their ids, entries by the
        bytes of key, namespace and user key, whatever the formats, parallelisms and max
        parallelisms. Under another serializer of one of these no entry has a counterpart.

        A value is the same if its bytes are, but for the order of maps and sets in it; one with
        another time of last access alone is touched. Under another serializer of values they are
        decoded, and compared with their types; times count if both have them. What only the
        job's classes can read is compared as bytes. Elements of list and union state are compared
        as a whole, without their order and subtask, of broadcast state its entries.

        All of both is read, in this process, and sorted in bounded memory, by way of temporary
        files if a key group is large; `keygroups.spark.compare_savepoints` reads on executors.

        Raises InvalidValueError or InvalidTypeError for an argument, SavepointError, which says
        in which savepoint, where state is damaged or takes what is not read here.

        >>> from tempfile import mkdtemp
        >>> from keygroups.savepoint import SavepointWriter, ValueStateDescriptor, read_savepoint
        >>> from keygroups.types import LONG, STRING
        >>> folder = mkdtemp()
        >>> for name, counts in [("old", {"ann": 7, "bob": 1}), ("new", {"ann": 8})]:
        ...     with SavepointWriter(f"{folder}/{name}") as writer:
        ...         count = ValueStateDescriptor("count", LONG)
        ...         by_user = writer.add_operator("by-user", STRING, [count], 128, parallelism=3)
        ...         for key in sorted(counts, key=by_user.key_group):
        ...             by_user.write("count", key, counts[key])
        >>> old, new = (read_savepoint(f"{folder}/{name}") for name in ("old", "new"))
        >>> (by_user,) = old.compare(new, ["by-user"]).operators
        >>> print(by_user)
        by-user
          count: VALUE
            1 changed, 1 only here
              only here  key 'bob': 1
              changed    key 'ann': 7 -> 8
        """
        pairs = self._pairs(other, operators, states)
        compared = tuple(pair.comparison() for pair in pairs)
        return SavepointComparison(self.path, other.path, compared)

    def differences(
        self,
        other: Savepoint,
        operators: Iterable[str] | None = None,
        states: Iterable[str] | None = None,
    ) -> Iterator[EntryDifference]:
        """Return an iterator over the entries that are not the same in another savepoint.

        The arguments, what is raised and what is held are those of `compare`, whose report has a
        few of them; `keygroups.spark.compare_savepoints` returns them as a DataFrame.
        """
        pairs = self._pairs(other, operators, states)
        return (difference for pair in pairs for difference in pair.differences())

    def _pairs(
        self,
        other: Savepoint,
        operators: Iterable[str] | None,
        states: Iterable[str] | None,
    ) -> list[OperatorPair]:
        """Return the operators to compare with those of another savepoint."""
        sides = (self, check_class("other", other, Savepoint, "a Savepoint"))
        here, there = ({by.operator_id: by for by in side.operators} for side in sides)
        ids: Collection[str] = {**here, **there}
        if operators is not None:
            named = iterate("operators", "names", operators)
            ids = dict.fromkeys(id_in_either(sides, check_str("operator", name)) for name in named)
        pairs = [OperatorPair(here.get(by_id), there.get(by_id)) for by_id in ids]
        if states is None:
            return pairs
        known = {name for pair in pairs for name in pair.state_names}
        names = set()
        for name in iterate("states", "names", states):
            names.add(check_str("state", name))
            if name not in known:
                raise InvalidValueError(
                    f"states must be of the operators that are compared, got {show(name)}"
                )
        chosen = frozenset(names)
        return [OperatorPair(here.get(by_id), there.get(by_id), chosen) for by_id in ids]

    def __repr__(self) -> str:
        return f"<Savepoint {printable(self.path)}>"

    def __str__(self) -> str:
        rows = [_HEADINGS, *(_row(operator).cells for operator in self.operators)]
        return "\n".join([headline(self), *text_table(rows, left=(0,)), *restore_advices(self)])

    def _repr_html_(self) -> str:
        lines = Section([headline(self)]), Section(restore_advices(self))
        return html_sections([lines[0], operators_section(self, _SHOWN), lines[1]])


def headline(savepoint: Savepoint) -> str:
    """Return what a savepoint is, in a line."""
    kind, operators = savepoint.kind or "savepoint or checkpoint", len(savepoint.operators)
    return printable(f"{kind} {savepoint.checkpoint_id}, {operators} operators: {savepoint.path}")


def restore_advices(savepoint: Savepoint) -> list[str]:
    """Return what a job that is restored has to set: one line, or none without keyed state."""
    keyed = {
        operator.label: operator.max_parallelism
        for operator in savepoint.operators
        if has_keyed_state(operator)
    }
    return [restore_advice(keyed)] if keyed else []


def has_keyed_state(operator: Operator) -> bool:
    """Return whether a subtask of an operator wrote keyed state."""
    return any(subtask.key_groups for subtask in operator.subtasks)


def bytes_of(operator: Operator) -> int:
    """Return how many bytes the subtasks of an operator wrote."""
    return sum(subtask.bytes for subtask in operator.subtasks)


def heaviest(operators: Sequence[Operator], most: int) -> list[Operator]:
    """Return the operators with the most bytes, at most so many, in their order."""
    of_bytes = nlargest(most, range(len(operators)), key=lambda i: bytes_of(operators[i]))
    return [operators[index] for index in sorted(of_bytes)]


def operators_section(savepoint: Savepoint, most: int) -> Section:
    """Return the table of the operators, at most so many, the heaviest."""
    shown = heaviest(savepoint.operators, most)
    rows = [_row(operator) for operator in shown]
    caption = f"Operators; hot: the heaviest subtask has {HOT} times the mean and more"
    if len(shown) < len(savepoint.operators):
        left_out = len(savepoint.operators) - len(shown)
        caption += f"; the {len(shown)} with the most bytes, {left_out:,} others are left out"
    hot = {index: "hot" for index, row in enumerate(rows) if row.is_hot}
    return Section([], _HEADINGS, [row.cells for row in rows], (0,), caption, marks=hot)


def _about(operator: Operator) -> Iterator[Section]:
    """Say what `_metadata` does of an operator and its subtasks."""
    yield Section(operator_lines(operator))
    mean = bytes_of(operator) / operator.parallelism
    written = nlargest(_SHOWN, operator.subtasks, key=lambda subtask: subtask.bytes)
    rows = [
        (
            str(subtask.subtask_index),
            "" if subtask.key_groups is None else str(subtask.key_groups),
            f"{subtask.bytes:,}",
            f"{subtask.bytes / mean if mean else 1:.2f}",
            "yes" if subtask.is_finished else "",
        )
        for subtask in written
    ]
    hot = {i: "hot" for i, subtask in enumerate(written) if subtask.bytes >= HOT * mean > 0}
    caption = f"Subtasks, with the headers in their files; hot: {HOT} times the mean and more"
    if len(rows) < len(operator.subtasks):
        left_out = len(operator.subtasks) - len(rows)
        caption += f"; the {len(rows)} with the most bytes, {left_out:,} others are left out"
    if rows:
        yield Section([], _SUBTASK_HEADINGS, rows, (), caption, marks=hot)


def operator_lines(operator: Operator) -> list[str]:
    """Return what an operator is called, and what it was written under."""
    names = (("uid", operator.uid), ("name", operator.name), ("id", operator.operator_id))
    return [
        ", ".join(f"{title} {short(name, _LABEL)}" for title, name in names if name),
        f"parallelism {operator.parallelism:,}, max parallelism {operator.max_parallelism:,}, "
        f"{bytes_of(operator):,} bytes",
    ]


def states_section(states: Sequence[StateDescriptor]) -> Section:
    """Return the table of keyed states with their types."""
    rows = [
        (
            short(state.name, _LABEL),
            "timers" if state.value_serializer is None else state.kind,
            *(
                ""
                if serializer in (None, VOID_NAMESPACE)
                else short(exact_type(serializer), _LABEL)
                for serializer in (
                    state.key_serializer,
                    state.namespace_serializer,
                    state.user_key_serializer,
                    state.value_serializer,
                )
            ),
            "yes" if state.has_ttl else "",
        )
        for state in states
    ]
    left = range(len(_STATE_HEADINGS))
    return Section([], _STATE_HEADINGS, rows, left, "Keyed states")


def read_savepoint(
    path: str | os.PathLike[str],
    moved: Mapping[str, str] | None = None,
    *,
    uids: Iterable[str] | None = None,
    allow: Collection[str | os.PathLike[str]] = (),
    serializers: Mapping[str, type[Serializer]] | None = None,
    progress: ProgressCallback | bool | None = None,
) -> Savepoint:
    """Read the `_metadata` of a savepoint or checkpoint; state is read when it is asked for.

    `path` is its folder, the file `_metadata` in it, or the URL of either, which fsspec opens
    (extra `savepoint`). `moved` maps what the paths of a checkpoint's files start with to where
    these are now; the files of a savepoint need none. Canonical and native savepoints and
    checkpoints of Flink 1.8 to 2.3 are read (tested with those of 1.8 to 2.0 and 2.3), of the
    hashmap, the RocksDB and the ForSt backend, with or without changelog; of older ones the file
    `_metadata` alone.

    `_metadata` names files, and may be anybody's: what it names is opened only in the folder of
    the savepoint, for a checkpoint `chk-N` also in `shared`, `taskowned` and the checkpoints
    beside it, and where `moved` leads. What is not at its path is looked for by its random
    name in the first three: the files of a folder are read where all of them are in one other.
    `allow` are more folders and files, by path or URL, that may be opened where they are; who
    wrote `_metadata` then chooses among all that is in them.

    `uids` are those of the job's operators, some or all: before Flink 2.0 `_metadata` has their
    hashes alone, which are the ids, and an operator has the `uid` that it is told here. Each has
    to be of an operator, once; the error names those that are not.

    `serializers` are the job's own, by the full names of the classes of their snapshots:
    `Serializer.from_contents` shows how to derive one. They are known to this savepoint alone.
    Without one the state is bytes, where its format says how many.

    `progress` is a function that is told how far the work on this savepoint has come, as
    `keygroups.progress` has it, or True for a bar. It is not pickled with the savepoint.

    Raises SavepointError, naming file and offset, where there is no such file, where it is
    damaged or of a kind that is not read, and for a file that may not be opened; InvalidTypeError
    for what is no path, InvalidValueError for one in `moved` or `allow` that names no folder, and
    for uids that no operator has.
    """
    text = check_path("path", path)
    prefixes = check_moved(moved)
    if not isinstance(allow, (list, tuple, set, frozenset)):
        raise InvalidTypeError(f"allow must be a list of paths, got {show(allow)}")
    allowed = [check_place("path in allow", place) for place in allow]
    files = Files(text, prefixes, allowed)
    known, callback = checked_serializers(serializers), checked_progress(progress)
    savepoint = Savepoint(files, known, callback)
    if uids is not None:
        _label(savepoint, iterate("uids", "str", uids))
    return savepoint


def savepoint_of(
    savepoint: Savepoint | str | os.PathLike[str],
    moved: Mapping[str, str] | None = None,
    allow: Collection[str | os.PathLike[str]] = _NONE,
    serializers: Mapping[str, type[Serializer]] | None = None,
    uids: Iterable[str] | None = None,
    progress: ProgressCallback | bool | None = None,
) -> Savepoint:
    """Return a savepoint as it was read, or read that of a path as `read_savepoint` does."""
    if not isinstance(savepoint, Savepoint):
        return read_savepoint(
            savepoint, moved, uids=uids, allow=allow, serializers=serializers, progress=progress
        )
    given = {
        "moved": moved is not None,
        "uids": uids is not None,
        "allow": allow is not _NONE,
        "serializers": serializers is not None,
        "progress": progress is not None,
    }
    if any(given.values()):
        raise InvalidValueError(
            f"{' and '.join(compress(given, given.values()))} must be left out for a Savepoint, "
            "which read_savepoint has read with its own"
        )
    return savepoint


def _without_progress(whose: Operator | Savepoint) -> dict[str, Any]:
    """Return the attributes that may be pickled: another process has nobody to tell."""
    return vars(whose) | {"_progress": None}


def id_in_either(savepoints: Iterable[Savepoint], name: str) -> str:
    """Return the id of an operator of one savepoint or another, which then has the uid in both."""
    errors: list[InvalidValueError] = []
    ids = set()
    for savepoint in savepoints:
        try:
            ids.add(savepoint.operator(name).operator_id)
        except InvalidValueError as error:
            errors.append(error)
    if len(ids) == 1:
        return ids.pop()
    if ids:
        raise InvalidValueError(
            f"operator must be the same in both savepoints, got {show(name)}, which is the name "
            f"of {', '.join(sorted(ids))}"
        )
    raise errors[0]


def known_uids(operators: Iterable[Operator]) -> list[str]:
    """Return the uids of which the ids of operators are the hashes, as `read_savepoint` takes."""
    return [
        operator.uid
        for operator in operators
        if operator.uid and operator_id_of(operator.uid) == operator.operator_id
    ]


def _label(savepoint: Savepoint, uids: Iterable[str]) -> None:
    """Tell operators the uids whose hashes their ids are."""
    by_id = {operator.operator_id: operator for operator in savepoint.operators}
    told: set[str] = set()
    unknown: list[str] = []
    for uid in uids:
        operator = by_id.get(operator_id_of(check_str("uid in uids", uid)))
        if uid in told:
            raise InvalidValueError(f"uids must differ, got {show(uid)} twice")
        told.add(uid)
        if operator is not None:
            operator.uid = uid
        elif len(unknown) < _NAMED:
            unknown.append(show(uid))
        else:
            unknown.append("more")
            break
    if unknown:
        raise InvalidValueError(
            f"uids must be of the {len(by_id)} operators of {savepoint.path}, got "
            f"{', '.join(unknown)}, which no operator has"
        )


def _subtask(state: SubtaskState, files: Files, context: ReadingContext) -> Subtask:
    size = sum(format_of(files, handle, context).bytes for handle in state.keyed)
    for operator in (state.managed_operator, state.raw_operator):
        size += operator.stream.size if operator else 0
    key_groups = state.keyed[0].key_groups if state.keyed else None
    return Subtask(state.index, key_groups, size, state.is_finished)


def _key_groups_in_use(operator: Operator, tasks: Iterable[ReadTask]) -> tuple[int, float]:
    """Return how many key groups are in use, and the imbalance.

    A KeyGroupLoad would say the same, with a weight for each key group that there can be.
    """
    groups, parallelism = operator.max_parallelism, operator.parallelism
    in_use = 0
    per_subtask: Counter[int] = Counter()
    for task in tasks:
        used: set[int] = set()  # some may have timers too
        runs = [*task.key_group_sizes()]
        for start, sizes in runs:
            end = start + len(sizes)
            if len(runs) > 1:
                used.update(compress(range(start, end), sizes))
            else:
                in_use += len(sizes) - sizes.count(0)
            first, last = (
                compute_operator_index_for_key_group(groups, parallelism, key_group)
                for key_group in (start, end - 1)
            )
            # The first key group of each subtask behind the first one.
            bounds = [
                -(-subtask * groups // parallelism) for subtask in range(first + 1, last + 1)
            ]
            for subtask, (low, high) in enumerate(pairwise([start, *bounds, end]), first):
                per_subtask[subtask] += sum(sizes[low - start : high - start])
        in_use += len(used)
    heaviest, total = max(per_subtask.values(), default=0), per_subtask.total()
    return in_use, heaviest * parallelism / total if total else 1


class _Row(NamedTuple):
    """The cells of an operator's line, "-" for what `_metadata` does not tell."""

    cells: tuple[str, ...]
    is_hot: bool


def _row(operator: Operator) -> _Row:
    shown, is_hot = ("-", "-"), False
    tasks = operator.tasks()
    if tasks and all(task.has_offsets for task in tasks):
        with suppress(SavepointError):  # of a file that is gone, which the rest does without
            in_use, imbalance = _key_groups_in_use(operator, tasks)
            shown, is_hot = (f"{in_use}", f"{imbalance:.2f}"), imbalance >= HOT
    numbers = (operator.parallelism, operator.max_parallelism)
    size = f"{bytes_of(operator):,}"
    return _Row((short(operator.label, _LABEL), *map(str, numbers), size, *shown), is_hot)
