"""Operator state that is written: list, union and broadcast states of an operator's subtasks."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keygroups._checks import check_int, check_str, iterate, show
from keygroups._serializers.base import Serializer, checked_write
from keygroups._serializers.data_output import i32, u16, utf
from keygroups._serializers.jvm.encoded import JavaSerializer
from keygroups.errors import InvalidTypeError, InvalidValueError, KeyGroupsError
from keygroups.operator_state import redistribute_operator_state
from keygroups.savepoint._files.output_folder import OutputFolder
from keygroups.savepoint._metadata.handles import OperatorStateHandle, StreamHandle
from keygroups.savepoint._state.state_infos import BACKEND_TYPES, KEY, VALUE
from keygroups.savepoint._state.writing.new_states import (
    MOST_STATES,
    ListStateDescriptor,
    MapStateDescriptor,
    StateOfValues,
    serializer_to_write,
)

_VERSION = 5  # stream version that has no flag of compression: Flink 1.7 to 2.3
_MOST_INLINE = 20_480
"""Bytes of a stream in `_metadata`. Flink: state.storage.fs.memory-threshold, by default."""


@dataclass(frozen=True)
class NewOperatorState:
    """An operator state: `key_serializer` is that of the keys of a broadcast state, else None."""

    name: str
    mode: str
    serializer: Serializer
    key_serializer: Serializer | None = None

    def __str__(self) -> str:
        return f"operator state {self.name!r}"

    def info(self) -> bytes:
        """Return the bytes of the state in a header.

        Flink: RegisteredOperatorStateBackendMetaInfo, RegisteredBroadcastStateBackendMetaInfo.
        """
        key, kind = self.key_serializer, "OPERATOR" if self.key_serializer is None else "BROADCAST"
        roles = [] if key is None else [utf("role", KEY), key.snapshot_bytes()]
        return b"".join(
            (
                utf("state", self.name),
                i32(BACKEND_TYPES.index(kind)),
                i32(1),
                utf("option", "OPERATOR_STATE_DISTRIBUTION_MODE"),
                utf("mode", self.mode),
                i32(1 if key is None else 2),
                utf("role", VALUE),
                self.serializer.snapshot_bytes(),
                *roles,
            )
        )

    def encoded(self, element: Any, old: bytes | None = None) -> bytes:
        """Return the bytes of an element, which may take the place of another, `old`."""
        data = _written(f"element of {self}", self.serializer, element, old)
        if not data:
            raise InvalidValueError(
                f"element of {self} must take bytes, as it is found by where it starts, got "
                f"{show(element)}, a {self.serializer} without any"
            )
        return data

    def encoded_entry(
        self, key: Any, value: Any, old: tuple[bytes | None, bytes | None] = (None, None)
    ) -> tuple[bytes, bytes]:
        """Return the bytes of the key and of the value of an entry in a broadcast state."""
        assert self.key_serializer is not None
        return (
            _written(f"key of {self}", self.key_serializer, key, old[0]),
            _written(f"value of {self}", self.serializer, value, old[1]),
        )


def _written(name: str, serializer: Serializer, value: Any, old: bytes | None) -> bytes:
    if old is not None and isinstance(serializer, JavaSerializer):
        try:
            return serializer.write_over(value, old)
        except KeyGroupsError as error:
            raise type(error)(f"{name}: {error}") from None
    if value is None:
        if serializer.takes_null and serializer.write is not None:
            return serializer.write(value)
        raise InvalidValueError(f"{name} must not be None: a {serializer} writes no null")
    return checked_write(name, serializer, value)


def new_operator_states(
    list_states: Iterable[ListStateDescriptor],
    union_list_states: Iterable[ListStateDescriptor],
    broadcast_states: Iterable[MapStateDescriptor],
) -> tuple[NewOperatorState, ...]:
    """Return the states that descriptors name; the arguments are those of `add_operator`."""
    states: dict[str, NewOperatorState] = {}
    for argument, mode, cls, value in (
        ("list_states", "SPLIT_DISTRIBUTE", ListStateDescriptor, list_states),
        ("union_list_states", "UNION", ListStateDescriptor, union_list_states),
        ("broadcast_states", "BROADCAST", MapStateDescriptor, broadcast_states),
    ):
        descriptors: Iterable[object] = value
        for state in iterate(argument, "descriptors", descriptors):
            if not isinstance(state, cls):
                raise InvalidTypeError(
                    f"{argument} must be of class {cls.__name__}, got {show(state)}"
                )
            new = _new_state(argument, mode, state)
            if new.name in states:
                raise InvalidValueError(
                    "list_states, union_list_states and broadcast_states must differ in name, "
                    f"got {show(new.name)} twice"
                )
            states[new.name] = new
        if len(states) > MOST_STATES:
            raise InvalidValueError(
                f"{argument} must be at most {MOST_STATES}, got {len(states)} operator states"
            )
    return tuple(states.values())


def _new_state(argument: str, mode: str, state: StateOfValues) -> NewOperatorState:
    if state.has_ttl:
        raise InvalidValueError(
            f"{argument} must have no time to live, which operator state has not in Flink, got "
            f"{show(state.name)}"
        )
    key = None
    if isinstance(state, MapStateDescriptor):
        key = serializer_to_write("user_key_type", state.user_key_type)
    return NewOperatorState(state.name, mode, state.value_serializer(), key)


class OperatorStateWriter:
    """Takes the elements of an operator's states, and writes the streams of its subtasks.

    The bytes of all elements are held until then, as Flink holds operator state on the heap.
    """

    def __init__(
        self,
        folder: OutputFolder,
        operator_id: str,
        states: Sequence[NewOperatorState],
        parallelism: int,
    ) -> None:
        self.handles: dict[int, OperatorStateHandle] = {}
        self._folder = folder
        self._operator_id = operator_id
        self._states = {state.name: state for state in states}
        self._parallelism = parallelism
        self._dealt: dict[str, list[bytes]] = {state.name: [] for state in states}
        self._placed: dict[tuple[int, str], list[bytes]] = {}
        self._broadcast: dict[str, dict[bytes, bytes]] = {}

    def write(self, state: str, elements: Any, subtask: int | None = None) -> None:
        """Take elements; the arguments are those of `OperatorWriter.write_operator_state`."""
        new = self._states.get(check_str("state", state))
        if new is None:
            raise InvalidValueError(
                f"state must be one of {', '.join(self._states) or 'none'}, got {show(state)}"
            )
        if new.mode == "BROADCAST":
            if subtask is not None:
                raise InvalidValueError(
                    f"subtask must be None for {new}, as all have what is broadcast, got "
                    f"{show(subtask)}"
                )
            self._write_broadcast(new, elements)
            return
        if subtask is not None:
            subtask = check_int("subtask", subtask, 0, self._parallelism - 1)
        elif new.mode == "UNION":
            subtask = 0  # whose elements reach all
        if isinstance(elements, Mapping):
            raise InvalidTypeError(
                f"elements must be an iterable of elements of {new}, got {show(elements)}"
            )
        encoded = [*map(new.encoded, iterate("elements", f"elements of {new}", elements))]
        if subtask is None:
            self._dealt[new.name] += encoded
        else:
            self._placed.setdefault((subtask, new.name), []).extend(encoded)

    def _write_broadcast(self, state: NewOperatorState, entries: Any) -> None:
        previous = self._broadcast.get(state.name, {})
        encoded: dict[bytes, bytes] = {}
        for key, value in pairs_of("elements", state.name, entries):
            key_bytes, value_bytes = state.encoded_entry(key, value)
            if key_bytes in previous or key_bytes in encoded:
                raise InvalidValueError(f"key {show(key)} of {state} must be there once")
            encoded[key_bytes] = value_bytes
        self._broadcast.setdefault(state.name, {}).update(encoded)

    @property
    def file_names(self) -> list[str]:
        """The names of the files that were written."""
        streams = [handle.stream for handle in self.handles.values()]
        return [stream.path for stream in streams if stream.data is None]

    def close(self) -> None:
        """Write the stream of each subtask that has elements: `handles` are theirs."""
        dealt = redistribute_operator_state(
            {name: ("SPLIT_DISTRIBUTE", [elements]) for name, elements in self._dealt.items()},
            1,
            self._parallelism,
        )
        lists = [state for state in self._states.values() if state.mode != "BROADCAST"]
        for subtask in range(self._parallelism):
            # Flink takes a broadcast state that a handle names to have an offset.
            broadcasts = [] if subtask else [*map(self._states.__getitem__, self._broadcast)]
            elements = {
                state.name: self._placed.get((subtask, state.name), [])
                + dealt[state.name][subtask]
                for state in lists
            }
            for state in broadcasts:
                elements[state.name] = [broadcast_bytes(self._broadcast[state.name].items())]
            if any(elements.values()):
                header = operator_state_header(
                    [state.info() for state in lists], [state.info() for state in broadcasts]
                )
                name = f"{self._operator_id}-{subtask}-operator-state-{uuid.uuid4().hex}"
                self.handles[subtask] = operator_state_handle(
                    header,
                    [
                        (state.name, state.mode, elements[state.name])
                        for state in (*lists, *broadcasts)
                    ],
                    self._folder,
                    name,
                )


def pairs_of(name: str, state: str, entries: Any) -> Iterable[tuple[Any, Any]]:
    """Return the entries of a broadcast state: of a dict, or pairs; or raise with `name`."""
    if isinstance(entries, Mapping):
        return entries.items()
    pairs: list[Any] = entries if isinstance(entries, list) else [None]
    if all(type(pair) is tuple and len(pair) == 2 for pair in pairs):
        return pairs
    raise InvalidTypeError(
        f"{name} must be a dict or a list of pairs for broadcast state {show(state)}, got "
        f"{show(entries)}"
    )


def broadcast_bytes(entries: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the bytes of the entries of a broadcast state.

    Flink: HeapBroadcastState.write.
    """
    pairs = [key + value for key, value in entries]
    return i32(len(pairs)) + b"".join(pairs)


