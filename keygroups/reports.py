"""What is reported of skew and of rescaling, as text and in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import fill, wrap
from typing import Any, NamedTuple

from keygroups._checks import check_class
from keygroups._notebook import data_frame, html_table
from keygroups.assignment import compute_key_group_range_for_operator_index
from keygroups.key_group_range import KeyGroupRange
from keygroups.load import HOT, KeyGroupLoad, Recommendations
from keygroups.rescale import RescalePlan
from keygroups.types import KeyType

__all__ = ["HotKey", "HotSubtask", "RescaleReport", "SkewReport", "SubtaskRow"]
__dir__ = __all__.copy

DOMINANT = 4
"""Where subtasks go without a key, a hot key has this many times the records of the mean key."""

EVEN = "even"
ONE_HOT_KEY = "one hot key"
TOO_FEW_KEYS = "too few keys"
UNLUCKY_KEYS = "many keys unluckily together"

_WIDTH = 80
_LONGEST_TABLE = 20
_DETAILED = 3  # hot subtasks whose keys are shown
_FARTHEST = 500  # parallelisms that are ranked on either side of a new one
_RANKED = 3  # parallelisms that are shown of those
_CANDIDATES = 64  # higher parallelisms that are looked at, each in time with its subtasks


class SubtaskRow(NamedTuple):
    """What one subtask gets; `sent` is its records behind LocalKeyBy, if that was asked for."""

    subtask: int
    records: int
    share: float
    times_mean: float
    distinct_keys: int
    key_groups: KeyGroupRange
    sent: int | None


class HotKey(NamedTuple):
    """A key, as `collect()` gives it or a tuple of such, and its share of the subtask."""

    key: Any
    key_group: int
    records: int
    share: float


class HotSubtask(NamedTuple):
    """A subtask with at least 1.5 times the mean: why, what helps, and its top keys."""

    subtask: int
    diagnosis: str
    remedy: str
    top_keys: tuple[HotKey, ...]


class _Section(NamedTuple):
    texts: list[str]
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class SkewReport:
    """How even the records of a keyed stream are, and why not; see `skew_report`.

    `load` and `sent` are the records per key group, before and behind LocalKeyBy. `subtasks`
    has a row for each subtask, `hot_subtasks` those of at least 1.5 times the mean, hottest
    first. `str()` says it in 80 columns, a notebook shows it as tables.
    """

    key_type: KeyType
    parallelism: int
    batch_size: int | None
    load: KeyGroupLoad = field(repr=False)
    sent: KeyGroupLoad | None = field(repr=False)
    subtasks: tuple[SubtaskRow, ...] = field(repr=False)
    hot_subtasks: tuple[HotSubtask, ...] = field(repr=False)
    diagnosis: str
    remedy: str

    @property
    def records(self) -> int:
        """All records."""
        return sum(row.records for row in self.subtasks)

    @property
    def distinct_keys(self) -> int:
        """All keys."""
        return sum(row.distinct_keys for row in self.subtasks)

    @property
    def imbalance(self) -> float:
        """The heaviest subtask's records over the mean."""
        return self.load.imbalance(self.parallelism)

    def __str__(self) -> str:
        lines: list[str] = []
        for section in _sections(self):
            lines += ["", *(line for text in section.texts for line in wrap(text, _WIDTH))]
            table = [section.header, *section.rows] if section.header else []
            widths = [max(map(len, column)) for column in zip(*table)]
            if section.header[-1:] == ("key",):  # at the end, and to the left
                widths[-1] = 0
            lines += [
                "  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in table
            ]
        return "\n".join(lines[1:])

    def _repr_html_(self) -> str:
        return "".join(html_table(*section) for section in _sections(self))

    def plot(self, ax: Any = None) -> Any:
        """Draw the records of each subtask; see `KeyGroupLoad.plot`."""
        return self.load.plot(self.parallelism, ax)

    def to_pandas(self) -> Any:
        """Return `subtasks` as a pandas DataFrame, a row each."""
        return data_frame(SubtaskRow._fields, self.subtasks)


