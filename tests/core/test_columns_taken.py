"""Columns are written and read as columns, each type in each place: nothing is left to one by one.

What falls back to single values is as right, many times slower, and seen by no other test.
"""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from typing import Any

import pytest

pa: Any = pytest.importorskip("pyarrow")
np: Any = pytest.importorskip("numpy")

from support.inside import serializers  # noqa: E402
from support.inside.columns import (  # noqa: E402
    byte_arrays,
    column_of,
    column_writer,
    numbers,
    parts,
    reader_of,
    readers,
    skips,
    sql,
)
from support.inside.serializers import (  # noqa: E402
    ArrayDataSerializer,
    MapDataSerializer,
    PojoSerializer,
    RowDataSerializer,
)

from keygroups.logical_types import LogicalType, parse_logical_type  # noqa: E402
from keygroups.savepoint import Row, Serializer  # noqa: E402
from keygroups.state_keys import BYTES, serializer_of  # noqa: E402
from keygroups.types import (  # noqa: E402
    BOOLEAN,
    BYTE,
    DOUBLE,
    FLOAT,
    INSTANT,
    INT,
    LOCAL_DATE,
    LOCAL_DATE_TIME,
    LONG,
    SHORT,
    STRING,
)

DAYS = [dt.date(1970, 1, 1), dt.date(1, 1, 2), dt.date(9999, 12, 30)]
NTZ = [dt.datetime(1970, 1, 1), dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30)]
UTC = [moment.replace(tzinfo=dt.timezone.utc) for moment in NTZ]
MILLI, MICRO = dt.timedelta(milliseconds=1), dt.timedelta(microseconds=1)
TEXTS = ["", "a", "1234567", "12345678", "\u00e9" * 3, "\u00e9" * 9, "\U0001f600", "x" * 17]
OCTETS = [b"", b"\0", b"\xff" * 7, b"\xff" * 8, bytes(9), bytes(16)]


def ends(bits: int) -> list[int]:
    return [0, 1, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))]


def decimals(precision: int, scale: int) -> list[Decimal]:
    numbers = [0, 1, -1, 10**precision - 1, 1 - 10**precision]
    return [Decimal((number < 0, tuple(map(int, str(abs(number)))), -scale)) for number in numbers]


def fine(millis: int, nanos: int) -> dict[str, int]:
    return {"millisecond": millis, "nano_of_millisecond": nanos}


OF_SQL: dict[str, list[Any]] = {
    "BOOLEAN": [True, False],
    "TINYINT": ends(8),
    "SMALLINT": ends(16),
    "INT": ends(32),
    "BIGINT": ends(64),
    "FLOAT": [0.0, 1.5, -1.5, float("inf"), 2.0**-149],
    "DOUBLE": [0.0, 1.5, -1.5, float("-inf"), 5e-324],
    "STRING": TEXTS,
    "CHAR(3)": ["abc", "\u00e9bc"],
    "BYTES": OCTETS,
    "BINARY(8)": [b"12345678"],
    "DATE": DAYS,
    "TIME": [0, 86_399_999],
    "DECIMAL(10, 2)": decimals(10, 2),
    "DECIMAL(18, 0)": decimals(18, 0),
    "DECIMAL(19, 3)": decimals(19, 3),
    "DECIMAL(38, 10)": decimals(38, 10),
    "TIMESTAMP(0)": NTZ,
    "TIMESTAMP(3)": [*NTZ, NTZ[0] - MILLI],
    "TIMESTAMP(4)": [*NTZ, NTZ[0] - MICRO],
    "TIMESTAMP(6)": [*NTZ, NTZ[0] - MICRO],
    "TIMESTAMP(7)": [fine(0, 0), fine(-1, 999_999), fine(2**63 - 1, 1)],
    "TIMESTAMP(9)": [fine(0, 0), fine(-1, 999_999), fine(-(2**63), 1)],
    "TIMESTAMP_LTZ(3)": [*UTC, UTC[0] - MILLI],
    "TIMESTAMP_LTZ(6)": [*UTC, UTC[0] - MICRO],
    "ROW<a INT, b STRING>": [
        {"a": 1, "b": None, "row_kind": "+I"},
        {"a": None, "b": "x" * 9, "row_kind": "-D"},
    ],
    "ARRAY<SMALLINT>": [[], [1, None, -1], [7] * 33],
}
TYPES = {
    **{text: (parse_logical_type(text), values) for text, values in OF_SQL.items()},
    "RAW": (LogicalType("RAW"), OCTETS),
    "MAP": (
        LogicalType("MAP", fields=(LogicalType("INT"), parse_logical_type("STRING"))),
        [[], [(1, "x"), (-1, None)], [(0, "y" * 9)]],
    ),
    "MULTISET": (
        LogicalType("MULTISET", fields=(parse_logical_type("STRING"),)),
        [[], [("x", 1), ("y" * 9, 2)]],
    ),
    "INTERVAL_YEAR_MONTH": (LogicalType("INTERVAL_YEAR_MONTH"), ends(32)),
    "INTERVAL_DAY_TIME": (LogicalType("INTERVAL_DAY_TIME"), ends(64)),
}


