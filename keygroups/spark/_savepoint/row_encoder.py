"""From rows to the bytes of entries: the first half of writing a savepoint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from keygroups._checks import show
from keygroups.errors import InvalidValueError, KeyGroupsError
from keygroups.savepoint._state.entry_encoder import EncodedEntry, EntryEncoder
from keygroups.savepoint._tasks.write import WriteTask
from keygroups.spark._savepoint.arrow_values import lists, values
from keygroups.spark._savepoint.entry_files import entry_batch
from keygroups.spark._savepoint.state_columns import KEY, KEY_GROUP, LAST_ACCESS, StateColumns
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
        for batch in batches:
            key_groups = batch.column(KEY_GROUP).to_pylist()
            if None in key_groups:
                raise InvalidValueError(
                    f"{name} is null, on which Flink fails: filter such rows out first"
                )
            keys = values(name, batch.column(KEY), self.key_type)
            _check_first(encoder, name, keys, key_groups)
            starts = list(_starts(encoder, name, keys))
            times = batch.column(LAST_ACCESS).to_pylist() if self.has_ttl else repeat(None)
            for number, state in enumerate(self.states):
                columns = _user_keys(state, batch), _values(state, batch)
                rows = zip(key_groups, keys, starts, times, *columns)
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


def _user_keys(state: StateColumns, batch: Any) -> Iterable[Any]:
    if state.user_key is None or state.user_key_type is None:
        return repeat(None)
    name = f"user key of state {state.name!r}"
    return values(name, batch.column(state.user_key), state.user_key_type)


def _values(state: StateColumns, batch: Any) -> Iterable[Any]:
    name, array = f"value of state {state.name!r}", batch.column(state.value)
    if state.is_array:
        elements = lists(name, array, state.value_type)
        return (listed or None for listed in elements)  # [] is no entry
    converted = values(name, array, state.value_type)
    if state.is_element:
        return (None if value is None else [value] for value in converted)
    return converted


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
            rest, encoded = encode(number, value, user_key, time)
        except KeyGroupsError as error:
            raise type(error)(f"key {show(key)}: {error}") from None
        yield EncodedEntry(key_group, number, start + rest, encoded)
