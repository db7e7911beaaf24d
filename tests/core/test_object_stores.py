"""Savepoints in a store behind a network: which requests they take, and what goes wrong there."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from itertools import chain, islice, pairwise
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.changelog_bytes import SET, change, change_set, changelog, in_streams, logged
from support.bytes.large_savepoints import (
    KEY_GROUPS,
    canonical_key_group,
    header,
    keys,
    native_key_group,
)
from support.bytes.real_savepoints import FORMATS, POINTS, Point
from support.bytes.sst_bytes import VALUE, sst
from support.inside.savepoints import (
    Files,
    Metadata,
    StreamHandle,
    _Reader,
    class_of_store,
    filesystem_of,
    fsspec_url,
    read_metadata,
    rocksdb,
    store_file,
    write_metadata,
    write_operator,
)
from support.inside.savepoints import files as files_module
from support.inside.savepoints import sst as sst_module

from keygroups.errors import KeyGroupsError, SavepointError
from keygroups.savepoint import Operator, read_savepoint
from keygroups.state_keys import CompositeKeySerializer
from keygroups.types import STRING

pytest.importorskip("fsspec", reason="the extra savepoint")

from support.bytes.counted_store import LIST, READ, SIZE, CountedStore, counted_store

URL = "counted://folder"
GROUPS = keys(512)


@pytest.fixture
def store() -> Iterator[type[CountedStore]]:
    with counted_store() as empty:
        yield empty


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> int:
    """Ask ahead for so many bytes, by small requests."""
    for name, size in (("AHEAD", 1 << 16), ("REQUEST", 1 << 12), ("_LEAST", 1 << 11)):
        monkeypatch.setattr(store_file, name, size)
    monkeypatch.setattr(store_file, "_LARGEST", 1 << 12)
    monkeypatch.setattr(files_module, "CHUNK", 1 << 10)
    monkeypatch.setattr(store_file, "_GAP", 0)
    return 1 << 16


def put(store: type[CountedStore], subtasks: list[bytes], files: dict[str, bytes]) -> None:
    """Put a savepoint of one operator with some subtasks there, and its files."""
    operator = sb.operator(subtasks, parallelism=len(subtasks), uid="by-string")
    store.files = {f"folder/{name}": content for name, content in files.items()}
    store.files["folder/_metadata"] = sb.metadata([operator])


def streams(
    form: str, subtasks: int, times: int = 1, is_merged: bool = False, url: str = ""
) -> tuple[list[bytes], dict[str, bytes]]:
    """Return subtasks with the keys of `GROUPS`, and their files.

    All of them are in one if merged, and in a folder by its URL if there is one.
    """
    groups = {"canonical": canonical_key_group, "native": native_key_group}[form]
    handle = {"canonical": sb.canonical, "native": sb.older}[form]
    each = KEY_GROUPS // subtasks
    files: dict[str, bytes] = {}
    handles = []
    for index in range(subtasks):
        content, offsets = bytearray(header()), []
        for key_group in range(index * each, (index + 1) * each):
            offsets.append(len(content))
            for piece in groups(key_group, GROUPS[key_group], times):
                content += piece
            if len(content) == offsets[-1]:
                offsets[-1] = 0
        stream = sb.relative(f"f{index}", len(content))
        if url:
            stream = sb.absolute(f"{url}/f{index}", len(content))
        if is_merged:
            before = files.get("merged", b"")
            stream = sb.segment(f"{URL}/merged", len(before), len(content))
            files["merged"] = before + content
        else:
            files[f"f{index}"] = bytes(content)
        keyed = handle(index * each, offsets, stream)
        handles.append(sb.subtask(index, managed_keyed=keyed))
    return handles, files


def tables(subtasks: int, files: int) -> tuple[list[bytes], dict[str, bytes]]:
    """Return subtasks with the same keys in SST files, whose keys go one between the other."""
    serializer = CompositeKeySerializer(KEY_GROUPS, STRING)
    each = KEY_GROUPS // subtasks
    contents = {}
    handles = []
    for index in range(subtasks):
        mine = GROUPS[index * each : (index + 1) * each]
        records = sorted(
            (serializer.serialize(key), 7, VALUE, sb.i64(5)) for group in mine for key in group
        )
        shared = []
        for number in range(files):
            name = f"{index}-{number}.sst"
            contents[name] = sst(records[number::files], "count", per_block=4)
            shared.append((name, sb.relative(name, len(contents[name]))))
        contents[f"{index}-meta"] = header()
        meta = sb.relative(f"{index}-meta", len(header()))
        keyed = sb.rocksdb(index * each, each, meta, shared)
        handles.append(sb.subtask(index, managed_keyed=keyed))
    return handles, contents


def operator(store: type[CountedStore]) -> Operator:
    """Return the operator, of which nothing but `_metadata` was asked for."""
    store.asked.clear()
    (read,) = read_savepoint(URL).operators
    assert store.asked == [(READ, "folder/_metadata", None, None)]
    store.asked.clear()
    store.rounds = 0
    return read


@pytest.mark.parametrize("form", ["canonical", "native"])
def test_headers(form: str, store: type[CountedStore]) -> None:
    """A request each, side by side, and a listing for the sizes."""
    subtasks, files = streams(form, 128)
    put(store, subtasks, files)
    states = operator(store).states
    assert [str(state) for state in states] == ["count: VALUE <STRING, LONG>"]
    assert store.count(READ) == 128
    assert store.count(LIST) == 1
    assert store.count(SIZE) < 32
    assert store.rounds < 10
    for name, start, end in store.reads():  # one byte more where there are no key groups behind it
        assert (start, min(end, len(store.files[name]))) == (0, len(header()))


def test_no_listing(store: type[CountedStore]) -> None:
    """Where none is allowed, each file is asked for its size; and a listing may be of before."""
    subtasks, files = streams("canonical", 128)
    put(store, subtasks, files)
    store.lists = False
    assert operator(store).states
    assert store.count(SIZE) > 96


def test_sizes_of_before(store: type[CountedStore], monkeypatch: pytest.MonkeyPatch) -> None:
    """A listing that does not have a file, or has another size of it, refuses none."""
    subtasks, files = streams("canonical", 128)
    put(store, subtasks, files)
    read = operator(store)
    listed = CountedStore._ls

    async def of_before(self: CountedStore, *arguments: Any, **named: Any) -> list[dict[str, Any]]:
        infos = await listed(self, *arguments, **named)
        return [info | {"size": 1} for info in infos[:-50]]

    monkeypatch.setattr(CountedStore, "_ls", of_before)
    assert len(read.states) == 1
    assert store.count(LIST) == 1


@pytest.mark.parametrize("form", ["canonical", "native"])
def test_one_key_group(form: str, store: type[CountedStore]) -> None:
    """Its bytes, the header and the size of the file, at once; all in one if it is near."""
    far = 1_000  # times each entry, which makes more than 64 KB of a key group
    subtasks, files = streams(form, 2, far)
    put(store, subtasks, files)
    read = operator(store)
    for key_group in (70, 100, 127):
        store.asked.clear()
        store.rounds = 0
        entries = list(read.entries(key_groups=[key_group]))
        assert {entry.key for entry in entries} == set(GROUPS[key_group])
        assert {entry.key_group for entry in entries} == {key_group}
        assert len(store.asked) <= 3
        assert store.rounds == 1
        assert sum(end - start for _, start, end in store.reads()) < 0.1 * len(files["f1"])


@pytest.mark.parametrize("tail", [320, 1024])
def test_one_key_group_in_tables(
    tail: int, store: type[CountedStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each file its end, its index if that is not there, and the blocks of the key group."""
    monkeypatch.setattr(rocksdb, "TAIL", tail)
    subtasks, files = tables(2, 3)
    put(store, subtasks, files)
    read = operator(store)
    size = sum(len(files[f"1-{number}.sst"]) for number in range(3))
    for key_group in (64, 100):
        store.asked.clear()
        store.rounds = 0
        entries = list(read.entries(key_groups=[key_group]))
        assert [entry.key for entry in entries] == sorted(GROUPS[key_group])
        assert store.count(SIZE) == 0
        assert store.rounds == (3 if tail < 1024 else 2)  # the ends of all files come at once
        for number in range(3):
            asked = [name for name, *_ in store.reads() if name == f"folder/1-{number}.sst"]
            assert len(asked) == (3 if tail < 1024 else 2)
        assert sum(end - start for _, start, end in store.reads()) < 0.5 * size


