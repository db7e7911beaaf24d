"""The bytes of a value, of each kind of state: as the hashmap backend has them, and framed.

Flink: ListDelimitedSerializer, RocksDBMapState, MapSerializer, TtlStateFactory.TtlSerializer; of
PyFlink's state BeamStateRequestHandler, which has arrays of bytes, each behind its size.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import pytest
from support.bytes import savepoint_bytes as sb
from support.inside.savepoints import StoredMapValue, stored_value
from support.inside.serializers import TRUNCATED, VOID_NAMESPACE

from keygroups.errors import InvalidTypeError, InvalidValueError, UnsupportedKeyTypeError
from keygroups.savepoint import Serializer, StateDescriptor
from keygroups.savepoint._state.layouts import has_key_bytes, layout_of
from keygroups.savepoint.values import Some, TtlValue


def serializer(snapshot: bytes) -> Serializer:
    return Serializer.from_snapshot(b"\0\0\0\2" + snapshot)


SHORT, INT, LONG, TEXT = (
    serializer(sb.simple(name)) for name in ("Short", "Int", "Long", "String")
)
BOOLEAN, BYTE, DOUBLE = (serializer(sb.simple(name)) for name in ("Boolean", "Byte", "Double"))
OF_JOB = serializer(sb.kryo_of("x.Secret"))
SUBCLASS = serializer(sb.pojo_of("x.P", {"id": sb.simple("Int")}))
UNREAD = b"\4" + sb.utf("x.Q") + b",1,"  # a subclass that no snapshot has
FIVE, SIX, NINE = sb.i64(5), sb.i64(6), sb.i64(9)


def state(kind: str, value: Serializer, has_ttl: bool = False, is_python: bool = False) -> Any:
    user_key = TEXT if kind == "MAP" else None
    return StateDescriptor("s", kind, TEXT, INT, value, user_key, has_ttl, is_python)


class Case(NamedTuple):
    """Bytes on the heap and framed, the value, its last access, and what `splitter` gives."""

    state: StateDescriptor
    native: bytes
    framed: bytes
    value: Any
    last_access: int | None
    split: tuple[Any, Any]


CASES = [
    Case(state("VALUE", SHORT), b"\1\2", b"\1\2", 258, None, (b"", b"\1\2")),
    Case(state("REDUCING", TEXT, True), FIVE + b"\3ab", FIVE + b"\3ab", "ab", 5, (FIVE, b"\3ab")),
    Case(
        state("LIST", SHORT),
        sb.i32(2) + b"\0\1\1\2",
        b"\0\1,\1\2",
        [1, 258],
        None,
        (None, b"\0\1,\1\2"),
    ),
    Case(
        state("LIST", TEXT, True),
        sb.i32(3) + FIVE + b"\2a" + SIX + b"\3,," + NINE + b"\1",
        FIVE + b"\2a," + SIX + b"\3,,," + NINE + b"\1",
        [TtlValue(5, "a"), TtlValue(6, ",,"), TtlValue(9, "")],
        None,
        (FIVE + b"\2a," + SIX + b"\3,,," + NINE + b"\1", [b"\2a", b"\3,,", b"\1"]),
    ),
    Case(
        state("VALUE", LONG, is_python=True),
        sb.i32(1, 8) + SIX,
        sb.i32(8) + SIX,
        6,
        None,
        (b"", sb.i32(8) + SIX),
    ),
    Case(
        state("VALUE", LONG, has_ttl=True, is_python=True),
        sb.i32(1) + FIVE + sb.i32(8) + SIX,
        FIVE + sb.i32(8) + SIX,
        6,
        5,
        (FIVE, sb.i32(8) + SIX),
    ),
    Case(
        state("LIST", SHORT, is_python=True),
        sb.i32(2, 4) + b"\0\1\0\2" + sb.i32(2) + b"\0\3",
        sb.i32(4) + b"\0\1\0\2," + sb.i32(2) + b"\0\3",
        [1, 2, 3],
        None,
        (None, b"\0\1\0\2\0\3"),
    ),
    Case(
        state("LIST", SHORT, has_ttl=True, is_python=True),
        sb.i32(2) + FIVE + sb.i32(4) + b"\0\1\0\2" + SIX + sb.i32(2) + b"\0\3",
        FIVE + sb.i32(4) + b"\0\1\0\2," + SIX + sb.i32(2) + b"\0\3",
        [TtlValue(5, 1), TtlValue(5, 2), TtlValue(6, 3)],
        None,
        (
            FIVE + sb.i32(4) + b"\0\1\0\2," + SIX + sb.i32(2) + b"\0\3",
            b"\0\1\0\2\0\3",
        ),
    ),
]


@pytest.mark.parametrize("case", CASES)
def test_bytes_of_values(case: Case) -> None:
    """Read from the middle of others, as an entry on the heap stands among others."""
    stored = stored_value(case.state)
    framer = stored.framer()
    assert framer is not None
    assert framer(b"zz" + case.native + b"yy", 2) == (case.framed, 2 + len(case.native))
    assert stored.reader()(b"zz" + case.framed, 2) == (case.value, case.last_access)
    assert stored.splitter()(case.framed) == case.split
    with pytest.raises((IndexError, struct.error, ValueError)):
        stored.reader()(case.framed + b"z", 0)


def test_parts_of_values() -> None:
    """By their names in StateEntry, where nothing else is between them."""
    for has_ttl, names in ((False, ["value"]), (True, ["last_access", "value"])):
        for kind in ("VALUE", "REDUCING", "MAP"):
            parts = stored_value(state(kind, SHORT, has_ttl)).parts()
            assert parts is not None
            assert [name for name, _ in parts] == names
        assert stored_value(state("LIST", SHORT, has_ttl)).parts() is None


@pytest.mark.parametrize("case", [case for case in CASES if not case.state.is_python])
def test_bytes_of_values_are_written(case: Case) -> None:
    stored = stored_value(case.state)
    assert stored.writer(True)(case.value, case.last_access) == case.framed


@pytest.mark.parametrize(
    ("kind", "has_ttl", "last_access", "old", "new"),
    [
        ("VALUE", False, 9, b"\1\2", NINE + b"\1\2"),
        ("VALUE", True, 9, FIVE + b"\1\2", NINE + b"\1\2"),
        ("VALUE", True, None, FIVE + b"\1\2", b"\1\2"),
        ("LIST", False, 9, b"\0\1,\1\2", NINE + b"\0\1," + NINE + b"\1\2"),
        ("LIST", True, 9, FIVE + b"\0\1," + SIX + b"\1\2", NINE + b"\0\1," + NINE + b"\1\2"),
        ("LIST", True, None, FIVE + b"\0\1," + SIX + b"\1\2", b"\0\1,\1\2"),
        ("MAP", False, 9, b"\0\1\2", b"\0" + NINE + b"\1\2"),
        ("MAP", True, 9, b"\0" + FIVE + b"\1\2", b"\0" + NINE + b"\1\2"),
        ("MAP", True, None, b"\0" + FIVE + b"\1\2", b"\0\1\2"),
        ("MAP", False, None, b"\1", b"\1"),
    ],
)
def test_other_times_of_last_access(
    kind: str, has_ttl: bool, last_access: int | None, old: bytes, new: bytes
) -> None:
    """Each value has the new one, none at all where the time to live is taken away."""
    assert stored_value(state(kind, SHORT, has_ttl)).retimed(last_access)(old) == new


@pytest.mark.parametrize("last_access", [9, None])
@pytest.mark.parametrize(
    ("kind", "old"),
    [("VALUE", FIVE[:7]), ("VALUE", b""), ("LIST", FIVE[:7]), ("MAP", b"\0" + FIVE[:7])],
)
def test_other_times_of_bytes_that_end_before_a_value(
    kind: str, old: bytes, last_access: int | None
) -> None:
    """Whoever asks says of which state they are: what is left of them is not dropped."""
    with pytest.raises((*TRUNCATED, ValueError)):
        stored_value(state(kind, SHORT, True)).retimed(last_access)(old)


OPTION = serializer(
    sb.composite(
        "org.apache.flink.api.scala.typeutils.ScalaOptionSerializerSnapshot", 2, [sb.simple("Int")]
    )
)


@pytest.mark.parametrize(
    ("value", "has_ttl", "last_access", "old", "new"),
    [
        (TEXT, False, 9, b"\1", b"\0" + NINE + b"\0"),
        (TEXT, False, 9, b"\1\0", b"\0" + NINE + b"\0"),
        (TEXT, False, 9, b"\2\0", b"\0" + NINE + b"\0"),
        (TEXT, True, 9, b"\0" + FIVE + b"\0", b"\0" + NINE + b"\0"),
        (TEXT, True, None, b"\0" + FIVE + b"\0", b"\1"),
        (TEXT, True, None, b"\0" + FIVE + b"\1", b"\0\1"),
        (OPTION, True, None, b"\0" + FIVE + b"\0", b"\0\0"),
        (OPTION, False, 9, b"\0\0", b"\0" + NINE + b"\0"),
    ],
)
def test_other_times_of_nulls_in_a_map(
    value: Serializer, has_ttl: bool, last_access: int | None, old: bytes, new: bytes
) -> None:
    """Without a time the mark says that it is null, with one it is the value behind the time.

    An Option without a value is none.
    """
    assert stored_value(state("MAP", value, has_ttl)).retimed(last_access)(old) == new


def test_a_null_of_numbers_in_a_map_has_no_time() -> None:
    with pytest.raises(InvalidValueError, match="a SHORT writes none"):
        stored_value(state("MAP", SHORT)).retimed(9)(b"\1")


def map_value(value: Serializer, has_ttl: bool = False) -> StoredMapValue:
    stored = stored_value(state("MAP", value, has_ttl))
    assert isinstance(stored, StoredMapValue)
    return stored


@pytest.mark.parametrize(
    ("has_ttl", "native", "framed", "value", "last_access", "split"),
    [
        (False, b"\0\1\2", b"\0\1\2", 258, None, (b"", b"\0\1\2")),
        (False, b"\1", b"\1", None, None, (None, b"\1")),
        (True, b"\0" + FIVE + b"\1\2", b"\0" + FIVE + b"\1\2", 258, 5, (FIVE, b"\0\1\2")),
        (True, b"\1", b"\1", None, None, (None, b"\1")),
    ],
)
def test_bytes_of_values_in_maps(
    has_ttl: bool,
    native: bytes,
    framed: bytes,
    value: int | None,
    last_access: int | None,
    split: tuple[bytes | None, bytes],
) -> None:
    """Behind a user key, here "ab", which RocksDB has at the end of an entry's key."""
    stored = map_value(SHORT, has_ttl)
    data, end = b"zz\3ab" + native + b"yy", 5 + len(native)
    read_item, frame_item = stored.item_reader(TEXT), stored.item_framer(TEXT)
    assert read_item is not None
    assert frame_item is not None
    assert read_item(data, 2) == (("ab", value, last_access), end)
    assert frame_item(data, 2) == ((b"\3ab", framed), end)
    assert stored.reader()(b"zz" + framed, 2) == (value, last_access)
    assert stored.splitter()(framed) == split
    if value is not None:
        assert stored.writer(True)(value, last_access) == framed


