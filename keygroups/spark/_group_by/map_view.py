"""One map state of a key: its values, each with how often it is there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class MapView:
    """Reads each entry of Spark's MapState once and writes it once, until it is flushed.

    With `touch` an entry that is read is written again, which renews its TTL: Spark renews it on
    a write only, Flink's OnReadAndWrite on a read too.
    """

    def __init__(self, state: Any, touch: bool) -> None:
        self._state = state
        self._touch = touch
        self._counts: dict[object, int | None] = {}
        self._to_write: set[object] = set()

    def get(self, value: object) -> int:
        """Return how often a value is there, 0 where it is not."""
        if value not in self._counts:
            entry = self._state.getValue((value,))
            self._keep(value, None if entry is None else entry[0])
        return self._counts[value] or 0

    def put(self, value: object, count: int) -> None:
        """Note down how often it is there; 0 removes it."""
        self._counts[value] = count or None
        self._to_write.add(value)

    def values(self) -> Iterator[Any]:
        """Yield every value that is there."""
        for (value,), (count,) in self._state.iterator():
            if value not in self._counts:
                if not self._touch:
                    yield value
                    continue
                self._keep(value, count)
        yield from [value for value, count in self._counts.items() if count is not None]

    def flush(self) -> None:
        """Write what has changed."""
        for value in self._to_write:
            count = self._counts[value]
            if count is None:
                self._state.removeKey((value,))
            else:
                self._state.updateValue((value,), (count,))
        self._forget()

    def clear(self) -> None:
        """Remove every entry."""
        self._state.clear()
        self._forget()

    def _keep(self, value: object, count: int | None) -> None:
        self._counts[value] = count
        if self._touch and count is not None:
            self._to_write.add(value)

    def _forget(self) -> None:
        self._counts.clear()
        self._to_write.clear()
