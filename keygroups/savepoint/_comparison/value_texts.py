"""Texts of two values that differ: of long ones the part that does, so that no pair is equal."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from keygroups._checks import exact_repr
from keygroups._values.java_values import Pojo
from keygroups._values.rows import Row
from keygroups.errors import printable, short
from keygroups.savepoint._comparison.contents import exact

_BEFORE = 8  # characters before those that differ
_LONGEST_NAME = 30  # characters of a key or a field
_NOTHING = "none"
_LENGTH = ", number of elements"
_MISSING = object()


def change_text(own: Any, other: Any, most: int) -> str:
    """Return two values that are not equal, such as "7 -> 8", each of about `most` characters.

    Where they are longer it is the part that differs: the numbers of elements of lists of 10 and
    1,000, a field of a POJO, an element of a list, characters of a text.
    """
    texts = [printable(exact_repr(value)) for value in (own, other)]
    if max(map(len, texts)) <= most:
        return _arrow(texts, most)
    path = ""
    while (step := _first_difference(own, other)) is not None:
        name, own, other = step
        path += name
    texts = [
        _NOTHING if value is _MISSING else printable(exact_repr(value)) for value in (own, other)
    ]
    changed = _arrow(texts, most)
    return f"{path.removeprefix(', ').removeprefix('.').lstrip()}: {changed}" if path else changed


def text_change(own: str, other: str, most: int) -> str:
    """Return two texts that are not equal: of longer ones than `most` the part that differs."""
    return _arrow([own, other], most)


def _arrow(texts: list[str], most: int) -> str:
    if texts[0] == texts[1]:  # such as two NaNs of other bits
        return f"{_window(texts[0], 0, most)}, of other bytes"
    start = 0
    if max(map(len, texts)) > most:
        pairs = enumerate(zip(*texts))
        first = next((at for at, (one, other) in pairs if one != other), min(map(len, texts)))
        start = max(0, first - _BEFORE)
    return " -> ".join(_window(text, start, most) for text in texts)


def _window(text: str, start: int, most: int) -> str:
    """Return characters of a text from the one of a number on, with "..." where others are."""
    end = "..." if len(text) > start + most else ""
    return f"{'...' if start else ''}{text[start : start + most]}{end}"


def _first_difference(own: Any, other: Any) -> tuple[str, Any, Any] | None:
    """Return the name of the first part that differs, and that part of both; None without any.

    For [1, 2] and [1, 3] that is ("[1]", 2, 3), for lists of other lengths it is their lengths.
    """
    if type(own) is not type(other):
        return None
    if isinstance(own, (list, tuple, array)) and len(own) != len(other):
        return _LENGTH, len(own), len(other)
    parts = dict(_parts(own)), dict(_parts(other))
    for name in {**parts[0], **parts[1]}:
        first, second = (side.get(name, _MISSING) for side in parts)
        if first is _MISSING or second is _MISSING or exact(first) != exact(second):
            return short(name, _LONGEST_NAME), first, second
    return None


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a value, each with the text that stands for it behind the value's."""
    if isinstance(value, Pojo):
        yield " class", value.java_class
        yield from ((f".{name}", held) for name, held in value._asdict().items())
    elif isinstance(value, dict):
        yield from ((f"[{exact_repr(key)}]", held) for key, held in value.items())
    elif isinstance(value, (set, frozenset)):
        yield from ((f"[{exact_repr(element)}]", element) for element in value)
    elif is_dataclass(value):
        yield from ((f".{field.name}", getattr(value, field.name)) for field in fields(value))
    elif isinstance(value, (list, tuple, array)):
        names = getattr(value, "_fields", None) or getattr(value, "names", None)
        for number, held in enumerate(value):
            yield (f".{names[number]}" if names else f"[{number}]"), held
        if isinstance(value, Row):
            yield " kind", value.row_kind
