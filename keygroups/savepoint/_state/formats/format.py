"""The base of the formats of keyed state, which read the state behind a handle."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from keygroups._checks import show
from keygroups._serializers.base import UnknownSerializer, UnreadableError
from keygroups.errors import SavepointError
from keygroups.savepoint._files.files import Planned
from keygroups.savepoint._metadata.key_group_ranges import KeyGroupRanges
from keygroups.savepoint._state.entries import EncodedEntry, Entry, EntryReader, StateEntry
from keygroups.savepoint._state.header import KeyedHeader, StateDescriptor
from keygroups.savepoint._state.layouts import Layout

if TYPE_CHECKING:
    from keygroups.savepoint._state.entry_columns import EntryColumns


class NotFramedError(SavepointError):
    """Values that only the job can read, in a format that does not say where they end."""


def unframed(operator: str, state: StateDescriptor, error: UnreadableError, readable: str) -> str:
    """Return the message for a value that only the job can read, whose end nothing tells."""
    serializers = (
        state.key_serializer,
        state.namespace_serializer,
        state.user_key_serializer,
        state.value_serializer,
    )
    # One that is part of another makes all of that one unknown, by the class of the part.
    of_unknown = [part.java_class for part in serializers if isinstance(part, UnknownSerializer)]
    unknown = ", ".join(f"{show(name)}: ..." for name in dict.fromkeys(of_unknown) if name)
    way = " that read it, as KryoFields do what Kryo wrote"
    if unknown:
        way = f"={{{unknown}}} to say how it is read"
    return (
        f"operator {show(operator)}: {state} takes the job's own classes to read ({error}), and "
        "this format does not say where such a value ends: take a savepoint in canonical format, "
        f"or pass serializers{way}; {readable}"
    )


class Selection(NamedTuple):
    """The entries that are wanted: those of some key groups and states, of all states if None.

    `subtask` wrote them, each behind the `prefix_bytes` of its key group. `keys` are the ones that
    are wanted, as they start in RocksDB; entries of others may come too. `operator` is its label,
    for errors. `has_values` is whether `columns` has to have values.
    """

    subtask: int
    prefix_bytes: int
    key_groups: KeyGroupRanges
    states: frozenset[str] | None
    keys: frozenset[bytes] | None = None
    operator: str = ""
    has_values: bool = True

    def has(self, state: str) -> bool:
        """Tell whether the entries of a state are wanted."""
        return self.states is None or state in self.states

    def numbers(self, states: Sequence[StateDescriptor]) -> frozenset[int]:
        """Return the places of those states whose entries are wanted."""
        return frozenset(number for number, state in enumerate(states) if self.has(state.name))


class SizeRun(NamedTuple):
    """The sizes in bytes of key groups that follow one another, from the first on."""

    start_key_group: int
    sizes: Sequence[int]


class Format(ABC):
    """The keyed state behind a handle. What reads entries yields by key group.

    What will be read of which streams, in that order, is planned: of `headers` and `states`, of
    `entries`, of `sizes`. Another order gives the same, by more requests.
    """

    has_offsets = False
    """Whether `_metadata` tells where each key group is."""
    has_framed_columns = False
    """Whether `framed_columns` takes less time than `encoded_entries`."""

    @property
    @abstractmethod
    def bytes(self) -> int:
        """The size of the state in bytes, as `_metadata` says it."""

    @abstractmethod
    def headers(self) -> Sequence[KeyedHeader]:
        """Read the header of the state behind each handle."""

    @abstractmethod
    def header_plan(self) -> Iterator[Planned]:
        """Plan to read the headers."""

    def states(self) -> Sequence[StateDescriptor]:
        """Read which states there are."""
        return [state for header in self.headers() for state in header.states]

    @abstractmethod
    def plan(self, selection: Selection) -> Iterator[Planned]:
        """Plan to read the entries that are wanted."""

    def entries(self, selection: Selection) -> Iterator[StateEntry]:
        """Return the entries that are wanted, one key group after the other."""
        return self._entries(selection, lambda layout: layout.decoding(selection.subtask))

    def encoded_entries(
        self, selection: Selection, numbers: Mapping[str, int]
    ) -> Iterator[EncodedEntry]:
        """Return the same as bytes, each with the number of its state, which are by name."""
        # A state without a number is not wanted: its entries are read over at most.
        return self._entries(
            selection, lambda layout: layout.framing(numbers.get(layout.state.name, -1))
        )

    def columns(self, selection: Selection) -> Iterator[EntryColumns]:
        """Yield the entries that are wanted as columns, those of a state in order."""
        from keygroups.savepoint._state.entry_columns import chunks

        return chunks({state.name: state for state in self.states()}, self.entries(selection))

    def framed_columns(self, selection: Selection) -> Iterator[EntryColumns]:
        """Yield the entries that are wanted as a FramedDecoder makes columns of them."""
        from keygroups.savepoint._state.framed_columns import framed_chunks

        states = self.states()
        numbers = {state.name: number for number, state in enumerate(states)}
        return framed_chunks(states, selection.subtask, self.encoded_entries(selection, numbers))

    @abstractmethod
    def _entries(
        self, selection: Selection, reader_of: Callable[[Layout], EntryReader[Entry]]
    ) -> Iterator[Entry]:
        """Return the entries as the reader of their layout makes them."""

    @abstractmethod
    def weights(self) -> Mapping[int, int]:
        """Return about how many bytes each key group has, as `_metadata` says it."""

    def size_plan(self, selection: Selection) -> Iterator[Planned]:
        """Plan to read how many bytes each key group has."""
        return self.plan(selection)

    def sizes(self, selection: Selection) -> Iterator[SizeRun]:
        """Yield the sizes of the key groups, each at most once."""
        sizes: Counter[int] = Counter()
        for entry in self.entries(selection):
            sizes[entry.key_group] += entry.bytes
        return (SizeRun(key_group, [size]) for key_group, size in sizes.items())
