"""Spark's types for Flink's serializers, and how the values that they read become Spark's.

A converter takes all values of a column at once and returns them as Spark takes them. It looks at
each: what Spark would change, or hold as something else, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from itertools import chain, islice
from typing import Any, NamedTuple

from pyspark.sql import types as T

from keygroups._checks import show
from keygroups._serializers import (
    avro,
    collections,
    compounds,
    kryo,
    pojos,
    python_rows,
    scalars,
    sql_rows,
    streaming,
    table_runtime,
)
from keygroups._values.bitmaps import Bitmap
from keygroups._values.checks import EPOCH
from keygroups._values.java_values import Variant
from keygroups._values.sql import Node, WindowKey
from keygroups.binary_row import items_of
from keygroups.errors import InvalidValueError
from keygroups.logical_types import LogicalType
from keygroups.savepoint import (
    GlobalWindow,
    Pojo,
    Row,
    Serializer,
    TimestampData,
    TimeWindow,
    TtlValue,
)
from keygroups.state_keys import serializer_of

Convert = Callable[[Sequence[Any]], Sequence[Any]]

_MICROSECOND_DIGITS = 6


class SparkColumn(NamedTuple):
    """A type of Spark, and what makes its values."""

    data_type: T.DataType
    convert: Convert


def column_of(serializer: Serializer) -> SparkColumn | None:
    """Return the column for the values of a serializer; None where all of them are None."""
    if serializer.read is None:
        return BINARY
    if type(serializer) not in COLUMNS and serializer.key_type is not None:  # of a user's own
        serializer = serializer_of(serializer.key_type)
    if _is_open(serializer):
        return _TEXT
    column = COLUMNS.get(type(serializer), BINARY)
    return column(serializer) if callable(column) else column


def key_column_of(serializer: Serializer) -> SparkColumn | None:
    """Return the column for keys; it leaves out the kind of Flink SQL's, which is always "+I"."""
    if isinstance(serializer, sql_rows.RowDataSerializer):
        return _sql_row_of(serializer.fields, is_key=True)
    return column_of(serializer)


def is_of_the_job(serializer: Serializer) -> bool:
    """Return whether there may be values that take the job's classes to read."""
    if serializer.read is None or isinstance(
        serializer, (kryo.KryoSerializer, pojos.PojoSerializer)
    ):
        return True  # a POJO may be of a subclass
    return any(map(is_of_the_job, serializer.parts))


def _is_open(serializer: Serializer) -> bool:
    """Return whether there are values of which the serializer does not tell Spark's type."""
    is_open = serializer.read is None or isinstance(serializer, _OPEN)
    return is_open or any(map(_is_open, serializer.parts))


def array_of(element: SparkColumn) -> SparkColumn:
    """Return the column of arrays."""

    def convert(values: Sequence[Any]) -> Sequence[Any]:
        arrays = _present(values, list)
        elements = list(chain.from_iterable(arrays))
        converted = element.convert(elements)
        if converted is elements:
            return values
        rest = iter(converted)
        return _refilled(values, [list(islice(rest, len(array))) for array in arrays])

    return SparkColumn(T.ArrayType(element.data_type), convert)


def ttl_of(value: SparkColumn) -> SparkColumn:
    """Return the column of values with their last access."""
    return _struct_of(["last_access", "value"], [_LONG, value], TtlValue)


def _part(serializer: Serializer) -> SparkColumn:
    """Return the column of what is inside another; strings where all of it is None."""
    return column_of(serializer) or _STRING


def _only_part(serializer: Serializer) -> SparkColumn | None:
    """Return the column of what writes as the one within."""
    return column_of(serializer.parts[0])


def _typed(serializer: Serializer) -> SparkColumn:
    """Return the column of a TypedSerializer; what is nested has one of its own."""
    [field], [part] = serializer.fields, serializer.parts
    return _part(part) if field.fields else _logical(field, is_key=False)


def _numbered(parts: Sequence[object]) -> list[str]:
    """Return the names that Flink gives fields without one."""
    return [f"f{index}" for index in range(len(parts))]


