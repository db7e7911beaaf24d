"""Functions of Arrow's batches, against the same of entries, which Flink restores elsewhere."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.all_states import TIME, write_all, write_timed
from support.bytes.column_forms import canonical
from support.bytes.framed_entries import framed_entries, framed_texts
from support.bytes.real_savepoints import Point, point
from support.inside.savepoints import edit_task, keyed_state

from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    SavepointError,
    UnsupportedKeyTypeError,
)
from keygroups.savepoint import (
    DELETE,
    Operator,
    OperatorEditor,
    SavepointEditor,
    SavepointWriter,
    StateEntry,
    TtlValue,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.types import LONG, STRING

pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.compute as pc
from support.inside.columns import is_written

Batches = Callable[[Any], Any]
Each = Callable[[StateEntry], Any]


@pytest.fixture(params=["by columns", "by entries"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write as large savepoints are, and as small ones."""
    least = 0 if request.param == "by columns" else 1 << 62
    monkeypatch.setattr(keyed_state, "LEAST_OF_COLUMNS", least)
    monkeypatch.setattr(edit_task, "LEAST_OF_COLUMNS", least)


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A savepoint with states of all kinds, with and without times."""
    folder = tmp_path_factory.mktemp("timed") / "old"
    write_timed(folder)
    return folder


def edited(old: Any, new: Path, edit: Callable[[SavepointEditor], None]) -> tuple[Any, Any]:
    """Return the entries of all operators as bytes, and what the report says of them."""
    with SavepointWriter.from_existing_savepoint(old, new) as editor:
        edit(editor)
    reports = [(one.states, repr(one.deleted_keys)) for one in editor.report().operators]
    return framed_texts(new), reports


def mapped(
    old: Path, new: Path, function: Batches, name: str = "count", **options: bool
) -> Operator:
    """Return the operator after a function of a state's batches."""
    with SavepointWriter.from_existing_savepoint(old, new) as editor:
        editor.operator("by-key").map_batches(name, function, **options)
    return read_savepoint(new).operator("by-key")


def rows_with(batch: Any, **columns: Any) -> Any:
    return pa.table({"row": batch["row"], **columns})


def values_of(function: Callable[[Any], Any]) -> Batches:
    """Return the function that gives each value the result of one of Python."""

    def change(batch: Any) -> Any:
        data_type = batch.schema.field("value").type
        values = [*map(function, batch["value"].to_pylist())]
        return rows_with(batch, value=pa.array(values, data_type))

    return change


def some(batch: Any) -> Any:
    return batch.filter(pc.less(batch["key"], 30)).select(["row"])


def later_by_five(entry: StateEntry) -> StateEntry:
    assert entry.last_access is not None
    return entry._replace(last_access=entry.last_access + 5)


def later(elements: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**element, "last_access": TIME + 1} for element in elements]


CASES: dict[str, tuple[str, Batches, Each]] = {
    "a long": ("count", values_of(lambda value: value + 1), lambda entry: entry.value + 1),
    "some rows": ("count", some, lambda entry: entry.value if entry.key < 30 else DELETE),
    "no rows": ("plain", lambda batch: batch.slice(0, 0).select(["row"]), lambda entry: DELETE),
    "a long with a time": (
        "number",
        values_of(lambda value: -value),
        lambda entry: -entry.value,
    ),
    "some longs with a time": (
        "number",
        lambda batch: values_of(lambda value: -value)(batch.filter(pc.less(batch["key"], 30))),
        lambda entry: -entry.value if entry.key < 30 else DELETE,
    ),
    "a time": (
        "number",
        lambda batch: rows_with(batch, last_access=pc.add(batch["last_access"], 5)),
        later_by_five,
    ),
    "both": (
        "number",
        lambda batch: rows_with(batch, value=batch["key"], last_access=batch["last_access"]),
        lambda entry: entry.key,
    ),
    "lists": ("plain", values_of(lambda value: ["", *value]), lambda entry: ["", *entry.value]),
    "lists with times": (
        "tags",
        values_of(later),
        lambda entry: [TtlValue(TIME + 1, element.value) for element in entry.value],
    ),
    "nulls": (
        "cities",
        values_of(lambda value: None if value else "x"),
        lambda entry: None if entry.value else "x",
    ),
    "no nulls": ("cities", values_of(lambda value: "\u00e9"), lambda entry: "\u00e9"),
    "nulls with a time": ("names", values_of(lambda value: None), lambda entry: None),
    "a time of nulls": (
        "names",
        lambda batch: rows_with(batch, last_access=pc.add(batch["last_access"], 5)),
        later_by_five,
    ),
    "doubles": ("mean", values_of(lambda value: value / 7), lambda entry: entry.value / 7),
}


