"""The skew report: which subtasks of a Flink job are hot, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from keygroups._checks import check_null_keys
from keygroups.errors import UnsupportedKeyTypeError
from keygroups.reports import SkewReport
from keygroups.reports._skew import SkewQuestion
from keygroups.spark import functions as KF
from keygroups.spark._columns.backend import PORTABLE
from keygroups.spark._columns.key_columns import KeyColumn, KeyTree
from keygroups.spark._columns.key_hash import contains, key_fields
from keygroups.spark.dataframe import (
    aggregated,
    check_deterministic,
    key_group_column,
    routable,
)
from keygroups.types import (
    DOUBLE,
    FLOAT,
    LIST,
    PYFLINK,
    SCALA_OPTION,
    SQL_ROW,
    UUID,
    FieldsType,
    KeyType,
)

__all__ = ["skew_report"]
__dir__ = __all__.copy


def skew_report(
    df: DataFrame,
    key: KF.Key,
    max_parallelism: int,
    parallelism: int,
    key_type: KeyType | None = None,
    top: int = 10,
    batch_size: int | None = None,
    subtask: int | None = None,
    nulls: str = "raise",
) -> SkewReport:
    """Count what each subtask of a keyed Flink operator gets, and say why some get too much.

    `key`, `max_parallelism`, `parallelism` and `key_type` are those of `with_routing`. All
    counts are exact. `df` is read once, and once more if a subtask is hot or asked for; the
    driver gets a row for each key group and at most `top` keys, 1 to 1000, for each hot subtask.

    Where max parallelism and parallelism alone give a subtask 1.2 times the mean or more there
    are *uneven key groups*: the report names the nearest parallelisms that are even, and the max
    parallelism that makes this one even. All else that a subtask has beyond the mean is due to
    its keys, but for 5 % of what its key groups explain: `causes` has the share of each.

    A subtask is *hot* with at least 1.5 times the mean. What its keys do is the first that holds:

    - *one hot key*: its top key alone has 1.5 times the mean; where some subtask gets no key
      at all, that key also has 4 times the records of the mean key. A key is in one subtask
      at any parallelism: pre-aggregate, or split the key.
    - *too few keys*: some subtask gets no key. Take a key of more values, or substitute keys.
    - *many keys unluckily together*: take the parallelism that the report names, or another
      max parallelism.

    The diagnosis of the whole is that of its hottest subtask, beside any *uneven key groups*.
    Without a hot one it is *too few keys* where a subtask gets no key, *uneven keys* where those
    add to uneven key groups, else *even*.

    `subtask`, 0 <= subtask < parallelism, asks for one more closely, hot or not: its range of
    key groups, the `top` heaviest of these, its keys and diagnosis are the report's `detail`.

    `nulls` is "raise" or "drop" for null keys, as `keygroups.spark` has it; the report says how
    many are dropped.

    With `batch_size`, 1 to 2^31-1, the report counts what `LocalKeyBy` of that batch size
    would send, if each Spark partition of `df` were a subtask upstream: exact for the order
    of the rows in each partition, and for the partitions that `df` has in this run. To drop
    null keys before it, `df` is read once more.

    Raises what `with_routing` raises, InvalidValueError or InvalidTypeError for the arguments
    after it and InvalidValueError for a key that is not deterministic, such as rand(), before any
    job is run, and InvalidValueError if a key is null.

    >>> df = spark.range(0, 100, 1, 2).selectExpr("if(id < 60, 'A', string(id)) as letter")
    >>> report = skew_report(df, "letter", 128, 3, top=1, batch_size=10)
    >>> report.diagnosis, report.hot_subtasks[0].top_keys[0].key
    ('one hot key', 'A')
    >>> [(row.records, row.sent) for row in report.subtasks]
    [(16, 16), (11, 11), (73, 19)]
    >>> skew_report(df, "letter", 128, 3, subtask=0).detail.diagnosis
    'not hot'
    """
    question = SkewQuestion.checked(max_parallelism, parallelism, top, batch_size, subtask)
    max_parallelism, _, top, batch_size, _ = question
    is_inferred = key_type is None
    _, tree, key_type = routable(df, key, key_type, nulls)  # the null keys are counted below
    drop = nulls == "drop"
    key_group = key_group_column(df, tree, max_parallelism, key_type).alias("key_group")
    check_deterministic(df, tree)
    same = _same(tree, key_type).alias("key")

    null_keys = 0
    if drop and batch_size is not None:  # Batches are made of the other records.
        null_keys = df.where(key_group.isNull()).count()
        df = df.where(key_group.isNotNull())
    counted = _measure(df, key_group, same, max_parallelism, batch_size)
    records, keys, sent, others = counted
    null_keys += others
    check_null_keys(null_keys, drop)

    def top_keys_of(wanted: list[bool]) -> Iterator[tuple[int, int, int, Any]]:
        count_all = F.count(F.lit(1)).alias("records")
        per_key_records = aggregated(
            df.select(key_group, same), [F.col("key_group"), F.col("key")], [count_all]
        )
        heaviest = _top_keys(per_key_records, wanted, max_parallelism, top)
        value_type = _nullable(df.select(_value(tree).alias("key")).schema["key"].dataType)
        shown = heaviest.select("subtask", "key_group", "records", F.col("key").cast(value_type))
        for index, group, count, value in shown.collect():
            if isinstance(key, (list, tuple)) and len(key) > 1:
                value = tuple(value)
            yield index, group, count, value

    return question.report(key_type, is_inferred, records, keys, sent, null_keys, top_keys_of)


def _measure(
    df: DataFrame, key_group: Column, key: Column, max_parallelism: int, batch_size: int | None
) -> tuple[list[int], list[int], list[int], int]:
    """Return the records, keys and records after LocalKeyBy of key groups, and the null keys."""
    of_key = [F.col("key_group"), F.col("key")]
    one = F.lit(1)
    count_all = F.count(one).alias("records")
    if batch_size is None:
        keyed = df.select(key_group, key)
        per_key = aggregated(keyed, of_key, [count_all, F.lit(0).alias("sent")])
    else:
        # The partition is in the upper 31 bits, the number of the row in it in the lower 33.
        position = F.monotonically_increasing_id()
        keyed = df.select(key_group, key, position.alias("position"))
        row = F.col("position").bitwiseAND(F.lit(2**33 - 1))
        batch = (F.col("position") - row % F.lit(batch_size)).alias("batch")
        per_batch = aggregated(keyed, [*of_key, batch], [count_all])
        sums = [F.sum("records").alias("records"), F.count(one).alias("sent")]
        per_key = aggregated(per_batch, of_key, sums)
    totals = [F.sum("records").alias("records"), F.count(one).alias("keys"), F.sum("sent")]
    rows = aggregated(per_key, of_key[:1], totals).collect()
    null_keys = 0
    records, keys, sent = ([0] * max_parallelism for _ in range(3))
    for group, group_records, group_keys, group_sent in rows:
        if group is None:
            null_keys = group_records
        else:
            records[group], keys[group], sent[group] = group_records, group_keys, group_sent
    return records, keys, sent, null_keys


def _top_keys(per_key: DataFrame, wanted: list[bool], max_parallelism: int, top: int) -> DataFrame:
    """Return the keys of each wanted subtask that have the most records, the first on top."""
    subtask = PORTABLE.operator_index(F.col("key_group"), max_parallelism, len(wanted))
    # nth() takes one literal, isin() would take one for each wanted subtask.
    is_wanted = PORTABLE.nth(map(int, wanted), T.IntegerType(), F.col("subtask")) == 1
    order = (F.desc("records"), F.asc("key_group"), F.asc("key"))
    place = F.row_number().over(Window.partitionBy("subtask").orderBy(*order))
    return (
        per_key.withColumn("subtask", subtask)
        .where(is_wanted)
        .withColumn("place", place)
        .where(F.col("place") <= top)
        .orderBy("subtask", "place")
    )


def _same(key: KeyTree, key_type: KeyType) -> Column:
    """Return the key as one column, of which Spark finds two values equal if Java does.

    Spark's groups make no difference between 0.0 and -0.0, which are two Doubles; and a UUID's
    text may be in either case.
    """
    if not contains(key_type, FLOAT, DOUBLE, UUID):
        return _value(key)
    if isinstance(key_type, SQL_ROW):
        raise UnsupportedKeyTypeError(
            f"key type {key_type} has FLOAT or DOUBLE in it, whose bits are the key in Flink, "
            "while Spark's groups make one of 0.0 and -0.0"
        )
    if isinstance(key_type, (PYFLINK, SCALA_OPTION)):
        return _same(key, key_type.element)
    if isinstance(key_type, FieldsType):
        fields, struct = key_fields(key, key_type)
        same = F.struct(
            *(
                _same(field, field_type).alias(f"f{i}")
                for i, (field, field_type) in enumerate(zip(fields, key_type.fields))
            )
        )
        return same if struct is None else F.when(struct.isNotNull(), same)
    column = key if isinstance(key, KeyColumn) else key[0]
    assert isinstance(column, KeyColumn)
    if isinstance(key_type, LIST):
        assert isinstance(column.spark_type, T.ArrayType)
        name, element_type = column.name, column.spark_type.elementType
        return F.transform(
            column.column,
            lambda element: _same(KeyColumn(element, name, element_type), key_type.element),
        )
    if key_type is UUID:
        return F.lower(column.column)
    # An instant is not compared as text, which in the hour that a zone repeats may be another's.
    return column.column.cast("string") if key_type in (FLOAT, DOUBLE) else column.column


def _value(key: KeyTree) -> Column:
    """Return a key as one column: a struct for a list of several."""
    if isinstance(key, KeyColumn):
        return key.column
    if len(key) == 1:
        return _value(key[0])
    return F.struct(*(_value(field).alias(f"f{i}") for i, field in enumerate(key)))


def _nullable(spark_type: T.DataType) -> T.DataType:
    """Return a type with nulls allowed everywhere in it.

    Without ANSI mode Spark makes nulls of bad text, so it casts text to types with nulls only.
    """
    if isinstance(spark_type, T.StructType):
        fields = (T.StructField(f.name, _nullable(f.dataType)) for f in spark_type.fields)
        return T.StructType(list(fields))
    if isinstance(spark_type, T.ArrayType):
        return T.ArrayType(_nullable(spark_type.elementType))
    return spark_type
