"""Values of Flink SQL's state: what Flink's cases do not have, what is refused, and damage."""

from __future__ import annotations

import base64
import datetime as dt
import pickle
import struct
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from support.bytes import java_bytes as java
from support.bytes import savepoint_bytes as sb
from support.bytes.job_points import job_point
from support.bytes.serializer_cases import cases
from support.bytes.snapshot_bytes import (
    A_SERIALIZER,
    MULTISETS,
    PYTHON,
    TEXT,
    TYPE,
    java_serializer,
    of_table,
)
from support.inside.serializers import (
    INT,
    LONG,
    STRING,
    ArrayDataSerializer,
    BigIntSerializer,
    BinaryRowDataSerializer,
    DecimalDataSerializer,
    ExternalSerializer,
    LinkedListSerializer,
    ListViewSerializer,
    MapDataSerializer,
    NodeSerializer,
    NullAwareMapSerializer,
    PythonArraySerializer,
    PythonRowSerializer,
    RawValueDataSerializer,
    RowDataKeySerializer,
    RowDataSerializer,
    SortedMapSerializer,
    TimerSerializer,
    TimestampDataSerializer,
    WindowKeySerializer,
    internal_serializer,
    write_logical_type,
)

from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    SavepointError,
    UnsupportedKeyTypeError,
)
from keygroups.logical_types import LogicalType, parse_logical_type
from keygroups.savepoint import Row, Serializer, TimestampData
from keygroups.savepoint.values import Bitmap, Node, Variant, WindowKey
from keygroups.state_keys import CompositeKeySerializer, serializer_of
from keygroups.types import SQL_ROW

BIGINT = LogicalType("BIGINT")
UTC = dt.timezone.utc


def row_of(*types: str | LogicalType) -> RowDataSerializer:
    return RowDataSerializer(
        [parse_logical_type(one) if isinstance(one, str) else one for one in types]
    )


def snapshot(data: bytes) -> Serializer:
    return Serializer.from_snapshot(sb.i32(2) + data)


# --- snapshots ------------------------------------------------------------------------------

# The snapshot of a RowDataSerializer of Flink 2.3.0, deflated: its only field is a StructuredType
# with the attribute n INT, whose supertype has id INT. The bytes are those of ((5, 6),).
SUPERTYPE = (
    "eNrtlktv00AQgMdOaEta2qZUHKASlx6RzftATyUNJcgEmocqekEbZ5tusdeLd0wDh/4BJP4CFw5IcET8K25ckdix09"
    "ZJqRRa9QSRvJsd78x8O4+VAcCGVhT3HKaYv8Od7UDIVw6yTsCdOJEoQu7gW8UTFIF2GtHeGkPW5LFggXjH4+VjkqZk"
    "Su9ECAAF81hff8AFHcOdE3yQbe0EUU/4LHCaGCc+JjHvtowcsp9lw8QWzApdkxqZQSJFD0oMMRadBLlGmPd22RvmEq"
    "XrCY0rHlz0A6Z1nYUcYSF7HTDZc40PIXtmQ8mPQsVioSOJ8MQzgG4G6KaAbgropoDuANAdBlw+WlYObRnLl0WoAh5y"
    "iQxFJCsEglDOQaQigtSJ4jHZQrh3GoSVfgx3x4ptW/N4jW8LORrcwhZMCv1ISBZ4MN3l2o+FIu7XsA+2B/NRZ5f7WO"
    "ua84htwWOEWyeh+qYWjEP32YgKYd4cC9PL5mFEewtKQteTIMhyP0U6jShChPvjRS1nlvRW+sraHzdyI7oDLFgAMKea"
    "paQ6lFSnKpMw/1IhzDVbjXal1W5U1162XjyvWsr0gnuC10HwnNHgfVr69vH9xs+nJlUmQYNdVNiDBM10jajDNM/JSl"
    "nSDiUEY/nm6SIUmknHMhzlFJ16xqlEQWB6ePPDl+8Prn0uF8CqQQFZr68oAXtFGo3G+im6ONckqwcdmyu+P5ZcUR6d"
    "pIhpd9z+6zybHNOhpeG+MRZ3TeJw2UGfGKasfZqmESZr9VZ1vdroK1M7j88Wi6MLI18y5GgGYaK60V71mkrTGiwaL0"
    "G2mqOhTMMCQvGhybqVyhdziaL1FXN2W3TT/1dTC0t9RdN1pWBx8xdtTJ/zvP3twe1/6vj/m7fGQZ39j95Zoperchvq"
    "x7wyJRzzBRBGMlfidItSJHM1PrQaqu9zsPkbpB0Wow=="
)
OF_SUPERTYPE = (
    "00000028 0000000000000000 1800000010000000 0000000000000000 0500000000000000 0600000000000000"
)


