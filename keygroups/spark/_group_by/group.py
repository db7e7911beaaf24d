"""The aggregates of one key over its changes, as Flink's GroupAggFunction keeps them.

The record of a key is, in little endian,

| bytes | |
|---|---|
| 8 | when it is forgotten, in milliseconds since 1970-01-01 UTC; only with a retention |
| 1 | 1, or 0 for a key that has only its clean-up time left, where that is all |
| | the number of its rows and the accumulators, as `fields` has them |
| 4 | for each aggregate with values in a map state: twice their number, or twice the number of their pages and one |
| | each value, as `fields` has it, its count in 8 bytes, and 8 when it is forgotten; the latter only with a TTL |

A value in a page is the same: the value is the key there, the rest the value.
"""  # noqa: E501 (a table)

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import chain, dropwhile
from operator import ne
from typing import Any, NamedTuple, cast

from pyspark.sql import types as T

from keygroups.spark._group_by.aggregates import Aggregate
from keygroups.spark._group_by.fields import RowCodec
from keygroups.spark._group_by.map_view import ForPages, MapView
from keygroups.spark._group_by.pages import damaged
from keygroups.spark._group_by.retention import Retention

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = ROW_KINDS = ("+I", "-U", "+U", "-D")
RETRACTS = (UPDATE_BEFORE, DELETE)
_UNTIL = struct.Struct("<q")

RowChange = tuple[str, Sequence[Any]]  # a row's kind, and a value for each aggregate


class Routing(NamedTuple):
    """The key type and the parallelisms: a key's key group and partition depend on these."""

    max_parallelism: int
    parallelism: int
    key_type: str


class RecordLayout:
    """The layout of the records of a query: its aggregates, their bytes and the retention."""

    def __init__(self, aggregates: Sequence[Aggregate], retention: Retention) -> None:
        self.aggregates = aggregates
        self.retention = retention
        # Bound once, as they are called for each row of each key.
        self.add = [aggregate.add for aggregate in aggregates]
        self.retract = [aggregate.retract for aggregate in aggregates]
        self.result = [aggregate.result for aggregate in aggregates]
        types: list[T.DataType] = [T.LongType()]
        for aggregate in aggregates:
            types += aggregate.fields.values()
        self.accumulators = RowCodec(types)
        self.values = [
            None if aggregate.map_key is None else RowCodec([aggregate.map_key])
            for aggregate in aggregates
        ]
        self.has_views = any(self.values)
        self.no_views = [None] * len(aggregates)


