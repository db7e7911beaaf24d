"""What a notebook shows of the library's objects: short, escaped, and as pandas' DataFrames."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from support.bytes.real_savepoints import point
from support.bytes.sample_savepoints import written_folder
from support.html_tables import shown
from support.inside.answers import date_text
from support.inside.savepoints import labels_of

from keygroups import KeyGroupLoad, KeyGroupsError, RescalePlan, trace_key
from keygroups.job import Job, SubtaskReads, Vertex
from keygroups.load import Recommendations
from keygroups.reports import RescaleReport
from keygroups.savepoint import (
    EditedOperator,
    EditedState,
    EditReport,
    SavepointWriter,
    WrittenState,
    change_max_parallelism,
    operator_reports,
    read_savepoint,
)

LOAD = KeyGroupLoad(8, [5, 1, 1, 1, 0, 1, 2, 1])
PLAN = RescalePlan(8, 2, 3)  # [0, 3] and [4, 7] become [0, 2], [3, 5] and [6, 7]
PLAN_OF_10 = RescalePlan(10, 3, 4)
PIECES = [(0, 0, 0, 2, False), (0, 1, 3, 3, True), (1, 1, 4, 5, False), (1, 2, 6, 7, True)]


def test_trace() -> None:
    trace = trace_key("<b>&", 128, 3)
    assert repr(trace).startswith("<KeyTrace: '<b>&' as STRING, key group ")
    cells = shown(trace)
    assert cells.rows[:2] == [["step", "result"], ["key", "'<b>&' as STRING"]]
    assert [row[0] for row in cells.rows[1:]] == [
        line[:11].rstrip() for line in str(trace).splitlines()
    ]


def test_load_is_short_however_many_key_groups() -> None:
    load = KeyGroupLoad(32768, {7: 3, 9: 1.5})
    assert repr(load) == "<KeyGroupLoad: 4.5 in 2 of 32,768 key groups>"
    cells = shown(load)
    assert cells.paragraphs == ["KeyGroupLoad: 4.5 in 2 of 32,768 key groups"]
    assert cells.captions == ["The heaviest key groups"]
    assert cells.rows[:3] == [
        ["key group", "weight", "share"],
        ["7", "3", "66.7%"],
        ["9", "1.5", "33.3%"],
    ]
    assert len(cells.rows) == 11
    assert shown(KeyGroupLoad(1, [0])).rows[1] == ["0", "0", "0.0%"]


def test_plan() -> None:
    cells = shown(PLAN)
    assert cells.paragraphs == ["8 key groups, parallelism 2 -> 3: 3 move (37.5%), 5 stay"]
    assert [line.split() for line in str(PLAN).splitlines()[2:]] == [
        " ".join(row).split() for row in cells.rows[1:]
    ]
    long = shown(RescalePlan(32768, 1000, 1024))
    assert len(long.rows) == 41
    pieces = len(list(RescalePlan(32768, 1000, 1024)))
    assert long.captions[0].endswith(f"; pieces left out in the middle: {pieces - 40}")
    assert long.rows[-1][0] == "1023"


def test_table_of_a_plan_with_a_limit() -> None:
    plan = RescalePlan(128, 24, 36)
    pieces = len(list(plan))
    assert len(plan.table(limit=None).splitlines()) == 2 + pieces
    assert len(plan.table(limit=pieces).splitlines()) == 2 + pieces
    few = plan.table(limit=5).splitlines()
    assert len(few) == 2 + 5 + 1
    assert few[5] == f"... {pieces - 5} more in between ..."
    assert few[6:] == plan.table(limit=None).splitlines()[-2:]
    with pytest.raises(KeyGroupsError, match="limit must be from 2 to"):
        plan.table(limit=1)


def test_rescale_report() -> None:
    report = RescaleReport(PLAN, LOAD)
    cells = shown(report)
    assert "weight: 4 of 12 moves (33.3%)" in cells.paragraphs
    assert "hot subtask after: 0 of 3 has 7, 58.3% of the weight" in cells.paragraphs
    assert [row[:3] for row in cells.rows[-2:]] == [["4", "6", "2.00"], ["3", "7", "1.75"]]
    assert "imbalance: 1.33 before, 1.75 after" in cells.paragraphs
    assert [row[4] for row in cells.rows[1:5]] == ["7", "1", "1", "3"]


def test_recommendations() -> None:
    found = LOAD.recommend(2, 3)
    assert isinstance(found, Recommendations)
    assert [row[0] for row in shown(found).rows] == ["parallelism", "3", "2"]


@pytest.mark.extras
def test_pandas() -> None:
    pytest.importorskip("pandas")
    assert LOAD.to_pandas().to_dict("list") == {
        "key_group": list(range(8)),
        "weight": list(LOAD.weights),
    }
    columns = ["old_subtask", "new_subtask", "first_key_group", "last_key_group", "moves"]
    plan = PLAN.to_pandas()
    assert list(plan.columns) == columns
    assert list(plan.itertuples(index=False, name=None)) == PIECES
    assert list(RescaleReport(PLAN, LOAD).to_pandas()["weight"]) == [7, 1, 1, 3]
    trace = trace_key("hello", 128, 3)
    [row] = trace.to_pandas().to_dict("records")
    assert (row["key"], row["key_group"], row["subtask"]) == ("hello", 35, 0)
    assert LOAD.recommend(2, 3).to_pandas()["heaviest_weight"].to_list() == [7, 8]


def test_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(KeyGroupsError, match="to_pandas needs pandas: pip install pandas"):
        LOAD.to_pandas()


def test_job() -> None:
    reads = tuple(SubtaskReads(i, "RUNNING", count, None) for i, count in enumerate((90, 10)))
    vertex = Vertex("0" * 32, "<b>by-user", "RUNNING", 2, 128, True, reads)
    job = Job("http://localhost", "1" * 32, "clicks", "RUNNING", (vertex,))
    cells = shown(job)
    assert cells.paragraphs == [f"clicks, RUNNING, job {'1' * 32}"]
    assert cells.rows == [
        ["vertex", "parallelism", "max", "records read", "bytes read", "input"],
        ["<b>by-user", "2", "128", "100", "?", "keyed"],
    ]
    cells = shown(job.skew(vertex))
    assert cells.paragraphs[0] == (
        "<b>by-user: uneven keys: the heaviest of 2 subtasks has 1.80 times the mean"
    )
    assert cells.paragraphs[1].startswith("remedy: 128 key groups at this parallelism")
    assert cells.rows == [
        ["subtask", "records", "share", "x mean", "bytes", "key groups", ""],
        ["0", "90", "90.0%", "1.80", "?", "0-63", "hot"],
        ["1", "10", "10.0%", "0.20", "?", "64-127", ""],
    ]


def test_hot_rows_are_marked_by_a_word() -> None:
    """A tint lets the page shine through, so it reads on a light and on a dark one."""
    found = shown(KeyGroupLoad(8, [9, 1, 1, 1, 1, 1, 1, 1]).recommend(1, 4))
    # 16 in all: the heaviest has 16, 12, 11 and 10 at 1 to 4.
    assert [row[:3] for row in found.rows[1:]] == [
        ["4", "10", "2.50"],
        ["3", "11", "2.06"],
        ["2", "12", "1.50"],
        ["1", "16", "1.00"],
    ]
    assert [row[0] for row in found.marked] == ["4", "3", "2"]
    assert found.words == ["hot"] * 3
    assert "hot: 1.5 times the mean and more" in found.captions[0]
    html = KeyGroupLoad(8, [9, 1, 1, 1, 1, 1, 1, 1]).recommend(1, 4)._repr_html_()
    assert re.findall('<th scope="row"[^>]*>([^<]*)', html) == ["4 ", "3 ", "2 ", "1"]
    assert set(re.findall('color|background:[^;"]*', html)) == {"background:rgba(214,90,49,.2)"}


@pytest.mark.parametrize(
    "value",
    [trace_key("a", 128, 3), LOAD, PLAN, LOAD.recommend(2, 3), RescaleReport(PLAN, LOAD)],
    ids=lambda value: type(value).__name__,
)
def test_the_first_cell_of_a_row_is_its_heading(value: Any) -> None:
    html = value._repr_html_()
    rows = html.count("<tr") - html.count("<thead>")
    assert len(re.findall('<tr[^>]*><th scope="row"', html)) == html.count('scope="row"') == rows


def test_comparison_with_modulo() -> None:
    """As in the example of Flink's blog, where 14 of 20 keys move by modulo, and 10 otherwise."""
    compared = shown(PLAN_OF_10.compare_with_modulo(range(20), scramble=lambda code: code))
    assert compared.paragraphs == ["20 in all, parallelism 3 -> 4"]
    assert compared.rows[:2] == [
        ["measure", "hash % parallelism", "10 key groups"],
        ["change subtask", "14 (70.0%)", "10 (50.0%)"],
    ]