def some_move(entry: StateEntry) -> Any:
    """Give each other key another one, and others a value one more."""
    return entry._replace(key=entry.key + 100) if entry.key % 2 else entry.value + 1


@pytest.mark.parametrize("groups", [128, 300])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_same_as_by_entries(
    case: tuple[str, Batches, Each], groups: int, old: Path, tmp_path: Path
) -> None:
    """Beside deleted keys, another time to live, another name and another max parallelism."""
    name, batches, each = case

    def edit(editor: SavepointEditor, verb: str, function: Any) -> None:
        operator = editor.operator("by-key")
        operator.delete_keys([3])
        getattr(operator, verb)(name, function)
        operator.rename_state("longs", "numbers")
        operator.set_ttl("numbers", False)
        operator.map_entries("numbers", some_move)
        if groups != 128:
            editor.set_max_parallelism(groups)

    by_batches = edited(old, tmp_path / "a", lambda one: edit(one, "map_batches", batches))
    by_entries = edited(old, tmp_path / "b", lambda one: edit(one, "map_entries", each))
    assert by_batches == by_entries


@pytest.mark.usefixtures("way")
def test_other_verbs_of_the_same_state(old: Path, tmp_path: Path) -> None:
    """Each sees what those before it leave: a time that is set, keys that are gone, a name."""
    seen: list[dict[str, list[Any]]] = []

    def noted(batch: Any) -> Any:
        seen.append(batch.to_pydict())
        return rows_with(batch, value=pc.add(batch["value"], 1))

    def edit(editor: SavepointEditor) -> None:
        operator = editor.operator("by-key")
        operator.map_batches("count", noted)
        operator.delete_keys([*range(30)])
        operator.set_ttl("count", True, TIME)
        operator.rename_state("count", "n")
        operator.map_batches("n", noted)
        operator.set_ttl("n", False)
        editor.set_max_parallelism(300)

    _, [report] = edited(old, tmp_path / "new", edit)
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for batch in seen:
        for key, value in zip(batch["key"], batch["value"]):
            (last if "last_access" in batch else first)[key] = value
    assert first == {key: key for key in range(40)}
    assert last == {key: key + 1 for key in range(30, 40)}
    assert {time for batch in seen for time in batch.get("last_access", [])} == {TIME}
    new = read_savepoint(tmp_path / "new").operator("by-key")
    found = {entry.key: entry.value for entry in new.entries(["n"])}
    assert found == {key: key + 2 for key in range(30, 40)}
    assert report[0][0] == ("count", "n", 0, 10, 30, 0)


def test_what_it_is_called_with(old: Path, tmp_path: Path) -> None:
    """The columns of `Operator.to_arrow`, after the numbers of the rows."""
    batches: list[Any] = []

    def keep(batch: Any) -> Any:
        batches.append(batch)
        return batch.select(["row"])

    for name in ("count", "tags", "names"):
        batches.clear()
        mapped(old, tmp_path / name, keep, name)
        whole = read_savepoint(old).operator("by-key").to_arrow(name)
        table = pa.Table.from_batches(batches)
        assert table.schema.names == ["row", *whole.schema.names]
        rows = [row for batch in batches for row in batch["row"].to_pylist()]
        assert rows == [row for batch in batches for row in range(len(batch))]
        found, expected = (
            sorted(map(repr, one.select(whole.schema.names).to_pylist())) for one in (table, whole)
        )
        assert found == expected


def test_rows_in_another_order(old: Path, tmp_path: Path) -> None:
    """They are matched by their numbers."""

    def turned(batch: Any) -> Any:
        rows = pa.array([*reversed(range(len(batch)))])
        return rows_with(batch, value=pc.negate(batch["value"])).take(rows)

    operator = mapped(old, tmp_path / "new", turned)
    assert all(entry.value == -entry.key for entry in operator.entries(["count"]))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library: str, old: Path, tmp_path: Path) -> None:
    """What a library makes of a batch, whose columns may have other widths."""
    frames = pytest.importorskip(library)

    def change(batch: Any) -> Any:
        if library == "polars":
            return frames.from_arrow(batch).select("row", value=frames.col("value") + 1)
        if not hasattr(frames.DataFrame, "__arrow_c_stream__"):
            pytest.skip("this pandas exports no table")
        frame = batch.select(["row", "value"]).to_pandas()
        return frame.assign(value=(frame["value"] + 1).astype("int32"))

    operator = mapped(old, tmp_path / "new", change)
    assert all(entry.value == entry.key + 1 for entry in operator.entries(["count"]))


