"""The column of a key's hash code, from the columns of the key and its key type.

The expressions are those of the current backend; SPARK_TYPES says which Spark type holds a key
type.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from functools import lru_cache

from pyspark.sql import Column
from pyspark.sql import types as T

from keygroups import types
from keygroups.errors import InvalidValueError, UnsupportedKeyTypeError
from keygroups.hashing import hash_code, scala_state
from keygroups.spark._columns.binary_row import row_hash
from keygroups.spark._columns.key_columns import (
    KeyColumn,
    KeyTree,
    checked,
    counted,
    single,
    struct_fields,
)
from keygroups.spark._columns.portable import Portable

SPARK_TYPES: dict[types.KeyType, str] = {
    types.BOOLEAN: "boolean",
    types.BYTE: "tinyint",
    types.SHORT: "smallint",
    types.INT: "int",
    types.LONG: "bigint",
    types.FLOAT: "float",
    types.DOUBLE: "double",
    types.STRING: "string",
    types.BIG_DEC: "decimal",
    types.LOCAL_DATE: "date",
    types.LOCAL_DATE_TIME: "timestamp_ntz",
    types.INSTANT: "timestamp",
    types.UUID: "string",
    types.BYTE_BUFFER: "binary",
    types.HASHED: "int",
}
"""The Spark type that holds each scalar key type, as `typeof` says it, without parameters."""


def hash_key(
    backend: Portable, key: KeyTree, key_type: types.KeyType
) -> tuple[Column, Column | None]:
    """Return the hash code of a key, and the column that is null where the key is null.

    That column is None for a key that never is null: a tuple or row given by its fields, and
    a PyFlink key, of which Flink has a null one.
    """
    code = backend.of_whole_key(_hash_whole(backend, key, key_type), key, key_type)
    whole = whole_key(key, key_type)
    return code, None if whole is None else whole.column


def whole_key(key: KeyTree, key_type: types.KeyType) -> KeyColumn | None:
    """Return the column that is null where a key is null as a whole.

    None is for a key that never is: a tuple or row given by its fields, a SQL_ROW of one column,
    which is its field, and a key of PYFLINK or SCALA_OPTION, for which a null is a key.
    """
    if isinstance(key_type, (types.PYFLINK, types.SCALA_OPTION)):
        return None
    if isinstance(key_type, (types.FieldsType, types.SQL_ROW)):
        if isinstance(key_type, types.SQL_ROW) and len(key_type.fields) == 1:
            return None
        if isinstance(key, KeyColumn) and isinstance(key.spark_type, T.StructType):
            return key
        return None
    [only] = counted(key, 1, key_type)
    return single(only, f"key of type {key_type}")


def _hash_whole(backend: Portable, key: KeyTree, key_type: types.KeyType) -> Column:
    if isinstance(key_type, types.FieldsType):
        return _hash_fields(backend, key, key_type)[0]
    if isinstance(key_type, types.SQL_ROW):
        return _hash_sql_row(backend, key, key_type)
    if isinstance(key_type, types.PYFLINK):
        return _hash_pyflink(backend, key, key_type)
    [only] = counted(key, 1, key_type)
    if isinstance(key_type, types.SCALA_OPTION):
        return _hash(backend, only, key_type)
    return _hash_column(backend, single(only, f"key of type {key_type}"), key_type)


def _hash(backend: Portable, key: KeyTree, key_type: types.KeyType) -> Column:
    """Return the hash of a part of a key; null where the part is."""
    if isinstance(key_type, types.FieldsType):
        code, struct = _hash_fields(backend, key, key_type)
        return code if struct is None else backend.F.when(struct.isNotNull(), code)
    column = single(key, f"key of type {key_type}")
    if isinstance(key_type, types.SCALA_OPTION):
        return _hash_option(backend, column, key_type)
    return _hash_column(backend, column, key_type)


def _deep(backend: Portable, key: KeyTree, key_type: types.KeyType) -> Column:
    """Return the hash of a Row's field: RowUtils goes into lists, and else adds 31."""
    if isinstance(key_type, types.LIST) and isinstance(key, KeyColumn):
        return _hash_list(backend, key, key_type, _deep)
    return _hash(backend, key, key_type).cast("bigint") + backend.F.lit(31)


