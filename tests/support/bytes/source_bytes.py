"""Bytes of the splits of sources and of their coordinators, as the connectors write them.

They are put together with Java's DataOutput as the source code of the connectors has it. Of
flink-connector-kafka v3.0.1 to v5.0.0: KafkaPartitionSplitSerializer, the same of the enumerator
(KafkaSourceEnumStateSerializer), and those of DynamicKafkaSource. Of Flink: SourceCoordinator,
HybridSourceSplitSerializer, FileSourceSplitSerializer (as it is since 1.15, and as it was),
PendingSplitsCheckpointSerializer and Path.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from keygroups.savepoint import Operator, read_savepoint
from keygroups.state_keys import BYTES
from support.bytes import savepoint_bytes as sb

NO_STOP = -(2**63)


def kafka_split(topic: str, partition: int, offset: int, stop: int = NO_STOP) -> bytes:
    name = topic.encode()
    return struct.pack(f">H{len(name)}siqq", len(name), name, partition, offset, stop)


def framed(data: bytes, order: str = ">") -> bytes:
    return struct.pack(f"{order}i", len(data)) + data


def versioned(version: int, data: bytes) -> bytes:
    """As SimpleVersionedSerialization.writeVersionAndSerialize does."""
    return struct.pack(">i", version) + framed(data)


def coordinator(version: int, data: bytes) -> bytes:
    """As SourceCoordinator.toBytes does, since 1.14."""
    return struct.pack(">ii", 1, version) + framed(data)


def partitions(*statuses: tuple[str, int, int], is_finished: bool = True) -> bytes:
    """The enumerator's state of version 2."""
    data = struct.pack(">i", len(statuses))
    for topic, partition, status in statuses:
        name = topic.encode()
        data += struct.pack(f">H{len(name)}sii", len(name), name, partition, status)
    return data + bytes([is_finished])


def source(
    folder: Path,
    elements: Sequence[Sequence[bytes]],
    coordinator_state: bytes | None = None,
    snapshot: bytes | None = None,
    state: str = "SourceReaderState",
) -> Operator:
    """Return an operator whose readers have elements, by subtask, in that state or another."""
    info = sb.meta_info(
        state,
        1,
        {"OPERATOR_STATE_DISTRIBUTION_MODE": "SPLIT_DISTRIBUTE"},
        {"VALUE_SERIALIZER": snapshot or BYTES.snapshot_bytes()[4:]},
    )
    header = sb.operator_header([info], [])
    subtasks = []
    for index, of_subtask in enumerate(elements):
        offsets, data = [], header
        for element in of_subtask:
            offsets.append(len(data))
            data += framed(element) if snapshot is None else element
        handle = sb.operator_state([(state, 0, offsets)], sb.inline(data))
        subtasks.append(sb.subtask(index, managed_operator=handle))
    handle = b"\0" if coordinator_state is None else sb.inline(coordinator_state, "coordinator")
    written = sb.operator(subtasks, parallelism=len(elements) or 1, coordinator=handle)
    (operator,) = read_savepoint(sb.write(folder, [written])).operators
    return operator


def clusters(*servers: bytes, kafkas: dict[str, bytes], version: int = 2) -> bytes:
    """The enumerators' state of a DynamicKafkaSource with one stream."""
    stream = b"".join(sb.utf("c") + struct.pack(">i", 1) + sb.utf("a") + end for end in servers)
    states = b"".join(sb.utf(name) + framed(data) for name, data in kafkas.items())
    return (
        struct.pack(">i", 1)
        + sb.utf("stream")
        + struct.pack(">i", len(servers))
        + stream
        + struct.pack(">ii", version, len(kafkas))
        + states
    )


def in_cluster(name: str, split: bytes) -> bytes:
    return versioned(1, sb.utf(name) + struct.pack(">i", 0) + split)


def of_hybrid(number: int, version: int, split: bytes) -> bytes:
    """As HybridSourceSplitSerializer.serialize does."""
    return versioned(0, struct.pack(">i", number) + sb.utf("id") + versioned(version, split))


def text(value: str | None) -> bytes:
    """As StringUtils.writeNullableString: StringValue, of ASCII a byte a letter."""
    return b"\0" if value is None else bytes([1, len(value) + 1]) + value.encode()


def path_bytes(*parts: str | None, port: int = -1) -> bytes:
    """As Path.serializeToDataOutputView: scheme, user, host, port, path, query and fragment."""
    scheme, user, host, path, query, fragment = parts
    before = text(scheme) + text(user) + text(host)
    return b"\1" + before + struct.pack(">i", port) + text(path) + text(query) + text(fragment)


LOCAL = path_bytes("file", None, None, "/data/a.csv", None, None)


def file_split(
    name: str,
    path: bytes = LOCAL,
    times: tuple[int, int] | None = (1_700_000_000_000, 999),
    hosts: Sequence[str] = (),
    position: tuple[int, int] | None = None,
) -> bytes:
    data = sb.utf(name) + path + struct.pack(">qq", 10, 200)
    if times is not None:
        data += struct.pack(">qq", *times)
    data += struct.pack(">i", len(hosts)) + b"".join(map(sb.utf, hosts))
    return data + (b"\0" if position is None else b"\1" + struct.pack(">qq", *position))


def pending(
    splits: Sequence[bytes], paths: Sequence[bytes], magic: int = 0xDEADBEEF, version: int = 1
) -> bytes:
    """As PendingSplitsCheckpointSerializer does, in little-endian order."""
    data = struct.pack("<Iiii", magic, version, len(splits), len(paths))
    return data + b"".join(framed(one, "<") for one in (*splits, *paths))


A0, A1 = kafka_split("a", 0, 40), kafka_split("a", 1, -3, 90)
OLDEST = (
    struct.pack(">iiii", 1, 0, 7, 2)  # subtasks, version of splits; a subtask, its splits
    + framed(A0)
    + framed(A1)
)
OF_TOPICS = struct.pack(">i", 2) + b"\0\1a\0\0\0\0" + b"\0\1a\0\0\0\1"
NEWEST = struct.pack(">ii", 2, 0) + framed(A0) + bytes(4) + framed(A1) + bytes(4) + b"\1"
"""Enumerators of the versions 0, 1 and 3, whose two splits are assigned."""


# --- the older consumers -------------------------------------------------------------------------

KAFKA = "topic-partition-offset-states"
PARTITION = "org.apache.flink.streaming.connectors.kafka.internals.KafkaTopicPartition"
SHARD = "org.apache.flink.streaming.connectors.kinesis.model.StreamShardMetadata"
NUMBER = "org.apache.flink.streaming.connectors.kinesis.model.SequenceNumber"


def by_kryo(java_class: str, *fields: bytes) -> bytes:
    """As Kryo's FieldSerializer does: a class by its name, a new object, fields by their names."""
    name = java_class[:-1].encode() + bytes([ord(java_class[-1]) | 0x80])
    return b"\1\0" + name + b"\1" + b"".join(fields)


def kryo_text(text: str) -> bytes:
    return b"\1" + text[:-1].encode() + bytes([ord(text[-1]) | 0x80])


def kafka_element(topic: str, partition: int, offset: int) -> bytes:
    written = by_kryo(PARTITION, b"\x03", bytes([2 * partition]), kryo_text(topic))
    return written + struct.pack(">q", offset)


OF_KAFKA = sb.tuple_of(sb.kryo_of(PARTITION), sb.simple("Long"))
