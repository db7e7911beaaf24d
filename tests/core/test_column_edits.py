"""Keys deleted, states renamed and times to live set by columns, against entry by entry.

What comes of single entries is held to Flink's own restores elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.all_states import TIME, write_all, write_timed
from support.bytes.column_forms import canonical
from support.bytes.damaged_files import damages
from support.bytes.framed_entries import framed_texts
from support.bytes.real_savepoints import point
from support.inside.savepoints import edit_task, spill

from keygroups import InvalidValueError, KeyGroupsError, assign_to_key_group
from keygroups.savepoint import (
    EditReport,
    SavepointEditor,
    SavepointWriter,
    read_savepoint,
)
from keygroups.state_keys import BYTES
from keygroups.types import DOUBLE, LOCAL_DATE, LONG, STRING, TUPLE, KeyType

pytest.importorskip("pyarrow")

Edit = Callable[[SavepointEditor], None]
Outcome = tuple[Any, Any]
Both = Callable[[Any, Edit], tuple[Outcome, Outcome]]


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Both:
    """Return a function to what comes of an edit by columns, and what entry by entry."""
    counted = iter(range(1_000))
    by_columns = []
    run = edit_task.EditTask._run_by_columns

    def noted(task: edit_task.EditTask) -> Any:
        by_columns.append(run(task))
        return by_columns[-1]

    monkeypatch.setattr(edit_task.EditTask, "_run_by_columns", noted)

    def outcome(old: Any, edit: Edit, least: int) -> Outcome:
        monkeypatch.setattr(edit_task, "LEAST_OF_COLUMNS", least)
        folder = tmp_path / f"new-{next(counted)}"
        try:
            with SavepointWriter.from_existing_savepoint(old, folder) as editor:
                edit(editor)
        except KeyGroupsError as error:
            return type(error), str(error).replace(str(folder), "")
        return framed_texts(folder), edited(editor.report())

    def outcomes(old: Any, edit: Edit) -> tuple[Outcome, Outcome]:
        by_columns.clear()
        first = outcome(old, edit, 0)
        if not isinstance(first[0], type):
            has_columns = sys.modules["numpy"] is not None
            assert by_columns
            assert all((edited is not None) is has_columns for edited in by_columns)
        return first, outcome(old, edit, 1 << 62)

    return outcomes


def edited(report: EditReport) -> Any:
    return [(one.states, repr(one.deleted_keys)) for one in report.operators]


KEYS: dict[KeyType, list[Any]] = {
    LONG: [0, -1, 2**63 - 1, -(2**63), *range(1, 90)],
    STRING: ["", "a", "\u00e9", "x" * 300, *(f"user-{n}" for n in range(90))],
    TUPLE(STRING, LONG): [(f"user-{n}", n) for n in range(40)],
    DOUBLE: [0.0, -0.0, 1.5, float("nan"), *map(float, range(1, 40))],
}


@pytest.mark.parametrize("key_type", KEYS, ids=repr)
def test_keys_of_each_type(key_type: KeyType, tmp_path: Path, both: Both) -> None:
    """Some that are there and one that is not, once more, and a state renamed beside them."""
    keys = KEYS[key_type]
    write_all(tmp_path / "old", key_type, 128, keys[:-1])

    def edit(editor: SavepointEditor) -> None:
        operator = editor.operator("by-key")
        operator.delete_keys(keys[::3])
        operator.rename_state("count", "number")
        operator.delete_keys([keys[1], keys[-1]])

    by_columns, by_entries = both(tmp_path / "old", edit)
    assert by_columns == by_entries
    assert len(by_columns[0][0]) > len(keys)


SETS: dict[str, list[tuple[Any, ...]]] = {
    "given": [("count", True, TIME), ("cities", True, TIME), ("plain", True, TIME)],
    "taken": [("number", False), ("names", False), ("longs", False), ("tags", False)],
    "others": [("number", True, TIME - 1), ("names", True, TIME - 1), ("longs", True, TIME - 1)],
    "the same": [("number", True, TIME), ("names", True, TIME), ("tags", True, TIME)],
    "given and taken": [("count", True, TIME), ("count", False), ("plain", True, TIME)],
    "of a mean": [("mean", True, TIME)],
}


@pytest.mark.parametrize("sets", SETS.values(), ids=SETS)
def test_times_to_live(sets: list[tuple[Any, ...]], tmp_path: Path, both: Both) -> None:
    """Before and after keys are deleted, and beside a state that is renamed."""
    write_timed(tmp_path / "old")

    def edit(editor: SavepointEditor) -> None:
        operator = editor.operator("by-key")
        operator.delete_keys([3, 4])
        for name, *others in sets:
            operator.set_ttl(name, *others)
        operator.delete_keys([5, 6, 41])
        if sets[0][0] == "count":
            operator.rename_state("count", "n")

    by_columns, by_entries = both(tmp_path / "old", edit)
    assert by_columns == by_entries
    assert len(by_columns[0][0]) == 36 * 8


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("MAP", b"\1"),  # a null, which a Long has no bytes for after a time
        ("MAP", b""),
        ("VALUE", b"\1"),  # less than a time
        ("LIST", sb.i64(1, 5) + b";" + sb.i64(1, 5)),
    ],
)
def test_values_that_get_no_other_time(
    kind: str, value: bytes, tmp_path: Path, both: Both
) -> None:
    """What is refused, and what passes, is the same."""
    timed, text = sb.ttl_of(sb.simple("Long")), sb.simple("String")
    snapshots = {"MAP": sb.map_of(text, timed), "LIST": sb.list_of(timed)}
    state = sb.state("s", kind, snapshots.get(kind, timed))
    entries = [(sb.i64(1) + b"\0" + (b"\2a" if kind == "MAP" else b""), value)]
    operator = canonical(tmp_path / "old", sb.simple("Long"), state, entries)
    by_columns, by_entries = both(
        operator._files.base,
        lambda editor: editor.operator(operator.operator_id).set_ttl("s", True, TIME),
    )
    assert by_columns == by_entries


@pytest.mark.parametrize("key_type", [*KEYS, LOCAL_DATE, TUPLE(STRING, LOCAL_DATE)], ids=repr)
def test_keys_that_are_decoded_together(key_type: KeyType, tmp_path: Path) -> None:
    """Those of scalars and of tuples of some; each other one is decoded where it is needed."""
    day = date(2024, 2, 29)
    keys = KEYS.get(key_type) or ([day] if key_type == LOCAL_DATE else [("a", day)])
    write_all(tmp_path / "old", key_type, 128, keys)
    operator = read_savepoint(tmp_path / "old").operator("by-key")
    for task in operator.tasks():
        own: dict[str, list[Any]] = {}
        for entry in task.entries():
            own.setdefault(entry.state, []).append(entry.key)
        for entries in task.framed_columns():
            column = entries.columns.get("key")
            assert (column is not None) is (key_type in KEYS)
            if column is not None:
                found = [
                    tuple(key.values()) if isinstance(key, dict) else key
                    for key in column.to_pylist()
                ]
                assert list(map(repr, found)) == list(map(repr, own.pop(entries.state.name)))


@pytest.mark.parametrize("name", ["2.3.0-rockschurn-native", "2.3.0-heap-canonical"])
def test_recorded_points(name: str, both: Both) -> None:
    """Every operator with a key of its own, of types that Arrow has and has not."""
    saved = point(name)

    def edit(editor: SavepointEditor) -> None:
        for operator in saved.read().operators:
            first = next((e for e in operator.entries() if e.key_bytes is None), None)
            if first is not None:
                editor.operator(operator.operator_id).delete_keys([first.key])

    by_columns, by_entries = both(saved.read(), edit)
    assert by_columns == by_entries


@pytest.mark.parametrize(
    ("name", "has_columns"),
    [
        ("2.3.0-heap-canonical", True),
        ("2.3.0-rocksinc-native", True),
        ("2.3.0-rocksresc-checkpoint", True),  # Tasks have several handles.
        ("2.3.0-heaptimers-checkpoint", False),  # Raw timers are beside them.
        ("2.3.0-heap-native", True),
        ("2.3.0-changelog-checkpoint", False),
    ],
)
def test_formats_with_columns_of_their_own(name: str, has_columns: bool) -> None:
    """Elsewhere entries are read one by one, and columns would take longer."""
    operators = [operator for operator in point(name).read().operators if operator.states]
    tasks = [task for operator in operators for task in operator.tasks()]
    assert tasks
    assert {task.format.has_framed_columns for task in tasks} == {has_columns}


def test_all_keys_of_a_subtask(tmp_path: Path, both: Both) -> None:
    write_all(tmp_path / "old", LONG, 128, [1, 2])
    by_columns, by_entries = both(
        tmp_path / "old", lambda editor: editor.operator("by-key").delete_keys([1, 2])
    )
    assert by_columns == by_entries
    assert by_columns[0] == [[]]


def test_text_that_arrow_does_not_hold(tmp_path: Path, both: Both) -> None:
    """Java has text with half a surrogate pair, and so may keys that are to go."""
    write_all(tmp_path / "old", STRING, 128, ["a", "b", "\ud800"])
    by_columns, by_entries = both(
        tmp_path / "old", lambda editor: editor.operator("by-key").delete_keys(["\ud800", "b"])
    )
    assert by_columns == by_entries
    write_all(tmp_path / "others", STRING, 128, ["a", "b"])
    by_columns, by_entries = both(
        tmp_path / "others",
        lambda editor: editor.operator("by-key").delete_keys(["\ud800", "b"]),
    )
    assert by_columns == by_entries
    assert "without_entries=('\\ud800',)" in by_columns[1][0][1]


def test_keys_without_a_hash(tmp_path: Path, both: Both) -> None:
    """Arrays, which Java hashes by identity, may be in any key group."""
    entries = [(sb.i32(1) + bytes([number]) + b"\0", sb.i64(number)) for number in range(5)]
    state = sb.state("s", "VALUE", sb.simple("Long"))
    operator = canonical(tmp_path / "old", BYTES.snapshot_bytes()[4:], state, entries)
    by_columns, by_entries = both(
        operator._files.base,
        lambda editor: editor.operator(operator.operator_id).delete_keys([b"\1", b"\7"]),
    )
    assert by_columns == by_entries
    assert len(by_columns[0][0]) == 4


def test_a_state_that_is_renamed(tmp_path: Path, both: Both) -> None:
    write_all(tmp_path / "old", LONG, 128, KEYS[LONG])
    by_columns, by_entries = both(
        tmp_path / "old", lambda editor: editor.operator("by-key").rename_state("count", "n")
    )
    assert by_columns == by_entries
    assert len(by_columns[0][0]) > len(KEYS[LONG])


def test_damaged_files(tmp_path: Path, both: Both) -> None:
    """What is refused is refused in the same words, which name the first damaged entry."""
    write_all(tmp_path / "old", STRING, 128, KEYS[STRING][:6])
    path = max((tmp_path / "old").iterdir(), key=lambda path: path.stat().st_size)
    content = path.read_bytes()
    refused = 0
    for _, data in [*damages(content, content.rindex(b"VoidNamespace"))][::300]:
        path.write_bytes(data)
        by_columns, by_entries = both(
            tmp_path / "old", lambda editor: editor.operator("by-key").delete_keys(["a"])
        )
        assert by_columns == by_entries
        refused += isinstance(by_columns[0], type)
    assert refused


def test_a_key_that_is_there_twice(tmp_path: Path, both: Both) -> None:
    """It is refused in the same words."""
    key_group = assign_to_key_group("a", 128)
    entry = bytes([key_group]) + b"\2a\0", sb.i64(5)
    header = sb.keyed_header(sb.simple("String"), [sb.state("n", "VALUE", sb.simple("Long"))])
    stream = sb.inline(header + sb.canonical_key_group([(0, [entry, entry])]))
    task = sb.subtask(managed_keyed=sb.canonical(key_group, [len(header)], stream))
    sb.write(tmp_path / "old", [sb.operator([task], uid="op")])
    by_columns, by_entries = both(
        tmp_path / "old", lambda editor: editor.operator("op").rename_state("n", "m")
    )
    assert by_columns == by_entries
    twice = "each key must come once, got key 'a' in state 'm' twice"
    assert by_columns == (InvalidValueError, twice)


@pytest.mark.parametrize(("held", "is_spilled"), [(1_000, True), (1 << 30, False)])
def test_more_than_memory_holds(
    held: int, is_spilled: bool, tmp_path: Path, both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes to files, and what memory holds does not."""
    write_all(tmp_path / "old", LONG, 128, KEYS[LONG])
    monkeypatch.setattr(spill, "_HELD", held)
    written = Mock(wraps=spill.Sorter._new_run)
    monkeypatch.setattr(spill.Sorter, "_new_run", lambda sorter: written(sorter))
    by_columns, by_entries = both(
        tmp_path / "old", lambda editor: editor.operator("by-key").delete_keys(range(1, 50))
    )
    assert by_columns == by_entries
    assert bool(written.call_count) is is_spilled


def test_without_numpy(tmp_path: Path, both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    write_all(tmp_path / "old", LONG, 128, [1, 2, 3])
    monkeypatch.setitem(sys.modules, "numpy", None)
    by_columns, by_entries = both(
        tmp_path / "old", lambda editor: editor.operator("by-key").rename_state("count", "n")
    )
    assert by_columns == by_entries
