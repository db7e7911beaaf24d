"""What a skew report says, and how it looks as text and in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from textwrap import wrap
from typing import Any, NamedTuple

from keygroups.assignment import compute_key_group_range_for_operator_index
from keygroups.key_group_range import KeyGroupRange
from keygroups.load import KeyGroupLoad
from keygroups.types import KeyType

__all__ = [
    "DOMINANT",
    "HOT",
    "HotKey",
    "HotSubtask",
    "SkewReport",
    "SubtaskRow",
    "diagnose",
    "subtask_rows",
]

HOT = 1.5
"""A subtask is hot with this many times the records of the mean subtask."""
DOMINANT = 4
"""Where subtasks go without a key, a hot key has this many times the records of the mean key."""

EVEN = "even"
ONE_HOT_KEY = "one hot key"
TOO_FEW_KEYS = "too few keys"
UNLUCKY_KEYS = "many keys unluckily together"

_WIDTH = 80
_LONGEST_TABLE = 20
_DETAILED = 3  # hot subtasks whose keys are shown
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
    first. `str()` says it in 80 columns, a notebook shows it as tables, and
    `pandas.DataFrame(report.subtasks)` takes the rows.
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
        return "".join(_html(section) for section in _sections(self))


def subtask_rows(
    load: KeyGroupLoad, distinct_keys: Sequence[int], sent: KeyGroupLoad | None, parallelism: int
) -> list[SubtaskRow]:
    """Add up the key groups of each subtask."""
    total = sum(load.weights)
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
        shown = sorted(shown, key=lambda row: (-row.records, row.subtask))[:_LONGEST_TABLE]
        texts = [f"The {_LONGEST_TABLE} heaviest subtasks of {of:,}"]
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


def _html(section: _Section) -> str:
    texts = "".join(f"<p>{escape(text)}</p>" for text in section.texts)
    if not section.header:
        return texts
    head = "".join(f"<th>{escape(cell)}</th>" for cell in section.header)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in section.rows
    )
    return f"{texts}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