def content_of(read: Operator) -> list[tuple[Any, ...]]:
    return [(entry.subtask, entry.key_group, entry.key, entry.value) for entry in read.entries()]


@pytest.mark.parametrize("form", ["canonical", "native", "tables"])
def test_all(form: str, store: type[CountedStore]) -> None:
    """Each byte is read once, of small files all at once, and before they are opened."""
    subtasks, files = tables(8, 3) if form == "tables" else streams(form, 8)
    put(store, subtasks, files)
    entries = content_of(operator(store))
    assert sorted(key for _, _, key, _ in entries) == sorted(chain.from_iterable(GROUPS))
    assert [key_group for _, key_group, *_ in entries] == sorted(
        key_group for key_group, group in enumerate(GROUPS) for _ in group
    )
    assert len(store.asked) == (8 * 4 if form == "tables" else 8)
    assert store.rounds < 8
    assert sum(end - start - 1 for _, start, end in store.reads()) == sum(map(len, files.values()))


@pytest.mark.parametrize(("subtasks", "times"), [(1, 100), (32, 50)])
@pytest.mark.parametrize("form", ["canonical", "native"])
def test_bytes_that_are_held(
    form: str, subtasks: int, times: int, store: type[CountedStore], small: int
) -> None:
    """What is asked for ahead is bounded, in one file and over many."""
    put(store, *streams(form, subtasks, times))
    entries = operator(store).entries()
    passed = 0
    while passed < 150_000:
        passed += sum(entry.bytes for entry in islice(entries, 100))
        asked = sum(end - start for _, start, end in store.reads())
        assert asked < 1.5 * passed + small + 20_000
    assert asked > passed + small / 2
    assert store.rounds < len(store.asked) / 3


