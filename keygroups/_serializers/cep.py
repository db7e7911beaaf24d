"""The serializers of Flink's CEP: events, the buffer that matches share, the matches."""

from __future__ import annotations

from collections.abc import Sequence

from keygroups._checks import show
from keygroups._serializers.base import Composite, Read, Serializer, Simple
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.records import (
    INT,
    LONG,
    TEXT,
    Field,
    many,
    nullable,
    part,
    record,
)
from keygroups._values.cep import (
    ComputationState,
    DeweyNumber,
    EventId,
    Lockable,
    NFAState,
    NodeId,
    SharedBufferEdge,
    SharedBufferNode,
)
from keygroups.errors import InvalidValueError

_CEP = "org.apache.flink.cep.nfa."
_BUFFER = f"{_CEP}sharedbuffer."


class EventIdSerializer(Simple):
    name, size = "EVENT_ID", 12
    snapshot = f"{_BUFFER}EventId$EventIdSerializer$EventIdSerializerSnapshot"

    def bind(self, reads: Sequence[Read]) -> None:
        self.read, self.write = record(EventId, INT, LONG).named(self.name)


class DeweyNumberSerializer(Simple):
    name = "DEWEY_NUMBER"
    snapshot = f"{_CEP}DeweyNumber$DeweyNumberSerializer$DeweyNumberSerializerSnapshot"

    def bind(self, reads: Sequence[Read]) -> None:
        self.read, self.write = record(DeweyNumber, many(INT, tuple)).named(self.name)


class NodeIdSerializer(Composite):
    """The id of a node, or null: an event's id, and the name of a page."""

    name, takes_null = "NODE_ID", True
    snapshot = f"{_BUFFER}NodeId$NodeIdSerializer$NodeIdSerializerSnapshot"
    outer_versions = (1,)

    def bind(self, reads: Sequence[Read]) -> None:
        [event_id] = self.parts
        self.read, self.write = nullable(record(NodeId, part(event_id), TEXT)).named(self.name)


class SharedBufferEdgeSerializer(Composite):
    """An edge: the node it leads to, and the version of the match."""

    name = "SHARED_BUFFER_EDGE"
    snapshot = (
        f"{_BUFFER}SharedBufferEdge$SharedBufferEdgeSerializer$SharedBufferEdgeSerializerSnapshot"
    )
    outer_versions, arity = (1,), 2

    def bind(self, reads: Sequence[Read]) -> None:
        edge = record(SharedBufferEdge, *map(part, self.parts))
        self.read, self.write = edge.named(self.name)


class LockableTypeSerializer(Composite):
    """An element, and the number of matches that refer to it."""

    name, snapshot = "LOCKABLE", f"{_BUFFER}LockableTypeSerializerSnapshot"
    outer_versions = (1,)

    def bind(self, reads: Sequence[Read]) -> None:
        [element] = self.parts
        self.read, self.write = record(Lockable, INT, part(element)).named(self.name)


class SharedBufferNodeSerializer(Composite):
    """A node: its edges, each with the number of references to it."""

    name, snapshot = "SHARED_BUFFER_NODE", f"{_BUFFER}SharedBufferNodeSerializerSnapshotV2"
    outer_versions = (1,)

    def bind(self, reads: Sequence[Read]) -> None:
        [edge] = self.parts
        edges = many(record(Lockable, INT, part(edge)))
        self.read, self.write = record(SharedBufferNode, edges).named(self.name)


class SharedBufferNodeV1Serializer(Composite):
    """A node before Flink 1.13: a list of edges without counts, which are 0 as Flink reads them.

    Flink itself writes no such nodes any more.
    """

    name = "SHARED_BUFFER_NODE_V1"
    snapshot = (
        f"{_BUFFER}SharedBufferNode$SharedBufferNodeSerializer$SharedBufferNodeSerializerSnapshot"
    )
    outer_versions = (1,)

    @classmethod
    def made_of(cls, cursor: Cursor, nested: list[Serializer], outer: None) -> Serializer:
        [edges] = nested
        if edges.name != "LIST":
            raise cursor.error(f"{cls.name} is made of a LIST, got {edges}")
        return cls(edges)

    def bind(self, reads: Sequence[Read]) -> None:
        [read_edges] = reads

        def read_node(data: bytes, pos: int) -> tuple[SharedBufferNode, int]:
            edges, pos = read_edges(data, pos)
            return SharedBufferNode([Lockable(0, edge) for edge in edges]), pos

        self.read = read_node


class NFAStateSerializer(Composite):
    """The matches of a key; before Flink 1.17 each without the time of its previous event."""

    name, snapshot = "NFA_STATE", f"{_CEP}NFAStateSerializerSnapshot"
    outer_versions, arity = (1, 2), 3

    def __init__(
        self,
        version: Serializer,
        node_id: Serializer,
        event_id: Serializer,
        has_previous_timestamp: bool = True,
    ) -> None:
        self.parts = (version, node_id, event_id)
        self.has_previous_timestamp = has_previous_timestamp
        super().__init__(*self.parts, has_previous_timestamp)

    def bind(self, reads: Sequence[Read]) -> None:
        version, node_id, event_id = map(part, self.parts)
        previous = LONG if self.has_previous_timestamp else _LEFT_OUT
        fields = (TEXT, node_id, version, LONG, previous, nullable(event_id))
        matches = many(record(ComputationState, *fields))
        self.read, self.write = record(NFAState, matches, matches).named(self.name)

    @classmethod
    def read_outer(cls, cursor: Cursor, outer_version: int) -> bool:
        return outer_version == 2 and cursor.bool()

    @classmethod
    def made_of(cls, cursor: Cursor, nested: list[Serializer], outer: bool) -> Serializer:
        version, node_id, event_id = nested
        return cls(version, node_id, event_id, outer)

    def outer(self) -> bytes:
        return bytes([self.has_previous_timestamp])


def _write_none(name: str, value: object) -> bytes:
    if value is not None:
        raise InvalidValueError(f"{name} must be None before Flink 1.17, got {show(value)}")
    return b""


_LEFT_OUT = Field(lambda data, pos: (None, pos), _write_none)
