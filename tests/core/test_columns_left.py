"""What readers of columns leave to the reader of single values: one thing is odd in each.

The bytes beside it are what is read. A reader that took the odd ones would give another value, or
bytes of the next one.
"""

from __future__ import annotations

import datetime as dt
import struct
from typing import Any

import pytest

pa: Any = pytest.importorskip("pyarrow")
np: Any = pytest.importorskip("numpy")

from support.bytes.savepoint_bytes import i32, i64  # noqa: E402
from support.inside import serializers  # noqa: E402
from support.inside.columns import (  # noqa: E402
    UnwrittenError,
    column_of,
    column_writer,
    list_reader_of,
    names_of,
    parts,
    reader_of,
    readers,
)
from support.inside.serializers import (  # noqa: E402
    VOID_NAMESPACE,
    ArrayDataSerializer,
    MapDataSerializer,
    PojoSerializer,
    RowDataSerializer,
    TimestampDataSerializer,
)

from keygroups.logical_types import LogicalType, parse_logical_type  # noqa: E402
from keygroups.savepoint import Serializer, StateDescriptor  # noqa: E402

EPOCH = dt.datetime(1970, 1, 1)
UTC = dt.timezone.utc
ZERO = EPOCH.replace(tzinfo=UTC)
FIRST = (dt.datetime.min - EPOCH) // dt.timedelta(milliseconds=1)
LAST = (dt.datetime.max - EPOCH) // dt.timedelta(milliseconds=1)
LEAST = -(2**63)
BEFORE = dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC)
INT, LONG, DOUBLE, FLOAT, STRING = (
    *(serializers.INT, serializers.LONG, serializers.DOUBLE, serializers.FLOAT),
    serializers.STRING,
)


def in_row(**fields: Any) -> dict[str, Any]:
    return {"row_kind": "+I", **fields}


def parsed(text: str) -> LogicalType:
    return parse_logical_type(text)


def stamp(millis: int, nanos: int) -> bytes:
    return struct.pack(">qi", millis, nanos)


def frame(data: bytes, size: int | None = None) -> bytes:
    return i32(len(data) if size is None else size) + data


def le(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}i", *numbers)


def doubles(*numbers: float) -> bytes:
    """Return a map of these keys, each with 7."""
    items = b"".join(struct.pack(">d", number) + b"\0" + i32(7) for number in numbers)
    return i32(len(numbers)) + items


def texts(*values: bytes) -> bytes:
    return b"".join(bytes([len(value) + 1]) + value for value in values)


