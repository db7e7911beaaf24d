"""Entries of each format from bytes written by hand, and what is refused in them.

`savepoint_bytes.py` and `sst_bytes.py` write them, as Flink's FullSnapshotAsyncWriter,
CopyOnWriteStateTable, InternalTimersSnapshot and RocksDB's block-based tables have them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.framed_entries import framed_entries
from support.bytes.sst_bytes import (
    DELETION,
    MERGE,
    NO_CHECKSUM,
    SINGLE_DELETION,
    VALUE,
    block,
    internal_key,
    sst,
    sst_of_blocks,
    varint,
)
from support.inside.savepoints import files as files_module

from keygroups import types as kt
from keygroups.errors import KeyGroupsError, SavepointError
from keygroups.savepoint import (
    KeySize,
    ListStateDescriptor,
    Operator,
    StateEntry,
    TimerServiceDescriptor,
    TimeWindow,
    TtlValue,
    ValueStateDescriptor,
    operator_reports,
    read_savepoint,
)
from keygroups.savepoint.values import Pojo, Row
from keygroups.state_keys import BYTES, serializer_of
from keygroups.types import PYFLINK

INT, LONG, STRING = sb.simple("Int"), sb.simple("Long"), sb.simple("String")
KRYO = sb.kryo_of("a.B")
TIME_WINDOW = sb.snapshot(f"{sb.WINDOWS}TimeWindow$Serializer$TimeWindowSerializerSnapshot", 3)
COUNT = sb.state("count", "VALUE", LONG)


def operator_of(folder: Path, keyed: bytes = b"\0", **more: bytes) -> Operator:
    task = sb.subtask(managed_keyed=keyed, **more)  # type: ignore[arg-type]
    (operator,) = read_savepoint(sb.write(folder, [sb.operator([task])])).operators
    return operator


def canonical(
    folder: Path,
    states: Sequence[bytes],
    key_groups: Sequence[bytes],
    *,
    key: bytes = STRING,
    compressed: bool = False,
) -> Operator:
    """A canonical savepoint with key groups from 3 on, b"" for one without entries."""
    data = sb.keyed_header(key, states, compressed=compressed)
    offsets = []
    for content in key_groups:
        offsets.append(len(data) if content else 0)
        data += content
    return operator_of(folder, sb.canonical(3, offsets, sb.inline(data)))


def one_state(*entries: tuple[bytes, bytes]) -> bytes:
    return sb.canonical_key_group([(0, entries)])


A = b"\3\x02a\0"  # key group 3, String "a", VoidNamespace


def test_canonical(tmp_path: Path) -> None:
    """States one after another, a key group without any between two that have some."""
    three = sb.canonical_key_group(
        [(0, [(A, sb.i64(5)), (b"\3\x02b\0", sb.i64(6))]), (1, [(A, b"\x02x,\x02y")])]
    )
    five = sb.canonical_key_group([(1, [(b"\5\x01\0", b"\0")])])
    states = [COUNT, sb.state("list", "LIST", sb.list_of(STRING))]
    operator = canonical(tmp_path, states, [three, b"", five])
    assert list(operator.entries()) == [
        StateEntry("count", "VALUE", 3, 0, "a", None, None, 5, None, None, 11),
        StateEntry("count", "VALUE", 3, 0, "b", None, None, 6, None, None, 11),
        StateEntry("list", "LIST", 3, 0, "a", None, None, ["x", "y"], None, None, 8),
        StateEntry("list", "LIST", 5, 0, "", None, None, [None], None, None, 3),
    ]
    assert [entry.key_group for entry in operator.entries(["list"], [5, 127])] == [5]
    assert [entry.key for entry in operator.entries(["count"])] == ["a", "b"]
    weights = operator.key_group_bytes().weights
    assert (weights[3], weights[4], weights[5]) == (len(three), 0, len(five))


def test_key_groups_of_two_bytes(tmp_path: Path) -> None:
    """Above 128 key groups, the mark in the higher one (trap 1 of the format)."""
    data = sb.keyed_header(STRING, [COUNT])
    content = one_state((b"\x01\x05\x02a\0", sb.i64(1)), (b"\x01\x05\x02b\0", sb.i64(2)))
    keyed = sb.canonical(0x105, [len(data)], sb.inline(data + content))
    operator = sb.operator([sb.subtask(managed_keyed=keyed)], max_parallelism=300)
    (found,) = read_savepoint(sb.write(tmp_path, [operator])).operators
    assert [(entry.key_group, entry.key) for entry in found.entries()] == [(261, "a"), (261, "b")]


def test_kinds_and_times_to_live(tmp_path: Path) -> None:
    """What stands in front of each value, after a null, and between elements."""
    entries = [
        (0, [(A, sb.i64(9) + sb.i64(5))]),
        (1, [(A, sb.i64(9) + b"\x02,," + sb.i64(8) + b"\x01")]),
        (2, [(A + b"\x02k", b"\0" + sb.i64(9) + sb.i64(5)), (A + b"\x02l", b"\1" + bytes(16))]),
        (3, [(b"\3\x02a" + sb.i64(1, 2), sb.i32(5))]),
        (4, [(b"\3" + sb.i64(-(2**63) + 4) + b"\x02a\0", b"")]),
    ]
    states = [
        sb.state("v", "VALUE", sb.ttl_of(LONG)),
        sb.state("l", "LIST", sb.list_of(sb.ttl_of(STRING))),
        sb.state("m", "MAP", sb.map_of(STRING, sb.ttl_of(LONG))),
        sb.state("r", "REDUCING", INT, namespace=TIME_WINDOW),
        sb.state("t", "", sb.timer_of(STRING, sb.NONE), backend_type=3),
    ]
    found = list(canonical(tmp_path, states, [sb.canonical_key_group(entries)]).entries())
    assert [(one.state, one.user_key, one.value, one.last_access) for one in found] == [
        ("v", None, 5, 9),
        ("l", None, [TtlValue(9, ","), TtlValue(8, "")], None),
        ("m", "k", 5, 9),
        ("m", "l", None, None),
        ("r", None, 5, None),
        ("t", None, None, None),
    ]
    assert found[4].namespace == TimeWindow(1, 2)
    assert (found[5].timestamp, found[5].key) == (4, "a")


def test_what_only_the_job_reads(tmp_path: Path) -> None:
    """Bytes, with what is framed around them: a value, a key, all of a timer."""
    pojo = sb.pojo_of("a.P", {"n": INT})
    of_subclass = b"\x04" + sb.utf("a.Q") + b"whatever"
    entries = [
        (0, [(A, b"anything")]),
        (1, [(A, sb.i64(9) + b"any,thing")]),
        (2, [(A, of_subclass), (A, b"\2\0" + sb.i32(7))]),
        (3, [(A, of_subclass)]),
        (4, [(A + b"any", b"\0thing")]),
    ]
    states = [
        sb.state("v", "VALUE", KRYO),
        sb.state("l", "LIST", sb.list_of(sb.ttl_of(KRYO))),
        sb.state("p", "VALUE", pojo),
        sb.state("pl", "LIST", sb.list_of(pojo)),
        sb.state("m", "MAP", sb.map_of(KRYO, KRYO)),
    ]
    found = list(canonical(tmp_path, states, [sb.canonical_key_group(entries)]).entries())
    assert [(one.key, one.user_key, one.value, one.last_access) for one in found] == [
        ("a", None, b"anything", None),
        ("a", None, sb.i64(9) + b"any,thing", None),
        ("a", None, of_subclass, None),
        ("a", None, Pojo("a.P", {"n": 7}), None),
        ("a", None, of_subclass, None),
        ("a", b"any", b"thing", None),
    ]


def test_keys_that_only_the_job_reads(tmp_path: Path) -> None:
    """What is behind a key is taken off, where it has a fixed size; else no key is told."""
    time = sb.i64(-(2**63) + 4)
    entries = [
        (0, [(b"\3any\0", sb.i64(5))]),
        (1, [(b"\3" + time + b"any\0", b"")]),
        (2, [(b"\3any" + sb.i64(1, 2), sb.i64(5))]),
        (3, [(b"\3any\0" + sb.i32(7), b"\0" + sb.i64(5))]),
        (4, [(b"\3any\3\2a\2", sb.i64(5))]),
        (5, [(b"\3any\0\2a", b"\0" + sb.i64(5))]),
        (6, [(b"\3" + time + b"any\2a", b"")]),
    ]
    states = [
        COUNT,
        sb.state("timers", "", sb.timer_of(KRYO, sb.NONE), backend_type=3),
        sb.state("windows", "VALUE", LONG, namespace=TIME_WINDOW),
        sb.state("map of ints", "MAP", sb.map_of(INT, LONG)),
        sb.state("named", "VALUE", LONG, namespace=STRING),
        sb.state("map of strings", "MAP", sb.map_of(STRING, LONG)),
        sb.state("named timers", "", sb.timer_of(KRYO, STRING), backend_type=3),
    ]
    operator = canonical(tmp_path, states, [sb.canonical_key_group(entries)], key=KRYO)
    parts = ("key", "namespace", "user_key", "timestamp", "key_bytes")
    assert [tuple(getattr(one, part) for part in parts) for one in operator.entries()] == [
        (b"any", None, None, None, None),
        (b"any", None, None, 4, None),
        (b"any", TimeWindow(1, 2), None, None, None),
        (b"any", None, 7, None, None),
        (b"any", "a", None, None, None),
        (None, None, None, None, b"any\0\2a"),
        (None, None, None, 4, b"any\2a"),
    ]
    with pytest.raises(
        SavepointError, match=r"of map of strings: MAP <KRYO\(a\.B\), STRING, LONG>"
    ):
        operator.key_sizes()
    assert [(one.bytes, one.value) for one in operator.entries(["map of strings"])] == [(15, 5)]
    known = canonical(
        tmp_path / "known", states[:5], [sb.canonical_key_group(entries[:5])], key=KRYO
    )
    assert known.key_sizes() == [KeySize(b"any", 3, 0, 5, 12 + 12 + 27 + 17 + 15)]


BAD_CANONICAL = [
    (b"\0\7" + one_state((A, sb.i64(5)))[2:], "state 7, of 1"),
    (one_state((A, sb.i64(5)))[:-2], "the bytes end too early"),
    (one_state((A, sb.i64(5)))[:9], "the bytes end too early"),
    (b"\0\0" + sb.i32(-1) + bytes(20), "a key of -1 bytes"),
    (b"\0\0" + sb.i32(1) + b"\3" + sb.i32(0) + b"\xff\xff", "a key of 1 bytes, a value of 0"),
    (b"\0\0" + sb.i32(4) + A + sb.i32(-3) + bytes(9), "a value of -3"),
    (one_state((b"\4" + A[1:], sb.i64(5))), "a key of key group 4 in key group 3"),
    (one_state((A, b"abc")), "no entry of count: VALUE <STRING, LONG>"),
    (one_state((A, sb.i64(5) + b"a")), "a value of 8 bytes in 9"),
    (one_state((A + b"a", sb.i64(5))), "a key of 3 bytes in 4"),
    (b"", "the bytes end too early"),
]


@pytest.mark.parametrize("number", range(len(BAD_CANONICAL)))
def test_damaged_canonical(number: int, tmp_path: Path) -> None:
    content, message = BAD_CANONICAL[number]
    data = sb.keyed_header(STRING, [COUNT])
    keyed = sb.canonical(3, [len(data)], sb.inline(data + content))
    with pytest.raises(SavepointError, match=rf"_metadata \(inline\), offset \d+: .*{message}"):
        list(operator_of(tmp_path, keyed).entries())


@pytest.mark.parametrize(
    ("kind", "value", "content", "message"),
    [
        ("LIST", sb.list_of(STRING), b"\x02a;\x02b", "not separated by commas"),
        ("LIST", sb.list_of(STRING), b"\x02a,", "index out of range"),
        (
            "LIST",
            sb.list_of(sb.simple("Short")),
            b"\0",
            "requires a buffer of at least 2 bytes",
        ),  # beyond its end
        ("MAP", sb.map_of(STRING, INT), b"\0", "no entry of s: MAP"),
        ("VALUE", STRING, b"\x05a", "no entry of s"),
    ],
)
def test_damaged_values(
    kind: str, value: bytes, content: bytes, message: str, tmp_path: Path
) -> None:
    key = A + b"\x02k" if kind == "MAP" else A
    operator = canonical(tmp_path, [sb.state("s", kind, value)], [one_state((key, content))])
    with pytest.raises(SavepointError, match=message):
        list(operator.entries())


def test_damaged_timer(tmp_path: Path) -> None:
    timers = sb.state("t", "", sb.timer_of(STRING, sb.NONE), backend_type=3)
    key = b"\3" + sb.i64(0) + b"\x02a\0"
    for entry in ((key + b"x", b""), (key, b"x")):
        operator = canonical(tmp_path, [timers], [one_state(entry)])
        with pytest.raises(SavepointError, match="a timer of 11 bytes in"):
            list(operator.entries())


def test_what_is_larger_than_a_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is held at once, the entries are the same."""
    words = [f"word {number}" * number for number in range(30)]
    entries = [
        (b"\3" + varint(len(word) + 1) + word.encode() + b"\0", sb.i64(len(word)))
        for word in words
    ]
    data = sb.keyed_header(STRING, [COUNT])
    path = tmp_path / "s" / "keyed"
    path.parent.mkdir()
    path.write_bytes(data + one_state(*entries))
    keyed = sb.canonical(3, [len(data)], sb.relative("keyed", path.stat().st_size))
    operator = operator_of(tmp_path / "s", keyed)
    monkeypatch.setattr(files_module, "CHUNK", 16)
    assert [(entry.key, entry.value) for entry in operator.entries()] == [
        (word, len(word)) for word in words
    ]


