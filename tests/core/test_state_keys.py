"""The bytes of a state's key, both ways, against Flink's SerializedCompositeKeyBuilder.

The lines of `tests/vectors/independent/statekeys` and `prefix_bytes` are Flink's own answers.
Bytes written here by hand say where they are from.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from support.golden import lines
from support.inside.serializers import (
    EnumSerializer,
    KryoSerializer,
    ListSerializer,
    MapSerializer,
    PojoSerializer,
    RowDataSerializer,
    RowSerializer,
    TupleSerializer,
    UnreadableError,
)
from support.keys.java_values import INTEGERS, SCALARS
from support.keys.sql_values import python

from keygroups import hash_code, state_keys, types
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    ParallelismError,
    UnsupportedKeyTypeError,
)
from keygroups.logical_types import LogicalType, parse_logical_type
from keygroups.savepoint.values import Pojo
from keygroups.state_keys import (
    BYTES,
    GLOBAL_WINDOW,
    TIME_WINDOW,
    VOID_NAMESPACE,
    CompositeKeySerializer,
    GlobalWindow,
    Row,
    Serializer,
    StateKey,
    TimeWindow,
    composite_key_reader,
    key_group_prefix,
    key_group_prefix_bytes,
    serializer_of,
)
from keygroups.types import (
    BOOLEAN,
    BYTE,
    CHAR,
    DOUBLE,
    FLOAT,
    INT,
    LIST,
    LONG,
    PYFLINK,
    ROW,
    SHORT,
    SQL_ROW,
    STRING,
    TUPLE,
    KeyType,
)

SCALAR_TYPES = {name: key_type for name, (key_type, _) in SCALARS.items()} | INTEGERS


def scalar(java_type: str, value: Any) -> tuple[KeyType, Any]:
    """Return a key type and the value of it; in these vectors a null is a String."""
    if java_type == "null" or value is None:
        return STRING, None
    if java_type in INTEGERS:
        return INTEGERS[java_type], int(value)
    key_type, convert = SCALARS[java_type]
    return key_type, convert(value)


def namespace_of(tagged: dict[str, Any]) -> tuple[KeyType | Serializer, Any]:
    name, value = tagged["t"], tagged["v"]
    if name == "VoidNamespace":
        return VOID_NAMESPACE, None
    if name == "TimeWindow":
        return TIME_WINDOW, TimeWindow(int(value["start"]), int(value["end"]))
    return scalar(name, value)


def key_of(java_type: str, value: Any) -> tuple[KeyType | Serializer, Any]:
    """Return a key's type and the key; a Row's field is of the type that its class names."""
    if java_type == "BinaryRowData":
        fields = list(map(parse_logical_type, value["schema"]))
        return SQL_ROW(*value["schema"]), tuple(map(python, fields, value["values"]))
    if java_type.startswith("Tuple"):
        parts = [scalar(part["t"], part["v"]) for part in value]
        return TUPLE(*(part for part, _ in parts)), tuple(one for _, one in parts)
    if java_type.startswith("Row<"):
        assert value["kind"] == "+I"
        ((field),) = value["fields"]
        inner = java_type[4:-1]
        if inner == "byte[]":
            row = None if field["v"] is None else bytes.fromhex(field["v"])
            return RowSerializer([BYTES]), (row,)
        one = None if field["v"] is None else scalar(inner, field["v"])[1]
        return ROW(SCALAR_TYPES[inner]), (one,)
    return scalar(java_type, value)


def test_vectors() -> None:
    """Serialized, each is Flink's bytes; deserialized, what went in."""
    counts: Counter[str] = Counter()
    for line in lines("independent/statekeys"):
        key_type, key = key_of(line["key_type"], line["key"])
        namespace_type, namespace = namespace_of(line["namespace"])
        user_key_type, user_key = None, None
        if line["user_key"] is not None:
            user_key_type, user_key = scalar(line["user_key"]["t"], line["user_key"]["v"])
        max_parallelism, key_group = line["mp"], line["kg"]
        serializer = CompositeKeySerializer(
            max_parallelism, key_type, namespace_type, user_key_type
        )
        is_known = isinstance(key_type, KeyType)
        passed = {} if is_known else {"key_group": key_group}
        data = serializer.serialize(key, namespace, user_key, **passed)
        assert data.hex() == line["bytes"], line
        assert key_group_prefix_bytes(max_parallelism) == line["prefix_bytes"]
        found = serializer.deserialize(data)
        assert repr(found) == repr(
            StateKey(key_group, as_read(key_type, key), namespace, user_key)
        )
        if isinstance(key_type, ROW):  # PyFlink's key is the one field
            (field,) = key_type.parts
            alone = CompositeKeySerializer(
                max_parallelism, PYFLINK(field), namespace_type, user_key_type
            )
            assert alone.serialize(key[0], namespace, user_key).hex() == line["bytes"]
            assert alone.deserialize(data) == (key_group, key[0], namespace, user_key)
            counts["PYFLINK"] += 1
        counts[line["key_type"]] += 1
        counts["ambiguous"] += line["ambiguous"]
    print("state keys:", dict(counts))
    assert sum(counts.values()) - counts["ambiguous"] - counts["PYFLINK"] == 3791
    assert counts["Row<byte[]>"] == 160
    assert counts["BinaryRowData"] == 576
    assert counts["ambiguous"] > 500


