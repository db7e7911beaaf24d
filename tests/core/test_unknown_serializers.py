"""One serializer that is not known costs one state: of it there are bytes, and all else is read.

A user's own serializers are known where the savepoint is opened with them.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes import sst_bytes
from support.inside.savepoints import KeyGroupsHandle, read_encoded_operator_state
from support.inside.serializers import REGISTRY, Cursor, Read
from support.inside.values import MAX_DEPTH

from keygroups import assign_to_key_group, compute_key_group_for_key_hash
from keygroups.errors import InvalidTypeError, InvalidValueError, KeyGroupsError, SavepointError
from keygroups.savepoint import (
    Operator,
    Savepoint,
    SavepointWriter,
    Serializer,
    change_max_parallelism,
    convert_to_canonical,
    operator_reports,
    read_savepoint,
)
from keygroups.types import BYTE_BUFFER, INT, STRING

INT_SNAPSHOT, LONG_SNAPSHOT = sb.simple("Int"), sb.simple("Long")
STRING_SNAPSHOT = sb.simple("String")
MONEY = "com.acme.MoneySerializer$MoneySerializerSnapshot"
MONEY_SNAPSHOT = sb.snapshot(MONEY, 7, b"EUR" + bytes(range(256)))
STATES = [
    sb.state("before", "VALUE", LONG_SNAPSHOT),
    sb.state("price", "VALUE", MONEY_SNAPSHOT),
    sb.state("by window", "REDUCING", INT_SNAPSHOT, namespace=MONEY_SNAPSHOT),
    sb.state("all", "LIST", sb.list_of(MONEY_SNAPSHOT)),
    sb.state("prices", "MAP", sb.map_of(STRING_SNAPSHOT, MONEY_SNAPSHOT)),
    sb.state("both", "VALUE", MONEY_SNAPSHOT, namespace=MONEY_SNAPSHOT),
    sb.state("_timer_state/x", "", sb.timer_of(INT_SNAPSHOT, MONEY_SNAPSHOT), backend_type=3),
    sb.state("after", "VALUE", LONG_SNAPSHOT),
]
KNOWN = f"UNKNOWN({MONEY})"
TEXTS = [
    "before: VALUE <INT, LONG>",
    f"price: VALUE <INT, {KNOWN}>",
    f"by window: REDUCING <INT, {KNOWN}, INT>",
    f"all: LIST <INT, {KNOWN}>",
    f"prices: MAP <INT, UNKNOWN, {KNOWN}>",
    f"both: VALUE <INT, {KNOWN}, {KNOWN}>",
    f"_timer_state/x: timers <INT, {KNOWN}>",
    "after: VALUE <INT, LONG>",
]
KEY = sb.i32(7)
KEY_GROUP = assign_to_key_group(7, 128, key_type=INT)
VOID = b"\0"
TIME = bytes([0x80]) + bytes(6) + b"\5"
# Each state's entry: the bytes of the key after the key group, and of the value.
ENTRIES = [
    (KEY + VOID, sb.i64(1)),
    (KEY + VOID, b"money"),
    (KEY + b"window", sb.i32(2)),
    (KEY + VOID, b"a,b"),
    (KEY + VOID + b"\1u", b"\0money"),
    (KEY + b"w", b""),
    (TIME + KEY + b"w", b""),
    (KEY + VOID, sb.i64(9)),
]
VALUES = [1, b"money", 2, b"a,b", b"money", b"", None, 9]
NAMESPACES = [None, None, b"window", None, None, b"w", b"w", None]


def content(number: int, entries: Sequence[tuple[bytes, bytes]] = ENTRIES) -> bytes:
    prefix = bytes([number])
    return sb.canonical_key_group(
        [(state, [(prefix + key, value)]) for state, (key, value) in enumerate(entries)]
    )


def canonical(header: bytes) -> bytes:
    return sb.canonical(KEY_GROUP, [len(header)], sb.inline(header + content(KEY_GROUP)))


def operator_of(folder: Path, keyed: bytes, **options: Any) -> Operator:
    path = sb.write(folder, [sb.operator([sb.subtask(managed_keyed=keyed)])])
    (operator,) = read_savepoint(path, **options).operators
    return operator


def rocksdb(folder: Path) -> bytes:
    folder.mkdir()
    files = []
    for number, (key, value) in enumerate(ENTRIES):
        name = TEXTS[number].partition(":")[0]
        records = [(bytes([KEY_GROUP]) + key, 1, sst_bytes.VALUE, value)]
        data = sst_bytes.sst(records, name)
        (folder / f"{number}.sst").write_bytes(data)
        files.append((f"{number}.sst", sb.relative(f"{number}.sst", len(data))))
    return sb.rocksdb(0, 128, sb.inline(HEADER), files)


HEADER = sb.keyed_header(INT_SNAPSHOT, STATES)


@pytest.mark.parametrize("item", ["canonical", "rocksdb"])
def test_all_but_what_is_not_known(tmp_path: Path, item: str) -> None:
    folder = tmp_path / "savepoint"
    keyed = canonical(HEADER) if item == "canonical" else rocksdb(folder)
    operator = operator_of(folder, keyed)
    assert [*map(str, operator.states)] == TEXTS
    entries = {entry.state: entry for entry in operator.entries()}
    assert [entries[state.name].value for state in operator.states] == VALUES
    assert [entries[state.name].namespace for state in operator.states] == NAMESPACES
    assert {entry.key for entry in entries.values()} == {7}
    assert {entry.key_bytes for entry in entries.values()} == {None}
    assert entries["prices"].user_key == b"\1u"
    assert entries["_timer_state/x"].timestamp == 5
    (size,) = operator.key_sizes()
    total = sum(len(key + value) for key, value in ENTRIES)
    assert (size.key, size.entries, size.bytes) == (7, len(STATES), total)
    assert [entry.value for entry in operator.entries(["after", "price"])] == [b"money", 9]


@pytest.mark.parametrize("item", ["canonical", "rocksdb"])
@pytest.mark.parametrize("groups", [64, 4096])
def test_another_max_parallelism(tmp_path: Path, item: str, groups: int) -> None:
    """The header's bytes stay, and the entries' too."""
    folder = tmp_path / "savepoint"
    operator_of(folder, canonical(HEADER) if item == "canonical" else rocksdb(folder))
    change_max_parallelism(folder, groups, tmp_path / "new")
    (operator,) = read_savepoint(tmp_path / "new").operators
    entries = [*operator.entries()]
    assert {entry.key_group for entry in entries} == {assign_to_key_group(7, groups, key_type=INT)}
    assert [entry.value for entry in entries] == VALUES
    (handle,) = operator._subtasks[0].keyed
    assert isinstance(handle, KeyGroupsHandle)
    with operator._files.open(handle.stream) as stream:
        assert stream.read(0, len(HEADER)) == HEADER
    convert_to_canonical(folder, tmp_path / "converted")
    (converted,) = read_savepoint(tmp_path / "converted").operators
    assert {entry.key_group for entry in converted.entries()} == {KEY_GROUP}


def test_keys_that_are_not_known(tmp_path: Path) -> None:
    """What does not need their hash is done, and the bytes of entries are there."""
    header = sb.keyed_header(MONEY_SNAPSHOT, [STATES[0], STATES[4], STATES[7]])
    entries = [ENTRIES[0], ENTRIES[4], ENTRIES[7]]
    data = header + content(KEY_GROUP, entries)
    keyed = sb.canonical(KEY_GROUP, [len(header)], sb.inline(data))
    operator = operator_of(tmp_path / "savepoint", keyed)
    assert [*map(str, operator.states)] == [
        f"before: VALUE <{KNOWN}, LONG>",
        f"prices: MAP <{KNOWN}, UNKNOWN, {KNOWN}>",
        f"after: VALUE <{KNOWN}, LONG>",
    ]
    seen = [(entry.key, entry.key_bytes, entry.value) for entry in operator.entries()]
    assert seen == [
        (KEY, None, 1),
        (None, KEY + VOID + b"\1u", b"money"),
        (KEY, None, 9),
    ]
    assert operator.key_group_bytes().weights[KEY_GROUP] == len(content(KEY_GROUP, entries))
    change_max_parallelism(tmp_path / "savepoint", 64, tmp_path / "new")
    (new,) = read_savepoint(tmp_path / "new").operators
    assert {entry.key_group for entry in new.entries()} == {KEY_GROUP % 64}
    with pytest.raises(SavepointError, match=r"has keys of UNKNOWN.*Money.* a divisor of 128"):
        change_max_parallelism(tmp_path / "savepoint", 4096, tmp_path / "other")


@pytest.mark.parametrize("count", [0, 256])
def test_how_many_states_are_behind_a_key_that_is_not_known(tmp_path: Path, count: int) -> None:
    """None, and more than a byte counts."""
    names = [f"s{number}" for number in range(count)]
    states = [sb.state(name, "VALUE", LONG_SNAPSHOT) for name in names]
    header = sb.keyed_header(MONEY_SNAPSHOT, states)
    operator = operator_of(tmp_path, sb.canonical(KEY_GROUP, [0], sb.inline(header)))
    assert [state.name for state in operator.states] == names


IN_STRINGS = sb.state("n", "VALUE", INT_SNAPSHOT, namespace=STRING_SNAPSHOT)
NO_LENGTHS = [
    (STRING_SNAPSHOT, STATES[2], b"\2a\2money", "a"),
    (MONEY_SNAPSHOT, IN_STRINGS, b"money\2a\5\2", None),
    (sb.pojo_of("a.P", {}), STATES[2], b"\4\0\5a.Sub", None),
]


@pytest.mark.parametrize(("key_snapshot", "state", "encoded", "key"), NO_LENGTHS)
def test_lengths_that_there_may_be(
    tmp_path: Path, key_snapshot: bytes, state: bytes, encoded: bytes, key: str | None
) -> None:
    """Behind a key and a namespace of no fixed size are their lengths; of others not."""
    header = sb.keyed_header(key_snapshot, [state])
    data = header + content(3, [(encoded, sb.i32(2))])
    operator = operator_of(tmp_path, sb.canonical(3, [len(header)], sb.inline(data)))
    (entry,) = operator.entries()
    assert (entry.key, entry.namespace, entry.key_bytes) == (key, None, encoded)
    assert entry.value == 2


POJO, SUBCLASS = sb.pojo_of("a.P", {}), b"\4\0\5a.Sub"
TIMED = sb.i64(5)
MAP_OF_POJOS = sb.state("s", "MAP", sb.map_of(STRING_SNAPSHOT, POJO))
MAP_OF_TIMED_POJOS = sb.state("s", "MAP", sb.map_of(STRING_SNAPSHOT, sb.ttl_of(POJO)))
OF_SUBCLASSES = [
    (sb.state("s", "VALUE", POJO), b"", SUBCLASS, None),
    (sb.state("s", "VALUE", sb.ttl_of(POJO)), b"", TIMED + SUBCLASS, 5),
    (MAP_OF_POJOS, b"\2u", VOID + SUBCLASS, None),
    (MAP_OF_TIMED_POJOS, b"\2u", VOID + TIMED + SUBCLASS, 5),
    (sb.state("s", "LIST", sb.list_of(POJO)), b"", SUBCLASS, None),
]


@pytest.mark.parametrize(("state", "user_key", "encoded", "last_access"), OF_SUBCLASSES)
def test_a_value_of_a_subclass_is_its_bytes(
    tmp_path: Path, state: bytes, user_key: bytes, encoded: bytes, last_access: int | None
) -> None:
    """Without the mark of null and the last access before it."""
    header = sb.keyed_header(INT_SNAPSHOT, [state])
    data = header + content(KEY_GROUP, [(KEY + VOID + user_key, encoded)])
    operator = operator_of(tmp_path, sb.canonical(KEY_GROUP, [len(header)], sb.inline(data)))
    (entry,) = operator.entries()
    assert (entry.key, entry.value, entry.last_access) == (7, SUBCLASS, last_access)


def native(states: Sequence[bytes], *written: bytes) -> bytes:
    header = sb.keyed_header(INT_SNAPSHOT, states)
    data = sb.i32(KEY_GROUP) + b"".join(written)
    return sb.native(KEY_GROUP, [len(header)], sb.inline(header + data))


def test_the_hashmap_backends_own_format(tmp_path: Path) -> None:
    """It frames nothing: what is behind a value that is not known is lost, and says so."""
    before = sb.i16(0) + sb.i32(1) + VOID + KEY + sb.i64(1)
    price = sb.i16(1) + sb.i32(1) + VOID + KEY + b"money"
    operator = operator_of(tmp_path, native(STATES[:2], before, price))
    assert [entry.value for entry in operator.entries(["before"])] == [1]
    assert operator.key_group_bytes().weights[KEY_GROUP] == len(before) + len(price) - 12
    message = rf"price: VALUE <INT, UNKNOWN\({MONEY[:8]}.*take a savepoint in canonical format"
    with pytest.raises(SavepointError, match=message):
        list(operator.entries())
    with pytest.raises(SavepointError, match=message):
        change_max_parallelism(tmp_path, 256, tmp_path.with_name("new"))
    (report,) = operator_reports(read_savepoint(tmp_path))
    assert (report.heaviest_keys, report.heaviest_key_groups[0]) == ((), KEY_GROUP)
    assert report.unknown_keys is not None
    assert re.search(message, report.unknown_keys)
    assert f"price: VALUE <INT, {KNOWN}>" in str(report)
    empty = sb.i16(1) + sb.i32(0)
    operator = operator_of(tmp_path, native(STATES[:2], before, empty))
    assert [entry.value for entry in operator.entries()] == [1]


def of_contents(contents: bytes) -> Callable[[Path], Operator]:
    header = sb.keyed_header(
        INT_SNAPSHOT,
        [sb.state("a", "VALUE", sb.snapshot(MONEY, 1, contents)), STATES[7]],
    )
    return lambda folder: operator_of(folder, canonical(header))


def test_what_could_be_two_states(tmp_path: Path) -> None:
    """Where the contents of a snapshot look like a state it is not sure where that ends."""
    operator = of_contents(STATES[1])(tmp_path)
    with pytest.raises(
        SavepointError, match=r"'com\.acme\.Money.*' is not known: pass serial.*, of state 'a'$"
    ):
        print(operator.states)
    header = sb.keyed_header(sb.snapshot(MONEY, 1, STATES[1]), [STATES[7]])
    operator = operator_of(tmp_path, canonical(header))
    with pytest.raises(SavepointError, match=r"'com\.acme\.Money.*' is not known"):
        print(operator.states)


def test_a_namespace_of_which_it_is_not_sure_where_it_is(tmp_path: Path) -> None:
    role = sb.utf("NAMESPACE_SERIALIZER") + sb.i32(2)
    operator = of_contents(role + sb.NONE)(tmp_path)
    assert str(operator.states[0]) == f"a: VALUE <INT, UNKNOWN, {KNOWN}>"


@pytest.mark.parametrize("length", [1, 255, 256, 65_535])
def test_names_of_all_lengths(tmp_path: Path, length: int) -> None:
    """Two letters of a long one may be a length too: these are even, where an odd one fits."""
    names = [(letters * length)[:length] for letters in ("ab", "cd", "ef")]
    states = [sb.state(name, "VALUE", MONEY_SNAPSHOT) for name in names]
    operator = operator_of(tmp_path, canonical(sb.keyed_header(INT_SNAPSHOT, states)))
    assert [state.name for state in operator.states] == names


def test_damage_behind_what_is_not_known(tmp_path: Path) -> None:
    longer = sb.state("a", "VALUE", MONEY_SNAPSHOT) + b"\0"
    header = sb.keyed_header(INT_SNAPSHOT, [longer, STATES[7]])
    with pytest.raises(SavepointError, match="state 'a' ends 1 bytes earlier"):
        print(operator_of(tmp_path, canonical(header)).states)
    header = sb.keyed_header(INT_SNAPSHOT, [STATES[1], STATES[7] + b"\0"])
    with pytest.raises(SavepointError, match="state 'after' ends 1 bytes earlier"):
        print(operator_of(tmp_path, canonical(header)).states)


# --- operator state -------------------------------------------------------------------------


def info(name: str, mode: str, backend_type: int, **serializers: bytes) -> bytes:
    options = {"OPERATOR_STATE_DISTRIBUTION_MODE": mode}
    return sb.meta_info(name, backend_type, options, serializers)


TWO_MONEYS = sb.i32(2, 3) + b"money"  # nothing says where the first one ends


def operator_state_of(folder: Path, *, compressed: bool) -> Operator:
    """Return an operator with operator state; what is compressed is in two chunks an element."""
    lists = [
        info("offsets", "SPLIT_DISTRIBUTE", 1, VALUE_SERIALIZER=LONG_SNAPSHOT),
        info("moneys", "UNION", 1, VALUE_SERIALIZER=MONEY_SNAPSHOT),
        info("more", "UNION", 1, VALUE_SERIALIZER=LONG_SNAPSHOT),
    ]
    rules = [
        info("b", "BROADCAST", 2, VALUE_SERIALIZER=MONEY_SNAPSHOT, KEY_SERIALIZER=INT_SNAPSHOT),
        info("c", "BROADCAST", 2, VALUE_SERIALIZER=INT_SNAPSHOT, KEY_SERIALIZER=INT_SNAPSHOT),
    ]
    header = sb.operator_header(lists, rules, compressed=compressed)
    elements = [sb.i64(1), b"money", sb.i64(2), TWO_MONEYS, sb.i32(1, 3, 4)]
    start = b"\xff\6\0\0sNaPpY" if compressed else b""
    written = [
        sb.snappy_chunk(element[:3]) + sb.snappy_chunk(element[3:]) if compressed else element
        for element in elements
    ]
    offsets = [len(header + start)]
    for element in written[:-1]:
        offsets.append(offsets[-1] + len(element))
    names = [("offsets", 0), ("moneys", 1), ("more", 1), ("b", 2), ("c", 2)]
    states = [(name, mode, [offset]) for (name, mode), offset in zip(names, offsets)]
    stream = sb.inline(header + start + b"".join(written))
    subtask = sb.subtask(managed_operator=sb.operator_state(states, stream))
    (operator,) = read_savepoint(sb.write(folder, [sb.operator([subtask])])).operators
    return operator


@pytest.mark.parametrize("compressed", [False, True])
def test_operator_state(tmp_path: Path, compressed: bool) -> None:
    operator = operator_state_of(tmp_path, compressed=compressed)
    assert [(state.state, state.elements) for state in operator.operator_state()] == [
        ("offsets", [1]),
        ("moneys", [b"money"]),
        ("more", [2]),
        ("b", TWO_MONEYS),
        ("c", {3: 4}),
    ]
    ((_, handle, is_raw),) = operator._operator_state_handles()
    encoded = read_encoded_operator_state(operator._files, handle, is_raw, operator._context)
    assert [(state.state, *state.elements) for state in encoded] == [
        ("offsets", (sb.i64(1), b"")),
        ("moneys", (b"money", b"")),
        ("more", (sb.i64(2), b"")),
        ("b", (b"", TWO_MONEYS)),
        ("c", (sb.i32(3), sb.i32(4))),
    ]


def test_an_element_of_a_subclass_is_its_bytes(tmp_path: Path) -> None:
    pojo = sb.pojo_of("a.P", {"n": INT_SNAPSHOT})
    header = sb.operator_header([info("a", "UNION", 1, VALUE_SERIALIZER=pojo)], [])
    element = b"\4" + sb.utf("a.Q") + b"any"  # a subclass that no snapshot has
    handle = sb.operator_state([("a", 1, [len(header)])], sb.inline(header + element))
    written = sb.write(tmp_path, [sb.operator([sb.subtask(managed_operator=handle)])])
    [state] = read_savepoint(written).operators[0].operator_state()
    assert state.elements == [element]


def test_the_last_value_of_a_broadcast_state(tmp_path: Path) -> None:
    """It is all that is left, where only the job reads it."""
    types = {"VALUE_SERIALIZER": MONEY_SNAPSHOT, "KEY_SERIALIZER": INT_SNAPSHOT}
    header = sb.operator_header([], [info("b", "BROADCAST", 2, **types)])
    stream = sb.inline(header + sb.i32(1, 3) + b"money")
    handle = sb.operator_state([("b", 2, [len(header)])], stream)
    written = sb.write(tmp_path, [sb.operator([sb.subtask(managed_operator=handle)])])
    [state] = read_savepoint(written).operators[0].operator_state()
    assert state.elements == {3: b"money"}


def test_operator_state_of_which_the_states_are_not_sure(tmp_path: Path) -> None:
    """A broadcast state within the contents of a snapshot is no state."""
    rule = info("b", "BROADCAST", 2, VALUE_SERIALIZER=INT_SNAPSHOT, KEY_SERIALIZER=INT_SNAPSHOT)
    snapshot = sb.snapshot(MONEY, 7, rule)
    header = sb.operator_header([info("a", "UNION", 1, VALUE_SERIALIZER=snapshot)], [])
    handle = sb.operator_state([("a", 1, [len(header)])], sb.inline(header + b"x"))
    subtask = sb.subtask(managed_operator=handle)
    (operator,) = read_savepoint(sb.write(tmp_path, [sb.operator([subtask])])).operators
    with pytest.raises(SavepointError, match=r"Money.* is not known.*, of state 'a'$"):
        list(operator.operator_state())


# --- serializers of the user's own ----------------------------------------------------------


class Money(Serializer):
    """Text of five letters."""

    name, snapshot, versions, size = "MONEY", MONEY, (7,), 5
    key_type = STRING

    def __init__(self, currency: str) -> None:
        self.java_class = currency
        super().__init__(currency)

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        assert version == 7
        currency = cursor.take(3).decode()
        cursor.take(256)
        return cls(currency)

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[str, int]:
        if pos + 5 > len(data):
            raise IndexError("too few bytes")
        return data[pos : pos + 5].decode(), pos + 5

    @staticmethod
    def write(value: str) -> bytes:
        return value.encode()


class Other(Money):
    """The same in capitals."""

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[str, int]:
        value, pos = Money.read(data, pos)
        return value.upper(), pos


def test_a_serializer_of_the_users_own(tmp_path: Path) -> None:
    """In two savepoints of the same path it may be another one, and neither is known elsewhere."""
    states = [STATES[1], sb.state("pairs", "VALUE", sb.tuple_of(MONEY_SNAPSHOT, INT_SNAPSHOT))]
    header = sb.keyed_header(INT_SNAPSHOT, states)
    data = header + content(3, [(KEY + VOID, b"money"), (KEY + VOID, b"money" + sb.i32(4))])
    keyed = sb.canonical(3, [len(header)], sb.inline(data))
    operators = {
        own: operator_of(tmp_path, keyed, serializers={MONEY: own} if own else None)
        for own in (Money, Other, None)
    }
    assert [*map(str, operators[Money].states)] == [
        "price: VALUE <INT, MONEY(EUR)>",
        "pairs: VALUE <INT, TUPLE(MONEY(EUR), INT)>",
    ]
    for own, money in ((Money, "money"), (Other, "MONEY")):
        for way in (lambda task: task, lambda task: pickle.loads(pickle.dumps(task))):
            (task,) = map(way, operators[own].tasks())
            assert [entry.value for entry in task.entries()] == [money, (money, 4)]
            assert hash(task) == hash(operators[own].tasks()[0])
    assert operators[Money] != operators[Other] != operators[None]
    values = [entry.value for entry in operators[None].entries()]
    assert values == [b"money", b"money" + sb.i32(4)]
    assert MONEY not in REGISTRY
    snapshot = sb.i32(2) + MONEY_SNAPSHOT
    made = Serializer.from_snapshot(snapshot, serializers={MONEY: Money})
    assert (made.decode(b"money"), made.encode("money")) == ("money", b"money")
    with pytest.raises(SavepointError, match="is not known"):
        Serializer.from_snapshot(snapshot)


class Box(Serializer):
    """Whatever is in it, whose snapshot is in its own."""

    name, versions = "BOX", (1,)

    def __init__(self, content: Serializer) -> None:
        self.parts = (content,)
        super().__init__(content)

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        return cls(cls.nested_in(cursor, depth))

    def bind(self, reads: Sequence[Read]) -> None:
        [self.read] = reads


def test_serializers_in_one_of_the_users_own() -> None:
    """Known ones and the user's own, as deep as Flink's own may nest."""
    serializers = {"a.Box": Box, MONEY: Money}

    def boxed(content: bytes, times: int) -> bytes:
        for _ in range(times):
            content = sb.snapshot("a.Box", 1, content)
        return sb.i32(2) + content

    box = Serializer.from_snapshot(boxed(MONEY_SNAPSHOT, 2), serializers=serializers)
    assert (str(box), box.decode(b"money")) == ("BOX(BOX(MONEY(EUR)))", "money")
    with pytest.raises(SavepointError, match=r"'com\.acme\.Money.*' is not known"):
        Serializer.from_snapshot(boxed(MONEY_SNAPSHOT, 2), serializers={"a.Box": Box})
    deepest = Serializer.from_snapshot(boxed(LONG_SNAPSHOT, MAX_DEPTH), serializers=serializers)
    assert deepest.decode(sb.i64(7)) == 7
    with pytest.raises(SavepointError, match=f"serializers nest more than {MAX_DEPTH} deep"):
        Serializer.from_snapshot(boxed(LONG_SNAPSHOT, MAX_DEPTH + 1), serializers=serializers)


def test_keys_of_the_users_own(tmp_path: Path) -> None:
    """With a key type they move to any max parallelism."""
    header = sb.keyed_header(MONEY_SNAPSHOT, [STATES[0]])
    key_group = assign_to_key_group("money", 128)
    data = header + content(key_group, [(b"money" + VOID, sb.i64(1))])
    folder = tmp_path / "savepoint"
    operator_of(folder, sb.canonical(key_group, [len(header)], sb.inline(data)))
    savepoint = read_savepoint(folder, serializers={MONEY: Money})
    change_max_parallelism(savepoint, 4096, tmp_path / "new")
    (entry,) = read_savepoint(tmp_path / "new").operators[0].entries()
    assert (entry.key, entry.key_group) == (b"money", assign_to_key_group("money", 4096))


def test_what_is_written_is_read_as_its_template(tmp_path: Path) -> None:
    """With the user's own serializers."""
    header = sb.keyed_header(INT_SNAPSHOT, STATES[:2])
    operator_of(tmp_path / "old", canonical(header))
    template = read_savepoint(tmp_path / "old", serializers={MONEY: Money})
    with SavepointWriter(tmp_path / "new", template=template) as writer:
        writer.add_operator(template.operators[0].operator_id).write("price", 7, "money")
    (entry,) = writer.savepoint().operators[0].entries()
    assert (entry.key, entry.value) == (7, "money")


