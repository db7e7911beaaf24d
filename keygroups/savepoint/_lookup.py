"""Looks up the keyed state of one key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
    """Looks up a key of an operator; raises what `Operator.get` raises for the key.

    `state` is any of the states, which have the same keys.
    """

    def __init__(self, state: StateDescriptor, key: Any, max_parallelism: int) -> None:
        serializer = state.key_serializer
        if not is_in_order(serializer):
            raise UnsupportedKeyTypeError(
                f"keys of {serializer} cannot be looked up: the bytes of a map or a set are in an "
                "order that only Java has"
            )
        self._key = key
        self._has_one_form = has_one_form(serializer)
        self.key_groups: list[int] | None = None  # key's only one; None: its hash is not known
        self._prefix = b""
        hasher = key_hasher(serializer)
        if hasher is not None:
            key_group = finalise(hasher(key)) % max_parallelism
            self.key_groups = [key_group]
            self._prefix = key_group_prefix(key_group, max_parallelism)
        try:
            sought = sought_key(serializer, key)
        except UnsupportedKeyTypeError as error:
            raise UnsupportedKeyTypeError(
                f"keys of {serializer} cannot be looked up but by their bytes, as entries have "
                f"them: {error}"
            ) from None
        self._is_by_value = isinstance(sought, str)
        self._encoded = b"" if isinstance(sought, str) else sought
        if isinstance(sought, str):
            self._sought = SoughtKeys(set(), {sought: b""})
        else:
            self._sought = SoughtKeys({sought}, {})
        self._key_bytes: bytes | None = None  # bytes of the first entry that was read as the key

    def look_up(self, tasks: Sequence[ReadTask], meter: Meter | None) -> dict[str, Any]:
        """Return the key's values by state name, without the states that have none."""
        # RocksDB seeks one form of the bytes: where a key has several, all entries are read.
        keys = frozenset([self._prefix + self._encoded]) if self._has_one_form else None
        entries: dict[str, list[StateEntry]] = {}
        states: dict[str, StateDescriptor] = {}
        for task in ahead([replace(task, keys=keys) for task in tasks], meter=meter):
            of_task = {state.name: state for state in task.descriptors()}
            states.update(of_task)
            for entry in self._entries(task, of_task):
                entries.setdefault(entry.state, []).append(entry)
        return {name: _of_state(states[name], held, self._key) for name, held in entries.items()}

    def _entries(
        self, task: ReadTask, states: Mapping[str, StateDescriptor]
    ) -> Iterator[StateEntry]:
        """Yield the entries of the key without decoding those of other keys."""
        base = task.files.base
        is_sought = {name: self._test(state) for name, state in states.items()}
        reads = {
            name: layout_of(state).decoding(task.subtask).framed for name, state in states.items()
        }
        for name, key_group, _, key, value in task.framed_entries(has_keys=False):
            try:
                if not is_sought[name](key):
                    continue
                entry = reads[name](key_group, key, value)
            except UnreadableError as error:
                raise SavepointError(
                    f"{base}: of {states[name]} no key is found: {error}"
                ) from None
            except (*TRUNCATED, ValueError) as error:
                raise not_an_entry(f"{base}, {states[name]}", key, error) from None
            self._check_same(entry)
            if not _is_known(states[name], entry):
                raise SavepointError(
                    f"{base}: of {states[name]} the bytes do not say what is of key "
                    f"{show(self._key)} and what is behind it"
                )
            yield entry._replace(key=None)  # a large key would be held once for each user key

    def _check_same(self, entry: StateEntry) -> None:
        """Refuse a second key that is read as this one, such as the same list of another class."""
        if self._is_by_value and self._key_bytes not in (None, entry.key_bytes):
            raise SavepointError(
                f"of {entry.state!r} two keys are read as {show(self._key)}, of the bytes "
                f"{show(self._key_bytes)} and {show(entry.key_bytes)}"
            )
        self._key_bytes = entry.key_bytes

    def _test(self, state: StateDescriptor) -> Callable[[bytes], bool]:
        """Return a test of whether the key bytes of an entry begin with the key."""
        encoded = self._encoded
        if self._has_one_form:
            start = layout_of(state).before_key
            return lambda data: data.startswith(encoded, start)
        find, sought = key_finder(state), self._sought
        return lambda data: find(data, sought) is not None


def contents_by_key(
    tasks: Sequence[ReadTask], meter: Meter | None, label: str
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield each key with its values by state name; the keys of one key group are held."""
    for task in ahead(tasks, meter=meter):
        states = {state.name: state for state in task.descriptors()}
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
