"""Columns of Arrow for serializers: values to them and back."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from support.bytes.column_values import VALUES
from support.inside import serializers
from support.inside.serializers import (
    CHAR,
    DOUBLE,
    INT,
    REGISTRY,
    STRING,
    AvroSerializer,
    BigDecSerializer,
    BigIntSerializer,
    BitmapSerializer,
    CharPrimitiveArraySerializer,
    DateSerializer,
    EitherSerializer,
    InstantSerializer,
    IntPrimitiveArraySerializer,
    KryoSerializer,
    ListSerializer,
    LocalDateSerializer,
    LocalDateTimeSerializer,
    LocalTimeSerializer,
    MapSerializer,
    OptionSerializer,
    PojoSerializer,
    PyFlinkSerializer,
    PythonTimeSerializer,
    RawValueDataSerializer,
    RowDataSerializer,
    SetSerializer,
    Simple,
    TimerSerializer,
    TrySerializer,
    TupleSerializer,
    UnionSerializer,
)

from keygroups import types
from keygroups.errors import InvalidValueError, KeyGroupsError
from keygroups.logical_types import parse_logical_type
from keygroups.savepoint.values import (
    Instant,
    LocalDate,
    LocalDateTime,
    Pojo,
    Row,
    Some,
    TimestampData,
)
from keygroups.state_keys import GLOBAL_WINDOW, Serializer, serializer_of

pa: Any = pytest.importorskip("pyarrow")

from support.inside.columns import (  # noqa: E402
    COLUMNS,
    TEXT,
    arrow_array,
    column_of,
    column_of_key_type,
    is_written,
    key_column_of,
    values,
)

EITHER, UNION = EitherSerializer(INT, INT), UnionSerializer(INT, INT)
TRY = TrySerializer(INT, KryoSerializer("java.lang.Throwable"))
ROW_OF_INT = serializer_of(types.ROW(types.INT))
# Texts or bytes; none is a state's.
OF_PYFLINK = (
    PyFlinkSerializer,
    serializers.DecimalTextSerializer,
    serializers.SqlDateKeySerializer,
    serializers.SqlTimeKeySerializer,
    serializers.SqlTimestampKeySerializer,
)
WITHOUT_COLUMN = {AvroSerializer, serializers.JavaSerializer, KryoSerializer, TimerSerializer}


def test_every_serializer_has_a_column() -> None:
    assert {*REGISTRY.values()} - {*COLUMNS} == WITHOUT_COLUMN
    # What a PyFlink job declares is in no snapshot.
    assert {*COLUMNS} - {*OF_PYFLINK} <= {*REGISTRY.values()}


def test_values_come_back() -> None:
    """As bytes that are the same again, or equal; some are text that Python prints."""
    texts = 0
    for serializer, _, cases in VALUES:
        column = column_of(serializer)
        if column is None:
            assert cases == []
            continue
        originals = [value for value, _ in cases]
        array = arrow_array(column.convert(originals), column.data_type)
        array.validate(full=True)
        restored = values("values", array, column)
        if column is TEXT:
            assert not is_written(serializer)
            texts += 1
            originals = [None if value is None else repr(value) for value in originals]
        for value, original in zip(restored, originals, strict=True):
            if value != original:  # two forms of one value
                value, original = map(serializer.encode, (value, original))
            assert value == original, serializer
    assert texts == 4


@pytest.mark.parametrize("key_type", [types.INSTANT, types.LIST(types.INSTANT)], ids=repr)
def test_moments_come_back_in_the_zone_of_single_values(key_type: types.KeyType) -> None:
    """PyArrow names its own zone, in which they are equal and do not print alike."""
    moment = dt.datetime(2026, 1, 2, tzinfo=dt.timezone.utc)
    value: Any = moment if key_type is types.INSTANT else [moment]
    column = column_of_key_type(key_type)
    array = arrow_array(column.convert([value, None]), column.data_type)
    assert repr(values("values", array, column)) == repr([value, None])


MOMENTS = [
    dt.datetime(1, 1, 1, tzinfo=dt.timezone.utc),
    dt.datetime(2026, 11, 1, 9, 30, tzinfo=dt.timezone.utc),  # one of two 01:30 of that day
    dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, dt.timezone.utc),
]
OF_MOMENTS: list[tuple[Serializer, Any]] = [
    (InstantSerializer(), lambda moment: moment),
    (serializers.SqlTimestampSerializer(), lambda moment: moment),
    (DateSerializer(), lambda moment: moment),
    (RowDataSerializer([parse_logical_type("TIMESTAMP_LTZ(6)")]), lambda moment: Row([moment])),
    (TupleSerializer([InstantSerializer()]), lambda moment: (moment,)),
    (ListSerializer(InstantSerializer()), lambda moment: [moment]),
    (MapSerializer(InstantSerializer(), InstantSerializer()), lambda moment: {moment: moment}),
    (PojoSerializer("a.B", ["at"], [InstantSerializer()]), lambda at: Pojo("a.B", {"at": at})),
]


def in_zone(data_type: Any, zone: str) -> Any:
    """Return a type whose timestamps are of another zone, as those of Spark are."""
    if pa.types.is_timestamp(data_type):
        return pa.timestamp("us", tz=data_type.tz and zone)
    if pa.types.is_map(data_type):
        return pa.map_(in_zone(data_type.key_type, zone), in_zone(data_type.item_type, zone))
    if pa.types.is_list(data_type):
        return pa.list_(pa.field("element", in_zone(data_type.value_type, zone)))
    if pa.types.is_struct(data_type):
        return pa.struct([(field.name, in_zone(field.type, zone)) for field in data_type])
    return data_type


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles", "Asia/Shanghai", "+05:30"])
@pytest.mark.parametrize("case", range(len(OF_MOMENTS)))
def test_moments_come_back_of_a_session_s_zone(case: int, zone: str) -> None:
    """Also those that are beyond Python's years in that zone, or are there twice."""
    serializer, value_of = OF_MOMENTS[case]
    moments = [*map(value_of, MOMENTS), None]
    column = column_of(serializer)
    assert column is not None
    array = arrow_array(column.convert(moments), in_zone(column.data_type, zone))
    assert zone in str(array.type)
    assert repr(values("values", array, column)) == repr(moments)


