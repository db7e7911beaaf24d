"""From the key and the value of an entry to the bytes of a canonical savepoint."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from keygroups._checks import show
from keygroups._serializers.scalars import SORTED_LONG
from keygroups._values.checks import refused_key
from keygroups.errors import InvalidValueError, UnsupportedKeyTypeError
from keygroups.hashing import finalise, hasher_of
from keygroups.savepoint._state.entries import EncodedEntry
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.layouts import layout_of
from keygroups.savepoint._state.stored_values import joined_elements
from keygroups.state_keys import composite_key_reader, timer_key_reader


class EntryEncoder:
    """Writes the entries of an operator as bytes; it may be pickled.

    `states` are the operator's, at least one, all of the same keys; a state's number is its place
    there. `allow_any_last_access` is that of `SavepointWriter.add_operator`. Raises
    UnsupportedKeyTypeError for keys that only the job can write.
    """

    def __init__(
        self,
        states: Sequence[StateDescriptor],
        max_parallelism: int,
        allow_any_last_access: bool = False,
    ) -> None:
        if not states:
            raise InvalidValueError("states must be at least one, got none")
        key = states[0].key_serializer
        if key.key_type is None or key.write is None:
            raise UnsupportedKeyTypeError(f"keys of {key} cannot be written: only the job can")
        self.states = tuple(states)
        self._max_parallelism = max_parallelism
        self._allow_any_last_access = allow_any_last_access
        self._hash_key, self._write_key = hasher_of(key.key_type), key.write_key or key.write
        self._encoders = [layout_of(state).encoder(allow_any_last_access) for state in states]

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.states, self._max_parallelism, self._allow_any_last_access)

    def encode(
        self,
        state: int,
        key: Any,
        value: Any = None,
        user_key: Any = None,
        last_access: int | None = None,
        namespace: Any = None,
        timestamp: int | None = None,
    ) -> EncodedEntry:
        """Return an entry of the state with this number, as bytes with its key group.

        `user_key` is the key in a MAP, None in other states; `last_access` the epoch
        milliseconds of a state with a time to live, which elements of a LIST may have
        themselves, as a TtlValue. `namespace` is None in state without one, else a value of its
        serializer, such as a TimeWindow; `timestamp` the epoch milliseconds of a timer, which has
        no value. Raises InvalidTypeError or InvalidValueError for what is no entry of the state,
        UnsupportedKeyTypeError for what only the job can write.
        """
        code = self._hash_key(key)  # This checks the key too.
        encode = self._encoders[state]
        written = self._write_key(key)
        start, encoded = encode(written, namespace, user_key, value, last_access, timestamp)
        return EncodedEntry(finalise(code) % self._max_parallelism, state, start, encoded)

    def encode_key(self, key: Any) -> bytes:
        """Return the bytes of a key that is known to be of its type, as one with a key group is.

        Raises InvalidValueError for None, and for a null within that Flink does not write.
        """
        if key is None:
            raise refused_key(key)
        return self._write_key(key)

    def encode_value(
        self,
        state: int,
        encoded_key: bytes,
        value: Any,
        user_key: Any = None,
        last_access: int | None = None,
        namespace: Any = None,
        timestamp: int | None = None,
    ) -> tuple[bytes, bytes]:
        """Return the bytes of the key and of the value of an entry.

        `encoded_key` is what `encode_key` returned; the others are those of `encode`, and so is
        what is raised.
        """
        encode = self._encoders[state]
        return encode(encoded_key, namespace, user_key, value, last_access, timestamp)

    def key_group(self, key: Any) -> int:
        """Return the key group of a key."""
        return finalise(self._hash_key(key)) % self._max_parallelism


def joined_lists(
    entries: Iterable[EncodedEntry], states: Collection[int]
) -> Iterator[EncodedEntry]:
    """Yield entries; those of a key that follow one another in some LIST states become one."""
    for (key_group, state, key), of_key in groupby(entries, itemgetter(0, 1, 2)):
        if state in states:
            value = joined_elements(entry.value for entry in of_key)
            yield EncodedEntry(key_group, state, key, value)
        else:
            yield from of_key


def name_of(entry: EncodedEntry, states: Sequence[StateDescriptor]) -> str:
    """Return a name for an entry of some states, for error messages: its key and its state."""
    layout, (_, _, encoded, _) = layout_of(states[entry.state]), entry
    state, start = layout.state, layout.before_key
    parts = (state.key_serializer, state.namespace_serializer)
    if start:
        read = timer_key_reader(*parts)
    else:
        read = composite_key_reader(*parts, state.user_key_serializer)
    key, namespace, user_key, _, _ = read(encoded, start, len(encoded))
    text = f"key {show(key)} in state {state.name!r}"
    if user_key is not None:
        text += f" with the user key {show(user_key)}"
    if namespace is not None:
        text += f" of {show(namespace)}"
    return f"{text} at {SORTED_LONG.read(encoded, 0)[0]}" if start else text
