"""The changes of a changelog, replayed: the entries of one state in one key group."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from keygroups._serializers.base import Read, Serializer, UnreadableError
from keygroups._serializers.data_input import check_repeated
from keygroups._serializers.scalars import read_count
from keygroups._serializers.streaming import TimerSerializer
from keygroups.savepoint._state.entries import EncodedEntry
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.stored_values import StoredMapValue, joined_elements, stored_value
from keygroups.state_keys import composite_key_joiner

# Flink: StateChangeOperation.
_CLEAR, _SET, _SET_INTERNAL, _ADD, _MERGE_NAMESPACES = range(5)
_ADD_ELEMENT, _ADD_OR_UPDATE_ELEMENT, _REMOVE_ELEMENT = range(5, 8)
_CHANGE_START = 3  # bytes of a change's operation and state number, before its key or timers


class Replay(ABC):
    """The entries of one state in one key group, framed as in canonical savepoints."""

    @abstractmethod
    def start(self, entry: EncodedEntry) -> None:
        """Take an entry that was materialized."""

    @abstractmethod
    def apply(self, change: bytes) -> None:
        """Apply a change; IndexError, struct.error or ValueError where it is none."""

    @abstractmethod
    def finish(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries that remain, by key, and forget them."""


class _ValueReplay(Replay):
    """VALUE, REDUCING and AGGREGATING.

    Flink: ValueStateChangeApplier, ReducingStateChangeApplier, AggregatingStateChangeApplier.
    """

    def __init__(self, state: StateDescriptor) -> None:
        self._entries: dict[bytes, Any] = {}
        self._state = state
        self._stored = stored_value(state)
        self._scope = _Scope(state)

    def start(self, entry: EncodedEntry) -> None:
        """Take an entry that was materialized."""
        self._entries[entry.key] = entry.value

    def apply(self, change: bytes) -> None:
        """Apply a change to the key and namespace that it starts with."""
        key, namespace, pos = self._scope.read(change, _CHANGE_START)
        scope = self._scope.join(key, namespace)
        operation = change[0]
        if operation == _CLEAR:
            self._entries.pop(scope, None)
            _check_end(change, pos)
        elif operation == _MERGE_NAMESPACES:
            self._merge(key, scope, change, pos)
        else:
            self._update(operation, scope, change, pos)

    def _merge(self, key: bytes, scope: bytes, change: bytes, pos: int) -> None:
        """Move the state of some namespaces to another, the one that the change starts with."""
        _, pos = self._scope.read_namespace(change, pos)
        count, pos = read_count(change, pos)
        merged = []
        for _ in range(count):
            namespace, pos = self._scope.read_namespace(change, pos)
            source = self._entries.pop(self._scope.join(key, namespace), None)
            if source is not None:
                merged.append(source)
        _check_end(change, pos)
        target = self._entries.get(scope)
        if target is not None:
            merged.insert(0, target)
        if merged:
            self._entries[scope] = self._merged(merged)

    def _merged(self, values: list[Any]) -> Any:
        if len(values) > 1:
            raise ValueError("windows merge, which takes the job's own function")
        return values[0]

    def _update(self, operation: int, scope: bytes, change: bytes, pos: int) -> None:
        if operation not in (_SET, _SET_INTERNAL):
            raise _unknown(operation)
        self._entries[scope] = change[pos:]

    def finish(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries that remain, by key, and forget them."""
        entries, self._entries = self._entries, {}
        for scope in sorted(entries):
            yield from self._framed(scope, entries[scope])

    def _framed(self, scope: bytes, value: Any) -> Iterator[tuple[bytes, bytes]]:
        yield scope, value


class _ListReplay(_ValueReplay):
    """LIST: elements, or what several are with separators between them.

    Flink: ListStateChangeApplier.
    """

    def start(self, entry: EncodedEntry) -> None:
        """Take an entry that was materialized, of which a list may have no elements."""
        self._entries[entry.key] = [entry.value] if entry.value else []

    def _merged(self, values: list[list[bytes]]) -> list[bytes]:
        return [element for elements in values for element in elements]

    def _update(self, operation: int, scope: bytes, change: bytes, pos: int) -> None:
        if operation == _ADD_ELEMENT:
            elements = [change[pos:]]
        elif operation in (_SET, _SET_INTERNAL, _ADD):
            elements = self._list(change, pos)
        else:
            raise _unknown(operation)
        if operation in (_SET, _SET_INTERNAL):
            self._entries.pop(scope, None)
        if elements:
            self._entries.setdefault(scope, []).extend(elements)

    def _list(self, change: bytes, pos: int) -> list[bytes]:
        """Return the bytes of a list in a change; none of one without elements."""
        read = _checked(self._stored.framer(), self._stored.serializer)
        count, _ = read_count(change, pos)
        elements, pos = read(change, pos)
        _check_end(change, pos)
        return [elements] if count else []

    def _framed(self, scope: bytes, value: Any) -> Iterator[tuple[bytes, bytes]]:
        yield scope, joined_elements(value)


class _MapReplay(_ValueReplay):
    """MAP: by user key the values, each after a mark of null.

    Flink: MapStateChangeApplier.
    """

    _stored: StoredMapValue
    _repeated = _there = 0  # Bytes of keys that maps have once, and of these changes.

    def start(self, entry: EncodedEntry) -> None:
        """Take an entry that was materialized."""
        size = self._scope.size(entry.key)
        values = self._entries.setdefault(entry.key[:size], {})
        values[entry.key[size:]] = entry.value

    def _merge(self, key: bytes, scope: bytes, change: bytes, pos: int) -> None:
        raise _unknown(_MERGE_NAMESPACES)

    def _update(self, operation: int, scope: bytes, change: bytes, pos: int) -> None:
        assert self._state.user_key_serializer is not None
        read_user_key = _reader(self._state.user_key_serializer)
        if operation == _ADD:
            read_item = self._stored.item_framer(self._state.user_key_serializer)
            read_item = _checked(read_item, self._stored.serializer)
            values = self._entries.setdefault(scope, {})
            count, pos = read_count(change, pos)
            self._check_repeated(count * len(scope), len(change))
            for _ in range(count):
                (user_key, value), pos = read_item(change, pos)
                values[user_key] = value
            _check_end(change, pos)
            return
        _, middle = read_user_key(change, pos)
        user_key = change[pos:middle]
        if operation in (_ADD_ELEMENT, _ADD_OR_UPDATE_ELEMENT):
            self._entries.setdefault(scope, {})[user_key] = (
                self._stored.before_value + change[middle:]
            )
        elif operation == _REMOVE_ELEMENT:
            _check_end(change, middle)
            self._entries.get(scope, {}).pop(user_key, None)
        else:
            raise _unknown(operation)

    def _check_repeated(self, repeated: int, size: int) -> None:
        """Refuse keys that maps have once if they are too long for so many user keys."""
        self._repeated += repeated
        self._there += size
        check_repeated(self._repeated, self._there)

    def _framed(self, scope: bytes, value: Any) -> Iterator[tuple[bytes, bytes]]:
        for user_key in sorted(value):
            yield scope + user_key, value[user_key]


class _TimerReplay(Replay):
    """Timers, which have no value.

    Flink: PriorityQueueStateChangeApplier.
    """

    def __init__(self, state: StateDescriptor) -> None:
        self._timers: set[bytes] = set()
        self._read = _reader(TimerSerializer(state.key_serializer, state.namespace_serializer))

    def start(self, entry: EncodedEntry) -> None:
        """Take a timer that was materialized."""
        self._timers.add(entry.key)

    def apply(self, change: bytes) -> None:
        """Add timers, or take one away."""
        if change[0] == _REMOVE_ELEMENT:
            self._timers.discard(change[_CHANGE_START:])
        elif change[0] == _ADD_ELEMENT:
            count, pos = read_count(change, _CHANGE_START)
            for _ in range(count):
                start = pos
                _, pos = self._read(change, start)
                self._timers.add(change[start:pos])
            _check_end(change, pos)
        else:
            raise _unknown(change[0])

    def finish(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the timers that are left, and forget them."""
        timers, self._timers = self._timers, set()
        for timer in sorted(timers):
            yield timer, b""


_REPLAYS: dict[str, Callable[[StateDescriptor], Replay]] = {
    "LIST": _ListReplay,
    "MAP": _MapReplay,
    "PRIORITY_QUEUE": _TimerReplay,
}


def replay_of(state: StateDescriptor) -> Replay:
    """Return the Replay of a state; UnreadableError where that takes the job's own classes."""
    return _REPLAYS.get(state.kind, _ValueReplay)(state)


class _Scope:
    """The key and the namespace of a change or of an entry, as bytes.

    `join` puts them together as RocksDB does.
    """

    def __init__(self, state: StateDescriptor) -> None:
        key, namespace = state.key_serializer, state.namespace_serializer
        self._read_key, self._read_namespace = _reader(key), _reader(namespace)
        self.join = composite_key_joiner(key, namespace)

    def read(self, change: bytes, pos: int) -> tuple[bytes, bytes, int]:
        """Return key, namespace, and where they end."""
        _, middle = self._read_key(change, pos)
        namespace, end = self.read_namespace(change, middle)
        return change[pos:middle], namespace, end

    def read_namespace(self, change: bytes, pos: int) -> tuple[bytes, int]:
        """Return a namespace, and where it ends."""
        _, end = self._read_namespace(change, pos)
        return change[pos:end], end

    def size(self, encoded_key: bytes) -> int:
        """Return the size in bytes of key and namespace at the start of an encoded key."""
        _, middle = self._read_key(encoded_key, 0)
        # Where the bytes do not tell them apart, each has its length behind it.
        length_bytes = len(self.join(b"", b"")) // 2
        key = encoded_key[:middle]
        namespace, _ = self.read_namespace(encoded_key, len(self.join(key, b"")) - length_bytes)
        return len(self.join(key, namespace))


def _reader(serializer: Serializer) -> Read:
    return _checked(serializer.read, serializer)


def _checked(read: Read | None, serializer: Serializer) -> Read:
    """Return a reader; UnreadableError where the serializer is why there is none."""
    if read is None:
        raise UnreadableError(f"{serializer} takes the job's own classes to read")
    return read


def _check_end(change: bytes, pos: int) -> None:
    if pos != len(change):
        raise ValueError(f"a change of {pos} bytes in {len(change)}")


def _unknown(operation: int) -> ValueError:
    return ValueError(f"operation {operation} is not known there")
