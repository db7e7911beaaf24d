"""From rows as `read_keyed_state` gives them back to the bytes of entries, type for type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, repeat
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from keygroups._checks import show
from keygroups._serializers import collections
from keygroups._serializers.base import check_writable
from keygroups._serializers.sql import rows as sql_rows
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    UnsupportedKeyTypeError,
)
from keygroups.savepoint import Serializer, StateDescriptor
from keygroups.savepoint._state.entry_encoder import EncodedEntry, EntryEncoder
from keygroups.spark._savepoint.arrow_values import values
from keygroups.spark._savepoint.batches import TYPED, layout_of, typed_columns
from keygroups.spark._savepoint.column_types import is_written
from keygroups.spark._savepoint.entry_files import entry_batch
from keygroups.spark._savepoint.state_columns import named_column, sent
from keygroups.state_keys import VOID_NAMESPACE

_TIMES = ("last_access", "timestamp")
_NEEDED = "state"


class _Undecoded(Serializer):
    """Writes bytes that a serializer of the job's own has written, as they are."""

    name, takes_null = "UNDECODED", True

    @staticmethod
    def write(value: Any) -> bytes:
        if value is not None and not isinstance(value, bytes):
            raise InvalidTypeError(f"a value must be the bytes that were read, got {show(value)}")
        return value or b""


class Place(NamedTuple):
    """Where a state's values are: a column, and its field if that is a struct of states."""

    column: int
    field: int | None


@dataclass(frozen=True)
class EntryRows:
    """A DataFrame of the columns that are sent, and where each state has its values in them.

    `places` are by the names of states, and of `TYPED`; a state has none for what is always
    null, which then is to be null in the columns that are there.
    """

    df: DataFrame
    columns: tuple[str, ...]
    places: Mapping[str, Mapping[str, Place]]


def check_states_of_rows(label: str, states: Sequence[StateDescriptor]) -> None:
    """Refuse states that rows do not hold unchanged, each by its name.

    Raises UnsupportedKeyTypeError.
    """
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
    if not collections.is_in_order(serializer):
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


def entry_rows(df: DataFrame, states: Sequence[StateDescriptor]) -> EntryRows:
    """Return the columns of a DataFrame that some states are written from.

    Raises InvalidTypeError or InvalidValueError where a column is missing that a state needs, or
    is not of the type that `read_keyed_state` gives it.
    """
    layout = layout_of(states)
    needed: dict[str, T.DataType] = {_NEEDED: T.StringType()}
    for state in states:
        needed.update(dict.fromkeys(_times_of(state), T.LongType()))
    there = {name.lower() for name in df.columns}
    columns: list[str] = []
    places: dict[str, dict[str, Place]] = {state.name: {} for state in states}
    sent_columns = []
    for role in (_NEEDED, *TYPED, *_TIMES):
        types = layout.types[TYPED.index(role)] if role in TYPED else {}
        if role not in there:
            if types or role in needed:
                raise InvalidValueError(
                    f"df must have the column {role}, as read_keyed_state gives it, got "
                    f"{show(df.columns)}"
                )
            continue
        column = named_column(df, role, role)
        spark_type = column.spark_type
        assert spark_type is not None  # of a column in a DataFrame
        if role in needed and not _is_same(spark_type, needed[role]):
            raise _unfit(role, needed[role], spark_type)
        for name, taken in types.items():
            field = _field_of(role, name, taken, spark_type)
            places[name][role] = Place(len(columns), field)
        columns.append(role)
        sent_columns.append(sent(column).alias(role))
    return EntryRows(df.select(*sent_columns), tuple(columns), places)


def _times_of(state: StateDescriptor) -> list[str]:
    """Return the times that each row of a state has; elements of a LIST have theirs in them."""
    has = (state.has_ttl and state.kind != "LIST", state.value_serializer is None)
    return [*compress(_TIMES, has)]


def _field_of(role: str, state: str, taken: T.DataType, spark_type: T.DataType) -> int | None:
    """Return the place of a state's field in a struct of states, None where there is no such."""
    if _is_same(spark_type, taken):
        return None
    names = spark_type.names if isinstance(spark_type, T.StructType) else []
    if names.count(state) != 1:
        raise _unfit(role, taken, spark_type, f" for state {state!r}")
    place = names.index(state)
    assert isinstance(spark_type, T.StructType)
    if not _is_same(spark_type[place].dataType, taken):
        raise _unfit(f"{role}.{state}", taken, spark_type[place].dataType)
    return place


def _unfit(
    role: str, taken: T.DataType, spark_type: T.DataType, why: str = ""
) -> InvalidTypeError:
    return InvalidTypeError(
        f"{role} must be {taken.simpleString()}{why}, as read_keyed_state gives it, got "
        f"{spark_type.simpleString()}: cast it"
    )


def _is_same(spark_type: T.DataType, taken: T.DataType) -> bool:
    """Return whether a type is another, names and all, whatever may be null in it."""
    if isinstance(taken, T.StringType):
        return isinstance(spark_type, (T.StringType, T.CharType, T.VarcharType))
    if isinstance(spark_type, T.StructType) and isinstance(taken, T.StructType):
        return spark_type.names == taken.names and all(
            _is_same(field.dataType, of.dataType) for field, of in zip(spark_type, taken)
        )
    if isinstance(spark_type, T.ArrayType) and isinstance(taken, T.ArrayType):
        return _is_same(spark_type.elementType, taken.elementType)
    if isinstance(spark_type, T.MapType) and isinstance(taken, T.MapType):
        return _is_same(spark_type.keyType, taken.keyType) and _is_same(
            spark_type.valueType, taken.valueType
        )
    return spark_type == taken


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
        import pyarrow.compute as pc

        encoder = EntryEncoder(
            [*map(_written_as, self.states)], self.max_parallelism, self.allow_any_last_access
        )
        readers = {
            state.name: _StateReader(number, state, self.columns, self.places[state.name])
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
                yield entry_batch(list(readers[name].entries(encoder, rows)))


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
    ) -> None:
        self._number = number
        self._name = state.name
        self._columns = columns
        self._places = places
        self._types = {
            role: column for role, column in zip(TYPED, typed_columns(state)) if role in places
        }
        self._times = {name: columns.index(name) for name in _times_of(state)}
        user_key = state.user_key_serializer
        is_row = isinstance(user_key, sql_rows.RowDataSerializer)
        # A null of such a type has two forms in Flink's rows, and RocksDB finds one by its bytes.
        self._long_fields = [
            (place, field)
            for place, field in enumerate(user_key.fields if is_row and user_key else ())
            if field.reserved
        ]

    def entries(self, encoder: EntryEncoder, rows: Any) -> Iterator[EncodedEntry]:
        """Yield the entries of rows that are all of the state."""
        self._check_others(rows)
        of = {name: rows.column(place).to_pylist() for name, place in self._times.items()}
        for role, place in self._places.items():
            column = self._types[role]
            assert column is not None
            of[role] = values(self._called(role), self._array(rows, place), column)
        self._check_user_keys(of.get("user_key", ()))
        in_order = ("key", "value", "user_key", "last_access", "namespace", "timestamp")
        encode, number = encoder.encode, self._number
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
