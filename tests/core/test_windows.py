"""Windows and timers that are written: the bytes are those that Flink writes, as the times are.

Expected bytes are those of real savepoints; expected windows are those of a model that knows
Java's arithmetic and nothing of the library.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.bytes.expected_savepoints import keys_by_group
from support.bytes.framed_entries import framed_entries
from support.bytes.job_points import JOB_POINTS, job_point
from support.bytes.real_savepoints import POINTS, Point, point
from support.growth import count_bytes, count_steps
from support.inside.savepoints import keyed_state_file

from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    ParallelismError,
    UnsupportedKeyTypeError,
)
from keygroups.savepoint import (
    AggregatingStateDescriptor,
    CountWindows,
    EventTimeSessionWindows,
    GlobalWindow,
    ListStateDescriptor,
    Operator,
    ProcessingTimeSessionWindows,
    ReducingStateDescriptor,
    SavepointWriter,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    StateDescriptor,
    TimerServiceDescriptor,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.savepoint.values import StreamRecord, Watermark
from keygroups.state_keys import TIME_WINDOW, VOID_NAMESPACE
from keygroups.types import INT, LONG, MAP, PYFLINK, STRING

LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
CONTENTS = "window-contents"
LISTS = ListStateDescriptor(CONTENTS, STRING)
SUMS = ReducingStateDescriptor(CONTENTS, LONG)
MINUTES = TumblingEventTimeWindows(60_000)

Entries = dict[tuple[int, str], list[tuple[bytes, bytes]]]


def entries_of(operator: Operator) -> Entries:
    """Return the bytes of the entries of each key group and state, in the order of bytes."""
    found: Entries = defaultdict(list)
    for task in operator.tasks():
        for entry in framed_entries(task):
            place = (entry.key_group, entry.state)
            found[place].append((entry.encoded_key, entry.encoded_value))
    return {place: sorted(entries) for place, entries in found.items()}


def headers_of(operator: Operator) -> dict[str, bytes]:
    """Return the types of each state in the headers."""
    text = {}
    for task in operator.tasks():
        for header in task.format.headers():
            text.update(
                {state.name: data for state, data in zip(header.states, header.state_bytes)}
            )
    return text


# What Flink itself has written


def assigner_of(
    name: str, contents: StateDescriptor, sizes: set[int], has_sets: bool, domains: set[str]
) -> Any:
    """Return the assigner that a job of the points has."""
    if contents.namespace_serializer != TIME_WINDOW:
        return {"count-evictor": CountWindows(5, 2)}.get(name, CountWindows(7))
    is_event = domains != {"processing"}
    if has_sets:
        cls: Any = EventTimeSessionWindows if is_event else ProcessingTimeSessionWindows
        return cls(min(sizes))
    [size] = sizes
    if "liding" in name:
        return SlidingEventTimeWindows(size, size // 2)
    return (TumblingEventTimeWindows if is_event else TumblingProcessingTimeWindows)(size)


def rewritten(operator: Operator, name: str, path: Path) -> int:
    """Write the windows of an operator anew, and compare all bytes; return how many windows."""
    states = {state.name: state for state in operator.states}
    contents, timers, counts, actual = {}, defaultdict(set), {}, {}
    for entry in operator.entries():
        if entry.state == CONTENTS:
            contents[entry.key, entry.namespace] = entry.value
        elif entry.kind == "PRIORITY_QUEUE":
            domain = entry.state[len("_timer_state/") :].split("_")[0]
            timers[entry.key, entry.namespace].add((domain, entry.timestamp))
        elif entry.state == "count":
            counts[entry.key] = entry.value
        else:
            actual.update({(entry.key, state): window for window, state in entry.value})
    windows = {(key, actual.get((key, one), one)): value for (key, one), value in contents.items()}
    lengths = {one.end - one.start for _, one in windows if isinstance(one, TimeWindow)}
    domains = {domain for of_window in timers.values() for domain, _ in of_window}
    assigner = assigner_of(name, states[CONTENTS], lengths, bool(actual), domains)
    value = states[CONTENTS].value_serializer
    assert value is not None
    has_evictor = value.name == "STREAM_ELEMENT"
    descriptors: dict[str, Any] = {
        "LIST": ListStateDescriptor,
        "REDUCING": ReducingStateDescriptor,
        "AGGREGATING": AggregatingStateDescriptor,
    }
    kind = descriptors[states[CONTENTS].kind]
    described = kind(CONTENTS, value.parts[0] if has_evictor else value)
    lateness = max(
        (time - one.end + 1 for (_, one), at in timers.items() for _, time in at), default=0
    )
    with SavepointWriter(path) as writer:
        written = writer.add_window_operator(
            "uid",
            operator.states[0].key_serializer,
            assigner,
            described,
            operator.max_parallelism,
            operator.parallelism,
            lateness,
            has_evictor=has_evictor,
        )
        for key, window in sorted(windows, key=lambda place: written.key_group(place[0])):
            more: dict[str, Any] = {}
            if isinstance(window, GlobalWindow):
                more["count"] = counts.get(key, 0)
            else:
                more["has_fired"] = len(timers[key, window]) < 1 + (lateness > 0)
            written.write(key, window, windows[key, window], **more)
    ours = read_savepoint(path).operator("uid")
    expected = entries_of(operator)
    if actual:
        # Of sessions that grew Flink keeps the contents under the window of the first event.
        found = entries_of(ours)
        same = {place: item for place, item in expected.items() if place[1].startswith("_timer")}
        assert {
            place: item for place, item in found.items() if place[1] in {p[1] for p in same}
        } == same
        again = {(entry.key, entry.namespace): entry.value for entry in ours.entries({CONTENTS})}
        assert again == windows
        sets = {entry.key: sorted(entry.value) for entry in ours.entries({"merging-window-set"})}
        of_keys = defaultdict(list)
        for key, window in windows:
            of_keys[key].append((window, window))
        assert sets == {key: sorted(of_key) for key, of_key in of_keys.items()}
        if all(state == window for (_, state), window in actual.items()):
            assert len(found) == len(expected)
    else:
        assert entries_of(ours) == expected
    assert headers_of(ours) == headers_of(operator)
    return len(windows)


def window_operators(one: Point) -> Iterator[tuple[str, Operator]]:
    for operator in one.read().operators:
        names = {state.name for state in operator.states}
        # One of the jobs has a trigger with state of its own.
        if CONTENTS in names and "fire-time" not in names:
            known = getattr(one, "operators", {}).get(operator.operator_id, "")
            yield known or operator.uid or SLIDING.get(operator.operator_id, ""), operator


SLIDING = {"aa807219557b7efbe08e66684537999a": "sliding-list"}  # it has no uid in Flink 1
CANONICAL = [one for one in [*POINTS, *JOB_POINTS] if one.kind == "canonical"]
QUICK: list[Point] = [job_point("2.3.0-win-rocksdb-canonical")]


@pytest.mark.parametrize(
    ("points", "windows"),
    [
        pytest.param(QUICK, 24 + 8 + 8 + 18 + 8 + 52 + 12, id="some"),
        pytest.param(CANONICAL, 4176, marks=pytest.mark.slow, id="all"),
    ],
)
def test_windows_of_flink(points: list[Point], windows: int, tmp_path: Path) -> None:
    """Of each key, window and contents all that Flink kept of it, byte for byte.

    Tumbling ones with lateness, half of which have fired, sliding ones, sessions, count windows,
    with a list, a reduced value, an accumulator, an evictor; of event and of processing time.
    """
    count = 0
    for one in points:
        for name, operator in window_operators(one):
            count += rewritten(operator, name.split(" ")[0], tmp_path / f"{one}-{count}")
    assert count == windows


def rewritten_timers(operator: Operator, path: Path) -> int:
    """Write the timers of an operator anew, and compare their bytes; return how many."""
    services: dict[str, TimerServiceDescriptor] = {}
    for state in operator.states:
        if state.kind == "PRIORITY_QUEUE":
            _, _, service = state.name[len("_timer_state/") :].partition("_")
            services[service] = TimerServiceDescriptor(service, state.namespace_serializer)
    key = operator.states[0].key_serializer if services else VOID_NAMESPACE
    if key.key_type is None or isinstance(key.key_type, PYFLINK) or key.name == "SQL_ROW":
        return 0
    count = 0
    with SavepointWriter(path) as writer:
        groups, subtasks = operator.max_parallelism, operator.parallelism
        written = writer.add_operator("uid", key, services.values(), groups, subtasks)
        for entry in operator.entries():
            if entry.timestamp is not None:
                time, _, service = entry.state[len("_timer_state/") :].partition("_")
                written.write_timer(
                    entry.key,
                    entry.timestamp,
                    {"event": "EVENT_TIME", "processing": "PROCESSING_TIME"}[time],
                    entry.namespace,
                    service,
                )
                count += 1
    ours = read_savepoint(path).operator("uid")
    names = {state.name for state in ours.states}
    expected = {place: item for place, item in entries_of(operator).items() if place[1] in names}
    assert entries_of(ours) == expected
    text = headers_of(operator)
    assert headers_of(ours) == {name: text[name] for name in names if count}
    return count


@pytest.mark.parametrize(
    ("points", "timers"),
    [
        pytest.param([point("2.3.0-rocks-canonical"), *QUICK], 514, id="some"),
        pytest.param(CANONICAL, 13_338, marks=pytest.mark.slow, id="all"),
    ],
)
def test_timers_of_flink(points: list[Point], timers: int, tmp_path: Path) -> None:
    """Of event and processing time, without a namespace, of windows and with a String."""
    count = 0
    for one in points:
        for number, operator in enumerate(one.read().operators):
            count += rewritten_timers(operator, tmp_path / f"{one}-{number}")
    assert count == timers


# Which windows an event is in


class Overflow(Exception):
    """What Java does not say."""


def long(number: int) -> int:
    if not LONG_MIN <= number <= LONG_MAX:
        raise Overflow
    return number


def java_windows(time: int, size: int, slide: int, offset: int) -> list[tuple[int, int]]:
    """Return the windows as Java finds them, which rounds to zero and counts down.

    Flink: SlidingEventTimeWindows.assignWindows, TimeWindow.getWindowStartWithOffset.
    """
    difference = long(time - offset)
    remainder = abs(difference) % slide * (-1 if difference < 0 else 1)
    start = long(time - (remainder + slide if remainder < 0 else remainder))
    lower, windows = long(time - size), []
    while start > lower:
        windows.append((start, long(start + size)))
        start = long(start - slide)
    return windows


def found_windows(assigner: Any, time: int) -> list[tuple[int, int]]:
    try:
        return [(one.start, one.end) for one in assigner.assign_windows(time)]
    except InvalidValueError:
        raise Overflow from None


times = st.one_of(
    st.integers(-(10**4), 10**4),
    st.integers(LONG_MIN + 1, LONG_MAX),
    st.integers(LONG_MIN + 1, LONG_MIN + 10**4),
    st.integers(LONG_MAX - 10**4, LONG_MAX),
)


@given(times, st.integers(1, 5000), st.integers(1, 5000), st.integers(-(10**4), 10**4))
@settings(max_examples=100, deadline=None)
@example(LONG_MIN + 1, 1, 1, 0)
# Of each two the first is just within Java's longs: how far it counts down, where a window ends,
# and the timestamp without the offset at either end.
@example(LONG_MIN + 10, 10, 5, 2)
@example(LONG_MIN + 9, 10, 5, 2)
@example(LONG_MAX - 8, 8, 8, 7)
@example(LONG_MAX, 8, 8, 7)
@example(LONG_MAX - 3, 2, 8, -3)
@example(LONG_MAX - 2, 2, 8, -3)
@example(LONG_MIN + 4, 1, 5, 4)
@example(LONG_MIN + 3, 1, 5, 4)
def test_windows_are_those_of_java(time: int, size: int, slide: int, offset: int) -> None:
    """With any remainder of any sign; where Java's longs would overflow there are none."""
    slide = max(slide, size // 10)
    for cls, width, every in (
        (SlidingEventTimeWindows, size, slide),
        (SlidingProcessingTimeWindows, size, slide),
        (TumblingEventTimeWindows, size, size),
        (TumblingProcessingTimeWindows, size, size),
    ):
        within = int(math.fmod(offset, every))
        item = (width, every, within) if "Sliding" in cls.__name__ else (width, within)
        assigner = cls(*item)
        try:
            expected = java_windows(time, width, every, within)
        except Overflow:
            with pytest.raises(Overflow):
                found_windows(assigner, time)
            continue
        found = found_windows(assigner, time)
        assert found == expected
        assert all(start <= time < end for start, end in found)
        for start, end in found[-1:]:
            assigner._check(TimeWindow(start, end))
            for other in (TimeWindow(start + 1, end + 1), TimeWindow(start, end + every)):
                if every > 1:
                    with pytest.raises(InvalidValueError, match=r"window must be one of"):
                        assigner._check(other)


@given(st.integers(LONG_MIN, LONG_MAX), st.integers(1, LONG_MAX))
@example(LONG_MAX - 7, 7)
@example(LONG_MAX - 7, 8)
def test_a_session_starts_with_its_event(time: int, gap: int) -> None:
    for cls in (EventTimeSessionWindows, ProcessingTimeSessionWindows):
        if time + gap > LONG_MAX:
            with pytest.raises(InvalidValueError, match="timestamp must be"):
                cls(gap).assign_windows(time)
        else:
            [window] = cls(gap).assign_windows(time)
            assert window == TimeWindow(time, time + gap)
            cls(gap)._check(window)


# Windows and timers of which the bytes are known


def written_entries(path: Path, write: Callable[[SavepointWriter], None]) -> list[tuple[Any, ...]]:
    """Write a savepoint of one operator; return its entries."""
    with SavepointWriter(path) as writer:
        write(writer)
    (operator,) = read_savepoint(path).operators
    return [
        (entry.state, entry.key, entry.namespace, entry.value, entry.timestamp)
        for entry in operator.entries()
    ]


EVENT, PROCESSING = "_timer_state/event_window-timers", "_timer_state/processing_window-timers"


@pytest.mark.parametrize(
    ("lateness", "has_fired", "timestamps"),
    [
        (0, False, [59_999]),
        (1, False, [59_999, 60_000]),
        (300_000, False, [59_999, 359_999]),
        (300_000, True, [359_999]),
        (LONG_MAX - 60_000, False, [59_999, LONG_MAX - 1]),
        # At the end of time nothing is cleared: Flink's cleanup time is Long.MAX_VALUE then.
        (LONG_MAX - 59_999, False, [59_999]),
        (LONG_MAX - 59_998, False, [59_999]),
        (LONG_MAX, False, [59_999]),
        (LONG_MAX, True, []),
    ],
)
def test_timers_of_a_window(
    lateness: int, has_fired: bool, timestamps: list[int], tmp_path: Path
) -> None:
    """That of the trigger, and that which clears it: WindowOperator.registerCleanupTimer."""

    def write(writer: SavepointWriter) -> None:
        windows = writer.add_window_operator("sums", STRING, MINUTES, SUMS, 128, 1, lateness)
        windows.write("a", TimeWindow(0, 60_000), 7, has_fired=has_fired)

    window = TimeWindow(0, 60_000)
    expected = [(EVENT, "a", window, None, timestamp) for timestamp in timestamps]
    assert written_entries(tmp_path / "new", write) == [
        (CONTENTS, "a", window, 7, None),
        *expected,
    ]


@pytest.mark.parametrize(
    "assigner", [TumblingProcessingTimeWindows(10), SlidingProcessingTimeWindows(10, 5)], ids=str
)
def test_timers_of_processing_time(assigner: Any, tmp_path: Path) -> None:
    def write(writer: SavepointWriter) -> None:
        windows = writer.add_window_operator("lists", STRING, assigner, LISTS, 128, 1)
        windows.write("a", TimeWindow(-10, 0), ["x", "y"])

    window = TimeWindow(-10, 0)
    contents = (CONTENTS, "a", window, ["x", "y"], None)
    assert written_entries(tmp_path / "new", write) == [
        contents,
        (PROCESSING, "a", window, None, -1),
    ]


def test_sessions_of_a_key_are_one_set(tmp_path: Path) -> None:
    """In whatever order they come, each key of a key group has its own."""
    keys = [f"key-{number}" for number in range(40)]
    sessions = [TimeWindow(start, start + 30) for start in (-1000, -31, 0, 31, 5000)]
    rng = random.Random(5)

    def write(writer: SavepointWriter) -> None:
        gaps = EventTimeSessionWindows(20)
        windows = writer.add_window_operator("sums", STRING, gaps, SUMS, 4, 2)
        pairs = [(key, session) for key in keys for session in sessions]
        rng.shuffle(pairs)
        for key, session in sorted(pairs, key=lambda pair: windows.key_group(pair[0])):
            windows.write(key, session, session.start)

    found = written_entries(tmp_path / "new", write)
    sets = {key: value for state, key, _, value, _ in found if state == "merging-window-set"}
    assert {key: sorted(value) for key, value in sets.items()} == {
        key: [(session, session) for session in sessions] for key in keys
    }
    assert len(found) == 40 + 2 * 40 * len(sessions)


@pytest.mark.parametrize(
    ("assigner", "contents", "value", "count", "expected"),
    [
        (CountWindows(4), LISTS, ["x", "y", "z"], None, 3),
        (CountWindows(4), LISTS, ["x"], 1, 1),
        (CountWindows(4), SUMS, 7, 3, 3),
        (CountWindows(4), LISTS, "xyz", None, 3),  # an evictor of one's own
        (CountWindows(5, 3), LISTS, "xx", 2, 2),  # none has fired
        (CountWindows(5, 3), LISTS, "xxx", 0, None),
        (CountWindows(5, 3), LISTS, "xxxxx", 2, 2),
        (CountWindows(5, 3), LISTS, "xxxxx", 0, None),  # after six
        (CountWindows(5, 3), LISTS, "xxxxxxx", 2, 2),  # after eight
        (CountWindows(2, 5), LISTS, "xxxx", 4, 4),
        (CountWindows(2, 5), LISTS, "xx", 0, None),
        (CountWindows(2, 5), LISTS, "xxx", 1, 1),
    ],
)
def test_counts(
    assigner: CountWindows, contents: Any, value: Any, count: Any, expected: Any, tmp_path: Path
) -> None:
    """How many came since it fired, which Flink keeps beside them if there are any."""
    has_evictor = isinstance(value, str)
    if has_evictor:
        value = [StreamRecord(one, 5) for one in value]

    def write(writer: SavepointWriter) -> None:
        windows = writer.add_window_operator(
            "uid", STRING, assigner, contents, 128, 1, has_evictor=has_evictor
        )
        windows.write("a", GlobalWindow(), value, count=count)

    entries = [(CONTENTS, "a", GlobalWindow(), value, None)]
    if expected is not None:
        entries.append(("count", "a", GlobalWindow(), expected, None))
    assert written_entries(tmp_path / "new", write) == entries


def test_timers(tmp_path: Path) -> None:
    """A timer's bytes: the time with its sign flipped, the key, the namespace."""

    def write(writer: SavepointWriter) -> None:
        states = [
            TimerServiceDescriptor(),
            ValueStateDescriptor("user-timers", LONG),
            TimerServiceDescriptor("CLEANUP_TIMER", STRING),
        ]
        operator = writer.add_operator("uid", LONG, states, 128, 1)
        operator.write_timer(5, 1000)
        operator.write("user-timers", 5, 7)
        operator.write_timer(5, LONG_MIN, "PROCESSING_TIME")
        operator.write_timer(5, LONG_MAX, "PROCESSING_TIME")
        operator.write_timer(5, -1, namespace="L", service="CLEANUP_TIMER")

    assert written_entries(tmp_path / "new", write) == [
        ("_timer_state/processing_user-timers", 5, None, None, LONG_MIN),
        ("_timer_state/processing_user-timers", 5, None, None, LONG_MAX),
        ("_timer_state/event_user-timers", 5, None, None, 1000),
        ("user-timers", 5, None, 7, None),
        ("_timer_state/event_CLEANUP_TIMER", 5, "L", None, -1),
    ]
    five = "0000000000000005"
    keys = [
        one.hex()
        for item in entries_of(read_savepoint(tmp_path / "new").operators[0]).values()
        for one, _ in item
    ]
    assert sorted(keys) == sorted(
        [
            f"0000000000000000{five}00",
            f"ffffffffffffffff{five}00",
            f"80000000000003e8{five}00",
            f"{five}00",
            f"7fffffffffffffff{five}024c",
        ]
    )


# What is refused

LONGS = TimerServiceDescriptor("longs", LONG)
SETS = MAP(STRING, LONG)


def adding(**options: Any) -> Callable[[SavepointWriter], object]:
    """Return a function that adds an operator of windows, with some other arguments."""
    arguments = {
        "uid": "uid",
        "key_type": STRING,
        "assigner": MINUTES,
        "contents": SUMS,
        "max_parallelism": 128,
        "parallelism": 1,
    }
    return lambda writer: writer.add_window_operator(**{**arguments, **options})


def writing(
    *arguments: Any, item: dict[str, Any] | None = None, times: int = 1, **named: Any
) -> Any:
    """Return a function that writes a window to such an operator."""

    def write(writer: SavepointWriter) -> None:
        operator: Any = adding(**(item or {}))(writer)
        for _ in range(times):
            operator.write(*arguments, **named)

    return write


def timing(*arguments: Any, times: int = 1, **named: Any) -> Any:
    """Return a function that writes a timer."""

    def write(writer: SavepointWriter) -> None:
        states = [TimerServiceDescriptor(), LONGS, ValueStateDescriptor("x", LONG)]
        operator = writer.add_operator("uid", STRING, states, 128, 1)
        for _ in range(times):
            operator.write_timer(*arguments, **named)

    return write


WINDOW, GLOBAL = TimeWindow(0, 60_000), GlobalWindow()
COUNTS = {"assigner": CountWindows(4), "contents": LISTS}
SLIDING_COUNTS = {"assigner": CountWindows(5, 3), "contents": LISTS}
SESSIONS = {"assigner": EventTimeSessionWindows(20)}
EVICTED = {"has_evictor": True, "contents": LISTS}
RECORDS = [StreamRecord("x", 5)]
FLOATS: Any = (0.0, 60_000)
LATE = {"allowed_lateness": 5}
REFUSED: list[tuple[Callable[[SavepointWriter], object], type[Exception], str]] = [
    (adding(uid=""), InvalidValueError, "uid must be one of the job's, and new here, got ''"),
    (adding(uid=5), InvalidTypeError, "uid must be a str, got 5"),
    (adding(key_type=5), InvalidTypeError, "key_type must be a key type such as LONG or a"),
    (adding(key_type=SETS), UnsupportedKeyTypeError, "key_type .* cannot be written: RocksDB"),
    (adding(parallelism=129), ParallelismError, "parallelism must be"),
    (adding(assigner=60_000), InvalidTypeError, "assigner must be one such as Tumbl.*got 60000"),
    (adding(contents=LONG), InvalidTypeError, "contents must be a ListStateDescriptor, a Reducin"),
    (
        adding(contents=ValueStateDescriptor(CONTENTS, LONG)),
        InvalidTypeError,
        "contents must be a ListStateDescriptor, a ReducingStateDescriptor or an Aggr",
    ),
    (
        adding(contents=ReducingStateDescriptor("sums", LONG)),
        InvalidValueError,
        "contents must be named 'window-contents', as Flink does it, and have no time to live",
    ),
    (
        adding(contents=ReducingStateDescriptor(CONTENTS, LONG, has_ttl=True)),
        InvalidValueError,
        "contents must be named 'window-contents', as Flink does it, and have no time to live",
    ),
    (adding(has_evictor=1), InvalidTypeError, "has_evictor must be a bool, got 1"),
    (
        adding(has_evictor=True),
        InvalidValueError,
        "contents must be a ListStateDescriptor where there is an evictor, got ReducingState",
    ),
    (
        adding(assigner=CountWindows(5, 3)),
        InvalidValueError,
        "contents must be a ListStateDescriptor where there is an evictor, got ReducingState",
    ),
    (adding(allowed_lateness=-1), InvalidValueError, "allowed_lateness must be from 0"),
    (adding(allowed_lateness=2**63), InvalidValueError, "allowed_lateness must be from 0"),
    (adding(allowed_lateness=1.5), InvalidTypeError, "allowed_lateness must be an int, got 1.5"),
    (
        adding(assigner=TumblingProcessingTimeWindows(5), **LATE),
        InvalidValueError,
        r"allowed_lateness must be 0 for TumblingProcessingTimeWindows\(.*, got 5",
    ),
    (
        adding(**COUNTS, **LATE),
        InvalidValueError,
        r"allowed_lateness must be 0 for CountWindows\(.*, for which no event is late, got 5",
    ),
    (writing("a", (0, 60_000), 7), InvalidTypeError, "window must be a TimeWindow, got"),
    (writing("a", GLOBAL, 7), InvalidTypeError, "window must be a TimeWindow, got GlobalWindow"),
    (writing("a", None, 7), InvalidTypeError, "window must be a TimeWindow, got None"),
    (writing("a", TimeWindow(0, 5), 7), InvalidValueError, "window must be one of Tumbling"),
    (writing("a", TimeWindow(1, 60_001), 7), InvalidValueError, "window must be one of Tumbl"),
    (writing("a", TimeWindow(*FLOATS), 7), InvalidTypeError, "start of window must be an int"),
    (
        writing("a", TimeWindow(-(2**63) - 1, -(2**63) + 59_999), 7),
        InvalidValueError,
        f"start of window must be from {-(2**63)} to {2**63 - 1}, got",
    ),
    (
        writing("a", TimeWindow(2**63 - 8, 2**63 + 59_992), 7),
        InvalidValueError,
        f"end of window must be from {-(2**63)} to {2**63 - 1}, got",
    ),
    (writing("a", WINDOW, None), InvalidValueError, "value of REDUCING state 'window-contents' m"),
    (writing("a", WINDOW, "x"), InvalidTypeError, "value of REDUCING state 'window-contents': v"),
    (writing("a", WINDOW, [], item={"contents": LISTS}), InvalidValueError, "must have elements"),
    (writing(5, WINDOW, 7), InvalidTypeError, "key of type STRING must be a str, got 5"),
    (writing(None, WINDOW, 7), InvalidValueError, "key is None"),
    (
        writing("a", WINDOW, 7, count=1),
        InvalidValueError,
        r"count must be None for Tumbling.*got 1",
    ),
    (writing("a", WINDOW, 7, has_fired=1), InvalidTypeError, "has_fired must be a bool, got 1"),
    (
        writing("a", WINDOW, 7, has_fired=True),
        InvalidValueError,
        "has_fired must be False without allowed_lateness: Flink keeps no window then",
    ),
    (
        writing("a", TimeWindow(0, 19), 7, item=SESSIONS),
        InvalidValueError,
        r"window must be one of EventTimeSessionWindows\(gap=20\), which are at least 20 long",
    ),
    (
        writing("a", WINDOW, "x", item=EVICTED),
        InvalidTypeError,
        "contents must be a list, got 'x'",
    ),
    (
        writing("a", WINDOW, ["x"], item=EVICTED),
        InvalidTypeError,
        "element of contents with an evi",
    ),
    (
        writing("a", WINDOW, [Watermark(5)], item=EVICTED),
        InvalidTypeError,
        "element of contents with an evictor must be a StreamRecord, got Watermark",
    ),
    (writing("a", WINDOW, ["x"], item=COUNTS), InvalidTypeError, "window must be a GlobalWindow"),
    (
        writing("a", GLOBAL, ["x"], count=2, item=COUNTS),
        InvalidValueError,
        "count must be that of",
    ),
    (
        writing("a", GLOBAL, ["x"] * 4, item=COUNTS),
        InvalidValueError,
        "count must be from 1 to 3, got 4",
    ),
    (
        writing("a", GLOBAL, ["x"], count=0, item=COUNTS),
        InvalidValueError,
        "count must be from 1 to 3",
    ),
    (
        writing("a", GLOBAL, ["x"], has_fired=True, item=COUNTS),
        InvalidValueError,
        "has_fired must be",
    ),
    (
        writing("a", GLOBAL, 7, item={"assigner": CountWindows(4)}),
        InvalidValueError,
        r"count must be how many elements came since CountWindows\(size=4, .* fired, got None",
    ),
    (
        writing("a", GLOBAL, RECORDS, item=SLIDING_COUNTS),
        InvalidValueError,
        "count must be how many",
    ),
    (
        writing("a", GLOBAL, RECORDS, count=3, item=SLIDING_COUNTS),
        InvalidValueError,
        "count must be from 0 to 2, got 3",
    ),
    (
        writing("a", GLOBAL, RECORDS, count=0, item=SLIDING_COUNTS),
        InvalidValueError,
        "count must fit the 1 elements in contents of CountWindows",
    ),
    (
        writing("a", GLOBAL, RECORDS, count=2, item=SLIDING_COUNTS),
        InvalidValueError,
        "count must fit the 1 elements in contents of CountWindows",
    ),
    (
        writing("a", GLOBAL, RECORDS * 5, count=1, item={**COUNTS, "has_evictor": True}),
        InvalidValueError,
        "count must be that of the elements in contents, 5, got 1",
    ),
    (
        writing("a", GLOBAL, RECORDS * 8, count=2, item=SLIDING_COUNTS),
        InvalidValueError,
        "count must fit the 8 elements in contents of CountWindows",
    ),
    (timing("a", 1.5), InvalidTypeError, "timestamp of timers '_timer_state/event_user-timers'"),
    (timing("a", None), InvalidTypeError, "timestamp of timers '_timer_state/event_user-timers'"),
    (
        timing("a", 2**63),
        InvalidValueError,
        "timestamp of timers '_timer_state/event_user-timers'",
    ),
    (timing("a", 1, "EVENT"), InvalidValueError, "time_domain must be one of"),
    (timing("a", 1, service="x"), InvalidValueError, "service must be the name of a TimerService"),
    (timing("a", 1, service=5), InvalidTypeError, "service must be a str, got 5"),
    (timing("a", 1, namespace="x"), InvalidTypeError, "namespace of timers '_timer_state/event_u"),
    (
        timing("a", 1, service="longs"),
        InvalidValueError,
        "namespace of timers .* must not be None",
    ),
    (timing(5, 1), InvalidTypeError, "key of type STRING must be a str, got 5"),
    (
        lambda writer: writer.add_operator("uid", STRING, [LONGS, LONGS], 128, 1),
        InvalidValueError,
        "states must differ in name, got 'longs' twice",
    ),
    (
        lambda writer: writer.add_operator("uid", STRING, [LONGS], 128, 1).write("longs", "a", 1),
        InvalidValueError,
        "state must be one of none.*, got 'longs'",
    ),
]


@pytest.mark.branch
@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused(number: int, tmp_path: Path) -> None:
    do, error, message = REFUSED[number]
    with pytest.raises(error, match=message), SavepointWriter(tmp_path / "new") as writer:
        do(writer)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("make", "numbers"),
    [
        (TumblingEventTimeWindows, (1, 0)),
        (TumblingEventTimeWindows, (LONG_MAX, LONG_MAX - 1)),
        (TumblingProcessingTimeWindows, (LONG_MAX, 1 - LONG_MAX)),
        (SlidingEventTimeWindows, (1, 1, 0)),
        (SlidingEventTimeWindows, (10_000_000, 1, 0)),
        (SlidingEventTimeWindows, (20_000_001, 2, 1)),  # Java divides longs
        (SlidingProcessingTimeWindows, (LONG_MAX, LONG_MAX, 1 - LONG_MAX)),
        (SlidingProcessingTimeWindows, (1, LONG_MAX, LONG_MAX - 1)),
        (EventTimeSessionWindows, (1,)),
        (ProcessingTimeSessionWindows, (LONG_MAX,)),
        (CountWindows, (1, 1)),
        (CountWindows, (LONG_MAX, LONG_MAX)),
    ],
)
def test_numbers_of_assigners_are_plain_ints(
    make: Callable[..., Any], numbers: tuple[int, ...]
) -> None:
    """The least and the most there may be, as anything that is an int."""
    assigner = make(*map(Index, numbers))
    assert astuple(assigner) == numbers
    assert assigner == make(*numbers)


