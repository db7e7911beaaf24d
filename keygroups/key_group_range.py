"""Ranges of key groups, and the subtasks that have them.

The formulas are those of org.apache.flink.runtime.state.KeyGroupRangeAssignment. Where Flink
leaves a bound unchecked (a key group or operator index out of range), these raise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from keygroups._checks import (
    UPPER_BOUND_MAX_PARALLELISM,
    check_bounds,
    check_class,
    check_int,
    check_parallelisms,
    to_int,
)
from keygroups.errors import InvalidTypeError, InvalidValueError

__all__ = [
    "DEFAULT_LOWER_BOUND_MAX_PARALLELISM",
    "KeyGroupRange",
    "compute_default_max_parallelism",
    "compute_key_group_range_for_operator_index",
    "compute_operator_index_for_key_group",
    "compute_operator_indexes_for_key_group_range",
]
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
        start, end = self.start_key_group, self.end_key_group
        if type(start) is type(end) is int and 0 <= start <= end <= last:
            return  # The common case: a savepoint makes a range for every subtask.
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
        return f"[{self.start_key_group}, {self.end_key_group}]"  # Flink: prettyPrintInterval.


def _empty() -> KeyGroupRange:
    empty = object.__new__(KeyGroupRange)  # The check refuses an empty range, as Flink's does.
    object.__setattr__(empty, "start_key_group", 0)
    object.__setattr__(empty, "end_key_group", -1)
    return empty


KeyGroupRange.EMPTY = _empty()


DEFAULT_LOWER_BOUND_MAX_PARALLELISM = 128
"""The least max parallelism that Flink derives by itself."""


def compute_key_group_range_for_operator_index(
    max_parallelism: int, parallelism: int, operator_index: int
) -> KeyGroupRange:
    """Return the key groups of one subtask.

    1 <= parallelism <= max_parallelism <= 32768 and 0 <= operator_index < parallelism.
    Raises ParallelismError, and InvalidValueError or InvalidTypeError for the index.

    Flink: KeyGroupRangeAssignment.computeKeyGroupRangeForOperatorIndex, which takes an
    index past the parallelism and answers with key groups that do not exist.

    >>> compute_key_group_range_for_operator_index(128, 3, 1)
    KeyGroupRange(43, 85)
    """
    max_parallelism, parallelism = check_parallelisms(max_parallelism, parallelism)
    index = check_int("operator_index", operator_index, 0, parallelism - 1)
    start = (index * max_parallelism + parallelism - 1) // parallelism
    end = ((index + 1) * max_parallelism - 1) // parallelism
    return KeyGroupRange(start, end)


def subtask_starts(max_parallelism: int, parallelism: int) -> list[int]:
    """Return the first key group of each subtask, and the max parallelism as the last item.

    That is much faster than a range for each; the arguments are ints that were checked.
    """
    rounding = parallelism - 1
    return [(i * max_parallelism + rounding) // parallelism for i in range(parallelism + 1)]


def ranges_imbalance(max_parallelism: int, parallelism: int) -> float:
    """Return the largest subtask's key groups over the mean; the arguments were checked."""
    return -(-max_parallelism // parallelism) * parallelism / max_parallelism


def compute_operator_index_for_key_group(
    max_parallelism: int, parallelism: int, key_group_id: int
) -> int:
    """Return the index of the subtask that a key group belongs to.

    1 <= parallelism <= max_parallelism <= 32768 and 0 <= key_group_id < max_parallelism.
    Raises ParallelismError, and InvalidValueError or InvalidTypeError for the key group.

    Flink: KeyGroupRangeAssignment.computeOperatorIndexForKeyGroup.

    >>> compute_operator_index_for_key_group(128, 3, 85)
    1
    """
    max_parallelism, parallelism = check_parallelisms(max_parallelism, parallelism)
    key_group = check_int("key_group_id", key_group_id, 0, max_parallelism - 1)
    return key_group * parallelism // max_parallelism


def compute_operator_indexes_for_key_group_range(
    max_parallelism: int, key_group_range: KeyGroupRange
) -> dict[int, int]:
    """Return the subtasks that have exactly these key groups: the index by the parallelism.

    1 <= max_parallelism <= 32768, and the range ends below it. At few parallelisms a subtask has
    exactly that range, and then only one; the result is in ascending order. Raises
    ParallelismError, and InvalidTypeError or InvalidValueError for the range, the empty one too.

    >>> compute_operator_indexes_for_key_group_range(720, KeyGroupRange(144, 179))
    {20: 4}
    """
    max_parallelism = check_bounds("max_parallelism", max_parallelism)
    check_class("key_group_range", key_group_range, KeyGroupRange, "a KeyGroupRange")
    if not key_group_range:
        raise InvalidValueError("key_group_range must have key groups, got KeyGroupRange.EMPTY")
    start, end = key_group_range.start_key_group, key_group_range.end_key_group
    check_int("end of key_group_range", end, start, max_parallelism - 1)
    size = len(key_group_range)
    # A subtask has `size` key groups only if the mean is less than one away from that.
    fewest = max_parallelism // (size + 1) + 1
    most = max_parallelism if size == 1 else (max_parallelism - 1) // (size - 1)
    return {
        parallelism: start * parallelism // max_parallelism
        for parallelism in range(fewest, most + 1)
        if (start - 1) * parallelism // max_parallelism
        < start * parallelism // max_parallelism
        == end * parallelism // max_parallelism
        < (end + 1) * parallelism // max_parallelism
    }


def compute_default_max_parallelism(operator_parallelism: int) -> int:
    """Return the max parallelism of a fresh job that sets none.

    1 <= operator_parallelism <= 32768, the parallelism that is declared, in the job or the
    configuration; the result is one and a half times that, rounded up to a power of two and kept
    in 128..32768. In reactive mode an operator without a declared one has 128, whatever number of
    subtasks runs. A job restored from a savepoint keeps the savepoint's instead. Raises
    ParallelismError.

    Flink: KeyGroupRangeAssignment.computeDefaultMaxParallelism.

    >>> compute_default_max_parallelism(85), compute_default_max_parallelism(86)
    (128, 256)
    """
    parallelism = check_bounds("operator_parallelism", operator_parallelism)
    power_of_two = 1 << (parallelism + parallelism // 2 - 1).bit_length()
    return min(max(power_of_two, DEFAULT_LOWER_BOUND_MAX_PARALLELISM), UPPER_BOUND_MAX_PARALLELISM)
