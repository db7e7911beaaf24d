"""A few savepoints for calls that need one, made when first asked for; and paths for new ones."""

from __future__ import annotations

import atexit
from functools import lru_cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from keygroups.savepoint import (
    EventTimeSessionWindows,
    ListStateDescriptor,
    MapStateDescriptor,
    OperatorWriter,
    ReducingStateDescriptor,
    SavepointWriter,
    TimerServiceDescriptor,
    ValueStateDescriptor,
    WindowOperatorWriter,
)
from keygroups.types import INT, LONG, STRING
from support.bytes import savepoint_bytes as sb
from support.inside.savepoints import NewState, WrittenFile


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
    TimerServiceDescriptor(),
]


class NewPath:
    """The path of a folder that is not there yet, another one each time that it is asked for."""

    def __fspath__(self) -> str:
        return f"{_folder.name}/{next(_numbers)}"


def operator_writer(writer: SavepointWriter | None = None) -> OperatorWriter:
    """Return a function that writes the states above under Integer keys."""
    return (writer or SavepointWriter(NewPath())).add_operator(
        "by-int", INT, NEW_STATES, 128, 3, list_states=[ListStateDescriptor("places", STRING)]
    )


def window_writer() -> WindowOperatorWriter:
    """Return a function that writes sessions under Integer keys."""
    sums = ReducingStateDescriptor("window-contents", LONG)
    gaps = EventTimeSessionWindows(20)
    return SavepointWriter(NewPath()).add_window_operator("sums", INT, gaps, sums, 128, 3)


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
    """Return the WrittenFile of a subtask without entries."""
    with SavepointWriter(NewPath()) as writer:
        return operator_writer(writer).task(0).write([])
