"""The changelog of `keygroups.spark.state` against Flink SQL's own functions, row by row."""

from __future__ import annotations

import json
import random

import pytest
from support.flink.flink_sql import FlinkSql
from support.flink.group_histories import (
    SQL,
    Batch,
    flink_lines,
    random_history,
    told_by_flink,
    told_by_us,
    values,
)
from support.inside.adapter import Retention

pytestmark = [
    pytest.mark.flink,
    pytest.mark.flink_since("2.3", "the planner of its histories"),
]

MINUTE = 60_000
LOW, HIGH, TTL = 10 * MINUTE, 16 * MINUTE, 10 * MINUTE
RETENTIONS = {
    "for ever": Retention(None, None, False),
    "idle": Retention((LOW, HIGH), None, False),
    "on create and write": Retention(None, TTL, False),
    "on read and write": Retention(None, TTL, True),
}
GAPS = [
    0,
    1,
    1000,
    MINUTE,
    4 * MINUTE,
    *(time + off for time in (LOW, HIGH) for off in (-1, 0, 1)),
]
GAPS += [HIGH - LOW, HIGH - LOW - 1, 2 * HIGH]
INTEGERS = ["TINYINT", "SMALLINT", "INT", "BIGINT"]
TYPES = {
    "count(*)": ["BIGINT"],
    "count": ["BIGINT", "DOUBLE"],
    "sum": [*INTEGERS, "DOUBLE"],
    "min": [*INTEGERS, "STRING", "DATE"],
    "max": [*INTEGERS, "STRING", "DATE"],
    "count_distinct": [*INTEGERS, "STRING", "DATE"],
}
HISTORIES = 2400  # histories of each aggregate, a quarter for each retention, half in mini-batches


@pytest.mark.parametrize("names", [*((name,) for name in SQL), tuple(SQL)], ids=" ".join)
def test_histories_are_those_of_flink(names: tuple[str, ...], flink_sql: FlinkSql) -> None:
    chance = random.Random(" ".join(names))
    types = TYPES[names[0]] if len(names) == 1 else ["BIGINT", "INT"]
    asked: list[tuple[str, Retention, bool, list[Batch]]] = []
    lines: list[str] = []
    for retention in RETENTIONS.values():
        for mini_batch in (False, True):
            for flink_type in types:
                count = -(-HISTORIES // (2 * len(RETENTIONS) * len(types)))
                pool = values(flink_type)
                histories = [random_history(chance, pool, GAPS) for _ in range(count)]
                lines += flink_lines(names, flink_type, retention, mini_batch, histories)
                asked += [(flink_type, retention, mini_batch, history) for history in histories]
    answers = flink_sql.group_aggregates(lines)
    assert len(answers) == len(asked) >= 2000
    rows = 0
    for (flink_type, retention, mini_batch, history), answer in zip(asked, answers):
        flink = told_by_flink(json.loads(answer), names, flink_type)
        ours = told_by_us(names, flink_type, retention, mini_batch, history)
        assert ours == flink, (flink_type, retention, mini_batch, history)
        rows += sum(map(len, flink))
    print(f"{' '.join(names)}: {len(asked):,} histories, {rows:,} rows, no difference")
