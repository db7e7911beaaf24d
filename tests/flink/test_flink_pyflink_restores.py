"""Savepoints of PyFlink as they were, edited, re-keyed and from nothing, restored by PyFlink.

A job of PyFlink 2.3.0 says what its state has; `.ci/run pyflink` makes the Python that runs it.
What the savepoint has is in the truth that the job before it left, in `tests/vectors`.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from support.bytes.real_savepoints import corpus
from support.flink.pyflink_jobs import PYTHON, restored_state

from keygroups.savepoint import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    SavepointWriter,
    TimerServiceDescriptor,
    TtlValue,
    ValueStateDescriptor,
    pyflink,
)
from keygroups.types import LONG, PYFLINK, STRING

pytestmark = [
    pytest.mark.flink,
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="`.ci/run pyflink` makes PyFlink's Python"),
]

POINT = corpus("pyflink") / "2.3.0-states-s1"
WINDOWS = ["tumble", "session"]
ALL = ["kinds", "ttl", "timers", *WINDOWS]


def kinds(has_ttl: bool = False) -> list[Any]:
    return [
        ValueStateDescriptor("value", LONG, has_ttl=has_ttl),
        ListStateDescriptor("list", STRING, has_ttl=has_ttl),
        MapStateDescriptor("map", STRING, LONG, has_ttl=has_ttl),
        MapStateDescriptor("maplp", LONG, pyflink.PICKLED, has_ttl=has_ttl),
        ReducingStateDescriptor("reducing", LONG, has_ttl=has_ttl),
        AggregatingStateDescriptor("aggregating", pyflink.TUPLE(LONG, LONG), has_ttl=has_ttl),
    ]


def held_before() -> dict[str, dict[int, Any]]:
    """Return the state of the job at the savepoint, which follows from its last elements.

    Of each key it saw the numbers 0 to 3; a timer or window was set for each key too.
    """
    truth = json.loads((POINT / "truth.json").read_text("utf-8"))
    before: dict[str, dict[int, Any]] = {}
    for uid in ("kinds", "ttl"):
        last = {line[1]: line[2:] for line in truth["seen"] if line[0] == uid}
        assert {number for _, number in last.values()} == {3}
        before[uid] = {
            key: {
                "value": held["value"] + 3,
                "list": [*held["list"], "n3"],
                "map": sorted({**held["map"], "m0": 3}.items()),
                "maplp": sorted({3: ("p", 3), **pairs_of(held["maplp"])}.items()),
                "reducing": held["reducing"] + 3,
                "aggregating": (sum(range(4)), 4),
            }
            for key, (held, _) in last.items()
        }
    keys = range(5)
    before["timers"] = {key: [[10_000_000 + 1_000 * key + n, 4] for n in range(4)] for key in keys}
    before["tumble"] = {key: [[0, 1_000_000, [0, 1, 2, 3]]] for key in keys}
    before["session"] = {key: [[0, 103_000, [0, 1, 2, 3]]] for key in keys}
    plain: dict[str, dict[int, Any]] = as_json(before)
    return plain


def pairs_of(held: dict[str, Any]) -> dict[int, Any]:
    return {int(number): pair for number, pair in held.items()}


def as_json(held: dict[str, dict[int, Any]]) -> Any:
    """Return the lists that JSON makes of tuples, by the keys that JSON has as texts."""
    return {
        uid: {int(key): value for key, value in json.loads(json.dumps(of_keys)).items()}
        for uid, of_keys in held.items()
    }


def like(element: Any, text: str) -> Any:
    """Return an element of a list that was seen when another one was, if its time is known."""
    return element._replace(value=text) if isinstance(element, TtlValue) else text


def test_as_it_was() -> None:
    """The truth above is what PyFlink itself finds."""
    assert restored_state(POINT / "savepoint", ALL) == held_before()


def test_edited(tmp_path: Path) -> None:
    with SavepointWriter.from_existing_savepoint(POINT / "savepoint", tmp_path / "new") as editor:
        for uid in ("kinds", "ttl"):
            operator = editor.operator(uid).as_pyflink(LONG, kinds(uid == "ttl"))
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
        for uid in WINDOWS:
            editor.operator(uid).as_pyflink(LONG, []).delete_keys([1, 2])
    expected = held_before()
    for uid in ("kinds", "ttl"):
        del expected[uid][4]
        for key, held in expected[uid].items():
            held["value"] += key
            held["list"].append("é")
            held["map"] = [[name, count * 10] for name, count in held["map"]]
            held["maplp"] = [[n, [*pair, {"key": key}]] for n, pair in held["maplp"]]
            held["aggregating"][1] = 5
    del expected["timers"][0]
    expected["timers"] = {
        key: [[timestamp, 104] for timestamp, _ in fired]
        for key, fired in expected["timers"].items()
    }
    for uid in WINDOWS:
        del expected[uid][1], expected[uid][2]
    assert restored_state(tmp_path / "new", ALL, parallelism=1) == expected


def test_other_keys_and_another_max_parallelism(tmp_path: Path) -> None:
    """One pass does both; the job runs on RocksDB then."""
    with SavepointWriter.from_existing_savepoint(POINT / "savepoint", tmp_path / "new") as editor:
        for uid in ALL:
            states = kinds(uid == "ttl") if uid in ("kinds", "ttl") else []
            editor.operator(uid).as_pyflink(LONG, states).map_keys(lambda key: 6 - key)
        editor.set_max_parallelism(720, parallelism=3, operators=ALL)
    expected = {
        uid: {6 - key: held for key, held in of_keys.items()}
        for uid, of_keys in held_before().items()
    }
    on_rocksdb = restored_state(
        tmp_path / "new", ALL, backend="rocksdb", parallelism=3, max_parallelism=720
    )
    assert on_rocksdb == expected


def test_from_nothing(tmp_path: Path) -> None:
    uids = ALL[:3]
    expected = {uid: held for uid, held in held_before().items() if uid in uids}
    now = round(time.time() * 1_000)
    with SavepointWriter(tmp_path / "new") as writer:
        for uid in ("kinds", "ttl"):
            states = [*kinds(uid == "ttl"), TimerServiceDescriptor()]
            operator = writer.add_operator(uid, PYFLINK(LONG), states, 128, 2, sort=True)
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
        timers = writer.add_operator("timers", PYFLINK(LONG), states, 128, 2, sort=True)
        for key, fired in expected["timers"].items():
            timers.write("n", key, fired[0][1])
            for timestamp, _ in fired:
                timers.write_timer(key, timestamp)
    assert restored_state(tmp_path / "new", uids, parallelism=1) == expected
