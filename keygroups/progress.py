"""The progress of long work, reported to a function of the caller's.

`read_savepoint(path, progress=function)` calls it for all work on that savepoint: reading its
state, writing it anew, editing it. What starts from no savepoint, such as `SavepointWriter` and
`keys_for_subtasks`, takes a `progress` of its own. In place of a function `progress=True` shows a
bar where tqdm is installed, else a line on standard error if that is a terminal.

The function is called at most ten times a second while a piece of work goes on, and once when
all of it is done, in the thread that does it; not after an error. An exception of it ends the
work, as Ctrl-C does. Without a function nothing is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import NamedTuple

__all__ = ["Progress", "ProgressCallback"]
__dir__ = __all__.copy

_INTERVAL = 0.1  # seconds between two calls


class Progress(NamedTuple):
    """The state of a piece of work: `done` of `total`, in a `unit`.

    `work` is its name, such as "read by-user"; `unit` is "bytes", "key groups" or "keys".
    0 <= done <= total, and 1 <= total, as there is no call where there is nothing to do; the two
    are equal in the last call for a piece of work, and in no other.
    Bytes are those of files as they are stored; some are read twice or never, so that the last
    step may be a large one.

    >>> progress = Progress("read by-user", 3_000_000, 12_000_000, "bytes")
    >>> f"{progress.work}: {100 * progress.done // progress.total} %"
    'read by-user: 25 %'
    """

    work: str
    done: int
    total: int
    unit: str


ProgressCallback = Callable[[Progress], object]
"""A function that gets each `Progress`; its result is ignored."""


class Meter:
    """A counter of a piece of work, which calls a function at most ten times a second."""

    def __init__(self, progress: ProgressCallback, work: str, total: int, unit: str) -> None:
        self._progress = progress
        self._work = work
        self._total = total
        self._unit = unit
        self._done = 0
        self._next = monotonic() + _INTERVAL

    def add(self, count: int) -> None:
        """Add to the count of the done units."""
        self._done += count
        if self._done < self._total and (now := monotonic()) >= self._next:
            self._next = now + _INTERVAL
            self._tell(self._done)

    def finish(self) -> None:
        """Report that all is done, if there was anything to do."""
        if self._total:
            self._tell(self._total)

    def _tell(self, done: int) -> None:
        self._progress(Progress(self._work, done, self._total, self._unit))


class _CallbackError(BaseException):
    """A wrapper of the callback's exception, so that no handler takes it for a damaged file."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


@contextmanager
def measured(
    progress: ProgressCallback | None, work: str, total: Callable[[], int], unit: str = "bytes"
) -> Iterator[Meter | None]:
    """Yield the `Meter` of a piece of work, None without a callback.

    `total` returns the units to do, and is only called with a callback. An exception of the
    callback leaves the block as it was raised.
    """
    if progress is None:
        yield None
        return

    def tell(state: Progress) -> None:
        try:
            progress(state)
        except Exception as error:
            raise _CallbackError(error) from None

    meter = Meter(tell, work, total(), unit)
    try:
        yield meter
        meter.finish()
    except _CallbackError as raised:
        raised.error.__suppress_context__ = True  # The wrapper is hidden, a cause is kept.
        raise raised.error  # noqa: B904  # `from None` would drop a cause.
