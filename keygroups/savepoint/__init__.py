"""Savepoints and checkpoints of Flink, read and written without a JVM.

`read_savepoint` returns a `Savepoint`, whose `operators` are each an `Operator` with its
parallelism, max parallelism and `states`. This writes a savepoint, reads it, changes it, compares
both, and writes it anew with another max parallelism:

>>> from tempfile import mkdtemp
>>> from keygroups.savepoint import SavepointWriter, ValueStateDescriptor
>>> from keygroups.savepoint import change_max_parallelism, read_savepoint
>>> from keygroups.types import LONG, STRING
>>> folder = mkdtemp()
>>> with SavepointWriter(folder + "/old") as writer:
...     counts = [ValueStateDescriptor("count", LONG)]
...     by_user = writer.add_operator("by-user", STRING, counts, 128, parallelism=3, sort=True)
...     by_user.write("count", "ann", 7)
>>> old = read_savepoint(folder + "/old")
>>> old.operator("by-user").get("ann", "count")
7
>>> with SavepointWriter.from_existing_savepoint(old, folder + "/new") as editor:
...     editor.operator("by-user").map_entries("count", lambda entry: entry.value + 1)
>>> new = read_savepoint(folder + "/new")
>>> for difference in old.differences(new):
...     print(difference)
key 'ann': 7 -> 8
>>> report = change_max_parallelism(new, 4096, folder + "/rescaled")
>>> report.operators[0].new_max_parallelism
4096

Below are these two classes, and functions of whole savepoints. The rest is by subject, such as
`help("keygroups.savepoint.writing")`; it can be imported from here too, many of the values aside:

    entries      the state of an operator: entries, operator state, subtasks
    sources      the splits and offsets of a source
    sinks        the transactions of a sink that a restore commits
    values       the classes of keys and values
    sql          the columns in the states of Flink SQL
    storage      the files of a savepoint, and those that nobody needs in a job's folder
    verifying    checks that a savepoint is complete, undamaged, and as Flink looks it up
    comparing    the differences of two savepoints
    restoring    whether another job restores a savepoint, and why not
    summaries    what each state holds: entries, keys, bytes, ages and timers; its growth
    writing      SavepointWriter: a new savepoint
    descriptors  the states of an operator, read or to be written
    pyflink      the types of the state of a PyFlink job
    windows      the windows of an operator to be written
    editing      SavepointEditor: a savepoint made from another
    reports      the edits of a savepoint, and the numbers of entries written

Reading: `Operator.entries` yields the keys and values of keyed state, each a `StateEntry`; `get`
returns the state of one key. `to_arrow`, `to_arrow_batch_reader`, `to_pandas` and `to_polars` give
a state as a table. `key_sizes` returns the heaviest keys, `operator_state` yields operator state,
and `source_splits` returns the offsets at which a source continues, `sink_state` the transactions
that a restore commits. `operator_reports` lists what to look at before a rescale, `html_report`
puts it on a page for a browser, and `describe_sql_state` names the columns in the states of Flink
SQL. Of a PyFlink job `Operator.as_pyflink` gives keys, names and values as the job has them.

Verifying: `Savepoint.verify` reads all of it, and reports damage, keys in key groups that are not
theirs, and windows that no timer clears. Neither `entries` nor `get` looks for these.

Comparing: `Savepoint.compare` and `Savepoint.differences`, whatever the formats and parallelisms.

Restoring: `Savepoint.restore_report` has Flink's verdict about each state and its serializer.

Writing: `SavepointWriter` writes a savepoint that a job starts from; its `add_operator` returns
the writer of one operator.

Changing: `SavepointWriter.from_existing_savepoint` writes a savepoint from another; whatever is
not changed is copied byte for byte. One pass can remove, rename and add operators, remove and
rename states, delete keys, map entries, and change the max parallelism and the format.
`change_max_parallelism` and `convert_to_canonical` do only the last two, to a whole savepoint.
`relocate` puts the new paths of its files into a checkpoint that was copied elsewhere.

Long work reports its progress: `progress` of `read_savepoint` and of writers is a function as
`keygroups.progress` describes it, or True for a bar.

Trust: a savepoint may be anybody's. The paths that its `_metadata` names are opened, read or
copied, only in its own folder; for a checkpoint `chk-N` also in `shared`, `taskowned` and the
checkpoints beside it; and where the caller says so: where `moved` leads, and in what `allow`
names. A file that is not at its path is looked for by its random name in the first three. All else
is refused before it is opened; a link is taken for what it leads to, and chains of URLs and what
is no regular file are refused in any case. Nothing is run, unpickled or instantiated but the
`serializers` that the caller gives.

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
    find damage, misplaced keys, leaks    yes                   no                    no
    changes between two savepoints        yes                   no                    yes
    whether a job restores it, and why    yes                   no                    no
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
    values of another type or class       yes                   rewrite               no
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

`FORMAT.md` beside this module describes the bytes of savepoints, with examples.
"""

from typing import TYPE_CHECKING

