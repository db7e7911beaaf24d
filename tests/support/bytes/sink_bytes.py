"""Bytes of the state of a sink's writers and of its committer, as Flink and connectors write them.

They are put together as SimpleVersionedSerialization and CommittableCollectorSerializer of Flink
do it. `flink/test_flink_kafka_states.py` compares them with what those classes write.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from keygroups.savepoint import Operator, Serializer, read_savepoint
from keygroups.state_keys import BYTES
from support.bytes import savepoint_bytes as sb
from support.bytes.source_bytes import framed, versioned

COMMITTER, WRITER = "streaming_committer_raw_states", "writer_raw_states"
MAGIC = bytes.fromhex("b91f252c")


def sink(folder: Path, elements: Sequence[tuple[str, bytes]], snapshot: bytes = b"") -> Operator:
    """Return an operator each of whose subtasks has an element in a list."""
    options = {"OPERATOR_STATE_DISTRIBUTION_MODE": "SPLIT_DISTRIBUTE"}
    subtasks = []
    for index, (name, element) in enumerate(elements):
        serializer = {"VALUE_SERIALIZER": snapshot or BYTES.snapshot_bytes()[4:]}
        header = sb.operator_header([sb.meta_info(name, 1, options, serializer)], [])
        data = header + (element if snapshot else framed(element))
        handle = sb.operator_state([(name, 0, [len(header)])], sb.inline(data))
        subtasks.append(sb.subtask(index, managed_operator=handle))
    parallelism = len(elements)
    limit = max(128, parallelism)
    written = sb.operator(subtasks, uid="out", parallelism=parallelism, max_parallelism=limit)
    (operator,) = read_savepoint(sb.write(folder, [written])).operators
    return operator


def listed(version: int, *elements: bytes) -> bytes:
    """As SimpleVersionedSerialization.writeVersionAndSerializeList does."""
    return struct.pack(">ii", version, len(elements)) + b"".join(map(framed, elements))


def request(committable: bytes, version: int = 1, retries: int = 0, state: int = 0) -> bytes:
    return versioned(version, committable) + struct.pack(">ii", retries, state)


def collector(*checkpoints: bytes, version: int = 1) -> bytes:
    return versioned(2, MAGIC + listed(version, *checkpoints))


# --- FlinkKafkaProducer --------------------------------------------------------------------------

PRODUCER, HINT = "state", "next-transactional-id-hint-v2"
KAFKA_PRODUCER = "org.apache.flink.streaming.connectors.kafka.FlinkKafkaProducer"


def kafkas(name: str, version: str = "") -> bytes:
    return sb.snapshot(f"{KAFKA_PRODUCER}{version}${name}Serializer${name}SerializerSnapshot", 3)


def of_producers(name: str) -> list[Serializer]:
    """Return the serializers of that name of FlinkKafkaProducer and FlinkKafkaProducer011."""
    snapshots = (sb.i32(2) + kafkas(name, version) for version in ("", "011"))
    return [Serializer.from_snapshot(snapshot) for snapshot in snapshots]


def two_phases(transaction: bytes, context: bytes, outer: int = 4, flag: bytes = b"\1") -> bytes:
    name = "org.apache.flink.streaming.api.functions.sink.TwoPhaseCommitSinkFunction"
    snapshot = f"{name}$StateSerializerSnapshot"
    return sb.composite(snapshot, outer, [transaction, context], flag)


def started(
    transactional_id: str | None,
    producer: int = 1000,
    epoch: int = 1,
    since: int = 1_632_995_566_106,
) -> bytes:
    """As TransactionStateSerializer does, and the start of a TransactionHolder."""
    name = b"\0" if transactional_id is None else b"\1" + sb.utf(transactional_id)
    return name + struct.pack(">qhq", producer, epoch, since)


def producer_bytes(pending: bytes, waiting: Sequence[bytes], ids: Sequence[str] | None) -> bytes:
    context = b"\0" if ids is None else b"\1" + sb.i32(len(ids)) + b"".join(map(sb.utf, ids))
    return pending + sb.i32(len(waiting)) + b"".join(waiting) + context


OWN = sb.snapshot("my.copy.FlinkKafkaProducer$Own", 3)


def producer(
    folder: Path,
    state: bytes,
    hint: bytes | None = None,
    serializers: tuple[bytes, bytes] = (OWN, OWN),
) -> Operator:
    """Return an operator with the two lists, whose serializers are those of a job's own copy."""
    lists = [(PRODUCER, state), *([] if hint is None else [(HINT, hint)])]
    options = {"OPERATOR_STATE_DISTRIBUTION_MODE": "SPLIT_DISTRIBUTE"}
    infos = [
        sb.meta_info(name, 1, options, {"VALUE_SERIALIZER": serializer})
        for (name, _), serializer in zip(lists, serializers)
    ]
    header = sb.operator_header(infos, [])
    data, places = header, []
    for name, element in lists:
        places.append((name, 0, [len(data)]))
        data += element
    handle = sb.operator_state(places, sb.inline(data))
    written = sb.operator([sb.subtask(0, managed_operator=handle)], uid="out")
    (operator,) = read_savepoint(sb.write(folder, [written])).operators
    return operator


