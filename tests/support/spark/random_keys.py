"""DataFrames of random keys, made by Spark, for comparisons in bulk.

Every value is a function of its row's `id`, so the same call gives the same keys however
often and wherever Spark computes them.
"""

from __future__ import annotations

import random
import sys

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from keygroups.types import (
    BOOLEAN,
    BYTE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    SHORT,
    STRING,
    KeyType,
)

# One key in 64 is one of these; floats start from their text, so no literal can be -0.0.
_EDGES: dict[KeyType, list[object]] = {
    STRING: ["", "\0", "A", "hello", "\U0001f600", "\ufffd", "\U0010ffff" * 50, " a ", "e\u0301"],
    INT: [0, 1, -1, 2**31 - 1, -(2**31), -2089875627, -1035494534],
    LONG: [0, -1, 2**31 - 1, 2**31, -(2**31), 2**32, 2**63 - 1, -(2**63), 2205091669],
    FLOAT: ["0.0", "-0.0", "NaN", "Infinity", "-Infinity", "1.4E-45", "3.4028235E38"],
    DOUBLE: ["0.0", "-0.0", "NaN", "Infinity", "-Infinity", "4.9E-324", "1.7976931348623157E308"],
}
_SPARK_TYPES: dict[KeyType, str] = {
    STRING: "string",
    INT: "int",
    LONG: "bigint",
    FLOAT: "float",
    DOUBLE: "double",
}
_POOL_CHARACTERS = 400  # Spark walks through them to find a slice


def random_keys(spark: SparkSession, key_type: KeyType, count: int, seed: int = 0) -> DataFrame:
    """Return `count` rows of `id` and `key`, a column of the Spark type for `key_type`.

    Bytes, shorts and booleans run through all their values in turn. Strings have 0 to 200
    characters from all planes. Floats have every exponent, subnormal ones included.
    """
    rows = spark.range(count)
    if key_type is BOOLEAN:
        return rows.withColumn("key", F.col("id") % 2 == 0)
    if key_type in (BYTE, SHORT):
        size, name = (2**8, "tinyint") if key_type is BYTE else (2**16, "smallint")
        return rows.withColumn("key", (F.col("id") % size - size // 2).cast(name))
    spark_type = _SPARK_TYPES[key_type]
    edges = F.array(*[F.lit(edge).cast(spark_type) for edge in _EDGES[key_type]])
    edge = F.get(edges, _below(len(_EDGES[key_type]), seed, "edge"))
    is_edge = _below(64, seed, "is edge") == 0
    return rows.withColumn("key", F.when(is_edge, edge).otherwise(_random(key_type, seed)))


def _random(key_type: KeyType, seed: int) -> Column:
    bits = _bits(seed, "bits")
    if key_type is LONG:
        return bits
    if key_type is INT:
        return F.shiftright(bits, 32).cast("int")
    if key_type is DOUBLE:  # 53 bits and a sign, times a power of two down to the least
        return F.shiftright(bits, 10) * F.pow(F.lit(2.0), _below(2046, seed, "exponent") - 1074)
    if key_type is FLOAT:
        power = F.pow(F.lit(2.0), _below(254, seed, "exponent") - 149)
        return (F.shiftright(bits, 39) * power).cast("float")
    slices = [_slice(seed, part) for part in ("first", "second")]
    return F.concat(*slices)


def _slice(seed: int, part: str) -> Column:
    """Return 0 to 100 characters out of one of several kinds of text."""
    rng = random.Random(seed)
    everything = [c for c in map(chr, range(sys.maxunicode + 1)) if not "\ud800" <= c <= "\udfff"]
    kinds = [everything[:128], everything[:256], everything[:0xF800], everything]
    pools = [F.lit("".join(rng.choices(kind, k=_POOL_CHARACTERS))) for kind in kinds * 4]
    pool = F.elt(1 + _below(len(pools), seed, f"{part} pool"), *pools)
    start = 1 + _below(_POOL_CHARACTERS - 100, seed, f"{part} start")
    return F.substring(pool, start, _below(101, seed, f"{part} length"))


def _below(bound: int, seed: int, use: str) -> Column:
    return F.pmod(_bits(seed, use), F.lit(bound)).cast("int")


def _bits(seed: int, use: str) -> Column:
    """Return 64 random bits for each row, others for each use."""
    return F.xxhash64(F.lit(f"{seed} {use}"), F.col("id"))
