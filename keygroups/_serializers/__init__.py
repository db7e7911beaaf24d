"""Flink's TypeSerializers, a class each: how values and snapshots are read and written."""

from keygroups._serializers import compounds, scalars, sql_rows, table_runtime

# Each puts its classes in the registry.
__all__ = ["compounds", "scalars", "sql_rows", "table_runtime"]
