"""Encoding of whole columns as the bytes of entries, with no object of Python for a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from keygroups import arrays
from keygroups._serializers.base import Serializer
from keygroups._serializers.sql.rows import RowDataSerializer
from keygroups.errors import InvalidValueError, KeyGroupsError
from keygroups.savepoint._columns.byte_arrays import (
    assembled,
    joined_runs,
    octets_of,
    spans,
    with_others,
)
from keygroups.savepoint._columns.column_writers import column_writer, key_writer, write_elements
from keygroups.savepoint._columns.entry_batches import state_batch
from keygroups.savepoint._columns.scalar_writers import ColumnWriter, UnwrittenError
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.layouts import VOID
from keygroups.savepoint._state.stored_values import StoredValue, check_time, stored_value
from keygroups.state_keys import VOID_NAMESPACE, serializer_of
from keygroups.types import KeyType

_PAIRS = 1 << 13  # pairs of maps that become entries at once


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


class StateRows(NamedTuple):
    """The columns of rows for one state, each row an entry; None for what the state has not."""

    value: pa.Array | None
    user_key: pa.Array | None = None
    last_access: pa.Array | None = None
    namespace: pa.Array | None = None
    timestamp: pa.Array | None = None

    def filter(self, mask: pa.Array) -> StateRows:
        """Return the rows of a mask."""
        return StateRows(*(None if array is None else array.filter(mask) for array in self))


class KeyColumnEncoder:
    """Encodes a column of an operator's keys, and computes their key groups.

    `column_type` is the type of the column, `serializer` that of the keys in the savepoint. The
    methods raise UnwrittenError where keys have to be looked at one by one.
    """

    def __init__(
        self, column_type: KeyType | Serializer, serializer: Serializer, max_parallelism: int
    ) -> None:
        self._writer = _writer_as(serializer, column_type, is_key=True)
        self._key_type = serializer.key_type
        self._max_parallelism = max_parallelism

    def keys(self, column: pa.Array) -> Keys:
        """Return the keys of a column."""
        encoded = self.encoded(column)  # first, as it refuses nulls
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
    """Makes entries of the operator's state with a number, whole columns at once.

    `value_type` and `user_key_type` are the types of the columns; for a Serializer that is the
    column which `Operator.to_arrow` gives.
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
        self._stored = None if described.value_serializer is None else stored_value(described)
        self._allow_any_last_access = allow_any_last_access
        self._writer = self._user_key_writer = None
        self._has_namespace = described.namespace_serializer != VOID_NAMESPACE
        if not described.is_python:
            self._writer = _writer_as(described.value_serializer, value_type)
            if not isinstance(described.user_key_serializer, RowDataSerializer):
                self._user_key_writer = _writer_as(described.user_key_serializer, user_key_type)

    def entries(self, keys: Keys, rows: StateRows) -> pa.RecordBatch:
        """Return the entries of rows.

        Raises UnwrittenError where rows have to be looked at one by one: the row encoder then
        writes them, or names the first that it refuses.
        """
        written, user_key = self.values(rows), rows.user_key
        parts = [keys.encoded, *_repeated(VOID, len(written))]
        if self._has_namespace:
            raise UnwrittenError
        if self._kind == "MAP":
            if self._user_key_writer is None or user_key is None or user_key.null_count:
                raise UnwrittenError
            parts += self._user_key_writer.pieces(user_key)
        return state_batch(keys.key_groups, self._number, assembled(parts), written)

    def values(self, rows: StateRows) -> pa.Array:
        """Return the bytes of the values of rows; raises UnwrittenError as `entries`."""
        writer, value = self._writer, rows.value
        if writer is None or value is None:
            raise UnwrittenError
        times = self._times(rows.last_access)
        if self._kind == "LIST":
            return self._lists(writer, value, times)
        return self._values(writer, value, times)

    def _times(self, last_access: pa.Array | None) -> NDArray[np.int64] | None:
        """Return the last access of each row in epoch ms, None for state without a TTL."""
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
        if value.null_count:
            raise UnwrittenError
        elements, bounds = write_elements(value, writer)
        lengths = np.diff(bounds)
        if not lengths.all():  # an empty list is no entry
            raise UnwrittenError
        element_times = None if times is None else np.repeat(times, lengths)
        written = assembled([*_before(element_times), elements])
        if len(written) == len(value):  # every list has one element, and needs no comma
            return written
        return joined_runs(written, bounds)

    def _values(
        self, writer: ColumnWriter, value: pa.Array, times: NDArray[np.int64] | None
    ) -> pa.Array:
        assert self._stored is not None
        before, null = self._stored.before_value, self._stored.null
        if not value.null_count:
            return assembled(
                [*_repeated(before, len(value)), *_before(times), *writer.pieces(value)]
            )
        if times is not None or null is None or writer.null is None:
            raise UnwrittenError
        valid = value.drop_null()
        written = assembled([*_repeated(before, len(valid)), *writer.pieces(valid)])
        return with_others(written, value.is_null(), null)


