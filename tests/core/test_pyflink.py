"""PyFlink's key_by: a Row around the key.

The vectors were made by PyFlink 2.3.0's own coders and real Flink's Row. `pytest -rP` shows
the counts.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from typing import Any

import pytest
from support.golden import lines
from support.inside.values import instant_code
from support.keys.pyflink_values import TYPES, decode

from keygroups import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    UnsupportedKeyTypeError,
    assign_key_to_parallel_operator,
    assign_to_key_group,
    compute_key_group_for_key_hash,
    hash_code,
    trace_key,
)
from keygroups.types import (
    BIG_INT,
    CHAR,
    DOUBLE,
    INT,
    LIST,
    LONG,
    MAP,
    NULL,
    OPTIONAL,
    PYFLINK,
    ROW,
    SET,
    SQL_DATE,
    SQL_ROW,
    SQL_TIME,
    SQL_TIMESTAMP,
    STRING,
    TUPLE,
    UUID,
    KeyType,
)


def test_vectors() -> None:
    counts: Counter[str] = Counter()
    for line in lines("independent/pyflink"):
        counts["lines"] += 1
        groups = {int(mp): group for mp, group in line["kg"].items()}
        for mp, group in groups.items():
            assert compute_key_group_for_key_hash(line["hash"], mp) == group, line
        if line["key_type"] is None:
            with pytest.raises(InvalidTypeError, match="PYFLINK needs the key_type of key_by"):
                PYFLINK(line["key_type"])
            counts["pickled, refused"] += 1
            continue
        key_type = PYFLINK(TYPES[line["key_type"]])
        value = line["value"]
        if value["t"] == "Instant":
            if value["v"]["nanos"] % 1000:  # more than a datetime holds
                code = 62 + instant_code(int(value["v"]["seconds"]), value["v"]["nanos"])
                assert (code - line["hash"]) % 2**32 == 0, line
                counts["instant by formula"] += 1
                continue
            epoch = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
            micros = value["v"]["nanos"] // 1000
            key = epoch + dt.timedelta(seconds=int(value["v"]["seconds"]), microseconds=micros)
        else:
            key = decode(value)
        if line["key_type"] == "SQL_TIMESTAMP" and key.year < 1970 and key.microsecond:
            # Here PyFlink's Timestamp is not that of the key but a second later.
            late = hash_code(key + dt.timedelta(seconds=1), TYPES["SQL_TIMESTAMP"])
            assert (62 + late - line["hash"]) % 2**32 == 0, line
            with pytest.raises(InvalidValueError, match="moves it by one second"):
                hash_code(key, key_type)
            counts["moved by a second, refused"] += 1
            continue
        assert hash_code(key, key_type) == line["hash"], line
        for mp, group in groups.items():
            assert assign_to_key_group(key, mp, key_type) == group, line
        counts["hash_code"] += 1
    print("pyflink:", dict(counts))
    assert counts["lines"] == 1293
    assert counts["pickled, refused"] == 452
    assert counts["moved by a second, refused"] == 10
    assert counts["hash_code"] > 780


def test_none_is_a_key() -> None:
    """AddKey's Row holds the None, and a Row of one null hashes to 31 (vectors)."""
    for key_type in (STRING, DOUBLE, TUPLE(INT), LIST(INT), SQL_TIMESTAMP("UTC")):
        assert hash_code(None, PYFLINK(key_type)) == 31
    assert assign_to_key_group(None, 128, PYFLINK(STRING)) == 123
    assert trace_key(None, 128, 2, PYFLINK(STRING)).subtask == 1


def test_keys_0_and_1_swap_sides() -> None:
    """Reported by running jobs: at parallelism 2 both reach subtask 0, not 1 as in Java."""
    for key_type in (INT, LONG):
        for key in (0, 1):
            assert assign_key_to_parallel_operator(key, 128, 2, PYFLINK(key_type)) == 0
            assert assign_key_to_parallel_operator(key, 128, 2, key_type) == 1


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("2514-05-30T01:53:03.999999", -3938),
        ("2514-05-30T01:53:04.999998", 3205),
        ("3000-01-01T00:00:00.999998", -632488282),
        ("9999-12-31T23:59:59.999984", -769704506),
    ],
)
def test_timestamps_that_a_float_holds(text: str, code: int) -> None:
    """PyFlink 2.3.0's compiled coder sends these milliseconds; 62 more than their Long's hash."""
    assert hash_code(dt.datetime.fromisoformat(text), PYFLINK(SQL_TIMESTAMP("UTC"))) == code


