"""The folder of a savepoint that is written: it appears whole, or not at all."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from support.bytes.expected_savepoints import keys_by_group
from support.bytes.real_savepoints import point
from support.inside.savepoints import (
    EncodedEntry,
    OutputFolder,
    keyed_state_file,
    output_folder,
)

from keygroups import KeyGroupRange
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    LeftoverWarning,
    SavepointError,
)
from keygroups.savepoint import (
    OperatorWriter,
    SavepointWriter,
    ValueStateDescriptor,
    change_max_parallelism,
    convert_to_canonical,
    read_savepoint,
)
from keygroups.types import LONG, STRING

HEAP = point("2.3.0-heap-canonical")
COUNTS = [ValueStateDescriptor("count", LONG)]
KEYS = keys_by_group(128, *range(128))
NEW = r"(path|output) must be of a new folder, got .*: it is there"


class WrongError(Exception):
    """Something of the caller's own."""


def add_counts(writer: SavepointWriter, uid: str = "uid") -> OperatorWriter:
    return writer.add_operator(uid, STRING, COUNTS, 128, 3)


def write(path: Path | str) -> None:
    """Write a savepoint of 128 keys."""
    with SavepointWriter(path) as writer:
        operator = add_counts(writer)
        for key in KEYS:
            operator.write("count", key, 5)


def rewrite(path: Path | str) -> None:
    change_max_parallelism(HEAP.path, 256, path)


def convert(path: Path | str) -> None:
    convert_to_canonical(HEAP.path, path)


def is_whole(path: Path | str) -> bool:
    (operator,) = read_savepoint(path).operators
    return [entry.key for entry in operator.entries()] == KEYS


WRITERS = [write, rewrite, convert]
Write = Callable[[Path | str], None]


# What is there already


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("kind", ["file", "folder", "full folder", "dangling link", "link"])
def test_something_is_there(write: Write, kind: str, tmp_path: Path) -> None:
    """It is refused, and stays as it is."""
    path = tmp_path / "savepoint"
    if kind == "file":
        path.write_text("mine")
    elif kind == "folder":
        path.mkdir()
    elif kind == "full folder":
        path.mkdir()
        (path / "mine").write_text("mine")
    else:
        path.symlink_to(tmp_path if kind == "link" else tmp_path / "nowhere")
    before = sorted(tmp_path.rglob("*"))
    for passed in (path, str(path), f"{path}/", f"file://{path}", f"file:{path}"):
        with pytest.raises(InvalidValueError, match=NEW):
            write(passed)
    assert sorted(tmp_path.rglob("*")) == before


def test_parents_are_made(tmp_path: Path) -> None:
    for number, passed in enumerate(
        ("{}/a/b/savepoint", "{}/c/", "file:{}/d/e%20f", "file://{}/g")
    ):
        path = passed.format(tmp_path)
        write(path)
        assert is_whole(path)
        assert len(list(tmp_path.iterdir())) == number + 1
    assert (tmp_path / "d" / "e f" / "_metadata").exists()


def test_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is of the working directory of the beginning."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with SavepointWriter("savepoint") as writer:
        monkeypatch.chdir(tmp_path / "elsewhere")
        operator = add_counts(writer)
        for key in KEYS:
            operator.write("count", key, 5)
    assert is_whole(tmp_path / "savepoint")
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("path", ["", ".", "/", "//", "..", "/proc"])
def test_paths_that_are_there(path: str) -> None:
    for write in WRITERS:
        with pytest.raises(InvalidValueError, match=NEW):
            write(path)


