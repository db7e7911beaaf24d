"""The types of PyFlink's state: their bytes by its coders, and what is refused."""

from __future__ import annotations

import datetime as dt
from decimal import Context, Decimal, localcontext
from typing import Any

import pytest
from support.bytes.real_savepoints import corpus
from support.inside.serializers import (
    ChunkSerializer,
    DecimalTextSerializer,
    ForeignPickleError,
    NullValueSerializer,
    SqlDateKeySerializer,
    SqlDateSerializer,
    SqlTimeKeySerializer,
    SqlTimeSerializer,
    SqlTimestampKeySerializer,
    SqlTimestampSerializer,
    read_pickle,
)

from keygroups import types as kt
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    UnsupportedKeyTypeError,
)
from keygroups.savepoint import Row, ValueStateDescriptor, pyflink, read_savepoint
from keygroups.savepoint._pyflink.python_keys import stored_key
from keygroups.savepoint.values import Instant
from keygroups.state_keys import BYTES
from keygroups.types import BYTE, INT, LONG, PYFLINK, STRING

UTC = dt.timezone.utc
DECIMAL = DecimalTextSerializer()


@pytest.mark.parametrize("text", ["-0", "NaN", "sNaN12", "Infinity", "-1.50", "1E+5", "0E-10"])
def test_decimals_are_texts_of_python(text: str) -> None:
    data = len(text).to_bytes(4, "big") + text.encode()
    with localcontext(Context(prec=1, capitals=0)):  # It changes nothing.
        number = DECIMAL.decode(data)
        assert DECIMAL.encode(number) == data
    assert repr(number) == repr(Decimal(text))


@pytest.mark.parametrize("text", ["", "x", "1_0", " 1", "+1", "1E5"])
def test_texts_of_no_decimal(text: str) -> None:
    data = len(text).to_bytes(4, "big") + text.encode()
    with pytest.raises(InvalidValueError, match="is no text of a Decimal"):
        DECIMAL.decode(data)
    pickled = b"\x80\x04\x8c\x07decimal\x8c\x07Decimal\x93\x8c\x01x\x85R."
    with localcontext(Context(traps=[])), pytest.raises(ForeignPickleError):
        read_pickle(pickled)


KEYS: list[tuple[Any, Any, Any, int]] = [
    (SqlDateKeySerializer(SqlDateSerializer()), dt.date(1970, 1, 2), 86_400_000, 86_400_000),
    (SqlTimeKeySerializer(SqlTimeSerializer()), dt.time(0, 0, 1), 1_000, 1_000),
    (SqlDateKeySerializer(SqlDateSerializer()), 2**62, 2**62, 2**30),
    (
        SqlTimestampKeySerializer(SqlTimestampSerializer()),
        dt.datetime(1969, 12, 31, 23, 59, 59),
        None,
        (-1_000 ^ -1),
    ),
    (
        SqlTimestampKeySerializer(SqlTimestampSerializer()),
        Instant(1, 2_000_001),
        None,
        1_002,
    ),
]


@pytest.mark.parametrize(("serializer", "key", "millis", "code"), KEYS)
def test_keys_of_java_sql(serializer: Any, key: Any, millis: int | None, code: int) -> None:
    """Their hash is that of Java's Date, of milliseconds: the low bits, and the high ones."""
    data = serializer.encode(key)
    assert serializer.decode(data) == key
    if millis is not None:
        assert data == millis.to_bytes(8, "big", signed=True)
    assert serializer.key_hash(key) == code


REFUSED: list[tuple[Any, Any, str]] = [
    (
        SqlDateKeySerializer(SqlDateSerializer()),
        dt.datetime(2024, 1, 1),
        "SQL_DATE must be a date",
    ),
    (SqlTimeKeySerializer(SqlTimeSerializer()), "a", "SQL_TIME must be a time"),
    (
        SqlTimestampKeySerializer(SqlTimestampSerializer()),
        dt.datetime(2024, 1, 1, tzinfo=UTC),
        "SQL_TIMESTAMP must have no zone",
    ),
    (SqlTimestampKeySerializer(SqlTimestampSerializer()), "a", "SQL_TIMESTAMP must be a dat"),
]


def test_a_decimal_of_another_class() -> None:
    for value in (5, 1.5, "1"):
        with pytest.raises(InvalidTypeError, match="BIG_DEC must be a Decimal, got"):
            DECIMAL.encode(value)


@pytest.mark.parametrize(("serializer", "key", "message"), REFUSED)
def test_other_keys(serializer: Any, key: Any, message: str) -> None:
    for call in (serializer.encode, serializer.key_hash):
        with pytest.raises(KeyGroupsError, match=message):
            call(key)


