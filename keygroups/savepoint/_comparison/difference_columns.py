"""From the entries that two savepoints do not have in common to batches of Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import Any

import pyarrow as pa

from keygroups.errors import InvalidTypeError
from keygroups.savepoint._columns.batches import (
    TYPED,
    Layout,
    check_name,
    layout_of,
    placed,
    typed_array,
    typed_columns,
)
from keygroups.savepoint._comparison.report import EntryDifference
from keygroups.savepoint._state.entries import StateEntry
from keygroups.savepoint._state.entry_columns import EntryColumns
from keygroups.savepoint._state.header import StateDescriptor

_ROWS, _BYTES = 1 << 12, 1 << 22  # entries, and bytes of them, that are held of a state
*_KEYS, _VALUE = TYPED
_SIDES = ("old", "new")


@dataclass(frozen=True)
class DifferenceLayout:
    """Which types differences have, by state; it may be pickled.

    `layouts` are those of either savepoint, which have the same keys; `states` are the
    descriptors in either, by name.
    """

    layouts: tuple[Layout, Layout]
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
        return pa.schema([*types.items(), ("key_bytes", pa.binary())])

    def batches(self, differences: Iterable[EntryDifference]) -> Iterator[pa.RecordBatch]:
        """Yield batches that each have differences of one state, in no order."""
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
            [of.here for of in differences],
            [of.there for of in differences],
        ]
        known = [there if here is None else here for here, there in zip(*sides)]
        schema = self.schema
        of_key = 0 if name in self.states[0] else 1

        def column(role: str, side: int, entries: Sequence[Any]) -> Any:
            """Return what entries of a savepoint have in a role, null for those it has not."""
            field_type = self.layouts[side].schema.field(role).type
            state = self.states[side].get(name)
            if state is None:
                return pa.nulls(len(entries), field_type)
            column = dict(zip(TYPED, typed_columns(state)))[role]
            if column is None:
                return pa.nulls(len(entries), field_type)
            is_there = [entry is not None for entry in entries]
            there = [*compress(entries, is_there)]
            of_entries = EntryColumns(
                state,
                len(there),
                {
                    "key_group": [entry.key_group for entry in there],
                    role: [getattr(entry, role) for entry in there],
                },
            )
            array = typed_array(of_entries, role, column)
            array = placed(array, field_type, len(there), state, self.layouts[side], role)
            numbers = iter(range(len(there)))
            return array.take(
                pa.array([next(numbers) if of else None for of in is_there], pa.int64())
            )

        def plain(name: str, entries: Sequence[Any]) -> list[Any]:
            return [None if entry is None else getattr(entry, name) for entry in entries]

        columns: dict[str, Any] = {
            "key_group": plain("key_group", known),
            "state": [name] * len(known),
            "timestamp": plain("timestamp", known),
            "kind": [of.kind for of in differences],
            "key_bytes": plain("key_bytes", known),
        }
        columns |= {role: column(role, of_key, known) for role in _KEYS}
        for number, (side, entries) in enumerate(zip(_SIDES, sides)):
            columns[f"{side}_value"] = column(_VALUE, number, entries)
            columns[f"{side}_last_access"] = plain("last_access", entries)
        arrays = [
            of if isinstance(of := columns[field.name], pa.Array) else pa.array(of, field.type)
            for field in schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


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
    keys = [{**first, **second} for first, second in zip(*(of.types[:-1] for of in layouts))]
    first, second = (Layout((*keys, layout.types[-1])) for layout in layouts)
    return DifferenceLayout((first, second), (states[0], states[1]))
