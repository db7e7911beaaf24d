"""Headers of keyed state: every snapshot of a serializer, and what is refused by name.

The bytes are written by `savepoint_bytes.py` and `java_bytes.py`, as Flink's snapshot
classes and the Java Object Serialization Specification have them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from support.bytes import java_bytes as java
from support.bytes import savepoint_bytes as sb
from support.bytes.snapshot_bytes import (
    BYTES,
    ENUM,
    INT,
    LONG,
    SNAPSHOTS,
    STRING,
    WINDOW,
    external,
    row,
    row_data,
)
from support.inside.savepoints import (
    CHUNK,
    OpenStream,
    StreamHandle,
    header_cursor,
    read_keyed_header,
    write_keyed_header,
)
from support.inside.savepoints import feed as feed_module
from support.inside.serializers import (
    Cursor,
    JavaEnum,
    JavaObject,
    ReadingContext,
    read_java_object,
    read_logical_type,
    read_serializer,
    read_versioned_snapshot,
)

from keygroups import types
from keygroups.errors import SavepointError
from keygroups.savepoint import StateDescriptor
from keygroups.state_keys import Serializer


def read_snapshot(data: bytes) -> Serializer:
    cursor = Cursor(data, "a file", 100)
    found = read_versioned_snapshot(cursor)
    assert cursor.left == 0
    return found


@pytest.mark.parametrize("number", range(len(SNAPSHOTS)))
def test_snapshots(number: int) -> None:
    data, name = SNAPSHOTS[number]
    assert str(read_snapshot(data)) == name


@pytest.mark.parametrize(
    ("now", "name"),
    [
        (sb.list_of(INT), "LIST(INT)"),
        (sb.map_of(INT, INT), "MAP(INT, INT)"),
        (sb.ttl_of(INT), "TTL(INT)"),
        (sb.timer_of(INT, sb.NONE), "TIMER(INT, VOID_NAMESPACE)"),
        (sb.tuple_of(INT), "TUPLE(INT)"),
    ],
)
def test_before_the_mark_of_composites(now: bytes, name: str) -> None:
    """Version 2 of a composite's snapshot has no 911108."""
    old = now.replace(sb.i32(3, 911108), sb.i32(2), 1)
    assert str(read_snapshot(old)) == name


def test_optional_map_skips_keys() -> None:
    """A map's key may be there in its own bytes, which only Flink needs."""
    keyed = sb.optional_map({"id": INT}).replace(b"\x02id\0", b"\x02id\1" + sb.i32(3) + b"abc")
    contents = sb.utf("a.P") + keyed + sb.optional_map({}) * 2
    found = read_snapshot(sb.snapshot(f"{sb.JAVA}PojoSerializerSnapshot", 2, contents))
    assert str(found) == "POJO(a.P, id INT)"


def deep_list(depth: int) -> bytes:
    return sb.list_of(deep_list(depth - 1)) if depth else INT


BAD_SNAPSHOTS = [
    (sb.snapshot("a.Other", 1), "the serializer with the snapshot 'a.Other' is not known"),
    (sb.snapshot(BYTES, 4), "version of .*BytePrimitive.* 4 is not known, only 2, 3"),
    (sb.snapshot(f"{sb.BASE}ListSerializerSnapshot", 1), "version of .* 1 is not known"),
    (sb.composite(f"{sb.BASE}ListSerializerSnapshot", 2, [INT]), "outer version 2 is not known"),
    (sb.composite(f"{sb.BASE}ListSerializerSnapshot", 1, []), "nested serializers 0 is not"),
    (sb.list_of(INT).replace(sb.i32(911108), sb.i32(7)), "mark of a composite serializer 7"),
    (sb.list_of(INT).replace(sb.i32(1333245), sb.i32(7)), "mark of nested serializers 7"),
    (sb.list_of(INT).replace(sb.i32(1333245, 1), sb.i32(1333245, 2)), "version of nested"),
    (external(INT).replace(sb.nested([INT]), sb.nested([INT, INT])), "nested serializers 2"),
    (row(4, INT, kind=b"\2"), "2 is neither true nor false"),
    (sb.kryo_of("a.B").replace(b"\x04\xf2", b"\x05\xf2"), "a map of a POJO's or Kryo's"),
    (deep_list(101), "serializers nest more than 50 deep"),
    (row_data(java.logical_type("SYMBOL")), "logical type SYMBOL is not known"),
]


