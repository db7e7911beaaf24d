"""The reports of edits: operators, their states, and the numbers of entries changed and written.

`SavepointEditor.report`, `change_max_parallelism` and `convert_to_canonical` return an
`EditReport`. It has an `EditedOperator` for each operator, and that an `EditedState` for each
state with the numbers of its entries. Where all entries were written to another max parallelism,
parallelism or format, it also has a `WrittenState` for each state and subtask. `DeletedKeys`
counts the deleted keys, and has an `UnsearchedPlace` for each place that may still hold them.
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
from keygroups.savepoint._reports.connectors import removed_section
from keygroups.savepoint._sinks.committables import Committable

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
    """The keys that `delete_keys` deleted from the keyed state of an operator.

    `with_entries` is the number of them that had entries, `without_entries` are those that had
    none. `may_be_in` are the places that may still hold them by their types, and that nobody has
    searched.
    """

    with_entries: int
    without_entries: tuple[Any, ...]
    may_be_in: tuple[UnsearchedPlace, ...]

    def __repr__(self) -> str:
        return record_repr(self)


@dataclass(frozen=True)
class EditedOperator:
    """The edits of one operator, or that it was copied, added, renamed or removed.

    `operator` is its uid, name or id in the new savepoint, None if it was removed, and
    `old_operator` that in the savepoint whose path is `path`; both are None for one that is new.
    `is_added` says whether that is another savepoint than the edited one. `states` are those of
    an operator whose keyed state was written anew: of all others it was copied as it is.
    `deleted_keys` is None without `delete_keys`. `old_max_parallelism` is None for a new operator;
    `new_max_parallelism` and `parallelism`, those in the new savepoint, are None for a removed
    one. `written` has the numbers of each state and subtask if all entries were written to another
    max parallelism, parallelism or format. `committables` are what a removed sink had to commit,
    which nobody does now: transactions stay open until they time out; None where they cannot be
    read.
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
    committables: tuple[Committable, ...] | None = ()

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
        if self.committables != ():
            section = removed_section(self.committables)
            yield from (f"  {text}" for text in section.texts)
            yield from (f"    {row[0]}" for row in section.rows)

    def _sections(self) -> Iterator[Section]:
        """Yield the tables of the states that were written anew, and of the deleted keys."""
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
            caption = "Where keys may also be" if places else ""
            yield Section(texts, names, places, (1,), caption)
        if self.committables != ():
            yield removed_section(self.committables)

    def _edited(self) -> list[EditedState]:
        """Return the states to list: without those that `written` lists and no verb changed."""
        return [state for state in self.states if not self.written or _is_changed(state)]

    def _sizes(self) -> Iterator[tuple[str, int, int, int]]:
        """Yield each written state's name, and its numbers of entries, bytes and subtasks."""
        for name, group in groupby(self.written, lambda state: state.state):
            states = [*group]
            entries, size = (sum(counts) for counts in zip(*(state[2:] for state in states)))
            yield name, entries, size, len(states)

    def _name(self) -> str:
        return printable(str(self.old_operator if self.operator is None else self.operator))

    def _change(self) -> str:
        """Return the change in words, such as "written anew, max parallelism 128 -> 4096"."""
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
    """Tell whether a verb renamed or removed a state, or changed an entry of it."""
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
    """The edits of all operators; `str()` has a line for each operator, and one for each state.

    `left` are the operators without state whose max parallelism stayed while others got a new one:
    if the job chains such an operator to one of these, Flink refuses the restore. `str()` ends
    with the max parallelism that the job has to set, where entries were written anew.

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
