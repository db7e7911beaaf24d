"""Which Spark type holds a key, for tests that send keys of every type through Spark."""

from __future__ import annotations

import datetime as dt
import math
import struct
import uuid
from decimal import Decimal
from typing import Any

from pyspark.sql import types as T

from keygroups import types
from keygroups.logical_types import LogicalType

_SCALARS: dict[types.KeyType, T.DataType] = {
    types.BOOLEAN: T.BooleanType(),
    types.BYTE: T.ByteType(),
    types.SHORT: T.ShortType(),
    types.INT: T.IntegerType(),
    types.LONG: T.LongType(),
    types.FLOAT: T.FloatType(),
    types.DOUBLE: T.DoubleType(),
    types.STRING: T.StringType(),
    types.LOCAL_DATE: T.DateType(),
    types.LOCAL_DATE_TIME: T.TimestampNTZType(),
    types.INSTANT: T.TimestampType(),
    types.UUID: T.StringType(),
    types.BYTE_BUFFER: T.BinaryType(),
    types.HASHED: T.IntegerType(),
    types.SQL_DATE("UTC"): T.DateType(),
    types.SQL_TIMESTAMP("UTC"): T.TimestampType(),
}


class NoSparkTypeError(Exception):
    """No Spark type holds this key: a lone surrogate, a decimal of 39 digits, a map, ..."""


def in_spark(key_type: types.KeyType, key: Any) -> tuple[types.KeyType, T.DataType, Any]:
    """Return key type, Spark type and Spark value; a NULL part becomes an INT that is null."""
    if key_type is types.NULL:
        return types.INT, T.IntegerType(), None
    if isinstance(key_type, types.FieldsType):
        values = key if key is not None else (None,) * len(key_type.fields)
        fields = [in_spark(field, value) for field, value in zip(key_type.fields, values)]
        if not fields:
            raise NoSparkTypeError(key_type)
        struct = T.StructType([T.StructField(f"f{i}", f[1]) for i, f in enumerate(fields)])
        same = _of_fields(key_type, [f[0] for f in fields])
        return same, struct, None if key is None else tuple(f[2] for f in fields)
    if isinstance(key_type, types.SCALA_OPTION):
        element, spark_type, value = in_spark(key_type.element, key)
        return types.SCALA_OPTION(element, scala=key_type.scala), spark_type, value
    if isinstance(key_type, types.PYFLINK):
        if key_type.element == types.SQL_TIMESTAMP("UTC"):
            raise NoSparkTypeError(key_type)
        element, spark_type, value = in_spark(key_type.element, key)
        return types.PYFLINK(element), spark_type, value
    if isinstance(key_type, types.LIST):
        elements = [in_spark(key_type.element, element) for element in key or [None]]
        if any(element[:2] != elements[0][:2] for element in elements):
            raise NoSparkTypeError(key_type)
        array = T.ArrayType(elements[0][1])
        return (
            types.LIST(elements[0][0]),
            array,
            None if key is None else [e[2] for e in elements][: len(key)],
        )
    if key_type is types.BIG_DEC:
        return key_type, _decimal(key), key
    if key_type not in _SCALARS:
        raise NoSparkTypeError(key_type)
    return key_type, _SCALARS[key_type], _value(key_type, key)


def _of_fields(key_type: types.FieldsType, fields: list[types.KeyType]) -> types.KeyType:
    """Return a key type with other fields."""
    if isinstance(key_type, types.ROW):
        return types.ROW(*fields, kind=key_type.kind, names=key_type.names)
    if isinstance(key_type, types.OBJECTS_HASH):
        return types.OBJECTS_HASH(*fields, start=key_type.start)
    if isinstance(key_type, types.CASE_CLASS):
        return types.CASE_CLASS(key_type.name, *fields, scala=key_type.scala)
    if isinstance(key_type, types.SCALA_TUPLE):
        return types.SCALA_TUPLE(*fields, scala=key_type.scala)
    return types.TUPLE(*fields)


_SQL: dict[str, T.DataType] = {
    "BOOLEAN": T.BooleanType(),
    "TINYINT": T.ByteType(),
    "SMALLINT": T.ShortType(),
    "INT": T.IntegerType(),
    "BIGINT": T.LongType(),
    "FLOAT": T.FloatType(),
    "DOUBLE": T.DoubleType(),
    "DATE": T.DateType(),
    "CHAR": T.StringType(),
    "VARCHAR": T.StringType(),
    "BINARY": T.BinaryType(),
    "VARBINARY": T.BinaryType(),
    "TIMESTAMP": T.TimestampNTZType(),
    "TIMESTAMP_LTZ": T.TimestampType(),
}


def sql_type(logical_type: LogicalType) -> T.DataType:
    """Return the Spark type that holds a logical type of Flink SQL."""
    if logical_type.name == "DECIMAL":
        return T.DecimalType(logical_type.precision or 0, logical_type.scale or 0)
    if logical_type.name == "ROW":
        fields = enumerate(map(sql_type, logical_type.fields))
        return T.StructType([T.StructField(f"f{i}", field) for i, field in fields])
    if logical_type.name == "ARRAY":
        return T.ArrayType(sql_type(logical_type.fields[0]))
    if logical_type.name not in _SQL:
        raise NoSparkTypeError(logical_type)
    return _SQL[logical_type.name]


def sql_value(logical_type: LogicalType, value: Any) -> Any:
    """Return the value that Spark holds for one of a logical type."""
    if value is None:
        return None
    if logical_type.name == "ROW":
        return tuple(map(sql_value, logical_type.fields, value))
    if logical_type.name == "ARRAY":
        return [sql_value(logical_type.fields[0], element) for element in value]
    if isinstance(value, float) and math.isnan(value):
        if struct.pack(">d", value) != bytes.fromhex("7ff8000000000000"):
            raise NoSparkTypeError("another NaN, which Spark's own functions do not tell")
        return value
    return _value(types.STRING, value)


def _value(key_type: types.KeyType, key: Any) -> Any:
    if isinstance(key, str) and any("\ud800" <= char <= "\udfff" for char in key):
        raise NoSparkTypeError("a lone surrogate")
    if isinstance(key, uuid.UUID):
        return str(key)
    if isinstance(key, dt.datetime) and not dt.datetime(1, 1, 2) < key.replace(tzinfo=None) < (
        dt.datetime(9999, 12, 31)
    ):
        raise NoSparkTypeError("PySpark itself fails at the ends of the calendar")
    if isinstance(key_type, types.SQL_TIMESTAMP) and key is not None:
        return key.replace(tzinfo=dt.timezone.utc)
    return key


def _decimal(key: Decimal | None) -> T.DataType:
    scale = 0 if key is None else -int(key.as_tuple().exponent)
    digits = 0 if key is None else len(key.as_tuple().digits)
    if not 0 <= scale <= 38 or max(digits, scale) > 38:
        raise NoSparkTypeError("beyond 38 digits")
    return T.DecimalType(38, scale)
