"""Keys that stand for subtasks, as a column."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from keygroups.errors import UnsupportedKeyTypeError
from keygroups.spark.expressions import SPARK_TYPES
from keygroups.subtask_keys import keys_for_subtasks
from keygroups.types import KeyType

__all__ = ["look_up_key"]


def look_up_key(
    subtask: Column, max_parallelism: int, parallelism: int, key_type: KeyType, prefix: str
) -> Column:
    """Return the key of a subtask; null for a subtask that is null or out of bounds."""
    keys = keys_for_subtasks(max_parallelism, parallelism, key_type, prefix=prefix)
    if key_type not in SPARK_TYPES:
        raise UnsupportedKeyTypeError(f"key type {key_type} has no column expression")
    # One literal, which Spark parses once, when it optimises: thousands of them take seconds.
    # A prefix may hold commas, so it is left out.
    table = F.lit(",".join(str(key).removeprefix(prefix) for key in keys))
    key = F.get(F.split(table, ",").cast(f"array<{SPARK_TYPES[key_type]}>"), subtask)
    return F.concat(F.lit(prefix), key) if prefix else key