def test_some_rows_of_a_frame(old: Path, tmp_path: Path) -> None:
    """Pandas then adds their index to the columns, which nobody asked for."""
    frames = pytest.importorskip("pandas")
    if not hasattr(frames.DataFrame, "__arrow_c_stream__"):
        pytest.skip("this pandas exports no table")

    def even(batch: Any) -> Any:
        frame = batch.to_pandas()
        return frame[frame["value"] % 2 == 0][["row", "value"]]

    def by_row(batch: Any) -> Any:
        return even(batch).set_index("row")

    def by_key(batch: Any) -> Any:
        frame = batch.to_pandas()
        return frame[frame["value"] % 2 == 0].set_index("key")[["row"]]

    for number, function in enumerate((even, by_row, by_key)):
        operator = mapped(old, tmp_path / str(number), function)
        kept = {entry.key for entry in operator.entries(["count"])}
        assert kept == {*range(0, 40, 2)}


def replaced(name: str, array: Any) -> Batches:
    """Return the function that returns a column, of an array for the first row, and the rest."""

    def change(batch: Any) -> Any:
        columns = {"row": batch["row"], "value": batch["value"]}
        whole = pa.chunked_array(
            [pa.array(array), columns[name].slice(1).cast(pa.array(array).type)]
        )
        return pa.table({**columns, name: whole})

    return change


def null(data_type: Any) -> Any:
    return pa.array([None], data_type)