def as_read(key_type: KeyType | Serializer, key: Any) -> Any:
    if isinstance(key_type, SQL_ROW):
        return sql_row_as_read(key)
    is_row = isinstance(key_type, ROW) or getattr(key_type, "name", "") == "ROW"
    return Row(key) if is_row else key


def sql_row_as_read(value: Any) -> Any:
    """Rows in a row and in an array have a kind too."""
    if isinstance(value, list):
        return list(map(sql_row_as_read, value))
    return Row(tuple(map(sql_row_as_read, value))) if isinstance(value, tuple) else value


def test_prefix_vectors() -> None:
    """Of both shapes; a key group that its max parallelism cannot have is refused."""
    sizes = widths = 0
    for line in lines("independent/prefix_bytes"):
        if "mp" in line:
            assert key_group_prefix_bytes(line["mp"]) == line["prefix_bytes"]
            sizes += 1
            continue
        most = {1: 128, 2: 32768}[line["prefix_bytes"]]
        widths += 1
        if line["kg"] >= most:  # Flink writes the lowest byte of these
            with pytest.raises(InvalidValueError, match="key_group must be from 0 to 127"):
                key_group_prefix(line["kg"], most)
        else:
            assert key_group_prefix(line["kg"], most).hex() == line["bytes"]
    assert (sizes, widths) == (6, 12)


