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

from keygroups.spark._columns.murmur import long
from keygroups.spark._columns.portable import Portable

# The hash of an array starts from 37 and takes each element as 37 * hash + Arrays.hashCode of it,
# all modulo 2^32. This one takes what came before it to 0, so that the next one alone counts, and
# the other keeps it there.
_RESET, _ZERO = b"1DG:E6?", b"\xe1"
# Arrays.hashCode starts from 1: behind these characters, and those of a hash that is four times as
# many, weighted 4096, 256, 16 and 1, nothing is left of that.
_START, _START_OF_DIGITS = "1DG:FCD", "4:M11I3"
# So it takes the last of the four to what the other three need, which have no element before.
_RESET_OF_DIGITS = b"1DG5812"
# A UTF-16 unit is four hexadecimal digits. As a byte each, none of them is negative.
_DIGITS = 4


class LambdaFree(Portable):
    """The portable expressions, of which that of a string has no lambda function either.

    What Spark's analyser and its compiler take grows with each call and literal in them.
    """

    def hash_string(self, column: Column) -> Column:
        """Return the hash code of a string; where this Spark folds otherwise, the query fails."""
        F = self.F
        own = F.concat(F.lit(_START), column).cast("binary")
        code = self.array_hash([F.lit(_RESET), own])
        same = self.array_hash([F.lit(_RESET), F.lit(_ZERO), own])
        # Other ASCII characters, of which few texts have one, are hashed by their digits too.
        by_units = self.total([self._digit(column, digit) for digit in range(_DIGITS)], 0)
        hashed = F.when(column.rlike("[^ -~]"), by_units).otherwise(_number(F, code))
        refused = F.raise_error(
            F.lit("this Spark hashes arrays otherwise than known: use keygroups.spark.functions")
        )
        # The check comes first: what a first condition has, Spark computes once for all of a CASE.
        # The cast is written, as Spark's analyser takes one more pass to find it by itself.
        checked = F.when(code != same, refused.cast("int"))
        made: Column = checked.when(column.isNotNull(), self.as_code(hashed))
        return made

    def _digit(self, column: Column, digit: int) -> Column:
        """Return the share of the hash code that is of one digit of each UTF-16 unit."""
        F = self.F
        units = F.hex(F.encode(F.concat(F.lit(_START_OF_DIGITS), column), "UTF-16BE"))
        places = ["."] * _DIGITS
        places[digit] = "(.)"
        bytes_ = F.unhex(F.regexp_replace(units, F.lit("".join(places)), F.lit("0$1")))
        if digit == _DIGITS - 1:
            return _number(F, self.array_hash([F.lit(_RESET_OF_DIGITS), bytes_]))
        weight: Column = long(F, 16 ** (_DIGITS - 1 - digit))
        return _number(F, self.array_hash([bytes_])) * weight

    def array_hash(self, binaries: list[Column]) -> Column:
        """Return the hashCode of Spark's own array of binaries, as hexadecimal digits."""
        digits: Column = self.F.printf(self.F.lit("%h"), self.F.array(*binaries))
        return digits


def _number(F: Any, digits: Column) -> Column:
    number: Column = F.conv(digits, 16, 10).cast("bigint")
    return number
