"""Why a subtask has more than the mean: the ranges of key groups, and the keys.

The share of the ranges follows from max parallelism and parallelism alone: where these do not
divide, some subtasks have a key group more than others. All else is the keys. `Cause` has the
share of either; `SubtaskCounts` has the counts of the subtasks, with their causes. All reports of
skew name them alike: those of arrays, Spark, a job, a rescale, a savepoint, and the command.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

from keygroups._checks import (
    UPPER_BOUND_MAX_PARALLELISM,
    check_amount,
    check_bounds,
    check_max_parallelism,
    check_str,
    iterate,
    show,
)
from keygroups._show.plots import plot_bars
from keygroups._show.tables import Section, data_frame, html_sections, show_weight, text_table
from keygroups.errors import InvalidValueError
from keygroups.key_group_range import (
    KeyGroupRange,
    compute_key_group_range_for_operator_index,
    ranges_imbalance,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

__all__ = ["Cause", "SubtaskCounts"]
__dir__ = __all__.copy

HOT = 1.5
"""A subtask is hot with this many times the weight of the mean subtask."""
ALIKE = 1.05
"""A subtask with at most this many times its key groups' fair share has ordinary keys."""

EVEN = "even"
UNEVEN_KEY_GROUPS = "uneven key groups"
UNEVEN_KEYS = "uneven keys"
ONE_HOT_KEY = "one hot key"
TOO_FEW_KEYS = "too few keys"
NOTHING_TO_DO = "nothing to do"

_WIDTH = 80
_LONGEST_TABLE = 40  # subtasks in a table
_LONGEST_TEXT = 2**25  # characters, which are about 1000 for each subtask
_CLOSEST_WAYS = 2  # a parallelism is near another up to this many times as large or small
_MOST_COLUMNS = 100  # columns of a pasted table
_NO_NAME = re.compile(r"[{}]|^[-+.]?[0-9]")  # A number or a Prometheus line, but no header.
_SUBTASK_NAMES = ("id", "subtask", "subtask id", "subtask index", "subtask_index")
_COUNT_NAMES = ("records received", "records", "count")
_THOUSANDS = re.compile("[0-9]{1,3}(,[0-9]{3})+")
_COLUMNS = ("subtask", "count", "share", "times_mean", "first_key_group", "last_key_group")


class Cause(NamedTuple):
    """A reason why the heaviest subtask has more than the mean: name, share and remedy.

    `share` is the load that the cause adds, in times the mean subtask. The shares of a report's
    causes add up to its `imbalance` less 1: at 1.61 to 0.61.
    """

    name: str
    share: float
    remedy: str


