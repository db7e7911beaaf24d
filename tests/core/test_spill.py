"""More entries than are held are sorted by way of files, of savepoints new or written anew."""

from __future__ import annotations

import errno
import os
import random
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir
from typing import Any
from unittest.mock import Mock

import pytest
from support.bytes.expected_savepoints import (
    BY_STRING,
    KINDS,
    LONGS,
    STRINGS,
    check_folder,
    expected_files,
    keys_by_group,
    known_entries,
    known_state,
)
from support.bytes.real_savepoints import point
from support.inside.savepoints import EncodedEntry, spill

from keygroups.errors import InvalidTypeError, InvalidValueError, SavepointError
from keygroups.progress import Progress
from keygroups.savepoint import (
    MapStateDescriptor,
    SavepointWriter,
    TimerServiceDescriptor,
    ValueStateDescriptor,
    change_max_parallelism,
    read_savepoint,
)
from keygroups.types import LONG, STRING

COUNTS = [ValueStateDescriptor("count", LONG)]


class Opened:
    """Files of a folder that `Path.open` opens: how often to be written, how many at once.

    `kept` is how many there were when one was opened last.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.written = self.most = self.kept = 0
        self._open: list[Any] = []
        open_path = Path.open

        def open_counted(path: Path, mode: str = "r", *rest: Any) -> Any:
            file = open_path(path, mode, *rest)
            if path.parent.parent == folder:
                self._open = [one for one in self._open if not one.closed] + [file]
                self.most = max(self.most, len(self._open))
                self.written += mode == "wb"
                self.kept = len([*path.parent.iterdir()])
            return file

        monkeypatch.setattr(Path, "open", open_counted)


def random_entries(count: int) -> Iterator[EncodedEntry]:
    """Yield entries of 50 bytes, most of one key group, of which many are alike in their start."""
    numbers = random.Random(0)
    for _ in range(count):
        key_group = numbers.choice((0, 7, 7, 7, 300, 32767))
        size = numbers.choice((1, 1, 20, 50))
        key = bytes(size - 1) + numbers.randbytes(1)
        yield EncodedEntry(key_group, numbers.randrange(3), key, numbers.randbytes(50 - size))


@pytest.mark.parametrize(
    ("held", "most", "written", "again"),
    [
        pytest.param(1001, 128, 0, 0, id="in memory"),
        pytest.param(1000, 128, 1, 0, id="1 file"),
        pytest.param(300, 128, 4, 0, id="4 files"),
        pytest.param(10, 100, 100, 0, id="as many as are open at once"),
        pytest.param(10, 99, 101, 2 * 10, id="two in one"),
        # Of 5 files in one, there are 4 less: 24 times, until there are 5 at most. The first 20
        # of these have all entries, 3 more 5 files of 50 each; the last one is left with 4.
        pytest.param(10, 5, 100 + 24, 1_000 + 3 * 250 + 200, id="merged"),
        # 12 times 16, and 5 of the 8 that are left, so that there are 16.
        pytest.param(5, 16, 200 + 13, (12 * 16 + 5) * 5, id="merged again and again"),
    ],
)
def test_sorted(
    held: int, most: int, written: int, again: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order of Python's own sort, with so many files, and so many open, as need be.

    No more entries than need be are written `again`.
    """
    monkeypatch.setattr(spill, "_HELD", held * (50 + spill._OF_AN_ENTRY))
    monkeypatch.setattr(spill, "_MOST_RUNS", most)
    pack = Mock(wraps=spill.packed)
    monkeypatch.setattr(spill, "packed", pack)
    opened = Opened(tmp_path, monkeypatch)
    entries = [*random_entries(1_000)]
    assert [*spill.sorted_entries(iter(entries), tmp_path)] == sorted(entries)
    assert opened.written == written
    assert pack.call_count == (1_000 + again if written else 0)
    assert opened.most <= most + 1  # the one that is written
    assert opened.kept == min(written, most)  # not those that are in another one since
    assert not [*tmp_path.iterdir()]


def test_64_mib_of_entries_are_sorted_in_memory(tmp_path: Path) -> None:
    """As .github/ARCHITECTURE.md says; each of these has a mebibyte."""
    sorter, value = spill.EntrySorter(tmp_path), bytes(1 << 20)
    is_full = [sorter.add(EncodedEntry(1, 0, b"", value)) for _ in range(64)]
    assert is_full == [False] * 63 + [True]


