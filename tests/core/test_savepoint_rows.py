"""SQL rows from the bytes that Flink's own code made of them: `independent/binaryrow`."""

from __future__ import annotations

import datetime as dt
import struct
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from golden import lines
from sql_values import SCHEMA, UTC, BeyondPythonError, python

from keygroups._row_reader import TimestampData, row_reader
from keygroups.binary_row import binary_row
from keygroups.logical_types import LogicalType, parse_logical_type
from keygroups.types import SQL_ROW


def readable(field: LogicalType, value: Any) -> Any:
    """Return what is to be read for a value of the vectors."""
    if field.name == "ROW" and value is not None:
        return tuple(map(readable, field.fields, value))
    if field.name == "ARRAY" and value is not None:
        return [readable(field.fields[0], element) for element in value]
    if field.name in ("TIMESTAMP", "TIMESTAMP_LTZ") and value is not None:
        millis, nanos = int(value["millis"]), value["nanos"]
        try:
            moment = dt.datetime(1970, 1, 1) + dt.timedelta(
                milliseconds=millis, microseconds=nanos // 1000
            )
        except OverflowError:
            return TimestampData(millis, nanos)
        if nanos % 1000:
            return TimestampData(millis, nanos)
        return moment.replace(tzinfo=UTC if field.name == "TIMESTAMP_LTZ" else None)
    if field.name == "DATE" and value is not None:
        return date_of(value)
    return python(field, value)


def date_of(days: int) -> dt.date | int:
    try:
        return dt.date(1970, 1, 1) + dt.timedelta(days)
    except OverflowError:
        return days


def test_vectors() -> None:
    """All rows of real Flink, of every type that a key has."""
    counts: Counter[str] = Counter()
    for line in lines("independent/binaryrow"):
        fields = [parse_logical_type(SCHEMA.get(name, name)) for name in line["schema"]]
        read = row_reader(fields)
        for name in ("bytes", "bytes_row_data_serializer"):
            if name not in line:
                continue
            found = read(bytes.fromhex(line[name]))
            expected = tuple(map(readable, fields, line["values"]))
            assert repr(found) == repr(expected), line
            counts[name] += 1
    print("rows:", dict(counts))
    assert counts["bytes"] == 1956
    assert counts["bytes_row_data_serializer"] > 0


def row(*slots: str, rest: str = "") -> bytes:
    """A BinaryRowData without nulls: header, slots of eight bytes, what does not fit in them."""
    return bytes(8) + b"".join(bytes.fromhex(slot) for slot in slots) + bytes.fromhex(rest)


def number(value: int) -> str:
    return struct.pack("<q", value).hex()


# BinaryRowData: little endian; a slot of eight bytes a field; TIME is milliseconds of the day,
# DATE days since the epoch. Beyond Python's own classes the number stays.
@pytest.mark.parametrize(
    ("text", "slot", "expected"),
    [
        ("DATE", number(0), dt.date(1970, 1, 1)),
        ("DATE", number(-719162 & 0xFFFFFFFF), dt.date.min),
        ("DATE", number(-719163 & 0xFFFFFFFF), -719163),
        ("DATE", number(2932896), dt.date.max),
        ("DATE", number(2932897), 2932897),
        ("TIME(3)", number(86_399_999), dt.time(23, 59, 59, 999_000)),
        ("TIME(3)", number(86_400_000), 86_400_000),
        ("TIME(3)", number(-1 & 0xFFFFFFFF), -1),
        ("TIMESTAMP(3)", number(-1), dt.datetime(1969, 12, 31, 23, 59, 59, 999_000)),
        ("TIMESTAMP(3)", number(2**62), TimestampData(2**62, 0)),
        ("TIMESTAMP_LTZ(3)", number(0), dt.datetime(1970, 1, 1, tzinfo=UTC)),
        ("DECIMAL(18, 2)", number(-(10**18) + 1), Decimal("-9999999999999999.99")),
        ("DECIMAL(3, 3)", number(5), Decimal("0.005")),
        ("FLOAT", struct.pack("<f", 1.5).hex() + "00000000", 1.5),
        ("DOUBLE", struct.pack("<d", -0.0).hex(), -0.0),
        ("BOOLEAN", number(1), True),
        ("TINYINT", number(0x80), -128),
        ("SMALLINT", number(0xFFFF), -1),
        ("INT", number(0x80000000), -(2**31)),
        ("BIGINT", number(-(2**63)), -(2**63)),
        ("STRING", "61" + "00" * 6 + "81", "a"),
        ("STRING", "00" * 7 + "80", ""),
        ("BYTES", "0102030405060787", bytes(range(1, 8))),
    ],
)
def test_edges(text: str, slot: str, expected: object) -> None:
    (found,) = row_reader([parse_logical_type(text)])(row(slot))
    assert found == expected
    assert type(found) is type(expected)


def test_intervals() -> None:
    """Months in four bytes, milliseconds in eight."""
    fields = [LogicalType("INTERVAL_YEAR_MONTH"), LogicalType("INTERVAL_DAY_TIME")]
    assert row_reader(fields)(row(number(14), number(-86_400_000))) == (14, -86_400_000)


def test_types_without_a_class_in_python() -> None:
    """RAW, MAP and MULTISET are the bytes of their part of the row."""
    place = struct.pack("<II", 3, 16).hex()
    for name in ("RAW", "MAP", "MULTISET"):
        assert row_reader([LogicalType(name)])(row(place, rest="010203")) == (b"\1\2\3",)


def test_nested() -> None:
    """Rows and arrays of rows, with nulls."""
    text = "ROW<a INT, b ARRAY<ROW<c STRING, d DECIMAL(38, 3)>>>"
    values = ((5, [("x" * 9, Decimal("1.250")), None, (None, None)]),)
    read = row_reader([parse_logical_type(text)])
    assert read(binary_row(values, SQL_ROW(text))) == values
    assert read(binary_row((None,), SQL_ROW(text))) == (None,)


@pytest.mark.parametrize(
    ("text", "data", "error"),
    [
        ("INT", b"", IndexError),
        ("INT", bytes(10), struct.error),
        ("STRING", row("05000000" + "10000000", rest="61"), IndexError),  # five bytes, one there
        ("STRING", row("01000000" + "10000000", rest="ff"), ValueError),  # not UTF-8
        ("ARRAY<INT>", row("04000000" + "10000000", rest="ffffffff"), ValueError),
        ("ARRAY<INT>", row("04000000" + "10000000", rest="05000000"), ValueError),
        ("ARRAY<INT>", row("08000000" + "10000000", rest="0200000000000000"), struct.error),
        ("ROW<a INT>", row("08000000" + "10000000", rest="00" * 8), struct.error),
    ],
)
def test_damaged(text: str, data: bytes, error: type[Exception]) -> None:
    """The reader's own contract: who calls it makes a SavepointError of these."""
    with pytest.raises(error):
        row_reader([parse_logical_type(text)])(data)


def test_beyond_python_is_of_the_vectors() -> None:
    """Some of the rows above are beyond Python's classes, so that is held too."""
    beyond = 0
    for line in lines("independent/binaryrow"):
        fields = [parse_logical_type(SCHEMA.get(name, name)) for name in line["schema"]]
        try:
            list(map(python, fields, line["values"]))
        except (BeyondPythonError, OverflowError):
            beyond += 1
    assert beyond > 10
