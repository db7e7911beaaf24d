"""Flink's routing of whole DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from keygroups._checks import (
    check_choice,
    check_max_parallelism,
    check_parallelisms,
    null_key,
    show,
)
from keygroups._values.checks import BYTES
from keygroups.errors import InvalidTypeError, InvalidValueError, UnsupportedKeyTypeError
from keygroups.load import KeyGroupLoad
from keygroups.spark import functions as KF
from keygroups.spark._columns.arguments import (
    check_column,
    check_df,
    check_key_type,
    check_text,
    is_connect,
    map_key,
)
from keygroups.spark._columns.backend import PORTABLE, build
from keygroups.spark._columns.binary_row import SQL_TYPES
from keygroups.spark._columns.key_columns import (
    KeyColumn,
    KeyTree,
    cast_advice,
    simple_type,
    single,
)
from keygroups.spark._columns.key_hash import SPARK_TYPES, hash_key, whole_key
from keygroups.spark._columns.portable import Portable
from keygroups.spark.functions import look_up_key
from keygroups.types import BYTE_BUFFER, HASHED, INT, LIST, SQL_ROW, TUPLE, UUID, KeyType

__all__ = ["infer_key_type", "infer_sql_row", "key_group_load", "rebalance_keys", "with_routing"]
__dir__ = __all__.copy

# UUIDs are text in Spark, and hashes are ints; a column has them only where the caller says so.
_DECLARED = (UUID, BYTE_BUFFER, HASHED)
_INFERRED = {
    spark: key_type for key_type, spark in SPARK_TYPES.items() if key_type not in _DECLARED
}

_NULLS = ("raise", "drop", "null")
_SHOWN = 20  # names of columns in a message


def infer_key_type(df: DataFrame, key: KF.Key) -> KeyType:
    """Return the key type that a DataFrame's schema gives a key column, or several: a TUPLE.

    That is how Java keys a DataStream; for a SQL job see `infer_sql_row`, and Scala's tuples are
    SCALA_TUPLE.

    Raises UnsupportedKeyTypeError for a column whose type holds none.

    >>> infer_key_type(spark.createDataFrame([("a", 1)], "name string, id int"), ["name", "id"])
    TUPLE(STRING, INT)
    """
    return _infer(key_tree(df, key))


def infer_sql_row(df: DataFrame, key: KF.Key) -> SQL_ROW:
    """Propose the SQL_ROW of a DataFrame's key columns: the types a Flink table would have.

    Compare it with the table's DDL, which decides: StringType becomes STRING, BinaryType
    BYTES, TimestampType TIMESTAMP_LTZ(6) and TimestampNTZType TIMESTAMP(6), as Spark says
    nothing of lengths and precisions; a struct becomes a ROW and an array an ARRAY.

    Raises UnsupportedKeyTypeError for a column of a type that no Flink SQL key has.

    >>> df = spark.createDataFrame([(1, "a")], "user_id bigint, item string")
    >>> infer_sql_row(df, ["user_id", "item"])
    SQL_ROW('BIGINT', 'STRING')
    """
    tree = key_tree(df, key)
    fields = [tree] if isinstance(tree, KeyColumn) else tree
    texts = []
    for field in fields:
        if not isinstance(field, KeyColumn) or field.spark_type is None:
            raise InvalidValueError("key must be a column or a list of columns, got a nested list")
        texts.append(_sql_type(field.name, field.spark_type))
    return SQL_ROW(*texts)


def _sql_type(name: str, spark_type: T.DataType) -> str:
    if isinstance(spark_type, T.StructType):
        fields = (_sql_type(f"{name}.{f.name}", f.dataType) for f in spark_type.fields)
        return f"ROW<{', '.join(fields)}>"
    if isinstance(spark_type, T.ArrayType):
        return f"ARRAY<{_sql_type(f'{name}.element', spark_type.elementType)}>"
    if isinstance(spark_type, T.DecimalType):
        return f"DECIMAL({spark_type.precision}, {spark_type.scale})"
    simple = simple_type(spark_type)
    if simple not in SQL_TYPES:
        advice = cast_advice(spark_type) or (
            f"; columns of type {', '.join(SQL_TYPES)}, decimal, struct and array have"
        )
        raise UnsupportedKeyTypeError(
            f"key column {name} of type {spark_type.simpleString()} has no type of Flink SQL that "
            f"makes a key here{advice}"
        )
    return SQL_TYPES[simple]


def with_routing(
    df: DataFrame,
    key: KF.Key,
    max_parallelism: int,
    parallelism: int,
    key_type: KeyType | None = None,
    *,
    nulls: str = "null",
) -> DataFrame:
    """Add the columns `key_group` and `subtask`: where Flink sends each row.

    `key` is a column, its name, or a list of several for a TUPLE, ROW or SQL_ROW;
    1 <= parallelism <= max_parallelism <= 32768. `key_type` None takes the type from the
    schema, which does not tell which API wrote the job: several columns are a TUPLE, as in a
    DataStream of Java. Other jobs send the same key to another subtask, so pass the SQL_ROW of a
    SQL job, as `infer_sql_row` proposes it, for PyFlink PYFLINK and for Scala SCALA_TUPLE or
    CASE_CLASS. `nulls` says what becomes of a null key, as `keygroups.spark` has it: "null" in
    both columns, "drop", or "raise", with which a query for either column fails.

    Raises ParallelismError; UnsupportedKeyTypeError and InvalidTypeError for a column
    that does not hold its key type; InvalidValueError if `df` has no such column as the key's, or
    has one of those that are added.

    >>> df = spark.createDataFrame([("A",), ("B",)], "letter string")
    >>> with_routing(df, "letter", 128, 3).collect()
    [Row(letter='A', key_group=104, subtask=2), Row(letter='B', key_group=17, subtask=0)]
    >>> df = spark.createDataFrame([("A",), (None,)], "letter string")
    >>> with_routing(df, "letter", 128, 3, nulls="drop").collect()
    [Row(letter='A', key_group=104, subtask=2)]
    """
    _refuse_columns(df, "key_group", "subtask")
    max_parallelism, parallelism = check_parallelisms(max_parallelism, parallelism)
    df, tree, known = routable(df, key, key_type, nulls, _NULLS)
    key_group = key_group_column(df, tree, max_parallelism, known, nulls=nulls)
    routed = df.withColumn("key_group", key_group)
    subtask = PORTABLE.operator_index(F.col("key_group"), max_parallelism, parallelism)
    return routed.withColumn("subtask", subtask)


def rebalance_keys(
    df: DataFrame,
    key: KF.Key,
    max_parallelism: int,
    parallelism: int,
    key_type: KeyType | None = None,
    substitute_type: KeyType = INT,
    column: str = "substitute_key",
    *,
    prefix: str = "",
    nulls: str = "null",
) -> DataFrame:
    """Add a column of substitute keys, by which a Flink job reaches all its subtasks evenly.

    For a job whose keyBy has to balance rather than to group. Every value of `key` gets one
    of `parallelism` keys, always the same one, as `SubtaskKeySelector.key_for_value` does.
    Subtasks share the values, not the rows, evenly: take a key of many values.

    `key`, `max_parallelism`, `parallelism`, `key_type` and `nulls` are those of `with_routing`;
    `substitute_type` and `prefix` are the key type and prefix of
    `keygroups.spark.functions.key_for_subtask`. Raises what these two raise, and
    InvalidValueError if `df` has a column of that name already.

    >>> df = spark.createDataFrame([("hello",), ("A",)], "word string")
    >>> rebalance_keys(df, "word", 128, 5).collect()
    [Row(word='hello', substitute_key=2), Row(word='A', substitute_key=0)]
    """
    column = check_text("column", column)
    _refuse_columns(df, column)
    max_parallelism, parallelism = check_parallelisms(max_parallelism, parallelism)
    look_up = look_up_key(max_parallelism, parallelism, substitute_type, prefix)
    # As many key groups as subtasks: the key group is the hash modulo the parallelism.
    df, tree, known = routable(df, key, key_type, nulls, _NULLS)
    return df.withColumn(column, key_group_column(df, tree, parallelism, known, look_up, nulls))


def key_group_load(
    df: DataFrame,
    key: KF.Key,
    max_parallelism: int,
    key_type: KeyType | None = None,
    weight: KF.ColumnOrName | None = None,
    *,
    nulls: str = "raise",
) -> KeyGroupLoad:
    """Measure the load of every key group: its rows, or the sum of a weight column.

    Reads `df` once and brings max_parallelism numbers to the driver. `key`,
    `max_parallelism` and `key_type` are those of `with_routing`; `weight` is a numeric
    column without nulls, NaN or negative numbers. Integers are summed exactly, other
    numbers as doubles. `nulls` is "raise" or "drop" for null keys, as `keygroups.spark` has it.

    Raises what `with_routing` raises, InvalidTypeError for a weight that is not numeric,
    and InvalidValueError if a key is null, with the number of such rows, or a weight null,
    negative or NaN.

    >>> df = spark.createDataFrame([("A",), ("B",), ("A",)], "letter string")
    >>> key_group_load(df, "letter", 128).per_subtask(3)
    [1, 0, 2]
    """
    max_parallelism = check_max_parallelism(max_parallelism)
    df, tree, known = routable(df, key, key_type, nulls)
    key_group = key_group_column(df, tree, max_parallelism, known)
    value = F.lit(1) if weight is None else _weight(df, weight)
    is_bad = F.col("weight").isNull() | F.isnan("weight") | (F.col("weight") < 0)
    sums = F.count("*").alias("rows"), F.sum("weight").alias("weight")
    rows = aggregated(
        df.select(key_group.alias("key_group"), value.alias("weight")),
        [F.col("key_group")],
        [*sums, F.count_if(is_bad).alias("bad")],
    ).collect()
    bad = sum(row["bad"] for row in rows)
    if bad:
        raise InvalidValueError(f"weight must be a number >= 0 in every row, {bad} rows differ")
    weights: list[float] = [0] * max_parallelism
    for row in rows:
        if row["key_group"] is None:
            raise InvalidValueError(null_key(rows=row["rows"]))
        total = row["weight"]
        weights[row["key_group"]] = total if isinstance(total, float) else int(total)
    return KeyGroupLoad(max_parallelism, weights)


def routable(
    df: DataFrame,
    key: KF.Key,
    key_type: KeyType | None,
    nulls: str,
    choices: tuple[str, ...] = ("raise", "drop"),
) -> tuple[DataFrame, KeyTree, KeyType]:
    """Return the rows of `df` to route, without null keys for "drop", the key and its key type.

    Raises InvalidValueError where `nulls` is none of the choices, for a key that is nothing but
    null under "raise", and under "drop" for one that is not deterministic, as null keys are found
    before others are hashed.
    """
    nulls = check_choice("nulls", nulls, choices)
    tree = key_tree(df, key)
    if nulls == "raise":
        _refuse_void(tree, key_type)
    known = _infer(tree) if key_type is None else check_key_type(key_type)
    whole = whole_key(tree, known)
    if nulls == "drop" and whole is not None and whole.nullable:
        check_deterministic(df, tree)
        df = df.where(whole.column.isNotNull())
    return df, tree, known


def key_group_column(
    df: DataFrame,
    tree: KeyTree,
    max_parallelism: int,
    key_type: KeyType,
    then: Callable[[Portable, Column], Column] = lambda backend, key_group: key_group,
    nulls: str = "null",
) -> Column:
    """Return the key group of a key of `df`, null for a null key or else the query fails.

    `then` makes the returned column of the backend and the key group.
    """
    groups = check_max_parallelism(max_parallelism)
    whole = whole_key(tree, key_type)
    refused = nulls != "null" and whole is not None and whole.nullable

    def make(backend: Portable, key: KeyTree) -> Column:
        code, nullable = hash_key(backend, key, key_type)
        key_group = backend.key_group(code, groups, nullable)
        if refused:
            F = backend.F
            key_group = F.coalesce(key_group, F.raise_error(F.lit(null_key())))
        return then(backend, key_group)

    return build(tree, make, df.sparkSession)


def aggregated(
    df: DataFrame, columns: Sequence[Column], aggregations: Sequence[Column]
) -> DataFrame:
    """Return the columns by which rows are grouped, and then the aggregations of each group.

    A classic session may leave out the former where nobody asks for them.
    """
    asked: Sequence[Column] = ()
    if not is_connect(df):
        kept = str(df.sparkSession.conf.get("spark.sql.retainGroupColumns", "true"))
        asked = columns if kept.strip().lower() == "false" else ()
    return df.groupBy(*columns).agg(*asked, *aggregations)


def key_tree(df: DataFrame, key: object, name: str = "key") -> KeyTree:
    """Return a key's columns with their names and types in `df`."""
    check_df(df)
    columns: list[Column] = []
    map_key(key, lambda column: columns.append(check_column(name, column)))
    if not columns:
        raise InvalidValueError(f"{name} must be at least one column, got none")
    if is_connect(df):
        from keygroups.spark._columns.connect import check_depth

        for column in columns:
            check_depth(name, column, df.sparkSession.client)
    with known_columns(df, name):
        fields = df.select(*columns).schema.fields
    if len(fields) != len(columns):
        names = ", ".join(field.name for field in fields)
        raise InvalidValueError(
            f"{name} must be one column each, but {len(columns)} are {len(fields)}: {names}"
        )
    named = (
        KeyColumn(column, field.name, field.dataType, field.nullable)
        for column, field in zip(columns, fields)
    )
    tree: KeyTree = map_key(key, lambda _: next(named))
    return tree


