"""Places that may still hold deleted keys, judged by the types of a savepoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from keygroups._serializers.base import Serializer
from keygroups.errors import SavepointError
from keygroups.savepoint._operator import Operator
from keygroups.savepoint._state.header import StateDescriptor


class UnsearchedPlace(NamedTuple):
    """A `place` of an `operator` that may still hold deleted keys.

    Its type could hold them, and `delete_keys` does not search it.
    """

    operator: str
    place: str


class KeptOperator(NamedTuple):
    """An operator of the new savepoint, and a function that returns its states there.

    `is_searched` says whether the keys are deleted from its keyed state, and never made anew.
    """

    operator: Operator
    states: Callable[[], Iterable[StateDescriptor]]
    is_searched: bool


def key_traces(key: Serializer, operators: Iterable[KeptOperator]) -> Iterator[UnsearchedPlace]:
    """Yield the places of operators that may hold keys which were deleted from one of them.

    `key` is the serializer of those keys.
    """
    leaves = frozenset(_leaves(key))
    for operator, states_of, is_searched in operators:
        try:
            kept = [*states_of()]
        except SavepointError:
            yield UnsearchedPlace(operator.label, "keyed state, whose types cannot be read")
        else:
            may_hold = (_may_hold(state.key_serializer, leaves) for state in kept)
            if not is_searched and any(may_hold):
                yield UnsearchedPlace(operator.label, "keys")
            for state in kept:
                yield from _traces_in(state, operator.label, leaves)
        yield from _other_traces(operator)


def _traces_in(
    state: StateDescriptor, label: str, leaves: frozenset[str]
) -> Iterator[UnsearchedPlace]:
    for name, serializer in (
        ("namespaces", state.namespace_serializer),
        ("user keys", state.user_key_serializer),
        ("values", state.value_serializer),
    ):
        if serializer is not None and _may_hold(serializer, leaves):
            yield UnsearchedPlace(label, f"{name} of the state {state.name!r}")


def _other_traces(operator: Operator) -> Iterator[UnsearchedPlace]:
    """Yield the operator states and the in-flight data of an operator, whatever their types."""
    names = dict.fromkeys(
        name
        for subtask in operator._subtasks
        for handle in (subtask.managed_operator, subtask.raw_operator)
        if handle is not None
        for name, _, offsets in handle.states
        if offsets
    )
    for name in names:
        yield UnsearchedPlace(operator.label, f"operator state {name!r}")
    if operator.in_flight_data:
        yield UnsearchedPlace(operator.label, "in-flight data of an unaligned checkpoint")


def _leaves(serializer: Serializer) -> Iterator[str]:
    yield serializer.name
    for inner in serializer.parts:
        yield from _leaves(inner)


def _may_hold(serializer: Serializer, leaves: frozenset[str]) -> bool:
    """Tell whether values of a serializer may hold a key that is made of types named `leaves`.

    Whatever has no fixed size (text, bytes, an object of the job's classes) may hold any key.
    """
    if serializer.parts and not serializer.java_class:
        return any(_may_hold(inner, leaves) for inner in serializer.parts)
    return serializer.size is None or serializer.name in leaves