def test_nulls_in_maps() -> None:
    """The hashmap backend writes the null of its type too, which is left out; no bytes are none.

    With a time to live the null is behind the time.
    """
    assert map_value(TEXT).splitter()(b"\1\0") == (None, b"\1")
    assert map_value(TEXT).splitter()(b"") == (b"", b"")
    assert map_value(TEXT).reader()(b"\1\0", 0) == (None, None)
    assert map_value(TEXT, has_ttl=True).writer(True)(None, 5) == b"\0" + FIVE + b"\0"
    assert map_value(TEXT).writer(True)(None, None) == b"\1"
    assert map_value(OPTION).writer(True)(None, None) == b"\0\0"
    assert stored_value(state("VALUE", OPTION)).writer(True)(None, None) == b"\0"
    assert map_value(OPTION).writer(True)(Some(7), None) == b"\0\1" + sb.i32(7)


@pytest.mark.parametrize(
    ("state", "framed", "value", "last_access", "split"),
    [
        (state("VALUE", OF_JOB), b"any", b"any", None, (b"", b"any")),
        (state("VALUE", OF_JOB, True), FIVE + b"any", b"any", 5, (FIVE, b"any")),
        (state("VALUE", SUBCLASS), UNREAD, UNREAD, None, (b"", UNREAD)),
        (state("VALUE", SUBCLASS, True), FIVE + UNREAD, UNREAD, 5, (FIVE, UNREAD)),
        (state("LIST", OF_JOB), b"a,b", b"a,b", None, (None, b"a,b")),
        (state("LIST", OF_JOB, True), b"a,b", b"a,b", None, (None, b"a,b")),
        (state("LIST", SUBCLASS), UNREAD, UNREAD, None, (None, UNREAD)),
        (state("LIST", SUBCLASS, True), FIVE + UNREAD, FIVE + UNREAD, None, (None, FIVE + UNREAD)),
        (state("MAP", OF_JOB), b"\0any", b"any", None, (b"", b"\0any")),
        (state("MAP", OF_JOB, True), b"\0" + FIVE + b"any", b"any", 5, (FIVE, b"\0any")),
    ],
)
def test_what_only_the_job_reads(
    state: StateDescriptor,
    framed: bytes,
    value: bytes,
    last_access: int | None,
    split: tuple[Any, Any],
) -> None:
    """Its bytes stay as they are, of a list all of them."""
    stored = stored_value(state)
    assert stored.reader()(framed, 0) == (value, last_access)
    assert stored.splitter()(framed) == split
    if state.value_serializer is OF_JOB:
        assert stored.framer() is None
    if isinstance(stored, StoredMapValue):
        assert stored.item_reader(TEXT) is None
        assert stored.item_framer(TEXT) is None