class Index:
    """What NumPy's integers are to Python."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


@pytest.mark.parametrize(
    ("make", "arguments", "error", "message"),
    [
        (SlidingEventTimeWindows, (0, 1), InvalidValueError, f"size must be from 1 to {LONG_MAX}"),
        (SlidingEventTimeWindows, (2**63, 2**63 - 1), InvalidValueError, "size must be from 1"),
        (SlidingEventTimeWindows, (1, 2**63), InvalidValueError, "slide must be from 1 to 92"),
        (SlidingEventTimeWindows, (5, 2, -2), InvalidValueError, "offset must be from -1 to 1"),
        (SlidingEventTimeWindows, (20_000_002, 2), InvalidValueError, "must be at most 10000000"),
        (EventTimeSessionWindows, (2**63,), InvalidValueError, "gap must be from 1 to 9223372"),
        (CountWindows, (2**63,), InvalidValueError, "size must be from 1 to 9223372036854775807"),
        (CountWindows, (1, 2**63), InvalidValueError, "slide must be from 1 to 9223372036854"),
        (
            SlidingEventTimeWindows(5, 5).assign_windows,
            (LONG_MIN,),
            InvalidValueError,
            "timestamp must be from",
        ),
        (TumblingEventTimeWindows, (0,), InvalidValueError, "size must be from 1"),
        (TumblingEventTimeWindows, (2**63,), InvalidValueError, "size must be from 1"),
        (TumblingEventTimeWindows, ("5",), InvalidTypeError, "size must be an int"),
        (
            TumblingEventTimeWindows,
            (
                5,
                5,
            ),
            InvalidValueError,
            "offset must be from -4 to 4",
        ),
        (
            TumblingProcessingTimeWindows,
            (
                5,
                -5,
            ),
            InvalidValueError,
            "offset must be from -4",
        ),
        (
            SlidingEventTimeWindows,
            (
                5,
                0,
            ),
            InvalidValueError,
            "slide must be from 1",
        ),
        (
            SlidingEventTimeWindows,
            (
                5,
                True,
            ),
            InvalidTypeError,
            "slide must be an int",
        ),
        (
            SlidingEventTimeWindows,
            (
                5,
                2,
                2,
            ),
            InvalidValueError,
            "offset must be from -1 to 1",
        ),
        (
            SlidingProcessingTimeWindows,
            (
                10_000_001,
                1,
            ),
            InvalidValueError,
            "size / slide must be at most 10000000, got 10000001 / 1",
        ),
        (EventTimeSessionWindows, (0,), InvalidValueError, "gap must be from 1"),
        (ProcessingTimeSessionWindows, (1.0,), InvalidTypeError, "gap must be an int"),
        (CountWindows, (0,), InvalidValueError, "size must be from 1"),
        (
            CountWindows,
            (
                1,
                0,
            ),
            InvalidValueError,
            "slide must be from 1",
        ),
        (MINUTES.assign_windows, (LONG_MIN,), InvalidValueError, "timestamp must be from"),
        (
            MINUTES.assign_windows,
            (LONG_MAX,),
            InvalidValueError,
            "must have its windows with",
        ),
        (MINUTES.assign_windows, (None,), InvalidTypeError, "timestamp must be an int"),
        (TimerServiceDescriptor, ("",), InvalidValueError, "service must not be empty"),
        (TimerServiceDescriptor, (5,), InvalidTypeError, "name of a timer service must be a"),
        (TimerServiceDescriptor, ("x" * 65_513,), InvalidValueError, "name of a timer serv"),
        (
            TimerServiceDescriptor,
            (
                "x",
                5,
            ),
            InvalidTypeError,
            "namespace_type must be a key",
        ),
        (
            TimerServiceDescriptor,
            (
                "x",
                MAP(INT, INT),
            ),
            UnsupportedKeyTypeError,
            "namespace_type .* cannot be written",
        ),
        (
            AggregatingStateDescriptor,
            (
                "x",
                5,
            ),
            InvalidTypeError,
            "accumulator_type must be a key type such as LONG or a Serializer, got 5",
        ),
    ],
)
def test_refused_descriptors(
    make: Callable[..., object], arguments: tuple[Any, ...], error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        make(*arguments)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (
            timing("a", -5, namespace=7, service="longs", times=2),
            "key 'a' in state '_timer_state/event_longs' of 7 at -5 twice",
        ),
        (
            writing("a", WINDOW, 7, times=2),
            r"key 'a' in state 'window-contents' of TimeWindow\(start=0, end=60000\) twice",
        ),
    ],
)
def test_what_is_there_twice(write: Any, message: str, tmp_path: Path) -> None:
    """A timer is one for Flink, and so is a window."""
    with pytest.raises(InvalidValueError, match=message), SavepointWriter(tmp_path / "new") as new:
        write(new)


@pytest.mark.parametrize(
    "other",
    [
        *((0, 30), (10, 30), (-30, 0), (30, 50), (-9, 70), (10, 31)),
        *((-530, -500), (-501, 1000), (530, 550)),  # the first and the last one
    ],
)
def test_sessions_that_flink_had_merged(other: tuple[int, int], tmp_path: Path) -> None:
    """TimeWindow.intersects: those that touch too; not those of another key."""
    with SavepointWriter(tmp_path / "new") as writer:
        windows = writer.add_window_operator(
            "uid", STRING, EventTimeSessionWindows(20), SUMS, 1, 1
        )
        for start in (-500, 0, 500):
            windows.write("a", TimeWindow(start, start + 30), 7)
        with pytest.raises(
            InvalidValueError, match="window must not overlap or touch another one"
        ):
            windows.write("a", TimeWindow(*other), 7)
        windows.write("b", TimeWindow(*other), 7)
        windows.write("a", TimeWindow(31, 51), 7)
        windows.write("a", TimeWindow(-31, -1), 7)
    (operator,) = read_savepoint(tmp_path / "new").operators
    sets = {entry.key: len(entry.value) for entry in operator.entries({"merging-window-set"})}
    assert sets == {"a": 5, "b": 1}


def test_sessions_are_held_until_their_key_group_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyed_state_file, "_BUFFERED", 1)

    def write(count: int) -> None:
        with SavepointWriter(tmp_path / str(count)) as writer:
            windows = writer.add_window_operator(
                "uid", STRING, EventTimeSessionWindows(20), SUMS, 128, 1
            )
            for key in keys_by_group(128, *range(count)):
                # Zeros before a text do not change its hash.
                windows.write("\0" * 1_000 + key, TimeWindow(0, 30), 7)

    few, many = (count_bytes(partial(write, count)) for count in (2, 34))
    assert many < few + 0.8 * 32 * 1_000


def test_a_session_is_compared_with_its_neighbours_alone(tmp_path: Path) -> None:
    """Four times as many of a key take four times as long."""

    def steps(count: int) -> int:
        starts = [*range(0, 30 * count, 30)]
        random.Random(5).shuffle(starts)
        sessions = [TimeWindow(start, start + 20) for start in starts]
        with SavepointWriter(tmp_path / str(count)) as writer:
            windows = writer.add_window_operator(
                "uid", STRING, EventTimeSessionWindows(20), SUMS, 1, 1
            )

            def write() -> None:
                for session in sessions:
                    windows.write("a", session, 7)

            return count_steps(write)

    assert steps(400) < 4.5 * steps(100)


def test_key_groups_in_order(tmp_path: Path) -> None:
    with SavepointWriter(tmp_path / "new") as writer:
        windows = writer.add_window_operator(
            "uid", STRING, EventTimeSessionWindows(20), SUMS, 128, 1
        )
        keys = sorted(("a", "b"), key=windows.key_group, reverse=True)
        windows.write(keys[0], WINDOW, 7)
        says = r"entries must come in the order of key groups, .* after key group \d+$"
        with pytest.raises(InvalidValueError, match=says):
            windows.write(keys[1], WINDOW, 7)
        with pytest.raises(InvalidValueError, match="window must not overlap or touch"):
            windows.write(keys[0], WINDOW, 7)
