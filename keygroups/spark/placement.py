"""Spark partitions that hold what Flink's subtasks receive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import mmh3
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from keygroups._checks import check_null_keys, check_parallelisms, show
from keygroups.errors import InvalidTypeError, InvalidValueError, UnsupportedKeyTypeError
from keygroups.spark import functions as KF
from keygroups.spark._columns.arguments import is_column
from keygroups.spark._columns.backend import PORTABLE
from keygroups.spark._columns.key_columns import KeyColumn
from keygroups.spark._columns.key_hash import contains
from keygroups.spark._columns.portable import Portable
from keygroups.spark._savepoint.arrow_map import map_in_arrow
from keygroups.spark.dataframe import aggregated, key_group_column, known_columns, routable
from keygroups.types import DOUBLE, FLOAT, UUID, KeyType

__all__ = ["assert_placed", "pre_aggregate", "repartition_by_subtask"]
__dir__ = __all__.copy

_SHOWN = 3  # partitions in a message
_COUNTS = T.StructType(
    [
        T.StructField("partition", T.IntegerType()),
        T.StructField("rows", T.LongType()),
        T.StructField("null_keys", T.LongType()),
        T.StructField("elsewhere", T.LongType()),
        T.StructField("most", T.LongType()),
        T.StructField("subtask", T.IntegerType()),
    ]
)


def repartition_by_subtask(
    df: DataFrame,
    key: KF.Key,
    max_parallelism: int,
    parallelism: int,
    key_type: KeyType | None = None,
    *,
    nulls: str = "raise",
) -> DataFrame:
    """Move every row to the Spark partition that has the number of its Flink subtask.

    The result has `parallelism` partitions, of which partition i holds exactly the rows
    that Flink sends to subtask i, and the columns of `df` as they are. `key` is a column,
    its name, or a list of several for a TUPLE; 1 <= parallelism <= max_parallelism <=
    32768. `key_type` None takes the type from the schema. A streaming `df` will do.

    Adaptive execution leaves these partitions alone. They last until the next shuffle:
    `select`, `filter`, `sortWithinPartitions` and `mapInPandas` keep them, while a join, a
    `groupBy` or an `orderBy` may not. A union of two such DataFrames is not placed, for it has
    the partitions of both, one after the other: unite first, then place. Neither is what
    `coalesce` or `repartition` makes of one. `assert_placed` tells. The order of the rows within a
    partition is not that of `df`.

    Raises ParallelismError; UnsupportedKeyTypeError and InvalidTypeError for a column that
    does not hold its key type; InvalidValueError for another number of columns than fields.
    With `nulls` "raise" a null key makes the query fail, with "drop" its rows are left out, as
    `keygroups.spark` has it.

    >>> from pyspark.sql import functions as F
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
    max_parallelism, parallelism = check_parallelisms(max_parallelism, parallelism)

    df, tree, known = routable(df, key, key_type, nulls)

    def place(backend: Portable, key_group: Column) -> Column:
        subtask = backend.operator_index(key_group, max_parallelism, parallelism)
        return _placed_by(df, backend, subtask, parallelism)

    placed_by = key_group_column(df, tree, max_parallelism, known, place, nulls)
    return _move(df, placed_by, parallelism)