@pytest.mark.parametrize("number", range(len(BAD_SNAPSHOTS)))
def test_refused_snapshots(number: int) -> None:
    data, message = BAD_SNAPSHOTS[number]
    with pytest.raises(SavepointError, match=rf"a file, offset \d+: .*{message}"):
        read_snapshot(data)


@pytest.mark.parametrize(
    ("data", "wrong", "message"),
    [
        (sb.kryo_of("a.B"), sb.i64(0x4F2C69A3D70), "a map of a POJO's or Kryo's"),
        (row(4, INT, kind=b"\1"), b"\1" + sb.i32(1333245), "121 is neither true nor false"),
    ],
)
def test_what_is_wrong_is_found_where_it_begins(data: bytes, wrong: bytes, message: str) -> None:
    place = data.index(wrong)
    broken = data[:place] + b"y" + data[place + 1 :]
    with pytest.raises(SavepointError, match=f"offset {100 + place}: {message}"):
        read_snapshot(broken)


def test_version_of_a_serializer_in_a_header() -> None:
    with pytest.raises(SavepointError, match="version of a serializer's snapshot 1"):
        read_serializer(Cursor(sb.i32(1) + INT, "a file"))


# Logical types


ROW_FIELDS = java.instance(
    "java.util.Arrays$ArrayList",
    [
        (
            "[",
            "a",
            b"\x75"
            + java.class_of("[Lorg.apache.flink.RowField;")
            + sb.i32(2)
            + b"".join(
                java.instance("RowField", [("L", "type", java.logical_type(root))])
                for root in ("INTEGER", "BIGINT")
            ),
        )
    ],
)


def with_member(root: str, name: str, member: bytes) -> bytes:
    kind = java.enum("LogicalTypeRoot", root)
    return java.instance("T", [("L", "typeRoot", kind), ("L", name, member)])


MAP = java.instance(
    "T",
    [
        ("L", "typeRoot", java.enum("LogicalTypeRoot", "MAP")),
        ("L", "keyType", java.logical_type("DOUBLE")),
        ("L", "valueType", java.logical_type("DATE")),
    ],
)


def wrapped(field: str, inner: bytes) -> bytes:
    return java.instance("java.util.Collections$UnmodifiableList", [("L", field, inner)])


LISTED = java.instance(
    "java.util.ArrayList",
    [("I", "size", sb.i32(1))],
    flags=3,
    after=b"\x77\x04"
    + sb.i32(1)
    + java.instance("F", [("L", "type", java.logical_type("DATE"))])
    + java.END,
)
NUMBER = [("length", 5)]
LOGICAL = [
    (java.logical_type("CHAR", *NUMBER), "CHAR(5)"),
    (java.logical_type("VARCHAR", *NUMBER, nullable=False), "VARCHAR(5) NOT NULL"),
    (java.logical_type("BINARY", *NUMBER), "BINARY(5)"),
    (java.logical_type("VARBINARY", ("length", 2**31 - 1)), "BYTES"),
    (java.logical_type("BOOLEAN"), "BOOLEAN"),
    (java.logical_type("TINYINT"), "TINYINT"),
    (java.logical_type("SMALLINT"), "SMALLINT"),
    (java.logical_type("INTEGER"), "INT"),
    (java.logical_type("BIGINT"), "BIGINT"),
    (java.logical_type("FLOAT"), "FLOAT"),
    (java.logical_type("DOUBLE"), "DOUBLE"),
    (java.logical_type("DATE"), "DATE"),
    (java.logical_type("DECIMAL", ("precision", 1), ("scale", 0)), "DECIMAL(1, 0)"),
    (java.logical_type("DECIMAL", ("precision", 38), ("scale", 38)), "DECIMAL(38, 38)"),
    (java.logical_type("TIME_WITHOUT_TIME_ZONE", ("precision", 3)), "TIME(3)"),
    (java.logical_type("TIMESTAMP_WITHOUT_TIME_ZONE", ("precision", 9)), "TIMESTAMP(9)"),
    (java.logical_type("TIMESTAMP_WITH_LOCAL_TIME_ZONE", ("precision", 0)), "TIMESTAMP_LTZ(0)"),
    (java.logical_type("INTERVAL_YEAR_MONTH"), "INTERVAL_YEAR_MONTH"),
    (java.logical_type("INTERVAL_DAY_TIME"), "INTERVAL_DAY_TIME"),
    (MAP, "MAP<DOUBLE, DATE>"),
    (with_member("MULTISET", "elementType", java.logical_type("DATE")), "MULTISET<DATE>"),
    (java.logical_type("VARIANT"), "VARIANT"),
    (java.logical_type("BITMAP"), "BITMAP"),
    (java.logical_type("RAW"), "RAW"),
    (with_member("ARRAY", "elementType", java.logical_type("DOUBLE")), "ARRAY<DOUBLE>"),
    (with_member("ROW", "fields", wrapped("list", ROW_FIELDS)), "ROW<INT, BIGINT>"),
    (with_member("STRUCTURED_TYPE", "attributes", wrapped("list", LISTED)), "ROW<DATE>"),
]


