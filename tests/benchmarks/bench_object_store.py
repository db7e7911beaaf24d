"""Times savepoints in S3 against plain reads of the same files by the same client.

    python tests/benchmarks/bench_object_store.py [--connections 64] [--rounds 3]

The store is moto's server in a process of its own, each answer of which takes 50 ms more; the
client is s3fs. Both sides take turns in one run. It needs the packages of the extra `stores`.
"""

from __future__ import annotations

import argparse
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

SUPPORT = Path(__file__).parents[1] / "support"
sys.path += [str(SUPPORT / "bytes"), str(SUPPORT)]

import large_savepoints  # noqa: E402
import savepoint_bytes as sb  # noqa: E402
from s3_server import BUCKET, OPTIONS  # noqa: E402

from keygroups import assign_to_key_group  # noqa: E402
from keygroups.savepoint import (  # noqa: E402
    Operator,
    SavepointWriter,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.savepoint._tasks.read import ahead  # noqa: E402
from keygroups.types import STRING  # noqa: E402

SUBTASKS = 1_000


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


def heavy(folder: str, values: int, size: int) -> None:
    """Write a savepoint of 32 subtasks with so many values of so many bytes."""
    with SavepointWriter(folder) as writer:
        states = [ValueStateDescriptor("text", STRING)]
        operator = writer.add_operator("by-name", STRING, states, 128, parallelism=32)
        names = sorted(
            (assign_to_key_group(f"name {number}", 128, STRING), f"name {number}")
            for number in range(values)
        )
        for _, name in names:
            operator.write("text", name, "x" * size)


def seconds(call: Callable[[], object]) -> float:
    fsspec.filesystem("s3").invalidate_cache()
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def files_of(url: str) -> list[str]:
    paths: list[str] = fsspec.filesystem("s3").find(url)
    return [path for path in paths if not path.endswith("/_metadata")]


def compared(
    name: str, ours: Callable[[], object], plain: Callable[[], object], rounds: int, size: int
) -> None:
    pairs = [(seconds(plain), seconds(ours)) for _ in range(rounds)]
    theirs, mine = (median(pair[side] for pair in pairs) for side in (0, 1))
    ratio = median(there / here for there, here in pairs)
    rate = f", {size / 1e6 / mine:.1f} and {size / 1e6 / theirs:.1f} MB/s" if size else ""
    print(
        f"{name}: {mine:.2f} s, plain {theirs:.2f} s{rate}: {ratio:.2f} of the plain rate",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    command = [sys.executable, str(SUPPORT / "bytes" / "s3_server.py")]
    with (
        TemporaryDirectory() as temporary,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as server,
    ):
        assert server.stdout is not None
        options: dict[str, Any] = OPTIONS | {
            "endpoint_url": f"http://127.0.0.1:{int(server.stdout.readline())}",
            "config_kwargs": {"max_pool_connections": given.connections},
        }
        fsspec.config.conf["s3"] = options
        filesystem = fsspec.filesystem("s3")
        filesystem.mkdir(BUCKET)
        folder = Path(temporary)
        for name in ("wide", "string"):
            (folder / name).mkdir()
        wide(folder / "wide")
        large_savepoints.write(folder / "string", "canonical", 256_000)
        for name in ("wide", "string"):
            filesystem.put(str(folder / name), f"{BUCKET}/{name}", recursive=True)
        heavy(f"s3://{BUCKET}/heavy", 1_280, 50_000)
        heavy(f"s3://{BUCKET}/many", 3_200, 500)

        def headers() -> None:
            (operator,) = read_savepoint(f"s3://{BUCKET}/wide").operators
            assert len(operator.states) == 1

        size = len(large_savepoints.header())
        paths = files_of(f"s3://{BUCKET}/wide")
        compared(
            f"headers of {SUBTASKS:,} subtasks",
            headers,
            partial(filesystem.cat_ranges, paths, 0, size),
            given.rounds,
            0,
        )
        for name in ("heavy", "many", "string"):
            url = f"s3://{BUCKET}/{name}"
            paths = files_of(url)
            (operator,) = read_savepoint(url).operators

            def framed(operator: Operator = operator) -> None:
                for task in ahead(operator.tasks()):
                    for _ in task.framed_entries(has_keys=False):
                        pass

            def entries(operator: Operator = operator) -> None:
                for _ in operator.entries():
                    pass

            size = sum(filesystem.sizes(paths))
            for kind, call in (("framed", framed), ("entries", entries)):
                compared(
                    f"{name}, {len(paths)} files of {size:,} bytes, {kind}",
                    call,
                    partial(filesystem.cat, paths),
                    given.rounds,
                    size,
                )
        assert server.stdin is not None
        server.stdin.close()


if __name__ == "__main__":
    main()
