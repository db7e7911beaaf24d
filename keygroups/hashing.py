"""The Java hashCode of every key type, and Flink's murmur finaliser.

A key type picks its hasher once: a plain function from a Python value to a signed 32-bit
int, which checks the value. The hashers of compound types are made from those of their
parts.
"""

from __future__ import annotations

import datetime as dt
import operator
import struct
import uuid
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial
from itertools import repeat
from typing import Any

from mmh3 import hash as _murmur3

from keygroups import types
from keygroups._checks import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    MAX_DEPTH,
    check_int,
    show,
)
from keygroups._values import java_lang, java_time, scala_lang
from keygroups._values.checks import (
    each,
    expect,
    expect_fields,
    integer_checker,
    local_since_epoch,
    refused_key,
)
from keygroups._values.converted_keys import converted
from keygroups._values.java_lang import fold, signed
from keygroups._values.java_values import Left, Right, Some
from keygroups._values.rows import ROW_KINDS, Row, row_of_kind
from keygroups.binary_row import row_encoder
from keygroups.errors import (
    AmbiguousKeyTypeError,
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    UnsupportedKeyTypeError,
)
from keygroups.types import KeyType, ScalarType

__all__ = ["hash_code", "murmur_hash"]
__dir__ = __all__.copy

Hasher = Callable[[Any], int]


def _same(value: Any) -> object:
    return value


@dataclass(frozen=True, slots=True)
class Scalar:
    """The functions of a scalar key type.

    `hash` checks a Python value and returns Java's hash code. `python_class` is the class from
    whose values the type is inferred, where these can stand for no other Java class. `java_value`
    returns something hashable, which is equal for the values that are equal in Java: it is needed
    where Python's `==` is another relation than Java's `equals`.
    """

    hash: Hasher
    python_class: type | None = None
    java_value: Callable[[Any], object] = _same


_little_endian = struct.Struct("<i").pack


def murmur_hash(code: int) -> int:
    """Scramble a Java hashCode into an int of 0..2^31-1, as Flink does before its modulo.

    `code` is a signed 32-bit int. Raises InvalidTypeError or InvalidValueError otherwise.

    Flink: MathUtils.murmurHash, which is murmur3_x86_32 of the four little-endian bytes
    with seed 0; a negative result is negated and Integer.MIN_VALUE becomes 0.

    >>> murmur_hash(99162322)  # "hello".hashCode()
    1715862179
    >>> murmur_hash(-2089875627)
    0
    """
    return finalise(check_int("code", code, INT_MIN, INT_MAX))


def finalise(code: int) -> int:
    """Return `murmur_hash` of an int that is known to be in range."""
    # The mask turns abs(Integer.MIN_VALUE), 2^31 in Python, into Flink's 0.
    return abs(_murmur3(_little_endian(code))) & INT_MAX


def hash_code(key: object, key_type: KeyType | None = None) -> int:
    """Return the Java hashCode of a key, a signed 32-bit int.

    `key_type` says which Java class the key has in the Flink job: a value of
    `keygroups.types`, or None to infer it from the Python value.

    Raises AmbiguousKeyTypeError or UnsupportedKeyTypeError where the type cannot be
    inferred, InvalidTypeError for a key of another type than declared, and
    InvalidValueError for None (a key for PYFLINK and OPTIONAL only) and for a key outside its
    type's range.

    JDK and Flink: the hashCode() of the class that the key type names.

    >>> from keygroups.types import INT, LONG
    >>> hash_code("hello"), hash_code(-1, INT), hash_code(-1, LONG)
    (99162322, -1, 0)
    """
    if key_type is None:
        key_type = infer_key_type(key)
    # A scalar's hasher is found without another call: this is the hot path.
    scalar = _HASHERS.get(key_type) if type(key_type) is ScalarType else None
    return (scalar or hasher_of(key_type))(key)


def hasher_of(key_type: KeyType) -> Hasher:
    """Return the function that `hash_code` applies to every key of a key type."""
    if type(key_type) is ScalarType and key_type in _HASHERS:
        return _HASHERS[key_type]
    if type(key_type) not in _COMPOUND:
        guess = ""
        if isinstance(key_type, str):
            guess = types.meant_by(key_type, map(repr, SCALARS))
        raise InvalidTypeError(
            "key_type must be a value of keygroups.types such as STRING or TUPLE(STRING, INT), "
            f"got {show(key_type)}{guess}"
        )
    return _make_hasher(key_type)


