"""Keys of NumPy, pandas, Polars or Arrow as one Arrow array, and the key type of its values."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from keygroups import types
from keygroups._checks import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, MAX_DEPTH, show
from keygroups._values.checks import BYTES
from keygroups.arrays._kernels import Array
from keygroups.arrays._rows import (
    RowError,
    bytes_of,
    from_numpy,
    null_rows,
    numbers,
    of_element,
    plain,
    refuse,
)
from keygroups.arrays._scalars import INFERRED
from keygroups.errors import (
    AmbiguousKeyTypeError,
    InvalidTypeError,
    InvalidValueError,
    UnsupportedKeyTypeError,
)

_MOST_BYTES = 2**31 - 1  # the most bytes that Arrow's offsets of 32 bits reach
_ROWS = 16_384  # rows of text at a time, so that they stay in the caches
_OF_UNITS = {
    "W": (7, pa.date32()),
    "D": (1, pa.date32()),
    "h": (3_600, pa.timestamp("s")),
    "m": (60, pa.timestamp("s")),
    **{unit: (1, pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
}
"""NumPy's datetime units: each a multiple of an Arrow type's. Years and months have no length."""
_OF_CLASSES = {
    int: pa.int64(),
    bool: pa.bool_(),
    bytes: pa.binary(),
    float: pa.float64(),
    dt.date: pa.date32(),
}
_VALUES = (str, bytes, complex, Decimal, uuid.UUID, dt.time, np.generic, *_OF_CLASSES)
"""Classes that make a list a column of values, supported or not, and no list of columns."""
_REFUSED = (pa.ArrowException, OSError, TypeError, ValueError, OverflowError, NotImplementedError)


def to_array(key: object, name: str = "key", depth: int = 0) -> pa.Array:
    """Return keys as one Arrow array; several columns become an array of structs."""
    if type(key) is list and not depth and any(isinstance(value, _VALUES) for value in key):
        return _from_list(key, name)
    if isinstance(key, (list, tuple)):
        if depth >= MAX_DEPTH:
            raise InvalidValueError(f"key must nest at most {MAX_DEPTH} deep, got {show(key)}")
        return _struct([_column(i, column, depth) for i, column in enumerate(key)], name)
    if isinstance(key, (pa.RecordBatch, pa.Table)):
        return _struct([to_array(column, name) for column in key.columns], name)
    if isinstance(key, np.ndarray):
        return _from_numpy(key, name)
    if _is_pandas(key):
        return _from_pandas(key, name)
    is_array, is_stream = (
        hasattr(type(key), f"__arrow_c_{kind}__") for kind in ("array", "stream")
    )
    try:
        if isinstance(key, (pa.Array, pa.ChunkedArray)):
            return _in_one_piece(key)
        if is_stream:
            return _in_one_piece(pa.chunked_array(key))
        if is_array:
            return _in_one_piece(pa.array(key))
    except _REFUSED as error:
        raise refused(name, key, error) from None
    raise InvalidTypeError(
        f"{name} must be an array of NumPy, pandas, Polars or Arrow, or a list of such columns, "
        f"got {show(key)} of class {type(key).__name__}"
    )


def _from_list(key: list[Any], name: str) -> pa.Array:
    """Return Python values as an array; all must be of one class, whose Arrow type is exact."""
    classes = {*map(type, key)}
    (cls,) = classes if len(classes) == 1 else (None,)
    if cls is str:
        return _from_objects(np.array(key, object), None, name)
    if cls not in _OF_CLASSES:
        listed = ", ".join(sorted(known.__name__ for known in classes))
        raise InvalidTypeError(
            f"{name} is a list of {listed}, and a list has to be of str, int, bool, float, bytes "
            "or date alone: make it an array of the dtype of its values"
        )
    try:
        return _in_one_piece(pa.array(key, _OF_CLASSES[cls]))
    except OverflowError:
        row = next(row for row, value in enumerate(key) if not LONG_MIN <= value <= LONG_MAX)
        message = f"an int in a list must have 64 bits, got {show(key[row])}"
        raise RowError(row, UnsupportedKeyTypeError(message)) from None


def _column(index: int, column: object, depth: int) -> pa.Array:
    try:
        return to_array(column, f"column {index}", depth + 1)
    except RowError as error:
        raise error.at(error.row, f"field {index}: ") from None


def refused(name: str, key: object, error: Exception) -> InvalidTypeError:
    """Return the error for an array that Arrow cannot make, or take apart."""
    reason = " ".join(str(error).split())[:200]
    return InvalidTypeError(f"{name} is no array that Arrow takes, got {show(key)}: {reason}")


def _in_one_piece(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return an array without chunks, with 64-bit offsets where 32 bits do not reach."""
    if isinstance(array, pa.Array):
        return array
    if array.num_chunks == 1:
        return _in_one_piece(array.chunk(0))
    if not array.num_chunks:
        return pa.nulls(0, array.type)
    chunks = [plain(chunk) for chunk in array.chunks]
    if sum(map(bytes_of, chunks)) > _MOST_BYTES:
        wide = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
        chunks = [chunk.cast(wide.get(chunk.type, chunk.type)) for chunk in chunks]
    return pa.concat_arrays(chunks)


