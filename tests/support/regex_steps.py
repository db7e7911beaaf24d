"""How many steps a regular expression takes, counted: a backtracking matcher as that of `re`.

A pattern is parsed by `re` itself and made a program of four instructions, which run as in any
backtracking engine: what was not tried is on a stack. `re` skips some of the steps, and adds none.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from typing import Any, NamedTuple

try:
    from re import _parser as parser  # type: ignore[attr-defined]  # it has no stub
except ImportError:  # Python 3.10
    import sre_parse as parser

_CATEGORIES: dict[str, Callable[[str], bool]] = {
    "CATEGORY_DIGIT": str.isdecimal,
    "CATEGORY_SPACE": str.isspace,
    "CATEGORY_WORD": lambda char: char.isalnum() or char == "_",
}
_OUTSIDERS = "\0\u00e9 x9"
_ALL = ("sub", "finditer", "findall")  # methods that go on behind a match
_MOST = 200_000


class TooManyStepsError(Exception):
    """A match takes more steps than any that grows with its text."""


class Char(NamedTuple):
    """Take one character; `some` are such ones."""

    is_right: Callable[[str], bool]
    some: str


class At(NamedTuple):
    """Go on where a condition holds, of a text and a position."""

    holds: Callable[[str, int], bool]


class Split(NamedTuple):
    """Go on in two places, the first one first."""

    first: int
    second: int


class Jump(NamedTuple):
    """Go on elsewhere."""

    to: int


def _pumped(start: str, pump: str, end: str, count: int) -> str:
    return start + pump * count + end


class Steps:
    """A pattern, and how many steps it takes."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.compiled = re.compile(pattern, flags)
        self._flags = self.compiled.flags
        self._program: list[Char | At | Split | Jump] = []
        self._add(parser.parse(pattern, flags))

    def count(self, method: str, text: str) -> int:
        """Return the steps of a method of a compiled pattern, and check what it finds."""
        steps, at, found = 0, 0, []
        while at <= len(text):
            used, end = self._run(text, at, whole=method == "fullmatch", most=_MOST - steps)
            steps += used
            if end is not None:
                found.append((at, end))
            if method not in ("search", *_ALL) or (method == "search" and found):
                break
            at = end if end is not None and end > at else at + 1
        if method in _ALL:
            expected = [match.span() for match in self.compiled.finditer(text)]
        else:
            match = getattr(self.compiled, method)(text)
            expected = [match.span()] if match else []
        assert found == expected, (self.compiled, method, text)
        return steps

    def hostile(self, rng: random.Random, count: int) -> Iterator[Callable[[int], str]]:
        """Yield makers of texts of any length: begun as a match, then pumped, and ended."""
        seen = set()
        for _ in range(count):
            sample = self._sample(rng)
            start = rng.randint(0, len(sample))
            size = rng.choice((1, 1, 2, 3, len(sample)))
            pump = sample[start : start + size] or rng.choice(_OUTSIDERS)
            ends = ("", rng.choice(_OUTSIDERS), sample[start:], self._sample(rng)[-3:])
            case = (sample[: start + rng.choice((0, size))], pump, rng.choice(ends))
            if case not in seen:
                seen.add(case)
                yield partial(_pumped, *case)

    def _sample(self, rng: random.Random) -> str:
        """Return a text that the pattern matches, if no condition of a place is in the way."""
        at, text = 0, ""
        while at < len(self._program):
            instruction = self._program[at]
            at += 1
            if isinstance(instruction, Char):
                text += rng.choice(instruction.some)
            elif isinstance(instruction, Split):
                # Seldom another turn of a loop, for a bound on the whole.
                later = instruction.first < at - 1 and rng.random() < 0.7
                at = instruction.second if later else rng.choice(instruction)
            elif isinstance(instruction, Jump):
                at = instruction.to
        return text

    def _run(self, text: str, start: int, whole: bool, most: int) -> tuple[int, int | None]:
        """Return the steps of a match that begins at a place, and where it ends, if it does."""
        program, steps, stack = self._program, 0, [(0, start)]
        while stack:
            at, position = stack.pop()
            while True:
                steps += 1
                if steps > most:
                    raise TooManyStepsError(self.compiled.pattern, text[:80])
                if at == len(program):
                    if not whole or position == len(text):
                        return steps, position
                    break
                instruction = program[at]
                at += 1
                if isinstance(instruction, Char):
                    if position == len(text) or not instruction.is_right(text[position]):
                        break
                    position += 1
                elif isinstance(instruction, Split):
                    stack.append((instruction.second, position))
                    at = instruction.first
                elif isinstance(instruction, Jump):
                    at = instruction.to
                elif not instruction.holds(text, position):
                    break
        return steps, None

    def _add(self, tree: Any) -> None:
        for operation, argument in tree:
            getattr(self, f"_{operation}".lower())(argument)

    def _literal(self, code: int) -> None:
        self._take(lambda char: char == chr(code))

    def _not_literal(self, code: int) -> None:
        self._take(lambda char: char != chr(code))

    def _any(self, _: None) -> None:
        self._take(lambda char: char != "\n" or bool(self._flags & re.DOTALL))

    def _assert(self, argument: Any) -> None:
        self._look(argument, is_there=True)

    def _assert_not(self, argument: Any) -> None:
        self._look(argument, is_there=False)

    def _look(self, argument: Any, is_there: bool) -> None:
        """Add a look ahead, whose own steps are a few, as it has no loops."""
        ahead = copy(self)
        ahead._program = []
        ahead._add(argument[1])
        assert not any(
            isinstance(one, Jump) and one.to < at for at, one in enumerate(ahead._program)
        )
        self._program.append(
            At(lambda text, at: (ahead._run(text, at, False, _MOST)[1] is not None) == is_there)
        )

    def _in(self, members: list[tuple[Any, Any]]) -> None:
        negated = str(members[0][0]) == "NEGATE"
        tests = [_MEMBERS[str(kind)](argument) for kind, argument in members[negated:]]
        self._take(lambda char: any(test(char) for test in tests) != negated)

    def _take(self, is_right: Callable[[str], bool]) -> None:
        ignores_case = self._flags & re.IGNORECASE

        def right(char: str) -> bool:
            return is_right(char) or (bool(ignores_case) and is_right(char.lower()))

        self._program.append(Char(right, "".join(filter(right, _CHARS))))

    def _at(self, where: Any) -> None:
        many = bool(self._flags & re.MULTILINE)
        holds = {
            "AT_BEGINNING": lambda text, at: at == 0 or (many and text[at - 1] == "\n"),
            "AT_END": lambda text, at: (
                at == len(text) or (text[at] == "\n" and (many or at == len(text) - 1))
            ),
            "AT_BOUNDARY": lambda text, at: _is_word(text, at - 1) != _is_word(text, at),
        }
        self._program.append(At(holds[str(where)]))

    def _subpattern(self, argument: Any) -> None:
        self._add(argument[-1])

    def _branch(self, argument: Any) -> None:
        jumps = []
        for branch in argument[1][:-1]:
            split = self._reserve()
            self._add(branch)
            jumps.append(self._reserve())
            self._program[split] = Split(split + 1, len(self._program))
        self._add(argument[1][-1])
        for jump in jumps:
            self._program[jump] = Jump(len(self._program))

    def _max_repeat(self, argument: Any) -> None:
        least, most, repeated = argument
        for _ in range(least):
            self._add(repeated)
        if most == parser.MAXREPEAT:
            split = self._reserve()
            self._add(repeated)
            self._program.append(Jump(split))
            self._program[split] = Split(split + 1, len(self._program))
            return
        splits = []
        for _ in range(least, most):
            splits.append(self._reserve())
            self._add(repeated)
        for split in splits:
            self._program[split] = Split(split + 1, len(self._program))

    def _reserve(self) -> int:
        self._program.append(Jump(0))
        return len(self._program) - 1


_CHARS = "".join(map(chr, range(127))) + "\u00e9"


def _is_word(text: str, at: int) -> bool:
    return 0 <= at < len(text) and _CATEGORIES["CATEGORY_WORD"](text[at])


def _category(name: Any) -> Callable[[str], bool]:
    positive = _CATEGORIES[str(name).replace("_NOT_", "_")]
    return (lambda char: not positive(char)) if "_NOT_" in str(name) else positive


_MEMBERS: dict[str, Callable[[Any], Callable[[str], bool]]] = {
    "LITERAL": lambda code: lambda char: char == chr(code),
    "RANGE": lambda ends: lambda char: ends[0] <= ord(char) <= ends[1],
    "CATEGORY": _category,
}