def test_keys_of_a_jvm_elsewhere() -> None:
    hour = (3_600_000).to_bytes(8, "big")
    with pytest.raises(InvalidValueError, match="is no midnight in UTC: the JVM was in another"):
        SqlDateKeySerializer(SqlDateSerializer()).decode(hour)
    with pytest.raises(InvalidValueError, match="is not on the first day in UTC"):
        SqlTimeKeySerializer(SqlTimeSerializer()).decode((-1).to_bytes(8, "big", signed=True))


@pytest.mark.parametrize(
    ("key_type", "text"),
    [
        (PYFLINK(kt.SQL_DATE("UTC")), "PYFLINK(SQL_DATE(SQL_DATE))"),
        (PYFLINK(kt.SQL_TIME("UTC")), "PYFLINK(SQL_TIME(SQL_TIME))"),
        (PYFLINK(kt.SQL_TIMESTAMP("UTC")), "PYFLINK(SQL_TIMESTAMP(SQL_TIMESTAMP))"),
    ],
)
def test_texts_of_keys(key_type: Any, text: str) -> None:
    """What a report and an error say of the keys: the type around what Flink stores."""
    assert str(stored_key(key_type)) == text


def test_null_keys() -> None:
    by_date = stored_key(PYFLINK(kt.SQL_DATE("UTC")))
    assert by_date.key_type is None
    assert by_date.key_hash is not None
    assert (by_date.key_hash(None), by_date.key_hash(dt.date(1970, 1, 1))) == (31, 62)
    assert by_date.decode(by_date.encode(None)) is None


def test_elements_of_no_bytes() -> None:
    chunk = ChunkSerializer(NullValueSerializer())
    with pytest.raises(InvalidValueError, match="of no bytes, of which there may be any number"):
        chunk.decode(b"\0\0\0\1x")


def test_types_that_are_refused() -> None:
    text: Any = "a"
    number: Any = 5
    calls: list[tuple[Any, type[Exception], str]] = [
        (
            lambda: pyflink.LIST(text),
            InvalidTypeError,
            "element_type must be .*, got 'a",
        ),
        (lambda: pyflink.MAP(LONG, kt.SET(INT)), UnsupportedKeyTypeError, "value_type SET"),
        (lambda: pyflink.MAP(kt.UUID, INT), UnsupportedKeyTypeError, "key_type UUID is no type"),
        (lambda: pyflink.PRIMITIVE_ARRAY(STRING), InvalidTypeError, "must be one of BOOLEAN, BYT"),
        (lambda: pyflink.TUPLE(), InvalidValueError, "field_types must be at least one"),
        (lambda: pyflink.ROW(LONG, number), InvalidTypeError, "field 1 must be a key type"),
        (lambda: pyflink.ROW(LONG, names=["a", "b"]), InvalidValueError, "names must be 1 diff"),
        (
            lambda: pyflink.ROW(LONG, LONG, names=["a", "a"]),
            *(InvalidValueError, "names must be 2 different ones, one for each field, got 2"),
        ),
        (
            lambda: pyflink.ROW(LONG, LONG, names=["a", "b", "a"]),
            *(InvalidValueError, "names must be 2 different ones, one for each field, got 3"),
        ),
        (
            lambda: pyflink.ROW(LONG, names=5),  # type: ignore[arg-type]  # A user may do so.
            InvalidTypeError,
            "names must be an iterable of str, got 5",
        ),
        (lambda: pyflink.ROW(LONG, LONG, names="aa"), KeyGroupsError, "names must be"),
        (
            lambda: pyflink.ROW(LONG, names=[number]),
            InvalidTypeError,
            "name of a field must be a str",
        ),
        (lambda: Row("a"), InvalidTypeError, "values must be a tuple or a list"),
    ]
    for call, error, message in calls:
        with pytest.raises(error, match=message):
            call()
    assert pyflink.PRIMITIVE_ARRAY(BYTE) == BYTES
    named = kt.ROW(LONG, STRING, names=["a", "b"])
    assert pyflink.LIST(named) == pyflink.LIST(pyflink.ROW(LONG, STRING, names=["a", "b"]))
    assert (Row((1,)) == 5, Row((1,)) != (1,)) == (False, False)


def test_a_keyed_state_that_is_broadcast() -> None:
    path = corpus("pyflink") / "2.3.0-states-s1" / "savepoint"
    operator = read_savepoint(path).operator("bc")
    declared = operator.as_pyflink(LONG, [ValueStateDescriptor("rules", LONG)])
    with pytest.raises(KeyGroupsError, match="'rules' is of mode BROADCAST, and declared as a VA"):
        list(declared.operator_state())
    assert {entry.state for entry in operator.as_pyflink(LONG, []).operator_state()} == {
        "python-state-rules",
        "python-state-rules2",
    }
