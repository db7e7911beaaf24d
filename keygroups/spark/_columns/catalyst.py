"""Java hash codes by Catalyst's own expressions, for classic sessions: the fast path.

Catalyst can call the JDK's own hashCode in generated code, and its HiveHash is Java's hash of
ASCII strings and doubles, and Java's 31-fold of ints. These are internals of Spark, which may
change in any release: `fast_path` tries them on known keys first, and answers None if
anything differs.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from keygroups.hashing import hash_code
from keygroups.spark._columns.portable import Portable
from keygroups.types import BIG_DEC, DOUBLE, FLOAT, INT, LIST, STRING, KeyType

# Known keys and the Spark type of their column, to try each expression on.
_PROBES: list[tuple[KeyType, str, list[Any]]] = [
    (STRING, "string", ["hello", "h\u00e9llo", "\U0001f600", "", None]),
    (DOUBLE, "double", [1.5, 0.0, -0.0, float("nan"), None]),
    (FLOAT, "float", [1.5, 0.0, -0.0, float("nan"), None]),
    (
        BIG_DEC,
        "decimal(38,2)",
        [Decimal("-1.50"), Decimal("12345678901234567890123456789.01"), None],
    ),
]
_FOLD_PROBE = [2**31 - 1, None, -5]
_UNSCALED_PROBE = -150


class Catalyst(Portable):
    """The portable expressions, but Catalyst's in the JVM of a classic session where faster."""

    def __init__(self, session: SparkSession) -> None:
        super().__init__(F)
        jvm: Any = session._jvm
        self._jvm = jvm
        sql = jvm.org.apache.spark.sql
        # From Spark 4.0 a classic column is made of nodes, and this turns them into expressions.
        utils = sql.classic.ExpressionUtils
        self._utils: Any = utils if isinstance(utils, JavaClass) else None
        self._column_class: Any = type(F.lit(0))
        self._expressions = sql.catalyst.expressions
        self._types = sql.types
        utf8_string = self._class("org.apache.spark.unsafe.types.UTF8String")
        methods = {method.getName() for method in utf8_string.getMethods()}
        self._knows_ascii = "isFullAscii" in methods  # from Spark 4.0
        name = "org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke"
        [constructor] = self._class(name).getConstructors()
        # From Spark 4.0 it also takes the function of a catalog that it stands for.
        has_function = constructor.getParameterCount() > 8
        self._no_function = [jvm.scala.Option.empty()] if has_function else []

    def fold(self, codes: list[Column], start: int) -> Column:
        """Java's 31-fold of int columns; a null counts 0."""
        return self._hive_hash(F.lit(start), *codes) if start else self._hive_hash(*codes)

    def hash_string(self, column: Column) -> Column:
        """Call String.hashCode, or HiveHash for ASCII."""
        code = self._java_hash_code(column, "toString", "java.lang.String")
        if not self._knows_ascii:
            return code
        boolean = self._types.DataTypes.BooleanType
        is_ascii = self._column(self._invoke(self._expression(column), "isFullAscii", boolean))
        return F.when(is_ascii, self._hive_hash(column)).otherwise(code)

    def hash_floating(self, column: Column) -> Column:
        """HiveHash, which is Java's hash but for zeros and null."""
        # HiveHash takes -0.0 for 0.0 and null for 0; only its text tells one zero from another.
        minus_zero = F.when(column.cast("string").startswith("-"), F.lit(-(2**31)))
        zero = minus_zero.otherwise(F.lit(0))
        return F.when(column == 0.0, zero).when(column.isNotNull(), self._hive_hash(column))

    def hash_big_dec(self, column: Column) -> Column:
        """Call BigDecimal.hashCode."""
        return self._java_hash_code(column, "toJavaBigDecimal", "java.math.BigDecimal")

    def words(self, numbers: list[Column]) -> Column:
        """Return bigints that are not null as bytes, 8 each, the least significant first."""
        data_types = self._types.DataTypes
        made = []
        for number in numbers:
            reversed_ = self._invoke_static(
                "java.lang.Long", "reverseBytes", data_types.LongType, self._expression(number)
            )
            converter = "org.apache.spark.sql.catalyst.util.NumberConverter"
            binary = self._invoke_static(converter, "toBinary", data_types.BinaryType, reversed_)
            made.append(self._column(binary))
        return made[0] if len(made) == 1 else F.concat(*made)

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

    def unscaled_bytes(self, column: Column) -> Column:
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

    def _java_hash_code(self, column: Column, convert: str, java_class: str) -> Column:
        """Convert a value to an object of the JDK and call its hashCode()."""
        object_type = self._types.ObjectType(self._class(java_class))
        java_object = self._invoke(self._expression(column), convert, object_type)
        integer = self._types.DataTypes.IntegerType
        return self._column(self._invoke(java_object, "hashCode", integer))

    def _hive_hash(self, *columns: Column) -> Column:
        children = self._seq([self._expression(column) for column in columns])
        return self._column(self._expressions.HiveHash(children))

    def _invoke(self, target: Any, method: str, result: Any) -> Any:
        none = self._seq([])
        # No arguments of no types; null gives null; the result may be null; deterministic.
        return self._expressions.objects.Invoke(
            target, method, result, none, none, True, True, True
        )

    def _invoke_static(self, java_class: str, method: str, result: Any, argument: Any) -> Any:
        # No types; null gives null; the result may be null; deterministic.
        described = (self._class(java_class), result, method, self._seq([argument]))
        return self._expressions.objects.StaticInvoke(
            *described, self._seq([]), True, True, True, *self._no_function
        )

    def _expression(self, column: Column) -> Any:
        java_column: Any = column._jc
        return self._utils.expression(java_column) if self._utils else java_column.expr()

    def _column(self, expression: Any) -> Column:
        make = self._utils.column if self._utils else self._jvm.org.apache.spark.sql.Column
        column: Column = self._column_class(make(expression))
        return column

    def _seq(self, items: list[Any]) -> Any:
        return self._jvm.PythonUtils.toSeq(items)

    def _class(self, name: str) -> Any:
        return self._jvm.java.lang.Class.forName(name)


