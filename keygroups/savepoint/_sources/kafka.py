"""The splits of Kafka's source, and the state of its enumerator, read and written.

The layouts are those of flink-connector-kafka, at its tags v3.0.1 to v5.0.0: classes
KafkaPartitionSplitSerializer and KafkaSourceEnumStateSerializer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from keygroups._checks import (
    INT_MAX,
    LONG_MAX,
    LONG_MIN,
    check_class,
    check_int,
    check_str,
    show,
)
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.data_output import i32, i64, utf
from keygroups.errors import InvalidTypeError, InvalidValueError

SPLIT_VERSION = 0
_ENUMERATOR_VERSION = 2
_ASSIGNED, _UNASSIGNED = 0, 1
_NONE = LONG_MIN  # no stopping offset; as an offset, one that only the reader knows
# Kafka: org.apache.kafka.common.internals.Topic.
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}", re.ASCII)

Partition = tuple[str, int]
"""The name of a topic, and the number of a partition in it."""
Place = Partition | tuple[str, str, int]
"""A partition, of a source that reads several clusters behind the id of its own."""


class SpecialOffset(Enum):
    """A place in a partition that Kafka finds when the job starts.

    LATEST is its end, EARLIEST its start, COMMITTED what the consumer group has committed.

    Kafka's source: KafkaPartitionSplit.LATEST_OFFSET, EARLIEST_OFFSET, COMMITTED_OFFSET.

    >>> SpecialOffset.EARLIEST
    <SpecialOffset.EARLIEST: -2>
    """

    LATEST = -1
    EARLIEST = -2
    COMMITTED = -3


Offset = int | SpecialOffset


@dataclass(frozen=True)
class KafkaOffsets:
    """The offsets from which a KafkaSource goes on: for `SavepointWriter.add_source`.

    `offsets` maps partitions, each the name of its topic and its number from 0, to the offset of
    the next record to read, 0..2^63-1, or a SpecialOffset. `stopping_offsets` are where to stop,
    before that record, for some of the partitions; none is for a source that reads on.
    `initial_discovery_finished` says how the job reads a partition that is not in `offsets`: as a
    new one from its earliest offset, or if it is False from where the source of the job is told
    to start.

    The splits of the readers and the state of the coordinator are written together: the first
    alone are read twice, the second alone are read by nobody. The version of the coordinator's
    state is 2, which flink-connector-kafka 3.1 to 5.0 reads; 3.0 refuses it. The state of the
    older FlinkKafkaConsumer, a union list `topic-partition-offset-states` of Kryo's objects, is
    not written.

    The bytes are those that the serializers of flink-connector-kafka 4.0.1 write, and its jobs on
    Flink 2.3.0 went on at these offsets in topics of a broker; of other versions the source code
    was read.

    Raises InvalidValueError for no partition, for one that is there twice, for a name that is no
    topic's, an offset out of bounds, a stopping offset of a partition that is not in `offsets`, of
    EARLIEST or before its offset; InvalidTypeError.

    >>> KafkaOffsets({("clicks", 0): 4711, ("clicks", 1): SpecialOffset.EARLIEST}).offsets
    {('clicks', 0): 4711, ('clicks', 1): <SpecialOffset.EARLIEST: -2>}
    """

    offsets: Mapping[Partition, Offset] = field(hash=False)
    stopping_offsets: Mapping[Partition, Offset] = field(default_factory=dict, hash=False)
    initial_discovery_finished: bool = True

    def __post_init__(self) -> None:
        offsets = _checked("offsets", self.offsets)
        if not offsets:
            raise InvalidValueError("offsets must be of at least one partition, got none")
        stopping = _checked("stopping_offsets", self.stopping_offsets)
        for partition, stop in stopping.items():
            if partition not in offsets:
                raise InvalidValueError(
                    f"stopping_offsets must be of partitions in offsets, got {show(partition)}"
                )
            start = offsets[partition]
            if stop is SpecialOffset.EARLIEST:
                raise InvalidValueError(
                    f"stopping offset of {show(partition)} must not be EARLIEST, before which "
                    "there is nothing"
                )
            if isinstance(start, int) and isinstance(stop, int) and stop < start:
                raise InvalidValueError(
                    f"stopping offset of {show(partition)} must be at least its offset {start}, "
                    f"got {stop}"
                )
        name = "initial_discovery_finished"
        check_class(name, self.initial_discovery_finished, bool, "a bool")
        object.__setattr__(self, "offsets", offsets)
        object.__setattr__(self, "stopping_offsets", stopping)


def checked_places(offsets: object, stops: Mapping[Place, Offset]) -> dict[Place, Offset]:
    """Return new offsets by partition, none of which is beyond where the source stops.

    Raises what KafkaOffsets raises for those of each cluster.
    """
    clusters: dict[str | None, dict[Any, Any]] = {}
    for key, offset in _mapping("offsets", offsets).items():
        cluster, partition = None, key
        if isinstance(key, tuple) and len(key) == 3:
            cluster, partition = check_str("cluster of partition in offsets", key[0]), key[1:]
        partition = check_partition("partition in offsets", partition)
        if partition in clusters.setdefault(cluster, {}):
            raise InvalidValueError(f"offsets must have {show(key)} once")
        clusters[cluster][partition] = offset
    checked: dict[Place, Offset] = {}
    for cluster, moved in (clusters or {None: {}}).items():
        head = () if cluster is None else (cluster,)
        for partition, offset in KafkaOffsets(moved).offsets.items():
            place: Any = (*head, *partition)
            stop = {partition: stops[place]} if place in stops else {}
            KafkaOffsets({partition: offset}, stop)
            checked[place] = offset
    return checked


def _mapping(name: str, mapping: object) -> Mapping[Any, Any]:
    if not isinstance(mapping, Mapping):
        raise InvalidTypeError(
            f"{name} must be a mapping of partitions such as ('clicks', 0), got {show(mapping)}"
        )
    return mapping


def _checked(name: str, mapping: object) -> dict[Partition, Offset]:
    offsets: dict[Partition, Offset] = {}
    for key, offset in _mapping(name, mapping).items():
        partition = check_partition(f"partition in {name}", key)
        if partition in offsets:
            raise InvalidValueError(f"{name} must have {show(partition)} once")
        if not isinstance(offset, SpecialOffset):
            offset = _check_offset(f"{name} of {show(partition)}", offset)
        offsets[partition] = offset
    return offsets


def check_partition(name: str, value: Any) -> Partition:
    """Return a partition, or raise with `name`."""
    if not isinstance(value, tuple) or len(value) != 2:
        raise InvalidTypeError(
            f"{name} must be a tuple of a topic and a number, got {show(value)}"
        )
    topic = check_str(f"topic of {name}", value[0])
    if not _is_topic(topic):
        raise InvalidValueError(
            f"topic of {name} must be 1 to 249 letters of ASCII, digits, '.', '_' and '-', and "
            f"not '.' or '..', got {show(topic)}"
        )
    return topic, check_int(f"number of {name}", value[1], 0, INT_MAX)


def _is_topic(name: str) -> bool:
    return name not in (".", "..") and _TOPIC.fullmatch(name) is not None


def _check_offset(name: str, value: object) -> int:
    try:
        return check_int(name, value, 0, LONG_MAX)
    except InvalidValueError as error:
        raise InvalidValueError(
            f"{error}: for what Kafka finds itself there is SpecialOffset"
        ) from None


class KafkaSplit(NamedTuple):
    """A partition that Kafka's source reads.

    `offset` is that of the next record to read, `stopping_offset` that to stop before, None where
    there is none or it is not known: one that is read to its end, and before connector 5.0 each
    split that only the coordinator has, is without an offset. `subtask` has it, None if no
    reader does; `is_assigned` is the coordinator's word. A partition that is assigned and that no
    reader has is read no more, one that a reader has and that is not assigned will be read once
    more. `lag` is the end that a caller passes minus `offset`, negative if that is beyond the
    end, None where either is not known. `cluster` is the id of Kafka's
    cluster for a DynamicKafkaSource, which reads several, else None.
    """

    topic: str
    partition: int
    offset: Offset | None = None
    stopping_offset: Offset | None = None
    subtask: int | None = None
    is_assigned: bool = False
    lag: int | None = None
    cluster: str | None = None


# --- bytes ------------------------------------------------------------------------------


class Enumerator(NamedTuple):
    """State of the enumerator; its splits may be without their offsets."""

    splits: tuple[KafkaSplit, ...]
    initial_discovery_finished: bool | None


def split_bytes(source: KafkaOffsets) -> Iterator[bytes]:
    """Yield the split of each partition, in their order.

    Kafka's source: KafkaPartitionSplitSerializer.serialize.
    """
    for partition in sorted(source.offsets):
        stop = source.stopping_offsets.get(partition)
        yield bytes_of(KafkaSplit(*partition, source.offsets[partition], stop))


def bytes_of(split: KafkaSplit) -> bytes:
    """Return the bytes of a split. Kafka's source: KafkaPartitionSplitSerializer.serialize."""
    offsets = i64(_as_long(split.offset)) + i64(_as_long(split.stopping_offset))
    return utf("topic", split.topic) + i32(split.partition) + offsets


