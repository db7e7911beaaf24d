"""Values of Java's classes without a counterpart in Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import FrozenInstanceError, dataclass
from typing import Any, NamedTuple

from keygroups._checks import exact_repr, record_repr, show
from keygroups.errors import InvalidTypeError


class Instant(NamedTuple):
    """A moment beyond Python's datetimes: seconds since the epoch, and nanoseconds above."""

    epoch_second: int
    nano: int


class LocalDate(NamedTuple):
    """A date of a year beyond Python's; those of java.time go to ±999,999,999."""

    year: int
    month: int
    day: int


class LocalTime(NamedTuple):
    """A time of day with nanoseconds."""

    hour: int
    minute: int
    second: int
    nano: int


class LocalDateTime(NamedTuple):
    """A date and time with a year beyond Python's, or with nanoseconds."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    nano: int


@dataclass(frozen=True)
class Left:
    """The left side of an Either, with its value."""

    value: Any

    def __repr__(self) -> str:
        return record_repr(self)


@dataclass(frozen=True)
class Right:
    """The right side of an Either, with its value."""

    value: Any

    def __repr__(self) -> str:
        return record_repr(self)


@dataclass(frozen=True)
class Some:
    """An Option or an Optional with a value; an empty one is None."""

    value: Any

    def __repr__(self) -> str:
        return record_repr(self)


@dataclass(frozen=True)
class Success:
    """The value of a Try of Scala."""

    value: Any

    def __repr__(self) -> str:
        return record_repr(self)


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

    `java_class` is the full name of its class, `fields` a mapping of the names of its fields to
    their values. A field is an item, and an attribute too unless its name is taken (`java_class`,
    `_asdict`, or two underscores at the start). Iterating gives the names, and `_asdict()` a
    dict. A Pojo cannot be changed, and equals another of the same class with equal fields. Raises
    InvalidTypeError for a class or names that are no str, or fields that are no mapping.

    Flink: PojoSerializer, whose fields have names and may be null.

    >>> order = Pojo("x.Order", {"id": 5, "total": None})
    >>> order.id, order["id"], list(order), "total" in order, len(order)
    (5, 5, ['id', 'total'], True, 2)
    >>> order
    Pojo('x.Order', {'id': 5, 'total': None})
    """

    __slots__ = ("__values", "java_class")
    java_class: str
    __values: dict[str, Any]

    def __new__(cls, java_class: str, fields: Mapping[str, Any]) -> Pojo:
        """Return a Pojo with a copy of the fields."""
        if not isinstance(java_class, str):
            raise InvalidTypeError(f"java_class must be a str, got {show(java_class)}")
        if type(fields) is not dict and not isinstance(fields, Mapping):
            raise InvalidTypeError(f"fields must be a mapping, got {show(fields)}")
        values: dict[Any, Any] = dict(fields)
        try:
            "".join(values)  # the fastest look at all of them
        except TypeError:
            name = next(name for name in values if not isinstance(name, str))
            raise InvalidTypeError(f"names of fields must be str, got {show(name)}") from None
        return pojo_of(java_class, values)

    def __getitem__(self, name: str) -> Any:
        return self.__values[name]

    def __getattr__(self, name: str) -> Any:
        # Python looks up names such as __deepcopy__ on any object: they are never fields.
        if not name.startswith(("__", "_Pojo__")) and name in self.__values:
            return self.__values[name]
        raise AttributeError(f"a Pojo of {show(self.java_class)} has no field {show(name)}")

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __iter__(self) -> Iterator[str]:
        return iter(self.__values)

    def __len__(self) -> int:
        return len(self.__values)

    def __contains__(self, name: object) -> bool:
        return name in self.__values

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pojo):
            return NotImplemented
        return self.java_class == other.java_class and self.__values == other.__values

    def __hash__(self) -> int:
        return hash((self.java_class, frozenset(self.__values.items())))

    def __repr__(self) -> str:
        return f"Pojo({self.java_class!r}, {exact_repr(self.__values)})"

    def _asdict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return dict(self.__values)

    def __reduce__(self) -> tuple[type[Pojo], tuple[str, dict[str, Any]]]:
        return Pojo, (self.java_class, self.__values)


_new = object.__new__
_set_class = vars(Pojo)["java_class"].__set__
_set_values = vars(Pojo)["_Pojo__values"].__set__


def fields_of(pojo: Pojo) -> Mapping[str, Any]:
    """Return the fields of a Pojo by name, without a copy."""
    fields: Mapping[str, Any] = pojo._Pojo__values
    return fields


def pojo_of(java_class: str, values: dict[str, Any]) -> Pojo:
    """Return a Pojo that keeps `values` itself, without checks, which would double the time."""
    pojo = _new(Pojo)
    _set_class(pojo, java_class)
    _set_values(pojo, values)
    return pojo
