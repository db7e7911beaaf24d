"""Savepoints and checkpoints of jobs whose state is known, taken by real Flink and read here.

`java/Savepoints.java` runs the jobs, one after the other, in a local cluster. What they put in
their state follows from the events they are given; in which key group and subtask, and at what
time, the jobs report themselves. How many entries were compared is in each test's properties;
`pytest -rP` shows it too.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any, NamedTuple

import pytest
from support.flink.flink_sql import FlinkSql, in_java, in_sql
from support.keys.random_rows import random_rows

from keygroups import RescalePlan, assign_to_key_group
from keygroups.errors import ParallelismError, RestoreWarning
from keygroups.savepoint import (
    Operator,
    Savepoint,
    StateEntry,
    TimeWindow,
    TtlValue,
    read_savepoint,
)

pytestmark = [pytest.mark.flink, pytest.mark.flink_since("2.0", "the API of its job")]

Record = Callable[[str, object], None]
Event = tuple[str, int, int]
Row = tuple[Any, ...]

SLOTS = 5
WINDOW = 100
ROWS = 400
QUERY = """
    SELECT f0, MOD(f2, 3), COUNT(*), SUM(f2), COUNT(DISTINCT f1)
    FROM events GROUP BY f0, MOD(f2, 3)
"""
DATA_STREAM = ["by-string", "by-long", "by-window"]

HASHMAP = {"state.backend.type": "hashmap"}
COMPRESSED = HASHMAP | {"execution.checkpointing.snapshot-compression": "true"}
ROCKSDB = {
    "state.backend.type": "rocksdb",
    "execution.checkpointing.incremental": "true",
    "execution.checkpointing.data-inline-threshold": "0",
}
HEAP_TIMERS = ROCKSDB | {"state.backend.rocksdb.timer-service.factory": "HEAP"}


class Job(NamedTuple):
    """A job as `java/Savepoints.java` takes it, but for its name."""

    parallelism: int
    max_parallelism: int | None
    options: dict[str, str]
    points: tuple[str, ...] = ()
    restore: tuple[str, str] | None = None
    query: str | None = None


JOBS = {
    "hashmap": Job(3, 128, HASHMAP, ("canonical", "native", "checkpoint")),
    "hashmap-4": Job(4, 128, HASHMAP, ("canonical", "native"), ("hashmap", "canonical")),
    "rocksdb": Job(3, 128, ROCKSDB, ("canonical", "native", "checkpoint")),
    "rocksdb-4": Job(4, 128, ROCKSDB, ("canonical", "native"), ("rocksdb", "native")),
    "wide": Job(2, 1000, HEAP_TIMERS, ("canonical", "checkpoint")),
    "wide-5": Job(5, None, HEAP_TIMERS, ("canonical", "checkpoint"), ("wide", "checkpoint")),
    "compressed": Job(3, 128, COMPRESSED, ("canonical", "native")),
    "to-rocksdb": Job(1, None, ROCKSDB, ("native",), ("compressed", "canonical")),
    "sql": Job(3, 128, HASHMAP, ("canonical", "native"), query=QUERY),
    "sql-4": Job(4, 128, ROCKSDB, ("canonical", "native"), ("sql", "canonical"), QUERY),
}
# Flink leaves timers on the heap out of RocksDB's native savepoints, so what is restored has none.
LOST_TIMERS = {
    "heap-timers": Job(2, 128, HEAP_TIMERS, ("native",)),
    "no-timers": Job(3, 128, HEAP_TIMERS, ("canonical",), ("heap-timers", "native")),
}
MISMATCH = "Max parallelism mismatch between checkpoint/savepoint state and new program"
REFUSED = {
    "more key groups": (Job(4, 256, HASHMAP, (), ("hashmap", "canonical")), MISMATCH),
    "fewer key groups": (Job(4, 127, ROCKSDB, (), ("rocksdb", "native")), MISMATCH),
    "fewer in SQL": (Job(4, 64, HASHMAP, (), ("sql", "canonical"), QUERY), MISMATCH),
    "too many subtasks": (
        Job(129, None, HASHMAP, (), ("hashmap", "canonical")),
        "The maximum parallelism (128) of the restored state is lower than the configured "
        "parallelism (129)",
    ),
}
POINTS = [(name, point) for name, job in JOBS.items() for point in job.points]
RESCALED = [
    (name, point) for name, job in JOBS.items() if job.restore is not None for point in job.points
]


class Jobs:
    """The events that the jobs were given, and what was said of each."""

    def __init__(self, events: list[Event], text: dict[str, dict[str, Any]]) -> None:
        self.events = events
        self.said = text

    def read(self, name: str, point: str) -> Savepoint:
        return read_savepoint(self.said[name]["points"][point]["path"])

    def reports(self, name: str, operator: str) -> dict[Any, dict[str, Any]]:
        """Return the rows of a keyed operator about each key, a window's being that of its key."""
        uid = "by-string" if operator == "by-window" else operator
        reports = self.said[name]["reports"]
        return {report["key"]: report for report in reports if report["operator"] == uid}

    def origin(self, name: str) -> str:
        """Return the job that put in what a job has."""
        restored = JOBS[name].restore
        return restored[0] if restored else name


