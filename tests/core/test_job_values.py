"""Values of a job's own classes: POJOs, what Kryo wrote, Avro's records.

What Flink wrote of them is in `test_serializer_cases.py`; here is what no Flink writes, and what
Kryo's and Avro's formats say of what those cases have not.
"""

from __future__ import annotations

import copy
import datetime as dt
import json
import pickle
import re
import sys
import tracemalloc
from array import array
from collections.abc import Sequence
from typing import Any

import pytest
from support.bytes import java_bytes as java
from support.bytes import savepoint_bytes as sb
from support.bytes.serializer_cases import cases
from support.inside.serializers import (
    INT,
    LONG,
    AvroSerializer,
    KryoSerializer,
    Member,
    OptionalItem,
    PojoSerializer,
)
from support.inside.values import MAX_DEPTH

from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    SavepointError,
    UnsupportedKeyTypeError,
)
from keygroups.savepoint import Serializer
from keygroups.savepoint.values import (
    Duration,
    Left,
    LocalDate,
    LocalDateTime,
    LocalTime,
    Period,
    Pojo,
    ZonedDateTime,
)

ORDER = Pojo("x.Order", {"id": 5, "total": None})


# --- POJOs ----------------------------------------------------------------------------------


def test_a_pojo_is_a_value() -> None:
    assert (ORDER.id, ORDER["total"], list(ORDER), len(ORDER)) == (5, None, ["id", "total"], 2)
    assert "id" in ORDER
    assert "java_class" not in ORDER
    assert Pojo("x.Order", {"total": None, "id": 5}) == ORDER
    assert Pojo("x.Other", {"id": 5, "total": None}) != ORDER
    assert Pojo("x.Order", {"id": 6, "total": None}) != ORDER
    assert (ORDER == {"id": 5, "total": None}) is False
    assert len({ORDER, Pojo("x.Order", {"total": None, "id": 5})}) == 1
    assert repr(ORDER) == "Pojo('x.Order', {'id': 5, 'total': None})"
    for same in (copy.copy(ORDER), copy.deepcopy(ORDER), pickle.loads(pickle.dumps(ORDER))):
        assert same == ORDER
        assert type(same) is Pojo
    with pytest.raises(TypeError, match="unhashable"):
        hash(Pojo("a.P", {"list": []}))


def test_fields_with_the_names_of_others_are_items() -> None:
    names = ("java_class", "_asdict", "__class__", "__deepcopy__", "_Pojo__values", "keys")
    pojo = Pojo("a.P", {name: place for place, name in enumerate(names)})
    assert [pojo[name] for name in names] == [*range(len(names))]
    assert (pojo.java_class, pojo.keys) == ("a.P", 5)
    assert pojo._asdict() == dict(zip(names, range(len(names))))
    assert copy.deepcopy(pojo) == pojo
    with pytest.raises(AttributeError, match=r"a Pojo of 'a\.P' has no field 'items'"):
        _ = pojo.items


def test_a_pojo_cannot_be_changed() -> None:
    values = {"id": 5}
    pojo = Pojo("a.P", values)
    values["id"] = 6
    pojo._asdict()["id"] = 7
    assert pojo.id == 5
    with pytest.raises(AttributeError, match="cannot assign to field 'id'"):
        pojo.id = 6
    with pytest.raises(AttributeError, match="cannot delete field 'id'"):
        del pojo.id


@pytest.mark.parametrize(
    ("java_class", "fields", "message"),
    [
        (5, {}, "java_class must be a str, got 5"),
        ("a.P", [("id", 5)], r"fields must be a mapping, got \[\('id', 5\)\]"),
        ("a.P", {5: 5}, "names of fields must be str, got 5"),
    ],
)
def test_what_makes_no_pojo(java_class: Any, fields: Any, message: str) -> None:
    with pytest.raises(InvalidTypeError, match=message):
        Pojo(java_class, fields)


def test_subclasses_that_no_snapshot_tells_of() -> None:
    """A place of a signed byte is the last; a subclass may have no snapshot."""
    plain = PojoSerializer("a.Q", ["n"], [INT])
    registered = [Member(f"a.R{place}", None, plain) for place in range(129)]
    pojo = PojoSerializer("a.P", registered=registered)
    assert pojo.decode(b"\x08\x01\2\0\0\0\0\7") == Pojo("a.Q", {"n": 7})
    with pytest.raises(InvalidValueError, match=r"subclass 129 of the 129 of a\.P"):
        pojo.decode(b"\x08\x81")
    many = [Member("a.Q", None, PojoSerializer("a.Q", ["n"], [LONG]))]
    of_place = PojoSerializer("a.P", registered=[*registered[:127], *many])
    assert of_place.encode(Pojo("a.Q", {"n": 7})) == b"\x08\x7f\2\0" + sb.i64(7)
    beyond = PojoSerializer("a.P", registered=[*registered[:128], *many])
    with pytest.raises(InvalidValueError, match=r"got a Pojo of 'a\.Q'"):
        beyond.encode(Pojo("a.Q", {"n": 7}))


@pytest.mark.parametrize("length", [2, 255, 256, 65_535])
def test_subclasses_of_names_of_all_lengths(length: int) -> None:
    """Flink: PojoSerializer.serialize, which writes a subclass by DataOutput.writeUTF."""
    name = "Q" * length
    pojo = PojoSerializer("a.P", met=[Member(name, None, PojoSerializer(name, ["n"], [INT]))])
    data = b"\4" + length.to_bytes(2, "big") + name.encode() + b"\2\0" + sb.i32(7)
    assert pojo.encode(Pojo(name, {"n": 7})) == data
    assert pojo.decode(data) == Pojo(name, {"n": 7})


