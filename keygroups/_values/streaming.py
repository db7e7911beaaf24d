"""Values of Flink's streaming runtime, named like its classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from keygroups._checks import record_repr


class TaggedUnion(NamedTuple):
    """An element of a join or a coGroup of windows, from input 1 or 2."""

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
    """A mark that a stream is active, 0, or idle, -1."""

    status: int


@dataclass(frozen=True)
class LatencyMarker:
    """A marker that measures latency: its time in epoch ms, and the subtask that made it."""

    marked_time: int
    operator_id: str
    subtask_index: int


@dataclass(frozen=True)
class RecordAttributes:
    """A mark that says whether the records after it are of a backlog."""

    is_backlog: bool


class KafkaTransaction(NamedTuple):
    """A transaction of Kafka that is prepared: what `kafka-transactions.sh` names it by.

    FlinkKafkaProducer has one without an id, None, and with a producer and an epoch of -1, where
    it writes without transactions.
    """

    transactional_id: str | None
    producer_id: int
    epoch: int


class NextTransactionalIdHint(NamedTuple):
    """The next number of a transactional id that no FlinkKafkaProducer has had, and its subtasks.

    One subtask has it, for all.
    """

    next_free_transactional_id: int
    last_parallelism: int


class TransactionHolder(NamedTuple):
    """A transaction of a two-phase commit sink, and its start in epoch milliseconds."""

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
