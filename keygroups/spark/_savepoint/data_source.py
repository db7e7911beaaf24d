"""Keyed state as a Python data source, which Spark has from 4.0."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from keygroups._checks import show
from keygroups.errors import InvalidValueError, KeyGroupsError
from keygroups.savepoint import Operator, read_savepoint
from keygroups.savepoint._files.files import path_in_metadata
from keygroups.savepoint._jobs.state_query import StateQuery, parse_key_groups
from keygroups.spark._savepoint.arrow_map import WorkerFunction
from keygroups.spark._savepoint.rows.spark_types import spark_schema

FORMAT = "flink-state"
_OPTIONS = ("path", "operator", "state", "moved", "allow", "keyGroups", "columns")
_NAMES = frozenset(name.lower() for name in _OPTIONS)
_PREFIX = "option."
"""A table's options come twice from Spark: under their own names, and under this prefix."""
_KEPT = "flink-state"
"""The name of a table's options in the metadata of its first column."""


class Options:
    """The checked options of a query, whose names Spark lowers.

    A table has the options of its CREATE TABLE, which its schema keeps, and those of the query.
    """

    def __init__(self, options: Mapping[str, str], schema: T.StructType | None = None) -> None:
        values = {name.lower(): value for name, value in options.items()}
        if schema is not None and not values.keys() & {"path", "operator"}:
            values = {**_kept_options(schema), **values}
        self.is_of_table = "provider" in values
        unknown = values.keys() - _NAMES
        if self.is_of_table:
            unknown = {name for name in unknown if f"{_PREFIX}{name}" in values}
        if unknown:
            raise InvalidValueError(
                f"{FORMAT} has the options {', '.join(_OPTIONS)}, got {show(min(unknown))}"
            )
        for name in ("path", "operator"):
            if name not in values:
                why = ": a table has none if CREATE TABLE names columns" if not values else ""
                raise InvalidValueError(f"{FORMAT} needs the option {name}{why}")
        _check_place(values)
        self._values = {name: values[name] for name in values.keys() & _NAMES}
        self.path, self.operator = values["path"], values["operator"]
        self.state = values.get("state")
        self.moved = _parse_moved(values.get("moved", "{}"))
        self.allow = _parse_allow(values.get("allow", "[]"))
        text = values.get("keygroups")
        self.key_groups = None if text is None else parse_key_groups(text)
        columns = values.get("columns")
        self.columns = None if columns is None else [name.strip() for name in columns.split(",")]

    def kept_in(self, schema: T.StructType) -> T.StructType:
        """Return a schema that keeps the options: a table's reader gets them nowhere else."""
        first, *others = schema.fields
        kept = {_KEPT: json.dumps(self._values, sort_keys=True)}
        first = T.StructField(first.name, first.dataType, first.nullable, kept)
        return T.StructType([first, *others])

    def open(self) -> Operator:
        """Return the Operator that the options name; reads `_metadata`."""
        return read_savepoint(self.path, self.moved, allow=self.allow).operator(self.operator)

    def query(self) -> StateQuery:
        """Return the StateQuery of the options; reads `_metadata`."""
        return StateQuery(self.open(), self.state, self.columns)


@contextmanager
def _in_one_line() -> Iterator[None]:
    """Have Spark show an error of keygroups without a traceback.

    The process of Spark in which a read is planned ends with an error, after it has looked at
    this variable. Another process, such as the user's, is left as it is.
    """
    try:
        yield
    except KeyGroupsError:
        spec = getattr(sys.modules["__main__"], "__spec__", None)
        if spec is not None and spec.name.startswith("pyspark."):
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise


