"""From the entries that a task reads to the columns of a DataFrame, so many entries at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice, repeat
from operator import itemgetter
from typing import Any, NamedTuple

from pyspark.sql import types as T

from keygroups.errors import InvalidValueError, SavepointError
from keygroups.savepoint import StateDescriptor, StateEntry
from keygroups.savepoint._tasks.read import ReadTask
from keygroups.spark._savepoint.column_types import (
    column_of,
    is_of_the_job,
    key_column_of,
)
from keygroups.spark._savepoint.columns import BINARY, Convert, SparkColumn, array_of, ttl_of

_ENTRIES, _BYTES = 4096, 4 << 20  # of a batch, about
_CHUNK = 256  # so few that Python's collector of garbage does not start
_SAME = {
    "key_group": T.IntegerType(),
    "subtask": T.IntegerType(),
    "state": T.StringType(),
    "kind": T.StringType(),
}
TYPED = ("key", "namespace", "user_key", "value")
SAME = tuple(_SAME)
"""The columns in which the entries of a batch are the same."""
_NUMBERS = ("last_access", "timestamp", "bytes")
VARYING = (*TYPED, *_NUMBERS, "key_bytes")
"""The others."""
_PLACES = {name: StateEntry._fields.index(name) for name in StateEntry._fields}
_get_state = itemgetter(_PLACES["state"])
_state_and_key_group = itemgetter(_PLACES["state"], _PLACES["key_group"])


@dataclass(frozen=True)
class Layout:
    """Which type each of key, namespace, user key and value has, by state."""

    types: tuple[Mapping[str, T.DataType], ...]
    has_last_access: bool
    has_timestamp: bool
    has_key_bytes: bool

    @property
    def states(self) -> list[str]:
        """The names of the states: all have keys."""
        return list(self.types[0])

    @property
    def schema(self) -> T.StructType:
        """The DataFrame's schema."""
        return T.StructType(
            [T.StructField(*field) for field in (*_SAME.items(), *self._varying())]
        )

    @property
    def not_null(self) -> list[str]:
        """Those of VARYING in which not all is null."""
        others = (self.has_last_access, self.has_timestamp, True, self.has_key_bytes)
        return [name for name, has in zip(VARYING, (*map(bool, self.types), *others)) if has]

    @property
    def batch_schema(self) -> T.StructType:
        """That of what `Batch.as_row` returns."""
        types = dict(self._varying())
        arrays = ((name, T.ArrayType(types[name])) for name in self.not_null)
        return T.StructType([T.StructField(*field) for field in (*_SAME.items(), *arrays)])

    def _varying(self) -> Iterator[tuple[str, T.DataType]]:
        numbers = repeat(T.LongType(), len(_NUMBERS))
        return zip(VARYING, chain(map(_joined, self.types), numbers, [BINARY.data_type]))


