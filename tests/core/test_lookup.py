"""What a key has in keyed state, against all entries of real savepoints, and what is refused."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.job_points import JOB_POINTS
from support.bytes.real_savepoints import FORMATS, POINTS, Point, point
from support.bytes.snapshot_bytes import BYTES
from support.bytes.sst_bytes import VALUE, sst
from support.growth import count_steps
from support.inside.savepoints import Feed, SstFile, key_group_streams
from support.inside.savepoints import files as files_module
from support.inside.serializers import write_string

from keygroups import assign_to_key_group
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    SavepointError,
    UnsupportedKeyTypeError,
)
from keygroups.savepoint import (
    Operator,
    SavepointWriter,
    StateDescriptor,
    StateEntry,
    TtlValue,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.state_keys import CompositeKeySerializer
from keygroups.types import BIG_INT, SQL_ROW, TUPLE, KeyType
from keygroups.types import INT as INT_TYPE
from keygroups.types import LONG as LONG_TYPE
from keygroups.types import STRING as STRING_TYPE


def expected(state: StateDescriptor, entries: list[StateEntry]) -> Any:
    """Return the contents of one key and state, as the entries have them one by one."""
    if state.namespace_serializer.name != "VOID_NAMESPACE":
        by_namespace = defaultdict(list)
        for entry in entries:
            by_namespace[entry.namespace].append(entry._replace(namespace=None))
        return {namespace: of_one(state, item) for namespace, item in by_namespace.items()}
    return of_one(state, entries)


def of_one(state: StateDescriptor, entries: list[StateEntry]) -> Any:
    if state.kind == "PRIORITY_QUEUE":
        return sorted(entry.timestamp for entry in entries if entry.timestamp is not None)
    found = []
    for entry in entries:
        value = entry.value
        if entry.last_access is not None:
            value = TtlValue(entry.last_access, value)
        if state.kind != "MAP":
            (_,) = entries
            return value
        found.append((entry.user_key, value))
    try:
        return dict(found)
    except TypeError:  # a row with a map in it
        return found


def assert_looked_up(saved: Point, most: int) -> int:
    """Look up all keys of each operator, and at most so many one by one; return how many."""
    count = 0
    for operator in saved.read().operators:
        states = {state.name: state for state in operator.states}
        if not states or next(iter(states.values())).key_type is None:
            continue
        by_key: dict[str, dict[str, list[StateEntry]]] = {}
        keys = {}
        for entry in operator.entries():
            keys[repr(entry.key)] = entry.key
            by_key.setdefault(repr(entry.key), {}).setdefault(entry.state, []).append(entry)
        of_keys = [
            {state: expected(states[state], item) for state, item in by_key[name].items()}
            for name in keys
        ]
        for key, of_key in [*zip(keys.values(), of_keys)][:most]:
            assert operator.get(key) == of_key
            for state in states.values():
                assert operator.get(key, state) == of_key.get(state.name)
                break
            count += 1
        assert operator.get_many(keys.values()) == of_keys
        wanted = [*states][-1]
        of_state = [of_key.get(wanted) for of_key in of_keys[::-2]]
        assert operator.get_many([*keys.values()][::-2], wanted) == of_state
    return count


def test_keys_of_savepoints() -> None:
    assert assert_looked_up(point("2.3.0-heap-canonical"), 1) >= 7
    assert assert_looked_up(point("2.3.0-rocksinc-checkpoint"), 3) == 3


@pytest.mark.slow
@pytest.mark.parametrize("saved", [*POINTS, *FORMATS, *JOB_POINTS], ids=str)
def test_keys_of_every_point(saved: Point) -> None:
    try:
        assert_looked_up(saved, 20)
    except SavepointError as error:
        if "takes the job's own classes" not in str(error):
            raise


STRING, LONG = sb.simple("String"), sb.simple("Long")


def operator_of(
    folder: Path, key: bytes, states: list[bytes], content: bytes, key_group: int = 3
) -> Operator:
    """Return an operator with one key group."""
    header = sb.keyed_header(key, states)
    keyed = sb.canonical(key_group, [len(header)], sb.inline(header + content))
    task = sb.operator([sb.subtask(managed_keyed=keyed)])
    (operator,) = read_savepoint(sb.write(folder, [task])).operators
    return operator


def key_in(key_group: int, key_type: Any, *keys: Any) -> list[Any]:
    return [key for key in keys if assign_to_key_group(key, 128, key_type) == key_group]


def test_a_long_that_is_negative(tmp_path: Path) -> None:
    """As an Integer it would be of another key group: the savepoint says which one it is."""
    minus = next(n for n in range(-1, -1000, -1) if assign_to_key_group(n, 128, LONG_TYPE) == 3)
    assert assign_to_key_group(minus, 128, INT_TYPE) != 3
    content = sb.canonical_key_group([(0, [(b"\3" + sb.i64(minus) + b"\0", sb.i64(5))])])
    operator = operator_of(tmp_path, LONG, [sb.state("n", "VALUE", LONG)], content)
    assert operator.get(minus) == {"n": 5}
    assert operator.get(minus, "n") == 5
    assert operator.get(minus - 1) == {}
    assert operator.get(minus - 1, "n") is None
    assert operator.get(2**63 - 1, operator.states[0]) is None


def test_keys_of_another_type_are_refused() -> None:
    operator = point("2.3.0-heap-canonical").read().operator("by-long")
    for key in ("a", 1.0, True, None, b"", (1,)):
        with pytest.raises((InvalidTypeError, InvalidValueError), match=r"^key"):
            operator.get(key)
    with pytest.raises(InvalidValueError, match=r"^key.*9223372036854775808"):
        operator.get(2**63)
    with pytest.raises(InvalidValueError, match=r"state must be one of by-long, .*got 'x'"):
        operator.get(1, "x")
    source = point("2.3.0-heap-canonical").read().operator("src-by-int")
    with pytest.raises(InvalidValueError, match="which has none, got None"):
        source.get(1)


def test_many_keys_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order, absent ones and one twice among them; each key group is opened once."""
    opened: list[int] = []
    make = Feed.__init__

    def counted(feed: Feed, *arguments: Any) -> None:
        opened.append(arguments[1])  # the start of the key group
        make(feed, *arguments)

    monkeypatch.setattr(Feed, "__init__", counted)
    for name in ("2.3.0-heap-canonical", "2.3.0-heap-native"):
        operator = point(name).read().operator("by-string")
        keys = [*dict.fromkeys(entry.key for entry in operator.entries(["count"]))]
        asked = [keys[-1], "not there", *keys, "", keys[0]]
        one_by_one = [operator.get(key, "count") for key in asked]
        assert one_by_one[1] is None
        assert one_by_one[0] is not None
        opened[:] = []
        assert operator.get_many(iter(asked), "count") == one_by_one
        key_groups = {assign_to_key_group(key, 128, STRING_TYPE) for key in asked}
        assert len(opened) <= len(key_groups) < len(keys)
    assert operator.get_many([]) == operator.get_many((), "count") == []


