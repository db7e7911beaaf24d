"""Spark's types for those that columns have in Arrow."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as T


def spark_schema(schema: pa.Schema) -> T.StructType:
    """Return Spark's schema for one of Arrow."""
    return T.StructType([T.StructField(field.name, spark_type_of(field.type)) for field in schema])


def spark_type_of(arrow_type: pa.DataType) -> T.DataType:
    """Return Spark's type for one that a column has."""
    if pa.types.is_decimal(arrow_type):
        return T.DecimalType(arrow_type.precision, arrow_type.scale)
    if pa.types.is_map(arrow_type):
        return T.MapType(spark_type_of(arrow_type.key_type), spark_type_of(arrow_type.item_type))
    if pa.types.is_list(arrow_type):
        return T.ArrayType(spark_type_of(arrow_type.value_type))
    if pa.types.is_struct(arrow_type):
        return spark_schema(arrow_type)
    if pa.types.is_timestamp(arrow_type):
        return T.TimestampNTZType() if arrow_type.tz is None else T.TimestampType()
    return _SIMPLE[arrow_type]()


_SIMPLE: dict[pa.DataType, type[T.DataType]] = {
    pa.bool_(): T.BooleanType,
    pa.int8(): T.ByteType,
    pa.int16(): T.ShortType,
    pa.int32(): T.IntegerType,
    pa.int64(): T.LongType,
    pa.float32(): T.FloatType,
    pa.float64(): T.DoubleType,
    pa.string(): T.StringType,
    pa.binary(): T.BinaryType,
    pa.date32(): T.DateType,
}
