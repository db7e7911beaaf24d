"""The functions for Spark SQL text."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from importlib import import_module
from itertools import repeat
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from support.inside.adapter import LambdaFree, SqlFunctions, SqlText, is_connect
from support.selections import first_by_default
from support.spark.session_settings import changed
from support.spark.spark_columns import COLUMNS

import keygroups
from keygroups import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    UnsupportedKeyTypeError,
)
from keygroups.spark import register
from keygroups.types import (
    BIG_DEC,
    CHAR,
    INSTANT,
    INT,
    LOCAL_DATE,
    LOCAL_DATE_TIME,
    LONG,
    STRING,
    TUPLE,
    UUID,
    KeyType,
)

QUERY_FAILS = (PySparkException, Py4JJavaError)
ANSI, ZONE = "spark.sql.ansi.enabled", "spark.sql.session.timeZone"


@pytest.fixture(scope="module")
def functions(spark: SparkSession) -> Iterator[list[str]]:
    names = registered(spark)
    yield names
    drop(spark, names)


def registered(spark: SparkSession, key_types: list[KeyType] | None = None) -> list[str]:
    if spark.version < "4":
        pytest.skip("Spark has SQL functions from 4.0")
    return register(spark, key_types)


def drop(spark: SparkSession, names: list[str]) -> None:
    for name in names:
        spark.sql(f"DROP TEMPORARY FUNCTION {name}")


SCALARS = [column for column in COLUMNS if column[0] is not BIG_DEC]


@pytest.mark.long
@pytest.mark.parametrize(
    ("key_type", "ddl", "keys"),
    first_by_default(2, SCALARS[::-1]),
    ids=[ddl for _, ddl, _ in SCALARS[::-1]],
)
def test_scalar(
    spark: SparkSession,
    functions: list[str],
    ansi: None,
    key_type: KeyType,
    ddl: str,
    keys: list[Any],
) -> None:
    keys = keys[:300]
    name = repr(key_type).lower()
    spark.createDataFrame([(key,) for key in [*keys, None]], f"key {ddl}").createOrReplaceTempView(
        "sql_keys"
    )
    rows = spark.sql(
        f"SELECT flink_hash_code_{name}(key), flink_key_group_{name}(key, 1000), "
        f"flink_subtask_{name}(key, 1000, 7), "
        f"flink_operator_index(1000, 7, flink_key_group_{name}(key, 1000)), "
        "flink_operator_index(1000, 7, "
        f"flink_key_group_for_key_hash(flink_hash_code_{name}(key), 1000)) FROM sql_keys"
    ).collect()
    assert tuple(rows.pop()) == (None,) * 5
    assert [tuple(row) for row in rows] == [
        (
            keygroups.hash_code(key, key_type),
            keygroups.assign_to_key_group(key, 1000, key_type),
            *repeat(keygroups.assign_key_to_parallel_operator(key, 1000, 7, key_type), 3),
        )
        for key in keys
    ]


def test_strings_of_any_bytes(spark: SparkSession, functions: list[str]) -> None:
    """The JDK, asked in the same query, says what bytes that are no UTF-8 hash to."""
    texts = [b"\xe9t\xe9", b"ok\xe2\x82z", b"\xe2\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"\xc0\x80"]
    texts += [b"\x80", b"\xff\x00", b"a" * 10_000, "\u8000\uffff".encode() * 5_000, b"\n"]
    df = spark.createDataFrame([(bytearray(text),) for text in texts], "bytes binary")
    df.select("bytes", F.col("bytes").cast("string").alias("key")).createOrReplaceTempView("bytes")
    rows = spark.sql(
        "SELECT bytes, flink_hash_code_string(key), "
        "CAST(java_method('java.util.Objects', 'hashCode', key) AS INT) FROM bytes"
    ).collect()
    assert len(rows) == len(texts)
    for text, code, expected in rows:
        assert code == expected, bytes(text)


def test_uuid_and_codes(spark: SparkSession, functions: list[str]) -> None:
    text = "326a7488-92a3-3829-e41c-dffe3daa8d61"  # its hash is Flink's, in the vectors
    row = spark.sql(
        f"SELECT flink_hash_code_uuid('{text}'), flink_key_group_for_key_hash(99162322, 128), "
        "flink_operator_index(128, 3, 43), flink_operator_index(128, 3, NULL), "
        "flink_subtask_uuid(NULL, 128, 3)"
    ).first()
    assert row is not None
    assert tuple(row) == (2038373950, 35, 1, None, None)


# --- where Spark takes them, and where not -------------------------------------------------

KEYS = [str(number) for number in range(8)]
# Flink's key groups of the strings "0" to "7" at 128, and their subtasks at 4: kg * 4 // 128.
SUBTASKS = [group * 4 // 128 for group in (86, 54, 27, 33, 4, 79, 19, 115)]
TO_SUBTASK = [
    "flink_subtask_string(key, 128, 4)",
    "flink_operator_index(128, 4, flink_key_group_string(key, 128))",
    "flink_operator_index(128, 4, flink_key_group_for_key_hash(flink_hash_code_string(key), 128))",
    # Flink's key groups of the ints 0 to 7 need not be those of their digits.
    "flink_operator_index(128, 4, flink_key_group_for_key_hash("
    "flink_hash_code_string(string(flink_hash_code_int(int(key)))), 128))",
]
LOADS = sorted((subtask, SUBTASKS.count(subtask)) for subtask in set(SUBTASKS))
PAIRS = list(enumerate(SUBTASKS))
UPPER = "concat_ws('', transform(array(key), k -> upper(k))) AS key"

ALLOWED: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("SELECT n, {f} FROM sql_texts", PAIRS),
    ("SELECT n FROM sql_texts WHERE {f} = 2", [(n,) for n, s in PAIRS if s == 2]),
    ("SELECT {f} AS s, count(*) FROM sql_texts GROUP BY s", LOADS),
    ("SELECT {f}, count(*) FROM sql_texts GROUP BY {f}", LOADS),
    ("SELECT {f}, count(*) c FROM sql_texts GROUP BY {f} HAVING {f} < 9", LOADS),
    ("SELECT sum({f}) FROM sql_texts", [(sum(SUBTASKS),)]),
    ("SELECT count(*) FILTER (WHERE {f} = 2) FROM sql_texts", [(SUBTASKS.count(2),)]),
    ("SELECT DISTINCT {f} FROM sql_texts", [(subtask,) for subtask, _ in LOADS]),
    ("SELECT n, {f} AS s FROM sql_texts ORDER BY s", PAIRS),
    ("SELECT n, max({f}) OVER (PARTITION BY {f}) FROM sql_texts", PAIRS),
    ("SELECT n, CASE WHEN key IS NOT NULL THEN {f} END FROM sql_texts", PAIRS),
    ("SELECT n, (SELECT max({f}) FROM sql_texts) FROM sql_texts", [(n, 3) for n, _ in PAIRS]),
    ("SELECT a.n, b.n FROM sql_texts a JOIN (SELECT n, {f} AS s FROM sql_texts) b"
     " ON a.n = b.n AND a.n = b.s", [(n, n) for n, s in PAIRS if n == s]),
    ("SELECT n, transform(array(0), x -> x + {f})[0] FROM sql_texts", PAIRS),
    # An argument that is made with a lambda needs a name first.
    (f"SELECT n, {{f}} FROM (SELECT n, {UPPER} FROM sql_texts)", PAIRS),
    (f"WITH named AS (SELECT n, {UPPER} FROM sql_texts) SELECT n, {{f}} FROM named", PAIRS),
    # So does what goes to a clause that takes no SQL functions.
    ("SELECT n, x FROM (SELECT n, {f} AS s FROM sql_texts) LATERAL VIEW explode(array(s)) AS x",
     PAIRS),
    ("SELECT n, s FROM (SELECT n, {f} AS s FROM sql_texts) DISTRIBUTE BY s", PAIRS),
]  # fmt: skip

REFUSED = [
    ("SELECT n FROM sql_texts ORDER BY {f}", "UNSUPPORTED_SQL_UDF_USAGE"),
    ("SELECT n, {f} AS s FROM sql_texts ORDER BY {f}", "UNSUPPORTED_SQL_UDF_USAGE"),
    ("SELECT n FROM sql_texts DISTRIBUTE BY {f}", "UNSUPPORTED_SQL_UDF_USAGE"),
    ("SELECT n FROM sql_texts CLUSTER BY {f}", "UNSUPPORTED_SQL_UDF_USAGE"),
    ("SELECT explode(array({f})) FROM sql_texts", "UNSUPPORTED_SQL_UDF_USAGE"),
    # Spark 4.0 says it in words of its own.
    ("SELECT transform(array(key), key -> {f}) FROM sql_texts", "LAMBDA_FUNCTION|MISSING_ATTR"),
    ("VALUES ({literal})", "CANNOT_EVALUATE_EXPRESSION_IN_INLINE_TABLE"),
    ("CREATE VIEW sql_forever AS SELECT {literal} AS s", "INVALID_TEMP_OBJ_REFERENCE"),
    (
        "CREATE FUNCTION sql_forever(key STRING) RETURNS INT RETURN {f}",
        "INVALID_TEMP_OBJ_REFERENCE",
    ),
]


@pytest.fixture(scope="module")
def texts(spark: SparkSession, functions: list[str]) -> None:
    df = spark.createDataFrame(list(enumerate(KEYS)), "n int, key string")
    df.createOrReplaceTempView("sql_texts")


def ask(spark: SparkSession, query: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, spark.sql(query).collect()))


# Each call in each place takes long, above all the last, which is the deepest.
CALLS = first_by_default(1, TO_SUBTASK)


@pytest.mark.parametrize("function", CALLS)
@pytest.mark.slow
def test_where_spark_takes_them(spark: SparkSession, texts: None, function: str) -> None:
    for query, expected in ALLOWED:
        assert ask(spark, query.replace("{f}", function)) == sorted(expected), query


@pytest.mark.parametrize("function", CALLS)
@pytest.mark.slow
def test_where_spark_refuses_them(spark: SparkSession, texts: None, function: str) -> None:
    """Its docstring says so: if one of these works some day, it says too little."""
    literal = re.sub(r"\bkey\b", "'5'", function)
    for query, why in REFUSED:
        text = query.replace("{f}", function).replace("{literal}", literal)
        with pytest.raises(AnalysisException, match=why):
            spark.sql(text).collect()


@pytest.mark.long
@pytest.mark.parametrize("function", TO_SUBTASK)
def test_argument_with_a_lambda(spark: SparkSession, texts: None, function: str) -> None:
    """Refused too, but for Spark 4.0."""
    made = re.sub(r"\bkey\b", "concat_ws('', transform(array(key), k -> upper(k)))", function)
    query = f"SELECT n, {made} FROM sql_texts"
    if spark.version < "4.1":
        assert ask(spark, query) == PAIRS
    else:
        with pytest.raises(AnalysisException, match="LAMBDA_FUNCTION_WITH_SQL_UDF"):
            spark.sql(query).collect()


@pytest.mark.slow
def test_temporary_views_and_functions(spark: SparkSession, texts: None) -> None:
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW sql_routed AS "
        "SELECT n, flink_subtask_string(key, 128, 4) AS subtask FROM sql_texts"
    )
    assert ask(spark, "SELECT subtask, count(*) FROM sql_routed GROUP BY subtask") == LOADS
    spark.sql(
        "CREATE OR REPLACE TEMPORARY FUNCTION sql_mine(key STRING) RETURNS INT RETURN "
        "flink_operator_index(128, 4, flink_key_group_string(concat(key, ''), 128))"
    )
    assert ask(spark, "SELECT n, sql_mine(key) FROM sql_texts") == PAIRS
    drop(spark, ["sql_mine"])


@pytest.mark.parametrize("function", CALLS)
@pytest.mark.slow
def test_from_python(spark: SparkSession, texts: None, function: str) -> None:
    df = spark.table("sql_texts")
    rows = df.select("n", F.expr(function)).collect()
    assert sorted(map(tuple, rows)) == PAIRS
    assert df.filter(f"{function} = 2").count() == SUBTASKS.count(2)
    column = F.call_function("flink_subtask_string", F.col("key"), F.lit(128), F.lit(4))
    assert sorted(map(tuple, df.select("n", column).collect())) == PAIRS


# --- strings without a lambda --------------------------------------------------------------


@pytest.mark.slow
def test_spark_that_hashes_otherwise(
    spark: SparkSession, functions: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the known keys are wrong, or the query fails, the body is the one with a lambda."""
    expressions = import_module("keygroups.spark.register")._LAMBDA_FREE
    for broken in ("5", "raise_error('no')"):
        monkeypatch.setitem(expressions.hashers, STRING, lambda column, text=broken: SqlText(text))
        names = register(spark, [STRING])
        assert spark.sql("SELECT flink_hash_code_string('hello')").first() == (99162322,)
    monkeypatch.undo()
    assert register(spark, [STRING]) == names


