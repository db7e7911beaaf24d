"""Editors whose work a cluster does: each task is pickled, and each row goes to its subtask."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.real_savepoints import point

from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    SavepointError,
    UnsupportedKeyTypeError,
)
from keygroups.savepoint import (
    DELETE,
    ListStateDescriptor,
    Operator,
    Savepoint,
    SavepointWriter,
    StateEntry,
    ValueStateDescriptor,
    change_max_parallelism,
    read_savepoint,
)
from keygroups.types import INT, LONG, SHORT, STRING

pa: Any = pytest.importorskip("pyarrow")

from support.inside.columns import (  # noqa: E402
    ClusterEditor,
    PartedJob,
    RowsEditor,
    state_query,
    wide_rows_job,
    wide_shapes,
)

HEAP = point("2.3.0-heap-canonical")


class Cluster:
    """Does the work in this process, by pickled functions alone, as other machines would."""

    def __init__(self) -> None:
        self.described: list[str] = []

    def run(self, what: str, tasks: Sequence[Callable[[], Any]]) -> list[Any]:
        self.described.append(what)
        return [pickle.loads(pickle.dumps(task))() for task in tasks][::-1]

    def write(self, what: str, entries: PartedJob, job: Any) -> None:
        self.described.append(what)
        write_rows(batches_of(entries), job)


def batches_of(job: PartedJob) -> list[Any]:
    job = pickle.loads(pickle.dumps(job))
    batches = [batch for part in job.parts for batch in job.run(part)]
    assert {batch.schema for batch in batches} <= {job.schema}
    return batches


def write_rows(batches: Iterable[Any], job: Any) -> None:
    """Give each row to the task of its subtask, as a FilesJob asks for."""
    files = job.files
    rows = pa.Table.from_batches(batches)
    subtasks = [
        group * files.parallelism // files.max_parallelism
        for group in rows["key_group"].to_pylist()
    ]
    for subtask in range(files.parallelism):
        own = rows.filter(pa.array([owner == subtask for owner in subtasks]))
        if job.order:
            own = own.sort_by([(name, "ascending") for name in job.order])
        write = pickle.loads(pickle.dumps(job.write))
        written = write(own.to_batches(max_chunksize=7))
        assert (written is None) == (own.num_rows == 0)
        if written is not None:
            files.add(written)


def contents(savepoint: Savepoint) -> list[list[Any]]:
    """Return the entries of each operator without their places in files."""
    return [sorted(map(str, operator.entries())) for operator in savepoint.operators]


def exclaim(entry: StateEntry) -> Any:
    return entry._replace(key=f"{entry.key}!")


def test_an_edit_is_that_of_one_process(tmp_path: Path) -> None:
    cluster = Cluster()
    with ClusterEditor(HEAP.read(), tmp_path / "a", cluster) as editor:
        editor.operator("by-string").map_entries("count", exclaim)
    with SavepointWriter.from_existing_savepoint(HEAP.read(), tmp_path / "b") as local:
        local.operator("by-string").map_entries("count", exclaim)
    assert contents(editor.savepoint()) == contents(local.savepoint())
    assert editor.report().operators == local.report().operators
    # Edits first, then merges of the entries that moved.
    assert cluster.described == [f"edit_savepoint: by-string, to {tmp_path / 'a'}"] * 2


@pytest.mark.branch
@pytest.mark.long
@pytest.mark.parametrize("size", [1, 16 << 20])
def test_entries_that_only_move_do_so_in_pieces(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each batch of entries by itself, or all at once; the sort of small ones spills."""
    monkeypatch.setattr("keygroups.savepoint._jobs.entry_pieces.TASK_BYTES", size)
    monkeypatch.setattr("keygroups.savepoint._state.writing.spill._HELD", 100 * size)
    cluster = Cluster()
    with ClusterEditor(HEAP.read(), tmp_path / "a", cluster) as editor:
        editor.set_max_parallelism(4096, parallelism=5, operators=["by-string", "by-tuple"])
    change_max_parallelism(HEAP.read(), 4096, tmp_path / "b", 5, ["by-string", "by-tuple"])
    assert contents(editor.savepoint()) == contents(read_savepoint(tmp_path / "b"))
    assert len(cluster.described) == 2


