"""The serializers that are made of no others: what they refuse, and what Flink's cases have not.

Their values and bytes from Flink are in `test_serializer_cases.py`.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from array import array
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, localcontext
from pathlib import Path
from typing import Any

import pytest
from support.bytes import java_bytes as java
from support.bytes import savepoint_bytes as sb
from support.bytes.serializer_cases import cases
from support.inside import serializers
from support.inside.serializers import (
    CopyableValueSerializer,
    EnumSerializer,
    IntValueSerializer,
    StringValueSerializer,
    ValueSerializer,
    big_numbers,
)

from keygroups import assign_to_key_group, hash_code, types
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    SavepointError,
    UnsupportedKeyTypeError,
)
from keygroups.savepoint import (
    SavepointWriter,
    Serializer,
    TimestampData,
    ValueStateDescriptor,
    change_max_parallelism,
    read_savepoint,
)
from keygroups.savepoint.values import (
    CountWindow,
    Instant,
    LocalDate,
    LocalDateTime,
    LocalTime,
    Variant,
)

EXACT = Context(MAX_PREC, Emin=MIN_EMIN, Emax=MAX_EMAX)
UTC = dt.timezone.utc
CET = dt.timezone(dt.timedelta(hours=1))
MONDAY = dt.datetime(2024, 1, 1, tzinfo=UTC)
BIG_INT, BIG_DEC = big_numbers.BigIntSerializer(), big_numbers.BigDecSerializer()
DATE, SQL_TIMESTAMP = serializers.DateSerializer(), serializers.SqlTimestampSerializer()
LOCAL_DATE, LOCAL_TIME = serializers.LocalDateSerializer(), serializers.LocalTimeSerializer()
LOCAL_DATE_TIME, INSTANT = serializers.LocalDateTimeSerializer(), serializers.InstantSerializer()
FLOATS, INTS = (
    serializers.FloatPrimitiveArraySerializer(),
    serializers.IntPrimitiveArraySerializer(),
)
FLAGS, TEXTS = serializers.BooleanPrimitiveArraySerializer(), serializers.StringArraySerializer()
JAVA, VARIANT, BITMAP = (
    serializers.JavaSerializer(),
    serializers.VariantSerializer(),
    serializers.BitmapSerializer(),
)
PYTHON_DATE, PYTHON_TIME = serializers.PythonDateSerializer(), serializers.PythonTimeSerializer()
PYTHON_BIG_DEC = serializers.PythonBigDecSerializer()
PYTHON_DECIMAL = serializers.PythonDecimalSerializer(4, 2)
DAYS_OF_AN_INT = 2**31 * 86_400_000
TIMESTAMP_3, TIMESTAMP_9 = map(serializers.PythonTimestampSerializer, (3, 9))
COLORS = EnumSerializer("a.Color", ["RED", "GREEN"])
SORTED_LONG, COUNT_WINDOW = serializers.SortedLongSerializer(), serializers.CountWindowSerializer()

# The String "a", a byte[], and a String of 65,536 characters: JDK's object serialization, 6.4.2.
JAVA_A = b"\xac\xed\0\5t\0\1a"
JAVA_BYTES = b"\xac\xed\0\5\x75" + java.class_of("[B") + sb.i32(2) + b"\1\2"
JAVA_LONG = b"\xac\xed\0\5|" + (65_536).to_bytes(8, "big") + b"a" * 65_536


# --- names ----------------------------------------------------------------------------------

NAMES = {
    **{"base.BigInt": "BIG_INT", "base.BigDec": "BIG_DEC", "base.Date": "DATE"},
    **{"base.SqlDate": "SQL_DATE", "base.SqlTime": "SQL_TIME"},
    **{"base.SqlTimestamp": "SQL_TIMESTAMP", "base.LocalDate": "LOCAL_DATE"},
    **{"base.LocalTime": "LOCAL_TIME", "base.LocalDateTime": "LOCAL_DATE_TIME"},
    **{"base.Instant": "INSTANT", "base.boolean[]": "BOOLEAN_ARRAY", "base.byte[]": "BYTES"},
    **{"base.char[]": "CHAR_ARRAY", "base.short[]": "SHORT_ARRAY", "base.int[]": "INT_ARRAY"},
    **{"base.long[]": "LONG_ARRAY", "base.float[]": "FLOAT_ARRAY"},
    **{"base.double[]": "DOUBLE_ARRAY", "base.String[]": "STRING_ARRAY", "base.Void": "VOID"},
    **{"base.Variant": "VARIANT", "base.Bitmap": "BITMAP", "java.String": "JAVA"},
    **{"base.Enum": "ENUM(P$Color)", "value.custom": "VALUE(P$Val)"},
    **{"value.Boolean": "BOOLEAN_VALUE", "value.Byte": "BYTE_VALUE"},
    **{"value.Short": "SHORT_VALUE", "value.Int": "INT_VALUE", "value.Long": "LONG_VALUE"},
    **{"value.Float": "FLOAT_VALUE", "value.Double": "DOUBLE_VALUE"},
    **{"value.Char": "CHAR_VALUE", "value.String": "STRING_VALUE", "value.Null": "NULL_VALUE"},
    "copyable.Int": "COPYABLE_VALUE(org.apache.flink.types.IntValue)",
    **{"ns.void": "VOID_NAMESPACE", "ns.queryable": "VOID_NAMESPACE"},
    **{"ns.window": "TIME_WINDOW", "window.time": "TIME_WINDOW"},
    **{"ns.global": "GLOBAL_WINDOW", "window.global": "GLOBAL_WINDOW"},
    **{
        "window.count": "COUNT_WINDOW",
        "sortedlong": "SORTED_LONG",
        "bytearraywrapper": "BYTE_ARRAY_WRAPPER",
    },
    **{"py.BigDec": "PYTHON_BIG_DEC", "py.Date": "PYTHON_DATE", "py.Time": "PYTHON_TIME"},
    **{"py.String": "PYTHON_STRING", "py.Timestamp.9": "PYTHON_TIMESTAMP(TIMESTAMP(9))"},
    "py.Decimal.10": "PYTHON_DECIMAL(DECIMAL(10, 2))",
}


def test_names() -> None:
    assert {
        case.name: str(Serializer.from_snapshot(sb.i32(2) + case.snapshot))
        for case in cases()
        if case.name in NAMES
    } == NAMES


# --- values that none of Flink's cases has --------------------------------------------------

VALUES: list[tuple[Serializer, Any, bytes]] = [
    # JDK: BigInteger.toByteArray, in the fewest bytes.
    (BIG_INT, 127, sb.i32(5) + b"\x7f"),
    (BIG_INT, 128, sb.i32(6) + b"\0\x80"),
    (BIG_INT, -128, sb.i32(5) + b"\x80"),
    (BIG_INT, -129, sb.i32(6) + b"\xff\x7f"),
    (BIG_DEC, Decimal("1.0"), sb.i32(3) + sb.i32(1)),
    (BIG_DEC, Decimal("1E+7"), sb.i32(2) + sb.i32(-7)),
    (BIG_DEC, Decimal((0, (0,), 2**31)), sb.i32(1) + sb.i32(-(2**31))),
    (DATE, 2**63 - 1, b"\x7f" + b"\xff" * 7),
    (LOCAL_DATE, LocalDate(-999_999_999, 12, 31), sb.i32(-999_999_999) + b"\x0c\x1f"),
    (LOCAL_DATE, LocalDate(0, 12, 31), sb.i32(0) + b"\x0c\x1f"),
    (LOCAL_DATE, dt.date(1, 1, 1), sb.i32(1) + b"\1\1"),
    (LOCAL_DATE, dt.date(9999, 12, 31), sb.i32(9_999) + b"\x0c\x1f"),
    (LOCAL_DATE, LocalDate(10_000, 2, 29), sb.i32(10_000) + b"\2\x1d"),
    (LOCAL_TIME, LocalTime(23, 59, 59, 999_999_999), b"\x17\x3b\x3b" + sb.i32(999_999_999)),
    (LOCAL_TIME, dt.time(23, 59, 59, 999_999), b"\x17\x3b\x3b" + sb.i32(999_999_000)),
    (LOCAL_DATE_TIME, LocalDateTime(1, 1, 1, 0, 0, 0, 1), sb.i32(1) + b"\1\1\0\0\0" + sb.i32(1)),
    (
        LOCAL_DATE_TIME,
        LocalDateTime(0, 1, 1, 0, 0, 0, 1000),
        sb.i32(0) + b"\1\1\0\0\0" + sb.i32(1_000),
    ),
    (INSTANT, Instant(31_556_889_864_403_199, 0), struct.pack(">qi", 31_556_889_864_403_199, 0)),
    # The least and the most of a long in milliseconds, but that the least of all is null.
    (
        SQL_TIMESTAMP,
        Instant(-9_223_372_036_854_776, 193_000_000),
        sb.i64(-(2**63) + 1) + sb.i32(193_000_000),
    ),
    (
        SQL_TIMESTAMP,
        Instant(9_223_372_036_854_775, 807_999_999),
        sb.i64(2**63 - 1) + sb.i32(807_999_999),
    ),
    (FLAGS, [True, False], sb.i32(2) + b"\1\0"),
    (TEXTS, ["a", None], sb.i32(2) + b"\2a\0"),
    (INTS, array("i", [-2]), sb.i32(1) + sb.i32(-2)),
    (COLORS, "GREEN", sb.i32(1)),
    (JAVA, "a", JAVA_A),
    (JAVA, "a" * 65_535, b"\xac\xed\0\5t\xff\xff" + b"a" * 65_535),
    (JAVA, JAVA_LONG, JAVA_LONG),
    (JAVA, JAVA_BYTES, JAVA_BYTES),
    # JDK: DataInput, modified UTF-8, where each half of a surrogate pair takes three bytes.
    (JAVA, "\0", b"\xac\xed\0\5t\0\2\xc0\x80"),
    (JAVA, "\U0001f600", b"\xac\xed\0\5t\0\6\xed\xa0\xbd\xed\xb8\x80"),
    (VARIANT, Variant(b"", b"\1"), sb.i32(0) + sb.i32(1) + b"\1"),
    (PYTHON_DATE, dt.date.min, sb.i32(-719_162)),
    (PYTHON_DATE, -719_163, sb.i32(-719_163)),
    (PYTHON_DATE, dt.date.max, sb.i32(2_932_896)),
    (PYTHON_DATE, 2_932_897, sb.i32(2_932_897)),
    (PYTHON_DATE, -(2**31), sb.i32(-(2**31))),
    (PYTHON_DATE, 2**31 - 1, sb.i32(2**31 - 1)),
    (PYTHON_TIME, dt.time(23, 59, 59, 999_000), sb.i32(86_399_999)),
    (PYTHON_BIG_DEC, Decimal("0E+3"), sb.i32(4) + b"0E+3"),
    (serializers.PythonDecimalSerializer(4, 0), Decimal("-7"), sb.i32(2) + b"-7"),
    (TIMESTAMP_3, TimestampData(DAYS_OF_AN_INT - 1, 0), sb.i64(DAYS_OF_AN_INT - 1)),
    (TIMESTAMP_3, dt.datetime(1, 1, 1), sb.i64(-62_135_596_800_000)),
    (TIMESTAMP_3, dt.datetime(1582, 10, 4, 23, 59, 59, 999_000), sb.i64(-12_220_156_800_001)),
    (TIMESTAMP_3, dt.datetime(1582, 10, 15), sb.i64(-12_219_292_800_000)),
    (TIMESTAMP_9, dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), b"\xff" * 8 + sb.i32(999_000)),
    (ValueSerializer("org.apache.flink.types.IntValue"), 7, sb.i32(7)),
    (ValueSerializer("org.apache.flink.types.NullValue"), None, b""),
]


@pytest.mark.branch
@pytest.mark.parametrize(("serializer", "value", "data"), VALUES)
def test_values(serializer: Serializer, value: Any, data: bytes) -> None:
    assert serializer.encode(value) == data
    decoded = serializer.decode(data)
    assert (decoded, type(decoded)) == (value, type(value))


# What is written otherwise than it is read, as more than one value has the bytes.
SAME_BYTES: list[tuple[Serializer, Any, Any]] = [
    (LOCAL_DATE, LocalDate(2024, 2, 29), dt.date(2024, 2, 29)),
    (LOCAL_TIME, LocalTime(1, 2, 3, 4_000), dt.time(1, 2, 3, 4)),
    (LOCAL_DATE_TIME, LocalDateTime(2024, 2, 29, 0, 0, 0, 0), dt.datetime(2024, 2, 29)),
    (INSTANT, Instant(0, 0), dt.datetime(1970, 1, 1, tzinfo=UTC)),
    (INSTANT, dt.datetime(1970, 1, 1, 1, tzinfo=CET), Instant(0, 0)),
    (SQL_TIMESTAMP, Instant(-1, 0), dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
    (DATE, 0, dt.datetime(1970, 1, 1, tzinfo=UTC)),
    (PYTHON_DATE, 0, dt.date(1970, 1, 1)),
    (PYTHON_TIME, 1, dt.time(microsecond=1_000)),
    (TIMESTAMP_9, TimestampData(0, 1_000), dt.datetime(1970, 1, 1, microsecond=1)),
    (PYTHON_DECIMAL, Decimal(1), Decimal("1.00")),
    (PYTHON_BIG_DEC, Decimal("-0.0"), Decimal("0.0")),
]  # fmt: skip


@pytest.mark.parametrize(("serializer", "value", "same"), SAME_BYTES)
def test_values_of_the_same_bytes(serializer: Serializer, value: Any, same: Any) -> None:
    assert serializer.encode(value) == serializer.encode(same)


def test_any_nan_is_written_as_one() -> None:
    """JDK: DataOutputStream.writeFloat, by Float.floatToIntBits."""
    payload = struct.unpack("<f", b"\1\0\xc0\xff")[0]
    passed = array("f", [1.0, payload])
    assert FLOATS.encode(passed) == sb.i32(2) + bytes.fromhex("3f800000 7fc00000")
    assert math.isnan(passed[1])
    assert passed.tobytes() != array("f", [1.0, math.nan]).tobytes()  # the argument is as it was


def test_numbers_in_full() -> None:
    """Flink reads 0, 1 and 10 both ways; see BigIntSerializer.readBigInteger."""
    assert [BIG_INT.decode(sb.i32(5) + bytes([n])) for n in (0, 1, 10)] == [0, 1, 10]
    assert [BIG_INT.decode(sb.i32(n)) for n in (1, 2, 3)] == [0, 1, 10]


@pytest.mark.parametrize(
    ("serializer", "value", "data"),
    [
        (PYTHON_TIME, 86_400_000, sb.i32(86_400_000)),
        (PYTHON_TIME, -1, sb.i32(-1)),
        (TIMESTAMP_3, TimestampData(2**63 - 1, 0), b"\x7f" + b"\xff" * 7),
        (TIMESTAMP_3, dt.datetime(1582, 10, 5), sb.i64(-12_220_156_800_000)),
    ],
)
def test_what_flink_would_write_otherwise_is_only_read(
    serializer: Serializer, value: Any, data: bytes
) -> None:
    """Flink 2.3.0 reads these bytes too, and writes others for what it has read."""
    assert serializer.decode(data) == value
    with pytest.raises(InvalidValueError):
        serializer.encode(value)


def test_a_null_timestamp_is_only_read() -> None:
    """Flink writes 12 bytes for it and reads 8."""
    assert SQL_TIMESTAMP.decode(b"\x80" + bytes(11)) is None
    with pytest.raises(InvalidValueError, match="SQL_TIMESTAMP must not be None"):
        SQL_TIMESTAMP.encode(None)


def test_the_callers_decimal_context_changes_nothing() -> None:
    with localcontext() as context:
        context.prec, context.Emax, context.Emin, context.capitals = 2, 3, -3, 0
        for serializer, text in ((BIG_DEC, "123456E+9"), (PYTHON_BIG_DEC, "1.23456E+14")):
            number = Decimal(text)
            assert serializer.decode(serializer.encode(number)).as_tuple() == number.as_tuple()
        assert PYTHON_BIG_DEC.encode(Decimal("123E+9")) == sb.i32(8) + b"1.23E+11"


def test_no_int_of_many_digits_is_made_a_decimal_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python takes the square of their number for that, and is not to be interrupted in it."""
    bits = []

    def recorded(number: int) -> Decimal:
        bits.append(number.bit_length())
        return Decimal(number)

    monkeypatch.setattr(big_numbers, "Decimal", recorded)
    number = -(7**20_000)
    assert BIG_DEC.decode(BIG_INT.encode(number) + sb.i32(3)) == Decimal(number).scaleb(-3, EXACT)
    assert max(bits) <= 4_096 < sum(bits)