def test_a_type_with_a_supertype() -> None:
    serializer = Serializer.from_snapshot(zlib.decompress(base64.b64decode(SUPERTYPE)))
    assert str(serializer) == "SQL_ROW(ROW<INT, INT>)"
    assert serializer.decode(bytes.fromhex(OF_SUPERTYPE)) == ((5, 6),)


OF_SQL = ("sql", "external", "sortedmap", "py")


def test_the_same_of_each_flink_is_equal() -> None:
    """Whatever lambdas and serialVersionUIDs its version writes, which are kept."""
    by_name: dict[str, list[bytes]] = defaultdict(list)
    for case in cases():
        if case.group in OF_SQL:
            by_name[case.name].append(sb.i32(2) + case.snapshot)
    changed = {name: snapshots for name, snapshots in by_name.items() if len(snapshots) > 1}
    assert len(changed) == 17
    for name, snapshots in changed.items():
        serializers = [*map(Serializer.from_snapshot, snapshots)]
        assert len(set(serializers)) == 1, name
        copies = pickle.loads(pickle.dumps(serializers))
        assert copies == serializers
        assert [copied.snapshot_bytes() for copied in copies] == snapshots


def test_what_is_within_is_as_flink_makes_it() -> None:
    """InternalSerializers.create, of each logical type; of a RAW the type does not tell."""
    seen = 0
    for case in cases():
        if case.group == "sql":
            serializer = snapshot(case.snapshot)
            if isinstance(serializer, RowDataSerializer) and "RAW" not in str(serializer):
                assert RowDataSerializer(serializer.fields) == serializer, case
                seen += 1
    assert seen > 40
    assert str(internal_serializer(LogicalType("RAW"))).startswith("UNKNOWN(")


def test_other_types_are_not_equal() -> None:
    serializers = [
        row_of("INT"),
        row_of("INT NOT NULL"),
        row_of("INT", "INT"),
        RowDataSerializer([LogicalType("RAW")], [RawValueDataSerializer(INT)]),
        RowDataSerializer([LogicalType("RAW")], [RawValueDataSerializer(LONG)]),
        ArrayDataSerializer(BIGINT),
        ArrayDataSerializer(LogicalType("BIGINT", nullable=False)),
        MapDataSerializer(BIGINT, BIGINT),
        ExternalSerializer(INT, is_internal_input=False),
        ExternalSerializer(INT, is_internal_input=True),
        SortedMapSerializer("a.B", INT, LONG),
        SortedMapSerializer("a.C", INT, LONG),
        RowDataKeySerializer(INT),
        PythonArraySerializer(BIGINT, LONG),
    ]
    assert len(set(serializers)) == len(serializers)
    assert ArrayDataSerializer(BIGINT, (b"a",)) == ArrayDataSerializer(BIGINT, (b"b",))


def test_snapshots_made_of_types() -> None:
    """As Flink writes them, of types that have no others in them."""
    made = 0
    for case in cases():
        serializer = snapshot(case.snapshot) if case.group == "sql" else None
        if not isinstance(serializer, RowDataSerializer):
            continue
        of_types = RowDataSerializer(serializer.fields)
        try:
            written = of_types.snapshot_bytes()
        except UnsupportedKeyTypeError:
            assert any(field.name in NOT_MADE for field in serializer.fields)
        else:
            assert written == sb.i32(2) + case.snapshot, case
            made += 1
    assert made == 33
    key = serializer_of(SQL_ROW("BIGINT NOT NULL", "DECIMAL(10, 2)", "TIMESTAMP_LTZ(3)"))
    assert Serializer.from_snapshot(key.snapshot_bytes()) == key


ONLY_COPIED = (
    *("ARRAY", "BITMAP", "INTERVAL_DAY_TIME", "INTERVAL_YEAR_MONTH", "MAP", "MULTISET", "RAW"),
    "VARIANT",
)
NOT_MADE = (*ONLY_COPIED, "ROW")  # all its rows in the cases have comments, or no names


