"""Windows and timers that are written: the bytes are those that Flink writes, as the times are.

Expected bytes are those of real savepoints; expected windows are those of a model that knows
Java's arithmetic and nothing of the library.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from job_points import JOB_POINTS, job_point
from real_savepoints import POINTS, Point, point

from keygroups.errors import InvalidTypeError, InvalidValueError, UnsupportedKeyTypeError
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
from keygroups.types import INT, LIST, LONG, MAP, PYFLINK, STRING, TUPLE

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
        for entry in task.framed_entries():
            place = (entry.key_group, entry.state)
            found[place].append((entry.encoded_key, entry.encoded_value))
    return {place: sorted(entries) for place, entries in found.items()}


def headers_of(operator: Operator) -> dict[str, bytes]:
    """Return what the headers say of each state."""
    said = {}
    for task in operator.tasks():
        for handle in task.handles:
            header = task.header(handle)
            said.update(
                {state.name: data for state, data in zip(header.states, header.state_bytes)}
            )
    return said


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
    described = {
        "LIST": ListStateDescriptor,
        "REDUCING": ReducingStateDescriptor,
        "AGGREGATING": AggregatingStateDescriptor,
    }[states[CONTENTS].kind](CONTENTS, value.parts[0] if has_evictor else value)
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
        same = {place: of for place, of in expected.items() if place[1].startswith("_timer")}
        assert {
            place: of for place, of in found.items() if place[1] in {p[1] for p in same}
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


SLIDING = {"aa807219557b7efbe08e66684537999a": "sliding-list"}  # without a uid in Flink 1
CANONICAL = [one for one in [*POINTS, *JOB_POINTS] if one.kind == "canonical"]
QUICK = [point("1.20.5-extrarocks-canonical"), job_point("2.3.0-win-rocksdb-canonical")]


@pytest.mark.parametrize(
    ("points", "windows"),
    [
        pytest.param(QUICK, 20 + 24 + 8 + 8 + 18 + 8 + 52 + 12, id="some"),
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
            if entry.kind == "PRIORITY_QUEUE":
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
    expected = {place: of for place, of in entries_of(operator).items() if place[1] in names}
    assert entries_of(ours) == expected
    said = headers_of(operator)
    assert headers_of(ours) == {name: said[name] for name in names if count}
    return count


@pytest.mark.parametrize(
    ("points", "timers"),
    [
        pytest.param([point("2.3.0-rocks-canonical"), *QUICK[1:]], 0, id="some"),
        pytest.param(CANONICAL, 0, marks=pytest.mark.slow, id="all"),
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


class Overflow(Exception):  # noqa: N818
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
    except InvalidValueError as error:
        assert "must have its windows within" in str(error)
        raise Overflow from None


times = st.one_of(
    st.integers(-(10**4), 10**4),
    st.integers(LONG_MIN + 1, LONG_MAX),
    st.integers(LONG_MIN + 1, LONG_MIN + 10**4),
    st.integers(LONG_MAX - 10**4, LONG_MAX),
)


@given(times, st.integers(1, 5000), st.integers(1, 5000), st.integers(-(10**4), 10**4))
@settings(max_examples=300, deadline=None)
def test_windows_are_those_of_java(time: int, size: int, slide: int, offset: int) -> None:
    """With any remainder of any sign; where Java's longs would overflow there are none."""
    slide = max(slide, size // 50)
    for cls, width, every in (
        (SlidingEventTimeWindows, size, slide),
        (SlidingProcessingTimeWindows, size, slide),
        (TumblingEventTimeWindows, size, size),
        (TumblingProcessingTimeWindows, size, size),
    ):
        within = int(math.fmod(offset, every))
        of = (width, every, within) if "Sliding" in cls.__name__ else (width, within)
        assigner = cls(*of)
        try:
            expected = java_windows(time, width, every, within)
        except Overflow:
            with pytest.raises(Overflow):
                found_windows(assigner, time)
            continue
        try:
            found = found_windows(assigner, time)
        except Overflow:  # where Java would do it for the next window, which is none
            assert time - size - slide < LONG_MIN
            continue
        assert found == expected
        assert all(start <= time < end for start, end in found)
        for start, end in found:
            assigner.check(TimeWindow(start, end))
            for other in (TimeWindow(start + 1, end + 1), TimeWindow(start, end + every)):
                if every > 1:
                    with pytest.raises(InvalidValueError, match=r"window must be one of"):
                        assigner.check(other)
