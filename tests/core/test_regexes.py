"""Every regular expression of the library takes steps in proportion to its text.

They are found in the source, and their steps are counted in a model of the engine.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.inside.answers import _key_text
from support.inside.columns import patterns
from support.inside.savepoints import state_infos
from support.inside.serializers import (
    BYTES,
    LONG,
    STRING,
    NullableSerializer,
    PojoSerializer,
    RowDataSerializer,
    Serializer,
)
from support.regex_steps import Steps, TooManyStepsError
from support.source_trees import tree_of

import keygroups
from keygroups import flink_exceptions
from keygroups.logical_types import parse_logical_type

ROOT = Path(keygroups.__file__).parent
SIZE, TIMES = 40, 4
MOST = TIMES * 1.5  # the square would be sixteen times as many


class Regex(NamedTuple):
    """A pattern of a module, and the methods that take it."""

    module: str
    pattern: str
    flags: int
    methods: frozenset[str]


ISO = (
    _key_text._DATE,
    _key_text._TIME,
    f"{_key_text._DATE}[T ]{_key_text._TIME}",
    f"{_key_text._DATE}[T ]{_key_text._TIME}(Z|[+-][0-9]{{2}}:[0-9]{{2}})",
)
OF_VALUES: list[list[Serializer]] = [
    [STRING],
    [LONG, NullableSerializer(STRING)],
    [PojoSerializer("a.P", ["a", "b"], [STRING, LONG])],
    [PojoSerializer("a.P", ["a", "b"], [LONG, LONG])],
    [RowDataSerializer([parse_logical_type("BIGINT")]), BYTES],
]
GIVEN = {
    ("cli/_key_text", "pattern"): ISO,
    ("flink_exceptions", "pattern"): [pattern for pattern, _ in flink_exceptions._PATTERNS],
    # What is ahead is tried at each place, as a search without looking ahead does.
    ("savepoint/_state/state_infos", "_PATTERN"): [state_infos._PATTERN[3:-1].decode("latin-1")],
    ("savepoint/_state/patterns", "b'(%b)|.+' % pattern"): [
        f"({pattern.decode('latin-1')})|.+"
        for whole in map(patterns.pattern_of, OF_VALUES)
        if whole is not None
        for pattern in (whole, whole.replace(patterns._ASCII, patterns._LEVELLED_ASCII))
    ],
}
"""The patterns that are arguments of a function: where, the expression, and what it may be."""


def regexes() -> Iterator[Regex]:
    """Yield every regular expression in the source of the library."""
    for path in sorted(ROOT.rglob("*.py")):
        source = path.read_text("utf-8")
        if re.search("^(import|from) re\\b", source, re.MULTILINE) is None:
            continue
        module = path.relative_to(ROOT).with_suffix("").as_posix()
        tree = tree_of(path)
        names = constants(tree)
        nodes: list[Any] = [*ast.walk(tree)]
        for node in nodes:
            if isinstance(node, ast.ImportFrom):
                assert node.module != "re", f"{module} hides who calls re"
            if isinstance(node, ast.alias):
                assert node.name != "re" or node.asname is None, f"{module} hides who calls re"
            if not is_call_of_re(node):
                continue
            method, (pattern, *rest) = node.func.attr, node.args
            flags = 0
            if method == "compile":
                flags = sum(evaluated(flag, names) for flag in rest)
                methods = methods_of(nodes, node)
            else:
                methods = {method}
            texts = GIVEN.get((module, ast.unparse(pattern)))
            for text in texts or [evaluated(pattern, names)]:
                yield Regex(module, text, int(flags), frozenset(methods))


def is_call_of_re(node: Any) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr != "escape"
    )


def constants(tree: ast.Module) -> dict[str, Any]:
    """Return the texts that a module gives names, on which its patterns may build."""
    names: dict[str, Any] = {"re": re}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Constant, ast.JoinedStr)):
            with suppress(NameError):  # one may build on a text of another module
                value = evaluated(node.value, names)
                names.update((ast.unparse(target), value) for target in node.targets)
    return names


def evaluated(node: ast.expr, names: dict[str, Any]) -> Any:
    return eval(ast.unparse(node), dict(names))


def methods_of(nodes: list[ast.AST], call: ast.expr) -> set[str]:
    """Return the methods of a compiled pattern that its module calls, at once or by its name."""
    at_once = {
        node.attr for node in nodes if isinstance(node, ast.Attribute) and node.value is call
    }
    if at_once:
        return at_once
    [name] = [
        ast.unparse(node.targets[0])
        for node in nodes
        if isinstance(node, ast.Assign) and node.value is call
    ]
    found = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == name
    }
    assert found, f"{name} is not used"
    return found


def steepest(regex: Regex, count: int) -> tuple[float, str]:
    """Return the highest factor of steps of a text four times as long, and that text."""
    model, worst = Steps(regex.pattern, regex.flags), (0.0, "")
    for method in sorted(regex.methods):
        for text in model.hostile(random.Random(count), count):
            small, large = text(SIZE), text(TIMES * SIZE)
            try:
                ratio = model.count(method, large) / model.count(method, small)
            except TooManyStepsError:
                return float("inf"), small
            worst = max(worst, (ratio, small))
    return worst


REGEXES = list(regexes())


@pytest.mark.parametrize("count", [12, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("regex", REGEXES, ids=lambda regex: f"{regex[0]} {regex[1]:.20}")
def test_every_regex(regex: Regex, count: int) -> None:
    ratio, text = steepest(regex, count)
    assert ratio <= MOST, (ratio, text)


def test_where_regexes_are() -> None:
    """The search finds some, in modules that have several."""
    found = {(regex.module, regex.pattern) for regex in REGEXES}
    assert len(found) >= 20
    assert {module for module, _ in found} >= {
        "cli/_key_text",
        "explain",
        "job/__init__",
        "logical_types",
    }


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", "fullmatch"),  # once a key's text
        (r"(a+)+b", "match"),
        (r"(?:a|a)*b", "match"),
        (r"\s+$", "search"),
        (r"(.*)=(.*)x", "match"),
        (r"\d+x", "sub"),
    ],
)
def test_what_is_not_linear_is_seen(pattern: str, method: str) -> None:
    regex = Regex("", pattern, 0, frozenset({method}))
    assert steepest(regex, 40)[0] > MOST
