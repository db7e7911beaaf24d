"""Keys as whole arrays: the same as the core says for each, or refused."""

from __future__ import annotations

import datetime as dt
import importlib
import random
import sys
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import java_values
import numpy
import pyarrow
import pyflink_values
import pytest
import sql_values
from arrow_keys import NoArrowTypeError, in_arrow
from golden import lines, read
from hypothesis import given, settings
from hypothesis import strategies as st
from key_encoding import decode_key, decode_key_type

import keygroups
from keygroups import (
    AmbiguousKeyTypeError,
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    ParallelismError,
    UnsupportedKeyTypeError,
    arrays,
)
from keygroups._values.java_time import instant_code
from keygroups.arrays._rows import bytes_of
from keygroups.types import (
    BIG_DEC,
    BIG_INT,
    BOOLEAN,
    BYTE,
    CHAR,
    DOUBLE,
    FLOAT,
    INSTANT,
    INT,
    LIST,
    LOCAL_DATE,
    LOCAL_DATE_TIME,
    LOCAL_TIME,
    LONG,
    NULL,
    PYFLINK,
    ROW,
    SHORT,
    SQL_DATE,
    SQL_ROW,
    SQL_TIME,
    SQL_TIMESTAMP,
    STRING,
    TUPLE,
    UUID,
    JavaSqlType,
    KeyType,
)

np: Any = numpy  # whose stubs know less of dtypes than is asked here
pa: Any = pyarrow

Vector = tuple[KeyType, Any, int, dict[int, int]]


def own_vectors() -> Iterator[Vector]:
    header, found = read("keys")
    for line in found:
        key_type = decode_key_type(line["type"])
        key_groups = dict(zip(header["max_parallelisms"], line["key_groups"]))
        yield key_type, decode_key(key_type, line["key"]), line["hash"], key_groups


def independent_vectors() -> Iterator[Vector]:
    for line in lines("independent/keys"):
        try:
            key_type, key = java_values.decode(line["type"], line["value"])
        except (java_values.NoKeyTypeError, java_values.BeyondPythonError):
            continue
        yield key_type, key, line["hash"], {int(mp): kg for mp, kg in line["kg"].items()}


def sql_vectors() -> Iterator[Vector]:
    for line in lines("independent/binaryrow"):
        key_type = SQL_ROW(*(sql_values.SCHEMA.get(text, text) for text in line["schema"]))
        try:
            key = tuple(map(sql_values.python, key_type.fields, line["values"]))
        except sql_values.BeyondPythonError:
            continue
        yield key_type, key, line["hash"], {int(mp): kg for mp, kg in line["kg"].items()}


def pyflink_vectors() -> Iterator[Vector]:
    for line in lines("independent/pyflink"):
        value = line["value"]
        if line["key_type"] is None:
            continue
        if value["t"] == "Instant":
            if value["v"]["nanos"] % 1000:  # more than a datetime holds
                continue
            seconds, micros = int(value["v"]["seconds"]), value["v"]["nanos"] // 1000
            epoch = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
            key: Any = epoch + dt.timedelta(seconds=seconds, microseconds=micros)
        else:
            key = pyflink_values.decode(value)
        key_type = PYFLINK(pyflink_values.TYPES[line["key_type"]])
        yield key_type, key, line["hash"], {int(mp): kg for mp, kg in line["kg"].items()}


def check(vectors: Iterator[Vector]) -> Counter[str]:
    """Check vectors in arrays, one for each key type and Arrow type, and count them."""
    groups: dict[tuple[KeyType, Any], list[tuple[Any, int, dict[int, int]]]] = defaultdict(list)
    counts: Counter[str] = Counter()
    for key_type, key, code, key_groups in vectors:
        try:
            arrow_type, value = in_arrow(key_type, key)
        except NoArrowTypeError:
            counts["no Arrow type"] += 1
            continue
        groups[key_type, arrow_type].append((value, code, key_groups))
    for (key_type, arrow_type), found in groups.items():
        array = pa.array([value for value, _, _ in found], arrow_type)
        assert arrays.hash_code(array, key_type).tolist() == [code for _, code, _ in found], (
            key_type
        )
        for mp in set().union(*(key_groups for _, _, key_groups in found)):
            computed = arrays.assign_to_key_group(array, mp, key_type).tolist()
            for group, (_, _, key_groups) in zip(computed, found):
                assert key_groups.get(mp, group) == group
        counts["checked"] += len(found)
        counts["arrays"] += 1
    return counts


