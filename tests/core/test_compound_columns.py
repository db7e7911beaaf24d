"""State of POJOs, rows, lists and the like read column by column, in each form of savepoint.

What is odd costs a batch: it is read entry by entry, with the same values and errors.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.damaged_files import damages
from support.inside import serializers
from support.inside.savepoints import KeyGroupsHandle
from support.inside.serializers import (
    BigDecSerializer,
    BigIntSerializer,
    LocalDateSerializer,
    MapDataSerializer,
    Member,
    PojoSerializer,
    PythonRowSerializer,
    RowDataSerializer,
    TtlSerializer,
)

from keygroups.logical_types import parse_logical_type
from keygroups.savepoint import read_savepoint
from keygroups.savepoint.values import Pojo, Row, TtlValue
from keygroups.state_keys import Serializer

pa = pytest.importorskip("pyarrow")
np = pytest.importorskip("numpy")

from support.bytes.column_forms import (  # noqa: E402
    FORMS,
    Form,
    assert_same,
    canonical,
    is_arrow,
    native,
    operator_of,
    rocksdb,
)
from support.inside.columns import (  # noqa: E402
    abreast,
    column_of,
    entry_columns,
    patterns,
    reader_of,
)

TEXT, INT, LONG = serializers.STRING, serializers.INT, serializers.LONG
POJO = PojoSerializer("a.P", ["id", "name", "on"], [LONG, TEXT, LocalDateSerializer()])
ENUM = serializers.EnumSerializer("a.E", ("A", "B"))
DAY = dt.date(2024, 2, 29)


@pytest.fixture(autouse=True, params=[False, True], ids=["each", "many"])
def at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few entries are read as a few are, and then as thousands."""
    monkeypatch.setattr(patterns, "_compiled", {})
    if request.param:
        monkeypatch.setattr(abreast, "_LEAST_ABREAST", 2)
        monkeypatch.setattr(patterns, "_WORTH", 0)


class Values(NamedTuple):
    """Values of a serializer; `kind` is that of their state."""

    serializer: Serializer
    values: Sequence[Any]
    kind: str = "VALUE"

    @property
    def state(self) -> bytes:
        snapshot = self.serializer.versioned_snapshot()
        return sb.state("s", self.kind, sb.list_of(snapshot) if self.kind == "LIST" else snapshot)

    def entries(self, form: Form) -> list[tuple[bytes, bytes]]:
        """Return entries with keys of STRING, as the form has them."""
        return [
            (serializers.write_string(f"k{'x' * number}") + b"\0", self._written(value, form))
            for number, value in enumerate(self.values)
        ]

    def _written(self, value: Any, form: Form) -> bytes:
        if self.kind != "LIST":
            return self.serializer.encode(value)
        if form is native:
            return serializers.ListSerializer(self.serializer).encode(value)
        return b",".join(map(self.serializer.encode, value))


def sql_row(*texts: str) -> RowDataSerializer:
    return RowDataSerializer([*map(parse_logical_type, texts)])


def pojo(number: int, name: str | None, day: dt.date | None = DAY) -> Pojo:
    return Pojo("a.P", {"id": number, "name": name, "on": day})