# Values at their edges: the bytes are what java.io.DataOutput and Flink's serializers write,
# with a namespace of one byte 0 after them.
@pytest.mark.parametrize(
    ("key_type", "key", "expected"),
    [
        (BOOLEAN, True, "01"),
        (BYTE, -128, "80"),
        (SHORT, -2, "fffe"),
        (CHAR, "\uffff", "ffff"),
        (CHAR, "\0", "0000"),
        (INT, -(2**31), "80000000"),
        (LONG, 2**63 - 1, "7fffffffffffffff"),
        (FLOAT, 1.5, "3fc00000"),
        (FLOAT, float("inf"), "7f800000"),
        (FLOAT, -0.0, "80000000"),
        (DOUBLE, float("nan"), "7ff8000000000000"),
        (DOUBLE, 5e-324, "0000000000000001"),
        (STRING, "", "01"),
        (STRING, "\x7f\x80", "037f8001"),  # units as varints, the count is one more than they
        (STRING, "\u4e2d", "02ad9c01"),
        (STRING, "\U00010000", "0380b00380b803"),  # two surrogates
        (STRING, "\udfff", "02ffbf03"),
        (STRING, "a" * 127, "8001" + "61" * 127),
        (TUPLE(BYTE, STRING), (1, None), "0100"),
        (LIST(SHORT), [1, 2], "0000000200010002"),
        (LIST(STRING), [], "00000000"),
        (ROW(INT, STRING), (None, None), "30"),  # two bits of row kind, then 1 for null
        (ROW(*[BYTE] * 7), (1, None, 3, 4, 5, 6, 7), "1000" + "010304050607"),
        (ROW(INT), Row((1,), "+I"), "0000000001"),
        (ROW(ROW(BYTE), BYTE), ((5,), None), "100005"),
        (TUPLE(ROW(BYTE), LIST(BYTE)), ((None,), [6]), "200000000106"),
        (SQL_ROW("INT"), (7,), "00000010" + "0000000000000000" + "0700000000000000"),
    ],
)
def test_values(key_type: KeyType, key: Any, expected: str) -> None:
    serializer = CompositeKeySerializer(128, key_type)
    data = serializer.serialize(key)
    assert data[1:-1].hex() == expected
    assert data[-1] == 0
    found = serializer.deserialize(data)
    assert repr(found.key) == repr(as_read(key_type, key)) or found.key == key
    assert found.key_group == data[0]


@pytest.mark.parametrize(
    ("kind", "bits"), [("+I", "00"), ("-U", "80"), ("+U", "40"), ("-D", "c0")]
)
def test_row_kinds(kind: str, bits: str) -> None:
    """RowKind's number, its low bit first, in the two highest bits (RowSerializer)."""
    serializer = CompositeKeySerializer(128, RowSerializer([BYTES]))
    data = serializer.serialize(Row((b"\7",), kind), key_group=3)
    assert data.hex() == f"03{bits}000000010700"
    key = serializer.deserialize(data).key
    assert key == Row((b"\7",), kind)
    assert key != Row((b"\7",), "+I" if kind == "-D" else "-D")
    assert hash(key) == hash((b"\7",))


def test_a_row_of_another_kind_is_another_key() -> None:
    """Row.hashCode starts with the kind, so the key type of a kind has no row of another."""
    with pytest.raises(InvalidValueError, match=r"row of kind \+I, got Row\(\(7,\), '-U'\)"):
        CompositeKeySerializer(128, ROW(BYTE)).serialize(Row((7,), "-U"))
    updated = hash_code(Row((7,), "-U"), ROW(BYTE, kind="-U"))
    assert updated == hash_code((7,), ROW(BYTE)) + 31  # RowKind.toByteValue() times 31


def test_rows_without_kind() -> None:
    """As before Flink 1.11: the first bit is that of the first field."""
    row = RowSerializer([serializer_of(BYTE), serializer_of(BYTE)], has_row_kind=False)
    assert row.read is not None
    assert row.write is not None
    assert row.write((None, 5)) == b"\x80\x05"
    assert row.read(b"\x80\x05", 0) == (Row((None, 5)), 2)


@pytest.mark.parametrize(
    ("namespace_type", "namespace", "expected"),
    [
        (VOID_NAMESPACE, None, "00"),
        (GLOBAL_WINDOW, GlobalWindow(), "00"),
        (TIME_WINDOW, TimeWindow(-(2**63), 2**63 - 1), "80" + "00" * 7 + "7f" + "ff" * 7),
        (LONG, -1, "ff" * 8),
        (BYTES, b"ab", "000000026162"),
    ],
)
@pytest.mark.parametrize("user_key", [None, "k"])
def test_namespaces(
    namespace_type: KeyType | Serializer, namespace: Any, expected: str, user_key: str | None
) -> None:
    """Under a key of fixed length there are no lengths; a map key follows."""
    user_key_type = None if user_key is None else STRING
    serializer = CompositeKeySerializer(129, INT, namespace_type, user_key_type)
    data = serializer.serialize(1, namespace, user_key)
    assert data[2:].hex() == "00000001" + expected + ("026b" if user_key else "")
    assert serializer.deserialize(data) == (
        int.from_bytes(data[:2], "big"),
        1,
        namespace,
        user_key,
    )


