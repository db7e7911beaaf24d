"""What `_metadata` names: the streams of bytes of each subtask's state."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from mmh3 import hash_bytes

from keygroups.key_group_range import KeyGroupRange


@dataclass(frozen=True)
class StreamHandle:
    """Where a stream of bytes is: `data` if it is in `_metadata`, else `size` bytes of a file.

    The file is `path`, relative to the directory of `_metadata` if `is_relative`. It has nothing
    else, or if `is_segment` the stream from `start` on among others.
    To Flink two streams in `_metadata` are one and the same if they have the same `name`. Of a
    file of changes it does not count the first byte: `uncounted` is 1.
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
        """How many bytes the file has, unless it is a segment."""
        return self.size + self.uncounted


@dataclass(frozen=True)
class KeyGroupsHandle:
    """Keyed state in one stream, an offset for each key group of `key_groups`.

    Of the offsets there are as many as key groups times subtasks times operators: they are held
    as the bytes of `_metadata`, of which these are a view.
    """

    key_groups: KeyGroupRange
    offset_bytes: bytes | memoryview = field(repr=False)
    stream: StreamHandle
    is_canonical: bool

    @property
    def offsets(self) -> tuple[int, ...]:
        """The offset of each key group."""
        return struct.unpack(f">{len(self.key_groups)}q", self.offset_bytes)

    def __reduce__(self) -> tuple[object, ...]:
        # With its own bytes, and none of the others that a view is of.
        own = bytes(self.offset_bytes)
        return type(self), (self.key_groups, own, self.stream, self.is_canonical)


@dataclass(frozen=True)
class RawTimersHandle(KeyGroupsHandle):
    """Raw keyed state in such a stream: the timers of RocksDB's checkpoints, if on the heap."""


@dataclass(frozen=True)
class RocksDBHandle:
    """Keyed state in the files of RocksDB, by their local names; `meta` is the header."""

    key_groups: KeyGroupRange
    meta: StreamHandle
    shared: tuple[tuple[str, StreamHandle], ...]
    private: tuple[tuple[str, StreamHandle], ...]


@dataclass(frozen=True)
class ChangesHandle:
    """So many bytes of changes of keyed state.

    They are in `streams`, in each from an offset on, or in `_metadata` itself: `changes`, each
    with its key group. In a file that has others, too, they go no further than to their `ends`.
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


KeyedHandle = KeyGroupsHandle | RawTimersHandle | RocksDBHandle | ChangelogHandle


@dataclass(frozen=True)
class OperatorStateHandle:
    """Operator state: for each state its name, its mode and the offsets of its elements."""

    states: tuple[tuple[str, str, tuple[int, ...]], ...]
    stream: StreamHandle


Place = tuple[int, int, "StreamHandle | OperatorStateHandle | str"]
"""Where bytes start and end, and what they say: a handle, or the path of a folder."""


class FieldBytes(NamedTuple):
    """The bytes that a field was read from, and the places in them that say where files are.

    Operator state in merged files is there as a whole, with the flag before it, and then what is
    in it.
    """

    value: object
    data: bytes | memoryview
    places: tuple[Place, ...]

    def __reduce__(self) -> tuple[object, ...]:
        return FieldBytes, (self.value, bytes(self.data), self.places)


@dataclass(frozen=True)
class SubtaskState:
    """What one subtask wrote.

    `as_read` has the bytes of the fields that are not empty, by their names.
    """

    index: int
    is_finished: bool = False
    managed_operator: OperatorStateHandle | None = None
    raw_operator: OperatorStateHandle | None = None
    managed_keyed: KeyedHandle | None = None
    raw_keyed: RawTimersHandle | None = None
    has_channel_state: bool = False
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
                yield from (said for _, _, said in read.places)


def operator_id_of(uid: str) -> str:
    """Return the id in hex.

    Flink: StreamGraphHasherV2.generateUserSpecifiedHash, murmur3_128 with seed 0.
    """
    # What UTF-8 has no bytes for is a "?" in Java's too.
    return hash_bytes(uid.encode("utf-8", "replace"), 0, x64arch=True).hex()