def test_snapshots_made_of_nested_rows() -> None:
    """As Flink writes them; the names of a row that has a comment too are not told."""
    commented = next(case for case in cases() if case.name.startswith("sql.ROW<"))
    assert row_of(*snapshot(commented.snapshot).fields) == snapshot(commented.snapshot)
    flink = commented.snapshot.replace(b"t\0\x09a comment", b"p")  # a String, and Java's null
    assert row_of("ROW<f0 INT, f1 STRING>").snapshot_bytes() == sb.i32(2) + flink
    assert snapshot(flink) == row_of("ROW<f0 INT, f1 STRING>") != row_of("ROW<f0 INT, f2 STRING>")


def test_snapshots_made_of_the_types_of_jobs() -> None:
    """As Flink wrote them in state; a time attribute is of another kind, which it compares not.

    Flink: TimestampType, LocalZonedTimestampType.
    """
    of_times = made = 0
    for flink, read in {one.snapshot_bytes(): one for one in serializers_of_jobs()}.items():
        if any(part.name in ONLY_COPIED for field in read.fields for part in field.walk()):
            continue
        with suppress(UnsupportedKeyTypeError):  # structured types are no rows
            written = RowDataSerializer(read.fields).snapshot_bytes()
            regular = flink.replace(b"\7ROWTIME", b"\7REGULAR")
            regular = regular.replace(b"\x08PROCTIME", b"\7REGULAR")
            assert written == regular, read
            made += 1
            of_times += regular != flink
    assert (made, of_times) == (17, 4)


def serializers_of_jobs() -> Iterator[RowDataSerializer]:
    for name in ("sqlagg", "sqltjoin", "sqlrank"):
        for operator in job_point(f"2.3.0-{name}-hashmap-canonical").read().operators:
            for state in operator.states:
                for serializer in (
                    state.key_serializer,
                    state.user_key_serializer,
                    state.value_serializer,
                ):
                    if isinstance(serializer, RowDataSerializer):
                        yield serializer


def test_a_snapshot_refers_to_what_it_has_written_before() -> None:
    """Classes, and the constants that name types and kinds, as a Java object stream does."""
    row = row_of("ROW<a INT, b INT, c TIMESTAMP(3), d ROW<e TIMESTAMP(6), f INT>>")
    written = write_logical_type(*row.fields)
    assert written is not None
    for text in (b"INTEGER", b"TIMESTAMP_WITHOUT_TIME_ZONE", b"REGULAR", b"IntType", b"/String;"):
        assert written.count(text) == 1, text
    assert Serializer.from_snapshot(row.snapshot_bytes()) == row


def test_rows_without_names_have_no_snapshot() -> None:
    with pytest.raises(UnsupportedKeyTypeError, match=r"ROW<INT> has fields without names"):
        row_of("STRING", "ROW<a ROW<INT>>").snapshot_bytes()


def test_a_snapshot_of_java_objects_is_only_copied() -> None:
    for serializer in (
        ArrayDataSerializer(BIGINT),
        MapDataSerializer(BIGINT, BIGINT),
        SortedMapSerializer("a.B", INT, LONG),
        ExternalSerializer(INT, is_internal_input=False),
        row_of("INT", "ROW<a INT, b ARRAY<INT>>"),
    ):
        with pytest.raises(UnsupportedKeyTypeError, match="only written as it was read"):
            serializer.snapshot_bytes()


DECIMAL = ("DECIMAL", ("precision", 5), ("scale", 0))
TIME = ("TIME_WITHOUT_TIME_ZONE", ("precision", 3))
TIMESTAMP = ("TIMESTAMP_WITHOUT_TIME_ZONE", ("precision", 0))
TIMESTAMP_LTZ = ("TIMESTAMP_WITH_LOCAL_TIME_ZONE", ("precision", 9))


def python_array(element: tuple[Any, ...], serializer: str) -> bytes:
    field = java.stream(java.logical_type(*element))
    return of_table("ArrayData", 1, field + java_serializer(serializer), PYTHON)


@pytest.mark.parametrize(
    ("element", "serializer", "text"),
    [
        (DECIMAL, f"{PYTHON}DecimalData", "PYTHON_DECIMAL(DECIMAL(5, 0))"),
        (TIMESTAMP, f"{sb.TABLE}TimestampData", "TIMESTAMP_DATA(TIMESTAMP(0))"),
        (TIMESTAMP_LTZ, f"{sb.TABLE}TimestampData", "TIMESTAMP_DATA(TIMESTAMP(9))"),
    ],
)
def test_python_arrays_of_numbers_with_a_precision(
    element: tuple[Any, ...], serializer: str, text: str
) -> None:
    """They are those of the type."""
    array = str(snapshot(python_array(element, serializer)))
    assert array.startswith(f"PYTHON_ARRAY(SQL_VALUE({text}, ")


