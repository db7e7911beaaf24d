"""Small savepoints for the fuzz: handles and streams of real ones, with most of them left out.

What is kept is Flink's own bytes; `_metadata`, and the count of states in a header, are new.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from support.bytes import savepoint_bytes as sb
from support.bytes.changelog_bytes import change_set, changes_of, in_streams, write_log
from support.bytes.changelog_bytes import changelog as changelog_handle
from support.bytes.real_savepoints import Point, point
from support.inside.savepoints import (
    KEYED,
    ChangelogHandle,
    KeyedHandle,
    KeyGroupsHandle,
    OperatorMetadata,
    RocksDBHandle,
    SstFile,
    StreamHandle,
    SubtaskState,
    header_size,
    key_group_spans,
    read_metadata,
    read_state_infos,
)
from support.inside.serializers import Cursor, read_serializer


def content(one: Point, stream: StreamHandle) -> bytes:
    with one.files.open(stream) as opened:
        return opened.read(0, stream.size)


def operators(one: Point) -> dict[str, OperatorMetadata]:
    found = read_metadata((one.path / "_metadata").read_bytes(), one.name).operators
    return {operator.uid or operator.name: operator for operator in found}


def first_subtask(one: Point, operator: str) -> SubtaskState:
    subtasks = operators(one)[operator].subtasks
    return min(subtasks, key=lambda subtask: subtask.index)


def fewer_states(header: bytes, kept: Collection[str]) -> bytes:
    """Return a keyed header with some of its states."""
    cursor = Cursor(header, "header")
    cursor.take(5)
    read_serializer(cursor)
    start = header[: cursor.pos]
    states = [info.data for info in read_state_infos(cursor, KEYED) if info.name in kept]
    assert len(states) == len(kept)
    return start + len(states).to_bytes(2, "big") + b"".join(states)


def fewer_key_groups(one: Point, handle: KeyedHandle | None) -> bytes:
    """Return the handle of canonical state with its heaviest and lightest key group, inline."""
    assert isinstance(handle, KeyGroupsHandle)
    data = content(one, handle.stream)
    spans = sorted(key_group_spans(handle), key=lambda span: span[1] - span[2])
    kept = sorted([spans[0], spans[-1]])
    offsets = dict.fromkeys(handle.key_groups, 0)
    out = data[: header_size(handle)]
    for key_group, start, end in kept:
        offsets[key_group] = len(out)
        out += data[start:end]
    return sb.canonical(handle.key_groups[0], list(offsets.values()), sb.inline(out))


def run_of_key_groups(one: Point, handle: KeyedHandle | None, first: int, count: int) -> bytes:
    """Return the handle of the hashmap backend, or of raw state, with some key groups, inline."""
    assert isinstance(handle, KeyGroupsHandle)
    data = content(one, handle.stream)
    kept = [span for span in key_group_spans(handle) if first <= span[0] < first + count]
    assert len(kept) == count
    is_raw = header_size(handle) == 0
    out = b"" if is_raw else data[: header_size(handle)]
    offsets = []
    for _, start, end in kept:
        offsets.append(len(out))
        out += data[start:end]
    return sb.native(first, offsets, sb.inline(out))


def canonical(folder: Path) -> Path:
    """Windows with timers, a merging window set, list, union and broadcast state: one file."""
    one = point("2.3.0-heap-canonical")
    session = first_subtask(one, "session").managed_keyed
    keyed = fewer_key_groups(one, session)
    parts = [sb.operator([sb.subtask(managed_keyed=keyed)], parallelism=3, uid="session")]
    for uid in ("offsets", "broadcast"):
        handle = next(
            subtask.managed_operator
            for subtask in operators(one)[uid].subtasks
            if subtask.managed_operator
            and all(starts for _, _, starts in subtask.managed_operator.states)
        )
        modes = {"SPLIT_DISTRIBUTE": 0, "UNION": 1, "BROADCAST": 2}
        states = [(name, modes[mode], starts) for name, mode, starts in handle.states]
        stream = sb.inline(content(one, handle.stream))
        state = sb.operator_state(states, stream)
        operator_id = uid.encode().ljust(16, b"\0")
        task = sb.subtask(managed_operator=state)
        parts.append(sb.operator([task], uid=uid, operator_id=operator_id))
    return sb.write(folder, parts)


def rocksdb(folder: Path) -> Path:
    """A value and a list with a time to live in SST files, range deletions; timers on the heap."""
    one = point("2.3.0-rocksresc-native")
    handle = first_subtask(one, "by-string").managed_keyed
    assert isinstance(handle, RocksDBHandle)
    kept = ("visits", "count")
    header = fewer_states(content(one, handle.meta), kept)
    folder.mkdir()
    shared = []
    for local, stream in handle.shared:
        with one.files.open(stream) as opened:
            family = SstFile(opened).column_family.decode()
        if family in kept:
            data = content(one, stream)
            (folder / local).write_bytes(data)
            shared.append((local, sb.relative(local, len(data))))
    assert len(shared) >= 4
    (folder / "meta").write_bytes(header)
    meta = sb.relative("meta", len(header))
    keyed = sb.rocksdb(handle.key_groups[0], len(handle.key_groups), meta, shared)
    timers = point("2.3.0-heaptimers-checkpoint")
    raw = run_of_key_groups(timers, first_subtask(timers, "by-string").raw_keyed, 13, 3)
    tasks = [sb.subtask(managed_keyed=keyed, raw_keyed=raw)]
    return sb.write(folder, [sb.operator(tasks, parallelism=3, uid="by-string")])


def sql(folder: Path) -> Path:
    """An SQL GROUP BY with a time to live, in the hashmap backend's own format."""
    one = point("2.3.0-sqlheap-native")
    keyed = first_subtask(one, "GroupAggregate[9]").managed_keyed
    tasks = [sb.subtask(managed_keyed=run_of_key_groups(one, keyed, 2, 4))]
    return sb.write(folder, [sb.operator(tasks, parallelism=3, name="GroupAggregate[9]")])


