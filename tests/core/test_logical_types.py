"""Logical types from their text; `test_vectors.py` compares the same with Flink's own parser."""

from __future__ import annotations

import pickle
import re
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from support.inside.values import show

from keygroups import InvalidTypeError, InvalidValueError, UnsupportedKeyTypeError, hash_code
from keygroups.binary_row import binary_row
from keygroups.logical_types import LogicalType, parse_logical_type
from keygroups.types import SQL_ROW

MAX_LENGTH = 2**31 - 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bigint", LogicalType("BIGINT")),
        ("INTEGER NOT NULL", LogicalType("INT", nullable=False)),
        ("DECIMAL", LogicalType("DECIMAL", precision=10, scale=0)),
        ("dec(5)", LogicalType("DECIMAL", precision=5, scale=0)),
        ("NUMERIC(38,10)", LogicalType("DECIMAL", precision=38, scale=10)),
        ("CHAR", LogicalType("CHAR", length=1)),
        ("VARBINARY(20)", LogicalType("VARBINARY", length=20)),
        ("STRING", LogicalType("VARCHAR", length=MAX_LENGTH)),
        ("BYTES", LogicalType("VARBINARY", length=MAX_LENGTH)),
        ("TIME", LogicalType("TIME", precision=0)),
        ("TIMESTAMP", LogicalType("TIMESTAMP", precision=6)),
        (
            "TIMESTAMP(3) WITH LOCAL TIME ZONE",
            LogicalType("TIMESTAMP_LTZ", precision=3),
        ),
        ("ARRAY<INT>", LogicalType("ARRAY", fields=(LogicalType("INT"),))),
        (
            "ROW<`a b` INT, c ARRAY<STRING> 'why'>",
            LogicalType(
                "ROW",
                fields=(
                    LogicalType("INT"),
                    LogicalType("ARRAY", fields=(LogicalType("VARCHAR", length=MAX_LENGTH),)),
                ),
                names=("a b", "c"),
            ),
        ),
    ],
)
def test_parts(text: str, expected: LogicalType) -> None:
    """The defaults are those of Flink's DecimalType, CharType, TimeType and TimestampType."""
    found = parse_logical_type(text)
    assert found == expected
    assert hash(found) == hash(expected)
    assert parse_logical_type(str(found)) == found
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ROW(INT,STRING)", "ROW<INT, STRING>"),
        ("row<a int, b string>", "ROW<`a` INT, `b` STRING>"),
        ("ROW<`x``` INT, B STRING>", "ROW<`x``` INT, `B` STRING>"),
        ("ROW<>", "ROW<>"),
    ],
)
def test_names_of_fields_are_shown(text: str, shown: str) -> None:
    """As Flink's RowType does it, which wants names; ROW<INT, STRING> leaves them out here."""
    assert str(parse_logical_type(text)) == shown
    assert parse_logical_type(shown) == parse_logical_type(text)


def test_names_of_fields_count_in_no_key() -> None:
    key_types = [SQL_ROW("ROW<a INT, b STRING>"), SQL_ROW("ROW<INT, STRING>")]
    assert key_types[0] != key_types[1]  # Flink restores no state of the one as the other
    assert len({hash_code(((5, "a"),), key_type) for key_type in key_types}) == 1
    assert len({binary_row(((5, "a"),), key_type) for key_type in key_types}) == 1
    assert pickle.loads(pickle.dumps(key_types[0])).fields[0].names == ("a", "b")


def test_types_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        parse_logical_type("INT").name = "BIGINT"  # type: ignore[misc]


def test_types_nest_deeply() -> None:
    text = "ARRAY<ROW<a " * 50 + "INT" + ">" * 100
    assert str(parse_logical_type(text)) == text.replace("a ", "`a` ")
    with pytest.raises(InvalidValueError, match=r"position 600: types may nest at most 100 deep"):
        parse_logical_type("ARRAY<" + text + ">")
    with pytest.raises(InvalidValueError, match="types may nest at most 100 deep"):
        parse_logical_type("ARRAY<" * 100_000)