def _struct_of(
    names: Collection[str], parts: Sequence[SparkColumn], cls: type = tuple
) -> SparkColumn:
    def convert(values: Sequence[Any]) -> Sequence[Any]:
        rows = _present(values, cls)
        columns = [part.convert(column) for part, column in zip(parts, zip(*rows))]
        return _refilled(values, list(zip(*columns)) if columns else [()] * len(rows))

    fields = [T.StructField(name, part.data_type) for name, part in zip(names, parts)]
    return SparkColumn(T.StructType(fields), convert)


def _row_of(parts: Sequence[SparkColumn]) -> SparkColumn:
    """Return the column of Rows, which have a kind beside their fields."""
    fields = _struct_of([*_numbered(parts), "row_kind"], [*parts, _STRING])

    def convert(values: Sequence[Any]) -> Sequence[Any]:
        rows = _present(values, Row)
        return fields.convert(_refilled(values, [(*row, row.row_kind) for row in rows]))

    return SparkColumn(fields.data_type, convert)


def _pojo_of(serializer: Serializer) -> SparkColumn:
    names = serializer.names
    fields = _struct_of(names, [*map(_part, serializer.parts)])

    def convert(values: Sequence[Any]) -> Sequence[Any]:
        pojos = _present(values, Pojo)
        for pojo in pojos:
            if pojo.java_class != serializer.java_class:  # a subclass, which has other fields
                raise _unfit(pojo)
        rows = [tuple(pojo[name] for name in names) for pojo in pojos]
        return fields.convert(_refilled(values, rows))

    return SparkColumn(fields.data_type, convert)


def _map_of(key: SparkColumn, value: SparkColumn) -> SparkColumn:
    def convert(values: Sequence[Any]) -> Sequence[Any]:
        # A map is a list of pairs where Python takes two keys of Java for one.
        maps = _present(values, dict)
        keys = iter(key.convert(list(chain.from_iterable(maps))))
        items = iter(value.convert(list(chain.from_iterable(one.values() for one in maps))))
        converted = [dict(zip(islice(keys, len(one)), islice(items, len(one)))) for one in maps]
        if any(None in one for one in converted):
            raise InvalidValueError("a map has the key null, which no map of Spark has")
        return _refilled(values, converted)

    return SparkColumn(T.MapType(key.data_type, value.data_type), convert)


def _sql_row_of(fields: Sequence[LogicalType], is_key: bool) -> SparkColumn:
    parts = [_logical(field, is_key) for field in fields]
    if not is_key:
        return _row_of(parts)
    row = _struct_of(_numbered(parts), parts, Row)

    def convert(values: Sequence[Any]) -> Sequence[Any]:
        for value in values:
            if value is not None and value.row_kind != "+I":
                raise _unfit(value)
        return row.convert(values)

    return SparkColumn(row.data_type, convert)


def _logical(field: LogicalType, is_key: bool) -> SparkColumn:
    """Return the column of a type of Flink SQL."""
    name = field.name
    if name == "ROW":
        return _sql_row_of(field.fields, is_key)
    if name == "ARRAY":
        return array_of(_logical(field.fields[0], is_key))
    if name == "DECIMAL":
        decimal = T.DecimalType(field.precision or 10, field.scale or 0)
        return SparkColumn(decimal, _checked(Decimal))
    if name in _TIMESTAMPS:
        is_fine = (field.precision or 0) > _MICROSECOND_DIGITS
        return _FINE_TIMESTAMP if is_fine else _TIMESTAMPS[name]
    if name in ("MAP", "MULTISET"):
        return _map_of(*(_logical(of, is_key) for of in items_of(field)))
    return _LOGICAL.get(name, BINARY)  # RAW is its bytes


# --- values -----------------------------------------------------------------------------


def _present(values: Iterable[Any], *classes: type) -> list[Any]:
    """Return the values that are not None, all of some classes."""
    present = [value for value in values if value is not None]
    _check_classes(present, *classes)
    return present


def _refilled(values: Sequence[Any], converted: list[Any]) -> Sequence[Any]:
    """Return the converted values with None where it was before."""
    if len(converted) == len(values):
        return converted
    rest = iter(converted)
    return [None if value is None else next(rest) for value in values]