def _struct(columns: Sequence[pa.Array], name: str) -> pa.Array:
    if not columns:
        raise InvalidValueError(f"{name} must have a column at least")
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1:
        raise InvalidValueError(f"columns of {name} must be of one length, got {show(lengths)}")
    names = [f"f{index}" for index in range(len(columns))]
    return pa.StructArray.from_arrays(list(columns), names=names)


def _from_numpy(key: Array, name: str) -> pa.Array:
    if key.ndim != 1:
        raise InvalidTypeError(f"{name} must have one dimension, got {key.ndim}")
    mask = None
    if isinstance(key, np.ma.MaskedArray):
        mask, key = np.ma.getmaskarray(key), key.data
    kind = key.dtype.kind
    if kind in "OT":  # T is StringDType's kind.
        return _from_objects(key.astype(object, copy=False), mask, name)
    if kind not in "biufMU":
        raise UnsupportedKeyTypeError(f"{name} of dtype {key.dtype} is not supported")
    if type(key).__name__ == "chararray":
        raise UnsupportedKeyTypeError(
            f"{name} of class chararray is not supported, which hides white space behind texts"
        )
    key = np.ascontiguousarray(key, key.dtype.newbyteorder("="))
    if kind == "M":
        return _from_datetimes(key, mask, name)
    if kind == "U" and _has_inner_nul(key):
        return _from_objects(key.astype(object), mask, name)
    try:
        if kind != "U":
            return from_numpy(key, mask)
        return _in_one_piece(pa.array(key, mask=mask))
    except _REFUSED as error:
        raise refused(name, key, error) from None


def _has_inner_nul(key: Array) -> bool:
    """Return whether a text has a character after a NUL: Arrow would cut it there."""
    width = key.dtype.itemsize // 4
    if not width:
        return False
    for start in range(0, len(key), _ROWS):
        is_nul = (key[start : start + _ROWS].view(np.uint32) == 0).reshape(-1, width)
        flat = is_nul.ravel()
        # A NUL before another character is harmless where a text ends and the next one begins.
        between = np.count_nonzero(is_nul[:-1, -1] > is_nul[1:, 0])
        if np.count_nonzero(flat[:-1] > flat[1:]) > between:
            return True
    return False


