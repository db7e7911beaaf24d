"""User code uses every public name: mypy and pyright, which `.ci/run` runs, see what users get."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

import keygroups

PACKAGE = Path(keygroups.__file__).parent
USER_CODE = sorted((Path(__file__).parent / "user_code").glob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}
PUBLIC = [name for name in MODULES if "._" not in name]


def promised(path: Path) -> set[str]:
    """Return the names in a module's `__all__`, and those that it imports as themselves."""
    names = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names |= set(ast.literal_eval(node.value))
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.name for alias in node.names if alias.name == alias.asname}
    return names


@cache
def used(path: Path) -> set[str]:
    """Return the dotted names, from the package on, of whatever a file uses of what it imports."""
    tree = ast.parse(path.read_text("utf-8"))
    imported: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {one.asname or one.name: one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Attribute, ast.Name)):
            first, dot, rest = ast.unparse(node).partition(".")
            found.add(imported.get(first, first) + dot + rest)
    return found


def test_there_is_user_code() -> None:
    assert len(PUBLIC) > 30
    assert len(USER_CODE) == 4


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_used(module: str) -> None:
    found = set[str]().union(*map(used, USER_CODE))
    unused = {name for name in promised(MODULES[module]) if f"{module}.{name}" not in found}
    assert not unused, f"use these of {module} in tests/user_code"


@pytest.mark.parametrize("path", USER_CODE, ids=lambda path: path.stem)
def test_user_code_casts_nothing(path: Path) -> None:
    text = path.read_text("utf-8")
    assert not [word for word in ("cast(", "type: ignore", "Any") if word in text]
