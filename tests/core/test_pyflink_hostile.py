"""Savepoints of PyFlink that are damaged, read and edited as a job declares them."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from support.bytes.hostile_savepoints import watched
from support.bytes.pyflink_points import write_native
from support.bytes.real_savepoints import corpus

from keygroups.errors import KeyGroupsError
from keygroups.savepoint import (
    ListStateDescriptor,
    MapStateDescriptor,
    Operator,
    SavepointWriter,
    TimerServiceDescriptor,
    ValueStateDescriptor,
    pyflink,
    read_savepoint,
)
from keygroups.types import LONG, PYFLINK, STRING

SECONDS = 5.0
STATES = [
    ValueStateDescriptor("value", pyflink.ROW(STRING, LONG, names=["a", "b"])),
    ListStateDescriptor("list", STRING),
    ListStateDescriptor("times", pyflink.PICKLED, has_ttl=True),
    MapStateDescriptor("map", STRING, pyflink.PICKLED),
]


def small(tmp_path: Path, is_native: bool) -> Path:
    """Write a savepoint of all kinds of state; the hashmap backend's own has all inline."""
    with SavepointWriter(tmp_path / "small") as writer:
        states = [*STATES, TimerServiceDescriptor()]
        operator = writer.add_operator("a", PYFLINK(LONG), states, 4, 1, sort=True)
        for key in range(4):
            operator.write("value", key, ("x", None))
            operator.write("list", key, ["é", "b"])
            operator.write("times", key, [{"k": [key]}, None], last_access=1_790_000_000_000)
            operator.write("map", key, (key, "x"), "u")
            operator.write_timer(key, 5)
    if not is_native:
        return tmp_path / "small"
    plain = read_savepoint(tmp_path / "small").operator("a")
    return write_native(plain, tmp_path / "native")


def edit(operator: Operator, new: Path) -> None:
    path = operator._files.base
    with SavepointWriter.from_existing_savepoint(path, new) as editor:
        edited = editor.operator("a").as_pyflink(LONG, STATES)
        edited.delete_keys([2])
        for name in ("value", "list", "times", "map"):
            edited.map_entries(name, lambda entry: entry.value)


def count(error: KeyGroupsError, counts: Counter[str]) -> None:
    assert str(error).isprintable()
    counts["errors"] += 1


CALLS: dict[str, Callable[[Operator, Path], object]] = {
    "entries": lambda operator, _: [*map(str, operator.entries())],
    "get": lambda operator, _: str(operator.get(1)),
    "key_sizes": lambda operator, _: operator.key_sizes(),
    "value": lambda operator, _: operator.to_arrow("value"),
    "list": lambda operator, _: operator.to_arrow("list"),
    "times": lambda operator, _: operator.to_arrow("times"),
    "map": lambda operator, _: operator.to_arrow("map"),
    "edit": edit,
}


@pytest.mark.long
@pytest.mark.parametrize("is_native", [False, True])
@pytest.mark.parametrize("cases", [12, pytest.param(3_000, marks=pytest.mark.slow)])
def test_damaged_bytes(cases: int, is_native: bool, tmp_path: Path) -> None:
    """An answer or an error of one line comes of it, in little time, and nothing else opens."""
    pytest.importorskip("pyarrow")
    path = small(tmp_path, is_native)
    [file] = [path / "_metadata"] if is_native else {*path.iterdir()} - {path / "_metadata"}
    data, chosen, counts = file.read_bytes(), random.Random(44), Counter[str]()
    for call in CALLS.values():
        call(read_savepoint(path).operator("a").as_pyflink(LONG, STATES), tmp_path / "whole")
    for number in range(cases):
        # The header comes first, which is damaged elsewhere.
        place, flip = (
            chosen.randrange(len(data) * 2 // 3, len(data)),
            chosen.choice((1, 0x80, 0xFF)),
        )
        file.write_bytes(data[:place] + bytes([data[place] ^ flip]) + data[place + 1 :])
        start = time.process_time()
        for name, call in CALLS.items():
            try:
                with watched() as seen:
                    operator = read_savepoint(path).operator("a").as_pyflink(LONG, STATES)
                    call(operator, tmp_path / f"{number}-{name}")
            except KeyGroupsError as error:
                count(error, counts)
            else:
                counts["answers"] += 1
            assert not [shown for _, shown in seen if not shown.startswith(str(tmp_path))]
        assert time.process_time() - start < SECONDS
    print(dict(counts))
    assert min(counts["errors"], counts["answers"]) > cases / 2


def test_real_points_that_are_damaged(tmp_path: Path) -> None:
    """Broadcast state and keys of java.sql, which a writer here does not make, are among them."""
    whole = corpus("pyflink") / "2.3.0-states-s1" / "savepoint" / "_metadata"
    data, chosen, counts = whole.read_bytes(), random.Random(45), Counter[str]()
    start = data.index(b"rule0") - 100
    states = [MapStateDescriptor("rules", STRING, LONG)]
    for _ in range(60):
        place = chosen.randrange(start, start + 150)
        changed = data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]
        (tmp_path / "_metadata").write_bytes(changed)
        try:
            operator = read_savepoint(tmp_path).operator("bc").as_pyflink(LONG, states)
            assert [*map(str, operator.operator_state())]
        except KeyGroupsError as error:
            count(error, counts)
        else:
            counts["answers"] += 1
    assert min(counts.values()) > 5
