"""Values of keyed state without a counterpart in Python: rows with a kind, windows, TTL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from keygroups._checks import check_choice, check_str, exact_repr, record_repr, show
from keygroups.errors import InvalidTypeError, InvalidValueError


class TimeWindow(NamedTuple):
    """A time window: its start, included, and its end, excluded, in epoch milliseconds."""

    start: int
    end: int


class GlobalWindow(NamedTuple):
    """The one window of Flink's GlobalWindows."""


class TtlValue(NamedTuple):
    """A value with the time of its last access, in epoch milliseconds."""

    last_access: int
    value: Any

    def __repr__(self) -> str:
        return record_repr(self)


ROW_KINDS = ("+I", "-U", "+U", "-D")
"""The row kinds in the order of RowKind.toByteValue()."""


class Row(tuple[Any, ...]):
    """The fields of a Row, or of a row of Flink SQL, a tuple; `row_kind` is "+I" to "-D".

    It is equal to another of the same kind, and to a tuple, which has none, if it is "+I". `names`
    are those of its fields where a PyFlink job has declared some, else empty; each field is then
    an attribute too. They make no difference to what it is equal to.
    """

    row_kind: str = "+I"
    names: tuple[str, ...] = ()

    def __new__(
        cls, values: Sequence[Any], row_kind: str = "+I", names: Sequence[str] = ()
    ) -> Row:
        """Return a row of a kind; raises InvalidTypeError or InvalidValueError."""
        if not isinstance(values, (tuple, list)):
            raise InvalidTypeError(f"values must be a tuple or a list, got {show(values)}")
        kind = 0
        if row_kind is not cls.row_kind:  # the default, of most rows
            kind = ROW_KINDS.index(check_choice("row_kind", row_kind, ROW_KINDS))
        row = row_of_kind(values, kind)
        return row.named(names) if names else row

    def named(self, names: Sequence[str]) -> Row:
        """Return the row with names for its fields; raises as the class does."""
        if not isinstance(names, (tuple, list)):
            raise InvalidTypeError(f"names must be a tuple or a list, got {show(names)}")
        checked = tuple(check_str("name of a field", name) for name in names)
        if len(checked) != len(self):
            raise InvalidValueError(f"names must be {len(self)}, got {len(checked)}")
        row = row_of_kind(self, ROW_KINDS.index(self.row_kind))
        row.names = checked
        return row

    def __getattr__(self, name: str) -> Any:
        if name not in self.names:
            raise AttributeError(f"a row of {', '.join(self.names) or 'no names'} has no {name}")
        return self[self.names.index(name)]

    def __repr__(self) -> str:
        names = f", {self.names!r}" if self.names else ""
        return f"Row({exact_repr(tuple(self))}, {self.row_kind!r}{names})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple):
            return NotImplemented
        return tuple.__eq__(self, other) and self.row_kind == getattr(other, "row_kind", "+I")

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __reduce__(self) -> tuple[object, ...]:
        return Row, (tuple(self), self.row_kind, self.names)


def row_of_kind(values: Iterable[Any], kind: int) -> Row:
    """Return a row of the kind with a number, 0..3, without checks."""
    row = tuple.__new__(Row, values)
    if kind:  # "+I" is the class's attribute, so that most rows need no `__dict__`.
        row.row_kind = ROW_KINDS[kind]
    return row
