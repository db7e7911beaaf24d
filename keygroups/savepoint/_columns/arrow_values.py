"""Conversion between arrays of Arrow and the Python values of columns."""

from __future__ import annotations

from collections.abc import Sequence
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
    try:
        return pa.array(values, data_type)
    except (pa.ArrowException, OverflowError) as error:
        raise InvalidValueError(f"a value is none of {data_type}: {error}") from None