def operator_state_header(
    lists: Sequence[bytes], broadcasts: Sequence[bytes], version: int = _VERSION
) -> bytes:
    """Return the header of a stream that is not compressed, of what is said of its states.

    Flink: OperatorBackendSerializationProxy.write.
    """
    return b"".join(
        (
            i32(version),
            b"\0" if version > _VERSION else b"",
            u16(len(lists)),
            *lists,
            u16(len(broadcasts)),
            *broadcasts,
        )
    )


def operator_state_handle(
    header: bytes,
    states: Iterable[tuple[str, str, Sequence[bytes]]],
    folder: OutputFolder,
    name: str,
) -> OperatorStateHandle:
    """Write a stream: the elements of states, each with its name and its mode, behind a header.

    It is in `_metadata` if it is small, else in a file of the folder; both have the name, as two
    streams in `_metadata` with one name are one to Flink.

    Flink: DefaultOperatorStateBackendSnapshotStrategy.
    """
    chunks, position = [header], len(header)
    named = []
    for state, mode, elements in states:
        offsets = []
        for element in elements:
            offsets.append(position)
            position += len(element)
        chunks += elements
        named.append((state, mode, tuple(offsets)))
    data = b"".join(chunks)
    if position <= _MOST_INLINE:
        return OperatorStateHandle(tuple(named), StreamHandle(position, data, name=name))
    with folder.create(name) as file:
        file.write(data)
    return OperatorStateHandle(tuple(named), StreamHandle(position, path=name, is_relative=True))
