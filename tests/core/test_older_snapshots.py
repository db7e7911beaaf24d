"""Snapshots in the older versions that Flink reads, and the value that each of them is of.

`tests/flink/test_flink_serializers.py` has Flink read and write the same bytes.
"""

from __future__ import annotations

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.older_snapshots import (
    EDGE,
    OLD_NODE,
    OLDER_SNAPSHOTS,
    STRING,
    OlderSnapshot,
    composite,
)
from support.inside.serializers import REGISTRY, Composite

from keygroups.errors import SavepointError, UnsupportedKeyTypeError
from keygroups.savepoint import Serializer
from keygroups.savepoint.values import DeweyNumber, EventId, Lockable, NodeId, SharedBufferEdge
from keygroups.savepoint.values import SharedBufferNode as Node


@pytest.mark.parametrize("older", OLDER_SNAPSHOTS, ids=lambda one: f"{one[0][-40:]}-{one[1]}")
def test_older_outer_versions(older: OlderSnapshot) -> None:
    serializer = Serializer.from_snapshot(sb.i32(2) + older.data)
    assert serializer.decode(older.value_bytes) == older.value
    assert serializer.encode(older.value) == older.value_bytes
    again = Serializer.from_snapshot(serializer.snapshot_bytes())
    assert again == serializer


def test_each_version_has_its_case() -> None:
    """Of the classes with several, as those with one are of each version that was ever written."""
    several = {
        (name, version)
        for name, known in REGISTRY.items()
        if issubclass(known, Composite) and len(known.outer_versions) > 1
        for version in known.outer_versions
    }
    assert several == {(older.snapshot, older.outer_version) for older in OLDER_SNAPSHOTS}


@pytest.mark.parametrize("version", [0, 5])
def test_versions_that_flink_never_wrote(version: int) -> None:
    data = composite(OLDER_SNAPSHOTS[0].snapshot, version, b"\0", STRING, STRING)
    with pytest.raises(SavepointError, match=f"outer version {version} is not known, only 1, 2"):
        Serializer.from_snapshot(sb.i32(2) + data)


def test_a_node_before_flink_1_13() -> None:
    """A count and the edges; Flink, which only reads it, makes each one that nobody refers to."""
    node = Serializer.from_snapshot(
        sb.i32(2) + composite(OLD_NODE, 1, b"", composite(LIST, 1, b"", EDGE))
    )
    target = NodeId(EventId(3, 9), "p")
    first = b"\1" + sb.i32(3) + sb.i64(9) + b"\2p" + sb.i32(2, 1, 4)
    data = sb.i32(2) + first + b"\0" + sb.i32(1, 5)
    assert node.decode(data) == Node(
        [
            Lockable(0, SharedBufferEdge(target, DeweyNumber((1, 4)))),
            Lockable(0, SharedBufferEdge(None, DeweyNumber((5,)))),
        ]
    )
    with pytest.raises(UnsupportedKeyTypeError, match="cannot be written here"):
        node.encode(Node([]))


def test_a_node_that_is_made_of_no_list() -> None:
    with pytest.raises(SavepointError, match="SHARED_BUFFER_NODE_V1 is made of a LIST, got STR"):
        Serializer.from_snapshot(sb.i32(2) + composite(OLD_NODE, 1, b"", STRING))


LIST = "org.apache.flink.api.common.typeutils.base.ListSerializerSnapshot"
