"""Java hash codes by Catalyst's own expressions, for classic sessions: the fast backend.

Catalyst can call the JDK's own hashCode in generated code, and its HiveHash is Java's hash of
ASCII strings and doubles, and Java's 31-fold of ints. These are internals of Spark, which may
change in any release: `fast_backend` tries them on known keys first, and answers None if
anything differs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import types as T

from keygroups.hashing import hash_code, murmur_hash
from keygroups.spark._columns.bare_columns import BareFunctions
from keygroups.spark._columns.portable import Portable, signed32
from keygroups.types import (
    BIG_DEC,
    BYTE_BUFFER,
    DOUBLE,
    FLOAT,
    INT,
    LIST,
    LONG,
    SQL_ROW,
    STRING,
    KeyType,
)

# Known keys and the Spark type of their column, to try each expression on.
_PROBES: list[tuple[KeyType, T.DataType, list[Any]]] = [
    (LONG, T.LongType(), [-1, 5 << 40, None]),
    (STRING, T.StringType(), ["hello", "h\u00e9llo", "\U0001f600", "", None]),
    (DOUBLE, T.DoubleType(), [1.5, 0.0, -0.0, float("nan"), None]),
    (FLOAT, T.FloatType(), [1.5, 0.0, -0.0, float("nan"), None]),
    (
        BIG_DEC,
        T.DecimalType(38, 2),
        [Decimal("-1.50"), Decimal("12345678901234567890123456789.01"), None],
    ),
    (BYTE_BUFFER, T.BinaryType(), [b"", b"a\xff", None]),
]
_FOLD_PROBE = [2**31 - 1, None, -5]
_MURMUR_PROBE = [5, -5, -2089875627]  # the last gives Integer.MIN_VALUE, of which Flink makes 0
_LONG_PROBE = -(5 << 40) - 7


class Catalyst(Portable):
    """The portable expressions, but Catalyst's in the JVM of a classic session where faster."""

    most_fields = 16
    most_calls = 48  # They nest, and hundreds are too deep for a JVM.

    def __init__(self, session: SparkSession) -> None:
        super().__init__(BareFunctions())
        jvm: Any = session._jvm
        # A name that py4j has to look up is sought in all jars as a class, which takes
        # milliseconds: each is looked up once.
        self._class = jvm.java.lang.Class.forName
        self._seq = jvm.PythonUtils.toSeq
        self._option = jvm.scala.Option
        sql = jvm.org.apache.spark.sql
        # In Spark 4.0 and newer a classic column has nodes: ExpressionUtils makes expressions.
        utils = sql.classic.ExpressionUtils
        self._utils: Any = utils if isinstance(utils, JavaClass) else None
        self._made_column = self._utils.column if self._utils else sql.Column
        self._column_class: Any = type(self.F.lit(0))
        self._expressions = sql.catalyst.expressions
        self._objects = sql.catalyst.expressions.objects
        self._types = sql.types
        utf8_string = self._class("org.apache.spark.unsafe.types.UTF8String")
        methods = {method.getName() for method in utf8_string.getMethods()}
        self._knows_ascii = "isFullAscii" in methods  # Spark 4.0 and newer have it.
        name = "org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke"
        [constructor] = self._class(name).getConstructors()
        # Spark 4.0 and newer also take the function of a catalog that the call stands for.
        has_function = constructor.getParameterCount() > 8
        self._no_function = [self._option.empty()] if has_function else []

    def fold(self, codes: list[Column], start: int) -> Column:
        """Java's 31-fold of int columns; a null counts 0."""
        return self._hive_hash(self.F.lit(start), *codes) if start else self._hive_hash(*codes)

    def finalise(self, code: Column, mask: int = 0x7FFFFFFF) -> Column:
        """Flink's murmur of an int column that is never null, as far as the mask goes."""
        never_null = self._expressions.KnownNotNull(self._expression(code))
        scrambled = self._expressions.Murmur3Hash(self._seq([never_null]), 0)
        # Like Math.abs, this leaves Integer.MIN_VALUE; the mask makes it Flink's 0.
        absolute = self._column(self._expressions.Abs(scrambled, False))
        return absolute.bitwiseAND(self.F.lit(mask))

    def hash_words(self, words: Sequence[Column | None], start: int, size: int) -> Column:
        """Murmur3 of 4-byte words: bigints from 0 to 2^32 - 1, and None for 0.

        Scala's murmur3 is that of a class whose state is its argument.
        """
        integer, none = self._types.DataTypes.IntegerType, self._seq([])
        murmur = self._class("scala.util.hashing.MurmurHash3")
        options = (False, self._types.ObjectType(murmur), self._option.empty())
        instance = self._objects.NewInstance(murmur, none, none, *options)
        state = self._expression(self.F.lit(signed32(start)))
        for word in words:
            # HiveHash of a bigint is its high half xor its low half, as an int.
            number = self._expression(self.F.lit(0) if word is None else self._hive_hash(word))
            state = self._invoke(instance, "mix", integer, state, number)
        length = self._expression(self.F.lit(size))
        return self._column(self._invoke(instance, "finalizeHash", integer, state, length))

    def write(
        self, size: Column, words: Sequence[Column], tails: Sequence[tuple[Column, Column]]
    ) -> Column:
        """Write into a ByteBuffer, which is zero at first."""
        steps = [("putLong", self._reversed(word)) for word in words]
        for position, data in tails:
            steps.append(("position", self._expression(position.cast("int"))))
            steps.append(("put", self._expression(data)))
        name = "java.nio.ByteBuffer"
        buffer_type = self._types.ObjectType(self._class(name))
        # Calls that change the buffer are not pure: Spark must not share one buffer between two
        # rows that begin alike. The bytes as a whole depend on the arguments alone.
        sized = self._expression(size.cast("int"))
        buffer = self._invoke_static(name, "allocate", buffer_type, sized, pure=False)
        for method, argument in steps:
            buffer = self._invoke(buffer, method, buffer_type, argument, pure=False)
        return self._column(self._invoke(buffer, "array", self._types.DataTypes.BinaryType))

    def hash_long(self, column: Column) -> Column:
        """Call Long.hashCode."""
        integer, child = self._types.DataTypes.IntegerType, self._expression(column)
        return self._column(self._invoke_static("java.lang.Long", "hashCode", integer, child))

    def hash_string(self, column: Column) -> Column:
        """Call String.hashCode, or HiveHash for ASCII."""
        code = self._java_hash_code(column, "toString", "java.lang.String")
        if not self._knows_ascii:
            return code
        boolean = self._types.DataTypes.BooleanType
        is_ascii = self._column(self._invoke(self._expression(column), "isFullAscii", boolean))
        return self.F.when(is_ascii, self._hive_hash(column)).otherwise(code)

    def hash_byte_buffer(self, column: Column) -> Column:
        """Call ByteBuffer.hashCode."""
        name, integer = "java.nio.ByteBuffer", self._types.DataTypes.IntegerType
        buffer_type = self._types.ObjectType(self._class(name))
        buffer = self._invoke_static(name, "wrap", buffer_type, self._expression(column))
        return self._column(self._invoke(buffer, "hashCode", integer))

    def hash_floating(self, column: Column) -> Column:
        """HiveHash, which is Java's hash but for zeros and null."""
        # HiveHash takes -0.0 for 0.0 and null for 0; only its text tells one zero from another.
        minus_zero = self.F.when(column.cast("string").startswith("-"), self.F.lit(-(2**31)))
        zero = minus_zero.otherwise(self.F.lit(0))
        return self.F.when(column == 0.0, zero).when(column.isNotNull(), self._hive_hash(column))

    def hash_big_dec(self, column: Column) -> Column:
        """Call BigDecimal.hashCode."""
        return self._java_hash_code(column, "toJavaBigDecimal", "java.math.BigDecimal")

    def _micro_of_day(self, column: Column) -> Column:
        """Take a timestamp_ntz for the bigint of microseconds that it is."""
        data_types = self._types.DataTypes
        micros = self._expressions.PreciseTimestampConversion(
            self._expression(column), data_types.TimestampNTZType, data_types.LongType
        )
        return self.F.pmod(self._column(micros), self.F.lit(86_400_000_000))

    def words(self, numbers: list[Column]) -> Column:
        """Return bigints that are not null as bytes, 8 each, the least significant first."""
        data_types = self._types.DataTypes
        made = []
        for number in numbers:
            converter = "org.apache.spark.sql.catalyst.util.NumberConverter"
            binary = self._invoke_static(
                converter, "toBinary", data_types.BinaryType, self._reversed(number)
            )
            made.append(self._column(binary))
        return made[0] if len(made) == 1 else self.joined(*made)

    def double_bits(self, column: Column, raw: bool) -> Column:
        """Call Double.doubleToLongBits, or the raw one, which tells NaNs apart."""
        method = "doubleToRawLongBits" if raw else "doubleToLongBits"
        long, child = self._types.DataTypes.LongType, self._expression(column)
        return self._column(self._invoke_static("java.lang.Double", method, long, child))

    def float_bits(self, column: Column, raw: bool) -> Column:
        """Call Float.floatToIntBits, or the raw one, which tells NaNs apart."""
        method = "floatToRawIntBits" if raw else "floatToIntBits"
        integer, child = self._types.DataTypes.IntegerType, self._expression(column)
        bits = self._invoke_static("java.lang.Float", method, integer, child)
        return self.low32(self._column(bits).cast("bigint"))

    def unscaled_long(self, column: Column, scale: int) -> Column:
        """Return the unscaled value of a decimal of at most 18 digits, as a bigint."""
        return self._column(self._expressions.UnscaledValue(self._expression(column)))

    def unscaled_bytes(self, column: Column, scale: int) -> Column:
        """Call BigInteger.toByteArray on the unscaled value of a decimal."""
        big_decimal, big_integer = (
            self._types.ObjectType(self._class(f"java.math.{name}"))
            for name in ("BigDecimal", "BigInteger")
        )
        number = self._invoke(self._expression(column), "toJavaBigDecimal", big_decimal)
        unscaled = self._invoke(number, "unscaledValue", big_integer)
        return self._column(
            self._invoke(unscaled, "toByteArray", self._types.DataTypes.BinaryType)
        )

    def is_pure(self, column: Column) -> bool:
        """Return whether Spark takes a column for a function of its arguments."""
        return bool(self._expression(column).deterministic())

    def _java_hash_code(self, column: Column, convert: str, java_class: str) -> Column:
        """Convert a value to an object of the JDK and call its hashCode()."""
        object_type = self._types.ObjectType(self._class(java_class))
        java_object = self._invoke(self._expression(column), convert, object_type)
        integer = self._types.DataTypes.IntegerType
        return self._column(self._invoke(java_object, "hashCode", integer))

    def _hive_hash(self, *columns: Column) -> Column:
        children = self._seq([self._expression(column) for column in columns])
        return self._column(self._expressions.HiveHash(children))

    def _reversed(self, number: Column) -> Any:
        long, child = self._types.DataTypes.LongType, self._expression(number)
        return self._invoke_static("java.lang.Long", "reverseBytes", long, child)

    def _invoke(
        self, target: Any, method: str, result: Any, *arguments: Any, pure: bool = True
    ) -> Any:
        # No types of arguments; a null argument gives null; the method itself never gives null.
        described = (target, method, result, self._seq(list(arguments)), self._seq([]))
        return self._objects.Invoke(*described, True, False, pure)

    def _invoke_static(
        self, java_class: str, method: str, result: Any, *arguments: Any, pure: bool = True
    ) -> Any:
        described = (self._class(java_class), result, method, self._seq(list(arguments)))
        return self._objects.StaticInvoke(
            *described, self._seq([]), True, False, pure, *self._no_function
        )

    def _expression(self, column: Column) -> Any:
        java_column: Any = column._jc
        return self._utils.expression(java_column) if self._utils else java_column.expr()

    def _column(self, expression: Any) -> Column:
        column: Column = self._column_class(self._made_column(expression))
        return column


