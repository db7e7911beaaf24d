"""Flink SQL's keys on columns: the hash of a BinaryRowData.

The layout is that of `keygroups.binary_row`, and so are the values that are refused: here they
fail the query. A few fields of fixed width are hashed word by word. Else there are bytes to
hash: words of 8, made by the current backend, and those of text, binaries, large numbers and
nested values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import types as T

from keygroups.errors import InvalidTypeError, UnsupportedKeyTypeError
from keygroups.logical_types import LogicalType
from keygroups.spark._columns.key_columns import (
    CHARS,
    KeyColumn,
    KeyTree,
    checked,
    counted,
    has_types,
    single,
    struct_fields,
    typed,
)
from keygroups.spark._columns.portable import Portable
from keygroups.spark._columns.row_layout import (
    Value,
    appended,
    end_of_row,
    join,
    laid_out,
    low_bytes,
    null_words,
    slot_of,
    zeros,
)

_NESTED = ("ROW", "ARRAY")
_TEXTS = ("CHAR", "VARCHAR", "BINARY", "VARBINARY")
SQL_TYPES = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INT",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "STRING",
    "binary": "BYTES",
    "date": "DATE",
    "timestamp_ntz": "TIMESTAMP",
    "timestamp": "TIMESTAMP_LTZ",
}
"""The type in a Flink table for each Spark type that has no parameters."""
FIELD_TYPES = {
    **{name: spark_type for spark_type, name in SQL_TYPES.items()},
    **{"CHAR": "string", "VARCHAR": "string", "BINARY": "binary", "VARBINARY": "binary"},
}
"""The Spark type that holds each type of Flink SQL that has one without parameters."""
_SIMPLE_TYPES: dict[str, T.DataType] = {
    spark_type().simpleString(): spark_type()
    for spark_type in (
        *(T.BooleanType, T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType),
        *(T.DoubleType, T.StringType, T.BinaryType, T.DateType, T.TimestampNTZType),
        T.TimestampType,
    )
}


def row_hash(backend: Portable, key: KeyTree, types: Sequence[LogicalType]) -> Column:
    """Return the hash of a key row, given by its fields; it is never null."""
    fields, conditions = _types_known(backend, counted(key, len(types), "SQL_ROW"), types)
    code = _fields_hash(backend, fields, types)
    for condition in conditions:
        code = backend.F.when(condition, code).otherwise(backend.F.lit(0))
    return code


def _fields_hash(
    backend: Portable, fields: Sequence[KeyTree], types: Sequence[LogicalType]
) -> Column:
    if len(types) > backend.most_fields or any(map(_is_variable, types)):
        # Spark's hash of bytes is murmur3 seeded with 42, as is BinaryRowData's.
        return backend.F.hash(_row(backend, fields, types, is_key=True))
    words = null_words(backend, _nulls(fields))
    for field, logical_type in zip(fields, types):
        column = single(field, f"{logical_type} of SQL_ROW")
        value = laid_out(backend, _value(backend, column, logical_type, is_key=True))
        slot = slot_of(backend, value, None)
        if logical_type.element_size == 8:
            words += [backend.low32(slot), backend.F.shiftrightunsigned(slot, 32)]
        else:
            words += [slot, None]
    return backend.hash_words(words, 42, 4 * len(words))


def _types_known(
    backend: Portable, fields: Sequence[KeyTree], types: Sequence[LogicalType]
) -> tuple[list[KeyTree], list[Column]]:
    """Return the fields with the types of columns, and conditions that fail if these are others.

    A check of each of many columns would be most of the plan that Spark has to analyse: there is
    one for all of a type.
    """
    known = list(fields)
    alike: dict[tuple[str, str], list[Column]] = {}
    for index, (field, logical_type) in enumerate(zip(fields, types)):
        spark_type = _spark_type(logical_type)
        if spark_type is None or not isinstance(field, KeyColumn):
            continue
        if field.spark_type is None or isinstance(field.spark_type, CHARS):
            name = f"{logical_type} of SQL_ROW"
            alike.setdefault((spark_type.simpleString(), name), []).append(field.column)
            known[index] = replace(field, spark_type=spark_type)
    return known, [has_types(backend, columns, *kind) for kind, columns in alike.items()]


def _spark_type(logical_type: LogicalType) -> T.DataType | None:
    """Return the type of the column for a field, None for a nested one and what has none."""
    if logical_type.name == "DECIMAL":
        return T.DecimalType(logical_type.precision or 0, logical_type.scale or 0)
    return _SIMPLE_TYPES.get(FIELD_TYPES.get(logical_type.name, ""))


def _is_variable(logical_type: LogicalType) -> bool:
    name = logical_type.name
    return name in _NESTED or name in _TEXTS or logical_type.reserved > 0


def _row(
    backend: Portable, fields: Sequence[KeyTree], types: Sequence[LogicalType], is_key: bool
) -> Column:
    F = backend.F
    nested = {
        index: _nested_bytes(backend, field, logical_type)
        for index, (field, logical_type) in enumerate(zip(fields, types))
        if logical_type.name in _NESTED
    }

    def assemble(data: Mapping[int, Column]) -> Column:
        values = [
            _nested_value(backend, data[index])
            if index in data
            else _value(backend, single(field, f"{logical_type} of SQL_ROW"), logical_type, is_key)
            for index, (field, logical_type) in enumerate(zip(fields, types))
        ]
        return join(backend, _nulls(fields), values)

    if not nested:
        return assemble({})
    struct = F.struct(*(data.alias(f"f{index}") for index, data in nested.items()))
    return backend.shared(struct, lambda s: assemble({i: s.getField(f"f{i}") for i in nested}))


def _nulls(fields: Sequence[KeyTree]) -> list[Column | None]:
    """Return whether each field is null; a row given by its fields is not, and has None."""
    return [field.column.isNull() if isinstance(field, KeyColumn) else None for field in fields]


def _value(
    backend: Portable,
    key: KeyColumn,
    logical_type: LogicalType,
    is_key: bool,
    in_array: bool = False,
) -> Value | Column:
    F, name = backend.F, logical_type.name
    if name == "DECIMAL":
        return _decimal(backend, key, logical_type, is_key)
    if name not in FIELD_TYPES:
        raise UnsupportedKeyTypeError(f"{logical_type} of SQL_ROW has no column expression")
    column = checked(backend, key, FIELD_TYPES[name], f"{logical_type} of SQL_ROW")
    column = _required(backend, column, logical_type)
    if name in _TEXTS:
        return _text(backend, column, logical_type)
    if name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return _timestamp(backend, column, logical_type, is_key)
    if name == "BOOLEAN":
        return Value(F.when(column, F.lit(1)).when(~column, F.lit(0)).cast("bigint"))
    if name == "FLOAT":  # an array's writer knows one NaN only
        return Value(backend.float_bits(column, raw=not in_array))
    if name == "DOUBLE":
        return Value(backend.double_bits(column, raw=not in_array))
    number = (F.unix_date(column) if name == "DATE" else column).cast("bigint")
    size = logical_type.element_size
    return Value(number if size == 8 else number.bitwiseAND(F.lit(2 ** (8 * size) - 1)))


def _required(backend: Portable, column: Column, logical_type: LogicalType) -> Column:
    if logical_type.nullable:
        return column
    F = backend.F
    refused = F.raise_error(F.lit(f"key of type {logical_type} must not be null"))
    return F.when(column.isNotNull(), column).otherwise(refused)


def _text(backend: Portable, column: Column, logical_type: LogicalType) -> Column:
    """Return the bytes of a text or binary; one that is too short for CHAR(n) gets no blanks."""
    F, limit = backend.F, logical_type.length
    if limit is not None and limit < logical_type.MAX_LENGTH:
        message = f"key of type {logical_type} must not be longer, got length "
        length = F.length(column)
        column = backend.accept(length <= limit, column, length, message)
    return column.cast("binary")


def _decimal(backend: Portable, key: KeyColumn, logical_type: LogicalType, is_key: bool) -> Value:
    F, precision, scale = backend.F, logical_type.precision or 0, logical_type.scale or 0
    spark_type, name = f"decimal({precision},{scale})", f"{logical_type} of SQL_ROW"
    if key.spark_type is None:
        column = typed(backend, key.column, spark_type, name)
    else:
        column = checked(backend, key, "decimal", name)
        assert isinstance(key.spark_type, T.DecimalType)
        whole = key.spark_type.precision - key.spark_type.scale
        if key.spark_type.scale > scale or whole > precision - scale:
            raise InvalidTypeError(
                f"{name} does not hold every number of {key.name}, which is "
                f"{key.spark_type.simpleString()}: cast it to {spark_type} first"
            )
        column = column.cast(T.DecimalType(precision, scale))
    column = _required(backend, column, logical_type)
    size = logical_type.reserved
    if not size:
        return Value(backend.unscaled_long(column, scale))
    data = backend.unscaled_bytes(column, scale)
    count = F.octet_length(data)
    tail = backend.joined(data, zeros(backend, F.lit(size) - count))
    return _long_form(backend, column, count.cast("bigint"), tail, size, is_key)


def _long_form(
    backend: Portable, column: Column, word: Column, tail: Column, size: int, is_key: bool
) -> Value:
    """Return a value that takes room in the variable part of a key even where it is null."""
    F = backend.F
    if is_key:
        word, tail = F.coalesce(word, F.lit(0)), F.coalesce(tail, F.lit(bytes(size)))
        return Value(word, tail, F.lit(size).cast("bigint"))
    return Value(word, tail, F.when(column.isNotNull(), F.lit(size).cast("bigint")))


def _timestamp(
    backend: Portable, column: Column, logical_type: LogicalType, is_key: bool
) -> Value:
    F, precision = backend.F, logical_type.precision or 0
    if logical_type.name == "TIMESTAMP_LTZ":
        millis = F.unix_millis(column)
        micros = F.pmod(F.unix_micros(column), F.lit(1_000))
    else:
        days, micro_of_day = backend.day_and_micros(column)
        milli_of_day = F.floor(micro_of_day / 1_000)  # "/" gives a double, exact below 2^53.
        millis, micros = days * 86_400_000 + milli_of_day, micro_of_day - milli_of_day * 1_000
    if precision < 6:  # Spark has no finer ones
        finer = ((millis % 1_000) * 1_000 + micros) % 10 ** (6 - precision)
        message = (
            f"key of type {logical_type} must have at most {precision} digits of a fraction of "
            "a second, got "
        )
        millis = backend.accept(finer == 0, millis, column, message)
    if not logical_type.reserved:
        return Value(millis)
    tail = F.when(column.isNotNull(), backend.words([F.coalesce(millis, F.lit(0))]))
    return _long_form(backend, column, micros * 1_000, tail, logical_type.reserved, is_key)


def _nested_bytes(backend: Portable, field: KeyTree, logical_type: LogicalType) -> Column:
    """Return the bytes of a nested row or array; null where it is null."""
    F, name = backend.F, f"{logical_type} of SQL_ROW"
    if logical_type.name == "ROW" and not isinstance(field, KeyColumn):
        fields = counted(field, len(logical_type.fields), name)
        return _row(backend, fields, logical_type.fields, is_key=False)
    field = single(field, name)
    if logical_type.name == "ARRAY":
        data = _array(
            backend, field, logical_type.fields[0], checked(backend, field, "array", name)
        )
    else:
        columns = struct_fields(field, logical_type.names)
        if columns is None:
            known = "not known" if field.spark_type is None else field.spark_type.simpleString()
            raise InvalidTypeError(
                f"{name} takes a column of type struct under a DataFrame, or a list of columns, "
                f"but the type of {field.name} is {known}"
            )
        fields = counted(columns, len(logical_type.fields), name)
        data = _row(backend, fields, logical_type.fields, is_key=False)
    data = F.when(field.column.isNotNull(), data)
    return _required(backend, data, logical_type)


def _nested_value(backend: Portable, data: Column) -> Value:
    size = backend.F.octet_length(data).cast("bigint")
    return Value(size, data, size)


def _array(backend: Portable, key: KeyColumn, element: LogicalType, array: Column) -> Column:
    """Return the bytes of an array: its size, null bits in 4-byte words, slots, tails."""
    F = backend.F
    element_type = key.spark_type.elementType if isinstance(key.spark_type, T.ArrayType) else None
    count = F.size(array)
    header_size = F.shiftright(count + 31, 5) * 4 + 4
    fixed_size = (header_size + count * element.element_size + 7).bitwiseAND(F.lit(-8))

    def named(column: Column) -> KeyColumn:
        return KeyColumn(column, f"{key.name}.element", element_type)

    def step(data: Column, column: Column) -> Column:
        value = (
            _nested_value(backend, column)
            if element.name in _NESTED
            else _value(backend, named(column), element, is_key=False, in_array=True)
        )
        offset = end_of_row(backend, data, fixed_size)
        return appended(backend, data, value, offset, slot_size=element.element_size)

    def finish(data: Column) -> Column:
        fixed, tails = data.getField("slots"), data.getField("tails")
        gap = zeros(backend, fixed_size - header_size - F.octet_length(fixed))
        size = low_bytes(backend, backend.words([count.cast("bigint")]), 4)
        return backend.joined(size, _null_bits(backend, array, count), fixed, gap, tails)

    elements = array
    if element.name in _NESTED:
        elements = F.transform(
            array, lambda column: _nested_bytes(backend, named(column), element)
        )
    empty = F.struct(F.lit(b"").alias("slots"), F.lit(b"").alias("tails"))
    return F.aggregate(elements, empty, step, finish)


def _null_bits(backend: Portable, array: Column, count: Column) -> Column:
    F = backend.F

    def add_bit(bits: Column, index: Column, word: Column) -> Column:
        at = word * 32 + index
        bit = F.call_function("shiftleft", F.lit(1).cast("bigint"), index)
        return bits + F.when((at < count) & F.get(array, at).isNull(), bit).otherwise(F.lit(0))

    def add_word(bytes_: Column, word: Column) -> Column:
        bits = F.aggregate(
            F.sequence(F.lit(0), F.lit(31)),
            F.lit(0).cast("bigint"),
            lambda bits, index: add_bit(bits, index, word),
        )
        word_bytes = low_bytes(backend, backend.words([backend.low32(bits)]), 4)
        return backend.joined(bytes_, word_bytes)

    last = F.shiftright(count + 31, 5) - 1
    words = F.aggregate(F.sequence(F.lit(0), last), F.lit(b""), add_word)
    return F.when(count > 0, words).otherwise(F.lit(b""))