def enumerator_bytes(source: KafkaOffsets) -> tuple[int, bytes]:
    """Return the version and the bytes of an enumerator that has assigned all partitions.

    Kafka's source: KafkaSourceEnumStateSerializer.serializeV2.
    """
    partitions = [
        utf("topic", topic) + i32(number) + i32(_ASSIGNED)
        for topic, number in sorted(source.offsets)
    ]
    end = b"\1" if source.initial_discovery_finished else b"\0"
    return _ENUMERATOR_VERSION, b"".join((i32(len(partitions)), *partitions, end))


def _as_long(offset: Offset | None) -> int:
    if offset is None:
        return _NONE
    return offset.value if isinstance(offset, SpecialOffset) else offset


def read_split(version: int, cursor: Cursor, subtask: int | None) -> KafkaSplit:
    """Read a split, which is all that is left; SavepointError where it is none.

    Kafka's source: KafkaPartitionSplitSerializer.deserialize, KafkaPartitionSplit.
    """
    cursor.expect("version of a split of Kafka", version, SPLIT_VERSION)
    topic, number = _read_partition(cursor)
    offset, stop = (_read_offset(cursor) for _ in range(2))
    if stop is SpecialOffset.EARLIEST:
        raise cursor.error("a split that stops at the earliest offset")
    cursor.expect_end("a split")
    return KafkaSplit(topic, number, offset, stop, subtask)


