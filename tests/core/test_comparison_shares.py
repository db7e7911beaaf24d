"""An operator of two savepoints compared in shares: together they find what the whole does.

That what the whole finds is right is for test_compare.py.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.real_savepoints import point
from support.inside.serializers import write_string

from keygroups import InvalidTypeError, InvalidValueError
from keygroups.savepoint import (
    EntryDifference,
    MapStateDescriptor,
    Savepoint,
    SavepointWriter,
    StateEntry,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.savepoint._comparison.shares import ComparisonTask, _shares, comparison_tasks
from keygroups.types import DOUBLE, INT, LONG, STRING

HEAP = point("2.3.0-heap-canonical")


@pytest.mark.parametrize(
    ("weights", "most", "shares"),
    [
        ([4, 4, 1], 3, [0, 0, 1]),  # 8 bytes, two have them
        ([9, 1, 9, 9], 4, [0, 1, 2, 3]),  # a larger one is alone
        ([0, 0, 0, 0, 0], 2, [0, 0, 1, 1, 2]),
    ],
)
def test_what_a_share_has(weights: list[int], most: int, shares: list[int]) -> None:
    counted = Counter(dict(enumerate(weights)))
    assert _shares(len(weights), counted, 8, most) == shares


def tasks_of(
    old: Savepoint, new: Savepoint, operator_id: str, states: frozenset[str] | None, size: int
) -> list[ComparisonTask]:
    """Return the tasks as another process gets them."""
    here, there = (
        next((item for item in side.operators if item.operator_id == operator_id), None)
        for side in (old, new)
    )
    tasks: list[ComparisonTask] = pickle.loads(
        pickle.dumps(comparison_tasks(here, there, states, size))
    )
    return tasks


def of_keyed_state(differences: Any) -> list[EntryDifference]:
    return [item for item in differences if isinstance(item.here or item.there, StateEntry)]


def written(
    path: Path, parallelism: int, groups: int, entries: Iterable[tuple[float, float]]
) -> Savepoint:
    with SavepointWriter(path) as writer:
        states = [ValueStateDescriptor("sum", DOUBLE), MapStateDescriptor("map", INT, LONG)]
        operator = writer.add_operator("op", DOUBLE, states, groups, parallelism, sort=True)
        for key, value in entries:
            operator.write("sum", key, value)
            operator.write("map", key, 5, 7)
    return read_savepoint(path)


@pytest.mark.long
@pytest.mark.parametrize(
    ("groups", "size", "least", "most"),
    [
        *((128, 1, 90, 128), (128, 5_000, 3, 20), (128, 1 << 30, 1, 1)),
        *((96, 1, 31, 32), (256, 5_000, 3, 20), (127, 1, 1, 1)),
    ],
)
def test_shares_find_what_the_whole_does(
    groups: int, size: int, least: int, most: int, tmp_path: Path
) -> None:
    """As many as the divisor of both max parallelisms allows; 0.0 is not -0.0, nor its value."""
    same = [(number / 4, 1.0) for number in range(9, 200)]
    old = written(tmp_path / "old", 3, 128, [*same, (0.0, 0.0), (-0.0, 1.0)])
    changed = [(number / 4, 1.0 if number % 7 else -1.0) for number in range(9, 220)]
    new = written(tmp_path / "new", 5, groups, [*changed, (0.0, -0.0)])
    (operator,) = old.operators
    tasks = tasks_of(old, new, operator.operator_id, None, size)
    assert least <= len(tasks) <= most
    found = [difference for task in tasks for difference in task.differences()]
    assert Counter(map(repr, found)) == Counter(map(repr, old.differences(new)))
    kinds = Counter((item.state, item.kind) for item in found)
    assert kinds == {
        ("sum", "changed"): len(range(14, 200, 7)) + 1,
        **{(state, "only_here"): 1 for state in ("sum", "map")},
        **{(state, "only_there"): 20 for state in ("sum", "map")},
    }


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "2.3.0-rocks-canonical",
        pytest.param("2.3.0-rocksresc-checkpoint", marks=pytest.mark.slow),
        pytest.param("2.3.0-changelog-checkpoint", marks=pytest.mark.slow),
    ],
)
def test_real_points(name: str) -> None:
    """Each operator of two jobs, in other formats and under other parallelisms."""
    old, new = HEAP.read(), point(name).read()
    count = 0
    for operator_id in {item.operator_id: None for item in (*old.operators, *new.operators)}:
        tasks = tasks_of(old, new, operator_id, None, 10_000)
        found = [difference for task in tasks for difference in task.differences()]
        expected = of_keyed_state(old.differences(new, [operator_id]))
        assert Counter(map(repr, found)) == Counter(map(repr, expected))
        count += len(found)
    assert count > 100


def test_some_states(tmp_path: Path) -> None:
    old = written(tmp_path / "old", 3, 128, [(1.0, 5.0), (2.0, 5.0)])
    new = written(tmp_path / "new", 3, 128, [(1.0, 6.0)])
    operator_id = old.operators[0].operator_id
    tasks = tasks_of(old, new, operator_id, frozenset(["map"]), 1)
    assert [(item.state, item.kind) for task in tasks for item in task.differences()] == [
        ("map", "only_here")
    ]


def test_sizes_that_are_not_known() -> None:
    """Of a changelog: then no task has more key groups than a subtask."""
    operator = point("2.3.0-changelog-checkpoint").read().operator("by-string")
    assert not any(task.bytes for task in operator.tasks())
    tasks = comparison_tasks(operator, operator, None, 1 << 30)
    assert operator.parallelism > 1
    most = operator.max_parallelism // operator.parallelism
    assert len(tasks) == -(-operator.max_parallelism // most)
    assert not [difference for task in tasks for difference in task.differences()]


def test_sizes_that_are_not_known_of_more_subtasks_than_there_are_shares(tmp_path: Path) -> None:
    """128 and 126 have the divisor 2, and three subtasks; a task has one of two remainders."""
    here = point("2.3.0-changelog-checkpoint").read().operator("by-string")
    (there,) = written(tmp_path / "new", 3, 126, [(1.0, 5.0)]).operators
    assert len(comparison_tasks(here, there, None, 1 << 30)) == 2


@pytest.mark.parametrize("is_new", [False, True])
def test_an_operator_that_one_savepoint_has(tmp_path: Path, is_new: bool) -> None:
    (operator,) = written(tmp_path / "a", 3, 128, [(1.0, 5.0), (2.0, 5.0)]).operators
    here, there = (None, operator) if is_new else (operator, None)
    tasks = comparison_tasks(here, there, None, 1)
    found = Counter((item.state, item.kind) for task in tasks for item in task.differences())
    kind = "only_there" if is_new else "only_here"
    assert found == {("sum", kind): 2, ("map", kind): 2}


# --- batches ----------------------------------------------------------------------------


def test_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All differences, with the values of both, in batches of some size."""
    pa = pytest.importorskip("pyarrow")
    from support.inside.columns import difference_columns as differences

    monkeypatch.setattr(differences, "_ROWS", 50)
    old, new = HEAP.read(), point("2.3.0-rocks-canonical").read()
    here, there = (side.operator("by-string") for side in (old, new))
    layout = pickle.loads(pickle.dumps(differences.difference_layout(here.states, there.states)))
    found = of_keyed_state(old.differences(new, ["by-string"]))
    batches = [*layout.batches(found)]
    for batch in batches:
        batch.validate(full=True)
        assert 1 <= len(batch) <= 50
    table = pa.Table.from_batches(batches)
    assert len(table) == len(found)
    rows = [row for row in table.to_pylist() if row["state"] == "count"]
    expected = [item for item in found if item.state == "count"]
    assert len(rows) > 20

    def value(column: Any) -> Any:
        return column["count"] if isinstance(column, dict) else column

    of_columns = [
        (
            row["key_group"],
            row["key"],
            row["kind"],
            *map(value, (row["old_value"], row["new_value"])),
        )
        for row in rows
    ]
    of_entries = []
    for item in expected:
        entry: Any = item.here or item.there
        sides: list[Any] = [item.here, item.there]
        values = [side and side.value for side in sides]
        of_entries.append((entry.key_group, entry.key, item.kind, *values))
    assert sorted(of_columns, key=repr) == sorted(of_entries, key=repr)


