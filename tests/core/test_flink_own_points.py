"""Savepoints of Flink 1.6 to 2.0 that its maintainers wrote for their own tests, if at hand.

The environment variable KEYGROUPS_FLINK_POINTS names their folder; see `own_points`.
"""

from __future__ import annotations

import pytest
from support.bytes.own_points import (
    OwnPoint,
    own_points,
    problem,
    wrong_entries,
    wrong_operator_state,
)

from keygroups.savepoint import Operator

POINTS = list(own_points())
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not POINTS, reason="no points are at hand")]

NOT_READ = {
    "do not say what the keys are": "the changelog backend, without a materialized part or timers",
    "keyed state of version 5, of Flink 1.6": "keyed state of Flink 1.6",
    "ParameterlessTypeSerializerConfig": "snapshots of Flink 1.6 and 1.7, which 1.17 refuses too",
}
"""What an error says, and why that is not read."""


def has_keyed_state(operator: Operator) -> bool:
    return any(subtask.key_groups for subtask in operator.subtasks)


@pytest.mark.parametrize("point", POINTS, ids=str)
def test_entries(point: OwnPoint) -> None:
    """All of Flink's, and no other; where it is refused the reason is known."""
    entries = point.truth("entries")
    for operator in filter(has_keyed_state, point.read().operators):
        message = problem(lambda operator=operator: [*operator.entries()])
        if message is not None:
            assert any(text in message for text in NOT_READ), message
            continue
        assert wrong_entries(entries[operator.operator_id], operator) == []


@pytest.mark.parametrize("point", POINTS, ids=str)
def test_operator_state(point: OwnPoint) -> None:
    states = point.truth("operator_state")
    for operator in point.read().operators:
        assert wrong_operator_state(states[operator.operator_id], operator) == []


@pytest.mark.parametrize("point", POINTS, ids=str)
def test_summaries(point: OwnPoint) -> None:
    """What is said of a savepoint as a whole is said of each."""
    savepoint = point.read()
    assert len(str(savepoint).splitlines()) >= len(savepoint.operators)
    for operator in filter(has_keyed_state, savepoint.operators):
        if problem(lambda operator=operator: [*operator.entries()]) is None:
            entries = {entry.key_group for entry in operator.entries()}
            weights = operator.key_group_bytes().weights
            assert {number for number, weight in enumerate(weights) if weight} == entries
