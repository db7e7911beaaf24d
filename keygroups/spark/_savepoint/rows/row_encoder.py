"""From rows to the bytes of entries: the first half of writing a savepoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any

from keygroups._checks import null_key, show
from keygroups.errors import InvalidValueError, KeyGroupsError
from keygroups.savepoint._columns.arrow_values import values
from keygroups.savepoint._columns.column_types import column_of_key_type
from keygroups.savepoint._columns.columns import array_of
from keygroups.savepoint._state.writing.entry_encoder import EncodedEntry, EntryEncoder
from keygroups.savepoint._tasks.write import WriteTask
from keygroups.spark._savepoint.rows.column_encoder import (
    KeyColumn,
    StateEncoder,
    of_pairs,
    rows_of_state,
)
from keygroups.spark._savepoint.rows.column_writers import UnwrittenError, bytes_array
from keygroups.spark._savepoint.rows.entry_batches import entry_batch
from keygroups.spark._savepoint.rows.state_columns import (
    KEY,
    KEY_GROUP,
    LAST_ACCESS,
    StateColumns,
    column_to_write,
)
from keygroups.types import KeyType


@dataclass(frozen=True)
class RowEncoder:
    """Makes entries of rows; `mapInArrow` calls it with the batches of a partition.

    It may be pickled. `uid` is the operator's, `task` any of its tasks, `states` are by number.
    """

    uid: str
    task: WriteTask
    key_type: KeyType
    has_ttl: bool
    states: tuple[StateColumns, ...]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the entries of each state in each batch.

        Raises InvalidValueError where a key is null, and InvalidTypeError or InvalidValueError
        for what is no entry.
        """
        task, encoder = self.task, self.task.encoder()
        key_column = KeyColumn(self.key_type, task.states[0].key_serializer, task.max_parallelism)
        states = [of_pairs(state) if state.is_map else state for state in self.states]
        by_column = [
            StateEncoder(number, *state, task.allow_any_last_access)
            for number, state in enumerate(zip(states, task.states))
        ]
        by_row = [(_user_key_reader(state), _value_reader(state)) for state in states]
        for batch in batches:
            of_batch = self._keys(encoder, batch)
            of_batch.check(key_column)
            encoded_keys = of_batch.encoded(key_column)
            for number, (given, state, read) in enumerate(zip(self.states, states, by_row)):
                for rows, encoded in rows_of_state(given, batch, encoded_keys):
                    try:
                        entries = by_column[number].entries(rows, encoded)
                    except UnwrittenError:
                        keys = of_batch if rows is batch else self._keys(encoder, rows)
                        times = (
                            rows.column(LAST_ACCESS).to_pylist() if self.has_ttl else repeat(None)
                        )
                        of_keys = (keys.key_groups, keys.values, encoded.to_pylist(), times)
                        columns = zip(*of_keys, *(of(rows) for of in read))
                        entries = entry_batch([*_entries(encoder, number, state, columns)])
                    if entries.num_rows:
                        yield entries

    def _keys(self, encoder: EntryEncoder, batch: Any) -> _Keys:
        return _Keys(f"key of operator {self.uid!r}", self.key_type, encoder, batch)


class _Keys:
    """The keys of a batch of rows, by column or else one by one; `name` is what errors say."""

    def __init__(self, name: str, key_type: KeyType, encoder: EntryEncoder, batch: Any) -> None:
        self._name = name
        self._column = column_of_key_type(key_type)
        self._encoder = encoder
        self._batch = batch

    @cached_property
    def key_groups(self) -> list[int]:
        """The key groups, as Spark computed them."""
        key_groups: list[int] = self._batch.column(KEY_GROUP).to_pylist()
        return key_groups

    @cached_property
    def values(self) -> list[Any]:
        """The keys."""
        return values(self._name, self._batch.column(KEY), self._column)

    def check(self, key_column: KeyColumn) -> None:
        """Refuse nulls, and keys that are others each time that they are asked for.

        What Spark computed of the keys is compared with what they are: of those that are hashed
        one by one with the first, as all would take as long as the rest.
        """
        if self._batch.column(KEY_GROUP).null_count:
            raise InvalidValueError(null_key(self._name))
        row = 0
        with suppress(UnwrittenError):
            computed_of_all = key_column.key_groups(self._batch.column(KEY))
            is_other = computed_of_all != self._batch.column(KEY_GROUP).to_numpy()
            if not is_other.any():
                return
            row = int(is_other.argmax())
        if not self.values:
            return
        key, key_group = self.values[row], self.key_groups[row]
        computed = self._encoder.key_group(key)
        if computed != key_group:
            raise InvalidValueError(
                f"{self._name} must be the same each time, got key group {key_group} and then "
                f"{show(key)} of key group {computed}: save the DataFrame first"
            )

    def encoded(self, key_column: KeyColumn) -> Any:
        """Return the bytes of the keys, with which those of the entries' keys start."""
        try:
            return key_column.encoded(self._batch.column(KEY))
        except UnwrittenError:
            return bytes_array(map(self._encode, self.values))

    def _encode(self, key: Any) -> bytes:
        try:
            return self._encoder.encode_key(key)
        except KeyGroupsError as error:
            raise type(error)(f"{self._name}, {show(key)}: {error}") from None


def _user_key_reader(state: StateColumns) -> Callable[[Any], Iterable[Any]]:
    place = state.user_key
    if place is None or state.user_key_type is None:
        return lambda batch: repeat(None)
    name, column = f"user key of state {state.name!r}", column_to_write(state.user_key_type)
    return lambda batch: values(name, batch.column(place), column)


def _value_reader(state: StateColumns) -> Callable[[Any], Iterable[Any]]:
    """Return what takes the values of a state from a batch, None for no entry."""
    name, column = f"value of state {state.name!r}", column_to_write(state.value_type)
    if state.is_array:
        column = array_of(column)

    def read(batch: Any) -> Iterable[Any]:
        restored = values(name, batch.column(state.value), column)
        if state.is_array:
            return (listed or None for listed in restored)  # [] is no entry
        if state.is_element:
            return (None if value is None else [value] for value in restored)
        return restored

    return read


def _entries(
    encoder: EntryEncoder, number: int, state: StateColumns, rows: Iterable[tuple[Any, ...]]
) -> Iterator[EncodedEntry]:
    """Yield the entries of a state; rows are key group, key, its bytes, time, user key, value."""
    is_map, encode = state.user_key is not None, encoder.encode_value
    for key_group, key, start, time, user_key, value in rows:
        if (user_key if is_map else value) is None:
            if value is None:
                continue
            raise InvalidValueError(
                f"user key of state {state.name!r} is null for key {show(key)}, and its value "
                f"is {show(value)}"
            )
        try:
            entry_key, encoded = encode(number, start, value, user_key, time)
        except KeyGroupsError as error:
            raise type(error)(f"key {show(key)}: {error}") from None
        yield EncodedEntry(key_group, number, entry_key, encoded)
