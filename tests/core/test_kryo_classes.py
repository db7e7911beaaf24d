"""Classes of a job that Kryo wrote, read as a user describes them.

The values are those of real Flink, of both versions of Kryo; classes of the same names are in the
job that wrote them.
"""

from __future__ import annotations

import pickle
import struct
from array import array
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.kryo_values import COLOR, DESCRIBED, OF_THE_JOB, PLAIN, by_name, in_python, kryo
from support.bytes.serializer_cases import cases
from support.golden import lines
from support.inside.serializers import (
    BODIES,
    FINAL,
    KEY_TYPES,
    PRIMITIVES,
    SUPERTYPES,
    KryoSerializer,
)

from keygroups import assign_to_key_group, types
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    SavepointError,
    UnsupportedKeyTypeError,
)
from keygroups.savepoint import KryoEnum, KryoFields, Pojo, read_savepoint
from keygroups.savepoint.values import LocalDate
from keygroups.state_keys import Serializer


@pytest.mark.parametrize("name", OF_THE_JOB)
def test_values_of_real_flink(name: str) -> None:
    versions = set()
    for case in cases():
        if case.name != f"kryo.{name}":
            continue
        serializer = Serializer.from_snapshot(
            sb.i32(2) + case.snapshot, serializers=DESCRIBED, kryo_version=case.kryo_version
        )
        for value in case.values:
            assert serializer.decode(value.data) == in_python(value.json), (case, value)
        versions.add(case.kryo_version)
    assert versions == {2, 5}


def test_a_class_of_flink_with_a_serializer_of_the_job() -> None:
    """Kryo gives it another number, and the classes behind it those that follow.

    The values are those of Flink 2.3.0, whose job registered a serializer for UUID and one for
    Order: their classes are 58 and 59 less 2.
    """
    plain = sb.utf("java.lang.Object") + sb.i32(0)
    registered = {"java.lang.Object": plain, "java.util.UUID": b"its own", "Order": b"its own"}
    maps = sb.optional_map(dict(registered)) + sb.optional_map({}) * 2
    snapshot = sb.snapshot(
        f"{sb.JAVA}kryo.KryoSerializerSnapshot", 2, sb.utf("java.lang.Object") + maps
    )
    serializer = Serializer.from_snapshot(
        sb.i32(2) + snapshot, serializers={"Order": KryoFields(a="java.lang.String")}
    )
    assert serializer.decode(bytes.fromhex("5901018278")) == Pojo("Order", {"a": "x"})
    with pytest.raises(UnsupportedKeyTypeError, match=r"an object of 'java.util.UUID' takes"):
        serializer.decode(bytes.fromhex("58018278"))


NEW = b"\1"  # the mark of an object that is no reference
LIST, MAP = by_name("java.util.ArrayList", 1), by_name("java.util.HashMap", 1)
STRINGS = "java.util.List<java.lang.String>"
LISTS = f"java.util.Map<java.lang.String, {STRINGS}>"
PARTITION = "org.apache.flink.streaming.connectors.kafka.internals.KafkaTopicPartition"
TEXT = b"a\xe2"  # "ab"
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