@dataclass(frozen=True, slots=True, init=False)
class SubtaskCounts:
    """The counts of the subtasks of a keyed operator: records, bytes, or any other measure.

    `counts` holds a finite number >= 0 for each subtask, from subtask 0; their number is the
    parallelism, 1 <= parallelism <= max_parallelism <= 32768. `str()` says why they are uneven
    and what helps, in 80 columns; a notebook shows it as a table. Counts cannot tell which key
    is hot: `keygroups.arrays.skew_report` counts keys.

    Raises ParallelismError, InvalidValueError and InvalidTypeError.

    >>> counts = SubtaskCounts(10, [40, 20, 20, 20, 20, 40, 20, 20])
    >>> counts.imbalance, counts.hot_subtasks, counts.diagnosis
    (1.6, (0, 5), 'uneven key groups')
    >>> counts.remedy.partition(";")[0]
    '2 subtasks have 2 key groups, 6 have 1: at best 1.60 times the mean'
    """

    max_parallelism: int
    counts: tuple[float, ...]
    _total: Fraction = field(repr=False, compare=False)

    def __init__(self, max_parallelism: int, counts: Iterable[float]) -> None:
        groups = check_max_parallelism(max_parallelism)
        object.__setattr__(self, "max_parallelism", groups)
        numbers = iterate("counts", "numbers", counts)
        checked = tuple(
            check_amount("count of subtask", subtask, number)
            for subtask, number in zip(range(groups + 1), numbers)
        )
        bound = "max_parallelism, as there is a count for each subtask"
        check_bounds("length of counts", len(checked), groups, bound)
        object.__setattr__(self, "counts", checked)
        total = sum(map(Fraction, checked), Fraction(0))
        try:
            float(total)
        except OverflowError:
            raise InvalidValueError("counts must have a sum within the range of a float") from None
        object.__setattr__(self, "_total", total)

    @classmethod
    def from_text(cls, max_parallelism: int, text: str) -> SubtaskCounts:
        """Return the counts of a pasted text, which has each subtask of the operator once.

        `text` is one of these, told apart by its look: lines of a subtask and its count, with
        blanks, a comma or a semicolon between them; a table with a header, such as Flink's web UI
        has of the subtasks of a vertex, of which ID and Records Received are taken; lines of
        Prometheus, each with the label `subtask_index`; or JSON, an array of metrics as Flink's
        REST API answers, each with an `id` such as "3.numRecordsIn" and a `value`, or an array of
        counts from subtask 0. Empty lines, and those that begin with #, are left out. A subtask
        that is there twice, as in metrics of two operators, or not at all, and a header that does
        not say which column it is, raise InvalidValueError; else what the class raises.

        >>> answer = '[{"id": "1.numRecordsIn", "value": "7"}, {"id": "0.n", "value": "5"}]'
        >>> SubtaskCounts.from_text(128, answer).counts
        (5, 7)
        """
        return cls(max_parallelism, _counts_of_text(text))

    @property
    def parallelism(self) -> int:
        """The number of subtasks."""
        return len(self.counts)

    @property
    def imbalance(self) -> float:
        """The heaviest subtask's count over the mean, 1.0 where nothing is counted."""
        return self._times_mean(max(self.counts)) if self._total else 1.0

    @property
    def hot_subtasks(self) -> tuple[int, ...]:
        """The subtasks with at least 1.5 times the mean, the hottest first."""
        hot = [i for i, count in enumerate(self.counts) if self._times_mean(count) >= HOT]
        return tuple(sorted(hot, key=lambda subtask: (-self.counts[subtask], subtask)))

    @property
    def idle_subtasks(self) -> tuple[int, ...]:
        """The subtasks with nothing, in order."""
        return tuple(subtask for subtask, count in enumerate(self.counts) if not count)

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The causes of the heaviest subtask's excess over the mean, the largest share first.

        *uneven key groups* is one wherever the ranges alone make it 1.2 times the mean or more;
        *too few keys* where a subtask has nothing; else *uneven keys* where a subtask is hot, or
        has more than its key groups explain. Even counts have no cause.
        """
        if not self._total:
            return ()
        heaviest = self.counts.index(max(self.counts))
        key_groups = len(self._key_groups(heaviest))
        shares = excess_shares(self.max_parallelism, self.parallelism, key_groups, self.imbalance)
        idle = len(self.idle_subtasks)
        if idle:
            keys = Cause(TOO_FEW_KEYS, shares[1], more_keys(idle, self.parallelism))
        elif self.imbalance >= HOT:
            keys = Cause(UNEVEN_KEYS, shares[1], self._which_keys())
        else:
            keys = Cause(UNEVEN_KEYS, shares[1], "")
        return named_causes(self.max_parallelism, self.parallelism, shares[0], keys)

    @property
    def diagnosis(self) -> str:
        """The names of the causes, *even* where there is none."""
        return diagnosis_of(self.causes)

    @property
    def remedy(self) -> str:
        """The remedies of all causes, in one text."""
        return remedy_of(self.causes)

    def __str__(self) -> str:
        section = self._section()
        lines = [line for text in section.texts for line in wrap(text, _WIDTH)]
        rows = [(*row, section.marks.get(index, "")) for index, row in enumerate(section.rows)]
        return "\n".join([*lines, *text_table([(*section.header, ""), *rows])])

    def _repr_html_(self) -> str:
        return html_sections([self._section()])

    def to_pandas(self) -> DataFrame:
        """Return a pandas DataFrame with a row for each subtask, and its key groups."""
        rows = (
            (i, count, self._share(count), self._times_mean(count), held[0], held[-1])
            for i, count in enumerate(self.counts)
            for held in [self._key_groups(i)]
        )
        return data_frame(_COLUMNS, rows)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw a bar for each subtask and the mean; hot ones stand out. Returns the Axes.

        `ax` is Matplotlib's, a new one if None. Needs the extra `plot`.
        """
        title = f"{self.diagnosis}: {self.imbalance:.2f} times the mean"
        return plot_bars(self.counts, "subtask", title, HOT, ax)

    def _texts(self) -> list[str]:
        """Return the first lines of `str()`: the diagnosis, the shares and the remedy."""
        causes = self.causes
        texts = diagnosis_of(causes), remedy_of(causes), causes
        return [*head_texts(*texts, self.parallelism, self.imbalance)]

    def _section(self) -> Section:
        """Return the Section that `str()` and a notebook show."""
        shown: Iterable[int] = range(self.parallelism)
        texts = self._texts()
        if self.parallelism > _LONGEST_TABLE:
            ranked = sorted(shown, key=lambda subtask: (-self.counts[subtask], subtask))
            shown = ranked[:_LONGEST_TABLE]
            texts.append(f"The {_LONGEST_TABLE} heaviest subtasks of {self.parallelism:,}")
        rows = [
            (
                f"{i}",
                show_weight(self.counts[i]),
                f"{self._share(self.counts[i]):.1%}",
                f"{self._times_mean(self.counts[i]):.2f}",
                f"{held.start_key_group}-{held.end_key_group}",
            )
            for i in shown
            for held in [self._key_groups(i)]
        ]
        hot = set(self.hot_subtasks)
        marks = {index: "hot" for index, i in enumerate(shown) if i in hot}
        header = ("subtask", "count", "share", "x mean", "key groups")
        caption = f"What each subtask has; hot: {HOT} times the mean and more"
        return Section(texts, header, rows, caption=caption, marks=marks)

    def _share(self, count: float) -> float:
        return float(Fraction(count) / self._total) if self._total else 0.0

    def _times_mean(self, count: float) -> float:
        return float(Fraction(count) * len(self.counts) / self._total) if self._total else 0.0

    def _key_groups(self, subtask: int) -> KeyGroupRange:
        return compute_key_group_range_for_operator_index(
            self.max_parallelism, self.parallelism, subtask
        )

    def _which_keys(self) -> str:
        alone = ranges_imbalance(self.max_parallelism, self.parallelism)
        return (
            f"{self.max_parallelism} key groups at this parallelism would give {alone:.2f} if all "
            "were alike, so there is a hot key, or many keys are unluckily together: skew_report "
            "tells from the keys"
        )


