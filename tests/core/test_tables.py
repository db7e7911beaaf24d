"""A state as a table: the rows are what Flink read, and other arguments are refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.column_entries import entry, operator_of
from support.bytes.job_points import JOB_POINTS
from support.bytes.real_savepoints import POINTS, Point, point, seen_entry, true_entries
from support.inside.serializers import write_string

from keygroups.errors import InvalidTypeError, InvalidValueError, SavepointError
from keygroups.savepoint import (
    SavepointWriter,
    StateDescriptor,
    StateEntry,
    TimerServiceDescriptor,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.types import INT as INT_TYPE

pa: Any = pytest.importorskip("pyarrow")
pytest.importorskip("numpy")

from support.inside.columns import (  # noqa: E402
    TEXT,
    TYPED,
    entry_columns,
    layout_of,
    record_batches,
    typed_columns,
    values,
)

STRING, LONG = sb.simple("String"), sb.simple("Long")
HEAP = point("2.3.0-heap-canonical")


def rows_of(table: Any, state: StateDescriptor) -> list[StateEntry]:
    """Return the entries that a table has; what it has no column for is None."""
    columns: dict[str, Sequence[Any]] = dict.fromkeys(StateEntry._fields, [None] * table.num_rows)
    columns |= {"state": [state.name] * table.num_rows, "kind": [state.kind] * table.num_rows}
    typed = dict(zip(TYPED, typed_columns(state)))
    for name in table.column_names:
        column = typed.get(name)
        array = table[name].combine_chunks()
        columns[name] = array.to_pylist() if column is None else values(name, array, column)
    return [StateEntry(*row) for row in zip(*columns.values())]


def is_text(state: StateDescriptor) -> bool:
    return any(column is TEXT for column in typed_columns(state))


def assert_true(saved: Point) -> int:
    """Compare tables with what Flink read; return how many rows there are."""
    truth = Counter(true_entries(saved.entries, saved.archive))
    seen: Counter[Any] = Counter()
    texts = set()
    for operator in saved.read().operators:
        for state in operator.states:
            if is_text(state):
                texts.add((operator.operator_id, state.name))
            else:
                table = operator.to_arrow(state)
                table.validate(full=True)
                entries = rows_of(table, state)
                seen.update(seen_entry(operator, state, entry) for entry in entries)
    assert not seen - truth
    assert {(entry[0], entry[2]) for entry in truth - seen} <= texts
    return seen.total()


@pytest.mark.long
def test_rows_are_what_flink_read() -> None:
    assert assert_true(HEAP) > 1_000


@pytest.mark.slow
@pytest.mark.parametrize("saved", POINTS, ids=str)
def test_rows_of_every_point(saved: Point) -> None:
    assert assert_true(saved) >= 0


@pytest.mark.slow
@pytest.mark.parametrize("saved", [*POINTS, *JOB_POINTS], ids=str)
def test_no_column_is_left_out_that_has_a_value(saved: Point) -> None:
    for operator in saved.read().operators:
        for state in operator.states:
            names = operator.to_arrow_batch_reader(state).schema.names
            rest = set(StateEntry._fields) - {*names, "state", "kind"}
            with suppress(SavepointError):  # only the job can read it
                for entry in operator.entries([state.name]):
                    assert not any(getattr(entry, name) is not None for name in rest)


def test_columns_by_kind() -> None:
    operator = HEAP.read().operator("by-string")
    schemas = {
        state.name: operator.to_arrow_batch_reader(state).schema for state in operator.states
    }
    of_all = {"key_group": "int32", "subtask": "int32", "key": "string", "bytes": "int64"}
    more = {
        "count": {"value": "int64"},
        "pair": {"value": "struct<f0: string, f1: int32>"},
        "history": {"value": "list<element: int32>"},
        "visits": {"value": "list<element: struct<last_access: int64, value: string>>"},
        "label": {"value": "string", "last_access": "int64"},
        "byCity": {"user_key": "string", "value": "int64"},
        "_timer_state/event_user-timers": {"timestamp": "int64"},
    }
    for name, columns in more.items():
        assert {field.name: str(field.type) for field in schemas[name]} == of_all | columns
    windows = HEAP.read().operator("tumbling")
    names = windows.to_arrow_batch_reader("window-contents").schema.names
    assert names == ["key_group", "subtask", "key", "namespace", "value", "bytes"]


def test_one_state_of_some_key_groups() -> None:
    operator = HEAP.read().operator("by-string")
    (count,) = (state for state in operator.states if state.name == "count")
    truth = [
        line
        for line in true_entries(HEAP.entries)
        if line[0] == operator.operator_id and line[2] == "count"
    ]
    wanted = sorted({line[4] for line in truth})[3:5]
    table = operator.to_arrow(count, key_groups=wanted)
    rows = zip(*(table[name].to_pylist() for name in ("key_group", "key", "value")))
    present = [(line[4], line[5], line[8][1]) for line in truth if line[4] in wanted]
    assert sorted(rows) == sorted(present)
    assert len(present) >= 2
    assert operator.to_arrow("count", []).num_rows == 0
    assert operator.to_arrow("count", []).schema == table.schema


def test_the_only_state_needs_no_name(tmp_path: Path) -> None:
    groups = [[(0, [entry(3, "a", sb.i64(5))])]]
    operator = operator_of(tmp_path, [sb.state("n", "VALUE", LONG)], groups)
    assert operator.to_arrow()["value"].to_pylist() == [5]
    with SavepointWriter(tmp_path / "timers") as writer:
        states = [TimerServiceDescriptor("t"), ValueStateDescriptor("n", INT_TYPE)]
        writer.add_operator("a", INT_TYPE, states, 128, 1).write("n", 3, 7)
    (with_timers,) = read_savepoint(tmp_path / "timers").operators
    assert with_timers.to_arrow()["value"].to_pylist() == [7]
    for state, error, message in [
        ("m", InvalidValueError, f"state must be one of {operator.label}, which has n, got 'm'"),
        (5, InvalidTypeError, "state must be a str, got 5"),
        (HEAP.read().operator("by-string").states[0], InvalidValueError, "which has n, got "),
    ]:
        with pytest.raises(error, match=message):
            operator.to_arrow(state)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match=r"^state must be one of by-string, .*, got None$"):
        HEAP.read().operator("by-string").to_arrow()
    with pytest.raises(InvalidValueError, match=r"key group must be .*got 128"):
        operator.to_arrow("n", key_groups=[128])
    (without,) = read_savepoint(sb.write(tmp_path / "o", [sb.operator([])])).operators
    with pytest.raises(InvalidValueError, match="which has none, got None"):
        without.to_arrow()


def test_batches_come_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is behind a batch is not read with it; an error in it comes as it is."""
    groups = [[(0, [entry(3 + n, "a", sb.i64(n))])] for n in range(3)]
    groups[2] = [(0, [entry(5, "a", b"\0")])]
    operator = operator_of(tmp_path, [sb.state("n", "VALUE", LONG)], groups)
    monkeypatch.setattr(entry_columns, "ROWS", 1)
    reader = operator.to_arrow_batch_reader()
    assert isinstance(reader, pa.RecordBatchReader)
    for number in range(2):
        batch = reader.read_next_batch()
        batch.validate(full=True)
        assert batch.column("value").to_pylist() == [number]
    with pytest.raises(SavepointError, match="no entry of n: VALUE"):
        reader.read_next_batch()
    many = HEAP.read().operator("by-string").to_arrow_batch_reader("count")
    assert len([*many]) > HEAP.read().operator("by-string").parallelism


