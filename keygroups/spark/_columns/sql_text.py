"""Column expressions written as SQL text.

A look-alike of `pyspark.sql.functions` and of `Column`, with just what our portable
expressions use, so that they have one definition: run on columns they are columns, run on
this they are text, for the body of a SQL function or of a lambda function.

Operators and casts are written as the functions that they are, `+`(a, b) or `int`(a), and the
names of functions in quotes. A parenthesis, CAST(a AS INT) or the keyword in SUBSTRING(a, b) may
begin several things to Spark's parser, which reads on to their end before it knows which. That
takes it seconds, and memory that it keeps.
"""

from __future__ import annotations

import datetime as dt
import inspect
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from itertools import count
from typing import Any

from pyspark.sql import types as T

# The Spark types whose names are functions too.
_CASTS = {
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double"),
    *("string", "binary", "date"),
}

_WHOLE = re.compile("-?[0-9]+L?")


def _function(name: str) -> Callable[..., SqlText]:
    """Make a method that writes a call of a function, or of an operator, on the expression."""

    def write(self: SqlText, *arguments: object) -> SqlText:
        return SqlText(f"`{name}`({', '.join(map(_text, (self, *arguments)))})")

    return write


class SqlText:
    """A SQL expression, with the operators of a Column."""

    def __init__(self, text: str, *, whens: str = "") -> None:
        self.text = text
        self._whens = whens  # the branches of an unfinished CASE

    __add__ = _function("+")
    __sub__ = _function("-")
    __mul__ = _function("*")
    __truediv__ = _function("/")
    __mod__ = _function("%")
    __lt__ = _function("<")
    __gt__ = _function(">")
    __le__ = _function("<=")
    __ge__ = _function(">=")
    __eq__ = _function("=")  # type: ignore[assignment]  # Column's is alike.
    __hash__ = None  # type: ignore[assignment]  # __eq__ does not compare
    __and__ = _function("and")
    __or__ = _function("or")
    __invert__ = _function("not")
    __neg__ = _function("negative")
    bitwiseAND = _function("&")
    bitwiseOR = _function("|")
    bitwiseXOR = _function("^")
    isNull = _function("isnull")
    isNotNull = _function("isnotnull")
    startswith = _function("startswith")
    rlike = _function("rlike")

    def __ne__(self, other: object) -> SqlText:  # type: ignore[override]  # Column's is alike.
        return ~(self == other)

    def cast(self, spark_type: str | T.DataType) -> SqlText:
        """Write a cast; a name must be one that means the same under all settings."""
        name = spark_type if isinstance(spark_type, str) else _type_text(spark_type)
        if name == "bigint" and _WHOLE.fullmatch(self.text):
            return SqlText(f"{self.text.rstrip('L')}L")  # No function that Spark has to look up.
        if name in _CASTS:
            return SqlText(f"`{name}`({self.text})")
        return SqlText(f"CAST({self.text} AS {name})")

    def between(self, low: object, high: object) -> SqlText:
        """Write a test for a range."""
        return (self >= low) & (self <= high)

    def isin(self, values: Iterable[object]) -> SqlText:
        """Write a test for one of several values."""
        return SqlText(f"({self.text} IN ({', '.join(map(_text, values))}))")

    def getItem(self, index: int) -> SqlText:
        """Write the element of an array."""
        return SqlText(f"{self.text}[{index}]")

    def getField(self, name: str) -> SqlText:
        """Write the field of a struct."""
        quoted = name.replace("`", "``")
        return SqlText(f"{self.text}.`{quoted}`")

    def alias(self, name: str) -> SqlText:
        """Write an expression with a name, inside struct()."""
        return SqlText(f"{self.text} AS {name}")

    def when(self, condition: object, value: object) -> SqlText:
        """Write one more branch of a CASE."""
        whens = f"{self._whens} WHEN {_text(condition)} THEN {_text(value)}"
        return SqlText(f"CASE{whens} END", whens=whens)

    def otherwise(self, value: object) -> SqlText:
        """Write the last branch of a CASE."""
        return SqlText(f"CASE{self._whens} ELSE {_text(value)} END")


class SqlFunctions:
    """Stands for `pyspark.sql.functions`: every function call becomes its SQL text."""

    def __init__(self) -> None:
        self._names = count()

    def __getattr__(self, name: str) -> Callable[..., SqlText]:
        def call(*arguments: object) -> SqlText:
            quoted = name if name == "struct" else f"`{name}`"  # a keyword, to name its fields
            return SqlText(f"{quoted}({', '.join(map(self._argument, arguments))})")

        return call

    def lit(self, value: object) -> SqlText:
        """Write a literal."""
        return SqlText(_text(value))

    def call_function(self, name: str, *arguments: object) -> SqlText:
        """Write a call of a function by its name."""
        return self.__getattr__(name)(*arguments)

    def when(self, condition: object, value: object) -> SqlText:
        """Write the first branch of a CASE."""
        return SqlText("").when(condition, value)

    def _argument(self, argument: object) -> str:
        if not callable(argument):
            return _text(argument)
        # Names that no other lambda of this expression has: an inner one would hide an outer.
        names = [f"x{next(self._names)}" for _ in inspect.signature(argument).parameters]
        body: Any = argument(*map(SqlText, names))
        parameters = names[0] if len(names) == 1 else f"({', '.join(names)})"
        return f"{parameters} -> {_text(body)}"


def _type_text(spark_type: T.DataType) -> str:
    """Return a type as SQL writes it, whatever `spark.sql.timestampType` is."""
    if isinstance(spark_type, T.StructType):
        fields = (f"`{field.name}`: {_type_text(field.dataType)}" for field in spark_type.fields)
        return f"STRUCT<{', '.join(fields)}>"
    if isinstance(spark_type, T.ArrayType):
        return f"ARRAY<{_type_text(spark_type.elementType)}>"
    if isinstance(spark_type, T.MapType):
        return f"MAP<{_type_text(spark_type.keyType)}, {_type_text(spark_type.valueType)}>"
    return (
        "timestamp_ltz" if isinstance(spark_type, T.TimestampType) else spark_type.simpleString()
    )


def _text(value: object) -> str:
    if isinstance(value, SqlText):
        return value.text
    if value is None:
        return "NULL"
    if isinstance(value, str):
        if any(part in value for part in ("\\", "'", "${")):
            # How to escape these depends on settings of Spark.
            return f"CAST(X'{value.encode().hex()}' AS STRING)"
        return f"'{value}'"
    if isinstance(value, float):
        return "double('Infinity')" if value == float("inf") else f"{value!r}D"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, dt.date):
        return f"DATE'{value}'"
    if isinstance(value, Decimal):
        return f"{value}BD"
    assert isinstance(value, int)
    return str(value) if -(2**31) <= value < 2**31 else f"{value}L"
