"""PyFlink's key_by: a Row around the key.

The vectors were made by PyFlink 2.3.0's own coders and real Flink's Row. `pytest -rP` shows
the counts.
"""

from __future__ import annotations

import datetime as dt
import math
import pickle
import re
import struct
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any, cast

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
from keygroups.savepoint.pyflink import Pickle
from keygroups.savepoint.values import Row
from keygroups.state_keys import serializer_of
from keygroups.types import (
    BIG_DEC,
    BIG_INT,
    BOOLEAN,
    BYTE,
    CHAR,
    DOUBLE,
    FLOAT,
    INT,
    LIST,
    LONG,
    MAP,
    NULL,
    OPTIONAL,
    PYFLINK,
    ROW,
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


def test_vectors() -> None:
    counts: Counter[str] = Counter()
    for line in lines("independent/pyflink"):
        counts["lines"] += 1
        groups = {int(mp): group for mp, group in line["kg"].items()}
        for mp, group in groups.items():
            assert compute_key_group_for_key_hash(line["hash"], mp) == group, line
        if line["key_type"] is None:
            pickled = bytes.fromhex(line["key_bytes"])
            key_type = PYFLINK(protocol=5 if line["pickler"] == "cloudpickle" else 4)
            assert hash_code(Pickle(pickled), key_type) == line["hash"], line
            counts["pickled"] += 1
            # None is a null in the Row of a job; a set has several pickles, a Row is the job's.
            if line["value"]["t"] not in ("None", "frozenset", "Row"):
                assert hash_code(decode(line["value"]), key_type) == line["hash"], line
                counts["pickled and read"] += 1
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
    assert (counts["pickled"], counts["pickled and read"]) == (452, 446)
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


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: PYFLINK(protocol=3), InvalidValueError, "protocol must be from 4 to 5, got 3"),
        (
            lambda: PYFLINK(protocol=cast(Any, "5")),
            InvalidTypeError,
            "protocol must be an int, got '5'",
        ),
        (lambda: PYFLINK(INT, protocol=5), InvalidTypeError, "protocol must be None where there"),
        (
            lambda: PYFLINK(INT, thread_mode=cast(Any, 1)),
            InvalidTypeError,
            "thread_mode must be a bool",
        ),
        (
            lambda: PYFLINK(INT, as_pyflink_converts=cast(Any, "yes")),
            InvalidTypeError,
            "as_pyflink_converts must be a bool, got 'yes'",
        ),
        (
            lambda: PYFLINK(as_pyflink_converts=True),
            InvalidValueError,
            "as_pyflink_converts must be False in thread mode and without a key type",
        ),
        (
            lambda: PYFLINK(INT, thread_mode=True, as_pyflink_converts=True),
            InvalidValueError,
            "as_pyflink_converts must be False in thread mode",
        ),
    ],
)
def test_options_that_do_not_go_together(
    make: Callable[[], KeyType], error: type[KeyGroupsError], says: str
) -> None:
    with pytest.raises(error, match=re.escape(says)):
        make()


@pytest.mark.parametrize(
    "text",
    [
        "PYFLINK()",
        "PYFLINK(protocol=4)",
        "PYFLINK(thread_mode=True)",
        "PYFLINK(thread_mode=True, protocol=5)",
        "PYFLINK(INT)",
        "PYFLINK(INT, thread_mode=True)",
        "PYFLINK(INT, as_pyflink_converts=True)",
    ],
)
def test_options_are_in_the_repr_and_in_pickles(text: str) -> None:
    made = eval(text, {"PYFLINK": PYFLINK, "INT": INT})
    assert repr(made) == text
    assert pickle.loads(pickle.dumps(made)) == made
    assert (made == PYFLINK(INT)) == (text == "PYFLINK(INT)")


def test_keys_without_a_type() -> None:
    """PyFlink's process mode has protocol 5, its thread mode 4; None is no pickle."""
    code = hash_code("hello", PYFLINK())
    assert code == -177558165
    assert hash_code("hello", PYFLINK(thread_mode=True)) == 666913706
    assert hash_code("hello", PYFLINK(thread_mode=True, protocol=5)) == code
    assert hash_code(None, PYFLINK()) == 31
    assert assign_to_key_group("hello", 128, PYFLINK()) == 82


@pytest.mark.parametrize("key", [("a", "a"), {1, 2}, [(1, 2), (1, 2)], {"a": "a"}])
def test_pickles_that_equal_keys_do_not_share(key: object) -> None:
    with pytest.raises(UnsupportedKeyTypeError, match=r"has other pickles too, by .*: pass a Pi"):
        hash_code(key, PYFLINK())


def test_no_pickle_of_objects_of_the_job() -> None:
    with pytest.raises(UnsupportedKeyTypeError, match="only values of Python's own classes"):
        hash_code(re.compile("a"), PYFLINK())
    with pytest.raises(UnsupportedKeyTypeError, match="PICKLED is not known"):
        serializer_of(PYFLINK())


