"""Batches of Arrow made of the entries that a task reads, each with entries of one state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from keygroups._checks import show
from keygroups._serializers.base import Serializer
from keygroups._serializers.data_input import LONGEST_NAME
from keygroups._serializers.jvm import avro, kryo, pojos, scala
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
from keygroups.savepoint._state.layouts import has_key_bytes
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
BYTES_OF = {role: f"{role}_bytes" for role in TYPED}  # columns of values that only the job reads
_OF_VALUES = {"value", "last_access", BYTES_OF["value"]}


@dataclass(frozen=True)
class BatchLayout:
    """The Arrow types of key, namespace, user key and value (the roles of TYPED), by state.

    `apart` are the roles that are text in some state, and in some entries bytes that only the job
    reads: such bytes have a column of their own.
    """

    types: tuple[Mapping[str, pa.DataType], ...]
    apart: tuple[str, ...] = ()

    @property
    def states(self) -> list[str]:
        """The names of the states: all have keys."""
        return list(self.types[0])

    @property
    def schema(self) -> pa.Schema:
        """The schema of batches."""
        types: dict[str, pa.DataType] = {**_SAME, **dict(zip(TYPED, map(_joined, self.types)))}
        types.update(dict.fromkeys((*TIMES, "bytes"), pa.int64()), key_bytes=BINARY.data_type)
        types.update((BYTES_OF[role], BINARY.data_type) for role in self.apart)
        return pa.schema([*types.items()])


def layout_of(states: Sequence[StateDescriptor]) -> BatchLayout:
    """Return the layout for some states.

    Raises InvalidValueError where no column has the name of a state or of a field in one.
    """
    column_names(state.name for state in states)
    by_state = {state.name: typed_columns(state) for state in states}
    return BatchLayout(
        tuple(
            {
                name: column.data_type
                for name, columns in by_state.items()
                if (column := columns[role])
            }
            for role in range(len(TYPED))
        ),
        tuple(role for role in TYPED if any(role in roles_apart(state) for state in states)),
    )


def times_of(state: StateDescriptor) -> list[str]:
    """Return the columns of times that a state has; elements of a LIST hold their own times."""
    has = (state.has_ttl and state.kind != "LIST", state.value_serializer is None)
    return [*compress(TIMES, has)]


def record_batches(
    task: ReadTask, layout: BatchLayout, names: Sequence[str] | None = None
) -> Iterator[Any]:
    """Return the `batches_of` the entries that a task reads; without columns of values none is."""
    if _OF_VALUES.isdisjoint(layout.schema.names if names is None else names):
        task = replace(task, has_values=False)
    return batches_of(task.columns(), task.subtask, layout, names)


def batches_of(
    parts: Iterable[EntryColumns],
    subtask: int,
    layout: BatchLayout,
    names: Sequence[str] | None = None,
) -> Iterator[Any]:
    """Yield entries that a subtask wrote as RecordBatches, each with entries of one state.

    `names` are the columns, None for all. A key or a text that only the job can read is null in
    its column, and has its bytes in the column `key_bytes` or `<role>_bytes`.
    """
    schema = layout.schema if names is None else named_schema(layout, names)
    columns: dict[StateDescriptor, dict[str, ArrowColumn]] = {}
    apart: dict[StateDescriptor, list[str]] = {}
    for entries in parts:
        state = entries.state
        if state not in columns:
            columns[state], apart[state] = _columns_of(state, layout), bytes_apart(state)
            if "state" in schema.names:
                check_name(state)
        constants = {"subtask": subtask, "state": state.name, "kind": state.kind}
        entries = _apart(entries, columns[state], apart[state])
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


def named_schema(layout: BatchLayout, names: Sequence[str]) -> Any:
    """Return the schema of columns with some names."""
    schema = layout.schema
    return pa.schema([schema.field(name) for name in names])


def names_of(state: StateDescriptor) -> list[str]:
    """Return the names of the columns that have values in a state, and are not null throughout."""
    typed = [name for name, column in zip(TYPED, typed_columns(state)) if column is not None]
    names = ["key_group", "subtask", *typed, *times_of(state), "bytes"]
    of_key = [serializer for role, serializer in _serializers(state) if role != "value"]
    if any(map(_is_of_the_job, of_key)) or has_key_bytes(state):
        names.append(BYTES_OF["key"])
    return names + [BYTES_OF[role] for role in roles_apart(state) if role != "key"]


def roles_apart(state: StateDescriptor) -> list[str]:
    """Return the roles whose column is text: values of any class, some of which are bytes.

    The bytes, which only the job reads, are in a column `<role>_bytes` apart from the text.
    """
    return [
        role
        for role, serializer in _serializers(state)
        if serializer.read is not None and is_open(serializer) and column_of(serializer) is TEXT
    ]


def _serializers(state: StateDescriptor) -> list[tuple[str, Serializer]]:
    """Return the serializers of a state, each with its role."""
    serializers = [
        ("key", state.key_serializer),
        ("namespace", state.namespace_serializer),
        ("user_key", state.user_key_serializer),
        ("value", state.value_serializer),
    ]
    return [(role, serializer) for role, serializer in serializers if serializer is not None]


def bytes_apart(state: StateDescriptor) -> list[str]:
    """Return the roles that have a column `<role>_bytes` for values that only the job reads."""
    of_key = ["key"] if _is_of_the_job(state.key_serializer) else []
    return of_key + [role for role in roles_apart(state) if role != "key"]


def _is_of_the_job(serializer: Serializer) -> bool:
    """Return whether values may take the job's classes to read."""
    if serializer.read is None or isinstance(serializer, _OF_THE_JOB):
        return True  # even a POJO of known fields: a value may be of a subclass
    return any(map(_is_of_the_job, serializer.parts))


