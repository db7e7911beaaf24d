"""BinaryRowData: Flink SQL's keys, their bytes and their hash.

The vectors were made by the key projections of real Flink 2.3.0's planner; hashes in this file
by its BinaryRowWriter. `pytest -rP` shows the counts.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from collections import Counter, namedtuple
from decimal import Context, Decimal, localcontext
from enum import IntEnum
from typing import Any

import mmh3
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.golden import lines
from support.inside.serializers import row_reader
from support.keys.sql_values import SCHEMA, BeyondPythonError, internal, python

from keygroups import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    UnsupportedKeyTypeError,
    assign_to_key_group,
    hash_code,
    trace_key,
)
from keygroups.binary_row import binary_row, row_writer
from keygroups.logical_types import LogicalType, parse_logical_type
from keygroups.savepoint import TimestampData
from keygroups.types import INT, SQL_ROW

UTC = dt.timezone.utc


class Level(IntEnum):
    LOW = 1


Point = namedtuple("Point", "x y")
TIMESTAMPS = ("TIMESTAMP", "TIMESTAMP_LTZ")


def test_vectors() -> None:
    counts: Counter[str] = Counter()
    for line in lines("independent/binaryrow"):
        key_type = SQL_ROW(*(SCHEMA.get(text, text) for text in line["schema"]))
        fields, values = key_type.fields, line["values"]
        row = bytes(row_writer(fields, is_key=True)(list(map(internal, fields, values))))
        assert row.hex() == line["bytes"], line
        assert mmh3.hash(row, 42) == line["hash"], line
        counts["bytes and hash"] += 1
        if "bytes_row_data_serializer" in line:
            row = bytes(row_writer(fields, is_key=False)(list(map(internal, fields, values))))
            assert row.hex() == line["bytes_row_data_serializer"], line
            counts["bytes of a nested row"] += 1
        try:
            key = tuple(map(python, fields, values))
        except BeyondPythonError:
            counts["beyond Python or the declared precision"] += 1
            continue
        assert binary_row(key, key_type).hex() == line["bytes"], line
        assert hash_code(key, key_type) == line["hash"], line
        for max_parallelism, key_group in line["kg"].items():
            assert assign_to_key_group(key, int(max_parallelism), key_type) == key_group, line
        counts["of a Python key"] += 1
    print("binaryrow:", dict(counts))
    assert counts["bytes and hash"] == 1956
    assert counts["of a Python key"] > 1700
    assert counts["bytes of a nested row"] > 40


def test_keys_as_read_are_keys() -> None:
    """What is read from the bytes of a key is the key, also where Python has no class for it."""
    beyond = 0
    for line in lines("independent/binaryrow"):
        key_type = SQL_ROW(*(SCHEMA.get(text, text) for text in line["schema"]))
        data = bytes.fromhex(line["bytes"])
        key = row_reader(key_type.fields)(data)
        try:
            assert binary_row(key, key_type) == data, line
        except InvalidValueError as error:
            if "digits of a fraction of a second" not in str(error):
                raise
            continue
        assert hash_code(key, key_type) == line["hash"], line
        beyond += "TimestampData" in repr(key)
    assert beyond > 20


FINE = TimestampData(1_577_840_523_000, 4_100)


@pytest.mark.parametrize(
    ("text", "value", "code"),
    [
        *((f"{name}(9)", TimestampData(-1, 999_999), 61627685) for name in TIMESTAMPS),
        *((f"{name}(9)", TimestampData(-(2**63), 1), -865436306) for name in TIMESTAMPS),
        *((f"{name}(7)", FINE, 2004166682) for name in TIMESTAMPS),
        ("TIMESTAMP(9)", TimestampData(2**63 - 1, 0), 1222659657),
        ("TIMESTAMP(3)", TimestampData(2**63 - 1, 0), -1566569095),
        ("TIMESTAMP_LTZ(0)", TimestampData(253_402_300_800_000, 0), 385716392),
        ("DATE", -719_163, -256303928),
        ("DATE", 2_932_897, 1764019889),
        ("DATE", -(2**31), 916225219),
        ("DATE", 2**31 - 1, -1125657321),
        ("TIME(3)", 86_400_000, 178912365),
        ("TIME(3)", -1, 1133687267),
        ("ARRAY<TIMESTAMP(9)>", [TimestampData(-1, 999_999), None], -591245224),
        ("ARRAY<DATE>", [2_932_897, None], 1862398652),
    ],
)
def test_beyond_python(text: str, value: object, code: int) -> None:
    """Of Flink 2.3.0: RowDataSerializer.toBinaryRow(GenericRowData.of(value)).hashCode()."""
    assert hash_code((value,), SQL_ROW(text)) == code


# --- rows ---------------------------------------------------------------------------------


def test_layout() -> None:
    """Two lines of the vectors, word by word."""
    row = binary_row((812, "user-37600"), SQL_ROW("BIGINT", "STRING"))
    assert row.hex(" ", 8).split() == [
        "0000000000000000",  # row kind, null bits
        "2c03000000000000",  # 812
        "0a00000018000000",  # 10 bytes from 24 on
        "757365722d333736",
        "3030000000000000",
    ]
    row = binary_row((None, -213), SQL_ROW("TIMESTAMP(6)", "INT"))
    assert row.hex(" ", 8).split() == [
        "0001000000000000",  # field 0 is null
        "0000000018000000",  # and keeps its room, from 24 on
        "2bffffff00000000",
        "0000000000000000",
    ]


def test_null_keeps_its_room_in_the_key_only() -> None:
    """Both hashes are BinaryRowData.hashCode."""
    assert len(binary_row((None,), SQL_ROW("DECIMAL(19)"))) == 8 + 8 + 16
    assert len(binary_row((None,), SQL_ROW("DECIMAL(18)"))) == 8 + 8
    assert len(binary_row(((None,),), SQL_ROW("ROW<DECIMAL(19)>"))) == 8 + 8 + (8 + 8)
    assert len(binary_row(([None],), SQL_ROW("ARRAY<DECIMAL(19)>"))) == 8 + 8 + (8 + 8)


def test_lone_surrogate_is_a_question_mark() -> None:
    """Surprise 10: String.getBytes(UTF_8). A pair of surrogates is one character."""
    string = SQL_ROW("STRING")
    assert binary_row(("a\ud800b",), string) == binary_row(("a?b",), string)
    assert binary_row(("\ude00\ud83d",), string) == binary_row(("??",), string)
    assert binary_row(("\ud83d\ude00",), string) == binary_row(("\U0001f600",), string)
    assert binary_row(("\ud83d\ud83d\ude00",), string) == binary_row(("?\U0001f600",), string)


@pytest.mark.parametrize(
    ("bits", "double", "single"),
    [
        ("7ff8000000000000", -1323214697, -2039172089),
        ("fff8000000000000", -1570978777, 1614996623),
        ("fff8000020000000", 1881938193, -1208568131),
    ],
)
def test_nan_keeps_its_bits_but_in_arrays(bits: str, double: int, single: int) -> None:
    """BinaryRowWriter writes raw bits, BinaryArrayWriter Java's one NaN."""
    (nan,) = struct.unpack(">d", bytes.fromhex(bits))
    assert hash_code((nan,), SQL_ROW("DOUBLE")) == double
    assert hash_code((nan,), SQL_ROW("FLOAT")) == single
    assert hash_code(([nan],), SQL_ROW("ARRAY<DOUBLE>")) == 1318563614
    assert hash_code(([nan],), SQL_ROW("ARRAY<FLOAT>")) == 16400920


