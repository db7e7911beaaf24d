"""Keyed state of the changelog backend: what was materialized, and changes that are replayed.

A change says what was done to the state of a key in a namespace. They come in the order in which
they were made, as far as those of one key group go, and what a header says of a state comes before
its changes. `FORMAT.md` in `keygroups/savepoint` describes the log.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Container, Generator, Iterator, Mapping, Sequence
from heapq import merge
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

from keygroups._checks import show
from keygroups._serializers.base import (
    TRUNCATED,
    Read,
    Serializer,
    UnreadableError,
    read_serializer,
)
from keygroups._serializers.data_input import Cursor, ReadingContext, check_repeated
from keygroups._serializers.jvm.kryo import KryoSerializer
from keygroups._serializers.scalars import read_count, read_int
from keygroups._serializers.streaming import TimerSerializer
from keygroups.errors import KeyGroupsError, SavepointError
from keygroups.hashing import finalise
from keygroups.savepoint._files.feed import Feed
from keygroups.savepoint._files.files import Files, OpenStream, Planned
from keygroups.savepoint._metadata.handles import ChangelogHandle, ChangesHandle, StreamHandle
from keygroups.savepoint._state.entries import Entry, EntryReader, FramedEntry
from keygroups.savepoint._state.formats.format import Format, NotFramedError, Selection, SizeRun
from keygroups.savepoint._state.header import (
    KeyedHeader,
    StateDescriptor,
    read_keyed_header,
    write_keyed_header,
)
from keygroups.savepoint._state.key_hashes import key_hasher
from keygroups.savepoint._state.layouts import Layout, layout_of
from keygroups.savepoint._state.state_infos import VALUE, read_state_info
from keygroups.savepoint._state.stored_values import StoredMapValue, joined_elements, stored_value
from keygroups.state_keys import composite_key_joiner

# Flink: StateChangeOperation.
_CLEAR, _SET, _SET_INTERNAL, _ADD, _MERGE_NAMESPACES = range(5)
_ADD_ELEMENT, _ADD_OR_UPDATE_ELEMENT, _REMOVE_ELEMENT, _METADATA = range(5, 9)
_METADATA_VERSIONS = (6, 7)  # versions of a state's header: Flink 1.17, and 1.18 on
_NO_KEY_GROUP = -1  # key group of headers; Flink: AbstractStateChangeLogger.COMMON_KEY_GROUP

_CHANGE_START = 3  # bytes of a change's operation and state number, before its key or timers

_Bytes = bytes  # The property `bytes` of Changelog hides that name.
_Changes = dict[int, list[tuple[str, bytes]]]
"""By key group the changes, each with the name of its state."""


class Changelog(Format):
    """Keyed state of the changelog backend; `materialized` is what its changes start from.

    The changes of the key groups that are asked for are held, and the state of one key group.

    Flink: ChangelogStateBackendHandleImpl, ChangelogBackendRestoreOperation.
    """

    def __init__(
        self,
        files: Files,
        handle: ChangelogHandle,
        materialized: Sequence[Format],
        context: ReadingContext,
    ) -> None:
        self._files = files
        self._context = context
        self._changes = handle.changes
        self._materialized = materialized

    @property
    def bytes(self) -> int:
        """The size in bytes of the materialized state and the changes."""
        materialized = sum(keyed.bytes for keyed in self._materialized)
        return materialized + sum(handle.size for handle in self._changes)

    def header(self) -> KeyedHeader:
        """Read the headers of what was materialized, and what the changes say of their states."""
        return self._read(())[0]

    def header_plan(self) -> Iterator[Planned]:
        """Plan to read the headers, and all of the changes."""
        for keyed in self._materialized:
            yield from keyed.header_plan()
        for handle in self._changes:
            for stream, places in groupby(handle.streams, itemgetter(1)):
                offset, _ = next(places)
                yield stream, [(0, 1), (offset + 1, stream.file_size)]

    def plan(self, selection: Selection) -> Iterator[Planned]:
        """Plan to read the same, if there are changes, and then what was materialized."""
        if self._changes:
            yield from self.header_plan()
        for keyed in self._materialized:
            yield from keyed.plan(selection)

    def weights(self) -> Mapping[int, int]:
        """Return the weights of the materialized state; those of the changes are not known."""
        weights: Counter[int] = Counter()
        for keyed in self._materialized:
            weights.update(keyed.weights())
        return weights

    def size_plan(self, selection: Selection) -> Iterator[Planned]:
        """Plan to read how many bytes each key group has."""
        if self._changes:
            yield from super().size_plan(selection)
            return
        for keyed in self._materialized:
            yield from keyed.size_plan(selection)

    def sizes(self, selection: Selection) -> Iterator[SizeRun]:
        """Yield the sizes of the key groups, counted entry by entry if there are changes."""
        if self._changes:
            return super().sizes(selection)
        return chain.from_iterable(keyed.sizes(selection) for keyed in self._materialized)

    def _entries(
        self, selection: Selection, reader_of: Callable[[Layout], EntryReader[Entry]]
    ) -> Iterator[Entry]:
        if not self._changes:  # A native savepoint never has any.
            yield from merge(
                *(keyed._entries(selection, reader_of) for keyed in self._materialized),
                key=lambda entry: entry.key_group,
            )
            return
        selection = selection._replace(keys=None)  # changes are of all
        header, changes = self._read(selection.key_groups)
        states = {state.name: state for state in header.states if selection.has(state.name)}
        changed = {name for of_group in changes.values() for name, _ in of_group}
        replays = self._replays(
            selection, [state for name, state in states.items() if name in changed]
        )
        read = self._reader_of(states, reader_of)
        materialized = merge(
            *(keyed.framed_entries(selection, has_keys=False) for keyed in self._materialized),
            key=lambda entry: entry.key_group,
        )
        ahead = next(materialized, None)
        for key_group in selection.key_groups:
            while ahead is not None and ahead.key_group == key_group:
                if ahead.state in replays:
                    self._replay(selection, key_group, states[ahead.state], replays, ahead)
                else:
                    yield read(ahead.state, key_group, ahead.encoded_key, ahead.encoded_value)
                ahead = next(materialized, None)
            for name, change in changes.pop(key_group, ()):
                if name in replays:
                    self._replay(selection, key_group, states[name], replays, change)
            for name, replay in replays.items():
                for key, value in replay.finish():
                    yield read(name, key_group, key, value)

    def _replays(
        self, selection: Selection, states: Sequence[StateDescriptor]
    ) -> dict[str, _Replay]:
        """Return a replay for each of some states, by name."""
        replays: dict[str, _Replay] = {}
        for state in states:
            try:
                replays[state.name] = _REPLAYS[state.kind](state)
            except UnreadableError as error:
                raise self._not_framed(selection, state.name, error) from None
        return replays

    def _replay(
        self,
        selection: Selection,
        key_group: int,
        state: StateDescriptor,
        replays: Mapping[str, _Replay],
        change: FramedEntry | _Bytes,
    ) -> None:
        """Take an entry that was materialized, or apply a change."""
        replay = replays[state.name]
        try:
            if isinstance(change, bytes):
                replay.apply(change)
            else:
                replay.start(change)
        except UnreadableError as error:
            raise self._not_framed(selection, state.name, error) from None
        except (*TRUNCATED, ValueError) as error:
            raise self._error(f"of {state} in key group {key_group}: {error}") from None

    def _reader_of(
        self,
        states: Mapping[str, StateDescriptor],
        reader_of: Callable[[Layout], EntryReader[Entry]],
    ) -> Callable[[str, int, _Bytes, _Bytes], Entry]:
        """Return a reader of entries, which takes the name of their state."""
        reads = {name: reader_of(layout_of(state)).framed for name, state in states.items()}
        check_key = self._key_check(states) if self._context.key_bytes else None

        def read(name: str, key_group: int, key: _Bytes, value: _Bytes) -> Entry:
            if check_key is not None:
                check_key(name, key_group, key)
            try:
                return reads[name](key_group, key, value)
            except (*TRUNCATED, ValueError) as error:
                raise self._error(
                    f"of {states[name]}: key {show(key)} is no entry: {error}"
                ) from None

        return read

    def _key_check(
        self, states: Mapping[str, StateDescriptor]
    ) -> Callable[[str, int, _Bytes], None]:
        """Return a check that raises if a key, read as key_types says, has another key group."""
        starts = {name: layout_of(state).before_key for name, state in states.items()}
        groups = self._context.max_parallelism

        def check(name: str, key_group: int, encoded: _Bytes) -> None:
            serializer = states[name].key_serializer
            hasher = key_hasher(serializer)
            assert serializer.read is not None
            assert hasher is not None
            try:
                key, _ = serializer.read(encoded, starts[name])
                own = finalise(hasher(key)) % groups
            except (*TRUNCATED, ValueError, KeyGroupsError) as error:
                raise self._error(f"have a key that is no {serializer}: {error}") from None
            if own != key_group:
                raise self._error(
                    f"have key {show(key)} in key group {key_group}, which is of key group {own} "
                    f"as {serializer}, that key_types says"
                )

        return check

    def _read(self, key_groups: Container[int]) -> tuple[KeyedHeader, _Changes]:
        """Read the headers, and the changes of some key groups."""
        headers = [keyed.header() for keyed in self._materialized]
        keys = {header.key_bytes for header in headers}
        states = dict.fromkeys(
            (state.name, data)
            for header in headers
            for state, data in zip(header.states, header.state_bytes)
        )
        changes: _Changes = {}
        names: dict[int, str] = {}
        logged_states: dict[_Bytes, tuple[int, str, _Bytes | None, _Bytes]] = {}  # headers repeat
        for handle in self._changes:
            for key_group, change in self._changes_of(handle):
                if key_group == _NO_KEY_GROUP:
                    if change not in logged_states:
                        cursor = Cursor(
                            change, f"{self._files.base}, the changes", context=self._context
                        )
                        logged_states[change] = _logged_state(cursor)
                    number, name, key, data = logged_states[change]
                    names[number] = name
                    states[name, data] = None
                    if key is not None:
                        keys.add(key)
                elif key_group in key_groups:
                    state = names.get(int.from_bytes(change[1:3], "big"))
                    if state is None:
                        raise self._error(
                            f"in key group {key_group} are of a state that no header has"
                        )
                    changes.setdefault(key_group, []).append((state, change))
        by_name = dict(states.keys())
        if len(by_name) < len(states):
            raise self._error("that have other serializers than what came before")
        key_bytes = self._context.key_bytes
        if key_bytes and not keys:
            keys.add(key_bytes)
        if len(keys) != 1:
            raise self._error(
                "say of several types of keys"
                if keys
                else "do not say what the keys are, as there are no timers, and nothing that was "
                "materialized, nor does key_types of read_savepoint"
            )
        header = write_keyed_header(keys.pop(), list(by_name.values()))
        stream = OpenStream(StreamHandle(len(header), header), None, self._files.base)
        read = read_keyed_header(stream, len(header), self._context)
        if key_bytes:
            serializer = read_serializer(Cursor(key_bytes, "key_types", context=self._context))
            if serializer != read.key_serializer:
                raise self._error(f"have keys of {read.key_serializer}, key_types {serializer}")
        return read, changes

    def _changes_of(self, handle: ChangesHandle) -> Iterator[tuple[int, _Bytes]]:
        """Yield the changes of a handle, each with its key group.

        Flink: StateChangelogHandleStreamHandleReader, ChangelogStreamWrapper.wrapAndSeek.
        """
        yield from handle.changes
        seen = set()
        ends = handle.ends or [stream.size for _, stream in handle.streams]
        pieces = [(*piece, end) for piece, end in zip(handle.streams, ends)]
        for stream, places in groupby(pieces, itemgetter(1)):
            if stream in seen:
                raise self._error("come back to a file")
            seen.add(stream)
            with self._files.open(stream) as opened:
                if opened.read(0, 1) != b"\0":
                    raise self._error("are compressed, which is not read here")
                end = 1
                for offset, _, following in places:
                    if offset + 1 < end:
                        raise self._error("overlap in their file")
                    # No further than what another handle has in the file.
                    past = min(following + 1, opened.size)
                    feed = Feed(opened, offset + 1, past, is_compressed=False)
                    end = yield from _change_set(feed)

    def _not_framed(
        self, selection: Selection, name: str, error: UnreadableError
    ) -> NotFramedError:
        """Return the error for a change in which nothing says where a key or a value ends.

        It names the states of which nothing takes the job's classes.
        """
        states = {state.name: state for state in self._read(())[0].states}
        names = ", ".join(
            show(state.name)
            for state in states.values()
            if not any(map(_may_be_unread, filter(None, _serializers(state))))
        )
        return NotFramedError(
            str(
                self._error(
                    f"cannot be replayed: operator {show(selection.operator)}: {states[name]}: "
                    f"{error}; can be read: {names or 'no state'}"
                )
            )
        )

    def _error(self, message: str) -> SavepointError:
        return SavepointError(
            f"{self._files.base}: the changes of the changelog backend {message}: "
            "take a savepoint in canonical format, which has no changes"
        )


def _change_set(feed: Feed) -> Generator[tuple[int, bytes], None, int]:
    """Yield changes that were written at once, with their key groups; return where they end.

    Flink: StateChangeFormat.writeChangeSet.
    """
    for _ in range(feed.read(_read_number)):
        count, key_group = feed.read(_read_number), feed.read(read_int)
        for _ in range(count):
            yield key_group, feed.read(_read_framed)
    return feed.offset


def _read_number(data: bytes, pos: int) -> tuple[int, int]:
    number, pos = read_int(data, pos)
    if number < 0:
        raise ValueError(f"a count of {number}")
    return number, pos


def _read_framed(data: bytes, pos: int) -> tuple[bytes, int]:
    size, pos = read_count(data, pos)
    return data[pos : pos + size], pos + size


def _logged_state(cursor: Cursor) -> tuple[int, str, bytes | None, bytes]:
    """Read what a header says of a state.

    That is its number in changes, its name, of timers what a header says of the key, and what it
    says of the state. Behind it are the time to live and a default value, as the job has them.

    Flink: AbstractStateChangeLogger.logMetaIfNeeded.
    """
    cursor.expect("operation", cursor.u8(), _METADATA)
    cursor.expect("version of a state's header", cursor.i32(), *_METADATA_VERSIONS)
    name, _, _, serializers, state, _ = read_state_info(cursor)
    if cursor.left < 3:
        raise cursor.error("the number of a state is missing")
    number = int.from_bytes(cursor.data[-3:-1], "big")
    timer = serializers.get(VALUE)
    if not isinstance(timer, TimerSerializer):
        return number, name, None, state
    return number, name, timer.parts[0].snapshot_bytes(), state


class _Replay(ABC):
    """The entries of one state in one key group, framed as in canonical savepoints."""

    @abstractmethod
    def start(self, entry: FramedEntry) -> None:
        """Take an entry that was materialized."""

    @abstractmethod
    def apply(self, change: bytes) -> None:
        """Apply a change; IndexError, struct.error or ValueError where it is none."""

    @abstractmethod
    def finish(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries that remain, by key, and forget them."""


