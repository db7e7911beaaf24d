"""Single rows that become columns, against the same rows that are written one by one."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support.inside import serializers
from support.inside.savepoints import NewState
from support.inside.serializers import PojoSerializer, RowDataSerializer

from keygroups import KeyGroupsError
from keygroups.errors import InvalidValueError
from keygroups.logical_types import parse_logical_type
from keygroups.savepoint import (
    ListStateDescriptor,
    MapStateDescriptor,
    OperatorWriter,
    Pojo,
    Row,
    SavepointWriter,
    StateDescriptor,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.state_keys import VOID_NAMESPACE, serializer_of
from keygroups.types import (
    BIG_DEC,
    BOOLEAN,
    BYTE,
    DOUBLE,
    FLOAT,
    INT,
    LOCAL_DATE,
    LONG,
    SHORT,
    SQL_ROW,
    STRING,
    TUPLE,
)

pytest.importorskip("pyarrow")

from support.inside.columns import PlainRows, plain_rows, table_writer

Rows = Sequence[tuple[Any, ...]]  # the arguments of `write`
WRITER = "keygroups.savepoint._writing.operator_writer"
TIME, NOW = 1_700_000_000_000, 1_800_000_000.0


class Text(str):
    """No plain text."""


POJO = PojoSerializer(
    "a.Visit",
    ("id", "name", "day", "price", "is_new"),
    [*map(serializer_of, (LONG, STRING, LOCAL_DATE, BIG_DEC, BOOLEAN))],
)
DAY = dt.date(2024, 2, 29)
SQL = SQL_ROW(
    *("BIGINT", "STRING", "DECIMAL(10, 2)", "TIMESTAMP(3)", "DATE", "TINYINT", "DOUBLE", "BOOLEAN")
)
MOMENT = dt.datetime(2024, 2, 29, 1, 2, 3, 4_000)


def visit(java_class: str = "a.Visit", **fields: Any) -> Pojo:
    return Pojo(
        java_class,
        {"id": 1, "name": "x", "day": DAY, "price": None, "is_new": True} | fields,
    )


def sql_row(**fields: Any) -> Row:
    values = {"f0": 1, "f1": "x", "f2": Decimal("1.25"), "f3": MOMENT, "f4": DAY, "f5": 1}
    return Row([*(values | {"f6": 0.5, "f7": True} | fields).values()])


STATES: list[NewState] = [
    ValueStateDescriptor("long", LONG),
    ValueStateDescriptor("int", INT),
    ValueStateDescriptor("short", SHORT),
    ValueStateDescriptor("byte", BYTE),
    ValueStateDescriptor("double", DOUBLE),
    ValueStateDescriptor("float", FLOAT),
    ValueStateDescriptor("boolean", BOOLEAN),
    ValueStateDescriptor("text", STRING),
    ValueStateDescriptor("timed", LONG, has_ttl=True),
    ValueStateDescriptor("tuple", TUPLE(STRING, INT)),
    ValueStateDescriptor("pojo", POJO),
    ValueStateDescriptor("sql", SQL),
    ValueStateDescriptor("one", PojoSerializer("a.One", ("id",), [serializer_of(LONG)])),
    ValueStateDescriptor("bytes", SQL_ROW("BYTES", "FLOAT")),
    ValueStateDescriptor("sql text", serializers.scalars.StringDataSerializer()),
    ListStateDescriptor("list", LONG),
    MapStateDescriptor("map", STRING, LONG),
    MapStateDescriptor("timed map", INT, STRING, has_ttl=True),
]
PLAIN: dict[str, list[tuple[Any, ...]]] = {
    "long": [(0,), (2**63 - 1,), (-(2**63),)],
    "int": [(2**31 - 1,), (-(2**31),)],
    "short": [(2**15 - 1,), (-(2**15),)],
    "byte": [(127,), (-128,)],
    "double": [(0.0,), (-0.0,), (float("nan"),), (float("inf"),)],
    "boolean": [(True,), (False,)],
    "text": [("",), ("\u6771",), ("\U0001f600",), ("x" * 128,)],
    "timed": [(1, None, TIME), (1, None, int(NOW) * 1000)],
    "tuple": [(("x", 1),), (("", -1),)],
    "pojo": [(visit(),), (visit(id=None, name=None),), (visit(day=None, is_new=False),)],
    "sql": [
        (sql_row(),),
        (sql_row(f0=None, f1=None, f2=None, f3=None),),
        (sql_row(f2=Decimal("-99999999.99")),),
        (sql_row(f2=Decimal("-0.00"), f1="\u6771" * 20),),
    ],
    "one": [(Pojo("a.One", {"id": 5}),), (Pojo("a.One", {"id": None}),)],
    "bytes": [(Row([b"x" * 128, 0.5]),), (Row([None, None]),), (Row([b"", None]),)],
    "sql text": [("",), ("x" * 128,), ("\u6771\U0001f600",)],
    "map": [(1, "x"), (2, "y")],
    "timed map": [("x", 1, TIME), ("y", 2, TIME)],
}
# Rows that are written, but not as columns.
WRITTEN: dict[str, list[tuple[Any, ...]]] = {
    "float": [(0.5,)],
    "text": [("x" * 129,), (Text("x"),), ("\ud800",)],
    "tuple": [((None, 1),)],
    "pojo": [(visit(price=Decimal("1.5")),), (visit(name="x" * 200),), (visit(name="\udfff"),)],
    "sql": [
        (sql_row(f2=Decimal("1.5")),),
        (sql_row(f1="x" * 200),),
        (Row([*sql_row()], "-U"),),
        (tuple(sql_row()),),
    ],
    "bytes": [(Row([b"x" * 129, 0.5]),)],
    "sql text": [("x" * 129,), (Text("x"),)],
    "list": [([1, 2],)],
}
# Those that are refused, each by the call that has it.
REFUSED: dict[str, list[tuple[Any, ...]]] = {
    "long": [
        (2**63,),
        (-(2**63) - 1,),
        (None,),
        (True,),
        (1.0,),
        ("1",),
        (1, "x"),
        (1, None, TIME),
    ],
    "int": [(2**31,), (-(2**31) - 1,)],
    "short": [(2**15,)],
    "byte": [(128,), (-129,)],
    "double": [(1,), (None,)],
    "boolean": [(1,)],
    "text": [(None,), (b"x",)],
    "timed": [(1,), (1, None, 10**9), (1, None, TIME * 1000), (1, None, 1.5)],
    "tuple": [(("x",),), (("x", None),), (["x", 1, 2],), (("x", 2**31),), (None,)],
    "pojo": [
        (visit("a.Other"),),
        (visit(id=2**63),),
        (visit(more=1),),
        (Pojo("a.Visit", {"id": 1}),),
        (visit(day="x"),),
        (visit(is_new=1),),
    ],
    "sql": [
        (sql_row(f0=2**63),),
        (sql_row(f1="\ud800"),),
        (sql_row(f2=Decimal("1.255")),),
        (sql_row(f2=Decimal("NaN")),),
        (sql_row(f3=MOMENT.replace(microsecond=1)),),
        (sql_row(f5=128),),
        (Row([1]),),
        (None,),
    ],
    "one": [(Pojo("a.One", {"it": 5}),), (Pojo("a.One", {}),), (Pojo("a.One", {"id": 2**63}),)],
    "bytes": [(Row([b"", 1e300]),), (Row([b""]),), (Row(["x", 0.5]),)],
    "sql text": [("\ud800",), (None,), (b"x",)],
    "list": [([],), (None,)],
    "map": [(1,), (1, None), (None, "x"), (1, 5), (1, "x", TIME)],
    "timed map": [("x", 1), ("x", 2**31, TIME), (None, None, TIME)],
}


def rows_of(*cases: dict[str, list[tuple[Any, ...]]]) -> Iterator[tuple[Any, ...]]:
    """Yield rows with keys of their own, those of all states in turn."""
    rows = [(state, *row) for case in cases for state, rows in case.items() for row in rows]
    for number, (state, *row) in enumerate(sorted(rows, key=lambda row: len(str(row)))):
        yield state, f"key {number}", *row


@pytest.fixture
def contents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[list[bytes], list[Any], int]]:
    """What writes rows, with `few` of them one by one before any become columns.

    With 1,000 of them none is held: each is written when it comes. It returns the files, what was
    raised by each call, and how many rows became columns.
    """
    monkeypatch.setattr("time.time", lambda: NOW)
    entries = table_writer.TableWriter.entries
    made: list[int] = []

    def counted(*arguments: Any) -> Any:
        batch = entries(*arguments)
        made.append(0 if batch is None else batch.num_rows)
        return batch

    monkeypatch.setattr(table_writer.TableWriter, "entries", counted)

    def call(
        rows: Rows, few: int, key_type: Any = STRING, at_once: int = 5, **options: Any
    ) -> Any:
        made.clear()
        raised: list[Any] = []
        folder = tmp_path / f"{len([*tmp_path.iterdir()])}"
        with monkeypatch.context() as patch, SavepointWriter(folder) as writer:
            patch.setattr(f"{WRITER}._FEW", few)
            patch.setattr(f"{WRITER}._AT_ONCE", at_once)
            if few == 1_000:
                patch.setattr(PlainRows, "of", lambda _: None)
            operator = writer.add_operator(
                "uid", key_type, STATES, 128, 3, **{"sort": True} | options
            )
            for row in rows:
                try:
                    operator.write(*row)
                except KeyGroupsError as error:
                    raised.append((row, type(error), str(error)))
        files = sorted(path.read_bytes() for path in folder.iterdir() if path.name != "_metadata")
        return files, raised, sum(made)

    return call


@pytest.mark.long
@pytest.mark.parametrize("at_once", [1, 5, 1 << 14])
def test_plain_rows_have_the_bytes_of_single_ones(
    contents: Callable[..., Any], at_once: int
) -> None:
    rows = [*rows_of(PLAIN)]
    files, raised, count = contents(rows, 0, at_once=at_once)
    assert count == len(rows)
    assert (files, raised, 0) == contents(rows, 1_000)
    assert not raised
    # Rows that were held are written one by one too.
    assert (files, raised, 0) == contents(rows, 999, at_once=at_once)


def test_rows_of_more_shapes_than_are_remembered(
    contents: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_rows, "_MOST_SHAPES", 1)
    rows = [*rows_of(PLAIN, {"pojo": REFUSED["pojo"]})]
    files, raised, count = contents(rows, 0)
    assert count == sum(map(len, PLAIN.values()))
    assert (files, raised, 0) == contents(rows, 1_000)


def many(count: int, part: Any = BYTE) -> Any:
    return serializers.TupleSerializer([serializer_of(part)] * count)


PAIR = serializers.TupleSerializer([serializer_of(STRING), serializer_of(STRING)])
DECIMAL = serializer_of(SQL_ROW("DECIMAL(10, 2)"))
OCTETS = serializer_of(SQL_ROW("BYTES"))
ENDS = [(BYTE, 7), (SHORT, 15), (INT, 31), (LONG, 63)]


@pytest.mark.parametrize(
    ("serializer", "held", "others"),
    [
        *(
            (serializer_of(kind), [0, 2**bits - 1, -(2**bits)], [2**bits, -(2**bits) - 1, True])
            for kind, bits in ENDS
        ),
        *(
            (
                serializers.TupleSerializer([serializer_of(STRING), serializer_of(kind)]),
                [("", 2**bits - 1), ("", -(2**bits))],
                [("", 2**bits), ("", -(2**bits) - 1), ("", True), ("", None), ("",), ["", 1]],
            )
            for kind, bits in ENDS
        ),
        (serializer_of(STRING), ["", "x" * 128, "é" * 128], ["x" * 129, Text("x"), None, 1]),
        (
            serializers.scalars.StringDataSerializer(),
            ["x" * 128, "\ud7ff", "\ue000", "é\uffff"],
            ["x" * 129, "\ud800", "é\udfff", "\udbff", "\udc00", Text("x")],
        ),
        (PAIR, [("x" * 256, ""), ("é" * 128, "x" * 128)], [("x" * 257, ""), ("x" * 129,) * 2]),
        (OCTETS, [Row([bytes(128)]), Row([b""]), Row([None])], [Row([bytes(129)]), Row([1])]),
        (
            DECIMAL,
            [Row([Decimal(text)]) for text in ("99999999.99", "-99999999.99", "0.00", "-0.00")],
            [
                Row([Decimal(text)])
                for text in ("100000000.00", "-100000000.00", "1.5", "1.255", "NaN", "1")
            ],
        ),
        (many(128), [(1,) * 128], [(1,) * 127, (1,) * 129]),
        (many(1), [(1,)], [(), (1, 1), Row([1])]),
        (
            serializers.PojoSerializer("a.B", ("n",), [serializer_of(INT)]),
            [Pojo("a.B", {"n": 1}), Pojo("a.B", {"n": None})],
            [Pojo("a.C", {"n": 1}), Pojo("a.B", {"m": 1}), Pojo("a.B", {"n": 1, "m": 1}), (1,)],
        ),
    ],
    ids=lambda case: str(case)[:25],
)
def test_the_ends_of_what_is_held(serializer: Any, held: list[Any], others: list[Any]) -> None:
    """The rows on either side: one that is not held is written by itself, which is slow."""
    part = plain_rows._plain_part(serializer)
    assert part is not None
    for value in held:
        fields = part.fields_of(value)
        assert fields is not None, value
        assert len(fields) == part.width
        assert [*part.values([*fields, *fields])] == [value, value]
    for value in others:
        assert part.fields_of(value) is None, value


OF_SQL: dict[str, Any] = {
    "TINYINT": 1,
    "SMALLINT": 1,
    "INT": 1,
    "BIGINT": 1,
    "BOOLEAN": True,
    "FLOAT": 0.5,
    "DOUBLE": 0.5,
    "CHAR(2)": "xy",
    "STRING": "x",
    "BINARY(2)": b"xy",
    "BYTES": b"x",
    "DATE": DAY,
    "TIME(3)": dt.time(1, 2),
    "TIMESTAMP(3)": MOMENT,
    "TIMESTAMP_LTZ(3)": MOMENT.replace(tzinfo=dt.timezone.utc),
    "DECIMAL(3, 1)": Decimal("1.5"),
}


@pytest.mark.parametrize("sql_type", OF_SQL)
def test_types_of_sql_that_are_held(sql_type: str) -> None:
    part = plain_rows._plain_part(RowDataSerializer([parse_logical_type(sql_type)]))
    assert part is not None
    for value in (OF_SQL[sql_type], None):
        assert part.fields_of(Row([value])) is not None
    assert part.fields_of(Row([object()])) is None


def test_values_of_which_none_is_held() -> None:
    wide = RowDataSerializer([parse_logical_type("INT")] * 129)
    nested = RowDataSerializer([parse_logical_type("INT"), parse_logical_type("ARRAY<INT>")])
    for serializer in (many(129), many(0), wide, nested, serializers.ListSerializer(many(1))):
        assert plain_rows._plain_part(serializer) is None


@pytest.mark.parametrize(("most", "made"), [(0, 6), (1, 5), (2, 4), (3, 3), (4, 3)])
def test_shapes_that_are_remembered(most: int, made: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as there may be: a row of any other shape has it made again."""
    monkeypatch.setattr(plain_rows, "_MOST_SHAPES", most)
    asked: list[Any] = []
    make = plain_rows._Shape.of

    def making(*row: Any) -> Any:
        asked.append(row)
        return make(*row)

    monkeypatch.setattr(plain_rows._Shape, "of", making)
    part = plain_rows._plain_part(serializer_of(SQL_ROW("INT", "STRING")))
    assert part is not None
    for row in (Row([1, "x"]), Row([None, "x"]), Row([1, None])):
        assert part.fields_of(row) is part.fields_of(row) is row
    assert len(asked) == made


