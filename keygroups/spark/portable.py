"""Java hash codes as column expressions made of public Spark functions only.

They run wherever Spark does, Spark Connect included, with ANSI mode on or off: integer
arithmetic happens in bigints that cannot overflow and is cut to 32 bits by bit operations.

The expressions are written once for two uses: `F` is `pyspark.sql.functions`, or the look-alike
of `keygroups.spark.sql_text`, which writes the same expression as SQL text.

Each hasher takes a column of the Spark type that holds its key type; null gives null.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import Column

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
    UUID,
    KeyType,
)

__all__ = [
    "HASHERS",
    "as_code",
    "finalise",
    "fold",
    "fold_array",
    "hash_long",
    "key_group",
    "operator_index",
]

_MASK32 = 0xFFFFFFFF
_SIGN32 = 0x80000000
# Spark's hash() starts from 42, and the hash of one column seeds the next. This int hashes
# to 0, so hash(this, code) is murmur3 of the code with seed 0.
_HASHES_TO_ZERO = -1693959553


def finalise(F: Any, code: Column) -> Column:
    """Flink's murmur of an int column that is never null."""
    scrambled = F.hash(F.lit(_HASHES_TO_ZERO), code).cast("bigint")
    # abs() of Integer.MIN_VALUE is 2^31 in a bigint; the mask makes it Flink's 0.
    return F.abs(scrambled).bitwiseAND(F.lit(0x7FFFFFFF)).cast("int")


def key_group(F: Any, code: Column, max_parallelism: Column, key: Column | None) -> Column:
    """Return the key group of a hash code; null where `key`, which may be null, is.

    hash() skips a null instead of returning it. Asking the key and not its code spares Spark
    from computing the code twice.
    """
    group = finalise(F, code) % max_parallelism
    return group if key is None else F.when(key.isNotNull(), group)


def operator_index(
    F: Any, key_group: Column, max_parallelism: Column, parallelism: Column
) -> Column:
    """Return the subtask of a key group that is in bounds; null where that is null."""
    # "/" gives a double, exact here: the dividend is below 2^30.
    return F.floor(key_group * parallelism / max_parallelism).cast("int")


def fold(F: Any, codes: list[Column], start: int, plus: int = 0) -> Column:
    """Java's 31-fold of hash codes, plus a constant; a null counts 0.

    A code is an int, or a bigint not far beyond one. The fold is written as a sum of products
    with powers of 31, which nests less: Spark Connect takes no expression of more than about
    45 levels.
    """
    powers = [_signed32(31 ** (len(codes) - 1 - i)) for i in range(len(codes))]
    terms = [
        low32(F, F.coalesce(code.cast("bigint"), F.lit(0)) * power)
        for code, power in zip(codes, powers)
    ]
    return as_code(F, total(F, terms, start * 31 ** len(codes) + plus))


def total(F: Any, terms: list[Column], plus: int) -> Column:
    """Return the sum of non-negative 32-bit terms and a constant, as a balanced tree."""
    terms = [*terms, F.lit(plus % 2**32).cast("bigint")]
    while len(terms) > 1:
        pairs = [terms[i : i + 2] for i in range(0, len(terms), 2)]
        terms = [pair[0] + pair[1] if len(pair) == 2 else pair[0] for pair in pairs]
    return terms[0]


def _signed32(number: int) -> int:
    return (number + _SIGN32) % 2**32 - _SIGN32


def fold_array(F: Any, array: Column, hasher: Callable[[Column], Column]) -> Column:
    """Java's 31-fold from 1 of the elements of an array; a null element counts 0."""

    def step(result: Column, element: Column) -> Column:
        return low32(F, result * 31 + F.coalesce(hasher(element), F.lit(0)))

    return as_code(F, F.aggregate(array, F.lit(1).cast("bigint"), step))


def as_code(F: Any, number: Column) -> Column:
    """Cut a bigint to Java's signed 32 bits."""
    return (low32(F, number).bitwiseXOR(F.lit(_SIGN32)) - F.lit(_SIGN32)).cast("int")


def low32(F: Any, number: Column) -> Column:
    """Return the low 32 bits of a bigint, as one that is not negative."""
    return number.bitwiseAND(F.lit(_MASK32))


def _as_is(F: Any, column: Column) -> Column:
    return column.cast("int")


def _boolean(F: Any, column: Column) -> Column:
    return F.when(column, F.lit(1231)).when(~column, F.lit(1237))


def hash_long(F: Any, column: Column) -> Column:
    """Long.hashCode of a bigint: high word xor low word."""
    return as_code(F, column.bitwiseXOR(F.shiftrightunsigned(column, 32)))


def _double(F: Any, column: Column) -> Column:
    return hash_long(F, _ieee754(F, column, mantissa=52, bias=1023))


def _float(F: Any, column: Column) -> Column:
    return as_code(F, _ieee754(F, column.cast("double"), mantissa=23, bias=127))


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