@pytest.mark.parametrize(
    ("size", "length"), [(0, "01"), (126, "7e"), (254, "ff"), (255, "0001"), (256, "0101")]
)
def test_lengths_of_both(size: int, length: str) -> None:
    """Each after its value in as few bytes as it takes, the lowest first."""
    namespace = "b" * max(size - 1, 0)  # whose count takes a byte, or from 127 on two
    serializer = CompositeKeySerializer(128, STRING, STRING)
    data = serializer.serialize("a", namespace)
    assert data.hex().endswith(length)
    assert data[1:4].hex() == "026102"
    assert serializer.deserialize(data) == (data[0], "a", namespace, None)


def test_what_only_the_job_reads() -> None:
    """Key, namespace or map key of an unknown class: its bytes, up to what is behind it."""
    kryo = KryoSerializer("a.B")
    data = b"\x03" + b"ab\0cd"
    by_key = CompositeKeySerializer(128, kryo)
    assert by_key.deserialize(data + b"\0") == (3, b"ab\0cd", None, None)
    by_namespace = CompositeKeySerializer(128, SHORT, kryo)
    assert by_namespace.deserialize(data) == (3, 0x6162, b"\0cd", None)
    by_user_key = CompositeKeySerializer(128, SHORT, VOID_NAMESPACE, kryo)
    assert by_user_key.deserialize(data) == (3, 0x6162, None, b"cd")
    with pytest.raises(UnsupportedKeyTypeError, match=r"KRYO\(a\.B\) cannot be written"):
        by_key.serialize(b"ab", key_group=3)
    by_name = CompositeKeySerializer(128, kryo, VOID_NAMESPACE, STRING)
    with pytest.raises(InvalidValueError, match=r"can be told apart, got b'.*only the job"):
        by_name.deserialize(data + b"\0\2a")


def test_parts_that_only_the_job_reads() -> None:
    """What is made of an unknown class is not read either, and says what it is made of."""
    kryo = KryoSerializer("a.B")
    text = serializer_of(STRING)
    for made, name in (
        (TupleSerializer([text, kryo]), "TUPLE(STRING, KRYO(a.B))"),
        (TupleSerializer([kryo], "a.T"), "TUPLE(a.T, KRYO(a.B))"),
        (RowSerializer([kryo]), "ROW(KRYO(a.B))"),
        (ListSerializer(kryo), "LIST(KRYO(a.B))"),
        (MapSerializer(text, kryo), "MAP(STRING, KRYO(a.B))"),
        (MapSerializer(kryo, text), "MAP(KRYO(a.B), STRING)"),
    ):
        assert (made.read, made.key_type) == (None, None)
        assert str(made) == name == repr(made)
        with pytest.raises(UnsupportedKeyTypeError):
            CompositeKeySerializer(128, made).serialize((), key_group=0)


@pytest.mark.parametrize("key_type", [*types.__all__])
def test_every_key_type_has_a_serializer_or_is_refused(key_type: str) -> None:
    value = getattr(types, key_type)
    if not isinstance(value, KeyType):
        return
    without = (types.NULL, types.UUID, types.BYTE_BUFFER, types.HASHED, types.SCALA_BIG_INT)
    if value not in without:
        assert str(serializer_of(value)) == key_type
        assert serializer_of(value).key_type is value
    else:
        with pytest.raises(UnsupportedKeyTypeError, match="serializer of key type"):
            serializer_of(value)


