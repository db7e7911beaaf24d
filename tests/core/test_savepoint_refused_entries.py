"""What is no entry, no state and no operator of a savepoint that is written."""

from __future__ import annotations

import pickle
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.bytes.expected_savepoints import keys_by_group
from support.bytes.real_savepoints import point
from support.inside.savepoints import EntryEncoder, NewState, new_states
from support.inside.serializers import (
    KryoSerializer,
    ListSerializer,
    Simple,
    TtlAwareSerializer,
    TtlSerializer,
    read_int,
)

from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    ParallelismError,
    SavepointError,
    UnsupportedKeyTypeError,
)
from keygroups.savepoint import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    SavepointWriter,
    TtlValue,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.state_keys import BYTES
from keygroups.types import (
    BOOLEAN,
    BYTE,
    CHAR,
    DOUBLE,
    FLOAT,
    INT,
    LIST,
    LONG,
    MAP,
    PYFLINK,
    ROW,
    SET,
    SHORT,
    SQL_ROW,
    STRING,
    TUPLE,
    UUID,
    KeyType,
)

STATES: list[NewState] = [
    ValueStateDescriptor("count", LONG),
    ValueStateDescriptor("short", SHORT),
    ValueStateDescriptor("pair", TUPLE(STRING, INT)),
    ReducingStateDescriptor("sum", DOUBLE),
    ValueStateDescriptor("row", ROW(STRING)),
    ListStateDescriptor("tags", STRING),
    MapStateDescriptor("cities", STRING, LONG),
    MapStateDescriptor("notes", STRING, STRING),
    ValueStateDescriptor("seen", LONG, has_ttl=True),
    ListStateDescriptor("visits", STRING, has_ttl=True),
    MapStateDescriptor("last", STRING, STRING, has_ttl=True),
]
WRONG: Any = 0.5
NO_TIME = "last_access must be epoch milliseconds, as the .* has a time to live, got None"
A_TIME = "last_access must be None, as the .* has no time to live, got 5"
REFUSED: list[tuple[tuple[Any, ...], type[KeyGroupsError], str]] = [
    (("none", "a", 1), InvalidValueError, "state must be one of count, short, .*got 'none'"),
    ((5, "a", 1), InvalidTypeError, "state must be a str, got 5"),
    (("count", None, 1), InvalidValueError, "key is None"),
    (("count", 5, 1), InvalidTypeError, "key of type STRING must be a str, got 5"),
    (("count", "a", None), InvalidValueError, "value of VALUE state 'count' must not be None"),
    (("count", "a", "1"), InvalidTypeError, "value of VALUE state 'count': .*got '1'"),
    (("count", "a", True), InvalidTypeError, "value of VALUE state 'count': .*got True"),
    (("count", "a", 1.0), InvalidTypeError, "value of VALUE state 'count': .*got 1.0"),
    (("count", "a", [1]), InvalidTypeError, r"value of VALUE state 'count': .*got \[1\]"),
    (("count", "a", TtlValue(1, 1)), InvalidTypeError, "value of VALUE state 'count': "),
    (("count", "a", 2**63), InvalidValueError, "from -9223372036854775808 to .*got 92233720368"),
    (("short", "a", 2**15), InvalidValueError, "from -32768 to 32767, got 32768"),
    (("pair", "a", ("b", None)), InvalidValueError, "value of VALUE state 'pair': .*INT must not"),
    (("pair", "a", ("b",)), InvalidValueError, "must have 2 fields, got 1"),
    (("sum", "a", 1), InvalidTypeError, "value of REDUCING state 'sum': .*must be a float"),
    (("sum", "a", None), InvalidValueError, "value of REDUCING state 'sum' must not be None"),
    (("count", "a", 1, "k"), InvalidValueError, "user_key must be None in the VALUE.*got 'k'"),
    (("tags", "a", ["b"], "k"), InvalidValueError, "user_key must be None in the LIST.*got 'k'"),
    (("tags", "a", "b"), InvalidTypeError, "value of LIST state 'tags' must be a list, got 'b'"),
    (("tags", "a", ("b",)), InvalidTypeError, "value of LIST state 'tags' must be a list"),
    (("tags", "a", []), InvalidValueError, "value of LIST state 'tags' must have elements"),
    (("tags", "a", [None]), InvalidValueError, "value of LIST state 'tags' must not be None"),
    (("tags", "a", ["b", 5]), InvalidTypeError, "value of LIST state 'tags': .*got 5"),
    (("cities", "a", 1), InvalidValueError, "user key of MAP state 'cities' must not be None"),
    (("cities", "a", 1, 5), InvalidTypeError, "user key of MAP state 'cities': .*got 5"),
    (("cities", "a", None, "k"), InvalidValueError, "value of MAP state 'cities'.*None"),
    (("notes", "a", 5, "k"), InvalidTypeError, "value of MAP state 'notes': .*got 5"),
    (("count", "a", 1, None, 5), InvalidValueError, A_TIME),
    (("tags", "a", ["b"], None, 5), InvalidValueError, A_TIME),
    (("tags", "a", [TtlValue(5, "b")]), InvalidValueError, A_TIME),
    (("notes", "a", None, "k", 5), InvalidValueError, A_TIME),
    (("seen", "a", 1), InvalidValueError, NO_TIME),
    (("visits", "a", ["b"]), InvalidValueError, NO_TIME),
    (("visits", "a", [TtlValue(1_700_000_000_000, "b"), "c"]), InvalidValueError, NO_TIME),
    (("last", "a", None, "k"), InvalidValueError, NO_TIME),
    (("seen", "a", None, None, 5), InvalidValueError, "value of VALUE state 'seen' must not be"),
    (("seen", "a", 1, None, 2**63), InvalidValueError, "last_access must be from -92.*got 92"),
    (("seen", "a", 1, None, "now"), InvalidTypeError, "last_access must be an int, got 'now'"),
    (("visits", "a", [TtlValue(WRONG, "b")]), InvalidTypeError, "last_access must be an int"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), REFUSED)
