"""Java hash codes as column expressions made of public Spark functions only.

They run wherever Spark does, Spark Connect included, with ANSI mode on or off: integer
arithmetic happens in bigints that cannot overflow and is cut to 32 bits by bit operations.

The expressions are written once for two uses: `F` is `pyspark.sql.functions`, or the look-alike
of `keygroups.spark.sql_text`, which writes the same expression as SQL text.

Each hasher takes a column of the Spark type that holds its key type; null gives null.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from pyspark.sql import Column

from keygroups.spark.ieee754 import java_hash
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
    "day_and_micros",
    "finalise",
    "fold",
    "fold_array",
    "hash_long",
    "key_group",
    "low32",
    "operator_index",
    "total",
    "unscaled_bytes",
    "unscaled_long",
    "words",
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


def _floating(F: Any, column: Column) -> Column:
    return as_code(F, java_hash(F, column))


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

    zero = F.lit(0).cast("bigint")
    units = F.encode(column, "UTF-16BE")
    # Spark keeps bytes that are no UTF-8, and cuts them otherwise than Java reads them: there
    # and back they are what Java makes of them. In a string of as many characters as bytes, the
    # two cut alike.
    is_utf8 = F.encode(column, "UTF-8") == column.cast("binary")
    one_unit_each = (F.octet_length(column) == F.length(column)) | (
        (F.octet_length(units) == F.length(column) * 2) & is_utf8
    )
    # Lambdas are interpreted, so the longer one is only for strings that need it.
    return as_code(
        F,
        F.when(one_unit_each, F.aggregate(F.split(column, ""), zero, one_unit)).otherwise(
            F.aggregate(F.split(F.decode(units, "UTF-16BE"), ""), zero, one_or_two_units)
        ),
    )


def _big_dec(F: Any, column: Column) -> Column:
    sign, word0, word1, upper = _decimal_words(F, column)
    # The 31-fold of the words: a leading word of zero adds nothing to it.
    magnitude = word0 + word1 * 31 + low32(F, upper) * 961 + F.shiftright(upper, 32) * 29791
    # The scale is part of the column's type: a constant.
    scale = F.regexp_extract(F.typeof(column), "(-?[0-9]+)[)]", 1).cast("int")
    return as_code(F, magnitude * sign * 31 + scale)


def _decimal_words(F: Any, column: Column) -> tuple[Column, Column, Column, Column]:
    """Return the unscaled value of a decimal: its sign, and its magnitude as bigints.

    They are the two lower 32-bit words, and what is above.
    """
    # Whatever the precision, the text is "-1.50"; with ANSI mode off also "0E-18" or
    # "-1.0000000000E-8". A scale below zero (a legacy setting) is "1.23E+4" there, and with
    # ANSI mode on "12300", whose last zeros go. The name of any other type matches nothing.
    zeros = F.regexp_replace(F.typeof(column), "^.*-([0-9]+)[)]$", "(?<=[0-9])0{$1}")
    beside = F.concat(F.lit("[-.]|E.*|"), zeros, F.lit("$"))
    text = column.cast("string")
    digits = F.regexp_replace(text, beside, F.lit(""))
    magnitude = digits.cast("decimal(38,0)")
    two64 = F.lit(Decimal(2**64))
    # To the base of -10, conv() writes 64 bits as the bigint that has them.
    lower = F.conv((magnitude % two64).cast("string"), 10, -10).cast("bigint")
    # Compared with a number, a decimal of 38 digits would lose some.
    sign = F.when(text.startswith("-"), F.lit(-1)).otherwise(F.lit(1))
    upper = F.call_function("div", magnitude, two64)
    return sign, low32(F, lower), F.shiftrightunsigned(lower, 32), upper


def _local_date(F: Any, column: Column) -> Column:
    year = F.year(column).cast("bigint")
    days = year * (1 << 11) + F.month(column) * (1 << 6) + F.dayofmonth(column)
    return as_code(F, year.bitwiseAND(F.lit(0xFFFFF800)).bitwiseXOR(days))


def _local_date_time(F: Any, column: Column) -> Column:
    nano_of_day = _micro_of_day(F, column) * 1_000
    return _local_date(F, column.cast("date")).bitwiseXOR(hash_long(F, nano_of_day))


def _micro_of_day(F: Any, column: Column) -> Column:
    minutes = F.hour(column).cast("bigint") * 60 + F.minute(column)
    micros = (F.date_part(F.lit("SECOND"), column) * 1_000_000).cast("bigint")
    return minutes * 60_000_000 + micros


def day_and_micros(F: Any, column: Column) -> tuple[Column, Column]:
    """Return the epoch day of a timestamp_ntz and the microseconds since, as bigints."""
    return F.unix_date(column.cast("date")).cast("bigint"), _micro_of_day(F, column)


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


def words(F: Any, numbers: list[Column]) -> Column:
    """Return bigints that are not null as bytes, 8 each, the least significant first."""
    nibbles = F.lit(0x0F0F0F0F0F0F0F0F)
    texts = []
    for number in numbers:
        # Digits back to front are bytes back to front, if the digits of each are swapped.
        low, high = number.bitwiseAND(nibbles), F.shiftrightunsigned(number, 4)
        swapped = F.shiftleft(low, 4).bitwiseOR(high.bitwiseAND(nibbles))
        texts.append(F.reverse(F.lpad(F.hex(swapped), 16, "0")))
    return F.unhex(F.concat(*texts))


def unscaled_long(F: Any, column: Column, scale: int) -> Column:
    """Return the unscaled value of a decimal of at most 18 digits, as a bigint."""
    return (column * F.lit(10**scale).cast(f"decimal({scale + 1},0)")).cast("bigint")


def unscaled_bytes(F: Any, column: Column) -> Column:
    """BigInteger.toByteArray of the unscaled value of a decimal: big endian, no spare byte."""
    sign, *words = _decimal_words(F, column)
    word0, word1, upper = (word * sign for word in words)
    # Two's complement: a negative word borrows one from the next.
    word1 = word1 + F.shiftright(word0, 63)
    lower = F.shiftleft(word1, 32).bitwiseOR(low32(F, word0))
    digits = [F.lpad(F.hex(half), 16, "0") for half in (upper + F.shiftright(word1, 63), lower)]
    spare = F.lit("^((00)+(?=[0-7])|(FF)+(?=[89A-F]))")
    return F.unhex(F.regexp_replace(F.concat(*digits), spare, F.lit("")))


HASHERS: dict[KeyType, Callable[[Any, Column], Column]] = {
    BOOLEAN: _boolean,
    BYTE: _as_is,
    SHORT: _as_is,
    INT: _as_is,
    LONG: hash_long,
    FLOAT: _floating,
    DOUBLE: _floating,
    STRING: _string,
    BIG_DEC: _big_dec,
    LOCAL_DATE: _local_date,
    LOCAL_DATE_TIME: _local_date_time,
    INSTANT: _instant,
    UUID: _uuid,
}
"""The key types without parameters that need one column, and the expression that hashes it."""