@pytest.mark.parametrize("form", ["canonical", "tables"])
def test_a_file_that_is_gone(form: str, store: type[CountedStore]) -> None:
    """Or has another size: an error that names it, whether it was asked for ahead or not."""
    subtasks, files = tables(8, 2) if form == "tables" else streams(form, 8)
    put(store, subtasks, files)
    name = "5-1.sst" if form == "tables" else "f5"
    content = store.files[f"folder/{name}"]
    size = len(content)
    read = operator(store)
    for present, message in (
        (None, f"folder/{name}: cannot be opened: no such key"),
        (content[:-1], f"folder/{name}: the file has {size - 1} bytes, its handle says {size}"),
        (content + b"x", f"folder/{name}: the file has {size + 1} bytes, its handle says {size}"),
        (b"", f"folder/{name}: the file has 0 bytes, its handle says {size}"),
    ):
        if present is None:
            del store.files[f"folder/{name}"]
        else:
            store.files[f"folder/{name}"] = present
        for key_groups in (None, [85]):
            with pytest.raises(SavepointError, match=message):
                for _ in read.entries(key_groups=key_groups):
                    pass


def test_a_file_that_goes_half_way(store: type[CountedStore], small: int) -> None:
    """After what was asked for ahead, of which the entries are given."""
    subtasks, files = streams("canonical", 1, 200)
    assert len(files["f0"]) > 4 * small
    put(store, subtasks, files)
    entries = operator(store).entries()
    list(islice(entries, 1_000))
    store.files["folder/f0"] = b""
    with pytest.raises(SavepointError, match=r"folder/f0, offset \d+: the file ends \d+ bytes"):
        list(entries)
    del store.files["folder/f0"]


