"""A savepoint that is written anew: what is refused, what is copied, what moves."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from keygroups._checks import check_bounds, check_str, iterate, show
from keygroups._show.tables import Section, html_sections
from keygroups.errors import InvalidValueError, ParallelismError, printable, short
from keygroups.progress import Meter, measured
from keygroups.rescale import restore_advice
from keygroups.savepoint._files.copied_files import CopiedFiles
from keygroups.savepoint._files.output_folder import FolderWriter, OutputFolder
from keygroups.savepoint._metadata.handles import (
    OperatorMetadata,
    SubtaskState,
    in_flight_data,
)
from keygroups.savepoint._metadata.writer import (
    copied_to,
    write_metadata,
    write_operator,
    written_version,
)
from keygroups.savepoint._operator import Operator
from keygroups.savepoint._rewriting.operator_rewriter import OperatorRewriter, refused
from keygroups.savepoint._rewriting.operator_state import (
    check_operator_state,
    mended_operator_state,
)
from keygroups.savepoint._savepoint import Savepoint
from keygroups.savepoint._tasks.write import WrittenFile


class RewrittenState(NamedTuple):
    """How many entries of a state, in how many bytes, a subtask of the new savepoint has."""

    state: str
    subtask: int
    entries: int
    bytes: int


@dataclass(frozen=True)
class RewrittenOperator:
    """An operator with its old and new max parallelism; `states` are empty without keyed state."""

    operator: str
    old_max_parallelism: int
    new_max_parallelism: int
    parallelism: int
    states: tuple[RewrittenState, ...]


@dataclass(frozen=True)
class RewriteReport:
    """What was written; `str()` says how much of each state, and what the job has to set.

    `left` are operators without state that were not chosen and have another max parallelism than
    those that were: where a job chains one to these, Flink refuses the restore.

    Flink: Checkpoints.loadAndValidateCheckpoint.
    """

    path: str
    operators: tuple[RewrittenOperator, ...]
    left: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        return f"<RewriteReport: {len(self.operators)} operators, {printable(self.path)}>"

    def _repr_html_(self) -> str:
        rows = [
            (operator, changed, state, f"{entries:,}", f"{size:,}", str(subtasks))
            for operator, changed, states in self._written()
            for state, entries, size, subtasks in states or [("", 0, 0, 0)]
        ]
        header = ("operator", "max parallelism", "state", "entries", "bytes", "subtasks")
        caption = "What was written of each state"
        sections = [
            Section([f"canonical savepoint: {self.path}"], header, rows, (1, 2), caption),
            Section(self._advice()),
        ]
        return html_sections(sections)

    def _lines(self) -> Iterator[str]:
        yield f"canonical savepoint: {printable(self.path)}"
        for operator, changed, states in self._written():
            yield f"{printable(operator)}: max parallelism {changed}"
            for state, entries, size, subtasks in states:
                yield (
                    f"  {printable(state)}: {entries:,} entries, {size:,} bytes, in "
                    f"{subtasks} subtasks"
                )
        yield from self._advice()

    def _written(self) -> Iterator[tuple[str, str, list[tuple[str, int, int, int]]]]:
        """Yield each operator, its max parallelism, and its states with what they have in all."""
        for operator in self.operators:
            old, new = operator.old_max_parallelism, operator.new_max_parallelism
            by_state: dict[str, list[RewrittenState]] = {}
            for written in operator.states:
                by_state.setdefault(written.state, []).append(written)
            states = [
                (
                    name,
                    sum(written.entries for written in of_subtasks),
                    sum(written.bytes for written in of_subtasks),
                    len(of_subtasks),
                )
                for name, of_subtasks in by_state.items()
            ]
            changed = f"{old} -> {new}" if old != new else f"{old}, as it was"
            yield operator.operator, changed, states

    def _advice(self) -> list[str]:
        keyed = {
            operator.operator: operator.new_max_parallelism
            for operator in self.operators
            if operator.states
        }
        advice = [restore_advice(keyed)] if keyed else []
        if self.left:
            shown = ", ".join(short(label, _LABEL) for label in self.left[:_NAMED])
            more = f" and {len(self.left) - _NAMED:,} more" if len(self.left) > _NAMED else ""
            advice.append(
                f"operators without state keep their max parallelism: {shown}{more}; where the "
                "job has another for one, as in a chain with an operator that was changed, Flink "
                "refuses the restore: name it in operators too"
            )
        return advice


_LABEL, _NAMED = 100, 10  # characters of an operator's name, and operators, in a line
_CANONICAL = "canonical savepoint"


class _Plan(NamedTuple):
    """An operator, what `_metadata` will say of it, and what writes its keyed state."""

    operator: Operator
    new: OperatorMetadata
    keyed: OperatorRewriter | None


class SavepointRewriter(FolderWriter):
    """Writes a savepoint anew in a `with` block, in which the keyed state is to be written.

    The arguments and what is raised are those of `change_max_parallelism`; a
    `new_max_parallelism` of None keeps every operator's. `operators` are those with keyed state:
    the entries of their `read_tasks`, in the order of the new key groups, are to be written by
    their tasks, and what these return is to be added.
    """

    def __init__(
        self,
        savepoint: Savepoint,
        output: str | os.PathLike[str],
        new_max_parallelism: int | None = None,
        parallelism: int | None = None,
        operators: Iterable[str] | None = None,
    ) -> None:
        bound: tuple[int, str] | tuple[()] = ()
        if new_max_parallelism is not None:
            new_max_parallelism = check_bounds("new_max_parallelism", new_max_parallelism)
            bound = (new_max_parallelism, "new_max_parallelism")
        if parallelism is not None:
            parallelism = check_bounds("parallelism", parallelism, *bound)
        super().__init__("output", output)
        check_outside("output", savepoint, self._folder)
        metadata = savepoint.metadata
        chosen = _chosen(savepoint, operators)
        self._savepoint = savepoint
        news = [
            _planned(operator, old, new_max_parallelism, parallelism)
            if operator.operator_id in chosen
            else old
            for operator, old in zip(savepoint.operators, metadata.operators)
        ]
        if new_max_parallelism is not None:
            _check_change(savepoint, news, chosen, new_max_parallelism, parallelism)
        self._plans: list[_Plan] = []
        for operator, old, new in zip(savepoint.operators, metadata.operators, news):
            _check_movable(operator, old, new)
            check_operator_state(operator)
            keyed = None
            if _has_keyed_state(old):
                keyed = OperatorRewriter(self._folder, operator, new)
            self._plans.append(_Plan(operator, new, keyed))
        self.operators = [plan.keyed for plan in self._plans if plan.keyed is not None]
        self._meter: Meter | None = None

    def write(self) -> None:
        """Write all of it, on this machine, and tell the savepoint's `progress` of it."""
        work = f"write {self._folder.path}"
        with measured(self._savepoint._progress, work, self._work) as self._meter, self:
            for operator in self.operators:
                operator.write(self._folder.scratch, self._meter)

    def _work(self) -> int:
        """Return about how many bytes are read or sorted."""
        copied = [plan.operator for plan in self._plans if plan.keyed is None]
        return sum(keyed.work for keyed in self.operators) + sum(
            subtask.bytes for operator in copied for subtask in operator.subtasks
        )

    def report(self) -> RewriteReport:
        """Return how much of each state was written."""
        return RewriteReport(self._folder.path, tuple(map(_reported, self._plans)), self._left())

    def _left(self) -> tuple[str, ...]:
        """Return the operators without state whose max parallelism no other chosen one has."""
        changed = {
            plan.new.max_parallelism
            for plan in self._plans
            if plan.new.max_parallelism != plan.operator.max_parallelism
        }
        return tuple(
            plan.operator.label
            for plan in self._plans
            if changed
            and plan.operator.max_parallelism not in {*changed, 1}
            and plan.new.max_parallelism == plan.operator.max_parallelism
            and not any(map(_has_state, plan.new.subtasks))
            and plan.new.coordinator is None
        )

    def _finish(self) -> tuple[Collection[str], bytes]:
        metadata = self._savepoint.metadata
        version = written_version(metadata.version)
        copies = CopiedFiles(self._folder)
        copied = copied_to(copies.of(self._savepoint.files.metered(self._meter)))
        names = [name for operator in self.operators for name in operator.file_names]
        written = []
        for operator, new, keyed in self._plans:
            rewritten = with_keyed_state(new, {} if keyed is None else keyed.written)
            mended = mended_operator_state(operator, rewritten, self._folder)
            names += mended.file_names
            written.append(write_operator(mended.metadata, version, copied))
        # Flink takes null for the properties of a savepoint in the canonical format.
        properties = metadata.properties if metadata.kind == _CANONICAL else b""
        metadata = replace(metadata, version=version, properties=properties)
        return [*names, *copies.names], write_metadata(metadata, written)

    def _abandon(self) -> None:
        """Nothing is open: tasks close their files."""


