"""The points of `matrix_points.py`, converted, restored by real Flink with the job's class.

A job finds in its backend what the job that was saved had put there, and saves it again. Flink 2
has another Kryo than Flink 1, whose bytes it does not read: of a point of Flink 1 it restores what
is without Kryo, and Flink 1 all (`FLINK_VERSION=1.18.1`, or another of 1.18 to 1.20).
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from flink_oracle import version_numbers
from flink_points import java_operators, misplaced, operator_state, row_of
from flink_restores import BACKENDS, FlinkRestores, Task
from matrix_points import (
    IN_FLIGHT,
    LINE,
    MAX_PARALLELISM,
    SERIALIZERS,
    UIDS,
    Cell,
    expected,
    read,
    taken,
)
from version_points import content

from keygroups.savepoint import (
    Pojo,
    SavepointEditor,
    convert_to_canonical,
    read_savepoint,
)
from keygroups.savepoint._metadata.handles import operator_id_of

pytestmark = [pytest.mark.flink, pytest.mark.flink_since("1.18", "a later one than of the points")]

QUICK = {
    "1.13.6-rocksdb-full-sync-heap-checkpoint",
    "1.18.1-hashmap-sync-own-unaligned",
    "2.3.0-hashmap-sync-own-native",
    "2.3.0-rocksdb-async-heap-merging",
}
CONVERTED = [cell for cell in taken() if cell.kind != IN_FLIGHT]
WITH_KRYO = ("lines", "by-uuid", "by-line")


def java(value: Any) -> Any:
    """Return a value as `StateJson.java` writes it; all numbers here are longs."""
    if isinstance(value, tuple):
        return {"list": [java(element) for element in value]}
    if isinstance(value, Pojo):
        return {"class": LINE, "text": f"{value.sku}={value.amount}"}
    if isinstance(value, UUID):
        return {"class": "java.util.UUID", "text": str(value)}
    return {"long": value} if isinstance(value, int) else value


def rows_of(cell: Cell, uids: tuple[str, ...]) -> Counter[Any]:
    """Return what jobs find, by the rule of the job that was saved."""
    return Counter(
        row_of(
            {
                "operator": operator_id_of(uid),
                "state": state,
                "kind": kind,
                "key": java(key),
                "namespace": {"void": True},
                "user_key": java(user_key),
                "value": java(value),
                "timestamp": timestamp,
            }
        )
        for uid in uids
        for state, kind, key, _, user_key, value, timestamp, _ in expected(cell)[uid].elements()
    )


def is_quick(cell: Cell, backend: str) -> bool:
    return cell.name in QUICK and backend == ("rocksdb" if "hashmap" in cell.name else "hashmap")


@pytest.mark.parametrize(
    ("cell", "backend"),
    [
        pytest.param(
            cell,
            backend,
            id=f"{cell.name}-{backend}",
            marks=[] if is_quick(cell, backend) else pytest.mark.slow,
        )
        for cell in CONVERTED
        for backend in BACKENDS
    ],
)
def test_flink_finds_all(
    restores: FlinkRestores, cell: Cell, backend: str, tmp_path: Path
) -> None:
    flink, wrote = version_numbers(restores.version), version_numbers(cell.version)
    if flink < wrote:
        pytest.skip(f"Flink {restores.version} restores no point of {cell.version}")
    convert_to_canonical(read(cell), tmp_path / "new")
    new = read_savepoint(tmp_path / "new", serializers=SERIALIZERS)
    has_kryo = flink[0] == wrote[0]
    if not has_kryo:
        with SavepointEditor(new, tmp_path / "without") as editor:
            for uid in WITH_KRYO:
                editor.remove_operator(uid)
            for state in ("lines", "rules"):
                editor.operator("events").remove_operator_state(state)
        new = read_savepoint(tmp_path / "without")
    uids = UIDS if has_kryo else ("plain",)
    task = Task(new.path, java_operators(new), backend, 3, MAX_PARALLELISM)
    restored = restores.restore(task)
    assert restored.refused is None
    assert restored.unsaved is None
    rows = [*restored.found("backend")]
    assert Counter(map(row_of, rows)) == rows_of(cell, uids)
    assert not [*misplaced(rows, MAX_PARALLELISM, 3)]
    assert restored.path is not None
    own = read_savepoint(restored.path, serializers=SERIALIZERS)
    for uid in uids:
        assert content(own.operator(f"at {operator_id_of(uid)}")) == expected(cell)[uid]
    there = operator_state(own.operator(f"at {operator_id_of('events')}"))
    states = {name for name, _ in there}
    assert states == {"offsets", "names", *(("lines", "rules") if has_kryo else ())}
    old = operator_state(read(cell).operator("events"))  # see core/test_matrix_points.py
    assert there == {key: value for key, value in old.items() if key[0] in states}
    print(f"{restores.version} {backend}: {cell.name}, {len(rows)} entries")
