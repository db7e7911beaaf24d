"""Compares an operator of two savepoints, entry by entry.

Keyed state is read key group by key group, both savepoints at once, and the entries of a key
group are put in the order of their bytes: Flink finds an entry by those of its key, namespace and
user key, in every format, so that the same bytes are the same entry. Under different max
parallelisms key groups have nothing in common, and all entries of an operator are sorted. Entries
are sorted on disk where they are too many for memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, Protocol

from keygroups._checks import show
from keygroups._serializers.data_input import ReadingContext
from keygroups.errors import InvalidValueError, SavepointError
from keygroups.progress import Meter, ProgressCallback, measured
from keygroups.savepoint._comparison.states import (
    EQUAL,
    ONLY,
    ComparedKeyedState,
    ComparedState,
    OperatorState,
    StatePair,
    changes_of,
    errors_of,
)
from keygroups.savepoint._files.files import Files
from keygroups.savepoint._metadata.handles import OperatorStateHandle
from keygroups.savepoint._sinks.committables import (
    HINT_STATE,
    SINK_STATES,
    Committable,
    SinkState,
    UnknownCommittable,
)
from keygroups.savepoint._sources.connector_layouts import PULSAR
from keygroups.savepoint._sources.consumers import KinesisSplit
from keygroups.savepoint._sources.file_splits import FileSplit
from keygroups.savepoint._sources.kafka import KafkaSplit
from keygroups.savepoint._sources.source_splits import (
    READER_STATE,
    SourceSplit,
    SourceSplits,
    UnknownSplit,
    has_same_content,
)
from keygroups.savepoint._sources.split_layouts import ConnectorSplit
from keygroups.savepoint._state.entries import EncodedEntry
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.operator_state import (
    EncodedOperatorState,
    read_encoded_operator_state,
)
from keygroups.savepoint._state.writing.spill import SortKey, sorted_entries
from keygroups.savepoint._tasks.read import ReadTask, ahead
from keygroups.savepoint.comparing import (
    Change,
    CommittableDifference,
    EntryDifference,
    OperatorComparison,
    SplitDifference,
)

_EXAMPLES = 5  # entries of a state in a report

_OF_OPERATORS = ("parallelism", "max_parallelism", "is_fully_finished")

_key_group = attrgetter("key_group")
_in_key_group = itemgetter(0, 1, 2)  # an EncodedEntry by key group, state and key
_in_operator = itemgetter(1, 2)
_with_value = itemgetter(1, 2, 3)

_Placed = Iterator["tuple[Any, EncodedEntry]"]
"""Pairs (place, entry) with ascending places; one place in two savepoints is one entry."""


class ComparedOperator(Protocol):
    """The part of an Operator that a comparison uses."""

    @property
    def operator_id(self) -> str:
        """The id in hex."""

    @property
    def uid(self) -> str | None:
        """The uid, if it is known."""

    @property
    def name(self) -> str | None:
        """The name, if it is known."""

    @property
    def parallelism(self) -> int:
        """The parallelism it was written under."""

    @property
    def max_parallelism(self) -> int:
        """The max parallelism it was written under."""

    @property
    def is_fully_finished(self) -> bool:
        """Whether all subtasks are finished."""

    @property
    def _files(self) -> Files:
        """The Files of the savepoint."""

    @property
    def _context(self) -> ReadingContext:
        """The context that headers are read in."""

    @property
    def _progress(self) -> ProgressCallback | None:
        """The callback that hears how far the work has come, None without one."""

    @property
    def _has_channel_state(self) -> bool:
        """Whether there is in-flight data."""

    def tasks(self, states: Iterable[str] | None = None) -> list[ReadTask]:
        """Return the tasks that read the entries of keyed state, of `states` alone unless None."""

    def _operator_state_handles(self) -> list[tuple[int, OperatorStateHandle, bool]]:
        """Return the handles of operator state, with their subtasks, and whether they are raw."""

    def source_splits(self) -> SourceSplits | None:
        """Return the splits of a source."""

    def sink_state(self) -> SinkState | None:
        """Return the state of a sink."""

    def coordinator_state(self) -> bytes | None:
        """Return the state of the operator's coordinator."""


