"""Templates: savepoints of the job that give a new one ids, types and parallelisms, no entry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from keygroups._checks import check_parallelisms, show
from keygroups._serializers.base import Serializer
from keygroups.errors import InvalidValueError
from keygroups.savepoint._edits.merged_header import MergedHeader, merged_header
from keygroups.savepoint._metadata.handles import OperatorMetadata, operator_id_of
from keygroups.savepoint._operator import Operator
from keygroups.savepoint._savepoint import Savepoint
from keygroups.savepoint._state.header import StateDescriptor, write_keyed_header
from keygroups.savepoint._state.writing.new_states import (
    NewState,
    TimerServiceDescriptor,
    described_states,
    key_to_write,
)
from keygroups.types import KeyType


class Template:
    """An operator of a savepoint of the job, after which a new one is made.

    Arguments of the caller have to agree with it. The snapshots of serializers are copied byte by
    byte, so that they may be ones that only Flink writes.
    """

    def __init__(self, savepoint: Savepoint, name: str) -> None:
        self._path = savepoint.path
        self._operator: Operator = savepoint.operator(name)

    def parallelisms(
        self, max_parallelism: int | None, parallelism: int | None
    ) -> tuple[int, int]:
        """Return max parallelism and parallelism, the template's by default.

        Raises InvalidValueError for another max parallelism than the template's.
        """
        known = self._operator
        groups, subtasks = check_parallelisms(
            known.max_parallelism if max_parallelism is None else max_parallelism,
            known.parallelism if parallelism is None else parallelism,
        )
        if groups != known.max_parallelism:
            raise InvalidValueError(
                f"max_parallelism must be {known.max_parallelism} as {self._name}, got {groups}"
            )
        return groups, subtasks

    def keyed_states(
        self,
        key_type: KeyType | Serializer | None,
        states: Iterable[NewState | TimerServiceDescriptor] | None,
        has_operator_state: bool,
    ) -> tuple[bytes, tuple[StateDescriptor, ...]]:
        """Return a header and the states in it, by default all of the template's.

        Both are empty for an operator that has operator state alone. Raises InvalidValueError for
        a key type or a state that is not the template's.
        """
        if has_operator_state and key_type is None and not self._operator.states:
            return b"", ()
        header = self._header()
        key = header.states[0].key_serializer
        if key_type is not None:
            wanted = key_to_write("key_type", key_type)
            if wanted != key:
                raise InvalidValueError(f"key_type must be {key} as {self._name}, got {wanted}")
        if states is None:
            return header.data, header.states
        known = {state.name: number for number, state in enumerate(header.states)}
        chosen = []
        for state in described_states(states, key):
            number = known.get(state.name)
            if number is None:
                raise InvalidValueError(
                    f"states must be of {', '.join(known)} as {self._name}, got {show(state.name)}"
                )
            if state != header.states[number]:
                raise InvalidValueError(
                    f"states must be as {self._name}, {header.states[number]}, got {state}"
                )
            chosen.append(number)
        state_bytes = [header.state_bytes[number] for number in chosen]
        return (
            write_keyed_header(header.key_bytes, state_bytes),
            tuple(header.states[number] for number in chosen),
        )

    @property
    def _name(self) -> str:
        return f"in operator {self._operator.label} of the template {self._path}"

    def _header(self) -> MergedHeader:
        if not self._operator.states:
            raise InvalidValueError(
                f"uid must be of an operator with keyed state in the template, and there is none "
                f"{self._name}, which tells of state once its job has made it: run the job on a "
                "row, and take a savepoint of that"
            )
        return merged_header(self._operator)


def named_as(
    olds: Mapping[str, OperatorMetadata], new: OperatorMetadata, uid: str
) -> OperatorMetadata:
    """Return a new operator with its uid, and with the name of a template's operator of its id.

    A `uid` that it is only called by, as by its name in the template, is not written.
    """
    old = olds.get(new.operator_id)
    if old is None:
        return replace(new, uid=uid)
    is_uid = operator_id_of(uid) == new.operator_id
    return replace(new, name=old.name, uid=uid if is_uid else old.uid)
