"""Values of the types that are written by whole columns, such as their ends are."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa

from keygroups.savepoint import Serializer
from keygroups.state_keys import BYTES
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
    LONG,
    ROW,
    SHORT,
    STRING,
    TUPLE,
    KeyType,
)
from support.inside import serializers
from support.inside.serializers import SQL_STRING, DateSerializer, SqlTimestampSerializer

Type = KeyType | Serializer
EPOCH = dt.datetime(1970, 1, 1)
UTC = dt.timezone.utc
TEXTS = [
    *("", "a", "ann", "\0", "\x7f", "\x80", "\u00e9", "\u07ff\u0800", "\u3fff\u4000", "\uffff"),
    *("\U0001f600", "x\U0010ffff\u6771y", "x" * 126, "x" * 127, "\u00e9" * 126, "y" * 16_383),
]
NAN = float("nan")


def arrow_type(value_type: Type) -> Any:
    """Return the type in which Spark sends the values of a type."""
    if isinstance(value_type, (TUPLE, ROW)):
        return pa.struct(
            [(f"f{n}", arrow_type(field)) for n, field in enumerate(value_type.fields)]
        )
    if isinstance(value_type, LIST):
        return pa.list_(arrow_type(value_type.element))
    return ARROW[value_type]


ARROW: dict[Type, Any] = {
    BOOLEAN: pa.bool_(),
    BYTE: pa.int8(),
    SHORT: pa.int16(),
    INT: pa.int32(),
    LONG: pa.int64(),
    FLOAT: pa.float32(),
    DOUBLE: pa.float64(),
    STRING: pa.string(),
    LOCAL_DATE: pa.date32(),
    LOCAL_DATE_TIME: pa.timestamp("us"),
    INSTANT: pa.timestamp("us", tz="America/Los_Angeles"),
    BIG_DEC: pa.decimal128(38, 2),
    BYTES: pa.binary(),
    SQL_STRING: pa.string(),
    DateSerializer(): pa.timestamp("us", tz="UTC"),
    SqlTimestampSerializer(): pa.timestamp("us", tz="UTC"),
    serializers.LongValueSerializer(): pa.int64(),
    serializers.DoubleValueSerializer(): pa.float64(),
}
MOMENTS = [
    EPOCH,
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(1, 1, 3),
    dt.datetime(9999, 12, 29, 23, 59, 59, 999_999),
    dt.datetime(2024, 2, 29, 12, 34, 56, 789_012),
]
INSTANTS = [moment.replace(tzinfo=UTC) for moment in MOMENTS]
VALUES: dict[Type, list[Any]] = {
    BOOLEAN: [False, True],
    BYTE: [0, 1, -1, 127, -128],
    SHORT: [0, 1, -1, 2**15 - 1, -(2**15)],
    INT: [0, 1, -1, 2**31 - 1, -(2**31)],
    LONG: [0, 1, -1, 2**31, 2**63 - 1, -(2**63)],
    FLOAT: [0.0, -0.0, 1.5, float("inf"), NAN, 2.0**-149, -(2.0**127)],
    DOUBLE: [0.0, -0.0, 0.1, float("-inf"), NAN, 5e-324, -1e300],
    STRING: TEXTS,
    LOCAL_DATE: [moment.date() for moment in MOMENTS],
    LOCAL_DATE_TIME: MOMENTS,
    INSTANT: INSTANTS,
    BIG_DEC: [
        Decimal(sign * number).scaleb(-2)
        for power in (0, 7, 8, 15, 16, 31, 32, 55, 56, 62, 63)
        for number in (2**power - 1, 2**power, 10)
        for sign in (1, -1)
        if sign * number < 2**63
    ],
    BYTES: [b"", b"\xff", bytes(300)],
    SQL_STRING: TEXTS,
    DateSerializer(): [
        one.replace(microsecond=one.microsecond // 1000 * 1000) for one in INSTANTS
    ],
    SqlTimestampSerializer(): INSTANTS,
    serializers.LongValueSerializer(): [0, -(2**63)],
    serializers.DoubleValueSerializer(): [-0.0, NAN],
    TUPLE(STRING, LONG): [(None, 0), *((text, len(text)) for text in TEXTS)],
    TUPLE(BIG_DEC, STRING): [(None, "a"), (Decimal("-1.50"), None)],
    TUPLE(LOCAL_DATE, LOCAL_DATE_TIME, INSTANT): [
        (None, None, None),
        *((moment.date(), moment, moment.replace(tzinfo=UTC)) for moment in MOMENTS),
    ],
    TUPLE(TUPLE(INT, ROW(STRING)), BOOLEAN): [((7, ("x",)), True), ((-7, (None,)), False)],
    ROW(INT, STRING, DOUBLE): [(1, "a", 0.5), (None, "\u00e9", None), (None, None, None)],
    ROW(*[INT] * 13): [
        tuple(None if n % 3 == rest else n for n in range(13)) for rest in range(4)
    ],
    LIST(STRING): [[], TEXTS, ["a"]],
    LIST(LIST(TUPLE(INT, STRING))): [[[], [(1, None), (2, "b")]], []],
}
