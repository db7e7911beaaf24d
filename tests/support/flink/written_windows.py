"""Windows and timers of events that are known, written by keygroups, and when they have to end."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keygroups.savepoint import (
    AggregatingStateDescriptor,
    CountWindows,
    EventTimeSessionWindows,
    GlobalWindow,
    ListStateDescriptor,
    ProcessingTimeSessionWindows,
    ReducingStateDescriptor,
    SavepointWriter,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimerServiceDescriptor,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    ValueStateDescriptor,
)
from keygroups.savepoint.values import StreamRecord
from keygroups.state_keys import BYTES, GLOBAL_WINDOW, TIME_WINDOW, Serializer, serializer_of
from keygroups.types import INT, LONG, STRING, TUPLE
from support.bytes.real_savepoints import seen_value, true_value
from support.flink.flink_restores import Row
from support.inside.serializers import INT as INT_SERIALIZER
from support.inside.serializers import TupleSerializer

CONTENTS = "window-contents"
MARKS = [-200_000, -1, 0, 123_456, 300_000]  # the watermarks of a job, one after the other
START = -(2**63)  # its watermark before the first
FUTURE = 4_102_444_800_000  # the year 2100
SENT = TupleSerializer([INT_SERIALIZER, BYTES])  # the job sends an operator and a key
Seen = tuple[Any, ...]


@dataclass
class WindowOperator:
    """An operator of windows: how a job has it, and what is in each window.

    `contents` are by key and window, `fired` the windows that have fired already, `counts` how
    many elements came, of windows that end with the next one: `sent` is what these give then.
    """

    uid: str
    assigner: Any
    java: dict[str, Any]
    kind: str
    value: Serializer
    java_value: Any
    lateness: int = 0
    has_evictor: bool = False
    contents: dict[tuple[str, Any], Any] = field(default_factory=dict)
    fired: set[tuple[str, Any]] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    sent: dict[str, Any] = field(default_factory=dict)

    @property
    def window(self) -> Serializer:
        """The serializer of its windows."""
        return GLOBAL_WINDOW if isinstance(self.assigner, CountWindows) else TIME_WINDOW

    def task(self) -> dict[str, Any]:
        """Return a job's view of it."""
        keys = sorted(serializer_of(STRING).encode(key).hex() for key in self.sent)
        state = {"name": CONTENTS, "kind": self.kind, "value": self.java_value}
        window = dict(self.java)
        if self.lateness:
            window["lateness"] = self.lateness
        if self.has_evictor and not isinstance(self.assigner, CountWindows):
            window["evictor"] = True
        return {
            "uid": self.uid,
            "key": "STRING",
            "states": [state],
            "window": window,
            "keys": keys,
        }

    def write(self, writer: SavepointWriter, max_parallelism: int, parallelism: int) -> None:
        """Write it with the library."""
        descriptor: Callable[..., Any] = {
            "LIST": ListStateDescriptor,
            "REDUCING": ReducingStateDescriptor,
            "AGGREGATING": AggregatingStateDescriptor,
        }[self.kind]
        windows = writer.add_window_operator(
            self.uid,
            STRING,
            self.assigner,
            descriptor(CONTENTS, self.value),
            max_parallelism,
            parallelism,
            self.lateness,
            has_evictor=self.has_evictor,
        )
        for key, window in sorted(self.contents, key=lambda one: windows.key_group(one[0])):
            windows.write(
                key,
                window,
                self.contents[key, window],
                count=self.counts.get(key),
                has_fired=(key, window) in self.fired,
            )

    def ends(self) -> Iterator[tuple[int, str, Any, Any]]:
        """Yield the windows that end in the job, each after its watermark."""
        for (key, window), contents in self.contents.items():
            if isinstance(window, GlobalWindow):
                yield START, key, window, self.sent[key]
            elif self.assigner.time_domain == "PROCESSING_TIME":
                if window.end < FUTURE:
                    yield START, key, window, contents
            elif (key, window) not in self.fired:
                passed = [mark for mark in MARKS if mark >= window.end - 1]
                if passed:
                    yield passed[0], key, window, contents

    def left(self) -> dict[tuple[str, Any], Any]:
        """Return the windows that are there after all watermarks."""
        if isinstance(self.assigner, CountWindows):
            if self.assigner.slide is None:
                return {}
            last = self.assigner.size
            return {(key, GlobalWindow()): value[-last:] for key, value in self.sent.items()}
        if self.assigner.time_domain == "PROCESSING_TIME":
            return {one: item for one, item in self.contents.items() if one[1].end >= FUTURE}
        return {
            (key, window): item
            for (key, window), item in self.contents.items()
            if window.end - 1 + self.lateness > MARKS[-1]
        }

    def seen(self, mark: int, key: str, window: Any, contents: Any) -> Seen:
        """Return the end of a window in the form of `ended_rows`."""
        if self.kind == "LIST":
            elements = (one.value if self.has_evictor else one for one in contents)
            value: Any = ("list", tuple(seen_value(self.value, one) for one in elements))
        else:
            value = seen_value(self.value, contents)
        return self.uid, mark, key, seen_value(self.window, window), value


