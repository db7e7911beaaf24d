"""`keygroups.arrays` against real Flink over random keys, in bulk: 10^8 with the slow ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.flink.flink_arrays import Java, compile_program, random_longs, random_texts
from support.flink.flink_oracle import flink_jar
from support.flink.flink_sql import FlinkSql, in_sql, jdk_folder
from support.keys.arrow_keys import in_arrow
from support.keys.random_rows import random_rows

from keygroups import arrays
from keygroups.types import DOUBLE, INT, LONG, SQL_ROW, STRING, KeyType

pytestmark = pytest.mark.flink

KINDS: dict[str, tuple[KeyType, Callable[[int, int], Any]]] = {
    "INT": (INT, lambda count, seed: (random_longs(count, seed) >> seed % 32).astype(np.int32)),
    "LONG": (LONG, random_longs),
    # Of any bits, so of every exponent, with every kind of NaN.
    "DOUBLE": (DOUBLE, lambda count, seed: random_longs(count, seed).view(np.float64)),
    "STRING": (STRING, random_texts),
    "SQL_ROW": (SQL_ROW("BIGINT"), random_longs),
}
MAX_PARALLELISMS = (128, 32768, 1000, 720)


@pytest.mark.parametrize(
    ("count", "rounds"), [(250_000, 1), pytest.param(5_000_000, 4, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("kind", KINDS)
def test_key_groups_are_those_of_flink(kind: str, count: int, rounds: int, tmp_path: Path) -> None:
    jar, jdk = flink_jar(), jdk_folder()
    if jar is None or jdk is None:
        pytest.skip("no apache-flink-libraries or no JDK")
    class_path = compile_program(jdk, jar, tmp_path)
    key_type, make = KINDS[kind]
    for seed, max_parallelism in zip(range(rounds), MAX_PARALLELISMS):
        keys = make(count, seed)
        java = Java(jdk, tmp_path, class_path, kind, keys, max_parallelism)
        java.round()
        java.end()
        ours = arrays.assign_to_key_group(keys, max_parallelism, key_type)
        assert int((ours != java.key_groups()).sum()) == 0
    print(f"{kind}: {count * rounds:,} keys, no mismatch")


NESTED = (
    "TIME(3)",
    "ROW<f0 INT, f1 STRING, f2 DECIMAL(38, 10)>",
    "ARRAY<STRING>",
    "ARRAY<ROW<f0 TIMESTAMP(6), f1 BOOLEAN>>",
)


def test_nested_rows_hash_as_in_flink(flink_sql: FlinkSql) -> None:
    """Rows in rows and arrays, with nulls on every level, as Flink's planner and writer say."""
    scalars = ("TIME(3)", "INT", "STRING", "DECIMAL(38,10)", "STRING", "TIMESTAMP(6)", "BOOLEAN")
    rows: list[Any] = []
    flat: list[Any] = random_rows(scalars, 20_000)
    for number, scalar in enumerate(flat):
        time, integer, first, decimal, second, moment, flag = scalar
        first, second = (in_sql(text) for text in (first, second))  # Arrow has no surrogates
        nested = (integer, first, decimal) if number % 7 else None
        texts = [first, second] * (number % 5 * (number % 11)) if number % 3 else None
        pairs = [(moment, flag), None, (None, flag)][: number % 4] if number % 6 else None
        rows.append((time, nested, texts, pairs))
    key_type = SQL_ROW(*NESTED)
    keys = pa.array(
        [in_arrow(key_type, row).value for row in rows], in_arrow(key_type, rows[0]).type
    )
    assert arrays.hash_code(keys, key_type).tolist() == flink_sql.row_hashes(NESTED, rows)
    print(f"{key_type}: {len(rows):,} keys, no mismatch")
