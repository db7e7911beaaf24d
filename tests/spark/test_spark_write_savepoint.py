"""Savepoints written from DataFrames, against the same written by the core without Spark.

The `flink` tests restore what the core writes; here the bytes have to be the same.
"""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from selections import first_by_default

from keygroups import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    ParallelismError,
    UnsupportedKeyTypeError,
    assign_key_to_parallel_operator,
)
from keygroups.savepoint import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    Savepoint,
    SavepointWriter,
    StateEntry,
    TtlValue,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.savepoint._state.entry_encoder import EncodedEntry
from keygroups.savepoint._state.new_states import NewState
from keygroups.spark import (
    KeyedState,
    ListState,
    MapState,
    ReducingState,
    ValueState,
    write_savepoint,
)
from keygroups.spark import functions as KF
from keygroups.spark import savepoint as spark_savepoint
from keygroups.spark._columns.arguments import is_connect
from keygroups.spark._savepoint import arrow_map
from keygroups.spark._savepoint.entry_files import FileWriter, entry_batch
from keygroups.spark._savepoint.row_encoder import RowEncoder
from keygroups.spark._savepoint.state_columns import StateColumns
from keygroups.state_keys import serializer_of
from keygroups.types import (
    BOOLEAN,
    BYTE,
    CHAR,
    DOUBLE,
    FLOAT,
    INSTANT,
    INT,
    LIST,
    LONG,
    PYFLINK,
    ROW,
    SHORT,
    STRING,
    TUPLE,
    KeyType,
)

pa: Any = pytest.importorskip("pyarrow")

QUERY_FAILS = (PySparkException, Py4JJavaError)
Entry = tuple[Any, ...]  # state, key, value, and if there are, user key and last access
NAMES = ["", "a", "ann", "\0", "\u00e9", "\u6771\u4eac", "\U0001f600", "x" * 200, "\uffff"]


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    yield
    if before is None:
        spark.conf.unset(name)
    else:
        spark.conf.set(name, before)


def written_alone(
    path: Path,
    key_type: KeyType,
    states: Iterable[NewState],
    entries: Iterable[Entry],
    max_parallelism: int,
    parallelism: int,
) -> Savepoint:
    """Write entries of the operator `by-key` with the core alone."""
    with SavepointWriter(path) as writer:
        operator = writer.add_operator(
            *("by-key", key_type, states, max_parallelism, parallelism), allow_any_last_access=True
        )
        for entry in sorted(entries, key=lambda entry: operator.key_group(entry[1])):
            operator.write(*entry)
    return read_savepoint(path)


def files_of(savepoint: Savepoint) -> dict[tuple[str, int], tuple[Any, ...]]:
    """Return key groups, offsets and bytes of each file, by operator and subtask."""
    found = {}
    for operator in savepoint.metadata.operators:
        for subtask in operator.subtasks:
            handle: Any = subtask.managed_keyed
            data = Path(savepoint.path, handle.stream.path).read_bytes()
            found[operator.operator_id, subtask.index] = (handle.key_groups, handle.offsets, data)
    return found


def entries_of(savepoint: Savepoint, uid: str = "by-key") -> list[StateEntry]:
    return list(savepoint.operator(uid).entries())


def refused(
    folder: Path, run: Callable[[], object], cls: type[Exception] = InvalidValueError
) -> str:
    """Return why a call raises an error of a class; nothing may be left of it."""
    before = sorted(folder.iterdir())
    with pytest.raises(KeyGroupsError) as error:
        run()
    assert type(error.value) is cls, error.value
    assert sorted(folder.iterdir()) == before
    assert "\n" not in str(error.value)
    return str(error.value)