# Kryo 5: CollectionSerializer, MapSerializer, DefaultGenerics; Kryo 2: their setGenerics.
# type, version, the bytes of the field, its value
FIELDS = [
    ("int", 5, b"\x05", -3),
    ("long", 2, b"\x05", -3),
    ("short", 5, b"\2\1", 0x102),
    ("short", 2, b"\1\2", 0x102),
    ("byte", 5, b"\xff", -1),
    ("char", 2, b"\0a", "a"),
    ("boolean", 5, b"\1", True),
    ("float", 5, struct.pack("<f", 1.5), 1.5),
    ("java.lang.Short", 5, b"\0", None),
    ("java.lang.Integer", 5, b"\1\5", -3),
    ("java.lang.String", 5, b"\0", None),
    ("java.lang.String", 2, NEW + TEXT, "ab"),
    ("java.lang.Object", 5, b"\0", None),
    ("java.lang.Object", 5, b"\2\5", -3),  # an Integer by its number
    ("java.util.UUID", 5, NEW + bytes(15) + b"\1", UUID(int=1 << 56)),
    ("double", 5, struct.pack("<d", 1.5), 1.5),
    # Kryo 5: TimeSerializers. Of hour, minute and second the last that is not 0 is inverted.
    *(
        ("java.time.LocalTime", 5, NEW + bytes.fromhex(data), value)
        for data, value in [
            ("ff", time(0)),
            ("f8", time(7)),
            ("f7", time(8)),
            ("07e1", time(7, 30)),
            ("07e0", time(7, 31)),
            ("071efa", time(7, 30, 5)),
            ("071efb", time(7, 30, 4)),
            ("071e05e807", time(7, 30, 5, 1)),  # 1,000 nanoseconds
        ]
    ),
    ("java.time.LocalDate", 5, NEW + b"\xe5\x0f\3\4", date(2021, 3, 4)),
    ("java.time.LocalDate", 5, NEW + b"\xff\xff\xff\xff\x0f\3\4", LocalDate(-1, 3, 4)),
    ("java.time.Instant", 5, NEW + b"\xff" * 9 + b"\0", EPOCH - timedelta(seconds=1)),
    ("java.time.Instant", 5, NEW + b"\1\0", EPOCH + timedelta(seconds=1)),
    # A class of Flink's, which is final, with a hash, a number and a topic.
    (
        PARTITION,
        5,
        NEW + b"\0\2" + NEW + TEXT,
        Pojo(PARTITION, {"cachedHash": 0, "partition": 1, "topic": "ab"}),
    ),
    # Arrays: one more than their length, and elements; boxed ones have a mark before each.
    ("[S", 5, NEW + b"\3" + b"\2\1\xff\xff", array("h", [0x102, -1])),
    ("[S", 2, NEW + b"\2" + b"\1\2", array("h", [0x102])),
    ("[F", 5, NEW + b"\2" + struct.pack("<f", 1.5), array("f", [1.5])),
    ("[F", 2, NEW + b"\2" + struct.pack(">f", 1.5), array("f", [1.5])),
    ("[Ljava.lang.String;", 5, NEW + b"\3" + NEW + TEXT + b"\0", ["ab", None]),
    *(
        (f"[Ljava.lang.{name};", 5, NEW + b"\3\1" + data + b"\0", [element, None])
        for name, data, element in [
            ("Integer", b"\5", -3),
            ("Long", b"\5", -3),
            ("Short", b"\2\1", 0x102),
            ("Byte", b"\xff", -1),
            ("Character", b"a\0", "a"),
            ("Float", struct.pack("<f", 1.5), 1.5),
            ("Double", struct.pack("<d", 1.5), 1.5),
            ("Boolean", b"\1", True),
        ]
    ),
    # Lists: in Kryo 5 whether they have nulls or are of one class, and their number and one.
    (STRINGS, 5, LIST + NEW + b"\3" + NEW + TEXT + b"\4", ["ab", "ab"]),  # the second refers
    (STRINGS, 5, LIST + NEW + b"\x82\0", [None]),
    (STRINGS, 5, LIST + NEW + b"\1", []),
    ("java.util.List", 5, LIST + NEW + b"\x81", []),  # none is of another class
    (STRINGS, 2, LIST + NEW + b"\2" + NEW + TEXT + b"\0", ["ab", None]),
    ("java.util.List", 5, LIST + NEW + b"\x82\3\0" + NEW + TEXT, ["ab"]),
    ("java.util.List", 2, LIST + NEW + b"\1\3" + NEW + TEXT, ["ab"]),
    (
        "java.util.List<java.lang.Integer>",
        5,
        by_name("java.util.ImmutableCollections$ListN", 1) + NEW + b"\3\2\5",
        [1, -3],
    ),
    (
        "java.util.Map<java.lang.String, java.lang.Integer>",
        5,
        by_name("java.util.ImmutableCollections$MapN", 1) + NEW + b"\2" + NEW + TEXT + b"\2",
        {"ab": 1},
    ),
    ("java.util.Map<java.lang.String, int>", 5, MAP + NEW + b"\1", {}),
    (
        "java.util.Map<java.lang.String, java.lang.Integer>",
        2,
        MAP + NEW + b"\1" + NEW + TEXT + b"\1\2",
        {"ab": 1},
    ),
    # Kryo 5 looks at the arguments of lists in others too, Kryo 2 does not.
    (
        f"java.util.List<{STRINGS}>",
        5,
        LIST + NEW + b"\x82" + b"\1\1\0" + NEW + b"\2" + NEW + TEXT,
        [["ab"]],
    ),
    (
        f"java.util.List<{STRINGS}>",
        5,
        LIST + NEW + b"\3" + b"\1\1" + NEW + b"\2" + NEW + TEXT + b"\2\5",
        [["ab"], -3],
    ),
    (
        f"java.util.List<{STRINGS}>",
        2,
        LIST + NEW + b"\1" + b"\1\1" + NEW + b"\1\3" + NEW + TEXT,
        [["ab"]],
    ),
    (
        LISTS,
        5,
        MAP + NEW + b"\2" + NEW + TEXT + by_name("java.util.ArrayList", 2) + NEW + b"\2\4",
        {"ab": ["ab"]},
    ),
]