def _check_classes(values: Sequence[Any], *classes: type) -> None:
    others = set(map(type, values)).difference(classes)
    for value in values if others else ():
        if type(value) in others:
            raise _unfit(value)


def _unfit(value: object) -> InvalidValueError:
    return InvalidValueError(
        f"{show(value)} is nothing that a column of Spark holds unchanged: read it with "
        "keygroups.savepoint"
    )


def _checked(*classes: type) -> Convert:
    """Make what takes values as they are, if they are of some classes or None."""

    def convert(values: Sequence[Any]) -> Sequence[Any]:
        _check_classes(values, *classes, type(None))
        return values

    return convert


def _mapped(function: Callable[[Any], Any], *classes: type) -> Convert:
    """Make what applies a function to the values of some classes."""

    def convert(values: Sequence[Any]) -> Sequence[Any]:
        return _refilled(values, [function(value) for value in _present(values, *classes)])

    return convert


def _check_text(values: Sequence[Any]) -> Sequence[Any]:
    texts = values
    try:
        text = "".join(values)  # the fastest look at all of them
    except TypeError:
        texts = _present(values, str)
        text = "".join(texts)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = next(text for text in texts if any("\ud800" <= char <= "\udfff" for char in text))
        raise InvalidValueError(
            f"{show(text)} has half of a surrogate pair, which no text of Spark holds: read it "
            "with keygroups.savepoint"
        ) from None
    return values


def _day_millis(value: time | int) -> int:
    """Return a time as Flink has it; one that is none of a day is such a number already."""
    if isinstance(value, int):
        return value
    seconds = value.hour * 3600 + value.minute * 60 + value.second
    return seconds * 1000 + value.microsecond // 1000


def _timestamp_data(value: datetime | TimestampData) -> tuple[int, int]:
    if isinstance(value, TimestampData):
        return value.millisecond, value.nano_of_millisecond
    since = value.replace(tzinfo=None) - EPOCH
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    millis, rest = divmod(micros, 1_000)
    return millis, rest * 1_000


_LONG = SparkColumn(T.LongType(), _checked(int))
_INT = SparkColumn(T.IntegerType(), _checked(int))
_STRING = SparkColumn(T.StringType(), _check_text)
_TEXT = SparkColumn(
    T.StringType(), lambda values: [None if value is None else repr(value) for value in values]
)
_OF_JOB = (kryo.KryoSerializer, pojos.PojoSerializer)
_OPEN = (avro.AvroSerializer, kryo.KryoSerializer)
BINARY = SparkColumn(T.BinaryType(), _checked(bytes))
"""What takes the job's classes to read."""

_BOOLEAN = SparkColumn(T.BooleanType(), _checked(bool))
_BYTE = SparkColumn(T.ByteType(), _checked(int))
_SHORT = SparkColumn(T.ShortType(), _checked(int))
_FLOAT = SparkColumn(T.FloatType(), _checked(float))
_DOUBLE = SparkColumn(T.DoubleType(), _checked(float))