def test_a_field_without_a_serializer_may_be_null() -> None:
    snapshot = sb.i32(2) + sb.pojo_of("a.P", {"n": sb.simple("Int"), "u": None})
    pojo = Serializer.from_snapshot(snapshot)
    assert pojo.decode(b"\2\0\0\0\0\7\1") == Pojo("a.P", {"n": 7, "u": None})
    with pytest.raises(UnsupportedKeyTypeError, match=r"field 'u' of a\.P has the serializer UNK"):
        pojo.decode(b"\2\0\0\0\0\7\0")
    with pytest.raises(UnsupportedKeyTypeError, match="cannot be written here"):
        pojo.encode(Pojo("a.P", {"n": 7, "u": None}))
    assert pojo.snapshot_bytes() == snapshot


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (sb.optional_map({"n": sb.simple("Int") + b"\0"}), "number of bytes after a snapshot 1 "),
        (
            sb.optional_map({"n": None}).replace(sb.i32(1), sb.i32(2), 1) + sb.utf("n") + b"\0\0",
            "a map of a serializer has 'n' twice",
        ),
    ],
)
def test_what_is_no_snapshot_of_a_pojo(contents: bytes, message: str) -> None:
    contents = sb.utf("a.P") + contents + sb.optional_map({}) * 2
    snapshot = sb.snapshot(f"{sb.JAVA}PojoSerializerSnapshot", 2, contents)
    with pytest.raises(SavepointError, match=message):
        Serializer.from_snapshot(sb.i32(2) + snapshot)


# --- Kryo -----------------------------------------------------------------------------------

ANY = KryoSerializer("java.lang.Object")
ANY_2 = KryoSerializer("java.lang.Object", 2)
LIST = b"\1\0java.util.ArrayLis\xf4"  # its name, the first part of a value
LIST_AGAIN = b"\1\0"
DATE_TIME_2 = b"\1\0java.time.LocalDateTim\xe5\1"
DURATION = b"\1\0java.time.Duratio\xee\1" + bytes(8)  # 0 seconds


def by_name(java_class: str) -> bytes:
    return b"\1\0" + java_class[:-1].encode() + bytes([ord(java_class[-1]) | 0x80])


def kryo_of(*items: tuple[str, bytes | None], defaults: Sequence[str] = ()) -> KryoSerializer:
    maps = [OptionalItem(name, None, value) for name, value in items]
    return KryoSerializer(
        "java.lang.Object", 5, (maps, [OptionalItem(name, None, None) for name in defaults], ())
    )


def test_references_give_the_same_object() -> None:
    value = ANY.decode(LIST + b"\1\3" + LIST_AGAIN + b"\1\1" + LIST_AGAIN + b"\3")
    assert value == [[], []]
    assert value[0] is value[1]


# Of Kryo 5, but for those of ANY_2; 3 is the class String, 2 Integer.
UNREADABLE = [
    (ANY, LIST + b"\1\2" + LIST_AGAIN + b"\2", "an object is in itself"),
    (ANY, b"\x5e", "the class that Kryo knows as 92 is not known"),
    (ANY, by_name("a.B") + b"\1", "an object of 'a.B' takes the job's own classes"),
    (ANY, by_name("org.apache.flink.api.java.tuple.Tuple26") + b"\1", "an object of .*Tuple26'"),
    (ANY, by_name("java.util.TreeSet") + b"\1\1\1\1a\xe2", "the comparator 'ab' is not known"),
    (ANY, by_name("java.util.TreeMap") + b"\1\1\3", "the comparator 'java.lang.String' is not"),
    (ANY_2, by_name("java.util.TreeMap") + b"\1\3", "the comparator 'java.lang.String' is not"),
    (ANY, LIST + b"\1\xff\xff\xff\xff\x0f\0", "over 256 times as many"),
    *(
        (ANY, first + (b"\1\2" + LIST_AGAIN) * more + b"\1\1", f"nest more than {MAX_DEPTH} deep")
        for first, more in (
            (LIST, MAX_DEPTH),
            # Behind a list that has ended.
            (LIST + b"\1\3" + LIST_AGAIN + b"\1\1" + LIST_AGAIN, MAX_DEPTH - 1),
        )
    ),
    (ANY, by_name("org.apache.flink.types.Row") + b"\1\3", "a Row that has names"),
    (
        ANY,
        by_name("org.apache.flink.types.Row") + b"\1\0\1\1[Ljava.lang.Object\xbb\1\1\1\1\3",
        "a Row that has names of positions",
    ),
    (ANY_2, by_name("java.util.BitSet") + b"\1\0", "Flink 1 writes a BitSet in two ways"),
    (ANY_2, by_name("java.net.URL") + b"\1\0", "Flink 1 does not read its own URLs"),
    (ANY_2, by_name("java.util.ImmutableCollections$ListN") + b"\1\0", "lists and sets that are"),
    (ANY_2, by_name("java.util.ImmutableCollections$MapN") + b"\1\0", "maps that are immutable"),
    (
        kryo_of(defaults=["a.B", "java.util.List", "java.util.Map"]),
        b"\3\1\x81",
        r"KRYO\(java.lang.Object\) cannot be read here",  # the job's own serializer of lists
    ),
    (kryo_of(("java.util.ArrayList", b"own")), LIST + b"\1\1", "'java.util.ArrayList' takes"),
]


@pytest.mark.parametrize(("kryo", "data", "message"), UNREADABLE)
def test_what_kryo_cannot_read_here(kryo: KryoSerializer, data: bytes, message: str) -> None:
    with pytest.raises(UnsupportedKeyTypeError, match=message):
        kryo.decode(data)