def _string(F: Any, column: Column) -> Column:
    def one_unit(code: Column, character: Column) -> Column:
        return low32(F, code * 31 + F.ascii(character))  # the code point, not only of ASCII

    def one_or_two_units(code: Column, character: Column) -> Column:
        point = F.ascii(character)
        above = point - 0x10000
        high = F.shiftright(above, 10) + 0xD800
        low = above.bitwiseAND(F.lit(0x3FF)) + 0xDC00
        two_units = low32(F, code * 961 + high * 31 + low)
        return F.when(point < 0x10000, one_unit(code, character)).otherwise(two_units)

    # Lambdas are interpreted, so the longer one is only for strings that need it.
    characters, zero = F.split(column, ""), F.lit(0).cast("bigint")
    units = F.octet_length(F.encode(column, "UTF-16BE"))
    return as_code(
        F,
        F.when(units == F.length(column) * 2, F.aggregate(characters, zero, one_unit)).otherwise(
            F.aggregate(characters, zero, one_or_two_units)
        ),
    )


def _big_dec(F: Any, column: Column) -> Column:
    # The text has all we need, whatever the column's precision and scale: "-1.50", and
    # "0E-18" or "-1.0000000000E-8" where ANSI mode is off.
    text = column.cast("string")
    coefficient = F.substring_index(text, "E", 1)
    power = F.when(F.instr(text, "E") > 0, F.substring_index(text, "E", -1)).cast("int")
    point = F.instr(coefficient, ".")
    decimals = F.when(point > 0, F.length(coefficient) - point).otherwise(F.lit(0))
    scale = decimals - F.coalesce(power, F.lit(0))
    magnitude = _magnitude(F, F.translate(coefficient, "-.", ""))
    unscaled = F.when(text.startswith("-"), -magnitude).otherwise(magnitude)
    return as_code(F, unscaled * 31 + scale)


def _magnitude(F: Any, digits: Column) -> Column:
    """BigInteger.hashCode of decimal digits, as a bigint of up to 32 bits.

    38 digits make at most four 32-bit words, least significant first; a leading word of
    zero adds nothing to the 31-fold.
    """
    words = [f"w{i}" for i in range(4)]

    def step(number: Column, digit: Column) -> Column:
        carry = digit.cast("bigint")
        columns = []
        for word in words:
            product = number.getField(word) * 10 + carry
            columns.append(low32(F, product).alias(word))
            carry = F.shiftright(product, 32)
        return F.struct(*columns)

    def finish(number: Column) -> Column:
        code = number.getField(words[-1])
        for word in reversed(words[:-1]):
            code = low32(F, code * 31 + number.getField(word))
        return code

    zero = F.struct(*(F.lit(0).cast("bigint").alias(word) for word in words))
    long_magnitude = F.aggregate(F.split(digits, ""), zero, step, finish)
    # Up to 18 digits fit a bigint, which takes no loop.
    number = F.when(F.length(digits) <= 18, digits).cast("bigint")
    short_magnitude = F.shiftright(number, 32) * 31 + low32(F, number)
    return F.when(F.length(digits) <= 18, short_magnitude).otherwise(long_magnitude)


def _local_date(F: Any, column: Column) -> Column:
    year = F.year(column).cast("bigint")
    days = year * (1 << 11) + F.month(column) * (1 << 6) + F.dayofmonth(column)
    return as_code(F, year.bitwiseAND(F.lit(0xFFFFF800)).bitwiseXOR(days))


def _local_date_time(F: Any, column: Column) -> Column:
    minutes = F.hour(column).cast("bigint") * 60 + F.minute(column)
    micros = (F.date_part(F.lit("SECOND"), column) * 1_000_000).cast("bigint")
    nano_of_day = (minutes * 60_000_000 + micros) * 1_000
    return _local_date(F, column.cast("date")).bitwiseXOR(hash_long(F, nano_of_day))


def _instant(F: Any, column: Column) -> Column:
    seconds = F.unix_seconds(column)
    nanos = (F.unix_micros(column) - seconds * 1_000_000) * 1_000
    return as_code(F, hash_long(F, seconds) + nanos * 51)


def _uuid(F: Any, column: Column) -> Column:
    digits = F.regexp_replace(column, "-", "")
    words = [
        F.conv(F.substring(digits, start, 8), 16, 10).cast("bigint") for start in (1, 9, 17, 25)
    ]
    code = as_code(F, words[0].bitwiseXOR(words[1]).bitwiseXOR(words[2]).bitwiseXOR(words[3]))
    canonical = column.rlike("^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")
    refused = F.raise_error(
        F.concat(F.lit("key of type UUID must be its canonical text, got "), column)
    )
    return F.when(column.isNull(), None).when(canonical, code).otherwise(refused)


HASHERS: dict[KeyType, Callable[[Any, Column], Column]] = {
    BOOLEAN: _boolean,
    BYTE: _as_is,
    SHORT: _as_is,
    INT: _as_is,
    LONG: hash_long,
    FLOAT: _float,
    DOUBLE: _double,
    STRING: _string,
    BIG_DEC: _big_dec,
    LOCAL_DATE: _local_date,
    LOCAL_DATE_TIME: _local_date_time,
    INSTANT: _instant,
    UUID: _uuid,
}
"""The key types without parameters that need one column, and the expression that hashes it."""
