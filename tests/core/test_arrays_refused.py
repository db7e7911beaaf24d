"""Arrays that are no keys: nulls, values that their key type does not hold, and no arrays."""

from __future__ import annotations

import importlib
import sys
from decimal import Decimal
from typing import Any

import numpy
import pyarrow
import pytest
from support.keys.arrow_keys import masked, one_by_one

import keygroups
from keygroups import (
    AmbiguousKeyTypeError,
    InvalidTypeError,
    InvalidValueError,
    ParallelismError,
    UnsupportedKeyTypeError,
    arrays,
)
from keygroups.types import (
    BIG_DEC,
    BIG_INT,
    BOOLEAN,
    BYTE,
    CHAR,
    DOUBLE,
    FLOAT,
    HASHED,
    INSTANT,
    INT,
    LIST,
    LOCAL_DATE,
    LOCAL_DATE_TIME,
    LOCAL_TIME,
    LONG,
    NULL,
    PYFLINK,
    SHORT,
    SQL_DATE,
    SQL_ROW,
    SQL_TIME,
    SQL_TIMESTAMP,
    STRING,
    TUPLE,
    UUID,
)

np: Any = numpy  # whose stubs know less of dtypes than is asked here
pa: Any = pyarrow


class Broken:
    """An array of another library that fails to give itself."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        raise self.error


def test_a_null_key_raises_or_is_masked() -> None:
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
def test_no_keys_have_no_hashes_and_no_load(array: Any) -> None:
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
ZEROS = "0" * 8 + "-0000" * 3 + "-" + "0" * 12
FINE = pa.array([0, 1], pa.timestamp("us"))
TENTH = pa.array([0, 100], pa.timestamp("ms"))
NOON = pa.array([43_200_000, 43_200_050], pa.time32("ms"))


@pytest.mark.branch
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
        (
            [np.array([2**63 - 1]).view("f8")],
            SQL_ROW("FLOAT"),
            InvalidValueError,
            "single-precision",
        ),
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
        (
            np.array([ZEROS, "x", "y"]),
            UUID,
            InvalidValueError,
            "key 1: .*canonical text, got 'x'",
        ),
        (np.array(["g" + ZEROS[1:]]), UUID, InvalidValueError, "canonical text, got 'g0"),
        (np.array([ZEROS[:-13] + "+" + "0" * 12]), UUID, InvalidValueError, "canonical text"),
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
        *(
            (
                pa.array([0, far], pa.timestamp("s")),
                None,
                InvalidValueError,
                r"key 1: .*2\^31 days",
            )
            for far in (2**60, 2**31 * 86_400, -(2**31) * 86_400 - 1)
        ),
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
        (["a", 1], None, InvalidTypeError, "key is a list of int, str, and a list has to be of"),
        (["a", None], None, InvalidTypeError, "key is a list of NoneType, str, and"),
        ([1, True], LONG, InvalidTypeError, "key is a list of bool, int, and"),
        ([1, 1.0], DOUBLE, InvalidTypeError, "key is a list of float, int, and"),
        ([np.int64(1)], LONG, InvalidTypeError, "key is a list of int64, and"),
        ([Decimal("1.5")], BIG_DEC, InvalidTypeError, "key is a list of Decimal, and"),
        ([b"a"], None, UnsupportedKeyTypeError, "ByteBuffer, by which Beam keys, is key_type="),
        ([b"a", "a"], None, InvalidTypeError, "key is a list of bytes, str, and"),
        (["a", np.array([1])], None, InvalidTypeError, "key is a list of ndarray, str, and"),
        ([1, 2**63], None, UnsupportedKeyTypeError, f"key 1: .* 64 bits, got {2**63}"),
        ([-(2**63) - 1], LONG, UnsupportedKeyTypeError, "key 0: .* 64 bits, got -922"),
        ([10**10_000], LONG, UnsupportedKeyTypeError, "key 0: .* got int too long to print"),
        ([1, -1], None, AmbiguousKeyTypeError, "key 1: key -1 hashes differently"),
        ([1, 2**31], INT, InvalidValueError, "key 1: .*got 2147483648"),
        ([1, 2], LIST(INT), InvalidTypeError, "takes lists"),
        ([1, 2], TUPLE(LONG, LONG), InvalidValueError, "must be 2 columns, got 1"),
        ([["a", "b"], ["c", "d"]], None, InvalidTypeError, "column 0 must be an array of NumPy"),
        (("a", "b"), None, InvalidTypeError, "column 0 must be an array of NumPy"),
        (["\ud800"], None, InvalidTypeError, "key is no array that Arrow takes"),
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
        ([TENTH], SQL_ROW("TIMESTAMP(0)"), InvalidValueError, "key 1: .*at most 0 digits"),
        (
            [TENTH.cast(pa.timestamp("ms", "UTC"))],
            SQL_ROW("TIMESTAMP_LTZ(0)"),
            *(InvalidValueError, "key 1: .*at most 0 digits"),
        ),
        ([TENTH.cast(pa.time32("ms"))], SQL_ROW("TIME(0)"), InvalidValueError, "at most 0 digits"),
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
def test_a_bad_key_is_refused_with_its_index(
    array: Any, key_type: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        arrays.hash_code(array, key_type)


@pytest.mark.parametrize("dtype", [f"{sign}{size}" for sign in "iu" for size in (1, 2, 4, 8)])
@pytest.mark.parametrize(
    ("key_type", "bits"), [(BYTE, 7), (SHORT, 15), (INT, 31), (HASHED, 31), (LONG, 63)]
)
def test_the_ends_of_integers_in_arrays_of_any_width(key_type: Any, bits: int, dtype: str) -> None:
    low, high, limits = -(2**bits), 2**bits - 1, np.iinfo(dtype)
    inside = [value for value in (0, low, high) if limits.min <= value <= limits.max]
    array = np.array(inside, dtype)
    expected = [keygroups.hash_code(value, key_type) for value in inside]
    assert arrays.hash_code(array, key_type).tolist() == expected
    for value in (low - 1, high + 1, limits.min, limits.max):
        if limits.min <= value <= limits.max and not low <= value <= high:
            with pytest.raises(InvalidValueError) as caught:
                arrays.hash_code(np.append(array, np.array([value], dtype)), key_type)
            assert str(caught.value) == (
                f"key {len(inside)}: key of type {key_type} must be from {low} to {high}, "
                f"got {value}"
            )


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8"])
def test_the_least_integer_of_32_bits_at_most_is_ambiguous(dtype: str) -> None:
    """As -2^31, which hashes to itself as an Integer and to 2^31 - 1 as a Long."""
    least = max(np.iinfo(dtype).min, -(2**31))
    with pytest.raises(AmbiguousKeyTypeError, match=f"^key 1: key {least} hashes differently"):
        arrays.hash_code(np.array([0, least], dtype))


def test_hashes_and_key_groups_out_of_bounds_are_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"key_hash 1: .*got 2147483648"):
        arrays.compute_key_group_for_key_hash(np.array([0, 2**31]), 128)
    with pytest.raises(InvalidValueError, match=r"key_group_id 0: .* from 0 to 127, got -1"):
        arrays.compute_operator_index_for_key_group(128, 4, np.array([-1]))
    with pytest.raises(InvalidValueError, match="got 128"):
        arrays.compute_operator_index_for_key_group(128, 4, np.array([128], "u1"))
    with pytest.raises(InvalidTypeError, match="key_hash must be integers"):
        arrays.compute_key_group_for_key_hash(np.array([0.5]), 128)
    one = np.array([1])
    of_keys = (arrays.assign_to_key_group, arrays.key_group_load)
    for call in (*of_keys, arrays.compute_key_group_for_key_hash):
        with pytest.raises(ParallelismError, match=r"^max_parallelism must be from 1 to 32768"):
            call(one, -1)
    with pytest.raises(ParallelismError, match=r"^parallelism must be from 1 to 128"):
        arrays.assign_key_to_parallel_operator(one, 128, 129)
    with pytest.raises(ParallelismError, match=r"^parallelism must be from 1 to 128"):
        arrays.compute_operator_index_for_key_group(128, 129, one)


@pytest.mark.parametrize("missing", ["numpy", "pyarrow"])
def test_a_missing_extra_is_named(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, "keygroups.arrays")
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'keygroups\[arrays\]'$"):
        importlib.import_module("keygroups.arrays")
