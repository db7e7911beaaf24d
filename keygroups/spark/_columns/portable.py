"""Java hash codes as column expressions made of public Spark functions only.

They run wherever Spark does, Spark Connect included, with ANSI mode on or off: integer
arithmetic happens in bigints that cannot overflow and is cut to 32 bits by bit operations.

The expressions are written once for two uses: as columns, and as the SQL text of the look-alike
of PySpark's functions in `keygroups.spark._columns.sql_text`. The bits of floats and doubles
come from Spark's `printf`, which is Java's Formatter: it writes the Java hashCode of a number
with `%h`, and the digits of a double with `%a`; nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql import types as T

from keygroups import types
from keygroups.spark._columns import murmur

_MASK32 = 0xFFFFFFFF
_SIGN32 = 0x80000000
# Spark's hash() starts from 42, and the hash of one column seeds the next. This int hashes
# to 0, so hash(this, code) is murmur3 of the code with seed 0.
_HASHES_TO_ZERO = -1693959553
# Texts of the Formatter that are not such as "0x1.8p3", and texts like it from which
# `double_bits` makes the same bits, with a biased exponent of 2047 or 0.
_ODD_ONES = {
    "NaN": " 0x1.8000000000000p1024",
    "Infinity": "0x1.0000000000000p1024",
    "0x0.0000000000000p0": "0x0.0000000000000p-1022",
}
_DIGITS, _SHORT = 39, 18
"""Digits of the text of a decimal's unscaled value, at most, and those that any bigint holds."""
# The numbers of 9 digits, and one of 3, of which an integer of 39 digits is made, the last first:
# their places in its text, and for each word that of their powers of 10.
_PLACES = ((31, 9), (22, 9), (13, 9), (4, 9), (1, 3))
_WORDS = [
    [10 ** (9 * i) >> shift & mask for i in range(5)]
    for shift, mask in ((0, _MASK32), (32, _MASK32), (64, -1))
]


