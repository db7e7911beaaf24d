"""Tables in two shapes: wide, with columns for each state, and long, with a row an entry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from keygroups._checks import null_key, show
from keygroups._serializers.base import Serializer, check_writable
from keygroups._serializers.collections import is_in_order
from keygroups._serializers.sql.rows import RowDataSerializer
from keygroups.errors import InvalidTypeError, InvalidValueError, UnsupportedKeyTypeError
from keygroups.savepoint._columns.batches import (
    TIMES,
    TYPED,
    layout_of,
    times_of,
    typed_columns,
)
from keygroups.savepoint._columns.column_encoder import (
    KeyColumnEncoder,
    Keys,
    StateEncoder,
    StateRows,
    pairs_of_maps,
    table_encoder,
    with_entries,
)
from keygroups.savepoint._columns.column_types import (
    column_of_key_type,
    column_to_write,
    is_written,
)
from keygroups.savepoint._columns.columns import array_of
from keygroups.savepoint._columns.row_encoder import KeyEncoder, RowEncoder
from keygroups.savepoint._columns.scalar_writers import UnwrittenError
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.writing.entry_encoder import EntryEncoder
from keygroups.savepoint._state.writing.write_task import WriteTask
from keygroups.state_keys import VOID_NAMESPACE
from keygroups.types import KeyType

KEY_GROUP, KEY, LAST_ACCESS = range(3)
"""The places of the columns of a wide table that come before those of the states."""


class StateColumns(NamedTuple):
    """The places and types of the columns of a state in a wide table; it may be pickled.

    A value is a whole list with `is_array`, an element of a list with `is_element`, and with
    `is_map` a whole map, whose keys have the user key's type.
    """

    name: str
    value: int
    value_type: KeyType | Serializer
    user_key: int | None = None
    user_key_type: KeyType | Serializer | None = None
    is_array: bool = False
    is_element: bool = False
    is_map: bool = False


@dataclass(frozen=True)
class WideRows:
    """Makes entries of wide rows, each with columns for every state; it may be pickled.

    `uid` is the operator's, `task` any of its tasks, `states` are by number. A null and an empty
    list make no entry; a map makes several.
    """

    uid: str
    task: WriteTask
    key_type: KeyType
    has_ttl: bool
    states: tuple[StateColumns, ...]

    def __call__(self, batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        """Yield the entries of each state in each batch.

        Raises InvalidValueError where a key is null, and InvalidTypeError or InvalidValueError
        for a row that is no entry.
        """
        task, encoder = self.task, self.task.encoder()
        by_column = KeyColumnEncoder(
            self.key_type, task.states[0].key_serializer, task.max_parallelism
        )
        name = f"key of operator {self.uid!r}"
        column = column_of_key_type(self.key_type)
        key_encoder = KeyEncoder(name, f"{name},", column, by_column, encoder)
        states = [
            _WideState(*(number, state, task, key_encoder, encoder))
            for number, state in enumerate(self.states)
        ]
        for batch in batches:
            if batch.column(KEY_GROUP).null_count:
                raise InvalidValueError(null_key(name))
            key_groups, column = batch.column(KEY_GROUP), batch.column(KEY)
            self._check_key_groups(name, key_groups, column, by_column, key_encoder, encoder)
            keys = key_encoder.keys(column, key_groups)
            last_access = batch.column(LAST_ACCESS) if self.has_ttl else None
            for state in states:
                for entries in state.entries(keys, batch, last_access):
                    if entries.num_rows:
                        yield entries

    @staticmethod
    def _check_key_groups(
        name: str,
        key_groups: pa.Array,
        column: pa.Array,
        by_column: KeyColumnEncoder,
        key_encoder: KeyEncoder,
        encoder: EntryEncoder,
    ) -> None:
        """Refuse keys that Spark computes anew with another result, such as random ones.

        The key groups that Spark computed are compared with those of the keys that arrived. Keys
        that are hashed one by one are checked in the first row only: all would double the time.
        """
        row = 0
        with suppress(UnwrittenError):
            is_other = by_column.key_groups(column) != key_groups.to_numpy()
            if not is_other.any():
                return
            row = int(is_other.argmax())
        for key in key_encoder.values(column.slice(row, 1)):
            computed, key_group = encoder.key_group(key), key_groups[row].as_py()
            if computed != key_group:
                raise InvalidValueError(
                    f"{name} must be the same each time, got key group {key_group} and then "
                    f"{show(key)} of key group {computed}: save the DataFrame first"
                )


class _WideState:
    """Makes entries of the columns of one state."""

    def __init__(
        self,
        number: int,
        columns: StateColumns,
        task: WriteTask,
        key_encoder: KeyEncoder,
        encoder: EntryEncoder,
    ) -> None:
        described = task.states[number]
        self._columns, self._key_encoder, self._kind = columns, key_encoder, described.kind
        types = columns.value_type, columns.user_key_type
        by_column = StateEncoder(number, described, *types, task.allow_any_last_access)
        value = column_to_write(columns.value_type)
        restored = {"value": array_of(value) if described.kind == "LIST" else value}
        if columns.user_key_type is not None:
            restored["user_key"] = column_to_write(columns.user_key_type)
        self._restored = restored
        self._encoder = RowEncoder(number, key_encoder, by_column, restored, encoder)

    def entries(
        self, keys: Keys, batch: pa.RecordBatch, last_access: pa.Array | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the entries of a batch, those of maps in chunks of pairs."""
        columns, value = self._columns, batch.column(self._columns.value)
        if columns.is_map:
            parts = pairs_of_maps(value, keys, last_access)
        else:
            if columns.is_element:
                keys, value, last_access = _as_lists(keys, value, last_access)
            user_key = None if columns.user_key is None else batch.column(columns.user_key)
            parts = iter([with_entries(self._kind, keys, StateRows(value, user_key, last_access))])
        for row_keys, rows in parts:
            self._check_user_keys(row_keys, rows)
            yield self._encoder.entries(row_keys, rows)

    def _check_user_keys(self, keys: Keys, rows: StateRows) -> None:
        """Refuse a null user key; `with_entries` has dropped the rows whose value is null too."""
        if rows.user_key is not None and rows.user_key.null_count:
            row = rows.user_key.is_null().index(True).as_py()
            [key] = self._key_encoder.values(keys.column.slice(row, 1))
            assert rows.value is not None
            [value] = self._restored["value"].restore(rows.value.slice(row, 1))
            raise InvalidValueError(
                f"user key of state {self._columns.name!r} is null for key {show(key)}, and its "
                f"value is {show(value)}"
            )


