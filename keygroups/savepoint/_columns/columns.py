"""Columns: an Arrow type, a converter of Python values to it, and a restorer of the values.

A converter takes all values of a column at once and returns them as `arrow_array` takes them, with
dicts for maps. It refuses each value that Arrow or Spark would change or hold as something else.
A restorer takes an array of Arrow and returns Python values; the serializer that writes them
checks them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import date, datetime, time, timezone
from decimal import Context, Decimal, InvalidOperation
from itertools import chain, islice, repeat
from operator import is_
from typing import Any, NamedTuple

import pyarrow as pa

from keygroups._checks import exact_repr, show
from keygroups._serializers import big_numbers, collections
from keygroups._values.bitmaps import Bitmap
from keygroups._values.checks import EPOCH
from keygroups._values.java_time import milli_of_day, nano_of_day
from keygroups._values.java_values import (
    Failure,
    Left,
    LocalTime,
    Pojo,
    Right,
    Some,
    Success,
    Variant,
    fields_of,
)
from keygroups._values.rows import GlobalWindow, Row, TimeWindow, TtlValue
from keygroups._values.sql import TimestampData
from keygroups._values.streaming import TaggedUnion
from keygroups.errors import InvalidValueError

ConvertColumn = Callable[[Sequence[Any]], Sequence[Any]]
Restore = Callable[[Any], list[Any]]


def _python_values(array: Any) -> list[Any]:
    values: list[Any] = array.to_pylist()
    return values


class ArrowColumn(NamedTuple):
    """An Arrow type, the converter of Python values to it, and the restorer from an array."""

    data_type: pa.DataType
    convert: ConvertColumn
    restore: Restore = _python_values


def _list_of(element_type: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", element_type))  # Spark's name of the field


def array_of(element: ArrowColumn) -> ArrowColumn:
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
        elements = iter(element.restore(array.flatten()))  # flatten leaves out the nulls' elements
        lengths = array.value_lengths().to_pylist()
        return [None if length is None else list(islice(elements, length)) for length in lengths]

    return ArrowColumn(_list_of(element.data_type), convert, restore)


def ttl_of(value: ArrowColumn) -> ArrowColumn:
    """Return the column of values with their last access."""
    return struct_of(["last_access", "value"], [LONG, value], TtlValue)


def set_of(element: ArrowColumn) -> ArrowColumn:
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

    return ArrowColumn(lists.data_type, convert, restore)


def _in_order(elements: list[Any]) -> list[Any]:
    try:
        return sorted(elements)
    except TypeError:  # null, or a struct with a null
        return sorted(elements, key=exact_repr)


def option_of(value: ArrowColumn) -> ArrowColumn:
    """Return the column of Options: that of what they hold, null for an empty one."""

    def convert(values: Sequence[Any]) -> Sequence[Any]:
        somes = _present(values, Some)
        for some in somes:
            if some.value is None:  # Some(null): a null in the column means None, Scala's empty
                raise unfit(some)
        converted = value.convert([some.value for some in somes])
        return _refilled(values, list(converted))

    def restore(array: Any) -> list[Any]:
        return [None if item is None else Some(item) for item in value.restore(array)]

    return ArrowColumn(value.data_type, convert, restore)


def _branches_of(
    names: Collection[str],
    parts: Sequence[ArrowColumn],
    fields_of: Callable[[Any], tuple[Any, ...]],
    value_of: Callable[..., Any],
    *classes: type,
) -> ArrowColumn:
    """Return the column of a union of types: structs with a field for each."""
    fields = struct_of(names, parts)

    def convert(values: Sequence[Any]) -> Sequence[Any]:
        branches = [fields_of(value) for value in _present(values, *classes)]
        return fields.convert(_refilled(values, branches))

    def restore(array: Any) -> list[Any]:
        return [None if row is None else value_of(*row) for row in fields.restore(array)]

    return ArrowColumn(fields.data_type, convert, restore)


def either_of(left: ArrowColumn, right: ArrowColumn) -> ArrowColumn:
    """Return the column of Eithers; `is_left` tells a left null from a right one."""
    return _branches_of(
        ["is_left", "left", "right"],
        [BOOLEAN, left, right],
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


def union_of(first: ArrowColumn, second: ArrowColumn) -> ArrowColumn:
    """Return the column of elements of two inputs."""
    return _branches_of(
        ["input", "value_1", "value_2"],
        [INT, first, second],
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


def try_of(value: ArrowColumn) -> ArrowColumn:
    """Return the column of Trys: the value, or the exception's class and its bytes."""
    return _branches_of(
        ["value", "java_class", "data"],
        [value, STRING, BINARY],
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


def column_names(names: Iterable[str]) -> list[str]:
    """Return names that columns and fields can have in Arrow and in whatever takes its data.

    Raises InvalidValueError for half of a surrogate pair, which UTF-8 cannot encode; for a NUL,
    which ends a name in C; and for a name that occurs twice.
    """
    checked: dict[str, None] = {}
    for name in names:
        problem = "has a NUL" if "\0" in name else "is there twice" if name in checked else ""
        if not is_encodable(name):
            problem = "has half of a surrogate pair"
        if problem:
            raise InvalidValueError(
                f"the name {show(name)} {problem}, which no column has: read it with "
                "Operator.entries"
            )
        checked[name] = None
    return [*checked]


def is_encodable(text: str) -> bool:
    """Return whether a text is one in UTF-8: whether it has no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def numbered(parts: Sequence[object]) -> list[str]:
    """Return Flink's names of unnamed fields: f0, f1 and so on."""
    return [f"f{index}" for index in range(len(parts))]


def struct_of(
    names: Collection[str], parts: Sequence[ArrowColumn], cls: type = tuple
) -> ArrowColumn:
    """Return the column of tuples, or of a class of named tuples."""

    def convert(values: Sequence[Any]) -> Sequence[Any]:
        rows = _present(values, cls)
        columns = [*zip(*rows)]
        converted = [part.convert(column) for part, column in zip(parts, columns)]
        if cls is tuple and columns and all(map(is_, converted, columns)):
            return values
        return _refilled(values, list(zip(*converted)) if converted else [()] * len(rows))

    def restore(array: Any) -> list[Any]:
        columns = [part.restore(field) for part, field in zip(parts, array.flatten())]
        is_valid = array.is_valid().to_pylist()
        rows = zip(*columns) if columns else repeat(())
        make = tuple if cls is tuple else getattr(cls, "_make", cls)
        return [make(row) if valid else None for row, valid in zip(rows, is_valid)]

    fields = [pa.field(name, part.data_type) for name, part in zip(column_names(names), parts)]
    return ArrowColumn(pa.struct(fields), convert, restore)


def row_of(parts: Sequence[ArrowColumn]) -> ArrowColumn:
    """Return the column of Rows: their fields, and `row_kind`."""
    fields = struct_of([*numbered(parts), "row_kind"], [*parts, STRING])

    def convert(values: Sequence[Any]) -> Sequence[Any]:
        rows = _present(values, Row)
        return fields.convert(_refilled(values, [(*row, row.row_kind) for row in rows]))

    def restore(array: Any) -> list[Any]:
        return [None if row is None else Row(row[:-1], row[-1]) for row in fields.restore(array)]

    return ArrowColumn(fields.data_type, convert, restore)


def pojo_of(java_class: str, names: Sequence[str], parts: Sequence[ArrowColumn]) -> ArrowColumn:
    """Return the column of POJOs of one class; a subclass is refused."""
    fields = struct_of(names, parts)

    def convert(values: Sequence[Any]) -> Sequence[Any]:
        pojos = _present(values, Pojo)
        for pojo in pojos:
            if pojo.java_class != java_class:  # a subclass has other fields
                raise unfit(pojo)
        rows = [tuple(map(fields_of(pojo).__getitem__, names)) for pojo in pojos]
        return fields.convert(_refilled(values, rows))

    def restore(array: Any) -> list[Any]:
        return [
            None if row is None else Pojo(java_class, dict(zip(names, row)))
            for row in fields.restore(array)
        ]

    return ArrowColumn(fields.data_type, convert, restore)


def map_of(key: ArrowColumn, value: ArrowColumn) -> ArrowColumn:
    """Return the column of maps, which have no order."""

    def convert(values: Sequence[Any]) -> Sequence[Any]:
        # A map is a list of pairs where Python takes two keys of Java for one.
        maps = _present(values, dict)
        keys = iter(key.convert(list(chain.from_iterable(maps))))
        items = iter(value.convert(list(chain.from_iterable(one.values() for one in maps))))
        converted = []
        for one in maps:
            try:
                converted.append(dict(zip(islice(keys, len(one)), islice(items, len(one)))))
            except TypeError:  # a key is a set, which is a list in Arrow
                raise unfit(one) from None
        if any(None in one for one in converted):
            raise InvalidValueError("a map has the key null, which no map of a column has")
        return _refilled(values, converted)

    def restore(array: Any) -> list[Any]:
        item = pa.struct([array.type.key_field, array.type.item_field])
        pairs = pairs_of.restore(array.cast(pa.list_(item)))
        return [None if items is None else collections.as_dict(items) for items in pairs]

    pairs_of = array_of(struct_of(["key", "value"], [key, value]))
    # The names of the fields and their nullability are Spark's.
    keys = pa.field("key", key.data_type, nullable=False)
    data_type = pa.map_(keys, pa.field("value", value.data_type))
    return ArrowColumn(data_type, convert, restore)


def _present(values: Iterable[Any], *classes: type) -> list[Any]:
    """Return the values that are not None; refuse one of a class that is not among `classes`."""
    present = [value for value in values if value is not None]
    _check_classes(present, *classes)
    return present


def _refilled(values: Sequence[Any], converted: list[Any]) -> Sequence[Any]:
    """Return the converted values with a None in each place where `values` has one."""
    if len(converted) == len(values):
        return converted
    rest = iter(converted)
    return [None if value is None else next(rest) for value in values]


def _check_classes(values: Sequence[Any], *classes: type) -> None:
    others = set(map(type, values)).difference(classes)
    for value in values if others else ():
        if type(value) in others:
            raise unfit(value)


def unfit(value: object) -> InvalidValueError:
    """Build the error for a value that a column would change."""
    return InvalidValueError(
        f"{show(value)} is nothing that a column holds unchanged: read it with Operator.entries"
    )


def checked(*classes: type) -> ConvertColumn:
    """Return a ConvertColumn that leaves None and values of some classes, and refuses others."""

    def convert(values: Sequence[Any]) -> Sequence[Any]:
        _check_classes(values, *classes, type(None))
        return values

    return convert


def mapped(function: Callable[[Any], Any], *classes: type) -> ConvertColumn:
    """Return a ConvertColumn that applies a function to values of some classes, no others."""

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
    if not is_encodable(text):
        text = next(text for text in texts if not is_encodable(text))
        raise InvalidValueError(
            f"{show(text)} has half of a surrogate pair, which no text of a column holds: read it "
            "with Operator.entries"
        )
    return values


def _day_millis(value: time | int) -> int:
    """Return milliseconds of the day; an int is Flink's own number, not within a day."""
    if isinstance(value, int):
        return value
    return milli_of_day(value)


def _nano_of_day(value: time | LocalTime) -> int:
    if isinstance(value, LocalTime):
        return nano_of_day(*value)
    return nano_of_day(value.hour, value.minute, value.second, value.microsecond * 1_000)


def restored(function: Callable[[Any], Any]) -> Restore:
    """Return a Restore that applies a function to each value of an array."""
    return lambda array: [
        None if value is None else function(value) for value in array.to_pylist()
    ]


def _of_day(units: int) -> Callable[[int], Any]:
    """Return the function from a number of the day, `units` of it in a second, to a time.

    With 1,000 units 3,723,004 is 01:02:03.004. A number not within a day stays as it is; a time
    finer than a microsecond becomes a LocalTime.
    """
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
    """Return the number that a text of BigDecimal.toString stands for; refuse any other text."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    is_java = number.is_finite() and not (number.is_zero() and number.is_signed())
    if not is_java or _NUMBER_TEXT(number) != text:
        raise InvalidValueError(
            f"a BigDecimal must be text as its toString() writes it, got {show(text)}"
        )
    return number


def _big_int(text: str) -> int:
    """Return the integer that a text stands for; int() itself takes at most 4300 digits."""
    number = _big_dec(text)
    if number.as_tuple().exponent != 0:
        raise InvalidValueError(f"a BigInteger must be digits alone, got {show(text)}")
    return int(number)


_MOMENT = pa.timestamp("us", tz="UTC")


def _moments(array: Any) -> list[Any]:
    """Return moments in UTC; an array of Spark has the session's time zone.

    PyArrow's own zone of UTC is ZoneInfo("UTC"), or that of pytz where there is one.
    """
    in_utc = restored(lambda moment: moment.replace(tzinfo=timezone.utc))
    return in_utc(array.cast(_MOMENT))


def _fine_moments(array: Any) -> list[Any]:
    """Return TimestampData; datetimes of an array of these, as a DataFrame has in a key."""
    if pa.types.is_timestamp(array.type):
        return _python_values(array) if array.type.tz is None else _moments(array)
    return restored(lambda fields: TimestampData(*fields.values()))(array)


def _timestamp_data(value: datetime | TimestampData) -> tuple[int, int]:
    if isinstance(value, TimestampData):
        return value.millisecond, value.nano_of_millisecond
    since = value.replace(tzinfo=None) - EPOCH
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    millis, rest = divmod(micros, 1_000)
    return millis, rest * 1_000


LONG = ArrowColumn(pa.int64(), checked(int))
INT = ArrowColumn(pa.int32(), checked(int))
STRING = ArrowColumn(pa.string(), _check_text)
TEXT = ArrowColumn(
    pa.string(),
    lambda values: [None if value is None else exact_repr(value) for value in values],
)
BINARY = ArrowColumn(pa.binary(), checked(bytes))
"""Values that take the job's classes to read, as the bytes in the state."""
BOOLEAN = ArrowColumn(pa.bool_(), checked(bool))
BYTE = ArrowColumn(pa.int8(), checked(int))
SHORT = ArrowColumn(pa.int16(), checked(int))
FLOAT = ArrowColumn(pa.float32(), checked(float))
DOUBLE = ArrowColumn(pa.float64(), checked(float))
_NUMBER_TEXT = Context(capitals=1).to_sci_string  # the text of BigDecimal.toString: 1E+3
BIG_DEC = ArrowColumn(pa.string(), mapped(_NUMBER_TEXT, Decimal), restored(_big_dec))
BIG_INT = ArrowColumn(
    pa.string(),
    mapped(lambda number: _NUMBER_TEXT(big_numbers.to_decimal(number)), int),
    restored(_big_int),
)
DECIMAL = ArrowColumn(pa.decimal128(10, 0), checked(Decimal))
DATE = ArrowColumn(pa.date32(), checked(date))
TIMESTAMP = ArrowColumn(_MOMENT, checked(datetime), _moments)
TIMESTAMP_NTZ = ArrowColumn(pa.timestamp("us"), checked(datetime))
DAY_MILLIS = ArrowColumn(pa.int32(), mapped(_day_millis, time, int), restored(_of_day(1_000)))
DAY_NANOS = ArrowColumn(
    pa.int64(), mapped(_nano_of_day, time, LocalTime), restored(_of_day(1_000_000_000))
)
VARIANT = struct_of(Variant._fields, [BINARY, BINARY], Variant)
BITMAP = ArrowColumn(pa.binary(), mapped(lambda bitmap: bitmap.data, Bitmap), restored(Bitmap))
TIME_WINDOW = struct_of(TimeWindow._fields, [LONG, LONG], TimeWindow)
GLOBAL_WINDOW = ArrowColumn(
    pa.string(),
    mapped(lambda _: "GlobalWindow", GlobalWindow),
    restored(_global_window),
)
EMPTY = struct_of([], [])


def numbers_of(typecode: str, element_type: pa.DataType) -> ArrowColumn:
    """Return the column of arrays of numbers; `typecode` is that of `array`."""

    def numbers(elements: list[Any]) -> array[Any]:
        try:
            return array(typecode, elements)
        except (TypeError, OverflowError):
            raise InvalidValueError(
                f"elements must be numbers of an array.array of type {typecode!r}, got "
                f"{show(elements)}"
            ) from None

    return ArrowColumn(_list_of(element_type), mapped(array.tolist, array), restored(numbers))


FINE_TIMESTAMP = ArrowColumn(
    pa.struct([("millisecond", pa.int64()), ("nano_of_millisecond", pa.int32())]),
    mapped(_timestamp_data, datetime, TimestampData),
    _fine_moments,
)