@pytest.mark.parametrize("count", [0, 2])
def test_a_value_of_pyflink_is_one_array(count: int) -> None:
    framer = stored_value(state("VALUE", LONG, is_python=True)).framer()
    assert framer is not None
    with pytest.raises(ValueError, match=f"a value of {count} arrays of bytes"):
        framer(sb.i32(count, 8) + SIX, 0)


def test_elements_are_between_commas() -> None:
    with pytest.raises(ValueError, match="not separated by commas"):
        stored_value(state("LIST", SHORT)).reader()(b"\0\1;\0\2", 0)


@pytest.mark.parametrize("kind", ["VALUE", "AGGREGATING", "MAP"])
@pytest.mark.parametrize(
    ("value", "passed", "encoded"),
    [
        (BOOLEAN, True, b"\1"),
        (BYTE, -1, b"\xff"),
        (SHORT, 258, b"\1\2"),
        (INT, 7, sb.i32(7)),
        (LONG, 7, sb.i64(7)),
        (DOUBLE, 1.0, b"\x3f\xf0" + bytes(6)),
        (TEXT, "a", b"\2a"),
    ],
)
def test_values_of_their_class_alone_are_written(
    kind: str, value: Serializer, passed: Any, encoded: bytes
) -> None:
    """Neither True as a number, nor a number as True; and a time only where one is kept."""
    mark = b"\0" * (kind == "MAP")
    write, write_timed = (
        stored_value(state(kind, value, has_ttl)).writer(False) for has_ttl in (False, True)
    )
    assert write(passed, None) == mark + encoded
    time = 1_700_000_000_000
    assert write_timed(passed, time) == mark + sb.i64(time) + encoded
    for other in (1 if value is BOOLEAN else True, b"a", [passed]):
        with pytest.raises(InvalidTypeError, match=f"value of {kind} state 's': value of type"):
            write(other, None)
    with pytest.raises(InvalidValueError, match="last_access must be None, as the"):
        write(passed, time)
    with pytest.raises(InvalidValueError, match="last_access must be epoch milliseconds, as the"):
        write_timed(passed, None)
    with pytest.raises(InvalidValueError, match="allow_any_last_access=True if that is meant"):
        write_timed(passed, 5)
    if kind != "MAP":
        with pytest.raises(InvalidValueError, match="must not be None: Flink keeps no null there"):
            write(None, None)


