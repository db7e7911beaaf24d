"""The skew report, against counts by brute force in plain Python."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from support.selections import first_by_default
from support.spark.session_settings import changed

from keygroups import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    LocalKeyBy,
    ParallelismError,
    UnsupportedKeyTypeError,
    arrays,
    assign_key_to_parallel_operator,
    assign_to_key_group,
    compute_key_group_range_for_operator_index,
)
from keygroups.spark import skew_report
from keygroups.types import (
    DOUBLE,
    FLOAT,
    INSTANT,
    INT,
    LIST,
    LONG,
    PYFLINK,
    ROW,
    SQL_ROW,
    STRING,
    TUPLE,
    UUID,
    KeyType,
)

FLIGHTS = Path(__file__).resolve().parents[2] / "examples" / "data" / "nycflights13.parquet"
UNLUCKY = "many keys unluckily together"
BY: list[tuple[Any, KeyType]] = [
    ("carrier", STRING),
    ("origin", STRING),
    ("dest", STRING),
    ("flight", INT),
    (["origin", "dest"], TUPLE(STRING, STRING)),
]

CountFlights = Callable[[Any], Counter[Any]]


@pytest.fixture(scope="module")
def flights(spark: SparkSession) -> DataFrame:
    return spark.read.parquet(str(FLIGHTS))


@pytest.fixture(scope="module")
def rows(flights: DataFrame) -> list[tuple[int, Any]]:
    """The keys of every flight with its Spark partition."""
    return in_order(flights.select("carrier", "tailnum", "origin", "dest"))


def in_order(df: DataFrame) -> list[tuple[int, Any]]:
    # collect() returns partition after partition, each in its order.
    return [(row[-1], row) for row in df.withColumn("p", F.spark_partition_id()).collect()]


def key_of(row: Any, by: Any) -> Any:
    return row[by] if isinstance(by, str) else tuple(row[name] for name in by)


def sent_by_local_key_by(
    keyed: list[tuple[int, Any]], batch_size: int, parallelism: int, key_type: KeyType
) -> list[int]:
    """Run LocalKeyBy in front of every partition and count what each subtask receives."""
    buffers: dict[int, LocalKeyBy[Any, int]] = defaultdict(
        lambda: LocalKeyBy(batch_size, lambda a, b: a + b)
    )
    sent, records = [0] * parallelism, 0
    subtask_of: dict[Any, int] = {}

    def send(entries: list[tuple[Any, int]]) -> int:
        for key, _ in entries:
            if key not in subtask_of:
                subtask_of[key] = assign_key_to_parallel_operator(key, 128, parallelism, key_type)
            sent[subtask_of[key]] += 1
        return sum(value for _, value in entries)

    for partition, key in keyed:
        records += send(buffers[partition].process(key, 1))
    records += sum(send(buffer.flush()) for buffer in buffers.values())
    assert records == len(keyed)
    return sent


@pytest.mark.long
@pytest.mark.parametrize(("by", "key_type"), first_by_default(1, BY), ids=str)
@pytest.mark.parametrize(
    "parallelism",
    [pytest.param(1, marks=pytest.mark.slow), 4, pytest.param(32, marks=pytest.mark.slow)],
)
def test_flights(
    flights: DataFrame, flights_by: CountFlights, by: Any, key_type: KeyType, parallelism: int
) -> None:
    keys = flights_by(by)
    records = keys.total()
    groups = {key: assign_to_key_group(key, 128, key_type) for key in keys}
    report = skew_report(flights, by, 128, parallelism, top=3)
    assert report.key_type == key_type
    assert report.records == records == 336_776
    assert report.distinct_keys == len(keys)
    assert len(report.subtasks) == parallelism
    hot = []
    for subtask, row in enumerate(report.subtasks):
        own = {
            key: count
            for key, count in keys.items()
            if assign_key_to_parallel_operator(key, 128, parallelism, key_type) == subtask
        }
        total = sum(own.values())
        assert row.subtask == subtask
        assert (row.records, row.distinct_keys) == (total, len(own))
        assert row.share == pytest.approx(total / records)
        assert row.times_mean == pytest.approx(total * parallelism / records)
        assert row.key_groups == compute_key_group_range_for_operator_index(
            128, parallelism, subtask
        )
        assert row.sent is None
        if 2 * total * parallelism >= 3 * records:
            top = sorted(own, key=lambda key: (-own[key], groups[key], key))[:3]
            hot.append((-total, subtask, [(k, groups[k], own[k], own[k] / total) for k in top]))
    assert [
        (hot.subtask, [tuple(key) for key in hot.top_keys]) for hot in report.hot_subtasks
    ] == [(subtask, top) for _, subtask, top in sorted(hot)]
    heaviest = max(row.records for row in report.subtasks)
    assert report.imbalance == pytest.approx(heaviest * parallelism / records)


@pytest.mark.long
@pytest.mark.parametrize(
    ("by", "parallelism", "diagnosis", "says"),
    first_by_default(
        1,
        [
            # B6, the top key of subtask 0, has 0.65 times the mean of one; 16 keys reach all.
            ("carrier", 4, UNLUCKY, "the best up to 8 is 7, and still has "),
            # EWR, JFK and LGA are together in one subtask, and three have none.
            ("origin", 4, "too few keys", "3 keys reach 1 of 4 subtasks"),
            ("origin", 12, "too few keys", "3 keys reach 3 of 12 subtasks"),
            # UA has 5.57 times the mean of a subtask, but only 2.8 times that of a carrier.
            ("carrier", 32, "too few keys", "16 keys reach 12 of 32 subtasks"),
            ("carrier", 2, "even", "nothing to do"),
            ("dest", 4, "even", "nothing to do"),
            # Subtask 22 has MCO and DCA, of 1.34 and 0.92 times the mean.
            ("dest", 32, UNLUCKY, "the best up to 64 is "),
        ],
    ),
)
def test_diagnosis_of_the_flights(
    flights: DataFrame,
    flights_by: CountFlights,
    by: str,
    parallelism: int,
    diagnosis: str,
    says: str,
) -> None:
    report = skew_report(flights, by, 128, parallelism)
    assert report.diagnosis == diagnosis
    assert says in report.remedy
    if diagnosis == UNLUCKY:
        keys = flights_by(by)
        heaviest = {}
        for higher in range(parallelism + 1, 2 * parallelism + 1):
            loads: Counter[int] = Counter()
            for key, count in keys.items():
                loads[assign_key_to_parallel_operator(key, 128, higher)] += count
            heaviest[higher] = max(loads.values())
        best = min(heaviest, key=heaviest.__getitem__)  # the lowest of several
        imbalance = heaviest[best] * best / keys.total()
        says = f"{heaviest[best]:,} in its heaviest subtask, imbalance {imbalance:.2f}:"
        assert f" is {best}, and still has {says}" in report.remedy


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [1, 7, 100, 5000, 10**6])
def test_local_key_by(flights: DataFrame, rows: list[Any], batch_size: int) -> None:
    for by, key_type in (("carrier", STRING), (["origin", "dest"], TUPLE(STRING, STRING))):
        report = skew_report(flights, by, 128, 7, batch_size=batch_size)
        keyed = [(partition, key_of(row, by)) for partition, row in rows]
        expected = sent_by_local_key_by(keyed, batch_size, 7, key_type)
        assert [row.sent for row in report.subtasks] == expected
        assert report.batch_size == batch_size
        assert report.sent is not None
        assert report.sent.per_subtask(7) == expected
        assert [row.records for row in report.subtasks] == [
            row.records for row in skew_report(flights, by, 128, 7).subtasks
        ]
        if batch_size == 1:
            assert expected == [row.records for row in report.subtasks]


@pytest.mark.slow
def test_local_key_by_in_the_order_of_each_partition(flights: DataFrame, ansi: None) -> None:
    few = flights.limit(20_000).repartition(3, "flight")
    mixed = few.sortWithinPartitions("flight")
    ordered = few.sortWithinPartitions("dest")
    total = {}
    for name, df in (("mixed", mixed), ("ordered", ordered), ("whole", few.orderBy("dest"))):
        report = skew_report(df, "dest", 128, 4, batch_size=50)
        keyed = [(partition, row.dest) for partition, row in in_order(df)]
        assert [row.sent for row in report.subtasks] == sent_by_local_key_by(keyed, 50, 4, STRING)
        total[name] = sum(row.sent or 0 for row in report.subtasks)
    assert total["ordered"] < total["mixed"] / 2


@pytest.mark.slow
def test_doubles_that_spark_takes_for_one(spark: SparkSession, ansi: None) -> None:
    """Double.equals tells 0.0 from -0.0, and takes every NaN for the same."""
    values = [0.0, -0.0, -0.0, math.nan, math.nan, math.nan, -math.inf, -math.inf, 1e22, 0.1]
    shapes: list[tuple[str, Any, KeyType, Any]] = [
        ("double", lambda x: x, DOUBLE, lambda key: key),
        (
            "struct<a:double,b:string>",
            lambda x: (x, "é"),
            TUPLE(DOUBLE, STRING),
            lambda key: key.a,
        ),
        ("array<struct<a:double>>", lambda x: [(x,)], LIST(ROW(DOUBLE)), lambda key: key[0].a),
    ]
    for ddl, wrap, key_type, unwrap in shapes:
        df = spark.createDataFrame([(wrap(value),) for value in values], f"key {ddl}")
        df = df.coalesce(1)
        by: Any
        for by in ("key", ["key"]) if ddl != shapes[1][0] else ("key",):
            report = skew_report(df, by, 1024, 1024, key_type, batch_size=100)
            assert report.records == 10
            assert report.distinct_keys == sum(row.sent or 0 for row in report.subtasks) == 6
            tops = [key for hot in report.hot_subtasks for key in hot.top_keys]
            assert Counter({repr(unwrap(key.key)): key.records for key in tops}) == Counter(
                map(repr, values)
            )
    pairs = [(0.0, -0.0), (-0.0, 0.0), (-0.0, 0.0)]  # one hash code, two keys
    df = spark.createDataFrame(pairs, "a double, b double")
    report = skew_report(df, ["a", "b"], 128, 128)
    [hot] = report.hot_subtasks
    assert [(str(key.key), key.records) for key in hot.top_keys] == [
        ("(-0.0, 0.0)", 2),
        ("(0.0, -0.0)", 1),
    ]
    assert "(-0.0, 0.0)" in str(report)


@pytest.mark.slow
@pytest.mark.parametrize("ddl", ["float", "double"])
def test_columns_that_hold_no_null(spark: SparkSession, ansi: None, ddl: str) -> None:
    """Spark casts no text to them without ANSI mode, as the cast may make a null."""
    number: KeyType = FLOAT if ddl == "float" else DOUBLE
    df = spark.range(3).selectExpr(f"cast(id as {ddl}) x", "id", f"cast(-0.0D as {ddl}) zero")
    df = df.selectExpr("*", "struct(x, id) s", "array(x, zero) a", "array(struct(x as y)) sa")
    nested = TUPLE(TUPLE(number, LONG), LIST(number), LIST(TUPLE(number)))
    shapes: list[tuple[Any, KeyType, list[Any]]] = [
        ("x", number, [0.0, 1.0, 2.0]),
        (["x", "id"], TUPLE(number, LONG), [(float(i), i) for i in range(3)]),
        ("s", TUPLE(number, LONG), [(float(i), i) for i in range(3)]),
        ("a", LIST(number), [[float(i), -0.0] for i in range(3)]),
        (["s", "a", "sa"], nested, [((i, i), [i, -0.0], [(i,)]) for i in range(3)]),
    ]
    for key, key_type, keys in shapes:
        report = skew_report(df, key, 1024, 1024, key_type)
        found = [top.key for hot in report.hot_subtasks for top in hot.top_keys]
        assert sorted(found) == keys  # Rows are tuples


@pytest.mark.slow
def test_uuid_in_either_case(spark: SparkSession) -> None:
    text = "123e4567-e89b-12d3-a456-42661417400a"
    df = spark.createDataFrame([(text,), (text.upper(),)], "id string").coalesce(1)
    report = skew_report(df, "id", 128, 4, UUID, batch_size=2)
    assert report.distinct_keys == 1
    assert report.hot_subtasks[0].top_keys[0][::2] == (text, 2)
    assert sum(row.sent or 0 for row in report.subtasks) == 1
    assert skew_report(df, "id", 128, 4).distinct_keys == 2


@pytest.mark.slow
def test_kinds_of_keys(spark: SparkSession) -> None:
    df = spark.sql("select named_struct('id', 7) as user, cast(null as int) as n, -1 as m")
    for key, key_type, shown in (
        ("user.id", INT, 7),
        (F.col("m").cast("bigint"), LONG, -1),
        (["m"], INT, -1),
        (["m", "n"], TUPLE(INT, INT), (-1, None)),
        (["m", ["n", "user.id"]], TUPLE(INT, TUPLE(INT, INT)), (-1, (None, 7))),
    ):
        report = skew_report(df, key, 128, 4)
        assert report.key_type == key_type
        [hot] = report.hot_subtasks
        assert hot.top_keys[0].key == shown
        assert hot.subtask == assign_key_to_parallel_operator(shown, 128, 4, key_type)


@pytest.mark.slow
def test_two_passes_and_few_rows(spark: SparkSession, collected: list[int]) -> None:
    """However many the keys, the driver gets a row per key group, and the top of the hot ones."""
    even = spark.range(50_000)
    assert skew_report(even, "id", 128, 4, batch_size=10).diagnosis == "even"
    assert collected == [128]
    collected.clear()
    hot = even.selectExpr("if(id < 30000, id % 3, id) as id")
    assert len(skew_report(hot, "id", 128, 4, top=6).hot_subtasks) == 1
    assert collected == [128, 6]


def test_no_records(spark: SparkSession) -> None:
    report = skew_report(spark.range(0), "id", 128, 3, batch_size=10)
    assert (report.records, report.distinct_keys, report.imbalance) == (0, 0, 1.0)
    assert report.diagnosis == "even"
    assert [row[1:5] for row in report.subtasks] == [(0, 0.0, 0.0, 0)] * 3
    assert "sends 0 records for 0" in str(report)


@pytest.mark.slow
def test_text(flights: DataFrame) -> None:
    report = skew_report(flights, "carrier", 128, 4, top=2, batch_size=1000)
    lines = str(report).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == f"{UNLUCKY}: the heaviest of 4 subtasks has 1.76 times the mean"
    header = next(line.split("  ") for line in lines if line.startswith("subtask  "))
    assert [cell.strip() for cell in header if cell] == [
        "subtask",
        "records",
        "share",
        "x mean",
        "key groups",
        "keys",
        "sent",
    ]
    cells = next(line.split() for line in lines if line.startswith("      0"))
    assert cells[:6] == ["0", "148,189", "44.0%", "1.76", "0-31", "7"]
    assert "records  of the subtask  key group  key" in lines
    assert " 54,635           36.9%          1  'B6'" in lines
    assert sum(row.sent or 0 for row in report.subtasks) == int(
        next(line for line in lines if line.startswith("LocalKeyBy")).split()[6].replace(",", "")
    )
    assert "SkewReport(key_type=STRING, parallelism=4" in repr(report)


@pytest.mark.slow
def test_null_keys(spark: SparkSession) -> None:
    df = spark.createDataFrame([("A",), (None,), (None,)], "key string")
    for batch_size in (None, 5):
        with pytest.raises(
            InvalidValueError, match="key must not be null, got 2 such rows, which Flink refuses"
        ):
            skew_report(df, "key", 128, 3, batch_size=batch_size)
    kept = skew_report(df.dropna(), "key", 128, 3)
    assert kept.records == 1
    assert kept.null_keys == 0


@pytest.mark.slow
def test_null_keys_that_are_dropped(flights: DataFrame, rows: list[tuple[int, Any]]) -> None:
    """What is left is what there is without them; batches too are of the records left."""
    keyed = [(partition, row.tailnum) for partition, row in rows]
    some = [pair for pair in keyed if pair[1] is not None]
    kept = flights.dropna(subset=["tailnum"])
    for batch_size in (None, 50):
        dropped = skew_report(flights, "tailnum", 128, 4, nulls="drop", batch_size=batch_size)
        assert dropped.null_keys == len(keyed) - len(some) == 2_512
        without = skew_report(kept, "tailnum", 128, 4, batch_size=batch_size)
        assert dataclasses.replace(dropped, null_keys=0) == without
    assert [row.sent for row in dropped.subtasks] == sent_by_local_key_by(some, 50, 4, STRING)
    assert "2,512 records with a null key are left out: Flink would fail" in str(dropped)


@pytest.mark.slow
def test_keys_that_are_null_in_part_are_no_null_keys(spark: SparkSession) -> None:
    df = spark.createDataFrame([("A", None), (None, None)], "a string, b int")
    report = skew_report(df, ["a", "b"], 128, 3, nulls="drop")
    assert (report.records, report.null_keys) == (2, 0)
    row = skew_report(df, ["b"], 128, 3, SQL_ROW("INT"), nulls="drop")
    assert (row.records, row.null_keys) == (2, 0)
    assert skew_report(df, "b", 128, 3, nulls="drop").records == 0


@pytest.mark.parametrize("subtask", first_by_default(1, [17, 0, 22]))
@pytest.mark.slow
def test_the_subtask_that_is_asked_for(
    flights: DataFrame, rows: list[tuple[int, Any]], subtask: int
) -> None:
    """Of 32 subtasks 22 is the hottest, 17 has one key, 0 has some."""
    keys = Counter(row.dest for _, row in rows)
    own = {
        key: count
        for key, count in keys.items()
        if assign_key_to_parallel_operator(key, 128, 32) == subtask
    }
    total, mean = sum(own.values()), len(rows) / 32
    groups: dict[int, list[int]] = defaultdict(list)
    for key, count in own.items():
        groups[assign_to_key_group(key, 128)].append(count)
    report = skew_report(flights, "dest", 128, 32, top=3, subtask=subtask)
    detail = report.detail
    assert detail is not None
    assert detail.row == report.subtasks[subtask]
    assert detail.row.records == total
    assert detail.row.key_groups == compute_key_group_range_for_operator_index(128, 32, subtask)
    heaviest = sorted(groups, key=lambda group: (-sum(groups[group]), group))[:3]
    assert [tuple(group) for group in detail.top_key_groups] == [
        (group, sum(groups[group]), sum(groups[group]) / total, len(groups[group]))
        for group in heaviest
    ]
    assert [tuple(key) for key in detail.top_keys] == [
        (key, assign_to_key_group(key, 128), count, count / total)
        for key, count in Counter(own).most_common(3)
    ]
    assert detail.diagnosis == (UNLUCKY if total >= 1.5 * mean else "not hot")
    lines = str(report).splitlines()
    assert (
        f"subtask {subtask}: {detail.diagnosis}, with {total / mean:.2f} times the mean" in lines
    )
    # The others are as they are without it.
    assert report == dataclasses.replace(
        skew_report(flights, "dest", 128, 32, top=3), detail=detail
    )


def test_an_idle_subtask_that_is_asked_for(flights: DataFrame, collected: list[int]) -> None:
    detail = skew_report(flights.limit(100), "origin", 128, 4, subtask=1).detail
    assert detail is not None
    assert detail.diagnosis == "too few keys"
    assert detail.row.records == 0
    assert detail[3:] == ((), ())
    assert skew_report(flights.limit(0), "origin", 128, 4, subtask=1).records == 0


@pytest.mark.slow
def test_asking_takes_one_pass_more(spark: SparkSession, collected: list[int]) -> None:
    report = skew_report(spark.range(50_000), "id", 128, 4, top=6, subtask=3)
    assert report.hot_subtasks == ()
    assert report.detail is not None
    assert collected == [128, 6]


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"top": 0}, InvalidValueError, "top must be from 1 to 1000, got 0"),
        ({"top": 1001}, InvalidValueError, "top must be from 1 to 1000, got 1001"),
        ({"top": 1.5}, InvalidTypeError, "top must be an int"),
        ({"batch_size": 0}, InvalidValueError, "batch_size must be from 1 to 2147483647, got 0"),
        ({"batch_size": 2**31}, InvalidValueError, "batch_size must be from 1 to"),
        ({"batch_size": True}, InvalidTypeError, "batch_size must be an int"),
        ({"subtask": 3}, InvalidValueError, "subtask must be from 0 to 2, got 3"),
        ({"subtask": -1}, InvalidValueError, "subtask must be from 0 to 2, got -1"),
        ({"subtask": "1"}, InvalidTypeError, "subtask must be an int, got '1'"),
        ({"nulls": "mask"}, InvalidValueError, "nulls must be one of raise, drop, got 'mask'"),
        ({"nulls": None}, InvalidValueError, "nulls must be one of raise, drop, got None"),
        ({"parallelism": 129}, ParallelismError, "parallelism must be from 1 to 128"),
        ({"max_parallelism": 0}, ParallelismError, "max_parallelism must be"),
        ({"key_type": INT}, InvalidTypeError, "key type INT takes a column of type int"),
        ({"key_type": "LONG"}, InvalidTypeError, "key_type must be a value of keygroups.types"),
        ({"key": []}, KeyGroupsError, "key must be at least one column"),
        ({"key": "none"}, InvalidValueError, "key must be of df's columns, got 'none'"),
    ],
)
def test_bad_arguments(
    spark: SparkSession, arguments: dict[str, Any], error: type[Exception], says: str
) -> None:
    right = {"key": "id", "max_parallelism": 128, "parallelism": 3}
    df = spark.range(1).select(F.raise_error(F.lit("a job was run")).cast("bigint").alias("id"))
    with pytest.raises(error, match=says):
        skew_report(df, **{**right, **arguments})


def same() -> Any:
    return F.udf(lambda text: text, "string", useArrow=False)


@pytest.mark.parametrize(
    "key",
    [
        lambda: F.rand(),
        lambda: F.concat("word", F.expr("uuid()")),
        lambda: ["word", same().asNondeterministic()("word")],
    ],
    ids=["rand", "uuid", "udf"],
)
def test_a_key_that_is_another_each_time_is_refused(
    spark: SparkSession, key: Callable[[], Any]
) -> None:
    df = spark.range(1).select(F.raise_error(F.lit("a job was run")).cast("string").alias("word"))
    with pytest.raises(InvalidValueError, match="key must be the same each time"):
        skew_report(df, key(), 128, 3)


@pytest.mark.long
def test_a_key_that_is_the_same_each_time(spark: SparkSession) -> None:
    """Whatever else of the row is another."""
    df = spark.createDataFrame([("hello", 0.5)], "word string, n double")
    assert skew_report(df.withColumn("n", F.rand()), same()("word"), 128, 3).records == 1


@pytest.mark.slow
def test_keys_of_sql_and_pyflink(spark: SparkSession) -> None:
    df = spark.createDataFrame([(0.0, 7), (-0.0, 7), (0.0, 8)], "x double, n bigint")
    sql = skew_report(df, "n", 128, 2, SQL_ROW("BIGINT"))
    assert [row.records for row in sql.subtasks] == [
        sum(
            assign_key_to_parallel_operator((n,), 128, 2, SQL_ROW("BIGINT")) == subtask
            for n in (7, 7, 8)
        )
        for subtask in range(2)
    ]
    assert sql.distinct_keys == 2
    assert skew_report(df, "x", 128, 2, PYFLINK(DOUBLE)).distinct_keys == 2  # two Doubles in Java
    nested = df.selectExpr("array(struct(1 AS a, float(x) AS b)) AS x")
    for rows, key_type in ((df, SQL_ROW("DOUBLE")), (nested, SQL_ROW("ARRAY<ROW<INT, FLOAT>>"))):
        with pytest.raises(UnsupportedKeyTypeError, match="FLOAT or DOUBLE in it"):
            skew_report(rows, "x", 128, 2, key_type)


@pytest.mark.parametrize(
    ("key", "key_type"),
    [pytest.param(*by, marks=pytest.mark.slow) for by in BY],
    ids=str,
)
def test_arrays_give_the_same_report(flights: DataFrame, key: Any, key_type: KeyType) -> None:
    """One of the same records, from the same file."""
    from pyarrow import parquet

    table = parquet.read_table(FLIGHTS)
    for parallelism in (3, 24):
        on_spark = skew_report(flights, key, 128, parallelism, key_type, top=5, subtask=1)
        assert arrays.skew_report(table, key, 128, parallelism, key_type, 5, subtask=1) == on_spark
        assert on_spark.records > 100_000


def test_two_instants_of_one_local_time(spark: SparkSession) -> None:
    """In New York it is 1:30 twice in the night when its clocks go back."""
    with changed(spark, {"spark.sql.session.timeZone": "America/New_York"}):
        df = spark.sql(
            "SELECT 1.5D AS x, timestamp_seconds(1793511000 + 3600 * id) AS t FROM range(2)"
        )
        assert skew_report(df, ["x", "t"], 1, 1, TUPLE(DOUBLE, INSTANT)).distinct_keys == 2


@pytest.mark.long
@pytest.mark.parametrize("parallelism", [100, 64])
def test_causes_are_those_of_arrays(spark: SparkSession, parallelism: int) -> None:
    """A quarter of the records have one key; 128 key groups are uneven at 100, not at 64."""
    arrays = pytest.importorskip("keygroups.arrays")
    numbers = np.arange(40_000)
    same = arrays.skew_report(
        {"id": np.where(numbers % 4 == 0, 0, numbers)}, "id", 128, parallelism
    )
    df = spark.range(40_000).selectExpr("if(id % 4 = 0, 0, id) as id")
    report = skew_report(df, "id", 128, parallelism)
    assert (report.causes, report.diagnosis, report.remedy) == (
        same.causes,
        same.diagnosis,
        same.remedy,
    )
    names = {cause.name for cause in report.causes}
    assert names == {"one hot key"} | ({"uneven key groups"} if parallelism == 100 else set())
    assert sum(cause.share for cause in report.causes) == pytest.approx(report.imbalance - 1)
