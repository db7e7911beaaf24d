"""What a rescale would do to the state of the keys in a DataFrame."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill

from pyspark.sql import DataFrame

from keygroups.errors import InvalidTypeError, show
from keygroups.load import KeyGroupLoad, Recommendation
from keygroups.rescale import RescalePlan
from keygroups.spark import functions as KF
from keygroups.spark.dataframe import key_group_load
from keygroups.types import KeyType

__all__ = ["RescaleReport", "rescale_report"]

_FARTHEST = 500  # more would keep a person waiting where parallelisms are in the thousands
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class RescaleReport:
    """A rescale and the measured load of its key groups; `str()` is a text 80 wide.

    `load` is of the plan's max parallelism; the weight is what it counts. Raises
    InvalidTypeError and InvalidValueError.

    >>> report = RescaleReport(RescalePlan(8, 2, 3), KeyGroupLoad(8, [5, 1, 1, 1, 0, 1, 2, 1]))
    >>> report.weight_before, report.weight_after
    ([8, 4], [7, 2, 3])
    >>> report.moved_weight, report.moved_weight_share
    (4, 0.3333333333333333)
    >>> [one.parallelism for one in report.recommendations]
    [3]
    """

    plan: RescalePlan
    load: KeyGroupLoad

    def __post_init__(self) -> None:
        if not isinstance(self.plan, RescalePlan):
            raise InvalidTypeError(f"plan must be a RescalePlan, got {show(self.plan)}")
        self.plan.moved_weight(self.load)  # raises for what is no load of this plan

    @property
    def weight_before(self) -> list[float]:
        """The weight of each old subtask, from subtask 0."""
        return self.load.per_subtask(self.plan.old_parallelism)

    @property
    def weight_after(self) -> list[float]:
        """The weight of each new subtask, from subtask 0."""
        return self.load.per_subtask(self.plan.new_parallelism)

    @property
    def imbalance_before(self) -> float:
        """The heaviest old subtask's weight over the mean."""
        return self.load.imbalance(self.plan.old_parallelism)

    @property
    def imbalance_after(self) -> float:
        """The heaviest new subtask's weight over the mean."""
        return self.load.imbalance(self.plan.new_parallelism)

    @property
    def hot_subtask_before(self) -> int:
        """The heaviest old subtask, the first of equals."""
        return _heaviest(self.weight_before)

    @property
    def hot_subtask_after(self) -> int:
        """The heaviest new subtask, the first of equals."""
        return _heaviest(self.weight_after)

    @property
    def moved_weight(self) -> float:
        """The weight of the key groups whose subtask index changes."""
        return self.plan.moved_weight(self.load)

    @property
    def moved_weight_share(self) -> float:
        """The share of the weight that moves, 0.0 to 1.0; 0.0 where there is none."""
        return self.moved_weight / (self._total or 1)

    @property
    def recommendations(self) -> list[Recommendation]:
        """The new parallelism and the better ones near it, the most even first.

        Near is from half of it to twice it, at most 500 away. Better are those above it in
        `load.recommend` that have no heavier subtask: two subtasks are easily more even than
        four, and each has more to do. Where nothing is better, the new one stands alone.
        """
        ranked = self.load.recommend(*self._near)
        place = [one.parallelism for one in ranked].index(self.plan.new_parallelism)
        heaviest = ranked[place].heaviest_weight
        return [one for one in ranked[: place + 1] if one.heaviest_weight <= heaviest]

    def __str__(self) -> str:
        lines = [self.plan.table(self.load)]
        for when, weights in (("before", self.weight_before), ("after", self.weight_after)):
            share = max(weights) / (self._total or 1)
            lines.append(
                f"hot subtask {when}: {_heaviest(weights)} of {len(weights)}, "
                f"with {share:.1%} of the weight"
            )
        low, high = self._near
        lines.append(
            f"recommended, from {low} to {high} with no heavier subtask than at "
            f"{self.plan.new_parallelism}:"
        )
        lines += [
            fill(str(one), 80, initial_indent="  ", subsequent_indent="    ")
            for one in self.recommendations[:_SHOWN]
        ]
        return "\n".join(lines)

    @property
    def _near(self) -> tuple[int, int]:
        new = self.plan.new_parallelism
        high = min(2 * new, new + _FARTHEST, self.plan.max_parallelism)
        return max((new + 1) // 2, new - _FARTHEST), high

    @property
    def _total(self) -> float:
        return self.load.weight_of(range(self.load.max_parallelism))


def rescale_report(
    df: DataFrame,
    key: KF.Key,
    max_parallelism: int,
    old_parallelism: int,
    new_parallelism: int,
    key_type: KeyType | None = None,
    weight: KF.ColumnOrName | None = None,
) -> RescaleReport:
    """Measure what a rescale moves, and how even the load is before it and after it.

    Reads `df` once, as `key_group_load` does, whose `key`, `max_parallelism`, `key_type` and
    `weight` these are; 1 <= old_parallelism, new_parallelism <= max_parallelism.

    Raises what `key_group_load` raises, and ParallelismError before any job is run.

    >>> rows = [("A", 5), ("B", 2), ("C", 4), ("D", 1)]
    >>> df = spark.createDataFrame(rows, "letter string, visits int")
    >>> print(rescale_report(df, "letter", 128, 3, 4, weight="visits"))
    128 key groups, parallelism 3 -> 4: 65 move (50.8%), 63 stay
    weight: 6 of 12 moves (50.0%)
    imbalance: 1.50 before, 2.00 after
    new subtask  old subtask      key groups   count               weight
              0            0         [0, 31]      32                    6
              1            0        [32, 42]      11                    0  moves
              1            1        [43, 63]      21                    0
              2            1        [64, 85]      22                    0  moves
              2            2        [86, 95]      10                    0
              3            2       [96, 127]      32                    6  moves
    hot subtask before: 0 of 3, with 50.0% of the weight
    hot subtask after: 0 of 4, with 50.0% of the weight
    recommended, from 2 to 8 with no heavier subtask than at 4:
      parallelism 2: imbalance 1.00 (2 subtasks over 128 key groups: 64 each;
        subtask 0 has 1.00 times the mean)
      parallelism 3: imbalance 1.50 (3 subtasks over 128 key groups: 2 get 43, 1 get
        42; subtask 0 has 1.50 times the mean)
      parallelism 4: imbalance 2.00 (4 subtasks over 128 key groups: 32 each;
        subtask 0 has 2.00 times the mean)
    """
    plan = RescalePlan(max_parallelism, old_parallelism, new_parallelism)
    return RescaleReport(plan, key_group_load(df, key, plan.max_parallelism, key_type, weight))


def _heaviest(weights: list[float]) -> int:
    return weights.index(max(weights))
