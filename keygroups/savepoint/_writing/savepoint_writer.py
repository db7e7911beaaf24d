"""Writes savepoints in the canonical format, which a Flink job restores."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping

from keygroups._checks import (
    LONG_MAX,
    check_bounds,
    check_class,
    check_int,
    check_parallelisms,
    check_str,
    show,
)
from keygroups._serializers.base import Serializer
from keygroups._serializers.jvm.kryo_classes import KryoClass
from keygroups._show.progress import checked_progress
from keygroups.errors import InvalidValueError, SavepointError
from keygroups.progress import ProgressCallback
from keygroups.savepoint._edits import operators as copied_operators
from keygroups.savepoint._edits.editor import OperatorEditor
from keygroups.savepoint._edits.keyed_state import EditedKeyedState
from keygroups.savepoint._edits.operators import CopiedOperator, check_outside
from keygroups.savepoint._files.output_folder import FolderWriter
from keygroups.savepoint._metadata.handles import (
    Metadata,
    OperatorId,
    is_id,
    operator_id_of,
)
from keygroups.savepoint._metadata.writer import write_metadata, write_operator
from keygroups.savepoint._named_operators import known_uids
from keygroups.savepoint._operator import Operator
from keygroups.savepoint._savepoint import (
    FLINK_2,
    Savepoint,
    kryo_version_of,
    read_savepoint,
    savepoint_of,
)
from keygroups.savepoint._sources.kafka import KafkaOffsets
from keygroups.savepoint._sources.source_splits import (
    READER_STATE,
    coordinator_bytes,
    reader_elements,
)
from keygroups.savepoint._state.header import StateDescriptor, write_keyed_header, write_state
from keygroups.savepoint._state.writing.entry_encoder import EntryEncoder
from keygroups.savepoint._state.writing.new_states import (
    ListStateDescriptor,
    MapStateDescriptor,
    NewState,
    new_keyed_states,
    operator_key_to_write,
)
from keygroups.savepoint._state.writing.operator_state_writer import (
    NewOperatorState,
    new_operator_states,
)
from keygroups.savepoint._windows.window_writer import (
    SESSIONS,
    WindowContents,
    WindowOperatorWriter,
    check_lateness,
    window_states,
)
from keygroups.savepoint._writing.kryo_versions import (
    check_kryo_of_states,
    kryo_version_of_states,
)
from keygroups.savepoint._writing.operator_writer import OperatorWriter
from keygroups.savepoint._writing.template import Template, named_as
from keygroups.savepoint.reports import EditedOperator, EditReport
from keygroups.savepoint.windows import WindowAssigner
from keygroups.types import KeyType

_VERSION = 3  # version of _metadata: 4 and later hold serialized Java objects


class SavepointWriter(FolderWriter):
    """Writes a savepoint in the canonical format, which Flink 1.17 to 2.3 reads.

    Jobs have restored what it wrote, entry by entry: keyed state without timers on 1.17.2, 1.19.3,
    1.20.5, 2.1.3 and 2.3.0; operator state, timers, windows, the state of SQL jobs and edits on
    1.20.5, 2.1.3 and 2.3.0.

    `path` is a folder that is not there yet, or its URL (extra `savepoint`). It is there, whole,
    when the `with` block ends; if that raises, it never is. The job that restores it has to set
    its max parallelism explicitly, to the one given here.

    `template` is a savepoint of the job, or its path: one that the job took when it had seen a
    row or two, or none. The ids of operators, their types, as the bytes that Flink wrote of them,
    and parallelisms come from it, but no entry: an operator of it that is not added is left out,
    and starts as a new one. That is how state of Flink SQL is written, whose operators have no
    uid, and types that only Flink writes, such as ARRAY and MAP, or a job's own classes. After a
    template of Flink 2 the new savepoint is of Flink 2 too: it has the operators' names and uids.
    So is one with values of Kryo 5, which Flink 1 would read by another.

    `checkpoint_id`, 1..2^63-2, is the number of the savepoint: the checkpoints of the job that
    restores it are counted from there on, as the names of some sinks' transactions are.

    `progress` is a function that is told how far it has come, as `keygroups.progress` has it, or
    True for a bar: for each operator, which of its key groups are written.

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
    ...     by_user = writer.add_operator("by-user", STRING, counts, 128, parallelism=3, sort=True)
    ...     for user in ("ann", "bob"):
    ...         by_user.write("count", user, 7)
    >>> [(entry.key, entry.value) for entry in read_savepoint(path).operator("by-user").entries()]
    [('bob', 7), ('ann', 7)]
    """

    _path_name = "path"  # name of the argument in errors

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        template: Savepoint | str | os.PathLike[str] | None = None,
        checkpoint_id: int = 1,
        progress: ProgressCallback | bool | None = None,
    ) -> None:
        super().__init__(self._path_name, path)
        self._checkpoint_id = check_int("checkpoint_id", checkpoint_id, 1, LONG_MAX - 1)
        self._template = None if template is None else savepoint_of(template)
        self._progress = checked_progress(progress)
        self._operators: list[OperatorWriter] = []
        self._uids: dict[str, str] = {}  # operator id to uid, "" if only the id is known
        self._new_kryo: int | None = None  # the version of Kryo of new states, None without any

    @staticmethod
    def from_existing_savepoint(
        savepoint: Savepoint | str | os.PathLike[str],
        path: str | os.PathLike[str],
        *,
        moved: Mapping[str, str] | None = None,
        uids: Iterable[str] | None = None,
        allow: Collection[str | os.PathLike[str]] = (),
        serializers: Mapping[str, type[Serializer] | KryoClass] | None = None,
        progress: ProgressCallback | bool | None = None,
    ) -> SavepointEditor:
        """Return a SavepointEditor, which writes a savepoint from another with changes.

        `savepoint` is what `read_savepoint` returns, or its path, for which `moved`, `uids`,
        `allow`, `serializers` and `progress` are those of `read_savepoint`. `path` is as here, and
        outside of it.

        Operators that are not changed are copied as they are, whatever the format of their state;
        files from outside of the savepoint's folder come into the new one. What is changed is
        written by this process; `keygroups.spark.edit_savepoint` has executors do it. Raises what
        those raise, and InvalidValueError at the end of the block where no operator is left.

        >>> from tempfile import mkdtemp
        >>> from keygroups.savepoint import ValueStateDescriptor, read_savepoint
        >>> from keygroups.types import LONG, STRING
        >>> folder = mkdtemp()
        >>> with SavepointWriter(folder + "/old") as writer:
        ...     counts = [ValueStateDescriptor("count", LONG)]
        ...     for uid in ("by-user", "by-session"):
        ...         operator = writer.add_operator(uid, STRING, counts, 128, parallelism=3)
        ...         operator.write("count", "ann", 7)
        >>> editor = SavepointWriter.from_existing_savepoint(folder + "/old", folder + "/new")
        >>> with editor as writer:
        ...     writer.remove_operator("by-session")
        ...     writer.change_operator_identifier("by-user", "by-customer")
        >>> (by_customer,) = read_savepoint(folder + "/new").operators
        >>> [(entry.key, entry.value) for entry in by_customer.entries()]
        [('ann', 7)]
        """
        old = savepoint_of(savepoint, moved, allow, serializers, uids, progress)
        return SavepointEditor(old, path)

    def add_operator(
        self,
        uid: str,
        key_type: KeyType | Serializer | None = None,
        states: Iterable[NewState] | None = None,
        max_parallelism: int | None = None,
        parallelism: int | None = None,
        *,
        list_states: Iterable[ListStateDescriptor] = (),
        union_list_states: Iterable[ListStateDescriptor] = (),
        broadcast_states: Iterable[MapStateDescriptor] = (),
        allow_any_last_access: bool = False,
        sort: bool = False,
    ) -> OperatorWriter:
        """Add an operator with keyed state, operator state or both; return its OperatorWriter.

        `uid` is the one set in the job, or an OperatorId, as of an operator of Flink SQL, which
        has none. `key_type` is that of its keyed stream, or its Serializer if it has a key type,
        `states` the descriptors of its states, and a TimerServiceDescriptor if it has timers.
        `max_parallelism`, 1..32768, has to be the job's; `parallelism`, 1..max_parallelism, is the
        number of files written: the job may run with any other. `key_type` is None, and `states`
        empty, for an operator without keyed state.

        Operator state is that of `list_states` and `union_list_states`, each a
        ListStateDescriptor as Flink's getListState and getUnionListState take it, and of
        `broadcast_states`, each a MapStateDescriptor; it is written by `write_operator_state`.

        `allow_any_last_access` takes times of last access before September 2001, as which seconds
        are refused, and more than a day from now, as which microseconds are.

        `sort` takes keyed state in any order: about 64 MiB of entries are held, and as many of
        tables; more are sorted files until the end, in the new folder, at a URL in the machine's
        for temporary files. Without it entries have to come in the order of key groups.

        With a template `uid` may also be a name or an id in hex, and all but it may be left out:
        then it is as there, with all keyed states, timers too. What is given is compared with the
        template, but for operator state.

        Raises InvalidValueError for a uid or a state that is there twice or has no name, or is not
        in the template, for a uid of 32 hexadecimal digits, which may be an id, for what is
        otherwise there, where the template has no keyed state, for the splits of a source, which
        `add_source` writes, and for values of another Kryo than that of the savepoint it is from;
        UnsupportedKeyTypeError for a type whose serializer is not known, ParallelismError,
        InvalidTypeError.

        A GROUP BY of Flink SQL has its accumulators in a row, here of COUNT(*) and SUM, as
        `describe_sql_state` tells it; the key is a row too. Its savepoint is made here, and would
        be one of the job:

        >>> from tempfile import mkdtemp
        >>> from keygroups.savepoint import ValueStateDescriptor, read_savepoint
        >>> from keygroups.types import SQL_ROW
        >>> folder = mkdtemp()
        >>> with SavepointWriter(folder + "/empty") as writer:
        ...     acc = ValueStateDescriptor("accState", SQL_ROW("BIGINT", "DECIMAL(38, 2)"))
        ...     by_user = writer.add_operator("sums", SQL_ROW("STRING"), [acc], 128, 1)
        ...     by_user.write("accState", ("no user",), (0, None))
        >>> from decimal import Decimal
        >>> sums = {"ann": (3, Decimal("7.50")), "bob": (1, None)}
        >>> with SavepointWriter(folder + "/new", template=folder + "/empty") as writer:
        ...     by_user = writer.add_operator("sums")
        ...     for user in sorted(sums, key=lambda user: by_user.key_group((user,))):
        ...         by_user.write("accState", (user,), sums[user])
        >>> [by_user] = read_savepoint(folder + "/new").operators
        >>> [(*entry.key, *entry.value) for entry in by_user.entries()]
        [('bob', 1, None), ('ann', 3, Decimal('7.50'))]
        """
        operator_states = new_operator_states(list_states, union_list_states, broadcast_states)
        if READER_STATE.name in [state.name for state in operator_states]:
            raise InvalidValueError(
                f"list_states must not have {READER_STATE.name}, the splits of a source, which go "
                "with the state of its coordinator: add_source writes both"
            )
        operator_id = self._new_operator_id("uid", uid)
        if self._template is None:
            groups, subtasks = check_parallelisms(max_parallelism, parallelism)
            keyed_states = new_keyed_states
        else:
            template = Template(self._template, uid)
            groups, subtasks = template.parallelisms(max_parallelism, parallelism)
            keyed_states = template.keyed_states
        allow = check_class("allow_any_last_access", allow_any_last_access, bool, "a bool")
        is_sorted = check_class("sort", sort, bool, "a bool")
        header, descriptors = keyed_states(key_type, states, bool(operator_states))
        kryo = self._kryo_version((*descriptors, *operator_states))
        operator = OperatorWriter(
            self._folder,
            operator_id,
            header,
            descriptors,
            groups,
            subtasks,
            allow,
            operator_states,
            sort=is_sorted,
        )
        self._add(uid, operator, kryo)
        return operator

    def add_source(
        self, uid: str, source: KafkaOffsets, max_parallelism: int, parallelism: int
    ) -> None:
        """Add a source that continues at the offsets of `source`: its readers and coordinator.

        The arguments are those of `add_operator`; the splits are dealt out to `parallelism`
        subtasks, and the job may run with any other. Raises what that raises.

        >>> from tempfile import mkdtemp
        >>> from keygroups.savepoint import KafkaOffsets, read_savepoint
        >>> path = mkdtemp() + "/savepoint"
        >>> with SavepointWriter(path) as writer:
        ...     offsets = KafkaOffsets({("clicks", 0): 4711, ("clicks", 1): 4699})
        ...     writer.add_source("clicks", offsets, 128, parallelism=2)
        >>> splits = read_savepoint(path).operator("clicks").source_splits().splits
        >>> [(split.partition, split.offset, split.subtask) for split in splits]
        [(0, 4711, 0), (1, 4699, 1)]
        """
        groups, subtasks = check_parallelisms(max_parallelism, parallelism)
        operator_id = self._new_operator_id("uid", uid)
        check_class("source", source, KafkaOffsets, "KafkaOffsets")
        operator = OperatorWriter(
            self._folder,
            operator_id,
            b"",
            (),
            groups,
            subtasks,
            operator_states=new_operator_states([READER_STATE], (), ()),
            coordinator=coordinator_bytes(source),
        )
        operator.write_operator_state(READER_STATE.name, reader_elements(source))
        self._add(uid, operator, self._new_kryo)

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
        """Add the operator of a WindowedStream, and return its WindowOperatorWriter.

        `assigner` is that of the job, such as TumblingEventTimeWindows, with the trigger that it
        has by itself. `contents` is named "window-contents": a ListStateDescriptor of the
        elements where the job calls `process` or `apply`, a ReducingStateDescriptor where it
        calls `reduce`, an AggregatingStateDescriptor where it calls `aggregate`.
        `allowed_lateness`, in milliseconds, is that of event time, and `has_evictor` whether the
        job has one. The other arguments are those of `add_operator`, and so is what is raised.

        With PYFLINK for `key_type` they are those of a PyFlink job. It has no evictors, and in
        thread mode neither sessions nor counts, which PyFlink itself fails to save:
        UnsupportedKeyTypeError.

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
        key = operator_key_to_write(key_type)
        states = window_states(assigner, contents, key, has_evictor)
        lateness = check_lateness(assigner, allowed_lateness)
        header = write_keyed_header(key.snapshot_bytes(), [*map(write_state, states)])
        elements_of = [
            number
            for number, state in enumerate(states)
            if (state.name, state.kind) == (SESSIONS, "LIST")
        ]
        kryo = self._kryo_version(states)
        operator = OperatorWriter(
            self._folder,
            operator_id,
            header,
            states,
            groups,
            subtasks,
            elements_of=elements_of,
        )
        self._add(uid, operator, kryo)
        encoder = EntryEncoder(states, groups)
        windows = WindowOperatorWriter(assigner, lateness, encoder, operator._hold)
        operator._check_key_group = windows._check_counts
        return windows

    def savepoint(self) -> Savepoint:
        """Return the savepoint, once it is written; its operators have the uids given here.

        Before Flink 2.0 `_metadata` has no place for them, and a new savepoint is one that Flink
        1.17 reads too: whoever reads it later passes `uids` to `read_savepoint`.

        Raises InvalidValueError before the `with` block has ended, SavepointError where the
        savepoint is gone since.

        >>> from tempfile import mkdtemp
        >>> from keygroups.savepoint import KafkaOffsets
        >>> with SavepointWriter(mkdtemp() + "/savepoint") as writer:
        ...     writer.add_source("clicks", KafkaOffsets({("clicks", 0): 4711}), 128, 1)
        >>> writer.savepoint().operators
        (<Operator clicks>,)
        """
        self._check_written("savepoint")
        source = self._source()
        serializers = None if source is None else source.serializers
        return read_savepoint(self._folder.path, uids=self._told_uids(), serializers=serializers)

    def _check_written(self, name: str) -> None:
        if not self._is_written:
            raise InvalidValueError(f"the {name} must be asked for after the with block")

    def _source(self) -> Savepoint | None:
        """Return the savepoint that types are taken from."""
        return self._template

    def _told_uids(self) -> list[str]:
        """Return the uids whose hash is the operator's id; a template's label may be no uid."""
        return [uid for known, uid in self._uids.items() if operator_id_of(uid) == known]

    def _add(self, uid: str, operator: OperatorWriter, kryo: int | None) -> None:
        if self._progress is not None:
            operator._tell(self._progress, f"write {uid}")
        self._operators.append(operator)
        self._new_kryo = kryo
        self._uids[operator.operator_id] = _uid_of(uid)

    def _new_operator_id(self, name: str, uid: str, renamed: Operator | None = None) -> str:
        """Return the operator id of a uid, or of the template's operator of that name.

        `renamed` is the operator that gets it, None if it is a new one. Raises InvalidValueError
        for an id that another operator has already.
        """
        self._check_open()
        text = check_str(name, uid)
        if self._template is not None:
            operator_id = self._template.operator(text).operator_id
        elif isinstance(uid, OperatorId):
            operator_id = text
        else:
            operator_id = operator_id_of(text)
            self._check_uid(name, text, operator_id, renamed)
        if not uid or operator_id in self._operator_ids():
            is_old = uid and operator_id not in self._uids
            cure = f": remove_operator({show(uid)}) takes out what is there" if is_old else ""
            raise InvalidValueError(
                f"{name} must be one of the job's, and new here, got {show(uid)}{cure}"
            )
        return operator_id

    def _check_uid(self, name: str, text: str, operator_id: str, renamed: Operator | None) -> None:
        """Refuse a text that is likely an id or a name: no operator of the job has its hash."""
        problem = "which has the form of an id" if is_id(text) else ""
        likely = text
        source = self._source()
        path, operators = ("", ()) if source is None else (source.path, source.operators)
        for operator in operators:
            names = (operator.operator_id, operator.uid, operator.name)
            if text in names and operator.operator_id not in (
                operator_id,
                None if renamed is None else renamed.operator_id,
            ):
                problem = f"which operator {operator.operator_id} is called in {path}"
                likely = operator.operator_id
        if problem:
            raise InvalidValueError(
                f"{name} must be a uid of the job, got {show(text)}, {problem}: "
                f"OperatorId({likely!r}) is that operator, id:{likely} in a shell, and "
                f"OperatorId.of_uid({text!r}) a uid, uid:{text}"
            )

    def _operator_ids(self) -> Collection[str]:
        return [operator.operator_id for operator in self._operators]

    @property
    def _version(self) -> int:
        """The version of the new `_metadata`: what Flink 1.17 reads too, unless it is for Flink 2.

        It is for that after a template of Flink 2, and with values of its Kryo: Flink 1 would
        take them for those of its own.
        """
        if self._template is not None and self._template.version >= FLINK_2:
            return self._template.version
        return FLINK_2 if self._new_kryo == kryo_version_of(FLINK_2) else _VERSION

    def _kryo_version(self, states: Iterable[StateDescriptor | NewOperatorState]) -> int | None:
        """Return the version of Kryo of the new states, with those that are to be added."""
        known = None if self._source() is None else kryo_version_of(self._version)
        return kryo_version_of_states(states, self._new_kryo, known)

    def _finish(self) -> tuple[Collection[str], bytes]:
        names, new = self._close_operators()
        metadata = Metadata(self._version, self._checkpoint_id, None, ())
        return names, write_metadata(metadata, new)

    def _close_operators(self) -> tuple[list[str], list[bytes]]:
        """Close the files of the new operators; return their names, and the operators' bytes."""
        names, written = [], []
        olds = () if self._template is None else self._template.metadata.operators
        known = {old.operator_id: old for old in olds}
        version = self._version
        for operator in self._operators:
            operator.close()
            names += operator.file_names
            new = named_as(known, operator.metadata(), self._uids[operator.operator_id])
            written.append(write_operator(new, version))
        return names, written

    def _abandon(self) -> None:
        for operator in self._operators:
            operator.abandon()