@pytest.mark.parametrize(("element", "code"), [("FLOAT", "f"), ("DOUBLE", "d")])
def test_infinity_is_no_nan(element: str, code: str) -> None:
    """After the count of two and the null bits an array has the bits of IEEE 754."""
    infinities = [math.inf, -math.inf]
    row = binary_row((infinities,), SQL_ROW(f"ARRAY<{element}>"))
    assert row[16:] == struct.pack(f"<ii2{code}", 2, 0, *infinities)


def test_every_nan_of_an_array_is_java_s() -> None:
    """Double.doubleToLongBits, of the least NaN and of the greatest."""
    least, greatest = struct.unpack("<dd", struct.pack("<QQ", (0x7FF << 52) + 1, 2**64 - 1))
    row = binary_row(([least, greatest],), SQL_ROW("ARRAY<DOUBLE>"))
    assert row[24:] == struct.pack("<QQ", 0x7FF8 << 48, 0x7FF8 << 48)


def test_a_time_is_its_milliseconds() -> None:
    last = dt.time(23, 59, 59, 999_000)
    assert binary_row((last,), SQL_ROW("TIME(3)")) == bytes(8) + struct.pack("<q", 86_399_999)


def test_zeros_differ() -> None:
    assert hash_code((-0.0,), SQL_ROW("DOUBLE")) != hash_code((0.0,), SQL_ROW("DOUBLE"))