def assert_placed(
    df: DataFrame,
    key: KF.Key,
    max_parallelism: int,
    parallelism: int,
    key_type: KeyType | None = None,
    *,
    nulls: str = "raise",
) -> None:
    """Raise unless every row is in the Spark partition that has the number of its Flink subtask.

    That is how `repartition_by_subtask` lays a DataFrame out, and what a union, a join or a
    `coalesce` after it may undo. Runs one job over the rows of `df`, which brings a row for each
    of its partitions to the driver; the partitions are those that `df` has in this run. `key`,
    `max_parallelism`, `parallelism`, `key_type` and `nulls` are those of `repartition_by_subtask`:
    "drop" passes over rows with a null key, which have no subtask. It needs the extra `arrays` on
    the executors.

    Raises InvalidValueError where rows are in other partitions; with `nulls` "raise" where a key
    is null, with the number of such rows; where there are more or fewer partitions than subtasks,
    as of what Spark knows to be empty, which has none; and for a stream, of which each batch has
    its own. Raises what `repartition_by_subtask` raises, and PythonWorkerError where Spark's
    workers run a Python without keygroups.

    >>> df = spark.createDataFrame([("A", 1), ("B", 2), ("A", 3)], "letter string, n int")
    >>> placed = repartition_by_subtask(df, "letter", 128, 3)
    >>> assert_placed(placed, "letter", 128, 3)
    >>> assert_placed(placed.union(placed), "letter", 128, 3)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    keygroups.errors.InvalidValueError: df must have each row ... got 3 of 6 rows elsewhere: ...
    """
    max_parallelism, parallelism = check_parallelisms(max_parallelism, parallelism)
    _, tree, known = routable(df, key, key_type, nulls)  # All rows of `df` itself are counted.
    subtask = key_group_column(
        *(df, tree, max_parallelism, known),
        lambda backend, group: backend.operator_index(group, max_parallelism, parallelism),
    )
    if df.isStreaming:
        raise InvalidValueError("df must not be a stream: look at a batch, as in foreachBatch")
    subtasks = df.select(subtask.alias("subtask"))
    partitions = sorted(map_in_arrow(subtasks, _count_subtasks, _COUNTS).collect())
    null_keys = sum(partition["null_keys"] for partition in partitions)
    check_null_keys(null_keys, nulls == "drop")
    elsewhere = sum(partition["elsewhere"] for partition in partitions)
    if elsewhere:
        wrong = [partition for partition in partitions if partition["elsewhere"]]
        rows = ", ".join(map(_misplaced, wrong[:_SHOWN]))
        more = f" and in {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise InvalidValueError(
            f"df must have each row in the partition of its subtask, got {elsewhere} of "
            f"{sum(partition['rows'] for partition in partitions)} rows elsewhere: {rows}{more}"
        )
    if len(partitions) != parallelism:
        raise InvalidValueError(
            f"df must have a partition for each of {parallelism} subtasks, got {len(partitions)}"
        )


def _misplaced(partition: Any) -> str:
    """Return a text: the rows in a partition of the most frequent other subtask, and the rest."""
    more = partition["elsewhere"] - partition["most"]
    rows = f"{partition['most']} of subtask {partition['subtask']}"
    return f"{rows}{f' and {more} others' if more else ''} in partition {partition['partition']}"


