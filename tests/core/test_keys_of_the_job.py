"""Keys that are read and that only the job writes: a POJO with an Optional, which Kryo wrote.

Nobody here knows their hash, or writes their bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.expected_savepoints import LONGS, STRINGS
from support.inside.savepoints import identity

from keygroups.errors import InvalidValueError, SavepointError, UnsupportedKeyTypeError
from keygroups.savepoint import (
    DELETE,
    Operator,
    Pojo,
    SavepointWriter,
    StateEntry,
    convert_to_canonical,
    read_savepoint,
)
from keygroups.savepoint.values import Some


def kryo(java_class: str) -> bytes:
    """A snapshot of a job that registers no class with Kryo."""
    contents = sb.utf(java_class) + sb.optional_map({}) * 3
    return sb.snapshot(f"{sb.JAVA}kryo.KryoSerializerSnapshot", 2, contents)


KEY = sb.pojo_of("a.K", {"id": sb.simple("Long"), "name": kryo("java.util.Optional")})
LIST_KEY = kryo("java.util.List")
STATES = [
    sb.state("value", "VALUE", LONGS.snapshot),
    sb.state("own", "VALUE", KEY),
    sb.state("list", "LIST", sb.list_of(STRINGS.snapshot)),
    sb.state("map", "MAP", sb.map_of(STRINGS.snapshot, LONGS.snapshot)),
    sb.state("named", "VALUE", LONGS.snapshot, namespace=STRINGS.snapshot),
    sb.state("timers", "", sb.timer_of(KEY, sb.NONE), backend_type=3),
]


def key_of(number: int) -> bytes:
    """As PojoSerializer writes it: no subclass, no nulls; of Kryo the class by its name."""
    optional = b"\1\0java.util.Optiona\xec\1" + b"\3\1a" + bytes([0x80 | ord("b")])
    return b"\2\0" + sb.i64(number) + b"\0" + optional


def pojo_of(number: int) -> Pojo:
    return Pojo("a.K", {"id": number, "name": Some("ab")})


def joined(key: bytes, namespace: bytes) -> bytes:
    """With their lengths behind them, where nothing else tells the two apart."""
    return key + bytes([len(key)]) + namespace + bytes([len(namespace)])


def operator_of(folder: Path, is_native: bool) -> Operator:
    """Return an operator with two keys, each with an entry of each state, in key group 3."""
    header = sb.keyed_header(KEY, STATES)
    keys = [key_of(1), key_of(2)]
    timer = [sb.i64(5 ^ -(2**63)) + key + b"\0" for key in keys]
    if is_native:
        of_state = [
            [b"\0" + key + sb.i64(7) for key in keys],
            [b"\0" + key + key for key in keys],
            [b"\0" + key + sb.i32(1) + b"\2a" for key in keys],
            [b"\0" + key + sb.i32(1) + b"\2u\0" + sb.i64(8) for key in keys],
            [b"\2n" + key + sb.i64(9) for key in keys],
            timer,
        ]
        content = sb.i32(3) + b"".join(
            sb.i16(number) + sb.i32(len(entries)) + b"".join(entries)
            for number, entries in enumerate(of_state)
        )
        keyed = sb.native(3, [len(header)], sb.inline(header + content))
    else:
        framed = [
            [(key + b"\0", sb.i64(7)) for key in keys],
            [(key + b"\0", key) for key in keys],
            [(key + b"\0", b"\2a") for key in keys],
            [(key + b"\0" + b"\2u", b"\0" + sb.i64(8)) for key in keys],
            [(joined(key, b"\2n"), sb.i64(9)) for key in keys],
            [(key, b"") for key in timer],
        ]
        content = sb.canonical_key_group(
            [
                (number, [(b"\3" + key, value) for key, value in entries])
                for number, entries in enumerate(framed)
            ]
        )
        keyed = sb.canonical(3, [len(header)], sb.inline(header + content))
    task = sb.operator([sb.subtask(managed_keyed=keyed)], uid="uid")
    return read_savepoint(sb.write(folder, [task])).operator("uid")


FORMATS = pytest.mark.parametrize("is_native", [False, True], ids=["canonical", "native"])


def without(key: Any) -> Any:
    return lambda entry: DELETE if entry.key == key else entry.value


@FORMATS
def test_entries_have_the_bytes_of_the_key(is_native: bool, tmp_path: Path) -> None:
    operator = operator_of(tmp_path, is_native)
    entries = list(operator.entries())
    assert len(entries) == 12
    for entry in entries:
        number = entry.key["id"]
        assert entry.key == pojo_of(number)
        assert entry.key_bytes == key_of(number)
    assert [size.key for size in operator.key_sizes()] == [pojo_of(1), pojo_of(2)]
    pytest.importorskip("pyarrow")
    for state in ("value", "map", "named", "timers"):
        column = operator.to_arrow(state).column("key_bytes").to_pylist()
        assert column == [key_of(1), key_of(2)]


@FORMATS
def test_get(is_native: bool, tmp_path: Path) -> None:
    operator = operator_of(tmp_path, is_native)
    expected = {
        "value": 7,
        "own": pojo_of(1),
        "list": ["a"],
        "map": {"u": 8},
        "named": {"n": 9},
        "timers": [5],
    }
    assert operator.get(pojo_of(1)) == operator.get(key_of(1)) == expected
    for name, value in expected.items():
        assert operator.get(pojo_of(1), name) == value
    for other in (pojo_of(3), key_of(3), Pojo("a.L", pojo_of(1)._asdict()), "a", 5, None):
        assert operator.get(other) == {}


@FORMATS
@pytest.mark.parametrize("as_bytes", [False, True])
def test_keys_are_deleted(is_native: bool, as_bytes: bool, tmp_path: Path) -> None:
    operator = operator_of(tmp_path / "old", is_native)
    keys = [key_of(2), key_of(3)] if as_bytes else [pojo_of(2), pojo_of(3)]
    with SavepointWriter.from_existing_savepoint(tmp_path / "old", tmp_path / "new") as writer:
        writer.operator("uid").delete_keys(keys)
    new = read_savepoint(tmp_path / "new").operator("uid")
    kept = [entry for entry in operator.entries() if entry.key == pojo_of(1)]
    assert [entry[:10] for entry in new.entries()] == [entry[:10] for entry in kept]
    [edited] = writer.report().operators
    assert edited.deleted_keys is not None
    assert edited.deleted_keys.with_entries == 1
    assert edited.deleted_keys.without_entries == (keys[1],)


@FORMATS
def test_keys_are_mapped_to_themselves_and_deleted(is_native: bool, tmp_path: Path) -> None:
    operator_of(tmp_path / "old", is_native)

    def edited(name: str, function: Any) -> list[int]:
        old, new = tmp_path / "old", tmp_path / name
        with SavepointWriter.from_existing_savepoint(old, new) as writer:
            writer.operator("uid").map_keys(function)
        return [entry.key["id"] for entry in read_savepoint(new).operator("uid").entries()]

    assert edited("same", lambda key: Pojo("a.K", key._asdict())) == [1, 2] * 6
    assert edited("less", lambda key: DELETE if key == pojo_of(1) else key) == [2] * 6
    with pytest.raises(UnsupportedKeyTypeError, match="only the job can write them"):
        edited("other", lambda key: pojo_of(5))


@FORMATS
@pytest.mark.parametrize("name", ["value", "own", "list", "map", "named"])
def test_entries_are_deleted(is_native: bool, name: str, tmp_path: Path) -> None:
    operator_of(tmp_path / "old", is_native)
    old, new = tmp_path / "old", tmp_path / "new"
    with SavepointWriter.from_existing_savepoint(old, new) as writer:
        writer.operator("uid").map_entries(name, without(pojo_of(1)))
    [state] = [state for state in writer.report().operators[0].states if state.state == name]
    assert (state.kept, state.changed, state.deleted, state.added) == (1, 0, 1, 0)
    entries = read_savepoint(new).operator("uid").entries([name])
    assert [entry.key for entry in entries] == [pojo_of(2)]


def test_values_that_are_not_written(tmp_path: Path) -> None:
    """One that is made anew stays if it is equal; another one is refused, and named."""
    operator_of(tmp_path / "old", is_native=False)

    def edited(name: str, function: Any) -> list[StateEntry]:
        old, new = tmp_path / "old", tmp_path / name
        with SavepointWriter.from_existing_savepoint(old, new) as writer:
            writer.operator("uid").map_entries("own", function)
        return list(read_savepoint(new).operator("uid").entries(["own"]))

    assert len(edited("same", lambda entry: Pojo("a.K", entry.value._asdict()))) == 2
    with pytest.raises(UnsupportedKeyTypeError, match=r"^key Pojo\('a.K'.*state 'own': value"):
        edited("other", lambda entry: pojo_of(7))


@FORMATS
@pytest.mark.parametrize("name", ["value", "own", "list", "map", "named"])
def test_entries_that_are_returned_keep_their_keys(
    is_native: bool, name: str, tmp_path: Path
) -> None:
    """As they are, made anew of what is equal, and with another value; none gets another key."""
    operator_of(tmp_path / "old", is_native)
    before = list(read_savepoint(tmp_path / "old").operator("uid").entries([name]))
    for number, function in enumerate(
        (
            lambda entry: entry,
            lambda entry: [entry._replace(key=Pojo("a.K", entry.key._asdict()))],
            lambda entry: entry._replace(value=["x"] if name == "list" else 5),
        )[: 2 if name == "own" else 3]
    ):
        new = tmp_path / f"{number}"
        with SavepointWriter.from_existing_savepoint(tmp_path / "old", new) as writer:
            writer.operator("uid").map_entries(name, function)
        entries = list(read_savepoint(new).operator("uid").entries([name]))
        assert [entry.key for entry in entries] == [pojo_of(1), pojo_of(2)]
        assert [entry.key_bytes for entry in entries] == [entry.key_bytes for entry in before]
        value = ["x"] if name == "list" else 5
        assert [entry.value for entry in entries] == (
            [value] * 2 if number == 2 else [entry.value for entry in before]
        )
    with (
        pytest.raises(UnsupportedKeyTypeError, match=f"state '{name}': key, .* must stay"),
        SavepointWriter.from_existing_savepoint(tmp_path / "old", tmp_path / "x") as writer,
    ):
        writer.operator("uid").map_entries(name, lambda entry: entry._replace(key=pojo_of(3)))


def test_the_same_bytes_stay(tmp_path: Path) -> None:
    operator_of(tmp_path / "old", is_native=True)
    convert_to_canonical(tmp_path / "old", tmp_path / "new")
    new = read_savepoint(tmp_path / "new").operator("uid")
    assert {entry.key_bytes for entry in new.entries()} == {key_of(1), key_of(2)}


def test_two_keys_that_are_read_as_one(tmp_path: Path) -> None:
    """A list of Java is not the same in other bytes: that of another class, of other elements."""
    lists = [b"\1\0java.util.ArrayLis\xf4\1\1", b"\1\0java.util.LinkedLis\xf4\1\1"]
    header = sb.keyed_header(LIST_KEY, STATES[:1])
    entries = [(b"\3" + key + b"\0", sb.i64(number)) for number, key in enumerate(lists)]
    content = sb.canonical_key_group([(0, entries)])
    keyed = sb.canonical(3, [len(header)], sb.inline(header + content))
    task = sb.operator([sb.subtask(managed_keyed=keyed)], uid="uid")
    operator = read_savepoint(sb.write(tmp_path / "old", [task])).operator("uid")
    with pytest.raises(SavepointError, match=r"of 'value' two keys are read as \[\], of"):
        operator.get([])
    assert operator.get(lists[1]) == {"value": 1}
    with SavepointWriter.from_existing_savepoint(tmp_path / "old", tmp_path / "new") as writer:
        writer.operator("uid").delete_keys([[]])
    assert list(read_savepoint(tmp_path / "new").operator("uid").entries()) == []


def test_two_keys_that_are_read_as_one_in_two_states(tmp_path: Path) -> None:
    """Each has an entry of one state, and what they have is not put together."""
    lists = [b"\1\0java.util.ArrayLis\xf4\1\1", b"\1\0java.util.LinkedLis\xf4\1\1"]
    states = [sb.state(name, "VALUE", sb.simple("Long")) for name in ("first", "second")]
    header = sb.keyed_header(LIST_KEY, states)
    entries = [
        (number, [(b"\3" + key + b"\0", sb.i64(number))]) for number, key in enumerate(lists)
    ]
    keyed = sb.canonical(3, [len(header)], sb.inline(header + sb.canonical_key_group(entries)))
    task = sb.operator([sb.subtask(managed_keyed=keyed)], uid="uid")
    operator = read_savepoint(sb.write(tmp_path, [task])).operator("uid")
    with pytest.raises(SavepointError, match=r"of 'second' two keys are read as \[\], of"):
        operator.get([])
    assert operator.get(lists[0]) == {"first": 0}
    assert operator.get(lists[1]) == {"second": 1}


def test_identity_of_values() -> None:
    """Two that Python takes for one differ; the order of maps and sets is Java's."""
    values = [
        1,
        True,
        1.0,
        0.0,
        -0.0,
        "1",
        b"1",
        (1,),
        [1],
        {1},
        {1: 2},
        None,
        pojo_of(1),
        Some(1),
    ]
    assert len({identity(value) for value in values}) == len(values)
    for one, other in (
        ({1: {"a", "b"}, 2: []}, {2: [], 1: {"b", "a"}}),
        (Pojo("a.B", {"a": 1, "b": 2}), Pojo("a.B", {"b": 2, "a": 1})),
        ([frozenset((1, 2))], [frozenset((2, 1))]),
    ):
        assert identity(one) == identity(other)
    assert identity(Pojo("a.B", {"a": 1})) != identity(Pojo("a.C", {"a": 1}))