def test_one_of_flinks_own_classes_can_be_read_otherwise(tmp_path: Path) -> None:
    class Hex(Serializer):
        name = "HEX"

        @classmethod
        def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
            return cls()

        @staticmethod
        def read(data: bytes, pos: int) -> tuple[str, int]:
            return data[pos : pos + 8].hex(), pos + 8

    header = sb.keyed_header(INT_SNAPSHOT, [STATES[0]])
    data = header + content(3, ENTRIES[:1])
    keyed = sb.canonical(3, [len(header)], sb.inline(data))
    name = Serializer.from_snapshot(sb.i32(2) + LONG_SNAPSHOT).snapshot
    operator = operator_of(tmp_path, keyed, serializers={name: Hex})
    assert [entry.value for entry in operator.entries()] == ["00" * 7 + "01"]


BAD: list[tuple[dict[str, Any], type[KeyGroupsError], str]] = [
    ({"serializers": [Money]}, InvalidTypeError, "serializers must be a mapping of classes, got"),
    ({"serializers": {1: Money}}, InvalidTypeError, "class in serializers must be a str, got 1"),
    ({"serializers": {MONEY: Money("EUR")}}, InvalidTypeError, r"for 'com\..*, got MONEY\(EUR\)"),
    (
        {"serializers": {MONEY: str}},
        InvalidTypeError,
        "derived from Serializer, KryoFields or KryoEnum for 'com",
    ),
    ({"serializers": {MONEY: Serializer}}, InvalidTypeError, "a class derived from Serializer"),
    ({"kryo_version": 3}, InvalidValueError, "kryo_version must be 2 or 5, got 3"),
    ({"kryo_version": 1}, InvalidValueError, "kryo_version must be from 2 to 5, got 1"),
    ({"kryo_version": 6}, InvalidValueError, "kryo_version must be from 2 to 5, got 6"),
    ({"kryo_version": "5"}, InvalidTypeError, "kryo_version"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), BAD)