def _count_subtasks(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield a batch of one row with the counts of a partition; `mapInArrow` calls it for each."""
    import pyarrow as pa

    counts: Counter[int | None] = Counter()
    for batch in batches:
        for counted in batch.column(0).value_counts().to_pylist():
            counts[counted["values"]] += counted["counts"]
    context = TaskContext.get()
    assert context is not None  # in a task
    null_keys = counts.pop(None, 0)
    partition, rows = context.partitionId(), counts.total()
    here = counts.pop(partition, 0)
    [(subtask, most)] = counts.most_common(1) or [(None, 0)]
    row = (partition, rows, null_keys, rows - here, most, subtask)
    types = (pa.int32(), pa.int64(), pa.int64(), pa.int64(), pa.int64(), pa.int32())
    names = ["partition", "rows", "null_keys", "elsewhere", "most", "subtask"]
    yield pa.RecordBatch.from_arrays([pa.array([v], t) for v, t in zip(row, types)], names)


def repartition_by_key_group(
    df: DataFrame, key_group: str, max_parallelism: int, parallelism: int
) -> DataFrame:
    """Move every row to the partition of the subtask that has its key group, which is not null."""
    subtask = PORTABLE.operator_index(F.col(key_group), max_parallelism, parallelism)
    return _move(df, _placed_by(df, PORTABLE, subtask, parallelism), parallelism)


def pre_aggregate(
    df: DataFrame,
    key: KF.Key,
    aggregations: Sequence[Column],
    max_parallelism: int,
    parallelism: int,
    key_type: KeyType | None = None,
    *,
    nulls: str = "raise",
) -> DataFrame:
    """Aggregate by key and put each key's row into the partition of its Flink subtask.

    That is `df.groupBy(key).agg(*aggregations)` and `repartition_by_subtask`. Spark combines
    the rows of a key in each partition before it moves any, so a hot key is sent once for
    each partition of `df` and not once for each record; the second move is of one row per key.
    Placing the records first would spare that move, but send all records of a hot key to one
    partition.

    `key` is a column, its name, or a list of several for a TUPLE; `aggregations` are one or
    more columns such as `F.sum("views").alias("views")`. The rest, and what is raised, is that
    of `repartition_by_subtask`. Raises InvalidTypeError for aggregations that are no columns,
    InvalidValueError for one with the name of a key column, and UnsupportedKeyTypeError for a
    key type with a FLOAT or DOUBLE in it, because Spark's `groupBy` makes one key of 0.0 and
    -0.0, and for one with a UUID, because it makes two of one UUID in upper and in lower case.

    >>> from pyspark.sql import functions as F
    >>> df = spark.createDataFrame([("A", 1), ("B", 2), ("A", 3)], "letter string, n int")
    >>> totals = pre_aggregate(df, "letter", [F.sum("n").alias("n")], 128, 3)
    >>> totals.withColumn("partition", F.spark_partition_id()).orderBy("letter").collect()
    [Row(letter='A', n=4, partition=2), Row(letter='B', n=2, partition=0)]

    A hot key for which even one subtask's combined rows are too many takes two steps: by the
    key and a salt, then by the key alone. Sums, minima and maxima combine as themselves, a
    count as a sum, and an average as the sums of both its parts. Few salts leave subtasks empty:
    eight of them mostly reach four to six of eight.

    >>> salted = df.withColumn("salt", (F.monotonically_increasing_id() % 8).cast("int"))
    >>> parts = pre_aggregate(salted, ["letter", "salt"], [F.count("*").alias("n")], 128, 3)
    >>> counts = pre_aggregate(parts, "letter", [F.sum("n").alias("n")], 128, 3)
    >>> counts.orderBy("letter").collect()
    [Row(letter='A', n=2), Row(letter='B', n=1)]
    """
    max_parallelism, parallelism = check_parallelisms(max_parallelism, parallelism)
    df, tree, known = routable(df, key, key_type, nulls)
    keys = [tree] if isinstance(tree, KeyColumn) else tree
    columns = [field.column for field in keys if isinstance(field, KeyColumn)]
    if len(columns) < len(keys):
        raise InvalidTypeError(f"key must be a column or a list of columns, got {show(key)}")
    listed = isinstance(aggregations, (list, tuple)) and len(aggregations) > 0
    if not listed or not all(map(is_column, aggregations)):
        raise InvalidTypeError(
            f"aggregations must be a list of at least one column, got {show(aggregations)}"
        )
    if contains(known, FLOAT, DOUBLE):
        raise UnsupportedKeyTypeError(
            f"key type {known} is not for groupBy, which makes one key of 0.0 and -0.0"
        )
    if contains(known, UUID):
        raise UnsupportedKeyTypeError(
            f"key type {known} is not for groupBy, which makes two keys of a UUID in upper and "
            "in lower case: group by its lower case, then use repartition_by_subtask"
        )
    with known_columns(df, "aggregations"):
        grouped = aggregated(df, columns, aggregations)
        made = grouped.columns  # Connect asks the server for them, which may raise here.
    names = made[: len(keys)]
    for name, count in Counter(name.lower() for name in made).items():
        if count > 1 and any(name == key_name.lower() for key_name in names):
            raise InvalidValueError(
                f"aggregations and key must have different names, got {count} columns {name}: "
                "name them by alias()"
            )
    quoted = ["`" + name.replace("`", "``") + "`" for name in names]
    placed_by = quoted if isinstance(key, (list, tuple)) else quoted[0]
    return repartition_by_subtask(grouped, placed_by, max_parallelism, parallelism, known)


def _partitions(parallelism: int) -> int:
    """Return the number of partitions to make first, 2 at least.

    Spark does not look at the key where there is one partition, and would let nulls pass.
    """
    return max(parallelism, 2)


def _placed_by(df: DataFrame, backend: Portable, subtask: Column, parallelism: int) -> Column:
    """Return the column by which `_move` moves a row to its subtask."""
    if hasattr(type(df), "repartitionById"):  # Spark 4.1 and newer have it.
        return subtask
    return _lands_on(backend, subtask, _partitions(parallelism))


def _move(df: DataFrame, placed_by: Column, parallelism: int) -> DataFrame:
    """Move every row to the partition of its subtask."""
    partitions = _partitions(parallelism)
    by_id = getattr(type(df), "repartitionById", None)
    placed: DataFrame
    if by_id is not None:
        placed = by_id(df, partitions, placed_by)
    else:
        placed = df.repartition(partitions, placed_by)
    return placed if parallelism == partitions else placed.coalesce(1)


def _lands_on(backend: Portable, partition: Column, partitions: int) -> Column:
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
    return backend.nth((ints[i] for i in range(partitions)), T.IntegerType(), partition)