def snappy(folder: Path) -> Path:
    """All kinds of state, compressed; the stream is a file, its header like the others'."""
    one = point("2.3.0-snappy-canonical")
    handle = first_subtask(one, "by-int").managed_keyed
    assert isinstance(handle, KeyGroupsHandle)
    data = content(one, handle.stream)
    span = next(iter(key_group_spans(handle)))
    folder.mkdir()
    header = data[: header_size(handle)]
    (folder / "keyed").write_bytes(header + data[span[1] : span[2]])
    stream = sb.relative("keyed", len(header) + span[2] - span[1])
    tasks = [sb.subtask(managed_keyed=sb.canonical(span[0], [len(header)], stream))]
    return sb.write(folder, [sb.operator(tasks, parallelism=3, uid="by-int")])


def changelog(folder: Path) -> Path:
    """Changes of a value, a list, a map and timers, in a file."""
    one = point("2.3.0-changelog-checkpoint")
    handle = first_subtask(one, "by-string").managed_keyed
    assert isinstance(handle, ChangelogHandle)
    ((offset, stream),) = handle.changes[0].streams
    changes = changes_of(Path(one.files.path_of(stream)).read_bytes()[1 + offset :])
    kept = (b"count", b"history", b"byCity", b"_timer_state/event_user-timers")
    text = [data for group, data in changes if group == -1 and data[7:].startswith(kept)]
    numbers = {data[-3:-1] for data in text}
    made = [(group, data) for group, data in changes if group == 3]
    made = [(group, data) for group, data in made if data[1:3] in numbers]
    log = write_log(folder, change_set([*((-1, data) for data in text), *made]))
    keyed = changelog_handle([], [in_streams(log)])
    return sb.write(folder, [sb.operator([sb.subtask(managed_keyed=keyed)], uid="by-string")])


SMALL = {
    "canonical": canonical,
    "rocksdb": rocksdb,
    "sql": sql,
    "snappy": snappy,
    "changelog": changelog,
}
HEADERS = {"snappy": {"keyed": 5281}}
"""How much of a file is like what is in another savepoint here, and needs no second fuzz."""
