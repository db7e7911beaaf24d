"""Values of classes that a user describes, written: the bytes are those of real Flink's Kryo.

Flink 1.18.0 and 2.3.0 wrote the values below, of a class `Lab$Whole` with fields of those types;
`value_of` makes the same in Python.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.kryo_values import DESCRIBED, OF_THE_JOB, by_name, in_python, kryo
from support.bytes.serializer_cases import cases
from support.inside.serializers import KryoSerializer, OptionalItem

from keygroups import assign_to_key_group, types
from keygroups.errors import InvalidTypeError, InvalidValueError, UnsupportedKeyTypeError
from keygroups.savepoint import (
    KryoEnum,
    KryoFields,
    Pojo,
    SavepointWriter,
    read_savepoint,
)
from keygroups.state_keys import Serializer

INNER = KryoFields(n="java.lang.Integer", s=types.STRING)
WHOLE = KryoFields(
    amount=types.BIG_DEC,
    any="java.lang.Object",
    big=types.BIG_INT,
    e1="Lab$E",
    e2="Lab$E",
    flag=types.BOOLEAN,
    id="java.util.UUID",
    inner="Lab$Inner",
    inners="java.util.ArrayList<Lab$Inner>",
    ints="java.util.HashSet<java.lang.Integer>",
    lists="java.util.LinkedHashMap<java.lang.String, java.util.ArrayList<java.lang.Long>>",
    map="java.util.LinkedHashMap<java.lang.String, java.lang.Integer>",
    mixed="java.util.ArrayList<java.lang.Object>",
    nested="java.util.LinkedList<java.util.ArrayList<java.lang.String>>",
    none="java.lang.Long",
    texts="java.util.ArrayList<java.lang.String>",
)
CLASSES: dict[str, KryoFields | KryoEnum] = {
    "Lab$E": KryoEnum("X", "Y"),
    "Lab$Inner": INNER,
    "Lab$Sub": KryoFields(n="java.lang.Integer", s=types.STRING, z=types.LONG),
    "Lab$Whole": WHOLE,
}
WRITTEN: dict[int, list[str]] = {
    5: [
        "570100000000000100000000000000000000",
        "570101006a6176612e6d6174682e426967446563696d61ec0103cfcc060301746578f401016a6176"
        "612e6d6174682e426967496e74656765f20103ff7f0102010200010100000000000000feffffffff"
        "ffffff01024c616224496e6e65f201010a0161e201036a6176612e7574696c2e41727261794c6973"
        "f401830102000101020182780101dfc5080001046a6176612e7574696c2e486173685365f401020e"
        "01056a6176612e7574696c2e4c696e6b6564486173684d61f0010301826b01030103020301826d01"
        "030101010501030182610102018262000103010403016f6ee5010001021902050101066a6176612e"
        "7574696c2e4c696e6b65644c6973f401830103000103018270018271010201827201120103010301"
        "74b00174b1",
        "570101006a6176612e6d6174682e426967446563696d61ec0102010901014c616224496e6e65f201"
        "000182c3a901026a6176612e6d6174682e426967496e74656765f2010a0100000000000000000102"
        "010200010100000000000000feffffffffffffff010101010a0161e201036a6176612e7574696c2e"
        "41727261794c6973f40105010101010201827801010101dfc5080001044c6162245375e201010601"
        "7375e28080808080400001056a6176612e7574696c2e486173685365f401020e01066a6176612e75"
        "74696c2e4c696e6b6564486173684d61f0010301826b01030103020301826d010301010106010301"
        "8261010201826200010301830001076a6176612e7574696c2e4c696e6b65644c6973f40183010300"
        "010301827001827101020182720112010301c8010174b00174b10174b20174b30174b40174b50174"
        "b60174b70174b80174b9017431b0017431b1017431b2017431b3017431b4017431b5017431b60174"
        "31b7017431b8017431b9017432b0017432b1017432b2017432b3017432b4017432b5017432b60174"
        "32b7017432b8017432b9017433b0017433b1017433b2017433b3017433b4017433b5017433b60174"
        "33b7017433b8017433b9017434b0017434b1017434b2017434b3017434b4017434b5017434b60174"
        "34b7017434b8017434b9017435b0017435b1017435b2017435b3017435b4017435b5017435b60174"
        "35b7017435b8017435b9017436b0017436b1017436b2017436b3017436b4017436b5017436b60174"
        "36b7017436b8017436b900",
    ],
    2: [
        "570100000000000100000000000000000000",
        "570101006a6176612e6d6174682e426967446563696d61ec0103cfcc060301746578f401016a6176"
        "612e6d6174682e426967496e74656765f20103ff7f0102060001020301024c616224496e6e65f201"
        "010a0161e201036a6176612e7574696c2e41727261794c6973f40102010201010201827801020101"
        "dfc5080001046a6176612e7574696c2e486173685365f40101010e01056a6176612e7574696c2e4c"
        "696e6b6564486173684d61f0010201826b010301020902090301826d010301000105010201826101"
        "02018262000103010303016f6ee5010001021902050101066a6176612e7574696c2e4c696e6b6564"
        "4c6973f4010201030102030182700301827101030101030182720112010301020174b00174b1",
        "570101006a6176612e6d6174682e426967446563696d61ec0102010901014c616224496e6e65f201"
        "000182c3a901026a6176612e6d6174682e426967496e74656765f2010a0100000000000000000102"
        "0700010203010101010a0161e201036a6176612e7574696c2e41727261794c6973f4010401010101"
        "0201827801010101dfc5080001044c6162245375e2010106017375e28080808080400001056a6176"
        "612e7574696c2e486173685365f40101010e01066a6176612e7574696c2e4c696e6b656448617368"
        "4d61f0010201826b010301020902090301826d010301000106010201826101020182620001030102"
        "000001076a6176612e7574696c2e4c696e6b65644c6973f401020103010203018270030182710103"
        "0101030182720112010301470174b00174b10174b20174b30174b40174b50174b60174b70174b801"
        "74b9017431b0017431b1017431b2017431b3017431b4017431b5017431b6017431b7017431b80174"
        "31b9017432b0017432b1017432b2017432b3017432b4017432b5017432b6017432b7017432b80174"
        "32b9017433b0017433b1017433b2017433b3017433b4017433b5017433b6017433b7017433b80174"
        "33b9017434b0017434b1017434b2017434b3017434b4017434b5017434b6017434b7017434b80174"
        "34b9017435b0017435b1017435b2017435b3017435b4017435b5017435b6017435b7017435b80174"
        "35b9017436b0017436b1017436b2017436b3017436b4017436b5017436b6017436b7017436b80174"
        "36b900",
    ],
}


def inner(n: int | None, s: str | None) -> Pojo:
    return Pojo("Lab$Inner", {"n": n, "s": s})


def value_of(number: int) -> Pojo:
    """Return the same value that Flink wrote."""
    fields: dict[str, Any] = dict.fromkeys(dict(WHOLE.fields))
    fields["flag"] = number == 0
    if number:
        first = number == 1
        fields |= {
            "amount": Decimal("-12.340" if first else "1E+5"),
            "big": -129 if first else 2**64,
            "e1": "Y",
            "e2": "Y",
            "inner": inner(5, "ab"),
            "any": "text" if first else inner(None, "é"),
            "inners": [inner(1, "x"), inner(-70_000, None)],
            "texts": [f"t{place}" for place in range(2 if first else 70)],
            "mixed": ["one", Decimal("2.5"), True] if first else [None, None],
            "ints": {7},
            "map": {"a": 1, "b": None},
            "lists": {"k": [1, -2], "m": []},
            "id": UUID(int=(1 << 64) + 2**64 - 2),
            "none": 9,
            "nested": [["p", "q"], ["r"]],
        }
        if not first:
            sub = Pojo("Lab$Sub", {"n": 3, "s": "sub", "z": 1 << 40})
            fields["inners"] += [sub, None]
            fields["texts"].append(None)
    return Pojo("Lab$Whole", fields)


def serializer_of(version: int) -> KryoSerializer:
    """Flink registers the class itself, without a serializer."""
    plain = sb.utf("Lab$Whole") + sb.i32(0)
    maps: list[list[OptionalItem]] = [
        [OptionalItem("Lab$Whole", sb.utf("Lab$Whole"), plain)],
        [],
        [],
    ]
    return KryoSerializer("Lab$Whole", version, maps, [*CLASSES.items()])


@pytest.mark.parametrize("version", [2, 5])
@pytest.mark.parametrize("number", range(3))
def test_what_flink_wrote(version: int, number: int) -> None:
    serializer, data = serializer_of(version), bytes.fromhex(WRITTEN[version][number])
    assert serializer.decode(data) == value_of(number)
    assert serializer.encode(value_of(number)).hex() == data.hex()
    assert serializer.encode(None) == b"\0"


def test_cases_of_real_flink() -> None:
    """What is of classes that the value, or the field, says is written as Flink wrote it."""
    listed = KryoFields(x=types.INT, y=types.STRING, zs="java.util.ArrayList<java.lang.Long>")
    described = {**DESCRIBED, "P$Plain": listed}
    same = refused = 0
    for case in cases():
        if case.name.removeprefix("kryo.") not in OF_THE_JOB:
            continue
        serializer = Serializer.from_snapshot(
            sb.i32(2) + case.snapshot, serializers=described, kryo_version=case.kryo_version
        )
        for value in case.values:
            try:
                written = serializer.encode(in_python(value.json))
            except UnsupportedKeyTypeError:
                refused += 1
            else:
                assert written == value.data, case
                same += 1
    assert (same, refused) == (196, 64)


ENUM, ANY = KryoEnum("X", "Y"), "java.lang.Object"
TWICE = ["a"]
REFUSED: list[tuple[str, Any, type[Exception], str]] = [
    (ANY, 5, UnsupportedKeyTypeError, "5 of a java.lang.Object cannot be written, as it does not"),
    ("java.util.ArrayList", [5], UnsupportedKeyTypeError, "5 of a java.lang.Object cannot be"),
    ("java.math.BigInteger", "a", InvalidTypeError, "BIG_INT must be an int, got 'a'"),
    *(
        (f"java.time.{name}", "a", InvalidTypeError, f"{key_type} must be ")
        for name, key_type in [
            ("LocalDate", "LOCAL_DATE"),
            ("LocalTime", "LOCAL_TIME"),
            ("LocalDateTime", "LOCAL_DATE_TIME"),
            ("Instant", "INSTANT"),
        ]
    ),
    ("java.util.List", [], UnsupportedKeyTypeError, r"such as java\.util\.ArrayList"),
    ("java.util.LinkedHashSet", {"a"}, UnsupportedKeyTypeError, "of a java.util.LinkedHashSet"),
    (ANY, Pojo("a.D", {}), UnsupportedKeyTypeError, "an object of 'a.D' takes the job to write"),
    ("java.util.Optional", "x", UnsupportedKeyTypeError, "java.util.Optional' cannot be written"),
    ("int", None, InvalidValueError, "a int must not be None"),
    ("int", "a", InvalidTypeError, "must be an int, got 'a'"),
    ("java.lang.Integer", 2**31, InvalidValueError, "must be from -2147483648"),
    ("java.util.ArrayList", {}, InvalidTypeError, "a java.util.ArrayList must be a list, got {}"),
    ("java.util.HashSet", [], InvalidTypeError, "a java.util.HashSet must be a set"),
    ("java.util.HashMap", [], InvalidTypeError, "a java.util.HashMap must be a dict"),
    ("java.math.BigDecimal", 5, InvalidTypeError, "BIG_DEC must be a Decimal, got 5"),
    ("a.E", "Z", InvalidValueError, r"a a\.E must be one of \('X', 'Y'\), got 'Z'"),
    ("a.C", "x", InvalidTypeError, r"a a\.C must be a Pojo of that class, got 'x'"),
    ("a.C", Pojo("a.C", {"g": 1}), InvalidValueError, r"must have the fields \['f'\], got"),
    (
        "java.util.ArrayList<java.util.ArrayList<java.lang.String>>",
        [TWICE, TWICE],
        UnsupportedKeyTypeError,
        "is twice in a value, which only the job writes: as one object of Java's, or as two",
    ),
]


@pytest.mark.parametrize("version", [2, 5])
@pytest.mark.parametrize(("declared", "value", "error", "message"), REFUSED)
def test_refused(
    version: int, declared: str, value: Any, error: type[Exception], message: str
) -> None:
    serializer = kryo(
        *("a.B", version), a_B=KryoFields(f=declared), a_E=ENUM, a_C=KryoFields(f=declared)
    )
    with pytest.raises(error, match=message):
        serializer.encode(Pojo("a.B", {"f": value}))


# JDK: BigInteger.toByteArray, the fewest bytes with a bit of the sign.
BIG_INTEGERS = {
    0: "00",
    -1: "ff",
    127: "7f",
    128: "0080",
    -128: "80",
    -129: "ff7f",
    255: "00ff",
    -256: "ff00",
    -257: "feff",
    32_767: "7fff",
    -32_768: "8000",
    -32_769: "ff7fff",
}


@pytest.mark.parametrize("number", BIG_INTEGERS)
def test_big_integers(number: int) -> None:
    """The number of bytes, above 0, and the bytes. Kryo: BigIntegerSerializer."""
    serializer = kryo("a.B", a_B=KryoFields(f=types.BIG_INT))
    data = bytes.fromhex(BIG_INTEGERS[number])
    written = serializer.encode(Pojo("a.B", {"f": number}))
    big_integer = by_name("java.math.BigInteger", 1)
    assert written == by_name("a.B") + b"\1" + big_integer + b"\1" + bytes([len(data) + 1]) + data


# The scale follows in zigzag: 0, -1, 1 and -2 are 0, 1, 2 and 3.
BIG_DECIMALS = {
    "5": "020500",
    "5E+1": "020501",
    "0.5": "020502",
    "5E+2": "020503",
    "-1.28": "028004",
}


@pytest.mark.parametrize("number", BIG_DECIMALS)
def test_big_decimals(number: str) -> None:
    """Kryo: DefaultSerializers.BigDecimalSerializer."""
    serializer = kryo("a.B", a_B=KryoFields(f=types.BIG_DEC))
    value = Pojo("a.B", {"f": Decimal(number)})
    start = by_name("a.B") + b"\1" + by_name("java.math.BigDecimal", 1) + b"\1"
    assert serializer.encode(value) == start + bytes.fromhex(BIG_DECIMALS[number])
    assert repr(serializer.decode(serializer.encode(value))) == repr(value)


STRINGS_TO_INTS = "java.util.HashMap<java.lang.String, java.lang.Integer>"
MAPS_IN_OTHERS: list[tuple[str, int, Any, bytes]] = [
    # Kryo 5 passes the types of a map on to it, which final keys and values have no class then.
    (f"java.util.ArrayList<{STRINGS_TO_INTS}>", 5, [{"ab": 1}], b"\1\2\1a\xe2\1\2"),
    (
        f"java.util.HashMap<java.lang.String, {STRINGS_TO_INTS}>",
        5,
        {"x": {"ab": 1}},
        b"\1\2\1a\xe2\1\2",
    ),
    # Kryo 2 does not.
    (
        f"java.util.HashMap<java.lang.String, {STRINGS_TO_INTS}>",
        2,
        {"x": {"ab": 1}},
        b"\1\1\3\1a\xe2\2\2",
    ),
]


@pytest.mark.parametrize(("declared", "version", "value", "end"), MAPS_IN_OTHERS)
def test_maps_in_others(declared: str, version: int, value: Any, end: bytes) -> None:
    """Kryo 5: MapSerializer, Generics.nextGenericTypes; Kryo 2: MapSerializer.setGenerics."""
    serializer = kryo("a.B", version, a_B=KryoFields(f=declared))
    written = serializer.encode(Pojo("a.B", {"f": value}))
    assert written.endswith(end)
    assert serializer.decode(written) == Pojo("a.B", {"f": value})


def test_elements_without_null() -> None:
    """Of a final class, and in a class of the job that is one."""
    final = KryoFields(f="int", is_final=True)
    serializer = kryo("a.B", a_B=KryoFields(f="java.util.ArrayList<a.C>"), a_C=final)
    value = Pojo("a.B", {"f": [Pojo("a.C", {"f": -3})]})
    assert serializer.decode(serializer.encode(value)) == value
    deep: Any = None
    for _ in range(60):
        deep = Pojo("a.B", {"f": deep})
    with pytest.raises(InvalidValueError, match="must nest at most 50 deep"):
        kryo("a.B", a_B=KryoFields(f="a.B")).encode(deep)


def test_how_deep_a_value_nests_is_counted_beside_others() -> None:
    """Neither more nor less deep than without the elements before it in its list."""
    serializer = kryo("a.B", a_B=KryoFields(f="java.util.ArrayList<a.B>", g="a.B"))

    def chain(count: int) -> Pojo | None:
        value = None
        for _ in range(count):
            value = Pojo("a.B", {"f": None, "g": value})
        return value

    for others in (0, 1, 100):
        for count in (48, 49):  # The object that has the list, and the list, are two more.
            elements = [*(chain(1) for _ in range(others)), chain(count)]
            value = Pojo("a.B", {"f": elements, "g": None})
            if count == 48:
                assert serializer.decode(serializer.encode(value)) == value
                continue
            with pytest.raises(InvalidValueError, match="must nest at most 50 deep"):
                serializer.encode(value)


def test_subclasses() -> None:
    """A Pojo says its class, wherever it stands; a value of Object is written by its own."""
    serializer = kryo(ANY, a_B=KryoFields(f="int"))
    value = Pojo("a.B", {"f": 1})
    assert serializer.encode(value) == by_name("a.B") + b"\1\2"
    assert serializer.encode("ab") == b"\3\1a\xe2"
    no_other = KryoSerializer(ANY)  # It describes no class.
    assert no_other.write is None


UUIDS = {5: "010100000000000000feffffffffffffff", 2: "010203"}


@pytest.mark.parametrize("version", UUIDS)
def test_a_uuid_of_any_class_says_its_own(version: int) -> None:
    """By its number, 82, and two; the object is as Flink wrote it in a field of that class.

    Flink: FlinkChillPackageRegistrar, whose first class is 73 and whose tenth is UUID.
    """
    assert UUIDS[version] in WRITTEN[version][1]
    serializer = kryo(ANY, version, a_B=KryoFields(f="int"))
    value = UUID(int=(1 << 64) + 2**64 - 2)
    assert serializer.encode(value).hex() == "54" + UUIDS[version]
    assert serializer.decode(serializer.encode(value)) == value


SHARED: dict[str, Any] = {
    "java.util.ArrayList": [],
    "java.util.HashSet": set(),
    "java.util.HashMap": {},
    "a.C": Pojo("a.C", {"g": 1}),
    "java.math.BigDecimal": Decimal("1.5"),
    "java.lang.String": "text",
}


@pytest.mark.parametrize("declared", SHARED)
def test_an_object_that_is_twice_in_a_value(declared: str) -> None:
    """What can change may be one object of the job's or two, and what cannot is the same."""
    arguments = {"java.util.HashMap": "<java.lang.String, java.lang.String>"}
    arguments |= dict.fromkeys(("java.util.ArrayList", "java.util.HashSet"), "<java.lang.String>")
    element = declared + arguments.get(declared, "")
    fields = KryoFields(f=f"java.util.ArrayList<{element}>")
    serializer = kryo("a.B", a_B=fields, a_C=KryoFields(g="int"))
    value = Pojo("a.B", {"f": [SHARED[declared]] * 2})
    if declared in ("java.math.BigDecimal", "java.lang.String"):
        assert serializer.decode(serializer.encode(value)) == value
        return
    with pytest.raises(UnsupportedKeyTypeError, match="is twice in a value"):
        serializer.encode(value)