def fast_backend(session: SparkSession) -> Catalyst | None:
    """Return Catalyst's expressions if this Spark has them and they are right, else None."""
    try:
        catalyst = Catalyst(session)
        columns, expected = zip(*_probes(catalyst))
        # A job of one row.
        row = session.sql("select 1").select(*columns).first()
        pure = catalyst.is_pure(_written(catalyst))
    except (Py4JError, PySparkException):
        return None
    return catalyst if pure and row is not None and tuple(row) == expected else None


def _probes(catalyst: Catalyst) -> Iterator[tuple[Column, Any]]:
    """Yield columns of literals, each with the value that it has if this Spark is as expected."""
    F = catalyst.F
    for key_type, spark_type, keys in _PROBES:
        for key in keys:
            code = None if key is None else hash_code(key, key_type)
            yield catalyst.hashers[key_type](F.lit(key).cast(spark_type)), code
    codes = [F.lit(code).cast("int") for code in _FOLD_PROBE]
    yield catalyst.fold(codes, 1), hash_code(_FOLD_PROBE, LIST(INT))
    for code in _MURMUR_PROBE:
        yield catalyst.finalise(F.lit(code)), murmur_hash(code)
    bigint = F.lit(_LONG_PROBE).cast("bigint")
    words = [catalyst.low32(bigint), F.shiftrightunsigned(bigint, 32)]
    row_hash = hash_code((_LONG_PROBE,), SQL_ROW("BIGINT"))
    yield catalyst.hash_words([F.lit(0).cast("bigint"), None, *words], 42, 16), row_hash
    number = _LONG_PROBE.to_bytes(8, "little", signed=True)
    yield catalyst.words([bigint]), number
    yield _written(catalyst), number + b"ab" + bytes(6)
    for raw in (False, True):
        double, single = struct.unpack("<qI", struct.pack("<df", -1.5, -1.5))
        yield catalyst.double_bits(F.lit(-1.5), raw), double
        yield catalyst.float_bits(F.lit(-1.5).cast("float"), raw), single
    decimal = F.lit(Decimal(_LONG_PROBE).scaleb(-2))
    yield catalyst.unscaled_long(decimal.cast(T.DecimalType(18, 2)), 2), _LONG_PROBE
    unscaled = _LONG_PROBE.to_bytes(6, "big", signed=True)
    yield catalyst.unscaled_bytes(decimal.cast(T.DecimalType(38, 2)), 2), unscaled
    just_before = F.lit("1969-12-31 23:59:59.999999").cast(T.TimestampNTZType())
    yield from zip(catalyst.day_and_micros(just_before), (-1, 86_399_999_999))


def _written(catalyst: Catalyst) -> Column:
    size, at, number = (catalyst.F.lit(value).cast("bigint") for value in (16, 8, _LONG_PROBE))
    return catalyst.write(size, [number], [(at, catalyst.F.lit(b"ab"))])
