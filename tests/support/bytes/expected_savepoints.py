"""Whole savepoints from values of which the bytes are known, as Flink writes them.

Written with `savepoint_bytes`; the library says only which key group a key has, and which subtask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from keygroups import assign_to_key_group, compute_operator_index_for_key_group
from keygroups.savepoint import (
    ListStateDescriptor,
    MapStateDescriptor,
    OperatorWriter,
    ReducingStateDescriptor,
    TtlValue,
    ValueStateDescriptor,
)
from keygroups.types import LONG, STRING
from support.bytes import savepoint_bytes as sb
from support.bytes.state_types import TYPES, TypeBytes
from support.inside.savepoints import NewState

DESCRIPTORS: dict[str, Callable[..., NewState]] = {
    "VALUE": ValueStateDescriptor,
    "LIST": ListStateDescriptor,
    "MAP": MapStateDescriptor,
    "REDUCING": ReducingStateDescriptor,
}
TIME = 1_700_000_000_044  # a last access, in whose bytes there is a comma


KINDS = ["VALUE", "REDUCING", "LIST", "MAP"]
BY_STRING = "43c502db369b106061a4c7c72c012f5f"  # the id of "by-string" in Flink 2.3.0
LONGS, STRINGS = (next(one for one in TYPES if one.key_type == item) for item in (LONG, STRING))


class Written(NamedTuple):
    """An entry as `OperatorWriter.write` takes it, and its bytes: key without key group, value."""

    state: str
    key: Any
    value: Any
    user_key: Any
    last_access: int | None
    key_bytes: bytes
    value_bytes: bytes


class KnownState(NamedTuple):
    """A state, its part of the header, and the values to be written for each key."""

    descriptor: NewState
    header: bytes
    entries: list[tuple[Any, Any, int | None, bytes, bytes]]


def known_state(
    kind: str, has_ttl: bool, value_type: TypeBytes, user_key: TypeBytes
) -> KnownState:
    """Return a state with all values of a type, in a MAP under all user keys of another."""
    name = f"{kind} of {value_type.key_type!r}"
    time, before = (TIME, sb.i64(TIME)) if has_ttl else (None, b"")
    snapshot = sb.ttl_of(value_type.snapshot) if has_ttl else value_type.snapshot
    values = [(value, before + bytes.fromhex(data)) for value, data in value_type.values]
    entries: list[tuple[Any, Any, int | None, bytes, bytes]]
    if kind == "LIST":
        snapshot = sb.list_of(snapshot)
        value = [TtlValue(TIME, one) if has_ttl else one for one, _ in values]
        entries = [(value, None, None, b"", b",".join(data for _, data in values))]
    elif kind == "MAP":
        snapshot = sb.map_of(user_key.snapshot, snapshot)
        entries = [
            (value, found, time, bytes.fromhex(found_bytes), b"\0" + data)
            for (value, data), (found, found_bytes) in zip(values, user_key.values)
        ]
        if value_type.key_type == STRING:
            null = b"\0" + before + b"\0" if has_ttl else b"\1"
            entries[0] = (None, *entries[0][1:4], null)
    else:
        entries = [(value, None, time, b"", data) for value, data in values[-1:]]
    types = [user_key.key_type, value_type.key_type] if kind == "MAP" else [value_type.key_type]
    descriptor = DESCRIPTORS[kind](name, *types, has_ttl=has_ttl)
    return KnownState(descriptor, sb.state(name, kind, snapshot), entries)


def known_entries(key: TypeBytes, states: Sequence[KnownState]) -> list[Written]:
    return [
        Written(
            state.descriptor.name,
            value,
            *entry[:3],
            bytes.fromhex(data) + b"\0" + entry[3],
            entry[4],
        )
        for value, data in key.values
        for state in states
        for entry in state.entries
    ]


def prefix(key_group: int, max_parallelism: int) -> bytes:
    return key_group.to_bytes(1 if max_parallelism <= 128 else 2, "big")


class Expected(NamedTuple):
    """What `_metadata` says of a subtask, but the name of its file; and the file."""

    subtask: int
    first: int
    offsets: list[int]
    content: bytes


def expected_files(
    key: TypeBytes,
    states: Sequence[KnownState],
    entries: Sequence[Written],
    max_parallelism: int,
    parallelism: int,
) -> list[Expected]:
    """Return the files of subtasks with entries."""
    header = sb.keyed_header(key.snapshot, [state.header for state in states])
    numbers = {state.descriptor.name: number for number, state in enumerate(states)}
    groups: dict[int, dict[int, list[tuple[bytes, bytes]]]] = {}
    for entry in entries:
        key_group = assign_to_key_group(entry.key, max_parallelism, key.key_type)
        item = groups.setdefault(key_group, {}).setdefault(numbers[entry.state], [])
        item.append((prefix(key_group, max_parallelism) + entry.key_bytes, entry.value_bytes))
    found: dict[int, Expected] = {}
    for key_group in sorted(groups):
        subtask = compute_operator_index_for_key_group(max_parallelism, parallelism, key_group)
        first = -(-subtask * max_parallelism // parallelism)
        last = ((subtask + 1) * max_parallelism - 1) // parallelism
        start = Expected(subtask, first, [0] * (last - first + 1), header)
        one = found.get(subtask, start)
        one.offsets[key_group - first] = len(one.content)
        by_state = [(number, sorted(item)) for number, item in sorted(groups[key_group].items())]
        found[subtask] = one._replace(content=one.content + sb.canonical_key_group(by_state))
    return list(found.values())


def check_folder(
    folder: Path, operators: dict[str, list[Expected]], max_parallelism: int, parallelism: int
) -> None:
    """Hold each file, and `_metadata` with the names of the files in it, against what is expected.

    `operators` are by their ids.
    """
    names = {path.name for path in folder.iterdir()} - {"_metadata"}
    parts = []
    for operator_id, files in operators.items():
        tasks = []
        for one in files:
            (name,) = (name for name in names if name.startswith(f"{operator_id}-{one.subtask}-"))
            names.remove(name)
            assert (folder / name).read_bytes() == one.content
            stream = sb.relative(name, len(one.content))
            handle = sb.canonical(one.first, one.offsets, stream)
            tasks.append(sb.subtask(one.subtask, managed_keyed=handle, version=3))
        parts.append(
            sb.operator(
                tasks,
                parallelism=parallelism,
                max_parallelism=max_parallelism,
                operator_id=bytes.fromhex(operator_id),
                version=3,
            )
        )
    assert not names
    expected = sb.metadata(parts, version=3, checkpoint_id=1)
    assert (folder / "_metadata").read_bytes() == expected


def write_all(writer: OperatorWriter, entries: Sequence[Written]) -> None:
    for entry in sorted(entries, key=lambda one: writer.key_group(one.key)):
        writer.write(entry.state, entry.key, entry.value, entry.user_key, entry.last_access)


@lru_cache
def keys_by_group(max_parallelism: int, *wanted: int) -> list[str]:
    """Return a string of each key group."""
    found: dict[int, str] = {}
    for number in count():
        key = f"key {number}"
        found.setdefault(assign_to_key_group(key, max_parallelism, STRING), key)
        if found.keys() >= set(wanted):
            return [found[key_group] for key_group in wanted]
    raise AssertionError


def longs_by(keys: Sequence[str]) -> list[Written]:
    """Return entries of a state `count`, a Long for each of some short ASCII keys."""
    return [
        Written("count", key, number, None, None, text(key) + b"\0", sb.i64(number))
        for number, key in enumerate(keys)
    ]


def text(key: str) -> bytes:
    return bytes([len(key) + 1]) + key.encode("ascii")


COUNT = KnownState(
    ValueStateDescriptor("count", LONG), sb.state("count", "VALUE", LONGS.snapshot), []
)
"""The state of `longs_by`."""
