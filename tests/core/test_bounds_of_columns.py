"""The ends of what columns read and write: the last value is, the one behind it is left.

The bytes are those of Flink's serializers of java.time, java.sql and SQL's types.
"""

from __future__ import annotations

import datetime as dt
import struct
import tracemalloc
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from typing import Any

import pytest

pa: Any = pytest.importorskip("pyarrow")

from support.inside.columns import (  # noqa: E402
    UnwrittenError,
    byte_arrays,
    column_writer,
    reader_of,
)
from support.inside.serializers import (  # noqa: E402
    TRUNCATED,
    ArrayDataSerializer,
    RowDataSerializer,
)

from keygroups.logical_types import LogicalType, parse_logical_type  # noqa: E402
from keygroups.savepoint import Serializer  # noqa: E402
from keygroups.state_keys import serializer_of  # noqa: E402
from keygroups.types import (  # noqa: E402
    BIG_DEC,
    BOOLEAN,
    BYTE,
    DOUBLE,
    FLOAT,
    INSTANT,
    LOCAL_DATE,
    LOCAL_DATE_TIME,
    LOCAL_TIME,
    SHORT,
    STRING,
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


@pytest.mark.parametrize(("key_type", "good", "unread"), CASES, ids=lambda case: str(case)[:20])
def test_what_is_read(key_type: Any, good: list[tuple[bytes, Any]], unread: list[bytes]) -> None:
    serializer = serializer_of(key_type)
    written = [data for data, _ in good]
    assert read(serializer, written) == [value for _, value in good]
    for data, value in good:
        assert read(serializer, [data]) == [value]
    for data in unread:
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


@pytest.mark.parametrize(("field", "good", "unread"), SQL_CASES, ids=lambda case: str(case)[:20])
def test_what_is_read_of_sql(
    field: str, good: list[tuple[bytes, Any]], unread: list[bytes]
) -> None:
    serializer = RowDataSerializer([parse_logical_type(field)])
    read_rows = read(serializer, [data for data, _ in good])
    assert [each["f0"] for each in read_rows] == [value for _, value in good]
    assert [each["row_kind"] for each in read_rows] == ["+I"] * len(good)
    for data in unread:
        assert read(serializer, [data]) is None
        assert read(serializer, [good[0][0], data]) is None


# --- values that share bytes ----------------------------------------------------------------


ZEROS = bytes(20_000)
BYTES_OF_AN_ARRAY = struct.pack("<i", 17_000) + bytes(19_996)


def shared(count: int, value: bytes, is_array: bool, is_null: bool) -> bytes:
    """Return a row, or an array, of so many fields that all have the same bytes."""
    slots_at = (count + 8 + 63) // 64 * 8
    head = bytearray(slots_at)
    if is_array:
        slots_at = 4 + (count + 31) // 32 * 4
        head = bytearray(struct.pack("<i", count) + bytes(slots_at - 4))
    if is_null:
        head[4 if is_array else 1] |= 1
    place = slots_at + 8 * count
    return bytes(head) + struct.pack("<II", len(value), place) * count + value


def peak(function: Callable[[], object]) -> int:
    """Return the most bytes of memory that a call takes, in Python, NumPy and Arrow."""
    default = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(default)
    tracemalloc.start()
    pa.set_memory_pool(pool)
    try:
        function()
        most: int = tracemalloc.get_traced_memory()[1] + pool.max_memory()
    finally:
        pa.set_memory_pool(default)
        tracemalloc.stop()
    return most


@pytest.mark.parametrize("is_null", [False, True], ids=["", "with a null"])
@pytest.mark.parametrize("is_array", [False, True], ids=["fields", "elements"])
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("STRING", ZEROS),
        ("BYTES", ZEROS),
        ("VARIANT", ZEROS),
        ("ARRAY<TINYINT>", BYTES_OF_AN_ARRAY),
    ],
    ids=["STRING", "BYTES", "VARIANT", "ARRAY"],
)
def test_values_that_share_bytes_cost_these_once(
    text: str, value: bytes, is_array: bool, is_null: bool
) -> None:
    """Each has its own, or none is read: 400 of 20,000 bytes would be 8 MB of 23 kB."""
    field = LogicalType(text) if text == "VARIANT" else parse_logical_type(text)
    serializer: Serializer = RowDataSerializer([field] * 400)
    if is_array:
        serializer = ArrayDataSerializer(field)
    data = shared(400, value, is_array, is_null)
    written = [struct.pack(">i", len(data)) + data]

    def left() -> None:
        assert read(serializer, written) is None

    left()  # Python and Arrow make some things at the first call alone.
    assert peak(left) < 40 * len(data)