class Portable:
    """The expressions that hash columns.

    `F` is `pyspark.sql.functions` or a `SqlFunctions`. `scala_hashers` has the methods for the key
    types whose `##` in Scala is not their hashCode. `hashers` has, for each key type without
    parameters that needs one column, the method that hashes it: it takes a column of the Spark
    type that holds the key type, and null gives null. `in_sql` says whether the same expressions
    may be had as SQL text.
    """

    in_sql = True

    most_fields = 4
    """Fields, at most, of a row that is hashed word by word.

    The code grows with them, and the JVM compiles no method of more than 8,000 bytes.
    """

    most_words = 16
    """Words, at most, that are hashed without a lambda function, whose code does not grow."""

    most_calls = 0
    """Calls, at most, that `write` a row in place; without that method, none."""

    write: Callable[[Column, Sequence[Column], Sequence[tuple[Column, Column]]], Column]
    """Returns bytes of a size: words of 8, and tails of a position and their bytes; zeros else.

    No column is null. A backend has it whose `most_calls` is not 0.
    """

    def __init__(self, F: Any) -> None:
        self.F = F
        self.hashers: dict[types.KeyType, Callable[[Column], Column]] = {
            types.BOOLEAN: self.hash_boolean,
            types.BYTE: self.hash_int,
            types.SHORT: self.hash_int,
            types.INT: self.hash_int,
            types.LONG: self.hash_long,
            types.FLOAT: self.hash_floating,
            types.DOUBLE: self.hash_floating,
            types.STRING: self.hash_string,
            types.BIG_DEC: self.hash_big_dec,
            types.LOCAL_DATE: self.hash_date,
            types.LOCAL_DATE_TIME: self.hash_date_time,
            types.INSTANT: self.hash_instant,
            types.UUID: self.hash_uuid,
            types.BYTE_BUFFER: self.hash_byte_buffer,
            types.HASHED: self.hash_int,
        }
        self.scala_hashers: dict[types.KeyType, Callable[[Column], Column]] = {
            types.LONG: self.scala_long,
            types.FLOAT: self.scala_float,
            types.DOUBLE: self.scala_double,
        }

    def finalise(self, code: Column, mask: int = 0x7FFFFFFF) -> Column:
        """Flink's murmur of an int column that is never null, as far as the mask goes."""
        F = self.F
        scrambled = self._murmur(code).cast("bigint")
        # abs() of Integer.MIN_VALUE is 2^31 in a bigint; the mask makes it Flink's 0.
        return F.abs(scrambled).bitwiseAND(murmur.long(F, mask)).cast("int")

    def _murmur(self, code: Column) -> Column:
        """Murmur3, from a state of 0, of an int column that is never null."""
        return self.F.hash(self.F.lit(_HASHES_TO_ZERO), code)

    def hash_words(self, words: Sequence[Column | None], start: int, size: int) -> Column:
        """Murmur3 of 4-byte words: bigints from 0 to 2^32 - 1, and None for 0.

        It goes from a state of `start` and is closed with `size`, both from 0 to 2^32 - 1.
        """
        state = murmur.long(self.F, start)
        if len(words) <= self.most_words:
            state = murmur.state_after(self.F, words, state)
        else:
            state = self.F.aggregate(
                self.F.array(
                    *(murmur.long(self.F, 0) if word is None else word for word in words)
                ),
                state,
                lambda state, word: self.low32(murmur.state_after(self.F, [word], state)),
            )
        return self._murmur(self.as_code(murmur.last_word(self.F, state, size)))

    def joined(self, *pieces: Column) -> Column:
        """Return binaries one after another.

        `spark.sql.function.concatBinaryAsString` makes text of the same bytes, hence the cast.
        """
        joined: Column = self.F.concat(*pieces).cast("binary")
        return joined

    def key_group(self, code: Column, max_parallelism: Column | int, key: Column | None) -> Column:
        """Return the key group of a hash code; null where `key`, which may be null, is.

        hash() skips a null instead of returning it. Asking the key and not its code spares Spark
        from computing the code twice.
        """
        if isinstance(max_parallelism, int) and max_parallelism & (max_parallelism - 1) == 0:
            # Modulo a power of two is the last bits: shorter code, which the JVM is more likely to
            # compile into the loop over the rows.
            group = self.finalise(code, max_parallelism - 1)
        else:
            group = self.finalise(code) % max_parallelism
        return group if key is None else self.F.when(key.isNotNull(), group)

    def of_whole_key(self, code: Column, key: Any, key_type: types.KeyType) -> Column:
        """Return the hash code of a whole key; `code` is that of these expressions."""
        return code

    def accept(self, condition: Column, value: Column, column: Column, message: str) -> Column:
        """Return a value where a condition holds, and null where a column is.

        Else the query fails with the message and the column's value.
        """
        F = self.F
        refused = F.raise_error(F.concat(F.lit(message), column.cast("string")))
        return F.when(condition, value).when(column.isNotNull(), refused)

    def bounded(self, name: str, column: Column, last: int, value: Column) -> Column:
        """Return a value where a column is in 0..last; null gives null, else the query fails."""
        message = f"{name} must be from 0 to {last}, got "
        return self.accept(column.between(0, last), value, column, message)

    def nth(self, values: Iterable[object], spark_type: T.DataType, index: Column) -> Column:
        """Return the value at an index, null out of bounds; texts of values must have no commas.

        One literal has them all, parsed once, when Spark optimises: thousands would take seconds.
        """
        F = self.F
        texts = F.split(F.lit(",".join(map(str, values))), ",")
        return F.get(texts.cast(T.ArrayType(spark_type)), index)

    def operator_index(
        self, key_group: Column, max_parallelism: Column | int, parallelism: Column | int
    ) -> Column:
        """Return the subtask of a key group that is in bounds; null where that is null."""
        # "/" gives a double, exact here: the dividend is below 2^30, and the cast cuts off.
        dividend = (key_group * parallelism).cast("double")
        divisor = self.F.lit(max_parallelism).cast("double")
        return (dividend / divisor).cast("int")

    def fold(self, codes: list[Column], start: int) -> Column:
        """Java's 31-fold of int columns; a null counts 0."""
        return self.fold_longs(codes, start)

    def fold_longs(self, codes: list[Column], start: int, plus: int = 0) -> Column:
        """Java's 31-fold of bigints not far beyond an int, plus a constant; a null counts 0.

        It is written as a sum of products with powers of 31, which nests less: Spark Connect
        takes no expression of more than about 45 levels.
        """
        F = self.F
        powers = [31 ** (len(codes) - 1 - i) for i in range(len(codes))]
        terms = [
            self.low32(F.coalesce(code.cast("bigint"), F.lit(0)) * signed32(power))
            for code, power in zip(codes, powers)
        ]
        return self.as_code(self.total(terms, start * 31 ** len(codes) + plus))

    def total(self, terms: list[Column], plus: int) -> Column:
        """Return the sum of non-negative 32-bit terms and a constant, as a balanced tree."""
        if plus or not terms:
            terms = [*terms, self.F.lit(plus % 2**32).cast("bigint")]
        while len(terms) > 1:
            pairs = [terms[i : i + 2] for i in range(0, len(terms), 2)]
            terms = [pair[0] + pair[1] if len(pair) == 2 else pair[0] for pair in pairs]
        return terms[0]

    def fold_array(self, array: Column, hasher: Callable[[Column], Column]) -> Column:
        """Java's 31-fold from 1 of the elements of an array; a null element counts 0."""
        F = self.F

        def step(result: Column, element: Column) -> Column:
            return self.low32(result * 31 + F.coalesce(hasher(element), F.lit(0)))

        return self.as_code(F.aggregate(array, F.lit(1).cast("bigint"), step))

    def as_code(self, number: Column) -> Column:
        """Cut a bigint to Java's signed 32 bits."""
        F = self.F
        code: Column = F.shiftright(F.shiftleft(number, 32), 32).cast("int")
        return code

    def low32(self, number: Column) -> Column:
        """Return the low 32 bits of a bigint, as one that is not negative."""
        return number.bitwiseAND(self.F.lit(_MASK32))

    def hash_int(self, column: Column) -> Column:
        """Byte.hashCode, Short.hashCode or Integer.hashCode: the value."""
        return column.cast("int")

    def hash_boolean(self, column: Column) -> Column:
        """Boolean.hashCode."""
        F = self.F
        return F.when(column, F.lit(1231)).when(~column, F.lit(1237))

    def hash_long(self, column: Column) -> Column:
        """Long.hashCode of a bigint: high word xor low word."""
        return self.as_code(column.bitwiseXOR(self.F.shiftrightunsigned(column, 32)))

    def hash_floating(self, column: Column) -> Column:
        """Float.hashCode or Double.hashCode."""
        return self.as_code(self._java_hash(column))

    def _java_hash(self, column: Column) -> Column:
        F = self.F
        # The Formatter writes null as "null"; conv() of no digits is null.
        digits = F.substring_index(F.printf(F.lit("%h"), column), "n", 1)
        return F.conv(digits, 16, 10).cast("bigint")

    def float_bits(self, column: Column, raw: bool) -> Column:
        """Float.floatToIntBits, which is the hashCode, as a bigint that is not negative.

        `raw` asks for a NaN's own bits, which these expressions cannot tell from another's.
        """
        return self._java_hash(column)

    def double_bits(self, column: Column, raw: bool) -> Column:
        """Double.doubleToLongBits of a double, as a bigint; `raw` is as in `float_bits`.

        `% .13a` writes a space or a minus, "0x1.", or "0x0." for a subnormal number, the 13
        hexadecimal digits of the significand, "p" and the exponent in decimal. It writes -1.5 as
        "-0x1.8000000000000p0": the significand with its leading 1 is 0x18000000000000, and that
        plus (0 + 1022) << 52, with the sign, is 0xBFF8000000000000.
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

    def hash_string(self, column: Column) -> Column:
        """String.hashCode: the 31-fold of the UTF-16 code units."""
        F = self.F

        # All are bigints: where Spark's analyser has to cast, it takes one more pass.
        def one_unit(code: Column, point: Column) -> Column:
            return self.low32(code * murmur.long(F, 31) + point)

        def one_or_two_units(code: Column, point: Column) -> Column:
            above = point - murmur.long(F, 0x10000)
            high = F.shiftright(above, 10) + murmur.long(F, 0xD800)
            low = above.bitwiseAND(murmur.long(F, 0x3FF)) + murmur.long(F, 0xDC00)
            both = high * murmur.long(F, 31) + low
            two_units = self.low32(code * murmur.long(F, 961) + both)
            is_one = point < murmur.long(F, 0x10000)
            return F.when(is_one, one_unit(code, point)).otherwise(two_units)

        def fold(text: Column, step: Callable[[Column, Column], Column]) -> Column:
            # ascii() gives any code point.
            return F.aggregate(
                F.split(text, ""), zero, lambda code, c: step(code, F.ascii(c).cast("bigint"))
            )

        zero = F.lit(0).cast("bigint")
        units = F.encode(column, "UTF-16BE")
        # Spark keeps bytes that are no UTF-8, and cuts them into other characters than Java does:
        # encoded and decoded once, they are Java's. A string of as many characters as bytes is cut
        # alike by both.
        is_utf8 = F.encode(column, "UTF-8") == column.cast("binary")
        one_unit_each = (F.octet_length(column) == F.length(column)) | (
            (F.octet_length(units) == F.length(column) * 2) & is_utf8
        )
        # Lambdas are interpreted, so the longer one is only for strings that need it.
        return self.as_code(
            F.when(one_unit_each, fold(column, one_unit)).otherwise(
                fold(F.decode(units, "UTF-16BE"), one_or_two_units)
            ),
        )

    def hash_byte_buffer(self, column: Column) -> Column:
        """ByteBuffer.hashCode: the 31-fold from 1 of the signed bytes, the last one first."""
        F = self.F
        # In ISO-8859-1 a byte is a character. No bytes would be split() into one empty text.
        characters = F.split(F.reverse(F.decode(column, "ISO-8859-1")), "")

        def step(code: Column, character: Column) -> Column:
            byte = F.ascii(character).bitwiseXOR(F.lit(0x80)) - 0x80
            return self.low32(code * 31 + byte)

        fold = F.aggregate(characters, F.lit(1).cast("bigint"), step)
        return F.when(F.octet_length(column) == 0, F.lit(1)).otherwise(self.as_code(fold))

    def scala_long(self, column: Column) -> Column:
        """`##` of a bigint: the value where it is an int's."""
        return self.F.when(column.between(-(2**31), 2**31 - 1), self.as_code(column)).otherwise(
            self.hash_long(column)
        )

    def scala_double(self, column: Column) -> Column:
        """`##` of a double: that of the first of Int, Long, Float and Double that equals it."""
        F = self.F
        single = column.cast("float")
        # NaN equals itself in Spark.
        is_single = (single.cast("double") == column) & ~F.isnan(column)
        other = F.when(is_single, self.hash_floating(single)).otherwise(self.hash_floating(column))
        return self._scala_whole(column, other)

    def scala_float(self, column: Column) -> Column:
        """`##` of a float: that of the first of Int, Long and Float that equals it."""
        F = self.F
        whole = self._scala_whole(column.cast("double"), self.hash_floating(column))
        return F.when(column == 2.0**31, F.lit(2**31 - 1)).otherwise(whole)

    def _scala_whole(self, column: Column, other: Column) -> Column:
        """Return the code of a double that is whole and a Long's; 2^63 equals the largest Long."""
        F = self.F
        whole = (F.abs(column) < 2.0**63) & (F.rint(column) == column)
        code = F.when(F.abs(column) == 2.0**63, F.lit(-(2**31)))
        return code.when(whole, self.scala_long(column.cast("bigint"))).otherwise(other)

    def hash_big_dec(self, column: Column) -> Column:
        """BigDecimal.hashCode, with the scale of the column's type."""
        F = self.F
        precision, scale = self._decimal_size(column)
        zeros = F.call_function("repeat", F.lit("0"), F.least(scale, F.lit(_SHORT)))
        power = F.concat(F.lit("1"), zeros).cast(T.DecimalType(_SHORT + 1, 0))
        short = self._hash_short((column * power).cast("bigint"))
        long = self._of_digits(self._unscaled_text(column), self._hash_words)
        # The condition is a constant: one of the two is left when Spark has optimised.
        is_short = (precision <= _SHORT) & (scale >= 0)
        return self.as_code(F.when(is_short, short).otherwise(long) * 31 + scale)

    def shared(self, value: Column, use: Callable[[Column], Column]) -> Column:
        """Return the result of a function whose argument Spark computes once for all its uses."""
        # aggregate() over an empty array is its last function, called with the start.
        return self.F.aggregate(self.F.array(), value, lambda value, _: value, use)

    def _of_digits(self, text: Column, use: Callable[[Column, Column], Column]) -> Column:
        """Return the result of `use` for the text of an integer of at most 38 digits.

        `use` gets its sign, 1 or -1, and the words of the number without it, as an array of
        bigints: two of 32 bits, the lowest first, and what is above. The digits are cut into
        numbers below 10^9, which count 1, 10^9, 10^18, ... times. Each such power has two words
        of 32 bits and one of more, and for each of their places there is a sum, below 2^63, of the
        numbers times their words: 12 * 10^9 + 345 has 12 * 0x3B9ACA00 + 345 alone.
        """
        F = self.F

        def of_text(text: Column) -> Column:
            # Spark's abs() and minus round a decimal to 34 digits.
            sign = F.when(text.startswith("-"), F.lit(-1)).otherwise(F.lit(1))
            digits = F.lpad(F.replace(text, F.lit("-"), F.lit("")), _DIGITS, "0")
            return self.shared(
                self.shared(self.shared(digits, numbers_of), sums_of), lambda sums: use(sign, sums)
            )

        def numbers_of(digits: Column) -> Column:
            return F.array(*(F.substring(digits, *place).cast("bigint") for place in _PLACES))

        def sums_of(numbers: Column) -> Column:
            sums = F.array(*(self._products(numbers, words) for words in _WORDS))
            return self.shared(sums, self._carried)

        return self.shared(text, of_text)

    def _products(self, numbers: Column, factors: Sequence[int]) -> Column:
        """Return the sum of bigints in an array, each times a factor."""
        pairs = [(index, factor) for index, factor in enumerate(factors) if factor]
        return self.total(
            [numbers.getItem(index) * murmur.long(self.F, factor) for index, factor in pairs], 0
        )

    def _carried(self, sums: Column) -> Column:
        """Return words of 32 bits of which what is above is added to the next one."""
        F = self.F
        word1 = sums.getItem(1) + F.shiftright(sums.getItem(0), 32)
        upper = sums.getItem(2) + F.shiftright(word1, 32)
        return F.array(self.low32(sums.getItem(0)), self.low32(word1), upper)

    def _hash_words(self, sign: Column, words: Column) -> Column:
        """BigInteger.hashCode, as a bigint of which 32 bits count."""
        upper = words.getItem(2)
        folded = words.getItem(0) + words.getItem(1) * 31 + self.low32(upper) * 31**2
        return (folded + self.F.shiftright(upper, 32) * 31**3) * sign

    def _hash_short(self, number: Column) -> Column:
        """BigInteger.hashCode of a bigint, as one of which 32 bits count."""
        two32 = self.F.lit(2**32)
        # Both words are cut towards zero, and so have the sign of the number.
        return number % two32 + self.F.call_function("div", number, two32) * 31

    def _decimal_size(self, column: Column) -> tuple[Column, Column]:
        """Return precision and scale of a decimal: constants, of the name of its type."""
        F, name = self.F, self.F.typeof(column)
        sizes = ("[(]([0-9]+),", ",(-?[0-9]+)[)]")
        precision, scale = (F.regexp_extract(name, size, 1).cast("int") for size in sizes)
        return precision, scale

    def _unscaled_text(self, column: Column, scale: int | None = None) -> Column:
        """Return the digits of a decimal's unscaled value, after a minus where it is negative.

        `scale` is that of its type, None if only Spark knows it: then it may be below zero, by a
        legacy setting. The text of a decimal is such as "-1.50"; with ANSI mode off it may be
        "0E-18" or "-1.0000000000E-8". That of a scale below zero is "1.23E+4" there, and with ANSI
        mode on "12300", whose last zeros go. The name of any other type matches nothing.
        """
        F, text = self.F, column.cast("string")
        plain = F.replace(F.substring_index(text, "E", 1), F.lit("."), F.lit(""))
        if scale is not None:
            return plain
        zeros = F.regexp_replace(F.typeof(column), "^.*-([0-9]+)[)]$", "(?<=[0-9])0{$1}")
        beside = F.concat(F.lit("[.]|E.*|"), zeros, F.lit("$"))
        _, own_scale = self._decimal_size(column)
        return F.when(own_scale >= 0, plain).otherwise(F.regexp_replace(text, beside, F.lit("")))

    def hash_date(self, column: Column) -> Column:
        """LocalDate.hashCode."""
        F = self.F
        year = F.year(column).cast("bigint")
        days = year * (1 << 11) + F.month(column) * (1 << 6) + F.dayofmonth(column)
        return self.as_code(year.bitwiseAND(F.lit(0xFFFFF800)).bitwiseXOR(days))

    def hash_date_time(self, column: Column) -> Column:
        """LocalDateTime.hashCode of a timestamp_ntz."""
        nano_of_day = self._micro_of_day(column) * 1_000
        return self.hash_date(column.cast("date")).bitwiseXOR(self.hash_long(nano_of_day))

    def _micro_of_day(self, column: Column) -> Column:
        F = self.F
        minutes = F.hour(column).cast("bigint") * 60 + F.minute(column)
        micros = (F.date_part(F.lit("SECOND"), column) * 1_000_000).cast("bigint")
        return minutes * 60_000_000 + micros

    def day_and_micros(self, column: Column) -> tuple[Column, Column]:
        """Return the epoch day of a timestamp_ntz and the microseconds since, as bigints."""
        return self.F.unix_date(column.cast("date")).cast("bigint"), self._micro_of_day(column)

    def hash_instant(self, column: Column) -> Column:
        """Instant.hashCode of a timestamp."""
        F = self.F
        # The first second of a timestamp of Spark begins before any bigint of microseconds.
        nanos = F.pmod(F.unix_micros(column), F.lit(1_000_000)) * 1_000
        return self.as_code(self.hash_long(F.unix_seconds(column)) + nanos * 51)

    def hash_uuid(self, column: Column) -> Column:
        """UUID.hashCode of its canonical text; other text fails the query."""
        F = self.F
        digits = F.regexp_replace(column, "-", "")
        words = [
            F.conv(F.substring(digits, start, 8), 16, 10).cast("bigint")
            for start in (1, 9, 17, 25)
        ]
        bits = words[0].bitwiseXOR(words[1]).bitwiseXOR(words[2]).bitwiseXOR(words[3])
        canonical = column.rlike("^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")
        message = "key of type UUID must be its canonical text, got "
        return self.accept(canonical, self.as_code(bits), column, message)

    def words(self, numbers: list[Column]) -> Column:
        """Return bigints that are not null as bytes, 8 each, the least significant first."""
        F = self.F
        nibbles = F.lit(0x0F0F0F0F0F0F0F0F)
        texts = []
        for number in numbers:
            # Digits back to front are bytes back to front, if the digits of each are swapped:
            # 0x1234 is swapped to 0x2143, and "2143" reversed is "3412".
            low, high = number.bitwiseAND(nibbles), F.shiftrightunsigned(number, 4)
            swapped = F.shiftleft(low, 4).bitwiseOR(high.bitwiseAND(nibbles))
            texts.append(F.reverse(F.lpad(F.hex(swapped), 16, "0")))
        return F.unhex(F.concat(*texts))

    def unscaled_long(self, column: Column, scale: int) -> Column:
        """Return the unscaled value of a decimal of at most 18 digits, as a bigint."""
        power = self.F.lit(10**scale).cast(T.DecimalType(scale + 1, 0))
        return (column * power).cast("bigint")

    def unscaled_bytes(self, column: Column, scale: int) -> Column:
        """BigInteger.toByteArray of the unscaled value of a decimal: big endian, no spare byte."""
        return self._of_digits(self._unscaled_text(column, scale), self._bytes_of_words)

    def _bytes_of_words(self, sign: Column, words: Column) -> Column:
        F = self.F
        word0, word1, upper = (words.getItem(place) * sign for place in range(3))
        # Two's complement: a negative word borrows one from the next.
        word1 = word1 + F.shiftright(word0, 63)
        lower = F.shiftleft(word1, 32).bitwiseOR(self.low32(word0))
        upper = upper + F.shiftright(word1, 63)
        digits = [F.lpad(F.hex(half), 16, "0") for half in (upper, lower)]
        spare = F.lit("^((00)+(?=[0-7])|(FF)+(?=[89A-F]))")
        return F.unhex(F.regexp_replace(F.concat(*digits), spare, F.lit("")))


def signed32(number: int) -> int:
    """Return the signed number of the same low 32 bits."""
    return (number + _SIGN32) % 2**32 - _SIGN32