@pytest.fixture(autouse=True)
def _nothing_is_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each of the doors to readers of single values raise what no reader catches."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("values are read one by one")

    monkeypatch.setattr(readers, "by_value", refuse)
    monkeypatch.setattr(sql, "_by_value", refuse)
    monkeypatch.setattr(parts, "by_value", lambda *_: refuse)


def assert_taken(serializer: Serializer, values: list[Any]) -> None:
    """Assert that a column is written, and read again, as the serializer does it one by one."""
    column = column_of(serializer)
    assert column is not None
    array = pa.array(values, column.data_type)
    write, writer = serializer.write, column_writer(serializer)
    read = reader_of(serializer, is_key=False)
    assert write is not None
    assert writer is not None
    assert read is not None
    written = [write(value) for value in column.restore(array)]
    assert byte_arrays.assembled(writer.all_pieces(array)).to_pylist() == written
    places = np.cumsum([0, *map(len, written)])
    again, behind = read(b"".join(written), places[:-1])
    assert np.array_equal(behind, places[1:])
    again.validate(full=True)
    assert again.equals(array), (again, array)


def with_nulls(values: list[Any]) -> list[Any]:
    return [None, *values, None, values[0]]


@pytest.mark.parametrize("name", TYPES)
def test_types_of_sql_in_each_place(name: str) -> None:
    """A field, alone and behind eight others; an element; a value and a key of a map."""
    field, values = TYPES[name]
    kinds = ["+I", "-U", "+U", "-D"] * 9
    for serializer, place in (
        (RowDataSerializer([field]), 0),
        (RowDataSerializer([*[parse_logical_type("STRING")] * 8, field]), 8),
    ):
        for some in (values, with_nulls(values), [None]):
            texts = {f"f{number}": "x" * number for number in range(place)}
            rows = [
                {**texts, f"f{place}": value, "row_kind": kind} for value, kind in zip(some, kinds)
            ]
            assert_taken(serializer, rows)
    array = ArrayDataSerializer(field)
    assert_taken(array, [values, [], values[:1]])
    assert_taken(array, [with_nulls(values), [None] * 33, []])
    assert_taken(array, [[], []])
    of_values = MapDataSerializer(parse_logical_type("INT"), field)
    assert_taken(of_values, [[*enumerate(values)], [], [*enumerate(with_nulls(values))]])
    if not isinstance(values[0], (dict, list)):
        of_keys = MapDataSerializer(field, parse_logical_type("INT"))
        assert_taken(of_keys, [[(value, 1) for value in values], [], [(values[-1], None)]])


OF_JAVA: dict[str, tuple[Serializer, list[Any]]] = {
    "BOOLEAN": (serializer_of(BOOLEAN), [True, False]),
    "BYTE": (serializer_of(BYTE), ends(8)),
    "SHORT": (serializer_of(SHORT), ends(16)),
    "INT": (serializer_of(INT), ends(32)),
    "LONG": (serializer_of(LONG), ends(64)),
    "FLOAT": (serializer_of(FLOAT), [0.0, -1.5, float("inf")]),
    "DOUBLE": (serializer_of(DOUBLE), [0.0, -1.5, float("inf")]),
    "STRING": (serializer_of(STRING), [*TEXTS, "x" * 126, "x" * 127, "\u00e9" * 127]),
    "BYTES": (BYTES, OCTETS),
    "SQL_STRING": (serializers.SQL_STRING, TEXTS),
    "LOCAL_DATE": (serializer_of(LOCAL_DATE), DAYS),
    "LOCAL_DATE_TIME": (serializer_of(LOCAL_DATE_TIME), [*NTZ, NTZ[0] - MICRO]),
    "INSTANT": (serializer_of(INSTANT), [*UTC, UTC[0] - MICRO]),
    "SQL_TIMESTAMP": (serializers.SqlTimestampSerializer(), [*UTC, UTC[0] - MICRO]),
    "DATE": (serializers.DateSerializer(), [*UTC, UTC[0] - MILLI]),
    "SQL_DATE": (serializers.SqlDateSerializer(), [*UTC, UTC[0] - MILLI]),
    "SQL_TIME": (serializers.SqlTimeSerializer(), [*UTC, UTC[0] - MILLI]),
    "ENUM": (serializers.EnumSerializer("a.B", ["A", "B", "\u00e9"]), ["\u00e9", "A", "B"]),
}