@pytest.fixture(scope="module")
def jobs(flink_sql: FlinkSql, tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    """All jobs, run one after the other in one JVM."""
    rng = random.Random(0)
    events = [
        (in_java(name), number)
        for number, name in random_rows(("BIGINT", "STRING"), ROWS)
        if isinstance(number, int) and isinstance(name, str)
        for _ in range(rng.randint(1, 3))
    ]
    rng.shuffle(events)
    timed = [(name, number, time) for time, (name, number) in enumerate(events)]
    everything = JOBS | LOST_TIMERS | {name: job for name, (job, _) in REFUSED.items()}
    task = {
        "folder": tmp_path_factory.mktemp("points").as_uri(),
        "window": WINDOW,
        "events": timed,
        "jobs": [{"name": name, **job._asdict()} for name, job in everything.items()],
    }
    return Jobs(timed, flink_sql.savepoints(SLOTS, task))


@pytest.mark.parametrize(("name", "point"), POINTS)
def test_metadata_is_what_flink_reads(jobs: Jobs, name: str, point: str) -> None:
    savepoint = jobs.read(name, point)
    assert savepoint.kind == (point if point == "checkpoint" else f"{point} savepoint")
    flinks = {one["id"]: one for one in jobs.said[name]["points"][point]["operators"]}
    assert len(savepoint.operators) == len(flinks)
    for operator in savepoint.operators:
        text = flinks[operator.operator_id]
        assert (operator.uid, operator.name) == (text["uid"], text["name"])
        assert operator.parallelism == text["parallelism"]
        assert operator.max_parallelism == text["max_parallelism"]
        assert [one.subtask_index for one in operator.subtasks] == text["subtasks"]
        ranges = {str(subtask): [*span] for subtask, span in ranges_of(operator).items()}
        assert ranges == text["ranges"]
        assert savepoint.operator(operator.operator_id) is operator
        if operator.uid is not None:
            assert savepoint.operator(operator.uid) is operator
    job, origin = JOBS[name], JOBS[jobs.origin(name)]
    for operator in keyed_operators(savepoint):
        assert operator.parallelism == job.parallelism
        assert operator.max_parallelism == origin.max_parallelism
        assert len(ranges_of(operator)) == job.parallelism


@pytest.mark.parametrize(("name", "point"), POINTS)
def test_operator_state_is_read(
    jobs: Jobs, name: str, point: str, record_property: Record
) -> None:
    states = list(jobs.read(name, point).operator("events").operator_state())
    names = [event[0] for event in jobs.events]
    last_times = {name: time for name, _, time in jobs.events}
    assert sorted(states) == [
        ("names", "UNION", 0, names),
        ("offset", "SPLIT_DISTRIBUTE", 0, [len(jobs.events)]),
        ("times", "BROADCAST", 0, last_times),
    ]
    record(record_property, f"the source in {name}, {point}", len(names) + len(last_times) + 1)


@pytest.mark.parametrize("uid", DATA_STREAM)
@pytest.mark.parametrize(("name", "point"), [one for one in POINTS if not JOBS[one[0]].query])
def test_what_a_job_put_in_is_read(
    jobs: Jobs, name: str, point: str, uid: str, record_property: Record
) -> None:
    operator = jobs.read(name, point).operator(uid)
    entries = list(operator.entries())
    expected = window_rows(jobs.events) if uid == "by-window" else rows(jobs.events, uid)
    assert in_order(map(row_of, entries)) == in_order(expected)
    reports = jobs.reports(name, uid)
    for entry in entries:
        report = reports[entry.key]
        assert (entry.key_group, entry.subtask) == (report["key_group"], report["subtask"])
    check_key_groups(operator, entries)
    kept = jobs.reports(jobs.origin(name), uid)
    for entry in entries:
        check_clocks(entry, kept[entry.key]["clock"])
    record(record_property, f"{uid} in {name}, {point}", len(entries))


@pytest.mark.parametrize("uid", ["by-string", "by-long"])
def test_timers_that_flink_loses_are_not_there(jobs: Jobs, uid: str) -> None:
    expected = [row for row in rows(jobs.events, uid) if row[1] != "PRIORITY_QUEUE"]
    for name, job in LOST_TIMERS.items():
        entries = jobs.read(name, job.points[0]).operator(uid).entries()
        assert in_order(map(row_of, entries)) == in_order(expected)


@pytest.mark.parametrize(("name", "point"), [one for one in POINTS if JOBS[one[0]].query])
def test_what_a_query_put_in_is_read(
    jobs: Jobs, name: str, point: str, record_property: Record
) -> None:
    (operator,) = keyed_operators(jobs.read(name, point))
    assert operator.name is not None
    assert operator.name.startswith("GroupAggregate")
    groups: dict[Row, list[Event]] = defaultdict(list)
    for event in jobs.events:
        groups[in_sql(event[0]), event[2] % 3].append(event)
    results = {
        key: (len(item), sum(time for _, _, time in item), len({number for _, number, _ in item}))
        for key, item in groups.items()
    }
    numbers = {(key, number) for key, item in groups.items() for _, number, _ in item}
    entries = list(operator.entries())
    by_state: dict[str, list[StateEntry]] = defaultdict(list)
    for entry in entries:
        by_state[entry.state].append(entry)
    assert by_state.keys() == {"accState", "distinctAcc_0"}
    # The last field of an accumulator stands for what is in the other state.
    accumulators = {entry.key: entry.value[:3] for entry in by_state["accState"]}
    assert accumulators == results
    distinct = {(one.key, one.user_key): one.value for one in by_state["distinctAcc_0"]}
    assert distinct == dict.fromkeys(
        numbers, 1
    )  # a bit for each DISTINCT, as nothing is retracted
    assert len(entries) == len(accumulators) + len(distinct)
    check_key_groups(operator, entries)
    if JOBS[name].restore is None:
        text = {tuple(one["row"]): one["subtask"] for one in jobs.said[name]["reports"]}
        read = {(*one.key, *one.value[:3]): one.subtask for one in by_state["accState"]}
        assert read == text
    record(record_property, f"SQL in {name}, {point}", len(entries))


@pytest.mark.parametrize(("name", "point"), RESCALED)
def test_a_plan_names_the_key_groups_that_move(
    jobs: Jobs, name: str, point: str, record_property: Record
) -> None:
    job = JOBS[name]
    assert job.restore is not None
    before, after = jobs.read(*job.restore), jobs.read(name, point)
    for old in keyed_operators(before):
        new = after.operator(old.operator_id)
        plan = RescalePlan(old.max_parallelism, old.parallelism, new.parallelism)
        subtask_before, subtask_after = subtasks(old), subtasks(new)
        moved = [one for one in subtask_before if subtask_before[one] != subtask_after[one]]
        assert list(plan.moved_key_groups) == moved
        assert 0 < len(moved) < old.max_parallelism
        pieces = {group: piece[:2] for piece in plan for group in piece.key_group_range}
        assert pieces == {one: (subtask_before[one], subtask_after[one]) for one in pieces}
        assert len(pieces) == old.max_parallelism

        old_entries, new_entries = list(old.entries()), list(new.entries())
        assert contents(old_entries) == contents(new_entries)
        assert {
            one.key_group: one.subtask for one in old_entries
        }.items() <= subtask_before.items()
        assert {one.key_group: one.subtask for one in new_entries}.items() <= subtask_after.items()
        record(record_property, f"{old.label} in {name}, {point}", len(new_entries))


@pytest.mark.parametrize("uid", ["by-string", "by-long"])
@pytest.mark.parametrize(
    "name", [one for one, job in JOBS.items() if job.restore and not job.query]
)
def test_a_restored_job_finds_each_key_where_the_plan_says(
    jobs: Jobs, name: str, uid: str, record_property: Record
) -> None:
    origin = JOBS[jobs.origin(name)]
    assert origin.max_parallelism is not None
    plan = RescalePlan(origin.max_parallelism, origin.parallelism, JOBS[name].parallelism)
    moved = set(plan.moved_key_groups)
    old, new = jobs.reports(jobs.origin(name), uid), jobs.reports(name, uid)
    assert old.keys() == new.keys()
    for key, report in old.items():
        differing = {field for field, value in report.items() if value != new[key][field]}
        assert differing == {"clock"} | ({"subtask"} if report["key_group"] in moved else set())
    record(record_property, f"{uid} in {name}", len(new))


def test_a_restore_that_flink_accepts_is_accepted(jobs: Jobs) -> None:
    for name, job in JOBS.items():
        assert jobs.said[name]["refused"] is None
        if job.restore is not None:
            savepoint, restored = jobs.read(*job.restore), jobs.read(name, job.points[0])
            for operator in keyed_operators(savepoint):
                is_set = job.max_parallelism is not None
                with nullcontext() if is_set else pytest.warns(RestoreWarning):
                    kept = savepoint.check_restore(operator, job.parallelism, job.max_parallelism)
                assert kept == restored.operator(operator.operator_id).max_parallelism


@pytest.mark.parametrize("name", REFUSED)
def test_a_restore_that_flink_refuses_is_refused(jobs: Jobs, name: str) -> None:
    job, message = REFUSED[name]
    assert job.restore is not None
    assert message in jobs.said[name]["refused"]
    savepoint = jobs.read(*job.restore)
    for operator in keyed_operators(savepoint):
        with pytest.raises(ParallelismError):
            savepoint.check_restore(operator, job.parallelism, job.max_parallelism)


def rows(events: Iterable[Event], uid: str) -> list[Row]:
    """Return the entries of a keyed operator after these events, as `row_of` has an entry."""
    last: dict[Any, int] = {}
    names: dict[Any, str] = {}
    numbers: dict[Any, list[int]] = defaultdict(list)
    visits: dict[Any, list[int]] = defaultdict(list)
    times: dict[Row, int] = {}
    for name, number, time in events:
        key = name if uid == "by-string" else number
        last[key], names[key], times[key, name] = time, name, time
        numbers[key].append(number)
        visits[key].append(time)
    timers = "_timer_state/event_user-timers"
    return [
        *(("last", "VALUE", key, None, None, time, None) for key, time in last.items()),
        *((timers, "PRIORITY_QUEUE", key, None, None, None, time) for key, time in last.items()),
        *(("seen", "VALUE", key, None, None, name, None) for key, name in names.items()),
        *(("numbers", "LIST", key, None, None, item, None) for key, item in numbers.items()),
        *(("visits", "LIST", key, None, None, item, None) for key, item in visits.items()),
        *(("times", "MAP", key, None, name, time, None) for (key, name), time in times.items()),
    ]


def window_rows(events: Iterable[Event]) -> list[Row]:
    """Return the same of the windows."""
    sums: Counter[tuple[str, TimeWindow]] = Counter()
    for name, _, time in events:
        start = time // WINDOW * WINDOW
        sums[name, TimeWindow(start, start + WINDOW)] += time
    timers = "_timer_state/event_window-timers"
    return [
        row
        for (name, window), total in sums.items()
        for row in (
            ("window-contents", "AGGREGATING", name, window, None, total, None),
            (timers, "PRIORITY_QUEUE", name, window, None, None, window.end - 1),
        )
    ]


def row_of(entry: StateEntry) -> Row:
    value = entry.value
    if entry.state == "visits":
        value = [element.value for element in value]
    return (
        *(entry.state, entry.kind, entry.key, entry.namespace, entry.user_key),
        *(value, entry.timestamp),
    )


def in_order(found: Iterable[Row]) -> list[Row]:
    return sorted(found, key=repr)


def contents(entries: Iterable[StateEntry]) -> list[Row]:
    """Return all of the entries but the subtasks and the number of bytes."""
    return in_order(entry._replace(subtask=0, bytes=0) for entry in entries)


def check_clocks(entry: StateEntry, clock: list[tuple[int, int]]) -> None:
    """Check the times of access against the clock before and after each event of the key."""
    accesses: list[tuple[int | None, tuple[int, int]]] = []
    if entry.state == "visits":
        assert all(isinstance(element, TtlValue) for element in entry.value)
        accesses = [(one.last_access, span) for one, span in zip(entry.value, clock, strict=True)]
    elif entry.state == "seen":
        accesses = [(entry.last_access, clock[-1])]
    else:
        assert entry.last_access is None
    for last_access, (before, after) in accesses:
        assert last_access is not None
        assert before <= last_access <= after


def check_key_groups(operator: Operator, entries: list[StateEntry]) -> None:
    """Check the key groups against the keys, and against where bytes are."""
    (key_type,) = {state.key_type for state in operator.states}
    assert key_type is not None
    for entry in entries:
        computed = assign_to_key_group(entry.key, operator.max_parallelism, key_type)
        assert computed == entry.key_group
    weights = operator.key_group_bytes().weights
    in_use = {key_group for key_group, weight in enumerate(weights) if weight}
    assert in_use == {entry.key_group for entry in entries}


def keyed_operators(savepoint: Savepoint) -> list[Operator]:
    found = [operator for operator in savepoint.operators if ranges_of(operator)]
    assert len(found) in (1, len(DATA_STREAM))
    return found


def ranges_of(operator: Operator) -> dict[int, tuple[int, int]]:
    return {
        one.subtask_index: (one.key_groups.start_key_group, one.key_groups.end_key_group)
        for one in operator.subtasks
        if one.key_groups is not None
    }


def subtasks(operator: Operator) -> dict[int, int]:
    """Return the subtask that has each key group."""
    return {
        key_group: one.subtask_index
        for one in operator.subtasks
        for key_group in one.key_groups or ()
    }


def record(record_property: Record, what: object, count: int) -> None:
    record_property("entries compared", count)
    print(f"{what}: {count:,} entries compared")
