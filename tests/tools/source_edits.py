"""The small edits of a source that a test should notice, found in its syntax tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
NEGATED_BY_SWAP = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
OPERATORS: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.Pow: ("**", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"),
    ast.Mod: ("%", "//"),
    ast.MatMult: ("@", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "|"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}
# Calls that say something to a reader or to mypy.
SAYS = re.compile(r"(Error|TypeVar|ParamSpec)$")
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Edit:
    """Bytes of a source that others take the place of, and the lines of their statement."""

    start: int
    end: int
    new: str
    first: int
    last: int

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.new.encode() + source[self.end :]


class Finder:
    """All edits of a source. Annotations, texts of errors and other prose are left as they are."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.lines = [0]
        for line in source.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.span = (1, 1)
        tree = ast.parse(source)
        self.program = ast.dump(tree)
        self.edits = list(self.walk(tree))

    def is_changed_by(self, edit: Edit) -> bool:
        """Whether the result is another program; an operator may be one in a comment."""
        try:
            return ast.dump(ast.parse(edit.apply(self.source))) != self.program
        except SyntaxError:
            return False

    def start(self, node: ast.expr | ast.stmt) -> int:
        return self.lines[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        return self.lines[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)

    def edit(self, start: int, end: int, new: str) -> Edit:
        return Edit(start, end, new, *self.span)

    def replace(self, node: ast.expr | ast.stmt, new: str) -> Edit:
        return self.edit(self.start(node), self.end(node), new)

    def swap(self, left: ast.expr, right: ast.expr, old: str, new: str) -> Iterator[Edit]:
        """Yield the edit of an operator, which is between its operands."""
        pattern = re.escape(old).replace(r"\ ", r"\s+").encode()
        if found := re.compile(pattern).search(self.source, self.end(left), self.start(right)):
            yield self.edit(*found.span(), new)

    def walk(self, node: ast.AST) -> Iterator[Edit]:
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or 0
            self.span = (node.lineno, max(node.lineno, last))
        yield from self.of_statement(node)
        yield from self.of_expression(node)
        for child in children(node):
            yield from self.walk(child)

    def of_statement(self, node: ast.AST) -> Iterator[Edit]:
        if isinstance(node, ast.Return) and node.value and not is_empty(node.value):
            yield self.replace(node.value, "None")
        elif isinstance(node, (ast.Raise, ast.Break, ast.Continue)) or is_call(node):
            yield self.replace(node, "pass")
        elif isinstance(node, ast.AugAssign):
            old, new = OPERATORS[type(node.op)]
            yield from self.swap(node.target, node.value, old + "=", new + "=")
        elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
            yield from self.negate(node.test)
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                yield from self.negate(test)

    def negate(self, test: ast.expr) -> Iterator[Edit]:
        """Yield the opposite of a condition, unless it is another edit or of no concern here."""
        old = self.source[self.start(test) : self.end(test)].decode()
        swapped = isinstance(test, ast.Compare) and isinstance(test.ops[0], NEGATED_BY_SWAP)
        if not swapped and not old.startswith("not ") and old != "TYPE_CHECKING":
            yield self.replace(test, f"(not ({old}))")

    def of_expression(self, node: ast.AST) -> Iterator[Edit]:
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            for op, left, right in zip(node.ops, operands, operands[1:]):
                yield from self.swap(left, right, *COMPARISONS[type(op)])
        elif isinstance(node, ast.BoolOp):
            pair = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            for left, right in zip(node.values, node.values[1:]):
                yield from self.swap(left, right, *pair)
        elif isinstance(node, ast.BinOp):
            yield from self.swap(node.left, node.right, *OPERATORS[type(node.op)])
        elif isinstance(node, ast.UnaryOp):
            length = 3 if isinstance(node.op, ast.Not) else 1
            yield self.edit(self.start(node), self.start(node) + length, "")
        elif isinstance(node, ast.Slice):
            for bound in filter(None, (node.lower, node.upper)):
                yield self.replace(bound, "")
                if not isinstance(bound, ast.Constant):
                    old = self.source[self.start(bound) : self.end(bound)].decode()
                    yield self.replace(bound, f"({old}) + 1")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in CALLS:
                yield self.replace(node.func, CALLS[node.func.id])
        elif isinstance(node, ast.Constant):
            yield from (self.replace(node, new) for new in constants(node.value))


def constants(value: object) -> Iterator[str]:
    if isinstance(value, bool):
        yield repr(not value)
    elif isinstance(value, (int, float)):
        yield from (repr(value + 1), f"({value - 1!r})")
    elif isinstance(value, str) and " " not in value:
        yield repr("" if value else "x")
    elif isinstance(value, bytes):
        yield repr(b"" if value else b"x")


def is_empty(node: ast.expr) -> bool:
    """Whether a result is as good as None, or is changed elsewhere."""
    return isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool))


def is_call(node: ast.AST) -> TypeGuard[ast.Expr]:
    """Whether a statement is an expression, and no docstring."""
    return isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)


def children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes in a node that do something, and more than word an error."""
    if isinstance(node, ast.FunctionDef):
        if "overload" not in map(ast.unparse, node.decorator_list):
            defaults = filter(None, [*node.args.defaults, *node.args.kw_defaults])
            yield from (*node.decorator_list, *defaults, *node.body)
    elif isinstance(node, ast.ClassDef):
        yield from (*node.decorator_list, *node.body)
    elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        yield from node.orelse
    elif isinstance(node, ast.AnnAssign):
        yield from filter(None, [node.value])
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == "cast":
        yield node.args[1]
    elif not (
        isinstance(node, (ast.Raise, ast.Assert, ast.JoinedStr))
        or (isinstance(node, ast.Expr) and not is_call(node))
        or (isinstance(node, ast.Call) and SAYS.search(ast.unparse(node.func)))
        or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
    ):
        yield from ast.iter_child_nodes(node)