def test_bad_arguments(
    arguments: dict[str, Any], error: type[KeyGroupsError], message: str
) -> None:
    with pytest.raises(error, match=message):
        Serializer.from_snapshot(sb.i32(2) + LONG_SNAPSHOT, **arguments)


# What the Output.writeString of flink-dist 1.20.5 and 2.3.0 writes for so many characters: the
# first byte and the last one, of "bb...ba".
KRYO_TEXTS = [
    *((kryo, length, "62", "e1") for kryo in (2, 5) for length in (2, 31, 32)),
    *((2, length, "62", "e1") for length in (33, 62, 63)),
    *((2, 64, "c101", "61"), (2, 65, "c201", "61")),
    *((5, 33, "a2", "61"), (5, 62, "bf", "61")),
    *((5, 63, "c001", "61"), (5, 64, "c101", "61"), (5, 65, "c201", "61")),
    *((2, 1, "82", "61"), (5, 1, "82", "61")),
]


@pytest.mark.parametrize(("kryo", "length", "first", "last"), KRYO_TEXTS)
def test_texts_of_kryo(kryo: int, length: int, first: str, last: str) -> None:
    text = "b" * (length - 1) + "a"
    maps = sb.utf("java.lang.String") + sb.optional_map({}) * 3
    name = f"{sb.JAVA}kryo.KryoSerializerSnapshot"
    snapshot = sb.i32(2) + sb.snapshot(name, 2, maps)
    serializer = Serializer.from_snapshot(snapshot, kryo_version=kryo)
    data = serializer.encode(text)
    head = serializer.encode("a").removesuffix(b"\x82a")  # the class
    body = text[1:-1] if first == "62" else text[:-1]
    assert data.hex() == head.hex() + first + body.encode().hex() + last
    assert serializer.decode(data) == text