def _hash_fields(
    backend: Portable, key: KeyTree, key_type: types.FieldsType
) -> tuple[Column, Column | None]:
    F = backend.F
    fields, struct = key_fields(key, key_type)
    pairs = list(zip(fields, key_type.fields))
    if isinstance(key_type, types.ScalaProduct):
        return _hash_product(backend, pairs, key_type), struct
    if not isinstance(key_type, types.ROW):
        start = key_type.start if isinstance(key_type, types.OBJECTS_HASH) else 0
        codes = [_hash(backend, field, field_type) for field, field_type in pairs]
        return (backend.fold(codes, start) if codes else F.lit(start)), struct
    codes = [_deep(backend, field, field_type) for field, field_type in pairs]
    kind = 31 * key_type.kind_byte
    if key_type.names is None:
        return backend.fold_longs(codes, 1, plus=kind), struct
    # A row of Row.withNames() hashes as a map: the sum of name xor field.
    name_codes = [(31 + hash_code(name, types.STRING)) % 2**32 for name in key_type.names]
    terms = [
        backend.low32(F.coalesce(code.cast("bigint"), F.lit(0))).bitwiseXOR(F.lit(name))
        for name, code in zip(name_codes, codes)
    ]
    return backend.as_code(backend.total(terms, 1 + kind)), struct


def _hash_product(
    backend: Portable, pairs: list[tuple[KeyTree, types.KeyType]], key_type: types.ScalaProduct
) -> Column:
    if not pairs:
        return backend.F.lit(hash_code(key_type.prefix, types.STRING))
    words = [_scala_word(backend, field, field_type) for field, field_type in pairs]
    state = scala_state(key_type.scala, key_type.prefix)
    return backend.hash_words(words, state, len(words))


def _hash_option(backend: Portable, key: KeyColumn, key_type: types.SCALA_OPTION) -> Column:
    """Hash an Option: null is Scala's None."""
    word = _scala_word(backend, key, key_type.element)
    code = backend.hash_words([word], scala_state(key_type.scala, "Some"), 1)
    return backend.F.when(key.column.isNotNull(), code).otherwise(hash_code("None", types.STRING))


def _scala_word(backend: Portable, key: KeyTree, key_type: types.KeyType) -> Column:
    """Return the `##` of a field as a bigint from 0 to 2^32 - 1; a null counts 0."""
    F = backend.F
    hasher = backend.scala_hashers.get(key_type)
    if hasher is None:
        code = _hash(backend, key, key_type)
    else:
        name = f"key type {key_type}"
        column = single(key, f"key of type {key_type}")
        code = hasher(checked(backend, column, SPARK_TYPES[key_type], name))
    return backend.low32(F.coalesce(code.cast("bigint"), F.lit(0)))


def _hash_sql_row(backend: Portable, key: KeyTree, key_type: types.SQL_ROW) -> Column:
    """Hash a row; one column is its only field, or a struct of several."""
    fields = key_fields(key, key_type)[0] if len(key_type.fields) > 1 else key
    return row_hash(backend, fields, key_type.fields)


def _hash_pyflink(backend: Portable, key: KeyTree, key_type: types.PYFLINK) -> Column:
    """Hash the Row of one field that PyFlink puts round a key."""
    element = key_type.element
    if isinstance(element, types.SQL_TIMESTAMP):
        raise UnsupportedKeyTypeError(f"key type {key_type} has no column expression")
    if not isinstance(element, types.FieldsType):
        [key] = counted(key, 1, key_type)
    return backend.fold_longs([_deep(backend, key, element)], 1)