def named_column(df: DataFrame, name: str, column: KF.ColumnOrName) -> KeyColumn:
    """Return a column with its name and type in `df`, or raise with `name`."""
    return single(key_tree(df, check_column(name, column), name), name)


@contextmanager
def known_columns(df: DataFrame, name: str) -> Iterator[None]:
    """Raise InvalidValueError, with `name`, where Spark's analysis finds no such column in `df`.

    The error names the columns, those that are spelled alike first.
    """
    try:
        yield
    except AnalysisException as error:
        unknown = (error.getMessageParameters() or {}).get("objectName")
        if unknown is None or not (_condition(error) or "").startswith("UNRESOLVED_COLUMN."):
            raise
        unknown = unknown.replace("`", "")
        columns = df.columns  # It raises if `df` itself cannot be analysed.
        listed = [*dict.fromkeys(get_close_matches(unknown, columns) + columns)]
        more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
        names = (column if column.isidentifier() else f"`{column}`" for column in listed[:_SHOWN])
        raise InvalidValueError(
            f"{name} must be of df's columns, got {show(unknown)}: there are "
            f"{', '.join(names) or 'none'}{more}"
        ) from None


def _condition(error: AnalysisException) -> str | None:
    # PySpark 4.0 has renamed getErrorClass.
    condition: str | None = getattr(error, "getCondition", error.getErrorClass)()
    return condition