@pytest.mark.parametrize("number", range(len(LOGICAL)))
def test_logical_types(number: int) -> None:
    data, name = LOGICAL[number]
    cursor = Cursor(java.stream(data), "a file")
    found = str(read_logical_type(cursor))
    assert found.replace("f0 ", "").replace("f1 ", "") == name
    assert cursor.left == 0


BAD_LOGICAL = [
    (java.text("INT"), "logical type what is none is not known"),
    (java.instance("T"), "logical type what is none is not known"),
    (with_member("ARRAY", "other", java.NULL), "logical type what is none is not known"),
    (java.logical_type("CHAR", ("length", -1)), "the length of a CHAR cannot be -1"),
    (java.logical_type("CHAR"), "the length of a CHAR cannot be None"),
    (with_member("CHAR", "length", java.text("5")), "the length of a CHAR cannot be '5'"),
    (java.logical_type("UNRESOLVED"), "logical type UNRESOLVED is not known"),
    *(
        (java.logical_type(root, ("precision", number)), f"the precision of a {name} cannot be")
        for root, name, numbers in (
            ("DECIMAL", "DECIMAL", (0, 39)),
            ("TIME_WITHOUT_TIME_ZONE", "TIME", (-1, 10)),
            ("TIMESTAMP_WITHOUT_TIME_ZONE", "TIMESTAMP", (-1, 10)),
            ("TIMESTAMP_WITH_LOCAL_TIME_ZONE", "TIMESTAMP_LTZ", (-1, 10)),
        )
        for number in numbers
    ),
    *(
        (
            java.logical_type("DECIMAL", ("precision", 5), ("scale", scale)),
            f"the scale of a DECIMAL cannot be {scale}",
        )
        for scale in (-1, 6)
    ),
]


@pytest.mark.parametrize("number", range(len(BAD_LOGICAL)))
def test_refused_logical_types(number: int) -> None:
    data, message = BAD_LOGICAL[number]
    with pytest.raises(SavepointError, match=message):
        read_logical_type(Cursor(java.stream(data), "a file"))


# Java object streams


def java_object(content: bytes) -> Any:
    cursor = Cursor(java.stream(content), "a file")
    found = read_java_object(cursor)
    assert cursor.left == 0
    return found


def test_java_values() -> None:
    """All types of fields; parents first; what a class writes besides; nothing instantiated."""
    fields = [
        ("B", "b", b"\xff"),
        ("C", "c", b"\0a"),
        ("D", "d", bytes.fromhex("3ff8000000000000")),
        ("F", "f", bytes.fromhex("3fc00000")),
        ("I", "i", sb.i32(-1)),
        ("J", "j", sb.i64(-1)),
        ("S", "s", b"\xff\xfe"),
        ("Z", "z", b"\1"),
        ("L", "o", java.text("text")),
    ]
    parent = java.class_of("P", [("I", "size")], flags=3)
    more = b"\x77\x02ab" + b"\x7a" + sb.i32(3) + b"cde" + java.NULL + java.END
    found = java_object(java.instance("C", fields, parent=parent, before=sb.i32(4) + more))
    assert isinstance(found, JavaObject)
    assert found.java_class == "C"
    values = {"b": -1, "c": 97, "d": 1.5, "f": 1.5, "i": -1, "j": -1, "s": -2, "z": True}
    assert found.fields == {"size": 4, "o": "text", **values}
    assert found.written == [b"ab", b"cde", None]


