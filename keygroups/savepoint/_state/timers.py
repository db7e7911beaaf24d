"""Timers that RocksDB's checkpoints keep as raw keyed state, where they are on the heap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from keygroups._serializers.base import TRUNCATED, read_versioned_snapshot
from keygroups._serializers.compounds import TupleSerializer
from keygroups._serializers.data_input import Cursor, ReadingContext
from keygroups._serializers.scalars import LONG
from keygroups.errors import SavepointError
from keygroups.savepoint._files.files import OpenStream
from keygroups.savepoint._state.entries import Entry, EntryReader, StateEntry
from keygroups.savepoint._state.format import Selection
from keygroups.savepoint._state.header import KeyedHeader, StateDescriptor
from keygroups.savepoint._state.key_group_streams import OffsetFormat, key_group_spans
from keygroups.savepoint._state.layouts import Layout

_MARK = 0xF1CD859F  # of PostVersionedIOReadableWritable
_VERSION = 2  # of InternalTimerServiceSerializationProxy
_KIND = "PRIORITY_QUEUE"


class RawTimers(OffsetFormat):
    """Raw keyed state: in each key group its timer services, with their types.

    Flink: InternalTimeServiceManagerImpl.snapshotToRawKeyedState.
    """

    def header(self) -> KeyedHeader:
        """Raise SavepointError: raw state has none."""
        raise self._error()

    def states(self) -> list[StateDescriptor]:
        """Read the states of the timers, which each key group repeats."""
        with self._files.open(self._handle.stream) as stream:
            for _, start, end in key_group_spans(self._handle):
                return [state for state, _ in _services(stream, start, end, self._context)]
        return []

    def entries(self, selection: Selection) -> Iterator[StateEntry]:
        """Yield the timers that are wanted, one key group after the other."""
        with self._files.open(self._handle.stream) as stream:
            for key_group, start, end in key_group_spans(self._handle):
                if key_group not in selection.key_groups:
                    continue
                for state, timers in _services(stream, start, end, self._context):
                    if not selection.has(state.name):
                        continue
                    for (key, namespace, timestamp), size in timers:
                        yield StateEntry(
                            state.name,
                            _KIND,
                            key_group,
                            selection.subtask,
                            key,
                            namespace,
                            None,
                            None,
                            None,
                            timestamp,
                            size,
                        )

    def _entries(
        self, selection: Selection, reader_of: Callable[[Layout], EntryReader[Entry]]
    ) -> Iterator[Entry]:
        raise self._error()

    def _empty_size(self, stream: OpenStream) -> int:
        """Return the bytes of what tells of the timer services."""
        _, start, end = next(key_group_spans(self._handle))
        services = _services(stream, start, end, self._context)
        return end - start - sum(size for _, timers in services for _, size in timers)

    def _error(self) -> SavepointError:
        return SavepointError(
            f"{self._files.base}: raw keyed state has no header, and is not read as bytes here"
        )


def _services(
    stream: OpenStream, start: int, end: int, context: ReadingContext
) -> Iterator[tuple[StateDescriptor, list[tuple[tuple[Any, ...], int]]]]:
    """Yield the timers of each timer service in a key group, of event and of processing time.

    Flink: InternalTimerServiceSerializationProxy.read,
    InternalTimersSnapshotReaderWriters.InternalTimersSnapshotReaderV2.
    """
    cursor = Cursor(stream.read(start, end), stream.name, start, context)
    cursor.expect("mark of raw timers", cursor.i32() & 0xFFFFFFFF, _MARK)
    cursor.expect("version of raw timers", cursor.i32(), _VERSION)
    for _ in range(cursor.count(22)):
        name = cursor.utf()
        key, namespace = read_versioned_snapshot(cursor), read_versioned_snapshot(cursor)
        read = TupleSerializer([key, namespace, LONG]).read
        for time in ("event", "processing"):
            state = StateDescriptor(f"_timer_state/{time}_{name}", _KIND, key, namespace, None)
            timers = []
            for _ in range(cursor.count(8)):
                if read is None:
                    raise cursor.error(f"{state} takes the job's own classes to read")
                try:
                    timer, pos = read(cursor.data, cursor.pos)
                except (*TRUNCATED, ValueError) as error:
                    raise cursor.error(f"no timer of {state}: {error}") from None
                timers.append((timer, pos - cursor.pos))
                cursor.pos = pos
            yield state, timers