@pytest.mark.parametrize("name", OF_JAVA)
def test_serializers_of_java_in_each_place(name: str) -> None:
    part, values = OF_JAVA[name]
    nulls = with_nulls(values)
    assert_taken(part, values)
    two = [part, serializer_of(LONG)]
    assert_taken(
        serializers.TupleSerializer(two),
        [{"f0": value, "f1": place} for place, value in enumerate(values)],
    )
    assert_taken(
        PojoSerializer("a.B", ["a", "b"], two),
        [{"a": value, "b": place % 3 or None} for place, value in enumerate(nulls)],
    )
    for has_kind, kinds in ((True, ["-D", "+U", "-U", "+I"]), (False, ["+I"])):
        rows = serializers.RowSerializer([*two, *[serializer_of(SHORT)] * 7], has_kind)
        shorts = {f"f{number}": None if number % 2 else number for number in range(2, 9)}
        assert_taken(
            rows,
            [
                {
                    **{"f0": value, "f1": place % 3 or None, **shorts},
                    "row_kind": kinds[place % len(kinds)],
                }
                for place, value in enumerate(nulls)
            ],
        )
    for padding in (0, 8):
        nullable = serializers.NullableSerializer(part, padding)
        assert_taken(nullable, nulls)
        assert_taken(nullable, values)
    for cls in (serializers.ListSerializer, serializers.ArrayListSerializer):
        assert_taken(cls(part), [values, [], values[:1]])
    assert_taken(serializers.GenericArraySerializer("a.B", part), [nulls, [], values])
    of_values = serializers.MapSerializer(serializer_of(INT), part)
    assert_taken(of_values, [[*enumerate(nulls)], [], [*enumerate(values)]])
    if part.key_type is not None:  # Java's own equals has to be that of the bytes.
        of_keys = serializers.MapSerializer(part, serializer_of(INT))
        assert_taken(of_keys, [[(value, 1) for value in values], [], [(values[-1], None)]])


OF_PRIMITIVES: dict[str, list[Any]] = {
    "Boolean": [True, False],
    "Char": [0, 1, 0xFFFF],
    "Short": ends(16),
    "Int": ends(32),
    "Long": ends(64),
    "Float": [0.0, -1.5, float("inf"), 2.0**-149],
    "Double": [0.0, -1.5, float("inf"), 5e-324],
}


@pytest.mark.parametrize("name", OF_PRIMITIVES)
def test_arrays_of_primitives(name: str) -> None:
    """They are read as columns, and written one by one."""
    values = OF_PRIMITIVES[name]
    serializer = getattr(serializers, f"{name}PrimitiveArraySerializer")()
    rows = [values, [], values[:1], values * 17]
    column, write = column_of(serializer), serializer.write
    read = reader_of(serializer, is_key=False)
    assert column is not None
    assert write is not None
    assert read is not None
    array = pa.array(rows, column.data_type)
    written = [write(value) for value in column.restore(array)]
    places = np.cumsum([0, *map(len, written)])
    again, behind = read(b"".join(written), places[:-1])
    assert np.array_equal(behind, places[1:])
    assert again.equals(array)


