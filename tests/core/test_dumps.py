"""State of one operator as Flink's test utility writes it, OperatorSnapshotUtil.

The bytes are put together as its source has them; what connectors keep in their tests is read too.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.source_bytes import framed

from keygroups import InvalidTypeError, InvalidValueError
from keygroups.errors import SavepointError
from keygroups.savepoint import (
    SavepointWriter,
    ValueStateDescriptor,
    read_operator_state_dump,
    read_savepoint,
)
from keygroups.state_keys import BYTES
from keygroups.types import LONG, STRING

NULL = b"\0"


def operator_handle(name: str, *elements: bytes) -> bytes:
    options = {"OPERATOR_STATE_DISTRIBUTION_MODE": "UNION"}
    snapshot = {"VALUE_SERIALIZER": BYTES.snapshot_bytes()[4:]}
    data, offsets = sb.operator_header([sb.meta_info(name, 1, options, snapshot)], []), []
    for element in elements:
        offsets.append(len(data))
        data += framed(element)
    return sb.operator_state([(name, 1, offsets)], sb.inline(data))


def keyed_handle(folder: Path) -> bytes:
    """Write keyed state into the folder, and return its handle."""
    with SavepointWriter(folder) as writer:
        states = [ValueStateDescriptor("count", LONG)]
        operator = writer.add_operator("a", STRING, states, 8, 1, sort=True)
        for key in "abcdefgh":
            operator.write("count", key, ord(key))
    [operator_metadata] = read_savepoint(folder).metadata.operators
    return bytes(operator_metadata.subtasks[0].as_read["managed_keyed"].data)


def dump(
    *,
    version: int = 3,
    raw: bytes = sb.i32(0),
    managed: bytes = sb.i32(0),
    raw_keyed: bytes = sb.i32(0),
    keyed: bytes = sb.i32(0),
    channels: bytes = sb.i32(0, 0),
) -> bytes:
    return sb.i32(version) + NULL + raw + managed + raw_keyed + keyed + channels


def written(folder: Path, data: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "kafka-1.20-snapshot"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("version", [0, 3])
def test_operator_state(version: int, tmp_path: Path) -> None:
    managed = sb.i32(1) + operator_handle("partitions", b"a", b"b")
    raw = sb.i32(-1) if version == 0 else sb.i32(1) + operator_handle("raw", b"c")
    channels = b"" if version == 0 else sb.i32(0, 0)
    path = written(tmp_path, dump(version=version, managed=managed, raw=raw, channels=channels))
    operator = read_operator_state_dump(path)
    [entry] = [entry for entry in operator.operator_state() if entry.state == "partitions"]
    assert (entry.mode, entry.elements, entry.subtask) == ("UNION", [b"a", b"b"], 0)
    assert (operator.name, operator.parallelism, operator.max_parallelism) == (str(path), 1, 1)
    assert (operator.uid, operator.operator_id) == (None, "0" * 32)
    assert operator.states == ()


@pytest.mark.parametrize("max_parallelism", [None, 8])
def test_keyed_state(max_parallelism: int | None, tmp_path: Path) -> None:
    """The key groups of its only subtask are all, unless a max parallelism says otherwise."""
    keyed = sb.i32(1) + keyed_handle(tmp_path / "savepoint")
    path = written(tmp_path / "savepoint", dump(keyed=keyed))
    operator = read_operator_state_dump(str(path), max_parallelism)
    assert operator.max_parallelism == 8
    assert {entry.key: entry.value for entry in operator.entries()} == {
        key: ord(key) for key in "abcdefgh"
    }
    assert operator.get("c", "count") == ord("c")


def test_key_groups_of_two_handles(tmp_path: Path) -> None:
    """The last of either says how many there are, in whichever order."""
    few, many = (sb.canonical(0, [0] * count, sb.inline(b"")) for count in (2, 5))
    for raw, managed in ((few, many), (many, few)):
        data = dump(raw_keyed=sb.i32(1) + raw, keyed=sb.i32(1) + managed)
        assert read_operator_state_dump(written(tmp_path, data)).max_parallelism == 5


REFUSED = [
    (b"", "4 bytes were to follow"),
    (dump(version=1), "version of a dump 1 is not known, only 0, 3"),
    (sb.i32(3) + b"\1", "handle of legacy state 1 is not known"),
    (dump(managed=sb.i32(2)), "number of handles in a dump 2 is not known, only -1, 0, 1"),
    (dump(channels=sb.i32(0, 1)), "number of channels in a dump 1 is not known, only -1, 0"),
    (dump() + NULL, "1 bytes are left after a dump"),
]


@pytest.mark.parametrize(("data", "message"), REFUSED)
def test_refused_bytes(data: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(SavepointError, match=f"kafka-1.20-snapshot, offset .*{message}"):
        read_operator_state_dump(written(tmp_path, data))


def test_refused_arguments(tmp_path: Path) -> None:
    path = written(tmp_path, dump())
    wrong: list[tuple[Any, Any, type[Exception], str]] = [
        (5, {}, InvalidTypeError, "path must be"),
        (path, {"max_parallelism": 0}, InvalidValueError, "max_parallelism must be from 1 to"),
        (path, {"kryo_version": 3}, InvalidValueError, "kryo_version must be 2 or 5, got 3"),
        (path, {"serializers": 5}, InvalidTypeError, "serializers must be"),
        (tmp_path / "none", {}, SavepointError, "none"),
        (tmp_path, {}, SavepointError, "cannot be opened"),
    ]
    for place, arguments, error, message in wrong:
        with pytest.raises(error, match=message):
            read_operator_state_dump(place, **arguments)


def test_key_groups_beyond_the_max_parallelism(tmp_path: Path) -> None:
    keyed = sb.i32(1) + keyed_handle(tmp_path / "savepoint")
    path = written(tmp_path / "savepoint", dump(keyed=keyed))
    with pytest.raises(SavepointError, match="8 key groups from 0 on cannot be"):
        read_operator_state_dump(path, 7)


@pytest.mark.long
def test_damaged_bytes(tmp_path: Path) -> None:
    managed = sb.i32(1) + operator_handle("partitions", b"a" * 20, b"b")
    data = dump(managed=managed, keyed=sb.i32(1) + keyed_handle(tmp_path / "savepoint"))
    chosen, counts = random.Random(44), Counter[str]()
    for _ in range(200):
        damaged = bytearray(data)
        damaged[chosen.randrange(len(data))] ^= chosen.choice((1, 0x80, 0xFF))
        try:
            operator = read_operator_state_dump(written(tmp_path / "savepoint", bytes(damaged)))
            assert [*map(str, operator.operator_state()), *map(str, operator.entries())]
            counts["answers"] += 1
        except SavepointError:
            counts["errors"] += 1
    assert min(counts["answers"], counts["errors"]) > 10
