"""`change_max_parallelism` on Spark writes what the local one writes, file by file.

The local one is held against Flink in test_flink_max_parallelism.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.bytes.real_savepoints import point
from support.selections import first_by_default

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from pyspark.sql import SparkSession

from keygroups import savepoint as local
from keygroups.errors import InvalidTypeError, InvalidValueError, ParallelismError, SavepointError
from keygroups.savepoint import Savepoint, SavepointWriter, read_savepoint
from keygroups.spark import change_max_parallelism, edit_savepoint

POINTS = [
    pytest.param(name, marks=[] if index < 1 else [pytest.mark.slow], id=name)
    for index, name in enumerate(
        [
            "2.3.0-rocksinc-checkpoint",
            "1.20.5-heap-native",
            "1.20.5-snappy-canonical",
            "2.3.0-extrarocks-canonical",
            "2.3.0-rowkey-canonical",
            "2.3.0-sqlheap-canonical",
            "2.3.0-wide-canonical",
        ]
    )
]


def keyed_bytes(savepoint: Savepoint) -> list[tuple[str, int, Any, bytes]]:
    """Return the bytes of all keyed state, with where their key groups start."""
    streams = []
    for operator in savepoint.metadata.operators:
        for subtask in operator.subtasks:
            handle: Any = subtask.managed_keyed
            if handle is not None:
                with savepoint.files.open(handle.stream) as stream:
                    data = stream.read(0, stream.size)
                streams.append((operator.operator_id, subtask.index, handle.offsets, data))
    return streams


@pytest.mark.parametrize("name", POINTS)
@pytest.mark.parametrize(("groups", "parallelism"), first_by_default(1, [(64, 2), (8192, None)]))
def test_it_writes_what_the_local_one_writes(
    spark: SparkSession, tmp_path: Path, name: str, groups: int, parallelism: int | None
) -> None:
    saved = point(name)
    a, b = tmp_path / "a", tmp_path / "b"
    report = change_max_parallelism(spark, saved.path, groups, a, parallelism, moved=saved.moved)
    expected = local.change_max_parallelism(saved.read(), groups, b, parallelism)
    assert report.operators == expected.operators
    assert any(state.entries for operator in report.operators for state in operator.written)
    written = keyed_bytes(read_savepoint(a))
    assert written == keyed_bytes(read_savepoint(b))
    assert sum(len(data) for *_, data in written) > 1000


@pytest.mark.parametrize("name", POINTS[:1])
def test_other_edits_in_the_same_pass(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """Their tasks send the entries to the new subtasks, as the local one sorts them."""
    saved = point(name)
    key = next(saved.read().operator("by-string").entries(["label"])).key
    spark_editor = edit_savepoint(spark, saved.path, tmp_path / "a", saved.moved)
    local_editor = SavepointWriter.from_existing_savepoint(saved.read(), tmp_path / "b")
    for editor in (spark_editor, local_editor):
        with editor as writer:
            writer.set_max_parallelism(4096, parallelism=2, operators=["by-string"])
            writer.convert_to_canonical()
            by_string = writer.operator("by-string")
            by_string.delete_keys([key])
            by_string.map_entries("count", lambda entry: entry._replace(key=f"{entry.key}!"))
            by_string.map_batches("sum", lambda batch: batch.slice(1).select(["row", "value"]))
    assert spark_editor.report().operators == local_editor.report().operators
    [edited] = [one for one in spark_editor.report().operators if one.deleted_keys is not None]
    assert (edited.new_max_parallelism, edited.parallelism) == (4096, 2)
    assert any(state.changed for state in edited.states)
    assert any(state.deleted for state in edited.states)
    assert keyed_bytes(read_savepoint(tmp_path / "a")) == keyed_bytes(
        read_savepoint(tmp_path / "b")
    )


def test_what_is_refused_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    saved = point("1.20.5-pojo-canonical")
    new = tmp_path / "new"
    with pytest.raises(SavepointError, match="the new max parallelism must be a divisor of 128"):
        change_max_parallelism(spark, saved.path, 129, new)
    with pytest.raises(ParallelismError, match="new_max_parallelism must be from 1 to 32768"):
        change_max_parallelism(spark, saved.path, 0, new)
    with pytest.raises(ParallelismError, match="parallelism must be from 1 to 64"):
        change_max_parallelism(spark, saved.path, 64, new, parallelism=65)
    with pytest.raises(InvalidValueError, match="got 'nobody'"):
        change_max_parallelism(spark, saved.path, 64, new, operators=["nobody"])
    with pytest.raises(InvalidValueError, match=r"uids must be of .* got 'nobody', which no oper"):
        change_max_parallelism(spark, saved.path, 64, new, uids=["nobody"])
    with pytest.raises(InvalidValueError, match=r"uids must be of .* got 'nobody', which no oper"):
        edit_savepoint(spark, saved.path, new, uids=["nobody"])
    with pytest.raises(InvalidValueError, match="output must be outside the savepoint"):
        change_max_parallelism(spark, saved.path, 64, saved.path / "new")
    with pytest.raises(InvalidValueError, match="new_max_parallelism 128 changes nothing"):
        change_max_parallelism(spark, saved.path, 128, new)
    with pytest.raises(InvalidTypeError, match="spark must be a SparkSession"):
        change_max_parallelism(None, saved.path, 64, new)  # type: ignore[arg-type]  # on purpose
    assert not list(tmp_path.iterdir())
