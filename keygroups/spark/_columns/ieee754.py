"""The bits of floating-point columns, made of public Spark functions only.

Spark's `printf` is Java's Formatter. It writes the Java hashCode of a number with `%h`, and
the digits of a double with `%a`; nothing is rounded.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column

# What the Formatter writes of the numbers that are not "0x1.8p3", and what has their bits when
# it is read as that: biased exponents are 0 or 2047 there.
_ODD_ONES = {
    "NaN": " 0x1.8000000000000p1024",
    "Infinity": "0x1.0000000000000p1024",
    "0x0.0000000000000p0": "0x0.0000000000000p-1022",
}


class Ieee754:
    """The part of `Portable` that is about the bits of floats and doubles."""

    F: Any

    def java_hash(self, column: Column) -> Column:
        """Double.hashCode or Float.hashCode, as a bigint that is not negative."""
        F = self.F
        # The Formatter writes null as "null"; conv() of no digits is null.
        digits = F.substring_index(F.printf(F.lit("%h"), column), "n", 1)
        return F.conv(digits, 16, 10).cast("bigint")

    def float_bits(self, column: Column) -> Column:
        """Float.floatToIntBits, which is the hashCode, as a bigint that is not negative."""
        return self.java_hash(column)

    def raw_float_bits(self, column: Column) -> Column:
        """Return `float_bits`; a NaN keeps its own where the path tells NaNs apart, not here."""
        return self.float_bits(column)

    def double_bits(self, column: Column) -> Column:
        """Double.doubleToLongBits of a double, as a bigint: there is one NaN.

        `% .13a` writes a space or a minus, "0x1.", or "0x0." for a subnormal number, the 13
        hexadecimal digits of the significand, "p" and the exponent in decimal.
        """
        F = self.F
        text = F.printf(F.lit("% .13a"), column)
        for odd, read in _ODD_ONES.items():
            text = F.replace(text, F.lit(odd), F.lit(read))
        digits = F.translate(F.substring(text, 4, 15), ".", "")
        exponent = F.conv(F.substring(text, 20, 5), 10, -10).cast("bigint")  # null for null
        significand = F.conv(digits, 16, 10).cast("bigint")  # the leading 1 of normal numbers too
        magnitude = F.shiftleft(exponent + 1022, 52) + significand
        sign = F.when(text.startswith("-"), F.lit(-(1 << 63))).otherwise(F.lit(0))
        return magnitude.bitwiseOR(sign)

    def raw_double_bits(self, column: Column) -> Column:
        """Return `double_bits`; a NaN keeps its own where the path tells NaNs apart, not here."""
        return self.double_bits(column)
