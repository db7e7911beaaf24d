"""The field by which a struct is not the one that a state takes, for error texts."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import types as T

IsSame = Callable[[T.DataType, T.DataType], bool]


def first_difference(
    spark_type: T.DataType, wanted: T.DataType, is_same: IsSame, path: str = ""
) -> str:
    """Return words about the first field that differs, with both types; "" if none is inside.

    `is_same` compares the types of two fields, with the names of fields in them where these count.
    """
    if isinstance(spark_type, T.ArrayType) and isinstance(wanted, T.ArrayType):
        nested = spark_type.elementType, wanted.elementType
        return first_difference(*nested, is_same, f"{path}[]")
    if isinstance(spark_type, T.StructType) and isinstance(wanted, T.StructType):
        if len(spark_type) != len(wanted):
            return f": {path or 'it'} has {len(spark_type)} fields, not {len(wanted)}"
        start = f"{path}." if path else ""
        for field, other in zip(spark_type, wanted):
            nested = field.dataType, other.dataType
            if not is_same(*nested):
                return first_difference(*nested, is_same, f"{start}{field.name}")
        for name, other_name in zip(spark_type.names, wanted.names):
            if name != other_name:
                return f": its field {start}{name} must be called {other_name}"
    if not path:
        return ""
    return f": its field {path} is {spark_type.simpleString()}, not {wanted.simpleString()}"
