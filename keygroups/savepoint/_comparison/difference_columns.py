"""Batches of Arrow made of the entries that differ between two savepoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import Any

import pyarrow as pa

from keygroups.errors import InvalidTypeError
from keygroups.savepoint._columns.batches import (
    BYTES_OF,
    TYPED,
    BatchLayout,
    apart_of,
    bytes_apart,
    check_name,
    layout_of,
    placed,
    typed_array,
    typed_columns,
)
from keygroups.savepoint._state.entries import StateEntry
from keygroups.savepoint._state.entry_columns import EntryColumns
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint.comparing import EntryDifference

_ROWS, _BYTES = 1 << 12, 1 << 22  # entries, and their bytes, held of a state before a batch
*_KEYS, _VALUE = TYPED
_SIDES = ("old", "new")


@dataclass(frozen=True)
class DifferenceLayout:
    """The columns of differences and their types; it may be pickled.

    `layouts` are those of the two savepoints, with the same types of keys; `states` are their
    descriptors by name.
    """

    layouts: tuple[BatchLayout, BatchLayout]
    states: tuple[Mapping[str, StateDescriptor], Mapping[str, StateDescriptor]]

    @property
    def schema(self) -> pa.Schema:
        """The schema of batches."""
        old, new = (layout.schema for layout in self.layouts)
        types = {"key_group": pa.int32(), "state": pa.string()}
        types |= {name: old.field(name).type for name in _KEYS}
        types |= {"timestamp": pa.int64(), "kind": pa.string()}
        types |= {"old_value": old.field(_VALUE).type, "new_value": new.field(_VALUE).type}
        types |= {f"{side}_last_access": pa.int64() for side in _SIDES}
        return pa.schema([*types.items(), *((name, pa.binary()) for name in self._apart)])

    @property
    def _apart(self) -> list[str]:
        """The columns of bytes that only the job reads, each beside the column it is kept from."""
        old, new = (layout.apart for layout in self.layouts)
        keys = [role for role in _KEYS if role != "key" and role in (*old, *new)]
        sides = [side for side, apart in zip(_SIDES, (old, new)) if _VALUE in apart]
        names = [BYTES_OF[role] for role in ("key", *keys)]
        return names + [f"{side}_{BYTES_OF[_VALUE]}" for side in sides]

    def batches(self, differences: Iterable[EntryDifference]) -> Iterator[pa.RecordBatch]:
        """Yield batches, each with differences of one state; the states take turns."""
        held: dict[str, list[EntryDifference]] = {}
        sizes: dict[str, int] = {}
        for difference in differences:
            state = difference.state
            of_state = held.setdefault(state, [])
            of_state.append(difference)
            sides = (difference.here, difference.there)
            size = sum(side.bytes for side in sides if isinstance(side, StateEntry))
            sizes[state] = sizes.get(state, 0) + size
            if len(of_state) >= _ROWS or sizes[state] >= _BYTES:
                yield self._batch(state, held.pop(state))
                sizes[state] = 0
        for state, of_state in held.items():
            yield self._batch(state, of_state)

    def _batch(self, name: str, differences: Sequence[EntryDifference]) -> pa.RecordBatch:
        sides: list[list[Any]] = [
            [difference.here for difference in differences],
            [difference.there for difference in differences],
        ]
        known = [new if old is None else old for old, new in zip(*sides)]
        key_side = 0 if name in self.states[0] else 1
        columns: dict[str, Any] = {
            "key_group": _plain("key_group", known),
            "state": [name] * len(known),
            "timestamp": _plain("timestamp", known),
            "kind": [difference.kind for difference in differences],
        }
        for role in _KEYS:
            columns[role], columns[BYTES_OF[role]] = self._column(name, key_side, role, known)
        columns["key_bytes"] = [
            key_bytes if own is None else own
            for key_bytes, own in zip(_plain("key_bytes", known), columns["key_bytes"])
        ]
        for number, (side, entries) in enumerate(zip(_SIDES, sides)):
            column = self._column(name, number, _VALUE, entries)
            columns[f"{side}_value"], columns[f"{side}_{BYTES_OF[_VALUE]}"] = column
            columns[f"{side}_last_access"] = _plain("last_access", entries)
        schema = self.schema
        arrays = [
            column if isinstance(column, pa.Array) else pa.array(column, field.type)
            for column, field in ((columns[field.name], field) for field in schema)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _column(
        self, name: str, side: int, role: str, entries: Sequence[StateEntry | None]
    ) -> tuple[pa.Array, Sequence[bytes | None]]:
        """Return the column of a role in one savepoint, and the bytes that only the job reads.

        Both have a null for each entry that the savepoint has not.
        """
        field_type = self.layouts[side].schema.field(role).type
        state = self.states[side].get(name)
        column = None if state is None else dict(zip(TYPED, typed_columns(state)))[role]
        apart: Sequence[bytes | None] = [None] * len(entries)
        if state is None or column is None:
            return pa.nulls(len(entries), field_type), apart
        values = _plain(role, entries)
        if role in bytes_apart(state) and column.data_type != pa.binary():
            values, apart = apart_of(values)
        is_present = [entry is not None for entry in entries]
        columns = {"key_group": _plain("key_group", entries), role: values}
        columns = {name: [*compress(values, is_present)] for name, values in columns.items()}
        count = sum(is_present)
        array = typed_array(EntryColumns(state, count, columns), role, column)
        array = placed(array, field_type, count, state, self.layouts[side], role)
        numbers = iter(range(count))
        rows = [next(numbers) if present else None for present in is_present]
        return array.take(pa.array(rows, pa.int64())), apart


def _plain(name: str, entries: Iterable[StateEntry | None]) -> list[Any]:
    return [None if entry is None else getattr(entry, name) for entry in entries]


def difference_layout(
    old: Iterable[StateDescriptor], new: Iterable[StateDescriptor]
) -> DifferenceLayout:
    """Return the layout for the states of an operator in two savepoints.

    Raises InvalidTypeError where a state has other keys in the one than in the other.
    """
    states = tuple({state.name: state for state in side} for side in (old, new))
    for state in chain(*(side.values() for side in states)):
        check_name(state)
    for name in states[0].keys() & states[1].keys():
        for role in _KEYS:
            types = [getattr(side[name], f"{role}_serializer") for side in states]
            if types[0] != types[1]:
                raise InvalidTypeError(
                    f"state {name!r} must have the same type of {role} in both savepoints, got "
                    f"{types[0]} and {types[1]}: no entry has a counterpart"
                )
    layouts = [layout_of([*side.values()]) for side in states]
    keys = [{**old, **new} for old, new in zip(*(layout.types[:-1] for layout in layouts))]
    first, second = (BatchLayout((*keys, layout.types[-1]), layout.apart) for layout in layouts)
    return DifferenceLayout((first, second), (states[0], states[1]))
