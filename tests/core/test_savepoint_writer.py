"""Savepoints that are written: the bytes are those that Flink writes.

The expected bytes are those of real savepoints, or of `expected_savepoints`, which know nothing of
the library.
"""

from __future__ import annotations

import random
import struct
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.bytes.expected_savepoints import (
    BY_STRING,
    COUNT,
    DESCRIPTORS,
    KINDS,
    LONGS,
    STRINGS,
    check_folder,
    expected_files,
    keys_by_group,
    known_entries,
    known_state,
    longs_by,
    write_all,
)
from support.bytes.framed_entries import framed_entries
from support.bytes.real_savepoints import POINTS, Point, point
from support.bytes.state_types import NAN, TYPES
from support.inside.savepoints import KeyedHeader, NewState, RawTimersHandle, write_state

from keygroups import assign_to_key_group
from keygroups.errors import InvalidTypeError, InvalidValueError, UnsupportedKeyTypeError
from keygroups.savepoint import (
    ListStateDescriptor,
    Operator,
    SavepointWriter,
    StateDescriptor,
    TtlValue,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.state_keys import VOID_NAMESPACE
from keygroups.types import DOUBLE, FLOAT, LIST, PYFLINK, STRING

NULLS = "nulls"  # a MAP of nulls for Longs, which RocksDB keeps: the hashmap backend cannot


def described(state: StateDescriptor) -> NewState | None:
    """Return the descriptor that a user gives for a state of Flink, None for what none can say."""
    value, user_key = state.value_serializer, state.user_key_serializer
    types = [one.key_type for one in (user_key, value) if one is not None]
    if state.kind not in DESCRIPTORS or state.namespace_serializer != VOID_NAMESPACE:
        return None
    if None in types:
        return None
    return DESCRIPTORS[state.kind](state.name, *types, has_ttl=state.has_ttl)


# What Flink itself has written


def headers() -> Iterator[KeyedHeader]:
    """Yield the headers of all managed keyed state of all points."""
    for one in POINTS:
        for operator in one.read().operators:
            for task in operator.tasks():
                handles = [one for one in task.handles if not isinstance(one, RawTimersHandle)]
                yield from replace(task, handles=tuple(handles)).format.headers()


def test_headers() -> None:
    """Each serializer and each state that can be written is written as Flink wrote it."""
    keys: Counter[str] = Counter()
    states: Counter[str] = Counter()
    for header in headers():
        try:
            written = header.key_serializer.snapshot_bytes()
        except UnsupportedKeyTypeError:
            keys[f"{header.key_serializer.name} refused"] += 1
        else:
            assert written == header.key_bytes
            keys["written"] += 1
        for state, data in zip(header.states, header.state_bytes):
            try:
                written = write_state(state)
            except UnsupportedKeyTypeError:
                states[f"{state} refused"] += 1
            else:
                assert written == data
                states[state.kind] += 1
    assert keys == {"written": 774}
    assert states == {
        **{"VALUE": 1596 + 502, "LIST": 562 + 396, "MAP": 452 + 408, "REDUCING": 418},
        **{"AGGREGATING": 554, "PRIORITY_QUEUE": 1492},
    }


Parts = dict[tuple[int, str], list[tuple[bytes, bytes]]]


def parts_of(operator: Operator, states: set[str]) -> Parts:
    """Return by key group and state the bytes of keys and values, in the order of the file."""
    found: Parts = defaultdict(list)
    for task in operator.tasks():
        for entry in framed_entries(task):
            if entry.state in states:
                encoded = (entry.encoded_key, entry.encoded_value)
                found[entry.key_group, entry.state].append(encoded)
    return found


def without_nulls(operator: Operator, parts: Parts) -> Parts:
    """Leave out what the hashmap backend writes after a null in a MAP."""
    maps = {state.name for state in operator.states if state.kind == "MAP"}
    return {
        (key_group, state): [
            (key, value[:1] if state in maps and value[:1] == b"\1" else value)
            for key, value in entries
        ]
        for (key_group, state), entries in parts.items()
    }


def rewritten(one: Point, path: Path) -> int:
    """Write all values of a point that can be, and compare their bytes; return how many."""
    count = 0
    for number, operator in enumerate(one.read().operators):
        states = [state for state in operator.states if state.name != NULLS]
        new = [new for state in states if (new := described(state)) is not None]
        key_type = operator.states[0].key_type if new else None
        if key_type is None or isinstance(key_type, PYFLINK):
            continue
        names = {state.name for state in new}
        with SavepointWriter(path / str(number)) as writer:
            groups, subtasks = operator.max_parallelism, operator.parallelism
            written = writer.add_operator("uid", key_type, new, groups, subtasks)
            for entry in operator.entries(names):
                state, key, value = entry.state, entry.key, entry.value
                written.write(state, key, value, entry.user_key, entry.last_access)
                count += 1
        ours = read_savepoint(path / str(number)).operator("uid")
        assert list(map(str, ours.states)) == [
            str(state) for state in states if state.name in names
        ]
        expected = {
            place: sorted(entries)
            for place, entries in without_nulls(operator, parts_of(operator, names)).items()
        }
        assert parts_of(ours, names) == expected
    return count


CANONICAL = [one.name for one in POINTS if one.kind == "canonical"]
QUICK = ["2.3.0-rocks-canonical", "1.20.5-rowkey-canonical", "1.14.6-rocks-canonical"]


@pytest.mark.parametrize(
    ("names", "entries"),
    [
        pytest.param(QUICK, 1552 + 72 + 1552, id="some"),
        pytest.param(CANONICAL, 33_212, marks=pytest.mark.slow, id="all"),
    ],
)
def test_values_of_flink(names: list[str], entries: int, tmp_path: Path) -> None:
    """Each value is written with the bytes of Flink's own savepoint, in RocksDB's order."""
    counts = [rewritten(point(name), tmp_path / name) for name in names]
    assert sum(counts) == entries


# Whole files, from values of which the bytes are known


OF_KEYS = [one for one in TYPES if not isinstance(one.key_type, LIST)]


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("has_ttl", [False, True], ids=["plain", "TTL"])
def test_each_type(kind: str, has_ttl: bool, tmp_path: Path) -> None:
    """A state of each type of value under each type of key: all files, and reading them."""
    states = [
        known_state(kind, has_ttl, one, other) for one, other in zip(TYPES, [*TYPES[1:], TYPES[0]])
    ]
    folder = tmp_path / "savepoint"
    expected = {}
    with SavepointWriter(folder) as writer:
        for key in OF_KEYS:
            descriptors = [state.descriptor for state in states]
            operator = writer.add_operator(repr(key.key_type), key.key_type, descriptors, 128, 3)
            entries = known_entries(key, states)
            write_all(operator, entries)
            expected[operator.operator_id] = expected_files(key, states, entries, 128, 3)
    check_folder(folder, expected, 128, 3)
    savepoint = read_savepoint(folder)
    for key in OF_KEYS:
        read = savepoint.operator(repr(key.key_type)).entries()
        seen = Counter(
            repr((one.state, one.key, one.value, one.user_key, one.last_access)) for one in read
        )
        assert seen == Counter(repr(one[:5]) for one in known_entries(key, states))


@pytest.mark.parametrize("max_parallelism", [1, 2, 127, 128, 129, 200, 4096, 32768])
@pytest.mark.parametrize("parallelism", [1, 2, 3, 100, 32768])
def test_key_groups(max_parallelism: int, parallelism: int, tmp_path: Path) -> None:
    """One or two bytes of key group; the first and the last; subtasks that have no entry."""
    if parallelism > max_parallelism:
        parallelism = max_parallelism
    last = max_parallelism - 1
    keys = keys_by_group(max_parallelism, *sorted({0, min(1, last), last // 3, last}))
    entries = longs_by(keys)
    folder = tmp_path / "savepoint"
    with SavepointWriter(folder) as writer:
        states = [COUNT.descriptor]
        operator = writer.add_operator("by-string", STRING, states, max_parallelism, parallelism)
        assert operator.operator_id == BY_STRING
        write_all(operator, entries)
    files = expected_files(STRINGS, [COUNT], entries, max_parallelism, parallelism)
    check_folder(folder, {BY_STRING: files}, max_parallelism, parallelism)
    seen = [(one.key, one.value) for one in read_savepoint(folder).operators[0].entries()]
    assert seen == [(one.key, one.value) for one in entries]


def test_operators(tmp_path: Path) -> None:
    """Several, whose entries take turns, with the ids that Flink gives the uids; one is empty."""
    ids = {
        line["uid"]: line["operator"]
        for line in point("2.3.0-heap-canonical").truth("metadata")
        if line["record"] == "operator" and line["uid"]
    }
    assert len(ids) > 10
    entries = longs_by(keys_by_group(128, *range(0, 128, 10)))
    folder = tmp_path / "savepoint"
    with SavepointWriter(folder) as writer:
        operators = [writer.add_operator(uid, STRING, [COUNT.descriptor], 128, 3) for uid in ids]
        empty = writer.add_operator("empty", STRING, [COUNT.descriptor], 128, 3)
        assert [operator.operator_id for operator in operators] == list(ids.values())
        for entry in entries:
            for operator in operators:
                write_all(operator, [entry])
    files = expected_files(STRINGS, [COUNT], entries, 128, 3)
    expected = dict.fromkeys(ids.values(), files)
    check_folder(folder, {**expected, empty.operator_id: []}, 128, 3)


def test_any_order_within_a_key_group(tmp_path: Path) -> None:
    """States may take turns, and keys come in any order: the bytes are the same."""
    states = [known_state(kind, False, LONGS, STRINGS) for kind in KINDS]
    entries = known_entries(STRINGS, states)
    expected = expected_files(STRINGS, states, entries, 2, 1)
    for number in range(20):
        shuffled = random.Random(number).sample(entries, len(entries))
        folder = tmp_path / str(number)
        with SavepointWriter(folder) as writer:
            descriptors = [state.descriptor for state in states]
            operator = writer.add_operator("by-string", STRING, descriptors, 2, 1)
            write_all(operator, shuffled)
        check_folder(folder, {BY_STRING: expected}, 2, 1)


def test_more_than_is_written_at_once(tmp_path: Path) -> None:
    """A file of several buffers, and an entry that is larger than one."""
    keys = keys_by_group(32, *range(32))
    folder = tmp_path / "savepoint"
    values = {key: "v" * (200_000 if key == keys[7] else 9_000) for key in keys}
    with SavepointWriter(folder) as writer:
        states = [ValueStateDescriptor("text", STRING)]
        operator = writer.add_operator("by-string", STRING, states, 32, 2)
        for key in keys:
            operator.write("text", key, values[key])
    assert {one.key: one.value for one in read_savepoint(folder).operators[0].entries()} == values


def test_a_nan_is_that_of_java(tmp_path: Path) -> None:
    """Whatever its bits are: a job that looks a NaN up writes Double.doubleToLongBits of it."""
    (other,) = struct.unpack(">d", bytes.fromhex("fff8000000000001"))
    (single,) = struct.unpack(">f", bytes.fromhex("ffc00001"))
    states = [ValueStateDescriptor("single", FLOAT)]
    with SavepointWriter(tmp_path / "savepoint") as writer:
        operator = writer.add_operator("uid", DOUBLE, states, 128, 1)
        operator.write("single", other, single)
    task = read_savepoint(tmp_path / "savepoint").operators[0].tasks()[0]
    ((_, key_group, _, key, value),) = framed_entries(task)
    assert key_group == assign_to_key_group(NAN, 128, DOUBLE)
    assert (key.hex(), value.hex()) == ("7ff800000000000000", "7fc00000")


def test_times_of_list_elements(tmp_path: Path) -> None:
    """Each its own, or that of the entry."""
    states = [ListStateDescriptor("visits", STRING, has_ttl=True)]
    with SavepointWriter(tmp_path / "savepoint") as writer:
        operator = writer.add_operator("uid", STRING, states, 128, 1, allow_any_last_access=True)
        visits = [TtlValue(5, "a"), "b", TtlValue(-7, "c")]
        operator.write("visits", "ann", visits, last_access=9)
    (entry,) = read_savepoint(tmp_path / "savepoint").operators[0].entries()
    assert entry.value == [TtlValue(5, "a"), TtlValue(9, "b"), TtlValue(-7, "c")]


def test_a_descriptor_of_a_class_of_ones_own(tmp_path: Path) -> None:
    class Tags(ListStateDescriptor):
        """A ListState that a user has named."""

    with SavepointWriter(tmp_path / "savepoint") as writer:
        operator = writer.add_operator("by-string", STRING, [Tags("tags", DOUBLE)], 128, 1)
        assert [state.kind for state in operator.states] == ["LIST"]


@pytest.mark.parametrize("checkpoint_id", [1, 4711, 2**63 - 2])
def test_the_number_of_a_new_savepoint(checkpoint_id: int, tmp_path: Path) -> None:
    with SavepointWriter(tmp_path / "new", checkpoint_id=checkpoint_id):
        pass
    assert read_savepoint(tmp_path / "new").checkpoint_id == checkpoint_id


@pytest.mark.parametrize("checkpoint_id", [0, -1, 2**63 - 1, 1.5, "7", None, True])
def test_what_is_no_number_of_a_savepoint(checkpoint_id: Any, tmp_path: Path) -> None:
    with pytest.raises((InvalidTypeError, InvalidValueError), match="checkpoint_id must be"):
        SavepointWriter(tmp_path / "new", checkpoint_id=checkpoint_id)
    assert not list(tmp_path.iterdir())
