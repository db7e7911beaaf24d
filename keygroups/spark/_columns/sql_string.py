"""Java's String.hashCode without a lambda function, for the bodies of SQL functions.

A SQL function whose body has a lambda cannot be an argument of another one. None of Spark's
functions for strings is a 31-fold, but `printf` writes the hashCode of its argument with `%h`,
and an array hashes bytes in it by Java's Arrays.hashCode, which is one. That is an internal of
Spark, which may change in any release: so `register` tries the expression on known keys first,
and the expression checks every row, because an array that went through an exchange hashes
otherwise.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column

from keygroups.spark._columns.portable import as_code, low32, total

__all__ = ["hash_string"]

# Arrays.hashCode starts from 1: a first byte of -31 makes that 0.
_START = (256 - 31).to_bytes(1, "big")
_ARRAY_BASE = 37  # an array's own fold starts from it, and multiplies by it
# A UTF-16 unit is four hexadecimal digits. As a byte each, none of them is negative.
_DIGITS = 4


def hash_string(F: Any, column: Column) -> Column:
    """Return the hash code of a string; where this Spark folds otherwise, the query fails."""
    is_utf8 = F.encode(column, "UTF-8") == column.cast("binary")
    is_ascii = is_utf8 & (F.octet_length(column) == F.length(column))
    units = F.hex(F.encode(column, "UTF-16BE"))
    parts = []
    for digit in range(1, _DIGITS + 1):
        bytes_ = F.unhex(F.regexp_replace(units, F.lit("(.)(.)(.)(.)"), F.lit(f"0${digit}")))
        plain = column.cast("binary") if digit == _DIGITS else F.lit(b"")
        parts.append(F.concat(F.lit(_START), F.when(is_ascii, plain).otherwise(bytes_)))
    folds = [_array_hash(F, [part]) - _ARRAY_BASE**2 for part in parts]
    code = as_code(F, _weighted(F, folds, 16))
    together = _weighted(F, folds, _ARRAY_BASE) + _ARRAY_BASE ** (_DIGITS + 1)
    is_right = low32(F, together - _array_hash(F, parts)) == 0
    refused = F.raise_error(
        F.lit("this Spark hashes arrays otherwise than known: use keygroups.spark.functions")
    )
    # The check comes first: what a first condition has, Spark computes once for all of a CASE.
    hashed: Column = F.when(is_right & column.isNotNull(), code)
    return hashed.when(column.isNotNull(), refused)


def _array_hash(F: Any, parts: list[Column]) -> Column:
    digits: Column = F.conv(F.printf(F.lit("%h"), F.array(*parts)), 16, 10)
    return digits.cast("bigint")


def _weighted(F: Any, folds: list[Column], base: int) -> Column:
    return total(F, [fold * base ** (_DIGITS - 1 - i) for i, fold in enumerate(folds)], 0)