@pytest.mark.parametrize(
    "key_type",
    [
        types.OPTIONAL(INT),
        ROW(INT, kind="-U"),
        ROW(INT, names=["a"]),
        TUPLE(INT, types.UUID),
        LIST(types.UUID),
    ],
)
def test_compound_key_types_without_serializer(key_type: KeyType) -> None:
    with pytest.raises(UnsupportedKeyTypeError):
        serializer_of(key_type)


INTS = CompositeKeySerializer(128, INT)
MAPS = CompositeKeySerializer(128, INT, TIME_WINDOW, STRING)
WINDOW = TimeWindow(0, 1)
A: Any = "a"
untyped: Any = state_keys
BAD: list[tuple[Any, type[KeyGroupsError], str]] = [
    (
        lambda: untyped.key_group_prefix_bytes(0),
        ParallelismError,
        "max_parallelism .* 32768 .* got 0",
    ),
    (lambda: untyped.key_group_prefix_bytes("8"), ParallelismError, "max_parallelism .* got '8'"),
    (
        lambda: untyped.key_group_prefix(128, 128),
        InvalidValueError,
        "key_group .* 0 to 127, got 128",
    ),
    (
        lambda: untyped.key_group_prefix(-1, 129),
        InvalidValueError,
        "key_group .* 0 to 128, got -1",
    ),
    (lambda: untyped.key_group_prefix(1.0, 128), InvalidTypeError, r"key_group .* got 1\.0"),
    (lambda: untyped.serializer_of("INT"), InvalidTypeError, "key_type must .* got 'INT'"),
    (lambda: untyped.CompositeKeySerializer(32769, INT), ParallelismError, "got 32769"),
    (
        lambda: untyped.CompositeKeySerializer(8, "INT"),
        InvalidTypeError,
        "key_type must .* got 'INT'",
    ),
    (
        lambda: untyped.CompositeKeySerializer(8, INT, None),
        InvalidTypeError,
        "namespace_type must .* None",
    ),
    (
        lambda: untyped.CompositeKeySerializer(8, INT, INT, 5),
        InvalidTypeError,
        "user_key_type must .* 5",
    ),
    (lambda: INTS.serialize("a"), InvalidTypeError, "'a'"),
    (lambda: INTS.serialize(2**31), InvalidValueError, "2147483648"),
    (lambda: INTS.serialize(None), KeyGroupsError, "None"),
    (lambda: INTS.serialize(1, 0), InvalidTypeError, "VOID_NAMESPACE must be None, got 0"),
    (lambda: INTS.serialize(1, None, 5), InvalidValueError, "user_key must be None .* got 5"),
    *(
        (
            lambda key_group=key_group: INTS.serialize(1, key_group=key_group),
            InvalidValueError,
            f"^key_group must be from 0 to 127, got {key_group}$",
        )
        for key_group in (-1, 128)
    ),
    (lambda: INTS.serialize(1, key_group=0), InvalidValueError, "key_group .* got 0"),
    (lambda: MAPS.serialize(1, (0, 1), "a"), InvalidTypeError, r"TIME_WINDOW .* got \(0, 1\)"),
    (lambda: MAPS.serialize(1, TimeWindow(2**63, 0), "a"), InvalidValueError, "start of a Time"),
    (
        lambda: MAPS.serialize(1, untyped.TimeWindow(0, "a"), "a"),
        InvalidTypeError,
        "end of a Time",
    ),
    (lambda: MAPS.serialize(1, WINDOW, 5), InvalidTypeError, "5"),
    (
        lambda: untyped.CompositeKeySerializer(8, INT, GLOBAL_WINDOW).serialize(1, ()),
        InvalidTypeError,
        r"GLOBAL_WINDOW must be a GlobalWindow, got \(\)",
    ),
    (
        lambda: untyped.CompositeKeySerializer(8, INT, BYTES).serialize(1, "a"),
        InvalidTypeError,
        "BYTES must be bytes, got 'a'",
    ),
    (
        lambda: untyped.CompositeKeySerializer(8, TUPLE(INT, STRING)).serialize((None, "a")),
        InvalidValueError,
        "INT must not be None",
    ),
    (
        lambda: untyped.CompositeKeySerializer(8, RowSerializer([BYTES])).serialize((b"",)),
        InvalidValueError,
        r"key_group must be given, as the hash of ROW\(BYTES\) is not known",
    ),
    (
        lambda: untyped.CompositeKeySerializer(8, RowSerializer([BYTES])).serialize(
            ("a",), key_group=0
        ),
        InvalidTypeError,
        "BYTES must be bytes, got 'a'",
    ),
    (
        lambda: untyped.CompositeKeySerializer(
            8, TupleSerializer([serializer_of(INT), BYTES])
        ).serialize(("a", b""), key_group=0),
        InvalidTypeError,
        "'a'",
    ),
    (lambda: untyped.Row(5), InvalidTypeError, "values must be a tuple or a list, got 5"),
    (lambda: untyped.Row("ab"), InvalidTypeError, "values must be a tuple or a list"),
    (lambda: untyped.Row((1,), "+X"), InvalidValueError, r"row_kind must be one of .* got '\+X'"),
    *(
        (
            lambda made=made, value=value: CompositeKeySerializer(8, made).serialize(
                value, key_group=0
            ),
            KeyGroupsError,
            message,
        )
        for made, value, message in (
            (RowSerializer([BYTES]), 5, "a tuple of one field"),
            (RowSerializer([BYTES]), (b"", b""), "must have 1 fields, got 2"),
            (TupleSerializer([BYTES, BYTES]), (b"",), "must have 2 fields, got 1"),
            (TupleSerializer([BYTES, BYTES]), [b"", b""], "a tuple"),
            (ListSerializer(BYTES), (b"",), "a list"),
            (ListSerializer(BYTES), None, "must not be None"),
        )
    ),
    (lambda: INTS.deserialize(A), InvalidTypeError, "data must be bytes, got 'a'"),
    (lambda: INTS.deserialize(b""), InvalidValueError, "data must be a key"),
    (lambda: INTS.deserialize(b"\0\0\0"), InvalidValueError, "data must be a key"),
    (lambda: INTS.deserialize(bytes(5)), InvalidValueError, "data must be a key"),
    (
        lambda: CompositeKeySerializer(8, ROW(INT)).deserialize(b"\0"),
        InvalidValueError,
        "data must be a key of the state: too few bytes",
    ),
    (lambda: INTS.deserialize(bytes(7)), InvalidValueError, "data must end after 6 bytes, got 7"),
    (lambda: INTS.deserialize(b"\x80" + bytes(5)), InvalidValueError, "key group .* got 128"),
    (
        lambda: untyped.CompositeKeySerializer(8, STRING).deserialize(b"\0\x02\xff\xff\x07\0"),
        InvalidValueError,
        "131071 is no UTF-16 unit",
    ),
    (
        lambda: untyped.CompositeKeySerializer(8, STRING).deserialize(b"\0" + b"\xff" * 6),
        InvalidValueError,
        "more than 32 bits",
    ),
    (
        lambda: untyped.CompositeKeySerializer(8, LIST(INT)).deserialize(b"\0" + b"\xff" * 6),
        InvalidValueError,
        "a count of -1",
    ),
    (
        lambda: untyped.CompositeKeySerializer(8, SQL_ROW("INT")).deserialize(
            b"\0\0\0\0\x01\x00\0"
        ),
        InvalidValueError,
        "1 bytes are no row of 1 fields",
    ),
]


