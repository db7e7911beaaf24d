"""A state in each of two savepoints, and how an entry of both differs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from keygroups._serializers.base import TRUNCATED, Serializer
from keygroups._serializers.data_input import Cursor
from keygroups.errors import SavepointError
from keygroups.key_group_range import compute_operator_index_for_key_group
from keygroups.savepoint._comparison.contents import (
    Contents,
    ContentsOf,
    contents_readers,
    exact,
    has_one_form,
    no_entry,
)
from keygroups.savepoint._state.entries import EncodedEntry, StateEntry
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.layouts import layout_class, layout_of
from keygroups.savepoint._state.operator_state import (
    OperatorStateElement,
    read_element,
)
from keygroups.savepoint._state.state_infos import KEY, VALUE, StateInfo
from keygroups.savepoint.comparing import (
    Change,
    EntryDifference,
    StateComparison,
)

_SIDES = ("this savepoint", "the other savepoint")
ONLY = ("only_here", "only_there")

EQUAL = "equal"
_KINDS = (EQUAL, "changed", "touched", *ONLY)  # in the order of StateComparison
_OF_KEYS = ("key_serializer", "namespace_serializer", "user_key_serializer")


class ComparedState(ABC):
    """A state in one savepoint: `key` is its name and "keyed", "managed" or "raw"."""

    key: tuple[str, str]
    kind: str

    @property
    @abstractmethod
    def shown(self) -> object:
        """The descriptor, or a text, that a report shows of a state in one savepoint only."""

    @abstractmethod
    def finds(self, other: Any) -> bool:
        """Return whether equal key bytes mean the same entry in the state of another savepoint."""

    @abstractmethod
    def changes(self, other: Any) -> tuple[Change, ...]:
        """Return the Changes of its types to those of the state in another savepoint."""

    @abstractmethod
    def contents(self, other: Any) -> tuple[ContentsOf, ContentsOf] | None:
        """Return a ContentsOf for each savepoint, None where values are compared as bytes."""

    @abstractmethod
    def decoded(self, entry: EncodedEntry) -> StateEntry | OperatorStateElement:
        """Return an entry with its values decoded."""


class ComparedKeyedState(ComparedState):
    """A keyed state in one savepoint."""

    def __init__(self, number: int, bounds: tuple[int, int], state: StateDescriptor) -> None:
        self.key = (state.name, "keyed")
        self.kind = state.kind
        self._state = state
        self._number = number
        self._bounds = bounds  # the max parallelism and the parallelism
        self._read = layout_of(state).decoding(0).framed

    @property
    def shown(self) -> StateDescriptor:
        """The descriptor."""
        return self._state

    def finds(self, other: ComparedKeyedState) -> bool:
        """Return whether both have the same kind of layout and the same serializers of keys."""
        state, others = self._state, other._state
        is_alike = layout_class(state) is layout_class(others)
        return is_alike and not changes_of(state, others, *_OF_KEYS)

    def changes(self, other: ComparedKeyedState) -> tuple[Change, ...]:
        """Return the Changes of the descriptor: kind, serializers and time to live."""
        names = ("kind", *_OF_KEYS, "value_serializer", "has_ttl")
        return changes_of(self._state, other._state, *names)

    def contents(self, other: ComparedKeyedState) -> tuple[ContentsOf, ContentsOf] | None:
        """Return a ContentsOf for each savepoint, None for timers."""
        return contents_readers(self._state, other._state)

    def decoded(self, entry: EncodedEntry) -> StateEntry:
        """Return an entry with key and value decoded."""
        with errors_of(self._number):
            try:
                decoded = self._read(entry.key_group, entry.key, entry.value)
            except (*TRUNCATED, ValueError) as error:
                raise no_entry(self._state, entry, error) from None
        subtask = compute_operator_index_for_key_group(*self._bounds, entry.key_group)
        return decoded._replace(subtask=subtask)


class OperatorState(ComparedState):
    """A list, union or broadcast state in one savepoint, or a partition of raw state."""

    def __init__(
        self, number: int, name: str, is_raw: bool, mode: str, info: StateInfo | None
    ) -> None:
        self.key = (name, "raw" if is_raw else "managed")
        self.kind = mode
        self.serializers: Mapping[str, Serializer] = {} if info is None else info.serializers
        self._number = number

    @property
    def shown(self) -> str:
        """The mode and the serializers."""
        return ", ".join([self.kind, *map(str, self.serializers.values())])

    def finds(self, other: OperatorState) -> bool:
        """Return whether both have the same serializers, and broadcast is not mixed with lists."""
        of_both = (self.kind, other.kind)
        same = self.kind == other.kind or "BROADCAST" not in of_both
        return same and self.serializers == other.serializers

    def changes(self, other: OperatorState) -> tuple[Change, ...]:
        """Return one Change of the whole state if mode or serializers differ."""
        if self.kind == other.kind and self.serializers == other.serializers:
            return ()
        return (Change("state", self.shown, other.shown),)

    def contents(self, other: OperatorState) -> tuple[ContentsOf, ContentsOf] | None:
        """Return a ContentsOf for each savepoint where values of a broadcast state take decoding.

        Elements of a list are equal if their bytes are.
        """
        value = self.serializers.get(VALUE)
        if self.kind != "BROADCAST" or value is None or has_one_form(value):
            return None
        return self._contents, other._contents

    def _contents(self, entry: EncodedEntry) -> Contents:
        return None, exact(self.decoded(entry).value)

    def decoded(self, entry: EncodedEntry) -> OperatorStateElement:
        """Return an element with key and value decoded."""
        subtask, _, key, value = entry
        name, mode = self.key[0], self.kind
        with errors_of(self._number):
            if mode == "BROADCAST":
                of_key, of_value = self.serializers[KEY], self.serializers[VALUE]
                if of_key.read is None or of_value.read is None:  # Key and value are not split.
                    return OperatorStateElement(name, mode, subtask, None, value)
                return OperatorStateElement(
                    name,
                    mode,
                    subtask,
                    read_element(of_key, Cursor(key, name)),
                    read_element(of_value, Cursor(value, name)),
                )
            element = read_element(self.serializers.get(VALUE), Cursor(key, name))
        return OperatorStateElement(name, mode, subtask, None, element)


class StatePair:
    """A state of two savepoints, one of which may not have it."""

    def __init__(self, own: ComparedState | None, other: ComparedState | None) -> None:
        self._sides = (own, other)
        known = own or other
        assert known is not None
        self.name, self._kind = known.key[0], known.kind
        self.is_found = False
        self._changes: tuple[Change, ...]
        self._contents: tuple[ContentsOf, ContentsOf] | None = None
        if own is None or other is None:
            self._changes = (Change("state", *(side and side.shown for side in self._sides)),)
        else:
            self._changes = own.changes(other)
            self.is_found = own.finds(other)
            if self.is_found:
                self._contents = own.contents(other)

    def side(self, number: int) -> ComparedState | None:
        """Return the state of a savepoint."""
        return self._sides[number]

    def compared(self, own: EncodedEntry, other: EncodedEntry) -> str:
        """Return "equal", "changed", or "touched" where only times of last access differ."""
        if own.value == other.value and not self._changes:
            return EQUAL
        if self._contents is None:
            return "changed" if own.value != other.value else EQUAL
        sides = zip(self._contents, (own, other))
        contents = []
        for number, (of_side, entry) in enumerate(sides):
            with errors_of(number):
                contents.append(of_side(entry))
        (times, value), (other_times, other_value) = contents
        if value != other_value:
            return "changed"
        return EQUAL if times == other_times else "touched"

    def comparison(
        self, counts: Mapping[str, int], examples: Sequence[EntryDifference]
    ) -> StateComparison:
        """Return the StateComparison of these counts and examples."""
        equal, changed, touched, only_here, only_there = (counts[kind] for kind in _KINDS)
        return StateComparison(
            self.name,
            self._kind,
            self._changes,
            equal,
            changed,
            touched,
            only_here,
            only_there,
            tuple(examples),
        )

    def difference(
        self, operator: str, kind: str, own: EncodedEntry | None, other: EncodedEntry | None
    ) -> EntryDifference:
        """Return the EntryDifference of an entry, its values decoded."""
        first, second = (
            None if entry is None or state is None else state.decoded(entry)
            for state, entry in zip(self._sides, (own, other))
        )
        return EntryDifference(operator, self.name, kind, first, second)


def changes_of(own: Any, other: Any, *names: str) -> tuple[Change, ...]:
    """Return a Change for each attribute in which two objects differ."""
    both = ((name, getattr(own, name), getattr(other, name)) for name in names)
    return tuple(Change(*change) for change in both if change[1] != change[2])


@contextmanager
def errors_of(number: int) -> Iterator[None]:
    """Begin SavepointErrors with the savepoint that they are about."""
    try:
        yield
    except SavepointError as error:
        raise SavepointError(f"{_SIDES[number]}: {error}") from None
