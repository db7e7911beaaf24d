"""Values longer or finer than their declared type, in SQL jobs of real Flink.

An exchange hashes what reaches it: a CAST cuts, and so does one of the formats here, but neither
the declared type nor the exchange does. What was hashed shows in the subtask that a key reached.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.flink.flink_sql import FlinkSql

from keygroups import InvalidValueError, assign_key_to_parallel_operator
from keygroups.types import SQL_ROW

pytestmark = [
    pytest.mark.flink,
    pytest.mark.flink_since("1.20", "the API of its job"),
]

MAX_PARALLELISM, PARALLELISM = 128, 5
TEXTS = [f"{index:03}{'abcdefg' * (index % 3)}" for index in range(100)]
MOMENTS = [
    dt.datetime(2024, 1, 1, 12, second // 60, second % 60, second * 8_765 + 111_111)
    for second in range(100)
]


def cut(moment: dt.datetime, digits: int) -> dt.datetime:
    unit = 10 ** (6 - digits)
    return moment.replace(microsecond=moment.microsecond // unit * unit)


# The declared type and format of a key, what the job groups by, what the exchange hashes of each
# value, and the type whose fields hold that.
JOBS: dict[str, tuple[str, str, str, list[Any], str]] = {
    "json_text": ("VARCHAR(3)", "json", "k", TEXTS, "STRING"),
    "csv_text": ("CHAR(3)", "csv", "k", TEXTS, "STRING"),
    "bare_text": ("VARCHAR", "json", "k", TEXTS, "STRING"),
    "cast_text": (
        "STRING",
        "json",
        "CAST(k AS VARCHAR(5))",
        [text[:5] for text in TEXTS],
        "VARCHAR(5)",
    ),
    "json_moment": ("TIMESTAMP(0)", "json", "k", [cut(m, 3) for m in MOMENTS], "TIMESTAMP(3)"),
    "csv_moment": ("TIMESTAMP(5)", "csv", "k", MOMENTS, "TIMESTAMP(6)"),
    "json_time": ("TIME(0)", "json", "k", [cut(m, 3).time() for m in MOMENTS], "TIME(3)"),
    "csv_time": ("TIME(0)", "csv", "k", [cut(m, 0).time() for m in MOMENTS], "TIME"),
}


def test_an_exchange_hashes_what_reaches_it(
    flink_sql: FlinkSql, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    task: dict[str, Any] = {
        "parallelism": PARALLELISM,
        "max_parallelism": MAX_PARALLELISM,
        "tables": [],
        "queries": [],
        "keys": ["a"],
    }
    for name, (declared, file_format, group_by, _, _) in JOBS.items():
        texts = TEXTS
        if not name.endswith("text"):
            start = len("2024-01-01 ") if name.endswith("time") else 0
            texts = [moment.isoformat(" ", "microseconds")[start:] for moment in MOMENTS]
        lines = [f"{text},{index}" for index, text in enumerate(texts)]
        if file_format == "json":
            lines = [json.dumps({"k": text, "i": index}) for index, text in enumerate(texts)]
        file = tmp_path / name
        file.write_text("\n".join(lines), encoding="ascii")
        task["tables"].append(
            f"CREATE TABLE {name} (k {declared}, i INT) WITH ('connector' = 'filesystem', "
            f"'format' = '{file_format}', 'path' = '{file.as_uri()}')"
        )
        # Each key has one row, whose number says which.
        task["queries"].append(f"SELECT MIN(i), COUNT(*) FROM {name} GROUP BY {group_by}")
    *jobs, _ = flink_sql.subtask_reports(task)
    for job, (name, (_, _, _, values, type_text)) in zip(jobs, JOBS.items()):
        expected = [subtask(value, type_text) for value in values]
        seen = {report[0]: report[-1] for report in job["reports"]}
        assert seen == dict(enumerate(expected)), name
        record_property(f"{name}: keys compared", len(seen))
        print(f"{name}: {len(seen)} keys compared")


@pytest.mark.parametrize(
    ("declared", "same", "value"),
    [
        ("VARCHAR(3)", "STRING", TEXTS[1]),
        ("CHAR", "STRING", TEXTS[1]),
        ("VARBINARY(3)", "BYTES", b"abcd"),
        ("TIMESTAMP(0)", "TIMESTAMP(3)", cut(MOMENTS[0], 3)),
        ("TIMESTAMP(5)", "TIMESTAMP(6)", MOMENTS[0]),
        ("TIME(2)", "TIME(3)", cut(MOMENTS[0], 3).time()),
    ],
)
def test_the_message_names_the_type_that_holds_the_value(
    declared: str, same: str, value: object
) -> None:
    with pytest.raises(InvalidValueError, match=re.escape(f"and declare {same}, which gives")):
        subtask(value, declared)
    assert subtask(value, same) in range(PARALLELISM)


def subtask(value: object, type_text: str) -> int:
    return assign_key_to_parallel_operator(
        (value,), MAX_PARALLELISM, PARALLELISM, SQL_ROW(type_text)
    )