@pytest.mark.parametrize(
    ("vectors", "least"),
    [
        (own_vectors, 2000),
        (independent_vectors, 4000),
        (sql_vectors, 1300),
        (pyflink_vectors, 640),
    ],
)
def test_vectors(vectors: Any, least: int) -> None:
    counts = check(vectors())
    print(vectors.__name__, dict(counts))
    assert counts["checked"] >= least


# --- against the core, value by value ----------------------------------------------------------


def masked(key: Any, key_type: KeyType | None = None) -> Any:
    return arrays.hash_code(key, key_type, nulls="mask")


def one_by_one(values: list[Any], key_type: KeyType | None) -> list[int]:
    return [keygroups.hash_code(value, key_type) for value in values]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=90)
SCALARS: dict[Any, tuple[Any, st.SearchStrategy[Any]]] = {
    BOOLEAN: (pa.bool_(), st.booleans()),
    BYTE: (pa.int64(), st.integers(-128, 127)),
    SHORT: (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    INT: (pa.int64(), st.integers(-(2**31), 2**31 - 1)),
    LONG: (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    FLOAT: (pa.float64(), st.floats(width=32)),
    DOUBLE: (pa.float64(), st.floats()),
    STRING: (pa.string(), TEXT),
    UUID: (pa.string(), st.uuids()),
    BIG_DEC: (pa.decimal128(20, 3), st.decimals(-(10**16), 10**16, places=3)),
    LOCAL_DATE: (pa.date32(), st.dates()),
    LOCAL_TIME: (pa.time64("ns"), st.times()),
    LOCAL_DATE_TIME: (pa.timestamp("us"), st.datetimes()),
    INSTANT: (
        pa.timestamp("us", "Asia/Kolkata"),
        st.datetimes(dt.datetime(1, 1, 3), timezones=st.just(dt.timezone.utc)),
    ),
    SQL_DATE("UTC"): (pa.date32(), st.dates(dt.date(1582, 10, 15))),
    SQL_DATE("Europe/Berlin"): (pa.date32(), st.dates(dt.date(1970, 1, 1), dt.date(2036, 12, 31))),
}
SQL: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "BOOLEAN": SCALARS[BOOLEAN],
    "TINYINT": SCALARS[BYTE],
    "SMALLINT": SCALARS[SHORT],
    "INT": SCALARS[INT],
    "BIGINT": SCALARS[LONG],
    "FLOAT": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "FLOAT NULL": (pa.float64(), st.floats(width=32, allow_nan=False)),
    "DOUBLE": (pa.float64(), st.floats(allow_nan=False)),
    "STRING": (pa.string(), TEXT),
    "CHAR(90)": (pa.large_string(), TEXT),
    "BYTES": (pa.binary(), st.binary(max_size=40)),
    "DECIMAL(18, 3)": (pa.decimal128(20, 2), st.decimals(-(10**14), 10**14, places=2)),
    "DECIMAL(38, 3)": (pa.decimal256(40, 2), st.decimals(-(10**34), 10**34, places=2)),
    "DATE": SCALARS[LOCAL_DATE],
    "TIME": (pa.time32("s"), st.times().map(lambda t: t.replace(microsecond=0))),
    "TIME(9)": (pa.time64("us"), st.times().map(lambda t: t.replace(microsecond=8000))),
    "TIMESTAMP(3)": (
        pa.timestamp("ms"),
        st.datetimes().map(lambda t: t.replace(microsecond=8000)),
    ),
    "TIMESTAMP(6)": (pa.timestamp("us"), st.datetimes()),
    "TIMESTAMP_LTZ(6)": SCALARS[INSTANT],
}


def rows_of(*names: str) -> tuple[str, tuple[Any, st.SearchStrategy[Any]]]:
    """Return a ROW of some types: its name, its Arrow type, and its values."""
    fields = [SQL[name] for name in names]
    arrow_type = pa.struct([(f"f{i}", found) for i, (found, _) in enumerate(fields)])
    values = st.tuples(*(st.none() | strategy for _, strategy in fields))
    return f"ROW<{', '.join(names)}>", (arrow_type, values)


def arrays_of(name: str, list_type: Any = pa.list_) -> tuple[str, Any]:
    """Return an ARRAY of some type likewise; more than 32 elements have more null bits."""
    arrow_type, strategy = SQL[name]
    values = st.none() | strategy
    lists = st.lists(values, max_size=3) | values.map(lambda value: [value, None] * 33)
    return f"ARRAY<{name}>", (list_type(arrow_type), lists)


NAN = st.just(float("nan"))
SQL["FLOAT NULL"] = (pa.float64(), SQL["FLOAT"][1] | NAN)  # in an ARRAY, which has one NaN only
for found in (
    *map(arrays_of, ["BOOLEAN", "TINYINT", "SMALLINT", "INT", "FLOAT NULL", "TIME(9)", "BYTES"]),
    arrays_of("BIGINT", pa.large_list),
    arrays_of("DECIMAL(38, 3)"),
    arrays_of("TIMESTAMP_LTZ(6)"),
    rows_of(),
    rows_of("STRING", "DECIMAL(38, 3)", "TIMESTAMP(6)", "DECIMAL(18, 3)"),
):
    SQL.update([found])
for found in (
    arrays_of("ARRAY<BYTES>"),
    arrays_of("ROW<STRING, DECIMAL(38, 3), TIMESTAMP(6), DECIMAL(18, 3)>"),
    rows_of("ARRAY<DECIMAL(38, 3)>", "ROW<>", "INT"),
):
    SQL.update([found])


def sliced(data: st.DataObject, values: list[Any], arrow_type: Any) -> Any:
    """Return an array of the values that begins inside its buffers, or has them in chunks."""
    written = [str(value) if isinstance(value, uuid.UUID) else value for value in values]
    cut = data.draw(st.integers(0, len(written)), "cut")
    parts = [written[:cut], written[cut:]]
    chunks = [
        pa.array([*written[:3], *part], arrow_type)[min(3, len(written)) :] for part in parts
    ]
    if data.draw(st.booleans(), "chunked"):
        return pa.chunked_array(chunks)
    array = pa.concat_arrays([chunks[1], *chunks])[len(chunks[1]) :]
    encode = not pa.types.is_nested(arrow_type) and data.draw(st.booleans(), "dictionary")
    return array.dictionary_encode() if encode else array


@pytest.mark.parametrize("key_type", SCALARS, ids=repr)
@given(data=st.data())
@settings(max_examples=40)
def test_scalars_as_the_core(key_type: KeyType, data: st.DataObject) -> None:
    arrow_type, strategy = SCALARS[key_type]
    values = data.draw(st.lists(st.none() | strategy, max_size=40))
    if key_type is BIG_DEC:
        values = [value if value is None else value.quantize(Decimal("0.001")) for value in values]
    array = sliced(data, values, arrow_type)
    found = masked(array, key_type)
    assert found.mask.tolist() == [value is None for value in values]
    assert found.compressed().tolist() == one_by_one(
        [v for v in values if v is not None], key_type
    )
    pyflink = not isinstance(key_type, JavaSqlType) and key_type is not UUID
    for made in [LIST(key_type), *([PYFLINK(key_type)] if pyflink else [])]:
        keys = [values] if isinstance(made, LIST) else values
        nested = (
            pa.array([array.to_pylist()], pa.list_(arrow_type)) if keys is not values else array
        )
        assert arrays.hash_code(nested, made).tolist() == one_by_one(keys, made)


@pytest.mark.parametrize("sql_type", SQL)
@given(data=st.data())
@settings(max_examples=30)
def test_sql_fields_as_the_core(sql_type: str, data: st.DataObject) -> None:
    """A field alone, and between two others that take room."""
    arrow_type, strategy = SQL[sql_type]
    values = data.draw(st.lists(st.none() | strategy, min_size=1, max_size=30))
    texts = data.draw(st.lists(st.none() | TEXT, min_size=len(values), max_size=len(values)))
    array = sliced(data, values, arrow_type)
    alone = SQL_ROW(sql_type)
    assert arrays.hash_code([array], alone).tolist() == one_by_one([(v,) for v in values], alone)
    key_type = SQL_ROW("STRING", sql_type, "STRING")
    rows = list(zip(texts, values, reversed(texts)))
    columns = [pa.array(texts), array, pa.array(texts[::-1], pa.large_string())]
    assert arrays.hash_code(columns, key_type).tolist() == one_by_one(rows, key_type)


@given(data=st.data())
@settings(max_examples=60)
def test_fields_as_the_core(data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from([INT, STRING, DOUBLE, BIG_DEC]), min_size=1))
    arrow = {BIG_DEC: pa.decimal128(20, 3)}
    rows = data.draw(st.integers(1, 20))
    columns = [
        data.draw(st.lists(st.none() | SCALARS[one][1], min_size=rows, max_size=rows))
        for one in types
    ]
    columns = [
        [v.quantize(Decimal("0.001")) if isinstance(v, Decimal) else v for v in column]
        for column in columns
    ]
    made = [
        pa.array(column, arrow.get(one, SCALARS[one][0])) for one, column in zip(types, columns)
    ]
    keys = list(zip(*columns))
    names = [f"n{index}" for index in range(len(types))]
    for key_type in (
        TUPLE(*types[:25]),
        ROW(*types, kind="-D"),
        ROW(*types, names=names),
        PYFLINK(ROW(*types)),
        TUPLE(TUPLE(*types[:25])),
    ):
        nested = key_type == TUPLE(TUPLE(*types[:25]))
        arity = 25 if isinstance(key_type, TUPLE) else None
        want = [((key[:arity],) if nested else key[:arity]) for key in keys]
        given_columns: Any = made[:arity]
        found = arrays.hash_code([given_columns] if nested else given_columns, key_type)
        assert found.tolist() == one_by_one(want, key_type)


