"""The recipes of CONTRIBUTING.md, each followed in a copy of the package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest
from support.bytes import savepoint_bytes as sb

ROOT = Path(__file__).parents[2]
CONTRIBUTING = ROOT / ".github" / "CONTRIBUTING.md"
pytestmark = pytest.mark.skipif(not CONTRIBUTING.exists(), reason="only a checkout has it")


def recipe_of(title: str) -> str:
    text = CONTRIBUTING.read_text("utf-8")
    return text.partition(f"## {title}\n")[2].partition("\n## ")[0]


# --- a scalar key type: java.time.Duration ----------------------------------------------


class Place(NamedTuple):
    """A file to touch, a text that it has once, what goes in front, and the table that has it."""

    path: str
    before: str
    new: str
    table: str = ""


TABLES_TEST = "tests/core/test_scalar_key_types.py"
CONSTANT = Place("keygroups/types.py", "NULL = ScalarType(", 'DURATION = ScalarType("DURATION")\n')
REASONS = """
for table in (
    *("PYFLINK", "arrays._scalars.HASHERS", "arrays._scalars.INFERRED", "cli._key_text._LIKELY"),
    *("subtask_keys._COUNTED", "routing_inference._SQL_TYPES", "state_keys.serializer_of"),
    *("spark._columns.key_hash.SPARK_TYPES", "spark._columns.portable.Portable.hashers"),
):
    LEFT_OUT[table] = {**LEFT_OUT[table], "DURATION": "nobody asked for it"}
"""
FORMULA = '''def hash_duration(key: object) -> int:
    """Duration.hashCode."""
    span = expect("DURATION", key, dt.timedelta, "a timedelta")
    return instant_code(span // dt.timedelta(seconds=1), span.microseconds * 1_000)


'''
PLACES = [
    Place("keygroups/types.py", '    "FLOAT",\n', '    "DURATION",\n', "types.__all__"),
    Place(
        *("keygroups/types.py", "    UUID             java", "    DURATION         Duration\n"),
        "types.__doc__",
    ),
    Place("keygroups/_values/java_time.py", "def hash_instant(", FORMULA),
    Place("keygroups/_values/java_time.py", "    instant_since_epoch,\n", "    expect,\n"),
    Place(
        *("keygroups/hashing.py", "    types.NULL: Scalar("),
        "    types.DURATION: Scalar(java_time.hash_duration, dt.timedelta),\n",
        "hashing.SCALARS",
    ),
    Place(
        "keygroups/guide/keys_and_types.md", "`STRING` `CHAR`", "`DURATION` ", "keys_and_types.md"
    ),
    Place(
        *("keygroups/testing/_strategies.py", "    types.UUID: st"),
        *("    types.DURATION: st.timedeltas(),\n", "testing._strategies.SCALARS"),
    ),
    Place(
        *("keygroups/cli/_key_text.py", '    "UUID": (', '    "DURATION": (_decimal, "1.5"),\n'),
        "cli._key_text._READERS",
    ),
    Place(TABLES_TEST, '"""For each table the key types', REASONS, "PYFLINK"),
]
TABLES = {place.table for place in PLACES} - {""}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of the package, and of the test of the tables."""
    shutil.copytree(ROOT / "keygroups", tmp_path / "keygroups")  # bytecode too, if there is any
    (tmp_path / TABLES_TEST).parent.mkdir(parents=True)
    shutil.copy(ROOT / TABLES_TEST, tmp_path / TABLES_TEST)
    shutil.copytree(ROOT / "tests" / "support" / "inside", tmp_path / "support" / "inside")
    return tmp_path


def fill(checkout: Path, places: Iterable[Place]) -> None:
    """Write what goes to some places."""
    for place in places:
        path = checkout / place.path
        text = path.read_text("utf-8")
        assert text.count(place.before) == 1, place
        path.write_text(text.replace(place.before, place.new + place.before), "utf-8")


def run(checkout: Path, *arguments: str) -> str:
    """Return the text that Python prints in a copy."""
    environment = os.environ | {"PYTHONPATH": str(checkout), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def check_tables(checkout: Path, forgotten: str) -> None:
    """Fill all places but those of a table, and see that the recipe's test names that alone."""
    fill(checkout, [CONSTANT, *(place for place in PLACES if place.table != forgotten)])
    text = run(
        checkout, *("-m", "pytest", "-rA", "--tb=no", "-p", "no:cacheprovider", TABLES_TEST)
    )
    outcomes = re.findall(r"^(PASSED|FAILED) .*known_everywhere\[(.*?)\]", text, re.MULTILINE)
    assert ("FAILED", forgotten) in outcomes, text
    assert {table for outcome, table in outcomes if outcome == "PASSED"} >= TABLES - {forgotten}