BAD_SNAPSHOTS = [
    (of_table("BinaryRowData", 3, sb.i32(-1)), "a row of -1 fields"),
    *(
        (of_table("TimestampData", 1, sb.i32(digits)), f"precision {digits} is not known")
        for digits in (-1, 10)
    ),
    *(
        (
            sb.snapshot(f"{sb.TABLE}DecimalDataSerializer$DecimalSerializerSnapshot", 3, digits),
            message,
        )
        for digits, message in (
            (sb.i32(0, 0), "precision 0 is not known"),
            (sb.i32(39, 0), "precision 39 is not known"),
            (sb.i32(5, -1), "scale -1 is not known"),
            (sb.i32(5, 6), "scale 6 is not known"),
        )
    ),
    (
        sb.snapshot(f"{sb.TABLE}SortedMapSerializerSnapshot", 3, b"\xac\xed\0\5p"),
        "the comparator of a sorted map is no object",
    ),
    (
        sb.snapshot(
            f"{sb.TABLE}SortedMapSerializerSnapshot",
            3,
            java_serializer("a.B") + sb.nested([sb.simple("Int")]),
        ),
        "number of nested serializers 1 is not known, only 2",
    ),
    (
        of_table("ArrayData", 1, TYPE + A_SERIALIZER, PYTHON),
        "the serializer 'a.Serializer' of a BIGINT is not known",
    ),
    (
        of_table("ArrayData", 1, TYPE + b"\xac\xed\0\5p", PYTHON),
        "the serializer 'no object' of a BIGINT is not known",
    ),
    (
        of_table("ArrayData", 1, TYPE + java_serializer(f"{PYTHON}ArrayData"), PYTHON),
        "python.ArrayDataSerializer' of a BIGINT is not known",
    ),
    *(
        (
            python_array(element, f"{PYTHON}DecimalData"),
            rf"python.DecimalDataSerializer' of a {text} is not known",
        )
        for element, text in (
            (("BIGINT",), "BIGINT"),
            (TIME, r"TIME\(3\)"),
            (TIMESTAMP, r"TIMESTAMP\(0\)"),
        )
    ),
    *(
        (
            python_array(element, f"{sb.TABLE}TimestampData"),
            rf"typeutils.TimestampDataSerializer' of a {text} is not known",
        )
        for element, text in (
            (("BIGINT",), "BIGINT"),
            (TIME, r"TIME\(3\)"),
            (DECIMAL, r"DECIMAL\(5, 0\)"),
        )
    ),
    (
        of_table("RowData", 3, sb.i32(1) + TYPE + sb.nested([]), PYTHON),
        "number of nested serializers 0 is not known, only 1",
    ),
    (
        sb.snapshot(f"{MULTISETS}RowDataKeySerializerSnapshot", 0, sb.i32(-1)),
        "-1 bytes were to follow",
    ),
]


@pytest.mark.parametrize(("data", "message"), BAD_SNAPSHOTS)
def test_snapshots_that_are_none(data: bytes, message: str) -> None:
    with pytest.raises(SavepointError, match=message):
        snapshot(data)


@pytest.mark.parametrize(
    "around",
    [
        lambda inner: of_table("RowData", 3, sb.i32(1) + TYPE + sb.nested([inner])),
        lambda inner: of_table("RowData", 3, sb.i32(1) + TYPE + sb.nested([inner]), PYTHON),
        lambda inner: sb.snapshot(
            f"{sb.TABLE}SortedMapSerializerSnapshot",
            3,
            java_serializer("a.B") + sb.nested([sb.simple("Int"), inner]),
        ),
        lambda inner: sb.snapshot(
            f"{MULTISETS}RowDataKeySerializerSnapshot", 0, sb.i32(0, 0) + inner
        ),
    ],
    ids=["row", "python", "map", "key"],
)
def test_serializers_of_sql_may_nest_50_deep(around: Callable[[bytes], bytes]) -> None:
    data = sb.simple("Long")
    for _ in range(50):
        data = around(data)
    assert snapshot(data).snapshot_bytes() == sb.i32(2) + data
    with pytest.raises(SavepointError, match="serializers nest more than 50 deep"):
        snapshot(around(data))


# --- values ---------------------------------------------------------------------------------


