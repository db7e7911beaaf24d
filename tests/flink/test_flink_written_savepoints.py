"""Savepoints that keygroups writes, restored by real Flink, which finds all that was written.

A job on each backend and at several parallelisms writes down what its state holds, in two ways,
and where; then it takes a savepoint of its own, which is read here. `pytest -rP` shows how much
that was; in a table for each Flink, too.
"""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.bytes.older_metadata import as_version_2
from support.bytes.real_savepoints import point
from support.flink.flink_points import java_operators
from support.flink.flink_restores import BACKENDS, FlinkRestores, State, Task
from support.flink.restore_table import RestoreTable
from support.flink.written_savepoints import (
    DAY,
    NAMES,
    Case,
    Entry,
    KeyedOperator,
    distinct_values,
    found_rows,
    keys_of_groups,
    now,
    random_entries,
    saved_entries,
)

from keygroups import assign_to_key_group, compute_operator_index_for_key_group
from keygroups.savepoint import (
    SavepointWriter,
    Serializer,
    ValueStateDescriptor,
    change_max_parallelism,
    convert_to_canonical,
    read_savepoint,
)
from keygroups.types import (
    BOOLEAN,
    BYTE,
    CHAR,
    DOUBLE,
    FLOAT,
    INT,
    LIST,
    LONG,
    ROW,
    SHORT,
    STRING,
    TUPLE,
    KeyType,
)

pytestmark = [
    pytest.mark.flink,
    pytest.mark.flink_since("1.17", "the API of its job"),
]

SCALARS = [BOOLEAN, BYTE, SHORT, INT, LONG, FLOAT, DOUBLE, CHAR, STRING]
KEY_TYPES: list[KeyType] = [
    *SCALARS,
    TUPLE(STRING, INT),
    TUPLE(LONG, STRING, DOUBLE),
    TUPLE(TUPLE(INT, BOOLEAN), STRING),
    ROW(STRING, INT),
    ROW(DOUBLE),
]
VALUE_TYPES = [*KEY_TYPES, ROW(STRING, TUPLE(INT, FLOAT), LIST(LONG)), LIST(STRING)]
STATES = [
    State("count", "VALUE", LONG),
    State("label", "VALUE", STRING, ttl=DAY),
    State("expired", "VALUE", STRING, ttl=DAY),
    State("pair", "VALUE", TUPLE(STRING, INT)),
    State("tags", "LIST", STRING),
    State("visits", "LIST", STRING, ttl=DAY),
    State("cities", "MAP", LONG, STRING),
    State("notes", "MAP", STRING, STRING),
    State("seen", "MAP", STRING, INT, ttl=DAY),
    State("sum", "REDUCING", DOUBLE),
    State("last", "REDUCING", STRING, ttl=DAY),
]
LARGE = 1_000_000