@pytest.mark.parametrize(("declared", "version", "data", "value"), FIELDS)
def test_fields(declared: str, version: int, data: bytes, value: Any) -> None:
    serializer = kryo("a.B", version, a_B=KryoFields(f=declared))
    read = serializer.decode(by_name("a.B") + NEW + data)
    assert read == Pojo("a.B", {"f": value})
    assert type(read.f) is type(value)
    if declared in {*PRIMITIVES, *KEY_TYPES}:
        assert serializer.encode(read) == by_name("a.B") + NEW + data


@pytest.mark.parametrize(
    ("version", "length", "before"),
    [(2, 63, b""), (2, 64, b"\xc1\1"), (5, 32, b""), (5, 33, b"\xa2"), (5, 64, b"\xc1\1")],
)
def test_texts_of_a_length(version: int, length: int, before: bytes) -> None:
    """Short ones have a mark in the last character; Kryo: Output.writeString, of both versions."""
    serializer = kryo("a.B", version, a_B=KryoFields(f="java.lang.String"))
    text = "x" * length
    data = before + text.encode() if before else b"x" * (length - 1) + b"\xf8"
    written = serializer.encode(Pojo("a.B", {"f": text}))
    assert written.endswith(data)
    assert serializer.decode(by_name("a.B") + NEW + NEW + data).f == text


@pytest.mark.parametrize(("count", "first"), [(62, b"\x3f"), (63, b"\x40\1"), (64, b"\x41\1")])
def test_the_length_of_a_list(count: int, first: bytes) -> None:
    """One more than the number, of which 6 bits are in a byte; Kryo 5: Output.writeVarIntFlag."""
    serializer = kryo("a.B", 5, a_B=KryoFields(f="java.util.ArrayList<java.lang.String>"))
    value = Pojo("a.B", {"f": [f"x{number}" for number in range(count)]})
    data = serializer.encode(value)
    assert LIST + NEW + first + NEW + b"x\xb0" in data
    assert serializer.decode(data) == value


def test_fields_of_described_classes() -> None:
    """A class that may have others below it is written, one that is final is not."""
    end = NEW + TEXT
    for is_final, before in ((False, by_name("a.C", 1)), (True, b"")):
        inner = KryoFields(f="java.lang.String", is_final=is_final)
        serializer = kryo("a.B", a_B=KryoFields(c="a.C", n=types.INT), a_C=inner)
        read = serializer.decode(by_name("a.B") + NEW + before + NEW + end + b"\2")
        assert read == Pojo("a.B", {"c": Pojo("a.C", {"f": "ab"}), "n": 1})
    for version, mark in ((2, NEW), (5, NEW)):
        serializer = kryo("a.B", version, a_B=KryoFields(e="a.E"), a_E=KryoEnum("X", "Y"))
        for data, value in ((mark + b"\2", "Y"), (b"\0", None), (mark + b"\0", None)):
            assert serializer.decode(by_name("a.B") + NEW + data) == Pojo("a.B", {"e": value})
        for data in (b"\3", b"\xff\xff\xff\xff\x0f"):
            with pytest.raises(InvalidValueError, match=r"constant .* of the 2 of a\.E"):
                serializer.decode(by_name("a.B") + NEW + mark + data)


def test_what_is_not_read_by_fields() -> None:
    fields = KryoFields(f=STRINGS, g=STRINGS)
    shared = by_name("a.B") + NEW + LIST + NEW + b"\0" + by_name("java.util.ArrayList", 1)[:2]
    with pytest.raises(UnsupportedKeyTypeError, match="a type that an object before has too"):
        kryo("a.B", 2, a_B=fields).decode(shared + b"\3")
    of_5 = by_name("a.B") + NEW + LIST + NEW + b"\1" + b"\1\1\3"
    assert kryo("a.B", 5, a_B=fields).decode(of_5) == Pojo("a.B", {"f": [], "g": []})
    nested = KryoFields(f="a.B", is_final=True)
    with pytest.raises(UnsupportedKeyTypeError, match="nest more than 50 deep"):
        kryo("a.B", a_B=nested).decode(by_name("a.B") + NEW * 100)
    for data in (b"", NEW, NEW + b"\1"):
        with pytest.raises(InvalidValueError):
            kryo("a.B", a_B=nested).decode(by_name("a.B") + data)


def test_a_set_of_no_enum() -> None:
    with pytest.raises(InvalidValueError, match="a set of constants of no enum"):
        kryo("java.util.EnumSet").decode(by_name("java.util.EnumSet") + NEW + b"\0")


