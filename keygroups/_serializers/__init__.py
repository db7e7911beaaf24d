"""Flink's TypeSerializers, a class each: how values and snapshots are read and written."""

from keygroups._serializers import cep, compounds, scalars, sql_rows

__all__ = ["cep", "compounds", "scalars", "sql_rows"]  # each puts its classes in the registry
