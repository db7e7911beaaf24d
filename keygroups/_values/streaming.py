"""Values of Flink's streaming runtime, as its classes call them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from keygroups._checks import record_repr


class TaggedUnion(NamedTuple):
    """An element of a join or a coGroup of windows: of input 1 or 2."""

    input: int
    value: Any

    def __repr__(self) -> str:
        return record_repr(self)


class BufferEntry(NamedTuple):
    """An element that waits in an interval join, and whether it was joined already."""

    element: Any
    has_been_joined: bool

    def __repr__(self) -> str:
        return record_repr(self)


@dataclass(frozen=True)
class StreamRecord:
    """A record, with its timestamp in epoch milliseconds, or None without one."""

    value: Any
    timestamp: int | None = None

    def __repr__(self) -> str:
        return record_repr(self)


@dataclass(frozen=True)
class Watermark:
    """A watermark, in epoch milliseconds."""

    timestamp: int


@dataclass(frozen=True)
class WatermarkStatus:
    """Whether a stream is active, 0, or idle, -1."""

    status: int


@dataclass(frozen=True)
class LatencyMarker:
    """A marker that measures latency: when it was made, by which subtask of an operator."""

    marked_time: int
    operator_id: str
    subtask_index: int


@dataclass(frozen=True)
class RecordAttributes:
    """Whether the records that follow are of a backlog."""

    is_backlog: bool


class TransactionHolder(NamedTuple):
    """A transaction of a two-phase commit sink, and when it began, in epoch milliseconds."""

    handle: Any
    transaction_start_time: int

    def __repr__(self) -> str:
        return record_repr(self)


class TwoPhaseCommitState(NamedTuple):
    """State of a two-phase commit sink; `context` is None or `Some`."""

    pending_transaction: TransactionHolder | None
    pending_commit_transactions: list[TransactionHolder]
    context: Any

    def __repr__(self) -> str:
        return record_repr(self)
