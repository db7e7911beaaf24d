"""Measured weight per key group, and the load of subtasks that follows at each parallelism."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import nlargest
from itertools import accumulate, chain, islice, pairwise
from operator import itemgetter, sub
from typing import TYPE_CHECKING, NamedTuple

from keygroups._checks import (
    check_amount,
    check_bounds,
    check_int,
    check_max_parallelism,
    check_parallelism,
    iterate,
)
from keygroups._show.plots import plot_bars, plot_heaviest
from keygroups._show.tables import data_frame, html_table, show_weight
from keygroups.errors import InvalidValueError
from keygroups.key_group_range import KeyGroupRange, ranges_imbalance, subtask_starts
from keygroups.skew import HOT, UNEVEN_KEY_GROUPS, SubtaskCounts, are_uneven

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

__all__ = ["KeyGroupLoad", "Recommendation", "Recommendations", "evenness"]
__dir__ = __all__.copy

_SHOWN = 10  # key groups in a notebook
_RECOMMENDED = ("parallelism", "heaviest_weight", "imbalance", "reason")


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A parallelism, the weight of its heaviest subtask, and the reason; `str()` is one line.

    `heaviest_weight` is the weight of that subtask, `imbalance` the same over the mean: more
    subtasks make the mean smaller, so it does not tell which of two parallelisms is better.
    """

    parallelism: int
    imbalance: float
    reason: str
    heaviest_weight: float

    def __str__(self) -> str:
        heaviest = show_weight(self.heaviest_weight)
        return (
            f"parallelism {self.parallelism}: the heaviest subtask has {heaviest}, "
            f"imbalance {self.imbalance:.2f} ({self.reason})"
        )


