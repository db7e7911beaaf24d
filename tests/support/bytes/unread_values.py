"""Operators with a state that is read and one of which only the job's classes read a part.

The part is in each place, and the state in each format. Where Flink says how long the bytes are
they are all that there is to be told of the part; where it does not, nothing behind it is found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from keygroups import assign_to_key_group
from keygroups.savepoint import Operator, read_savepoint
from keygroups.types import STRING
from support.bytes import savepoint_bytes as sb
from support.bytes import sst_bytes
from support.bytes.changelog_bytes import (
    ADD,
    ADD_ELEMENT,
    ADD_OR_UPDATE_ELEMENT,
    SET,
    SET_INTERNAL,
    change,
    changelog,
    inline,
    logged,
)
from support.bytes.expected_savepoints import LONGS, STRINGS

A = assign_to_key_group("a", 128, STRING)


def kryo(java_class: str) -> bytes:
    """A snapshot of a job that registers no class with Kryo."""
    contents = sb.utf(java_class) + sb.optional_map({}) * 3
    return sb.snapshot(f"{sb.JAVA}kryo.KryoSerializerSnapshot", 2, contents)


def by_name(java_class: str) -> bytes:
    return b"\1\0" + java_class[:-1].encode() + bytes([ord(java_class[-1]) | 0x80]) + b"\1\7"


OF_A_JOB = by_name("a.B")
# The declared class, of Java, of Flink, an array, of the job; and what Kryo wrote, which nothing
# here reads. Of the first three there are others that are read.
CLASSES = {
    "java.lang.Object": OF_A_JOB,
    "java.util.List": by_name("a.List"),
    "java.util.ArrayList": b"\1\0java.util.ArrayLis\xf4\1\x82\1\1a.\xc2\0\1",
    "java.util.OptionalInt": by_name("java.util.OptionalInt"),
    "sun.misc.Any": by_name("sun.misc.Any"),
    "org.apache.flink.util.Any": by_name("org.apache.flink.util.Any"),
    "[La.B;": by_name("[La.B;"),
    "a.B": OF_A_JOB,
}
VOID = sb.NONE
TEXT, LONG = STRINGS.snapshot, LONGS.snapshot
PLACES = ("key", "value", "element", "map value", "user key", "namespace", "timer")


@dataclass(frozen=True)
class Point:
    """A state of which the job reads a part, in the bytes of each format, behind the key group."""

    place: str
    own: bytes
    key: bytes  # its snapshot
    state: bytes  # its bytes in a header
    encoded_key: bytes
    value: bytes
    heap: bytes

    @property
    def has_other(self) -> bool:
        """Whether there is a state that is read, which there is if the keys are."""
        return self.key == TEXT

    @property
    def states(self) -> list[bytes]:
        """What a header says of the states."""
        return [sb.state("read", "VALUE", LONG), self.state] if self.has_other else [self.state]

    @property
    def entries(self) -> list[list[tuple[bytes, bytes]]]:
        """The entries by state, as RocksDB has them: one of each."""
        prefix = bytes([A])
        own = [(prefix + self.encoded_key, self.value)]
        return [[(prefix + b"\2a\0", sb.i64(7))], own] if self.has_other else [own]


def canonical(point: Point, make: Callable[..., bytes] = sb.canonical) -> bytes:
    """The keyed state in one stream, each key and value with its length."""
    header = sb.keyed_header(point.key, point.states)
    content = sb.canonical_key_group([*enumerate(point.entries)])
    return make(A, [len(header)], sb.inline(header + content))


def heap(point: Point) -> bytes:
    """The same in the hashmap backend's own format, without lengths."""
    header = sb.keyed_header(point.key, point.states)
    content = sb.i32(A)
    if point.has_other:
        content += sb.i16(0) + sb.i32(1) + b"\0\2a" + sb.i64(7)
    content += sb.i16(int(point.has_other)) + sb.i32(1) + point.heap
    return sb.native(A, [len(header)], sb.inline(header + content))


def rocksdb(point: Point) -> bytes:
    """The same in files of RocksDB that are the checkpoint's own, as a native savepoint's are."""
    return _of_files(point, is_shared=False)


def incremental(point: Point) -> bytes:
    """The same in files that checkpoints share: what is deleted, and merged, in several."""
    return _of_files(point, is_shared=True)


def _of_files(point: Point, is_shared: bool) -> bytes:
    names = ["read", "own"] if point.has_other else ["own"]
    files = []
    for name, entries in zip(names, point.entries):
        kind = sst_bytes.MERGE if point.place == "element" and name == "own" else sst_bytes.VALUE
        records = [(key, 9, kind, value) for key, value in entries]
        files.append((f"{name}.sst", sb.inline(sst_bytes.sst(records, name))))
        if is_shared:  # an older file, of whose key only the deletion counts, and of another
            gone = [(key, 3, sst_bytes.DELETION, b"") for key, _ in entries]
            files.append((f"{name}-0.sst", sb.inline(sst_bytes.sst(gone, name))))
    header = sb.inline(sb.keyed_header(point.key, point.states))
    shared, private = (files, []) if is_shared else ([], files)
    return sb.rocksdb(0, 128, header, shared, private)


def materialized(point: Point) -> bytes:
    """The same as the changelog backend has it where a log is all of changes that came before."""
    return changelog([canonical(point)], [])