def _as_lists(
    keys: Keys, elements: pa.Array, last_access: pa.Array | None
) -> tuple[Keys, pa.Array, pa.Array | None]:
    """Return the elements that are not null, each as a list of one, with their keys and times."""
    if elements.null_count:
        mask = elements.is_valid()
        keys, elements = keys.filter(mask), elements.filter(mask)
        last_access = None if last_access is None else last_access.filter(mask)
    offsets = pa.array(np.arange(len(elements) + 1, dtype=np.int32))
    return keys, pa.ListArray.from_arrays(offsets, elements), last_access


class ColumnPlace(NamedTuple):
    """The place of a state's values: a column, and a field if the column is a struct of states."""

    column: int
    field: int | None


class _Undecoded(Serializer):
    """Writes bytes as they are: values that only a serializer of the job can read."""

    name, takes_null = "UNDECODED", True

    @staticmethod
    def write(value: Any) -> bytes:
        if value is not None and not isinstance(value, bytes):
            raise InvalidTypeError(f"a value must be the bytes that were read, got {show(value)}")
        return value or b""


@dataclass(frozen=True)
class LongRows:
    """Makes entries of long rows, as `read_keyed_state` gives them; it may be pickled.

    `states` are all states of the operator, by number. Those with `places` are written: their
    values are at the place of each role of TYPED. A role that a state has no values for has no
    place, and has to be null in the rows of that state. The first of the `columns` has the names
    of states.
    """

    states: tuple[StateDescriptor, ...]
    max_parallelism: int
    allow_any_last_access: bool
    columns: tuple[str, ...]
    places: Mapping[str, Mapping[str, ColumnPlace]]

    def __call__(self, batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        """Yield the entries of each state in each batch.

        Raises InvalidTypeError or InvalidValueError for a row that is no entry.
        """
        encoder = EntryEncoder(
            [*map(_written_as, self.states)], self.max_parallelism, self.allow_any_last_access
        )
        key = self.states[0].key_serializer
        by_column = KeyColumnEncoder(key, key, self.max_parallelism)
        readers = {
            state.name: _LongState(
                *(number, state, self.columns, self.places[state.name], encoder, by_column),
                self.allow_any_last_access,
            )
            for number, state in enumerate(self.states)
            if state.name in self.places
        }
        for batch in batches:
            names = batch.column(0)
            for name in names.unique().to_pylist():
                if name not in readers:
                    raise InvalidValueError(
                        f"state must be one of {', '.join(readers)}, got {show(name)}"
                    )
                yield readers[name].entries(batch.filter(pc.equal(names, name)))


def _written_as(state: StateDescriptor) -> StateDescriptor:
    """Return the state that the rows are written as: with undecoded values as they are."""
    if state.value_serializer is None or state.value_serializer.read is not None:
        return state
    if state.kind == "LIST":  # the bytes of an undecoded list hold all elements and their times
        return replace(state, kind="VALUE", value_serializer=_Undecoded(), has_ttl=False)
    return replace(state, value_serializer=_Undecoded())


class _LongState:
    """Makes entries of the rows of one state."""

    def __init__(
        self,
        number: int,
        state: StateDescriptor,
        columns: Sequence[str],
        places: Mapping[str, ColumnPlace],
        encoder: EntryEncoder,
        key_column: KeyColumnEncoder,
        allow_any_last_access: bool,
    ) -> None:
        self._name = state.name
        self._columns = columns
        self._places = places
        types = {
            role: column
            for role, column in zip(TYPED, typed_columns(state))
            if role in places and column is not None
        }
        name = f"state {state.name!r}"
        self._key_encoder = KeyEncoder(
            f"key of {name}", f"{name}, key", types["key"], key_column, encoder
        )
        by_column = table_encoder(number, state, allow_any_last_access)
        self._encoder = RowEncoder(number, self._key_encoder, by_column, types, encoder)
        self._times = {name: columns.index(name) for name in times_of(state)}
        user_key = state.user_key_serializer
        is_row = isinstance(user_key, RowDataSerializer)
        # Flink's rows have two forms of a null of such a type, and RocksDB finds a user key by its
        # bytes: the form that is written here may not be the one that the job looks for.
        self._long_fields = [
            (place, field)
            for place, field in enumerate(user_key.fields if is_row and user_key else ())
            if field.reserved
        ]
        self._user_key_column = types.get("user_key")

    def entries(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the entries of a batch, whose rows are all of the state."""
        self._check_others(batch)
        arrays = {name: batch.column(place) for name, place in self._times.items()}
        arrays |= {role: self._array(batch, place) for role, place in self._places.items()}
        self._check_user_keys(arrays.get("user_key"))
        rows = StateRows(*(arrays.get(name) for name in StateRows._fields))
        return self._encoder.entries(self._key_encoder.keys(arrays["key"]), rows)

    def _array(self, batch: Any, place: ColumnPlace) -> Any:
        array = batch.column(place.column)
        return array if place.field is None else array.flatten()[place.field]

    def _check_others(self, batch: Any) -> None:
        """Refuse values in columns that the state has not, and in fields of other states."""
        for number, name in enumerate(self._columns[1:], 1):
            if number in self._times.values():
                continue
            array, place = batch.column(number), self._places.get(name)
            if place is None:
                others = [array]
            elif place.field is None:
                continue
            else:
                others = array.flatten()
                del others[place.field]
            for other in others:
                if other.null_count < len(other):
                    but = " but for its own" if place else ""
                    raise InvalidValueError(
                        f"{name} of state {self._name!r} must be null{but}, got "
                        f"{show(other.drop_null()[0].as_py())}"
                    )

    def _check_user_keys(self, array: pa.Array | None) -> None:
        if array is None or self._user_key_column is None or not self._long_fields:
            return
        user_keys = self._user_key_column.restore(array)
        for place, field in self._long_fields:
            for user_key in user_keys:
                if user_key is not None and user_key[place] is None:
                    raise InvalidValueError(
                        f"user_key of state {self._name!r} must have no null of {field}, which "
                        f"Flink writes in two ways, got {show(user_key)}"
                    )


class LongColumn(NamedTuple):
    """A column of long rows, with one `type` for all states or a type by state in `of_states`.

    It is `needed` if some state has values for it. Where the types by state differ the column is a
    struct with a field for each state.
    """

    name: str
    needed: bool
    type: pa.DataType | None
    of_states: Mapping[str, pa.DataType]


def long_columns(states: Sequence[StateDescriptor]) -> list[LongColumn]:
    """Return the columns of rows of some states, as `read_keyed_state` gives them."""
    layout = layout_of(states)
    times = {name for state in states for name in times_of(state)}
    return [
        LongColumn("state", True, pa.string(), {}),
        *(LongColumn(role, bool(by), None, by) for role, by in zip(TYPED, layout.types)),
        *(LongColumn(name, name in times, pa.int64(), {}) for name in TIMES),
    ]


def check_states_of_rows(label: str, states: Sequence[StateDescriptor]) -> None:
    """Raise UnsupportedKeyTypeError for a state whose values rows do not hold unchanged."""
    key = states[0].key_serializer
    try:
        _check_key(key, "keys")
    except UnsupportedKeyTypeError as error:
        raise UnsupportedKeyTypeError(
            f"operator {label} cannot be written from rows: {error}"
        ) from None
    if key.key_type is None:
        raise UnsupportedKeyTypeError(
            f"operator {label} cannot be written from rows: the hash of keys of {key} is not known"
        )
    for state in states:
        try:
            if state.namespace_serializer != VOID_NAMESPACE:
                _check_key(state.namespace_serializer, "namespaces")
            if state.user_key_serializer is not None:
                _check_key(state.user_key_serializer, "user keys")
            if state.value_serializer is not None and state.value_serializer.read is not None:
                _check_values(state.value_serializer, "values")
        except UnsupportedKeyTypeError as error:
            raise UnsupportedKeyTypeError(
                f"state {state.name!r} of operator {label} cannot be written from rows: {error}; "
                "without it in states it is kept as it is"
            ) from None


def _check_key(serializer: Serializer, name: str) -> None:
    if not is_in_order(serializer):
        raise UnsupportedKeyTypeError(
            f"{name} of {serializer} have their bytes in an order that only Java has"
        )
    _check_values(serializer, name)


def _check_values(serializer: Serializer, name: str) -> None:
    if not is_written(serializer):
        raise UnsupportedKeyTypeError(
            f"{name} of {serializer} are text or bytes in Spark, which are not what was written"
        )
    check_writable(serializer)