# The hashmap backend's own format


def native(
    folder: Path,
    states: Sequence[bytes],
    content: bytes,
    *,
    key: bytes = STRING,
    older: bool = False,
) -> Operator:
    data = sb.keyed_header(key, states)
    write = sb.older if older else sb.native
    return operator_of(folder, write(3, [len(data)], sb.inline(data + content)))


TWO = sb.i32(3) + b"\0\0" + sb.i32(1) + b"\0\x02a" + sb.i64(5) + b"\0\1" + sb.i32(0)


@pytest.mark.parametrize("older", [False, True])
def test_native(older: bool, tmp_path: Path) -> None:
    """Namespace, key, value; a count for each state."""
    operator = native(tmp_path, [COUNT, sb.state("b", "VALUE", INT)], TWO, older=older)
    (entry,) = operator.entries()
    assert entry == StateEntry("count", "VALUE", 3, 0, "a", None, None, 5, None, None, 11)
    assert operator.key_group_bytes().weights[3] == 11


def test_older_handle_of_the_canonical_format(tmp_path: Path) -> None:
    """Handle 3 may hold either; the native format repeats the number of the key group."""
    content = one_state((A, sb.i64(5)))
    (entry,) = native(tmp_path, [COUNT], content, older=True).entries()
    assert entry.value == 5