@pytest.mark.branch
@pytest.mark.parametrize("number", range(len(BAD)))
def test_bad_input(number: int) -> None:
    """A KeyGroupsError that names the argument, what it must be and what it is."""
    call, error, message = BAD[number]
    with pytest.raises(error, match=message):
        call()


def test_enums_and_pojos() -> None:
    """EnumSerializer, the index of a constant; PojoSerializer, flags, then a mark a field."""
    enum = EnumSerializer("a.E", ["RED", "GREEN"])
    pojo = PojoSerializer("a.P", ["color", "n"], [enum, serializer_of(SHORT)])
    assert enum.read is not None
    assert pojo.read is not None
    assert (enum.size, str(pojo)) == (4, "POJO(a.P, color ENUM(a.E), n SHORT)")
    assert enum.read(b"\0\0\0\x01", 0) == ("GREEN", 4)
    for index in (2, -1):
        with pytest.raises(ValueError, match=f"constant {index} of the 2 of a.E"):
            enum.read(index.to_bytes(4, "big", signed=True), 0)
    assert pojo.read(b"\x01", 0) == (None, 1)
    assert pojo.read(b"\x02\0\0\0\0\0\x01", 0) == (
        Pojo("a.P", {"color": "RED", "n": None}),
        7,
    )
    with pytest.raises(UnreadableError, match=r"'a\.Q', a subclass of a\.P, is in no snapshot"):
        pojo.read(b"\x04\0\3a.Q", 0)


