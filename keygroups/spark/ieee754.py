"""The bits of floating-point columns, made of public Spark functions only."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column

__all__ = ["double_bits", "float_bits"]


def double_bits(F: Any, column: Column) -> Column:
    """Double.doubleToLongBits of a double, as a bigint: there is one NaN."""
    return _ieee754(F, column, mantissa=52, bias=1023)


def float_bits(F: Any, column: Column) -> Column:
    """Float.floatToIntBits of a float, as a bigint that is not negative."""
    return _ieee754(F, column.cast("double"), mantissa=23, bias=127)


def _ieee754(F: Any, number: Column, mantissa: int, bias: int) -> Column:
    """Return the bits of a double as a bigint, in a format with that many mantissa bits.

    No public function gives the bits, so they are put together from exponent and
    significand; multiplying by a power of two is exact.
    """
    magnitude = F.abs(number)
    infinity = F.lit((2 * bias + 1) << mantissa)
    bits = (
        F.when(number.isNull(), None)
        .when(F.isnan(number), infinity + F.lit(1 << (mantissa - 1)))
        .when(magnitude == float("inf"), infinity)
        .when(magnitude == 0.0, F.lit(0).cast("bigint"))
        .otherwise(_finite_bits(F, magnitude, mantissa, bias))
    )
    # -0.0 is not less than 0.0; only its text tells.
    is_minus_zero = (number == 0.0) & number.cast("string").startswith("-")
    sign_bit = -(1 << 63) if mantissa == 52 else 1 << 31
    sign = F.when((number < 0.0) | is_minus_zero, F.lit(sign_bit)).otherwise(F.lit(0))
    return bits.bitwiseOR(sign)


def _finite_bits(F: Any, magnitude: Column, mantissa: int, bias: int) -> Column:
    """Return the bits of a finite double above 0."""

    def significand(number: Column, exponent: Column) -> Column:
        return number * F.pow(F.lit(2.0), F.lit(mantissa) - exponent)

    def from_estimate(estimate: Column) -> Column:
        number, shift, exponent = (
            estimate.getField(name) for name in ("number", "shift", "exponent")
        )

        def bits(exponent: Column) -> Column:
            biased = exponent - shift + F.lit(bias)
            leading = (biased - 1).cast("bigint") * F.lit(1 << mantissa)
            subnormal = number * F.pow(F.lit(2.0), F.lit(bias - 1 + mantissa) - shift)
            normal = leading + significand(number, exponent).cast("bigint")
            return F.when(biased >= 1, normal).otherwise(subnormal.cast("bigint"))

        # log2 is inexact, so its floor may be one off.
        estimated = significand(number, exponent)
        return (
            F.when(estimated < 2.0**mantissa, bits(exponent - 1))
            .when(estimated < 2.0 ** (mantissa + 1), bits(exponent))
            .otherwise(bits(exponent + 1))
        )

    # Scaling keeps 2^-exponent within a double's range for the smallest numbers.
    tiny = magnitude < 2.0**-500
    scaled = F.when(tiny, magnitude * F.lit(2.0**600)).otherwise(magnitude)
    estimate = F.struct(
        scaled.alias("number"),
        F.when(tiny, F.lit(600)).otherwise(F.lit(0)).alias("shift"),
        F.floor(F.log2(scaled)).alias("exponent"),
    )
    # An array of one is how to compute a value once and use it several times.
    return F.transform(F.array(estimate), from_estimate).getItem(0)