class OperatorPair:
    """An operator of two savepoints, one of which may not have it.

    Raises SavepointError, which says in which savepoint, where a header is damaged.
    """

    def __init__(self, own: ComparedOperator | None, other: ComparedOperator | None) -> None:
        self._own, self._other = own, other
        self._has_coordinator = True
        sides = [*enumerate((own, other))]
        self._keyed = _pairs(*(_keyed_states(*side) for side in sides))
        self._others = _pairs(*(operator_states(*side) for side in sides))
        known = [side for _, side in sides if side is not None]
        self.operator_id = known[0].operator_id
        # Flink 1.x stores neither, and the caller may have passed them to one side alone.
        names = [*(side.uid for side in known), *(side.name for side in known)]
        self.label = next(filter(None, names), self.operator_id)
        self._progress = next(
            (side._progress for side in known if side._progress is not None), None
        )

    @property
    def state_names(self) -> set[str]:
        """The names of the states that are compared."""
        return {pair.name for pair in (*self._keyed, *self._others)}

    def keep_only(self, states: Container[str]) -> None:
        """Compare these keyed and operator states alone, and not the coordinator's."""
        self._keyed, self._others = (
            [pair for pair in pairs if pair.name in states]
            for pairs in (self._keyed, self._others)
        )
        self._has_coordinator = False

    def differences(self) -> Iterator[EntryDifference]:
        """Yield every entry that is not the same."""
        for pair, kind, own, other in self._found():
            if kind != EQUAL:
                yield pair.difference(self.label, kind, own, other)

    def comparison(self) -> OperatorComparison:
        """Return counts of equal and differing entries, examples, and all other differences."""
        pairs = (*self._keyed, *self._others)
        counts: dict[StatePair, Counter[str]] = {pair: Counter() for pair in pairs}
        examples: dict[StatePair, list[EntryDifference]] = {pair: [] for pair in pairs}
        for pair, kind, own, other in self._found():
            counts[pair][kind] += 1
            if kind != EQUAL and len(examples[pair]) < _EXAMPLES:
                examples[pair].append(pair.difference(self.label, kind, own, other))
        keyed, others = (
            tuple(pair.comparison(counts[pair], examples[pair]) for pair in of_kind)
            for of_kind in (self._keyed, self._others)
        )
        first, second = self._own, self._other
        only: str | None = None
        changes: tuple[Change, ...] = ()
        if first is None or second is None:
            only = ONLY[first is None]
        else:
            changes = changes_of(first, second, *_OF_OPERATORS)
        sources = self._sources()
        if self._has_coordinator:
            changes += tuple(self._enumerator_changes(sources))
        return OperatorComparison(
            self.label,
            self.operator_id,
            only,
            changes,
            keyed,
            others,
            tuple(self._splits(sources)),
            self._coordinator() if self._has_coordinator else None,
            any(side._has_channel_state for side in (first, second) if side is not None),
            tuple(self._committables()),
        )

    def _found(self) -> Iterator[_Found]:
        own, other = self._own, self._other
        has_other_key_groups = (
            own is not None and other is not None and own.max_parallelism != other.max_parallelism
        )
        place = _in_operator if has_other_key_groups else _in_key_group
        with measured(self._progress, f"compare {self.label}", self._bytes_to_read) as meter:
            yield from _compared(
                self._keyed,
                *(
                    _keyed_entries(number, side, _numbers(self._keyed, number), place, meter)
                    for number, side in enumerate((own, other))
                ),
            )
        yield from _compared(
            self._others,
            *(
                _elements(number, side, _numbers(self._others, number))
                for number, side in enumerate((own, other))
            ),
        )

    def _sources(self) -> list[SourceSplits]:
        """Return the source in both savepoints, nothing where one is none that can be read."""
        own, other = self._own, self._other
        if own is None or other is None or READER_STATE.name not in self.state_names:
            return []
        try:
            sources = [operator.source_splits() for operator in (own, other)]
        except (SavepointError, InvalidValueError):
            return []
        return [source or SourceSplits((), None, None) for source in sources]

    def _splits(self, sources: Sequence[SourceSplits]) -> Iterator[SplitDifference]:
        """Yield the splits that are not the same, of a source whose splits are known."""
        sides = [_by_id(source.splits) for source in sources]
        for split_id in dict.fromkeys(chain(*sides)):
            first, second = (side.get(split_id) for side in sides)
            if first is None or second is None:
                yield SplitDifference(ONLY[first is None], first, second)
            elif first._replace(subtask=None) != second._replace(subtask=None):
                yield SplitDifference("changed", first, second)

    def _committables(self) -> Iterator[CommittableDifference]:
        """Yield the committables that are not the same, of a sink that can be read."""
        own, other = self._own, self._other
        if own is None or other is None:
            return
        if self.state_names.isdisjoint((*SINK_STATES, HINT_STATE)):
            return
        try:
            sinks = [operator.sink_state() for operator in (own, other)]
        except (SavepointError, InvalidValueError):
            return
        known = [_by_name(sink.committables if sink is not None else ()) for sink in sinks]
        for name in dict.fromkeys(chain(*known)):
            first, second = (side.get(name) for side in known)
            if first is None or second is None:
                yield CommittableDifference(ONLY[first is None], first, second)
            elif first._replace(subtask=0) != second._replace(subtask=0):
                yield CommittableDifference("changed", first, second)

    def _enumerator_changes(self, sources: Sequence[SourceSplits]) -> Iterator[Change]:
        """Yield the fields of the enumerators that are not the same, where both are known."""
        own, other = ([source.enumerator_fields for source in sources] + [None, None])[:2]
        if own is not None and other is not None:
            for field in dict.fromkeys((*own, *other)):
                if own.get(field) != other.get(field):
                    yield Change(f"enumerator {field}", own.get(field), other.get(field))

    def _bytes_to_read(self) -> int:
        """Return the approximate bytes of keyed state that a comparison reads of both sides."""
        return sum(
            task.bytes_to_read
            for number, side in enumerate((self._own, self._other))
            if side is not None
            for task in side.tasks(name for name, _ in _numbers(self._keyed, number))
        )

    def _coordinator(self) -> str | None:
        states = []
        for number, side in enumerate((self._own, self._other)):
            with errors_of(number):
                states.append(None if side is None else side.coordinator_state())
        own, other = states
        if own is None or other is None:
            return None if own == other else ONLY[own is None]
        return EQUAL if has_same_content(own, other) else "changed"


