"""What all key types have in common: they are values, made of other key types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar, NoReturn

from keygroups._checks import MAX_DEPTH, show
from keygroups.errors import InvalidTypeError, InvalidValueError


class KeyType:
    """The base of all key types; immutable, since hashers are kept by key type."""

    __slots__ = ()

    parts: tuple[KeyType, ...] = ()
    """The key types that this one is made of: fields, elements, keys and values."""

    is_whole_key: ClassVar[bool] = False
    """Whether it is a key by itself and never a part of one."""

    _depth = 0

    def walk(self) -> Iterator[KeyType]:
        """Yield this key type, its parts, and theirs."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise InvalidTypeError(f"key type {self!r} is immutable")

    def __delattr__(self, name: str) -> NoReturn:
        raise InvalidTypeError(f"key type {self!r} is immutable")


class ParametricType(KeyType):
    """A key type made of other things: equal where class and arguments are equal."""

    __slots__ = ("_arguments", "_depth", "_hash", "parts")

    _arguments: tuple[object, ...]
    _depth: int
    _hash: int
    parts: tuple[KeyType, ...]

    def __init__(
        self, *arguments: object, parts: tuple[KeyType, ...] = (), **attributes: object
    ) -> None:
        """Set the arguments that make the type, the key types among them, and attributes."""
        attributes["_depth"] = _check_parts(type(self).__name__, parts)
        attributes |= {"_arguments": arguments, "parts": parts}
        attributes["_hash"] = hash((type(self), arguments))
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._arguments == other._arguments

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._arguments))})"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self._arguments


def _check_parts(owner: str, parts: Iterable[object]) -> int:
    """Check what a key type is made of, and return how deep it nests."""
    depth = 0
    for index, part in enumerate(parts):
        if not isinstance(part, KeyType):
            raise InvalidTypeError(
                f"{owner} is made of key types such as INT or SQL_DATE('UTC'), "
                f"got {show(part)} at position {index}"
            )
        if part.is_whole_key:
            raise InvalidTypeError(
                f"{owner} cannot hold {show(part)} at position {index}: that is a whole key in "
                "Flink"
            )
        depth = max(depth, part._depth)
    if depth >= MAX_DEPTH:
        raise InvalidValueError(f"key types may nest at most {MAX_DEPTH} deep")
    return depth + 1