@pytest.mark.parametrize(
    ("text", "position", "says"),
    [
        ("", 0, "expected a type, got the end"),
        ("ROW<a INT, a INT>", 11, "names of fields must differ and not be blank, got 'a'"),
        ("ROW<`a``` INT, `a``` INT>", 15, "names of fields must differ"),
        ("ROW<` ` INT>", 4, "names of fields must differ and not be blank, got ' '"),
        ("  ", 2, "expected a type, got the end"),
        ("LONG", 0, "'LONG' is no type of Flink SQL, whose types are BOOLEAN"),
        ("\u0131nt", 0, "'\u0131nt' is no type"),  # its upper case is INT
        ("INT;", 3, "cannot read ';'"),
        ("`INT`", 0, "expected a type, got '`INT`'"),
        ("INT `", 4, "cannot read '`'"),
        ("INT STRING", 4, "expected the end, got 'STRING'"),
        ("INT(3)", 3, "expected the end, got '('"),
        ("INT NOT", 4, "expected the end, got 'NOT'"),
        ("CHAR(0)", 5, "the length must be from 1 to 2147483647, got '0'"),
        ("VARCHAR( 2147483648)", 9, "the length must be from 1 to 2147483647, got '2147483648'"),
        ("BINARY(" + "9" * 5000 + ")", 7, "the length must be from 1 to 2147483647, got '999"),
        ("CHAR(-1)", 5, "cannot read '-'"),
        ("CHAR(n)", 5, "expected the length, got 'n'"),
        ("CHAR(3", 6, "expected ), got the end"),
        ("DECIMAL(39)", 8, "the precision must be from 1 to 38, got '39'"),
        ("DECIMAL(0, 0)", 8, "the precision must be from 1 to 38, got '0'"),
        ("DECIMAL(5, 6)", 11, "the scale must be from 0 to 5, got '6'"),
        ("DECIMAL(5,)", 10, "expected the scale, got ')'"),
        ("DECIMAL(5, 2, 1)", 12, "expected ), got ','"),
        ("TIMESTAMP(10)", 10, "the precision must be from 0 to 9, got '10'"),
        ("TIME(10)", 5, "the precision must be from 0 to 9, got '10'"),
        ("TIME WITHOUT ZONE", 13, "expected TIME, got 'ZONE'"),
        ("TIMESTAMP WITH ZONE", 15, "expected LOCAL, got 'ZONE'"),
        ("TIMESTAMP WITH LOCAL TIME", 25, "expected ZONE, got the end"),
        ("ARRAY", 5, "expected <, got the end"),
        ("ARRAY<>", 6, "expected a type, got '>'"),
        ("ARRAY<INT", 9, "expected >, got the end"),
        ("ARRAY<INT ARRAY ARRAY>", 16, "expected >, got 'ARRAY'"),
        ("ROW", 3, "expected <, got the end"),
        ("ROW<a INT", 9, "expected ',' or '>', got the end"),
        ("ROW<a INT)", 9, "expected ',' or '>', got ')'"),
        ("ROW<a INT,>", 10, "expected a name, got '>'"),
        ("ROW<a INT, STRING>", 11, "expected a name, got 'STRING'"),
        ("ROW<INT, a STRING>", 9, "expected a type, as before without a name, got 'a'"),
        ("ROW<INT 'why'>", 8, "expected ',' or '>', got \"'why'\""),
        ("ROW<a>", 4, "'a' is no type of Flink SQL"),
        ("ROW<`a`>", 7, "expected a type, got '>'"),
        ("ROW<a INT, b ARRAY<CHAR(0)>>", 24, "the length must be from 1"),
    ],
)
def test_malformed(text: str, position: int, says: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        parse_logical_type(text)
    assert str(caught.value).startswith(f"type {show(text)}, position {position}: {says}")
    with pytest.raises(InvalidValueError, match=re.escape(f"field 1 of SQL_ROW: {caught.value}")):
        SQL_ROW("INT", text)


@pytest.mark.parametrize(
    ("text", "position", "name"),
    [
        ("MAP<INT, STRING>", 0, "MAP"),
        ("MULTISET<INT>", 0, "MULTISET"),
        ("ROW<a INT, b STRING MULTISET>", 13, "MULTISET"),
        ("ARRAY<MAP<INT, INT>>", 6, "MAP"),
        ("INTERVAL DAY TO SECOND", 0, "INTERVAL"),
        ("RAW('a.b.C', '...')", 0, "RAW"),
        ("TIMESTAMP(3) WITH TIME ZONE", 0, "TIMESTAMP WITH TIME ZONE"),
        ("variant", 0, "VARIANT"),
        ("NULL", 0, "NULL"),
    ],
)
def test_types_that_make_no_key(text: str, position: int, name: str) -> None:
    start = re.escape(f"type {text!r}, position {position}: {name} is not supported as a key")
    with pytest.raises(UnsupportedKeyTypeError, match=f"^{start}") as caught:
        parse_logical_type(text)
    assert ("the order of a Java map" in str(caught.value)) == (name in ("MAP", "MULTISET"))
    with pytest.raises(UnsupportedKeyTypeError, match=f"^field 0 of SQL_ROW: {start}"):
        SQL_ROW(text)


@pytest.mark.parametrize("text", [None, 5, b"INT", LogicalType("INT"), ["INT"]])
def test_what_is_no_text(text: Any) -> None:
    with pytest.raises(InvalidTypeError, match=r"^a logical type must be a str such as 'BIGINT'"):
        parse_logical_type(text)
    with pytest.raises(
        InvalidTypeError, match=r"^field 0 of SQL_ROW: a logical type must be a str"
    ):
        SQL_ROW(text)


def test_walk_goes_from_the_outside_in() -> None:
    text = "ROW<a INT, b ARRAY<DATE>>"
    assert [one.name for one in parse_logical_type(text).walk()] == ["ROW", "INT", "ARRAY", "DATE"]