def test_no_text_is_such_a_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from keygroups.cli import main

    operator_of(tmp_path, is_native=False)
    assert main(["savepoint", str(tmp_path), "--key", "1"]) == 2
    assert (
        "key must be text of a key type, and the keys of uid are of POJO"
        in capsys.readouterr().err
    )
    with pytest.raises(InvalidValueError, match="state must be one of uid"):
        read_savepoint(tmp_path).operator("uid").get(key_of(1), "x")


def test_a_namespace_that_is_not_known(tmp_path: Path) -> None:
    """Nothing says where the key ends: its bytes are those of both."""
    own = sb.snapshot("x.Own$Snapshot", 1)
    for number, (key, encoded) in enumerate([(KEY, key_of(1)), (own, b"one")]):
        namespace = own if key == KEY else STRINGS.snapshot
        header = sb.keyed_header(
            key, [sb.state("n", "VALUE", LONGS.snapshot, namespace=namespace)]
        )
        behind = encoded + b"\2nxy"
        content = sb.canonical_key_group([(0, [(b"\3" + behind, sb.i64(7))])])
        keyed = sb.canonical(3, [len(header)], sb.inline(header + content))
        task = sb.operator([sb.subtask(managed_keyed=keyed)], uid="uid")
        operator = read_savepoint(sb.write(tmp_path / str(number), [task])).operator("uid")
        [entry] = operator.entries()
        assert (entry.key_bytes, entry.namespace) == (behind, None)
        assert entry.key == (pojo_of(1) if key == KEY else None)
        with pytest.raises(SavepointError, match=r"do not say (what|where the key)"):
            operator.get(pojo_of(1) if key == KEY else b"one")