def counts(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(list(rows), "user string, n bigint")


def one_task(df: DataFrame) -> DataFrame:
    """Spark 3.5 may give the next task the process of one that was stopped as another failed."""
    return df.coalesce(1)


COUNT = KeyedState(None, "user", STRING, {"count": ValueState("n", LONG)})


# --- the bytes are those of the core -----------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "parallelism"),
    first_by_default(1, [(129, 3), (128, 1), (32768, 100)]),
)
def test_every_kind_of_state(
    spark: SparkSession, tmp_path: Path, ansi: None, groups: int, parallelism: int
) -> None:
    """Rows of two grains in one DataFrame: some states of a row are null, or missing."""
    users = [*NAMES, *(f"user-{number}" for number in range(200))]
    numbers = {user: None if n % 7 == 0 else n for n, user in enumerate(users)}
    tags = {user: [f"tag-{n % 3}", f"{user}!"][: n % 3] for n, user in enumerate(users)}
    rows = [(user, numbers[user], tags[user]) for user in users]
    by_user = spark.createDataFrame(rows, "user string, n bigint, tags array<string>")
    by_tag = by_user.select("user", F.explode("tags").alias("tag"))
    by_tag = by_tag.union(by_tag).withColumn("size", F.length("tag"))
    df = by_user.withColumn("x", F.col("n") / 4).unionByName(by_tag, allowMissingColumns=True)
    states = {
        "count": ValueState("n", LONG),
        "quarter": ReducingState(F.col("x"), DOUBLE),
        "tags": ListState("tags", STRING),
        "seen": ListState("tag", STRING),
        "sizes": ListState("size", INT),
    }
    ours = write_savepoint(
        df,
        tmp_path / "ours",
        {"by-key": KeyedState(None, "user", STRING, states)},
        groups,
        parallelism,
    )
    write = serializer_of(STRING).write
    assert write is not None
    entries: list[Entry] = []
    for user in users:
        if (n := numbers[user]) is not None:
            entries += [("count", user, n), ("quarter", user, n / 4)]
        if tags[user]:
            entries.append(("tags", user, tags[user]))
            seen = sorted(tags[user] * 2, key=write)
            entries += [("seen", user, seen), ("sizes", user, sorted(map(len, seen)))]
    descriptors: list[NewState] = [
        ValueStateDescriptor("count", LONG),
        ReducingStateDescriptor("quarter", DOUBLE),
        ListStateDescriptor("tags", STRING),
        ListStateDescriptor("seen", STRING),
        ListStateDescriptor("sizes", INT),
    ]
    alone = written_alone(tmp_path / "alone", STRING, descriptors, entries, groups, parallelism)
    assert files_of(ours) == files_of(alone)
    assert {(one.state, one.key, repr(one.value)) for one in entries_of(ours)} == {
        (state, key, repr(value)) for state, key, value in entries
    }
    files = [path.name for path in (tmp_path / "ours").iterdir()]
    assert len(files) == len(files_of(ours)) + 1  # and _metadata


KEYS: dict[KeyType, tuple[str, list[Any]]] = {
    BOOLEAN: ("boolean", [False, True]),
    BYTE: ("tinyint", [0, 1, -1, 127, -128]),
    SHORT: ("smallint", [0, 1, -1, 2**15 - 1, -(2**15)]),
    INT: ("int", [0, 1, -1, 2**31 - 1, -(2**31), -2089875627]),
    LONG: ("bigint", [0, 1, -1, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63)]),
    FLOAT: ("float", [0.0, -0.0, 1.5, -(2.0**127), float("inf"), float("nan"), 2.0**-149]),
    DOUBLE: ("double", [0.0, -0.0, 0.1, -1e300, float("-inf"), float("nan"), 5e-324]),
    STRING: ("string", NAMES),
    TUPLE(STRING, LONG): (
        "struct<a:string,a:bigint>",  # Spark takes one name twice
        [(None, 0), *((name, len(name)) for name in NAMES)],
    ),
    TUPLE(LONG): ("struct<f0:bigint>", [(5,)]),
    ROW(INT, STRING, DOUBLE): (
        "struct<a:int,b:string,c:double>",
        [(1, "a", 0.5), (None, "a", None), (None, None, None)],
    ),
    TUPLE(TUPLE(INT, ROW(STRING)), BOOLEAN): (
        "struct<a:struct<b:int,c:struct<d:string>>,e:boolean>",
        [((7, ("x",)), True), ((-7, (None,)), False), ((8, None), None)][:2],
    ),
}


