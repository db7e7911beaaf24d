"""Times savepoints in a store against plain reads of the same files by the same client.

    python tests/benchmarks/bench_object_store.py [--s3] [--connections 64] [--rounds 3]

An answer takes 50 ms, over so many connections, and a line of 125 MB a second. The store is in the
memory of this process; with `--s3` it is moto's server in a process of its own, without such a
line, and the client s3fs (extra `stores`). Both sides take turns in one run. "CPU" is that of this
process; where it is much less than the seconds, these were waited.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import fsspec
from fsspec.asyn import AsyncFileSystem

SUPPORT = Path(__file__).parents[1] / "support"
sys.path.append(str(SUPPORT.parent))

from support.bytes import large_savepoints  # noqa: E402
from support.bytes import savepoint_bytes as sb  # noqa: E402
from support.inside.savepoints import ahead  # noqa: E402

from keygroups import assign_to_key_group  # noqa: E402
from keygroups.savepoint import (  # noqa: E402
    Operator,
    SavepointWriter,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.types import STRING  # noqa: E402

SUBTASKS = 1_000
DELAY = 0.05  # seconds
LINE = 125e6  # bytes a second
BUCKET = "bucket"


class DelayedStore(AsyncFileSystem):  # type: ignore[misc]  # fsspec is untyped
    """Files in memory, with what an answer takes over a network."""

    protocol = "delayed"
    files: dict[str, bytes] = {}  # noqa: RUF012
    connections = asyncio.Semaphore(0)
    free_at = 0.0  # when the line has sent what it was given

    async def _delay(self, content: bytes = b"") -> bytes:
        async with self.connections:
            await asyncio.sleep(DELAY)
            now = time.perf_counter()
            DelayedStore.free_at = max(self.free_at, now) + len(content) / LINE
            await asyncio.sleep(self.free_at - now)
        return content

    async def _info(self, path: str, **options: Any) -> dict[str, Any]:
        await self._delay()
        return {"name": path, "size": len(self.files[path]), "type": "file"}

    async def _ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        names = [name for name in self.files if name.rpartition("/")[0] == path]
        for _ in range(0, len(names), 1_000):
            await self._delay()
        return [{"name": name, "size": len(self.files[name])} for name in names]

    async def _cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **options: Any
    ) -> bytes:
        return await self._delay(self.files[path][start:end])


def wide(folder: Path) -> None:
    """Write a savepoint of 1,000 subtasks, each with a header and 20,000 bytes of a key group."""
    header = large_savepoints.header()
    tasks = []
    for index in range(SUBTASKS):
        (folder / f"f{index}").write_bytes(header + bytes(20_000))
        stream = sb.relative(f"f{index}", len(header) + 20_000)
        keyed = sb.canonical(index, [len(header)], stream)
        tasks.append(sb.subtask(index, managed_keyed=keyed))
    sb.write(
        folder, [sb.operator(tasks, parallelism=SUBTASKS, max_parallelism=SUBTASKS, uid="wide")]
    )


def text(folder: Path, subtasks: int, values: int, size: int) -> None:
    """Write a savepoint of some subtasks with so many values of so many bytes."""
    folder.rmdir()
    with SavepointWriter(folder) as writer:
        states = [ValueStateDescriptor("text", STRING)]
        operator = writer.add_operator("by-name", STRING, states, 1_024, parallelism=subtasks)
        names = sorted(
            (assign_to_key_group(f"name {number}", 1_024, STRING), f"name {number}")
            for number in range(values)
        )
        for _, name in names:
            operator.write("text", name, "x" * size)


SAVEPOINTS: dict[str, Callable[[Path], object]] = {
    "wide": wide,
    "32 files of large values": lambda folder: text(folder, 32, 1_280, 50_000),
    "1,000 files of large values": lambda folder: text(folder, 1_000, 4_000, 10_000),
    "String to Long": lambda folder: large_savepoints.write(folder, "canonical", 1_024_000),
}


def seconds(call: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds that a call takes, by the clock and of the processor."""
    start, used = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - start, time.process_time() - used


