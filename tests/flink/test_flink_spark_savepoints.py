"""Savepoints that Spark writes, restored by real Flink, which finds all that was in the rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.flink.flink_restores import BACKENDS, FlinkRestores, State, Task
from support.flink.restore_table import RestoreTable
from support.flink.written_savepoints import (
    DAY,
    NAMES,
    Case,
    Entry,
    KeyedOperator,
    found_rows,
    keys_of_groups,
    now,
    saved_entries,
)

from keygroups.spark.savepoint import (
    KeyedState,
    ListState,
    MapState,
    ReducingState,
    ValueState,
    write_savepoint,
)
from keygroups.types import DOUBLE, INT, LONG, STRING, TUPLE

pytestmark = [
    pytest.mark.flink,
    pytest.mark.flink_since("1.20", "the API of its job"),
]

MAX_PARALLELISM, PARALLELISM = 4096, 3
BY_NAME = [
    State("count", "VALUE", LONG),
    State("label", "VALUE", STRING),
    State("tags", "LIST", STRING),
    State("cities", "MAP", INT, STRING),
    State("sum", "REDUCING", DOUBLE),
]
BY_PAIR = [
    State("seen", "VALUE", INT, ttl=DAY),
    State("visits", "MAP", STRING, INT, ttl=DAY),
]
NAME_SCHEMA = "name string, n bigint, label string, tags array<string>, total double"
CITY_SCHEMA = "name string, city string, m int"
PAIR_SCHEMA = "user string, day int, seen int, page int, text string, accessed bigint"


def texts() -> list[str]:
    """Return texts that Spark can hold, without halves of surrogate pairs."""
    return [name for name in NAMES if not any("\ud800" <= one <= "\udfff" for one in name)]


def write(spark: SparkSession, path: Path, keys: int) -> Case:
    """Write a savepoint of two operators, and return what is in it."""
    rng = random.Random(keys)
    names = [*texts(), *keys_of_groups({0, MAX_PARALLELISM - 1}, MAX_PARALLELISM)]
    names += [f"user-{number}" for number in range(keys - len(names))]
    by_name, name_rows, city_rows = [], [], []
    for name in names:
        label = rng.choice([None, *texts()])
        tags = rng.choices(texts(), k=rng.randrange(4))
        n, total = rng.getrandbits(64) - 2**63, rng.uniform(-1e9, 1e9)
        name_rows.append((name, n, label, tags, total))
        by_name += [Entry("count", name, n), Entry("sum", name, total)]
        by_name += [] if label is None else [Entry("label", name, label)]
        by_name += [Entry("tags", name, tags)] if tags else []
        for city in rng.sample(texts(), rng.randrange(3)):
            city_rows.append((name, city, rng.getrandbits(31)))
            by_name.append(Entry("cities", name, city_rows[-1][2], city))
    by_pair: list[Entry] = []
    pair_rows: list[tuple[Any, ...]] = []
    time = now()
    for name in names:
        for day in range(rng.randrange(3)):
            accessed = time - rng.randrange(3_600_000)
            pair_rows.append((name, day, day * 7, None, None, accessed))
            by_pair.append(Entry("seen", (name, day), day * 7, None, accessed))
            for page in range(rng.randrange(3)):
                text = rng.choice(texts())
                pair_rows.append((name, day, None, page, text, accessed))
                by_pair.append(Entry("visits", (name, day), text, page, accessed))
    named = spark.createDataFrame(name_rows, NAME_SCHEMA).unionByName(
        spark.createDataFrame(city_rows, CITY_SCHEMA), allowMissingColumns=True
    )
    states = {
        "count": ValueState("n", LONG),
        "label": ValueState("label", STRING),
        "tags": ListState("tags", STRING),
        "cities": MapState("city", "m", STRING, INT),
        "sum": ReducingState("total", DOUBLE),
    }
    pair_states = {
        "seen": ValueState("seen", INT),
        "visits": MapState("page", "text", INT, STRING),
    }
    pairs = spark.createDataFrame(pair_rows, PAIR_SCHEMA)
    pair = TUPLE(STRING, INT)
    write_savepoint(
        named,
        path,
        {
            "by-name": KeyedState(None, "name", STRING, states),
            "by-pair": KeyedState(pairs, ["user", "day"], pair, pair_states, ttl="accessed"),
        },
        MAX_PARALLELISM,
        PARALLELISM,
    )
    operators = [
        KeyedOperator("by-name", STRING, BY_NAME, by_name),
        KeyedOperator("by-pair", pair, BY_PAIR, by_pair),
    ]
    return Case(operators, MAX_PARALLELISM, PARALLELISM)


@pytest.fixture(scope="module")
def table() -> Iterator[RestoreTable]:
    """What the tests here have compared with one Flink; `-rP` shows it with the last of them."""
    found = RestoreTable()
    yield found
    print(found)


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Case, Path]:
    """A savepoint that Spark wrote."""
    path = tmp_path_factory.mktemp("spark") / "savepoint"
    return write(spark, path, 2_000), path


@pytest.mark.parametrize(
    "parallelism", [PARALLELISM, *(pytest.param(p, marks=pytest.mark.slow) for p in (1, 5))]
)
@pytest.mark.parametrize("backend", BACKENDS)
def test_flink_finds_what_spark_wrote(
    restores: FlinkRestores,
    written: tuple[Case, Path],
    backend: str,
    parallelism: int,
    table: RestoreTable,
) -> None:
    case, path = written
    operators = [operator.java() for operator in case.operators]
    restored = restores.restore(Task(path, operators, backend, parallelism, MAX_PARALLELISM))
    assert restored.refused is None
    expected = case.found(parallelism)
    for way in ("backend", "keyed"):
        assert found_rows(restored.found(way)) == expected
    assert saved_entries(restored.read(), case.operators) == case.saved(parallelism)
    table.add(restores.version, backend, parallelism, *case.counts, expected.total())