@pytest.mark.parametrize("key_type", first_by_default(2, [*reversed(KEYS)]), ids=repr)
def test_key_types(spark: SparkSession, tmp_path: Path, key_type: KeyType) -> None:
    """Each as a key, a value, the elements of both kinds of list, and as a user key."""
    spark_type, keys = KEYS[key_type]
    rows = [(key, key, [key, key]) for key in keys]
    df = spark.createDataFrame(rows, f"k {spark_type}, v {spark_type}, list array<{spark_type}>")
    states = {
        "value": ValueState("v", key_type),
        "list": ListState("list", key_type),
        "elements": ListState("v", key_type),
        "lists": ValueState("list", LIST(key_type)),
        "map": MapState("v", "v", key_type, key_type),
    }
    keyed = KeyedState(df, "k", key_type, states)
    ours = write_savepoint(None, tmp_path / "ours", {"by-key": keyed}, 200, 2)
    entries = [
        entry
        for key in keys
        for entry in (
            ("value", key, key),
            ("list", key, [key, key]),
            ("elements", key, [key]),
            ("lists", key, [key, key]),
            ("map", key, key, key),
        )
    ]
    descriptors: list[NewState] = [
        ValueStateDescriptor("value", key_type),
        ListStateDescriptor("list", key_type),
        ListStateDescriptor("elements", key_type),
        ValueStateDescriptor("lists", LIST(key_type)),
        MapStateDescriptor("map", key_type, key_type),
    ]
    alone = written_alone(tmp_path / "alone", key_type, descriptors, entries, 200, 2)
    assert files_of(ours) == files_of(alone)


def test_keys_of_several_columns(spark: SparkSession, tmp_path: Path) -> None:
    key_type = TUPLE(STRING, ROW(INT, LONG))
    keys = [(name, (len(name), 7)) for name in NAMES]
    rows = [(name, row[0], row[1], "x") for name, row in keys]
    df = spark.createDataFrame(rows, "name string, i int, l bigint, v string")
    key: KF.Key = ["name", ["i", F.col("l")]]
    keyed = KeyedState(None, key, key_type, {"v": ListState("v", STRING)})
    ours = write_savepoint(df, tmp_path / "ours", {"by-key": keyed}, 128, 2)
    alone = written_alone(
        tmp_path / "alone",
        key_type,
        [ListStateDescriptor("v", STRING)],
        [("v", key, ["x"]) for key in keys],
        128,
        2,
    )
    assert files_of(ours) == files_of(alone)


@pytest.mark.parametrize("ttl", first_by_default(1, ["moment", "millis"]))
def test_time_to_live(spark: SparkSession, tmp_path: Path, ttl: str) -> None:
    rows = [
        (name, n, [name, "b"], 1_700_000_000_000 * (n % 2) - n) for n, name in enumerate(NAMES)
    ]
    df = spark.createDataFrame(rows, "k string, n bigint, tags array<string>, millis bigint")
    df = df.withColumn("moment", F.timestamp_millis("millis"))
    states = {
        "n": ValueState("n", LONG),
        "tags": ListState("tags", STRING),
        "elements": ListState("k", STRING),
        "map": MapState("n", "k", LONG, STRING),
    }
    later = df.union(
        df.withColumn("millis", F.col("millis") + 5).withColumn(
            "moment", F.timestamp_millis("millis")
        )
    )
    keyed = {
        "by-key": KeyedState(df, "k", STRING, states, ttl, allow_any_last_access=True),
        "twice": KeyedState(
            *(None, "k", STRING, {"elements": states["elements"]}, F.col(ttl)),
            allow_any_last_access=True,
        ),
    }
    ours = write_savepoint(later, tmp_path / "ours", keyed, 128, 2)
    entries = [
        entry
        for name, n, tags, millis in rows
        for entry in (
            ("n", name, n, None, millis),
            ("tags", name, tags, None, millis),
            ("elements", name, [name], None, millis),
            ("map", name, name, n, millis),
        )
    ]
    descriptors: list[NewState] = [
        ValueStateDescriptor("n", LONG, has_ttl=True),
        ListStateDescriptor("tags", STRING, has_ttl=True),
        ListStateDescriptor("elements", STRING, has_ttl=True),
        MapStateDescriptor("map", LONG, STRING, has_ttl=True),
    ]
    alone = written_alone(tmp_path / "alone", STRING, descriptors, entries, 128, 2)
    by_key = ours.operator("by-key").operator_id
    found = {key: file for key, file in files_of(ours).items() if key[0] == by_key}
    assert found == files_of(alone)
    # The last access decides which element comes first; the bytes of numbers below zero are last.
    assert {one.key: one.value for one in entries_of(ours, "twice")} == {
        name: sorted(
            [TtlValue(millis, name), TtlValue(millis + 5, name)],
            key=lambda one: one.last_access % 2**64,
        )
        for name, _, _, millis in rows
    }


