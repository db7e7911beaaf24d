"""What was done to a savepoint, whole or in parts.

`SavepointEditor.report`, `change_max_parallelism` and `convert_to_canonical` return an
`EditReport`. It has its operators, and these their states: how many entries were changed, and
where all got a new place, how many each subtask has.
`DeletedKeys` says how much was deleted, and each `UnsearchedPlace` where such keys may be too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from keygroups._old_names import old_names
from keygroups.savepoint._edits.keyed_state import EditedState, WrittenState
from keygroups.savepoint._edits.report import DeletedKeys, EditedOperator, EditReport
from keygroups.savepoint._edits.traces import UnsearchedPlace

__all__ = [
    "DeletedKeys",
    "EditReport",
    "EditedOperator",
    "EditedState",
    "UnsearchedPlace",
    "WrittenState",
]
__dir__ = __all__.copy

OLD_NAMES = {
    "RewriteReport": EditReport,
    "RewrittenOperator": EditedOperator,
    "RewrittenState": WrittenState,
}

if TYPE_CHECKING:
    RewriteReport: TypeAlias = EditReport
    RewrittenOperator: TypeAlias = EditedOperator
    RewrittenState: TypeAlias = WrittenState
else:
    __getattr__ = old_names(__name__, OLD_NAMES)
