"""Edits of entries as columns: of deleted keys, times to live, and functions of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from keygroups.savepoint._columns.batch_sorter import BatchSorter
from keygroups.savepoint._columns.byte_arrays import bytes_array
from keygroups.savepoint._columns.column_encoder import retimed
from keygroups.savepoint._columns.columns import is_encodable
from keygroups.savepoint._columns.entry_batches import state_batch
from keygroups.savepoint._columns.entry_frames import EntryFrames
from keygroups.savepoint._columns.scalar_writers import UnwrittenError
from keygroups.savepoint._edits.batch_mapping import BatchMapping
from keygroups.savepoint._edits.steps import AnyStep, DeleteKeys, MapBatches, SetTtl, StepContext
from keygroups.savepoint._state.entry_columns import EntryColumns
from keygroups.savepoint._state.framed_columns import chosen, single_entries, with_part
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.keys import has_one_form
from keygroups.savepoint._state.stored_values import stored_value
from keygroups.savepoint._state.writing.keyed_state_file import KeyedStateFile

ColumnApply = Callable[[EntryColumns], EntryColumns]
"""A function from entries of one state, as a FramedDecoder has them, to those that stay of them,
with the values that they then have. Keys and key groups stay."""
CountEdited = Callable[[int, int, int], None]
"""Takes the number of a state, and how many of its entries were changed and deleted."""
Plans = Mapping[str, tuple[int, Sequence[tuple[StateDescriptor, AnyStep]]]]
"""The StatePlan of states by their names."""

Mask = NDArray[np.bool_]


class ColumnEdits:
    """The steps of states, all of which take columns, bound to one subtask.

    `states` are those that the steps leave, at their numbers.
    """

    def __init__(
        self,
        plans: Plans,
        states: Sequence[StateDescriptor],
        place: StepContext,
        count: CountEdited,
    ) -> None:
        self._states = states
        self._count = count
        self._applies = {
            name: (number, [_applied(number, state, step, place) for state, step in steps])
            for name, (number, steps) in plans.items()
        }
        self._is_changing = {
            name: any(not isinstance(step, DeleteKeys) for _, step in steps)
            for name, (_, steps) in plans.items()
        }

    def edited(self, columns: EntryColumns) -> EntryColumns:
        """Return the entries after all steps, and count what these did."""
        name, count, changed = columns.state.name, columns.count, 0
        number, applies = self._applies[name]
        if self._is_changing[name]:
            columns = with_part(columns, "old_value", columns.columns["encoded_value"])
        for apply in applies:
            if columns.count:
                columns = apply(columns)
        if self._is_changing[name] and columns.count:
            values = (columns.columns[part] for part in ("encoded_value", "old_value"))
            changed = pc.sum(pc.not_equal(*values)).as_py()
        self._count(number, changed, count - columns.count)
        return replace(columns, state=self._states[number])


def _applied(
    number: int, state: StateDescriptor, step: AnyStep, place: StepContext
) -> ColumnApply:
    """Return the ColumnApply of a step."""
    if isinstance(step, DeleteKeys):
        return _deletion(number, state, step, place)
    if isinstance(step, MapBatches):
        return BatchMapping(number, step, state, place)
    assert isinstance(step, SetTtl)  # EditTask has asked.
    return _retiming(number, state, step, place)


def _deletion(
    number: int, state: StateDescriptor, step: DeleteKeys, place: StepContext
) -> ColumnApply:
    doomed, apply = Doomed.of(state, step), step(state, place)

    def delete(columns: EntryColumns) -> EntryColumns:
        asked = np.flatnonzero(doomed.among(columns))
        entries = single_entries(number, chosen(columns, asked))
        gone = [row for row, entry in zip(asked.tolist(), entries) if apply(entry) is not None]
        return chosen(columns, np.delete(np.arange(columns.count), gone)) if gone else columns

    return delete


def _retiming(
    number: int, state: StateDescriptor, step: SetTtl, place: StepContext
) -> ColumnApply:
    stored, time, apply = stored_value(state), step.last_access, step(state, place)

    def retime(columns: EntryColumns) -> EntryColumns:
        times = None if time is None else np.full(columns.count, time, np.int64)
        try:
            values = retimed(stored, columns.columns["encoded_value"], times)
        except UnwrittenError:
            after = map(apply, single_entries(number, columns))
            values = bytes_array(entry.value for entries in after for entry in entries or ())
        return with_part(columns, "encoded_value", values)

    return retime


@dataclass(frozen=True)
class Doomed:
    """The keys of a DeleteKeys: their key groups, and their values; None where any may be one."""

    key_groups: NDArray[np.int32] | None
    values: list[object] | None

    @classmethod
    def of(cls, state: StateDescriptor, step: DeleteKeys) -> Doomed:
        """Return the keys of a step in a state."""
        key_groups = None if None in step.keys else np.array([*step.keys], np.int32)
        read = state.key_serializer.read
        if read is None or not has_one_form(state.key_serializer):
            return cls(key_groups, None)
        encoded = [key for sought in step.keys.values() for key in sought.encoded]
        values = [read(key, 0)[0] for key in encoded]
        # Columns of Arrow hold no text with half a surrogate pair.
        return cls(
            key_groups,
            [key for key in values if not isinstance(key, str) or is_encodable(key)],
        )

    def among(self, columns: EntryColumns) -> Mask:
        """Return a mask of the entries that may be of these keys."""
        keys: Any = columns.columns.get("key")
        mask: Mask = np.ones(columns.count, np.bool_)
        if self.key_groups is not None:
            mask = np.isin(columns.columns["key_group"], self.key_groups)
        is_scalar = isinstance(keys, pa.Array) and not isinstance(keys, pa.StructArray)
        if self.values is not None and is_scalar:
            is_in = pc.is_in(keys, value_set=pa.array(self.values, keys.type))
            mask &= is_in.to_numpy(zero_copy_only=False)
        return mask


def write_edited(
    parts: Iterable[Iterable[EntryColumns]],
    numbers: Mapping[str, int],
    file: KeyedStateFile,
    prefix_bytes: int,
) -> None:
    """Write entries, of which each part has some key groups, the parts in order; sorts each.

    `numbers` are those of the states by name. Raises what the parts raise, and InvalidValueError
    where a key is there twice.
    """
    frames, is_any = EntryFrames(file, prefix_bytes, ()), False
    for part in parts:
        with closing(BatchSorter(None)) as sorter:
            for columns in part:
                fields, number = columns.columns, numbers[columns.state.name]
                encoded = fields["encoded_key"], fields["encoded_value"]
                if columns.count and sorter.add(
                    state_batch(fields["key_group"], number, *encoded)
                ):
                    sorter.spill()
            for batch in sorter.entries():
                frames.add(batch)
                is_any = True
    if is_any:
        frames.finish()