def test_an_error_names_the_key_group(tmp_path: Path) -> None:
    fine, half = write_string("fine"), write_string("\udc00")
    groups = [[(0, [entry(3, "a", fine)])], [(0, [entry(4, "a", fine), entry(4, "b", half)])]]
    operator = operator_of(tmp_path, [sb.state("n", "VALUE", STRING)], groups)
    assert operator.to_arrow(key_groups=[3]).num_rows == 1
    message = "value in state 'n', key group 4: .* half of a surrogate pair"
    with pytest.raises(InvalidValueError, match=message):
        operator.to_arrow()


def test_keys_that_only_the_job_tells_have_their_bytes(tmp_path: Path) -> None:
    kryo = sb.snapshot("org.example.KeySerializerSnapshot", 1)
    header = sb.keyed_header(kryo, [sb.state("n", "VALUE", LONG)])
    content = sb.canonical_key_group([(0, [(b"\3xyz\0", sb.i64(5))])])
    keyed = sb.canonical(3, [len(header)], sb.inline(header + content))
    task = sb.operator([sb.subtask(managed_keyed=keyed)])
    (operator,) = read_savepoint(sb.write(tmp_path, [task])).operators
    table = operator.to_arrow()
    assert table.column_names == ["key_group", "subtask", "key", "value", "bytes", "key_bytes"]
    (only,) = operator.entries()
    assert table["key"].to_pylist() == [only.key]
    assert table["key_bytes"].to_pylist() == [only.key_bytes]