def test_memory_is_flat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one key group, eight times the entries take hardly more memory."""
    monkeypatch.setattr(spill, "_HELD", 1 << 15)
    monkeypatch.setattr(spill, "_MOST_RUNS", 4)
    monkeypatch.setattr(spill, "_BUFFERED", 1 << 6)
    peaks = []
    for count in (500, 4_000):
        keys = ((number * 7919 % count).to_bytes(8, "big") for number in range(count))
        entries = (EncodedEntry(3, 0, key, b"") for key in keys)
        tracemalloc.start()
        try:
            assert sum(1 for _ in spill.sorted_entries(entries, tmp_path)) == count
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def test_rewriting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A savepoint with another max parallelism is the same, whatever was in files."""
    old = point("2.3.0-heap-canonical").read()
    change_max_parallelism(old, 200, tmp_path / "one", operators=["by-string"])
    monkeypatch.setattr(spill, "_HELD", 10_000)
    change_max_parallelism(old, 200, tmp_path / "many", operators=["by-string"])
    one, many = (contents(tmp_path / name) for name in ("one", "many"))
    assert one == many
    assert sum(map(len, one)) > 10_000


def contents(folder: Path) -> list[bytes]:
    """Return the files of keyed state, without their names."""
    return sorted(path.read_bytes() for path in folder.iterdir() if path.name != "_metadata")


# Savepoints that are written


