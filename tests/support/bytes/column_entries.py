"""Entries that were read column by column, as the reader of single entries gives them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from keygroups.savepoint import Operator, StateEntry, TimeWindow


def _values(column: Any) -> list[Any]:
    if isinstance(column, (list, tuple)):
        return list(column)
    values: list[Any] = column.to_pylist()
    if str(column.type).startswith("struct<start: int64, end: int64"):
        return [None if value is None else TimeWindow(*value.values()) for value in values]
    return values


def column_entries(
    operator: Operator,
    states: Iterable[str] | None = None,
    key_groups: Iterable[int] | None = None,
) -> Iterator[StateEntry]:
    for task in operator.tasks(states, key_groups):
        for entries in task.columns():
            columns = [
                _values(entries.columns[name])
                if name in entries.columns
                else [None] * entries.count
                for name in StateEntry._fields
            ]
            for fields in zip(*columns):
                entry = StateEntry(*fields)
                yield entry._replace(
                    state=entries.state.name, kind=entries.state.kind, subtask=task.subtask
                )


def by_state(entries: Iterable[StateEntry]) -> dict[tuple[str, int], list[str]]:
    """Return the entries of each state that a subtask wrote, in their order, as text.

    Text tells 0.0 from -0.0 and 1 from True, and NaN is NaN.
    """
    states: dict[tuple[str, int], list[str]] = {}
    for entry in entries:
        states.setdefault((entry.state, entry.subtask), []).append(repr(entry))
    return states