@pytest.mark.parametrize(
    ("value", "sides"),
    [
        (trace_key("a", 8, 2), "ll"),
        (LOAD, "lrr"),
        (LOAD.recommend(2, 3), "lrrl"),
        (PLAN, "lrrrr"),
        (PLAN_OF_10.compare_with_modulo(range(20)), "lrr"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_names_a_row_and_texts_are_on_the_left(value: object, sides: str) -> None:
    found = shown(value)
    styles = [style for name, style in found.attributes if "text-align" in style]
    assert "".join(style[len("text-align:")] for style in styles) == sides * len(found.rows)


def test_savepoint_and_operators() -> None:
    """A real one: the rows are those of the text."""
    found = read_savepoint(point("2.3.0-heap-canonical").path)
    page = shown(found)
    lines = str(found).splitlines()
    assert page.paragraphs == [lines[0], lines[-1]]
    assert [" ".join(row) for row in page.rows] == [" ".join(line.split()) for line in lines[1:-1]]
    assert [row[0] for row in page.marked] == ["session", "tumbling", "by-long"]
    assert page.captions == [
        "Operators; hot: the heaviest subtask has 1.5 times the mean and more"
    ]
    assert page.left == ["operator"]
    operator = found.operator("session")
    of_operator = shown(operator)
    assert of_operator.paragraphs[0].startswith("uid session, name EventTimeSessionWindows, id ")
    assert of_operator.paragraphs[1] == "parallelism 3, max parallelism 128, 12,467 bytes"
    assert of_operator.captions == [
        "Subtasks, with the headers in their files; hot: 1.5 times the mean and more",
        "Keyed states",
    ]
    assert of_operator.rows[0] == ["subtask", "key groups", "bytes", "x mean", "finished"]
    assert of_operator.left == [of_operator.rows[0][0], *of_operator.rows[4]]  # all of a state
    by_bytes = sorted(operator.subtasks, key=lambda subtask: -subtask.bytes)
    assert of_operator.rows[1:4] == [
        [
            str(subtask.subtask_index),
            str(subtask.key_groups),
            f"{subtask.bytes:,}",
            f"{subtask.bytes * 3 / 12_467:.2f}",
            "",
        ]
        for subtask in by_bytes
    ]
    assert [row[:2] for row in of_operator.rows[5:]] == [
        [state.name, "timers" if state.kind == "PRIORITY_QUEUE" else state.kind]
        for state in operator.states
    ]
    without = shown(found.operator("bc-left")).rows  # 417, 383 and 419 bytes are its own
    assert [row[1:3] for row in without[1:4]] == [["", "419"], ["", "417"], ["", "383"]]
    assert without[-1][0] == "state"
    empty = shown(found.operators[0])  # no bytes, and so no mean
    assert [row[2:] for row in empty.rows[1:4]] == [["0", "1.00", ""]] * 3
    assert empty.marked == []
    by_string = found.operator("by-string")
    states = shown(by_string).rows[-len(by_string.states) :]
    assert [row[-1] for row in states] == ["yes" * state.has_ttl for state in by_string.states]
    assert "yes" in [row[-1] for row in states]
    extra = read_savepoint(point("2.3.0-extraheap-checkpoint").path)
    half = extra.operator("src-half-finished")  # one of whose subtasks is
    assert [row[-1] for row in shown(half).rows[:2]] == ["finished", "yes"]


def test_many_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("_operator_tables", "_savepoint"):
        monkeypatch.setattr(f"keygroups.savepoint.{module}.MOST_SHOWN", 2)
    found = read_savepoint(point("2.3.0-heap-canonical").path)
    subtasks = shown(found.operator("session"))
    assert subtasks.captions[0].endswith("; the 2 with the most bytes, 1 others are left out")
    assert len(subtasks.rows) - len(found.operator("session").states) == 1 + 2 + 1
    page = shown(found)
    assert [row[0] for row in page.rows] == ["operator", "by-string", "by-tuple"]
    assert page.captions[0].endswith("; the 2 with the most bytes, 23 others are left out")


def test_operator_whose_files_are_gone(tmp_path: Path) -> None:
    """What `_metadata` says is shown, and why there is no more."""
    made = tmp_path / "made"
    shutil.copytree(point("2.3.0-files-canonical").path, made)
    for file in made.iterdir():
        if file.name != "_metadata":
            file.unlink()
    operator = read_savepoint(made).operator("by-long")
    page = shown(operator)
    assert page.paragraphs[0].startswith("uid by-long")
    assert "its keyed states cannot be read: " in page.paragraphs[-1]


def test_report_of_an_operator() -> None:
    found = read_savepoint(point("2.3.0-heap-canonical").path)
    [report] = operator_reports(found, ["by-long"], top=2)
    page = shown(report)
    assert page.captions[1:3] == [
        "The key groups with the most bytes of keyed state",
        "The keys with the most bytes of keyed state",
    ]
    assert ["key group", "subtask", "bytes", "share"] in page.rows
    assert ["key", "key group", "subtask", "entries", "bytes"] in page.rows
    heaviest = [row for row in page.rows if len(row) == 4 and row[0].isdigit()][:2]
    assert report.key_group_bytes is not None
    assert [[int(row[0]), row[2]] for row in heaviest] == [
        [group, f"{report.key_group_bytes.weights[group]:,}"]
        for group in report.heaviest_key_groups
    ]
    keys = [
        row
        for row in page.rows
        if len(row) == 5 and row[0] in [repr(key.key) for key in report.heaviest_keys]
    ]
    assert [row[3:] for row in keys] == [
        [f"{key.entries:,}", f"{key.bytes:,}"] for key in report.heaviest_keys
    ]
    assert "parallelism 3 -> 4" in " ".join(page.paragraphs)


def test_report_of_another_max_parallelism(tmp_path: Path) -> None:
    report = change_max_parallelism(written_folder(), 256, tmp_path / "new")
    page = shown(report)
    text = str(report).splitlines()
    assert page.paragraphs == [text[0], text[-1]]
    assert text[0] == f"savepoint: {tmp_path / 'new'}"
    assert repr(report) == f"<EditReport: 1 operators, {tmp_path / 'new'}>"
    change = "written anew, max parallelism 128 -> 256"
    [operator] = report.operators
    assert page.rows[:2] == [["operator", "change"], [operator.operator, change]]
    assert text[1] == f"{operator.operator}: {change}"
    assert page.captions == ["The operators", f"What was written of {operator.operator}"]
    assert page.rows[2] == ["state", "entries", "bytes", "subtasks"]
    assert [f"  {state}: {entries} entries, {size} bytes, in {subtasks} subtasks"
            for state, entries, size, subtasks in page.rows[3:]] == text[2:-1]  # fmt: skip
    assert len(text) > 3


def test_report_of_an_operator_without_keyed_state() -> None:
    operator = EditedOperator(
        "src", "src", "/old", old_max_parallelism=128, new_max_parallelism=64
    )
    report = EditReport("/new", (operator,))
    page = shown(report)
    change = "copied as it is, max parallelism 128 -> 64"
    assert str(report).splitlines() == ["savepoint: /new", f"src: {change}"]
    assert page.paragraphs == ["savepoint: /new"]
    assert page.rows[1:] == [["src", change]]


def test_report_lists_what_was_edited_of_an_operator_that_was_written_anew() -> None:
    """Of one that was not, it lists all states; a state that is as it was is else seen twice."""
    same = EditedState("same", "same", 5, 0, 0, 0)
    edited = (
        EditedState("changed", "changed", 5, 1, 0, 0),
        EditedState("deleted", "deleted", 5, 0, 1, 0),
        EditedState("added", "added", 5, 0, 0, 1),
        EditedState("renamed", "other", 5, 0, 0, 0),
        EditedState("removed", None, None, None, None, None),
    )
    written = tuple(WrittenState(state.state, 0, 5, 40) for state in (same, *edited[:3]))
    kept = EditedOperator("a", "a", "/old", states=(same, *edited))
    anew = EditedOperator("a", "a", "/old", states=(same, *edited), written=written)
    for operator, listed in ((kept, (same, *edited)), (anew, edited)):
        rows = [row for row in shown(EditReport("/new", (operator,))).rows if len(row) == 6]
        assert [row[0] for row in rows[1:]] == [state.state for state in listed]
        lines = [
            line for line in str(operator).splitlines() if "kept" in line or "removed" in line
        ]
        assert len(lines) == len(listed)
    only_same = EditedOperator("a", "a", "/old", states=(same,), written=written[:1])
    assert str(only_same).splitlines() == [
        "a: written anew",
        "  same: 5 entries, 40 bytes, in 1 subtasks",
    ]


def test_report_of_an_edit(tmp_path: Path) -> None:
    with SavepointWriter.from_existing_savepoint(written_folder(), tmp_path / "new") as writer:
        editor = writer.operator("by-int")
        editor.remove_state("tags")
        editor.remove_state("cities")  # whose user keys are Strings, which could be a key
        editor.rename_state("count", "number")
        editor.delete_keys([1, 10**6])
    report = writer.report()
    page = shown(report)
    assert page.rows[:2] == [["operator", "change"], ["by-int", "its state changed"]]
    assert page.rows[2] == ["state", "becomes", "kept", "changed", "deleted", "added"]
    states = {row[0]: row for row in page.rows if len(row) == 6}
    assert states["tags"][1:] == ["removed", "", "", "", ""]
    assert states["count"][1] == "number"
    [edited] = [state for state in report.operators[0].states if state.state == "count"]
    assert states["count"][2:] == [
        f"{edited.kept:,}",
        f"{edited.changed:,}",
        f"{edited.deleted:,}",
        f"{edited.added:,}",
    ]
    assert page.paragraphs[0] == f"savepoint: {tmp_path / 'new'}"
    assert page.paragraphs[1] == "keys deleted: 1, and 1 that had no entries"
    assert page.paragraphs[2] == (
        f"keys may also be where nobody has searched: in the old savepoint {written_folder()}, in "
        "checkpoints that share its files"
    )
    assert len(page.paragraphs) == 3
    assert page.captions == ["The operators", "Entries of the states of by-int"]
    assert page.left == ["operator", "change", "state", "becomes"]
    assert repr(report) == f"<EditReport: 1 operators, {tmp_path / 'new'}>"


def test_places_where_deleted_keys_may_be(tmp_path: Path) -> None:
    """Where there are Strings, as the keys are."""
    old = point("2.3.0-heaptimers-canonical").path
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as writer:
        writer.operator("by-string").delete_keys(["user-89019"])
    page = shown(writer.report())
    assert {row[1] for row in page.rows if len(row) == 6} == {"becomes", ""}  # no other name
    assert page.captions[-1] == "Where keys may also be"
    assert page.left[-2:] == ["operator", "place"]
    assert page.rows[-6:] == [
        ["operator", "place"],
        ["by-string", "values of the state 'label'"],
        ["by-string", "values of the state 'pair'"],
        ["by-string", "values of the state 'visits'"],
        ["by-string", "user keys of the state 'byCity'"],
        ["by-string", "values of the state 'ttlMap'"],
    ]


def test_what_a_savepoint_returns_is_a_table() -> None:
    """The tuples, lists and dicts stay what they are, and a notebook shows tables."""
    savepoint = point("2.3.0-heap-canonical").read()
    operator = savepoint.operator("by-string")
    operators, states = savepoint.operators, operator.states
    sizes = operator.key_sizes(2)
    contents = operator.get(sizes[0].key)
    assert [type(value).__mro__[1] for value in (operators, states, sizes, contents)] == [
        *(tuple, tuple, list, dict)
    ]
    assert [row[0] for row in shown(operators).rows[1:]] == labels_of(operators)
    assert {row[0] for row in shown(states).rows[1:]} == {state.name for state in states}
    assert [row[0] for row in shown(sizes).rows[1:]] == [repr(size.key) for size in sizes]
    rows = dict(shown(contents).rows[1:])
    assert rows.keys() == contents.keys()
    timers = [name for name in contents if name.startswith("_timer_state/")]
    for name, held in contents.items():
        start = repr(held)[:40] if name not in timers else f"{held[0]} ({date_text(held[0])})"
        assert rows[name].startswith(start)
    assert timers
    windows = point("2.3.0-wide-canonical").read().operators
    assert all(shown(value) for value in (windows, windows[0].states))


def test_entries_are_a_table_of_the_first_few() -> None:
    """The table takes nothing from the iterator, and ends at what is damaged."""
    operator = point("2.3.0-heap-canonical").read().operator("by-string")
    entries = operator.entries(["ttlMap"])
    rows = shown(entries).rows
    assert len(rows) == 51  # The headings, and 50 of 100 entries.
    assert rows[0] == [
        *("state", "key group", "subtask", "key", "namespace", "user key", "value"),
        *("last access", "timestamp"),
    ]
    first = next(entries)
    assert first.last_access is not None
    place = ["ttlMap", f"{first.key_group}", f"{first.subtask}", repr(first.key)]
    assert rows[1] == [
        *place,
        *("", repr(first.user_key), repr(first.value), date_text(first.last_access or 0), ""),
    ]
    assert len([*entries]) == 99
    timers = "_timer_state/event_user-timers"
    (timer, *_) = operator.entries([timers])
    assert timer.timestamp is not None
    cells = shown(operator.entries([timers])).rows[1]
    assert cells[-3:] == ["", "", date_text(timer.timestamp or 0)]


def test_entries_that_are_damaged(tmp_path: Path) -> None:
    folder = shutil.copytree(point("2.3.0-files-canonical").path, tmp_path / "savepoint")
    savepoint = read_savepoint(folder)
    (operator, *_) = (operator for operator in savepoint.operators if operator.states)
    entries = operator.entries()
    for file in folder.iterdir():
        if file.name != "_metadata":
            file.unlink()
    assert "No such file" in entries._repr_html_()  # type: ignore[attr-defined]  # For notebooks.
