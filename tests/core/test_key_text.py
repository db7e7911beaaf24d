"""Key types and keys as they are typed in a shell."""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
import uuid
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.golden import read
from support.inside.answers import CHOICES, TYPE_NAMES, check_text, parse_key, parse_key_type
from support.keys.key_encoding import decode_key

from keygroups import (
    AmbiguousKeyTypeError,
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    UnsupportedKeyTypeError,
    hash_code,
    types,
)
from keygroups.cli import main
from keygroups.savepoint.values import Left, Right
from keygroups.state_keys import serializer_of
from keygroups.types import FLOAT, INT, LIST, PYFLINK, ROW, SQL_ROW, STRING, TUPLE, KeyType

UTC = dt.timezone.utc


def literal(value: Any) -> str:
    """Write a part of a compound key as Python's syntax, with text for what has none."""
    if isinstance(value, tuple):
        return f"({''.join(f'{literal(one)}, ' for one in value)})"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, frozenset):
        return f"{{{', '.join(map(literal, value))}}}" if value else "set()"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{literal(k)}: {literal(v)}' for k, v in value.items())}}}"
    if isinstance(value, (Left, Right)):
        return f"{type(value).__name__}({literal(value.value)})"
    if isinstance(value, bytes):
        return repr(value.hex())
    if value is None or isinstance(value, (bool, int, str)):
        return repr(value)
    return repr(str(value))


@pytest.mark.long
def test_keys_of_flink() -> None:
    """Every golden vector, its type and its key written as text, has the hash that Flink gave."""
    compared = 0
    for line in read("keys")[1]:
        key_type = parse_key_type(line["type"])
        assert repr(key_type) == line["type"]
        key = decode_key(key_type, line["key"])
        if isinstance(key, (tuple, list, frozenset, dict, Left, Right)):
            text = literal(key)
        elif key is None or (isinstance(key, int) and key.bit_length() > 10_000):
            continue  # has no text of its own; too long for Python to print
        else:
            text = key.hex() if isinstance(key, bytes) else str(key)
            if any("\udc80" <= character <= "\udcff" for character in text):
                with pytest.raises(InvalidValueError, match="in the encoding of the terminal"):
                    parse_key(text, key_type)
                continue
        assert hash_code(parse_key(text, key_type), key_type) == line["hash"], (text, key_type)
        compared += 1
    assert compared > 3_000


@pytest.mark.parametrize(
    ("text", "key_type"),
    [
        ("long", types.LONG),
        (" TUPLE( string,int ) ", TUPLE(STRING, INT)),
        ("SQL_ROW('BIGINT')", SQL_ROW("BIGINT")),
        ("PYFLINK(LONG)", PYFLINK(types.LONG)),
        ("PYFLINK(protocol=4)", PYFLINK(protocol=4)),
        ("SQL_DATE('Europe/Berlin')", types.SQL_DATE("Europe/Berlin")),
        (
            "ROW(INT, STRING, kind='+U', names=('a', 'b'))",
            ROW(INT, STRING, kind="+U", names=["a", "b"]),
        ),
        ("Map(STRING, List(INT))", types.MAP(STRING, LIST(INT))),
    ],
)
def test_key_types(text: str, key_type: KeyType) -> None:
    assert parse_key_type(text) == key_type


NO_TYPES = [
    "",
    "FOO",
    "5",
    "LONG()",
    "TUPLE",
    "TUPLE(INT",
    "TUPLE(*[INT])",
    "types.LONG",
    "INT, INT",
]
NO_TYPES += ["__import__('os').getcwd()", "LIST(print(5))", "[INT][0]", "LONG if 1 else INT", "\0"]
NO_TYPES += [
    "\ud800",
    "(" * 300,
    "-" * 50_000 + "1",
    "LIST(" * 150 + "INT" + ")" * 150,
    "INT" * 50_000,
]
NO_TYPES += ["ROW(INT, kind=kind)", "lambda: INT", "LIST(LONG)(INT)"]


def test_every_type_is_a_choice() -> None:
    assert sorted(choice.partition("(")[0] for choice in CHOICES) == sorted(TYPE_NAMES)


