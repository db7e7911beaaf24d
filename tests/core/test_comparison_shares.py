"""An operator of two savepoints compared in shares: together they find what the whole does.

That what the whole finds is right is for test_compare.py.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from support.bytes.real_savepoints import point

from keygroups import InvalidTypeError
from keygroups.savepoint import (
    EntryDifference,
    MapStateDescriptor,
    Savepoint,
    SavepointWriter,
    StateEntry,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.savepoint._comparison.shares import ComparisonTask, _shares, comparison_tasks
from keygroups.types import DOUBLE, INT, LONG, STRING

HEAP = point("2.3.0-heap-canonical")


@pytest.mark.parametrize(
    ("weights", "most", "shares"),
    [
        ([4, 4, 1], 3, [0, 0, 1]),  # of 8 bytes, which two have
        ([9, 1, 9, 9], 4, [0, 1, 2, 3]),  # what has more is alone
        ([0, 0, 0, 0, 0], 2, [0, 0, 1, 1, 2]),
    ],
)
def test_what_a_share_has(weights: list[int], most: int, shares: list[int]) -> None:
    counted = Counter(dict(enumerate(weights)))
    assert _shares(len(weights), counted, 8, most) == shares


def tasks_of(
    old: Savepoint, new: Savepoint, operator_id: str, states: frozenset[str] | None, size: int
) -> list[ComparisonTask]:
    """Return the tasks as another process gets them."""
    here, there = (
        next((of for of in side.operators if of.operator_id == operator_id), None)
        for side in (old, new)
    )
    tasks: list[ComparisonTask] = pickle.loads(
        pickle.dumps(comparison_tasks(here, there, states, size))
    )
    return tasks


def of_keyed_state(differences: Any) -> list[EntryDifference]:
    return [of for of in differences if isinstance(of.here or of.there, StateEntry)]


def written(
    path: Path, parallelism: int, groups: int, entries: Iterable[tuple[float, float]]
) -> Savepoint:
    with SavepointWriter(path) as writer:
        states = [ValueStateDescriptor("sum", DOUBLE), MapStateDescriptor("map", INT, LONG)]
        operator = writer.add_operator("op", DOUBLE, states, groups, parallelism, sort=True)
        for key, value in entries:
            operator.write("sum", key, value)
            operator.write("map", key, 5, 7)
    return read_savepoint(path)


@pytest.mark.parametrize(
    ("groups", "size", "least", "most"),
    [
        *((128, 1, 90, 128), (128, 5_000, 3, 20), (128, 1 << 30, 1, 1)),
        *((96, 1, 31, 32), (256, 5_000, 3, 20), (127, 1, 1, 1)),
    ],
)
def test_shares_find_what_the_whole_does(
    groups: int, size: int, least: int, most: int, tmp_path: Path
) -> None:
    """As many as the divisor of both max parallelisms allows; 0.0 is not -0.0, nor its value."""
    same = [(number / 4, 1.0) for number in range(9, 200)]
    old = written(tmp_path / "old", 3, 128, [*same, (0.0, 0.0), (-0.0, 1.0)])
    changed = [(number / 4, 1.0 if number % 7 else -1.0) for number in range(9, 220)]
    new = written(tmp_path / "new", 5, groups, [*changed, (0.0, -0.0)])
    (operator,) = old.operators
    tasks = tasks_of(old, new, operator.operator_id, None, size)
    assert least <= len(tasks) <= most
    found = [difference for task in tasks for difference in task.differences()]
    assert Counter(map(repr, found)) == Counter(map(repr, old.differences(new)))
    kinds = Counter((of.state, of.kind) for of in found)
    assert kinds == {
        ("sum", "changed"): len(range(14, 200, 7)) + 1,
        **{(state, "only_here"): 1 for state in ("sum", "map")},
        **{(state, "only_there"): 20 for state in ("sum", "map")},
    }


@pytest.mark.parametrize(
    "name",
    [
        "2.3.0-rocks-canonical",
        pytest.param("2.3.0-rocksresc-checkpoint", marks=pytest.mark.slow),
        pytest.param("2.3.0-changelog-checkpoint", marks=pytest.mark.slow),
    ],
)
def test_real_points(name: str) -> None:
    """Each operator of two jobs, in other formats and under other parallelisms."""
    old, new = HEAP.read(), point(name).read()
    count = 0
    for operator_id in {of.operator_id: None for of in (*old.operators, *new.operators)}:
        tasks = tasks_of(old, new, operator_id, None, 10_000)
        found = [difference for task in tasks for difference in task.differences()]
        expected = of_keyed_state(old.differences(new, [operator_id]))
        assert Counter(map(repr, found)) == Counter(map(repr, expected))
        count += len(found)
    assert count > 100


def test_some_states(tmp_path: Path) -> None:
    old = written(tmp_path / "old", 3, 128, [(1.0, 5.0), (2.0, 5.0)])
    new = written(tmp_path / "new", 3, 128, [(1.0, 6.0)])
    operator_id = old.operators[0].operator_id
    tasks = tasks_of(old, new, operator_id, frozenset(["map"]), 1)
    assert [(of.state, of.kind) for task in tasks for of in task.differences()] == [
        ("map", "only_here")
    ]


def test_sizes_that_are_not_known() -> None:
    """Of a changelog: then no task has more key groups than a subtask."""
    operator = point("2.3.0-changelog-checkpoint").read().operator("by-string")
    assert not any(task.bytes for task in operator.tasks())
    tasks = comparison_tasks(operator, operator, None, 1 << 30)
    assert operator.parallelism > 1
    most = operator.max_parallelism // operator.parallelism
    assert len(tasks) == -(-operator.max_parallelism // most)
    assert not [difference for task in tasks for difference in task.differences()]


def test_sizes_that_are_not_known_of_more_subtasks_than_there_are_shares(tmp_path: Path) -> None:
    """128 and 126 have the divisor 2, and three subtasks; a task has one of two remainders."""
    here = point("2.3.0-changelog-checkpoint").read().operator("by-string")
    (there,) = written(tmp_path / "new", 3, 126, [(1.0, 5.0)]).operators
    assert len(comparison_tasks(here, there, None, 1 << 30)) == 2


@pytest.mark.parametrize("is_new", [False, True])
def test_an_operator_that_one_savepoint_has(tmp_path: Path, is_new: bool) -> None:
    (operator,) = written(tmp_path / "a", 3, 128, [(1.0, 5.0), (2.0, 5.0)]).operators
    here, there = (None, operator) if is_new else (operator, None)
    tasks = comparison_tasks(here, there, None, 1)
    found = Counter((of.state, of.kind) for task in tasks for of in task.differences())
    kind = "only_there" if is_new else "only_here"
    assert found == {("sum", kind): 2, ("map", kind): 2}


# --- batches ----------------------------------------------------------------------------


def test_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All differences, with the values of both, in batches of some size."""
    pa = pytest.importorskip("pyarrow")
    from support.inside.columns import difference_columns as differences

    monkeypatch.setattr(differences, "_ROWS", 50)
    old, new = HEAP.read(), point("2.3.0-rocks-canonical").read()
    here, there = (side.operator("by-string") for side in (old, new))
    layout = pickle.loads(pickle.dumps(differences.difference_layout(here.states, there.states)))
    found = of_keyed_state(old.differences(new, ["by-string"]))
    batches = [*layout.batches(found)]
    for batch in batches:
        batch.validate(full=True)
        assert 1 <= len(batch) <= 50
    table = pa.Table.from_batches(batches)
    assert len(table) == len(found)
    rows = [row for row in table.to_pylist() if row["state"] == "count"]
    expected = [of for of in found if of.state == "count"]
    assert len(rows) > 20

    def value(column: Any) -> Any:
        return column["count"] if isinstance(column, dict) else column

    of_columns = [
        (
            row["key_group"],
            row["key"],
            row["kind"],
            *map(value, (row["old_value"], row["new_value"])),
        )
        for row in rows
    ]
    of_entries = []
    for of in expected:
        entry: Any = of.here or of.there
        sides: list[Any] = [of.here, of.there]
        values = [side and side.value for side in sides]
        of_entries.append((entry.key_group, entry.key, of.kind, *values))
    assert sorted(of_columns, key=repr) == sorted(of_entries, key=repr)


