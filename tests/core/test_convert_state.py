"""`convert_state`: values by another serializer, in the bytes that Flink writes for these."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.framed_entries import framed_entries
from support.bytes.real_savepoints import point

from keygroups.errors import InvalidTypeError, InvalidValueError, UnsupportedKeyTypeError
from keygroups.savepoint import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    Operator,
    OperatorEditor,
    Pojo,
    ReducingStateDescriptor,
    Savepoint,
    SavepointWriter,
    TimerServiceDescriptor,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.state_keys import BYTES, Serializer
from keygroups.types import BOOLEAN, DOUBLE, INT, LONG, STRING, TUPLE

POINT = point("2.3.0-heap-canonical")


def edited(
    old: Savepoint, folder: Path, uid: str, verb: Callable[[OperatorEditor], object]
) -> Operator:
    with SavepointWriter.from_existing_savepoint(old, folder) as writer:
        verb(writer.operator(uid))
    return read_savepoint(folder).operator(uid)


def entries_of(operator: Operator, state: str) -> dict[tuple[int, bytes], bytes]:
    """Return the bytes of each value in a state, by key group and bytes of the key."""
    return {
        (key_group, key): value
        for task in operator.tasks([state])
        for described, key_group, _, key, value in framed_entries(task)
        if described == state
    }


def headers(operator: Operator, state: str) -> set[bytes]:
    """Return the bytes of a state in the headers of all subtasks."""
    return {
        data
        for task in operator.tasks()
        for header in task.format.headers()
        for described, data in zip(header.states, header.state_bytes)
        if described.name == state
    }


def bytes_of(value: Any) -> bytes:
    """Return a long as Flink's LongSerializer writes it; in a list commas part them."""
    if isinstance(value, list):
        return b",".join(map(bytes_of, value))
    return struct.pack(">q", value)


def number(value: Any) -> Any:
    """Return a value that Flink's classes read as an int, or a list of such values."""
    if not isinstance(value, dict):
        return int(value)
    [(kind, read)] = value.items()
    if kind == "list":
        return [*map(number, read)]
    return int(float.fromhex(read) if kind == "double" else read)


LONGS = {
    "avg": (ValueStateDescriptor("avg", LONG), int),
    "flag": (ValueStateDescriptor("flag", LONG), int),
    "history": (ListStateDescriptor("history", LONG), None),
}


@pytest.mark.branch
@pytest.mark.long
@pytest.mark.parametrize("state", LONGS)
def test_values_become_longs(state: str, tmp_path: Path) -> None:
    """The header then has what Flink wrote of a LongSerializer in another state of the job."""
    old = POINT.read()
    to, function = LONGS[state]
    new = edited(
        old, tmp_path / "new", "by-string", lambda by: by.convert_state(state, to, function)
    )
    before = old.operator("by-string")
    true = [line for line in POINT.lines(POINT.entries) if line["state"] == state]
    true = [line for line in true if line["operator"] == before.operator_id]
    expected = [bytes_of(number(line["value"])) for line in true]
    assert expected
    assert sorted(entries_of(new, state).values()) == sorted(expected)
    assert entries_of(new, state).keys() == entries_of(before, state).keys()
    if state != "history":
        [data] = headers(new, state)
        [known] = headers(before, "count")
        assert data[2 + len(state) :] == known[2 + len("count") :]
    for other in ("count", "byCity", "ttlMap", "visits"):
        assert entries_of(new, other) == entries_of(before, other)
        assert headers(new, other) == headers(before, other)


def moved_pojos(folder: Path) -> Savepoint:
    """Write a point of Flink whose values have a class of another package."""
    old = point("2.3.0-pojo-canonical")
    [data] = headers(old.read().operator("pojo"), "pojo")
    for file in old.path.iterdir():
        moved = data.replace(b"G$Pj", b"H$Pj")
        (folder / file.name).write_bytes(file.read_bytes().replace(data, moved))
    return read_savepoint(folder)


def test_pojos_of_another_package(tmp_path: Path) -> None:
    """All becomes what Flink wrote: each value, and the snapshot of the serializer."""
    (tmp_path / "old").mkdir()
    old, job = moved_pojos(tmp_path / "old"), point("2.3.0-pojo-canonical").read()
    [refused] = (each for each in old.restore_report(job).operators[0].states if each.reasons)
    assert refused.remedy.startswith("convert_state('pojo', to, value) writes it anew; ")
    template = job.operator("pojo")
    new = edited(
        old,
        tmp_path / "new",
        "pojo",
        lambda by: by.convert_state("pojo", template, lambda pojo: Pojo("G$Pj", pojo._asdict())),
    )
    assert {value.java_class for value in values(old.operator("pojo"), "pojo")} == {"H$Pj"}
    assert values(new, "pojo") == values(template, "pojo")
    for state in template.states:
        assert headers(new, state.name) == headers(template, state.name)
        assert entries_of(new, state.name) == entries_of(template, state.name)
    assert read_savepoint(tmp_path / "new").restore_report(job).restores is True


