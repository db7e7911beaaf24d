"""Checks of values, and Java's values."""

from keygroups._checks import MAX_DEPTH, exact_repr, show
from keygroups._values.java_time import (
    hash_sql_date,
    hash_sql_time,
    hash_sql_timestamp,
    instant_code,
    to_instant,
)
from keygroups._values.java_zones import ZONE_NAMES, doubtful_spans
from keygroups._values.rows import ROW_KINDS

__all__ = [
    "MAX_DEPTH",
    "ROW_KINDS",
    "ZONE_NAMES",
    "doubtful_spans",
    "exact_repr",
    "hash_sql_date",
    "hash_sql_time",
    "hash_sql_timestamp",
    "instant_code",
    "show",
    "to_instant",
]
