"""Every public callable of the core, found by a walk, so what is new is in at once."""

from __future__ import annotations

import atexit
import functools
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import savepoint_bytes as sb

import keygroups
from keygroups import KeyGroupLoad, KeyGroupRange, LocalKeyBy, RescalePlan, partitioners
from keygroups.job import Job, SubtaskReads, Vertex
from keygroups.savepoint import (
    ListStateDescriptor,
    MapStateDescriptor,
    NewState,
    OperatorWriter,
    SavepointWriter,
    ValueStateDescriptor,
    WrittenFile,
    read_savepoint,
)
from keygroups.state_keys import CompositeKeySerializer, serializer_of
from keygroups.types import INT, LIST, LONG, STRING, TUPLE

# What functions return; nobody makes one by hand, and making one checks nothing.
RECORDS = {
    "EncodedEntry",
    "EntryEncoder",
    "HotKey",
    "HotKeyGroup",
    "HotSubtask",
    "Job",
    "KeySize",
    "KeyTrace",
    "LogicalType",
    "ModuloComparison",
    "Operator",
    "OperatorReport",
    "OperatorRewriter",
    "OperatorStateEntry",
    "OperatorWriter",
    "PointwiseEdge",
    "ReadTask",
    "Recommendation",
    "Recommendations",
    "RescalePiece",
    "RewriteReport",
    "RewriteTask",
    "RewrittenOperator",
    "RewrittenState",
    "RoutingCandidate",
    "RoutingInference",
    "Row",  # this and TimeWindow are checked where they are written
    "Savepoint",
    "SavepointRewriter",  # change_max_parallelism and its like have one
    "Serializer",
    "SkewReport",
    "StateDescriptor",
    "StateEntry",
    "StateKey",
    "Subtask",
    "SubtaskDetail",
    "SubtaskReads",
    "SubtaskRow",
    "SubtaskSkew",
    "TimeWindow",
    "TimestampData",
    "TtlValue",
    "Vertex",
    "VertexSkew",
    "WriteTask",
    "WrittenFile",
}
# What they do is pandas' and Matplotlib's, where these are installed.
OF_OTHER_LIBRARIES = {"plot", "plot_key_groups", "to_pandas"}
MOST_STEPS = 6_000_000  # calls; the most that any of these needs is a tenth of it


@lru_cache
def savepoint_folder(entries: int = 100, operators: int = 1) -> str:
    """Return the folder of a savepoint: Integer keys, each in key group 3 whatever its hash."""
    folder = TemporaryDirectory(prefix="keygroups-savepoint-")
    atexit.register(folder.cleanup)
    states = [sb.state("count", "VALUE", sb.simple("Int"))]
    header = sb.keyed_header(sb.simple("Int"), states)
    members = [(b"\3" + sb.i32(number) + b"\0", sb.i32(5)) for number in range(entries)]
    stream = sb.inline(header + sb.canonical_key_group([(0, members)]))
    task = sb.subtask(managed_keyed=sb.canonical(3, [len(header)], stream))
    listed = sb.meta_info("list", 1, {}, {"VALUE_SERIALIZER": sb.simple("Int")})
    start = sb.operator_header([listed], [])
    offsets = [len(start) + 4 * number for number in range(entries)]
    elements = sb.inline(start + sb.i32(*range(entries)))
    source = sb.subtask(managed_operator=sb.operator_state([("list", 0, offsets)], elements))
    written = [
        sb.operator(tasks, uid=uid, operator_id=number.to_bytes(16, "big"))
        for number, (uid, tasks) in enumerate(
            [("by-int", [task]), ("source", [source])]
            + [(str(number), []) for number in range(operators - 1)]
        )
    ]
    sb.write(Path(folder.name), written)
    return folder.name


_folder = TemporaryDirectory(prefix="keygroups-savepoints-")
atexit.register(_folder.cleanup)
_numbers = count()
NEW_STATES: list[NewState] = [
    MapStateDescriptor("cities", STRING, LONG),
    ValueStateDescriptor("count", LONG),
    ListStateDescriptor("tags", STRING),
]