def with_keyed_state(
    operator: OperatorMetadata, written: Mapping[int, WrittenFile]
) -> OperatorMetadata:
    """Return an operator with the keyed state that was written, by subtask, and no other."""
    old = {subtask.index: subtask for subtask in operator.subtasks}
    subtasks = []
    for index in sorted({*old, *written}):
        subtask = old.get(index, SubtaskState(index))
        as_read = {name: data for name, data in subtask.as_read.items() if "keyed" not in name}
        handle = written[index].handle if index in written else None
        subtasks.append(replace(subtask, managed_keyed=handle, raw_keyed=None, as_read=as_read))
    return replace(operator, subtasks=tuple(subtasks))


def _reported(plan: _Plan) -> RewrittenOperator:
    operator, new, keyed = plan
    states = [
        RewrittenState(state.name, subtask, file.entries[number], file.bytes[number])
        for number, state in enumerate(keyed.states if keyed else ())
        for subtask, file in sorted(keyed.written.items() if keyed else ())
        if number in file.entries
    ]
    return RewrittenOperator(
        operator.label,
        operator.max_parallelism,
        new.max_parallelism,
        new.parallelism,
        tuple(states),
    )


def check_outside(name: str, savepoint: Savepoint, folder: OutputFolder) -> None:
    """Refuse to write into the savepoint that is read."""
    if folder.is_within(savepoint.path):
        raise InvalidValueError(
            f"{name} must be outside the savepoint {savepoint.path}, got {folder.path!r}"
        )