def test_many_keys_are_each_found_in_their_own_key_group(tmp_path: Path) -> None:
    """An entry in the key group of another key is not there for Flink, nor for `get`."""
    texts = [*map(str, range(200))]
    first, second = (key_in(group, STRING_TYPE, *texts)[0] for group in (3, 4))
    header = sb.keyed_header(STRING, [sb.state("n", "VALUE", LONG)])
    groups = [
        [(bytes([group]) + write_string(key) + b"\0", sb.i64(group)) for key in (first, second)]
        for group in (3, 4)
    ]
    parts = [sb.canonical_key_group([(0, entries)]) for entries in groups]
    offsets = [len(header), len(header) + len(parts[0])]
    keyed = sb.canonical(3, offsets, sb.inline(header + b"".join(parts)))
    task = sb.operator([sb.subtask(managed_keyed=keyed)])
    (operator,) = read_savepoint(sb.write(tmp_path, [task])).operators
    assert [operator.get(key, "n") for key in (first, second)] == [3, 4]
    assert operator.get_many([first, second], "n") == [3, 4]


def test_many_keys_are_refused_as_one_is() -> None:
    operator = point("2.3.0-heap-canonical").read().operator("by-long")
    for keys in (5, None, "ab", b"ab"):
        with pytest.raises(InvalidTypeError, match=r"keys must be an iterable of keys of the"):
            operator.get_many(keys)  # type: ignore[arg-type]  # A user may do so.
    for key in ("a", 1.0, True, None, (1,), 2**63):
        with pytest.raises((InvalidTypeError, InvalidValueError), match=r"^key"):
            operator.get_many([1, key])
    with pytest.raises(InvalidValueError, match=r"state must be one of by-long, .*got 'x'"):
        operator.get_many([1], "x")


