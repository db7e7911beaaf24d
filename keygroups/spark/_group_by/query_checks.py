"""The checks before a query with state runs: PySpark, the session's settings, columns."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

import pyspark
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from keygroups._checks import check_str, show
from keygroups.errors import InvalidValueError, KeyGroupsError

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_NEEDS = {"pandas": "pandas", "pyarrow": "pyarrow", "google.protobuf": "protobuf"}


def check_pyspark() -> None:
    """Refuse a PySpark that has no transformWithState for rows."""
    version = tuple(int(number) for number in pyspark.__version__.split(".")[:2])
    if version < (4, 1):
        raise KeyGroupsError(
            "keygroups.spark.state needs transformWithState for rows, which PySpark has from 4.1 "
            f"on: this is {pyspark.__version__}"
        )


def check_session(df: DataFrame, parallelism: int) -> None:
    """Refuse a session, or a DataFrame, with which only the running query would fail."""
    if not df.isStreaming:
        raise InvalidValueError("df must be a stream, as readStream makes it")
    if not hasattr(df.groupBy(), "transformWithState"):
        raise KeyGroupsError("this Spark session has no transformWithState: use PySpark 4.1's")
    missing = [name for module, name in _NEEDS.items() if not _is_there(module)]
    if missing:
        raise KeyGroupsError(
            f"transformWithState needs {', '.join(missing)}: pip install 'keygroups[state]'"
        )
    conf = df.sparkSession.conf
    provider = conf.get("spark.sql.streaming.stateStore.providerClass", "")
    if provider != ROCKSDB:
        raise KeyGroupsError(
            f"spark.sql.streaming.stateStore.providerClass must be {ROCKSDB}, got {provider}"
        )
    partitions = int(conf.get("spark.sql.shuffle.partitions", "200") or 0)
    if partitions < parallelism:
        raise InvalidValueError(
            "spark.sql.shuffle.partitions must be at least the parallelism, "
            f"{parallelism}, got {partitions}"
        )


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # The package around the module is missing.
        return False


def type_of(argument: str, column: object, types: Mapping[str, T.DataType]) -> T.DataType:
    """Return the type of a column, which must be there under just this name."""
    check_str(argument, column, "a column's name")
    if column not in types:
        raise InvalidValueError(
            f"{argument} has no column {show(column)}: there are {', '.join(types)}"
        )
    return types[str(column)]