def test_native_kinds(tmp_path: Path) -> None:
    start = b"\0\x02a"
    contents = [
        start + sb.i64(9) + sb.i64(5),
        start + sb.i32(2) + sb.i64(9) + b"\x02x" + sb.i64(8) + b"\x01",
        start + sb.i32(2) + b"\x02k\0" + sb.i64(9) + sb.i64(5) + b"\x02l\1",
        sb.i64(-(2**63) + 4) + b"\x02a\0",
    ]
    states = [
        sb.state("v", "VALUE", sb.ttl_of(LONG)),
        sb.state("l", "LIST", sb.list_of(sb.ttl_of(STRING))),
        sb.state("m", "MAP", sb.map_of(STRING, sb.ttl_of(LONG))),
        sb.state("t", "", sb.timer_of(STRING, sb.NONE), backend_type=3),
    ]
    content = sb.i32(3) + b"".join(
        number.to_bytes(2, "big") + sb.i32(1) + one for number, one in enumerate(contents)
    )
    operator = native(tmp_path, states, content)
    found = list(operator.entries())
    assert [(one.state, one.key, one.user_key, one.value, one.last_access) for one in found] == [
        ("v", "a", None, 5, 9),
        ("l", "a", None, [TtlValue(9, "x"), TtlValue(8, "")], None),
        ("m", "a", "k", 5, 9),
        ("m", "a", "l", None, None),
        ("t", "a", None, None, None),
    ]
    assert found[-1].timestamp == 4
    assert sum(one.bytes for one in found) == sum(map(len, contents))
    assert [one.state for one in operator.entries(["m"])] == ["m", "m"]