def _counts_of_text(text: object) -> list[float]:
    """Return the counts of a pasted text, from subtask 0."""
    pasted = check_str("text", text)
    if len(pasted) > _LONGEST_TEXT:
        raise InvalidValueError(f"text must have at most {_LONGEST_TEXT} characters, got more")
    counts: dict[int, Any] = {}
    read = _counts_of_json if pasted.lstrip().startswith("[") else _counts_of_lines
    for subtask, count in read(pasted):
        if subtask in counts:
            raise InvalidValueError(f"text must have each subtask once, got {subtask} twice")
        counts[subtask] = count
    for subtask in range(len(counts)):
        if subtask not in counts:
            raise InvalidValueError(f"text must have each subtask from 0, got none of {subtask}")
    return [counts[subtask] for subtask in range(len(counts))]


def _counts_of_lines(text: str) -> Iterator[tuple[int, float]]:
    lines = (
        (number, line)
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    )
    first = next(lines, None)
    if first is None:
        return
    separator = next((mark for mark in ("\t", ";", ",") if mark in first[1]), None)
    header = _cells(separator, first[1], _MOST_COLUMNS)
    if len(header) > 1 and not any(map(_NO_NAME.search, header)):
        yield from _counts_of_table(separator, header, lines)
        return
    for number, line in chain([first], lines):
        labels, _, after = line.rpartition("}")
        label = re.search(r'[{,]subtask_index="([0-9]{1,5})"', labels)
        # Prometheus may write the time of a sample after its value.
        sample = [label[1], *after.split()[:1]] if label else None
        fields = sample or line.replace(",", " ").replace(";", " ").split()
        try:
            subtask, count = fields
            yield int(_number(subtask, is_index=True)), _number(count)
        except ValueError:
            raise InvalidValueError(
                "text must have a subtask and its count in each line, below a header with ID and "
                "Records Received if there is more in it, or lines of Prometheus with "
                f"subtask_index, got {show(line.strip())} in line {number}"
            ) from None