def test_entries_that_change_and_move_are_edited(tmp_path: Path) -> None:
    cluster = Cluster()
    with ClusterEditor(HEAP.read(), tmp_path / "a", cluster) as editor:
        editor.set_max_parallelism(256, operators=["by-string"])
        editor.operator("by-string").map_entries("count", exclaim)
    with SavepointWriter.from_existing_savepoint(HEAP.read(), tmp_path / "b") as local:
        local.set_max_parallelism(256, operators=["by-string"])
        local.operator("by-string").map_entries("count", exclaim)
    assert contents(editor.savepoint()) == contents(local.savepoint())


def test_where_the_savepoint_may_not_be_written() -> None:
    """The argument is named as the functions for Spark name it."""
    saved = HEAP.read()
    for wrong, words in (
        (f"{saved.path}/new", f"output must be outside the savepoint {saved.path}"),
        (5, "output must be a str or a path, got 5"),
    ):
        with pytest.raises((InvalidTypeError, InvalidValueError), match=f"^{words}"):
            ClusterEditor(saved, wrong, Cluster())  # type: ignore[arg-type]  # A user may do so.


# --- rows ---------------------------------------------------------------------------------


def rows_of(operator: Operator, states: Sequence[str]) -> Any:
    """Return the rows of some states as `read_keyed_state` gives them."""
    query = state_query.StateQuery(operator, states[0] if len(states) == 1 else None)
    return pa.Table.from_batches(batches_of(query.job(None)), query.schema)


def write_states(
    path: Path, states: Sequence[str] | None, rows: Any, source: Savepoint | None = None
) -> RowsEditor:
    editor = RowsEditor(source or HEAP.read(), path, "by-string", states)
    fields: dict[str, dict[str, int | None]] = {}
    for name, _, _, types in editor.columns:
        field = rows.schema.field(name).type
        own = not pa.types.is_struct(field)
        fields[name] = {state: None if own else field.get_field_index(state) for state in types}
    job = editor.rows_job(fields, True)
    encode = pickle.loads(pickle.dumps(job.encode))
    batches = [*encode(rows.select([*fields]).to_batches())]
    assert {batch.schema for batch in batches} <= {job.files.schema}
    kept = editor.kept_entries()
    with editor:
        write_rows([*batches, *(batches_of(kept) if kept else [])], job.files)
        missing = editor.missing_entries()
        for batch in batches_of(missing) if missing else ():
            editor.refuse(batch["heads"][0].as_py())
    return editor


def test_rows_of_some_states_and_the_others_as_they_were(tmp_path: Path) -> None:
    operator = HEAP.read().operator("by-string")
    editor = write_states(tmp_path / "new", ["count"], rows_of(operator, ["count"]).slice(1))
    new = editor.savepoint().operator("by-string")
    old_counts, counts = ([*one.entries(["count"])] for one in (operator, new))
    assert len(counts) == len(old_counts) - 1
    others = [state.name for state in operator.states if state.name != "count"]
    assert len(others) > 3
    assert sorted(map(str, new.entries(others))) == sorted(map(str, operator.entries(others)))
    assert editor.what == f"write_keyed_state: by-string, to {tmp_path / 'new'}"


def written(path: Path, names: Sequence[str]) -> Savepoint:
    """Write a savepoint with an entry in each of some states of an operator, by-string."""
    with SavepointWriter(path) as writer:
        states = [ValueStateDescriptor(name, LONG) for name in names]
        operator = writer.add_operator("by-string", STRING, states, 128, 2, sort=True)
        for number, name in enumerate(names):
            operator.write(name, f"key {number}", number)
    return writer.savepoint()


def test_rows_of_all_states_have_to_be_there(tmp_path: Path) -> None:
    source = written(tmp_path / "old", ["a", "b"])
    rows = rows_of(source.operator("by-string"), ["a", "b"])
    editor = write_states(tmp_path / "whole", None, rows, source)
    assert contents(editor.savepoint()) == contents(source)
    is_b = pa.compute.equal(rows["state"], "b")
    with pytest.raises(InvalidValueError, match=r"rows of all states of .* got none of 'a'"):
        write_states(tmp_path / "some", None, rows.filter(is_b), source)
    assert not (tmp_path / "some").exists()
    # Rows of one state alone may be none: that is what they were meant to be.
    none = write_states(
        tmp_path / "none", ["a"], rows_of(source.operator("by-string"), ["a"])[:0], source
    )
    assert none.missing_entries() is None
    assert editor.missing_entries() is None
    assert [entry.state for entry in none.savepoint().operator("by-string").entries()] == ["b"]
    # A state that has no entries needs no rows.
    with SavepointWriter.from_existing_savepoint(source, tmp_path / "emptied") as emptied:
        emptied.operator("by-string").map_entries("a", lambda entry: DELETE)
    write_states(tmp_path / "some", None, rows.filter(is_b), emptied.savepoint())


