"""State of Apache Beam's runner: its keys are ByteBuffers of what a coder made of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.bytes import java_bytes as java
from support.bytes import savepoint_bytes as sb
from support.bytes.beam_bytes import CODERS, LEGACY, OF_KEYS, TIMER, beam_snapshot, stream
from support.bytes.framed_entries import framed_entries
from support.bytes.sst_bytes import VALUE, sst

from keygroups import compute_key_group_for_key_hash
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    SavepointError,
)
from keygroups.savepoint import (
    Operator,
    SavepointWriter,
    ValueStateDescriptor,
    change_max_parallelism,
    read_savepoint,
)
from keygroups.state_keys import Serializer
from keygroups.types import BYTE_BUFFER, LONG


def serializer(coder: str, *, is_legacy: bool = True) -> Serializer:
    data = stream(java.instance(coder))
    return Serializer.from_snapshot(sb.i32(2) + beam_snapshot(data, is_legacy=is_legacy))


def written(folder: Path) -> Operator:
    keys, count = serializer(OF_KEYS), ValueStateDescriptor("count", LONG)
    with SavepointWriter(folder) as writer:
        operator = writer.add_operator("by-user", keys, [count], 128, 2, sort=True)
        for user in (b"\1a", b"\3bob", bytes(300)):
            operator.write("count", user, len(user))
    return read_savepoint(folder, uids=["by-user"]).operator("by-user")


@pytest.mark.parametrize("is_legacy", [True, False])
def test_keys(is_legacy: bool) -> None:
    """A size of 300 is AC 02. Protocol Buffers, "Base 128 varints"; Beam: VarInt.encode."""
    keys = serializer(OF_KEYS, is_legacy=is_legacy)
    assert str(keys) == f"BEAM({OF_KEYS})"
    assert keys.key_type == BYTE_BUFFER
    for key, data in [(b"", b"\0"), (b"\1a", b"\2\1a"), (bytes(300), b"\xac\2" + bytes(300))]:
        assert (keys.encode(key), keys.decode(data)) == (data, key)
    assert keys.read is not None
    assert keys.read(b"\xff\2\1a\xff", 1) == (b"\1a", 4)
    again = Serializer.from_snapshot(keys.snapshot_bytes())
    assert again == keys
    assert type(again) is type(keys)
    with pytest.raises(InvalidTypeError, match="must be bytes, got 'a'"):
        keys.encode("a")


def test_a_key_is_hashed_as_a_byte_buffer(tmp_path: Path) -> None:
    """JDK: ByteBuffer.hashCode, from the last byte on: 31 * (31 * 1 + 97) + 1."""
    old = written(tmp_path / "old")
    key_group = compute_key_group_for_key_hash(31 * (31 + 97) + 1, 128)
    rows = [row for task in old.tasks() for row in framed_entries(task)]
    [(_, found, _, key, value)] = [row for row in rows if b"\1a" in row[3]]
    assert (found, key, value) == (key_group, b"\2\1a\0", sb.i64(2))
    assert old.get(b"\1a") == {"count": 2}
    assert {size.key: size.entries for size in old.key_sizes()} == {
        b"\1a": 1,
        b"\3bob": 1,
        bytes(300): 1,
    }
    assert read_savepoint(tmp_path / "old").verify().faults == ()


def test_edits(tmp_path: Path) -> None:
    written(tmp_path / "old")
    with SavepointWriter.from_existing_savepoint(tmp_path / "old", tmp_path / "new") as writer:
        by_user = writer.operator("by-user")
        by_user.delete_keys([b"\3bob"])
        by_user.map_keys(lambda key: b"\1b" if key == b"\1a" else key)
    change_max_parallelism(tmp_path / "new", 4096, tmp_path / "wider")
    new = read_savepoint(tmp_path / "wider").operators[0]
    assert sorted((entry.key, entry.value) for entry in new.entries()) == [
        (bytes(300), 300),
        (b"\1b", 2),
    ]
    key_groups = {entry.key: entry.key_group for entry in new.entries()}
    assert key_groups[b"\1b"] == compute_key_group_for_key_hash(31 * (31 + 98) + 1, 4096)


# --- on RocksDB ----------------------------------------------------------------------------------

USERS = {b"\1a": b"\1x", b"\3bob": b"\2yz", b"\3bo": b"\0", bytes(300): b"\x85\1" + bytes(133)}
"""Keys, of which one starts another's bytes, and values as the coder of texts writes them."""