# --- what is refused ------------------------------------------------------------------------

NO_VALUES: list[tuple[Serializer, Any, type[KeyGroupsError], str]] = [
    (BIG_INT, 1.0, InvalidTypeError, "^value: .*BIG_INT must be an int, got 1.0"),
    (BIG_INT, True, InvalidTypeError, "must be an int, got True"),
    (BIG_DEC, 1, InvalidTypeError, "BIG_DEC must be a Decimal, got 1"),
    (BIG_DEC, Decimal("NaN"), InvalidValueError, "must be finite"),
    (BIG_DEC, Decimal((0, (1,), 2**31 + 1)), InvalidValueError, "scale .* got -2147483649"),
    (DATE, dt.date(2024, 1, 1), InvalidTypeError, "DATE, a datetime or epoch milliseconds, must"),
    (DATE, dt.datetime(2024, 1, 1), InvalidTypeError, "DATE must be an aware datetime"),
    (DATE, MONDAY.replace(microsecond=1), InvalidValueError, "DATE must be whole milliseconds"),
    (DATE, -(2**63), InvalidValueError, "from -9223372036854775807"),
    (SQL_TIMESTAMP, 0, InvalidTypeError, "SQL_TIMESTAMP must be an aware datetime, got 0"),
    (SQL_TIMESTAMP, Instant(2**54, 0), InvalidValueError, "milliseconds of a SQL_TIMESTAMP"),
    *(
        (SQL_TIMESTAMP, Instant(second, nano), InvalidValueError, f"STAMP must .* got {millis}")
        for second, nano, millis in (
            (-9_223_372_036_854_776, 192_000_000, -(2**63)),
            (9_223_372_036_854_775, 808_000_000, 2**63),
        )
    ),
    (SQL_TIMESTAMP, Instant(0, 10**9), InvalidValueError, "the nano of a SQL_TIMESTAMP"),
    (INSTANT, Instant(2**60, 0), InvalidValueError, "epoch second of a INSTANT .* 3155688986440"),
    (INSTANT, Instant(0, -1), InvalidValueError, "nano of a INSTANT must be from 0 to 999999999"),
    (INSTANT, Instant(0.0, 0), InvalidTypeError, "must be an int, got 0.0"),  # type: ignore[arg-type]  # a user may
    (LOCAL_DATE, MONDAY, InvalidTypeError, "LOCAL_DATE must be a date, got the datetime"),
    (LOCAL_DATE, LocalDate(2023, 2, 29), InvalidValueError, "day of .*_DATE .* to 28, got 29"),
    (LOCAL_DATE, LocalDate(2024, 2, 30), InvalidValueError, "day of .*_DATE .* to 29, got 30"),
    (LOCAL_DATE, LocalDate(1_000_000_000, 1, 1), InvalidValueError, "year of .*_DATE .* to 9{9}"),
    (LOCAL_DATE, LocalDate(1, 13, 1), InvalidValueError, "month of a LOCAL_DATE"),
    (LOCAL_DATE, (1, 1, 1), InvalidTypeError, "LOCAL_DATE must be a date, got"),
    (LOCAL_TIME, LocalTime(24, 0, 0, 0), InvalidValueError, "hour of a LOCAL_TIME .* to 23"),
    (LOCAL_TIME, LocalTime(0, 60, 0, 0), InvalidValueError, "minute of a LOCAL_TIME .* to 59"),
    (LOCAL_TIME, LocalTime(0, 0, 60, 0), InvalidValueError, "second of a LOCAL_TIME .* to 59"),
    (LOCAL_TIME, dt.time(tzinfo=UTC), InvalidTypeError, "LOCAL_TIME must .* without a zone"),
    (LOCAL_DATE_TIME, MONDAY, InvalidTypeError, "LOCAL_DATE_TIME must be a naive datetime"),
    (LOCAL_DATE_TIME, LocalDateTime(0, 0, 1, 0, 0, 0, 0), InvalidValueError, "month of .*_TIME"),
    (LOCAL_DATE_TIME, LocalDateTime(0, 1, 1, 0, 0, 0, 10**9), InvalidValueError, "nano of .*TIME"),
    (INTS, array("l"), InvalidTypeError, "must be an array.array of type 'i', got array"),
    (INTS, [1], InvalidTypeError, r"INT_ARRAY must be an array.array of type 'i', got \[1\]"),
    (FLAGS, [True, 1], InvalidTypeError, "element 1: .*BOOLEAN must be a bool, got 1"),
    (FLAGS, (True,), InvalidTypeError, "BOOLEAN_ARRAY must be a list"),
    (TEXTS, ["a", b"b"], InvalidTypeError, "element 1: .*STRING must be a str"),
    (TEXTS, "ab", InvalidTypeError, "STRING_ARRAY must be a list"),
    (COLORS, "BLUE", InvalidValueError, r"ENUM\(a.Color\) .* one of its 2 constants, got 'BLUE'"),
    (COLORS, 1, InvalidTypeError, r"ENUM\(a.Color\) must be a str, got 1"),
    (JAVA, 5, InvalidTypeError, "its class is not that of a value that was there, got 5"),
    (JAVA, {1}, InvalidTypeError, "JAVA must be a str or the bytes of a Java object"),
    (JAVA, "a" * 65_536, InvalidValueError, "JAVA must take at most 65535 bytes"),
    (JAVA, JAVA_A[:-1], InvalidValueError, "bytes of a Java object: too few bytes"),
    (JAVA, b"\0" * 9, InvalidValueError, "a Java object stream was to follow"),
    (JAVA, JAVA_A + b"p", InvalidValueError, "JAVA must be one Java object, got b'p' after"),
    (VARIANT, (b"", b""), InvalidTypeError, "VARIANT must be a Variant"),
    (VARIANT, Variant("", b""), InvalidTypeError, "value of a Variant must be bytes"),  # type: ignore[arg-type]  # a user may
    (VARIANT, Variant(b"v", b""), InvalidValueError, "must be of version 1.*, got b''"),
    (VARIANT, Variant(b"v", b"\2"), InvalidValueError, "must be of version 1"),
    (VARIANT, Variant(b"", 1), InvalidTypeError, "metadata of a Variant must be bytes"),  # type: ignore[arg-type]  # a user may
    (BITMAP, [1], InvalidTypeError, r"BITMAP must be a Bitmap, got \[1\]"),
    (PYTHON_DATE, MONDAY, InvalidTypeError, "PYTHON_DATE must be a date, got the datetime"),
    (PYTHON_DATE, 2**31, InvalidValueError, "PYTHON_DATE, a date or a day's number, must be"),
    (PYTHON_DATE, -(2**31) - 1, InvalidValueError, "from -2147483648 to 2147483647, got -"),
    (PYTHON_TIME, 86_400_000, InvalidValueError, "must be from 0 to 86399999, got 86400000"),
    (PYTHON_TIME, -1, InvalidValueError, "must be from 0 to 86399999, got -1"),
    (TIMESTAMP_3, TimestampData(-62_135_596_800_001, 0), InvalidValueError, "from the year 1"),
    (TIMESTAMP_3, TimestampData(DAYS_OF_AN_INT, 0), InvalidValueError, "to day 2147483647"),
    (TIMESTAMP_9, dt.datetime(1582, 10, 5), InvalidValueError, "none of 1582-10-05 to 14"),
    (TIMESTAMP_9, dt.datetime(1582, 10, 14, 23, 59, 59, 999_000), InvalidValueError, "none of 15"),
    (PYTHON_TIME, dt.time(tzinfo=UTC), InvalidTypeError, "PYTHON_TIME must .* without a zone"),
    (PYTHON_TIME, dt.time(microsecond=1), InvalidValueError, "PYTHON_TIME must be whole mill"),
    (PYTHON_TIME, "1", InvalidTypeError, "PYTHON_TIME, a time or milliseconds, must be"),
    (PYTHON_BIG_DEC, "1", InvalidTypeError, "BIG_DEC must be a Decimal"),
    (PYTHON_DECIMAL, Decimal("100"), InvalidValueError, r"DECIMAL\(4, 2\) must have at most 4"),
    (PYTHON_DECIMAL, Decimal("0.001"), InvalidValueError, "2 of them after the point, got Dec"),
    (PYTHON_DECIMAL, Decimal("NaN"), InvalidValueError, r"DECIMAL\(4, 2\) must be finite"),
    (PYTHON_DECIMAL, 1, InvalidTypeError, r"DECIMAL\(4, 2\) must be a Decimal"),
    (TIMESTAMP_3, dt.datetime(1, 1, 1, microsecond=1), InvalidValueError, "whole milliseconds"),
    (TIMESTAMP_3, TimestampData(0, 1), InvalidValueError, "whole milliseconds"),
    (TIMESTAMP_9, TimestampData(0, 10**6), InvalidValueError, "nano_of_millisecond .* to 999999"),
    (TIMESTAMP_9, MONDAY, InvalidTypeError, r"TIMESTAMP\(9\) must be a naive datetime"),
    (SORTED_LONG, 2**63, InvalidValueError, "SORTED_LONG must be from"),
    (COUNT_WINDOW, (1,), InvalidTypeError, "COUNT_WINDOW must be a CountWindow"),
    (COUNT_WINDOW, CountWindow(2**63), InvalidValueError, "id of a CountWindow"),
    (serializers.SQL_STRING, "\ud800", InvalidValueError, "SQL_STRING must have no lone"),
    (serializers.SQL_STRING, b"a", InvalidTypeError, "SQL_STRING must be a str"),
    (serializers.VoidSerializer(), 0, InvalidTypeError, "VOID must be None, got 0"),
    (IntValueSerializer(), 2**31, InvalidValueError, "value of type INT must be from"),
    (StringValueSerializer(), 1, InvalidTypeError, "STRING must be a str, got 1"),
    (ValueSerializer("a.Own"), 1, UnsupportedKeyTypeError, r"VALUE\(a.Own\) cannot be written"),
]  # fmt: skip


