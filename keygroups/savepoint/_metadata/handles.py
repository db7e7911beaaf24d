"""The handles in `_metadata`: records of the streams of bytes of each subtask's state."""

from __future__ import annotations

import re
import struct
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mmh3 import hash_bytes

from keygroups._checks import check_str, show
from keygroups.errors import InvalidValueError
from keygroups.key_group_range import KeyGroupRange

_ID = re.compile("[0-9a-fA-F]{32}")


@dataclass(frozen=True)
class StreamHandle:
    """A place of a stream of bytes: `data` in `_metadata` itself, else `size` bytes of a file.

    The file is `path`, relative to the directory of `_metadata` if `is_relative`. The stream is
    the whole file, or if `is_segment` a segment of it that begins at `start`.
    To Flink two streams in `_metadata` are one and the same if they have the same `name`. A file
    of changes has a first byte that Flink does not count in its size: `uncounted` is 1.
    """

    size: int
    data: bytes | None = None
    path: str = ""
    is_relative: bool = False
    is_segment: bool = False
    start: int = 0
    name: str = field(default="", compare=False)
    uncounted: int = field(default=0, compare=False)

    @property
    def file_size(self) -> int:
        """Size of the file in bytes, or of the segment."""
        return self.size + self.uncounted


def coordinator_handle(operator_id: str, state: bytes) -> StreamHandle:
    """Return the handle of a coordinator's new state, which is in `_metadata` itself."""
    name = f"{operator_id}-coordinator-{uuid.uuid4().hex}"
    return StreamHandle(len(state), state, name=name)


@dataclass(frozen=True)
class KeyGroupsHandle:
    """Keyed state in one stream, an offset for each key group of `key_groups`.

    A savepoint of many operators has millions of offsets: they stay bytes, a view on those of
    `_metadata`.
    """

    key_groups: KeyGroupRange
    offset_bytes: bytes | memoryview = field(repr=False)
    stream: StreamHandle
    is_canonical: bool

    @property
    def offsets(self) -> tuple[int, ...]:
        """The offset of each key group."""
        return struct.unpack(f">{len(self.key_groups)}q", self.offset_bytes)

    @property
    def streams(self) -> tuple[StreamHandle, ...]:
        """The one stream."""
        return (self.stream,)

    def __reduce__(self) -> tuple[object, ...]:
        # A pickle has these offsets only, and not all of `_metadata` with the view.
        own = bytes(self.offset_bytes)
        return type(self), (self.key_groups, own, self.stream, self.is_canonical)


@dataclass(frozen=True)
class RawTimersHandle(KeyGroupsHandle):
    """Raw keyed state, laid out alike: the timers of RocksDB's checkpoints, if on the heap."""


@dataclass(frozen=True)
class RocksDBHandle:
    """Keyed state in the files of RocksDB, by their local names; `meta` is the header."""

    key_groups: KeyGroupRange
    meta: StreamHandle
    shared: tuple[tuple[str, StreamHandle], ...]
    private: tuple[tuple[str, StreamHandle], ...]

    @property
    def streams(self) -> tuple[StreamHandle, ...]:
        """The header, then the files."""
        return (self.meta, *(stream for _, stream in (*self.shared, *self.private)))


@dataclass(frozen=True)
class ChangesHandle:
    """Changes of keyed state, `size` bytes.

    They are in `streams`, in each from an offset on, or in `_metadata` itself: `changes`, each
    with its key group. A file may have changes of other handles too: in each stream these stop
    at the offset in `ends`.
    """

    size: int
    streams: tuple[tuple[int, StreamHandle], ...] = ()
    changes: tuple[tuple[int, bytes], ...] = ()
    ends: tuple[int, ...] = ()


@dataclass(frozen=True)
class ChangelogHandle:
    """Keyed state of the changelog backend: what was materialized, and the changes since."""

    key_groups: KeyGroupRange
    materialized: tuple[KeyedHandle, ...]
    changes: tuple[ChangesHandle, ...]

    @property
    def streams(self) -> tuple[StreamHandle, ...]:
        """The streams of what was materialized, then those of the changes."""
        bases = [stream for base in self.materialized for stream in base.streams]
        return (*bases, *(stream for changes in self.changes for _, stream in changes.streams))


KeyedHandle = KeyGroupsHandle | RawTimersHandle | RocksDBHandle | ChangelogHandle


@dataclass(frozen=True)
class OperatorStateHandle:
    """Operator state: for each state its name, its mode and the offsets of its elements."""

    states: tuple[tuple[str, str, tuple[int, ...]], ...]
    stream: StreamHandle


HandlePlace = tuple[int, int, "StreamHandle | OperatorStateHandle | str"]
"""Start and end of bytes, and the handle or the path of a folder that they encode."""


class FieldBytes(NamedTuple):
    """The bytes that a field was read from, and the places of handles and paths in them.

    A handle of operator state in merged files is one place, from the flag before it on; the
    folders and the stream within it follow as places of their own.
    """

    value: object
    data: bytes | memoryview
    places: tuple[HandlePlace, ...]

    def __reduce__(self) -> tuple[object, ...]:
        return FieldBytes, (self.value, bytes(self.data), self.places)


