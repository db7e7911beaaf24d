"""Serializers made of others: what is not in Flink's cases of `test_serializer_cases`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.flink_values import same
from support.bytes.framed_entries import framed_entries
from support.bytes.serializer_cases import cases
from support.bytes.sink_bytes import of_producers
from support.bytes.snapshot_bytes import MULTISETS, NULLABLE, RUNTIME
from support.inside import serializers
from support.inside.savepoints import NewState
from support.inside.serializers import (
    BOOLEAN,
    BYTE,
    DOUBLE,
    STRING,
    TRUNCATED,
    BigIntSerializer,
    BufferEntrySerializer,
    EitherSerializer,
    GenericArraySerializer,
    KryoSerializer,
    ListSerializer,
    MapSerializer,
    NullableSerializer,
    RowSerializer,
    SetSerializer,
    StreamElementSerializer,
    TimerSerializer,
    TtlSerializer,
    TupleSerializer,
    TwoPhaseCommitSerializer,
    UnionSerializer,
)

from keygroups import assign_to_key_group
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    SavepointError,
    UnsupportedKeyTypeError,
)
from keygroups.savepoint import (
    ListStateDescriptor,
    MapStateDescriptor,
    Row,
    SavepointWriter,
    TtlValue,
    ValueStateDescriptor,
    change_max_parallelism,
    read_savepoint,
)
from keygroups.savepoint.sinks import KafkaTransaction
from keygroups.savepoint.values import (
    BufferEntry,
    Failure,
    LatencyMarker,
    Left,
    MetaSqnInfo,
    NextTransactionalIdHint,
    RecordAttributes,
    Right,
    RowSqnInfo,
    Some,
    StreamRecord,
    Success,
    TaggedUnion,
    TransactionHolder,
    TwoPhaseCommitState,
    Watermark,
    WatermarkStatus,
)
from keygroups.state_keys import BYTES, CompositeKeySerializer, Serializer, serializer_of
from keygroups.types import BIG_DEC, INSTANT, LIST, LONG, MAP, SET, TUPLE
from keygroups.types import BYTE as BYTE_KEY
from keygroups.types import STRING as STRING_KEY

BIG_INT = BigIntSerializer()
OPTION = serializers.OptionSerializer(BYTE)
ARRAY = GenericArraySerializer("java.lang.Byte", BYTE)
TRANSACTIONS = TwoPhaseCommitSerializer(BYTE, STRING)
TRANSACTION, _ = of_producers("TransactionState")
TRANSACTION_IDS, _ = of_producers("ContextState")
HINT, _ = of_producers("NextTransactionalIdHint")
ALWAYS_PENDING = TwoPhaseCommitSerializer(BYTE, STRING, False)
ELEMENTS = StreamElementSerializer(BYTE)
TRY = serializers.TrySerializer(BYTE, KryoSerializer("java.lang.Throwable"))
DAYS = serializers.ScalaEnumSerializer("a.Day$", [("Mon", 0), ("Sun", 7)])


# --- values ---------------------------------------------------------------------------------

# As the methods `serialize` of Flink's classes write them.
VALUES: list[tuple[Serializer, Any, str]] = [
    # In the order of their bytes, so that each Python writes the same.
    (SetSerializer(STRING), {"b", "a", None}, "00000003 000261 000262 01"),
    (SetSerializer(SetSerializer(BYTE)), {frozenset({1})}, "00000001 00 00000001 0001"),
    (SetSerializer(BYTE), {1, 8}, "00000002 0001 0008"),
    # Two arrays are two elements in Java, whatever is in them.
    (SetSerializer(BYTES), [b"", b""], "00000002 00 00000000 00 00000000"),
    (SetSerializer(ListSerializer(BYTE)), [[2], [1]], "00000002 00 0000000102 00 0000000101"),
    (MapSerializer(BYTES, BYTE), [(b"", 1), (b"", 2)], "00000002 000000000001 000000000002"),
    (MapSerializer(STRING, BYTE), {None: None, "a": 5}, "00000002 00 01 0261 00 05"),
    (
        MapSerializer(DOUBLE, BYTE),
        [(0.0, 1), (-0.0, 2)],
        "00000002 0000000000000000 0001 8000000000000000 0002",
    ),
    (MapSerializer(SetSerializer(BYTE), BYTE), {frozenset(): 1}, "00000001 00000000 0001"),
    (ARRAY, [1, None], "00000002 0101 00"),
    # A null beside what has no key type.
    (TupleSerializer([STRING, BYTES]), (None, b""), "00 00000000"),
    (NullableSerializer(BYTE, 1), None, "01 00"),
    (NullableSerializer(NullableSerializer(BYTE)), None, "01"),
    # None is an Option without a value, where another would be null.
    (OPTION, None, "00"),
    (OPTION, Some(1), "01 01"),
    (NullableSerializer(OPTION), None, "00 00"),
    (GenericArraySerializer("scala.Option", OPTION), [None], "00000001 01 00"),
    (serializers.TraversableSerializer("code", OPTION), [None], "00000001 01 00"),
    (SetSerializer(OPTION), {None}, "00000001 00 00"),
    (MapSerializer(BYTE, OPTION), {1: None}, "00000001 01 00 00"),
    (RowSerializer([OPTION, BYTE]), Row((None, None)), "10 00"),
    (ListSerializer(serializers.NothingSerializer()), [], "00000000"),
    (serializers.UnitSerializer(), (), "00"),
    (DAYS, "Sun", "00000007"),
    (EitherSerializer(BYTE, BYTE), Right(1), "00 01"),
    (UnionSerializer(BYTE, STRING), TaggedUnion(2, "a"), "02 0261"),
    (BufferEntrySerializer(BYTE), BufferEntry(5, True), "01 05"),
    (TtlSerializer(BYTE), TtlValue(-1, 5), "ffffffffffffffff 05"),
    (TimerSerializer(BYTE, BYTE), (1, 2, 3), "8000000000000001 02 03"),
    (ELEMENTS, StreamRecord(5, 1), "00 0000000000000001 05"),
    (ELEMENTS, StreamRecord(5), "01 05"),
    (ELEMENTS, Watermark(-1), "02 ffffffffffffffff"),
    (ELEMENTS, WatermarkStatus(-1), "04 ffffffff"),
    (ELEMENTS, RecordAttributes(True), "05 01"),
    (ELEMENTS, LatencyMarker(1, "0f" * 16, 2), "03 0000000000000001" + "0f" * 16 + "00000002"),
    (TRANSACTIONS, TwoPhaseCommitState(None, [], Some("a")), "00 00000000 01 0261"),
    (
        ALWAYS_PENDING,
        TwoPhaseCommitState(TransactionHolder(1, 2), [TransactionHolder(3, 4)], None),
        "01 0000000000000002 00000001 03 0000000000000004 00",
    ),
    (serializers.MetaSqnInfoSerializer(), MetaSqnInfo(1, 2), "0000000000000001 0000000000000002"),
    # The bytes that flink-connector-kafka keeps of its own in its tests, the first two of them.
    (
        TRANSACTION,
        KafkaTransaction("1234", 3456, 789),
        "01 0004 31323334 0000000000000d80 0315",
    ),
    (
        TRANSACTION_IDS,
        ["789", "456", "123"],
        "00000003 0003 373839 0003 343536 0003 313233",
    ),
    (TRANSACTION, KafkaTransaction(None, -1, -1), "00 ffffffffffffffff ffff"),
    (TRANSACTION, KafkaTransaction("", 0, -(2**15)), "01 0000 0000000000000000 8000"),
    (TRANSACTION_IDS, ["\0\U0001f600", ""], "00000002 0008 c080 eda0bdedb880 0000"),
    (HINT, NextTransactionalIdHint(5, 1), "0000000000000005 00000001"),
]


@pytest.mark.parametrize(("serializer", "value", "encoded"), VALUES)
def test_values(serializer: Serializer, value: Any, encoded: str) -> None:
    data = bytes.fromhex(encoded)
    assert serializer.encode(value) == data
    assert same(serializer.decode(data), value)
    for size in range(len(data)):  # so that whoever has more bytes reads on
        assert serializer.read is not None
        with pytest.raises(TRUNCATED):
            serializer.read(data[:size], 0)


def test_a_null_in_the_place_of_an_option() -> None:
    """As of a class of the job's own in Java; it is None too."""
    assert GenericArraySerializer("scala.Option", OPTION).decode(sb.i32(1) + b"\0") == [None]


