"""What an edit of a savepoint has done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from keygroups.errors import printable
from keygroups.savepoint._edits.rewriter import EditedState


@dataclass(frozen=True)
class EditedOperator:
    """What became of an operator.

    `operator` is its uid, name or id in the new savepoint, None if it was removed, and
    `old_operator` that in the savepoint whose path is `path`; both are None for one that is new.
    `is_added` says whether that is another savepoint than the edited one. `states` are those of
    an operator whose keyed state was written anew: of all others it was copied as it is.
    """

    operator: str | None
    old_operator: str | None = None
    path: str | None = None
    is_added: bool = False
    states: tuple[EditedState, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        old = printable(str(self.old_operator))
        if self.operator is None:
            yield f"{old}: removed"
            return
        what = "its keyed state changed" if self.states else "copied as it is"
        if self.old_operator is None:
            what = "new"
        elif self.is_added:
            what += f", from {printable(str(self.path))}"
        if self.old_operator not in (None, self.operator):
            what += f", renamed from {old}"
        yield f"{printable(self.operator)}: {what}"
        for state in self.states:
            yield f"  {_state_line(state)}"


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
    """What was done to each operator; `str()` has a line for each, and one for each state."""

    path: str
    operators: tuple[EditedOperator, ...]

    def __str__(self) -> str:
        return "\n".join([f"savepoint: {printable(self.path)}", *map(str, self.operators)])