def strings(max_parallelism: int, parallelism: int) -> Case:
    """All kinds of state under strings of all kinds, with keys in the outermost key groups."""
    rng = random.Random(max_parallelism)
    last = max_parallelism - 1
    keys = [*NAMES, *keys_of_groups({0, last // 2, last}, max_parallelism)]
    keys += [f"user-{rng.randrange(10**9)}" for _ in range(100)]
    entries = list(random_entries(rng, STATES, keys, now()))
    return Case([KeyedOperator("by-name", STRING, STATES, entries)], max_parallelism, parallelism)


def key_types(max_parallelism: int, parallelism: int) -> Case:
    """An operator for each key type."""
    rng = random.Random(max_parallelism)
    operators = []
    for number, key_type in enumerate(KEY_TYPES):
        states = [State("count", "VALUE", LONG), State("of", "MAP", INT, key_type)]
        keys = distinct_values(rng, key_type, 40)
        entries = list(random_entries(rng, states, keys, now()))
        operators.append(KeyedOperator(f"by-{number}", key_type, states, entries))
    return Case(operators, max_parallelism, parallelism)


def value_types(max_parallelism: int, parallelism: int) -> Case:
    """Each type of value in each kind of state, with a time to live and without."""
    rng = random.Random(max_parallelism)
    states = []
    for number, item in enumerate(VALUE_TYPES):
        for kind in ("VALUE", "LIST", "MAP", "REDUCING"):
            user_key = INT if kind == "MAP" else None
            states.append(State(f"{kind} {number}", kind, item, user_key))
            states.append(State(f"{kind} {number} with ttl", kind, item, user_key, DAY))
    entries = list(random_entries(rng, states, range(8), now()))
    return Case([KeyedOperator("by-number", LONG, states, entries)], max_parallelism, parallelism)


def few_keys(max_parallelism: int, parallelism: int) -> Case:
    """Fewer keys than subtasks, one of them in the last key group; an operator without any."""
    states = [State("count", "VALUE", LONG), State("cities", "MAP", LONG, STRING)]
    keys = keys_of_groups({max_parallelism - 1}, max_parallelism)
    entries = [Entry("count", keys[0], -1), Entry("cities", keys[0], 1, "")]
    operators = [
        KeyedOperator("one", STRING, states, entries),
        KeyedOperator("none", STRING, states, []),
    ]
    return Case(operators, max_parallelism, parallelism)


CASES: dict[str, tuple[Callable[[int, int], Case], int, int]] = {
    "strings-128": (strings, 128, 4),
    "strings-129": (strings, 129, 3),
    "strings-4096": (strings, 4096, 128),
    "key-types-128": (key_types, 128, 3),
    "key-types-32768": (key_types, 32768, 2),
    "value-types-4096": (value_types, 4096, 2),
    "value-types-3": (value_types, 3, 3),
    "few-keys-3": (few_keys, 3, 3),
    "few-keys-32768": (few_keys, 32768, 5),
}
MOST_SUBTASKS = 5
QUICK = {
    *(("strings-128", 5), ("strings-129", 1), ("strings-4096", 5), ("key-types-128", 3)),
    *(("value-types-3", 1), ("few-keys-3", 3)),
}


def runs() -> list[Any]:
    """Return case, backend and parallelism: as written where the cluster can, and two others."""
    found = []
    for name, (_, max_parallelism, written) in CASES.items():
        most = min(MOST_SUBTASKS, max_parallelism)
        for parallelism in sorted({1, min(written, most), most - (written == most)}):
            marks = [] if (name, parallelism) in QUICK else [pytest.mark.slow]
            found += [pytest.param(name, one, parallelism, marks=marks) for one in BACKENDS]
    return found


@pytest.fixture(scope="module")
def table() -> Iterator[RestoreTable]:
    """What the tests here have compared with one Flink; `-rP` shows it with the last of them."""
    found = RestoreTable()
    yield found
    print(found)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Case, Path]]:
    """What writes a case once."""
    folder = tmp_path_factory.mktemp("written")
    cases: dict[str, Case] = {}

    def write(name: str) -> tuple[Case, Path]:
        path = folder / name
        if name not in cases:
            make, max_parallelism, parallelism = CASES[name]
            cases[name] = make(max_parallelism, parallelism)
            cases[name].write(path)
        return cases[name], path

    return write


@pytest.mark.parametrize(("name", "backend", "parallelism"), runs())
def test_flink_finds_what_was_written(
    restores: FlinkRestores,
    written: Callable[[str], tuple[Case, Path]],
    name: str,
    backend: str,
    parallelism: int,
    table: RestoreTable,
) -> None:
    case, path = written(name)
    operators = [operator.java() for operator in case.operators]
    task = Task(path, operators, backend, parallelism, case.max_parallelism)
    restored = restores.restore(task)
    assert restored.refused is None
    expected = case.found(parallelism)
    for way in ("backend", "keyed"):
        assert found_rows(restored.found(way)) == expected
    own = restored.read()
    assert saved_entries(own, case.operators) == case.saved(parallelism)
    for operator in case.operators:
        saved = own.operator(operator.uid)
        assert (saved.parallelism, saved.max_parallelism) == (parallelism, case.max_parallelism)
    table.add(restores.version, backend, parallelism, *case.counts, expected.total())


@pytest.mark.parametrize("backend", BACKENDS)
def test_flink_finds_what_was_older(
    restores: FlinkRestores,
    written: Callable[[str], tuple[Case, Path]],
    tmp_path: Path,
    backend: str,
    table: RestoreTable,
) -> None:
    """Of version 2 of `_metadata`, and with raw state that has no timers, written anew."""
    case, path = written("strings-129")
    shutil.copytree(path, tmp_path / "old")
    metadata = as_version_2(read_savepoint(path).metadata, has_raw_state=True)
    (tmp_path / "old" / "_metadata").write_bytes(metadata)
    old = read_savepoint(tmp_path / "old")
    assert old.version == 2
    convert_to_canonical(old, tmp_path / "new")
    operators = [operator.java() for operator in case.operators]
    task = Task(tmp_path / "new", operators, backend, 2, case.max_parallelism)
    restored = restores.restore(task)
    assert restored.refused is None
    expected = case.found(2)
    for way in ("backend", "keyed"):
        assert found_rows(restored.found(way)) == expected
    table.add(restores.version, backend, 2, *case.counts, expected.total())


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_flink_finds_a_million_keys(
    restores: FlinkRestores, tmp_path: Path, backend: str, table: RestoreTable
) -> None:
    states = [State("count", "VALUE", LONG)]
    groups, parallelism = 720, 4
    with SavepointWriter(tmp_path / "large") as writer:
        count = [ValueStateDescriptor("count", LONG)]
        written = writer.add_operator("by-user", STRING, count, groups, parallelism=3)
        keys = [f"user-{number}" for number in range(LARGE)]
        for key in sorted(keys, key=written.key_group):
            written.write("count", key, _count(key))
    operators = [KeyedOperator("by-user", STRING, states, []).java()]
    restored = restores.restore(Task(tmp_path / "large", operators, backend, parallelism, groups))
    assert restored.refused is None
    for way in ("backend", "keyed"):
        found = {}
        for row in restored.found(way):
            assert row["value"] == {"long": _count(row["key"])}
            found[row["key"]] = row["subtask"], row["key_group"]
        assert len(found) == LARGE
        for key, (subtask, key_group) in found.items():
            assert key_group == assign_to_key_group(key, groups, STRING)
            assert subtask == compute_operator_index_for_key_group(groups, parallelism, key_group)
    entries = restored.read().operator("by-user").entries()
    assert sum(entry.value == _count(entry.key) for entry in entries) == LARGE
    table.add(restores.version, backend, parallelism, 1, LARGE, LARGE)


def _long(number: int) -> tuple[Any, Any]:
    return number * 2**20, {"long": number * 2**20}


def _pojo(number: int) -> tuple[Any, Any]:
    fields = {"id": number, "name": f"name {number}" if number % 7 else None}
    seen = {"id": {"int": number}, "name": fields["name"]}
    return fields, {"pojo": "G$Pj", "fields": seen}


def _sql_row(number: int) -> tuple[Any, Any]:
    """A BIGINT, an INT that may be null, and a STRING, in the bytes of Flink's BinaryRowData."""
    small = None if number % 5 == 0 else number % 1000 - 500
    text = f"{number}" if number % 3 else f"a longer text {number}"
    row = {"f0": -number, "f1": small, "f2": text, "row_kind": "+I"}
    encoded = text.encode()
    nulls = bytes((0, (small is None) << 1)) + bytes(6)  # the kind, then a bit a field
    slot, rest = encoded.ljust(7, b"\0") + bytes((0x80 | len(encoded),)), b""
    if len(encoded) > 7:  # it lies behind the fields, in words of eight bytes
        slot = struct.pack("<II", len(encoded), 32)
        rest = encoded.ljust(-(-len(encoded) // 8) * 8, b"\0")
    data = nulls + struct.pack("<qi4x", -number, small or 0) + slot + rest
    return row, {"binary_row": data.hex()}


def _value_serializer(name: str, operator: str, state: str) -> Serializer:
    """Return the serializer of values that a recorded job has."""
    [states] = (one.states for one in point(name).read().operators if one.label == operator)
    [serializer] = (one.value_serializer for one in states if one.name == state)
    assert serializer is not None
    return serializer


OF_MANY: dict[str, tuple[Callable[[], KeyType | Serializer], Callable[[int], tuple[Any, Any]]]] = {
    "Long": (lambda: LONG, _long),
    "POJO": (lambda: _value_serializer("2.3.0-pojo-canonical", "pojo", "pojo"), _pojo),
    "SQL row": (
        lambda: _value_serializer("2.3.0-sqlheap-canonical", "GroupAggregate[4]", "accState"),
        _sql_row,
    ),
}
"""Serializers of values, and from a number the value as a table has it, and as Java says it."""


@pytest.mark.slow
@pytest.mark.flink_since("2.3", "the snapshots of these serializers")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("values", OF_MANY)
def test_flink_finds_a_million_that_columns_wrote(
    restores: FlinkRestores, tmp_path: Path, backend: str, values: str, table: RestoreTable
) -> None:
    """As a table they were written, and then with another max parallelism."""
    pa = pytest.importorskip("pyarrow")
    serializer, value_of = OF_MANY[values]
    old_groups, new_groups, parallelism = 720, 4096, 4
    with SavepointWriter(tmp_path / "old") as writer:
        states = [ValueStateDescriptor("value", serializer())]
        written = writer.add_operator("by-user", STRING, states, old_groups, 3, sort=True)
        for start in range(0, LARGE, 100_000):
            numbers = range(start, start + 100_000)
            keys = [f"user-{number}" for number in numbers]
            rows = [value_of(number)[0] for number in numbers]
            written.write_table("value", pa.table({"key": keys, "value": pa.array(rows)}))
    change_max_parallelism(tmp_path / "old", new_groups, tmp_path / "new")
    for path, groups in (("old", old_groups), ("new", new_groups)):
        savepoint = read_savepoint(tmp_path / path)
        task = Task(savepoint.path, java_operators(savepoint), backend, parallelism, groups)
        restored = restores.restore(task)
        assert restored.refused is None
        for way in ("backend", "keyed"):
            seen = bytearray(LARGE)
            for row in restored.found(way):
                key = row["key"]
                number = int(key.removeprefix("user-"))
                assert row["value"] == value_of(number)[1]
                assert row["key_group"] == assign_to_key_group(key, groups, STRING)
                assert row["subtask"] == row["key_group"] * parallelism // groups
                seen[number] += 1
            assert seen == bytes((1,)) * LARGE
        table.add(restores.version, backend, parallelism, 1, LARGE, LARGE)


def _count(key: str) -> int:
    return int(key.removeprefix("user-")) * 2**20
