"""The states that go with timers: those of windows, and the buffers of interval joins."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from keygroups.savepoint._state.header import StateDescriptor

CONTENTS, MERGING = "window-contents", "merging-window-set"  # Flink: WindowOperator
TIMERS = "PRIORITY_QUEUE"  # the kind of their states
_TIMED = ("TIME_WINDOW", "LONG")
"""Namespaces of which each has a timer, or another one of the key: windows, and SQL's slices."""
_BUFFERS = ("LEFT_BUFFER", "RIGHT_BUFFER")  # Flink: IntervalJoinOperator
_CLEANUP = "_timer_state/event_CLEANUP_TIMER"


class Role(IntEnum):
    """The role of an entry towards the timers that it goes with."""

    OTHER = 0
    CONTENTS = 1
    TIMER = 2
    MERGED = 3
    HELD = 4
    NEEDS_TIMER = 5
    ANY_TIMER = 6


def roles_of(states: Sequence[StateDescriptor]) -> list[Role]:
    """Return the role that the entries of each state of an operator have.

    In a window operator of a stream each window is CONTENTS, and its timers are TIMER; of a set of
    merging windows each pair is a window, MERGED, and the one that has its contents, HELD. Where
    it is not known which timer a state has, as of SQL's slices, a key that NEEDS_TIMER has some.
    """
    names = {state.name: state.namespace_serializer.name for state in states}
    is_of_windows = names.get(CONTENTS) == _TIMED[0]
    return [_role(state, is_of_windows) for state in states]


def is_merging_set(state: StateDescriptor) -> bool:
    """Return whether a state is the set of merging windows, whose elements are pairs of them.

    A job may have a state of its own of that name, and windows of its own.
    """
    pair = state.value_serializer
    return (
        (state.name, state.kind, state.has_ttl) == (MERGING, "LIST", False)
        and pair is not None
        and pair.name == "TUPLE"
        and [part.name for part in pair.parts] == [_TIMED[0]] * 2
    )


def _role(state: StateDescriptor, is_of_windows: bool) -> Role:
    is_timer = state.kind == TIMERS
    if state.name in _BUFFERS or state.name == _CLEANUP:
        return Role.ANY_TIMER if is_timer else Role.NEEDS_TIMER
    if state.namespace_serializer.name not in _TIMED:
        return Role.OTHER
    if not is_of_windows:
        return Role.ANY_TIMER if is_timer else Role.NEEDS_TIMER
    if is_timer:
        return Role.TIMER
    return Role.CONTENTS if state.name == CONTENTS else Role.OTHER


def states_without_timers(states: Sequence[StateDescriptor]) -> list[str]:
    """Return the names of states that go with timers, where the operator has no such timers."""
    roles = roles_of(states)
    for needs, timer in ((Role.CONTENTS, Role.TIMER), (Role.NEEDS_TIMER, Role.ANY_TIMER)):
        if needs in roles and timer not in roles:
            return [state.name for state, role in zip(states, roles) if role == needs]
    return []
