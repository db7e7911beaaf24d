"""Entries of all kinds of state, of windows and timers too, have the bytes that Flink wrote."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from support.bytes.framed_entries import framed_entries
from support.bytes.job_points import JOB_POINTS, JobPoint
from support.bytes.real_savepoints import POINTS, Point, point
from support.inside.savepoints import EncodedEntry, EntryEncoder

from keygroups.errors import InvalidTypeError, InvalidValueError, UnsupportedKeyTypeError
from keygroups.savepoint import Serializer, StateDescriptor
from keygroups.state_keys import TIME_WINDOW, VOID_NAMESPACE, serializer_of
from keygroups.types import SET, STRING

CANONICAL: list[Point] = [one for one in POINTS if one.kind == "canonical"]
OF_JOBS: list[JobPoint] = [one for one in JOB_POINTS if one.kind == "canonical"]


def encoded(one: Point) -> Counter[str]:
    """Compare the bytes of each entry of a point; return how many, by kind and namespace."""
    counts: Counter[str] = Counter()
    for operator in one.read().operators:
        for task in operator.tasks():
            states = list(task.format.states())
            numbers = {state.name: number for number, state in enumerate(states)}
            try:
                encoder = EntryEncoder(states, operator.max_parallelism, True)
            except UnsupportedKeyTypeError:
                counts["keys that only the job writes"] += 1
                continue
            for entry, framed in zip(task.entries(), framed_entries(task), strict=True):
                number = numbers[entry.state]
                namespace = states[number].namespace_serializer.name
                name = entry.kind if namespace == "VOID_NAMESPACE" else f"{entry.kind} {namespace}"
                try:
                    written = encoder.encode(
                        number,
                        entry.key,
                        entry.value,
                        entry.user_key,
                        entry.last_access,
                        entry.namespace,
                        entry.timestamp,
                    )
                except UnsupportedKeyTypeError:
                    counts[f"{name} that only the job writes"] += 1
                    continue
                except InvalidValueError:
                    assert entry.value is None
                    counts[f"{name} of None"] += 1
                    continue
                value = framed.encoded_value
                if entry.kind == "MAP" and value[:1] == b"\1":
                    value = value[:1]  # the hashmap backend writes more after a null
                place = (framed.key_group, number, framed.encoded_key)
                assert written == EncodedEntry(*place, value), (one, entry)
                counts[name] += 1
    return counts


QUICK = ["2.3.0-rocks-canonical", "1.20.5-extrarocks-canonical"]


def test_entries_of_some_points() -> None:
    """Of windows, timers and String namespaces too; a null in a MAP of Longs is refused."""
    counts = sum((encoded(point(name)) for name in QUICK), Counter())
    assert counts == {
        **{"VALUE": 490, "LIST": 225, "MAP": 799, "REDUCING": 100, "AGGREGATING": 100},
        **{"LIST TIME_WINDOW": 94, "AGGREGATING TIME_WINDOW": 95},
        **{"REDUCING GLOBAL_WINDOW": 20, "AGGREGATING GLOBAL_WINDOW": 20},
        **{"VALUE STRING": 37, "LIST STRING": 36, "MAP STRING": 39, "MAP of None": 18},
        **{"PRIORITY_QUEUE": 151, "PRIORITY_QUEUE TIME_WINDOW": 189},
    }


@pytest.mark.slow
def test_entries_of_all_points() -> None:
    counts = sum(map(encoded, CANONICAL), Counter())
    assert counts == {
        **{"VALUE": 10_231, "LIST": 4730, "MAP": 17_369, "REDUCING": 2135, "AGGREGATING": 2025},
        **{"LIST TIME_WINDOW": 1790, "AGGREGATING TIME_WINDOW": 1808},
        **{"REDUCING GLOBAL_WINDOW": 80, "AGGREGATING GLOBAL_WINDOW": 80},
        **{"VALUE STRING": 152, "LIST STRING": 150, "MAP STRING": 156, "MAP of None": 36},
        **{"PRIORITY_QUEUE": 7727, "PRIORITY_QUEUE TIME_WINDOW": 3598},
        "keys that only the job writes": 6,
    }


@pytest.mark.slow
def test_entries_of_jobs() -> None:
    counts = sum(map(encoded, OF_JOBS), Counter())
    assert counts == {
        **{"VALUE": 3507, "LIST": 291, "MAP": 4946, "REDUCING": 216, "AGGREGATING": 108},
        **{"VALUE TIME_WINDOW": 90, "LIST TIME_WINDOW": 216, "MAP TIME_WINDOW": 30},
        **{"REDUCING TIME_WINDOW": 324, "AGGREGATING TIME_WINDOW": 54},
        **{"LIST GLOBAL_WINDOW": 48, "REDUCING GLOBAL_WINDOW": 30},
        **{"VALUE LONG": 132, "LIST LONG": 48, "MAP LONG": 135},
        **{"PRIORITY_QUEUE": 1376, "PRIORITY_QUEUE TIME_WINDOW": 669},
        **{"PRIORITY_QUEUE STRING": 219, "PRIORITY_QUEUE LONG": 120},
        **{"VALUE that only the job writes": 348, "VALUE of None": 12},
        "keys that only the job writes": 12,
    }


def described(namespace: Serializer, user_key: Serializer | None) -> StateDescriptor:
    kind = "VALUE" if user_key is None else "MAP"
    return StateDescriptor("s", kind, STRINGS, namespace, STRINGS, user_key)


STRINGS = serializer_of(STRING)
SETS = serializer_of(SET(STRING))


@pytest.mark.parametrize(
    ("state", "passed", "error", "message"),
    [
        (
            described(SETS, None),
            {"namespace": {"a"}},
            UnsupportedKeyTypeError,
            "namespace of VALUE state 's' cannot be written: RocksDB finds a SET",
        ),
        (
            described(VOID_NAMESPACE, SETS),
            {"user_key": {"a"}},
            UnsupportedKeyTypeError,
            "user key of MAP state 's' cannot be written: RocksDB finds a SET",
        ),
        (
            described(VOID_NAMESPACE, None),
            {"namespace": "a"},
            InvalidValueError,
            "namespace must be None in the VALUE state 's', got 'a'",
        ),
        (
            described(TIME_WINDOW, None),
            {},
            InvalidValueError,
            "namespace of VALUE state 's': a TIME_WINDOW must not be None",
        ),
        (
            described(TIME_WINDOW, None),
            {"namespace": (0, 5)},
            InvalidTypeError,
            r"namespace of VALUE state 's': TIME_WINDOW must be a TimeWindow, got \(0, 5\)",
        ),
        *(
            (
                described(VOID_NAMESPACE, user_key),
                {"timestamp": 5, "user_key": None if user_key is None else "a"},
                InvalidValueError,
                "timestamp must be None in the .* state 's', got 5",
            )
            for user_key in (None, STRINGS)
        ),
        *(
            (
                StateDescriptor("t", "PRIORITY_QUEUE", STRINGS, VOID_NAMESPACE, None),
                {"timestamp": 5, "value": None, argument: "a"},
                InvalidValueError,
                f"{argument} must be None in the timers 't', got 'a'",
            )
            for argument in ("user_key", "value", "last_access")
        ),
    ],
)
def test_what_is_no_entry(
    state: StateDescriptor, passed: dict[str, Any], error: type[Exception], message: str
) -> None:
    encoder = EntryEncoder([state], 128)
    with pytest.raises(error, match=message):
        encoder.encode(0, "a", **{"value": "b", **passed})
