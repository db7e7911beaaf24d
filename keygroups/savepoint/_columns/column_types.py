"""The Arrow column of each of Flink's serializers, key types and logical types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from keygroups import types
from keygroups._serializers import (
    arrays,
    big_numbers,
    cep,
    collections,
    compounds,
    kafka_producer,
    pyflink,
    scalars,
    streaming,
    value_types,
)
from keygroups._serializers.base import Serializer
from keygroups._serializers.jvm import (
    avro,
    beam,
    encoded,
    kryo,
    pojos,
    scala,
)
from keygroups._serializers.jvm import (
    time as java_time,
)
from keygroups._serializers.sql import (
    python_rows,
    table_runtime,
)
from keygroups._serializers.sql import (
    python_scalars as python_sql,
)
from keygroups._serializers.sql import (
    rows as sql_rows,
)
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
from keygroups._values.rows import Row
from keygroups._values.sql import CountWindow, MetaSqnInfo, Node, RowSqnInfo, WindowKey
from keygroups._values.streaming import (
    BufferEntry,
    KafkaTransaction,
    NextTransactionalIdHint,
    TransactionHolder,
    TwoPhaseCommitState,
)
from keygroups.binary_row import items_of
from keygroups.errors import UnsupportedKeyTypeError
from keygroups.logical_types import LogicalType
from keygroups.savepoint._columns.columns import (
    BIG_DEC,
    BIG_INT,
    BINARY,
    BITMAP,
    BOOLEAN,
    BYTE,
    DATE,
    DAY_MILLIS,
    DAY_NANOS,
    DECIMAL,
    DOUBLE,
    EMPTY,
    FINE_TIMESTAMP,
    FLOAT,
    GLOBAL_WINDOW,
    INT,
    LONG,
    SHORT,
    STRING,
    TEXT,
    TIME_WINDOW,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    ArrowColumn,
    array_of,
    checked,
    either_of,
    map_of,
    mapped,
    numbered,
    numbers_of,
    option_of,
    pojo_of,
    restored,
    row_of,
    set_of,
    struct_of,
    try_of,
    ttl_of,
    unfit,
    union_of,
)
from keygroups.state_keys import serializer_of
from keygroups.types import KeyType

_MICROSECOND_DIGITS = 6


def column_of(serializer: Serializer) -> ArrowColumn | None:
    """Return the column for the values of a serializer; None where all of them are None."""
    if serializer.read is None:
        return BINARY
    if is_open(serializer):
        return TEXT
    if type(serializer) not in COLUMNS and serializer.key_type is not None:
        # A user's own serializer has the column of its key type.
        serializer = serializer_of(serializer.key_type)
    column = COLUMNS.get(type(serializer), BINARY)
    return column(serializer) if callable(column) else column


def key_column_of(serializer: Serializer) -> ArrowColumn | None:
    """Return the column for keys; that of Flink SQL's rows has no row kind, always +I in keys."""
    if isinstance(serializer, sql_rows.RowDataSerializer):
        return _sql_row_of(serializer.fields, is_key=True)
    return column_of(serializer)


def column_of_key_type(key_type: KeyType) -> ArrowColumn:
    """Return the column that state of a key type is written from; its rows are all +I.

    Raises UnsupportedKeyTypeError for one whose serializer is not known.
    """
    if isinstance(key_type, (types.TUPLE, types.ROW)):
        parts = [column_of_key_type(field) for field in key_type.fields]
        return struct_of(numbered(parts), parts)
    if isinstance(key_type, types.LIST):
        return array_of(column_of_key_type(key_type.element))
    if isinstance(key_type, types.SET):
        return set_of(column_of_key_type(key_type.element))
    if isinstance(key_type, types.MAP):
        return map_of(*map(column_of_key_type, key_type.parts))
    if key_type == types.BIG_DEC:
        return DECIMAL
    return key_column_of(serializer_of(key_type)) or STRING


def column_to_write(column_type: KeyType | Serializer) -> ArrowColumn:
    """Return the column that state of a type is written from.

    Raises UnsupportedKeyTypeError for a type whose column does not hold its values unchanged.
    """
    if not isinstance(column_type, Serializer):
        return column_of_key_type(column_type)
    column = column_of(column_type)
    if column is None or not is_written(column_type):
        raise UnsupportedKeyTypeError(f"no column here holds values of type {column_type!r}")
    return column


