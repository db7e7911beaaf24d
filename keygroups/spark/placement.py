"""Spark partitions that hold what Flink's subtasks receive."""

from __future__ import annotations

import mmh3
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from keygroups.assignment import check_max_parallelism, check_parallelism
from keygroups.spark import functions as KF
from keygroups.spark import portable
from keygroups.spark.dataframe import key_group_column
from keygroups.types import KeyType

__all__ = ["repartition_by_subtask"]


def repartition_by_subtask(
    df: DataFrame,
    key: KF.Key,
    max_parallelism: int,
    parallelism: int,
    key_type: KeyType | None = None,
) -> DataFrame:
    """Move every row to the Spark partition that has the number of its Flink subtask.

    The result has `parallelism` partitions, of which partition i holds exactly the rows
    that Flink sends to subtask i, and the columns of `df` as they are. `key` is a column,
    its name, or a list of several for a TUPLE; 1 <= parallelism <= max_parallelism <=
    32768. `key_type` None takes the type from the schema. A streaming `df` will do.

    Adaptive execution leaves these partitions alone. They last until the next shuffle:
    `select`, `filter`, `sortWithinPartitions` and `mapInPandas` keep them, while a join, a
    `groupBy` or an `orderBy` may not. The order of the rows within a partition is not that
    of `df`.

    Raises ParallelismError; UnsupportedKeyTypeError and InvalidTypeError for a column that
    does not hold its key type; InvalidValueError for another number of columns than fields.
    A null key makes the query fail, as it makes Flink fail: filter such rows out first.

    >>> df = spark.createDataFrame([("A", 1), ("B", 2), ("A", 3)], "letter string, n int")
    >>> placed = repartition_by_subtask(df, "letter", 128, 3)
    >>> placed.withColumn("partition", F.spark_partition_id()).orderBy("n").show()
    +------+---+---------+
    |letter|  n|partition|
    +------+---+---------+
    |     A|  1|        2|
    |     B|  2|        0|
    |     A|  3|        2|
    +------+---+---------+
    <BLANKLINE>

    To write one directory per subtask, `subtask=0` and so on, in any format (a subtask
    without rows gets none):

        routed = with_routing(df, "letter", 128, 3)
        placed = repartition_by_subtask(routed, "letter", 128, 3)
        placed.drop("key_group").write.partitionBy("subtask").parquet(path)
    """
    max_parallelism = check_max_parallelism(max_parallelism)
    parallelism = check_parallelism(parallelism, max_parallelism)
    key_group = key_group_column(df, key, max_parallelism, key_type)
    subtask = F.coalesce(
        portable.operator_index(F, key_group, F.lit(max_parallelism), F.lit(parallelism)),
        F.raise_error(F.lit("key is null, on which Flink fails: filter such rows out first")),
    )
    # Spark does not look at the key where there is one partition, and would let nulls pass.
    partitions = max(parallelism, 2)
    by_id = getattr(type(df), "repartitionById", None)  # from Spark 4.1
    placed: DataFrame
    if by_id is not None:
        placed = by_id(df, partitions, subtask)
    else:
        placed = df.repartition(partitions, _lands_on(subtask, partitions))
    return placed if parallelism == partitions else placed.coalesce(1)


def _lands_on(partition: Column, partitions: int) -> Column:
    """Return an int that `repartition(partitions, ...)` puts in the given partition.

    It puts a value in the partition `pmod(hash(value), partitions)`, and Spark's `hash` of an
    int is murmur3 of its four bytes with seed 42. Every partition gets the first int that
    lands there.
    """
    ints: dict[int, int] = {}
    candidate = 0
    while len(ints) < partitions:
        landing = mmh3.hash(candidate.to_bytes(4, "little"), 42) % partitions
        ints.setdefault(landing, candidate)
        candidate += 1
    # One literal, which Spark parses once, when it optimises: thousands of them take seconds.
    table = F.lit(",".join(str(ints[i]) for i in range(partitions)))
    return F.get(F.split(table, ",").cast("array<int>"), partition)
