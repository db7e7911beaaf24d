"""One rule for null keys, over every function that takes a DataFrame and a key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import keygroups
from keygroups import InvalidValueError, KeyGroupsError
from keygroups.spark import (
    KeyedState,
    ValueState,
    assert_placed,
    key_group_load,
    pre_aggregate,
    rebalance_keys,
    repartition_by_subtask,
    rescale_report,
    skew_report,
    with_routing,
    write_savepoint,
)
from keygroups.spark import functions as KF
from keygroups.types import (
    CASE_CLASS,
    INT,
    LIST,
    LONG,
    PYFLINK,
    SCALA_OPTION,
    SQL_ROW,
    STRING,
    TUPLE,
    KeyType,
)

pytestmark = pytest.mark.usefixtures("interpreted")

QUERY_FAILS = (PySparkException, Py4JJavaError, KeyGroupsError)
REFUSED = "key (of operator 'u' )?must not be null(, got 1 such rows)?, which Flink refuses: pass "
NULLS = ("raise", "drop", "null")


class Case(NamedTuple):
    """A key whose first row is null as a whole or within, and whose second is not."""

    key: KF.Key | Callable[[], KF.Key]  # a function where a column is to be made
    key_type: KeyType | None
    values: tuple[object, object]  # the core takes them so
    is_null: bool  # the whole of the first


NULL_KEYS = {
    "column": Case("s", None, (None, "a"), True),
    "list of a column": Case(["s"], None, (None, "a"), True),
    "expression": Case(lambda: F.upper("s"), STRING, (None, "A"), True),
    "list": Case("l", LIST(STRING), (None, ["a"]), True),
    "struct": Case("t", TUPLE(STRING, INT), (None, ("a", 1)), True),
    "struct of SQL": Case("t", SQL_ROW("STRING", "INT"), (None, ("a", 1)), True),
    "case class": Case("t", CASE_CLASS("P", STRING, INT, scala="2.12"), (None, ("a", 1)), True),
    "null in TUPLE": Case(["s", "n"], None, ((None, 1), ("a", 1)), False),
    "TUPLE of one": Case(["s"], TUPLE(STRING), ((None,), ("a",)), False),
    "null in SQL_ROW": Case(["s", "n"], SQL_ROW("STRING", "INT"), ((None, 1), ("a", 1)), False),
    "SQL_ROW of one": Case("s", SQL_ROW("STRING"), ((None,), ("a",)), False),
    "PYFLINK": Case("s", PYFLINK(STRING), (None, "a"), False),
    "SCALA_OPTION": Case("s", SCALA_OPTION(STRING, scala="2.12"), (None, "a"), False),
}
# No state is written from columns of these, and Spark's groups are not for lists over Connect.
UNWRITTEN = {"PYFLINK", "SCALA_OPTION", "list"}


def rows(spark: SparkSession) -> DataFrame:
    schema = "s string, l array<string>, t struct<a: string, b: int>, n int"
    df = spark.createDataFrame([(None, None, None, 1), ("a", ["a"], ("a", 1), 1)], schema)
    return df.coalesce(1)


def key_of(case: Case) -> KF.Key:
    key: Any = case.key
    return key if isinstance(key, (str, list)) else key()


def groups(case: Case) -> list[int | None]:
    """Return the key groups of both rows, as the core has them."""
    return [
        None
        if value is None and case.is_null
        else keygroups.assign_to_key_group(value, 128, core_type(case))
        for value in case.values
    ]


def core_type(case: Case) -> KeyType:
    if case.key_type is not None:
        return case.key_type
    return TUPLE(STRING, INT) if case.key == ["s", "n"] else STRING


def routed(df: DataFrame, case: Case, path: Path, **nulls: Any) -> list[Any]:
    found = with_routing(df, key_of(case), 128, 3, case.key_type, **nulls)
    return [row["key_group"] for row in found.collect()]


def rebalanced(df: DataFrame, case: Case, path: Path, **nulls: Any) -> list[Any]:
    found = rebalance_keys(df, key_of(case), 128, 128, case.key_type, **nulls)
    substitutes = [row["substitute_key"] for row in found.collect()]
    # At as many subtasks as key groups the substitute's key group is the key's.
    return [None if k is None else keygroups.assign_to_key_group(k, 128, INT) for k in substitutes]


def loaded(df: DataFrame, case: Case, path: Path, **nulls: Any) -> list[Any]:
    load = key_group_load(df, key_of(case), 128, case.key_type, **nulls)
    return [group for group, count in enumerate(load.weights) for _ in range(int(count))]


def rescaled(df: DataFrame, case: Case, path: Path, **nulls: Any) -> list[Any]:
    load = rescale_report(df, key_of(case), 128, 3, 4, case.key_type, **nulls).load
    return [group for group, count in enumerate(load.weights) for _ in range(int(count))]


def skewed(df: DataFrame, case: Case, path: Path, **nulls: Any) -> list[Any]:
    found = []
    for batch_size in (None, 5):
        report = skew_report(
            df, key_of(case), 128, 3, case.key_type, batch_size=batch_size, **nulls
        )
        load = report.load
        found.append([g for g, count in enumerate(load.weights) for _ in range(int(count))])
        assert report.null_keys == 2 - len(found[-1])
    assert found[0] == found[1]
    return found[0]


def placed(df: DataFrame, case: Case, path: Path, **nulls: Any) -> list[Any]:
    found = repartition_by_subtask(df, key_of(case), 128, 128, case.key_type, **nulls)
    return [row[0] for row in found.select(F.spark_partition_id()).collect()]


def placed_in_one(df: DataFrame, case: Case, path: Path, **nulls: Any) -> list[Any]:
    found = repartition_by_subtask(df, key_of(case), 128, 1, case.key_type, **nulls)
    again = with_routing(found, key_of(case), 128, 1, case.key_type)
    return [row["key_group"] for row in again.collect()]


def aggregated(df: DataFrame, case: Case, path: Path, **nulls: Any) -> list[Any]:
    counts = [F.count("*").alias("count")]
    found = pre_aggregate(df, key_of(case), counts, 128, 128, case.key_type, **nulls)
    return [row[0] for row in found.select(F.spark_partition_id()).collect()]


def asserted(df: DataFrame, case: Case, path: Path, **nulls: Any) -> list[Any]:
    assert_placed(df, key_of(case), 128, 1, case.key_type, **nulls)
    return [group for group in groups(case) if group is not None]


def written(df: DataFrame, case: Case, path: Path, **nulls: Any) -> list[Any]:
    states = {"v": ValueState("n", INT)}
    keyed = KeyedState(None, key_of(case), core_type(case), states)
    savepoint = write_savepoint(df, path / "new", {"u": keyed}, 128, 2, **nulls)
    return [entry.key_group for entry in savepoint.operator("u").entries()]


Call = Callable[..., list[Any]]
ADDS: list[Call] = [routed, rebalanced]
OTHERS: list[Call] = [
    *(loaded, rescaled, skewed, placed, placed_in_one, aggregated, asserted, written)
]
IN_DEFAULT = [("column", call) for call in (*ADDS, *OTHERS)]
IN_DEFAULT += [(name, routed) for name in NULL_KEYS]
ROWS = [
    pytest.param(
        *(call, case),
        marks=[] if (name, call) in IN_DEFAULT else [pytest.mark.slow],
        id=f"{call.__name__}-{name}",
    )
    for call in (*ADDS, *OTHERS)
    for name, case in NULL_KEYS.items()
    if call is not written or name not in UNWRITTEN
]


def expected(case: Case, nulls: str) -> list[int | None]:
    return [group for group in groups(case) if group is not None or nulls == "null"]


def check(call: Call, case: Case, df: DataFrame, path: Path, **nulls: Any) -> None:
    """Compare with the core's key groups, or be refused where a key is null."""
    text = nulls.get("nulls", "null" if call in ADDS else "raise")
    if text == "raise" and case.is_null:
        with pytest.raises(QUERY_FAILS, match=REFUSED):
            call(df, case, path, **nulls)
        return
    key_groups = call(df, case, path, **nulls)
    assert sorted(map(str, key_groups)) == sorted(map(str, expected(case, text)))


