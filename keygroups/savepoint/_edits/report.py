"""What an edit of a savepoint has done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from keygroups.errors import printable


class EditedState(NamedTuple):
    """How many entries of a state are as they were, are new or others, and are gone."""

    state: str
    kept: int
    changed: int
    deleted: int


@dataclass(frozen=True)
class EditedOperator:
    """What became of an operator.

    `change` is "kept", "changed", "removed" or "added". `operator` is its name in the new
    savepoint, `old_operator` the one in that which it was in, None if it was in none; `path` is
    of that savepoint. `states` are those of which entries were read.
    """

    operator: str
    change: str
    old_operator: str | None
    path: str | None
    states: tuple[EditedState, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        line = f"{printable(self.operator)}: {self.change}"
        if self.change == "added" and self.path is not None:
            line += f" from {printable(self.path)}"
        if self.old_operator not in (None, self.operator):
            line += f", was {printable(str(self.old_operator))}"
        yield line
        for state in self.states:
            yield (
                f"  {printable(state.state)}: {state.kept:,} kept, {state.changed:,} changed, "
                f"{state.deleted:,} deleted"
            )


@dataclass(frozen=True)
class EditReport:
    """What was done to each operator; `str()` has a line for each, and one for each state."""

    path: str
    operators: tuple[EditedOperator, ...]

    def __str__(self) -> str:
        return "\n".join([f"savepoint: {printable(self.path)}", *map(str, self.operators)])
