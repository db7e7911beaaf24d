"""Every public function, class and method of the core, once, for the tests that go over all.

A new one is registered here: in REGISTRY with what makes its cost grow, or why nothing does, and
in ARGUMENTS with what each of its parameters takes. A class that only functions return is in
RECORDS; an object with methods is in OBJECTS, its methods in REGISTRY.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from decimal import Decimal
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pytest

import keygroups
from keygroups import (
    KeyGroupLoad,
    KeyGroupRange,
    LocalKeyBy,
    RescalePlan,
    SubtaskCounts,
    SubtaskKeySelector,
    infer_routing,
    partitioners,
    suggest_max_parallelism,
    types,
)
from keygroups.binary_row import binary_row
from keygroups.explain import hash_exchanges
from keygroups.flink_exceptions import explain_exception
from keygroups.job import Job, SubtaskReads, Vertex
from keygroups.key_group_range import compute_operator_indexes_for_key_group_range
from keygroups.load import evenness
from keygroups.logical_types import parse_logical_type
from keygroups.operator_state import (
    redistribute_list_state,
    redistribute_operator_state,
    split_distribute_order,
)
from keygroups.reports import RescaleReport
from keygroups.savepoint import (
    EventTimeSessionWindows,
    KafkaOffsets,
    KryoEnum,
    KryoFields,
    ListStateDescriptor,
    MapStateDescriptor,
    Operator,
    OperatorEditor,
    ReducingStateDescriptor,
    Savepoint,
    SavepointComparison,
    SavepointEditor,
    SavepointGrowth,
    SavepointSummary,
    SavepointWriter,
    SlidingEventTimeWindows,
    TimerServiceDescriptor,
    TimeWindow,
    ValueStateDescriptor,
    change_max_parallelism,
    convert_to_canonical,
    describe_sql_state,
    html_report,
    operator_reports,
    read_operator_state_dump,
    read_savepoint,
    relocate,
    savepoint_files,
)
from keygroups.source_partitions import (
    partition_for_key,
    partitions_of_key_groups,
    split_owner,
)
from keygroups.state_keys import (
    BYTES,
    VOID_NAMESPACE,
    CompositeKeySerializer,
    Serializer,
    serializer_of,
)
from keygroups.testing import assert_reaches_all, assert_spread, assert_subtask, keys
from keygroups.types import (
    BIG_DEC,
    BIG_INT,
    DOUBLE,
    INT,
    LIST,
    LONG,
    MAP,
    ROW,
    SET,
    SQL_ROW,
    STRING,
    TUPLE,
)
from support.bytes import growing_savepoints as gs
from support.bytes import savepoint_bytes as sb
from support.bytes.real_savepoints import point
from support.bytes.sample_savepoints import (
    NEW_STATES,
    NewPath,
    operator_writer,
    savepoint_folder,
    window_writer,
    written_file,
    written_folder,
)
from support.inside.savepoints import OutputFolder


@dataclass(frozen=True)
class Registered:
    """What tests know of a public callable, beside the names of its parameters.

    `grows` is a call whose cost grows with a number, and `more` has others, by what they add;
    `constant` says why there is none. `arguments` are valid ones where those of ARGUMENTS are not.
    """

    grows: Callable[[int], object] | None = None
    more: Mapping[str, Callable[[int], object]] = field(default_factory=dict)
    constant: str = ""
    arguments: Mapping[str, list[Any]] = field(default_factory=dict)


def plan_text(exchanges: int) -> str:
    exchange = """   :- Exchange(distribution=[hash[a]])
   :  +- TableSourceScan(table=[[t]], fields=[a])
"""
    last = exchange.replace(":-", "+-").replace(":", " ")
    union = "+- Union(all=[true], union=[a])\n" + exchange * (exchanges - 1) + last
    top = "GroupAggregate(groupBy=[a], select=[a])"
    return f"== Optimized Execution Plan ==\n{top}\n{union}"


def plan_of_groups(count: int) -> str:
    """Return the plan of so many aggregates, each with the state of `sql_operator`."""
    select = "k, COUNT(*) AS n, SUM(i) AS i, MAX(s) AS s"
    groups = f"""   :- GroupAggregate(groupBy=[k], select=[{select}])
   :  +- Exchange(distribution=[hash[k]])
   :     +- TableSourceScan(table=[[t]], fields=[k, i, s])
"""
    last = groups.replace(":-", "+-").replace(":", " ")
    union = "+- Union(all=[true], union=[k, n, i, s])\n" + groups * (count - 1) + last
    return f"Sink(table=[t], fields=[k, n, i, s])\n{union}"


@lru_cache
def sql_operator() -> Operator:
    operators = point("2.3.0-sqlheap-canonical").read().operators
    [aggregate] = [one for one in operators if one.name == "GroupAggregate[4]"]
    return aggregate


def row_type(fields: int) -> str:
    return f"ROW<{''.join(f'a{number} INT, ' for number in range(fields))}b INT>"


def names(count: int) -> list[str]:
    """Return names that do not share a bucket of a HashMap of up to 4096."""
    return [chr(ord("\u1000") + i) for i in range(count)]


def buffered(count: int) -> LocalKeyBy[int, int]:
    buffer: LocalKeyBy[int, int] = LocalKeyBy(2**31 - 1, max)
    buffer.restore([(i, i) for i in range(count)])
    return buffer


def failed(run: Callable[[], object]) -> None:
    with pytest.raises(AssertionError):
        run()


STRINGS = CompositeKeySerializer(128, STRING, STRING, STRING)
STRING_LIST = serializer_of(LIST(STRING))
LISTS = CompositeKeySerializer(128, LIST(STRING))


def operator_of(entries: int, uid: str = "by-int") -> Operator:
    return read_savepoint(savepoint_folder(entries)).operator(uid)


def declared(n: int) -> Operator:
    """Declare as many states as a PyFlink job may."""
    states = [ValueStateDescriptor(f"s{number}", INT) for number in range(n)]
    return pyflink_savepoint(n).operator("a").as_pyflink(INT, states)


def pyflink_savepoint(n: int = 1) -> Savepoint:
    """Write as many states of a PyFlink job."""
    states = [ValueStateDescriptor(f"s{number}", INT) for number in range(n)]
    folder = os.fspath(NewPath())
    with SavepointWriter(folder) as writer:
        writer.add_operator("a", types.PYFLINK(INT), states, 8, 2).write("s0", 1, 5)
    return read_savepoint(folder)


def write_entries(n: int) -> None:
    with SavepointWriter(NewPath()) as writer:
        operator = operator_writer(writer)
        for user_key in range(n):
            operator.write("cities", 1, 5, str(user_key))
        operator.close()


def write_unsorted(n: int) -> None:
    states = [ValueStateDescriptor("count", LONG)]
    with SavepointWriter(NewPath()) as writer:
        operator = writer.add_operator("a", INT, states, 128, 3, sort=True)
        for key in range(n, 0, -1):
            operator.write("count", key, 5)


def write_table(n: int) -> None:
    pa = pytest.importorskip("pyarrow")
    states = [ValueStateDescriptor("count", LONG)]
    operator = SavepointWriter(NewPath()).add_operator("a", INT, states, 128, 3, sort=True)
    operator.write_table("count", pa.table({"key": range(n), "value": range(n)}))


def broadcast_one_by_one(n: int) -> None:
    rules = MapStateDescriptor("rules", INT, INT)
    operator = SavepointWriter(NewPath()).add_operator(
        "a", None, [], 128, 3, broadcast_states=[rules]
    )
    for key in range(n):
        operator.write_operator_state("rules", {key: 5})


def kafka_offsets(partitions: int) -> KafkaOffsets:
    return KafkaOffsets({("a", number): 5 for number in range(partitions)})


@lru_cache
def source_operator(partitions: int) -> Operator:
    path = NewPath().__fspath__()
    with SavepointWriter(path) as writer:
        writer.add_source("a", kafka_offsets(partitions), 128, 3)
    return read_savepoint(path).operator("a")


def sink_operator(writers: int) -> Operator:
    """Return an operator with the state of so many writers of another sink than Kafka's."""
    path = NewPath().__fspath__()
    with SavepointWriter(path) as writer:
        states = [ListStateDescriptor("writer_raw_states", BYTES)]
        operator = writer.add_operator("out", None, None, 128, 3, list_states=states)
        operator.write_operator_state("writer_raw_states", [b"\0\0\0\7\0\0\0\1?"] * writers)
    return read_savepoint(path).operator("out")