@pytest.mark.parametrize("text", NO_TYPES, ids=lambda text: ascii(text[:30]))
def test_what_is_no_key_type(text: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        parse_key_type(text)
    assert len(str(caught.value)) < 700
    if "type must be one of" in str(caught.value):
        assert CHOICES[-1] in str(caught.value)
    else:
        assert re.search("nest at most|at most 100000 characters", str(caught.value))


@pytest.mark.parametrize(
    ("text", "likely"),
    [
        *(
            ("BIGINT", "LONG"),
            ("varchar", "STRING"),
            ("Integer", "INT"),
            ("DECIMAL(10)", "BIG_DEC"),
        ),
        *(("SMALLINT", "SHORT"), ("TINYINT", "BYTE"), ("timestamp_ltz", "INSTANT")),
        *(("DATE", "LOCAL_DATE"), ("TIMESTAMP(3)", "LOCAL_DATE_TIME"), ("TIME", "LOCAL_TIME")),
        *(("DEC", "BIG_DEC"), ("numeric(9, 2)", "BIG_DEC"), ("TEXT", "STRING")),
        ("ARRAY(INT)", "LIST"),
        *(("LNG", "LONG"), ("Strng", "STRING"), ("BigInteger", "BIG_INT"), ("bool", "BOOLEAN")),
        *(("LocalDate", "LOCAL_DATE"), ("TUPEL(INT)", "TUPLE"), ("SQLROW('INT')", "SQL_ROW")),
        *(("Tuple", "TUPLE(t, ...)"), ("LIST(sql_row)", "SQL_ROW('BIGINT', ...)")),
        *(("TUPLE(VARCHAR, INT)", "STRING"), ("LIST(ROW(INT, BIGINT))", "LONG")),
        *(("SQL_ROW('LONG')", "BIGINT"), ("SQL_ROW('INT', 'Sting')", "STRING")),
        *(("SQL_ROW('LOCAL_DATE')", "DATE"), ("SQL_ROW('INSTANT')", "TIMESTAMP_LTZ")),
    ],
)
def test_what_was_likely_meant(text: str, likely: str) -> None:
    with pytest.raises(InvalidValueError, match=f": did you mean {re.escape(likely)}\\?$"):
        parse_key_type(text)


@pytest.mark.parametrize(
    "text", ["NOPE", "BYTES", "BINARY(3)", "VARBINARY(3)", "\u4e2d", "x" * 10_000, "5"]
)
def test_what_was_meant_is_not_known(text: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        parse_key_type(text)
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("SQL_ROW(BIGINT)", types.SQL_ROW("BIGINT")),
        ("sql_row( INT, 'BIGINT')", None),
        ("SQL_ROW(INT NOT NULL, DECIMAL(10, 2))", types.SQL_ROW("INT NOT NULL", "DECIMAL(10, 2)")),
        ("SQL_ROW(ROW<`a, )` INT, b ARRAY<INT>>)", types.SQL_ROW("ROW<`a, )` INT, b ARRAY<INT>>")),
        ("SQL_ROW(BIGINT", None),
        ("SQL_ROW(SQL_ROW(BIGINT))", None),
    ],
)
def test_types_of_sql_need_no_quotes(text: str, made: types.KeyType | None) -> None:
    """As savepoints print them; a mixture is an error."""
    if made is None:
        with pytest.raises(InvalidValueError):
            parse_key_type(text)
    else:
        assert parse_key_type(text) == made


PRINTED = [
    *(value for value in vars(types).values() if isinstance(value, types.ScalarType)),
    types.TUPLE(types.INT, types.STRING),
    types.ROW(types.LONG, types.LIST(types.STRING)),
    types.MAP(types.STRING, types.SET(types.INT)),
    types.PYFLINK(types.TUPLE(types.LONG, types.SQL_DATE("UTC"))),
    types.PYFLINK(types.LONG),
    types.SQL_ROW("BIGINT", "ROW<`a` INT NOT NULL, `b` STRING>"),
    types.SCALA_TUPLE(types.INT, types.INT, scala="2.12"),
    types.CASE_CLASS("a.B", types.INT, scala="2.13"),
    types.OBJECTS_HASH(types.INT),
]


