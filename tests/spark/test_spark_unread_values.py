"""What only the job's classes read is binary in Spark's columns, as it is in tables of Arrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.bytes.unread_values import CLASSES, PLACES, operator_of

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from keygroups.savepoint import DELETE, SavepointWriter
from keygroups.spark.savepoint import (
    compare_savepoints,
    key_sizes,
    read_keyed_state,
    register_data_source,
)

OBJECT = "java.lang.Object"  # Its other values are text.
OWN = CLASSES[OBJECT]
COLUMNS = {"element": "value", "map value": "value", "user key": "user_key", "timer": "key"}


def column_of(place: str) -> str:
    return COLUMNS.get(place, place)


@pytest.mark.long
@pytest.mark.parametrize("place", PLACES)
def test_entries(spark: SparkSession, tmp_path: Path, place: str) -> None:
    operator_of(tmp_path / "old", place, OBJECT, OWN, "canonical")
    path, column = str(tmp_path / "old"), column_of(place)
    frame = read_keyed_state(spark, path, "uid", "own")
    assert frame.schema[f"{column}_bytes"].dataType == T.BinaryType()
    [row] = frame.collect()
    assert (row[column], row[f"{column}_bytes"]) == (None, OWN)
    rows = read_keyed_state(spark, path, "uid").where("state = 'own'").collect()
    assert [row[f"{column}_bytes"] for row in rows] == [OWN]
    if int(spark.version[0]) >= 4:
        reader = spark.read.format(register_data_source(spark)).option("operator", "uid")
        assert reader.option("state", "own").load(path).collect() == [row]


@pytest.mark.long
@pytest.mark.parametrize("place", ["key", "value", "namespace"])
def test_differences(spark: SparkSession, tmp_path: Path, place: str) -> None:
    operator_of(tmp_path / "old", place, OBJECT, OWN, "canonical")
    with SavepointWriter.from_existing_savepoint(tmp_path / "old", tmp_path / "new") as writer:
        writer.operator("uid").map_entries("own", lambda entry: DELETE)
    column = column_of(place)
    for old, new, side in (("old", "new", "old"), ("new", "old", "new")):
        frame = compare_savepoints(spark, tmp_path / old, tmp_path / new, "uid", ["own"])
        [row] = frame.collect()
        name = f"{side}_value" if place == "value" else column
        assert (row[name], row[f"{name}_bytes"]) == (None, OWN)


def test_sizes(spark: SparkSession, tmp_path: Path) -> None:
    """Of keys that may be of the job there are the bytes too."""
    operator_of(tmp_path / "key", "key", OBJECT, OWN, "canonical")
    [row] = key_sizes(spark, tmp_path / "key", "uid").collect()
    assert (row.key, row.key_bytes, row.entries) == (None, OWN, 1)
    operator_of(tmp_path / "value", "value", OBJECT, OWN, "canonical")
    [row] = key_sizes(spark, tmp_path / "value", "uid").collect()
    assert (row.key, row.entries, [*row.asDict()][-1]) == ("a", 2, "bytes")


def test_no_column_more(spark: SparkSession, tmp_path: Path) -> None:
    """State whose serializers read all of it has the columns that it always has."""
    operator_of(tmp_path, "value", OBJECT, OWN, "canonical")
    names: Any = read_keyed_state(spark, str(tmp_path), "uid", "read").columns
    assert names[-2:] == ["bytes", "key_bytes"]