DAMAGED = [
    (ANY, LIST + b"\1\2" + LIST_AGAIN + b"\7", "object 5 of 1"),
    (ANY, LIST + b"\1\2" + LIST_AGAIN + b"\3", "object 1 of 1"),
    (ANY, LIST + b"\1\2" + LIST_AGAIN + b"\xff\xff\xff\xff\x0f", "object -3 of 1"),
    (ANY, b"\1\1", "class 1 of 0 names"),
    (ANY, LIST + b"\1\2\1\2", "class 2 of 1 names"),
    (ANY, LIST + b"\1\2\1\xff\xff\xff\xff\x0f", "class -1 of 1 names"),
    (ANY, b"\1\0\x80", "a text that is null"),
    (ANY, by_name("java.lang.Class") + b"\1\0", "a class that is null"),
    (ANY, b"\5\2", "2 is neither true nor false"),
    *((ANY, b"\x80" * 5 + end, "a number of more than 32 bits") for end in (b"\0", b"\1")),
    (ANY, b"\xff\xff\xff\xff\x7f", "a number of more than 32 bits"),
    (ANY, b"\x80\x80\x80\x80\x10", "a number of more than 32 bits"),  # 2 ** 32
    (ANY, b"\3\1\xc0" + b"\x80" * 4 + b"\0", "a number of more than 32 bits"),  # characters
    (ANY, LIST + b"\1\0", "a count of -1"),
    (ANY, LIST + b"\1\x80\0", "a count of -1"),
    (ANY, LIST + b"\1\5", "too few bytes"),
    (ANY, LIST + b"\1\x87\3\0\1\x81", "too few bytes"),
    *(
        (ANY, by_name(name) + b"\1" + count + bytes(7), "too few bytes")
        for name, count in (
            *(("java.util.BitSet", b"\1"), ("[J", b"\x09"), ("[D", b"\2"), ("[F", b"\3")),
            *(("[C", b"\5"), ("[S", b"\5")),
        )
    ),
    (ANY, b"\x0a\0", "too few bytes"),
    (ANY, b"\3\1\x84ab", "too few bytes"),  # three characters
    *(
        (ANY, b"\3\1\x82" + bytes([byte]), f"{byte:#x} starts no character")
        for byte in (0x80, 0xBF, 0xF0, 0xFF)
    ),
    *(
        (ANY, b"\3\1\x82" + start + bytes([byte]), f"{byte:#x} continues no character")
        for start in (b"\xc3", b"\xe3", b"\xe3\x80")
        for byte in (0x7F, 0xC0)
    ),
    (ANY, by_name("java.math.BigInteger") + b"\1\1", "a BigInteger of no bytes"),
    (ANY, DURATION + b"\x80\x94\xeb\xdc\x03", "1000000000 nanoseconds of a second"),
    (ANY, DURATION + b"\xff\xff\xff\xff\x0f", "-1 nanoseconds of a second"),
    (ANY, by_name("java.time.LocalDate") + b"\1\xe5\x0f\x02\x1e", "day"),
    (
        ANY,
        by_name("java.time.LocalDate") + b"\1\xe5\xff\xff\x07\x02\x1e",
        "the day of a LocalDate must be",
    ),
    (ANY_2, DATE_TIME_2 + b"\0", "an object of java.time.LocalDate was to come"),
    (ANY_2, by_name("java.util.Locale") + b"\1\xac\xed\0\5\x70", "that has no Locale"),
    (
        ANY_2,
        by_name("java.util.Locale")
        + b"\1"
        + java.stream(java.instance("java.util.Locale", [("L", "language", java.text("en"))])),
        "that has no Locale",
    ),
    (
        ANY,
        by_name("java.time.Instant") + b"\1" + b"\xff" * 8 + b"\x7f\0",
        "the epoch second of a Instant must be",
    ),
    (
        ANY_2,
        by_name("java.time.ZonedDateTime") + b"\1\1\1\0\1\0\1\xa0\x1f\1\0\0\0\0\1\0\0",
        "a ZonedDateTime without a zone",
    ),
    (ANY, by_name("org.apache.flink.types.Row") + b"\1\0\3", "a Row without an array of fields"),
    (
        ANY,
        by_name("org.apache.flink.types.Row") + b"\1\0\1\1[Ljava.lang.Object\xbb\1\1\0",
        "a Row without a kind",
    ),
    (
        ANY,
        by_name("org.apache.flink.types.Row") + b"\1\0\1\1[Ljava.lang.Object\xbb\1\1\1\5",
        "row kind 4",
    ),
    (
        ANY,
        by_name("org.apache.flink.types.Row") + b"\1\0\1\1[Ljava.lang.Object\xbb\1\1\1\0",
        "row kind -1",
    ),
]


