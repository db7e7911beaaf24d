"""States of sources and sinks of Kafka, of files and of older connectors, one of each kind.

What they are is for the tests of each; the guard against hostile savepoints damages them. Those
of other connectors are in `connector_bytes`.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

from keygroups.savepoint import Operator
from support.bytes import savepoint_bytes as sb
from support.bytes.connector_bytes import REAL
from support.bytes.sink_bytes import (
    BUCKETS,
    COMMITTER,
    FILES_TO_COMMIT,
    HINT,
    OWN,
    PRODUCER,
    WRITER,
    collector,
    kafkas,
    listed,
    producer,
    producer_bytes,
    request,
    started,
    two_phases,
)
from support.bytes.source_bytes import (
    A0,
    A1,
    KAFKA,
    NEWEST,
    NUMBER,
    OF_KAFKA,
    OF_TOPICS,
    OLDEST,
    SHARD,
    by_kryo,
    clusters,
    coordinator,
    file_split,
    in_cluster,
    kafka_element,
    kryo_text,
    of_hybrid,
    partitions,
    pending,
    source,
    versioned,
)

READERS = "SourceReaderState"


class Held(NamedTuple):
    """An element of a state, of its own serializer or of bytes, and what a coordinator has.

    `name` is that of a source in the help of sources, or of a class of sinks; `version` is that of
    its layout, or None where there is none.
    """

    name: str
    version: int | None
    state: str
    element: bytes = b""
    snapshot: bytes | None = None
    coordinator: bytes | None = None

    def written(self, folder: Path) -> Operator:
        """Return an operator that has it; beside the one list of a producer is the other."""
        if self.state == PRODUCER and self.snapshot is not None:
            serializers = self.snapshot, kafkas("NextTransactionalIdHint")
            return producer(folder, self.element, _HINT, serializers)
        elements = [self.element] if self.element else []
        return source(folder, [elements], self.coordinator, self.snapshot, self.state)


def _writer(version: int, data: bytes) -> bytes:
    return versioned(version, sb.utf("tx") + data)


_TRANSACTION = struct.pack(">hq", 3, 1000) + sb.utf("tx-0-7")
_OF_SUBTASK = bytes(4) + listed(0, request(_TRANSACTION)) + bytes(8)
_SHARD = sb.pojo_of(SHARD, {"shardId": sb.simple("String"), "streamName": sb.simple("String")})
_KINESIS = b"\2\0\3s0\0\5fake" + by_kryo(NUMBER, b"\0", kryo_text("987654321"), b"\1")
_PRODUCER = producer_bytes(b"\1" + started("tx-2"), [started("tx-1")], ("tx-1", "tx-2"))
_OWN = two_phases(kafkas("TransactionState"), kafkas("ContextState"))
_HINT = struct.pack(">qi", 5, 1)

SPLITS = [
    Held("KafkaSource", 0, READERS, versioned(0, A0)),
    Held("DynamicKafka", 1, READERS, in_cluster("x", A1)),
    Held("KafkaConsumer", None, KAFKA, kafka_element("a", 1, 4711), OF_KAFKA),
    Held(
        *("KinesisConsumer", None, "Kinesis-Stream-Shard-State", _KINESIS),
        sb.tuple_of(_SHARD, sb.kryo_of(NUMBER)),
    ),
    Held("FileSource", 1, READERS, versioned(1, file_split("1", hosts=("n1",), position=(5, 6)))),
    Held("HybridSource", 0, READERS, of_hybrid(1, 0, A0)),
]
ENUMERATORS = [
    Held(name, version, READERS, coordinator=coordinator(version, data))
    for name, version, data in (
        ("KafkaSource", 0, OLDEST),
        ("KafkaSource", 1, OF_TOPICS),
        ("KafkaSource", 2, partitions(("a", 0, 0), ("a", 1, 1))),
        ("KafkaSource", 3, NEWEST),
        ("DynamicKafka", 1, clusters(sb.utf("h:1"), kafkas={"x": NEWEST}, version=3)),
        ("DynamicKafka", 2, clusters(sb.utf("h:1") + b"\0\0", kafkas={"x": OF_TOPICS}, version=1)),
        ("FileSource", 1, pending([file_split("1")], [b"file:/a"])),
        ("HybridSource", 0, struct.pack(">i", 1) + versioned(3, NEWEST)),
    )
]
SINKS = [
    Held("KafkaWriterState", 1, WRITER, _writer(1, b"")),
    Held("KafkaWriterState", 2, WRITER, _writer(2, struct.pack(">iiii", 1, 2, 1, 0))),
    Held(
        *("KafkaTransaction", 1, COMMITTER),
        collector(struct.pack(">qi", 7, 1) + listed(2, _OF_SUBTASK)),
    ),
    Held("FileCommittable", 2, COMMITTER, bytes.fromhex(FILES_TO_COMMIT["2.3.0"])),
    Held("BucketState", 3, WRITER, bytes.fromhex(BUCKETS["2.3.0"])),
    Held("BucketState", 3, "bucket-states", bytes.fromhex(BUCKETS["2.3.0"])),
    Held("KafkaProducerState", None, HINT, _HINT, kafkas("NextTransactionalIdHint")),
    Held("KafkaProducerState", None, PRODUCER, _PRODUCER, _OWN),
    Held("KafkaProducerState", None, PRODUCER, _PRODUCER, OWN),
    Held(
        *("ConnectorCommittable", None, "iceberg-files-committer-state", REAL["Iceberg map 3"]),
        REAL["Iceberg map snapshot 3"],
    ),
]
