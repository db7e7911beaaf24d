"""The functions of the core on columns, under the same names.

    from keygroups.spark import functions as KF

A key is a column or a column name; for TUPLE it is a list of them, one per field. The key
type is always stated, because a Column has no type before it meets a DataFrame. Results
are IntegerType columns. A null key gives null; a null field of a TUPLE counts 0, as in Flink.
A column whose type does not hold the key type makes the query fail with a message that
names both: nothing is cast in silence.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from keygroups.assignment import check_max_parallelism, check_parallelism
from keygroups.errors import InvalidTypeError, InvalidValueError, UnsupportedKeyTypeError, show
from keygroups.spark import portable
from keygroups.types import (
    BIG_DEC,
    BOOLEAN,
    BYTE,
    DOUBLE,
    FLOAT,
    INSTANT,
    INT,
    LOCAL_DATE,
    LOCAL_DATE_TIME,
    LONG,
    SHORT,
    STRING,
    TUPLE,
    UUID,
    KeyType,
)

__all__ = [
    "ColumnOrName",
    "Key",
    "assign_key_to_parallel_operator",
    "assign_to_key_group",
    "compute_key_group_for_key_hash",
    "compute_operator_index_for_key_group",
    "hash_code",
    "murmur_hash",
]

ColumnOrName = Column | str
Key = ColumnOrName | Sequence[ColumnOrName]

SPARK_TYPES: dict[KeyType, str] = {
    BOOLEAN: "boolean",
    BYTE: "tinyint",
    SHORT: "smallint",
    INT: "int",
    LONG: "bigint",
    FLOAT: "float",
    DOUBLE: "double",
    STRING: "string",
    BIG_DEC: "decimal",
    LOCAL_DATE: "date",
    LOCAL_DATE_TIME: "timestamp_ntz",
    INSTANT: "timestamp",
    UUID: "string",
}
"""The Spark type that holds each key type, as `typeof` says it."""


def murmur_hash(code: ColumnOrName) -> Column:
    """Scramble a Java hashCode (an int column) into 0..2^31-1; see `keygroups.murmur_hash`.

    >>> df = spark.createDataFrame([(99162322,)], "code int")
    >>> df.select(murmur_hash("code").alias("murmur_hash")).first()
    Row(murmur_hash=1715862179)
    """
    return portable.murmur_hash(_typed(_column("code", code), "int", "code"))


def hash_code(key: Key, key_type: KeyType) -> Column:
    """Return the Java hashCode of a key; see `keygroups.hash_code`.

    `key_type` is a scalar type that Spark can hold, or a TUPLE of such. Raises
    UnsupportedKeyTypeError for any other key type, InvalidTypeError for what is no key
    type or no column, InvalidValueError for another number of columns than fields.

    >>> from keygroups.types import STRING
    >>> df = spark.createDataFrame([("hello",), (None,)], "word string")
    >>> df.select(hash_code("word", STRING).alias("hash_code")).collect()
    [Row(hash_code=99162322), Row(hash_code=None)]
    """
    if not isinstance(key_type, KeyType):
        raise InvalidTypeError(
            f"key_type must be a value of keygroups.types such as STRING, got {show(key_type)}"
        )
    if isinstance(key_type, TUPLE):
        columns = _columns(key, len(key_type.fields), key_type)
        fields = [hash_code(c, field) for c, field in zip(columns, key_type.fields)]
        return portable.fold(fields, 0)
    if key_type not in SPARK_TYPES:
        raise UnsupportedKeyTypeError(f"key type {key_type} has no column expression")
    [column] = _columns(key, 1, key_type)
    return portable.HASHERS[key_type](
        _typed(column, SPARK_TYPES[key_type], f"key type {key_type}")
    )


def compute_key_group_for_key_hash(key_hash: ColumnOrName, max_parallelism: int) -> Column:
    """Return the key group of a Java hashCode; see the core's function of this name.

    1 <= max_parallelism <= 32768. Raises ParallelismError.

    >>> df = spark.createDataFrame([(99162322,)], "code int")
    >>> df.select(compute_key_group_for_key_hash("code", 128).alias("key_group")).first()
    Row(key_group=35)
    """
    max_parallelism = check_max_parallelism(max_parallelism)
    return murmur_hash(key_hash) % F.lit(max_parallelism)


def assign_to_key_group(key: Key, max_parallelism: int, key_type: KeyType) -> Column:
    """Return the key group of a key; see `keygroups.assign_to_key_group`.

    1 <= max_parallelism <= 32768. Raises ParallelismError and what `hash_code` raises.

    >>> from keygroups.types import STRING
    >>> df = spark.createDataFrame([("A",), ("B",)], "letter string")
    >>> df.select(assign_to_key_group("letter", 128, STRING).alias("key_group")).collect()
    [Row(key_group=104), Row(key_group=17)]
    """
    return compute_key_group_for_key_hash(hash_code(key, key_type), max_parallelism)


def compute_operator_index_for_key_group(
    max_parallelism: int, parallelism: int, key_group_id: ColumnOrName
) -> Column:
    """Return the subtask that an int column of key groups belongs to.

    1 <= parallelism <= max_parallelism <= 32768; a key group outside
    0..max_parallelism-1 fails the query. Raises ParallelismError.

    >>> df = spark.createDataFrame([(42,), (43,)], "key_group int")
    >>> df.select(
    ...     compute_operator_index_for_key_group(128, 3, "key_group").alias("subtask")
    ... ).collect()
    [Row(subtask=0), Row(subtask=1)]
    """
    max_parallelism = check_max_parallelism(max_parallelism)
    parallelism = check_parallelism(parallelism, max_parallelism)
    key_group = _typed(_column("key_group_id", key_group_id), "int", "key_group_id")
    last = max_parallelism - 1
    refused = F.raise_error(
        F.concat(F.lit(f"key_group_id must be from 0 to {last}, got "), key_group.cast("string"))
    )
    return F.when(
        key_group.between(0, last), _subtask(key_group, max_parallelism, parallelism)
    ).when(key_group.isNotNull(), refused)


def assign_key_to_parallel_operator(
    key: Key, max_parallelism: int, parallelism: int, key_type: KeyType
) -> Column:
    """Return the subtask that Flink sends a key to.

    1 <= parallelism <= max_parallelism <= 32768. Raises ParallelismError and what
    `hash_code` raises.

    >>> from keygroups.types import STRING
    >>> df = spark.createDataFrame([("A",)], "letter string")
    >>> df.select(
    ...     assign_key_to_parallel_operator("letter", 128, 3, STRING).alias("subtask")
    ... ).first()
    Row(subtask=2)
    """
    max_parallelism = check_max_parallelism(max_parallelism)
    parallelism = check_parallelism(parallelism, max_parallelism)
    key_group = assign_to_key_group(key, max_parallelism, key_type)
    return _subtask(key_group, max_parallelism, parallelism)


def _subtask(key_group: Column, max_parallelism: int, parallelism: int) -> Column:
    # "/" gives a double, exact here: the dividend is below 2^30.
    return F.floor(key_group * F.lit(parallelism) / F.lit(max_parallelism)).cast("int")


def _typed(column: Column, spark_type: str, what: str) -> Column:
    """Let a column through if it has that Spark type, else fail the query.

    `typeof` is a constant once the plan is analysed, so the check costs nothing per row.
    """
    actual = F.typeof(column)
    matches = actual.startswith("decimal") if spark_type == "decimal" else actual == spark_type
    refused = F.raise_error(
        F.concat(F.lit(f"{what} takes a column of type {spark_type}, got one of type "), actual)
    )
    return F.when(matches, column).otherwise(refused)


def _column(name: str, column: object) -> Column:
    if isinstance(column, str):
        return F.col(column)
    if hasattr(column, "isNotNull"):  # classic and Connect columns share no class in 3.5
        return column  # type: ignore[return-value]
    raise InvalidTypeError(f"{name} must be a column or a column name, got {show(column)}")


def _columns(key: object, count: int, key_type: KeyType) -> list[Column]:
    keys = key if isinstance(key, (list, tuple)) else [key]
    if len(keys) != count:
        raise InvalidValueError(
            f"key of type {key_type} must be {count} columns, got {len(keys)}: {show(key)}"
        )
    return [_column("key", column) for column in keys]
