"""Error messages that name a remedy: found in the source, each to be tried in a test."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

import keygroups
from keygroups import KeyGroupsError
from support.source_trees import tree_of

_ROOT = Path(keygroups.__file__).parent
_VERBS = (
    "cast|cut|declare|drop|filter|give|group by|install|key by|key the|make|name them|pass|"
    "pip install|read it|rename|round|set|start one|take|update|use|write"
)
NAMES_A_REMEDY = re.compile(
    rf"(?:[:;,] |\b(?:or|then|else|and)(?: by)? )(?:{_VERBS})\b"
    r"|must be (?:given|left out)|must leave|hash of your own|takes a value from|as EXPLAIN"
)
_EXTRAS = {"matplotlib", "pandas", "polars"}  # the default tests do without them


@dataclass(frozen=True)
class Remedy:
    """A call that fails, what its message says to do instead, and what that gives.

    `module` has the message, below `keygroups`; `says` is of its source, with {} for values;
    `needs` are modules without which it cannot be tried.
    """

    module: str
    says: str
    fails: Callable[[], object]
    done: Callable[[], object]
    gives: object
    needs: tuple[str, ...] = ()
    error: tuple[type[Exception], ...] = (KeyGroupsError, ImportError)

    def param(self, *more: pytest.MarkDecorator) -> object:
        """Return this as a parameter of a test, with its marks and more."""
        marks = [pytest.mark.extras, *more] if _EXTRAS & set(self.needs) else more
        return pytest.param(self, marks=marks, id=f"{self.module}: {self.says[:40]}")

    def try_it(self) -> None:
        """Fail as a user would, read the message, and do what it says."""
        for module in self.needs:
            if find_spec(module) is None:
                pytest.skip(f"{module} is not installed")
        with pytest.raises(self.error, match=".*".join(map(re.escape, self.says.split("{}")))):
            self.fails()
        assert self.done() == self.gives


def untried(
    remedies: Iterable[Remedy], others: Iterable[tuple[str, str]], of_spark: bool
) -> list[str]:
    """Return the faults: messages that say a remedy and are not tried, and the reverse.

    `others` only read as if they were such messages: a module, and words of its text.
    """
    known = {*((one.module, one.says) for one in remedies), *others}
    found = list(remedies_in_source(of_spark))
    missing = [
        f"keygroups/{module} says, and nobody tries: {text!r}"
        for module, text in found
        if not any(item == module and says in text for item, says in known)
    ]
    return missing + [
        f"keygroups/{module} says no more: {says!r}"
        for module, says in sorted(known)
        if not any(item == module and says in text for item, text in found)
    ]


def in_another_python(code: str) -> None:
    """Run code in a Python of its own, and raise what it says if it fails."""
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, cwd=_ROOT.parent)
    if run.returncode:
        raise ImportError(run.stderr.splitlines()[-1])


def imported(module: str, missing: str) -> None:
    """Import a module where another is not installed."""
    in_another_python(f"import sys; sys.modules[{missing!r}] = None; import {module}")


def remedies_in_source(of_spark: bool) -> Iterator[tuple[str, str]]:
    """Yield the module and the text of each string that reads as a remedy, {} for its values."""
    for path in sorted(_ROOT.rglob("*.py")):
        module = path.relative_to(_ROOT).with_suffix("").as_posix().removesuffix("/__init__")
        if of_spark == (module.split("/")[0] == "spark"):
            for text in _texts(tree_of(path)):
                if " " in text and NAMES_A_REMEDY.search(text):
                    yield module, text


def _texts(tree: ast.AST) -> Iterator[str]:
    """Yield the strings of a module, but for those that document it."""
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            skipped.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            skipped |= set(node.values)
        if node in skipped:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
            )