def test_the_kryo_of_a_savepoint(tmp_path: Path) -> None:
    """Flink 1 wrote versions up to 4 with Kryo 2, Flink 2 from 5 on with Kryo 5."""
    for version, kryo in ((3, 2), (4, 2), (5, 5), (6, 5)):
        operators = [sb.operator([sb.subtask(version=version)], version=version)]
        (tmp_path / "_metadata").write_bytes(sb.metadata(operators, version=version))
        (operator,) = read_savepoint(tmp_path).operators
        assert operator._context.kryo_version == kryo


# Keys of the job's own class


class _OfBytes(Serializer):
    """A key of so many bytes, as Beam's coders write it."""

    versions = (1,)

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        return cls()

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[bytes, int]:
        end = pos + 1 + data[pos]
        if end > len(data):
            raise IndexError("a key that ends too early")
        return data[pos + 1 : end], end

    @staticmethod
    def write(value: bytes) -> bytes:
        return bytes([len(value)]) + value


class Coded(_OfBytes):
    """Flink keys by its ByteBuffer."""

    name, key_type = "CODED", BYTE_BUFFER


class Numbered(_OfBytes):
    """The bytes are an object of the job, whose hashCode is the sum of them, turned over."""

    name = "NUMBERED"

    @staticmethod
    def key_hash(key: bytes) -> int:
        return -sum(key)