def test_the_length_of_texts(contents: Callable[..., Any]) -> None:
    """The texts of a row may have as many characters as if each had the most."""
    pair = TUPLE(STRING, STRING)
    rows = [("long", ("x" * size, "y" * (256 - size)), size) for size in (0, 128, 256)]
    rows += [("long", ("x" * 200, "y" * 57), 1)]
    files, raised, count = contents(rows, 0, key_type=pair)
    assert (files, raised, 0) == contents(rows, 1_000, key_type=pair)
    assert count == 3


def test_rows_that_stay_single(contents: Callable[..., Any]) -> None:
    """Each between plain ones, whose block may have to be written one by one with it."""
    rows = [*rows_of(PLAIN, WRITTEN, WRITTEN)]
    files, raised, count = contents(rows, 0)
    assert (files, raised, 0) == contents(rows, 1_000)
    assert not raised
    assert 0 < count <= sum(map(len, PLAIN.values()))
    assert contents([*rows_of(WRITTEN)], 0, at_once=1)[2] == 0


def test_rows_that_are_refused(contents: Callable[..., Any]) -> None:
    """By the call that has them, in the same words, and the others are written."""
    rows = [*rows_of(PLAIN, REFUSED)]
    rows += [("long", key, 1) for key in (None, 5, b"x", 1.5)]
    rows += [("none", "a", 1), (5, "a", 1), ("long", "a", 1, None, None, 5)]
    files, raised, count = contents(rows, 0)
    assert (files, raised, 0) == contents(rows, 1_000)
    assert len(raised) == sum(map(len, REFUSED.values())) + 7
    assert count == sum(map(len, PLAIN.values()))