def retimed(stored: StoredValue, values: pa.Array, times: NDArray[np.int64] | None) -> pa.Array:
    """Return the bytes of values with other times of last access, with none if there are none.

    Raises UnwrittenError where `StoredValue.retimed` has to look at them one by one: for lists,
    nulls in maps, and what may be no value.
    """
    data, bounds = octets_of(values)
    starts, ends, mark = bounds[:-1], bounds[1:], stored.before_value
    rests = starts + len(mark) + stored.time_bytes
    if stored.parts() is None or (rests > ends).any():
        raise UnwrittenError
    if mark:
        if (data[starts] != mark[0]).any():
            raise UnwrittenError
        serializer = stored.value_serializer
        null = serializer.encode(None) if times is None and serializer.takes_null else None
        if null is not None and (ends - rests == len(null)).any():
            raise UnwrittenError
    return assembled([*_repeated(mark, len(starts)), *_before(times), spans(data, rests, ends)])


def table_encoder(
    number: int, state: StateDescriptor, allow_any_last_access: bool
) -> StateEncoder | None:
    """Return the StateEncoder for columns as `Operator.to_arrow` gives them, None without one.

    None is for timers, for a LIST with a time to live, whose elements are structs with their
    times, and for values that only the job reads, which are bytes already.
    """
    value, user_key = state.value_serializer, state.user_key_serializer
    if value is None or value.read is None or (state.kind == "LIST" and state.has_ttl):
        return None
    return StateEncoder(number, state, value, user_key, allow_any_last_access)


def with_entries(kind: str, keys: Keys, rows: StateRows) -> tuple[Keys, StateRows]:
    """Return the rows that make an entry, with their keys.

    A null value and an empty list make none, and in a MAP only a row whose user key is null too.
    """
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
) -> Iterator[tuple[Keys, StateRows]]:
    """Yield the pairs of a column of maps as rows, each with the key of its map.

    The maps [{x: 1}, null, {y: 2, z: 3}] of the keys a, b, c become the rows (a, x, 1), (c, y, 2)
    and (c, z, 3), in chunks of `_PAIRS`. Arrow has no null among the keys of a map.
    """
    offsets = maps.offsets.to_numpy().astype(np.int64)
    is_valid = maps.is_valid().to_numpy(zero_copy_only=False)
    counts = np.where(is_valid, np.diff(offsets), 0)
    rows = np.repeat(np.arange(len(maps)), counts)
    ends = np.cumsum(counts)
    places = np.arange(len(rows)) + np.repeat(offsets[:-1] - (ends - counts), counts)
    for start in range(0, len(rows), _PAIRS):
        chunk = slice(start, start + _PAIRS)
        row_numbers, pair_numbers = pa.array(rows[chunk]), pa.array(places[chunk])
        times = None if last_access is None else last_access.take(row_numbers)
        pairs = StateRows(maps.items.take(pair_numbers), maps.keys.take(pair_numbers), times)
        yield keys.take(row_numbers), pairs


def _before(times: NDArray[np.int64] | None) -> Sequence[Any]:
    """Return the 8 bytes that stand before each value with a TTL, nothing without times."""
    return () if times is None else (times.astype(">i8"),)


def _repeated(data: bytes, count: int) -> list[NDArray[np.uint8]]:
    """Return columns of the bytes of `data`, each so many times."""
    return [np.full(count, byte, np.uint8) for byte in data]


def _writer_as(
    serializer: Serializer | None,
    column_type: KeyType | Serializer | None,
    is_key: bool = False,
) -> ColumnWriter | None:
    """Return the writer of a column of a type, None if the savepoint has another serializer."""
    if column_type is None or serializer is None:
        return None
    own = column_type if isinstance(column_type, Serializer) else serializer_of(column_type)
    if serializer != own:
        return None
    return key_writer(column_type) if is_key else column_writer(column_type)