def compare(
    name: str, ours: Callable[[], object], plain: Callable[[], object], rounds: int, size: int = 0
) -> None:
    ours()  # whatever is imported or connected for the first time
    turns = [(seconds(plain), seconds(ours)) for _ in range(rounds)]
    (plain_s, plain_cpu), (our_s, our_cpu) = (
        tuple(median(turn[side][clock] for turn in turns) for clock in (0, 1)) for side in (0, 1)
    )
    ratio = median(plain[0] / ours[0] for plain, ours in turns)
    rate = f", {size / 1e6 / our_s:.1f} and {size / 1e6 / plain_s:.1f} MB/s" if size else ""
    print(
        f"{name}: {our_s:.2f} s (CPU {our_cpu:.2f}), plain {plain_s:.2f} s (CPU {plain_cpu:.2f})"
        f"{rate}, ratio {ratio:.2f}",
        flush=True,
    )


def measure(filesystem: Any, root: str, rounds: int) -> None:
    """Measure the savepoints that are at a URL."""

    def files_of(name: str) -> list[str]:
        inner = f"{filesystem._strip_protocol(root)}/{name}"
        listed: list[dict[str, Any]] = filesystem.ls(inner, detail=True)
        return [info["name"] for info in listed if not info["name"].endswith("/_metadata")]

    def headers() -> None:
        (operator,) = read_savepoint(f"{root}/wide").operators
        assert len(operator.states) == 1

    plain = partial(filesystem.cat_ranges, files_of("wide"), 0, len(large_savepoints.header()))
    compare(f"headers of {SUBTASKS:,} subtasks", headers, plain, rounds)
    for name in [*SAVEPOINTS][1:]:
        (operator,) = read_savepoint(f"{root}/{name}").operators
        numbers = {state.name: number for number, state in enumerate(operator.states)}

        def encoded(operator: Operator = operator, numbers: dict[str, int] = numbers) -> None:
            for task in ahead(operator.tasks()):
                for _ in task.encoded_entries(numbers):
                    pass

        def entries(operator: Operator = operator) -> None:
            for _ in operator.entries():
                pass

        def columns(operator: Operator = operator) -> None:
            for task in ahead(operator.tasks()):
                for _ in task.columns():
                    pass

        paths = files_of(name)
        size = sum(filesystem.sizes(paths))
        kinds = (("as bytes", encoded), ("decoded", entries), ("into Arrow", columns))
        for kind, call in kinds:
            plain = partial(filesystem.cat, paths)
            compare(f"{name}, {size / 1e6:.1f} MB, {kind}", call, plain, rounds, size)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--s3", action="store_true")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    passed = parser.parse_args()
    with TemporaryDirectory() as temporary:
        for name, write in SAVEPOINTS.items():
            (folder := Path(temporary, name)).mkdir()
            write(folder)
        if passed.s3:
            measure_s3(temporary, passed.connections, passed.rounds)
            return
        for path in Path(temporary).rglob("*"):
            if path.is_file():
                DelayedStore.files[f"{BUCKET}/{path.relative_to(temporary)}"] = path.read_bytes()
    fsspec.register_implementation("delayed", DelayedStore)
    DelayedStore.connections = asyncio.Semaphore(passed.connections)
    measure(fsspec.filesystem("delayed"), f"delayed://{BUCKET}", passed.rounds)


def measure_s3(folder: str, connections: int, rounds: int) -> None:
    """Measure the savepoints in a folder when they are in S3."""
    from support.bytes.s3_server import OPTIONS

    command = [sys.executable, str(SUPPORT / "bytes" / "s3_server.py")]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        fsspec.config.conf["s3"] = OPTIONS | {
            "endpoint_url": f"http://127.0.0.1:{int(server.stdout.readline())}",
            "config_kwargs": {"max_pool_connections": connections},
        }
        filesystem = fsspec.filesystem("s3", use_listings_cache=False)
        filesystem.mkdir(BUCKET)
        filesystem.put(f"{folder}/", f"{BUCKET}/", recursive=True)
        measure(filesystem, f"s3://{BUCKET}", rounds)
        server.stdin.close()


if __name__ == "__main__":
    main()
