"""Jobs that real Flink restores from a savepoint, and what they find in their state.

`java/Restores.java` has one local cluster for as many restores as are asked of it, of the Flink
whose jars it is given: Flink 1 and 2 both compile it. A job writes down what it finds twice, once
asking its backend for all keys, once as each key is sent to it through `keyBy`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from keygroups import types
from keygroups.savepoint import Savepoint, read_savepoint
from support.flink.flink_oracle import flink_version
from support.flink.flink_sql import JAVA_FOLDER, OPENED_PACKAGES, java_sources

BACKENDS = {
    "hashmap": {"state.backend.type": "hashmap"},
    "rocksdb": {"state.backend.type": "rocksdb", "execution.checkpointing.incremental": "true"},
}

Row = dict[str, Any]


class State(NamedTuple):
    """A state as a job describes it; `ttl` is in milliseconds."""

    name: str
    kind: str
    value: types.KeyType
    user_key: types.KeyType | None = None
    ttl: int | None = None

    def java(self) -> dict[str, Any]:
        """Return it as the Java side takes it."""
        text = {"name": self.name, "kind": self.kind, "value": java_type(self.value)}
        if self.user_key is not None:
            text["user_key"] = java_type(self.user_key)
        if self.ttl is not None:
            text["ttl"] = self.ttl
        return text


def java_type(key_type: types.KeyType) -> Any:
    """Return a type as the Java side takes it, by the names of Flink's `Types`."""
    for kind in (types.TUPLE, types.ROW, types.LIST):
        if isinstance(key_type, kind):
            return {kind.__name__: [java_type(part) for part in key_type.parts]}
    return repr(key_type)


@dataclass(frozen=True)
class Task:
    """What a job is to be and do; see `java/Restores.java`."""

    savepoint: str | Path
    operators: Sequence[Mapping[str, Any]]
    backend: str
    parallelism: int
    max_parallelism: int | None
    maps: int = 0
    ends: bool = False
    is_chained: bool = True
    watermarks: Sequence[int] = ()
    at_once: int = 0
    closed: int = 0

    def java(self, rows: Path, own: Path) -> dict[str, Any]:
        """Return it as the Java side takes it."""
        options = BACKENDS[self.backend] | {"execution.checkpointing.dir": own.as_uri()}
        if not self.is_chained:
            options |= {"pipeline.operator-chaining.enabled": "false"}
        return {
            "savepoint": Path(self.savepoint).as_uri(),
            "options": options,
            "parallelism": self.parallelism,
            "max_parallelism": self.max_parallelism,
            "maps": self.maps,
            "rows": str(rows),
            "ends": self.ends,
            "watermarks": list(self.watermarks),
            "at_once": self.at_once,
            "closed": self.closed,
            "operators": list(self.operators),
        }


class Restored(NamedTuple):
    """What became of it: `refused` is why Flink did not run it, `unsaved` why it has no `path`.

    `later` is the path of the savepoint that it took after all watermarks.
    """

    refused: str | None
    unsaved: str | None
    rows: Path
    path: str | None
    max_parallelisms: dict[str, int]
    later: str | None

    def read(self) -> Savepoint:
        """Read the savepoint that the job took itself."""
        assert self.path is not None, self.unsaved
        return read_savepoint(self.path)

    def found(self, way: str) -> Iterator[Row]:
        """Yield the rows found in one way: backend, keyed, fired or closed."""
        with self.rows.open(encoding="ascii") as lines:
            yield from (row for row in map(json.loads, lines) if row["way"] == way)


class FlinkRestores:
    """A cluster of the Flink whose jars are beside `dist`, with files put in `folder`."""

    def __init__(self, jdk: Path, dist: Path, folder: Path, slots: int = 8) -> None:
        lib = dist.parent
        self.version = flink_version(dist)
        self._folder = folder
        python_jars = map(str, lib.parent.glob("opt/flink-python-*.jar"))
        class_path = os.pathsep.join([str(folder), str(lib / "*"), *python_jars])
        compiler = [str(jdk / "javac"), "-nowarn", "-implicit:class", "-d", str(folder)]
        sources = [str(JAVA_FOLDER / f"{name}.java") for name in ("Restores", "Shop", "Matrix")]
        compiler += ["-cp", class_path, "-sourcepath", java_sources(lib), *sources]
        done = subprocess.run(compiler, capture_output=True, encoding="utf-8")
        if done.returncode:
            raise RuntimeError(f"{sources} with Flink {self.version}: {done.stderr}")
        options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx4g"]
        options += [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED_PACKAGES]
        options.append(f"-Djava.io.tmpdir={folder}")
        self._log = folder / "Restores.log"
        with self._log.open("w", encoding="utf-8") as log:
            self._jvm = subprocess.Popen(
                [str(jdk / "java"), *options, "-cp", class_path, "Restores", str(slots)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                encoding="utf-8",
            )
        self._count = 0

    def restore(self, task: Task) -> Restored:
        """Run one job; what it left is gone when the next one runs."""
        self._forget()
        self._count += 1
        rows = self._folder / f"rows-{self._count}"
        own = self._folder / f"savepoints-{self._count}"
        assert self._jvm.stdin is not None
        assert self._jvm.stdout is not None
        self._jvm.stdin.write(f"{json.dumps(task.java(rows, own))}\n")
        self._jvm.stdin.flush()
        line = self._jvm.stdout.readline()
        if not line:
            raise RuntimeError(self._log.read_text(encoding="utf-8")[-4000:])
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        refused, unsaved = _causes(answer["refused"]), _causes(answer.get("unsaved"))
        found = answer.get("max_parallelisms", {})
        path, later = answer.get("path"), answer.get("later")
        return Restored(refused, unsaved, rows, path, found, later)

    def end(self) -> None:
        """End the JVM."""
        self._jvm.communicate()
        self._forget()

    def _forget(self) -> None:
        for path in self._folder.glob("rows-*"):
            path.unlink()
        for path in self._folder.glob("savepoints-*"):
            shutil.rmtree(path)


def _causes(trace: str | None) -> str | None:
    """Return a Java stack trace without the stacks."""
    if trace is None:
        return None
    return "\n".join(line for line in trace.splitlines() if not line.startswith("\t"))