@pytest.mark.parametrize("precision", [10, 38])
def test_decimal_is_rescaled(precision: int) -> None:
    """DecimalData.fromBigDecimal: the scale is the type's; 150 is the unscaled value."""
    key_type = SQL_ROW(f"DECIMAL({precision}, 2)")
    rows = {binary_row((Decimal(text),), key_type) for text in ("1.5", "1.50", "1.5000", "15E-1")}
    assert len(rows) == 1
    assert (150).to_bytes(2, "little" if precision == 10 else "big") in rows.pop()
    big = Decimal("9" * (precision - 2) + ".99")
    assert binary_row((big,), key_type) != binary_row((big.copy_negate(),), key_type)
    zeros = {binary_row((Decimal(text),), key_type) for text in ("0", "-0.0", "0E+9", "0E-99")}
    assert len(zeros) == 1


def test_decimal_does_not_look_at_the_context() -> None:
    key, key_type = (Decimal("123456789012.3456789012"),), SQL_ROW("DECIMAL(38, 10)")
    expected = binary_row(key, key_type)
    with localcontext(Context(prec=3, Emax=5, Emin=-5)):
        assert binary_row(key, key_type) == expected


def test_short_text_is_not_padded() -> None:
    """A key projection pads nothing, so the declared length leaves no trace."""
    assert hash_code(("ab",), SQL_ROW("CHAR(9)")) == hash_code(("ab",), SQL_ROW("STRING"))
    assert hash_code((b"ab",), SQL_ROW("BINARY(9)")) == hash_code((b"ab",), SQL_ROW("BYTES"))


def test_length_is_in_characters() -> None:
    """BinaryStringData.numChars: an emoji is one character, and so are two surrogates."""
    two = SQL_ROW("VARCHAR(2)")
    assert binary_row(("\ud83d\ude00" * 2,), two) == binary_row(("\U0001f600" * 2,), two)
    with pytest.raises(InvalidValueError, match="at most 2 characters, got 3"):
        binary_row(("\U0001f600" * 3,), two)


def test_same_instant_in_another_zone() -> None:
    key_type = SQL_ROW("TIMESTAMP_LTZ(3)")
    present = dt.timezone(dt.timedelta(hours=5, minutes=30))
    moment = dt.datetime(2024, 1, 1, 12, tzinfo=UTC)
    assert binary_row((moment.astimezone(present),), key_type) == binary_row((moment,), key_type)


def test_subclasses_of_tuple_and_bytearray() -> None:
    assert hash_code(Point(1, 2), SQL_ROW("INT", "INT")) == hash_code(
        (1, 2), SQL_ROW("INT", "INT")
    )
    assert hash_code((bytearray(b"ab"),), SQL_ROW("BYTES")) == hash_code(
        (b"ab",), SQL_ROW("BYTES")
    )


def test_trace() -> None:
    """Hash and key group of the vectors' row (812, "user-37600")."""
    trace = trace_key((812, "user-37600"), 128, 4, SQL_ROW("BIGINT", "STRING"))
    assert (trace.hash_code, trace.key_group, trace.subtask) == (-1264174748, 19, 0)
    assert "(812, 'user-37600') as SQL_ROW('BIGINT', 'STRING')" in str(trace)


