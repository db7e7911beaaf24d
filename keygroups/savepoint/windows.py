"""The windows of a job, as `SavepointWriter.add_window_operator` takes them.

Each class is the assigner of that name in Flink, and `assign_windows` of those with a time says in
which windows an event is: `keygroups.savepoint.values.TimeWindow`. All times are milliseconds.

>>> sliding = SlidingEventTimeWindows(60_000, slide=30_000)
>>> [window.start for window in sliding.assign_windows(1_700_000_000_000)]
[1699999980000, 1699999950000]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from keygroups._checks import LONG_MAX, LONG_MIN, check_class, check_int, show
from keygroups._values.rows import TimeWindow
from keygroups.errors import InvalidValueError
from keygroups.savepoint._state.writing.new_states import EVENT_TIME, PROCESSING_TIME

__all__ = [
    "CountWindows",
    "EventTimeSessionWindows",
    "ProcessingTimeSessionWindows",
    "SlidingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "TumblingEventTimeWindows",
    "TumblingProcessingTimeWindows",
]
__dir__ = __all__.copy

_MOST_WINDOWS = 10_000_000  # Flink: SlidingEventTimeWindows.MAX_WINDOW_NUM


class WindowAssigner:
    """Windows of a keyed stream, as a job has them: one of the classes below."""


class TimeWindowAssigner(WindowAssigner, ABC):
    """Time windows. `time_domain` is EVENT_TIME or PROCESSING_TIME."""

    time_domain: ClassVar[str]
    is_merging: ClassVar[bool] = False

    @abstractmethod
    def assign_windows(self, timestamp: int) -> list[TimeWindow]:
        """Return the windows of an event with this timestamp, in Flink's order."""

    @abstractmethod
    def _check(self, window: TimeWindow) -> None:
        """Raise InvalidValueError for a window that the assigner makes for no event."""


@dataclass(frozen=True)
class _Tumbling(TimeWindowAssigner):
    size: int
    offset: int = 0

    def __post_init__(self) -> None:
        size = check_int("size", self.size, 1, LONG_MAX)
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "offset", check_int("offset", self.offset, 1 - size, size - 1))

    def assign_windows(self, timestamp: int) -> list[TimeWindow]:
        """Return the one window of an event, by its timestamp in epoch milliseconds.

        Raises InvalidTypeError or InvalidValueError for what is none, and for one so near to the
        ends of Java's longs that the window is not within them.

        Flink: TumblingEventTimeWindows.assignWindows, TimeWindow.getWindowStartWithOffset.
        """
        return _windows(timestamp, self.size, self.size, self.offset)

    def _check(self, window: TimeWindow) -> None:
        _check_aligned(self, window, self.size, self.size, self.offset)


class TumblingEventTimeWindows(_Tumbling):
    """Windows of event time that follow one another: their size, and an offset.

    Both are milliseconds: `size` from 1, `offset` between -size and size. Raises InvalidTypeError
    or InvalidValueError for other ones.

    >>> days = TumblingEventTimeWindows(86_400_000, offset=-28_800_000)  # days of UTC+8
    >>> days.assign_windows(-1)
    [TimeWindow(start=-28800000, end=57600000)]
    """

    time_domain = EVENT_TIME


class TumblingProcessingTimeWindows(_Tumbling):
    """Windows of processing time that follow one another; else like those of event time.

    >>> TumblingProcessingTimeWindows(60_000).assign_windows(1_700_000_000_000)
    [TimeWindow(start=1699999980000, end=1700000040000)]
    """

    time_domain = PROCESSING_TIME


@dataclass(frozen=True)
class _Sliding(TimeWindowAssigner):
    size: int
    slide: int
    offset: int = 0

    def __post_init__(self) -> None:
        size = check_int("size", self.size, 1, LONG_MAX)
        slide = check_int("slide", self.slide, 1, LONG_MAX)
        if size // slide > _MOST_WINDOWS:
            raise InvalidValueError(
                f"size / slide must be at most {_MOST_WINDOWS}, got {size} / {slide}"
            )
        offset = check_int("offset", self.offset, 1 - slide, slide - 1)
        for name, value in (("size", size), ("slide", slide), ("offset", offset)):
            object.__setattr__(self, name, value)

    def assign_windows(self, timestamp: int) -> list[TimeWindow]:
        """Return the windows of an event, the latest first, by its timestamp.

        There are none if `slide` is more than `size` and the event is between two windows. Else
        like that of tumbling windows.

        Flink: SlidingEventTimeWindows.assignWindows.
        """
        return _windows(timestamp, self.size, self.slide, self.offset)

    def _check(self, window: TimeWindow) -> None:
        _check_aligned(self, window, self.size, self.slide, self.offset)


