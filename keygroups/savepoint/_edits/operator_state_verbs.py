"""The edits of an operator's operator state: collected verb by verb, written at the end."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from keygroups._checks import check_callable, check_str, iterate, show
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.data_output import utf
from keygroups.errors import (
    InvalidValueError,
    SavepointError,
    UnsupportedKeyTypeError,
)
from keygroups.savepoint._edits.element_mapping import ElementMapping, MapElement, MovedBytes
from keygroups.savepoint._edits.keyed_state import EditedState
from keygroups.savepoint._edits.steps import DELETE
from keygroups.savepoint._files.files import OpenStream
from keygroups.savepoint._files.output_folder import OutputFolder
from keygroups.savepoint._metadata.handles import (
    OperatorMetadata,
    OperatorStateHandle,
    coordinator_handle,
)
from keygroups.savepoint._operator import Operator
from keygroups.savepoint._sources.consumers import KAFKA_STATE, read_partition
from keygroups.savepoint._sources.kafka import (
    KafkaSplit,
    Offset,
    Place,
    SpecialOffset,
    checked_places,
)
from keygroups.savepoint._sources.source_splits import (
    READER_STATE,
    SourceSplits,
    coordinator_without,
    moved_element,
    place_of,
    topic_of,
)
from keygroups.savepoint._state.operator_state import (
    ElementSpans,
    OperatorStateElement,
    OperatorStateHeader,
    check_mode,
    opened,
)
from keygroups.savepoint._state.state_infos import KEY, VALUE, StateInfo
from keygroups.savepoint._state.writing.new_states import check_state_name
from keygroups.savepoint._state.writing.operator_state_writer import (
    NewOperatorState,
    operator_state_handle,
    operator_state_header,
)


class _StateVerbs:
    """A state as the verbs so far leave it; each function goes with the state's name by then."""

    def __init__(self, old_name: str, mode: str) -> None:
        self.old_name = old_name
        self.mode = mode
        self.functions: list[tuple[str, MapElement | MovedBytes]] = []


@dataclass(frozen=True)
class EditedOperatorState:
    """The new handles by subtask, None where all states were removed, and the counts by state.

    `coordinator` is the new state of a source's coordinator, None where it stays.
    """

    handles: Mapping[int, OperatorStateHandle | None]
    states: tuple[EditedState, ...]
    coordinator: bytes | None = None

    @property
    def file_names(self) -> list[str]:
        """The names of the files that were written."""
        streams = [handle.stream for handle in self.handles.values() if handle is not None]
        return [stream.path for stream in streams if stream.data is None]

    def of(self, operator: OperatorMetadata) -> OperatorMetadata:
        """Return the operator's metadata with the new handles."""
        subtasks = tuple(
            replace(subtask, managed_operator=self.handles[subtask.index])
            if subtask.index in self.handles
            else subtask
            for subtask in operator.subtasks
        )
        if self.coordinator is not None:
            operator = replace(
                operator, coordinator=coordinator_handle(operator.operator_id, self.coordinator)
            )
        return replace(operator, subtasks=subtasks)