from keygroups._old_names import old_names as _old_names
from keygroups._serializers.base import Serializer
from keygroups.savepoint._dumps import read_operator_state_dump
from keygroups.savepoint._edits.relocate import relocate
from keygroups.savepoint._operator import Operator
from keygroups.savepoint._reports.html_report import html_report
from keygroups.savepoint._reports.report import OperatorReport, operator_reports
from keygroups.savepoint._reports.stored_files import job_files, savepoint_files
from keygroups.savepoint._savepoint import Savepoint, read_savepoint
from keygroups.savepoint._writing.conversions import change_max_parallelism, convert_to_canonical
from keygroups.savepoint.comparing import (
    Change,
    EntryDifference,
    OperatorComparison,
    SavepointComparison,
    SplitDifference,
    StateComparison,
)
from keygroups.savepoint.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    TimerServiceDescriptor,
    ValueStateDescriptor,
)
from keygroups.savepoint.editing import (
    DELETE,
    OperatorEditor,
    SavepointEditor,
)
from keygroups.savepoint.entries import (
    KeySize,
    OperatorStateElement,
    OperatorStateEntry,
    StateEntry,
    Subtask,
)
from keygroups.savepoint.pyflink import Pickle
from keygroups.savepoint.reports import (
    OLD_NAMES as _OLD_NAMES,
    DeletedKeys,
    EditedOperator,
    EditedState,
    EditReport,
    UnsearchedPlace,
    WrittenState,
)
from keygroups.savepoint.restoring import OperatorRestore, RestoreReport, StateRestore
from keygroups.savepoint.sinks import (
    BucketState,
    Committable,
    ConnectorCommittable,
    FileCommittable,
    KafkaProducerState,
    KafkaTransaction,
    KafkaWriterState,
    PartFile,
    SinkState,
    UnknownCommittable,
    UnknownWriterState,
)
from keygroups.savepoint.sources import (
    ConnectorSplit,
    FileSplit,
    KafkaOffsets,
    KafkaSplit,
    KinesisSplit,
    SourceSplits,
    SpecialOffset,
    SplitLayout,
    UnknownSplit,
)
from keygroups.savepoint.sql import (
    OperatorId,
    SqlOperatorDescription,
    SqlStateDescription,
    describe_sql_state,
)
from keygroups.savepoint.summaries import (
    KeyGroupGrowth,
    OperatorStateSummary,
    OperatorSummary,
    SavepointGrowth,
    SavepointSummary,
    StateGrowth,
    StateSummary,
    TimeCounts,
)
from keygroups.savepoint.storage import JobFile, JobFiles, SavepointFile
from keygroups.savepoint.values import (
    GlobalWindow,
    KryoEnum,
    KryoFields,
    Pojo,
    Row,
    TimestampData,
    TimeWindow,
    TtlValue,
)
from keygroups.savepoint.verifying import (
    ChannelState,
    FaultCount,
    OperatorVerification,
    SavepointVerification,
    StateFault,
)
from keygroups.savepoint.windows import (
    CountWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from keygroups.savepoint.writing import (
    OperatorWriter,
    SavepointWriter,
    WindowOperatorWriter,
)

__all__ = [
    "DELETE",
    "AggregatingStateDescriptor",
    "BucketState",
    "Change",
    "ChannelState",
    "Committable",
    "ConnectorCommittable",
    "ConnectorSplit",
    "CountWindows",
    "DeletedKeys",
    "EditReport",
    "EditedOperator",
    "EditedState",
    "EntryDifference",
    "EventTimeSessionWindows",
    "FaultCount",
    "FileCommittable",
    "FileSplit",
    "GlobalWindow",
    "JobFile",
    "JobFiles",
    "KafkaOffsets",
    "KafkaProducerState",
    "KafkaSplit",
    "KafkaTransaction",
    "KafkaWriterState",
    "KeyGroupGrowth",
    "KeySize",
    "KinesisSplit",
    "KryoEnum",
    "KryoFields",
    "ListStateDescriptor",
    "MapStateDescriptor",
    "Operator",
    "OperatorComparison",
    "OperatorEditor",
    "OperatorId",
    "OperatorReport",
    "OperatorRestore",
    "OperatorStateElement",
    "OperatorStateEntry",
    "OperatorStateSummary",
    "OperatorSummary",
    "OperatorVerification",
    "OperatorWriter",
    "PartFile",
    "Pickle",
    "Pojo",
    "ProcessingTimeSessionWindows",
    "ReducingStateDescriptor",
    "RestoreReport",
    "Row",
    "Savepoint",
    "SavepointComparison",
    "SavepointEditor",
    "SavepointFile",
    "SavepointGrowth",
    "SavepointSummary",
    "SavepointVerification",
    "SavepointWriter",
    "Serializer",
    "SinkState",
    "SlidingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "SourceSplits",
    "SpecialOffset",
    "SplitDifference",
    "SplitLayout",
    "SqlOperatorDescription",
    "SqlStateDescription",
    "StateComparison",
    "StateDescriptor",
    "StateEntry",
    "StateFault",
    "StateGrowth",
    "StateRestore",
    "StateSummary",
    "Subtask",
    "TimeCounts",
    "TimeWindow",
    "TimerServiceDescriptor",
    "TimestampData",
    "TtlValue",
    "TumblingEventTimeWindows",
    "TumblingProcessingTimeWindows",
    "UnknownCommittable",
    "UnknownSplit",
    "UnknownWriterState",
    "UnsearchedPlace",
    "ValueStateDescriptor",
    "WindowOperatorWriter",
    "WrittenState",
    "change_max_parallelism",
    "convert_to_canonical",
    "describe_sql_state",
    "html_report",
    "job_files",
    "operator_reports",
    "read_operator_state_dump",
    "read_savepoint",
    "relocate",
    "savepoint_files",
]
__dir__ = __all__.copy

if TYPE_CHECKING:
    from keygroups.savepoint.reports import (
        RewriteReport as RewriteReport,
        RewrittenOperator as RewrittenOperator,
        RewrittenState as RewrittenState,
    )
else:
    __getattr__ = _old_names(__name__, _OLD_NAMES)
del TYPE_CHECKING
