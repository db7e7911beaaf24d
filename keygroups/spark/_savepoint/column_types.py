"""Spark's types for Flink's serializers, and how the values that they read become Spark's.

A converter takes all values of a column at once and returns them as Spark takes them. It looks at
each: what Spark would change, or hold as something else, is refused.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import date, datetime, time
from decimal import Context, Decimal
from itertools import chain, islice
from typing import Any, NamedTuple

from pyspark.sql import types as T

from keygroups._checks import show
from keygroups._serializers import (
    arrays,
    avro,
    big_numbers,
    cep,
    collections,
    compounds,
    encoded,
    java_time,
    kryo,
    pojos,
    python_rows,
    python_sql,
    scala,
    scalars,
    sql_rows,
    streaming,
    table_runtime,
    value_types,
)
from keygroups._values.bitmaps import Bitmap
from keygroups._values.cep import (
    ComputationState,
    DeweyNumber,
    EventId,
    Lockable,
    NFAState,
    NodeId,
    SharedBufferEdge,
    SharedBufferNode,
)
from keygroups._values.checks import EPOCH
from keygroups._values.java_time import nano_of_day
from keygroups._values.java_values import (
    Failure,
    Left,
    LocalTime,
    Right,
    Some,
    Success,
    Variant,
)
from keygroups._values.sql import CountWindow, MetaSqnInfo, Node, RowSqnInfo, WindowKey
from keygroups._values.streaming import (
    BufferEntry,
    TaggedUnion,
    TransactionHolder,
    TwoPhaseCommitState,
)
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
    if isinstance(serializer, pojos.PojoSerializer):
        is_open = bool(serializer.registered or serializer.met)  # subclasses, of other fields
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


def _list_of(serializer: Serializer) -> SparkColumn:
    [element] = serializer.parts
    return array_of(_part(element))


def _set_of(serializer: Serializer) -> SparkColumn:
    """Return the column of sets: arrays in an order that does not change from run to run."""
    lists = _list_of(serializer)

    def convert(values: Sequence[Any]) -> Sequence[Any]:
        sets = _present(values, set, frozenset, list)
        return _refilled(values, [*map(_in_order, lists.convert([*map(list, sets)]))])

    return SparkColumn(lists.data_type, convert)


def _in_order(elements: list[Any]) -> list[Any]:
    try:
        return sorted(elements)
    except TypeError:  # null, or a struct with a null
        return sorted(elements, key=repr)


def _option_of(value: SparkColumn) -> SparkColumn:
    def convert(values: Sequence[Any]) -> Sequence[Any]:
        somes = _present(values, Some)
        for some in somes:
            if some.value is None:  # which is not the same as None
                raise _unfit(some)
        converted = value.convert([some.value for some in somes])
        return _refilled(values, list(converted))

    return SparkColumn(value.data_type, convert)


def _branches_of(
    names: Collection[str],
    parts: Sequence[SparkColumn],
    fields_of: Callable[[Any], tuple[Any, ...]],
    *classes: type,
) -> SparkColumn:
    """Return the column of what is of several types: structs with a field for each."""
    fields = _struct_of(names, parts)

    def convert(values: Sequence[Any]) -> Sequence[Any]:
        branches = [fields_of(value) for value in _present(values, *classes)]
        return fields.convert(_refilled(values, branches))

    return SparkColumn(fields.data_type, convert)


def _either_of(serializer: Serializer) -> SparkColumn:
    names, parts = ["is_left", "left", "right"], [_BOOLEAN, *map(_part, serializer.parts)]
    return _branches_of(
        names,
        parts,
        lambda either: (
            (True, either.value, None) if type(either) is Left else (False, None, either.value)
        ),
        Left,
        Right,
    )


def _union_of(serializer: Serializer) -> SparkColumn:
    names, parts = ["input", "value_1", "value_2"], [_INT, *map(_part, serializer.parts)]
    return _branches_of(
        names,
        parts,
        lambda union: (1, union.value, None) if union.input == 1 else (2, None, union.value),
        TaggedUnion,
    )


def _try_of(serializer: Serializer) -> SparkColumn:
    names, parts = ["value", "java_class", "data"], [_part(serializer.parts[0]), _STRING, BINARY]
    return _branches_of(
        names,
        parts,
        lambda result: (
            (result.value, None, None)
            if type(result) is Success
            else (None, result.java_class, result.data)
        ),
        Success,
        Failure,
    )


def _two_phase_of(serializer: Serializer) -> SparkColumn:
    transaction, context = serializer.parts
    holder = _struct_of(TransactionHolder._fields, [_part(transaction), _LONG], TransactionHolder)
    parts = [holder, array_of(holder), _option_of(_part(context))]
    return _struct_of(TwoPhaseCommitState._fields, parts, TwoPhaseCommitState)


def _matches_of(serializer: Serializer) -> SparkColumn:
    version, node_id, event_id = map(_part, serializer.parts)
    match = _struct_of(
        ComputationState._fields,
        [_STRING, node_id, version, _LONG, _LONG, event_id],
        ComputationState,
    )
    return _struct_of(NFAState._fields, [array_of(match)] * 2, NFAState)


def _lockable_of(element: SparkColumn) -> SparkColumn:
    return _struct_of(Lockable._fields, [_INT, element], Lockable)


def _tuple_of(serializer: Serializer) -> SparkColumn:
    return _struct_of(_numbered(serializer.parts), [*map(_part, serializer.parts)])


def _field_of(serializer: Serializer) -> SparkColumn:
    """Return the column of a serializer that is of one type of Flink SQL."""
    return _logical(serializer.fields[0], is_key=False)


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
        try:
            converted = [dict(zip(islice(keys, len(of)), islice(items, len(of)))) for of in maps]
        except TypeError:  # a key is an array, or has one
            raise InvalidValueError(
                "a map has keys that are arrays, which Python has not: read it with "
                "keygroups.savepoint"
            ) from None
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


def _nano_of_day(value: time | LocalTime) -> int:
    if isinstance(value, LocalTime):
        return nano_of_day(*value)
    return nano_of_day(value.hour, value.minute, value.second, value.microsecond * 1_000)


def _printed(values: Sequence[Any]) -> Sequence[Any]:
    try:
        return [None if value is None else repr(value) for value in values]
    except ValueError as error:  # of a number with more digits than Python prints
        raise InvalidValueError(
            f"a value cannot be printed, {error}: read it with keygroups.savepoint"
        ) from None


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
_TEXT = SparkColumn(T.StringType(), _printed)
_OPEN = (avro.AvroSerializer, kryo.KryoSerializer)
BINARY = SparkColumn(T.BinaryType(), _checked(bytes))
"""What takes the job's classes to read."""

