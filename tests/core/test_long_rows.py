"""Rows of columns as `read_keyed_state` gives them, which become entries again; no Spark runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.framed_entries import framed_entries
from support.bytes.job_points import JOB_POINTS, job_point
from support.bytes.real_savepoints import point
from support.inside.serializers import KryoSerializer, RowDataSerializer
from support.selections import first_by_default

from keygroups import assign_to_key_group
from keygroups.errors import InvalidTypeError, InvalidValueError, UnsupportedKeyTypeError
from keygroups.logical_types import parse_logical_type
from keygroups.savepoint import Operator, StateDescriptor, read_savepoint
from keygroups.state_keys import VOID_NAMESPACE, serializer_of
from keygroups.types import LONG, MAP, STRING

pa: Any = pytest.importorskip("pyarrow")

from support.inside.columns import (  # noqa: E402
    TYPED,
    ColumnPlace,
    LongRows,
    check_states_of_rows,
    layout_of,
    long_columns,
    record_batches,
)

HEAP = point("2.3.0-heap-canonical")


def framed(operator: Operator, states: Iterable[str] | None = None) -> Counter[tuple[Any, ...]]:
    """Return the bytes of all entries of some states."""
    names = None if states is None else frozenset(states)
    return Counter(
        (entry.state, entry.key_group, entry.encoded_key, entry.encoded_value)
        for task in operator.tasks()
        for entry in framed_entries(replace(task, states=names))
    )


def by_columns(operator: Operator, state: StateDescriptor) -> Counter[tuple[Any, ...]]:
    """Return the bytes of a state's entries that went through the columns that DataFrames have."""
    layout = layout_of([state])
    roles = [role for role, types in zip(TYPED, layout.types) if types]
    columns = ("state", *roles, "last_access", "timestamp")
    encoder = LongRows(
        operator.states,
        operator.max_parallelism,
        True,
        columns,
        {state.name: {role: ColumnPlace(columns.index(role), None) for role in roles}},
    )
    written: Counter[tuple[Any, ...]] = Counter()
    for task in operator.tasks([state.name]):
        for batch in record_batches(replace(task, states=frozenset({state.name})), layout):
            for entries in encoder([batch.select(list(columns))]):
                key_groups, _, keys, values = (column.to_pylist() for column in entries.columns)
                written.update(zip(repeat(state.name), key_groups, keys, values))
    return written


JOBS = [saved.name for saved in JOB_POINTS if saved.kind == "canonical"]


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_columns_of_jobs_are_the_bytes_that_were_there(name: str) -> None:
    """Of each state that columns hold; all else is refused, by its name."""
    written, refused = 0, []
    for operator in job_point(name).read().operators:
        for state in operator.states:
            if not is_held(operator, state):
                continue
            try:
                ours = by_columns(operator, state)
            except InvalidValueError as error:
                refused.append(str(error))
                continue
            assert ours == framed(operator, [state.name]), state
            written += ours.total()
    assert written > 20
    reasons = ("is nothing that a column holds", "which Flink writes in two ways")
    assert all(any(reason in text for reason in reasons) for text in refused)


def is_held(operator: Operator, state: StateDescriptor) -> bool:
    try:
        check_states_of_rows(operator.label, [state])
    except UnsupportedKeyTypeError:
        return False
    return True


@pytest.mark.branch
@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "uid"),
    first_by_default(
        2,
        [  # All kinds of state, times to live, timers and windows are there.
            ("2.3.0-heap-canonical", "session"),
            ("2.3.0-heap-canonical", "by-string"),
            ("2.3.0-extraheap-canonical", "string-namespace"),
            ("2.3.0-rowkey-canonical", "by-row"),
        ],
    ),
)
def test_columns_are_the_bytes_that_were_there(name: str, uid: str) -> None:
    operator = point(name).read().operator(uid)
    for state in operator.states:
        assert by_columns(operator, state) == framed(operator, [state.name])


def encoder(*names: str) -> LongRows:
    """Return one of some states of by-string, from the columns of all roles."""
    states = HEAP.read().operator("by-string").states
    columns = ("state", "key", "value", "last_access")
    places = {name: {"key": ColumnPlace(1, None), "value": ColumnPlace(2, None)} for name in names}
    return LongRows(states, 128, False, columns, places)


