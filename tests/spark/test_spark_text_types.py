"""Text of Spark's other types: char(n), varchar(n), and collations, which all doors take alike.

The key of a char(n) is what Spark gives for the column, blanks and all. Expected key groups are
those of the core for the values that Spark brings to the driver.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark import __version__
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.utils import is_remote
from support.inside.adapter import SETTING
from support.spark.spark_backends import ONE_BACKEND, skip_without
from support.spark.state_queries import finish, state_settings

import keygroups
from keygroups import InvalidTypeError, KeyGroupsError, UnsupportedKeyTypeError
from keygroups.spark import (
    KeyedState,
    ListState,
    MapState,
    ValueState,
    infer_key_type,
    infer_sql_row,
    kafka_offsets,
    key_group_load,
    pre_aggregate,
    read_keyed_state,
    rebalance_keys,
    repartition_by_subtask,
    skew_report,
    with_routing,
    write_keyed_state,
    write_savepoint,
)
from keygroups.spark import functions as KF
from keygroups.types import INT, LIST, PYFLINK, SQL_ROW, STRING, TUPLE, UUID, KeyType

pytestmark = [
    pytest.mark.skipif(__version__ < "4", reason="Spark before 4.0 has string alone"),
    pytest.mark.usefixtures("interpreted"),
]

KEPT = "spark.sql.preserveCharVarcharTypeInfo"
MENDED = "cast text of another collation to string, which is UTF8_BINARY"
COLUMNS = """
    cast(x AS char(5)) AS c, cast(x AS varchar(5)) AS v, collate(x, 'UTF8_BINARY') AS b,
    array(cast(x AS char(4))) AS a, named_struct('p', cast(x AS varchar(4)), 'q', x) AS s,
    map(cast(x AS char(3)), cast(x AS varchar(3))) AS m,
    collate(x, 'UTF8_LCASE') AS l, array(collate(x, 'UNICODE')) AS la,
    named_struct('p', collate(x, 'UTF8_LCASE')) AS ls