@pytest.mark.long
@pytest.mark.parametrize(("call", "case"), ROWS)
def test_null_keys(spark: SparkSession, tmp_path: Path, call: Call, case: Case) -> None:
    """Each function, each key, each of what `nulls` may be, and left out."""
    df = rows(spark)
    check(call, case, df, tmp_path / "default")
    for nulls in NULLS if call in ADDS else NULLS[:2]:
        check(call, case, df, tmp_path / nulls, nulls=nulls)


@pytest.mark.parametrize("call", [*ADDS, *OTHERS])
def test_other_choices_are_refused(spark: SparkSession, tmp_path: Path, call: Call) -> None:
    case, choices = NULL_KEYS["column"], NULLS if call in ADDS else NULLS[:2]
    for nulls in {"null", "mask", None} - {*choices}:
        says = f"^nulls must be one of {', '.join(choices)}, got {nulls!r}$"
        with pytest.raises(InvalidValueError, match=says):
            call(rows(spark), case, tmp_path, nulls=nulls)


@pytest.mark.parametrize("call", [*ADDS, *OTHERS])
def test_void_is_refused_before_any_job(
    spark: SparkSession, tmp_path: Path, collected: list[int], call: Call
) -> None:
    df = rows(spark).withColumn("void", F.lit(None))
    keys: list[KF.Key] = ["void", ["void"], F.lit(None)]
    for key in keys:

        def same(key: KF.Key = key) -> KF.Key:
            return key

        for key_type in (None, STRING):
            case = Case(same, key_type, (None, None), True)
            says = "^key must not be null, which Flink refuses, but (void|NULL) is void: all of it"
            with pytest.raises(InvalidValueError, match=says):
                call(df, case, tmp_path, nulls="raise")
    assert collected == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("call", [routed, placed, aggregated])