def test_keys_that_cannot_be_looked_up(tmp_path: Path) -> None:
    unknown = sb.snapshot("org.example.KeySerializerSnapshot", 1)
    for number, (key, message) in enumerate(
        [(unknown, "but by their bytes, as entries"), (sb.map_of(STRING, LONG), "only Java has")]
    ):
        content = sb.canonical_key_group([])
        operator = operator_of(
            tmp_path / str(number), key, [sb.state("n", "VALUE", LONG)], content
        )
        with pytest.raises(UnsupportedKeyTypeError, match=f"cannot be looked up.*{message}"):
            operator.get({})


def test_a_null_takes_room_in_a_key_of_sql(tmp_path: Path) -> None:
    """That of a long DECIMAL has 16 bytes there, and none in a row that is a value."""
    with SavepointWriter(tmp_path / "s") as writer:
        key_type, states = SQL_ROW("DECIMAL(38, 2)"), [ValueStateDescriptor("n", LONG_TYPE)]
        writer.add_operator("a", key_type, states, 128, 1).write("n", (None,), 5)
    (operator,) = read_savepoint(tmp_path / "s").operators
    assert operator.get((None,)) == {"n": 5}


BIG_INT_SNAPSHOT = sb.simple("BigInt")
WITH_A_ZERO = [  # the snapshot, the type, the key, what is before the zero in it and behind that
    (BIG_INT_SNAPSHOT, BIG_INT, 0, b"", b""),
    (sb.tuple_of(STRING, BIG_INT_SNAPSHOT), TUPLE(STRING_TYPE, BIG_INT), ("k", 0), b"\2k", b""),
    (sb.tuple_of(BIG_INT_SNAPSHOT, STRING), TUPLE(BIG_INT, STRING_TYPE), (0, "k"), b"", b"\2k"),
]


@pytest.mark.parametrize(("snapshot", "key_type", "key", "before", "behind"), WITH_A_ZERO)
def test_a_zero_in_other_bytes(
    snapshot: bytes, key_type: KeyType, key: Any, before: bytes, behind: bytes, tmp_path: Path
) -> None:
    """Flink writes the constant BigInteger.ZERO by a mark, and an equal number by its byte."""
    key_group = assign_to_key_group(key, 128, key_type)
    for number, zero in enumerate((sb.i32(1), sb.i32(5) + b"\0")):
        encoded = bytes([key_group]) + before + zero + behind + b"\0"
        content = sb.canonical_key_group([(0, [(encoded, sb.i64(number))])])
        states = [sb.state("n", "VALUE", LONG)]
        operator = operator_of(tmp_path / str(number), snapshot, states, content, key_group)
        assert operator.get(key, "n") == number


