"""The version of Kryo of new states: Flink reads all of a savepoint by one."""

from __future__ import annotations

from collections.abc import Iterable

from keygroups._checks import show
from keygroups._serializers.jvm.kryo import check_kryo_version, kryo_versions
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.writing.operator_state_writer import NewOperatorState

_States = Iterable[StateDescriptor | NewOperatorState]


def kryo_version_of_states(states: _States, before: int | None, known: int | None) -> int | None:
    """Return the version of Kryo of states, None where it writes no value of theirs.

    `before` is that of the states before them, `known` that of the savepoint if it is known.
    Raises InvalidValueError where they are of several, or of another than is known.
    """
    version = before
    for state in states:
        for found in kryo_versions((*vars(state).values(),)):
            version = version or known or found
        if version is not None:
            check_kryo_of_states([state], version)
    return version


def check_kryo_of_states(states: _States, version: int, label: str = "") -> None:
    """Raise InvalidValueError for values of another Kryo, with a label before the state's name."""
    for state in states:
        name = f"{label}state {show(state.name)}"
        check_kryo_version(name, (*vars(state).values(),), version)
