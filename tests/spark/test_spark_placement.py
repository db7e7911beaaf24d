"""Spark partitions that hold what Flink's subtasks receive."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark import __version__
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from support.selections import first_by_default

import keygroups
from keygroups import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    ParallelismError,
    UnsupportedKeyTypeError,
)
from keygroups.spark import (
    assert_placed,
    pre_aggregate,
    repartition_by_subtask,
    with_routing,
)
from keygroups.types import (
    BIG_DEC,
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LOCAL_DATE,
    LOCAL_DATE_TIME,
    LONG,
    SHORT,
    STRING,
    TUPLE,
    UUID,
    KeyType,
)

QUERY_FAILS = (PySparkException, Py4JJavaError)  # Spark 3.5 lets the latter through
PARALLELISMS = first_by_default(1, [(7, 128), (200, 4096), (1, 128), (3, 10), (85, 128)])


WAYS = ["by hash", "by number"] if __version__ < "4.1" else ["by number", "by hash"]


@pytest.fixture(params=first_by_default(1, WAYS))
def way(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """Both ways that rows get to their partition: Spark 4.1's and the one for older ones."""
    methods = [c for c in type(spark.range(1)).__mro__ if "repartitionById" in vars(c)]
    if request.param == "by number" and not methods:
        pytest.skip("Spark before 4.1 has no repartitionById")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "by hash":
            for cls in methods:
                patch.delattr(cls, "repartitionById")
        yield request.param


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        assert before is not None
        spark.conf.set(name, before)


def partitions_of(df: DataFrame) -> list[tuple[Any, int]]:
    """Return each row's column `n` and the partition that holds it."""
    rows = df.select("n", F.spark_partition_id().alias("partition")).collect()
    return sorted((row["n"], row["partition"]) for row in rows)


