"""Savepoints of PyFlink as they were, edited, re-keyed and from nothing, restored by PyFlink.

A job of PyFlink says what its state has; `.ci/run pyflink` makes the Pythons that run it, of 2.3.0
and of 1.20.5. Each runs in process mode and in thread mode, which leave other states, and makes
a savepoint of its own in a backend's own format. PyFlink's thread mode fails to write sessions.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from support.bytes.pyflink_states import states_of_each_kind
from support.bytes.real_savepoints import corpus
from support.flink.pyflink_jobs import PyFlink

from keygroups.savepoint import (
    AggregatingStateDescriptor,
    CountWindows,
    EventTimeSessionWindows,
    ListStateDescriptor,
    SavepointWriter,
    SlidingEventTimeWindows,
    TimerServiceDescriptor,
    TimeWindow,
    TtlValue,
    TumblingEventTimeWindows,
    ValueStateDescriptor,
    pyflink,
)
from keygroups.savepoint.values import CountWindow
from keygroups.types import LONG, PYFLINK, STRING

pytestmark = [pytest.mark.flink, pytest.mark.slow]

WITH_KINDS = ["kinds", "ttl"]
KEYS, NUMBERS = range(5), range(4)
BACKENDS = {  # Of the job that makes the savepoint; what it makes is restored on both.
    PyFlink("2.3.0"): "rocksdb",
    PyFlink("2.3.0", "thread"): "hashmap",
    PyFlink("1.20.5"): "hashmap",
    PyFlink("1.20.5", "thread"): "rocksdb",
}
OTHER = {"rocksdb": "hashmap", "hashmap": "rocksdb"}


@pytest.fixture(scope="module", params=BACKENDS, ids=str)
def job(request: pytest.FixtureRequest) -> PyFlink:
    made: PyFlink = request.param
    return made


@pytest.fixture(scope="module")
def savepoint(job: PyFlink, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / str(job)
    return job.made_savepoint(folder, uids_of(job), backend=BACKENDS[job], is_native=True)


def windows_of(job: PyFlink) -> list[str]:
    return ["tumble"] if job.in_thread else ["tumble", "session"]


def uids_of(job: PyFlink) -> list[str]:
    return [*WITH_KINDS, "timers", *windows_of(job)]


def held_before(uids: list[str]) -> dict[str, dict[int, Any]]:
    """Return the state at a savepoint: of each key came 0 to 3, one second after the other."""
    numbers = [*NUMBERS]
    of_key: dict[str, Any] = {
        uid: {
            "value": sum(numbers),
            "list": [f"n{number}" for number in numbers],
            "map": [["m0", 3], ["m1", 1], ["m2", 2]],  # three names for the numbers
            "maplp": [[number, ["p", number]] for number in numbers],
            "reducing": sum(numbers),
            "aggregating": [sum(numbers), len(numbers)],
        }
        for uid in WITH_KINDS
    }
    of_key["tumble"] = [[0, 1_000_000, numbers]]
    of_key["session"] = [[0, 103_000, numbers]]
    held = {uid: {key: copied(of_key[uid]) for key in KEYS} for uid in uids if uid in of_key}
    if "timers" in uids:
        held["timers"] = {
            key: [[10_000_000 + 1_000 * key + number, 4] for number in numbers] for key in KEYS
        }
    return held


def copied(held: Any) -> Any:
    return json.loads(json.dumps(held))


def like(element: Any, text: str) -> Any:
    """Return an element of a list that was seen when another one was, if its time is known."""
    return element._replace(value=text) if isinstance(element, TtlValue) else text


def test_a_recorded_savepoint() -> None:
    """The truth above is what PyFlink finds in a savepoint that another job of it has left."""
    uids = uids_of(PyFlink("2.3.0"))
    recorded = corpus("pyflink") / "2.3.0-states-s1" / "savepoint"
    assert PyFlink("2.3.0").restored_state(recorded, uids) == held_before(uids)


def test_as_it_was(job: PyFlink, savepoint: Path, tmp_path: Path) -> None:
    uids = uids_of(job)
    with SavepointWriter.from_existing_savepoint(savepoint, tmp_path / "new"):
        pass
    restored = job.restored_state(tmp_path / "new", uids, backend=BACKENDS[job], parallelism=1)
    assert restored == held_before(uids)


def test_edited(job: PyFlink, savepoint: Path, tmp_path: Path) -> None:
    uids = uids_of(job)
    editor = SavepointWriter.from_existing_savepoint(savepoint, tmp_path / "new", uids=uids)
    with editor:
        for uid in WITH_KINDS:
            operator = editor.operator(uid).as_pyflink(LONG, states_of_each_kind(uid == "ttl"))
            operator.delete_keys([4])
            operator.map_entries("value", lambda entry: entry.value + entry.key)
            operator.map_entries("list", lambda entry: [*entry.value, like(entry.value[0], "é")])
            operator.map_entries("map", lambda entry: entry.value * 10)
            operator.map_entries("maplp", lambda entry: [*entry.value, {"key": entry.key}])
            operator.map_entries("aggregating", lambda entry: (entry.value[0], 5))
        counts = [ValueStateDescriptor("n", LONG), TimerServiceDescriptor()]
        timers = editor.operator("timers").as_pyflink(LONG, counts)
        timers.delete_keys([0])
        timers.map_entries("n", lambda entry: 100 + entry.value)
        for uid in windows_of(job):
            editor.operator(uid).as_pyflink(LONG, []).delete_keys([1, 2])
    expected = held_before(uids)
    for uid in WITH_KINDS:
        del expected[uid][4]
        for key, held in expected[uid].items():
            held["value"] += key
            held["list"].append("é")
            held["map"] = [[name, count * 10] for name, count in held["map"]]
            held["maplp"] = [[n, [*pair, {"key": key}]] for n, pair in held["maplp"]]
            held["aggregating"][1] = 5
    del expected["timers"][0]
    for fired in expected["timers"].values():
        for timer in fired:
            timer[1] = 104
    for uid in windows_of(job):
        del expected[uid][1], expected[uid][2]
    restored = job.restored_state(tmp_path / "new", uids, backend=BACKENDS[job], parallelism=1)
    assert restored == expected


def test_other_keys_and_another_max_parallelism(
    job: PyFlink, savepoint: Path, tmp_path: Path
) -> None:
    """One pass does both, and writes what the other backend restores too."""
    uids = uids_of(job)
    editor = SavepointWriter.from_existing_savepoint(savepoint, tmp_path / "new", uids=uids)
    with editor:
        for uid in uids:
            states = states_of_each_kind(uid == "ttl") if uid in WITH_KINDS else []
            editor.operator(uid).as_pyflink(LONG, states).map_keys(lambda key: 6 - key)
        editor.set_max_parallelism(720, parallelism=3, operators=uids)
    expected = {
        uid: {6 - key: held for key, held in of_keys.items()}
        for uid, of_keys in held_before(uids).items()
    }
    restored = job.restored_state(
        tmp_path / "new",
        uids,
        backend=OTHER[BACKENDS[job]],
        parallelism=3,
        max_parallelism=720,
    )
    assert restored == expected


def expected_windows(job: PyFlink) -> dict[str, dict[int, Any]]:
    """Return the contents with which the windows of `write_windows` fire, behind their place.

    The restored job counts one more element of each key, whose number is 9, to the two that
    windows of a count have: the window after it ends with it. With a slide it is the eighth, and
    the window that the seventh began goes on.
    """
    fired: dict[str, Any] = {
        "tumble": [[0, 1_000_000, [0, 1, 2, 3]]],
        "late": [[-1_000_000, 0, [5]], [0, 1_000_000, [0, 1, 2, 3]]],
        "sums": [[-500_000, 500_000, [6, 4]], [0, 1_000_000, [6, 4]]],
    }
    if not job.in_thread:
        fired["session"] = [[0, 103_000, [0, 1, 2, 3]], [300_000, 400_000, [7]]]
        fired["count"] = [[4, [0, 1, 9]]]
        fired["slides"] = [[2, [4, 5, 6, 9]]]
    return {uid: dict.fromkeys(KEYS, windows) for uid, windows in fired.items()}


def write_windows(writer: SavepointWriter, job: PyFlink) -> None:
    key_type = PYFLINK(LONG, thread_mode=job.in_thread)
    elements = ListStateDescriptor("window-contents", pyflink.TUPLE(STRING, LONG, LONG))
    sums = AggregatingStateDescriptor("window-contents", pyflink.TUPLE(LONG, LONG))
    assigners: dict[str, Any] = {
        "tumble": TumblingEventTimeWindows(1_000_000),
        "late": TumblingEventTimeWindows(1_000_000),
        "sums": SlidingEventTimeWindows(1_000_000, slide=500_000),
        "session": EventTimeSessionWindows(100_000),
        "count": CountWindows(3),
        "slides": CountWindows(4, slide=2),
    }
    for uid, fired in expected_windows(job).items():
        windows = writer.add_window_operator(
            uid,
            key_type,
            assigners[uid],
            sums if uid == "sums" else elements,
            128,
            2,
            5_000 if uid == "late" else 0,
        )
        for key in sorted(KEYS, key=windows.key_group):
            for *place, held in fired[key]:
                contents: Any = [(uid, key, number) for number in held if number != 9]
                window = TimeWindow(*place) if len(place) == 2 else CountWindow(*place)
                windows.write(key, window, tuple(held) if uid == "sums" else contents)
            if uid == "slides":
                windows.write(key, CountWindow(3), [(uid, key, 6)])


def test_from_nothing(job: PyFlink, tmp_path: Path) -> None:
    expected = held_before([*WITH_KINDS, "timers"])
    key_type = PYFLINK(LONG, thread_mode=job.in_thread)
    now = round(time.time() * 1_000)
    with SavepointWriter(tmp_path / "new") as writer:
        for uid in WITH_KINDS:
            states = [*states_of_each_kind(uid == "ttl"), TimerServiceDescriptor()]
            operator = writer.add_operator(uid, key_type, states, 128, 2, sort=True)
            last_access = now if uid == "ttl" else None
            for key, held in expected[uid].items():
                for name in ("value", "list", "reducing"):
                    operator.write(name, key, held[name], last_access=last_access)
                pair = tuple(held["aggregating"])
                operator.write("aggregating", key, pair, last_access=last_access)
                for name in ("map", "maplp"):
                    for user_key, value in held[name]:
                        operator.write(name, key, value, user_key, last_access)
        states = [ValueStateDescriptor("n", LONG), TimerServiceDescriptor()]
        timers = writer.add_operator("timers", key_type, states, 128, 2, sort=True)
        for key, fired in expected["timers"].items():
            timers.write("n", key, fired[0][1])
            for timestamp, _ in fired:
                timers.write_timer(key, timestamp)
        write_windows(writer, job)
    expected |= expected_windows(job)
    restored = job.restored_state(tmp_path / "new", [*expected], backend=BACKENDS[job])
    assert restored == expected


def test_from_spark(job: PyFlink, tmp_path: Path, spark: Any) -> None:
    """The kinds of state that Spark writes; of the two others the job finds nothing."""
    from keygroups.spark import (
        KeyedState,
        ListState,
        MapState,
        ReducingState,
        ValueState,
        write_savepoint,
    )

    expected = held_before(WITH_KINDS)
    held = expected["kinds"][0]
    now = round(time.time() * 1_000)
    df = spark.createDataFrame(
        [(key, held["value"], held["list"], dict(held["map"]), now) for key in KEYS],
        "user long, n long, texts array<string>, counts map<string, long>, seen long",
    )
    states = {
        "value": ValueState("n", LONG),
        "list": ListState("texts", STRING),
        "map": MapState(None, "counts", STRING, LONG),
        "reducing": ReducingState("n", LONG),
    }
    key_type = PYFLINK(LONG, thread_mode=job.in_thread)
    operators = {
        uid: KeyedState(None, "user", key_type, states, "seen" if uid == "ttl" else None)
        for uid in WITH_KINDS
    }
    write_savepoint(df, tmp_path / "new", operators, 128, 2)
    for of_keys in expected.values():
        for state in of_keys.values():
            state |= {"maplp": [], "aggregating": None}
    restored = job.restored_state(tmp_path / "new", WITH_KINDS, backend=OTHER[BACKENDS[job]])
    assert restored == expected