@pytest.mark.parametrize(
    "text",
    [
        "2514-05-30T01:53:04.999999",  # 2^34 seconds, from where a double has 2^-18 at most
        "3000-01-01T00:00:00.999999",  # Flink hashes -632489346, a second more
        "9999-12-31T23:59:59.999985",
        "1969-12-31T23:59:59.000001",
    ],
)
def test_timestamps_that_pyflink_moves_by_a_second(text: str) -> None:
    """The compiled coder of process mode rounds them; thread mode hands over the fields."""
    key = dt.datetime.fromisoformat(text)
    with pytest.raises(InvalidValueError, match="process mode moves it by one second"):
        hash_code(key, PYFLINK(SQL_TIMESTAMP("UTC")))


@pytest.mark.parametrize(
    "key_type",
    [
        CHAR,
        BIG_INT,
        UUID,
        NULL,
        SET(INT),
        OPTIONAL(INT),
        ROW(INT, kind="-D"),
        ROW(INT, names=["a"]),
        SQL_DATE("Europe/Berlin"),
        SQL_TIME("Europe/Berlin"),
        SQL_TIMESTAMP("Europe/Berlin"),
        TUPLE(STRING, BIG_INT),
        LIST(TUPLE(CHAR)),
        MAP(STRING, SET(INT)),
        MAP(UUID, INT),
        ROW(LIST(OPTIONAL(INT))),
        TUPLE(SQL_TIMESTAMP("UTC")),
    ],
    ids=repr,
)
def test_types_that_pyflink_cannot_key_by(key_type: KeyType) -> None:
    with pytest.raises(UnsupportedKeyTypeError, match=r"^PYFLINK cannot hold .*SQL_TIME\('UTC'\)"):
        PYFLINK(key_type)


@pytest.mark.parametrize("arguments", [(), (None,)])
def test_without_a_key_type_the_message_says_what_to_do(arguments: Any) -> None:
    with pytest.raises(InvalidTypeError) as caught:
        PYFLINK(*arguments)
    for words in (
        "pickled key",
        "version of Python",
        "protocol",
        "execution mode",
        "pass key_type",
    ):
        assert words in str(caught.value)


@pytest.mark.parametrize("key_type", ["STRING", str, 5, (INT,)], ids=repr)
def test_what_is_no_key_type(key_type: Any) -> None:
    with pytest.raises(InvalidTypeError, match=r"^PYFLINK is made of key types such as"):
        PYFLINK(key_type)


@pytest.mark.parametrize("whole", [PYFLINK(INT), SQL_ROW("INT")], ids=repr)
@pytest.mark.parametrize(
    "make",
    [
        lambda t: TUPLE(INT, t),
        lambda t: ROW(INT, t),
        lambda t: MAP(INT, t),
        lambda t: PYFLINK(t),
        lambda t: LIST(t),
        lambda t: SET(t),
        lambda t: OPTIONAL(t),
    ],
)
def test_a_whole_key_stands_in_no_other(make: Any, whole: KeyType) -> None:
    with pytest.raises(
        InvalidTypeError, match=f"cannot hold {re.escape(repr(whole))} at position"
    ):
        make(whole)


@pytest.mark.parametrize(
    ("key", "key_type", "error", "says"),
    [
        ("1", INT, InvalidTypeError, "key of type INT must be an int, got '1'"),
        (2**31, INT, InvalidValueError, "key of type INT must be from"),
        (("a", 2**31), TUPLE(STRING, INT), InvalidValueError, "field 1: key of type INT"),
        ([1, "a"], LIST(INT), InvalidTypeError, "element 1: key of type INT"),
        (5, SQL_TIMESTAMP("UTC"), InvalidTypeError, "key of type SQL_TIMESTAMP must be a naive"),
        (
            dt.datetime(1969, 12, 31, 23, 59, 59, 500_000),
            SQL_TIMESTAMP("UTC"),
            InvalidValueError,
            "key of type PYFLINK(SQL_TIMESTAMP('UTC')) must not be before 1970 with a fraction",
        ),
    ],
)
def test_values_that_a_type_does_not_hold(
    key: object, key_type: KeyType, error: type[KeyGroupsError], says: str
) -> None:
    with pytest.raises(error, match=re.escape(says)):
        hash_code(key, PYFLINK(key_type))
