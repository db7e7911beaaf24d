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
_PATH_OF_FILE, _PATH_OF_SEGMENT = 9, 21  # where it is in the bytes of a handle
_MASTER_STATE = MASTER_STATE_MAGIC.to_bytes(4, "big")

T = TypeVar("T")

Streams = Callable[[StreamHandle], StreamHandle]
"""Returns where a stream of a savepoint is in its copy: itself if it stays."""

Replace = Callable[["StreamHandle | OperatorStateHandle | str", bytes], "bytes | None"]
"""Returns the bytes for a handle or the path of a folder, which was read from others.

None keeps them. With a handle that is replaced goes all that is in it.
"""


def written_version(*versions: int) -> int:
    """Return the version of `_metadata` that says all that some versions do.

    What version 2 says more of, the legacy state of Flink 1.1, is refused by its reader.
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

    What is as it was read keeps its bytes, but for what `replace` returns others for.
    All else has to be managed state, canonical if it is keyed, in relative files or inline.
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
    """Return the bytes of a field: those that it was read from, unless it has another value."""
    if as_read is None or as_read.value != value:
        return write(value)
    if replace is None:
        return as_read.data
    written: list[bytes | memoryview] = []
    pos = 0
    for start, end, said in as_read.places:
        replaced = replace(said, bytes(as_read.data[start:end])) if start >= pos else None
        if replaced is not None:
            written += as_read.data[pos:start], replaced
            pos = end
    return b"".join((*written, as_read.data[pos:]))


def copied_to(streams: Streams) -> Replace:
    """Return what replaces handles by those of streams that are copied."""

    def replaced(said: StreamHandle | OperatorStateHandle | str, data: bytes) -> bytes | None:
        if isinstance(said, StreamHandle):
            new = streams(said)
            return None if new is said else _stream(new)
        assert isinstance(said, OperatorStateHandle)  # of which folders are a part
        # In merged files Flink takes none but a segment, which a copy is no more. It opens any
        # other handle without bytes.
        stream = said.stream
        return _operator_state(
            OperatorStateHandle(said.states, streams(stream)) if stream.size else None
        )

    return replaced


def moved_to(path_of: Callable[[str], str], name_of: Callable[[str], str]) -> Replace:
    """Return what replaces paths; `name_of` says by which name a file is in the new folder.

    That is "" where it is elsewhere; only a file of its own can be named so.
    """

    def replaced(said: StreamHandle | OperatorStateHandle | str, data: bytes) -> bytes | None:
        if isinstance(said, str):
            return utf("folder", path_of(said))
        if isinstance(said, OperatorStateHandle) or said.data is not None or said.is_relative:
            return None
        name = "" if said.is_segment else name_of(said.path)
        if name:
            return _stream(StreamHandle(said.size, path=name, is_relative=True))
        start = _PATH_OF_SEGMENT if said.is_segment else _PATH_OF_FILE
        end = start + 2 + int.from_bytes(data[start : start + 2], "big")
        return data[:start] + utf("file", path_of(said.path)) + data[end:]

    return replaced


def _no_channels(channels: tuple[ChannelState, ...]) -> bytes:
    assert not channels
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
            handle.offset_bytes,
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
