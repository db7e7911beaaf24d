"""The inner parts of the adapter for PySpark."""

from keygroups.spark._columns import catalyst, key_hash
from keygroups.spark._columns.arguments import is_connect
from keygroups.spark._columns.backend import PORTABLE, SETTING, build, current_backend
from keygroups.spark._columns.key_columns import KeyColumn, KeyTree
from keygroups.spark._columns.key_hash import hash_key
from keygroups.spark._columns.portable import Portable
from keygroups.spark._columns.sql_string import LambdaFree
from keygroups.spark._columns.sql_text import SqlFunctions, SqlText
from keygroups.spark._group_by import packing, processor, query_checks
from keygroups.spark._group_by.aggregates import AGGREGATES
from keygroups.spark._group_by.group import RecordLayout, Routing
from keygroups.spark._group_by.key_group import (
    QUERY,
    KeyGroup,
    layout_text,
    other_layout,
    state_name,
)
from keygroups.spark._group_by.landing import landing_of, lands_on
from keygroups.spark._group_by.packing import _pack
from keygroups.spark._group_by.query_checks import ROCKSDB
from keygroups.spark._group_by.retention import Retention
from keygroups.spark._savepoint.arrow_map import WorkerFunction, keep_modules
from keygroups.spark._savepoint.jobs import PickledRunner, classic_frame_of
from keygroups.spark._savepoint.rows.spark_types import spark_schema, spark_type_of

__all__ = [
    "AGGREGATES",
    "PORTABLE",
    "QUERY",
    "ROCKSDB",
    "SETTING",
    "KeyColumn",
    "KeyGroup",
    "KeyTree",
    "LambdaFree",
    "PickledRunner",
    "Portable",
    "RecordLayout",
    "Retention",
    "Routing",
    "SqlFunctions",
    "SqlText",
    "WorkerFunction",
    "_pack",
    "build",
    "catalyst",
    "classic_frame_of",
    "current_backend",
    "hash_key",
    "is_connect",
    "keep_modules",
    "key_hash",
    "landing_of",
    "lands_on",
    "layout_text",
    "other_layout",
    "packing",
    "processor",
    "query_checks",
    "spark_schema",
    "spark_type_of",
    "state_name",
]
