"""Flink's routing of whole DataFrames."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from keygroups.assignment import check_max_parallelism, check_parallelism
from keygroups.errors import InvalidTypeError, InvalidValueError, UnsupportedKeyTypeError
from keygroups.load import KeyGroupLoad
from keygroups.spark import functions as KF
from keygroups.spark import portable
from keygroups.spark.expressions import SPARK_TYPES, KeyColumn, KeyTree, hash_key, simple_type
from keygroups.types import TUPLE, UUID, KeyType

__all__ = ["infer_key_type", "key_group_load", "with_routing"]

# UUIDs are text in Spark; a string column is one only where the caller says so.
_INFERRED = {spark: key_type for key_type, spark in SPARK_TYPES.items() if key_type != UUID}


def infer_key_type(df: DataFrame, key: KF.Key) -> KeyType:
    """Return the key type that a DataFrame's schema gives a key column, or several: a TUPLE.

    Raises UnsupportedKeyTypeError for a column whose type holds none.

    >>> infer_key_type(spark.createDataFrame([("a", 1)], "name string, id int"), ["name", "id"])
    TUPLE(STRING, INT)
    """
    return _infer(_tree(df, key))


def with_routing(
    df: DataFrame,
    key: KF.Key,
    max_parallelism: int,
    parallelism: int,
    key_type: KeyType | None = None,
) -> DataFrame:
    """Add the columns `key_group` and `subtask`: where Flink sends each row.

    `key` is a column, its name, or a list of several for a TUPLE; 1 <= parallelism <=
    max_parallelism <= 32768. `key_type` None takes the type from the schema. A null key
    gives null in both columns, for Flink has no subtask for it.

    Raises ParallelismError; UnsupportedKeyTypeError and InvalidTypeError for a column
    that does not hold its key type; InvalidValueError if `df` has such a column already.

    >>> df = spark.createDataFrame([("A",), ("B",)], "letter string")
    >>> with_routing(df, "letter", 128, 3).collect()
    [Row(letter='A', key_group=104, subtask=2), Row(letter='B', key_group=17, subtask=0)]
    """
    for name in df.columns:
        if name.lower() in ("key_group", "subtask"):
            raise InvalidValueError(f"df must not have a column {name} already: rename it first")
    max_parallelism = check_max_parallelism(max_parallelism)
    parallelism = check_parallelism(parallelism, max_parallelism)
    key_group = key_group_column(df, key, max_parallelism, key_type)
    routed = df.withColumn("key_group", key_group)
    subtask = portable.operator_index(
        F, F.col("key_group"), F.lit(max_parallelism), F.lit(parallelism)
    )
    return routed.withColumn("subtask", subtask)


def key_group_load(
    df: DataFrame,
    key: KF.Key,
    max_parallelism: int,
    key_type: KeyType | None = None,
    weight: KF.ColumnOrName | None = None,
) -> KeyGroupLoad:
    """Measure the load of every key group: its rows, or the sum of a weight column.

    Reads `df` once and brings max_parallelism numbers to the driver. `key`,
    `max_parallelism` and `key_type` are those of `with_routing`; `weight` is a numeric
    column without nulls, NaN or negative numbers. Integers are summed exactly, other
    numbers as doubles.

    Raises what `with_routing` raises, InvalidTypeError for a weight that is not numeric,
    and InvalidValueError if a key or a weight is null, or a weight negative or NaN: Flink
    fails on null keys, so filter them out first.

    >>> df = spark.createDataFrame([("A",), ("B",), ("A",)], "letter string")
    >>> key_group_load(df, "letter", 128).per_subtask(3)
    [1, 0, 2]
    """
    key_group = key_group_column(df, key, max_parallelism, key_type)
    value = F.lit(1) if weight is None else _weight(df, weight)
    rows = (
        df.select(key_group.alias("key_group"), value.alias("weight"))
        .groupBy("key_group")
        .agg(
            F.count("*").alias("rows"),
            F.sum("weight").alias("weight"),
            F.count_if(F.col("weight").isNull() | F.isnan("weight") | (F.col("weight") < 0)).alias(
                "bad"
            ),
        )
        .collect()
    )
    bad = sum(row["bad"] for row in rows)
    if bad:
        raise InvalidValueError(f"weight must be a number >= 0 in every row, {bad} rows differ")
    weights: list[float] = [0] * max_parallelism
    for row in rows:
        if row["key_group"] is None:
            raise InvalidValueError(
                f"key is null in {row['rows']} rows, on which Flink fails: filter them out first"
            )
        total = row["weight"]
        weights[row["key_group"]] = total if isinstance(total, float) else int(total)
    return KeyGroupLoad(max_parallelism, weights)


def key_group_column(
    df: DataFrame, key: KF.Key, max_parallelism: int, key_type: KeyType | None
) -> Column:
    """Return the key group of a key of `df`, whose schema gives or checks the key type."""
    groups = F.lit(check_max_parallelism(max_parallelism))
    tree = _tree(df, key)
    code, nullable = hash_key(tree, _infer(tree) if key_type is None else key_type)
    return portable.key_group(F, code, groups, nullable)


def _tree(df: DataFrame, key: KF.Key) -> KeyTree:
    """Return a key's columns with their names and types in `df`."""
    if isinstance(key, (list, tuple)):
        if not key:
            raise InvalidValueError("key must be at least one column, got none")
        return [_tree(df, part) for part in key]
    [field] = df.select(key).schema.fields  # type: ignore[arg-type]  # not a list
    column = F.col(key) if isinstance(key, str) else key
    return KeyColumn(column, field.name, field.dataType)  # type: ignore[arg-type]  # not a list


def _infer(tree: KeyTree) -> KeyType:
    if not isinstance(tree, KeyColumn):
        parts = [_infer(part) for part in tree]
        return parts[0] if len(parts) == 1 else TUPLE(*parts)
    assert tree.spark_type is not None
    spark_type = simple_type(tree.spark_type)
    if spark_type not in _INFERRED:
        raise UnsupportedKeyTypeError(
            f"key column {tree.name} of type {tree.spark_type.simpleString()} has no key type by "
            f"itself: pass key_type, or use a column of type {', '.join(_INFERRED)}"
        )
    return _INFERRED[spark_type]


def _weight(df: DataFrame, weight: KF.ColumnOrName) -> Column:
    tree = _tree(df, weight)
    assert isinstance(tree, KeyColumn)
    assert tree.spark_type is not None
    spark_type = simple_type(tree.spark_type)
    if spark_type in ("tinyint", "smallint", "int", "bigint"):
        return tree.column.cast("decimal(20,0)")  # its sum cannot overflow
    if spark_type in ("float", "double", "decimal"):
        return tree.column.cast("double")
    raise InvalidTypeError(f"weight must be a numeric column, but {tree.name} is {spark_type}")