@pytest.mark.parametrize("is_new", [False, True])
def test_batches_of_a_state_that_one_savepoint_has(tmp_path: Path, is_new: bool) -> None:
    pytest.importorskip("pyarrow")
    from support.inside.columns import difference_layout

    written(tmp_path / "one", 3, 128, [(0.5, 1.0)])
    with SavepointWriter(tmp_path / "other") as writer:
        writer.add_operator("op", DOUBLE, [ValueStateDescriptor("other", DOUBLE)], 128, 3)
    names = ("other", "one") if is_new else ("one", "other")
    old, new = (read_savepoint(tmp_path / name) for name in names)
    (here,), (there,) = old.operators, new.operators
    layout = difference_layout(here.states, there.states)
    found = of_keyed_state(old.differences(new))
    rows = [row for batch in layout.batches(found) for row in batch.to_pylist()]
    assert {row["kind"] for row in rows} == {"only_there" if is_new else "only_here"}
    (row,) = (row for row in rows if row["state"] == "sum")
    passed, other = ("new", "old") if is_new else ("old", "new")
    assert (row["key"], row[f"{other}_value"]) == (0.5, None)
    assert 1.0 in (row[f"{passed}_value"], *dict(row[f"{passed}_value"] or {}).values())


def test_batches_have_some_bytes_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All entries are as large; a batch ends with the one that reaches the bound."""
    pytest.importorskip("pyarrow")
    from support.inside.columns import difference_columns as differences

    old = written(tmp_path / "old", 3, 128, [(float(number), 1.0) for number in range(7)])
    new = written(tmp_path / "new", 3, 128, [])
    (here,), (there,) = old.operators, new.operators
    layout = differences.difference_layout(here.states, there.states)
    found = [item for item in of_keyed_state(old.differences(new)) if item.state == "sum"]
    [size] = {item.here.bytes for item in found if isinstance(item.here, StateEntry)}
    assert [len(batch) for batch in layout.batches(found)] == [7]  # They are small.
    monkeypatch.setattr(differences, "_BYTES", 2 * size + 1)
    assert [len(batch) for batch in layout.batches(found)] == [3, 3, 1]


def test_how_many_differences_are_held(tmp_path: Path) -> None:
    """Of each state 4,096, or 4 MiB of entries of both savepoints, whichever is there first."""
    pytest.importorskip("pyarrow")
    from support.inside.columns import difference_layout

    old = written(tmp_path / "old", 3, 128, [(1.0, 1.0)])
    new = written(tmp_path / "new", 3, 128, [])
    (here,), (there,) = old.operators, new.operators
    layout = difference_layout(here.states, there.states)
    [found] = [item for item in old.differences(new, None, ["sum"]) if item.state == "sum"]
    entry = found.here
    assert isinstance(entry, StateEntry)
    assert [len(batch) for batch in layout.batches([found] * 4_097)] == [4_096, 1]
    half = 1 << 21
    for sizes, counts in [
        ([half] * 5, [2, 2, 1]),
        ([half, half - 1, 1] * 2, [3, 3]),  # The second is a byte short of it.
        ([half - 1, half, 1] * 2, [3, 3]),
    ]:
        of_sizes = [found._replace(here=entry._replace(bytes=size)) for size in sizes]
        assert [len(batch) for batch in layout.batches(of_sizes)] == counts
    each = entry._replace(bytes=half)
    both = found._replace(kind="changed", here=each, there=each)
    assert [len(batch) for batch in layout.batches([both] * 3)] == [1, 1, 1]
    turns = [found, found._replace(state="map", here=entry._replace(user_key=1, value=2))]
    batches = [*layout.batches(turns * 2)]
    assert [batch.to_pydict()["state"] for batch in batches] == [["sum"] * 2, ["map"] * 2]


INTS, TEXT, OBJECT = sb.simple("Int"), sb.simple("String"), sb.kryo_of("java.lang.Object")
OWN = b"\1\0a.\xc3\1"  # The class a.\xc3 is one that only the job reads.


def keyed(
    folder: Path,
    states: list[bytes],
    entries: list[tuple[int, bytes, bytes]],
    key: bytes = TEXT,
) -> Savepoint:
    """Write key group 3 of an operator: number of the state, key, value."""
    header = sb.keyed_header(key, states)
    group = sb.canonical_key_group(
        [(number, [(b"\3" + key, value)]) for number, key, value in entries]
    )
    keyed = sb.canonical(3, [len(header) if entries else 0], sb.inline(header + group))
    subtask = sb.subtask(managed_keyed=keyed)
    return read_savepoint(sb.write(folder, [sb.operator([subtask], uid="op")]))


def test_columns_of_differences(tmp_path: Path) -> None:
    """Each has its type, and each row the key, its times, and the values of both savepoints.

    What only the job reads is beside the text in whose place it is, on the side that may have it.
    """
    pa = pytest.importorskip("pyarrow")
    from support.inside.columns import difference_layout

    key, timer = b"\2a\0", b"\x80" + bytes(6) + b"\x09" + b"\2a" + sb.i64(7)
    count = sb.state("count", "VALUE", sb.ttl_of(INTS))
    timers = sb.state("timers", "", sb.timer_of(TEXT, sb.simple("Long")), backend_type=3)
    old = keyed(
        tmp_path / "old",
        [count, timers, sb.state("map", "MAP", sb.map_of(OBJECT, OBJECT))],
        [(0, key, sb.i64(5) + sb.i32(1)), (1, timer, b""), (2, key + OWN, b"\0" + OWN)],
    )
    text = sb.state("text", "VALUE", TEXT)
    new = keyed(
        tmp_path / "new",
        [count, text, sb.state("map", "MAP", sb.map_of(OBJECT, INTS))],
        [(0, key, sb.i64(6) + sb.i32(2)), (1, key, b"\2b"), (2, key + OWN, b"\0" + sb.i32(8))],
    )
    (here,), (there,) = old.operators, new.operators
    layout = difference_layout(here.states, there.states)
    assert layout.schema == pa.schema(
        [
            ("key_group", pa.int32()),
            ("state", pa.string()),
            ("key", pa.string()),
            ("namespace", pa.int64()),
            ("user_key", pa.string()),
            ("timestamp", pa.int64()),
            ("kind", pa.string()),
            ("old_value", pa.struct([("count", pa.int32()), ("map", pa.string())])),
            (
                "new_value",
                pa.struct([("count", pa.int32()), ("text", pa.string()), ("map", pa.int32())]),
            ),
            ("old_last_access", pa.int64()),
            ("new_last_access", pa.int64()),
            ("key_bytes", pa.binary()),
            ("user_key_bytes", pa.binary()),
            ("old_value_bytes", pa.binary()),
        ]
    )
    differences = [*old.differences(new)]
    rows = [row for batch in layout.batches(differences) for row in batch.to_pylist()]
    nothing = dict.fromkeys(layout.schema.names)
    texts = {"count": None, "text": None, "map": None}
    assert sorted(rows, key=lambda row: row["state"]) == [
        {
            **nothing,
            **{"key_group": 3, "state": "count", "key": "a", "kind": "changed"},
            "old_value": {"count": 1, "map": None},
            "new_value": {**texts, "count": 2},
            **{"old_last_access": 5, "new_last_access": 6},
        },
        {
            **nothing,
            **{"key_group": 3, "state": "map", "key": "a", "kind": "changed"},
            **{"user_key_bytes": OWN, "old_value_bytes": OWN},
            "old_value": {"count": None, "map": None},
            "new_value": {**texts, "map": 8},
        },
        {
            **nothing,
            **{"key_group": 3, "state": "text", "key": "a", "kind": "only_there"},
            "new_value": {**texts, "text": "b"},
        },
        {
            **nothing,
            **{"key_group": 3, "state": "timers", "key": "a", "kind": "only_here"},
            **{"namespace": 7, "timestamp": 9},
        },
    ]
    # The bytes of all of a key are those of the entry, where nothing tells where the key ends.
    [whole] = [item for item in differences if item.state == "text"]
    assert isinstance(whole.there, StateEntry)
    whole = whole._replace(there=whole.there._replace(key=None, key_bytes=b"ab"))
    [batch] = layout.batches([whole])
    [row] = batch.to_pylist()
    assert (row["key"], row["key_bytes"], row["new_value"]["text"]) == (None, b"ab", "b")


def test_keys_that_only_the_job_reads_in_columns(tmp_path: Path) -> None:
    """They are binary, in the column of keys."""
    pytest.importorskip("pyarrow")
    from support.inside.columns import difference_layout

    states, secret = [sb.state("count", "VALUE", INTS)], sb.kryo_of("x.Secret")
    old = keyed(tmp_path / "old", states, [(0, b"any\0", sb.i32(1))], secret)
    new = keyed(tmp_path / "new", states, [], secret)
    [batch] = difference_layout(old.operators[0].states, new.operators[0].states).batches(
        old.differences(new)
    )
    [row] = batch.to_pylist()
    assert (row["key"], row["key_bytes"], row["kind"]) == (b"any", None, "only_here")


def test_a_value_that_no_column_holds(tmp_path: Path) -> None:
    """Half of a surrogate pair: the error names state and key group."""
    pytest.importorskip("pyarrow")
    from support.inside.columns import difference_layout

    states = [sb.state("text", "VALUE", TEXT)]
    old = keyed(tmp_path / "old", states, [(0, b"\2a\0", write_string("\ud800"))])
    new = keyed(tmp_path / "new", states, [])
    layout = difference_layout(old.operators[0].states, new.operators[0].states)
    with pytest.raises(InvalidValueError, match="value in state 'text', key group 3: "):
        list(layout.batches(old.differences(new)))


def test_keys_of_another_type(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from support.inside.columns import difference_layout

    keys = [MapStateDescriptor("map", INT, LONG), MapStateDescriptor("map", STRING, LONG)]
    sides = []
    for number, state in enumerate(keys):
        with SavepointWriter(tmp_path / str(number)) as writer:
            sides.append(writer.add_operator("op", DOUBLE, [state], 128, 3).states)
    message = "state 'map' must have the same type of user_key in both savepoints, got INT and STR"
    with pytest.raises(InvalidTypeError, match=message):
        difference_layout(*sides)
    schema = difference_layout(sides[0], []).schema
    assert [str(schema.field(name).type) for name in ("user_key", "old_value", "new_value")] == [
        *("int32", "int64", "string")  # types that are null throughout
    ]
