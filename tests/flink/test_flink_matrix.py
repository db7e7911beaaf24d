"""The points of `matrix_points.py`, converted, restored by real Flink with the job's class.

A job finds in its backend what the job that was saved had put there, and saves it again. Flink 2
has another Kryo than Flink 1, whose bytes it does not read: of a point of Flink 1 it restores what
is without Kryo, and Flink 1 all (`FLINK_VERSION=1.18.1`, or another of 1.18 to 1.20).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.bytes.matrix_points import (
    IN_FLIGHT,
    MAX_PARALLELISM,
    SERIALIZERS,
    UIDS,
    Cell,
    expected,
    read,
    taken,
)
from support.flink.flink_oracle import version_numbers
from support.flink.flink_points import operator_state
from support.flink.flink_restores import BACKENDS, FlinkRestores
from support.flink.matrix_restores import restored

from keygroups.savepoint import (
    OperatorId,
    SavepointEditor,
    convert_to_canonical,
    read_savepoint,
)

pytestmark = [pytest.mark.flink, pytest.mark.flink_since("1.18", "a later one than of the points")]

QUICK = {
    "1.13.6-rocksdb-full-sync-heap-checkpoint",
    "1.18.1-hashmap-sync-own-unaligned",
    "2.3.0-hashmap-sync-own-native",
    "2.3.0-rocksdb-async-heap-merging",
}
CONVERTED = [cell for cell in taken() if cell.kind != IN_FLIGHT]
WITH_KRYO = ("lines", "by-uuid", "by-line")


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
    contents = {uid: expected(cell)[uid] for uid in (UIDS if has_kryo else ("plain",))}
    own = restored(restores, new, contents, backend, MAX_PARALLELISM)
    present = operator_state(own.operator(f"at {OperatorId.of_uid('events')}"))
    states = {name for name, _ in present}
    assert states == {"offsets", "names", *(("lines", "rules") if has_kryo else ())}
    old = operator_state(read(cell).operator("events"))  # see core/test_matrix_points.py
    assert present == {key: value for key, value in old.items() if key[0] in states}
