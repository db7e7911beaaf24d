"""Every public callable of the adapter, driven with objects that no caller should pass.

The other half of `test_hostile`: a column, DataFrame or report, or a KeyGroupsError. Nothing is
run, as what a caller may get wrong is found out before.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from support.bytes.real_savepoints import point
from support.hostile_values import HOSTILE, OwnError
from support.public_calls import bounded_steps

import keygroups.spark
from keygroups import KeyGroupLoad, KeyGroupsError, RescalePlan
from keygroups.spark import KeyedState, ValueState
from keygroups.spark import functions as KF
from keygroups.types import INT, LONG, STRING, TUPLE

ALIASES = {"ColumnOrName", "Key"}  # types
CALLS: dict[str, Callable[..., Any]] = {
    name: getattr(module, name)
    for module in (keygroups.spark, KF)
    for name in module.__all__
    if name not in ALIASES
}


# Parameters that name columns. A name that is none, or one of a column without a DataFrame, is
# Spark's to refuse: its AnalysisException says so, and what columns there are.
COLUMNS = {"aggregations", "code", "key", "key_group_id", "key_hash", "subtask", "weight"}

SAVEPOINT = point("2.3.0-heap-canonical")


class RunError(Exception):
    """A job or a command would start here."""


@pytest.fixture(scope="module")
def valid(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, list[Any]]]:
    """Arguments by the name of the parameter that each callable takes in stride."""
    df = spark.createDataFrame([(1, "a", 2, 0.5)], "n int, s string, b bigint, d double")
    offsets = df.selectExpr("s topic", "n partition", "b offset")
    states = {"count": ValueState("b", LONG)}
    KF.hash_code("n", INT)  # looks for the fast path, and that runs a query
    with pytest.MonkeyPatch.context() as patch:

        def run(*_: Any) -> Any:
            raise RunError

        patch.setattr(type(df), "collect", run)
        patch.setattr(type(spark), "sql", run)
        yield {
            "aggregations": [[F.sum("n").alias("total")]],
            "allow": [(), ["/old"]],
            "at_least": [1, 3],
            "batch_size": [None, 3],
            "change_max_parallelism.operators": [None, ["by-string"]],
            "column": ["substitute"],
            "columns": [None, ["key", "value"]],
            "compare_savepoints.states": [None, ["count"], ["count", "byCity"]],
            "df": [df],
            "from_savepoint": [None],
            "kafka_offsets.df": [offsets],
            "flink": ["2.3", "1.17"],
            "key": ["n", F.col("n"), ["n", "s"], "b", [["n", "s"]]],
            "key_groups": [None, [0, 5], range(8)],
            "key_type": [INT, None, LONG, TUPLE(INT, STRING)],
            "key_types": [[INT, STRING], None],
            "load": [KeyGroupLoad(8, [1] * 8)],
            "edit_savepoint.output": [tmp_path_factory.mktemp("edited") / "savepoint"],
            "max_parallelism": [8, 128],
            "uids": [None, ["by-string"]],
            "moved": [None, {}, {"/old": "/new"}],
            "new": [str(SAVEPOINT.path)],
            "new_max_parallelism": [64],
            "new_parallelism": [3],
            "nulls": ["raise", "drop"],
            "rebalance_keys.nulls": ["null", "raise", "drop"],
            "with_routing.nulls": ["null", "raise", "drop"],
            "old": [SAVEPOINT.path, SAVEPOINT.read()],
            "old_parallelism": [4],
            "operator": ["by-string"],
            "read_keyed_state.keys": [None, ["a"]],
            "operators": [{"by-s": KeyedState(None, "s", STRING, states)}],
            "output": [tmp_path_factory.mktemp("moved") / "savepoint"],
            "parallelism": [3, 4],
            "partitions": [8, 9],
            "path": [str(SAVEPOINT.path), SAVEPOINT.path],
            "plan": [RescalePlan(8, 3, 4)],
            "prefix": ["", "a"],
            "pyflink": [None],
            "serializers": [None, {}],
            "skew_report.subtask": [None, 2],  # a number here, and a column elsewhere
            "spark": [spark],
            "savepoint": [SAVEPOINT.path],
            "state": [None, "count"],
            "states": [states],
            "substitute_type": [INT, STRING],
            "template": [None],
            "top": [3],
            "at": [None, datetime(2026, 11, 26, tzinfo=timezone.utc)],
            "topic": ["clicks", "h\u00e9"],
            "ttl": [None, "b"],
            "allow_any_last_access": [True, False],
            "write_savepoint.allow_any_last_access": [False],
            "write_savepoint.nulls": ["raise", "drop"],
            "write_savepoint.operator": [None],
            "write_savepoint.states": [None],
            "user_key": ["s"],
            "user_key_type": [STRING],
            "value": ["b", F.col("b")],
            "value_type": [LONG],
            "weight": [None, "n", F.col("d")],
            "write_keyed_state.df": [
                keygroups.spark.read_keyed_state(spark, SAVEPOINT.path, "by-string")
            ],
            "write_keyed_state.from_savepoint": [SAVEPOINT.path, SAVEPOINT.read()],
            "write_keyed_state.path": [tmp_path_factory.mktemp("rows") / "savepoint"],
            "write_keyed_state.states": [None, ["count"], ["count", "byCity"]],
            "write_savepoint.path": [tmp_path_factory.mktemp("written") / "savepoint"],
            **{
                name: ["n", F.col("n")] for name in ("code", "key_group_id", "key_hash", "subtask")
            },
        }


def names_columns(value: object) -> bool:
    """Return whether all of it is column names."""
    if isinstance(value, (list, tuple)):
        return all(map(names_columns, value))
    return isinstance(value, str) or type(value) is type(F.lit(0))


def drive(name: str, arguments: Mapping[str, Any]) -> str:
    """Call, and return what comes of it."""
    try:
        with bounded_steps():
            result = CALLS[name](**arguments)
            if type(result).__module__.startswith("keygroups"):
                str(result)
    except KeyGroupsError as error:
        message = str(error)
        assert 0 < len(message) < 5_000
        assert "\n" not in message
        return "refused"
    except (RunError, OwnError) as error:
        return type(error).__name__
    except AnalysisException:
        if not any(names_columns(arguments[argument]) for argument in COLUMNS & arguments.keys()):
            raise
        return "Spark's"
    return "result"


def choices(valid: Mapping[str, list[Any]], name: str, parameter: str) -> list[Any]:
    """Return the valid arguments of a callable's parameter."""
    return valid.get(f"{name}.{parameter}") or valid[parameter]


def names(call: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(call).parameters)


@pytest.mark.slow
def test_each_argument_in_turn(valid: Mapping[str, list[Any]]) -> None:
    """Each hostile value as each argument, beside valid ones."""
    calls = 0
    for name, call in CALLS.items():
        for hostile in names(call):
            for _, make in HOSTILE:
                arguments = {
                    argument: choices(valid, name, argument)[0] for argument in names(call)
                }
                drive(name, arguments | {hostile: make()})
                calls += 1
    print(f"{len(CALLS)} callables, {calls} calls")


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(CALLS))
@pytest.mark.parametrize("examples", [1, pytest.param(30, marks=pytest.mark.slow)])
def test_mixed_arguments(valid: Mapping[str, list[Any]], name: str, examples: int) -> None:
    hostile = st.sampled_from(HOSTILE).map(lambda pair: pair[1]())

    @given(data=st.data())
    @settings(max_examples=examples, suppress_health_check=[HealthCheck.too_slow], database=None)
    def drive_mixed(data: st.DataObject) -> None:
        drive(
            name,
            {
                argument: data.draw(
                    st.one_of(st.sampled_from(choices(valid, name, argument)), hostile)
                )
                for argument in names(CALLS[name])
            },
        )

    drive_mixed()