def test_a_null_takes_no_room_but_in_a_key() -> None:
    """The planner's code keeps room for it; RowDataSerializer, also of user keys, does not.

    Flink: BinaryRowWriter.setNullAt, against writeDecimal and writeTimestamp of null.
    """
    key_type = SQL_ROW("DECIMAL(20, 2)", "TIMESTAMP(6)")
    serializer = serializer_of(key_type)
    null = (None, None)
    assert serializer.encode(null) == sb.i32(24) + b"\0\3" + bytes(22)
    key = CompositeKeySerializer(128, serializer).serialize(null)[1:-1]
    assert key == sb.i32(48) + b"\0\3" + bytes(6) + struct.pack("<IIII", 0, 24, 0, 40) + bytes(24)
    assert serializer.decode(key) == null
    by_int = CompositeKeySerializer(128, INT, user_key_type=serializer)
    assert by_int.serialize(5, user_key=null)[6:] == serializer.encode(null)
    timer = TimerSerializer(serializer, LONG).encode((5, null, 7))
    assert timer == b"\x80" + bytes(6) + b"\5" + key + sb.i64(7)  # the sign of its time is flipped


def test_what_a_key_may_not_be() -> None:
    """A column that is NOT NULL and holds NULL, a text that is too long, digits too many."""
    serializer = row_of("INT NOT NULL", "VARCHAR(2)", "DECIMAL(3, 1)", "TIMESTAMP(0)")
    value = Row(
        (None, "abc", Decimal("-922337203685477580.8"), dt.datetime(1, 1, 1, 0, 0, 0, 5000))
    )
    assert serializer.decode(serializer.encode(value)) == value
    with pytest.raises(InvalidValueError, match=r"field 0: .* must not be None"):
        CompositeKeySerializer(8, RowDataSerializer(serializer.fields[:1])).serialize((None,))


def test_keys_of_no_key_type_are_not_written() -> None:
    raw = RowDataSerializer([LogicalType("RAW")])
    with pytest.raises(UnsupportedKeyTypeError, match=r"SQL_ROW\(RAW\) cannot be written"):
        CompositeKeySerializer(8, raw).serialize((b"a",), key_group=0)


MAP = MapDataSerializer(BIGINT, parse_logical_type("ARRAY<DOUBLE>"))
BY_DOUBLE = MapDataSerializer(LogicalType("DOUBLE"), BIGINT)
BY_ARRAY = MapDataSerializer(parse_logical_type("ARRAY<INT>"), BIGINT)
EMPTY_BITMAP = Bitmap(struct.pack("<II", 12346, 0))


@pytest.mark.parametrize(
    ("serializer", "value"),
    [
        (BY_DOUBLE, [(0.0, 1), (-0.0, 2)]),
        (BY_ARRAY, [([1], 2), ([None], None)]),
        (MAP, {None: None, 5: [1.5, None]}),
        (row_of(LogicalType("MULTISET", fields=(BIGINT,))), Row(({1: 2},), "-D")),
        (row_of(LogicalType("BITMAP")), Row((EMPTY_BITMAP,))),
        (row_of("DATE", "TIME(3)"), Row((2_932_897, 86_400_000))),
        (row_of("DATE", "TIME(3)"), Row((-(2**31), -1))),
        (row_of("DATE", "TIME(3)"), Row((2**31 - 1, 2**31 - 1))),
        (row_of("DATE", "TIME(3)"), Row((-719_163, -(2**31)))),  # the day before 0001-01-01
        (row_of("DATE", "TIME(3)"), Row((dt.date.max, dt.time(23, 59, 59, 999_000)))),
        (row_of("TIMESTAMP_LTZ(9)"), Row((TimestampData(5, 1),))),
        (TimestampDataSerializer(9), TimestampData(2**63 - 1, 999_999)),
        (DecimalDataSerializer(18, 0), Decimal(-(2**63))),
        (DecimalDataSerializer(38, 38), Decimal((1, (9,) * 38, -38))),
        (BinaryRowDataSerializer(1), bytes(16)),
        (LinkedListSerializer(LONG), [None] * 20),
        (LinkedListSerializer(LONG, has_null_mask=False), [1, 2]),
        (NullAwareMapSerializer(STRING, LONG), {None: 1, "a": None}),
        (WindowKeySerializer(row_of("INT")), WindowKey(-1, Row((1,)))),
        (NodeSerializer(INT, *[LONG] * 5), Node(1, 2, 3, 4, 5, 6)),
        (NodeSerializer(STRING, *[STRING] * 5), Node._make([None, "b", None, "d", "e", ""])),
        (PythonRowSerializer((LogicalType("DATE"), BIGINT), (INT, LONG)), Row((-(2**31), 1))),
        (PythonRowSerializer((parse_logical_type("INT"),), (INT,)), Row((5,))),
        (
            PythonRowSerializer(
                (parse_logical_type("TIMESTAMP_LTZ(6)"),), (TimestampDataSerializer(6),)
            ),
            Row((dt.datetime(2024, 1, 1, tzinfo=UTC),), "-U"),
        ),
        (
            PythonRowSerializer(
                (parse_logical_type("TIMESTAMP_LTZ(9)"),), (TimestampDataSerializer(9),)
            ),
            Row((TimestampData(0, 1),)),
        ),
    ],
)
def test_there_and_back(serializer: Serializer, value: Any) -> None:
    seen = serializer.decode(serializer.encode(value))
    assert seen == value
    assert repr(seen) == repr(value)


