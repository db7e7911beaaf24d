"""Flink's TypeSerializers, a class each: how values and snapshots are read and written."""

from keygroups._serializers import (
    arrays,
    big_numbers,
    cep,
    compounds,
    encoded,
    java_time,
    python_sql,
    scalars,
    sql_rows,
    value_types,
)

__all__ = [  # each puts its classes in the registry
    "arrays",
    "big_numbers",
    "cep",
    "compounds",
    "encoded",
    "java_time",
    "python_sql",
    "scalars",
    "sql_rows",
    "value_types",
]