def test_keys_are_in_a_tuple_of_the_text_form() -> None:
    assert SQL_ROW("integer", "varchar(2147483647)") == SQL_ROW("INT", "STRING")
    assert SQL_ROW("INT") != SQL_ROW("INT NOT NULL")
    assert SQL_ROW("ROW<a INT>").fields == (parse_logical_type("ROW<`a` INT>"),)


# --- bad input ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "texts", "error", "says"),
    [
        (None, ["INT"], InvalidValueError, "assigned key must not be null"),
        (5, ["INT"], InvalidTypeError, "a tuple of one field, (value,), got 5 of class int"),
        ("abc", ["STRING"], InvalidTypeError, "key of type SQL_ROW('STRING') must be a tuple of"),
        ([5], ["INT"], InvalidTypeError, "must be a tuple of one field, (value,), got [5]"),
        ({"a": 5}, ["INT", "INT"], InvalidTypeError, "must be a tuple, got {'a': 5}"),
        ((1, 2), ["INT"], InvalidValueError, "must have 1 fields, got 2: (1, 2)"),
        ((), ["INT", "INT"], InvalidValueError, "must have 2 fields, got 0: ()"),
        ((1,), [], InvalidValueError, "key of type SQL_ROW() must have 0 fields, got 1"),
        ((1, None), ["INT", "INT NOT NULL"], InvalidValueError,
         "field 1: key of type INT NOT NULL must not be None"),
        (([1, None],), ["ARRAY<INT NOT NULL>"], InvalidValueError,
         "field 0: element 1: key of type INT NOT NULL must not be None"),
        ((1,), ["BOOLEAN"], InvalidTypeError, "key of type BOOLEAN must be a bool, got 1"),
        ((True,), ["INT"], InvalidTypeError, "key of type INT must be an int, got True"),
        ((Level.LOW,), ["INT"], UnsupportedKeyTypeError, "field 0: key <Level.LOW: 1>"),
        ((1.0,), ["BIGINT"], InvalidTypeError, "key of type BIGINT must be an int, got 1.0"),
        ((128,), ["TINYINT"], InvalidValueError, "TINYINT must be from -128 to 127, got 128"),
        ((-32769,), ["SMALLINT"], InvalidValueError, "from -32768 to 32767, got -32769"),
        ((2**31,), ["INT"], InvalidValueError, "from -2147483648 to 2147483647, got 2147483648"),
        ((2**63,), ["BIGINT"], InvalidValueError, "BIGINT must be from -9223372036854775808 to"),
        ((10**5000,), ["BIGINT"], InvalidValueError, "got int too long to print"),
        ((0.1,), ["FLOAT"], InvalidValueError, "FLOAT must be a single-precision number, got 0.1"),
        ((1e300,), ["FLOAT"], InvalidValueError, "must be a single-precision number, got 1e+300"),
        ((struct.unpack("<d", b"\1\0\0\0\0\0\xf8\x7f")[0],), ["FLOAT"], InvalidValueError,
         "FLOAT must be a single-precision number, got nan"),
        ((1,), ["DOUBLE"], InvalidTypeError, "key of type DOUBLE must be a float, got 1"),
        ((b"a",), ["STRING"], InvalidTypeError, "key of type STRING must be a str, got b'a'"),
        (("a",), ["BYTES"], InvalidTypeError, "key of type BYTES must be bytes, got 'a'"),
        (("abcd",), ["CHAR(3)"], InvalidValueError, "at most 3 characters, got 4: 'abcd'"),
        ((b"abcd",), ["BINARY(3)"], InvalidValueError, "at most 3 bytes, got 4: b'abcd'"),
        ((b"ab",), ["VARBINARY"], InvalidValueError, "VARBINARY(1) must have at most 1 bytes"),
        (("ab",), ["VARCHAR"], InvalidValueError,
         "VARCHAR without a length is VARCHAR(1), but STRING in DDL and CAST"),
        (("ab",), ["CHAR(1)"], InvalidValueError, "; CHAR without a length is CHAR(1); Flink"),
        ((b"ab",), ["VARBINARY"], InvalidValueError, "(1), but BYTES in DDL and CAST; Flink"),
        (("abcd",), ["VARCHAR(3)"], InvalidValueError,
         "'abcd'; Flink cuts a key where a CAST does, and hashes it as it is elsewhere: cut it in "
         "the first case, and declare STRING, which gives the same bytes, in the other"),
        ((1.5,), ["DECIMAL(5, 2)"], InvalidTypeError, "DECIMAL(5, 2) must be a Decimal, got 1.5"),
        ((1,), ["DECIMAL"], InvalidTypeError, "DECIMAL(10, 0) must be a Decimal, got 1"),
        ((Decimal("1.005"),), ["DECIMAL(5, 2)"], InvalidValueError,
         "must have at most 5 digits, 2 of them after the point, got Decimal('1.005')"),
        ((Decimal("1000"),), ["DECIMAL(5, 2)"], InvalidValueError, "must have at most 5 digits"),
        ((Decimal("1E+999999999"),), ["DECIMAL(38)"], InvalidValueError, "at most 38 digits"),
        ((Decimal("1E-999999999"),), ["DECIMAL(38)"], InvalidValueError, "at most 38 digits"),
        ((Decimal("NaN"),), ["DECIMAL(5)"], InvalidValueError, "finite, got Decimal('NaN')"),
        ((Decimal("-Infinity"),), ["DECIMAL(5)"], InvalidValueError, "must be finite"),
        ((dt.datetime(2024, 1, 1),), ["DATE"], InvalidTypeError, "DATE must be a date, got the"),
        ((5,), ["DATE"], InvalidTypeError, "key of type DATE must be a date, got 5"),
        ((2**31,), ["DATE"], InvalidValueError, "DATE must be from -2147483648 to 2147483647"),
        ((5,), ["TIME"], InvalidTypeError, "key of type TIME(0) must be a time, got 5"),
        ((2**31,), ["TIME"], InvalidValueError, "TIME(0) must be from -2147483648 to 2147483647"),
        ((TimestampData(0, 10**6),), ["TIMESTAMP(9)"], InvalidValueError,
         "nano_of_millisecond of a TIMESTAMP(9) must be from 0 to 999999, got 1000000"),
        ((TimestampData(2**63, 0),), ["TIMESTAMP(9)"], InvalidValueError,
         "millisecond of a TIMESTAMP(9) must be from"),
        ((TimestampData(0, 1),), ["TIMESTAMP_LTZ(8)"], InvalidValueError,
         "TIMESTAMP_LTZ(8) must have at most 8 digits of a fraction of a second"),
        ((TimestampData(0, 1),), ["TIMESTAMP(3)"], InvalidValueError,
         "; Flink keeps no more of a key: drop the rest"),
        ((TimestampData(-1, 0),), ["TIMESTAMP(2)"], InvalidValueError, "at most 2 digits"),
        ((dt.time(1, tzinfo=UTC),), ["TIME"], InvalidTypeError, "TIME(0) must be a time without"),
        ((dt.time(1, 2, 3, 1000),), ["TIME"], InvalidValueError,
         "key of type TIME(0) must have at most 0 digits of a fraction of a second, got"),
        ((dt.time(1, 2, 3, 1),), ["TIME(9)"], InvalidValueError, "TIME(9) must have at most 3"),
        ((dt.time(1, 2, 3, 1),), ["TIME(3)"], InvalidValueError,
         "; Flink keeps no more of a key: drop the rest"),
        ((dt.time(1, 2, 3, 1000),), ["TIME(2)"], InvalidValueError, "and declare TIME(3), which"),
        ((dt.datetime(2024, 1, 1, 0, 0, 0, 1),), ["TIMESTAMP(3)"], InvalidValueError,
         "; Flink keeps no more of a key: drop the rest"),
        ((dt.datetime(2024, 1, 1, 0, 0, 0, 1),), ["TIMESTAMP(4)"], InvalidValueError,
         "in the first case, and declare TIMESTAMP(9), which gives the same bytes, in the other"),
        ((dt.datetime(2024, 1, 1, 0, 0, 0, 1),), ["TIMESTAMP(5)"], InvalidValueError,
         "TIMESTAMP(5) must have at most 5 digits of a fraction of a second"),
        ((dt.datetime(2024, 1, 1, tzinfo=UTC),), ["TIMESTAMP"], InvalidTypeError,
         "TIMESTAMP(6) must be a naive datetime"),
        ((dt.datetime(2024, 1, 1),), ["TIMESTAMP_LTZ"], InvalidTypeError,
         "TIMESTAMP_LTZ(6) must be an aware datetime"),
        ((dt.datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC),), ["TIMESTAMP_LTZ(0)"],
         InvalidValueError, "TIMESTAMP_LTZ(0) must have at most 0 digits"),
        ((dt.date(2024, 1, 1),), ["TIMESTAMP"], InvalidTypeError, "must be a naive datetime"),
        (([1],), ["ROW<INT>"], InvalidTypeError, "key of type ROW<INT> must be a tuple of one"),
        (((1, 2**31),), ["ROW<INT, INT>"], InvalidValueError, "field 0: field 1: key of type INT"),
        (((1,),), ["ARRAY<INT>"], InvalidTypeError, "key of type ARRAY<INT> must be a list"),
        (([["x", 1]],), ["ARRAY<ARRAY<STRING>>"], InvalidTypeError,
         "field 0: element 0: element 1: key of type STRING must be a str"),
    ],
)  # fmt: skip
def test_values_that_a_type_does_not_hold(
    key: object, texts: list[str], error: type[KeyGroupsError], says: str
) -> None:
    key_type = SQL_ROW(*texts)
    for call in (hash_code, binary_row):
        with pytest.raises(error, match=re.escape(says)) as caught:
            call(key, key_type)
        assert type(caught.value) is error