def subtask_rows(
    load: KeyGroupLoad, distinct_keys: Sequence[int], sent: KeyGroupLoad | None, parallelism: int
) -> list[SubtaskRow]:
    """Add up the key groups of each subtask."""
    total = load.total
    behind = None if sent is None else sent.per_subtask(parallelism)
    rows = []
    for subtask, weight in enumerate(load.per_subtask(parallelism)):
        groups = compute_key_group_range_for_operator_index(
            load.max_parallelism, parallelism, subtask
        )
        rows.append(
            SubtaskRow(
                subtask,
                int(weight),
                weight / total if total else 0.0,
                weight * parallelism / total if total else 0.0,
                sum(distinct_keys[groups.start_key_group : groups.end_key_group + 1]),
                groups,
                None if behind is None else int(behind[subtask]),
            )
        )
    return rows


def diagnose(
    rows: Sequence[SubtaskRow], top_keys: Mapping[int, Sequence[HotKey]], load: KeyGroupLoad
) -> tuple[str, str, tuple[HotSubtask, ...]]:
    """Return the diagnosis of all, its remedy, and the hot subtasks, whose top keys are given."""
    records, keys = sum(row.records for row in rows), sum(row.distinct_keys for row in rows)
    idle = sum(not row.distinct_keys for row in rows)
    remedies = {
        EVEN: "nothing to do",
        ONE_HOT_KEY: "a key is in one subtask at any parallelism: pre-aggregate before the keyBy "
        "(LocalKeyBy), or split the key with a salt and aggregate in two steps",
        TOO_FEW_KEYS: f"{keys:,} keys reach {len(rows) - idle:,} of {len(rows):,} subtasks: key "
        "by a column of more values or, where the keyBy has to balance and not to group, by "
        "substitute keys (rebalance_keys), which reach every subtask",
        UNLUCKY_KEYS: _other_parallelism(load, len(rows)) if top_keys else "",
    }

    def why(top: HotKey) -> str:
        if top.records * len(rows) >= HOT * records and (
            not idle or top.records * keys >= DOMINANT * records
        ):
            return ONE_HOT_KEY
        return TOO_FEW_KEYS if idle else UNLUCKY_KEYS

    hottest_first = sorted(top_keys, key=lambda subtask: (-rows[subtask].records, subtask))
    found = [(subtask, why(top_keys[subtask][0])) for subtask in hottest_first]
    hot = tuple(HotSubtask(i, said, remedies[said], tuple(top_keys[i])) for i, said in found)
    verdict = hot[0].diagnosis if hot else TOO_FEW_KEYS if idle and records else EVEN
    return verdict, remedies[verdict], hot


def _other_parallelism(load: KeyGroupLoad, parallelism: int) -> str:
    """Say which higher parallelism helps, or that none does."""
    highest = min(load.max_parallelism, 2 * parallelism, parallelism + _CANDIDATES)
    otherwise = (
        "try another max parallelism or, where the keyBy has to balance and not to group, "
        "substitute keys (rebalance_keys)"
    )
    if highest == parallelism:
        return f"a higher parallelism needs a higher max parallelism: {otherwise}"
    best = load.recommend(parallelism + 1, highest)[0]
    said = f"{best.parallelism} has imbalance {best.imbalance:.2f}"
    if best.imbalance < HOT:
        return f"another parallelism: {said}"
    return f"no parallelism up to {highest} is even (of the higher, {said}): {otherwise}"