@pytest.mark.parametrize(
    ("key_type", "data_type"),
    [
        (types.TUPLE(types.STRING, types.INT), "struct<f0: string, f1: int32>"),
        (types.ROW(types.LONG), "struct<f0: int64>"),
        (types.LIST(types.SHORT), "list<element: int16>"),
        (types.SET(types.STRING), "list<element: string>"),
        (types.MAP(types.INT, types.BIG_DEC), "map<int32, decimal128(10, 0)>"),
        (types.SQL_ROW("BIGINT", "DECIMAL(38, 10)"), "struct<f0: int64, f1: decimal128(38, 10)>"),
        (types.INSTANT, "timestamp[us, tz=UTC]"),
        (types.LOCAL_DATE_TIME, "timestamp[us]"),
    ],
)
def test_columns_of_key_types(key_type: types.KeyType, data_type: str) -> None:
    assert str(column_of_key_type(key_type).data_type).startswith(data_type)


@pytest.mark.parametrize(
    ("serializer", "data_type"),
    [
        (EITHER, "struct<is_left: bool, left: int32, right: int32>"),
        (UNION, "struct<input: int32, value_1: int32, value_2: int32>"),
        (TRY, "struct<value: int32, java_class: string, data: binary>"),
    ],
)
def test_columns_of_branches(serializer: Any, data_type: str) -> None:
    """Which a user names in `value.left`."""
    column = column_of(serializer)
    assert str(column and column.data_type) == data_type


def test_a_serializer_of_the_users_own_has_the_column_of_its_key_type() -> None:
    class Own(Simple):
        name, size, key_type = "OWN", 4, types.INT

        @staticmethod
        def read(data: bytes, pos: int) -> tuple[int, int]:
            return 5, pos + 4

    assert column_of(Own()) is column_of(INT)


def test_what_is_written() -> None:
    assert is_written(TupleSerializer([INT, STRING]))
    assert not is_written(TupleSerializer([INT, KryoSerializer("java.util.List")]))


def test_values_that_do_not_fit() -> None:
    with pytest.raises(InvalidValueError, match="a value is none of int8: "):
        arrow_array([300], pa.int8())
    maps = pa.list_(pa.struct([("m", pa.map_(pa.int64(), pa.string()))]))
    nested = [[({1: "a"},), (None,), ({},), None], None, []]
    assert arrow_array(nested, maps).to_pylist() == [
        [{"m": [(1, "a")]}, {"m": None}, {"m": []}, None],
        None,
        [],
    ]
    beside = pa.struct([("n", pa.int64()), ("m", pa.map_(pa.int64(), pa.string()))])
    assert arrow_array([(5, {1: "a"})], beside).to_pylist() == [{"n": 5, "m": [(1, "a")]}]