def test_a_pojo_within_a_key_may_be_of_a_subclass(tmp_path: Path) -> None:
    """Which only the job reads: then there are its bytes."""
    for depth, key in enumerate((LONG, sb.tuple_of(LONG), sb.pojo_of("a.P", {"n": LONG}))):
        for nested in (key, sb.tuple_of(LONG, key)):
            header = sb.keyed_header(nested, [sb.state("n", "VALUE", LONG)])
            keyed = sb.canonical(3, [0], sb.inline(header))
            task = sb.operator([sb.subtask(managed_keyed=keyed)])
            saved = sb.write(tmp_path / f"{depth} {nested == key}", [task])
            names = read_savepoint(saved).operators[0].to_arrow_batch_reader().schema.names
            assert ("key_bytes" in names) == (depth == 2)


def test_states_of_several_types_have_each_their_field(tmp_path: Path) -> None:
    """As Spark has them in one DataFrame; what is the same in all is a column too."""
    states = [sb.state("n", "VALUE", LONG), sb.state("t", "VALUE", sb.ttl_of(STRING))]
    groups = [
        [
            (0, [entry(3, "a", sb.i64(5))]),
            (1, [entry(3, "b", sb.i64(9) + b"\0")]),
        ],  # a String without a length is null
        [(0, [entry(4, "a", sb.i64(6))])],
    ]
    operator = operator_of(tmp_path, states, groups)
    layout = layout_of(operator.states)
    assert layout.states == ["n", "t"]
    (first, second) = operator.tasks()
    rows = [row for batch in record_batches(first, layout) for row in batch.to_pylist()]
    common = {"key_group": 3, "subtask": 0, "kind": "VALUE", "namespace": None, "user_key": None}
    common |= {"timestamp": None, "key_bytes": None}
    assert rows == [
        {"state": "n", "key": "a", "value": {"n": 5, "t": None}, "last_access": None, "bytes": 11}
        | common,
        {"state": "t", "key": "b", "value": {"n": None, "t": None}, "last_access": 9, "bytes": 12}
        | common,
    ]
    (batch,) = record_batches(second, layout)
    assert batch.column("value").to_pylist() == [{"n": 6, "t": None}]


@pytest.mark.extras
def test_pandas_and_polars() -> None:
    """Numbers beside nulls stay whole, and nested values are there."""
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    operator = HEAP.read().operator("by-string")
    for state in operator.states:
        table = operator.to_arrow(state)
        frame = operator.to_pandas(state)
        assert [*frame.columns] == table.column_names
        assert {str(item) for item in frame.dtypes} <= {
            f"{item}[pyarrow]" for item in table.schema.types
        }
        assert (
            pa.Table.from_pandas(frame, preserve_index=False)
            .cast(table.schema)
            .equals(table.combine_chunks())
        )
        polars = operator.to_polars(state)
        assert polars.columns == table.column_names
        assert polars["bytes"].to_list() == table["bytes"].to_pylist()
        if "value" in table.column_names:
            assert polars["value"].to_list() == table["value"].to_pylist()