def test_timers_of_keys_that_are_not_known(tmp_path: Path) -> None:
    """Nothing says where a namespace begins behind such a key: a table has the bytes of both."""
    own = sb.snapshot("x.Own$Snapshot", 1)
    state = sb.state("timers", "", sb.timer_of(own, STRINGS.snapshot), backend_type=3)
    header = sb.keyed_header(own, [state])
    time, behind = sb.i64(5 ^ -(2**63)), b"own\2n"
    content = sb.canonical_key_group([(0, [(b"\3" + time + behind, b"")])])
    keyed = sb.canonical(3, [len(header)], sb.inline(header + content))
    task = sb.operator([sb.subtask(managed_keyed=keyed)], uid="uid")
    operator = read_savepoint(sb.write(tmp_path / "old", [task])).operator("uid")
    [entry] = operator.entries()
    assert (entry.key, entry.key_bytes, entry.timestamp) == (None, behind, 5)
    assert operator.to_arrow("timers").column("key_bytes").to_pylist() == [behind]


AVRO_SCHEMA = (
    '{"type": "record", "name": "K", "fields": '
    '[{"name": "m", "type": {"type": "map", "values": "int"}}]}'
)
AVRO = "org.apache.flink.formats.avro.typeutils.AvroSerializerSnapshot"
OF_A = b"\0\0\0\1a\0\0\0\1"  # Flink: DataOutputEncoder, the key of an item, and its value
OF_B = b"\0\0\0\1b\0\0\0\2"


