"""A savepoint or checkpoint as a whole: its operators, comparison, verification and summary."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import compress
from typing import Any

from keygroups._checks import (
    INT_MAX,
    check_class,
    check_int,
    check_states,
    check_str,
    iterate,
    show,
)
from keygroups._serializers.base import Serializer, checked_serializers
from keygroups._serializers.data_input import ReadingContext
from keygroups._serializers.jvm.kryo import check_described
from keygroups._serializers.jvm.kryo_classes import KryoClass
from keygroups._show.progress import checked_progress
from keygroups._show.tables import Section, html_sections
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    RestoreWarning,
    SavepointError,
    UnsupportedKeyTypeError,
    printable,
)
from keygroups.progress import ProgressCallback
from keygroups.rescale import check_restore, restore_advice
from keygroups.savepoint._comparison.compare import OperatorPair
from keygroups.savepoint._files.files import Files, check_moved, check_path, check_place
from keygroups.savepoint._files.found_files import find_files
from keygroups.savepoint._files.job_folders import metadata_of
from keygroups.savepoint._files.same_bytes import check_apart
from keygroups.savepoint._metadata.handles import (
    operator_id_of,
)
from keygroups.savepoint._metadata.reader import read_metadata
from keygroups.savepoint._named_operators import find_operator
from keygroups.savepoint._operator import Operator, has_keyed_state, missing_timers
from keygroups.savepoint._operator_tables import MOST_SHOWN
from keygroups.savepoint._restoring.restores import (
    JobOperator,
    declared_operators,
    has_state,
    restores,
)
from keygroups.savepoint._savepoint_tables import (
    Operators,
    in_flight_sections,
    operators_section,
    table_lines,
)
from keygroups.savepoint._sources.lag import checked_ends
from keygroups.savepoint._sources.split_layouts import SplitLayout, checked_layouts
from keygroups.savepoint._state.key_hashes import has_hash
from keygroups.savepoint._state.writing.new_states import NewState, key_to_write
from keygroups.savepoint._verification.verify import (
    RunTasks,
    verify_files,
    verify_operator,
)
from keygroups.savepoint.comparing import EntryDifference, SavepointComparison
from keygroups.savepoint.restoring import RestoreReport
from keygroups.savepoint.summaries import SavepointSummary
from keygroups.savepoint.verifying import SavepointVerification
from keygroups.types import KeyType

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_NONE: tuple[str, ...] = ()
FLINK_2 = 5
"""The first version of `_metadata` that Flink 2 writes."""
NATIVE = "native savepoint"
_NAMED = 10  # uids in a line
_MOST_UNKNOWN = 1_000  # uids that no operator has, which an endless iterable would go beyond
_UIDS = "ids are hashes of uids: those that the job sets are told by uids=[...] (--uids FILE)"


def kryo_version_of(version: int) -> int:
    """Return the version of Kryo by which Flink reads a savepoint, of one of `_metadata`."""
    return 5 if version >= FLINK_2 else 2


class Savepoint:
    """A savepoint or checkpoint; `str()` lists its operators.

    `path` is its folder, `version` that of its `_metadata`, `checkpoint_id` its number, `kind`
    "canonical savepoint", "native savepoint" or "checkpoint", and None before Flink 1.15, which
    did not say. `operators` are all of the job, those without state too. `metadata` is what
    `_metadata` says, `files` is what opens the files it names, `serializers` are the job's own.
    `unknown_uids` are those of the uids passed to `read_savepoint` that no operator has.
    """

    def __init__(
        self,
        files: Files,
        serializers: Mapping[str, type[Serializer] | KryoClass],
        progress: ProgressCallback | None = None,
    ) -> None:
        metadata = read_metadata(*metadata_of(files))
        files.elsewhere = find_files(files, metadata)
        check_apart(files, metadata)
        context = ReadingContext(serializers, kryo_version_of(metadata.version))
        self.files = files
        self.metadata = metadata
        self.serializers = serializers
        self.path = files.base
        self.version = metadata.version
        self.checkpoint_id = metadata.checkpoint_id
        self.kind = metadata.kind
        self.operators: tuple[Operator, ...] = Operators(
            Operator(operator, files, context, progress=progress)
            for operator in metadata.operators
        )
        self.unknown_uids: tuple[str, ...] = ()
        self._progress = progress

    def __getstate__(self) -> dict[str, Any]:
        # The callback stays in its process: it may hold what cannot be pickled.
        return vars(self) | {"_progress": None}

    def operator(self, name: str) -> Operator:
        """Return an operator by its uid, its name or its id in hex.

        A uid is known in every version of Flink, as the id is its hash; the operator has it from
        then on. Raises InvalidValueError where there is none, or more than one of that name.
        """
        return find_operator(self.operators, name)

    def as_pyflink(
        self, declared: Mapping[str, tuple[KeyType | Serializer, Iterable[NewState]]]
    ) -> Savepoint:
        """Return the savepoint with some operators as their PyFlink jobs have them.

        `declared` maps uids, names or ids of operators to the arguments of `Operator.as_pyflink`,
        which has what is raised besides InvalidTypeError: a key type and descriptors. All that is
        done with the savepoint, such as comparing and editing it, then has keys, names and values
        as the job has them.

        >>> from tempfile import mkdtemp
        >>> from keygroups.savepoint import SavepointWriter, ValueStateDescriptor, read_savepoint
        >>> from keygroups.types import LONG, PYFLINK
        >>> folder, states = mkdtemp(), [ValueStateDescriptor("count", LONG)]
        >>> for name, count in [("old", 5), ("new", 6)]:
        ...     with SavepointWriter(f"{folder}/{name}") as writer:
        ...         by_user = writer.add_operator("by-user", PYFLINK(LONG), states, 128, 3)
        ...         by_user.write("count", 7, count)
        >>> declared = {"by-user": (LONG, states)}
        >>> old, new = (read_savepoint(f"{folder}/{name}") for name in ("old", "new"))
        >>> for difference in old.as_pyflink(declared).differences(new.as_pyflink(declared)):
        ...     print(difference)
        key 7: 5 -> 6
        """
        if not isinstance(declared, Mapping):
            raise InvalidTypeError(
                f"declared must map operators to a key type and descriptors, got {show(declared)}"
            )
        operators: dict[str, Operator] = {}
        job: Any
        for name, job in declared.items():
            operator = self.operator(check_str("operator", name))
            if not isinstance(job, tuple) or len(job) != 2:
                raise InvalidTypeError(
                    f"declared must have a key type and descriptors for {show(name)}, got "
                    f"{show(job)}"
                )
            operators[operator.operator_id] = operator.as_pyflink(*job)
        savepoint = copy(self)
        savepoint.operators = Operators(
            operators.get(operator.operator_id, operator) for operator in self.operators
        )
        return savepoint

    def check_restore(
        self, operator: Operator | str, parallelism: int, max_parallelism: int | None = None
    ) -> int:
        """Return the max parallelism that an operator runs with after a restore from here.

        The arguments and what is raised are those of `keygroups.check_restore`; the savepoint's
        max parallelism is the operator's. A native savepoint that lacks the timers of windows, or
        of the buffers of interval joins, is a RestoreWarning too.
        """
        restored = operator if isinstance(operator, Operator) else self.operator(operator)
        if self.kind == NATIVE:
            with suppress(SavepointError):  # a damaged header is for the restore to report
                if missing := missing_timers(restored):
                    warnings.warn(missing, RestoreWarning, stacklevel=2)
        return check_restore(restored.max_parallelism, parallelism, max_parallelism)

    def restore_report(
        self,
        job: Savepoint | Mapping[str, tuple[KeyType | Serializer, Iterable[NewState]]],
    ) -> RestoreReport:
        """Return a RestoreReport: whether a job restores this savepoint, and why not.

        `job` is a savepoint of the job as it is now, whatever is in it, or maps uids, names or
        ids of some operators to the type of their keys and their descriptors, as
        `SavepointWriter.add_operator` takes them, of Flink 2.3. Operators are found by their ids,
        states by their names; for each pair of serializers the report has what Flink's own
        snapshots say, and `keygroups.savepoint.restoring` the verdicts. Headers alone are read. A
        savepoint has the states that its job had registered by then.

        Raises InvalidTypeError or InvalidValueError for a job that is none, and what
        `add_operator` raises for a type or a descriptor; SavepointError for a damaged header.

        Flink: TypeSerializerSnapshot.resolveSchemaCompatibility, of each class.

        >>> from tempfile import mkdtemp
        >>> from keygroups.savepoint import SavepointWriter, ValueStateDescriptor, read_savepoint
        >>> from keygroups.types import INT, LONG, STRING
        >>> folder = mkdtemp() + "/savepoint"
        >>> with SavepointWriter(folder) as writer:
        ...     counts = [ValueStateDescriptor("count", INT)]
        ...     by_user = writer.add_operator("by-user", STRING, counts, 128, parallelism=3)
        ...     by_user.write("count", "ann", 7)
        >>> job = {"by-user": (STRING, [ValueStateDescriptor("count", LONG)])}
        >>> (by_user,) = read_savepoint(folder).restore_report(job).operators
        >>> print(by_user)
        by-user: incompatible
          count: incompatible
            value: INT -> LONG
            -> convert_state('count', to, value) writes it anew; remove_state drops it
        """
        olds = self.operators
        if isinstance(job, Savepoint):
            news = [JobOperator.of(by, job.version, 1) for by in job.operators]
            path = job.path
        else:
            news, path = declared_operators(self.operators, job), "as declared"
            ids = {new.operator_id for new in news}
            olds = tuple(by for by in olds if by.operator_id in ids)
        asked = [JobOperator.of(by, self.version, 0) for by in olds if has_state(by)]
        return RestoreReport(self.path, path, tuple(restores(asked, news)))

    def compare(
        self,
        other: Savepoint,
        operators: Iterable[str] | None = None,
        states: Iterable[str] | None = None,
    ) -> SavepointComparison:
        """Return the SavepointComparison of this savepoint with another.

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
        """Return an iterator over an EntryDifference for each entry that differs from another's.

        The arguments, what is raised and what is held are those of `compare`, whose report has a
        few of them; `keygroups.spark.compare_savepoints` returns them as a DataFrame.
        """
        pairs = self._pairs(other, operators, states)
        return (difference for pair in pairs for difference in pair.differences())

    def verify(self, operators: Iterable[str] | None = None) -> SavepointVerification:
        """Read all of it; return a SavepointVerification: damage, and state that Flink would miss.

        `operators` are uids, names or ids, None all. Verified are: that each file is there and of
        its size; the checksums and the order of RocksDB's files, Snappy's checksums, and that
        each entry can be read; that each key is in the key group of its hash; that no entry is
        there twice; that windows, of a job or of Flink SQL, and the buffers of interval joins have
        timers, and that sets of merging windows and their contents agree; that operator state is
        whole, of which elements are not decoded. Windows whose allowed lateness has no end have
        no timers once they fired, which counts as a fault too.

        What is damaged is told in the report and raises nothing. All is read by this process, in
        bounded memory, by way of temporary files if a key group is large;
        `keygroups.spark.verify_savepoint` reads on executors. Raises InvalidValueError or
        InvalidTypeError for operators that are not there, and what `read_savepoint` raises
        without an extra that the state takes.

        Flink: FLINK-33192, for windows without timers.

        >>> from tempfile import mkdtemp
        >>> from keygroups.savepoint import SavepointWriter, ValueStateDescriptor, read_savepoint
        >>> from keygroups.types import LONG, STRING
        >>> folder = mkdtemp() + "/savepoint"
        >>> with SavepointWriter(folder) as writer:
        ...     counts = [ValueStateDescriptor("count", LONG)]
        ...     by_user = writer.add_operator("by-user", STRING, counts, 128, parallelism=3)
        ...     by_user.write("count", "ann", 7)
        >>> read_savepoint(folder).verify()
        <SavepointVerification: 1 files of 397 bytes, 1 operators, 1 entries: no fault>
        """
        return verified(self, operators)

    def summary(
        self, operators: Iterable[str] | None = None, *, top: int = 5, at: datetime | None = None
    ) -> SavepointSummary:
        """Read all entries; return a SavepointSummary: what each state of each operator holds.

        `operators` are uids, names or ids, None all with state. `top` is how many of the heaviest
        keys of each state are named, at least 1. `at` is the time that ages of last accesses and
        waits of timers are counted from, a datetime with a time zone; None is now.

        Keyed state is read by columns, by this process, and nothing is held but the heaviest keys
        and, where a key has several entries, the keys of one key group;
        `keygroups.spark.summarize_savepoint` reads on executors. The extra `arrays` has what this
        takes. State that is damaged, elsewhere or not read here is no error: the summary says so,
        and has the other states. Raises InvalidValueError or InvalidTypeError for an argument, and
        ModuleNotFoundError without the extra.

        >>> from tempfile import mkdtemp
        >>> from keygroups.savepoint import SavepointWriter, ValueStateDescriptor, read_savepoint
        >>> from keygroups.types import LONG, STRING
        >>> folder = mkdtemp() + "/savepoint"
        >>> with SavepointWriter(folder) as writer:
        ...     counts = [ValueStateDescriptor("count", LONG)]
        ...     by_user = writer.add_operator("by-user", STRING, counts, 128, parallelism=3)
        ...     by_user.write("count", "ann", 7)
        >>> [by_user] = read_savepoint(folder).summary().operators
        >>> [(state.state, state.entries, state.keys, state.bytes) for state in by_user.states]
        [('count', 1, 1, 13)]
        """
        return summarized(self, operators, top, at)

    def _pairs(
        self,
        other: Savepoint,
        operators: Iterable[str] | None,
        states: Iterable[str] | None,
    ) -> list[OperatorPair]:
        """Return an OperatorPair for each operator to compare with another savepoint."""
        sides = (self, check_class("other", other, Savepoint, "a Savepoint"))
        own, others = ({by.operator_id: by for by in side.operators} for side in sides)
        ids: Collection[str] = {**own, **others}
        if operators is not None:
            named = iterate("operators", "names", operators)
            ids = dict.fromkeys(id_in_either(sides, check_str("operator", name)) for name in named)
        pairs = [OperatorPair(own.get(by_id), others.get(by_id)) for by_id in ids]
        if states is not None:
            known = sorted({name for pair in pairs for name in pair.state_names})
            chosen = check_states(states, known, "either side")
            for pair in pairs:
                pair.keep_only(chosen)
        return pairs

    def __repr__(self) -> str:
        return f"<Savepoint {printable(self.path)}>"

    def __str__(self) -> str:
        return "\n".join([headline(self), *table_lines(self.operators), *advices_of(self)])

    def _repr_html_(self) -> str:
        lines = Section([headline(self)]), Section(advices_of(self))
        tables = [
            operators_section(self.operators, MOST_SHOWN),
            *in_flight_sections(self.operators, MOST_SHOWN),
        ]
        return html_sections([lines[0], *tables, lines[1]])


