"""A rescale of the state that the keys in a DataFrame have."""

from __future__ import annotations

from pyspark.sql import DataFrame

from keygroups._checks import check_bounds
from keygroups.reports import RescaleReport
from keygroups.rescale import RescalePlan
from keygroups.spark import functions as KF
from keygroups.spark.dataframe import key_group_load
from keygroups.types import KeyType

__all__ = ["rescale_report"]
__dir__ = __all__.copy


def rescale_report(
    df: DataFrame,
    key: KF.Key,
    max_parallelism: int,
    old_parallelism: int,
    new_parallelism: int,
    key_type: KeyType | None = None,
    weight: KF.ColumnOrName | None = None,
    at_least: int = 1,
    *,
    nulls: str = "raise",
) -> RescaleReport:
    """Measure what a rescale moves, and how even the load is before it and after it.

    Reads `df` once, as `key_group_load` does, whose `key`, `max_parallelism`, `key_type`,
    `weight` and `nulls` these are; 1 <= old_parallelism, new_parallelism <= max_parallelism. No
    parallelism below `at_least` is recommended, 1 <= at_least <= new_parallelism.

    Raises what `key_group_load` raises, and ParallelismError before any job is run.

    >>> rows = [("A", 5), ("B", 2), ("C", 4), ("D", 1)]
    >>> df = spark.createDataFrame(rows, "letter string, visits int")
    >>> print(rescale_report(df, "letter", 128, 3, 4, weight="visits"))
    128 key groups, parallelism 3 -> 4: 65 move (50.8%), 63 stay
    weight: 6 of 12 moves (50.0%)
    imbalance: 1.50 before, 2.00 after
    new subtask  old subtask      key groups   count               weight
              0            0         [0, 31]      32                    6
              1            0        [32, 42]      11                    0  moves
              1            1        [43, 63]      21                    0
              2            1        [64, 85]      22                    0  moves
              2            2        [86, 95]      10                    0
              3            2       [96, 127]      32                    6  moves
    hot subtask before: 0 of 3 has 6, 50.0% of the weight
    hot subtask after: 0 of 4 has 6, 50.0% of the weight
    recommended, from 2 to 8 with no heavier subtask than at 4:
      parallelism 2: the heaviest subtask has 6, imbalance 1.00 (2 subtasks over 128
        key groups: 64 each; subtask 0 has 1.00 times the mean)
    key group 17 alone has 50.0%: beyond 2 subtasks nothing gets better
    """
    plan = RescalePlan(max_parallelism, old_parallelism, new_parallelism)
    at_least = check_bounds("at_least", at_least, plan.new_parallelism, "new_parallelism")
    load = key_group_load(df, key, plan.max_parallelism, key_type, weight, nulls=nulls)
    return RescaleReport(plan, load, at_least)
