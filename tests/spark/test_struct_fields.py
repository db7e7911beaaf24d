"""The field by which a struct is not the one that a state takes."""

from __future__ import annotations

import pytest
from pyspark.sql import types as T

from keygroups.spark._savepoint.rows.struct_fields import first_difference


def struct(**fields: T.DataType) -> T.StructType:
    return T.StructType([T.StructField(name, made) for name, made in fields.items()])


INT, LONG, DECIMAL = T.IntegerType(), T.LongType(), T.DecimalType(10, 2)


@pytest.mark.parametrize(
    ("spark_type", "wanted", "says"),
    [
        (INT, LONG, ""),
        (struct(a=INT, b=INT), struct(a=INT, b=LONG), ": its field b is int, not bigint"),
        (struct(a=INT), struct(a=INT, b=LONG), ": it has 1 fields, not 2"),
        (struct(a=struct(b=INT)), struct(a=struct()), ": a has 1 fields, not 0"),
        (
            struct(a=struct(b=DECIMAL)),
            struct(a=struct(b=T.DecimalType(12, 2))),
            ": its field a.b is decimal(10,2), not decimal(12,2)",
        ),
        (
            struct(a=T.ArrayType(struct(b=INT))),
            struct(a=T.ArrayType(struct(b=LONG))),
            ": its field a[].b is int, not bigint",
        ),
        (struct(a=INT, b=INT), struct(a=INT, c=INT), ": its field b must be called c"),
        (struct(a=struct(b=INT)), struct(a=struct(c=INT)), ": its field a.b must be called c"),
    ],
)
def test_the_first_field_that_differs(
    spark_type: T.DataType, wanted: T.DataType, says: str
) -> None:
    assert first_difference(spark_type, wanted, lambda mine, other: mine == other) == says
