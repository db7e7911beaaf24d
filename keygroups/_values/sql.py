"""Values of Flink's table runtime, named like its classes."""

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
    """The highest sequence number of a multiset, and its number of rows."""

    high_sqn: int
    size: int


class RowSqnInfo(NamedTuple):
    """The first and last sequence number of a row in a multiset."""

    first_sqn: int
    last_sqn: int


class Node(NamedTuple):
    """A row in a multiset, its sequence number, those of its neighbours, and a timestamp."""

    row: Any
    sqn: int
    prev_sqn: int | None
    next_sqn: int | None
    next_sqn_for_record: int | None
    timestamp: int

    def __repr__(self) -> str:
        return record_repr(self)
