"""Readers of columns against those of single values, which are held to what Flink read.

Either both have the same values, or the reader of columns leaves them to the other one; of what
Flink wrote it leaves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bytes.serializer_cases import Case, cases

pa = pytest.importorskip("pyarrow")
np = pytest.importorskip("numpy")

from support.bytes.column_schemas import TYPES, Type  # noqa: E402
from support.inside import serializers  # noqa: E402
from support.inside.columns import (  # noqa: E402
    ArrowColumn,
    abreast,
    arrow_array,
    column_of,
    is_open,
    key_column_of,
    patterns,
    reader_of,
    readers,
    scans,
    skips,
    texts,
)
from support.inside.serializers import BYTES, INT, STRING, TRUNCATED, RowDataSerializer  # noqa: E402

from keygroups.logical_types import parse_logical_type  # noqa: E402
from keygroups.savepoint.values import Pojo  # noqa: E402
from keygroups.state_keys import Serializer  # noqa: E402

REFUSED = (*TRUNCATED, ValueError)


class Sides:
    """A serializer's values in columns, from its reader of single values and of columns."""

    def __init__(self, serializer: Serializer, is_key: bool = False) -> None:
        self.serializer, self.is_key = serializer, is_key
        column = (key_column_of if is_key else column_of)(serializer)
        self.column: ArrowColumn = column or ArrowColumn(pa.null(), lambda values: values)
        self.read = reader_of(serializer, is_key)

    def by_value(self, written: Sequence[bytes]) -> Any:
        """Return an array, or None where the values are in no column."""
        values = []
        try:
            for data in written:
                assert self.serializer.read is not None
                value, end = self.serializer.read(data, 0)
                if end != len(data):
                    return None
                values.append(value)
            return arrow_array(self.column.convert(values), self.column.data_type)
        except REFUSED:
            return None

    def by_column(self, written: Sequence[bytes]) -> Any:
        """Return an array, or None where the values are left to the other side."""
        assert self.read is not None
        ends = np.cumsum([len(data) for data in written])
        try:
            array, read = self.read(b"".join(written), np.append(0, ends[:-1]))
        except REFUSED:
            return None
        if not np.array_equal(read, ends):
            return None
        if array is None:
            return pa.nulls(len(ends), self.column.data_type)
        if isinstance(array, list):  # texts with halves of surrogate pairs
            return None
        array.validate(full=True)
        assert array.type == self.column.data_type
        return array

    def assert_same(self, written: Sequence[bytes]) -> bool:
        """Return whether the reader of columns has read them."""
        ours, theirs = self.by_column(written), self.by_value(written)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(abreast, "_LEAST_ABREAST", 1)
            patch.setattr(texts, "_LEAST_ABREAST", 1)
            side_by_side = self.by_column(written)
        assert (ours is None) is (side_by_side is None)
        if ours is None:
            return False
        assert repr(side_by_side.to_pylist()) == repr(ours.to_pylist())
        assert theirs is not None
        assert repr(ours.to_pylist()) == repr(theirs.to_pylist())
        return True


def sides_of(case: Case) -> list[Sides]:
    data = b"\0\0\0\2" + case.snapshot
    serializer = Serializer.from_snapshot(data, kryo_version=case.kryo_version)
    if serializer.read is None or is_open(serializer):
        return []
    sides = [Sides(serializer, is_key) for is_key in (False, True)]
    return [side for side in sides if side.read is not None]


CASES = [(str(case), case, sides) for case in cases() for sides in (sides_of(case),) if sides]


def test_readers_of_as_many_serializers() -> None:
    read = {type(side.serializer).__name__ for _, _, sides in CASES for side in sides}
    assert len(read) > 60


@pytest.mark.parametrize(("case", "sides"), [pytest.param(c, s, id=n) for n, c, s in CASES])
def test_what_flink_wrote(case: Case, sides: list[Sides]) -> None:
    """Values one behind the other, and some alone; each is read by its column."""
    for side in sides:
        written = [value.data for value in case.values]
        good = [data for data in written if side.by_value([data]) is not None]
        if good:
            assert side.assert_same(good * 2)
            assert side.assert_same(good[::-1])
        for data in good[:2] + good[-2:]:
            assert side.assert_same([data])


