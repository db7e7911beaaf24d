"""Whatever users hold can be copied, pickled and shared, before it was used and after.

Every class that a public module shows is in the table here, or is left out for a reason.
"""

from __future__ import annotations

import atexit
import copy
import importlib
import inspect
import multiprocessing
import operator as op
import pickle
import pkgutil
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import FrozenInstanceError
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_origin

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.sample_savepoints import operator_writer, written_file
from support.bytes.serializer_cases import cases
from support.bytes.snapshot_bytes import SNAPSHOTS
from support.inside.savepoints import (
    EditTask,
    Files,
    OpenStream,
    OutputFolder,
    StatePlan,
    WriteTask,
)
from support.inside.serializers import (
    REGISTRY,
    Cursor,
    ListSerializer,
    Read,
    TupleSerializer,
    read_versioned_snapshot,
)
from support.inside.serializers import scalars as serializers
from support.registry import OF_OTHER_LIBRARIES, VERTEX, read_split
from support.shown_values import shown, shown_here_and_in_a_fork

import keygroups
from keygroups import (
    KeyGroupLoad,
    KeyGroupRange,
    LocalKeyBy,
    RescalePlan,
    errors,
    load,
    partitioners,
    reports,
    savepoint,
    state_keys,
    suggest_max_parallelism,
    types,
)
from keygroups.errors import InvalidValueError
from keygroups.flink_exceptions import explain_exception
from keygroups.job import CompletedCheckpoint, Job
from keygroups.logical_types import parse_logical_type
from keygroups.progress import Progress
from keygroups.routing_inference import infer_routing
from keygroups.savepoint import Operator, read_savepoint
from keygroups.state_keys import CompositeKeySerializer, Serializer

COUNTS = KeyGroupLoad(8, [5, 1, 1, 1, 0, 1, 2, 1])
PLAN = RescalePlan(8, 2, 3)
ROW = reports.SubtaskRow(0, 7, 0.5, 1.5, 2, KeyGroupRange(0, 2), None)
HOT_KEY = reports.HotKey(("a", 1), 5, 7, 0.5)
HOT_GROUP = reports.HotKeyGroup(5, 7, 0.5, 2)
HOT = reports.HotSubtask(0, "one hot key", "split the key", (HOT_KEY,))
DETAIL = reports.SubtaskDetail(ROW, "not hot", "nothing to do", (HOT_GROUP,), (HOT_KEY,))
CHECKPOINT = CompletedCheckpoint(
    5, True, "file:/a", datetime(2026, 1, 2, tzinfo=timezone.utc), 70, False
)
SKEW = Job("http://localhost", "0" * 32, "clicks", "RUNNING", (VERTEX,)).skew(VERTEX)
SEEN = [("user-1", 15), ("user-2", 2), ("user-3", 5), ("user-4", 14), ("user-5", 0)]


@lru_cache
def folder() -> str:
    """Return the folder of a savepoint with a state of each type, and entries in one of them."""
    made = TemporaryDirectory(prefix="keygroups-pickling-")
    atexit.register(made.cleanup)
    key = sb.tuple_of(sb.simple("String"), sb.simple("Int"))
    states = [sb.state("count", "VALUE", sb.simple("Int"))]
    states += [sb.state(f"{n}", "VALUE", snapshot) for n, (snapshot, _) in enumerate(SNAPSHOTS)]
    header = sb.keyed_header(key, states)
    members = [(b"\3\2a" + sb.i32(number) + b"\0", sb.i32(5)) for number in range(20)]
    stream = sb.inline(header + sb.canonical_key_group([(0, members)]))
    mode = {"OPERATOR_STATE_DISTRIBUTION_MODE": "SPLIT_DISTRIBUTE"}
    snapshots = {"VALUE_SERIALIZER": state_keys.BYTES.snapshot_bytes()[4:]}
    splits = sb.operator_header([sb.meta_info("SourceReaderState", 1, mode, snapshots)], [])
    task = sb.subtask(
        managed_keyed=sb.canonical(3, [len(header)], stream),
        managed_operator=sb.operator_state([("SourceReaderState", 0, [])], sb.inline(splits)),
    )
    sb.write(Path(made.name), [sb.operator([task], uid="by-pair")])
    return made.name