@pytest.mark.parametrize(("kryo", "data", "message"), DAMAGED)
def test_damaged_values_of_kryo(kryo: KryoSerializer, data: bytes, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        kryo.decode(data)


# Of a collection of "a": its count and 1, marked as of one class, which is String, and no nulls.
A_TEXT, A_TEXT_IMMUTABLE = b"\1\x82\3\0\1\x82a", b"\1\x82\3\1\x82a"

# Flink: FlinkChillPackageRegistrar.registerSerializers.
CLASSES_OF_FLINK = (
    *("java.util.Arrays$ArrayList", "java.util.BitSet", "java.util.PriorityQueue"),
    *("java.util.regex.Pattern", "java.sql.Date", "java.sql.Time", "java.sql.Timestamp"),
    *("java.net.URI", "java.net.InetSocketAddress", "java.util.UUID", "java.util.Locale"),
    "java.text.SimpleDateFormat",
)

# As Kryo's serializers of these classes write them, which are in no case.
OTHERS = [
    (ANY, LIST + b"\1\x83\0", [None, None]),
    (ANY, LIST + b"\1\x81", []),  # marked as of one class, which Kryo does not read then
    (ANY, LIST + b"\1\x7f\1" + bytes(126), [None] * 126),
    (ANY, LIST + b"\1\x3d" + (LIST_AGAIN + b"\1\1") * 60, [[]] * 60),
    (ANY, by_name("java.util.Date") + b"\1" + b"\x80" * 9, -(2**63)),
    (ANY, by_name("java.util.Date") + b"\1" + b"\xff" * 8 + b"\x7f", 2**63 - 1),
    (ANY, by_name("java.util.HashSet") + b"\1\2\1\1java.util.ArrayLis\xf4\1\1", [[]]),
    (
        ANY,
        by_name("java.time.LocalDateTime") + b"\1\xe0\x5d\1\2\3\xfb",
        LocalDateTime(12000, 1, 2, 3, 4, 0, 0),
    ),
    (
        ANY,
        by_name("java.time.LocalDateTime") + b"\1\xe0\x5d\1\2\3\4\5\xf0\x2e",
        LocalDateTime(12000, 1, 2, 3, 4, 5, 6_000),
    ),
    (
        ANY_2,
        by_name("java.time.ZonedDateTime")
        + b"\1\1\1\0\1\0\1\xa0\x1f\1\0\0\0\0\1\0\1\1java.time.ZoneOffse\xf4\6",
        ZonedDateTime(dt.datetime(2000, 1, 1), 0, "Z"),
    ),
    *(
        (ANY, by_name("java.lang.Class") + b"\1" + bytes([2 + number, is_primitive]), name)
        for number, *names in (
            (0, "java.lang.Integer", "int"),
            (2, "java.lang.Float", "float"),
            (3, "java.lang.Boolean", "boolean"),
            (4, "java.lang.Byte", "byte"),
            (5, "java.lang.Character", "char"),
            (6, "java.lang.Short", "short"),
            (7, "java.lang.Long", "long"),
            (8, "java.lang.Double", "double"),
        )
        for is_primitive, name in enumerate(names)
    ),
    (ANY, by_name("java.lang.Class") + b"\1\x0b\1", "void"),
    *(
        (ANY, by_name("java.lang.Class") + b"\1" + bytes([2 + number]), name)
        for number, name in enumerate(CLASSES_OF_FLINK, 73)
    ),
    (ANY_2, by_name("java.lang.Class") + b"\1\3\0", "java.lang.String"),
    (ANY, b"\x4e\1\x82a\2", ("a", 2)),
    (ANY, by_name("org.apache.flink.types.Either$Left") + b"\1\0\3\1\x82a", Left("a")),
    (ANY, b"\x4c\1\2" + bytes(7) + b"\x80\1" + bytes(7), {63, 64}),
    (ANY, by_name("[S") + b"\1\2\1\2", array("h", [0x201])),
    (ANY_2, by_name("[S") + b"\1\2\1\2", array("h", [0x102])),
    (ANY, by_name("java.time.Duration") + b"\1\1" + bytes(7) + b"\1", Duration(1, 1)),
    (ANY, DURATION + b"\xff\x93\xeb\xdc\x03", Duration(0, 999_999_999)),
    (ANY, DURATION + b"\x64", Duration(0, 100)),
    (ANY, DURATION + b"\xe8\7", dt.timedelta(microseconds=1)),
    *(
        (ANY, by_name("java.time.LocalTime") + b"\1\1\2\3" + nano, value)
        for nano, value in (
            (b"\xb8\x17", dt.time(1, 2, 3, 3)),
            (b"\xe9\7", LocalTime(1, 2, 3, 1_001)),
            (b"\x98\x8c\xeb\xdc\3", dt.time(1, 2, 3, 999_999)),
        )
    ),
    (ANY, b"\6\x7f", 127),
    (ANY, b"\6\x80", -128),
    *(
        (ANY, by_name("java.time.LocalDate") + b"\1" + year + b"\x0c\x1f", value)
        for year, value in (
            (b"\xff\xff\xff\xff\x0f", LocalDate(-1, 12, 31)),
            (b"\0", LocalDate(0, 12, 31)),
            (b"\1", dt.date(1, 12, 31)),
            (b"\x8f\x4e", dt.date(9999, 12, 31)),
            (b"\x90\x4e", LocalDate(10_000, 12, 31)),
        )
    ),
    (
        ANY,
        by_name("java.time.Duration") + b"\1" + b"\xff" * 7 + b"\x7f\0",
        Duration(2**63 - 1, 0),
    ),
    *(
        (
            ANY_2,
            by_name("java.time.ZonedDateTime")
            + b"\1\1\1\0\1\0\1\xa0\x1f\1\0\0\0\0\1"
            + offset
            + b"\1\1java.time.ZoneOffse\xf4\6",
            ZonedDateTime(dt.datetime(2000, 1, 1), seconds, zone),
        )
        for offset, seconds, zone in (
            (b"\xa0\x38", 3600, "+01:00"),
            (b"\xaa\x38", 3605, "+01:00:05"),
            (b"\1", -1, "-00:00:01"),
        )
    ),
    (kryo_of(("a.B", None), ("java.util.UUID", None)), b"\3\1\x81", ""),
    (
        ANY,
        by_name("java.time.Period")
        + b"\1\x80\x80\x80\x80\x08\xff\xff\xff\xff\x07\xff\xff\xff\xff\x0f",
        Period(-(2**31), 2**31 - 1, -1),
    ),
    (ANY, by_name("java.lang.StringBuffer") + b"\1\x82a", "a"),
    (ANY, by_name("java.util.Vector") + A_TEXT, ["a"]),
    (ANY, by_name("java.util.Stack") + A_TEXT, ["a"]),
    (ANY, by_name("java.util.ImmutableCollections$SetN") + A_TEXT_IMMUTABLE, {"a"}),
    (ANY, by_name("java.util.ImmutableCollections$Set12") + A_TEXT_IMMUTABLE, {"a"}),
    (ANY, by_name("[F") + b"\1\2\0\0\xc0\x3f", array("f", [1.5])),
    (ANY, by_name("[Ljava.lang.Boolean;") + b"\1\3\1\1\0", [True, None]),
    (ANY, by_name("[Ljava.lang.Byte;") + b"\1\3\1\xff\0", [-1, None]),
    (ANY, by_name("[Ljava.lang.Character;") + b"\1\3\1a\0\0", ["a", None]),
    (ANY, by_name("[Ljava.lang.Short;") + b"\1\3\1\2\1\0", [0x102, None]),
    (ANY, by_name("[Ljava.lang.Long;") + b"\1\3\1\5\0", [-3, None]),
    (ANY, by_name("[Ljava.lang.Float;") + b"\1\3\1\0\0\xc0\x3f\0", [1.5, None]),
    (ANY, by_name("[Ljava.lang.Double;") + b"\1\3\1" + bytes(6) + b"\xf8\x3f\0", [1.5, None]),
]


@pytest.mark.parametrize(("kryo", "data", "value"), OTHERS)
def test_values_of_kryo(kryo: KryoSerializer, data: bytes, value: Any) -> None:
    assert kryo.decode(data) == value
    assert type(kryo.decode(data)) is type(value)


@pytest.mark.parametrize("arity", range(26))
def test_tuples_of_kryo(arity: int) -> None:
    """Kryo: FieldSerializer, which has the fields in the order of their names: f0, f1, f10, f2."""
    fields = sorted(range(arity), key=str)
    data = by_name(f"org.apache.flink.api.java.tuple.Tuple{arity}") + b"\1"
    data += b"".join(b"\2" + bytes([2 * field]) for field in fields)  # Integers
    assert ANY.decode(data) == tuple(range(arity))


def test_lists_of_kryo_may_nest_50_deep() -> None:
    """Deeper ones are in `UNREADABLE`."""
    value = ANY.decode(LIST + (b"\1\2" + LIST_AGAIN) * (MAX_DEPTH - 1) + b"\1\1")
    for _ in range(MAX_DEPTH - 1):
        [value] = value
    assert value == []


@pytest.mark.parametrize(("times", "is_hashed"), [(1, True), (sys.hash_info.modulus, False)])
def test_numbers_of_one_hash(times: int, is_hashed: bool) -> None:
    """A thousand numbers that Python would compare each with each are a list, as elsewhere."""
    numbers = [times * number for number in range(1, 1_000)]
    data = by_name("java.util.HashSet") + b"\1\xe8\x0f\1\1java.math.BigIntege\xf2\0"
    data += b"".join(b"\1\x0d" + number.to_bytes(12, "big") for number in numbers)
    assert ANY.decode(data) == (set(numbers) if is_hashed else numbers)


def test_references_do_not_explode() -> None:
    """Lists of two references to the list before, which printed would be 2 ** 40 of them."""
    data, last = LIST + b"\1", 41
    data += bytes([last + 1])
    data += LIST_AGAIN + b"\1\1"
    for place in range(1, last):
        reference = bytes([place + 2])
        data += LIST_AGAIN + b"\1\3" + (LIST_AGAIN + reference) * 2
    tracemalloc.start()
    with pytest.raises(UnsupportedKeyTypeError, match="over 256 times as many"):
        ANY.decode(data)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def nulls(count: int) -> bytes:
    """What a list of nulls has behind its class: the count and one, and the class of null."""
    return bytes([0xC0 | count + 1 & 0x3F, count + 1 >> 6 & 0x7F | 0x80, count + 1 >> 13, 0])


@pytest.mark.parametrize("more", [0, 1])
def test_nulls_count_as_bytes(more: int) -> None:
    """A value may repeat 4,096 bytes, and 256 for each that was read."""
    head = LIST + b"\1"
    most = 4_096 + 256 * len(head + nulls(10_000))
    data = head + nulls(most + more)
    if not more:
        assert ANY.decode(data) == [None] * most
        return
    with pytest.raises(UnsupportedKeyTypeError, match="over 256 times as many"):
        ANY.decode(data)


@pytest.mark.parametrize("more", [0, 1])
def test_bytes_before_a_value_of_kryo_do_not_count(more: int) -> None:
    """Those of the field before it in a tuple, however many."""
    kryo = sb.kryo_of("java.lang.Object")
    pair = Serializer.from_snapshot(sb.i32(2) + sb.tuple_of(sb.simple("String"), kryo))
    head = LIST + b"\1"
    most = 4_096 + 256 * len(head + nulls(10_000))
    data = b"\x65" + b"a" * 100 + head + nulls(most + more)
    if not more:
        assert pair.decode(data) == ("a" * 100, [None] * most)
        return
    with pytest.raises(UnsupportedKeyTypeError, match="over 256 times as many"):
        pair.decode(data)


@pytest.mark.parametrize("more", [0, 1])
def test_what_is_within_an_object_counts_with_each_reference_to_it(more: int) -> None:
    """A list of 3,000 nulls, one of a reference to it, one to that; and as many as are left."""
    head = LIST + b"\1\5" + LIST_AGAIN + b"\1" + nulls(3_000)
    first_size = len(nulls(3_000)) + 3_000
    head += LIST_AGAIN + b"\1\2" + LIST_AGAIN + b"\3"
    second_size = len(b"\2" + LIST_AGAIN + b"\3") + first_size
    head += LIST_AGAIN + b"\4" + LIST_AGAIN + b"\1"
    rest = 4_096 + 256 * len(head + nulls(10_000)) - 3_000 - first_size - second_size
    first = [None] * 3_000
    if not more:
        assert ANY.decode(head + nulls(rest)) == [first, [first], [first], [None] * rest]
        return
    with pytest.raises(UnsupportedKeyTypeError, match="over 256 times as many"):
        ANY.decode(head + nulls(rest + more))


@pytest.mark.parametrize("count", [400, 500])
def test_a_name_of_a_class_counts_each_time(count: int) -> None:
    """A list of classes of one name of 3,000 characters: all but the first take five bytes."""
    name = "B" * 3_000
    sizes = bytes([0x40 | count + 1 & 0x3F, count + 1 >> 6])
    first = b"\1\1java.lang.Clas\xf3\1" + b"\1\2" + b"B" * 2_999 + b"\xc2"
    data = LIST + b"\1" + sizes + first + b"\1\1\1\1\2" * (count - 1)
    if count * 3_000 <= 4_096 + 256 * len(data):
        assert ANY.decode(data) == [name] * count
        return
    with pytest.raises(UnsupportedKeyTypeError, match="over 256 times as many"):
        ANY.decode(data)


def test_kryo_version_of_a_snapshot() -> None:
    short = sb.utf("java.lang.Short")
    maps = sb.optional_map({"java.lang.Short": short + sb.i32(0)}) + sb.optional_map({}) * 2
    snapshot = sb.i32(2) + sb.snapshot(f"{sb.JAVA}kryo.KryoSerializerSnapshot", 2, short + maps)
    two, five = (Serializer.from_snapshot(snapshot, kryo_version=version) for version in (2, 5))
    assert (two.decode(b"\x08\1\2"), five.decode(b"\x08\1\2")) == (0x102, 0x201)
    assert two != five
    assert two.snapshot_bytes() == five.snapshot_bytes() == snapshot


WRITTEN = (
    *("Boolean", "Byte", "Character", "Double", "Float", "Integer", "Long", "Short", "String"),
    *("Instant", "LocalDate", "LocalDateTime", "LocalTime", "UUID"),
)


@pytest.mark.parametrize("name", WRITTEN)
def test_what_kryo_writes_here(name: str) -> None:
    """The very bytes, of both versions of Kryo."""
    versions = set()
    for case in cases():
        if case.name == f"kryo.{name}":
            data = sb.i32(2) + case.snapshot
            kryo = Serializer.from_snapshot(data, kryo_version=case.kryo_version)
            versions.add(case.kryo_version)
            for value in case.values:
                assert kryo.encode(kryo.decode(value.data)) == value.data
    assert versions == {2, 5}


# Kryo: Output.writeString; what is no ASCII has a length, and ASCII too where it is longer than
# the version takes without: its units and one more, in six bits of the first byte, then in sevens.
TEXTS_OF_KRYO = [
    *((version, "", b"\x81") for version in (2, 5)),
    *((version, "a", b"\x82a") for version in (2, 5)),
    *((version, "aa", b"a\xe1") for version in (2, 5)),
    *((version, "\x7f\0\x7f\0", b"\x7f\0\x7f\x80") for version in (2, 5)),
    *((version, "\ud800", b"\x82\xed\xa0\x80") for version in (2, 5)),
    (2, "a" * 63, b"a" * 62 + b"\xe1"),
    (2, "a" * 64, b"\xc1\1" + b"a" * 64),
    (5, "a" * 32, b"a" * 31 + b"\xe1"),
    (5, "a" * 33, b"\xa2" + b"a" * 33),
    (5, "a" * 62, b"\xbf" + b"a" * 62),
    (5, "a" * 63, b"\xc0\1" + b"a" * 63),
    *((version, "\xe9" * 62, b"\xbf" + b"\xc3\xa9" * 62) for version in (2, 5)),
    *((version, "\xe9" * 63, b"\xc0\1" + b"\xc3\xa9" * 63) for version in (2, 5)),
    *((version, "\xe9" * 8_191, b"\xc0\x80\1" + b"\xc3\xa9" * 8_191) for version in (2, 5)),
]


@pytest.mark.parametrize(("version", "text", "written"), TEXTS_OF_KRYO)
def test_texts_of_each_length(version: int, text: str, written: bytes) -> None:
    kryo = KryoSerializer("java.lang.String", version)
    assert kryo.encode(text) == b"\3\1" + written
    assert kryo.decode(b"\3\1" + written) == text


# Kryo: Output.writeVarLong of a number and its sign in the lowest bit: seven bits in a byte, all
# eight in the ninth.
LONGS_OF_KRYO = [
    (2**54 - 1, b"\xfe" + b"\xff" * 6 + b"\x3f"),
    (2**54, b"\x80" * 7 + b"\x40"),
    (2**55 - 1, b"\xfe" + b"\xff" * 6 + b"\x7f"),
    (-(2**55), b"\xff" * 7 + b"\x7f"),
    (2**55, b"\x80" * 8 + b"\1"),
    (-(2**62) - 1, b"\x81" + b"\x80" * 7 + b"\x80"),
    (2**63 - 1, b"\xfe" + b"\xff" * 8),
    (-(2**63), b"\xff" * 9),
]


@pytest.mark.parametrize("version", [2, 5])
@pytest.mark.parametrize(("number", "written"), LONGS_OF_KRYO)
def test_longs_of_each_length(version: int, number: int, written: bytes) -> None:
    kryo = KryoSerializer("java.lang.Long", version)
    assert kryo.encode(number) == b"\x09" + written
    assert kryo.decode(b"\x09" + written) == number


@pytest.mark.parametrize("value", [True, "5", 5.0, 2**31])
def test_what_kryo_does_not_write(value: Any) -> None:
    with pytest.raises(KeyGroupsError, match=r"^value: "):
        KryoSerializer("java.lang.Integer").encode(value)
    own = [OptionalItem("java.lang.Integer", None, b"own")]
    for kryo in (ANY, KryoSerializer("java.lang.Integer", maps=(own, (), ()))):
        with pytest.raises(UnsupportedKeyTypeError, match="cannot be written here"):
            kryo.encode(value)


@pytest.mark.parametrize("name", WRITTEN)
def test_what_kryo_does_not_write_of_a_class(name: str) -> None:
    package = "java.util" if name == "UUID" else "java.lang"
    if name.startswith(("Instant", "Local")):
        package = "java.time"
    type_name = {"Integer": "INT", "Character": "CHAR"}.get(
        name, re.sub("(?<=[a-z])(?=[A-Z])", "_", name).upper()
    )
    kryo = KryoSerializer(f"{package}.{name}")
    with pytest.raises(InvalidTypeError, match=rf"^value: .*{type_name} must be an? .*, got \(\)"):
        kryo.encode(())


# --- Avro -----------------------------------------------------------------------------------


def avro(schema: Any) -> AvroSerializer:
    return AvroSerializer("a.R", schema if isinstance(schema, str) else json.dumps(schema))


def record(name: str, **fields: Any) -> dict[str, Any]:
    members = [{"name": field, "type": item} for field, item in fields.items()]
    return {"type": "record", "name": name, "fields": members}


NODE = record("N", next=["null", "N"])
FLAT = record("F", n="int")
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
FIXED = {"type": "fixed", "name": "X", "size": 2}
EMPTY = {"type": "fixed", "name": "F", "size": 0}
HUNDRED = [f"n{number}" for number in range(100)]


def chain(depth: int) -> bytes:
    return sb.i32(1) * depth + sb.i32(0)


def doubled(count: int) -> dict[str, Any]:
    """Records, each with two of the one before, which take no bytes however many they are."""
    schema: Any = record("R0")
    for number in range(1, count):
        schema = record(f"R{number}", a=schema, b=f"R{number - 1}")
    return dict(schema)


def test_records_in_themselves() -> None:
    node = avro(NODE)
    value: Any = {"next": None}
    for _ in range(MAX_DEPTH - 1):
        value = {"next": ("N", value)}
    assert node.decode(chain(MAX_DEPTH - 1)) == value
    assert node.encode(value) == chain(MAX_DEPTH - 1)
    with pytest.raises(UnsupportedKeyTypeError, match=f"nests more than {MAX_DEPTH} deep"):
        node.decode(chain(MAX_DEPTH))
    with pytest.raises(UnsupportedKeyTypeError, match=r"^value: a value of Avro that"):
        node.encode({"next": ("N", value)})


@pytest.mark.parametrize(
    "of_many", [{"type": "array", "items": "N"}, {"type": "map", "values": "N"}]
)
def test_arrays_and_maps_of_avro_count_as_deep_too(of_many: dict[str, str]) -> None:
    """Of records in one another, each in one of these: 25 are 50 deep."""
    is_map = of_many["type"] == "map"
    node, one = avro(record("N", next=of_many)), sb.i32(1) + b"k" if is_map else b""
    value: Any = {"next": {} if is_map else []}
    for _ in range(24):
        value = {"next": {"k": value} if is_map else [value]}
    data = (b"\1" + one) * 24 + b"\0" * 25
    assert node.decode(data) == value
    assert node.encode(value) == data
    with pytest.raises(UnsupportedKeyTypeError, match="nests more than 50 deep"):
        node.decode((b"\1" + one) * 25 + b"\0" * 26)
    with pytest.raises(UnsupportedKeyTypeError, match="nests more than 50 deep"):
        node.encode({"next": {"k": value} if is_map else [value]})


def nested_arrays(times: int) -> dict[str, Any]:
    schema: Any = "int"
    for _ in range(times):
        schema = {"type": "array", "items": schema}
    return dict(schema)


def test_a_schema_of_avro_may_nest_200_deep() -> None:
    assert avro(nested_arrays(199)).decode(b"\0") == []
    with pytest.raises(UnsupportedKeyTypeError, match="a schema of Avro that nests more than 200"):
        avro(nested_arrays(200)).decode(b"\0")


@pytest.mark.parametrize(
    ("schema", "data", "message"),
    [
        (record("R", r="R"), b"", "'R' has too many fields that take no bytes"),
        (doubled(20), b"", "too many fields that take no bytes"),
        (record("R", n="null", **dict.fromkeys(HUNDRED, "null")), b"", "too many fields that"),
        *(
            ({"type": "array", "items": items}, b"\1\0", "items that take no bytes")
            for items in ("null", EMPTY, record("R"), record("R", n="null", f=EMPTY))
        ),
        (record("R", f=EMPTY, **dict.fromkeys(HUNDRED, "F")), b"", "too many fields that"),
        ("[" * 900 + "]" * 900, b"", "nests more than 200 deep"),
        ("[" * 60_000, b"", "nests too deep"),
    ],
)
def test_schemas_that_are_too_much(schema: Any, data: bytes, message: str) -> None:
    with pytest.raises(UnsupportedKeyTypeError, match=message):
        avro(schema).decode(data)


@pytest.mark.parametrize(
    "schema",
    [
        *("", "{", "5", "null", '"N"', "{}", '{"type":"record"}', '["null","N"]', '{"type":[]}'),
        '{"type":"record","name":"R","fields":5}',
        '{"type":"record","name":"R","fields":[5]}',
        '{"type":"record","name":"R","fields":[{"name":"n","type":"a.Missing"}]}',
        '{"type":"record","name":"R","fields":[{"name":"n","type":"int"},{"name":"n","type":"int"}]}',
        '{"type":"array"}',
        '{"type":"array","items":{"type":"map"}}',
        '{"type":"fixed","name":"F","size":-1}',
        '{"type":"fixed","name":"F","size":true}',
        '{"type":"enum","name":"E"}',
    ],
)
def test_what_is_no_schema(schema: str) -> None:
    for call in (lambda: avro(schema).decode(b""), lambda: avro(schema).encode({})):
        with pytest.raises(InvalidValueError, match="no schema of Avro: "):
            call()


E = {"type": "enum", "name": "E"}
MARKS = {"__fastavro_parsed": True, "__named_schemas": {}}
NO_SCHEMAS: list[Any] = [
    *(E | {"symbols": symbols} for symbols in ({"A": 1}, "AB", [["A"]], [None], [7], ["\ud800"])),
    E | {"symbols": ["A", "A"]},
    *({**FIXED, "name": name} for name in (1, None, ["X"], {"X": 1})),
    *(record("R") | {"fields": [{"name": name, "type": "int"}]} for name in (1, None, ["a"])),
    record("R", a=FIXED, b=FIXED),
    record("R", a=record("X", a="int"), b=FIXED),
    record("R", a="Other"),
    record("R") | {"fields": {"name": "x"}},
    {"type": {"type": ["null", "int"]}},
    {"type": "fixed", "name": "F", "size": 10**400, "logicalType": "decimal", "precision": 1},
]


@pytest.mark.parametrize("schema", NO_SCHEMAS, ids=map(str, range(len(NO_SCHEMAS))))
@pytest.mark.parametrize(
    "marks", [{}, MARKS, {"__fastavro_parsed": True, "__named_schemas": {"Other": FLAT}}]
)
def test_schemas_that_say_they_are_checked(schema: Any, marks: dict[str, Any]) -> None:
    """The marks that fastavro leaves in a schema count for nothing, wherever they are."""
    for marked in (schema | marks, record("O", field=schema | marks), [schema | marks]):
        for call in (avro(marked).decode, avro(marked).encode):
            with pytest.raises(InvalidValueError, match="no schema of Avro: "):
                call(sb.i32(0))


@pytest.mark.parametrize("name", [1, None, ["a"], {"a": 1}])
def test_names_of_fields_that_are_no_text(name: Any) -> None:
    schema = record("R") | {"fields": [{"name": name, "type": "int"}]}
    with pytest.raises(InvalidValueError, match=re.escape(f"the name {name}")):
        avro(schema).decode(sb.i32(0))


def test_marks_of_schemas() -> None:
    named = {"__fastavro_parsed": True, "__named_schemas": {"E": {"type": "int"}}}
    assert avro(ENUM | named).decode(sb.i32(1)) == "B"
    in_record = avro(record("R", e=ENUM | MARKS, f="E") | named)
    assert in_record.decode(sb.i32(1, 0)) == {"e": "B", "f": "A"}


AVRO_DAMAGED = [
    (["null", "int"], sb.i32(2), "branch 2 of the 2 of a union"),
    (["null", "int"], sb.i32(-1), "branch -1 of the 2 of a union"),
    (ENUM, sb.i32(2), "symbol 2 of the 2 of E"),
    (ENUM, sb.i32(-1), "symbol -1 of the 2 of E"),
    (FIXED, b"\0", "too few bytes"),
    ({"type": "array", "items": "int"}, b"\x7f\0\0\0\1", "too few bytes"),
    ({"type": "array", "items": "int"}, b"\2\0", "too few bytes"),
    ({"type": "array", "items": "int"}, b"\xff" * 8 + b"\x7f", "too few bytes"),
    ({"type": "array", "items": "int"}, b"\xff" * 9 + b"\1", "a number of more than 63 bits"),
    ("string", sb.i32(1) + b"\xff", "codec can't decode"),
]


@pytest.mark.parametrize(("schema", "data", "message"), AVRO_DAMAGED)
def test_damaged_values_of_avro(schema: Any, data: bytes, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        avro(schema if isinstance(schema, dict | list) else json.dumps(schema)).decode(data)


# Avro: Unions: a branch is called as its type is, or as it is named.
BRANCHES: list[tuple[Any, str, Any, bytes]] = [
    ("boolean", "boolean", True, b"\1"),
    ("int", "int", 5, sb.i32(5)),
    ("long", "long", 5, sb.i64(5)),
    ("float", "float", 1.5, b"\x3f\xc0\0\0"),
    ("double", "double", 1.5, b"\x3f\xf8" + bytes(6)),
    ("bytes", "bytes", b"a", sb.i32(1) + b"a"),
    ("string", "string", "a", sb.i32(1) + b"a"),
    ({"type": "array", "items": "int"}, "array", [], b"\0"),
    ({"type": "map", "values": "int"}, "map", {}, b"\0"),
    (FLAT, "F", {"n": 5}, sb.i32(5)),
    ({**record("F2", n="int"), "type": "error"}, "F2", {"n": 5}, sb.i32(5)),
    (ENUM, "E", "B", sb.i32(1)),
    (FIXED, "X", b"ab", b"ab"),
]


def test_branches_of_unions_by_name() -> None:
    union = avro(["null", *(schema for schema, *_ in BRANCHES)])
    for place, (_, branch, value, data) in enumerate(BRANCHES, 1):
        assert union.encode((branch, value)) == sb.i32(place) + data
        assert union.decode(sb.i32(place) + data) == (branch, value)


AVRO_VALUES = [
    ({"type": "array", "items": {**FIXED, "size": 1}}, [b"a"], b"\1a\0"),
    (["int"], 5, sb.i32(0) + sb.i32(5)),
    (record("R", n=["null", "int"]), {"n": None}, sb.i32(0)),
    (record("R", **dict.fromkeys(HUNDRED, "null")), dict.fromkeys(HUNDRED), b""),
    (["null", "int"], ("int", 5), sb.i32(1) + sb.i32(5)),
    (FIXED, b"ab", b"ab"),
    (record("R", f=EMPTY), {"f": b""}, b""),
    ({"type": "map", "values": FIXED}, {"a": b"bc"}, b"\1" + sb.i32(1) + b"abc\0"),
    ({"type": "array", "items": ENUM}, ["B"], b"\1" + sb.i32(1) + b"\0"),
]


@pytest.mark.parametrize(("schema", "value", "data"), AVRO_VALUES)
def test_values_of_avro(schema: Any, value: Any, data: bytes) -> None:
    assert avro(schema).encode(value) == data
    assert avro(schema).decode(data) == value


def test_blocks_of_avro() -> None:
    """An array may come in several."""
    assert avro({"type": "array", "items": FIXED}).decode(b"\1ab\2cdef\0") == [b"ab", b"cd", b"ef"]


@pytest.mark.parametrize(
    ("schema", "value", "error", "message"),
    [
        (FLAT, {"m": 5}, InvalidValueError, "F must have the fields n, got {'m': 5}"),
        (FLAT, [5], InvalidTypeError, "F must be a dict"),
        (FLAT, {"n": 2**31}, InvalidValueError, "2147483648"),
        (["null", "int"], 5, InvalidTypeError, "union of null, int must be a pair of branch and"),
        (["null", "int"], ("long", 5), InvalidValueError, "must be a branch and its value"),
        (["null", "int"], ("null", None), InvalidValueError, "must be a branch and its value"),
        (["int", "long"], ("int",), InvalidValueError, "must be a branch and its value"),
        (ENUM, "C", InvalidValueError, "E must be of A, B, got 'C'"),
        (ENUM, 0, InvalidTypeError, "E must be a str, got 0"),
        (FIXED, b"abc", InvalidValueError, "X must take 2 bytes, got 3"),
        (FIXED, "ab", InvalidTypeError, "X must be bytes, got 'ab'"),
        (record("R", s="string"), {"s": b"a"}, InvalidTypeError, "string must be a str, got b'a'"),
        ({"type": "array", "items": "int"}, (5,), InvalidTypeError, "array must be a list, got"),
        ({"type": "map", "values": "int"}, [5], InvalidTypeError, "map must be a dict, got"),
        ({"type": "map", "values": "int"}, {5: 5}, InvalidTypeError, "string must be a str, got"),
        (record("R", s="string"), {"s": "\ud800"}, InvalidValueError, "half of a surrogate pair"),
        (record("R", n="null"), {"n": 0}, InvalidTypeError, "null must be None"),
    ],
)
def test_what_avro_does_not_write(
    schema: Any, value: Any, error: type[KeyGroupsError], message: str
) -> None:
    with pytest.raises(error, match=f"^value: .*{message}"):
        avro(schema).encode(value)
