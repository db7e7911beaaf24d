"""Handles of the same bytes: which of Flink's there may be, however the file is named.

Flink: IncrementalRemoteKeyedStateHandle, of which subtasks of one operator have the same files
after a change of parallelism; ChannelStateCheckpointWriter, whose file has the channels of several
subtasks; BatchingStateChangeUploadScheduler, which uploads the changes of several operators to one
file; LogicalFile, a segment of a physical one, which is its alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.changelog_bytes import SET, change, change_set, changelog, in_streams, logged

from keygroups.errors import SavepointError
from keygroups.savepoint import SavepointWriter, read_savepoint

SIZE = 1_000
HEADER = sb.inline(sb.keyed_header(sb.simple("String"), []))
SAME = r"two handles name the same bytes of the file '[^']+'(, which is also '[^']+')?$"


def sst_files(first: int, stream: bytes) -> bytes:
    return sb.rocksdb(first, 1, HEADER, [("1.sst", stream)])


def with_changes(index: int, materialized: list[bytes], changes: list[bytes]) -> bytes:
    """Return a subtask with a key group of its own and a changelog."""
    handle = changelog(materialized, changes)
    return sb.subtask(index, managed_keyed=handle[:1] + sb.i32(index, 1) + handle[9:])


PLACES: dict[str, Callable[[int, bytes], bytes]] = {
    "operator state": lambda index, stream: sb.subtask(
        index, managed_operator=sb.operator_state([("s", 0, [0])], stream)
    ),
    "raw operator state": lambda index, stream: sb.subtask(
        index, raw_operator=sb.operator_state([("s", 0, [0])], stream)
    ),
    "canonical": lambda i, stream: sb.subtask(i, managed_keyed=sb.canonical(i, [5], stream)),
    "native": lambda i, stream: sb.subtask(i, managed_keyed=sb.native(i, [5], stream)),
    "raw keyed": lambda i, stream: sb.subtask(i, raw_keyed=sb.native(i, [5], stream)),
    "header": lambda i, stream: sb.subtask(i, managed_keyed=sb.rocksdb(i, 1, stream)),
    "SST file": lambda i, stream: sb.subtask(i, managed_keyed=sst_files(i, stream)),
    "private file": lambda i, stream: sb.subtask(
        i, managed_keyed=sb.rocksdb(i, 1, HEADER, private=[("CURRENT", stream)])
    ),
    "materialized": lambda i, stream: with_changes(i, [sb.canonical(i, [5], stream)], []),
    "materialized SST file": lambda i, stream: with_changes(i, [sst_files(i, stream)], []),
    "changes": lambda i, stream: with_changes(i, [], [in_streams([(0, stream)])]),
    "changes further on": lambda i, stream: with_changes(i, [], [in_streams([(7 + i, stream)])]),
    "channel": lambda index, stream: sb.subtask(
        index, inputs=[b"\1" + sb.i32(0, 0, 0, 1) + sb.i64(0, 5) + stream]
    ),
}
"""Subtasks that have a stream, by where they have it."""

OF_SUBTASKS = {"SST file", "private file", "materialized", "materialized SST file", "changes"}
ANYWHERE = {"changes further on", "channel"}
COUNTS = {"changes", "changes further on"}  # a byte of the file that the size leaves out


def check(folder: Path, first: list[bytes], second: list[bytes], is_allowed: bool) -> None:
    """Check a savepoint of two operators; one without subtasks has no state."""
    ids = bytes(16), b"b" * 16
    operators = [
        sb.operator(tasks, parallelism=2, operator_id=operator_id)
        for tasks, operator_id in zip((first, second), ids)
    ]
    sb.write(folder, operators)
    if is_allowed:
        assert len(read_savepoint(folder).operators) == 2
        return
    with pytest.raises(SavepointError, match=SAME):
        read_savepoint(folder)


@pytest.mark.parametrize("place", PLACES)
def test_the_same_bytes(place: str, tmp_path: Path) -> None:
    """Of two subtasks, of two operators, and in part; segments that are apart are always read."""
    subtask, stream = PLACES[place], sb.relative("data", SIZE)
    tasks = [subtask(index, stream) for index in range(2)]
    check(tmp_path, tasks, [], place in OF_SUBTASKS | ANYWHERE)
    check(tmp_path, tasks[:1], tasks[1:], place in ANYWHERE)
    counts = place in COUNTS
    for start, is_apart in ((SIZE - 1 + counts, False), (SIZE + counts, True)):
        streams = [sb.segment("data", pos, SIZE) for pos in (0, start)]
        parts = [subtask(index, stream) for index, stream in enumerate(streams)]
        check(tmp_path, parts, [], is_apart)
        check(tmp_path, parts[:1], parts[1:], is_apart)
        check(tmp_path, parts[1:], parts[:1], is_apart)


@pytest.mark.parametrize("places", [*combinations(PLACES, 2)], ids="-".join)
def test_the_same_bytes_in_other_places(places: tuple[str, str], tmp_path: Path) -> None:
    """None is read as two kinds of state."""
    tasks = [PLACES[name](i, sb.relative("data", SIZE)) for i, name in enumerate(places)]
    alike = [{"SST file", "private file", "materialized", "materialized SST file"}, COUNTS]
    is_alike = any(kinds.issuperset(places) for kinds in alike)
    check(tmp_path, tasks, [], is_alike)
    check(tmp_path, tasks[:1], tasks[1:], is_alike and COUNTS.issuperset(places))


def test_coordinators(tmp_path: Path) -> None:
    tasks = [PLACES["operator state"](0, sb.relative("data", SIZE))]
    stream = sb.relative("data", SIZE)
    others = [sb.operator([], coordinator=stream), sb.operator(tasks)]
    for other in others:
        own = sb.operator([], coordinator=stream, operator_id=b"b" * 16)
        with pytest.raises(SavepointError, match=SAME):
            read_savepoint(sb.write(tmp_path, [own, other]))
    with pytest.raises(SavepointError, match=SAME):
        read_savepoint(sb.write(tmp_path, [sb.operator(tasks, coordinator=stream)]))


def test_a_handle_that_names_a_file_twice(tmp_path: Path) -> None:
    stream = sb.relative("data", SIZE)
    files = [("1.sst", stream), ("2.sst", stream)]
    for of_handle in (
        sb.rocksdb(0, 1, HEADER, files),
        sb.rocksdb(0, 1, HEADER, files[:1], files[1:]),
        sb.rocksdb(0, 1, stream, files[:1]),
    ):
        check(tmp_path, [sb.subtask(managed_keyed=of_handle)], [], is_allowed=False)


NAMES: dict[str, Callable[[Path], bytes]] = {
    "relative": lambda folder: sb.relative("data", SIZE),
    "absolute": lambda folder: sb.absolute(f"{folder}/data", SIZE),
    "URL": lambda folder: sb.absolute(f"file:{folder}/data", SIZE),
    "URL with a host": lambda folder: sb.absolute(f"file://{folder}/data", SIZE),
    "quoted": lambda folder: sb.absolute(f"file:{folder}".replace("p", "%70") + "/data", SIZE),
    "quoted name": lambda folder: sb.absolute(f"file:{folder}/d%61ta", SIZE),
    "other slashes": lambda folder: sb.absolute(f"{folder.parent}//{folder.name}/data", SIZE),
    "dots": lambda folder: sb.absolute(f"{folder.parent}/./{folder.name}/data", SIZE),
    "link": lambda folder: sb.relative("link", SIZE),
    "link to a folder": lambda folder: sb.relative("folder/data", SIZE),
    "hard link": lambda folder: sb.relative("hard", SIZE),
    "segment": lambda folder: sb.segment(f"{folder}/link", 0, SIZE),
}


def put(folder: Path) -> Path:
    """Put a file into a folder, and links to it."""
    folder.mkdir(exist_ok=True)
    (folder / "data").write_bytes(bytes(SIZE))
    (folder / "link").symlink_to("data")
    (folder / "folder").symlink_to(folder)
    os.link(folder / "data", folder / "hard")
    return folder


@pytest.mark.long
def test_the_same_file_by_other_names(tmp_path: Path) -> None:
    folder = put(tmp_path / "sp")
    for names in product(NAMES, repeat=2):
        streams = [NAMES[name](folder) for name in names]
        for place, is_allowed in (("operator state", False), ("SST file", True)):
            tasks = [PLACES[place](index, stream) for index, stream in enumerate(streams)]
            check(folder, tasks, [], is_allowed)
            check(folder, tasks[:1], tasks[1:], is_allowed=False)
        of_changes = [PLACES["changes"](index, stream) for index, stream in enumerate(streams)]
        check(folder, of_changes, [], streams[0] == streams[1])  # Flink's have one name


def test_which_names_are_told(tmp_path: Path) -> None:
    """Those of the first handles, in the order of `_metadata`."""
    folder = put(tmp_path / "sp")
    relative, absolute = sb.relative("data", SIZE), sb.absolute(f"{folder}/data", SIZE)
    own = [PLACES["operator state"](i, name) for i, name in enumerate((relative, absolute))]
    shared = [PLACES["SST file"](i, name) for i, name in enumerate((relative, absolute))]
    inside = PLACES["operator state"](2, sb.segment(f"{folder}/data", 5, 10))
    for tasks, reports in (
        (own, f"'data', which is also '{folder}/data'"),
        (own[::-1], f"'{folder}/data', which is also 'data'"),
        ([*shared, inside], f"'data', which is also '{folder}/data'"),
    ):
        sb.write(folder, [sb.operator(tasks, parallelism=3)])
        with pytest.raises(SavepointError) as caught:
            read_savepoint(folder)
        assert str(caught.value).endswith(f"the same bytes of the file {reports}")


@pytest.mark.parametrize(
    ("names", "is_same"),
    [
        ([sb.absolute("file:/gone/a%62", SIZE), sb.absolute("file:/gone/ab", SIZE)], True),
        ([sb.relative("a%62", SIZE), sb.relative("ab", SIZE)], False),
        ([sb.relative("x/../ab", SIZE), sb.relative("ab", SIZE)], True),
        ([sb.relative("ab", SIZE), sb.absolute("ab", SIZE)], False),
    ],
)
def test_names_of_a_file_that_is_not_there(
    names: list[bytes], is_same: bool, tmp_path: Path
) -> None:
    """A path with %-escapes is one of a URL; a name in the folder has none."""
    tasks = [PLACES["operator state"](number, name) for number, name in enumerate(names)]
    check(tmp_path, tasks, [], not is_same)


def test_a_file_that_may_not_be_read_is_not_looked_at(tmp_path: Path) -> None:
    """Nor is it where another file of its folder may be."""
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "a").write_bytes(bytes(SIZE))
    (folder / "b").hardlink_to(folder / "a")
    streams = [sb.absolute(f"{folder}/{name}", SIZE) for name in "ab"]
    tasks = [PLACES["operator state"](number, stream) for number, stream in enumerate(streams)]
    point = tmp_path / "point"
    point.mkdir()
    sb.write(point, [sb.operator(tasks, parallelism=2)])
    assert len(read_savepoint(point, allow=[folder / "a"]).operators) == 1
    with pytest.raises(SavepointError, match=SAME):
        read_savepoint(point, allow=[folder])


def test_files_of_equal_bytes(tmp_path: Path) -> None:
    """They are two, also where neither is there, or may be read."""
    folder = put(tmp_path / "sp")
    (folder / "other").write_bytes(bytes(SIZE))
    for name in ("other", "missing", "../outside", "/elsewhere/data", "dask://h/data"):
        write = sb.relative if not name.startswith(("/", "dask")) else sb.absolute
        streams = sb.relative("data", SIZE), write(name, SIZE)
        tasks = [PLACES["operator state"](index, stream) for index, stream in enumerate(streams)]
        check(folder, tasks, [], is_allowed=True)
        twice = [PLACES["operator state"](index, streams[1]) for index in range(2)]
        check(folder, twice, [], is_allowed=False)


def test_file_systems_without_inodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They give all files the number 0, and are told apart by their paths."""
    folder = put(tmp_path / "sp")
    (folder / "other").write_bytes(bytes(SIZE))
    stat = os.stat

    def without_inode(*arguments: Any, **options: Any) -> os.stat_result:
        info = stat(*arguments, **options)
        return os.stat_result([info[0], 0, *info[2:]])

    monkeypatch.setattr(os, "stat", without_inode)
    for name, is_allowed in (("other", True), ("data", False)):
        streams = sb.relative("data", SIZE), sb.relative(name, SIZE)
        tasks = [PLACES["operator state"](index, stream) for index, stream in enumerate(streams)]
        check(folder, tasks, [], is_allowed)