def batch(*rows: tuple[Any, ...]) -> Any:
    types = (pa.string(), pa.string(), pa.int64(), pa.int64())
    arrays = [pa.array(column, item) for column, item in zip(zip(*rows), types)]
    return pa.RecordBatch.from_arrays(arrays, ["state", "key", "value", "last_access"])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("sum", "a", 5, None), "state must be one of count, got 'sum'"),
        ((None, "a", 5, None), "state must be one of count, got None"),
        (("count", None, 5, None), "state 'count', key None: "),
        (("count", "a", None, None), "state 'count', key 'a': .* must not be None"),
        (("count", "a", 5, 7), "last_access of state 'count' must be null, got 7"),
    ],
)
def test_rows_that_are_no_entries_are_refused(row: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        list(encoder("count")([batch(("count", "b", 6, None), row)]))


def test_what_is_in_the_fields_of_other_states_is_refused() -> None:
    """A struct of states has the value of the row's own alone."""
    made = replace(
        encoder("count"),
        places={"count": {"key": ColumnPlace(1, None), "value": ColumnPlace(2, 0)}},
    )
    struct = pa.struct([("count", pa.int64()), ("sum", pa.int64())])

    def rows(*values: Any) -> Any:
        names = pa.array(["count"] * len(values))
        keys, times = pa.array(list("ab"[: len(values)])), pa.nulls(len(values), pa.int64())
        arrays = [names, keys, pa.array(values, struct), times]
        return pa.RecordBatch.from_arrays(arrays, list(made.columns))

    [written] = made([rows({"count": 5, "sum": None}, {"count": 6, "sum": None})])
    assert written.column(3).to_pylist() == [bytes(7) + b"\5", bytes(7) + b"\6"]
    with pytest.raises(
        InvalidValueError, match="value of state 'count' must be null but for its own, got 7"
    ):
        list(made([rows({"count": 5, "sum": None}, {"count": 6, "sum": 7})]))


SQL_KEYS = RowDataSerializer([parse_logical_type("STRING"), parse_logical_type("DECIMAL(38, 2)")])


def test_user_keys_of_which_flink_has_two_forms_are_refused() -> None:
    """A null of DECIMAL takes 16 bytes more in generated code than in RowDataSerializer."""
    state = StateDescriptor(
        "rows", "MAP", serializer_of(STRING), VOID_NAMESPACE, serializer_of(LONG), SQL_KEYS
    )
    roles = {role: ColumnPlace(n, None) for n, role in enumerate(("key", "user_key", "value"), 1)}
    columns = ("state", *roles)
    made = LongRows((state,), 128, False, columns, {"rows": roles})
    rows_type = pa.struct([("f0", pa.string()), ("f1", pa.decimal128(38, 2))])

    def rows(user_key: Any) -> Any:
        arrays = [pa.array(["rows"]), pa.array(["a"]), pa.array([user_key], rows_type)]
        return pa.RecordBatch.from_arrays([*arrays, pa.array([5])], list(columns))

    assert len(list(made([rows({"f0": None, "f1": Decimal("1.50")})]))) == 1
    with pytest.raises(InvalidValueError, match=r"must have no null of DECIMAL\(38, 2\), which"):
        list(made([rows({"f0": "x", "f1": None})]))


def test_bytes_of_a_serializer_that_is_not_known_come_back(tmp_path: Path) -> None:
    """A value, a list with its separators, a map with a null, a time to live."""
    money = sb.snapshot("a.MoneySnapshot", 1, sb.utf("EUR"))
    kryo = sb.kryo_of("a.B")
    states = [
        sb.state("paid", "VALUE", money),
        sb.state("all", "LIST", sb.list_of(kryo)),
        sb.state("seen", "VALUE", sb.ttl_of(kryo)),
        sb.state("by", "MAP", sb.map_of(sb.simple("Long"), kryo)),
    ]
    header = sb.keyed_header(sb.simple("String"), states)
    group = assign_to_key_group("a", 128)
    key = bytes([group]) + b"\2a\0"
    entries = [
        (0, [(key, b"\1\2,\3")]),
        (1, [(key, b"any,\0,any")]),
        (2, [(key, sb.i64(1_700_000_000_000) + b"\xff")]),
        (3, [(key + sb.i64(1), b"\0any"), (key + sb.i64(2), b"\1")]),
    ]
    keyed = sb.canonical(group, [len(header)], sb.inline(header + sb.canonical_key_group(entries)))
    path = sb.write(
        tmp_path / "old", [sb.operator([sb.subtask(managed_keyed=keyed)], uid="by-user")]
    )
    operator = read_savepoint(path).operator("by-user")
    for state in operator.states:
        assert by_columns(operator, state) == framed(operator, [state.name])
    columns = ("state", "key", "value")
    places = {"paid": {"key": ColumnPlace(1, None), "value": ColumnPlace(2, None)}}
    made = LongRows(operator.states, 128, False, columns, places)
    rows = pa.RecordBatch.from_arrays([["paid"], ["a"], ["text"]], list(columns))
    with pytest.raises(InvalidTypeError, match=r"'a': .*must be the bytes that were read, got"):
        list(made([rows]))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"key_serializer": serializer_of(MAP(STRING, LONG))}, "keys of MAP.* an order that only"),
        ({"key_serializer": VOID_NAMESPACE}, "the hash of keys of VOID_NAMESPACE is not known"),
        (
            {"kind": "MAP", "user_key_serializer": serializer_of(MAP(STRING, LONG))},
            "state 's' of operator x cannot be written from rows: user keys of MAP.* an order",
        ),
        (
            {"value_serializer": KryoSerializer("java.util.List")},
            "state 's' of operator x .*: values of KRYO.* are text or bytes in Spark, which",
        ),
        (
            {"namespace_serializer": serializer_of(MAP(STRING, LONG))},
            "state 's' of operator x .*: namespaces of MAP.*; without it in states it is kept",
        ),
    ],
)
def test_states_that_rows_do_not_hold(changed: dict[str, Any], message: str) -> None:
    longs = serializer_of(LONG)
    state = StateDescriptor("s", "VALUE", serializer_of(STRING), VOID_NAMESPACE, longs)
    check_states_of_rows("x", [state])
    with pytest.raises(UnsupportedKeyTypeError, match=message):
        check_states_of_rows("x", [replace(state, **changed)])


def test_columns_that_rows_need() -> None:
    """Those of all states, timers too; of one only what it has."""
    operator = HEAP.read().operator("by-string")
    check_states_of_rows("by-string", operator.states)
    needed = [column.name for column in long_columns(operator.states) if column.needed]
    assert needed == ["state", "key", "user_key", "value", "last_access", "timestamp"]
    [count] = [state for state in operator.states if state.name == "count"]
    columns = {column.name: column for column in long_columns([count])}
    assert [name for name, column in columns.items() if column.needed] == ["state", "key", "value"]
    assert columns["value"].of_states == {"count": pa.int64()}
    assert columns["timestamp"].type == pa.int64()
