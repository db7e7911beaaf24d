"""Values are checked without their hash, and exactly as strictly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from enum import Enum, IntEnum
from itertools import product
from typing import Any

import pytest
from support.hostile_values import HOSTILE, OwnError
from support.inside import serializers
from support.inside.serializers import TupleSerializer, check_value, checked_write

from keygroups import hashing
from keygroups.errors import InvalidTypeError, InvalidValueError, KeyGroupsError
from keygroups.hashing import hash_code
from keygroups.state_keys import BYTES, Row, serializer_of
from keygroups.types import (
    BOOLEAN,
    BYTE,
    CHAR,
    DOUBLE,
    FLOAT,
    INT,
    LIST,
    LONG,
    MAP,
    PYFLINK,
    ROW,
    SET,
    SHORT,
    SQL_ROW,
    STRING,
    TUPLE,
    KeyType,
)


class Color(Enum):
    RED = 1


class Level(IntEnum):
    LOW = 1


SCALARS = [BOOLEAN, BYTE, SHORT, INT, LONG, FLOAT, DOUBLE, CHAR, STRING]
TYPES: list[KeyType] = [
    *SCALARS,
    *map(LIST, SCALARS),
    ROW(STRING),
    TUPLE(LONG),
    TUPLE(STRING, LIST(TUPLE(INT, STRING)), ROW(CHAR)),
    LIST(LIST(STRING)),
    PYFLINK(STRING),
    PYFLINK(TUPLE(INT, STRING)),
    SQL_ROW("INT", "STRING"),
    SQL_ROW("DECIMAL(10, 2)", "STRING"),
    SQL_ROW("ROW<a INT, b ARRAY<DOUBLE>>"),
]
VALUES: list[Callable[[], Any]] = [
    *(make for _, make in HOSTILE),
    *(lambda one=one: one for one in (Color.RED, Level.LOW, "a", "abcd", 5, 2**7, 2**15, b"a")),
    *(lambda one=one: one for one in (Decimal("1.234"), 1.1, (1, "a"), (Decimal("1.25"), "abc"))),
    lambda: ((1, [0.5, None]),),
    lambda: ((None, []),),
    lambda: (Row((1, [0.5]), "-U"),),
    lambda: Row((1, "a"), "-D"),
    lambda: Row(("a",), "-U"),
    lambda: ("a", [(1, None), None], Row(("b",))),
    lambda: ("a", [(1, "b"), (1,)], Row(("b",))),
    lambda: ("a", [], Row(("b",), "+U")),
    lambda: [["a", None], [5]],
]


KIND = "must be a row of kind"


def outcome(check: Callable[[object, KeyType], object], value: object, key_type: KeyType) -> str:
    """Return the error that a check raises, "taken" without one."""
    try:
        check(value, key_type)
    except KeyGroupsError as error:
        if KIND in str(error):
            return KIND
        return type(error).__name__.replace("UnsupportedKeyTypeError", "InvalidTypeError")
    except OwnError:
        return "OwnError"
    return "taken"


def check_row(value: object, key_type: KeyType) -> None:
    """Check a row of Flink SQL, which is done where it is written."""
    checked_write("value", serializer_of(key_type), value)


@pytest.mark.branch
@pytest.mark.long
def test_what_hashing_refuses_is_refused() -> None:
    """And nothing else, but that a row, "+I" as a key, may be of any kind."""
    counts: Counter[str] = Counter()
    for key_type in TYPES:
        wraps = [lambda one: one]
        if key_type not in SCALARS:
            wraps += [lambda one: (one,), lambda one: [one]]
        for make, wrap in product(VALUES, wraps):
            value = wrap(make())
            expected = outcome(hash_code, value, key_type)
            check = check_row if isinstance(key_type, SQL_ROW) else check_value
            seen = outcome(check, value, key_type)
            assert seen == ("taken" if expected == KIND else expected), (key_type, value)
            counts[expected] += 1
    assert counts["taken"] > 100
    assert counts["InvalidTypeError"] > 1_000
    assert counts["InvalidValueError"] > 300
    assert counts[KIND] == 4


def test_text_is_not_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a text of a million characters that is most of the time."""

    def fail(*_: object) -> int:
        raise AssertionError("a value is hashed")

    monkeypatch.setitem(hashing._HASHERS, STRING, fail)
    monkeypatch.setattr(hashing, "_murmur3", fail)
    monkeypatch.setattr(hashing, "fold", fail)
    serializers._check_of.cache_clear()
    for key_type, value in (
        (STRING, "a"),
        (LIST(STRING), ["a", "b"]),
        (TUPLE(STRING, INT), ("a", 1)),
        (ROW(STRING), ("a",)),
        (SQL_ROW("STRING"), ("a",)),
    ):
        serializer = serializer_of(key_type)
        assert serializer.write is not None
        assert checked_write("value", serializer, value) == serializer.write(value)
    serializers._check_of.cache_clear()


