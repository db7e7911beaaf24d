"""What a notebook shows of the library's objects: short, escaped, and as pandas' DataFrames."""

from __future__ import annotations

import sys

import pytest
from html_tables import shown

from keygroups import KeyGroupLoad, KeyGroupsError, RescalePlan, trace_key
from keygroups.load import Recommendations
from keygroups.reports import RescaleReport

LOAD = KeyGroupLoad(8, [5, 1, 1, 1, 0, 1, 2, 1])
PLAN = RescalePlan(8, 2, 3)  # [0, 3] and [4, 7] become [0, 2], [3, 5] and [6, 7]
PIECES = [(0, 0, 0, 2, False), (0, 1, 3, 3, True), (1, 1, 4, 5, False), (1, 2, 6, 7, True)]


def test_trace() -> None:
    trace = trace_key("<b>&", 128, 3)
    assert repr(trace).startswith("<KeyTrace: '<b>&' as STRING, key group ")
    cells = shown(trace)
    assert cells.rows[1] == ["key", "'<b>&' as STRING"]
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
    assert long.captions[0].endswith(f"; {pieces - 40} pieces in the middle are left out")
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