def test_keys_are_not_written() -> None:
    """Flink may have written an equal key in other bytes: with references, in another order."""
    serializer = kryo("a.B", a_B=KryoFields(f="int"))
    assert not serializer.writes_keys
    assert KryoSerializer("java.util.UUID").writes_keys


def test_a_new_value_in_a_savepoint(tmp_path: Path) -> None:
    """One is written where the old one stays; a key, a user key and a namespace are refused."""
    snapshot = sb.snapshot(
        f"{sb.JAVA}kryo.KryoSerializerSnapshot", 2, sb.utf("a.B") + sb.optional_map({}) * 3
    )
    states = [
        sb.state("value", "VALUE", snapshot),
        sb.state("pojo", "VALUE", sb.pojo_of("a.P", {"f": snapshot})),
        sb.state("map", "MAP", sb.map_of(snapshot, sb.simple("Long"))),
    ]
    header = sb.keyed_header(sb.simple("Long"), states)
    group = assign_to_key_group(5, 128, types.LONG)
    own, prefix = by_name("a.B") + b"\1\2", bytes([group]) + sb.i64(5) + b"\0"
    entries = [(prefix, own), (prefix, b"\2\0" + own), (prefix + own, b"\0" + sb.i64(3))]
    content = sb.canonical_key_group([(place, [item]) for place, item in enumerate(entries)])
    keyed = sb.canonical(group, [len(header)], sb.inline(header + content))
    sb.write(tmp_path / "old", [sb.operator([sb.subtask(managed_keyed=keyed)], uid="uid")])
    described = {"a.B": KryoFields(f="int")}
    old = read_savepoint(tmp_path / "old", serializers=described)
    new = Pojo("a.B", {"f": 70_000})
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as writer:
        editor = writer.operator("uid")
        editor.map_entries("value", lambda entry: new)
        editor.map_entries("pojo", lambda entry: Pojo("a.P", {"f": new}))
    operator = read_savepoint(tmp_path / "new", serializers=described).operator("uid")
    assert operator.get(5) == {
        "value": new,
        "pojo": Pojo("a.P", {"f": new}),
        "map": {Pojo("a.B", {"f": 1}): 3},
    }
    with (
        pytest.raises(UnsupportedKeyTypeError, match=r"a key of KRYO.* cannot be written here"),
        SavepointWriter.from_existing_savepoint(old, tmp_path / "refused") as writer,
    ):
        writer.operator("uid").map_entries("map", lambda item: [item._replace(user_key=new)])