WRONG: dict[str, tuple[str, Batches, type[Exception], str]] = {
    "nothing": (
        "count",
        lambda batch: None,
        InvalidTypeError,
        "what function returns for state 'count' must be a table of Arrow, .* got None",
    ),
    "all columns": (
        "count",
        lambda batch: batch,
        InvalidValueError,
        "function must return the column row, and of value those that change, for state 'count', "
        r"got the columns \['row', 'key_group', .*'bytes'\]",
    ),
    "no row": (
        "number",
        lambda batch: batch.select(["value"]),
        InvalidValueError,
        r"the column row, and of last_access and value those .* got the columns \['value'\]",
    ),
    "a column twice": (
        "count",
        lambda batch: batch.select(["row", "value", "value"]),
        InvalidValueError,
        r"got the columns \['row', 'value', 'value'\]",
    ),
    "a time that the state has not": (
        "count",
        lambda batch: rows_with(batch, last_access=batch["value"]),
        InvalidValueError,
        r"got the columns \['row', 'last_access'\]",
    ),
    "text": (
        "count",
        lambda batch: rows_with(batch, value=batch["value"].cast(pa.string())),
        InvalidTypeError,
        "value of state 'count' must be int64, got string",
    ),
    "rows of text": (
        "count",
        lambda batch: pa.table({"row": batch["row"].cast(pa.string())}),
        InvalidTypeError,
        "row of state 'count' must be int64, got string",
    ),
    "a null row": (
        "count",
        replaced("row", null(pa.int64())),
        InvalidValueError,
        "row of state 'count' must not be null",
    ),
    "a row beyond": (
        "count",
        replaced("row", [16_384]),
        InvalidValueError,
        r"row of state 'count' must be from 0 to \d+, as function got it, got 16384",
    ),
    "a row before": ("count", replaced("row", [-1]), InvalidValueError, "got -1"),
    "a row twice": (
        "count",
        replaced("row", [1]),
        InvalidValueError,
        "row of state 'count' must come once, got 1 2 times",
    ),
    "a null": (
        "count",
        replaced("value", null(pa.int64())),
        InvalidValueError,
        r"key \d+ in state 'count': value of VALUE state 'count' must not be None",
    ),
    "an empty list": (
        "plain",
        values_of(lambda value: []),
        InvalidValueError,
        r"key \d+ in state 'plain': value of LIST state 'plain' must have elements",
    ),
    "a null among times": (
        "number",
        lambda batch: rows_with(batch, last_access=pa.nulls(len(batch), pa.int64())),
        InvalidValueError,
        "last_access of state 'number' must not be null",
    ),
    "seconds": (
        "number",
        lambda batch: rows_with(batch, last_access=pc.divide(batch["last_access"], 1_000)),
        InvalidValueError,
        "state 'number': last_access must be epoch milliseconds, .* got 1700000000: pass allow",
    ),
    "seconds in a list": (
        "tags",
        values_of(lambda value: [{**each, "last_access": 1_700_000_000} for each in value]),
        InvalidValueError,
        "state 'tags': last_access must be epoch milliseconds, .* got 1700000000: pass allow",
    ),
    "more than the type has": (
        "count",
        lambda batch: rows_with(batch, value=pa.array([2**63] * len(batch), pa.uint64())),
        InvalidValueError,
        "value of state 'count' must be int64, got another",
    ),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_what_it_must_not_return(
    case: tuple[str, Batches, type[Exception], str], old: Path, tmp_path: Path
) -> None:
    name, function, error, match = case
    with pytest.raises(error, match=match):
        mapped(old, tmp_path / "new", function, name)
    assert not (tmp_path / "new" / "_metadata").exists()


def test_any_last_access(old: Path, tmp_path: Path) -> None:
    """Old times that are none may stay, and new ones may be asked for."""
    first, second = tmp_path / "first", tmp_path / "second"
    operator = mapped(
        old,
        first,
        lambda batch: rows_with(batch, last_access=pc.multiply(batch["row"], 0)),
        "number",
        allow_any_last_access=True,
    )
    assert {entry.last_access for entry in operator.entries(["number"])} == {0}
    names = ["row", "value", "last_access"]
    operator = mapped(first, second, lambda batch: batch.select(names), "number")
    assert {entry.last_access for entry in operator.entries(["number"])} == {0}


def test_what_the_function_raises(old: Path, tmp_path: Path) -> None:
    """It comes as it is, with a note of where it was."""
    error = ZeroDivisionError("five")

    def fail(batch: Any) -> Any:
        raise error

    with pytest.raises(ZeroDivisionError) as raised:
        mapped(old, tmp_path / "new", fail)
    assert raised.value is error
    [note] = error.__notes__
    assert note.startswith("map_batches: ")
    assert note.endswith("entries of state 'count'")


MORE: dict[str, Callable[[OperatorEditor], object]] = {
    "map_entries": lambda operator: operator.map_entries("count", lambda entry: entry.value),
    "map_keys": lambda operator: operator.map_keys(lambda key: key),
    "convert_state": lambda operator: operator.convert_state(
        "count", ValueStateDescriptor("count", STRING), str
    ),
}


@pytest.mark.parametrize("verb", MORE.values(), ids=MORE)
def test_verbs_that_take_single_entries(
    verb: Callable[[OperatorEditor], object], tmp_path: Path
) -> None:
    """They do not go with batches of the same state, whichever comes first."""
    write_all(tmp_path / "old", LONG, 128, [1])
    new = tmp_path / "new"
    with SavepointWriter.from_existing_savepoint(tmp_path / "old", new) as editor:
        operator = editor.operator("by-key")
        operator.map_batches("count", some)
        with pytest.raises(InvalidValueError, match="'count' must not have map_batches together"):
            verb(operator)
        operator.map_batches("count", some)
    with SavepointWriter.from_existing_savepoint(new, tmp_path / "newer") as editor:
        operator = editor.operator("by-key")
        verb(operator)
        with pytest.raises(InvalidValueError, match="'count' must not have map_batches together"):
            operator.map_batches("count", some)
        with pytest.raises(InvalidValueError, match="must be one whose values the job sets"):
            operator.map_batches("_timer_state/event_timers", some)


def test_without_the_extra(old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as editor:
        name = "keygroups.savepoint._edits.batch_mapping"
        monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(ModuleNotFoundError, match="map_batches needs NumPy and PyArrow"):
            editor.operator("by-key").map_batches("count", some)


FIRST = (
    "2.3.0-heap-native",
    "2.3.0-rockschurn-native",
    "2.3.0-changelog-checkpoint",
    "2.3.0-pojo-canonical",
    "2.3.0-sqlheap-canonical",
)


@pytest.mark.long
@pytest.mark.parametrize("one", [point(name) for name in FIRST], ids=str)
def test_recorded_points(one: Point, tmp_path: Path) -> None:
    """Values that are written as they were read are the same values, in each form of Flink's."""
    saved, written, columns = one.read(), 0, ["row", "value"]
    with SavepointWriter.from_existing_savepoint(saved, tmp_path / "new") as editor:
        for operator in saved.operators:
            for state in operator.states:
                serializer = state.value_serializer
                if serializer is not None and state.name != "merging-window-set":
                    names = columns[: 1 + is_written(serializer)]
                    edited_operator = editor.operator(operator.operator_id)
                    edited_operator.map_batches(state.name, partial(select, names))
                    written += len(names) - 1
    assert written
    new = read_savepoint(tmp_path / "new")
    for operator in saved.operators:
        assert contents(new.operator(operator.operator_id)) == contents(operator)


def select(names: list[str], batch: Any) -> Any:
    return batch.select(names)


def contents(operator: Operator) -> list[str]:
    """Return the entries of an operator, whose sizes are of the format."""
    return sorted(repr(entry._replace(bytes=0)) for entry in operator.entries())


def made(
    folder: Path, serializer: bytes, entries: list[tuple[bytes, bytes]], kind: str = "VALUE"
) -> Path:
    """Write a savepoint of one state, keys of Long, and return its folder."""
    state = sb.state("s", kind, serializer)
    operator = canonical(folder, sb.simple("Long"), state, entries)
    return Path(operator._files.base)


@pytest.mark.parametrize("names", [["row"], ["row", "value"]], ids=str)
def test_values_that_only_the_job_writes(names: list[str], tmp_path: Path) -> None:
    """They may be deleted or stay, and be no other."""
    entries = [(sb.i64(key) + b"\0", bytes([key])) for key in range(4)]
    old = made(tmp_path / "old", sb.kryo_of("x.Own"), entries)
    [operator] = read_savepoint(old).operators
    refused = pytest.raises(UnsupportedKeyTypeError, match="value of state 's' cannot be written")
    with (
        refused if "value" in names else nullcontext(),
        SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as editor,
    ):
        editor.operator(operator.operator_id).map_batches(
            "s", lambda batch: batch.slice(1, 2).select(names)
        )
    if "value" not in names:
        [new] = read_savepoint(tmp_path / "new").operators
        assert [entry.key for entry in new.entries()] == [1, 2]


@pytest.mark.parametrize("value", [b"\1", sb.i64(1, 2)])
def test_bytes_that_are_no_value(value: bytes, tmp_path: Path) -> None:
    old = made(tmp_path / "old", sb.simple("Long"), [(sb.i64(1) + b"\0", value)])
    [operator] = read_savepoint(old).operators
    with (
        pytest.raises(SavepointError, match="of s: VALUE <LONG, LONG> in key group 3: no entry"),
        SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as editor,
    ):
        editor.operator(operator.operator_id).map_batches("s", some)


def test_a_key_that_is_there_twice(tmp_path: Path) -> None:
    entries = [(sb.i64(1) + b"\0", sb.i64(5))] * 2
    old = made(tmp_path / "old", sb.simple("Long"), entries)
    [operator] = read_savepoint(old).operators
    with (
        pytest.raises(InvalidValueError, match="each key must come once, got key 1 in state 's'"),
        SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as editor,
    ):
        editor.operator(operator.operator_id).map_batches("s", some)


@pytest.mark.parametrize(("name", "is_text"), [("String", True), ("Long", False)])
def test_a_time_for_a_null(name: str, is_text: bool, tmp_path: Path) -> None:
    """A null of a MAP that has no time gets one where its serializer writes nulls."""
    timed = sb.map_of(sb.simple("String"), sb.ttl_of(sb.simple(name)))
    entries = [(sb.i64(1) + b"\0\2a", b"\1")]
    old = made(tmp_path / "old", timed, entries, "MAP")
    [operator] = read_savepoint(old).operators
    refused = pytest.raises(
        InvalidValueError, match="key 1, user key 'a' in state 's': a null can"
    )
    with (
        nullcontext() if is_text else refused,
        SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as editor,
    ):
        editor.operator(operator.operator_id).map_batches(
            "s", lambda batch: rows_with(batch, last_access=pa.array([TIME] * len(batch)))
        )
    if is_text:
        [new] = read_savepoint(tmp_path / "new").operators
        assert [(entry.value, entry.last_access) for entry in new.entries()] == [(None, TIME)]


NULLS = {b"a": b"\1", b"b": b"\0" + sb.i64(7), b"c": b"\1" + sb.i64(0)}


def test_nulls_that_stay(tmp_path: Path) -> None:
    """The hashmap backend keeps nulls of numbers, which nobody writes anew beside other values."""
    entries = [(sb.i64(1) + b"\0\2" + name, value) for name, value in NULLS.items()]
    old = made(tmp_path / "old", sb.map_of(sb.simple("String"), sb.simple("Long")), entries, "MAP")
    [operator] = read_savepoint(old).operators
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as editor:
        editor.operator(operator.operator_id).map_batches(
            "s", lambda batch: rows_with(batch, value=pc.add(batch["value"], 1))
        )
    [new] = read_savepoint(tmp_path / "new").operators
    assert [entry.encoded_value for task in new.tasks() for entry in framed_entries(task)] == [
        b"\1",
        b"\0" + sb.i64(8),
        b"\1" + sb.i64(0),
    ]
    [edited_operator] = editor.report().operators
    assert edited_operator.states[0][2:4] == (2, 1)


def test_dates_without_a_time(tmp_path: Path) -> None:
    """Flink writes a Date that is null as the least long, and nobody writes it here as a value."""
    null = sb.i64(-(2**63))
    entries = [(sb.i64(key) + b"\0", value) for key, value in enumerate([sb.i64(5), null])]
    old = made(tmp_path / "old", sb.simple("Date"), entries)
    [operator] = read_savepoint(old).operators
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as editor:
        edited_operator = editor.operator(operator.operator_id)
        edited_operator.map_batches("s", partial(select, ["row", "value"]))
    assert contents(read_savepoint(tmp_path / "new").operators[0]) == contents(operator)


def test_old_times_stay_where_each_value_is_written_alone(tmp_path: Path) -> None:
    """Those of Date are, beside the null of Flink; a time of 0 is none of a last access."""
    null, day = sb.i64(-(2**63)), 86_400_000
    entries = [
        (sb.i64(key) + b"\0", sb.i64(0) + value) for key, value in enumerate([sb.i64(5), null])
    ]
    old = made(tmp_path / "old", sb.ttl_of(sb.simple("Date")), entries)
    [operator] = read_savepoint(old).operators
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as editor:
        editor.operator(operator.operator_id).map_batches(
            "s", values_of(lambda value: value and value + dt.timedelta(days=1))
        )
    [new] = read_savepoint(tmp_path / "new").operators
    assert [entry.encoded_value for task in new.tasks() for entry in framed_entries(task)] == [
        sb.i64(0) + sb.i64(5 + day),
        sb.i64(0) + null,
    ]


def test_values_that_all_are_none(tmp_path: Path) -> None:
    """They have no column, and nothing to return but rows."""
    entries = [(sb.i64(key) + b"\0", b"") for key in range(3)]
    old = made(tmp_path / "old", sb.simple("NullValue"), entries)
    [operator] = read_savepoint(old).operators
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as editor:
        editor.operator(operator.operator_id).map_batches(
            "s", lambda batch: batch.select(["row"]).slice(2)
        )
    [new] = read_savepoint(tmp_path / "new").operators
    assert [entry.key for entry in new.entries()] == [2]


def test_no_call_without_entries(old: Path, tmp_path: Path) -> None:
    called: list[object] = []
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as editor:
        operator = editor.operator("by-key")
        operator.delete_keys(range(40))
        operator.map_batches("count", called.append)
    assert not called
    assert not [*read_savepoint(tmp_path / "new").operator("by-key").entries()]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("element", ["Long", "String"])
def test_a_list_without_elements_stays_one(element: str, tmp_path: Path) -> None:
    """A job on the heap that empties a list in place leaves it so; no other list may become one.

    Flink: ListDelimitedSerializer, which writes no bytes then.
    """
    one = {"Long": sb.i64(7), "String": b"\2x"}[element]
    state = sb.state("tags", "LIST", sb.list_of(sb.simple(element)))
    entries = [(bytes([key, 0]), value) for key, value in enumerate((b"", one, b""))]
    operator = canonical(tmp_path / "old", sb.simple("Byte"), state, entries)
    old = Path(operator._files.base)

    def written(name: str, verb: Callable[[OperatorEditor], None]) -> Any:
        def edit(editor: SavepointEditor) -> None:
            verb(editor.operator(operator.operator_id))

        return edited(old, tmp_path / name, edit)

    same = written("same", lambda by: by.map_batches("tags", values_of(lambda value: value)))
    assert same == written("entries", lambda by: by.map_entries("tags", lambda entry: entry.value))
    twice = written("twice", lambda by: by.map_batches("tags", values_of(lambda tags: tags * 2)))
    assert twice == written("2", lambda by: by.map_entries("tags", lambda entry: entry.value * 2))
    with pytest.raises(InvalidValueError, match="must have elements: an empty list is no entry"):
        written("none", lambda by: by.map_batches("tags", values_of(lambda tags: tags[1:])))
