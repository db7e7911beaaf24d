"""Key types as values, and their inference from Python values."""

from __future__ import annotations

import copy
import datetime as dt
import pickle
import uuid
from decimal import Decimal

import pytest

from keygroups import hash_code, types
from keygroups.hashing import infer_key_type
from keygroups.types import (
    BIG_DEC,
    BOOLEAN,
    CASE_CLASS,
    DOUBLE,
    INSTANT,
    INT,
    LIST,
    LOCAL_DATE,
    LOCAL_DATE_TIME,
    LOCAL_TIME,
    LONG,
    MAP,
    NULL,
    OBJECTS_HASH,
    OPTIONAL,
    PYFLINK,
    ROW,
    SCALA_EITHER,
    SCALA_OPTION,
    SCALA_TUPLE,
    SET,
    SQL_DATE,
    SQL_ROW,
    SQL_TIMESTAMP,
    STRING,
    TUPLE,
    UUID,
    KeyType,
)

EXAMPLES = [
    INT,
    TUPLE(),
    TUPLE(STRING, INT),
    ROW(INT),
    ROW(STRING, kind="+U"),
    ROW(STRING, kind="-D", names=("a",)),
    LIST(TUPLE(INT)),
    SET(INT),
    OPTIONAL(STRING),
    OBJECTS_HASH(STRING, INT),
    OBJECTS_HASH(start=-5),
    SCALA_TUPLE(STRING, scala="2.12"),
    CASE_CLASS("Key", STRING, INT, scala="2.13"),
    CASE_CLASS("Empty", scala="2.13"),
    SCALA_OPTION(SCALA_TUPLE(INT, scala="2.13"), scala="2.13"),
    SCALA_EITHER(SCALA_TUPLE(INT, scala="2.13"), STRING, scala="2.13"),
    MAP(STRING, LIST(LONG)),
    SQL_DATE("UTC"),
    SQL_TIMESTAMP("Europe/Berlin"),
    SQL_ROW(),
    SQL_ROW("BIGINT NOT NULL", "varchar(20)"),
    SQL_ROW("ROW<a INT, b ARRAY<DECIMAL(38, 10)>>"),
    PYFLINK(STRING),
    PYFLINK(TUPLE(STRING, LIST(INT))),
]


def test_a_scalar_type_has_the_name_of_its_constant() -> None:
    scalars = {name: one for name, one in vars(types).items() if type(one) is types.ScalarType}
    assert {"INT", "BIG_INT", "BIG_DEC", "UUID"} <= scalars.keys()
    assert all(one.name == name and repr(one) == name for name, one in scalars.items())


@pytest.mark.parametrize("key_type", EXAMPLES, ids=repr)
def test_repr_pickle_and_copy_give_an_equal_type(key_type: KeyType) -> None:
    for same in (
        eval(repr(key_type), vars(types)),
        pickle.loads(pickle.dumps(key_type)),
        copy.deepcopy(key_type),
    ):
        assert same == key_type
        assert hash(same) == hash(key_type)
        assert repr(same) == repr(key_type)


def test_scalars_stay_the_same_object() -> None:
    assert pickle.loads(pickle.dumps(INT)) is INT
    assert copy.deepcopy(TUPLE(INT)).fields[0] is INT


def test_different_types_differ() -> None:
    assert len(set(EXAMPLES)) == len(EXAMPLES)
    assert TUPLE(INT) != TUPLE(LONG)
    assert LIST(INT) != SET(INT)
    assert ROW(INT) != ROW(INT, kind="-D")
    assert SQL_DATE("UTC") != SQL_TIMESTAMP("UTC")
    assert TUPLE(INT) != "TUPLE(INT)"
    assert SQL_ROW("INT", "STRING") != SQL_ROW("STRING", "INT")
    assert PYFLINK(INT) != LIST(INT)


@pytest.mark.parametrize(
    ("key", "key_type"),
    [
        (True, BOOLEAN),
        (0, INT),
        (2**31 - 1, INT),
        (2**31, LONG),
        (-(2**31) - 1, LONG),
        (2**63 - 1, LONG),
        (-(2**63), LONG),
        ("", STRING),
        (0.0, DOUBLE),
        (Decimal("1.50"), BIG_DEC),
        (dt.date(2024, 1, 1), LOCAL_DATE),
        (dt.time(1, 2), LOCAL_TIME),
        (dt.datetime(2024, 1, 1), LOCAL_DATE_TIME),
        (dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc), INSTANT),
        (uuid.UUID(int=0), UUID),
        ((), TUPLE()),
        (("a", None, (1, 2**40)), TUPLE(STRING, NULL, TUPLE(INT, LONG))),
        ([], LIST(NULL)),
        ([None, "a"], LIST(STRING)),
        ([1, 2**40], LIST(LONG)),
        ({1, 2}, SET(INT)),
        (frozenset("a"), SET(STRING)),
        ({}, MAP(NULL, NULL)),
        ({"a": 1, "b": 2**40}, MAP(STRING, LONG)),
        ({None: True}, MAP(NULL, BOOLEAN)),
    ],
)
def test_inference(key: object, key_type: KeyType) -> None:
    assert infer_key_type(key) == key_type
    assert hash_code(key) == hash_code(key, key_type)


def test_zone_without_an_offset_is_naive() -> None:
    class NoZone(dt.tzinfo):
        def utcoffset(self, _: dt.datetime | None) -> None:
            return None

        dst = tzname = utcoffset

    assert infer_key_type(dt.datetime(2024, 1, 1, tzinfo=NoZone())) == LOCAL_DATE_TIME