def test_keys_of_a_store(tmp_path: Path) -> None:
    """A store may have several schemes, as s3 and s3a; it is not called for that."""
    fsspec = pytest.importorskip("fsspec")

    class Store(fsspec.AbstractFileSystem):  # type: ignore[misc,name-defined]  # fsspec has none
        protocol = ("keys", "keysa")

        def __init__(self) -> None:
            raise AssertionError("called")

    for scheme in Store.protocol:
        fsspec.register_implementation(scheme, Store, clobber=True)
    allow = ["keys://bucket", "keysa://bucket"]
    for name, is_allowed in (("a", False), ("b", True)):
        streams = sb.absolute("keys://bucket/a", SIZE), sb.absolute(f"keysa://bucket/{name}", SIZE)
        tasks = [PLACES["operator state"](index, stream) for index, stream in enumerate(streams)]
        sb.write(tmp_path, [sb.operator(tasks, parallelism=2)])
        if is_allowed:
            read_savepoint(tmp_path, allow=allow)
            continue
        with pytest.raises(SavepointError, match=SAME):
            read_savepoint(tmp_path, allow=allow)


def test_copies_of_the_same_bytes(tmp_path: Path) -> None:
    """Files of several names in one operator are copied once, segments each."""
    folder = put(tmp_path / "sp")
    (folder / "data").write_bytes(bytes(range(250)) * 8)  # and of the links
    streams = [sb.segment(f"{folder}/{name}", 0, SIZE) for name in ("data", "link", "hard")]
    streams.append(sb.segment(f"{folder}/data", SIZE, SIZE))
    tasks = [PLACES["SST file"](index, stream) for index, stream in enumerate(streams)]
    ids = bytes(16), b"b" * 16
    sb.write(
        folder,
        [
            sb.operator(tasks, parallelism=4, operator_id=ids[0]),
            sb.operator([], uid="gone", operator_id=ids[1]),
        ],
    )
    new = tmp_path / "new"
    with SavepointWriter.from_existing_savepoint(read_savepoint(folder), new) as editor:
        editor.remove_operator("gone")
    files = [file for file in new.iterdir() if file.name != "_metadata"]
    assert sorted(file.stat().st_size for file in files) == [SIZE, SIZE]
    (operator,) = read_savepoint(new).operators
    assert operator.parallelism == 4