def _from_datetimes(key: Array, mask: Array | None, name: str) -> pa.Array:
    """Return dates or timestamps; a dtype such as datetime64[10ms] counts steps of 10."""
    unit, step = np.datetime_data(key.dtype)
    if unit not in _OF_UNITS:
        raise UnsupportedKeyTypeError(
            f"{name} of dtype {key.dtype} is not supported: units are {', '.join(_OF_UNITS)}"
        )
    times, arrow_type = _OF_UNITS[unit]
    step *= times
    is_date = pa.types.is_date32(arrow_type)
    nulls = np.isnat(key)
    if mask is not None:  # Arrow would take NaT for a value where a mask is passed.
        nulls |= mask
    if step == 1 and not is_date:
        return from_numpy(key, nulls)
    values = key.view(np.int64)
    least, most = (INT_MIN, INT_MAX) if is_date else (LONG_MIN, LONG_MAX)
    low, high = -(-least // step), most // step
    outside = (values < low) | (values > high)
    refuse(outside & ~nulls, values, f"{name} of dtype {key.dtype} must be from {low} to {high}")
    counts = (values * step).astype(np.int32 if is_date else np.int64)
    return from_numpy(counts, nulls).view(arrow_type)


def _from_objects(
    key: Array, mask: Array | None, name: str, from_pandas: bool = False
) -> pa.Array:
    """Return Python's str or bytes objects as an array; objects of other classes are refused."""
    # NaN and NA are pandas' missing texts; Arrow refuses any other float among texts.
    missing = {type(None), *([float] if from_pandas else [])}
    classes = set(map(type, key.tolist())) - missing
    arrow_type = pa.binary() if classes == {bytes} else pa.string()
    known = {bytes} if classes == {bytes} else {str, np.str_}
    other = {cls.__name__ for cls in classes - known}
    if from_pandas:
        other.discard("NAType")
    if other:
        raise InvalidTypeError(
            f"{name} is an array of objects of class {', '.join(sorted(other))}, and only str, or "
            "only bytes, is taken from objects: give it the dtype of its values"
        )
    try:
        return _in_one_piece(pa.array(key, arrow_type, mask=mask, from_pandas=from_pandas))
    except _REFUSED as error:
        raise refused(name, key, error) from None


def _is_pandas(key: object) -> bool:
    is_array = hasattr(key, "dtypes") or hasattr(key, "nlevels")  # An Index has `nlevels`.
    return is_array and type(key).__module__.partition(".")[0] == "pandas"


def _from_pandas(key: Any, name: str) -> pa.Array:
    if getattr(key, "ndim", 1) == 2:
        columns = range(key.shape[1])
        return _struct([_from_pandas(key.iloc[:, i], f"column {i}") for i in columns], name)
    if hasattr(key, "nlevels"):
        if key.nlevels > 1:
            levels = [key.get_level_values(level) for level in range(key.nlevels)]
            return _struct(
                [_from_pandas(level, f"level {i}") for i, level in enumerate(levels)], name
            )
        key = key.to_series(index=range(len(key)))
    dtype = key.dtype
    if isinstance(dtype, np.dtype) and dtype.kind == "O":
        objects = key.to_numpy()
        return _from_objects(objects, None, name, from_pandas=True)
    if isinstance(dtype, np.dtype):
        array = _from_numpy(key.to_numpy(), name)
        if dtype.kind == "f" and np.isnan(key.to_numpy()).any():
            raise InvalidValueError(
                f"{name} is a pandas Series of {dtype} with NaN, which may stand for a missing "
                "value: pass its to_numpy() if they are numbers, else convert_dtypes() first"
            )
        return array
    if dtype.name == "category":
        codes = key.cat.codes.to_numpy()
        values = _from_pandas(dtype.categories.to_series(), name)
        return pa.DictionaryArray.from_arrays(from_numpy(codes, codes < 0), values)
    try:
        return _in_one_piece(pa.array(key))
    except _REFUSED as error:
        raise refused(name, key, error) from None


def infer_key_type(array: pa.Array) -> types.KeyType:
    """Return the key type of an array, where the type of its values leaves no doubt.

    Integers are Long, which hashes as Integer from 0 to 2^31-1; from -2^31 to -1 they differ and
    are refused. Raises RowError for a row.
    """
    arrow_type = plain(array.slice(0, 0)).type  # The empty slice has the type at no cost.
    if pa.types.is_struct(arrow_type):
        return types.TUPLE(
            *map(_infer_field, range(arrow_type.num_fields), plain(array).flatten())
        )
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        return types.LIST(_infer_element(plain(array)))
    if pa.types.is_integer(arrow_type):
        return _infer_integer(plain(array))
    for is_type, key_type in INFERRED:
        if is_type(arrow_type):
            return key_type
    if pa.types.is_binary(arrow_type) or pa.types.is_large_binary(arrow_type):
        raise UnsupportedKeyTypeError(f"key of {arrow_type} has no key type by itself: {BYTES}")
    raise UnsupportedKeyTypeError(
        f"key of {arrow_type} may stand for several Java classes: pass key_type"
    )


def _infer_field(index: int, array: pa.Array) -> types.KeyType:
    try:
        return infer_key_type(array)
    except RowError as error:
        raise error.at(error.row, f"field {index}: ") from None


def _infer_element(array: pa.Array) -> types.KeyType:
    try:
        return infer_key_type(array.flatten())
    except RowError as error:
        lengths = pc.list_value_length(array).fill_null(0).to_numpy()
        raise of_element(error, np.cumsum([0, *lengths])) from None


def _infer_integer(array: pa.Array) -> types.KeyType:
    """Return LONG, or raise for the first value that the core refuses to infer a type for."""
    if not len(array):
        return types.LONG
    values, nulls = numbers(array), null_rows(array)
    is_unsigned = values.dtype == np.uint64
    wrong = values > LONG_MAX if is_unsigned else (values < 0) & (values >= INT_MIN)
    if nulls is not None:
        wrong &= ~nulls
    if wrong.any():
        row = int(np.argmax(wrong))
        if is_unsigned:
            message = f"key {values[row]} is beyond Long's 64 bits"
            raise RowError(row, UnsupportedKeyTypeError(message))
        message = (
            f"key {values[row]} hashes differently as Integer and as Long: pass key_type=INT or "
            "key_type=LONG (ints from 0 to 2147483647 hash alike)"
        )
        raise RowError(row, AmbiguousKeyTypeError(message))
    return types.LONG