"""
KEYS: list[tuple[Any, KeyType, Callable[[Any], Any]]] = [
    ("c", STRING, lambda row: row.c),
    ("v", STRING, lambda row: row.v),
    ("b", STRING, lambda row: row.b),
    ("a", LIST(STRING), lambda row: row.a),
    ("c", PYFLINK(STRING), lambda row: row.c),
    (["b", "v", "c"], TUPLE(STRING, STRING, STRING), lambda row: (row.b, row.v, row.c)),
    ("c", SQL_ROW("CHAR(5)"), lambda row: (row.c,)),
    (["v", "b"], SQL_ROW("VARCHAR(5)", "STRING"), lambda row: (row.v, row.b)),
    ("a", SQL_ROW("ARRAY<STRING>"), lambda row: (row.a,)),
]


@pytest.fixture(params=ONE_BACKEND)
def backend(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    skip_without(request.param)
    spark.conf.set(SETTING, request.param)
    yield
    spark.conf.unset(SETTING)


@pytest.fixture
def texts(spark: SparkSession) -> Iterator[DataFrame]:
    """Two rows of each type of text, in a session that keeps char(n) and varchar(n)."""
    spark.conf.set(KEPT, "true")
    yield spark.sql(f"SELECT {COLUMNS} FROM VALUES ('ab'), ('héé') AS t(x)")
    spark.conf.unset(KEPT)


def test_blanks_are_those_of_spark(texts: DataFrame) -> None:
    kinds = [type(texts.schema[name].dataType) for name in "cv"]
    assert kinds == [T.CharType, T.VarcharType]
    assert [tuple(row) for row in texts.select("c", "v", "b").collect()] == [
        ("ab   ", "ab", "ab"),
        ("héé  ", "héé", "héé"),
    ]


@pytest.mark.long
@pytest.mark.parametrize(("key", "key_type", "of_row"), KEYS)
def test_keys(
    backend: None, texts: DataFrame, key: Any, key_type: KeyType, of_row: Callable[[Any], Any]
) -> None:
    """What `with_routing` takes, the functions on columns take, and to the same key group."""
    by_column = KF.assign_to_key_group(key, 128, key_type).alias("g")
    rows = with_routing(texts, key, 128, 3, key_type).select("*", by_column).collect()
    right = [keygroups.assign_to_key_group(of_row(row), 128, key_type) for row in rows]
    assert [row.key_group for row in rows] == right
    assert [row.g for row in rows] == right


@pytest.mark.long
def test_a_table_with_collations_and_lengths(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(
        "CREATE TABLE texts (b string COLLATE UTF8_BINARY, c char(5), v varchar(5), "
        f"u string COLLATE UTF8_BINARY) USING parquet LOCATION '{tmp_path / 'texts'}'"
    )
    try:
        text = "123e4567-e89b-12d3-a456-426614174000"
        spark.sql(f"INSERT INTO texts VALUES ('Abc', 'ab', 'ab', '{text}')")
        for kept in ("false", "true"):
            spark.conf.set(KEPT, kept)
            spark.catalog.refreshTable("texts")
            groups = [KF.assign_to_key_group(name, 128, STRING).alias(name) for name in "bcv"]
            groups.append(KF.assign_to_key_group("u", 128, UUID).alias("u"))
            row = spark.table("texts").select(*groups).first()
            right = [keygroups.assign_to_key_group(key, 128) for key in ("Abc", "ab   ", "ab")]
            assert row is not None
            assert list(row) == [*right, keygroups.assign_to_key_group(uuid.UUID(text), 128)]
    finally:
        spark.conf.unset(KEPT)
        spark.sql("DROP TABLE texts")


def test_types_are_inferred(texts: DataFrame) -> None:
    assert [infer_key_type(texts, name) for name in "cvb"] == [STRING] * 3
    assert infer_sql_row(texts, ["c", "a", "s"]) == SQL_ROW(
        "STRING", "ARRAY<STRING>", "ROW<STRING, STRING>"
    )
    groups = with_routing(texts, ["c", "v"], 128, 3).select("key_group").collect()
    keys = [("ab   ", "ab"), ("héé  ", "héé")]
    assert [row[0] for row in groups] == [keygroups.assign_to_key_group(k, 128) for k in keys]


def test_structs_of_texts(texts: DataFrame) -> None:
    for key_type in (TUPLE(STRING, STRING), SQL_ROW("ROW<p STRING, q STRING>")):
        rows = with_routing(texts, "s", 128, 3, key_type).collect()
        for row in rows:
            key = tuple(row.s) if key_type.fields[1:] else (tuple(row.s),)
            assert row.key_group == keygroups.assign_to_key_group(key, 128, key_type)


@pytest.mark.long
@pytest.mark.parametrize("name", ["c", "v", "b"])
def test_reports_and_placement(texts: DataFrame, name: str) -> None:
    keys = [row[0] for row in texts.select(name).collect()]
    load = key_group_load(texts, name, 128)
    assert load.per_subtask(3) == [
        sum(keygroups.assign_key_to_parallel_operator(key, 128, 3) == i for key in keys)
        for i in range(3)
    ]
    report = skew_report(texts, name, 128, 3, subtask=0)
    assert [row.records for row in report.subtasks] == load.per_subtask(3)
    hot = {top.key for subtask in report.hot_subtasks for top in subtask.top_keys}
    assert hot <= set(keys)
    assert hot
    totals = pre_aggregate(texts, name, [F.count("*").alias("n")], 128, 3).collect()
    assert sorted(map(tuple, totals)) == sorted((key, 1) for key in keys)
    assert rebalance_keys(texts, name, 128, 3).where("substitute_key is null").count() == 0
    placed = repartition_by_subtask(texts, name, 128, 3)
    for row in placed.select(name, F.spark_partition_id().alias("at")).collect():
        assert row["at"] == keygroups.assign_key_to_parallel_operator(row[name], 128, 3)


def test_savepoints(texts: DataFrame, tmp_path: Path) -> None:
    states = {
        "value": ValueState("v", STRING),
        "list": ListState("a", STRING),
        "map": MapState("b", "c", STRING, STRING),
        "whole": MapState(None, "m", STRING, STRING),
        "tuple": ValueState("s", TUPLE(STRING, STRING)),
    }
    operators = {"by-text": KeyedState(None, "c", STRING, states)}
    savepoint = write_savepoint(texts, tmp_path / "one", operators, 128, 2)
    entries = {
        (entry.key, entry.state, entry.user_key): entry.value
        for entry in savepoint.operator("by-text").entries()
    }
    assert entries == {
        ("ab   ", "value", None): "ab",
        ("ab   ", "list", None): ["ab  "],
        ("ab   ", "map", "ab"): "ab   ",
        ("ab   ", "whole", "ab "): "ab",
        ("ab   ", "tuple", None): ("ab", "ab"),
        ("héé  ", "value", None): "héé",
        ("héé  ", "list", None): ["héé "],
        ("héé  ", "map", "héé"): "héé  ",
        ("héé  ", "whole", "héé"): "héé",
        ("héé  ", "tuple", None): ("héé", "héé"),
    }


def test_rows_of_a_savepoint(spark: SparkSession, texts: DataFrame, tmp_path: Path) -> None:
    operators = {"by-text": KeyedState(None, "v", STRING, {"of": ValueState("b", STRING)})}
    savepoint = write_savepoint(texts, tmp_path / "one", operators, 128, 2)
    rows = read_keyed_state(spark, savepoint.path, "by-text")
    columns = ("CAST(state AS varchar(9)) AS state", "CAST(key AS char(4)) AS key")
    again = write_keyed_state(
        rows.selectExpr(*columns, "collate(value, 'UTF8_BINARY') AS value"),
        tmp_path / "two",
        from_savepoint=savepoint,
        operator="by-text",
    )
    entries = [(entry.key, entry.value) for entry in again.operator("by-text").entries()]
    assert sorted(entries) == [("ab  ", "ab"), ("héé ", "héé")]
    with pytest.raises(InvalidTypeError, match=f"got string collate UTF8_LCASE: {MENDED}"):
        write_keyed_state(
            rows.selectExpr("state", "collate(key, 'UTF8_LCASE') AS key", "value"),
            tmp_path / "three",
            from_savepoint=savepoint,
            operator="by-text",
        )


def test_kafka_topics(spark: SparkSession) -> None:
    topic = "collate('clicks', '{}') AS topic, 1 AS partition, 7L AS offset"
    offsets = kafka_offsets(spark.sql(f"SELECT {topic.format('UTF8_BINARY')}")).offsets
    assert offsets == {("clicks", 1): 7}
    with pytest.raises(InvalidTypeError, match=f"topic must be string, got .*UNICODE.*{MENDED}"):
        kafka_offsets(spark.sql(f"SELECT {topic.format('UNICODE')}"))


# Each refuses text that is equal where its bytes are not.
REFUSED: list[tuple[Callable[[DataFrame, Path], object], type[KeyGroupsError], str]] = [
    (
        lambda df, _: infer_key_type(df, "l"),
        UnsupportedKeyTypeError,
        f"key column l of type string collate UTF8_LCASE has no key type: {MENDED}",
    ),
    (
        lambda df, _: infer_sql_row(df, "l"),
        UnsupportedKeyTypeError,
        f"string collate UTF8_LCASE has no type of Flink SQL that makes a key here: {MENDED}",
    ),
    (
        lambda df, _: with_routing(df, "l", 128, 3, STRING),
        InvalidTypeError,
        f"STRING takes a column of type string, but l is string collate UTF8_LCASE: {MENDED}",
    ),
    (
        lambda df, _: key_group_load(df, "la", 128, LIST(STRING)),
        InvalidTypeError,
        f"but la.element is string collate UNICODE: {MENDED}",
    ),
    (
        lambda df, _: skew_report(df, "ls", 128, 3, TUPLE(STRING)),
        InvalidTypeError,
        f"but ls.p is string collate UTF8_LCASE: {MENDED}",
    ),
    (
        lambda df, _: repartition_by_subtask(df, "l", 128, 3, SQL_ROW("STRING")),
        InvalidTypeError,
        f"STRING of SQL_ROW takes a column of type string, but l is .*: {MENDED}",
    ),
    (
        lambda df, _: with_routing(df, "l", 128, 3, INT),
        InvalidTypeError,
        "key type INT takes a column of type int, but l is string collate UTF8_LCASE$",
    ),
    *(
        (
            lambda df, path, state=state: write_savepoint(
                df, path / "one", {"by": KeyedState(None, "b", STRING, {"of": state})}, 128, 2
            ),
            InvalidTypeError,
            f"takes a column of type .*, but {name} is .* collate .*: {MENDED}",
        )
        for name, state in (
            ("l", ValueState("l", STRING)),
            ("la", ListState("la", STRING)),
            ("ls", ValueState("ls", TUPLE(STRING))),
            ("l", MapState("l", "b", STRING, STRING)),
        )
    ),
]


@pytest.mark.parametrize(("call", "error", "says"), REFUSED)
def test_other_collations_are_refused(
    texts: DataFrame,
    tmp_path: Path,
    call: Callable[[DataFrame, Path], object],
    error: type[KeyGroupsError],
    says: str,
) -> None:
    with pytest.raises(error, match=says):
        call(texts, tmp_path)
    assert not [*tmp_path.iterdir()]


@pytest.mark.long
@pytest.mark.parametrize("name", ["l", "ll"])
def test_functions_refuse_other_collations(
    backend: None, spark: SparkSession, name: str, tmp_path: Path
) -> None:
    """So do all doors where a char(n) has one, of which PySpark's type does not tell."""
    spark.sql(
        "CREATE TABLE lower (l string COLLATE UTF8_LCASE, ll char(5) COLLATE UTF8_LCASE) "
        f"USING parquet LOCATION '{tmp_path / 'lower'}'"
    )
    spark.conf.set(KEPT, "true")
    try:
        df = spark.table("lower")
        calls: list[Callable[[], DataFrame]] = [
            lambda: df.select(KF.assign_to_key_group(name, 128, STRING)),
            lambda: df.select(KF.hash_code(name, SQL_ROW("STRING"))),
        ]
        if name == "ll":
            count = F.count("*").alias("n")
            calls.append(lambda: with_routing(df, name, 128, 3))
            calls.append(lambda: pre_aggregate(df, name, [count], 128, 3, STRING))
        for call in calls:
            with pytest.raises((PySparkException, Py4JJavaError), match=f"UTF8_LCASE: {MENDED}"):
                _ = call().schema
        with pytest.raises((PySparkException, Py4JJavaError)) as raised:
            _ = df.select(KF.hash_code(name, INT)).schema
        assert "takes a column of type int not" in str(raised.value)
        assert MENDED not in str(raised.value)
    finally:
        spark.conf.unset(KEPT)
        spark.sql("DROP TABLE lower")