def test_java_references() -> None:
    """By numbers from 0x7e0000 on, in the order in which classes, texts and objects came."""
    array = b"\x75" + java.class_of("[Ljava.lang.String;") + sb.i32(3)
    texts = java.text("a") + b"\x71" + sb.i32(0x7E0002) + b"\x7c" + sb.i64(1) + b"b"
    assert java_object(array + texts) == ["a", "a", "b"]
    assert java_object(b"\x75" + java.class_of("[I") + sb.i32(2) + sb.i32(5, 6)) == [5, 6]
    assert java_object(java.NULL) is None


def test_java_classes_and_enums() -> None:
    """A class object is read over; the constant of an enum may be named again."""
    array = b"\x75" + java.class_of("[Ljava.lang.Object;") + sb.i32(3)
    enum = java.enum("E", "ONE")
    # Handles: array's class, array, class C, C's object, class E, class Enum, constant, text.
    found = java_object(array + b"\x76" + java.class_of("C") + enum + b"\x71" + sb.i32(0x7E0006))
    assert found[1:] == [JavaEnum("E", "ONE"), JavaEnum("E", "ONE")]


def test_java_annotated_class() -> None:
    assert java_object(b"\x73" + java.class_of("C", annotation=b"\x77\x01x")).java_class == "C"


OWN_PARENT = b"\x72" + sb.utf("C") + sb.i64(1) + b"\2\0\0" + java.END + b"\x71" + sb.i32(0x7E0000)
BAD_JAVA = [
    (b"\x79", "type code 0x79 of a Java object stream is not known"),
    (b"\x7b", "type code 0x7b"),  # an exception
    (b"\x7d", "type code 0x7d"),  # a proxy
    (b"\x71" + sb.i32(0x7E0000), "no Java object has the handle 0"),
    (b"\x71" + sb.i32(5), "no Java object has the handle -8257531"),
    (
        b"\x75" + java.class_of("[L") + sb.i32(1) + b"\x71" + sb.i32(0x7DFFFF),
        "no Java object has the handle -1",
    ),
    (b"\x73" + java.text("C"), "the description of a Java class was to come"),
    (b"\x73" + java.class_of("C", parent=java.text("P")), "the description of a Java class was"),
    (b"\x73" + java.class_of("C", [("Q", "q")]), "a Java field of type 'Q'"),
    (java.instance("C", flags=4), "Java class C writes itself in its own way"),
    (java.instance("C", flags=0), "Java class C writes itself in its own way"),
    (b"\x73" + OWN_PARENT, "Java class C has no top"),
    (b"\x7e" + java.class_of("E") + java.NULL, "a constant of E was to come"),
    (b"\x75" + java.class_of("[I") + sb.i32(2**31 - 1), "a count of 2147483647 cannot be"),
    (b"\x75" + java.class_of("[I") + sb.i32(-1), "a count of -1 cannot be, with 0 bytes left"),
    ((b"\x7e" + java.class_of("E")) * 99 + java.text("A"), "a constant of E was to come"),
    (b"\x74\0\x05abc", "5 bytes were to follow, and 3 are left"),
    (b"\x7c" + sb.i64(-1), "-1 bytes were to follow"),
    (b"\x74\0\x01\xff", "a text is not in modified UTF-8"),
    ((b"\x75" + java.class_of("[L") + sb.i32(1)) * 101, "Java objects nest more than 100 deep"),
    ((b"\x7e" + java.class_of("E")) * 101, "Java objects nest more than 100 deep"),  # constants
    (java.class_of("C")[:-1] * 101, "Java objects nest more than 100 deep"),  # parents
    (java.class_of("C")[:-2] * 102, "Java objects nest more than 100 deep"),  # annotations
    (java.class_of("C", [("L", "a")])[:-23] * 101, "Java objects nest more"),  # names of classes
]


def test_classes_above_others() -> None:
    """Each refers to the one before: 101 are read, as one that is above itself has no end."""

    def lineage(count: int) -> bytes:
        # An array and its class come first, then a class and its object each time.
        parents = [java.NULL, *(java.reference(2 + 2 * number) for number in range(count - 1))]
        objects = [b"\x73" + java.class_of("C", parent=parent) for parent in parents]
        return b"\x75" + java.class_of("[L") + sb.i32(count) + b"".join(objects)

    assert len(java_object(lineage(101))) == 101
    with pytest.raises(SavepointError, match="Java class C has no top"):
        java_object(lineage(102))


