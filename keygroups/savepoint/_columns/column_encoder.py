"""From columns of rows to the bytes of entries, with no object of Python for a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from keygroups import arrays
from keygroups._serializers.base import Serializer
from keygroups.errors import InvalidValueError, KeyGroupsError
from keygroups.savepoint._columns.column_writers import (
    ColumnWriter,
    UnwrittenError,
    column_writer,
    fixed,
    joined,
    joined_runs,
    with_others,
    write_elements,
)
from keygroups.savepoint._columns.entry_batches import BYTES, SCHEMA
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.layouts import VOID
from keygroups.savepoint._state.values import StoredMapValue, check_time
from keygroups.state_keys import VOID_NAMESPACE, serializer_of
from keygroups.types import KeyType

_PAIRS = 1 << 13  # pairs of maps that become entries at once
_VOID, _BEFORE_VALUE = (pa.scalar(data, BYTES) for data in (VOID, StoredMapValue.before_value))


class Keys(NamedTuple):
    """The keys of rows: their column, their key groups and their bytes."""

    column: pa.Array
    key_groups: pa.Array
    encoded: pa.Array

    def filter(self, mask: pa.Array) -> Keys:
        """Return the keys of the rows of a mask."""
        return Keys(*(array.filter(mask) for array in self))

    def take(self, rows: pa.Array) -> Keys:
        """Return the keys of some rows."""
        return Keys(*(array.take(rows) for array in self))


class Rows(NamedTuple):
    """Columns of rows that have entries of one state, None for what the state has not."""

    value: pa.Array | None
    user_key: pa.Array | None = None
    last_access: pa.Array | None = None
    namespace: pa.Array | None = None
    timestamp: pa.Array | None = None

    def filter(self, mask: pa.Array) -> Rows:
        """Return the rows of a mask."""
        return Rows(*(None if array is None else array.filter(mask) for array in self))


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

    def keys(self, column: pa.Array) -> Keys:
        """Return the keys of a column."""
        encoded = self.encoded(column)  # which refuses nulls
        return Keys(column, pa.array(self.key_groups(column)), encoded)

    def encoded(self, column: pa.Array) -> pa.Array:
        """Return the bytes of keys."""
        if self._writer is None or column.null_count:
            raise UnwrittenError
        return self._writer.write(column)

    def key_groups(self, column: pa.Array) -> NDArray[np.int32]:
        """Return the key groups of keys."""
        if self._writer is None:
            raise UnwrittenError
        try:
            return arrays.assign_to_key_group(column, self._max_parallelism, self._key_type)
        except KeyGroupsError:
            raise UnwrittenError from None


class StateEncoder:
    """Makes entries of one state, which is the operator's of that number.

    `value_type` and `user_key_type` are what their columns are of, a Serializer's column being
    the one that `Operator.to_arrow` gives.
    """

    def __init__(
        self,
        number: int,
        described: StateDescriptor,
        value_type: KeyType | Serializer | None,
        user_key_type: KeyType | Serializer | None,
        allow_any_last_access: bool,
    ) -> None:
        self._number = number
        self._kind = described.kind
        self._has_ttl = described.has_ttl
        self._allow_any_last_access = allow_any_last_access
        self._writer = self._user_key_writer = None
        if described.namespace_serializer == VOID_NAMESPACE:
            self._writer = _writer_as(described.value_serializer, value_type)
            self._user_key_writer = _writer_as(described.user_key_serializer, user_key_type)

    def entries(self, keys: Keys, rows: Rows) -> pa.RecordBatch:
        """Return the entries of rows.

        Raises UnwrittenError where rows have to be looked at one by one, to say what is refused.
        """
        writer, value, user_key = self._writer, rows.value, rows.user_key
        if writer is None or value is None:
            raise UnwrittenError
        parts, times = [keys.encoded, _VOID], self._times(rows.last_access)
        if self._kind == "MAP":
            if self._user_key_writer is None or user_key is None or user_key.null_count:
                raise UnwrittenError
            parts.append(self._user_key_writer.write(user_key))
            written = self._map_values(writer, value, times)
        elif value.null_count:
            raise UnwrittenError
        elif self._kind == "LIST":
            written = self._lists(writer, value, times)
        else:
            written = joined(*_before(times), writer.write(value))
        number = pa.repeat(pa.scalar(self._number, pa.int32()), len(value))
        return pa.RecordBatch.from_arrays(
            [keys.key_groups, number, joined(*parts), written], schema=SCHEMA
        )

    def _times(self, last_access: pa.Array | None) -> NDArray[np.int64] | None:
        """Return the last access of each row, None of state without a time to live."""
        if not self._has_ttl:
            return None
        if last_access is None or last_access.null_count:
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
        lengths = np.diff(bounds)
        if not lengths.all():  # an empty list is no entry
            raise UnwrittenError
        of_elements = None if times is None else np.repeat(times, lengths)
        written = joined(*_before(of_elements), elements)
        if len(written) == len(value):  # each list is of one element
            return written
        return joined_runs(written, bounds)

    def _map_values(
        self, writer: ColumnWriter, value: pa.Array, times: NDArray[np.int64] | None
    ) -> pa.Array:
        if not value.null_count:
            return joined(_BEFORE_VALUE, *_before(times), writer.write(value))
        if times is not None or writer.null is None:
            raise UnwrittenError
        written = joined(_BEFORE_VALUE, writer.write(value.drop_null()))
        return with_others(written, value.is_null(), StoredMapValue.null)


def table_encoder(
    number: int, state: StateDescriptor, allow_any_last_access: bool
) -> StateEncoder | None:
    """Return what makes entries of whole columns as `Operator.to_arrow` gives them, if any does.

    Elements of a LIST with a time to live have it in them, and what the job alone reads is bytes.
    """
    value, user_key = state.value_serializer, state.user_key_serializer
    if value is None or value.read is None or (state.kind == "LIST" and state.has_ttl):
        return None
    return StateEncoder(number, state, value, user_key, allow_any_last_access)


def with_entries(kind: str, keys: Keys, rows: Rows) -> tuple[Keys, Rows]:
    """Return the rows that have an entry, with their keys: nulls and empty lists are none."""
    value, user_key = rows.value, rows.user_key
    assert value is not None
    if user_key is not None:
        mask = pc.or_(value.is_valid(), user_key.is_valid())
    elif kind == "LIST":
        mask = pc.fill_null(pc.greater(pc.list_value_length(value), 0), False)
    elif value.null_count:
        mask = value.is_valid()
    else:
        return keys, rows
    return (keys, rows) if pc.all(mask).as_py() else (keys.filter(mask), rows.filter(mask))


def pairs_of_maps(
    maps: pa.Array, keys: Keys, last_access: pa.Array | None
) -> Iterator[tuple[Keys, Rows]]:
    """Yield a row for each pair of some maps, which are in the rows of these keys.

    Maps have no nulls among their keys, of which Arrow takes none.
    """
    offsets = maps.offsets.to_numpy().astype(np.int64)
    is_valid = maps.is_valid().to_numpy(zero_copy_only=False)
    counts = np.where(is_valid, np.diff(offsets), 0)
    rows = np.repeat(np.arange(len(maps)), counts)
    ends = np.cumsum(counts)
    places = np.arange(len(rows)) + np.repeat(offsets[:-1] - (ends - counts), counts)
    for start in range(0, len(rows), _PAIRS):
        of_rows, of_maps = (pa.array(of[start : start + _PAIRS]) for of in (rows, places))
        times = None if last_access is None else last_access.take(of_rows)
        pairs = Rows(maps.items.take(of_maps), maps.keys.take(of_maps), times)
        yield keys.take(of_rows), pairs


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
