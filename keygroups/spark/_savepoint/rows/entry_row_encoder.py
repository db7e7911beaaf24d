"""From rows as `read_keyed_state` gives them back to the bytes of entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from keygroups._checks import show
from keygroups._serializers.sql import rows as sql_rows
from keygroups.errors import InvalidTypeError, InvalidValueError, KeyGroupsError
from keygroups.savepoint import Serializer, StateDescriptor
from keygroups.savepoint._columns.arrow_values import values
from keygroups.savepoint._columns.batches import TYPED, times_of, typed_columns
from keygroups.savepoint._state.writing.entry_encoder import EncodedEntry, EntryEncoder
from keygroups.spark._savepoint.rows.column_encoder import KeyColumn, StateEncoder
from keygroups.spark._savepoint.rows.column_writers import UnwrittenError
from keygroups.spark._savepoint.rows.entry_batches import entry_batch
from keygroups.spark._savepoint.rows.entry_rows import Place
from keygroups.spark._savepoint.rows.state_columns import StateColumns


class _Undecoded(Serializer):
    """Writes bytes that a serializer of the job's own has written, as they are."""

    name, takes_null = "UNDECODED", True

    @staticmethod
    def write(value: Any) -> bytes:
        if value is not None and not isinstance(value, bytes):
            raise InvalidTypeError(f"a value must be the bytes that were read, got {show(value)}")
        return value or b""


@dataclass(frozen=True)
class EntryRowEncoder:
    """Makes entries of rows; `mapInArrow` calls it with the batches of a partition.

    It may be pickled. `states` are all of the operator's, by number; those with `places` are
    written.
    """

    states: tuple[StateDescriptor, ...]
    max_parallelism: int
    allow_any_last_access: bool
    columns: tuple[str, ...]
    places: Mapping[str, Mapping[str, Place]]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the entries of each state in each batch.

        Raises InvalidTypeError or InvalidValueError for a row that is no entry.
        """
        encoder = EntryEncoder(
            [*map(_written_as, self.states)], self.max_parallelism, self.allow_any_last_access
        )
        key = self.states[0].key_serializer
        key_column = KeyColumn(key, key, self.max_parallelism)
        readers = {
            state.name: _StateReader(
                *(number, state, self.columns, self.places[state.name], encoder, key_column),
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
                rows = batch.filter(pc.equal(names, name))
                yield readers[name].entries(rows)


def _written_as(state: StateDescriptor) -> StateDescriptor:
    """Return a state as its rows are written: values that are bytes in Spark as they are."""
    if state.value_serializer is None or state.value_serializer.read is not None:
        return state
    if state.kind == "LIST":  # all of its elements are one, with their times
        return replace(state, kind="VALUE", value_serializer=_Undecoded(), has_ttl=False)
    return replace(state, value_serializer=_Undecoded())


class _StateReader:
    """Makes entries of the rows of one state."""

    def __init__(
        self,
        number: int,
        state: StateDescriptor,
        columns: Sequence[str],
        places: Mapping[str, Place],
        encoder: EntryEncoder,
        key_column: KeyColumn,
        allow_any_last_access: bool,
    ) -> None:
        self._number = number
        self._name = state.name
        self._is_list = state.kind == "LIST"
        self._encoder = encoder
        self._key_column = key_column
        value, user_key = state.value_serializer, state.user_key_serializer
        self._by_column = None
        has_columns = "value" in places and ("user_key" in places) == (user_key is not None)
        if has_columns and not (self._is_list and state.has_ttl):  # whose elements have the time
            assert value is not None
            place = None if user_key is None else 4
            of = StateColumns(state.name, 3, value, place, user_key, is_array=self._is_list)
            self._by_column = StateEncoder(number, of, state, allow_any_last_access)
        self._columns = columns
        self._places = places
        self._types = {
            role: column for role, column in zip(TYPED, typed_columns(state)) if role in places
        }
        self._times = {name: columns.index(name) for name in times_of(state)}
        is_row = isinstance(user_key, sql_rows.RowDataSerializer)
        # A null of such a type has two forms in Flink's rows, and RocksDB finds one by its bytes.
        self._long_fields = [
            (place, field)
            for place, field in enumerate(user_key.fields if is_row and user_key else ())
            if field.reserved
        ]

    def entries(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the entries of rows that are all of the state."""
        self._check_others(rows)
        try:
            return self._of_columns(rows)
        except UnwrittenError:
            return entry_batch(list(self._of_rows(rows)))

    def _of_columns(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the entries of whole columns; raises UnwrittenError."""
        if self._by_column is None:
            raise UnwrittenError
        of = {role: self._array(rows, place) for role, place in self._places.items()}
        key, value, user_key = of["key"], of["value"], of.get("user_key")
        # A row without an entry is refused here.
        has_none = (value if user_key is None else user_key).null_count > 0
        is_list = self._is_list and pa.types.is_list(value.type)  # elements may be undecoded
        if has_none or (is_list and pc.min(pc.list_value_length(value)).as_py() == 0):
            raise UnwrittenError
        last_access = pa.nulls(len(rows), pa.int64())
        if "last_access" in self._times:
            last_access = rows.column(self._times["last_access"])
        columns = [pa.array(self._key_column.key_groups(key)), key, last_access, value]
        columns += [] if user_key is None else [user_key]
        batch = pa.RecordBatch.from_arrays(columns, [str(n) for n in range(len(columns))])
        return self._by_column.entries(batch, self._key_column.encoded(key))

    def _of_rows(self, rows: pa.RecordBatch) -> Iterator[EncodedEntry]:
        of = {name: rows.column(place).to_pylist() for name, place in self._times.items()}
        for role, place in self._places.items():
            column = self._types[role]
            assert column is not None
            of[role] = values(self._called(role), self._array(rows, place), column)
        self._check_user_keys(of.get("user_key", ()))
        in_order = ("key", "value", "user_key", "last_access", "namespace", "timestamp")
        encode, number = self._encoder.encode, self._number
        for arguments in zip(*(of.get(name, repeat(None)) for name in in_order)):
            try:
                yield encode(number, *arguments)
            except KeyGroupsError as error:
                key = arguments[0]
                raise type(error)(f"state {self._name!r}, key {show(key)}: {error}") from None

    def _array(self, rows: Any, place: Place) -> Any:
        array = rows.column(place.column)
        return array if place.field is None else array.flatten()[place.field]

    def _check_others(self, rows: Any) -> None:
        """Refuse what is in columns, and in fields of other states, that the state has not."""
        for number, name in enumerate(self._columns[1:], 1):
            if number in self._times.values():
                continue
            array, place = rows.column(number), self._places.get(name)
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
                        f"{self._called(name)} must be null{but}, got "
                        f"{show(other.drop_null()[0].as_py())}"
                    )

    def _check_user_keys(self, user_keys: Sequence[Any]) -> None:
        for place, field in self._long_fields:
            for user_key in user_keys:
                if user_key is not None and user_key[place] is None:
                    raise InvalidValueError(
                        f"{self._called('user_key')} must have no null of {field}, which Flink "
                        f"writes in two ways, got {show(user_key)}"
                    )

    def _called(self, role: str) -> str:
        return f"{role} of state {self._name!r}"
