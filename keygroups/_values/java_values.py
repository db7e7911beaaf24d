"""Values of Java's own classes that Python has no class for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


class Instant(NamedTuple):
    """A moment that no datetime is exactly: seconds since the epoch, and nanoseconds above."""

    epoch_second: int
    nano: int


class LocalDate(NamedTuple):
    """A date of a year that Python has not: that of java.time goes to ±999,999,999."""

    year: int
    month: int
    day: int


class LocalTime(NamedTuple):
    """A time of day that has nanoseconds."""

    hour: int
    minute: int
    second: int
    nano: int


class LocalDateTime(NamedTuple):
    """A date and time of which Python has not the year or the nanoseconds."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    nano: int


@dataclass(frozen=True)
class Left:
    """The left one of an Either."""

    value: Any


@dataclass(frozen=True)
class Right:
    """The right one of an Either."""

    value: Any


@dataclass(frozen=True)
class Some:
    """What an Option or an Optional holds; one that is empty is None."""

    value: Any


@dataclass(frozen=True)
class Success:
    """The value of a Try of Scala."""

    value: Any


@dataclass(frozen=True)
class Failure:
    """The exception of a Try of Scala: its class, and the bytes that Kryo wrote."""

    java_class: str
    data: bytes


class Variant(NamedTuple):
    """A VARIANT: its value and its metadata, in the binary encoding of Parquet's variants."""

    value: bytes
    metadata: bytes


class Pojo:
    """An object of a class of the job: `java_class`, and its fields by name.

    A field is an item; and an attribute, where its name is none of this class's own.
    """

    __slots__ = ("_fields", "java_class")

    def __init__(self, java_class: str, fields: Mapping[str, Any]) -> None:
        self.java_class = java_class
        self._fields = dict(fields)

    def __getitem__(self, name: str) -> Any:
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)
