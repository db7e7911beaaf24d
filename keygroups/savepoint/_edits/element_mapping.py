"""The functions of `map_operator_state`, called with the elements of a state in one subtask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from keygroups._checks import exact_repr, show
from keygroups._serializers.data_input import Cursor
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    UnsupportedKeyTypeError,
)
from keygroups.savepoint._edits.steps import DELETE
from keygroups.savepoint._sources.consumers import moved_partition, read_partition
from keygroups.savepoint._sources.kafka import Offset, Place
from keygroups.savepoint._state.operator_state import (
    OperatorStateElement,
    broadcast_entries,
    read_element,
)
from keygroups.savepoint._state.state_infos import StateInfo
from keygroups.savepoint._state.writing.operator_state_writer import (
    NewOperatorState,
    broadcast_bytes,
)

MapElement = Callable[[OperatorStateElement], Any]


@dataclass(frozen=True)
class MovedBytes:
    """Moves the offset of an element of FlinkKafkaConsumer, which only its classes write."""

    offsets: Mapping[Place, Offset]

    def change(self, element: OperatorStateElement, data: bytes) -> bytes:
        """Return the new bytes of an element."""
        split = read_partition(element.value, element.subtask)
        offset = self.offsets.get((split.topic, split.partition))
        return data if offset is None else moved_partition(data, offset)


class ElementMapping:
    """Calls functions with the elements of a state in one subtask, and counts what they do.

    An element is the bytes of its key, none in a list, and those of its value.
    """

    def __init__(
        self,
        name: str,
        state: NewOperatorState,
        info: StateInfo,
        subtask: int,
        functions: Iterable[tuple[str, MapElement | MovedBytes]],
        counts: Counter[str],
    ) -> None:
        self._name = name
        self._state = state
        self._info = info
        self._subtask = subtask
        self._functions = functions
        self._counts = counts

    def mapped_list(self, elements: Iterable[tuple[int, bytes]]) -> list[bytes]:
        """Return the new elements of a list; `elements` are old ones with their offsets."""
        return [value for at, old in elements for _, value in self._mapped(at, b"", old)]

    def mapped_broadcast(self, elements: Iterable[tuple[int, bytes]]) -> list[bytes]:
        """Return a broadcast state's new bytes, all of its entries in one element."""
        return [broadcast_bytes(self._entries(at, data)) for at, data in elements]

    def _entries(self, offset: int, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        entries = broadcast_entries(self._info, Cursor(data, self._name, offset))
        if entries is None:
            raise UnsupportedKeyTypeError(
                f"{self._state} cannot be mapped: only the job's classes can read where an entry "
                "of it ends"
            )
        keys = set()
        for start, middle, end, _, _ in entries:
            for entry in self._mapped(offset, data[start:middle], data[middle:end]):
                if entry[0] in keys:
                    raise InvalidValueError(
                        f"{self._state} must have each key once, got "
                        f"{show(self._element(self._state.name, offset, *entry).key)} twice"
                    )
                keys.add(entry[0])
                yield entry

    def _mapped(self, offset: int, key: bytes, value: bytes) -> list[tuple[bytes, bytes]]:
        """Return the elements that take the place of one, after all functions, and count them.

        Each is a key, b"" in a list, and a value, as bytes.
        """
        old = key, value
        elements = [old]
        for name, function in self._functions:
            elements = [
                new
                for element in elements
                for new in self._called(name, function, offset, element)
            ]
        if not elements:
            self._counts["deleted"] += 1
            return []
        self._counts["kept" if old in elements else "changed"] += 1
        self._counts["added"] += len(elements) - 1
        return elements

    def _called(
        self, name: str, function: MapElement | MovedBytes, offset: int, old: tuple[bytes, bytes]
    ) -> Iterator[tuple[bytes, bytes]]:
        element = self._element(name, offset, *old)
        if isinstance(function, MovedBytes):
            yield b"", function.change(element, old[1])
            return
        try:
            result = function(element)
            returned = _elements_of(result)
            if returned is not None:
                returned = [*returned]
        except Exception as error:
            note = f"map_operator_state: {_named(element)}"
            error.__notes__ = [*getattr(error, "__notes__", ()), note]
            raise
        if result is DELETE:
            return
        for new in [element._replace(value=result)] if returned is None else returned:
            yield self._encoded(name, new, offset, old)

    def _encoded(
        self, name: str, new: Any, offset: int, old: tuple[bytes, bytes]
    ) -> tuple[bytes, bytes]:
        """Return the bytes of a new element, the old ones if it is equal to the old element."""
        # The function may have changed the old value in place: compare with a fresh copy.
        before = self._element(name, offset, *old)
        if not isinstance(new, OperatorStateElement):
            raise InvalidTypeError(
                f"{_named(before)}: elements must each be an OperatorStateElement, got {show(new)}"
            )
        if new[:3] != before[:3]:
            raise InvalidValueError(
                f"{_named(before)}: an element must stay in its state and subtask, got "
                f"{_named(new)}"
            )
        if self._state.key_serializer is None and new.key is not None:
            raise InvalidValueError(
                f"{_named(before)}: key must be None in a list, got {show(new.key)}"
            )
        try:
            encoded = self._bytes(new, old)
        except KeyGroupsError:  # only the job can write such a value: it has to be the old one
            if exact_repr(new) == exact_repr(before):
                return old
            raise
        with suppress(KeyGroupsError):
            # Equal values may have different bytes, such as maps in another order: keep the old.
            if encoded == self._bytes(before, old):
                return old
        return encoded

    def _bytes(
        self, element: OperatorStateElement, old: tuple[bytes, bytes]
    ) -> tuple[bytes, bytes]:
        """Return the bytes of an element that takes the place of the old one."""
        if self._state.key_serializer is None:
            return b"", self._state.encoded(element.value, old[1])
        return self._state.encoded_entry(element.key, element.value, old)

    def _element(self, name: str, offset: int, key: bytes, value: bytes) -> OperatorStateElement:
        state = self._state
        keys = state.key_serializer
        return OperatorStateElement(
            name,
            state.mode,
            self._subtask,
            None if keys is None else read_element(keys, Cursor(key, self._name, offset)),
            read_element(state.serializer, Cursor(value, self._name, offset)),
        )


def _elements_of(result: Any) -> Iterable[Any] | None:
    """Return the elements of a function's result, None if the result is a value."""
    if isinstance(result, OperatorStateElement):
        return (result,)
    if isinstance(result, list):
        is_value = not any(isinstance(item, OperatorStateElement) for item in result)
        return None if is_value else result
    return result if isinstance(result, Iterator) else None


def _named(element: OperatorStateElement) -> str:
    key = "" if element.mode != "BROADCAST" else f", key {show(element.key)}"
    return f"operator state {show(element.state)}, subtask {element.subtask!r}{key}"