def edited(folder: str, verb: str = "", *arguments: Any) -> SavepointEditor:
    """Write a savepoint from another, with an edit."""
    with SavepointWriter.from_existing_savepoint(folder, NewPath()) as editor:
        if verb:
            getattr(editor, verb)(*arguments)
    return editor


def as_it_is(element: Any) -> Any:
    return element


def edited_operator_state(verb: str, arguments: Sequence[Any], elements: int) -> None:
    old = savepoint_folder(elements)
    with SavepointWriter.from_existing_savepoint(old, NewPath()) as editor:
        getattr(editor.operator("source"), verb)(*arguments)


def edited_of(verb: str, arguments: Sequence[Any], operators: int) -> SavepointEditor:
    return edited(savepoint_folder(1, operators), verb, *arguments)


def keyed_anew(verb: str, arguments: Sequence[Any], operators: int) -> SavepointEditor:
    """Edit so many operators, each with a key in its key group."""
    old = os.fspath(NewPath())
    with SavepointWriter(old) as writer:
        for number in range(operators):
            states = [ValueStateDescriptor("count", LONG)]
            writer.add_operator(f"{number}", INT, states, 128, parallelism=1).write("count", 5, 7)
    return edited(old, verb, *arguments)


def all_rows(batch: Any) -> Any:
    return batch.select(["row", "value"])


def edited_keyed_state(verb: str, n: int) -> SavepointEditor:
    """Edit the keyed state of so many entries."""
    arguments: dict[str, list[Any]] = {
        "remove_state": ["tags"],
        "rename_state": ["count", "number"],
        "set_ttl": ["count", True, 1_700_000_000_000],
        "delete_keys": [range(0, n, 2)],
        "map_entries": ["count", lambda entry: entry._replace(key=-entry.key - 1)],
        "map_batches": ["count", all_rows],
        "map_keys": [str, STRING],
    }
    with SavepointWriter.from_existing_savepoint(written_folder(n), NewPath()) as editor:
        getattr(editor.operator("by-int"), verb)(*arguments[verb])
    return editor


def mapped_timers(n: int) -> None:
    """Give so many timers another time."""
    old = os.fspath(NewPath())
    with SavepointWriter(old) as writer:
        timers = writer.add_operator("by-int", INT, [TimerServiceDescriptor()], 128, 3, sort=True)
        for key in range(n):
            timers.write_timer(key, 5)
    with SavepointWriter.from_existing_savepoint(old, NewPath()) as editor:
        editor.operator("by-int").map_timers(USER_TIMERS, lambda timer: (timer.timestamp or 0) + 1)


def converted_counts(n: int) -> None:
    """Give the values of so many entries another type."""
    with SavepointWriter.from_existing_savepoint(written_folder(n), NewPath()) as editor:
        editor.operator("by-int").convert_state("count", FLOATS, float)


def moved_offsets(partitions: int) -> None:
    """Give so many partitions of a source another offset."""
    old = os.fspath(NewPath())
    offsets = {("clicks", number): 4711 for number in range(partitions)}
    with SavepointWriter(old) as writer:
        writer.add_source("clicks", KafkaOffsets(offsets), 128, parallelism=2)
    with SavepointWriter.from_existing_savepoint(old, NewPath()) as editor:
        editor.operator("clicks").set_offsets(dict.fromkeys(offsets, 7))


def removed_topics(topics: int) -> None:
    """Remove so many topics of a source, which has one more."""
    old = os.fspath(NewPath())
    names = [f"clicks-{number}" for number in range(topics + 1)]
    with SavepointWriter(old) as writer:
        offsets = KafkaOffsets({(name, 0): 5 for name in names})
        writer.add_source("clicks", offsets, 128, parallelism=2)
    with SavepointWriter.from_existing_savepoint(old, NewPath()) as editor:
        editor.operator("clicks").remove_topics(names[1:])


def deleted_one_by_one(n: int) -> None:
    with SavepointWriter.from_existing_savepoint(written_folder(), NewPath()) as editor:
        for key in range(n):
            editor.operator("by-int").delete_keys([key])


def relocated(folder: str) -> Savepoint:
    return relocate(folder, folder)


@lru_cache
def summary_of_one() -> SavepointSummary:
    return read_savepoint(savepoint_folder()).summary()


def compared(folder: str) -> SavepointComparison:
    return read_savepoint(savepoint_folder()).compare(read_savepoint(folder))


def write_sessions(n: int) -> None:
    windows = window_writer()
    for number in range(n):
        windows.write(1, TimeWindow(100 * number, 100 * number + 50), 5)