class ChannelState(NamedTuple):
    """In-flight data of a channel, which a subtask of an unaligned checkpoint has kept.

    `direction` is "input" of an input channel, whose `gate` and `channel` are the numbers of both;
    "output" of a result subpartition, whose `gate` is the number of its partition. `bytes` is how
    many there are of it.

    Flink: InputChannelInfo, ResultSubpartitionInfo.
    """

    direction: str
    subtask: int
    gate: int
    channel: int
    bytes: int

    def __str__(self) -> str:
        return (
            f"{self.direction} channel {self.channel} of gate {self.gate} of subtask "
            f"{self.subtask}"
        )


def in_flight_data(channels: Sequence[ChannelState]) -> str:
    """Return a text: the bytes of in-flight data in all channels, and in the heaviest."""
    heaviest = max(channels, key=lambda channel: channel.bytes)
    return (
        f"{sum(channel.bytes for channel in channels):,} bytes in {len(channels):,} channels (of "
        f"these {heaviest.bytes:,} in {heaviest}) of in-flight data"
    )


@dataclass(frozen=True)
class SubtaskState:
    """State that one subtask wrote.

    `as_read` has the bytes of the fields that are not empty, by their names.
    """

    index: int
    is_finished: bool = False
    managed_operator: OperatorStateHandle | None = None
    raw_operator: OperatorStateHandle | None = None
    managed_keyed: KeyedHandle | None = None
    raw_keyed: RawTimersHandle | None = None
    channels: tuple[ChannelState, ...] = ()
    as_read: Mapping[str, FieldBytes] = field(default_factory=dict, compare=False, repr=False)

    @property
    def keyed(self) -> tuple[KeyedHandle, ...]:
        """The handles of its keyed state, the managed first."""
        handles = (self.managed_keyed, self.raw_keyed)
        return tuple(handle for handle in handles if handle is not None)


@dataclass(frozen=True)
class OperatorMetadata:
    """One operator; `name` and `uid` are empty before Flink 2.0, which did not store them.

    `as_read` has the bytes of the coordinator's handle.
    """

    operator_id: str
    name: str
    uid: str
    parallelism: int
    max_parallelism: int
    subtasks: tuple[SubtaskState, ...]
    is_fully_finished: bool = False
    coordinator: StreamHandle | None = None
    as_read: Mapping[str, FieldBytes] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class Metadata:
    """All of `_metadata`; `kind` is "canonical savepoint", "native savepoint" or "checkpoint".

    `properties` are the bytes of the CheckpointProperties, from version 4 on; `master_states`
    those of each state that a hook of the job's own has on the master.
    """

    version: int
    checkpoint_id: int
    kind: str | None
    operators: tuple[OperatorMetadata, ...]
    properties: bytes = b""
    master_states: tuple[bytes, ...] = ()

    def said(self) -> Iterator[StreamHandle | OperatorStateHandle | str]:
        """Yield the handles and the folders that it names."""
        for operator in self.operators:
            fields = [*operator.as_read.values()]
            fields += (field for task in operator.subtasks for field in task.as_read.values())
            for read in fields:
                yield from (named for _, _, named in read.places)


class OperatorId(str):
    """The id of an operator, for whatever takes the uid of one: it is not hashed.

    `digits` are 32 hexadecimal digits, as Flink's web UI and its exceptions have them. That names
    operators of Flink SQL, and others without a uid in the job. A text of 32 hexadecimal digits
    that is a uid all the same is `OperatorId.of_uid(text)`. `uid` is that uid, "" for an id.
    Raises InvalidTypeError or InvalidValueError for what is no id.

    Flink: OperatorID, StreamGraphHasherV2.

    >>> OperatorId("053E6F52E939FFE5C8A3B20732F40A31")
    OperatorId('053e6f52e939ffe5c8a3b20732f40a31')
    """

    uid: str

    def __new__(cls, digits: str) -> OperatorId:
        """Take the digits, in either case."""
        text = check_str("digits", digits)
        if not is_id(text):
            raise InvalidValueError(f"digits must be 32 hexadecimal digits, got {show(text)}")
        operator_id = super().__new__(cls, text.lower())
        operator_id.uid = ""
        return operator_id

    @classmethod
    def of_uid(cls, uid: str) -> OperatorId:
        """Return the id of an operator with this uid in the job, whatever the uid looks like.

        Raises InvalidTypeError or InvalidValueError for what is no uid.

        >>> OperatorId.of_uid("by-string")
        OperatorId.of_uid('by-string')
        >>> str(OperatorId.of_uid("by-string"))
        '43c502db369b106061a4c7c72c012f5f'
        """
        text = check_str("uid", uid)
        if not text:
            raise InvalidValueError("uid must not be empty")
        operator_id = cls(operator_id_of(text))
        operator_id.uid = text
        return operator_id

    def __repr__(self) -> str:
        return f"OperatorId.of_uid({self.uid!r})" if self.uid else f"OperatorId({str(self)!r})"

    def __str__(self) -> str:
        return str.__str__(self)


def is_id(text: str) -> bool:
    """Return whether a text has the form of an id."""
    return bool(_ID.fullmatch(text))


def operator_id_of(uid: str) -> str:
    """Return the id of an operator by its uid, as 32 hexadecimal digits.

    Flink: StreamGraphHasherV2.generateUserSpecifiedHash, murmur3_128 with seed 0.
    """
    # UTF-8 has no bytes for half a surrogate pair: Java writes a "?", and so does "replace".
    return hash_bytes(uid.encode("utf-8", "replace"), 0, x64arch=True).hex()