def test_a_null_value_in_a_map(spark: SparkSession, tmp_path: Path) -> None:
    """Of the types that Flink writes no null of, see test_what_a_query_finds_out."""
    df = spark.createDataFrame(
        [("a", "x", None), ("a", None, None)], "k string, u string, v string"
    )
    keyed = KeyedState(None, "k", STRING, {"map": MapState("u", "v", STRING, STRING)})
    savepoint = write_savepoint(df, tmp_path / "s", {"by-key": keyed}, 128, 2)
    assert [(one.user_key, one.value) for one in entries_of(savepoint)] == [("x", None)]


def test_several_operators(spark: SparkSession, tmp_path: Path) -> None:
    """Each with a DataFrame of its own, or that of the call; one has no rows at all."""
    by_city = KeyedState(
        counts(spark, ("Rome", 2)), "user", STRING, {"count": ValueState("n", LONG)}
    )
    by_nobody = KeyedState(counts(spark), "user", STRING, {"count": ValueState("n", LONG)})
    operators = {"by-user": COUNT, "by-city": by_city, "by-nobody": by_nobody}
    savepoint = write_savepoint(
        counts(spark, ("ann", 7), ("bob", None)), tmp_path / "s", operators, 128, 4
    )
    assert [one.operator_id for one in savepoint.operators] == [
        savepoint.operator(uid).operator_id for uid in operators
    ]
    assert [(one.key, one.value) for one in entries_of(savepoint, "by-user")] == [("ann", 7)]
    assert [(one.key, one.value) for one in entries_of(savepoint, "by-city")] == [("Rome", 2)]
    assert entries_of(savepoint, "by-nobody") == []
    assert "128" in str(savepoint)  # which the job has to set


def test_batches_of_two_rows(spark: SparkSession, tmp_path: Path) -> None:
    """Keys, key groups and the elements of a list go on over the ends of batches."""
    users = [f"user-{number % 3}" for number in range(40)]
    df = counts(spark, *((user, number) for number, user in enumerate(users)))
    keyed = {"by-key": KeyedState(None, "user", STRING, {"n": ListState("n", LONG)})}
    with setting(spark, "spark.sql.execution.arrow.maxRecordsPerBatch", "2"):
        savepoint = write_savepoint(df, tmp_path / "s", keyed, 128, 1)
    assert {one.key: one.value for one in entries_of(savepoint)} == {
        f"user-{start}": list(range(start, 40, 3)) for start in range(3)
    }


@pytest.mark.parametrize("coalesce", first_by_default(1, ["true", "false"]))
def test_adaptive_execution_leaves_the_files_alone(
    spark: SparkSession, tmp_path: Path, coalesce: str
) -> None:
    """One hot key, and subtasks of a few rows."""
    rows = [("hot", number) for number in range(3000)] + [(name, 1) for name in NAMES]
    df = counts(spark, *rows).repartition(5)
    keyed = {"by-key": KeyedState(None, "user", STRING, {"n": ListState("n", LONG)})}
    with (
        setting(spark, "spark.sql.adaptive.enabled", coalesce),
        setting(spark, "spark.sql.adaptive.advisoryPartitionSizeInBytes", "10"),
        setting(spark, "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes", "10"),
    ):
        savepoint = write_savepoint(df, tmp_path / "s", keyed, 128, 12)
    expected = [("hot", list(range(3000))), *((name, [1]) for name in NAMES)]
    assert sorted((one.key, one.value) for one in entries_of(savepoint)) == sorted(expected)
    subtasks = {assign_key_to_parallel_operator(key, 128, 12) for key, _ in expected}
    assert {index for _, index in files_of(savepoint)} == subtasks


