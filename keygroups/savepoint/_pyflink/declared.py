"""The states of an operator as its PyFlink job declares them.

In process mode, the default one, Flink has each value as an array of bytes, of which only the job
knows the types: a ValueState, ReducingState or AggregatingState is a list of one array, a
ListState is one of arrays of some elements each, and of a MapState user keys and values are
arrays. In thread mode the header has types, and what Java has no serializer for is a pickle.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from keygroups import types as kt
from keygroups._checks import iterate, show
from keygroups._serializers.base import Serializer
from keygroups._serializers.collections import as_dict
from keygroups._serializers.pyflink import PICKLED, PickleSerializer
from keygroups._serializers.scalars import BYTES
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    SavepointError,
    UnsupportedKeyTypeError,
)
from keygroups.savepoint._pyflink.python_keys import pickled_key, stored_key
from keygroups.savepoint._state.header import PYTHON_STATE, KeyedHeader, StateDescriptor
from keygroups.savepoint._state.operator_state import OperatorStateEntry
from keygroups.savepoint._state.writing.new_states import (
    KINDS_IN_THREAD,
    MapStateDescriptor,
    NewState,
    StateOfValues,
    TimerServiceDescriptor,
)
from keygroups.state_keys import serializer_of

_STORED_KINDS = {"MAP": "MAP"}  # Process mode: all others are a LIST.
_IN_THREAD = {
    **dict.fromkeys(("BYTE", "SHORT", "INT"), "LONG"),
    "FLOAT": "DOUBLE",
    "SQL_STRING": "STRING",
    "ARRAY": "STRING_ARRAY",
}
"""The names of serializers that thread mode has for others of process mode."""


@dataclass(frozen=True)
class DeclaredOperator:
    """The key type and the states of an operator, as `Operator.as_pyflink` takes them.

    `in_process` says that its job is of process mode, by the names of its states.
    """

    key_type: kt.KeyType | Serializer
    states: tuple[StateOfValues, ...]
    in_process: bool

    def of_header(self, header: KeyedHeader) -> KeyedHeader:
        """Return a header with what is declared in place of what it has."""
        key = self.key(header.key_serializer)
        states = [self.of_state(replace(state, key_serializer=key)) for state in header.states]
        return replace(header, key_serializer=key, states=tuple(states))

    def key(self, stored: Serializer) -> Serializer:
        """Return the serializer of keys as the job has them; raise InvalidTypeError for others."""
        if isinstance(self.key_type, Serializer):
            key = pickled_key(self.in_process)
        elif isinstance(self.key_type, kt.SQL_ROW):
            key = serializer_of(self.key_type)
        else:
            key = stored_key(kt.PYFLINK(self.key_type))
        with suppress(UnsupportedKeyTypeError):  # Nobody here may write the key's snapshot.
            if key.snapshot_bytes() == stored.snapshot_bytes():
                return key
        raise InvalidTypeError(
            f"key_type must be that of the operator's keys, around each of which PyFlink puts a "
            f"row, and which are {stored}, got {self.key_type!r}"
        )

    def of_state(self, stored: StateDescriptor) -> StateDescriptor:
        """Return a state as it is declared, or as it is stored where it is not."""
        in_process = stored.name.startswith(PYTHON_STATE)
        name = stored.name.removeprefix(PYTHON_STATE)
        declared = self._by_name.get(name)
        if declared is None or stored.value_serializer is None:
            return stored
        return (_in_process if in_process else _in_thread)(declared, stored)

    @cached_property
    def _by_name(self) -> dict[str, StateOfValues]:
        return {declared.name: declared for declared in self.states}

    def name_of(self, stored: str) -> str:
        """Return the name of an operator state as the job has it, if it declares one of these."""
        name = stored.removeprefix(PYTHON_STATE)
        return name if name in self._by_name else stored

    def stored_name_of(self, name: str) -> str:
        """Return the name in the files of an operator state."""
        return f"{PYTHON_STATE}{name}" if name in self._by_name else name

    def of_operator_state(self, stored: OperatorStateEntry, base: str) -> OperatorStateEntry:
        """Return a broadcast state with the keys and values that the job has, if it is declared.

        `base` is the folder of the savepoint, for errors.
        """
        name = self.name_of(stored.state)
        declared = self._by_name.get(name)
        if declared is None:
            return stored
        if not isinstance(declared, MapStateDescriptor) or stored.mode != "BROADCAST":
            raise SavepointError(
                f"{base}: operator state {name!r} is of mode {stored.mode}, and declared as a "
                f"{declared.kind}"
            )
        key, value = declared.python_types()
        pairs = stored.elements.items() if isinstance(stored.elements, dict) else stored.elements
        try:
            items = [(key.decode(k), value.decode(v)) for k, v in pairs]
        except (KeyGroupsError, TypeError, ValueError) as error:
            raise SavepointError(
                f"{base}: no entry of broadcast state {name!r}, whose types are {key} and "
                f"{value}: {error}"
            ) from None
        return stored._replace(state=name, elements=as_dict(items))


def declared_operator(
    key_type: object,
    states: Iterable[NewState],
    known: Sequence[StateDescriptor],
    operator_states: Iterable[str],
    label: str,
) -> DeclaredOperator:
    """Return the DeclaredOperator of an operator whose header has the states `known`.

    `operator_states` are the names of its operator states. Raises InvalidValueError where one is
    declared that is not there, InvalidTypeError for another type, and for what is no descriptor.
    """
    if not isinstance(key_type, (kt.KeyType, PickleSerializer)):
        raise InvalidTypeError(
            "key_type must be a key type such as LONG, as in key_by, or PICKLED, got "
            f"{show(key_type)}"
        )
    stored = [*(state.name for state in known), *operator_states]
    names = {name.removeprefix(PYTHON_STATE): None for name in stored}
    declared: dict[str, StateOfValues] = {}
    for new in iterate("states", "descriptors", states):
        if isinstance(new, TimerServiceDescriptor):
            continue  # The header has all of it.
        if not isinstance(new, StateOfValues):
            raise InvalidTypeError(
                f"states must be descriptors such as ValueStateDescriptor, got {show(new)}"
            )
        if new.name not in names:
            raise InvalidValueError(
                f"states must be of {label}, which has {', '.join(names) or 'none'}, got "
                f"{show(new.name)}"
            )
        if new.name in declared:
            raise InvalidValueError(f"states must differ in name, got {show(new.name)} twice")
        declared[new.name] = new
    in_process = any(state.name.startswith(PYTHON_STATE) for state in known)
    operator = DeclaredOperator(key_type, tuple(declared.values()), in_process)
    for state in known:
        operator.of_state(replace(state, key_serializer=operator.key(state.key_serializer)))
    return operator


def _in_process(declared: StateOfValues, stored: StateDescriptor) -> StateDescriptor:
    _check(declared, stored, _STORED_KINDS.get(declared.kind, "LIST"))
    return declared.as_python(stored.key_serializer, stored.namespace_serializer)


def _in_thread(declared: StateOfValues, stored: StateDescriptor) -> StateDescriptor:
    """Return a state of thread mode, of which the header has more types than the job's."""
    _check(declared, stored, KINDS_IN_THREAD.get(declared.kind, "VALUE"))
    types = declared.python_types()
    held = [stored.user_key_serializer, stored.value_serializer][-len(types) :]
    *user_keys, value = [
        _type_in_thread(declared, type_, serializer) for type_, serializer in zip(types, held)
    ]
    return replace(
        stored, value_serializer=value, user_key_serializer=user_keys[0] if user_keys else None
    )


def _type_in_thread(
    declared: StateOfValues, type_: Serializer, stored: Serializer | None
) -> Serializer:
    assert stored is not None
    if stored == BYTES and type_ != BYTES:
        return PICKLED
    if stored.name not in (type_.name, _IN_THREAD.get(type_.name)):
        raise InvalidTypeError(
            f"state {declared.name!r} must be of the types of the savepoint, which has {stored}, "
            f"got {type_}"
        )
    return stored


def _check(declared: StateOfValues, stored: StateDescriptor, kind: str) -> None:
    """Refuse a state that is declared as one of another kind, or with another time to live."""
    if stored.kind != kind:
        raise InvalidValueError(
            f"state {declared.name!r} must be of the kind that the savepoint has, in which it is "
            f"a {stored.kind}, got a {declared.kind}"
        )
    if stored.has_ttl != declared.has_ttl:
        raise InvalidValueError(
            f"has_ttl of state {declared.name!r} must be {stored.has_ttl}, as in the savepoint, "
            f"got {declared.has_ttl}"
        )
