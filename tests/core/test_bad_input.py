"""Nothing but bad input: each raises the documented error, whose message names what is wrong."""

from __future__ import annotations

import datetime as dt
import re
import uuid
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from support.growth import count_bytes

import keygroups
from keygroups import (
    AmbiguousKeyTypeError,
    InvalidTypeError,
    InvalidValueError,
    KeyGroupLoad,
    KeyGroupRange,
    KeyGroupsError,
    ParallelismError,
    UnsupportedKeyTypeError,
)
from keygroups._values import java_lang
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
    MAP,
    NULL,
    OPTIONAL,
    ROW,
    SCALA_BIG_INT,
    SET,
    SHORT,
    SQL_DATE,
    SQL_ROW,
    SQL_TIME,
    SQL_TIMESTAMP,
    STRING,
    TUPLE,
    UUID,
    KeyType,
)

UTC = dt.timezone.utc


class Color(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


class Text(str):
    pass


class Code(str, Enum):
    A = "a"


Point = namedtuple("Point", "x y")


class FakeNaT(dt.datetime):
    """Like pandas' NaT: a datetime that does not equal itself."""

    def __ne__(self, other: object) -> bool:
        return True


class FakeTimestamp(dt.datetime):
    """Like pandas' Timestamp: a datetime with nanoseconds."""

    nanosecond = 1


# --- keys that no key type is inferred for ----------------------------------------------


@pytest.mark.parametrize(
    ("key", "says"),
    [
        (b"abc", "array's hashCode is its identity"),
        (bytearray(b"abc"), "array's hashCode is its identity"),
        (memoryview(b"abc"), "array's hashCode is its identity"),
        (Color.RED, "enum's hashCode is its identity"),
        (Level.LOW, "enum's hashCode is its identity"),
        (Code.A, "enum's hashCode is its identity"),
        (object(), "hashCode of its Java class is not known"),
        (1j, "hashCode of its Java class is not known"),
        (dt.timedelta(1), "hashCode of its Java class is not known"),
        (range(3), "hashCode of its Java class is not known"),
        (Text("abc"), "pass key_type"),
        (Point(1, 2), "pass key_type"),
        (OrderedDict(a=1), "pass key_type"),
        ([1, "a"], "list of several types (INT, STRING)"),
        ({1: "a", 2: 3}, "dict of several types (INT, STRING)"),
        ({1, 1.5}, "set of several types (DOUBLE, INT)"),
        ([[1], ["a"]], "list of several types"),
        (2**63, "beyond Long's 64 bits"),
        (-(2**63) - 1, "beyond Long's 64 bits"),
        pytest.param(10**5000, "int too long to print", id="10**5000"),
        ((1, b"x"), "array's hashCode is its identity"),
    ],
)
def test_unsupported_without_key_type(key: object, says: str) -> None:
    with pytest.raises(UnsupportedKeyTypeError, match=re.escape(says)) as caught:
        keygroups.assign_to_key_group(key, 128)
    assert isinstance(caught.value, (KeyGroupsError, TypeError))


def test_unsupported_names_the_way_out() -> None:
    with pytest.raises(UnsupportedKeyTypeError, match="compute_key_group_for_key_hash"):
        keygroups.hash_code(b"abc")


@pytest.mark.parametrize("key", [-1, -(2**31), (1, -1), [-5], {-1: "a"}, {"a": -1}])
def test_negative_int_is_ambiguous(key: object) -> None:
    with pytest.raises(AmbiguousKeyTypeError, match="hashes differently as Integer and as Long"):
        keygroups.hash_code(key)


def test_ambiguity_is_a_bad_value_and_a_bad_type() -> None:
    assert issubclass(AmbiguousKeyTypeError, (ValueError, TypeError))
    assert issubclass(AmbiguousKeyTypeError, ValueError)


# --- None ------------------------------------------------------------------------------

ALL_TYPES = [
    None,
    BOOLEAN,
    BYTE,
    SHORT,
    INT,
    LONG,
    FLOAT,
    DOUBLE,
    CHAR,
    STRING,
    BIG_INT,
    BIG_DEC,
    LOCAL_DATE,
    LOCAL_TIME,
    LOCAL_DATE_TIME,
    INSTANT,
    UUID,
    NULL,
    SQL_DATE("UTC"),
    SQL_TIME("UTC"),
    SQL_TIMESTAMP("UTC"),
    TUPLE(INT),
    ROW(INT),
    LIST(INT),
    SET(INT),
    MAP(INT, INT),
    SQL_ROW("INT"),
]


@pytest.mark.parametrize("key_type", ALL_TYPES, ids=repr)
def test_none_is_no_key(key_type: KeyType | None) -> None:
    # Flink: "Assigned key must not be null!"
    with pytest.raises(InvalidValueError, match="assigned key must not be null"):
        keygroups.hash_code(None, key_type)


# --- keys that their declared type does not hold ------------------------------------------


@pytest.mark.parametrize("key_type", ALL_TYPES[1:], ids=repr)
def test_a_key_type_is_named_by_what_it_does_not_take(key_type: KeyType) -> None:
    name = repr(key_type).partition("(")[0]
    with pytest.raises(
        InvalidTypeError, match=rf"^key of type {name}\b.* got 1j of class complex$"
    ):
        keygroups.hash_code(1j, key_type)


@pytest.mark.parametrize(
    ("key", "key_type", "says"),
    [
        (128, BYTE, "key of type BYTE must be from -128 to 127, got 128"),
        (-129, BYTE, "-128 to 127"),
        (2**15, SHORT, "type SHORT must be from -32768 to 32767, got 32768"),
        (2**31, INT, "type INT must be from -2147483648 to 2147483647, got 2147483648"),
        (-(2**31) - 1, INT, "got -2147483649"),
        (2**63, LONG, f"type LONG must be from -{2**63} to {2**63 - 1}, got 9223372036854775808"),
        (-(2**63) - 1, LONG, "got -9223372036854775809"),
        pytest.param(10**5000, LONG, "got int too long to print", id="10**5000"),
        ("ab", CHAR, "one UTF-16 code unit, got 'ab'"),
        ("", CHAR, "one UTF-16 code unit, got ''"),
        ("\U0001f600", CHAR, "one UTF-16 code unit"),
        ("\U00010000", CHAR, "one UTF-16 code unit, got '\U00010000'"),
        (1e300, FLOAT, "single-precision number, got 1e+300"),
        (0.1, FLOAT, "key of type FLOAT must be a single-precision number, got 0.1"),
        (5e-324, FLOAT, "single-precision number"),
        (Decimal("NaN"), BIG_DEC, "must be finite"),
        (Decimal("Infinity"), BIG_DEC, "must be finite"),
        (Decimal("1E+2147483649"), BIG_DEC, "scale"),
        (Decimal("1E-2147483648"), BIG_DEC, "scale"),
        (dt.time(1, 2, 3, 500), SQL_TIME("UTC"), "whole milliseconds"),
        (dt.date(1582, 10, 14), SQL_DATE("UTC"), "must be from 1582-10-15"),
        (dt.datetime(1, 1, 1), SQL_TIMESTAMP("UTC"), "must be from 1582-10-15"),
        (
            dt.date(1969, 12, 31),
            SQL_DATE("Europe/Berlin"),
            "must be from 1970-01-01 to 2036-12-31",
        ),
        (dt.date(2037, 1, 1), SQL_DATE("Europe/Berlin"), "must be from 1970-01-01 to 2036-12-31"),
        ({float("nan"), -float("nan")}, SET(DOUBLE), "elements must differ in Java too"),
        ({float("nan"): 1, -float("nan"): 2}, MAP(DOUBLE, INT), "map keys must differ in Java"),
        ({(float("nan"),), (-float("nan"),)}, SET(TUPLE(DOUBLE)), "elements must differ"),
        ({"\U0001f600", "\ud83d\ude00"}, SET(STRING), "elements must differ in Java too"),
        (
            {
                dt.datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")),
                dt.datetime(2024, 10, 27, 0, 30, tzinfo=UTC),
            },
            SET(INSTANT),
            "elements must differ in Java too",
        ),
        (dt.datetime(2024, 3, 31, 2, 30), SQL_TIMESTAMP("Europe/Berlin"), "skips or repeats"),
        (dt.datetime(2024, 10, 27, 2, 30), SQL_TIMESTAMP("Europe/Berlin"), "skips or repeats"),
        (FakeNaT(2024, 1, 1), LOCAL_DATE_TIME, "whole microseconds"),
        (FakeTimestamp(2024, 1, 1), LOCAL_DATE_TIME, "whole microseconds"),
        (FakeTimestamp(2024, 1, 1, tzinfo=UTC), INSTANT, "whole microseconds"),
        (("a",), TUPLE(STRING, INT), "must have 2 fields, got 1"),
        (("a", 1, 2), TUPLE(STRING, INT), "must have 2 fields, got 3"),
        ((), ROW(INT), "must have 1 fields, got 0"),
        (("a", 2**31), TUPLE(STRING, INT), "field 1: key of type INT"),
        ((1, (2, 300)), ROW(INT, TUPLE(INT, BYTE)), "field 1: field 1: key of type BYTE"),
        ([1, 300], LIST(BYTE), "element 1: key of type BYTE"),
        ({300}, SET(BYTE), "element 0: key of type BYTE"),
        ({1: 300}, MAP(BYTE, BYTE), "map value 0: key of type BYTE"),
        ({300: 1}, MAP(BYTE, BYTE), "map key 0: key of type BYTE"),
        (300, OPTIONAL(BYTE), "key of type BYTE"),
    ],
)
def test_value_outside_its_type(key: object, key_type: KeyType, says: str) -> None:
    with pytest.raises(InvalidValueError, match=re.escape(says)) as caught:
        keygroups.hash_code(key, key_type)
    assert isinstance(caught.value, ValueError)


def test_big_integer_ends_where_java_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a bound of fewer bits, as a number of that many takes 256 MB."""
    assert java_lang._BIG_INT_MAX_BITS == 2**31 - 1
    monkeypatch.setattr(java_lang, "_BIG_INT_MAX_BITS", 63)
    assert keygroups.hash_code(2**63 - 1, BIG_INT) == 2147483616  # the JDK's
    with pytest.raises(InvalidValueError, match="at most 63 bits, got 64"):
        keygroups.hash_code(2**63, BIG_INT)
    with pytest.raises(InvalidValueError, match="type SCALA_BIG_INT must have at most 63 bits"):
        keygroups.hash_code(2**64, SCALA_BIG_INT)


def test_a_big_integer_takes_no_more_words_than_java_s() -> None:
    """BigInteger.hashCode: 31 times the code, plus the word; 1001 words of four bytes."""
    assert keygroups.hash_code(1 << 32_000, BIG_INT) % 2**32 == pow(31, 1_000, 2**32)
    assert count_bytes(lambda: keygroups.hash_code((1 << 32_032) - 1, BIG_INT)) < 1_001 * 100


@pytest.mark.parametrize("key_type", ALL_TYPES[1:], ids=repr)
def test_what_no_type_holds_is_told_by_its_type(key_type: KeyType) -> None:
    name = repr(key_type)
    if not isinstance(key_type, (ROW, TUPLE, SQL_ROW)):  # whose fields are told too
        name = name.partition("(")[0]
    with pytest.raises(InvalidTypeError, match=re.escape(f"key of type {name} must be ")):
        keygroups.hash_code(object(), key_type)


@pytest.mark.parametrize(
    ("key", "key_type", "says"),
    [
        (True, INT, "must be an int, got True of class bool"),
        (True, BYTE, "must be an int, got True"),
        (True, LONG, "must be an int, got True"),
        (False, BIG_INT, "must be an int, got False"),
        (1.0, INT, "must be an int, got 1.0"),
        ("1", LONG, "must be an int, got '1'"),
        (1, BOOLEAN, "must be a bool, got 1"),
        (1, DOUBLE, "must be a float, got 1 of class int"),
        (1, FLOAT, "must be a float, got 1"),
        ("1.5", BIG_DEC, "must be a Decimal"),
        (1.5, BIG_DEC, "must be a Decimal"),
        (1, STRING, "must be a str, got 1 of class int"),
        (b"abc", STRING, "must be a str, got b'abc' of class bytes"),
        (97, CHAR, "must be a str"),
        ("123e4567-e89b-12d3-a456-426614174000", UUID, "must be a uuid.UUID"),
        (dt.datetime(2024, 1, 1), LOCAL_DATE, "must be a date, got the datetime"),
        ("2024-01-01", LOCAL_DATE, "must be a date"),
        (dt.datetime(2024, 1, 1), SQL_DATE("UTC"), "must be a date, got the datetime"),
        (dt.time(1, tzinfo=UTC), LOCAL_TIME, "must be a time without a zone"),
        (dt.time(1, tzinfo=UTC), SQL_TIME("UTC"), "must be a time without a zone"),
        (dt.datetime(2024, 1, 1, tzinfo=UTC), LOCAL_DATE_TIME, "must be a naive datetime"),
        (dt.datetime(2024, 1, 1, tzinfo=UTC), SQL_TIMESTAMP("UTC"), "must be a naive datetime"),
        (dt.datetime(2024, 1, 1), INSTANT, "must be an aware datetime"),
        (dt.date(2024, 1, 1), INSTANT, "must be an aware datetime"),
        (1704067200, INSTANT, "must be an aware datetime"),
        (["a", 1], TUPLE(STRING, INT), "must be a tuple"),
        ({"a": 1}, ROW(INT), "must be a tuple"),
        ((1, 2), LIST(INT), "must be a list"),
        ([1, 2], SET(INT), "must be a set"),
        ([(1, 2)], MAP(INT, INT), "must be a dict"),
        ((1,), TUPLE(NULL), "field 0: key of type NULL must be None"),
        ((True,), TUPLE(INT), "field 0: key of type INT must be an int, got True"),
    ],
)
def test_value_of_another_type(key: object, key_type: KeyType, says: str) -> None:
    with pytest.raises(InvalidTypeError, match=re.escape(says)) as caught:
        keygroups.hash_code(key, key_type)
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("key", "key_type"),
    [
        (Color.RED, STRING),
        (Code.A, STRING),
        (Code.A, CHAR),
        (Level.LOW, INT),
        (Level.LOW, LONG),
        (Level.LOW, BIG_INT),
        ((Level.LOW,), TUPLE(INT)),
        ((Code.A,), ROW(STRING)),
    ],
)
def test_enum_is_no_key_even_if_declared(key: object, key_type: KeyType) -> None:
    with pytest.raises(UnsupportedKeyTypeError, match="enum's hashCode is its identity"):
        keygroups.hash_code(key, key_type)


# --- key types -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key_type",
    ["STRING", str, 5, [INT], {}, TUPLE, SQL_DATE, (INT, STRING), lambda: INT, KeyType()],
)
def test_key_type_that_is_none(key_type: Any) -> None:
    with pytest.raises(InvalidTypeError, match="key_type must be a value of"):
        keygroups.hash_code("a", key_type)


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: TUPLE(INT, "INT"), InvalidTypeError, "got 'INT' at position 1"),  # type: ignore[arg-type]
        (lambda: TUPLE([INT]), InvalidTypeError, "TUPLE is made of key types"),  # type: ignore[arg-type]
        (lambda: ROW(INT, None), InvalidTypeError, "got None at position 1"),  # type: ignore[arg-type]
        (lambda: LIST(int), InvalidTypeError, "LIST is made of key types"),  # type: ignore[arg-type]
        (lambda: MAP(INT, str), InvalidTypeError, "at position 1"),  # type: ignore[arg-type]
        (lambda: TUPLE(SQL_DATE), InvalidTypeError, "SQL_DATE('UTC')"),  # type: ignore[arg-type]
        (lambda: TUPLE(*[INT] * 26), InvalidValueError, "at most 25 fields in Flink, got 26"),
        (lambda: ROW(INT, kind="I"), InvalidValueError, "one of +I, -U, +U, -D, got 'I'"),
        (lambda: ROW(INT, names=["a", "b"]), InvalidValueError, "1 different names"),
        (lambda: ROW(INT, INT, names=["a", "a"]), InvalidValueError, "2 different names"),
        (lambda: SQL_DATE("Mars/Olympus"), InvalidValueError, "zone must be an IANA"),
        (lambda: SQL_DATE("../etc"), InvalidValueError, "zone must be an IANA"),
        (lambda: SQL_TIME(UTC), InvalidTypeError, "zone must be the name"),  # type: ignore[arg-type]
    ],
)
def test_malformed_key_type(
    make: Callable[[], KeyType], error: type[KeyGroupsError], says: str
) -> None:
    with pytest.raises(error, match=re.escape(says)):
        make()


# --- parallelisms ------------------------------------------------------------------------

BAD_PARALLELISMS: list[Any] = [0, -1, 32769, 2**40, True, False, 2.0, "3", None, Level.LOW, [3]]


@pytest.mark.parametrize("value", BAD_PARALLELISMS, ids=repr)
@pytest.mark.parametrize(
    "call",
    [
        lambda v: keygroups.assign_to_key_group("a", v),
        lambda v: keygroups.compute_key_group_for_key_hash(1, v),
        lambda v: keygroups.assign_key_to_parallel_operator("a", v, 1),
        lambda v: keygroups.compute_key_group_range_for_operator_index(v, 1, 0),
        lambda v: keygroups.compute_operator_index_for_key_group(v, 1, 0),
        lambda v: keygroups.trace_key("a", v, 1),
        lambda v: KeyGroupLoad(v, [1]),
    ],
)
def test_max_parallelism(call: Callable[[Any], object], value: Any) -> None:
    with pytest.raises(ParallelismError, match="max_parallelism must be"):
        call(value)


@pytest.mark.parametrize("value", [*BAD_PARALLELISMS, 129], ids=repr)
@pytest.mark.parametrize(
    "call",
    [
        lambda v: keygroups.assign_key_to_parallel_operator("a", 128, v),
        lambda v: keygroups.compute_key_group_range_for_operator_index(128, v, 0),
        lambda v: keygroups.compute_operator_index_for_key_group(128, v, 0),
        lambda v: keygroups.trace_key("a", 128, v),
        lambda v: KeyGroupLoad(128, [1] * 128).per_subtask(v),
        lambda v: KeyGroupLoad(128, [1] * 128).imbalance(v),
    ],
)
def test_parallelism(call: Callable[[Any], object], value: Any) -> None:
    with pytest.raises(ParallelismError, match="parallelism must be"):
        call(value)


@pytest.mark.parametrize("value", BAD_PARALLELISMS, ids=repr)
def test_operator_parallelism(value: Any) -> None:
    with pytest.raises(ParallelismError, match="operator_parallelism must be"):
        keygroups.compute_default_max_parallelism(value)


def test_parallelism_error_names_value_and_bound() -> None:
    with pytest.raises(ParallelismError) as caught:
        keygroups.assign_key_to_parallel_operator("a", 128, 129)
    assert str(caught.value) == "parallelism must be from 1 to 128 (max_parallelism), got 129"
    assert isinstance(caught.value, ValueError)
    with pytest.raises(ParallelismError) as caught:
        keygroups.assign_to_key_group("a", "128")  # type: ignore[arg-type]
    assert str(caught.value) == "max_parallelism must be an int, got '128' of class str"
    assert isinstance(caught.value, TypeError)


# --- indexes and hashes --------------------------------------------------------------------


@pytest.mark.parametrize("index", [-1, 3, 2**31, True, 1.0, "1", None], ids=repr)
def test_operator_index(index: Any) -> None:
    with pytest.raises(KeyGroupsError, match="operator_index must be"):
        keygroups.compute_key_group_range_for_operator_index(128, 3, index)


@pytest.mark.parametrize("key_group", [-1, 128, 2**31, True, 1.0, "1", None], ids=repr)
def test_key_group_id(key_group: Any) -> None:
    with pytest.raises(KeyGroupsError, match="key_group_id must be"):
        keygroups.compute_operator_index_for_key_group(128, 3, key_group)


@pytest.mark.parametrize("code", [2**31, -(2**31) - 1, True, 1.0, "1", None], ids=repr)
def test_hash(code: Any) -> None:
    with pytest.raises(KeyGroupsError, match="code must be"):
        keygroups.murmur_hash(code)
    with pytest.raises(KeyGroupsError, match="key_hash must be"):
        keygroups.compute_key_group_for_key_hash(code, 128)


@pytest.mark.parametrize(
    "bounds", [(-1, 5), (5, 4), (0, -1), (0, 32768), (True, 5), (0, 2.0), ("0", 1), (None, None)]
)
def test_range_bounds(bounds: Any) -> None:
    name = "end" if bounds[0] in (0, 5) else "start"
    with pytest.raises(KeyGroupsError, match=f"^{name}_key_group must be"):
        KeyGroupRange(*bounds)


def test_range_operations() -> None:
    found = KeyGroupRange(10, 19)
    for index in (10, -11):
        with pytest.raises(IndexError):
            found[index]
    with pytest.raises(InvalidTypeError, match="index must be an int"):
        found[0:2]  # type: ignore[index]
    with pytest.raises(InvalidTypeError, match="other must be a KeyGroupRange"):
        found.intersection(range(5))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        found & 5
    with pytest.raises(AttributeError):
        found.start_key_group = 3  # type: ignore[misc]


# --- loads ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "error", "says"),
    [
        ([1, 2, 3], InvalidValueError, "weights must be 4 numbers"),
        ([1] * 5, InvalidValueError, "weights must be 4 numbers"),
        ([1, -1, 1, 1], InvalidValueError, "weight of key group 1 must be a finite number"),
        ([1, 1, float("nan"), 1], InvalidValueError, "weight of key group 2"),
        ([1, 1, 1, float("inf")], InvalidValueError, "weight of key group 3"),
        ([True, 1, 1, 1], InvalidTypeError, "weight of key group 0 must be a number"),
        (["1", 1, 1, 1], InvalidTypeError, "weight of key group 0 must be a number"),
    ],
)
def test_weights(weights: Any, error: type[KeyGroupsError], says: str) -> None:
    with pytest.raises(error, match=says):
        KeyGroupLoad(4, weights)


def test_long_values_are_cut_short_in_messages() -> None:
    with pytest.raises(InvalidTypeError) as caught:
        keygroups.hash_code("x" * 10_000, UUID)
    assert len(str(caught.value)) < 250


def test_uuid_text_is_no_uuid() -> None:
    text = "123e4567-e89b-12d3-a456-426614174000"
    assert keygroups.hash_code(uuid.UUID(text)) != keygroups.hash_code(text)