def is_written(serializer: Serializer) -> bool:
    """Return whether the column of a serializer holds its values unchanged, to be written back."""
    is_known = type(serializer) in COLUMNS or serializer.key_type is not None
    is_known = is_known or isinstance(serializer, python_rows.TypedSerializer)
    is_text = isinstance(serializer, streaming.StreamElementSerializer) or is_open(serializer)
    return is_known and not is_text and all(map(is_written, serializer.parts))


def is_open(serializer: Serializer) -> bool:
    """Return whether the class of some value is not known from the serializer, as with Kryo."""
    is_of_any = serializer.read is None or isinstance(serializer, _OPEN)
    if isinstance(serializer, pojos.PojoSerializer):
        is_of_any = bool(serializer.registered or serializer.met)  # subclasses have other fields
    return is_of_any or any(map(is_open, serializer.parts))


def _list_of(serializer: Serializer) -> ArrowColumn:
    [element] = serializer.parts
    return array_of(part_column_of(element))


def _two_phase_of(serializer: Serializer) -> ArrowColumn:
    transaction, context = serializer.parts
    holder = struct_of(
        TransactionHolder._fields, [part_column_of(transaction), LONG], TransactionHolder
    )
    parts = [holder, array_of(holder), option_of(part_column_of(context))]
    return struct_of(TwoPhaseCommitState._fields, parts, TwoPhaseCommitState)


def _matches_of(serializer: Serializer) -> ArrowColumn:
    version, node_id, event_id = map(part_column_of, serializer.parts)
    match = struct_of(
        ComputationState._fields,
        [STRING, node_id, version, LONG, LONG, event_id],
        ComputationState,
    )
    matches = array_of(match)
    return struct_of(NFAState._fields, [matches, matches], NFAState)


def _node_of(edge: Serializer) -> ArrowColumn:
    edges = array_of(_lockable_of(part_column_of(edge)))
    return struct_of(SharedBufferNode._fields, [edges], SharedBufferNode)


def _lockable_of(element: ArrowColumn) -> ArrowColumn:
    return struct_of(Lockable._fields, [INT, element], Lockable)


def _tuple_of(serializer: Serializer) -> ArrowColumn:
    return struct_of(numbered(serializer.parts), [*map(part_column_of, serializer.parts)])


def _field_of(serializer: Serializer) -> ArrowColumn:
    """Return the column of a serializer that has one logical type of Flink SQL."""
    [field] = serializer.fields
    return logical_column_of(field, is_key=False)


def part_column_of(serializer: Serializer) -> ArrowColumn:
    """Return the column of a part of a serializer; nulls as strings if its values are all None."""
    return column_of(serializer) or STRING


def _only_part(serializer: Serializer) -> ArrowColumn | None:
    """Return the column of the only part of a wrapper, which has the same values."""
    [part] = serializer.parts
    return column_of(part)


def typed_column_of(serializer: Serializer) -> ArrowColumn:
    """Return the column of PyFlink's TypedSerializer: its part's if nested, else its type's."""
    [field], [part] = serializer.fields, serializer.parts
    return part_column_of(part) if field.fields else logical_column_of(field, is_key=False)


def _sql_row_of(fields: Sequence[LogicalType], is_key: bool) -> ArrowColumn:
    parts = [logical_column_of(field, is_key) for field in fields]
    if not is_key:
        return row_of(parts)
    row = struct_of(numbered(parts), parts, Row)

    def convert(values: Sequence[Any]) -> Sequence[Any]:
        for value in values:
            if value is not None and value.row_kind != "+I":
                raise unfit(value)
        return row.convert(values)

    return ArrowColumn(row.data_type, convert, row.restore)


def logical_column_of(field: LogicalType, is_key: bool) -> ArrowColumn:
    """Return the column of a logical type of Flink SQL."""
    name = field.name
    if name == "ROW":
        return _sql_row_of(field.fields, is_key)
    if name == "ARRAY":
        [element] = field.fields
        return array_of(logical_column_of(element, is_key))
    if name == "DECIMAL":
        decimal = pa.decimal128(field.precision, field.scale)
        return ArrowColumn(decimal, checked(Decimal))
    if name in _TIMESTAMPS:
        is_fine = (field.precision or 0) > _MICROSECOND_DIGITS
        return FINE_TIMESTAMP if is_fine else _TIMESTAMPS[name]
    if name in ("MAP", "MULTISET"):
        return map_of(*(logical_column_of(item, is_key) for item in items_of(field)))
    return _LOGICAL.get(name, BINARY)  # a RAW value is its bytes


