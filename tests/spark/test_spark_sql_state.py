"""State of Flink SQL from DataFrames, after a savepoint of the job: as the core writes it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from support.bytes.framed_entries import framed_entries
from support.bytes.job_points import job_point
from support.bytes.real_savepoints import point

from keygroups.errors import InvalidTypeError, InvalidValueError, ParallelismTypeError
from keygroups.savepoint import (
    Operator,
    Row,
    Savepoint,
    SavepointWriter,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.spark import KeyedState, MapState, ValueState, write_savepoint
from keygroups.types import LONG, SQL_ROW

pytest.importorskip("pyarrow")

TIME = 1_700_000_000_000
UTC = dt.timezone.utc


@lru_cache
def template() -> Savepoint:
    """Return a savepoint of GROUP BY, in which each state has a time to live."""
    return point("2.3.0-sqlheap-canonical").read()


def framed(operator: Operator) -> dict[tuple[str, int, bytes], bytes]:
    return {
        (state, key_group, key): value
        for task in operator.tasks()
        for state, key_group, _, key, value in framed_entries(task)
    }


def written_alone(path: Path, operator: str, entries: list[tuple[Any, ...]]) -> Operator:
    """Write entries of one operator with the core alone."""
    with SavepointWriter(path, template=template()) as writer:
        new = writer.add_operator(operator)
        for entry in sorted(entries, key=lambda entry: new.key_group(entry[1])):
            new.write(*entry)
    [written] = read_savepoint(path).operators
    return written


@pytest.mark.long
def test_a_group_by_from_an_aggregate(spark: SparkSession, tmp_path: Path) -> None:
    """Keys of two columns, a NULL in one, and an accumulator that is one struct."""
    users = [(name, number % 3) for number, name in enumerate(["ann", "bob", None, "\u00e9"] * 9)]
    counts = (
        spark.createDataFrame(users, "name string, city int")
        .groupBy("name", "city")
        .agg(F.count("*").alias("n"))
    )
    keyed = KeyedState(
        counts.withColumn("seen", F.lit(TIME)),
        ["name", "city"],
        SQL_ROW("STRING", "INT NOT NULL"),
        {"accState": ValueState(F.struct("n"), SQL_ROW("BIGINT"))},
        ttl="seen",
    )
    [ours] = write_savepoint(
        None, tmp_path / "ours", {"GroupAggregate[9]": keyed}, template=template()
    ).operators
    expected = {user: users.count(user) for user in users}
    entries = [("accState", key, (n,), None, TIME) for key, n in expected.items()]
    alone = written_alone(tmp_path / "alone", "GroupAggregate[9]", entries)
    assert ours.operator_id == alone.operator_id
    assert (ours.max_parallelism, ours.parallelism) == (128, 3)
    assert ours.states == alone.states[:1]
    assert framed(ours) == framed(alone)
    assert len(framed(ours)) == len(expected)


def test_a_key_of_one_column_and_rows_of_several(spark: SparkSession, tmp_path: Path) -> None:
    rows = [("ann", (3, 5, "x")), (None, (None, 7, None)), ("bob", (2, None, ""))]
    df = spark.createDataFrame(
        [(name, *acc) for name, acc in rows], "name string, n bigint, i int, s string"
    )
    keyed = KeyedState(
        df.withColumn("seen", F.lit(TIME)),
        "name",
        SQL_ROW("STRING"),
        {"accState": ValueState(F.struct("n", "i", "s"), SQL_ROW("BIGINT", "INT", "STRING"))},
        ttl="seen",
    )
    [ours] = write_savepoint(
        None, tmp_path / "ours", {"GroupAggregate[4]": keyed}, None, 1, template=template()
    ).operators
    entries = [("accState", (name,), acc, None, TIME) for name, acc in rows]
    alone = written_alone(tmp_path / "alone", "GroupAggregate[4]", entries)
    assert ours.parallelism == 1
    assert framed(ours) == framed(alone)


@pytest.mark.long
def test_rows_with_types_that_only_flink_writes(spark: SparkSession, tmp_path: Path) -> None:
    """A Deduplicate keeps a row of kind +U with a map and a row in it: its own Serializer."""
    job = job_point("2.3.0-sqlrank-hashmap-canonical").read()
    [state, *_] = job.operator("Deduplicate[548]").states
    assert state.value_serializer is not None
    df = spark.sql(
        "SELECT 'a' AS k, CAST(NULL AS INT) AS i, named_struct('f0', 5L, 'f1', 'a', 'f2', 7,"
        " 'f3', map('x', 1L), 'f4', named_struct('f0', 7, 'f1', 'b', 'row_kind', '+I'),"
        " 'f5', TIMESTAMP '2024-01-01 00:00:00 UTC', 'row_kind', '+U') AS v"
    )
    keyed = KeyedState(
        df,
        ["k", "i"],
        SQL_ROW("STRING", "INT"),
        {"deduplicate-state": ValueState("v", state.value_serializer)},
    )
    [ours] = write_savepoint(
        None, tmp_path / "ours", {"Deduplicate[548]": keyed}, template=job
    ).operators
    [entry] = ours.entries()
    assert entry.key == ("a", None)
    moment = dt.datetime(2024, 1, 1, tzinfo=UTC)
    assert entry.value == Row((5, "a", 7, {"x": 1}, (7, "b"), moment), "+U")
    assert entry.value.row_kind == "+U"


def test_what_is_not_as_in_the_template(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.createDataFrame([("ann", 3)], "name string, n bigint")

    def write(keyed: KeyedState, **options: Any) -> None:
        write_savepoint(df, tmp_path / "new", {"GroupAggregate[9]": keyed}, **options)

    acc = {"accState": ValueState(F.struct("n"), SQL_ROW("BIGINT"))}
    with pytest.raises(InvalidValueError, match=r"key_type must be SQL_ROW\(STRING, INT NOT NUL"):
        write(KeyedState(None, "name", SQL_ROW("STRING"), acc), template=template())
    key_type = SQL_ROW("STRING", "INT NOT NULL")
    with pytest.raises(InvalidValueError, match=r"states must be as in .* with TTL, got accState"):
        write(KeyedState(None, ["name", "n"], key_type, acc), template=template())
    of_bigint = KeyedState(None, ["name", "n"], key_type, acc, ttl=F.lit(TIME))
    with pytest.raises(InvalidTypeError, match="INT NOT NULL of SQL_ROW"):
        write(of_bigint, template=template())
    with pytest.raises(ParallelismTypeError, match="max_parallelism must be an int, got None"):
        write(KeyedState(None, "name", SQL_ROW("STRING"), acc))
    with pytest.raises(
        InvalidValueError, match="parallelism, template and nulls must be left out"
    ):
        write_savepoint(  # type: ignore[call-arg]  # The old call is not typed.
            df, tmp_path / "new", from_savepoint=template(), operator="a", template=template()
        )
    assert not (tmp_path / "new").exists()


def test_a_map_of_rows(spark: SparkSession, tmp_path: Path) -> None:
    """Types from nothing: the user keys are rows too."""
    price = Decimal("7.5000")
    df = spark.createDataFrame([("ann", 3, price)], "name string, n bigint, p decimal(10, 4)")
    row_type = SQL_ROW("BIGINT NOT NULL", "DECIMAL(10, 4)")
    to = MapState(F.struct("n", "p"), "n", row_type, LONG)
    keyed = KeyedState(None, "name", SQL_ROW("STRING"), {"left-records": to})
    [ours] = write_savepoint(df, tmp_path / "ours", {"join": keyed}, 128, 1).operators
    [entry] = ours.entries()
    assert (entry.key, entry.user_key, entry.value) == (("ann",), (3, price), 3)


@pytest.mark.long
def test_keys_with_a_row_in_them(spark: SparkSession, tmp_path: Path) -> None:
    """A struct of several fields is the row of the key where it has several, else its field."""
    df = spark.sql("SELECT id, named_struct('x', id, 'y', -id) AS s FROM range(5)")
    one = F.struct(F.col("id").alias("x"))
    two = F.struct("s", "id")
    keys: list[tuple[Any, SQL_ROW, Any]] = [
        (one, SQL_ROW("ROW<x BIGINT>"), lambda n: ((n,),)),
        ([["id"]], SQL_ROW("ROW<x BIGINT>"), lambda n: ((n,),)),
        ("s", SQL_ROW("ROW<x BIGINT, y BIGINT>"), lambda n: ((n, -n),)),
        (["s"], SQL_ROW("ROW<x BIGINT, y BIGINT>"), lambda n: ((n, -n),)),
        ([["id", F.col("s.y")]], SQL_ROW("ROW<x BIGINT, y BIGINT>"), lambda n: ((n, -n),)),
        ("s", SQL_ROW("BIGINT", "BIGINT"), lambda n: (n, -n)),
        (two, SQL_ROW("ROW<x BIGINT, y BIGINT>", "BIGINT"), lambda n: ((n, -n), n)),
        ([one, "id"], SQL_ROW("ROW<x BIGINT>", "BIGINT"), lambda n: ((n,), n)),
    ]
    states = {"n": ValueState("id", LONG)}
    operators = {
        f"by-{number}": KeyedState(None, key, key_type, states)
        for number, (key, key_type, _) in enumerate(keys)
    }
    ours = write_savepoint(df, tmp_path / "ours", operators, 128, 2)
    with SavepointWriter(tmp_path / "alone") as writer:
        for uid, (_, key_type, key_of) in zip(operators, keys):
            new = writer.add_operator(uid, key_type, [ValueStateDescriptor("n", LONG)], 128, 2)
            entries = [("n", key_of(n), n) for n in range(5)]
            for entry in sorted(entries, key=lambda entry: new.key_group(entry[1])):
                new.write(*entry)
    alone = read_savepoint(tmp_path / "alone")
    for uid in operators:
        assert framed(ours.operator(uid)) == framed(alone.operator(uid))
        assert len(framed(ours.operator(uid))) == 5
    pair = KeyedState(None, "id", SQL_ROW("BIGINT", "BIGINT"), states)
    with pytest.raises(InvalidValueError, match="must be 2 columns, got 1"):
        write_savepoint(df, tmp_path / "refused", {"by": pair}, 128, 2)
    assert not (tmp_path / "refused").exists()