_OF_THE_JOB = (
    avro.AvroSerializer,
    kryo.KryoSerializer,
    pojos.PojoSerializer,
    scala.TrySerializer,
    scala.TrySerializer2,
)


def apart_of(values: Sequence[Any]) -> tuple[list[Any], list[bytes | None]]:
    r"""Return two columns: the decoded values, and the bytes that only the job reads.

    >>> apart_of(["a", b"\x00", None])
    (['a', None, None], [None, b'\x00', None])
    """
    is_own = [type(value) is bytes for value in values]
    others = [None if own else value for value, own in zip(values, is_own)]
    return others, [value if own else None for value, own in zip(values, is_own)]


def _apart(
    entries: EntryColumns, columns: Mapping[str, ArrowColumn], roles: Sequence[str]
) -> EntryColumns:
    """Return entries with the bytes that only the job reads moved to columns of their own."""
    changed: dict[str, Any] = {}
    for role in roles:
        values, apart = entries.columns.get(role), BYTES_OF[role]
        is_binary = role not in columns or columns[role].data_type == pa.binary()
        if is_binary or not isinstance(values, (list, tuple)):
            continue
        known = entries.columns.get(apart) or [None] * entries.count
        changed[role], own = apart_of(values)
        changed[apart] = [other if value is None else value for value, other in zip(own, known)]
    return replace(entries, columns={**entries.columns, **changed}) if changed else entries


def check_name(state: StateDescriptor) -> None:
    """Refuse a name too long to be repeated in each row."""
    if len(state.name) > LONGEST_NAME:
        raise SavepointError(
            f"state {show(state.name)} has a name of {len(state.name):,} characters, and rows "
            f"have names of at most {LONGEST_NAME:,}: read it with Operator.entries"
        )


def _columns_of(state: StateDescriptor, layout: BatchLayout) -> dict[str, ArrowColumn]:
    """Return the columns of a state by role, without those that are always null.

    Raises SavepointError where the layout, made of another subtask's header, has other types.
    """
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
    """Return a column of numbers or of the bytes of keys, which needs no conversion."""
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
        key_group, error = next(  # the error names the first value that fails alone
            (key_group, error)
            for key_group, value in zip(entries.columns["key_group"], values)
            if (error := _refusal(column, value)) is not None
        )
        raise InvalidValueError(
            f"{role} in state {entries.state.name!r}, key group {key_group}: {error}"
        ) from None


def _refusal(column: ArrowColumn, value: Any) -> InvalidValueError | None:
    """Return the error of a value that a column does not hold, None if it holds it."""
    try:
        arrow_array(column.convert([value]), column.data_type)
    except InvalidValueError as error:
        return error
    return None


def placed(
    array: Any, arrow_type: Any, count: int, state: StateDescriptor, layout: BatchLayout, role: str
) -> Any:
    """Return an array as a column of the layout.

    Where states have different types the column is a struct with a field for each state: the array
    becomes the field of its own, and the other fields are null.
    """
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
    """Return the type of a column: the one that all states share, or a struct by state.

    A column that no state has values for is of nulls as strings, which every format can store.
    """
    if _differ(types):
        return pa.struct([*types.items()])
    return next(iter(types.values()), pa.string())


def _differ(types: Mapping[str, pa.DataType]) -> bool:
    """Return whether the states have more than one type."""
    return any(one != other for one, other in pairwise(types.values()))