class OperatorStateEditor:
    """Edits the operator state of one operator: list, union and broadcast states.

    Raw operator state stays as it is. Of the splits of a source only the offsets are edited: what
    its readers have and what its coordinator knows go together.
    """

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        # The states by their new names; None until they are read.
        self._operator_states: dict[str, _StateVerbs] | None = None
        self._removed_operator_states: list[_StateVerbs] = []
        self._edited_operator_states: set[str] = set()  # their old names
        self._removed_topics: set[str] = set()
        self._coordinator: bytes | None = None  # the new one, None where it stays
        self._is_closed = False

    def close(self) -> None:
        """Refuse further edits: the savepoint is written, or the operator removed."""
        self._is_closed = True

    def _check_open(self) -> None:
        if self._is_closed:
            raise InvalidValueError(
                f"operator {self._operator.label} cannot be edited any more: it is written or "
                "removed"
            )

    def remove_operator_state(self, name: str) -> None:
        """Remove a list, union or broadcast state, with all elements.

        Raises InvalidValueError for a state that is not there, and for the splits of a source;
        InvalidTypeError; SavepointError where `_metadata` and the state do not agree.
        """
        state = self._operator_state(name)
        states = self._read_operator_states()
        del states[str.__str__(name)]
        self._removed_operator_states.append(state)
        self._edited_operator_states.add(state.old_name)

    def rename_operator_state(self, name: str, new_name: str) -> None:
        """Give a list, union or broadcast state another name, by which the job then finds it.

        Raises what `remove_operator_state` raises, and InvalidValueError for a name that is
        taken, that Flink keeps for itself, or that of the splits of a source.
        """
        state = self._operator_state(name)
        new_name = check_state_name(new_name)
        states = self._read_operator_states()
        if new_name in states or new_name == READER_STATE.name:
            raise InvalidValueError(f"new_name must be of no other state, got {show(new_name)}")
        self._operator_states = {
            new_name if other is state else known: other for known, other in states.items()
        }
        self._edited_operator_states.add(state.old_name)

    def map_operator_state(self, name: str, function: MapElement) -> None:
        """Call a function with each element of a list, union or broadcast state.

        `function` takes an OperatorStateElement and returns a new value for it; DELETE; or
        elements, which are an OperatorStateElement, a list of them or an iterator:
        `element._replace(value=...)`, of a broadcast state also with another key. What is equal
        to what was there is kept as it is. Each subtask has its own elements, of a broadcast
        state all of them: the function is called with each.

        An element that only the job's classes read is bytes, as it was written; it may be
        deleted, or stay as it is. So may a list and a dict of Java's own serialization, which
        ListCheckpointed has; a number of it stays of its class: a Long is another Long.

        Raises what `remove_operator_state` raises, and UnsupportedKeyTypeError for a broadcast
        state of which only the job's classes read where an entry ends. When it is written: what
        the function raises, and InvalidTypeError or InvalidValueError for what it returns, as
        `OperatorWriter.write_operator_state` raises them, UnsupportedKeyTypeError for another
        value that only the job's classes write.
        """
        state = self._operator_state(name)
        check_callable("function", function)
        for _, handle in self._handles():
            with self._opened(handle) as (_, _, header):
                info = header.infos.get(state.old_name)
            if info is not None:
                _check_mappable(_new_state(name, state.mode, info))
        state.functions.append((str.__str__(name), function))
        self._edited_operator_states.add(state.old_name)

    def set_offsets(self, offsets: Mapping[tuple[Any, ...], int | SpecialOffset]) -> None:
        """Have a source of Kafka go on at other offsets, for some partitions.

        It is a KafkaSource, a DynamicKafkaSource, a HybridSource of these, or a
        FlinkKafkaConsumer. `offsets` maps partitions that its readers have, each the name of a
        topic and a number from 0, for a DynamicKafkaSource behind the id of its cluster, to the
        offset of the next record to read, 0..2^63-1, or a SpecialOffset. The source keeps all
        else: the offsets of its other partitions, where it stops, its coordinator. A partition
        that is new to it is found by the source itself, or is written with all others by
        `remove_operator` and `add_source`.

        Raises InvalidValueError for an operator that is no such source, for no partition, one
        that no reader has and one that two sources of a HybridSource have, for an offset out of
        bounds or beyond where the source stops; InvalidTypeError; SavepointError where the state
        is damaged.

        Kafka's source: KafkaPartitionSplitReader.handleSplitsChanges, which seeks the offset.
        Kafka's consumer: FlinkKafkaConsumerBase.initializeState.
        """
        self._check_open()
        checked_places(offsets, {})
        source, splits = self._kafka_splits()
        state = self._kafka_state(splits, "a source of Kafka")
        places = {place_of(split): split.stopping_offset for _, split in splits}
        stops = {place: stop for place, stop in places.items() if stop is not None}
        moved = checked_places(offsets, stops)
        numbers = Counter(place for _, place in {(it[0], place_of(it[1])) for it in splits})
        for place in moved:
            if place not in places:
                raise InvalidValueError(
                    f"offsets must be of partitions that a reader of {self._operator.label} has, "
                    f"such as {show(min(places))}, got {show(place)}"
                )
            if numbers[place] > 1:
                raise InvalidValueError(
                    f"offsets must be of partitions that one source of {self._operator.label} "
                    f"has, got {show(place)}, which {numbers[place]} have"
                )
        is_source = state.old_name == READER_STATE.name
        hybrid = frozenset(number for number, _ in splits if source.source_indexes)
        function = partial(_moved, offsets=moved, sources=hybrid)
        state.functions.append((state.old_name, function if is_source else MovedBytes(moved)))
        self._edited_operator_states.add(state.old_name)

    def remove_topics(self, topics: Iterable[str]) -> None:
        """Remove topics from a KafkaSource or FlinkKafkaConsumer, whose job reads them no more.

        The readers' partitions of them go, and what the coordinator knows of them; all else stays.
        A job that still reads such a topic finds it anew: a KafkaSource from where it reads new
        partitions, which is their start.

        Raises InvalidValueError for an operator that is no such source, for a topic that it does
        not read, and for all of its topics; InvalidTypeError; SavepointError where the state is
        damaged, or is that of a coordinator before Flink 1.14.

        Kafka's source: KafkaSourceEnumerator.start.
        """
        self._check_open()
        source, splits = self._kafka_splits()
        is_plain = not (source.source_indexes or any(split.cluster for _, split in splits))
        state = self._kafka_state(
            splits if is_plain else [], "a KafkaSource or a FlinkKafkaConsumer"
        )
        known = {split.topic for _, split in splits} - self._removed_topics
        names: set[str] = set()
        for topic in iterate("topics", "str", topics):
            if check_str("topic", topic) not in known or topic in names:
                raise InvalidValueError(
                    f"topics must be those of {self._operator.label}, which reads "
                    f"{', '.join(sorted(known))}, each once, got {show(topic)}"
                )
            names.add(topic)
        if not names or names == known:
            raise InvalidValueError(
                f"topics must be some of those of {self._operator.label}, and not all, got "
                f"{show(sorted(names))}"
            )
        self._removed_topics |= names
        coordinator = self._coordinator or self._operator.coordinator_state()
        if coordinator is not None:
            self._coordinator = coordinator_without(names, coordinator, self._operator.label)
        function = partial(_of_others, topics=frozenset(names))
        state.functions.append((state.old_name, function))
        self._edited_operator_states.add(state.old_name)

    def _kafka_splits(self) -> tuple[SourceSplits, list[tuple[int, KafkaSplit]]]:
        """Return the splits of a source, and those that its readers have of Kafka's.

        Each is behind the number of its source in a HybridSource, 0 in all others.
        """
        source = self._operator.source_splits()
        numbers = source.source_indexes or (0,) * len(source.splits)
        return source, [
            (number, split)
            for number, split in zip(numbers, source.splits)
            if isinstance(split, KafkaSplit) and split.subtask is not None
        ]

    def _kafka_state(self, splits: Sequence[tuple[int, KafkaSplit]], kind: str) -> _StateVerbs:
        """Return the state that has splits, or raise with the kind of source it should be."""
        states = self._read_operator_states()
        found = [states[name] for name in (READER_STATE.name, KAFKA_STATE) if name in states]
        if not splits or not found:
            raise InvalidValueError(
                f"operator {self._operator.label} must be {kind} that reads partitions"
            )
        return found[0]

    def edited_operator_state(self, folder: OutputFolder) -> EditedOperatorState:
        """Write the streams that have an edited state; return the new handles and the counts."""
        counts: dict[str, Counter[str]] = {
            name: Counter() for name in self._edited_operator_states
        }
        handles: dict[int, OperatorStateHandle | None] = {}
        new_names: dict[str, str | None] = {
            state.old_name: None for state in self._removed_operator_states
        }
        for name, state in (self._operator_states or {}).items():
            new_names[state.old_name] = name
        for subtask, handle in self._handles() if self._edited_operator_states else ():
            if any(name in self._edited_operator_states for name, _, _ in handle.states):
                new = self._edited(subtask, handle, new_names, counts, folder)
                if new is not handle:
                    handles[subtask] = new
        states = tuple(
            EditedState(name, None, None, None, None, None)
            if new_names[name] is None
            else EditedState(
                name,
                new_names[name],
                counts[name]["kept"],
                counts[name]["changed"],
                counts[name]["deleted"],
                counts[name]["added"],
            )
            for name in new_names
            if name in counts
        )
        return EditedOperatorState(handles, states, self._coordinator)

    def _handles(self) -> Iterator[tuple[int, OperatorStateHandle]]:
        """Yield the handles of managed operator state that have bytes, by subtask."""
        for subtask in self._operator._subtasks:
            handle = subtask.managed_operator
            if handle is not None and handle.stream.size:
                yield subtask.index, handle

    def _read_operator_states(self) -> dict[str, _StateVerbs]:
        if self._operator_states is None:
            self._operator_states = {
                name: _StateVerbs(name, mode)
                for _, handle in self._handles()
                for name, mode, _ in handle.states
            }
        return self._operator_states

    def _operator_state(self, name: str) -> _StateVerbs:
        self._check_open()
        states = self._read_operator_states()
        state = states.get(check_str("name", name))
        if state is None:
            raise InvalidValueError(
                f"name must be of an operator state of {self._operator.label}, which has "
                f"{', '.join(states) or 'none'}, got {show(name)}"
            )
        if state.old_name == READER_STATE.name:
            raise InvalidValueError(
                f"{READER_STATE.name} of {self._operator.label} cannot be edited, as its "
                "coordinator knows which splits are assigned: set_offsets moves the splits of a "
                "KafkaSource, remove_operator and add_source write both anew"
            )
        return state

    @contextmanager
    def _opened(
        self, handle: OperatorStateHandle
    ) -> Iterator[tuple[OpenStream, ElementSpans, OperatorStateHeader]]:
        operator = self._operator
        with operator._files.open(handle.stream) as stream:
            spans, header = opened(stream, handle, False, operator._context)
            for name, mode, starts in handle.states:
                check_mode(stream, header.infos.get(name), name, mode, starts)
            yield stream, spans, header

    def _edited(
        self,
        subtask: int,
        handle: OperatorStateHandle,
        new_names: Mapping[str, str | None],
        counts: Mapping[str, Counter[str]],
        folder: OutputFolder,
    ) -> OperatorStateHandle | None:
        """Return the handle of a subtask's new stream; `handle` itself if no byte changes."""
        with self._opened(handle) as (stream, spans, header):
            name = stream.name
            elements = {
                state: [*spans.elements(state, starts, header)]
                for state, _, starts in handle.states
                if new_names[state] is not None
            }
        functions = {
            state.old_name: state.functions for state in self._read_operator_states().values()
        }
        is_same = len(elements) == len(handle.states)
        written = []
        for old_name, mode, _ in handle.states:
            new_name = new_names[old_name]
            if new_name is None:
                continue
            kept = [data for _, data in elements[old_name]]
            if functions[old_name]:
                info = header.infos.get(old_name)
                if info is None:
                    raise SavepointError(
                        f"{name}: operator state {show(old_name)} is not in the header"
                    )
                state = _new_state(old_name, mode, info)
                _check_mappable(state)
                mapping = ElementMapping(
                    name, state, info, subtask, functions[old_name], counts[old_name]
                )
                is_broadcast = mode == "BROADCAST"
                mapped = mapping.mapped_broadcast if is_broadcast else mapping.mapped_list
                new = mapped(elements[old_name])
                is_same = is_same and new == kept
                kept = new
            elif old_name in counts:
                counts[old_name]["kept"] += _size(name, mode, elements[old_name])
            is_same = is_same and new_name == old_name
            written.append((new_name, mode, kept))
        if is_same:
            return handle
        if not written:
            return None
        infos: dict[str, list[bytes]] = {"OPERATOR": [], "BROADCAST": []}
        for old_name, info in header.infos.items():
            new_name = new_names.get(old_name, old_name)
            if new_name is not None:
                infos[info.backend_type].append(_renamed(info, new_name))
        data = operator_state_header(infos["OPERATOR"], infos["BROADCAST"], header.version)
        file_name = f"{self._operator.operator_id}-{subtask}-operator-state-{uuid.uuid4().hex}"
        return operator_state_handle(data, written, folder, file_name)


