"""Arrays that are taken as keys: of every layout and library, each hashed as the core does."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy
import pyarrow
import pytest
from support.inside.values import instant_code
from support.keys.arrow_keys import masked, one_by_one

import keygroups
from keygroups import (
    InvalidValueError,
    KeyGroupsError,
    arrays,
)
from keygroups.arrays._rows import bytes_of
from keygroups.types import (
    BOOLEAN,
    CASE_CLASS,
    DOUBLE,
    FLOAT,
    INT,
    LIST,
    LOCAL_DATE,
    LONG,
    OBJECTS_HASH,
    PYFLINK,
    ROW,
    SQL_ROW,
    SQL_TIMESTAMP,
    STRING,
    TUPLE,
)

np: Any = numpy  # whose stubs know less of dtypes than is asked here
pa: Any = pyarrow

NUMBERS = [7, 1, 2**31 - 1]


@pytest.mark.parametrize(
    "array",
    [
        np.array(NUMBERS, ">i8"),
        np.array(NUMBERS, "u4"),
        np.repeat(np.array(NUMBERS), 2)[::2],
        np.array(NUMBERS[::-1], "i4")[::-1],
        np.array([NUMBERS, NUMBERS]).T[:, 0],
        pa.array([0, *NUMBERS])[1:],
        pa.array(NUMBERS).dictionary_encode(),
        pa.RunEndEncodedArray.from_arrays([1, 2, 3], NUMBERS),
        pa.chunked_array([[7], [], [1, 2**31 - 1]]),
        np.ma.MaskedArray(NUMBERS, mask=[False] * 3),
    ],
    ids=lambda array: type(array).__name__,
)
def test_numbers_hash_alike_in_every_layout(array: Any) -> None:
    for key_type in (None, INT, LONG, PYFLINK(INT)):
        assert arrays.hash_code(array, key_type).tolist() == one_by_one(NUMBERS, key_type)
    assert arrays.hash_code([array], TUPLE(LONG)).tolist() == one_by_one(
        [(n,) for n in NUMBERS], None
    )


TEXTS = ["", "A", "\U0001f600 caf\u00e9", "hello, hello, hello"]


class Exported:
    """Another library's array, of which only the protocol is known."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self.array.__arrow_c_array__(requested_schema)


