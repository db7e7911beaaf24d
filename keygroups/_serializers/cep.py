"""The serializers of Flink's CEP: events, the buffer that matches share, the matches."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from keygroups._checks import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, check_int, check_str, show
from keygroups._serializers.base import (
    Composite,
    Read,
    Serializer,
    Simple,
    Write,
    check_and_write,
)
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.scalars import (
    pack_int,
    read_count,
    read_int,
    read_long,
    read_string,
    write_string,
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
from keygroups.errors import InvalidTypeError, InvalidValueError

T = TypeVar("T")

_CEP = "org.apache.flink.cep.nfa."
_BUFFER = f"{_CEP}sharedbuffer."

_event_id = struct.Struct(">iq")
_pack_long = struct.Struct(">q").pack


def _expect(name: str, value: object, cls: type[T]) -> T:
    if not isinstance(value, cls):
        raise InvalidTypeError(f"{name} must be of class {cls.__name__}, got {show(value)}")
    return value


def _int(name: str, value: object) -> bytes:
    return pack_int(check_int(name, value, INT_MIN, INT_MAX))


def _long(name: str, value: object) -> bytes:
    return _pack_long(check_int(name, value, LONG_MIN, LONG_MAX))


def _text(name: str, value: object) -> bytes:
    return write_string(None if value is None else check_str(name, value))


def _read_many(read: Read, data: bytes, pos: int) -> tuple[list[Any], int]:
    """Read a count and as many values."""
    count, pos = read_count(data, pos)
    values = []
    for _ in range(count):
        value, pos = read(data, pos)
        values.append(value)
    return values, pos


def _write_many(name: str, write: Callable[[Any], bytes], values: object) -> bytes:
    written = [write(value) for value in _expect(name, values, list)]
    return pack_int(len(written)) + b"".join(written)


class EventIdSerializer(Simple):
    name, size = "EVENT_ID", 12
    snapshot = f"{_BUFFER}EventId$EventIdSerializer$EventIdSerializerSnapshot"

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[EventId, int]:
        return EventId(*_event_id.unpack_from(data, pos)), pos + 12

    @staticmethod
    def write(value: object) -> bytes:
        number, timestamp = _expect("EVENT_ID", value, EventId)
        return _int("id of an EventId", number) + _long("timestamp of an EventId", timestamp)


class DeweyNumberSerializer(Simple):
    name = "DEWEY_NUMBER"
    snapshot = f"{_CEP}DeweyNumber$DeweyNumberSerializer$DeweyNumberSerializerSnapshot"

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[DeweyNumber, int]:
        count, pos = read_count(data, pos)
        digits = struct.unpack_from(f">{count}i", data, pos)
        return DeweyNumber(digits), pos + 4 * count

    @staticmethod
    def write(value: object) -> bytes:
        [digits] = _expect("DEWEY_NUMBER", value, DeweyNumber)
        name = "digits of a DeweyNumber"
        written = [_int(name, digit) for digit in _expect(name, digits, tuple)]
        return pack_int(len(written)) + b"".join(written)


class NodeIdSerializer(Composite):
    """The id of a node, or null: an event's id, and the name of a page."""

    name, takes_null = "NODE_ID", True
    snapshot = f"{_BUFFER}NodeId$NodeIdSerializer$NodeIdSerializerSnapshot"
    outer_versions = (1,)

    def __init__(self, event_id: Serializer) -> None:
        self.parts = (event_id,)
        super().__init__(event_id)

    def bind(self, reads: Sequence[Read]) -> None:
        [read_event_id] = reads
        [event_id] = self.parts

        def read_node_id(data: bytes, pos: int) -> tuple[NodeId | None, int]:
            if not data[pos]:
                return None, pos + 1
            event, pos = read_event_id(data, pos + 1)
            page_name, pos = read_string(data, pos)
            return NodeId(event, page_name), pos

        def write_node_id(value: object) -> bytes:
            if value is None:
                return b"\0"
            event, page_name = _expect("NODE_ID", value, NodeId)
            page = _text("page_name of a NodeId", page_name)
            return b"\1" + check_and_write(event_id, event) + page

        self.read, self.write = read_node_id, write_node_id


class SharedBufferEdgeSerializer(Composite):
    """An edge: the node it leads to, and the version of the match."""

    name = "SHARED_BUFFER_EDGE"
    snapshot = (
        f"{_BUFFER}SharedBufferEdge$SharedBufferEdgeSerializer$SharedBufferEdgeSerializerSnapshot"
    )
    outer_versions, arity = (1,), 2

    def __init__(self, node_id: Serializer, version: Serializer) -> None:
        self.parts = (node_id, version)
        super().__init__(node_id, version)

    def bind(self, reads: Sequence[Read]) -> None:
        read_node_id, read_version = reads
        node_id, dewey_number = self.parts

        def read_edge(data: bytes, pos: int) -> tuple[SharedBufferEdge, int]:
            target, pos = read_node_id(data, pos)
            version, pos = read_version(data, pos)
            return SharedBufferEdge(target, version), pos

        def write_edge(value: object) -> bytes:
            target, version = _expect("SHARED_BUFFER_EDGE", value, SharedBufferEdge)
            return check_and_write(node_id, target) + check_and_write(dewey_number, version)

        self.read, self.write = read_edge, write_edge


