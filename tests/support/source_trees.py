"""The syntax trees of Python files, each parsed once for all tests."""

import ast
from functools import cache
from pathlib import Path


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the tree of a file, which nobody changes."""
    return ast.parse(path.read_text("utf-8"))