@pytest.mark.parametrize(
    ("operator", "states", "message"),
    [
        ("src-by-string", None, "operator must be one with keyed state, got 'src-by-string'"),
        ("by-string", [], "states must be at least one, got none"),
        ("by-string", ["x"], "states must be of by-string"),
        ("x", None, "must be"),
    ],
)
def test_operators_without_rows(
    operator: str, states: list[str] | None, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidValueError, match=message):
        RowsEditor(HEAP.read(), tmp_path / "new", operator, states)


def test_an_operator_with_subtasks_that_are_finished(tmp_path: Path) -> None:
    finished = sb.i32(-1)  # the first subtask
    folder = sb.write(tmp_path / "old", [sb.operator([finished], parallelism=2, uid="a")])
    with pytest.raises(SavepointError, match="subtasks that are finished"):
        RowsEditor(read_savepoint(folder), tmp_path / "new", "a", None)


# --- wide rows ----------------------------------------------------------------------------


def test_the_shapes_of_a_state() -> None:
    """A list is a column of its elements or of arrays; a map two columns, or one of maps."""
    (value,) = wide_shapes("n", LONG)
    assert (value.value, value.user_key) == (pa.int64(), None)
    elements, arrays = wide_shapes("l", STRING, is_list=True)
    assert (elements.value, arrays.value) == (pa.string(), pa.list_(pa.string()))
    assert (elements.columns.is_element, arrays.columns.is_array) == (True, True)
    (pairs,) = wide_shapes("m", LONG, user_key_type=INT)
    assert (pairs.value, pairs.user_key) == (pa.int64(), pa.int32())
    assert pairs.at(3, 4)[:5] == ("m", 3, LONG, 4, INT)
    (maps,) = wide_shapes("m", LONG, user_key_type=SHORT, is_map=True)
    assert (maps.value, maps.user_key) == (pa.map_(pa.int16(), pa.int64()), None)
    assert maps.at(3).is_map


@pytest.mark.branch
@pytest.mark.long
def test_wide_rows_become_files(tmp_path: Path) -> None:
    """Elements of a list come in any order, and lie in that of their bytes."""
    with SavepointWriter(tmp_path / "s") as writer:
        states = [ValueStateDescriptor("n", LONG), ListStateDescriptor("l", STRING)]
        operator = writer.add_operator("by-key", STRING, states, 128, 3)
        columns = [
            wide_shapes("n", LONG)[0].at(3),
            wide_shapes("l", STRING, is_list=True)[0].at(4),
        ]
        job = wide_rows_job("by-key", operator, STRING, False, columns)
        keys = ["A", "B", "A", "A"]
        groups = [operator.key_group(key) for key in keys]
        rows = {
            "c0": pa.array(groups, pa.int32()),
            "c1": pa.array(keys),
            "c2": pa.nulls(4, pa.int64()),
            "c3": pa.array([5, None, None, None]),
            "c4": pa.array(["z", "b", "y", "x"]),
        }
        batches = [*job.encode([pa.record_batch([*rows.values()], [*rows])])]
        write_rows(batches, job.files)
    entries = writer.savepoint().operator("by-key").entries()
    assert sorted((one.state, one.key, one.value) for one in entries) == [
        ("l", "A", ["x", "y", "z"]),
        ("l", "B", ["b"]),
        ("n", "A", 5),
    ]


# --- keys that are sought -----------------------------------------------------------------


def test_keys_that_are_sought() -> None:
    savepoint = HEAP.read()
    query = state_query.StateQuery(savepoint.operator("by-string"), "count")
    assert query.reader.layout.states == ["count"]
    assert query.sought_type() == STRING
    assert query.sought_keys(["b", "a", "b"]) == ["b", "a"]
    with pytest.raises(InvalidTypeError, match="key"):
        query.sought_keys(["b", 5])
    for name, has in (("by-tuple", "keys of TUPLE"), ("src-by-string", "no keyed state")):
        with pytest.raises(UnsupportedKeyTypeError, match=f"keys must be None .* has {has}"):
            state_query.StateQuery(savepoint.operator(name)).sought_type()