_OPEN = (
    avro.AvroSerializer,
    encoded.JavaSerializer,
    kryo.KryoSerializer,
    pyflink.PickleSerializer,
    pyflink.PickledKeySerializer,
)
COLUMNS: dict[
    type[Serializer], ArrowColumn | Callable[[Serializer], ArrowColumn | None] | None
] = {
    # keygroups._serializers.scalars, value_types, big_numbers
    scalars.BooleanSerializer: BOOLEAN,
    scalars.ByteSerializer: BYTE,
    scalars.ShortSerializer: SHORT,
    scalars.IntSerializer: INT,
    scalars.LongSerializer: LONG,
    scalars.FloatSerializer: FLOAT,
    scalars.DoubleSerializer: DOUBLE,
    scalars.CharSerializer: STRING,
    scalars.StringSerializer: STRING,
    scalars.StringDataSerializer: STRING,
    scalars.SortedLongSerializer: LONG,
    scalars.BytePrimitiveArraySerializer: BINARY,
    scalars.ByteArrayWrapperSerializer: BINARY,
    scalars.NullSerializer: None,
    scalars.VoidSerializer: None,
    scalars.NullValueSerializer: None,
    scalars.VoidNamespaceSerializer: None,
    scalars.QueryableVoidNamespaceSerializer: None,
    scalars.TimeWindowSerializer: TIME_WINDOW,
    scalars.TableTimeWindowSerializer: TIME_WINDOW,
    scalars.GlobalWindowSerializer: GLOBAL_WINDOW,
    scalars.TableGlobalWindowSerializer: GLOBAL_WINDOW,
    scalars.CountWindowSerializer: struct_of(CountWindow._fields, [LONG], CountWindow),
    value_types.BooleanValueSerializer: BOOLEAN,
    value_types.ByteValueSerializer: BYTE,
    value_types.ShortValueSerializer: SHORT,
    value_types.IntValueSerializer: INT,
    value_types.LongValueSerializer: LONG,
    value_types.FloatValueSerializer: FLOAT,
    value_types.DoubleValueSerializer: DOUBLE,
    value_types.CharValueSerializer: STRING,
    value_types.StringValueSerializer: STRING,
    value_types.ValueSerializer: lambda made: column_of(value_types.OF_FLINK[made.java_class]),
    value_types.CopyableValueSerializer: lambda made: column_of(
        value_types.OF_FLINK[made.java_class]
    ),
    big_numbers.BigIntSerializer: BIG_INT,
    big_numbers.BigDecSerializer: BIG_DEC,
    # arrays, java_time, encoded, beam
    arrays.BooleanPrimitiveArraySerializer: array_of(BOOLEAN),
    arrays.CharPrimitiveArraySerializer: numbers_of("H", pa.int32()),
    arrays.ShortPrimitiveArraySerializer: numbers_of("h", pa.int16()),
    arrays.IntPrimitiveArraySerializer: numbers_of("i", pa.int32()),
    arrays.LongPrimitiveArraySerializer: numbers_of("q", pa.int64()),
    arrays.FloatPrimitiveArraySerializer: numbers_of("f", pa.float32()),
    arrays.DoublePrimitiveArraySerializer: numbers_of("d", pa.float64()),
    arrays.StringArraySerializer: array_of(STRING),
    java_time.LocalDateSerializer: DATE,
    java_time.LocalTimeSerializer: DAY_NANOS,
    java_time.LocalDateTimeSerializer: TIMESTAMP_NTZ,
    java_time.InstantSerializer: TIMESTAMP,
    java_time.DateSerializer: TIMESTAMP,
    java_time.SqlDateSerializer: TIMESTAMP,
    java_time.SqlTimeSerializer: TIMESTAMP,
    java_time.SqlTimestampSerializer: TIMESTAMP,
    beam.CoderSerializer: BINARY,
    beam.UnversionedCoderSerializer: BINARY,
    encoded.VariantSerializer: VARIANT,
    encoded.BitmapSerializer: BITMAP,
    # collections, compounds, pojos, scala
    collections.ListSerializer: _list_of,
    collections.ArrayListSerializer: _list_of,
    collections.GenericArraySerializer: _list_of,
    collections.SetSerializer: lambda made: set_of(*map(part_column_of, made.parts)),
    collections.MapSerializer: lambda made: map_of(*map(part_column_of, made.parts)),
    compounds.EnumSerializer: STRING,
    compounds.NullableSerializer: _only_part,
    compounds.EitherSerializer: lambda made: either_of(*map(part_column_of, made.parts)),
    compounds.TupleSerializer: _tuple_of,
    compounds.Tuple0Serializer: EMPTY,
    compounds.RowSerializer: lambda made: row_of([*map(part_column_of, made.parts)]),
    pojos.PojoSerializer: lambda made: pojo_of(
        made.java_class, made.names, [*map(part_column_of, made.parts)]
    ),
    scala.CaseClassSerializer: _tuple_of,
    scala.CaseClassSerializer2: _tuple_of,
    scala.Tuple2CaseClassSerializer: _tuple_of,
    scala.Tuple2CaseClassSerializer2: _tuple_of,
    scala.OptionSerializer: lambda made: option_of(*map(part_column_of, made.parts)),
    scala.OptionSerializer2: lambda made: option_of(*map(part_column_of, made.parts)),
    scala.ScalaEitherSerializer: lambda made: either_of(*map(part_column_of, made.parts)),
    scala.ScalaEitherSerializer2: lambda made: either_of(*map(part_column_of, made.parts)),
    scala.TrySerializer: lambda made: try_of(*map(part_column_of, made.parts)),
    scala.TrySerializer2: lambda made: try_of(*map(part_column_of, made.parts)),
    scala.TraversableSerializer: _list_of,
    scala.TraversableSerializer2: _list_of,
    scala.ScalaEnumSerializer: STRING,
    scala.ScalaEnumSerializer2: STRING,
    scala.UnitSerializer: EMPTY,
    scala.UnitSerializer2: EMPTY,
    scala.NothingSerializer: None,
    scala.NothingSerializer2: None,
    # streaming, cep
    streaming.TtlSerializer: lambda made: ttl_of(*map(part_column_of, made.parts)),
    streaming.AsyncTtlSerializer: lambda made: ttl_of(*map(part_column_of, made.parts)),
    streaming.TtlAwareSerializer: _only_part,
    streaming.SingleThreadAccessCheckingSerializer: _only_part,
    streaming.UnionSerializer: lambda made: union_of(*map(part_column_of, made.parts)),
    streaming.BufferEntrySerializer: lambda made: struct_of(
        BufferEntry._fields, [*map(part_column_of, made.parts), BOOLEAN], BufferEntry
    ),
    streaming.StreamElementSerializer: TEXT,  # no keyed state has such values
    streaming.TwoPhaseCommitSerializer: _two_phase_of,
    streaming.LegacyTwoPhaseCommitSerializer: _two_phase_of,
    **dict.fromkeys(
        (kafka_producer.TransactionSerializer, kafka_producer.TransactionSerializer011),
        struct_of(KafkaTransaction._fields, [STRING, LONG, SHORT], KafkaTransaction),
    ),
    **dict.fromkeys(
        (
            kafka_producer.TransactionContextSerializer,
            kafka_producer.TransactionContextSerializer011,
        ),
        array_of(STRING),
    ),
    **dict.fromkeys(
        (kafka_producer.TransactionHintSerializer, kafka_producer.TransactionHintSerializer011),
        struct_of(NextTransactionalIdHint._fields, [LONG, INT], NextTransactionalIdHint),
    ),
    streaming.MetaSqnInfoSerializer: struct_of(MetaSqnInfo._fields, [LONG, LONG], MetaSqnInfo),
    streaming.RowSqnInfoSerializer: struct_of(RowSqnInfo._fields, [LONG, LONG], RowSqnInfo),
    cep.EventIdSerializer: struct_of(EventId._fields, [INT, LONG], EventId),
    cep.DeweyNumberSerializer: ArrowColumn(
        array_of(INT).data_type,
        mapped(lambda version: list(version.digits), DeweyNumber),
        restored(lambda digits: DeweyNumber(tuple(digits))),
    ),
    cep.NodeIdSerializer: lambda made: struct_of(
        NodeId._fields, [*map(part_column_of, made.parts), STRING], NodeId
    ),
    cep.SharedBufferEdgeSerializer: lambda made: struct_of(
        SharedBufferEdge._fields, [*map(part_column_of, made.parts)], SharedBufferEdge
    ),
    cep.LockableTypeSerializer: lambda made: _lockable_of(*map(part_column_of, made.parts)),
    cep.SharedBufferNodeSerializer: lambda made: _node_of(*made.parts),
    cep.SharedBufferNodeV1Serializer: lambda made: _node_of(*made.parts[0].parts),
    cep.NFAStateSerializer: _matches_of,
    # sql_rows, table_runtime, python_rows, python_sql
    sql_rows.RowDataSerializer: lambda made: _sql_row_of(made.fields, is_key=False),
    sql_rows.RawValueDataSerializer: BINARY,
    sql_rows.BinaryRowDataSerializer: BINARY,
    sql_rows.ArrayDataSerializer: lambda made: array_of(_field_of(made)),
    sql_rows.MapDataSerializer: lambda made: map_of(
        *(logical_column_of(field, is_key=False) for field in made.fields)
    ),
    sql_rows.DecimalDataSerializer: _field_of,
    sql_rows.TimestampDataSerializer: _field_of,
    sql_rows.ExternalSerializer: _only_part,
    table_runtime.LinkedListSerializer: _list_of,
    table_runtime.SortedMapSerializer: lambda made: map_of(*map(part_column_of, made.parts)),
    table_runtime.NullAwareMapSerializer: lambda made: map_of(*map(part_column_of, made.parts)),
    table_runtime.ListViewSerializer: _only_part,
    table_runtime.MapViewSerializer: _only_part,
    table_runtime.WindowKeySerializer: lambda made: struct_of(
        WindowKey._fields, [LONG, *map(part_column_of, made.parts)], WindowKey
    ),
    table_runtime.NodeSerializer: lambda made: struct_of(
        Node._fields, [*map(part_column_of, made.parts)], Node
    ),
    table_runtime.RowDataKeySerializer: _only_part,
    python_rows.PythonArraySerializer: lambda made: array_of(*map(typed_column_of, made.parts)),
    python_rows.PythonMapSerializer: lambda made: map_of(*map(typed_column_of, made.parts)),
    python_rows.PythonRowSerializer: lambda made: row_of([*map(typed_column_of, made.parts)]),
    python_sql.PythonStringSerializer: STRING,
    python_sql.PythonBigDecSerializer: BIG_DEC,
    python_sql.PythonDecimalSerializer: _field_of,
    python_sql.PythonDateSerializer: DATE,
    python_sql.PythonTimeSerializer: DAY_MILLIS,
    python_sql.PythonTimestampSerializer: _field_of,
    # pyflink
    compounds.PyFlinkSerializer: _only_part,
    pyflink.DecimalTextSerializer: BIG_DEC,
    pyflink.SqlDateKeySerializer: DATE,
    pyflink.SqlTimeKeySerializer: DAY_MILLIS,
    pyflink.SqlTimestampKeySerializer: TIMESTAMP_NTZ,
}
"""The column of each class of serializers, or what makes it; None where all values are None."""
_TIMESTAMPS = {
    "TIMESTAMP": TIMESTAMP_NTZ,
    "TIMESTAMP_LTZ": TIMESTAMP,
}
_LOGICAL = {
    "BOOLEAN": BOOLEAN,
    "TINYINT": BYTE,
    "SMALLINT": SHORT,
    "INT": INT,
    "BIGINT": LONG,
    "FLOAT": FLOAT,
    "DOUBLE": DOUBLE,
    "CHAR": STRING,
    "VARCHAR": STRING,
    "INTERVAL_YEAR_MONTH": INT,
    "INTERVAL_DAY_TIME": LONG,
    "VARIANT": VARIANT,
    "BITMAP": BITMAP,
    "DATE": DATE,
    "TIME": DAY_MILLIS,
}