def verified(
    savepoint: Savepoint, operators: Iterable[str] | None, run: RunTasks | None = None
) -> SavepointVerification:
    """Return the SavepointVerification; `run` runs its tasks elsewhere, None runs them here."""
    chosen = savepoint.operators
    if operators is not None:
        names = iterate("operators", "names", operators)
        chosen = tuple(savepoint.operator(check_str("operator", name)) for name in names)
    files, size, tally = verify_files(savepoint.files, savepoint.metadata)
    verified_operators = tuple(verify_operator(operator, run) for operator in chosen)
    return SavepointVerification(savepoint.path, files, size, tally.counts, verified_operators)


def summarized(
    savepoint: Savepoint,
    operators: Iterable[str] | None,
    top: int,
    at: datetime | None,
    run: Callable[[list[Callable[[], Any]]], Iterable[Any]] | None = None,
) -> SavepointSummary:
    """Return the SavepointSummary; `run` runs its tasks elsewhere, None runs them here."""
    top = check_int("top", top, 1, INT_MAX)
    time = (
        datetime.now(timezone.utc) if at is None else check_class("at", at, datetime, "a datetime")
    )
    if time.utcoffset() is None:
        raise InvalidValueError(f"at must have a time zone, got {show(at)}")
    if operators is None:
        chosen = [by for by in savepoint.operators if by.subtasks or by._coordinator is not None]
    else:
        names = iterate("operators", "names", operators)
        chosen = [savepoint.operator(check_str("operator", name)) for name in names]
    from keygroups.savepoint._summary.summarize import summarize_operator

    millis = (time - _EPOCH) // timedelta(milliseconds=1)
    summaries = (summarize_operator(operator, millis, top, run) for operator in chosen)
    return SavepointSummary(savepoint.path, savepoint.checkpoint_id, millis, tuple(summaries))


