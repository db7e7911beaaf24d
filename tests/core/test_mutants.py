"""What `tools/mutants.py` changes in a source, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_edits import Finder

import keygroups

ROOT = Path(__file__).parents[2]
EQUIVALENT = ROOT / "tests" / "tools" / "equivalent_mutants.txt"
BLOCKS = EQUIVALENT.read_text("utf-8").strip().split("\n\n")


def mutants(source: str) -> list[str]:
    finder = Finder(source.encode())
    assert all(map(finder.is_changed_by, finder.edits))
    return [edit.apply(finder.source).decode() for edit in finder.edits]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < b <= c", ["x = a <= b <= c", "x = a < b < c"]),
        ("x = a > b >= c", ["x = a >= b >= c", "x = a > b > c"]),
        ("x = a == b != c", ["x = a != b != c", "x = a == b == c"]),
        ("x = (a) is b is  not c", ["x = (a) is not b is  not c", "x = (a) is b is c"]),
        ("x = a in b not in c", ["x = a not in b not in c", "x = a in b in c"]),
        ("x = a and b or c", ["x = a and b and c", "x = a or b or c"]),
        ("x = a + b", ["x = a - b"]),
        ("x = a - (b * c)", ["x = a + (b * c)", "x = a - (b + c)"]),
        ("x = a // b", ["x = a * b"]),
        ("x = a / b", ["x = a * b"]),
        ("x = a % b", ["x = a // b"]),
        ("x = a**b", ["x = a*b"]),
        ("x = a @ b", ["x = a * b"]),
        ("x = a & b", ["x = a | b"]),
        ("x = a | b", ["x = a & b"]),
        ("x = a ^ b", ["x = a | b"]),
        ("x = a << b", ["x = a >> b"]),
        ("x = a >> b", ["x = a << b"]),
        ("x += a", ["x -= a"]),
        ("x = not -~a", ["x =  -~a", "x = not ~a", "x = not -a"]),
        ("x = 'ä', 7", ["x = '', 7", "x = 'ä', 8", "x = 'ä', (6)"]),
        ("x = 0.5", ["x = 1.5", "x = (-0.5)"]),
        ("x = True, b''", ["x = False, b''", "x = True, b'x'"]),
        ("x = a[b:]", ["x = a[:]", "x = a[(b) + 1:]"]),
        ("x = min(any(a))", ["x = max(any(a))", "x = min(all(a))"]),
        ("if a:\n    b()", ["if (not (a)):\n    b()", "if a:\n    pass"]),
        ("if a is b:\n    c = d", ["if a is not b:\n    c = d"]),
        ("x = a if b else c", ["x = a if (not (b)) else c"]),
        ("x = [a for a in b if a]", ["x = [a for a in b if (not (a))]"]),
        ("while a:\n    break", ["while (not (a)):\n    break", "while a:\n    pass"]),
        ("def a():\n    return b", ["def a():\n    return None"]),
        ("def a():\n    return False", ["def a():\n    return True"]),
        ("def a(b=1): c: int = b", ["def a(b=2): c: int = b", "def a(b=(0)): c: int = b"]),
        ("raise A('at ' + a)", ["pass"]),
        ("x = cast('A', a < b)", ["x = cast('A', a <= b)"]),
    ],
)  # fmt: skip
def test_each_kind_of_edit(source: str, expected: list[str]) -> None:
    assert mutants(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        '"""A text."""',
        'def a(b: "int | None" = None) -> list[int]:\n    """A text."""\n    c: int',
        "@overload\ndef a(b=1): ...",
        "if TYPE_CHECKING:\n    a = 1",
        "assert a < b",
        "x = 'how many', f'{a + 1} of them', AnError(a, 1), TypeVar('T', bound='A')",
        "__all__ = ['a']",
    ],
)
def test_what_says_and_does_nothing_is_left_alone(source: str) -> None:
    assert mutants(source) == []


def test_an_edit_knows_the_lines_of_its_statement() -> None:
    source = b"if (a and\n        b):\n    c(\n        1\n    )\n"
    spans = [(edit.first, edit.last) for edit in Finder(source).edits]
    assert spans == [(1, 2), (1, 2), (3, 5), (3, 5), (3, 5)]


@pytest.mark.parametrize("block", BLOCKS)
def test_an_equivalent_mutant_is_of_the_source_and_has_a_reason(block: str) -> None:
    path, *lines = block.splitlines()
    package = Path(keygroups.__file__).parents[1]  # maybe an installed one
    source = [line.strip() for line in (package / path).read_text("utf-8").splitlines()]
    assert "".join(dict.fromkeys(line[0] for line in lines)) == "-+#"
    assert all(line[2:] in source for line in lines if line.startswith("-"))
