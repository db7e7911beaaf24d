"""Files that the command reads whole: the load of key groups, and other small texts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from keygroups._checks import UPPER_BOUND_MAX_PARALLELISM, check_int, show
from keygroups.errors import InvalidValueError
from keygroups.load import KeyGroupLoad

_LONGEST = 128 * UPPER_BOUND_MAX_PARALLELISM
"""The most characters of a file, many more than a line for each key group takes."""


def read_load(path: str, max_parallelism: int) -> KeyGroupLoad:
    """Read a load from a file, "-" for standard input."""
    text = read_text("load", path)
    if text.lstrip().startswith("["):
        return KeyGroupLoad(max_parallelism, _read_json(path, text))
    weights: dict[int, float] = {}
    for number, line in enumerate(text.splitlines(), 1):
        try:
            group, weight = map(_number, line.split())
        except ValueError:
            raise InvalidValueError(
                f"load must have a key group and its weight in each line, got {show(line)} in "
                f"line {number} of {show(path)}"
            ) from None
        # The check bounds the number, as ints of one hash could make the dict slow.
        key_group = check_int("key group of weights", group, 0, max_parallelism - 1)
        if key_group in weights:
            raise InvalidValueError(f"key group {key_group} is twice in {show(path)}")
        weights[key_group] = weight
    return KeyGroupLoad(max_parallelism, weights)


def read_text(name: str, path: str) -> str:
    """Return the text of a file, "-" for standard input, or raise with `name`."""
    try:
        text = _read(path)
    except (OSError, ValueError) as error:  # ValueError is for bytes that are no text.
        raise InvalidValueError(f"{name} cannot be read from {show(path)}: {error}") from None
    if len(text) > _LONGEST:
        raise InvalidValueError(
            f"{name} must be at most {_LONGEST} characters, got more from {show(path)}"
        )
    return text


def _read(path: str) -> str:
    if path != "-":
        with Path(path).open(encoding="utf-8") as file:
            return file.read(_LONGEST + 1)
    if sys.stdin is None:
        raise ValueError("standard input is closed")
    return sys.stdin.read(_LONGEST + 1)


def _read_json(path: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidValueError(f"load of {show(path)} is not JSON: {error}") from None


def _number(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        return float(text)
