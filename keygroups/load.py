"""Measured weight per key group, and what it means for each parallelism."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from keygroups.assignment import (
    check_max_parallelism,
    check_parallelism,
    compute_key_group_range_for_operator_index,
)
from keygroups.errors import InvalidTypeError, InvalidValueError, show

__all__ = ["KeyGroupLoad"]


@dataclass(frozen=True, slots=True, init=False)
class KeyGroupLoad:
    """The weight of every key group: records, bytes, whatever was measured; immutable.

    `weights` holds one finite number >= 0 for each key group 0..max_parallelism-1. It
    answers for every parallelism, so the data is read once.

    Raises ParallelismError for the max parallelism, InvalidValueError for a weight that
    is negative or not finite and for a wrong count, InvalidTypeError for what is no number.

    >>> load = KeyGroupLoad(4, [5, 1, 1, 1])
    >>> load.per_subtask(2), load.imbalance(2)
    ([6, 2], 1.5)
    """

    max_parallelism: int
    weights: tuple[float, ...]

    def __init__(self, max_parallelism: int, weights: Iterable[float]) -> None:
        groups = check_max_parallelism(max_parallelism)
        checked = tuple(_check_weight(i, weight) for i, weight in enumerate(weights))
        if len(checked) != groups:
            raise InvalidValueError(
                f"weights must be {groups} numbers, one per key group of max_parallelism, "
                f"got {len(checked)}"
            )
        object.__setattr__(self, "max_parallelism", groups)
        object.__setattr__(self, "weights", checked)

    def per_subtask(self, parallelism: int) -> list[float]:
        """Return the weight that each subtask gets, from subtask 0.

        1 <= parallelism <= max_parallelism. Raises ParallelismError.

        >>> KeyGroupLoad(4, [5, 1, 1, 1]).per_subtask(3)
        [6, 1, 1]
        """
        parallelism = check_parallelism(parallelism, self.max_parallelism)
        ranges = (
            compute_key_group_range_for_operator_index(self.max_parallelism, parallelism, index)
            for index in range(parallelism)
        )
        return [sum(self.weights[r.start_key_group : r.end_key_group + 1]) for r in ranges]

    def imbalance(self, parallelism: int) -> float:
        """Return the heaviest subtask's weight over the mean: 1.0 is even, 2.0 twice it.

        1 <= parallelism <= max_parallelism. A load of nothing is even. Raises
        ParallelismError.

        >>> KeyGroupLoad(4, [5, 1, 1, 1]).imbalance(4)
        2.5
        """
        weights = self.per_subtask(parallelism)
        total = sum(weights)
        return max(weights) * len(weights) / total if total else 1.0


def _check_weight(key_group: int, weight: object) -> float:
    if isinstance(weight, bool) or not isinstance(weight, (int, float)):
        raise InvalidTypeError(
            f"weight of key group {key_group} must be a number, got {show(weight)}"
        )
    if not 0 <= weight < math.inf:
        raise InvalidValueError(
            f"weight of key group {key_group} must be a finite number >= 0, got {weight}"
        )
    return weight
