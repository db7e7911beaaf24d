"""The operators that a new savepoint takes from old ones, under their old or new names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import cached_property

from keygroups._checks import check_str, iterate, show
from keygroups.errors import InvalidValueError, ParallelismError, SavepointError
from keygroups.progress import Meter, ProgressCallback, measured
from keygroups.savepoint._edits.editor import OperatorEditor
from keygroups.savepoint._edits.keyed_state import (
    EditedKeyedState,
    EditedState,
    WrittenState,
    with_keyed_state,
)
from keygroups.savepoint._edits.mended_operator_state import (
    check_operator_state,
    mended_operator_state,
)
from keygroups.savepoint._edits.merged_header import refused
from keygroups.savepoint._edits.operator_state_verbs import EditedOperatorState
from keygroups.savepoint._edits.traces import UnsearchedPlace
from keygroups.savepoint._files.copied_files import CopiedFiles
from keygroups.savepoint._files.files import Files
from keygroups.savepoint._files.output_folder import OutputFolder
from keygroups.savepoint._metadata.handles import (
    Metadata,
    OperatorMetadata,
    OperatorStateHandle,
    RawTimersHandle,
    SubtaskState,
    in_flight_data,
)
from keygroups.savepoint._metadata.writer import (
    Replace,
    copied_to,
    write_operator,
    written_version,
)
from keygroups.savepoint._named_operators import find_operator
from keygroups.savepoint._operator import Operator
from keygroups.savepoint._operator_states import is_sink
from keygroups.savepoint._savepoint import FLINK_2, Savepoint
from keygroups.savepoint._sinks.committables import Committable
from keygroups.savepoint._tasks.read import ReadTask, ahead
from keygroups.savepoint.reports import DeletedKeys, EditedOperator, EditReport

_Parallelisms = tuple[int, int]
"""A max parallelism and a parallelism."""
_CODED_CHANNELS = 6  # the first version of _metadata in which handles of channels have codes
_KRYO = b"KryoSerializer"
_CANONICAL = "canonical savepoint"  # kind of a Savepoint


class CopiedOperator(OperatorEditor):
    """An operator of the new savepoint: the OperatorEditor that users have, and what comes of it.

    `_old` is the same operator in its old savepoint; `_old_label` is its label before, with the
    uid if the caller has named that. `_operator` reads the old state and has the new names, as
    `_metadata` has. `_new_metadata` also has the new max parallelism and parallelism. With
    `_is_anew` its keyed state is written in the canonical format, whatever its old format.
    """

    def __init__(
        self, savepoint: Savepoint, old: Operator, metadata: OperatorMetadata, is_added: bool
    ) -> None:
        super().__init__(Operator(metadata, savepoint.files, old._context, old.uid))
        self._savepoint = savepoint
        self._old = old
        self._old_label = old.label
        self._metadata = metadata
        self._is_added = is_added
        self._max_parallelism = metadata.max_parallelism
        self._parallelism = metadata.parallelism
        self._new_keyed_state: EditedKeyedState | None = None
        self._new_operator_state: EditedOperatorState | None = None
        self._places: tuple[UnsearchedPlace, ...] | None = None  # places of deleted keys
        self._committables: tuple[Committable, ...] | None = ()  # a removed sink's

    def _rename(self, uid: str, operator_id: str) -> None:
        """Give it another uid, and the id that Flink derives from it."""
        self._metadata = replace(self._metadata, uid=uid, operator_id=operator_id)
        self._operator = copy(self._operator)
        self._operator.uid, self._operator.operator_id = uid or None, operator_id

    def _parallelisms(self, max_parallelism: int | None, parallelism: int | None) -> _Parallelisms:
        """Return its new max parallelism and parallelism; None leaves one as it is.

        An operator with operator state keeps its parallelism. Raises ParallelismError for a
        parallelism above the max parallelism.
        """
        groups, subtasks = max_parallelism or self._max_parallelism, self._parallelism
        # Operator state belongs to its subtask: Flink itself deals it out to others.
        has_operator_state = any(map(_has_operator_state, self._metadata.subtasks))
        if parallelism is not None and not has_operator_state:
            subtasks = parallelism
        if subtasks > groups:
            raise ParallelismError(
                f"operator {self._operator.label} cannot have parallelism {subtasks} and max "
                f"parallelism {groups}"
            )
        return groups, subtasks

    def _check_anew(self, max_parallelism: int, parallelism: int) -> None:
        """Raise SavepointError for keyed state that cannot move to these parallelisms."""
        old = self._metadata
        moves = old.parallelism != parallelism or (
            old.max_parallelism != max_parallelism and any(map(_keyed, old.subtasks))
        )
        if moves and any(subtask.is_finished for subtask in old.subtasks):
            raise refused(
                self._operator, "has subtasks that are finished, and others that are not"
            )
        if self._operator.tasks():
            self._check_moves(max_parallelism)

    def _write_anew(self, max_parallelism: int, parallelism: int) -> None:
        """Plan to write its keyed state in the canonical format, with these parallelisms."""
        if self._operator.tasks():
            self._is_changed = True
        self._max_parallelism, self._parallelism = max_parallelism, parallelism
        self._is_anew = True

    def _check_aligned(self) -> None:
        """Refuse in-flight data, which belongs to the old subtasks."""
        if self._operator.in_flight_data:
            raise refused(
                self._operator,
                f"has {in_flight_data(self._operator.in_flight_data)} of an unaligned "
                "checkpoint: take a savepoint instead",
            )

    @property
    def _new_metadata(self) -> OperatorMetadata:
        """The metadata of the new savepoint, without keyed state that is written anew."""
        old = self._metadata
        # Subtasks change only where they have keyed state alone, and its files are all new.
        kept = old.subtasks if self._parallelism == old.parallelism else ()
        return replace(
            old,
            max_parallelism=self._max_parallelism,
            parallelism=self._parallelism,
            subtasks=kept,
        )

    @property
    def _has_state(self) -> bool:
        """Whether it has any state, of its coordinator too."""
        return self._metadata.coordinator is not None or any(
            _keyed(subtask) or _has_operator_state(subtask) for subtask in self._metadata.subtasks
        )

    @cached_property
    def _has_kryo(self) -> bool:
        """Whether Kryo writes values of its state, as far as headers say."""
        files = self._savepoint.files
        for task in ahead(self._old.tasks(), ReadTask.header_plan):
            managed = [h for h in task.handles if not isinstance(h, RawTimersHandle)]
            for header in replace(task, handles=tuple(managed)).format.headers():
                if any(_KRYO in data for data in (header.key_bytes, *header.state_bytes)):
                    return True
        return any(
            _KRYO in _head(files, subtask.managed_operator)
            for subtask in self._metadata.subtasks
            if subtask.managed_operator is not None
        )

    def _written(self, folder: OutputFolder, names: list[str]) -> OperatorMetadata:
        """Write its operator state; return its metadata, and add its new files to `names`.

        The keyed state is written by then, if it changes.
        """
        metadata = self._new_metadata
        if self._savepoint.version < FLINK_2:  # Flink 1 writes no uid into _metadata
            metadata = replace(metadata, uid=self._operator.uid or "")
        if self._new_keyed_state is not None:
            metadata = with_keyed_state(metadata, self._new_keyed_state.written)
            names += self._new_keyed_state.file_names
        elif self._is_anew:
            metadata = with_keyed_state(metadata, {})
        self._new_operator_state = self.edited_operator_state(folder)
        metadata = self._new_operator_state.of(metadata)
        names += self._new_operator_state.file_names
        mended = mended_operator_state(self._operator, metadata, folder)
        names += mended.file_names
        return mended.metadata

    def _report(self, operator: str | None) -> EditedOperator:
        """Return its EditedOperator."""
        states: tuple[EditedState, ...] = ()
        written: tuple[WrittenState, ...] = ()
        deleted_keys = None
        if self._new_keyed_state is not None and operator is not None:
            states = self._new_keyed_state.edited_states()
            written = self._new_keyed_state.written_states()
            if self._places is not None:
                deleted_keys = DeletedKeys(*self._new_keyed_state.deleted_keys(), self._places)
        if self._new_operator_state is not None:
            states += self._new_operator_state.states
        return EditedOperator(
            operator,
            self._old_label,
            self._savepoint.path,
            self._is_added,
            states,
            deleted_keys,
            old_max_parallelism=self._metadata.max_parallelism,
            new_max_parallelism=None if operator is None else self._max_parallelism,
            parallelism=None if operator is None else self._parallelism,
            written=written,
            committables=self._committables if operator is None else (),
        )


def all_of(savepoint: Savepoint) -> list[CopiedOperator]:
    """Return the operators of a savepoint, as they are."""
    return [
        CopiedOperator(savepoint, operator, metadata, is_added=False)
        for operator, metadata in zip(savepoint.operators, savepoint.metadata.operators)
    ]


def find(kept: Sequence[CopiedOperator], name: str) -> CopiedOperator:
    """Return an operator by its uid, its name or its id in hex, as `Savepoint` does."""
    operator = find_operator([copied._operator for copied in kept], name)
    (copied,) = (copied for copied in kept if copied._operator is operator)
    if operator.operator_id == copied._old.operator_id:
        copied._old_label = operator.label  # find_operator has just set its uid
    return copied


def remove(kept: list[CopiedOperator], name: str) -> CopiedOperator:
    """Take out an operator, refuse further edits of it, and return it; what is to commit stays."""
    copied = find(kept, name)
    kept.remove(copied)
    if is_sink(copied._operator):
        copied._committables = None
        with suppress(SavepointError):
            copied._committables = copied._operator.sink_state().committables
    copied.close()
    return copied


def set_max_parallelism(
    kept: Sequence[CopiedOperator],
    max_parallelism: int,
    parallelism: int | None,
    names: Iterable[str] | None,
) -> None:
    """Give operators another max parallelism, all that can be parallel if `names` is None."""
    chosen = _chosen(kept, names)
    plans = [(copied, copied._parallelisms(max_parallelism, parallelism)) for copied in chosen]
    if all((old._max_parallelism, old._parallelism) == new for old, new in plans):
        labels = [copied._operator.label for copied in chosen]
        why = f"{show(labels)} have it already" if labels else "no operator is chosen"
        if labels and parallelism is not None:
            why += f", and parallelism {parallelism} changes none of them"
        raise InvalidValueError(
            f"new_max_parallelism {max_parallelism} changes nothing, as {why}: use "
            "convert_to_canonical to write a savepoint anew as it is"
        )
    for copied in kept:
        copied._check_aligned()
    _write_anew(plans)


def convert_to_canonical(
    kept: Sequence[CopiedOperator], parallelism: int | None, names: Iterable[str] | None
) -> None:
    """Write the keyed state of operators in the canonical format, of all if `names` is None.

    The parallelism of those that cannot be parallel stays then.
    """
    chosen = _chosen(kept, names)
    converted = kept if names is None else chosen
    plans = {copied: (copied._max_parallelism, copied._parallelism) for copied in converted}
    plans |= {copied: copied._parallelisms(None, parallelism) for copied in chosen}
    for copied in converted:
        copied._check_aligned()
    _write_anew([*plans.items()])


def _write_anew(plans: Sequence[tuple[CopiedOperator, _Parallelisms]]) -> None:
    """Write operators anew, or none of them where one cannot move."""
    for copied, new in plans:
        copied._check_anew(*new)
    for copied, new in plans:
        copied._write_anew(*new)


def _chosen(kept: Sequence[CopiedOperator], names: Iterable[str] | None) -> list[CopiedOperator]:
    """Return operators, by default all but those that cannot be parallel."""
    if names is None:
        return [copied for copied in kept if copied._max_parallelism > 1]
    named = [
        find(kept, check_str("operator", name)) for name in iterate("operators", "names", names)
    ]
    return [copied for copied in kept if copied in named]


def report(
    path: str,
    kept: Sequence[CopiedOperator],
    removed: Sequence[CopiedOperator],
    new: Iterable[EditedOperator],
) -> EditReport:
    """Return the EditReport: operators kept and added, then those removed, then those written."""
    operators = (
        *(copied._report(copied._operator.label) for copied in kept),
        *(copied._report(None) for copied in removed if not copied._is_added),
        *new,
    )
    return EditReport(path, operators, _left(kept))


def _left(kept: Sequence[CopiedOperator]) -> tuple[str, ...]:
    """Return the labels of unchanged, stateless operators beside changed ones.

    Their max parallelism is not 1, and none that a changed operator has got.
    """
    changed = {
        copied._max_parallelism
        for copied in kept
        if copied._max_parallelism != copied._metadata.max_parallelism
    }
    return tuple(
        copied._operator.label
        for copied in kept
        if changed
        and copied._max_parallelism not in {*changed, 1}
        and copied._max_parallelism == copied._metadata.max_parallelism
        and not copied._has_state
    )


def added(
    kept: Sequence[CopiedOperator], savepoint: Savepoint, name: str, version: int
) -> CopiedOperator:
    """Return an operator of another savepoint; `version` is that of the edited one."""
    operator = savepoint.operator(name)
    (metadata,) = (
        metadata
        for metadata in savepoint.metadata.operators
        if metadata.operator_id == operator.operator_id
    )
    copied = CopiedOperator(savepoint, operator, metadata, is_added=True)
    if operator.in_flight_data:
        raise SavepointError(
            f"{savepoint.path}: operator {operator.label} cannot be added to another "
            f"savepoint: it has {in_flight_data(operator.in_flight_data)} of an unaligned "
            "checkpoint: take a savepoint instead"
        )
    _check_versions([*kept, copied], version)
    return copied


def _check_versions(operators: Sequence[CopiedOperator], version: int) -> None:
    """Refuse operators of which Flink would read some otherwise than they were written.

    Kryo 2, of Flink 1, and Kryo 5, of Flink 2, write other bytes, and each reads all of a
    savepoint as its own.
    """
    newest = max([version, *(copied._savepoint.version for copied in operators)])
    for copied in operators:
        version = copied._savepoint.version
        if version < FLINK_2 <= newest and copied._has_kryo:
            why = "Kryo wrote values of its state, of which Flink 2 has other bytes"
        elif version < _CODED_CHANNELS <= newest and copied._old.in_flight_data:
            data = in_flight_data(copied._old.in_flight_data)
            why = f"it has {data} of an unaligned checkpoint"
        else:
            continue
        raise SavepointError(
            f"{copied._savepoint.path}: operator {copied._old_label} cannot be in one savepoint "
            f"with operators of a newer Flink: {why}"
        )


def edited_keyed_states(
    kept: Sequence[CopiedOperator], folder: OutputFolder
) -> list[EditedKeyedState]:
    """Check all operators, and refuse further edits of them.

    Returns the EditedKeyedState of each whose keyed state changes.
    """
    edited = []
    for copied in kept:
        check_operator_state(copied._operator)
        if copied.is_changed:
            new = copied.edited_keyed_state(folder, copied._new_metadata)
            copied._new_keyed_state = new
            copied._places = copied._unsearched(other for other in kept if other is not copied)
            edited.append(new)
    for copied in kept:
        copied.close()
    return edited


def _bytes_to_copy(kept: Sequence[CopiedOperator]) -> int:
    """Return the approximate number of bytes that `copy_files` copies."""
    return sum(
        subtask.bytes
        for copied in kept
        if copied._new_keyed_state is None
        for subtask in copied._operator.subtasks
    )


def new_metadata(savepoint: Savepoint, kept: Sequence[CopiedOperator]) -> Metadata:
    """Return the metadata of the new savepoint, but for its operators.

    Its version is the oldest that holds what all versions of the operators hold.
    """
    versions = (copied._savepoint.version for copied in kept)
    version = written_version(savepoint.version, *versions)
    metadata = replace(savepoint.metadata, version=version)
    if all(copied._is_anew for copied in kept) and metadata.kind != _CANONICAL:
        # Flink takes null for the properties of a savepoint in the canonical format.
        metadata = replace(metadata, properties=b"")
    return metadata


def copy_files(
    kept: Sequence[CopiedOperator],
    version: int,
    folder: OutputFolder,
    progress: ProgressCallback | None,
) -> tuple[list[str], list[bytes]]:
    """Copy their files.

    Returns the names of all new files, and the bytes of each operator for a `_metadata` of that
    version.
    """
    with measured(progress, f"copy to {folder.path}", lambda: _bytes_to_copy(kept)) as meter:
        return _copied(kept, version, folder, meter)


def _copied(
    kept: Sequence[CopiedOperator], version: int, folder: OutputFolder, meter: Meter | None
) -> tuple[list[str], list[bytes]]:
    """Copy the files of operators, metered, and return what `copy_files` returns."""
    copies = CopiedFiles(folder)
    names: list[str] = []
    written: list[bytes] = []
    copied_by: dict[tuple[Files, int], Replace] = {}
    times: Counter[tuple[Files, str]] = Counter()
    for copied in kept:
        files = copied._savepoint.files
        # Operators of one savepoint share a copier, as their handles may name the same file; an
        # operator copied a second time, under another uid, gets files of its own.
        key = files, times[files, copied._old.operator_id]
        times[files, copied._old.operator_id] += 1
        if key not in copied_by:
            copied_by[key] = copied_to(copies.of(files.metered(meter)))
        written.append(write_operator(copied._written(folder, names), version, copied_by[key]))
    return [*names, *copies.names], written


def _head(files: Files, handle: OperatorStateHandle) -> bytes:
    """Return the bytes before the first element of operator state: its header."""
    with files.open(handle.stream) as stream:
        offsets = [offset for _, _, offsets in handle.states for offset in offsets]
        return stream.read(0, min(offsets, default=stream.size))


def _keyed(subtask: SubtaskState) -> bool:
    return bool(subtask.keyed)


def _has_operator_state(subtask: SubtaskState) -> bool:
    handles = (subtask.managed_operator, subtask.raw_operator)
    return any(handle is not None and handle.stream.size for handle in handles)


def check_outside(name: str, savepoint: Savepoint, folder: OutputFolder) -> None:
    """Refuse to write into the savepoint that is read."""
    if folder.is_within(savepoint.path):
        raise InvalidValueError(
            f"{name} must be outside the savepoint {savepoint.path}, got {folder.path!r}"
        )
