"""Spark's types for Flink's serializers, and how the values that they read become Spark's.

A converter takes all values of a column at once and returns them as Spark takes them. It looks at
each: what Spark would change, or hold as something else, is refused. What restores the values
takes an array of Arrow, as Spark sends it, and leaves to the serializer whether it writes them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import date, datetime, time
from decimal import Context, Decimal, InvalidOperation
from itertools import chain, islice, repeat
from typing import Any, NamedTuple

from pyspark.sql import types as T

from keygroups import types
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
from keygroups.types import KeyType

Convert = Callable[[Sequence[Any]], Sequence[Any]]
Restore = Callable[[Any], list[Any]]

_MICROSECOND_DIGITS = 6


def _python_values(array: Any) -> list[Any]:
    values: list[Any] = array.to_pylist()
    return values


class SparkColumn(NamedTuple):
    """A type of Spark, what makes its values, and what makes ours of an array of them."""

    data_type: T.DataType
    convert: Convert
    restore: Restore = _python_values


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


def column_of_key_type(key_type: KeyType) -> SparkColumn:
    """Return the column that state of a key type is written from; its rows are all +I.

    Raises UnsupportedKeyTypeError for one whose serializer is not known.
    """
    if isinstance(key_type, (types.TUPLE, types.ROW)):
        parts = [column_of_key_type(field) for field in key_type.fields]
        return struct_of(_numbered(parts), parts)
    if isinstance(key_type, types.LIST):
        return array_of(column_of_key_type(key_type.element))
    if isinstance(key_type, types.SET):
        return _set_of(column_of_key_type(key_type.element))
    if isinstance(key_type, types.MAP):
        return _map_of(*map(column_of_key_type, key_type.parts))
    if key_type == types.BIG_DEC:
        return _DECIMAL
    return key_column_of(serializer_of(key_type)) or _STRING


def is_written(serializer: Serializer) -> bool:
    """Return whether state of a serializer is written from columns of its type."""
    is_known = type(serializer) in COLUMNS or serializer.key_type is not None
    is_known = is_known or isinstance(serializer, python_rows.TypedSerializer)
    is_text = isinstance(serializer, streaming.StreamElementSerializer) or _is_open(serializer)
    return is_known and not is_text and all(map(is_written, serializer.parts))


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

    def restore(array: Any) -> list[Any]:
        elements = iter(element.restore(array.flatten()))  # without what a null has in it
        lengths = array.value_lengths().to_pylist()
        return [None if length is None else list(islice(elements, length)) for length in lengths]

    return SparkColumn(T.ArrayType(element.data_type), convert, restore)


def ttl_of(value: SparkColumn) -> SparkColumn:
    """Return the column of values with their last access."""
    return struct_of(["last_access", "value"], [_LONG, value], TtlValue)


def _list_of(serializer: Serializer) -> SparkColumn:
    [element] = serializer.parts
    return array_of(_part(element))


def _set_of(element: SparkColumn) -> SparkColumn:
    """Return the column of sets: arrays in an order that does not change from run to run."""
    lists = array_of(element)

    def convert(values: Sequence[Any]) -> Sequence[Any]:
        sets = _present(values, set, frozenset, list)
        return _refilled(values, [*map(_in_order, lists.convert([*map(list, sets)]))])

    def restore(array: Any) -> list[Any]:
        return [
            None if elements is None else collections.as_set(elements)
            for elements in lists.restore(array)
        ]

    return SparkColumn(lists.data_type, convert, restore)


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

    def restore(array: Any) -> list[Any]:
        return [None if of is None else Some(of) for of in value.restore(array)]

    return SparkColumn(value.data_type, convert, restore)


def _branches_of(
    names: Collection[str],
    parts: Sequence[SparkColumn],
    fields_of: Callable[[Any], tuple[Any, ...]],
    value_of: Callable[..., Any],
    *classes: type,
) -> SparkColumn:
    """Return the column of what is of several types: structs with a field for each."""
    fields = struct_of(names, parts)

    def convert(values: Sequence[Any]) -> Sequence[Any]:
        branches = [fields_of(value) for value in _present(values, *classes)]
        return fields.convert(_refilled(values, branches))

    def restore(array: Any) -> list[Any]:
        return [None if of is None else value_of(*of) for of in fields.restore(array)]

    return SparkColumn(fields.data_type, convert, restore)


def _either_of(serializer: Serializer) -> SparkColumn:
    names, parts = ["is_left", "left", "right"], [_BOOLEAN, *map(_part, serializer.parts)]
    return _branches_of(
        names,
        parts,
        lambda either: (
            (True, either.value, None) if type(either) is Left else (False, None, either.value)
        ),
        _either,
        Left,
        Right,
    )


def _global_window(text: str) -> GlobalWindow:
    if text != "GlobalWindow":
        raise InvalidValueError(f"a GlobalWindow must be its name, got {show(text)}")
    return GlobalWindow()


def _either(is_left: bool | None, left: Any, right: Any) -> Left | Right:
    if is_left is None or (right if is_left else left) is not None:
        raise InvalidValueError(
            "an Either must be a left or a right value, as is_left says, got "
            f"{show((is_left, left, right))}"
        )
    return Left(left) if is_left else Right(right)


def _union_of(serializer: Serializer) -> SparkColumn:
    names, parts = ["input", "value_1", "value_2"], [_INT, *map(_part, serializer.parts)]
    return _branches_of(
        names,
        parts,
        lambda union: (1, union.value, None) if union.input == 1 else (2, None, union.value),
        _tagged,
        TaggedUnion,
    )


def _tagged(number: int | None, first: Any, second: Any) -> TaggedUnion:
    if number not in (1, 2) or (second if number == 1 else first) is not None:
        raise InvalidValueError(
            "a TaggedUnion must have the value of its input, 1 or 2, got "
            f"{show((number, first, second))}"
        )
    return TaggedUnion(number, first if number == 1 else second)


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
        _try,
        Success,
        Failure,
    )


def _try(value: Any, java_class: str | None, data: bytes | None) -> Success | Failure:
    if java_class is None and data is None:
        return Success(value)
    if java_class is None or data is None or value is not None:
        raise InvalidValueError(
            "a Try must have a value, or both java_class and data, got "
            f"{show((value, java_class, data))}"
        )
    return Failure(java_class, data)


def _two_phase_of(serializer: Serializer) -> SparkColumn:
    transaction, context = serializer.parts
    holder = struct_of(TransactionHolder._fields, [_part(transaction), _LONG], TransactionHolder)
    parts = [holder, array_of(holder), _option_of(_part(context))]
    return struct_of(TwoPhaseCommitState._fields, parts, TwoPhaseCommitState)


def _matches_of(serializer: Serializer) -> SparkColumn:
    version, node_id, event_id = map(_part, serializer.parts)
    match = struct_of(
        ComputationState._fields,
        [_STRING, node_id, version, _LONG, _LONG, event_id],
        ComputationState,
    )
    return struct_of(NFAState._fields, [array_of(match)] * 2, NFAState)


def _lockable_of(element: SparkColumn) -> SparkColumn:
    return struct_of(Lockable._fields, [_INT, element], Lockable)


def _tuple_of(serializer: Serializer) -> SparkColumn:
    return struct_of(_numbered(serializer.parts), [*map(_part, serializer.parts)])


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


def struct_of(
    names: Collection[str], parts: Sequence[SparkColumn], cls: type = tuple
) -> SparkColumn:
    def convert(values: Sequence[Any]) -> Sequence[Any]:
        rows = _present(values, cls)
        columns = [part.convert(column) for part, column in zip(parts, zip(*rows))]
        return _refilled(values, list(zip(*columns)) if columns else [()] * len(rows))

    def restore(array: Any) -> list[Any]:
        columns = [part.restore(of) for part, of in zip(parts, array.flatten())]
        is_valid = array.is_valid().to_pylist()
        rows = zip(*columns) if columns else repeat(())
        make = tuple if cls is tuple else getattr(cls, "_make", cls)
        return [make(row) if valid else None for row, valid in zip(rows, is_valid)]

    fields = [T.StructField(name, part.data_type) for name, part in zip(names, parts)]
    return SparkColumn(T.StructType(fields), convert, restore)


def _row_of(parts: Sequence[SparkColumn]) -> SparkColumn:
    """Return the column of Rows, which have a kind beside their fields."""
    fields = struct_of([*_numbered(parts), "row_kind"], [*parts, _STRING])

    def convert(values: Sequence[Any]) -> Sequence[Any]:
        rows = _present(values, Row)
        return fields.convert(_refilled(values, [(*row, row.row_kind) for row in rows]))

    def restore(array: Any) -> list[Any]:
        return [None if row is None else Row(row[:-1], row[-1]) for row in fields.restore(array)]

    return SparkColumn(fields.data_type, convert, restore)


def _pojo_of(serializer: Serializer) -> SparkColumn:
    names = serializer.names
    fields = struct_of(names, [*map(_part, serializer.parts)])

    def convert(values: Sequence[Any]) -> Sequence[Any]:
        pojos = _present(values, Pojo)
        for pojo in pojos:
            if pojo.java_class != serializer.java_class:  # a subclass, which has other fields
                raise _unfit(pojo)
        rows = [tuple(pojo[name] for name in names) for pojo in pojos]
        return fields.convert(_refilled(values, rows))

    def restore(array: Any) -> list[Any]:
        return [
            None if row is None else Pojo(serializer.java_class, dict(zip(names, row)))
            for row in fields.restore(array)
        ]

    return SparkColumn(fields.data_type, convert, restore)


def _map_of(key: SparkColumn, value: SparkColumn) -> SparkColumn:
    def convert(values: Sequence[Any]) -> Sequence[Any]:
        # A map is a list of pairs where Python takes two keys of Java for one.
        maps = _present(values, dict)
        keys = iter(key.convert(list(chain.from_iterable(maps))))
        items = iter(value.convert(list(chain.from_iterable(one.values() for one in maps))))
        converted = []
        for one in maps:
            try:
                converted.append(dict(zip(islice(keys, len(one)), islice(items, len(one)))))
            except TypeError:  # a key is a set, which is an array in Spark
                raise _unfit(one) from None
        if any(None in one for one in converted):
            raise InvalidValueError("a map has the key null, which no map of Spark has")
        return _refilled(values, converted)

    def restore(array: Any) -> list[Any]:
        import pyarrow as pa

        of = array.type
        item = pa.struct([pa.field("key", of.key_type), pa.field("value", of.item_type)])
        pairs = pairs_of.restore(array.cast(pa.list_(item)))
        return [None if items is None else collections.as_dict(items) for items in pairs]

    pairs_of = array_of(struct_of(["key", "value"], [key, value]))
    return SparkColumn(T.MapType(key.data_type, value.data_type), convert, restore)


def _sql_row_of(fields: Sequence[LogicalType], is_key: bool) -> SparkColumn:
    parts = [_logical(field, is_key) for field in fields]
    if not is_key:
        return _row_of(parts)
    row = struct_of(_numbered(parts), parts, Row)

    def convert(values: Sequence[Any]) -> Sequence[Any]:
        for value in values:
            if value is not None and value.row_kind != "+I":
                raise _unfit(value)
        return row.convert(values)

    return SparkColumn(row.data_type, convert, row.restore)


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


def _restored(function: Callable[[Any], Any]) -> Restore:
    """Make what applies a function to the values of an array."""
    return lambda array: [
        None if value is None else function(value) for value in array.to_pylist()
    ]


def _of_day(units: int) -> Callable[[int], Any]:
    """Return what makes a time of the day of so many units in a second."""
    nanos = 1_000_000_000 // units

    def time_of_day(number: int) -> time | LocalTime | int:
        if not 0 <= number < 86_400 * units:
            return number
        seconds, nano = divmod(number * nanos, 1_000_000_000)
        hour, minute, second = seconds // 3600, seconds // 60 % 60, seconds % 60
        if nano % 1_000:
            return LocalTime(hour, minute, second, nano)
        return time(hour, minute, second, nano // 1_000)

    return time_of_day


def _big_dec(text: str) -> Decimal:
    """Return the number whose text of BigDecimal.toString is given."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or _NUMBER_TEXT(number) != text:
        raise InvalidValueError(
            f"a BigDecimal must be text as its toString() writes it, got {show(text)}"
        )
    return number


