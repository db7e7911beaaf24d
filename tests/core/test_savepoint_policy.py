"""Which files the handles of a savepoint may open: its own, and what the caller named."""

from __future__ import annotations

import io
import os
import pickle
import re
import socket
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.hostile_savepoints import HEADER, PLACES, hostile_paths, watched
from support.inside.savepoints import Files, OpenStream, StreamHandle
from support.inside.savepoints import files as files_module

from keygroups import assign_to_key_group
from keygroups.cli import main
from keygroups.errors import InvalidTypeError, InvalidValueError, SavepointError
from keygroups.savepoint import (
    Savepoint,
    SavepointWriter,
    change_max_parallelism,
    convert_to_canonical,
    describe_sql_state,
    operator_reports,
    read_savepoint,
)
from keygroups.types import INT

GROUP = assign_to_key_group(7, 128, INT)
CONTENT = HEADER + sb.canonical_key_group(
    [(0, [(bytes([GROUP]) + sb.i32(7) + b"\0", sb.i32(70))])]
)
REFUSED = "is not in the savepoint"


def canonical(stream: bytes) -> bytes:
    """Return an operator with keyed state in a stream of the bytes of `CONTENT`."""
    keyed = sb.canonical(GROUP, [len(HEADER)], stream)
    return sb.operator([sb.subtask(managed_keyed=keyed)], operator_id=md5(keyed).digest())


def at(folder: Path | str, path: str, **options: Any) -> list[object]:
    """Write a savepoint that names a file of `CONTENT` by its path, and return its values."""
    local = Path(str(folder).removeprefix("file://"))
    local.mkdir(parents=True, exist_ok=True)
    sb.write(local, [canonical(sb.absolute(path, len(CONTENT)))])
    return values(folder, **options)


def values(folder: Path | str, **options: Any) -> list[object]:
    (operator,) = read_savepoint(folder, **options).operators
    return [entry.value for entry in operator.entries()]


def put(path: Path, content: bytes = CONTENT) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return f"file:{path}"


# What is hostile


class Server(ThreadingHTTPServer):
    """Counts who calls."""

    calls = 0

    def process_request(self, request: Any, client_address: Any) -> None:
        self.calls += 1
        super().process_request(request, client_address)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), BaseHTTPRequestHandler) as one:
        thread = threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield one
        one.shutdown()
        thread.join()


def task_entries(savepoint: Savepoint) -> list[object]:
    tasks = [task for one in savepoint.operators for task in one.tasks()]
    return [list(task.entries()) for task in pickle.loads(pickle.dumps(tasks))]


def command(*arguments: str) -> str:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main(["savepoint", *arguments])
    if status:
        raise SavepointError(err.getvalue())
    return out.getvalue()


def edited(savepoint: Savepoint, new: Path) -> None:
    with SavepointWriter.from_existing_savepoint(savepoint, new) as editor:
        editor.add_operator_from(savepoint, "hostile", "again")


CALLS: dict[str, Callable[[Savepoint, Path], object]] = {
    "str": lambda savepoint, _: str(savepoint),
    "check_restore": lambda savepoint, _: savepoint.check_restore("hostile", 1, 128),
    "states": lambda savepoint, _: savepoint.operators[0].states,
    "entries": lambda savepoint, _: list(savepoint.operators[0].entries()),
    "tasks": lambda savepoint, _: task_entries(savepoint),
    "operator_state": lambda savepoint, _: list(savepoint.operators[0].operator_state()),
    "key_group_bytes": lambda savepoint, _: savepoint.operators[0].key_group_bytes(),
    "key_sizes": lambda savepoint, _: savepoint.operators[0].key_sizes(),
    "reports": lambda savepoint, _: list(map(str, operator_reports(savepoint, ["hostile"]))),
    "sql": lambda savepoint, _: str(describe_sql_state(savepoint.operators[0])),
    "rewrite": lambda savepoint, new: change_max_parallelism(savepoint, 64, new),
    "convert": lambda savepoint, new: convert_to_canonical(savepoint, new),
    "edit": lambda savepoint, new: edited(savepoint, new),
}


