"""Whole columns of compound values as bytes, against the serializers that write one by one.

Flink's bytes are what the serializers are held to.
"""

from __future__ import annotations

import random
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from support.bytes.real_savepoints import ROW_KINDS
from support.inside import serializers
from support.inside.serializers import (
    SQL_STRING,
    ArrayDataSerializer,
    LocalTimeSerializer,
    MapDataSerializer,
    Member,
    NullSerializer,
    PojoSerializer,
    RowDataSerializer,
    UnknownSerializer,
    checked_write,
)

from keygroups import KeyGroupsError
from keygroups.logical_types import LogicalType, parse_logical_type
from keygroups.savepoint import Serializer
from keygroups.state_keys import BYTES, serializer_of
from keygroups.types import (
    BOOLEAN,
    BYTE,
    DOUBLE,
    FLOAT,
    INSTANT,
    INT,
    LOCAL_DATE,
    LONG,
    SHORT,
    SQL_ROW,
    STRING,
)

pa: Any = pytest.importorskip("pyarrow")

from support.inside.columns import (  # noqa: E402
    UnwrittenError,
    column_of,
    column_of_key_type,
    column_writer,
)

from keygroups.savepoint._columns.binary_writers import map_items  # noqa: E402

SCALARS = [
    *map(serializer_of, (BOOLEAN, BYTE, SHORT, INT, LONG, FLOAT, DOUBLE, STRING)),
    *map(serializer_of, (LOCAL_DATE, INSTANT)),
    *(BYTES, SQL_STRING, serializers.BigDecSerializer(), LocalTimeSerializer()),
    serializers.EnumSerializer("a.Color", ["RED", "GREEN", "\u00e9"]),
]
LOGICAL = [
    *map(
        parse_logical_type,
        (
            *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING"),
            *("CHAR(3)", "BYTES", "DATE", "TIME", "DECIMAL(10, 2)", "DECIMAL(18, 0)"),
            *("DECIMAL(19, 3)", "DECIMAL(38, 10)", "TIMESTAMP(3)", "TIMESTAMP(6)"),
            *("TIMESTAMP(9)", "TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(6)", "BIGINT NOT NULL"),
        ),
    ),
    LogicalType("RAW"),
    LogicalType("INTERVAL_YEAR_MONTH"),
    LogicalType("INTERVAL_DAY_TIME"),
]


SEEDS = range(25)
EXACT = Context(38, Emin=MIN_EMIN, Emax=MAX_EMAX)
ROUNDED = Context(60)


def logical_type(rng: random.Random, depth: int) -> LogicalType:
    name = rng.choice(["ROW", "ARRAY", "MAP", "MULTISET"]) if rng.random() < depth / 6 else ""
    if not name:
        return rng.choice(LOGICAL)
    count = {"ROW": rng.choice([0, 1, 3, 9, 60]), "MAP": 2}.get(name, 1)
    return LogicalType(name, fields=tuple(logical_type(rng, depth - 1) for _ in range(count)))


def sql_serializer(rng: random.Random) -> Serializer:
    field, other = (logical_type(rng, 2) for _ in range(2))
    if rng.random() < 0.7:
        count = rng.choice([0, 1, 3, 9, 60])
        return RowDataSerializer([logical_type(rng, 2) for _ in range(count)])
    return rng.choice([ArrayDataSerializer(field), MapDataSerializer(field, other)])


def pojo_of(parts: list[Serializer]) -> PojoSerializer:
    return PojoSerializer("a.Pojo", [f"field{n}" for n in range(len(parts))], parts)


def serializer_of_java(rng: random.Random, depth: int = 3) -> Serializer:
    if rng.random() > depth / 3:
        return rng.choice(SCALARS) if rng.random() < 0.8 else sql_serializer(rng)
    some = [serializer_of_java(rng, depth - 1) for _ in range(rng.choice([1, 2, 9]))]
    makes: list[Any] = [
        lambda: pojo_of(some if rng.random() < 0.9 else []),
        lambda: serializers.TupleSerializer(some),
        lambda: serializers.RowSerializer(some, rng.random() < 0.7),
        lambda: serializers.NullableSerializer(some[0], rng.choice([0, 8])),
        lambda: serializers.ListSerializer(some[0]),
        lambda: serializers.MapSerializer(some[0], some[-1]),
        lambda: serializers.SetSerializer(some[0]),
        lambda: serializers.GenericArraySerializer("a.B", some[0]),
    ]
    made: Serializer = rng.choice(makes)()
    return made


TEXTS = ["", "a", "seven77", "eight888", "\u00e9", "\U0001f600", "x" * 130]
ODD_TEXTS = [*TEXTS, "1.5", "-7", "RED", "GREEN"]
MICROS = [0, -1, 1_700_000_000_123_456, 1_700_000_000_123_000, -(2**55) + 3, 2**62, -(2**63)]