WORDS: list[tuple[KeyType, Any, type[KeyGroupsError], str]] = [
    (INT, "a", InvalidTypeError, "n: value of type INT must be an int, got 'a' of class str"),
    (INT, None, InvalidValueError, "n: value of type INT must not be None"),
    (STRING, None, InvalidValueError, "n: value of type STRING must not be None"),
    (STRING, 5, InvalidTypeError, "n: value of type STRING must be a str, got 5 of class int"),
    (
        *(LIST(INT), ["key of type"], InvalidTypeError),
        "n: element 0: value of type INT must be an int, got 'key of type' of class str",
    ),
    (LIST(INT), 5, InvalidTypeError, "n: value of type LIST must be a list, got 5 of class int"),
    (
        *(SET(INT), 5, InvalidTypeError),
        "n: value of type SET must be a set, or a list of its elements, got 5 of class int",
    ),
    (
        *(MAP(INT, INT), 5, InvalidTypeError),
        "n: value of type MAP must be a dict, or a list of pairs, got 5 of class int",
    ),
    (
        *(SET(INT), {"a"}, InvalidTypeError),
        "n: element 0: value of type INT must be an int, got 'a' of class str",
    ),
    (
        *(MAP(INT, INT), {"a": 5}, InvalidTypeError),
        "n: map key 0: value of type INT must be an int, got 'a' of class str",
    ),
    (
        *(MAP(INT, INT), {5: "a"}, InvalidTypeError),
        "n: map value 0: value of type INT must be an int, got 'a' of class str",
    ),
    (
        *(ROW(INT), "a", InvalidTypeError),
        "n: value of type ROW(INT) must be a tuple of one field, (value,), got 'a' of class str",
    ),
    (
        *(TUPLE(INT, INT), (5, "a"), InvalidTypeError),
        "n: field 1: value of type INT must be an int, got 'a' of class str",
    ),
    (
        *(SQL_ROW("INT"), ("a",), InvalidTypeError),
        "n: field 0: value of type INT must be an int, got 'a' of class str",
    ),
    (
        *(INT, Level.LOW, InvalidTypeError),
        "n: value of type INT must not be an enum or hold one, got <Level.LOW: 1>",
    ),
    (
        *(SQL_ROW("INT"), (Level.LOW,), InvalidTypeError),
        "n: value of type ROW<INT> must not be an enum or hold one, got (<Level.LOW: 1>,)",
    ),
    (
        *(TUPLE(STRING), (Color.RED,), InvalidTypeError),
        "n: value of type TUPLE(STRING) must not be an enum or hold one, got (<Color.RED: 1>,)",
    ),
]


@pytest.mark.parametrize(("key_type", "value", "error", "text"), WORDS)
def test_errors_say_value(
    key_type: KeyType, value: Any, error: type[KeyGroupsError], text: str
) -> None:
    with pytest.raises(error) as raised:
        checked_write("n", serializer_of(key_type), value)
    assert str(raised.value) == text


def test_errors_of_what_has_no_key_type_say_value() -> None:
    serializer = TupleSerializer([BYTES, serializer_of(INT)])
    with pytest.raises(
        InvalidValueError, match=r"^n: value of type TUPLE\(BYTES, INT\) must have"
    ):
        checked_write("n", serializer, (b"a",))
    with pytest.raises(InvalidTypeError, match=r"^n: value of type INT must be an int"):
        checked_write("n", serializer, (b"a", "b"))