def test_dropped_keys_are_the_same_each_time(
    spark: SparkSession, tmp_path: Path, call: Call
) -> None:
    """Else a key might be null only when it is looked at again."""
    case = Case(lambda: F.when(F.rand() < 0.5, F.col("s")), STRING, (None, "a"), True)
    with pytest.raises(InvalidValueError, match="key must be the same each time, got one that is"):
        call(rows(spark), case, tmp_path, nulls="drop")


def test_entries_are_not_dropped(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing is dropped from entries of a savepoint, whose key is no column of the caller's."""
    arguments: dict[str, Any] = {"from_savepoint": "old", "operator": "u", "nulls": "drop"}
    says = "template and nulls must be left out with from_savepoint, got 'drop'"
    with pytest.raises(InvalidValueError, match=says):
        write_savepoint(rows(spark), tmp_path / "new", **arguments)


def test_a_schema_without_nulls_is_not_checked(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    df = spark.range(9)
    for key, is_checked in (("id", False), (F.when(F.col("id") > 3, F.col("id")), True)):
        for nulls in ("raise", "drop"):
            found = with_routing(df, key, 128, 3, LONG, nulls=nulls)
            found.explain(True)
            analysed = capsys.readouterr().out.partition("== Optimized")[0].lower()
            assert ("must not be null" in analysed) == is_checked
            assert ("filter" in analysed) == (is_checked and nulls == "drop")


@pytest.mark.long
def test_arrays_agree(spark: SparkSession) -> None:
    arrays = pytest.importorskip("keygroups.arrays")
    df, table = rows(spark), {"s": [None, "a"]}
    says = "^key must not be null, got 1 such rows, which Flink refuses: pass nulls='drop' to"
    for report, data in ((skew_report, df), (arrays.skew_report, pyarrow_table(table))):
        with pytest.raises(InvalidValueError, match=says):
            report(data, "s", 128, 3)
        dropped = report(data, "s", 128, 3, nulls="drop")
        assert (dropped.null_keys, sum(dropped.load.weights)) == (1, 1)
        with pytest.raises(InvalidValueError, match="nulls must be one of raise, drop, got 'null"):
            report(data, "s", 128, 3, nulls="null")


def pyarrow_table(columns: dict[str, list[Any]]) -> Any:
    pa = pytest.importorskip("pyarrow")
    return pa.table(columns)