@pytest.mark.parametrize(
    ("state", "key"),
    [
        (sb.state("k", "VALUE", KRYO), STRING),
        (sb.state("k", "MAP", sb.map_of(KRYO, INT)), STRING),
        (sb.state("k", "LIST", sb.list_of(KRYO)), STRING),
        (sb.state("k", "VALUE", INT), KRYO),
        (sb.state("k", "VALUE", INT, namespace=KRYO), STRING),
        (sb.state("k", "", sb.timer_of(STRING, KRYO), backend_type=3), STRING),
    ],
)
def test_native_that_only_the_job_reads(state: bytes, key: bytes, tmp_path: Path) -> None:
    """Nothing says where such a value ends; what comes before it is read, and empty ones are."""
    states = [COUNT, state]
    before = b"\0\0" + sb.i32(0)
    operator = native(
        tmp_path, states, sb.i32(3) + before + b"\0\1" + sb.i32(1) + bytes(9), key=key
    )
    with pytest.raises(SavepointError, match="take a savepoint in canonical format"):
        list(operator.entries())
    if key is STRING:
        assert list(operator.entries(["count"])) == []
    empty = native(tmp_path, states, sb.i32(3) + before + b"\0\1" + sb.i32(0), key=key)
    assert list(empty.entries()) == []


BAD_NATIVE = [
    (sb.i32(3) + b"\0\7", "state 7, of 1"),
    (sb.i32(3) + b"\0\0" + sb.i32(-1), "a count of -1"),
    (sb.i32(3) + b"\0\0" + sb.i32(2**31 - 1), "the bytes end too early"),
    (sb.i32(3) + b"\0\0" + sb.i32(1) + b"\0\xff\xff\xff\xff\xff\xff", ".*more than 32 bits"),
    (sb.i32(3), "the bytes end too early"),
]


@pytest.mark.parametrize("number", range(len(BAD_NATIVE)))
def test_damaged_native(number: int, tmp_path: Path) -> None:
    content, message = BAD_NATIVE[number]
    with pytest.raises(SavepointError, match=rf"\(inline\), offset \d+: {message}"):
        list(native(tmp_path, [COUNT], content).entries())


# Timers on the heap, as raw keyed state


def services(*timers: bytes, key: bytes = STRING, name: str = "user-timers") -> bytes:
    start = b"\xf1\xcd\x85\x9f" + sb.i32(2, 1) + sb.utf(name) + key + sb.NONE
    return start + sb.i32(len(timers)) + b"".join(timers) + sb.i32(0)


def raw(folder: Path, *key_groups: bytes) -> Operator:
    data, offsets = b"", []
    for content in key_groups:
        offsets.append(len(data) if content else -1)
        data += content
    return operator_of(folder, raw_keyed=sb.native(3, offsets, sb.inline(data)))


def test_raw_timers(tmp_path: Path) -> None:
    """A key group that wrote nothing has offset -1; times are not flipped here."""
    operator = raw(tmp_path, services(b"\x02a\0" + sb.i64(7)), b"", services())
    event, processing = operator.states
    assert str(event) == "_timer_state/event_user-timers: timers <STRING>"
    assert processing.name == "_timer_state/processing_user-timers"
    (entry,) = operator.entries()
    assert entry == StateEntry(event.name, event.kind, 3, 0, "a", None, None, None, None, 7, 11)
    assert list(operator.entries([processing.name])) == []
    assert list(operator.entries(None, [5])) == []
    assert sum(operator.key_group_bytes().weights) == 11


def test_raw_timers_as_in_a_savepoint(tmp_path: Path) -> None:
    """Their time is first there, with its sign flipped; without timers no key is told."""
    operator = raw(tmp_path, services(b"\x02a\0" + sb.i64(7), b"\x02b\0" + sb.i64(-(2**63))))
    (task,) = operator.tasks()
    name = "_timer_state/event_user-timers"
    assert list(framed_entries(task)) == [
        (name, 3, "a", b"\x80" + bytes(6) + b"\7\x02a\0", b""),
        (name, 3, "b", bytes(8) + b"\x02b\0", b""),
    ]
    (task,) = raw(tmp_path / "none", b"").tasks()
    header = task.format.headers()[0]
    assert (header.key_bytes, header.states, header.state_bytes) == (b"", (), ())
    assert (header.is_compressed, str(header.key_serializer)) == (False, "UNKNOWN")


def test_raw_timers_of_pyflink(tmp_path: Path) -> None:
    """Their keys are Rows of one field in bytes, and what the job declares as it has them."""
    key = serializer_of(PYFLINK(kt.LONG)).snapshot_bytes()[4:]
    row = b"\0" + sb.i64(7)  # RowSerializer: a mask of the kind and of nulls, the field
    operator = raw(tmp_path, services(row + b"\0" + sb.i64(5), key=key))
    assert [entry.key for entry in operator.entries()] == [Row((7,))]
    (entry,) = operator.as_pyflink(kt.LONG, [TimerServiceDescriptor()]).entries()
    assert (entry.key, entry.timestamp) == (7, 5)


def test_native_state_of_pyflink_that_only_the_job_reads(tmp_path: Path) -> None:
    """A namespace of the job's classes hides where a value begins, declared or not."""
    key = serializer_of(PYFLINK(kt.LONG)).snapshot_bytes()[4:]
    value = sb.list_of(BYTES.snapshot_bytes()[4:])
    state = sb.state("python-state-count", "LIST", value, namespace=KRYO)
    plain = native(tmp_path, [state], sb.i32(3) + b"\0\0" + sb.i32(1) + bytes(9), key=key)
    for descriptor in (ValueStateDescriptor, ListStateDescriptor):
        operator = plain.as_pyflink(kt.LONG, [descriptor("count", kt.LONG)])
        with pytest.raises(SavepointError, match="take a savepoint in canonical format"):
            list(operator.entries())