def check_deterministic(df: DataFrame, key: KeyTree) -> None:
    """Refuse a key that is another each time it is asked for, if Spark's analysis tells that.

    Spark knows that of functions such as rand(), and of the user's own if they are marked so. It
    allows none of them within an aggregate function, classic and over Connect.
    """
    try:
        # Asked for the schema, Connect sends the query to the server, which analyses it.
        _ = df.select(F.count(F.struct(*_columns(key)))).schema
    except AnalysisException as error:
        if _condition(error) == "AGGREGATE_FUNCTION_WITH_NONDETERMINISTIC_EXPRESSION":
            raise InvalidValueError(
                "key must be the same each time, got one that is not deterministic: save the "
                "DataFrame with it as a column first"
            ) from None


def _columns(key: KeyTree) -> list[Column]:
    if isinstance(key, KeyColumn):
        return [key.column]
    return [column for field in key for column in _columns(field)]


def _refuse_void(tree: KeyTree, key_type: KeyType | None) -> None:
    """Refuse a key that is null in every row, unless a null is a key of its key type."""
    column = tree if isinstance(tree, KeyColumn) else tree[0]
    if not isinstance(column, KeyColumn) or not isinstance(column.spark_type, T.NullType):
        return
    is_whole = isinstance(tree, KeyColumn) or len(tree) == 1
    if is_whole and (key_type is None or whole_key(tree, check_key_type(key_type)) is not None):
        raise InvalidValueError(
            f"key must not be null, which Flink refuses, but {column.name} is void: all of it is "
            "null"
        )