class SlidingEventTimeWindows(_Sliding):
    """Windows of event time of one size; a new one starts every `slide`.

    All are milliseconds: `size` and `slide` from 1, and at most 10,000,000 times as large as
    `slide` is `size`; `offset` between -slide and slide. Raises InvalidTypeError or
    InvalidValueError for other ones.

    >>> SlidingEventTimeWindows(60_000, 30_000).assign_windows(-1)
    [TimeWindow(start=-30000, end=30000), TimeWindow(start=-60000, end=0)]
    """

    time_domain = EVENT_TIME


class SlidingProcessingTimeWindows(_Sliding):
    """Windows of processing time of one size; a new one starts every `slide`.

    >>> SlidingProcessingTimeWindows(60_000, 30_000).assign_windows(45_000)
    [TimeWindow(start=30000, end=90000), TimeWindow(start=0, end=60000)]
    """

    time_domain = PROCESSING_TIME


@dataclass(frozen=True)
class _Session(TimeWindowAssigner):
    gap: int
    is_merging = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "gap", check_int("gap", self.gap, 1, LONG_MAX))

    def assign_windows(self, timestamp: int) -> list[TimeWindow]:
        """Return the session of an event alone, by its timestamp in epoch milliseconds.

        Sessions of a key that overlap, or touch, are one for Flink: from the first start to the
        last end. Raises InvalidTypeError or InvalidValueError for what is no timestamp, and for
        one so near to the end of Java's longs that the session ends beyond.

        Flink: EventTimeSessionWindows.assignWindows.
        """
        time = check_int("timestamp", timestamp, LONG_MIN, LONG_MAX - self.gap)
        return [TimeWindow(time, time + self.gap)]

    def _check(self, window: TimeWindow) -> None:
        if window.end - window.start < self.gap:
            raise InvalidValueError(
                f"window must be one of {self}, which are at least {self.gap} long, got "
                f"{show(window)}"
            )


class EventTimeSessionWindows(_Session):
    """Sessions of event time; one ends after `gap` milliseconds, at least 1, without an event.

    Raises InvalidTypeError or InvalidValueError for another gap.

    >>> EventTimeSessionWindows(30_000).assign_windows(5_000)
    [TimeWindow(start=5000, end=35000)]
    """

    time_domain = EVENT_TIME


class ProcessingTimeSessionWindows(_Session):
    """Sessions of processing time; else like those of event time.

    >>> ProcessingTimeSessionWindows(30_000).assign_windows(5_000)
    [TimeWindow(start=5000, end=35000)]
    """

    time_domain = PROCESSING_TIME


@dataclass(frozen=True)
class CountWindows(WindowAssigner):
    """Windows of a number of elements, as KeyedStream.countWindow(size) or (size, slide) has them.

    Both are a number of elements from 1; with a `slide` the last `size` elements are a window,
    each time that `slide` more came. Raises InvalidTypeError or InvalidValueError.

    Flink: GlobalWindows with a PurgingTrigger of a CountTrigger; with a slide a CountEvictor and
    a CountTrigger.

    >>> CountWindows(100)
    CountWindows(size=100, slide=None)
    """

    size: int
    slide: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", check_int("size", self.size, 1, LONG_MAX))
        if self.slide is not None:
            object.__setattr__(self, "slide", check_int("slide", self.slide, 1, LONG_MAX))


def check_time_window(name: str, window: object) -> TimeWindow:
    """Return the window with its times checked, and as plain ints."""
    start, end = check_class(name, window, TimeWindow, "a TimeWindow")
    return TimeWindow(
        check_int(f"start of {name}", start, LONG_MIN, LONG_MAX),
        check_int(f"end of {name}", end, LONG_MIN, LONG_MAX),
    )


def _windows(timestamp: int, size: int, slide: int, offset: int) -> list[TimeWindow]:
    """Return the windows of an event, the latest first.

    45,000 is in the windows from 30,000 and from 0 if `size` is 60,000 and `slide` 30,000.
    """
    # The lowest long means "no timestamp" in Flink.
    time = check_int("timestamp", timestamp, LONG_MIN + 1, LONG_MAX)
    start = time - (time - offset) % slide
    starts = range(start, time - size, -slide)
    lowest = start - slide * len(starts)  # the long at which Java's loop ends
    if lowest < LONG_MIN or start + size > LONG_MAX or not LONG_MIN <= time - offset <= LONG_MAX:
        raise InvalidValueError(
            f"timestamp must have its windows within {LONG_MIN}..{LONG_MAX}, got {time}"
        )
    return [TimeWindow(first, first + size) for first in starts]


def _check_aligned(
    assigner: WindowAssigner, window: TimeWindow, size: int, slide: int, offset: int
) -> None:
    if window.end - window.start != size or (window.start - offset) % slide:
        raise InvalidValueError(
            f"window must be one of {assigner}, {size} long and from {offset} and a multiple of "
            f"{slide}, got {show(window)}"
        )