def operator() -> Operator:
    return read_savepoint(folder()).operator("by-pair")


def local_key_by() -> LocalKeyBy[str, int]:
    made: LocalKeyBy[str, int] = LocalKeyBy(3, max)
    made.process("a", 1)
    return made


def rescaled() -> savepoint.EditReport:
    written = (savepoint.WrittenState("count", 0, 7, 70),)
    state = savepoint.EditedState("count", "count", 7, 0, 0, 0)
    operator = savepoint.EditedOperator("a", "a", "/old", states=(state,), written=written)
    return savepoint.EditReport("/a", (operator,), ("map",))


def edit_task() -> EditTask:
    output = OutputFolder("output", f"{folder()}/new")
    output.make()
    to = WriteTask(output, "a", 0, 64, KeyGroupRange(0, 63), b"", ())
    return EditTask(operator().tasks()[0], to, 1, {"count": StatePlan(0, ())}, is_anew=True)


def summary() -> savepoint.SavepointSummary:
    times = savepoint.TimeCounts(5, 9, (("due", 2), ("never", 1)))
    keys = (savepoint.KeySize("ann", 5, 0, 1, 20),)
    state = savepoint.StateSummary("count", "LIST", 1, 3, 1, 20, keys, times, times, None)
    rules = savepoint.OperatorStateSummary("rules", "UNION", 3, 9, 2)
    load = KeyGroupLoad(8, [20] * 8)
    parts = (load, 1, None, 0, 7, 30, ("damaged",))
    operator = savepoint.OperatorSummary("a", "0" * 32, 2, 8, 70, (state,), (rules,), *parts)
    return savepoint.SavepointSummary("/a", 3, 1_700_000_000_000, (operator,))


def verification() -> savepoint.SavepointVerification:
    fault = savepoint.StateFault("duplicate", "", "count", 0, 5, "ann", None)
    count = savepoint.FaultCount("duplicate", 7, (fault,))
    operator = savepoint.OperatorVerification("by-user", "0" * 32, 9, (count,), ("a key",))
    return savepoint.SavepointVerification("/a", 3, 70, (), (operator,))


def restore() -> savepoint.RestoreReport:
    state = savepoint.StateRestore("count", "VALUE", None, "incompatible", ("INT -> LONG",), "")
    operator = savepoint.OperatorRestore("a", "0" * 32, None, (), "", (state,), "as_is")
    return savepoint.RestoreReport("/a", "/b", (operator,))


def job_files() -> savepoint.JobFiles:
    written = datetime(2026, 1, 2, tzinfo=timezone.utc)
    file = savepoint.JobFile("/a/shared/b", 5, written, ("chk-7",), False)
    return savepoint.JobFiles("/a", ("chk-7",), (("chk-8", "damaged"),), (file,))


def comparison() -> savepoint.SavepointComparison:
    element = savepoint.OperatorStateElement("rules", "UNION", 1, None, [5])
    example = savepoint.EntryDifference("by-user", "rules", "only_here", element, None)
    changes = (savepoint.Change("kind", "UNION", "SPLIT_DISTRIBUTE"),)
    state = savepoint.StateComparison("rules", "UNION", changes, 5, 0, 0, 1, 0, (example,))
    split = savepoint.SplitDifference("only_here", savepoint.KafkaSplit("a", 0, 5), None)
    waiting = savepoint.Committable(transaction(), 7, 0, 0, "RECEIVED", 0)
    return savepoint.SavepointComparison(
        "/a",
        "/b",
        (
            savepoint.OperatorComparison(
                *("by-user", "0" * 32, None, (), (state,), (), (split,), "equal", False),
                (savepoint.comparing.CommittableDifference("only_here", waiting, None),),
            ),
        ),
    )


