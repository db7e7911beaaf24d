"""How many classes a reader meets on the way through a savepoint: no path gets longer unseen."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from keygroups.savepoint import (
    SavepointWriter,
    ValueStateDescriptor,
    change_max_parallelism,
    read_savepoint,
)
from keygroups.types import LONG, STRING

EDITS = tuple(
    f"keygroups.savepoint.{folder}." for folder in ("_edits", "_writing", "_state.writing")
)
SAVEPOINT = Path(__file__).parents[2] / "examples" / "data" / "savepoint"


def home_of(frame: FrameType) -> type | None:
    """Return the class that has the method that is called, None for a function."""
    code = frame.f_code
    if not code.co_argcount or code.co_varnames[0] not in ("self", "cls"):
        return None
    owner = frame.f_locals[code.co_varnames[0]]
    for cls in (owner if isinstance(owner, type) else type(owner)).__mro__:
        method = vars(cls).get(code.co_name)
        method = getattr(method, "__func__", getattr(method, "fget", method))
        if getattr(method, "__code__", None) is code:
            return cls
    return None


def classes_of(call: Callable[[], object]) -> set[type]:
    """Return the package's classes whose methods a call runs."""
    met: set[type | None] = set()

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_globals.get("__name__", "").startswith("keygroups."):
            met.add(home_of(frame))

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {cls for cls in met if cls is not None}


def names_of(classes: Iterable[type]) -> list[str]:
    return sorted(cls.__qualname__ for cls in classes)


def read() -> None:
    next(iter(read_savepoint(SAVEPOINT).operator("by-string").entries(["count"])))


def edit(path: Path) -> None:
    with SavepointWriter.from_existing_savepoint(SAVEPOINT, path) as writer:
        writer.operator("by-string").map_entries("count", lambda entry: entry.value + 1)


def move(path: Path) -> None:
    with SavepointWriter.from_existing_savepoint(SAVEPOINT, path) as writer:
        by_string = writer.operator("by-string")
        by_string.map_entries("count", lambda entry: entry._replace(key=f"{entry.key}+"))


def rekey(path: Path) -> None:
    change_max_parallelism(SAVEPOINT, 4096, path)


def write(path: Path) -> None:
    states = [ValueStateDescriptor("count", LONG)]
    with SavepointWriter(path) as writer:
        operator = writer.add_operator("by-user", STRING, states, 128, parallelism=3, sort=True)
        operator.write("count", "ann", 7)


@pytest.mark.parametrize(
    ("budget", "call"),
    [(32, lambda path: read()), (56, edit), (58, move), (55, rekey), (27, write)],
    ids=[
        "the first entry",
        "an edit",
        "moved entries",
        "another max parallelism",
        "an entry written",
    ],
)
def test_no_path_has_more_classes(
    budget: int, call: Callable[[Path], object], tmp_path: Path
) -> None:
    call(tmp_path / "once")  # So that all is imported and what is kept is there.
    met = classes_of(lambda: call(tmp_path / "again"))
    assert len(met) > budget / 2
    assert len(met) <= budget, names_of(met)


def test_another_max_parallelism_is_an_edit(tmp_path: Path) -> None:
    """It meets no engine of its own: an edit's classes, and what sorts."""
    edit(tmp_path / "edited")
    rekey(tmp_path / "keyed anew")
    own = classes_of(lambda: rekey(tmp_path / "a")) - classes_of(lambda: edit(tmp_path / "b"))
    assert {*names_of(own)} <= {"EditReport", "EditedOperator", "EntrySorter", "Sorter"}


def test_an_edit_passes_through_seven_classes(tmp_path: Path) -> None:
    """From the verb to the file of the subtask that an entry moves to; an heir is its base.

    Beside them is what counts, holds and sorts entries, and the other state of the operator. A
    class with a leading underscore is a part of the one that it stands beside.
    """
    chain = {
        "SavepointEditor",
        "CopiedOperator",
        "EditedKeyedState",
        "EditTask",
        "EntryMapping",
        "WriteTask",
        "KeyedStateFile",
    }
    beside = {"Edits", "MovedWriter", "EntrySorter", "EditedOperatorState", "MergedHeader"}
    move(tmp_path / "once")
    met = classes_of(lambda: move(tmp_path / "again"))
    edits = [
        cls
        for cls in met
        if cls.__module__.startswith(EDITS) and not cls.__qualname__.startswith("_")
    ]
    heads = {cls for cls in edits if not any(cls in heir.__mro__[1:] for heir in edits)}
    assert {*names_of(heads)} == chain | beside