@pytest.mark.parametrize("shift", [0, 1, 3])
def test_numbers_are_decoded_where_they_lie_together(
    shift: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In lists and arrays of all numbers, unless an element is null."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("numbers are decoded by their places")

    monkeypatch.setattr(numbers.Numbers, "at", refuse)
    for name in ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE"):
        field, values = TYPES[name]
        array = ArrayDataSerializer(field)
        assert_taken(array, [values[:1]] * shift + [values * 17, [], values])
        with pytest.raises(AssertionError, match="by their places"):
            assert_taken(array, [values, [*values, None]])
    for name in ("BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE"):
        part, values = OF_JAVA[name]
        listed = serializers.ListSerializer(part)
        assert_taken(listed, [values[:1]] * shift + [values * 17, [], values])


@pytest.mark.parametrize(
    ("count", "has_kind"),
    [
        *((count, True) for count in (0, 1, 5, 6, 7, 8, 9, 13, 14, 15)),
        *((count, False) for count in (1, 7, 8, 9, 15, 16, 17)),
    ],
)
def test_masks_of_rows(count: int, has_kind: bool) -> None:
    """Two bits are the kind's, if it is there, and one is each field's; no byte is there more."""
    serializer = serializers.RowSerializer([serializer_of(BYTE)] * count, has_kind)
    names = [f"f{number}" for number in range(count)]
    for nulls in (set(), set(range(count)), {0, count - 1}, set(range(0, count, 2))):
        fields = {name: None if place in nulls else place for place, name in enumerate(names)}
        assert_taken(serializer, [{**fields, "row_kind": "-D" if has_kind else "+I"}])
        assert serializer.write is not None
        row = Row([*fields.values()], "-D" if has_kind else "+I")
        written = serializer.write(row)
        size = (2 * has_kind + count + 7) // 8
        assert len(written) == size + sum(value is not None for value in fields.values())
        assert skips.skip_of(serializer)(written + b"\1", 0) == len(written)


# --- where columns end ----------------------------------------------------------------------


def big(number: int) -> bytes:
    """Return the bytes of a BigInteger: a code of 4 and the length, or of 0, 1 and 10 alone."""
    if number in (0, 1, 10):
        return struct.pack(">i", 1 + (0, 1, 10).index(number))
    digits = shortest(number)
    return struct.pack(">i", len(digits) + 4) + digits


def shortest(number: int) -> bytes:
    """Return BigInteger.toByteArray: the fewest bytes of two's complement."""
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)


def read_alone(serializer: Serializer, data: bytes) -> Any:
    read = reader_of(serializer, is_key=False)
    assert read is not None
    column, behind = read(data, np.array([0]))
    assert behind.tolist() == [len(data)]
    return column.to_pylist()[0]


WIDTHS = [
    sign * (1 << bits) + more for bits in range(7, 126, 8) for sign in (1, -1) for more in (-1, 0)
]
MOST = 10**38 - 1  # A decimal of Arrow has 38 digits.


def test_big_integers_that_a_column_has() -> None:
    """Those of up to 38 digits, whatever their width; the others are read one by one."""
    serializer = serializers.BigIntSerializer()
    for number in (0, 1, 10, 2, 9, 11, -1, -10, *WIDTHS, MOST, -MOST, 2**64, -(2**64)):
        assert read_alone(serializer, big(number)) == str(number)
    assert read_alone(serializer, bytes(4)) is None
    for number in (MOST + 1, -MOST - 1, 2**127, -(2**127), 2**130):
        with pytest.raises(AssertionError, match="one by one"):
            read_alone(serializer, big(number))
    for code in (4, -1, 5):  # no length, a negative one, and one of more than there is
        with pytest.raises(AssertionError, match="one by one"):
            read_alone(serializer, struct.pack(">i", code))


def test_big_decimals_that_a_column_has() -> None:
    """Those of the scales 0 to 38."""
    serializer = serializers.BigDecSerializer()
    for scale, text in ((0, "-12"), (1, "-1.2"), (38, "-1.2E-37")):
        read = read_alone(serializer, big(-12) + struct.pack(">i", scale))
        assert Decimal(read) == Decimal(text)
        assert Decimal(read).as_tuple().exponent == -scale
    assert read_alone(serializer, bytes(4)) is None
    for scale in (-1, 39):
        with pytest.raises(AssertionError, match="one by one"):
            read_alone(serializer, big(-12) + struct.pack(">i", scale))


@pytest.mark.parametrize("precision", [1, 10, 18, 19, 20, 37, 38])
def test_decimals_of_sql_that_a_column_has(precision: int) -> None:
    """As many digits as the type has, and no more; of 19 digits on they are 1 to 16 bytes."""
    serializer = RowDataSerializer([parse_logical_type(f"DECIMAL({precision}, 0)")])
    limit = 10**precision

    def row(number: int) -> bytes:
        if precision <= 18:
            data = bytes(8) + struct.pack("<q", number)
        else:
            digits = shortest(number)
            data = bytes(8) + struct.pack("<II", len(digits), 16) + digits.ljust(16, b"\0")
        return struct.pack(">i", len(data)) + data

    for number in (0, 1, -1, limit - 1, 1 - limit, limit >> 1, -limit >> 1):
        read = read_alone(serializer, row(number))
        assert read == {"f0": Decimal(number), "row_kind": "+I"}
    for number in (limit, -limit, limit + 1, -limit - 1):
        with pytest.raises(ValueError, match="left to the reader of single values"):
            read_alone(serializer, row(number))
    if precision > 18:
        for size in (0, 17):
            data = bytes(8) + struct.pack("<II", size, 16) + bytes(24)
            with pytest.raises(ValueError, match="left to the reader of single values"):
                read_alone(serializer, struct.pack(">i", len(data)) + data)
