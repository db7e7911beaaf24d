"""Savepoints of jobs as production has them, written anew and restored by real Flink.

POJOs, decimals, collections, windows, joins, CEP, all kinds of operators of SQL: every operator
of every point is restored at once, with the serializers of the savepoint's own headers. A job
asks its backend for all keys, has each key sent to it through `keyBy`, and takes a savepoint of
its own, whose entries have to be what Flink had read in the point before it was rewritten.
`pytest -rP` shows how much that was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.bytes.job_points import (
    JOB_POINTS,
    JobPoint,
    TrueEntry,
    differing,
    place_of,
    true_entries,
)
from support.flink.flink_points import java_operators, misplaced, operator_state, with_state
from support.flink.flink_restores import BACKENDS, FlinkRestores, Row, Task
from support.flink.restore_table import RestoreTable

from keygroups.savepoint import (
    Savepoint,
    SavepointWriter,
    change_max_parallelism,
    convert_to_canonical,
    read_savepoint,
)

cramjam = pytest.importorskip("cramjam", reason="some points are compressed: the extra savepoint")

pytestmark = [
    pytest.mark.flink,
    pytest.mark.flink_since("1.20", "the API of its job"),
]

QUICK = {
    *("2.3.0-wincep-hashmap-canonical", "2.3.0-shop-rocksdb-checkpoint"),
    *("2.3.0-sqlup-hashmap-native", "1.20.5-sqltjoin-rocksdb-canonical"),
}
QUICK_DELETED = {"2.3.0-winjoin-rocksdb-canonical", "1.20.5-sqlagg-rocksdb-canonical"}
KRYO_JOBS = {"shop", "kitchen", "keys"}
"""Those with keyed state of Kryo; that of winjoin is in broadcast state, of 1.20.5 alone."""
YEAR_2100 = 4_102_444_800_000
KEY = 5  # in the place of an entry
RestoreCounts = tuple[str, str, int, int, int, int]


def runs(quick: set[str], points: list[JobPoint]) -> list[Any]:
    """Return point, backend and parallelism; the latter two take turns."""
    found = []
    for number, one in enumerate(points):
        marks = [] if one.name in quick else [pytest.mark.slow]
        # Points come in threes: no kind of them is to have one parallelism.
        backend, parallelism = sorted(BACKENDS)[number % 2], 1 + (number + number // 3) % 3
        found.append(pytest.param(one, backend, parallelism, marks=marks, id=str(one)))
    return found


def skip_what_cannot_be(one: JobPoint, cluster: FlinkRestores) -> None:
    """Leave out what is not restored, or not written anew."""
    versions = [tuple(map(int, name.split("."))) for name in (one.flink, cluster.version)]
    if versions[0] > versions[1]:
        pytest.skip(f"Flink {cluster.version} does not restore what {one.flink} wrote")
    if one.job in {*KRYO_JOBS, "winjoin"} and versions[0][0] != versions[1][0]:
        pytest.skip("Kryo is another in Flink 1 and 2")
    is_framed = one.kind == "canonical" or one.backend == "rocksdb"
    if one.job in KRYO_JOBS and versions[0][0] == 1 and not is_framed:
        pytest.skip("only the job's own classes say where a value of Kryo ends")


@pytest.fixture(scope="module")
def table() -> Iterator[RestoreTable]:
    """What the tests here have compared with one Flink; `-rP` shows it with the last of them."""
    found = RestoreTable()
    yield found
    print(found)


def named(row: Row) -> tuple[object, ...]:
    return row["operator"], row["state"], row["kind"], row.get("timestamp")


def is_due(state: str, timestamp: object) -> bool:
    """Tell the timers that fire as soon as a job runs, before it takes its own savepoint."""
    return state.startswith("_timer_state/processing_") and int(str(timestamp)) < YEAR_2100


def compare(
    cluster: FlinkRestores,
    one: JobPoint,
    new: Savepoint,
    expected: Mapping[str, Sequence[TrueEntry]],
    backend: str,
    parallelism: int,
) -> RestoreCounts:
    """Restore a savepoint that was made of a point; all that is expected has to be there."""
    operators = with_state(new)
    target = max(operator.max_parallelism for operator in operators)
    restored = cluster.restore(Task(new.path, java_operators(new), backend, parallelism, target))
    assert restored.refused is None
    found = {*restored.max_parallelisms.values()}
    assert found == {target, *(operator.max_parallelism for operator in operators)}
    counts: Counter[tuple[object, ...]] = Counter()
    for operator_id, entries in expected.items():
        for entry in entries:
            state, kind, _, _, timestamp, *_ = entry.place
            counts[operator_id, state, kind, timestamp] += 1
    kept = Counter({name: n for name, n in counts.items() if name[2] != "PRIORITY_QUEUE"})
    for way, numbers in {"backend": counts, "keyed": kept}.items():
        rows = list(restored.found(way))
        assert Counter(map(named, rows)) == numbers
        assert not list(misplaced(rows, target, parallelism))
    own = restored.read()
    old = one.read()
    for operator in operators:
        saved = own.operator(f"at {operator.operator_id}")
        assert saved.max_parallelism == operator.max_parallelism
        assert operator_state(saved) == operator_state(old.operator(operator.operator_id))
        rest = [entry for entry in saved.entries() if not is_due(entry.state, entry.timestamp)]
        true = [
            entry
            for entry in expected.get(operator.operator_id, [])
            if not is_due(str(entry.place[0]), entry.place[4])
        ]
        wrong = differing(one, saved, rest, true, is_moved=True)
        assert not wrong, (operator, len(wrong), wrong[0])
    keys = {(operator, entry.place[KEY]) for operator in expected for entry in expected[operator]}
    states = {name[:2] for name in counts}
    print(f"of {len(one.operators)} operators of {one} at max parallelism {target}")
    return cluster.version, backend, parallelism, len(states), len(keys), counts.total()


def expected_of(one: JobPoint) -> dict[str, list[TrueEntry]]:
    entries = true_entries(one.entries)
    return {operator: entries.get(operator, []) for operator in one.operators}


@pytest.mark.parametrize(("one", "backend", "parallelism"), runs(QUICK, JOB_POINTS))
def test_flink_finds_all_of_a_job(
    restores: FlinkRestores,
    one: JobPoint,
    backend: str,
    parallelism: int,
    tmp_path: Path,
    table: RestoreTable,
) -> None:
    skip_what_cannot_be(one, restores)
    output = tmp_path / "rewritten"
    if one.kind == "native":
        convert_to_canonical(one.read(), output)
    else:
        # Of a POJO only the job knows the hash: its key groups can be joined.
        target = 64 if one.kind == "checkpoint" or one.job == "keys" else 4096
        change_max_parallelism(one.read(), target, output)
    new = read_savepoint(output)
    table.add(*compare(restores, one, new, expected_of(one), backend, parallelism))


@pytest.mark.parametrize(
    ("one", "backend", "parallelism"),
    runs(QUICK_DELETED, [one for one in JOB_POINTS if one.kind == "canonical"]),
)
def test_flink_finds_what_deleted_keys_leave(
    restores: FlinkRestores,
    one: JobPoint,
    backend: str,
    parallelism: int,
    tmp_path: Path,
    table: RestoreTable,
) -> None:
    """Every other key of each operator, and the only one of some."""
    skip_what_cannot_be(one, restores)
    old = one.read()
    expected = expected_of(one)
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "edited") as writer:
        for operator_id, entries in expected.items():
            keys = {
                place_of(entry)[KEY]: entry.key for entry in old.operator(operator_id).entries()
            }
            doomed = sorted(map(str, keys))[::2]
            if doomed:
                writer.operator(operator_id).delete_keys([keys[name] for name in doomed])
            rest = [entry for entry in entries if entry.place[KEY] not in doomed]
            expected[operator_id] = rest
    new = read_savepoint(tmp_path / "edited")
    table.add(*compare(restores, one, new, expected, backend, parallelism))