# --- what is written ------------------------------------------------------------------------


def big(number: int) -> bytes:
    """Return BigDecSerializer's bytes of a number of scale 2, as Flink's own class writes them."""
    if number in (0, 1, 10):
        head = struct.pack(">i", 1 + (0, 1, 10).index(number))
    else:
        digits = shortest(number)
        head = struct.pack(">i", len(digits) + 4) + digits
    return head + struct.pack(">i", 2)


def shortest(number: int) -> bytes:
    """Return BigInteger.toByteArray: the fewest bytes of two's complement."""
    return number.to_bytes(
        (number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True
    )


def varint(number: int) -> bytes:
    return (
        bytes([number & 0x7F | 0x80]) + varint(number >> 7) if number > 0x7F else bytes([number])
    )


@pytest.mark.parametrize(
    "numbers",
    [
        [],
        [0, 1, 0x7F],
        [0x80, 0],
        [more + (1 << bits) for bits in (7, 14, 21, 28) for more in (-1, 0, 1)],
        [2**31, 2**32 - 1, 5],
    ],
)
def test_varints(numbers: list[int]) -> None:
    """Seven bits a byte, the lowest first; Flink: StringValue.writeString."""
    expected = [varint(number) for number in numbers]
    data, bounds = byte_arrays.varints(pa.array(numbers, pa.int64()).to_numpy())
    assert data.tobytes() == b"".join(expected)
    assert bounds.tolist() == [sum(map(len, expected[:end])) for end in range(len(numbers) + 1)]


def text(value: str) -> bytes:
    """Return StringValue's bytes: the length plus 1, then each UTF-16 unit, as varints."""
    data = value.encode("utf-16-be")
    units = [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]
    return varint(len(units) + 1) + b"".join(map(varint, units))


def unscaled(number: int) -> Decimal:
    return Decimal(number).scaleb(-2, Context(38))


ENDS = [
    sign * (1 << bits) + more for bits in range(7, 63, 8) for sign in (1, -1) for more in (-1, 0)
]
ENDS += [0, 1, 10, -1, 9, 11, -10, 2**63 - 1, -(2**63)]
TEXTS = ["", "a", "\x7f", "\x80", "\u3fff", "\u4000", "\uffff", "\U0001f600", "\u0800x", "\u07ff"]
TEXTS += ["x" * 126, "x" * 127, "\xe9" * 126, "\xe9" * 127, "x" * 16_383]
MICROS = [dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30), EPOCH, MORNING]
MICROS += [EPOCH - dt.timedelta(microseconds=1), dt.datetime(2024, 12, 31, 23, 59, 59, 999_999)]
WRITTEN: list[tuple[Any, Any, list[tuple[Any, bytes]], list[Any]]] = [
    (
        *(LOCAL_DATE, pa.date32()),
        [
            (day, date(day.year, day.month, day.day))
            for day in DAYS
            if dt.date(1, 1, 2) <= day <= dt.date(9999, 12, 30)
        ]
        + [(dt.date(1, 1, 2), date(1, 1, 2)), (dt.date(9999, 12, 30), date(9999, 12, 30))],
        [dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    ),
    (
        *(LOCAL_DATE_TIME, pa.timestamp("us")),
        [
            (
                at,
                date(at.year, at.month, at.day)
                + time(at.hour, at.minute, at.second, at.microsecond * 1000),
            )
            for at in MICROS
        ],
        [dt.datetime(1, 1, 1, 23), dt.datetime(9999, 12, 31)],
    ),
    (
        *(INSTANT, pa.timestamp("us", "UTC")),
        [
            (
                at.replace(tzinfo=UTC),
                seconds((at - EPOCH) // dt.timedelta(seconds=1), at.microsecond * 1000),
            )
            for at in MICROS
        ],
        [dt.datetime(1, 1, 1, 23, tzinfo=UTC), dt.datetime(9999, 12, 31, tzinfo=UTC)],
    ),
    (
        *(BIG_DEC, pa.decimal128(38, 2)),
        [(unscaled(number), big(number)) for number in ENDS],
        [unscaled(2**63), unscaled(-(2**63) - 1), unscaled(2**64), unscaled(10**37)],
    ),
    (STRING, pa.string(), [(value, text(value)) for value in TEXTS], []),
    (DOUBLE, pa.float64(), [(1.5, struct.pack(">d", 1.5)), (-0.0, b"\x80" + bytes(7))], []),
    (FLOAT, pa.float32(), [(1.5, struct.pack(">f", 1.5)), (-0.0, b"\x80" + bytes(3))], []),
    (BOOLEAN, pa.bool_(), [(True, b"\1"), (False, b"\0")], []),
    (SHORT, pa.int16(), [(-2, b"\xff\xfe"), (300, b"\1\x2c")], []),
    (BYTE, pa.int8(), [(-128, b"\x80"), (127, b"\x7f")], []),
]


@pytest.mark.parametrize(
    ("key_type", "data_type", "good", "unread"), WRITTEN, ids=lambda case: str(case)[:20]
)
def test_what_is_written(
    key_type: Any, data_type: Any, good: list[tuple[Any, bytes]], unread: list[Any]
) -> None:
    writer = column_writer(key_type)
    assert writer is not None
    array = pa.array([value for value, _ in good], data_type)
    assert writer.write(array).to_pylist() == [data for _, data in good]
    assert writer.write(array.slice(1)).to_pylist() == [data for _, data in good[1:]]
    for value, data in good:
        assert writer.write(pa.array([value], data_type)).to_pylist() == [data]
    for value in unread:
        with pytest.raises(UnwrittenError):
            writer.write(pa.array([good[0][0], value], data_type))


WIDE = [
    sign * (1 << bits) + more for bits in range(7, 120, 8) for sign in (1, -1) for more in (-1, 0)
]
WIDE += [0, 1, -1, 10**38 - 1, 1 - 10**38, 2**64, -(2**64), 2**63, -(2**63), 2**63 - 1]


def wide(number: int) -> bytes:
    """Return the row of a DECIMAL of more than 18 digits: size and offset, then 16 bytes."""
    digits = shortest(number)
    return row(struct.pack("<II", len(digits), 16), digits + bytes(16 - len(digits)))


SQL_WRITTEN: list[tuple[str, Any, list[tuple[Any, bytes]], list[Any]]] = [
    (
        *("DECIMAL(38, 0)", pa.decimal128(38, 0)),
        [(Decimal(number), wide(number)) for number in WIDE],
        [],
    ),
    (
        *("BINARY(20)", pa.binary()),
        [
            (b"", row(bytes(7) + b"\x80")),
            (b"\1\2", row(b"\1\2" + bytes(5) + b"\x82")),
            (b"1234567", row(b"1234567\x87")),
            (b"12345678", row(struct.pack("<II", 8, 16), b"12345678")),
            (b"123456789", row(struct.pack("<II", 9, 16), b"123456789" + bytes(7))),
        ],
        [],
    ),
    (
        *("TIMESTAMP(6)", pa.timestamp("us")),
        [
            (
                at,
                moment(at.microsecond % 1000 * 1000, (at - EPOCH) // dt.timedelta(milliseconds=1)),
            )
            for at in MICROS
        ],
        [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)],
    ),
    (
        *("TIMESTAMP(3)", pa.timestamp("us")),
        [(EPOCH + dt.timedelta(milliseconds=-1), row(struct.pack("<q", -1)))],
        [EPOCH + dt.timedelta(microseconds=1), EPOCH - dt.timedelta(microseconds=1)],
    ),
    (
        *("DATE", pa.date32()),
        [(dt.date(1, 1, 2), row(struct.pack("<q", -719_161 & 0xFFFFFFFF)))],
        [dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    ),
    (
        "TIMESTAMP(9)",
        pa.struct([("millisecond", pa.int64()), ("nano_of_millisecond", pa.int32())]),
        [
            ({"millisecond": -1, "nano_of_millisecond": 0}, moment(0, -1)),
            ({"millisecond": 2**62, "nano_of_millisecond": 999_999}, moment(999_999, 2**62)),
        ],
        [
            {"millisecond": 0, "nano_of_millisecond": 1_000_000},
            {"millisecond": 0, "nano_of_millisecond": -1},
        ],
    ),
]


@pytest.mark.parametrize(
    ("field", "data_type", "good", "unread"), SQL_WRITTEN, ids=lambda case: str(case)[:20]
)
def test_what_is_written_of_sql(
    field: str, data_type: Any, good: list[tuple[Any, bytes]], unread: list[Any]
) -> None:
    writer = column_writer(RowDataSerializer([parse_logical_type(field)]))
    assert writer is not None

    def rows(values: list[Any]) -> Any:
        kinds = pa.array(["+I"] * len(values))
        return pa.StructArray.from_arrays([pa.array(values, data_type), kinds], ["f0", "row_kind"])

    values = [value for value, _ in good]
    assert writer.write(rows(values)).to_pylist() == [data for _, data in good]
    for value in unread:
        with pytest.raises(UnwrittenError):
            writer.write(rows([values[0], value]))


@pytest.mark.parametrize("count", [1, 8, 9, 56, 57, 64, 65])
def test_null_bits_of_rows(count: int) -> None:
    """The first byte is the kind; the bits of fields follow it, each eight fields one byte."""
    serializer = RowDataSerializer([parse_logical_type("INT")] * count)
    writer = column_writer(serializer)
    assert writer is not None
    header = (count + 8 + 63) // 64 * 8
    for null in {0, count // 2, count - 1}:
        numbers = [None if place == null else place for place in range(count)]
        columns = [pa.array([number, number], pa.int32()) for number in numbers]
        names = [f"f{place}" for place in range(count)]
        rows = pa.StructArray.from_arrays([*columns, pa.array(["-D", "+I"])], [*names, "row_kind"])
        slots = b"".join(struct.pack("<q", number or 0) for number in numbers)
        bits = (1 << null + 8).to_bytes(header, "little")
        expected = [struct.pack(">i", len(bits + slots)) + bits + slots] * 2
        expected[0] = expected[0][:4] + b"\3" + expected[0][5:]
        assert writer.write(rows).to_pylist() == expected
        assert read(serializer, expected) == rows.to_pylist()


def test_elements_have_one_nan() -> None:
    """BinaryArrayWriter writes a float by Float.floatToIntBits's 7fc00000, whatever its bits."""
    floats = pa.array([0x7FC00001, 0xFFC00000, 0x3F800000], pa.uint32()).view(pa.float32())
    doubles = pa.array([0x7FF8000000000001, -1, 0], pa.int64()).view(pa.float64())
    for field, values, expected in [
        ("FLOAT", floats, struct.pack("<iiIIfi", 3, 0, 0x7FC00000, 0x7FC00000, 1.0, 0)),
        ("DOUBLE", doubles, struct.pack("<iiQQd", 3, 0, 0x7FF8 << 48, 0x7FF8 << 48, 0.0)),
    ]:
        writer = column_writer(ArrayDataSerializer(parse_logical_type(field)))
        assert writer is not None
        lists = pa.ListArray.from_arrays([0, 3], values)
        assert writer.write(lists).to_pylist() == [struct.pack(">i", len(expected)) + expected]