@pytest.mark.parametrize("is_new", [False, True])
def test_batches_of_a_state_that_one_savepoint_has(tmp_path: Path, is_new: bool) -> None:
    pytest.importorskip("pyarrow")
    from support.inside.columns import difference_layout

    written(tmp_path / "one", 3, 128, [(0.5, 1.0)])
    with SavepointWriter(tmp_path / "other") as writer:
        writer.add_operator("op", DOUBLE, [ValueStateDescriptor("other", DOUBLE)], 128, 3)
    names = ("other", "one") if is_new else ("one", "other")
    old, new = (read_savepoint(tmp_path / name) for name in names)
    (here,), (there,) = old.operators, new.operators
    layout = difference_layout(here.states, there.states)
    found = of_keyed_state(old.differences(new))
    rows = [row for batch in layout.batches(found) for row in batch.to_pylist()]
    assert {row["kind"] for row in rows} == {"only_there" if is_new else "only_here"}
    (row,) = (row for row in rows if row["state"] == "sum")
    given, other = ("new", "old") if is_new else ("old", "new")
    assert (row["key"], row[f"{other}_value"]) == (0.5, None)
    assert 1.0 in (row[f"{given}_value"], *dict(row[f"{given}_value"] or {}).values())


def test_batches_have_some_bytes_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All entries are as large; a batch ends with the one that reaches the bound."""
    pytest.importorskip("pyarrow")
    from support.inside.columns import difference_columns as differences

    old = written(tmp_path / "old", 3, 128, [(float(number), 1.0) for number in range(7)])
    new = written(tmp_path / "new", 3, 128, [])
    (here,), (there,) = old.operators, new.operators
    layout = differences.difference_layout(here.states, there.states)
    found = [of for of in of_keyed_state(old.differences(new)) if of.state == "sum"]
    [size] = {of.here.bytes for of in found if isinstance(of.here, StateEntry)}
    assert [len(batch) for batch in layout.batches(found)] == [7]  # They are small.
    monkeypatch.setattr(differences, "_BYTES", 2 * size + 1)
    assert [len(batch) for batch in layout.batches(found)] == [3, 3, 1]


def test_keys_of_another_type(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from support.inside.columns import difference_layout

    keys = [MapStateDescriptor("map", INT, LONG), MapStateDescriptor("map", STRING, LONG)]
    sides = []
    for number, state in enumerate(keys):
        with SavepointWriter(tmp_path / str(number)) as writer:
            sides.append(writer.add_operator("op", DOUBLE, [state], 128, 3).states)
    message = "state 'map' must have the same type of user_key in both savepoints, got INT and STR"
    with pytest.raises(InvalidTypeError, match=message):
        difference_layout(*sides)
    schema = difference_layout(sides[0], []).schema
    assert [str(schema.field(name).type) for name in ("user_key", "old_value", "new_value")] == [
        *("int32", "int64", "string")  # as of what is always null
    ]