def test_the_cast_that_mends(texts: DataFrame) -> None:
    mended = F.col("l").cast("string")
    by_column = KF.assign_to_key_group(mended, 128, STRING).alias("g")
    for row in with_routing(texts, mended, 128, 3).select("l", "key_group", by_column).collect():
        assert row.key_group == row.g == keygroups.assign_to_key_group(row.l, 128)


@pytest.mark.extras
@pytest.mark.skipif(__version__ < "4.1", reason="PySpark before 4.1 has no such state")
def test_group_aggregate(spark: SparkSession, tmp_path: Path) -> None:
    """The state is that of plain text; another collation is refused before a query starts."""
    pytest.importorskip("pandas")
    pytest.importorskip("google.protobuf")
    if is_remote():
        pytest.skip("the classic session tries it")
    from keygroups.spark.state import GroupAggregate, group_aggregate, read_state

    rows = [("ab", "x"), ("ab", "yy"), ("cd", "z"), ("ab", "x")]
    lines = [json.dumps({"seq": n, "app": a, "v": v}) for n, (a, v) in enumerate(rows)]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.json").write_text("\n".join(lines))
    source = spark.readStream.schema("seq int, app string, v string").json(str(tmp_path / "in"))
    results = {"low": ("min", "v"), "n": ("count_distinct", "v")}

    def changes(columns: str) -> DataFrame:
        df = source.selectExpr("CAST('+I' AS varchar(2)) AS kind", "seq", *columns.split("; "))
        processor = GroupAggregate(df.schema, results, mini_batch=True)
        return group_aggregate(df, "app", processor, 128, 3)

    with state_settings(spark, **{KEPT: "true"}):
        for columns in ("collate(app, 'UNICODE') AS app; v", "app; collate(v, 'UNICODE') AS v"):
            with pytest.raises(KeyGroupsError, match=f"string collate UNICODE.*: {MENDED}"):
                changes(columns)
        writer = changes("CAST(app AS char(4)) AS app; CAST(v AS char(3)) AS v").writeStream
        writer = writer.format("memory").queryName("texts").outputMode("update")
        folder = str(tmp_path / "checkpoint")
        query = writer.trigger(availableNow=True).option("checkpointLocation", folder).start()
        finish(query)
        reports = sorted((row.app, row.low, row.n) for row in spark.table("texts").collect())
        assert reports == [("ab  ", "x  ", 2), ("cd  ", "z  ", 1)]
        for row in read_state(spark, folder).collect():
            assert row.key_group == keygroups.assign_to_key_group(row.key.app, 128)