class Streamed:
    """Another library's chunks, of which only the protocol is known."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self.array.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "array",
    [
        np.array(TEXTS),
        np.array(TEXTS, dtype=object),
        *([np.array(TEXTS, dtype=np.dtypes.StringDType())] if hasattr(np, "strings") else []),
        pa.array(["x", *TEXTS], pa.large_string())[1:],
        *([pa.array(TEXTS, pa.string_view())] if hasattr(pa, "string_view") else []),
        pa.array(TEXTS * 2).dictionary_encode()[4:],
        pa.chunked_array([TEXTS[:2], TEXTS[2:]]),
        Exported(pa.array(TEXTS)),
        Streamed(pa.chunked_array([TEXTS[:1], TEXTS[1:]])),
    ],
    ids=lambda array: type(array).__name__,
)
def test_texts_hash_alike_in_every_layout(array: Any) -> None:
    for key_type in (None, STRING, PYFLINK(STRING)):
        assert arrays.hash_code(array, key_type).tolist() == one_by_one(TEXTS, key_type or STRING)
    rows = [(text, text) for text in TEXTS]
    assert arrays.hash_code([array, array]).tolist() == one_by_one(rows, None)
    sql = SQL_ROW("STRING", "VARCHAR(20)")
    assert arrays.hash_code((array, array), sql).tolist() == one_by_one(rows, sql)


def test_views_within_structs_and_lists() -> None:
    """As Polars hands out text; PyArrow up to 23 cannot tell how many bytes they have."""
    views = pa.array(TEXTS, pa.string_view())
    rows = pa.StructArray.from_arrays([views], ["name"])
    pairs = pa.ListArray.from_arrays(pa.array([0, 2, 4], pa.int32()), views)
    tuples = [(text,) for text in TEXTS]
    for key, values in (
        (pa.table({"name": views}), tuples),
        (rows, tuples),
        (rows.slice(1), tuples[1:]),
        (pa.chunked_array([rows, rows]), tuples * 2),
        (pairs, [TEXTS[:2], TEXTS[2:]]),
        (views.slice(2), TEXTS[2:]),
    ):
        assert arrays.hash_code(key).tolist() == one_by_one(values, None)


def test_bytes_where_pyarrow_cannot_tell_them() -> None:
    class Views:
        @property
        def nbytes(self) -> int:
            raise pa.ArrowTypeError("Extracting byte ranges not supported for type string_view")

        def get_total_buffer_size(self) -> int:
            return 62

    assert bytes_of(Views()) == 62
    assert bytes_of(pa.array([1, 2])) == 16


def test_series_and_frames_of_polars_are_keys() -> None:
    pl = pytest.importorskip("polars", reason="Polars is not installed")
    frame = pl.DataFrame({"name": TEXTS, "id": [1, 2, 3, None]})
    assert arrays.hash_code(frame["name"]).tolist() == one_by_one(TEXTS, STRING)
    assert arrays.hash_code(frame).tolist() == one_by_one(list(zip(TEXTS, [1, 2, 3, None])), None)
    categories = frame["name"].cast(pl.Categorical)
    assert arrays.hash_code(categories).tolist() == one_by_one(TEXTS, STRING)
    with pytest.raises(InvalidValueError, match="key 3: assigned key must not be null"):
        arrays.hash_code(frame["id"])


def test_series_and_frames_of_pandas_are_keys() -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    for dtype in (object, "string", "category", "string[pyarrow]"):
        series = pd.Series([None, *TEXTS], dtype=dtype)
        found = masked(series, STRING)
        assert found.mask.tolist() == [True] + [False] * 4
        assert found.compressed().tolist() == one_by_one(TEXTS, STRING)
    holes = pd.Series([*TEXTS, float("nan"), pd.NA], dtype=object)
    assert masked(holes).count() == 4
    ids = pd.Series([5, None], dtype="Int64")
    assert masked(ids, LONG).tolist() == [5, None]
    frame = pd.DataFrame({"name": ["a", "b"], "id": [5, 6]}, index=[7, 7])
    assert arrays.hash_code(frame).tolist() == one_by_one([("a", 5), ("b", 6)], None)
    times = pd.Series(pd.to_datetime(["2020-01-01 10:00", None], utc=True))
    instant = dt.datetime(2020, 1, 1, 10, tzinfo=dt.timezone.utc)
    for zone in ("UTC", "Asia/Tokyo"):
        found = masked(times.dt.tz_convert(zone))
        assert found.tolist() == [keygroups.hash_code(instant), None]
    naive = times.dt.tz_localize(None)
    want = keygroups.hash_code(instant.replace(tzinfo=None))
    assert masked(naive).tolist() == [want, None]
    assert arrays.hash_code(pd.Series([0.5])).tolist() == one_by_one([0.5], None)
    with pytest.raises(InvalidValueError, match="NaN, which may stand for a missing"):
        arrays.hash_code(pd.Series([0.5, None]))
    nan = pd.arrays.FloatingArray(np.array([np.nan, 1]), np.array([False, True]))
    assert masked(pd.Series(nan)).tolist() == [
        keygroups.hash_code(float("nan")),
        None,
    ]
    for key_type, values in ((LONG, [7, None, 5]), (DOUBLE, [0.5, 2.0]), (BOOLEAN, [True])):
        found = masked(pd.Series(values, dtype="category"), key_type).tolist()
        assert found == [v if v is None else keygroups.hash_code(v, key_type) for v in values]
    # Arrow would give both one scale, which the hash code of a BigDecimal counts.
    decimals = pd.Series([Decimal("1.5"), Decimal("2.25")])
    for odd in (
        *(decimals, decimals.astype("category"), pd.Series([dt.date(2020, 1, 1)])),
        *(pd.Series([pd.Period("2020")]), pd.Series([1, 2], dtype="Sparse[int]")),
    ):
        with pytest.raises(KeyGroupsError):
            arrays.hash_code(odd)


@pytest.mark.parametrize(
    ("keys", "key_types"),
    [
        (["", "a\0b", "a\0", "\U0001f600", "caf\u00e9"], (None, STRING)),
        ([0, 7, 2**31 - 1, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63)], (None, LONG)),
        ([-1, -(2**31)], (LONG, INT)),
        ([True, False], (None, BOOLEAN)),
        ([0.0, -0.0, float("nan"), float("-inf"), 5e-324], (None, DOUBLE)),
        ([dt.date(1, 1, 1), dt.date(9999, 12, 31)], (None, LOCAL_DATE)),
    ],
)
def test_lists_of_values_are_keys(keys: list[Any], key_types: tuple[Any, ...]) -> None:
    for key_type in key_types:
        assert arrays.hash_code(keys, key_type).tolist() == one_by_one(keys, key_type)


def test_lists_of_values_are_no_columns() -> None:
    assert arrays.hash_code([np.array(["a", "b"])]).tolist() == one_by_one([("a",), ("b",)], None)
    assert arrays.compute_key_group_for_key_hash([7, -1], 128).tolist() == [
        keygroups.compute_key_group_for_key_hash(code, 128) for code in (7, -1)
    ]
    assert arrays.key_group_load(["A", "B", "A"], 128).weights[104] == 2


def test_an_index_of_pandas_is_an_array() -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    for index, keys in (
        (pd.Index(TEXTS), TEXTS),
        (pd.Index(TEXTS, dtype="category"), TEXTS),
        (pd.RangeIndex(5, 9, 2, name="id"), [5, 7]),
        (pd.Index([5, 7], dtype="Int64"), [5, 7]),
        (pd.DatetimeIndex(["2020-01-01 10:00"]), [dt.datetime(2020, 1, 1, 10)]),
        (pd.DataFrame({"n": [1, 1]}, index=["a", "b"]).index, ["a", "b"]),
        (pd.MultiIndex.from_arrays([["a", "b"], [5, 6]], names=["x", "x"]), [("a", 5), ("b", 6)]),
    ):
        assert arrays.hash_code(index).tolist() == one_by_one(keys, None)
    with pytest.raises(KeyGroupsError):
        arrays.hash_code(pd.PeriodIndex(["2020"], freq="Y"))


def test_tables_and_structs_are_keys_of_fields() -> None:
    rows = [(1, "a"), (2, None), (None, "c")]
    columns = {"id": [1, 2, None], "name": ["a", None, "c"]}
    for key in (
        pa.table(columns),
        pa.record_batch(columns),
        pa.table(columns).to_struct_array(),
        [pa.array(column) for column in columns.values()],
    ):
        assert arrays.hash_code(key).tolist() == one_by_one(rows, None)
        sql = SQL_ROW("BIGINT", "STRING")
        assert arrays.hash_code(key, sql).tolist() == one_by_one(rows, sql)
    structs = pa.array([{"id": 1}, None], pa.struct([("id", pa.int64())]))
    assert masked(structs, TUPLE(LONG)).tolist() == [
        keygroups.hash_code((1,)),
        None,
    ]
    assert arrays.hash_code(structs, PYFLINK(TUPLE(LONG))).tolist()[1] == 31
    nested = pa.StructArray.from_arrays([structs], names=["s"])
    assert arrays.hash_code(nested).tolist() == one_by_one([((1,),), (None,)], TUPLE(TUPLE(LONG)))
    deepest: Any = np.array(["A"])
    for _ in range(50):
        deepest = [deepest]
    assert arrays.hash_code(deepest).tolist() == [ord("A")]  # a tuple of one field keeps it
    with pytest.raises(keygroups.InvalidValueError, match="key must nest at most 50 deep"):
        arrays.hash_code([deepest])
    empty = pa.array([{}, {}], pa.struct([]))
    for key_type in (TUPLE(), ROW(), SQL_ROW()):
        assert arrays.hash_code(empty, key_type).tolist() == one_by_one([(), ()], key_type)


def test_chunks_beyond_offsets_of_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keygroups.arrays._inputs._MOST_BYTES", 1)
    for chunks in ([TEXTS, TEXTS], [NUMBERS, NUMBERS]):
        array = pa.chunked_array(chunks)
        assert arrays.hash_code(array).tolist() == one_by_one(chunks[0] * 2, None)
    binaries = [pa.chunked_array([[b"a"], [b"bc"]])]
    found = arrays.hash_code(binaries, SQL_ROW("VARBINARY(2)")).tolist()
    assert found == one_by_one([(b"a",), (b"bc",)], SQL_ROW("VARBINARY(2)"))


@pytest.mark.parametrize("name", ["decimal32", "decimal64", "decimal128", "decimal256"])
def test_decimals_of_every_width_hash_alike(name: str) -> None:
    if not hasattr(pa, name):
        pytest.skip(f"this PyArrow has no {name}")
    values = [Decimal("-1.50"), Decimal("0.00"), Decimal("12345.67")]
    array = pa.array(values, getattr(pa, name)(7, 2))
    assert arrays.hash_code(array).tolist() == one_by_one(values, None)
    sql = SQL_ROW("DECIMAL(9, 3)", "DECIMAL(38, 2)")
    rows = [(value, value) for value in values]
    assert arrays.hash_code([array, array], sql).tolist() == one_by_one(rows, sql)


def test_decimals_hash_as_the_core_has_them() -> None:
    """A magnitude of eight words, and one whose lower words are 0, so that the sign goes on."""
    for name, numbers in (
        ("decimal128", [-(2**64), -(2**96), 2**64, 10**38 - 1, 1 - 10**38]),
        ("decimal256", [-(2**64), -(2**128), -(2**192), 2**251, -(2**251), 10**76 - 1]),
    ):
        digits = 38 if name == "decimal128" else 76
        values = [
            Decimal((number < 0, tuple(map(int, str(abs(number)))), -2)) for number in numbers
        ]
        array = pa.array(values, getattr(pa, name)(digits, 2))
        assert arrays.hash_code(array).tolist() == one_by_one(values, None)


def test_lists_hash_in_every_layout_and_without_elements() -> None:
    values = [[1, None, 3], [], None, [4]]
    present = [value for value in values if value is not None]
    for arrow_type in (pa.list_(pa.int32()), pa.large_list(pa.int64())):
        array = pa.array([[9], *values], arrow_type)[1:]
        found = masked(array)
        assert found.compressed().tolist() == one_by_one(present, LIST(LONG))
        want = one_by_one(values, PYFLINK(LIST(LONG)))
        assert arrays.hash_code(array, PYFLINK(LIST(LONG))).tolist() == want
    pairs = pa.array([[1, 2], [3, 4]], pa.list_(pa.int64(), 2))
    assert arrays.hash_code(pairs, LIST(INT)).tolist() == one_by_one([[1, 2], [3, 4]], LIST(INT))
    nothing = pa.array([None, []], pa.list_(pa.null()))
    assert masked(nothing).tolist() == [None, 1]
    assert arrays.hash_code(pa.nulls(2), PYFLINK(LIST(INT))).tolist() == [31, 31]


def test_nested_sql_fields_hash_alike_in_every_layout() -> None:
    of_two = pa.array([[1, None], [None, 2], None], pa.list_(pa.int32(), 2))
    rows: list[Any] = [([1, None],), ([None, 2],), (None,)]
    key_type = SQL_ROW("ARRAY<INT>")
    assert arrays.hash_code([of_two], key_type).tolist() == one_by_one(rows, key_type)
    mask = pa.array([True, False])
    # What is behind a null is not looked at.
    of_null = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), [300, 301, 5], mask=mask)
    struct_of_null = pa.StructArray.from_arrays([pa.array([300, 5])], names=["n"], mask=mask)
    key_type = SQL_ROW("ARRAY<TINYINT>", "ROW<TINYINT>")
    rows = [(None, None), ([5], (5,))]
    columns = [of_null, struct_of_null]
    assert arrays.hash_code(columns, key_type).tolist() == one_by_one(rows, key_type)
    nothing = pa.nulls(2)
    assert arrays.hash_code([nothing, nothing], key_type).tolist() == one_by_one(
        [(None, None)] * 2, key_type
    )
    long = [(["x" * 3_000, "y"], 1), ([], 2), (["z"] * 3_000, 3)]
    key_type = SQL_ROW("ARRAY<STRING>", "INT")
    lists, numbers = zip(*long)
    found = arrays.hash_code([pa.array(lists), pa.array(numbers)], key_type)
    assert found.tolist() == one_by_one(long, key_type)


def test_nanoseconds_count() -> None:
    """Java has them; by hand, as Python has not."""
    array = np.array([1_000_000_001, -1], "M8[ns]")
    zoned = pa.array([1_000_000_001, -1], pa.timestamp("ns", "UTC"))
    assert arrays.hash_code(zoned).tolist() == [52, instant_code(-1, 999_999_999)]
    epoch = keygroups.hash_code(dt.date(1970, 1, 1)) ^ 1_000_000_001
    assert arrays.hash_code(array).tolist()[0] == epoch
    assert arrays.hash_code([zoned], SQL_ROW("TIMESTAMP_LTZ(9)")).size == 2


def test_sql_timestamps_are_instants() -> None:
    key_type = SQL_TIMESTAMP("Europe/Berlin")
    local = dt.datetime(2024, 6, 1, 12, 30, 0, 123_456)
    instants = pa.array([local.replace(tzinfo=key_type.zone)], pa.timestamp("us", "UTC"))
    assert arrays.hash_code(instants, key_type).tolist() == one_by_one([local], key_type)


def test_an_array_has_one_nan() -> None:
    nans = np.array([0x7FF8000000000000, 0x7FF0000000000001, 0xFFF8000000000000], "u8").view("f8")
    singles = np.array([0x7FC00000, 0x7F800001, 0xFFC00000], "u4").view("f4")
    for values, name in ((nans, "DOUBLE"), (singles, "FLOAT")):
        key_type = SQL_ROW(f"ARRAY<{name}>")
        lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), pa.array(values))
        assert set(arrays.hash_code([lists], key_type).tolist()) == {
            keygroups.hash_code(([float("nan")],), key_type)
        }


def test_nan_of_a_single_keeps_its_bits_in_a_row() -> None:
    bits = np.array([0x7F800001, 0xFFC00000, 0x7FC00000], "u4")
    found = arrays.hash_code([bits.view("f4")], SQL_ROW("FLOAT")).tolist()
    assert len(set(found)) == 3
    nans = bits[1:].view("f4").astype("f8")
    assert arrays.hash_code([nans], SQL_ROW("FLOAT")).tolist() == found[1:]
    assert arrays.hash_code(nans, FLOAT).tolist() == [0x7FC00000] * 2


@pytest.mark.parametrize("start", [-(2**31), -1, 0, 1, 2**31 - 1])
def test_starts_of_a_hash_of_objects(start: int) -> None:
    key_type = OBJECTS_HASH(INT, start=start)
    assert arrays.hash_code([np.array([7, -7])], key_type).tolist() == [
        keygroups.hash_code((value,), key_type) for value in (7, -7)
    ]


def test_a_product_without_fields_has_no_column() -> None:
    key_type = CASE_CLASS("a.B", scala="2.13")
    rows = pa.array([{}, {}], pa.struct([]))
    assert arrays.hash_code(rows, key_type).tolist() == [keygroups.hash_code((), key_type)] * 2
    with pytest.raises(InvalidValueError, match="must be 0 columns, got 1"):
        arrays.hash_code([np.array([7])], key_type)