@pytest.mark.long
def test_a_scalar_key_type(checkout: Path) -> None:
    recipe = recipe_of("Add a scalar key type")
    assert {place.path for place in PLACES} <= set(re.findall(r"`([\w./]+\.\w+)`", recipe))
    check_tables(checkout, "cli._key_text._READERS")
    code = (
        "from datetime import timedelta as t; from keygroups import hash_code, types;"
        "print(hash_code(t(minutes=1.5)), hash_code([t(milliseconds=-1)], types.LIST("
        "types.DURATION)), types.DURATION)"
    )
    # Duration.hashCode is (int) (seconds ^ (seconds >>> 32)) + 51 * nanos, with seconds floored.
    negative = (31 + 0 + 51 * 999_000_000) % 2**32 - 2**32  # its bit 31 is set
    assert run(checkout, "-c", code).split() == ["90", str(negative), "DURATION"]


@pytest.mark.slow
@pytest.mark.parametrize("table", sorted(TABLES))
def test_a_forgotten_place_of_a_scalar_key_type(checkout: Path, table: str) -> None:
    check_tables(checkout, table)


# --- a serializer: of a job's own class of dates ---------------------------------------------

# It writes a year, a month and a day, and null as two minima.
SERIALIZER = """

class OwnDateSerializer(Simple):
    name, snapshot, size = "OWN_DATE", class_of("org.example.", "OwnDate"), 6
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


@pytest.mark.long
def test_a_serializer(tmp_path: Path) -> None:
    """The class alone is enough for snapshots and values, alone and in a savepoint."""
    recipe = recipe_of("Add a serializer")
    folder = re.findall(r"`(keygroups/_serializers/)`", recipe)[0]
    shutil.copytree(
        ROOT / "keygroups", tmp_path / "keygroups", ignore=shutil.ignore_patterns("__pycache__")
    )
    with (tmp_path / folder / "scalars.py").open("a", encoding="utf-8") as file:
        file.write(SERIALIZER)
    dates = sb.snapshot("org.example.OwnDateSerializer$OwnDateSerializerSnapshot", 3)
    snapshot = sb.i32(2) + dates
    states = [sb.state("born", "VALUE", dates)]
    header = sb.keyed_header(sb.simple("Int"), states)
    entries = [(b"\3" + sb.i32(7) + b"\0", bytes.fromhex("000007e8021d"))]
    content = sb.canonical_key_group([(0, entries)])
    keyed = sb.canonical(3, [len(header)], sb.inline(header + content))
    path = sb.write(tmp_path / "savepoint", [sb.operator([sb.subtask(managed_keyed=keyed)])])
    command = [sys.executable, "-c", USE, snapshot.hex(), str(path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "OWN_DATE True",
        "True",
        "000007e8021d 800000008000",
        "(2024, 2, 29)",
        "born: VALUE <INT, OWN_DATE> [(7, (2024, 2, 29))]",
    ], done.stderr


def test_the_recipe_of_a_serializer_names_what_there_is() -> None:
    recipe = recipe_of("Add a serializer")
    paths = re.findall(r"`((?:keygroups|tests)/[\w/.]+)`", recipe)
    assert len(paths) == 9
    for path in paths:
        assert (ROOT / path).exists(), path
    base = (ROOT / "keygroups" / "_serializers" / "base.py").read_text("utf-8")
    for name in ("Simple", "Composite", "Serializer"):
        assert f"`{name}`" in recipe
        assert f"class {name}" in base
    for name in ("snapshot", "versions", "size", "takes_null", "key_type", "read", "write"):
        assert f"`{name}`" in recipe
        assert f"    {name}: " in base
    columns = (ROOT / "keygroups" / "savepoint" / "_columns" / "column_types.py").read_text(
        "utf-8"
    )
    assert "\nCOLUMNS: " in columns