def test_entries(
    arguments: Any, error: type[KeyGroupsError], message: str, tmp_path: Path
) -> None:
    """Whoever goes on without such an entry has the others."""
    folder = tmp_path / "savepoint"
    with SavepointWriter(folder) as writer:
        operator = writer.add_operator("by-string", STRING, STATES, 128, 3)
        operator.write("count", "a", 7)
        with pytest.raises(error, match=message):
            operator.write(*arguments)
        operator.write("short", "a", 8)
    entries = read_savepoint(folder).operators[0].entries()
    found = [(one.state, one.key, one.value) for one in entries]
    assert found == [("count", "a", 7), ("short", "a", 8)]


NOW = 1_700_000_000_123  # the clock of the test below
DAY = 86_400_000
LATEST = NOW + DAY
UNIT = (
    "last_access must be epoch milliseconds, from 1000000000000, in 2001, to {}, tomorrow, got {}"
)


@pytest.mark.parametrize("time", [10**12, NOW, LATEST])
def test_times_of_last_access(time: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: NOW / 1000)
    with SavepointWriter(tmp_path / "savepoint") as writer:
        operator = writer.add_operator("by-string", STRING, STATES, 128, 3)
        operator.write("seen", "a", 1, last_access=time)
        operator.write("visits", "a", [TtlValue(time, "b")])
        operator.write("last", "a", None, "k", time)
    entries = {
        one.state: one for one in read_savepoint(tmp_path / "savepoint").operators[0].entries()
    }
    assert entries["seen"].last_access == entries["last"].last_access == time
    assert entries["visits"].value == [TtlValue(time, "b")]


