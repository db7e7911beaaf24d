"""From rows to the bytes of entries: the first half of writing a savepoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from keygroups._checks import show
from keygroups.errors import InvalidValueError, KeyGroupsError
from keygroups.savepoint._state.entry_encoder import EncodedEntry, EntryEncoder
from keygroups.savepoint._tasks.write import WriteTask
from keygroups.spark._savepoint.arrow_values import values
from keygroups.spark._savepoint.column_types import column_of_key_type
from keygroups.spark._savepoint.columns import array_of
from keygroups.spark._savepoint.entry_files import entry_batch
from keygroups.spark._savepoint.state_columns import (
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
        encoder = self.task.encoder()
        name = f"key of operator {self.uid!r}"
        key_column = column_of_key_type(self.key_type)
        readers = [(_user_key_reader(state), _value_reader(state)) for state in self.states]
        for batch in batches:
            key_groups = batch.column(KEY_GROUP).to_pylist()
            if None in key_groups:
                raise InvalidValueError(
                    f"{name} is null, on which Flink fails: filter such rows out first"
                )
            keys = values(name, batch.column(KEY), key_column)
            _check_first(encoder, name, keys, key_groups)
            starts = list(_starts(encoder, name, keys))
            times = batch.column(LAST_ACCESS).to_pylist() if self.has_ttl else repeat(None)
            for number, (state, read) in enumerate(zip(self.states, readers)):
                rows = zip(key_groups, keys, starts, times, *(of(batch) for of in read))
                entries = list(_entries(encoder, number, state, rows))
                if entries:
                    yield entry_batch(entries)


def _check_first(
    encoder: EntryEncoder, name: str, keys: Sequence[Any], key_groups: Sequence[int]
) -> None:
    """Compare what Spark found for the first key of a batch with what it is.

    All would take as long as the rest. A key that is another each time it is asked for is found.
    """
    for key, key_group in zip(keys[:1], key_groups):
        computed = encoder.key_group(key)
        if computed != key_group:
            raise InvalidValueError(
                f"{name} must be the same each time, got key group {key_group} and then "
                f"{show(key)} of key group {computed}: save the DataFrame first"
            )


def _starts(encoder: EntryEncoder, name: str, keys: Sequence[Any]) -> Iterator[bytes]:
    """Yield the bytes of the keys, with which those of the entries' keys start."""
    for key in keys:
        try:
            yield encoder.encode_key(key)
        except KeyGroupsError as error:
            raise type(error)(f"{name}, {show(key)}: {error}") from None


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