def test_a_row_of_sql_in_a_row_is_no_type(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["trace", "1", "-m", "128", "-p", "3", "--type", "SQL_ROW(INT, SQL_ROW(INT))"]
    assert main(arguments) == 2
    assert "'SQL_ROW(INT)'" in capsys.readouterr().err


@pytest.mark.parametrize("key_type", PRINTED, ids=str)
def test_every_printed_type_is_read(key_type: types.KeyType) -> None:
    """Its own text, and that of its serializer where this is of no class of the job."""
    assert parse_key_type(str(key_type)) == key_type
    with suppress(UnsupportedKeyTypeError):
        serializer = serializer_of(key_type)
        if not serializer.java_class:
            assert parse_key_type(str(serializer)) == key_type


def test_a_key_type_that_is_text() -> None:
    for text in ("BIGINT", "LONG", "long"):
        wrong: Any = text
        with pytest.raises(InvalidTypeError, match=f"got '{text}': did you mean LONG\\?$"):
            hash_code(5, wrong)


@pytest.mark.parametrize(
    "text", ["LIST(INT, INT)", "LIST()", "ROW(INT, foo=1)", "ROW(INT, **{'kind': '+U'})"]
)
def test_key_type_of_other_arguments(text: str) -> None:
    with pytest.raises(InvalidTypeError, match=r"must have the arguments of keygroups\.types"):
        parse_key_type(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SQL_ROW('FOO')", "field 0 of SQL_ROW"),
        ("SQL_ROW(5)", "a logical type must be a str"),
        ("SQL_DATE('Mars')", "Mars"),
        ("LIST('INT')", "LIST is made of key types"),
        ("LIST(SQL_ROW('INT'))", "whole key"),
        ("ROW(INT, kind='+Z')", "kind must be one of"),
    ],
)
def test_key_type_that_cannot_be(text: str, says: str) -> None:
    with pytest.raises(KeyGroupsError, match=says):
        parse_key_type(text)


