"""Work on keyed state in parts, as whoever has executors has it done; no Spark runs."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.column_entries import entry, operator_of
from support.bytes.real_savepoints import point
from support.bytes.unread_values import CLASSES
from support.bytes.unread_values import operator_of as unread_operator
from support.inside.savepoints import verified, verify

from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    SavepointError,
    UnsupportedKeyTypeError,
)
from keygroups.savepoint import StateEntry, read_savepoint

pa: Any = pytest.importorskip("pyarrow")

from support.inside.columns import (  # noqa: E402
    PartedJob,
    difference_job,
    key_size_job,
    state_query,
)

StateQuery, read_tasks = state_query.StateQuery, state_query.read_tasks
parse_key_groups = state_query.parse_key_groups
LONG = sb.simple("Long")


def rows_of(job: PartedJob) -> list[dict[str, Any]]:
    """Return the rows that a job makes on other machines."""
    job = pickle.loads(pickle.dumps(job))
    batches = [batch for part in job.parts for batch in job.run(part)]
    assert all(batch.schema == job.schema for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


def test_tasks_are_of_even_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is small is read together, and a heavy subtask in several tasks."""
    state = sb.state("n", "VALUE", LONG)
    light = [[(0, [entry(3 + number, "a", sb.i64(5))])] for number in range(20)]
    operator = operator_of(tmp_path, [state], light)
    sizes = {task.bytes for task in operator.tasks()}
    (size,) = sizes
    monkeypatch.setattr(state_query, "TASK_BYTES", 6 * size + 1)
    assert [*map(len, read_tasks(operator, None, None))] == [6, 6, 6, 2]
    monkeypatch.setattr(state_query, "TASK_BYTES", size - 1)
    assert [*map(len, read_tasks(operator, None, None))] == [1] * 20
    (heavy, *_) = point("2.3.0-heap-canonical").read().operator("by-string").tasks()
    monkeypatch.setattr(state_query, "TASK_BYTES", heavy.bytes // 4)
    whole = point("2.3.0-heap-canonical").read().operator("by-string")
    tasks = read_tasks(whole, None, None)
    assert all(len(group) == 1 for group in tasks)
    assert len(tasks) >= 4 * len(whole.tasks())
    assert read_tasks(whole, [], None) == []
    # Of changes alone it is not known how many bytes they are: they are read by themselves.
    changelog = point("2.3.0-changelog-checkpoint").read()
    for operator in changelog.operators:
        assert len(read_tasks(operator, None, None)) == len(operator.tasks())


@dataclass(frozen=True)
class Sized:
    """A task of a size."""

    bytes: int
    states: Any = None

    def split(self, size: int) -> Iterator[Sized]:
        yield replace(self, bytes=size)
        yield replace(self, bytes=self.bytes - size)


# Sizes of subtasks under a limit of 8, and those of what is read together.
TOGETHER = [
    ([3, 4, 9, 2], [[3, 4], [8], [1], [2]]),
    ([1], [[1]]),
    ([9, 1], [[8], [1], [1]]),
    ([8, 8, 1], [[8], [8], [1]]),
    ([5, 3, 1], [[5, 3], [1]]),
    ([5, 2, 1, 1], [[5, 2, 1], [1]]),
    ([0, 1], [[0], [1]]),
]


@pytest.mark.parametrize(("sizes", "together"), TOGETHER)
def test_sizes_that_are_read_together(
    sizes: list[int], together: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_query, "TASK_BYTES", 8)
    operator: Any = SimpleNamespace(tasks=lambda *_: [Sized(size) for size in sizes])
    groups: Any = read_tasks(operator, ["n"], None)
    assert [[task.bytes for task in group] for group in groups] == together
    assert {task.states for group in groups for task in group} == {frozenset(["n"])}
    assert {task.states for group in read_tasks(operator, None, None) for task in group} == {None}


def test_keys_as_bytes() -> None:
    """A is in key group 104 of 128, B in 17."""
    operator = point("2.3.0-heap-canonical").read().operator("by-string")
    encoded_keys = StateQuery(operator).encoded_keys
    assert encoded_keys([]) == frozenset()
    assert encoded_keys(["A", "B"]) == frozenset([b"\x68\2A", b"\x11\2B"])
    assert encoded_keys(["A", 5]) is None
    assert encoded_keys(["A", None]) is None
    tuples = point("2.3.0-heap-canonical").read().operator("by-tuple")
    with pytest.raises(UnsupportedKeyTypeError, match="keys must be None for operator by-tuple"):
        StateQuery(tuples).encoded_keys(["A"])
    # Tasks have the key groups of keys, of those that are wanted, each with the keys in them.
    keys = frozenset([b"\x68\2A", b"\x11\2B"])
    for key_groups, expected in (
        (None, [b"\x11\2B", b"\x68\2A"]),
        (range(100, 128), [b"\x68\2A"]),
        ([], []),
    ):
        tasks = [task for group in read_tasks(operator, None, key_groups, keys) for task in group]
        assert [key for task in tasks for key in task.keys or ()] == expected
        assert [[*task.key_groups] for task in tasks] == [[key[0]] for key in expected]
    assert read_tasks(operator, None, None, frozenset()) == []


def test_keys_as_bytes_of_one_state(tmp_path: Path) -> None:
    operator = operator_of(tmp_path, [sb.state("n", "VALUE", LONG)], [[(0, [])]])
    assert len(operator.states) == 1
    query = StateQuery(operator)
    assert query.encoded_keys(["A", "B"]) == frozenset([b"\x68\2A", b"\x11\2B"])
    assert query.encoded_keys([5]) is None


def test_key_groups_as_text() -> None:
    assert parse_key_groups("0-3,70") == [0, 1, 2, 3, 70]
    assert parse_key_groups("") == []
    assert parse_key_groups("32767, 7-7") == [32767, 7]
    refused = ["1-x", "3-", "-1", ",", "0,", "70-63", "1_0", "+3", "\u0663", "0x3", "3.0"]
    for text in [*refused, "32768", "0-32768", "9999999999", "0-99999999999"]:
        with pytest.raises(InvalidValueError) as raised:
            parse_key_groups(text)
        says = f"keyGroups must be such as 0-63,70, from 0 to 32767, got {text!r}"
        assert str(raised.value) == says


def test_rows_of_one_state_and_of_all() -> None:
    operator = point("2.3.0-heap-canonical").read().operator("by-string")
    for state in ("count", None):
        reader = pickle.loads(pickle.dumps(StateQuery(operator, state).reader))
        names = None if state is None else [state]
        tasks = [task for group in read_tasks(operator, names, None) for task in group]
        rows = Counter(
            (row["state"], row["key_group"], row["bytes"])
            for batch in reader.read(tasks)
            for row in batch.to_pylist()
        )
        entries = operator.entries(names)
        assert rows == Counter((one.state, one.key_group, one.bytes) for one in entries)
    with pytest.raises(InvalidValueError, match="states must be of by-string"):
        StateQuery(operator, "x").reader.read([])


def test_rows_of_some_columns() -> None:
    """They are those of all columns, in the order that is asked for."""
    operator = point("2.3.0-heap-canonical").read().operator("by-string")
    whole = StateQuery(operator).reader
    names = ["value", "bytes", "key", "kind"]
    some = pickle.loads(pickle.dumps(StateQuery(operator, None, iter(names)).reader))
    assert some.schema.names == names
    query = StateQuery(operator)
    assert query.with_columns(names).schema == some.schema
    assert query.schema == whole.schema
    tasks = [task for group in read_tasks(operator, None, None) for task in group]
    batches = [*some.read(tasks)]
    assert all(batch.schema == some.schema for batch in batches)
    assert batches == [batch.select(names) for batch in whole.read(tasks)]


@pytest.mark.parametrize("name", ["2.3.0-heap-canonical", "2.3.0-rocksinc-checkpoint"])
def test_rows_without_values(name: str) -> None:
    """What has no value in it is the same as beside all columns."""
    for operator in point(name).read().operators:
        whole = StateQuery(operator)
        names = [name for name in whole.schema.names if not name.startswith(("value", "last_"))]
        kept = [{name: row[name] for name in names} for row in rows_of(whole.job(None))]
        assert rows_of(StateQuery(operator, None, names).job(None)) == kept


def test_values_that_are_not_wanted_are_not_decoded(tmp_path: Path) -> None:
    state = sb.state("n", "VALUE", sb.ttl_of(LONG))
    operator = operator_of(tmp_path, [state], [[(0, [entry(3, "a", bytes(9))])]])
    assert rows_of(StateQuery(operator, "n", ["key", "bytes"]).job(None)) == [
        {"key": "a", "bytes": 12}
    ]
    for column in ("value", "last_access"):
        with pytest.raises(SavepointError, match="no entry of n: VALUE"):
            rows_of(StateQuery(operator, "n", ["key", column]).job(None))


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ("key", InvalidTypeError, "columns must be an iterable of names, got 'key'"),
        ([5], InvalidTypeError, "columns must be names, got 5"),
        ([], InvalidValueError, "columns must be some of key_group, subtask, .*, got none"),
        (["Key"], InvalidValueError, "columns must be some of .* each once, got 'Key'$"),
        (["key", "key"], InvalidValueError, "each once, got 'key' twice$"),
    ],
)
def test_columns_that_rows_do_not_have(columns: Any, error: type[Exception], message: str) -> None:
    operator = point("2.3.0-heap-canonical").read().operator("by-string")
    with pytest.raises(error, match=message):
        _ = StateQuery(operator, "count", columns).schema


