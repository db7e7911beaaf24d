"""Recorded savepoints, rewritten to another max parallelism or format, restored by real Flink.

All that Flink had read in a point must be found by a job with the new max parallelism: what a
state holds, by its backend's keys and by keys sent to it; its timers, which then fire; and its
windows, which close. `pytest -rP` shows how much that was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.bytes.real_savepoints import POINTS, Point
from support.flink.flink_points import (
    closed_rows,
    closed_windows,
    content,
    is_event_timer,
    is_timer,
    java_operators,
    misplaced,
    operator_state,
    row_of,
    true_content,
    true_rows,
    with_state,
    with_windows,
)
from support.flink.flink_restores import BACKENDS, FlinkRestores, Task
from support.flink.restore_table import RestoreTable
from support.golden import lines

from keygroups.errors import SavepointError
from keygroups.savepoint import (
    Savepoint,
    change_max_parallelism,
    convert_to_canonical,
    read_savepoint,
)

pytestmark = [
    pytest.mark.flink,
    pytest.mark.flink_since("1.20", "the API of its job"),
]

OWN: dict[str, int] = {line["name"]: line["maxParallelism"] for line in lines("savepoints")}
TARGETS = (64, 128, 129, 4096, 32768)
# Of these points nothing is rewritten, and of POJOs, whose hash is the job's, what divides 128.
REFUSED = {"unaligned-checkpoint": "in-flight data"}
QUICK = {
    *(("2.3.0-heap-canonical", 129), ("2.3.0-rocksinc-checkpoint", 4096)),
    *(("2.3.0-wide-canonical", 128), ("2.3.0-sqlheap-native", 32768)),
    *(("2.3.0-rowkey-native", 64), ("2.3.0-extrarocks-canonical", 129)),
    *(("2.3.0-pojo-canonical", 64), ("2.3.0-pyflink-canonical", 4096)),
    *(("1.20.5-snappyrocks-canonical", 129), ("1.14.6-heap-canonical", 4096)),
}
QUICK_WINDOWS = {("2.3.0-rocks-canonical", 129), ("2.3.0-extraheap-canonical", 4096)}
WITH_WINDOWS = {
    f"{name}-canonical"
    for name in ("heap", "rescaled", "rocks", "files", "wide", "extraheap", "extrarocks")
}


def is_refused(one: Point) -> bool:
    return any(one.name.endswith(name) for name in REFUSED)


def is_rewritten(one: Point, target: int) -> bool:
    """Tell whether a point is rewritten to a target: to its own, if it is not canonical."""
    own = OWN[one.name]
    if target == own:
        return one.kind != "canonical"
    return own % target == 0 or "pojo" not in one.name


def runs(points: list[Point], quick: set[tuple[str, int]]) -> list[Any]:
    """Return point, target, backend and parallelism; the latter two take turns."""
    found = []
    for number, (one, target) in enumerate(
        (one, target) for one in points for target in TARGETS if is_rewritten(one, target)
    ):
        # Flink cannot save what has nulls in a map of longs on the heap, its own or ours.
        backend = "rocksdb" if "extrarocks" in one.name else sorted(BACKENDS)[number % 2]
        parallelism = 1 + number % 5
        marks = [] if (one.name, target) in quick else [pytest.mark.slow]
        found.append(
            pytest.param(
                one, target, backend, parallelism, marks=marks, id=f"{one}-{target}-{backend}"
            )
        )
    return found


def rewritten(one: Point, target: int, folder: Path, cluster: FlinkRestores) -> Savepoint:
    """Rewrite a point, if the cluster is none of an older Flink than wrote it."""
    versions = [tuple(map(int, name.split("."))) for name in (one.flink, cluster.version)]
    if versions[0] > versions[1]:
        pytest.skip(f"Flink {cluster.version} does not restore what {one.flink} wrote")
    if "pojo" in one.name and versions[0][0] != versions[1][0]:
        pytest.skip("Kryo is another in Flink 1 and 2")
    if target == OWN[one.name]:
        convert_to_canonical(one.read(), folder / "rewritten")
    else:
        change_max_parallelism(one.read(), target, folder / "rewritten")
    return read_savepoint(folder / "rewritten")


@pytest.fixture(scope="module")
def table() -> Iterator[RestoreTable]:
    """What the tests here have compared with one Flink; `-rP` shows it with the last of them."""
    found = RestoreTable()
    yield found
    print(found)


@pytest.mark.parametrize(
    ("one", "target", "backend", "parallelism"),
    runs([one for one in POINTS if not is_refused(one)], QUICK),
)
def test_flink_finds_all_of_a_point(
    restores: FlinkRestores,
    one: Point,
    target: int,
    backend: str,
    parallelism: int,
    tmp_path: Path,
    table: RestoreTable,
) -> None:
    new = rewritten(one, target, tmp_path, restores)
    task = Task(new.path, java_operators(new), backend, parallelism, target, ends=True)
    restored = restores.restore(task)
    assert restored.refused is None
    assert {*restored.max_parallelisms.values()} == {target}
    expected = true_rows(one)
    kept = Counter({row: n for row, n in expected.items() if not is_timer(row)})
    fired = Counter({row: n for row, n in expected.items() if is_event_timer(row)})
    for way, rows in {"backend": expected, "keyed": kept, "fired": fired}.items():
        assert Counter(map(row_of, restored.found(way))) == rows
        assert not list(misplaced(restored.found(way), target, parallelism))
    own = restored.read()
    assert content(own, "at {}".format, new) == true_content(one)
    old = one.read()
    for operator in with_state(new):
        saved = own.operator(f"at {operator.operator_id}")
        assert saved.max_parallelism == target
        assert operator_state(saved) == operator_state(old.operator(operator.operator_id))
    states, keys = ({(row[0], row[part]) for row in expected} for part in (1, 3))
    counts = (len(states), len(keys), expected.total())
    table.add(restores.version, backend, parallelism, *counts)
    print(f"of {one} at max parallelism {target}; {fired.total():,} timers fired")


@pytest.mark.parametrize(
    ("one", "target", "backend", "parallelism"),
    runs([one for one in POINTS if one.name.split("-", 1)[1] in WITH_WINDOWS], QUICK_WINDOWS),
)
def test_windows_close(
    restores: FlinkRestores,
    one: Point,
    target: int,
    backend: str,
    parallelism: int,
    tmp_path: Path,
) -> None:
    new = rewritten(one, target, tmp_path, restores)
    operators, uids = with_windows(new)
    restored = restores.restore(Task(new.path, operators, backend, parallelism, target, ends=True))
    assert restored.refused is None
    expected = closed_windows(one, uids)
    assert expected
    assert closed_rows(restored.found("closed")) == expected
    closed = f"{expected.total():,} windows of {', '.join(uids.values())} closed"
    print(f"{restores.version} {backend}, parallelism {parallelism}: {closed}")


@pytest.mark.parametrize("one", [one for one in POINTS if is_refused(one)], ids=str)
def test_what_cannot_be_moved_is_refused(one: Point, tmp_path: Path) -> None:
    (reason,) = (REFUSED[name] for name in REFUSED if one.name.endswith(name))
    with pytest.raises(SavepointError, match=reason):
        change_max_parallelism(one.read(), 64, tmp_path / "rewritten")
    assert not list(tmp_path.iterdir())
