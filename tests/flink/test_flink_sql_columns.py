"""Columns of Flink SQL's keys against Flink's own writer and the planner's key selector.

How many rows were compared is in each test's properties; `pytest -rP` shows it too.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T
from support.flink.flink_sql import FlinkSql
from support.inside.adapter import SETTING
from support.keys.random_rows import BULK, random_rows
from support.spark.spark_values import sql_type

from keygroups.spark import functions as KF
from keygroups.types import SQL_ROW

pytestmark = pytest.mark.flink

ROWS = 50_000


def held(row: tuple[object, ...]) -> bool:
    """Whether Spark holds the values: no lone surrogate, and no end of PySpark's calendar."""
    for value in row:
        if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
            return False
        if isinstance(value, dt.datetime) and value.year in (1, 9999):
            return False
    return True


@pytest.mark.parametrize("path", ["fast", "portable"])
@pytest.mark.parametrize("types", BULK, ids=", ".join)
def test_columns_in_bulk(
    spark: SparkSession,
    flink_sql: FlinkSql,
    types: tuple[str, ...],
    path: str,
    record_property: Callable[[str, object], None],
) -> None:
    rows = list(filter(held, random_rows(types, ROWS, seed=1)))
    flinks = flink_sql.row_hashes(types, rows)
    key_type = SQL_ROW(*types)
    names = [f"f{i}" for i in range(len(types))]
    schema = T.StructType([T.StructField("flink", T.IntegerType())])
    for name, field in zip(names, key_type.fields):
        schema.add(name, sql_type(field))
    df = spark.createDataFrame([(code, *row) for code, row in zip(flinks, rows)], schema)
    spark.conf.set(SETTING, path)
    try:
        code = KF.hash_code(list(names), key_type)
    finally:
        spark.conf.unset(SETTING)
    wrong = df.where(~code.eqNullSafe(df["flink"]))
    assert wrong.limit(10).collect() == []
    assert len(rows) > 0.8 * ROWS
    record_property(f"{path} {key_type!r}", len(rows))
    print(f"{path} {key_type!r}: {len(rows)}")