@pytest.mark.parametrize("states", [None, ["count"]])
def test_what_is_not_the_same_in_two_savepoints(
    monkeypatch: pytest.MonkeyPatch, states: list[str] | None
) -> None:
    """As one process finds it, in several parts."""
    monkeypatch.setattr("keygroups.savepoint._jobs.questions.TASK_BYTES", 20_000)
    old, new = (point(f"2.3.0-{name}-canonical").read() for name in ("heap", "rocks"))
    job = difference_job(old, new, "by-string", states)
    assert len(job.parts) > 1
    rows = Counter((row["key_group"], row["state"], row["kind"]) for row in rows_of(job))
    expected: Counter[Any] = Counter()
    for difference in old.differences(new, ["by-string"]):
        one = difference.here or difference.there
        if isinstance(one, StateEntry) and (states is None or one.state in states):
            expected[one.key_group, one.state, difference.kind] += 1
    assert rows == expected


def test_differences_of_one_state() -> None:
    """They have the types of that state; `count` is a long."""
    old, new = (point(f"2.3.0-{name}-canonical").read() for name in ("heap", "rocks"))
    job = difference_job(old, new, "by-string", ["count"])
    assert job.schema.field("old_value").type == job.schema.field("new_value").type == pa.int64()
    with pytest.raises(InvalidTypeError, match="operator must be a str, got 5"):
        difference_job(old, new, 5, None)  # type: ignore[arg-type]  # No name is an int.