@pytest.mark.parametrize(
    ("serializer", "data_type", "units"),
    [(PythonTimeSerializer(), pa.int32(), 1_000), (LocalTimeSerializer(), pa.int64(), 10**9)],
)
def test_numbers_of_a_day_are_times(serializer: Serializer, data_type: Any, units: int) -> None:
    """And those of no day are themselves, which a serializer may take or refuse."""
    day = 86_400 * units
    numbers = pa.array([-1, 0, 3_599 * units, 3_600 * units, day - units, day], data_type)
    column = column_of(serializer)
    assert column is not None
    assert values("v", numbers, column) == [
        -1,
        *(dt.time(0), dt.time(0, 59, 59), dt.time(1), dt.time(23, 59, 59)),
        day,
    ]


def test_what_python_has_not_is_refused() -> None:
    text = pa.array([b"\xff"]).view(pa.string())
    column = column_of(STRING)
    assert column is not None
    with pytest.raises(InvalidValueError, match=r"^v must be UTF-8, got b'\\xff'$"):
        values("v", text, column)
    dates = column_of(LocalDateSerializer())
    assert dates is not None
    # The day after 9999-12-31, in days since 1970.
    with pytest.raises(
        InvalidValueError, match=r"^v must be of the years 1 to 9999, got another$"
    ):
        values("v", pa.array([2_932_897], pa.int32()).cast(pa.date32()), dates)


@pytest.mark.parametrize(
    ("serializer", "value", "message"),
    [
        (STRING, "a\ud800", r"'a\\ud800' has half of a surrogate pair"),
        (CHAR, "\udfff", "half of a surrogate pair"),
        (ListSerializer(STRING), ["\udc00"], "half of a surrogate pair"),
        (
            RowDataSerializer([parse_logical_type("DATE")]),
            Row((2**31 - 1,)),
            "2147483647 is nothing that",
        ),
        (
            RowDataSerializer([parse_logical_type("TIMESTAMP(6)")]),
            Row((TimestampData(2**62, 0),)),
            "is nothing that a column holds unchanged",
        ),
        (MapSerializer(STRING, INT), {None: 1}, "a map has the key null"),
        (MapSerializer(DOUBLE, INT), [(0.0, 1), (-0.0, 2)], "is nothing that"),
        (PojoSerializer("a.B", ["id"], [INT]), b"\x04", "is nothing that"),
        (PojoSerializer("a.B", ["id"], [INT]), Pojo("a.C", {"id": 1}), "is nothing that"),
        (INT, True, "True is nothing that"),
        (LocalDateSerializer(), LocalDate(10_000, 1, 1), "is nothing that"),
        (InstantSerializer(), Instant(0, 1), r"Instant\(epoch_second=0, nano=1\) is nothing that"),
        (DateSerializer(), 2**62, "is nothing that"),
        (LocalDateTimeSerializer(), LocalDateTime(1, 1, 1, 0, 0, 0, 1), "is nothing that"),
        (OptionSerializer(STRING), Some(None), r"Some\(value=None\) is nothing that"),
        (
            MapSerializer(SetSerializer(INT), INT),
            {frozenset({1}): 1},
            r"\{frozenset\(\{1\}\): 1\} is nothing that",
        ),
        (RawValueDataSerializer(KryoSerializer("a.B")), "text", "is nothing that"),
    ],
)
def test_what_no_column_holds_is_refused(serializer: Serializer, value: Any, message: str) -> None:
    column = column_of(serializer)
    assert column is not None
    with pytest.raises(InvalidValueError, match=message):
        column.convert([None, value])


@pytest.mark.parametrize(
    ("serializer", "good", "bad"),
    [
        (MapSerializer(STRING, INT), {"a": 1}, {"b": 2, None: 1}),
        (ListSerializer(MapSerializer(STRING, INT)), [{"a": 1}, {}], [{"a": 1}, {None: 1}]),
        (PojoSerializer("a.B", ["id"], [INT]), Pojo("a.B", {"id": 1}), Pojo("a.C", {"id": 1})),
        (OptionSerializer(STRING), Some("a"), Some(None)),
        (INT, 1, True),
        (STRING, "a", "\ud800"),
    ],
    ids=lambda case: str(case)[:20],
)
def test_one_value_among_others_is_refused(serializer: Serializer, good: Any, bad: Any) -> None:
    column = column_of(serializer)
    assert column is not None
    assert len(column.convert([good, None, good])) == 3
    for some in ([good, bad], [bad, good], [good, None, bad, good]):
        with pytest.raises(InvalidValueError):
            column.convert(some)


