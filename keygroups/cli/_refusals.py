"""The errors of the library as a shell has them: options in place of Python's arguments."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

_START = re.compile(r"([a-z][a-z_]*) must ")
_BOUND = re.compile(r"\(([a-z_]+)\), got ")  # the argument that is the bound of another
_PAIR = re.compile(r"('[^']*'|\"[^\"]*\"|old): ('[^']*'|\"[^\"]*\"|new|\.\.\.)")
_MOVED = re.compile(r"\bmoved=\{([^{}]*)\}")
_ALLOW = re.compile(r"\ballow=\[('[^']*'|\"[^\"]*\")\]")
_SAME = {
    "new_max_parallelism": "--set-max-parallelism",
    "savepoint_max_parallelism": "the savepoint's max parallelism",
    "operator_parallelism": "PARALLELISM",
    "key_type": "--type",
}
"""Arguments of the library that have other names in the command."""
_PHRASES = (
    ("or moved to say", "or --moved to say"),
    ("to_arrow_batch_reader", "--export"),
    (
        "keygroups.savepoint.change_max_parallelism writes",
        "`keygroups savepoint PATH --set-max-parallelism N --output NEW` writes",
    ),
)


def in_shell(text: str, parser: argparse.ArgumentParser | None) -> str:
    """Return an error's text with the options of a command; `parser` is the command's."""
    names = dict(_names(parser)) if parser is not None else {}
    if start := _START.match(text):
        name = names.get(start[1]) or _SAME.get(start[1], start[1])
        text = name + text[start.end(1) :]
    text = _BOUND.sub(lambda found: f"({names.get(found[1], found[1])}), got ", text)
    text = _MOVED.sub(lambda found: _moved(found[1]), text)
    text = _ALLOW.sub(lambda found: f"--allow {found[1]}", text)
    for ours, shells in _PHRASES:
        text = text.replace(ours, shells)
    return text


def _names(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """Yield the name of each argument in Python, with its option, or its name in the usage."""
    for action in parser._actions:
        long = [name for name in action.option_strings if name.startswith("--")]
        name = (long or action.option_strings or [str(action.metavar or action.dest)])[0]
        yield action.dest, name


def _moved(pairs: str) -> str:
    """Return a `moved` of Python as options."""
    found = _PAIR.finditer(pairs)
    options = [f"--moved {_plain(pair[1])}={_plain(pair[2])}" for pair in found]
    return " ".join(options)


def _plain(text: str) -> str:
    return {"old": "OLD", "new": "NEW", "...": "NEW"}.get(text, text.strip("'\""))
