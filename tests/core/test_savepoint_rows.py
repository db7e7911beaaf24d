"""SQL rows from the bytes that Flink's own code made of them: `independent/binaryrow`."""

from __future__ import annotations

import datetime as dt
import struct
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from support.golden import lines
from support.inside.serializers import RowDataSerializer, row_reader
from support.keys.sql_values import SCHEMA, UTC, BeyondPythonError, python

from keygroups.binary_row import binary_row
from keygroups.errors import InvalidValueError
from keygroups.hashing import hash_code
from keygroups.logical_types import LogicalType, parse_logical_type
from keygroups.savepoint.values import Row, TimestampData
from keygroups.types import SQL_ROW


def readable(field: LogicalType, value: Any) -> Any:
    """Return the value to be read for a value of the vectors."""
    if field.name == "ROW" and value is not None:
        return Row(tuple(map(readable, field.fields, value)))
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
            expected = Row(tuple(map(readable, fields, line["values"])))
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


def test_raw() -> None:
    """A RAW is the bytes of its part of the row, where it is never in its slot."""
    place = struct.pack("<II", 3, 16).hex()
    assert row_reader([LogicalType("RAW")])(row(place, rest="010203")) == (b"\1\2\3",)
    with pytest.raises(IndexError):
        row_reader([LogicalType("RAW")])(row("61" + "00" * 6 + "81"))


def test_nested() -> None:
    """Rows and arrays of rows, with nulls."""
    text = "ROW<a INT, b ARRAY<ROW<c STRING, d DECIMAL(38, 3)>>>"
    values = ((5, [("x" * 9, Decimal("1.250")), None, (None, None)]),)
    read = row_reader([parse_logical_type(text)])
    assert read(binary_row(values, SQL_ROW(text))) == values
    assert read(binary_row((None,), SQL_ROW(text))) == (None,)


# Rows of state of SQL jobs that Flink 2.3.0 ran, as its own classes wrote them, with their kinds:
# of Deduplicate that keeps the last row, and of the versions of a temporal join, where the second
# says that the key was deleted.
KINDS = [
    (
        ("BIGINT NOT NULL", "STRING", "TIMESTAMP(3)"),
        "020000000000000021000000000000006b310000000000824c4a3d288e010000",
        Row((33, "k1", dt.datetime(2024, 3, 10, 12, 1, 29, 164_000)), "+U"),
    ),
    (
        ("BIGINT NOT NULL", "DECIMAL(12, 3)", "STRING", "TIMESTAMP(3)"),
        "020000000000000005000000000000007b690000000000006f736c6f00000084961c3d288e010000",
        Row((5, Decimal("27.003"), "oslo", dt.datetime(2024, 3, 10, 12, 1, 17, 462_000)), "+U"),
    ),
    (
        ("BIGINT NOT NULL", "DECIMAL(12, 3)", "STRING", "TIMESTAMP(3)"),
        "030600000000000007000000000000000000000000000000000000000000000061a83c288e010000",
        Row((7, None, None, dt.datetime(2024, 3, 10, 12, 0, 47, 713_000)), "-D"),
    ),
]


@pytest.mark.parametrize(("types", "data", "expected"), KINDS)
def test_kinds_of_state(types: tuple[str, ...], data: str, expected: Row) -> None:
    """A row in state keeps its kind, both ways; a key has none but +I."""
    serializer = RowDataSerializer([parse_logical_type(text) for text in types])
    assert serializer.read is not None
    assert serializer.write is not None
    written = struct.pack(">i", len(data) // 2) + bytes.fromhex(data)
    found, end = serializer.read(written, 0)
    assert found == expected
    assert found.row_kind == expected.row_kind
    assert end == len(written)
    assert serializer.write(found) == written
    assert serializer.write(tuple(found)) == written[:4] + b"\0" + written[5:]
    with pytest.raises(InvalidValueError, match=r"must be a row of kind \+I.*, got Row"):
        binary_row(found, SQL_ROW(*types))
    with pytest.raises(InvalidValueError, match=r"must be a row of kind \+I.*, got Row"):
        hash_code(found, SQL_ROW(*types))


def test_kinds_within() -> None:
    """Rows in a row and in an array have a byte of their own, which Flink copies too."""
    fields = [parse_logical_type("ROW<a INT>"), parse_logical_type("ARRAY<ROW<a INT>>")]
    inner = (Row((1,), "-U"), [Row((2,), "-D"), None, Row((3,))])
    serializer = RowDataSerializer(fields)
    assert serializer.read is not None
    assert serializer.write is not None
    written = serializer.write(inner)
    nested = [
        bytes([kind, *bytes(7), number, *bytes(7)]) for kind, number in ((1, 1), (3, 2), (0, 3))
    ]
    assert all(part in written for part in nested)
    (row, rows), _ = serializer.read(written, 0)
    assert (row.row_kind, rows[0].row_kind, rows[2].row_kind) == ("-U", "-D", "+I")
    assert serializer.write((row, rows)) == written
    for key in ((inner[0], None), (None, inner[1])):
        with pytest.raises(
            InvalidValueError, match=r"key of type ROW.* must be a row of kind \+I"
        ):
            hash_code(key, SQL_ROW(*map(str, fields)))


def test_a_kind_that_is_none() -> None:
    """RowKind.fromByteValue knows 0 to 3."""
    with pytest.raises(ValueError, match="a row of kind 4"):
        row_reader([LogicalType("INT")])(b"\4" + bytes(15))


@pytest.mark.parametrize(
    ("text", "data", "error"),
    [
        ("INT", b"", struct.error),
        ("STRING", row("00" * 7 + "88"), ValueError),  # eight bytes in seven
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