class NewPath:
    """The path of a folder that is not there yet, another one each time that it is asked for."""

    def __fspath__(self) -> str:
        return f"{_folder.name}/{next(_numbers)}"


def operator_writer(writer: SavepointWriter | None = None) -> OperatorWriter:
    """Return what writes the states above under Integer keys."""
    return (writer or SavepointWriter(NewPath())).add_operator("by-int", INT, NEW_STATES, 128, 3)


@lru_cache
def written_folder(entries: int = 100) -> str:
    """Return the folder of a savepoint with as many Integer keys, in their own key groups."""
    path = NewPath().__fspath__()
    with SavepointWriter(path) as writer:
        operator = operator_writer(writer)
        for key in sorted(range(entries), key=operator.key_group):
            operator.write("count", key, 5)
    return path


@lru_cache
def written_file() -> WrittenFile:
    """Return what tells of the file of a subtask."""
    with SavepointWriter(NewPath()) as writer:
        return operator_writer(writer).task(0).write([])


VERTEX = Vertex("1" * 32, "by-user", "RUNNING", 1, 128, True, (SubtaskReads(0, "RUNNING", 5, 60),))
# Objects whose methods are driven, from subtask keys to key types.
OBJECTS: list[Callable[[], Any]] = [
    lambda: KeyGroupLoad(8, [1] * 8),
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
    lambda: SavepointWriter(NewPath()),
    operator_writer,
]
METHODS = ("__and__", "__contains__", "__eq__", "__getitem__", "__hash__", "__iter__", "__str__")


class TooManySteps(BaseException):
    """A call takes too long."""


def public_callables() -> dict[str, Callable[..., Any]]:
    """Return the functions and classes of the core that users call, by name."""
    found = {}
    for info in pkgutil.iter_modules(keygroups.__path__):
        if info.name.startswith("_") or info.name == "spark":
            continue
        try:
            module = importlib.import_module(f"keygroups.{info.name}")
        except ModuleNotFoundError:  # what one of the extras would bring
            continue
        for name in module.__all__:
            value = getattr(module, name)
            callable_ = inspect.isfunction(value) or inspect.isclass(value)
            if not callable_ or inspect.isabstract(value) or name in RECORDS:
                continue
            home = sys.modules[value.__module__]
            if home is module or "._" in home.__name__ or name not in getattr(home, "__all__", ()):
                found[f"{info.name}.{name}"] = value  # under the name of where it is at home
    return found


def methods(make: Callable[[], Any]) -> dict[str, Callable[[], Callable[..., Any]]]:
    """Return what makes each public method of a fresh object, by name."""
    cls = type(make())
    names = [
        name
        for name in dir(cls)
        if not name.startswith("_")
        and callable(getattr(cls, name))
        and name not in OF_OTHER_LIBRARIES
    ]
    own = [name for name in METHODS if getattr(cls, name, None) is not getattr(object, name, None)]
    return {
        f"{cls.__name__}.{name}": functools.partial(lambda name: getattr(make(), name), name)
        for name in [*names, *own]
    }


CALLS: dict[str, Callable[[], Callable[..., Any]]] = {
    name: functools.partial(lambda value: value, value)
    for name, value in public_callables().items()
    if not issubclass(value if isinstance(value, type) else type(value), Exception)
}
for _make in OBJECTS:
    CALLS |= methods(_make)
CALLS |= {  # what else a serializer has checks nothing
    f"Serializer.{name}": functools.partial(getattr, serializer_of(LIST(STRING)), name)
    for name in ("decode", "encode", "from_snapshot", "snapshot_bytes")
}


def parameters(call: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(call).parameters.values())
    except ValueError:  # a method that is written in C
        return [inspect.Parameter("other", inspect.Parameter.POSITIONAL_ONLY)]


@contextmanager
def bounded_steps() -> Iterator[None]:
    """Stop what takes too many calls."""
    steps = 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1
        if steps > MOST_STEPS:
            sys.setprofile(None)
            raise TooManySteps

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(before)