END_OF_CLASS = java.END + java.NULL
NESTED_JAVA = [
    # The class of an array is deeper by one than it, the parent of the class by two.
    (b"\x75" + java.class_of("[L") + sb.i32(1)) * 99 + java.NULL,
    java.class_of("C")[:-1] * 100 + java.NULL,  # parents
    b"\x73" + java.class_of("C")[:-1] * 99 + java.NULL,
    java.class_of("C")[:-2] * 100 + END_OF_CLASS * 100,  # annotations
    java.class_of("C", [("L", "a")])[:-23] * 100 + java.text("T") + END_OF_CLASS * 100,
]


@pytest.mark.parametrize("number", range(len(NESTED_JAVA)))
def test_java_objects_may_nest_100_deep(number: int) -> None:
    java_object(NESTED_JAVA[number])


@pytest.mark.parametrize("number", range(len(BAD_JAVA)))
def test_refused_java(number: int) -> None:
    data, message = BAD_JAVA[number]
    with pytest.raises(SavepointError, match=rf"a file, offset \d+: {message}"):
        read_java_object(Cursor(java.stream(data), "a file"))


# Headers


def states_of(*states: bytes, key: bytes = STRING) -> tuple[StateDescriptor, ...]:
    data = sb.keyed_header(key, states)
    stream = OpenStream(StreamHandle(len(data), data), None, "a file")
    header = read_keyed_header(stream, len(data), ReadingContext())
    assert write_keyed_header(header.key_bytes, header.state_bytes) == data
    return header.states


def test_states() -> None:
    """Each kind, its types taken out of lists, maps and times to live; and how it is shown."""
    found = states_of(
        sb.state("v", "VALUE", LONG),
        sb.state("vt", "VALUE", sb.ttl_of(LONG)),
        sb.state("l", "LIST", sb.list_of(INT)),
        sb.state("lt", "LIST", sb.list_of(sb.ttl_of(INT))),
        sb.state("m", "MAP", sb.map_of(STRING, sb.ttl_of(INT))),
        sb.state("r", "REDUCING", INT, namespace=sb.snapshot(WINDOW, 3)),
        sb.state("a", "AGGREGATING", sb.tuple_of(INT), namespace=STRING),
        sb.state("t", "", sb.timer_of(STRING, sb.NONE), backend_type=3),
    )
    assert [str(state) for state in found] == [
        "v: VALUE <STRING, LONG>",
        "vt: VALUE <STRING, LONG> with TTL",
        "l: LIST <STRING, INT>",
        "lt: LIST <STRING, INT> with TTL",
        "m: MAP <STRING, STRING, INT> with TTL",
        "r: REDUCING <STRING, TIME_WINDOW, INT>",
        "a: AGGREGATING <STRING, STRING, TUPLE(INT)>",
        "t: timers <STRING>",
    ]
    assert {state.key_type for state in found} == {types.STRING}


BAD_STATES: list[tuple[Callable[[], object], str]] = [
    (lambda: states_of(sb.state("v", "OTHER", INT)), "'v' is of no known kind: KEY_VALUE OTHER"),
    (
        lambda: states_of(sb.state("v", "VALUE", INT, backend_type=1)),
        "'v' is of no known kind: OPERATOR VALUE",
    ),
    (lambda: states_of(sb.state("v", "X" * 101, INT)), "of no known kind: KEY_VALUE X{100}$"),
    (lambda: states_of(sb.meta_info("v", 0, {}, {})), "'v' is of no known kind: KEY_VALUE$"),
    (
        lambda: states_of(sb.meta_info("v", 0, {"KEYED_STATE_TYPE": "VALUE"}, {})),
        "'v' is of no known kind: KEY_VALUE VALUE",
    ),
    (
        lambda: states_of(
            sb.meta_info("v", 0, {"KEYED_STATE_TYPE": "VALUE"}, {"VALUE_SERIALIZER": INT})
        ),
        "'v' is of no known kind: KEY_VALUE VALUE",
    ),
    (lambda: states_of(sb.state("l", "LIST", INT)), "LIST state 'l' has the serializer INT"),
    (lambda: states_of(sb.state("m", "MAP", INT)), "MAP state 'm' has the serializer INT"),
    (lambda: states_of(sb.meta_info("t", 3, {}, {})), "timers 't' have no serializer of timers"),
    (
        lambda: states_of(sb.state("t", "", INT, backend_type=3)),
        "timers 't' have no serializer of timers",
    ),
    (
        lambda: states_of(sb.state("v", "VALUE", INT, backend_type=5)),
        "backend type 5 is not known",
    ),
]


