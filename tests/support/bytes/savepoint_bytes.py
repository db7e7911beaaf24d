"""Writes the bytes of savepoints, for those that no real job here has written.

Written from what Flink's serializers of metadata and headers do (MetadataV2V3SerializerBase,
MetadataV6Serializer, KeyedBackendSerializationProxy and the snapshots of serializers); the reader
is not used. Numbers are big endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

import google_crc32c

NO_PROPERTIES = bytes.fromhex("aced000570")  # a Java object stream with a null in it

BASE = "org.apache.flink.api.common.typeutils.base."
JAVA = "org.apache.flink.api.java.typeutils.runtime."
STATE = "org.apache.flink.runtime.state."
TABLE = "org.apache.flink.table.runtime.typeutils."
WINDOWS = "org.apache.flink.streaming.api.windowing.windows."
TIMER = "org.apache.flink.streaming.api.operators.TimerSerializerSnapshot"
VOID = f"{STATE}VoidNamespaceSerializer$VoidNamespaceSerializerSnapshot"


def i16(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}h", *numbers)


def i32(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}i", *numbers)


def i64(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}q", *numbers)


def utf(text: str) -> bytes:
    """Java's modified UTF-8: each UTF-16 unit by itself, NUL in two bytes."""
    if text.isascii() and "\0" not in text:
        return len(text).to_bytes(2, "big") + text.encode()
    units = struct.unpack(
        f">{len(text.encode('utf-16-be', 'surrogatepass')) // 2}H",
        text.encode("utf-16-be", "surrogatepass"),
    )
    data = b"".join(
        chr(unit).encode("utf-8", "surrogatepass") if unit else b"\xc0\x80" for unit in units
    )
    return len(data).to_bytes(2, "big") + data


# Streams, each with the code of its kind first.


def inline(data: bytes, name: str = "x") -> bytes:
    return b"\x01" + utf(name) + i32(len(data)) + data


def absolute(path: str, size: int) -> bytes:
    return b"\x02" + i64(size) + utf(path)


def relative(path: str, size: int) -> bytes:
    return b"\x06" + utf(path) + i64(size)


def segment(path: str, start: int, size: int) -> bytes:
    return b"\x0f" + i64(start, size) + i32(0) + utf(path) + utf("id")


EMPTY_SEGMENT = b"\x10"


# Handles of keyed and operator state.


def canonical(first: int, offsets: Sequence[int], stream: bytes) -> bytes:
    return b"\x07" + i32(first, len(offsets)) + i64(*offsets) + stream


def native(first: int, offsets: Sequence[int], stream: bytes) -> bytes:
    return b"\x0c" + i32(first, len(offsets)) + i64(*offsets) + stream + utf("id")


def older(first: int, offsets: Sequence[int], stream: bytes) -> bytes:
    return b"\x03" + i32(first, len(offsets)) + i64(*offsets) + stream


def files_of(files: Iterable[tuple[str, bytes]]) -> bytes:
    parts = [utf(local) + stream for local, stream in files]
    return i32(len(parts)) + b"".join(parts)


def rocksdb(
    first: int,
    count: int,
    meta: bytes,
    shared: Iterable[tuple[str, bytes]] = (),
    private: Iterable[tuple[str, bytes]] = (),
    code: int = 11,
) -> bytes:
    start = bytes([code]) + i64(1) + utf("backend") + i32(first, count)
    size, end = (i64(0), utf("id")) if code == 11 else (b"", b"")
    return start + size + meta + files_of(shared) + files_of(private) + end


def operator_state(states: Iterable[tuple[str, int, Sequence[int]]], stream: bytes) -> bytes:
    parts = [
        utf(name) + bytes([mode]) + i32(len(offsets)) + i64(*offsets)
        for name, mode, offsets in states
    ]
    return b"\x04" + i32(len(parts)) + b"".join(parts) + stream


# Subtasks, operators, the file.


