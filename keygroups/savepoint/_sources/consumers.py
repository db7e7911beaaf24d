"""Positions of the older sources, FlinkKafkaConsumer and FlinkKinesisConsumer.

Both have a union list with a pair for each partition or shard: its name and its position.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from keygroups._checks import show
from keygroups._serializers.base import TRUNCATED
from keygroups._serializers.data_output import i64
from keygroups._serializers.jvm.kryo import KryoSerializer
from keygroups._serializers.jvm.kryo_output import head_by_name
from keygroups._serializers.jvm.pojos import PojoSerializer
from keygroups._serializers.scalars import STRING, read_varint
from keygroups._values.java_lang import hash_long, hash_string, signed
from keygroups._values.java_values import Pojo
from keygroups.errors import KeyGroupsError, SavepointError
from keygroups.savepoint._sources.kafka import KafkaSplit, Offset, SpecialOffset

# Kafka's consumer: KafkaTopicPartitionStateSentinel.
_NOT_SET = -915_623_761_776
_SPECIAL = {
    -915_623_761_775: SpecialOffset.EARLIEST,
    -915_623_761_774: SpecialOffset.LATEST,
    -915_623_761_773: SpecialOffset.COMMITTED,
}
_STORED = {offset: number for number, offset in _SPECIAL.items()}
_KINESIS = "org.apache.flink.streaming.connectors.kinesis.model."
_SHARD = PojoSerializer(
    f"{_KINESIS}StreamShardMetadata",
    [
        *("adjacentParentShardId", "endingHashKey", "endingSequenceNumber", "parentShardId"),
        *("shardId", "startingHashKey", "startingSequenceNumber", "streamName"),
    ],
    [STRING] * 8,
)
_NUMBER = KryoSerializer(f"{_KINESIS}SequenceNumber", 2)
KINESIS_STATE = "Kinesis-Stream-Shard-State"
"""The union list of FlinkKinesisConsumer."""
KAFKA_STATE = "topic-partition-offset-states"
"""The union list of FlinkKafkaConsumer. Kafka's consumer: FlinkKafkaConsumerBase."""


class KinesisSplit(NamedTuple):
    """A shard of a stream that FlinkKinesisConsumer reads, and how far.

    `sequence_number` is that of the last record that was read, or a word such as
    "LATEST_SEQUENCE_NUM" for a place that Kinesis finds; `sub_sequence_number` that of the last
    one in an aggregated record, -1 where that was whole. `subtask` has it.
    """

    stream: str
    shard: str
    sequence_number: str
    sub_sequence_number: int
    subtask: int


def read_partition(element: Any, subtask: int) -> KafkaSplit:
    """Return the split in an element of FlinkKafkaConsumer's state.

    The element has the offset of the last record that was read, the split that of the next: 41
    becomes 42. Raises SavepointError for any other element.

    Kafka's consumer: FlinkKafkaConsumerBase.initializeState; KafkaConsumerThread, which seeks
    the offset plus 1.
    """
    partition, offset = _pair(element)
    topic: Any
    number: Any
    topic, number = partition.get("topic"), partition.get("partition")
    is_partition = isinstance(topic, str) and isinstance(number, int) and number >= 0
    is_offset = isinstance(offset, int) and (offset >= -1 or offset in (_NOT_SET, *_SPECIAL))
    if not is_partition or not is_offset:
        raise SavepointError(f"an element of subtask {subtask} is no partition: {show(element)}")
    following = offset + 1 if offset >= -1 else _SPECIAL.get(offset)
    return KafkaSplit(topic, number, following, None, subtask, is_assigned=True)


def moved_partition(element: bytes, offset: Offset) -> bytes:
    """Return the bytes of an element of FlinkKafkaConsumer's state that goes on elsewhere.

    The offset is its last 8 bytes, that of the last record that was read.
    """
    stored = _STORED[offset] if isinstance(offset, SpecialOffset) else offset - 1
    return element[:-8] + i64(stored)


def read_shard(element: Any, subtask: int) -> KinesisSplit:
    """Return the split in an element of FlinkKinesisConsumer's state.

    Raises SavepointError for any other element.

    Kinesis' consumer: FlinkKinesisConsumer.initializeState, StreamShardMetadata, SequenceNumber.
    """
    shard, number = _pair(element)
    fields = number._asdict() if isinstance(number, Pojo) else {}
    texts: Any = (shard.get("streamName"), shard.get("shardId"), fields.get("sequenceNumber"))
    sub_number = fields.get("subSequenceNumber")
    if not all(isinstance(text, str) for text in texts) or not isinstance(sub_number, int):
        raise SavepointError(f"an element of subtask {subtask} is no shard: {show(element)}")
    stream, shard_id, sequence_number = texts
    return KinesisSplit(stream, shard_id, sequence_number, sub_number, subtask)


def shard_without_header(data: bytes) -> Any:
    """Return the element of FlinkKinesisConsumer in bytes; themselves where they are none.

    The headers of Flink 1.7 have no snapshots, but serializers as Java objects, by which Kryo has
    numbered its classes. What is told by the name of the state alone has to have the hash that
    the object keeps. Kinesis' consumer: SequenceNumber.
    """
    try:
        shard, pos = _SHARD.read(data, 0)  # type: ignore[misc]  # All of its parts are read.
        _, pos = read_varint(data, pos)
        number = _NUMBER.decode(head_by_name(_NUMBER.java_class, 2)[:-1] + data[pos:])
        texts = hash_string(number.sequenceNumber) + hash_long(number.subSequenceNumber)
    except (*TRUNCATED, ValueError, KeyGroupsError):
        return data
    return (shard, number) if number.cachedHash == signed(37 * texts) else data


def _pair(element: Any) -> tuple[dict[str, Any], Any]:
    """Return the fields of a pair's first object and its second; without fields, none and None."""
    match element:
        case (Pojo() as first, second):
            return first._asdict(), second
    return {}, None


CONSUMERS: dict[str, Callable[[Any, int], KafkaSplit | KinesisSplit]] = {
    KAFKA_STATE: read_partition,
    KINESIS_STATE: read_shard,
}
"""Readers of an element of a consumer's state, by the state's name."""