@lru_cache(maxsize=1024)
def _make_hasher(key_type: object) -> Hasher:
    return _COMPOUND[type(key_type)](key_type)


def _nullable(key_type: KeyType) -> Hasher:
    """Make the hasher of a field or element: Java's null counts 0."""
    hasher = hasher_of(key_type)
    if isinstance(key_type, types.SCALA_OPTION):
        return hasher  # Scala's None is a value with a hash code, and no null.
    return lambda value: 0 if value is None else hasher(value)


def _scala_field(key_type: KeyType) -> Hasher:
    """Make the hasher of a field of a product, by `##`; it differs from hashCode in numbers."""
    hasher = _SCALA_NUMBERS.get(key_type)
    if hasher is None:
        return _nullable(key_type)
    return lambda value: 0 if value is None else hasher(value)


def _deep(key_type: KeyType) -> Hasher:
    """Make the hasher of a field of a Row, by RowUtils.deepHashCodeInternal.

    Lists and maps are hashed deeply, by this hasher of their elements; null is 0, and any other
    value 31 plus its hash code.
    """
    if isinstance(key_type, (types.OPTIONAL, types.SCALA_OPTION)):
        optional = hasher_of(key_type)
        return lambda value: signed(31 + optional(value))  # Here None is Optional.empty().
    if isinstance(key_type, types.LIST):
        hasher = _list_hasher(_deep(key_type.element))
    elif isinstance(key_type, types.MAP):
        hasher = _map_hasher(key_type, _deep(key_type.key), _deep(key_type.value), start=1)
    else:
        shallow = hasher_of(key_type)

        def hasher(value: object) -> int:
            return signed(31 + shallow(value))

    return lambda value: 0 if value is None else hasher(value)


def _null_hasher(key: object) -> int:
    expect("NULL", key, type(None), "None inside a tuple or a list")
    raise refused_key(key)


def _tuple_hasher(key_type: types.TUPLE | types.OBJECTS_HASH) -> Hasher:
    fields = [_nullable(field) for field in key_type.fields]
    name = repr(key_type)
    start = key_type.start if isinstance(key_type, types.OBJECTS_HASH) else 0

    def hash_tuple(key: object) -> int:
        return fold(each("field", fields, expect_fields(name, len(fields), key)), start)

    return hash_tuple


def scala_state(scala: str, prefix: str) -> int:
    """Return the state of MurmurHash3 before the first field, from 0 to 2^32 - 1.

    Scala: MurmurHash3.productHash, and what the compiler makes of a case class of primitives.
    """
    if scala == "2.12":
        return scala_lang.PRODUCT_SEED
    return scala_lang.mix(scala_lang.PRODUCT_SEED, java_lang.hash_string(prefix))


def _product_hasher(key_type: types.ScalaProduct) -> Hasher:
    fields = [_scala_field(field) for field in key_type.fields]
    name, arity, state = repr(key_type), len(fields), scala_state(key_type.scala, key_type.prefix)
    empty = java_lang.hash_string(key_type.prefix)

    def hash_product(key: object) -> int:
        codes = each("field", fields, expect_fields(name, arity, key))
        return scala_lang.product_hash(state, codes, arity) if arity else empty

    return hash_product


def _option_hasher(key_type: types.SCALA_OPTION) -> Hasher:
    element, state = _scala_field(key_type.element), scala_state(key_type.scala, "Some")

    def hash_option(key: object) -> int:
        if key is None:
            return scala_lang.NONE_CODE
        value = key.value if isinstance(key, Some) else key
        return scala_lang.product_hash(state, (element(value),), 1)

    return hash_option


_SIDES = "a Left or a Right of keygroups.savepoint.values"


