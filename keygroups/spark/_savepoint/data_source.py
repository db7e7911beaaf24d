"""Keyed state as a Python data source, which Spark has from 4.0."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from keygroups._checks import show
from keygroups.errors import InvalidValueError, KeyGroupsError
from keygroups.savepoint import Operator, read_savepoint
from keygroups.savepoint._files.files import path_in_metadata
from keygroups.savepoint._jobs import (
    StateReader,
    encoded_keys,
    parse_key_groups,
    read_tasks,
)
from keygroups.spark._savepoint.rows.spark_types import spark_schema
from keygroups.state_keys import key_group_prefix_bytes

FORMAT = "flink-state"
_OPTIONS = ("path", "operator", "state", "moved", "allow", "keyGroups")
_NAMES = frozenset(name.lower() for name in _OPTIONS)
_PREFIX = "option."
"""Spark gives the properties of a table, and those that are options again behind this prefix."""
_KEPT = "flink-state"
"""The name of a table's options in the metadata of its first column."""
_TESTS: Mapping[str, Callable[[Any, Any], bool]] = {  # by the class of Spark's filter
    "EqualTo": lambda mine, value: mine == value,
    "EqualNullSafe": lambda mine, value: mine == value,
    "GreaterThan": lambda mine, value: mine > value,
    "GreaterThanOrEqual": lambda mine, value: mine >= value,
    "LessThan": lambda mine, value: mine < value,
    "LessThanOrEqual": lambda mine, value: mine <= value,
    "In": lambda mine, value: mine in value,
}
_EQUALITIES = ("EqualTo", "EqualNullSafe", "In")


class Options:
    """The options, checked; Spark gives their names in lower case.

    Of a table they are those of CREATE TABLE, which its schema keeps, and those of the query.
    """

    def __init__(self, options: Mapping[str, str], schema: T.StructType | None = None) -> None:
        given = {name.lower(): value for name, value in options.items()}
        if schema is not None and not given.keys() & {"path", "operator"}:
            given = {**_kept_options(schema), **given}
        self.is_of_table = "provider" in given
        unknown = given.keys() - _NAMES
        if self.is_of_table:
            unknown = {name for name in unknown if f"{_PREFIX}{name}" in given}
        if unknown:
            raise InvalidValueError(
                f"{FORMAT} has the options {', '.join(_OPTIONS)}, got {show(min(unknown))}"
            )
        for name in ("path", "operator"):
            if name not in given:
                why = ": a table has none if CREATE TABLE names columns" if not given else ""
                raise InvalidValueError(f"{FORMAT} needs the option {name}{why}")
        _check_place(given)
        self._given = {name: given[name] for name in given.keys() & _NAMES}
        self.path, self.operator = given["path"], given["operator"]
        self.state = given.get("state")
        self.moved = _parse_moved(given.get("moved", "{}"))
        self.allow = _parse_allow(given.get("allow", "[]"))
        text = given.get("keygroups")
        self.key_groups = None if text is None else parse_key_groups(text)

    def kept_in(self, schema: T.StructType) -> T.StructType:
        """Return a schema that keeps the options: of a table Spark gives a reader no others."""
        first, *others = schema.fields
        kept = {_KEPT: json.dumps(self._given, sort_keys=True)}
        first = T.StructField(first.name, first.dataType, first.nullable, kept)
        return T.StructType([first, *others])

    def open(self) -> Operator:
        """Read `_metadata`."""
        return read_savepoint(self.path, self.moved, allow=self.allow).operator(self.operator)

    def reader(self) -> StateReader:
        """Read the headers of keyed state."""
        return StateReader.of(self.open(), self.state)


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
    """Keyed state of an operator."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    @_in_one_line()
    def schema(self) -> T.StructType:
        """Return the schema."""
        options = Options(self.options)
        schema = spark_schema(options.reader().layout.schema)
        return options.kept_in(schema) if options.is_of_table else schema

    @_in_one_line()
    def reader(self, schema: T.StructType) -> DataSourceReader:
        """Return the reader."""
        return FlinkStateReader(Options(self.options, schema), schema)


class TaskPartition(InputPartition):
    """The state that one task of Spark reads."""

    def __init__(self, tasks: Sequence[Any]) -> None:
        self.tasks = tasks


class FlinkStateReader(DataSourceReader):
    """Reads keyed state; filters by state, key group and key leave out bytes of the others."""

    def __init__(self, options: Options, schema: T.StructType) -> None:
        self._options = options
        self._reader = options.reader()
        of_state = spark_schema(self._reader.layout.schema)
        if _without_metadata(schema) != of_state:
            raise InvalidValueError(
                f"schema must be that of the state, {of_state.simpleString()}, got "
                f"{show(schema.simpleString())}"
            )
        self._tests: dict[str, list[Callable[[Any], bool]]] = {"state": [], "key_group": []}
        self._keys: list[Sequence[Any]] = []  # of each filter

    @property
    def pushFilters(self) -> Any:  # Spark's name
        """The function to which Spark pushes filters down.

        Spark calls it where that is on, which it is not by default; where it is off, Spark
        refuses a reader whose method is another than the one it inherits.
        """
        push = partial(_push, self._tests, self._keys)
        # A partial takes any attribute, which its stub does not say.
        push.__func__ = getattr(DataSourceReader, "pushFilters", None)  # type: ignore[attr-defined]
        return push

    @_in_one_line()
    def partitions(self) -> list[InputPartition]:
        """Return the tasks."""
        operator = self._options.open()
        key_groups = self._options.key_groups
        keys = encoded_keys(operator, self._keys)
        if keys is not None:
            size = key_group_prefix_bytes(operator.max_parallelism)
            of_keys = {int.from_bytes(key[:size], "big") for key in keys}
            self._tests["key_group"].append(of_keys.__contains__)
        states = [
            name for name in self._reader.layout.states if _passes(self._tests["state"], name)
        ]
        wanted = [
            key_group
            for key_group in (
                range(operator.max_parallelism) if key_groups is None else key_groups
            )
            if _passes(self._tests["key_group"], key_group)
        ]
        return [*map(TaskPartition, read_tasks(operator, states, wanted, keys))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Return an iterator over batches of Arrow; over none if there are no tasks."""
        if isinstance(partition, TaskPartition):
            yield from self._reader.read(partition.tasks)


