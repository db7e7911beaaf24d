"""Savepoints to read by columns, and what was read as the reader of single entries has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from keygroups.savepoint import Operator, StateEntry, read_savepoint
from support.bytes import savepoint_bytes as sb
from support.inside.columns import TYPED, typed_columns
from support.inside.serializers import write_string


def _values(entries: Any, name: str) -> list[Any]:
    """Return the values of a column, those of an array as whoever writes them gets them back."""
    column = entries.columns.get(name)
    if column is None:
        return [None] * entries.count
    if isinstance(column, (list, tuple)):
        return list(column)
    typed = dict(zip(TYPED, typed_columns(entries.state))).get(name)
    if typed is None:
        return list(column.to_pylist())
    assert column.type == typed.data_type
    column.validate(full=True)
    return typed.restore(column)


def column_entries(
    operator: Operator,
    states: Iterable[str] | None = None,
    key_groups: Iterable[int] | None = None,
) -> Iterator[StateEntry]:
    for task in operator.tasks(states, key_groups):
        for entries in task.columns():
            columns = [_values(entries, name) for name in StateEntry._fields]
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


def operator_of(
    folder: Path, states: list[bytes], groups: list[list[tuple[int, list[tuple[bytes, bytes]]]]]
) -> Operator:
    """Return an operator with keys of STRING.

    Each group of states is of a subtask with one key group, from 3 on.
    """
    header = sb.keyed_header(sb.simple("String"), states)
    subtasks = []
    for number, group in enumerate(groups):
        stream = sb.inline(header + sb.canonical_key_group(group))
        keyed = sb.canonical(3 + number, [len(header)], stream)
        subtasks.append(sb.subtask(number, managed_keyed=keyed))
    task = sb.operator(subtasks, parallelism=max(len(groups), 1))
    (operator,) = read_savepoint(sb.write(folder, [task])).operators
    return operator


def entry(key_group: int, key: str, value: bytes) -> tuple[bytes, bytes]:
    """Return key and value of an entry of a VALUE state."""
    return bytes([key_group]) + write_string(key) + b"\0", value
