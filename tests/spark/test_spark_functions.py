"""Column expressions: the same answers as the core, for every value that Spark can hold."""

from __future__ import annotations

import datetime as dt
import math
import sys
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.utils import is_remote
from support.hostile_values import in_itself
from support.inside.adapter import SETTING, catalyst, current_backend
from support.selections import first_by_default
from support.spark.spark_backends import ONE_BACKEND, skip_without
from support.spark.spark_columns import COLUMNS, DOUBLES, FLOATS, MOMENTS, RANDOM, decimals

import keygroups
from keygroups import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    ParallelismError,
    UnsupportedKeyTypeError,
)
from keygroups.spark import functions as KF
from keygroups.spark import repartition_by_subtask, with_routing
from keygroups.spark.dataframe import key_group_column, key_tree
from keygroups.types import (
    BIG_DEC,
    BIG_INT,
    CHAR,
    DOUBLE,
    INSTANT,
    INT,
    LIST,
    LOCAL_DATE,
    LOCAL_DATE_TIME,
    LOCAL_TIME,
    LONG,
    MAP,
    PYFLINK,
    ROW,
    SET,
    SQL_DATE,
    SQL_ROW,
    SQL_TIME,
    SQL_TIMESTAMP,
    STRING,
    TUPLE,
    UUID,
    KeyType,
)

QUERY_FAILS = (PySparkException, Py4JJavaError)  # Spark 3.5 lets the latter through