def test_damage_is_named(tmp_path: Path) -> None:
    (key,) = key_in(3, STRING_TYPE, *map(str, range(200)))[:1]
    prefix = b"\3" + write_string(key)
    states = [sb.state("n", "VALUE", LONG)]
    for number, (entries, message) in enumerate(
        [
            ([(prefix + b"\0", b"\0")], "is no entry"),
            ([(prefix + b"\0", sb.i64(5))] * 2, f"of n: VALUE .* key '{key}' has 2 entries"),
        ]
    ):
        content = sb.canonical_key_group([(0, entries)])
        operator = operator_of(tmp_path / str(number), STRING, states, content)
        with pytest.raises(SavepointError, match=message):
            operator.get(key)
        # What is of another key is not looked at.
        other = key_in(3, STRING_TYPE, *map(str, range(200)))[1]
        assert operator.get(other) == {}


def test_a_key_whose_namespace_is_not_known(tmp_path: Path) -> None:
    """Behind a String there is what only the job reads, and with it the lengths of both."""
    (key,) = key_in(3, STRING_TYPE, *map(str, range(200)))[:1]
    own = sb.snapshot("org.example.NamespaceSerializerSnapshot", 1)
    state = sb.state("n", "VALUE", LONG, namespace=own)
    content = sb.canonical_key_group([(0, [(b"\3" + write_string(key) + b"xyz", sb.i64(5))])])
    operator = operator_of(tmp_path, STRING, [state], content)
    with pytest.raises(SavepointError, match="the bytes do not say what is of key '157'"):
        operator.get(key)


def test_entries_of_other_keys_than_a_few_are_not_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of many keys of a key group that is left to who asked; each key group by itself."""
    operator = point("2.3.0-heap-canonical").read().operator("by-string")
    serializer = CompositeKeySerializer(128, STRING_TYPE)
    for name in ("count", "_timer_state/event_user-timers"):
        entries = [*operator.entries([name])]
        keys = sorted({serializer.serialize(entry.key)[:-1] for entry in entries})
        number_of = Counter(key[0] for key in keys)
        assert {1, 2} <= {*number_of.values()}
        for most in (1, 2):
            monkeypatch.setattr(key_group_streams, "_MOST_SOUGHT", most)
            for few in (keys, keys[::3], keys[:1]):
                sought = Counter(key[0] for key in few)
                tasks = [replace(task, keys=frozenset(few)) for task in operator.tasks([name])]
                present = [entry for task in tasks for entry in task.entries()]
                wanted = [
                    entry
                    for entry in entries
                    if serializer.serialize(entry.key)[:-1] in few
                    or sought[entry.key_group] > most
                ]
                assert present == wanted


def native_operator(folder: Path, header: bytes, states: list[list[bytes]]) -> Operator:
    """Return an operator with key group 3 in the hashmap backend's own format."""
    content = sb.i32(3)
    for number, entries in enumerate(states):
        content += number.to_bytes(2, "big") + sb.i32(len(entries)) + b"".join(entries)
    keyed = sb.native(3, [len(header)], sb.inline(header + content))
    task = sb.operator([sb.subtask(managed_keyed=keyed)])
    (operator,) = read_savepoint(sb.write(folder, [task])).operators
    return operator


TEXTS = ["", "a" * 200, "\u00e9", "\U0001f600", "\0", *map(str, range(4_000))]