_BOOLEAN = SparkColumn(T.BooleanType(), _checked(bool))
_BYTE = SparkColumn(T.ByteType(), _checked(int))
_SHORT = SparkColumn(T.ShortType(), _checked(int))
_FLOAT = SparkColumn(T.FloatType(), _checked(float))
_DOUBLE = SparkColumn(T.DoubleType(), _checked(float))

_NUMBER_TEXT = Context(capitals=1).to_sci_string  # as BigDecimal.toString has it
_BIG_DEC = SparkColumn(T.StringType(), _mapped(_NUMBER_TEXT, Decimal))
_BIG_INT = SparkColumn(
    T.StringType(), _mapped(lambda number: str(big_numbers.to_decimal(number)), int)
)
_DATE = SparkColumn(T.DateType(), _checked(date))
_TIMESTAMP = SparkColumn(T.TimestampType(), _checked(datetime))
_TIMESTAMP_NTZ = SparkColumn(T.TimestampNTZType(), _checked(datetime))
_DAY_MILLIS = SparkColumn(T.IntegerType(), _mapped(_day_millis, time, int))
_VARIANT = _struct_of(Variant._fields, [BINARY, BINARY], Variant)
_BITMAP = SparkColumn(T.BinaryType(), _mapped(lambda bitmap: bitmap.data, Bitmap))
_TIME_WINDOW = _struct_of(TimeWindow._fields, [_LONG, _LONG], TimeWindow)
_GLOBAL_WINDOW = SparkColumn(T.StringType(), _mapped(lambda _: "GlobalWindow", GlobalWindow))
_EMPTY = _struct_of([], [])


def _numbers(element_type: T.DataType) -> SparkColumn:
    """Return the column of arrays of numbers."""
    return SparkColumn(T.ArrayType(element_type), _mapped(array.tolist, array))


