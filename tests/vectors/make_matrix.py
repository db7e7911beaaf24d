"""Make `matrix.*` again: `python tests/vectors/make_matrix.py FOLDER=VERSION...`.

Needs a JDK and, for each of the versions, a folder of Flink's jars (`deps/lib` of the package
apache-flink-libraries for 1.13.6 and 1.18.1, `pyflink/lib` for 2.3.0). The cells are those of
`../support/bytes/matrix_points.py`, the job is that of `Matrix.java` and `AsyncMatrix.java`.
Ids, times and the names of files differ from one time to the next.
"""

from __future__ import annotations

import json
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from make_versions import FOLDER, nobody
from support.bytes.matrix_points import (
    ASKED,
    FLOOD,
    IN_FLIGHT,
    MAX_PARALLELISM,
    NUMBERS,
    PARALLELISM,
    Cell,
)
from support.bytes.version_points import KEYS
from support.flink.flink_sql import FlinkSql, jdk_folder

INCREMENTAL, UNALIGNED, MERGING = (
    f"execution.checkpointing.{name}"
    for name in ("incremental", "unaligned.enabled", "file-merging.enabled")
)
SETTINGS: dict[str, dict[str, str]] = {
    "hashmap": {"state.backend.type": "hashmap"},
    "rocksdb-full": {"state.backend.type": "rocksdb", INCREMENTAL: "false"},
    "rocksdb": {"state.backend.type": "rocksdb", INCREMENTAL: "true"},
    "forst": {"state.backend.type": "forst", INCREMENTAL: "true"},
    "heap": {
        f"state.backend.{backend}.timer-service.factory": "HEAP"
        for backend in ("rocksdb", "forst")
    },
    "unaligned": {UNALIGNED: "true"},
    IN_FLIGHT: {UNALIGNED: "true"},
    "merging": {MERGING: "true"},
}
"""The settings of a job by the values of its cell; those that need none are not here."""


def task(cell: Cell, folder: Path) -> dict[str, Any]:
    """Return a cell as `Matrix.java` takes it."""
    is_savepoint = cell.kind in ("canonical", "native")
    return {
        "folder": folder.as_uri(),
        "options": {
            name: value for part in cell for name, value in SETTINGS.get(part, {}).items()
        },
        "keys": KEYS,
        "numbers": len(NUMBERS),
        "parallelism": PARALLELISM,
        "max_parallelism": MAX_PARALLELISM,
        "flood": FLOOD if cell.kind == IN_FLIGHT else 0,
        "kind": cell.kind if is_savepoint else "checkpoint",
    }


def asked(libs: dict[str, Path], root: Path) -> Iterator[tuple[Cell, dict[str, str]]]:
    """Yield each cell with the answer of its job."""
    jdk = jdk_folder()
    assert jdk is not None, "no JDK"
    for version, lib in libs.items():
        classes = root / f"classes-{version}"
        classes.mkdir()
        flink = FlinkSql(jdk, lib, classes)
        for api in ("sync", "async"):
            cells = [cell for cell in ASKED if (cell.version, cell.api) == (version, api)]
            for cell in cells:
                (root / cell.name).mkdir()
            tasks = [task(cell, root / cell.name) for cell in cells]
            if tasks:
                yield from zip(cells, flink.matrix(tasks, is_async=api == "async"))


def line_of(cell: Cell, answer: dict[str, str], folder: Path) -> dict[str, str | None]:
    """Return the line of a cell, with the cause that a stack trace ends with."""
    if "refused" in answer:
        *_, cause = answer["refused"].rpartition("Caused by: ")
        return {"name": cell.name, "point": None, "refused": cause.splitlines()[0]}
    path = Path(answer["path"].removeprefix("file:"))
    return {"name": cell.name, "point": str(path.relative_to(folder)), "refused": None}


if __name__ == "__main__":
    pairs = (argument.split("=") for argument in sys.argv[1:])
    folders = {version: Path(lib) for lib, version in pairs}
    with (
        TemporaryDirectory() as temporary,
        tarfile.open(FOLDER / "matrix.tar.xz", "w:xz") as archive,
        (FOLDER / "matrix.jsonl").open("w", encoding="ascii") as file,
    ):
        for cell, answer in asked(folders, Path(temporary)):
            folder = Path(temporary, cell.name)
            line = line_of(cell, answer, folder)
            file.write(f"{json.dumps(line)}\n")
            for path in sorted(folder.rglob("*")) if line["point"] is not None else ():
                if path.is_file():
                    archive.add(path, path.relative_to(temporary), filter=nobody)