def _push(
    tests: dict[str, list[Callable[[Any], bool]]],
    keys: list[Sequence[Any]],
    filters: Iterable[Any],
) -> Iterator[Any]:
    """Keep the filters by state or key group, and yield the others, which Spark has to apply.

    Of those by key, which are among the others, the keys are noted.
    """
    for pushed in filters:
        test = _TESTS.get(type(pushed).__name__)
        column = ".".join(getattr(pushed, "attribute", ()))
        if column == "key" and type(pushed).__name__ in _EQUALITIES:
            keys.append(pushed.value if isinstance(pushed.value, tuple) else (pushed.value,))
        if test is None or column not in tests:
            yield pushed
        else:
            tests[column].append(partial(_test, test, pushed.value))


def _test(test: Callable[[Any, Any], bool], value: Any, mine: Any) -> bool:
    return test(mine, value)


def _passes(tests: Iterable[Callable[[Any], bool]], value: Any) -> bool:
    return all(test(value) for test in tests)


def _check_place(given: Mapping[str, str]) -> None:
    """Refuse a table that says of two places that the savepoint is there."""
    names = ("path", "location", f"{_PREFIX}path", f"{_PREFIX}location")
    for name in names[1:]:
        if path_in_metadata(given.get(name, given["path"])) != path_in_metadata(given["path"]):
            raise InvalidValueError(
                f"{FORMAT} has the option path alone for where the savepoint is, got path "
                f"{show(given['path'])} and {name.removeprefix(_PREFIX)} {show(given[name])}"
            )


def _kept_options(schema: T.StructType) -> Mapping[str, str]:
    """Return the options that a table's schema keeps, none of another schema."""
    metadata = schema.fields[0].metadata if schema.fields else None
    kept = _parse_json(str((metadata or {}).get(_KEPT)))
    return {**kept} if isinstance(kept, dict) and all(map(_is_text, kept.values())) else {}


def _without_metadata(schema: T.StructType) -> T.StructType:
    return T.StructType([T.StructField(f.name, f.dataType, f.nullable) for f in schema.fields])


def _parse_moved(text: str) -> dict[str, str]:
    """Return the paths by path of a JSON object."""
    moved = _parse_json(text)
    if not isinstance(moved, dict) or not all(map(_is_text, moved.values())):
        raise InvalidValueError(f"moved must be a JSON object of paths, got {show(text)}")
    return moved


def _parse_allow(text: str) -> list[str]:
    """Return the paths of a JSON list."""
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
