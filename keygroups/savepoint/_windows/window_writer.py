"""Writes windows: the contents of each, the timers that end it, its count or its session.

Flink: WindowOperator, EvictingWindowOperator; EventTimeTrigger, ProcessingTimeTrigger,
CountTrigger.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from typing import Any

from keygroups import types as kt
from keygroups._checks import LONG_MAX, check_class, check_int, show
from keygroups._serializers.base import Serializer
from keygroups._serializers.compounds import PyFlinkSerializer, TupleSerializer
from keygroups._serializers.scalars import (
    GLOBAL_WINDOW,
    LONG,
    TABLE_COUNT_WINDOW,
    TABLE_TIME_WINDOW,
    TIME_WINDOW,
    VOID_NAMESPACE,
)
from keygroups._serializers.streaming import StreamElementSerializer
from keygroups._values.rows import GlobalWindow, TimeWindow
from keygroups._values.sql import CountWindow
from keygroups._values.streaming import StreamRecord
from keygroups.errors import InvalidTypeError, InvalidValueError, UnsupportedKeyTypeError
from keygroups.savepoint._state.entries import EncodedEntry
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.writing.entry_encoder import EntryEncoder
from keygroups.savepoint._state.writing.new_states import (
    EVENT_TIME,
    TIME_DOMAINS,
    USER_TIMERS,
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    TimerServiceDescriptor,
    ValueStateDescriptor,
    timer_state_name,
)
from keygroups.savepoint.windows import (
    CountWindows,
    TimeWindowAssigner,
    WindowAssigner,
    check_time_window,
)

CONTENTS = "window-contents"
SESSIONS = "merging-window-set"
_COUNT = "count"
_COUNTED = "tumble-count-assigner"  # PyFlink: how many elements of a key came
_COUNTED_WITH_SLIDE = "slide-count-assigner"
_COUNT_SIZE = 8  # bytes of a CountWindow
_TIMERS = "window-timers"

WindowContents = ListStateDescriptor | ReducingStateDescriptor | AggregatingStateDescriptor


class WindowOperatorWriter:
    """Writes the windows of one operator; `SavepointWriter.add_window_operator` makes it."""

    def __init__(
        self,
        assigner: WindowAssigner,
        allowed_lateness: int,
        encoder: EntryEncoder,
        hold: Callable[[Any, EncodedEntry], None],
    ) -> None:
        self._assigner = assigner
        self._allowed_lateness = allowed_lateness
        self._encoder = encoder
        self._hold = hold
        self._numbers = {state.name: number for number, state in enumerate(encoder.states)}
        contents = encoder.states[0]
        self._is_list = contents.kind == "LIST"
        self._in_pyflink = isinstance(contents.key_serializer, PyFlinkSerializer)
        self._timers = {
            time_domain: number
            for number, state in enumerate(encoder.states)
            for time_domain in TIME_DOMAINS
            if state.name.startswith(timer_state_name("", time_domain))
        }
        self._has_evictor = isinstance(contents.value_serializer, StreamElementSerializer)
        self._key_group = -1
        self._sessions: dict[bytes, list[TimeWindow]] = {}  # sorted, by the bytes of their key
        # The elements of each key that came, and the windows of it, of PyFlink's with a slide.
        self._open: dict[bytes, tuple[Any, int, set[int]]] = {}

    def key_group(self, key: Any) -> int:
        """Return the key group of a key, by which windows have to be sorted."""
        return self._encoder.key_group(key)

    def write(
        self,
        key: Any,
        window: TimeWindow | GlobalWindow | CountWindow,
        contents: Any,
        *,
        count: int | None = None,
        has_fired: bool = False,
    ) -> None:
        """Write a window of a key, with all that Flink keeps of it until it is over.

        `window` is a TimeWindow that the assigner makes, or the GlobalWindow of CountWindows; of
        these a PyFlink job has a CountWindow instead, whose id is how many of the key are over,
        or with a slide how many began before; there all windows of a key are written that are
        open after as many elements, 12 and 13 of size 5 and slide 2 after 27.
        `contents` are the list of its elements, with an evictor of StreamRecords, or the reduced
        value or the accumulator. `count` is how many elements came since CountWindows fired; it
        may be left out where `contents` are a list and there is no slide. `has_fired` says that
        the watermark has passed the window, which is kept for late events.

        Key groups come in ascending order, within one the order is free; the windows of one are
        held until the next. Raises InvalidValueError for a window that the assigner does not
        make or that is there twice, for windows of a count that tell of other numbers of elements
        or, when their key group ends, lack one, for a session that overlaps or touches another
        one of the key, which Flink would have merged, for a key group after a higher one, and for
        values beyond their types; InvalidTypeError.
        """
        check_class("has_fired", has_fired, bool, "a bool")
        if self._has_evictor:
            _check_records(contents)
        if isinstance(self._assigner, CountWindows):
            entries = self._count_window(self._assigner, key, window, contents, count, has_fired)
        else:
            entries = self._time_window(key, window, contents, count, has_fired)
        for entry in entries:
            self._hold(key, entry)
        if _COUNTED_WITH_SLIDE in self._numbers:
            assert isinstance(window, CountWindow)  # `_count_window` has checked it.
            counted = len(contents) if count is None else count
            self._add_open(entries[0], key, window.id, counted)
        if SESSIONS in self._numbers:
            assert isinstance(window, TimeWindow)  # `_time_window` has checked it.
            self._add_session(entries[0], window)

    def _time_window(
        self, key: Any, window: object, contents: Any, count: int | None, has_fired: bool
    ) -> list[EncodedEntry]:
        assigner = self._assigner
        assert isinstance(assigner, TimeWindowAssigner)
        if count is not None:
            raise InvalidValueError(f"count must be None for {assigner}, got {show(count)}")
        checked = check_time_window("window", window)
        assigner._check(checked)
        entries = [self._entry(CONTENTS, key, contents, checked)]
        timers = self._timers[assigner.time_domain]
        for timestamp in self._timestamps(checked, has_fired):
            entries.append(
                self._encoder.encode(timers, key, namespace=checked, timestamp=timestamp)
            )
        if assigner.is_merging:
            self._check_session(key, entries[0], checked)
            entries.append(self._session(key, checked))
        return entries

    def _session(self, key: Any, window: TimeWindow) -> EncodedEntry:
        """Return the entry that a session is by itself, and not merged with others."""
        number = self._numbers[SESSIONS]
        if self._in_pyflink:
            return self._encoder.encode(number, key, window, user_key=window)
        return self._encoder.encode(number, key, [(window, window)])

    def _timestamps(self, window: TimeWindow, has_fired: bool) -> Iterator[int]:
        """Yield the times of a window's timers: that of the trigger, and that which clears it."""
        if has_fired and not self._allowed_lateness:
            raise InvalidValueError(
                "has_fired must be False without allowed_lateness: Flink keeps no window then"
            )
        last = window.end - 1
        if not has_fired:
            yield last
        cleared = last + self._allowed_lateness
        if last < cleared < LONG_MAX:  # Flink sets no timer for the last long.
            yield cleared

    def _check_session(self, key: Any, contents: EncodedEntry, window: TimeWindow) -> None:
        sessions = self._sessions.get(_without_window(contents), [])
        place = bisect_left(sessions, window)
        for other in sessions[max(place - 1, 0) : place + 1]:
            if other.start <= window.end and window.start <= other.end:
                raise InvalidValueError(
                    f"window must not overlap or touch another one of the key {show(key)}, as "
                    f"Flink makes one session of them, got {show(window)} and {show(other)}"
                )

    def _add_session(self, contents: EncodedEntry, window: TimeWindow) -> None:
        if contents.key_group != self._key_group:
            self._key_group, self._sessions = contents.key_group, {}
        insort(self._sessions.setdefault(_without_window(contents), []), window)

    def _count_window(
        self,
        assigner: CountWindows,
        key: Any,
        window: object,
        contents: Any,
        count: int | None,
        has_fired: bool,
    ) -> list[EncodedEntry]:
        if self._in_pyflink:
            check_class("window", window, CountWindow, "a CountWindow of a PyFlink job")
        else:
            check_class("window", window, GlobalWindow, "a GlobalWindow")
        if has_fired:
            raise InvalidValueError(
                f"has_fired must be False for {assigner}, which are told by their count"
            )
        entry = self._entry(CONTENTS, key, contents, window)
        keeps_size = assigner.slide is not None and not self._in_pyflink
        if count is None and (keeps_size or not self._is_list):
            raise InvalidValueError(
                f"count must be how many elements came since {assigner} fired, got None"
            )
        if keeps_size and assigner.slide is not None:
            counted = _counted_with_slide(assigner, assigner.slide, count, len(contents))
        else:
            counted = _counted(assigner, count, len(contents) if self._is_list else None)
        # Flink's trigger clears its count when it fires, instead of setting it to 0.
        entries = [entry, self._entry(_COUNT, key, counted, window)] if counted else [entry]
        if isinstance(window, CountWindow):
            entries += self._counted_of_key(assigner, key, window, counted, entry)
        return entries

    def _counted_of_key(
        self,
        assigner: CountWindows,
        key: Any,
        window: CountWindow,
        counted: int,
        contents: EncodedEntry,
    ) -> list[EncodedEntry]:
        """Return the entry of how many elements of a key came, if no window before told it.

        PyFlink: CountTumblingWindowAssigner, CountSlidingWindowAssigner.
        """
        step = assigner.slide or assigner.size
        most = (LONG_MAX - assigner.size) // step
        total = check_int("id of a CountWindow", window.id, 0, most) * step + counted
        if assigner.slide is None:
            return [self._entry(_COUNTED, key, total, None)]
        _, known, _ = self._open.get(_without_window(contents, _COUNT_SIZE), (None, None, None))
        if known is None:
            return [self._entry(_COUNTED_WITH_SLIDE, key, total, None)]
        if total != known:
            raise InvalidValueError(
                f"count must tell of {known} elements of the key {show(key)}, as another window "
                f"of it does, got {counted} of {window}, which tells of {total}"
            )
        return []

    def _add_open(self, contents: EncodedEntry, key: Any, number: int, counted: int) -> None:
        assert isinstance(self._assigner, CountWindows)
        assert self._assigner.slide is not None
        total = number * self._assigner.slide + counted
        place = _without_window(contents, _COUNT_SIZE)
        self._open.setdefault(place, (key, total, set()))[2].add(number)

    def _check_counts(self) -> None:
        """Raise InvalidValueError if a key of the last key group lacks a window of a count.

        PyFlink gives an element to all windows that are open, and makes anew those that are not
        there, which then end too late.
        """
        last, self._open = self._open, {}
        for key, total, numbers in last.values():
            assert isinstance(self._assigner, CountWindows)
            assert self._assigner.slide is not None
            first = max((total - self._assigner.size) // self._assigner.slide + 1, 0)
            end = (total - 1) // self._assigner.slide + 1
            if len(numbers) < end - first:
                raise InvalidValueError(
                    f"windows of the key {show(key)} must be those that are open after its "
                    f"{total} elements, {first} to {end - 1}, got {show(sorted(numbers))}"
                )

    def _entry(self, state: str, key: Any, value: Any, window: object) -> EncodedEntry:
        return self._encoder.encode(self._numbers[state], key, value, namespace=window)


def _without_window(contents: EncodedEntry, size: int = TIME_WINDOW.size) -> bytes:
    """Return the bytes of the key of a window's contents; `size` is that of the window."""
    return contents.key[:-size]


def window_states(
    assigner: WindowAssigner, contents: WindowContents, key: Serializer, has_evictor: bool
) -> tuple[StateDescriptor, ...]:
    """Return the states of an operator of windows as the reader finds them, contents first.

    The arguments are those of `SavepointWriter.add_window_operator`; `key` is the serializer of
    the key. Raises InvalidTypeError or InvalidValueError for what no such operator has.
    """
    if not isinstance(assigner, WindowAssigner):
        raise InvalidTypeError(
            f"assigner must be one such as TumblingEventTimeWindows, got {show(assigner)}"
        )
    is_count = isinstance(assigner, CountWindows)
    check_class("has_evictor", has_evictor, bool, "a bool")
    has_slide = isinstance(assigner, CountWindows) and assigner.slide is not None
    if isinstance(key, PyFlinkSerializer):
        if has_evictor:
            raise UnsupportedKeyTypeError(
                "has_evictor must be False for PYFLINK, as PyFlink has no evictors, got True"
            )
        _value_serializer(contents, False)
        return _python_states(assigner, contents, key)
    has_evictor = has_evictor or has_slide  # That of the slide keeps `size` elements.
    value = _value_serializer(contents, has_evictor)
    window = GLOBAL_WINDOW if is_count else TIME_WINDOW
    states = [StateDescriptor(CONTENTS, contents.kind, key, window, value)]
    if is_count:
        states.append(StateDescriptor(_COUNT, "REDUCING", key, window, LONG))
    if isinstance(assigner, TimeWindowAssigner) and assigner.is_merging:
        pair = TupleSerializer([TIME_WINDOW, TIME_WINDOW])
        states.append(StateDescriptor(SESSIONS, "LIST", key, VOID_NAMESPACE, pair))
    return (*states, *TimerServiceDescriptor(_TIMERS, window).described(key))


def _python_states(
    assigner: WindowAssigner, contents: WindowContents, key: PyFlinkSerializer
) -> tuple[StateDescriptor, ...]:
    """Return the states of a PyFlink job's windows.

    PyFlink: WindowOperator, CountTumblingWindowAssigner, CountTrigger; its windows are those of
    Flink's tables. In thread mode it fails to write what it has without a window.
    """
    is_merging = isinstance(assigner, TimeWindowAssigner) and assigner.is_merging
    is_count = isinstance(assigner, CountWindows)
    if key.in_thread and (is_merging or is_count):
        raise UnsupportedKeyTypeError(
            f"assigner must have neither sessions nor counts for PYFLINK with thread_mode, in "
            f"which PyFlink fails to write them, got {assigner}"
        )
    window = TABLE_COUNT_WINDOW if is_count else TABLE_TIME_WINDOW
    states = [contents.as_pyflink(key, window)]
    if isinstance(assigner, CountWindows):
        states.append(ReducingStateDescriptor(_COUNT, kt.LONG).as_pyflink(key, window))
        counted = _COUNTED if assigner.slide is None else _COUNTED_WITH_SLIDE
        states.append(ValueStateDescriptor(counted, kt.LONG).as_pyflink(key, VOID_NAMESPACE))
    if is_merging:
        merged = MapStateDescriptor(SESSIONS, TABLE_TIME_WINDOW, TABLE_TIME_WINDOW)
        states.append(merged.as_pyflink(key, VOID_NAMESPACE))
    service = _TIMERS if key.in_thread else USER_TIMERS
    return (*states, *TimerServiceDescriptor(service, window).described(key))


def check_lateness(assigner: WindowAssigner, allowed_lateness: int) -> int:
    """Return the milliseconds that an assigner's windows wait for late events."""
    lateness = check_int("allowed_lateness", allowed_lateness, 0, LONG_MAX)
    is_event_time = isinstance(assigner, TimeWindowAssigner) and assigner.time_domain == EVENT_TIME
    if lateness and not is_event_time:
        raise InvalidValueError(
            f"allowed_lateness must be 0 for {assigner}, for which no event is late, got "
            f"{lateness}"
        )
    return lateness


def _value_serializer(contents: WindowContents, has_evictor: bool) -> Serializer:
    """Return the serializer of an element of a list, of a reduced value or an accumulator."""
    known = (ListStateDescriptor, ReducingStateDescriptor, AggregatingStateDescriptor)
    if not isinstance(contents, known):
        raise InvalidTypeError(
            "contents must be a ListStateDescriptor, a ReducingStateDescriptor or an "
            f"AggregatingStateDescriptor, got {show(contents)}"
        )
    if contents.name != CONTENTS or contents.has_ttl:
        raise InvalidValueError(
            f"contents must be named {CONTENTS!r}, as Flink does it, and have no time to live, "
            f"got {contents}"
        )
    value = contents.value_serializer()
    if not has_evictor:
        return value
    if not isinstance(contents, ListStateDescriptor):
        raise InvalidValueError(
            f"contents must be a ListStateDescriptor where there is an evictor, got {contents}"
        )
    return StreamElementSerializer(value)


def _check_records(contents: Any) -> None:
    for record in check_class("contents", contents, list, "a list"):
        check_class("element of contents with an evictor", record, StreamRecord, "a StreamRecord")


def _counted(assigner: CountWindows, count: int | None, elements: int | None) -> int:
    """Return the number of elements in a window that is cleared when it fires."""
    counted = check_int("count", elements if count is None else count, 1, assigner.size - 1)
    if elements is not None and counted != elements:
        raise InvalidValueError(
            f"count must be that of the elements in contents, {elements}, got {counted}"
        )
    return counted


def _counted_with_slide(
    assigner: CountWindows, slide: int, count: int | None, elements: int
) -> int:
    """Return the number of elements since the last firing of a window that keeps `size`.

    With size 5 and slide 2, 3 elements need a count of 1: it fired with 2 elements.
    """
    counted = check_int("count", count, 0, slide - 1)
    # It fired with a multiple of `slide` elements, or with `size` if that is less.
    before = elements - counted
    if before != assigner.size and before not in range(0, assigner.size, slide):
        raise InvalidValueError(
            f"count must fit the {elements} elements in contents of {assigner}, got {counted}"
        )
    return counted