def _lockable(element: Serializer, read: Read) -> tuple[Read, Write]:
    """Return what reads and writes an element after the count of those that refer to it."""

    def read_lockable(data: bytes, pos: int) -> tuple[Lockable, int]:
        reference_count, pos = read_int(data, pos)
        value, pos = read(data, pos)
        return Lockable(reference_count, value), pos

    def write_lockable(value: object) -> bytes:
        reference_count, inner = _expect("LOCKABLE", value, Lockable)
        count = _int("reference_count of a Lockable", reference_count)
        return count + check_and_write(element, inner)

    return read_lockable, write_lockable


class LockableTypeSerializer(Composite):
    """An element, and how many matches refer to it."""

    name, snapshot = "LOCKABLE", f"{_BUFFER}LockableTypeSerializerSnapshot"
    outer_versions = (1,)

    def __init__(self, element: Serializer) -> None:
        self.parts = (element,)
        super().__init__(element)

    def bind(self, reads: Sequence[Read]) -> None:
        [element], [read] = self.parts, reads
        self.read, self.write = _lockable(element, read)


class SharedBufferNodeSerializer(Composite):
    """A node: its edges, each with how many refer to it."""

    name, snapshot = "SHARED_BUFFER_NODE", f"{_BUFFER}SharedBufferNodeSerializerSnapshotV2"
    outer_versions = (1,)

    def __init__(self, edge: Serializer) -> None:
        self.parts = (edge,)
        super().__init__(edge)

    def bind(self, reads: Sequence[Read]) -> None:
        [edge], [read_edge] = self.parts, reads
        read_lockable, write_lockable = _lockable(edge, read_edge)

        def read_node(data: bytes, pos: int) -> tuple[SharedBufferNode, int]:
            edges, pos = _read_many(read_lockable, data, pos)
            return SharedBufferNode(edges), pos

        def write_node(value: object) -> bytes:
            [edges] = _expect("SHARED_BUFFER_NODE", value, SharedBufferNode)
            return _write_many("edges of a SharedBufferNode", write_lockable, edges)

        self.read, self.write = read_node, write_node


class SharedBufferNodeV1Serializer(Composite):
    """A node before Flink 1.13: a list of edges without counts, which are 0 as Flink reads them.

    Flink itself writes no such nodes any more.
    """

    name = "SHARED_BUFFER_NODE_V1"
    snapshot = (
        f"{_BUFFER}SharedBufferNode$SharedBufferNodeSerializer$SharedBufferNodeSerializerSnapshot"
    )
    outer_versions = (1,)

    def __init__(self, edges: Serializer) -> None:
        self.parts = (edges,)
        super().__init__(edges)

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
        read_version, read_node_id, read_event_id = reads
        write_version, write_node_id, write_event_id = (
            partial(check_and_write, part) for part in self.parts
        )
        has_previous = self.has_previous_timestamp

        def read_match(data: bytes, pos: int) -> tuple[ComputationState, int]:
            state_name, pos = read_string(data, pos)
            node_id, pos = read_node_id(data, pos)
            version, pos = read_version(data, pos)
            start, pos = read_long(data, pos)
            previous = event = None
            if has_previous:
                previous, pos = read_long(data, pos)
            has_event, pos = data[pos], pos + 1
            if has_event:
                event, pos = read_event_id(data, pos)
            return ComputationState(state_name, node_id, version, start, previous, event), pos

        def write_match(value: object) -> bytes:
            state_name, node_id, version, start, previous, event = _expect(
                "a match of an NFA_STATE", value, ComputationState
            )
            if not has_previous and previous is not None:
                raise InvalidValueError(
                    "previous_timestamp of a ComputationState must be None before Flink 1.17, "
                    f"got {show(previous)}"
                )
            return b"".join(
                (
                    _text("state_name of a ComputationState", state_name),
                    write_node_id(node_id),
                    write_version(version),
                    _long("start_timestamp of a ComputationState", start),
                    _long("previous_timestamp of a ComputationState", previous)
                    if has_previous
                    else b"",
                    b"\0" if event is None else b"\1" + write_event_id(event),
                )
            )

        def read_state(data: bytes, pos: int) -> tuple[NFAState, int]:
            partial_matches, pos = _read_many(read_match, data, pos)
            completed_matches, pos = _read_many(read_match, data, pos)
            return NFAState(partial_matches, completed_matches), pos

        def write_state(value: object) -> bytes:
            matches = _expect("NFA_STATE", value, NFAState)
            names = ("partial_matches of an NFAState", "completed_matches of an NFAState")
            return b"".join(
                _write_many(name, write_match, part) for name, part in zip(names, matches)
            )

        self.read, self.write = read_state, write_state

    @classmethod
    def read_outer(cls, cursor: Cursor, outer_version: int) -> bool:
        return outer_version == 2 and cursor.bool()

    @classmethod
    def made_of(cls, cursor: Cursor, nested: list[Serializer], outer: bool) -> Serializer:
        version, node_id, event_id = nested
        return cls(version, node_id, event_id, outer)

    def outer(self) -> bytes:
        return bytes([self.has_previous_timestamp])