@pytest.mark.long
def test_rows_are_checked(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """An array that went through an exchange hashes otherwise; then the query fails."""
    df = spark.createDataFrame([("hello",), ("h\u00e9llo",), (None,)], "key string")
    right = df.select(LambdaFree(F).hash_string(F.col("key"))).collect()
    assert [row[0] for row in right] == [99162322, keygroups.hash_code("h\u00e9llo"), None]
    monkeypatch.setattr(
        LambdaFree, "array_hash", lambda self, parts: F.xxhash64(*parts) % (1 << 31)
    )
    wrong = df.select(LambdaFree(F).hash_string(F.col("key")))
    with pytest.raises(QUERY_FAILS, match="this Spark hashes arrays otherwise than known"):
        wrong.collect()


def test_string_without_a_lambda_is_short() -> None:
    """Each use of a SQL function has its whole text analysed; a call is a node of the plan."""
    key: Any = SqlText("key")
    text: Any = LambdaFree(SqlFunctions()).hash_string(key)
    assert text.text.count("`(") <= 70
    assert not re.search("`bigint`[(]-?[0-9]", text.text)  # a literal such as 1L needs no cast
    assert "->" not in text.text


def test_analysis_takes_few_passes(spark: SparkSession, functions: list[str]) -> None:
    """A pass of Spark's analyser over all that it has; a cast that it has to find is one more.

    So is an error that it has to cast. A function that does nothing takes as few.
    """
    if is_connect(spark):
        pytest.skip("the server has its analyser")
    session: Any = spark
    executor = session._jvm.org.apache.spark.sql.catalyst.rules.RuleExecutor

    def passes(expression: str, df: DataFrame) -> int:
        executor.resetMetrics()
        df.selectExpr(expression)
        rule = r"Analyzer\$ResolveReferences .*/ (\d+)"
        return int(re.findall(rule, executor.dumpTimeSpent())[0])

    keys = spark.range(1).selectExpr("id", "cast(id as string) AS key")
    name = "flink_test_passes"
    spark.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION {name}(n BIGINT) RETURNS BIGINT RETURN n")
    try:
        least = passes(f"{name}(id)", keys)
    finally:
        drop(spark, [name])
    for call in ("string(key, 128, 4)", "long(id, 128, 4)"):
        assert passes(f"flink_subtask_{call}", keys) <= least, call
    assert passes("flink_subtask_double(id, 128, 4)", keys) <= least + 2


def test_a_use_is_few_expressions(spark: SparkSession, functions: list[str]) -> None:
    """What the analyser makes of a use, and what the optimiser leaves of it for the compiler."""
    if is_connect(spark):
        pytest.skip("the server has its plans")

    def listed(sequence: Any) -> list[Any]:
        return [sequence.apply(i) for i in range(sequence.size())]

    def below(expression: Any) -> int:
        return 1 + sum(map(below, listed(expression.children())))

    def expressions(plan: Any) -> int:
        own = sum(map(below, listed(plan.expressions())))
        return own + sum(map(expressions, listed(plan.children())))

    call = "flink_subtask_string(key, 128, 4)"
    df: Any = spark.range(1).selectExpr("string(id) AS key").selectExpr(call)
    execution = df._jdf.queryExecution()
    assert expressions(execution.analyzed()) <= 220
    assert expressions(execution.optimizedPlan()) <= 170


# --- names and arguments -------------------------------------------------------------------


def test_names(functions: list[str]) -> None:
    assert "flink_key_group_string" in functions
    for prefix in ("flink_hash_code_", "flink_key_group_", "flink_subtask_"):
        named = {name.removeprefix(prefix) for name in functions if name.startswith(prefix)}
        assert named >= {repr(key_type).lower() for key_type in (STRING, INT, UUID)}
    assert not any("big_dec" in name for name in functions)


@pytest.mark.slow
def test_key_types(spark: SparkSession, functions: list[str]) -> None:
    drop(spark, functions)
    numbers = {"flink_key_group_for_key_hash", "flink_operator_index"}
    assert set(register(spark, [])) == numbers
    names = register(spark, (key_type for key_type in (INT, LONG)))
    assert set(names) - numbers == {
        f"flink_{what}_{key_type}"
        for what in ("hash_code", "key_group", "subtask")
        for key_type in ("int", "long")
    }
    assert not spark.catalog.functionExists("flink_subtask_string")
    assert register(spark) == functions


@pytest.mark.parametrize(
    ("key_types", "error"),
    [
        (STRING, InvalidTypeError),
        ("STRING", InvalidTypeError),
        (5, InvalidTypeError),
        (["STRING"], InvalidTypeError),
        ([None], InvalidTypeError),
        ([BIG_DEC], UnsupportedKeyTypeError),
        ([CHAR], UnsupportedKeyTypeError),
        ([TUPLE(INT)], UnsupportedKeyTypeError),
        ([INT, INT], InvalidValueError),
        (repeat(INT), InvalidValueError),
    ],
    ids=str,
)
def test_key_types_that_are_none(
    spark: SparkSession, key_types: Any, error: type[KeyGroupsError]
) -> None:
    with pytest.raises(error, match="key_types must"):
        register(spark, key_types)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("flink_key_group_string('a', 0)", "max_parallelism must be from 1 to 32768, got 0"),
        ("flink_key_group_int(1, 32769)", "max_parallelism must be from 1 to 32768, got 32769"),
        ("flink_subtask_string('a', 0, 1)", "max_parallelism must be from 1 to 32768, got 0"),
        ("flink_subtask_string('a', 128, 129)", "parallelism must be from 1 to 128, got 129"),
        ("flink_subtask_string(NULL, 128, 0)", "parallelism must be from 1 to 128, got 0"),
        ("flink_operator_index(128, 129, 0)", "parallelism must be from 1 to 128, got 129"),
        ("flink_operator_index(128, 3, 128)", "key_group must be from 0 to 127, got 128"),
        ("flink_operator_index(0, 1, 0)", "max_parallelism must be from 1 to 32768, got 0"),
        ("flink_hash_code_uuid('x')", "canonical text, got x"),
    ],
)
def test_bounds(spark: SparkSession, functions: list[str], call: str, says: str) -> None:
    with pytest.raises(QUERY_FAILS, match=says):
        spark.sql(f"SELECT {call}").collect()


