"""A contiguous range of key groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from keygroups._checks import UPPER_BOUND_MAX_PARALLELISM, check_class, check_int, to_int
from keygroups.errors import InvalidTypeError

__all__ = ["KeyGroupRange"]
__dir__ = __all__.copy


@dataclass(frozen=True, slots=True, repr=False)
class KeyGroupRange:
    """The key groups `start_key_group..end_key_group`, both inclusive; immutable.

    Both are key group ids, 0 <= start_key_group <= end_key_group <= 32767. The one empty
    range is `KeyGroupRange.EMPTY`, which goes from 0 to -1 as in Flink.

    Raises InvalidValueError or InvalidTypeError for other bounds, IndexError for an index
    outside the range.

    Flink: org.apache.flink.runtime.state.KeyGroupRange. Unlike its `getKeyGroupId` and
    its iterator, indexing and iterating never run past the end.

    >>> r = KeyGroupRange(43, 85)
    >>> len(r), 43 in r, 86 in r, r[0], r[-1]
    (43, True, False, 43, 85)
    >>> r & KeyGroupRange(80, 127)
    KeyGroupRange(80, 85)
    """

    start_key_group: int
    end_key_group: int

    EMPTY: ClassVar[KeyGroupRange]

    def __post_init__(self) -> None:
        last = UPPER_BOUND_MAX_PARALLELISM - 1
        start = check_int("start_key_group", self.start_key_group, 0, last)
        end = check_int("end_key_group", self.end_key_group, start, last)
        object.__setattr__(self, "start_key_group", start)
        object.__setattr__(self, "end_key_group", end)

    def intersection(self, other: KeyGroupRange) -> KeyGroupRange:
        """Return the key groups in both ranges, `KeyGroupRange.EMPTY` if there are none.

        Raises InvalidTypeError if `other` is not a KeyGroupRange.

        Flink: KeyGroupRange.getIntersection.

        >>> KeyGroupRange(0, 3).intersection(KeyGroupRange(5, 9))
        KeyGroupRange.EMPTY
        """
        check_class("other", other, KeyGroupRange, "a KeyGroupRange")
        start = max(self.start_key_group, other.start_key_group)
        end = min(self.end_key_group, other.end_key_group)
        return KeyGroupRange(start, end) if start <= end else KeyGroupRange.EMPTY

    def __and__(self, other: object) -> KeyGroupRange:
        return self.intersection(other) if isinstance(other, KeyGroupRange) else NotImplemented

    def __len__(self) -> int:
        return self.end_key_group - self.start_key_group + 1

    def __contains__(self, key_group: object) -> bool:
        try:
            return to_int("key_group", key_group) in self._groups()
        except InvalidTypeError:
            return False

    def __iter__(self) -> Iterator[int]:
        return iter(self._groups())

    def __getitem__(self, index: int) -> int:
        return self._groups()[to_int("index", index)]

    def _groups(self) -> range:
        return range(self.start_key_group, self.end_key_group + 1)

    def __repr__(self) -> str:
        if not self:
            return "KeyGroupRange.EMPTY"
        return f"KeyGroupRange({self.start_key_group}, {self.end_key_group})"

    def __str__(self) -> str:
        return f"[{self.start_key_group}, {self.end_key_group}]"  # as prettyPrintInterval


def _empty() -> KeyGroupRange:
    empty = object.__new__(KeyGroupRange)  # past the check, which refuses it as Flink's does
    object.__setattr__(empty, "start_key_group", 0)
    object.__setattr__(empty, "end_key_group", -1)
    return empty


KeyGroupRange.EMPTY = _empty()
