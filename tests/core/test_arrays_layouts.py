"""Arrow's layouts in one another, cut and in chunks: as the core says of each key, or refused."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow
import pytest

import keygroups
from keygroups import InvalidTypeError, InvalidValueError, KeyGroupsError, arrays
from keygroups.types import (
    BIG_DEC,
    BOOLEAN,
    BYTE,
    DOUBLE,
    INSTANT,
    INT,
    LIST,
    LOCAL_DATE,
    LOCAL_DATE_TIME,
    LOCAL_TIME,
    LONG,
    PYFLINK,
    SQL_ROW,
    SQL_TIMESTAMP,
    STRING,
    TUPLE,
    UUID,
    KeyType,
)

pa: Any = pyarrow  # newer ones have more names


class Keys(NamedTuple):
    """Keys of a type, as the core takes them and in an array; and the type in Flink SQL."""

    key_type: KeyType
    sql_type: str
    values: list[Any]
    array: Any


UTC = dt.timezone.utc
CONTEXT = Context(prec=80)
FLOATS = (0.0, -0.0, 1.5, float("nan"), float("-inf"))
TEXT_TYPES = [pa.string(), pa.large_string()]
TEXT_TYPES += [pa.string_view()] if hasattr(pa, "string_view") else []
DECIMAL_TYPES = [pa.decimal128(20, 3), pa.decimal256(70, 3)]
DECIMAL_TYPES += [pa.decimal64(18, 3)] if hasattr(pa, "decimal64") else []
SCALARS: list[tuple[KeyType, str, list[Any], Callable[[random.Random], Any]]] = [
    (
        *(STRING, "STRING", TEXT_TYPES),
        lambda rng: "".join(rng.choices("ab\0\u00e9\U0001f600", k=rng.choice((0, 1, 5, 13, 40)))),
    ),
    (INT, "INT", [pa.int16(), pa.int32(), pa.int64()], lambda rng: rng.randrange(-(2**15), 2**15)),
    (BOOLEAN, "BOOLEAN", [pa.bool_()], lambda rng: rng.random() < 0.5),
    (DOUBLE, "", [pa.float64()], lambda rng: rng.choice(FLOATS)),
    (
        *(LOCAL_DATE, "DATE", [pa.date32()]),
        lambda rng: dt.date.fromordinal(rng.randint(1, dt.date.max.toordinal())),
    ),
    (
        *(LOCAL_TIME, "TIME(3)"),
        [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")],
        lambda rng: (dt.datetime.min + dt.timedelta(seconds=rng.randrange(86_400))).time(),
    ),
    (
        *(LOCAL_DATE_TIME, "TIMESTAMP(6)", list(map(pa.timestamp, ("s", "ms", "us")))),
        lambda rng: dt.datetime.min + dt.timedelta(seconds=rng.randrange(3 * 10**11)),
    ),
    (
        *(
            INSTANT,
            "TIMESTAMP_LTZ(6)",
            [pa.timestamp("us", "Asia/Tokyo"), pa.timestamp("s", "UTC")],
        ),
        lambda rng: dt.datetime(1, 1, 3, tzinfo=UTC) + dt.timedelta(0, rng.randrange(3 * 10**11)),
    ),
    (
        *(BIG_DEC, "DECIMAL(30, 5)", DECIMAL_TYPES),
        lambda rng: Decimal(rng.randint(-(10**12), 10**12)).scaleb(-3),
    ),
]


def scalars(rng: random.Random, count: int) -> Keys:
    """Return values of one type, of which some are null, in any encoding."""
    key_type, sql_type, arrow_types, make = rng.choice(SCALARS)
    values = [None if rng.random() < 0.2 else make(rng) for _ in range(count)]
    array = pa.array(values, rng.choice(arrow_types))
    is_view = str(array.type) == "string_view"
    encoding = rng.choice(("plain", "dictionary", "null in it", "runs"))
    if encoding == "runs" and not is_view and not pa.types.is_decimal(array.type):
        array = pa.compute.run_end_encode(array)
    elif encoding in ("dictionary", "null in it") and str(array.type) != "decimal64(18, 3)":
        array = array.dictionary_encode() if not is_view else array
    if encoding == "null in it" and pa.types.is_dictionary(array.type):
        dictionary = pa.concat_arrays([array.dictionary, pa.nulls(1, array.type.value_type)])
        indices = array.indices.fill_null(len(dictionary) - 1)
        array = pa.DictionaryArray.from_arrays(indices, dictionary)
    return Keys(key_type, sql_type, values, array)


def structs(rng: random.Random, count: int, depth: int) -> Keys:
    fields = [random_keys(rng, count, depth - 1) for _ in range(rng.randint(1, 3))]
    mask = [rng.random() < 0.2 for _ in range(count)]
    names = [f"f{index}" for index in range(len(fields))]
    columns = [field.array for field in fields]
    array = pa.StructArray.from_arrays(columns, names, mask=pa.array(mask, pa.bool_()))
    rows = zip(*(field.values for field in fields))
    values = [None if hidden else row for hidden, row in zip(mask, rows)]
    texts = [field.sql_type for field in fields]
    sql_type = f"ROW<{', '.join(texts)}>" if all(texts) else ""
    return Keys(TUPLE(*(field.key_type for field in fields)), sql_type, values, array)


def lists(rng: random.Random, count: int, depth: int) -> Keys:
    size = rng.choice((0, 0, 0, 1, 3))  # the size of all, or 0 for any
    sizes = [size or rng.randrange(4) for _ in range(count)]
    bounds = np.cumsum([0, *sizes]).tolist()
    element = random_keys(rng, bounds[-1], depth - 1)
    values: list[Any] = [element.values[start : start + n] for start, n in zip(bounds, sizes)]
    if size:
        array = pa.FixedSizeListArray.from_arrays(element.array, size)
    else:
        mask = [rng.random() < 0.2 for _ in range(count)]
        cls, integer = rng.choice(((pa.ListArray, pa.int32()), (pa.LargeListArray, pa.int64())))
        nulls = pa.array(mask, pa.bool_())
        array = cls.from_arrays(pa.array(bounds, integer), element.array, mask=nulls)
        values = [None if hidden else value for hidden, value in zip(mask, values)]
    sql_type = f"ARRAY<{element.sql_type}>" if element.sql_type else ""
    return Keys(LIST(element.key_type), sql_type, values, array)


def random_keys(rng: random.Random, count: int, depth: int) -> Keys:
    if not depth or rng.random() < 0.4:
        return scalars(rng, count)
    return rng.choice((structs, lists))(rng, count, depth)


def code(value: object, key_type: KeyType) -> int | None:
    return None if value is None else keygroups.hash_code(value, key_type)


@pytest.mark.parametrize("cases", [200, pytest.param(20_000, marks=pytest.mark.slow)])
def test_layouts_in_one_another(cases: int) -> None:
    rng = random.Random(cases)
    counts: Counter[str] = Counter()
    for _ in range(cases):
        count = rng.choice((0, 1, 3, 9, 30))
        keys = random_keys(rng, count, rng.randrange(4))
        start = rng.randint(0, count)
        end = rng.randint(start, count)
        values, array = keys.values[start:end], keys.array[start:end]
        if rng.random() < 0.3:
            cut = rng.randint(0, len(values))
            array = pa.chunked_array([array[:cut], array[:0], array[cut:]])
        asked: list[tuple[Any, KeyType, list[Any]]] = [(array, keys.key_type, values)]
        if keys.sql_type:
            asked.append(([array], SQL_ROW(keys.sql_type), [(value,) for value in values]))
        for key, key_type, wanted in asked:
            try:
                found = arrays.hash_code(key, key_type, nulls="mask").tolist()
            except InvalidTypeError as error:
                counts[str(error)[-39:]] += 1
                continue
            assert found == [code(value, key_type) for value in wanted], (array.type, wanted)
            counts["compared"] += 1
    refused = counts.pop("Cannot yet unify dictionaries with nulls"[-39:], 0)
    assert [*counts] == ["compared"]
    assert refused < counts["compared"] / 100


# --- what an array may hold, and its type forbids ---------------------------------------------


def of_bytes(*rows: bytes, arrow_type: Any = TEXT_TYPES[0]) -> Any:
    """Return text of any bytes, which Arrow takes for UTF-8."""
    wide = np.dtype("i8" if arrow_type == pa.large_string() else "i4")
    offsets = np.cumsum([0, *map(len, rows)]).astype(wide)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(rows))]
    return pa.Array.from_buffers(arrow_type, len(rows), buffers)


def view_of_bytes(*rows: bytes) -> Any:
    """Return text of at most 12 bytes in a row, in views."""
    views = b"".join(len(row).to_bytes(4, "little") + row.ljust(12, b"\0") for row in rows)
    return pa.Array.from_buffers(pa.string_view(), len(rows), [None, pa.py_buffer(views)])


def runs_of(values: Any) -> Any:
    ends = pa.array(range(1, len(values) + 1), pa.int32())
    encoded = pa.run_end_encoded(pa.int32(), values.type)
    return pa.Array.from_buffers(encoded, len(values), [None], children=[ends, values])


GOOD, BAD = "caf\u00e9".encode(), b"a\xff"
TEXTS = of_bytes(GOOD, b"", BAD)
ENCODED = [
    TEXTS,
    of_bytes(b"x", GOOD, b"", BAD)[1:],
    of_bytes(GOOD, b"", BAD, arrow_type=pa.large_string()),
    pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), TEXTS),
    runs_of(TEXTS),
    *([view_of_bytes(GOOD, b"", BAD)] if hasattr(pa, "string_view") else []),
]


@pytest.mark.parametrize("array", ENCODED, ids=lambda array: str(array.type))
def test_text_that_is_no_utf_8(array: Any) -> None:
    """Every key type of text names the index and shows the bytes; nothing is hashed."""
    says = r"must be text in UTF-8, got b'a\\xff'$"
    struct = pa.StructArray.from_arrays([array], ["text"])
    nested = pa.ListArray.from_arrays(pa.array([0, 1, 3], pa.int32()), array)
    for key, key_type, where in (
        (array, None, "key 2: "),
        (array, STRING, "key 2: "),
        (array, PYFLINK(STRING), "key 2: "),
        ([array], TUPLE(STRING), "key 2: field 0: "),
        (struct, TUPLE(STRING), "key 2: field 0: "),
        (nested, LIST(STRING), "key 1: element 1: "),
        ([array], SQL_ROW("STRING"), "key 2: field 0: "),
        ([array], SQL_ROW("CHAR(9)"), "key 2: field 0: "),
        ([array], SQL_ROW("VARCHAR(4)"), "key 2: field 0: "),
        ([struct], SQL_ROW("ROW<STRING>"), "key 2: field 0: field 0: "),
        ([nested], SQL_ROW("ARRAY<STRING>"), "key 1: field 0: element 1: "),
    ):
        if key_type is None and not pa.types.is_string(array.type):
            continue
        with pytest.raises(InvalidValueError, match=f"^{where}key of type .* {says}"):
            arrays.hash_code(key, key_type)
        first = [column[:1] for column in key] if isinstance(key, list) else key[:1]
        assert arrays.hash_code(first, key_type).size == 1
    with pytest.raises(InvalidValueError, match=r"^key 0: .*canonical text, got 'caf\u00e9'$"):
        arrays.hash_code(array, UUID)
    with pytest.raises(InvalidValueError, match=r"^key 0: .*canonical text, got 'a\\\\xff'$"):
        arrays.hash_code(array[2:], UUID)


@pytest.mark.parametrize("octet", [0x80, 0xBF, 0xC0, 0xC2, 0xE0, 0xF0, 0xFF])
@pytest.mark.parametrize(("before", "behind"), [(0, 0), (7, 0), (0, 7), (200, 0), (0, 200)])
def test_a_byte_alone_that_is_no_character(octet: int, before: int, behind: int) -> None:
    """Whatever the highest byte is, at either end of ASCII and in texts of any length."""
    array = of_bytes(b"a", b"x" * before + bytes([octet]) + b"x" * behind, b"b")
    for key, key_type in ((array, STRING), ([array], SQL_ROW("STRING"))):
        with pytest.raises(InvalidValueError, match=r"^key 1: .*must be text in UTF-8, got b'"):
            arrays.hash_code(key, key_type)


@pytest.mark.parametrize("behind", [0, 200])
@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (b"\xe0\xa0\x80", b"\xe0\x9f\xbf"),
        (b"\xed\x9f\xbf", b"\xed\xa0\x80"),
        (b"\xf0\x90\x80\x80", b"\xf0\x8f\xbf\xbf"),
        (b"\xf4\x8f\xbf\xbf", b"\xf4\x90\x80\x80"),
    ],
)
def test_second_bytes_on_both_sides_of_a_bound(good: bytes, bad: bytes, behind: int) -> None:
    """Unicode, table 3-7: behind these first bytes fewer second ones are well-formed."""
    text = good + b"x" * behind
    for key, key_type in ((of_bytes(text), STRING), ([of_bytes(text)], SQL_ROW("STRING"))):
        value = text.decode()
        expected = code(value if key_type == STRING else (value,), key_type)
        assert arrays.hash_code(key, key_type).tolist() == [expected]
    wrong = of_bytes(b"a", bad + b"x" * behind)
    for key, key_type in ((wrong, STRING), ([wrong], SQL_ROW("STRING"))):
        with pytest.raises(InvalidValueError, match=r"^key 1: .*must be text in UTF-8, got b'"):
            arrays.hash_code(key, key_type)


def test_bytes_below_a_null_do_not_matter() -> None:
    valid = pa.array([True, True, False]).buffers()[1]
    array = pa.Array.from_buffers(pa.string(), 3, [valid, *TEXTS.buffers()[1:]])
    texts = ["caf\u00e9", "", None]
    assert arrays.hash_code(array, STRING, nulls="mask").tolist() == [
        code(t, STRING) for t in texts
    ]
    key_type = SQL_ROW("STRING")
    expected = [code((text,), key_type) for text in texts]
    assert arrays.hash_code([array], key_type).tolist() == expected


@pytest.mark.parametrize("below", [-1, -(2**31), 7])
def test_a_number_below_a_null_is_no_key(below: int) -> None:
    """It is neither ambiguous nor out of range; one beside it is."""
    valid = pa.array([True, False]).buffers()[1]
    for arrow_type in (pa.int32(), pa.int64()):
        values = pa.array([5, below], arrow_type).buffers()[1]
        array = pa.Array.from_buffers(arrow_type, 2, [valid, values])
        assert arrays.hash_code(array, nulls="mask").tolist() == [code(5, LONG), None]
        assert arrays.hash_code(array, BYTE, nulls="mask").tolist() == [5, None]
        assert arrays.compute_key_group_for_key_hash(array, 128, nulls="mask")[1] is np.ma.masked


@pytest.mark.parametrize("size", [1, 200])
def test_a_character_in_two_texts(size: int) -> None:
    """The bytes of both together are UTF-8, and those of neither."""
    array = of_bytes(b"x" * size + b"\xc3", b"\xa9")
    for key, key_type in ((array, STRING), ([array], SQL_ROW("STRING"))):
        with pytest.raises(InvalidValueError, match=r"^key 0: .*must be text in UTF-8, got b'x"):
            arrays.hash_code(key, key_type)


@pytest.mark.parametrize("precision", [5, 18, 19, 38])
def test_decimals_of_more_digits_than_their_type_has(precision: int) -> None:
    """As some releases of Arrow add them up; Flink has no such decimal."""
    values = [10**precision - 1, -(10**precision) + 1, 10**precision]
    octets = b"".join(value.to_bytes(16, "little", signed=True) for value in values)
    array = pa.Array.from_buffers(pa.decimal128(precision, 2), 3, [None, pa.py_buffer(octets)])
    key_type = SQL_ROW(f"DECIMAL({precision}, 2)")
    expected = [code((Decimal(value).scaleb(-2, CONTEXT),), key_type) for value in values[:2]]
    assert arrays.hash_code([array[:2]], key_type).tolist() == expected
    for wrong in (array, array[1:]):
        index = len(wrong) - 1
        with pytest.raises(InvalidValueError, match=f"^key {index}: .*at most {precision} digits"):
            arrays.hash_code([wrong], key_type)
    # A BigDecimal has as many as there are.
    assert arrays.hash_code(array, BIG_DEC).tolist() == [
        code(Decimal(value).scaleb(-2, CONTEXT), BIG_DEC) for value in values
    ]


ZONES = ["UTC", "Europe/Berlin", "America/Los_Angeles", "Asia/Tokyo"]


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@pytest.mark.parametrize("zone", ZONES)
def test_years_of_sql_timestamps(zone: str, unit: str) -> None:
    """An instant is taken where the core takes its wall-clock time."""
    key_type = SQL_TIMESTAMP(zone)
    used = 0
    for wall in (
        *(dt.datetime(1, 1, 3), dt.datetime(1582, 10, 14, 23, 59, 59), dt.datetime(1582, 10, 15)),
        *(dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(1970, 1, 1), dt.datetime(2024, 7, 1)),
        *(
            dt.datetime(2036, 12, 31, 23, 59, 59),
            dt.datetime(2037, 1, 1),
            dt.datetime(9999, 12, 30),
        ),
    ):
        array = pa.array([wall.replace(tzinfo=key_type.zone)], pa.timestamp(unit, "UTC"))
        try:
            expected = keygroups.hash_code(wall, key_type)
        except KeyGroupsError:
            with pytest.raises(InvalidValueError, match=r"^key 0: .* must be from 1.* zone, got"):
                arrays.hash_code(array, key_type)
        else:
            assert arrays.hash_code(array, key_type).tolist() == [expected]
            used += 1
    assert used == (7 if zone == "UTC" else 3)


def test_an_ambiguous_element_is_named_by_its_list() -> None:
    array = pa.array([None, [], [1], [2, -1]])
    for key, where in ((array, "key 3: element 1"), ([array[1:]], "key 2: field 0: element 1")):
        with pytest.raises(keygroups.AmbiguousKeyTypeError, match=f"^{where}: key -1 hashes"):
            arrays.hash_code(key)


def test_what_arrow_cannot_take_apart() -> None:
    """Parts of a dictionary with a null and with a NaN, which is unlike itself."""
    dictionary = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array([FLOATS[3], None]))
    views = pa.array(["a", "b", "c"], pa.string_view())
    mask = pa.array([False, True, False])
    array = pa.StructArray.from_arrays([dictionary, views], ["a", "b"], mask=mask)
    with pytest.raises(InvalidTypeError, match="key is no array that Arrow takes"):
        arrays.hash_code(array, TUPLE(DOUBLE, STRING), nulls="mask")