def test_raw_timers_behind_other_bytes(tmp_path: Path) -> None:
    """What an empty key group takes counts from where it starts."""
    stream = sb.inline(bytes(5) + services(b"\x02a\0" + sb.i64(7)))
    operator = operator_of(tmp_path, raw_keyed=sb.native(3, [5], stream))
    assert [entry.timestamp for entry in operator.entries()] == [7]
    assert operator.key_group_bytes().weights[3] == 11


def several(*of_services: bytes) -> bytes:
    """The timer services of a key group, each of which is there as the only one."""
    return (
        of_services[0][:8] + sb.i32(len(of_services)) + b"".join(item[12:] for item in of_services)
    )


OF_JOB = b"\1\0a.\xc2\1\7" + b"\0" + sb.i64(7)  # Kryo's mark of a name, a.B, an object


def test_raw_timers_of_the_job(tmp_path: Path) -> None:
    """They hide only themselves, and the timers behind: of one service, and of one key group."""
    kept, own = services(b"\x02a\0" + sb.i64(7), name="kept"), services(OF_JOB, key=KRYO)
    behind = services(b"\x02a\0" + sb.i64(9), name="behind")
    header = sb.keyed_header(KRYO, [COUNT])
    entries = sb.canonical_key_group([(0, [(bytes([4]) + OF_JOB[:-9] + b"\0", sb.i64(5))])])
    managed = sb.canonical(
        4,
        [len(header)],
        sb.inline(header + entries),
    )
    key_groups = [several(kept, services(key=KRYO), behind), several(kept, own, behind)]
    offsets = [0, len(key_groups[0])]
    timers = sb.native(3, offsets, sb.inline(b"".join(key_groups)))
    operator = operator_of(tmp_path, managed, raw_keyed=timers)
    names = [state.name for state in operator.states]
    assert names == [
        "count",
        *(f"_timer_state/{time}_kept" for time in ("event", "processing")),
        *(f"_timer_state/{time}_user-timers" for time in ("event", "processing")),
        *(f"_timer_state/{time}_behind" for time in ("event", "processing")),
    ]
    assert [entry.value for entry in operator.entries(["count"])] == [5]
    assert [entry.key for entry in operator.entries([names[1]])] == ["a", "a"]
    assert [entry.timestamp for entry in operator.entries([names[5]], [3])] == [9]
    weights = operator.key_group_bytes().weights
    assert weights[3:5] == (11 + 11, 11 + len(OF_JOB) + 11 + len(entries))
    message = (
        r"user-timers: timers <KRYO\(a\.B\)> takes the job's own classes to read .*: take a "
        r"savepoint in canonical format, .*; all but timers can be read, and of timers: "
        r"'_timer_state/event_kept', '_timer_state/processing_kept'$"
    )
    for states in (None, names[3:4], names[4:5], names[5:6]):
        with pytest.raises(SavepointError, match=message):
            list(operator.entries(states))
    (report,) = operator_reports(read_savepoint(tmp_path))
    assert [state.name for state in report.states] == names
    assert report.unread == ()
    assert report.unknown_keys is not None


