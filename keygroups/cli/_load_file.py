"""Files that the command reads whole: the load of key groups, Kafka's ends, other small texts."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from keygroups._checks import UPPER_BOUND_MAX_PARALLELISM, check_int, show
from keygroups.errors import InvalidValueError
from keygroups.load import KeyGroupLoad

_LONGEST = 128 * UPPER_BOUND_MAX_PARALLELISM
"""The most characters of a file, many more than a line for each key group takes."""
_END = re.compile(r"([A-Za-z0-9._-]{1,249}):([0-9]{1,9}):([0-9]{1,18})")


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


def read_ends(path: str) -> dict[tuple[str, int], int]:
    """Read the ends of Kafka's partitions from a file, "-" for standard input.

    A line is such as orders:0:12345, as kafka-get-offsets.sh prints it.
    """
    ends: dict[tuple[str, int], int] = {}
    for number, line in enumerate(read_text("ends", path).splitlines(), 1):
        match = _END.fullmatch(line)
        if match is None:
            raise InvalidValueError(
                "ends must have a topic, a partition and its end in each line, such as "
                f"orders:0:12345, got {show(line)} in line {number} of {show(path)}"
            )
        topic, partition, end = match.groups()
        if (topic, int(partition)) in ends:
            raise InvalidValueError(f"partition {topic}:{partition} is twice in {show(path)}")
        ends[topic, int(partition)] = int(end)
    return ends


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
        with Path(path).open(encoding="utf-8-sig") as file:
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
