"""The state of an `Operator`: entries of keyed state, elements of operator state, subtasks.

`Operator.entries` yields a `StateEntry` for each entry of keyed state, `Operator.operator_state`
an `OperatorStateEntry` for each operator state of each subtask. `Operator.key_sizes` returns a
`KeySize` for each of the heaviest keys, and `Operator.subtasks` is a tuple of `Subtask`. One
element of operator state is an `OperatorStateElement` where it is edited or compared. The classes
of keys and values are in `keygroups.savepoint.values`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from keygroups._checks import record_repr
from keygroups.key_group_range import KeyGroupRange
from keygroups.savepoint._state.entries import StateEntry
from keygroups.savepoint._state.operator_state import OperatorStateElement, OperatorStateEntry

__all__ = [
    "KeySize",
    "OperatorStateElement",
    "OperatorStateEntry",
    "StateEntry",
    "Subtask",
]
__dir__ = __all__.copy


class Subtask(NamedTuple):
    """The state that one subtask wrote: its key groups, None without keyed state, and its bytes.

    The bytes are those of keyed and operator state, of RocksDB only the SST files;
    `Operator.in_flight_data` has those of an unaligned checkpoint besides.
    """

    subtask_index: int
    key_groups: KeyGroupRange | None
    bytes: int
    is_finished: bool


class KeySize(NamedTuple):
    """The numbers of bytes and of entries of keyed state that a key has in one subtask."""

    key: Any
    key_group: int
    subtask: int
    entries: int
    bytes: int

    def __repr__(self) -> str:
        return record_repr(self)