def test_descriptions() -> None:
    for made, text in (
        (
            PLAIN,
            "KryoFields({'x': 'int', 'y': 'java.lang.String', "
            "'zs': 'java.util.List<java.lang.Long>'})",
        ),
        (KryoFields(is_final=True), "KryoFields({}, is_final=True)"),
        (
            KryoFields({"is_final": types.MAP(types.STRING, types.SET(types.INT))}),
            "KryoFields({'is_final': "
            "'java.util.Map<java.lang.String, java.util.Set<java.lang.Integer>>'})",
        ),
        (COLOR, "KryoEnum('RED', 'GREEN', 'BLUE', 'VIOLET_é')"),
    ):
        assert repr(made) == text
        assert pickle.loads(pickle.dumps(made)) == made
        assert hash(made) == hash(pickle.loads(pickle.dumps(made)))
    five = kryo("a.B", a_B=PLAIN)
    assert pickle.loads(pickle.dumps(five)) == five != kryo("a.B")


BAD_FIELDS: list[tuple[Any, type[KeyGroupsError], str]] = [
    ({"fields": 5}, InvalidTypeError, "fields must be a mapping, got 5"),
    (
        {"fields": {"x": "int"}, "x": "int"},
        InvalidValueError,
        "fields must be there once, got 'x' twice",
    ),
    ({"fields": {5: "int"}}, InvalidTypeError, "name of a field must be a str, got 5"),
    ({"x": 5}, InvalidTypeError, "type of field 'x' must be a str, got 5"),
    ({"x": ""}, InvalidValueError, "type of field 'x' must be such as .*, got ''"),
    *(
        ({"x": text}, InvalidValueError, f"type of field 'x' must be such as .*, got '{text}'")
        for text in ("a<", "a<b", "a<b>>", "a<b,>", "<", "a<>", "a b", "a<b>c", "a," * 3)
    ),
    ({"x": "a<" * 20 + "b" + ">" * 20}, InvalidValueError, "type of field 'x' must be such as"),
    ({"x": types.TUPLE(types.INT)}, InvalidValueError, "must be a class of Java, or a key type"),
    ({"x": types.LIST(types.NULL)}, InvalidValueError, "must be a class of Java, or a key type"),
    ({"is_final": 1}, InvalidTypeError, "is_final must be a bool, got 1"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), BAD_FIELDS)
def test_bad_fields(arguments: Any, error: type[KeyGroupsError], message: str) -> None:
    others = {name: value for name, value in arguments.items() if name != "fields"}
    with pytest.raises(error, match=message):
        KryoFields(arguments.get("fields"), **others)


# Key types, with the types of Java's language that they are, and their classes as arguments.
OF_KEY_TYPES = [
    *((types.BOOLEAN, "boolean", "lang.Boolean"), (types.BYTE, "byte", "lang.Byte")),
    *((types.CHAR, "char", "lang.Character"), (types.DOUBLE, "double", "lang.Double")),
    *((types.FLOAT, "float", "lang.Float"), (types.INT, "int", "lang.Integer")),
    *((types.LONG, "long", "lang.Long"), (types.SHORT, "short", "lang.Short")),
    *((types.STRING, "", "lang.String"), (types.UUID, "", "util.UUID")),
    *((types.INSTANT, "", "time.Instant"), (types.LOCAL_DATE, "", "time.LocalDate")),
    *((types.LOCAL_TIME, "", "time.LocalTime"), (types.BIG_INT, "", "math.BigInteger")),
    *((types.LOCAL_DATE_TIME, "", "time.LocalDateTime"), (types.BIG_DEC, "", "math.BigDecimal")),
]


@pytest.mark.parametrize(("key_type", "primitive", "name"), OF_KEY_TYPES)
def test_fields_of_key_types(key_type: types.KeyType, primitive: str, name: str) -> None:
    fields = KryoFields(
        f=key_type,
        l=types.LIST(key_type),
        s=types.SET(key_type),
        m=types.MAP(key_type, types.LIST(key_type)),
    )
    assert fields.fields == (
        ("f", primitive or f"java.{name}"),
        ("l", f"java.util.List<java.{name}>"),
        ("s", f"java.util.Set<java.{name}>"),
        ("m", f"java.util.Map<java.{name}, java.util.List<java.{name}>>"),
    )
    known = KryoSerializer(f"java.{name}").key_type
    assert known == (None if name.startswith("math.") else key_type)


def test_type_arguments_of_type_arguments() -> None:
    """Eight levels are read."""
    declared = "a.B" + "<a.B" * 8 + ">" * 8
    assert KryoFields(f=declared).fields == (("f", declared),)
    with pytest.raises(InvalidValueError, match="type of field 'f' must be such as"):
        KryoFields(f=f"a.B<{declared}>")


