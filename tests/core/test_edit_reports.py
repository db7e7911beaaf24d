"""Reports of edits, as text and in notebooks: each kind of change, and what is listed of it."""

from __future__ import annotations

from typing import Any

import pytest
from support.html_tables import shown

from keygroups.savepoint.reports import (
    DeletedKeys,
    EditedOperator,
    EditedState,
    EditReport,
    UnsearchedPlace,
    WrittenState,
)

KEPT = EditedState("kept", "kept", 7, 0, 0, 0)
CHANGED = EditedState("count", "count", 1_000, 2_000, 3_000, 4_000)
RENAMED = EditedState("old", "new", 5, 0, 0, 0)
REMOVED = EditedState("gone", None, None, None, None, None)
WRITTEN = (
    WrittenState("kept", 0, 4, 1_000),
    WrittenState("kept", 1, 3, 500),
    WrittenState("count", 1, 2_000, 9),
)
PLACES = (UnsearchedPlace("other", "state t"), UnsearchedPlace("third", "its channels"))
DELETED = DeletedKeys(1_234, ("a", "b"), PLACES)


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({}, "op: copied as it is"),
        ({"operator": None}, "op: removed"),
        ({"old_operator": None, "states": (CHANGED,)}, "op: new"),
        ({"states": (KEPT,)}, "op: its state changed"),
        ({"states": (KEPT,), "written": WRITTEN}, "op: written anew"),
        ({"states": (KEPT, CHANGED), "written": WRITTEN}, "op: its state changed"),
        ({"is_added": True, "path": "/a\x1b"}, r"op: copied as it is, from /a\x1b"),
        (
            {"old_max_parallelism": 128, "new_max_parallelism": 256},
            "op: copied as it is, max parallelism 128 -> 256",
        ),
        ({"old_max_parallelism": 128, "new_max_parallelism": 128}, "op: copied as it is"),
        ({"old_max_parallelism": 128}, "op: copied as it is"),
        ({"old_operator": "before"}, "op: copied as it is, renamed from before"),
        (
            {"old_operator": None, "old_max_parallelism": 1, "new_max_parallelism": 2},
            "op: new, max parallelism 1 -> 2",
        ),
    ],
)
def test_the_change_of_an_operator(fields: dict[str, Any], line: str) -> None:
    operator = EditedOperator(**{"operator": "op", "old_operator": "op", **fields})
    assert str(operator).splitlines()[0] == line
    name, _, change = line.partition(": ")
    report = EditReport("/s", (operator,))
    assert shown(report).rows[:2] == [["operator", "change"], [name, change]]


@pytest.mark.parametrize(
    ("state", "line", "cells"),
    [
        (
            CHANGED,
            "count: 1,000 entries kept, 2,000 changed, 3,000 deleted, 4,000 added",
            ["count", "", "1,000", "2,000", "3,000", "4,000"],
        ),
        (
            RENAMED,
            "new: 5 entries kept, 0 changed, 0 deleted, 0 added, renamed from old",
            ["old", "new", "5", "0", "0", "0"],
        ),
        (REMOVED, "gone: removed", ["gone", "removed", "", "", "", ""]),
        *(
            (
                EditedState("s", "s", 0, *counts),
                f"s: 0 entries kept, {counts[0]} changed, {counts[1]} deleted, {counts[2]} added",
                ["s", "", "0", *map(str, counts)],
            )
            for counts in ((1, 0, 0), (0, 1, 0), (0, 0, 1))
        ),
    ],
)
def test_states_that_changed(state: EditedState, line: str, cells: list[str]) -> None:
    """Beside those that were written they are listed, and states that no verb changed are not."""
    operator = EditedOperator("op", "op", states=(KEPT, state), written=WRITTEN)
    assert str(operator).splitlines() == [
        "op: its state changed",
        f"  {line}",
        "  kept: 7 entries, 1,500 bytes, in 2 subtasks",
        "  count: 2,000 entries, 9 bytes, in 1 subtasks",
    ]
    page = shown(EditReport("/s", (operator,)))
    assert page.rows[2:] == [
        ["state", "becomes", "kept", "changed", "deleted", "added"],
        cells,
        ["state", "entries", "bytes", "subtasks"],
        ["kept", "7", "1,500", "2"],
        ["count", "2,000", "9", "1"],
    ]
    assert page.captions == [
        "The operators",
        "Entries of the states of op",
        "What was written of op",
    ]
    assert page.left == ["operator", "change", "state", "becomes", "state"]


@pytest.mark.parametrize("has_places", [True, False])
def test_keys_that_were_deleted(has_places: bool) -> None:
    deleted = DELETED if has_places else DeletedKeys(1_234, ("a", "b"), ())
    operator = EditedOperator("op", "op", path="/old", deleted_keys=deleted)
    lines = [
        "keys deleted: 1,234, and 2 that had no entries",
        "keys may also be where nobody has searched: in the old savepoint /old, in checkpoints "
        "that share its files" + (", and here:" if has_places else ""),
    ]
    places = ["other: state t", "third: its channels"] if has_places else []
    assert str(operator).splitlines()[1:] == [
        *(f"  {line}" for line in lines),
        *(f"    {place}" for place in places),
    ]
    page = shown(EditReport("/s", (operator,)))
    assert page.paragraphs == ["savepoint: /s", *lines]
    table = [["operator", "place"], ["other", "state t"], ["third", "its channels"]]
    assert page.rows[2:] == (table if has_places else [])
    if has_places:
        assert page.left == ["operator", "change", "operator", "place"]
    assert repr(deleted).startswith("DeletedKeys(with_entries=1234, without_entries=('a', 'b'),")


ADVICE = "operators without state keep their max parallelism: "


@pytest.mark.parametrize(
    ("rest", "names"),
    [
        (("a",), "a; "),
        ((*"abcdefghij",), "a, b, c, d, e, f, g, h, i, j; "),
        ((*"abcdefghijk",), "a, b, c, d, e, f, g, h, i, j and 1 more; "),
        (("x" * 100,), "x" * 100 + "; "),
        (("x" * 101,), "x" * 50 + "..." + "x" * 47 + "; "),
    ],
)
def test_operators_whose_max_parallelism_stayed(rest: tuple[str, ...], names: str) -> None:
    """Ten of them are named, each by at most 100 characters."""
    report = EditReport("/s", (), rest)
    lines = str(report).splitlines()
    assert lines[0] == "savepoint: /s"
    assert lines[1].startswith(f"{ADVICE}{names}where the job has another")
    assert shown(report).paragraphs == lines
    assert repr(report) == "<EditReport: 0 operators, /s>"


def test_the_max_parallelism_to_set() -> None:
    """Of operators that were written anew, and are there."""
    anew = EditedOperator("op", "op", new_max_parallelism=256, written=WRITTEN)
    others = (
        EditedOperator("copied", "copied", new_max_parallelism=128),
        EditedOperator("none", "none", written=WRITTEN),
    )
    report = EditReport("/s", (anew, *others))
    assert str(report).splitlines()[-1].startswith("set max parallelism in the job, to 256: ")
    assert "set max parallelism" not in str(EditReport("/s", others))
    assert repr(report) == "<EditReport: 3 operators, /s>"
