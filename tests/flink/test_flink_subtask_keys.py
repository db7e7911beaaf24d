"""Keys for chosen subtasks against real Flink: it sends each where we say.

How many keys were sent is in each test's properties; `pytest -rP` shows it too.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from support.flink.flink_oracle import ASSIGNMENT, FlinkOracle
from support.keys.parallelisms import GRID

from keygroups import SubtaskKeySelector, keys_for_subtasks
from keygroups.subtask_keys import salted_key
from keygroups.types import (
    BIG_INT,
    BOOLEAN,
    BYTE,
    INT,
    LOCAL_DATE,
    LONG,
    PYFLINK,
    ROW,
    SHORT,
    SQL_ROW,
    STRING,
    TUPLE,
    KeyType,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.flink

Record = Callable[[str, object], None]

DAY = dt.date(2024, 2, 29)
COMPOUND_JOBS = [(128, 5), (720, 21), (1000, 64), (32768, 100)]


def flink_subtasks(
    flink: FlinkOracle, key_type: KeyType, keys: list[Any], max_parallelism: int, parallelism: int
) -> list[int]:
    """Return the subtask of each key, by Flink alone."""
    answers = flink.ask([(key_type, key) for key in keys], [max_parallelism])
    subtask_of = flink.assignment.computeOperatorIndexForKeyGroup
    return [subtask_of(max_parallelism, parallelism, key_group) for _, (key_group,) in answers]


@pytest.mark.parametrize(
    ("key_type", "sql_type"), [(INT, "int"), (LONG, "bigint"), (STRING, "string")], ids=repr
)
def test_grid(
    spark: SparkSession,
    flink: FlinkOracle,
    key_type: KeyType,
    sql_type: str,
    record_property: Record,
) -> None:
    rows = [
        (key, max_parallelism, parallelism, subtask)
        for max_parallelism, parallelism in [*GRID, (32768, 32768)]
        for subtask, key in enumerate(keys_for_subtasks(max_parallelism, parallelism, key_type))
    ]
    schema = f"key {sql_type}, mp int, p int, subtask int"
    call = f"reflect('{ASSIGNMENT}', 'assignKeyToParallelOperator', key, mp, p)"
    answers = spark.createDataFrame(rows, schema).selectExpr(
        f"cast({call} as int) as flinks", "subtask"
    )
    # Not in one step: reflect counts as nondeterministic, and no aggregate takes such a thing.
    found = answers.selectExpr("count(flinks)", "count_if(flinks <=> subtask)").first()
    assert found == (len(rows), len(rows))
    record(record_property, key_type, len(rows))


def test_first_keys(flink: FlinkOracle, record_property: Record) -> None:
    """Flink sends no earlier key to a subtask than the one found."""
    for max_parallelism, parallelism in [(128, 2), (128, 5), (720, 50)]:
        keys = keys_for_subtasks(max_parallelism, parallelism)
        earlier = list(range(max(keys) + 1))
        subtasks = flink_subtasks(flink, INT, earlier, max_parallelism, parallelism)
        assert keys == [subtasks.index(subtask) for subtask in range(parallelism)]
        record(record_property, (max_parallelism, parallelism), len(earlier))
    later = list(range(1000, 1050))
    subtasks = flink_subtasks(flink, INT, later, 128, 5)
    first_later = [later[subtasks.index(subtask)] for subtask in range(5)]
    assert keys_for_subtasks(128, 5, start=1000) == first_later
    texts = [f"bucket-{number}" for number in range(8)]
    subtasks = flink_subtasks(flink, STRING, texts, 128, 2)
    reaching = [
        [key for key, item in zip(texts, subtasks) if item == index][:2] for index in (0, 1)
    ]
    assert keys_for_subtasks(128, 2, STRING, n=2, prefix="bucket-") == reaching


def test_counted_salts_leave_subtasks_empty(flink: FlinkOracle) -> None:
    counted = [f"page#{salt}" for salt in range(8)]
    assert flink_subtasks(flink, STRING, counted, 128, 8) == [0, 4, 3, 1, 5, 2, 2, 1]
    assert flink_subtasks(flink, STRING, ["page#18", "page#21"], 128, 8) == [6, 7]


@pytest.mark.parametrize(
    ("key_type", "template"),
    [
        (SHORT, None),
        (BIG_INT, None),
        (TUPLE(STRING, INT), None),
        (TUPLE(STRING, INT), ("page", ...)),
        (TUPLE(TUPLE(LONG, BOOLEAN), BYTE), None),
        (ROW(LOCAL_DATE, STRING, kind="+U"), (DAY, ...)),
        (ROW(INT, STRING, names=["a", "b"]), None),
        (SQL_ROW("INT"), None),
        (SQL_ROW("BIGINT", "BOOLEAN"), None),
        (SQL_ROW("STRING", "SMALLINT"), None),
        (SQL_ROW("DATE", "VARCHAR(20)"), (None, ...)),
        (PYFLINK(INT), None),
        (PYFLINK(STRING), None),
        (PYFLINK(TUPLE(STRING, LONG)), ("page", ...)),
    ],
    ids=str,
)
def test_other_types(
    flink: FlinkOracle, key_type: KeyType, template: Any, record_property: Record
) -> None:
    for max_parallelism, parallelism in COMPOUND_JOBS:
        keys = keys_for_subtasks(max_parallelism, parallelism, key_type, template=template)
        subtasks = flink_subtasks(flink, key_type, keys, max_parallelism, parallelism)
        assert subtasks == list(range(parallelism))
    record(record_property, key_type, sum(parallelism for _, parallelism in COMPOUND_JOBS))


@pytest.mark.parametrize("key_type", [BOOLEAN, BYTE], ids=repr)
def test_types_of_few_values(flink: FlinkOracle, key_type: KeyType) -> None:
    (keys,) = keys_for_subtasks(128, 1, key_type, n=2 if key_type is BOOLEAN else 256)
    assert len(set(keys)) == len(keys)
    codes = [code for code, _ in flink.ask([(key_type, key) for key in keys], [128])]
    assert len(set(codes)) == len(keys)
    for subtask, found in enumerate(keys_for_subtasks(128, 2, BYTE, n=100)):
        assert flink_subtasks(flink, BYTE, found, 128, 2) == [subtask] * 100


@pytest.mark.parametrize(
    "key_type",
    [
        STRING,
        PYFLINK(STRING),
        TUPLE(STRING, INT),
        ROW(STRING, STRING),
        SQL_ROW("STRING", "INT"),
        PYFLINK(TUPLE(STRING, INT)),
    ],
    ids=repr,
)
def test_salts(flink: FlinkOracle, key_type: KeyType, record_property: Record) -> None:
    for max_parallelism, parallelism in [(128, 4), (720, 21)]:
        keys = [
            salted_key("page", subtask, max_parallelism, parallelism, key_type)
            for subtask in range(parallelism)
        ]
        subtasks = flink_subtasks(flink, key_type, keys, max_parallelism, parallelism)
        assert subtasks == list(range(parallelism))
    record(record_property, key_type, 25)


def test_substitutes_of_values(flink: FlinkOracle) -> None:
    """A value's place is Flink's key group at a max parallelism of the job's parallelism."""
    selector = SubtaskKeySelector(720, 21)
    values = [f"user-{number}" for number in range(200)]
    places = flink_subtasks(flink, STRING, values, 21, 21)
    keys = list(map(selector.key_for_value, values))
    assert flink_subtasks(flink, INT, keys, 720, 21) == places
    assert len(set(places)) == 21


def record(record_property: Record, what: object, count: int) -> None:
    record_property("keys sent", count)
    print(f"{what}: {count:,} keys sent")
