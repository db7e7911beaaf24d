"""Flink's TypeSerializers, a class each: how values and snapshots are read and written."""

from keygroups._serializers import (
    arrays,
    avro,
    big_numbers,
    compounds,
    encoded,
    java_time,
    kryo,
    pojos,
    python_sql,
    scalars,
    sql_rows,
    value_types,
)

__all__ = [  # each puts its classes in the registry
    "arrays",
    "avro",
    "big_numbers",
    "compounds",
    "encoded",
    "java_time",
    "kryo",
    "pojos",
    "python_sql",
    "scalars",
    "sql_rows",
    "value_types",
]