@pytest.mark.branch
@pytest.mark.parametrize(
    ("text", "key_type", "key"),
    [
        ("hello world", "STRING", "hello world"),
        (" 42 ", "STRING", " 42 "),
        ("", "STRING", ""),
        ("(1,)", "STRING", "(1,)"),
        ("x", "CHAR", "x"),
        ("TRUE", "BOOLEAN", True),
        ("false", "BOOLEAN", False),
        ("-42", "LONG", -42),
        ("+7", "BIG_INT", 7),
        ("-1.5e3", "DOUBLE", -1500.0),
        ("Infinity", "DOUBLE", math.inf),
        ("-inf", "FLOAT", -math.inf),
        ("1e999", "DOUBLE", math.inf),
        ("1e39", "FLOAT", math.inf),
        ("-0.0", "FLOAT", -0.0),
        ("2024-02-29", "LOCAL_DATE", dt.date(2024, 2, 29)),
        ("23:59", "LOCAL_TIME", dt.time(23, 59)),
        ("23:59:59.5", "SQL_TIME('UTC')", dt.time(23, 59, 59, 500_000)),
        ("2024-02-29 01:02:03.000004", "LOCAL_DATE_TIME", dt.datetime(2024, 2, 29, 1, 2, 3, 4)),
        ("2024-02-29T01:02Z", "INSTANT", dt.datetime(2024, 2, 29, 1, 2, tzinfo=UTC)),
        (
            "2024-02-29T01:02:03.25-00:00",
            "INSTANT",
            dt.datetime(2024, 2, 29, 1, 2, 3, 250_000, UTC),
        ),
        (
            "123e4567-e89b-12d3-a456-426614174000",
            "UUID",
            uuid.UUID(int=0x123E4567E89B12D3A456426614174000),
        ),
        ("('a', 5)", "TUPLE(STRING, INT)", ("a", 5)),
        ("('a', 5)", "PYFLINK(TUPLE(STRING, INT))", ("a", 5)),
        ("42", "PYFLINK(LONG)", 42),
        ("('a', 5)", "PYFLINK()", ("a", 5)),
        ("'a'", "PYFLINK()", "a"),
        ("42", "SQL_ROW('BIGINT')", (42,)),
        ("(42,)", "SQL_ROW('BIGINT')", (42,)),
        ("hello", "SQL_ROW('STRING')", ("hello",)),
        ("cafe", "SQL_ROW('BINARY(2)')", (b"\xca\xfe",)),
        ("[1, 2]", "SQL_ROW('ARRAY<DOUBLE>')", ([1.0, 2.0],)),
        (
            "(1, (2, [None, '1.50']))",
            "SQL_ROW('INT', 'ROW<a BIGINT, b ARRAY<DECIMAL(5, 2)>>')",
            (1, (2, [None, Decimal("1.50")])),
        ),
        (
            "('2024-02-29', True, 3)",
            "TUPLE(LOCAL_DATE, BOOLEAN, DOUBLE)",
            (dt.date(2024, 2, 29), True, 3.0),
        ),
        ("(3, '1.50')", "TUPLE(BIG_DEC, BIG_DEC)", (Decimal(3), Decimal("1.50"))),
        ("['a', None]", "LIST(STRING)", ["a", None]),
        ("{1, 2}", "SET(INT)", frozenset({1, 2})),
        ("{'a': '1.5'}", "MAP(STRING, DOUBLE)", {"a": 1.5}),
        ("Left('1.5')", "SCALA_EITHER(DOUBLE, STRING, scala='2.12')", Left(1.5)),
        ("Right(value=None)", "SCALA_EITHER(INT, INT, scala='2.12')", Right(None)),
        (
            "['a', Right(Left({1: set()}))]",
            "OBJECTS_HASH(STRING, SCALA_EITHER(INT, SCALA_EITHER(MAP(LONG, SET(INT)), INT, "
            "scala='2.13'), scala='2.13'))",
            ("a", Right(Left({1: frozenset()}))),
        ),
        ("1" * 40, "SCALA_BIG_INT", int("1" * 40)),
        ("('7', [{'x'}])", "TUPLE(OPTIONAL(LONG), LIST(SET(CHAR)))", (7, [frozenset("x")])),
    ],
)
def test_keys(text: str, key_type: str, key: Any) -> None:
    parsed = parse_key(text, parse_key_type(key_type))
    assert parsed == key
    assert repr(parsed) == repr(key)
    hash_code(parsed, parse_key_type(key_type))


@pytest.mark.parametrize(
    ("text", "key_type"),
    [
        ("yes", "BOOLEAN"),
        ("4_2", "LONG"),
        ("٤٢", "LONG"),
        ("1.0", "LONG"),
        ("9" * 5000, "LONG"),
        ("0x10", "DOUBLE"),
        ("1_0.5", "DOUBLE"),
        ("", "DOUBLE"),
        ("NaN", "BIG_DEC"),
        ("1e" + "9" * 30, "BIG_DEC"),
        ("1e" + "9" * 30 + ".", "FLOAT"),
        ("2024-2-29", "LOCAL_DATE"),
        ("2023-02-29", "LOCAL_DATE"),
        ("2024-W09-4", "LOCAL_DATE"),
        ("12:00:00.1234567", "LOCAL_TIME"),  # Python 3.11 and later would drop the 7
        ("12:00.5", "LOCAL_TIME"),
        ("2024-02-2912:00", "LOCAL_DATE_TIME"),
        ("2024-02-29T12:00Z", "LOCAL_DATE_TIME"),
        ("2024-02-29T12:00", "INSTANT"),
        ("2024-02-29T12:00+1", "INSTANT"),
        ("123e", "UUID"),
        ("123e4567e89b12d3a456426614174000", "UUID"),
        ("abc", "SQL_ROW('BINARY(2)')"),
        ("('a', 5", "TUPLE(STRING, INT)"),
        ("('a', f())", "TUPLE(STRING, INT)"),
        ("a, b", "TUPLE(STRING, INT)"),
        ("[1", "LIST(INT)"),
        ("{[1]}", "SET(INT)"),
        ("('x', 5)", "TUPLE(LONG, INT)"),
        ("[" * 100_000, "LIST(INT)"),
        ("[1, " * 20_000, "LIST(INT)"),
        ("-" * 99_999 + "1", "LIST(INT)"),
        ("(0x" + "f" * 50_000 + ",)", "TUPLE(BIG_INT)"),  # more digits than Python writes
        (r"('\d+',)", "TUPLE(STRING)"),  # Python takes it, with a warning
        (r"('C:\new\dir', 1)", "TUPLE(STRING, INT)"),
        ("[1or 2]", "LIST(INT)"),
        ("Left()", "SCALA_EITHER(INT, INT, scala='2.12')"),
        ("Left(1, 2)", "SCALA_EITHER(INT, INT, scala='2.12')"),
        ("Left(left=1)", "SCALA_EITHER(INT, INT, scala='2.12')"),
        ("Left(f())", "SCALA_EITHER(INT, INT, scala='2.12')"),
        ("a.Left(1)", "SCALA_EITHER(INT, INT, scala='2.12')"),
        ("{Left([1])}", "SET(INT)"),
        ("-" * 900 + "Left(1)", "SCALA_EITHER(INT, INT, scala='2.12')"),
        ("1" * 50_000 + "x", "DOUBLE"),
    ],
    ids=lambda text: ascii(text[:30]),
)
def test_what_is_no_key_of_a_type(text: str, key_type: str) -> None:
    with pytest.raises(InvalidValueError, match="must be written") as caught:
        parse_key(text, parse_key_type(key_type))
    assert len(str(caught.value)) < 300


