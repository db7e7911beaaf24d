"""Find words that have to be decoded: fragments as comments, and names that name nothing.

`python tests/tools/words.py [PATH...]` prints each place, and ends with 1 if there is one. A
comment is a sentence with a subject, or a noun with its unit; a docstring names what is returned
by its class or its noun; a local is a noun or an adjective. Annotated fields in the body of a
class keep their names, as they are those of a record that users read, such as `there`.

A docstring of tests may open with a clause, such as "What is not there is refused": it says what
is tested, and only one that begins with a verb names a thing.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("keygroups", "examples", "tests")
OPENINGS = (
    *("as", "before", "behind", "but", "by", "from", "of", "than", "that", "those", "to"),
    *("what", "where", "which", "with", "within", "without"),
)
_FRAGMENT = re.compile(rf"# ?({'|'.join(OPENINGS)})\b")
_VERBS = "(Return|Yield|Say|Make|Tell|Take) "
_RELATIVE = r"(what|how|which|where|those)\b"
_DOCSTRING = re.compile(f"({_VERBS})?{_RELATIVE}", re.I)
_DOCSTRING_OF_TESTS = re.compile(f"{_VERBS}{_RELATIVE}", re.I)
_OPPOSITES = {"left": "right", "there": "here"}
NAMES = {"came", "given", "left", "of", "said", "taken", "there", "told"}


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each comment that another line of comment does not precede."""
    last = -1
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            alone = token.line.lstrip().startswith("#")
            if not (alone and last == token.start[0] - 1):
                yield token.start[0], token.string
            last = token.start[0] if alone else -1


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and first line of each docstring."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
            continue
        if text := ast.get_docstring(node):
            yield getattr(node, "lineno", 1), text.splitlines()[0]


def names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and name of each local and each parameter.

    Annotated fields in the body of a class are left out, and so is a name beside its opposite in
    one function, or in one statement outside of functions: left and right, here and there.
    """
    fields = {
        id(statement.target)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
    }
    for statement in statements(tree.body):
        bound = [
            (node.lineno, node.id if isinstance(node, ast.Name) else node.arg)
            for node in ast.walk(statement)
            if isinstance(node, ast.arg)
            or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
            if id(node) not in fields
        ]
        listed = {name for _, name in bound}
        yield from ((line, name) for line, name in bound if _OPPOSITES.get(name) not in listed)


def statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module and of its classes, functions whole."""
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            yield from statements(statement.body)
        else:
            yield statement


def faults(path: Path) -> Iterator[str]:
    """Yield the faults of a file: comments, docstrings and names."""
    text = path.read_text("utf-8")
    for line, comment in comments(text):
        for part in comment.split("  #"):
            part = part if part.startswith("#") else f"#{part}"
            if _FRAGMENT.match(part):
                yield f"{path.relative_to(ROOT)}:{line}: {part.strip()}"
    tree = ast.parse(text)
    is_test = path.is_relative_to(ROOT / "tests")
    unclear = _DOCSTRING_OF_TESTS if is_test else _DOCSTRING
    for line, first in docstrings(tree):
        if unclear.match(first):
            yield f'{path.relative_to(ROOT)}:{line}: """{first}'
    for line, name in names(tree):
        if name in NAMES:
            yield f"{path.relative_to(ROOT)}:{line}: a local called {name}"


def main() -> int:
    """Print all, and return the status."""
    paths = [Path(name).resolve() for name in sys.argv[1:]] or [ROOT / name for name in FOLDERS]
    files = [file for path in paths for file in ([path] if path.is_file() else path.rglob("*.py"))]
    found = [fault for file in sorted(files) for fault in faults(file)]
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
