"""The states of aggregates in Python, in SQL's operators: what they are, and their values.

The savepoints are those of `sql-` in `tests/vectors/pyflink.tar.xz`. Their jobs count from 0; the
key of a number is by its remainder of 7, and what is left to count stands in the source's state.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.bytes.real_savepoints import corpus

from keygroups.savepoint import (
    ListStateDescriptor,
    MapStateDescriptor,
    Operator,
    ValueStateDescriptor,
    describe_sql_state,
    read_savepoint,
)
from keygroups.savepoint.pyflink import PICKLED
from keygroups.types import LONG, SQL_ROW

END = 3_000  # the last number that the jobs would count
KINDS = {
    "pandas-window": "PythonGroupWindowAggregate",
    "pandas-over": "PythonOverAggregate",
    "table-aggregate": "PythonGroupTableAggregate",
    "distinct": "PythonGroupAggregate",
    "session-udaf": "PythonGroupWindowAggregate",
}


def read(name: str) -> tuple[Operator, dict[str, list[int]], str]:
    """Return the operator of the aggregates, the numbers that it has seen by key, and the plan."""
    folder = corpus("pyflink") / f"2.3.0-sql-{name}"
    operators = read_savepoint(folder / "savepoint").operators
    [operator] = [one for one in operators if one.states]
    to_come = {
        number
        for one in operators
        for entry in one.operator_state()
        if entry.state == "f-sequence-state"
        for number in entry.elements
    }
    seen: dict[str, list[int]] = {}
    for number in range(END + 1):
        if number not in to_come:
            seen.setdefault(f"user-{number % 7}", []).append(number)
    assert len(to_come) < END
    return operator, seen, json.loads((folder / "truth.json").read_text("utf-8"))["plan"]


@pytest.mark.parametrize("name", KINDS)
def test_what_the_states_are(name: str) -> None:
    operator, _, plan = read(name)
    described = describe_sql_state(operator, plan)
    assert described.kinds == (KINDS[name],)
    assert described.key_columns == ("k",)
    assert len(described.nodes) == 1
    assert "not known" not in str(described)


def test_columns_of_the_rows() -> None:
    for name, state, columns in (
        ("pandas-window", "window-input", ("f", "k", "n", "ts", "pt")),
        ("pandas-over", "inputState", ("k", "n", "ts")),
    ):
        operator, _, plan = read(name)
        [rows] = [one for one in describe_sql_state(operator, plan).states if one.state == state]
        assert rows.value_columns == columns


@pytest.mark.parametrize(
    ("name", "state", "column"),
    [("pandas-window", "window-input", 2), ("pandas-over", "inputState", 1)],
)
def test_rows_of_pandas_aggregates(name: str, state: str, column: int) -> None:
    operator, seen, _ = read(name)
    held: dict[str, list[int]] = {}
    for entry in operator.entries([state]):
        held.setdefault(entry.key[0], []).extend(row[column] for row in entry.value)
    if name == "pandas-over":
        seen["user-0"].remove(0)  # At the epoch itself: PyFlink takes it for late, and drops it.
    assert {key: sorted(numbers) for key, numbers in held.items()} == seen


def of_python(name: str, *states: Any) -> tuple[Operator, dict[str, list[int]]]:
    operator, seen, _ = read(name)
    return operator.as_pyflink(SQL_ROW("STRING"), states), seen


def values(operator: Operator, state: str) -> dict[str, Any]:
    return {entry.key[0]: entry.value for entry in operator.entries([state])}


def sorted_views(operator: Operator) -> dict[str, list[int]]:
    """Return the elements of the ListView of each key, which two subtasks of a source sent."""
    return {key: sorted(held) for key, held in values(operator, "agg0$f0").items()}


def test_accumulators_of_a_table_aggregate() -> None:
    """Its function keeps the two greatest numbers, greatest first."""
    operator, seen = of_python("table-aggregate", ValueStateDescriptor("accumulators", PICKLED))
    assert values(operator, "accumulators") == {
        key: [[numbers[-1], numbers[-2]]] for key, numbers in seen.items()
    }


def test_distinct_values_and_views() -> None:
    operator, seen = of_python(
        "distinct",
        ValueStateDescriptor("accumulators", PICKLED),
        MapStateDescriptor("agg0distinct", PICKLED, PICKLED),
        ListStateDescriptor("agg0$f0", LONG),
    )
    assert sorted_views(operator) == seen
    distinct: dict[str, dict[Any, int]] = {}
    for entry in operator.entries(["agg0distinct"]):
        distinct.setdefault(entry.key[0], {})[entry.user_key] = entry.value
    assert distinct == {key: {(number,): 1 for number in seen[key]} for key in seen}
    counts = {key: held[0][1] for key, held in values(operator, "accumulators").items()}
    assert counts == {key: len(numbers) for key, numbers in seen.items()}


def test_views_of_sessions() -> None:
    operator, seen = of_python(
        "session-udaf",
        ValueStateDescriptor("window_state", PICKLED),
        ListStateDescriptor("agg0$f0", LONG),
    )
    assert sorted_views(operator) == seen
    [*sessions] = operator.entries(["python-state-session-window-mapping"])
    assert {entry.key[0] for entry in sessions} == {*seen}
