"""The functions of the core on columns, under the same names.

    from keygroups.spark import functions as KF

A key is a column or a column name; for TUPLE, ROW and SQL_ROW it is a list of keys, one per
field. The key type is always stated, because a Column has no type before it meets a DataFrame.
Results are IntegerType columns. A null key gives null, but a PYFLINK one the group that Flink
has for it; null fields and elements count as in Flink.
A column whose type does not hold the key type fails when the query is analysed, with a
message that names both: nothing is cast in silence.

A classic session has a fast path beside the portable one; see `keygroups.spark.path`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as F

from keygroups.assignment import check_max_parallelism, check_parallelism
from keygroups.errors import InvalidTypeError, show
from keygroups.spark import portable
from keygroups.spark.expressions import hash_key
from keygroups.spark.key_columns import KeyColumn, KeyTree, typed
from keygroups.spark.substitutes import look_up_key
from keygroups.types import INT, KeyType

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
]

ColumnOrName = Column | str
Key: TypeAlias = "ColumnOrName | Sequence[Key]"


def murmur_hash(code: ColumnOrName) -> Column:
    """Scramble a Java hashCode (an int column) into 0..2^31-1; see `keygroups.murmur_hash`.

    >>> df = spark.createDataFrame([(99162322,)], "code int")
    >>> df.select(murmur_hash("code").alias("murmur_hash")).first()
    Row(murmur_hash=1715862179)
    """
    column = typed(F, _column("code", code), "int", "code")
    return F.when(column.isNotNull(), portable.finalise(F, column))


def hash_code(key: Key, key_type: KeyType) -> Column:
    """Return the Java hashCode of a key; see `keygroups.hash_code`.

    `key_type` is any that Spark can hold: the scalar types of the README's table, SQL_DATE,
    SQL_TIMESTAMP, TUPLE, ROW, LIST, SQL_ROW and PYFLINK. SQL_TIMESTAMP takes a timestamp, which
    is an instant already, so its zone does not matter. A SQL_ROW of one field takes that one
    column. What `keygroups.binary_row` refuses fails the query; a DOUBLE or FLOAT of a SQL_ROW
    that is a NaN other than Java's own is hashed as it is on the fast path, and as Java's on
    the portable one, which cannot tell.

    Raises UnsupportedKeyTypeError for any other key type, InvalidTypeError for what is no key
    type or no column, InvalidValueError for another number of columns than fields.

    >>> from keygroups.types import STRING
    >>> df = spark.createDataFrame([("hello",), (None,)], "word string")
    >>> df.select(hash_code("word", STRING).alias("hash_code")).collect()
    [Row(hash_code=99162322), Row(hash_code=None)]
    """
    code, _ = hash_key(_tree(key), key_type)
    return code


def compute_key_group_for_key_hash(key_hash: ColumnOrName, max_parallelism: int) -> Column:
    """Return the key group of a Java hashCode; see the core's function of this name.

    1 <= max_parallelism <= 32768. Raises ParallelismError.

    >>> df = spark.createDataFrame([(99162322,)], "code int")
    >>> df.select(compute_key_group_for_key_hash("code", 128).alias("key_group")).first()
    Row(key_group=35)
    """
    groups = F.lit(check_max_parallelism(max_parallelism))
    code = typed(F, _column("key_hash", key_hash), "int", "key_hash")
    return portable.key_group(F, code, groups, code)


def assign_to_key_group(key: Key, max_parallelism: int, key_type: KeyType) -> Column:
    """Return the key group of a key; see `keygroups.assign_to_key_group`.

    1 <= max_parallelism <= 32768. Raises ParallelismError and what `hash_code` raises.

    >>> from keygroups.types import STRING
    >>> df = spark.createDataFrame([("A",), ("B",)], "letter string")
    >>> df.select(assign_to_key_group("letter", 128, STRING).alias("key_group")).collect()
    [Row(key_group=104), Row(key_group=17)]
    """
    groups = F.lit(check_max_parallelism(max_parallelism))
    code, nullable = hash_key(_tree(key), key_type)
    return portable.key_group(F, code, groups, nullable)


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
    key_group = typed(F, _column("key_group_id", key_group_id), "int", "key_group_id")
    last = max_parallelism - 1
    refused = F.raise_error(
        F.concat(F.lit(f"key_group_id must be from 0 to {last}, got "), key_group.cast("string"))
    )
    return F.when(
        key_group.between(0, last),
        portable.operator_index(F, key_group, F.lit(max_parallelism), F.lit(parallelism)),
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
    return portable.operator_index(F, key_group, F.lit(max_parallelism), F.lit(parallelism))


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
    column = typed(F, _column("subtask", subtask), "int", "subtask")
    found = look_up_key(column, max_parallelism, parallelism, key_type, prefix)
    last = check_parallelism(parallelism, max_parallelism) - 1
    refused = F.raise_error(
        F.concat(F.lit(f"subtask must be from 0 to {last}, got "), column.cast("string"))
    )
    return F.when(column.between(0, last), found).when(column.isNotNull(), refused)


def _column(name: str, column: object) -> Column:
    if isinstance(column, str):
        return F.col(column)
    if hasattr(column, "isNotNull"):  # classic and Connect columns share no class in 3.5
        return column  # type: ignore[return-value]  # hasattr() does not narrow it
    raise InvalidTypeError(f"{name} must be a column or a column name, got {show(column)}")


def _tree(key: object) -> KeyTree:
    if isinstance(key, (list, tuple)):
        return [_tree(part) for part in key]
    return KeyColumn(_column("key", key), show(key))
