"""The states of a PyFlink job that has one of each kind, as it declares them."""

from __future__ import annotations

from typing import Any

from keygroups import types as kt
from keygroups.savepoint import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
    pyflink,
)
from keygroups.types import LONG, STRING


def states_of_each_kind(has_ttl: bool = False) -> list[Any]:
    """Return their descriptors, all with a time to live or none."""
    return [
        ValueStateDescriptor("value", LONG, has_ttl=has_ttl),
        ListStateDescriptor("list", STRING, has_ttl=has_ttl),
        MapStateDescriptor("map", STRING, LONG, has_ttl=has_ttl),
        MapStateDescriptor("maplp", LONG, pyflink.PICKLED, has_ttl=has_ttl),
        ReducingStateDescriptor("reducing", LONG, has_ttl=has_ttl),
        AggregatingStateDescriptor("aggregating", kt.TUPLE(LONG, LONG), has_ttl=has_ttl),
    ]
