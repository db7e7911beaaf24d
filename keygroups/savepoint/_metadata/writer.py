"""Writes the file `_metadata` in the layout that `reader` reads, of canonical savepoints.

Where a function names a method of Flink alone, it is one of MetadataV2V3SerializerBase.
"""

from __future__ import annotations

from keygroups._serializers.data_output import i32, i64, longs, utf
from keygroups.savepoint._metadata.codes import FULLY_FINISHED, MAGIC, MODES, HandleCode
from keygroups.savepoint._metadata.handles import (
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


def write_metadata(metadata: Metadata) -> bytes:
    """Return the bytes of `_metadata` of a version from 3 on.

    Keyed state is managed, canonical and in relative files or inline; there is no channel state.
    Flink: Checkpoints.storeCheckpointMetadata, MetadataV2V3SerializerBase.serializeMetadata.
    """
    version = metadata.version
    return b"".join(
        (
            i32(MAGIC),
            i32(version),
            i64(metadata.checkpoint_id),
            i32(0),  # states of the master, which Flink has had no use for since 1.2
            i32(len(metadata.operators)),
            *(_operator(operator, version) for operator in metadata.operators),
            metadata.properties or _NO_PROPERTIES if version >= 4 else b"",
        )
    )


def _operator(operator: OperatorMetadata, version: int) -> bytes:
    """Return an operator. Flink: MetadataV3Serializer (V5).serializeOperatorState."""
    fields = [
        bytes.fromhex(operator.operator_id),
        i32(operator.parallelism),
        i32(operator.max_parallelism),
        _stream(operator.coordinator),
    ]
    if version >= 5:
        fields = [utf("name", operator.name), utf("uid", operator.uid), *fields]
    if operator.is_fully_finished:
        return b"".join((*fields, i32(FULLY_FINISHED)))
    return b"".join((*fields, i32(len(operator.subtasks)), *map(_subtask, operator.subtasks)))


def _subtask(subtask: SubtaskState) -> bytes:
    """Return a subtask. Flink: MetadataV3Serializer.serializeSubtaskState."""
    if subtask.is_finished:
        return i32(-subtask.index - 1)
    handles = (subtask.managed_operator, subtask.raw_operator)
    return b"".join(
        (
            i32(subtask.index),
            *(i32(0) if state is None else i32(1) + _operator_state(state) for state in handles),
            _keyed(subtask.managed_keyed),
            _NULL,  # no raw keyed state
            i32(0),  # nor state of input channels
            i32(0),  # nor of result subpartitions
        )
    )


def _operator_state(handle: OperatorStateHandle) -> bytes:
    """Return a handle of operator state. Flink: serializeOperatorStateHandle."""
    written = [_OPERATOR_STATE, i32(len(handle.states))]
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