MIDNIGHT_IN_UTC = "timestamp_seconds(1767225600)"  # 2026-01-01; in New York still 2025
DAY_BEFORE = dt.date(2025, 12, 31)


@pytest.mark.long
def test_casts_of_another_time_zone(spark: SparkSession, functions: list[str]) -> None:
    """An argument is cast in the zone when the function was made, which no query can change."""
    key_types = [LOCAL_DATE, LOCAL_DATE_TIME, INSTANT, STRING, INT]
    register(spark, key_types)
    query = f"SELECT flink_key_group_local_date({MIDNIGHT_IN_UTC}, 128)"
    with changed(spark, {ZONE: "America/New_York"}):
        for call in (
            f"local_date({MIDNIGHT_IN_UTC}, 128)",
            f"local_date_time({MIDNIGHT_IN_UTC}, 128)",
            "instant(timestamp_ntz'2026-01-01 00:00:00', 128)",
            f"string({MIDNIGHT_IN_UTC}, 128)",
            f"string(array({MIDNIGHT_IN_UTC}), 128)",
        ):
            with pytest.raises(QUERY_FAILS, match=r"are of the time zone UTC, .* call register"):
                spark.sql(f"SELECT flink_key_group_{call}").collect()
        row = spark.sql("SELECT flink_key_group_string('A', 128), flink_key_group_int(7, 128)")
        assert row.first() == (104, 113)  # Flink's
        assert spark.sql("SELECT flink_key_group_local_date(NULL, 128)").first() == (None,)
        register(spark, key_types)
        assert spark.sql(query).first() == (keygroups.assign_to_key_group(DAY_BEFORE, 128),)
    register(spark, key_types)


@pytest.mark.long
@pytest.mark.parametrize(("first", "then"), [("false", "true"), ("true", "false")])
def test_casts_are_of_ansi_mode(
    spark: SparkSession, functions: list[str], first: str, then: str
) -> None:
    with changed(spark, {ANSI: first}):
        register(spark, [INT, LOCAL_DATE])
        assert spark.conf.get(ANSI) == first
    with changed(spark, {ANSI: then}):
        for call in ("int(4294967301L)", "int('abc')", "local_date('2026-02-30')"):
            with pytest.raises(QUERY_FAILS, match=r"CAST_OVERFLOW|CAST_INVALID_INPUT"):
                spark.sql(f"SELECT flink_hash_code_{call}").collect()


def test_before_4(spark: SparkSession) -> None:
    if spark.version >= "4":
        pytest.skip("this Spark has SQL functions")
    with pytest.raises(KeyGroupsError, match="has not: use"):
        register(spark)


@pytest.mark.parametrize(
    "spark",
    ["spark", None, 5, SparkSession, object()],
    ids=["text", "None", "int", "class", "object"],
)
def test_what_is_no_session(spark: Any) -> None:
    with pytest.raises(InvalidTypeError, match="spark must be a SparkSession"):
        register(spark)
