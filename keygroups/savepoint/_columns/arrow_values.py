"""Conversion between arrays of Arrow and the Python values of columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from keygroups._checks import show
from keygroups.errors import InvalidValueError
from keygroups.savepoint._columns.columns import ArrowColumn


def values(name: str, array: Any, column: ArrowColumn) -> list[Any]:
    """Return the values of an array of a column's type, None for null.

    Raises InvalidValueError with `name` for what Arrow can hold and Python cannot: text that is
    not UTF-8, dates beyond the years 1 to 9999.
    """
    try:
        return column.restore(array)
    except UnicodeDecodeError as error:
        raise InvalidValueError(f"{name} must be UTF-8, got {show(error.object)}") from None
    except OverflowError:
        raise InvalidValueError(f"{name} must be of the years 1 to 9999, got another") from None
    except InvalidValueError as error:
        raise InvalidValueError(f"{name}: {error}") from None


def arrow_array(values: Sequence[Any], data_type: pa.DataType) -> Any:
    """Return an array of converted values; InvalidValueError for one that does not fit."""
    paired = _paired(data_type)
    if paired is not None:
        values = [*map(paired, values)]
    try:
        return pa.array(values, data_type)
    except (pa.ArrowException, OverflowError) as error:
        raise InvalidValueError(f"a value is none of {data_type}: {error}") from None


def _paired(data_type: pa.DataType) -> Callable[[Any], Any] | None:
    """Return the function that makes each dict in a value a list of pairs; None without maps.

    `pa.array` takes no dict for a map: {"a": 1} becomes [("a", 1)].
    """
    if pa.types.is_map(data_type):
        key, item = _paired(data_type.key_type) or _same, _paired(data_type.item_type) or _same
        return lambda value: value and [(key(k), item(v)) for k, v in value.items()]
    if pa.types.is_list(data_type):
        element = _paired(data_type.value_type)
        return element and (lambda value: value and [*map(element, value)])
    if pa.types.is_struct(data_type):
        parts = [_paired(field.type) for field in data_type]
        if any(parts):
            makes = [part or _same for part in parts]
            return lambda value: value and tuple(make(part) for make, part in zip(makes, value))
    return None


def _same(value: Any) -> Any:
    return value