class _ValueReplay(_Replay):
    """VALUE, REDUCING and AGGREGATING.

    Flink: ValueStateChangeApplier, ReducingStateChangeApplier, AggregatingStateChangeApplier.
    """

    def __init__(self, state: StateDescriptor) -> None:
        self._entries: dict[bytes, Any] = {}
        self._state = state
        self._stored = stored_value(state)
        self._scope = _Scope(state)

    def start(self, entry: FramedEntry) -> None:
        """Take an entry that was materialized."""
        self._entries[entry.encoded_key] = entry.encoded_value

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

    def start(self, entry: FramedEntry) -> None:
        """Take an entry that was materialized."""
        self._entries[entry.encoded_key] = [entry.encoded_value]

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

    def start(self, entry: FramedEntry) -> None:
        """Take an entry that was materialized."""
        size = self._scope.size(entry.encoded_key)
        values = self._entries.setdefault(entry.encoded_key[:size], {})
        values[entry.encoded_key[size:]] = entry.encoded_value

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


class _TimerReplay(_Replay):
    """Timers, which have no value.

    Flink: PriorityQueueStateChangeApplier.
    """

    def __init__(self, state: StateDescriptor) -> None:
        self._timers: set[bytes] = set()
        self._read = _reader(TimerSerializer(state.key_serializer, state.namespace_serializer))

    def start(self, entry: FramedEntry) -> None:
        """Take a timer that was materialized."""
        self._timers.add(entry.encoded_key)

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


_REPLAYS: dict[str, Callable[[StateDescriptor], _Replay]] = {
    "VALUE": _ValueReplay,
    "REDUCING": _ValueReplay,
    "AGGREGATING": _ValueReplay,
    "LIST": _ListReplay,
    "MAP": _MapReplay,
    "PRIORITY_QUEUE": _TimerReplay,
}


def _may_be_unread(serializer: Serializer) -> bool:
    """Return whether there may be values that take the job's own classes to read."""
    is_of_any = isinstance(serializer, KryoSerializer) and serializer.key_type is None
    return serializer.read is None or is_of_any or any(map(_may_be_unread, serializer.parts))


def _serializers(state: StateDescriptor) -> tuple[Serializer | None, ...]:
    return (
        state.key_serializer,
        state.namespace_serializer,
        state.user_key_serializer,
        state.value_serializer,
    )


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
