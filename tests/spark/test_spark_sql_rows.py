"""Keys of Flink SQL and PyFlink on columns: the same as the core's, and what is refused."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from py4j.clientserver import ClientServerConnection
from py4j.java_gateway import GatewayConnection
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote
from support.inside.adapter import (
    SETTING,
    KeyColumn,
    Portable,
    SqlFunctions,
    SqlText,
    hash_key,
)
from support.selections import first_by_default
from support.spark.spark_backends import ONE_BACKEND, skip_without

from keygroups import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    UnsupportedKeyTypeError,
    assign_to_key_group,
    hash_code,
)
from keygroups.spark import functions as KF
from keygroups.spark import infer_sql_row, with_routing
from keygroups.types import BIG_DEC, INT, LIST, LONG, PYFLINK, ROW, SQL_ROW, STRING, TUPLE, KeyType

SPARK_ERRORS = (PySparkException, Py4JJavaError)  # the latter up to 3.5


@pytest.fixture(params=ONE_BACKEND)
def backend(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    skip_without(request.param)
    spark.conf.set(SETTING, request.param)
    yield
    spark.conf.unset(SETTING)


# Hashes from Flink 2.3.0's planner: lines of tests/vectors, whose
# every line the core is held to.
@pytest.mark.long
def test_the_core_agrees(spark: SparkSession, backend: None, ansi: None) -> None:
    rows: list[tuple[Any, ...]] = [
        (1, "a", Decimal("1.50"), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)),
        (-(2**63), "longer than seven", Decimal("-99999999999999.99"), dt.datetime(2024, 2, 29)),
        (None, None, None, None),
        (0, "", Decimal("0.00"), dt.datetime(1582, 10, 4, 1, 2, 3, 4)),
    ]
    df = spark.createDataFrame(rows, "n bigint, s string, d decimal(16,2), t timestamp_ntz")
    key_type = SQL_ROW("BIGINT", "VARCHAR(20)", "DECIMAL(20, 3)", "TIMESTAMP(6)")
    routed = with_routing(df, ["n", "s", "d", "t"], 128, 5, key_type)
    found = [row["key_group"] for row in routed.collect()]
    assert found == [assign_to_key_group(row, 128, key_type) for row in rows]


def test_one_column_is_one_field(spark: SparkSession, backend: None) -> None:
    df = spark.createDataFrame([(1,), (None,)], "id int")
    # binaryrow.jsonl: hash of 1; the null key of a SQL row is a key like any other.
    codes = df.select(KF.hash_code("id", SQL_ROW("INT"))).collect()
    assert [row[0] for row in codes] == [1465514398, hash_code((None,), SQL_ROW("INT"))]


def test_a_struct_is_its_fields(spark: SparkSession, backend: None) -> None:
    df = spark.createDataFrame([((1, "a"),), (None,)], "key struct<id: bigint, name: string>")
    key_type = SQL_ROW("BIGINT", "STRING")
    [found, null] = with_routing(df, "key", 128, 5, key_type).collect()
    assert found["key_group"] == assign_to_key_group((1, "a"), 128, key_type)
    assert null["key_group"] is None


@pytest.mark.parametrize(
    ("key_type", "columns"),
    [
        (SQL_ROW("ROW<a INT, b INT>", "INT"), ["ba", "n"]),
        (ROW(INT, INT, names=["a", "b"]), "ba"),
        (TUPLE(INT, INT), "swapped"),
        (SQL_ROW("INT", "INT"), "swapped"),
        (LIST(TUPLE(INT, INT)), "list"),
    ],
    ids=str,
)
def test_fields_of_a_struct_in_another_order(
    spark: SparkSession, key_type: KeyType, columns: Any
) -> None:
    """Their places would make them others than their names say."""
    df = spark.createDataFrame(
        [((1, 2), (1, 2), [(1, 2)], 3)],
        "ba struct<b: int, a: int>, swapped struct<f1: int, f0: int>, "
        "list array<struct<f1: int, f0: int>>, n int",
    )
    with pytest.raises(
        InvalidTypeError, match=r"in the order (a, b, got b, a|f0, f1, got f1, f0)"
    ):
        with_routing(df, columns, 128, 5, key_type)


def test_fields_of_a_struct_of_other_names(spark: SparkSession) -> None:
    df = spark.createDataFrame([((1, 2),)], "key struct<b: int, a: int>")
    for key_type in (TUPLE(INT, INT), SQL_ROW("INT", "INT")):
        [found] = with_routing(df, "key", 128, 5, key_type).collect()
        assert found["key_group"] == assign_to_key_group((1, 2), 128, key_type)


@pytest.mark.long
def test_many_fields_with_bytes_apart(spark: SparkSession, backend: None) -> None:
    texts = [None, "", "short", "seven_7", "eight__8", "\u00e4\u00f6\u00fc\u4e2d\u6587", "x" * 40]
    numbers = [None, Decimal("-12345678901234567890123.45"), Decimal("0.07")]
    kinds: dict[str, tuple[str, list[Any]]] = {
        "STRING": ("string", texts),
        "VARCHAR(40) NOT NULL": ("string", texts[1:]),
        "DECIMAL(30, 2)": ("decimal(30,2)", numbers),
        "BIGINT": ("bigint", [None, 1, -(2**63)]),
        "TIMESTAMP(6)": ("timestamp_ntz", [None, dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)]),
        "BYTES": ("binary", [None, b"", b"\x00\x80" * 5]),
    }
    fields = list(kinds) * 3
    schema = ", ".join(f"c{i} {kinds[field][0]}" for i, field in enumerate(fields))
    keys = [
        tuple(kinds[field][1][(row + i) % len(kinds[field][1])] for i, field in enumerate(fields))
        for row in range(7)
    ]
    df = spark.createDataFrame(keys, schema)
    key_type = SQL_ROW(*fields)
    codes = df.select(KF.hash_code(df.columns, key_type)).collect()
    assert [row[0] for row in codes] == [hash_code(key, key_type) for key in keys]


@pytest.mark.parametrize(
    "field",
    [
        "STRING",
        "CHAR(5) NOT NULL",
        "DECIMAL(30, 2)",
        "TIMESTAMP(9)",
        "INT",
        "DOUBLE",
        "ARRAY<STRING>",
        "BYTES",
    ],
)
def test_expressions_grow_with_the_fields(field: str) -> None:
    """Texts of SQL, which have a character for each node and more, and need no session."""

    def size(count: int) -> int:
        texts: list[Any] = [SqlText(f"c{i:03d}") for i in range(count)]
        columns = [KeyColumn(text, text.text, None) for text in texts]
        code: Any = hash_key(Portable(SqlFunctions()), columns, SQL_ROW(*[field] * count))[0]
        return len(code.text)

    assert size(96) < 2.02 * size(48)
    assert size(48) < 48 * 20_000


@pytest.mark.long
@pytest.mark.skipif(is_remote(), reason="Spark Connect makes no calls for a column")
def test_calls_of_the_jvm_grow_little_with_the_fields(
    spark: SparkSession, backend: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if spark.conf.get(SETTING) == "arrow":
        pytest.skip("a UDF's expressions are not made of bare columns")
    calls: list[str] = []
    for connection in (GatewayConnection, ClientServerConnection):
        send: Any = connection.send_command

        def counted(self: Any, command: str, send: Any = send) -> Any:
            if not command.startswith("m\n"):  # An object of the JVM is forgotten.
                calls.append(command)
            return send(self, command)

        monkeypatch.setattr(connection, "send_command", counted)

    def count(fields: int) -> int:
        calls.clear()
        KF.hash_code([f"c{i}" for i in range(fields)], SQL_ROW(*["STRING"] * fields))
        return len(calls)

    count(30)  # The first time makes the backend too.
    assert count(50) - count(30) <= 20 * 35


@pytest.mark.skipif(is_remote(), reason="the server has the plan")
def test_plans_grow_little_with_the_fields(spark: SparkSession, backend: None) -> None:
    """A column more is six expressions more in the plan that Spark has analysed, or fewer."""
    if spark.conf.get(SETTING) == "arrow":
        pytest.skip("a UDF is one expression")

    def nodes(tree: Any) -> int:
        children = tree.children()
        return 1 + sum(nodes(children.apply(i)) for i in range(children.size()))

    def count(fields: int) -> int:
        row = spark.range(1).selectExpr(*(f"cast(id AS string) AS c{i}" for i in range(fields)))
        rows: Any = row.select(KF.hash_code(row.columns, SQL_ROW(*["STRING"] * fields)))
        return nodes(rows._jdf.queryExecution().analyzed().expressions().apply(0))

    assert count(50) - count(30) <= 20 * 6


def test_the_type_of_one_of_many_columns(spark: SparkSession, backend: None) -> None:
    """One check is for all columns of a type; it names those that there are."""
    fields = ["STRING"] * 9 + ["DECIMAL(5, 2)"] * 2
    texts = [f"'{i}' AS c{i}" for i in range(9)]
    rest = "cast(2.5 AS decimal(5,2)) AS e"
    right = spark.sql(f"SELECT {', '.join(texts)}, 1.25BD AS d, {rest}")
    wrong = spark.sql(
        f"SELECT {', '.join(texts[1:])}, 7L AS c0, cast(1 AS decimal(5,2)) d, {rest}"
    )
    key = [*(f"c{i}" for i in range(9)), "d", "e"]
    with pytest.raises(PySparkException, match=r"(?i)type string not bigint; string"):
        _ = wrong.select(KF.hash_code(key, SQL_ROW(*fields))).schema
    with pytest.raises(PySparkException, match=r"(?i)type decimal\(5,2\) not decimal\(3,2\)"):
        _ = right.select(KF.hash_code(key, SQL_ROW(*fields))).schema
    right = right.withColumn("d", right["d"].cast("decimal(5,2)"))
    values = (*map(str, range(9)), Decimal("1.25"), Decimal("2.50"))
    code = hash_code(values, SQL_ROW(*fields))
    assert right.select(KF.hash_code(key, SQL_ROW(*fields))).first() == (code,)


@pytest.mark.slow
def test_more_null_bits_than_one_word(spark: SparkSession, backend: None) -> None:
    key = tuple(None if i % 3 else i for i in range(60))
    names = [f"c{i}" for i in range(60)]
    df = spark.createDataFrame([key], ", ".join(f"{name} int" for name in names))
    key_type = SQL_ROW(*["INT"] * 60)
    assert df.select(KF.hash_code(list(names), key_type)).collect()[0][0] == hash_code(
        key, key_type
    )


@pytest.mark.parametrize(
    "spark_type", first_by_default(1, ["array<string>", "array<int>", "array<boolean>"])
)
def test_arrays_of_any_length(spark: SparkSession, backend: None, spark_type: str) -> None:
    if is_remote() and spark_type != "array<string>":
        pytest.skip("slow to analyse there, and one says enough")
    element = {"array<int>": 7, "array<string>": "longer than 7", "array<boolean>": True}
    arrays = [[element[spark_type] if i % 2 else None for i in range(n)] for n in (0, 1, 32, 70)]
    df = spark.createDataFrame([(array,) for array in arrays], f"a {spark_type}")
    key_type = infer_sql_row(df, "a")
    routed = with_routing(df, "a", 1000, 1, key_type).collect()
    found = [row["key_group"] for row in routed]
    assert found == [assign_to_key_group((array,), 1000, key_type) for array in arrays]


SLOW = pytest.mark.slow
FIXED: dict[str, tuple[str, list[Any]]] = {
    "BOOLEAN": ("boolean", [None, True, False]),
    "TINYINT": ("tinyint", [0, None, -128]),
    "SMALLINT": ("smallint", [-1, 2**15 - 1, None]),
    "INT": ("int", [None, -(2**31), 2**31 - 1]),
    "BIGINT": ("bigint", [-1, None, -(2**63), 2**32]),
    "FLOAT": ("float", [-0.0, 1.5, None]),
    "DOUBLE": ("double", [None, -0.0, 5e-324, float("-inf")]),
    "DATE": ("date", [dt.date(1, 1, 1), None, dt.date(9999, 12, 31)]),
    "DECIMAL(18, 2)": ("decimal(18,2)", [Decimal("-9999999999999999.99"), Decimal(0), None]),
    "TIMESTAMP(3)": ("timestamp_ntz", [None, dt.datetime(1969, 12, 31, 23, 59, 59, 999_000)]),
    "TIMESTAMP_LTZ(3)": ("timestamp", [dt.datetime(1900, 1, 1, tzinfo=dt.timezone.utc), None]),
}
INLINE = {"CHAR(1)": ("string", ["\u20ac", None, "", "a"]), "STRING": ("string", ["x" * 8, None])}
# Portable words go to four fields, fast ones to 16, writing in place to some 48.
MIXED = [
    ["BOOLEAN", "TINYINT", "SMALLINT", "INT"],
    ["BIGINT", "FLOAT", "DOUBLE", "DATE"],
    ["DECIMAL(18, 2)", "TIMESTAMP(3)", "TIMESTAMP_LTZ(3)"],
    ["INT", "BIGINT", "BOOLEAN", "DATE", "DOUBLE"],
    ["BIGINT"] * 16,
    ["INT"] * 17,
    ["CHAR(1)", "BIGINT", "STRING"],
]


@SLOW
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "interpreted"])
def test_rows_of_every_width(
    spark: SparkSession, backend: None, ansi: None, compiled: bool
) -> None:
    spark_types = FIXED | INLINE
    names, codes, lines = [], [], []
    for number, types in enumerate(MIXED):
        columns = [f"c{number}_{index}" for index in range(len(types))]
        names += [f"{c} {spark_types[name][0]}" for c, name in zip(columns, types)]
        key_type = SQL_ROW(*types)
        codes.append(KF.hash_code(list(columns), key_type))
        values = [spark_types[name][1] for name in types]
        # The values go on at another step in each column.
        keys = [tuple(v[(i + n) % len(v)] for n, v in enumerate(values)) for i in range(12)]
        lines.append([(key, hash_code(key, key_type)) for key in keys])
    rows = [tuple(value for key, _ in row for value in key) for row in zip(*lines)]
    settings = {
        "spark.sql.codegen.wholeStage": str(compiled).lower(),
        "spark.sql.codegen.factoryMode": "CODEGEN_ONLY" if compiled else "NO_CODEGEN",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        found = spark.createDataFrame(rows, ", ".join(names)).select(codes).collect()
    finally:
        for name in settings:
            spark.conf.unset(name)
    for row, wanted in zip(found, zip(*lines)):
        assert list(row) == [code for _, code in wanted]


def test_words_that_rotate_to_themselves(spark: SparkSession, backend: None) -> None:
    """Words for which what is rotated has no bit set or all, which a remainder may confuse."""
    mask, first, second, plus = 2**32 - 1, 0xCC9E2D51, 0x1B873593, 0xE6546B64

    def rotated(number: int, bits: int) -> int:
        return (number << bits | number >> (32 - bits)) & mask

    def after(state: int, word: int) -> int:
        scrambled = rotated(word * first & mask, 15) * second & mask
        return rotated(state ^ scrambled, 13) * 5 + plus & mask

    def between(before: int, state: int) -> int:
        scrambled = before ^ rotated((state - plus) * pow(5, -1, 2**32) & mask, 19)
        product = rotated(scrambled * pow(second, -1, 2**32) & mask, 17)
        return product * pow(first, -1, 2**32) & mask

    def words(state: int) -> list[int]:
        products = [end * pow(first, -1, 2**32) & mask for end in (0, mask)]
        return [*products, *(between(state, end * 5 + plus & mask) for end in (0, mask))]

    header = after(after(42, 0), 0)
    keys = []
    for low in words(header):
        state = after(header, low)
        # The last state goes back to a word of 4 bytes with the same hash; the row has 16.
        back = [rotated(end * factor & mask, 13) for end in (0, mask) for factor in (1, second)]
        ends = [(number * 5 + plus & mask) ^ 16 ^ 4 for number in back]
        for high in [*words(state), *(between(state, end) for end in ends)]:
            keys.append((high << 32 | low) - (high >> 31 << 64))
    df = spark.createDataFrame([(key,) for key in keys], "id bigint")
    found = df.select("id", KF.hash_code("id", SQL_ROW("BIGINT"))).collect()
    assert [tuple(row) for row in found] == [(k, hash_code((k,), SQL_ROW("BIGINT"))) for k in keys]


@pytest.mark.slow
def test_rows_that_begin_alike(spark: SparkSession, backend: None) -> None:
    """Spark computes what they have in common once; a buffer that is changed it must not be."""
    keys = [tuple(range(17)), tuple(None if i % 3 else -i for i in range(17))]
    names = [f"c{i}" for i in range(17)]
    df = spark.createDataFrame(keys, ", ".join(f"{name} int" for name in names))
    key_type = SQL_ROW(*["INT"] * 17)
    orders = [names, names[:1] + names[:0:-1], names]
    codes = [KF.hash_code(list(order), key_type) for order in orders]
    for row, key in zip(df.select(codes).collect(), keys):
        ordered = [key, key[:1] + key[:0:-1], key]
        assert list(row) == [hash_code(fields, key_type) for fields in ordered]


def test_one_stage_without_python(
    spark: SparkSession, backend: None, capsys: pytest.CaptureFixture[str]
) -> None:
    df = spark.range(3).selectExpr("id", "int(id) AS n", "string(id) AS name")
    keys = {
        "MurmurHash3": (["n", "id"], SQL_ROW("INT", "BIGINT")),
        "ByteBuffer": (["id", "name"], SQL_ROW("BIGINT", "STRING")),
    }
    setting = spark.conf.get(SETTING)
    if setting == "arrow":
        pytest.skip("an Arrow UDF is Python")
    for called, (columns, key_type) in keys.items():
        with_routing(df, list(columns), 128, 3, key_type).explain("formatted")
        shown = capsys.readouterr().out
        stages = re.findall(r"^\(\d+\) .*codegen id : (\d+)", shown, re.M)
        assert len(stages) > 1
        assert stages == ["1"] * len(re.findall(r"^\(\d+\) ", shown, re.M)), shown
        assert "Python" not in shown
        assert (called in shown) is (setting == "fast"), shown


PYFLINK_KEYS: list[tuple[KeyType, str, Any]] = [
    (STRING, "string", "a"),
    (LONG, "bigint", -5),
    (BIG_DEC, "decimal(10,2)", Decimal("1.50")),
    (TUPLE(INT, STRING), "struct<a: int, b: string>", (1, None)),
    (ROW(INT, LIST(STRING)), "struct<a: int, b: array<string>>", (1, ["x", None])),
    (LIST(INT), "array<int>", [1, None]),
]


@pytest.mark.long
@pytest.mark.parametrize(("key_type", "spark_type", "key"), PYFLINK_KEYS, ids=str)
def test_pyflink(
    spark: SparkSession, backend: None, key_type: KeyType, spark_type: str, key: Any
) -> None:
    df = spark.createDataFrame([(key,), (None,)], f"key {spark_type}")
    rows = with_routing(df, "key", 1000, 5, PYFLINK(key_type)).collect()
    expected = [assign_to_key_group(k, 1000, PYFLINK(key_type)) for k in (key, None)]
    assert [row["key_group"] for row in rows] == expected


def test_infer_sql_row(spark: SparkSession) -> None:
    df = spark.sql(
        "SELECT true a, 1Y b, 1S c, 1 d, 1L e, 1F f, 1D g, 'x' h, X'00' i, DATE'2024-01-01' j, "
        "TIMESTAMP_NTZ'2024-01-01 00:00:00' k, TIMESTAMP_LTZ'2024-01-01 00:00:00' l, 1.50 m, "
        "named_struct('x', 1, 'y', array('z')) n"
    )
    assert infer_sql_row(df, list(df.columns)) == SQL_ROW(
        *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"),
        *("STRING", "BYTES", "DATE"),
        *("TIMESTAMP(6)", "TIMESTAMP_LTZ(6)", "DECIMAL(3, 2)", "ROW<INT, ARRAY<STRING>>"),
    )
    with pytest.raises(UnsupportedKeyTypeError, match=r"column m of type map<int,int>"):
        infer_sql_row(spark.sql("SELECT map(1, 2) m"), "m")
    with pytest.raises(InvalidValueError, match="nested list"):
        infer_sql_row(df, [["a", "b"]])


REFUSED: list[tuple[str, KeyType, type[KeyGroupsError], str]] = [
    ("'x' AS key", SQL_ROW("INT"), InvalidTypeError, "INT of SQL_ROW takes a column of type int"),
    ("1L AS key", SQL_ROW("INT"), InvalidTypeError, "key is bigint"),
    ("1 AS key", SQL_ROW("INT", "INT"), InvalidValueError, "SQL_ROW.* must be 2 columns, got 1"),
    ("1 AS key", SQL_ROW("TIME(3)"), UnsupportedKeyTypeError, r"TIME\(3\) of SQL_ROW has no col"),
    ("1.25 AS key", SQL_ROW("DECIMAL(5, 1)"), InvalidTypeError, r"cast it to decimal\(5,1\)"),
    ("1 AS key", SQL_ROW("ROW<INT>"), InvalidTypeError, "type of key is int"),
    ("1 AS key", SQL_ROW("ARRAY<INT>"), InvalidTypeError, "takes a column of type array"),
    ("'x' AS key", PYFLINK(INT), InvalidTypeError, "key type INT takes a column of type int"),
]


@pytest.mark.parametrize(("column", "key_type", "error", "message"), REFUSED, ids=str)
def test_columns_refused(
    spark: SparkSession, column: str, key_type: KeyType, error: type[Exception], message: str
) -> None:
    df = spark.sql(f"SELECT {column}")
    with pytest.raises(error, match=message):
        with_routing(df, "key", 128, 1, key_type)


def test_types_that_only_the_query_knows(spark: SparkSession) -> None:
    df = spark.sql("SELECT 1.25 AS d, 'x' AS s")
    with pytest.raises(PySparkException, match=r"(?i)takes a column of type decimal\(5,2\) not d"):
        df.select(KF.hash_code("d", SQL_ROW("DECIMAL(5, 2)"))).collect()
    assert df.select(KF.hash_code("d", SQL_ROW("DECIMAL(3, 2)"))).collect()[0][0] == hash_code(
        (Decimal("1.25"),), SQL_ROW("DECIMAL(3, 2)")
    )
    with pytest.raises(InvalidTypeError, match="type of 's' is not known"):
        KF.hash_code("s", SQL_ROW("ROW<INT>"))
    with pytest.raises(InvalidValueError, match="INT of SQL_ROW must be one column, got a list"):
        KF.hash_code([["d", "s"], "s"], SQL_ROW("INT", "STRING"))
    with pytest.raises(InvalidValueError, match="ARRAY<INT> of SQL_ROW must be one column"):
        KF.hash_code([["d", "s"], "s"], SQL_ROW("ARRAY<INT>", "STRING"))


def test_a_nested_row_as_a_list_of_columns(spark: SparkSession, backend: None) -> None:
    df = spark.createDataFrame([(1, "a")], "id int, name string")
    key_type = SQL_ROW("ROW<INT, STRING>", "INT")
    found = df.select(KF.hash_code([["id", "name"], "id"], key_type)).collect()
    assert found[0][0] == hash_code(((1, "a"), 1), key_type)


# The second one of two messages is that of arrays, on the backend `arrow`.
VALUES_REFUSED: list[tuple[str, KeyType, str]] = [
    (
        "'abcd'",
        SQL_ROW("VARCHAR(3)"),
        r"VARCHAR\(3\) must (not be longer, got length|have at most 3 characters, got) 4",
    ),
    ("X'0102'", SQL_ROW("BINARY(1)"), "got length 2|at most 1 bytes, got 2"),
    ("CAST(NULL AS INT)", SQL_ROW("INT NOT NULL"), "must not be null|must not be None"),
    (
        "TIMESTAMP_NTZ'2024-01-01 00:00:00.001'",
        SQL_ROW("TIMESTAMP(2)"),
        "at most 2 digits of a fraction of a second",
    ),
    (
        "TIMESTAMP_LTZ'2024-01-01 00:00:00.000001'",
        SQL_ROW("TIMESTAMP_LTZ(3)"),
        "at most 3 digits of a fraction of a second",
    ),
]


@pytest.mark.parametrize(("value", "key_type", "message"), VALUES_REFUSED, ids=str)
def test_values_refused(
    spark: SparkSession, backend: None, value: str, key_type: KeyType, message: str
) -> None:
    df = spark.range(2).select(F.expr(value).alias("key"))
    with pytest.raises(SPARK_ERRORS, match=message):
        with_routing(df, "key", 128, 1, key_type).collect()


def test_no_expression_for_pyflinks_timestamps() -> None:
    from keygroups.types import SQL_TIMESTAMP

    with pytest.raises(UnsupportedKeyTypeError, match="has no column expression"):
        KF.hash_code(F.col("t"), PYFLINK(SQL_TIMESTAMP("UTC")))