@pytest.mark.parametrize("items", [OF_A + OF_B, OF_B + OF_A])
def test_maps_in_keys_of_avro(items: bytes, tmp_path: Path) -> None:
    """Java writes their items in the order of a HashMap, and a dict may have another one."""
    pytest.importorskip("fastavro")
    key_bytes = b"\2" + items + b"\0"
    serializer = sb.snapshot(AVRO, 2, sb.utf("a.K") + sb.utf(AVRO_SCHEMA))
    header = sb.keyed_header(serializer, STATES[:1])
    content = sb.canonical_key_group([(0, [(b"\3" + key_bytes + b"\0", sb.i64(7))])])
    keyed = sb.canonical(3, [len(header)], sb.inline(header + content))
    task = sb.operator([sb.subtask(managed_keyed=keyed)], uid="uid")
    operator = read_savepoint(sb.write(tmp_path / "old", [task])).operator("uid")
    [entry] = operator.entries()
    assert (entry.key, entry.key_bytes) == ({"m": {"a": 1, "b": 2}}, key_bytes)
    for key in ({"m": {"a": 1, "b": 2}}, {"m": {"b": 2, "a": 1}}, key_bytes):
        assert operator.get(key, "value") == 7
    assert operator.get({"m": {"a": 1, "b": 3}}, "value") is None
    with SavepointWriter.from_existing_savepoint(tmp_path / "old", tmp_path / "new") as writer:
        writer.operator("uid").delete_keys([{"m": {"b": 2, "a": 1}}])
    assert [*read_savepoint(tmp_path / "new").operator("uid").entries()] == []