@pytest.fixture(params=ONE_BACKEND)
def backend(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    skip_without(request.param)
    yield from setting(spark, SETTING, request.param)


def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    yield
    if before is None:
        spark.conf.unset(name)
    else:
        spark.conf.set(name, before)


@pytest.mark.parametrize(("key_type", "ddl", "keys"), COLUMNS, ids=[ddl for _, ddl, _ in COLUMNS])
def test_scalar(
    spark: SparkSession, ansi: None, backend: None, key_type: KeyType, ddl: str, keys: list[Any]
) -> None:
    df = spark.createDataFrame([(key,) for key in [*keys, None]], f"key {ddl}")
    rows = df.select(
        KF.hash_code("key", key_type).alias("code"),
        KF.assign_to_key_group("key", 1000, key_type).alias("key_group"),
        KF.assign_key_to_parallel_operator("key", 1000, 7, key_type).alias("subtask"),
    ).collect()
    assert tuple(rows.pop()) == (None, None, None)
    assert len(rows) == len(keys)
    for key, row in zip(keys, rows):
        assert row["code"] == keygroups.hash_code(key, key_type), key
        assert row["key_group"] == keygroups.assign_to_key_group(key, 1000, key_type), key
        subtask = keygroups.assign_key_to_parallel_operator(key, 1000, 7, key_type)
        assert row["subtask"] == subtask, key


# What the JDK says of new BigDecimal(text).hashCode().
NEGATIVE_SCALES = [
    ("1.23E4", 3811),
    ("-9.99E10", -30977),
    ("0E2", -2),
    ("0E1", -1),
    ("1E1", 30),
    ("-1E3", -34),
    ("100E5", 3095),
    ("1.23E40", 3775),
    ("12345678901234567890E5", -1584216587),
    ("-99999999999999999999999999999999999999E9", 427198377),
]


def test_decimals_of_negative_scale(spark: SparkSession, ansi: None, backend: None) -> None:
    """They are of a legacy setting; ANSI mode changes how Spark writes them."""
    for _ in setting(spark, "spark.sql.legacy.allowNegativeScaleOfDecimal", "true"):
        df = spark.sql(
            "SELECT "
            + ", ".join(f"{text}BD AS k{i}" for i, (text, _) in enumerate(NEGATIVE_SCALES))
            + ", nullif(1.23E4BD, 1.23E4BD) AS k"
        )
        names = df.columns
        codes = df.select([KF.hash_code(name, BIG_DEC) for name in names]).first()
        assert codes == (*(code for _, code in NEGATIVE_SCALES), None)
        # A SQL row has it as a DECIMAL of the declared scale, which is not negative.
        found = with_routing(df.select("k0"), "k0", 128, 4, SQL_ROW("DECIMAL(20, 2)")).first()
        assert found is not None
        key = (Decimal("12300.00"),)
        assert found["key_group"] == keygroups.assign_to_key_group(
            key, 128, SQL_ROW("DECIMAL(20, 2)")
        )


@pytest.mark.long
@pytest.mark.parametrize(
    ("ddl", "sql_type", "keys"),
    [
        ("double", "DOUBLE", DOUBLES),
        ("float", "FLOAT", FLOATS),
        ("decimal(38,10)", "DECIMAL(38, 10)", decimals(38, 10)),
        ("decimal(38,0)", "DECIMAL(38, 0)", decimals(38, 0)),
        ("decimal(19,19)", "DECIMAL(19, 19)", decimals(19, 19)),
    ],
)
def test_numbers_in_a_sql_row(
    spark: SparkSession, ansi: None, backend: None, ddl: str, sql_type: str, keys: list[Any]
) -> None:
    """A row has all bits of a number, and not only its hash code."""
    key_type = SQL_ROW(sql_type)
    # Of the other NaNs the portable backend takes no notice, as `hash_code` says.
    keys = [*(key for key in keys if key == key), *([] if "DECIMAL" in sql_type else [math.nan])]
    df = spark.createDataFrame([(key,) for key in [*keys, None]], f"key {ddl}")
    found = [row[0] for row in df.select(KF.hash_code("key", key_type)).collect()]
    assert found == [keygroups.hash_code((key,), key_type) for key in [*keys, None]]


def test_bytes_that_are_no_utf_8(spark: SparkSession, backend: None) -> None:
    """Spark strings may hold them; the JDK, asked in the same query, says what they are."""
    texts = [b"\xe9t\xe9", b"ok\xe2\x82z", b"\xe2\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"\xc0\x80"]
    some = b"aZ\x80\x82\x98\x9f\xa0\xc3\xe2\xed\xf0\xf8\xff"
    texts += [bytes(RANDOM.choices(some, k=RANDOM.randrange(12))) for _ in range(500)]
    df = spark.createDataFrame([(bytearray(text),) for text in texts], "bytes binary")
    strings = df.select("bytes", F.col("bytes").cast("string").alias("key"))
    jdk = F.expr("java_method('java.util.Objects', 'hashCode', key)").cast("int")
    codes = strings.select("bytes", KF.hash_code("key", STRING), jdk)
    if spark.conf.get(SETTING) == "arrow":
        with pytest.raises(QUERY_FAILS, match="must be text in UTF-8"):
            codes.collect()
        return
    rows = codes.collect()
    assert len(rows) == len(texts)
    for text, code, expected in rows:
        assert code == expected, bytes(text)


def test_uuid(spark: SparkSession, ansi: None, backend: None) -> None:
    uuids = [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1)]
    uuids += [uuid.UUID(bytes=RANDOM.randbytes(16)) for _ in range(100)]
    df = spark.createDataFrame([(str(u),) for u in uuids] + [(None,)], "key string")
    found = [row[0] for row in df.select(KF.hash_code("key", UUID)).collect()]
    assert found == [*map(keygroups.hash_code, uuids), None]


def test_tuple(spark: SparkSession, ansi: None, backend: None) -> None:
    key_type = TUPLE(STRING, INT, TUPLE(LONG), DOUBLE)
    rows = [("a", 1, 2, 0.5), (None, 1, None, -0.0), ("é", None, -(2**63), None), (None,) * 4]
    df = spark.createDataFrame(rows, "a string, b int, c bigint, d double")
    found = df.select(KF.assign_to_key_group(["a", F.col("b"), "c", "d"], 4096, key_type))
    keys = [(a, b, (c,), d) for a, b, c, d in rows]
    assert [row[0] for row in found.collect()] == [
        keygroups.assign_to_key_group(key, 4096, key_type) for key in keys
    ]


def test_murmur_of_the_odd_ints(spark: SparkSession, ansi: None, backend: None) -> None:
    codes = [0, 1, -1, 2**31 - 1, -(2**31), -2089875627, -1035494534]
    codes += [RANDOM.randrange(-(2**31), 2**31) for _ in range(1000)]
    df = spark.createDataFrame([(code,) for code in codes] + [(None,)], "code int")
    found = [row[0] for row in df.select(KF.murmur_hash("code")).collect()]
    assert found == [*map(keygroups.murmur_hash, codes), None]


@pytest.mark.parametrize(("max_parallelism", "parallelism"), [(1, 1), (128, 3), (32768, 1000)])
def test_operator_index(
    spark: SparkSession, ansi: None, backend: None, max_parallelism: int, parallelism: int
) -> None:
    df = spark.range(max_parallelism).select(F.col("id").cast("int").alias("kg"))
    subtask = KF.compute_operator_index_for_key_group(max_parallelism, parallelism, "kg")
    assert [row[0] for row in df.select(subtask).collect()] == [
        keygroups.compute_operator_index_for_key_group(max_parallelism, parallelism, kg)
        for kg in range(max_parallelism)
    ]


ZONES = ["UTC", "Europe/Berlin", "America/Sao_Paulo", "Asia/Kolkata"]


@pytest.mark.long
@pytest.mark.parametrize("zone", first_by_default(3, ZONES))
def test_sql_date(spark: SparkSession, ansi: None, backend: None, zone: str) -> None:
    dates = [dt.date(1970, 1, 1) + dt.timedelta(RANDOM.randrange(365 * 66)) for _ in range(300)]
    certain = [date for date in dates if is_certain(date, SQL_DATE(zone))]
    df = spark.createDataFrame([(date,) for date in [*certain, None]], "key date")
    found = [row[0] for row in df.select(KF.hash_code("key", SQL_DATE(zone))).collect()]
    assert found == [*(keygroups.hash_code(date, SQL_DATE(zone)) for date in certain), None]


def is_certain(key: object, key_type: KeyType) -> bool:
    try:
        keygroups.hash_code(key, key_type)
    except InvalidValueError:
        return False
    return True


@pytest.mark.long
@pytest.mark.parametrize(
    ("date", "zone"),
    [
        (dt.date(1582, 10, 14), "UTC"),
        (dt.date(1969, 12, 31), "Europe/Berlin"),
        (dt.date(2018, 11, 4), "America/Sao_Paulo"),  # began at one o'clock
    ],
)
def test_sql_date_in_doubt_fails(spark: SparkSession, date: dt.date, zone: str) -> None:
    assert not is_certain(date, SQL_DATE(zone))
    df = spark.createDataFrame([(date,)], "key date")
    with pytest.raises(QUERY_FAILS, match="must be one certain instant, got"):
        df.select(KF.hash_code("key", SQL_DATE(zone))).collect()


@pytest.mark.long
def test_sql_timestamp(spark: SparkSession, ansi: None, backend: None) -> None:
    """A timestamp is an instant: the core's wall-clock time in UTC."""
    moments = [moment for moment in MOMENTS if moment > dt.datetime(1582, 10, 16)]
    aware = [(moment.replace(tzinfo=dt.timezone.utc),) for moment in moments]
    df = spark.createDataFrame([*aware, (None,)], "key timestamp")
    found = [
        row[0] for row in df.select(KF.hash_code("key", SQL_TIMESTAMP("Asia/Kolkata"))).collect()
    ]
    assert found == [*(keygroups.hash_code(m, SQL_TIMESTAMP("UTC")) for m in moments), None]


# What the JDK says of the Instant of an epoch microsecond, and Flink of its BinaryRowData.
FIRST_MOMENTS = [
    (-(2**63), 626140309, -162967732),
    (-(2**63) + 500_000, 356336533, 624631610),
    (-1, -539658552, 1236894319),
    (1_700_000_000_123_456, -593678592, 1196670069),
]


def test_first_moments(spark: SparkSession, ansi: None, backend: None) -> None:
    """The first second of Spark's timestamps begins before the first of them."""
    df = spark.createDataFrame([(micros,) for micros, _, _ in FIRST_MOMENTS], "micros bigint")
    moments = df.select("micros", F.timestamp_micros("micros").alias("key"))
    codes = [KF.hash_code("key", key) for key in (INSTANT, SQL_ROW("TIMESTAMP_LTZ(6)"))]
    assert [tuple(row) for row in moments.select("micros", *codes).collect()] == FIRST_MOMENTS


def test_row(spark: SparkSession, ansi: None, backend: None) -> None:
    key_types = [
        ROW(STRING, LONG, LIST(STRING), kind=kind, names=names)
        for kind in ("+I", "-U", "+U", "-D")
        for names in (None, ("name", "\u00e9", "items"))
    ]
    keys = [("a", -1, ["x", None]), (None, 2**40, []), ("\U0001f600", None, None), (None,) * 3]
    df = spark.createDataFrame(keys, "a string, b bigint, c array<string>")
    codes = [KF.hash_code(["a", "b", "c"], key_type) for key_type in key_types]
    for key, row in zip(keys, df.select(codes).collect(), strict=True):
        expected = [keygroups.hash_code(key, key_type) for key_type in key_types]
        assert list(row) == expected, key


LISTS: list[tuple[KeyType, str, list[Any]]] = [
    (LIST(STRING), "array<string>", [["a", None, "\u00e9"], [""], None]),
    (LIST(LIST(LONG)), "array<array<bigint>>", [[[1, -1], [], None], [[2**40]], None]),
    (LIST(INT), "array<int>", [[1, None, -5], [], None]),
    (LIST(DOUBLE), "array<double>", [[-0.0, 1.5, None], None]),
]


@pytest.mark.parametrize(
    ("key_type", "ddl", "keys"), first_by_default(2, LISTS), ids=[ddl for _, ddl, _ in LISTS]
)
def test_list(
    spark: SparkSession, ansi: None, backend: None, key_type: LIST, ddl: str, keys: list[Any]
) -> None:
    df = spark.createDataFrame([(key,) for key in keys], f"key {ddl}")
    rows = df.select(
        KF.hash_code("key", key_type), KF.assign_to_key_group("key", 1000, key_type)
    ).collect()
    assert [tuple(row) for row in rows] == [
        (None, None)
        if key is None
        else (
            keygroups.hash_code(key, key_type),
            keygroups.assign_to_key_group(key, 1000, key_type),
        )
        for key in keys
    ]
    deep = df.select(KF.hash_code(["key"], ROW(key_type))).collect()
    assert [row[0] for row in deep] == [keygroups.hash_code((key,), ROW(key_type)) for key in keys]


@pytest.mark.long
def test_structs(spark: SparkSession, ansi: None, backend: None) -> None:
    """A struct column is a tuple or a row; its names do not matter, a null struct is null."""
    inner = TUPLE(STRING, INT)
    structs = [("a", 1), ("b", None), (None, None), None]
    df = spark.createDataFrame([(s, 7) for s in structs], "s struct<`x.y`: string, b: int>, n int")
    rows = with_routing(df, "s", 4096, 3, inner).collect()
    assert [row["key_group"] for row in rows] == [
        None if s is None else keygroups.assign_to_key_group(s, 4096, inner) for s in structs
    ]
    for outer in (TUPLE(INT, inner), ROW(INT, inner), ROW(INT, ROW(STRING, INT, kind="-D"))):
        rows = with_routing(df, ["n", "s"], 4096, 3, outer).collect()
        assert [row["key_group"] for row in rows] == [
            keygroups.assign_to_key_group((7, s), 4096, outer) for s in structs
        ]
    arrays = df.groupBy("n").agg(F.array_sort(F.collect_list("s")).alias("all"))
    found, row = with_routing(arrays, "all", 4096, 3, LIST(inner)).first(), arrays.first()
    assert row is not None
    expected = keygroups.assign_to_key_group([tuple(s) for s in row["all"]], 4096, LIST(inner))
    assert found is not None
    assert found["key_group"] == expected


def test_nested_lists_of_columns(spark: SparkSession, backend: None) -> None:
    df = spark.createDataFrame([("a", 1, -5)], "a string, b int, c bigint")
    key_type = TUPLE(STRING, ROW(INT, LONG))
    found = df.select(KF.hash_code(["a", ["b", "c"]], key_type)).first()
    assert found == (keygroups.hash_code(("a", (1, -5)), key_type),)


# --- the backends ---------------------------------------------------------------------


def plan(df: DataFrame, capsys: pytest.CaptureFixture[str]) -> str:
    df.explain()
    return capsys.readouterr().out


def test_plan_shows_the_backend(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    df = spark.createDataFrame([("a", 1, 2)], "a string, b int, c bigint")
    plans = {}
    for choice in ("auto", "portable"):
        for _ in setting(spark, SETTING, choice):
            key_group = KF.assign_to_key_group(["a", "b", "c"], 128, TUPLE(STRING, INT, LONG))
            plans[choice] = plan(df.select(key_group.alias("kg")), capsys)
    assert ("hive-hash" in plans["auto"]) is not is_remote()
    assert "hive-hash" not in plans["portable"]
    for shown in plans.values():
        assert "Python" not in shown, "no Python worker"
        assert "to_number" not in shown, "the checks of types are folded away"


@pytest.mark.parametrize(
    ("key_type", "ddl", "keys"),
    first_by_default(2, COLUMNS[::-1]),
    ids=[ddl for _, ddl, _ in COLUMNS[::-1]],
)
def test_only_strings_take_a_lambda(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], key_type: KeyType, ddl: str, keys: Any
) -> None:
    """Spark interprets lambdas, and neither shares nor composes what has them."""
    df = spark.sql(f"SELECT CAST(NULL AS {ddl}) AS key FROM range(1)")
    for _ in setting(spark, SETTING, "portable"):
        shown = plan(df.select(KF.hash_code(["key"] * 2, TUPLE(key_type, key_type))), capsys)
    assert ("lambda" in shown) is (key_type is STRING)


@pytest.mark.parametrize(
    ("columns", "key_type"),
    [
        (["b"], INT),
        (["c"], LONG),
        (["c", "b"], TUPLE(LONG, INT)),
        (["a", "b"], TUPLE(STRING, INT)),
    ],
)
def test_fast_backend_is_generated_code(
    spark: SparkSession,
    capsys: pytest.CaptureFixture[str],
    columns: list[str],
    key_type: KeyType,
) -> None:
    if is_remote():
        pytest.skip("Spark Connect has no fast backend")
    df = spark.createDataFrame([("a", 1, 2)], "a string, b int, c bigint")
    shown = plan(df.select(KF.assign_to_key_group(columns, 128, key_type).alias("kg")), capsys)
    assert "*(1) Project [" in shown  # the star is whole-stage code generation


def test_setting_that_is_none(spark: SparkSession) -> None:
    for _ in setting(spark, SETTING, "quick"):
        with pytest.raises(InvalidValueError, match="must be one of auto, fast, portable"):
            KF.hash_code("a", STRING)


@pytest.mark.long
def test_broken_internals_mean_the_portable_backend(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_remote():
        pytest.skip("Spark Connect has no fast backend")
    for broken in (lambda self, column: F.lit(5), lambda self, column: F.expr("no_such()")):
        monkeypatch.setattr(catalyst.Catalyst, "hash_string", broken)
        assert catalyst.fast_backend(spark) is None
    monkeypatch.undo()
    assert catalyst.fast_backend(spark) is not None


def test_fast_backend_that_is_not_there(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keygroups.spark._columns.backend._fast_backend", lambda session: None)
    assert current_backend() is current_backend()
    for _ in setting(spark, SETTING, "fast"):
        with pytest.raises(InvalidValueError, match="this session has no fast backend"):
            KF.hash_code("a", STRING)


@pytest.mark.slow
def test_arrow_backend(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """Keys of every shape in one query, by a UDF."""
    skip_without("arrow")
    struct = "struct<`x.y`: int, `X.Y`: string>"
    ddl = f"s string, n bigint, d decimal(20,3), all array<string>, r {struct}"
    rows: list[Any] = [
        ("\U0001f600 caf\u00e9", -1, Decimal("1.500"), ["a", None], (7, "b")),
        ("", None, None, [], (None, None)),
        (None, 2**63 - 1, Decimal("-0.001"), None, None),
    ]
    df = spark.createDataFrame(rows, ddl)
    sql = SQL_ROW("STRING", "BIGINT", "DECIMAL(20, 3)", "ARRAY<STRING>", "ROW<INT, STRING>")
    pair = TUPLE(INT, STRING)
    keys: list[tuple[Any, KeyType, Callable[[Any], Any]]] = [
        ("s", STRING, lambda row: row[0]),
        (["n"], LONG, lambda row: row[1]),
        ("d", BIG_DEC, lambda row: row[2]),
        ("all", LIST(STRING), lambda row: row[3]),
        ("r", pair, lambda row: row[4]),
        ("s", PYFLINK(STRING), lambda row: row[0]),
        (
            ["s", ["n", "r"]],
            TUPLE(STRING, ROW(LONG, pair)),
            lambda row: (row[0], (row[1], row[4])),
        ),
        ("n", SQL_ROW("BIGINT"), lambda row: (row[1],)),
        ([*df.columns], sql, lambda row: row),
        (["s", []], TUPLE(STRING, ROW()), lambda row: (row[0], ())),
    ]
    for _ in setting(spark, SETTING, "arrow"):
        columns = [
            key_group_column(df, key_tree(df, key), 32768, key_type) for key, key_type, _ in keys
        ]
        empty = KF.hash_code([], TUPLE())
        found = df.select(empty, *(c.alias(f"c{i}") for i, c in enumerate(columns))).collect()
        for row, (code, *key_groups) in zip(rows, found):
            assert code == 0
            for (key, key_type, of_row), key_group in zip(keys, key_groups):
                value, expected = of_row(row), None
                if value is not None or isinstance(key_type, PYFLINK):
                    expected = keygroups.assign_to_key_group(value, 32768, key_type)
                assert key_group == expected, key
        shown = plan(with_routing(df, "s", 128, 3), capsys)
        assert "ArrowEvalPython" in shown
        with pytest.raises(InvalidTypeError, match="key type INT takes a column of type int"):
            with_routing(df, "n", 128, 3, INT)
        for key_type in (INT, LIST(BIG_DEC), SQL_ROW("ARRAY<BIGINT>"), SQL_DATE("UTC")):
            with pytest.raises(QUERY_FAILS, match="takes a column of type"):
                df.select(KF.hash_code("s", key_type)).collect()


def test_arrow_backend_that_is_not_there(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in setting(spark, SETTING, "arrow"):
        monkeypatch.delattr(F, "arrow_udf", raising=False)
        with pytest.raises(InvalidValueError, match=r"needs PySpark 4\.1 or newer, got \d"):
            KF.hash_code("a", STRING)
    monkeypatch.undo()
    skip_without("arrow")
    for name in ("keygroups.arrays", "keygroups.spark._columns.arrow"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for _ in setting(spark, SETTING, "arrow"):
        with pytest.raises(ModuleNotFoundError, match=r"pip install 'keygroups\[arrays\]'"):
            KF.hash_code("a", STRING)


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    """A thread that has made no session, and so has none active."""
    with ThreadPoolExecutor(1) as executor:
        yield executor


def test_setting_in_a_thread(spark: SparkSession, thread: ThreadPoolExecutor) -> None:
    df = spark.createDataFrame([("a",)], "a string")
    assert thread.submit(SparkSession.getActiveSession).result() is None
    for _ in setting(spark, SETTING, "quick"):
        for call in (lambda: KF.hash_code("a", STRING), lambda: with_routing(df, "a", 128, 3)):
            with pytest.raises(InvalidValueError, match="must be one of auto, fast, portable"):
                thread.submit(call).result()


def test_backend_in_a_thread(
    spark: SparkSession, thread: ThreadPoolExecutor, capsys: pytest.CaptureFixture[str]
) -> None:
    df = spark.createDataFrame([("a", 1)], "a string, b int")
    key_type = TUPLE(STRING, INT)
    makes: list[Callable[[], DataFrame]] = [
        lambda: with_routing(df, ["a", "b"], 128, 3),
        lambda: df.select(KF.hash_code(["a", "b"], key_type)),
    ]
    for make in makes:
        shown = plan(thread.submit(make).result(), capsys)
        assert ("hive-hash" in shown) is ("hive-hash" in plan(make(), capsys))


def test_session_of_the_dataframe_decides(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    other = spark.newSession()
    other.conf.set(SETTING, "portable")
    df = other.createDataFrame([("a", 1)], "a string, b int")
    for _ in setting(spark, SETTING, "quick"):
        assert "hive-hash" not in plan(with_routing(df, ["a", "b"], 128, 3), capsys)
    for _ in setting(other, SETTING, "quick"):
        with pytest.raises(InvalidValueError, match="must be one of auto, fast, portable"):
            with_routing(df, "a", 128, 3)


# --- expressions in expressions, which Spark Connect bounds ----------------------------------


def calls(column: Any, count: int) -> Any:
    for _ in range(count):
        column = F.coalesce(column)
    return column


FLAT: list[tuple[KeyType, str, Any]] = [
    (INT, "int", 7),
    (STRING, "string", "h\u00e9llo"),
    (DOUBLE, "double", -1.5),
    (BIG_DEC, "decimal(38,18)", Decimal("12345678901.000000000000000001")),
    (LOCAL_DATE_TIME, "timestamp_ntz", dt.datetime(2024, 2, 29, 1, 2, 3, 4)),
    (SQL_ROW("DECIMAL(38,18)"), "decimal(38,18)", Decimal("1.000000000000000001")),
    (TUPLE(STRING, DOUBLE), "struct<a:string,b:double>", ("a", 0.5)),
    (PYFLINK(LIST(STRING)), "array<string>", ["a", None]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("key_type", "ddl", "key"), FLAT, ids=[ddl for _, ddl, _ in FLAT])
def test_deep_expressions(spark: SparkSession, key_type: KeyType, ddl: str, key: Any) -> None:
    """A key some calls deep, and some calls around what we make of it."""
    df = spark.createDataFrame([(key,)], f"key {ddl}")
    columns: list[Any] = ["key"]
    if isinstance(key_type, TUPLE):
        columns = [["key.a", "key.b"]]
    elif not isinstance(key_type, PYFLINK):
        columns += [calls(F.col("key"), 4), calls(F.col("key"), 20)]
    one = (key,) if isinstance(key_type, SQL_ROW) else key
    expected = keygroups.assign_key_to_parallel_operator(one, 1000, 7, key_type)
    found = [
        calls(KF.assign_key_to_parallel_operator(column, 1000, 7, key_type), 15)
        for column in columns
    ]
    assert spark.createDataFrame([(key,)], f"key {ddl}").select(*found).first() == (
        expected,
    ) * len(found)
    rows = with_routing(df, columns[-1], 1000, 7, key_type).select("subtask").collect()
    assert rows == [(expected,)]


@pytest.mark.long
@pytest.mark.parametrize("depth", first_by_default(1, [45, 60, 40, 44, 46, 47, 48, 400]))
def test_key_too_deep(spark: SparkSession, depth: int) -> None:
    """The answer, or an error whose advice helps."""
    if not is_remote() and depth > 60:
        pytest.skip("deeper than Spark itself analyses")
    df = spark.createDataFrame([("A",)], "a string")
    key = calls(F.col("a"), depth)

    def route(df: DataFrame, key: Any) -> list[list[Any]]:
        bare = df.select(KF.assign_key_to_parallel_operator(key, 128, 3, STRING))
        routed = with_routing(df, key, 128, 3).select("subtask")
        placed = repartition_by_subtask(df, key, 128, 3).select(F.spark_partition_id())
        return [frame.collect() for frame in (bare, routed, placed)]

    try:
        found = route(df, key)
    except InvalidValueError as error:
        text = str(error)
        found = []
    if not found:
        assert is_remote()
        assert depth > 44
        assert "df.withColumn()" in text
        if depth > 47:
            return  # Spark itself takes no more
        found = route(df.withColumn("deep", key), "deep")
    assert found == [[(2,)]] * 3


NAMES = ["x0", "X1", "key", "c0", "a b", "a`b", "x.y", "${x}", "\u00e9", "1", "select"]


@pytest.mark.slow
def test_names_of_columns(spark: SparkSession, backend: None) -> None:
    """Whatever a column is called, and however its expression is sent, it is that column."""
    keys = [Decimal("1.50"), Decimal("-12345678901234567890.25"), None]
    # A key of its own in each column, so that none is taken for another.
    moved = {name: [key and key + i for key in keys] for i, name in enumerate(NAMES)}
    schema = T.StructType([T.StructField(name, T.DecimalType(38, 2)) for name in NAMES])
    df = spark.createDataFrame(list(zip(*moved.values())), schema)
    for write in (str, F.col, df.__getitem__):
        quoted = ("`" + name.replace("`", "``") + "`" for name in NAMES)
        groups = [KF.assign_to_key_group([write(name)], 1000, ROW(BIG_DEC)) for name in quoted]
        found = zip(*df.select(groups).collect())
        for name, column, own in zip(NAMES, found, moved.values(), strict=True):
            assert list(column) == [
                keygroups.assign_to_key_group((key,), 1000, ROW(BIG_DEC)) for key in own
            ], name


# --- bad input -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key_type", "ddl"),
    [
        (INT, "bigint"),
        (INT, "string"),
        (LONG, "int"),
        (STRING, "int"),
        (STRING, "binary"),
        (DOUBLE, "float"),
        (BIG_DEC, "double"),
        (LOCAL_DATE, "timestamp"),
        (INSTANT, "timestamp_ntz"),
        (LIST(INT), "array<bigint>"),
        (LIST(INT), "int"),
        (TUPLE(INT), "bigint"),
    ],
    ids=str,
)
def test_column_of_another_type_fails_in_analysis(
    spark: SparkSession, backend: None, key_type: KeyType, ddl: str
) -> None:
    df = spark.sql(f"select cast(null as {ddl}) as key")
    with pytest.raises(AnalysisException):
        _ = df.select(KF.hash_code("key", key_type)).schema


def test_nanoseconds_are_refused(spark: SparkSession, backend: None) -> None:
    """Of a timestamp of more than 6 digits Spark's functions would give the microseconds."""
    name = "spark.sql.timestampNanosTypes.enabled"
    if not spark.conf.isModifiable(name):
        pytest.skip("this Spark has no nanoseconds")
    key_types = [LOCAL_DATE_TIME, SQL_ROW("TIMESTAMP(9)"), SQL_ROW("INT", "TIMESTAMP(6)")]
    for _ in setting(spark, name, "true"):
        text = "2024-01-01 00:00:00.123456789"
        df = spark.sql(f"SELECT CAST('{text}' AS timestamp_ntz(9)) AS key, 1 AS i")
        for key_type in key_types:
            key = ["i", "key"] if str(key_type).count(",") else "key"
            with pytest.raises(AnalysisException, match=r"(?i)takes .* not .*timestamp_ntz\(9"):
                df.select(KF.hash_code(key, key_type)).collect()
        with pytest.raises(AnalysisException, match=r"(?i)takes .* not .*timestamp_ntz\(9"):
            df.select(KF.hash_code(F.array("key"), LIST(LOCAL_DATE_TIME))).collect()
        for key_type in (INSTANT, SQL_TIMESTAMP("UTC"), SQL_ROW("TIMESTAMP_LTZ(9)")):
            column = F.expr(f"CAST('{text}' AS timestamp_ltz(9))")
            with pytest.raises(AnalysisException, match=r"(?i)takes .* not .*timestamp_ltz\(9"):
                df.select(KF.hash_code(column, key_type)).collect()


def test_column_of_another_type_is_named(spark: SparkSession, backend: None) -> None:
    """Word for word, and with nothing of formats or numbers around."""
    with pytest.raises(AnalysisException) as raised:
        _ = spark.range(1).select(KF.hash_code("id", INT)).schema
    assert "`key type INT takes a column of type int not bigint`" in str(raised.value)
    assert "FORMAT" not in str(raised.value).upper()


def test_key_group_out_of_range_fails(spark: SparkSession) -> None:
    df = spark.createDataFrame([(128,)], "kg int")
    with pytest.raises(QUERY_FAILS, match="key_group_id must be from 0 to 127, got 128"):
        df.select(KF.compute_operator_index_for_key_group(128, 3, "kg")).collect()


def test_uuid_that_is_none_fails(spark: SparkSession) -> None:
    df = spark.createDataFrame([("not-a-uuid",)], "key string")
    with pytest.raises(QUERY_FAILS, match="canonical text, got not-a-uuid"):
        df.select(KF.hash_code("key", UUID)).collect()


@pytest.mark.parametrize(
    "key_type", [CHAR, BIG_INT, LOCAL_TIME, SQL_TIME("UTC"), SET(INT), MAP(INT, INT)], ids=repr
)
def test_key_type_without_expression(spark: SparkSession, key_type: KeyType) -> None:
    with pytest.raises(UnsupportedKeyTypeError, match="has no column expression"):
        KF.hash_code("key", key_type)
    with pytest.raises(UnsupportedKeyTypeError, match="has no column expression"):
        KF.hash_code(["a", "b"], TUPLE(INT, key_type))


def test_arguments_are_checked_when_the_expression_is_built(spark: SparkSession) -> None:
    calls: list[Any] = [
        lambda: KF.hash_code("key", "STRING"),  # type: ignore[arg-type]
        lambda: KF.hash_code("key", str),  # type: ignore[arg-type]
        lambda: KF.hash_code(5, INT),  # type: ignore[arg-type]
        lambda: KF.hash_code(["a", "b"], INT),
        lambda: KF.hash_code(["a"], TUPLE(INT, INT)),
        lambda: KF.hash_code("a", TUPLE(INT, INT)),
        lambda: KF.hash_code([], INT),
        lambda: KF.murmur_hash(None),  # type: ignore[arg-type]
        lambda: KF.hash_code("*", STRING),
        lambda: KF.murmur_hash("t.*"),
        lambda: KF.hash_code("\ud800", STRING),
        lambda: KF.hash_code(in_itself(), STRING),
        lambda: KF.key_for_subtask("n", 128, 4, STRING, prefix="\ud800"),
    ]
    for call in calls:
        with pytest.raises(KeyGroupsError):
            call()
    for mp in (0, 32769, True, "128", INT):
        with pytest.raises(ParallelismError, match="max_parallelism must be"):
            KF.assign_to_key_group("key", mp, INT)  # type: ignore[arg-type]
        with pytest.raises(ParallelismError, match="max_parallelism must be"):
            KF.compute_key_group_for_key_hash("code", mp)  # type: ignore[arg-type]
    for p in (0, 129, True, 2.0, INT):
        with pytest.raises(ParallelismError, match="parallelism must be"):
            KF.assign_key_to_parallel_operator("key", 128, p, INT)  # type: ignore[arg-type]
        with pytest.raises(ParallelismError, match="parallelism must be"):
            KF.compute_operator_index_for_key_group(128, p, "kg")  # type: ignore[arg-type]


def test_names_are_those_of_the_core() -> None:
    others = {"ColumnOrName", "Key", "key_for_subtask", "partition_for_key"}
    assert set(KF.__all__) - others <= set(keygroups.__all__)
