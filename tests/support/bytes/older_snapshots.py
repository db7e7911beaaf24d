"""Snapshots of composite serializers in the older versions that Flink's readOuterSnapshot reads.

Each with a value as that version had it, and what the value is. The classes are those of which
the method looks at the version, in Flink 1.13.6, 1.18.0 and 2.3.0 alike.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from keygroups.savepoint.values import (
    ComputationState,
    DeweyNumber,
    EventId,
    NFAState,
    NodeId,
    Row,
    Some,
    TransactionHolder,
    TwoPhaseCommitState,
)
from support.bytes import savepoint_bytes as sb

_CEP = "org.apache.flink.cep.nfa."
_BUFFER = f"{_CEP}sharedbuffer."
_SINK = "org.apache.flink.streaming.api.functions.sink."
TWO_PHASE = f"{_SINK}TwoPhaseCommitSinkFunction$StateSerializerSnapshot"
LEGACY_TWO_PHASE = f"{_SINK}legacy.TwoPhaseCommitSinkFunction$StateSerializerSnapshot"
ROW = "org.apache.flink.api.java.typeutils.runtime.RowSerializer$RowSerializerSnapshot"
LINKED_LIST = (
    "org.apache.flink.table.runtime.typeutils.LinkedListSerializer$LinkedListSerializerSnapshot"
)
NFA_STATE = f"{_CEP}NFAStateSerializerSnapshot"
OLD_NODE = (
    f"{_BUFFER}SharedBufferNode$SharedBufferNodeSerializer$SharedBufferNodeSerializerSnapshot"
)

STRING, LONG = sb.simple("String"), sb.simple("Long")
EVENT_ID = sb.snapshot(f"{_BUFFER}EventId$EventIdSerializer$EventIdSerializerSnapshot", 3)
DEWEY = sb.snapshot(f"{_CEP}DeweyNumber$DeweyNumberSerializer$DeweyNumberSerializerSnapshot", 3)


class OlderSnapshot(NamedTuple):
    """A snapshot of a class with an outer version, the bytes of a value, and the value."""

    snapshot: str
    outer_version: int
    data: bytes
    value_bytes: bytes
    value: Any


def composite(name: str, outer_version: int, outer: bytes, *nested: bytes) -> bytes:
    """Return a snapshot as CompositeTypeSerializerSnapshot writes it."""
    head = sb.i32(911108, outer_version) + outer + sb.i32(1333245, 1, len(nested))
    return sb.snapshot(name, 3, head + b"".join(nested))


NODE_ID = composite(f"{_BUFFER}NodeId$NodeIdSerializer$NodeIdSerializerSnapshot", 1, b"", EVENT_ID)
EDGE = composite(
    f"{_BUFFER}SharedBufferEdge$SharedBufferEdgeSerializer$SharedBufferEdgeSerializerSnapshot",
    *(1, b"", NODE_ID, DEWEY),
)


def _outer(version: int, last: int, flag: bool) -> bytes:
    """Only from a version on is there a flag."""
    return bytes([flag]) if version >= last else b""


def _two_phase(name: str, version: int, flag: bool) -> OlderSnapshot:
    data = composite(name, version, _outer(version, 4, flag), STRING, STRING)
    has_mark = version == 3 or flag
    holder = b"\2t" + sb.i64(5)
    value = (b"\1" if has_mark else b"") + holder + sb.i32(1) + b"\2u" + sb.i64(6) + b"\1\2c"
    state = TwoPhaseCommitState(TransactionHolder("t", 5), [TransactionHolder("u", 6)], Some("c"))
    return OlderSnapshot(name, version, data, value, state)


def _row(version: int, flag: bool) -> OlderSnapshot:
    data = composite(ROW, version, _outer(version, 4, flag), LONG, STRING)
    mask = b"\x10" if version == 3 or flag else b"\x40"
    return OlderSnapshot(ROW, version, data, mask + sb.i64(7), Row((7, None)))


def _linked_list(version: int, flag: bool) -> OlderSnapshot:
    data = composite(LINKED_LIST, version, _outer(version, 3, flag), LONG)
    has_mask = version == 2 or flag
    mask, values = (b"\x40", [7, None, 8]) if has_mask else (b"", [7, 8])
    written = sb.i32(len(values)) + mask + sb.i64(7) + sb.i64(8)
    return OlderSnapshot(LINKED_LIST, version, data, written, values)


def _nfa_state(version: int, flag: bool) -> OlderSnapshot:
    data = composite(NFA_STATE, version, _outer(version, 2, flag), DEWEY, NODE_ID, EVENT_ID)
    event = sb.i32(3) + sb.i64(9)
    match = b"\2s" + b"\1" + event + b"\2p" + sb.i32(2, 1, 4) + sb.i64(9)
    match += sb.i64(11) if flag else b""
    match += b"\1" + event
    node = NodeId(EventId(3, 9), "p")
    state = ComputationState(
        *("s", node, DeweyNumber((1, 4)), 9, 11 if flag else None, EventId(3, 9))
    )
    value = NFAState([state], [])
    return OlderSnapshot(NFA_STATE, version, data, sb.i32(1) + match + sb.i32(0), value)


OLDER_SNAPSHOTS = [
    *(_two_phase(TWO_PHASE, version, False) for version in (1, 2, 3, 4)),
    _two_phase(TWO_PHASE, 4, True),
    *(_two_phase(LEGACY_TWO_PHASE, version, False) for version in (1, 2, 3, 4)),
    *(_row(version, False) for version in (1, 2, 3, 4)),
    _row(4, True),
    *(_linked_list(version, False) for version in (1, 2, 3)),
    _linked_list(3, True),
    *(_nfa_state(version, False) for version in (1, 2)),
    _nfa_state(2, True),
]
