"""Writes tables as entries of an operator, as columns all the way to its files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from keygroups.savepoint._columns.batch_sorter import BatchSorter, in_order
from keygroups.savepoint._columns.column_encoder import (
    KeyColumnEncoder,
    StateEncoder,
    StateRows,
    table_encoder,
)
from keygroups.savepoint._columns.entry_batches import KEY_GROUP, entry_batch
from keygroups.savepoint._columns.entry_frames import write_batches
from keygroups.savepoint._columns.scalar_writers import UnwrittenError
from keygroups.savepoint._columns.table_rows import TableColumns
from keygroups.savepoint._state.entries import EncodedEntry
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.writing.keyed_state_file import KeyedStateFile


class TableWriter:
    """Makes and holds the entries of tables for an OperatorWriter.

    An operator that sorts puts them into `sorter`, in any order, whose files are in `folder`. In
    any other they come in the order of key groups: the last key group is held until the next.
    """

    def __init__(
        self,
        states: Sequence[StateDescriptor],
        max_parallelism: int,
        parallelism: int,
        allow_any_last_access: bool,
        folder: Path | None,
    ) -> None:
        key = states[0].key_serializer
        self._keys = KeyColumnEncoder(key, key, max_parallelism)
        self._states = states
        self._parallelisms = max_parallelism, parallelism
        self._allow_any_last_access = allow_any_last_access
        self._encoders: dict[int, StateEncoder | None] = {}
        self._folder = folder
        self._held: list[pa.RecordBatch] = []

    @cached_property
    def sorter(self) -> BatchSorter:
        """The BatchSorter, made when it is first used."""
        return BatchSorter(self._folder)

    def entries(self, number: int, columns: TableColumns) -> pa.RecordBatch | None:
        """Return the entries of a state's rows, None if they have to be written one by one."""
        if number not in self._encoders:
            state = self._states[number]
            self._encoders[number] = table_encoder(number, state, self._allow_any_last_access)
        encoder, arrays = self._encoders[number], columns.arrays
        if encoder is None:
            return None
        try:
            rows = StateRows(*(arrays.get(name) for name in StateRows._fields))
            return encoder.entries(self._keys.keys(arrays["key"]), rows)
        except UnwrittenError:
            return None

    def hold(self, batch: pa.RecordBatch) -> None:
        """Hold entries of the current key group."""
        self._held.append(batch)

    def write_held(
        self, entries: Iterable[EncodedEntry], file_of: Callable[[int], KeyedStateFile]
    ) -> bool:
        """Write the held entries, merged with others of their key groups; False without any."""
        if not self._held:
            return False
        batches, self._held = [*self._held, entry_batch(entries)], []
        write_batches([in_order(batches)], file_of, *self._parallelisms)
        return True

    def write_sorted(
        self, batches: Iterable[pa.RecordBatch], file_of: Callable[[int], KeyedStateFile]
    ) -> None:
        """Write sorted entries."""
        write_batches(batches, file_of, *self._parallelisms)


def split_last(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch] | None:
    """Return the entries before the last key group, and those of it; None if not in order."""
    key_groups = batch.column(KEY_GROUP).to_numpy()
    if (np.diff(key_groups) < 0).any():
        return None
    start = int(np.searchsorted(key_groups, key_groups[-1]))
    return batch.slice(0, start), batch.slice(start)


def key_group_of(batch: pa.RecordBatch, row: int) -> int:
    """Return the key group of an entry of a batch."""
    key_group: int = batch.column(KEY_GROUP)[row].as_py()
    return key_group