def value_of(rng: random.Random, data_type: Any, odd: float, name: str = "") -> Any:
    """Return a value of a type of Arrow, of its ends; with the chance `odd` a null or wrong."""
    types, is_odd = pa.types, rng.random() < odd
    if name == "row_kind":
        return rng.choice([None, "+J"]) if is_odd else rng.choice(["+I", "+I", *ROW_KINDS])
    if name != "key" and rng.random() < 0.2:
        return None
    if types.is_struct(data_type):
        return {field.name: value_of(rng, field.type, odd, field.name) for field in data_type}
    if types.is_map(data_type):
        items = (data_type.key_type, "key"), (data_type.item_type, "")
        return [
            tuple(value_of(rng, item, odd, role) for item, role in items)
            for _ in range(rng.choice([0, 1, 2, 3]))
        ]
    if types.is_list(data_type):
        count = rng.choice([0, 1, 3, 3, 3, 34])
        return [value_of(rng, data_type.value_type, odd) for _ in range(count)]
    return scalar_of(rng, data_type, is_odd)


def scalar_of(rng: random.Random, data_type: Any, is_odd: bool) -> Any:
    types = pa.types
    if types.is_integer(data_type):
        most = 2 ** (data_type.bit_width - 1)
        return rng.choice([0, 1, -1, most - 1, -most, rng.randrange(-most, most), 999_999 % most])
    if types.is_floating(data_type):
        return rng.choice([0.0, -0.0, 1.5, float("nan"), float("-inf"), 2.0**-149])
    if types.is_boolean(data_type):
        return rng.random() < 0.5
    if types.is_string(data_type):
        return rng.choice(ODD_TEXTS)
    if types.is_binary(data_type):
        return rng.choice([b"", b"\xff", b"seven77", b"eight888", bytes(130)])
    if types.is_decimal(data_type):
        limit = 10**data_type.precision - 1
        powers = [limit, *(2 ** rng.randrange(128) - rng.randrange(2) for _ in range(9))]
        number = rng.choice([n for n in (0, 10, *powers) if n <= limit])
        return EXACT.scaleb(Decimal(rng.choice([number, -number])), -data_type.scale)
    if types.is_date32(data_type):
        return 2_932_897 if is_odd else rng.choice([0, -1, 19_782, 2_932_896, -719_162])
    return rng.choice(MICROS) if is_odd else rng.choice(MICROS[3:5]) // 1000 * 1000


def column(rng: random.Random, serializer: Serializer, odd: float) -> Any:
    made = column_of(serializer)
    assert made is not None
    values = [value_of(rng, made.data_type, odd, "key") for _ in range(rng.choice([0, 1, 5]))]
    return pa.array(values, made.data_type)


def written_one_by_one(serializer: Serializer, array: Any) -> list[bytes] | None:
    """Return the bytes of each value, None where one is refused."""
    made = column_of(serializer)
    assert made is not None
    try:
        return [checked_write("value", serializer, value) for value in made.restore(array)]
    except (KeyGroupsError, OverflowError, UnicodeDecodeError):
        return None


def is_written(serializer: Serializer, array: Any) -> bool:
    """Check that the bytes are the serializer's, or left to it; return whether there are any."""
    writer = column_writer(serializer)
    if writer is None:
        return False
    try:
        ours = writer.write(array).to_pylist()
    except UnwrittenError:
        return False
    assert ours == written_one_by_one(serializer, array)
    return True


@pytest.mark.branch
@pytest.mark.long
@pytest.mark.parametrize("odd", [0.0, 0.02])
@pytest.mark.parametrize("is_sql", [True, False], ids=["SQL", "Java"])
def test_bytes_of_columns(is_sql: bool, odd: float) -> None:
    """Those of random serializers and values are what is written one by one, or none."""
    written = 0
    for seed in SEEDS:
        rng = random.Random(seed)
        serializer = sql_serializer(rng) if is_sql else serializer_of_java(rng)
        array = column(rng, serializer, odd)
        written += is_written(serializer, array)
        written += is_written(serializer, array.slice(1))
    assert written > len(SEEDS) // 4


@pytest.mark.parametrize(
    ("fields", "rows"),
    [
        (["BIGINT", "STRING"], [(1, "a"), (-(2**63), "\u00e9" * 9), (7, None)]),
        (["ROW<a INT, b ROW<c STRING>>", "INT"], [((5, ("long enough",)), 1), (None, 2)]),
        (["ARRAY<ROW<a INT>>"], [([(1,), None],)]),
    ],
)
def test_rows_of_a_key_type(fields: list[str], rows: list[Any]) -> None:
    """Their column has no row_kind, nor have rows within: it is +I in keys, and in such values."""
    key_type = SQL_ROW(*fields)
    column = column_of_key_type(key_type)
    array = pa.array(rows, column.data_type)
    writer, serializer = column_writer(key_type), serializer_of(key_type)
    assert writer is not None
    values = column.restore(array)
    assert writer.write(array).to_pylist() == [
        checked_write("value", serializer, value) for value in values
    ]
    assert "row_kind" not in str(array.type)


def test_other_nans_are_left_to_the_serializer() -> None:
    """Python may turn the bits of a NaN into others."""
    floats = pa.array([0x7FC00001], pa.uint32()).view(pa.float32())
    serializer = RowDataSerializer([LogicalType("FLOAT")])
    rows = pa.StructArray.from_arrays([floats, pa.array(["+I"])], ["f0", "row_kind"])
    writer = column_writer(serializer)
    assert writer is not None
    with pytest.raises(UnwrittenError):
        writer.write(rows)