def headline(savepoint: Savepoint) -> str:
    """Return the kind, id, number of operators and path of a savepoint as one line."""
    kind, operators = savepoint.kind or "savepoint or checkpoint", len(savepoint.operators)
    return printable(f"{kind} {savepoint.checkpoint_id}, {operators} operators: {savepoint.path}")


def advices_of(savepoint: Savepoint) -> list[str]:
    """Return lines of advice: to pass `uids`, and the max parallelism that a job has to set.

    Flink before 2.0 wrote neither uid nor name of an operator.
    """
    has_names = any(operator.uid or operator.name for operator in savepoint.operators)
    advices = [] if has_names or not savepoint.operators else [_UIDS]
    if savepoint.unknown_uids:
        advices.append(f"warning: no operator has the uids {unknown_uids_of(savepoint)}")
    keyed = {
        operator.label: operator.max_parallelism
        for operator in savepoint.operators
        if has_keyed_state(operator)
    }
    return [*advices, restore_advice(keyed)] if keyed else advices


def unknown_uids_of(savepoint: Savepoint) -> str:
    """Return the uids that no operator has as text, of many the first few."""
    unknown = savepoint.unknown_uids
    more = f" and {len(unknown) - _NAMED:,} more" if len(unknown) > _NAMED else ""
    return ", ".join(show(uid) for uid in unknown[:_NAMED]) + more


