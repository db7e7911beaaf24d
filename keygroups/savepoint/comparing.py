"""What two savepoints have in common, and what not.

`Savepoint.compare` with another returns a `SavepointComparison`, with an `OperatorComparison` for
each operator; in it is a `StateComparison` for each state, which says how many entries are equal,
changed, only here and only there, and has a few of them, each an `EntryDifference`. Splits of a
source are each a `SplitDifference`, and what else is not the same, such as a parallelism, is a
`Change`. `Savepoint.differences` yields each entry that is not equal, of any number. Formats and
parallelisms may be any. `keygroups.spark.compare_savepoints` compares on executors, and
`keygroups diff OLD NEW` in a shell.
"""

from keygroups.savepoint._comparison.report import (
    Change,
    EntryDifference,
    OperatorComparison,
    SavepointComparison,
    SplitDifference,
    StateComparison,
)

__all__ = [
    "Change",
    "EntryDifference",
    "OperatorComparison",
    "SavepointComparison",
    "SplitDifference",
    "StateComparison",
]
__dir__ = __all__.copy
