"""The splits of DynamicKafkaSource, Kafka's source of several clusters, and of its enumerator.

The layouts are those of flink-connector-kafka, at its tags v3.4.0 to v5.0.0: classes
DynamicKafkaSourceSplitSerializer and DynamicKafkaSourceEnumStateSerializer.
"""

from __future__ import annotations

from keygroups._serializers.data_input import Cursor
from keygroups.savepoint._sources import kafka
from keygroups.savepoint._sources.kafka import Enumerator, KafkaSplit

_SPLIT_VERSION = 1


def read_split(version: int, cursor: Cursor, subtask: int | None) -> KafkaSplit:
    """Read a split, which is all that is left; SavepointError where it is none.

    Kafka's source: DynamicKafkaSourceSplitSerializer.deserialize.
    """
    cursor.expect("version of a split of several clusters", version, _SPLIT_VERSION)
    cluster = cursor.utf()
    return kafka.read_split(cursor.i32(), cursor, subtask)._replace(cluster=cluster)


def read_enumerator(version: int, cursor: Cursor) -> Enumerator:
    """Read the rest of a cursor as the enumerators of all clusters; SavepointError if it is none.

    The initial discovery is finished if it is so in each cluster. Kafka's source:
    DynamicKafkaSourceEnumStateSerializer.deserialize.
    """
    cursor.expect("version of an enumerator of several clusters", version, 1, 2)
    for _ in range(cursor.count()):
        cursor.utf()  # the id of a stream
        for _ in range(cursor.count()):
            _skip_cluster(cursor, has_initializers=version == 2)
    kafka_version = cursor.i32()
    splits: list[KafkaSplit] = []
    is_finished = True
    for _ in range(cursor.count()):
        cluster = cursor.utf()
        known = kafka.read_enumerator(kafka_version, cursor.frame())
        splits += (split._replace(cluster=cluster) for split in known.splits)
        is_finished = is_finished and known.initial_discovery_finished is True
    cursor.expect_end("an enumerator")
    return Enumerator(tuple(splits), is_finished)


def _skip_cluster(cursor: Cursor, *, has_initializers: bool) -> None:
    """Pass over the id of a cluster, its topics and servers, and where its partitions start."""
    cursor.utf()
    for _ in range(cursor.count()):
        cursor.utf()
    cursor.utf()
    for _ in range(2 if has_initializers else 0):
        if cursor.bool():
            cursor.frame()  # an object of Java