def plan_of(n: int) -> RescalePlan:
    return RescalePlan(n, n // 3, n // 2)


def load_of(n: int) -> KeyGroupLoad:
    return KeyGroupLoad(n, [i * 7919 % 104729 for i in range(n)])


@lru_cache
def dump_of(elements: int) -> Path:
    """Write the state of an operator with so many elements in a list."""
    options = {"OPERATOR_STATE_DISTRIBUTION_MODE": "UNION"}
    serializer = {"VALUE_SERIALIZER": sb.simple("Long")}
    header = sb.operator_header([sb.meta_info("list", 1, options, serializer)], [])
    offsets = [len(header) + 8 * number for number in range(elements)]
    handle = sb.operator_state([("list", 1, offsets)], sb.inline(header + bytes(8 * elements)))
    path = Path(os.fspath(NewPath()))
    path.write_bytes(sb.i32(3) + b"\0" + sb.i32(0, 1) + handle + sb.i32(0, 0, 0, 0))
    return path


def read_split(version: int, cursor: object) -> dict[str, object]:
    return {}


USER_TIMERS = "_timer_state/event_user-timers"
FLOATS = ValueStateDescriptor("count", DOUBLE)
# What functions return; nobody makes one by hand, and making one checks nothing.
RECORDS = {
    "KeyGroupGrowth",
    "OperatorStateSummary",
    "OperatorSummary",
    "SavepointGrowth",
    "SavepointSummary",
    "StateGrowth",
    "StateSummary",
    "TimeCounts",
    "Change",
    "ChannelState",
    "CompletedCheckpoint",
    "DeletedKeys",
    "EditReport",
    "EditedOperator",
    "EditedState",
    "EntryDifference",
    "HotKey",
    "HotKeyGroup",
    "HotSubtask",
    "Job",
    "KeySize",
    "ExplainedException",
    "KeyTrace",
    "UnsearchedPlace",
    "LogicalType",
    "ModuloComparison",
    "FaultCount",
    "FileSplit",
    "Committable",
    "ConnectorCommittable",
    "ConnectorSplit",
    "KafkaSplit",
    "KafkaTransaction",
    "KafkaProducerState",
    "KafkaWriterState",
    "BucketState",
    "FileCommittable",
    "PartFile",
    "SinkState",
    "UnknownCommittable",
    "UnknownWriterState",
    "KinesisSplit",
    "Operator",
    "Pickle",
    "OperatorComparison",
    "OperatorEditor",
    "OperatorReport",
    "OperatorStateElement",
    "OperatorStateEntry",
    "OperatorWriter",
    "Pojo",
    "PointwiseEdge",
    "Recommendation",
    "Recommendations",
    "Cause",
    "Suggestion",
    "Suggestions",
    "Progress",
    "RescalePiece",
    "WrittenState",
    "RoutingCandidate",
    "RoutingInference",
    "SavepointEditor",
    "Row",  # this and TimeWindow are checked where they are written
    "Savepoint",
    "SavepointComparison",
    "SavepointVerification",
    "OperatorVerification",
    "JobFile",
    "JobFiles",
    "SavepointFile",
    "RestoreReport",
    "OperatorRestore",
    "StateRestore",
    "StateFault",
    "Serializer",
    "SkewReport",
    "SourceSplits",
    "SpecialOffset",
    "SplitDifference",
    "SqlOperatorDescription",
    "SqlStateDescription",
    "StateComparison",
    "StateDescriptor",
    "StateEntry",
    "StateKey",
    "Subtask",
    "SubtaskDetail",
    "SubtaskReads",
    "SubtaskRow",
    "SubtaskSkew",
    "TimeWindow",
    "WindowOperatorWriter",
    "TimestampData",
    "TtlValue",
    "UnknownSplit",
    "Vertex",
    "VertexSkew",
}
# What they do is that of pandas, Polars and Matplotlib, where these are installed.
OF_OTHER_LIBRARIES = {"plot", "plot_key_groups", "to_pandas", "to_polars"}
VERTEX = Vertex("1" * 32, "by-user", "RUNNING", 1, 128, True, (SubtaskReads(0, "RUNNING", 5, 60),))
# Objects whose methods are driven, from subtask keys to key types.
OBJECTS: list[Callable[[], Any]] = [
    lambda: KeyGroupLoad(8, [1] * 8),
    lambda: SubtaskCounts(8, [3, 1]),
    lambda: KeyGroupRange(43, 85),
    lambda: RescalePlan(8, 3, 4),
    lambda: LocalKeyBy(3, max),
    lambda: keygroups.SubtaskKeySelector(8, 4),
    lambda: keygroups.trace_key("a", 8, 4),
    lambda: Job("http://localhost", "0" * 32, "clicks", "RUNNING", (VERTEX,)),
    lambda: partitioners.RebalancePartitioner(4, 0),
    lambda: partitioners.RescalePartitioner(4),
    lambda: partitioners.ShufflePartitioner(4, lambda high: 0),
    lambda: partitioners.CustomPartitionerWrapper(4, lambda key, parallelism: key),
    lambda: partitioners.KeyGroupStreamPartitioner(4, 8),
    lambda: TUPLE(INT, STRING),
    lambda: CompositeKeySerializer(128, INT, STRING, STRING),
    lambda: read_savepoint(savepoint_folder()),
    lambda: read_savepoint(savepoint_folder()).operator("by-int"),
    lambda: source_operator(3),
    lambda: SavepointGrowth.of([summary_of_one()] * 2),
    lambda: SavepointWriter(NewPath()),
    lambda: SavepointWriter.from_existing_savepoint(savepoint_folder(), NewPath()),
    lambda: OperatorEditor(read_savepoint(written_folder()).operator("by-int")),
    operator_writer,
    window_writer,
    lambda: SlidingEventTimeWindows(10, 5),
    lambda: EventTimeSessionWindows(20),
]

ARGUMENTS: dict[str, list[Any]] = {
    "at": [None, datetime(2026, 11, 26, tzinfo=timezone.utc)],
    "full": [True, False],
    "checkpoint_id": [1, 7],
    "accumulator_type": [TUPLE(LONG, INT)],
    "allow": [(), ["/a", "s3://b"]],
    "allowed_lateness": [0, 5],
    "allow_any_last_access": [True, False],
    "sort": [True, False],
    "arguments": [["default", "24"]],
    "as_pyflink_converts": [False],
    "assigner": [EventTimeSessionWindows(20)],
    "at_least": [1, 3],
    "batch_size": [3],
    "ca_file": [None],
    "client_certificate": [None],
    "code": [5],
    "contents": [7, ReducingStateDescriptor("window-contents", LONG)],
    "count": [None],
    "counts": [[1], [4, 1, 1, 1, 1]],
    "growth": [1, 2.5, 10],
    "data": [CompositeKeySerializer(128, INT, STRING, STRING).serialize(5, "a", "b"), b""],
    "combine": [max],
    "element": [INT, STRING],
    "left": [INT, STRING],
    "right": [INT, STRING],
    "end_key_group": [85],
    "entries": [[("a", 1)]],
    "explain_text": ["== Optimized Execution Plan ==\nCalc(select=[a])\n"],
    "fields": [INT, STRING, "BIGINT"],
    "gap": [20],
    "has_evictor": [False],
    "headers": [None, {"X-Tenant": "a"}],
    "has_fired": [False],
    "has_ttl": [True, False],
    "high": [4],
    "index": [0, 1],
    "initial_discovery_finished": [True, False],
    "job_id": [None, "0" * 32],
    "key": [5, "a", (1, "a"), INT],
    "key_group": [50],
    "key_group_id": [3],
    "key_groups": [[1, 2]],
    "key_group_range": [KeyGroupRange(0, 3)],
    "key_hash": [-5],
    "key_type": [None, INT, LONG, STRING, TUPLE(INT, STRING), types.SQL_ROW("BIGINT")],
    "key_types": [None, [INT]],
    "keys": [[1, 2, 3], KeyGroupLoad(8, [1] * 8)],
    "kind": ["+I", "-U"],
    "last_access": [None, 1_700_000_000_000],
    "limit": [40, None],
    "load": [None, KeyGroupLoad(8, [1] * 8)],
    "low": [2],
    "moved": [None, {"/a": "/b"}],
    "uids": [None, ["by-int"]],
    "mapper": ["RANGE", "FULL", "ROUND_ROBIN"],
    "max_imbalance": [1.5],
    "max_parallelism": [8, 128],
    "name": ["INT"],
    "names": [None, ["a", "b"]],
    "namespace": ["a", None],
    "namespace_type": [STRING, VOID_NAMESPACE],
    "next_int": [lambda high: 0],
    "kryo_version": [2, 5],
    "nulls": ["raise", "mask"],
    "number_of_channels": [4],
    "observed": [[(number, number % 3) for number in range(20)]],
    "offset": [0, 1],
    "old_lists": [[[1, 2], [3], None]],
    "operator": ["by-int"],
    "operators": [["by-int"], None],
    "other": [KeyGroupRange(0, 3)],
    "output": [NewPath()],
    "parallelisms": [5, [6, 8, 10], range(1, 9)],
    "partitioner": [lambda key, parallelism: 0],
    "partition": [3],
    "partitions": [8],
    "ends": [{("clicks", 0): 9}, {}, None],
    "path": [savepoint_folder()],
    "plan": [RescalePlan(8, 3, 4)],
    "prefix": ["", "a"],
    "progress": [None],
    "protocol": [None],
    "record": ["a", 5],
    "savepoint": [read_savepoint(savepoint_folder())],
    "scramble": [abs],
    "separator": ["#"],
    "service": ["user-timers"],
    "since": [None],
    "size": [10],
    "slide": [5],
    "scala": ["2.12", "2.13"],
    "splits": [{}, None],
    "serializers": [{"a.Money": type("Money", (Serializer,), {"name": "MONEY"})}, {}, None],
    "start": [0, 2],
    "start_key_group": [43],
    "state": ["cities", "count", "tags"],
    **{f"{kind}_states": [()] for kind in ("list", "union_list", "broadcast")},
    "states": [{"s": ("UNION", [[1], [2], [3]])}, ["count"], None],
    "subtask": [2],
    "template": [None, (..., "a")],
    "text": ["ROW<a INT, b ARRAY<DECIMAL(38, 10)>>"],
    "thread_mode": [False, True],
    "top": [3],
    "topic": ["clicks"],
    "user_key": ["b", None],
    "user_key_type": [STRING, None],
    "time_domain": ["EVENT_TIME", "PROCESSING_TIME"],
    "timeout": [5],
    "timestamp": [1_700_000_000_000],
    "uid": ["by-user"],
    "url": ["http://127.0.0.1:9"],
    "value": [5, INT, STRING],
    "value_type": [INT, None],
    "vertex": ["by-user"],
    "weights": [[1] * 8, {3: 1.5}],
    "window": [TimeWindow(0, 20)],
    "written": [written_file()],
    "zone": ["UTC", "Europe/Berlin"],
    "n": [1, 2],
    **{
        f"{kind}parallelism": [3, 4]
        for kind in ("", "old_", "new_", "operator_", "upstream_", "downstream_")
    },
    "new_max_parallelism": [256],
    "savepoint_max_parallelism": [8],
    **{index: [1] for index in ("operator_index", "old_subtask", "new_subtask")},
}
"""Valid arguments by the name of the parameter; where one will do, it is the first."""

OPERATOR_STATE_VERBS: dict[str, list[Any]] = {
    "remove_operator_state": ["list"],
    "rename_operator_state": ["list", "other"],
    "map_operator_state": ["list", as_it_is],
}
REGISTRY: dict[str, Registered] = {
    "assignment.assign_key_to_parallel_operator": Registered(
        lambda n: keygroups.assign_key_to_parallel_operator("\u00e9" * n, 128, 4)
    ),
    "assignment.assign_to_key_group": Registered(
        lambda n: keygroups.assign_to_key_group("a" * n, 128)
    ),
    "assignment.trace_key": Registered(lambda n: keygroups.trace_key([1] * n, 128, 4)),
    "binary_row.binary_row": Registered(
        lambda n: binary_row(([(1, "abcdefgh")] * n,), SQL_ROW("ARRAY<ROW<INT, STRING>>"))
    ),
    "explain.hash_exchanges": Registered(lambda n: hash_exchanges(plan_text(n))),
    "flink_exceptions.explain_exception": Registered(
        lambda n: explain_exception("Key group \n" * n + "Assigned key must not be null"),
        more={
            "with a name": lambda n: explain_exception(
                f"The state for task {'a' * 90} can not be " * n + "Assigned key must not be null"
            ),
            "of other words": lambda n: explain_exception(f"{'The new key ' * n}serializer ("),
        },
        arguments={
            "text": ["Key group 91 is not in KeyGroupRange{startKeyGroup=0, endKeyGroup=3}"],
            "parallelism": [2, None],
        },
    ),
    "hashing.hash_code": Registered(
        lambda n: keygroups.hash_code(list(range(n))),
        more={
            "of BIG_DEC": lambda n: keygroups.hash_code(Decimal((0, (7,) * (n * 10), 3)), BIG_DEC),
            "of BIG_INT": lambda n: keygroups.hash_code(3 ** (n * 20), BIG_INT),
            "of LIST": lambda n: keygroups.hash_code([[1]] * n, LIST(LIST(LONG))),
            "of MAP": lambda n: keygroups.hash_code(
                dict.fromkeys(map(str, range(n)), 1), MAP(STRING, INT)
            ),
            "of ROW": lambda n: keygroups.hash_code(
                (1,) * n, ROW(*[INT] * n, names=map(str, range(n)))
            ),
            "of SET": lambda n: keygroups.hash_code(
                {(i, -31 * i) for i in range(n)}, SET(TUPLE(INT, INT))
            ),
        },
    ),
    "load.KeyGroupLoad": Registered(
        lambda n: KeyGroupLoad(n, [0.1] * n),
        more={"of a mapping": lambda n: KeyGroupLoad(n, {n - 1: 1})},
    ),
    "load.evenness": Registered(lambda n: evenness(n)),
    "skew.SubtaskCounts": Registered(lambda n: SubtaskCounts(32_768, range(n))),
    "SubtaskCounts.from_text": Registered(
        lambda n: SubtaskCounts.from_text(32_768, "\n".join(f"{i} {i}" for i in range(n))),
        more={
            "of a table": lambda n: SubtaskCounts.from_text(
                32_768, "\n".join(["id\tcount\tx", *(f"{i}\t{i}\t" for i in range(n))])
            ),
            "of JSON": lambda n: SubtaskCounts.from_text(32_768, str([*range(n)])),
            "of Prometheus": lambda n: SubtaskCounts.from_text(
                32_768, "\n".join(f'a{{subtask_index="{i}"}} {i}' for i in range(n))
            ),
        },
        arguments={"text": ["0 5", "[1, 2]"]},
    ),
    "SubtaskCounts.__str__": Registered(lambda n: str(SubtaskCounts(32_768, range(n)))),
    "max_parallelism.suggest_max_parallelism": Registered(
        lambda n: suggest_max_parallelism(range(1, n), 2),
        more={"few": lambda n: suggest_max_parallelism([n - 1, n], 3)},
    ),
    "local_key_by.LocalKeyBy": Registered(lambda n: buffered(n).process(0, 1)),
    "operator_state.redistribute_list_state": Registered(
        lambda n: redistribute_list_state([[1] * 5] * n, n // 2)
    ),
    "operator_state.redistribute_operator_state": Registered(
        lambda n: redistribute_operator_state(
            {str(i): ("SPLIT_DISTRIBUTE", [[1], None, [2, 3]]) for i in range(n)}, 3, 2
        )
    ),
    "operator_state.split_distribute_order": Registered(
        lambda n: split_distribute_order(names(n))
    ),
    "source_partitions.partition_for_key": Registered(
        lambda n: partition_for_key("a" * n, "clicks" * n, 8, 128, 4)
    ),
    "source_partitions.partitions_of_key_groups": Registered(
        lambda n: partitions_of_key_groups("clicks", 2 * n, n, n // 2)
    ),
    "key_group_range.compute_operator_indexes_for_key_group_range": Registered(
        lambda n: compute_operator_indexes_for_key_group_range(n, KeyGroupRange(0, 0))
    ),
    "source_partitions.split_owner": Registered(lambda n: split_owner("clicks" * n, 0, 4)),
    "partitioners.pointwise_edges": Registered(lambda n: partitioners.pointwise_edges(n, 2 * n)),
    "reports.RescaleReport": Registered(lambda n: str(RescaleReport(plan_of(n), load_of(n)))),
    "rescale.RescalePlan": Registered(lambda n: list(plan_of(n))),
    "logical_types.parse_logical_type": Registered(lambda n: parse_logical_type(row_type(n))),
    "subtask_keys.SubtaskKeySelector": Registered(lambda n: SubtaskKeySelector(n, n // 4)),
    "subtask_keys.keys_for_subtasks": Registered(
        lambda n: keygroups.keys_for_subtasks(n, n // 4, STRING),
        more={"many": lambda n: keygroups.keys_for_subtasks(128, 4, n=n)},
    ),
    "testing.assert_reaches_all": Registered(
        lambda n: failed(lambda: assert_reaches_all([5] * n, n, n // 4))
    ),
    "testing.assert_spread": Registered(
        lambda n: assert_spread(range(n), 128, 4),
        more={"uneven": lambda n: failed(lambda: assert_spread([*range(n), *[5] * n], n, n // 4))},
    ),
    "testing.assert_subtask": Registered(
        lambda n: failed(lambda: assert_subtask("a" * n, 0, 128, 128))
    ),
    "testing.keys": Registered(lambda n: keys(ROW(*[INT] * n))),
    "types.ROW": Registered(lambda n: ROW(*[INT] * n, names=map(str, range(n)))),
    "types.SQL_ROW": Registered(lambda n: SQL_ROW(*["BIGINT"] * n)),
    "KeyGroupLoad.groups_per_subtask": Registered(lambda n: load_of(n).groups_per_subtask(n // 2)),
    "KeyGroupLoad.idle_subtasks": Registered(lambda n: load_of(n).idle_subtasks(n // 2)),
    "KeyGroupLoad.imbalance": Registered(lambda n: load_of(n).imbalance(n // 2)),
    "KeyGroupLoad.per_subtask": Registered(lambda n: load_of(n).per_subtask(n // 2)),
    "KeyGroupLoad.recommend": Registered(
        lambda n: load_of(n).recommend(1, n),
        more={
            "all alike": lambda n: KeyGroupLoad(n, [1] * n).recommend(1, n),
            "ever more": lambda n: KeyGroupLoad(n, range(n)).recommend(1, n),
            "one hot": lambda n: KeyGroupLoad(n, {7: 1}).recommend(1, n),
        },
    ),
    "KeyGroupLoad.skew": Registered(lambda n: load_of(n).skew(n // 2)),
    "KeyGroupLoad.weight_of": Registered(lambda n: load_of(n).weight_of(range(n))),
    "LocalKeyBy.flush": Registered(lambda n: buffered(n).flush()),
    "LocalKeyBy.restore": Registered(lambda n: buffered(n)),
    "LocalKeyBy.snapshot_state": Registered(lambda n: buffered(n).snapshot_state()),
    "RescalePlan.compare_with_modulo": Registered(
        lambda n: plan_of(n).compare_with_modulo(range(n)),
        more={"of a load": lambda n: plan_of(n // 6 * 6).compare_with_modulo(load_of(n // 6 * 6))},
    ),
    "RescalePlan.hands_to": Registered(lambda n: RescalePlan(n, 1, n).hands_to(0)),
    "RescalePlan.moved_weight": Registered(lambda n: plan_of(n).moved_weight(load_of(n))),
    "RescalePlan.restores_from": Registered(lambda n: RescalePlan(n, n, 1).restores_from(0)),
    "RescalePlan.table": Registered(lambda n: plan_of(n).table(load_of(n))),
    "RescalePlan.__iter__": Registered(lambda n: list(plan_of(n))),
    "RescalePlan.__str__": Registered(lambda n: str(plan_of(n))),
    "SubtaskKeySelector.key_for_value": Registered(
        lambda n: SubtaskKeySelector(8, 4).key_for_value("a" * n)
    ),
    "state_keys.serializer_of": Registered(lambda n: serializer_of(SQL_ROW(*["BIGINT"] * n))),
    "Serializer.decode": Registered(
        lambda n: STRING_LIST.decode(n.to_bytes(4, "big") + b"\2a" * n)
    ),
    "Serializer.encode": Registered(lambda n: STRING_LIST.encode(["a"] * n)),
    "Serializer.from_snapshot": Registered(
        lambda n: Serializer.from_snapshot(serializer_of(ROW(*[INT] * n)).snapshot_bytes())
    ),
    "Serializer.snapshot_bytes": Registered(
        lambda n: serializer_of(ROW(*[INT] * n)).snapshot_bytes()
    ),
    "CompositeKeySerializer.deserialize": Registered(
        lambda n: STRINGS.deserialize(STRINGS.serialize("a" * n, "\u00e9" * n, "c" * n))
    ),
    "CompositeKeySerializer.serialize": Registered(lambda n: LISTS.serialize(["a"] * n)),
    "savepoint.read_savepoint": Registered(
        lambda n: read_savepoint(savepoint_folder(n, n)),
        more={
            "of states": lambda n: str(gs.operator_of(gs.states, n // 10).states),
            "of unknown states": lambda n: str(gs.operator_of(gs.unknown_states, n // 10).states),
            "of asynchronous states": lambda n: str(
                gs.operator_of(gs.async_states, n // 10).states
            ),
        },
    ),
    "savepoint.describe_sql_state": Registered(
        lambda n: str(describe_sql_state(sql_operator(), plan_of_groups(n))),
        arguments={"operator": [sql_operator()]},
    ),
    "savepoint.operator_reports": Registered(
        lambda n: list(map(str, operator_reports(read_savepoint(savepoint_folder(n)), top=n)))
    ),
    "savepoint.html_report": Registered(
        lambda n: html_report(read_savepoint(savepoint_folder(n)), top=n)
    ),
    "savepoint.savepoint_files": Registered(
        lambda n: savepoint_files(read_savepoint(savepoint_folder(1, n))),
        arguments={"savepoint": [read_savepoint(savepoint_folder())]},
    ),
    "savepoint.job_files": Registered(
        constant="it reads the `_metadata` of each checkpoint as read_savepoint does",
        arguments={"folder": [os.curdir], "others": [()]},
    ),
    "savepoint.change_max_parallelism": Registered(
        lambda n: str(change_max_parallelism(written_folder(n), 256, NewPath())),
        arguments={"savepoint": [written_folder()]},
    ),
    "savepoint.convert_to_canonical": Registered(
        lambda n: convert_to_canonical(written_folder(n), NewPath(), parallelism=5),
        arguments={"savepoint": [written_folder()]},
    ),
    "savepoint.relocate": Registered(
        lambda n: relocated(savepoint_folder(1, n)),
        more={"of subtasks": lambda n: relocated(gs.folder_of(gs.operator_states, n // 4))},
        arguments={
            "checkpoint": [read_savepoint(savepoint_folder())],
            "new_folder": [savepoint_folder()],
        },
    ),
    "SavepointWriter.from_existing_savepoint": Registered(
        lambda n: edited(savepoint_folder(1, n)),
        more={"of subtasks": lambda n: edited(gs.folder_of(gs.operator_states, n // 4))},
        arguments={"path": [NewPath()]},
    ),
    **{
        f"SavepointEditor.{name}": Registered(
            partial(
                lambda name, passed, n: edited(savepoint_folder(1, n), name, *passed), name, passed
            ),
            arguments={
                "name": ["by-int"],
                "new_uid": ["by-user"],
                "other_savepoint": [read_savepoint(savepoint_folder())],
                "uid": ["by-user"],
            },
        )
        for name, passed in {
            "remove_operator": ["by-int"],
            "change_operator_identifier": ["by-int", "by-user"],
            "operator": ["by-int"],
            "add_operator_from": [savepoint_folder(), "by-int", "by-user"],
        }.items()
    },
    **{
        f"OperatorEditor.{verb}": Registered(
            partial(edited_keyed_state, verb),
            more={"one by one": deleted_one_by_one} if verb == "delete_keys" else {},
            arguments={
                "name": ["count"],
                "new_name": ["number"],
                "function": [repr],
                "last_access": [1_700_000_000_000],
                "has_ttl": [True],
                "keys": [[1, 2, 3]],
            },
        )
        for verb in (
            "remove_state",
            "rename_state",
            "set_ttl",
            "delete_keys",
            "map_entries",
            "map_batches",
            "map_keys",
        )
    },
    "OperatorEditor.map_timers": Registered(
        mapped_timers, arguments={"name": [USER_TIMERS], "function": [repr]}
    ),
    "OperatorEditor.convert_state": Registered(
        converted_counts, arguments={"name": ["count"], "to": [FLOATS], "value": [float]}
    ),
    "OperatorEditor.edited_keyed_state": Registered(
        constant="writes nothing yet",
        arguments={
            "folder": [OutputFolder("folder", NewPath().__fspath__())],
            "new": [read_savepoint(written_folder()).metadata.operators[0]],
        },
    ),
    **{
        f"OperatorEditor.{verb}": Registered(
            partial(edited_operator_state, verb, passed),
            arguments={"name": ["list"], "new_name": ["other"], "function": [as_it_is]},
        )
        for verb, passed in OPERATOR_STATE_VERBS.items()
    },
    "OperatorEditor.set_offsets": Registered(
        moved_offsets, arguments={"offsets": [{("clicks", 0): 4711}]}
    ),
    "OperatorEditor.remove_topics": Registered(removed_topics, arguments={"topics": [["clicks"]]}),
    "OperatorEditor.edited_operator_state": Registered(
        constant="of the calls above",
        arguments={"folder": [OutputFolder("folder", NewPath().__fspath__())]},
    ),
    "OperatorEditor.close": Registered(constant="sets a mark"),
    "OperatorEditor.traces": Registered(
        constant="reads headers alone",
        arguments={"others": [read_savepoint(savepoint_folder()).operators]},
    ),
    "SavepointEditor.set_max_parallelism": Registered(
        lambda n: edited(os.fspath(written_folder(n)), "set_max_parallelism", 256),
        more={"of operators": lambda n: keyed_anew("set_max_parallelism", [256], n // 4)},
        arguments={"new_max_parallelism": [256]},
    ),
    "SavepointEditor.convert_to_canonical": Registered(
        lambda n: edited(os.fspath(written_folder(n)), "convert_to_canonical"),
        more={"of operators": lambda n: keyed_anew("convert_to_canonical", [], n // 4)},
    ),
    "SavepointEditor.report": Registered(
        lambda n: str(edited(savepoint_folder(1, n), "remove_operator", "by-int").report())
    ),
    **dict.fromkeys(
        ["SavepointEditor.savepoint", "SavepointWriter.savepoint"],
        Registered(
            lambda n: edited(savepoint_folder(1, n), "remove_operator", "by-int").savepoint()
        ),
    ),
    **dict.fromkeys(
        [
            "SavepointEditor.add_operator",
            "SavepointEditor.add_source",
            "SavepointEditor.add_window_operator",
            "SavepointEditor.from_existing_savepoint",
        ],
        Registered(
            constant="as of a SavepointWriter",
            arguments={
                "key_type": [INT, STRING],
                "states": [NEW_STATES],
                "contents": [ReducingStateDescriptor("window-contents", LONG)],
                "source": [kafka_offsets(3)],
                "path": [NewPath()],
            },
        ),
    ),
    "SavepointWriter.add_operator": Registered(
        lambda n: SavepointWriter(NewPath()).add_operator(
            "a", INT, [ValueStateDescriptor(str(i), LONG) for i in range(n)], 128, 3
        ),
        arguments={"key_type": [INT, STRING], "states": [NEW_STATES]},
    ),
    **dict.fromkeys(
        ["SavepointWriter.add_source", "SavepointEditor.add_source"],
        Registered(
            lambda n: SavepointWriter(NewPath()).add_source("a", kafka_offsets(n), 128, 3),
            arguments={"source": [kafka_offsets(3)]},
        ),
    ),
    "savepoint.OperatorId": Registered(
        constant="32 digits", arguments={"digits": ["053e6f52e939ffe5c8a3b20732f40a31"]}
    ),
    "savepoint.KafkaOffsets": Registered(
        kafka_offsets,
        arguments={"offsets": [{("a", 0): 5}], "stopping_offsets": [{("a", 0): 7}]},
    ),
    "savepoint.KryoFields": Registered(
        lambda n: KryoFields({f"f{number}": INT for number in range(n)}),
        arguments={"fields": [None, {"a": INT}], "is_final": [False], "by_name": [INT]},
    ),
    "savepoint.KryoEnum": Registered(
        lambda n: KryoEnum(*map(str, range(n))), arguments={"constants": ["A"]}
    ),
    "savepoint.read_operator_state_dump": Registered(
        lambda n: str([*read_operator_state_dump(dump_of(n)).operator_state()]),
        arguments={"path": [dump_of(2)], "max_parallelism": [None, 5], "kryo_version": [2, 5]},
    ),
    "savepoint.SplitLayout": Registered(
        constant="few versions",
        arguments={
            "source": ["queues"],
            "versions": [(1,)],
            "read": [read_split],
            "name": [("queue",)],
            "position": [("offset",)],
            "enumerator_versions": [(1,)],
            "read_enumerator": [read_split],
        },
    ),
    "SavepointWriter.add_window_operator": Registered(
        constant="few fields",
        arguments={
            "key_type": [INT, STRING],
            "contents": [ReducingStateDescriptor("window-contents", LONG)],
        },
    ),
    "OperatorWriter.close": Registered(write_entries),
    "OperatorWriter.write_operator_state": Registered(
        lambda n: operator_writer().write_operator_state("places", ["a"] * n),
        more={"entry by entry": broadcast_one_by_one},
        arguments={"name": ["places"], "elements": [["a"]], "subtask": [None, 2]},
    ),
    "Operator.source_splits": Registered(
        lambda n: source_operator(n).source_splits(),
        arguments={"ends": [None, {("a", 0): 5}]},
    ),
    "Operator.sink_state": Registered(lambda n: sink_operator(n).sink_state()),
    "Operator.coordinator_state": Registered(lambda n: source_operator(n).coordinator_state()),
    "OperatorWriter.write": Registered(
        lambda n: operator_writer().write("tags", 1, ["a"] * n), more={"unsorted": write_unsorted}
    ),
    "OperatorWriter.write_table": Registered(write_table, arguments={"table": [None]}),
    "OperatorWriter.write_timer": Registered(
        constant="one timer", arguments={"key": [5], "namespace": [None]}
    ),
    "WindowOperatorWriter.write": Registered(write_sessions, arguments={"key": [5]}),
    "SlidingEventTimeWindows.assign_windows": Registered(
        lambda n: SlidingEventTimeWindows(n, 1).assign_windows(0)
    ),
    "Operator.entries": Registered(
        lambda n: list(operator_of(n).entries()),
        more={
            "of fields": lambda n: list(gs.operator_of(gs.fields, n // 10).entries()),
            "of lists": lambda n: list(gs.operator_of(gs.lists, n // 2).entries()),
            "of rows": lambda n: list(gs.operator_of(gs.rows, n // 10).entries()),
        },
    ),
    "Operator.key_group_bytes": Registered(
        lambda n: operator_of(n).key_group_bytes(),
        more={"of key groups": lambda n: gs.operator_of(gs.key_groups, n // 5).key_group_bytes()},
    ),
    "Operator.entries_by_key": Registered(
        lambda n: list(operator_of(n).entries_by_key()), arguments={"states": [None, ["count"]]}
    ),
    "Operator.key_sizes": Registered(lambda n: operator_of(n).key_sizes(n)),
    "Operator.get": Registered(
        lambda n: operator_of(n).get(5), arguments={"key": [5], "state": ["count"]}
    ),
    "Operator.get_many": Registered(
        lambda n: operator_of(n).get_many(range(n)),
        arguments={"keys": [[5], range(9)], "state": ["count"]},
    ),
    "Operator.to_arrow": Registered(
        lambda n: operator_of(n).to_arrow("count"),
        arguments={"state": ["count"], "by_key": [False, True]},
    ),
    "Operator.to_arrow_batch_reader": Registered(
        lambda n: operator_of(n).to_arrow_batch_reader("count").read_all(),
        arguments={"state": ["count"]},
    ),
    "Operator.operator_state": Registered(
        lambda n: list(operator_of(n, "source").operator_state()),
        more={
            "of partitions": lambda n: list(
                gs.operator_of(gs.partitions, n // 2).operator_state()
            ),
            "of elements at one place": lambda n: list(
                gs.operator_of(gs.elements_at_one_place, n).operator_state()
            ),
        },
    ),
    "Operator.as_pyflink": Registered(
        lambda n: declared(n // 10),
        arguments={"key_type": [INT], "states": [[]]},
    ),
    "Operator.tasks": Registered(
        lambda n: gs.operator_of(gs.states, n // 10).tasks([f"s{i}" for i in range(n // 10)]),
        more={
            "of subtasks": lambda n: gs.operator_of(gs.subtasks, n // 10).tasks(
                None, range(0, n // 10 * 2, 3)
            ),
            "that are split": lambda n: list(
                gs.operator_of(gs.key_groups, n // 10).tasks()[0].split(9)
            ),
        },
    ),
    "Savepoint.as_pyflink": Registered(
        lambda n: pyflink_savepoint(n // 10).as_pyflink({"a": (INT, [])}),
        arguments={"declared": [{}]},
    ),
    **dict.fromkeys(
        ["OperatorEditor.as_pyflink"],
        Registered(
            constant="what Operator.as_pyflink does",
            arguments={"key_type": [INT], "states": [[]]},
        ),
    ),
    "Savepoint.operator": Registered(
        lambda n: read_savepoint(savepoint_folder(1, n)).operator("by-int")
    ),
    "Savepoint.compare": Registered(
        lambda n: str(compared(savepoint_folder(n))),
        more={"of operators": lambda n: str(compared(savepoint_folder(1, n)))},
        arguments={"other": [read_savepoint(savepoint_folder())]},
    ),
    "Savepoint.restore_report": Registered(
        lambda n: str(
            read_savepoint(savepoint_folder(n)).restore_report(
                read_savepoint(savepoint_folder(1, n))
            )
        ),
        arguments={"job": [read_savepoint(savepoint_folder()), {}]},
    ),
    "Savepoint.verify": Registered(
        lambda n: str(read_savepoint(savepoint_folder(n)).verify()),
        more={"of operators": lambda n: str(read_savepoint(savepoint_folder(1, n)).verify())},
    ),
    "Savepoint.summary": Registered(
        lambda n: str(read_savepoint(savepoint_folder(n)).summary()),
        more={"of operators": lambda n: str(read_savepoint(savepoint_folder(1, n)).summary())},
    ),
    **dict.fromkeys(
        ["SavepointGrowth.__str__", "SavepointGrowth.to_dict"],
        Registered(constant="the rows of SavepointGrowth.of"),
    ),
    "SavepointGrowth.of": Registered(
        lambda n: str(SavepointGrowth.of([read_savepoint(savepoint_folder(n)).summary()] * 2)),
        more={"of points": lambda n: str(SavepointGrowth.of([summary_of_one()] * (n + 2)))},
        arguments={"summaries": [[summary_of_one()] * 2]},
    ),
    "Savepoint.differences": Registered(
        lambda n: list(
            read_savepoint(savepoint_folder()).differences(read_savepoint(savepoint_folder(n)))
        ),
        arguments={"other": [read_savepoint(savepoint_folder())]},
    ),
    "Savepoint.__str__": Registered(lambda n: str(read_savepoint(savepoint_folder(1, n)))),
    "routing_inference.infer_routing": Registered(
        lambda n: infer_routing(enumerate(range(n)), 32_700),
        more={"of key groups": lambda n: infer_routing(key_groups=zip(range(n), [32_700] * n))},
        arguments={"key_groups": [None, [("hello", 35)]]},
    ),
    "partitioners.subtask_state_mapping": Registered(
        more={
            mapper: partial(
                lambda mapper, n: partitioners.subtask_state_mapping(mapper, n, n), mapper
            )
            for mapper in ("FIRST", "FULL", "RANGE", "ROUND_ROBIN")
        }
    ),
    **dict.fromkeys(
        [
            "assignment.compute_key_group_for_key_hash",
            "hashing.murmur_hash",
            "key_group_range.compute_default_max_parallelism",
            "key_group_range.compute_key_group_range_for_operator_index",
            "key_group_range.compute_operator_index_for_key_group",
            "rescale.check_restore",
            "state_keys.key_group_prefix",
            "state_keys.key_group_prefix_bytes",
            "testing.parallelisms",
            "RebalancePartitioner.select_channel",
            "RescalePartitioner.select_channel",
            "ShufflePartitioner.select_channel",
            "CustomPartitionerWrapper.select_channel",
            "KeyGroupStreamPartitioner.select_channel",
            "Savepoint.check_restore",
        ],
        Registered(constant="a number to a number"),
    ),
    "cli.main": Registered(constant="each command is a call of what is registered here"),
    "job.read_job": Registered(constant="it asks a server, whose answers test_rest has"),
    **dict.fromkeys(
        [
            "key_group_range.KeyGroupRange",
            "KeyGroupRange.intersection",
            "KeyGroupRange.__and__",
            "KeyGroupRange.__contains__",
            "KeyGroupRange.__getitem__",
            "KeyGroupRange.__iter__",
            "KeyGroupRange.__str__",
        ],
        Registered(constant="two numbers"),
    ),
    **dict.fromkeys(
        [
            "partitioners.BroadcastPartitioner",
            "partitioners.CustomPartitionerWrapper",
            "partitioners.ForwardPartitioner",
            "partitioners.GlobalPartitioner",
            "partitioners.KeyGroupStreamPartitioner",
            "partitioners.RebalancePartitioner",
            "partitioners.RescalePartitioner",
            "partitioners.ShufflePartitioner",
            "savepoint.AggregatingStateDescriptor",
            "savepoint.CountWindows",
            "savepoint.EventTimeSessionWindows",
            "savepoint.GlobalWindow",
            "savepoint.ListStateDescriptor",
            "savepoint.MapStateDescriptor",
            "savepoint.ProcessingTimeSessionWindows",
            "savepoint.ReducingStateDescriptor",
            "savepoint.SlidingEventTimeWindows",
            "savepoint.SlidingProcessingTimeWindows",
            "savepoint.TimerServiceDescriptor",
            "savepoint.TumblingEventTimeWindows",
            "savepoint.TumblingProcessingTimeWindows",
            "savepoint.ValueStateDescriptor",
            "state_keys.CompositeKeySerializer",
            "state_keys.GlobalWindow",
            "types.CASE_CLASS",
            "types.LIST",
            "types.MAP",
            "types.OBJECTS_HASH",
            "types.OPTIONAL",
            "types.PYFLINK",
            "types.SCALA_EITHER",
            "types.SCALA_OPTION",
            "types.SCALA_TUPLE",
            "types.SET",
            "types.SQL_DATE",
            "types.SQL_TIME",
            "types.SQL_TIMESTAMP",
            "types.TUPLE",
            "types.JavaSqlType",
            "types.KeyType",
            "types.ScalarType",
            "KeyTrace.__str__",
            "TUPLE.walk",
            "OperatorWriter.abandon",
            "OperatorWriter.add",
            "OperatorWriter.key_group",
            "OperatorWriter.metadata",
            "OperatorWriter.task",
            "WindowOperatorWriter.key_group",
            "EventTimeSessionWindows.assign_windows",
        ],
        Registered(constant="few fields"),
    ),
    "savepoint.SavepointWriter": Registered(
        constant="few fields",
        arguments={"path": [NewPath()], "template": [None, written_folder()]},
    ),
    **dict.fromkeys(
        ["subtask_keys.salted_key", "SubtaskKeySelector.key_for"],
        Registered(constant="a search of one subtask, whose keys are as many as their share"),
    ),
    **dict.fromkeys(
        [
            "SavepointGrowth.__eq__",
            "SavepointGrowth.__hash__",
            "KeyGroupLoad.__eq__",
            "KeyGroupLoad.__hash__",
            "SubtaskCounts.__eq__",
            "SubtaskCounts.__hash__",
            "KeyGroupRange.__eq__",
            "KeyGroupRange.__hash__",
            "RescalePlan.__eq__",
            "RescalePlan.__hash__",
            "SubtaskKeySelector.__eq__",
            "SubtaskKeySelector.__hash__",
            "KeyTrace.__eq__",
            "KeyTrace.__hash__",
            "TUPLE.__eq__",
            "TUPLE.__hash__",
            "Operator.__eq__",
            "Operator.__hash__",
            "EventTimeSessionWindows.__eq__",
            "EventTimeSessionWindows.__hash__",
            "SlidingEventTimeWindows.__eq__",
            "SlidingEventTimeWindows.__hash__",
        ],
        Registered(constant="few fields, compared"),
    ),
    "LocalKeyBy.process": Registered(constant="one key"),
    **dict.fromkeys(
        ["Job.skew", "Job.vertex", "Job.__eq__", "Job.__hash__", "Job.__str__"],
        Registered(constant="one vertex, with its few subtasks"),
    ),
    "Job.savepoints": Registered(constant="as they are held"),
}

try:
    import numpy as np

    from keygroups import arrays
except ModuleNotFoundError:
    pass
else:
    _numbers, _texts = np.arange(3), np.array(["a", "b", None], dtype=object)
    _OF_ARRAYS: dict[str, list[Any]] = {
        **{
            name: [_numbers, _texts, [_numbers, _texts], np.zeros(2, bool)]
            for name in ("key", "keys")
        },
        **{name: [_numbers] for name in ("key_hash", "key_group_id")},
    }
    for _name, _registered in {
        "assign_key_to_parallel_operator": Registered(
            lambda n: arrays.assign_key_to_parallel_operator(
                [np.arange(n), np.array(["abcdefgh"] * n)], 128, 4, SQL_ROW("BIGINT", "STRING")
            )
        ),
        "assign_to_key_group": Registered(lambda n: arrays.assign_to_key_group(np.arange(n), 128)),
        "compute_key_group_for_key_hash": Registered(
            lambda n: arrays.compute_key_group_for_key_hash(np.arange(n), 128)
        ),
        "compute_operator_index_for_key_group": Registered(
            lambda n: arrays.compute_operator_index_for_key_group(32_768, 4, np.arange(n))
        ),
        "hash_code": Registered(
            lambda n: arrays.hash_code(np.array(["\u00e9" * n, "a"])),
            more={
                "of SQL_ROW": lambda n: arrays.hash_code(
                    [np.array(["a" * 5 * n, "b"])], SQL_ROW("STRING")
                )
            },
        ),
        "key_group_load": Registered(lambda n: arrays.key_group_load(np.arange(n), 128)),
        "skew_report": Registered(
            lambda n: arrays.skew_report(np.arange(n), None, 128, 4),
            more={
                "of batches": lambda n: arrays.skew_report(
                    np.arange(n) % 7, None, 8, 4, None, 1, 5
                )
            },
            arguments={
                "df": [{"a": _numbers, "b": _numbers}],
                "key": ["a", ["a", "b"]],
                "nulls": ["raise", "drop"],
                "weight": [None],
                "subtask": [None, 1],
            },
        ),
    }.items():
        _arguments = _OF_ARRAYS | dict(_registered.arguments)
        REGISTRY[f"arrays.{_name}"] = replace(_registered, arguments=_arguments)