def _either_hasher(key_type: types.SCALA_EITHER) -> Hasher:
    name = repr(key_type)
    left_side = _scala_field(key_type.left), scala_state(key_type.scala, "Left")
    right_side = _scala_field(key_type.right), scala_state(key_type.scala, "Right")

    def hash_either(key: object) -> int:
        either: Any = expect(name, key, (Left, Right), _SIDES)
        hasher, state = left_side if isinstance(either, Left) else right_side
        return scala_lang.product_hash(state, (hasher(either.value),), 1)

    return hash_either


def _row_hasher(key_type: types.ROW) -> Hasher:
    fields = [_deep(field) for field in key_type.fields]
    name = repr(key_type)
    start = 31 * key_type.kind_byte
    name_codes = [31 + java_lang.hash_string(name) for name in key_type.names or ()]

    def hash_row(key: object) -> int:
        codes = each("field", fields, expect_fields(name, len(fields), key))
        check_kind(key, key_type)
        if key_type.names is None:
            return signed(start + fold(codes, 1))
        return signed(start + 1 + sum(n ^ code for n, code in zip(name_codes, codes)))

    return hash_row


def check_kind(key: object, key_type: types.ROW) -> None:
    """Raise for a Row of another kind than its key type's; a tuple fits any."""
    if isinstance(key, Row) and key.row_kind != key_type.kind:
        raise InvalidValueError(
            f"key of type {key_type!r} must be a row of kind {key_type.kind}, got {show(key)}"
        )


def _sql_row_hasher(key_type: types.SQL_ROW) -> Hasher:
    """Make the hasher of a row of Flink SQL, by BinaryRowData.hashCode.

    Flink hashes whole words with seed 42, which is plain murmur3_x86_32, as a row is a multiple of
    8 bytes.
    """
    encode = row_encoder(key_type)
    return lambda key: _murmur3(encode(key), 42)


def _pyflink_hasher(key_type: types.PYFLINK) -> Hasher:
    """Make the hasher of the Row of kind +I, and of one field, that PyFlink puts round a key."""
    element = key_type.element
    if isinstance(element, types.PickledKey):
        from keygroups._values.pickled import hash_row_of_pickle  # pickle takes time

        return partial(hash_row_of_pickle, key_type.protocol)
    field = _deep(element)

    def hash_row(key: object) -> int:
        return signed(31 + field(key))

    hash_key: Hasher = hash_row
    if isinstance(element, types.SQL_TIMESTAMP):
        hash_key = _unmoved(key_type, hash_row)
    if key_type.thread_mode:
        return hash_key
    if key_type.as_pyflink_converts:
        return lambda key: hash_key(_as_pyflink(element, key))
    return _with_conversions(element, hash_key, field if hash_key is hash_row else None)


def _with_conversions(element: KeyType, hash_key: Hasher, field: Hasher | None) -> Hasher:
    """Make a hasher whose errors say what PyFlink's process mode would take a key for.

    `field` is the hasher of the element where nothing else is checked: one call a key is saved.
    """
    if field is None:

        def hash_checked(key: object) -> int:
            try:
                return hash_key(key)
            except KeyGroupsError as error:
                raise _with_conversion(error, element, hash_key, key) from None

        return hash_checked

    def hash_row(key: object) -> int:
        try:
            return signed(31 + field(key))
        except KeyGroupsError as error:
            raise _with_conversion(error, element, hash_key, key) from None

    return hash_row


def _unmoved(key_type: types.PYFLINK, hash_row: Hasher) -> Hasher:
    def hash_timestamp(key: object) -> int:
        code = hash_row(key)
        if key is not None:
            since = local_since_epoch("SQL_TIMESTAMP", key)
            # PyFlink's process mode cuts a float to seconds; its thread mode takes the fields.
            if int(since.total_seconds()) != since.days * 86_400 + since.seconds:
                raise InvalidValueError(
                    f"key of type {key_type!r} must not be before 1970 with a fraction of a "
                    "second, nor after 2514 so near the next second that a float is rounded to "
                    f"it, got {show(key)}: PyFlink's process mode moves it by one second"
                )
        return code

    return hash_timestamp


