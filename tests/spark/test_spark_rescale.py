"""What a rescale moves and which parallelism serves better, measured on DataFrames."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from support.selections import first_by_default

from keygroups import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    ParallelismError,
    RescalePlan,
    assign_key_to_parallel_operator,
    assign_to_key_group,
)
from keygroups.spark import key_group_load, rescale_report
from keygroups.types import INT, LONG, STRING, TUPLE, UUID, KeyType

# Skewed: the key number n has about 400 / n rows.
ROWS = [(f"user-{n}", i) for n in range(1, 60) for i in range(400 // n)]


@pytest.fixture(scope="module")
def visits(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, "user string, seconds int")


def weight_per_key(weight: str | None) -> Counter[str]:
    counts: Counter[str] = Counter()
    for user, seconds in ROWS:
        counts[user] += seconds if weight else 1
    return counts


def per_subtask(counts: Counter[str], max_parallelism: int, parallelism: int) -> list[int]:
    """The weight of each subtask, key by key."""
    loads = [0] * parallelism
    for key, weight in counts.items():
        loads[assign_key_to_parallel_operator(key, max_parallelism, parallelism)] += weight
    return loads


@pytest.mark.long
@pytest.mark.parametrize("weight", first_by_default(1, [None, "seconds"]))
@pytest.mark.parametrize(
    ("max_parallelism", "old", "new"),
    first_by_default(1, [(128, 3, 4), (128, 8, 5), (720, 12, 12), (10, 1, 10)]),
)
def test_report_agrees_with_plain_python(
    visits: DataFrame, max_parallelism: int, old: int, new: int, weight: str | None
) -> None:
    report = rescale_report(visits, "user", max_parallelism, old, new, weight=weight)
    counts = weight_per_key(weight)
    total = sum(counts.values())
    before = per_subtask(counts, max_parallelism, old)
    after = per_subtask(counts, max_parallelism, new)
    assert report.plan == RescalePlan(max_parallelism, old, new)
    assert report.load == key_group_load(visits, "user", max_parallelism, weight=weight)
    assert (report.weight_before, report.weight_after) == (before, after)
    assert report.imbalance_before == pytest.approx(max(before) * old / total)
    assert report.imbalance_after == pytest.approx(max(after) * new / total)
    assert report.hot_subtask_before == before.index(max(before))
    assert report.hot_subtask_after == after.index(max(after))
    moved = sum(
        weight
        for key, weight in counts.items()
        if assign_key_to_parallel_operator(key, max_parallelism, old)
        != assign_key_to_parallel_operator(key, max_parallelism, new)
    )
    assert report.moved_weight == moved
    assert report.moved_weight_share == pytest.approx(moved / total)

    near = range((new + 1) // 2, min(2 * new, max_parallelism) + 1)
    heaviest = {p: max(per_subtask(counts, max_parallelism, p)) for p in near}
    better = worth_their_subtasks(heaviest, near, new)
    assert [option.parallelism for option in report.recommendations] == better
    weights = [option.heaviest_weight for option in report.recommendations]
    assert weights == [heaviest[p] for p in better]

    text = str(report)
    assert text.startswith(f"{report.plan.table(report.load)}\n")
    for when, loads in (("before", before), ("after", after)):
        share = f"{max(loads) / total:.1%}"
        says = f"{loads.index(max(loads))} of {len(loads)} has {max(loads):,}"
        assert f"\nhot subtask {when}: {says}, {share} of the weight\n" in text
    recommended = text.partition("\nrecommended, ")[2].partition("\n")[2]
    output = [*map(str, report.recommendations[:3]), report.recommendations.floor]
    assert " ".join(recommended.split()) == " ".join(output).strip()


def worth_their_subtasks(heaviest: dict[int, int], near: range, new: int) -> list[int]:
    """Return the parallelisms with less in the heaviest than any lower one, at most the new's.

    One with 5 % more at most stands for another, where it saves a tenth of the imbalance.
    """

    def stands_for(lower: int, higher: int) -> bool:
        is_near = 100 * heaviest[lower] <= 105 * heaviest[higher]
        return is_near and 100 * lower * heaviest[lower] <= 90 * higher * heaviest[higher]

    worth: list[int] = []
    for p in near:
        is_lighter = all(heaviest[p] < heaviest[q] for q in range(near.start, p))
        if is_lighter and not any(stands_for(q, p) for q in worth):
            worth.append(p)
    return [p for p in reversed(worth) if heaviest[p] <= heaviest[new] or stands_for(p, new)]


def test_never_below_the_least(visits: DataFrame) -> None:
    """user-1, the heaviest of 59 users, has 400 of 1,843 rows in a key group of its own."""
    counts = weight_per_key(None)
    total = sum(counts.values())
    group = assign_to_key_group("user-1", 128)
    assert [key for key in counts if assign_to_key_group(key, 128) == group] == ["user-1"]
    free = rescale_report(visits, "user", 128, 24, 36)
    bound = rescale_report(visits, "user", 128, 24, 36, at_least=30)
    heaviest = {p: max(per_subtask(counts, 128, p)) for p in range(1, 129)}
    for report, low in ((free, 18), (bound, 30)):
        better = worth_their_subtasks(heaviest, range(low, 73), 36)
        assert [option.parallelism for option in report.recommendations] == better
    assert min(option.parallelism for option in free.recommendations) < 30
    lowest = min(p for p in heaviest if heaviest[p] == counts["user-1"])
    assert all(heaviest[p] >= heaviest[lowest] for p in heaviest)
    floor = f"key group {group} alone has {counts['user-1'] / total:.1%}: beyond "
    assert f"{floor}{lowest} subtasks nothing gets better" == bound.recommendations.floor
    assert str(bound).endswith(f"\n{bound.recommendations.floor}")


def test_weights_that_are_no_integers(spark: SparkSession) -> None:
    rows = [("A", 0.5), ("B", 0.25), ("A", 1.0)]
    df = spark.createDataFrame(rows, "key string, size double")
    report = rescale_report(df, "key", 128, 1, 2, weight=F.col("size"))
    expected = [0.0, 0.0]
    for key, size in rows:
        expected[assign_key_to_parallel_operator(key, 128, 2)] += size
    assert report.weight_after == expected
    assert report.weight_before == [1.75]


@pytest.mark.slow
def test_declared_and_compound_keys(spark: SparkSession) -> None:
    text = "123e4567-e89b-12d3-a456-426614174000"
    df = spark.createDataFrame([(text, -1)], "id string, n int")
    for key, key_type in (("id", None), ("id", UUID), (["id", "n"], None)):
        report = rescale_report(df, key, 128, 128, 1, key_type)
        assert report.load == key_group_load(df, key, 128, key_type)
    report = rescale_report(df, ["id", "n"], 128, 128, 1, TUPLE(STRING, INT))
    key_group = assign_to_key_group((text, -1), 128, TUPLE(STRING, INT))
    assert report.hot_subtask_before == key_group


def test_reads_the_data_once(visits: DataFrame, collected: list[int]) -> None:
    str(rescale_report(visits, "user", 16, 3, 4))
    assert len(collected) == 1
    assert 1 < collected[0] <= 16  # rows of key groups, not of visits


@pytest.mark.parametrize("at_least", [0, 5, 1.5, None])
def test_bad_least_raises_before_any_job(spark: SparkSession, at_least: Any) -> None:
    df = spark.range(1).select(F.raise_error(F.lit("a job was run")).cast("int").alias("key"))
    with pytest.raises(ParallelismError, match="at_least must be"):
        rescale_report(df, "key", 128, 8, 4, at_least=at_least)


@pytest.mark.long
def test_null_keys_and_bad_weights_raise(spark: SparkSession) -> None:
    df = spark.createDataFrame([("A", 1), (None, 1)], "key string, w int")
    with pytest.raises(
        InvalidValueError, match="key must not be null, got 1 such rows, which Flink refuses"
    ):
        rescale_report(df, "key", 128, 3, 4)
    for weight, says in ((-1, "in every row, 1"), (None, "in every row, 1")):
        df = spark.createDataFrame([("A", 1), ("A", weight)], "key string, w int")
        with pytest.raises(InvalidValueError, match=f"weight must be a number >= 0 {says}"):
            rescale_report(df, "key", 128, 3, 4, weight="w")
    with pytest.raises(InvalidTypeError, match="weight must be a numeric column, but key is"):
        rescale_report(df, "key", 128, 3, 4, weight="key")


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ((128, 129, 4), r"old_parallelism must be from 1 to 128 \(max_parallelism\), got 129"),
        ((128, 3, 129), r"new_parallelism must be from 1 to 128 \(max_parallelism\), got 129"),
        ((128, 0, 4), "old_parallelism must be from 1 to 128"),
        ((128, 3, True), "new_parallelism must be an int, got True"),
        ((32769, 3, 4), "max_parallelism must be from 1 to 32768"),
    ],
)
def test_bad_parallelisms_raise_before_any_job(
    spark: SparkSession, sizes: tuple[int, int, int], says: str
) -> None:
    df = spark.range(1).select(F.raise_error(F.lit("a job was run")).cast("int").alias("key"))
    with pytest.raises(ParallelismError, match=says):
        rescale_report(df, "key", *sizes)


@pytest.mark.parametrize(
    ("key", "key_type", "says"),
    [
        ("n", INT, "key type INT takes a column of type int, but n is bigint"),
        (["s", "n"], TUPLE(STRING), "must be 1 columns, got 2"),
        ("b", None, r"key column b of type binary: Flink refuses byte\[\] as a key"),
        ("s", LONG, "key type LONG takes a column of type bigint, but s is string"),
    ],
)
def test_bad_keys_raise(spark: SparkSession, key: Any, key_type: KeyType, says: str) -> None:
    df = spark.createDataFrame([("a", 1, b"")], "s string, n bigint, b binary")
    with pytest.raises(KeyGroupsError, match=says):
        rescale_report(df, key, 128, 3, 4, key_type)
    with pytest.raises(InvalidValueError, match="key must be of df's columns, got 'user_id'"):
        rescale_report(df, "user_id", 128, 3, 4)


def test_no_rows_are_no_weight(visits: DataFrame) -> None:
    report = rescale_report(visits.limit(0), "user", 128, 3, 4)
    assert (report.weight_before, report.weight_after) == ([0] * 3, [0] * 4)
    assert (report.moved_weight, report.moved_weight_share) == (0, 0)
    assert " has 0, 0.0% of the weight" in str(report)
    assert "no weight anywhere" in str(report)