def test_changes_of_one_file_do_not_overlap(tmp_path: Path) -> None:
    """They end before those of another handle start, of whatever operator, and in any order."""
    string = sb.simple("String")
    timers = sb.state("t", "", sb.timer_of(string, sb.NONE), backend_type=3)
    states = [logged(0, sb.state("s", "VALUE", string)), logged(1, timers, kind=3)]
    inner = change_set([*states, change(SET, 0, b"\2b\0", b"\2y")])
    outer = change_set([*states, change(SET, 0, b"\2a\0", inner)])
    log = change_set([*states, change(SET, 0, b"\2a\0", b"\2x")])
    (tmp_path / "log").write_bytes(b"\0" + log + outer)
    stream = sb.relative("log", len(log + outer))
    starts = 0, len(log), len(log + outer) - len(inner)

    def keys(*chosen: int) -> list[str]:
        operators = [
            sb.operator(
                [sb.subtask(managed_keyed=changelog([], [in_streams([(starts[at], stream)])]))],
                operator_id=bytes([at]) * 16,
            )
            for at in chosen
        ]
        read = read_savepoint(sb.write(tmp_path, operators)).operators
        return [entry.key for operator in read for entry in operator.entries()]

    assert keys(0) == keys(0) == ["a"]
    assert keys(2, 0) == ["b", "a"]
    for chosen in ((0, 1, 2), (2, 1), (1, 2)):
        with pytest.raises(SavepointError, match="the bytes end too early"):
            keys(*chosen)
