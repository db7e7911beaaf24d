"""`DataFrame.mapInArrow` where there is no pandas."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from keygroups.spark._columns.arguments import is_connect
from keygroups.spark._workers import check_workers


def map_in_arrow(
    df: DataFrame, function: Callable[[Iterable[Any]], Iterator[Any]], schema: T.StructType
) -> DataFrame:
    """Return `df.mapInArrow(function, schema)`, also without pandas.

    PySpark 3.5 to 4.3 does not need pandas for it, but refuses to run without. This then takes the
    steps of `mapInArrow` after that check, by the same internals of PySpark.

    Raises PythonWorkerError, before there is a job, where the workers cannot run the function.
    """
    check_workers(df.sparkSession)
    function = WorkerFunction(function)
    if is_connect(df) or find_spec("pandas") is not None:
        return df.mapInArrow(function, schema)
    internals: Any = import_module("pyspark.sql.udf")
    eval_type = internals.PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    udf = internals.UserDefinedFunction(function, schema, evalType=eval_type)
    column = udf(*(df[name] for name in df.columns))
    java: Any = df._jdf
    if df.sparkSession.version < "4":
        mapped = java.pythonMapInArrow(column._jc.expr(), False)
    else:
        mapped = java.mapInArrow(column._jc, False, None)
    return DataFrame(mapped, df.sparkSession)


@dataclass(frozen=True)
class WorkerFunction:
    """Calls a function in a Python worker, whose modules it keeps from searches for garbage.

    After each task a worker of Spark searches all of its objects. Those of keygroups, PyArrow and
    pandas, which stay, take as long as it takes to read half a million entries, so that the first
    task exempts what the process has. It may be pickled.
    """

    function: Callable[[Iterable[Any]], Iterator[Any]]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the function's batches."""
        yield from self.function(batches)
        keep_modules()


@cache
def keep_modules() -> None:
    """Exempt what the process has from searches for garbage, but for garbage, once in its life."""
    gc.collect()
    gc.freeze()