def values(operator: Operator, state: str) -> list[Any]:
    return [entry.value for entry in operator.entries([state])]


OLD = [
    ValueStateDescriptor("value", INT),
    ListStateDescriptor("list", INT, has_ttl=True),
    MapStateDescriptor("map", STRING, STRING),
    ReducingStateDescriptor("sum", INT),
    AggregatingStateDescriptor("mean", TUPLE(INT, INT)),
]


def written(folder: Path) -> Savepoint:
    with SavepointWriter(folder) as writer:
        by = writer.add_operator("by", STRING, [*OLD, TimerServiceDescriptor()], 128, 3, sort=True)
        by.write("value", "ann", 5)
        by.write("list", "ann", [5, 6], last_access=1_700_000_000_000)
        for name, text in (("a", "5"), ("b", None)):
            by.write("map", "ann", text, user_key=name)
        by.write("sum", "ann", 5)
        by.write("mean", "ann", (5, 6))
    return read_savepoint(folder)


def test_states_of_each_kind(tmp_path: Path) -> None:
    """Elements and values in maps are converted one by one, and nulls are no values."""
    pair = TUPLE(DOUBLE, DOUBLE)

    def verbs(by: OperatorEditor) -> None:
        by.convert_state("value", ValueStateDescriptor("value", STRING), str)
        by.convert_state("list", ListStateDescriptor("list", LONG, has_ttl=True), lambda n: n * n)
        by.convert_state("map", MapStateDescriptor("map", STRING, STRING), "{}!".format)
        by.convert_state("sum", ReducingStateDescriptor("sum", LONG))
        mean = AggregatingStateDescriptor("mean", pair)
        by.convert_state("mean", mean, lambda both: tuple(map(float, both)))
        by.map_entries("value", lambda entry: f"{entry.value}!")

    new = edited(written(tmp_path / "old"), tmp_path / "new", "by", verbs)
    held = new.get("ann")
    assert [(each.value, each.last_access) for each in held.pop("list")] == [
        (25, 1_700_000_000_000),
        (36, 1_700_000_000_000),
    ]
    assert held == {"value": "5!", "map": {"a": "5!", "b": None}, "sum": 5, "mean": (5.0, 6.0)}
    assert {state.name: str(state.value_serializer) for state in new.states} == {
        "value": "STRING",
        "list": "LONG",
        "map": "STRING",
        "sum": "LONG",
        "mean": "TUPLE(DOUBLE, DOUBLE)",
        "_timer_state/event_user-timers": "None",
        "_timer_state/processing_user-timers": "None",
    }


@pytest.mark.parametrize(
    ("to", "says"),
    [
        (ValueStateDescriptor("other", LONG), "the name of the state, value, got other: rename"),
        (ListStateDescriptor("value", LONG), "the kind of the state, VALUE, got LIST: Flink"),
        (ValueStateDescriptor("value", LONG, has_ttl=True), "has ttl of .* False, got True: set_"),
        (MapStateDescriptor("map", LONG, LONG), "the user key serializer of .*: keys in a map"),
        (TimerServiceDescriptor(), "the name of the state"),
    ],
)
def test_what_flink_would_not_restore(to: Any, says: str, tmp_path: Path) -> None:
    state = "map" if isinstance(to, MapStateDescriptor) else "value"
    with pytest.raises(InvalidValueError, match=says):
        edited(
            written(tmp_path / "old"),
            tmp_path / "new",
            "by",
            lambda by: by.convert_state(state, to),
        )


def test_what_is_refused(tmp_path: Path) -> None:
    old = written(tmp_path / "old")
    other = POINT.read().operator("by-long")
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as writer:
        by = writer.operator("by")
        with pytest.raises(InvalidTypeError, match="to must be a descriptor such as Value"):
            by.convert_state("value", 5)  # type: ignore[arg-type]  # A user may do so.
        to = ValueStateDescriptor("value", LONG)
        with pytest.raises(InvalidTypeError, match="value must be"):
            by.convert_state("value", to, 5)  # type: ignore[arg-type]  # A user may do so.
        with pytest.raises(InvalidValueError, match="with the state 'value', and by-long has "):
            by.convert_state("value", other)
        with pytest.raises(InvalidValueError, match="state must be of "):
            by.convert_state("nothing", other)
        timers = "_timer_state/event_user-timers"
        with pytest.raises(InvalidValueError, match="state must be one whose values the job sets"):
            by.convert_state(timers, old.operator("by"))