@pytest.mark.branch
@pytest.mark.parametrize(("serializer", "value", "error", "message"), NO_VALUES)
def test_what_is_not_written(
    serializer: Serializer, value: Any, error: type[KeyGroupsError], message: str
) -> None:
    with pytest.raises(error, match=message):
        serializer.encode(value)


BAD_VALUES: list[tuple[Serializer, bytes, str]] = [
    (BIG_INT, sb.i32(4), "a BigInteger of 0 bytes"),
    (BIG_INT, sb.i32(-1), "a BigInteger of -5 bytes"),
    (BIG_INT, sb.i32(6) + b"\1", "too few bytes"),
    *(
        (serializer, bytes(8) + sb.i32(nano), f"nano of a {serializer} must be from 0")
        for serializer in (SQL_TIMESTAMP, INSTANT)
        for nano in (-(2**31), -1_000, -1, 10**9)
    ),
    (INSTANT, b"\x7f" + bytes(11), "epoch second of a INSTANT"),
    (INSTANT, b"\x80" + bytes(11), "epoch second of a INSTANT"),
    (LOCAL_DATE, sb.i32(2023) + b"\2\x1d", "day"),
    (LOCAL_DATE, sb.i32(-1) + b"\2\x1d", "day of a LOCAL_DATE must be from 1 to 28"),
    (LOCAL_TIME, b"\x18\0\0" + bytes(4), "hour must be in 0..23"),
    (LOCAL_TIME, b"\x18\0\0" + sb.i32(1), "hour of a LOCAL_TIME must be from 0 to 23"),
    (LOCAL_TIME, b"\0\0\0" + sb.i32(-1000), "microsecond must be in 0..999999"),
    (LOCAL_DATE_TIME, sb.i32(1) + b"\1\1\x80\x80\0" + sb.i32(-(2**31)), "a date without a time"),
    (LOCAL_DATE_TIME, sb.i32(-(2**31)) + b"\x80" + bytes(8), "a date without a time, or"),
    (INTS, sb.i32(-1), "a count of -1"),
    (INTS, sb.i32(2) + bytes(7), "too few bytes"),
    (FLAGS, sb.i32(2) + b"\1", "too few bytes"),
    (TEXTS, sb.i32(2**31 - 1), "too few bytes"),
    (COLORS, sb.i32(2), "constant 2 of the 2 of a.Color"),
    (COLORS, sb.i32(-1), "constant -1 of the 2 of a.Color"),
    (JAVA, b"\xac\xed\0\4t\0\1a", "a Java object stream was to follow"),
    (JAVA, b"\xac\xed\0\5\x7b", "type code 0x7b"),
    (VARIANT, sb.i32(-1) + sb.i32(1), "a variant of -1 and 1 bytes"),
    (VARIANT, sb.i32(1) + sb.i32(-1), "a variant of 1 and -1 bytes"),
    (VARIANT, sb.i32(1) + sb.i32(1) + b"a", "too few bytes"),
    (BITMAP, sb.i32(3) + b"\x3a\x30\0", "data must be a bitmap"),
    (PYTHON_BIG_DEC, sb.i32(1) + b"a", "'a' is no text of a BigDecimal"),
    (PYTHON_BIG_DEC, sb.i32(2) + b"-0", "-0, which Java has not"),
    (PYTHON_BIG_DEC, sb.i32(14) + b"1E+99999999999", "is no text of a BigDecimal"),
    (PYTHON_DECIMAL, sb.i32(3) + b"1.0", r"a DECIMAL\(4, 2\) of Decimal\('1.0'\)"),
    (PYTHON_DECIMAL, sb.i32(6) + b"100.00", r"DECIMAL\(4, 2\) must have at most 4 digits"),
    (TIMESTAMP_9, bytes(8) + sb.i32(10**6), "1000000 nanoseconds of a millisecond"),
    (serializers.SQL_STRING, sb.i32(1) + b"\xff", "utf-8"),
    (StringValueSerializer(), b"\2a", "too few bytes"),
]


