"""From arrays of Arrow to the Python values of types."""

from __future__ import annotations

from typing import Any

from keygroups._checks import show
from keygroups.errors import InvalidValueError
from keygroups.spark._savepoint.columns import SparkColumn


def values(name: str, array: Any, column: SparkColumn) -> list[Any]:
    """Return the values of an array of a column's type, None for null.

    Raises InvalidValueError with `name` for what Spark can hold and Python cannot: text that is
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
