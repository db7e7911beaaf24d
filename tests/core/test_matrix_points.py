"""The points of `matrix_points.py`: every form of state of three versions, read and converted.

The whole product is there but for what a cell says a reason of, or Flink a refusal. By default so
many points are read that every pair of values is among them, of version, backend, API, timers and
kind; the rest is slow.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.bytes.matrix_points import (
    APIS,
    ASKED,
    BACKENDS,
    CELLS,
    IN_FLIGHT,
    KINDS,
    SERIALIZERS,
    TIMERS,
    UIDS,
    VERSIONS,
    Cell,
    expected,
    expected_operator_state,
    java_hash,
    line_of,
    operator_state,
    pairs,
    path_of,
    read,
    said,
    seen,
    selection,
    taken,
    uuid_of,
)
from support.bytes.version_points import KEYS

from keygroups import assign_to_key_group
from keygroups.errors import KeyGroupsError, SavepointError
from keygroups.savepoint import (
    change_max_parallelism,
    convert_to_canonical,
    operator_reports,
    read_savepoint,
)
from keygroups.types import HASHED, STRING, UUID

pytest.importorskip("cramjam", reason="blocks are compressed: the extra savepoint")

QUICK = {cell.name for cell in selection()}
CANNOT = {"forst": "does not support CANONICAL savepoints", "": "Not supported yet."}
of_cells = pytest.mark.parametrize(
    "cell",
    [
        pytest.param(cell, id=cell.name, marks=[] if cell.name in QUICK else pytest.mark.slow)
        for cell in taken()
    ],
)


def test_each_cell_has_a_point_or_a_reason() -> None:
    assert len(CELLS) == len(VERSIONS) * len(BACKENDS) * len(APIS) * len(TIMERS) * len(KINDS)
    assert said().keys() == {cell.name for cell in ASKED}
    for cell in ASKED:
        refused = said()[cell.name]["refused"]
        if cell.kind == "canonical" and (cell.backend == "forst" or cell.api == "async"):
            assert refused.endswith(CANNOT[cell.backend if cell.backend == "forst" else ""])
        else:
            assert refused is None
            assert (path_of(cell) / "_metadata").is_file()
    assert len(taken()) == len(ASKED) - 9 == 100


def test_the_selection_has_each_pair_of_values() -> None:
    """What is in no point at all has a reason, or Flink's refusal."""
    found = {pair for cell in selection() for pair in pairs(cell)}
    assert found == {pair for cell in taken() for pair in pairs(cell)}
    for missing in {pair for cell in CELLS for pair in pairs(cell)} - found:
        for cell in CELLS:
            if missing in pairs(cell):
                assert cell.reason() is not None or said()[cell.name]["refused"] is not None
    assert len(selection()) < len(taken()) / 3


@of_cells
def test_read_whole(cell: Cell) -> None:
    """Each entry, in the key group of its key, and what is found by the key; operator state."""
    savepoint = read(cell)
    entries = expected(cell)
    assert seen(savepoint) == entries
    assert operator_state(savepoint.operator("events")) == expected_operator_state()
    for uid in UIDS:
        groups = {(entry.key, entry.key_group) for entry in savepoint.operator(uid).entries()}
        assert groups == {(KEY_OF[uid](key), _group_of(uid, key, 128)) for key in KEYS}
        got = savepoint.operator(uid).get(KEY_OF[uid]("ключ"))
        assert got.keys() == {one[0] for one in entries[uid] if one[2] == KEY_OF[uid]("ключ")}
    for report in operator_reports(savepoint):
        assert report.unknown_keys is None


def _same(key: str) -> Any:
    return key


KEY_OF: dict[str, Callable[[str], Any]] = {
    "plain": _same,
    "lines": _same,
    "by-uuid": uuid_of,
    "by-line": line_of,
}


def _group_of(uid: str, key: str, max_parallelism: int) -> int:
    if uid == "by-line":
        code = (java_hash(key) ^ 1 << 31) - (1 << 31)
        return assign_to_key_group(code, max_parallelism, key_type=HASHED)
    key_type = UUID if uid == "by-uuid" else STRING
    return assign_to_key_group(KEY_OF[uid](key), max_parallelism, key_type=key_type)


@of_cells
def test_converted(cell: Cell, tmp_path: Path) -> None:
    """All of it stays, and is compared as the same; what is in flight is refused by its name."""
    old = read(cell)
    if cell.kind == IN_FLIGHT:
        with pytest.raises(
            SavepointError, match=r"operator slow .* bytes in 1 channels .* of in-flight data"
        ):
            convert_to_canonical(old, tmp_path / "new")
        assert not (tmp_path / "new").exists()
        return
    convert_to_canonical(old, tmp_path / "new")
    new = read_savepoint(tmp_path / "new", serializers=SERIALIZERS)
    assert seen(new) == expected(cell)
    assert operator_state(new.operator("events")) == expected_operator_state()
    assert not old.compare(new).has_differences


REKEYED = ("plain", "lines", "by-uuid")


@pytest.mark.parametrize("cell", selection(), ids=lambda cell: cell.name)
def test_keyed_anew(cell: Cell, tmp_path: Path) -> None:
    """Operators whose keys are known; that of the job's own keys is refused by its name."""
    if cell.kind == IN_FLIGHT:
        return
    with pytest.raises(KeyGroupsError, match=r"operator by-line .* whose hash is not known"):
        change_max_parallelism(read(cell), 200, tmp_path / "all")
    change_max_parallelism(read(cell), 200, tmp_path / "new", operators=[*REKEYED, "events"])
    new = read_savepoint(tmp_path / "new", serializers=SERIALIZERS)
    assert seen(new) == expected(cell)
    for uid in REKEYED:
        groups = {(entry.key, entry.key_group) for entry in new.operator(uid).entries()}
        assert groups == {(KEY_OF[uid](key), _group_of(uid, key, 200)) for key in KEYS}
