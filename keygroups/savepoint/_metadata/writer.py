"""Writes the file `_metadata` in the layout that `_metadata` reads, of canonical savepoints."""

from __future__ import annotations

from collections.abc import Iterator

from keygroups._serializers.data_output import i32, i64, longs, utf
from keygroups.savepoint._metadata.handles import (
    KeyGroupsHandle,
    Metadata,
    OperatorMetadata,
    OperatorStateHandle,
    StreamHandle,
    SubtaskState,
)
from keygroups.savepoint._metadata.reader import MAGIC, MODES

_NOTHING = b"\0"
_NO_PROPERTIES = bytes.fromhex("aced000570")  # a Java object stream with a null in it


def write_metadata(metadata: Metadata) -> bytes:
    """Return the bytes of `_metadata` of a version from 3 on.

    Keyed state is managed, canonical and in relative files or inline; there is no channel state.
    """
    version = metadata.version
    return b"".join(
        (
            i32(MAGIC),
            i32(version),
            i64(metadata.checkpoint_id),
            i32(0),  # states of the master, which Flink has had no use for since 1.2
            i32(len(metadata.operators)),
            *(_operator(one, version) for one in metadata.operators),
            metadata.properties or _NO_PROPERTIES if version >= 4 else b"",
        )
    )


def _operator(operator: OperatorMetadata, version: int) -> bytes:
    parts = [
        bytes.fromhex(operator.operator_id),
        i32(operator.parallelism),
        i32(operator.max_parallelism),
        _stream(operator.coordinator),
    ]
    if version >= 5:
        parts = [utf("name", operator.name), utf("uid", operator.uid), *parts]
    if operator.is_fully_finished:
        return b"".join((*parts, i32(-1)))
    return b"".join((*parts, i32(len(operator.subtasks)), *map(_subtask, operator.subtasks)))


def _subtask(subtask: SubtaskState) -> bytes:
    if subtask.is_finished:
        return i32(-subtask.index - 1)
    operator_states = (subtask.managed_operator, subtask.raw_operator)
    return b"".join(
        (
            i32(subtask.index),
            *(i32(0) if one is None else i32(1) + _operator_state(one) for one in operator_states),
            _keyed(subtask.managed_keyed),
            _NOTHING,
            i32(0),
            i32(0),
        )
    )


def _operator_state(handle: OperatorStateHandle) -> bytes:
    return b"".join(_operator_state_parts(handle))


def _operator_state_parts(handle: OperatorStateHandle) -> Iterator[bytes]:
    yield b"\x04"
    yield i32(len(handle.states))
    for name, mode, offsets in handle.states:
        yield utf("state", name)
        yield bytes((MODES.index(mode),))
        yield i32(len(offsets))
        yield longs(offsets)
    yield _stream(handle.stream)


def _keyed(handle: object) -> bytes:
    if handle is None:
        return _NOTHING
    assert isinstance(handle, KeyGroupsHandle)
    assert handle.is_canonical
    key_groups = handle.key_groups
    start = key_groups.start_key_group if key_groups else 0
    return b"".join(
        (
            b"\x07",
            i32(start),
            i32(len(key_groups)),
            longs(handle.offsets),
            _stream(handle.stream),
        )
    )


def _stream(stream: StreamHandle | None) -> bytes:
    if stream is None:
        return _NOTHING
    if stream.data is not None:
        return b"\x01" + utf("name", stream.name) + i32(len(stream.data)) + stream.data
    assert stream.is_relative
    return b"\x06" + utf("file", stream.path) + i64(stream.size)
