"""Timers that RocksDB's checkpoints keep as raw keyed state, where they are on the heap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from keygroups._checks import show
from keygroups._serializers.base import (
    SNAPSHOT_START,
    TRUNCATED,
    Read,
    Serializer,
    UnknownSerializer,
    UnreadableError,
    read_versioned_snapshot,
)
from keygroups._serializers.compounds import TupleSerializer
from keygroups._serializers.data_input import Cursor, ReadingContext
from keygroups._serializers.scalars import LONG, SORTED_LONG, read_long
from keygroups.savepoint._files.files import OpenStream, Planned
from keygroups.savepoint._state.entries import Entry, EntryReader
from keygroups.savepoint._state.formats.format import NotFramedError, Selection, unframed
from keygroups.savepoint._state.formats.key_group_streams import OffsetFormat, key_group_spans
from keygroups.savepoint._state.header import KeyedHeader, StateDescriptor, write_state
from keygroups.savepoint._state.layouts import Layout, TimerLayout, layout_of

_MARK = 0xF1CD859F  # Flink: PostVersionedIOReadableWritable
_VERSION = 2  # Flink: InternalTimerServiceSerializationProxy
_KIND = "PRIORITY_QUEUE"


class RawTimers(OffsetFormat):
    """Raw keyed state: in each key group its timer services, with their types.

    Flink: InternalTimeServiceManagerImpl.snapshotToRawKeyedState.
    """

    def headers(self) -> list[KeyedHeader]:
        """Return the header that a canonical savepoint has for the same timers.

        Of an operator that uses none it has no state, and does not say what the keys are.
        """
        services = self._first_services()
        if not services:
            return [KeyedHeader(False, UnknownSerializer(""), (), b"", ())]
        first, *_ = services
        states = tuple(service.state for service in services)
        data = tuple(service.state_bytes() for service in services)
        return [KeyedHeader(False, first.state.key_serializer, states, first.key_bytes, data)]

    def header_plan(self) -> Iterator[Planned]:
        """Plan to read the first key group, which has what a header says."""
        first = islice(key_group_spans(self._handle), 1)
        yield self._handle.stream, [(start, end) for _, start, end in first]

    def states(self) -> list[StateDescriptor]:
        """Read the states of the timers, which each key group repeats."""
        return [service.state for service in self._first_services()]

    def _first_services(self) -> list[_Service]:
        with self._files.open(self._handle.stream) as stream:
            for _, start, end in key_group_spans(self._handle):
                return [*_services(stream, start, end, self._context)]
        return []

    def _entries(
        self, selection: Selection, reader_of: Callable[[Layout], EntryReader[Entry]]
    ) -> Iterator[Entry]:
        known = [state.name for state in self.states()]
        with self._files.open(self._handle.stream) as stream:
            for key_group, start, end in key_group_spans(self._handle):
                if key_group not in selection.key_groups:
                    continue
                pending = set(filter(selection.has, known))
                for service in _services(stream, start, end, self._context):
                    if service.unread is not None and (pending or selection.states is None):
                        raise self._refused(service, service.unread, selection)
                    if not selection.has(service.state.name):
                        continue
                    pending.discard(service.state.name)
                    read = reader_of(layout_of(service.state)).framed
                    for timer in service.timers:
                        yield read(key_group, _framed(timer), b"")

    def _refused(self, service: _Service, unread: _Unread, selection: Selection) -> NotFramedError:
        """Return the error for timers behind which nothing of a key group can be found."""
        before = [state.name for state in self.states()]
        del before[before.index(service.state.name) :]
        names = ", ".join(map(show, before))
        readable = f"all but timers can be read, and of timers: {names or 'none'}"
        message = unframed(selection.operator, service.state, unread.error, readable)
        return NotFramedError(str(unread.cursor.error(message)))

    def _empty_size(self, stream: OpenStream) -> int:
        """Return the bytes of what tells of the timer services."""
        _, start, end = next(key_group_spans(self._handle))
        size = end - start
        unread = None
        for service in _services(stream, start, end, self._context):
            size -= sum(map(len, service.timers))
            unread = service.unread
        return size - (0 if unread is None else unread.bytes)


class _Unread(NamedTuple):
    """Timers that only the job reads: why, where they are, and the bytes behind."""

    error: UnreadableError
    cursor: Cursor
    bytes: int


class _Service(NamedTuple):
    """The timers of a timer service in a key group, of one time, as bytes.

    `key_bytes` and `namespace_bytes` are the snapshots of their serializers; `unread` says of
    timers, or of ones before, that only the job reads them: there are no more services then.
    """

    state: StateDescriptor
    key_bytes: bytes
    namespace_bytes: bytes
    timers: list[bytes]
    unread: _Unread | None = None

    def state_bytes(self) -> bytes:
        """Return the state as a header has it, with the snapshots as they are here."""
        start = len(SNAPSHOT_START)
        key, namespace = (
            UnknownSerializer("", data[start:]) for data in (self.key_bytes, self.namespace_bytes)
        )
        return write_state(replace(self.state, key_serializer=key, namespace_serializer=namespace))


def _framed(timer: bytes) -> bytes:
    """Return a timer as the key of an entry: its time, with the sign flipped, is first there."""
    end = len(timer) - TimerLayout.before_key
    time, _ = read_long(timer, end)
    return SORTED_LONG.write(time) + timer[:end]


def _services(
    stream: OpenStream, start: int, end: int, context: ReadingContext
) -> Iterator[_Service]:
    """Yield the timers of each timer service in a key group, of event and of processing time.

    Flink: InternalTimerServiceSerializationProxy.read,
    InternalTimersSnapshotReaderWriters.InternalTimersSnapshotReaderV2.
    """
    cursor = Cursor(stream.read(start, end), stream.name, start, context)
    cursor.expect("mark of raw timers", cursor.i32() & 0xFFFFFFFF, _MARK)
    cursor.expect("version of raw timers", cursor.i32(), _VERSION)
    for _ in range(cursor.count(22)):
        name = cursor.utf()
        (key, key_bytes), (namespace, namespace_bytes) = _snapshot(cursor), _snapshot(cursor)
        if context.declared is not None:
            key = context.declared.key(key)
        read = TupleSerializer([key, namespace, LONG]).read
        unread: _Unread | None = None
        for time in ("event", "processing"):
            state = StateDescriptor(f"_timer_state/{time}_{name}", _KIND, key, namespace, None)
            timers: list[bytes] = []
            if unread is None:
                unread = _read_timers(cursor, state, read, timers)
            yield _Service(state, key_bytes, namespace_bytes, timers, unread)
        if unread is not None:
            return


def _read_timers(
    cursor: Cursor, state: StateDescriptor, read: Read | None, timers: list[bytes]
) -> _Unread | None:
    """Add the timers that follow to some; return what only the job reads of them."""
    for _ in range(cursor.count(8)):
        try:
            if read is None:
                serializers = f"{state.key_serializer} or {state.namespace_serializer}"
                raise UnreadableError(f"nothing here reads {serializers}")
            _, pos = read(cursor.data, cursor.pos)
        except UnreadableError as error:
            return _Unread(error, cursor, cursor.left)
        except (*TRUNCATED, ValueError) as error:
            raise cursor.error(f"no timer of {state}: {error}") from None
        timers.append(cursor.data[cursor.pos : pos])
        cursor.pos = pos
    return None


def _snapshot(cursor: Cursor) -> tuple[Serializer, bytes]:
    """Read a snapshot; return it with its bytes as a header has them."""
    start = cursor.pos
    serializer = read_versioned_snapshot(cursor)
    return serializer, SNAPSHOT_START + cursor.data[start : cursor.pos]