_MODULUS = sys.hash_info.modulus  # numbers that differ by it have one hash

ONE_HASH = {
    "none": ([*range(1, 1_000)], True),
    "all": ([_MODULUS * number for number in range(1, 1_000)], False),
    "63 of 64": ([_MODULUS * i if i % 64 else _MODULUS * i + i for i in range(1, 1_000)], False),
    "as many as may": ([*range(1, 900), *(_MODULUS * i for i in range(1, 101))], True),
    "one more": ([*range(1, 900), *(_MODULUS * i for i in range(1, 102))], False),
    "two hundreds": ([_MODULUS * i + j for i in range(1, 101) for j in (0, 1)], True),
    "pairs": ([_MODULUS * i + j for i in (0, 1) for j in range(1, 501)], True),
}
"""Numbers, by which of them have one hash, and whether they are hashed."""


@pytest.mark.parametrize(("numbers", "is_hashed"), ONE_HASH.values(), ids=ONE_HASH)
def test_numbers_of_one_hash(numbers: list[int], is_hashed: bool) -> None:
    """More than a hundred numbers that Python would compare each with each are in a list."""
    for serializer, value in (
        (SetSerializer(BIG_INT), set(numbers)),
        (MapSerializer(BIG_INT, BYTE), dict.fromkeys(numbers, 1)),
    ):
        read = serializer.decode(serializer.encode(value))
        assert type(read) is (type(value) if is_hashed else list)
        assert len(read) == len(numbers)
        assert serializer.decode(serializer.encode(read)) == read


