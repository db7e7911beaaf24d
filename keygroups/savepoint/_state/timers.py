"""Timers that RocksDB's checkpoints keep as raw keyed state, where they are on the heap."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from keygroups._serializers.base import TRUNCATED, read_versioned_snapshot
from keygroups._serializers.compounds import TupleSerializer
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.scalars import LONG
from keygroups.savepoint._files.files import Files, OpenStream
from keygroups.savepoint._metadata.handles import KeyGroupsHandle
from keygroups.savepoint._state.entries import StateEntry
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.key_group_streams import key_group_spans

_MARK = 0xF1CD859F  # of PostVersionedIOReadableWritable
_VERSION = 2
_KIND = "PRIORITY_QUEUE"


def read_timer_states(files: Files, handle: KeyGroupsHandle) -> list[StateDescriptor]:
    """Return the states of the timers, which each key group repeats."""
    with files.open(handle.stream) as stream:
        for _, start, end in key_group_spans(handle):
            return [state for state, _ in _services(stream, start, end)]
    return []


def empty_size(handle: KeyGroupsHandle, stream: OpenStream) -> int:
    """Return how many bytes a key group without timers has."""
    _, start, end = next(key_group_spans(handle))
    services = _services(stream, start, end)
    return end - start - sum(size for _, timers in services for _, size in timers)


def read_entries(
    files: Files,
    handle: KeyGroupsHandle,
    subtask: int,
    wanted: Callable[[str], bool],
    key_groups: Collection[int],
) -> Iterator[StateEntry]:
    """Yield the timers of some states and key groups, one key group after the other."""
    with files.open(handle.stream) as stream:
        for key_group, start, end in key_group_spans(handle):
            if key_group not in key_groups:
                continue
            for state, timers in _services(stream, start, end):
                for (key, namespace, timestamp), size in timers:
                    if wanted(state.name):
                        yield StateEntry(
                            state.name,
                            _KIND,
                            key_group,
                            subtask,
                            key,
                            namespace,
                            None,
                            None,
                            None,
                            timestamp,
                            size,
                        )


def _services(
    stream: OpenStream, start: int, end: int
) -> Iterator[tuple[StateDescriptor, list[tuple[tuple[Any, ...], int]]]]:
    """Yield the timers of each timer service in a key group, of event and of processing time."""
    cursor = Cursor(stream.read(start, end), stream.name, start)
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