def _read_partition(cursor: Cursor) -> Partition:
    topic, number = cursor.utf(), cursor.i32()
    if not _is_topic(topic) or number < 0:
        raise cursor.error(f"{show((topic, number))} is no partition")
    return topic, number


def _read_offset(cursor: Cursor) -> Offset | None:
    number = cursor.i64()
    if number >= 0:
        return number
    if number == _NONE:
        return None
    try:
        return SpecialOffset(number)
    except ValueError:
        raise cursor.error(f"{number} is no offset of Kafka") from None


def read_enumerator(version: int, cursor: Cursor) -> Enumerator:
    """Read the rest of a cursor as an Enumerator; SavepointError if it is not Kafka's.

    Kafka's source: KafkaSourceEnumStateSerializer.deserialize.
    """
    cursor.expect("version of an enumerator of Kafka", version, 0, 1, 2, 3)
    is_finished = True
    if version == 0:
        splits = [*_read_assignments(cursor)]
    else:
        splits = [*_read_statuses(version, cursor)]
        is_finished = version == 1 or cursor.bool()
    if len({(*split[:2], split.is_assigned) for split in splits}) < len(splits):
        raise cursor.error("a partition is there twice")
    cursor.expect_end("an enumerator")
    # Connectors before 5.0 leave a partition unassigned too that a restored job discovered anew.
    # They do not assign again what is named both ways; 5.0 does: KafkaSourceEnumerator.start.
    marks: dict[Partition, KafkaSplit] = {}
    for split in splits:
        if split[:2] not in marks or split.is_assigned == (version < 3):
            marks[split[:2]] = split
    return Enumerator(tuple(marks.values()), is_finished)


def _read_statuses(version: int, cursor: Cursor) -> Iterator[KafkaSplit]:
    """Yield the partitions, of version 3 the splits, each with whether it is assigned."""
    count = cursor.count()
    split_version = cursor.i32() if version == 3 else None
    for _ in range(count):
        yield _read_status(version, split_version, cursor)


def _read_status(version: int, split_version: int | None, cursor: Cursor) -> KafkaSplit:
    if split_version is None:
        split = KafkaSplit(*_read_partition(cursor))
    else:
        split = read_split(split_version, cursor.frame(), None)
    status = _ASSIGNED if version == 1 else cursor.i32()
    cursor.expect("status of a split", status, _ASSIGNED, _UNASSIGNED)
    return split._replace(is_assigned=status == _ASSIGNED)


def enumerator_without(topics: Collection[str], version: int, cursor: Cursor) -> bytes:
    """Return the bytes of an enumerator that does not know some topics; all else stays."""
    cursor.expect("version of an enumerator that is edited", version, 1, 2, 3)
    count = cursor.count()
    split_version = cursor.i32() if version == 3 else None
    kept = [] if split_version is None else [i32(split_version)]
    without = 0
    for _ in range(count):
        start = cursor.pos
        if _read_status(version, split_version, cursor).topic in topics:
            without += 1
        else:
            kept.append(cursor.data[start : cursor.pos])
    return i32(count - without) + b"".join(kept) + cursor.take(cursor.left)


def _read_assignments(cursor: Cursor) -> Iterator[KafkaSplit]:
    """Yield the splits of each subtask. Flink: SerdeUtils.deserializeSplitAssignments."""
    count = cursor.count()
    version = cursor.i32()
    for _ in range(count):
        cursor.i32()  # the subtask
        for _ in range(cursor.count()):
            yield read_split(version, cursor.frame(), None)._replace(is_assigned=True)
