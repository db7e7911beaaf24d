"""The accumulators of Flink SQL's aggregate functions over rows that are retracted too.

Each is what Flink 2.3 runs where its input has all four kinds of rows: Count1AggFunction,
CountAggFunction, SumWithRetractAggFunction, MinWithRetractAggFunction and
MaxWithRetractAggFunction, and for DISTINCT the code of DistinctAggCodeGen. An accumulator is a
list with one value for each of `fields`; what grows with the input is in a map state.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from pyspark.sql import types as T

from keygroups._checks import show
from keygroups.errors import InvalidTypeError
from keygroups.spark._columns.key_columns import cast_advice, simple_type
from keygroups.spark._group_by.map_view import MapView

_BITS: dict[type[T.DataType], int] = {
    T.ByteType: 8,
    T.ShortType: 16,
    T.IntegerType: 32,
    T.LongType: 64,
}
_LONG = T.LongType()


class Aggregate(ABC):
    """One of the aggregates of a group.

    `fields` names and types the accumulator, which starts as `first`; `map_key` is the type of
    the values in its map state, or None where it needs none. `name` is that of the function,
    `column` the name of its column or "*", and `takes` the type of that as Spark's JSON has it,
    or "*".
    """

    name: str
    fields: dict[str, T.DataType]
    first: tuple[Any, ...]
    result_type: T.DataType = _LONG
    map_key: T.DataType | None = None

    def __init__(self, column: str, value_type: T.DataType) -> None:
        self.column = column
        self.takes = column if column == "*" else value_type.jsonValue()

    @abstractmethod
    def add(self, acc: list[Any], value: Any, view: MapView) -> None:
        """Accumulate the value of a row that is there now."""

    @abstractmethod
    def retract(self, acc: list[Any], value: Any, view: MapView) -> None:
        """Take back the value of a row that is no longer there."""

    def result(self, acc: list[Any]) -> Any:
        """Return the aggregate of the values so far."""
        return acc[0]


class Count(Aggregate):
    """COUNT(*), where `column` is "*", or COUNT(column), which leaves nulls out."""

    name = "count"
    fields = {"count": _LONG}  # noqa: RUF012 (nobody changes it)
    first = (0,)

    def __init__(self, column: str, value_type: T.DataType) -> None:
        super().__init__(column, value_type)
        self._nulls = column == "*"

    def add(self, acc: list[Any], value: Any, view: MapView) -> None:
        acc[0] += self._nulls or value is not None

    def retract(self, acc: list[Any], value: Any, view: MapView) -> None:
        acc[0] -= self._nulls or value is not None


class Sum(Aggregate):
    """SUM(column), of the column's own type: an integer wraps round, as in Java."""

    name = "sum"
    first = (None, 0)

    def __init__(self, column: str, value_type: T.DataType) -> None:
        super().__init__(column, value_type)
        self._bits = _BITS.get(type(value_type), 0)
        if not self._bits and not isinstance(value_type, T.DoubleType):
            raise _refused("sum", column, value_type, "an integer type or double")
        self._zero: Any = 0 if self._bits else 0.0
        self._beyond = 1 << self._bits - 1 if self._bits else math.inf
        self.result_type = value_type
        self.fields = {"sum": value_type, "count": _LONG}

    def add(self, acc: list[Any], value: Any, view: MapView) -> None:
        if value is not None:
            if acc[0] is not None:
                value = acc[0] + value
                if not -self._beyond <= value < self._beyond:
                    value = self._wrap(value)
            acc[0] = value
            acc[1] += 1

    def retract(self, acc: list[Any], value: Any, view: MapView) -> None:
        if value is not None:
            acc[0] = self._wrap((self._zero if acc[0] is None else acc[0]) - value)
            acc[1] -= 1

    def result(self, acc: list[Any]) -> Any:
        return acc[0] if acc[1] else None

    def _wrap(self, number: Any) -> Any:
        if not self._bits:
            return number
        half = self._beyond
        return (number + half) % (2 * half) - half


class Extreme(Aggregate):
    """MIN(column) or MAX(column): the extreme of the values in a map state, kept beside it.

    The number of values is kept too, as Flink keeps it: not that of the map, of which entries
    may have expired.
    """

    first = (None, 0)

    def __init__(self, column: str, value_type: T.DataType) -> None:
        super().__init__(column, value_type)
        if not _is_ordered(value_type):
            raise _refused(self.name, column, value_type, "an integer type, string or date")
        self.map_key = value_type
        self.result_type = value_type
        self.fields = {self.name: value_type, "size": _LONG}

    def add(self, acc: list[Any], value: Any, view: MapView) -> None:
        if value is None:
            return
        if acc[1] == 0 or self._beats(value, acc[0]):
            acc[0] = value
        count = view.get(value) + 1
        view.put(value, count)
        acc[1] += count == 1

    def retract(self, acc: list[Any], value: Any, view: MapView) -> None:
        if value is None:
            return
        count = view.get(value) - 1
        view.put(value, count)
        if count:  # A count below 0 stays in the map, and is not in the size.
            return
        acc[1] -= 1
        if acc[1] == 0:
            acc[0] = None
        elif value == acc[0]:
            self._look_again(acc, view)

    def result(self, acc: list[Any]) -> Any:
        return acc[0] if acc[1] > 0 else None

    @abstractmethod
    def _beats(self, value: Any, other: Any) -> bool:
        """Return whether a value goes before another."""

    def _look_again(self, acc: list[Any], view: MapView) -> None:
        is_set = False
        for value, _ in view.entries():
            if not is_set or self._beats(value, acc[0]):
                acc[0], is_set = value, True
        if not is_set:  # All other values have expired.
            acc[:] = self.first


class Min(Extreme):
    """MIN(column)."""

    name = "min"

    def _beats(self, value: Any, other: Any) -> bool:
        return bool(value < other)


class Max(Extreme):
    """MAX(column)."""

    name = "max"

    def _beats(self, value: Any, other: Any) -> bool:
        return bool(value > other)


class CountDistinct(Aggregate):
    """COUNT(DISTINCT column): one entry of a map state for each value, with its multiplicity."""

    name = "count_distinct"
    fields = {"count": _LONG}  # noqa: RUF012 (nobody changes it)
    first = (0,)

    def __init__(self, column: str, value_type: T.DataType) -> None:
        super().__init__(column, value_type)
        if not _is_ordered(value_type):
            raise _refused("count_distinct", column, value_type, "an integer type, string or date")
        self.map_key = value_type

    def add(self, acc: list[Any], value: Any, view: MapView) -> None:
        if value is not None:
            count = view.get(value) + 1
            view.put(value, count)
            acc[0] += count == 1

    def retract(self, acc: list[Any], value: Any, view: MapView) -> None:
        if value is not None:
            count = view.get(value) - 1
            view.put(value, count)
            acc[0] -= count == 0


AGGREGATES: dict[str, Callable[[str, T.DataType], Aggregate]] = {
    aggregate.name: aggregate for aggregate in (Count, Sum, Min, Max, CountDistinct)
}


def _is_ordered(value_type: T.DataType) -> bool:
    """Return whether values of a type are counted and compared here as Flink does it."""
    return type(value_type) in (*_BITS, T.DateType) or simple_type(value_type) == "string"


def _refused(name: str, column: str, value_type: T.DataType, takes: str) -> InvalidTypeError:
    return InvalidTypeError(
        f"{name} takes a column of {takes}, got {show(column)} of {value_type.simpleString()}"
        f"{cast_advice(value_type, takes)}"
    )
