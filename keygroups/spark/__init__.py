"""Flink's routing in PySpark: `functions` for columns, the names here for DataFrames."""

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
    "with_routing",
    "write_savepoint",
]
__dir__ = __all__.copy
