"""What a session sets is input: the answer does not change with it, or it is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.inside.adapter import SETTING
from support.selections import first_by_default
from support.spark.session_settings import changed, names_of, other_values
from support.spark.settings_keys import (
    SQL_KEY_TYPES,
    counted_rows,
    expected_entries,
    key_columns,
    key_groups,
    rows_of,
    states_of,
    wrong_key_groups,
    wrong_sql,
    wrong_totals,
)
from support.spark.spark_backends import skip_without

from keygroups.savepoint import read_savepoint
from keygroups.spark import KeyedState, register, write_savepoint
from keygroups.types import LONG

Settings = dict[str, str]
Check = Callable[[Settings], list[str]]

MATTERED: Settings = {
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.legacy.lpadRpadAlwaysReturnString": "true",
    "spark.sql.function.concatBinaryAsString": "true",
    "spark.sql.function.eltOutputAsString": "true",
    "spark.sql.retainGroupColumns": "false",
}
"""Settings that once changed an answer or its expressions; they are on at once by default."""
NOT_FLIPPED = {
    "spark.sql.analyzer.singlePassResolver.enabled": "it takes no DataFrame of rows yet",
}
"""Settings with which Spark itself fails here, and why."""
AT_ONCE = 12


@pytest.fixture(scope="module", params=first_by_default(1, ["portable", "fast"]))
def check_columns(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[Check]:
    """Key groups of columns built, analysed and run before, under and after the settings."""
    skip_without(request.param)
    rows = rows_of(spark)
    with changed(spark, {SETTING: request.param}):
        columns = key_columns()
        analysed = key_groups(rows, columns)

        def check(settings: Settings) -> list[str]:
            with changed(spark, settings):
                wrong = wrong_key_groups(analysed.select("*"))
                wrong += wrong_key_groups(key_groups(rows, columns))
                built = key_groups(rows, key_columns())
                wrong += wrong_key_groups(built)
            return wrong + wrong_key_groups(built.select("*"))

        yield check


@pytest.fixture(scope="module")
def check_sql(spark: SparkSession) -> Iterator[Check]:
    """SQL functions registered before the settings and under them, called under them and after."""
    if spark.version < "4":
        pytest.skip("Spark has SQL functions from 4.0")
    rows_of(spark).createOrReplaceTempView("settings_rows")

    def check(settings: Settings) -> list[str]:
        wrong = []
        if "spark.sql.session.timeZone" not in settings:  # for which they are refused
            register(spark, SQL_KEY_TYPES)
            with changed(spark, settings):
                wrong += wrong_sql(spark)
        with changed(spark, settings):
            register(spark, SQL_KEY_TYPES)
            wrong += wrong_sql(spark)
        if "spark.sql.session.timeZone" not in settings:
            wrong += wrong_sql(spark)
        return wrong

    yield check
    for name in register(spark, SQL_KEY_TYPES):
        spark.sql(f"DROP TEMPORARY FUNCTION {name}")


@pytest.fixture(scope="module")
def check_writes(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Settings], list[str]]:
    """State written from a DataFrame of before the settings, under them."""
    pytest.importorskip("pyarrow")
    folder, numbers = tmp_path_factory.mktemp("settings"), count()
    df, states = states_of(rows_of(spark))

    def check(settings: Settings) -> list[str]:
        path = folder / str(next(numbers))
        with changed(spark, settings):
            write_savepoint(df, path, {"o": KeyedState(None, "id", LONG, states)}, 128, 1)
        entries = read_savepoint(path).operator("o").entries()
        written = {(entry.state, entry.key): (entry.user_key, entry.value) for entry in entries}
        return [
            f"{place} is written as {written.get(place)}, not {expected}"
            for place, expected in expected_entries().items()
            if written.get(place) != expected
        ]

    return check


@pytest.fixture(scope="module")
def check_totals(spark: SparkSession) -> Check:
    """Rows counted by key, from a DataFrame of before the settings, under them."""
    pytest.importorskip("pyarrow")
    df = counted_rows(spark)

    def check(settings: Settings) -> list[str]:
        with changed(spark, settings):
            return wrong_totals(df)

    return check


def culprits(check: Check, settings: Settings) -> dict[str, Any]:
    """Return the settings that change an answer, each alone, and what is wrong then."""
    try:
        wrong: Any = check(settings)
    except Exception as error:  # whatever a setting makes of it
        wrong = f"{type(error).__name__}: {str(error)[:300]}"
    if not wrong or len(settings) == 1:
        return {str(settings): wrong} if wrong else {}
    items = list(settings.items())
    halves = dict(items[::2]), dict(items[1::2])
    return culprits(check, halves[0]) | culprits(check, halves[1]) or {str(settings): wrong}


def groups_of_all(spark: SparkSession) -> list[Settings]:
    """Return all settings with each other value, in groups of neither name nor kind."""
    others = {
        name: other_values(spark, name) for name in names_of(spark) if name not in NOT_FLIPPED
    }
    flips = [(name, value) for name, values in others.items() for value in values]
    assert len(flips) > 200
    size = -(-len(flips) // AT_ONCE)
    return [dict(flips[start::size]) for start in range(size)]


@pytest.mark.long
def test_columns(check_columns: Check, interpreted: None) -> None:
    assert culprits(check_columns, MATTERED) == {}


@pytest.mark.slow
def test_sql_functions(check_sql: Check, interpreted: None) -> None:
    assert culprits(check_sql, MATTERED) == {}


def test_written_state(check_writes: Check, interpreted: None) -> None:
    assert culprits(check_writes, MATTERED) == {}


@pytest.mark.long
def test_totals(check_totals: Check) -> None:
    assert culprits(check_totals, MATTERED) == {}


@pytest.mark.slow
def test_columns_under_every_setting(spark: SparkSession, check_columns: Check) -> None:
    assert all_culprits(spark, check_columns) == {}


@pytest.mark.slow
def test_sql_functions_under_every_setting(spark: SparkSession, check_sql: Check) -> None:
    assert all_culprits(spark, check_sql) == {}


@pytest.mark.slow
def test_written_state_under_every_setting(spark: SparkSession, check_writes: Check) -> None:
    assert all_culprits(spark, check_writes) == {}


@pytest.mark.slow
def test_totals_under_every_setting(spark: SparkSession, check_totals: Check) -> None:
    assert all_culprits(spark, check_totals) == {}


def all_culprits(spark: SparkSession, check: Check) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for group in groups_of_all(spark):
        found |= culprits(check, group)
    return found
