"""The report of skew from counted records, which arrays and Spark count."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from keygroups.load import KeyGroupLoad
from keygroups.reports import HotKey, SkewReport
from keygroups.reports._diagnosis import diagnose, subtask_detail, subtask_rows
from keygroups.skew import HOT, diagnosis_of, remedy_of
from keygroups.types import KeyType

MOST_TOP_KEYS = 1000


class SkewCounts(NamedTuple):
    """The records and keys of each key group, and its records after LocalKeyBy, or None."""

    load: KeyGroupLoad
    distinct_keys: list[int]
    sent: KeyGroupLoad | None
    null_keys: int


class CountedKey(NamedTuple):
    """A key, its place and its number of records."""

    subtask: int
    key_group: int
    records: int
    key: Any


def skew_report_of(
    counts: SkewCounts,
    key_type: KeyType,
    is_inferred: bool,
    parallelism: int,
    top: int,
    batch_size: int | None,
    subtask: int | None,
    top_keys_of: Callable[[list[bool]], Iterable[CountedKey]],
) -> SkewReport:
    """Return the report; the arguments are those of `skew_report`, `is_inferred` as in the report.

    `top_keys_of` is called if a subtask is hot or requested, with a flag for each subtask. It
    yields the heaviest keys of those that are, the heaviest first, at most `top` of each.
    """
    load, distinct_keys = counts.load, counts.distinct_keys
    rows = subtask_rows(load, distinct_keys, counts.sent, parallelism)
    hot = [row.times_mean >= HOT for row in rows]
    wanted = [
        is_hot or (row.subtask == subtask and row.records > 0) for is_hot, row in zip(hot, rows)
    ]
    top_keys: dict[int, list[HotKey]] = {}
    for index, key_group, records, key in top_keys_of(wanted) if any(wanted) else ():
        share = records / rows[index].records
        top_keys.setdefault(index, []).append(HotKey(key, key_group, records, share))
    hot_keys = {index: keys for index, keys in top_keys.items() if hot[index]}
    causes, hot_subtasks = diagnose(rows, hot_keys, load)
    detail = None
    if subtask is not None:
        its_keys = top_keys.get(subtask, [])
        detail = subtask_detail(rows, subtask, hot_subtasks, its_keys, load, distinct_keys, top)
    return SkewReport(
        key_type,
        parallelism,
        batch_size,
        load,
        counts.sent,
        tuple(rows),
        hot_subtasks,
        diagnosis_of(causes),
        remedy_of(causes),
        counts.null_keys,
        detail,
        is_inferred,
        causes,
    )