def test_any_last_access(contents: Callable[..., Any]) -> None:
    rows = [
        ("timed", f"key {time}", 1, None, time)
        for time in (0, -(2**63), 2**63 - 1, 2**63, TIME, TIME * 1000)
    ]
    files, raised, count = contents(rows, 0, allow_any_last_access=True)
    assert (files, raised, 0) == contents(rows, 1_000, allow_any_last_access=True)
    assert count == 1
    assert [row[-1] for row, *_ in raised] == [2**63]


KEYS: list[tuple[Any, list[Any], bool]] = [
    (LONG, [1, -5, 2**63 - 1], True),
    (INT, [1, -5], True),
    (TUPLE(LONG, STRING), [(1, "x"), (-5, "")], True),
    (SQL_ROW("BIGINT"), [(1,), Row([5])], False),
]


@pytest.mark.parametrize(("key_type", "keys", "is_plain"), KEYS)
def test_keys_of_other_types(
    contents: Callable[..., Any], key_type: Any, keys: list[Any], is_plain: bool
) -> None:
    rows = [("long", key, number) for number, key in enumerate(keys)]
    files, raised, count = contents(rows, 0, key_type=key_type)
    assert (files, raised, 0) == contents(rows, 1_000, key_type=key_type)
    assert count == is_plain * len(keys)


