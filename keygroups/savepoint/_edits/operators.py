"""The operators that a new savepoint takes from old ones, under their old or new names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

from keygroups._checks import check_str, iterate, show
from keygroups.errors import InvalidValueError, ParallelismError, SavepointError
from keygroups.progress import Meter
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
from keygroups.savepoint.reports import DeletedKeys, EditedOperator

_Parallelisms = tuple[int, int]
"""A max parallelism and a parallelism."""
_CODED_CHANNELS = 6  # the first version of _metadata in which handles of channels have codes
_KRYO = b"KryoSerializer"


class CopiedOperator:
    """An operator of the new savepoint; `old` is the same operator in its old savepoint.

    `operator` reads the old state and has the new names; `old_label` is its label before, with the
    uid if the caller has named that. `metadata` is the old one under the new names; `new_metadata`
    also has the new max parallelism and parallelism. With `is_anew` its keyed state is written in
    the canonical format, whatever its old format.
    """

    def __init__(
        self, savepoint: Savepoint, old: Operator, metadata: OperatorMetadata, is_added: bool
    ) -> None:
        self.savepoint = savepoint
        self.old = old
        self.old_label = old.label
        self.metadata = metadata
        self.is_added = is_added
        self.operator = self._named(old.uid)
        self.max_parallelism = metadata.max_parallelism
        self.parallelism = metadata.parallelism
        self.is_anew = False
        self.editor: OperatorEditor | None = None
        self.keyed_state: EditedKeyedState | None = None
        self.operator_state: EditedOperatorState | None = None
        self.traces: tuple[UnsearchedPlace, ...] | None = None  # places of deleted keys
        self.committables: tuple[Committable, ...] | None = ()  # a removed sink's

    def rename(self, uid: str, operator_id: str) -> None:
        """Give it another uid, and the id that Flink derives from it."""
        self.metadata = replace(self.metadata, uid=uid, operator_id=operator_id)
        self.operator = self._named(uid)

    def edit(self) -> OperatorEditor:
        """Return its OperatorEditor, the same object each time."""
        if self.editor is None:
            self.editor = OperatorEditor(self.operator)
        return self.editor

    def parallelisms(self, max_parallelism: int | None, parallelism: int | None) -> _Parallelisms:
        """Return its new max parallelism and parallelism; None leaves one as it is.

        An operator with operator state keeps its parallelism. Raises ParallelismError for a
        parallelism above the max parallelism.
        """
        groups, subtasks = max_parallelism or self.max_parallelism, self.parallelism
        # Operator state belongs to its subtask: Flink itself deals it out to others.
        has_operator_state = any(map(_has_operator_state, self.metadata.subtasks))
        if parallelism is not None and not has_operator_state:
            subtasks = parallelism
        if subtasks > groups:
            raise ParallelismError(
                f"operator {self.operator.label} cannot have parallelism {subtasks} and max "
                f"parallelism {groups}"
            )
        return groups, subtasks

    def write_anew(self, max_parallelism: int, parallelism: int) -> None:
        """Plan to write its keyed state in the canonical format, with these parallelisms.

        Raises SavepointError for state that cannot move.
        """
        old = self.metadata
        moves = old.parallelism != parallelism or (
            old.max_parallelism != max_parallelism and any(map(_keyed, old.subtasks))
        )
        if moves and any(subtask.is_finished for subtask in old.subtasks):
            raise refused(self.operator, "has subtasks that are finished, and others that are not")
        if self.operator.tasks():
            self.edit()._write_anew(max_parallelism)
        self.max_parallelism, self.parallelism, self.is_anew = max_parallelism, parallelism, True

    def check_aligned(self) -> None:
        """Refuse in-flight data, which belongs to the old subtasks."""
        if self.operator.in_flight_data:
            raise refused(
                self.operator,
                f"has {in_flight_data(self.operator.in_flight_data)} of an unaligned checkpoint: "
                "take a savepoint instead",
            )

    @property
    def new_metadata(self) -> OperatorMetadata:
        """The metadata of the new savepoint, without keyed state that is written anew."""
        old = self.metadata
        # Subtasks change only where they have keyed state alone, and its files are all new.
        kept = old.subtasks if self.parallelism == old.parallelism else ()
        return replace(
            old,
            max_parallelism=self.max_parallelism,
            parallelism=self.parallelism,
            subtasks=kept,
        )

    @property
    def has_state(self) -> bool:
        """Whether it has any state, of its coordinator too."""
        return self.metadata.coordinator is not None or any(
            _keyed(subtask) or _has_operator_state(subtask) for subtask in self.metadata.subtasks
        )

    def _named(self, uid: str | None) -> Operator:
        return Operator(self.metadata, self.savepoint.files, self.old._context, uid)

    @cached_property
    def has_kryo(self) -> bool:
        """Whether Kryo writes values of its state, as far as headers say."""
        files = self.savepoint.files
        for task in ahead(self.old.tasks(), ReadTask.header_plan):
            managed = [h for h in task.handles if not isinstance(h, RawTimersHandle)]
            for header in replace(task, handles=tuple(managed)).format.headers():
                if any(_KRYO in data for data in (header.key_bytes, *header.state_bytes)):
                    return True
        return any(
            _KRYO in _head(files, subtask.managed_operator)
            for subtask in self.metadata.subtasks
            if subtask.managed_operator is not None
        )

    def report(self, operator: str | None) -> EditedOperator:
        """Return its EditedOperator."""
        states: tuple[EditedState, ...] = ()
        written: tuple[WrittenState, ...] = ()
        deleted_keys = None
        if self.keyed_state is not None and operator is not None:
            states = self.keyed_state.edited_states()
            written = self.keyed_state.written_states()
            if self.traces is not None:
                deleted_keys = DeletedKeys(*self.keyed_state.deleted_keys(), self.traces)
        if self.operator_state is not None:
            states += self.operator_state.states
        return EditedOperator(
            operator,
            self.old_label,
            self.savepoint.path,
            self.is_added,
            states,
            deleted_keys,
            old_max_parallelism=self.metadata.max_parallelism,
            new_max_parallelism=None if operator is None else self.max_parallelism,
            parallelism=None if operator is None else self.parallelism,
            written=written,
            committables=self.committables if operator is None else (),
        )


class CopiedOperators:
    """The operators of the edited savepoint, and those added from other savepoints."""

    def __init__(self, savepoint: Savepoint) -> None:
        self.savepoint = savepoint
        self.removed: list[CopiedOperator] = []
        self.kept = [
            CopiedOperator(savepoint, operator, metadata, is_added=False)
            for operator, metadata in zip(savepoint.operators, savepoint.metadata.operators)
        ]
        self.names: list[str] = []

    @property
    def version(self) -> int:
        """The oldest version of `_metadata` that holds all that the operators' versions hold."""
        versions = (copied.savepoint.version for copied in self.kept)
        return written_version(self.savepoint.version, *versions)

    def find(self, name: str) -> CopiedOperator:
        """Return an operator by its uid, its name or its id in hex, as `Savepoint` does."""
        operator = find_operator([copied.operator for copied in self.kept], name)
        (copied,) = (copied for copied in self.kept if copied.operator is operator)
        if operator.operator_id == copied.old.operator_id:
            copied.old_label = operator.label  # find_operator has just set its uid
        return copied

    def remove(self, name: str) -> None:
        """Leave out an operator."""
        copied = self.find(name)
        self.kept.remove(copied)
        self.removed.append(copied)
        if is_sink(copied.operator):
            copied.committables = None
            with suppress(SavepointError):
                copied.committables = copied.operator.sink_state().committables
        if copied.editor is not None:
            copied.editor.close()

    def set_max_parallelism(
        self, max_parallelism: int, parallelism: int | None, names: Iterable[str] | None
    ) -> None:
        """Give operators another max parallelism, all that can be parallel if None."""
        chosen = self._chosen(names)
        plans = [(copied, copied.parallelisms(max_parallelism, parallelism)) for copied in chosen]
        if all((old.max_parallelism, old.parallelism) == new for old, new in plans):
            labels = [copied.operator.label for copied in chosen]
            why = f"{show(labels)} have it already" if labels else "no operator is chosen"
            if labels and parallelism is not None:
                why += f", and parallelism {parallelism} changes none of them"
            raise InvalidValueError(
                f"new_max_parallelism {max_parallelism} changes nothing, as {why}: use "
                "convert_to_canonical to write a savepoint anew as it is"
            )
        for copied in self.kept:
            copied.check_aligned()
        for copied, new in plans:
            copied.write_anew(*new)

    def convert_to_canonical(self, parallelism: int | None, names: Iterable[str] | None) -> None:
        """Write the keyed state of operators in the canonical format, of all if None.

        The parallelism of those that cannot be parallel stays then.
        """
        chosen = self._chosen(names)
        converted = self.kept if names is None else chosen
        plans = {id(copied): copied.parallelisms(None, parallelism) for copied in chosen}
        for copied in converted:
            copied.check_aligned()
            old = copied.max_parallelism, copied.parallelism
            copied.write_anew(*plans.get(id(copied), old))

    def _chosen(self, names: Iterable[str] | None) -> list[CopiedOperator]:
        """Return operators, by default all but those that cannot be parallel."""
        if names is None:
            return [copied for copied in self.kept if copied.max_parallelism > 1]
        named = [
            self.find(check_str("operator", name)) for name in iterate("operators", "names", names)
        ]
        return [copied for copied in self.kept if copied in named]

    @property
    def is_canonical(self) -> bool:
        """Whether the keyed state of all is written in the canonical format."""
        return all(copied.is_anew for copied in self.kept)

    def left(self) -> tuple[str, ...]:
        """Return the labels of unchanged, stateless operators beside changed ones.

        Their max parallelism is not 1, and none that a changed operator has got.
        """
        changed = {
            copied.max_parallelism
            for copied in self.kept
            if copied.max_parallelism != copied.metadata.max_parallelism
        }
        return tuple(
            copied.operator.label
            for copied in self.kept
            if changed
            and copied.max_parallelism not in {*changed, 1}
            and copied.max_parallelism == copied.metadata.max_parallelism
            and not copied.has_state
        )

    def close(self) -> None:
        """Refuse further edits of all operators."""
        for copied in self.kept:
            if copied.editor is not None:
                copied.editor.close()

    def report(self) -> tuple[EditedOperator, ...]:
        """Return the EditedOperator of each: those kept and added, then those removed."""
        return (
            *(copied.report(copied.operator.label) for copied in self.kept),
            *(copied.report(None) for copied in self.removed if not copied.is_added),
        )

    def added(self, savepoint: Savepoint, name: str) -> CopiedOperator:
        """Return an operator of another savepoint."""
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
        self._check_versions([*self.kept, copied])
        return copied

    def _check_versions(self, operators: Sequence[CopiedOperator]) -> None:
        """Refuse operators of which Flink would read some otherwise than they were written.

        Kryo 2, of Flink 1, and Kryo 5, of Flink 2, write other bytes, and each reads all of a
        savepoint as its own.
        """
        newest = max([self.savepoint.version, *(other.savepoint.version for other in operators)])
        for copied in operators:
            version = copied.savepoint.version
            if version < FLINK_2 <= newest and copied.has_kryo:
                why = "Kryo wrote values of its state, of which Flink 2 has other bytes"
            elif version < _CODED_CHANNELS <= newest and copied.old.in_flight_data:
                data = in_flight_data(copied.old.in_flight_data)
                why = f"it has {data} of an unaligned checkpoint"
            else:
                continue
            raise SavepointError(
                f"{copied.savepoint.path}: operator {copied.old_label} cannot be in one savepoint "
                f"with operators of a newer Flink: {why}"
            )

    def edited_keyed_states(self, folder: OutputFolder) -> list[EditedKeyedState]:
        """Check all operators; return the EditedKeyedState of each whose keyed state changes."""
        for copied in self.kept:
            check_operator_state(copied.operator)
            if copied.editor is not None and copied.editor.is_changed:
                new = copied.new_metadata
                copied.keyed_state = copied.editor.edited_keyed_state(folder, new)
                copied.traces = copied.editor._unsearched(
                    (other.operator, other.editor) for other in self.kept if other is not copied
                )
        return [copied.keyed_state for copied in self.kept if copied.keyed_state is not None]

    @property
    def copied_bytes(self) -> int:
        """The approximate number of bytes that `written` copies."""
        return sum(
            subtask.bytes
            for copied in self.kept
            if copied.keyed_state is None
            for subtask in copied.operator.subtasks
        )

    def written(self, folder: OutputFolder, meter: Meter | None) -> Iterator[bytes]:
        """Copy their files, metered, and yield the bytes of each operator for `_metadata`."""
        copies, version = CopiedFiles(folder), self.version
        copied_by: dict[tuple[Files, int], Replace] = {}
        times: Counter[tuple[Files, str]] = Counter()
        for copied in self.kept:
            files = copied.savepoint.files
            # Operators of one savepoint share a copier, as their handles may name the same file;
            # an operator copied a second time, under another uid, gets files of its own.
            key = files, times[files, copied.old.operator_id]
            times[files, copied.old.operator_id] += 1
            if key not in copied_by:
                copied_by[key] = copied_to(copies.of(files.metered(meter)))
            metadata = copied.new_metadata
            if copied.savepoint.version < FLINK_2:  # Flink 1 writes no uid into _metadata
                metadata = replace(metadata, uid=copied.operator.uid or "")
            if copied.keyed_state is not None:
                metadata = with_keyed_state(metadata, copied.keyed_state.written)
                self.names += copied.keyed_state.file_names
            elif copied.is_anew:
                metadata = with_keyed_state(metadata, {})
            if copied.editor is not None:
                copied.operator_state = copied.editor.edited_operator_state(folder)
                metadata = copied.operator_state.of(metadata)
                self.names += copied.operator_state.file_names
            mended = mended_operator_state(copied.operator, metadata, folder)
            self.names += mended.file_names
            metadata = mended.metadata
            yield write_operator(metadata, version, copied_by[key])
        self.names += copies.names


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