def _big_int(text: str) -> int:
    """Return the number of a text; int() takes no more than 4300 digits."""
    number = _big_dec(text)
    if number.as_tuple().exponent != 0:
        raise InvalidValueError(f"a BigInteger must be digits alone, got {show(text)}")
    return int(number)


def _printed(value: object) -> str:
    try:
        return repr(value)
    except ValueError:  # of a number with more digits than Python prints
        raise _unfit(value) from None


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
    T.StringType(),
    lambda values: [None if value is None else _printed(value) for value in values],
)
_OPEN = (avro.AvroSerializer, kryo.KryoSerializer)
BINARY = SparkColumn(T.BinaryType(), _checked(bytes))
"""What takes the job's classes to read."""

_BOOLEAN = SparkColumn(T.BooleanType(), _checked(bool))
_BYTE = SparkColumn(T.ByteType(), _checked(int))
_SHORT = SparkColumn(T.ShortType(), _checked(int))
_FLOAT = SparkColumn(T.FloatType(), _checked(float))
_DOUBLE = SparkColumn(T.DoubleType(), _checked(float))

_NUMBER_TEXT = Context(capitals=1).to_sci_string  # as BigDecimal.toString has it
_BIG_DEC = SparkColumn(T.StringType(), _mapped(_NUMBER_TEXT, Decimal), _restored(_big_dec))
_BIG_INT = SparkColumn(
    T.StringType(),
    _mapped(lambda number: _NUMBER_TEXT(big_numbers.to_decimal(number)), int),
    _restored(_big_int),
)
_DECIMAL = SparkColumn(T.DecimalType(), _checked(Decimal))
_DATE = SparkColumn(T.DateType(), _checked(date))
_TIMESTAMP = SparkColumn(T.TimestampType(), _checked(datetime))
_TIMESTAMP_NTZ = SparkColumn(T.TimestampNTZType(), _checked(datetime))
_DAY_MILLIS = SparkColumn(
    T.IntegerType(), _mapped(_day_millis, time, int), _restored(_of_day(1_000))
)
_DAY_NANOS = SparkColumn(
    T.LongType(), _mapped(_nano_of_day, time, LocalTime), _restored(_of_day(1_000_000_000))
)
_VARIANT = struct_of(Variant._fields, [BINARY, BINARY], Variant)
_BITMAP = SparkColumn(
    T.BinaryType(), _mapped(lambda bitmap: bitmap.data, Bitmap), _restored(Bitmap)
)
_TIME_WINDOW = struct_of(TimeWindow._fields, [_LONG, _LONG], TimeWindow)
_GLOBAL_WINDOW = SparkColumn(
    T.StringType(),
    _mapped(lambda _: "GlobalWindow", GlobalWindow),
    _restored(_global_window),
)
_EMPTY = struct_of([], [])