def _moved(
    element: OperatorStateElement, offsets: Mapping[Place, Offset], sources: frozenset[int]
) -> OperatorStateElement:
    return element._replace(value=moved_element(element.value, offsets, sources))


def _of_others(element: OperatorStateElement, topics: frozenset[str]) -> Any:
    """Return an element as it is, DELETE if its partition is of one of the topics."""
    is_source = element.state == READER_STATE.name
    topic = (
        topic_of(element.value)
        if is_source
        else read_partition(element.value, element.subtask).topic
    )
    return DELETE if topic in topics else element


def _size(name: str, mode: str, elements: Sequence[tuple[int, bytes]]) -> int:
    """Return the number of elements of a list, or of entries of a broadcast state."""
    if mode != "BROADCAST":
        return len(elements)
    return sum(Cursor(data, name, offset).count() for offset, data in elements)


def _renamed(info: StateInfo, name: str) -> bytes:
    size = int.from_bytes(info.data[:2], "big")
    return utf("name of a state", name) + info.data[2 + size :]


def _new_state(name: str, mode: str, info: StateInfo) -> NewOperatorState:
    key = info.serializers[KEY] if info.backend_type == "BROADCAST" else None
    return NewOperatorState(name, mode, info.serializers[VALUE], key)


def _check_mappable(state: NewOperatorState) -> None:
    """Refuse a broadcast state of which only the job's classes can read where an entry ends."""
    if state.key_serializer is not None:
        for serializer in (state.key_serializer, state.serializer):
            if serializer.read is None:
                raise UnsupportedKeyTypeError(
                    f"{state} cannot be mapped: a value of {serializer} cannot be read here"
                )
