"""The file `_metadata` of a savepoint or checkpoint: its operators, and where their state is.

`FORMAT.md` in `keygroups/savepoint` describes it. Where a method names a class of Flink alone,
this is MetadataV2V3SerializerBase, of org.apache.flink.runtime.checkpoint.metadata.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import accumulate, starmap
from typing import TypeVar

from keygroups._checks import show
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.jvm.objects import JavaEnum, JavaObject, read_java_object
from keygroups.key_group_range import KeyGroupRange
from keygroups.savepoint._metadata.codes import (
    CHANGELOG_HANDLES,
    CHANGES_HANDLES,
    FULLY_FINISHED,
    INCREMENTAL_HANDLES,
    KEY_GROUPS_HANDLES,
    MAGIC,
    MASTER_STATE_MAGIC,
    MERGED_CHANNELS,
    MODES,
    OPERATOR_STATE_HANDLES,
    VERSIONS,
    ChannelHandleCode,
    HandleCode,
)
from keygroups.savepoint._metadata.handles import (
    ChangelogHandle,
    ChangesHandle,
    ChannelState,
    FieldBytes,
    HandlePlace,
    KeyedHandle,
    KeyGroupsHandle,
    Metadata,
    OperatorMetadata,
    OperatorStateHandle,
    RawTimersHandle,
    RocksDBHandle,
    StreamHandle,
    SubtaskState,
)

MOST_KEY_GROUPS = 32_768  # Flink: KeyGroupRangeAssignment.UPPER_BOUND_MAX_PARALLELISM
_LENGTH = 4  # bytes before each buffer of a channel; Flink: ChannelStateSerializerImpl
_MAX_NESTING = 10  # keyed state handles in one another; Flink nests two

T = TypeVar("T")


def read_metadata(data: bytes, name: str) -> Metadata:
    """Return the Metadata in the bytes of `_metadata`; SavepointError where they are damaged.

    Flink: Checkpoints.loadCheckpointMetadata, MetadataV2V3SerializerBase.deserializeMetadata.
    """
    cursor = Cursor(data, name)
    if len(data) < 8 or cursor.i32() != MAGIC:
        cursor.pos = 0
        raise cursor.error("this is not the _metadata of a Flink savepoint or checkpoint")
    version = cursor.expect("version of _metadata", cursor.i32(), *VERSIONS)
    checkpoint_id = cursor.i64()
    master_states = []
    for _ in range(cursor.count(8)):
        cursor.expect("mark of a master state", cursor.i32() & 0xFFFFFFFF, MASTER_STATE_MAGIC)
        master_states.append(cursor.take(cursor.i32()))
    start = cursor.pos
    reader = _MetadataReader(cursor, version)
    operators = tuple(reader.operators())
    if any(len(starts) > 1 for starts in reader.changes.values()):
        # Changes end where others in their file start: only now are all the starts known.
        cursor.pos = start
        operators = tuple(_MetadataReader(cursor, version, reader.changes).operators())
    start = cursor.pos
    kind = _kind(cursor) if version >= 4 else None
    if cursor.left:
        raise cursor.error(f"{cursor.left} bytes are left after the end")
    return Metadata(version, checkpoint_id, kind, operators, data[start:], tuple(master_states))


def read_dump(data: bytes, name: str, max_parallelism: int | None) -> OperatorMetadata:
    """Return the only subtask of an operator whose state Flink's test utility has written.

    Without a max parallelism it is the number of key groups up to the last that the state has.
    Raises SavepointError where the bytes are damaged.

    Flink: OperatorSnapshotUtil.writeStateHandle, of its tests.
    """
    cursor = Cursor(data, name)
    cursor.expect("version of a dump", cursor.i32(), 0, 3)
    cursor.expect("handle of legacy state", cursor.u8(), HandleCode.NULL_HANDLE)
    reader = _MetadataReader(cursor, 3)
    subtask = reader.dumped_subtask(max_parallelism or MOST_KEY_GROUPS)
    ends = [handle.key_groups.end_key_group + 1 for handle in subtask.keyed if handle.key_groups]
    number = max_parallelism or max(ends, default=1)
    return OperatorMetadata("0" * 32, name, "", 1, number, (subtask,))


def _kind(cursor: Cursor) -> str | None:
    """Read the kind out of the properties. Flink: MetadataV4Serializer.deserializeProperties."""
    properties = read_java_object(cursor)
    kind = properties.fields.get("checkpointType") if isinstance(properties, JavaObject) else None
    if not isinstance(kind, JavaObject):
        return None
    savepoint_format = kind.fields.get("formatType")
    if isinstance(savepoint_format, JavaEnum):
        return f"{savepoint_format.constant.lower()} savepoint"
    return "checkpoint" if kind.fields.get("name") != "Savepoint" else "savepoint"


class _MetadataReader:
    """Reads the operators; `changes` are the offsets of changes by file, `known` all of them."""

    def __init__(
        self, cursor: Cursor, version: int, known: Mapping[str, Iterable[int]] | None = None
    ) -> None:
        self._cursor = cursor
        self._version = version
        self._known = {path: sorted(starts) for path, starts in (known or {}).items()}
        self.changes: dict[str, set[int]] = {}
        self._view = memoryview(cursor.data)
        self._places: list[HandlePlace] = []  # places in the field that is being read

    def operators(self) -> Iterator[OperatorMetadata]:
        ids = set()
        for _ in range(self._cursor.count(24)):
            operator = self._operator()
            if operator.operator_id in ids:
                raise self._cursor.error(f"operator {operator.operator_id} is there twice")
            ids.add(operator.operator_id)
            yield operator

    def _operator(self) -> OperatorMetadata:
        """Read an operator. Flink: MetadataV2Serializer (V3, V5).deserializeOperatorState."""
        cursor = self._cursor
        name, uid = (cursor.utf(), cursor.utf()) if self._version >= 5 else ("", "")
        operator_id = cursor.take(16).hex()
        parallelism, max_parallelism = cursor.i32(), cursor.i32()
        if not 1 <= parallelism <= max_parallelism <= MOST_KEY_GROUPS:
            raise cursor.error(
                f"operator {operator_id} cannot have parallelism {parallelism} and "
                f"max parallelism {max_parallelism}"
            )
        coordinator = None
        as_read: dict[str, FieldBytes] = {}
        if self._version == 2:
            cursor.i32()  # the length of its chain
        else:
            coordinator = self._field("coordinator", as_read, self._stream)
        is_finished = cursor.i32() == FULLY_FINISHED
        subtasks: tuple[SubtaskState, ...] = ()
        if not is_finished:
            cursor.pos -= 4
            subtasks = tuple(
                self._subtask(parallelism, max_parallelism) for _ in range(cursor.count(4))
            )
            self._check_subtasks(operator_id, subtasks)
        return OperatorMetadata(
            operator_id,
            name,
            uid,
            parallelism,
            max_parallelism,
            subtasks,
            is_finished,
            coordinator,
            as_read,
        )

    def _check_subtasks(self, operator_id: str, subtasks: tuple[SubtaskState, ...]) -> None:
        """Check that each subtask is there once, and each key group in the state of one.

        Flink: OperatorState keeps its subtasks in a map, and each has the key groups of its
        KeyGroupRangeAssignment, in managed and in raw state.
        """
        indices = set()
        for subtask in subtasks:
            if subtask.index in indices:
                raise self._cursor.error(
                    f"subtask {subtask.index} of operator {operator_id} is there twice"
                )
            indices.add(subtask.index)
        ranges = sorted(
            (handle.key_groups.start_key_group, handle.key_groups.end_key_group, subtask.index)
            for subtask in subtasks
            for handle in (subtask.managed_keyed, subtask.raw_keyed)
            if handle is not None and handle.key_groups
        )
        last, owner = -1, -1
        for start, end, index in ranges:
            if start <= last and index != owner:
                raise self._cursor.error(
                    f"subtasks {owner} and {index} of operator {operator_id} both have key group "
                    f"{start}"
                )
            if end > last:
                last, owner = end, index

    def _subtask(self, parallelism: int, max_parallelism: int) -> SubtaskState:
        """Read a subtask. Flink: deserializeSubtaskState, that of MetadataV2Serializer first.

        Flink: MetadataV3Serializer.deserializeSubtaskIndexAndFinishedState.
        """
        cursor = self._cursor
        index = cursor.i32()
        is_finished = index < 0 and self._version >= 3
        index = -index - 1 if is_finished else index
        if not 0 <= index < parallelism:
            raise cursor.error(f"subtask {index} cannot be, with parallelism {parallelism}")
        if is_finished:
            return SubtaskState(index, is_finished=True)
        if self._version == 2:
            cursor.i64()
            cursor.expect("number of legacy states", cursor.i32(), 0)
        as_read: dict[str, FieldBytes] = {}
        return SubtaskState(
            index,
            managed_operator=self._field("managed_operator", as_read, self._operator_state),
            raw_operator=self._field("raw_operator", as_read, self._operator_state),
            managed_keyed=self._field(
                "managed_keyed", as_read, lambda: self._keyed_state(max_parallelism)
            ),
            raw_keyed=self._field("raw_keyed", as_read, lambda: self._raw_keyed(max_parallelism)),
            channels=self._in_flight(as_read) if self._version > 2 else (),
            as_read=as_read,
        )

    def dumped_subtask(self, max_parallelism: int) -> SubtaskState:
        """Read a subtask's lists of handles, each of one at most, up to the end."""
        raw_operator = self._operator_state() if self._is_dumped(has_flag=True) else None
        managed_operator = self._operator_state() if self._is_dumped(has_flag=True) else None
        raw_keyed = self._raw_keyed(max_parallelism) if self._is_dumped() else None
        managed_keyed = self._keyed_state(max_parallelism) if self._is_dumped() else None
        if self._cursor.left:  # Flink before 1.11 had no channels.
            for _ in range(2):
                number = self._cursor.i32()
                self._cursor.expect("number of channels in a dump", number, -1, 0)
        self._cursor.expect_end("a dump")
        return SubtaskState(
            0,
            managed_operator=managed_operator,
            raw_operator=raw_operator,
            managed_keyed=managed_keyed,
            raw_keyed=raw_keyed,
        )

    def _is_dumped(self, has_flag: bool = False) -> bool:
        """Read whether a list has a handle, a number that is also the flag before some handles."""
        cursor = self._cursor
        number = cursor.expect("number of handles in a dump", cursor.i32(), -1, 0, 1)
        if has_flag and number == 1:
            cursor.pos -= 4
        return number == 1

    def _field(self, name: str, as_read: dict[str, FieldBytes], read: Callable[[], T]) -> T:
        """Read a field, and keep its bytes unless all are 0, which says that it is empty."""
        cursor, start = self._cursor, self._cursor.pos
        self._places.clear()
        value = read()
        data = self._view[start : cursor.pos]
        if any(data):
            places = [(at - start, end - start, named) for at, end, named in self._places]
            as_read[name] = FieldBytes(value, data, tuple(places))
        return value

    def _in_flight(self, as_read: dict[str, FieldBytes]) -> tuple[ChannelState, ...]:
        """Read the channels; where nothing is in flight, their handles are not kept."""
        channels = self._field("channels", as_read, self._channels)
        if not channels:
            as_read.pop("channels", None)
        return channels

    def _channels(self) -> tuple[ChannelState, ...]:
        """Read the in-flight data of each channel."""
        cursor = self._cursor
        channels: list[ChannelState] = []
        for direction in ("input", "output"):  # input channels, then result subpartitions
            for _ in range(cursor.count(9)):
                channels += self._channel(direction)
        return tuple(channels)

    def _channel(self, direction: str) -> Iterator[ChannelState]:
        """Read the handle of a channel's state, or of that of all channels of a subtask.

        Flink: ChannelStateHandleSerializerV1, from version 6 on ChannelStateHandleSerializerV2.
        """
        cursor = self._cursor
        is_merged = False
        if self._version >= 6:
            code = cursor.expect("channel handle", cursor.u8(), *ChannelHandleCode)
            is_merged = code in MERGED_CHANNELS
        subtask = cursor.i32()
        if is_merged:
            yield from self._merged_channels(direction, subtask)
            return
        gate, channel = cursor.i32(), cursor.i32()
        buffers = len(cursor.longs(cursor.count(8)))
        state = ChannelState(direction, subtask, gate, channel, self._size())
        if _has_data(state, buffers, self._stream()):
            yield state

    def _merged_channels(self, direction: str, subtask: int) -> Iterator[ChannelState]:
        """Yield the channels in the one handle of all channels of a subtask.

        Flink: AbstractMergedChannelStateHandle.restoreAndCacheUnmergedHandles.
        """
        cursor = self._cursor
        total = self._size()
        stream = self._stream()
        channels = cursor.frame()
        for _ in range(channels.count(20)):
            gate, channel, count = channels.i32(), channels.i32(), channels.i64()
            buffers = len(channels.longs(channels.count(8)))
            total -= count
            if count < 0:
                raise channels.error(f"a channel of {count} bytes")
            state = ChannelState(direction, subtask, gate, channel, count)
            if _has_data(state, buffers, stream):
                yield state
        channels.expect_end("the channels of a subtask")
        if total:
            raise channels.error(f"the channels of a subtask have {-total} bytes too many")

    def _stream(self) -> StreamHandle | None:
        """Read a handle of a stream, None for the null handle, and keep its place."""
        start = self._cursor.pos
        stream = self._read_stream()
        if stream is not None:
            self._places.append((start, self._cursor.pos, stream))
        return stream

    def _read_stream(self) -> StreamHandle | None:
        """Read a handle of a stream or null. Flink: deserializeStreamStateHandle."""
        cursor = self._cursor
        code = cursor.u8()
        if code == HandleCode.NULL_HANDLE:
            return None
        if code == HandleCode.RELATIVE_STREAM_STATE_HANDLE:
            path = cursor.utf()
            return StreamHandle(self._size(), path=path, is_relative=True)
        if code == HandleCode.BYTE_STREAM_STATE_HANDLE:
            name = cursor.utf()
            data = cursor.take(cursor.i32())
            return StreamHandle(len(data), data, name=name)
        if code == HandleCode.FILE_STREAM_STATE_HANDLE:
            size = self._size()
            return StreamHandle(size, path=cursor.utf())
        if code == HandleCode.SEGMENT_FILE_HANDLE:
            start, size = self._size(), self._size()
            cursor.i32()
            path = cursor.utf()
            cursor.utf()
            return StreamHandle(size, path=path, is_segment=True, start=start)
        if code == HandleCode.EMPTY_SEGMENT_FILE_HANDLE:
            return StreamHandle(0, b"")
        cursor.pos -= 1
        raise cursor.error(f"stream handle {code} is not known")

    def _some_stream(self) -> StreamHandle:
        stream = self._stream()
        if stream is None:
            raise self._cursor.error("a stream handle was to come, and is null")
        return stream

    def _size(self) -> int:
        size = self._cursor.i64()
        if size < 0:
            raise self._cursor.error(f"a size or offset of {size}")
        return size

    def _operator_state(self) -> OperatorStateHandle | None:
        """Read a handle of operator state, if a flag says that there is one.

        Flink: deserializeOperatorStateHandle.
        """
        cursor, start = self._cursor, self._cursor.pos
        if not cursor.i32():
            return None
        code = cursor.expect("operator state handle", cursor.u8(), *OPERATOR_STATE_HANDLES)
        if code == HandleCode.NULL_HANDLE:
            return None
        states, names = [], set()
        for _ in range(cursor.count(7)):
            name, mode = cursor.utf(), cursor.expect("mode", cursor.u8(), *range(len(MODES)))
            if name in names:
                raise cursor.error(f"operator state {show(name)} is there twice")
            names.add(name)
            states.append((name, MODES[mode], cursor.longs(cursor.count(8))))
        if code == HandleCode.PARTITIONABLE_OPERATOR_STATE_HANDLE:
            return OperatorStateHandle(tuple(states), self._some_stream())
        for _ in range(2):  # two folders: of files that the task owns, and of shared files
            at, folder = cursor.pos, cursor.utf()
            self._places.append((at, cursor.pos, folder))
        is_empty = cursor.bool()
        stream = self._stream() or StreamHandle(0, b"") if is_empty else self._some_stream()
        handle = OperatorStateHandle(tuple(states), stream)
        self._places.insert(0, (start, cursor.pos, handle))
        return handle

    def _raw_keyed(self, max_parallelism: int) -> RawTimersHandle | None:
        """Read the handle of raw keyed state.

        Flink: StreamTaskStateInitializerImpl.transform takes nothing but a KeyGroupsStateHandle.
        """
        handle = self._keyed_state(max_parallelism)
        if handle is None:
            return None
        if not isinstance(handle, KeyGroupsHandle):
            raise self._cursor.error(
                f"raw keyed state in a {type(handle).__name__}, which takes a KeyGroupsHandle"
            )
        return RawTimersHandle(
            handle.key_groups, handle.offset_bytes, handle.stream, handle.is_canonical
        )

    def _keyed_state(self, max_parallelism: int, depth: int = 0) -> KeyedHandle | None:
        """Read a handle of keyed state. Flink: deserializeKeyedStateHandle."""
        cursor = self._cursor
        if depth > _MAX_NESTING:
            raise cursor.error("keyed state handles nest too deep")
        code = cursor.u8()
        if code == HandleCode.NULL_HANDLE:
            return None
        if code in KEY_GROUPS_HANDLES:
            key_groups = self._key_groups(max_parallelism)
            start = cursor.pos
            offsets = cursor.longs(len(key_groups))
            offset_bytes = self._view[start : cursor.pos]
            stream = self._some_stream()
            is_canonical = code == HandleCode.SAVEPOINT_KEY_GROUPS_HANDLE
            self._check_offsets(offsets, stream.size, lowest=0 if is_canonical else -1)
            if code == HandleCode.KEY_GROUPS_HANDLE_V2:
                cursor.utf()
            return KeyGroupsHandle(key_groups, offset_bytes, stream, is_canonical)
        if code in INCREMENTAL_HANDLES:
            return self._rocksdb(code, max_parallelism)
        if code in CHANGELOG_HANDLES:
            key_groups = self._key_groups(max_parallelism)
            cursor.i64()  # bytes that were new
            materialized = self._list(1, lambda: self._keyed_state(max_parallelism, depth + 1))
            changes = self._list(1, lambda: self._changes(max_parallelism))
            cursor.take(16 if code == HandleCode.CHANGELOG_HANDLE_V2 else 8)
            cursor.utf()
            bases = tuple(handle for handle in materialized if handle is not None)
            since = tuple(handle for handle in changes if handle is not None)
            # A handle without either has no state, nor anything that tells its format.
            return ChangelogHandle(key_groups, bases, since) if bases or since else None
        cursor.pos -= 1
        raise cursor.error(f"keyed state handle {code} is not known")

    def _changes(self, max_parallelism: int) -> ChangesHandle | None:
        """Read a handle of changes, None if it has none. Flink: deserializeKeyedStateHandle."""
        cursor = self._cursor
        code = cursor.expect("handle of changes", cursor.u8(), *CHANGES_HANDLES)
        if code == HandleCode.NULL_HANDLE:
            return None
        self._key_groups(max_parallelism)
        if code == HandleCode.CHANGELOG_BYTE_INCREMENT_HANDLE:
            cursor.take(16)
            changes = self._list(8, lambda: (cursor.i32(), cursor.take(cursor.i32())))
            cursor.utf()
            size = sum(len(change) for _, change in changes)
            return ChangesHandle(size, changes=changes) if changes else None
        streams = self._list(9, lambda: (self._size(), self._changes_stream()))
        size = self._size()
        cursor.i64()  # bytes that were new
        cursor.utf()
        if code == HandleCode.CHANGELOG_FILE_INCREMENT_HANDLE_V2:
            cursor.utf()
        for offset, stream in streams:
            if stream.data is None:
                self.changes.setdefault(stream.path, set()).add(offset)
        ends = tuple(starmap(self._end_of_changes, streams)) if self._known else ()
        return ChangesHandle(size, streams, ends=ends) if streams else None

    def _end_of_changes(self, offset: int, stream: StreamHandle) -> int:
        """Return the offset where the next changes in a file start, or its size.

        With starts 1 and 100 in a file of 300 bytes, the changes from 1 end at 100, others at 300.
        """
        starts = self._known[stream.path] if stream.data is None else []
        following = bisect_right(starts, offset)
        return starts[following] if following < len(starts) else stream.size

    def _changes_stream(self) -> StreamHandle:
        """Read the handle of a stream of changes: Flink does not count a file's first byte."""
        stream = self._some_stream()
        if stream.data is None:
            start, end, _ = self._places.pop()
            stream = replace(stream, uncounted=1)
            self._places.append((start, end, stream))
        return stream

    def _check_offsets(self, offsets: tuple[int, ...], size: int, lowest: int) -> None:
        """Check that offsets of key groups ascend; -1 or 0 may stand for one without state."""
        # Sorting sorted offsets takes a third of the time of the loop, which finds the wrong one.
        least = min(offsets, default=0)
        present = [*offsets] if least > 0 else [offset for offset in offsets if offset > 0]
        if least >= lowest and present == sorted(present) and max(present, default=0) <= size:
            return
        after = zip(offsets, accumulate(offsets, max, initial=0))
        wrong = [
            f"an offset of {offset} in {size} bytes, after {last}"
            for offset, last in after
            if not (lowest <= offset <= 0 or last <= offset <= size)
        ]
        raise self._cursor.error(wrong[0])

    def _rocksdb(self, code: int, max_parallelism: int) -> RocksDBHandle:
        """Read a handle of RocksDB's files. Flink: deserializeIncrementalStateHandle."""
        cursor = self._cursor
        is_sized = code == HandleCode.INCREMENTAL_KEY_GROUPS_HANDLE_V2
        cursor.i64()
        cursor.utf()
        key_groups = self._key_groups(max_parallelism)
        if is_sized:
            cursor.i64()
        meta = self._some_stream()
        shared, private = (
            self._list(3, lambda: (cursor.utf(), self._some_stream())) for _ in range(2)
        )
        if is_sized:
            cursor.utf()
        return RocksDBHandle(key_groups, meta, shared, private)

    def _list(self, size: int, read: Callable[[], T]) -> tuple[T, ...]:
        return tuple(read() for _ in range(self._cursor.count(size)))

    def _key_groups(self, max_parallelism: int) -> KeyGroupRange:
        cursor = self._cursor
        first, count = cursor.i32(), cursor.i32()
        if count == 0:
            return KeyGroupRange.EMPTY
        if first < 0 or count < 0 or first + count > max_parallelism:
            raise cursor.error(
                f"{count} key groups from {first} on cannot be, with max parallelism "
                f"{max_parallelism}"
            )
        return KeyGroupRange(first, first + count - 1)


def _has_data(channel: ChannelState, buffers: int, stream: StreamHandle | None) -> bool:
    """Tell whether any buffer of a channel has bytes; Flink keeps empty ones as well.

    All that they take is their length. Where `_metadata` itself has the bytes of a channel, the
    number of buffers is not told; what is not zero there is a length or behind one.
    """
    is_empty = stream is not None and stream.data is not None and not any(stream.data)
    return not is_empty and channel.bytes != _LENGTH * buffers