COLUMNS: dict[
    type[Serializer], SparkColumn | Callable[[Serializer], SparkColumn | None] | None
] = {
    scalars.BooleanSerializer: _BOOLEAN,
    scalars.ByteSerializer: _BYTE,
    scalars.ShortSerializer: _SHORT,
    scalars.IntSerializer: _INT,
    scalars.LongSerializer: _LONG,
    scalars.FloatSerializer: _FLOAT,
    scalars.DoubleSerializer: _DOUBLE,
    scalars.CharSerializer: _STRING,
    scalars.StringSerializer: _STRING,
    scalars.StringDataSerializer: _STRING,
    scalars.BytePrimitiveArraySerializer: BINARY,
    scalars.ByteArrayWrapperSerializer: BINARY,
    scalars.NullSerializer: None,
    scalars.VoidNamespaceSerializer: None,
    scalars.TimeWindowSerializer: _struct_of(["start", "end"], [_LONG, _LONG], TimeWindow),
    scalars.GlobalWindowSerializer: SparkColumn(
        T.StringType(), _mapped(lambda _: "GlobalWindow", GlobalWindow)
    ),
    compounds.EnumSerializer: _STRING,
    collections.ListSerializer: lambda made: array_of(_part(made.parts[0])),
    collections.MapSerializer: lambda made: _map_of(*map(_part, made.parts)),
    collections.ArrayListSerializer: lambda made: array_of(_part(made.parts[0])),
    collections.GenericArraySerializer: lambda made: array_of(_part(made.parts[0])),
    compounds.NullableSerializer: lambda made: _part(made.parts[0]),
    streaming.TtlSerializer: lambda made: ttl_of(_part(made.parts[0])),
    streaming.AsyncTtlSerializer: lambda made: ttl_of(_part(made.parts[0])),
    compounds.RowSerializer: lambda made: _row_of([*map(_part, made.parts)]),
    compounds.TupleSerializer: lambda made: _struct_of(
        _numbered(made.parts), [*map(_part, made.parts)]
    ),
    pojos.PojoSerializer: _pojo_of,
    sql_rows.RowDataSerializer: lambda made: _sql_row_of(made.fields, is_key=False),
    sql_rows.RawValueDataSerializer: BINARY,
    sql_rows.BinaryRowDataSerializer: BINARY,
    sql_rows.ArrayDataSerializer: lambda made: array_of(_logical(made.fields[0], is_key=False)),
    sql_rows.MapDataSerializer: lambda made: _map_of(
        *(_logical(field, is_key=False) for field in made.fields)
    ),
    sql_rows.DecimalDataSerializer: lambda made: _logical(made.fields[0], is_key=False),
    sql_rows.TimestampDataSerializer: lambda made: _logical(made.fields[0], is_key=False),
    sql_rows.ExternalSerializer: _only_part,
    table_runtime.LinkedListSerializer: lambda made: array_of(_part(made.parts[0])),
    table_runtime.SortedMapSerializer: lambda made: _map_of(*map(_part, made.parts)),
    table_runtime.NullAwareMapSerializer: lambda made: _map_of(*map(_part, made.parts)),
    table_runtime.ListViewSerializer: _only_part,
    table_runtime.MapViewSerializer: _only_part,
    table_runtime.WindowKeySerializer: lambda made: _struct_of(
        WindowKey._fields, [_LONG, _part(made.parts[0])], WindowKey
    ),
    table_runtime.NodeSerializer: lambda made: _struct_of(
        Node._fields, [*map(_part, made.parts)], Node
    ),
    table_runtime.RowDataKeySerializer: _only_part,
    python_rows.PythonArraySerializer: lambda made: array_of(_typed(made.parts[0])),
    python_rows.PythonMapSerializer: lambda made: _map_of(*map(_typed, made.parts)),
    python_rows.PythonRowSerializer: lambda made: _row_of([*map(_typed, made.parts)]),
}
"""The column of each class of serializers, or what makes it; None where all values are None."""

_TIMESTAMPS = {
    "TIMESTAMP": SparkColumn(T.TimestampNTZType(), _checked(datetime)),
    "TIMESTAMP_LTZ": SparkColumn(T.TimestampType(), _checked(datetime)),
}
_FINE_TIMESTAMP = SparkColumn(
    T.StructType(
        [
            T.StructField("millisecond", T.LongType()),
            T.StructField("nano_of_millisecond", T.IntegerType()),
        ]
    ),
    _mapped(_timestamp_data, datetime, TimestampData),
)
_LOGICAL = {
    "BOOLEAN": _BOOLEAN,
    "TINYINT": _BYTE,
    "SMALLINT": _SHORT,
    "INT": _INT,
    "BIGINT": _LONG,
    "FLOAT": _FLOAT,
    "DOUBLE": _DOUBLE,
    "CHAR": _STRING,
    "VARCHAR": _STRING,
    "INTERVAL_YEAR_MONTH": _INT,
    "INTERVAL_DAY_TIME": _LONG,
    "VARIANT": _struct_of(Variant._fields, [BINARY, BINARY], Variant),
    "BITMAP": SparkColumn(T.BinaryType(), _mapped(lambda bitmap: bitmap.data, Bitmap)),
    "DATE": SparkColumn(T.DateType(), _checked(date)),
    "TIME": SparkColumn(T.IntegerType(), _mapped(_day_millis, time, int)),
}