class Group:
    """The state of a key at a time, taken from its record.

    `for_pages(index, size)` gives the pages of the aggregate that has this index. `until` is when
    the key is forgotten, None for never and for a new key before `see`.
    """

    def __init__(
        self, layout: RecordLayout, for_pages: Any, now: int, record: bytes | None
    ) -> None:
        self._layout = layout
        self._now = now
        self.views: Sequence[MapView | None] = layout.no_views
        if layout.has_views:
            retention = layout.retention
            ttl = None if retention.ttl is None else now + retention.ttl
            self.views = [
                None
                if fields is None
                else MapView(fields, _of(for_pages, index), now, ttl, retention.touch)
                for index, fields in enumerate(layout.values)
            ]
        self.until: int | None = None
        self.rows = 0
        self._accs: list[list[Any]] | None = None  # None for a key without state
        self._last: list[Any] | None = None  # the results, where they are known
        if record is not None:
            try:
                self._read(record)
            except (struct.error, ValueError, OverflowError, IndexError, ArithmeticError) as error:
                raise damaged(error) from error
        if self.until is not None and self.until <= now:
            self._clear()
            self.until = None

    def _read(self, record: bytes) -> None:
        at = 0
        if self._layout.retention.forgets:
            (self.until,) = _UNTIL.unpack_from(record)
            at = _UNTIL.size
        has_state, at = record[at], at + 1
        if has_state:
            (self.rows, *values), at = self._layout.accumulators.decode(record, at)
            self._accs, start = [], 0
            for aggregate in self._layout.aggregates:
                end = start + len(aggregate.first)
                self._accs.append(values[start:end])
                start = end
            if self._layout.has_views:
                for view in self.views:
                    if view is not None:
                        at = view.read(record, at)
        if has_state > 1 or at != len(record):
            raise ValueError("a record has other bytes than its layout")

    def see(self) -> bool:
        """Note that the key has a row; return whether its clean-up timer has moved.

        The clean-up timer is Flink's of CleanupState. It stays when the aggregate ends: until it
        fires, a key that comes back finds it.
        """
        retention = self._layout.retention
        if retention.idle is None:
            return False
        low, high = retention.idle
        if self.until is not None and self._now + low <= self.until:
            return False
        self.until = self._now + high
        return True

    def apply(self, changes: Sequence[RowChange], mini_batch: bool) -> list[RowChange]:
        """Aggregate changes of the key, and return the changes of the result."""
        if mini_batch:
            return self._fold(changes)
        made: list[RowChange] = []
        for change in changes:
            made += self._fold((change,))
        return made

    def record(self) -> bytes | None:
        """Write the values in pages, and return the record; None for a key without anything."""
        until = b"" if self.until is None else _UNTIL.pack(self.until)
        if self._accs is None:
            return until + b"\0" if until else None
        encoded = self._layout.accumulators.encode((self.rows, *chain.from_iterable(self._accs)))
        if not self._layout.has_views:
            return until + b"\1" + encoded
        views = [view.write() for view in self.views if view is not None]
        return b"".join([until, b"\1", encoded, *views])

    def results(self) -> list[Any] | None:
        """Return the aggregates; None for a key without state."""
        return None if self._accs is None else self._results(self._accs)

    def _fold(self, changes: Sequence[RowChange]) -> list[RowChange]:
        """Aggregate changes, and return at most one change of the result for all of them."""
        layout = self._layout
        accs = self._accs
        before: list[Any] | None = None  # None for a key without state
        if accs is not None:
            before = self._results(accs) if self._last is None else self._last
        else:
            # A key that is new or was forgotten has nothing to take its first retractions from.
            if changes[0][0] in RETRACTS:
                changes = [*dropwhile(lambda change: change[0] in RETRACTS, changes)]
                if not changes:
                    return []
            self.rows, accs = 0, [list(aggregate.first) for aggregate in layout.aggregates]
        views = cast(list[MapView], self.views)  # Aggregates without a view ignore the None.
        for kind, values in changes:
            if kind in RETRACTS:
                self.rows -= 1
                for retract, acc, value, view in zip(layout.retract, accs, values, views):
                    retract(acc, value, view)
            else:
                self.rows += 1
                for add, acc, value, view in zip(layout.add, accs, values, views):
                    add(acc, value, view)
        retention = layout.retention
        if self.rows == 0:
            self._clear()
            return [] if before is None else [(DELETE, before)]
        after = self._last = self._results(accs)
        self._accs = accs
        if retention.ttl is not None:
            self.until = self._now + retention.ttl
        if before is None:
            return [(INSERT, after)]
        # One by one, since lists of one and the same NaN are equal: NaN is not, in Flink either.
        if retention.forgets or any(map(ne, before, after)):
            # With retention even if nothing changed: operators after it would forget too early.
            return [(UPDATE_BEFORE, before), (UPDATE_AFTER, after)]
        return []

    def _results(self, accs: Sequence[list[Any]]) -> list[Any]:
        return [result(acc) for result, acc in zip(self._layout.result, accs)]

    def _clear(self) -> None:
        self._accs = self._last = None
        if self._layout.retention.idle is None:
            self.until = None
        for view in self.views:
            if view is not None:
                view.clear()


def _of(for_pages: Any, index: int) -> ForPages:
    return lambda size: for_pages(index, size)