def test_long_and_wide() -> None:
    """Texts beyond every limit of the ways to hash them, and more rows than a block."""
    texts = ["", "a" * 70, "b" * 300, "\u00e9" * 5_000, "\U0001f600" * 40, "c" * 40_000, "d" * 7]
    rows = [(i, text, (text * 2)[:3000]) for i, text in enumerate(texts * 2)]
    assert arrays.hash_code(np.array(texts)).tolist() == one_by_one(texts, STRING)
    for text in texts:  # all of one length
        assert arrays.hash_code(np.array([text] * 3)).tolist() == one_by_one([text] * 3, STRING)
    key_type = SQL_ROW("INT", "STRING", "STRING")
    columns = [np.array(column) for column in zip(*rows)]
    assert arrays.hash_code(columns, key_type).tolist() == one_by_one(rows, key_type)
    texts = [""] * 20_000 + ["\u00e9", ""]
    assert arrays.hash_code(pa.array(texts), STRING).tolist() == one_by_one(texts, STRING)
    millions = "x" * 1_100_000
    assert arrays.hash_code(np.array([millions, "y"])).tolist() == one_by_one(
        [millions, "y"], STRING
    )
    numbers = np.arange(100_000)
    assert arrays.assign_to_key_group(numbers, 720).tolist() == [
        keygroups.assign_to_key_group(number, 720) for number in range(100_000)
    ]