def explanation(df: DataFrame, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    df.explain()
    return capsys.readouterr().out


@pytest.mark.parametrize(("parallelism", "max_parallelism"), PARALLELISMS)
def test_every_row_is_in_the_partition_of_its_subtask(
    spark: SparkSession, way: str, parallelism: int, max_parallelism: int
) -> None:
    keys = [f"user-{i}" for i in range(10_000)]
    df = spark.createDataFrame(list(enumerate(keys)), "n int, key string").repartition(4)
    found = partitions_of(repartition_by_subtask(df, "key", max_parallelism, parallelism))
    assert found == [
        (i, keygroups.assign_key_to_parallel_operator(key, max_parallelism, parallelism))
        for i, key in enumerate(keys)
    ]
    assert {partition for _, partition in found} == set(range(parallelism))


@pytest.mark.parametrize(
    ("key_type", "ddl", "keys"),
    first_by_default(
        3,
        [
            (STRING, "string", ["", "A", "ä", "\U0001f600", "hello"]),
            (BIG_DEC, "decimal(20,2)", [Decimal("1.50"), Decimal("-98765432109876543.21")]),
            (LOCAL_DATE_TIME, "timestamp_ntz", [datetime(2024, 2, 29, 12, 30, 1, 5)]),
            (BOOLEAN, "boolean", [True, False]),
            (SHORT, "smallint", [-(2**15), -1, 0, 2**15 - 1]),
            (INT, "int", [-(2**31), -1, 0, 7, -2089875627, 2**31 - 1]),
            (LONG, "bigint", [-(2**63), -1, 0, 2**40, 2**63 - 1]),
            (DOUBLE, "double", [0.0, -0.0, float("nan"), float("-inf"), 1.5]),
            (LOCAL_DATE, "date", [date(1970, 1, 1), date(2024, 2, 29)]),
        ],
    ),
)
def test_key_types(
    spark: SparkSession, way: str, key_type: KeyType, ddl: str, keys: list[Any]
) -> None:
    df = spark.createDataFrame(list(enumerate(keys)), f"n int, key {ddl}")
    expected = [
        (i, keygroups.assign_key_to_parallel_operator(key, 720, 7, key_type))
        for i, key in enumerate(keys)
    ]
    assert partitions_of(repartition_by_subtask(df, "key", 720, 7)) == expected


def test_key_type_that_the_schema_does_not_tell(spark: SparkSession, way: str) -> None:
    keys = [uuid.UUID(int=i << 64) for i in range(20)]
    df = spark.createDataFrame([(i, str(key)) for i, key in enumerate(keys)], "n int, key string")
    found = {
        kt: partitions_of(repartition_by_subtask(df, "key", 128, 7, kt)) for kt in (UUID, None)
    }
    assert found[UUID] == [
        (i, keygroups.assign_key_to_parallel_operator(key, 128, 7, UUID))
        for i, key in enumerate(keys)
    ]
    assert found[None] == [
        (i, keygroups.assign_key_to_parallel_operator(str(key), 128, 7, STRING))
        for i, key in enumerate(keys)
    ]


def test_tuple_with_null_fields(spark: SparkSession, way: str) -> None:
    keys = [(s, i) for s in (None, "", "JFK", "ä") for i in (None, 0, 7, -1)]
    df = spark.createDataFrame(
        [(n, s, i) for n, (s, i) in enumerate(keys)], "n int, s string, i int"
    )
    key_type = TUPLE(STRING, INT)
    expected = [
        (n, keygroups.assign_key_to_parallel_operator(key, 128, 7, key_type))
        for n, key in enumerate(keys)
    ]
    assert partitions_of(repartition_by_subtask(df, ["s", "i"], 128, 7)) == expected
    assert partitions_of(repartition_by_subtask(df, ["s", "i"], 128, 7, key_type)) == expected


@pytest.mark.parametrize("enabled", ["true", "false"])
@pytest.mark.slow  # the test of files that are written is not
def test_adaptive_execution_leaves_the_partitions_alone(
    spark: SparkSession, way: str, enabled: str
) -> None:
    keys = [f"user-{i}" for i in range(40)]  # far less than Spark wants in a partition
    keys += ["hot"] * 20_000
    df = spark.createDataFrame(list(enumerate(keys)), "n int, key string")
    with (
        setting(spark, "spark.sql.adaptive.enabled", enabled),
        setting(spark, "spark.sql.adaptive.coalescePartitions.parallelismFirst", "false"),
        setting(spark, "spark.sql.adaptive.advisoryPartitionSizeInBytes", "4KB"),
        setting(spark, "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes", "1KB"),
    ):
        placed = repartition_by_subtask(df, "key", 128, 20)
        expected = [
            (i, keygroups.assign_key_to_parallel_operator(key, 128, 20))
            for i, key in enumerate(keys)
        ]
        assert partitions_of(placed) == expected
        cached = placed.cache()
        assert partitions_of(cached) == expected
        cached.unpersist()
        narrow = placed.where("n % 2 = 1").sortWithinPartitions("key").withColumn("m", F.col("n"))
        assert partitions_of(narrow) == expected[1::2]


@pytest.mark.long
@pytest.mark.parametrize("parallelism", [1, 3, 128])
def test_subtasks_without_rows_have_an_empty_partition(
    spark: SparkSession, way: str, parallelism: int, capsys: pytest.CaptureFixture[str]
) -> None:
    df = spark.range(100).where("id < 0")
    placed = repartition_by_subtask(df, "id", 128, parallelism)
    assert placed.collect() == []
    shuffled = f", {max(parallelism, 2)}), REPARTITION_BY_NUM"
    assert shuffled in explanation(placed, capsys)
    assert ("Coalesce 1\n" in explanation(placed, capsys)) == (parallelism == 1)


def test_rows_and_columns_are_left_as_they_are(spark: SparkSession, way: str) -> None:
    rows: list[Any] = [
        ("A", None, 1, [1, None], {"x": None}, (1, "z"), bytearray(b"\x00\xff")),
        ("A", None, 1, [1, None], {"x": None}, (1, "z"), bytearray(b"\x00\xff")),
        ("B", 2.5, None, [], {}, None, None),
        ("A", float("inf"), 2, None, None, (None, None), bytearray()),
    ]
    df = spark.createDataFrame(
        rows,
        "`User Id` string, Subtask double, key_group int, l array<int>, "
        "M map<string,int>, `s.t` struct<a:int,B:string>, b binary",
    )
    placed = repartition_by_subtask(df, "`User Id`", 128, 3)
    assert placed.schema == df.schema
    assert sorted(map(repr, placed.collect())) == sorted(map(repr, df.collect()))


def test_nested_and_computed_keys(spark: SparkSession, way: str) -> None:
    df = spark.range(50).selectExpr("id as n", "named_struct('id', string(id)) as user")
    expected = [(n, keygroups.assign_key_to_parallel_operator(str(n), 128, 7)) for n in range(50)]
    assert partitions_of(repartition_by_subtask(df, "user.id", 128, 7)) == expected
    text = F.col("n").cast("string")
    assert partitions_of(repartition_by_subtask(df, text, 128, 7)) == expected
    constant = repartition_by_subtask(df, F.lit("A"), 128, 7)
    assert {partition for _, partition in partitions_of(constant)} == {5}  # 104 * 7 // 128


@pytest.mark.long
@pytest.mark.parametrize("parallelism", first_by_default(1, [3, 1]))
def test_null_keys_fail(spark: SparkSession, way: str, parallelism: int) -> None:
    df = spark.createDataFrame([("A", 1), (None, 2)], "key string, n int")
    placed = repartition_by_subtask(df, "key", 128, parallelism)
    with pytest.raises(
        QUERY_FAILS, match="key must not be null, which Flink refuses: pass nulls='drop' to"
    ):
        placed.collect()
    kept = repartition_by_subtask(df.dropna(subset=["key"]), "key", 128, parallelism)
    assert kept.collect() == [Row(key="A", n=1)]


def test_highest_parallelism_plans_quickly(
    spark: SparkSession, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    df = spark.range(10)
    start = time.perf_counter()
    placed = repartition_by_subtask(df, "id", 2**15, 2**15)
    plan = explanation(placed, capsys)
    assert time.perf_counter() - start < 20  # it takes about a second
    assert ", 32768), REPARTITION_BY_NUM" in plan
    assert len(plan) < 250_000


@pytest.mark.long
def test_one_directory_per_subtask(spark: SparkSession, way: str, tmp_path: Path) -> None:
    keys = [f"user-{i}" for i in range(5)]
    df = spark.createDataFrame(list(enumerate(keys)), "n int, key string")
    path = tmp_path / "bootstrap"
    routed = with_routing(df, "key", 128, 7)
    placed = repartition_by_subtask(routed, "key", 128, 7)
    placed.drop("key_group").write.partitionBy("subtask").parquet(str(path))
    subtasks = {key: keygroups.assign_key_to_parallel_operator(key, 128, 7) for key in keys}
    assert {p.name for p in path.glob("subtask=*")} == {f"subtask={i}" for i in subtasks.values()}
    for directory in path.glob("subtask=*"):
        assert len(list(directory.glob("*.parquet"))) == 1
    found = spark.read.parquet(str(path)).collect()
    assert sorted((row["n"], row["key"], row["subtask"]) for row in found) == [
        (i, key, subtasks[key]) for i, key in enumerate(keys)
    ]


@pytest.mark.parametrize(
    ("key", "key_type", "error", "says"),
    [
        ("n", INT, InvalidTypeError, "key type INT takes a column of type int, but n is bigint"),
        ("b", None, UnsupportedKeyTypeError, "key column b of type binary"),
        (["s", "n"], TUPLE(STRING), KeyGroupsError, "must be 1 columns, got 2"),
        ([], None, KeyGroupsError, "key must be at least one column"),
        ("s", 128, InvalidTypeError, "key_type must be a value of keygroups.types"),
        ("user_id", None, InvalidValueError, "key must be of df's columns, got 'user_id'"),
    ],
)
def test_bad_keys_raise_before_any_job(
    spark: SparkSession, key: Any, key_type: Any, error: type[Exception], says: str
) -> None:
    df = spark.sql("select 'a' as s, bigint(1) as n, binary('x') as b")
    with pytest.raises(error, match=says):
        repartition_by_subtask(df, key, 128, 3, key_type)


def test_bad_parallelisms(spark: SparkSession) -> None:
    df = spark.range(1)
    with pytest.raises(ParallelismError, match="parallelism must be from 1 to 128"):
        repartition_by_subtask(df, "id", 128, 129)
    with pytest.raises(ParallelismError, match="parallelism must be from 1 to 128"):
        repartition_by_subtask(df, "id", 128, 0)
    with pytest.raises(ParallelismError, match="max_parallelism must be"):
        repartition_by_subtask(df, "id", 2**15 + 1, 1)
    with pytest.raises(ParallelismError, match="parallelism must be an int"):
        repartition_by_subtask(df, "id", 128, LONG)  # type: ignore[arg-type]


@pytest.mark.long
def test_pre_aggregate(spark: SparkSession, way: str, capsys: pytest.CaptureFixture[str]) -> None:
    keys = ["hot"] * 5000 + [f"user-{i % 40}" for i in range(1000)]
    df = spark.createDataFrame(list(enumerate(keys)), "n int, key string").repartition(4)
    sums = [F.sum("n").alias("total"), F.count("*").alias("records")]
    for by, key_type in (("key", None), (["key"], None), (["key"], TUPLE(STRING))):
        totals = pre_aggregate(df, by, sums, 128, 7, key_type)
        assert totals.columns == ["key", "total", "records"]
        rows = totals.withColumn("partition", F.spark_partition_id()).collect()
        assert {row.key: row.records for row in rows} == Counter(keys)
        assert {row.key: row.total for row in rows} == {
            key: sum(n for n, other in enumerate(keys) if other == key) for key in set(keys)
        }
        for row in rows:
            key = row.key if key_type is None else (row.key,)
            subtask = keygroups.assign_key_to_parallel_operator(key, 128, 7, key_type)
            assert row.partition == subtask
    # Two shuffles, and what the first one moves is combined already.
    plan = explanation(pre_aggregate(df.coalesce(2), "key", sums, 128, 7), capsys)
    final, partial = plan.index("functions=[sum("), plan.index("functions=[partial_sum(")
    assert plan.index("REPARTITION_BY_NUM") < final < plan.index("ENSURE_REQ") < partial


@pytest.mark.long
def test_pre_aggregate_with_a_salt(spark: SparkSession) -> None:
    keys = ["hot"] * 5000 + [f"user-{i % 40}" for i in range(1000)]
    df = spark.createDataFrame([(key,) for key in keys], "key string")
    salted = df.withColumn("salt", (F.monotonically_increasing_id() % 16).cast("int"))
    parts = pre_aggregate(salted, ["key", "salt"], [F.count("*").alias("n")], 128, 4)
    rows = parts.withColumn("partition", F.spark_partition_id()).collect()
    hot = [row for row in rows if row.key == "hot"]
    assert len(hot) == 16
    assert {row.partition for row in hot} == {0, 1, 2, 3}
    for row in rows:
        assert row.partition == keygroups.assign_key_to_parallel_operator(
            (row.key, row.salt), 128, 4, TUPLE(STRING, INT)
        )
    counts = pre_aggregate(parts, "key", [F.sum("n").alias("n")], 128, 4).collect()
    assert {row.key: row.n for row in counts} == Counter(keys)


@pytest.mark.slow
def test_pre_aggregate_by_nested_and_computed_keys(spark: SparkSession) -> None:
    df = spark.range(50).selectExpr("id as n", "named_struct('a`b.c', id % 5, 'd', 'x') as user")
    number = F.col("n").cast("string")
    keys: list[tuple[Any, KeyType, Any]] = [
        ("user.`a``b.c`", LONG, lambda row: row[0]),
        ("user", TUPLE(LONG, STRING), lambda row: tuple(row[0])),
        ([number, "user.d"], TUPLE(STRING, STRING), lambda row: tuple(row[:2])),
        (number, STRING, lambda row: row[0]),
    ]
    for by, key_type, key_of in keys:
        totals = pre_aggregate(df, by, (F.count("*").alias("rows"),), 128, 7, key_type)
        rows = totals.withColumn("partition", F.spark_partition_id()).collect()
        assert sum(row.rows for row in rows) == 50
        for row in rows:
            key = key_of(row)
            subtask = keygroups.assign_key_to_parallel_operator(key, 128, 7, key_type)
            assert row.partition == subtask


@pytest.mark.parametrize(
    ("key", "aggregations", "key_type", "error", "says"),
    [
        ("s", [], None, InvalidTypeError, "aggregations must be a list of at least one column"),
        ("s", F.count, None, InvalidTypeError, "aggregations must be a list of at least one"),
        ([["s"], "n"], ["n"], None, InvalidTypeError, "key must be a column or a list of columns"),
        ("d", ["n"], None, UnsupportedKeyTypeError, "DOUBLE is not for groupBy, which makes one"),
        (["s", "d"], ["n"], None, UnsupportedKeyTypeError, "makes one key of 0.0 and -0.0"),
        ("l", ["n"], LIST(DOUBLE), UnsupportedKeyTypeError, "makes one key of 0.0 and -0.0"),
        (["s", "n"], ["n"], TUPLE(UUID, LONG), UnsupportedKeyTypeError, "two keys of a UUID"),
        ("s", ["n"], INT, InvalidTypeError, "key type INT takes a column of type int, but s is"),
        ("s", ["n"], "STRING", InvalidTypeError, "key_type must be a value of keygroups.types"),
        ([], ["n"], None, KeyGroupsError, "key must be at least one column"),
        ("none", ["n"], None, InvalidValueError, "key must be of df's columns, got 'none'"),
        (
            "s",
            ["m"],
            None,
            InvalidValueError,
            "aggregations must be .*got 'm': there are",
        ),
        ("s", ("sum(n)",), None, InvalidTypeError, r"at least one column, got \('sum\(n\)',\)"),
        ("s", "n", None, InvalidTypeError, "aggregations must be a list of at least one column"),
        ("*", ["n"], None, InvalidValueError, r"key must be one column, got '\*'"),
        (None, ["n"], None, InvalidTypeError, "key must be a column or a column name, got None"),
        (["s", "S"], ["n"], None, InvalidValueError, "must have different names, got 2 columns s"),
    ],
)
def test_bad_pre_aggregations(
    spark: SparkSession, key: Any, aggregations: Any, key_type: Any, error: Any, says: str
) -> None:
    df = spark.sql("select 'a' as s, bigint(1) as n, double(0) as d, array(double(0)) as l")
    if isinstance(aggregations, list):
        aggregations = [F.sum(name) for name in aggregations]
    with pytest.raises(error, match=says):
        pre_aggregate(df, key, aggregations, 128, 3, key_type)
    with pytest.raises(ParallelismError):
        pre_aggregate(df, "s", [F.sum("n")], 128, 129)


@pytest.mark.parametrize("alias", ["s", "S"])
def test_aggregate_named_like_the_key(spark: SparkSession, alias: str) -> None:
    df = spark.createDataFrame([("a", 1)], "s string, n int")
    with pytest.raises(InvalidValueError, match="different names, got 2 columns s: name them by"):
        pre_aggregate(df, "s", [F.max("n").alias(alias)], 128, 3)


def test_pre_aggregate_of_null_keys_fails(spark: SparkSession) -> None:
    df = spark.createDataFrame([("A", 1), (None, 2)], "key string, n int")
    totals = pre_aggregate(df, "key", [F.sum("n").alias("n")], 128, 3)
    with pytest.raises(QUERY_FAILS, match="key must not be null, which Flink refuses"):
        totals.collect()


# --- assert_placed ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def numbered(spark: SparkSession) -> DataFrame:
    pytest.importorskip("pyarrow")
    return spark.range(0, 300, 1, 2).selectExpr("string(id) AS k", "id AS n")


def subtasks(count: int, parallelism: int) -> list[int]:
    """Return the subtask of each of the keys "0", "1" and so on."""
    keys = map(str, range(count))
    return [keygroups.assign_key_to_parallel_operator(key, 128, parallelism) for key in keys]


@pytest.mark.long
@pytest.mark.parametrize("parallelism", [1, 5])
def test_what_is_placed_passes(numbered: DataFrame, parallelism: int) -> None:
    placed = repartition_by_subtask(numbered, "k", 128, parallelism)
    for df in (
        placed,
        placed.filter("n % 7 = 1").select("k").sortWithinPartitions("k"),
        placed.filter("n = 1"),  # the other partitions are empty
        pre_aggregate(numbered, "k", [F.count("*").alias("rows")], 128, parallelism),
    ):
        assert_placed(df, "k", 128, parallelism)
    tuples = repartition_by_subtask(numbered, ["k", "n"], 128, parallelism)
    assert_placed(tuples, ["k", F.col("n")], 128, parallelism, TUPLE(STRING, LONG))


@pytest.mark.long
def test_what_is_not_placed_is_refused(numbered: DataFrame) -> None:
    placed = repartition_by_subtask(numbered, "k", 128, 5)
    rows = Counter(subtasks(300, 5))
    says = (
        "df must have each row in the partition of its subtask, got 300 of 600 rows elsewhere: "
        f"{rows[0]} of subtask 0 in partition 5, {rows[1]} of subtask 1 in partition 6, "
        f"{rows[2]} of subtask 2 in partition 7 and in 2 more"
    )
    with pytest.raises(InvalidValueError) as raised:
        assert_placed(placed.union(placed), "k", 128, 5)
    assert str(raised.value) == says
    most, rest = max(rows[i] for i in range(1, 5)), 300 - rows[0]
    with pytest.raises(InvalidValueError, match="got") as raised:
        assert_placed(placed.coalesce(1), "k", 128, 5)
    assert f"got {rest} of 300 rows elsewhere: {most} of subtask " in str(raised.value)
    assert str(raised.value).endswith(f" and {rest - most} others in partition 0")
    for df in (numbered, placed.repartition(5, "n"), placed.orderBy("k")):
        with pytest.raises(InvalidValueError, match="of 300 rows elsewhere"):
            assert_placed(df, "k", 128, 5)


@pytest.mark.long
def test_each_subtask_has_a_partition(numbered: DataFrame) -> None:
    """One more is refused, and one less, though each row is where it should be."""
    first = repartition_by_subtask(numbered, "k", 128, 5).filter("k = '3'")
    assert subtasks(4, 5)[3] == subtasks(4, 4)[3] == subtasks(4, 6)[3]
    for parallelism in (4, 6):
        with pytest.raises(InvalidValueError, match=f"each of {parallelism} subtasks, got 5$"):
            assert_placed(first, "k", 128, parallelism)


def test_null_keys_are_placed_nowhere(numbered: DataFrame) -> None:
    df = numbered.limit(10).coalesce(1).selectExpr("if(n < 4, NULL, k) AS k")
    says = "^key must not be null, got 4 such rows, which Flink refuses: pass nulls='drop'"
    with pytest.raises(InvalidValueError, match=says):
        assert_placed(df, "k", 128, 1)
    assert_placed(df, "k", 128, 1, nulls="drop")


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (("x", 128, 5), InvalidValueError, "key must be of df's columns, got 'x': there are k, n"),
        (("k", 128, 129), ParallelismError, "parallelism must be from 1 to 128"),
        (("k", 128, 5, INT), InvalidTypeError, "takes a column of type int, but k is string"),
        (("k", 128, 5, "int"), InvalidTypeError, "key_type must be a value of keygroups.types"),
    ],
)
def test_bad_arguments_of_assert_placed(
    numbered: DataFrame, arguments: tuple[Any, ...], error: type[KeyGroupsError], says: str
) -> None:
    with pytest.raises(error, match=says):
        assert_placed(numbered, *arguments)


def test_a_stream_has_no_partitions_to_look_at(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    with pytest.raises(InvalidValueError, match="df must not be a stream: look at a batch"):
        assert_placed(stream, "value", 128, 5)
