"""`keygroups.arrays` against real Flink over random keys, in bulk: 10^8 with the slow ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flink_arrays import Java, compile_program, random_longs, random_texts
from flink_oracle import flink_jar
from flink_sql import jdk_folder

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