def _sections(report: SkewReport) -> Iterator[_Section]:
    """Say a report: what is in common of the text and the notebook."""
    of, behind = len(report.subtasks), report.sent is not None
    yield _Section(
        [
            f"{report.diagnosis}: the heaviest of {of:,} subtasks has {report.imbalance:.2f} "
            "times the mean",
            f"remedy: {report.remedy}",
            f"{report.records:,} records, {report.distinct_keys:,} distinct keys of type "
            f"{_fit(repr(report.key_type))}, max parallelism {report.load.max_parallelism:,}",
        ]
    )
    shown: Sequence[SubtaskRow] = report.subtasks
    texts = []
    if of > _LONGEST_TABLE:
        ranked = sorted(shown, key=lambda row: (-row.records, row.subtask))
        shown, rest = ranked[:_LONGEST_TABLE], ranked[_LONGEST_TABLE:]
        texts.append(f"The {_LONGEST_TABLE} heaviest subtasks of {of:,}")
        texts.append(f"The others have {rest[-1].records:,} to {rest[0].records:,} records each")
    idle = sum(not row.records for row in report.subtasks)
    if idle and report.records:
        texts.append(f"{idle:,} of {of:,} subtasks get no record")
    header = ("subtask", "records", "share", "x mean", "key groups", "keys", "sent")
    cells = [
        (
            f"{row.subtask}",
            f"{row.records:,}",
            f"{row.share:.1%}",
            f"{row.times_mean:.2f}",
            f"{row.key_groups.start_key_group}-{row.key_groups.end_key_group}",
            f"{row.distinct_keys:,}",
            f"{row.sent:,}" if behind else "",
        )
        for row in shown
    ]
    columns = len(header) if behind else len(header) - 1
    yield _Section(texts, header[:columns], [row[:columns] for row in cells])
    if report.sent is not None:
        sent, most = sum(report.sent.weights), max(row.sent or 0 for row in report.subtasks)
        yield _Section(
            [
                f"LocalKeyBy with batches of {report.batch_size:,} sends {sent:,} records for "
                f"{report.records:,}, at most {most:,} to a subtask where "
                f"{max(row.records for row in report.subtasks):,} went"
            ]
        )
    for hot in report.hot_subtasks[:_DETAILED]:
        yield _Section(
            [
                f"subtask {hot.subtask}: {hot.diagnosis}",
                *([f"remedy: {hot.remedy}"] if hot.remedy != report.remedy else []),
            ],
            ("records", "of the subtask", "key group", "key"),
            [
                (f"{one.records:,}", f"{one.share:.1%}", f"{one.key_group}", _fit(_text(one.key)))
                for one in hot.top_keys
            ],
        )
    if len(report.hot_subtasks) > _DETAILED:
        yield _Section([f"{len(report.hot_subtasks) - _DETAILED:,} more subtasks are hot"])


def _text(key: object) -> str:
    """Show a key: text in quotes, so that an empty string can be seen; null as Spark does."""
    if isinstance(key, (tuple, list)):
        return f"({', '.join(map(_text, key))})"
    return "NULL" if key is None else repr(key) if isinstance(key, str) else str(key)


def _fit(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:18]}...{text[-19:]}"


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
        check_class("plan", self.plan, RescalePlan, "a RescalePlan")
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
        return self.moved_weight / (self.load.total or 1)

    @property
    def recommendations(self) -> Recommendations:
        """The new parallelism and the better ones near it, the most even first.

        Near is from half of it to twice it, at most 500 away. Better are those above it in
        `load.recommend` that have no heavier subtask: two subtasks are easily more even than
        four, and each has more to do. Where nothing is better, the new one stands alone.
        """
        ranked = self.load.recommend(*self._near)
        place = [one.parallelism for one in ranked].index(self.plan.new_parallelism)
        heaviest = ranked[place].heaviest_weight
        near = ranked[: place + 1]
        return Recommendations(one for one in near if one.heaviest_weight <= heaviest)

    def _repr_html_(self) -> str:
        moved = f"weight: {self.moved_weight:,} of {self.load.total:,} moves"
        texts = [f"{moved} ({self.moved_weight_share:.1%})", *self._texts()]
        plan, better = self.plan._repr_html_(), self.recommendations._repr_html_()
        return f"{plan}{html_table(texts)}{better}"

    def to_pandas(self) -> Any:
        """Return the plan's pieces as a pandas DataFrame, with the `weight` of each."""
        frame = self.plan.to_pandas()
        frame["weight"] = [self.load.weight_of(piece.key_group_range) for piece in self.plan]
        return frame

    def plot(self, ax: Any = None) -> Any:
        """Draw the plan with the load; see `RescalePlan.plot`."""
        return self.plan.plot(self.load, ax)

    def __str__(self) -> str:
        ranked = [
            fill(str(one), 80, initial_indent="  ", subsequent_indent="    ")
            for one in self.recommendations[:_RANKED]
        ]
        return "\n".join([self.plan.table(self.load), *self._texts(), *ranked])

    def _texts(self) -> Iterator[str]:
        for when, weights in (("before", self.weight_before), ("after", self.weight_after)):
            share = max(weights) / (self.load.total or 1)
            yield (
                f"hot subtask {when}: {_heaviest(weights)} of {len(weights)}, "
                f"with {share:.1%} of the weight"
            )
        low, high = self._near
        yield (
            f"recommended, from {low} to {high} with no heavier subtask than at "
            f"{self.plan.new_parallelism}:"
        )

    @property
    def _near(self) -> tuple[int, int]:
        new = self.plan.new_parallelism
        high = min(2 * new, new + _FARTHEST, self.plan.max_parallelism)
        return max((new + 1) // 2, new - _FARTHEST), high


def _heaviest(weights: list[float]) -> int:
    return weights.index(max(weights))
