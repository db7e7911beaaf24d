"""A savepoint with states of all kinds, of as many keys as one likes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from keygroups.savepoint import (
    ListStateDescriptor,
    MapStateDescriptor,
    SavepointWriter,
    TimerServiceDescriptor,
    ValueStateDescriptor,
)
from keygroups.types import LONG, STRING, KeyType

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
