"""From sorted batches of entries to the file of a subtask, batch by batch."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from keygroups.savepoint._state.entries import LAST_OF_STATE
from keygroups.savepoint._state.layouts import SEPARATOR
from keygroups.savepoint._state.writing.entry_encoder import EncodedEntry
from keygroups.savepoint._state.writing.keyed_state_file import KeyedStateFile
from keygroups.spark._savepoint.rows.column_writers import (
    BYTES,
    fixed,
    joined,
    joined_runs,
    octets_of,
)

_SCHEMA = pa.schema(zip(EncodedEntry._fields, (pa.int32(), pa.int32(), BYTES, BYTES)))
_KEY_GROUP, _STATE, _KEY, _VALUE = range(len(_SCHEMA))


class EntryFrames:
    """Writes entries that come ordered by key group and state, and of a state by key.

    `prefix_bytes` is how many bytes the key group takes in a key. `elements_of` are numbers of
    LIST states of which each entry is a part of a list: the parts of a key become one list, in
    the order in which they come. The last entry is held back until the next one is there.
    """

    def __init__(
        self, file: KeyedStateFile, prefix_bytes: int, elements_of: Collection[int]
    ) -> None:
        self._file = file
        self._prefix_bytes = prefix_bytes
        self._elements_of = np.array([*elements_of], np.int32)
        self._held: list[pa.RecordBatch] = []  # of one entry

    def add(self, batch: pa.RecordBatch) -> None:
        """Write entries, at least one.

        Raises InvalidValueError where one comes twice, or a key group is not the subtask's or
        not in order.
        """
        rows = pa.RecordBatch.from_arrays(
            [column.cast(of) for column, of in zip(batch.columns, _SCHEMA.types)], schema=_SCHEMA
        )
        starts = np.flatnonzero(self._is_first(rows))
        held = sum(map(len, self._held))
        if starts.size:
            last = int(starts[-1])
            if held + last:
                bounds = np.concatenate(([0] if held else [], starts + held)).astype(np.int64)
                self._write([*self._held, rows.slice(0, last)], bounds, rows.slice(last, 1))
            self._held = []
            rows = rows.slice(last)
        self._held.append(rows)

    def finish(self) -> None:
        """Write what is held back."""
        if self._held:
            self._write(self._held, np.array([0, sum(map(len, self._held))]), None)

    def _is_first(self, rows: pa.RecordBatch) -> NDArray[np.bool_]:
        """Return which rows start an entry, all but further parts of a list."""
        states, keys = rows.column(_STATE).to_numpy(), rows.column(_KEY)
        is_same = np.zeros(len(rows), np.bool_)
        if self._held:
            end = self._held[-1].slice(len(self._held[-1]) - 1)
            is_same[0] = all(end.column(n)[0] == rows.column(n)[0] for n in range(_VALUE))
        is_same[1:] = pc.equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)
        for numbers in (rows.column(_KEY_GROUP).to_numpy(), states):
            is_same[1:] &= numbers[1:] == numbers[:-1]
        is_twice = is_same & ~np.isin(states, self._elements_of)
        if is_twice.any():
            row = int(np.argmax(is_twice))
            raise self._file.twice(EncodedEntry(*(column[row].as_py() for column in rows.columns)))
        return ~is_same

    def _write(
        self,
        batches: list[pa.RecordBatch],
        bounds: NDArray[np.int64],
        following: pa.RecordBatch | None,
    ) -> None:
        """Write entries, which go from one of the bounds to the next; another one is to follow."""
        columns = [pa.concat_arrays(of) for of in zip(*(batch.columns for batch in batches))]
        if len(bounds) <= len(columns[_VALUE]):  # there are lists of several parts
            value = joined_runs(columns[_VALUE], bounds, SEPARATOR)
            firsts = pa.array(bounds[:-1])
            columns = [*(column.take(firsts) for column in columns[:_VALUE]), value]
        key_groups, states = (column.to_numpy() for column in columns[:_KEY])
        is_changed = (key_groups[1:] != key_groups[:-1]) | (states[1:] != states[:-1])
        is_last = np.append(is_changed, True)
        if following is not None:
            next_run = tuple(column[0].as_py() for column in following.columns[:_KEY])
            is_last[-1] = next_run != (key_groups[-1], states[-1])
        framed, places = octets_of(self._framed(key_groups, is_last, *columns[_KEY:]))
        starts = [0, *(np.flatnonzero(is_changed) + 1).tolist()]
        for start, end in zip(starts, [*starts[1:], len(states)]):
            self._file.add_framed(
                int(key_groups[start]),
                int(states[start]),
                end - start,
                framed.data[places[start] : places[end]],
            )

    def _framed(
        self,
        key_groups: NDArray[np.int32],
        is_last: NDArray[np.bool_],
        keys: pa.Array,
        values: pa.Array,
    ) -> pa.Array:
        """Return entries as they stand in the file, the last of a state with its mark."""
        size = self._prefix_bytes
        prefixes = key_groups.astype(">i4").view(np.uint8).reshape(-1, 4)[:, 4 - size :].copy()
        prefixes[is_last, 0] |= LAST_OF_STATE
        return joined(
            fixed((_lengths(keys) + size).astype(">i4")),
            fixed(prefixes),
            keys,
            fixed(_lengths(values).astype(">i4")),
            values,
        )


def _lengths(array: pa.Array) -> NDArray[np.int64]:
    return np.diff(octets_of(array)[1])