BAD_VALUES: list[tuple[Serializer, str, str]] = [
    (UnionSerializer(BYTE, BYTE), "03 05", "an element of input 3"),
    (UnionSerializer(BYTE, BYTE), "00 05", "an element of input 0"),
    (ELEMENTS, "06 00", "an element of a stream with the tag 6"),
    (ELEMENTS, "04 00000001", "a watermark status of 1"),
    (ELEMENTS, "04 fffffffe", "a watermark status of -2"),
    (DAYS, "00000001", r"no constant of a\.Day\$ has the number 1"),
    (serializers.NothingSerializer(), "00", "Nothing has no values"),
    (SetSerializer(BYTE), "ffffffff", "a count of -1"),
    (SetSerializer(BYTE), "7fffffff 00 01", "too few bytes"),
    (ARRAY, "7fffffff 01 01", "too few bytes"),
    (TRANSACTIONS, "00 7fffffff 00", "too few bytes"),
]


@pytest.mark.parametrize(("serializer", "encoded", "message"), BAD_VALUES)
def test_what_is_no_value(serializer: Serializer, encoded: str, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        serializer.decode(bytes.fromhex(encoded))


LISTS, META = ListSerializer(BYTE), serializers.MetaSqnInfoSerializer()
TYPE, VALUE = InvalidTypeError, InvalidValueError
NO_VALUES: list[tuple[Serializer, Any, type[KeyGroupsError], str]] = [
    (SetSerializer(BYTE), (1,), TYPE, r"SET must be a set, or a list of its elements"),
    (SetSerializer(BYTE), [1, 1], VALUE, r"a SET\(BYTE\) must have each element once"),
    (SetSerializer(BYTE), {128}, VALUE, "element 0: .*BYTE must be from -128 to 127, got 128"),
    (SetSerializer(DOUBLE), {float("nan"), -float("nan")}, VALUE, "each element once"),
    (SetSerializer(EitherSerializer(BYTE, LISTS)), [Right([1])] * 2, VALUE, "each element once"),
    (SetSerializer(OPTION), [None, Some(1), None], VALUE, "each element once"),
    (SetSerializer(BYTES), [None, None], VALUE, "each element once"),
    (MapSerializer(SetSerializer(BYTE), BYTE), [({1}, 2), ({1}, 3)], VALUE, "each key once"),
    (META, MetaSqnInfo(1, -1), VALUE, f"size must be from 0 to {2**63 - 1}, got -1"),
    (META, MetaSqnInfo(2**63, 1), VALUE, "high_sqn must be from"),
    (serializers.RowSqnInfoSerializer(), RowSqnInfo(5, 4), VALUE, "last_sqn must be from 5 to"),
    (SetSerializer(BYTES), {1}, TYPE, "BYTES must be bytes, got 1"),
    (MapSerializer(BYTE, BYTE), {1}, TYPE, "MAP must be a dict, or a list of pairs"),
    (
        MapSerializer(BYTE, BYTES),
        [1],
        TYPE,
        r"MAP\(BYTE, BYTES\) must be a dict, or a list of pairs, got 1 in it",
    ),
    (MapSerializer(BYTE, BYTE), [(1, 2, 3)], TYPE, r"a list of pairs, got \(1, 2, 3\) in it"),
    (MapSerializer(BYTE, BYTE), [(1, 2), (1, 3)], VALUE, "must have each key once"),
    (MapSerializer(BYTE, BYTE), {1: 128}, VALUE, "map value 0: .*got 128"),
    (MapSerializer(BYTE, BYTE), {128: 1}, VALUE, "map key 0: .*got 128"),
    (MapSerializer(BYTE, BYTE), {None: 1}, VALUE, "a BYTE must not be None"),
    (MapSerializer(BYTE, BYTES), {None: b""}, VALUE, "a BYTE must not be None"),
    (ListSerializer(BYTES), (b"",), TYPE, r"LIST\(BYTES\) must be a list, got"),
    (ARRAY, (1,), TYPE, r"ARRAY\(java.lang.Byte, BYTE\) must be a list"),
    (ARRAY, [128], VALUE, "got 128"),
    (TupleSerializer([STRING, BYTES]), (5, b""), TYPE, "STRING must be a str, got 5"),
    (serializers.Tuple0Serializer(), (1,), VALUE, r"TUPLE\(\) must have 0 fields, got 1"),
    (
        RowSerializer([BYTE], False),
        Row((1,), "-D"),
        VALUE,
        r"ROW\(BYTE\) must be a row of kind \+I, got Row",
    ),
    (NullableSerializer(BYTE), "a", TYPE, "BYTE must be an int, got 'a'"),
    (NullableSerializer(BYTES), "a", TYPE, "BYTES must be bytes, got 'a'"),
    (
        EitherSerializer(BYTE, BYTE),
        1,
        TYPE,
        r"EITHER\(BYTE, BYTE\) must be a Left or a Right, got 1",
    ),
    (EitherSerializer(BYTE, BYTE), Left(128), VALUE, "got 128"),
    (OPTION, 1, TYPE, r"OPTION\(BYTE\) must be None or a Some, got 1"),
    (serializers.UnitSerializer(), None, VALUE, "a UNIT must not be None"),
    (serializers.UnitSerializer(), (1,), VALUE, "UNIT must have 0 fields"),
    (serializers.NothingSerializer(), 1, VALUE, "NOTHING has no values, got 1"),
    (DAYS, "Tue", VALUE, r"constant of a\.Day\$ must be one of Mon, Sun, got 'Tue'"),
    (DAYS, 0, TYPE, r"constant of a\.Day\$ must be a str, got 0"),
    (UnionSerializer(BYTE, BYTE), (1, 5), TYPE, r"UNION\(BYTE, BYTE\) must be a TaggedUnion"),
    (UnionSerializer(BYTE, BYTE), TaggedUnion(3, 5), VALUE, "input of a TaggedUnion must be from"),
    (UnionSerializer(BYTE, BYTE), TaggedUnion(0, 5), VALUE, "must be from 1 to 2, got 0"),
    (BufferEntrySerializer(BYTE), (5, True), TYPE, r"ENTRY\(BYTE\) must be a BufferEntry"),
    (BufferEntrySerializer(BYTE), BufferEntry(5, 1), TYPE, "BufferEntry must be a bool, got 1"),  # type: ignore[arg-type]  # a user may
    (TtlSerializer(BYTE), 5, TYPE, r"TTL\(BYTE\) must be a TtlValue, got 5"),
    (TimerSerializer(BYTE, BYTE), (1, 2), VALUE, r"TIMER\(BYTE, BYTE\) must have 3 fields"),
    (TimerSerializer(BYTE, BYTE), (1, "a", 3), TYPE, "key: value of type BYTE must be an int"),
    (
        ELEMENTS,
        5,
        TYPE,
        r"ELEMENT\(BYTE\) must be a StreamRecord, LatencyMarker, .*WatermarkStatus, got 5",
    ),
    *(
        (serializer, value, VALUE, f"{part} must be from {-(2**63)} to {2**63 - 1}, got {number}")
        for number in (-(2**63) - 1, 2**63)
        for serializer, value, part in (
            (TtlSerializer(BYTE), TtlValue(number, 5), "last_access of a TtlValue"),
            (TimerSerializer(BYTE, BYTE), (number, 1, 2), "timestamp of a timer"),
            (ELEMENTS, StreamRecord(5, number), "timestamp of a StreamRecord"),
            (ELEMENTS, Watermark(number), "timestamp of a Watermark"),
            (ELEMENTS, LatencyMarker(number, "0f" * 16, 2), "marked_time of a LatencyMarker"),
            (
                TRANSACTIONS,
                TwoPhaseCommitState(None, [TransactionHolder(1, number)], None),
                "transaction_start_time of a TransactionHolder",
            ),
        )
    ),
    *(
        (ELEMENTS, LatencyMarker(1, "0f" * 16, number), VALUE, f"{-(2**31)} to {2**31 - 1}, got ")
        for number in (-(2**31) - 1, 2**31)
    ),
    (ELEMENTS, LatencyMarker(1, "0f" * 16, "2"), TYPE, "subtask_index of a LatencyMarker must"),  # type: ignore[arg-type]  # a user may
    (
        ELEMENTS,
        WatermarkStatus(1),
        VALUE,
        "status of a WatermarkStatus must be from -1 to 0, got 1",
    ),
    (ELEMENTS, WatermarkStatus(-2), VALUE, "must be from -1 to 0, got -2"),
    (ELEMENTS, RecordAttributes(1), TYPE, "BOOLEAN in RecordAttributes must be a bool, got 1"),  # type: ignore[arg-type]  # a user may
    (ELEMENTS, LatencyMarker(1, "0f", 2), VALUE, "32 hexadecimal digits, got '0f'"),
    (
        ELEMENTS,
        LatencyMarker(1, "0F" * 16, 2),
        VALUE,
        "operator_id of a LatencyMarker must be 32 hexadecimal digits",
    ),
    (ELEMENTS, LatencyMarker(1, 5, 2), VALUE, "32 hexadecimal digits, got 5"),  # type: ignore[arg-type]  # a user may
    (ALWAYS_PENDING, TwoPhaseCommitState(None, [], None), TYPE, "pending_transaction of a "),
    (
        TRANSACTIONS,
        (None, [], None),
        TYPE,
        "must be of class TwoPhaseCommitState",
    ),
    (
        TRANSACTIONS,
        TwoPhaseCommitState(None, [], "a"),
        TYPE,
        "must be None or of class Some",
    ),
    (TRANSACTIONS, TwoPhaseCommitState(None, (), None), TYPE, "must be of class list, got"),  # type: ignore[arg-type]  # A user may do so.
    (TRANSACTIONS, TwoPhaseCommitState(None, [(1, 2)], None), TYPE, "class TransactionHolder"),  # type: ignore[list-item]  # A user may do so.
    (TRANSACTION, (None, 1, 1), TYPE, "KAFKA_TRANSACTION must be of class KafkaTransaction"),
    (TRANSACTION, KafkaTransaction("a", 1, 2**15), VALUE, "SHORT must be from .* got 32768"),
    (
        TRANSACTION,
        KafkaTransaction("a" * 65536, 1, 1),
        VALUE,
        "transactional_id of a KafkaTransaction must take at most 65535 bytes, got 65536",
    ),
    (TRANSACTION_IDS, ("a",), TYPE, "KAFKA_TRANSACTION_CONTEXT must be of class list"),
    (TRANSACTION_IDS, [None], TYPE, "element 0 of KAFKA_TRANSACTION_CONTEXT must be a str"),
    (
        HINT,
        NextTransactionalIdHint(5, 2**31),
        VALUE,
        "last_parallelism of a NextTransactionalIdHint must be",
    ),
    (TRY, 5, TYPE, r"TRY\(BYTE\) must be a Success or a Failure, got 5"),
    (TRY, Success("a"), TYPE, "BYTE must be an int"),
    (TRY, Failure("a.E", 5), TYPE, "a Failure with bytes as its data, got 5"),  # type: ignore[arg-type]  # a user may
]


@pytest.mark.branch
@pytest.mark.parametrize(("serializer", "value", "error", "message"), NO_VALUES)
def test_what_is_not_encoded(
    serializer: Serializer, value: Any, error: type[KeyGroupsError], message: str
) -> None:
    with pytest.raises(error, match=f"^value: .*{message}"):
        serializer.encode(value)


# --- exceptions -----------------------------------------------------------------------------


def failures() -> list[bytes]:
    """Return the failures of real Flink, of both Kryos."""
    return [
        value.data
        for case in cases()
        if case.name == "scala.try.0"
        for value in case.values
        if value.json["try"] == "failure"
    ]


FAILURE = failures()[0]
NAME = b"java.lang.IllegalStateException"


def with_name(name: bytes) -> bytes:
    """Return the failure with another name, as Kryo writes those of many characters."""
    length = len(name) + 1
    return FAILURE.replace(
        NAME[:-1] + bytes([NAME[-1] | 0x80]), bytes([0xC0 | length & 0x3F, length >> 6]) + name
    )


def test_failures() -> None:
    for data in failures():
        failure = TRY.decode(data)
        assert failure == Failure(NAME.decode(), data[1:])
        assert TRY.encode(failure) == data
    assert len(failures()) > 5
    pair = TupleSerializer([TRY, BYTE])
    assert pair.decode(FAILURE + b"\5") == (Failure(NAME.decode(), FAILURE[1:]), 5)
    assert TRY.read is not None
    for size in range(0, len(FAILURE), 7):
        with pytest.raises(IndexError):
            TRY.read(FAILURE[:size], 0)


@pytest.mark.parametrize("name", ["a.E", "a." + "E" * 61, "a." + "E" * 98, "a." + "E" * 8_000])
def test_names_of_many_characters(name: str) -> None:
    assert TRY.decode(with_name(name.encode())).java_class == name


@pytest.mark.parametrize("name", ["a.E", "E"])
def test_an_exception_of_few_characters(name: str) -> None:
    """Of which the length is in six bits."""
    short = bytes([0x80 | len(name) + 1]) + name.encode()
    data = FAILURE.replace(NAME[:-1] + bytes([NAME[-1] | 0x80]), short)
    assert TRY.decode(data).java_class == name


@pytest.mark.parametrize("name", ["a.E", "\x7fE", "a\x7f", "\0\0"])
def test_names_whose_last_character_is_marked(name: str) -> None:
    marked = name[:-1].encode() + bytes([ord(name[-1]) | 0x80])
    data = FAILURE.replace(NAME[:-1] + bytes([NAME[-1] | 0x80]), marked)
    assert TRY.decode(data).java_class == name


BAD_FAILURES: list[tuple[bytes, type[KeyGroupsError], str]] = [
    (b"\0\0", InvalidValueError, "too few bytes|out of range"),
    (b"\0\0\0", UnsupportedKeyTypeError, "Kryo wrote no name"),
    (b"\0\x57\1", UnsupportedKeyTypeError, "Kryo wrote no name"),
    (b"\0\1\0\x82\xe9", UnsupportedKeyTypeError, "a class that is not in ASCII"),
    (b"\0\1\0\x80", UnsupportedKeyTypeError, "a class that is not in ASCII"),
    (b"\0\1\0\x81", UnsupportedKeyTypeError, "a class that is not in ASCII"),
    (b"\0\1\0a\xe9\2", InvalidValueError, "an exception that is no new object"),
    (b"\0\1\0a\xe9\1\0\0\0\0", InvalidValueError, "a Java object stream was to follow"),
    (b"\0\1\0\xff\xff\xff\xff\x0fa", InvalidValueError, "too few bytes"),
]


@pytest.mark.parametrize(("data", "error", "message"), BAD_FAILURES)
def test_what_is_no_failure(data: bytes, error: type[KeyGroupsError], message: str) -> None:
    with pytest.raises(error, match=message):
        TRY.decode(data)
    with pytest.raises(InvalidValueError, match="data of a Failure must be what Kryo wrote"):
        TRY.encode(Failure("a.E", data[1:]))


def test_a_failure_is_of_its_class_alone() -> None:
    with pytest.raises(InvalidValueError, match=r"must be of a 'a\.E' alone, got java"):
        TRY.encode(Failure("a.E", FAILURE[1:]))
    with pytest.raises(InvalidValueError, match=rf"in {len(FAILURE) - 1} of {len(FAILURE)} bytes"):
        TRY.encode(Failure(NAME.decode(), FAILURE[1:] + b"\0"))


# --- snapshots ------------------------------------------------------------------------------

SCALA = "org.apache.flink.api.scala.typeutils."
CASE_CLASS = f"{SCALA}ScalaCaseClassSerializerSnapshot"
BAD_SNAPSHOTS: list[tuple[bytes, str]] = [
    (sb.composite(NULLABLE, 2, [sb.simple("Int")], sb.i32(5)), "cannot be padded by 5 bytes"),
    (sb.composite(NULLABLE, 2, [sb.simple("Int")], sb.i32(-1)), "cannot be padded by -1 bytes"),
    (sb.composite(NULLABLE, 2, [sb.kryo_of("a.B")], sb.i32(-1)), "cannot be padded by -1 bytes"),
    (
        sb.composite(NULLABLE, 2, [sb.simple("String")], sb.i32(2**31 - 1)),
        "a null of STRING cannot be padded by 2147483647 bytes",
    ),
    (
        sb.composite(CASE_CLASS, 2, [], sb.utf("a.C")),
        "a case class without fields",
    ),
    (
        sb.composite(CASE_CLASS, 2, [sb.simple("Int")], sb.utf("")),
        "a case class without fields or without a name",
    ),
    (
        sb.snapshot(
            f"{SCALA}ScalaEnumSerializerSnapshot",
            3,
            sb.utf("a.E") + sb.i32(2) + 2 * (sb.utf("A") + sb.i32(0)),
        ),
        "two constants of a.E with one name or number",
    ),
    (
        sb.composite(
            f"{MULTISETS}MetaSqnInfoSerializer$MetaSqnInfoSerializerSnapshot",
            0,
            [sb.simple("Long"), sb.simple("Int")],
        ),
        r"META_SQN_INFO is made of two LONG, got \[LONG, INT\]",
    ),
]


@pytest.mark.parametrize(("snapshot", "message"), BAD_SNAPSHOTS)
def test_what_is_no_snapshot(snapshot: bytes, message: str) -> None:
    with pytest.raises(SavepointError, match=message):
        Serializer.from_snapshot(sb.i32(2) + snapshot)


def test_an_enum_without_constants() -> None:
    data = sb.snapshot(f"{SCALA}ScalaEnumSerializerSnapshot", 3, sb.utf("a.E") + sb.i32(0))
    assert Serializer.from_snapshot(sb.i32(2) + data).snapshot_bytes() == sb.i32(2) + data


def test_padding_of_what_only_the_job_reads() -> None:
    """Whose size is in its class."""
    data = sb.i32(2) + sb.composite(NULLABLE, 2, [sb.kryo_of("a.B")], sb.i32(2**31 - 1))
    serializer = Serializer.from_snapshot(data)
    assert serializer.size == 2**31
    assert serializer.read is None


# --- states with a time to live -------------------------------------------------------------


def aware(inner: bytes, *, has_ttl: bool) -> bytes:
    return sb.snapshot(f"{RUNTIME}ttl.TtlAwareSerializerSnapshot", 1, bytes([has_ttl]) + inner)


def test_states_with_a_time_to_live(tmp_path: Path) -> None:
    """Flink 2.3 says of each state whether it has one; its asynchronous states have another."""
    ttl, plain = aware(sb.ttl_of(sb.simple("Int")), has_ttl=True), sb.simple("Int")
    asynchronous = sb.composite(
        f"{RUNTIME}v2.ttl.TtlStateFactory$TtlSerializerSnapshot", 2, [sb.simple("Long"), plain]
    )
    states = [
        sb.state("value", "VALUE", ttl),
        sb.state("list", "LIST", sb.list_of(ttl)),
        sb.state("map", "MAP", sb.map_of(sb.simple("String"), ttl)),
        sb.state("asynchronous", "VALUE", asynchronous),
        sb.state("plain", "VALUE", aware(plain, has_ttl=False)),
    ]
    header = sb.keyed_header(sb.simple("Int"), states)
    key, five = b"\3" + sb.i32(7) + b"\0", sb.i64(1_700_000_000_000) + sb.i32(5)
    content = sb.canonical_key_group(
        [
            (0, [(key, five)]),
            (1, [(key, five + b"," + five)]),
            (2, [(key + b"\2a", b"\0" + five)]),
            (3, [(key, five)]),
            (4, [(key, sb.i32(5))]),
        ]
    )
    keyed = sb.canonical(3, [len(header)], sb.inline(header + content))
    (operator,) = read_savepoint(
        sb.write(tmp_path, [sb.operator([sb.subtask(managed_keyed=keyed)])])
    ).operators
    assert [state.has_ttl for state in operator.states] == [True, True, True, True, False]
    assert {str(state.value_serializer) for state in operator.states} == {"INT"}
    values = {entry.state: (entry.value, entry.last_access) for entry in operator.entries()}
    assert values == {
        "value": (5, 1_700_000_000_000),
        "list": ([TtlValue(1_700_000_000_000, 5)] * 2, None),
        "map": (5, 1_700_000_000_000),
        "asynchronous": (5, 1_700_000_000_000),
        "plain": (5, None),
    }


# --- keys and new states --------------------------------------------------------------------


@pytest.mark.parametrize("key_type", [SET(LONG), MAP(LONG, LONG), LIST(SET(LONG))])
def test_keys_in_no_order(key_type: Any) -> None:
    """They are read; RocksDB finds them by bytes in which Java's order is."""
    keys = CompositeKeySerializer(128, key_type)
    user_keys = CompositeKeySerializer(128, LONG, user_key_type=key_type)
    with pytest.raises(UnsupportedKeyTypeError, match="an order that only Java has"):
        keys.serialize({})
    with pytest.raises(UnsupportedKeyTypeError, match="an order that only Java has"):
        user_keys.serialize(5, None, {})
    assert keys.deserialize(b"\0" + bytes(4) + b"\0").key in (set(), {}, [])
    with pytest.raises(UnsupportedKeyTypeError, match=r"user_key_type .*only Java has"):
        MapStateDescriptor("m", key_type, LONG)


def of_key_group(key: Any, key_type: Any) -> int:
    return assign_to_key_group(key, 128, key_type)


def test_keys_with_decimals_and_moments(tmp_path: Path) -> None:
    """Read again, in another max parallelism too."""
    from datetime import datetime, timezone
    from decimal import Decimal

    key_type = TUPLE(BIG_DEC, INSTANT)
    moment = datetime(2024, 2, 29, 1, 2, 3, 456_789, timezone.utc)
    keys = [(Decimal(number).scaleb(-2), moment) for number in range(-20, 20)]
    keys.sort(key=lambda key: of_key_group(key, key_type))
    with SavepointWriter(tmp_path / "old") as writer:
        state = ValueStateDescriptor("n", SET(LONG))
        operator = writer.add_operator("uid", key_type, [state], 128, 2)
        for number, key in enumerate(keys):
            operator.write("n", key, {number, -1})
    change_max_parallelism(tmp_path / "old", 64, tmp_path / "new")
    for folder, groups in (("old", 128), ("new", 64)):
        (read,) = read_savepoint(tmp_path / folder).operators
        assert read.max_parallelism == groups
        entries = {entry.key: entry.value for entry in read.entries()}
        assert entries == {key: {number, -1} for number, key in enumerate(keys)}


def test_states_of_any_serializer(tmp_path: Path) -> None:
    """Of each class of Flink's that is written a value, in the bytes that Flink writes."""
    written: dict[str, tuple[Any, bytes]] = {}
    states: list[NewState] = []
    for case in cases():
        name = case.snapshot_class
        if name in written:
            continue
        try:
            serializer = Serializer.from_snapshot(sb.i32(2) + case.snapshot)
            states.append(ValueStateDescriptor(name, serializer))
        except KeyGroupsError:
            continue
        for data in [value.data for value in case.values]:
            value = serializer.decode(data)
            if value is not None and serializer.encode(value) == data:
                written[name] = value, data
                break
        else:
            states.pop()  # numbers that Flink writes in two ways, and nulls
    with SavepointWriter(tmp_path / "savepoint") as writer:
        operator = writer.add_operator("uid", STRING_KEY, states, 128, 1)
        for name, (value, _) in written.items():
            operator.write(name, "key", value)
    (read,) = read_savepoint(tmp_path / "savepoint").operators
    entries = {entry.state: entry.value for entry in read.entries()}
    assert entries.keys() == written.keys()
    for name, (value, _) in written.items():
        assert same(entries[name], value), name
    tasks = (entry for task in read.tasks() for entry in framed_entries(task))
    framed = {entry.state: entry.encoded_value for entry in tasks}
    assert framed == {name: data for name, (_, data) in written.items()}
    assert len(written) > 75


def test_options_in_new_states(tmp_path: Path) -> None:
    """None is a value there, and none elsewhere."""
    states: list[NewState] = [
        ValueStateDescriptor("value", OPTION),
        ListStateDescriptor("list", OPTION),
        MapStateDescriptor("map", BYTE, OPTION),
    ]
    with SavepointWriter(tmp_path / "savepoint") as writer:
        operator = writer.add_operator("uid", BYTE, states, 128, 1)
        operator.write("value", 1, None)
        operator.write("list", 1, [None, Some(2)])
        operator.write("map", 1, None, user_key=3)
    (read,) = read_savepoint(tmp_path / "savepoint").operators
    assert {entry.state: entry.value for entry in read.entries()} == {
        "value": None,
        "list": [None, Some(2)],
        "map": None,
    }
    tasks = (entry for task in read.tasks() for entry in framed_entries(task))
    framed = {entry.state: entry.encoded_value for entry in tasks}
    assert framed == {"value": b"\0", "list": b"\0,\1\2", "map": b"\0\0"}


def test_key_types() -> None:
    """Of a value that may be null it is that of the value; an array's hash is its identity."""
    assert NullableSerializer(BYTE).key_type == BYTE_KEY
    assert TupleSerializer([NullableSerializer(BYTE)]).key_type == TUPLE(BYTE_KEY)
    assert serializers.TtlAwareSerializer(BYTE, False).key_type == BYTE_KEY
    assert serializer_of(TUPLE()) == serializers.Tuple0Serializer()
    assert serializer_of(MAP(LONG, BYTE_KEY)).key_type == MAP(LONG, BYTE_KEY)
    assert serializer_of(SET(LONG)) == SetSerializer(serializers.LONG)
    for serializer in (ARRAY, EitherSerializer(BYTE, BOOLEAN), OPTION, DAYS):
        assert serializer.key_type is None
    assert serializers.CaseClassSerializer([BYTE], "a.C").key_type is None


@pytest.mark.parametrize("element", [BYTES, EitherSerializer(BYTE, BYTES)], ids=str)
def test_a_set_may_have_arrays_of_the_same_bytes(element: Serializer) -> None:
    """Which are two in Java."""
    serializer = SetSerializer(element)
    one = b"x" if element is BYTES else Right(b"x")
    assert serializer.decode(serializer.encode([one, one])) == [one, one]
