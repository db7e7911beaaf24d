"""Flink's TypeSerializers, a class each: how values and snapshots are read and written."""

from keygroups._serializers import (
    collections,
    compounds,
    scala,
    scalars,
    sql_rows,
    streaming,
)

__all__ = [  # each puts its classes in the registry
    "collections",
    "compounds",
    "scala",
    "scalars",
    "sql_rows",
    "streaming",
]