def edit_report() -> savepoint.EditReport:
    state = savepoint.EditedState("count", "number", 7, 1, 2, 0)
    keys = savepoint.DeletedKeys(1, ("bob",), (savepoint.UnsearchedPlace("by-user", "keys"),))
    return savepoint.EditReport(
        "/a", (savepoint.EditedOperator("by-user", "by-id", "/b", False, (state,), keys),)
    )


def transaction() -> savepoint.KafkaTransaction:
    return savepoint.KafkaTransaction("tx-0-7", 1000, 3)


MADE: list[Callable[[], object]] = [
    lambda: KeyGroupRange(43, 85),
    lambda: KeyGroupRange.EMPTY,
    lambda: keygroups.trace_key(("a", 1.5), 8, 4),
    lambda: keygroups.SubtaskKeySelector(8, 4),
    lambda: COUNTS,
    lambda: KeyGroupLoad(3, [0.1, 2**70, 0]),
    lambda: COUNTS.recommend(2, 3),
    lambda: load.Recommendations(),
    lambda: COUNTS.recommend(2, 3)[0],
    lambda: Progress("read by-user", 5, 7, "bytes"),
    lambda: COUNTS.skew(6),
    lambda: COUNTS.skew(6).causes[0],
    lambda: suggest_max_parallelism([6, 8], 2),
    lambda: suggest_max_parallelism(6)[0],
    lambda: PLAN,
    lambda: next(iter(PLAN)),
    lambda: PLAN.compare_with_modulo(["a", "b"]),
    lambda: reports.RescaleReport(PLAN, COUNTS),
    lambda: reports.SkewReport(
        types.STRING, 1, None, COUNTS, None, (ROW,), (HOT,), "one hot key", "split", detail=DETAIL
    ),
    lambda: ROW,
    lambda: HOT,
    lambda: HOT_KEY,
    lambda: HOT_GROUP,
    lambda: DETAIL,
    lambda: Job("http://localhost", "0" * 32, "clicks", "RUNNING", (VERTEX,), (CHECKPOINT,)),
    lambda: CHECKPOINT,
    lambda: VERTEX,
    lambda: VERTEX.subtasks[0],
    lambda: SKEW,
    lambda: SKEW.subtasks[0],
    lambda: explain_exception("Assigned key must not be null!"),
    lambda: infer_routing(SEEN, 16),
    lambda: infer_routing(SEEN, 16).candidates[0],
    local_key_by,
    lambda: partitioners.BroadcastPartitioner(4),
    lambda: partitioners.CustomPartitionerWrapper(4, op.mod),
    lambda: partitioners.ForwardPartitioner(4),
    lambda: partitioners.GlobalPartitioner(4),
    lambda: partitioners.KeyGroupStreamPartitioner(4, 8, types.INT),
    lambda: partitioners.RebalancePartitioner(4, 0),
    lambda: partitioners.RescalePartitioner(4),
    lambda: partitioners.ShufflePartitioner(4, abs),
    lambda: partitioners.pointwise_edges(4, 6)[0],
    lambda: parse_logical_type("ROW<a INT, b ARRAY<DECIMAL(10, 2)>>"),
    *(
        lambda key_type=key_type: key_type
        for key_type in vars(types).values()
        if isinstance(key_type, types.ScalarType)
    ),
    lambda: types.TUPLE(types.INT, types.LIST(types.STRING)),
    lambda: types.ROW(types.INT, kind="-D", names=["a"]),
    lambda: types.SQL_ROW("ROW<a INT>", "STRING NOT NULL"),
    lambda: types.PYFLINK(types.LONG),
    lambda: types.LIST(types.INT),
    lambda: types.SET(types.INT),
    lambda: types.MAP(types.INT, types.STRING),
    lambda: types.OPTIONAL(types.INT),
    lambda: types.OBJECTS_HASH(types.INT, start=17),
    lambda: types.SCALA_TUPLE(types.INT, types.STRING, scala="2.12"),
    lambda: types.CASE_CLASS("Key", types.INT, scala="2.13"),
    lambda: types.SCALA_OPTION(types.INT, scala="2.13"),
    lambda: types.SCALA_EITHER(types.INT, types.STRING, scala="2.13"),
    lambda: types.SQL_DATE("UTC"),
    lambda: types.SQL_TIME("Europe/Berlin"),
    lambda: types.SQL_TIMESTAMP("America/New_York"),
    lambda: state_keys.Row(("a", None), "-U"),
    lambda: state_keys.Row(()),
    lambda: state_keys.Row((1,), "+U", ["a"]),
    lambda: savepoint.Pickle(b"\x80\x05N."),
    lambda: state_keys.TimeWindow(0, 5_000),
    lambda: state_keys.GlobalWindow(),
    lambda: state_keys.VOID_NAMESPACE,
    lambda: state_keys.serializer_of(types.TUPLE(types.INT, types.STRING)),
    lambda: CompositeKeySerializer(128, types.INT, types.STRING, types.STRING),
    lambda: CompositeKeySerializer(128, types.INT).deserialize(b"\3\0\0\0\5\0"),
    lambda: read_savepoint(folder()),
    operator,
    lambda: operator().subtasks[0],
    lambda: operator().states[0],
    lambda: next(operator().entries()),
    lambda: operator().key_sizes(1)[0],
    lambda: operator().tasks()[0],
    lambda: next(savepoint.operator_reports(read_savepoint(folder()))),
    lambda: savepoint.describe_sql_state(operator()),
    lambda: savepoint.describe_sql_state(operator()).states[0],
    lambda: savepoint.OperatorStateEntry("list", "UNION", 0, [1, {"a": b"b"}]),
    edit_task,
    rescaled,
    lambda: rescaled().operators[0],
    lambda: rescaled().operators[0].states[0],
    lambda: rescaled().operators[0].written[0],
    lambda: savepoint.OperatorStateElement("rules", "BROADCAST", 1, ("a", 1), [5]),
    lambda: savepoint.KafkaOffsets({("a", 0): 5, ("b", 1): savepoint.SpecialOffset.LATEST}),
    lambda: savepoint.SpecialOffset.EARLIEST,
    verification,
    summary,
    lambda: summary().operators[0],
    lambda: summary().operators[0].states[0],
    lambda: summary().operators[0].states[0].timers,
    lambda: summary().operators[0].operator_states[0],
    lambda: savepoint.SavepointGrowth.of([summary(), summary()]),
    lambda: savepoint.SavepointGrowth.of([summary(), summary()]).states[0],
    lambda: savepoint.KeyGroupGrowth("a", 5, (20, 30)),
    lambda: verification().operators[0],
    lambda: verification().operators[0].faults[0],
    lambda: verification().operators[0].faults[0].examples[0],
    lambda: savepoint.ChannelState("input", 0, 1, 2, 30),
    lambda: savepoint.OperatorId("053e6f52e939ffe5c8a3b20732f40a31"),
    lambda: savepoint.KafkaSplit("a", 0, savepoint.SpecialOffset.COMMITTED, 7, 1, True, 5),
    lambda: savepoint.KinesisSplit("clicks", "shardId-000000000000", "4959", 0, 1),
    lambda: savepoint.values.KryoFields({"amount": "int"}, is_final=True),
    lambda: savepoint.values.KryoEnum("WEB", "SHOP"),
    lambda: savepoint.FileSplit("1", "file:/a", 0, 9, 5, 9, ("host",), (5, 7), None),
    lambda: savepoint.UnknownSplit(0, 1, b"split"),
    lambda: savepoint.ConnectorSplit("Pulsar", 0, 2, "a, 1", "5", {"topic": "a"}),
    lambda: savepoint.SplitLayout("queues", (1,), read_split, ("queue",), ("at",)),
    transaction,
    lambda: savepoint.Committable(transaction(), 7, 0, None, "RECEIVED", 1),
    lambda: savepoint.UnknownCommittable(2, b"files"),
    lambda: savepoint.ConnectorCommittable("Pulsar", 1, "a, transaction (0,1)", {"topic": "a"}),
    lambda: savepoint.KafkaProducerState(0, transaction(), 5, ("tx-0-1",), 9),
    lambda: savepoint.KafkaWriterState("tx", 0, 1, 2, None, (("tx-0-1", 7),)),
    lambda: savepoint.UnknownWriterState(0, 2, b"bucket"),
    lambda: savepoint.PartFile("file:/a/b", "/a/.b", 5),
    lambda: savepoint.FileCommittable("a", savepoint.PartFile("file:/a/b", None, 5), None, "c"),
    lambda: savepoint.BucketState(0, "a", "file:/a", 5, None, ()),
    lambda: savepoint.SinkState((), (savepoint.UnknownWriterState(0, 2, b"bucket"),)),
    lambda: savepoint.SourceSplits((savepoint.UnknownSplit(0, 1, b"split"),), b"", 1),
    job_files,
    lambda: job_files().files[0],
    lambda: savepoint.SavepointFile("/a", 5, 4, "keyed state", ("a",), (0,), False),
    restore,
    lambda: restore().operators[0],
    lambda: restore().operators[0].states[0],
    comparison,
    lambda: comparison().operators[0],
    lambda: comparison().operators[0].splits[0],
    lambda: comparison().operators[0].states[0],
    lambda: comparison().operators[0].states[0].changes[0],
    lambda: comparison().operators[0].states[0].examples[0],
    edit_report,
    lambda: edit_report().operators[0],
    lambda: edit_report().operators[0].states[0],
    lambda: edit_report().operators[0].deleted_keys,
    lambda: savepoint.UnsearchedPlace("by-user", "keys"),
    lambda: savepoint.DELETE,
    lambda: savepoint.TimestampData(5, 7),
    lambda: savepoint.TtlValue(5, [("a", 1)]),
    lambda: savepoint.Pojo("a.P", {"n": 1}),
    lambda: savepoint.ValueStateDescriptor("count", types.LONG, has_ttl=True),
    lambda: savepoint.AggregatingStateDescriptor("average", types.TUPLE(types.LONG, types.INT)),
    lambda: savepoint.TimerServiceDescriptor(),
    lambda: savepoint.TumblingEventTimeWindows(10, 5),
    lambda: savepoint.TumblingProcessingTimeWindows(10),
    lambda: savepoint.SlidingEventTimeWindows(10, 5, -4),
    lambda: savepoint.SlidingProcessingTimeWindows(10, 5),
    lambda: savepoint.EventTimeSessionWindows(20),
    lambda: savepoint.ProcessingTimeSessionWindows(20),
    lambda: savepoint.CountWindows(100, 5),
    lambda: savepoint.ListStateDescriptor("tags", types.STRING),
    lambda: savepoint.ReducingStateDescriptor("sum", types.DOUBLE),
    lambda: savepoint.MapStateDescriptor("cities", types.STRING, types.LONG),
    lambda: operator_writer().task(0),
    lambda: operator_writer().task(0).encoder(),
    lambda: operator_writer().task(0).encoder().encode(1, 5, 7),
    written_file,
    *(
        lambda error=error: error("number must be 1, got 2")
        for error in map(vars(errors).__getitem__, errors.__all__)
    ),
]
BASES = {
    types.KeyType,
    types.JavaSqlType,
    partitioners.StreamPartitioner,
    state_keys.Serializer,
}
HOLDS_OPEN_FILES = {
    savepoint.OperatorEditor,
    savepoint.OperatorWriter,
    savepoint.SavepointEditor,
    savepoint.SavepointWriter,
    savepoint.WindowOperatorWriter,
}