class Recommendations(list[Recommendation]):
    """Parallelisms, the lightest heaviest subtask first: a list, in a notebook a table.

    `floor` says where one key group alone keeps more subtasks from being of use, and is ""
    where none does. `str()` has a line for each parallelism, and the floor.
    """

    def __init__(self, found: Iterable[Recommendation] = (), floor: str = "") -> None:
        super().__init__(found)
        self.floor = floor

    def __str__(self) -> str:
        return "\n".join([*map(str, self), *self._texts()])

    def _repr_html_(self) -> str:
        rows = [
            (
                f"{ranked.parallelism}",
                show_weight(ranked.heaviest_weight),
                f"{ranked.imbalance:.2f}",
                ranked.reason,
            )
            for ranked in self
        ]
        hot = {index: "hot" for index, ranked in enumerate(self) if ranked.imbalance >= HOT}
        header = ("parallelism", "heaviest subtask", "imbalance", "reason")
        caption = f"Parallelisms, the best first; hot: {HOT} times the mean and more"
        return html_table(self._texts(), header, rows, (3,), caption, 0, hot)

    def to_pandas(self) -> DataFrame:
        """Return a pandas DataFrame with a row for each parallelism."""
        return data_frame(_RECOMMENDED, map(_cells, self))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the weight of the heaviest subtask against the parallelism, and the mean.

        The line falls at each parallelism of the list: none between has a much lighter one.
        `ax` is Matplotlib's, a new one if None. Needs the extra `plot`. Returns the Axes.
        """
        title = "no parallelism"
        if self:
            heaviest = show_weight(self[0].heaviest_weight)
            title = (
                f"best is parallelism {self[0].parallelism}, {heaviest} in its heaviest subtask"
            )
        return plot_heaviest([_cells(ranked)[:3] for ranked in reversed(self)], title, ax)

    def _texts(self) -> list[str]:
        return [self.floor] if self.floor else []


def _cells(ranked: Recommendation) -> tuple[int, float, float, str]:
    return ranked.parallelism, ranked.heaviest_weight, ranked.imbalance, ranked.reason


@dataclass(frozen=True, slots=True, init=False, repr=False)
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
    # Sums of the first n weights, ints in units of 1/_scale: every float is a fraction.
    _sums: tuple[int, ...] = field(repr=False, compare=False)
    _scale: int = field(repr=False, compare=False)
    _is_int: bool = field(repr=False, compare=False)

    def __init__(
        self, max_parallelism: int, weights: Iterable[float] | Mapping[int, float]
    ) -> None:
        groups = check_max_parallelism(max_parallelism)
        if isinstance(weights, Mapping):
            weights = _in_order(groups, weights)
        # Reading stops one after the last that should be there, as the iterable may be endless.
        checked = tuple(islice(iterate("weights", "numbers", weights), groups + 1))
        is_int = set(map(type, checked)) == {int}
        if not is_int or min(checked) < 0:
            checked = tuple(
                check_amount("weight of key group", group, weight)
                for group, weight in enumerate(checked)
            )
            is_int = set(map(type, checked)) == {int}
        if len(checked) != groups:
            got = len(checked) if len(checked) < groups else f"more than {groups}"
            raise InvalidValueError(
                f"weights must be {groups} numbers, one per key group of max_parallelism, "
                f"got {got}"
            )
        scale, units = 1, checked
        if not is_int:
            # The denominators are powers of two, so the largest is a multiple of each.
            ratios = [weight.as_integer_ratio() for weight in checked]
            scale = max(denominator for _, denominator in ratios)
            units = tuple(numerator * (scale // denominator) for numerator, denominator in ratios)
        sums = tuple(accumulate(units, initial=0))
        if sums[-1] // scale > sys.float_info.max:
            raise InvalidValueError("weights must have a sum within the range of a float")
        object.__setattr__(self, "max_parallelism", groups)
        object.__setattr__(self, "weights", checked)
        object.__setattr__(self, "_sums", sums)
        object.__setattr__(self, "_scale", scale)
        object.__setattr__(self, "_is_int", is_int)

    @property
    def total(self) -> float:
        """The weight of all key groups."""
        return self._value(self._sums[-1])

    def __repr__(self) -> str:
        used = sum(weight > 0 for weight in self.weights)
        return f"<KeyGroupLoad: {self.total:,} in {used:,} of {self.max_parallelism:,} key groups>"

    def _repr_html_(self) -> str:
        heaviest = nlargest(_SHOWN, enumerate(self.weights), key=itemgetter(1))
        total = self.total
        rows = [
            (group, show_weight(weight), f"{weight / total if total else 0:.1%}")
            for group, weight in heaviest
        ]
        header, caption = ("key group", "weight", "share"), "The heaviest key groups"
        return html_table([repr(self)[1:-1]], header, rows, caption=caption)

    def to_pandas(self) -> DataFrame:
        """Return a pandas DataFrame with a row for each key group: `key_group`, `weight`."""
        return data_frame(("key_group", "weight"), enumerate(self.weights))

    def plot(self, parallelism: int, ax: Axes | None = None) -> Axes:
        """Draw a bar for each subtask and the mean; hot ones stand out. Returns the Axes.

        1 <= parallelism <= max_parallelism; `ax` is Matplotlib's, a new one if None. Needs the
        extra `plot`. Raises ParallelismError.
        """
        weights, imbalance = self.per_subtask(parallelism), self.imbalance(parallelism)
        subtask, hot = weights.index(max(weights)), "hot " * (imbalance >= HOT)
        title = (
            f"{hot}subtask {subtask} of {parallelism} has the most, "
            f"{show_weight(max(weights))}: {imbalance:.2f} times the mean"
        )
        if are_uneven(self.max_parallelism, parallelism):
            title = f"{title}\n{_at_best(self.max_parallelism, parallelism)}"
        return plot_bars(weights, "subtask", title, HOT, ax)

    def plot_key_groups(self, ax: Axes | None = None) -> Axes:
        """Draw a bar for each key group, and the mean; `ax` and the result are those of `plot`."""
        heaviest = self.weights.index(max(self.weights))
        most = f"key group {heaviest} has the most, {show_weight(self.weights[heaviest])}"
        title = f"{most} of {show_weight(self.total)}"
        return plot_bars(self.weights, "key group", title, ax=ax)

    def weight_of(self, key_groups: Iterable[int]) -> float:
        """Return the weight of some key groups together, such as those of a KeyGroupRange.

        Each is in 0..max_parallelism-1, and given once. Raises InvalidValueError or
        InvalidTypeError.

        >>> KeyGroupLoad(4, [5, 1, 1, 1]).weight_of([0, 3])
        6
        """
        last = self.max_parallelism - 1
        if isinstance(key_groups, KeyGroupRange) and key_groups.end_key_group <= last:
            return self._weight_of([key_groups])
        groups: set[int] = set()
        for key_group in iterate("key_groups", "ints", key_groups):
            group = check_int("key group", key_group, 0, last)
            if group in groups:
                raise InvalidValueError(f"key_groups must differ, got {group} twice")
            groups.add(group)
        return self._value(sum(self._sums[group + 1] - self._sums[group] for group in groups))

    def _weight_of(self, ranges: Iterable[KeyGroupRange]) -> float:
        """Return the weight of ranges that do not overlap, all of them within the load."""
        sums = self._sums
        return self._value(
            sum(sums[held.end_key_group + 1] - sums[held.start_key_group] for held in ranges)
        )

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
        units, total = self._units(parallelism), self._sums[-1]
        return max(units) * len(units) / total if total else 1.0

    def skew(self, parallelism: int) -> SubtaskCounts:
        """Return the `SubtaskCounts`, which say why the heaviest subtask exceeds the mean.

        1 <= parallelism <= max_parallelism. Raises ParallelismError.

        >>> KeyGroupLoad(10, [2, 1, 1, 1, 1, 1, 1, 1, 1, 1]).skew(8).diagnosis
        'uneven key groups and uneven keys'
        """
        return SubtaskCounts(self.max_parallelism, self.per_subtask(parallelism))

    def idle_subtasks(self, parallelism: int) -> list[int]:
        """Return the subtasks that get no weight at all, in order.

        1 <= parallelism <= max_parallelism. Raises ParallelismError.

        >>> KeyGroupLoad(4, {0: 5, 3: 1}).idle_subtasks(4)
        [1, 2]
        """
        return [index for index, units in enumerate(self._units(parallelism)) if not units]

    def groups_per_subtask(self, parallelism: int) -> list[int]:
        """Return the number of key groups of each subtask, from subtask 0.

        1 <= parallelism <= max_parallelism. Raises ParallelismError.

        >>> KeyGroupLoad(10, [1] * 10).groups_per_subtask(3)
        [4, 3, 3]
        """
        starts = self._starts(parallelism)
        return list(map(sub, starts[1:], starts))

    def recommend(self, low: int, high: int) -> Recommendations:
        """Return the parallelisms of `low..high` that are worth their subtasks, the best first.

        1 <= low <= high <= max_parallelism. The heaviest subtask holds the others up, so the
        best is where that has least to do, and of several such the one with the fewest
        subtasks. Each one after it takes fewer subtasks, with a heavier heaviest one. Left out
        is where more subtasks gain nothing: where the heaviest subtask is no lighter than at a
        lower parallelism of the range, or by 5 % at most with a tenth less imbalance there.
        Raises ParallelismError.

        A key group is in one subtask, so none has less to do than the heaviest key group
        weighs. Where that makes parallelisms below `high` useless, the result's `floor` says
        so: *nothing gets better* beyond the lowest parallelism whose heaviest subtask has that
        weight and no more; *none is even* where the key group has more than the mean subtask.

        >>> even = KeyGroupLoad(128, [1] * 128).recommend(15, 21)
        >>> [(ranked.parallelism, ranked.heaviest_weight) for ranked in even]
        [(19, 7), (16, 8), (15, 9)]
        >>> print(KeyGroupLoad(128, {5: 9}).recommend(21, 21)[0].reason)
        21 subtasks over 128 key groups: 2 get 7, 19 get 6; subtask 0 has 21.00 times the mean
        >>> KeyGroupLoad(128, {5: 9, 40: 8, 70: 7, 90: 6}).recommend(8, 16).floor
        'key group 5 alone has 30.0%: beyond 5 subtasks nothing gets better'
        """
        high = check_bounds("high", high, self.max_parallelism, "max_parallelism")
        low = check_bounds("low", low, high, "high")
        heaviest = list(_heaviest_subtasks(self._sums, low, high))
        kept: list[tuple[int, _Heaviest]] = []
        lightest = self._sums[-1] + 1
        for parallelism, subtask in enumerate(heaviest, low):
            if subtask.weight < lightest:
                lightest = subtask.weight
                # Kept ones get lighter and lighter: those before `first` are over 5 % heavier.
                first = bisect_left(
                    kept, -21 * lightest, key=lambda ranked: -20 * ranked[1].weight
                )
                if not any(
                    stands_for(lower, top.weight, parallelism, lightest)
                    for lower, top in kept[first:]
                ):
                    kept.append((parallelism, subtask))
        better = [self._recommendation(*ranked) for ranked in reversed(kept)]
        return Recommendations(better, self._floor(low, high, heaviest))

    def _floor(self, low: int, high: int, heaviest: list[_Heaviest]) -> str:
        """Return the text on the key group that makes parallelisms up to `high` useless, or "".

        A key group with 9 of 30 has more than the mean subtask beyond 30 // 9 = 3 subtasks, and
        nothing gets better beyond the lowest parallelism whose heaviest subtask has 9 too.
        """
        weights: Sequence[float] = self.weights
        if not self._is_int:
            weights = list(map(sub, self._sums[1:], self._sums))
        alone, total = int(max(weights)), self._sums[-1]
        if alone * high <= total:  # At all of them the mean subtask has as much.
            return ""
        # Below this parallelism the mean is more than the key group's weight.
        start = -(-total // alone)
        before = _heaviest_subtasks(self._sums, start, low - 1)
        from_start = chain(zip(range(start, low), before), zip(range(low, high), heaviest))
        reached = (parallelism for parallelism, top in from_start if top.weight == alone)
        lowest = next(reached, None)
        last = total // alone if lowest is None else lowest
        limit = "none is even" if lowest is None else "nothing gets better"
        share = alone / total
        percent = f"{share:.1%}" if share >= 0.001 else f"{share:.4%}"
        group, subtasks = weights.index(alone), f"{last} subtask{'s' * (last > 1)}"
        return f"key group {group} alone has {percent}: beyond {subtasks} {limit}"

    def _recommendation(self, parallelism: int, heaviest: _Heaviest) -> Recommendation:
        total = self._sums[-1]
        imbalance = heaviest.weight * parallelism / total if total else 1.0
        few, more = divmod(self.max_parallelism, parallelism)
        split = f"{more} get {few + 1}, {parallelism - more} get {few}" if more else f"{few} each"
        if are_uneven(self.max_parallelism, parallelism):
            split = f"{split}, {_at_best(self.max_parallelism, parallelism)}"
        why = f"subtask {heaviest.subtask} has {imbalance:.2f} times the mean"
        reason = (
            f"{parallelism} subtask{'s' * (parallelism > 1)} over {self.max_parallelism} "
            f"key groups: {split}; {why if total else 'no weight anywhere'}"
        )
        return Recommendation(parallelism, imbalance, reason, self._value(heaviest.weight))

    def _starts(self, parallelism: int) -> list[int]:
        """Return the first key group of each subtask, and one past the last key group."""
        groups = self.max_parallelism
        return subtask_starts(groups, check_parallelism(parallelism, groups))

    def _units(self, parallelism: int) -> list[int]:
        ends = [self._sums[start] for start in self._starts(parallelism)]
        return list(map(sub, ends[1:], ends))

    def _value(self, units: int) -> float:
        return units if self._is_int else units / self._scale


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


def stands_for(
    lower: int, its_weight: Fraction | int, parallelism: int, weight: Fraction | int
) -> bool:
    """Return whether a lower parallelism does nearly as well as one with a lighter heaviest one.

    Its heaviest subtask may have 5 % more weight, if the imbalance is a tenth less.
    """
    is_near = 20 * its_weight <= 21 * weight
    return is_near and 10 * its_weight * lower <= 9 * weight * parallelism


def _at_best(max_parallelism: int, parallelism: int) -> str:
    at_best = ranges_imbalance(max_parallelism, parallelism)
    return f"{UNEVEN_KEY_GROUPS}: at best {at_best:.2f} times the mean"


def heaviest_weights(load: KeyGroupLoad, low: int, high: int) -> list[float]:
    """Return the weight of the heaviest subtask at each parallelism `low..high` of a load."""
    return [load._value(top.weight) for top in _heaviest_subtasks(load._sums, low, high)]


def _in_order(groups: int, weights: Mapping[int, float]) -> list[float]:
    """Return the weights of a mapping by key group."""
    ordered: list[float] = [0] * groups
    seen = set()
    for key_group, weight in weights.items():
        group = check_int("key group of weights", key_group, 0, groups - 1)
        if group in seen:
            raise InvalidValueError(f"key groups of weights must differ, got {group} twice")
        seen.add(group)
        ordered[group] = weight
    return ordered


class _Heaviest(NamedTuple):
    """The subtask with the largest weight at a parallelism, the first of equals."""

    weight: int
    subtask: int


def _heaviest_subtasks(sums: Sequence[int], low: int, high: int) -> Iterator[_Heaviest]:
    """Yield the heaviest subtask at each parallelism `low..high`, by the sums of the weights.

    All parallelisms of n key groups have n * (n + 1) / 2 subtasks: 8256 for 128, 537 million for
    32768. So where many parallelisms give their subtasks the same number of key groups, all runs
    of that many are sorted by weight, once; the first that is a subtask's is the heaviest one.
    At 22 to 25 subtasks of 128 key groups, e.g., all runs have 5 or 6 of them.
    """
    groups = len(sums) - 1
    sorted_size, runs, longer_runs = 0, [], []
    for parallelism in range(low, high + 1):
        size, more = divmod(groups, parallelism)
        if sorted_size != size:
            alike = min(high, groups // size) - parallelism + 1
            # Sorting costs about as much as twelve sums over all key groups.
            if alike * parallelism > 12 * groups:
                sorted_size = size
                runs, longer_runs = _by_weight(sums, size), _by_weight(sums, size + 1)
        if sorted_size != size:
            starts = subtask_starts(groups, parallelism)
            weights = [sums[end] - sums[start] for start, end in pairwise(starts)]
            heaviest_weight = max(weights)
            yield _Heaviest(heaviest_weight, weights.index(heaviest_weight))
            continue
        # The indexes of the subtasks with `size` key groups, and of those with one more.
        less = parallelism - more
        short = (-(-(i + 1) * parallelism // less) - 1 for i in range(less))
        long = (i * parallelism // more for i in range(more))
        heaviest = _first(sums, runs, size, parallelism, less, short)
        if more:
            longer = _first(sums, longer_runs, size + 1, parallelism, more, long)
            heaviest = max(heaviest, longer, key=lambda top: (top.weight, -top.subtask))
        yield heaviest


def _by_weight(sums: Sequence[int], size: int) -> list[int]:
    """Return the first key group of each run of `size`, the heaviest run first."""
    weights = list(map(sub, sums[size:], sums))
    return sorted(range(len(weights)), key=weights.__getitem__, reverse=True)


def _first(
    sums: Sequence[int],
    runs: list[int],
    size: int,
    parallelism: int,
    count: int,
    subtasks: Iterable[int],
) -> _Heaviest:
    """Return the first of the runs that is one of the `count` subtasks of `size` key groups."""
    groups = len(sums) - 1
    for start in islice(runs, count):
        subtask = start * parallelism // groups
        if -(-subtask * groups // parallelism) == start and (
            -(-(subtask + 1) * groups // parallelism) == start + size
        ):
            return _Heaviest(sums[start + size] - sums[start], subtask)
    # Few of the heavy runs are subtasks: now it is faster to look at all subtasks.
    weights = {}
    for subtask in subtasks:
        start = -(-subtask * groups // parallelism)
        weights[subtask] = sums[start + size] - sums[start]
    subtask = max(weights, key=weights.__getitem__)
    return _Heaviest(weights[subtask], subtask)
