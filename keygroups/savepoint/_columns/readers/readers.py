"""The reader of columns of each of Flink's serializers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from keygroups._serializers import (
    arrays,
    big_numbers,
    collections,
    compounds,
    scalars,
    streaming,
)
from keygroups._serializers.base import Serializer
from keygroups._serializers.jvm import pojos, scala
from keygroups._serializers.jvm import time as java_time
from keygroups._serializers.sql import python_rows, python_scalars, table_runtime
from keygroups._serializers.sql import rows as sql_rows
from keygroups._values.rows import TimeWindow
from keygroups.savepoint._columns.column_types import (
    column_of,
    is_open,
    key_column_of,
    part_column_of,
    typed_column_of,
)
from keygroups.savepoint._columns.columns import ArrowColumn, array_of
from keygroups.savepoint._columns.readers import compounds as of_parts
from keygroups.savepoint._columns.readers import decimals, lists, sql, texts
from keygroups.savepoint._columns.readers import numbers as nb
from keygroups.savepoint._columns.readers.abreast import pass_all_of
from keygroups.savepoint._columns.readers.lists import Element, ReadSpans
from keygroups.savepoint._columns.readers.parts import (
    Column,
    Ints,
    Part,
    ReadColumn,
    by_value,
    numbers_at,
    octets_at,
    or_by_value,
)
from keygroups.savepoint._state.header import StateDescriptor, stored_serializer
from keygroups.savepoint._state.skips import passed_of, skip_of

_LONG = np.dtype(">i8")
_NUMBERS: dict[type[Serializer], nb.Numbers] = {
    scalars.BooleanSerializer: nb.Numbers("u1", nb.truths),
    scalars.ByteSerializer: nb.Numbers("i1", nb.plain("i1")),
    scalars.ShortSerializer: nb.Numbers(">i2", nb.plain("i2")),
    scalars.IntSerializer: nb.Numbers(">i4", nb.plain("i4")),
    scalars.LongSerializer: nb.Numbers(">i8", nb.plain("i8")),
    scalars.FloatSerializer: nb.Numbers(">f4", nb.plain("f4")),
    scalars.DoubleSerializer: nb.Numbers(">f8", nb.plain("f8")),
    scalars.SortedLongSerializer: nb.Numbers(">i8", nb.unflipped),
    java_time.DateSerializer: nb.Numbers(">i8", nb.nullable_instants),
    java_time.SqlDateSerializer: nb.Numbers(">i8", nb.nullable_instants),
    java_time.SqlTimeSerializer: nb.Numbers(">i8", nb.nullable_instants),
    python_scalars.PythonDateSerializer: nb.Numbers(">i4", nb.days),
    python_scalars.PythonTimeSerializer: nb.Numbers(">i4", nb.plain("i4")),
    arrays.BooleanPrimitiveArraySerializer: nb.Numbers("u1", nb.truths),
    arrays.CharPrimitiveArraySerializer: nb.Numbers(">u2", nb.plain("i4")),
    arrays.ShortPrimitiveArraySerializer: nb.Numbers(">i2", nb.plain("i2")),
    arrays.IntPrimitiveArraySerializer: nb.Numbers(">i4", nb.plain("i4")),
    arrays.LongPrimitiveArraySerializer: nb.Numbers(">i8", nb.plain("i8")),
    arrays.FloatPrimitiveArraySerializer: nb.Numbers(">f4", nb.plain("f4")),
    arrays.DoublePrimitiveArraySerializer: nb.Numbers(">f8", nb.plain("f8")),
}
"""Of numbers, and of the numbers in arrays."""
_READS: dict[type[Serializer], ReadColumn] = {
    scalars.StringSerializer: texts.read_texts,
    scalars.CharSerializer: texts.read_characters,
    scalars.StringDataSerializer: texts.read_utf_8,
    scalars.BytePrimitiveArraySerializer: texts.read_bytes,
    scalars.ByteArrayWrapperSerializer: texts.read_bytes,
    python_scalars.PythonStringSerializer: texts.read_utf_8,
    sql_rows.RawValueDataSerializer: texts.read_bytes,
    java_time.LocalDateSerializer: nb.read_local_dates,
    java_time.LocalTimeSerializer: nb.read_local_times,
    java_time.LocalDateTimeSerializer: nb.read_local_date_times,
    java_time.InstantSerializer: nb.read_instants,
    java_time.SqlTimestampSerializer: nb.read_sql_timestamps,
}


def reader_of(serializer: Serializer, is_key: bool) -> ReadColumn | None:
    """Return the reader of a serializer, None where values are only read one by one.

    Those of a class that only the value says are: their column is text.
    """
    return None if is_open(serializer) else _reader_of(serializer, is_key)


def list_reader_of(state: StateDescriptor) -> ReadSpans | None:
    """Return the reader of a LIST, None where its elements are only read one by one."""
    element = stored_serializer(state)
    if is_open(element):
        return None
    return lists.separated(array_of(part_column_of(element)).data_type, element_of(element))


def _reader_of(serializer: Serializer, is_key: bool) -> ReadColumn | None:
    cls = type(serializer)
    if cls in _READS:
        return _READS[cls]
    if isinstance(serializer, (arrays.NumberArray, arrays.BooleanPrimitiveArraySerializer)):
        return _array_of_numbers(serializer)
    if cls in _NUMBERS:
        return _NUMBERS[cls].read
    if cls in _NOTHING:
        return _nothing
    if cls in _WINDOWS:
        return _read_windows
    if cls is sql_rows.RowDataSerializer:
        column = key_column_of(serializer) if is_key else column_of(serializer)
        assert column is not None
        return sql.framed(sql.sql_rows(serializer.fields, column.data_type, is_key))
    make = _MAKERS.get(cls)
    column = column_of(serializer)
    return None if make is None or column is None else make(serializer, column.data_type)


def _part(serializer: Serializer) -> Part:
    """Return the reader of a part, which reads value by value if nothing else does."""
    if type(serializer) is python_rows.TypedSerializer:
        return _typed(serializer)
    column = part_column_of(serializer)
    return _or_by_value(serializer, column, _reader_of(serializer, is_key=False))


def _or_by_value(serializer: Serializer, column: ArrowColumn, read: ReadColumn | None) -> Part:
    return Part(column.data_type, read or by_value(serializer, column))


def _typed(serializer: Serializer) -> Part:
    """Return the reader of a value of PyFlink, whose logical type says what its numbers are."""
    [part], [field] = serializer.parts, serializer.fields
    column = typed_column_of(serializer)
    read: ReadColumn | None = None
    if type(part) is scalars.IntSerializer and field.name == "DATE":
        read = nb.Numbers(">i4", nb.days).read
    elif type(part) is sql_rows.TimestampDataSerializer:
        read = _timestamps(part, column.data_type)
    elif part_column_of(part).data_type == column.data_type:
        read = _reader_of(part, is_key=False)
    return _or_by_value(serializer, column, read)


def element_of(serializer: Serializer) -> Element:
    """Return the reader of the elements of lists, and of keys and values of maps."""
    numbers = _NUMBERS.get(type(serializer)) if serializer.size is not None else None
    part, skip = _part(serializer), skip_of(serializer)
    return Element(
        part, serializer.size, skip, passed_of(serializer), pass_all_of(serializer), numbers
    )


def _parts(serializer: Serializer) -> list[Part]:
    return [*map(_part, serializer.parts)]


def _array_of_numbers(serializer: Serializer) -> ReadColumn:
    numbers, column = _NUMBERS[type(serializer)], column_of(serializer)
    assert column is not None
    return lists.lists_of_numbers(column.data_type, numbers)


def _nothing(data: bytes, pos: Ints) -> tuple[Column, Ints]:
    octets_at(data, pos)  # the byte has to exist
    return None, pos + 1


def _read_windows(data: bytes, pos: Ints) -> tuple[Column, Ints]:
    bounds = [
        pa.array(numbers_at(data, pos + 8 * number, _LONG).astype(np.int64)) for number in (0, 1)
    ]
    return pa.StructArray.from_arrays(bounds, list(TimeWindow._fields)), pos + 16


def _timestamps(serializer: Serializer, data_type: pa.DataType) -> ReadColumn:
    """Return the reader of epoch milliseconds, which may have nanoseconds behind them."""
    is_fine, zone = pa.types.is_struct(data_type), getattr(data_type, "tz", None)
    size = serializer.size
    assert size is not None

    def read(data: bytes, pos: Ints) -> tuple[Column, Ints]:
        millis = numbers_at(data, pos, _LONG).astype(np.int64)
        nanos = np.zeros(len(pos), np.int64)
        if size > _LONG.itemsize:
            nanos = numbers_at(data, pos + 8, np.dtype(">i4")).astype(np.int64)
        return nb.fine_timestamps(millis, nanos, zone, is_fine), pos + size

    return read


def _decimals(serializer: Serializer, data_type: pa.DataType) -> ReadColumn:
    [field] = serializer.fields
    if field.reserved:
        return sql.framed(sql.whole_of(field, is_key=False))
    return nb.Numbers(">i8", decimals.decimals(data_type.precision, data_type.scale)).read


def _rows(serializer: Serializer, data_type: pa.DataType) -> ReadColumn:
    has_row_kind = getattr(serializer, "has_row_kind", True)  # PyFlink's have one
    return of_parts.rows(data_type, _parts(serializer), has_row_kind)


def _ttl(serializer: Serializer, data_type: pa.DataType) -> ReadColumn:
    return of_parts.tuples(data_type, [_part(scalars.LONG), *_parts(serializer)])


def _nullable(serializer: Serializer, data_type: pa.DataType) -> ReadColumn:
    assert isinstance(serializer, compounds.NullableSerializer)
    [part] = serializer.parts
    return of_parts.nullables(_part(part), serializer.padding)


def _constants(serializer: Serializer, data_type: pa.DataType) -> ReadColumn:
    assert isinstance(serializer, compounds.EnumSerializer)
    return nb.Numbers(">i4", nb.constants(serializer.constants)).read


def _list(serializer: Serializer, data_type: pa.DataType) -> ReadColumn:
    return lists.lists(data_type, *map(element_of, serializer.parts))


def _texts(serializer: Serializer, data_type: pa.DataType) -> ReadColumn:
    return lists.lists(data_type, element_of(scalars.STRING))


def _flagged(serializer: Serializer, data_type: pa.DataType) -> ReadColumn:
    return lists.flagged_lists(data_type, *map(element_of, serializer.parts))


def _set(serializer: Serializer, data_type: pa.DataType) -> ReadColumn | None:
    if not lists.is_sorted_alike(data_type.value_type):
        return None
    read = lists.sets(data_type, *map(element_of, serializer.parts))
    return or_by_value(read, serializer, part_column_of(serializer))


def _big_ints(serializer: Serializer, data_type: pa.DataType) -> ReadColumn:
    return or_by_value(decimals.read_big_ints, serializer, part_column_of(serializer))


def _big_decs(serializer: Serializer, data_type: pa.DataType) -> ReadColumn:
    return or_by_value(decimals.read_big_decs, serializer, part_column_of(serializer))


def _map(serializer: Serializer, data_type: pa.DataType) -> ReadColumn | None:
    if not lists.has_plain_keys(data_type):
        return None
    return lists.maps(data_type, *map(element_of, serializer.parts))


def _sql_array(serializer: Serializer, data_type: pa.DataType) -> ReadColumn:
    [element] = serializer.fields
    return sql.framed(sql.sql_arrays(element, data_type, is_key=False))


def _sql_map(serializer: Serializer, data_type: pa.DataType) -> ReadColumn | None:
    if not lists.has_plain_keys(data_type):
        return None
    return sql.framed(sql.maps_of(serializer.fields, data_type, is_key=False))


def _wrapped(serializer: Serializer, data_type: pa.DataType) -> ReadColumn | None:
    [part] = serializer.parts
    return _reader_of(part, is_key=False)


_Make = Callable[[Serializer, pa.DataType], "ReadColumn | None"]


def _all(make: _Make, *classes: type[Serializer]) -> dict[type[Serializer], _Make]:
    return dict.fromkeys(classes, make)


_NOTHING = (scalars.VoidNamespaceSerializer, scalars.QueryableVoidNamespaceSerializer)
_WINDOWS = (scalars.TimeWindowSerializer, scalars.TableTimeWindowSerializer)
_MAKERS: dict[type[Serializer], _Make] = {
    **_all(lambda made, data_type: of_parts.pojos(data_type, _parts(made)), pojos.PojoSerializer),
    **_all(
        lambda made, data_type: of_parts.tuples(data_type, _parts(made)),
        compounds.TupleSerializer,
        scala.CaseClassSerializer,
        scala.CaseClassSerializer2,
        scala.Tuple2CaseClassSerializer,
        scala.Tuple2CaseClassSerializer2,
    ),
    **_all(_rows, compounds.RowSerializer, python_rows.PythonRowSerializer),
    **_all(_nullable, compounds.NullableSerializer),
    **_all(_constants, compounds.EnumSerializer),
    **_all(
        lambda made, data_type: of_parts.options(*_parts(made)),
        scala.OptionSerializer,
        scala.OptionSerializer2,
    ),
    **_all(
        lambda made, data_type: of_parts.branches(data_type, _parts(made)),
        compounds.EitherSerializer,
        scala.ScalaEitherSerializer,
        scala.ScalaEitherSerializer2,
    ),
    **_all(_ttl, streaming.TtlSerializer, streaming.AsyncTtlSerializer),
    **_all(_list, collections.ListSerializer, collections.ArrayListSerializer),
    **_all(_texts, arrays.StringArraySerializer),
    **_all(
        _flagged,
        collections.GenericArraySerializer,
        scala.TraversableSerializer,
        scala.TraversableSerializer2,
        python_rows.PythonArraySerializer,
    ),
    **_all(_big_ints, big_numbers.BigIntSerializer),
    **_all(_big_decs, big_numbers.BigDecSerializer),
    **_all(_set, collections.SetSerializer),
    **_all(
        _map,
        collections.MapSerializer,
        table_runtime.SortedMapSerializer,
        python_rows.PythonMapSerializer,
    ),
    **_all(_sql_array, sql_rows.ArrayDataSerializer),
    **_all(_sql_map, sql_rows.MapDataSerializer),
    **_all(_decimals, sql_rows.DecimalDataSerializer),
    **_all(
        _timestamps, sql_rows.TimestampDataSerializer, python_scalars.PythonTimestampSerializer
    ),
    **_all(
        _wrapped,
        sql_rows.ExternalSerializer,
        streaming.TtlAwareSerializer,
        streaming.SingleThreadAccessCheckingSerializer,
        table_runtime.ListViewSerializer,
        table_runtime.MapViewSerializer,
    ),
}
"""The maker of the reader of each class of serializers that have parts or fields."""