def pickled(protocol: int) -> Callable[[Any], Any]:
    return lambda value: pickle.loads(pickle.dumps(value, protocol))


PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)
WAYS: list[Callable[[Any], Any]] = [copy.copy, copy.deepcopy, *map(pickled, PROTOCOLS)]


def public_classes() -> set[type]:
    names = [info.name for info in pkgutil.iter_modules(keygroups.__path__, "keygroups.")]
    found: set[type] = set()
    for name in ("keygroups", *names):
        if name.startswith(("keygroups._", "keygroups.spark")):
            continue
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:  # an extra would bring it
            continue
        members = map(vars(module).get, dir(module))
        # On Python 3.10 a Callable[...] is a class too.
        found |= {one for one in members if inspect.isclass(one) and get_origin(one) is None}
    return found


def test_every_public_class_is_here() -> None:
    classes = public_classes()
    assert len(classes) > 70
    assert classes - BASES - HOLDS_OPEN_FILES <= {type(make()) for make in MADE}
    assert classes >= BASES | HOLDS_OPEN_FILES


def use(value: object) -> None:
    """Ask for all that can be asked for without an argument, and read what is iterated over."""
    str(value), repr(value)
    for cls in type(value).__mro__:
        names = vars(cls) if cls.__module__.startswith("keygroups") else ()
        for name in names:
            if name.startswith("_") or name in OF_OTHER_LIBRARIES:
                continue
            attribute = getattr(value, name)
            if not callable(attribute) or required(attribute):
                continue
            with suppress(InvalidValueError):  # several states: one has to be named
                found = attribute()
                if isinstance(found, Iterator):
                    list(found)


