"""The step of `convert_state`, and the checks that the job restores the state that it makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from keygroups._checks import show
from keygroups._serializers.base import UnreadableError
from keygroups._serializers.jvm.kryo import check_kryo_version
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    UnsupportedKeyTypeError,
)
from keygroups.savepoint._edits.merged_header import merged_header
from keygroups.savepoint._edits.steps import Calls, StepContext, named_entry
from keygroups.savepoint._operator import Operator
from keygroups.savepoint._state.entries import EncodedEntry, StateEntry
from keygroups.savepoint._state.header import StateDescriptor, write_state
from keygroups.savepoint._state.stored_values import elements_reader, stored_value
from keygroups.savepoint._state.writing.new_states import NewState, described_states

ValueFunction = Callable[[Any], Any]


class Conversion(Calls):
    """Decodes each value, element or accumulator, and writes what `function` makes of it.

    It is written as the state `new` has it; None stays None, a list without elements one.
    """

    def __init__(
        self,
        new: StateDescriptor,
        function: ValueFunction | None,
        state: StateDescriptor,
        place: StepContext,
    ) -> None:
        super().__init__("convert_state", self._converted, state, place)
        self._convert = function
        self._is_list, self._has_ttl = state.kind == "LIST", state.has_ttl
        self._old = stored_value(state)
        self._write = stored_value(new).writer(allow_any_last_access=True)
        decode = self._read

        def read(key_group: int, key: bytes, value: bytes) -> StateEntry:
            entry = decode(key_group, key, value)
            if type(entry.value) is bytes:  # A value, or what only the job reads.
                self._check_read(entry, value)
            return entry

        self._read = read

    def __call__(self, encoded: EncodedEntry) -> Iterable[EncodedEntry] | None:
        if self._is_list and not encoded.value:
            return None
        entry, new = self._call(encoded)
        value, null = encoded.value, self._old.null
        if null is not None and not value.startswith(self._old.before_value):
            value = null  # The mark alone: no serializer of values sees it.
        else:
            try:
                value = self._write(new, entry.last_access)
            except KeyGroupsError as error:
                raise type(error)(f"{named_entry(entry)}: {error}") from None
        return None if value == encoded.value else (encoded._replace(value=value),)

    def _check_read(self, entry: StateEntry, value: bytes) -> None:
        """Refuse an entry whose value is the bytes that Flink wrote, as only the job reads it."""
        read = self._old.serializer.read
        assert read is not None  # The verb has checked it.
        try:
            if self._is_list:
                elements_reader(read)(value, 0)
            else:
                read(value, len(self._old.before_value))
        except UnreadableError as error:
            raise UnsupportedKeyTypeError(
                f"{named_entry(entry)}: its value cannot be converted, as only the job can read "
                f"it: {error}"
            ) from None

    def _converted(self, entry: StateEntry) -> Any:
        if not self._is_list:
            return self._value(entry.value)
        if not self._has_ttl:
            return [self._value(element) for element in entry.value]
        return [element._replace(value=self._value(element.value)) for element in entry.value]

    def _value(self, value: Any) -> Any:
        return value if value is None or self._convert is None else self._convert(value)


def converted_state(
    old: StateDescriptor, to: object, kryo_version: int
) -> tuple[StateDescriptor, bytes]:
    """Return the state that `old` becomes, and its part of the header.

    `to` is a descriptor, or an operator of a savepoint of the job, whose state of this name gives
    the bytes of the header as Flink wrote them. `kryo_version` is that of the savepoint. Raises
    InvalidTypeError, InvalidValueError for a state that Flink would not restore as that, and
    UnsupportedKeyTypeError for values that only the job reads or writes.
    """
    if isinstance(to, Operator):
        new, data = _of_template(old, to)
    elif isinstance(to, NewState):
        new, *_ = described_states([to], old.key_serializer)
        # A descriptor says nothing of windows: those of the state stay.
        new, data = replace(new, namespace_serializer=old.namespace_serializer), None
    else:
        raise InvalidTypeError(
            "to must be a descriptor such as ValueStateDescriptor, or an operator of a savepoint "
            f"of the job, got {show(to)}"
        )
    _check(old, new)
    if old.value_serializer is None or old.value_serializer.read is None or old.is_python:
        raise UnsupportedKeyTypeError(
            f"state {old.name!r} cannot be converted: only the job reads it"
        )
    if new.value_serializer is None or new.value_serializer.write is None:
        raise UnsupportedKeyTypeError(
            f"state {old.name!r} cannot become {new}: only the job writes it"
        )
    check_kryo_version("to", new.value_serializer, kryo_version)
    return new, write_state(new) if data is None else data


def _of_template(old: StateDescriptor, template: Operator) -> tuple[StateDescriptor, bytes]:
    header = merged_header(template)
    for state, data in zip(header.states, header.state_bytes):
        if state.name == old.name:
            return state, data
    raise InvalidValueError(
        f"to must be an operator with the state {show(old.name)}, and {template.label} has "
        f"{', '.join(state.name for state in header.states) or 'none'}"
    )


def _check(old: StateDescriptor, new: StateDescriptor) -> None:
    """Refuse what Flink would not restore as the job's, or would not find."""
    remedies = {
        "name": "rename_state gives it another",
        "kind": "Flink restores no state as one of another kind",
        "has_ttl": "set_ttl gives it a time to live, or takes it away",
        "key_serializer": "map_keys gives the operator keys of another type",
        "namespace_serializer": "its windows are of another type",
        "user_key_serializer": "keys in a map stay as they are",
    }
    for name, remedy in remedies.items():
        known, asked = getattr(old, name), getattr(new, name)
        if known != asked:
            raise InvalidValueError(
                f"to must have the {name.replace('_', ' ')} of the state, {known}, got {asked}: "
                f"{remedy}"
            )
