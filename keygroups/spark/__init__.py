"""Flink's routing in PySpark: `functions` for columns, the names here for DataFrames.

Flink fails on a null key, and has no key group for one. What adds columns to a DataFrame answers
one with null, as functions of columns in Spark do: so do `with_routing` and `rebalance_keys`. What
counts, places, groups or writes rows refuses one. `nulls` says it otherwise, and means the same
everywhere:

- "raise": a null key is refused, before any job where the column is void, else when the query
  that needs its key group runs. What runs one itself, as the reports do, says how many rows there
  are. It is the default but of these two, and never looks where the schema allows no nulls.
- "drop": the rows with a null key are left out, and a key that is not deterministic is refused.
- "null": the rows stay, with null. Only these two functions take it, and it is their default.

A key is null if all of it is, by its key type: a column that is, a null struct for a TUPLE, ROW or
SQL_ROW of several fields. A key given as a list of its fields never is. A null within a key counts
as in Flink, that in a SQL_ROW of one field among them, and for PYFLINK and SCALA_OPTION a null is
a key too.
"""

try:
    import pyspark  # noqa: F401  # only to say which extra is missing
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "keygroups.spark needs PySpark: pip install 'keygroups[spark]'", name=error.name
    ) from None

from keygroups.reports import RescaleReport
from keygroups.spark.dataframe import (
    infer_key_type,
    infer_sql_row,
    key_group_load,
    rebalance_keys,
    with_routing,
)
from keygroups.spark.placement import assert_placed, pre_aggregate, repartition_by_subtask
from keygroups.spark.register import register
from keygroups.spark.rescale import rescale_report
from keygroups.spark.savepoint import (
    KeyedState,
    ListState,
    MapState,
    ReducingState,
    ValueState,
    change_max_parallelism,
    compare_savepoints,
    edit_savepoint,
    kafka_offsets,
    key_sizes,
    read_keyed_state,
    register_data_source,
    summarize_savepoint,
    verify_savepoint,
    write_keyed_state,
    write_savepoint,
)
from keygroups.spark.skew import skew_report

__all__ = [
    "KeyedState",
    "ListState",
    "MapState",
    "ReducingState",
    "RescaleReport",
    "ValueState",
    "assert_placed",
    "change_max_parallelism",
    "compare_savepoints",
    "edit_savepoint",
    "infer_key_type",
    "infer_sql_row",
    "kafka_offsets",
    "key_group_load",
    "key_sizes",
    "pre_aggregate",
    "read_keyed_state",
    "rebalance_keys",
    "register",
    "register_data_source",
    "repartition_by_subtask",
    "rescale_report",
    "skew_report",
    "summarize_savepoint",
    "verify_savepoint",
    "with_routing",
    "write_keyed_state",
    "write_savepoint",
]
__dir__ = __all__.copy
