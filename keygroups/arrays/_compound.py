"""The hash codes of arrays of any key type, scalar or compound."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from keygroups import types
from keygroups._values.scala_lang import NONE_CODE
from keygroups.arrays._kernels import (
    Codes,
    Nulls,
    State,
    fold_fields,
    fold_segments,
    murmur_end,
    murmur_word,
)
from keygroups.arrays._rows import (
    RowError,
    bools,
    check_type,
    elements_of,
    null_rows,
    of_element,
    on_values,
    plain,
)
from keygroups.arrays._scalars import (
    HASHERS,
    SCALA_HASHERS,
    sql_date_codes,
    sql_timestamp_codes,
)
from keygroups.arrays._sql_rows import sql_row_codes
from keygroups.errors import InvalidValueError, UnsupportedKeyTypeError
from keygroups.hashing import hash_code, scala_state

Hashed: TypeAlias = "tuple[Codes, Nulls | None]"
HashField: TypeAlias = "Callable[[pa.Array, types.KeyType], Codes]"
_31 = np.uint32(31)
_WITH_PARAMETERS = (
    *(types.FieldsType, types.SCALA_OPTION, types.LIST, types.SQL_ROW, types.PYFLINK),
    *(types.SQL_DATE, types.SQL_TIMESTAMP),
)


def hash_array(array: pa.Array, key_type: types.KeyType) -> Hashed:
    """Return the hash codes of keys, and a mask of the null ones, None where none is.

    The code of a null is 0. Raises RowError for a row.
    """
    if isinstance(key_type, types.PYFLINK):
        # PyFlink wraps a key in a Row, which is never null; a null key adds 0 to its fold.
        return _deep(array, key_type.element) + _31, None
    array = plain(array)
    count = len(array)
    if isinstance(key_type, types.SCALA_OPTION):
        return _hash_option(array, key_type), None  # A null is Scala's None, which is a key.
    if not count or pa.types.is_null(array.type):
        return np.zeros(count, dtype=np.uint32), np.ones(count, dtype=np.bool_) if count else None
    nulls = null_rows(array)
    return on_values(array, nulls, lambda values: _hash(values, key_type)), nulls


def check_key_type(key_type: types.KeyType) -> None:
    """Raise UnsupportedKeyTypeError for a key type that arrays do not support."""
    for part in key_type.walk():
        timestamp = isinstance(part, types.PYFLINK) and isinstance(
            part.element, types.SQL_TIMESTAMP
        )
        known = part in HASHERS or part is types.NULL or isinstance(part, _WITH_PARAMETERS)
        if timestamp or not known:
            raise UnsupportedKeyTypeError(f"key type {part} is not hashed in arrays")


def _hash(array: pa.Array, key_type: types.KeyType) -> Codes:
    """Return the hash codes of one key or more, none of them null."""
    if isinstance(key_type, types.ScalaProduct):
        return _hash_product(array, key_type)
    if isinstance(key_type, (types.TUPLE, types.OBJECTS_HASH)):
        start = key_type.start % 2**32 if isinstance(key_type, types.OBJECTS_HASH) else 0
        return fold_fields(_fields(array, key_type, _shallow), start, len(array))
    if isinstance(key_type, types.ROW):
        return _hash_row(array, key_type)
    if isinstance(key_type, types.SQL_ROW):
        return sql_row_codes(_columns(array, key_type), key_type, len(array))
    if isinstance(key_type, types.LIST):
        return _hash_list(array, key_type, _shallow)
    if isinstance(key_type, types.SQL_DATE):
        return sql_date_codes(array, key_type)
    if isinstance(key_type, types.SQL_TIMESTAMP):
        return sql_timestamp_codes(array, key_type)
    check_type(key_type in HASHERS, f"key type {key_type}", "nulls only", array)
    return HASHERS[key_type](array)


def _deep(array: pa.Array, key_type: types.KeyType) -> Codes:
    """Return the codes of a field of a Row: 31 + hashCode, 0 for null, lists by element.

    Row.hashCode folds a list's elements by the same rule, so that a list adds no 31 of its own.
    """
    if isinstance(key_type, types.LIST):
        array = plain(array)
        if pa.types.is_null(array.type):
            return np.zeros(len(array), dtype=np.uint32)
        nulls = null_rows(array)
        return on_values(array, nulls, lambda values: _hash_list(values, key_type, _deep))
    codes, nulls = hash_array(array, key_type)
    if nulls is None:
        return codes + _31
    codes = codes + _31
    codes[nulls] = 0
    return codes


def _shallow(array: pa.Array, key_type: types.KeyType) -> Codes:
    """Return the codes of a field of a tuple, 0 for a null."""
    return hash_array(array, key_type)[0]


def _scala_field(array: pa.Array, key_type: types.KeyType) -> Codes:
    """Return the codes of a field of a Scala product, by `##`."""
    array = plain(array)
    hasher = SCALA_HASHERS.get(key_type)
    if hasher is None or pa.types.is_null(array.type):
        return _shallow(array, key_type)
    return on_values(array, null_rows(array), hasher) if len(array) else _shallow(array, key_type)


def _hash_product(array: pa.Array, key_type: types.ScalaProduct) -> Codes:
    if not key_type.fields:
        _columns(array, key_type)
        code = hash_code(key_type.prefix, types.STRING) % 2**32
        return np.full(len(array), code, dtype=np.uint32)
    state = scala_state(key_type.scala, key_type.prefix)
    return _murmur(_fields(array, key_type, _scala_field), state)


def _hash_option(array: pa.Array, key_type: types.SCALA_OPTION) -> Codes:
    nulls = bools(array.is_null())
    state = scala_state(key_type.scala, "Some")
    codes = _murmur([_scala_field(array, key_type.element)], state)
    codes[nulls] = NONE_CODE
    return codes


def _murmur(codes: list[Codes], start: int) -> Codes:
    """Return the codes of products by those of their fields, one field or more."""
    state: State = start
    spare = np.empty_like(codes[0])
    for code in codes:
        state = murmur_word(state, code, spare)
    return murmur_end(np.asarray(state, dtype=np.uint32), len(codes), spare)


def _hash_row(array: pa.Array, key_type: types.ROW) -> Codes:
    codes = _fields(array, key_type, _deep)
    kind = 31 * key_type.kind_byte
    if key_type.names is None:
        return fold_fields(codes, 1, len(array)) + np.uint32(kind)
    # A row of Row.withNames() hashes as a map: the sum of name xor field.
    total = np.full(len(array), 1 + kind, dtype=np.uint32)
    for name, code in zip(key_type.names, codes):
        total += code ^ np.uint32((31 + hash_code(name, types.STRING)) % 2**32)
    return total


def _fields(array: pa.Array, key_type: types.FieldsType, hash_field: HashField) -> list[Codes]:
    codes = []
    for index, (column, field) in enumerate(zip(_columns(array, key_type), key_type.fields)):
        try:
            codes.append(hash_field(column, field))
        except RowError as error:
            raise error.at(error.row, f"field {index}: ") from None
    return codes


def _columns(array: pa.Array, key_type: types.FieldsType | types.SQL_ROW) -> list[pa.Array]:
    """Return the fields of structs; any other array is the only field."""
    columns = array.flatten() if pa.types.is_struct(array.type) else [array]
    if len(columns) != len(key_type.fields):
        raise InvalidValueError(
            f"key of type {key_type} must be {len(key_type.fields)} columns, got {len(columns)}"
        )
    return list(columns)


def _hash_list(array: pa.Array, key_type: types.LIST, hash_element: HashField) -> Codes:
    """Java's 31-fold from 1 of the elements."""
    elements, offsets = elements_of(array, f"key type {key_type}")
    try:
        codes = hash_element(elements, key_type.element)
    except RowError as error:
        raise of_element(error, offsets) from None
    return fold_segments(codes, offsets, 1)