def test_no_raw_timers(tmp_path: Path) -> None:
    operator = raw(tmp_path, b"", b"")
    assert operator.states == ()
    assert sum(operator.key_group_bytes().weights) == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\0" * 12, "mark of raw timers 0 is not known"),
        (services()[:4] + sb.i32(1) + services()[8:], "version of raw timers 1 is not known"),
        (services(b"\x02a\0" + sb.i64(7), key=KRYO), "takes the job's own classes to read"),
        (services(b"\x63a\0" + sb.i64(7)), "no timer of _timer_state/event_user-timers"),
        # A timer has 8 bytes and more: so many fit, and end too early, or do not fit.
        (services()[:-8] + sb.i32(2) + bytes(16), "no timer of _timer_state/event_user-timers"),
        (services()[:-8] + sb.i32(3) + bytes(21), "a count of 3 cannot be, with 21 bytes left"),
    ],
)
def test_damaged_raw_timers(content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(SavepointError, match=message):
        list(raw(tmp_path, content).entries())


# RocksDB's files


def rocksdb(
    folder: Path,
    tables: Sequence[bytes],
    states: Sequence[bytes] = (COUNT,),
    count: int = 10,
    raw_keyed: bytes = b"\0",
) -> Operator:
    folder.mkdir(exist_ok=True)
    shared = []
    for number, table in enumerate(tables):
        (folder / f"{number}.sst").write_bytes(table)
        shared.append((f"{number}.sst", sb.relative(f"{number}.sst", len(table))))
    meta = sb.inline(sb.keyed_header(STRING, states))
    private = [("CURRENT", sb.inline(b"MANIFEST-1\n")), ("OPTIONS-1", sb.relative("gone", 5))]
    keyed = sb.rocksdb(3, count, meta, shared, private)
    return operator_of(folder, keyed, raw_keyed=raw_keyed)


def key(letter: str, key_group: int = 3) -> bytes:
    return bytes([key_group, 2]) + letter.encode() + b"\0"


def longs(operator: Operator) -> dict[tuple[int, Any], Any]:
    return {(entry.key_group, entry.key): entry.value for entry in operator.entries()}


RECORDS = [(key(letter), 5, VALUE, sb.i64(number)) for number, letter in enumerate("abcdefgh")]


@pytest.mark.parametrize("delta_index", [True, False])
@pytest.mark.parametrize("user_key_index", [True, False])
@pytest.mark.parametrize("version", [2, 5])
def test_sst(delta_index: bool, user_key_index: bool, version: int, tmp_path: Path) -> None:
    """Blocks of three, found by an index with whole handles or with differences."""
    table = sst(
        RECORDS,
        "count",
        has_deltas=delta_index,
        user_key_index=user_key_index,
        version=version,
    )
    operator = rocksdb(tmp_path, [table])
    expected = {(3, letter): number for number, letter in enumerate("abcdefgh")}
    assert longs(operator) == expected
    assert operator.subtasks[0].bytes == len(table)
    assert operator.key_group_bytes().weights[3] == 8 * 11
    assert list(operator.entries(None, [4])) == []


def test_newest_wins(tmp_path: Path) -> None:
    """Over all files: values, deletions of both kinds, a deletion that a value follows."""
    old = [
        (key("a"), 1, VALUE, sb.i64(1)),
        (key("b"), 2, VALUE, sb.i64(2)),
        (key("c"), 3, VALUE, sb.i64(3)),
        (key("d"), 4, VALUE, sb.i64(4)),
        (key("e"), 5, DELETION, b""),
    ]
    new = [
        (key("a"), 11, VALUE, sb.i64(11)),
        (key("b"), 12, DELETION, b""),
        (key("c"), 13, SINGLE_DELETION, b""),
        (key("e"), 14, VALUE, sb.i64(15)),
        (key("e"), 13, DELETION, b""),
    ]
    operator = rocksdb(tmp_path, [sst(old, "count"), sst(new, "count")])
    assert longs(operator) == {(3, "a"): 11, (3, "d"): 4, (3, "e"): 15}


def test_merges(tmp_path: Path) -> None:
    """The operands of a ListState from the oldest on, after the value that they were added to."""
    states = [sb.state("list", "LIST", sb.list_of(STRING))]
    old = [
        (key("a"), 1, VALUE, b"\x02x"),
        (key("b"), 2, DELETION, b""),
        (key("c"), 1, MERGE, b"\x02p"),
    ]
    new = [
        (key("a"), 7, MERGE, b"\x02z"),
        (key("a"), 6, MERGE, b"\x02y"),
        (key("b"), 8, MERGE, b"\x02w"),
        (key("c"), 9, DELETION, b""),
    ]
    operator = rocksdb(tmp_path, [sst(new, "list"), sst(old, "list")], states)
    assert longs(operator) == {(3, "a"): ["x", "y", "z"], (3, "b"): ["w"]}


def test_range_deletions(tmp_path: Path) -> None:
    """They hide what is older, in any file, up to and without their end."""
    records = [(key("a", group), 5, VALUE, sb.i64(group)) for group in range(3, 8)]
    deletions = [(internal_key(b"\4", 5, 15), b"\6"), (internal_key(b"\6", 6, 15), b"\7")]
    newer = [(key("b", 6), 9, VALUE, sb.i64(9))]
    tables = [sst(records, "count"), sst(newer, "count", deletions=deletions)]
    found = longs(rocksdb(tmp_path, tables))
    # The first has the number of the records themselves, so it does not hide them.
    assert found == {(3, "a"): 3, (4, "a"): 4, (5, "a"): 5, (7, "a"): 7, (6, "b"): 9}


def test_long_keys_and_values(tmp_path: Path) -> None:
    """Lengths of more than seven bits in a block; two families; records of other key groups."""
    text = "x" * 300
    states = [COUNT, sb.state("text", "VALUE", STRING)]
    one = key("a")[:1] + varint(301) + text.encode() + b"\0"
    tables = [
        sst([(key("a", 2), 1, VALUE, sb.i64(1)), (one, 1, VALUE, sb.i64(2))], "count"),
        sst([(one, 1, VALUE, varint(301) + text.encode()), (b"\x40", 1, VALUE, b"")], "text"),
    ]
    operator = rocksdb(tmp_path, tables, states)
    assert [(entry.state, entry.key, entry.value) for entry in operator.entries()] == [
        ("count", text, 2),
        ("text", text, text),
    ]


def test_key_groups_one_by_one(tmp_path: Path) -> None:
    """Some that follow one another and some that do not; and one that has raw state alone."""
    records = [(key("a", group), 5, VALUE, sb.i64(group)) for group in range(3, 13)]
    raw_keyed = sb.native(50, [0], sb.inline(services(b"\x02a\0" + sb.i64(7))))
    operator = rocksdb(tmp_path, [sst(records, "count")], raw_keyed=raw_keyed)
    for groups in ([3], [3, 4, 5], [12, 3, 7, 8], [12, 13, 2], [50], [4, 50], range(128)):
        found = [entry.key_group for entry in operator.entries(None, groups)]
        assert found == [group for group in sorted(groups) if 3 <= group < 13 or group == 50]


def test_no_records(tmp_path: Path) -> None:
    """No file at all, and one with nothing but a deletion."""
    assert longs(rocksdb(tmp_path / "a", [])) == {}
    only = sst([], "count", deletions=[(internal_key(b"\0", 1, 15), b"\7")])
    assert longs(rocksdb(tmp_path / "b", [only])) == {}


def changed(table: bytes, pos: int, value: bytes) -> bytes:
    pos = pos % len(table)
    return table[:pos] + value + table[pos + len(value) :]


GOOD = sst(RECORDS, "count", checksum=NO_CHECKSUM)  # so that what is damaged is read at all
GLOBAL = {"rocksdb.external_sst_file.global_seqno": struct.pack("<Q", 7)}
BAD_TABLES = [
    (bytes(52), "this is no SST file$"),
    (bytes(53), "this is no SST file of a known version"),
    (changed(GOOD, -8, bytes(8)), "this is no SST file of a known version"),
    (sst(RECORDS, "count", version=6), "this is no SST file of a known version"),
    (changed(GOOD, -12, bytes(4)), "this is no SST file of a known version"),
    (sst(RECORDS, "count", compression=3), "blocks compressed with bzip2 are not read here"),
    (sst(RECORDS, "count", compression=99), "blocks compressed with 99 are not read here"),
    (sst(RECORDS, "count", hashed=True), "blocks with a hash index are not read here"),
    (
        sst(
            RECORDS,
            "count",
            properties={"rocksdb.block.based.table.index.type": struct.pack("<I", 1)},
        ),
        "an SST file with an index of type 1 is not read here",
    ),
    (sst(RECORDS, "count", properties=GLOBAL), "an ingested SST file, with a global number"),
    (sst(RECORDS, "other"), "'other' is no state"),
    (changed(GOOD, -52, b"\xff" * 11), "the place of a block is damaged"),
    (changed(GOOD, 0, b"\x05"), "the block is damaged: an entry ends beyond its block"),
    (changed(GOOD, 2, b"\x7f"), "the block is damaged: an entry ends beyond its block"),
    (changed(GOOD, 0, b"\xff" * 12), "the block is damaged"),
    (sst([(key("a"), 1, 17, b"")], "count"), "records of kind 17 are not read here"),
    (sst([(key("a"), 1, VALUE, b"123")], "count"), r"the SST files of count.*is no entry"),
]


@pytest.mark.parametrize("number", range(len(BAD_TABLES)))
def test_refused_tables(number: int, tmp_path: Path) -> None:
    table, message = BAD_TABLES[number]
    operator = rocksdb(tmp_path, [table])
    with pytest.raises(SavepointError, match=f"{tmp_path.name}.*{message}"):
        list(operator.entries(None, range(128)))


def test_blocks_of_no_sense(tmp_path: Path) -> None:
    """Too small, of more restarts than fit, with an index that is cut."""
    last = internal_key(key("a"), 5, VALUE)
    content = block([(last, sb.i64(7))])
    for damaged, message in (
        (sst_of_blocks([(last, content[:-4] + b"\x09\0\0\0")], "count"), "9 restarts in a block"),
        (sst_of_blocks([(last, b"\0\0\0")], "count"), "a block of 3 bytes"),
        (
            sst_of_blocks([(last, content)], "count", index=b"\0\x7f" + bytes(9)),
            "the index is damaged",
        ),
        (
            sst_of_blocks([(last, content)], "count", index=b"\0\x04" + bytes(9)),
            "the index is damaged",
        ),
    ):
        with pytest.raises(SavepointError, match=message):
            list(rocksdb(tmp_path, [damaged]).entries())


def test_keys_too_short_for_a_number(tmp_path: Path) -> None:
    """A key of data or of a range deletion has eight bytes after it."""
    records = [(key("a"), 5, VALUE, sb.i64(7))]
    table = sst(records, "count", deletions=[(b"\0", b"\x7f")])
    with pytest.raises(SavepointError, match="a range deletion with a key of 1 bytes"):
        list(rocksdb(tmp_path / "a", [table]).entries())
    table = sst(records, "count", checksum=NO_CHECKSUM)
    damaged = table.replace(b"\0\x0c\x08" + key("a"), b"\0\x07\x0d" + key("a"), 1)
    with pytest.raises(SavepointError, match="a key of 7 bytes"):
        list(rocksdb(tmp_path / "b", [damaged]).entries())


# Operator state


def operator_state(
    folder: Path, header: bytes, states: Sequence[tuple[str, int, Sequence[int]]], content: bytes
) -> Operator:
    moved = [(name, mode, [len(header) + at for at in offsets]) for name, mode, offsets in states]
    return operator_of(
        folder, managed_operator=sb.operator_state(moved, sb.inline(header + content))
    )


def listed(name: str, value: bytes) -> bytes:
    return sb.meta_info(name, 1, {}, {"VALUE_SERIALIZER": value})


def broadcast(name: str, key: bytes, value: bytes) -> bytes:
    return sb.meta_info(name, 2, {}, {"KEY_SERIALIZER": key, "VALUE_SERIALIZER": value})


@pytest.mark.parametrize("version", [5, 6])
def test_operator_state(version: int, tmp_path: Path) -> None:
    header = sb.operator_header(
        [listed("offsets", LONG), listed("own", KRYO)],
        [broadcast("rules", STRING, INT), broadcast("doubles", sb.simple("Double"), INT)],
        version=version,
    )
    rules = sb.i32(1) + b"\x02k" + sb.i32(5)
    doubles = sb.i32(2) + bytes(8) + sb.i32(1) + b"\x80" + bytes(7) + sb.i32(2)
    content = sb.i64(1, 2) + b"any" + rules + doubles
    states = [
        ("offsets", 0, [0, 8]),
        ("own", 1, [16]),
        ("rules", 2, [19]),
        ("doubles", 2, [29]),
        ("empty", 0, []),
        ("none", 2, []),
    ]
    operator = operator_state(tmp_path, header, states, content)
    assert [(one.state, one.mode, one.elements) for one in operator.operator_state()] == [
        ("offsets", "SPLIT_DISTRIBUTE", [1, 2]),
        ("own", "UNION", [b"any"]),
        ("rules", "BROADCAST", {"k": 5}),
        ("doubles", "BROADCAST", [(0.0, 1), (-0.0, 2)]),
        ("empty", "SPLIT_DISTRIBUTE", []),
        ("none", "BROADCAST", {}),
    ]


def test_raw_operator_state(tmp_path: Path) -> None:
    """Bytes, with the offsets where they start; of a broadcast state too."""
    handle = sb.operator_state([("raw", 0, [0, 2]), ("b", 2, [3])], sb.inline(b"abcde"))
    found = operator_of(tmp_path, raw_operator=handle).operator_state()
    assert [one.elements for one in found] == [[b"ab", b"c"], b"de"]


@pytest.mark.parametrize(
    ("header", "content", "message"),
    [
        (sb.operator_header([], [], version=4), b"", "version of operator state 4 is not known"),
        (sb.operator_header([sb.meta_info("s", 1, {}, {})], []), b"", "'s' has no serializer"),
        (
            sb.operator_header([], [sb.meta_info("s", 2, {}, {"VALUE_SERIALIZER": INT})]),
            b"",
            "'s' has no serializer of keys",
        ),
        (sb.operator_header([listed("s", INT)], []), b"abc", "no INT: "),
        (sb.operator_header([listed("s", INT)], []), b"abcde", "a INT of 4 bytes in 5"),
        (sb.operator_header([listed("s", STRING)], []), b"\xff" * 7, "more than 32 bits"),
    ],
)
def test_damaged_operator_state(
    header: bytes, content: bytes, message: str, tmp_path: Path
) -> None:
    operator = operator_state(tmp_path, header, [("s", 0, [0])], content)
    with pytest.raises(SavepointError, match=rf"\(inline\), offset \d+: .*{message}"):
        list(operator.operator_state())


# Snappy


def test_snappy(tmp_path: Path) -> None:
    """A framed stream, as Google's format description has it, made by cramjam."""
    cramjam = pytest.importorskip("cramjam")
    content = bytes(cramjam.snappy.compress(one_state((A, sb.i64(5)))))
    operator = canonical(tmp_path, [COUNT], [content], compressed=True)
    assert longs(operator) == {(3, "a"): 5}
    table = sst(RECORDS, "count")
    assert longs(rocksdb(tmp_path / "r", [table]))[3, "h"] == 7


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        (b"\x02\1\0\0a", "this is no chunk of Snappy"),
        (b"\0\xff\0\0a", "this is no chunk of Snappy"),
        (b"\0\x02\0\0a", "this is no chunk of Snappy"),
        (b"\0\x05", "this is no chunk of Snappy"),
        (b"\0\x06\0\0" + bytes(4) + b"\1\0", r"offset \d+: "),
        (b"\xff\6\0\0sNaPpY", "after decompression 0: the bytes end too early"),
    ],
)
def test_damaged_snappy(chunk: bytes, message: str, tmp_path: Path) -> None:
    pytest.importorskip("cramjam")
    operator = canonical(tmp_path, [COUNT], [chunk], compressed=True)
    with pytest.raises(SavepointError, match=message):
        list(operator.entries())