def of_bytes(*rows: bytes) -> Any:
    """Return text of any bytes, which Arrow takes for UTF-8."""
    offsets = np.cumsum([0, *map(len, rows)]).astype("i4")
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(rows))]
    return pa.Array.from_buffers(pa.string(), len(rows), buffers)


@pytest.mark.parametrize("step", [23, pytest.param(1, marks=pytest.mark.slow)])
def test_every_character(step: int) -> None:
    """In each place of a word of eight bytes, alone and between others."""
    points = [*range(0, 0xD800, step), *range(0xE000, 0x110000, step)]
    texts = [
        "x" * (i % 9) + chr(p) + "\u00e9\u20ac\U0001f600"[: i % 4] for i, p in enumerate(points)
    ]
    assert arrays.hash_code(pa.array(texts), STRING).tolist() == one_by_one(texts, STRING)


@pytest.mark.parametrize("count", [3_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_bytes_that_are_no_utf_8(count: int) -> None:
    """Python's decoder says which are."""
    rng = random.Random(count)
    edges = bytes.fromhex("00417f80818f909fa0bfc0c1c2dfe0e1ecedeeeff0f1f3f4f5f8ff")
    whole = [text.encode() for text in ("e", "\u00e9", "\u20ac", "\U0001f600")]
    refused = 0
    for _ in range(count):
        odd = bytes(rng.choices(edges, k=rng.randrange(1, 5)))
        row = b"".join([*rng.choices(whole, k=rng.randrange(5)), odd, *rng.choices(whole, k=2)])
        row *= rng.choice((1, 1, 9))  # the long ones go another way
        array = of_bytes(b"\xc3\xa9", row, b"z")
        try:
            expected = one_by_one(["\u00e9", row.decode(), "z"], STRING)
        except UnicodeDecodeError:
            refused += 1
            with pytest.raises(InvalidValueError, match="must be text in UTF-8"):
                arrays.hash_code(array, STRING)
        else:
            assert arrays.hash_code(array, STRING).tolist() == expected, row
    assert count // 2 < refused < count
    for rows in (
        (b"\xe6\x97", b"\xa5"),
        (b"a" * 7 + b"\xc3", b"\xa9" + b"b" * 7),
        (b"\xa9", b"\xc3"),
    ):
        for filler in (b"", b"a" * 300):
            with pytest.raises(InvalidValueError, match="must be text in UTF-8"):
                arrays.hash_code(of_bytes(rows[0], *rows[1:], "\u00e9".encode() + filler), STRING)
            with pytest.raises(InvalidValueError, match="must be text in UTF-8"):
                arrays.hash_code(of_bytes(filler + rows[0], rows[1] + filler), STRING)


def test_longs_that_are_no_integers_are_told_by_their_values() -> None:
    """Long.hashCode of the two next to Integer's range is Integer.MIN_VALUE."""
    found = arrays.hash_code(np.array([-(2**31) - 1, 2**31, -(2**63), 2**63 - 1, 5]))
    assert found.tolist() == [-(2**31)] * 4 + [5]


def test_routing_as_the_core() -> None:
    codes = [0, -1, 2**31 - 1, -(2**31), -2089875627, *range(-1000, 1000, 7)]
    array = np.array(codes, dtype=np.int64)
    for groups, subtasks in ((128, 3), (1, 1), (32768, 32768), (720, 7), (1000, 999)):
        found = arrays.compute_key_group_for_key_hash(array, groups)
        assert found.dtype == np.int32
        assert found.tolist() == [
            keygroups.compute_key_group_for_key_hash(code, groups) for code in codes
        ]
        operators = arrays.compute_operator_index_for_key_group(groups, subtasks, found)
        assert operators.tolist() == [
            keygroups.compute_operator_index_for_key_group(groups, subtasks, group)
            for group in found.tolist()
        ]
        assigned = arrays.assign_key_to_parallel_operator(array, groups, subtasks, INT)
        assert assigned.tolist() == operators.tolist()
        load = arrays.key_group_load(array, groups, INT)
        assert load.weights == tuple(np.bincount(found, minlength=groups).tolist())


# --- what is taken -----------------------------------------------------------------------------

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
def test_layouts_of_numbers(array: Any) -> None:
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
def test_layouts_of_texts(array: Any) -> None:
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


def test_series_and_frames_of_polars() -> None:
    pl = pytest.importorskip("polars", reason="Polars is not installed")
    frame = pl.DataFrame({"name": TEXTS, "id": [1, 2, 3, None]})
    assert arrays.hash_code(frame["name"]).tolist() == one_by_one(TEXTS, STRING)
    assert arrays.hash_code(frame).tolist() == one_by_one(list(zip(TEXTS, [1, 2, 3, None])), None)
    categories = frame["name"].cast(pl.Categorical)
    assert arrays.hash_code(categories).tolist() == one_by_one(TEXTS, STRING)
    with pytest.raises(InvalidValueError, match="key 3: assigned key must not be null"):
        arrays.hash_code(frame["id"])


def test_series_and_frames_of_pandas() -> None:
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


def test_tables_and_structs() -> None:
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
    empty = pa.array([{}, {}], pa.struct([]))
    for key_type in (TUPLE(), ROW(), SQL_ROW()):
        assert arrays.hash_code(empty, key_type).tolist() == one_by_one([(), ()], key_type)


def test_chunks_beyond_offsets_of_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keygroups.arrays._inputs._MOST_BYTES", 1)
    for chunks in ([TEXTS, TEXTS], [NUMBERS, NUMBERS]):
        array = pa.chunked_array(chunks)
        assert arrays.hash_code(array).tolist() == one_by_one(chunks[0] * 2, None)


@pytest.mark.parametrize("name", ["decimal32", "decimal64", "decimal128", "decimal256"])
def test_widths_of_decimals(name: str) -> None:
    if not hasattr(pa, name):
        pytest.skip(f"this PyArrow has no {name}")
    values = [Decimal("-1.50"), Decimal("0.00"), Decimal("12345.67")]
    array = pa.array(values, getattr(pa, name)(7, 2))
    assert arrays.hash_code(array).tolist() == one_by_one(values, None)
    sql = SQL_ROW("DECIMAL(9, 3)", "DECIMAL(38, 2)")
    rows = [(value, value) for value in values]
    assert arrays.hash_code([array, array], sql).tolist() == one_by_one(rows, sql)


def test_words_of_decimals() -> None:
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


class Broken:
    """An array of another library that fails to give itself."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        raise self.error


def test_lists() -> None:
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


def test_layouts_of_nested_fields() -> None:
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


def test_nanoseconds() -> None:
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


# --- what is not ---------------------------------------------------------------------------------


def test_nulls() -> None:
    for array in (pa.array([1, None]), np.ma.MaskedArray([1, 5], mask=[False, True])):
        with pytest.raises(InvalidValueError, match=r"^key 1: assigned key must not be null$"):
            arrays.assign_to_key_group(array, 128)
        found = arrays.assign_to_key_group(array, 128, nulls="mask")
        assert found.tolist() == [keygroups.assign_to_key_group(1, 128), None]
        assert found.data.tolist()[1] == 0
        with pytest.raises(InvalidValueError, match="key 1: "):
            arrays.key_group_load(array, 128)
    assert masked(np.array([1])).mask.tolist() == [False]
    assert masked(np.array(["NaT"], "M8[us]")).mask.tolist() == [True]
    nothing = pa.nulls(2)
    none = arrays.compute_key_group_for_key_hash(nothing, 8, nulls="mask")
    assert none.count() == 0
    assert arrays.hash_code([nothing, nothing], SQL_ROW("INT", "STRING")).tolist() == one_by_one(
        [(None, None)] * 2, SQL_ROW("INT", "STRING")
    )
    hashes = pa.array([None, 5])
    one = arrays.compute_key_group_for_key_hash(hashes, 8, nulls="mask")
    assert one.count() == 1
    with pytest.raises(InvalidValueError, match="nulls must be one of raise, mask, got 'drop'"):
        arrays.hash_code(np.array([1]), nulls="drop")  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "array",
    [np.array([]), np.array([], "i4"), pa.array([], pa.string()), pa.chunked_array([], pa.int8())],
)
def test_no_keys(array: Any) -> None:
    assert arrays.hash_code(array).tolist() == []
    assert arrays.hash_code([array], TUPLE(BOOLEAN)).tolist() == []
    assert arrays.hash_code(array, PYFLINK(INT)).tolist() == []
    assert arrays.key_group_load(array, 4).weights == (0, 0, 0, 0)


def date32(days: int) -> Any:
    return pa.array([0, days], pa.int32()).cast(pa.date32())


BAD_UTF8 = pa.Array.from_buffers(
    pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 2], "i4")), pa.py_buffer(b"\xc3\xa9")]
)
WORSE_UTF8 = pa.Array.from_buffers(
    pa.string(), 1, [None, pa.py_buffer(np.array([0, 2], "i4")), pa.py_buffer(b"a\xff")]
)
DECIMALS = pa.array([Decimal("1.50"), Decimal("2.00"), Decimal("1.55"), Decimal("1")])
DEEP: Any = 5
for _ in range(60):
    DEEP = [DEEP]
FINE = pa.array([0, 1], pa.timestamp("us"))
NOON = pa.array([43_200_000, 43_200_050], pa.time32("ms"))


@pytest.mark.parametrize(
    ("array", "key_type", "error", "message"),
    [
        (np.array([1, 2**40]), INT, InvalidValueError, "key 1: key of type INT must be from -"),
        (np.array([1, -200]), BYTE, InvalidValueError, "key 1: .*BYTE must be.*got -200"),
        (pa.array([None, 1, 300]), BYTE, InvalidValueError, "key 2: .*got 300"),
        (np.array([1, 2**63], "u8"), LONG, InvalidValueError, "key 1: .*got 9223372036854775808"),
        (np.array([1, 2**63], "u8"), None, UnsupportedKeyTypeError, "key 1: .*beyond Long's"),
        (np.array([5, -1]), None, AmbiguousKeyTypeError, "key 1: key -1 hashes differently"),
        (pa.array([None, -1]), None, AmbiguousKeyTypeError, "key 1: key -1"),
        (pa.array([[1], [2, -1]]), None, AmbiguousKeyTypeError, "element"),
        ([np.array([1, -1])], None, AmbiguousKeyTypeError, "key 1: field 0: key -1"),
        (np.array([0.5, 0.1]), FLOAT, InvalidValueError, "key 1: .*single.*got 0.1"),
        (np.array([0.5, 1e300]), FLOAT, InvalidValueError, r"key 1: .*1e\+300"),
        (np.array([0.5], "f4"), DOUBLE, InvalidTypeError, "DOUBLE takes float64, but"),
        (np.array([0.5], "f4"), None, UnsupportedKeyTypeError, "pass key_type"),
        (np.array([0.5], "f2"), FLOAT, InvalidTypeError, "float32 or float64"),
        (np.array([0.5], "g"), DOUBLE, InvalidTypeError, "no array that Arrow takes"),
        (np.array([1.0]), LONG, InvalidTypeError, "key type LONG takes integers, but"),
        (np.array([1]), BOOLEAN, InvalidTypeError, "takes booleans"),
        (np.array([True]), INT, InvalidTypeError, "takes integers"),
        (np.array([1]), STRING, InvalidTypeError, "takes text"),
        (np.array([b"a"]), STRING, UnsupportedKeyTypeError, r"dtype \|S1 is not supported"),
        (np.array([1j]), DOUBLE, UnsupportedKeyTypeError, "dtype complex128"),
        (np.array([1], "m8[s]"), LONG, UnsupportedKeyTypeError, "dtype timedelta64"),
        (np.array([1, "a"], object), STRING, InvalidTypeError, "objects of class int, and only"),
        (np.array(["\ud800"]), STRING, InvalidTypeError, "surrogate"),
        (np.array(["\ud800"], object), STRING, InvalidTypeError, "surrogates"),
        (np.array("a"), STRING, InvalidTypeError, "one dimension, got 0"),
        (np.zeros((2, 2)), DOUBLE, InvalidTypeError, "one dimension, got 2"),
        (BAD_UTF8, STRING, InvalidValueError, "^key 0: .*must be text in UTF-8"),
        (WORSE_UTF8, STRING, InvalidValueError, "^key 0: .*must be text in UTF-8"),
        (np.array(["x" * 36]), UUID, InvalidValueError, "key 0: .*canonical text, got 'xxx"),
        (np.array(["x"]), UUID, InvalidValueError, "key 0: .*canonical text, got 'x'"),
        (np.array([1]), UUID, InvalidTypeError, "canonical text"),
        (np.array([1]), BIG_DEC, InvalidTypeError, "takes decimals"),
        (np.array([1]), LOCAL_DATE, InvalidTypeError, "takes dates"),
        (np.array([1]), SQL_DATE("UTC"), InvalidTypeError, "takes dates"),
        (FINE, INSTANT, InvalidTypeError, "timestamps with a zone"),
        (FINE, SQL_TIMESTAMP("UTC"), InvalidTypeError, "timestamps with a zone"),
        (
            FINE.cast(pa.timestamp("us", "UTC")),
            LOCAL_DATE_TIME,
            InvalidTypeError,
            "without a zone",
        ),
        (pa.array([2**60], pa.timestamp("s")), None, InvalidValueError, r"key 0: .*2\^31 days"),
        (date32(-200_000), SQL_DATE("UTC"), InvalidValueError, "key 1: .*from 1582-10-15"),
        (date32(2**31 - 1), SQL_DATE("UTC"), InvalidValueError, "key 1: .*1 to 9999"),
        (date32(40_000), SQL_DATE("Europe/Berlin"), InvalidValueError, "key 1: .*2036"),
        (date32(2_673), SQL_DATE("Asia/Manila"), InvalidValueError, "key 1: .*releases"),
        (np.array([1]), LIST(INT), InvalidTypeError, "takes lists"),
        (pa.array([[1], [2, 300]]), LIST(BYTE), InvalidValueError, "key 1: element 1: .*300"),
        (pa.array([[1]]), TUPLE(NULL), InvalidTypeError, "NULL takes nulls only"),
        (
            [np.array([1]), np.array([300])],
            TUPLE(INT, BYTE),
            InvalidValueError,
            "key 0: field 1: ",
        ),
        ([np.array([1])], TUPLE(INT, INT), InvalidValueError, "must be 2 columns, got 1"),
        ([np.array([1]), np.array([1, 2])], None, InvalidValueError, r"one length, got \[1, 2\]"),
        ([], None, InvalidValueError, "^key must have a column"),
        ([None], None, InvalidTypeError, "column 0 must be an array of NumPy"),
        (Broken(TypeError("not\nnow")), STRING, InvalidTypeError, "Broken.*: not now"),
        (Broken(OSError("UInt32")), STRING, InvalidTypeError, "Broken.*: UInt32"),
        (DEEP, None, InvalidValueError, "nest at most 50 deep"),
        ("abc", STRING, InvalidTypeError, "^key must be an array of NumPy"),
        (np.array([1]), "INT", InvalidTypeError, "key_type must be a value of keygroups.types"),
        (np.array([1]), BIG_INT, UnsupportedKeyTypeError, "BIG_INT is not hashed in arrays"),
        (np.array([1]), LIST(CHAR), UnsupportedKeyTypeError, "CHAR is not hashed"),
        (FINE, PYFLINK(SQL_TIMESTAMP("UTC")), UnsupportedKeyTypeError, "is not hashed in arrays"),
        ([FINE], SQL_ROW("TIMESTAMP(3)"), InvalidValueError, "key 1: field 0: .*at most 3 digits"),
        (NOON, SQL_TIME("UTC"), UnsupportedKeyTypeError, "SQL_TIME.*is not hashed in arrays"),
        ([NOON], SQL_ROW("TIME(1)"), InvalidValueError, "key 1: field 0: .*at most 1 digits"),
        ([NOON[:1]], SQL_ROW("DATE"), InvalidTypeError, "takes dates"),
        ([FINE], SQL_ROW("TIME(1)"), InvalidTypeError, "takes times"),
        (pa.array([1, -1], pa.time32("s")), LOCAL_TIME, InvalidValueError, "key 1: .*midnight"),
        (pa.array([86_400], pa.time32("s")), None, InvalidValueError, "key 0: .*got 86400"),
        ([np.array([1])], SQL_ROW("ARRAY<INT>"), InvalidTypeError, "takes lists"),
        ([np.array([1])], SQL_ROW("ROW<INT>"), InvalidTypeError, "takes structs"),
        ([[np.array([1])]], SQL_ROW("ROW<>"), InvalidValueError, "must be 0 columns, got 1"),
        (
            [pa.array([None, {"a": [7]}, {"a": [8, 300]}])],
            SQL_ROW("ROW<ARRAY<TINYINT>>"),
            InvalidValueError,
            "key 2: field 0: field 0: element 1: .*got 300",
        ),
        (
            [pa.array([[], [[1]], [None]])],
            SQL_ROW("ARRAY<ARRAY<INT> NOT NULL>"),
            InvalidValueError,
            "key 2: field 0: element 0: .*must not be None",
        ),
        ([np.array([300])], SQL_ROW("TINYINT"), InvalidValueError, "key 0: field 0: .*TINYINT"),
        ([np.array([1])], SQL_ROW("BOOLEAN"), InvalidTypeError, "takes booleans"),
        ([np.array([1])], SQL_ROW("DATE"), InvalidTypeError, "takes dates"),
        ([np.array([1])], SQL_ROW("BYTES"), InvalidTypeError, "takes binaries"),
        ([np.array([1])], SQL_ROW("STRING"), InvalidTypeError, "takes text"),
        ([np.array([1])], SQL_ROW("DECIMAL(5, 1)"), InvalidTypeError, "takes decimals"),
        ([DECIMALS], SQL_ROW("DECIMAL(5, 1)"), InvalidValueError, "key 2: field 0: .*'1.55'"),
        (
            [pa.array([None, 1])],
            SQL_ROW("INT NOT NULL"),
            InvalidValueError,
            "key 0: .*not be None",
        ),
        ([pa.array([None, 300])], SQL_ROW("TINYINT"), InvalidValueError, "key 1: field 0: .*300"),
        (
            [np.array(["ab", "abc"])],
            SQL_ROW("CHAR(2)"),
            InvalidValueError,
            "key 1: .*2 characters",
        ),
        ([pa.array([b"abc"])], SQL_ROW("BINARY(2)"), InvalidValueError, "key 0: .*2 bytes, got 3"),
    ],
)
def test_refused(array: Any, key_type: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        arrays.hash_code(array, key_type)


def test_refused_numbers() -> None:
    with pytest.raises(InvalidValueError, match=r"key_hash 1: .*got 2147483648"):
        arrays.compute_key_group_for_key_hash(np.array([0, 2**31]), 128)
    with pytest.raises(InvalidValueError, match=r"key_group_id 0: .* from 0 to 127, got -1"):
        arrays.compute_operator_index_for_key_group(128, 4, np.array([-1]))
    with pytest.raises(InvalidValueError, match="got 128"):
        arrays.compute_operator_index_for_key_group(128, 4, np.array([128], "u1"))
    with pytest.raises(InvalidTypeError, match="key_hash must be integers"):
        arrays.compute_key_group_for_key_hash(np.array([0.5]), 128)
    with pytest.raises(ParallelismError):
        arrays.assign_to_key_group(np.array([1]), 0)


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
    assert arrays.hash_code(nans, FLOAT).tolist() == [0x7FC00000] * 2


@pytest.mark.parametrize("missing", ["numpy", "pyarrow"])
def test_a_missing_extra_is_named(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, "keygroups.arrays")
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'keygroups\[arrays\]'$"):
        importlib.import_module("keygroups.arrays")