def ended_rows(rows: Iterable[Row]) -> Counter[Seen]:
    """Return the windows that a job wrote down as they ended."""
    return Counter(
        (
            *(row["operator"], row["watermark"], row["key"]),
            *map(true_value, (row["namespace"], row["value"])),
        )
        for row in rows
    )


def window_operators(seed: int) -> list[WindowOperator]:
    """Return operators of all kinds of windows, filled by random events."""
    rng = random.Random(seed)
    keys = [f"key-{number}" for number in range(40)]
    event, processing = {"time": "event"}, {"time": "processing"}
    strings, longs = serializer_of(STRING), serializer_of(LONG)
    pairs, java_pairs = serializer_of(TUPLE(LONG, INT)), {"TUPLE": ["LONG", "INT"]}
    made = [
        WindowOperator(
            "tumbling",
            TumblingEventTimeWindows(60_000, -7_000),
            {"kind": "tumbling", "size": 60_000, "offset": -7_000, **event},
            *("LIST", strings, "STRING"),
        ),
        WindowOperator(
            "late",
            TumblingEventTimeWindows(30_000),
            {"kind": "tumbling", "size": 30_000, **event},
            *("REDUCING", longs, "LONG", 100_000),
        ),
        WindowOperator(
            "sliding",
            SlidingEventTimeWindows(60_000, 20_000, 1_000),
            {"kind": "sliding", "size": 60_000, "slide": 20_000, "offset": 1_000, **event},
            *("AGGREGATING", pairs, java_pairs, 5),
        ),
        WindowOperator(
            "evicted",
            SlidingEventTimeWindows(50_000, 70_000),
            {"kind": "sliding", "size": 50_000, "slide": 70_000, **event},
            *("LIST", strings, "STRING", 0, True),
        ),
        WindowOperator(
            "sessions",
            EventTimeSessionWindows(20_000),
            {"kind": "session", "size": 20_000, **event},
            *("AGGREGATING", pairs, java_pairs),
        ),
        WindowOperator(
            "late-sessions",
            EventTimeSessionWindows(20_000),
            {"kind": "session", "size": 20_000, **event},
            *("LIST", strings, "STRING", 70_000),
        ),
        WindowOperator(
            "clock-tumbling",
            TumblingProcessingTimeWindows(60_000),
            {"kind": "tumbling", "size": 60_000, **processing},
            *("LIST", strings, "STRING"),
        ),
        WindowOperator(
            "clock-sliding",
            SlidingProcessingTimeWindows(60_000, 30_000, -500),
            {"kind": "sliding", "size": 60_000, "slide": 30_000, "offset": -500, **processing},
            *("REDUCING", longs, "LONG"),
        ),
        WindowOperator(
            "clock-sessions",
            ProcessingTimeSessionWindows(20_000),
            {"kind": "session", "size": 20_000, **processing},
            *("REDUCING", longs, "LONG"),
        ),
    ]
    for operator in made:
        for key in keys:
            _fill(rng, operator, key)
    java_sent = {"TUPLE": ["INT", "BYTES"]}
    return [
        *made,
        *(
            _counted(rng, keys, number, *item)
            for number, item in enumerate(
                [
                    ("count-list", CountWindows(4), "LIST", SENT, java_sent),
                    ("count-reduced", CountWindows(4), "REDUCING", SENT, java_sent),
                    ("count-aggregated", CountWindows(4), "AGGREGATING", pairs, java_pairs),
                    ("count-sliding", CountWindows(5, 3), "LIST", SENT, java_sent),
                ],
                len(made),
            )
        ),
    ]