def fast_path(session: SparkSession) -> Catalyst | None:
    """Return Catalyst's expressions if this Spark has them and they are right, else None."""
    try:
        catalyst = Catalyst(session)
        columns: list[Column] = []
        expected: list[Any] = []
        for key_type, spark_type, keys in _PROBES:
            for key in keys:
                columns.append(catalyst.hashers[key_type](F.lit(key).cast(spark_type)))
                expected.append(None if key is None else hash_code(key, key_type))
        codes = [F.lit(code).cast("int") for code in _FOLD_PROBE]
        columns.append(catalyst.fold(codes, 1))
        expected.append(hash_code(_FOLD_PROBE, LIST(INT)))
        columns.append(catalyst.words([F.lit(_UNSCALED_PROBE).cast("bigint")]))
        expected.append(_UNSCALED_PROBE.to_bytes(8, "little", signed=True))
        for raw in (False, True):
            columns.append(catalyst.double_bits(F.lit(-1.5), raw))
            columns.append(catalyst.float_bits(F.lit(-1.5).cast("float"), raw))
            expected += struct.unpack("<qI", struct.pack("<df", -1.5, -1.5))
        decimal = F.lit(Decimal(_UNSCALED_PROBE).scaleb(-2))
        columns.append(catalyst.unscaled_long(decimal.cast("decimal(18,2)"), 2))
        expected.append(_UNSCALED_PROBE)
        columns.append(catalyst.unscaled_bytes(decimal.cast("decimal(38,2)")))
        expected.append(_UNSCALED_PROBE.to_bytes(2, "big", signed=True))
        # A row of literals is folded into the plan, so this starts no job.
        found = session.sql("select 1").select(columns).first()
    except (Py4JError, PySparkException):
        return None
    return catalyst if found is not None and list(found) == expected else None
