"""Java's String.hashCode without a lambda function, for the bodies of SQL functions.

A SQL function whose body has a lambda cannot be an argument of another one. None of Spark's
functions for strings is a 31-fold, but `printf` writes the hashCode of its argument with `%h`,
and an array hashes bytes in it by Java's Arrays.hashCode, which is one. That is an internal of
Spark, which may change in any release: so `register` tries the expression on known keys first,
and the expression checks every row, because an array that went through an exchange hashes
otherwise.
"""

from __future__ import annotations

from pyspark.sql import Column

from keygroups.spark._columns.murmur import long
from keygroups.spark._columns.portable import Portable

# Arrays.hashCode starts from 1: a first byte of -31 makes that 0.
_START = (256 - 31).to_bytes(1, "big")
_ARRAY_BASE = 37  # an array's own fold starts from it, and multiplies by it
# A UTF-16 unit is four hexadecimal digits. As a byte each, none of them is negative.
_DIGITS = 4


class LambdaFree(Portable):
    """The portable expressions, of which that of a string has no lambda function either."""

    def hash_string(self, column: Column) -> Column:
        """Return the hash code of a string; where this Spark folds otherwise, the query fails."""
        F, binary = self.F, column.cast("binary")
        is_ascii = (F.octet_length(column) == F.length(column)) & (
            F.encode(column, "UTF-8") == binary
        )
        own = self.joined(F.lit(_START), binary)
        once, twice = self.array_hash([own]), self.array_hash([own, own])
        units = F.hex(F.encode(column, "UTF-16BE"))
        folds = []
        for digit in range(1, _DIGITS + 1):
            digits = F.regexp_replace(units, F.lit("(.)(.)(.)(.)"), F.lit(f"0${digit}"))
            bytes_ = F.unhex(F.concat(F.lit(_START.hex()), digits))
            folds.append(self.array_hash([bytes_]) * long(F, 16 ** (_DIGITS - digit)))
        empty = _ARRAY_BASE**2
        spare = empty * (16**_DIGITS // 15 - 1)
        by_units = self.total(folds, 0) - long(F, spare)
        code = self.as_code(F.when(is_ascii, once).otherwise(by_units) - long(F, empty))
        both = (once - long(F, empty)) * long(F, _ARRAY_BASE + 1) + long(F, _ARRAY_BASE**3)
        is_right = self.low32(both - twice) == long(F, 0)
        refused = F.raise_error(
            F.lit("this Spark hashes arrays otherwise than known: use keygroups.spark.functions")
        )
        # The check comes first: what a first condition has, Spark computes once for all of a CASE.
        hashed: Column = F.when(is_right & column.isNotNull(), code)
        return hashed.when(column.isNotNull(), refused)

    def array_hash(self, binaries: list[Column]) -> Column:
        """Return the hashCode of Spark's own array of binaries."""
        F = self.F
        digits: Column = F.conv(F.printf(F.lit("%h"), F.array(*binaries)), 16, 10)
        return digits.cast("bigint")