MILLIS = (
    [
        (i64(0), ZERO),
        (i64(-1), BEFORE),
        (i64(LEAST), None),
        (i64(FIRST), dt.datetime.min.replace(tzinfo=UTC)),
        (i64(LAST), dt.datetime.max.replace(microsecond=999_000, tzinfo=UTC)),
    ],
    [i64(FIRST - 1), i64(LAST + 1), i64(LEAST + 1), i64(0)[:7]],
)
PAIR = serializers.TupleSerializer([INT, STRING])
BEAN = PojoSerializer("a.B", ["n", "s"], [INT, STRING])
OPTION = serializers.OptionSerializer(serializers.NullableSerializer(INT, 0))
EITHER = serializers.EitherSerializer(INT, STRING)
SET = serializers.SetSerializer(INT)
MAP = serializers.MapSerializer(INT, STRING)
OBJECTS = serializers.GenericArraySerializer("a.B", STRING)
ROW = serializers.RowSerializer([INT, STRING])
SQL_INT, SQL_TEXT = parsed("INT"), parsed("STRING")
HEAD = bytes(8)
CASES: dict[str, tuple[Serializer, list[tuple[bytes, Any]], list[bytes]]] = {
    "DATE": (serializers.DateSerializer(), *MILLIS),
    "SQL_DATE": (serializers.SqlDateSerializer(), *MILLIS),
    "SQL_TIME": (serializers.SqlTimeSerializer(), *MILLIS),
    "SQL_TIMESTAMP": (
        serializers.SqlTimestampSerializer(),
        [
            (stamp(0, 0), ZERO),
            (stamp(-1, 999_000_000), BEFORE),
            (stamp(LEAST, 0), None),
            (stamp(FIRST, 0), dt.datetime.min.replace(tzinfo=UTC)),
            (stamp(LAST, 999_999_000), dt.datetime.max.replace(tzinfo=UTC)),
        ],
        [
            *(stamp(0, -1), stamp(0, 10**9), stamp(0, 1), stamp(0, 999), stamp(0, -1_000)),
            *(stamp(FIRST - 1_000, 0), stamp(LAST + 1, 0), stamp(2**62, 0), stamp(-(2**62), 0)),
        ],
    ),
    "TIMESTAMP(3)": (
        TimestampDataSerializer(3),
        [(i64(0), EPOCH), (i64(FIRST), dt.datetime.min)],
        [i64(FIRST - 1), i64(LAST + 1), i64(0)[1:]],
    ),
    "TIMESTAMP(6)": (
        TimestampDataSerializer(6),
        [
            (stamp(0, 0), EPOCH),
            (stamp(0, 999_000), EPOCH + dt.timedelta(microseconds=999)),
            (stamp(LAST, 999_000), dt.datetime.max),
        ],
        [
            *(stamp(0, -1), stamp(0, -1_000), stamp(0, 1_000_000), stamp(0, 1), stamp(0, 999)),
            *(stamp(FIRST - 1, 0), stamp(LAST + 1, 0), stamp(0, 0)[:11]),
        ],
    ),
    "TIMESTAMP(9)": (
        TimestampDataSerializer(9),
        [
            (stamp(LEAST, 999_999), {"millisecond": LEAST, "nano_of_millisecond": 999_999}),
            (stamp(7, 0), {"millisecond": 7, "nano_of_millisecond": 0}),
        ],
        [stamp(0, -1), stamp(0, 1_000_000)],
    ),
    "ENUM": (
        serializers.EnumSerializer("a.E", ["A", "B"]),
        [(i32(1), "B"), (i32(0), "A")],
        [i32(-1), i32(2), i32(1 << 16), i32(0)[:3]],
    ),
    "BOOLEAN": (serializers.BOOLEAN, [(b"\0", False), (b"\1", True), (b"\x80", True)], [b""]),
    "CHAR": (
        serializers.CHAR,
        [(b"\0a", "a"), (b"\xd7\xff", "\ud7ff"), (b"\xe0\0", "\ue000"), (b"\xff\xff", "\uffff")],
        [b"\xd8\0", b"\xdb\xff", b"\xdc\0", b"\xdf\xff", b"\0"],
    ),
    "BYTES": (
        serializers.BYTES,
        [(frame(b""), b""), (frame(b"ab"), b"ab")],
        [frame(b"ab", 3), frame(b"", -1), frame(b"", -(2**31)), i32(1)[:3]],
    ),
    "SQL_STRING": (
        serializers.SQL_STRING,
        [(frame(b""), ""), (frame("é".encode()), "é"), (frame(b"\x7f"), "\x7f")],
        [frame(b"\xff"), frame(b"a\x80"), frame("é".encode()[:1]), frame(b"a", 2)],
    ),
    "STRING": (
        STRING,
        [
            (b"\0", None),
            (b"\1", ""),
            (b"\2a", "a"),
            (b"\2\xe9\1", "é"),
            (b"\x80\1" + b"x" * 127, "x" * 127),
        ],
        [b"\3a", b"\x80\1" + b"x" * 126, b"\2\xe9", b"\x80", b""],
    ),
    "LIST(INT)": (
        serializers.ListSerializer(INT),
        [(i32(0), []), (i32(2, 5, -1), [5, -1])],
        [i32(-1), i32(2, 5), i32(2**31 - 1, 5), i32(1)[:3]],
    ),
    "LIST(STRING)": (
        serializers.ListSerializer(STRING),
        [(i32(0), []), (i32(2) + texts(b"a", b""), ["a", ""])],
        [i32(-1), i32(2) + texts(b"a"), i32(2**31 - 1) + b"\1" * 9, i32(1) + b"\3a"],
    ),
    "OBJECTS": (
        OBJECTS,
        [(i32(0), []), (i32(3) + b"\1\2a\0\1\1", ["a", None, ""]), (i32(1) + b"\7\2a", ["a"])],
        [i32(-1), i32(2) + b"\1\2a", i32(1) + b"\1\3a"],
    ),
    "SET": (
        SET,
        [(i32(0), []), (i32(2) + b"\0" + i32(7) + b"\0" + i32(-1), [-1, 7])],
        [
            *(i32(-1), i32(1) + b"\1", i32(2) + b"\0" + i32(7), i32(1) + b"\0" + i32(7)[:3]),
            i32(1) + b"\1" + i32(7),
        ],
    ),
    "SET(STRING)": (
        serializers.SetSerializer(STRING),
        [(i32(2) + b"\0\2b\0\2a", ["a", "b"])],
        [i32(1) + b"\0\0", i32(2) + b"\0\2a\1", i32(1) + b"\0\3a"],
    ),
    "MAP": (
        MAP,
        [
            (i32(0), []),
            (i32(2, 5) + b"\0\2a" + i32(6) + b"\1", [(5, "a"), (6, None)]),
        ],
        [i32(-1), i32(2, 5) + b"\0\2a" + i32(5) + b"\1", i32(1, 5) + b"\0\3a", i32(2, 5) + b"\1"],
    ),
    "MAP of doubles": (
        serializers.MapSerializer(DOUBLE, INT),
        [
            (doubles(0.0, 1.0), [(0.0, 7), (1.0, 7)]),
            (doubles(*range(100)), [(float(number), 7) for number in range(100)]),
        ],
        [doubles(0.0, -0.0), doubles(1.0, 2.0, 1.0), doubles(*range(101))],
    ),
    "MAP of ints": (
        MAP,
        [
            (
                i32(101) + b"".join(i32(number) + b"\1" for number in range(101)),
                [(number, None) for number in range(101)],
            )
        ],
        [i32(102) + b"".join(i32(number % 101) + b"\1" for number in range(102))],
    ),
    "TUPLE": (PAIR, [(i32(5) + b"\2a", {"f0": 5, "f1": "a"})], [i32(5) + b"\3a", i32(5)]),
    "POJO": (
        BEAN,
        [
            (b"\1", None),
            (b"\2\0" + i32(5) + b"\0\2a", {"n": 5, "s": "a"}),
            (b"\2\1\1", {"n": None, "s": None}),
            (b"\2\7\0\0", {"n": None, "s": None}),
        ],
        [*(bytes([flags]) + b"\1\1" for flags in (0, 3, 4, 0x0A, 0xFF)), b"\2\1\0\3a", b"\2\0\0"],
    ),
    "ROW": (
        ROW,
        [
            (b"\0" + i32(5) + b"\2a", {"f0": 5, "f1": "a", "row_kind": "+I"}),
            (b"\xf0", {"f0": None, "f1": None, "row_kind": "-D"}),
            (b"\x60\2a", {"f0": None, "f1": "a", "row_kind": "+U"}),
            (b"\x90" + i32(5), {"f0": 5, "f1": None, "row_kind": "-U"}),
        ],
        [b"\0" + i32(5), b"\x20\3a", b""],
    ),
    "NULLABLE": (
        serializers.NullableSerializer(LONG, 8),
        [(b"\0" + i64(5), 5), (b"\1" + bytes(8), None)],
        [b"\1" + bytes(7), b"\0" + bytes(7), b"\1"],
    ),
    "OPTION": (
        OPTION,
        [(b"\0", None), (b"\1\0" + i32(5), 5)],
        [b"\1\1", b"\1\0" + i32(5)[:3], b"\1"],
    ),
    "EITHER": (
        EITHER,
        [
            (b"\1" + i32(5), {"is_left": True, "left": 5, "right": None}),
            (b"\0\2a", {"is_left": False, "left": None, "right": "a"}),
        ],
        [b"\1" + i32(5)[:3], b"\0\3a", b""],
    ),
    "SQL ROW": (
        RowDataSerializer([SQL_INT, SQL_TEXT]),
        [
            (
                frame(HEAD + le(5, 0) + b"ab" + bytes(5) + b"\x82"),
                {"f0": 5, "f1": "ab", "row_kind": "+I"},
            ),
            (
                frame(b"\3\2" + bytes(6) + le(5, 0) + bytes(8)),
                {"f0": 5, "f1": None, "row_kind": "-D"},
            ),
            (
                frame(HEAD + le(5, 0) + le(8, 24) + b"abcdefgh"),
                {"f0": 5, "f1": "abcdefgh", "row_kind": "+I"},
            ),
        ],
        [
            frame(b"\4" + HEAD[1:] + le(5, 0) + bytes(8)),  # No kind is 4.
            frame(HEAD + le(5, 0) + bytes(7)),  # A slot is cut off.
            frame(HEAD + le(5, 0) + b"abcdefg\x88"),  # A slot has no eight bytes.
            frame(HEAD + le(5, 0) + le(9, 24) + b"abcdefgh"),  # The size ends beyond the row.
            frame(HEAD + le(5, 0) + le(8, 25) + b"abcdefgh"),  # The place ends there.
            frame(HEAD + le(5, 0) + le(1, 24) + b"\xff"),  # This is no UTF-8.
            frame(HEAD + le(5, 0) + bytes(8), -1),
        ],
    ),
    "SQL ROW of two texts": (
        RowDataSerializer([SQL_TEXT, SQL_TEXT]),
        [
            (
                frame(HEAD + le(8, 24) + le(8, 24) + b"abcdefgh"),
                {"f0": "abcdefgh", "f1": "abcdefgh", "row_kind": "+I"},
            ),
        ],
        [frame(HEAD + le(32, 0) + le(1, 24))],  # They share bytes: 33 of 24.
    ),
    "SQL TIMESTAMP": (
        RowDataSerializer([parsed("TIMESTAMP(6)")]),
        [(frame(HEAD + le(0, 16) + bytes(8)), in_row(f0=EPOCH))],
        [frame(HEAD + le(0, 17) + bytes(8)), frame(HEAD + le(0, 16)), frame(HEAD + le(0, 24))],
    ),
    "SQL ARRAY": (
        ArrayDataSerializer(SQL_INT),
        [
            (frame(le(0, 0)), []),
            (frame(le(2, 0, 5, -1)), [5, -1]),
            (frame(le(2, 2, 5, 0)), [5, None]),
        ],
        [
            frame(le(-1, 0)),
            frame(le(3, 0, 5, -1)),
            frame(le(2**31 - 1, 0, 5, -1)),
            frame(le(0)[:3]),
        ],
    ),
    "SQL ARRAY of texts": (
        ArrayDataSerializer(SQL_TEXT),
        [
            (frame(le(1, 0) + b"ab" + bytes(5) + b"\x82"), ["ab"]),
            (frame(le(1, 0) + le(8, 16) + b"abcdefgh"), ["abcdefgh"]),
            (frame(le(1, 1) + le(8, 16) + b"abcdefgh"), [None]),
        ],
        [
            frame(le(1, 0) + b"abcdefg\x88"),
            frame(le(1, 0) + le(9, 16) + b"abcdefgh"),
            frame(le(1, 0) + le(8, 17) + b"abcdefgh"),
            frame(le(2, 0) + le(24, 0) + le(1, 0)),  # They share bytes: 25 of 24.
        ],
    ),
    "SQL MAP": (
        MapDataSerializer(SQL_INT, SQL_INT),
        [
            (frame(le(16) + le(1, 0, 5, 0) + le(1, 0, 6, 0)), [(5, 6)]),
            (frame(le(16) + le(1, 0, 5, 0) + le(1, 1, 0, 0)), [(5, None)]),
        ],
        [
            frame(le(16) + le(1, 1, 0, 0) + le(1, 0, 6, 0)),  # The key is null.
            frame(le(16) + le(1, 0, 5, 0) + le(2, 0, 6, 7)),  # The values are more.
            frame(le(16) + le(2, 0, 5, 6) + le(1, 0, 6, 7)),  # The keys are more.
            frame(le(16) + le(2, 0, 5, 5) + le(2, 0, 6, 7)),  # The key is there twice.
            frame(le(-1) + le(1, 0, 5, 0) + le(1, 0, 6, 0)),
            frame(le(33) + le(1, 0, 5, 0) + le(1, 0, 6, 0)),
            frame(le(0)[:3]),
        ],
    ),
}