def test_maps_that_are_no_dicts() -> None:
    """Pairs, where Python takes two keys for one or has no hash of them."""
    by_double = MapSerializer(serializer_of(DOUBLE), serializer_of(BYTE))
    by_list = MapSerializer(ListSerializer(serializer_of(BYTE)), serializer_of(BYTE))
    assert by_double.read is not None
    assert by_list.read is not None
    zeros = bytes.fromhex("00000002" + "0000000000000000" + "0001" + "8000000000000000" + "0002")
    assert by_double.read(zeros, 0)[0] == [(0.0, 1), (-0.0, 2)]
    assert by_list.read(bytes.fromhex("00000001" + "0000000105" + "01"), 0)[0] == [([5], None)]
    assert by_list.read(bytes(4), 0) == ({}, 4)


def test_rows_of_what_makes_no_key() -> None:
    """A RAW in an SQL row: read, and not written, as it has no key type."""
    row = RowDataSerializer([parse_logical_type("INT")])
    assert row.key_type == SQL_ROW("INT")
    raw = RowDataSerializer([LogicalType("RAW")])
    with pytest.raises(UnsupportedKeyTypeError, match=r"SQL_ROW\(RAW\) cannot be written"):
        CompositeKeySerializer(8, raw).serialize((1,), key_group=0)


def test_too_many_parts_for_a_key() -> None:
    """A tuple of 26 fields, as a Scala case class can be: no key type, still read."""
    wide = TupleSerializer([serializer_of(BYTE)] * 26)
    assert wide.key_type is None
    assert wide.read is not None
    assert wide.read(bytes(range(26)), 0) == (tuple(range(26)), 26)
    assert wide.size == 26


def test_row_repr_and_pickle() -> None:
    import pickle

    row = Row((1, "a"), "-U")
    assert repr(row) == "Row((1, 'a'), '-U')"
    copy = pickle.loads(pickle.dumps(row))
    assert copy == row
    assert copy.row_kind == "-U"
    assert row != (1, "a")
    assert Row((1, "a")) == (1, "a")
    assert (Row((1, "a")) == [1, "a"]) is False
    assert hash(Row((1, "a"))) == hash((1, "a"))


def test_the_bytes_that_a_class_of_the_job_reads_end_where_told() -> None:
    """As in a block, where the next key follows: of the key itself, and of its namespace."""
    block, of_the_job = b"\0\0\0\7window!next", KryoSerializer("")
    read = composite_key_reader(serializer_of(INT), of_the_job, None)
    assert read(block, 0, 11) == (7, b"window!", None, None, 11)
    read = composite_key_reader(of_the_job, serializer_of(SHORT), None)
    assert read(block, 4, 11) == (b"windo", 0x7721, None, None, 11)
