"""Keys whose entries are wanted of keyed state, from a list or from the rows of a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from keygroups.errors import InvalidTypeError
from keygroups.spark._columns.arguments import is_df
from keygroups.spark._columns.key_columns import cast_advice, simple_type
from keygroups.spark.dataframe import named_column

if TYPE_CHECKING:
    from keygroups.savepoint._jobs.state_query import StateQuery

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
    query: StateQuery,
    keys: DataFrame | Iterable[Any],
    spark_type: T.DataType,
) -> WantedKeys:
    """Return the keys in a list, or in the column `key` of a DataFrame, which is of `spark_type`.

    Raises InvalidTypeError or InvalidValueError for what is no key of the operator, and
    UnsupportedKeyTypeError where Spark may take two of its keys for one.
    """
    query.sought_type()
    schema = T.StructType([T.StructField("key", spark_type)])
    if is_df(keys):
        df = _column_of(keys, spark_type)
        found = [row["key"] for row in df.limit(_MOST_KEYS + 1).collect()]
    else:
        df, found = None, query.sought_keys(keys)
    if df is None or len(found) <= _MOST_KEYS:
        df = F.broadcast(spark.createDataFrame([(key,) for key in found], schema))
    return WantedKeys(df, query.encoded_keys(found) if len(found) <= _MOST_KEYS else None)


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