@pytest.mark.parametrize(
    ("number", "written"),
    [(0, b"\0"), (127, b"\x7f"), (128, b"\0\x80"), (-128, b"\x80"), (-129, b"\xff\x7f")],
)
def test_a_decimal_takes_as_few_bytes_as_hold_it(number: int, written: bytes) -> None:
    """JDK: BigInteger.toByteArray."""
    size = len(written)
    assert DecimalDataSerializer(38, 0).encode(Decimal(number)) == sb.i32(size) + written
    assert BigIntSerializer().encode(number) in (sb.i32(size + 4) + written, sb.i32(number + 1))
    in_row = bytes(8) + struct.pack("<II", size, 16) + written.ljust(16, b"\0")
    assert row_of("DECIMAL(38, 0)").encode((Decimal(number),)) == sb.i32(len(in_row)) + in_row


REFUSED: list[tuple[Serializer, Any, type[KeyGroupsError], str]] = [
    (row_of("INT"), [1], InvalidTypeError, "ROW<INT> must be a tuple of one field"),
    (row_of("INT"), (1, 2), InvalidValueError, "ROW<INT> must have 1 fields, got 2"),
    (row_of("TINYINT"), (128,), InvalidValueError, "field 0: value of type TINYINT"),
    (row_of("BIGINT"), (True,), InvalidTypeError, "field 0"),
    (row_of("FLOAT"), (0.1,), InvalidValueError, "single-precision"),
    (row_of("DATE"), (5,), InvalidTypeError, "DATE must be a date"),
    *(
        (row_of(name), (number,), InvalidValueError, "from -2147483648 to 2147483647, got")
        for name in ("DATE", "TIME(3)")
        for number in (-(2**31) - 1, 2**31)
    ),
    (row_of("TIME(3)"), (5,), InvalidTypeError, r"TIME\(3\) must be a time"),
    (row_of("TIME(3)"), (dt.time(0, 0, 0, 1),), InvalidValueError, "whole milliseconds"),
    (row_of("STRING"), ("\ud83d\ude00",), InvalidValueError, "half of a surrogate pair"),
    *(
        (row_of(name), (b"a",), InvalidTypeError, f"{name}.* must be {description}, got b'a'")
        for name, description in (
            *(("BOOLEAN", "a bool"), ("FLOAT", "a float"), ("DOUBLE", "a float")),
            *(("CHAR", "a str"), ("STRING", "a str"), ("DECIMAL", "a Decimal")),
        )
    ),
    (row_of("BYTES"), ("a",), InvalidTypeError, "type BYTES must be bytes"),
    (row_of("DECIMAL(5, 2)"), (Decimal("0.001"),), InvalidValueError, "2 of them after"),
    (row_of("DECIMAL(5, 2)"), (Decimal(2**63),), InvalidValueError, "at most 5 digits"),
    (row_of("DECIMAL(20, 2)"), (Decimal(10**18),), InvalidValueError, "at most 20 digits"),
    (
        row_of("DECIMAL(5, 2)"),
        (Decimal("NaN"),),
        InvalidValueError,
        r"DECIMAL\(5, 2\) must be finite",
    ),
    (row_of("TIMESTAMP(3)"), (TimestampData(0, 1),), InvalidValueError, "whole milliseconds"),
    *(
        (row_of("TIMESTAMP(9)"), (TimestampData(*parts),), InvalidValueError, message)
        for parts, message in (
            ((-(2**63) - 1, 1), "millisecond of a TIMESTAMP"),
            ((2**63, 1), "millisecond of a TIMESTAMP"),
            ((0, -1), "nano_of_millisecond of a TIMESTAMP"),
            ((0, 10**6), "nano_of_millisecond of a TIMESTAMP"),
        )
    ),
    (
        row_of("TIMESTAMP(3)"),
        (dt.datetime(1, 1, 1, tzinfo=UTC),),
        InvalidTypeError,
        r"\(3\) must be a naive",
    ),
    (
        row_of("TIMESTAMP_LTZ(3)"),
        (dt.datetime(1, 1, 1),),
        InvalidTypeError,
        r"\(3\) must be an aware",
    ),
    (row_of(LogicalType("VARIANT")), (b"a",), InvalidTypeError, "type VARIANT must be a Variant"),
    (row_of(LogicalType("VARIANT")), (Variant(b"a", b""),), InvalidValueError, "of version 1"),
    (row_of(LogicalType("VARIANT")), (Variant(b"a", "b"),), InvalidTypeError, "VARIANT must be b"),  # type: ignore[arg-type]  # a user may
    (row_of(LogicalType("BITMAP")), (b"a",), InvalidTypeError, "type BITMAP must be a Bitmap"),
    (row_of(LogicalType("RAW")), (5,), InvalidTypeError, "type RAW must be bytes"),
    (row_of("ARRAY<INT>"), ((1,),), InvalidTypeError, "ARRAY<INT> must be a list"),
    (row_of("ARRAY<INT>"), (["a"],), InvalidTypeError, "field 0: element 0: value of type INT"),
    (MAP, (), InvalidTypeError, "MAP<BIGINT, ARRAY<DOUBLE>> must be a dict, or a list of pairs"),
    (MAP, [5], InvalidTypeError, "MAP<.*> must be a dict, or a list of pairs, got 5 in one"),
    (MAP, [(1, 2, 3)], InvalidTypeError, "list of pairs"),
    (MAP, {"a": None}, InvalidTypeError, "key 0: value of type BIGINT"),
    (MAP, {1: [1]}, InvalidTypeError, "value 0: element 0: value of type DOUBLE"),
    (BinaryRowDataSerializer(1), bytes(15), InvalidValueError, "at least 16 bytes, got 15"),
    (BinaryRowDataSerializer(1), 5, InvalidTypeError, "must be bytes"),
    (LinkedListSerializer(LONG), (1,), InvalidTypeError, r"LIST\(LONG\) must be a list"),
    (LinkedListSerializer(LONG), [""], InvalidTypeError, "LONG must be an int"),
    (LinkedListSerializer(LONG, False), [None], InvalidValueError, "must not be None"),
    (SortedMapSerializer("a.B", LONG, LONG), {None: 1}, InvalidValueError, "must not be None"),
    (NullAwareMapSerializer(LONG, LONG), {"": 1}, InvalidTypeError, "LONG must be an int"),
    (WindowKeySerializer(row_of("INT")), (1, (2,)), InvalidTypeError, "Y must be of class Wi"),
    (NodeSerializer(INT, *[LONG] * 5), (1,) * 6, InvalidTypeError, "E must be of class Node"),
    (NodeSerializer(INT, *[LONG] * 5), Node(1, 2, None, 4, 5, 6), InvalidValueError, "None"),
    (ListViewSerializer(LONG), "", InvalidTypeError, "LONG must be an int"),
    (ExternalSerializer(INT, False), "", InvalidTypeError, "INT must be an int"),
    (
        PythonArraySerializer(BIGINT, LONG),
        (1,),
        InvalidTypeError,
        r"PYTHON_ARRAY\(.*\) must be a list",
    ),
    (PythonArraySerializer(BIGINT, LONG), [""], InvalidTypeError, "LONG must be an int"),
    (PythonRowSerializer((LogicalType("DATE"),), (INT,)), (5,), InvalidTypeError, "a date"),
    (PythonRowSerializer((BIGINT,), (LONG,)), (1, 2), InvalidValueError, "1 fields, got 2"),
]