def _hash_column(backend: Portable, key: KeyColumn, key_type: types.KeyType) -> Column:
    name = f"key type {key_type}"
    if isinstance(key_type, types.LIST):
        return _hash_list(backend, key, key_type, _hash)
    if isinstance(key_type, types.SQL_TIMESTAMP):
        # java.sql.Timestamp hashes its epoch millisecond, whatever the zone.
        timestamp = checked(backend, key, "timestamp", name)
        return backend.hash_long(backend.F.unix_millis(timestamp))
    if isinstance(key_type, types.SQL_DATE):
        return _hash_sql_date(backend, checked(backend, key, "date", name), key_type)
    if key_type not in SPARK_TYPES:
        raise UnsupportedKeyTypeError(f"key type {key_type} has no column expression")
    return backend.hashers[key_type](checked(backend, key, SPARK_TYPES[key_type], name))


def _hash_list(
    backend: Portable,
    key: KeyColumn,
    key_type: types.LIST,
    hash_element: Callable[[Portable, KeyTree, types.KeyType], Column],
) -> Column:
    array = key.spark_type
    element_type = array.elementType if isinstance(array, T.ArrayType) else None

    def hash_one(element: Column) -> Column:
        named = KeyColumn(element, f"{key.name}.element", element_type)
        return hash_element(backend, named, key_type.element)

    return backend.fold_array(checked(backend, key, "array", f"key type {key_type}"), hash_one)


def _hash_sql_date(backend: Portable, date: Column, key_type: types.SQL_DATE) -> Column:
    """Hash the epoch millisecond of local midnight, as java.sql.Date does.

    Where the core cannot say which instant that is, the query fails.
    """
    F = backend.F
    first, last, doubtful = _midnights(key_type)
    days = [start for start, end in doubtful if start == end]
    year, month, day, zero = F.year(date), F.month(date), F.dayofmonth(date), F.lit(0)
    midnight = F.make_timestamp_ltz(year, month, day, zero, zero, zero, F.lit(key_type.name))
    certain = date.between(F.lit(first), F.lit(last))
    if days:
        certain = certain & ~date.isin(days)
    for start, end in doubtful:  # Runs of several days are few.
        if start != end:
            certain = certain & ~date.between(F.lit(start), F.lit(end))
    message = f"key of type {key_type} must be one certain instant, got "
    return backend.accept(certain, backend.hash_long(F.unix_millis(midnight)), date, message)


@lru_cache(maxsize=64)
def _midnights(key_type: types.SQL_DATE) -> tuple[dt.date, dt.date, list[tuple[dt.date, dt.date]]]:
    """Return the first and last date with a certain midnight, and runs between without one."""
    first, last = (moment.date() for moment in key_type.certain_span)
    if key_type.name == "UTC":
        return first, last, []
    doubtful: list[tuple[dt.date, dt.date]] = []
    for day in range(first.toordinal(), last.toordinal() + 1):
        date = dt.date.fromordinal(day)
        try:
            hash_code(date, key_type)
        except InvalidValueError:
            goes_on = doubtful and doubtful[-1][1].toordinal() == day - 1
            start = doubtful.pop()[0] if goes_on else date
            doubtful.append((start, date))
    return first, last, doubtful


def key_fields(
    key: KeyTree, key_type: types.FieldsType | types.SQL_ROW
) -> tuple[Sequence[KeyTree], Column | None]:
    """Return the columns of the fields, and the struct column that they are in, if any."""
    names = key_type.names if isinstance(key_type, types.ROW) else None
    fields = struct_fields(key, names) if isinstance(key, KeyColumn) else None
    if fields is None or not isinstance(key, KeyColumn):
        return counted(key, len(key_type.fields), key_type), None
    return counted(fields, len(key_type.fields), key_type), key.column


def contains(key_type: types.KeyType, *scalars: types.ScalarType) -> bool:
    """Return whether a key type is one of some, or made of one."""
    if isinstance(key_type, types.SQL_ROW):
        names = {scalar.name for scalar in scalars}
        return any(nested.name in names for field in key_type.fields for nested in field.walk())
    return any(nested in scalars for nested in key_type.walk())
