"""Each row of a table of names, asked for once: types, the examples of keys, and their bounds."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest
from hypothesis import strategies as st
from support.inside.answers import parse_key, parse_key_type

from keygroups import InvalidTypeError, InvalidValueError, KeyGroupsError, hash_code, types
from keygroups.cli import main
from keygroups.savepoint import KeySize
from keygroups.testing import keys
from keygroups.types import SQL_ROW, KeyType

# What --type takes, as its refusal lists it.
TYPES = (
    "BOOLEAN, BYTE, SHORT, INT, LONG, FLOAT, DOUBLE, CHAR, STRING, BIG_INT, BIG_DEC, LOCAL_DATE, "
    "LOCAL_TIME, LOCAL_DATE_TIME, INSTANT, UUID, SCALA_BIG_INT, BYTE_BUFFER, HASHED, NULL, "
    "TUPLE(t, ...), ROW(t, ...), LIST(t), SET(t), MAP(t, t), OPTIONAL(t), SQL_DATE('zone'), "
    "SQL_TIME('zone'), SQL_TIMESTAMP('zone'), SQL_ROW('BIGINT', ...), PYFLINK(t), "
    "OBJECTS_HASH(t, ...), SCALA_TUPLE(t, ..., scala='2.12'), "
    "CASE_CLASS('name', t, ..., scala='2.12'), SCALA_OPTION(t, scala='2.12'), "
    "SCALA_EITHER(t, t, scala='2.12')"
)
COLLECTION = (
    "no tool can place a collection of Scala, whose hash changed within 2.13: key the job by a "
    "String of it, or by fields"
)
BIG_DECIMAL = (
    "no tool can place a BigDecimal of Scala, whose hash goes by the JDK's Double.toString: key "
    "the job by its bigDecimal, a BIG_DEC, or by a String of it"
)
# Names of Flink SQL, databases and Scala that are no key types, and what is said of them.
OF_OTHERS = {
    **{"TINYINT": "BYTE", "SMALLINT": "SHORT", "INTEGER": "INT", "BIGINT": "LONG"},
    **{"DECIMAL": "BIG_DEC", "NUMERIC": "BIG_DEC", "DEC": "BIG_DEC", "VARCHAR": "STRING"},
    **{"DATE": "LOCAL_DATE", "TIME": "LOCAL_TIME", "TIMESTAMP": "LOCAL_DATE_TIME"},
    **{"TIMESTAMP_LTZ": "INSTANT", "ARRAY": "LIST", "TEXT": "STRING"},
}
SAID = {name: f": did you mean {meant}?" for name, meant in OF_OTHERS.items()}
SAID |= {"BYTES": "", "x": "", "": ""}
SAID |= dict.fromkeys(("SEQ", "VECTOR", "TRAVERSABLE", "ITERABLE"), f": {COLLECTION}")
SAID |= {f"SCALA_{name}": f": {COLLECTION}" for name in ("LIST", "SEQ", "VECTOR", "SET", "MAP")}
SAID |= dict.fromkeys(("SCALA_BIG_DEC", "SCALA_BIG_DECIMAL"), f": {BIG_DECIMAL}")


@pytest.mark.parametrize("name", SAID)
def test_what_is_said_of_a_name_that_is_no_type(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", "1", "-m", "128", "-p", "2", "--type", name]) == 2
    message = f"keygroups trace: --type must be one of {TYPES}, got {name!r}{SAID[name]}\n"
    assert capsys.readouterr().err == message


# How keys of a type are written, which their refusals show.
UUID = "123e4567-e89b-12d3-a456-426614174000"
EXAMPLES: dict[KeyType, str] = {
    types.BOOLEAN: "true",
    **dict.fromkeys((types.BYTE, types.SHORT, types.INT, types.LONG), "42"),
    **dict.fromkeys((types.BIG_INT, types.SCALA_BIG_INT, types.HASHED), "42"),
    **dict.fromkeys((types.FLOAT, types.DOUBLE), "1.5"),
    types.BIG_DEC: "1.50",
    **dict.fromkeys((types.LOCAL_DATE, types.SQL_DATE("UTC")), "2024-02-29"),
    **dict.fromkeys((types.LOCAL_TIME, types.SQL_TIME("UTC")), "23:59:59"),
    types.LOCAL_DATE_TIME: "2024-02-29T23:59:59",
    types.SQL_TIMESTAMP("UTC"): "2024-02-29T23:59:59",
    types.INSTANT: "2024-02-29T23:59:59Z",
    types.UUID: UUID,
    types.BYTE_BUFFER: "cafe01",
}
SQL_EXAMPLES = {
    "BOOLEAN": "true",
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), "42"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "1.5"),
    "DECIMAL(4, 2)": "1.50",
    "DATE": "2024-02-29",
    "TIME": "23:59:59",
    "TIMESTAMP(3)": "2024-02-29T23:59:59",
    "TIMESTAMP_LTZ(3)": "2024-02-29T23:59:59Z",
    **dict.fromkeys(("BINARY(3)", "VARBINARY(3)"), "cafe01"),
}


def test_examples_of_keys() -> None:
    """They are read, and each is what the refusal of another text shows."""
    for key_type, example in EXAMPLES.items():
        name = repr(key_type).partition("(")[0]
        parse_key(example, key_type)
        with pytest.raises(InvalidValueError) as caught:
            parse_key("?", key_type)
        message = f"key of type {name} must be written such as {example}, got '?'"
        assert str(caught.value) == message
    for name, example in SQL_EXAMPLES.items():
        parse_key(f"({example!r},)", SQL_ROW(name))
        with pytest.raises(InvalidValueError) as caught:
            parse_key("('?',)", SQL_ROW(name))
        message = (
            f"key of type {name.partition('(')[0]} must be written such as {example}, got '?'"
        )
        assert str(caught.value) == message


def test_types_are_shown_as_they_are_written() -> None:
    scalars = [value for value in vars(types).items() if isinstance(value[1], types.ScalarType)]
    assert len(scalars) == 20
    for name, value in scalars:
        assert repr(value) == value.name == name
        assert parse_key_type(name) is value
    rows = [types.ROW(types.INT, kind=kind) for kind in ("+I", "-U", "+U", "-D")]
    assert [row.kind_byte for row in rows] == [0, 1, 2, 3]  # RowKind.toByteValue


@pytest.mark.parametrize("scala", ["2.12", "2.13"])
def test_most_fields_of_tuples(scala: str) -> None:
    """Of Scala 22, of Flink 25."""
    assert len(types.SCALA_TUPLE(*[types.INT] * 22, scala=scala).fields) == 22
    with pytest.raises(InvalidValueError, match="SCALA_TUPLE has 1 to 22 fields"):
        types.SCALA_TUPLE(*[types.INT] * 23, scala=scala)
    assert len(types.TUPLE(*[types.INT] * 25).fields) == 25
    with pytest.raises(InvalidValueError, match="TUPLE has at most 25 fields in Flink, got 26"):
        types.TUPLE(*[types.INT] * 26)


@pytest.mark.parametrize(
    ("key_type", "bits"),
    [(types.BYTE, 8), (types.SHORT, 16), (types.INT, 32), (types.HASHED, 32), (types.LONG, 64)],
)
def test_integers_of_each_type(key_type: KeyType, bits: int) -> None:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    codes = [(low ^ low >> 32) if bits == 64 else low, (high ^ high >> 32) if bits == 64 else high]
    codes = [(code + (1 << 31)) % (1 << 32) - (1 << 31) for code in codes]  # the low 32 bits
    assert [hash_code(low, key_type), hash_code(high, key_type)] == codes
    for beyond in (low - 1, high + 1):
        message = f"key of type {key_type} must be from {low} to {high}, got {beyond}"
        with pytest.raises(InvalidValueError, match=f"^{message}$"):
            hash_code(beyond, key_type)


@pytest.mark.parametrize(
    ("make", "start", "end"),
    [
        *((list, "[", "]"), (tuple, "(", ")"), (set, "{", "}")),
        *((frozenset, "frozenset({", "})"), (dict.fromkeys, "{", "}")),
    ],
)
def test_refusals_show_ten_elements(make: Any, start: str, end: str) -> None:
    of_dict = ": None" if make == dict.fromkeys else ""
    for count, more in ((10, ""), (11, ", ...")):
        value = make(range(count))
        elements = ", ".join(f"{number}{of_dict}" for number in range(10))
        with pytest.raises(InvalidTypeError) as caught:
            hash_code(value, types.LOCAL_DATE)
        got = f"{start}{elements}{more}{end} of class {type(value).__name__}"
        assert str(caught.value) == f"key of type LOCAL_DATE must be a date, got {got}"


@pytest.mark.parametrize("size", [2_999, 3_000, 3_001])
def test_messages_have_at_most_3000_characters(size: int) -> None:
    text = str(KeyGroupsError("x" * size))
    assert (len(text), "..." in text) == (min(size, 3_000), size > 3_000)


def test_keys_are_shown_as_python_writes_them() -> None:
    for key in ((), (1,), (1, 2), [], [1, "a"], {1}, frozenset({1}), [(1.5, [None])]):
        assert repr(KeySize(key, 1, 2, 3, 4)).startswith(f"KeySize(key={key!r}, key_group=1, ")


@pytest.mark.skipif(
    not hasattr(sys, "get_int_max_str_digits"), reason="this Python prints an int of any length"
)
def test_long_integers_are_shown_in_hexadecimal() -> None:
    """However deep they are in a key, whose other elements are as Python writes them."""
    long = 1 << 20_000
    digits = hex(long)
    for key, text in [
        *((long, digits), ((long,), f"({digits},)"), ((1, long), f"(1, {digits})")),
        *(([long, "a"], f"[{digits}, 'a']"), ({long}, f"{{{digits}}}")),
        (frozenset({long}), f"frozenset({{{digits}}})"),
        *(({"a": long}, f"{{'a': {digits}}}"), ([(long,)], f"[({digits},)]")),
    ]:
        shown_key = repr(KeySize(key, 1, 2, 3, 4))
        assert shown_key == f"KeySize(key={text}, key_group=1, subtask=2, entries=3, bytes=4)"


def shown(strategy: st.SearchStrategy[Any]) -> str:
    return re.sub(r"\.filter\(\w+\)", "", repr(strategy))


def test_keys_are_drawn_from_the_whole_of_each_type() -> None:
    """From no more either, as what is no key is drawn in vain."""
    text = st.characters(exclude_categories=())  # surrogates too, which Java's texts may have
    drawn: dict[KeyType, st.SearchStrategy[Any]] = {
        types.BOOLEAN: st.booleans(),
        types.BYTE: st.integers(-128, 127),
        types.SHORT: st.integers(-32_768, 32_767),
        types.INT: st.integers(-2_147_483_648, 2_147_483_647),
        types.HASHED: st.integers(-2_147_483_648, 2_147_483_647),
        types.LONG: st.integers(-9_223_372_036_854_775_808, 9_223_372_036_854_775_807),
        types.FLOAT: st.floats(width=32),
        types.DOUBLE: st.floats(),
        types.CHAR: st.characters(exclude_categories=(), max_codepoint=65_535),
        types.STRING: st.text(text),
        types.LOCAL_DATE: st.dates(),
        types.LOCAL_TIME: st.times(),
        types.LOCAL_DATE_TIME: st.datetimes(),
        types.INSTANT: st.datetimes(timezones=st.timezones()),
        types.UUID: st.uuids(),
        types.BYTE_BUFFER: st.binary(max_size=30),
        types.NULL: st.none(),
    }
    large = st.integers() | st.integers(-(1 << 300), 1 << 300)  # far beyond a long, too
    drawn |= {types.BIG_INT: large, types.SCALA_BIG_INT: large}
    for key_type, strategy in drawn.items():
        assert shown(keys(key_type)) == shown(strategy)
    digits = st.lists(st.integers(0, 9), min_size=1, max_size=60)
    exponents = st.integers(-60, 60) | st.integers(-(1 << 30), 1 << 30)
    parts = f"{st.integers(0, 1)!r}, {digits!r}, {exponents!r})"
    assert shown(keys(types.BIG_DEC)).endswith(f", {parts}")
