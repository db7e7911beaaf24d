"""Routing in Structured Streaming: files in, files out, a stop and a restart between."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import keygroups
from keygroups.spark import functions as KF
from keygroups.spark import repartition_by_subtask, with_routing
from keygroups.types import INT, STRING, TUPLE

RECORDS_PER_FILE = 50
DEADLINE = 60  # seconds for what takes one or two


def drop_file(directory: Path, number: int) -> None:
    """Put a file of events where the stream looks, complete from its first moment there."""
    events = [
        {"n": n, "user": f"user-{n % 37}" if n % 7 else None, "item": n % 5}
        for n in range(number * RECORDS_PER_FILE, (number + 1) * RECORDS_PER_FILE)
    ]
    hidden = directory / f".{number}"
    hidden.write_text("".join(json.dumps(event) + "\n" for event in events))
    hidden.rename(directory / f"{number}.json")


def events(spark: SparkSession, directory: Path) -> DataFrame:
    reader = spark.readStream.schema("n int, user string, item int")
    return reader.option("maxFilesPerTrigger", 1).json(str(directory))


def wait_for(commits: Path, count: int) -> None:
    """Wait until so many micro-batches are in the checkpoint."""
    deadline = time.monotonic() + DEADLINE
    while len([path for path in commits.glob("*") if path.name.isdigit()]) < count:
        assert time.monotonic() < deadline, f"no {count} batches within {DEADLINE} seconds"
        time.sleep(0.05)


@pytest.mark.slow
def test_every_record_is_routed_once_across_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    source, sink, checkpoint = (tmp_path / name for name in ("source", "sink", "checkpoint"))
    source.mkdir()
    tuple_key_group = KF.assign_to_key_group(["user", "item"], 720, TUPLE(STRING, INT))
    routed = with_routing(events(spark, source), "user", 128, 7)
    writer = (
        routed.withColumn("tuple_key_group", tuple_key_group)
        .writeStream.format("parquet")
        .option("path", str(sink))
        .option("checkpointLocation", str(checkpoint))
    )
    for number in range(5):
        drop_file(source, number)
    query = writer.start()
    wait_for(checkpoint / "commits", 1)
    query.stop()  # a batch may be under way, or files left over
    assert query.exception() is None
    for number in range(5, 7):
        drop_file(source, number)
    query = writer.start()
    query.processAllAvailable()
    query.stop()

    rows = spark.read.parquet(str(sink)).collect()
    assert sorted(row["n"] for row in rows) == list(range(7 * RECORDS_PER_FILE))
    for row in rows:
        user = row["user"]
        if user is None:
            assert row["key_group"] is row["subtask"] is None
        else:
            assert row["key_group"] == keygroups.assign_to_key_group(user, 128)
            assert row["subtask"] == keygroups.assign_key_to_parallel_operator(user, 128, 7)
        assert row["tuple_key_group"] == keygroups.assign_to_key_group(
            (user, row["item"]), 720, TUPLE(STRING, INT)
        )


@pytest.mark.long
def test_placement_of_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    source, sink, checkpoint = (tmp_path / name for name in ("source", "sink", "checkpoint"))
    source.mkdir()
    stream = events(spark, source).where("user is not null")
    placed = repartition_by_subtask(stream, "user", 128, 7)
    assert placed.isStreaming
    writer = (
        placed.withColumn("partition", F.spark_partition_id())
        .writeStream.format("parquet")
        .option("path", str(sink))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
    )
    for numbers in ([0, 1], [2]):
        for number in numbers:
            drop_file(source, number)
        assert writer.start().awaitTermination(DEADLINE)
    rows = spark.read.parquet(str(sink)).collect()
    assert sorted(row["n"] for row in rows) == [n for n in range(3 * RECORDS_PER_FILE) if n % 7]
    for row in rows:
        subtask = keygroups.assign_key_to_parallel_operator(row["user"], 128, 7)
        assert row["partition"] == subtask


def test_null_key_fails_a_placed_stream(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    drop_file(source, 0)
    placed = repartition_by_subtask(events(spark, source), "user", 128, 7)
    writer = placed.writeStream.format("noop")
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    with pytest.raises(Exception, match="key must not be null, which Flink refuses"):
        query.processAllAvailable()
    query.stop()