def _fill(rng: random.Random, operator: WindowOperator, key: str) -> None:
    """Put random events of a key into its windows, as the job would have done it."""
    start, end = -400_000, 400_000
    if operator.assigner.time_domain == "PROCESSING_TIME":
        base = rng.choice([1_000_000_000_000, FUTURE])
        start, end = base + 100_000, base + 500_000
    events = sorted(rng.randrange(start, end) for _ in range(rng.randrange(1, 12)))
    by_window: dict[TimeWindow, list[int]] = defaultdict(list)
    for time in events:
        for window in operator.assigner.assign_windows(time):
            if operator.java["kind"] != "session":
                by_window[window].append(time)
                continue
            last = max(by_window, default=None)
            if last is not None and window.start <= last.end:
                by_window[TimeWindow(last.start, window.end)] = [*by_window.pop(last), time]
            else:
                by_window[window] = [time]
    for window, times in by_window.items():
        operator.contents[key, window] = _contents(operator, times)
        if operator.lateness and rng.random() < 0.3:
            operator.fired.add((key, window))


def _contents(operator: WindowOperator, times: list[int]) -> Any:
    if operator.has_evictor:
        return [StreamRecord(f"at {time}", time) for time in times]
    if operator.kind == "LIST":
        return [f"at {time}" for time in times]
    return sum(times) if operator.kind == "REDUCING" else (sum(times), len(times))


def _counted(
    rng: random.Random,
    keys: list[str],
    number: int,
    uid: str,
    assigner: CountWindows,
    kind: str,
    value: Serializer,
    java_value: Any,
) -> WindowOperator:
    """Return windows that end with the next element, which is sent."""
    java: dict[str, Any] = {"kind": "count", "count": assigner.size}
    has_slide = assigner.slide is not None
    if has_slide:
        java["slide"] = assigner.slide
    operator = WindowOperator(uid, assigner, java, kind, value, java_value)
    operator.has_evictor = has_slide
    for key in keys:
        sent: Any = (number, serializer_of(STRING).encode(key))
        count = assigner.size - 1 if assigner.slide is None else assigner.slide - 1
        size = count + (rng.choice([0, 3, assigner.size]) if has_slide else 0)
        elements: list[Any] = [(one, b"before") for one in range(size)]
        operator.counts[key] = count
        if has_slide:
            operator.contents[key, GlobalWindow()] = [StreamRecord(one) for one in elements]
            after = [
                *operator.contents[key, GlobalWindow()],
                StreamRecord(sent, START),
            ]  # none before
            operator.sent[key] = after[-assigner.size :]
        elif kind == "LIST":
            operator.contents[key, GlobalWindow()] = elements
            operator.sent[key] = [*elements, sent]
        else:  # the job keeps what it has when one more comes
            kept = (5, b"reduced") if kind == "REDUCING" else (7, 3)
            operator.contents[key, GlobalWindow()] = operator.sent[key] = kept
    return operator


@dataclass
class TimerOperator:
    """An operator with timers, of which none is there twice, and a value for each key."""

    uid: str
    timers: set[tuple[str, str, int]]  # key, time domain, timestamp

    def task(self) -> dict[str, Any]:
        """Return a job's view of it."""
        state = {"name": "count", "kind": "VALUE", "value": "LONG"}
        return {"uid": self.uid, "key": "STRING", "states": [state], "timers": ["user-timers"]}

    def write(self, path: Path, max_parallelism: int, parallelism: int) -> None:
        """Write it with the library."""
        states = [ValueStateDescriptor("count", LONG), TimerServiceDescriptor()]
        with SavepointWriter(path) as writer:
            written = writer.add_operator(self.uid, STRING, states, max_parallelism, parallelism)
            keys = {key for key, _, _ in self.timers}
            for key in sorted(keys, key=written.key_group):
                written.write("count", key, 5)
                for item, domain, timestamp in self.timers:
                    if item == key:
                        written.write_timer(key, timestamp, domain)

    def fires(self) -> Counter[Seen]:
        """Return when each timer fires that does: its watermark, key, time domain and time."""
        found: Counter[Seen] = Counter()
        for key, domain, timestamp in self.timers:
            if domain == "EVENT_TIME":
                passed = [mark for mark in MARKS if mark >= timestamp]
                if passed:
                    found[passed[0], key, domain, timestamp] += 1
            elif timestamp < FUTURE:
                found[START, key, domain, timestamp] += 1
        return found


def timer_operator(seed: int) -> TimerOperator:
    """Return an operator with timers of both kinds, at the ends of time too."""
    rng = random.Random(seed)
    timers = set()
    for number in range(60):
        for _ in range(rng.randrange(1, 6)):
            at = rng.choice([rng.randrange(-400_000, 400_000), *MARKS, 2**63 - 1])
            timers.add((f"key-{number}", "EVENT_TIME", at))
        for _ in range(rng.randrange(3)):
            at = rng.choice([0, -5, FUTURE + rng.randrange(9), 10**12 + rng.randrange(9)])
            timers.add((f"key-{number}", "PROCESSING_TIME", at))
    return TimerOperator("timers", timers)