def java_hash(key: bytes) -> int:
    """JDK: ByteBuffer.hashCode."""
    code = 1
    for byte in reversed(key):
        code = 31 * code + (byte - 256 if byte > 127 else byte)
    return (code + 2**31) % 2**32 - 2**31


def length(size: int) -> bytes:
    """Flink: CompositeKeySerializationUtils.writeVariableIntBytes, the lowest byte first."""
    return size.to_bytes((size.bit_length() + 7) // 8 or 1, "little")


def on_rocksdb(folder: Path, *, has_text_namespaces: bool) -> Path:
    """Write a native point of keys with a namespace, as SerializedCompositeKeyBuilder has them.

    Where neither tells its end by its type, the lengths of both follow: of the key behind it, of
    the namespace behind that, if there is more.
    """
    namespace = sb.simple("String") if has_text_namespaces else sb.NONE
    values = beam_snapshot(stream(java.instance(f"{CODERS}StringUtf8Coder")))
    state = sb.state("state", "VALUE", values, namespace=namespace)
    header = sb.keyed_header(beam_snapshot(stream(java.instance(OF_KEYS))), [state])
    records = []
    for key, value in USERS.items():
        key_group = compute_key_group_for_key_hash(java_hash(key), 128)
        size = b"\xac\2" if len(key) == 300 else bytes([len(key)])
        encoded = size + key
        row = bytes([key_group]) + encoded
        row += length(len(encoded)) + b"\3//\3" if has_text_namespaces else b"\0"
        records.append((row, 7, VALUE, value))
    table = sst(sorted(records), "state")
    keyed = sb.rocksdb(0, 128, sb.inline(header), [("1.sst", sb.inline(table, "y"))])
    return sb.write(folder, [sb.operator([sb.subtask(managed_keyed=keyed)], uid="by-user")])


@pytest.mark.parametrize("has_text_namespaces", [False, True])
def test_rocksdb(has_text_namespaces: bool, tmp_path: Path) -> None:
    old = on_rocksdb(tmp_path / "old", has_text_namespaces=has_text_namespaces)
    operator = read_savepoint(old).operator("by-user")
    found = {}
    for entry in operator.entries():
        assert entry.key_group == compute_key_group_for_key_hash(java_hash(entry.key), 128)
        assert entry.namespace == ("//" if has_text_namespaces else None)
        found[entry.key] = entry.value
    assert found == USERS
    for key, value in USERS.items():
        state = {"//": value} if has_text_namespaces else value
        assert operator.get(key) == {"state": state}
    assert operator.get(b"\3bo!") == {}
    assert {size.key for size in operator.key_sizes()} == {*USERS}
    assert read_savepoint(old).verify().faults == ()


@pytest.mark.parametrize("has_text_namespaces", [False, True])
def test_edits_of_rocksdb(has_text_namespaces: bool, tmp_path: Path) -> None:
    old = on_rocksdb(tmp_path / "old", has_text_namespaces=has_text_namespaces)
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as writer:
        by_user = writer.operator("by-user")
        by_user.delete_keys([b"\3bob"])
        by_user.map_entries("state", lambda entry: b"\1!" if entry.key == b"\1a" else entry.value)
    change_max_parallelism(tmp_path / "new", 4096, tmp_path / "wider")
    for folder, most in (("new", 128), ("wider", 4096)):
        operator = read_savepoint(tmp_path / folder).operator("by-user")
        assert {entry.key: entry.value for entry in operator.entries()} == {
            key: b"\1!" if key == b"\1a" else value
            for key, value in USERS.items()
            if key != b"\3bob"
        }
        for entry in operator.entries():
            assert entry.key_group == compute_key_group_for_key_hash(java_hash(entry.key), most)
        assert operator.get(b"\1a") != {}


@pytest.mark.parametrize(
    ("coder", "data"),
    [
        (f"{CODERS}BigEndianIntegerCoder", bytes(4)),
        (f"{CODERS}BigEndianLongCoder", bytes(8)),
        (f"{CODERS}BooleanCoder", b"\1"),
        (f"{CODERS}ByteArrayCoder", b"\2ab"),
        (f"{CODERS}DoubleCoder", bytes(8)),
        (f"{CODERS}InstantCoder", bytes(8)),
        (f"{CODERS}StringUtf8Coder", b"\3\xe2\x82\xac"),
        (f"{CODERS}VoidCoder", b""),
        (TIMER, b"\2id\0\1/" + bytes(16) + b"\nEVENT_TIME"),
    ],
)
def test_values_are_the_bytes_of_their_coder(coder: str, data: bytes) -> None:
    value = serializer(coder)
    assert (str(value), value.key_type) == (f"BEAM({coder})", None)
    assert value.decode(data) == data
    assert value.read is not None
    assert value.read(b"\xff" + data + b"\xff", 1) == (data, 1 + len(data))
    for end in range(len(data)):
        with pytest.raises(InvalidValueError, match="must be a BEAM"):
            value.decode(data[:end])
    with pytest.raises(InvalidValueError, match="must end after"):
        value.decode(data + b"\0")
    assert value.encode(data) == data
    for wrong in (data + b"\0", data[:-1]) if data else (b"\0",):
        with pytest.raises(InvalidValueError, match="BEAM must"):
            value.encode(wrong)
    with pytest.raises(InvalidTypeError, match="BEAM must be bytes, got 'a'"):
        value.encode("a")


def test_timers_of_newer_beams_are_left_to_the_pipeline() -> None:
    """Beam: TimerInternals.TimerData.causedByDrain, which those of before do not have."""
    assert serializer(TIMER).read is not None
    assert serializer(TIMER, is_legacy=False).read is None
    assert serializer(f"{CODERS}InstantCoder", is_legacy=False).decode(bytes(8)) == bytes(8)


def test_a_coder_of_the_pipeline(tmp_path: Path) -> None:
    """Its values are bytes where the format says where they end."""
    state = sb.state("pushed-back", "VALUE", beam_snapshot(stream(java.instance("a.Coder"))))
    keyed = sb.keyed_header(beam_snapshot(stream(java.instance(OF_KEYS))), [state])
    key_group = sb.canonical_key_group([(0, [(b"\3\2\1a\0", b"any bytes")])])
    handle = sb.canonical(3, [len(keyed)], sb.inline(keyed + key_group))
    operator = sb.operator([sb.subtask(managed_keyed=handle)], uid="by")
    [entry] = read_savepoint(sb.write(tmp_path / "old", [operator])).operator("by").entries()
    assert (entry.key, entry.value) == (b"\1a", b"any bytes")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no stream of Java",
        stream(java.NULL),
        stream(java.text("a text")),
        java.stream(java.text(OF_KEYS)),
        java.stream(java.instance("a.Serializer")),
    ],
)
def test_a_serializer_without_a_coder(data: bytes) -> None:
    unknown = Serializer.from_snapshot(sb.i32(2) + beam_snapshot(data))
    assert (str(unknown), unknown.key_type, unknown.read) == ("BEAM", None, None)
    assert unknown.snapshot_bytes() == sb.i32(2) + beam_snapshot(data)


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (sb.i32(2, 0, 1), "version of a serializer"),
        (sb.i32(1, 0, 2), "version of the snapshot"),
        (sb.i32(1, 1 << 30), "1073741824"),
        (sb.i32(1, -1), "-1"),
    ],
)
def test_damaged_snapshots(contents: bytes, message: str) -> None:
    with pytest.raises(SavepointError, match=message):
        Serializer.from_snapshot(sb.i32(2) + sb.snapshot(LEGACY, 0x7A53C4F0, contents))


def test_cut_and_changed_snapshots() -> None:
    """Each is refused as damaged, or read as a serializer with another coder, or none."""
    data = sb.i32(2) + beam_snapshot(stream(java.instance(OF_KEYS)))
    start = data.index(b"\xac\xed")
    for size in range(len(data)):
        with pytest.raises(SavepointError):
            Serializer.from_snapshot(data[:size])
    for place in range(start, len(data) - 4):
        changed = data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]
        made = Serializer.from_snapshot(changed)
        assert made.snapshot_bytes() == changed
        assert (made.key_type is None) == (made.java_class != OF_KEYS)