class Wrong(Numbered):
    name = "WRONG"

    @staticmethod
    def key_hash(key: bytes) -> int:
        return 2**31


def keyed_by(folder: Path, cls: type[Serializer], hashes: dict[bytes, int]) -> Savepoint:
    """Write a savepoint with keys in the key groups of their hashes."""
    state = sb.state("count", "VALUE", LONG_SNAPSHOT)
    header = sb.keyed_header(sb.snapshot(MONEY, 1), [state])
    offsets, data = [0] * 128, header
    groups = {compute_key_group_for_key_hash(code, 128): key for key, code in hashes.items()}
    assert len(groups) == len(hashes)
    for group, key in sorted(groups.items()):
        offsets[group] = len(data)
        entry = (bytes([group, len(key)]) + key + b"\0", sb.i64(len(key)))
        data += sb.canonical_key_group([(0, [entry])])
    task = sb.subtask(managed_keyed=sb.canonical(0, offsets, sb.inline(data)))
    path = sb.write(folder, [sb.operator([task], uid="op")])
    return read_savepoint(path, serializers={MONEY: cls})


@pytest.mark.parametrize(
    ("cls", "hashes"),
    [
        # java.nio.ByteBuffer.hashCode, as it says of itself: the last byte first, from 1 on.
        (Coded, {b"ab": (31 + 98) * 31 + 97, b"\xff": 31 - 1, b"": 1}),
        (Numbered, {b"ab": -195, b"\xff": -255, b"": 0}),
    ],
)
def test_keys_whose_hash_is_told(
    cls: type[Serializer], hashes: dict[bytes, int], tmp_path: Path
) -> None:
    """They are looked up, verified, deleted, and moved to any max parallelism."""
    old = keyed_by(tmp_path / "old", cls, hashes)
    [operator] = old.operators
    assert {key: operator.get(key, "count") for key in hashes} == {key: len(key) for key in hashes}
    assert not old.verify().has_faults
    assert old.verify().operators[0].unverified == ()
    [report] = operator_reports(old)
    assert report.warnings == ()
    change_max_parallelism(old, 1000, tmp_path / "new")
    [moved] = read_savepoint(tmp_path / "new", serializers={MONEY: cls}).operators
    assert {entry.key: entry.key_group for entry in moved.entries()} == {
        key: compute_key_group_for_key_hash(code, 1000) for key, code in hashes.items()
    }
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "edited") as editor:
        editor.operator("op").delete_keys([b"ab"])
    [edited] = read_savepoint(tmp_path / "edited", serializers={MONEY: cls}).operators
    assert {entry.key for entry in edited.entries()} == hashes.keys() - {b"ab"}


def test_keys_whose_hash_is_told_wrong(tmp_path: Path) -> None:
    """A key in a key group that is not that of its hash is no key to move; nor is a wide hash."""
    old = keyed_by(tmp_path / "old", Numbered, {b"ab": -195, b"x": 5})
    [operator] = old.operators
    assert operator.get(b"x") == {}
    [count] = old.verify().operators[0].faults
    assert (count.kind, count.count, count.examples[0].key) == ("foreign_key_group", 1, b"x")
    with pytest.raises(SavepointError, match=r"of key group \d+ by its hash as NUMBERED"):
        change_max_parallelism(old, 1000, tmp_path / "new")
    wide = keyed_by(tmp_path / "wide", Wrong, {b"ab": -195})
    with pytest.raises(InvalidValueError, match="key_hash of WRONG must be from -2147483648 to"):
        wide.operators[0].get(b"ab")
    with pytest.raises(SavepointError, match="key_hash of WRONG must be from -2147483648 to"):
        change_max_parallelism(wide, 1000, tmp_path / "new")
