"""From arrays of Arrow to the Python values of key types."""

from __future__ import annotations

from itertools import islice
from typing import Any

from keygroups import types
from keygroups._checks import show
from keygroups.errors import InvalidValueError
from keygroups.types import KeyType


def values(name: str, array: Any, key_type: KeyType) -> list[Any]:
    """Return the values of an array that holds a key type, None for null.

    Raises InvalidValueError with `name` for text that is not UTF-8, which Spark can hold.
    """
    if isinstance(key_type, types.LIST):
        return lists(name, array, key_type.element)
    if isinstance(key_type, (types.TUPLE, types.ROW)):
        fields = zip(array.flatten(), key_type.fields)  # without what a null struct has in it
        rows = zip(*(values(name, field, part) for field, part in fields))
        is_valid = array.is_valid().to_pylist()
        return [row if valid else None for row, valid in zip(rows, is_valid)]
    try:
        found: list[Any] = array.to_pylist()
    except UnicodeDecodeError as error:
        raise InvalidValueError(f"{name} must be UTF-8, got {show(error.object)}") from None
    return found


def lists(name: str, array: Any, element_type: KeyType) -> list[list[Any] | None]:
    """Return the lists of an array of lists, as `values` does."""
    elements = iter(values(name, array.flatten(), element_type))  # without what a null has in it
    lengths = array.value_lengths().to_pylist()
    return [None if length is None else list(islice(elements, length)) for length in lengths]