@pytest.mark.parametrize(
    ("serializer", "value", "error", "message"), REFUSED, ids=range(len(REFUSED))
)
def test_refused(
    serializer: Serializer, value: Any, error: type[KeyGroupsError], message: str
) -> None:
    with pytest.raises(error, match=f"value: .*{message}"):
        serializer.encode(value)


# --- damage ---------------------------------------------------------------------------------


def framed(data: bytes) -> bytes:
    return sb.i32(len(data)) + data


DAMAGED = [
    (MAP, framed(struct.pack("<i", -1) + bytes(16)), "keys of -1 bytes in a map of 20"),
    (MAP, framed(struct.pack("<i", 17) + bytes(16)), "keys of 17 bytes in a map of 20"),
    *(
        (MAP, framed(struct.pack("<i", size) + bytes(16)), "20 bytes are no map")
        for size in (0, 16)
    ),
    (BY_DOUBLE, framed(struct.pack("<iiiqii", 16, 1, 0, 0, 0, 0)), "1 keys and 0 values"),
    (
        MapDataSerializer(parse_logical_type("STRING"), BIGINT),
        # Keys of 24 bytes, of which one says that it has nine from the 16th on.
        framed(
            struct.pack("<iiiII8s", 24, 1, 0, 9, 16, b"abcdefgh") + struct.pack("<iiq", 1, 0, 0)
        ),
        "44 bytes are no map",
    ),
    (MAP, framed(b"\0"), "1 bytes are no map"),
    (ArrayDataSerializer(BIGINT), framed(struct.pack("<i", -1)), "an array of -1 elements"),
    *(
        (ArrayDataSerializer(BIGINT), framed(struct.pack("<iiq", count, 0, 0)), message)
        for count, message in (
            (2, "16 bytes are no array"),
            (16, "16 bytes are no array"),
            (17, "an array of 17 elements in 16 bytes"),
        )
    ),
    (row_of("STRING"), framed(bytes(8) + b"abcdefg\x88"), "8 bytes in a slot of 7"),
    (
        row_of(LogicalType("VARIANT")),
        framed(bytes(8) + struct.pack("<II", 4, 16) + b"\0\0\0\1"),
        "metadata of 1 bytes in a variant of 4",
    ),
    (
        row_of("TIMESTAMP(9)"),
        framed(bytes(8) + struct.pack("<IIq", 1_000_000, 16, 0)),
        "1000000 nanoseconds of a millisecond",
    ),
    (TimestampDataSerializer(9), bytes(8) + sb.i32(-1000), "-1000 nanoseconds of a millisecond"),
    (TimestampDataSerializer(9), bytes(8) + sb.i32(-1), "-1 nanoseconds of a millisecond"),
    (BinaryRowDataSerializer(1), framed(bytes(15)), "15 bytes are no row of 1 fields"),
    (LinkedListSerializer(LONG), sb.i32(-1), "a count of -1"),
    (LinkedListSerializer(LONG), sb.i32(9) + b"\xff", "too few bytes"),
    (LinkedListSerializer(LONG, False), sb.i32(2**31 - 1), "too few bytes"),
    (NullAwareMapSerializer(INT, INT), sb.i32(2) + b"\0", "too few bytes"),
    (PythonArraySerializer(BIGINT, LONG), sb.i32(1), "too few bytes"),
    (DecimalDataSerializer(20, 0), framed(b""), r"a DECIMAL\(20, 0\) of 0 bytes"),
]


