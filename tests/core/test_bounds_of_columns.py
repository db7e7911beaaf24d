"""The ends of what columns read: the last value of each kind is read, the one behind it left.

The bytes are those of Flink's serializers of java.time, java.sql and SQL's types.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Sequence
from typing import Any

import pytest

pa: Any = pytest.importorskip("pyarrow")

from support.inside.columns import reader_of  # noqa: E402
from support.inside.serializers import TRUNCATED, RowDataSerializer  # noqa: E402

from keygroups.logical_types import parse_logical_type  # noqa: E402
from keygroups.savepoint import Serializer  # noqa: E402
from keygroups.state_keys import serializer_of  # noqa: E402
from keygroups.types import (  # noqa: E402
    INSTANT,
    LOCAL_DATE,
    LOCAL_DATE_TIME,
    LOCAL_TIME,
)

UTC = dt.timezone.utc
EPOCH = dt.datetime(1970, 1, 1)
FIRST_SECOND = int((dt.datetime.min - EPOCH).total_seconds())
LAST_SECOND = int((dt.datetime.max.replace(microsecond=0) - EPOCH).total_seconds())
LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
NO_TIME = struct.pack(">bbbi", -128, -128, -128, -(2**31))


def date(year: int, month: int, day: int) -> bytes:
    return struct.pack(">iBB", year, month, day)


def time(hour: int, minute: int = 0, second: int = 0, nano: int = 0) -> bytes:
    return struct.pack(">bbbi", hour, minute, second, nano)


def seconds(second: int, nano: int) -> bytes:
    return struct.pack(">qi", second, nano)


def read(serializer: Serializer, written: Sequence[bytes]) -> Any:
    """Return values, None where they are left to the reader of single values."""
    reader = reader_of(serializer, False)
    assert reader is not None
    starts = [sum(map(len, written[:place])) for place in range(len(written))]
    try:
        array, ends = reader(b"".join(written), pa.array(starts).to_numpy())
    except (*TRUNCATED, ValueError):
        return None
    assert ends.tolist() == [*starts[1:], sum(map(len, written))]
    array.validate(full=True)
    return array.to_pylist()


DAYS = [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1969, 12, 31), dt.date(1970, 1, 1)]
DAYS += [
    dt.date(year, month, LENGTHS[month - 1] + (month == 2 and year % 400 == 0))
    for year in (1900, 2000, 2023)
    for month in range(1, 13)
]
DAYS += [day + dt.timedelta(1) for day in DAYS if day.year < 9999]
NO_DAYS = [
    *((0, 1, 1), (10_000, 1, 1), (2024, 0, 1), (2024, 13, 1), (2024, 1, 0), (1900, 2, 29)),
    *((2024, 2, 30), (2100, 2, 29)),
    *((2023, month, length + 1) for month, length in enumerate(LENGTHS, 1)),
]
NO_TIMES = [
    *(time(24), time(0, 60), time(0, 0, 60), time(0, 0, 0, 10**9), time(-1), time(0, -1)),
    *(time(0, 0, -1), time(0, 0, 0, -1)),
]
MORNING = dt.datetime(2024, 2, 29, 1, 2, 3, 4)
CASES: list[tuple[Any, list[tuple[bytes, Any]], list[bytes]]] = [
    (
        LOCAL_DATE,
        [(date(day.year, day.month, day.day), day) for day in DAYS]
        + [(struct.pack(">ih", -(2**31), -(2**15)), None)],
        [date(*day) for day in NO_DAYS],
    ),
    (
        LOCAL_TIME,
        [
            (time(0), 0),
            (time(23, 59, 59, 999_999_999), 86_400 * 10**9 - 1),
            (time(1, 2, 3, 4), (3_600 + 2 * 60 + 3) * 10**9 + 4),
            (NO_TIME, None),
        ],
        NO_TIMES,
    ),
    (
        LOCAL_DATE_TIME,
        [
            (date(2024, 2, 29) + time(1, 2, 3, 4_000), MORNING),
            (date(1, 1, 1) + time(0), dt.datetime.min),
            (date(9999, 12, 31) + time(23, 59, 59, 999_999_000), dt.datetime.max),
            (struct.pack(">ih", -(2**31), -(2**15)) + NO_TIME, None),
        ],
        [
            date(2024, 2, 29) + time(0, 0, 0, 1),
            date(2024, 2, 29) + time(0, 0, 0, 999),
            date(2024, 2, 29) + NO_TIME,
            struct.pack(">ih", -(2**31), -(2**15)) + time(0),
            *(date(2024, 2, 29) + wrong for wrong in NO_TIMES),
        ],
    ),
    (
        INSTANT,
        [
            (seconds(0, 0), EPOCH.replace(tzinfo=UTC)),
            (seconds(FIRST_SECOND, 0), dt.datetime.min.replace(tzinfo=UTC)),
            (seconds(LAST_SECOND, 999_000), dt.datetime.max.replace(microsecond=999, tzinfo=UTC)),
            (seconds(-1, 999_999_000), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)),
            (seconds(-(2**63), -(2**31)), None),
        ],
        [
            *(seconds(0, -1), seconds(0, 10**9), seconds(0, 1), seconds(0, 999)),
            *(seconds(FIRST_SECOND - 1, 0), seconds(LAST_SECOND + 1, 0)),
            *(seconds(2**62, 0), seconds(-(2**62), 0), seconds(-(2**63), 0)),
        ],
    ),
]


@pytest.mark.parametrize(("key_type", "good", "left"), CASES, ids=lambda case: str(case)[:20])
def test_what_is_read(key_type: Any, good: list[tuple[bytes, Any]], left: list[bytes]) -> None:
    serializer = serializer_of(key_type)
    written = [data for data, _ in good]
    assert read(serializer, written) == [value for _, value in good]
    for data, value in good:
        assert read(serializer, [data]) == [value]
    for data in left:
        assert read(serializer, [data]) is None
        assert read(serializer, [written[0], data, written[0]]) is None


def row(slot: bytes, behind: bytes = b"") -> bytes:
    """Return a BinaryRowData of one field behind its size: kind +I, null bits, slot."""
    data = bytes(8) + slot + behind
    return struct.pack(">i", len(data)) + data


def moment(nanos: int, millis: int, place: int = 16) -> bytes:
    return row(struct.pack("<II", nanos, place), struct.pack("<q", millis))


FIRST, LAST = FIRST_SECOND * 1000, LAST_SECOND * 1000 + 999
SQL_CASES: list[tuple[str, list[tuple[bytes, Any]], list[bytes]]] = [
    (
        "DATE",
        [
            (row(struct.pack("<q", -719_162 & 0xFFFFFFFF)), dt.date(1, 1, 1)),
            (row(struct.pack("<q", 2_932_896)), dt.date(9999, 12, 31)),
        ],
        [row(struct.pack("<q", -719_163 & 0xFFFFFFFF)), row(struct.pack("<q", 2_932_897))],
    ),
    (
        "TIMESTAMP(3)",
        [
            (row(struct.pack("<q", FIRST)), dt.datetime.min),
            (row(struct.pack("<q", LAST)), dt.datetime.max.replace(microsecond=999_000)),
        ],
        [row(struct.pack("<q", FIRST - 1)), row(struct.pack("<q", LAST + 1))],
    ),
    (
        "TIMESTAMP(6)",
        [
            (moment(0, FIRST), dt.datetime.min),
            (moment(999_000, LAST), dt.datetime.max),
        ],
        [
            *(moment(1_000_000, 0), moment(1, 0), moment(999, 0), moment(0, FIRST - 1)),
            *(moment(0, LAST + 1), moment(0, 0, 17), moment(0, 0, 24)),
        ],
    ),
    (
        "TIMESTAMP(9)",
        [
            (moment(999_999, LAST + 1), {"millisecond": LAST + 1, "nano_of_millisecond": 999_999}),
            (moment(0, -1), {"millisecond": -1, "nano_of_millisecond": 0}),
        ],
        [moment(1_000_000, 0), moment(0xFFFFFFFF, 0)],
    ),
    (
        "BINARY(20)",
        [
            (row(b"\1\2" + bytes(5) + b"\x82"), b"\1\2"),
            (row(b"1234567\x87"), b"1234567"),
            (row(struct.pack("<II", 8, 16), b"12345678"), b"12345678"),
        ],
        [
            row(b"1234567\x88"),
            row(struct.pack("<II", 9, 16), b"12345678"),
            row(struct.pack("<II", 8, 17), b"12345678"),
        ],
    ),
]


@pytest.mark.parametrize(("field", "good", "left"), SQL_CASES, ids=lambda case: str(case)[:20])
def test_what_is_read_of_sql(field: str, good: list[tuple[bytes, Any]], left: list[bytes]) -> None:
    serializer = RowDataSerializer([parse_logical_type(field)])
    read_rows = read(serializer, [data for data, _ in good])
    assert [each["f0"] for each in read_rows] == [value for _, value in good]
    assert [each["row_kind"] for each in read_rows] == ["+I"] * len(good)
    for data in left:
        assert read(serializer, [data]) is None
        assert read(serializer, [good[0][0], data]) is None
