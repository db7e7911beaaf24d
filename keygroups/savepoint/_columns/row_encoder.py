"""Encoders of rows as entries: by whole columns, or row by row where a column has no writer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import repeat
from typing import Any

import pyarrow as pa

from keygroups._checks import show
from keygroups.errors import KeyGroupsError
from keygroups.savepoint._columns.arrow_values import values
from keygroups.savepoint._columns.column_encoder import (
    KeyColumnEncoder,
    Keys,
    StateEncoder,
    StateRows,
)
from keygroups.savepoint._columns.columns import ArrowColumn
from keygroups.savepoint._columns.entry_batches import BYTES, entry_batch
from keygroups.savepoint._columns.scalar_writers import UnwrittenError
from keygroups.savepoint._state.entries import EncodedEntry
from keygroups.savepoint._state.writing.entry_encoder import EntryEncoder


class KeyEncoder:
    """Makes the bytes and the key groups of keys: a whole column at once, or else one by one.

    Errors name the column `name`, and begin with `before` where they name one key. `column`
    restores the keys that have to be looked at one by one.
    """

    def __init__(
        self,
        name: str,
        before: str,
        column: ArrowColumn,
        by_column: KeyColumnEncoder,
        encoder: EntryEncoder,
    ) -> None:
        self._name = name
        self._before = before
        self._column = column
        self._by_column = by_column
        self._encoder = encoder

    def keys(self, array: pa.Array, key_groups: pa.Array | None = None) -> Keys:
        """Return the Keys of a column, with `key_groups` if they are known.

        Raises InvalidValueError or InvalidTypeError for the first value that is no key.
        """
        try:
            if key_groups is None:
                return self._by_column.keys(array)
            return Keys(array, key_groups, self._by_column.encoded(array))
        except UnwrittenError:
            keys = self.values(array)
            if key_groups is None:
                key_groups = pa.array(self._each(self._encoder.key_group, keys), pa.int32())
            return Keys(
                array, key_groups, pa.array(self._each(self._encoder.encode_key, keys), BYTES)
            )

    def values(self, array: pa.Array) -> list[Any]:
        """Return the keys of an array."""
        return values(self._name, array, self._column)

    def _each(self, function: Callable[[Any], Any], keys: Iterable[Any]) -> Iterator[Any]:
        for key in keys:
            try:
                yield function(key)
            except KeyGroupsError as error:
                raise type(error)(f"{self._before} {show(key)}: {error}") from None


class RowEncoder:
    """Makes entries of the rows of the operator's state with a number.

    `by_column` is None for state that only the row-by-row encoder writes. `columns` restore the
    values of the fields of StateRows for that encoder; times need none.
    """

    def __init__(
        self,
        number: int,
        keys: KeyEncoder,
        by_column: StateEncoder | None,
        columns: Mapping[str, ArrowColumn],
        encoder: EntryEncoder,
    ) -> None:
        self._number = number
        self._name = encoder.states[number].name
        self._keys = keys
        self._by_column = by_column
        self._columns = columns
        self._encode = encoder.encode_value

    def entries(self, keys: Keys, rows: StateRows) -> pa.RecordBatch:
        """Return the entries of rows.

        Raises InvalidTypeError, InvalidValueError or UnsupportedKeyTypeError for the first row
        that is no entry.
        """
        if self._by_column is not None:
            try:
                return self._by_column.entries(keys, rows)
            except UnwrittenError:
                pass
        return entry_batch(self._by_row(keys, rows))

    def _by_row(self, keys: Keys, rows: StateRows) -> Iterator[EncodedEntry]:
        number, encode = self._number, self._encode
        arguments = (self._values(*field) for field in zip(StateRows._fields, rows))
        key_groups, starts = keys.key_groups.to_pylist(), keys.encoded.to_pylist()
        for row, (key_group, start, *fields) in enumerate(zip(key_groups, starts, *arguments)):
            try:
                yield EncodedEntry(key_group, number, *encode(number, start, *fields))
            except KeyGroupsError as error:
                [key] = self._keys.values(keys.column.slice(row, 1))
                raise type(error)(f"state {self._name!r}, key {show(key)}: {error}") from None

    def _values(self, field: str, array: pa.Array | None) -> Iterable[Any]:
        if array is None:
            return repeat(None)
        if field not in self._columns:
            numbers: list[Any] = array.to_pylist()
            return numbers
        return values(f"{field} of state {self._name!r}", array, self._columns[field])
