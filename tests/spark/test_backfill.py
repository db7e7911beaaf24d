"""The example examples/backfill.py, run for real and checked against plain Python."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from keygroups.savepoint import KafkaSplit, read_savepoint

pytest.importorskip("pyspark")
parquet = pytest.importorskip("pyarrow.parquet")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.example

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

sys.path.insert(0, str(EXAMPLES))
backfill = importlib.import_module("backfill")
sys.path.pop(0)


@pytest.mark.slow
def test_the_job_goes_on_where_the_archive_ends(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "savepoint"
    backfill.main(["--output", str(output), "--max-parallelism", "720", "--parallelism", "3"])
    flights = parquet.read_table(EXAMPLES / "data" / "nycflights13.parquet").to_pylist()
    october = datetime(2013, 10, 1, tzinfo=timezone.utc)
    archived = [flight for flight in flights if flight["time_hour"] < october]
    savepoint = read_savepoint(output)
    operator = savepoint.operator("flights-by-carrier")
    assert (operator.max_parallelism, operator.parallelism) == (720, 3)
    counts = Counter(flight["carrier"] for flight in archived)
    assert {entry.key: entry.value for entry in operator.entries()} == counts
    ends = Counter(flight["origin"] for flight in flights)
    offsets = Counter(flight["origin"] for flight in archived)
    splits = savepoint.operator("flights").source_splits().splits
    of_kafka = [split for split in splits if isinstance(split, KafkaSplit)]
    assert len(of_kafka) == len(splits)
    assert {(split.topic, split.partition): split.offset for split in of_kafka} == {
        ("flights", number): offsets[airport]
        for number, airport in enumerate(("EWR", "JFK", "LGA"))
    }
    text = capsys.readouterr().out
    for airport, offset in offsets.items():
        to_read = ends[airport] - offset
        assert f"({airport}): goes on at {offset:,}, {to_read:,} records to read" in text
    all_of_ua = sum(flight["carrier"] == "UA" for flight in flights)
    more = all_of_ua - counts["UA"]
    assert f"UA: {counts['UA']:,} flights in state, and {more:,} more: {all_of_ua:,}\n" in text
    assert "env.setMaxParallelism(720);" in text
    assert f"flink run -s {output}`" in text


@pytest.mark.slow
def test_without_arguments(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    backfill.main([])
    assert "flights, partition 0 (EWR): goes on at " in capsys.readouterr().out


def test_what_the_user_can_put_right(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        backfill.main(["--parallelism", "129"])
    assert exit_.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "--parallelism: " in error