# --- of files ------------------------------------------------------------------------------------

# Jobs of Flink 1.20.5 and 2.3.0 wrote these, each with two FileSinks: one rolls its files at each
# checkpoint, and its committer has them; the writer of the other goes on with a file.
FILES_TO_COMMIT = {
    "1.20.5": (
        "0000000200000196b91f252c0000000100000001000001860000000000000001000000010000000100000001"
        "0000016e0000000000000000000000010000015200000002000001421e765c80000432303236010000000200"
        "00012d2c853c8901004966696c653a2f646174612f6f72646572732f726f6c6c65642f323032362f70617274"
        "2d65653633363161302d343938372d346137632d396565642d6539393264373836663137362d300000000000"
        "0005fc00000001000000cd574b741efc0500000000000044000000750000002f646174612f6f72646572732f"
        "726f6c6c65642f323032362f706172742d65653633363161302d343938372d346137632d396565642d653939"
        "3264373836663137362d302f646174612f6f72646572732f726f6c6c65642f323032362f2e706172742d6565"
        "3633363161302d343938372d346137632d396565642d6539393264373836663137362d302e696e70726f6772"
        "6573732e30666666303132622d663333642d343865362d623234382d30386132653266363531656200000000"
        "000000000000000000010000000000000000"
    ),
    "2.3.0": (
        "0000000200000192b91f252c0000000100000001000001820000000000000001000000010000000200000001"
        "0000016a0000000000000000000000010000015200000002000001421e765c80000432303236010000000200"
        "00012d2c853c8901004966696c653a2f646174612f6f72646572732f726f6c6c65642f323032362f70617274"
        "2d35333731666235302d363561632d346463612d626535632d3736656236343637393965342d300000000000"
        "0004c200000001000000cd574b741ec20400000000000044000000750000002f646174612f6f72646572732f"
        "726f6c6c65642f323032362f706172742d35333731666235302d363561632d346463612d626535632d373665"
        "6236343637393965342d302f646174612f6f72646572732f726f6c6c65642f323032362f2e706172742d3533"
        "3731666235302d363561632d346463612d626535632d3736656236343637393965342d302e696e70726f6772"
        "6573732e30356630376237352d303563622d343231372d383461302d30666530376635626436323300000000"
        "0000000000000000000100000000"
    ),
}
BUCKETS = {
    "1.20.5": (
        "00000003000001491e764b79000000010000000400000000001666696c653a2f646174612f6f72646572732f"
        "6f70656e000001a219d418b0010000000200000110b3a4073d01004266696c653a2f646174612f6f72646572"
        "732f6f70656e2f706172742d31333235383736332d373831382d343038662d613931332d3364633436616466"
        "336563642d3000000001000000bf574b741efc050000000000003d0000006e0000002f646174612f6f726465"
        "72732f6f70656e2f706172742d31333235383736332d373831382d343038662d613931332d33646334366164"
        "66336563642d302f646174612f6f72646572732f6f70656e2f2e706172742d31333235383736332d37383138"
        "2d343038662d613931332d3364633436616466336563642d302e696e70726f67726573732e33323533393633"
        "332d613436372d343237312d626662342d353466393163333538316564"
    ),
    "2.3.0": (
        "00000003000001491e764b79000000010000000400000000001666696c653a2f646174612f6f72646572732f"
        "6f70656e000001a219d34364010000000200000110b3a4073d01004266696c653a2f646174612f6f72646572"
        "732f6f70656e2f706172742d62646663313533362d636531662d343732322d626165302d3634616338356439"
        "656265612d3000000001000000bf574b741ed2040000000000003d0000006e0000002f646174612f6f726465"
        "72732f6f70656e2f706172742d62646663313533362d636531662d343732322d626165302d36346163383564"
        "39656265612d302f646174612f6f72646572732f6f70656e2f2e706172742d62646663313533362d63653166"
        "2d343732322d626165302d3634616338356439656265612d302e696e70726f67726573732e39333434623763"
        "352d646265622d343039642d396138312d643839623965383966656234"
    ),
}
