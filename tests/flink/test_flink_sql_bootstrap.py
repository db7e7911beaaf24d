"""SQL jobs that go on from state which Python wrote anew, as if they had never stopped.

A job takes in the first half of some rows and is stopped with a savepoint. Its state is read, and
written once more from the values that Python read: after the template of a job that saw no row, or
from types alone. The job that is restored from that takes in the other half; what both have told
is to be what one job tells that takes in all.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.bytes.framed_entries import framed_entries
from support.flink.flink_restores import BACKENDS
from support.flink.flink_sql import FlinkSql

from keygroups.savepoint import (
    ListStateDescriptor,
    MapStateDescriptor,
    Operator,
    OperatorId,
    OperatorWriter,
    Savepoint,
    SavepointWriter,
    StateDescriptor,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.types import LONG

pytestmark = pytest.mark.flink
PLANNED = pytest.mark.flink_since("1.20", "a planner that groups by a ROW")

VIEW = (
    "SELECT k, id, v, CAST(v AS DECIMAL(30, 4)) AS price, ARRAY[k, CAST(id AS STRING)] AS tags,"
    " CAST(ROW(id, k) AS ROW<number INT, name STRING>) AS r, ts FROM sent"
)
ROW_NUMBER = "ROW_NUMBER() OVER (PARTITION BY k ORDER BY"
QUERIES = {
    "group": "SELECT k, COUNT(*), SUM(v), AVG(price), MIN(price), COUNT(DISTINCT id) FROM t"
    " GROUP BY k",
    "group of a decimal and a row": "SELECT price, r, COUNT(*), SUM(v) FROM t GROUP BY price, r",
    "deduplicate": "SELECT k, id, price, tags, r, ts FROM"
    f" (SELECT *, {ROW_NUMBER} ts DESC) AS n FROM t) WHERE n = 1",
    "join": "SELECT x.k, x.price, x.tags, y.id FROM (SELECT k, id, price, tags FROM t) x"
    " JOIN (SELECT k, id, v FROM t) y ON x.k = y.k AND x.id < y.id",
    "top": f"SELECT k, price, id FROM (SELECT *, {ROW_NUMBER} price) AS n FROM t) WHERE n <= 3",
    "join of groups": "SELECT x.price, x.n, y.k FROM"
    " (SELECT price, COUNT(*) AS n FROM t GROUP BY price) x"
    " JOIN (SELECT DISTINCT id, k FROM t) y ON x.n = y.id",
    "top of groups": "SELECT k, id, c FROM (SELECT *,"
    f" {ROW_NUMBER} c DESC, id) AS n FROM (SELECT k, id, COUNT(*) AS c FROM t GROUP BY k, id))"
    " WHERE n <= 2",
    "window": "SELECT window_start, k, COUNT(*), SUM(v), MIN(price) FROM"
    " TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND))"
    " GROUP BY window_start, window_end, k",
}
UNORDERED = ("join of groups", "top of groups")  # whose rows come from several subtasks
START = 1_700_000_000  # in seconds
MAX_PARALLELISM = 128

Rows = list[Any]


def random_rows(count: int) -> Rows:
    """Return rows in the order of their times, with watermarks, some rows behind these."""
    chance = random.Random("rows")
    rows: Rows = []
    for number in range(count):
        time = START + number // 4 - (chance.choice([0, 0, 0, 25]) if number % 9 == 0 else 0)
        v = None if chance.random() < 0.15 else chance.randrange(-50, 50)
        rows.append([time, f"key {chance.randrange(12)}", chance.randrange(30), v])
        if number % 20 == 19:
            rows.append(START + number // 4 - 1)
    return rows


ROWS = random_rows(240)
HALF = len(ROWS) // 2


def task(
    rows: Rows,
    folder: Path,
    savepoint: Path | None = None,
    backend: str = "hashmap",
    parallelism: int = 2,
    queries: Mapping[str, str] = QUERIES,
) -> dict[str, object]:
    return {
        "savepoint": None if savepoint is None else savepoint.as_uri(),
        "options": BACKENDS[backend],
        "parallelism": parallelism,
        "max_parallelism": MAX_PARALLELISM,
        "view": VIEW,
        "queries": list(queries.values()),
        "rows": rows,
        "folder": (folder / "points").as_uri(),
    }


def states_of(operator: Operator) -> list[ListStateDescriptor]:
    """Return the union lists of an operator: its watermark, where it has windows."""
    names = {one.state for one in operator.operator_state()}
    assert names <= {"watermark"}
    return [ListStateDescriptor(name, LONG) for name in names]


def write_again(operator: Operator, writer: OperatorWriter) -> Iterator[str]:
    """Write the entries of an operator from their values; yield what each was of."""
    for entry in operator.entries():
        if entry.timestamp is None:
            times = (entry.user_key, entry.last_access, entry.namespace)
            writer.write(entry.state, entry.key, entry.value, *times)
        else:
            domain, service = entry.state.removeprefix("_timer_state/").split("_", 1)
            time_domain = f"{domain.upper()}_TIME"
            writer.write_timer(entry.key, entry.timestamp, time_domain, entry.namespace, service)
        yield entry.state
    for state in operator.operator_state():
        if state.subtask == 0:  # each subtask has the same, and a union is written once
            writer.write_operator_state(state.state, state.elements)


def written_anew(old: Savepoint, template: Savepoint, path: Path) -> Counter[str]:
    """Write all keyed state, and the watermarks of windows, after a template."""
    counts: Counter[str] = Counter()
    with SavepointWriter(path, template=template) as writer:
        for operator in old.operators:
            if operator.states:
                unions = states_of(operator)
                new = writer.add_operator(operator.operator_id, union_list_states=unions)
                counts.update(write_again(operator, new))
    return counts


def of_types_alone(old: Savepoint, path: Path) -> Counter[str]:
    """Write state without timers from types as a user gives them, with no byte of a header."""
    counts: Counter[str] = Counter()
    with SavepointWriter(path) as writer:
        for operator in old.operators:
            states = [state for state in operator.states if state.kind != "PRIORITY_QUEUE"]
            if not states:
                continue
            operator_id, key_type = OperatorId(operator.operator_id), states[0].key_type
            new = writer.add_operator(
                operator_id, key_type, [*map(new_state, states)], MAX_PARALLELISM, parallelism=2
            )
            for entry in operator.entries([state.name for state in states]):
                new.write(entry.state, entry.key, entry.value, entry.user_key)
                counts[f"{operator.operator_id} {entry.state}"] += 1
    return counts


def new_state(state: StateDescriptor) -> ValueStateDescriptor | MapStateDescriptor:
    """Return a descriptor of key types, which have nothing of what was read but texts."""
    types = [
        serializer.key_type
        for serializer in (state.user_key_serializer, state.value_serializer)
        if serializer is not None and serializer.key_type is not None
    ]
    if state.kind == "MAP":
        user_key_type, value_type = types
        return MapStateDescriptor(state.name, user_key_type, value_type)
    [value_type] = types
    return ValueStateDescriptor(state.name, value_type)


def final(changes: list[str]) -> Counter[str]:
    """Return the rows that are left after changes."""
    rest: Counter[str] = Counter()
    for change in changes:
        rest[change[2:]] += 1 if change[:2] in ("+I", "+U") else -1
    assert min(rest.values(), default=0) >= 0
    return +rest


def keys_of(operator: Operator) -> set[tuple[str, int, bytes]]:
    """Return the bytes by which RocksDB finds the entries of an operator, with key groups."""
    return {
        (state, key_group, key)
        for task in operator.tasks()
        for state, key_group, _, key, _ in framed_entries(task)
    }


def check(answers: list[dict[str, Any]], queries: Mapping[str, str]) -> None:
    """Compare what jobs told: one before, one that takes in all, and others after the first."""
    before, whole, *restored = answers
    for answer in answers:
        assert answer["refused"] is None
    for answer in restored:
        for name, *reports in zip(queries, before["changes"], answer["changes"], whole["changes"]):
            first, second, all_told = reports
            assert first or name == "window", name
            assert second, name
            tell = final if name in UNORDERED else Counter
            assert tell(first + second) == tell(all_told), name


def restored_tasks(
    folder: Path, written: Path, queries: Mapping[str, str] = QUERIES
) -> list[dict[str, object]]:
    return [
        task([*ROWS[HALF:], None], folder, written, backend, parallelism, queries)
        for backend in BACKENDS
        for parallelism in (1, 3)
    ]


@PLANNED
def test_sql_jobs_go_on(flink_sql: FlinkSql, tmp_path: Path) -> None:
    empty, before, whole = flink_sql.jobs(
        [
            task([], tmp_path),
            task(ROWS[:HALF], tmp_path),
            task([*ROWS, None], tmp_path, parallelism=1),
        ]
    )
    assert not any(empty["changes"])
    old, template = read_savepoint(before["path"]), read_savepoint(empty["path"])
    print(written_anew(old, template, tmp_path / "written"))
    written = read_savepoint(tmp_path / "written")
    for operator in written.operators:
        flinks, ours = keys_of(old.operator(operator.operator_id)), keys_of(operator)
        assert ours == flinks, (operator.name, ours - flinks, flinks - ours)
    after = flink_sql.jobs(restored_tasks(tmp_path, tmp_path / "written"))
    check([before, whole, *after], QUERIES)


PLAIN = {
    "group": "SELECT k, COUNT(*), SUM(v), AVG(price), MIN(price) FROM t GROUP BY k",
    "group of a decimal and a row": QUERIES["group of a decimal and a row"],
    "deduplicate": "SELECT k, id, price, r, ts FROM (SELECT k, id, price, r, ts,"
    f" {ROW_NUMBER} ts DESC) AS n FROM t) WHERE n = 1",
    "join": "SELECT x.k, x.price, x.r, y.id FROM (SELECT k, id, price, r FROM t) x"
    " JOIN (SELECT k, id, v FROM t) y ON x.k = y.k AND x.id < y.id",
}


@PLANNED
def test_sql_state_of_types_alone(flink_sql: FlinkSql, tmp_path: Path) -> None:
    """Scalars, and rows with their names, are written without a template."""
    before, whole = flink_sql.jobs(
        [
            task(ROWS[:HALF], tmp_path, queries=PLAIN),
            task([*ROWS, None], tmp_path, parallelism=1, queries=PLAIN),
        ]
    )
    counts = of_types_alone(read_savepoint(before["path"]), tmp_path / "written")
    print(counts)
    assert len(counts) == 5
    after = flink_sql.jobs(restored_tasks(tmp_path, tmp_path / "written", PLAIN))
    check([before, whole, *after], PLAIN)


GROUP = {"group": QUERIES["group"]}
CHANGED = {"top": QUERIES["top"]} | GROUP


def grouping(savepoint: Savepoint) -> str:
    """Return the id of the operator that groups."""
    [operator] = [
        operator
        for operator in savepoint.operators
        if "accState" in [state.name for state in operator.states]
    ]
    return operator.operator_id


@PLANNED
def test_a_plan_that_has_changed(flink_sql: FlinkSql, tmp_path: Path) -> None:
    """Another query in front gives the operator another id, which its state gets here."""
    empty, before, whole = flink_sql.jobs(
        [
            task([], tmp_path, queries=CHANGED),
            task(ROWS[:HALF], tmp_path, queries=GROUP),
            task([*ROWS, None], tmp_path, parallelism=1, queries=GROUP),
        ]
    )
    old, changed = read_savepoint(before["path"]), read_savepoint(empty["path"])
    assert grouping(old) != grouping(changed)
    editor = SavepointWriter.from_existing_savepoint(changed, tmp_path / "written")
    with editor as writer:
        writer.remove_operator(grouping(changed))
        writer.add_operator_from(old, grouping(old), OperatorId(grouping(changed)))
    after = flink_sql.jobs(restored_tasks(tmp_path, tmp_path / "written", CHANGED))
    for answer in after:
        assert answer["refused"] is None
        first, second, all_told = (
            before["changes"][0],
            answer["changes"][1],
            whole["changes"][0],
        )
        assert second
        assert Counter(first + second) == Counter(all_told)