SHOWN = ["BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "BIG_INT", "FLOAT", "DOUBLE", "BIG_DEC"]
SHOWN += ["LOCAL_DATE", "LOCAL_TIME", "LOCAL_DATE_TIME", "INSTANT", "UUID", "SQL_DATE('UTC')"]
SHOWN += ["SQL_TIME('UTC')", "SQL_TIMESTAMP('UTC')", "SQL_ROW('TINYINT')", "SQL_ROW('SMALLINT')"]
SHOWN += ["SQL_ROW('BIGINT')", "SQL_ROW('DECIMAL(5, 2)')", "SQL_ROW('DATE')", "SQL_ROW('TIME(1)')"]
SHOWN += ["SQL_ROW('TIMESTAMP')", "SQL_ROW('TIMESTAMP_LTZ')", "SQL_ROW('BINARY(3)')"]
SHOWN += ["SQL_ROW('VARBINARY(3)')"]


@pytest.mark.parametrize("name", SHOWN)
def test_what_an_error_shows_is_a_key_of_the_type(name: str) -> None:
    key_type = parse_key_type(name)
    with pytest.raises(InvalidValueError) as caught:
        parse_key("?", key_type)
    says = r"key of type [A-Z_]+ must be written such as (\S+), got '\?'"
    shown = re.fullmatch(says, str(caught.value))
    assert shown is not None
    hash_code(parse_key(shown[1], key_type), key_type)


@pytest.mark.parametrize(
    ("text", "key_type"),
    [
        ("('a', 5, 6)", "TUPLE(STRING, INT)"),
        ("('a',)", "TUPLE(STRING, INT)"),
        ("(5, 5)", "TUPLE(STRING, INT)"),  # an int is no text
        ("(1.5, 5)", "TUPLE(BIG_DEC, INT)"),  # 1.5 or 1.50?
        ("(True, 5)", "TUPLE(INT, INT)"),
        ("5", "LIST(INT)"),
        ("[1]", "SET(INT)"),
        ("[1]", "MAP(INT, INT)"),
        ("(1,)", "SQL_ROW('ARRAY<INT>')"),
        ("(5, 5)", "SQL_ROW('ROW<INT>', 'INT')"),
        ("128", "BYTE"),
        ("ab", "CHAR"),
    ],
)
def test_key_that_the_type_refuses(text: str, key_type: str) -> None:
    key = parse_key(text, parse_key_type(key_type))
    with pytest.raises(KeyGroupsError):
        hash_code(key, parse_key_type(key_type))


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "user-42",
        "d41d8cd98f00b204e9800998ecf8427e",
        "",
        " ",
        "true story",
        "1.2.3",
        "a(b)",
    ],
)
def test_text_is_a_string(text: str) -> None:
    assert parse_key(text, None) == text