def _numbers(typecode: str, element_type: T.DataType) -> SparkColumn:
    """Return the column of arrays of numbers; `typecode` is that of `array`."""

    def numbers(elements: list[Any]) -> array[Any]:
        try:
            return array(typecode, elements)
        except (TypeError, OverflowError):
            raise InvalidValueError(
                f"elements must be numbers of an array.array of type {typecode!r}, got "
                f"{show(elements)}"
            ) from None

    return SparkColumn(T.ArrayType(element_type), _mapped(array.tolist, array), _restored(numbers))


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
    scalars.CountWindowSerializer: struct_of(CountWindow._fields, [_LONG], CountWindow),
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
    arrays.CharPrimitiveArraySerializer: _numbers("H", T.IntegerType()),
    arrays.ShortPrimitiveArraySerializer: _numbers("h", T.ShortType()),
    arrays.IntPrimitiveArraySerializer: _numbers("i", T.IntegerType()),
    arrays.LongPrimitiveArraySerializer: _numbers("q", T.LongType()),
    arrays.FloatPrimitiveArraySerializer: _numbers("f", T.FloatType()),
    arrays.DoublePrimitiveArraySerializer: _numbers("d", T.DoubleType()),
    arrays.StringArraySerializer: array_of(_STRING),
    java_time.LocalDateSerializer: _DATE,
    java_time.LocalTimeSerializer: _DAY_NANOS,
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
    collections.SetSerializer: lambda made: _set_of(_part(made.parts[0])),
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
    streaming.BufferEntrySerializer: lambda made: struct_of(
        BufferEntry._fields, [_part(made.parts[0]), _BOOLEAN], BufferEntry
    ),
    streaming.StreamElementSerializer: _TEXT,  # which no keyed state has
    streaming.TwoPhaseCommitSerializer: _two_phase_of,
    streaming.LegacyTwoPhaseCommitSerializer: _two_phase_of,
    streaming.MetaSqnInfoSerializer: struct_of(MetaSqnInfo._fields, [_LONG] * 2, MetaSqnInfo),
    streaming.RowSqnInfoSerializer: struct_of(RowSqnInfo._fields, [_LONG] * 2, RowSqnInfo),
    cep.EventIdSerializer: struct_of(EventId._fields, [_INT, _LONG], EventId),
    cep.DeweyNumberSerializer: SparkColumn(
        T.ArrayType(T.IntegerType()),
        _mapped(lambda version: list(version.digits), DeweyNumber),
        _restored(lambda digits: DeweyNumber(tuple(digits))),
    ),
    cep.NodeIdSerializer: lambda made: struct_of(
        NodeId._fields, [_part(made.parts[0]), _STRING], NodeId
    ),
    cep.SharedBufferEdgeSerializer: lambda made: struct_of(
        SharedBufferEdge._fields, [*map(_part, made.parts)], SharedBufferEdge
    ),
    cep.LockableTypeSerializer: lambda made: _lockable_of(_part(made.parts[0])),
    cep.SharedBufferNodeSerializer: lambda made: struct_of(
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
    table_runtime.WindowKeySerializer: lambda made: struct_of(
        WindowKey._fields, [_LONG, _part(made.parts[0])], WindowKey
    ),
    table_runtime.NodeSerializer: lambda made: struct_of(
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
    _restored(lambda fields: TimestampData(*fields.values())),
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
