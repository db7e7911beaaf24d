"""Measured weight per key group, and what it means for each parallelism."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from operator import sub

from keygroups.assignment import check_bounds, check_max_parallelism, check_parallelism
from keygroups.errors import InvalidTypeError, InvalidValueError, check_int, show

__all__ = ["KeyGroupLoad", "Recommendation", "evenness"]


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A parallelism, how uneven the load is at it, and why; `str()` says it in a line."""

    parallelism: int
    imbalance: float
    reason: str

    def __str__(self) -> str:
        return f"parallelism {self.parallelism}: imbalance {self.imbalance:.2f} ({self.reason})"


@dataclass(frozen=True, slots=True, init=False)
class KeyGroupLoad:
    """The weight of every key group: records, bytes, whatever was measured; immutable.

    `weights` holds one finite number >= 0 for each key group 0..max_parallelism-1, or maps
    key groups to such numbers, where those left out weigh 0. It answers for every
    parallelism, so the data is read once. Sums are exact, and rounded once where weights
    are floats; they are ints where all weights are.

    Raises ParallelismError for the max parallelism, InvalidValueError for a weight or a sum
    that is negative or not finite, for a wrong count and for an unknown key group,
    InvalidTypeError for what is no number.

    >>> load = KeyGroupLoad(4, [5, 1, 1, 1])
    >>> load.per_subtask(2), load.imbalance(2)
    ([6, 2], 1.5)
    >>> KeyGroupLoad(4, {0: 5, 3: 1}).weights
    (5, 0, 0, 1)
    """

    max_parallelism: int
    weights: tuple[float, ...]
    # Sums of the first n weights in units of 1/_scale, which makes every float an int.
    _sums: tuple[int, ...] = field(repr=False, compare=False)
    _scale: int = field(repr=False, compare=False)
    _is_int: bool = field(repr=False, compare=False)

    def __init__(
        self, max_parallelism: int, weights: Iterable[float] | Mapping[int, float]
    ) -> None:
        groups = check_max_parallelism(max_parallelism)
        if isinstance(weights, Mapping):
            weights = _in_order(groups, weights)
        if not isinstance(weights, Iterable):
            raise InvalidTypeError(
                f"weights must be an iterable or a mapping, got {show(weights)}"
            )
        checked = tuple(_check_weight(i, weight) for i, weight in enumerate(weights))
        if len(checked) != groups:
            raise InvalidValueError(
                f"weights must be {groups} numbers, one per key group of max_parallelism, "
                f"got {len(checked)}"
            )
        # The denominators are powers of two, so the largest is a multiple of each.
        ratios = [weight.as_integer_ratio() for weight in checked]
        scale = max(denominator for _, denominator in ratios)
        units = (numerator * (scale // denominator) for numerator, denominator in ratios)
        sums = tuple(accumulate(units, initial=0))
        if sums[-1] // scale > sys.float_info.max:
            raise InvalidValueError("weights must have a sum within the range of a float")
        object.__setattr__(self, "max_parallelism", groups)
        object.__setattr__(self, "weights", checked)
        object.__setattr__(self, "_sums", sums)
        object.__setattr__(self, "_scale", scale)
        object.__setattr__(self, "_is_int", all(isinstance(weight, int) for weight in checked))

    def weight_of(self, key_groups: Iterable[int]) -> float:
        """Return the weight of some key groups together, such as those of a KeyGroupRange.

        Each is in 0..max_parallelism-1. Raises InvalidValueError or InvalidTypeError.

        >>> KeyGroupLoad(4, [5, 1, 1, 1]).weight_of([0, 3])
        6
        """
        last = self.max_parallelism - 1
        groups = [check_int("key group", key_group, 0, last) for key_group in key_groups]
        return self._value(sum(self._sums[group + 1] - self._sums[group] for group in groups))

    def per_subtask(self, parallelism: int) -> list[float]:
        """Return the weight that each subtask gets, from subtask 0.

        1 <= parallelism <= max_parallelism. Raises ParallelismError.

        >>> KeyGroupLoad(4, [5, 1, 1, 1]).per_subtask(3)
        [6, 1, 1]
        """
        return [self._value(units) for units in self._units(parallelism)]

    def imbalance(self, parallelism: int) -> float:
        """Return the heaviest subtask's weight over the mean: 1.0 is even, 2.0 twice it.

        1 <= parallelism <= max_parallelism. A load of nothing is even. Raises
        ParallelismError.

        >>> KeyGroupLoad(4, [5, 1, 1, 1]).imbalance(4)
        2.5
        """
        return self._imbalance(self._units(parallelism))

    def idle_subtasks(self, parallelism: int) -> list[int]:
        """Return the subtasks that get no weight at all, in order.

        1 <= parallelism <= max_parallelism. Raises ParallelismError.

        >>> KeyGroupLoad(4, {0: 5, 3: 1}).idle_subtasks(4)
        [1, 2]
        """
        return [index for index, units in enumerate(self._units(parallelism)) if not units]

    def groups_per_subtask(self, parallelism: int) -> list[int]:
        """Return how many key groups each subtask has, from subtask 0.

        1 <= parallelism <= max_parallelism. Raises ParallelismError.

        >>> KeyGroupLoad(10, [1] * 10).groups_per_subtask(3)
        [4, 3, 3]
        """
        starts = self._starts(parallelism)
        return list(map(sub, starts[1:], starts))

    def recommend(self, low: int, high: int) -> list[Recommendation]:
        """Return the parallelisms `low..high` with their imbalance, the most even first.

        1 <= low <= high <= max_parallelism. Where two are as even, the higher comes first:
        its heaviest subtask has less to do. Raises ParallelismError.

        >>> best = KeyGroupLoad(128, [1] * 128).recommend(15, 21)[0]
        >>> best.parallelism, best.imbalance
        (16, 1.0)
        >>> print(KeyGroupLoad(128, {5: 9}).recommend(21, 21)[0].reason)
        21 subtasks over 128 key groups: 2 get 7, 19 get 6; subtask 0 has 21.00 times the mean
        """
        high = check_bounds("high", high, self.max_parallelism, "max_parallelism")
        low = check_bounds("low", low, high, "high")
        found = [self._recommendation(parallelism) for parallelism in range(low, high + 1)]
        return sorted(found, key=lambda one: (one.imbalance, -one.parallelism))

    def _recommendation(self, parallelism: int) -> Recommendation:
        units = self._units(parallelism)
        imbalance = self._imbalance(units)
        few, more = divmod(self.max_parallelism, parallelism)
        split = f"{more} get {few + 1}, {parallelism - more} get {few}" if more else f"{few} each"
        heaviest = f"subtask {units.index(max(units))} has {imbalance:.2f} times the mean"
        reason = (
            f"{parallelism} subtask{'s' * (parallelism > 1)} over {self.max_parallelism} "
            f"key groups: {split}; {heaviest if self._sums[-1] else 'no weight anywhere'}"
        )
        return Recommendation(parallelism, imbalance, reason)

    def _starts(self, parallelism: int) -> list[int]:
        """Return the first key group of each subtask, and one past the last key group."""
        parallelism = check_parallelism(parallelism, self.max_parallelism)
        # As in compute_key_group_range_for_operator_index, a call of which is too slow here.
        groups, rounding = self.max_parallelism, parallelism - 1
        return [(i * groups + rounding) // parallelism for i in range(parallelism + 1)]

    def _units(self, parallelism: int) -> list[int]:
        ends = [self._sums[start] for start in self._starts(parallelism)]
        return list(map(sub, ends[1:], ends))

    def _value(self, units: int) -> float:
        return units if self._is_int else units / self._scale

    def _imbalance(self, units: list[int]) -> float:
        total = self._sums[-1]
        return max(units) * len(units) / total if total else 1.0


def evenness(max_parallelism: int) -> list[int]:
    """Return the parallelisms at which every subtask has as many key groups as any other.

    These are the divisors of max_parallelism, 1 <= max_parallelism <= 32768. At any other
    parallelism some subtasks have one key group more, which is much where each has few: 720
    and 840 leave far more parallelisms even than 128 does. Raises ParallelismError.

    >>> evenness(128)
    [1, 2, 4, 8, 16, 32, 64, 128]
    >>> len(evenness(720)), len(evenness(840))
    (30, 32)
    """
    groups = check_max_parallelism(max_parallelism)
    return [parallelism for parallelism in range(1, groups + 1) if groups % parallelism == 0]


def _in_order(groups: int, weights: Mapping[int, float]) -> list[float]:
    """Return the weights of a mapping by key group."""
    ordered: list[float] = [0] * groups
    for key_group, weight in weights.items():
        ordered[check_int("key group of weights", key_group, 0, groups - 1)] = weight
    return ordered


def _check_weight(key_group: int, weight: object) -> float:
    if isinstance(weight, bool) or not isinstance(weight, (int, float)):
        raise InvalidTypeError(
            f"weight of key group {key_group} must be a number, got {show(weight)}"
        )
    if not 0 <= weight < math.inf:
        raise InvalidValueError(
            f"weight of key group {key_group} must be a finite number >= 0, got {show(weight)}"
        )
    return weight
