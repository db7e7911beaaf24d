"""Windows and timers that keygroups writes, restored by real Flink, where they end as computed.

Watermarks come one after the other; what ends writes down after which. Then the job takes a
savepoint, in which the windows are that have not been cleared. `pytest -rP` shows how many.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from support.bytes.framed_entries import framed_entries
from support.flink.flink_restores import FlinkRestores, Task
from support.flink.written_windows import (
    CONTENTS,
    FUTURE,
    MARKS,
    START,
    ended_rows,
    timer_operator,
    window_operators,
)

from keygroups.savepoint import Operator, Savepoint, SavepointWriter, read_savepoint

pytestmark = [
    pytest.mark.flink,
    pytest.mark.flink_since("1.17", "the API of its job"),
]
RUNS = [
    (128, 2, "hashmap", 3),
    (4096, 5, "rocksdb", 2),
    (128, 1, "rocksdb", 1),
    (720, 3, "hashmap", 4),
]
QUICK = RUNS[:2]


def runs() -> list[Any]:
    """Return max parallelism, parallelism as written, backend and parallelism of the job."""
    return [pytest.param(*one, marks=[] if one in QUICK else [pytest.mark.slow]) for one in RUNS]


def bytes_of(operator: Operator) -> dict[Any, list[tuple[bytes, bytes]]]:
    """Return the bytes of the entries of each key group and state."""
    found: dict[Any, list[tuple[bytes, bytes]]] = defaultdict(list)
    for task in operator.tasks():
        for entry in framed_entries(task):
            place = (entry.key_group, entry.state)
            found[place].append((entry.encoded_key, entry.encoded_value))
    return {place: sorted(entries) for place, entries in found.items()}


def windows_of(savepoint: Savepoint, uid: str) -> dict[tuple[str, Any], Any]:
    entries = savepoint.operator(uid).entries({CONTENTS})
    return {(entry.key, entry.namespace): entry.value for entry in entries}


@pytest.mark.parametrize(("max_parallelism", "written", "backend", "parallelism"), runs())
def test_windows_end_as_computed(
    restores: FlinkRestores,
    max_parallelism: int,
    written: int,
    backend: str,
    parallelism: int,
    tmp_path: Path,
) -> None:
    operators = window_operators(max_parallelism)
    path = tmp_path / "windows"
    with SavepointWriter(path) as writer:
        for operator in operators:
            operator.write(writer, max_parallelism, written)
    ends: Counter[Any] = Counter()
    at_once = 0
    for operator in operators:
        ends.update(operator.seen(*one) for one in operator.ends())
        at_once += sum(mark == START for mark, *_ in operator.ends())
    task = Task(
        path,
        [operator.task() for operator in operators],
        backend,
        parallelism,
        max_parallelism,
        watermarks=MARKS,
        at_once=at_once,
        closed=ends.total(),
    )
    restored = restores.restore(task)
    assert restored.refused is None
    assert ended_rows(restored.found("closed")) == ends
    ours, own = read_savepoint(path), restored.read()
    assert restored.later is not None
    later = read_savepoint(restored.later)
    for operator in operators:
        rest = operator.left()
        assert windows_of(later, operator.uid) == rest
        if "count" not in operator.uid and "clock" not in operator.uid:
            # What Flink restored it saves as it was: timers and sets of sessions too.
            assert bytes_of(own.operator(operator.uid)) == bytes_of(ours.operator(operator.uid))
        timers = {
            (entry.key, entry.namespace)
            for entry in later.operator(operator.uid).entries()
            if entry.timestamp is not None
        }
        assert timers == {place for place in rest if "count" not in operator.uid}
    uids = ", ".join(operator.uid for operator in operators)
    print(
        f"{restores.version} {backend}, parallelism {parallelism}, max {max_parallelism}: "
        f"{sum(len(one.contents) for one in operators):,} windows of {uids}; "
        f"{ends.total():,} ended"
    )


@pytest.mark.parametrize(("max_parallelism", "written", "backend", "parallelism"), runs())
def test_timers_fire_as_computed(
    restores: FlinkRestores,
    max_parallelism: int,
    written: int,
    backend: str,
    parallelism: int,
    tmp_path: Path,
) -> None:
    operator = timer_operator(max_parallelism)
    operator.write(tmp_path / "timers", max_parallelism, written)
    fires = operator.fires()
    task = Task(
        tmp_path / "timers",
        [operator.task()],
        backend,
        parallelism,
        max_parallelism,
        watermarks=MARKS,
        closed=fires.total(),
    )
    restored = restores.restore(task)
    assert restored.refused is None
    domains = {"event": "EVENT_TIME", "processing": "PROCESSING_TIME"}
    found: Counter[Any] = Counter()
    for row in restored.found("fired"):
        domain = domains[row["state"][len("_timer_state/") :].split("_")[0]]
        mark = row["watermark"] if domain == "EVENT_TIME" else -(2**63)
        found[mark, row["key"], domain, row["timestamp"]] += 1
    assert found == fires
    assert restored.later is not None
    rest = {
        (entry.key, entry.timestamp)
        for entry in read_savepoint(restored.later).operator("timers").entries()
        if entry.timestamp is not None
    }
    assert rest == {
        (key, timestamp)
        for key, domain, timestamp in operator.timers
        if timestamp >= (FUTURE if domain == "PROCESSING_TIME" else MARKS[-1] + 1)
    }
    print(
        f"{restores.version} {backend}, parallelism {parallelism}, max {max_parallelism}: "
        f"{len(operator.timers):,} timers; {fires.total():,} fired"
    )
