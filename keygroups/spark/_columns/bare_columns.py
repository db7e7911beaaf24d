"""PySpark's columns and functions, without its notes of where in Python each was called.

From Spark 4.0 on, an operator of a classic column first tells the JVM the line of Python that it
is in, for messages of errors, which takes ten calls into the JVM where the operator takes one. Our
lines say nothing to who wrote the query, and a row of 50 fields has a thousand of them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

from pyspark.sql import functions as F

_ClassicColumn: Any = None
with suppress(ImportError):  # Spark before 4.0, and a PySpark of Spark Connect alone, have none.
    from pyspark.sql.classic.column import Column as _ClassicColumn

_MOST_LITERALS = 1_000


class BareFunctions:
    """Stands for `pyspark.sql.functions`: the columns that come and go make no notes.

    Literals are made once, as those of many fields are the same. They are of one JVM.
    """

    def __init__(self) -> None:
        self._literals: dict[tuple[type, object], Any] = {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(F, name)

        def call(*arguments: Any) -> Any:
            return bare(function(*map(_of_bare_columns, arguments)))

        return call

    def lit(self, value: Any) -> Any:
        """Return a literal, the same column for the same value."""
        if not isinstance(value, (int, str)) or len(self._literals) == _MOST_LITERALS:
            return bare(F.lit(value))
        key = type(value), value
        if key not in self._literals:
            self._literals[key] = bare(F.lit(value))
        return self._literals[key]


def bare(thing: Any) -> Any:
    """Return a classic column of PySpark as one that makes no notes, and all else as it is."""
    return _BareColumn(thing._jc) if type(thing) is _ClassicColumn else thing


def noted(column: Any) -> Any:
    """Return a column as PySpark has it."""
    return _ClassicColumn(column._jc) if type(column) is _BareColumn else column


def _of_bare_columns(argument: Any) -> Any:
    """Return an argument of a function of PySpark; if it is a lambda, one of bare columns."""
    if not callable(argument):
        return argument

    @wraps(argument)  # PySpark counts its parameters.
    def body(*columns: Any) -> Any:
        return argument(*map(bare, columns))

    return body


def _without_notes(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        return bare(method(*arguments))

    return call


def _bare_class() -> Any:
    if _ClassicColumn is None:
        return None
    methods = {
        name: _without_notes(member.__wrapped__)
        for name, member in vars(_ClassicColumn).items()
        if hasattr(member, "__wrapped__")
    }
    return type("BareColumn", (_ClassicColumn,), methods)


_BareColumn = _bare_class()
