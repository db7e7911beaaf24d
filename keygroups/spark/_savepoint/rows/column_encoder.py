"""From columns of rows to the bytes of entries, with no object of Python for a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from keygroups import arrays
from keygroups.errors import InvalidValueError, KeyGroupsError
from keygroups.savepoint import Serializer, StateDescriptor
from keygroups.savepoint._state.layouts import NOT_NULL, NULL, SEPARATOR, VOID
from keygroups.savepoint._state.values import check_time
from keygroups.savepoint._state.writing.entry_encoder import EncodedEntry
from keygroups.spark._savepoint.rows.column_writers import (
    BYTES,
    ColumnWriter,
    UnwrittenError,
    column_writer,
    fixed,
    joined,
    joined_runs,
    with_others,
    write_elements,
)
from keygroups.spark._savepoint.rows.state_columns import (
    KEY,
    KEY_GROUP,
    LAST_ACCESS,
    StateColumns,
)
from keygroups.state_keys import VOID_NAMESPACE, serializer_of
from keygroups.types import KeyType

_PAIRS = 1 << 13  # pairs of maps that become entries at once
_VOID, _NULL, _NOT_NULL = (pa.scalar(constant, BYTES) for constant in (VOID, NULL, NOT_NULL))


class KeyColumn:
    """The keys of an operator, whose column is that of a type: their bytes and key groups.

    Both raise UnwrittenError where keys have to be looked at one by one.
    """

    def __init__(
        self, given: KeyType | Serializer, serializer: Serializer, max_parallelism: int
    ) -> None:
        self._writer = _writer_as(serializer, given)
        self._key_type = serializer.key_type
        self._max_parallelism = max_parallelism

    def encoded(self, keys: pa.Array) -> pa.Array:
        """Return the bytes of keys."""
        if self._writer is None or keys.null_count:
            raise UnwrittenError
        return self._writer.write(keys)

    def key_groups(self, keys: pa.Array) -> NDArray[np.int32]:
        """Return the key groups of keys."""
        if self._writer is None:
            raise UnwrittenError
        try:
            return arrays.assign_to_key_group(keys, self._max_parallelism, self._key_type)
        except KeyGroupsError:
            raise UnwrittenError from None


class StateEncoder:
    """Makes entries of one state, which is the operator's of that number.

    `state` says which columns of a batch are its own, beside those of every row.
    """

    def __init__(
        self,
        number: int,
        state: StateColumns,
        described: StateDescriptor,
        allow_any_last_access: bool,
    ) -> None:
        self._number = number
        self._state = state
        self._has_ttl = described.has_ttl
        self._allow_any_last_access = allow_any_last_access
        self._writer = self._user_key_writer = None
        if described.namespace_serializer == VOID_NAMESPACE:
            self._writer = _writer_as(described.value_serializer, state.value_type)
            self._user_key_writer = _writer_as(described.user_key_serializer, state.user_key_type)

    def entries(self, batch: pa.RecordBatch, encoded_keys: pa.Array) -> pa.RecordBatch:
        """Return the entries of a batch of rows, whose keys are encoded already.

        Raises UnwrittenError where rows have to be looked at one by one, to say what is refused.
        """
        state, writer = self._state, self._writer
        if writer is None or (state.user_key is not None and self._user_key_writer is None):
            raise UnwrittenError
        columns = [batch.column(KEY_GROUP), encoded_keys, batch.column(LAST_ACCESS)]
        columns.append(batch.column(state.value))
        if state.user_key is not None:
            columns.append(batch.column(state.user_key))
        rows = pa.RecordBatch.from_arrays(columns, [str(place) for place in range(len(columns))])
        rows = rows.filter(self._is_entry(rows))
        key_groups, keys, last_access, value = rows.columns[:4]
        parts = [keys, _VOID]
        if self._user_key_writer is not None:
            if rows.column(4).null_count:
                raise UnwrittenError
            parts.append(self._user_key_writer.write(rows.column(4)))
        times = self._times(last_access)
        if state.is_array:
            written = self._lists(writer, value, times)
        elif state.user_key is not None:
            written = self._map_values(writer, value, times)
        else:
            written = joined(*_before(times), writer.write(value))
        return pa.RecordBatch.from_arrays(
            [
                key_groups,
                pa.repeat(pa.scalar(self._number, pa.int32()), len(rows)),
                joined(*parts).cast(pa.binary()),
                written.cast(pa.binary()),
            ],
            EncodedEntry._fields,
        )

    def _is_entry(self, rows: pa.RecordBatch) -> pa.Array:
        """Return which rows have an entry: nulls and empty lists are none."""
        value = rows.column(3)
        if self._state.is_array:
            return pc.fill_null(pc.greater(pc.list_value_length(value), 0), False)
        if self._state.user_key is not None:
            return pc.or_(value.is_valid(), rows.column(4).is_valid())
        return value.is_valid()

    def _times(self, last_access: pa.Array) -> NDArray[np.int64] | None:
        """Return the last access of each row, None of state without a time to live."""
        if not self._has_ttl:
            return None
        if last_access.null_count:
            raise UnwrittenError
        times: NDArray[np.int64] = last_access.to_numpy()
        if len(times) and not self._allow_any_last_access:
            try:
                check_time(times.min())
                check_time(times.max())
            except InvalidValueError:
                raise UnwrittenError from None
        return times

    def _lists(
        self, writer: ColumnWriter, value: pa.Array, times: NDArray[np.int64] | None
    ) -> pa.Array:
        elements, bounds = write_elements(value, writer)
        of_elements = None if times is None else np.repeat(times, np.diff(bounds))
        return joined_runs(joined(*_before(of_elements), elements), bounds, SEPARATOR)

    def _map_values(
        self, writer: ColumnWriter, value: pa.Array, times: NDArray[np.int64] | None
    ) -> pa.Array:
        if not value.null_count:
            return joined(_NOT_NULL, *_before(times), writer.write(value))
        if times is not None or writer.null is None:
            raise UnwrittenError
        written = joined(_NOT_NULL, writer.write(value.drop_null()))
        return with_others(written, value.is_null(), NULL)


def of_pairs(state: StateColumns) -> StateColumns:
    """Return where the columns of a state of whole maps are in what `rows_of_state` yields."""
    return state._replace(value=LAST_ACCESS + 1, user_key=LAST_ACCESS + 2, is_map=False)


def rows_of_state(
    state: StateColumns, batch: pa.RecordBatch, encoded_keys: pa.Array
) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
    """Yield the rows of a batch with the bytes of their keys; of maps, a row for each pair.

    Maps have no nulls among their keys, of which Arrow takes none.
    """
    if not state.is_map:
        yield batch, encoded_keys
        return
    maps = batch.column(state.value)
    offsets = maps.offsets.to_numpy().astype(np.int64)
    is_valid = maps.is_valid().to_numpy(zero_copy_only=False)
    counts = np.where(is_valid, np.diff(offsets), 0)
    rows = np.repeat(np.arange(len(maps)), counts)
    ends = np.cumsum(counts)
    places = np.arange(len(rows)) + np.repeat(offsets[:-1] - (ends - counts), counts)
    for start in range(0, len(rows), _PAIRS):
        of_rows, of_maps = (pa.array(of[start : start + _PAIRS]) for of in (rows, places))
        user_keys, values = maps.keys.take(of_maps), maps.items.take(of_maps)
        columns = [batch.column(place).take(of_rows) for place in (KEY_GROUP, KEY, LAST_ACCESS)]
        columns += [values, user_keys]
        pairs = pa.RecordBatch.from_arrays(columns, [*map(str, range(len(columns)))])
        yield pairs, encoded_keys.take(of_rows)


def _before(times: NDArray[np.int64] | None) -> Sequence[Any]:
    """Return the bytes of times, which stand before values, or nothing."""
    return () if times is None else (fixed(times.astype(">i8")),)


def _writer_as(
    serializer: Serializer | None, given: KeyType | Serializer | None
) -> ColumnWriter | None:
    """Return the writer of a column of a type, if the serializer in the savepoint is its own."""
    if given is None or serializer is None:
        return None
    is_own = serializer == (given if isinstance(given, Serializer) else serializer_of(given))
    return column_writer(given) if is_own else None