@pytest.mark.parametrize("half", [0xD800, 0xDBFF, 0xDC00, 0xDFFF])
def test_the_text_with_half_of_a_pair_is_told(half: int) -> None:
    """Not those before it: there are characters before the surrogates and behind them."""
    column = column_of(STRING)
    assert column is not None
    for before in (["a", "\ud7ff\ue000\U0001f600"], ["a", None, "\uffff"]):
        with pytest.raises(InvalidValueError, match=rf"^'b\\u{half:x}' has half of"):
            column.convert([*before, f"b{chr(half)}", "\ud900"])


def test_rows_have_a_field_of_their_kind() -> None:
    column = column_of(ROW_OF_INT)
    assert column is not None
    assert str(column.data_type) == "struct<f0: int32, row_kind: string>"


@pytest.mark.parametrize("value", [Row((1,)), Pojo("a.B", {"id": 1})], ids=["row", "pojo"])
def test_a_value_is_not_what_is_of_another_class(value: Any) -> None:
    assert (value == 1) is False
    assert (value != 1) is True


def test_keys_of_flink_sql_have_no_kind() -> None:
    """Nor have rows in them: all are of kind +I, and another is refused."""
    types = [parse_logical_type("BIGINT"), parse_logical_type("ARRAY<ROW<INT>>")]
    column = key_column_of(RowDataSerializer(types))
    assert column is not None
    assert str(column.data_type) == "struct<f0: int64, f1: list<element: struct<f0: int32>>>"
    key = Row((1, [Row((2,)), None]))
    assert column.convert([key, None]) == [(1, [(2,), None]), None]
    for other in (Row((1, None), "-U"), Row((1, [Row((2,), "+U")]))):
        with pytest.raises(InvalidValueError, match="is nothing that a column holds"):
            column.convert([key, other])


def struct(**fields: Any) -> Any:
    return pa.array([fields])


@pytest.mark.parametrize(
    ("serializer", "array", "message"),
    [
        (BigDecSerializer(), ["1.50", "+1"], r"text as its toString\(\) writes it, got '\+1'"),
        (BigDecSerializer(), ["NaN"], "got 'NaN'"),
        (BigDecSerializer(), ["x"], "got 'x'"),
        (BigDecSerializer(), ["-0"], "got '-0'"),
        (BigIntSerializer(), ["1.0"], "a BigInteger must be digits alone, got '1.0'"),
        (BigIntSerializer(), ["1E+3"], "a BigInteger must be digits alone"),
        (GLOBAL_WINDOW, ["all"], "a GlobalWindow must be its name, got 'all'"),
        (IntPrimitiveArraySerializer(), [[1, None]], r"of type 'i', got \[1, None\]"),
        (CharPrimitiveArraySerializer(), [[65_536]], r"of type 'H', got \[65536\]"),
        (
            EITHER,
            struct(is_left=True, left=1, right=2),
            "a left or a right value, as is_left",
        ),
        (EITHER, struct(is_left=None, left=1, right=None), r"got \(None, 1, None\)"),
        (UNION, struct(input=3, value_1=1, value_2=None), "the value of its input, 1 or 2"),
        (UNION, struct(input=2, value_1=1, value_2=None), r"got \(2, 1, None\)"),
        (TRY, struct(value=1, java_class="a.B", data=b""), "a value, or both java_class and data"),
        (TRY, struct(value=None, java_class="a.B", data=None), r"got \(None, 'a.B', None\)"),
        (ROW_OF_INT, struct(f0=1, row_kind=None), "row_kind must be"),
        (BitmapSerializer(), [b"x"], "data must be a bitmap"),
    ],
)
def test_what_stands_for_no_value_is_refused(
    serializer: Serializer, array: Any, message: str
) -> None:
    column = column_of(serializer)
    assert column is not None
    sent = array if isinstance(array, pa.Array) else pa.array(array)
    with pytest.raises(KeyGroupsError, match=f"^value.*{message}"):
        values("value of state 'v'", sent, column)
