"""Savepoints in S3, by s3fs and moto's server, whose answers take 50 ms more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("s3fs", reason="the extra stores")
pytest.importorskip("moto", reason="the extra stores")

import fsspec
import s3fs
from support.bytes.s3_server import BUCKET, OPTIONS, S3Server

from keygroups import assign_to_key_group
from keygroups.errors import SavepointError
from keygroups.savepoint import (
    SavepointWriter,
    ValueStateDescriptor,
    change_max_parallelism,
    read_savepoint,
)
from keygroups.types import STRING

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

URL = f"s3://{BUCKET}/savepoints/savepoint-1"
PART = 5 << 20  # bytes, the least that S3 takes


@pytest.fixture(scope="module")
def running() -> Iterator[S3Server]:
    server = S3Server()
    yield server
    server.stop()


@pytest.fixture
def server(running: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """A server with an empty bucket, that s3fs calls, which gives up soon."""
    options: dict[str, Any] = OPTIONS | {
        "endpoint_url": f"http://127.0.0.1:{running.port}",
        "default_block_size": PART,
        "use_listings_cache": False,
    }
    monkeypatch.setitem(fsspec.config.conf, "s3", options)
    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
    filesystem = fsspec.filesystem("s3")
    filesystem.mkdir(BUCKET)
    running.asked.clear()
    yield running
    filesystem.rm(BUCKET, recursive=True)


def write(url: str, values: int = 16, size: int = 1 << 10) -> None:
    with SavepointWriter(url) as writer:
        states = [ValueStateDescriptor("text", STRING)]
        operator = writer.add_operator("by-name", STRING, states, 16, parallelism=4)
        written = expected(values, size)
        for name in sorted(written, key=lambda name: assign_to_key_group(name, 16, STRING)):
            operator.write("text", name, written[name])


def expected(values: int, size: int) -> dict[str, str]:
    return {f"name {number}": chr(97 + number) * size for number in range(values)}


def texts(url: str, **options: Any) -> dict[str, str]:
    (operator,) = read_savepoint(url).operators
    return {entry.key: entry.value for entry in operator.entries(**options)}


def test_what_is_written_is_read(server: S3Server) -> None:
    write(URL)
    server.asked.clear()
    assert texts(URL) == expected(16, 1 << 10)
    assert len(server.asked) == 2 + 4  # the client asks for the size of `_metadata` too
    assert set(server.asked) <= {"GET", "HEAD"}
    change_max_parallelism(URL, 64, f"{URL}-wide")
    assert texts(f"{URL}-wide") == expected(16, 1 << 10)


def test_a_large_file_is_written_by_parts(server: S3Server) -> None:
    write(URL, values=13, size=1 << 20)
    assert server.asked.count("POST") >= 2  # begins and ends it
    assert texts(URL) == expected(13, 1 << 20)


@pytest.mark.parametrize(
    "lives",
    [6, *(pytest.param(lives, marks=pytest.mark.slow) for lives in (0, 1, 2, 3, 4, 5, 7, 8, 9))],
)
def test_a_server_that_dies(lives: int, server: S3Server) -> None:
    """Half-way, for good: an error, and no savepoint then, nor one when the server is back."""
    server.lives = lives
    try:
        with pytest.raises(SavepointError, match="cannot be written"):
            write(URL, values=13, size=1 << 20)
    finally:
        server.lives = float("inf")
        server.start()
    with pytest.raises(SavepointError, match="_metadata: cannot be opened"):
        read_savepoint(URL)
    write(f"{URL}-again", values=4)
    assert len(texts(f"{URL}-again")) == 4


def test_a_file_that_is_gone(server: S3Server) -> None:
    write(URL)
    filesystem = fsspec.filesystem("s3")
    gone = sorted(filesystem.find(URL))[-1]
    filesystem.rm(gone)
    with pytest.raises(SavepointError, match=f"s3://{gone}: cannot be opened: "):
        texts(URL)