class Batch(NamedTuple):
    """Entries of one state and key group: what is the same in all, and columns, None for null."""

    same: tuple[int, int, str, str]
    columns: list[Sequence[Any] | None]

    def as_row(self, names: Sequence[str]) -> tuple[Any, ...]:
        """Return one row with some columns as arrays, empty ones for null."""
        return (*self.same, *(self.columns[VARYING.index(name)] or [] for name in names))

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Return an iterator over the rows of the DataFrame."""
        columns = (repeat(None) if column is None else column for column in self.columns)
        return zip(*map(repeat, self.same), *columns)


def layout_of(states: Sequence[StateDescriptor]) -> Layout:
    """Return the layout for some states."""
    by_state = {state.name: typed_columns(state) for state in states}
    types = tuple(
        {name: column.data_type for name, columns in by_state.items() if (column := columns[role])}
        for role in range(len(TYPED))
    )
    return Layout(
        types,
        any(state.has_ttl for state in states),
        any(state.kind == "PRIORITY_QUEUE" for state in states),
        any(map(_has_key_bytes, states)),
    )


def batches(task: ReadTask, layout: Layout) -> Iterator[Batch]:
    """Yield what a task reads."""
    converters = {
        state.name: _Converter(state, layout)
        for state in task.descriptors()
        if task.states is None or state.name in task.states
    }
    for (name, key_group), chunks in groupby(_chunks(task.entries()), itemgetter(0, 1)):
        converter = converters[name]
        same = (key_group, task.subtask, name, converter.kind)
        columns: list[list[Any]] = [[] for _ in converter.getters]
        size = 0
        for _, _, chunk in chunks:
            for column, get in zip(columns, converter.getters):
                column += map(get, chunk)
            size += sum(columns[-1][-len(chunk) :])
            if len(columns[0]) >= _ENTRIES or size >= _BYTES:
                yield Batch(same, converter.convert(key_group, columns))
                columns, size = [[] for _ in converter.getters], 0
        if columns[0]:
            yield Batch(same, converter.convert(key_group, columns))


def _chunks(entries: Iterator[StateEntry]) -> Iterator[tuple[str, int, list[StateEntry]]]:
    """Yield entries of one state and key group that follow one another, with both."""
    while chunk := list(islice(entries, _CHUNK)):
        name, key_group = chunk[0].state, chunk[0].key_group
        # Key groups come in order, so those between two of the same are it too.
        if chunk[-1].key_group == key_group and all(map(name.__eq__, map(_get_state, chunk))):
            yield name, key_group, chunk
        else:
            for (name, key_group), run in groupby(chunk, _state_and_key_group):
                yield name, key_group, list(run)


def _as_it_is(values: Sequence[Any]) -> Sequence[Any]:
    return values


class _Converter:
    """Makes Spark's values of one state; `getters` take them from an entry, its bytes last."""

    def __init__(self, state: StateDescriptor, layout: Layout) -> None:
        self.kind = state.kind
        self.name = state.name
        self._plan: list[tuple[int, Convert]] = []  # where in the columns, and how
        self.getters: list[Callable[[StateEntry], Any]] = []
        for role, (column, types) in enumerate(zip(typed_columns(state), layout.types)):
            if column is None:
                continue
            if types.get(state.name) != column.data_type:
                raise SavepointError(
                    f"state {state.name!r} has another type in some subtasks: read it with "
                    "keygroups.savepoint"
                )
            self._add(TYPED[role], _placed(column.convert, state.name, types))
        if state.has_ttl:
            self._add("last_access")
        if state.kind == "PRIORITY_QUEUE":
            self._add("timestamp")
        if _has_key_bytes(state):
            self._add("key_bytes")
        self._add("bytes")

    def _add(self, name: str, convert: Convert = _as_it_is) -> None:
        self._plan.append((VARYING.index(name), convert))
        self.getters.append(itemgetter(_PLACES[name]))

    def convert(self, key_group: int, columns: Sequence[Sequence[Any]]) -> list[Any]:
        """Return the columns of a batch."""
        result: list[Any] = [None] * len(VARYING)
        for (index, convert), column in zip(self._plan, columns):
            try:
                result[index] = convert(column)
            except InvalidValueError as error:
                raise InvalidValueError(
                    f"{VARYING[index]} in state {self.name!r}, key group {key_group}: {error}"
                ) from None
        return result


def typed_columns(state: StateDescriptor) -> tuple[SparkColumn | None, ...]:
    """Return the columns of key, namespace, user key and value, None for what is always None."""
    key, namespace = key_column_of(state.key_serializer), column_of(state.namespace_serializer)
    if state.value_serializer is None:
        return key, namespace, None, None
    user_key = None
    if state.user_key_serializer is not None:
        user_key = key_column_of(state.user_key_serializer)
    value = column_of(state.value_serializer)
    if state.kind == "LIST" and value is not None and state.value_serializer.read is not None:
        value = array_of(ttl_of(value) if state.has_ttl else value)
    return key, namespace, user_key, value


def _has_key_bytes(state: StateDescriptor) -> bool:
    """Return whether there may be entries whose key nobody but the job can tell."""
    serializers = (state.key_serializer, state.namespace_serializer, state.user_key_serializer)
    return any(is_of_the_job(serializer) for serializer in serializers if serializer is not None)


def _joined(types: Mapping[str, T.DataType]) -> T.DataType:
    """Return the type of a column: that of all states, or a struct with a field for each.

    Where no state has one, all are null: strings, which every format can store.
    """
    data_types = list(types.values())
    if any(data_type != data_types[0] for data_type in data_types):
        return T.StructType([T.StructField(name, data_type) for name, data_type in types.items()])
    return data_types[0] if data_types else T.StringType()


def _placed(convert: Convert, state: str, types: Mapping[str, T.DataType]) -> Convert:
    """Put the values into the field of their state where the column is a struct of them."""
    states = list(types)
    if all(data_type == types[state] for data_type in types.values()):
        return convert
    before = (None,) * states.index(state)
    after = (None,) * (len(states) - len(before) - 1)

    def convert_and_place(values: Sequence[Any]) -> Sequence[Any]:
        return [(*before, value, *after) for value in convert(values)]

    return convert_and_place
