"""Savepoints and checkpoints of Flink, read and written without a JVM.

Reading: `read_savepoint` returns a `Savepoint`, whose `operators` are each an `Operator` with its
parallelism, max parallelism and `states`. `Operator.entries` yields the keys and values of keyed
state, each a `StateEntry`; `get` what there is of one key. `to_arrow`, `to_arrow_batch_reader`,
`to_pandas` and `to_polars` give a state as a table. `key_sizes` says which keys are heavy,
`operator_state` yields operator state, and `source_splits` says where a source goes on.
`operator_reports` says what to look at before a rescale, `html_report` puts it on a page for a
browser, and `describe_sql_state` says what the states of Flink SQL hold.

Comparing: `Savepoint.compare` with another returns a `SavepointComparison`, which says of each
state how many entries are equal, changed, only here and only there; `Savepoint.differences` yields
each that is not equal. Formats and parallelisms may be any.

What takes a while tells of its progress: `progress` of `read_savepoint` and of writers, which is a
function as `keygroups.progress` has it, or True for a bar.

Writing: `SavepointWriter` writes a savepoint that a job starts from. `add_operator` takes the
states as the job's own descriptors name them (`ValueStateDescriptor`, `ListStateDescriptor`,
`MapStateDescriptor`, `ReducingStateDescriptor`, `AggregatingStateDescriptor`, and
`TimerServiceDescriptor` for timers) and returns the `OperatorWriter` of their entries and of list,
union and broadcast states. `add_window_operator` takes the windows of the job, such as
`TumblingEventTimeWindows`, and returns the `WindowOperatorWriter` of what is in them. `add_source`
with `KafkaOffsets` says where it goes on. With a savepoint of the job as its `template` the writer
takes ids and types from that, which is how state of Flink SQL is written.

Changing: `SavepointWriter.from_existing_savepoint` writes a savepoint from another, in a
`SavepointEditor`: what is not changed is copied byte for byte, in any format.

- `remove_operator`, `change_operator_identifier` and `add_operator_from` another savepoint;
- `operator` returns the `OperatorEditor` of one: `remove_state`, `rename_state`, `set_ttl`,
  `delete_keys`, `map_entries`, `map_keys`, and of operator state `remove_operator_state`,
  `rename_operator_state`, `map_operator_state`;
- `add_operator` is as in a new savepoint, and `report` says in an `EditReport` what was done, and
  where else deleted keys may be.

`relocate` tells a checkpoint that was copied to another disk or bucket where its files are.
`change_max_parallelism` writes a savepoint anew with another max parallelism,
`convert_to_canonical` in the canonical format. Both return a `RewriteReport`.

What is done here, by Flink's State Processor API (SPA), and of Spark's own state by its readers;
the two by their documents, not run. "rewrite": read all of an operator with the job's classes, and
write it anew.

    capability                            here                  SPA                   Spark
    list operators, parallelisms, sizes   yes, key groups too   savepoint_metadata    yes
    read keyed state, types not declared  yes                   in part, by SQL       yes
    read all kinds of keyed state         yes                   yes                   some kinds
    read SQL rows                         yes                   yes                   -
    read POJOs                            yes                   with classes          -
    read Avro and Kryo's values           yes, others as bytes  with classes          -
    read windows and timers               yes                   yes                   timers
    read list, union, broadcast state     yes                   yes                   -
    read splits and their coordinator     yes                   bytes, no             offsets log
    read times of last access             yes                   no                    -
    read some keys alone                  yes                   keys                  partitions
    changes between two savepoints        yes                   no                    yes
    SQL over state                        on Spark              keyed state           yes
    new savepoint from rows               yes                   yes                   no
    ... times of last access              yes                   clock of the job      -
    ... AGGREGATING                       yes                   yes                   -
    ... timers                            yes                   yes                   -
    ... windows, sessions, count windows  yes                   yes                   -
    ... list, union, broadcast state      yes                   yes                   -
    ... Kafka's offsets                   yes                   list, internals       -
    ... keys: dates, BIG_DEC, BIG_INT     yes                   yes                   -
    ... keys: UUID, ENUM, POJO, Avro      no                    yes                   -
    ... SQL keys and rows                 yes                   by hand               -
    ... for the ids of a SQL job          yes                   by hand               -
    keep the rest of a savepoint          yes                   yes                   no
    drop an operator                      yes                   yes                   no
    rename a uid, give one                yes                   yes                   no
    add an operator, merge two jobs       yes                   add, rewrite          no
    drop or rename a state                yes                   rewrite               no
    delete keys                           yes                   rewrite               no
    map entries, fix a poisoned one       yes                   rewrite               no
    TTL on, off, set anew                 yes                   rewrite               no
    give the state of a key to another    yes                   rewrite               no
    another type of keys                  yes                   rewrite               no
    edit operator state                   yes                   rewrite               no
    rows read, changed, written back      yes                   rewrite               no
    edit on executors                     yes                   rewrite               no
    change max parallelism                yes, bytes kept       rewrite               internal
    another format                        canonical             no                    -
    relocate a checkpoint                 yes                   no                    -
    without a JVM and the job's classes   yes                   no                    no

Not done, and why: what Java's own or the job's classes write as keys is read, and rewritten, but
not made: an ENUM or POJO by the job's class, a UUID by Kryo. ARRAY, MAP and MULTISET of SQL take a
`template`, as their snapshots have Java objects. Native files are those of one backend, and every
backend restores the canonical format.

A savepoint may be anybody's. The paths that its `_metadata` names are opened, read or copied, only
in its own folder; for a checkpoint `chk-N` also in `shared`, `taskowned` and the checkpoints
beside it; and where the caller says so: where `moved` leads, and in what `allow` names. A
file that is not at its path is looked for by its random name in the first three. All else is
refused before it is opened; a link is taken for what it leads to, and chains of URLs and what is
no regular file are refused in any case. Nothing is run, unpickled or instantiated but the
`serializers` that the caller gives.

`FORMAT.md` beside this module describes the bytes of savepoints, with examples.
"""

