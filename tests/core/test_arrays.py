"""Keys as whole arrays: the vectors of Flink, and any values, hashed as the core does each."""

from __future__ import annotations

import datetime as dt
import random
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.golden import lines, read
from support.keys import java_values, pyflink_values, sql_values
from support.keys.arrow_keys import NoArrowTypeError, in_arrow, masked, one_by_one
from support.keys.key_encoding import decode_key, decode_key_type
from support.selections import examples

import keygroups
from keygroups import (
    InvalidValueError,
    arrays,
)
from keygroups.types import (
    BIG_DEC,
    BOOLEAN,
    BYTE,
    DOUBLE,
    FLOAT,
    INSTANT,
    INT,
    LIST,
    LOCAL_DATE,
    LOCAL_DATE_TIME,
    LOCAL_TIME,
    LONG,
    PYFLINK,
    ROW,
    SHORT,
    SQL_DATE,
    SQL_ROW,
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


@pytest.mark.long
@pytest.mark.parametrize(
    ("vectors", "least"),
    [
        (own_vectors, 2000),
        pytest.param(independent_vectors, 4000, marks=pytest.mark.slow),
        pytest.param(sql_vectors, 1300, marks=pytest.mark.slow),
        (pyflink_vectors, 640),
    ],
)
def test_arrays_hash_the_vectors_of_flink(vectors: Any, least: int) -> None:
    counts = check(vectors())
    print(vectors.__name__, dict(counts))
    assert counts["checked"] >= least


# --- against the core, value by value ----------------------------------------------------------


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
@examples(25)
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
@examples(12)
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
@examples(60)
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


@pytest.mark.parametrize("null", [0, 55, 56, 119, 120])
def test_a_null_bit_in_any_word_of_the_header(null: int) -> None:
    """Of three words: the first has the row kind, and bits for 56 fields."""
    key_type = SQL_ROW(*["INT"] * 121)
    keys = [tuple(range(121)), tuple(None if i == null else i for i in range(121))]
    columns = [pa.array(column, pa.int32()) for column in zip(*keys)]
    assert arrays.hash_code(columns, key_type).tolist() == one_by_one(keys, key_type)


def test_long_texts_and_many_rows_hash_as_the_core() -> None:
    """Texts beyond every limit of the ways to hash them, and more rows than a block."""
    texts = ["", "a" * 70, "b" * 300, "\u00e9" * 5_000, "\U0001f600" * 40, "c" * 40_000, "d" * 7]
    rows = [(i, text, (text * 2)[:3000]) for i, text in enumerate(texts * 2)]
    assert arrays.hash_code(np.array(texts)).tolist() == one_by_one(texts, STRING)
    for text in texts:  # all of one length
        assert arrays.hash_code(np.array([text] * 3)).tolist() == one_by_one([text] * 3, STRING)
    key_type = SQL_ROW("INT", "STRING", "STRING")
    columns = [np.array(column) for column in zip(*rows)]
    assert arrays.hash_code(columns, key_type).tolist() == one_by_one(rows, key_type)
    short = [(1, "c" * 3_000, "ab"), (2, "", "\u00e9" * 2_000), (3, "d" * 2_100, None)]
    columns = [pa.array(column) for column in zip(*short)]
    assert arrays.hash_code(columns, key_type).tolist() == one_by_one(short, key_type)
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


def test_a_list_of_more_elements_than_powers_are_kept() -> None:
    """Of n alike it is 31^n + 7 * (31^n - 1) / 30, as of every geometric series."""
    n = 2**20 + 1
    array = pa.ListArray.from_arrays([0, n], pa.array(np.full(n, 7, np.int32)))
    power = pow(31, n, 30 * 2**32)  # so that it can be divided by 30
    expected = (power + 7 * ((power - 1) // 30)) % 2**32
    assert arrays.hash_code(array, LIST(INT)).view(np.uint32).tolist() == [expected]


def of_bytes(*rows: bytes) -> Any:
    """Return text of any bytes, which Arrow takes for UTF-8."""
    offsets = np.cumsum([0, *map(len, rows)]).astype("i4")
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(rows))]
    return pa.Array.from_buffers(pa.string(), len(rows), buffers)


@pytest.mark.parametrize("step", [23, pytest.param(1, marks=pytest.mark.slow)])
def test_every_character_hashes_as_the_core(step: int) -> None:
    """In each place of a word of eight bytes, alone and between others."""
    points = [*range(0, 0xD800, step), *range(0xE000, 0x110000, step)]
    texts = [
        "x" * (i % 9) + chr(p) + "\u00e9\u20ac\U0001f600"[: i % 4] for i, p in enumerate(points)
    ]
    assert arrays.hash_code(pa.array(texts), STRING).tolist() == one_by_one(texts, STRING)


@pytest.mark.parametrize("count", [1_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_bytes_that_are_no_utf_8_are_refused(count: int) -> None:
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
    for bits in (8, 16, 32, 64):
        values = [0, 2 ** (bits - 1) - 1, min(2**bits, 2**63) - 1]
        found = arrays.hash_code(np.array(values, f"u{bits // 8}"))
        assert found.tolist() == one_by_one(values, LONG)


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
