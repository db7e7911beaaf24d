"""The results of whole arrays of keys, computed a block of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from keygroups._checks import check_choice
from keygroups.arrays._compound import Hashed, check_key_type, hash_array
from keygroups.arrays._inputs import infer_key_type, refused, to_array
from keygroups.arrays._kernels import BLOCK, Codes, Nulls
from keygroups.arrays._rows import RowError, bytes_of, null_rows, numbers, on_values, plain, refuse
from keygroups.errors import InvalidTypeError, InvalidValueError, KeyGroupsError
from keygroups.hashing import hasher_of
from keygroups.types import KeyType

_BLOCK_BYTES = 1 << 21
_NULLS = ("raise", "mask")

BlockHasher = Callable[[pa.Array], Hashed]
BlockStep = Callable[[Codes, Codes, Codes], None]
"""`step(codes, spare, out)` fills `out`, and may use `spare`: both are as long as `codes`."""
Result = NDArray[np.int32]


def run(key: object, key_type: KeyType | None, nulls: object, step: BlockStep) -> Result:
    """Return the result of `step` for the hash codes of keys, as int32."""
    mode = check_choice("nulls", nulls, _NULLS)
    return hash_keys(*prepare(key, key_type), mode, step)


def hash_keys(array: pa.Array, key_type: KeyType, mode: str, step: BlockStep) -> Result:
    """Return the result of `step` for prepared keys: a masked array where `mode` is "mask"."""
    return _collect(array, "key", partial(hash_array, key_type=key_type), mode, step)


def run_on_numbers(
    name: str, key: object, low: int, high: int, nulls: object, step: BlockStep
) -> Result:
    """Return the result of `step` for numbers from `low` to `high`, as int32."""
    mode = check_choice("nulls", nulls, _NULLS)
    array = plain(_read(key, name))
    if not pa.types.is_integer(array.type) and not pa.types.is_null(array.type):
        raise InvalidTypeError(f"{name} must be integers, but the array is of {array.type}")

    def check(values: pa.Array) -> Codes:
        integers = numbers(values)
        outside = integers > high
        if integers.dtype.kind == "i":
            outside |= integers < low
        refuse(outside, integers, f"{name} must be from {low} to {high}")
        return integers.astype(np.uint32)

    def check_block(block: pa.Array) -> Hashed:
        if pa.types.is_null(block.type):
            return np.zeros(len(block), dtype=np.uint32), np.ones(len(block), dtype=np.bool_)
        missing = null_rows(block)
        return on_values(block, missing, check), missing

    return _collect(array, name, check_block, mode, step)


def count(
    keys: object, key_type: KeyType | None, max_parallelism: int, step: BlockStep
) -> list[int]:
    """Return the number of keys of each key group, which `step` computes."""
    array, key_type = prepare(keys, key_type)
    hasher = partial(hash_array, key_type=key_type)
    counts = np.zeros(max_parallelism, dtype=np.int64)
    for _, codes, _ in _blocks(array, "key", hasher, "raise"):
        key_groups = np.empty_like(codes)
        step(codes, np.empty_like(codes), key_groups)
        counts += np.bincount(key_groups, minlength=max_parallelism)
    per_key_group: list[int] = counts.tolist()
    return per_key_group


def prepare(key: object, key_type: KeyType | None) -> tuple[pa.Array, KeyType]:
    """Return keys as one array, and their type, which is inferred if None."""
    if key_type is not None:
        hasher_of(key_type)  # It raises for an argument that is no key type.
        check_key_type(key_type)
    array = _read(key, "key")
    if key_type is None:
        try:
            key_type = infer_key_type(array)
        except RowError as error:
            raise _at("key", error.row, error) from None
    return array, key_type


def _read(key: object, name: str) -> pa.Array:
    try:
        return to_array(key, name)
    except RowError as error:
        raise _at(name, error.row, error) from None


def _collect(
    array: pa.Array, name: str, hasher: BlockHasher, mode: str, step: BlockStep
) -> Result:
    rows = len(array)
    result = np.empty(rows, dtype=np.int32)
    masks = np.zeros(rows, dtype=np.bool_)
    spare = np.empty(min(rows, BLOCK), dtype=np.uint32)
    for start, codes, missing in _blocks(array, name, hasher, mode):
        target = result[start : start + len(codes)].view(np.uint32)
        step(codes, spare[: len(codes)], target)
        if missing is not None:
            masks[start : start + len(codes)] = missing
            target[missing] = 0
    return np.ma.MaskedArray(result, mask=masks) if mode == "mask" else result


def _blocks(
    array: pa.Array, name: str, hasher: BlockHasher, mode: str
) -> Iterator[tuple[int, Codes, Nulls | None]]:
    """Yield the first row of each block, its codes, and a mask of its nulls if any is allowed."""
    rows = len(array)
    at_once = min(BLOCK, max(1, _BLOCK_BYTES * rows // max(1, bytes_of(array))))
    for start in range(0, rows, at_once):
        try:
            codes, missing = hasher(array.slice(start, at_once))
            if mode == "raise" and missing is not None:
                row = int(np.argmax(missing))
                raise RowError(row, InvalidValueError("assigned key must not be null"))
        except RowError as error:
            raise _at(name, start + error.row, error) from None
        except pa.ArrowException as error:  # Arrow lacks some operations on nested layouts.
            raise refused(name, array, error) from None
        yield start, codes, missing


def _at(name: str, row: int, error: RowError) -> KeyGroupsError:
    return type(error.error)(f"{name} {row}: {error.error}")
