"""The hot subtasks and the causes of their load, by the records and keys of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from operator import attrgetter
from typing import Any, NamedTuple

from keygroups._checks import record_repr
from keygroups._show.tables import show_weight
from keygroups.key_group_range import KeyGroupRange, compute_key_group_range_for_operator_index
from keygroups.load import KeyGroupLoad
from keygroups.skew import (
    HOT,
    NOTHING_TO_DO,
    ONE_HOT_KEY,
    TOO_FEW_KEYS,
    UNEVEN_KEYS,
    Cause,
    diagnosis_of,
    excess_shares,
    named_causes,
    remedy_of,
)

DOMINANT = 4
"""If a subtask has no key, a hot key has at least this many times the records of the mean key."""

UNLUCKY_KEYS = "many keys unluckily together"
NOT_HOT = "not hot"

_CANDIDATES = 64  # higher parallelisms to try; each takes time in proportion to its subtasks


class SubtaskRow(NamedTuple):
    """The load of one subtask; `sent` is its records after LocalKeyBy, with a `batch_size`."""

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

    def __repr__(self) -> str:
        return record_repr(self)


class HotSubtask(NamedTuple):
    """A subtask with at least 1.5 times the mean: diagnosis, remedy, top keys and causes.

    The shares of `causes` add up to its excess over the mean.
    """

    subtask: int
    diagnosis: str
    remedy: str
    top_keys: tuple[HotKey, ...]
    causes: tuple[Cause, ...] = ()


class HotKeyGroup(NamedTuple):
    """A key group, its share of the subtask's records, and the number of its keys."""

    key_group: int
    records: int
    share: float
    distinct_keys: int


class SubtaskDetail(NamedTuple):
    """The requested subtask: *not hot* or a diagnosis, a remedy, its top key groups and keys."""

    row: SubtaskRow
    diagnosis: str
    remedy: str
    top_key_groups: tuple[HotKeyGroup, ...]
    top_keys: tuple[HotKey, ...]


def subtask_rows(
    load: KeyGroupLoad, distinct_keys: Sequence[int], sent: KeyGroupLoad | None, parallelism: int
) -> list[SubtaskRow]:
    """Return a row for each subtask, the sum of its key groups."""
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
) -> tuple[tuple[Cause, ...], tuple[HotSubtask, ...]]:
    """Return the causes of the heaviest subtask, and the hot subtasks, those of `top_keys`."""
    records, keys = sum(row.records for row in rows), sum(row.distinct_keys for row in rows)
    idle = any(not row.distinct_keys for row in rows)
    remedies = _remedies(rows, load, bool(top_keys))

    def causes_of(row: SubtaskRow) -> tuple[Cause, ...]:
        name, alone = TOO_FEW_KEYS if idle else UNEVEN_KEYS, 0.0
        if row.subtask in top_keys:
            top = top_keys[row.subtask][0].records
            is_hot_key = top * len(rows) >= HOT * records
            if is_hot_key and (not idle or top * keys >= DOMINANT * records):
                name, alone = ONE_HOT_KEY, top * len(rows) / records
            elif not idle:
                name = UNLUCKY_KEYS
        size = len(row.key_groups)
        ranges, share = excess_shares(load.max_parallelism, len(rows), size, row.times_mean, alone)
        others = Cause(name, share, remedies[name])
        return named_causes(load.max_parallelism, len(rows), ranges, others)

    hottest_first = sorted(top_keys, key=lambda subtask: (-rows[subtask].records, subtask))
    hot = []
    for subtask in hottest_first:
        causes = tuple(cause for cause in causes_of(rows[subtask]) if cause.share)
        texts = diagnosis_of(causes), remedy_of(causes)
        hot.append(HotSubtask(subtask, *texts, tuple(top_keys[subtask]), causes))
    heaviest = max(rows, key=lambda row: (row.records, -row.subtask))
    return causes_of(heaviest) if records else (), tuple(hot)


def _remedies(rows: Sequence[SubtaskRow], load: KeyGroupLoad, any_hot: bool) -> dict[str, str]:
    """Return the remedies by the causes that are keys; a parallelism is sought for hot ones."""
    return {
        ONE_HOT_KEY: "a key is in one subtask at any parallelism: pre-aggregate before the keyBy "
        "(LocalKeyBy), or split the key with salts (salted_key: counted ones leave subtasks "
        "empty) and aggregate in two steps",
        TOO_FEW_KEYS: _more_keys(rows),
        UNLUCKY_KEYS: _other_parallelism(load, len(rows)) if any_hot else "",
        UNEVEN_KEYS: "",
    }


def subtask_detail(
    rows: Sequence[SubtaskRow],
    subtask: int,
    hot_subtasks: Iterable[HotSubtask],
    top_keys: Sequence[HotKey],
    load: KeyGroupLoad,
    distinct_keys: Sequence[int],
    top: int,
) -> SubtaskDetail:
    """Return the detail of one subtask, with its top keys and at most `top` key groups."""
    row = rows[subtask]
    diagnosis, remedy = NOT_HOT, NOTHING_TO_DO
    if not row.records and any(other.records for other in rows):
        diagnosis, remedy = TOO_FEW_KEYS, _more_keys(rows)
    for hot in hot_subtasks:
        if hot.subtask == subtask:
            diagnosis, remedy = hot.diagnosis, hot.remedy
    groups = (
        HotKeyGroup(group, int(weight), weight / row.records, distinct_keys[group])
        for group in row.key_groups
        if (weight := load.weights[group])
    )
    heaviest = nlargest(top, groups, key=attrgetter("records"))
    return SubtaskDetail(row, diagnosis, remedy, tuple(heaviest), tuple(top_keys))


def _more_keys(rows: Sequence[SubtaskRow]) -> str:
    keys, reached = sum(row.distinct_keys for row in rows), sum(row.records > 0 for row in rows)
    return (
        f"{keys:,} keys reach {reached:,} of {len(rows):,} subtasks: key by a column of more "
        "values or, where the keyBy has to balance and not to group, by substitute keys "
        "(rebalance_keys), which reach every subtask"
    )


def _other_parallelism(load: KeyGroupLoad, parallelism: int) -> str:
    """Return the remedy for keys that are together by chance: another parallelism if one helps."""
    highest = min(load.max_parallelism, 2 * parallelism, parallelism + _CANDIDATES)
    otherwise = (
        "try another max parallelism or, where the keyBy has to balance and not to group, "
        "substitute keys (rebalance_keys)"
    )
    if highest == parallelism:
        return f"a higher parallelism needs a higher max parallelism: {otherwise}"
    best = load.recommend(parallelism, highest)[0]
    if best.parallelism == parallelism:
        return f"no parallelism up to {highest} has a much lighter heaviest subtask: {otherwise}"
    heaviest = f"{show_weight(best.heaviest_weight)} in its heaviest subtask"
    load_there = f"{heaviest}, imbalance {best.imbalance:.2f}"
    if best.imbalance < HOT:
        return f"another parallelism: {best.parallelism} has {load_there}"
    return (
        f"the best up to {highest} is {best.parallelism}, and still has {load_there}: {otherwise}"
    )