def _refuse_columns(df: DataFrame, *names: str) -> None:
    check_df(df)
    added = [name.lower() for name in names]
    for name in df.columns:
        if name.lower() in added:
            raise InvalidValueError(f"df must not have a column {name} already: rename it first")


def _infer(tree: KeyTree) -> KeyType:
    if not isinstance(tree, KeyColumn):
        if not tree:
            raise InvalidValueError("key must be at least one column, got an empty list")
        field_types = [_infer(field) for field in tree]
        return field_types[0] if len(field_types) == 1 else TUPLE(*field_types)
    assert tree.spark_type is not None
    spark_type = simple_type(tree.spark_type)
    if spark_type == "binary":
        raise UnsupportedKeyTypeError(f"key column {tree.name} of type binary: {BYTES}")
    if spark_type not in _INFERRED:
        proposed = _proposed(tree.spark_type)
        advice = cast_advice(tree.spark_type) or (
            f" by itself: pass key_type{'' if proposed is None else f', such as {proposed}'}, or "
            f"use a column of type {', '.join(_INFERRED)}"
        )
        raise UnsupportedKeyTypeError(
            f"key column {tree.name} of type {tree.spark_type.simpleString()} has no key type"
            f"{advice}"
        )
    return _INFERRED[spark_type]


def _proposed(spark_type: T.DataType) -> KeyType | None:
    """Return a key type that a column may have, None where there is none to propose."""
    if isinstance(spark_type, T.ArrayType):
        element = _proposed(spark_type.elementType)
        return None if element is None else LIST(element)
    if isinstance(spark_type, T.StructType):
        fields = [_proposed(field.dataType) for field in spark_type.fields]
        known = [field for field in fields if field is not None]
        return TUPLE(*known) if known and len(known) == len(fields) <= 25 else None
    return _INFERRED.get(simple_type(spark_type))


def _weight(df: DataFrame, weight: KF.ColumnOrName) -> Column:
    tree = key_tree(df, check_column("weight", weight), "weight")
    assert isinstance(tree, KeyColumn)
    assert tree.spark_type is not None
    spark_type = simple_type(tree.spark_type)
    if spark_type in ("tinyint", "smallint", "int", "bigint"):
        return tree.column.cast(T.DecimalType(20, 0))  # its sum cannot overflow
    if spark_type in ("float", "double", "decimal"):
        return tree.column.cast("double")
    raise InvalidTypeError(f"weight must be a numeric column, but {tree.name} is {spark_type}")
