"""The points of `version_points.py`, converted or with other key groups, restored by real Flink.

Old SST files, asynchronous state, and compressed operator state of which Flink itself restores
nothing: each entry and each element is found by a job on another backend, and saved again.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from support.bytes.version_points import ASYNC, OLD, content, expected, path_of
from support.flink.flink_points import java_operators, misplaced, operator_state, with_state
from support.flink.flink_restores import BACKENDS, FlinkRestores, Task

from keygroups.savepoint import (
    OperatorId,
    SavepointEditor,
    change_max_parallelism,
    convert_to_canonical,
    read_savepoint,
)

pytestmark = [pytest.mark.flink, pytest.mark.flink_since("2.3", "newest of the points")]

QUICK = ("1.13.6-rocksdb-checkpoint", "1.18.0-hashmap-compressed-checkpoint", ASYNC[0])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow)
        for name in (*OLD, *ASYNC)
    ],
)
def test_flink_finds_all(restores: FlinkRestores, name: str, backend: str, tmp_path: Path) -> None:
    target, parallelism = (128, 3) if backend == "hashmap" else (64, 1)
    if target == 128:
        convert_to_canonical(path_of(name), tmp_path / "new")
    else:
        change_max_parallelism(path_of(name), target, tmp_path / "new")
    old, new = read_savepoint(path_of(name)), read_savepoint(tmp_path / "new")
    if name in OLD:  # The class of their sink is in another package in Flink 2.
        with SavepointEditor(new, tmp_path / "without") as editor:
            editor.remove_operator("sink")
        new = read_savepoint(tmp_path / "without")
    task = Task(new.path, java_operators(new), backend, parallelism, target)
    restored = restores.restore(task)
    assert restored.refused is None
    assert restored.unsaved is None
    rows = [*restored.found("backend")]
    assert Counter(row["state"] for row in rows) == Counter(
        row[0] for entries in expected(name).values() for row in entries.elements()
    )
    assert not [*misplaced(rows, target, parallelism)]
    own = restored.read()
    for uid, entries in expected(name).items():
        assert content(own.operator(f"at {OperatorId.of_uid(uid)}")) == entries
    elements = 0
    for operator in with_state(new):
        present = operator_state(old.operator(operator.operator_id))
        assert operator_state(own.operator(f"at {operator.operator_id}")) == present
        elements += sum(map(len, present.values()))
    print(f"{restores.version} {backend}: {name}, {len(rows)} entries, {elements} elements")