def _counts_of_table(
    separator: str | None, header: list[str], lines: Iterable[tuple[int, str]]
) -> Iterator[tuple[int, float]]:
    """Yield the counts of the lines below a header."""
    names = [" ".join(name.casefold().split()) for name in header]
    subtasks = [index for index, name in enumerate(names) if name in _SUBTASK_NAMES]
    counts = [index for index, name in enumerate(names) if name in _COUNT_NAMES]
    if len(names) == 2 and not counts:
        counts = [index for index in range(2) if index not in subtasks]
    for columns, name in ((subtasks, "ID"), (counts, "Records Received")):
        if len(columns) != 1:
            listed = [header[index] for index in columns] or header
            raise InvalidValueError(
                f"text must have one column such as {name} in its header, got {show(listed)}"
            )
    at = *subtasks, *counts
    for number, line in lines:
        cells = _cells(separator, line, len(header))
        # A browser copies no last cells that are empty.
        is_whole = max(at) < len(cells) <= len(header)
        try:
            if not is_whole or (separator != "\t" and len(cells) < len(header)):
                raise ValueError
            subtask, count = (cells[index] for index in at)
            if _THOUSANDS.fullmatch(count):
                count = count.replace(",", "")
            yield int(_number(subtask, is_index=True)), _number(count)
        except ValueError:
            raise InvalidValueError(
                f"text must have {header[at[0]]!r} and {header[at[1]]!r} in each line below its "
                f"header, got {show(line.strip())} in line {number}"
            ) from None


def _cells(separator: str | None, line: str, most: int) -> list[str]:
    """Return the cells of a line; if there are more than `most`, the rest is one more cell.

    Without a separator, two blanks or more separate them.
    """
    line = line.strip(" ")
    if separator is None:
        line, separator = re.sub(r"\s{2,}", "\t", line), "\t"
    return [cell.strip() for cell in line.split(separator, most)]


