"""The state of a query in a checkpoint, for who wants to look at it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple, cast

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from keygroups._checks import show
from keygroups.errors import KeyGroupsError
from keygroups.spark._group_by.aggregates import AGGREGATES, Aggregate
from keygroups.spark._group_by.fields import Fields
from keygroups.spark._group_by.group import Group, Layout
from keygroups.spark._group_by.key_group import TABLE, VERSION
from keygroups.spark._group_by.map_view import MapView, entry_bytes, read_values
from keygroups.spark._group_by.pages import Pages, decode_page
from keygroups.spark._group_by.retention import Retention

_RETENTIONS = {
    "idle": Retention((0, 0), None, False),
    "ttl": Retention(None, 0, False),
    None: Retention(None, None, False),
}
_ALWAYS = -(1 << 63)  # before whatever is forgotten


class Stored(NamedTuple):
    """What the bytes of a checkpoint are."""

    key: Fields
    key_types: list[T.DataType]
    layout: Layout


@lru_cache(maxsize=16)
def stored_layout(kept: str) -> Stored:
    """Return what a layout says that was written down, or raise KeyGroupsError."""
    try:
        described = json.loads(kept)
        version = described["version"]
        if version == VERSION:
            key_types = [_type(json_type) for json_type in described["key"]]
            layout = Layout(
                [_aggregate(name, takes) for name, takes in described["aggregates"]],
                _RETENTIONS[described["retention"]],
            )
            return Stored(Fields(key_types), key_types, layout)
    except (ValueError, KeyError, TypeError, RecursionError, PySparkException) as error:
        raise KeyGroupsError(
            f"the state of a checkpoint must have a layout that can be read, got {show(kept)}"
        ) from error
    raise KeyGroupsError(
        f"the state of a checkpoint must be of version {VERSION}, which this keygroups reads, "
        f"got {show(version)}"
    )


def _aggregate(name: str, takes: Any) -> Aggregate:
    if takes == "*":
        return AGGREGATES[name](takes, T.LongType())
    return AGGREGATES[name]("v", _type(takes))


def _type(json_type: Any) -> T.DataType:
    field = {"name": "v", "type": json_type, "nullable": True, "metadata": {}}
    return T.StructType.fromJson({"type": "struct", "fields": [field]}).fields[0].dataType


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
    fields = cast(Fields, stored.layout.values[index])
    entry_struct = entry_bytes(stored.layout.retention.ttl is not None)
    values = read_values(fields, entry_struct, decode_page(bytes(page)).items())
    return [(key_values, value, *entry, None)[:4] for value, entry in values]


def _groups(stored: Stored, page: bytes) -> Iterator[tuple[tuple[Any, ...], Group]]:
    for key, record in decode_page(bytes(page)).items():
        yield tuple(stored.key.decode(key)[0]), Group(stored.layout, _no_pages, _ALWAYS, record)


def _no_pages(index: int, size: int) -> Pages:
    return Pages(None, lambda number: (), 0)


def load_table(spark: SparkSession, checkpoint: str) -> tuple[str, list[list[str]]]:
    """Return the layout and the names of the state in a checkpoint."""
    operators = spark.read.format("state-metadata").load(checkpoint).collect()
    variables = [name for row in operators for name in _variables(row)]
    if "keys" not in variables:
        there = f"has {', '.join(variables)}" if variables else "has none of transformWithState"
        raise KeyGroupsError(
            f"the checkpoint {checkpoint} must have the state of group_aggregate as this "
            f"keygroups keeps it: it {there}"
        )
    table = load_state(spark, checkpoint, TABLE).select("value.layout", "value.names")
    rows = sorted(table.distinct().collect())
    if not rows:
        raise KeyGroupsError(f"the checkpoint {checkpoint} must have state, which it has not yet")
    return rows[0].layout, json.loads(rows[0].names)


def _variables(operator: Any) -> list[str]:
    properties = json.loads(operator.operatorProperties or "{}")
    return [variable["stateName"] for variable in properties.get("stateVariables", [])]


def load_state(spark: SparkSession, checkpoint: str, name: str) -> DataFrame:
    """Return what Spark's source has of a state."""
    source = spark.read.format("statestore").option("path", checkpoint)
    return source.option("stateVarName", name).load()