class FlinkStateDataSource(DataSource):
    """The keyed state of an operator as a Python data source."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    @_in_one_line()
    def schema(self) -> T.StructType:
        """Return Spark's schema of the state; a table's keeps the options."""
        options = Options(self.options)
        schema = spark_schema(options.query().schema)
        return options.kept_in(schema) if options.is_of_table else schema

    @_in_one_line()
    def reader(self, schema: T.StructType) -> DataSourceReader:
        """Return the FlinkStateReader for a schema, that of the state or of some columns."""
        return FlinkStateReader(Options(self.options, schema), schema)


class TaskPartition(InputPartition):
    """The state that one task of Spark reads."""

    def __init__(self, tasks: Sequence[Any]) -> None:
        self.tasks = tasks


class FlinkStateReader(DataSourceReader):
    """Reads keyed state; `schema` is that of the state, or of some columns.

    It takes no filters. Spark 4.3 keeps the partitions that it made with pushed filters for
    the whole table, and reads those again in the next query, whatever its filters are. A pickled
    one only reads.
    """

    def __init__(self, options: Options, schema: T.StructType) -> None:
        self._options = options
        self._query = _with_columns_of(schema, options.query())
        self._reader = self._query.reader

    def __getstate__(self) -> dict[str, Any]:
        return {"_reader": self._reader}

    @_in_one_line()
    def partitions(self) -> list[InputPartition]:
        """Return a TaskPartition for each task of Spark."""
        return [*map(TaskPartition, self._query.parts(self._options.key_groups))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Return an iterator over batches of Arrow; over none if there are no tasks."""
        if isinstance(partition, TaskPartition):
            yield from WorkerFunction(self._reader.read)(partition.tasks)


def _with_columns_of(schema: T.StructType, query: StateQuery) -> StateQuery:
    """Return the query of the columns that a schema has; InvalidValueError for one of others."""
    state_schema, asked = spark_schema(query.schema), _without_metadata(schema)
    if asked == state_schema:
        return query
    of_state = [field for field in state_schema if field.name in asked.names]
    is_some = bool(of_state) and sorted(asked, key=_name) == sorted(of_state, key=_name)
    if not is_some or query.reader.columns is not None:
        raise InvalidValueError(
            "schema must be that of the state, or of some of its columns, "
            f"{state_schema.simpleString()}, got {show(schema.simpleString())}"
        )
    return query.with_columns(asked.names)


def _name(field: T.StructField) -> str:
    return field.name


def _check_place(options: Mapping[str, str]) -> None:
    """Refuse a table whose path and location name two savepoints."""
    path = options["path"]
    for name in ("location", f"{_PREFIX}path", f"{_PREFIX}location"):
        if path_in_metadata(options.get(name, path)) != path_in_metadata(path):
            raise InvalidValueError(
                f"{FORMAT} has the option path alone for where the savepoint is, got path "
                f"{show(path)} and {name.removeprefix(_PREFIX)} {show(options[name])}"
            )


def _kept_options(schema: T.StructType) -> Mapping[str, str]:
    """Return the options that a table's schema keeps, none for a schema without them."""
    metadata = schema.fields[0].metadata if schema.fields else None
    kept = _parse_json(str((metadata or {}).get(_KEPT)))
    return {**kept} if isinstance(kept, dict) and all(map(_is_text, kept.values())) else {}


def _without_metadata(schema: T.StructType) -> T.StructType:
    return T.StructType([T.StructField(f.name, f.dataType, f.nullable) for f in schema.fields])


def _parse_moved(text: str) -> dict[str, str]:
    """Return the mapping of paths in a JSON object; InvalidValueError for any other text."""
    moved = _parse_json(text)
    if not isinstance(moved, dict) or not all(map(_is_text, moved.values())):
        raise InvalidValueError(f"moved must be a JSON object of paths, got {show(text)}")
    return moved


def _parse_allow(text: str) -> list[str]:
    """Return the paths in a JSON list; InvalidValueError for any other text."""
    allow = _parse_json(text)
    if not isinstance(allow, list) or not all(map(_is_text, allow)):
        raise InvalidValueError(f"allow must be a JSON list of paths, got {show(text)}")
    return allow


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _parse_json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None
