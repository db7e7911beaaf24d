"""The windows of a job, as `SavepointWriter.add_window_operator` takes them.

Each class is the assigner of that name in Flink, and `assign_windows` of those with a time says in
which windows an event is: `keygroups.savepoint.values.TimeWindow`. All times are milliseconds.

>>> sliding = SlidingEventTimeWindows(60_000, slide=30_000)
>>> [window.start for window in sliding.assign_windows(1_700_000_000_000)]
[1699999980000, 1699999950000]
"""

from keygroups.savepoint._windows.assigners import (
    CountWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)

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
