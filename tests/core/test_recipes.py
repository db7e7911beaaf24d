"""The recipes of CONTRIBUTING.md, followed in a copy of the package."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import savepoint_bytes as sb

import keygroups

PACKAGE = Path(keygroups.__file__).parent
ROOT = Path(__file__).parents[2]

# Flink: LocalDateSerializer, which writes a year, a month and a day, and null as two minima.
LOCAL_DATE = """

class LocalDateSerializer(Simple):
    name, snapshot, size = "LOCAL_DATE", class_of(BASE, "LocalDate"), 6
    takes_null = True

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[Any, int]:
        year, month, day = struct.unpack_from(">iBB", data, pos)
        return None if year == -(2**31) else (year, month, day), pos + 6

    @staticmethod
    def write(date: Any) -> bytes:
        null = -(2**31), 0x80, 0
        return struct.pack(">iBB", *(null if date is None else date))
"""
USE = """
import pickle, sys
from keygroups.savepoint import read_savepoint
from keygroups.state_keys import Serializer

dates = Serializer.from_snapshot(bytes.fromhex(sys.argv[1]))
print(dates, dates.snapshot_bytes().hex() == sys.argv[1])
print(pickle.loads(pickle.dumps(dates)) is dates)
print(dates.encode((2024, 2, 29)).hex(), dates.encode(None).hex())
print(dates.decode(bytes.fromhex("000007e8021d")))
operator, = read_savepoint(sys.argv[2]).operators
print(operator.states[0], [(entry.key, entry.value) for entry in operator.entries()])
"""


def recipe_of(title: str) -> str:
    text = (ROOT / ".github" / "CONTRIBUTING.md").read_text("utf-8")
    return text.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_a_serializer(tmp_path: Path) -> None:
    """The class alone is enough for snapshots and values, alone and in a savepoint."""
    recipe = recipe_of("Add a serializer")
    folder = re.findall(r"`(keygroups/_serializers/)`", recipe)[0]
    shutil.copytree(PACKAGE, tmp_path / "keygroups", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / folder / "scalars.py").open("a", encoding="utf-8") as file:
        file.write(LOCAL_DATE)
    snapshot = sb.i32(2) + sb.simple("LocalDate")
    states = [sb.state("born", "VALUE", sb.simple("LocalDate"))]
    header = sb.keyed_header(sb.simple("Int"), states)
    entries = [(b"\3" + sb.i32(7) + b"\0", bytes.fromhex("000007e8021d"))]
    content = sb.canonical_key_group([(0, entries)])
    keyed = sb.canonical(3, [len(header)], sb.inline(header + content))
    path = sb.write(tmp_path / "savepoint", [sb.operator([sb.subtask(managed_keyed=keyed)])])
    command = [sys.executable, "-c", USE, snapshot.hex(), str(path)]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.stdout.splitlines() == [
        "LOCAL_DATE True",
        "True",
        "000007e8021d 800000008000",
        "(2024, 2, 29)",
        "born: VALUE <INT, LOCAL_DATE> [(7, (2024, 2, 29))]",
    ], run.stderr


def test_the_recipe_of_a_serializer_names_what_there_is() -> None:
    recipe = recipe_of("Add a serializer")
    paths = re.findall(r"`((?:keygroups|tests)/[\w/.]+)`", recipe)
    assert len(paths) == 5
    for path in paths:
        assert (ROOT / path).exists(), path
    base = (PACKAGE / "_serializers" / "base.py").read_text("utf-8")
    for name in ("Simple", "Composite", "Serializer"):
        assert f"`{name}`" in recipe
        assert f"class {name}" in base
    for name in ("snapshot", "versions", "size", "takes_null", "key_type", "read", "write"):
        assert f"`{name}`" in recipe
        assert f"    {name}: " in base
    columns = (PACKAGE / "spark" / "_savepoint" / "column_types.py").read_text("utf-8")
    assert "\nCOLUMNS: " in columns