def logged_after(point: Point) -> bytes:
    """The same materialized, and a log that says another value of the state that is read."""
    changes = [change(SET, 0, b"\2a\0", sb.i64(7), key_group=A)] if point.has_other else []
    text = [logged(0, point.states[0])] if point.has_other else []
    return changelog([canonical(point)], [inline([*text, *changes])])


def log(point: Point) -> bytes:
    """The same as changes alone, of one element or user key each."""
    operations = {
        "element": (ADD_ELEMENT, point.own),
        "map value": (ADD_OR_UPDATE_ELEMENT, b"\2u" + point.own),
        "user key": (ADD_OR_UPDATE_ELEMENT, point.own + sb.i64(5)),
        "timer": (ADD_ELEMENT, sb.i32(1) + point.encoded_key),
    }
    return _log(point, *operations.get(point.place, (SET, point.value)))


def log_of_many(point: Point) -> bytes:
    """The same where a change is of all elements and of all user keys at once."""
    operations = {
        "element": (SET_INTERNAL, sb.i32(1) + point.own),
        "map value": (ADD, sb.i32(1) + b"\2u\0" + point.own),
        "user key": (ADD, sb.i32(1) + point.own + b"\0" + sb.i64(5)),
        "timer": (ADD_ELEMENT, sb.i32(1) + point.encoded_key),
    }
    return _log(point, *operations.get(point.place, (SET_INTERNAL, point.value)))


def _log(point: Point, operation: int, content: bytes) -> bytes:
    number = int(point.has_other)
    scopes = {"key": point.own + b"\0", "namespace": b"\2a" + point.own, "timer": b""}
    kind = 3 if point.place == "timer" else 0
    changes = [logged(0, point.states[0])] if point.has_other else []
    changes.append(logged(number, point.states[number], kind=kind))
    scope = scopes.get(point.place, b"\2a\0")
    changes.append(change(operation, number, scope, content, key_group=A))
    if point.has_other:  # It stands after what nobody reads.
        changes.append(change(SET, 0, b"\2a\0", sb.i64(7), key_group=A))
    header = sb.keyed_header(point.key, [])  # It says what the keys are.
    nothing = sb.older(A, [0], sb.inline(header))
    return changelog([nothing], [inline(changes)])


FORMATS: dict[str, Callable[[Point], bytes]] = {
    "canonical": canonical,
    "RocksDB": rocksdb,
    "RocksDB, incremental": incremental,
    "RocksDB's full format": lambda point: canonical(point, sb.older),
    "changelog, materialized": materialized,
    "changelog, and changes of another state": logged_after,
    "changelog, of one element": log,
    "changelog, of many": log_of_many,
    "hashmap": heap,
    "changelog, of hashmap": lambda point: changelog([heap(point)], []),
}
"""By name: what makes the keyed state of a point."""
UNFRAMED = {
    **dict.fromkeys(("hashmap", "changelog, of hashmap"), PLACES),
    "changelog, of one element": ("key", "user key", "namespace", "timer"),
    "changelog, of many": ("key", "element", "map value", "user key", "namespace", "timer"),
    "changelog, and changes of another state": (),
}
"""The places behind which nothing says where they end; in other formats there are none."""


def _parts(place: str, snapshot: bytes, own: bytes) -> tuple[bytes, bytes, bytes, bytes, bytes]:
    """Return the snapshot of keys, the state, an entry's key and value, and all of it on heap.

    The key is "a" unless it is what only the job reads.
    """
    key = b"\2a"
    if place == "key":
        state = sb.state("own", "VALUE", LONG)
        return snapshot, state, own + b"\0", sb.i64(5), b"\0" + own + sb.i64(5)
    if place == "value":
        state = sb.state("own", "VALUE", snapshot)
        return TEXT, state, key + b"\0", own, b"\0" + key + own
    if place == "element":
        state = sb.state("own", "LIST", sb.list_of(snapshot))
        return TEXT, state, key + b"\0", own, b"\0" + key + sb.i32(1) + own
    if place == "map value":
        state = sb.state("own", "MAP", sb.map_of(TEXT, snapshot))
        heap = b"\0" + key + sb.i32(1) + b"\2u\0" + own
        return TEXT, state, key + b"\0\2u", b"\0" + own, heap
    if place == "user key":
        state = sb.state("own", "MAP", sb.map_of(snapshot, LONG))
        heap = b"\0" + key + sb.i32(1) + own + b"\0" + sb.i64(5)
        return TEXT, state, key + b"\0" + own, b"\0" + sb.i64(5), heap
    if place == "namespace":
        state = sb.state("own", "VALUE", LONG, namespace=snapshot)
        joined = key + bytes([len(key)]) + own + bytes([len(own)])
        return TEXT, state, joined, sb.i64(5), own + key + sb.i64(5)
    state = sb.state("own", "", sb.timer_of(snapshot, VOID), backend_type=3)
    timer = sb.i64(5 ^ -(2**63)) + own + b"\0"
    return snapshot, state, timer, b"", timer


def operator_of(folder: Path, place: str, java_class: str, own: bytes, name: str) -> Operator:
    """Return an operator of a savepoint in the format of that name."""
    point = Point(place, own, *_parts(place, kryo(java_class), own))
    tasks = [sb.operator([sb.subtask(managed_keyed=FORMATS[name](point))], uid="uid")]
    return read_savepoint(sb.write(folder, tasks)).operator("uid")