COLUMNS: dict[
    type[Serializer], SparkColumn | Callable[[Serializer], SparkColumn | None] | None
] = {
    # keygroups._serializers.scalars, value_types, big_numbers
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
    scalars.SortedLongSerializer: _LONG,
    scalars.BytePrimitiveArraySerializer: BINARY,
    scalars.ByteArrayWrapperSerializer: BINARY,
    scalars.NullSerializer: None,
    scalars.VoidSerializer: None,
    scalars.NullValueSerializer: None,
    scalars.VoidNamespaceSerializer: None,
    scalars.QueryableVoidNamespaceSerializer: None,
    scalars.TimeWindowSerializer: _TIME_WINDOW,
    scalars.TableTimeWindowSerializer: _TIME_WINDOW,
    scalars.GlobalWindowSerializer: _GLOBAL_WINDOW,
    scalars.TableGlobalWindowSerializer: _GLOBAL_WINDOW,
    scalars.CountWindowSerializer: _struct_of(CountWindow._fields, [_LONG], CountWindow),
    value_types.BooleanValueSerializer: _BOOLEAN,
    value_types.ByteValueSerializer: _BYTE,
    value_types.ShortValueSerializer: _SHORT,
    value_types.IntValueSerializer: _INT,
    value_types.LongValueSerializer: _LONG,
    value_types.FloatValueSerializer: _FLOAT,
    value_types.DoubleValueSerializer: _DOUBLE,
    value_types.CharValueSerializer: _STRING,
    value_types.StringValueSerializer: _STRING,
    value_types.ValueSerializer: lambda made: column_of(value_types.OF_FLINK[made.java_class]),
    value_types.CopyableValueSerializer: lambda made: column_of(
        value_types.OF_FLINK[made.java_class]
    ),
    big_numbers.BigIntSerializer: _BIG_INT,
    big_numbers.BigDecSerializer: _BIG_DEC,
    # arrays, java_time, encoded
    arrays.BooleanPrimitiveArraySerializer: array_of(_BOOLEAN),
    arrays.CharPrimitiveArraySerializer: _numbers(T.IntegerType()),
    arrays.ShortPrimitiveArraySerializer: _numbers(T.ShortType()),
    arrays.IntPrimitiveArraySerializer: _numbers(T.IntegerType()),
    arrays.LongPrimitiveArraySerializer: _numbers(T.LongType()),
    arrays.FloatPrimitiveArraySerializer: _numbers(T.FloatType()),
    arrays.DoublePrimitiveArraySerializer: _numbers(T.DoubleType()),
    arrays.StringArraySerializer: array_of(_STRING),
    java_time.LocalDateSerializer: _DATE,
    java_time.LocalTimeSerializer: SparkColumn(
        T.LongType(), _mapped(_nano_of_day, time, LocalTime)
    ),
    java_time.LocalDateTimeSerializer: _TIMESTAMP_NTZ,
    java_time.InstantSerializer: _TIMESTAMP,
    java_time.DateSerializer: _TIMESTAMP,
    java_time.SqlDateSerializer: _TIMESTAMP,
    java_time.SqlTimeSerializer: _TIMESTAMP,
    java_time.SqlTimestampSerializer: _TIMESTAMP,
    encoded.JavaSerializer: BINARY,
    encoded.VariantSerializer: _VARIANT,
    encoded.BitmapSerializer: _BITMAP,
    # collections, compounds, pojos, scala
    collections.ListSerializer: _list_of,
    collections.ArrayListSerializer: _list_of,
    collections.GenericArraySerializer: _list_of,
    collections.SetSerializer: _set_of,
    collections.MapSerializer: lambda made: _map_of(*map(_part, made.parts)),
    compounds.EnumSerializer: _STRING,
    compounds.NullableSerializer: _only_part,
    compounds.EitherSerializer: _either_of,
    compounds.TupleSerializer: _tuple_of,
    compounds.Tuple0Serializer: _EMPTY,
    compounds.RowSerializer: lambda made: _row_of([*map(_part, made.parts)]),
    pojos.PojoSerializer: _pojo_of,
    scala.CaseClassSerializer: _tuple_of,
    scala.CaseClassSerializer2: _tuple_of,
    scala.Tuple2CaseClassSerializer: _tuple_of,
    scala.Tuple2CaseClassSerializer2: _tuple_of,
    scala.OptionSerializer: lambda made: _option_of(_part(made.parts[0])),
    scala.OptionSerializer2: lambda made: _option_of(_part(made.parts[0])),
    scala.ScalaEitherSerializer: _either_of,
    scala.ScalaEitherSerializer2: _either_of,
    scala.TrySerializer: _try_of,
    scala.TrySerializer2: _try_of,
    scala.TraversableSerializer: _list_of,
    scala.TraversableSerializer2: _list_of,
    scala.ScalaEnumSerializer: _STRING,
    scala.ScalaEnumSerializer2: _STRING,
    scala.UnitSerializer: _EMPTY,
    scala.UnitSerializer2: _EMPTY,
    scala.NothingSerializer: None,
    scala.NothingSerializer2: None,
    # streaming, cep
    streaming.TtlSerializer: lambda made: ttl_of(_part(made.parts[0])),
    streaming.AsyncTtlSerializer: lambda made: ttl_of(_part(made.parts[0])),
    streaming.TtlAwareSerializer: _only_part,
    streaming.SingleThreadAccessCheckingSerializer: _only_part,
    streaming.UnionSerializer: _union_of,
    streaming.BufferEntrySerializer: lambda made: _struct_of(
        BufferEntry._fields, [_part(made.parts[0]), _BOOLEAN], BufferEntry
    ),
    streaming.StreamElementSerializer: _TEXT,  # which no keyed state has
    streaming.TwoPhaseCommitSerializer: _two_phase_of,
    streaming.LegacyTwoPhaseCommitSerializer: _two_phase_of,
    streaming.MetaSqnInfoSerializer: _struct_of(MetaSqnInfo._fields, [_LONG] * 2, MetaSqnInfo),
    streaming.RowSqnInfoSerializer: _struct_of(RowSqnInfo._fields, [_LONG] * 2, RowSqnInfo),
    cep.EventIdSerializer: _struct_of(EventId._fields, [_INT, _LONG], EventId),
    cep.DeweyNumberSerializer: SparkColumn(
        T.ArrayType(T.IntegerType()), _mapped(lambda version: list(version.digits), DeweyNumber)
    ),
    cep.NodeIdSerializer: lambda made: _struct_of(
        NodeId._fields, [_part(made.parts[0]), _STRING], NodeId
    ),
    cep.SharedBufferEdgeSerializer: lambda made: _struct_of(
        SharedBufferEdge._fields, [*map(_part, made.parts)], SharedBufferEdge
    ),
    cep.LockableTypeSerializer: lambda made: _lockable_of(_part(made.parts[0])),
    cep.SharedBufferNodeSerializer: lambda made: _struct_of(
        SharedBufferNode._fields,
        [array_of(_lockable_of(_part(made.parts[0])))],
        SharedBufferNode,
    ),
    cep.SharedBufferNodeV1Serializer: BINARY,
    cep.NFAStateSerializer: _matches_of,
    # sql_rows, table_runtime, python_rows, python_sql
    sql_rows.RowDataSerializer: lambda made: _sql_row_of(made.fields, is_key=False),
    sql_rows.RawValueDataSerializer: BINARY,
    sql_rows.BinaryRowDataSerializer: BINARY,
    sql_rows.ArrayDataSerializer: lambda made: array_of(_field_of(made)),
    sql_rows.MapDataSerializer: lambda made: _map_of(
        *(_logical(field, is_key=False) for field in made.fields)
    ),
    sql_rows.DecimalDataSerializer: _field_of,
    sql_rows.TimestampDataSerializer: _field_of,
    sql_rows.ExternalSerializer: _only_part,
    table_runtime.LinkedListSerializer: _list_of,
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
    python_sql.PythonStringSerializer: _STRING,
    python_sql.PythonBigDecSerializer: _BIG_DEC,
    python_sql.PythonDecimalSerializer: _field_of,
    python_sql.PythonDateSerializer: _DATE,
    python_sql.PythonTimeSerializer: _DAY_MILLIS,
    python_sql.PythonTimestampSerializer: _field_of,
}
"""The column of each class of serializers, or what makes it; None where all values are None."""

_TIMESTAMPS = {
    "TIMESTAMP": _TIMESTAMP_NTZ,
    "TIMESTAMP_LTZ": _TIMESTAMP,
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
    "VARIANT": _VARIANT,
    "BITMAP": _BITMAP,
    "DATE": _DATE,
    "TIME": _DAY_MILLIS,
}