@pytest.mark.parametrize(
    "time",
    [NOW // 1000, NOW * 1000, 0, -1, 10**12 - 1, LATEST + 1, 2**63 - 1],
    ids=["seconds", "microseconds", "0", "-1", "2001", "tomorrow", "for ever"],
)
def test_times_that_are_no_milliseconds(
    time: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By seconds Flink hides a value as expired, by microseconds never."""
    monkeypatch.setattr("time.time", lambda: NOW / 1000)
    message = f"{UNIT.format(LATEST, time)}: pass allow_any_last_access=True if that is meant"
    with SavepointWriter(tmp_path / "savepoint") as writer:
        operator = writer.add_operator("by-string", STRING, STATES, 128, 3)
        for arguments in (
            ("seen", "a", 1, None, time),
            ("visits", "a", ["b"], None, time),
            ("visits", "a", [TtlValue(NOW, "b"), TtlValue(time, "b")]),
            ("last", "a", "v", "k", time),
        ):
            with pytest.raises(InvalidValueError, match=re.escape(message)):
                operator.write(*arguments)
        for encoder in (
            operator.task(0).encoder(),
            pickle.loads(pickle.dumps(operator.task(0))).encoder(),
        ):
            with pytest.raises(InvalidValueError, match=re.escape(message)):
                encoder.encode(8, "a", 1, last_access=time)
        any_time = writer.add_operator("any", STRING, STATES, 128, 3, allow_any_last_access=True)
        any_time.write("seen", "a", 1, last_access=time)
        encoded = any_time.task(0).encoder().encode(8, "a", 1, last_access=time)
        assert encoded.value[:8] == time.to_bytes(8, "big", signed=True)
    (entry,) = read_savepoint(tmp_path / "savepoint").operator("any").entries()
    assert entry.last_access == time


def test_what_allows_any_last_access_is_a_bool(tmp_path: Path) -> None:
    wrong: Any = "yes"
    with pytest.raises(InvalidTypeError, match="allow_any_last_access must be a bool, got 'yes'"):
        SavepointWriter(tmp_path / "s").add_operator(
            "a", STRING, COUNTS, 128, 1, allow_any_last_access=wrong
        )


@pytest.mark.parametrize(
    "key_type",
    [BOOLEAN, BYTE, SHORT, INT, LONG, FLOAT, DOUBLE, CHAR, TUPLE(STRING), ROW(STRING), LIST(LONG)],
    ids=str,
)
def test_types_without_a_null(key_type: KeyType, tmp_path: Path) -> None:
    """Flink's serializers of these throw a NullPointerException for it."""
    pair = ValueStateDescriptor("pair", TUPLE(key_type, STRING))
    with SavepointWriter(tmp_path / "savepoint") as writer:
        operator = writer.add_operator("by-string", STRING, [pair], 128, 3)
        with pytest.raises(InvalidValueError, match=f"a {re.escape(str(key_type))} must not be"):
            operator.write("pair", "a", (None, "b"))


def test_key_groups_out_of_order(tmp_path: Path) -> None:
    low, high = keys_by_group(128, 5, 90)
    folder = tmp_path / "savepoint"
    with SavepointWriter(folder) as writer:
        operator = writer.add_operator("by-string", STRING, STATES, 128, 3)
        operator.write("count", high, 1)
        with pytest.raises(InvalidValueError, match=r"got key '.*' of key group 5 after .*90"):
            operator.write("count", low, 1)
    assert [one.key for one in read_savepoint(folder).operators[0].entries()] == [high]


TWICE: list[tuple[list[tuple[Any, ...]], str]] = [
    ([("count", 1), ("count", 2)], "state 'count'"),
    ([("count", 1), ("short", 1), ("count", 1)], "state 'count'"),
    ([("tags", ["b"]), ("tags", ["c"])], "state 'tags'"),
    (
        [("cities", 1, "x"), ("cities", 1, "y"), ("cities", 2, "x")],
        "'cities' with the user key 'x'",
    ),
]


@pytest.mark.parametrize(("entries", "message"), TWICE)
@pytest.mark.parametrize("is_last", [False, True], ids=["within", "at the end"])
def test_the_same_entry_twice(
    entries: list[tuple[Any, ...]], message: str, is_last: bool, tmp_path: Path
) -> None:
    """Found when the key group ends; then there is no savepoint."""
    key, other = keys_by_group(128, 5, 6)

    def write() -> None:
        with SavepointWriter(tmp_path / "savepoint") as writer:
            operator = writer.add_operator("by-string", STRING, STATES, 128, 3)
            for state, *values in entries:
                operator.write(state, key, *values)
            if not is_last:
                operator.write("count", other, 1)

    with pytest.raises(InvalidValueError, match=f"must come once, got key '{key}' in .*{message}"):
        write()
    assert not list(tmp_path.iterdir())


def test_an_error_that_is_caught(tmp_path: Path) -> None:
    """Of an entry twice: the key group is lost, so there is no savepoint whoever goes on."""
    first, second, third = keys_by_group(128, 5, 6, 100)

    def write() -> None:
        with SavepointWriter(tmp_path / "savepoint") as writer:
            operator = writer.add_operator("by-string", STRING, STATES, 128, 3)
            operator.write("count", first, 1)
            operator.write("count", first, 2)
            with pytest.raises(InvalidValueError, match="must come once"):
                operator.write("count", second, 1)
            with pytest.raises(SavepointError, match="cannot be written after an error"):
                operator.write("count", third, 1)

    with pytest.raises(SavepointError, match="cannot be written after an error"):
        write()
    assert not list(tmp_path.iterdir())


# Operators and states

COUNTS: Sequence[NewState] = [ValueStateDescriptor("count", LONG)]
OPERATORS: list[tuple[tuple[Any, ...], type[KeyGroupsError], str]] = [
    (("", STRING, COUNTS, 128, 1), InvalidValueError, "uid must be .*, got ''"),
    (("there", STRING, COUNTS, 128, 1), InvalidValueError, "and new here, got 'there'"),
    ((5, STRING, COUNTS, 128, 1), InvalidTypeError, "uid must be a str, got 5"),
    (("a", "STRING", COUNTS, 128, 1), InvalidTypeError, "key_type must be a key type .*'STRING'"),
    (("a", SET(LONG), COUNTS, 128, 1), UnsupportedKeyTypeError, "an order that only Java has"),
    (("a", LIST(MAP(INT, INT)), COUNTS, 128, 1), UnsupportedKeyTypeError, "only Java has"),
    (("a", BYTES, COUNTS, 128, 1), UnsupportedKeyTypeError, "keys of BYTES cannot be written"),
    (("a", UUID, COUNTS, 128, 1), UnsupportedKeyTypeError, "key_type UUID cannot be written"),
    (
        ("a", SQL_ROW("ARRAY<INT>"), COUNTS, 128, 1),
        UnsupportedKeyTypeError,
        "snapshot of SQL_ROW",
    ),
    (("a", STRING, COUNTS, 0, 1), ParallelismError, "max_parallelism must be from 1 to 32768"),
    (("a", STRING, COUNTS, 32769, 1), ParallelismError, "max_parallelism must be .*got 32769"),
    (("a", STRING, COUNTS, 128, 129), ParallelismError, "parallelism must be from 1 to 128"),
    (("a", STRING, COUNTS, 128, 0), ParallelismError, "parallelism must be .*got 0"),
    (("a", STRING, COUNTS, "128", 1), ParallelismError, "max_parallelism must be an int"),
    (("a", STRING, [], 128, 1), InvalidValueError, "states must be 1 to 32767, got 0"),
    (("a", STRING, "count", 128, 1), InvalidTypeError, "states must be an iterable of descr"),
    (("a", STRING, None, 128, 1), InvalidTypeError, "states must be an iterable of descriptors"),
    (("a", None, 5, 128, 1), InvalidTypeError, "states must be an iterable of descriptors, got 5"),
    (("a", STRING, ["count"], 128, 1), InvalidTypeError, "must be descriptors .*got 'count'"),
    (("a", STRING, [*COUNTS, *COUNTS], 128, 1), InvalidValueError, "differ .*got 'count' twice"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), OPERATORS)
def test_operators(
    arguments: Any, error: type[KeyGroupsError], message: str, tmp_path: Path
) -> None:
    """Whoever goes on without such an operator has the others."""
    folder = tmp_path / "savepoint"
    with SavepointWriter(folder) as writer:
        writer.add_operator("there", STRING, COUNTS, 128, 1)
        with pytest.raises(error, match=message):
            writer.add_operator(*arguments)
    assert len(read_savepoint(folder).operators) == 1


@pytest.mark.parametrize(
    ("descriptor", "types"),
    [
        (ValueStateDescriptor, [LONG]),
        (AggregatingStateDescriptor, [LONG]),
        (MapStateDescriptor, [STRING, LONG]),
    ],
)
def test_a_time_to_live_is_given_by_name(descriptor: Any, types: list[Any]) -> None:
    assert descriptor("n", *types, has_ttl=True).has_ttl
    with pytest.raises(TypeError, match="positional arguments"):
        descriptor("n", *types, True)


def test_more_states_than_flink_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_states, "MOST_STATES", 2)
    writer = SavepointWriter(tmp_path / "savepoint")
    states = [ValueStateDescriptor(str(number), LONG) for number in range(3)]
    writer.add_operator("two", STRING, states[:2], 128, 1)
    with pytest.raises(InvalidValueError, match="states must be 1 to 2, got 3"):
        writer.add_operator("three", STRING, states, 128, 1)


class OnlyRead(Simple):
    name = "ONLY_READ"
    read = staticmethod(read_int)

    def contents(self) -> bytes:
        return b""


KINDS: dict[Any, str] = {  # the names that each has for the type of a value
    ValueStateDescriptor: "value_type",
    ReducingStateDescriptor: "value_type",
    AggregatingStateDescriptor: "accumulator_type",
    ListStateDescriptor: "value_type",
}
VALUE_TYPES: list[tuple[Any, type[KeyGroupsError], str]] = [
    ("LONG", InvalidTypeError, "must be a key type such as LONG or a Serializer, got 'LONG'"),
    (None, InvalidTypeError, "must be a key type such as LONG or a Serializer, got None"),
    (int, InvalidTypeError, "must be a key type such as LONG or .*, got <class 'int'>"),
    (KryoSerializer("a.B"), UnsupportedKeyTypeError, r"KRYO\(a.B\) cannot be written: "),
    (
        ListSerializer(OnlyRead()),
        UnsupportedKeyTypeError,
        r"LIST\(ONLY_READ\) cannot be written: a value of ONLY_READ cannot be written here",
    ),
    (TtlSerializer(BYTES), InvalidValueError, r"got TTL\(BYTES\): pass has_ttl=True"),
    (TtlAwareSerializer(TtlSerializer(BYTES), True), InvalidValueError, "pass has_ttl=True"),
    (TUPLE(STRING, UUID), UnsupportedKeyTypeError, "cannot be written: the serializer of .*UUI"),
    (ROW(INT, names=["a"]), UnsupportedKeyTypeError, "cannot be written: the serializer of .*ROW"),
    (PYFLINK(LONG), UnsupportedKeyTypeError, "it is the type of an operator's keys alone"),
    (
        SQL_ROW("ARRAY<INT>"),
        UnsupportedKeyTypeError,
        "cannot be written: the snapshot of .*SQL_ROW",
    ),
]


@pytest.mark.parametrize(("value_type", "error", "message"), VALUE_TYPES)
def test_types_of_states(value_type: Any, error: type[KeyGroupsError], message: str) -> None:
    for make, argument in KINDS.items():
        with pytest.raises(error, match=f"^{argument} .*{message}"):
            make("state", value_type)
    with pytest.raises(error, match=f"value_type .*{message}"):
        MapStateDescriptor("state", STRING, value_type)
    with pytest.raises(error, match=f"user_key_type .*{message}"):
        MapStateDescriptor("state", value_type, LONG)


NAMES: list[tuple[Any, type[KeyGroupsError], str]] = [
    (5, InvalidTypeError, "name of a state must be a str, got 5"),
    (None, InvalidTypeError, "name of a state must be a str, got None"),
    ("", InvalidValueError, "name of a state must not be empty"),
    ("default", InvalidValueError, "which Flink keeps for itself, got 'default'"),
    ("_timer_state/a", InvalidValueError, "which Flink keeps for itself, got '_timer_state/a'"),
    ("x" * 65_536, InvalidValueError, "name of a state must take at most 65535 bytes, got 65536"),
    ("\u00e9" * 32_768, InvalidValueError, "at most 65535 bytes, got 65536"),
    ("\0" * 32_768, InvalidValueError, "at most 65535 bytes, got 65536"),
    ("\U0001f600" * 10_923, InvalidValueError, "at most 65535 bytes, got 65538"),
]


@pytest.mark.parametrize(("name", "error", "message"), NAMES)
def test_names_of_states(name: Any, error: type[KeyGroupsError], message: str) -> None:
    for make in KINDS:
        with pytest.raises(error, match=message):
            make(name, LONG)
    with pytest.raises(error, match=message):
        MapStateDescriptor(name, STRING, LONG)


def test_a_time_to_live_is_there_or_not() -> None:
    for make, types in [*((make, [LONG]) for make in KINDS), (MapStateDescriptor, [STRING, LONG])]:
        with pytest.raises(InvalidTypeError, match="has_ttl must be a bool, got 86400000"):
            make("seen", *types, has_ttl=86_400_000)
        with pytest.raises(TypeError, match="positional argument"):
            make("seen", *types, True)


@pytest.mark.parametrize(
    "name", ["x" * 65_535, "\u00e9" * 32_767 + "a", "\0", "\U0001f600", "\ud800"], ids=len
)
def test_names_that_are_written(name: str, tmp_path: Path) -> None:
    with SavepointWriter(tmp_path / "savepoint") as writer:
        operator = writer.add_operator("uid", STRING, [ValueStateDescriptor(name, LONG)], 128, 1)
        operator.write(name, "a", 5)
    (entry,) = read_savepoint(tmp_path / "savepoint").operators[0].entries()
    assert (entry.state, entry.value) == (name, 5)


# Tasks, which others than the writer write


def test_an_encoder_of_what_only_the_job_can_write() -> None:
    """Keys of its own classes."""
    with pytest.raises(UnsupportedKeyTypeError, match=r"keys of POJO\(.*\) cannot be written"):
        EntryEncoder(point("2.3.0-pojo-canonical").read().operator("pojo").states, 128)
    with pytest.raises(InvalidValueError, match="states must be at least one, got none"):
        EntryEncoder([], 128)
