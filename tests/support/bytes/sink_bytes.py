"""Bytes of the state of a sink's writers and of its committer, as Flink and connectors write them.

They are put together as SimpleVersionedSerialization and CommittableCollectorSerializer of Flink
do it. `flink/test_flink_kafka_states.py` compares them with what those classes write.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from keygroups.savepoint import Operator, read_savepoint
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