AMBIGUOUS = ["42", "-1", "1.5", "1e5", "NaN", "true", "False", "2024-02-29", "12:00"]
AMBIGUOUS += ["2024-02-29T12:00", "2024-02-29T12:00Z", "(1, 2)", "[1]", "{}", " 42"]
AMBIGUOUS += ["123e4567-e89b-12d3-a456-426614174000"]


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_nothing_is_guessed(text: str) -> None:
    with pytest.raises(AmbiguousKeyTypeError, match=r"may be .* type"):
        parse_key(text, None)
    assert parse_key(text, STRING) == text


def test_bytes_that_are_no_text() -> None:
    for key_type in (None, STRING, INT):
        with pytest.raises(InvalidValueError, match=r"key must be text .* got 'caf\\udce9'"):
            parse_key("caf\udce9", key_type)
    with pytest.raises(InvalidValueError, match="prefix must be text"):
        check_text("prefix", "\udcff")
    assert parse_key("\ud83d", STRING) == "\ud83d"  # Java's strings hold it, no byte does


def single(bits: int) -> float:
    number: float = struct.unpack("<f", struct.pack("<I", bits))[0]
    return number


@given(st.integers(1, 0x7F7FFFFE), st.sampled_from([-1, 0, 1]), st.booleans())
def test_singles_are_rounded_once(bits: int, side: int, negative: bool) -> None:
    """Halfway between two singles, and as little beside it as no double can tell."""
    low, high = Fraction(single(bits)), Fraction(single(bits + 1))
    halfway = (low + high) / 2
    number = halfway + side * Fraction(1, 10**400)
    digits = number * 10**400  # a double's fraction ends before that
    text = f"{'-' * negative}{int(digits)}e-400"
    expected = {-1: low, 1: high, 0: low if bits % 2 == 0 else high}[side]
    assert parse_key(text, FLOAT) == float(-expected if negative else expected)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("share", [0.001, 0.4, 0.6, 0.999, 1.001, 1.4, 1.6])
@pytest.mark.parametrize("halves", [1, 3])  # 2^-23, between 1 and two singles above it
def test_rounding_by_way_of_a_double_would_be_wrong(halves: int, share: float, sign: int) -> None:
    """Beside the middle of two singles, by a share of what the last bit of a double weighs."""
    number = 1 + Fraction(halves, 2**24) + sign * Fraction(share) / 2**52
    assert parse_key(f"{int(number * 10**400)}e-400", FLOAT) == 1 + (halves + sign) / 2**24


def test_longest_text_that_is_parsed() -> None:
    says = "must be written in at most 100000 characters, got 100001$"
    assert parse_key_type(f"TUPLE({'INT)':>99994}") == TUPLE(INT)
    with pytest.raises(InvalidValueError, match=f"^type {says}"):
        parse_key_type(f"TUPLE({'INT)':>99995}")
    for key_type in ("DOUBLE", "LIST(INT)", "SQL_ROW('BIGINT')"):
        with pytest.raises(InvalidValueError, match=f"^key of type .* {says}"):
            parse_key("1" * 100_001, parse_key_type(key_type))
    assert parse_key("1" * 100_000, types.BIG_DEC) == Decimal("1" * 100_000)
    long = "x" * 1_000_000
    assert parse_key(long, STRING) == parse_key(long, None) == long
    assert parse_key(long, SQL_ROW("STRING")) == (long,)
    with pytest.raises(AmbiguousKeyTypeError, match="or DOUBLE"):
        parse_key("1" * 1_000_000, None)


@pytest.mark.filterwarnings("ignore")
def test_what_python_warns_of_is_refused_where_warnings_are_off() -> None:
    with pytest.raises(InvalidValueError, match="must be written"):
        parse_key(r"('\d+',)", TUPLE(STRING))


def test_backslashes() -> None:
    assert parse_key(r"('C:\\dir\n', 1)", TUPLE(STRING, INT)) == ("C:\\dir\n", 1)
    assert parse_key(r"C:\dir", STRING) == parse_key(r"C:\dir", None) == "C:\\dir"