@pytest.mark.parametrize("key_type", [INT, None, "INT", SQL_ROW, LogicalType("INT")])
def test_binary_row_is_of_a_sql_row(key_type: Any) -> None:
    with pytest.raises(InvalidTypeError, match=r"key_type must be a SQL_ROW such as"):
        binary_row((1,), key_type)


# --- laws ---------------------------------------------------------------------------------


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=130))
def test_row_can_be_read_back(values: list[int | None]) -> None:
    """BinaryRowData: arity, null bits from bit 8 on, and 8 bytes a field."""
    row = binary_row(tuple(values), SQL_ROW(*["BIGINT"] * len(values)))
    header = len(row) - 8 * len(values)
    assert header % 8 == 0
    assert 8 * header - 64 < len(values) + 8 <= 8 * header
    bits = int.from_bytes(row[:header], "little") >> 8
    for index, value in enumerate(values):
        slot = row[header + 8 * index :][:8]
        assert int.from_bytes(slot, "little", signed=True) == (value or 0)
        assert bool(bits >> index & 1) == (value is None)
    assert bits >> len(values) == 0


@given(st.lists(st.none() | st.binary(max_size=20), max_size=5))
def test_variable_part_is_in_order_and_padded(values: list[bytes | None]) -> None:
    """BinaryRowData: up to 7 bytes in the slot, more at an offset that is a multiple of 8."""
    row = binary_row(tuple(values), SQL_ROW(*["BYTES"] * len(values)))
    end = 8 + 8 * len(values)
    for index, value in enumerate(values):
        slot = row[8 + 8 * index :][:8]
        if value is None:
            assert slot == bytes(8)
        elif len(value) <= 7:
            assert slot == value.ljust(7, b"\0") + bytes([0x80 + len(value)])
        else:
            size, offset = struct.unpack("<II", slot)
            assert (size, offset) == (len(value), end)
            end += (size + 7) // 8 * 8
            assert row[offset:end] == value.ljust(end - offset, b"\0")
    assert len(row) == end