def test_lists_that_are_written() -> None:
    """With elements, each of which has the time of the list or its own."""
    write = stored_value(state("LIST", SHORT, True)).writer(True)
    assert write([TtlValue(5, 1), 2], 6) == FIVE + b"\0\1," + SIX + b"\0\2"
    with pytest.raises(InvalidValueError, match="must have elements: an empty list is no entry"):
        write([], 6)
    with pytest.raises(InvalidValueError, match="must not be None"):
        stored_value(state("LIST", TEXT)).writer(True)([None], None)
    chunks = stored_value(state("LIST", SHORT, True, True)).writer(True)
    expected = FIVE + sb.i32(2) + b"\0\1," + SIX + sb.i32(2) + b"\0\2"
    assert chunks([TtlValue(5, 1), 2], 6) == expected


def test_who_declared_a_state_is_no_part_of_its_repr() -> None:
    declared, undeclared = (
        state("VALUE", SHORT, is_python=is_python) for is_python in (True, False)
    )
    assert repr(declared) == repr(undeclared)


OF_KRYO = serializer(sb.kryo_of("java.util.ArrayList"))


def test_user_keys_that_have_other_bytes_in_java_are_not_written() -> None:
    """RocksDB finds an entry by its bytes, of which equal lists of Kryo have several."""
    of_lists = StateDescriptor("s", "MAP", TEXT, VOID_NAMESPACE, SHORT, OF_KRYO)
    encode = layout_of(of_lists).encoder(allow_any_last_access=False)
    with pytest.raises(UnsupportedKeyTypeError, match=r"^user key of MAP state 's'"):
        encode(b"\2a", None, ["a"], 258, None, None)
    of_text = StateDescriptor("s", "MAP", TEXT, VOID_NAMESPACE, SHORT, TEXT)
    encode = layout_of(of_text).encoder(allow_any_last_access=False)
    assert encode(b"\2a", None, "b", 258, None, None) == (b"\2a\0\2b", b"\0\1\2")


def test_a_key_of_a_subclass_is_its_bytes() -> None:
    """They are the key, and stand once, where other keys have theirs beside them."""
    key = serializer(sb.pojo_of("x.P", {"list": sb.kryo_of("java.util.ArrayList")}))
    of_pojo = StateDescriptor("s", "VALUE", key, VOID_NAMESPACE, SHORT)
    assert has_key_bytes(of_pojo)
    read = layout_of(of_pojo).decoding(0).framed
    entry = read(3, UNREAD + b"\0", b"\1\2")
    assert (entry.key, entry.key_bytes, entry.value) == (UNREAD, None, 258)
    null = b"\1"  # POJO: a mark that it is null
    entry = read(3, null + b"\0", b"\1\2")
    assert (entry.key, entry.key_bytes) == (None, null)
