"""Looks up the keyed state of keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from keygroups._checks import exact_repr, show
from keygroups._serializers.base import TRUNCATED, UnreadableError
from keygroups._serializers.collections import as_dict, is_in_order
from keygroups._serializers.scalars import NullSerializer
from keygroups._values.rows import TtlValue
from keygroups.errors import SavepointError, UnsupportedKeyTypeError
from keygroups.hashing import finalise
from keygroups.progress import Meter
from keygroups.savepoint._state.entries import StateEntry, not_an_entry
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.key_hashes import key_hasher
from keygroups.savepoint._state.keys import (
    SoughtKeys,
    has_one_form,
    key_finder,
    sought_key,
)
from keygroups.savepoint._state.layouts import has_key_bytes, layout_of
from keygroups.savepoint._tasks.read import ReadTask, ahead
from keygroups.state_keys import key_group_prefix


class Lookup:
    """Looks up keys of an operator; raises what `Operator.get` raises for a key.

    `state` is any of the states, which have the same keys.
    """

    def __init__(self, state: StateDescriptor, keys: Iterable[Any], max_parallelism: int) -> None:
        serializer = state.key_serializer
        if not is_in_order(serializer):
            raise UnsupportedKeyTypeError(
                f"keys of {serializer} cannot be looked up: the bytes of a map or a set are in an "
                "order that only Java has"
            )
        self._serializer = serializer
        self._max_parallelism = max_parallelism
        self._hasher = key_hasher(serializer)
        # The bytes of a key in RocksDB begin with its key group, which takes the hash.
        self._has_one_form = self._hasher is not None and has_one_form(serializer)
        self._sought = SoughtKeys(set(), {})
        self._keys: dict[bytes, Any] = {}  # tokens, as SoughtKeys.add returns, to keys
        self._key_group_of: dict[bytes, int] = {}  # empty if hashes are not known
        self._in_key_groups: dict[int, list[bytes]] = {}
        self._read_as: dict[bytes, bytes | None] = {}  # bytes of the last entry read as a key
        self.tokens = [self._add(key) for key in keys]

    def _add(self, key: Any) -> bytes:
        """Add a key, and return its token."""
        key_group = None
        if self._hasher is not None:
            key_group = finalise(self._hasher(key)) % self._max_parallelism
        try:
            sought = sought_key(self._serializer, key)
        except UnsupportedKeyTypeError as error:
            raise UnsupportedKeyTypeError(
                f"keys of {self._serializer} cannot be looked up but by their bytes, as entries "
                f"have them: {error}"
            ) from None
        token = self._sought.add(sought)
        if token not in self._keys:
            self._keys[token] = key
            if key_group is not None:
                self._key_group_of[token] = key_group
                self._in_key_groups.setdefault(key_group, []).append(token)
        return token

    @property
    def key_groups(self) -> list[int] | None:
        """The key groups of the keys; None where the hash of keys is not known."""
        return None if self._hasher is None else sorted(self._in_key_groups)

    def look_up(self, tasks: Sequence[ReadTask], meter: Meter | None) -> list[dict[str, Any]]:
        """Return the values of each key by state name, without the states that have none."""
        entries: dict[bytes, dict[str, list[StateEntry]]] = {token: {} for token in self._keys}
        states: dict[str, StateDescriptor] = {}
        tasks = [replace(task, keys=self._keys_of(task)) for task in tasks]
        for task in ahead(tasks, meter=meter):
            of_task = {state.name: state for state in task.format.states()}
            states.update(of_task)
            for token, entry in self._entries(task, of_task):
                entries[token].setdefault(entry.state, []).append(entry)
        found = {
            token: {
                name: _of_state(states[name], held, self._keys[token])
                for name, held in by_state.items()
            }
            for token, by_state in entries.items()
        }
        return [found[token] for token in self.tokens]

    def _keys_of(self, task: ReadTask) -> frozenset[bytes] | None:
        """Return the keys that a task may find, as it takes them.

        RocksDB seeks one form of the bytes: where a key has several, or its key group is not
        known, all entries are read.
        """
        if not self._has_one_form:
            return None
        return frozenset(
            key_group_prefix(key_group, self._max_parallelism) + token
            for key_group in task.key_groups
            for token in self._in_key_groups.get(key_group, ())
        )

    def _entries(
        self, task: ReadTask, states: Mapping[str, StateDescriptor]
    ) -> Iterator[tuple[bytes, StateEntry]]:
        """Yield the entries of the keys with their tokens, without decoding those of others."""
        base = task.files.base
        listed = [*states.values()]
        find = [self._finder(state) for state in listed]
        reads = [layout_of(state).decoding(task.subtask).framed for state in listed]
        numbers = {name: number for number, name in enumerate(states)}
        for key_group, number, key, value in task.encoded_entries(numbers):
            try:
                token = find[number](key)
                # Flink finds no key in the key group of another.
                if token is None or self._key_group_of.get(token, key_group) != key_group:
                    continue
                entry = reads[number](key_group, key, value)
            except UnreadableError as error:
                raise SavepointError(
                    f"{base}: of {listed[number]} no key is found: {error}"
                ) from None
            except (*TRUNCATED, ValueError) as error:
                raise not_an_entry(f"{base}, {listed[number]}", key, error) from None
            self._check_same(token, entry)
            if not _is_known(listed[number], entry):
                raise SavepointError(
                    f"{base}: of {listed[number]} the bytes do not say what is of key "
                    f"{show(self._keys[token])} and what is behind it"
                )
            # A large key would be held once for each user key.
            yield token, entry._replace(key=None)

    def _check_same(self, token: bytes, entry: StateEntry) -> None:
        """Refuse a second key that is read as the same, such as the same list of another class."""
        if token in self._sought.encoded:
            return
        before = self._read_as.get(token)
        if before not in (None, entry.key_bytes):
            raise SavepointError(
                f"of {entry.state!r} two keys are read as {show(self._keys[token])}, of the bytes "
                f"{show(before)} and {show(entry.key_bytes)}"
            )
        self._read_as[token] = entry.key_bytes

    def _finder(self, state: StateDescriptor) -> Callable[[bytes], bytes | None]:
        """Return a function from the key bytes of an entry to the token of its key, if sought."""
        sought = self._sought
        if not self._has_one_form:
            find = key_finder(state)
            return lambda data: find(data, sought)
        start, encoded = layout_of(state).before_key, sought.encoded
        # None of these starts as another one does, so that at most one size fits.
        ends = sorted({start + len(token) for token in encoded})

        def find_one_form(data: bytes) -> bytes | None:
            for end in ends:
                token = data[start:end]
                if token in encoded:
                    return token
                if end >= len(data):
                    break
            return None

        return find_one_form


def contents_by_key(
    tasks: Sequence[ReadTask], meter: Meter | None, label: str
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield each key with its values by state name; the keys of one key group are held."""
    for task in ahead(tasks, meter=meter):
        states = {state.name: state for state in task.format.states()}
        for _, entries in groupby(task.entries(), lambda entry: entry.key_group):
            # Two keys of Java may be one in Python, such as 0.0 and -0.0.
            keys: dict[tuple[str, bytes | None], tuple[Any, dict[str, list[StateEntry]]]] = {}
            for entry in entries:
                if not _is_known(states[entry.state], entry):
                    raise SavepointError(
                        f"{task.files.base}: operator {label}: of {states[entry.state]} the bytes "
                        "do not say what is of the key"
                    )
                key = entry.key
                own = keys.setdefault((exact_repr(key), entry.key_bytes), (key, {}))
                own[1].setdefault(entry.state, []).append(entry._replace(key=None))
            for key, held in keys.values():
                known = [name for name in states if name in held]
                yield key, {name: _of_state(states[name], held[name], key) for name in known}


