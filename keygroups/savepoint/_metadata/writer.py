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
    WRITTEN_FROM,
    HandleCode,
)
from keygroups.savepoint._metadata.handles import (
    ChannelState,
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
_PATH_OF_FILE, _PATH_OF_SEGMENT = 9, 21  # bytes of a handle before its path
_MASTER_STATE = MASTER_STATE_MAGIC.to_bytes(4, "big")

T = TypeVar("T")

Streams = Callable[[StreamHandle], StreamHandle]
"""Returns the handle of a stream's copy, the same handle if it stays in its place."""

Replace = Callable[["StreamHandle | OperatorStateHandle | str", bytes], "bytes | None"]
"""Returns new bytes for a handle or the path of a folder that was read from some bytes.

None keeps these. A handle that is replaced takes along the places within it.
"""


def written_version(*versions: int) -> int:
    """Return the oldest version to write `_metadata` in that holds what some versions hold.

    Only version 2 has the legacy state of Flink 1.1, which the reader refuses.
    """
    return max(WRITTEN_FROM, *versions)


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
    operator: OperatorMetadata, version: int, replace: Replace | None = None
) -> bytes:
    """Return an operator as a version of `_metadata` from 3 on has it.

    A field with the value that was read keeps its bytes, but for places that `replace` changes.
    Any other has to be managed state, canonical if it is keyed, in relative files or inline.
    Flink: MetadataV3Serializer (V5).serializeOperatorState.
    """
    coordinator = operator.as_read.get("coordinator")
    fields = [
        bytes.fromhex(operator.operator_id),
        i32(operator.parallelism),
        i32(operator.max_parallelism),
        _field(operator.coordinator, coordinator, replace, _stream),
    ]
    if version >= 5:
        fields = [utf("name", operator.name), utf("uid", operator.uid), *fields]
    if operator.is_fully_finished:
        return b"".join((*fields, i32(FULLY_FINISHED)))
    subtasks = (_subtask(subtask, replace) for subtask in operator.subtasks)
    return b"".join((*fields, i32(len(operator.subtasks)), *subtasks))


def _subtask(subtask: SubtaskState, replace: Replace | None) -> bytes:
    """Return a subtask. Flink: MetadataV3Serializer.serializeSubtaskState."""
    if subtask.is_finished:
        return i32(-subtask.index - 1)
    fields: tuple[tuple[str, Callable[[Any], bytes]], ...] = (
        ("managed_operator", _operator_state),
        ("raw_operator", _operator_state),
        ("managed_keyed", _keyed),
        ("raw_keyed", _keyed),
        ("channels", _no_channels),
    )
    return i32(subtask.index) + b"".join(
        _field(getattr(subtask, name), subtask.as_read.get(name), replace, write)
        for name, write in fields
    )


def _field(
    value: T, as_read: FieldBytes | None, replace: Replace | None, write: Callable[[T], bytes]
) -> bytes | memoryview:
    """Return the bytes of a field: those that it was read from, unless it has another value.

    `replace` is asked for each place that is not within one it has replaced: of places 0-30 and
    9-20 the second is asked for only if the first is kept.
    """
    if as_read is None or as_read.value != value:
        return write(value)
    if replace is None:
        return as_read.data
    written: list[bytes | memoryview] = []
    pos = 0
    for start, end, named in as_read.places:
        replaced = replace(named, bytes(as_read.data[start:end])) if start >= pos else None
        if replaced is not None:
            written += as_read.data[pos:start], replaced
            pos = end
    return b"".join((*written, as_read.data[pos:]))


def copied_to(streams: Streams) -> Replace:
    """Return a Replace that puts in the handles of copied streams."""

    def replaced(handle: StreamHandle | OperatorStateHandle | str, data: bytes) -> bytes | None:
        if isinstance(handle, StreamHandle):
            new = streams(handle)
            return None if new is handle else _stream(new)
        assert isinstance(handle, OperatorStateHandle)  # Folders only occur within one.
        # In a handle of merged files Flink takes only a segment, and a copy is a file: it gets a
        # plain handle. Flink opens the stream of such a one even if it is empty: then null.
        stream = handle.stream
        return _operator_state(
            OperatorStateHandle(handle.states, streams(stream)) if stream.size else None
        )

    return replaced


def moved_to(path_of: Callable[[str], str], name_of: Callable[[str], str]) -> Replace:
    """Return a Replace of absolute paths by those that `path_of` returns.

    `name_of` returns the name of a file in the new folder, "" for a file that is elsewhere. A
    segment keeps an absolute path, as its handle has no relative one.
    """

    def replaced(named: StreamHandle | OperatorStateHandle | str, data: bytes) -> bytes | None:
        if isinstance(named, str):
            return utf("folder", path_of(named))
        if isinstance(named, OperatorStateHandle) or named.data is not None or named.is_relative:
            return None
        name = "" if named.is_segment else name_of(named.path)
        if name:
            return _stream(StreamHandle(named.size, path=name, is_relative=True))
        start = _PATH_OF_SEGMENT if named.is_segment else _PATH_OF_FILE
        end = start + 2 + int.from_bytes(data[start : start + 2], "big")
        return data[:start] + utf("file", path_of(named.path)) + data[end:]

    return replaced


def _no_channels(channels: tuple[ChannelState, ...]) -> bytes:
    assert not channels
    return bytes(8)  # two counts of 0: input channels, result subpartitions


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
            handle.offset_bytes,
            _stream(handle.stream),
        )
    )


def _stream(stream: StreamHandle | None) -> bytes:
    """Return the handle of a stream, inline or relative. Flink: serializeStreamStateHandle."""
    if stream is None:
        return _NULL
    if stream.data is not None:
        return _INLINE + utf("name", stream.name) + i32(len(stream.data)) + stream.data
    assert stream.is_relative
    return _RELATIVE + utf("file", stream.path) + i64(stream.size)