def _as_pyflink(key_type: KeyType, key: Any) -> Any:
    """Return a key as PyFlink's process mode takes it, with its fields and elements."""
    if isinstance(key_type, (types.TUPLE, types.ROW)) and isinstance(key, tuple):
        parts = [_as_pyflink(part, value) for part, value in zip(key_type.parts, key)]
        kind = ROW_KINDS.index(key.row_kind) if isinstance(key, Row) else None
        fields = (*parts, *key[len(parts) :])
        return fields if kind is None else row_of_kind(fields, kind)
    if isinstance(key_type, types.LIST) and isinstance(key, list):
        return [_as_pyflink(key_type.element, value) for value in key]
    if isinstance(key_type, types.MAP) and isinstance(key, dict):
        pairs = [
            (_as_pyflink(key_type.key, name), _as_pyflink(key_type.value, value))
            for name, value in key.items()
        ]
        return dict(pairs)
    name = repr(key_type) if isinstance(key_type, ScalarType) else type(key_type).__name__
    return converted(name, key)


def _with_conversion(
    error: KeyGroupsError, element: KeyType, hash_key: Hasher, key: object
) -> KeyGroupsError:
    """Return the error of a key, with what PyFlink's process mode would take it for."""
    try:
        converted_key = _as_pyflink(element, key)
        code = hash_key(converted_key)
    except KeyGroupsError:
        return error
    return type(error)(
        f"{error}; PyFlink takes it for {show(converted_key)}, of hash code {code}: pass "
        "as_pyflink_converts=True to PYFLINK for that"
    )


def _list_hasher(element: Hasher) -> Hasher:
    def hash_list(key: object) -> int:
        return fold(each("element", repeat(element), expect("LIST", key, list, "a list")), 1)

    return hash_list


def _optional_hasher(key_type: types.OPTIONAL) -> Hasher:
    element = hasher_of(key_type.element)
    return lambda value: 0 if value is None else element(value)


def _set_hasher(key_type: types.SET) -> Hasher:
    element, java_value = _nullable(key_type.element), _java_value(key_type.element)

    def hash_set(key: object) -> int:
        elements: Collection[object] = expect("SET", key, (set, frozenset), "a set")
        codes = list(each("element", repeat(element), elements))
        _check_distinct("elements", elements, codes, java_value)
        return signed(sum(codes))

    return hash_set


def _map_hasher(
    key_type: types.MAP, key_hasher: Hasher, value_hasher: Hasher, start: int
) -> Hasher:
    java_value = _java_value(key_type.key)

    def hash_map(key: object) -> int:
        entries = expect("MAP", key, dict, "a dict")
        keys = list(each("map key", repeat(key_hasher), entries))
        _check_distinct("map keys", entries, keys, java_value)
        values = each("map value", repeat(value_hasher), entries.values())
        return signed(start + sum(k ^ v for k, v in zip(keys, values)))

    return hash_map


def _check_distinct(
    name: str, values: Collection[object], codes: list[int], java_value: Callable[[Any], object]
) -> None:
    """Raise for a set or dict that has fewer elements in Java than in Python."""
    if len(set(codes)) < len(codes) and len(set(map(java_value, values))) < len(values):
        raise InvalidValueError(f"{name} must differ in Java too, got {show(values)}")


def _java_value(key_type: KeyType) -> Callable[[Any], object]:
    """Make the function from a value to a hashable one that is equal where Java's values are."""
    convert = _not_null_java_value(key_type)
    return lambda value: None if value is None else convert(value)


def _digits(number: Any) -> str:
    return float(number).hex()  # All NaNs are "nan", and equal in Java's boxes.


def _utf16(text: str) -> bytes:
    return str.encode(text, "utf-16", "surrogatepass")


def _not_null_java_value(key_type: KeyType) -> Callable[[Any], object]:
    if isinstance(key_type, types.FieldsType):
        fields = list(map(_java_value, key_type.fields))
        return lambda value: tuple(convert(field) for convert, field in zip(fields, value))
    if isinstance(key_type, (types.LIST, types.SET)):
        element = _java_value(key_type.element)
        collection = tuple if isinstance(key_type, types.LIST) else frozenset
        return lambda value: collection(map(element, value))
    if isinstance(key_type, types.MAP):
        key, mapped = _java_value(key_type.key), _java_value(key_type.value)
        return lambda value: frozenset((key(k), mapped(v)) for k, v in value.items())
    if isinstance(key_type, types.OPTIONAL):
        return _not_null_java_value(key_type.element)
    if isinstance(key_type, types.SCALA_OPTION):
        value_in = _java_value(key_type.element)
        return lambda value: (value_in(value.value if isinstance(value, Some) else value),)
    if isinstance(key_type, types.SCALA_EITHER):
        left_value, right_value = _java_value(key_type.left), _java_value(key_type.right)
        return lambda either: (
            (True, left_value(either.value))
            if isinstance(either, Left)
            else (False, right_value(either.value))
        )
    return SCALARS[key_type].java_value if key_type in SCALARS else _same


