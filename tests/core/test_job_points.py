"""Savepoints of jobs as production has them, 135: what is read equals what Flink's classes read.

POJOs, decimals, dates and collections, windows and joins, CEP, SQL of all kinds. Every value of
the expected side is in `tests/vectors/jobs.tar.xz`. `pytest -rP` shows the counts.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from support.bytes.job_points import (
    JOB_POINTS,
    NEEDS_THE_JOB,
    JobPoint,
    differing,
    job_point,
    true_entries,
)

from keygroups import assign_to_key_group
from keygroups.errors import SavepointError
from keygroups.savepoint import Operator, StateDescriptor

cramjam = pytest.importorskip("cramjam", reason="some points are compressed: the extra savepoint")

QUICK = [
    "2.3.0-wincep-hashmap-canonical",
    "1.20.5-sqlup-rocksdb-canonical",
    "2.3.0-sqltjoin-rocksdb-native",
    "2.3.0-winjoin-hashmap-checkpoint",
]
NAMES = [
    pytest.param(one.name, marks=[] if one.name in QUICK else pytest.mark.slow)
    for one in JOB_POINTS
]


def test_these_are_all() -> None:
    kinds = Counter(one.kind for one in JOB_POINTS)
    assert kinds == {"canonical": 45, "native": 45, "checkpoint": 45}
    assert Counter(one.flink for one in JOB_POINTS) == {"1.20.5": 45, "2.3.0": 90}
    operators = {
        (one.flink, one.job, operator) for one in JOB_POINTS for operator in one.operators
    }
    assert len(operators) == 207


@pytest.mark.parametrize("name", NAMES)
def test_states(name: str) -> None:
    """The states in the headers of all subtasks."""
    one = job_point(name)
    expected: dict[str, dict[str, tuple[object, ...]]] = {}
    for line in sorted(one.truth("states"), key=lambda line: int(line["subtask"])):
        states = expected.setdefault(line["operator"], {})
        for state in line["states"]:
            states.setdefault(state["state"], true_state(state))
    for operator in one.read().operators:
        states = expected.pop(operator.operator_id, {})
        assert [*map(seen_state, operator.states)] == [*states.values()]
    assert not expected


def seen_state(state: StateDescriptor) -> tuple[object, ...]:
    if state.value_serializer is None:
        return state.name, state.kind, False
    return state.name, state.kind, state.has_ttl


def true_state(line: dict[str, Any]) -> tuple[object, ...]:
    return (
        line["state"],
        line["options"].get("KEYED_STATE_TYPE", line["backend_type"]),
        "TtlSerializer" in line["serializers"]["VALUE_SERIALIZER"],
    )


def is_refused(one: JobPoint, operator: Operator) -> bool:
    """Whether entries cannot be told from each other: no values that need the job have lengths."""
    states = {state.name for state in operator.states}
    return (
        one.backend == "hashmap"
        and one.kind != "canonical"
        and any((one.flink, state) in NEEDS_THE_JOB for state in states)
    )


@pytest.mark.parametrize("name", NAMES)
def test_entries(name: str) -> None:
    """Each entry in all its fields, and no entry besides."""
    one = job_point(name)
    expected = true_entries(one.entries)
    operators = {operator.operator_id: operator for operator in one.read().operators}
    for operator_id, vertex in one.operators.items():
        operator = operators[operator_id]
        if is_refused(one, operator):
            with pytest.raises(SavepointError, match="takes the job's own classes to read"):
                list(operator.entries())
            continue
        wrong = differing(one, operator, operator.entries(), expected.get(operator_id, []))
        assert not wrong, (vertex, len(wrong), wrong[0])
    print(f"{one}: {sum(map(len, expected.values())):,} entries")


@pytest.mark.parametrize("name", NAMES)
def test_key_groups(name: str) -> None:
    """For each key with a key type, the key group it was stored in is the one we compute."""
    one = job_point(name)
    for operator in one.read().operators:
        if is_refused(one, operator):
            continue
        key_types = {state.name: state.key_type for state in operator.states}
        for entry in operator.entries():
            key_type = key_types[entry.state]
            if key_type is not None:
                computed = assign_to_key_group(entry.key, operator.max_parallelism, key_type)
                assert computed == entry.key_group, (operator, entry)