def _uid_of(uid: str) -> str:
    """Return the uid of an OperatorId, "" if only the id is known; a str is its own uid."""
    return uid.uid if isinstance(uid, OperatorId) else uid


class SavepointEditor(SavepointWriter):
    """Writes a savepoint from another; `SavepointWriter.from_existing_savepoint` makes it.

    Operators are named by their uid, their name or their id in hex, as they are by then.
    """

    def __init__(self, savepoint: Savepoint, path: str | os.PathLike[str]) -> None:
        super().__init__(path, progress=savepoint._progress)
        check_outside(self._path_name, savepoint, self._folder)
        self._old_savepoint = savepoint
        self._kept = copied_operators.all_of(savepoint)
        self._removed: list[CopiedOperator] = []

    def set_max_parallelism(
        self,
        new_max_parallelism: int,
        *,
        parallelism: int | None = None,
        operators: Iterable[str] | None = None,
    ) -> None:
        """Give operators another max parallelism, which Flink itself cannot change.

        `new_max_parallelism`, 1..32768, is that of `operators`, by uid, name or id; None is all
        but those with a max parallelism of 1, which cannot be parallel. Operators that a job
        chains have to have the same: the report names those without state that are left with
        another. `parallelism`, 1..new_max_parallelism, is the new one of those without operator
        state, and so how many files the keyed state of each becomes; None leaves it. The job may
        run with any other, and has to set the new max parallelism explicitly.

        Every entry, timer and window goes to the key group of its key, in the same pass over the
        state in which the other verbs edit it. That key group is computed for the old max
        parallelism too, and compared. Keys whose hash is not known here move only where the new
        max parallelism divides the old. The keyed state of these operators is written in the
        canonical format.

        Raises SavepointError for what cannot be moved with certainty: keys of other classes,
        in-flight data of unaligned checkpoints, subtasks that are finished where others are not;
        ParallelismError for a parallelism above the new max parallelism; InvalidValueError for
        operators that are not there, and where all have that max parallelism and parallelism
        already; InvalidTypeError. When it is written: SavepointError for a key in a key group
        that is not its own.

        >>> from tempfile import mkdtemp
        >>> from keygroups.savepoint import SavepointWriter, ValueStateDescriptor, read_savepoint
        >>> from keygroups.types import LONG, STRING
        >>> folder = mkdtemp()
        >>> with SavepointWriter(folder + "/old") as writer:
        ...     counts = [ValueStateDescriptor("count", LONG)]
        ...     by_user = writer.add_operator("by-user", STRING, counts, 128, parallelism=3)
        ...     by_user.write("count", "ann", 7)
        >>> editor = SavepointWriter.from_existing_savepoint(folder + "/old", folder + "/new")
        >>> with editor as writer:
        ...     writer.set_max_parallelism(4096)
        ...     writer.operator("by-user").map_entries("count", lambda entry: entry.value + 1)
        >>> (by_user,) = read_savepoint(folder + "/new").operators
        >>> [(entry.key, entry.key_group, entry.value) for entry in by_user.entries()]
        [('ann', 612, 8)]
        """
        self._check_open()
        groups = check_bounds("new_max_parallelism", new_max_parallelism)
        if parallelism is not None:
            parallelism = check_bounds("parallelism", parallelism, groups, "new_max_parallelism")
        copied_operators.set_max_parallelism(self._kept, groups, parallelism, operators)

    def convert_to_canonical(
        self, *, parallelism: int | None = None, operators: Iterable[str] | None = None
    ) -> None:
        """Write the keyed state of operators in the canonical format, whatever it is in now.

        That has no files of RocksDB or of other folders, and every backend restores it.
        `operators` are named as in `set_max_parallelism`, None is all. `parallelism`, at most the
        max parallelism of each, is the new one of those without operator state, of `operators` or
        of all that can be parallel. Raises what `set_max_parallelism` raises.

        >>> from tempfile import mkdtemp
        >>> from keygroups.savepoint import SavepointWriter, ValueStateDescriptor, read_savepoint
        >>> from keygroups.types import LONG, STRING
        >>> folder = mkdtemp()
        >>> with SavepointWriter(folder + "/old") as writer:
        ...     counts = [ValueStateDescriptor("count", LONG)]
        ...     by_user = writer.add_operator("by-user", STRING, counts, 128, parallelism=3)
        ...     by_user.write("count", "ann", 7)
        >>> editor = SavepointWriter.from_existing_savepoint(folder + "/old", folder + "/new")
        >>> with editor as writer:
        ...     writer.convert_to_canonical(parallelism=1)
        >>> [operator.parallelism for operator in read_savepoint(folder + "/new").operators]
        [1]
        """
        self._check_open()
        if parallelism is not None:
            parallelism = check_bounds("parallelism", parallelism)
        copied_operators.convert_to_canonical(self._kept, parallelism, operators)

    def remove_operator(self, name: str) -> None:
        """Leave out an operator, with all of its state.

        What a sink has to commit is then committed by nobody; the report names it. Raises
        InvalidValueError where there is none of that name.
        """
        self._check_open()
        self._removed.append(copied_operators.remove(self._kept, name))

    def change_operator_identifier(self, name: str, new_uid: str) -> None:
        """Give an operator another uid, as the job has it now; its state goes to that.

        One that has no uid in the job is named by its id, and `new_uid` is an OperatorId where it
        has none now, such as that of an operator of Flink SQL whose plan has changed. Raises
        InvalidValueError where there is none of that name; for a `new_uid` that is empty or that
        of another operator, and for a text that may be no uid: of 32 hexadecimal digits, or the
        id or name of another operator of the old savepoint.
        """
        self._check_open()
        copied = copied_operators.find(self._kept, name)
        operator_id = self._new_operator_id("new_uid", new_uid, copied._old)
        copied._rename(_uid_of(new_uid), operator_id)

    def operator(self, name: str) -> OperatorEditor:
        """Return the OperatorEditor of an operator, for its keyed and its operator state.

        It is the same object each time, also after the operator has got another uid.
        Raises InvalidValueError where there is none of that name.
        """
        self._check_open()
        return copied_operators.find(self._kept, name)

    def add_operator_from(
        self,
        other_savepoint: Savepoint | str | os.PathLike[str],
        name: str,
        uid: str | None = None,
    ) -> None:
        """Add an operator of another savepoint, which may be of another job, with its state.

        `name` is its name there, `uid` its uid or OperatorId here, None if it is the same. Of
        savepoints of several versions of Flink the newest is written.

        Raises InvalidValueError where there is none of that name, and for a uid that is here
        already; SavepointError for in-flight data, and where one was written by Flink 1 and the
        other by Flink 2, for values of Kryo.
        """
        self._check_open()
        other = savepoint_of(other_savepoint)
        check_outside(self._path_name, other, self._folder)
        copied = copied_operators.added(self._kept, other, name, self._old_savepoint.version)
        kryo = kryo_version_of(max(self._version, other.version))
        if self._new_kryo not in (None, kryo):
            raise SavepointError(
                f"{other.path}: operator {copied._old_label} cannot be added to new ones with "
                f"values of Kryo {self._new_kryo}, which Flink would read by {kryo}"
            )
        if uid is not None:
            operator_id = self._new_operator_id("uid", uid, copied._old)
            copied._rename(_uid_of(uid), operator_id)
        elif copied._metadata.operator_id in self._operator_ids():
            raise InvalidValueError(
                f"operator {show(copied._old.label)} must be new here, or get another uid"
            )
        self._kept.append(copied)

    def report(self) -> EditReport:
        """Return the EditReport of all operators, once the savepoint is written.

        Raises InvalidValueError before that.
        """
        self._check_written("report")
        new = (EditedOperator(uid or operator_id) for operator_id, uid in self._uids.items())
        return copied_operators.report(self._folder.path, self._kept, self._removed, new)

    def _written(self) -> EditReport:
        """Write the savepoint; no folder is made before the verbs were checked."""
        with self:
            pass
        return self.report()

    @property
    def _version(self) -> int:
        return copied_operators.new_metadata(self._old_savepoint, self._kept).version

    def _source(self) -> Savepoint | None:
        return self._old_savepoint

    def _told_uids(self) -> list[str]:
        kept = known_uids(copied._operator for copied in self._kept)
        return [*super()._told_uids(), *kept]

    def _operator_ids(self) -> Collection[str]:
        return [
            *super()._operator_ids(),
            *(copied._metadata.operator_id for copied in self._kept),
        ]

    def _finish(self) -> tuple[Collection[str], bytes]:
        if not self._operator_ids():
            raise InvalidValueError("the new savepoint must have an operator, and all are removed")
        keyed_states = copied_operators.edited_keyed_states(self._kept, self._folder)
        self._check_kryo(keyed_states)
        names, new = self._close_operators()
        for keyed_state in keyed_states:
            self._write_keyed_state(keyed_state)
        copied, written = copied_operators.copy_files(
            self._kept, self._version, self._folder, self._progress
        )
        metadata = copied_operators.new_metadata(self._old_savepoint, self._kept)
        return [*names, *copied], write_metadata(metadata, [*written, *new])

    def _check_kryo(self, keyed_states: Iterable[EditedKeyedState]) -> None:
        """Refuse new values of another Kryo than that of the savepoint, as it is in the end.

        Which operators are added or removed after a verb may change that one.
        """
        version = kryo_version_of(self._version)
        if self._new_kryo not in (None, version):
            raise InvalidValueError(
                f"add_operator must have values of Kryo {version}, as the operators that are kept "
                f"have, got those of Kryo {self._new_kryo}"
            )
        for keyed_state in keyed_states:
            check_kryo_of_states(keyed_state.states, version, f"operator {keyed_state.label}: ")

    def _write_keyed_state(self, keyed_state: EditedKeyedState) -> None:
        """Write the edited keyed state of an operator."""
        keyed_state.write(self._folder.scratch, self._progress)

    def _abandon(self) -> None:
        for copied in self._kept:
            copied.close()
        super()._abandon()