def read_savepoint(
    path: str | os.PathLike[str],
    moved: Mapping[str, str] | None = None,
    *,
    uids: Iterable[str] | None = None,
    allow: Collection[str | os.PathLike[str]] = (),
    serializers: Mapping[str, type[Serializer] | KryoClass] | None = None,
    key_types: Mapping[str, KeyType | Serializer] | None = None,
    splits: Mapping[str, SplitLayout] | None = None,
    ends: Mapping[tuple[str, int], int] | None = None,
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
    hashes alone, which are the ids, and an operator has the `uid` that it is told here. Each is
    given once; those that no operator has are `unknown_uids`, and a warning in the report.

    `serializers` are the job's own, by the full names of the classes of their snapshots:
    `Serializer.from_contents` shows how to derive one. By the full names of classes of the job
    they are also a `KryoFields` or `KryoEnum`, which says what Kryo writes of their objects. They
    are known to this savepoint alone. Without one the state is bytes, where its format says how
    many.

    `key_types` are those of operators, by uid, name or id, whose state does not say what its keys
    are: checkpoints of the changelog backend that have changes alone, and no timers. With them the
    state is read, written anew and edited as any other; a key that is not in its key group raises.

    `splits` are the layouts of the splits of one's own sources, by uid, name or id: a SplitLayout
    of `keygroups.savepoint.sources`, by which `Operator.source_splits` reads them.

    `ends` are the ends of partitions of Kafka, as `Operator.source_splits` takes them: with them
    reports tell how far sources are behind.

    `progress` is a function that is told how far the work on this savepoint has come, as
    `keygroups.progress` has it, or True for a bar. It is not pickled with the savepoint.

    Raises SavepointError, naming file and offset, where there is no such file, where it is
    damaged or of a kind that is not read, and for a file that may not be opened; InvalidTypeError
    for what is no path, InvalidValueError for one in `moved` or `allow` that names no folder, for
    a uid that is given twice, and for more than 1,000 that no operator has.
    """
    text = check_path("path", path)
    prefixes = check_moved(moved)
    if not isinstance(allow, (list, tuple, set, frozenset)):
        raise InvalidTypeError(f"allow must be a list of paths, got {show(allow)}")
    allowed = [check_place("path in allow", place) for place in allow]
    files = Files(text, prefixes, allowed)
    known, callback = checked_serializers(serializers), checked_progress(progress)
    check_described(known)
    savepoint = Savepoint(files, known, callback)
    if uids is not None:
        savepoint.unknown_uids = _label(savepoint, iterate("uids", "str", uids))
    if key_types is not None:
        _tell_keys(savepoint, key_types)
    if splits is not None:
        for name, layout in checked_layouts(splits).items():
            savepoint.operator(name)._split_layout = layout
    if ends is not None:
        checked = checked_ends(ends)
        for operator in savepoint.operators:
            operator._ends = checked
    return savepoint


def savepoint_of(
    savepoint: Savepoint | str | os.PathLike[str],
    moved: Mapping[str, str] | None = None,
    allow: Collection[str | os.PathLike[str]] = _NONE,
    serializers: Mapping[str, type[Serializer] | KryoClass] | None = None,
    uids: Iterable[str] | None = None,
    progress: ProgressCallback | bool | None = None,
) -> Savepoint:
    """Return a savepoint as it was read, or read that of a path as `read_savepoint` does."""
    if not isinstance(savepoint, Savepoint):
        found = read_savepoint(
            savepoint, moved, uids=uids, allow=allow, serializers=serializers, progress=progress
        )
        if found.unknown_uids:  # No report would say so.
            raise InvalidValueError(
                f"uids must be of the {len(found.operators)} operators of {found.path}, got "
                f"{unknown_uids_of(found)}, which no operator has"
            )
        return found
    passed = {
        "moved": moved is not None,
        "uids": uids is not None,
        "allow": allow is not _NONE,
        "serializers": serializers is not None,
        "progress": progress is not None,
    }
    if any(passed.values()):
        raise InvalidValueError(
            f"{' and '.join(compress(passed, passed.values()))} must be left out for a Savepoint, "
            "which read_savepoint has read with its own"
        )
    return savepoint


def id_in_either(savepoints: Iterable[Savepoint], name: str) -> str:
    """Return the id of an operator that one or both savepoints have, and set its uid in both."""
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


def _label(savepoint: Savepoint, uids: Iterable[str]) -> tuple[str, ...]:
    """Set the uid of each operator whose id is the hash of one; return the uids of none."""
    by_id = {operator.operator_id: operator for operator in savepoint.operators}
    seen: set[str] = set()
    unknown: list[str] = []
    for uid in uids:
        operator = by_id.get(operator_id_of(check_str("uid in uids", uid)))
        if uid in seen:
            raise InvalidValueError(f"uids must differ, got {show(uid)} twice")
        seen.add(uid)
        if operator is not None:
            operator.uid = uid
            continue
        unknown.append(uid)
        if len(unknown) > _MOST_UNKNOWN:
            raise InvalidValueError(
                f"uids must be of the {len(by_id)} operators of {savepoint.path}, got more than "
                f"{_MOST_UNKNOWN:,} that no operator has, such as {show(unknown[0])}"
            )
    return tuple(unknown)


def _tell_keys(savepoint: Savepoint, key_types: Mapping[str, KeyType | Serializer]) -> None:
    """Set the serializer of keys of operators whose state does not have it, by name."""
    if not isinstance(key_types, Mapping):
        raise InvalidTypeError(f"key_types must be a mapping by operator, got {show(key_types)}")
    for name, key_type in key_types.items():
        operator = savepoint.operator(check_str("operator in key_types", name))
        serializer = key_to_write("key type in key_types", key_type)
        if not has_hash(serializer):
            raise UnsupportedKeyTypeError(
                f"key type in key_types must be one whose hash is known, got {serializer}"
            )
        operator._context = replace(
            operator._context,
            key_bytes=serializer.snapshot_bytes(),
            max_parallelism=operator.max_parallelism,
        )
