"""What writing a savepoint anew has moved where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from keygroups._printable import printable
from keygroups._restore_advice import restore_advice


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
    """What was written; `str()` says how much of each state, and what the job has to set."""

    path: str
    operators: tuple[RewrittenOperator, ...]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"canonical savepoint: {printable(self.path)}"
        for operator in self.operators:
            old, new = operator.old_max_parallelism, operator.new_max_parallelism
            change = f"{old} -> {new}" if old != new else f"{old}, as it was"
            yield f"{printable(operator.operator)}: max parallelism {change}"
            by_state: dict[str, list[RewrittenState]] = {}
            for one in operator.states:
                by_state.setdefault(one.state, []).append(one)
            for name, parts in by_state.items():
                entries = sum(one.entries for one in parts)
                size = sum(one.bytes for one in parts)
                yield (
                    f"  {printable(name)}: {entries:,} entries, {size:,} bytes, in {len(parts)} "
                    "subtasks"
                )
        keyed = {one.operator: one.new_max_parallelism for one in self.operators if one.states}
        if keyed:
            yield restore_advice(keyed)