@pytest.mark.parametrize(
    "path",
    [
        *("a\0b", "\ud800", "x" * 300, "no://where", "file:/proc/nothing", "/proc/savepoint"),
        *("/dev/null/savepoint", "s3://", "ftp://127.0.0.1:9/x", "\U000e0001" * 300),
    ],
)
def test_paths_that_cannot_be(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for write in WRITERS:
        with pytest.raises(KeyGroupsError, match=r"cannot be written|fsspec|s3fs") as caught:
            write(path)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 1000
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "path",
    [
        *("http://127.0.0.1:9/x", "https://127.0.0.1:9/x", "reference://x", "REFERENCE://x"),
        *("data://x", "zip://x", "simplecache://x", "generic://x", "github://a:b@c/d"),
        *("simplecache::memory://x", "reference://x::data:application/json;base64,e30="),
        "memory://x::file:///y",
    ],
)
def test_urls_that_nothing_is_written_to(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are refused before fsspec is asked for anything."""
    monkeypatch.setitem(sys.modules, "fsspec", None)
    for write in WRITERS:
        with pytest.raises(InvalidValueError, match="must be a path, or the URL of a store"):
            write(path)


@pytest.mark.parametrize(
    "spelled",
    [
        *("{0}/new", "{0}/a/b/new", "{0}/../{1}/new", "{0}//./new", "file:{0}/new"),
        *("file://{0}/new", "local://{0}/new", "{2}/link/new", "local://{2}/link/a/new"),
    ],
)
def test_inside_the_savepoint(spelled: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(HEAP.path)
    before = sorted(HEAP.path.iterdir())
    path = spelled.format(HEAP.path, HEAP.path.name, tmp_path)
    for write in (rewrite, convert):
        with pytest.raises(InvalidValueError, match="output must be outside the savepoint"):
            write(path)
    assert sorted(HEAP.path.iterdir()) == before


def test_a_link_that_leads_below_the_savepoint(tmp_path: Path) -> None:
    write(tmp_path / "savepoint")
    (tmp_path / "savepoint" / "below").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "savepoint" / "below")
    with pytest.raises(InvalidValueError, match="output must be outside the savepoint"):
        change_max_parallelism(tmp_path / "savepoint", 256, tmp_path / "link" / "new")
    change_max_parallelism(tmp_path / "savepoint", 256, tmp_path / "savepoint-new")


def test_a_local_url(tmp_path: Path) -> None:
    """As a path, it is written beside its place."""
    with SavepointWriter(f"local://{tmp_path}/savepoint") as writer:
        assert [path.suffix for path in tmp_path.iterdir()] == [".writing"]
        operator = add_counts(writer)
        for key in KEYS:
            operator.write("count", key, 5)
    assert is_whole(f"local://{tmp_path}/savepoint")
    assert is_whole(tmp_path / "savepoint")


@pytest.mark.parametrize("path", [None, 5, b"ab", ["a"], object()])
def test_what_is_no_path(path: Any) -> None:
    with pytest.raises(InvalidTypeError, match="path must be a str or a path"):
        SavepointWriter(path)
    for write in (rewrite, convert):
        with pytest.raises(InvalidTypeError, match="output must be a str or a path"):
            write(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_is_not_ours(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    for write in WRITERS:
        with pytest.raises(SavepointError, match="cannot be written: Permission denied"):
            write(tmp_path / "savepoint")


# Errors


@pytest.mark.parametrize("error", [WrongError, KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("written", [0, 1, 60, 128])
def test_an_error_in_the_block(error: type[BaseException], written: int, tmp_path: Path) -> None:
    """It comes through, and nothing is left; another try works."""

    def interrupted() -> None:
        with SavepointWriter(tmp_path / "savepoint") as writer:
            operators = [add_counts(writer, uid) for uid in ("a", "b")]
            for key in KEYS[:written]:
                for operator in operators:
                    operator.write("count", key, 5)
            raise error("mine")

    with pytest.raises(error, match="mine"):
        interrupted()
    assert not list(tmp_path.iterdir())
    write(tmp_path / "savepoint")
    assert is_whole(tmp_path / "savepoint")


@pytest.mark.long
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("write", WRITERS)
def test_an_error_anywhere(
    write: Write, error: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While an entry is written, and while a file is closed."""
    for module, name in (
        (keyed_state_file.KeyedStateFile, "_write_entry"),
        (keyed_state_file.KeyedStateFile, "_flush"),
        (output_folder.OutputFolder, "commit"),
        (os, "fsync"),
    ):
        for number in range(3):
            with monkeypatch.context() as patched:
                patched.setattr(module, name, failing(getattr(module, name), number, error()))
                with pytest.raises(error):
                    write(tmp_path / "savepoint")
            assert not list(tmp_path.iterdir())
            if name == "commit":
                break


@pytest.mark.parametrize("is_framed", [False, True])
def test_at_most_256_kib_of_a_file_are_held(is_framed: bool) -> None:
    """Whether its entries are small or large, but for the last entry, which may get a mark."""
    file = keyed_state_file.KeyedStateFile(
        written := BytesIO(), "f", b"", 128, KeyGroupRange(0, 9), str
    )
    for number in range(3_000):
        key, value = b"%d" % number, bytes(300_000 if number in (5, 6, 70) else 300)
        if is_framed:
            file.add_framed(1, 0, 1, key + value)
        else:
            file.add(EncodedEntry(1, 0, key, value))
        assert 0 <= file.size - written.tell() <= 256 << 10
    assert file.size > 3 * 300_000


def test_an_interrupt_while_the_folder_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Path.mkdir

    def interrupted(path: Path, **named: bool) -> None:
        made(path, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "mkdir", interrupted)
    for write in WRITERS:
        with pytest.raises(KeyboardInterrupt):
            write(tmp_path / "savepoint")
    assert not list(tmp_path.iterdir())


def failing(call: Callable[..., Any], after: int, error: BaseException) -> Callable[..., Any]:
    """Return a function that calls so many times, and then raises."""
    rest = after

    def fail(*args: Any, **named: Any) -> Any:
        nonlocal rest
        rest -= 1
        if rest < 0:
            raise error
        return call(*args, **named)

    return fail


class FullFile:
    """A file on a disk with room for so many bytes in all."""

    room = 0

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, data: bytes) -> int:
        part = data[: FullFile.room]
        FullFile.room -= len(part)
        self._file.write(part)
        if len(part) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return len(data)

    def __enter__(self) -> FullFile:
        return self

    def __exit__(self, *arguments: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("room", [0, 1, 100, 1000, 2000, 5000, 20_000, 30_000])
def test_a_full_disk(
    write: Write, room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever file it is that has no more room, it is an error of ours, and nothing is left."""
    write(tmp_path / "enough")
    needed = sum(path.stat().st_size for path in (tmp_path / "enough").iterdir())
    opened = Path.open
    FullFile.room = room
    monkeypatch.setattr(
        Path,
        "open",
        lambda path, mode="r", *rest: (
            FullFile(opened(path, mode, *rest)) if mode in ("xb", "wb") else opened(path, mode)
        ),
    )
    if room >= needed and write is not rewrite:  # a rewrite needs room for its sort too
        write(tmp_path / "savepoint")
        assert (tmp_path / "savepoint" / "_metadata").exists()
        return
    with pytest.raises(SavepointError, match="cannot be written: No space left on device"):
        write(tmp_path / "savepoint")
    assert [path.name for path in tmp_path.iterdir()] == ["enough"]


@pytest.mark.long
def test_a_full_disk_of_the_machine(tmp_path: Path) -> None:
    """As the operating system says it, here of a file that is larger than allowed."""
    script = """
import resource, signal, sys
from test_savepoint_output import HEAP, convert, rewrite, write
HEAP.read()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
for number, writer in enumerate((write, rewrite, convert)):
    try:
        writer(f"{sys.argv[1]}/{number}")
    except Exception as error:
        print(type(error).__name__, error)
"""
    folder = tmp_path / "savepoints"
    folder.mkdir()
    run = python(script, folder)
    assert (run.returncode, run.stderr) == (0, "")
    lines = run.stdout.splitlines()
    assert len(lines) == 3
    for line in lines:
        assert line.startswith("SavepointError ")
        assert line.endswith(": cannot be written: File too large")
    assert not list(folder.iterdir())


def python(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


# Others at the same place


def test_two_writers(tmp_path: Path) -> None:
    """The first that is done stays, the other is refused."""
    path = tmp_path / "savepoint"

    def other() -> None:
        with SavepointWriter(path) as writer:
            add_counts(writer).write("count", "other", 5)
            write(path)

    with (
        pytest.raises(SavepointError, match="cannot be written: Directory not empty"),
        pytest.warns(LeftoverWarning, match=r"\.writing was left by a writer .* unless one is"),
    ):
        other()
    assert is_whole(path)
    assert [one.name for one in tmp_path.iterdir()] == ["savepoint"]


def test_a_file_of_another_name_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "savepoint"

    def disturbed() -> None:
        with SavepointWriter(path) as writer:
            add_counts(writer).write("count", "a", 5)
            path.write_text("mine")

    with pytest.raises(SavepointError, match="cannot be written: Not a directory"):
        disturbed()
    assert [one.name for one in tmp_path.iterdir()] == ["savepoint"]
    assert path.read_text() == "mine"


@pytest.mark.parametrize("what", ["folder", "a file"])
def test_what_was_written_is_gone(what: str, tmp_path: Path) -> None:
    """Whoever removes it meanwhile has no savepoint without it."""

    def disturbed() -> None:
        with SavepointWriter(tmp_path / "savepoint") as writer:
            operator = add_counts(writer)
            for key in KEYS:
                operator.write("count", key, 5)
            (folder,) = tmp_path.iterdir()
            if what == "folder":
                folder.rename(tmp_path / "elsewhere")
            else:
                first, *_ = folder.iterdir()
                first.unlink()

    with pytest.raises(SavepointError, match=r"cannot be written: (No such file|.* is gone)"):
        disturbed()
    rest = {"elsewhere"} if what == "folder" else set()
    assert {path.name for path in tmp_path.iterdir()} == rest
    assert not list(tmp_path.glob("*/_metadata"))


def test_a_block_may_be_entered_once(tmp_path: Path) -> None:
    writer = SavepointWriter(tmp_path / "savepoint")
    operator = add_counts(writer)
    operator.write("count", KEYS[0], 5)
    with pytest.raises(SavepointError, match="cannot be written: No such file"):
        operator.write("count", KEYS[1], 5)  # the block comes later
    writer = SavepointWriter(tmp_path / "savepoint")
    operator = add_counts(writer)
    with writer:
        operator.write("count", KEYS[0], 5)
    operator.write("count", KEYS[1], 5)
    with pytest.raises(SavepointError, match="cannot be written: No such file"):
        operator.write("count", KEYS[2], 5)  # after it
    with pytest.raises(InvalidValueError, match="nothing can be added after the block"), writer:
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["savepoint"]
    (entry,) = read_savepoint(tmp_path / "savepoint").operators[0].entries()
    assert entry.key == KEYS[0]


# URLs


@pytest.fixture
def memory() -> Iterator[Any]:
    """A file system of fsspec in the memory of the process, with nothing in it."""
    fsspec = pytest.importorskip("fsspec", reason="the extra savepoint")
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    filesystem.pseudo_dirs[:] = [""]
    yield filesystem
    filesystem.store.clear()
    filesystem.pseudo_dirs[:] = [""]


URL = "memory://bucket/a/savepoint"


@pytest.mark.parametrize("passed", [URL, f"{URL}/"])
def test_a_url(passed: str, memory: Any) -> None:
    """It is written there, `_metadata` last, and nothing else is left."""
    write(passed)
    assert is_whole(URL)
    assert len(memory.find("/bucket")) == 4
    with pytest.raises(InvalidValueError, match="path must be of a new folder, got 'memory:"):
        write(URL)
    change_max_parallelism(URL, 4096, "memory://bucket/b")
    (operator,) = read_savepoint("memory://bucket/b").operators
    assert {entry.key for entry in operator.entries()} == set(KEYS)
    with pytest.raises(InvalidValueError, match="output must be outside the savepoint memory:"):
        change_max_parallelism(URL, 4096, f"{URL}/inside")
    change_max_parallelism(URL, 4096, f"{URL}-beside")
    convert_to_canonical(HEAP.path, "memory://bucket/c")
    assert len(read_savepoint("memory://bucket/c").operators) == 25


@pytest.mark.parametrize("error", [WrongError, KeyboardInterrupt])
@pytest.mark.parametrize("written", [0, 1, 128])
def test_an_error_at_a_url(error: type[BaseException], written: int, memory: Any) -> None:
    def interrupted() -> None:
        with SavepointWriter(URL) as writer:
            operator = add_counts(writer)
            for key in KEYS[:written]:
                operator.write("count", key, 5)
            raise error("mine")

    with pytest.raises(error, match="mine"):
        interrupted()
    assert not memory.find("/bucket")
    write(URL)
    assert is_whole(URL)


def test_two_writers_at_a_url(memory: Any) -> None:
    """The second is refused at once, and what the first has is not touched."""
    with SavepointWriter(URL) as writer:
        operator = add_counts(writer)
        for key in KEYS[:100]:
            operator.write("count", key, 5)
        with pytest.raises(InvalidValueError, match="path must be of a new folder"):
            write(URL)
        for key in KEYS[100:]:
            operator.write("count", key, 5)
    assert is_whole(URL)


def test_two_writers_at_a_url_at_once(memory: Any) -> None:
    """Both saw no folder."""
    first, second = SavepointWriter(URL), SavepointWriter(URL)
    with first:
        operator = add_counts(first)
        with pytest.raises(InvalidValueError, match="path must be of a new folder"), second:
            pass
        for key in KEYS:
            operator.write("count", key, 5)
    assert is_whole(URL)


def test_a_file_at_a_url_is_gone(memory: Any) -> None:
    def disturbed() -> None:
        with SavepointWriter(URL) as writer:
            operator = add_counts(writer)
            for key in KEYS:
                operator.write("count", key, 5)
            memory.rm(sorted(memory.find("/bucket"))[-1])

    with pytest.raises(SavepointError, match=r"cannot be written: .* is gone"):
        disturbed()
    assert not memory.find("/bucket")


def test_a_store_whose_client_keeps_lists(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of another machine is not in them. fsspec: AbstractFileSystem.invalidate_cache."""
    lists: dict[Any, Any] = {}
    store, ls = type(memory), type(memory).ls

    def kept(self: Any, path: str, detail: bool = True, **options: Any) -> Any:
        if (path, detail) not in lists:
            lists[path, detail] = ls(self, path, detail, **options)
        return lists[path, detail]

    monkeypatch.setattr(store, "ls", kept)
    monkeypatch.setattr(store, "invalidate_cache", lambda *_: lists.clear())
    write(URL)
    assert is_whole(URL)


def test_an_error_that_leaves_files_at_a_url(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be removed is no savepoint, and hides no error."""

    def interrupted() -> None:
        with SavepointWriter(URL) as writer:
            add_counts(writer).write("count", KEYS[0], 5)
            monkeypatch.setattr(memory, "rm", failing(memory.rm, 0, OSError("no")))
            raise WrongError("mine")

    with pytest.raises(WrongError, match="mine"):
        interrupted()
    with pytest.raises(SavepointError):
        read_savepoint(URL)


@pytest.mark.parametrize("method", ["write", "close"])
def test_a_store_that_fails_half_way(
    method: str, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its library raises while a file is written, and nothing is left."""
    memory.pipe_file("/beside", b"")
    file = type(memory.open("/beside"))
    call, calls = getattr(file, method), count()

    def fail(*args: Any) -> Any:
        if next(calls) == 2:  # and not again, when what is not closed is collected
            raise RuntimeError("the server\nis gone")
        return call(*args)

    monkeypatch.setattr(file, method, fail)
    with pytest.raises(SavepointError, match="cannot be written: the server is gone"):
        write(URL)
    assert not memory.find("/bucket")


def test_a_url_without_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(KeyGroupsError, match=r"pip install 'keygroups\[savepoint\]'"):
        SavepointWriter(URL)


def test_inside_a_savepoint_at_a_url(memory: Any) -> None:
    write(URL)
    for path in (f"{URL}//new", f"{URL}/./new", "memory:///bucket/b/../a/savepoint/new"):
        with pytest.raises(InvalidValueError, match="output must be outside the savepoint"):
            change_max_parallelism(URL, 256, path)
    assert len(memory.find("/bucket")) == 4


@pytest.mark.parametrize("method", ["exists", "makedirs", "open", "ls"])
@pytest.mark.parametrize(
    "error", [OSError("why"), NotImplementedError(), TypeError("why"), RuntimeError("why\nso")]
)
def test_a_store_that_fails(
    method: str, error: Exception, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its library raises before anything is written: those of clouds have their own."""
    monkeypatch.setattr(type(memory), method, failing(getattr(memory, method), 0, error))
    with pytest.raises(SavepointError, match=r"cannot be written: (why|NotImpl)") as caught:
        write(URL)
    assert "\n" not in str(caught.value)
    monkeypatch.undo()
    assert not memory.find("/bucket")


def test_an_interrupt_while_a_url_is_claimed(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "ls", failing(memory.ls, 0, KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        write(URL)
    monkeypatch.undo()
    assert not memory.find("/bucket")


# What killed writers left

HEX = "0123456789abcdef" * 2
OLD = time.time() - 3700


def leftover(path: Path, folder_time: float, file_time: float) -> Path:
    """Make a folder as a killed writer leaves it, with a file in it."""
    path.mkdir()
    (path / "file").write_bytes(b"state")
    os.utime(path / "file", (file_time, file_time))
    os.utime(path, (folder_time, folder_time))
    return path


@pytest.fixture
def others(tmp_path: Path) -> list[Path]:
    """Make files that only look like a leftover of `savepoint`, all of them old."""
    names = [
        *(f".other.{HEX}.writing", f".savepoint.{HEX[1:]}.writing", f"savepoint.{HEX}.writing"),
        *(f".savepoint.{HEX.upper()}.writing", f".savepoint.{HEX}.writing2"),
        *(f".savepoint.{HEX}.writing\n", f".xsavepoint.{HEX}.writing"),
    ]
    made = [leftover(tmp_path / name, OLD, OLD) for name in names]
    file, link = (tmp_path / f".savepoint.{digit * 32}.writing" for digit in "fe")
    file.write_bytes(b"")
    os.utime(file, (OLD, OLD))
    link.symlink_to(made[0])
    os.utime(link, (OLD, OLD), follow_symlinks=False)
    return [*made, file, link]


def is_same(paths: list[Path]) -> bool:
    return all(path.is_symlink() or path.is_file() or (path / "file").exists() for path in paths)


def test_leftovers_are_named(tmp_path: Path, others: list[Path]) -> None:
    """Those of this place, and nothing is removed."""
    rest = [
        leftover(tmp_path / f".savepoint.{digit * 32}.writing", OLD, OLD) for digit in ("0", "a")
    ]
    with pytest.warns(LeftoverWarning) as caught:
        write(tmp_path / "savepoint")
    text = [str(warning.message).split(" was left by a writer")[0] for warning in caught]
    assert text == list(map(str, rest))
    assert {warning.filename for warning in caught} == {__file__}
    assert is_whole(tmp_path / "savepoint")
    assert is_same([*rest, *others])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write(tmp_path / "savepoint-2")


@pytest.mark.parametrize("name", ["a.b", "a*", "[ab]", "a\nb", "$", "\u65e5"])
def test_leftovers_of_any_name(name: str, tmp_path: Path) -> None:
    rest = leftover(tmp_path / f".{name}.{HEX}.writing", OLD, OLD)
    others = [leftover(tmp_path / f".{other}.{HEX}.writing", OLD, OLD) for other in ("axb", "aa")]
    with pytest.warns(LeftoverWarning) as caught:
        write(tmp_path / name)
    (warning,) = caught
    assert str(warning.message).isprintable()
    assert is_same([rest, *others])


def test_leftovers_are_removed(tmp_path: Path, others: list[Path]) -> None:
    """Those in which nothing was written for an hour; no link is followed."""
    young = time.time() - 3000  # it may be long since this file was imported
    times = {"0": (OLD, OLD), "1": (young, OLD), "2": (OLD, young), "3": (OLD, OLD)}
    rest = {
        digit: leftover(tmp_path / f".savepoint.{digit * 32}.writing", *item)
        for digit, item in times.items()
    }
    (rest["3"] / "link").symlink_to(others[0])
    (rest["3"] / "nowhere").symlink_to("nowhere")
    for path in rest["3"].iterdir():
        os.utime(path, (OLD, OLD), follow_symlinks=False)
    os.utime(rest["3"], (OLD, OLD))
    folder = OutputFolder("output", str(tmp_path / "savepoint"))
    assert list(folder.remove_leftovers()) == [rest["0"], rest["3"]]
    assert is_same([rest["1"], rest["2"], *others])
    assert folder.leftovers() == [rest["1"], rest["2"]]


def test_leftovers_that_cannot_be_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = OutputFolder("output", str(tmp_path / "savepoint"))
    rest = leftover(tmp_path / f".savepoint.{HEX}.writing", OLD, OLD)
    denied = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    monkeypatch.setattr(shutil, "rmtree", failing(shutil.rmtree, 0, denied))
    with pytest.raises(SavepointError, match=r"\.writing: cannot be removed: Permission denied"):
        list(folder.remove_leftovers())
    monkeypatch.setattr(shutil, "rmtree", failing(shutil.rmtree, 0, FileNotFoundError()))
    assert list(folder.remove_leftovers()) == []  # its writer has ended
    assert is_same([rest])


def test_where_there_can_be_no_leftovers(tmp_path: Path, memory: Any) -> None:
    for path in (URL, str(tmp_path / "nowhere" / "savepoint")):
        folder = OutputFolder("output", path)
        assert folder.leftovers() == list(folder.remove_leftovers()) == []


# Killed

SCRIPT = """
import sys
from itertools import count
from test_savepoint_output import large
for number in count():
    print(number, flush=True)
    large(sys.argv[1], sys.argv[2], number)
"""
LARGE = 20_000  # entries, which take about a quarter of a second


def large(how: str, folder: str, number: int) -> None:
    """Write a savepoint that takes a while."""
    if how == "change_max_parallelism":
        change_max_parallelism(f"{folder}/source", 4096, f"{folder}/{number}")
        return
    with SavepointWriter(f"{folder}/{number}") as writer:
        operator = add_counts(writer)
        keys = map(str, range(LARGE))
        for key in sorted(keys, key=operator.key_group):
            operator.write("count", key, 5)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["SavepointWriter", "change_max_parallelism"])
@pytest.mark.parametrize("moment", range(10))
def test_kill(how: str, moment: int, tmp_path: Path) -> None:
    """`kill -9` at a random moment: what is at a path that was asked for is whole."""
    if how == "change_max_parallelism":
        large("SavepointWriter", str(tmp_path), 0)
        (tmp_path / "0").rename(tmp_path / "source")
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, how, str(tmp_path)],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        process.stdout.readline()  # it has started
        time.sleep(random.Random(moment).uniform(0, 2))
        process.send_signal(signal.SIGKILL)
    visible = sorted(path for path in tmp_path.iterdir() if not path.name.startswith("."))
    for path in visible:
        (operator,) = read_savepoint(path).operators
        assert len({entry.key for entry in operator.entries()}) == LARGE
    hidden = [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert len(hidden) <= 1
    print(f"{len(visible)} whole, {len(hidden)} begun")
