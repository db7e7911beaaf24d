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

ROOT = Path(__file__).parents[2]

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
    Place("README.md", "| `UUID` |", "| `DURATION` | Duration | timedelta | |\n", "README.md"),
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
    """Return a copy of the package, of README.md, and of the test of the tables."""
    shutil.copytree(ROOT / "keygroups", tmp_path / "keygroups")  # with bytecode, if there is
    (tmp_path / TABLES_TEST).parent.mkdir(parents=True)
    for name in (TABLES_TEST, "README.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def fill(checkout: Path, places: Iterable[Place]) -> None:
    """Write what goes to some places."""
    for place in places:
        path = checkout / place.path
        text = path.read_text("utf-8")
        assert text.count(place.before) == 1, place
        path.write_text(text.replace(place.before, place.new + place.before), "utf-8")


def run(checkout: Path, *arguments: str) -> str:
    """Return what Python prints in a copy."""
    environment = os.environ | {"PYTHONPATH": str(checkout), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def check_tables(checkout: Path, forgotten: str) -> None:
    """Fill all places but those of a table, and see that the recipe's test names that alone."""
    fill(checkout, [CONSTANT, *(place for place in PLACES if place.table != forgotten)])
    said = run(
        checkout, *("-m", "pytest", "-rA", "--tb=no", "-p", "no:cacheprovider", TABLES_TEST)
    )
    outcomes = re.findall(r"^(PASSED|FAILED) .*known_everywhere\[(.*?)\]", said, re.MULTILINE)
    assert ("FAILED", forgotten) in outcomes, said
    assert {table for outcome, table in outcomes if outcome == "PASSED"} >= TABLES - {forgotten}


def test_a_scalar_key_type(checkout: Path) -> None:
    recipe = (ROOT / ".github/CONTRIBUTING.md").read_text("utf-8")
    recipe = recipe.partition("## Add a scalar key type")[2].partition("\n## ")[0]
    assert {place.path for place in PLACES} <= set(re.findall(r"`([\w./]+\.\w+)`", recipe))
    check_tables(checkout, "cli._key_text._READERS")
    code = (
        "from datetime import timedelta as t; from keygroups import hash_code, types;"
        "print(hash_code(t(minutes=1.5)), hash_code([t(milliseconds=-1)], types.LIST("
        "types.DURATION)), types.DURATION)"
    )
    # Duration.hashCode is (int) (seconds ^ (seconds >>> 32)) + 51 * nanos, with seconds floored.
    negative = (31 + 0 + 51 * 999_000_000) % 2**32 - 2**32  # as its bit 31 is set
    assert run(checkout, "-c", code).split() == ["90", str(negative), "DURATION"]


@pytest.mark.slow
@pytest.mark.parametrize("table", sorted(TABLES))
def test_a_forgotten_place_of_a_scalar_key_type(checkout: Path, table: str) -> None:
    check_tables(checkout, table)
