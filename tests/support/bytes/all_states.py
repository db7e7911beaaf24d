"""A savepoint with states of all kinds, of as many keys as one likes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from keygroups.savepoint import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    SavepointWriter,
    TimerServiceDescriptor,
    ValueStateDescriptor,
)
from keygroups.types import DOUBLE, LONG, STRING, KeyType

TIME = 1_700_000_000_000


def write_all(folder: Path, key_type: KeyType, groups: int, keys: list[Any]) -> None:
    """Write a savepoint with states of all kinds."""
    states = [
        ValueStateDescriptor("count", LONG),
        ListStateDescriptor("tags", STRING, has_ttl=True),
        MapStateDescriptor("cities", STRING, STRING),
        TimerServiceDescriptor("timers"),
    ]
    with SavepointWriter(folder) as writer:
        operator = writer.add_operator("by-key", key_type, states, groups, 3, sort=True)
        for number, key in enumerate(keys):
            operator.write("count", key, number)
            operator.write("tags", key, ["x", ""], last_access=TIME)
            for city in range(number % 3):
                operator.write("cities", key, None if city else str(number), f"city {city}")
            operator.write_timer(key, number, service="timers")


def write_timed(folder: Path) -> None:
    """Write states of all kinds with and without a time to live, nulls in the maps."""
    states = [
        ValueStateDescriptor("count", LONG),
        ValueStateDescriptor("number", LONG, has_ttl=True),
        ListStateDescriptor("plain", STRING),
        ListStateDescriptor("tags", STRING, has_ttl=True),
        MapStateDescriptor("cities", STRING, STRING),
        MapStateDescriptor("names", STRING, STRING, has_ttl=True),
        MapStateDescriptor("longs", STRING, LONG, has_ttl=True),
        ReducingStateDescriptor("mean", DOUBLE),
    ]
    with SavepointWriter(folder) as writer:
        operator = writer.add_operator("by-key", LONG, states, 128, 3, sort=True)
        for key in range(40):
            operator.write("count", key, key)
            operator.write("number", key, key, last_access=TIME + key)
            operator.write("plain", key, ["x"] * (key % 3 + 1))
            operator.write("tags", key, ["x", "a,b"], last_access=TIME)
            operator.write("cities", key, None if key % 3 else "", "a")
            operator.write("names", key, None if key % 5 else "a" * key, "b", last_access=TIME)
            operator.write("longs", key, key, "c", last_access=TIME)
            operator.write("mean", key, key / 3)