def required(call: Callable[..., object]) -> bool:
    parameters = inspect.signature(call).parameters.values()
    return any(
        one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        for one in parameters
    )


def hash_of(value: object) -> int | None:
    try:
        return hash(value)
    except TypeError:  # it holds a dict or a list
        return None


@pytest.mark.branch
@pytest.mark.parametrize("is_used", [False, True], ids=["fresh", "used"])
@pytest.mark.parametrize("make", MADE)
def test_copies(make: Callable[[], object], is_used: bool) -> None:
    value = make()
    if is_used:
        use(value)
    copies = [way(value) for way in WAYS]
    expected = shown(value)
    for same in copies:
        assert type(same) is type(value)
        assert shown(same) == expected
        if type(value).__eq__ not in (object.__eq__, BaseException.__eq__):
            assert same == value
            assert hash_of(same) == hash_of(value)


@pytest.mark.long
def test_copies_in_other_processes() -> None:
    """In one that starts afresh, as on Windows and on macOS, and in a fork of it."""
    values = [make() for make in MADE]
    for value in values[::2]:
        use(value)
    pickled = list(map(pickle.dumps, values))
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as spawn:
        found = spawn.submit(shown_here_and_in_a_fork, pickled).result()
    assert found == [list(map(shown, values))] * len(found)


