"""From arrays of Arrow to the Python values of types, and from Spark's values to arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import types as T

from keygroups._checks import show
from keygroups.errors import InvalidValueError
from keygroups.spark._savepoint.columns import SparkColumn


def values(name: str, array: Any, column: SparkColumn) -> list[Any]:
    """Return the values of an array of a column's type, None for null.

    Raises InvalidValueError with `name` for what Spark can hold and Python cannot: text that is
    not UTF-8, dates beyond the years 1 to 9999.
    """
    try:
        return column.restore(array)
    except UnicodeDecodeError as error:
        raise InvalidValueError(f"{name} must be UTF-8, got {show(error.object)}") from None
    except OverflowError:
        raise InvalidValueError(f"{name} must be of the years 1 to 9999, got another") from None
    except InvalidValueError as error:
        raise InvalidValueError(f"{name}: {error}") from None


def arrow_schema(schema: T.StructType) -> Any:
    """Return the schema that Arrow has for one of Spark."""
    import pyarrow as pa

    return pa.schema([pa.field(field.name, arrow_type(field.dataType)) for field in schema])


def arrow_type(spark_type: T.DataType) -> Any:
    """Return the type of Arrow that Spark takes for one of its own, down to names of fields."""
    import pyarrow as pa

    if isinstance(spark_type, T.DecimalType):
        return pa.decimal128(spark_type.precision, spark_type.scale)
    if isinstance(spark_type, T.ArrayType):
        return pa.list_(pa.field("element", arrow_type(spark_type.elementType)))
    if isinstance(spark_type, T.MapType):
        key = pa.field("key", arrow_type(spark_type.keyType), nullable=False)
        return pa.map_(key, pa.field("value", arrow_type(spark_type.valueType)))
    if isinstance(spark_type, T.StructType):
        return pa.struct([pa.field(of.name, arrow_type(of.dataType)) for of in spark_type])
    if isinstance(spark_type, T.TimestampType):
        return pa.timestamp("us", tz="UTC")
    if isinstance(spark_type, T.TimestampNTZType):
        return pa.timestamp("us")
    return pa.type_for_alias(_ALIASES[type(spark_type)])


_ALIASES: dict[type[T.DataType], str] = {
    T.BooleanType: "bool",
    T.ByteType: "int8",
    T.ShortType: "int16",
    T.IntegerType: "int32",
    T.LongType: "int64",
    T.FloatType: "float32",
    T.DoubleType: "float64",
    T.StringType: "string",
    T.BinaryType: "binary",
    T.DateType: "date32",
}


def arrow_array(values: Sequence[Any], spark_type: T.DataType) -> Any:
    """Return an array of values that Spark takes; InvalidValueError for one that does not fit."""
    import pyarrow as pa

    paired = _paired(spark_type)
    given = values if paired is None else [*map(paired, values)]
    try:
        return pa.array(given, arrow_type(spark_type))
    except (pa.ArrowException, OverflowError) as error:
        raise InvalidValueError(
            f"a value is none of {spark_type.simpleString()}: {error}"
        ) from None


def _paired(spark_type: T.DataType) -> Callable[[Any], Any] | None:
    """Return what makes pairs of the maps in a value, as Arrow takes them; None without maps."""
    if isinstance(spark_type, T.MapType):
        key, item = _paired(spark_type.keyType) or _same, _paired(spark_type.valueType) or _same
        return lambda value: value and [(key(of), item(to)) for of, to in value.items()]
    if isinstance(spark_type, T.ArrayType):
        element = _paired(spark_type.elementType)
        return element and (lambda value: value and [*map(element, value)])
    if isinstance(spark_type, T.StructType):
        parts = [_paired(field.dataType) for field in spark_type]
        if any(parts):
            makes = [part or _same for part in parts]
            return lambda value: value and tuple(make(part) for make, part in zip(makes, value))
    return None


def _same(value: Any) -> Any:
    return value