@pytest.mark.parametrize(
    ("field", "most"), [("DECIMAL(10, 2)", 2**63), ("DECIMAL(20, 0)", 10**20)], ids=str
)
def test_decimals_of_more_digits_are_refused(field: str, most: int) -> None:
    """Arrow holds more digits than its type says; Flink and the serializer do not."""
    logical = parse_logical_type(field)
    serializer = RowDataSerializer([logical])
    writer = column_writer(serializer)
    assert writer is not None
    kinds = pa.array(["+I"])
    for number, is_fit in ((most - 1, True), (-most, False), (most, False)):
        halves = number.to_bytes(16, "little", signed=True)
        item = pa.decimal128(logical.precision, logical.scale)
        decimals = pa.Array.from_buffers(item, 1, [None, pa.py_buffer(halves)])
        rows = pa.StructArray.from_arrays([decimals, kinds], ["f0", "row_kind"])
        is_fit = is_fit or (number == -most and field == "DECIMAL(10, 2)")
        assert is_written(serializer, rows) is is_fit


@pytest.mark.parametrize("field", ["DECIMAL(10, 3)", "DECIMAL(10, 1)", "DECIMAL(30, 3)"])
@pytest.mark.parametrize("item", [pa.decimal128(18, 2), pa.decimal128(38, 10)], ids=str)
def test_decimals_of_another_scale(field: str, item: Any) -> None:
    """As a column of a DataFrame may have them: the numbers stay, or it is the serializer's."""
    element = parse_logical_type(field)
    lists, row = ArrayDataSerializer(element), RowDataSerializer([element])
    unit = Decimal((0, (1,), -(element.scale or 0)))
    for number in map(Decimal, ("1.50", "-1.50", "0", "-0.25", "9999999.90", "12345678901234.5")):
        decimals = pa.array(
            [number.quantize(Decimal((0, (1,), -item.scale)), context=EXACT)], item
        )
        rows = pa.StructArray.from_arrays([decimals, pa.array(["+I"])], ["f0", "row_kind"])
        is_kept = number == number.quantize(unit, context=ROUNDED)
        for serializer, array in (
            (row, rows),
            (lists, pa.ListArray.from_arrays([0, 1], decimals)),
        ):
            assert is_written(serializer, array) is is_kept
            if is_kept:
                writer = column_writer(serializer)
                assert writer is not None
                [found] = serializer.decode(writer.write(array)[0].as_py())
                assert found == number
                assert found.same_quantum(unit)


def test_a_key_that_a_map_has_twice() -> None:
    """A dict has each once, so that the columns leave such a map to what refuses it."""
    maps = pa.array([[("a", 1), ("b", 2)], [("a", 1), ("a", 2)]], pa.map_("string", "int64"))
    writer = column_writer(serializers.MapSerializer(serializer_of(STRING), serializer_of(LONG)))
    assert writer is not None
    writer.write(maps.slice(0, 1))
    with pytest.raises(UnwrittenError):
        writer.write(maps)


def test_null_keys_of_maps_are_refused() -> None:
    """PyArrow makes none, and another library may."""
    keys = pa.array([1, None])
    with pytest.raises(UnwrittenError):
        map_items(SimpleNamespace(offsets=pa.array([0, 2]), keys=keys, items=keys))


VARIANT = LogicalType("VARIANT")
INT_TYPE = LogicalType("INT")


@pytest.mark.parametrize(
    "serializer",
    [
        RowDataSerializer([VARIANT]),
        ArrayDataSerializer(VARIANT),
        MapDataSerializer(INT_TYPE, VARIANT),
        RowDataSerializer([LogicalType("ARRAY", fields=(VARIANT,))]),
        PojoSerializer("a.B", registered=[Member("a.C", None, serializer_of(INT))]),
        serializers.EnumSerializer("a.B", ["X", "X"]),
        serializers.EnumSerializer("a.B", ["\ud800"]),
        serializers.TupleSerializer([NullSerializer()]),
        serializers.TupleSerializer([UnknownSerializer("a.B")]),
        serializers.MapSerializer(pojo_of([]), serializer_of(INT)),
        UnknownSerializer("a.B"),
    ],
    ids=str,
)
def test_serializers_without_a_writer(serializer: Serializer) -> None:
    assert column_writer(serializer) is None


def test_a_part_without_a_writer_is_written_one_by_one() -> None:
    """A LocalTime is in bytes 1, 1, 1, 4, and the numbers beside it are written as a column."""
    pair = serializers.TupleSerializer([LocalTimeSerializer(), serializer_of(INT)])
    made, writer = column_of(pair), column_writer(pair)
    assert made is not None
    assert writer is not None
    rows = pa.array([{"f0": 3_661 * 10**9 + 5, "f1": 7}], made.data_type)
    assert writer.write(rows).to_pylist() == [bytes([1, 1, 1, 0, 0, 0, 5, 0, 0, 0, 7])]