def subtask(
    index: int = 0,
    *,
    managed_operator: bytes = b"",
    raw_operator: bytes = b"",
    managed_keyed: bytes = b"\0",
    raw_keyed: bytes = b"\0",
    inputs: Sequence[bytes] = (),
    outputs: Sequence[bytes] = (),
    version: int = 6,
) -> bytes:
    parts = [i32(index), i64(0) + i32(0) if version == 2 else b""]
    parts += [i32(1) + one if one else i32(0) for one in (managed_operator, raw_operator)]
    parts += [managed_keyed, raw_keyed]
    if version >= 3:
        parts += [i32(len(channels)) + b"".join(channels) for channels in (inputs, outputs)]
    return b"".join(parts)


def operator(
    subtasks: Sequence[bytes],
    *,
    parallelism: int = 1,
    max_parallelism: int = 128,
    operator_id: bytes = bytes(16),
    name: str = "",
    uid: str = "",
    coordinator: bytes = b"\0",
    version: int = 6,
) -> bytes:
    labels = utf(name) + utf(uid) if version >= 5 else b""
    chain = i32(1) if version == 2 else coordinator
    head = labels + operator_id + i32(parallelism, max_parallelism) + chain
    return head + i32(len(subtasks)) + b"".join(subtasks)


def metadata(
    operators: Sequence[bytes],
    *,
    version: int = 6,
    checkpoint_id: int = 7,
    master_states: Sequence[bytes] = (),
    properties: bytes = NO_PROPERTIES,
) -> bytes:
    masters = b"".join(b"\xc9\x6b\x16\x96" + i32(len(one)) + one for one in master_states)
    parts = [
        b"\x49\x60\x67\x2d" + i32(version) + i64(checkpoint_id),
        i32(len(master_states)) + masters,
    ]
    parts += [i32(len(operators)), *operators, properties if version >= 4 else b""]
    return b"".join(parts)


def write(folder: Path, operators: Sequence[bytes]) -> Path:
    """Write a savepoint of version 6, and return its folder."""
    folder.mkdir(exist_ok=True)
    (folder / "_metadata").write_bytes(metadata(operators))
    return folder


# Snapshots of serializers, and headers.


def snapshot(java_class: str, version: int, contents: bytes = b"") -> bytes:
    return utf(java_class) + i32(version) + contents


def simple(name: str) -> bytes:
    """`Int`, `Long`, `String` and the like, of `typeutils.base`."""
    return snapshot(f"{BASE}{name}Serializer${name}SerializerSnapshot", 3)


def nested(parts: Sequence[bytes]) -> bytes:
    return i32(1333245, 1, len(parts)) + b"".join(parts)


def composite(
    java_class: str, outer_version: int, parts: Sequence[bytes], outer: bytes = b""
) -> bytes:
    return snapshot(java_class, 3, i32(911108, outer_version) + outer + nested(parts))


def list_of(element: bytes) -> bytes:
    return composite(f"{BASE}ListSerializerSnapshot", 1, [element])


def map_of(key: bytes, value: bytes) -> bytes:
    return composite(f"{BASE}MapSerializerSnapshot", 1, [key, value])


def tuple_of(*parts: bytes, java_class: str = "") -> bytes:
    name = java_class or f"org.apache.flink.api.java.tuple.Tuple{len(parts)}"
    return composite(f"{JAVA}TupleSerializerSnapshot", 2, parts, utf(name))


def ttl_of(value: bytes) -> bytes:
    java_class = f"{STATE}ttl.TtlStateFactory$TtlSerializerSnapshot"
    return composite(java_class, 2, [simple("Long"), value])


def timer_of(key: bytes, namespace: bytes) -> bytes:
    return composite(TIMER, 2, [key, namespace])


def optional_map(members: dict[str, bytes | None]) -> bytes:
    """Names with a snapshot or none, each framed by its length."""
    parts = [
        utf(name) + b"\0" + (b"\0" if one is None else b"\1" + i32(len(one)) + one)
        for name, one in members.items()
    ]
    return i64(0x4F2C69A3D70) + i32(len(parts)) + b"".join(parts)


