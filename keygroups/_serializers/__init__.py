"""Flink's TypeSerializers, a class each: how values and snapshots are read and written."""

from keygroups._serializers import (
    arrays,
    big_numbers,
    collections,
    compounds,
    encoded,
    java_time,
    python_rows,
    python_sql,
    scala,
    scalars,
    sql_rows,
    streaming,
    table_runtime,
    value_types,
)

__all__ = [  # each puts its classes in the registry
    "arrays",
    "big_numbers",
    "collections",
    "compounds",
    "encoded",
    "java_time",
    "python_rows",
    "python_sql",
    "scala",
    "scalars",
    "sql_rows",
    "streaming",
    "table_runtime",
    "value_types",
]