def test_a_store_that_gives_more(
    store: type[CountedStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that knows no ranges: nothing of it is taken for what was asked for."""
    subtasks, files = streams("canonical", 2, 2_000)
    put(store, subtasks, files)
    read = operator(store)

    async def whole(self: CountedStore, path: str, **options: Any) -> bytes:
        return self._content(path)

    monkeypatch.setattr(CountedStore, "_cat_file", whole)
    with pytest.raises(SavepointError, match=r"folder/f0, offset 0: the store gave \d+ bytes"):
        list(read.entries())


def test_tasks(store: type[CountedStore]) -> None:
    """Each by itself asks ahead too; and so it is after one that was left half-way."""
    subtasks, files = streams("native", 4)
    put(store, subtasks, files)
    read = operator(store)
    numbers = {state.name: number for number, state in enumerate(read.states)}
    rest = read.entries()
    next(rest)
    rest.close()  # type: ignore[attr-defined]  # An Iterator need not have it.
    store.asked.clear()
    for task in pickle.loads(pickle.dumps(read.tasks())):
        # A text has its length and one more before it; the namespace is a byte.
        keys = [key[1:-1].decode() for _, _, key, _ in task.encoded_entries(numbers)]
        assert sorted(keys) == sorted(key for group in task.key_groups for key in GROUPS[group])
    assert len(store.asked) == 4
    assert sum(len(list(task.entries())) for task in read.tasks()) == sum(map(len, GROUPS))
    assert len(store.asked) == 8


def test_segments_of_one_file(store: type[CountedStore]) -> None:
    """The streams of several subtasks, each of which begins where another one ends."""
    subtasks, files = streams("canonical", 4, is_merged=True)
    put(store, subtasks, files)
    read = operator(store)
    assert sorted(key for _, _, key, _ in content_of(read)) == sorted(chain.from_iterable(GROUPS))
    store.files["folder/merged"] = files["merged"][:-7]
    with pytest.raises(SavepointError, match=r"merged: the file has \d+ bytes, .* from \d+ on"):
        content_of(read)


def test_operator_state(store: type[CountedStore]) -> None:
    """Each file is asked for once, whole, and for a byte that it should not have."""
    info = sb.meta_info("offsets", 1, {}, {"VALUE_SERIALIZER": sb.simple("Int")})
    header = sb.operator_header([info], [])
    files = {f"f{index}": header + sb.i32(index) for index in range(3)}
    size = len(header) + 4
    handles = [
        sb.subtask(
            index,
            managed_operator=sb.operator_state(
                [("offsets", 0, [len(header)])], sb.relative(name, size)
            ),
        )
        for index, name in enumerate(files)
    ]
    put(store, handles, files)
    read = operator(store)
    assert [entry.elements for entry in read.operator_state()] == [[0], [1], [2]]
    asked = [request for request in store.asked if request[0] == READ]
    assert sorted(asked) == [(READ, f"folder/{name}", 0, size + 1) for name in files]


def test_timers_in_raw_state(store: type[CountedStore]) -> None:
    """Each key group says what their types are: of the others nothing is asked for."""
    start = b"\xf1\xcd\x85\x9f" + sb.i32(2, 1) + sb.utf("timers") + sb.simple("Long") + sb.NONE
    of_key_group = start + sb.i32(1) + sb.i64(3) + b"\0" + sb.i64(7) + sb.i32(0)
    size = len(of_key_group)
    raw = sb.native(3, [0, size], sb.relative("raw", 2 * size))
    put(store, [sb.subtask(raw_keyed=raw)], {"raw": 2 * of_key_group})
    assert len(operator(store).states) == 2
    assert store.reads() == [("folder/raw", 0, size)]


@pytest.mark.parametrize("before", [0, 1 << 17])
def test_logs_of_changes(store: type[CountedStore], before: int) -> None:
    """A small one is read at once; of what is before the first piece of a large one a byte."""
    string, long = sb.simple("String"), sb.simple("Long")
    timers = logged(1, sb.state("t", "", sb.timer_of(string, sb.NONE), backend_type=3), kind=3)
    changes = [timers, logged(0, sb.state("count", "VALUE", long))]
    logs = [change_set([*changes, change(SET, 0, key, sb.i64(5))]) for key in (b"\2a\0", b"\2b\0")]
    files = {f"log{number}": bytes(1 + before) + log for number, log in enumerate(logs)}
    pieces = [(before, sb.relative(name, before + len(log))) for name, log in zip(files, logs)]
    keyed = changelog([], [in_streams(pieces)])
    put(store, [sb.subtask(managed_keyed=keyed)], files)
    assert [(entry.key, entry.value) for entry in operator(store).entries()] == [
        ("a", 5),
        ("b", 5),
    ]
    spans = [(start, min(end, len(files["log0"]))) for _, start, end in store.reads()]
    whole = (0, len(files["log0"]))
    assert spans == ([(0, 1), (1 + before, whole[1])] if before else [whole]) * 2
    assert store.rounds == 1


@pytest.mark.parametrize("has_changes", [False, True])
def test_what_changes_start_from(has_changes: bool, store: type[CountedStore]) -> None:
    """It is asked for with the changes, all at once."""
    state = sb.state("count", "VALUE", sb.simple("Long"))
    head = sb.keyed_header(sb.simple("String"), [state])
    files, bases, changes = {}, [], []
    for name, key_group in (("a", 3), ("b", 5)):
        files[name] = head + b"".join(canonical_key_group(key_group, GROUPS[key_group], 1))
        stream = sb.relative(name, len(files[name]))
        bases.append(sb.canonical(key_group, [len(head)], stream))
    if has_changes:
        log = change_set([logged(0, state), change(SET, 0, b"\2a\0", sb.i64(7))])
        files["log"] = b"\0" + log
        changes = [in_streams([(0, sb.relative("log", len(log)))])]
    put(store, [sb.subtask(managed_keyed=changelog(bases, changes))], files)
    keys = [entry.key for entry in operator(store).entries()]
    assert sorted(keys) == sorted(GROUPS[3] + GROUPS[5] + ["a"] * has_changes)
    assert store.rounds == 1


def test_large_tables(
    store: type[CountedStore], small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their blocks are asked for by windows, of several tables side by side."""
    for module, name, size in (
        (rocksdb, "REQUEST", 1 << 11),
        (rocksdb, "TAIL", 1 << 9),
        (sst_module, "CHUNK", 1 << 9),
    ):
        monkeypatch.setattr(module, name, size)
    subtasks, files = tables(1, 3)
    put(store, subtasks, files)
    read = operator(store)
    assert len(content_of(read)) == sum(map(len, GROUPS))
    assert sum(end - start for _, start, end in store.reads()) < 1.3 * sum(
        map(len, files.values())
    )
    assert store.rounds < len(store.asked) / 2


def test_two_files_at_once(store: type[CountedStore], small: int) -> None:
    """Where there is no room to ask ahead, for bytes that were not planned, and backwards."""
    content = bytes(range(256)) * 1_000
    size = len(content)
    store.files = {f"folder/{name}": content for name in "abc"}
    handles = [StreamHandle(size, path=name, is_relative=True) for name in "abc"]
    plan = [(handle, [(0, 100_000), (150_000, size)]) for handle in handles]
    with Files(URL, {}).ahead(plan) as reader:
        # What is planned first is not opened.
        with reader.open(handles[1]) as first, reader.open(handles[2]) as second:
            for start in (64_000, *range(0, size, 32_000), *range(192_000, -1, -64_000)):
                for stream in (first, second):
                    end = min(start + 32_000, size)
                    assert stream.read(start, end) == content[start:end]
        assert isinstance(reader, _Reader)
        assert reader.requests.free == small


def test_a_file_that_is_planned_behind_two_others_does_not_take_their_place(
    store: type[CountedStore],
) -> None:
    store.asked.clear()
    store.files = {f"folder/{name}": name.encode() for name in "abc"}
    a, b, c = (StreamHandle(1, path=name, is_relative=True) for name in "abc")
    with Files(URL, {}).ahead((handle, [(0, 1)]) for handle in (a, b, c)) as reader:
        for handle in (c, a, b):
            with reader.open(handle) as stream:
                assert stream.read(0, 1) == handle.path.encode()
    # The size of the others is known by what they were planned with.
    assert [name for kind, name, *_ in store.asked if kind == SIZE] == ["folder/c"]


@pytest.mark.parametrize(
    ("spans", "asked"),
    [
        ([(0, 100), (65_636, 65_700)], [(0, 65_700)]),  # 64 KB are read, rather than asked around
        ([(0, 100), (65_637, 65_700)], [(0, 100), (65_637, 65_700)]),
        ([(0, 100), (50, 80)], [(0, 100)]),
        ([(500, 600), (0, 100), (200, 300)], [(500, 600), (0, 300)]),
        ([(5, 5 + (2 << 20))], [(5, 5 + (2 << 20))]),
        ([(5, 6 + (2 << 20))], [(5, 5 + (2 << 20)), (5 + (2 << 20), 6 + (2 << 20))]),
    ],
)
def test_pieces_that_are_asked_for_by_one_request(
    spans: list[tuple[int, int]], asked: list[tuple[int, int]], store: type[CountedStore]
) -> None:
    store.asked.clear()
    store.files = {"folder/a": bytes(3 << 20)}
    handle = StreamHandle(3 << 20, path="a", is_relative=True)
    with Files(URL, {}).ahead([(handle, spans)]) as reader, reader.open(handle) as stream:
        for start, end in spans:
            assert stream.read(start, end) == bytes(end - start)
    assert [(start, end) for _, start, end in store.reads()] == asked


def test_how_many_requests_are_made_ahead(store: type[CountedStore]) -> None:
    """As many as 32 MiB are, where each counts as 128 KiB at least."""
    store.asked.clear()
    spans = [(start, start + 10) for start in range(0, 300 * 70_000, 70_000)]
    handle = StreamHandle(300 * 70_000, path="a", is_relative=True)
    store.files = {"folder/a": bytes(300 * 70_000)}
    with Files(URL, {}).ahead([(handle, spans)]) as reader, reader.open(handle) as stream:
        assert stream.read(0, 10) == bytes(10)
        assert len(store.reads()) == 256


def test_requests_grow_as_far_as_there_is_room(
    store: type[CountedStore], small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes twice as many bytes as that before, up to the largest."""
    monkeypatch.setattr(store_file, "_LARGEST", 1 << 14)
    store.asked.clear()
    content = bytes(range(256)) * 1_000
    store.files = {f"folder/{name}": content for name in "ab"}
    handles = [StreamHandle(len(content), path=name, is_relative=True) for name in "ab"]
    room = []
    with Files(URL, {}).ahead((handle, [(0, len(content))]) for handle in handles) as reader:
        assert isinstance(reader, _Reader)
        for handle in handles:
            with reader.open(handle) as stream:
                for start in range(0, len(content), 1 << 9):
                    end = start + (1 << 9)
                    assert stream.read(start, end) == content[start:end]
                    room.append(reader.requests.free)
    bounds = [0, 1 << 12, 3 << 12, *range(7 << 12, len(content), 1 << 14), len(content)]
    for name in ("folder/a", "folder/b"):
        assert [span for asked, *span in store.reads() if asked == name] == [
            [start, end] for start, end in pairwise(bounds)
        ]
    assert 0 <= min(room) < 1 << 14


@pytest.mark.parametrize("size", [0, 1, 2])
def test_a_file_that_a_listing_lacks_is_asked_for_its_size(
    size: int, store: type[CountedStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    store.asked.clear()
    store.files = {"folder/a": bytes(size)}
    listing: Future[Any] = Future()
    listing.set_result({})
    monkeypatch.setattr(store_file.Requests, "ask_size", lambda *_: listing)
    filesystem, _ = filesystem_of(URL)
    handle = StreamHandle(size, path="a")
    file = store_file.StoreFile(store_file.Requests(), filesystem, "folder/a", handle)
    file.begin()
    assert file.size == size
    assert store.count(SIZE) == 1


def test_what_is_planned_may_be_left_out(store: type[CountedStore], small: int) -> None:
    """And asked for by another piece of it."""
    content = bytes(range(256)) * 2_000
    store.files = {"folder/a": content}
    handle = StreamHandle(len(content), path="a", is_relative=True)
    spans = [(0, 100_000), (150_000, 160_000), (200_000, 300_000), (350_000, 360_000)]
    inline = StreamHandle(3, data=b"abc")
    for plan in ([], [(inline, [(0, 3)]), (handle, spans)]):
        with Files(URL, {}).ahead(plan) as reader, reader.open(handle) as stream:
            stream.ahead(66_000, 67_000)
            for start in (66_000, 0, 205_000, 100, 352_000):
                assert stream.read(start, start + 50) == content[start : start + 50]


def test_what_is_asked_for_where_a_planned_piece_starts_is_that_piece(
    store: type[CountedStore], small: int
) -> None:
    store.asked.clear()
    content = bytes(range(256)) * 400
    store.files = {"folder/a": content}
    handle = StreamHandle(len(content), path="a", is_relative=True)
    spans = [(0, 80_000)]
    with Files(URL, {}).ahead([(handle, spans)]) as reader, reader.open(handle) as stream:
        stream.ahead(small, small + 1_000)  # there was no more room for it
        for start in range(0, 80_000, 1_000):
            assert stream.read(start, start + 1_000) == content[start : start + 1_000]
    starts = [start for _, start, _ in store.reads()]
    assert starts == [*range(0, 80_000, 1 << 12)]


@pytest.mark.parametrize("is_at_end", [False, True])
def test_what_is_read_where_a_planned_piece_starts_is_that_piece(
    store: type[CountedStore], small: int, is_at_end: bool
) -> None:
    """And where it ends another one."""
    store.asked.clear()
    store.files = {"folder/a": bytes(100_000)}
    handle = StreamHandle(100_000, path="a", is_relative=True)
    end = small + (1 << 12)  # the end of the piece that had no room
    with Files(URL, {}).ahead([(handle, [(0, end)])]) as reader, reader.open(handle) as stream:
        for start in [end] if is_at_end else [small, small + 1_000]:
            assert stream.read(start, start + 1_000) == bytes(1_000)
    asked = [start for _, start, _ in store.reads()]
    assert asked == [*range(0, small, 1 << 12), end if is_at_end else small]


def test_a_file_that_is_closed_takes_no_room(store: type[CountedStore]) -> None:
    store.files = {"folder/a": bytes(1_000)}
    handle = StreamHandle(1_000, path="a", is_relative=True)
    for spans in ([(0, 1_000)], [(0, 500), (500, 1_000)], [(0, 500)]):
        with Files(URL, {}).ahead([(handle, spans)]) as reader:
            with reader.open(handle) as stream:
                assert stream.read(0, 1_000) == bytes(1_000)
            assert isinstance(reader, _Reader)
            assert reader.requests.free == store_file.AHEAD


@pytest.mark.parametrize(
    ("free", "window"), [(32 << 20, 2 << 20), (4 << 20, 1 << 20), (1 << 17, 1 << 16), (0, 1 << 16)]
)
def test_a_window_is_a_quarter_of_the_room_within_bounds(free: int, window: int) -> None:
    requests = store_file.Requests()
    requests.free = free
    stream = StreamHandle(1, path="a")
    assert store_file.StoreFile(requests, None, "a", stream).window == window


@pytest.mark.parametrize("lists", [True, False])
def test_a_folder_is_listed_for_the_sizes_of_32_files(
    lists: bool, store: type[CountedStore]
) -> None:
    store.lists = lists
    store.asked.clear()
    store.files = {f"folder/{number}": bytes(number) for number in range(33)}
    filesystem, folder = filesystem_of(URL)
    requests = store_file.Requests(folder)
    asked = [requests.ask_size(filesystem, name) for name in islice(store.files, 32)]
    assert [future.result() for future in asked[:31]] == [*range(31)]
    if lists:
        assert asked[31].result() == {f"folder/{number}": number for number in range(33)}
        assert requests.ask_size(filesystem, "folder/32") is asked[31]
    else:
        with pytest.raises(PermissionError, match="no listing here"):
            asked[31].result()
        assert requests.ask_size(filesystem, "folder/32").result() == 32
    assert store.count(LIST) == 1


def test_what_is_asked_for_where_a_planned_piece_ends_is_another(
    store: type[CountedStore], small: int
) -> None:
    store.asked.clear()
    store.files = {"folder/a": bytes(100_000)}
    handle = StreamHandle(100_000, path="a", is_relative=True)
    end = small + (1 << 12)  # the end of the piece that had no room
    with Files(URL, {}).ahead([(handle, [(0, end)])]) as reader, reader.open(handle) as stream:
        stream.ahead(end, end + 1_000)
        assert stream.read(end, end + 1_000) == bytes(1_000)
    # There is room for what was planned when the pieces before are dropped.
    assert [start for _, start, _ in store.reads()] == [*range(0, small, 1 << 12), end, small]


def test_a_checkpoint(store: type[CountedStore]) -> None:
    """Its shared files are in another folder, which is not listed: it has those of others too."""
    subtasks, files = streams("canonical", 128, url="counted://job/shared")
    metadata = sb.metadata([sb.operator(subtasks, parallelism=128)])
    store.files = {f"job/shared/{name}": content for name, content in files.items()}
    store.files["job/chk-7/_metadata"] = metadata
    (read,) = read_savepoint("counted://job/chk-7").operators
    assert len(read.states) == 1
    assert store.count(LIST) == 0


def test_a_store_that_tells_no_sizes(
    store: type[CountedStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is too short is found when it is read."""
    subtasks, files = streams("canonical", 2)
    put(store, subtasks, files)
    read = operator(store)

    async def info(self: CountedStore, path: str, **options: Any) -> dict[str, Any]:
        return {"name": path, "size": None}

    monkeypatch.setattr(CountedStore, "_info", info)
    assert list(read.entries(key_groups=[100]))
    store.files["folder/f1"] = files["f1"][:400]
    with pytest.raises(SavepointError, match=r"folder/f1, offset \d+: the file ends"):
        list(read.entries(key_groups=[100]))


REAL = [*POINTS, *FORMATS]
IN_SHORT = {  # all kinds of handles and of streams, some without their bytes in `_metadata`
    "2.3.0-heap-native",
    "2.3.0-heaptimers-checkpoint",
    "2.3.0-changelog-checkpoint",
    "2.3.0-plain-rocksdb-changelog-native",
}


@pytest.mark.branch
@pytest.mark.long
@pytest.mark.parametrize(
    "real",
    [
        pytest.param(real, marks=() if real.name in IN_SHORT else pytest.mark.slow, id=real.name)
        for real in REAL
    ],
)
def test_real_savepoints(real: Point, store: type[CountedStore]) -> None:
    """They give what they give on a disk, where they are compared with what Flink reads."""
    root = real.root
    for path in root.rglob("*"):
        if path.is_file():
            store.files[f"folder/{path.relative_to(root).as_posix()}"] = path.read_bytes()
    name = f"folder/{real.point}/_metadata"
    store.files[name] = moved_to_files(store, read_metadata(store.files[name], name), real.point)
    moved = {old: new.replace(str(root), URL) for old, new in real.moved.items()}
    there = read_savepoint(f"{URL}/{real.point}", moved)
    for here, operator in zip(real.read().operators, there.operators, strict=True):
        assert what_is_in(operator) == what_is_in(here)


def moved_to_files(store: type[CountedStore], metadata: Metadata, point: str) -> bytes:
    """Put most that is in `_metadata` of state into files, and return what that is then."""

    def replaced(text: object, data: bytes) -> bytes | None:
        if not isinstance(text, StreamHandle) or text.data is None or text.size < 200:
            return None
        file = f"of-metadata-{len(store.files)}"
        store.files[f"folder/{point}/{file}"] = text.data
        return sb.relative(file, text.size)

    operators = metadata.operators
    return write_metadata(
        metadata, [write_operator(operator, metadata.version, replaced) for operator in operators]
    )


def what_is_in(operator: Operator) -> list[object]:
    """Return all that is in an operator, and the errors of what cannot be read."""
    seen: list[object] = []
    for read in (
        lambda: operator.states,
        lambda: list(operator.entries()),
        lambda: list(operator.entries(key_groups=[1, 5, operator.max_parallelism - 1])),
        lambda: list(operator.operator_state()),
        operator.key_group_bytes,
    ):
        try:
            seen.append(repr(read()))
        except SavepointError as error:
            seen.append(type(error))
    return seen


# --- schemes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "same"),
    [
        ("s3p://b/a", "s3://b/a"),
        ("s3n://b/a", "s3://b/a"),
        ("abfss://c@a.dfs.core.windows.net/a", "abfs://c@a.dfs.core.windows.net/a"),
        ("wasbs://c@a.blob.core.windows.net/a", "abfs://c@a.blob.core.windows.net/a"),
        ("wasb://c@a.blob.core.windows.net/a", "abfs://c@a.blob.core.windows.net/a"),
        ("s3a://b/a", "s3a://b/a"),
        ("memory://a", "memory://a"),
        ("/a/b", "/a/b"),
    ],
)
def test_the_schemes_of_flink_are_those_of_fsspec(url: str, same: str) -> None:
    assert fsspec_url(url) == same


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("oss://b/a", "oss:// takes the package ossfs, which is not installed"),
        (
            "wasbs://c@a.blob.core.windows.net/a",
            "abfs:// takes the package adlfs, which is not installed",
        ),
        *(
            (f"{scheme}://b/a", f"{scheme}:// takes the package {package}, which is not installed")
            for scheme, package in (
                *(("s3", "s3fs"), ("s3a", "s3fs"), ("gs", "gcsfs"), ("gcs", "gcsfs")),
                *(("abfs", "adlfs"), ("az", "adlfs")),
            )
        ),
        ("cos://b/a", "fsspec knows no cos://, nor any package for it"),
    ],
)
def test_what_a_scheme_takes_is_told_in_a_line(
    url: str, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = pytest.importorskip("fsspec.registry", reason="the extra savepoint")
    # Another test may have opened the store. What looks a scheme up has its own view of this dict,
    # which another dict in its place would not change.
    for scheme in [*registry.registry]:
        monkeypatch.delitem(registry._registry, scheme)
    for package in ("ossfs", "adlfs", "s3fs", "gcsfs"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(KeyGroupsError) as error:
        read_savepoint(url)
    assert str(error.value) == f"{url}/_metadata: {advice}"


def test_hdfs_without_hadoop_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("Unable to load libjvm\ndlopen(...) failed")

    monkeypatch.setattr("fsspec.core.url_to_fs", refuse)
    with pytest.raises(
        KeyGroupsError, match=r"^hdfs://n:1/a/_metadata: hdfs takes a Hadoop client"
    ):
        read_savepoint("hdfs://n:1/a")
    with pytest.raises(SavepointError, match=r"^s3://b/a/_metadata: cannot be opened: U"):
        read_savepoint("s3://b/a")


def test_the_class_of_a_store() -> None:
    assert class_of_store("memory://a").__name__ == "MemoryFileSystem"
