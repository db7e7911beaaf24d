"""Keyed state of the changelog backend: what was materialized, and changes that are replayed.

A change says what was done to the state of a key in a namespace. They come in the order in which
they were made, as far as those of one key group go, and what a header says of a state comes before
its changes. `FORMAT.md` in `keygroups/savepoint` describes the log.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from keygroups._checks import show
from keygroups._serializers.base import (
    TRUNCATED,
    Serializer,
    UnreadableError,
    read_serializer,
)
from keygroups._serializers.data_input import Cursor, ReadingContext
from keygroups._serializers.jvm.kryo import KryoSerializer
from keygroups._serializers.scalars import read_count, read_int
from keygroups._serializers.streaming import TimerSerializer
from keygroups.errors import KeyGroupsError, SavepointError
from keygroups.hashing import finalise
from keygroups.savepoint._files.feed import Feed
from keygroups.savepoint._files.files import Files, OpenStream, Planned
from keygroups.savepoint._metadata.handles import ChangelogHandle, ChangesHandle, StreamHandle
from keygroups.savepoint._state.entries import EncodedEntry, Entry, EntryReader
from keygroups.savepoint._state.formats.format import Format, NotFramedError, Selection, SizeRun
from keygroups.savepoint._state.formats.replays import Replay, replay_of
from keygroups.savepoint._state.header import (
    KeyedHeader,
    StateDescriptor,
    read_keyed_header,
    write_keyed_header,
)
from keygroups.savepoint._state.key_hashes import key_hasher
from keygroups.savepoint._state.layouts import Layout, layout_of
from keygroups.savepoint._state.state_infos import VALUE, read_state_info

_METADATA = 8  # the operation before a header; Flink: StateChangeOperation
_METADATA_VERSIONS = (6, 7)  # versions of a state's header: Flink 1.17, and 1.18 on
_NO_KEY_GROUP = -1  # key group of headers; Flink: AbstractStateChangeLogger.COMMON_KEY_GROUP

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
        materialized: Format,
        context: ReadingContext,
    ) -> None:
        self._files = files
        self._context = context
        self._changes = handle.changes
        self._materialized = materialized

    @property
    def bytes(self) -> int:
        """The size in bytes of the materialized state and the changes."""
        return self._materialized.bytes + sum(handle.size for handle in self._changes)

    def headers(self) -> list[KeyedHeader]:
        """Return one header of what was materialized and of the states that changes tell of."""
        return [self._read(())[0]]

    def header_plan(self) -> Iterator[Planned]:
        """Plan to read the headers, and all of the changes."""
        yield from self._materialized.header_plan()
        for handle in self._changes:
            for stream, places in groupby(handle.streams, itemgetter(1)):
                offset, _ = next(places)
                yield stream, [(0, 1), (offset + 1, stream.file_size)]

    def plan(self, selection: Selection) -> Iterator[Planned]:
        """Plan to read the same, if there are changes, and then what was materialized."""
        if self._changes:
            yield from self.header_plan()
        yield from self._materialized.plan(selection)

    def weights(self) -> Mapping[int, int]:
        """Return the weights of the materialized state; those of the changes are not known."""
        return self._materialized.weights()

    def size_plan(self, selection: Selection) -> Iterator[Planned]:
        """Plan to read how many bytes each key group has."""
        if self._changes:
            return super().size_plan(selection)
        return self._materialized.size_plan(selection)

    def sizes(self, selection: Selection) -> Iterator[SizeRun]:
        """Yield the sizes of the key groups, counted entry by entry if there are changes."""
        if self._changes:
            return super().sizes(selection)
        return self._materialized.sizes(selection)

    def _entries(
        self, selection: Selection, reader_of: Callable[[Layout], EntryReader[Entry]]
    ) -> Iterator[Entry]:
        if not self._changes:  # A native savepoint never has any.
            yield from self._materialized._entries(selection, reader_of)
            return
        selection = selection._replace(keys=None)  # changes are of all
        header, changes = self._read(selection.key_groups)
        states: dict[str, StateDescriptor] = {
            state.name: state for state in header.states if selection.has(state.name)
        }
        numbers = {name: number for number, name in enumerate(states)}
        changed = {name for of_group in changes.values() for name, _ in of_group}
        replays = self._replays(
            selection, [state for name, state in states.items() if name in changed]
        )
        read = self._reader_of(states, reader_of)
        materialized = self._materialized.encoded_entries(selection, numbers)
        ahead, names = next(materialized, None), [*states]
        for key_group in selection.key_groups:
            while ahead is not None and ahead.key_group == key_group:
                name = names[ahead.state]
                if name in replays:
                    self._replay(selection, key_group, states[name], replays, ahead)
                else:
                    yield read(name, key_group, ahead.key, ahead.value)
                ahead = next(materialized, None)
            for name, change in changes.pop(key_group, ()):
                if name in replays:
                    self._replay(selection, key_group, states[name], replays, change)
            for name, replay in replays.items():
                for key, value in replay.finish():
                    yield read(name, key_group, key, value)

    def _replays(
        self, selection: Selection, states: Sequence[StateDescriptor]
    ) -> dict[str, Replay]:
        """Return a replay for each of some states, by name."""
        replays: dict[str, Replay] = {}
        for state in states:
            try:
                replays[state.name] = replay_of(state)
            except UnreadableError as error:
                raise self._not_framed(selection, state.name, error) from None
        return replays

    def _replay(
        self,
        selection: Selection,
        key_group: int,
        state: StateDescriptor,
        replays: Mapping[str, Replay],
        change: EncodedEntry | _Bytes,
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
        headers = self._materialized.headers()
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