SCALARS: dict[KeyType, Scalar] = {
    types.BOOLEAN: Scalar(java_lang.hash_boolean, bool, java_value=bool),
    types.BYTE: Scalar(integer_checker("BYTE", 8), java_value=operator.index),
    types.SHORT: Scalar(integer_checker("SHORT", 16), java_value=operator.index),
    types.INT: Scalar(integer_checker("INT", 32), java_value=operator.index),
    types.LONG: Scalar(java_lang.hash_long, java_value=operator.index),
    types.FLOAT: Scalar(java_lang.hash_float, java_value=_digits),
    types.DOUBLE: Scalar(java_lang.hash_double, float, java_value=_digits),
    types.CHAR: Scalar(java_lang.hash_char, java_value=_utf16),
    types.STRING: Scalar(java_lang.hash_string, str, java_value=_utf16),
    types.BIG_INT: Scalar(java_lang.hash_big_int, java_value=operator.index),
    types.SCALA_BIG_INT: Scalar(scala_lang.hash_big_int, java_value=operator.index),
    types.BIG_DEC: Scalar(java_lang.hash_big_dec, Decimal),
    types.UUID: Scalar(java_lang.hash_uuid, uuid.UUID),
    types.LOCAL_DATE: Scalar(
        java_time.hash_local_date,
        dt.date,
        java_value=partial(java_time.to_local_date, "LOCAL_DATE"),
    ),
    types.LOCAL_TIME: Scalar(
        java_time.hash_local_time,
        dt.time,
        java_value=partial(java_time.to_local_time, "LOCAL_TIME"),
    ),
    types.LOCAL_DATE_TIME: Scalar(
        java_time.hash_local_date_time,
        java_value=partial(java_time.to_local_date_time, "LOCAL_DATE_TIME"),
    ),
    types.INSTANT: Scalar(
        java_time.hash_instant, java_value=partial(java_time.to_instant, "INSTANT")
    ),
    types.BYTE_BUFFER: Scalar(java_lang.hash_byte_buffer),
    types.HASHED: Scalar(integer_checker("HASHED", 32), java_value=operator.index),
    types.NULL: Scalar(_null_hasher),
}
"""Each key type without parameters; other tables by key type are in test_scalar_key_types.py."""

_HASHERS = {key_type: scalar.hash for key_type, scalar in SCALARS.items()}  # the hot path

_SCALA_NUMBERS: dict[KeyType, Hasher] = {
    types.LONG: scala_lang.hash_long,
    types.FLOAT: scala_lang.hash_float,
    types.DOUBLE: scala_lang.hash_double,
}


def _with_type(hash_key: Callable[[Any, object], int]) -> Callable[[Any], Hasher]:
    return lambda key_type: partial(hash_key, key_type)


# Makers of hashers by the class of key types that have parameters.
_COMPOUND: dict[type, Callable[[Any], Hasher]] = {
    types.SQL_DATE: _with_type(java_time.hash_sql_date),
    types.SQL_TIME: _with_type(java_time.hash_sql_time),
    types.SQL_TIMESTAMP: _with_type(java_time.hash_sql_timestamp),
    types.TUPLE: _tuple_hasher,
    types.OBJECTS_HASH: _tuple_hasher,
    types.SCALA_TUPLE: _product_hasher,
    types.CASE_CLASS: _product_hasher,
    types.SCALA_OPTION: _option_hasher,
    types.SCALA_EITHER: _either_hasher,
    types.ROW: _row_hasher,
    types.SQL_ROW: _sql_row_hasher,
    types.PYFLINK: _pyflink_hasher,
    types.LIST: lambda key_type: _list_hasher(_nullable(key_type.element)),
    types.SET: _set_hasher,
    types.OPTIONAL: _optional_hasher,
    types.MAP: lambda key_type: _map_hasher(
        key_type, _nullable(key_type.key), _nullable(key_type.value), start=0
    ),
}