@pytest.mark.long
@pytest.mark.parametrize("every", [len(PLACES), pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("place", PLACES)
def test_a_hostile_handle_opens_nothing(
    place: str, every: int, tmp_path: Path, server: Server
) -> None:
    """No file but `_metadata` and what is written anew, no host, no program; and it is refused."""
    folder, new, secret = tmp_path / "point", tmp_path / "new", tmp_path / "secret"
    secret.write_bytes(CONTENT)
    put(tmp_path / "point-evil" / "secret")
    paths = hostile_paths(folder, secret, server.server_port)
    handles = [sb.absolute(path, len(CONTENT)) for path in paths]
    handles += [sb.relative(path, len(CONTENT)) for path in paths if path != secret.name]
    handles += [sb.segment(path, 0, len(CONTENT)) for path in paths[::5]]
    for handle in handles[list(PLACES).index(place) % every :: every]:
        sb.write(folder, [PLACES[place](handle)])
        refusals = []
        with watched() as seen:
            savepoint = read_savepoint(folder)
            for call in CALLS.values():
                try:
                    call(savepoint, new)
                except SavepointError as error:
                    refusals.append(str(error))
        assert refusals
        text = REFUSED
        text += "|cannot be opened: " if handle[:1] == b"\x06" else ""  # and so may be there
        assert [one for one in refusals if not re.search(text, one) or len(one) > 2000] == []
        written = f"{tmp_path}/.new."
        assert {one for one in seen if not one[1].startswith(written)} == {
            ("open", f"{folder}/_metadata")
        }
        assert not new.exists()
    assert server.calls == 0


def test_a_hostile_handle_and_the_command(tmp_path: Path, server: Server) -> None:
    folder, new, secret = tmp_path / "point", tmp_path / "new", tmp_path / "secret"
    secret.write_bytes(CONTENT)
    rewrite = ("--set-max-parallelism", "64", "--output", str(new))
    for path in hostile_paths(folder, secret, server.server_port)[::9]:
        sb.write(folder, [PLACES["canonical"](sb.absolute(path, len(CONTENT)))])
        with watched() as seen:
            for arguments in ((), ("--json",)):  # a report goes on with what it can read
                assert REFUSED in command(str(folder), *arguments)
            with pytest.raises(SavepointError, match=REFUSED) as caught:
                command(str(folder), *rewrite)
            assert caught.value.args[0].count("\n") == 1
        assert {one for _, one in seen} == {f"{folder}/_metadata"}
        assert not new.exists()
    assert server.calls == 0


def test_a_path_outside_is_not_even_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where file systems are mounted as they are looked at, that would call a host."""
    secret = tmp_path / "net" / "host" / "secret"
    put(secret)
    seen: list[str] = []
    for name in ("lstat", "stat", "readlink"):
        call: Callable[..., Any] = getattr(os, name)

        def look(path: Any, *arguments: Any, call: Any = call, **named: Any) -> Any:
            seen.append(str(path))
            return call(path, *arguments, **named)

        monkeypatch.setattr(os, name, look)
    for path in (str(secret), secret.as_uri(), f"{tmp_path}/point/../net/host/secret"):
        with pytest.raises(SavepointError, match=REFUSED):
            at(tmp_path / "point", path)
    assert seen
    assert not [path for path in seen if "host" in path]


def test_a_savepoint_at_a_url(server: Server) -> None:
    """It names other places of its store, other stores, and files of the one who reads it."""
    job = "memory://jobs/job"
    paths = [
        *("/etc/passwd", "file:///etc/passwd", f"http://127.0.0.1:{server.server_port}/x"),
        *(f"{job}-evil/shared/x", f"{job}/other/x", f"{job}/shared", f"{job}/shared/", job),
        *(f"{job}/shared/{name}" for name in ("../x", "a//b", "a/.", "a?b", "#a", "%2e%2e/x")),
        *(f"{job}/shared/{name}" for name in ("a\\b", "a\nb", "a\0b", "a::b", "a\ud800")),
        *("MEMORY://jobs/job/shared/x", "memory:/jobs/job/shared/x", "//jobs/job/shared/x"),
        *(f"u@{job}/shared/x", "memory://u@jobs/job/shared/x", f"simplecache::{job}/shared/x"),
    ]
    outside = [(f"{job}/chk-1", path) for path in paths]
    # What is called as a checkpoint may be a store, which is in no job's folder.
    outside += [("memory://chk-1", f"memory://{name}/x") for name in ("shared", "chk-2")]
    for point, path in outside:
        with watched() as seen, pytest.raises(SavepointError, match=REFUSED):
            Files(point, {}).open(StreamHandle(1, path=path)).__enter__()
        assert not seen
    for path in ("a%2fb", "a?b", "a#b", "a\\b", "a::b", "../a", "a//b", "a/", "/a", "", "."):
        with pytest.raises(SavepointError, match=f"{REFUSED}$"):
            Files(f"{job}/chk-1", {}).name_of(StreamHandle(1, path=path, is_relative=True))
    assert server.calls == 0


# What is a savepoint's own


def test_a_job_s_folder(tmp_path: Path) -> None:
    """Of a checkpoint: what its job shares and owns, and its other checkpoints; no more."""
    job = tmp_path / "job"
    for path in ("shared/a", "taskowned/job_1_tm_2/a", "chk-1/a", "chk-12/a", "chk-12/b/a"):
        assert at(job / "chk-12", put(job / path)) == [70]
        assert at(job / "chk-12", str(job / path)) == [70]
        if not path.startswith("chk-12/"):
            for name in ("chk-12a", "chk-", "savepoint-1", "chk-1\u0661"):
                with pytest.raises(SavepointError, match=REFUSED):
                    at(job / name, put(job / path))
    for path in ("a", "other/a", "shared-evil/a", "shared", "chk-/a", "chk-1.bak/a", "chk-1"):
        (tmp_path / "second").mkdir(exist_ok=True)
        with pytest.raises(SavepointError, match=REFUSED):
            at(tmp_path / "second" / "chk-12", put(tmp_path / "second" / f"{path}.d" / "a"))
        with pytest.raises(SavepointError, match=REFUSED):
            at(tmp_path / "third" / "chk-12", put(tmp_path / "third" / path))


def test_a_job_s_folder_that_is_the_root() -> None:
    files = Files("/chk-7", {})
    for path in ("/shared/a", "/taskowned/a", "/chk-6/a"):
        assert files.path_of(StreamHandle(1, path=path)) == path
        assert files.path_of(StreamHandle(1, path=f"file:{path}")) == path
    assert [*files.own_folders()] == [("/chk-7", ""), ("/", "/shared"), ("/", "/taskowned")]


def test_where_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path of a savepoint, or a link to it, is of the same place."""
    shared = put(tmp_path / "job" / "shared" / "a")
    assert at(tmp_path / "job" / "chk-1", shared) == [70]
    monkeypatch.chdir(tmp_path / "job" / "chk-1")
    assert values(".") == values("_metadata") == values("../chk-1/") == [70]
    monkeypatch.chdir(tmp_path)
    assert values("job/chk-1") == [70]
    (tmp_path / "latest").symlink_to(tmp_path / "job" / "chk-1")
    (tmp_path / "jobs").symlink_to(tmp_path / "job")
    for way in ("latest", "jobs/chk-1", tmp_path / "latest", (tmp_path / "jobs/chk-1").as_uri()):
        assert values(way) == [70]
    (tmp_path / "point").mkdir()
    (tmp_path / "job" / "chk-2").symlink_to(tmp_path / "point")
    assert at(tmp_path / "job" / "chk-2", shared) == [70]
    assert at(tmp_path / "job" / "chk-2", put(tmp_path / "point" / "a")) == [70]
    with pytest.raises(SavepointError, match=f"{REFUSED}: pass"):
        at(tmp_path / "point", shared)


def test_links(tmp_path: Path) -> None:
    """A link is where it leads to, and what that is called is said; nobody is told to allow it."""
    folder, secret = tmp_path / "point", tmp_path / "secrets" / "a"
    put(secret)
    put(folder / "own")
    (folder / "link").symlink_to("own")
    (folder / "out").symlink_to(secret)
    (folder / "up").symlink_to("..")
    (folder / "loop").symlink_to("loop")
    size = len(CONTENT)
    assert at(folder, f"file:{folder}/link") == [70]
    for name in ("out", "up/secrets/a"):
        for stream in (sb.relative(name, size), sb.absolute(f"{folder}/{name}", size)):
            sb.write(folder, [canonical(stream)])
            with watched() as seen:
                (operator,) = read_savepoint(folder).operators
                says = re.escape(f": a link leads to '{secret}'")
                with pytest.raises(SavepointError, match=f"{name}' {REFUSED}{says}$"):
                    list(operator.entries())
            assert {path for _, path in seen} == {f"{folder}/_metadata"}
        assert at(folder, f"{folder}/{name}", allow=[tmp_path / "secrets"]) == [70]
    with pytest.raises(SavepointError, match="loop: cannot be opened"):
        at(folder, f"{folder}/loop")


@pytest.mark.parametrize("kind", ["pipe", "folder", "socket"])
def test_no_regular_file(kind: str, tmp_path: Path) -> None:
    """It is refused by name, and waited for by nobody."""
    path = tmp_path / "point" / "a"
    path.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(os.path.relpath(path))
    with pytest.raises(SavepointError, match="/a: cannot be opened: it is no regular file"):
        at(path.parent, f"file:{path}")


def test_devices(tmp_path: Path) -> None:
    for passed in ({"allow": ["/dev"]}, {"moved": {"/dev": "/dev"}}, {"allow": ["/"]}):
        with pytest.raises(SavepointError, match="/dev/zero: cannot be opened: it is no regular"):
            at(tmp_path, "/dev/zero", **passed)


def test_what_came_in_between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe or a link in the place of a file that was looked at is not read either."""
    path = tmp_path / "a"
    put(path)
    info = os.lstat(path)
    monkeypatch.setattr(os, "lstat", lambda *_, **__: info)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(SavepointError, match="/a: cannot be opened: it is no regular file"):
        at(tmp_path, f"file:{path}")
    path.unlink()
    put(tmp_path / "b")
    path.symlink_to(tmp_path / "b")
    with pytest.raises(SavepointError, match="/a: cannot be opened: Too many levels"):
        at(tmp_path, f"file:{path}")


def test_metadata_is_a_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "_metadata")
    with pytest.raises(
        SavepointError, match="/_metadata: cannot be opened: it is no regular file"
    ):
        read_savepoint(tmp_path)
    at(tmp_path / "point", put(tmp_path / "point" / "a"))
    (tmp_path / "_metadata").unlink()
    (tmp_path / "_metadata").symlink_to(tmp_path / "point" / "_metadata")
    assert len(read_savepoint(tmp_path).operators) == 1


# What the caller named


def test_allow(tmp_path: Path) -> None:
    """A folder by path or URL, or a file; not what only begins alike."""
    folder, other = tmp_path / "point", tmp_path / "other"
    path = put(other / "a b%c" / "d")
    for handle in (path.replace("%", "%25"), str(other / "a b%c" / "d")):
        for allow in (other, f"{other}/", other.as_uri(), other / "a b%c", other / "a b%c" / "d"):
            assert at(folder, handle, allow=[allow]) == [70]
            assert at(folder, handle, allow=["/nowhere", str(allow)]) == [70]
            assert at(folder, handle, allow={"s3://bucket", str(allow)}) == [70]
        for allow in (str(other)[:-1], f"{other}-", other / "a", other / "a b%c" / "d" / "e"):
            with pytest.raises(SavepointError, match=REFUSED):
                at(folder, handle, allow=[allow])
    for handle in (f"file://host{other}/a b%c/d", f"local://{other}/a b%c/d", f"{path}::x"):
        with pytest.raises(SavepointError, match=f"{REFUSED}$"):
            at(folder, handle, allow=["/"])


def test_a_name_that_no_file_has_is_not_to_be_allowed(tmp_path: Path) -> None:
    for path in ("/nowhere/..", "/nowhere/a\\b", "s3://bucket/a?b", "s3://bucket/"):
        with pytest.raises(SavepointError, match=f"{REFUSED}$"):
            at(tmp_path, path)


@pytest.mark.parametrize(
    ("path", "is_path"),
    [
        *(("/a/b", True), ("/a/b%c?", True), ("file:/a/b%c?", True), ("file:///a/b%c?", True)),
        *(("s3://a/b", True), ("s3://a/b%c", False), ("s3://a/b?", False)),
        *(("a/b", False), ("/a/", False), ("/a/..", False), ("/a/b\\c", False)),
        *(("s3://a/b::c", False), ("/a::b/c", False), ("local:///a/b", False)),
    ],
)
def test_what_is_the_path_of_a_file(path: str, is_path: bool) -> None:
    assert Files("/point", {}).is_path(StreamHandle(1, path=path)) == is_path


def test_chains_are_never_allowed(tmp_path: Path) -> None:
    """What `_metadata` names is one place, whatever the caller reads it through."""
    for chain in ("zip://a::memory://b", "simplecache::memory://b", "dir://a::/b", "file:/a::b"):
        for allow in (chain, chain.replace("file:", ""), f"{chain}/c"):
            with pytest.raises(SavepointError, match=f"{REFUSED}$"):
                at(tmp_path, f"{chain}/c", allow=[allow])


def test_allow_of_the_command(tmp_path: Path) -> None:
    """What it prints and what it writes anew take the same option, once for each folder."""
    folder, new = tmp_path / "point", tmp_path / "new"
    paths = [put(tmp_path / "other" / "a"), put(tmp_path / "another" / "a")]
    parts = [sb.canonical(GROUP, [len(HEADER)], sb.absolute(path, len(CONTENT))) for path in paths]
    operators = [
        sb.operator([sb.subtask(managed_keyed=keyed)], operator_id=bytes([number] * 16))
        for number, keyed in enumerate(parts)
    ]
    sb.write(tmp_path / "point", operators)
    rewrite = ("--set-max-parallelism", "64", "--output", str(new))
    allow = ("--allow", str(tmp_path / "other"), "--allow", (tmp_path / "another").as_uri())
    for passed, refused in (((), 2), (allow[:2], 1), (allow[2:], 1)):
        with pytest.raises(SavepointError, match=REFUSED):
            command(str(folder), *rewrite, *passed)
        assert not new.exists()
        assert command(str(folder), *passed).count("its states are not known") == refused
    assert REFUSED not in command(str(folder), *allow)
    command(str(folder), *rewrite, *allow)
    for operator in read_savepoint(new).operators:
        assert [(entry.key, entry.value) for entry in operator.entries()] == [(7, 70)]


def test_moved_is_allowed(tmp_path: Path) -> None:
    """Where files are now; one that names itself there too, but none that leads out of it."""
    folder, here = tmp_path / "point", tmp_path / "here"
    path = put(here / "a")
    put(tmp_path / "b")
    (here / "link").symlink_to(tmp_path / "b")
    assert at(folder, "s3://bucket/job/a", moved={"s3://bucket/job": here}) == [70]
    assert at(folder, path, moved={"s3://bucket/job": here}) == [70]
    for name in ("../b", "./a", "/a", "x/../a", "a::b", "a\\b", "link", "a/", "%2e%2e/b"):
        for moved in ({"s3://bucket/job": here}, {"/bucket/job": here}):
            with pytest.raises(SavepointError, match=f"{REFUSED}|cannot be opened"):
                at(folder, f"s3://bucket/job/{name}", moved=moved)


def test_urls(tmp_path: Path) -> None:
    """Through fsspec, of what the caller gave a URL of."""
    fsspec = pytest.importorskip("fsspec", reason="the extra savepoint")
    memory = fsspec.filesystem("memory")
    for name in ("shared/a", "chk-7/a [*]"):
        with memory.open(f"/policy/job/{name}", "wb") as file:
            file.write(CONTENT)
    url = "memory://policy/job"
    stream = sb.absolute(f"{url}/shared/a", len(CONTENT))
    own = sb.relative("a [*]", len(CONTENT))
    with memory.open("/policy/job/chk-7/_metadata", "wb") as file:
        file.write(sb.metadata([canonical(stream), canonical(own)]))
    for place in (f"{url}/chk-7", f"{url}/chk-7/_metadata", f"{url}/chk-7/"):
        for operator in read_savepoint(place).operators:
            assert [entry.value for entry in operator.entries()] == [70]
    assert at(tmp_path, f"{url}/shared/a", allow=[url]) == [70]
    assert at(tmp_path, f"{url}/shared/a", allow=[f"{url}/shared/a"]) == [70]
    assert at(tmp_path, "/old/a", moved={"/old/": f"{url}/shared/"}) == [70]
    other = ("memory://policy/jo", "memory2://policy", "file:/policy", "/policy")
    for allow in (*other, "memory:", "memory:/"):  # the last two are local folders
        with pytest.raises(SavepointError, match=REFUSED):
            at(tmp_path, f"{url}/shared/a", allow=[allow])
    with pytest.raises(SavepointError, match=r"pass allow=\['memory://policy/job/shared'\] if"):
        at(tmp_path, f"{url}/shared/a")
    sb.write(tmp_path, [canonical(sb.absolute(f"{url}/shared/a", 5 + len(CONTENT)))])
    size = len(CONTENT)
    with pytest.raises(
        SavepointError, match=f"the file has {size} bytes, its handle says {size + 5}"
    ):
        values(tmp_path, allow=[url])


def test_bad_places() -> None:
    untyped: Any = read_savepoint
    for allow in ("/a", b"/a", 5, None, {"/a": "/b"}, iter(["/a"])):
        with pytest.raises(InvalidTypeError, match="allow must be a list of paths, got"):
            untyped("a", allow=allow)
    with pytest.raises(InvalidTypeError, match="path in allow must be a str or a path, got 5"):
        untyped("a", allow=["/a", 5])
    for place in ("", "s3://", "s3:///", "file://"):
        with pytest.raises(InvalidValueError, match="path in allow must name a folder or file"):
            untyped("a", allow=[place])
        with pytest.raises(InvalidValueError, match="path in moved must name a folder or file"):
            untyped("a", {"/a": place})
    with pytest.raises(SavepointError, match=r"cannot be opened: .*embedded null"):
        Files("point", {}, ["a\0b"]).name_of(StreamHandle(1, path="/x"))


# How much is read


def test_sizes(tmp_path: Path) -> None:
    """A file is as long as its handle says; a segment is in it."""
    path = put(tmp_path / "a")
    size = len(CONTENT)
    for text in (0, size - 1, size + 1, 2**40, 2**63 - 1):
        for stream in (sb.absolute(path, text), sb.relative("a", text)):
            sb.write(tmp_path, [place(stream) for place in (PLACES["RocksDB's header"],)])
            (operator,) = read_savepoint(tmp_path).operators
            message = f"/a: the file has {size} bytes, its handle says {text}$"
            with pytest.raises(SavepointError, match=message):
                _ = operator.states
    put(tmp_path / "a", b"xyz" + CONTENT + b"more")
    sb.write(tmp_path, [canonical(sb.segment(path, 3, size))])
    assert values(tmp_path) == [70]
    for start, text in ((3, size + 5), (8, size), (2**62, size), (2**63 - 1, 2**63 - 1)):
        sb.write(tmp_path, [PLACES["RocksDB's header"](sb.segment(path, start, text))])
        (operator,) = read_savepoint(tmp_path).operators
        message = f"/a: the file has {size + 7} bytes, its handle says {text} from {start} on$"
        with pytest.raises(SavepointError, match=message):
            _ = operator.states


def test_no_more_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file whose store does not tell how long it is, no byte beyond the handle's."""
    place = 0

    class Endless(io.RawIOBase):
        def seek(self, offset: int, whence: int = 0) -> int:
            nonlocal place
            place = offset
            return place

        def read(self, count: int = -1) -> bytes:
            assert count >= 0
            assert place + count <= len(CONTENT)
            return CONTENT[place : place + count]

    sb.write(tmp_path, [canonical(sb.relative("a", len(CONTENT)))])
    (operator,) = read_savepoint(tmp_path).operators
    monkeypatch.setattr(files_module, "_opened", lambda name, path: Endless())
    assert [entry.value for entry in operator.entries()] == [70]


def test_a_file_that_ends_too_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one of a store that does not tell how long it is, or one that was cut since."""
    sb.write(tmp_path, [canonical(sb.relative("a", len(CONTENT)))])
    (operator,) = read_savepoint(tmp_path).operators
    monkeypatch.setattr(files_module, "_opened", lambda name, path: io.BytesIO(CONTENT[:-3]))
    with pytest.raises(SavepointError, match=r"/a, offset .*: the file ends 3 bytes too early"):
        list(operator.entries())


def test_a_large_piece_is_read_in_chunks() -> None:
    """The size that `_metadata` says may be a lie: no more room is made than for a chunk."""
    asked: list[int] = []

    class File(io.BytesIO):
        def read(self, count: int | None = -1) -> bytes:
            asked.append(count or 0)
            return super().read(count)

    stream = OpenStream(StreamHandle(1 << 40, path="a"), File(b"abc"), "a")
    with pytest.raises(SavepointError, match=r"^a, offset 0: the file ends \d+ bytes too early$"):
        stream.read(0, 1 << 40)
    assert asked == [files_module.CHUNK]


def test_a_long_reason_is_cut() -> None:
    class Failing(io.BytesIO):
        def read(self, count: int | None = -1) -> bytes:
            raise OSError("x" * 501)

    with pytest.raises(SavepointError) as caught:
        OpenStream(StreamHandle(3, path="a"), Failing(), "a").read(0, 3)
    assert str(caught.value) == "a, offset 0: " + "x" * 500


def test_a_header_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """Not all of the file that it is in, which may be a hole of any size."""
    header = sb.keyed_header(sb.simple("Int"), [sb.state("s", "VALUE", sb.simple("Int"))])
    operators = sb.operator_header([], [])
    with (tmp_path / "a").open("wb") as file:
        file.write(header)
        file.truncate(2**33)
    with (tmp_path / "b").open("wb") as file:
        file.write(operators)
        file.truncate(2**33)
    state = sb.operator_state([("s", 0, [])], sb.relative("b", 2**33))
    keyed = sb.canonical(0, [0], sb.relative("a", 2**33))
    task = sb.subtask(managed_keyed=keyed, managed_operator=state)
    (operator,) = read_savepoint(sb.write(tmp_path, [sb.operator([task])])).operators
    tracemalloc.start()
    try:
        assert [state.name for state in operator.states] == ["s"]
        assert [one.elements for one in operator.operator_state()] == [[]]
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()


def test_relative_paths_hold_in_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which has a working directory of its own, as Spark's executors have."""
    here, there = tmp_path / "here", tmp_path / "other" / "there"
    for folder in (here, there, tmp_path / "savepoint"):
        folder.mkdir(parents=True)
    (tmp_path / "file").write_bytes(CONTENT)
    sb.write(tmp_path / "savepoint", [canonical(sb.absolute("/old/file", len(CONTENT)))])
    monkeypatch.chdir(here)
    savepoint = read_savepoint("../savepoint", {"/old": ".."})
    assert str(savepoint).splitlines()[0].endswith(": ../savepoint")
    sent = pickle.dumps(savepoint.operators[0].tasks())
    monkeypatch.chdir(there)
    assert [entry.value for task in pickle.loads(sent) for entry in task.entries()] == [70]
    store = "s3://bucket/x"
    assert pickle.loads(pickle.dumps(Files(store, {"/old": "new"}, ["a", store]))) == Files(
        store, {"/old": f"{there}/new"}, [f"{there}/a", store]
    )
