"""The aggregates of one key over its changes, as Flink's GroupAggFunction keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, dropwhile
from typing import Any

from pyspark.sql import types as T

from keygroups.spark._group_by.aggregates import Aggregate
from keygroups.spark._group_by.map_view import MapView
from keygroups.spark._group_by.retention import CleanUpTimer, Retention

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = ROW_KINDS = ("+I", "-U", "+U", "-D")
RETRACTS = (UPDATE_BEFORE, DELETE)

Change = tuple[str, Sequence[Any]]  # a row's kind, and a value for each aggregate


class Group:
    """State of the key that `handle` is at: an accumulator, a map for some aggregates, a timer.

    `handle` is Spark's StatefulProcessorHandle, or has its `getValueState`, `getMapState`,
    `registerTimer` and `deleteTimer`.
    """

    def __init__(
        self, handle: Any, aggregates: Sequence[Aggregate], retention: Retention, mini_batch: bool
    ) -> None:
        self._aggregates = aggregates
        self._retention = retention
        self._mini_batch = mini_batch
        fields = [T.StructField("rows", T.LongType())]
        for index, aggregate in enumerate(aggregates):
            for name, spark_type in aggregate.fields.items():
                fields.append(T.StructField(f"{name}_{index}", spark_type))
        self._state = handle.getValueState("accState", T.StructType(fields), retention.ttl)
        self._views = [
            self._view(handle, index, aggregate) for index, aggregate in enumerate(aggregates)
        ]
        idle = retention.idle
        self._timer = None if idle is None else CleanUpTimer(handle, idle)

    def _view(self, handle: Any, index: int, aggregate: Aggregate) -> MapView:
        if aggregate.map_key is None:
            return MapView(None, False)
        key = T.StructType([T.StructField("value", aggregate.map_key)])
        value = T.StructType([T.StructField("count", T.LongType())])
        state = handle.getMapState(f"map_{index}", key, value, self._retention.ttl)
        return MapView(state, self._retention.touch)

    def apply(self, changes: Iterable[Change], now: int) -> Iterator[Change]:
        """Aggregate changes of the key at a time, and yield the changes of the result."""
        if self._timer is not None and self._timer.see(now):
            self._clear()
        for bundle in [changes] if self._mini_batch else ([change] for change in changes):
            yield from self._fold(bundle)

    def fire(self) -> None:
        """Forget the key: its clean-up timer has fired. Flink emits nothing then."""
        self._clear()
        if self._timer is not None:
            self._timer.forget()

    def _fold(self, changes: Iterable[Change]) -> Iterator[Change]:
        """Aggregate changes at once, reading and writing each state once at most."""
        known = self._state.get()
        if known is None:
            # Nothing to retract from, because the key is new or has been forgotten.
            left = dropwhile(lambda change: change[0] in RETRACTS, changes)
            first = next(left, None)
            if first is None:
                return
            changes = chain([first], left)
            rows, accs = 0, [list(aggregate.first) for aggregate in self._aggregates]
        else:
            rows, accs = self._unpack(known)
        before = self._results(accs)
        for kind, values in changes:
            retracts = kind in RETRACTS
            rows += -1 if retracts else 1
            for aggregate, acc, value, view in zip(self._aggregates, accs, values, self._views):
                (aggregate.retract if retracts else aggregate.add)(acc, value, view)
        after = self._results(accs)
        if rows == 0:
            self._clear()
            if known is not None:
                yield DELETE, before
            return
        self._state.update((rows, *chain.from_iterable(accs)))
        for aggregate, view in zip(self._aggregates, self._views):
            if aggregate.map_key is not None:
                view.flush()
        if known is None:
            yield INSERT, after
        # One by one, since lists of one and the same NaN are equal: NaN is not, in Flink either.
        elif self._retention.forgets or any(old != new for old, new in zip(before, after)):
            # With retention even if nothing changed, or what reads this would forget too early.
            yield UPDATE_BEFORE, before
            yield UPDATE_AFTER, after

    def _unpack(self, known: Sequence[Any]) -> tuple[int, list[list[Any]]]:
        accs, start = [], 1
        for aggregate in self._aggregates:
            end = start + len(aggregate.first)
            accs.append(list(known[start:end]))
            start = end
        return known[0], accs

    def _results(self, accs: Sequence[list[Any]]) -> list[Any]:
        return [aggregate.result(acc) for aggregate, acc in zip(self._aggregates, accs)]

    def _clear(self) -> None:
        self._state.clear()
        for aggregate, view in zip(self._aggregates, self._views):
            if aggregate.map_key is not None:
                view.clear()