def test_bad_constants() -> None:
    with pytest.raises(InvalidValueError, match="constants must be there once, got"):
        KryoEnum("A", "A")
    with pytest.raises(InvalidTypeError, match="constant must be a str, got 5"):
        KryoEnum(5)  # type: ignore[arg-type]


@pytest.mark.branch
@pytest.mark.long
@pytest.mark.parametrize(
    ("described", "named"),
    [
        ({"a.B": KryoFields(f="a.C")}, "'a.C'"),
        ({"a.B": KryoFields(f="java.util.List<a.C>"), "a.D": COLOR}, "'a.C'"),
        ({"a.B": KryoFields(f="java.util.OptionalInt")}, "'java.util.OptionalInt'"),
    ],
)
def test_a_class_of_a_field_is_known(
    described: Mapping[str, Any], named: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidValueError, match=f"field 'f' of 'a.B' must be of .* got {named}"):
        read_savepoint(tmp_path, serializers=described)
    for known in ({"a.B": KryoFields(f="a.B")}, {"a.B": KryoFields(f="java.util.List<int>")}):
        with pytest.raises(SavepointError, match="_metadata"):  # the folder has none
            read_savepoint(tmp_path, serializers=known)


def test_a_name_that_is_no_snapshot(tmp_path: Path) -> None:
    """A snapshot of a class that is described, as no snapshot of Flink is."""
    with pytest.raises(SavepointError, match=r"snapshot 'a.B' is not known"):
        Serializer.from_snapshot(sb.i32(2) + sb.utf("a.B") + sb.i32(1), serializers={"a.B": PLAIN})


def test_the_version_by_default() -> None:
    """Kryo 5 is that of Flink 2."""
    assert KryoSerializer("a.B") == KryoSerializer("a.B", 5) != KryoSerializer("a.B", 2)
    data = sb.i32(2) + sb.kryo_of("java.lang.Object")
    five, two = (Serializer.from_snapshot(data, kryo_version=version) for version in (5, 2))
    assert Serializer.from_snapshot(data) == five != two


def test_tables_of_classes() -> None:
    """Those of which a field says the class are read; those above are none of them."""
    assert BODIES.keys() >= FINAL
    assert KEY_TYPES.keys() <= FINAL
    assert not SUPERTYPES & BODIES.keys()
    known = [line for line in lines("java_classes") if "class" in line]
    assert {line["class"] for line in known} == BODIES.keys()
    assert {name for line in known for name in line["above"]} - BODIES.keys() == SUPERTYPES
    # An Object[] may be an Integer[] too, and the classes of an EnumSet were not always final.
    final = {line["class"] for line in known if line["final"]} - {"[Ljava.lang.Object;"}
    assert {name for name in final if "EnumSet" not in name} == FINAL
    for name in (
        "a.B",
        "java.util.OptionalInt",
        "org.apache.flink.util.Either",
        "sun.Any",
        "[La.B;",
    ):
        assert KryoSerializer(name).read is None
    for name in (*BODIES, *SUPERTYPES):
        assert KryoSerializer(name).read is not None


# --- keys -----------------------------------------------------------------------------------

MOMENT = datetime(2024, 2, 29, 23, 59, 59, 999_999)
KEYS = [
    ("java.util.UUID", UUID(int=5 << 80)),
    ("java.time.LocalDate", date(2020, 11, 1)),
    ("java.time.LocalTime", time(23, 0, 5)),
    ("java.time.LocalTime", time(13, 45)),
    ("java.time.LocalDateTime", MOMENT),
    ("java.time.Instant", MOMENT.replace(tzinfo=timezone.utc)),
    ("java.lang.Integer", -5),
    ("java.lang.String", "é"),
]


@pytest.mark.parametrize("version", [2, 5])
@pytest.mark.parametrize(("java_class", "key"), KEYS)
def test_keys_of_final_classes(java_class: str, key: Any, version: int) -> None:
    serializer = KryoSerializer(java_class, version)
    assert serializer.key_type == KEY_TYPES[java_class]
    assert serializer.decode(serializer.encode(key)) == key
    assert serializer.encode(None) == b"\0"
    assert serializer.decode(b"\0") is None
    assign_to_key_group(key, 128, serializer.key_type)
    other = KryoSerializer("java.math.BigDecimal", version)
    assert other.key_type is None
    with pytest.raises(InvalidValueError, match=f"'java.lang.Boolean', where {java_class} has"):
        serializer.decode(b"\5\1")  # another class, which is no subclass