def test_states_without_plain_rows() -> None:
    """Those by windows, those of lists, of many fields and of arrays, and timers."""
    string, long = map(serializer_of, (STRING, LONG))
    many = serializers.TupleSerializer([long] * 25)
    arrays = serializers.RowDataSerializer([*map(parse_logical_type, ("INT", "ARRAY<INT>"))])
    pojo = PojoSerializer("a.B", [*map(str, range(129))], [long] * 129)

    def has_rows(value: Any, kind: str = "VALUE", namespace: Any = VOID_NAMESPACE) -> bool:
        state = StateDescriptor("s", kind, string, namespace, value)
        return PlainRows.of(state) is not None

    assert has_rows(long)
    assert has_rows(many)
    wide = PlainRows.of(StateDescriptor("s", "VALUE", string, VOID_NAMESPACE, many))
    assert wide is not None
    assert wide.width == 26  # so fewer of them are held
    assert not has_rows(pojo)
    assert not has_rows(PojoSerializer("a.B", (), []))
    assert not has_rows(serializers.RowSerializer([long]))
    assert not has_rows(serializer_of(FLOAT))
    for user_key, has_some in ((LONG, True), (FLOAT, False)):
        of_map = StateDescriptor("s", "MAP", string, VOID_NAMESPACE, long, serializer_of(user_key))
        assert (PlainRows.of(of_map) is not None) == has_some
    assert not has_rows(arrays)
    assert not has_rows(long, "LIST")
    assert not has_rows(None)
    assert not has_rows(long, namespace=serializers.TableTimeWindowSerializer())


