"""Keys that stand for subtasks, as a column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import Column

from keygroups.errors import UnsupportedKeyTypeError
from keygroups.spark.arguments import check_key_type, check_text
from keygroups.spark.expressions import SPARK_TYPES
from keygroups.subtask_keys import keys_for_subtasks
from keygroups.types import KeyType

__all__ = ["look_up_key"]


def look_up_key(
    max_parallelism: int, parallelism: int, key_type: KeyType, prefix: str
) -> Callable[[Any, Column], Column]:
    """Return the function from F and a subtask, as a column, to its key.

    The key is null for a subtask that is null or out of bounds.
    """
    if check_key_type(key_type) not in SPARK_TYPES:
        raise UnsupportedKeyTypeError(f"key type {key_type} has no column expression")
    prefix = check_text("prefix", prefix)
    keys = keys_for_subtasks(max_parallelism, parallelism, key_type, prefix=prefix)
    # One literal, which Spark parses once, when it optimises: thousands of them take seconds.
    # A prefix may hold commas, so it is left out.
    table = ",".join(str(key).removeprefix(prefix) for key in keys)

    def key_of(F: Any, subtask: Column) -> Column:
        array = F.split(F.lit(table), ",").cast(f"array<{SPARK_TYPES[key_type]}>")
        key: Column = F.get(array, subtask)
        if prefix:
            key = F.concat(F.lit(prefix), key)
        return key

    return key_of
