"""Make `versions.tar.xz` again: `python tests/vectors/make_versions.py FOLDER=VERSION...`.

Needs a JDK and, for each version, a folder of Flink's jars (`deps/lib` of the package
apache-flink-libraries for 1.13.6 and 1.18.0, `pyflink/lib` for 2.3.0). The jobs are those of
`OldStates.java` and `AsyncStates.java`; which of them has which settings is in `POINTS`.
Ids, times and the names of files differ from one time to the next.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from support.flink.flink_sql import FlinkSql, jdk_folder

FOLDER = Path(__file__).parent
KEYS = ["k0", "k1", "k2", "ключ"]
JOB: dict[str, Any] = {"keys": KEYS, "parallelism": 2, "max_parallelism": 128}
OLD_ROCKSDB = {"state.backend": "rocksdb", "state.backend.incremental": "true"}
FACTORY = {"state.backend.rocksdb.options-factory": "OldStates$Compressed"}
COMPRESSED = {"execution.checkpointing.snapshot-compression": "true"}
FORST = {"state.backend.type": "forst", "execution.checkpointing.incremental": "true"}
OPENED = ("java.lang", "java.time", "java.util", "java.util.concurrent", "java.net", "java.io")

POINTS: dict[str, dict[str, Any]] = {
    "1.13.6-rocksdb-checkpoint": OLD_ROCKSDB,
    **{
        f"1.13.6-rocksdb-{name}-checkpoint": {
            **(OLD_ROCKSDB | FACTORY),
            "compression": f"{name.upper()}_COMPRESSION",
        }
        for name in ("lz4", "zlib", "zstd")
    },
    "1.13.6-hashmap-compressed-checkpoint": {"state.backend": "hashmap"} | COMPRESSED,
    "1.18.0-hashmap-compressed-checkpoint": {"state.backend": "hashmap"} | COMPRESSED,
    "2.3.0-forst-async-native": FORST,
    "2.3.0-forst-async-heap-timers-native": FORST
    | {"state.backend.forst.timer-service.factory": "HEAP"},
    "2.3.0-rocksdb-async-native": FORST | {"state.backend.type": "rocksdb"},
    "2.3.0-hashmap-async-native": {"state.backend.type": "hashmap"},
}
"""The settings of each point's job, by the point's name: version, settings, kind."""


def old_point(lib: Path, folder: Path, options: dict[str, Any]) -> Path:
    """Return the last checkpoint of a job of Flink 1."""
    jdk = jdk_folder()
    assert jdk is not None, "no JDK"
    class_path = f"{folder}:{lib}/*"
    source = FOLDER.parent / "support" / "flink" / "java" / "OldStates.java"
    compiler = [str(jdk / "javac"), "-nowarn", "-d", str(folder), "-cp", class_path, str(source)]
    subprocess.run(compiler, check=True)
    task = {**JOB, "numbers": 40, "folder": (folder / "points").as_uri(), "options": options}
    (folder / "points").mkdir()
    opened = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED]
    subprocess.run(
        [str(jdk / "java"), *opened, "-cp", class_path, "OldStates"],
        input=json.dumps(task),
        encoding="utf-8",
        check=True,
    )
    (point,) = folder.glob("points/*/chk-*")
    return point


def async_point(lib: Path, folder: Path, options: dict[str, Any]) -> Path:
    """Return the native savepoint of a job of Flink 2."""
    jdk = jdk_folder()
    assert jdk is not None, "no JDK"
    task = {**JOB, "numbers": 3, "folder": folder.as_uri(), "options": options}
    task |= {"is_async": True, "points": ["native"]}
    points = FlinkSql(jdk, lib, folder).async_states(task)
    return Path(points["native"].removeprefix("file:"))


def made(libs: dict[str, Path], folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield each point with its name."""
    for name, options in POINTS.items():
        version = name.partition("-")[0]
        own = folder / name
        own.mkdir()
        make = async_point if version.startswith("2") else old_point
        yield name, make(libs[version], own, options)


def nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out whose file it is and when it was written."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    pairs = (argument.split("=") for argument in sys.argv[1:])
    folders = {version: Path(lib) for lib, version in pairs}
    with (
        TemporaryDirectory() as temporary,
        tarfile.open(FOLDER / "versions.tar.xz", "w:xz") as archive,
    ):
        for name, point in made(folders, Path(temporary)):
            for path in sorted(point.iterdir()):
                archive.add(path, f"{name}/{path.name}", filter=nobody)
