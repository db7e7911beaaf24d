"""The functions of the core on columns, under the same names.

    from keygroups.spark import functions as KF

A key is a column or a column name; for TUPLE, ROW and SQL_ROW it is a list of keys, one per
field. The key type is always stated, because a Column has no type before it meets a DataFrame.
Results are IntegerType columns. A null key gives null, as a column has no rows to drop;
which keys are null, `keygroups.spark` says. Null fields and elements count as in Flink.
A column whose type does not hold the key type fails when the query is analysed, with a
message that names both: nothing is cast in silence. Text may be a char(n), whose key has the
blanks that Spark gives the column, or a varchar(n); of a collation other than UTF8_BINARY, by
which texts are equal that are different keys in Flink, it is refused: `cast("string")` mends it.

The portable backend is made of public Spark functions and runs anywhere, Spark Connect and
managed platforms included. On a classic session a fast backend uses Catalyst's own expressions,
which call the JDK's `hashCode` in generated code (`explain()` shows `hive-hash` and `invoke`).
They are internals of Spark, so they are first tried on known keys, and the portable backend is
used where anything differs. The setting `spark.keygroups.path`, read when an expression is built,
names the backend: `auto`, `fast`, `portable` or `arrow`. It is that of the DataFrame's session,
in any thread, or for bare columns of the active session, else the default one.

`arrow`, which is never taken unasked, is an Arrow UDF around `keygroups.arrays`. It needs PySpark
4.1, and `keygroups[arrays]` on the executors too. Where there is no fast backend, as on Spark
Connect, keys with text take a third of the portable one's time by it; keys of numbers alone, but
in a SQL_ROW, take many times as long. Text that is not UTF-8 fails the query there; keys with a
SQL_TIMESTAMP in them, of any instant, stay the portable one's.

On Spark Connect a key that comes near the depth that it takes, such as a tuple of tuples, goes as
SQL text instead, which takes the server a second or more, with a DOUBLE in it several. One whose
own expression is too deep raises: make it a column with `df.withColumn()` first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from pyspark.sql import Column
from pyspark.sql import types as T

from keygroups._checks import check_max_parallelism, check_parallelism, check_parallelisms, show
from keygroups.errors import UnsupportedKeyTypeError
from keygroups.source_partitions import partitions_of_key_groups
from keygroups.spark._columns.arguments import check_column, check_key_type, check_text, map_key
from keygroups.spark._columns.backend import build
from keygroups.spark._columns.key_columns import KeyColumn, KeyTree, typed
from keygroups.spark._columns.key_hash import SPARK_TYPES, hash_key
from keygroups.spark._columns.portable import Portable
from keygroups.subtask_keys import keys_for_subtasks
from keygroups.types import BOOLEAN, BYTE, INT, LONG, SHORT, STRING, KeyType

__all__ = [
    "ColumnOrName",
    "Key",
    "assign_key_to_parallel_operator",
    "assign_to_key_group",
    "compute_key_group_for_key_hash",
    "compute_operator_index_for_key_group",
    "hash_code",
    "key_for_subtask",
    "murmur_hash",
    "partition_for_key",
]
__dir__ = __all__.copy

ColumnOrName = Column | str
Key: TypeAlias = "ColumnOrName | Sequence[Key]"
_SEARCHED: dict[KeyType, T.DataType] = {
    BOOLEAN: T.BooleanType(),
    BYTE: T.ByteType(),
    SHORT: T.ShortType(),
    INT: T.IntegerType(),
    LONG: T.LongType(),
    STRING: T.StringType(),
}
"""The Spark type of the keys that `keygroups.keys_for_subtasks` finds."""


def murmur_hash(code: ColumnOrName) -> Column:
    """Scramble a Java hashCode (an int column) into 0..2^31-1; see `keygroups.murmur_hash`.

    >>> df = spark.createDataFrame([(99162322,)], "code int")
    >>> df.select(murmur_hash("code").alias("murmur_hash")).first()
    Row(murmur_hash=1715862179)
    """
    return _of_int(
        "code",
        code,
        lambda backend, code: backend.F.when(code.isNotNull(), backend.finalise(code)),
    )


def hash_code(key: Key, key_type: KeyType) -> Column:
    """Return the Java hashCode of a key; see `keygroups.hash_code`.

    `key_type` is any that Spark can hold: the scalar types that `keygroups.types` gives a Spark
    column, SQL_DATE, SQL_TIMESTAMP, TUPLE, ROW, OBJECTS_HASH, SCALA_TUPLE, CASE_CLASS,
    SCALA_OPTION (of which a null is a key), LIST, SQL_ROW and PYFLINK. SQL_TIMESTAMP takes a
    timestamp, which is an instant already, so its zone does not matter. A SQL_ROW of one field
    takes that one column. What `keygroups.binary_row` refuses fails the query; a DOUBLE or FLOAT
    of a SQL_ROW that is a NaN other than Java's own is hashed as it is on the fast backend, and as
    Java's on the portable one, which cannot tell.

    Raises UnsupportedKeyTypeError for any other key type, InvalidTypeError for what is no key
    type or no column, InvalidValueError for another number of columns than fields.

    >>> from keygroups.types import STRING
    >>> df = spark.createDataFrame([("hello",), (None,)], "word string")
    >>> df.select(hash_code("word", STRING).alias("hash_code")).collect()
    [Row(hash_code=99162322), Row(hash_code=None)]
    """
    return _of_key(key, key_type, lambda backend, code, nullable: code)


def compute_key_group_for_key_hash(key_hash: ColumnOrName, max_parallelism: int) -> Column:
    """Return the key group of a Java hashCode; see the core's function of this name.

    1 <= max_parallelism <= 32768. Raises ParallelismError.

    >>> df = spark.createDataFrame([(99162322,)], "code int")
    >>> df.select(compute_key_group_for_key_hash("code", 128).alias("key_group")).first()
    Row(key_group=35)
    """
    groups = check_max_parallelism(max_parallelism)
    return _of_int(
        "key_hash", key_hash, lambda backend, code: backend.key_group(code, groups, code)
    )


def assign_to_key_group(key: Key, max_parallelism: int, key_type: KeyType) -> Column:
    """Return the key group of a key; see `keygroups.assign_to_key_group`.

    1 <= max_parallelism <= 32768. Raises ParallelismError and what `hash_code` raises.

    >>> from keygroups.types import STRING
    >>> df = spark.createDataFrame([("A",), ("B",)], "letter string")
    >>> df.select(assign_to_key_group("letter", 128, STRING).alias("key_group")).collect()
    [Row(key_group=104), Row(key_group=17)]
    """
    groups = check_max_parallelism(max_parallelism)
    return _of_key(
        key, key_type, lambda backend, code, null: backend.key_group(code, groups, null)
    )


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
    groups, parallelism = check_parallelisms(max_parallelism, parallelism)

    def subtask(backend: Portable, key_group: Column) -> Column:
        index = backend.operator_index(key_group, groups, parallelism)
        return backend.bounded("key_group_id", key_group, groups - 1, index)

    return _of_int("key_group_id", key_group_id, subtask)


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
    groups, parallelism = check_parallelisms(max_parallelism, parallelism)

    def subtask(backend: Portable, code: Column, nullable: Column | None) -> Column:
        key_group = backend.key_group(code, groups, nullable)
        return backend.operator_index(key_group, groups, parallelism)

    return _of_key(key, key_type, subtask)


def partition_for_key(
    key: Key,
    topic: str,
    partitions: int,
    max_parallelism: int,
    parallelism: int,
    key_type: KeyType,
) -> Column:
    """Return the partition of a Kafka topic that the subtask of a key reads.

    It is the column `partition` of Spark's Kafka sink, for a job that takes its records up with
    `reinterpretAsKeyedStream`; `keygroups.source_partitions` says what that takes. `topic` is its
    name, `partitions` how many it has, parallelism..2^30; all else is as in
    `assign_key_to_parallel_operator`. Raises what that raises, and InvalidTypeError or
    InvalidValueError for the topic and the partitions.

    >>> from keygroups.types import STRING
    >>> df = spark.createDataFrame([("A",)], "letter string")
    >>> df.select(
    ...     partition_for_key("letter", "clicks", 4, 128, 4, STRING).alias("partition")
    ... ).first()
    Row(partition=2)
    """
    groups = check_max_parallelism(max_parallelism)
    by_key_group = partitions_of_key_groups(topic, partitions, groups, parallelism)

    def partition(backend: Portable, code: Column, nullable: Column | None) -> Column:
        return backend.nth(
            by_key_group, T.IntegerType(), backend.key_group(code, groups, nullable)
        )

    return _of_key(key, key_type, partition)


def key_for_subtask(
    subtask: ColumnOrName,
    max_parallelism: int,
    parallelism: int,
    key_type: KeyType = INT,
    *,
    prefix: str = "",
) -> Column:
    """Return the key that Flink sends to the subtask in an int column.

    The keys are those of `keygroups.keys_for_subtasks`, which are searched here, once, and go
    into the query as one literal: 1 <= parallelism <= max_parallelism <= 32768, and
    `key_type` is BYTE, SHORT, INT, LONG, BOOLEAN or STRING, where `prefix` goes before the
    number. The column has the Spark type of the key type. A null subtask gives null; one
    outside 0..parallelism-1 fails the query. Raises what `keygroups.keys_for_subtasks`
    raises, and UnsupportedKeyTypeError for a key type without a Spark type.

    >>> df = spark.createDataFrame([(0,), (4,), (None,)], "subtask int")
    >>> df.select(key_for_subtask("subtask", 128, 5).alias("key")).collect()
    [Row(key=4), Row(key=2), Row(key=None)]
    """
    look_up = look_up_key(max_parallelism, parallelism, key_type, prefix)
    last = check_parallelism(parallelism, max_parallelism) - 1

    def key(backend: Portable, subtask: Column) -> Column:
        return backend.bounded("subtask", subtask, last, look_up(backend, subtask))

    return _of_int("subtask", subtask, key)


def _of_int(name: str, column: ColumnOrName, make: Callable[[Portable, Column], Column]) -> Column:
    """Return an expression of an int column, made with the current backend."""

    def of_backend(backend: Portable, key: KeyTree) -> Column:
        assert isinstance(key, KeyColumn)
        return make(backend, typed(backend, key.column, "int", name))

    return build(KeyColumn(check_column(name, column), name), of_backend)


def _of_key(
    key: Key, key_type: KeyType, make: Callable[[Portable, Column, Column | None], Column]
) -> Column:
    """Return an expression of a key's hash code, made with the current backend.

    `make` also gets the column that is null where the key is.
    """
    check_key_type(key_type)
    tree = map_key(key, lambda column: KeyColumn(check_column("key", column), show(column)))
    return build(tree, lambda backend, key: make(backend, *hash_key(backend, key, key_type)))


def look_up_key(
    max_parallelism: int, parallelism: int, key_type: KeyType, prefix: str
) -> Callable[[Portable, Column], Column]:
    """Return a function that takes a backend and a column of subtasks, and returns their keys.

    The key is null for a subtask that is null or out of bounds.
    """
    if check_key_type(key_type) not in SPARK_TYPES:
        raise UnsupportedKeyTypeError(f"key type {key_type} has no column expression")
    prefix = check_text("prefix", prefix)
    keys = keys_for_subtasks(max_parallelism, parallelism, key_type, prefix=prefix)
    numbers = [str(key).removeprefix(prefix) for key in keys]  # a prefix may hold commas

    def key_of(backend: Portable, subtask: Column) -> Column:
        key = backend.nth(numbers, _SEARCHED[key_type], subtask)
        if prefix:
            key = backend.F.concat(backend.F.lit(prefix), key)
        return key

    return key_of
