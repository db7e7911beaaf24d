"""The report of skew from counted records, which arrays and Spark count."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from keygroups._checks import INT_MAX, check_int, check_parallelisms
from keygroups.load import KeyGroupLoad
from keygroups.reports import HotKey, SkewReport
from keygroups.reports._diagnosis import diagnose, subtask_detail, subtask_rows
from keygroups.skew import HOT, diagnosis_of, remedy_of
from keygroups.types import KeyType

_MOST_TOP_KEYS = 1000
_CountedKey = tuple[int, int, int, Any]
"""The subtask of a key, its key group, its records, and the key itself."""


class SkewQuestion(NamedTuple):
    """The checked arguments of a `skew_report`, all but the records and their key."""

    max_parallelism: int
    parallelism: int
    top: int
    batch_size: int | None
    subtask: int | None

    @classmethod
    def checked(
        cls,
        max_parallelism: int,
        parallelism: int,
        top: int,
        batch_size: int | None,
        subtask: int | None,
    ) -> SkewQuestion:
        """Return the question of arguments; raises what `skew_report` raises for them."""
        max_parallelism, parallelism = check_parallelisms(max_parallelism, parallelism)
        top = check_int("top", top, 1, _MOST_TOP_KEYS)
        if batch_size is not None:
            batch_size = check_int("batch_size", batch_size, 1, INT_MAX)
        if subtask is not None:
            subtask = check_int("subtask", subtask, 0, parallelism - 1)
        return cls(max_parallelism, parallelism, top, batch_size, subtask)

    def report(
        self,
        key_type: KeyType,
        is_inferred: bool,
        records: list[int],
        distinct_keys: list[int],
        sent: list[int],
        null_keys: int,
        top_keys_of: Callable[[list[bool]], Iterable[_CountedKey]],
    ) -> SkewReport:
        """Return the report of records and keys, which are counted by their key groups.

        `sent` are the records after LocalKeyBy, and are passed over without a batch size;
        `is_inferred` is that of the report. `top_keys_of` is called if a subtask is hot or
        requested, with a flag for each subtask. It yields the heaviest keys of those that are, the
        heaviest first, at most `top` of each.
        """
        load = KeyGroupLoad(self.max_parallelism, records)
        behind = None if self.batch_size is None else KeyGroupLoad(self.max_parallelism, sent)
        rows = subtask_rows(load, distinct_keys, behind, self.parallelism)
        hot = [row.times_mean >= HOT for row in rows]
        wanted = [
            is_hot or (row.subtask == self.subtask and row.records > 0)
            for is_hot, row in zip(hot, rows)
        ]
        top_keys: dict[int, list[HotKey]] = {}
        for index, key_group, count, key in top_keys_of(wanted) if any(wanted) else ():
            share = count / rows[index].records
            top_keys.setdefault(index, []).append(HotKey(key, key_group, count, share))
        hot_keys = {index: keys for index, keys in top_keys.items() if hot[index]}
        causes, hot_subtasks = diagnose(rows, hot_keys, load)
        detail = None
        if self.subtask is not None:
            its_keys = top_keys.get(self.subtask, [])
            detail = subtask_detail(
                rows, self.subtask, hot_subtasks, its_keys, load, distinct_keys, self.top
            )
        return SkewReport(
            key_type,
            self.parallelism,
            self.batch_size,
            load,
            behind,
            tuple(rows),
            hot_subtasks,
            diagnosis_of(causes),
            remedy_of(causes),
            null_keys,
            detail,
            is_inferred,
            causes,
        )