@pytest.mark.parametrize("number", range(len(BAD_STATES)))
def test_refused_states(number: int) -> None:
    call, message = BAD_STATES[number]
    with pytest.raises(SavepointError, match=rf"a file, offset \d+: .*{message}"):
        call()


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (0, "version of keyed state 0 is not known"),
        (1, "version 1, of Flink 1.6 or older, is not read here, but a savepoint of"),
        (5, "version 5, of Flink 1.6 or older"),
        (7, "version of keyed state 7 is not known"),
    ],
)
def test_refused_version(version: int, message: str) -> None:
    data = sb.i32(version) + sb.keyed_header(INT, [])[4:]
    stream = OpenStream(StreamHandle(len(data), data), None, "a file")
    with pytest.raises(SavepointError, match=message):
        read_keyed_header(stream, len(data), ReadingContext())


def test_no_key_type() -> None:
    """A tuple of the job's own class, a POJO: types, but none that a hash is known of."""
    for key in (sb.tuple_of(INT, java_class="a.Pair"), sb.pojo_of("a.P", {"id": INT}), ENUM):
        (state,) = states_of(sb.state("v", "VALUE", LONG), key=key)
        assert state.key_type is None


def test_a_header_of_several_chunks() -> None:
    """What is framed in it, as a POJO's fields are, is read over the end of a chunk too."""
    fields: dict[str, bytes | None] = {f"field {number}": STRING for number in range(40)}
    pojos = [sb.pojo_of(f"a.P{number}", fields) for number in range(60)]
    states = [sb.state(f"s{i}", "VALUE", pojo) for i, pojo in enumerate(pojos)]
    data = sb.keyed_header(STRING, states)
    assert len(data) > CHUNK
    stream = OpenStream(StreamHandle(len(data), data), None, "x")
    header = read_keyed_header(stream, len(data), ReadingContext())
    assert write_keyed_header(header.key_bytes, header.state_bytes) == data
    assert [state.value_serializer for state in header.states] == [
        read_versioned_snapshot(Cursor(pojo, "x")) for pojo in pojos
    ]


def test_as_many_bytes_again_are_got_as_were_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a chunk, or as many as are asked for, if these are more; and none behind the end."""
    monkeypatch.setattr(feed_module, "CHUNK", 100)
    spans: list[tuple[int, int]] = []

    class Noted(OpenStream):
        def read(self, start: int, end: int) -> bytes:
            spans.append((start, end))
            return super().read(start, end)

    data = random.Random(7).randbytes(2_000)
    stream = Noted(StreamHandle(len(data), data), None, "x")
    cursor = header_cursor(stream, 1_990, ReadingContext())
    for start in range(0, 410, 10):
        assert cursor.take(10) == data[start : start + 10]
        expected = [(0, 100), (100, 200), (200, 400), (400, 800)]
        assert spans == [span for span in expected if span[0] < start + 10]
    assert cursor.take(1_500) == data[410:1_910]
    assert spans[4:] == [(800, 1_910)]
    assert cursor.take(80) == data[1_910:1_990]
    assert spans[5:] == [(1_910, 1_990)]
    with pytest.raises(SavepointError, match=r"^x, offset 1990: 1 bytes were to follow, and 0 "):
        cursor.take(1)


@pytest.mark.parametrize(("size", "got"), [(99, 99), (100, 100), (101, 0)])
def test_a_header_of_no_more_than_a_chunk_is_got_at_once(
    size: int, got: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "CHUNK", 100)
    stream = OpenStream(StreamHandle(200, bytes(200)), None, "x")
    assert len(header_cursor(stream, size, ReadingContext()).data) == got


@pytest.mark.parametrize(
    ("count", "size", "message"),
    [
        (2, 16, "snapshot|serializer|version"),
        (3, 21, "a count of 3 cannot be, with 21 bytes left"),
    ],
)
def test_how_many_serializers_a_state_may_have(count: int, size: int, message: str) -> None:
    """Each takes 8 bytes and more: so many are read, and refused for what they are."""
    start = sb.utf("s") + sb.i32(0, 1) + sb.utf("KEYED_STATE_TYPE") + sb.utf("VALUE")
    data = sb.keyed_header(INT, [start + sb.i32(count) + bytes(size)])
    stream = OpenStream(StreamHandle(len(data), data), None, "x")
    with pytest.raises(SavepointError, match=message):
        read_keyed_header(stream, len(data), ReadingContext())
