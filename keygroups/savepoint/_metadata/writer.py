"""Writes the file `_metadata` in the layout that `reader` reads: copies, and canonical savepoints.

Where a function names a method of Flink alone, it is one of MetadataV2V3SerializerBase.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from keygroups._serializers.data_output import i32, i64, longs, utf
from keygroups.savepoint._metadata.codes import (
    FULLY_FINISHED,
    MAGIC,
    MASTER_STATE_MAGIC,
    MODES,
    HandleCode,
)
from keygroups.savepoint._metadata.handles import (
    FieldBytes,
    KeyGroupsHandle,
    Metadata,
    OperatorMetadata,
    OperatorStateHandle,
    StreamHandle,
    SubtaskState,
)

_NULL, _INLINE, _RELATIVE, _CANONICAL, _OPERATOR_STATE = (
    bytes((code,))
    for code in (
        HandleCode.NULL_HANDLE,
        HandleCode.BYTE_STREAM_STATE_HANDLE,
        HandleCode.RELATIVE_STREAM_STATE_HANDLE,
        HandleCode.SAVEPOINT_KEY_GROUPS_HANDLE,
        HandleCode.PARTITIONABLE_OPERATOR_STATE_HANDLE,
    )
)
_NO_PROPERTIES = bytes.fromhex("aced000570")  # a Java object stream with a null in it


_MASTER_STATE = MASTER_STATE_MAGIC.to_bytes(4, "big")

T = TypeVar("T")

Streams = Callable[[StreamHandle], StreamHandle]
"""Returns where a stream of a savepoint is in its copy: itself if it stays."""


def write_metadata(metadata: Metadata, operators: Iterable[bytes]) -> bytes:
    """Return the bytes of `_metadata` of a version from 3 on, with the bytes of its operators.

    Flink: Checkpoints.storeCheckpointMetadata, MetadataV2V3SerializerBase.serializeMetadata.
    """
    written = tuple(operators)
    masters = (_MASTER_STATE + i32(len(state)) + state for state in metadata.master_states)
    return b"".join(
        (
            i32(MAGIC),
            i32(metadata.version),
            i64(metadata.checkpoint_id),
            i32(len(metadata.master_states)),
            *masters,
            i32(len(written)),
            *written,
            metadata.properties or _NO_PROPERTIES if metadata.version >= 4 else b"",
        )
    )


def write_operator(
    operator: OperatorMetadata, version: int, streams: Streams | None = None
) -> bytes:
    """Return an operator as a version of `_metadata` from 3 on has it.

    What is as it was read keeps its bytes, but for the streams that `streams` copies elsewhere.
    All else has to be managed state, canonical if it is keyed, in relative files or inline.
    Flink: MetadataV3Serializer (V5).serializeOperatorState.
    """
    coordinator = operator.as_read.get("coordinator")
    fields = [
        bytes.fromhex(operator.operator_id),
        i32(operator.parallelism),
        i32(operator.max_parallelism),
        _field(operator.coordinator, coordinator, streams, _stream),
    ]
    if version >= 5:
        fields = [utf("name", operator.name), utf("uid", operator.uid), *fields]
    if operator.is_fully_finished:
        return b"".join((*fields, i32(FULLY_FINISHED)))
    subtasks = (_subtask(subtask, streams) for subtask in operator.subtasks)
    return b"".join((*fields, i32(len(operator.subtasks)), *subtasks))


def _subtask(subtask: SubtaskState, streams: Streams | None) -> bytes:
    """Return a subtask. Flink: MetadataV3Serializer.serializeSubtaskState."""
    if subtask.is_finished:
        return i32(-subtask.index - 1)
    fields: tuple[tuple[str, Callable[[Any], bytes]], ...] = (
        ("managed_operator", _operator_state),
        ("raw_operator", _operator_state),
        ("managed_keyed", _keyed),
        ("raw_keyed", _keyed),
        ("has_channel_state", _no_channels),
    )
    return i32(subtask.index) + b"".join(
        _field(getattr(subtask, name), subtask.as_read.get(name), streams, write)
        for name, write in fields
    )


def _field(
    value: T, as_read: FieldBytes | None, streams: Streams | None, write: Callable[[T], bytes]
) -> bytes:
    """Return the bytes of a field: those that it was read from, unless it has another value."""
    if as_read is None or as_read.value != value:
        return write(value)
    written: list[bytes] = []
    pos = 0
    for start, end, handle in as_read.handles if streams is not None else ():
        assert streams is not None
        replaced = _replaced(handle, streams)
        if replaced is not None:
            written += as_read.data[pos:start], replaced
            pos = end
    return b"".join((*written, as_read.data[pos:]))


def _replaced(handle: StreamHandle | OperatorStateHandle, streams: Streams) -> bytes | None:
    """Return the bytes of a handle whose stream is elsewhere, None if it is where it was."""
    if isinstance(handle, OperatorStateHandle):
        # Flink opens a handle without bytes, but for that of merged files, which are none now.
        stream = handle.stream
        return _operator_state(
            OperatorStateHandle(handle.states, streams(stream)) if stream.size else None
        )
    new = streams(handle)
    return None if new is handle else _stream(new)


def _no_channels(has_channel_state: bool) -> bytes:
    assert not has_channel_state
    return bytes(8)  # none of input channels, none of result subpartitions


def _operator_state(handle: OperatorStateHandle | None) -> bytes:
    """Return a handle of operator state. Flink: serializeOperatorStateHandle."""
    if handle is None:
        return i32(0)
    written = [i32(1), _OPERATOR_STATE, i32(len(handle.states))]
    for name, mode, offsets in handle.states:
        written += utf("state", name), bytes((MODES.index(mode),))
        written += i32(len(offsets)), longs(offsets)
    return b"".join((*written, _stream(handle.stream)))


def _keyed(handle: object) -> bytes:
    """Return a handle of keyed state. Flink: serializeKeyedStateHandle."""
    if handle is None:
        return _NULL
    assert isinstance(handle, KeyGroupsHandle)
    assert handle.is_canonical
    key_groups = handle.key_groups
    start = key_groups.start_key_group if key_groups else 0
    return b"".join(
        (
            _CANONICAL,
            i32(start),
            i32(len(key_groups)),
            longs(handle.offsets),
            _stream(handle.stream),
        )
    )


def _stream(stream: StreamHandle | None) -> bytes:
    """Return where bytes are. Flink: serializeStreamStateHandle."""
    if stream is None:
        return _NULL
    if stream.data is not None:
        return _INLINE + utf("name", stream.name) + i32(len(stream.data)) + stream.data
    assert stream.is_relative
    return _RELATIVE + utf("file", stream.path) + i64(stream.size)
