"""From the entries that a task reads to batches of Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from keygroups._checks import show
from keygroups._serializers.data_input import LONGEST_NAME
from keygroups.errors import InvalidValueError, SavepointError
from keygroups.savepoint._columns.arrow_values import arrow_array
from keygroups.savepoint._columns.column_types import column_of, is_open, key_column_of
from keygroups.savepoint._columns.columns import (
    BINARY,
    TEXT,
    ArrowColumn,
    array_of,
    column_names,
    ttl_of,
)
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._tasks.read import ReadTask

if TYPE_CHECKING:
    from keygroups.savepoint._state.entry_columns import EntryColumns

_SAME = {
    "key_group": pa.int32(),
    "subtask": pa.int32(),
    "state": pa.string(),
    "kind": pa.string(),
}
TYPED = ("key", "namespace", "user_key", "value")
TIMES = ("last_access", "timestamp")
VALUE_BYTES = "value_bytes"


@dataclass(frozen=True)
class Layout:
    """Which type each of key, namespace, user key and value has, by state."""

    types: tuple[Mapping[str, pa.DataType], ...]

    @property
    def states(self) -> list[str]:
        """The names of the states: all have keys."""
        return list(self.types[0])

    @property
    def schema(self) -> pa.Schema:
        """The schema of batches."""
        types: dict[str, pa.DataType] = {**_SAME, **dict(zip(TYPED, map(_joined, self.types)))}
        types.update(dict.fromkeys((*TIMES, "bytes"), pa.int64()), key_bytes=BINARY.data_type)
        return pa.schema([*types.items()])


def layout_of(states: Sequence[StateDescriptor]) -> Layout:
    """Return the layout for some states.

    Raises InvalidValueError where no column has the name of a state or of a field in one.
    """
    column_names(state.name for state in states)
    by_state = {state.name: typed_columns(state) for state in states}
    return Layout(
        tuple(
            {
                name: column.data_type
                for name, columns in by_state.items()
                if (column := columns[role])
            }
            for role in range(len(TYPED))
        )
    )


def times_of(state: StateDescriptor) -> list[str]:
    """Return the times that each row of a state has; elements of a LIST have theirs in them."""
    has = (state.has_ttl and state.kind != "LIST", state.value_serializer is None)
    return [*compress(TIMES, has)]


def record_batches(
    task: ReadTask, layout: Layout, names: Sequence[str] | None = None
) -> Iterator[Any]:
    """Yield what a task reads, as batches of Arrow that each have entries of one state.

    `names` are the columns, None for all. What only the job reads of keys and values that are
    else text is null there, and in `key_bytes` and `value_bytes` if these are among the names.
    """
    schema = layout.schema if names is None else named_schema(layout, names)
    columns: dict[StateDescriptor, dict[str, ArrowColumn]] = {}
    for entries in task.columns():
        state = entries.state
        if state not in columns:
            columns[state] = _columns_of(state, layout)
            if "state" in schema.names:
                check_name(state)
        constants = {"subtask": task.subtask, "state": state.name, "kind": state.kind}
        if names is not None:
            entries = _apart(entries, columns[state], schema.names)
        arrays = []
        for field in schema:
            if field.name in constants:
                value = pa.scalar(constants[field.name], field.type)
                arrays.append(pa.repeat(value, entries.count))
            elif field.name in TYPED:
                column = columns[state].get(field.name)
                array = None if column is None else typed_array(entries, field.name, column)
                arrays.append(placed(array, field.type, entries.count, state, layout, field.name))
            else:
                arrays.append(_plain_array(entries, field))
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def named_schema(layout: Layout, names: Sequence[str]) -> Any:
    """Return the schema of columns with some names, of which `value_bytes` is none of a layout."""
    schema = layout.schema.append(pa.field(VALUE_BYTES, pa.binary()))
    return pa.schema([schema.field(name) for name in names])


def has_bytes_apart(state: StateDescriptor) -> bool:
    """Return whether a value is text but where it is bytes that only the job reads."""
    serializer = state.value_serializer
    if serializer is None or serializer.read is None:
        return False
    return is_open(serializer) and column_of(serializer) is TEXT


def _apart(
    entries: EntryColumns, columns: Mapping[str, ArrowColumn], names: Sequence[str]
) -> EntryColumns:
    """Return entries whose bytes that only the job reads are in columns of their own."""
    changed: dict[str, Any] = {}
    for role, apart in (("key", "key_bytes"), ("value", VALUE_BYTES)):
        values = entries.columns.get(role)
        is_binary = role not in columns or columns[role].data_type == pa.binary()
        if apart not in names or is_binary or not isinstance(values, (list, tuple)):
            continue
        there = entries.columns.get(apart) or [None] * entries.count
        changed[apart] = [
            value if type(value) is bytes else other for value, other in zip(values, there)
        ]
        changed[role] = [None if type(value) is bytes else value for value in values]
    return replace(entries, columns={**entries.columns, **changed}) if changed else entries


def check_name(state: StateDescriptor) -> None:
    """Refuse a name that is too long for each row to have it."""
    if len(state.name) > LONGEST_NAME:
        raise SavepointError(
            f"state {show(state.name)} has a name of {len(state.name):,} characters, and rows "
            f"have names of at most {LONGEST_NAME:,}: read it with Operator.entries"
        )


def _columns_of(state: StateDescriptor, layout: Layout) -> dict[str, ArrowColumn]:
    """Return the columns of a state that are not always null."""
    columns = {}
    for role, column, types in zip(TYPED, typed_columns(state), layout.types):
        if column is None:
            continue
        if types.get(state.name) != column.data_type:
            raise SavepointError(
                f"state {state.name!r} has another type in some subtasks: read it with "
                "Operator.entries"
            )
        columns[role] = column
    return columns


def _plain_array(entries: EntryColumns, field: Any) -> Any:
    """Return what Arrow takes as an array: numbers, or bytes of keys, as they are in a column."""
    values = entries.columns.get(field.name)
    if values is None:
        return pa.nulls(entries.count, field.type)
    return values


def typed_array(entries: EntryColumns, role: str, column: ArrowColumn) -> Any:
    """Return an array of keys, namespaces, user keys or values, None where all are null."""
    values = entries.columns.get(role)
    if values is None or isinstance(values, pa.Array):
        return values
    try:
        return arrow_array(column.convert(values), column.data_type)
    except InvalidValueError:
        key_group, error = next(  # of the first value that is refused by itself too
            (key_group, error)
            for key_group, value in zip(entries.columns["key_group"], values)
            if (error := _refusal(column, value)) is not None
        )
        raise InvalidValueError(
            f"{role} in state {entries.state.name!r}, key group {key_group}: {error}"
        ) from None


def _refusal(column: ArrowColumn, value: Any) -> InvalidValueError | None:
    """Return why a column does not hold a value."""
    try:
        arrow_array(column.convert([value]), column.data_type)
    except InvalidValueError as error:
        return error
    return None


def placed(
    array: Any, arrow_type: Any, count: int, state: StateDescriptor, layout: Layout, role: str
) -> Any:
    """Return the array of a column, in the field of its state where it is a struct of them."""
    types = layout.types[TYPED.index(role)]
    if array is None or not _differ(types):
        return pa.nulls(count, arrow_type) if array is None else array
    fields = [
        array if field.name == state.name else pa.nulls(count, field.type) for field in arrow_type
    ]
    return pa.StructArray.from_arrays(fields, fields=list(arrow_type))


def typed_columns(state: StateDescriptor) -> tuple[ArrowColumn | None, ...]:
    """Return the columns of key, namespace, user key and value, None for what is always None."""
    try:
        return _typed_columns(state)
    except InvalidValueError as error:
        raise InvalidValueError(f"state {show(state.name)}: {error}") from None


def _typed_columns(state: StateDescriptor) -> tuple[ArrowColumn | None, ...]:
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


def _joined(types: Mapping[str, pa.DataType]) -> pa.DataType:
    """Return the type of a column: that of all states, or a struct with a field for each.

    Where no state has one, all are null: strings, which every format can store.
    """
    if _differ(types):
        return pa.struct([*types.items()])
    return next(iter(types.values()), pa.string())


def _differ(types: Mapping[str, pa.DataType]) -> bool:
    """Return whether states have columns of several types."""
    return any(one != other for one, other in pairwise(types.values()))
