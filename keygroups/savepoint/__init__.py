"""Savepoints and checkpoints of Flink, read and written without a JVM.

`read_savepoint` reads what a job holds: its operators with their parallelism, max parallelism and
state, the keys and values of keyed state and how heavy they are, and operator state.
`SavepointWriter` writes a savepoint that a job starts from; `change_max_parallelism` writes one
anew with another max parallelism, `convert_to_canonical` in the canonical format.

A savepoint may be anybody's. The paths that its `_metadata` names are opened, read or copied, only
in its own folder; for a checkpoint `chk-N` also in `shared`, `taskowned` and the checkpoints
beside it; and where the caller says so: where `moved` leads, and in what `allow` names. All else
is refused before it is opened; a link is taken for what it leads to, and chains of URLs and what
is no regular file are refused in any case. Nothing is run, unpickled or instantiated.
"""

from keygroups._serializers.base import Serializer
from keygroups._serializers.sql_rows import TimestampData
from keygroups._values.rows import GlobalWindow, Row, TimeWindow, TtlValue
from keygroups.savepoint._report import OperatorReport, operator_reports
from keygroups.savepoint._rewrite import change_max_parallelism, convert_to_canonical
from keygroups.savepoint._rewriter import (
    OperatorRewriter,
    RewriteReport,
    RewrittenOperator,
    RewrittenState,
    SavepointRewriter,
)
from keygroups.savepoint._savepoint import KeySize, Operator, Savepoint, Subtask, read_savepoint
from keygroups.savepoint._state.entries import StateEntry
from keygroups.savepoint._state.entry_encoder import EncodedEntry, EntryEncoder
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.new_states import (
    ListStateDescriptor,
    MapStateDescriptor,
    NewState,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from keygroups.savepoint._state.operator_state import OperatorStateEntry
from keygroups.savepoint._tasks.read import ReadTask
from keygroups.savepoint._tasks.rewrite import RewriteTask
from keygroups.savepoint._tasks.write import WriteTask, WrittenFile
from keygroups.savepoint._writer import OperatorWriter, SavepointWriter

__all__ = [
    "EncodedEntry",
    "EntryEncoder",
    "GlobalWindow",
    "KeySize",
    "ListStateDescriptor",
    "MapStateDescriptor",
    "NewState",
    "Operator",
    "OperatorReport",
    "OperatorRewriter",
    "OperatorStateEntry",
    "OperatorWriter",
    "ReadTask",
    "ReducingStateDescriptor",
    "RewriteReport",
    "RewriteTask",
    "RewrittenOperator",
    "RewrittenState",
    "Row",
    "Savepoint",
    "SavepointRewriter",
    "SavepointWriter",
    "Serializer",
    "StateDescriptor",
    "StateEntry",
    "Subtask",
    "TimeWindow",
    "TimestampData",
    "TtlValue",
    "ValueStateDescriptor",
    "WriteTask",
    "WrittenFile",
    "change_max_parallelism",
    "convert_to_canonical",
    "operator_reports",
    "read_savepoint",
]
__dir__ = __all__.copy