def test_bytes_beyond_an_empty_key_group_that_is_compressed(tmp_path: Path) -> None:
    """Each state is a stream, of which six bytes are as they are: Snappy makes them no shorter."""
    states = [COUNT, sb.state("b", "VALUE", INT)]
    entry = b"\0\x02a" + sb.i64(5)
    of_three = [b"\0\0" + sb.i32(1) + entry, b"\0\1" + sb.i32(0)]
    of_four = [b"\0\0" + sb.i32(0), b"\0\1" + sb.i32(0)]
    three, four = (
        sb.i32(number) + b"".join(b"\xff\6\0\0sNaPpY" + sb.snappy_chunk(data) for data in written)
        for number, written in ((3, of_three), (4, of_four))
    )
    header = sb.keyed_header(STRING, states, compressed=True)
    offsets = [len(header), len(header) + len(three)]
    operator = operator_of(tmp_path, sb.native(3, offsets, sb.inline(header + three + four)))
    assert operator.key_group_bytes().weights[2:6] == (0, len(entry), 0, 0)
    pytest.importorskip("cramjam")
    assert longs(operator) == {(3, "a"): 5}


def test_snappy_blocks(tmp_path: Path) -> None:
    """Of one literal; of a size that no such block can have; cut; of sizes that never end."""
    pytest.importorskip("cramjam")
    last = internal_key(key("a"), 5, VALUE)
    states = [sb.state("count", "VALUE", STRING)]
    content = sb.snappy_literal(b"\0\x0c\x02" + last + b"\x02x" + struct.pack("<I", 0))
    good = sst_of_blocks([(last, content)], "count", compression=1)
    assert longs(rocksdb(tmp_path, [good], states)) == {(3, "a"): "x"}
    for damaged, message in (
        (varint(2**31 - 1) + b"\0a", "a block of Snappy cannot hold 2147483647 bytes"),
        (
            varint(2**28) + b"\0a",
            "a block of Snappy cannot hold 268435456 bytes",
        ),  # 80 80 80 80 01
        (b"\xff" * 9, "the size of a block is damaged: a number of more than 32 bits"),
        (content[:-2], r"0\.sst, offset 0: "),
        (b"", r"0\.sst, offset 0: "),
    ):
        bad = sst_of_blocks([(last, damaged)], "count", compression=1)
        with pytest.raises(SavepointError, match=message):
            list(rocksdb(tmp_path, [bad], states).entries())


def test_cramjam_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cramjam", None)
    operator = canonical(tmp_path, [COUNT], [b"\0\1\0\0a"], compressed=True)
    with pytest.raises(KeyGroupsError, match=r"cramjam: pip install 'keygroups\[savepoint\]'"):
        list(operator.entries())
