"""Counts times: last accesses by their age, timers by when they fire."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from keygroups._checks import LONG_MAX, LONG_MIN
from keygroups.savepoint._columns.readers.parts import Column
from keygroups.savepoint.summaries import TimeCounts

_HOUR = 3_600_000  # milliseconds
_DAY = 24 * _HOUR
_AGES = {
    "within an hour": _HOUR,
    "within a day": _DAY,
    "within 7 days": 7 * _DAY,
    "within 30 days": 30 * _DAY,
    "within a year": 365 * _DAY,
}
"""The most milliseconds that a last access is ago, by what it is counted as."""
_WAITS = {"due": 0, "within an hour": _HOUR, "within a day": _DAY, "within 7 days": 7 * _DAY}
"""The most milliseconds until a timer fires."""


class TimesTally:
    """The numbers of times between bounds, and the first and the last; it may be pickled.

    `bounds` are the greatest of each kind but the last, in order, in epoch milliseconds.
    """

    def __init__(self, names: tuple[str, ...], bounds: tuple[int, ...]) -> None:
        self.names = names
        self.bounds = bounds
        self.counts: list[int] = []
        self.earliest, self.latest = LONG_MAX, LONG_MIN

    @classmethod
    def of(cls, are_timers: bool, at: int) -> TimesTally:
        """Return the tally of timers, or of last accesses, at a time in epoch milliseconds."""
        if are_timers:
            bounds = [*(at + wait for wait in _WAITS.values()), LONG_MAX - 1]
            return cls((*_WAITS, "later", "never"), tuple(bounds))
        ages = [at - age - 1 for age in reversed(_AGES.values())]
        return cls(("older", *reversed(_AGES)), tuple(ages))

    def add(self, column: Column) -> None:
        """Count the times of a column, without nulls; None is a column of nulls."""
        if column is None:
            return
        if isinstance(column, pa.Array):
            times = column.drop_null().to_numpy(zero_copy_only=False)
        else:
            times = np.array([time for time in column if time is not None], np.int64)
        if not len(times):
            return
        places = np.searchsorted(np.array(self.bounds, np.int64), times)
        counts = np.bincount(places, minlength=len(self.names)).tolist()
        self._add_counts(counts)
        self.earliest = min(self.earliest, int(times.min()))
        firing = times[times < LONG_MAX]
        if len(firing):
            self.latest = max(self.latest, int(firing.max()))

    def join(self, other: TimesTally) -> None:
        """Add the counts of others."""
        if other.counts:
            self._add_counts(other.counts)
        self.earliest = min(self.earliest, other.earliest)
        self.latest = max(self.latest, other.latest)

    def _add_counts(self, counts: list[int]) -> None:
        known = self.counts or [0] * len(counts)
        self.counts = [count + more for count, more in zip(known, counts)]

    def finished(self) -> TimeCounts | None:
        """Return the counts, None where there was no time."""
        if not self.counts:
            return None
        named = [*zip(self.names, self.counts)]
        if self.names[0] == "older":
            named.reverse()
        if self.latest == LONG_MIN:  # All are timers that never fire.
            return TimeCounts(None, None, tuple(named))
        return TimeCounts(self.earliest, self.latest, tuple(named))
