"""`keygroups.arrays` against real Flink in a JVM, over the same keys, one core each.

Run `python tests/benchmarks/bench_arrays.py`; it needs the `flink` and `arrays` extras and a JDK.
Both sides give the key groups of the same keys and must agree; then they take turns, round by
round, so that a slow moment of the machine meets both. The JVM runs a small class, compiled here,
that calls KeyGroupRangeAssignment for each key of an array in one thread, warm after the first
rounds; our side is this process on one core. Figures are medians of CPU time, in the JVM that of
the one thread, without the garbage collector. Texts are Strings already in the JVM, whose hash was
not asked for yet, and UTF-8 in an Arrow array here; where "Strings made too", the JVM makes each
String from the same UTF-8 in its time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # NumPy reads it when it is imported

import numpy as np
import pyarrow as pa

sys.path.append(str(Path(__file__).parents[1]))
from support.flink.flink_arrays import Java, compile_program
from support.flink.flink_oracle import flink_jar
from support.flink.flink_sql import jdk_folder

from keygroups import arrays
from keygroups.types import DOUBLE, INT, LONG, SQL_ROW, STRING, KeyType

MAX_PARALLELISM = 128
WARM_UP = 4


@dataclass(frozen=True)
class Kind:
    """A kind of keys: how Java calls it, how many, what makes them, and the goal."""

    java: str
    key_type: KeyType
    count: int
    make: Callable[[int], Any]
    goal: float


def longs(count: int) -> Any:
    """Return random 64-bit numbers."""
    return np.random.default_rng(7).integers(-(2**63), 2**63 - 1, count)


def ints(count: int) -> Any:
    """Return random 32-bit numbers."""
    return (longs(count) >> 32).astype(np.int32)


def doubles(count: int) -> Any:
    """Return random numbers of many sizes."""
    return np.random.default_rng(7).standard_normal(count) * 1e6


def texts(count: int) -> Any:
    """Return texts of 14 ASCII characters."""
    return pa.array([f"user-{number % 10**9:09d}" for number in longs(count).tolist()])


def mixed_texts(count: int) -> Any:
    """Return such texts of which every other has characters of two, three and four bytes."""
    other = str.maketrans("13579", "\u00e9\u0436\u65e5\U0001f600\U00020000")
    plain = texts(count).to_pylist()
    return pa.array([text if i % 2 else text.translate(other) for i, text in enumerate(plain)])


KINDS = {
    "INT": Kind("INT", INT, 8_000_000, ints, 0.6),
    "LONG": Kind("LONG", LONG, 8_000_000, longs, 0.6),
    "DOUBLE": Kind("DOUBLE", DOUBLE, 8_000_000, doubles, 0.8),
    "STRING, 14 ASCII": Kind("STRING", STRING, 2_000_000, texts, 1.0),
    "STRING, half not ASCII": Kind("STRING", STRING, 2_000_000, mixed_texts, 1.5),
    "14 ASCII, Strings made too": Kind("UTF8", STRING, 2_000_000, texts, 1.0),
    "half not ASCII, Strings made too": Kind("UTF8", STRING, 2_000_000, mixed_texts, 1.5),
    "SQL_ROW(BIGINT)": Kind("SQL_ROW", SQL_ROW("BIGINT"), 4_000_000, longs, 0.6),
}


def measure(name: str, jdk: Path, folder: Path, class_path: str, rounds: int) -> None:
    """Measure a kind of keys and print a row of the table."""
    kind = KINDS[name]
    keys = kind.make(kind.count)
    java = Java(jdk, folder, class_path, kind.java, keys, MAX_PARALLELISM)
    try:
        java.round()
        theirs = java.key_groups()
        ours = arrays.assign_to_key_group(keys, MAX_PARALLELISM, kind.key_type)
        mismatches = int((ours != theirs).sum())
        for _ in range(WARM_UP):
            java.round()
        seconds: tuple[list[float], list[float]] = ([], [])
        for _ in range(rounds):
            start = time.process_time()
            arrays.assign_to_key_group(keys, MAX_PARALLELISM, kind.key_type)
            seconds[0].append(time.process_time() - start)
            seconds[1].append(java.round())
    finally:
        java.end()
    mine, flink = (statistics.median(side) / kind.count * 1e9 for side in seconds)
    ratios = statistics.median(a / b for a, b in zip(*seconds))
    print(
        f"| {name} | {mine:.1f} | {flink:.1f} | {ratios:.2f} | {kind.goal} | "
        f"{mismatches} of {kind.count:,} |",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--kind", choices=KINDS, action="append")
    options = parser.parse_args()
    jar, jdk = flink_jar(), jdk_folder()
    if jar is None or jdk is None:
        sys.exit("the benchmark needs the extra `flink` and a JDK")
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})  # the JVM inherits it
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        class_path = compile_program(jdk, jar, folder)
        print("| keys | keygroups.arrays, ns | real Flink, ns | ratio | goal | mismatches |")
        print("|---|---|---|---|---|---|")
        for one in options.kind or KINDS:
            measure(one, jdk, folder, class_path, options.rounds)


if __name__ == "__main__":
    main()
