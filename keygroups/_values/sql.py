"""Values of Flink's table runtime, as its classes call them."""

from __future__ import annotations

from typing import Any, NamedTuple

from keygroups._checks import record_repr


class TimestampData(NamedTuple):
    """A timestamp as Flink SQL has it: milliseconds since the epoch, and nanoseconds above."""

    millisecond: int
    nano_of_millisecond: int


class CountWindow(NamedTuple):
    """A window of a count of rows."""

    id: int


class WindowKey(NamedTuple):
    """A window, which is a time in epoch milliseconds, and a key."""

    window: int
    key: Any

    def __repr__(self) -> str:
        return record_repr(self)


class MetaSqnInfo(NamedTuple):
    """Of a multiset: the highest sequence number, and how many rows."""

    high_sqn: int
    size: int


class RowSqnInfo(NamedTuple):
    """Of a row in a multiset: its first and last sequence numbers."""

    first_sqn: int
    last_sqn: int


class Node(NamedTuple):
    """A row in a multiset, its sequence number, those beside it, and a timestamp."""

    row: Any
    sqn: int
    prev_sqn: int | None
    next_sqn: int | None
    next_sqn_for_record: int | None
    timestamp: int

    def __repr__(self) -> str:
        return record_repr(self)
