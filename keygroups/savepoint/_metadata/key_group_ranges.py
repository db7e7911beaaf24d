"""Some key groups of an operator, as ranges: many key groups take no more room than few."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter

from keygroups._checks import check_int, iterate
from keygroups.errors import InvalidValueError
from keygroups.key_group_range import KeyGroupRange

_end = attrgetter("end_key_group")


@dataclass(frozen=True, slots=True)
class KeyGroupRanges:
    """Key groups in order: `ranges` are sorted, and neither overlap nor touch."""

    ranges: tuple[KeyGroupRange, ...]

    @classmethod
    def of(cls, ranges: Iterable[tuple[int, int]]) -> KeyGroupRanges:
        """Make it of ranges (first, last) in any order: (4, 5), (0, 1), (2, 2) are 0-2 and 4-5."""
        joined: list[tuple[int, int]] = []
        for start, end in sorted(ranges):
            if joined and start <= joined[-1][1] + 1:
                start, last = joined.pop()
                end = max(end, last)
            joined.append((start, end))
        return cls(tuple(KeyGroupRange(start, end) for start, end in joined))

    def intersection(self, other: KeyGroupRange) -> KeyGroupRanges:
        """Return the key groups that are in a range too."""
        first = bisect_left(self.ranges, other.start_key_group, key=_end)
        past = bisect_left(self.ranges, other.end_key_group, first, key=_end) + 1
        return KeyGroupRanges(
            tuple(common for held in self.ranges[first:past] if (common := held & other))
        )

    def __len__(self) -> int:
        return sum(map(len, self.ranges))

    def __iter__(self) -> Iterator[int]:
        return (key_group for held in self.ranges for key_group in held)

    def __contains__(self, key_group: object) -> bool:
        if not isinstance(key_group, int):
            return False
        place = bisect_left(self.ranges, key_group, key=_end)
        return place < len(self.ranges) and key_group in self.ranges[place]


def check_key_groups(
    key_groups: Iterable[int] | None, max_parallelism: int, whose: str
) -> KeyGroupRanges:
    """Return key groups of 0..max_parallelism-1 as ranges, all for None.

    `whose` is the operator in the error: InvalidValueError or InvalidTypeError.
    """
    last = max_parallelism - 1
    if key_groups is None:
        return KeyGroupRanges.of([(0, last)])
    checked = set()
    for count, key_group in enumerate(iterate("key_groups", "ints", key_groups)):
        if count > last:
            raise InvalidValueError(
                f"key_groups must be at most {last + 1} ints, all that {whose} has, got more"
            )
        checked.add(check_int("key group", key_group, 0, last))
    return KeyGroupRanges.of((key_group, key_group) for key_group in checked)