def of_kryo(folder: Path, entries: list[tuple[bytes, bytes]]) -> Savepoint:
    """Write a state of a class that Kryo writes, and nobody reads here."""
    return one_state(folder, sb.state("value", "VALUE", sb.kryo_of("a.D")), entries)


def one_state(folder: Path, state: bytes, entries: list[tuple[bytes, bytes]]) -> Savepoint:
    """Write a state whose entries, bytes of a key and a value each, are in key group 3."""
    keyed = sb.keyed_header(sb.simple("String"), [state])
    key_group = sb.canonical_key_group([(0, [(b"\3" + key, value) for key, value in entries])])
    handle = sb.canonical(3, [len(keyed)], sb.inline(keyed + key_group))
    operator = sb.operator([sb.subtask(managed_keyed=handle)], uid="by")
    return read_savepoint(sb.write(folder, [operator]))


def test_a_class_that_only_the_job_writes_or_reads(tmp_path: Path) -> None:
    """A test run of the job left nothing in a state of a class that Kryo writes."""
    of_job, old = of_kryo(tmp_path / "kryo", []), written(tmp_path / "old")
    with pytest.raises(UnsupportedKeyTypeError, match=r"'value' cannot become .*: only the job"):
        edited(
            old,
            tmp_path / "1",
            "by",
            lambda by: by.convert_state("value", of_job.operator("by")),
        )
    with pytest.raises(UnsupportedKeyTypeError, match="'value' cannot be converted: only the job"):
        edited(
            of_job,
            tmp_path / "2",
            "by",
            lambda by: by.convert_state("value", ValueStateDescriptor("value", INT)),
        )


POJO = sb.pojo_of("x.P", {"id": sb.simple("Int")})
SUBCLASS = b"\4" + sb.utf("x.Q") + b"12"  # No snapshot tells of x.Q.


@pytest.mark.parametrize("has_ttl", [False, True])
@pytest.mark.parametrize(
    ("kind", "to"),
    [("VALUE", ValueStateDescriptor), ("LIST", ListStateDescriptor), ("MAP", MapStateDescriptor)],
)
def test_values_that_only_the_job_reads(kind: str, to: Any, has_ttl: bool, tmp_path: Path) -> None:
    """They are bytes for other verbs; the bytes of a list would be its elements."""
    value = sb.ttl_of(POJO) if has_ttl else POJO
    state = {"LIST": sb.list_of(value), "MAP": sb.map_of(sb.simple("Int"), value)}.get(kind, value)
    user_key, mark = (sb.i32(9), b"\0") if kind == "MAP" else (b"", b"")
    written = mark + sb.i64(5) * has_ttl + SUBCLASS
    old = one_state(tmp_path / "old", sb.state("s", kind, state), [(b"\2a\0" + user_key, written)])
    new = to("s", INT, STRING, has_ttl=has_ttl) if user_key else to("s", INT, has_ttl=has_ttl)
    says = r"^key 'a'.* in state 's': its value cannot .*: 'x\.Q', a subclass of x\.P, is in no"
    with pytest.raises(UnsupportedKeyTypeError, match=says):
        edited(old, tmp_path / "new", "by", lambda by: by.convert_state("s", new, len))


def test_values_that_are_bytes(tmp_path: Path) -> None:
    old = one_state(
        tmp_path / "old",
        sb.state("s", "VALUE", BYTES.versioned_snapshot()),
        [(b"\2a\0", sb.i32(2) + b"12")],
    )
    to = ValueStateDescriptor("s", INT)
    new = edited(old, tmp_path / "new", "by", lambda by: by.convert_state("s", to, int))
    assert values(new, "s") == [12]


def test_nulls_of_a_map_whose_values_are_never_null(tmp_path: Path) -> None:
    """Flink's LongSerializer writes no null: its mark stands alone."""
    rocksdb = point("2.3.0-extrarocks-canonical")
    old = rocksdb.read()
    to = MapStateDescriptor("nulls", STRING, INT)
    new = edited(old, tmp_path / "new", "after-finished", lambda by: by.convert_state("nulls", to))
    true = [line["value"] for line in rocksdb.lines(rocksdb.entries) if line["state"] == "nulls"]
    expected = [b"\1" if value is None else b"\0" + sb.i32(value["long"]) for value in true]
    assert b"\1" in expected
    assert sorted(entries_of(new, "nulls").values()) == sorted(expected)