@pytest.fixture(autouse=True)
def _nothing_is_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a reader of single values, where one stands within that of a column, raise."""

    def refuse(*_: Any) -> Any:
        raise ValueError("left to the reader of single values")

    monkeypatch.setattr(parts, "by_value", lambda *_: refuse)
    monkeypatch.setattr(readers, "by_value", lambda *_: refuse)


def read(serializer: Serializer, written: list[bytes]) -> list[Any]:
    reader = reader_of(serializer, is_key=False)
    assert reader is not None
    ends = np.cumsum([0, *map(len, written)])
    column, behind = reader(b"".join(written), ends[:-1])
    assert behind.tolist() == ends[1:].tolist()
    column.validate(full=True)
    values: list[Any] = column.to_pylist()
    return values


@pytest.mark.parametrize("name", CASES)
def test_what_is_read_and_what_is_left(name: str) -> None:
    """By itself, and between two values that are read."""
    serializer, good, odd = CASES[name]
    written, values = [data for data, _ in good], [value for _, value in good]
    assert read(serializer, written) == values
    assert read(serializer, written[::-1]) == values[::-1]
    for data, value in good:
        assert read(serializer, [data]) == [value]
    for data in odd:
        with pytest.raises((IndexError, ValueError)):
            read(serializer, [data])


@pytest.mark.parametrize("name", [name for name, (_, _, odd) in CASES.items() if odd])
def test_what_is_odd_between_others(name: str) -> None:
    """What is behind it does not make it whole: it is left too, or ends elsewhere."""
    serializer, good, odd = CASES[name]
    first = good[0][0]
    for data in odd:
        with pytest.raises((IndexError, ValueError, AssertionError)):
            read(serializer, [first, data, first])
        with pytest.raises((IndexError, ValueError)):
            read(serializer, [first, data])


@pytest.mark.parametrize("halves", ["d83dde00", "0061d83dde00", "d83dde000061", "de00d83d"])
def test_halves_of_a_pair_are_two_characters(halves: str) -> None:
    """They are one to who decodes both together, and there would be a character less."""
    data = bytes.fromhex(halves)
    read = reader_of(serializers.CHAR, is_key=False)
    assert read is not None
    with pytest.raises(ValueError, match=r"left to|utf-16"):
        read(data, np.arange(0, len(data), 2))


def test_rows_of_keys_are_of_one_kind() -> None:
    """Their column has none, as it is +I in all keys."""
    reader = reader_of(RowDataSerializer([SQL_INT]), is_key=True)
    assert reader is not None
    rows = [frame(bytes([kind]) + HEAD[1:] + le(5, 0)) for kind in range(4)]
    column, ends = reader(rows[0], np.array([0]))
    assert (column.to_pylist(), ends.tolist()) == ([{"f0": 5}], [len(rows[0])])
    for row in rows[1:]:
        with pytest.raises(ValueError, match="left to the reader of single values"):
            reader(row, np.array([0]))


STATES: dict[Any, tuple[list[tuple[bytes, Any]], list[bytes]]] = {
    INT: (
        [(i32(5), [5]), (i32(5) + b"," + i32(-1), [5, -1]), (b",,,,,,,,,", [0x2C2C2C2C] * 2)],
        [b"", i32(5) + b";" + i32(6), i32(5) + b",", i32(5)[:3], i32(5) + i32(6) + b","],
    ),
    STRING: (
        [(b"\2a", ["a"]), (b"\2a,\1,\2b", ["a", "", "b"]), (b"\2,", [","])],
        [b"\2a;\2b", b"\3a", b"\2a,", b"\2a\2b", b"\2a,\3b"],
    ),
    serializers.NullableSerializer(INT, 0): (
        [(b"\0" + i32(5), [5]), (b"\1", [None]), (b"\1,\0" + i32(5), [None, 5])],
        [b"\0" + i32(5)[:3], b"\0" + i32(5) + b"\1", b"\1,\0" + i32(5)[:1], b"\1,"],
    ),
}


@pytest.mark.parametrize("element", STATES, ids=str)
def test_elements_of_a_list_state(element: Serializer) -> None:
    """A comma is between two, and the last one ends where the list does; each has one at least."""
    reader = list_reader_of(StateDescriptor("s", "LIST", LONG, VOID_NAMESPACE, element))
    assert reader is not None

    def elements(written: list[bytes]) -> list[Any]:
        ends = np.cumsum([0, *map(len, written)])
        column = reader(b"".join(written), ends[:-1], ends[1:])
        column.validate(full=True)
        values: list[Any] = column.to_pylist()
        return values

    good, odd = STATES[element]
    assert elements([data for data, _ in good]) == [value for _, value in good]
    for data, value in good:
        assert elements([data]) == [value]
    for data in odd:
        for written in ([data], [good[0][0], data, *[good[0][0]] * 2]):
            with pytest.raises((IndexError, ValueError)):
                elements(written)


# --- what is written ------------------------------------------------------------------------


def fine(millis: int | None, nanos: int | None) -> dict[str, Any]:
    return in_row(f0={"millisecond": millis, "nano_of_millisecond": nanos})


PLAIN_ROW = serializers.RowSerializer([INT], has_row_kind=False)
LISTS = serializers.ListSerializer(LONG)
# Values that are written, and one that is left, of the serializer's column.
WRITTEN: dict[str, tuple[Serializer, list[Any], list[Any]]] = {
    "kinds of SQL rows": (
        RowDataSerializer([SQL_INT]),
        [in_row(f0=5), {"f0": 5, "row_kind": "-D"}],
        [{"f0": 5, "row_kind": None}, {"f0": 5, "row_kind": "+J"}, {"f0": 5, "row_kind": ""}],
    ),
    "kinds of rows": (
        ROW,
        [in_row(f0=5, f1="a"), {"f0": 5, "f1": None, "row_kind": "+U"}],
        [{"f0": 5, "f1": "a", "row_kind": None}, {"f0": 5, "f1": "a", "row_kind": "+J"}],
    ),
    "rows of no kind": (
        PLAIN_ROW,
        [in_row(f0=5), in_row(f0=None)],
        [{"f0": 5, "row_kind": kind} for kind in ("-U", "+U", "-D", None)],
    ),
    "constants": (
        serializers.EnumSerializer("a.E", ["A", "B"]),
        ["B", "A"],
        ["C", "", "a"],
    ),
    "nanoseconds": (
        RowDataSerializer([parsed("TIMESTAMP(9)")]),
        [fine(-1, 0), fine(LEAST, 999_999), in_row(f0=None)],
        [fine(None, 0), fine(0, None), fine(0, -1), fine(0, 1_000_000)],
    ),
    "milliseconds": (
        RowDataSerializer([parsed("TIMESTAMP(3)")]),
        [in_row(f0=EPOCH), in_row(f0=dt.datetime(1, 1, 2))],
        [in_row(f0=EPOCH.replace(microsecond=1)), in_row(f0=dt.datetime(1, 1, 1, 23, 59))],
    ),
    "tuples": (
        serializers.TupleSerializer([LONG, serializers.BYTES]),
        [{"f0": 5, "f1": b"a"}],
        [{"f0": None, "f1": b"a"}, {"f0": 5, "f1": None}],
    ),
    "elements": (LISTS, [[], [5, -5]], [[5, None], [None]]),
    "keys of maps": (
        serializers.MapSerializer(LONG, LONG),
        [[], [(5, None), (6, 7)]],
        [[(5, 6), (5, 7)], [(5, None), (6, 7), (5, None)]],
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_and_what_is_left(name: str) -> None:
    """By itself, and behind one that is written."""
    serializer, good, odd = WRITTEN[name]
    column, writer, write = column_of(serializer), column_writer(serializer), serializer.write
    assert column is not None
    assert writer is not None
    assert write is not None
    array = pa.array(good, column.data_type)
    assert writer.write(array).to_pylist() == [write(value) for value in column.restore(array)]
    for value in odd:
        for values in ([value], [good[0], value]):
            with pytest.raises(UnwrittenError):
                writer.write(pa.array(values, column.data_type))


@pytest.mark.parametrize("kind", ["VALUE", "MAP", "PRIORITY_QUEUE"])
@pytest.mark.parametrize("role", ["key", "namespace", "user_key", "value"])
def test_keys_of_which_the_job_reads_a_part_have_their_bytes(kind: str, role: str) -> None:
    """Timers have no value: behind a window that only the job reads nothing else tells the key."""
    of_the_job = PojoSerializer("a.B", ["id"], [INT])
    types = {"key": LONG, "namespace": VOID_NAMESPACE, "user_key": LONG, "value": LONG}
    key, namespace, user_key, value = (types | {role: of_the_job}).values()
    state = StateDescriptor(
        *("s", kind, key, namespace),
        None if kind == "PRIORITY_QUEUE" else value,
        user_key if kind == "MAP" else None,
    )
    of_key = ["key", "namespace", "user_key"][: 3 if kind == "MAP" else 2]
    assert ("key_bytes" in names_of(state)) is (role in of_key)


def test_rows_of_no_bytes_are_left() -> None:
    """A row without fields and kind has not even a mask."""
    serializer = serializers.RowSerializer([], has_row_kind=False)
    column, writer = column_of(serializer), column_writer(serializer)
    assert column is not None
    assert writer is not None
    with pytest.raises(UnwrittenError):
        writer.write(pa.array([in_row()], column.data_type))
