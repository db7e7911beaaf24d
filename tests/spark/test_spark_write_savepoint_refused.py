"""DataFrames that make no savepoint: refused with the reason, and nothing is left of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from support.inside.columns import StateColumns, WideRows
from support.inside.serializers import (
    BigDecSerializer,
    KryoSerializer,
    ListSerializer,
    PojoSerializer,
)
from support.selections import first_by_default

from keygroups import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    ParallelismError,
    UnsupportedKeyTypeError,
)
from keygroups.savepoint import (
    SavepointWriter,
    ValueStateDescriptor,
)
from keygroups.spark import (
    KeyedState,
    ListState,
    MapState,
    ValueState,
    write_savepoint,
)
from keygroups.spark import functions as KF
from keygroups.spark import savepoint as spark_savepoint
from keygroups.spark.functions import hash_code
from keygroups.state_keys import serializer_of
from keygroups.types import (
    CHAR,
    DOUBLE,
    INT,
    LIST,
    LOCAL_DATE,
    LOCAL_TIME,
    LONG,
    ROW,
    STRING,
    TUPLE,
    UUID,
)

pa: Any = pytest.importorskip("pyarrow")

QUERY_FAILS = (PySparkException, Py4JJavaError)
PAIR = PojoSerializer("a.Pair", ["m", "n"], [serializer_of(LONG), serializer_of(LONG)])


def refused(
    folder: Path, run: Callable[[], object], cls: type[Exception] = InvalidValueError
) -> str:
    """Return why a call raises an error of a class; nothing may be left of it."""
    before = sorted(folder.iterdir())
    with pytest.raises(KeyGroupsError) as error:
        run()
    assert type(error.value) is cls, error.value
    assert sorted(folder.iterdir()) == before
    assert "\n" not in str(error.value)
    return str(error.value)


def counts(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(list(rows), "user string, n bigint")


def one_task(df: DataFrame) -> DataFrame:
    """Spark 3.5 may give the next task the process of one that was stopped as another failed."""
    return df.coalesce(1)


COUNT = KeyedState(None, "user", STRING, {"count": ValueState("n", LONG)})


def other_each_time(column: str) -> list[KF.ColumnOrName]:
    same = F.udf(lambda text: text, "string", useArrow=False)
    return [same.asNondeterministic()(column)]


REFUSED: dict[str, tuple[type[Exception], str, dict[str, Any]]] = {
    "flink": (
        InvalidValueError,
        "flink must be one of 1.17, .*2.3, got '1.16'",
        {"flink": "1.16"},
    ),
    "parallelism": (ParallelismError, "parallelism .* 128", {"parallelism": 129}),
    "max parallelism": (ParallelismError, "max_parallelism .* 32768", {"max_parallelism": 32769}),
    "no operators": (InvalidValueError, "operators must be at least one", {"operators": {}}),
    "operators": (InvalidTypeError, "operators must be KeyedStates", {"operators": [COUNT]}),
    "no keyed state": (InvalidTypeError, "operators must be KeyedStates", {"operators": {"u": 5}}),
    "no DataFrame": (InvalidTypeError, "df must be a DataFrame, got None", {"df": None}),
    "uid": (InvalidTypeError, "uid must be a str, got 5", {"operators": {5: COUNT}}),
    "empty uid": (InvalidValueError, "uid must be", {"operators": {"": COUNT}}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_arguments_are_refused_by_name(spark: SparkSession, tmp_path: Path, case: str) -> None:
    cls, message, arguments = REFUSED[case]
    valid: dict[str, Any] = {
        "df": counts(spark, ("ann", 7)),
        "path": tmp_path / "s",
        "operators": {"by-user": COUNT},
        "max_parallelism": 128,
        "parallelism": 2,
    }
    found = refused(tmp_path, lambda: write_savepoint(**(valid | arguments)), cls)
    assert re.search(message, found)


def test_a_missing_pyarrow_is_named(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_savepoint, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'keygroups\[arrays\]'"):
        write_savepoint(counts(spark), tmp_path / "s", {"by-user": COUNT}, 128, 2)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    df = counts(spark, ("ann", 7))
    message = refused(
        tmp_path,
        lambda: write_savepoint(df, tmp_path, {"by-user": COUNT}, 128, 2),
        InvalidValueError,
    )
    assert "it is there" in message


UNFIT: dict[str, tuple[type[Exception], str, Callable[[], KeyedState]]] = {
    "key of another type": (
        InvalidTypeError,
        "LONG takes a column of type bigint, but user is string",
        lambda: KeyedState(None, "user", LONG, {"count": ValueState("n", LONG)}),
    ),
    "key of too few columns": (
        InvalidValueError,
        r"TUPLE\(STRING, LONG\) must be 2 columns, got 1",
        lambda: KeyedState(None, "user", TUPLE(STRING, LONG), {"count": ValueState("n", LONG)}),
    ),
    "key without a serializer": (
        UnsupportedKeyTypeError,
        "key_type UUID cannot be written",
        lambda: KeyedState(None, "user", UUID, {"count": ValueState("n", LONG)}),
    ),
    "key of rand()": (
        InvalidValueError,
        "key must be the same each time, got one that is not deterministic",
        lambda: KeyedState(None, F.rand(), DOUBLE, {"count": ValueState("n", LONG)}),
    ),
    "key of uuid()": (
        InvalidValueError,
        "key must be the same each time",
        lambda: KeyedState(None, F.expr("uuid()"), STRING, {"count": ValueState("n", LONG)}),
    ),
    "key of a function that is marked": (
        InvalidValueError,
        "key must be the same each time",
        lambda: KeyedState(
            None, other_each_time("user"), TUPLE(STRING), {"count": ValueState("n", LONG)}
        ),
    ),
    "no states": (
        InvalidValueError,
        "states must be 1 to",
        lambda: KeyedState(None, "user", STRING, {}),
    ),
    "states in a list": (
        InvalidTypeError,
        "states must be by name",
        lambda: KeyedState(None, "user", STRING, [ValueState("n", LONG)]),  # type: ignore[arg-type]
    ),
    "no state": (
        InvalidTypeError,
        "states must be such as ValueState, by name, got 'n'",
        lambda: KeyedState(None, "user", STRING, {"count": "n"}),  # type: ignore[dict-item]
    ),
    "name of a state": (
        InvalidValueError,
        "name of a state must not",
        lambda: KeyedState(None, "user", STRING, {"default": ValueState("n", LONG)}),
    ),
    "value of another type": (
        InvalidTypeError,
        "value of state 'count' of type INT takes a column of type int, but n is bigint",
        lambda: KeyedState(None, "user", STRING, {"count": ValueState("n", INT)}),
    ),
    "value without a serializer": (
        UnsupportedKeyTypeError,
        "value_type UUID cannot be written",
        lambda: KeyedState(None, "user", STRING, {"count": ValueState("n", UUID)}),
    ),
    "value that Spark has as text": (
        UnsupportedKeyTypeError,
        r"no column here holds values of type KRYO\(java.lang.Integer\)",
        lambda: KeyedState(
            None,
            "user",
            STRING,
            {"count": ValueState("n", KryoSerializer("java.lang.Integer"))},
        ),
    ),
    "key without a column": (
        UnsupportedKeyTypeError,
        "key type LOCAL_TIME has no column expression",
        lambda: KeyedState(None, "n", LOCAL_TIME, {"count": ValueState("n", LONG)}),
    ),
    "value of another Serializer": (
        InvalidTypeError,
        "of type BIG_DEC takes a column of type string, but n is bigint",
        lambda: KeyedState(None, "user", STRING, {"count": ValueState("n", BigDecSerializer())}),
    ),
    "row without its kind": (
        InvalidTypeError,
        "takes a column of type struct<f0:bigint,row_kind:string>, but n is bigint",
        lambda: KeyedState(None, "user", STRING, {"r": ValueState("n", serializer_of(ROW(LONG)))}),
    ),
    "list of another type": (
        InvalidTypeError,
        "'tags' of type STRING takes a column of type string or array<string>, but n is bigint",
        lambda: KeyedState(None, "user", STRING, {"tags": ListState("n", STRING)}),
    ),
    "struct of another type": (
        InvalidTypeError,
        "takes a column of type struct<f0:bigint,f1:array<string>>, but n is bigint",
        lambda: KeyedState(
            None, "user", STRING, {"t": ValueState("n", TUPLE(LONG, LIST(STRING)))}
        ),
    ),
    "field of another type": (
        InvalidTypeError,
        "is struct<n:bigint,user:string>: its field user is string, not int",
        lambda: KeyedState(
            None, "user", STRING, {"t": ValueState(F.struct("n", "user"), TUPLE(LONG, INT))}
        ),
    ),
    "fields in another order": (
        InvalidTypeError,
        "is struct<n:bigint,m:bigint>: its field n must be called m",
        lambda: KeyedState(
            None, "user", STRING, {"p": ValueState(F.struct("n", F.col("n").alias("m")), PAIR)}
        ),
    ),
    "fields of elements in another order": (
        InvalidTypeError,
        r"is array<struct<n:bigint,m:bigint>>: its field \[\].n must be called m",
        lambda: KeyedState(
            *(None, "user", STRING),
            {"p": ValueState(F.array(F.struct("n", F.col("n").alias("m"))), ListSerializer(PAIR))},
        ),
    ),
    "numbered fields in another order": (
        InvalidTypeError,
        "is struct<f1:bigint,f0:bigint>: its field f1 must be called f0",
        lambda: KeyedState(
            *(None, "user", STRING),
            {
                "t": ValueState(
                    F.struct(F.col("n").alias("f1"), F.col("n").alias("f0")), TUPLE(LONG, LONG)
                )
            },
        ),
    ),
    "user key of another type": (
        InvalidTypeError,
        "user key of state 'map' of type LONG takes a column of type bigint, but user is string",
        lambda: KeyedState(None, "user", STRING, {"map": MapState("user", "n", LONG, LONG)}),
    ),
    "map of another type": (
        InvalidTypeError,
        "value of state 'map' of types STRING and LONG takes a column of type map<string,bigint>, "
        "but n is bigint",
        lambda: KeyedState(None, "user", STRING, {"map": MapState(None, "n", STRING, LONG)}),
    ),
    "value that is no column": (
        InvalidTypeError,
        "value must be a column or a column name, got 5",
        lambda: KeyedState(None, "user", STRING, {"count": ValueState(5, LONG)}),  # type: ignore[arg-type]
    ),
    "type that is none": (
        InvalidTypeError,
        "value_type must be a key type such as LONG or a Serializer, got 'long'",
        lambda: KeyedState(None, "user", STRING, {"count": ValueState("n", "long")}),  # type: ignore[arg-type]
    ),
    "time of another type": (
        InvalidTypeError,
        "ttl must be a bigint of epoch milliseconds or a timestamp, but user is string",
        lambda: KeyedState(None, "user", STRING, {"count": ValueState("n", LONG)}, "user"),
    ),
}


@pytest.mark.parametrize("case", UNFIT)
def test_columns_that_do_not_fit_are_refused_before_a_job(
    spark: SparkSession, tmp_path: Path, collected: list[int], case: str
) -> None:
    """All of it is found out before a job starts."""
    cls, message, make = UNFIT[case]
    df = counts(spark, ("ann", 7))
    hash_code("user", STRING)  # looks for the fast path, and that runs a query
    collected.clear()
    found = refused(
        tmp_path, lambda: write_savepoint(df, tmp_path / "s", {"u": make()}, 128, 2), cls
    )
    assert re.search(message, found)
    assert collected == []


def test_a_column_that_is_not_there_is_named(spark: SparkSession, tmp_path: Path) -> None:
    keyed = KeyedState(None, "user", STRING, {"count": ValueState("m", LONG)})
    says = "^value of state 'count' must be of df's columns, got 'm': there are user, n"
    with pytest.raises(InvalidValueError, match=says):
        write_savepoint(counts(spark), tmp_path / "s", {"by-user": keyed}, 128, 2)
    assert list(tmp_path.iterdir()) == []


QUERIES: dict[str, tuple[str, str, list[Any], Callable[[], KeyedState]]] = {
    "null key": (
        "key of operator 'u' must not be null, which Flink refuses: pass nulls='drop'",
        "k string, n bigint",
        [("a", 1), (None, 2)],
        lambda: KeyedState(None, "k", STRING, {"count": ValueState("n", LONG)}),
    ),
    "null in a key": (
        r"key of operator 'u', \('a', None\): a LONG must not be None",
        "k string, n bigint",
        [("a", 1), ("a", None)],
        lambda: KeyedState(None, ["k", "n"], TUPLE(STRING, LONG), {"k": ValueState("k", STRING)}),
    ),
    "value twice": (
        "each key must come once, got key 'a' in state 'count' twice",
        "k string, n bigint",
        [("a", 1), ("b", 1), ("a", 2)],
        lambda: KeyedState(None, "k", STRING, {"count": ValueState("n", LONG)}),
    ),
    "list twice": (
        "got key 'a' in state 'tags' twice",
        "k string, tags array<string>",
        [("a", ["x"]), ("b", ["x"]), ("a", ["x"])],
        lambda: KeyedState(
            None, "k", STRING, {"tags": ListState("tags", STRING), "k": ListState("k", STRING)}
        ),
    ),
    "user key twice": (
        "got key 'a' in state 'map' with the user key 'x' twice",
        "k string, u string, n bigint",
        [("a", "x", 1), ("a", "y", 2), ("a", "x", 3)],
        lambda: KeyedState(None, "k", STRING, {"map": MapState("u", "n", STRING, LONG)}),
    ),
    "user key twice in maps": (
        "got key 'a' in state 'map' with the user key 'x' twice",
        "k string, m map<string, bigint>",
        [("a", {"x": 1, "y": 2}), ("b", {"x": 1}), ("a", {"x": 3})],
        lambda: KeyedState(None, "k", STRING, {"map": MapState(None, "m", STRING, LONG)}),
    ),
    "null value in a map column": (
        "key 'a': value of MAP state 'map': value of type LONG must not be None",
        "k string, m map<string, bigint>",
        [("a", {"x": None})],
        lambda: KeyedState(None, "k", STRING, {"map": MapState(None, "m", STRING, LONG)}),
    ),
    "null of a user key": (
        "user key of state 'map' is null for key 'a', and its value is 3",
        "k string, u string, n bigint",
        [("a", "x", 1), ("a", None, 3)],
        lambda: KeyedState(None, "k", STRING, {"map": MapState("u", "n", STRING, LONG)}),
    ),
    "null value in a map": (
        "key 'a': value of MAP state 'map': value of type LONG must not be None",
        "k string, u string, n bigint",
        [("a", "x", None)],
        lambda: KeyedState(None, "k", STRING, {"map": MapState("u", "n", STRING, LONG)}),
    ),
    "null element": (
        "key 'a': value of LIST state 'tags' must not be None",
        "k string, tags array<string>",
        [("a", ["x", None])],
        lambda: KeyedState(None, "k", STRING, {"tags": ListState("tags", STRING)}),
    ),
    "null field": (
        "key 'a': value of VALUE state 't': a INT must not be None",
        "k string, t struct<i:int,s:string>",
        [("a", (None, "x"))],
        lambda: KeyedState(None, "k", STRING, {"t": ValueState("t", TUPLE(INT, STRING))}),
    ),
    "two characters": (
        "key 'a': value of VALUE state 'c': .*CHAR.*'ab'",
        "k string, c string",
        [("a", "ab")],
        lambda: KeyedState(None, "k", STRING, {"c": ValueState("c", CHAR)}),
    ),
    "no last access": (
        "key 'a': last_access must be epoch milliseconds, as the VALUE state 'count' has a time",
        "k string, n bigint, t bigint",
        [("a", 1, None)],
        lambda: KeyedState(None, "k", STRING, {"count": ValueState("n", LONG)}, "t"),
    ),
    "a last access in seconds": (
        "key 'a': last_access must be epoch milliseconds, from .*got 1700000000",
        "k string, n bigint, t bigint",
        [("a", 1, 1_700_000_000)],
        lambda: KeyedState(None, "k", STRING, {"count": ValueState("n", LONG)}, "t"),
    ),
}


@pytest.mark.parametrize("case", first_by_default(2, [*QUERIES]))
def test_rows_that_make_no_state_are_refused_by_the_query(
    spark: SparkSession, tmp_path: Path, case: str
) -> None:
    message, schema, rows, make = QUERIES[case]
    df = one_task(spark.createDataFrame(rows, schema))
    found = refused(tmp_path, lambda: write_savepoint(df, tmp_path / "s", {"u": make()}, 128, 1))
    assert re.search(message, found)


def test_text_that_is_no_utf_8_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.createDataFrame([("a", b"\xff")], "k string, b binary")
    df = one_task(df.select("k", F.col("b").cast("string").alias("s")))
    keyed = KeyedState(None, "k", STRING, {"s": ValueState("s", STRING)})
    message = refused(tmp_path, lambda: write_savepoint(df, tmp_path / "s", {"u": keyed}, 128, 1))
    assert message == "value of state 's' must be UTF-8, got b'\\xff'"


@pytest.mark.slow
def test_a_date_that_python_has_not_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    df = one_task(spark.sql("SELECT 'a' AS k, date_add(DATE'9999-12-31', 1) AS d"))
    keyed = KeyedState(None, "k", STRING, {"d": ValueState("d", LOCAL_DATE)})
    message = refused(tmp_path, lambda: write_savepoint(df, tmp_path / "s", {"u": keyed}, 128, 1))
    assert message == "value of state 'd' must be of the years 1 to 9999, got another"


def test_a_query_that_fails_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """What is wrong with the caller's query is Spark's to say."""
    df = one_task(counts(spark, ("ann", 7)))
    df = df.withColumn("n", F.raise_error(F.lit("no luck")).cast("bigint"))
    with pytest.raises(QUERY_FAILS, match="no luck"):
        write_savepoint(df, tmp_path / "s", {"by-user": COUNT}, 128, 2)
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_is_another_each_time_is_refused(tmp_path: Path) -> None:
    """As of a function of the user's, which Spark calls for the key and for its key group."""
    states = [ValueStateDescriptor("n", LONG)]
    operator = SavepointWriter(tmp_path / "s").add_operator("by-key", STRING, states, 128, 2)
    columns = (StateColumns("n", 3, LONG),)
    encode = WideRows("by-key", operator.task(0), STRING, False, columns)
    names = ["c0", "c1", "c2", "c3"]
    rows = {"c0": [104, 104], "c1": ["A", "B"], "c2": [None, None], "c3": [1, 2]}
    batch = pa.RecordBatch.from_pydict({name: rows[name] for name in names})
    message = "key of operator 'by-key' must be the same each time, got key group 104 and then 'B'"
    for some in (batch, batch.slice(1)):
        with pytest.raises(InvalidValueError, match=f"{message} of key group 17"):
            next(encode([some]))
    assert next(encode([batch.slice(0, 1)])).num_rows == 1
