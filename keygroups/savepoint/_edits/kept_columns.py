"""Entries that stay as they are, written by columns; those of deleted keys are left out."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from keygroups.savepoint._columns.batch_sorter import BatchSorter
from keygroups.savepoint._columns.entry_batches import state_batch
from keygroups.savepoint._columns.entry_frames import EntryFrames
from keygroups.savepoint._edits.steps import Apply, DeleteKeys
from keygroups.savepoint._state.entries import EncodedEntry
from keygroups.savepoint._state.entry_columns import EntryColumns
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.keys import has_one_form
from keygroups.savepoint._state.writing.keyed_state_file import KeyedStateFile
from keygroups.savepoint._tasks.read import ReadTask
from keygroups.state_keys import key_group_prefix_bytes

_SORTED = 1 << 22  # bytes of entries that are sorted at once, in about 20 times as much memory

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class KeptState:
    """A state of which entries are kept: its new number, and which may be deleted.

    `edited` is Edits.entries, whose steps all are DeleteKeys.
    """

    number: int
    edited: Apply
    doomed: tuple[Doomed, ...]

    def kept(self, columns: EntryColumns) -> pa.RecordBatch:
        """Return the entries that are kept, as a BatchSorter takes them."""
        fields = columns.columns
        encoded = fields["encoded_key"], fields["encoded_value"]
        batch = state_batch(fields["key_group"], self.number, *encoded)
        if not self.doomed:
            return batch
        is_asked = np.zeros(columns.count, np.bool_)
        for doomed in self.doomed:
            is_asked |= doomed.among(columns)
        is_kept = np.ones(columns.count, np.bool_)
        for row in np.flatnonzero(is_asked).tolist():
            key, value = (part[row].as_py() for part in encoded)
            entry = EncodedEntry(int(fields["key_group"][row]), self.number, key, value)
            entries = self.edited(entry)
            is_kept[row] = entries is None or any(entries)  # Counted once they are asked for.
        return batch if is_kept.all() else batch.filter(pa.array(is_kept))


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
        return cls(key_groups, [read(key, 0)[0] for key in encoded])

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


def write_kept(read: ReadTask, states: Mapping[str, KeptState], file: KeyedStateFile) -> None:
    """Write the entries of a task that are kept, some key groups after the other, sorted.

    Raises SavepointError where state is damaged, InvalidValueError where a key is there twice.
    """
    frames, is_any = EntryFrames(file, key_group_prefix_bytes(read.max_parallelism), ()), False
    for split in read.split(_SORTED):
        with closing(BatchSorter(None)) as sorter:
            for columns in split.framed_columns():
                batch = states[columns.state.name].kept(columns)
                if len(batch) and sorter.add(batch):
                    sorter.spill()
            for batch in sorter.entries():
                frames.add(batch)
                is_any = True
    if is_any:
        frames.finish()
