"""State that is written for PyFlink's jobs: windows, thread mode, and keys without a type.

The bytes are those of real jobs, which are in `tests/vectors/pyflink.tar.xz`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.bytes.framed_entries import framed_entries
from support.bytes.pyflink_states import states_of_each_kind
from support.bytes.real_savepoints import corpus

from keygroups import types as kt
from keygroups.errors import InvalidTypeError, InvalidValueError, UnsupportedKeyTypeError
from keygroups.savepoint import (
    AggregatingStateDescriptor,
    CountWindows,
    EventTimeSessionWindows,
    GlobalWindow,
    ListStateDescriptor,
    Operator,
    ReducingStateDescriptor,
    SavepointWriter,
    SlidingEventTimeWindows,
    TimerServiceDescriptor,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    ValueStateDescriptor,
    pyflink,
    read_savepoint,
)
from keygroups.savepoint.values import CountWindow
from keygroups.types import BIG_DEC, BIG_INT, DOUBLE, INT, LONG, PYFLINK, STRING

PROCESS, THREAD = "2.3.0-states-s1", "1.20.5-states-thread"
IN_PROCESS, IN_THREAD = PYFLINK(LONG), PYFLINK(LONG, thread_mode=True)
ELEMENT = pyflink.TUPLE(STRING, LONG, LONG)
ELEMENTS = ListStateDescriptor("window-contents", ELEMENT)
SUMS = AggregatingStateDescriptor("window-contents", pyflink.TUPLE(LONG, LONG))
KEYS = range(5)


def real(point: str, uid: str) -> Operator:
    savepoint = read_savepoint(corpus("pyflink") / point / "savepoint", uids=[uid])
    return savepoint.operator(uid)


def headers(operator: Operator) -> dict[str, bytes]:
    """Return the parts of the header: of the key as "", of states by name."""
    header = operator.tasks()[0].format.headers()[0]
    names = [state.name for state in header.states]
    return {"": header.key_bytes, **dict(zip(names, header.state_bytes))}


def entries(operator: Operator, states: set[str]) -> list[tuple[str, bytes, bytes]]:
    """Return the entries of some states as bytes."""
    return sorted(
        (entry.state, entry.encoded_key, entry.encoded_value)
        for task in operator.tasks()
        for entry in framed_entries(task)
        if entry.state in states
    )


@pytest.mark.parametrize("uid", ["kinds", "ttl"])
def test_kinds_in_thread_mode(uid: str, tmp_path: Path) -> None:
    states = states_of_each_kind(uid == "ttl")
    plain = real(THREAD, uid)
    source = plain.as_pyflink(LONG, states)
    names = {state.name for state in states}
    with SavepointWriter(tmp_path / "new") as writer:
        operator = writer.add_operator(
            uid, IN_THREAD, [*states, TimerServiceDescriptor()], 128, 2, sort=True
        )
        for entry in source.entries(names):
            operator.write(entry.state, entry.key, entry.value, entry.user_key, entry.last_access)
    new = writer.savepoint().operator(uid)
    written = headers(new)
    assert written.items() < headers(plain).items()  # The job has an empty state too.
    assert len(written) == 9
    assert entries(new, names) == entries(plain, names)
    assert len(entries(new, names)) == 5 * (4 + 3 + 4)


TYPES: dict[str, Any] = {
    "boolean": kt.BOOLEAN,
    "byte": kt.BYTE,
    "short": kt.SHORT,
    "int": INT,
    "long": LONG,
    "float": kt.FLOAT,
    "double": DOUBLE,
    "string": STRING,
    "bigdec": BIG_DEC,
    "pickled": pyflink.PICKLED,
    "map": kt.MAP(STRING, LONG),
    "tuple": kt.TUPLE(STRING, LONG),
}


def test_types_in_thread_mode(tmp_path: Path) -> None:
    """Those that PyFlink itself writes, but rows, whose pickles have an object."""
    plain = real(THREAD, "types")
    states = [ValueStateDescriptor(f"v-{name}", type_) for name, type_ in TYPES.items()]
    source = plain.as_pyflink(LONG, states)
    names = {state.name for state in states}
    with SavepointWriter(tmp_path / "new") as writer:
        operator = writer.add_operator("types", IN_THREAD, states, 128, 2, sort=True)
        for entry in source.entries(names):
            operator.write(entry.state, entry.key, entry.value)
    new = writer.savepoint().operator("types")
    assert headers(new).items() < headers(plain).items()
    assert entries(new, names) == entries(plain, names)
    assert len(entries(new, names)) == 5 * len(TYPES)


@pytest.mark.parametrize(
    "type_",
    [
        BIG_INT,
        kt.INSTANT,
        pyflink.SQL_DATE,
        pyflink.SQL_TIME,
        pyflink.SQL_TIMESTAMP,
        pyflink.LIST(LONG),
        pyflink.PRIMITIVE_ARRAY(INT),
        kt.ROW(LONG),
        pyflink.MAP(STRING, pyflink.SQL_DATE),
    ],
    ids=str,
)
def test_types_that_thread_mode_cannot_write(type_: Any, tmp_path: Path) -> None:
    writer = SavepointWriter(tmp_path / "new")
    with pytest.raises(UnsupportedKeyTypeError, match=r"value_type .* for PyFlink's thread mode"):
        writer.add_operator("a", IN_THREAD, [ValueStateDescriptor("n", type_)], 128, 2)
    writer.add_operator("a", IN_PROCESS, [ValueStateDescriptor("n", type_)], 128, 2)


def written_windows(
    path: Path, assigner: Any, contents: Any, windows: list[tuple[Any, Any]], key_type: Any
) -> Operator:
    with SavepointWriter(path) as writer:
        operator = writer.add_window_operator("w", key_type, assigner, contents, 128, 2)
        for key in sorted(KEYS, key=operator.key_group):
            for window, make in windows:
                operator.write(key, window, make(key))
    assert "no fault" in repr(writer.savepoint().verify())
    return writer.savepoint().operator("w")


def elements(uid: str, *numbers: int) -> Any:
    return lambda key: [(uid, key, number) for number in numbers]


WINDOWS: dict[str, tuple[Any, Any, list[tuple[Any, Any]]]] = {
    "tumble": (
        TumblingEventTimeWindows(1_000_000),
        ELEMENTS,
        [(TimeWindow(0, 1_000_000), elements("tumble", 0, 1, 2, 3))],
    ),
    "slide": (
        SlidingEventTimeWindows(1_000_000, slide=500_000),
        SUMS,
        [
            (TimeWindow(0, 1_000_000), lambda key: (6, 4)),
            (TimeWindow(-500_000, 500_000), lambda key: (6, 4)),
        ],
    ),
    "session": (
        EventTimeSessionWindows(100_000),
        ELEMENTS,
        [(TimeWindow(0, 103_000), elements("session", 0, 1, 2, 3))],
    ),
    "count": (CountWindows(3), ELEMENTS, [(CountWindow(1), elements("count", 3))]),
}


@pytest.mark.parametrize("uid", WINDOWS)
def test_windows(uid: str, tmp_path: Path) -> None:
    """Flink has the elements of a window in another number of arrays of bytes.

    Of a session that has grown it has the contents by the window of its first element.
    """
    assigner, contents, windows = WINDOWS[uid]
    new = written_windows(tmp_path / "new", assigner, contents, windows, PYFLINK(LONG))
    plain = real(PROCESS, uid)
    written, known = headers(new), headers(plain)
    assert {name: data for name, data in known.items() if name in written} == written
    as_bytes = {name for name in written if name not in ("", "python-state-window-contents")}
    if uid == "session":
        as_bytes.remove("python-state-merging-window-set")
        [*merged] = new.entries(["python-state-merging-window-set"])
        assert {entry.user_key for entry in merged} == {entry.value for entry in merged}
        [*own] = plain.entries(["python-state-merging-window-set"])
        assert {entry.user_key for entry in merged} == {entry.user_key for entry in own}
    assert entries(new, as_bytes) == entries(plain, as_bytes)
    assert len(entries(new, as_bytes)) == len(KEYS) * (2 if uid in ("slide", "count") else 1)
    of_jobs = [
        {
            (entry.key, None if uid == "session" else entry.namespace): entry.value
            for entry in operator.as_pyflink(LONG, [contents]).entries(["window-contents"])
            if entry.namespace != CountWindow(0)  # PyFlink keeps it when it is over.
        }
        for operator in (new, plain)
    ]
    assert of_jobs[0] == of_jobs[1]
    assert len(of_jobs[0]) == len(KEYS) * len(windows)


CONTENTS_IN_THREAD = (
    b"\0\x0fwindow-contents\0\0\0\0\0\0\0\x01\0\x10KEYED_STATE_TYPE\0\x04LIST\0\0\0\x02"
    b"\0\x10VALUE_SERIALIZER\0\0\0\x02\0Aorg.apache.flink.api.common.typeutils.base."
    b"ListSerializerSnapshot\0\0\0\x03\0\r\xe7\x04\0\0\0\x01\0\x14W\xfd\0\0\0\x01\0\0\0\x01"
    b"\0rorg.apache.flink.api.common.typeutils.base.array.BytePrimitiveArraySerializer$"
    b"BytePrimitiveArraySerializerSnapshot\0\0\0\x03\0\x14NAMESPACE_SERIALIZER\0\0\0\x02"
    b"\0borg.apache.flink.table.runtime.operators.window.TimeWindow$Serializer$"
    b"TimeWindowSerializerSnapshot\0\0\0\x03"
)
"""As the thread modes of 1.20.5 and of 2.3.0 write it, and an element, which is a pickle."""
ELEMENT_IN_THREAD = (
    bytes.fromhex("80 04 95 0e 00 00 00 00 00 00 00 8c 04") + b"made\x94K\4K\0\x87\x94."
)


def test_windows_in_thread_mode(tmp_path: Path) -> None:
    assigner, contents, _ = WINDOWS["tumble"]
    windows = [(TimeWindow(0, 1_000_000), elements("made", 0))]
    new = written_windows(tmp_path / "new", assigner, contents, windows, IN_THREAD)
    written = headers(new)
    assert written["window-contents"] == CONTENTS_IN_THREAD
    assert [*written] == [
        "",
        "window-contents",
        "_timer_state/processing_window-timers",
        "_timer_state/event_window-timers",
    ]
    held = {entry.key: entry.value for entry in new.entries(["window-contents"])}
    assert held[4,] == [ELEMENT_IN_THREAD]
    read = new.as_pyflink(LONG, [ELEMENTS]).entries(["window-contents"])
    assert {entry.key: entry.value for entry in read} == {key: [("made", key, 0)] for key in KEYS}
    sums = written_windows(
        tmp_path / "sums",
        TumblingProcessingTimeWindows(1_000),
        ReducingStateDescriptor("window-contents", INT),
        [(TimeWindow(0, 1_000), lambda key: key)],
        IN_THREAD,
    )
    assert str(sums.states[0]) == "window-contents: VALUE <ROW(LONG), TIME_WINDOW, LONG>"


def test_windows_that_pyflink_does_not_have(tmp_path: Path) -> None:
    writer = SavepointWriter(tmp_path / "new")

    def add(assigner: Any, key_type: Any = IN_PROCESS, **options: Any) -> Any:
        return writer.add_window_operator("w", key_type, assigner, ELEMENTS, 128, 2, **options)

    hours = TumblingEventTimeWindows(3_600_000)
    with pytest.raises(UnsupportedKeyTypeError, match="has_evictor must be False for PYFLINK"):
        add(hours, has_evictor=True)
    for merging in (EventTimeSessionWindows(5), CountWindows(5)):
        with pytest.raises(UnsupportedKeyTypeError, match="neither sessions nor counts for PYF"):
            add(merging, IN_THREAD)
    with pytest.raises(InvalidValueError, match="contents must be named 'window-contents'"):
        writer.add_window_operator(
            "w", PYFLINK(LONG), hours, ListStateDescriptor("other", LONG), 128, 2
        )
    counts = add(CountWindows(3))
    with pytest.raises(InvalidTypeError, match="window must be a CountWindow of a PyFlink job"):
        counts.write(7, GlobalWindow(), [("a", 7, 0)])
    with pytest.raises(InvalidValueError, match="id of a CountWindow must be from 0 to"):
        counts.write(7, CountWindow(-1), [("a", 7, 0)])
    with pytest.raises(InvalidValueError, match="count must be"):
        counts.write(7, CountWindow(0), [("a", 7, number) for number in range(3)])


SLIDING = CountWindows(5, slide=2)
WRITTEN_OF_7: dict[int, list[tuple[str, int, int]]] = {
    number: [("s", 7, element) for element in range(2 * number, 7)] for number in (2, 3)
}
"""Of 7 elements, 0 to 6, the windows 2 and 3, from the elements 4 and 6, are not full."""


def sliding(path: Path, *keys: dict[int, list[tuple[str, int, int]]], **options: Any) -> Operator:
    """Write such windows of the keys from 7 on in the order of their key groups."""
    with SavepointWriter(path) as writer:
        windows = writer.add_window_operator("w", IN_PROCESS, SLIDING, ELEMENTS, 128, 2)
        of_keys = dict(enumerate(keys, 7))
        for key in sorted(of_keys, key=windows.key_group):
            for number, contents in of_keys[key].items():
                windows.write(key, CountWindow(number), contents, **options)
    return writer.savepoint().operator("w")


def test_windows_of_a_count_with_a_slide(tmp_path: Path) -> None:
    """PyFlink: CountSlidingWindowAssigner.assign_windows, CountTrigger.on_element."""
    new = sliding(tmp_path / "new", WRITTEN_OF_7, {0: WRITTEN_OF_7[2][:1]}, WRITTEN_OF_7)
    as_job = new.as_pyflink(
        LONG,
        [
            *(ELEMENTS, ReducingStateDescriptor("count", LONG)),
            ValueStateDescriptor("slide-count-assigner", LONG),
        ],
    )
    expected: dict[str, Any] = {
        "window-contents": {CountWindow(place): held for place, held in WRITTEN_OF_7.items()},
        "count": {CountWindow(2): 3, CountWindow(3): 1},
        "slide-count-assigner": 7,
    }
    assert as_job.get(7) == as_job.get(9) == expected
    assert as_job.get(8)["slide-count-assigner"] == 1
    assert "tumble-count-assigner" not in {state.name for state in as_job.states}


@pytest.mark.parametrize(
    ("windows", "says"),
    [
        ({2: WRITTEN_OF_7[2]}, r"key 7 must be those .* 7 elements, 2 to 3, got \[2\]"),
        ({3: WRITTEN_OF_7[3]}, r"key 7 must be those .* 7 elements, 2 to 3, got \[3\]"),
        ({1: WRITTEN_OF_7[2]}, r"key 7 must be those .* 5 elements, 1 to 2, got \[1\]"),
        (
            {2: WRITTEN_OF_7[2], 3: WRITTEN_OF_7[2][:2]},
            "tell of 7 elements of the key 7, .* got 2 of .*, which tells of 8",
        ),
        ({2: WRITTEN_OF_7[2] * 2}, "count must be from 1 to 4, got 6"),
        ({2: []}, "must"),
        ({2**62: WRITTEN_OF_7[2]}, "id of a CountWindow must be from 0 to 4611686018427387901"),
    ],
)
def test_windows_of_a_count_that_are_not_whole(
    windows: dict[int, Any], says: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidValueError, match=says):
        sliding(tmp_path / "new", windows)
    later = dict.fromkeys(range(20), WRITTEN_OF_7)
    with pytest.raises(InvalidValueError, match=says):
        sliding(tmp_path / "later", windows, *later.values())


def test_one_window_twice(tmp_path: Path) -> None:
    twice = [(CountWindow(1), elements("w", 0))] * 2
    with pytest.raises(InvalidValueError, match="twice"):
        written_windows(tmp_path / "new", CountWindows(5, 5), ELEMENTS, twice, PYFLINK(LONG))


@pytest.mark.parametrize("slide", [4, 5, 9])
def test_windows_of_a_count_with_a_long_slide(slide: int, tmp_path: Path) -> None:
    """After 12 elements of size 5: 8 to 12 with slide 4, 10 to 14 with 5, 9 to 13 with 9."""
    numbers = {4: [2], 5: [2], 9: [1]}[slide]
    with SavepointWriter(tmp_path / "new") as writer:
        sums = ReducingStateDescriptor("window-contents", LONG)
        windows = writer.add_window_operator("w", IN_PROCESS, CountWindows(5, slide), sums, 128, 2)
        for number in numbers:
            windows.write(7, CountWindow(number), 40, count=12 - number * slide)
    total = ValueStateDescriptor("slide-count-assigner", LONG)
    new = writer.savepoint().operator("w").as_pyflink(LONG, [sums, total])
    assert new.get(7, "slide-count-assigner") == 12
    assert new.get(7, "window-contents") == {CountWindow(numbers[0]): 40}


def test_sessions_that_flink_would_have_merged(tmp_path: Path) -> None:
    with SavepointWriter(tmp_path / "new") as writer:
        sessions = writer.add_window_operator(
            "w", PYFLINK(LONG), EventTimeSessionWindows(100), SUMS, 128, 2
        )
        sessions.write(7, TimeWindow(0, 200), (1, 1))
        with pytest.raises(InvalidValueError, match="window must not overlap or touch another"):
            sessions.write(7, TimeWindow(200, 300), (1, 1))
        sessions.write(7, TimeWindow(201, 301), (2, 1))
    new = writer.savepoint().operator("w").as_pyflink(LONG, [SUMS])
    assert new.get(7, "window-contents") == {
        TimeWindow(0, 200): (1, 1),
        TimeWindow(201, 301): (2, 1),
    }


@pytest.mark.parametrize(
    ("point", "key_type"),
    [("2.3.0-keys-mp128", PYFLINK()), ("1.20.5-keys-thread-mp1000", PYFLINK(thread_mode=True))],
)
def test_keys_without_a_type(point: str, key_type: Any, tmp_path: Path) -> None:
    plain = real(point, "by-PICKLED")
    states = [ValueStateDescriptor("cnt", LONG)]
    source = plain.as_pyflink(pyflink.PICKLED, states)
    groups = plain.max_parallelism
    with SavepointWriter(tmp_path / "new") as writer:
        operator = writer.add_operator("by-PICKLED", key_type, states, groups, 2, sort=True)
        for entry in source.entries(["cnt"]):
            operator.write("cnt", entry.key, entry.value)
    new = writer.savepoint().operator("by-PICKLED")
    written = headers(new)
    assert written.items() <= headers(plain).items()
    assert len(written) == 2
    assert entries(new, {*written}) == entries(plain, {*written})
    truth = json.loads((corpus("pyflink") / point / "truth.json").read_text("utf-8"))
    seen = [line for line in truth["seen"] if line[0] == "PICKLED"]
    assert len(entries(new, {*written})) == len({line[1] for line in seen}) > 8
