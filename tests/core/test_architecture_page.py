"""The page of the architecture is true: its paths, its classes, who may import whom."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.source_trees import tree_of

ROOT = Path(__file__).parents[2]
PAGE = ROOT / ".github" / "ARCHITECTURE.md"
PACKAGE = ROOT / "keygroups"
FOLDERS = (ROOT, PACKAGE, PACKAGE / "savepoint", PACKAGE / "_serializers")
PAIRS = (PACKAGE / "savepoint" / "_edits", PACKAGE / "savepoint" / "_files")

if not PAGE.exists():  # The sdist has no .github.
    pytest.skip("the page is in the repository alone", allow_module_level=True)
TEXT = PAGE.read_text("utf-8")
QUOTED = re.findall(r"`([^`\n]+)`", TEXT)


def rows() -> list[list[str]]:
    """Return the paths of each row of the table of who may import whom."""
    table = TEXT.partition("## Who may import whom")[2].partition("\n\n|")[2].partition("\n\n")[0]
    return [re.findall(r"`([^`]+)`", row.split("|")[0]) for row in table.split("\n|")[2:]]


def found(path: str) -> Path | None:
    """Return the file or folder of a path on the page."""
    wheres = [folder / path for folder in FOLDERS]
    if "/" not in path:
        wheres += PACKAGE.rglob(path)
    return next((where for where in wheres if where.exists()), None)


def test_its_paths_are_there() -> None:
    paths = [text for text in QUOTED if re.fullmatch(r"[\w/.-]*(/|\.py)", text)]
    assert len(paths) > 50
    assert [path for path in paths if found(path) is None] == []


def test_its_links_are_there() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", TEXT)
    assert links
    assert all((PAGE.parent / link).exists() for link in links)


@pytest.mark.long
def test_its_classes_are_there() -> None:
    names = {text for text in QUOTED if re.fullmatch(r"[A-Z]\w+", text)}
    defined = {
        node.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef)
    }
    assert len(names) > 10
    assert names <= defined


def imported(path: Path) -> Iterator[str]:
    """Yield the modules of ours that a file imports, wherever in it."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and node.module == "keygroups":
            yield from (f"keygroups.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("keygroups."):
            yield str(node.module)


@pytest.mark.long
def test_nobody_imports_what_is_above() -> None:
    """Each module is in a row, and imports none of a row above it."""
    floors = {}
    for floor, paths in enumerate(rows()):
        for path in paths:
            where = found(path)
            assert where is not None
            for file in where.rglob("*.py") if where.is_dir() else [where]:
                parts = file.relative_to(ROOT).with_suffix("").parts
                floors[".".join(parts).removesuffix(".__init__")] = file, floor
    backwards = [
        (module, other)
        for module, (file, floor) in floors.items()
        for other in imported(file)
        if other in floors and floors[other][1] < floor
    ]
    assert backwards == []
    assert len(floors) > 200


def files_with(is_one: Callable[[ast.AST], bool]) -> set[str]:
    """Return the files of savepoints in which some node of the syntax is one."""
    folder = PACKAGE / "savepoint"
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if any(map(is_one, ast.walk(tree_of(path))))
    }


def row_of(what: str) -> set[str]:
    """Return the paths of a row of the table of where things go."""
    return set(re.findall(r"`([^`]+)`", TEXT.partition(f"| {what} |")[2].partition("\n")[0]))


@pytest.mark.long
def test_a_kind_of_state_is_in_the_files_of_its_row() -> None:
    """One whose value lies as that of others does; a writer of windows takes another kind."""
    kind = files_with(lambda node: isinstance(node, ast.Constant) and node.value == "AGGREGATING")
    assert kind == row_of("a kind of state") - {"_state/stored_values.py"}
    assert len(kind) <= 3


@pytest.mark.long
def test_a_file_format_is_in_the_files_of_its_row() -> None:
    named = files_with(lambda node: isinstance(node, ast.Name) and node.id == "RocksDBHandle")
    assert row_of("a file format") == {
        *("_metadata/codes.py", "_metadata/handles.py", "_metadata/reader.py"),
        *("_state/formats/", "by_handle.py"),
    }
    assert named == {
        *("_metadata/handles.py", "_metadata/reader.py"),
        *("_state/formats/by_handle.py", "_state/formats/rocksdb.py"),
    }


@pytest.mark.long
def test_the_bytes_between_the_parts_of_a_value_are_in_one_file() -> None:
    """The comma of a list; the marks before a value of a map, which columns take by their name."""
    assert files_with(lambda node: isinstance(node, ast.Constant) and node.value == b",") == {
        "_state/stored_values.py"
    }
    marks = {"_NULL", "_NOT_NULL"}
    known = files_with(lambda node: isinstance(node, ast.Name) and node.id in marks)
    assert {path for path in known if path.startswith("_state/")} <= {
        *("_state/stored_values.py", "_state/skips.py"),  # The flag of a POJO in the latter.
    }