def _chosen(savepoint: Savepoint, operators: Iterable[str] | None) -> set[str]:
    """Return the ids of operators; by default all but those that cannot be parallel."""
    if operators is None:
        return {
            operator.operator_id
            for operator in savepoint.operators
            if operator.max_parallelism > 1
        }
    names = iterate("operators", "names", operators)
    return {savepoint.operator(check_str("operator", name)).operator_id for name in names}


def _planned(
    operator: Operator,
    old: OperatorMetadata,
    new_max_parallelism: int | None,
    parallelism: int | None,
) -> OperatorMetadata:
    """Return an operator with its new max parallelism and parallelism."""
    groups, subtasks = new_max_parallelism or old.max_parallelism, old.parallelism
    # Operator state belongs to its subtask: Flink itself deals it out to others.
    if parallelism is not None and not any(map(_has_operator_state, old.subtasks)):
        subtasks = parallelism
    if subtasks > groups:
        raise ParallelismError(
            f"operator {operator.label} cannot have parallelism {subtasks} and max parallelism "
            f"{groups}"
        )
    # Where they change, the old ones have keyed state alone, of which the files come anew.
    kept = old.subtasks if subtasks == old.parallelism else ()
    return replace(old, max_parallelism=groups, parallelism=subtasks, subtasks=kept)


def _check_change(
    savepoint: Savepoint,
    news: Iterable[OperatorMetadata],
    chosen: set[str],
    new_max_parallelism: int,
    parallelism: int | None,
) -> None:
    """Refuse to write a savepoint with a new max parallelism that is the one it has."""
    if any(
        (old.max_parallelism, old.parallelism) != (new.max_parallelism, new.parallelism)
        for old, new in zip(savepoint.operators, news)
    ):
        return
    labels = [operator.label for operator in savepoint.operators if operator.operator_id in chosen]
    why = f"{show(labels)} have it already" if labels else "no operator is chosen"
    if labels and parallelism is not None:
        why += f", and parallelism {parallelism} changes none of them"
    raise InvalidValueError(
        f"new_max_parallelism {new_max_parallelism} changes nothing, as {why}: use "
        "convert_to_canonical to write a savepoint anew as it is"
    )


def _check_movable(operator: Operator, old: OperatorMetadata, new: OperatorMetadata) -> None:
    if operator.in_flight_data:
        raise refused(
            operator,
            f"has {in_flight_data(operator.in_flight_data)} of an unaligned checkpoint: take a "
            "savepoint instead",
        )
    moves = old.parallelism != new.parallelism or (
        old.max_parallelism != new.max_parallelism and _has_keyed_state(old)
    )
    if moves and any(subtask.is_finished for subtask in old.subtasks):
        raise refused(operator, "has subtasks that are finished, and others that are not")


def _has_keyed_state(operator: OperatorMetadata) -> bool:
    return any(subtask.keyed for subtask in operator.subtasks)


def _has_state(subtask: SubtaskState) -> bool:
    return bool(subtask.keyed) or _has_operator_state(subtask)


def _has_operator_state(subtask: SubtaskState) -> bool:
    handles = (subtask.managed_operator, subtask.raw_operator)
    return any(handle is not None and handle.stream.size for handle in handles)
