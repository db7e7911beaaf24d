"""The state of an `Operator`: entries of keyed state, elements of operator state, subtasks.

`Operator.entries` yields a `StateEntry` for each entry of keyed state, `Operator.operator_state`
an `OperatorStateEntry` for each operator state of each subtask. `Operator.key_sizes` returns a
`KeySize` for each of the heaviest keys, and `Operator.subtasks` is a tuple of `Subtask`. One
element of operator state is an `OperatorStateElement` where it is edited or compared. The classes
of keys and values are in `keygroups.savepoint.values`.
"""

from keygroups.savepoint._operator import KeySize, Subtask
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