@pytest.mark.parametrize(("serializer", "data", "message"), BAD_VALUES)
def test_what_is_no_value(serializer: Serializer, data: bytes, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        serializer.decode(data)


BAD_CONTENTS = [
    (serializers.PythonDecimalSerializer, sb.i32(39) + sb.i32(0), "precision 39 is not known"),
    (serializers.PythonDecimalSerializer, sb.i32(2) + sb.i32(3), "scale 3 is not known"),
    (serializers.PythonTimestampSerializer, sb.i32(10), "precision 10 is not known"),
]


@pytest.mark.parametrize(("cls", "contents", "message"), BAD_CONTENTS)
def test_what_is_no_snapshot(cls: type[Serializer], contents: bytes, message: str) -> None:
    with pytest.raises(SavepointError, match=message):
        Serializer.from_snapshot(sb.i32(2) + sb.snapshot(cls.snapshot, 1, contents))


def test_values_of_the_jobs_own() -> None:
    """Only their class knows how they are written."""
    for cls in (ValueSerializer, CopyableValueSerializer):
        own = cls("a.Own")
        assert (own.read, own.write, own.size, own.java_class) == (None, None, None, "a.Own")
        assert Serializer.from_snapshot(own.snapshot_bytes()) == own
    assert CopyableValueSerializer("org.apache.flink.types.LongValue").size == 8
    assert ValueSerializer("org.apache.flink.types.LongValue").size is None


# --- keys -----------------------------------------------------------------------------------

KEYS: dict[types.KeyType, list[Any]] = {
    types.BIG_INT: [0, -(2**100)],
    types.BIG_DEC: [Decimal("1.50"), Decimal("-1E+40")],
    types.LOCAL_DATE: [dt.date(2024, 2, 29), LocalDate(-44, 3, 15)],
    types.LOCAL_TIME: [dt.time(1, 2, 3), LocalTime(1, 2, 3, 4)],
    types.LOCAL_DATE_TIME: [dt.datetime(2024, 2, 29, 1), LocalDateTime(99_999, 1, 1, 0, 0, 0, 5)],
    types.INSTANT: [MONDAY, Instant(-1, 999_999_999)],
}


@pytest.mark.parametrize("key_type", KEYS, ids=str)
def test_keys_of_a_savepoint(key_type: types.ScalarType, tmp_path: Path) -> None:
    """They are written, read, and moved to the key group of their hash."""
    keys = KEYS[key_type]
    with SavepointWriter(tmp_path / "written") as writer:
        states = [ValueStateDescriptor("value", key_type)]
        operator = writer.add_operator("by-key", key_type, states, 128, 3)
        for key in sorted(keys, key=operator.key_group):
            operator.write("value", key, key)
    change_max_parallelism(tmp_path / "written", 1_000, tmp_path / "moved")
    for folder, max_parallelism in (("written", 128), ("moved", 1_000)):
        [operator_read] = read_savepoint(tmp_path / folder).operators
        entries = {(entry.key, entry.value, entry.key_group) for entry in operator_read.entries()}
        assert entries == {
            (key, key, assign_to_key_group(key, max_parallelism, key_type)) for key in keys
        }


def test_a_value_has_one_hash_in_both_classes() -> None:
    for serializer, fields, value in SAME_BYTES[:4]:
        assert serializer.key_type is not None
        assert hash_code(fields, serializer.key_type) == hash_code(value, serializer.key_type)


SAME_IN_JAVA: list[tuple[types.KeyType, Any, Any]] = [
    (types.LOCAL_DATE, dt.date(2024, 1, 1), LocalDate(2024, 1, 1)),
    (types.LOCAL_TIME, dt.time(1), LocalTime(1, 0, 0, 0)),
    (types.LOCAL_DATE_TIME, dt.datetime(2024, 1, 1), LocalDateTime(2024, 1, 1, 0, 0, 0, 0)),
    (types.INSTANT, dt.datetime(1970, 1, 1, tzinfo=UTC), Instant(0, 0)),
]


@pytest.mark.parametrize(("key_type", "value", "fields"), SAME_IN_JAVA)
def test_a_set_has_no_value_in_both_classes(
    key_type: types.KeyType, value: Any, fields: Any
) -> None:
    with pytest.raises(InvalidValueError, match="elements must differ in Java too"):
        hash_code({value, fields}, types.SET(key_type))