ZONE = dt.timezone(dt.timedelta(hours=2))
DAY = dt.datetime(2020, 1, 2, 3, 4, 5, 678_901)
# The bytes that the compiled coders of PyFlink 1.20.5 and of 2.3.0 write for a Row of the key,
# without the mask before them; None where they raise.
CODED: list[tuple[KeyType, object, str | None]] = [
    (BOOLEAN, 1, "01"),
    (BOOLEAN, 2, "02"),
    (BOOLEAN, 1.5, "01"),
    (BOOLEAN, 0, "00"),
    (BOOLEAN, "a", None),
    (BYTE, True, "01"),
    (BYTE, 5.5, "05"),
    (BYTE, 200, None),
    (SHORT, 5.5, "0005"),
    (INT, True, "00000001"),
    (INT, Decimal(5), "00000005"),
    (INT, 2**31, None),
    (LONG, True, "0000000000000001"),
    (LONG, False, "0000000000000000"),
    (LONG, 5.5, "0000000000000005"),
    (LONG, 2**63, None),
    (LONG, "5", None),
    (LONG, math.nan, None),
    (LONG, math.inf, None),
    (FLOAT, 0.1, "3dcccccd"),
    (FLOAT, 1, "3f800000"),
    (FLOAT, True, "3f800000"),
    (FLOAT, 2**24 + 1, "4b800000"),
    (FLOAT, 1e40, "7f800000"),
    (FLOAT, -1e40, "ff800000"),
    (FLOAT, Decimal("0.1"), "3dcccccd"),
    (FLOAT, "1", None),
    (DOUBLE, 1, "3ff0000000000000"),
    (DOUBLE, True, "3ff0000000000000"),
    (DOUBLE, 2**53 + 1, "4340000000000000"),
    (DOUBLE, Decimal("0.1"), "3fb999999999999a"),
    (DOUBLE, 2**1030, None),
    (DOUBLE, "1", None),
    (STRING, 5, None),
    (BIG_DEC, 5, "0000000135"),
    (BIG_DEC, 1.5, "00000003312e35"),
    (BIG_DEC, "1.5", "00000003312e35"),
    (BIG_DEC, True, None),
    (BIG_DEC, "a", None),
    (SQL_DATE("UTC"), dt.datetime(2020, 1, 2, 23, 4, tzinfo=ZONE), "00004757"),
    (SQL_DATE("UTC"), 5, None),
    (SQL_TIME("UTC"), dt.time(1, 2, 3, 4567), "0038cefc"),
    (SQL_TIME("UTC"), dt.time(1, 2, 3, 4999, tzinfo=ZONE), "0038cefc"),
    (SQL_TIME("UTC"), dt.datetime(2020, 1, 2, 3, 4, 5, 6789), "00a8888e"),
    (SQL_TIME("UTC"), 5, None),
    (SQL_TIMESTAMP("UTC"), DAY.replace(tzinfo=ZONE), "0000016f6435cf2e"),
    (SQL_TIMESTAMP("UTC"), DAY, "0000016f6435cf2e"),
    (SQL_TIMESTAMP("UTC"), DAY.date(), None),
]


def read_code(key_type: KeyType, code: bytes) -> Any:
    """Return the key that Flink reads of the bytes that PyFlink has written."""
    if key_type == BOOLEAN:
        return code != b"\0"
    if key_type in (FLOAT, DOUBLE):
        return struct.unpack(">f" if key_type == FLOAT else ">d", code)[0]
    if key_type == BIG_DEC:
        return Decimal(code[4:].decode())
    number = int.from_bytes(code, "big", signed=True)
    midnight = dt.datetime(1970, 1, 1)
    if key_type == SQL_DATE("UTC"):
        return (midnight + dt.timedelta(days=number)).date()
    if key_type == SQL_TIME("UTC"):
        return (midnight + dt.timedelta(milliseconds=number)).time()
    if key_type == SQL_TIMESTAMP("UTC"):
        return midnight + dt.timedelta(milliseconds=number)
    return number


@pytest.mark.parametrize(("key_type", "key", "code"), CODED, ids=repr)
def test_keys_that_pyflink_converts(key_type: KeyType, key: object, code: str | None) -> None:
    converts = PYFLINK(key_type, as_pyflink_converts=True)
    if code is None:
        for other in (converts, PYFLINK(key_type)):
            with pytest.raises(KeyGroupsError) as caught:
                hash_code(key, other)
            assert "PyFlink takes it for" not in str(caught.value)
        return
    converted = read_code(key_type, bytes.fromhex(code))
    expected = hash_code(converted, PYFLINK(key_type))
    assert hash_code(key, converts) == expected
    assert hash_code(converted, converts) == expected
    if key_type != SQL_TIMESTAMP("UTC"):
        wrapped = PYFLINK(TUPLE(STRING, LIST(key_type)), as_pyflink_converts=True)
        assert hash_code(("a", [key]), wrapped) == hash_code(("a", [converted]), wrapped)
    if key is not DAY:  # The strict one has its milliseconds too.
        says = f"PyFlink takes it for {converted!r}, of hash code {expected}: pass as_pyf"
        with pytest.raises(KeyGroupsError, match=re.escape(says)):
            hash_code(key, PYFLINK(key_type))


def test_parts_that_pyflink_converts() -> None:
    def code(key: object, key_type: KeyType) -> int:
        return hash_code(key, PYFLINK(key_type, as_pyflink_converts=True))

    assert code({1.0: 0}, MAP(LONG, BOOLEAN)) == code({1: False}, MAP(LONG, BOOLEAN))
    assert code((True, None), ROW(INT, INT)) == code((1, None), ROW(INT, INT))
    row = Row((True,), "-D")
    with pytest.raises(InvalidValueError, match="row of kind"):
        code(row, ROW(INT))
    assert code(None, LONG) == 31
    with pytest.raises(InvalidValueError, match="must have 1 fields, got 2"):
        code((True, 2), TUPLE(INT))


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