def test_the_first_rows_stay_single(contents: Callable[..., Any]) -> None:
    """Blocks of three, until there were more than ten rows."""
    rows = [("long", f"key {number}", number) for number in range(30)]
    files, _, count = contents(rows, 10)
    assert count == 21
    assert files == contents(rows, 1_000)[0]


def test_a_key_that_comes_twice(contents: Callable[..., Any]) -> None:
    rows = [("long", key, 1) for key in ("a", "b", "c", "d", "b")]
    for few in (0, 3, 1_000):
        with pytest.raises(KeyGroupsError, match="each key must come once, got key 'b' in state"):
            contents(rows, few)


def test_an_order_that_is_given(contents: Callable[..., Any]) -> None:
    """Without a sort each row is looked at when it comes."""
    rows = [("long", "a", 1), ("long", "a", 2)]
    with pytest.raises(KeyGroupsError, match="each key must come once"):
        contents(rows, 0, sort=False)
    assert contents(rows[:1], 0, sort=False)[2] == 0


@pytest.mark.parametrize("missing", ["numpy", "pyarrow"])
def test_without_the_extra(
    contents: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    rows = [*rows_of(PLAIN)]
    files = contents(rows, 0)[0]
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, missing, None)
        for name in [name for name in sys.modules if "savepoint._columns" in name]:
            patch.delitem(sys.modules, name)
        assert contents(rows, 0)[0] == files


def test_objects_that_change_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value is what it was when it was written."""
    monkeypatch.setattr(f"{WRITER}._FEW", 0)
    elements = [1]

    def fill(operator: OperatorWriter) -> None:
        operator.write("list", "a", elements)
        elements.append(2)
        operator.write("list", "b", elements)

    with SavepointWriter(tmp_path / "new") as writer:
        fill(writer.add_operator("uid", STRING, STATES, 128, 3, sort=True))
    read = read_savepoint(tmp_path / "new").operator("uid").entries()
    assert {entry.key: entry.value for entry in read} == {"a": [1], "b": [1, 2]}


def test_half_of_a_pair_is_refused_by_the_call_that_has_it(tmp_path: Path) -> None:
    """Among rows that are held, and whose text is no ASCII either."""
    states = [ValueStateDescriptor("s", SQL_ROW("BIGINT", "STRING"))]
    with SavepointWriter(tmp_path / "new") as writer:
        operator = writer.add_operator("uid", LONG, states, 128, 1, sort=True)
        for number in range(3_000):
            operator.write("s", number, Row((number, "\u6771")))
        with pytest.raises(InvalidValueError, match="half of a surrogate pair"):
            operator.write("s", 3_000, Row((1, "\u6771\ud800")))