def test_without_pandas(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_map, "find_spec", lambda name: None)
    savepoint = write_savepoint(
        counts(spark, ("ann", 7)), tmp_path / "s", {"by-user": COUNT}, 128, 2, flink="1.17"
    )
    assert [one.value for one in entries_of(savepoint, "by-user")] == [7]


def test_the_jobs_say_what_they_are_for(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_connect(spark):
        pytest.skip("Spark Connect describes its jobs itself")
    said = []

    def write(*_: object) -> None:
        said.append(spark.sparkContext.getLocalProperty("spark.job.description"))

    monkeypatch.setattr(spark_savepoint, "write_entries", write)
    spark.sparkContext.setJobDescription("mine")
    write_savepoint(counts(spark), tmp_path / "s", {"by-user": COUNT}, 128, 1)
    assert said == [f"write_savepoint: by-user, to {tmp_path / 's'}"]
    assert spark.sparkContext.getLocalProperty("spark.job.description") == "mine"
    spark.sparkContext.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]


# --- what is refused ---------------------------------------------------------------------

REFUSED: dict[str, tuple[type[Exception], str, dict[str, Any]]] = {
    "flink": (
        InvalidValueError,
        "flink must be one of 1.17, .*2.3, got '1.16'",
        {"flink": "1.16"},
    ),
    "parallelism": (ParallelismError, "parallelism .* 128", {"parallelism": 129}),
    "max parallelism": (ParallelismError, "max_parallelism .* 32768", {"max_parallelism": 32769}),
    "no operators": (InvalidValueError, "operators must be at least one", {"operators": {}}),
    "operators": (InvalidTypeError, "operators must be KeyedStates", {"operators": [COUNT]}),
    "no keyed state": (InvalidTypeError, "operators must be KeyedStates", {"operators": {"u": 5}}),
    "no DataFrame": (InvalidTypeError, "df must be a DataFrame, got None", {"df": None}),
    "uid": (InvalidTypeError, "uid must be a str, got 5", {"operators": {5: COUNT}}),
    "empty uid": (InvalidValueError, "uid must be", {"operators": {"": COUNT}}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_arguments(spark: SparkSession, tmp_path: Path, case: str) -> None:
    cls, message, arguments = REFUSED[case]
    valid: dict[str, Any] = {
        "df": counts(spark, ("ann", 7)),
        "path": tmp_path / "s",
        "operators": {"by-user": COUNT},
        "max_parallelism": 128,
        "parallelism": 2,
    }
    found = refused(tmp_path, lambda: write_savepoint(**(valid | arguments)), cls)
    assert re.search(message, found)


def test_without_pyarrow(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_savepoint, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'keygroups\[arrays\]'"):
        write_savepoint(counts(spark), tmp_path / "s", {"by-user": COUNT}, 128, 2)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there(spark: SparkSession, tmp_path: Path) -> None:
    df = counts(spark, ("ann", 7))
    message = refused(
        tmp_path,
        lambda: write_savepoint(df, tmp_path, {"by-user": COUNT}, 128, 2),
        InvalidValueError,
    )
    assert "it is there" in message


UNFIT: dict[str, tuple[type[Exception], str, Callable[[], KeyedState]]] = {
    "key of another type": (
        InvalidTypeError,
        "LONG takes a column of type bigint, but user is string",
        lambda: KeyedState(None, "user", LONG, {"count": ValueState("n", LONG)}),
    ),
    "key of too few columns": (
        InvalidValueError,
        r"TUPLE\(STRING, LONG\) must be 2 columns, got 1",
        lambda: KeyedState(None, "user", TUPLE(STRING, LONG), {"count": ValueState("n", LONG)}),
    ),
    "key without a serializer": (
        UnsupportedKeyTypeError,
        "key_type INSTANT cannot be written",
        lambda: KeyedState(None, "user", INSTANT, {"count": ValueState("n", LONG)}),
    ),
    "key of PyFlink": (
        UnsupportedKeyTypeError,
        "PyFlink's state is written by its own coders",
        lambda: KeyedState(None, "user", PYFLINK(STRING), {"count": ValueState("n", LONG)}),
    ),
    "no states": (
        InvalidValueError,
        "states must be 1 to",
        lambda: KeyedState(None, "user", STRING, {}),
    ),
    "states in a list": (
        InvalidTypeError,
        "states must be by name",
        lambda: KeyedState(None, "user", STRING, [ValueState("n", LONG)]),  # type: ignore[arg-type]
    ),
    "no state": (
        InvalidTypeError,
        "states must be such as ValueState, by name, got 'n'",
        lambda: KeyedState(None, "user", STRING, {"count": "n"}),  # type: ignore[dict-item]
    ),
    "name of a state": (
        InvalidValueError,
        "name of a state must not",
        lambda: KeyedState(None, "user", STRING, {"default": ValueState("n", LONG)}),
    ),
    "value of another type": (
        InvalidTypeError,
        "value of state 'count' of type INT takes a column of type int, but n is bigint",
        lambda: KeyedState(None, "user", STRING, {"count": ValueState("n", INT)}),
    ),
    "value without a serializer": (
        UnsupportedKeyTypeError,
        "value_type INSTANT cannot be written",
        lambda: KeyedState(None, "user", STRING, {"count": ValueState("n", INSTANT)}),
    ),
    "list of another type": (
        InvalidTypeError,
        "'tags' of type STRING takes a column of type string or array<string>, but n is bigint",
        lambda: KeyedState(None, "user", STRING, {"tags": ListState("n", STRING)}),
    ),
    "struct of another type": (
        InvalidTypeError,
        "takes a column of type struct<f0:bigint,f1:array<string>>, but n is bigint",
        lambda: KeyedState(
            None, "user", STRING, {"t": ValueState("n", TUPLE(LONG, LIST(STRING)))}
        ),
    ),
    "user key of another type": (
        InvalidTypeError,
        "user key of state 'map' of type LONG takes a column of type bigint, but user is string",
        lambda: KeyedState(None, "user", STRING, {"map": MapState("user", "n", LONG, LONG)}),
    ),
    "value that is no column": (
        InvalidTypeError,
        "value must be a column or a column name, got 5",
        lambda: KeyedState(None, "user", STRING, {"count": ValueState(5, LONG)}),  # type: ignore[arg-type]
    ),
    "time of another type": (
        InvalidTypeError,
        "ttl must be a bigint of epoch milliseconds or a timestamp, but user is string",
        lambda: KeyedState(None, "user", STRING, {"count": ValueState("n", LONG)}, "user"),
    ),
}


@pytest.mark.parametrize("case", UNFIT)
def test_columns_that_do_not_fit(
    spark: SparkSession, tmp_path: Path, collected: list[int], case: str
) -> None:
    """All of it is found out before a job starts."""
    cls, message, make = UNFIT[case]
    df = counts(spark, ("ann", 7))
    found = refused(
        tmp_path, lambda: write_savepoint(df, tmp_path / "s", {"u": make()}, 128, 2), cls
    )
    assert re.search(message, found)
    assert collected == []


def test_a_column_that_is_not_there(spark: SparkSession, tmp_path: Path) -> None:
    keyed = KeyedState(None, "user", STRING, {"count": ValueState("m", LONG)})
    with pytest.raises(AnalysisException):
        write_savepoint(counts(spark), tmp_path / "s", {"by-user": keyed}, 128, 2)
    assert list(tmp_path.iterdir()) == []


QUERIES: dict[str, tuple[str, str, list[Any], Callable[[], KeyedState]]] = {
    "null key": (
        "key of operator 'u' is null, on which Flink fails: filter such rows out first",
        "k string, n bigint",
        [("a", 1), (None, 2)],
        lambda: KeyedState(None, "k", STRING, {"count": ValueState("n", LONG)}),
    ),
    "null in a key": (
        r"key of operator 'u', \('a', None\): a LONG must not be None",
        "k string, n bigint",
        [("a", 1), ("a", None)],
        lambda: KeyedState(None, ["k", "n"], TUPLE(STRING, LONG), {"k": ValueState("k", STRING)}),
    ),
    "value twice": (
        "each key must come once, got key 'a' in state 'count' twice",
        "k string, n bigint",
        [("a", 1), ("b", 1), ("a", 2)],
        lambda: KeyedState(None, "k", STRING, {"count": ValueState("n", LONG)}),
    ),
    "list twice": (
        "got key 'a' in state 'tags' twice",
        "k string, tags array<string>",
        [("a", ["x"]), ("b", ["x"]), ("a", ["x"])],
        lambda: KeyedState(
            None, "k", STRING, {"tags": ListState("tags", STRING), "k": ListState("k", STRING)}
        ),
    ),
    "user key twice": (
        "got key 'a' in state 'map' with the user key 'x' twice",
        "k string, u string, n bigint",
        [("a", "x", 1), ("a", "y", 2), ("a", "x", 3)],
        lambda: KeyedState(None, "k", STRING, {"map": MapState("u", "n", STRING, LONG)}),
    ),
    "null of a user key": (
        "user key of state 'map' is null for key 'a', and its value is 3",
        "k string, u string, n bigint",
        [("a", "x", 1), ("a", None, 3)],
        lambda: KeyedState(None, "k", STRING, {"map": MapState("u", "n", STRING, LONG)}),
    ),
    "null value in a map": (
        "key 'a': value of MAP state 'map' must not be None: a LONG writes no null",
        "k string, u string, n bigint",
        [("a", "x", None)],
        lambda: KeyedState(None, "k", STRING, {"map": MapState("u", "n", STRING, LONG)}),
    ),
    "null element": (
        "key 'a': value of LIST state 'tags' must not be None",
        "k string, tags array<string>",
        [("a", ["x", None])],
        lambda: KeyedState(None, "k", STRING, {"tags": ListState("tags", STRING)}),
    ),
    "null field": (
        "key 'a': value of VALUE state 't': a INT must not be None",
        "k string, t struct<i:int,s:string>",
        [("a", (None, "x"))],
        lambda: KeyedState(None, "k", STRING, {"t": ValueState("t", TUPLE(INT, STRING))}),
    ),
    "two characters": (
        "key 'a': value of VALUE state 'c': .*CHAR.*'ab'",
        "k string, c string",
        [("a", "ab")],
        lambda: KeyedState(None, "k", STRING, {"c": ValueState("c", CHAR)}),
    ),
    "no last access": (
        "key 'a': last_access must be epoch milliseconds, as the VALUE state 'count' has a time",
        "k string, n bigint, t bigint",
        [("a", 1, None)],
        lambda: KeyedState(None, "k", STRING, {"count": ValueState("n", LONG)}, "t"),
    ),
    "a last access in seconds": (
        "key 'a': last_access must be epoch milliseconds, from .*got 1700000000",
        "k string, n bigint, t bigint",
        [("a", 1, 1_700_000_000)],
        lambda: KeyedState(None, "k", STRING, {"count": ValueState("n", LONG)}, "t"),
    ),
}


@pytest.mark.parametrize("case", first_by_default(4, [*QUERIES]))
def test_what_a_query_finds_out(spark: SparkSession, tmp_path: Path, case: str) -> None:
    message, schema, rows, make = QUERIES[case]
    df = one_task(spark.createDataFrame(rows, schema))
    found = refused(tmp_path, lambda: write_savepoint(df, tmp_path / "s", {"u": make()}, 128, 1))
    assert re.search(message, found)


def test_text_that_is_none(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.createDataFrame([("a", b"\xff")], "k string, b binary")
    df = one_task(df.select("k", F.col("b").cast("string").alias("s")))
    keyed = KeyedState(None, "k", STRING, {"s": ValueState("s", STRING)})
    message = refused(tmp_path, lambda: write_savepoint(df, tmp_path / "s", {"u": keyed}, 128, 1))
    assert message == "value of state 's' must be UTF-8, got b'\\xff'"


def test_a_query_that_fails(spark: SparkSession, tmp_path: Path) -> None:
    """What is wrong with the caller's query is Spark's to say."""
    df = one_task(counts(spark, ("ann", 7)))
    df = df.withColumn("n", F.raise_error(F.lit("no luck")).cast("bigint"))
    with pytest.raises(QUERY_FAILS, match="no luck"):
        write_savepoint(df, tmp_path / "s", {"by-user": COUNT}, 128, 2)
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_is_another_each_time(tmp_path: Path) -> None:
    """As of a function of the user's, which Spark calls for the key and for its key group."""
    states = [ValueStateDescriptor("n", LONG)]
    operator = SavepointWriter(tmp_path / "s").add_operator("by-key", STRING, states, 128, 2)
    columns = (StateColumns("n", 3, LONG),)
    encode = RowEncoder("by-key", operator.task(0), STRING, False, columns)
    names = ["c0", "c1", "c2", "c3"]
    rows = {"c0": [104, 104], "c1": ["A", "B"], "c2": [None, None], "c3": [1, 2]}
    batch = pa.RecordBatch.from_pydict({name: rows[name] for name in names})
    assert next(encode([batch])).num_rows == 2  # only the first key is looked at
    message = "key of operator 'by-key' must be the same each time, got key group 104 and then 'B'"
    with pytest.raises(InvalidValueError, match=f"{message} of key group 17"):
        next(encode([batch.slice(1)]))


# --- tasks -------------------------------------------------------------------------------


def test_a_task_that_is_tried_twice_leaves_one_file(tmp_path: Path) -> None:
    entries = entry_batch([EncodedEntry(5, 0, b"\2a\0", bytes(8))])
    with SavepointWriter(tmp_path / "s") as writer:
        states = [ValueStateDescriptor("n", LONG)]
        operator = writer.add_operator("by-key", STRING, states, 128, 2)
        write = FileWriter((operator.task(0), operator.task(1)), frozenset())
        [first], [second] = write([entries]), pickle.loads(pickle.dumps(write))([entries])
        assert list(write([])) == []
        assert first != second
        operator.add(pickle.loads(second.column(0)[0].as_py()))
    assert len(list((tmp_path / "s").iterdir())) == 2


FAILING = """
import os, signal, sys
from pathlib import Path
from flink_oracle import local_session
from keygroups.spark import KeyedState, ValueState, write_savepoint
from keygroups.spark._savepoint import entry_files
from keygroups.types import LONG, STRING

FOLDER = sys.argv[1]

class FailsOnce(entry_files.FileWriter):
    def __call__(self, batches):
        batches = list(batches)
        subtask = batches[0].column(0)[0].as_py() // 64
        try:
            Path(FOLDER, f"tried-{subtask}").touch(exist_ok=False)
        except FileExistsError:
            return super().__call__(batches)
        list(super().__call__(self.ending(batches, subtask)))
        raise OSError("the first attempt fails when its file is whole")

    def ending(self, batches, subtask):
        yield from batches
        if subtask == 1:  # the other one is in the middle of its file
            os.kill(os.getpid(), signal.SIGKILL)

entry_files.FileWriter = FailsOnce
spark = local_session("local[2,2]")
df = spark.range(1000).selectExpr("cast(id as string) user", "id n")
counts = KeyedState(None, "user", STRING, {"count": ValueState("n", LONG)})
write_savepoint(df, FOLDER + "/s", {"by-user": counts}, 128, 2)
spark.stop()
"""


@pytest.mark.slow
def test_tasks_that_fail_are_tried_again(spark: SparkSession, tmp_path: Path) -> None:
    """One fails when its file is whole, the process of the other is killed in the middle."""
    if is_connect(spark):
        pytest.skip("the server of Spark Connect tries a task once")
    support = Path(__file__).parents[1] / "support"
    command = [sys.executable, "-c", FAILING, str(tmp_path)]
    environment = os.environ | {
        "PYTHONPATH": f"{support}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    }
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"s", "tried-0", "tried-1"}
    assert len(list((tmp_path / "s").iterdir())) == 3
    entries = entries_of(read_savepoint(tmp_path / "s"), "by-user")
    assert sorted((one.value, one.key) for one in entries) == [(n, str(n)) for n in range(1000)]
