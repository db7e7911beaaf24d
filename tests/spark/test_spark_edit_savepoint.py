"""`edit_savepoint` on Spark writes what the local editor writes, stream by stream.

The local one is held against a model, and against Flink, by the tests of its own.
"""

from __future__ import annotations

import pickle
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from support.bytes.real_savepoints import point
from support.selections import first_by_default

from keygroups.errors import InvalidTypeError, InvalidValueError
from keygroups.savepoint import (
    DELETE,
    KafkaOffsets,
    KafkaSplit,
    Savepoint,
    SavepointEditor,
    SavepointWriter,
    StateEntry,
    read_savepoint,
)
from keygroups.spark import (
    KeyedState,
    ValueState,
    edit_savepoint,
    kafka_offsets,
    write_savepoint,
)
from keygroups.spark._savepoint import cluster
from keygroups.spark._savepoint.results import TaskRunner
from keygroups.types import LONG, STRING

pa: Any = pytest.importorskip("pyarrow")

from support.inside.columns import ClusterEditor  # noqa: E402


def streams_of(savepoint: Savepoint) -> dict[tuple[str, int], tuple[Any, bytes]]:
    """Return the bytes of all keyed state, with where their key groups start."""
    streams = {}
    for operator in savepoint.metadata.operators:
        for subtask in operator.subtasks:
            handle: Any = subtask.managed_keyed
            if handle is not None:
                with savepoint.files.open(handle.stream) as stream:
                    data = stream.read(0, stream.size)
                streams[operator.operator_id, subtask.index] = (handle.offsets, data)
    return streams


def edit(writer: SavepointEditor) -> None:
    """Use every verb of keyed state; entries of a state get other keys, and so other subtasks."""
    more = 1_000

    def moved(entry: StateEntry) -> Any:
        if entry.value % 3 == 0:
            return DELETE
        if entry.value % 3 == 1:
            return entry.value + more  # it is pickled with it
        return entry._replace(key=f"{entry.key}!")

    by_string = writer.operator("by-string")
    keys = sorted({entry.key for entry in point(NAME).read().operator("by-string").entries()})
    by_string.delete_keys(keys[::5])
    by_string.map_entries("count", moved)
    by_string.rename_state("sum", "total")
    by_string.map_batches("total", lambda batch: batch.slice(more % 3).select(["row", "value"]))
    by_string.remove_state("flag")
    by_string.set_ttl("avg", last_access=1_700_000_000_000)
    by_string.set_ttl("label", has_ttl=False)
    writer.operator("session").delete_keys(keys[1::5])
    writer.remove_operator("by-int")
    writer.change_operator_identifier("by-long", "by-number")


NAME = "2.3.0-heap-canonical"


@pytest.mark.long
def test_it_writes_what_the_local_one_writes(spark: SparkSession, tmp_path: Path) -> None:
    saved = point(NAME)
    with edit_savepoint(spark, saved.path, tmp_path / "a") as ours:
        edit(ours)
    with SavepointWriter.from_existing_savepoint(saved.read(), tmp_path / "b") as local:
        edit(local)
    a, b = read_savepoint(tmp_path / "a"), read_savepoint(tmp_path / "b")
    assert streams_of(a) == streams_of(b)
    assert ours.report().operators == local.report().operators
    assert len(list((tmp_path / "a").iterdir())) == len(list((tmp_path / "b").iterdir()))
    [edited] = [op for op in ours.report().operators if op.operator == "by-string"]
    [count] = [state for state in edited.states if state.state == "count"]
    assert min(count.changed or 0, count.deleted or 0) > 5
    values = [entry.value for entry in a.operator("by-string").entries(["count"])]
    assert any(value > 1_000 for value in values)


@pytest.mark.parametrize(
    "name", first_by_default(0, ["2.3.0-rocksinc-checkpoint", "1.20.5-changelog-checkpoint"])
)
def test_it_edits_other_formats(spark: SparkSession, tmp_path: Path, name: str) -> None:
    saved = point(name)
    with edit_savepoint(spark, saved.path, tmp_path / "new", saved.moved) as writer:
        writer.operator("by-string").map_entries("count", lambda entry: entry.value * 2)
    before, after = saved.read().operator("by-string"), read_savepoint(tmp_path / "new")
    expected = Counter((entry.key, entry.value * 2) for entry in before.entries(["count"]))
    entries = after.operator("by-string").entries(["count"])
    assert Counter((entry.key, entry.value) for entry in entries) == expected


