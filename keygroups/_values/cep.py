"""Values in the state of Flink's CEP, as its classes call them."""

from __future__ import annotations

from typing import Any, NamedTuple

from keygroups._checks import record_repr


class EventId(NamedTuple):
    """An event in the shared buffer: its number among those of one timestamp, in epoch ms."""

    id: int
    timestamp: int


class NodeId(NamedTuple):
    """A node of the shared buffer: an event that a stage of the pattern took."""

    event_id: EventId
    page_name: str | None


class DeweyNumber(NamedTuple):
    """The version of a match."""

    digits: tuple[int, ...]


class SharedBufferEdge(NamedTuple):
    """An edge to the node that precedes, None at the start."""

    target: NodeId | None
    version: DeweyNumber


class Lockable(NamedTuple):
    """An element, and the number of matches that refer to it."""

    reference_count: int
    element: Any

    def __repr__(self) -> str:
        return record_repr(self)


class SharedBufferNode(NamedTuple):
    """The edges of a node, each a Lockable."""

    edges: list[Lockable]


class ComputationState(NamedTuple):
    """A match and its state in the pattern. `previous_timestamp` is None before Flink 1.17."""

    state_name: str | None
    previous_buffer_entry: NodeId | None
    version: DeweyNumber
    start_timestamp: int
    previous_timestamp: int | None
    start_event: EventId | None


class NFAState(NamedTuple):
    """The matches of a key, partial and completed."""

    partial_matches: list[ComputationState]
    completed_matches: list[ComputationState]