from keygroups._serializers.base import Serializer
from keygroups._values.java_values import Pojo
from keygroups._values.rows import GlobalWindow, Row, TimeWindow, TtlValue
from keygroups._values.sql import TimestampData
from keygroups.savepoint._comparison.report import (
    Change,
    EntryDifference,
    OperatorComparison,
    SavepointComparison,
    SplitDifference,
    StateComparison,
)
from keygroups.savepoint._edits.editor import OperatorEditor
from keygroups.savepoint._edits.report import DeletedKeys, EditedOperator, EditReport
from keygroups.savepoint._edits.rewriter import EditedState
from keygroups.savepoint._edits.steps import DELETE
from keygroups.savepoint._edits.traces import UnsearchedPlace
from keygroups.savepoint._html_report import html_report
from keygroups.savepoint._operator_writer import OperatorWriter
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
from keygroups.savepoint._state.operator_state import OperatorStateElement, OperatorStateEntry
from keygroups.savepoint._state.writing.new_states import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    TimerServiceDescriptor,
    ValueStateDescriptor,
)
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
from keygroups.savepoint._writer import SavepointEditor, SavepointWriter

__all__ = [
    "DELETE",
    "AggregatingStateDescriptor",
    "Change",
    "CountWindows",
    "DeletedKeys",
    "EditReport",
    "EditedOperator",
    "EditedState",
    "EntryDifference",
    "EventTimeSessionWindows",
    "FileSplit",
    "GlobalWindow",
    "KafkaOffsets",
    "KafkaSplit",
    "KeySize",
    "ListStateDescriptor",
    "MapStateDescriptor",
    "Operator",
    "OperatorComparison",
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
    "SavepointComparison",
    "SavepointEditor",
    "SavepointWriter",
    "Serializer",
    "SlidingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "SourceSplits",
    "SpecialOffset",
    "SplitDifference",
    "SqlOperatorDescription",
    "SqlStateDescription",
    "StateComparison",
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
    "UnsearchedPlace",
    "ValueStateDescriptor",
    "WindowOperatorWriter",
    "change_max_parallelism",
    "convert_to_canonical",
    "describe_sql_state",
    "html_report",
    "operator_reports",
    "read_savepoint",
    "relocate",
]
__dir__ = __all__.copy