@pytest.mark.parametrize("chunk", [1, 100, 1 << 18])
@pytest.mark.parametrize("of_value", ["STRING", "LONG"])
def test_each_key_of_the_hashmap_backend(
    chunk: int, of_value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a state that is not asked for, and wherever what is read at once ends."""
    keys = key_in(3, STRING_TYPE, *TEXTS, *("\u00e9" * n for n in range(60, 300)))
    assert {len(key.encode()) > 127 for key in keys} == {True, False}
    assert not all(map(str.isascii, keys))
    serializer = STRING if of_value == "STRING" else LONG
    values = [str(n) * (n % 3) if of_value == "STRING" else n for n in range(len(keys))]
    write: Any = write_string if of_value == "STRING" else sb.i64
    entries = [b"\0" + write_string(key) + write(value) for key, value in zip(keys, values)]
    states = [sb.state("n", "VALUE", serializer), sb.state("m", "VALUE", serializer)]
    header = sb.keyed_header(STRING, states)
    operator = native_operator(tmp_path, header, [entries, entries[::-1]])
    monkeypatch.setattr(files_module, "CHUNK", chunk)
    for key, value in [*zip(keys, values)][:: 2 if chunk > 1 else 9]:
        assert operator.get(key, "m") == value
        assert operator.get(key) == {"n": value, "m": value}
    absent = next(key for key in map(str, range(4_000, 9_999)) if key_in(3, STRING_TYPE, key))
    assert operator.get(absent) == {}


def test_keys_of_the_hashmap_backend_that_are_sought_one_by_one(tmp_path: Path) -> None:
    """A LIST, a value whose end is not known without reading it, a namespace of any size."""
    keys = key_in(3, STRING_TYPE, *map(str, range(900)))
    states = [
        sb.state("list", "LIST", sb.list_of(LONG)),
        sb.state("bytes", "VALUE", sb.snapshot(BYTES, 3)),
        sb.state("spaces", "VALUE", LONG, namespace=STRING),
    ]
    content = [
        [b"\0" + write_string(key) + sb.i32(1) + sb.i64(len(key)) for key in keys],
        [b"\0" + write_string(key) + sb.i32(1) + b"x" for key in keys],
        [write_string("of") + write_string(key) + sb.i64(7) for key in keys],
    ]
    operator = native_operator(tmp_path, sb.keyed_header(STRING, states), content)
    for key in keys:
        found = {"list": [len(key)], "bytes": b"x", "spaces": {"of": 7}}
        assert operator.get(key) == found


def test_timers_are_sorted_and_a_time_may_be_0(tmp_path: Path) -> None:
    """The hashmap backend has timers in any order, of other keys between; 1970 is no null."""
    first, second, *_ = key_in(3, STRING_TYPE, *map(str, range(900)))
    timers = sb.state("t", "", sb.timer_of(STRING, sb.NONE), backend_type=3)
    states = [timers, sb.state("ttl", "VALUE", sb.ttl_of(LONG))]
    times = [(7, first), (9, second), (-2, first), (0, first)]
    content = [
        [(time + 2**63).to_bytes(8, "big") + write_string(key) + b"\0" for time, key in times],
        [b"\0" + write_string(first) + sb.i64(0) + sb.i64(5)],
    ]
    operator = native_operator(tmp_path, sb.keyed_header(STRING, states), content)
    assert operator.get(first) == {"t": [-2, 0, 7], "ttl": TtlValue(0, 5)}
    assert operator.get(second) == {"t": [9]}


@pytest.mark.parametrize("chunk", [1, 100, 1 << 18])
@pytest.mark.parametrize("kind", ["VALUE", "MAP", "native"])
def test_each_key_of_entries_of_one_size(
    chunk: int, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And of a MAP with nulls, which are shorter, one after the other, far apart or all."""
    keys = key_in(3, LONG_TYPE, *range(6_000))
    assert len(keys) > 30
    absent = next(key for key in range(6_000, 9_999) if key_in(3, LONG_TYPE, key))
    is_map = kind == "MAP"
    value_type = sb.map_of(LONG, LONG) if is_map else LONG
    expected: dict[int, Any] = {}
    entries = []
    for number, key in enumerate(keys):
        start = b"\3" + sb.i64(key) + b"\0"
        if is_map:
            is_null = number % 2 if number < 10 else number == 28
            encoded = b"\1" if is_null else b"\0" + sb.i64(number)
            entries += [(start + sb.i64(user_key), encoded) for user_key in (0, key)]
            expected[key] = dict.fromkeys((0, key), None if is_null else number)
        else:
            value = absent if number == 3 else number
            entries.append((start, sb.i64(value)))
            expected[key] = value
    states = [sb.state(name, "MAP" if is_map else "VALUE", value_type) for name in "nm"]
    if kind == "native":
        of_state = [b"\0" + start[1:-1] + value for start, value in entries]
        operator = native_operator(tmp_path, sb.keyed_header(LONG, states), [of_state] * 2)
    else:
        content = sb.canonical_key_group([(0, entries), (1, entries)])
        operator = operator_of(tmp_path, LONG, states, content)
    monkeypatch.setattr(files_module, "CHUNK", chunk)
    monkeypatch.setattr(key_group_streams, "_IRREGULAR", 1)
    for key, value in [*expected.items()][:: 2 if chunk > 1 else 9]:
        assert operator.get(key, "m") == value
        assert operator.get(key) == {"n": value, "m": value}
    assert operator.get(absent) == {}


def test_timers_of_one_size_have_their_keys_behind_their_times(tmp_path: Path) -> None:
    keys = key_in(3, LONG_TYPE, *range(6_000))
    timers = [
        (b"\3" + (2**63 + number).to_bytes(8, "big") + sb.i64(key) + b"\0", b"")
        for number, key in enumerate(keys)
    ]
    state = sb.state("t", "", sb.timer_of(LONG, sb.NONE), backend_type=3)
    content = sb.canonical_key_group([(0, timers)])
    operator = operator_of(tmp_path, LONG, [state], content)
    assert len(keys) > 30
    assert [operator.get(key, "t") for key in keys] == [[number] for number in range(len(keys))]


def test_what_entries_of_other_keys_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted: parts of entries that are read, and lines that are run, for each of them."""
    texts = key_in(3, STRING_TYPE, *map(str, range(20_000)))
    header = sb.keyed_header(STRING, [sb.state("n", "VALUE", LONG)])
    entries = [b"\0" + write_string(key) + sb.i64(5) for key in texts]
    native = native_operator(tmp_path / "native", header, [entries])
    reads: list[None] = []
    read_sized = Feed.read_sized

    def counted(feed: Feed, read: Any) -> Any:
        reads.append(None)
        return read_sized(feed, read)

    with monkeypatch.context() as patch:
        patch.setattr(Feed, "read_sized", counted)
        assert native.get(texts[70]) == {"n": 5}
    assert len(reads) < 20 < len(texts) / 2

    sought = key_in(3, LONG_TYPE, *range(1_000))[0]
    long = sb.i64(5)
    for kind, value_type, behind, value in (
        ("VALUE", LONG, b"", long),
        ("MAP", sb.map_of(LONG, LONG), long, b"\0" + long),
    ):
        steps = []
        for count in (500, 1_500):
            members = [sought, *range(1_000, 1_000 + count)]
            of_count = [(b"\3" + sb.i64(key) + b"\0" + behind, value) for key in members]
            content = sb.canonical_key_group([(0, of_count)])
            states = [sb.state("n", kind, value_type)]
            operator = operator_of(tmp_path / f"{kind} {count}", LONG, states, content)
            steps.append(count_steps(lambda item=operator: item.get(sought)))  # type: ignore[misc]
        assert steps[1] - steps[0] < 1_000


@pytest.mark.parametrize("fields", [0, 1, 2])
def test_blocks_of_rocksdb_without_the_key_are_left_out(
    fields: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a STRING, and for a TUPLE of as many of them."""
    texts = [*map(str, range(9_999))]
    keys: list[Any] = texts if fields == 0 else [(text,) * fields for text in texts]
    key_type = TUPLE(*[STRING_TYPE] * fields) if fields else STRING_TYPE
    encoded = {
        write_string(key) if fields == 0 else b"".join(map(write_string, key)): key
        for key in key_in(3, key_type, *keys)
    }
    assert len(encoded) > 60
    members = [(b"\3" + key + b"\0", 5, VALUE, sb.i64(n)) for n, key in enumerate(sorted(encoded))]
    snapshot = sb.tuple_of(*[STRING] * fields) if fields else STRING
    header = sb.keyed_header(snapshot, [sb.state("n", "VALUE", LONG)])
    table = sst(members, "n", per_block=1)
    keyed = sb.rocksdb(3, 4, sb.inline(header), [("1.sst", sb.inline(table))])
    task = sb.operator([sb.subtask(managed_keyed=keyed)])
    (operator,) = read_savepoint(sb.write(tmp_path, [task])).operators
    blocks: list[int] = []
    entries_of = SstFile._entries

    def counted(
        table: SstFile, offset: int, size: int
    ) -> Iterator[tuple[list[bytes], list[bytes]]]:
        blocks.append(offset)
        return entries_of(table, offset, size)

    monkeypatch.setattr(SstFile, "_entries", counted)
    assert sum(1 for _ in operator.entries()) == len(encoded)
    of_all, blocks[:] = len(blocks), []
    assert operator.get(encoded[sorted(encoded)[30]]) == {"n": 30}
    assert len(blocks) <= of_all - len(encoded) + 2
    blocks[:] = []
    some = [encoded[key] for key in sorted(encoded)[50:20:-3]]
    assert operator.get_many(some, "n") == [*range(50, 20, -3)]
    assert len(blocks) <= of_all - len(encoded) + 2 * len(some) + 1 < of_all


def test_keys_of_rocksdb_whose_hash_only_the_job_has(tmp_path: Path) -> None:
    """A subclass of a Tuple may have a hashCode of its own, so that its key group is not known."""
    key = write_string("a")
    snapshot = sb.tuple_of(STRING, java_class="shop.Item")
    header = sb.keyed_header(snapshot, [sb.state("n", "VALUE", LONG)])
    table = sst([(b"\3" + key + b"\0", 5, VALUE, sb.i64(7))], "n")
    keyed = sb.rocksdb(3, 4, sb.inline(header), [("1.sst", sb.inline(table))])
    task = sb.operator([sb.subtask(managed_keyed=keyed)])
    (operator,) = read_savepoint(sb.write(tmp_path, [task])).operators
    assert operator.states[0].key_type is None
    assert operator.get(("a",)) == {"n": 7}
    assert operator.get_many([("b",), ("a",)], "n") == [None, 7]


@pytest.mark.parametrize(
    "name", ["2.3.0-heap-native", "2.3.0-rocksinc-checkpoint", "2.3.0-pojo-canonical"]
)
def test_keys_with_all_their_states(name: str) -> None:
    """Each key comes once, with what a look at it alone finds."""
    for operator in point(name).read().operators:
        if not operator.states:
            continue
        by_key = [*operator.entries_by_key()]
        assert len({repr(key) for key, _ in by_key}) == len(by_key)
        assert sum(1 for _ in operator.entries_by_key(key_groups=range(64))) <= len(by_key)
        assert {repr(key) for key, _ in by_key} == {repr(one.key) for one in operator.entries()}
        for key, contents in by_key[::7]:
            assert contents == operator.get(key)


def test_keys_that_are_not_told_apart_are_refused(tmp_path: Path) -> None:
    states = [sb.state("m", "MAP", sb.map_of(sb.simple("String"), sb.simple("Long")))]
    header = sb.keyed_header(sb.kryo_of("shop.Key"), states)
    entries = [(0, [(bytes([97, 1, 2, 3]) + b"\0\x02a", b"\0" + sb.i64(5))])]
    stream = sb.inline(header + sb.canonical_key_group(entries))
    task = sb.subtask(managed_keyed=sb.canonical(97, [len(header)], stream))
    sb.write(tmp_path, [sb.operator([task], uid="op")])
    operator = read_savepoint(tmp_path).operator("op")
    with pytest.raises(SavepointError, match=r"operator op: of m: MAP .* what is of the key"):
        list(operator.entries_by_key())


def test_several_states_are_named() -> None:
    operator = point("2.3.0-heap-canonical").read().operator("by-string")
    says = r"state must be one state, as each has columns of its own, got 2: 'count', 'label'"
    for states in (["count", "label"], ("count", "label")):
        with pytest.raises(InvalidTypeError, match=says):
            operator.to_arrow(states)  # type: ignore[arg-type]  # a user may do so
