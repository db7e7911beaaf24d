"""Real Flink's key groups of many keys, by a small Java class that is compiled at run time."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from support.flink.flink_oracle import flink_class_path
from support.flink.flink_sql import JAVA_FOLDER

PROGRAM = "KeyGroupsOfArrays"


def compile_program(jdk: Path, jar: Path, folder: Path, program: str = PROGRAM) -> str:
    """Compile a class of `java/` into a folder, and return its class path."""
    class_path = flink_class_path(jar)
    source = str(JAVA_FOLDER / f"{program}.java")
    subprocess.run([str(jdk / "javac"), "-d", str(folder), "-cp", class_path, source], check=True)
    return os.pathsep.join([str(folder), class_path])


def random_longs(count: int, seed: int) -> Any:
    """Return numbers of every size, with some at the ends of Integer and Long."""
    rng = np.random.default_rng(seed)
    found = rng.integers(-(2**63), 2**63 - 1, count, endpoint=True) >> rng.integers(0, 64, count)
    edges = [0, -1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63 - 1, -(2**63), -2089875627]
    found[: min(count, len(edges))] = edges[:count]
    return found


def random_texts(count: int, seed: int) -> Any:
    """Return texts of up to 20 characters of one to four bytes; every other is ASCII."""
    numbers = pa.array(random_longs(count, seed))
    found = pc.cast(numbers, pa.string())
    other = found
    for digit, character in zip("13579", "\u00e9\u0436\u65e5\U0001f600\U00020000"):
        other = pc.replace_substring(other, digit, character)
    return pc.if_else(pa.array(np.arange(count) % 2 == 0), found, other)


def write_keys(keys: Any, path: Path) -> None:
    """Write keys as the Java side reads them."""
    if isinstance(keys, np.ndarray):
        path.write_bytes(keys.tobytes())
        return
    _, offsets, data = keys.buffers()
    size = 4 * (len(keys) + 1)
    end = int(np.frombuffer(offsets, np.int32)[len(keys)])
    path.write_bytes(offsets.to_pybytes()[:size] + data.to_pybytes()[:end])


class Java:
    """Real Flink in a JVM of its own, on one core, that does a round when asked."""

    def __init__(
        self,
        jdk: Path,
        folder: Path,
        class_path: str,
        kind: str,
        keys: Any,
        max_parallelism: int,
    ) -> None:
        self.groups_file = folder / "groups"
        keys_file = folder / "keys"
        write_keys(keys, keys_file)
        command = [str(jdk / "java"), "-Xmx3g", "-XX:+UseSerialGC", "-XX:ActiveProcessorCount=1"]
        command += ["-cp", class_path, PROGRAM, kind, str(len(keys)), str(max_parallelism)]
        command += [str(keys_file), str(self.groups_file)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def key_groups(self) -> Any:
        """Return the key groups of the first round."""
        return np.fromfile(self.groups_file, np.int32)

    def round(self) -> float:
        """Return the seconds of CPU time of a round."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline()) / 1e9

    def end(self) -> None:
        """End the JVM."""
        self.process.communicate()