def test_a_null_before_which_nothing_was_cut_off(tmp_path: Path) -> None:
    """The hashmap backend writes more behind the mark; with a time to live it has no time."""
    state = sb.state("s", "MAP", sb.map_of(sb.simple("Int"), sb.ttl_of(sb.simple("Int"))))
    old = one_state(tmp_path / "old", state, [(b"\2a\0" + sb.i32(9), b"\1" + sb.i32(0))])
    to = MapStateDescriptor("s", INT, LONG, has_ttl=True)
    new = edited(old, tmp_path / "new", "by", lambda by: by.convert_state("s", to))
    assert [*entries_of(new, "s").values()] == [b"\1"]


@pytest.mark.parametrize("verb", ["convert_state", "map_keys"])
def test_another_kryo(verb: str, tmp_path: Path) -> None:
    """Flink reads the whole savepoint by one: 5.0 of Kryo 2 would be 2.561e-320."""
    kryo = sb.utf("java.lang.Double") + sb.optional_map({}) * 3
    snapshot = sb.list_of(sb.snapshot(f"{sb.JAVA}kryo.KryoSerializerSnapshot", 2, kryo))
    if verb == "map_keys":
        snapshot = sb.snapshot(f"{sb.JAVA}kryo.KryoSerializerSnapshot", 2, kryo)
    two, five = (
        Serializer.from_snapshot(sb.i32(2) + snapshot, kryo_version=version) for version in (2, 5)
    )
    number = sb.state("s", "VALUE", sb.simple("Int"))
    old = one_state(tmp_path / "old", number, [(b"\2a\0", sb.i32(5))])

    def call(by: OperatorEditor, serializer: Serializer) -> None:
        if verb == "map_keys":
            by.map_keys(lambda key: float(len(key)), serializer)
        else:
            to = ValueStateDescriptor("s", serializer)
            by.convert_state("s", to, lambda value: [float(value)])

    name = "key_type" if verb == "map_keys" else "to"
    with pytest.raises(
        InvalidValueError, match=f"^{name} must have values of Kryo 5, .* got those of Kryo 2$"
    ):
        edited(old, tmp_path / "1", "by", lambda by: call(by, two))
    [entry] = edited(old, tmp_path / "2", "by", lambda by: call(by, five)).entries()
    assert (entry.key, entry.value) == ((1.0, 5) if verb == "map_keys" else ("a", [5.0]))


def test_errors_name_the_entry(tmp_path: Path) -> None:
    old = written(tmp_path / "old")
    to = ValueStateDescriptor("value", BOOLEAN)
    with pytest.raises(InvalidTypeError, match="key 'ann' in state 'value': "):
        edited(old, tmp_path / "1", "by", lambda by: by.convert_state("value", to))
    with pytest.raises(ZeroDivisionError) as raised:
        edited(
            old, tmp_path / "2", "by", lambda by: by.convert_state("value", to, lambda n: n / 0)
        )
    assert raised.value.__notes__ == ["convert_state: key 'ann' in state 'value'"]


@pytest.mark.parametrize("has_ttl", [False, True])
def test_a_list_without_elements_stays_one(has_ttl: bool, tmp_path: Path) -> None:
    """A job on the heap that empties a list in place leaves it so; there is nothing to convert.

    Flink: ListDelimitedSerializer, which writes no bytes then.
    """
    element, time = sb.simple("Long"), sb.i64(1_700_000_000_000) if has_ttl else b""
    state = sb.state("tags", "LIST", sb.list_of(sb.ttl_of(element) if has_ttl else element))
    header = sb.keyed_header(sb.simple("Byte"), [state])
    lists = [b"", time + sb.i64(7) + b"," + time + sb.i64(8), b""]
    entries = [(bytes([3, key, 0]), value) for key, value in enumerate(lists)]
    stream = sb.inline(header + sb.canonical_key_group([(0, entries)]))
    task = sb.subtask(managed_keyed=sb.canonical(3, [len(header)], stream))
    old = read_savepoint(sb.write(tmp_path / "old", [sb.operator([task], uid="op")]))
    to = ListStateDescriptor("tags", STRING, has_ttl=has_ttl)
    new = edited(old, tmp_path / "new", "op", lambda by: by.convert_state("tags", to, str))
    assert [value for _, value in sorted(entries_of(new, "tags").items())] == [
        b"",
        time + b"\x027" + b"," + time + b"\x028",
        b"",
    ]