def test_a_copied_buffer_is_its_own() -> None:
    buffer = local_key_by()
    other = copy.copy(buffer)
    assert other.process("b", 2) == []
    assert other.process("a", 7) == [("a", 7), ("b", 2)]
    assert buffer.snapshot_state() == [("a", 1)]


# --- serializers -----------------------------------------------------------------------------


def read(number: int) -> Serializer:
    return read_snapshot(SNAPSHOTS[number][0])


def read_snapshot(data: bytes) -> Serializer:
    return read_versioned_snapshot(Cursor(data, "a file"))


def class_of(snapshot: bytes) -> str:
    return snapshot[2 : 2 + int.from_bytes(snapshot[:2], "big")].decode()


OF_CLASS = {
    **{case.snapshot_class: case.snapshot for case in cases() if case.snapshot_class in REGISTRY},
    **{class_of(data): data for data, _ in SNAPSHOTS},
}
ALL_SNAPSHOTS = [*(data for data, _ in SNAPSHOTS), *sorted(OF_CLASS.values())]


def test_the_snapshots_are_of_every_class_that_is_read() -> None:
    assert OF_CLASS.keys() == REGISTRY.keys()


@pytest.mark.parametrize("number", range(len(ALL_SNAPSHOTS)))
def test_serializers(number: int) -> None:
    """What was read twice, or taken elsewhere, is equal, and reads and writes the same."""
    data = ALL_SNAPSHOTS[number]
    serializer = read_snapshot(data)
    for same in (read_snapshot(data), *(way(serializer) for way in WAYS)):
        assert same == serializer
        assert hash(same) == hash(serializer)
        assert repr(same) == repr(serializer)
        assert (same.read is None, same.write is None) == (
            serializer.read is None,
            serializer.write is None,
        )
        for name in ("size", "parts", "key_type", "fields", "names", "java_class"):
            assert getattr(same, name) == getattr(serializer, name)