# --- states -----------------------------------------------------------------------------


class _Found(NamedTuple):
    """An entry that is in one savepoint or in both, and how they differ."""

    pair: StatePair
    kind: str
    own: EncodedEntry | None
    other: EncodedEntry | None


def _keyed_states(number: int, operator: ComparedOperator | None) -> list[ComparedKeyedState]:
    states: dict[str, StateDescriptor] = {}
    if operator is not None:
        with errors_of(number):
            for task in ahead(operator.tasks(), ReadTask.header_plan):
                for state in task.format.states():
                    if states.setdefault(state.name, state) != state:
                        raise SavepointError(
                            f"operator {operator.operator_id} has other serializers of {state} in "
                            f"subtask {task.subtask} than in another"
                        )
        bounds = (operator.max_parallelism, operator.parallelism)
        return [ComparedKeyedState(number, bounds, state) for state in states.values()]
    return []


def operator_states(number: int, operator: ComparedOperator | None) -> list[OperatorState]:
    """Return the operator states of a savepoint; errors name it by its number, 0 or 1."""
    states: dict[tuple[str, str], OperatorState] = {}
    if operator is not None:
        with errors_of(number):
            for subtask, is_raw, state in _read_operator_states(operator):
                read = OperatorState(number, state.state, is_raw, state.mode, state.info)
                known = states.setdefault(read.key, read)
                if known.changes(read):
                    raise SavepointError(
                        f"operator {operator.operator_id} has another operator state "
                        f"{show(state.state)} in subtask {subtask} than in another"
                    )
    return [*states.values()]


def _pairs(own: Iterable[ComparedState], other: Iterable[ComparedState]) -> list[StatePair]:
    """Return the states of both savepoints, those that only the other has last."""
    first, second = ({state.key: state for state in side} for side in (own, other))
    return [StatePair(first.get(key), second.get(key)) for key in {**first, **second}]


# --- entries ----------------------------------------------------------------------------


def _numbers(pairs: Sequence[StatePair], side: int) -> dict[tuple[str, str], int]:
    """Return the numbers of the states of a savepoint, by their keys.

    The state of pair 3 is number 6 on both sides, so that its entries meet. Where keys have other
    serializers, and equal bytes mean nothing, it is 7 on side 1. Half of a number is the pair's.
    """
    return {
        state.key: 2 * place + side * (not pair.is_found)
        for place, pair in enumerate(pairs)
        if (state := pair.side(side)) is not None
    }


def _keyed_entries(
    number: int,
    operator: ComparedOperator | None,
    numbers: Mapping[tuple[str, str], int],
    place: SortKey,
    meter: Meter | None,
) -> _Placed:
    """Yield the entries of keyed state in order; SavepointError for one that is there twice."""
    if operator is None or not numbers:
        return
    with errors_of(number):
        last = None
        for entry in _sorted_entries(operator, numbers, place, meter):
            at = place(entry)
            if at == last:
                raise SavepointError(
                    f"key group {entry.key_group} has an entry twice, of the key bytes "
                    f"{show(entry.key)}"
                )
            last = at
            yield at, entry


