"""Reads the state of a query in a checkpoint, to look at it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple, cast

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from keygroups._checks import show
from keygroups.errors import KeyGroupsError
from keygroups.spark._group_by.aggregates import AGGREGATES, Aggregate
from keygroups.spark._group_by.fields import RowCodec
from keygroups.spark._group_by.group import Group, RecordLayout
from keygroups.spark._group_by.key_group import (
    QUERY,
    TABLE,
    VERSION,
    unreadable_layout,
)
from keygroups.spark._group_by.map_view import MapView, entry_bytes, read_values
from keygroups.spark._group_by.pages import Pages, decode_page
from keygroups.spark._group_by.retention import Retention

_KEY_GROUP = "_key_group"
_ALWAYS = -(1 << 63)  # a time at which nothing is forgotten yet


class Stored(NamedTuple):
    """The layout of a checkpoint: that of its keys and that of its records."""

    key: RowCodec
    key_schema: T.StructType
    layout: RecordLayout


@lru_cache(maxsize=16)
def stored_layout(kept: str) -> Stored:
    """Return the Stored of a layout in JSON, or raise KeyGroupsError."""
    try:
        described = json.loads(kept)
        version = described["version"]
        if version == VERSION:
            key = T.StructType([_field(*field) for field in described["key"]])
            ttl = described["state_ttl"]
            idle = (0, 0) if described["idle_retention"] else None
            layout = RecordLayout(
                [_aggregate(*aggregate) for aggregate in described["aggregates"]],
                Retention(idle, None if ttl is None else int(ttl), False),
            )
            return Stored(RowCodec([field.dataType for field in key.fields]), key, layout)
    except (ValueError, KeyError, TypeError, RecursionError, PySparkException) as error:
        raise unreadable_layout(kept) from error
    raise KeyGroupsError(
        f"the state of a checkpoint must be of version {VERSION}, which this keygroups reads, "
        f"got {show(version)}"
    )


def _aggregate(name: str, column: str, takes: Any) -> Aggregate:
    value_type = T.LongType() if takes == "*" else _field(column, takes).dataType
    return AGGREGATES[name](column, value_type)


def _field(name: str, json_type: Any) -> T.StructField:
    field = {"name": name, "type": json_type, "nullable": True, "metadata": {}}
    return T.StructType.fromJson({"type": "struct", "fields": [field]}).fields[0]


def keys_of(kept: str, page: bytes) -> list[tuple[Any, ...]]:
    """Return the key, rows, results and end of each key of a page."""
    stored = stored_layout(kept)
    groups = _groups(stored, page)
    return [
        (
            key,
            group.rows,
            None if (results := group.results()) is None else tuple(results),
            group.until,
        )
        for key, group in groups
    ]


def values_of(kept: str, index: int, key: bytes | None, page: bytes) -> list[tuple[Any, ...]]:
    """Return key, value, count and end of each value of an aggregate in a page.

    It is a page of the values of a key, or where `key` is None one of keys.
    """
    stored = stored_layout(kept)
    if key is None:
        return [
            (key_values, value, *entry, None)[:4]
            for key_values, group in _groups(stored, page)
            for value, entry in cast(MapView, group.views[index]).entries()
        ]
    key_values = tuple(stored.key.decode(bytes(key))[0])
    fields = cast(RowCodec, stored.layout.values[index])
    entry_struct = entry_bytes(stored.layout.retention.ttl is not None)
    values = read_values(fields, entry_struct, decode_page(bytes(page)).items())
    return [(key_values, value, *entry, None)[:4] for value, entry in values]


def _groups(stored: Stored, page: bytes) -> Iterator[tuple[tuple[Any, ...], Group]]:
    for key, record in decode_page(bytes(page)).items():
        yield tuple(stored.key.decode(key)[0]), Group(stored.layout, _no_pages, _ALWAYS, record)


def _no_pages(index: int, size: int) -> Pages:
    return Pages(None, lambda number: (), 0)


def load_table(spark: SparkSession, checkpoint: str) -> tuple[str, list[str]]:
    """Return the layout of the state in a checkpoint, and the names of its results."""
    operators = spark.read.format("state-metadata").load(checkpoint).collect()
    kinds = {name: kind for row in operators for name, kind in _variables(row)}
    if kinds.get(TABLE) != "MapState":
        states = f"has {', '.join(kinds)}" if kinds else "has none of transformWithState"
        raise KeyGroupsError(
            f"the checkpoint {checkpoint} must have the state of group_aggregate as this "
            f"keygroups keeps it, of version {VERSION}: it {states}; one of an older keygroups is "
            "read by that"
        )
    table = load_state(spark, checkpoint, TABLE)
    # Partition 0 is compared with every query, so no other has newer names.
    table = table.where((F.col(f"key.{_KEY_GROUP}") == QUERY) & (F.col("partition_id") == 0))
    rows = table.select("user_map_value.layout", "user_map_value.names").collect()
    if not rows:
        raise KeyGroupsError(f"the checkpoint {checkpoint} must have state, which it has not yet")
    return rows[0].layout, json.loads(rows[0].names)


def _variables(operator: Any) -> list[tuple[str, str]]:
    properties = json.loads(operator.operatorProperties or "{}")
    variables = properties.get("stateVariables", [])
    return [(variable["stateName"], variable["stateVariableType"]) for variable in variables]


def load_state(spark: SparkSession, checkpoint: str, name: str) -> DataFrame:
    """Return the rows of a state from Spark's own source."""
    source = spark.read.format("statestore").option("path", checkpoint)
    return source.option("stateVarName", name).load()