@pytest.mark.long
def test_what_fails_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """An error of the function's own is in Spark's; what it returns is checked as it is here."""
    saved = point(NAME)

    def fail(entry: StateEntry) -> Any:
        raise ZeroDivisionError(entry.key)

    with (
        pytest.raises(PySparkException, match="ZeroDivisionError: user-"),
        edit_savepoint(spark, saved.path, tmp_path / "new") as writer,
    ):
        writer.operator("by-string").map_entries("count", fail)
    with (
        pytest.raises(InvalidTypeError, match="must be an int, got 'x'"),
        edit_savepoint(spark, saved.path, tmp_path / "new") as writer,
    ):
        writer.operator("by-string").map_entries("count", lambda entry: "x")
    assert not list(tmp_path.iterdir())
    with pytest.raises(InvalidTypeError, match="spark must be a SparkSession"):
        edit_savepoint(None, saved.path, tmp_path / "new")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(InvalidValueError, match="output must be outside"):
        edit_savepoint(spark, saved.path, saved.path / "new")
    with pytest.raises(InvalidValueError, match="must be left out for a Savepoint"):
        edit_savepoint(spark, saved.read(), tmp_path / "new", allow=["/old"])


def test_a_task_that_is_tried_twice_leaves_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Spark: each task is run twice, as a speculative one, and pickled before."""
    saved = point(NAME)

    def run_twice(spark: object, tasks: Any) -> list[Any]:
        results = []
        for task in tasks:
            run = pickle.loads(pickle.dumps(TaskRunner((task,))))
            first, second = list(run([numbers])), list(run([numbers]))
            assert first != second
            [batch] = second
            results.append(pickle.loads(batch.column(0)[0].as_py()))
        return results

    numbers = pa.RecordBatch.from_arrays([pa.array([0])], ["id"])
    monkeypatch.setattr(cluster, "run_tasks", run_twice)
    monkeypatch.setattr(cluster, "described", lambda *_: nullcontext())
    spark: Any = None  # only code that is replaced here would ask it
    editor = ClusterEditor(saved.read(), tmp_path / "a", cluster.SparkCluster(spark))
    with editor as writer:
        writer.operator("by-string").map_entries("count", exclaim)
    with SavepointWriter.from_existing_savepoint(saved.read(), tmp_path / "b") as local:
        local.operator("by-string").map_entries("count", exclaim)
    assert streams_of(read_savepoint(tmp_path / "a")) == streams_of(read_savepoint(tmp_path / "b"))
    assert len(list((tmp_path / "a").iterdir())) == len(list((tmp_path / "b").iterdir()))


def exclaim(entry: StateEntry) -> Any:
    return entry._replace(key=f"{entry.key}!")


# --- where a source goes on ---------------------------------------------------------------


@pytest.mark.long
def test_offsets_of_a_dataframe_are_where_the_source_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = [("clicks", 0, 4711), ("clicks", 1, 0), ("views", 0, 2**63 - 1)]
    df = spark.createDataFrame(rows, "topic string, partition int, offset bigint")
    offsets = kafka_offsets(df)
    assert offsets == KafkaOffsets({(topic, number): offset for topic, number, offset in rows})
    users = spark.createDataFrame([("ann", 7)], "user string, n bigint")
    count = KeyedState(None, "user", STRING, {"count": ValueState("n", LONG)})
    savepoint = write_savepoint(
        users, tmp_path / "new", {"by-user": count, "clicks": offsets}, 128, 2
    )
    assert [entry.value for entry in savepoint.operator("by-user").entries()] == [7]
    splits = savepoint.operator("clicks").source_splits().splits
    seen = [tuple(split)[:3] for split in splits if isinstance(split, KafkaSplit)]
    assert sorted(seen) == rows


@pytest.mark.long
@pytest.mark.parametrize(
    ("schema", "rows", "cls", "message"),
    [
        ("topic string, number int", [], Exception, "partition"),
        (
            "topic int, partition int, offset bigint",
            [],
            InvalidTypeError,
            "topic must be string, got",
        ),
        (
            "topic string, partition int, offset double",
            [],
            InvalidTypeError,
            "offset must be tinyint or smallint or int or bigint, got",
        ),
        (
            "topic string, partition int, offset bigint",
            [("a", 0, 5), ("a", 0, 6)],
            InvalidValueError,
            r"each partition once, got 2 rows of \('a', 0\): of records take max",
        ),
        (
            "topic string, partition int, offset bigint",
            [("a", 0, None)],
            InvalidTypeError,
            "offsets of .* must be an int, got None",
        ),
    ],
)
def test_offsets_that_are_none_are_refused(
    spark: SparkSession,
    schema: str,
    rows: list[tuple[Any, ...]],
    cls: type[Exception],
    message: str,
) -> None:
    with pytest.raises(cls, match=message):
        kafka_offsets(spark.createDataFrame(rows, schema))