def test_an_operator_that_one_savepoint_has() -> None:
    """Neither has the other's operators."""
    old, new = (point(f"2.3.0-{name}-canonical").read() for name in ("heap", "rowkey"))
    for pair, kind in (((old, new), "only_there"), ((new, old), "only_here")):
        rows = rows_of(difference_job(*pair, "by-row", None))
        assert {row["kind"] for row in rows} == {kind}


def test_how_much_state_each_key_has() -> None:
    operator = point("2.3.0-heap-canonical").read().operator("by-string")
    rows = Counter(tuple(row.values()) for row in rows_of(key_size_job(operator)))
    assert rows == Counter(map(tuple, operator.key_sizes(top=10_000)))
    columns = ["key", "key_group", "subtask", "entries", "bytes"]
    assert key_size_job(operator).schema.names == columns
    source = point("2.3.0-heap-canonical").read().operator("src-by-string")
    assert key_size_job(source).schema.names == columns
    assert rows_of(key_size_job(source)) == []
    assert [*StateQuery(source).reader.read([])] == []


def test_how_many_keys_are_weighed_at_once(tmp_path: Path) -> None:
    entries = [entry(3, str(number), sb.i64(5)) for number in range(2_049)]
    operator = operator_of(tmp_path, [sb.state("n", "VALUE", LONG)], [[(0, entries)]])
    job = key_size_job(operator)
    assert [len(batch) for part in job.parts for batch in job.run(part)] == [1_024, 1_024, 1]


def test_keys_of_the_job_are_weighed_by_their_bytes(tmp_path: Path) -> None:
    unread_operator(tmp_path, "key", "java.lang.Object", CLASSES["java.lang.Object"], "canonical")
    job = key_size_job(read_savepoint(tmp_path).operator("uid"))
    [row] = [row for part in job.parts for batch in job.run(part) for row in batch.to_pylist()]
    assert (row["key"], row["key_bytes"]) == (None, CLASSES["java.lang.Object"])
    assert (row["entries"], job.schema.names[-1]) == (1, "key_bytes")


def test_a_savepoint_is_verified_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "TASK_BYTES", 4096)
    savepoint = point("2.3.0-heap-canonical").read()
    counts = []

    def run(tasks: list[Any]) -> list[Any]:
        counts.append(len(tasks))
        return [task() for task in pickle.loads(pickle.dumps(tasks))]

    assert verified(savepoint, None, run) == savepoint.verify()
    assert max(counts) == 7  # There are 3 subtasks.