def test_a_key_is_found_by_what_it_is_read_as(tmp_path: Path) -> None:
    """Not by bytes that are written here, which need not be those that Flink wrote."""
    snapshot = sb.snapshot(
        f"{sb.JAVA}kryo.KryoSerializerSnapshot", 2, sb.utf("a.B") + sb.optional_map({}) * 3
    )
    header = sb.keyed_header(snapshot, [sb.state("count", "VALUE", sb.simple("Long"))])
    shared = by_name("a.B") + b"\1" + by_name("java.util.ArrayList", 1) + b"\1\1"
    shared += by_name("java.util.ArrayList", 1)[:2] + b"\3"  # the same list again
    content = sb.canonical_key_group([(0, [(bytes([1]) + shared + b"\0", sb.i64(7))])])
    keyed = sb.canonical(1, [len(header)], sb.inline(header + content))
    sb.write(tmp_path, [sb.operator([sb.subtask(managed_keyed=keyed)], uid="uid")])
    described = {"a.B": KryoFields(f="java.util.ArrayList", g="java.util.ArrayList")}
    operator = read_savepoint(tmp_path, serializers=described).operator("uid")
    key = Pojo("a.B", {"f": [], "g": []})
    [entry] = operator.entries()
    assert (entry.key, entry.key_bytes) == (key, shared)
    assert operator.get(key, "count") == 7