def _counts_of_json(text: str) -> Iterator[tuple[int, Any]]:
    import json  # Most commands start faster without it.

    try:
        elements = json.loads(text)
        for index, element in enumerate(elements):
            if isinstance(element, dict):
                subtask = _number(element["id"].partition(".")[0], is_index=True)
                value = element["value"]
                yield int(subtask), _number(value) if isinstance(value, str) else value
            else:
                yield index, element
    except (ValueError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidValueError(
            "text must be a JSON array of counts, or of metrics with an id such as "
            f'"3.numRecordsIn" and a value, got {show(text)}: {show(error)}'
        ) from None


def _number(text: str, is_index: bool = False) -> float:
    """Return the number of a text, without Python's own "1_000"; raises ValueError.

    An index has digits only.
    """
    if text.isascii() and text.isdigit():
        return int(text)
    if is_index or "_" in text:
        raise ValueError(text)
    return float(text)


def excess_shares(
    max_parallelism: int,
    parallelism: int,
    key_groups: int,
    times_mean: float,
    key_alone: float = 0.0,
) -> tuple[float, float]:
    """Return the shares of the ranges and of the keys in a subtask's excess, in means.

    The subtask has `key_groups` key groups and `times_mean` times the mean load; `key_alone` is
    the load of its hottest key, in means, which exceeds the mean whatever the ranges are. With 2
    of 10 key groups at parallelism 8 the ranges give 1.6 means: of 2.0 they explain 0.6.
    """
    excess = max(times_mean - 1, 0.0)
    expected = key_groups * parallelism / max_parallelism
    if expected <= 1 or not are_uneven(max_parallelism, parallelism):
        return 0.0, excess
    keys = 0.0
    if key_alone or times_mean > ALIKE * expected:
        keys = max(times_mean - expected, min(excess, key_alone - 1))
    return excess - keys, keys


def are_uneven(max_parallelism: int, parallelism: int) -> bool:
    """Return whether the ranges alone give a subtask 1.2 times the mean or more."""
    most = -(-max_parallelism // parallelism)
    return 5 * most * parallelism >= 6 * max_parallelism


def named_causes(
    max_parallelism: int, parallelism: int, ranges_share: float, keys: Cause
) -> tuple[Cause, ...]:
    """Return the causes to report, the largest share first.

    Uneven key groups and too few keys are facts, reported even with a share of 0. Uneven keys
    without a remedy count only beside uneven key groups: else they are ordinary chance.
    """
    uneven = are_uneven(max_parallelism, parallelism)
    causes = []
    if (keys.share and (keys.remedy or uneven)) or keys.name == TOO_FEW_KEYS:
        causes.append(keys)
    if uneven:
        remedy = uneven_remedy(max_parallelism, parallelism)
        causes.append(Cause(UNEVEN_KEY_GROUPS, ranges_share, remedy))
    return tuple(sorted(causes, key=lambda cause: -cause.share))


def diagnosis_of(causes: Sequence[Cause]) -> str:
    """Return the names of the causes, the largest share first."""
    return " and ".join(cause.name for cause in causes) or EVEN


def remedy_of(causes: Sequence[Cause]) -> str:
    """Return the remedies of the causes, joined by semicolons."""
    return "; ".join(cause.remedy for cause in causes if cause.remedy) or NOTHING_TO_DO


def head_texts(
    diagnosis: str, remedy: str, causes: Sequence[Cause], parallelism: int, imbalance: float
) -> Iterator[str]:
    """Yield the diagnosis, the shares of several causes, and the remedy."""
    yield (
        f"{diagnosis}: the heaviest of {parallelism:,} subtasks has {imbalance:.2f} times the mean"
    )
    yield from shares_texts(causes, imbalance)
    yield f"remedy: {remedy}"


def shares_texts(causes: Sequence[Cause], imbalance: float) -> Iterator[str]:
    """Yield a line with the shares of two causes or more, rounded so that they still add up."""
    if len(causes) < 2:
        return
    *others, last = causes
    excess = round(imbalance, 2) - 1
    rest = abs(round(excess - sum(round(cause.share, 2) for cause in others), 2))
    shown = [*(f"{cause.name} {cause.share:.2f}" for cause in others), f"{last.name} {rest:.2f}"]
    yield f"of {excess:.2f} beyond the mean: {', '.join(shown)}"


def more_keys(idle: int, parallelism: int) -> str:
    """Return the remedy for subtasks that have nothing."""
    return (
        f"{idle:,} of {parallelism:,} subtasks have nothing: key by more values or, where the "
        "keyBy has to balance and not to group, by substitute keys (keys_for_subtasks); "
        "skew_report counts the keys"
    )


def ranges_text(max_parallelism: int, parallelism: int) -> str:
    """Return the text on the key groups of subtasks, where not all have as many."""
    few, more = divmod(max_parallelism, parallelism)
    return (
        f"{more:,} {'subtask has' if more == 1 else 'subtasks have'} {few + 1:,} key groups, "
        f"{parallelism - more:,} {'has' if parallelism - more == 1 else 'have'} {few:,}: at best "
        f"{ranges_imbalance(max_parallelism, parallelism):.2f} times the mean"
    )


def uneven_remedy(max_parallelism: int, parallelism: int) -> str:
    """Return the remedy for uneven ranges: near parallelisms, or a max parallelism, that are even.

    Each parallelism comes with the load of its heaviest subtask, were all key groups alike.
    """
    most = -(-max_parallelism // parallelism)
    ways = []
    for near in _near_even(max_parallelism, parallelism):
        change = f"{abs(near - parallelism):,} {'fewer' if near < parallelism else 'more'}"
        load = max_parallelism // near / most
        subtasks = "subtask" if near == 1 else "subtasks"
        ways.append(f"{near:,} {subtasks} ({change}, {load:.0%} of the heaviest load)")
    even = even_max_parallelism(max_parallelism, parallelism)
    ways.append(
        f"or {parallelism:,} with max parallelism {even:,}, which takes change_max_parallelism"
    )
    even_at = ", ".join(ways).removeprefix("or ")
    return f"{ranges_text(max_parallelism, parallelism)}; even are {even_at}"


def even_max_parallelism(max_parallelism: int, parallelism: int) -> int:
    """Return the next higher max parallelism that makes a parallelism even, or the next lower."""
    lower = max_parallelism // parallelism * parallelism
    return lower + parallelism if lower + parallelism <= UPPER_BOUND_MAX_PARALLELISM else lower


def _near_even(max_parallelism: int, parallelism: int) -> Iterator[int]:
    """Yield the next lower and the next higher divisor, unless they are far away."""
    lowest = -(-parallelism // _CLOSEST_WAYS)
    highest = min(parallelism * _CLOSEST_WAYS, max_parallelism)
    for near in (range(parallelism - 1, lowest - 1, -1), range(parallelism + 1, highest + 1)):
        yield from [even for even in near if max_parallelism % even == 0][:1]
