"""A table of Arrow with a row for each key, in which each state has a column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from keygroups._checks import show
from keygroups._serializers.scalars import NullSerializer
from keygroups.errors import InvalidValueError
from keygroups.savepoint._columns.arrow_values import arrow_array
from keygroups.savepoint._columns.batches import apart_of, typed_columns
from keygroups.savepoint._columns.columns import (
    LONG,
    TEXT,
    ArrowColumn,
    array_of,
    column_names,
    map_of,
    ttl_of,
    unfit,
)
from keygroups.savepoint._state.header import StateDescriptor

_KEYS = 1 << 14  # keys that become columns at once
_NULLS = ArrowColumn(pa.null(), list)


def key_table(
    contents: Iterator[tuple[Any, dict[str, Any]]], states: Sequence[StateDescriptor]
) -> pa.Table:
    """Return a table of keys with their contents, as `Operator.entries_by_key` yields them."""
    names = column_names(["key", *(state.name for state in states)])
    key = typed_columns(states[0])[0]
    columns = [_strict(key), *map(_column_of, states)]
    schema = pa.schema([(name, each.data_type) for name, each in zip(names, columns)])
    batches = []
    while rows := [*islice(contents, _KEYS)]:
        values: list[list[Any]] = [[key for key, _ in rows]]
        values += ([held.get(state.name) for _, held in rows] for state in states)
        arrays = [_array(*each) for each in zip(names, columns, values)]
        batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    table = pa.Table.from_batches(batches, schema)
    if key is TEXT and len({*table.column(0).to_pylist()}) < len(table):
        raise InvalidValueError(
            "column 'key': keys of several classes have one text: read them with "
            "Operator.entries_by_key"
        )
    return table


def _array(name: str, column: ArrowColumn, values: Sequence[Any]) -> Any:
    try:
        return arrow_array(column.convert(values), column.data_type)
    except InvalidValueError as error:
        raise InvalidValueError(f"column {show(name)}: {error}") from None


def _column_of(state: StateDescriptor) -> ArrowColumn:
    """Return the column of what a state has for a key: maps of user keys, and of namespaces."""
    _, namespace, user_key, value = map(_strict, typed_columns(state))
    column = value
    if state.value_serializer is None:
        column = array_of(LONG)
    elif state.has_ttl and state.kind != "LIST":
        column = ttl_of(value)
    if state.user_key_serializer is not None:
        column = map_of(user_key, column)
    has_namespace = not isinstance(state.namespace_serializer, NullSerializer)
    return map_of(namespace, column) if has_namespace else column


def _strict(column: ArrowColumn | None) -> ArrowColumn:
    """Return a column that refuses bytes as text: they are of a value that only the job reads."""
    return (
        _NULLS
        if column is None
        else column._replace(convert=_of_text)
        if column is TEXT
        else column
    )


def _of_text(values: Iterable[Any]) -> Sequence[Any]:
    values, own = apart_of([*values])
    for data in own:
        if data is not None:
            raise unfit(data)
    return TEXT.convert(values)