@pytest.mark.parametrize(("case", "sides"), [pytest.param(c, s, id=n) for n, c, s in CASES])
def test_what_is_read_value_by_value(
    case: Case, sides: list[Sides], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same of lists that are walked side by side as of each alone: else it is only slower."""
    monkeypatch.setattr(readers, "or_by_value", lambda read, *_: read)
    for side in sides:
        whole = Sides(side.serializer, side.is_key)
        good = [one.data for one in case.values if whole.by_value([one.data]) is not None]
        for written in (good * 2, good[::-1], *([data] for data in good)):
            whole.assert_same(written)


class Watched(bytes):
    """Bytes that note from where to where they are looked at."""

    def __new__(cls, data: bytes) -> Watched:
        made = super().__new__(cls, data)
        made.first, made.last = len(data), 0
        return made

    first: int
    last: int

    def __getitem__(self, key: Any) -> Any:
        start, stop = (key, key + 1) if isinstance(key, int) else key.indices(len(self))[:2]
        self.first, self.last = min(self.first, start), max(self.last, stop)
        return super().__getitem__(key)


@pytest.mark.parametrize(("case", "sides"), [pytest.param(c, s, id=n) for n, c, s in CASES])
def test_what_is_passed_over(case: Case, sides: list[Sides]) -> None:
    """Of a value, and of nothing before or behind it, or many values would take ever longer."""
    skip = skips.skip_of(sides[0].serializer)
    for value in case.values:
        if sides[0].by_value([value.data]) is not None:
            data, end = Watched(b"\x80\xff\7" + value.data + b"\1\2"), 3 + len(value.data)
            assert skip(data, 3) == end
            assert data.first >= 3
            assert data.last <= end
            passed = skips.passed_of(sides[0].serializer)
            twice = Watched(b"\x80" + 2 * value.data + b"\x80\2")
            assert passed(twice, 1, 2) == [end - 2, 2 * end - 5]
            assert twice.last <= 2 * end - 5


@pytest.mark.parametrize(("case", "sides"), [pytest.param(c, s, id=n) for n, c, s in CASES])
def test_values_that_are_passed_over_side_by_side(case: Case, sides: list[Sides]) -> None:
    """They lie apart, and some have a byte beyond ASCII before or behind them."""
    side, data, starts, ends = sides[0], b"", [], []
    for number, value in enumerate(case.values):
        if side.by_value([value.data]) is not None:
            data += (b"\xff", b"")[number % 2]
            starts.append(len(data))
            data += value.data
            ends.append(len(data))
    if starts:
        assert passed_abreast(side.serializer, data, starts) == ends
        assert passed_abreast(side.serializer, data + b"\xff", starts[::2]) == ends[::2]


@pytest.mark.parametrize(
    ("serializer", "data"),
    [
        *(
            (serializer, number)
            for serializer in (
                *(serializers.BYTES, serializers.SQL_STRING, serializers.ListSerializer(INT)),
                *(serializers.ListSerializer(STRING), serializers.SetSerializer(INT)),
                *(serializers.MapSerializer(INT, STRING), serializers.StringArraySerializer()),
                *(serializers.GenericArraySerializer("a.B", INT), serializers.BigIntSerializer()),
                *(serializers.BigDecSerializer(), serializers.IntPrimitiveArraySerializer()),
                RowDataSerializer([parse_logical_type("INT")]),
            )
            for number in (b"\xff\xff\xff\xff", b"\x80\0\0\0")
        ),
        (serializers.BigIntSerializer(), b"\0\0\0\4"),
        (serializers.BigDecSerializer(), b"\0\0\0\4"),
    ],
    ids=str,
)
def test_what_is_no_count_is_not_passed_over(serializer: Serializer, data: bytes) -> None:
    """Nor read: what came next would begin before it."""
    assert serializer.read is not None
    for read in (skips.skip_of(serializer), serializer.read):
        with pytest.raises(ValueError, match=r"count|code|length|bytes"):
            read(data + bytes(8), 0)


def test_elements_of_which_no_column_is() -> None:
    """They are read one by one within their list, whose other parts are read together."""
    inner = serializers.LinkedListSerializer(INT)
    side = Sides(serializers.TupleSerializer([serializers.ListSerializer(inner), STRING]))
    written = [
        encoded(side.serializer, value)
        for value in (([[1, None], []], "a"), ([], "b"), ([[7]], "c"))
    ]
    assert side.assert_same(written)
    assert side.assert_same(written[::-1])


TEXTS = ["", "a", None, "x" * 62, "y" * 63, "z" * 64, "é", "a😀", "ab" * 60, "中" * 63]
IN_ROWS = serializers.TupleSerializer(
    [STRING, serializers.PojoSerializer("a.P", ["id", "age", "name"], [INT, INT, STRING]), STRING]
)


def rows_of(count: int, texts: Sequence[str | None], rng: Random) -> list[bytes]:
    """Return the bytes of tuples, some of whose POJOs are null, or have null fields."""

    def row() -> Any:
        numbers = {name: rng.choice((None, rng.randrange(1 << 31))) for name in ("id", "age")}
        fields = {**numbers, "name": rng.choice(texts)}
        pojo = None if rng.random() < 0.1 else Pojo("a.P", fields)
        return rng.choice(texts), pojo, rng.choice(texts)

    return [encoded(IN_ROWS, row()) for _ in range(count)]


@pytest.mark.parametrize("seed", range(20))
def test_a_scan_by_a_pattern(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It finds the same places as passing over one value after the other, wherever bytes end."""
    rng = Random(seed)
    monkeypatch.setattr(patterns, "_compiled", {})
    monkeypatch.setattr(patterns, "_WORTH", rng.choice([0, 5]))
    monkeypatch.setattr(patterns, "_SPARE", rng.choice([0, 30, 256]))
    monkeypatch.setattr(patterns, "_MANY", rng.choice([8, 128]))
    monkeypatch.setattr(patterns, "_LEAST_LEVELLED", rng.choice([0, 1 << 11]))
    texts = TEXTS[:6] if seed % 2 else TEXTS
    written = rows_of(60, texts, rng)
    data = b"\7" + b"".join(written)
    plain = scans.skip_scan(skips.skip_of(IN_ROWS))
    scan = patterns.pattern_scan(patterns.pattern_of([IN_ROWS]), plain)
    for _ in range(30):
        cut = data[: rng.randrange(1, len(data) + 1)] + rng.choice((b"", b"\x05abcd", b"\xff" * 9))
        count = rng.choice((0, 1, 7, 60, 99))
        assert [*scan(cut, 1, count)] == plain(cut, 1, count)


SQL_ROW = RowDataSerializer([*map(parse_logical_type, ("BIGINT", "STRING"))])


@pytest.mark.parametrize("serializer", [BYTES, SQL_ROW])
def test_frames_are_found_by_their_sizes(serializer: Serializer) -> None:
    """Of 64 sizes: others, which few values have, are passed over one by one."""
    pattern = patterns.pattern_of([serializer])
    assert pattern is not None
    least, step = (0, 1) if serializer is BYTES else (24, 8)
    for size in (*range(300), 528, 536, 1 << 20, -1):
        match = re.compile(pattern, re.DOTALL).match(
            size.to_bytes(4, "big", signed=True) + bytes(600)
        )
        assert (match is not None) == (size in range(least, least + 64 * step, step))
        assert match is None or match.end() == 4 + size


@pytest.mark.parametrize(
    ("character", "is_any"),
    [
        ("7f", True),
        ("ff7f", True),
        ("ffff03", True),
        ("808000", True),
        ("ffff04", False),
        ("ffff7f", False),
        ("80808000", False),
    ],
)
def test_characters_of_texts_have_sixteen_bits(character: str, is_any: bool) -> None:
    """More are none to the reader, and so many bytes are left to it."""
    data = b"\2" + bytes.fromhex(character)
    pattern = patterns.pattern_of([STRING])
    assert pattern is not None
    match = re.compile(pattern, re.DOTALL).fullmatch(data)
    assert (match is not None) is is_any
    if match:
        assert STRING.read is not None
        assert STRING.read(data, 0)[1] == len(data)


ADJACENT = serializers.PojoSerializer(
    "a.P", ["a", "b", "c", "d", "e"], [STRING, STRING, INT, INT, STRING]
)


@pytest.mark.parametrize("length", [0, 1, 2, 62, 63, 64])
@pytest.mark.parametrize("character", ["a", "é", "中"])
def test_texts_of_each_length_are_matched(character: str, length: int) -> None:
    """Up to 63 characters, by themselves, side by side in a POJO and on both sides of numbers."""
    text = character * length
    pojo = Pojo("a.P", {"a": text, "b": text, "c": 1, "d": -1, "e": text})
    for serializer, value in ((STRING, text), (ADJACENT, pojo)):
        pattern = patterns.pattern_of([serializer])
        assert pattern is not None
        match = re.compile(pattern, re.DOTALL).fullmatch(encoded(serializer, value))
        assert (match is not None) is (length <= 63)


def sought_by_patterns(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Have patterns compiled at once, and return a list that gets the bytes in which they seek."""
    sought: list[bytes] = []

    class Compiled:
        def __init__(self, pattern: bytes, flags: int) -> None:
            self._pattern = re.compile(pattern, flags)

        def findall(self, data: bytes, pos: int, end: int) -> list[bytes]:
            sought.append(data[pos:end])
            return self._pattern.findall(data, pos, end)

    monkeypatch.setattr(patterns, "_compiled", {})
    monkeypatch.setattr(patterns, "_WORTH", 0)
    monkeypatch.setattr(patterns, "re", SimpleNamespace(compile=Compiled, DOTALL=re.DOTALL))
    return sought


@pytest.mark.parametrize(
    ("serializer", "is_levelled"), [(STRING, True), (BYTES, True), (SQL_ROW, False)]
)
def test_bytes_that_are_no_ascii_are_levelled_where_no_size_is_one(
    serializer: Serializer, is_levelled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row may have 136 bytes: of 88 as of any other such byte it could not be told."""
    sought = sought_by_patterns(monkeypatch)
    written = {
        STRING: encoded(STRING, "\xe9\x7f"),  # e9 01 7f
        BYTES: encoded(BYTES, bytes([0, 0x7F, 0x80, 0xFE])),
        SQL_ROW: encoded(SQL_ROW, (-2, "x" * 112)),
    }[serializer]
    assert written[:4] == (136).to_bytes(4, "big") or serializer is not SQL_ROW
    plain = scans.skip_scan(skips.skip_of(serializer))

    def none(data: bytes, pos: int, count: int) -> Any:
        raise AssertionError("the pattern has to match all")

    data = written * 500
    for count in (3, 500):  # few bytes, and many
        scan = patterns.pattern_scan(patterns.pattern_of([serializer]), none)
        assert [*scan(data, 0, count)] == plain(data, 0, count)
    levelled = bytes(byte if byte < 0x80 else 0xFF for byte in written)
    assert all(octets.startswith(levelled if is_levelled else written) for octets in sought)


def test_values_that_are_mostly_others_are_passed_over_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They would be sought twice, and so are all until there are many again."""
    monkeypatch.setattr(patterns, "_compiled", {})
    monkeypatch.setattr(patterns, "_WORTH", 0)
    counts: list[int] = []
    plain = scans.skip_scan(skips.skip_of(STRING))

    def counted(data: bytes, pos: int, count: int) -> Any:
        counts.append(count)
        return plain(data, pos, count)

    scan = patterns.pattern_scan(patterns.pattern_of([STRING]), counted)
    short, long = encoded(STRING, "short"), encoded(STRING, "x" * 200)
    for data in (long * 4, long * 50, short * 50):
        assert len(scan(data, 0, 50)) == len(plain(data, 0, 50))
    assert counts == [1] * 5 + [50]  # The last ones match the pattern.


def test_a_pattern_is_sought_in_about_as_many_bytes_as_its_values_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However many others follow: they may be those of a whole key group."""
    sought = sought_by_patterns(monkeypatch)
    plain = scans.skip_scan(skips.skip_of(STRING))
    scan = patterns.pattern_scan(patterns.pattern_of([STRING]), plain)
    data = encoded(STRING, "a text of 40 characters, as it says here") * 5_000
    pos = 0
    for _ in range(50):
        pos = scan(data, pos, 100)[-1]
    assert pos == len(data)
    assert len(data) <= sum(map(len, sought)) < 2 * len(data)


def test_a_pattern_is_compiled_for_all_subtasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes as long as to pass over thousands of values, and each has values of its own."""
    monkeypatch.setattr(patterns, "_compiled", {})
    monkeypatch.setattr(patterns, "_WORTH", 5)
    monkeypatch.setattr(patterns, "_MOST_KEPT", 2)
    counts: list[int] = []
    plain = scans.skip_scan(skips.skip_of(STRING))

    def counted(data: bytes, pos: int, count: int) -> Any:
        counts.append(count)
        return plain(data, pos, count)

    data = encoded(STRING, "short") * 20
    for _ in range(2):
        scan = patterns.pattern_scan(patterns.pattern_of([STRING]), counted)
        for _ in range(2):
            assert scan(data, 0, 20) == plain(data, 0, 20)
    assert counts == [20]
    for number in (2, 3, 4):  # more patterns than are kept
        scan = patterns.pattern_scan(patterns.pattern_of([STRING] * number), counted)
        for _ in range(2):
            assert len(scan(data, 0, 5)) == 6 or number == 4
    assert len(patterns._compiled) <= 2


@pytest.mark.parametrize("count", [12, 14])
def test_patterns_are_of_bounded_length(count: int) -> None:
    """Of a few texts; a header may have any number."""
    pattern = patterns.pattern_of([STRING] * count)
    assert (pattern is None) is (count == 14)
    scan = scans.skip_scan(skips.skip_of(STRING))
    assert patterns.pattern_scan(None, scan) is scan


def test_a_pattern_that_fails_late_fails_soon() -> None:
    """No alternative matches what another one does, or a text more would double the time."""
    texts = [encoded(STRING, text) for text in ("é" * 60, "a" * 60, "", "中b" * 30)] * 3
    pattern = patterns.pattern_of([*[STRING] * len(texts), serializers.TupleSerializer([INT])])
    assert pattern is not None
    assert re.compile(pattern + b"\x07", re.DOTALL).match(b"".join(texts) + b"\0" * 9) is None


def damaged(data: bytes, rng: Random) -> bytes:
    """Return bytes of which one, or some, are others, or missing."""
    changed, place = bytearray(data), rng.randrange(len(data))
    how = rng.randrange(5)
    if how == 0:
        changed[place] ^= 1 << rng.randrange(8)
    elif how == 1:
        changed[place] = rng.choice((0, 1, 2, 4, 0x7F, 0x80, 0xFF))
    elif how == 2:
        lengths = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x80\0\0\0")
        changed[place : place + 4] = rng.choice(lengths)
    elif how == 3:
        del changed[place]
    else:
        del changed[place:]
    return bytes(changed)


MANY = [f"Z\u00fcrich {number}, \u20ac, \U0001f600" for number in range(20)]


def test_texts_that_are_no_ascii_are_read_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    written = [encoded(STRING, text) for text in ("a", *MANY, None, "", *MANY)]
    assert Sides(STRING).assert_same(written)
    monkeypatch.setattr(texts, "read_string", None)  # nobody calls it
    assert Sides(STRING).by_column(written).to_pylist() == ["a", *MANY, None, "", *MANY]


def test_characters_of_each_width_are_read_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first and the last one of each number of bytes in UTF-8, and of halves in UTF-16.

    RFC 3629 has the former, RFC 2781 the latter: U+103FF and U+10FFFF end with 0xDFFF.
    """
    monkeypatch.setattr(texts, "read_string", None)  # nobody calls it
    bounds = "\x7f\x80\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U000103ff\U0010fc00\U0010ffff"
    many = [before + character for character in bounds for before in ("", "a", "\u20ac")]
    written = [encoded(STRING, text) for text in many]
    assert Sides(STRING).by_column(written).to_pylist() == many


@pytest.mark.parametrize(
    "odd",
    [
        [serializers.write_string("a\ud800")],  # half of a pair
        # Those of one, in two texts.
        [serializers.write_string("\u00e9\ud83d"), serializers.write_string("\ude00")],
        [b"\3a\xe9\x81\x80\x00"],  # a unit in four bytes
        [b"\3a\xff\xff\x7f"],  # a number that is no unit
        [b"\3a\xe9"],  # a unit without its last byte
    ],
    ids=["half", "halves", "four bytes", "no unit", "too few bytes"],
)
def test_texts_that_are_odd_are_read_one_by_one(odd: list[bytes]) -> None:
    """With all that are no ASCII beside them, and with the same values or errors."""
    written = [encoded(STRING, text) for text in MANY] + odd
    side, bounds = Sides(STRING), np.cumsum([0, *map(len, written)])
    data, values = b"".join(written), []
    assert side.read is not None
    try:
        for start in bounds[:-1].tolist():
            values.append(STRING.read(data, start)[0])
    except REFUSED as error:
        with pytest.raises(type(error)):
            side.read(data, bounds[:-1])
        return
    column, ends = side.read(data, bounds[:-1])
    assert list(column if isinstance(column, list) else column.to_pylist()) == values
    assert ends.tolist() == bounds[1:].tolist()


@pytest.mark.long
@pytest.mark.parametrize("rounds", [4, pytest.param(150, marks=pytest.mark.slow)])
def test_damaged_values(rounds: int) -> None:
    """Both have the same values, or neither takes them for values: no error is lost."""
    rng = Random(rounds)
    refused = 0
    for _, case, sides in CASES:
        side = sides[-1]
        good = [value.data for value in case.values if value.data]
        for _ in range(rounds if good else 0):
            written = rng.choices(good, k=rng.choice((1, 2, 6)))
            place = rng.randrange(len(written))
            written[place] = damaged(written[place], rng)
            refused += not side.assert_same(written)
            assert_passed_over(side.serializer, written[place] + b"\0\0\0")
    assert refused > 100


def assert_passed_over(serializer: Serializer, data: bytes) -> None:
    """Assert that what is read is passed over, up to the same place."""
    assert serializer.read is not None
    try:
        _, end = serializer.read(data, 0)
    except REFUSED:
        return
    assert skips.skip_of(serializer)(data, 0) == end
    assert passed_abreast(serializer, data, [0]) in ([end], None)
    pattern = patterns.pattern_of([serializer])
    match = pattern and re.compile(pattern, re.DOTALL).match(data)
    assert not match or match.end() == end


def passed_abreast(serializer: Serializer, data: bytes, starts: Sequence[int]) -> Any:
    """Return the ends of values, None where they are left to the reader of single ones."""
    try:
        ends = abreast.pass_all_of(serializer)(abreast.SearchedBytes(data), np.array(starts))
    except REFUSED:
        return None
    return ends.tolist()


@pytest.mark.long
@given(TYPES, st.data())
@settings(max_examples=30, deadline=None)
def test_types_that_hypothesis_draws(drawn: Type, data: st.DataObject) -> None:
    """Nested in one another, with nulls, texts of every kind."""
    assert_read(drawn, data)


@pytest.mark.slow
@given(TYPES, st.data())
@settings(max_examples=600, deadline=None)
def test_many_types_that_hypothesis_draws(drawn: Type, data: st.DataObject) -> None:
    assert_read(drawn, data)


def assert_read(drawn: Type, data: st.DataObject) -> None:
    """Assert that values of a type are read, and that damaged ones are values to both or none."""
    values = data.draw(st.lists(drawn.values, min_size=1, max_size=6))
    side = Sides(drawn.serializer)
    written = [encoded(drawn.serializer, value) for value in values]
    if side.read is not None and side.by_value(written) is not None:
        assert side.assert_same(written)
    for one in written:
        assert_passed_over(drawn.serializer, one + b"\0")
    if side.read is not None and any(written):
        rng = data.draw(st.randoms(use_true_random=False))
        place = rng.choice([place for place, one in enumerate(written) if one])
        side.assert_same([*written[:place], damaged(written[place], rng), *written[place + 1 :]])


def encoded(serializer: Serializer, value: Any) -> bytes:
    assert serializer.write is not None
    return serializer.write(value)
