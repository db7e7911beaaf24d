"""The max parallelism to set before a job has state, which its parallelisms should divide.

The key groups are as many as the max parallelism. A parallelism that does not divide it leaves
some subtasks with one key group more, and none can be above it; state keeps the max parallelism
that it was written under, unless `keygroups.savepoint.change_max_parallelism` writes it anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from keygroups._checks import UPPER_BOUND_MAX_PARALLELISM, check_bounds, iterate, show, to_number
from keygroups._show.tables import data_frame, html_table, text_table
from keygroups.errors import InvalidValueError, ParallelismError
from keygroups.key_group_range import compute_default_max_parallelism

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["Suggestion", "Suggestions", "suggest_max_parallelism"]
__dir__ = __all__.copy

_EVEN_ENOUGH = 20  # With at most a 20th above the mean, more key groups gain little.
_OFFSET, _EMPTY_KEY_GROUP, _EMPTY_STATE = 8, 4, 6  # bytes: see keygroups/savepoint/FORMAT.md
_SHORT_PREFIX = 128  # the highest max parallelism with one byte before a key; above it are two
_LISTED = 8  # parallelisms in a line


class Suggestion(NamedTuple):
    """A max parallelism: how uneven it is at worst, where, and what its key groups cost.

    `imbalance` is the heaviest subtask's key groups over the mean at the wanted parallelism where
    that is largest, `parallelism`, which is None where all are even. `metadata_bytes` is what the
    offsets of all key groups take in `_metadata`, in each canonical savepoint and each checkpoint
    of the hashmap backend, for each keyed operator; `hashmap_bytes` what empty key groups of one
    state take in such a checkpoint beside that.
    """

    max_parallelism: int
    imbalance: float
    parallelism: int | None
    metadata_bytes: int
    hashmap_bytes: int


class Suggestions(list[Suggestion]):
    """Max parallelisms, the most even first: a list, in a notebook a table.

    `parallelisms` are those that are wanted, `lowest` the least that the growth allows. `default`
    is what Flink takes by itself for the largest of them.
    """

    def __init__(
        self,
        suggestions: Iterable[Suggestion] = (),
        parallelisms: Sequence[int] = (),
        lowest: int = 1,
        default: Suggestion | None = None,
    ) -> None:
        super().__init__(suggestions)
        self.parallelisms = tuple(parallelisms)
        self.lowest = lowest
        self.default = default

    def __str__(self) -> str:
        return "\n".join([*self._texts(), *text_table([self._header(), *map(_cells, self)])])

    def _repr_html_(self) -> str:
        caption = "Max parallelisms, the most even first"
        rows = [*map(_cells, self)]
        return html_table(self._texts(), self._header(), rows, caption=caption)

    def to_pandas(self) -> DataFrame:
        """Return a pandas DataFrame with a row for each max parallelism."""
        return data_frame(Suggestion._fields, self)

    def _header(self) -> tuple[str, ...]:
        return "max parallelism", "at worst", "of subtasks", "_metadata bytes", "hashmap bytes"

    def _texts(self) -> list[str]:
        listed = ", ".join(map(str, self.parallelisms[:_LISTED]))
        more = len(self.parallelisms) - _LISTED
        texts = [
            f"for {listed}{f' and {more:,} more' if more > 0 else ''} subtasks, with room for "
            f"{self.lowest:,}",
            "at worst: the heaviest subtask's key groups, in times the mean",
        ]
        if self.default is not None:
            at = self.default.parallelism
            where = "even at all" if at is None else f"{self.default.imbalance:.2f} at {at:,}"
            room = ", without that room" * (self.default.max_parallelism < self.lowest)
            texts.append(f"Flink's default is {self.default.max_parallelism:,}: {where}{room}")
        if any(ranked.max_parallelism > _SHORT_PREFIX for ranked in self):
            texts.append(f"above {_SHORT_PREFIX} each entry of state has a byte more")
        return texts


def suggest_max_parallelism(parallelisms: int | Iterable[int], growth: float = 1) -> Suggestions:
    """Return the max parallelisms that suit some parallelisms, the most even one first.

    `parallelisms` are those that the job is to run with, each 1..32768: [6, 8, 10], a range for
    all from one to another, or one int. `growth`, at least 1, is how many times as many subtasks
    as the largest it may need one day: no max parallelism below that is suggested.

    First comes the smallest that all of them divide, where Flink allows it, so that every subtask
    has as many key groups as any other. Each one after it has fewer key groups, which cost less,
    and is less even at worst; where more key groups gain little they are left out. Raises
    ParallelismError, InvalidValueError and InvalidTypeError.

    Flink: KeyGroupRangeAssignment, whose ranges these are; a job sets it once and for all, by
    `env.setMaxParallelism`.

    >>> best = suggest_max_parallelism([6, 8, 10, 12, 15, 20, 24])[0]
    >>> best.max_parallelism, best.imbalance, best.metadata_bytes
    (120, 1.0, 960)
    >>> suggest_max_parallelism(24, growth=10)[0].max_parallelism
    240
    >>> [(one.max_parallelism, round(one.imbalance, 2)) for one in
    ...  suggest_max_parallelism(range(7, 11), growth=3)]
    [(2520, 1.0), (69, 1.04), (60, 1.07), (59, 1.08), (45, 1.11), (35, 1.14), (30, 1.2)]
    """
    wanted = _check_parallelisms(parallelisms)
    lowest = _check_growth(growth, wanted[0])
    kept: list[tuple[int, int]] = []
    for groups in range(lowest, UPPER_BOUND_MAX_PARALLELISM + 1):
        if kept:
            before, its_most = kept[-1]
            limit = 4 * its_most * groups // (5 * before)  # four fifths of its relative excess
            if any(-groups % parallelism > limit for parallelism in wanted):
                continue
        most = max(-groups % parallelism for parallelism in wanted)
        kept.append((groups, most))
        if most * _EVEN_ENOUGH <= groups:
            break
    even = _smallest_even(lowest, wanted)
    if kept[-1][0] < even <= UPPER_BOUND_MAX_PARALLELISM:
        kept.append((even, 0))
    suggestions = [_suggestion(groups, wanted) for groups, _ in reversed(kept)]
    default = _suggestion(compute_default_max_parallelism(wanted[0]), wanted)
    return Suggestions(suggestions, wanted[::-1], lowest, default)


def _check_parallelisms(parallelisms: object) -> list[int]:
    """Return the parallelisms without duplicates, the largest first."""
    several = parallelisms if hasattr(type(parallelisms), "__iter__") else [parallelisms]
    values: Iterator[object] = iterate("parallelisms", "ints", several)  # type: ignore[arg-type]
    listed = [*islice(values, UPPER_BOUND_MAX_PARALLELISM + 1)]
    if not 1 <= len(listed) <= UPPER_BOUND_MAX_PARALLELISM:
        raise InvalidValueError(
            f"parallelisms must be from 1 to {UPPER_BOUND_MAX_PARALLELISM} numbers, got "
            f"{'none' if not listed else 'more'}"
        )
    return sorted({check_bounds("parallelism", value) for value in listed}, reverse=True)


def _check_growth(growth: object, largest: int) -> int:
    """Return the least max parallelism, `growth` times the largest parallelism."""
    number = to_number("growth", growth)
    # A float counts as the decimal of its text: 1.1 times 10 is 11, and not a bit more. What is
    # above the bound may be an int that Python does not print.
    if 1 <= number <= UPPER_BOUND_MAX_PARALLELISM:
        lowest = math.ceil(Fraction(str(number)) * largest)
        if lowest <= UPPER_BOUND_MAX_PARALLELISM:
            return lowest
    raise ParallelismError(
        f"growth must be from 1 to {UPPER_BOUND_MAX_PARALLELISM / largest:,.6g} (Flink's upper "
        f"bound of {UPPER_BOUND_MAX_PARALLELISM} over the largest parallelism), got {show(growth)}"
    )


def _smallest_even(lowest: int, wanted: Sequence[int]) -> int:
    """Return the smallest max parallelism that all divide, or a number above Flink's bound."""
    step = 1
    for parallelism in wanted:
        step = math.lcm(step, parallelism)
        if step > UPPER_BOUND_MAX_PARALLELISM:
            return step
    return -(-lowest // step) * step


def _suggestion(groups: int, wanted: Sequence[int]) -> Suggestion:
    """Return the `Suggestion` of a max parallelism."""
    worst = max(wanted, key=lambda parallelism: -groups % parallelism)
    most = -groups % worst
    hashmap = (_EMPTY_KEY_GROUP + _EMPTY_STATE) * groups
    at = worst if most else None
    return Suggestion(groups, (groups + most) / groups, at, _OFFSET * groups, hashmap)


def _cells(ranked: Suggestion) -> tuple[str, ...]:
    imbalance = f"{ranked.imbalance:.2f}"
    if ranked.parallelism is not None and imbalance == "1.00":
        imbalance = f"{ranked.imbalance:.4f}"
    where = "-" if ranked.parallelism is None else f"{ranked.parallelism:,}"
    sizes = (ranked.metadata_bytes, ranked.hashmap_bytes)
    return f"{ranked.max_parallelism:,}", imbalance, where, *(f"{size:,}" for size in sizes)
