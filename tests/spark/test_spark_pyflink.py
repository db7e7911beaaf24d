"""The state of PyFlink's jobs on Spark: read as the job declares it, and written for one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.bytes.real_savepoints import corpus

from keygroups.errors import InvalidValueError, UnsupportedKeyTypeError
from keygroups.savepoint import (
    ListStateDescriptor,
    MapStateDescriptor,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.types import LONG, PYFLINK, STRING

pytest.importorskip("pyspark")

from support.inside.adapter import is_connect

from keygroups.spark import (
    KeyedState,
    ValueState,
    read_keyed_state,
    with_routing,
    write_savepoint,
)

STATES = [
    ValueStateDescriptor("value", LONG),
    ListStateDescriptor("list", STRING),
    MapStateDescriptor("map", STRING, LONG),
]


def test_state_as_the_job_has_it(spark: Any) -> None:
    path = str(corpus("pyflink") / "2.3.0-states-s1" / "savepoint")
    if is_connect(spark):
        with pytest.raises(InvalidValueError, match="pyflink must be None over Spark Connect"):
            read_keyed_state(spark, path, "kinds", "value", pyflink=(LONG, STATES))
        return
    declared = LONG, STATES
    rows = read_keyed_state(spark, path, "kinds", "value", pyflink=declared).collect()
    assert sorted((row.key, row.value) for row in rows) == [(key, 6) for key in range(5)]
    lists = read_keyed_state(spark, path, "kinds", "list", pyflink=declared).collect()
    assert {tuple(row.value) for row in lists} == {("n0", "n1", "n2", "n3")}
    maps = read_keyed_state(spark, path, "kinds", "map", pyflink=declared).collect()
    assert {(row.user_key, row.value) for row in maps} == {("m0", 3), ("m1", 1), ("m2", 2)}


@pytest.mark.long
@pytest.mark.parametrize("thread_mode", [False, True])
def test_state_for_a_job(thread_mode: bool, spark: Any, tmp_path: Path) -> None:
    if is_connect(spark):
        pytest.skip("the same is done by the server")
    df = spark.createDataFrame([(user, 10 * user) for user in range(5)], "user long, n long")
    key_type = PYFLINK(LONG, thread_mode=thread_mode)
    keyed = KeyedState(None, "user", key_type, {"value": ValueState("n", LONG)})
    write_savepoint(df, str(tmp_path / "new"), {"a": keyed}, max_parallelism=128, parallelism=2)
    plain = read_savepoint(tmp_path / "new").operator("a")
    assert str(plain.states[0]) == (
        "value: VALUE <ROW(LONG), LONG>"
        if thread_mode
        else "python-state-value: LIST <ROW(LONG), BYTES>"
    )
    operator = plain.as_pyflink(LONG, STATES[:1])
    assert [operator.get(user, "value") for user in range(5)] == [0, 10, 20, 30, 40]


def test_no_column_has_pickles(spark: Any) -> None:
    df = spark.createDataFrame([("ann",)], "user string")
    with pytest.raises(UnsupportedKeyTypeError, match="key type PICKLED has no column expression"):
        with_routing(df, "user", 128, 2, PYFLINK())
