"""Savepoints whose handles name what is none of theirs, and a watch on what a process opens."""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import md5
from pathlib import Path
from typing import Any

from support.bytes import savepoint_bytes as sb

HEADER = sb.keyed_header(sb.simple("Int"), [sb.state("s", "VALUE", sb.simple("Int"))])
"""Of keyed state: keys and values that are ints."""

PLACES: dict[str, Callable[[bytes], bytes]] = {
    "canonical": lambda one: _subtask(managed_keyed=sb.canonical(0, [5], one)),
    "native": lambda one: _subtask(managed_keyed=sb.native(0, [5], one)),
    "older": lambda one: _subtask(managed_keyed=sb.older(0, [5], one)),
    "raw keyed": lambda one: _subtask(raw_keyed=sb.native(0, [5], one)),
    "RocksDB's header": lambda one: _subtask(managed_keyed=sb.rocksdb(0, 1, one)),
    "SST file": lambda one: _subtask(
        managed_keyed=sb.rocksdb(0, 1, sb.inline(HEADER), [("1.sst", one)])
    ),
    "operator state": lambda one: _subtask(
        managed_operator=sb.operator_state([("s", 0, [5])], one)
    ),
    "raw operator state": lambda one: _subtask(
        raw_operator=sb.operator_state([("s", 0, [0])], one)
    ),
    "coordinator": lambda one: sb.operator([sb.subtask()], uid="hostile", coordinator=one),
}
"""The operators that have a stream, by where they have it."""


def _subtask(**state: Any) -> bytes:
    """Return an operator with an id of its own, as no savepoint has one twice."""
    operator_id = md5(repr(state).encode()).digest()
    return sb.operator([sb.subtask(**state)], operator_id=operator_id, uid="hostile")


def hostile_paths(folder: Path, secret: Path, port: int) -> list[str]:
    """Return paths of all kinds, of a savepoint in a folder: to another file, to a server here.

    None leads to what is the savepoint's, and whoever opens some of them has lost.
    """
    up, host = f"{folder}/../{secret.name}", f"127.0.0.1:{port}/latest/meta-data"
    quoted = "".join(f"%{byte:02x}" for byte in str(secret).encode())
    files = [
        *(f"{scheme}{secret}" for scheme in ("", "file:", "file://", "FILE:", "FILE://", "File:")),
        *(f"{scheme}{secret}" for scheme in ("/", "file:/", "file://localhost", "file://h")),
        *(f"{scheme}{secret}" for scheme in ("local:", "local://", "dir://x::", "dask://")),
        *(f"{scheme}{up}" for scheme in ("", "file:", "file://")),
        *(f"file:{quoted}", f"file:/{quoted}", f"file:{folder}/%2e%2e/{secret.name}"),
        *(f"{folder}-evil/{secret.name}", f"{folder}/./../{secret.name}", f"{folder}/.."),
        *(f"{folder}\\..\\{secret.name}", f"{folder}/a\0b", f"{folder}::file://{secret}"),
        *(f"../{secret.name}", secret.name, ".", "..", "", "/", "file:", "file:/", "file://"),
        *("/etc/passwd", "/dev/zero", "/dev/stdin", "/proc/self/environ", "/proc/self/fd/0"),
    ]
    urls = [
        *(f"{scheme}://{host}" for scheme in ("http", "https", "HTTP", "ftp", "webhdfs", "smb")),
        *(f"http://{at}{host}" for at in ("u@", "u:p@", "[::1]@")),
        *(f"{scheme}://{host}" for scheme in ("sftp", "ssh", "git", "github", "hdfs", "jlab")),
        *(f"{cache}::http://{host}" for cache in ("simplecache", "filecache", "blockcache")),
        *(f"zip://x::http://{host}", f"tar://x::zip://y::http://{host}", f"http:/{host}"),
        *(f"{scheme}://bucket/key" for scheme in ("s3", "s3a", "gs", "abfs", "oci", "hf", "oss")),
        *("memory://secret", "memory:///secret", "data:;base64,AAAA", "data://x", "a://b"),
        *("reference://x", f"reference://x::http://{host}", f"reference://x::data:{_SPEC}"),
        *("libarchive://x", "generic://x", "async_wrapper://x", "root://x/y", "box://x"),
        *("://", "::", "http://", "http://[::1", "http://\0", "\0", "\ud800", "a" * 5_000),
    ]
    return files + urls


# A template that fsspec renders before 2026.6 is code that Jinja runs.
_SPEC = (
    "application/json;base64,"
    + b64encode(
        b'{"version": 1, "refs": {}, "gen": [{"key": "{{ cycler.__init__.__globals__.os.system('
        b'\'false\') }}x", "url": "file:///x", "offset": "0", "length": "1",'
        b' "dimensions": {"i": [0]}}]}'
    ).decode()
)

Seen = list[tuple[str, str]]
_EVENTS = {"open", "os.exec", "os.posix_spawn", "os.system", "socket.connect", "subprocess.Popen"}
_EVENTS |= {"socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"}
_CODE = (".py", ".pyc", ".so", ".pyd")
_watches: list[Seen] = []


@contextmanager
def watched() -> Iterator[Seen]:
    """Watch what this process opens, but for its own modules, whom it calls and what it runs.

    Python itself tells of that (PEP 578), whichever library it is that does it.
    """
    if not _is_hooked:
        sys.addaudithook(_see)
        _is_hooked.append(True)
    seen: Seen = []
    _watches.append(seen)
    try:
        yield seen
    finally:
        _watches.remove(seen)


_is_hooked: list[bool] = []  # for good: there is no way to remove a hook


def _see(event: str, arguments: tuple[Any, ...]) -> None:
    if _watches and event in _EVENTS:
        shown = str(arguments[1] if event == "socket.connect" else arguments[0])
        if event != "open" or not shown.endswith(_CODE):
            for seen in _watches:
                seen.append((event, shown))
