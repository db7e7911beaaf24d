"""Keys whose entries are wanted of keyed state, from a list or from the rows of a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from keygroups._checks import iterate
from keygroups.errors import InvalidTypeError, UnsupportedKeyTypeError
from keygroups.hashing import hash_code
from keygroups.savepoint import Operator
from keygroups.spark._columns.arguments import is_df
from keygroups.spark._columns.key_columns import cast_advice, simple_type
from keygroups.spark.dataframe import named_column
from keygroups.types import KeyType

_MOST_KEYS = 1 << 16  # keys that tell what need not be read; of more all is


class WantedKeys(NamedTuple):
    """Keys of an operator: a DataFrame of them, and their bytes if these are not too many."""

    df: DataFrame
    encoded: frozenset[bytes] | None

    def of(self, entries: DataFrame) -> DataFrame:
        """Return the entries that have one of the keys."""
        return entries.join(self.df, entries["key"] == self.df["key"], "left_semi")


def wanted_keys(
    spark: SparkSession,
    operator: Operator,
    keys: DataFrame | Iterable[Any],
    spark_type: T.DataType,
) -> WantedKeys:
    """Return the keys in a list, or in the column `key` of a DataFrame, which is of `spark_type`.

    Raises InvalidTypeError or InvalidValueError for what is no key of the operator, and
    UnsupportedKeyTypeError where Spark may take two of its keys for one.
    """
    from keygroups.savepoint._jobs import SAME_IN_SPARK, encoded_keys  # needs PyArrow

    state = next(iter(operator.states), None)
    key_type = None if state is None else state.key_type
    if key_type is None or key_type not in SAME_IN_SPARK:
        what = "no keyed state" if state is None else f"keys of {state.key_serializer}"
        raise UnsupportedKeyTypeError(
            f"keys must be None for operator {operator.label}, which has {what}: only text and "
            "integers are sought on Spark, others by Operator.get_many"
        )
    schema = T.StructType([T.StructField("key", spark_type)])
    if is_df(keys):
        df = _column_of(keys, spark_type)
        found = [row["key"] for row in df.limit(_MOST_KEYS + 1).collect()]
    else:
        df, found = None, [*dict.fromkeys(_checked(key_type, keys))]
    if df is None or len(found) <= _MOST_KEYS:
        df = F.broadcast(spark.createDataFrame([(key,) for key in found], schema))
    return WantedKeys(df, encoded_keys(operator, [found] if len(found) <= _MOST_KEYS else []))


def _checked(key_type: KeyType, keys: Any) -> Iterator[Any]:
    for key in iterate("keys", "keys of the operator, or a DataFrame", keys):
        hash_code(key, key_type)  # raises for a key that is not of the type
        yield key


def _column_of(df: DataFrame, spark_type: T.DataType) -> DataFrame:
    """Return the distinct keys of a DataFrame, but for null, which no entry has."""
    key = named_column(df, "keys", "key")
    assert key.spark_type is not None  # a DataFrame has types
    if simple_type(key.spark_type) != spark_type.simpleString():
        raise InvalidTypeError(
            f"keys must have a column key of type {spark_type.simpleString()}, got "
            f"{key.spark_type.simpleString()}{cast_advice(key.spark_type)}"
        )
    column = key.column.alias("key")
    return df.select(column).where(key.column.isNotNull()).distinct()