_INT = types.INT  # A global of this module is faster than an attribute of another.
_INFERRED: dict[type, KeyType] = {
    scalar.python_class: key_type
    for key_type, scalar in SCALARS.items()
    if scalar.python_class is not None
}


TUPLE_NOTE = (
    "the TUPLE is inferred, which is the Java Tuple of Flink: pass key_type=SQL_ROW(...) for a "
    "SQL job, PYFLINK(...) for PyFlink, SCALA_TUPLE(...) or CASE_CLASS(...) for Scala"
)
"""The note beside a result for a TUPLE that nobody declared."""


def infer_key_type(key: object, depth: int = 0) -> KeyType:
    """Return the key type of a Python value, where the value leaves no doubt.

    The class has to be exactly bool, int, str, float, Decimal, date, time, datetime,
    UUID, tuple, list, set, frozenset or dict; a subclass (an enum, a namedtuple, a NumPy
    scalar) has to be declared. The elements of a list, set or dict have to share one type.

    `depth` is how many containers deep in a key the value is.

    Raises AmbiguousKeyTypeError for an int from -2^31 to -1, whose hash differs between
    Integer and Long, and UnsupportedKeyTypeError for any other class, for a mixed list
    and for an int beyond 64 bits.

    >>> infer_key_type(("a", 2**40))
    TUPLE(STRING, LONG)
    """
    if type(key) is int:  # the hot path
        return _INT if 0 <= key <= INT_MAX else _infer_wide_int(key)
    cls = type(key)
    if cls in _INFERRED:
        return _INFERRED[cls]
    if type(key) is dt.datetime:
        return types.LOCAL_DATE_TIME if key.utcoffset() is None else types.INSTANT
    if depth >= MAX_DEPTH and isinstance(key, (tuple, list, set, frozenset, dict)):
        raise InvalidValueError(f"key must nest at most {MAX_DEPTH} deep, got {show(key)}")
    if type(key) is tuple:
        return types.TUPLE(*(_infer_field(field, depth) for field in key))
    if type(key) is list:
        return types.LIST(_infer_common("list", key, depth))
    if isinstance(key, (set, frozenset)) and cls in (set, frozenset):
        return types.SET(_infer_common("set", key, depth))
    if type(key) is dict:
        return types.MAP(
            _infer_common("dict", key, depth), _infer_common("dict", key.values(), depth)
        )
    raise refused_key(key)


def _infer_field(value: object, depth: int) -> KeyType:
    return types.NULL if value is None else infer_key_type(value, depth + 1)


def _infer_wide_int(key: int) -> ScalarType:
    if INT_MIN <= key < 0:
        raise AmbiguousKeyTypeError(
            f"key {key} hashes differently as Integer and as Long: pass key_type=INT or "
            "key_type=LONG (ints from 0 to 2147483647 hash alike)"
        )
    if LONG_MIN <= key <= LONG_MAX:
        return types.LONG
    raise UnsupportedKeyTypeError(
        f"key {show(key)} is beyond Long's 64 bits: pass key_type=BIG_INT if it is a BigInteger"
    )


def _infer_common(container: str, values: Iterable[object], depth: int) -> KeyType:
    """Return the one type of all values; nulls have every type, small ints are also Long."""
    element_types = {_infer_field(value, depth) for value in values} - {types.NULL}
    if element_types == {types.INT, types.LONG}:
        return types.LONG
    if len(element_types) > 1:
        listed = ", ".join(sorted(map(repr, element_types)))
        if container == "list":
            raise UnsupportedKeyTypeError(
                f"key is a list of several types ({listed}): pass its key_type, which is "
                "OBJECTS_HASH(...) with a tuple of what is in a java.util.List, or HASHED with "
                "its hash"
            )
        raise UnsupportedKeyTypeError(
            f"key is a {container} of several types ({listed}): pass its key_type, which is "
            "HASHED with its hash"
        )
    return element_types.pop() if element_types else types.NULL
