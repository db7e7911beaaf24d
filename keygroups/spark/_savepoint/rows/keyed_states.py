"""The classes that say which columns of a DataFrame become which states of a savepoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from pyspark.sql import DataFrame

from keygroups._checks import check_class, check_str, show
from keygroups.errors import InvalidTypeError
from keygroups.savepoint import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    Serializer,
    ValueStateDescriptor,
)
from keygroups.savepoint._state.writing.new_states import NewState
from keygroups.spark._columns.arguments import (
    check_column_or_name,
    check_df,
    check_key_type,
    map_key,
)
from keygroups.spark.functions import ColumnOrName, Key
from keygroups.types import KeyType


class State:
    """The columns that a state is written from, and their types: one of the classes below."""

    descriptor: ClassVar[Callable[..., NewState]]  # arguments: a name, then the types in order
    _may_be_none: ClassVar[tuple[str, ...]] = ()  # columns that may be None
    value: ColumnOrName
    value_type: KeyType | Serializer

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not name.endswith("_type"):
                if value is not None or name not in self._may_be_none:
                    object.__setattr__(self, name, check_column_or_name(name, value))
            elif not isinstance(value, (KeyType, Serializer)):
                raise InvalidTypeError(
                    f"{name} must be a key type such as LONG or a Serializer, got {show(value)}"
                )

    def described(self, name: str, has_ttl: bool) -> NewState:
        """Return the descriptor of the state, under a name."""
        types = [value for argument, value in vars(self).items() if argument.endswith("_type")]
        return self.descriptor(name, *types, has_ttl=has_ttl)


@dataclass(frozen=True, eq=False)
class _OneColumn(State):
    value: ColumnOrName
    value_type: KeyType | Serializer


class ValueState(_OneColumn):
    """A ValueState: the column of its values, of which a null is no entry, and their type.

    `value_type` is a key type, or the Serializer of any other type: its column is the one that
    `read_keyed_state` gives, with the same names of fields, but that f0, f1 and so on may be
    called otherwise. That of a key type is the same, but for BIG_DEC, which is a decimal, and for
    rows, which are of kind +I and have no `row_kind`.

    >>> from keygroups.types import LONG
    >>> ValueState("n", LONG)
    ValueState(value='n', value_type=LONG)
    """

    descriptor = ValueStateDescriptor


class ReducingState(_OneColumn):
    """A ReducingState: like a ValueState, of what was reduced so far.

    >>> from keygroups.types import DOUBLE
    >>> ReducingState("total", DOUBLE)
    ReducingState(value='total', value_type=DOUBLE)
    """

    descriptor = ReducingStateDescriptor


class ListState(_OneColumn):
    """A ListState: the column of its lists, or of their elements, and the type of an element.

    An array is a list in its order; an empty or a null one is no entry. Of a column of
    `value_type` itself each row that is not null is an element, and the list of a key has its
    elements in the order of their bytes in the savepoint, so that it is the same each time; with
    a time to live in that of the last access before.

    >>> from keygroups.types import STRING
    >>> ListState("tag", STRING)
    ListState(value='tag', value_type=STRING)
    """

    descriptor = ListStateDescriptor


@dataclass(frozen=True, eq=False)
class MapState(State):
    """A MapState: the columns of the keys in the maps and of their values, and their types.

    Each row is one entry of the map of its key, but where user key and value are both null. Where
    `user_key` is None, `value` is a column of maps, and each pair of them an entry; an empty and
    a null one have none. Either way a key has the entries of all of its rows, and a user key that
    it has twice fails the query, as does a null one with a value. A null value is one where Flink
    writes such: in a column of STRING.

    >>> from keygroups.types import LONG, STRING
    >>> MapState("city", "n", STRING, LONG)
    MapState(user_key='city', value='n', user_key_type=STRING, value_type=LONG)
    >>> MapState(None, "visits", STRING, LONG)
    MapState(user_key=None, value='visits', user_key_type=STRING, value_type=LONG)
    """

    descriptor = MapStateDescriptor
    _may_be_none = ("user_key",)
    user_key: ColumnOrName | None
    value: ColumnOrName
    user_key_type: KeyType | Serializer
    value_type: KeyType | Serializer


@dataclass(frozen=True, eq=False)
class KeyedState:
    """The keyed state of one operator: a DataFrame, the key's columns, the states by name.

    `df` None is the DataFrame that `write_savepoint` is given itself. `key` is a column, its name,
    or a list of several for a TUPLE or a ROW, as for `with_routing`, and `key_type` its key type.
    A row gives an entry to each state whose column is not null in it, so rows of several kinds may
    be in one DataFrame, united by `unionByName(allowMissingColumns=True)`.

    `ttl` is the column of the time of last access of all these states: a bigint of epoch
    milliseconds, or a timestamp. The job's states have a time to live then, whatever it is;
    without it, they have none. `allow_any_last_access` is that of `SavepointWriter.add_operator`:
    a time before September 2001 or more than a day from now fails the query otherwise.

    >>> from keygroups.types import LONG, STRING
    >>> counts = spark.createDataFrame([("ann", 7)], "user string, n bigint")
    >>> KeyedState(counts, "user", STRING, {"count": ValueState("n", LONG)})
    KeyedState(df=DataFrame[user: string, n: bigint], key='user', key_type=STRING, \
states={'count': ValueState(value='n', value_type=LONG)}, ttl=None, allow_any_last_access=False)
    """

    df: DataFrame | None
    key: Key
    key_type: KeyType
    states: Mapping[str, State]
    ttl: ColumnOrName | None = None
    allow_any_last_access: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if self.df is not None:
            check_df(self.df)
        check_key_type(self.key_type)
        if not isinstance(self.states, Mapping):
            raise InvalidTypeError(f"states must be by name, got {show(self.states)}")
        states = {
            check_str("name of a state", name): check_class(
                "states", state, State, "such as ValueState, by name"
            )
            for name, state in self.states.items()
        }
        check_class("allow_any_last_access", self.allow_any_last_access, bool, "a bool")
        checked = {
            "key": map_key(self.key, partial(check_column_or_name, "key")),
            "states": states,
            "ttl": None if self.ttl is None else check_column_or_name("ttl", self.ttl),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