def _of_state(state: StateDescriptor, entries: list[StateEntry], key: Any) -> Any:
    """Return a state's value for a key from its entries; by namespace, if it has any."""
    if isinstance(state.namespace_serializer, NullSerializer):
        return _of_namespace(state, entries, key)
    # Two namespaces of Java may be one in Python.
    groups: dict[str, list[StateEntry]] = {}
    for entry in entries:
        groups.setdefault(exact_repr(entry.namespace), []).append(entry)
    return as_dict(
        [(group[0].namespace, _of_namespace(state, group, key)) for group in groups.values()]
    )


def _of_namespace(state: StateDescriptor, entries: list[StateEntry], key: Any) -> Any:
    if state.value_serializer is None:
        return sorted(entry.timestamp or 0 for entry in entries)
    if state.user_key_serializer is not None:
        return as_dict([(entry.user_key, _value(entry)) for entry in entries])
    if len(entries) > 1:
        raise SavepointError(f"of {state} key {show(key)} has {len(entries)} entries")
    return _value(entries[0])


def _is_known(state: StateDescriptor, entry: StateEntry) -> bool:
    """Return whether an entry's key bytes were told apart from namespace and user key."""
    if entry.key_bytes is None:
        return True
    has_namespace = not isinstance(state.namespace_serializer, NullSerializer)
    return has_key_bytes(state) and not (has_namespace and entry.namespace is None)


def _value(entry: StateEntry) -> Any:
    """Return a value, with its last access if it has one; elements of a LIST have theirs."""
    return entry.value if entry.last_access is None else TtlValue(entry.last_access, entry.value)