LISTS = [["a"], ["b", "", None, "é"], ["x" * 200, "c,d"], [","] * 9]
VALUES = {
    "pojo": Values(
        POJO,
        [pojo(1, "a"), None, pojo(-1, None, None), pojo(2**63 - 1, "é"), pojo(5, "x" * 300)],
    ),
    "sql": Values(
        sql_row("BIGINT", "STRING", "DECIMAL(30, 2)", "ROW<id INT>", "TIMESTAMP(6)"),
        [
            Row((1, "short", Decimal("-1.50"), Row((7,), "-D"), dt.datetime(1, 1, 2)), "+U"),
            Row((None, None, None, None, None)),
            Row((2, "a longer text é", Decimal(10) ** 27, Row((None,)), None)),
        ],
    ),
    "tuple": Values(serializers.TupleSerializer([TEXT, INT]), [("a", 1), ("é", -1), ("", 0)]),
    "row": Values(
        serializers.RowSerializer([TEXT, INT]), [Row(("a", None)), Row((None, 1), "-D")]
    ),
    "list": Values(serializers.ListSerializer(POJO), [[], [pojo(1, "a")] * 3, [None]]),
    "map": Values(serializers.MapSerializer(TEXT, INT), [{}, {"a": 1, "é": None}, {"b": 2}]),
    "set": Values(serializers.SetSerializer(TEXT), [set(), {"b", "a", "é"}, {"x" * 200}]),
    "big_int": Values(BigIntSerializer(), [0, 1, 10, None, -(10**37), 10**40, 300]),
    "big_dec": Values(
        BigDecSerializer(),
        [Decimal("1.50"), None, Decimal("1E-30"), Decimal(-10), Decimal(0)],
    ),
    "big_decs": Values(BigDecSerializer(), [Decimal("1.50"), Decimal("1E+3"), Decimal(10) ** 50]),
    "date": Values(LocalDateSerializer(), [DAY, None, dt.date.min, dt.date.max]),
    "enum": Values(ENUM, ["B", "A", "B"]),
    "ttl": Values(TtlSerializer(POJO), [TtlValue(5, pojo(1, "a")), TtlValue(-1, None)]),
    "LIST of STRING": Values(TEXT, LISTS, "LIST"),
    "LIST of LONG": Values(LONG, [[1], [2, 3], [*range(40)]], "LIST"),
    "LIST of DATE": Values(LocalDateSerializer(), [[DAY], [None, DAY]], "LIST"),
    "LIST with times": Values(
        TtlSerializer(TEXT), [[TtlValue(5, "a")], [TtlValue(6, ","), TtlValue(7, None)]], "LIST"
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", VALUES)
def test_whole_columns(tmp_path: Path, name: str, form: Form) -> None:
    values = VALUES[name]
    entries = values.entries(form)
    operator = form(tmp_path, TEXT.versioned_snapshot(), values.state, entries)
    assert assert_same(operator) == len(entries)
    assert is_arrow(operator, "key")
    assert is_arrow(operator, "value")
    assert operator.to_arrow("s").num_rows == len(entries)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("serializer", [POJO, sql_row("INT", "STRING")], ids=["pojo", "sql"])
def test_compound_keys(tmp_path: Path, serializer: Serializer, form: Form) -> None:
    """A row of SQL that is a key has no kind."""
    keys = [pojo(1, "a"), pojo(2, "é")] if serializer is POJO else [Row((1, "a")), Row((2, None))]
    state = sb.state("s", "VALUE", LONG.versioned_snapshot())
    entries = [(serializer.encode(key) + b"\0", LONG.encode(5)) for key in keys]
    operator = form(tmp_path, serializer.versioned_snapshot(), state, entries)
    assert assert_same(operator) == 2
    assert is_arrow(operator, "key")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("serializer", [POJO, sql_row("INT", "STRING")], ids=["pojo", "sql"])
def test_compound_user_keys(tmp_path: Path, serializer: Serializer, form: Form) -> None:
    """Nor has a user key a kind."""
    keys = [pojo(1, "a"), pojo(2, "é")] if serializer is POJO else [Row((1, "a")), Row((2, None))]
    value = sb.map_of(serializer.versioned_snapshot(), LONG.versioned_snapshot())
    items = [(serializer.encode(key), b"\0" + LONG.encode(5)) for key in keys]
    start = TEXT.encode("a") + b"\0"
    if form is native:
        entries = [(start, sb.i32(len(items)) + b"".join(key + one for key, one in items))]
    else:
        entries = [(start + key, one) for key, one in items]
    operator = form(tmp_path, TEXT.versioned_snapshot(), sb.state("s", "MAP", value), entries)
    assert assert_same(operator) == 2
    assert is_arrow(operator, "user_key")
    names = [field.name for field in operator.to_arrow("s").schema.field("user_key").type]
    assert names == (["id", "name", "on"] if serializer is POJO else ["f0", "f1"])


def test_a_key_of_sql_of_another_kind(tmp_path: Path) -> None:
    serializer = sql_row("INT")
    entries = [(serializer.encode(Row((1,), "-D")) + b"\0", LONG.encode(5))]
    state = sb.state("s", "VALUE", LONG.versioned_snapshot())
    operator = canonical(tmp_path, serializer.versioned_snapshot(), state, entries)
    assert not is_arrow(operator, "key")
    [entry] = operator.entries()
    assert repr(entry.key) == "Row((1,), '-D')"


MAPS: dict[str, dict[Any, Any]] = {
    "a": {1: pojo(1, "a"), 2: None, -3: pojo(4, None)},
    "b": {},
    "é": {7: None},
    "c" * 300: {number: pojo(number, "x") for number in range(20)},  # not to be repeated often
    "d": {5: pojo(5, "é")},
}


@pytest.mark.parametrize("has_times", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_maps(tmp_path: Path, form: Form, has_times: bool) -> None:
    """A user key has an entry, or on the heap a place in the map; of a null the mark alone."""
    time = LONG.encode(5) if has_times else b""
    value = sb.ttl_of(POJO.versioned_snapshot()) if has_times else POJO.versioned_snapshot()
    entries = []
    for key, items in MAPS.items():
        written = [
            (INT.encode(user_key), b"\1" if one is None else b"\0" + time + POJO.encode(one))
            for user_key, one in items.items()
        ]
        start = serializers.write_string(key) + b"\0"
        if form is native:
            whole = b"".join(user_key + one for user_key, one in written)
            entries.append((start, sb.i32(len(items)) + whole))
        else:
            entries += [(start + user_key, one) for user_key, one in written]
    state = sb.state("s", "MAP", sb.map_of(INT.versioned_snapshot(), value))
    operator = form(tmp_path, TEXT.versioned_snapshot(), state, entries)
    assert assert_same(operator) == sum(map(len, MAPS.values()))
    if form is not native:
        assert is_arrow(operator, "value")
    batches = [entries for task in operator.tasks() for entries in task.columns()]
    are_arrow = [isinstance(entries.columns["user_key"], pa.Array) for entries in batches]
    assert are_arrow == ([True, False, True] if form is native else [True])


def test_maps_on_the_heap_that_are_odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their batch is read entry by entry; bytes that are no map are an error as there."""
    state = sb.state("s", "MAP", sb.map_of(TEXT.versioned_snapshot(), ENUM.versioned_snapshot()))
    good = sb.i32(2) + b"\2a\0" + sb.i32(0) + b"\2b\1"
    for number, odd in enumerate(
        [
            sb.i32(1) + b"\4\x80\xb0\3a" + b"\0" + sb.i32(1),  # half of a surrogate pair
            sb.i32(1) + b"\2a\0" + sb.i32(2),  # no constant
            sb.i32(-1),
            sb.i32(2**31 - 1),
            b"\0",
        ]
    ):
        entries = [(b"\2a\0", good), (b"\2b\0", odd)]
        assert_same(native(tmp_path / str(number), TEXT.versioned_snapshot(), state, entries))
    from support.inside.savepoints import files

    monkeypatch.setattr(files, "CHUNK", 11)
    entries = [(f"\2{key}\0".encode(), good) for key in "abcdefg"]
    operator = native(tmp_path / "pieces", TEXT.versioned_snapshot(), state, entries)
    assert assert_same(operator) == 14


def test_maps_on_the_heap_come_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of their entries may become many, so that fewer bytes are decoded at once."""
    monkeypatch.setattr(entry_columns, "_FEW_BYTES", 1)
    from support.inside.savepoints import files

    monkeypatch.setattr(files, "CHUNK", 64)
    state = sb.state("s", "MAP", sb.map_of(TEXT.versioned_snapshot(), TEXT.versioned_snapshot()))
    good = sb.i32(2) + b"\2a\0\2b\2b\1"
    entries = [(f"\2{key}\0".encode(), good) for key in "abcdefghijkl"]
    operator = native(tmp_path, TEXT.versioned_snapshot(), state, entries)
    assert assert_same(operator) == 24
    assert len([*operator.to_arrow_batch_reader("s")]) > 3


@pytest.mark.parametrize("form", FORMS[:2])
def test_what_is_odd_costs_a_batch(
    tmp_path: Path, form: Form, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here a date beyond Python's, which no column has; other batches are read as before."""
    monkeypatch.setattr(entry_columns, "ROWS", 5)
    monkeypatch.setattr(entry_columns, "_SCANNED", 1)
    monkeypatch.setattr(entry_columns, "_LEAST_RUN", 99)
    values = Values(POJO, [pojo(number, "a") for number in range(20)])
    entries = values.entries(form)
    odd = POJO.encode(pojo(1, "a")).replace(sb.i32(2024), sb.i32(-2024))
    entries[7] = entries[7][0], odd
    operator = form(tmp_path, TEXT.versioned_snapshot(), values.state, entries)
    assert assert_same(operator) == 20
    batches = [entries for task in operator.tasks() for entries in task.columns()]
    are_arrow = [isinstance(entries.columns["value"], pa.Array) for entries in batches]
    assert are_arrow == [True, False, True, True]


ODD: dict[str, tuple[Serializer, bytes]] = {
    "a subclass": (POJO, b"\4\0\3a.Q"),
    "flags of no POJO": (POJO, b"\3"),
    "a day of no month": (POJO, POJO.encode(pojo(1, "a")).replace(b"\2\x1d", b"\2\x1e")),
    "half of a surrogate pair": (POJO, POJO.encode(pojo(1, "\ud800"))),
    "no constant": (ENUM, sb.i32(2)),
    "a count": (serializers.ListSerializer(LONG), sb.i32(-1)),
    "a large count": (serializers.ListSerializer(LONG), sb.i32(2**31 - 1)),
    "another kind": (sql_row("INT"), sb.i32(16) + b"\4" + bytes(15)),
    "a row too short": (sql_row("INT"), sb.i32(8) + bytes(8)),
    "a text of no UTF-8": (sql_row("STRING"), sb.i32(16) + bytes(8) + b"\xff\0\0\0\0\0\0\x81"),
    "a key that is twice there": (
        serializers.MapSerializer(TEXT, INT),
        sb.i32(2) + (b"\2a\0" + sb.i32(1)) * 2,
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ODD)
def test_odd_values(tmp_path: Path, name: str, form: Form) -> None:
    """They are as their reader has them, or its error is there, in Arrow too."""
    serializer, odd = ODD[name]
    state = sb.state("s", "VALUE", serializer.versioned_snapshot())
    entries = [(f"\2{key}\0".encode(), odd) for key in "ab"]
    operator = form(tmp_path, TEXT.versioned_snapshot(), state, entries)
    assert_same(operator)
    with pytest.raises(ValueError, match=r"."):  # Either class may be there.
        operator.to_arrow("s")


@pytest.mark.parametrize("step", [97, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["pojo", "sql", "list", "map", "LIST of STRING", "LIST of LONG"])
@pytest.mark.parametrize("form", [canonical, native])
def test_damage(tmp_path: Path, form: Form, name: str, step: int) -> None:
    """Bytes of the entries are changed, and they are cut."""
    values = VALUES[name]
    entries, key = values.entries(form), TEXT.versioned_snapshot()
    header = sb.keyed_header(key, [values.state])
    form(tmp_path, key, values.state, entries)
    (handle,) = read_savepoint(tmp_path).metadata.operators[0].subtasks[0].keyed
    assert isinstance(handle, KeyGroupsHandle)
    make = sb.native if form is native else sb.canonical
    errors = 0
    for _, damaged in list(damages(handle.stream.data or b"", len(header)))[::step]:
        operator = operator_of(tmp_path, make(3, [len(header)], sb.inline(damaged)))
        errors += not assert_same(operator)
    assert errors


@pytest.mark.parametrize("name", ["pojo", "sql", "LIST of STRING"])
def test_damage_in_rocksdb(tmp_path: Path, name: str) -> None:
    """Values are cut, and have more behind them; a list without bytes has no elements."""
    values = VALUES[name]
    entries = values.entries(rocksdb)
    for number, (key, value) in enumerate(entries):
        for place, other in enumerate((value[:-1], value + b"\0", b"")):
            folder = tmp_path / f"{number}-{place}"
            some = [*entries[:number], (key, other), *entries[number + 1 :]]
            operator = rocksdb(folder, TEXT.versioned_snapshot(), values.state, some)
            is_list = name == "LIST of STRING" and not other
            assert assert_same(operator) == (len(entries) if is_list else 0)


def test_a_part_that_is_read_value_by_value(tmp_path: Path) -> None:
    """Its POJO is decoded as a whole all the same."""
    serializer = PojoSerializer("a.P", ["set"], [serializers.SetSerializer(POJO)])
    value = Pojo("a.P", {"set": [pojo(1, "a"), pojo(1, "a")]})
    values = Values(serializer, [value, Pojo("a.P", {"set": None}), value])
    operator = canonical(
        tmp_path, TEXT.versioned_snapshot(), values.state, values.entries(canonical)
    )
    assert assert_same(operator) == 3
    assert is_arrow(operator, "value")


def test_pieces_that_end_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from support.inside.savepoints import files

    monkeypatch.setattr(files, "CHUNK", 11)
    for number, name in enumerate(VALUES):
        values = VALUES[name]
        entries = values.entries(native)
        folder = tmp_path / str(number)
        operator = native(folder, TEXT.versioned_snapshot(), values.state, entries)
        assert assert_same(operator) == len(entries)


DOUBLE = serializers.DOUBLE
ROWS_AS_KEYS = MapDataSerializer(parse_logical_type("ROW<id INT>"), parse_logical_type("INT"))
RARE = {
    "keys of DOUBLE": Values(
        serializers.MapSerializer(DOUBLE, INT), [{0.5: 1, -0.0: 2}, {0.0: 3, 1.5: None}]
    ),
    "keys beyond a hundred": Values(
        serializers.MapSerializer(INT, INT), [dict.fromkeys(range(150), 1)]
    ),
    "a part without values": Values(
        serializers.TupleSerializer([serializers.VOID_NAMESPACE, INT]), [(None, 1), (None, 2)]
    ),
    "rows of SQL as keys": Values(ROWS_AS_KEYS, [{Row((1,)): 2, Row((2,)): 3}]),
}


@pytest.mark.parametrize("name", RARE)
def test_rare_values(name: str) -> None:
    """They are those of the reader of single values, or are left to it."""
    serializer, values, _ = RARE[name]
    written = [serializer.encode(value) for value in values]
    read, column = reader_of(serializer, is_key=False), column_of(serializer)
    assert column is not None
    if read is None:
        assert name == "rows of SQL as keys"
        return
    ends = np.cumsum([len(data) for data in written])
    array, read_ends = read(b"".join(written), np.append(0, ends[:-1]))
    assert read_ends.tolist() == ends.tolist()
    assert repr(column.restore(array)) == repr(values)


def test_values_of_pyflink_of_another_type() -> None:
    """An INT that stands for a BIGINT is read value by value, as a BIGINT."""
    row = PythonRowSerializer((parse_logical_type("BIGINT"),), (INT,), None)
    read = reader_of(row, is_key=False)
    assert read is not None
    array, _ = read(row.encode(Row((7,))), np.array([0]))
    assert array.type.field(0).type == pa.int64()
    assert array.to_pylist() == [{"f0": 7, "row_kind": "+I"}]


@pytest.mark.parametrize("kind", ["VALUE", "LIST", "MAP"])
def test_values_of_any_class(tmp_path: Path, kind: str) -> None:
    """Only a value says which class it is of: these are read one by one."""
    base = PojoSerializer("a.P", ["n"], [INT], registered=[Member("a.Q", b"", POJO)])
    snapshot, one = base.versioned_snapshot(), base.encode(Pojo("a.P", {"n": 5}))
    value, data = {
        "VALUE": (snapshot, one),
        "LIST": (sb.list_of(snapshot), sb.i32(1) + one),
        "MAP": (sb.map_of(INT.versioned_snapshot(), snapshot), sb.i32(1) + bytes(5) + one),
    }[kind]
    state = sb.state("s", kind, value)
    operator = native(tmp_path, TEXT.versioned_snapshot(), state, [(b"\2a\0", data)])
    assert assert_same(operator) == 1
    assert not is_arrow(operator, "key")


def test_maps_of_no_user_key(tmp_path: Path) -> None:
    """They have no entries."""
    state = sb.state("s", "MAP", sb.map_of(INT.versioned_snapshot(), INT.versioned_snapshot()))
    entries = [(f"\2{key}\0".encode(), sb.i32(0)) for key in "ab"]
    operator = native(tmp_path, TEXT.versioned_snapshot(), state, entries)
    assert assert_same(operator) == 0
    assert operator.to_arrow("s").num_rows == 0


def test_maps_of_keys_of_one_size(tmp_path: Path) -> None:
    state = sb.state("s", "MAP", sb.map_of(INT.versioned_snapshot(), INT.versioned_snapshot()))
    entries = [(INT.encode(key) + b"\0", sb.i32(1) + INT.encode(5) + b"\1") for key in (1, 2)]
    operator = native(tmp_path, INT.versioned_snapshot(), state, entries)
    assert assert_same(operator) == 2
    assert is_arrow(operator, "user_key")