def test_serializers_are_equal_if_the_types_are() -> None:
    """Of one name are rows with a row kind and without, and bytes of two classes."""
    read_all = [read(number) for number in range(len(SNAPSHOTS))]
    types_of = [
        (name, type(serializer), getattr(serializer, "has_row_kind", None))
        for (_, name), serializer in zip(SNAPSHOTS, read_all)
    ]
    for one, type_of_one in zip(read_all, types_of):
        for other, type_of_other in zip(read_all, types_of):
            assert (one == other) == (type_of_one == type_of_other)
    assert read_all[0] != "BOOLEAN"


def test_serializers_are_equal_however_their_parts_were_given() -> None:
    same = [
        TupleSerializer([serializers.INT]),
        TupleSerializer((serializers.INT,), ""),
        TupleSerializer(java_class="", parts=[serializers.INT]),
    ]
    assert len(set(same)) == 1
    assert same[0] != TupleSerializer([serializers.INT], "a.Pair")


def test_constants_stay_the_only_ones() -> None:
    for value in vars(serializers).values():
        if isinstance(value, Serializer):
            assert [way(value) for way in WAYS] == [value] * len(WAYS)
            assert all(way(value) is value for way in WAYS)


def test_a_nested_serializer() -> None:
    made: Serializer = serializers.INT
    for _ in range(50):
        made = ListSerializer(made)
    for way in WAYS:
        assert way(made) == made


class Doubled(Serializer):
    """One of a user's own, with closures, which no pickle can hold."""

    name = "DOUBLED"

    def __init__(self, element: Serializer) -> None:
        self.parts = (element,)
        super().__init__(element)

    def bind(self, reads: Sequence[Read]) -> None:
        [read] = reads
        self.read = lambda data, pos: read(data, pos)


def test_a_serializer_of_ones_own() -> None:
    made = Doubled(serializers.INT)
    for way in WAYS:
        assert way(made) == made
        assert way(made).read(bytes(4), 0) == (0, 4)
    assert made != Doubled(serializers.LONG)
    assert made != ListSerializer(serializers.INT)


def test_serializers_are_frozen() -> None:
    for made in (serializers.INT, ListSerializer(serializers.INT)):
        with pytest.raises(FrozenInstanceError, match="size"):
            made.size = 7


# --- threads ---------------------------------------------------------------------------------


@contextmanager
def switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def test_threads_share_an_operator() -> None:
    expected = shown(operator())
    shared = operator()
    all_started = threading.Barrier(8)  # the tracer of coverage fails where threads race
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: all_started.wait(60), range(8)))
        with switching_often():
            found = list(threads.map(lambda _: shown(shared), range(16)))
    assert found == [expected] * 16


def test_no_operator_waits_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """As behind a lock, which a process that is forked meanwhile would never get."""
    is_reading, may_go_on = threading.Event(), threading.Event()
    open_stream = Files.open
    slow, quick = operator(), operator()

    @contextmanager
    def wait(files: Files, *arguments: Any) -> Iterator[OpenStream]:
        if threading.current_thread() is reader:
            is_reading.set()
            assert may_go_on.wait(60)
        with open_stream(files, *arguments) as stream:
            yield stream

    monkeypatch.setattr(Files, "open", wait)
    reader = threading.Thread(target=lambda: slow.states)
    other = threading.Thread(target=lambda: quick.states)
    reader.start()
    assert is_reading.wait(60)
    other.start()
    other.join(10)
    is_done = not other.is_alive()
    may_go_on.set()
    for thread in (reader, other):
        thread.join()
    assert is_done
    assert slow.states == quick.states