@pytest.mark.parametrize(("serializer", "data", "message"), DAMAGED, ids=range(len(DAMAGED)))
def test_damaged(serializer: Serializer, data: bytes, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        serializer.decode(data)


def test_a_binary_row_may_have_no_fields() -> None:
    """Which is its header alone."""
    serializer = snapshot(of_table("BinaryRowData", 3, sb.i32(0)))
    assert serializer == BinaryRowDataSerializer(0)
    assert serializer.decode(framed(bytes(8))) == bytes(8)


def test_a_variant_may_be_metadata_alone() -> None:
    data = framed(bytes(8) + struct.pack("<II", 5, 16) + b"\0\0\0\1\1")
    assert row_of(LogicalType("VARIANT")).decode(data) == (Variant(b"", b"\1"),)


def test_a_key_of_a_multiset_has_no_kind() -> None:
    """RowDataKey: Flink's cases have keys that were written as -D, and that it reads as +I."""
    [case] = [case for case in cases() if case.name == "multiset.key"]
    serializer = snapshot(case.snapshot)
    kinds = set()
    for value in case.values:
        kinds.add(value.data[4])
        row = serializer.decode(value.data)
        assert row.row_kind == "+I"
        assert serializer.encode(row) == value.data[:4] + b"\0" + value.data[5:]
    assert kinds == {0, 3}
    assert serializer.snapshot_bytes() == sb.i32(2) + case.snapshot


def test_text_of_types() -> None:
    """Those that no key has are shown too."""
    assert str(row_of(LogicalType("MAP", fields=(BIGINT, BIGINT), nullable=False))) == (
        "SQL_ROW(MAP<BIGINT, BIGINT> NOT NULL)"
    )
    assert str(snapshot(of_table("MapData", 3, TEXT + TYPE + A_SERIALIZER * 2))) == (
        "SQL_MAP(VARCHAR(5), BIGINT)"
    )
