"""What was done to a savepoint, whole or in parts.

`SavepointEditor.report`, `change_max_parallelism` and `convert_to_canonical` return an
`EditReport`. It has its operators, and these their states: how many entries were changed, and
where all got a new place, how many each subtask has.
`DeletedKeys` says how much was deleted, and each `UnsearchedPlace` where such keys may be too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from keygroups._checks import record_repr
from keygroups._old_names import old_names
from keygroups._show.tables import Section, html_sections
from keygroups.errors import printable, short
from keygroups.rescale import restore_advice
from keygroups.savepoint._edits.keyed_state import EditedState, WrittenState
from keygroups.savepoint._edits.traces import UnsearchedPlace

__all__ = [
    "DeletedKeys",
    "EditReport",
    "EditedOperator",
    "EditedState",
    "UnsearchedPlace",
    "WrittenState",
]
__dir__ = __all__.copy


@dataclass(frozen=True)
class DeletedKeys:
    """What became of keys that were to be deleted from the keyed state of an operator.

    `with_entries` is how many had any, `without_entries` are those that had none. `may_be_in` says
    where else they may be, as far as the types of the savepoint tell: nobody has searched there.
    """

    with_entries: int
    without_entries: tuple[Any, ...]
    may_be_in: tuple[UnsearchedPlace, ...]

    def __repr__(self) -> str:
        return record_repr(self)


@dataclass(frozen=True)
class EditedOperator:
    """What became of an operator.

    `operator` is its uid, name or id in the new savepoint, None if it was removed, and
    `old_operator` that in the savepoint whose path is `path`; both are None for one that is new.
    `is_added` says whether that is another savepoint than the edited one. `states` are those of
    an operator whose keyed state was written anew: of all others it was copied as it is.
    `deleted_keys` is None where no keys were to be deleted. The two max parallelisms are that in
    the old savepoint, None of a new operator, and that in the new one; it and `parallelism` are
    None where it was removed. `written` says what each subtask has of each state, where all
    entries got a new place: for another max parallelism, parallelism or format.
    """

    operator: str | None
    old_operator: str | None = None
    path: str | None = None
    is_added: bool = False
    states: tuple[EditedState, ...] = ()
    deleted_keys: DeletedKeys | None = None
    old_max_parallelism: int | None = None
    new_max_parallelism: int | None = None
    parallelism: int | None = None
    written: tuple[WrittenState, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self._name()}: {self._change()}"
        for state in self._edited():
            yield f"  {_state_line(state)}"
        for name, entries, size, subtasks in self._sizes():
            yield (
                f"  {printable(name)}: {entries:,} entries, {size:,} bytes, in {subtasks} subtasks"
            )
        if self.deleted_keys is not None:
            yield from (f"  {line}" for line in self._deleted_lines(self.deleted_keys))
            for operator, place in self.deleted_keys.may_be_in:
                yield f"    {printable(operator)}: {printable(place)}"

    def _sections(self) -> Iterator[Section]:
        """Say the states that were written anew, and the keys that were deleted."""
        if states := self._edited():
            rows = [
                (
                    state.state,
                    _new_name(state),
                    *("" if count is None else f"{count:,}" for count in state[2:]),
                )
                for state in states
            ]
            header: tuple[str, ...] = ("state", "becomes", "kept", "changed", "deleted", "added")
            yield Section([], header, rows, (1,), f"Entries of the states of {self._name()}")
        if self.written:
            rows = [
                (state, f"{entries:,}", f"{size:,}", str(subtasks))
                for state, entries, size, subtasks in self._sizes()
            ]
            header = ("state", "entries", "bytes", "subtasks")
            yield Section([], header, rows, (0,), f"What was written of {self._name()}")
        if self.deleted_keys is not None:
            places = self.deleted_keys.may_be_in
            texts = [*self._deleted_lines(self.deleted_keys)]
            names = UnsearchedPlace._fields if places else ()
            yield Section(texts, names, places, (1,), "Where keys may also be")

    def _edited(self) -> list[EditedState]:
        """Return the states to tell of: of those that `written` is of too, what was changed."""
        return [state for state in self.states if not self.written or _is_changed(state)]

    def _sizes(self) -> Iterator[tuple[str, int, int, int]]:
        """Yield the states that were written, with their entries, bytes and subtasks in all."""
        for name, of_state in groupby(self.written, lambda state: state.state):
            states = [*of_state]
            entries, size = (sum(counts) for counts in zip(*(state[2:] for state in states)))
            yield name, entries, size, len(states)

    def _name(self) -> str:
        return printable(str(self.old_operator if self.operator is None else self.operator))

    def _change(self) -> str:
        """Say what became of it."""
        if self.operator is None:
            return "removed"
        change = "copied as it is"
        if self.states:
            change = "its state changed" if self._edited() else "written anew"
        if self.old_operator is None:
            change = "new"
        elif self.is_added:
            change += f", from {printable(str(self.path))}"
        if self._is_rescaled:
            change += f", max parallelism {self.old_max_parallelism} -> {self.new_max_parallelism}"
        if self.old_operator not in (None, self.operator):
            change += f", renamed from {printable(str(self.old_operator))}"
        return change

    @property
    def _is_rescaled(self) -> bool:
        both = self.old_max_parallelism, self.new_max_parallelism
        return None not in both and both[0] != both[1]

    def _deleted_lines(self, keys: DeletedKeys) -> Iterator[str]:
        without = len(keys.without_entries)
        yield f"keys deleted: {keys.with_entries:,}, and {without:,} that had no entries"
        yield (
            "keys may also be where nobody has searched: in the old savepoint "
            f"{printable(str(self.path))}, in checkpoints that share its files"
            + (", and here:" if keys.may_be_in else "")
        )


def _is_changed(state: EditedState) -> bool:
    """Tell whether something was done to a state, or to an entry of it."""
    return state.new_name != state.state or any((state.changed, state.deleted, state.added))


def _new_name(state: EditedState) -> str:
    if state.new_name is None:
        return "removed"
    return "" if state.new_name == state.state else state.new_name


def _state_line(state: EditedState) -> str:
    if state.new_name is None:
        return f"{printable(state.state)}: removed"
    line = (
        f"{printable(state.new_name)}: {state.kept:,} entries kept, {state.changed:,} changed, "
        f"{state.deleted:,} deleted, {state.added:,} added"
    )
    if state.new_name != state.state:
        line += f", renamed from {printable(state.state)}"
    return line


@dataclass(frozen=True)
class EditReport:
    """What was done to each operator; `str()` has a line for each, and one for each state.

    `left` are operators without state that have kept another max parallelism than those that got
    a new one: where a job chains one to these, Flink refuses the restore. `str()` says what the
    job has to set where entries got new places.

    Flink: Checkpoints.loadAndValidateCheckpoint.
    """

    path: str
    operators: tuple[EditedOperator, ...]
    left: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"savepoint: {printable(self.path)}", *map(str, self.operators)]
        return "\n".join([*lines, *self._advice()])

    def __repr__(self) -> str:
        return f"<EditReport: {len(self.operators)} operators, {printable(self.path)}>"

    def _repr_html_(self) -> str:
        rows = [(operator._name(), operator._change()) for operator in self.operators]
        header, texts = ("operator", "change"), [f"savepoint: {self.path}"]
        operators = Section(texts, header, rows, (1,), "The operators")
        more = (section for operator in self.operators for section in operator._sections())
        return html_sections([operators, *more, Section(self._advice())])

    def _advice(self) -> list[str]:
        keyed = {
            operator._name(): operator.new_max_parallelism
            for operator in self.operators
            if operator.written and operator.new_max_parallelism is not None
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


OLD_NAMES = {
    "RewriteReport": EditReport,
    "RewrittenOperator": EditedOperator,
    "RewrittenState": WrittenState,
}

if TYPE_CHECKING:
    RewriteReport: TypeAlias = EditReport
    RewrittenOperator: TypeAlias = EditedOperator
    RewrittenState: TypeAlias = WrittenState
else:
    __getattr__ = old_names(__name__, OLD_NAMES)
