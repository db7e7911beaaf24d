"""What an `Operator` has: entries of keyed state, elements of operator state, subtasks.

`Operator.entries` yields a `StateEntry` for each entry, `Operator.operator_state` an
`OperatorStateEntry` for each element; `Operator.key_sizes` returns a `KeySize` for each of the
heaviest keys, and `Operator.subtasks` is a tuple of `Subtask`. An `OperatorStateElement` is what a
function of `OperatorEditor.map_operator_state` is given. Which classes keys and values are, is in
`keygroups.savepoint.values`. All are tuples with names, so that they can be unpacked and sorted.
"""

from keygroups.savepoint._savepoint import (
    KeySize,
    Subtask,
)
from keygroups.savepoint._state.entries import (
    StateEntry,
)
from keygroups.savepoint._state.operator_state import (
    OperatorStateElement,
    OperatorStateEntry,
)

__all__ = [
    "KeySize",
    "OperatorStateElement",
    "OperatorStateEntry",
    "StateEntry",
    "Subtask",
]
__dir__ = __all__.copy