def _sorted_entries(
    operator: ComparedOperator,
    numbers: Mapping[tuple[str, str], int],
    place: SortKey,
    meter: Meter | None,
) -> Iterator[EncodedEntry]:
    names = {name: number for (name, _), number in numbers.items()}
    # Subtasks share no key group, but `_metadata` may list them in any order.
    tasks = sorted(operator.tasks(names), key=_first_key_group)
    entries = (
        entry for task in ahead(tasks, meter=meter) for entry in task.encoded_entries(names)
    )
    if place is not _in_key_group:
        yield from sorted_entries(entries, None, place=place)
        return
    for _, of_group in groupby(entries, _key_group):
        yield from sorted_entries(of_group, None)


def _first_key_group(task: ReadTask) -> int:
    return next(iter(task.key_groups))


def _elements(
    number: int, operator: ComparedOperator | None, numbers: Mapping[tuple[str, str], int]
) -> _Placed:
    """Yield the elements of operator state; those of a broadcast state's copies once."""
    if operator is None or not numbers:
        return
    broadcast = set()

    def elements() -> Iterator[EncodedEntry]:
        for subtask, is_raw, state in _read_operator_states(operator):
            key = (state.state, "raw" if is_raw else "managed")
            if key in numbers:
                if state.mode == "BROADCAST":
                    broadcast.add(numbers[key])
                for element, value in state.elements:
                    yield EncodedEntry(subtask, numbers[key], element, value)

    with errors_of(number):
        last = None
        for entry in sorted_entries(elements(), None, place=_with_value):
            at = _with_value(entry)
            if at != last or entry.state not in broadcast:
                yield at[:2], entry
            last = at


def _read_operator_states(
    operator: ComparedOperator,
) -> Iterator[tuple[int, bool, EncodedOperatorState]]:
    """Yield the operator states of each subtask with its index, and whether they are raw."""
    handles = operator._operator_state_handles()
    plan = ((handle.stream, [(0, handle.stream.size)]) for _, handle, _ in handles)
    with operator._files.ahead(plan) as files:
        for subtask, handle, is_raw in handles:
            for state in read_encoded_operator_state(files, handle, is_raw, operator._context):
                yield subtask, is_raw, state


def _compared(pairs: Sequence[StatePair], own: _Placed, other: _Placed) -> Iterator[_Found]:
    """Yield each entry of two savepoints, two at the same place together.

    Both sides ascend by place, so that one step of a merge finds counterparts: places 1, 3 and
    places 1, 2 give 1 in both, 2 only in the other, 3 only in this one.
    """
    nothing: tuple[Any, None] = (None, None)
    place, entry = next(own, nothing)
    other_place, other_entry = next(other, nothing)
    while entry is not None and other_entry is not None:
        pair = pairs[entry.state >> 1]
        if place == other_place:
            yield _Found(pair, pair.compared(entry, other_entry), entry, other_entry)
            place, entry = next(own, nothing)
            other_place, other_entry = next(other, nothing)
        elif place < other_place:
            yield _Found(pair, "only_here", entry, None)
            place, entry = next(own, nothing)
        else:
            yield _Found(pairs[other_entry.state >> 1], "only_there", None, other_entry)
            other_place, other_entry = next(other, nothing)
    if entry is not None:
        for _, rest in chain([(place, entry)], own):
            yield _Found(pairs[rest.state >> 1], "only_here", rest, None)
    if other_entry is not None:
        for _, rest in chain([(other_place, other_entry)], other):
            yield _Found(pairs[rest.state >> 1], "only_there", None, rest)


def _by_name(committables: Iterable[Committable]) -> dict[object, Committable]:
    """Return committables by their texts, each with how many like it there are before it.

    What is not known is compared as elements of the committer's state.
    """
    found: dict[object, Committable] = {}
    times: Counter[str] = Counter()
    for what in committables:
        if not isinstance(what.committable, UnknownCommittable):
            name = repr(what.committable)
            found[name, times[name]] = what
            times[name] += 1
    return found


def _by_id(
    splits: Iterable[SourceSplit],
) -> dict[object, KafkaSplit | FileSplit | ConnectorSplit]:
    """Return the splits by their ids, each with how many there are before it that have the same.

    Those that are not known, and shards, are compared as elements of the readers' state.
    """
    found: dict[object, KafkaSplit | FileSplit | ConnectorSplit] = {}
    times: Counter[object] = Counter()
    for split in splits:
        if isinstance(split, UnknownSplit | KinesisSplit):
            continue
        split_id: object = split[0]
        if isinstance(split, KafkaSplit):
            split_id = split.topic, split.partition, split.cluster
        elif isinstance(split, ConnectorSplit):
            # Pulsar: a TopicPartition has its ranges, which a key-shared subscription splits.
            ranges = split.fields.get("ranges") if split.source == PULSAR.source else None
            split_id = split.source, split.name, repr(ranges)
        found[split_id, times[split_id]] = split
        times[split_id] += 1
    return found