@pytest.mark.parametrize("held", [1 << 26, 1_000])
@pytest.mark.parametrize("has_ttl", [False, True], ids=["plain", "TTL"])
def test_any_order(
    has_ttl: bool, held: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All kinds of state, in any order of key groups: the bytes are those that Flink writes."""
    monkeypatch.setattr(spill, "_HELD", held)
    states = [known_state(kind, has_ttl, LONGS, STRINGS) for kind in KINDS]
    entries = known_entries(STRINGS, states)
    expected = expected_files(STRINGS, states, entries, 128, 3)
    for number in range(3):
        folder = tmp_path / str(number)
        with SavepointWriter(folder) as writer:
            descriptors = [state.descriptor for state in states]
            operator = writer.add_operator("by-string", STRING, descriptors, 128, 3, sort=True)
            for one in random.Random(number).sample(entries, len(entries)):
                operator.write(one.state, one.key, one.value, one.user_key, one.last_access)
        check_folder(folder, {BY_STRING: expected}, 128, 3)


def test_timers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Timers take turns with entries, and none is lost: as in the order of key groups."""
    monkeypatch.setattr(spill, "_HELD", 2_000)
    keys = keys_by_group(128, *range(0, 128, 9))
    states = [*COUNTS, TimerServiceDescriptor()]
    for name, order in (("sorted", keys), ("unsorted", keys[::-1])):
        with SavepointWriter(tmp_path / name) as writer:
            is_sorted = name == "sorted"
            operator = writer.add_operator("uid", STRING, states, 128, 3, sort=not is_sorted)
            for key in order:
                operator.write_timer(key, 1_700_000_000_000)
                operator.write("count", key, 5)
                operator.write_timer(key, -1, "PROCESSING_TIME")
    assert contents(tmp_path / "sorted") == contents(tmp_path / "unsorted")


def test_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Key groups are counted as they are written, after all are there; so are bytes moved."""
    monkeypatch.setattr("keygroups.progress._INTERVAL", -1)
    reports: list[Progress] = []
    keys = keys_by_group(128, 0, 5, 90, 127)
    with SavepointWriter(tmp_path / "new", progress=reports.append) as writer:
        operator = writer.add_operator("uid", STRING, COUNTS, 128, 3, sort=True)
        for key in reversed(keys):
            operator.write("count", key, 5)
        operator.close()
        assert [one.done for one in reports] == [0, 5, 90, 127, 128]
    assert {one[2:] for one in reports} == {(128, "key groups")}
    reports.clear()
    with SavepointWriter(tmp_path / "ordered", progress=reports.append) as writer:
        operator = writer.add_operator("uid", STRING, COUNTS, 128, 3)
        for key in keys:
            operator.write("count", key, 5)
    assert [one.done for one in reports] == [0, 5, 90, 127, 128]
    monkeypatch.setattr(spill, "_COUNTED", 1)
    reports.clear()
    old = read_savepoint(tmp_path / "new", progress=reports.append)
    change_max_parallelism(old, 64, tmp_path / "b")
    # A sort reads all bytes, and writes as many.
    size = sum(task.bytes_to_read for task in old.operator("uid").tasks())
    assert reports[0].total == 2 * size
    done = [one.done for one in reports]
    assert len(done) > 4
    assert done == sorted(set(done))
    assert done[-1] == reports[0].total


def test_no_entry(tmp_path: Path) -> None:
    with SavepointWriter(tmp_path / "savepoint") as writer:
        writer.add_operator("uid", STRING, COUNTS, 128, 3, sort=True)
    assert not [*read_savepoint(tmp_path / "savepoint").operator("uid").entries()]


@pytest.mark.parametrize("held", [1 << 26, 1_000])
def test_an_entry_that_is_there_twice(
    held: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its key and user key are named, as far apart as they came; nothing is left."""
    monkeypatch.setattr(spill, "_HELD", held)
    message = "each key must come once, got key 'ann' in state 'cities' with the user key 'Rome' "

    def write() -> None:
        with SavepointWriter(tmp_path / "savepoint") as writer:
            states = [MapStateDescriptor("cities", STRING, LONG)]
            operator = writer.add_operator("uid", STRING, states, 128, 3, sort=True)
            operator.write("cities", "ann", 1, "Rome")
            for number in range(20):
                operator.write("cities", f"user {number}", number, "Rome")
            operator.write("cities", "ann", 2, "Oslo")
            operator.write("cities", "ann", 3, "Rome")

    with pytest.raises(InvalidValueError, match=message):
        write()
    assert not [*tmp_path.iterdir()]


class WrongError(Exception):
    """Something of the caller's own."""


class Number(int):
    """A value that is written when it comes, as its class is not that of its column."""


@pytest.mark.parametrize("error", [WrongError, KeyboardInterrupt])
def test_an_error_in_the_block(
    error: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file is left, of those that were sorted neither."""
    monkeypatch.setattr(spill, "_HELD", 1_000)

    def write() -> None:
        with SavepointWriter(tmp_path / "savepoint") as writer:
            operator = writer.add_operator("uid", STRING, COUNTS, 128, 3, sort=True)
            for number in range(20):
                operator.write("count", f"user {number}", Number(number))
            assert len([*tmp_path.rglob("*/0")]) == 1
            raise error("mine")

    with pytest.raises(error, match="mine"):
        write()
    assert not [*tmp_path.iterdir()]


def test_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorted files are in the machine's folder for temporary files, until the end."""
    fsspec = pytest.importorskip("fsspec", reason="the extra savepoint")
    monkeypatch.setattr(spill, "_HELD", 1_000)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    opened = Opened(Path(gettempdir()), monkeypatch)
    keys = keys_by_group(128, *range(128))
    with SavepointWriter("memory://sorted/savepoint") as writer:
        operator = writer.add_operator("uid", STRING, COUNTS, 128, 3, sort=True)
        for key in reversed(keys):
            operator.write("count", key, Number(5))
        assert len([*tmp_path.iterdir()]) == 1
    assert opened.written > 10
    assert not [*tmp_path.iterdir()]
    (operator_read,) = read_savepoint("memory://sorted/savepoint").operators
    assert [entry.key for entry in operator_read.entries()] == keys
    fsspec.filesystem("memory").rm("/sorted", recursive=True)


@pytest.mark.parametrize("after", range(0, 30, 3))
def test_a_full_disk(after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever file has no more room; who goes on all the same writes no savepoint."""
    monkeypatch.setattr(spill, "_HELD", 1_000)
    monkeypatch.setattr(spill, "_MOST_RUNS", 3)
    fail_packed(monkeypatch, after)

    def write() -> None:
        with SavepointWriter(tmp_path / "savepoint") as writer:
            operator = writer.add_operator("uid", STRING, COUNTS, 128, 3, sort=True)
            for number in range(20):
                with suppress(SavepointError):
                    operator.write("count", f"user {number}", number)

    with pytest.raises(SavepointError, match="cannot be written"):
        write()
    assert not [*tmp_path.iterdir()]


def fail_packed(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Have the disk full after so many entries."""
    packed = spill.packed
    rest = after

    def fail(entry: EncodedEntry) -> bytes:
        nonlocal rest
        rest -= 1
        if rest < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return packed(entry)

    monkeypatch.setattr(spill, "packed", fail)


@pytest.mark.parametrize("wrong", [None, 1, "yes"])
def test_what_is_no_bool(wrong: Any, tmp_path: Path) -> None:
    with (
        pytest.raises(InvalidTypeError, match="sort must be a bool, got"),
        SavepointWriter(tmp_path / "savepoint") as writer,
    ):
        writer.add_operator("uid", STRING, COUNTS, 128, 3, sort=wrong)