def pojo_of(java_class: str, fields: dict[str, bytes | None]) -> bytes:
    maps = optional_map(fields) + optional_map({}) * 2
    return snapshot(f"{JAVA}PojoSerializerSnapshot", 2, utf(java_class) + maps)


def kryo_of(java_class: str) -> bytes:
    maps = optional_map({java_class: None}) + optional_map({}) * 2
    return snapshot(f"{JAVA}kryo.KryoSerializerSnapshot", 2, utf(java_class) + maps)


NONE = snapshot(VOID, 3)


def state(
    name: str,
    kind: str,
    value: bytes,
    *,
    namespace: bytes = NONE,
    backend_type: int = 0,
) -> bytes:
    """One state of a keyed header; `kind` is empty for timers."""
    options = {"KEYED_STATE_TYPE": kind} if kind else {}
    snapshots = {"VALUE_SERIALIZER": value}
    if kind:
        snapshots["NAMESPACE_SERIALIZER"] = namespace
    return meta_info(name, backend_type, options, snapshots)


def async_state(
    name: str, kind: str, value: bytes, *, user_key: bytes = b"", namespace: bytes = NONE
) -> bytes:
    """One state of an asynchronous backend; `user_key` is empty for all but a MAP."""
    snapshots = {"VALUE_SERIALIZER": value}
    if user_key:
        snapshots["USER_KEY_SERIALIZER"] = user_key
    snapshots["NAMESPACE_SERIALIZER"] = namespace
    return meta_info(name, 4, {"KEYED_STATE_TYPE": kind}, snapshots)


def meta_info(
    name: str, backend_type: int, options: dict[str, str], snapshots: dict[str, bytes]
) -> bytes:
    parts = [utf(name), i32(backend_type, len(options))]
    parts += [utf(key) + utf(value) for key, value in options.items()]
    parts.append(i32(len(snapshots)))
    parts += [utf(key) + i32(2) + one for key, one in snapshots.items()]
    return b"".join(parts)


def keyed_header(key: bytes, states: Sequence[bytes], *, compressed: bool = False) -> bytes:
    start = i32(6) + bytes([compressed]) + i32(2) + key
    return start + len(states).to_bytes(2, "big") + b"".join(states)


def operator_header(
    lists: Sequence[bytes],
    broadcasts: Sequence[bytes],
    *,
    version: int = 6,
    compressed: bool = False,
) -> bytes:
    start = i32(version) + (bytes([compressed]) if version >= 6 else b"")
    return start + b"".join(i16(len(one)) + b"".join(one) for one in (lists, broadcasts))


# Entries of the canonical format.


def canonical_key_group(states: Sequence[tuple[int, Sequence[tuple[bytes, bytes]]]]) -> bytes:
    """The states of a key group by number, with their keys, key group included, and values."""
    out = b""
    for place, (number, entries) in enumerate(states):
        out += b"" if place else number.to_bytes(2, "big")
        for index, (key, value) in enumerate(entries):
            is_last = index == len(entries) - 1
            marked = bytes([key[0] | 0x80 * is_last]) + key[1:]
            out += i32(len(marked)) + marked + i32(len(value)) + value
        following = states[place + 1][0] if place + 1 < len(states) else 0xFFFF
        out += following.to_bytes(2, "big")
    return out


# Framed Snappy. A chunk is not compressed, so its checksum is that of the data in it.


def snappy_literal(data: bytes) -> bytes:
    """A Snappy block of one literal of up to 60 bytes."""
    assert 0 < len(data) <= 60
    return bytes([len(data), len(data) - 1 << 2]) + data


def snappy_chunk(data: bytes) -> bytes:
    """A chunk that is not compressed, with the checksum of its data."""
    checksum: int = google_crc32c.value(data)
    masked = (checksum >> 15 | checksum << 17 & 0xFFFFFFFF) + 0xA282EAD8 & 0xFFFFFFFF
    size = (len(data) + 4).to_bytes(3, "little")
    return b"\1" + size + masked.to_bytes(4, "little") + data
