"""Savepoints and checkpoints of Flink, read and written without a JVM.

Reading: `read_savepoint` returns a `Savepoint`, whose `operators` are each an `Operator` with its
parallelism, max parallelism and `states`. `Operator.entries` yields the keys and values of keyed
state, each a `StateEntry`; `key_sizes` says which keys are heavy, `operator_state` yields operator
state, and `source_splits` says where a source goes on. `operator_reports` says what to look at
before a rescale, `describe_sql_state` what the states of Flink SQL hold.

Writing: `SavepointWriter` writes a savepoint that a job starts from. `add_operator` takes the
states as the job's own descriptors name them (`ValueStateDescriptor`, `ListStateDescriptor`,
`MapStateDescriptor`, `ReducingStateDescriptor`, `AggregatingStateDescriptor`, and
`TimerServiceDescriptor` for timers) and returns the `OperatorWriter` of their entries.
`add_window_operator` takes the windows of the job, such as `TumblingEventTimeWindows`, and returns
the `WindowOperatorWriter` of what is in them. With a savepoint of the job as its `template` the
writer takes ids and types from that, which is how state of Flink SQL is written.
`add_operator` takes list, union and broadcast states too; `add_source` with `KafkaOffsets` says
where a source goes on.

Changing: `SavepointWriter.from_existing_savepoint` writes a savepoint from another, in a
`SavepointEditor`: operators that are not changed are copied as they are, in any format.

- `remove_operator`, `change_operator_identifier` and `add_operator_from` another savepoint;
- `operator` returns the `OperatorEditor` of one: `remove_state`, `rename_state`, `set_ttl`,
  `delete_keys`, `map_entries`;
- `add_operator` is as in a new savepoint, and `report` says in an `EditReport` what was done.

`relocate` tells a checkpoint that was copied to another disk or bucket where its files are.
`change_max_parallelism` writes a savepoint anew with another max parallelism,
`convert_to_canonical` in the canonical format. Both return a `RewriteReport`.

A savepoint may be anybody's. The paths that its `_metadata` names are opened, read or copied, only
in its own folder; for a checkpoint `chk-N` also in `shared`, `taskowned` and the checkpoints
beside it; and where the caller says so: where `moved` leads, and in what `allow` names. All else
is refused before it is opened; a link is taken for what it leads to, and chains of URLs and what
is no regular file are refused in any case. Nothing is run, unpickled or instantiated but the
`serializers` that the caller gives.

`FORMAT.md` beside this module describes the bytes of savepoints, with examples.
"""

from keygroups._serializers.base import Serializer
from keygroups._values.java_values import Pojo
from keygroups._values.rows import GlobalWindow, Row, TimeWindow, TtlValue
from keygroups._values.sql import TimestampData
from keygroups.savepoint._edits.editor import OperatorEditor
from keygroups.savepoint._edits.operator_state import OperatorStateElement
from keygroups.savepoint._edits.report import DeletedKeys, EditedOperator, EditReport
from keygroups.savepoint._edits.rewriter import EditedState
from keygroups.savepoint._edits.steps import DELETE
from keygroups.savepoint._edits.traces import KeyTrace
from keygroups.savepoint._relocate import relocate
from keygroups.savepoint._report import OperatorReport, operator_reports
from keygroups.savepoint._rewrite import change_max_parallelism, convert_to_canonical
from keygroups.savepoint._rewriter import RewriteReport, RewrittenOperator, RewrittenState
from keygroups.savepoint._savepoint import KeySize, Operator, Savepoint, Subtask, read_savepoint
from keygroups.savepoint._sources.file_splits import FileSplit
from keygroups.savepoint._sources.kafka import KafkaOffsets, KafkaSplit, SpecialOffset
from keygroups.savepoint._sources.source_splits import SourceSplits, UnknownSplit
from keygroups.savepoint._sql_state import (
    SqlOperatorDescription,
    SqlStateDescription,
    describe_sql_state,
)
from keygroups.savepoint._state.entries import StateEntry
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.new_states import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    TimerServiceDescriptor,
    ValueStateDescriptor,
)
from keygroups.savepoint._state.operator_state import OperatorStateEntry
from keygroups.savepoint._windows.assigners import (
    CountWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from keygroups.savepoint._windows.window_writer import WindowOperatorWriter
from keygroups.savepoint._writer import OperatorWriter, SavepointEditor, SavepointWriter

__all__ = [
    "DELETE",
    "AggregatingStateDescriptor",
    "CountWindows",
    "DeletedKeys",
    "EditReport",
    "EditedOperator",
    "EditedState",
    "EventTimeSessionWindows",
    "FileSplit",
    "GlobalWindow",
    "KafkaOffsets",
    "KafkaSplit",
    "KeySize",
    "KeyTrace",
    "ListStateDescriptor",
    "MapStateDescriptor",
    "Operator",
    "OperatorEditor",
    "OperatorReport",
    "OperatorStateElement",
    "OperatorStateEntry",
    "OperatorWriter",
    "Pojo",
    "ProcessingTimeSessionWindows",
    "ReducingStateDescriptor",
    "RewriteReport",
    "RewrittenOperator",
    "RewrittenState",
    "Row",
    "Savepoint",
    "SavepointEditor",
    "SavepointWriter",
    "Serializer",
    "SlidingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "SourceSplits",
    "SpecialOffset",
    "SqlOperatorDescription",
    "SqlStateDescription",
    "StateDescriptor",
    "StateEntry",
    "Subtask",
    "TimeWindow",
    "TimerServiceDescriptor",
    "TimestampData",
    "TtlValue",
    "TumblingEventTimeWindows",
    "TumblingProcessingTimeWindows",
    "UnknownSplit",
    "ValueStateDescriptor",
    "WindowOperatorWriter",
    "change_max_parallelism",
    "convert_to_canonical",
    "describe_sql_state",
    "operator_reports",
    "read_savepoint",
    "relocate",
]
__dir__ = __all__.copy
