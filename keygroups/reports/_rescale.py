"""The report of a rescale, as text and in a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from textwrap import fill, wrap
from typing import TYPE_CHECKING

from keygroups._checks import check_bounds, check_class
from keygroups._show.tables import html_table, show_weight
from keygroups.load import KeyGroupLoad, Recommendations, stands_for
from keygroups.rescale import RescalePlan
from keygroups.skew import UNEVEN_KEY_GROUPS, SubtaskCounts, ranges_text, shares_texts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

_FARTHEST = 500  # parallelisms that are ranked on either side of a new one
_RANKED = 3  # parallelisms that are shown of those


@dataclass(frozen=True, slots=True)
class RescaleReport:
    """A rescale and the measured load of its key groups; `str()` is a text 80 wide.

    `load` is of the plan's max parallelism; the weight is what it counts. No parallelism
    below `at_least` is recommended, 1 <= at_least <= new_parallelism. Raises
    InvalidTypeError, InvalidValueError and ParallelismError.

    >>> report = RescaleReport(RescalePlan(8, 2, 3), KeyGroupLoad(8, [5, 1, 1, 1, 0, 1, 2, 1]))
    >>> report.weight_before, report.weight_after
    ([8, 4], [7, 2, 3])
    >>> report.moved_weight, report.moved_weight_share
    (4, 0.3333333333333333)
    >>> [(one.parallelism, one.heaviest_weight) for one in report.recommendations]
    [(4, 6), (3, 7)]
    """

    plan: RescalePlan
    load: KeyGroupLoad
    at_least: int = 1

    def __post_init__(self) -> None:
        check_class("plan", self.plan, RescalePlan, "a RescalePlan")
        self.plan.moved_weight(self.load)  # It raises unless the load fits the plan.
        new = self.plan.new_parallelism
        at_least = check_bounds("at_least", self.at_least, new, "new_parallelism")
        object.__setattr__(self, "at_least", at_least)

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
    def skew_before(self) -> SubtaskCounts:
        """The `SubtaskCounts` of the old subtasks, with the causes of their skew."""
        return self.load.skew(self.plan.old_parallelism)

    @property
    def skew_after(self) -> SubtaskCounts:
        """The `SubtaskCounts` of the new subtasks, with the causes of their skew."""
        return self.load.skew(self.plan.new_parallelism)

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
        return self.moved_weight / self.load.total if self.load.total else 0.0

    @property
    def recommendations(self) -> Recommendations:
        """The parallelisms near the new one with no heavier subtask, the best first.

        Near is from half of it to twice it, at most 500 away and not below `at_least`. They
        are those of `load.recommend`, with its `floor`. So the new one itself is left out if a
        lower one near it has a heaviest subtask that is as light, or heavier by 5 % at most with
        a tenth less imbalance.
        """
        ranked = self.load.recommend(*self._near)
        heaviest, new = Fraction(max(self.weight_after)), self.plan.new_parallelism
        no_heavier = (
            better
            for better in ranked
            if better.heaviest_weight <= heaviest
            or stands_for(better.parallelism, Fraction(better.heaviest_weight), new, heaviest)
        )
        return Recommendations(no_heavier, ranked.floor)

    def _repr_html_(self) -> str:
        plan, better = self.plan._html(self.load), self.recommendations._repr_html_()
        return f"{plan}{html_table([*self._texts()])}{better}"

    def to_pandas(self) -> DataFrame:
        """Return the plan's pieces as a pandas DataFrame, with the `weight` of each."""
        frame = self.plan.to_pandas()
        frame["weight"] = [self.load.weight_of(piece.key_group_range) for piece in self.plan]
        return frame

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the plan with the load; see `RescalePlan.plot`."""
        return self.plan.plot(self.load, ax)

    def __str__(self) -> str:
        recommendations = self.recommendations
        ranked = [
            fill(str(better), 80, initial_indent="  ", subsequent_indent="    ")
            for better in recommendations[:_RANKED]
        ]
        floor = [recommendations.floor] if recommendations.floor else []
        texts = [line for text in self._texts() for line in wrap(text, 80)]
        return "\n".join([self.plan.table(self.load), *texts, *ranked, *floor])

    def _texts(self) -> Iterator[str]:
        for when, weights in (("before", self.weight_before), ("after", self.weight_after)):
            share = max(weights) / self.load.total if self.load.total else 0.0
            yield (
                f"hot subtask {when}: {_heaviest(weights)} of {len(weights)} has "
                f"{show_weight(max(weights))}, {share:.1%} of the weight"
            )
        for when, skew in (("before", self.skew_before), ("after", self.skew_after)):
            yield from _uneven_texts(when, skew)
        low, high = self._near
        yield (
            f"recommended, from {low} to {high} with no heavier subtask than at "
            f"{self.plan.new_parallelism}:"
        )

    @property
    def _near(self) -> tuple[int, int]:
        new = self.plan.new_parallelism
        high = min(2 * new, new + _FARTHEST, self.plan.max_parallelism)
        return max((new + 1) // 2, new - _FARTHEST, self.at_least), high


def _uneven_texts(when: str, skew: SubtaskCounts) -> Iterator[str]:
    """Yield the lines on uneven key groups: the ranges before, the remedy after."""
    for cause in skew.causes:
        if cause.name == UNEVEN_KEY_GROUPS:
            ranges = ranges_text(skew.max_parallelism, skew.parallelism)
            yield f"{when}, {skew.diagnosis}: {cause.remedy if when == 'after' else ranges}"
            yield from shares_texts(skew.causes, skew.imbalance)


def _heaviest(weights: list[float]) -> int:
    return weights.index(max(weights))
