"""What was done to a savepoint: what an edit changed, and what was written anew.

`SavepointEditor.report` returns an `EditReport`; `change_max_parallelism` and
`convert_to_canonical` return a `RewriteReport`. Both have their operators, and these their states.
`DeletedKeys` says how much was deleted, and each `UnsearchedPlace` where such keys may be too.
"""

from keygroups.savepoint._edits.report import DeletedKeys, EditedOperator, EditReport
from keygroups.savepoint._edits.rewriter import EditedState
from keygroups.savepoint._edits.traces import UnsearchedPlace
from keygroups.savepoint._rewriting.rewriter import (
    RewriteReport,
    RewrittenOperator,
    RewrittenState,
)

__all__ = [
    "DeletedKeys",
    "EditReport",
    "EditedOperator",
    "EditedState",
    "RewriteReport",
    "RewrittenOperator",
    "RewrittenState",
    "UnsearchedPlace",
]
__dir__ = __all__.copy
