"""One value that only the job's classes read, in each place, format and verb.

Where its bytes are framed it is these bytes, and costs nothing but itself; where nothing says
where it ends the error names the operator, the state, the class and what else can be read, and
what is before it is read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import savepoint_bytes as sb
from expected_savepoints import LONGS, STRINGS

from keygroups import assign_to_key_group
from keygroups.errors import SavepointError
from keygroups.savepoint import (
    DELETE,
    Operator,
    SavepointWriter,
    convert_to_canonical,
    operator_reports,
    read_savepoint,
)
from keygroups.types import STRING

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
OWN = pytest.mark.parametrize(("java_class", "own"), CLASSES.items(), ids=CLASSES)
VOID = sb.NONE
TEXT, LONG = STRINGS.snapshot, LONGS.snapshot
PLACES = ("key", "value", "element", "map value", "user key", "namespace", "timer")


def keyed(place: str, snapshot: bytes, own: bytes) -> tuple[bytes, bytes, bytes, bytes, bytes]:
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


def operator_of(
    folder: Path, place: str, java_class: str, own: bytes, is_native: bool
) -> Operator:
    """Return an operator with a state that is read, if its keys are, and one that is not."""
    key, state, encoded, value, heap = keyed(place, kryo(java_class), own)
    has_other = key == TEXT
    states = [sb.state("read", "VALUE", LONG), state] if has_other else [state]
    header = sb.keyed_header(key, states)
    if is_native:
        content = sb.i32(A)
        if has_other:
            content += sb.i16(0) + sb.i32(1) + b"\0\2a" + sb.i64(7)
        content += sb.i16(int(has_other)) + sb.i32(1) + heap
        handle = sb.native(A, [len(header)], sb.inline(header + content))
    else:
        prefix = bytes([A])
        entries = [(0, [(prefix + b"\2a\0", sb.i64(7))])] if has_other else []
        entries.append((int(has_other), [(prefix + encoded, value)]))
        content = sb.canonical_key_group(entries)
        handle = sb.canonical(A, [len(header)], sb.inline(header + content))
    tasks = [sb.operator([sb.subtask(managed_keyed=handle)], uid="uid")]
    return read_savepoint(sb.write(folder, tasks)).operator("uid")


@OWN
@pytest.mark.parametrize("place", PLACES)
def test_framed(place: str, java_class: str, own: bytes, tmp_path: Path) -> None:
    operator = operator_of(tmp_path / "old", place, java_class, own, is_native=False)
    [entry] = operator.entries(["own"])
    names = {"element": "value", "map value": "value", "user key": "user_key", "timer": "key"}
    assert getattr(entry, names.get(place, place)) == own
    if place not in ("key", "timer"):
        assert [entry.value for entry in operator.entries(["read"])] == [7]
        assert operator.get("a", "read") == 7
        expected = {"user key": {own: 5}, "map value": {"u": own}, "namespace": {own: 5}}
        assert operator.get("a", "own") == expected.get(place, own)
    else:
        assert operator.get(own) == {"own": [5] if place == "timer" else 5}
    [size] = operator.key_sizes()
    assert size.key == ("a" if place not in ("key", "timer") else own)
    (report,) = operator_reports(read_savepoint(tmp_path / "old"))
    assert (report.unknown_keys, report.unread) == (None, ())
    convert_to_canonical(tmp_path / "old", tmp_path / "new")
    new = read_savepoint(tmp_path / "new").operator("uid")
    assert list(new.entries()) == list(operator.entries())
    [compared] = (
        read_savepoint(tmp_path / "old").compare(read_savepoint(tmp_path / "new")).operators
    )
    assert not any(state.changed or state.only_here for state in compared.states)
    check_table(operator, place, own)
    check_deleted(tmp_path, place)


def check_table(operator: Operator, place: str, own: bytes) -> None:
    """Binary has the bytes: in a column of their own where what is read is text."""
    pa = pytest.importorskip("pyarrow")
    table = operator.to_arrow("own")
    [row] = table.to_pylist()
    if place in ("value", "element", "map value"):
        name = "value" if table.schema.field("value").type == pa.binary() else "value_bytes"
        assert row[name] == own
        assert row["value"] in (own, None)
    elif place in ("key", "timer"):
        name = "key" if table.schema.field("key").type == pa.binary() else "key_bytes"
        assert row[name] == own
        assert row["key"] in (own, None)
    elif table.schema.field(place.replace(" ", "_")).type == pa.binary():
        assert row[place.replace(" ", "_")] == own


def check_deleted(folder: Path, place: str) -> None:
    def edited(name: str, function: Any) -> list[Any]:
        old = folder / "old"
        with SavepointWriter.from_existing_savepoint(old, folder / name) as writer:
            verb = "map_timers" if place == "timer" else "map_entries"
            getattr(writer.operator("uid"), verb)("own", function)
        operator = read_savepoint(folder / name).operator("uid")
        return [entry for entry in operator.entries() if entry.state == "own"]

    assert edited("deleted", lambda entry: DELETE) == []
    [kept] = edited("kept", lambda entry: [entry])
    assert kept == next(read_savepoint(folder / "old").operator("uid").entries(["own"]))


@OWN
@pytest.mark.parametrize("place", PLACES)
def test_unframed(place: str, java_class: str, own: bytes, tmp_path: Path) -> None:
    operator = operator_of(tmp_path / "old", place, java_class, own, is_native=True)
    has_other = place not in ("key", "timer")
    named = ["operator 'uid': own: ", java_class, "take a savepoint in canonical format"]
    named.append("can be read: 'read'" if has_other else "can be read: no state")

    def refused(call: Any) -> None:
        with pytest.raises(SavepointError) as caught:
            call()
        assert all(text in str(caught.value) for text in named), str(caught.value)

    refused(lambda: list(operator.entries()))
    refused(lambda: operator.get("a" if has_other else own, "own"))
    refused(operator.key_sizes)
    refused(lambda: convert_to_canonical(tmp_path / "old", tmp_path / "new"))
    refused(lambda: read_savepoint(tmp_path / "old").compare(read_savepoint(tmp_path / "old")))
    assert not (tmp_path / "new").exists()
    assert operator.key_group_bytes().weights[A] > 0
    assert operator.states[-1].name == "own"
    (report,) = operator_reports(read_savepoint(tmp_path / "old"))
    assert report.unread == ()
    assert all(text in str(report.unknown_keys) for text in named)
    if has_other:
        assert [entry.value for entry in operator.entries(["read"])] == [7]
        assert operator.get("a", "read") == 7
    pytest.importorskip("pyarrow")
    refused(lambda: operator.to_arrow("own"))
    if has_other:
        assert operator.to_arrow("read").column("value").to_pylist() == [7]


@OWN
def test_operator_state(java_class: str, own: bytes, tmp_path: Path) -> None:
    """An element of a list, of each mode, has its offset; a broadcast state that of its end."""
    snapshot = kryo(java_class)
    lists = [
        sb.meta_info(
            name, 1, {"OPERATOR_STATE_DISTRIBUTION_MODE": mode}, {"VALUE_SERIALIZER": kind}
        )
        for name, mode, kind in (
            ("split", "SPLIT_DISTRIBUTE", snapshot),
            ("union", "UNION", sb.pojo_of("a.P", {"f": snapshot})),
            ("longs", "UNION", LONG),
        )
    ]
    mode = {"OPERATOR_STATE_DISTRIBUTION_MODE": "BROADCAST"}
    broadcasts = [
        sb.meta_info(name, 2, mode, {"VALUE_SERIALIZER": value, "KEY_SERIALIZER": key})
        for name, key, value in (
            ("values", LONG, snapshot),
            ("keys", snapshot, LONG),
            ("two", LONG, snapshot),
        )
    ]
    header = sb.operator_header(lists, broadcasts)
    pojo = b"\2\0" + own
    parts = {
        "split": (0, [own, own]),
        "union": (1, [pojo]),
        "longs": (1, [sb.i64(5)]),
        "values": (2, [sb.i32(1) + sb.i64(3) + own]),
        "keys": (2, [sb.i32(1) + own + sb.i64(3)]),
        "two": (2, [sb.i32(2) + (sb.i64(3) + own) * 2]),
    }
    data, states = header, []
    for name, (code, elements) in parts.items():
        offsets = []
        for element in elements:
            offsets.append(len(data))
            data += element
        states.append((name, code, offsets))
    task = sb.subtask(managed_operator=sb.operator_state(states, sb.inline(data)))
    savepoint = read_savepoint(sb.write(tmp_path, [sb.operator([task], uid="uid")]))
    operator = savepoint.operator("uid")
    read = {entry.state: entry.elements for entry in operator.operator_state()}
    assert read == {
        "split": [own, own],
        "union": [pojo],
        "longs": [5],
        "values": {3: own},
        "keys": parts["keys"][1][0],
        "two": parts["two"][1][0],
    }
    assert [entry.elements for entry in operator.operator_state(["longs"])] == [[5]]
    compared = savepoint.compare(savepoint).operators[0]
    assert compared.operator_states
    assert not any(state.changed or state.only_here for state in compared.operator_states)
