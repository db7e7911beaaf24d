"""Flink's routing of whole arrays of keys: NumPy, pandas, Polars and Arrow.

The functions are those of the core with the same arguments, but a key is an array of keys, and
what comes back is a NumPy array of int32; `skew_report` is that of `keygroups.spark`.
`pip install 'keygroups[arrays]'` has what they need.

A key is a NumPy array, a Series of pandas or Polars, an Index of pandas, an array of Arrow,
anything that has `__arrow_c_array__` or `__arrow_c_stream__`, or a list of values that are all
str, int, bool, float, bytes or date, of which each is a key. For TUPLE, ROW, SQL_ROW, OBJECTS_HASH
and the products of Scala it is a list of such arrays, which are its columns, a DataFrame, a
MultiIndex, a RecordBatch, or an array of structs. Without a `key_type` the type of the values
decides where it leaves no doubt, as in `keygroups.spark.infer_key_type`; integers are taken if
none is from -2^31 to -1, where Integer and Long differ.

NumPy's text of a fixed width ends before the NULs behind it, as NumPy reads it; arrays of objects
and StringDType keep them. A `datetime64` counts any number of weeks or days, which are dates, or
of hours to nanoseconds. Years, months and what is finer than Java's nanoseconds are refused, and
so are dates beyond 2^31 days of 1970, and text of Arrow that is no UTF-8. SQL_TIMESTAMP takes
instants, of the years in which the core takes the wall-clock time of its zone.

A null key raises InvalidValueError with its index, unless it is Scala's None; with `nulls="mask"`
the result is a `numpy.ma.MaskedArray` in which it is masked. Nulls in TUPLE, ROW, LIST and SQL_ROW
count as in Flink, and a null key of PYFLINK is a key. A value that its key type does not hold
raises, with its index. SQL_TIME, CHAR, BIG_INT, SCALA_BIG_INT, SCALA_EITHER, SET, MAP and OPTIONAL
are not hashed in arrays, and raise UnsupportedKeyTypeError.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, overload

try:
    import numpy as np
    import pyarrow  # noqa: F401  # This fails where the extra is missing.
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "keygroups.arrays needs NumPy and PyArrow: pip install 'keygroups[arrays]'",
        name=error.name,
    ) from None

from numpy.typing import NDArray

from keygroups._checks import INT_MAX, INT_MIN, check_max_parallelism, check_parallelisms
from keygroups.arrays._blocks import count, run, run_on_numbers
from keygroups.arrays._kernels import Codes, to_key_groups, to_operator_indexes
from keygroups.arrays._skew import skew_report
from keygroups.load import KeyGroupLoad
from keygroups.types import KeyType

__all__ = [
    "assign_key_to_parallel_operator",
    "assign_to_key_group",
    "compute_key_group_for_key_hash",
    "compute_operator_index_for_key_group",
    "hash_code",
    "key_group_load",
    "skew_report",
]
__dir__ = __all__.copy

_Ints: TypeAlias = NDArray[np.int32]
_MaskedInts: TypeAlias = "np.ma.MaskedArray[Any, np.dtype[np.int32]]"


@overload
def hash_code(
    key: Any, key_type: KeyType | None = None, *, nulls: Literal["raise"] = "raise"
) -> _Ints: ...
@overload
def hash_code(
    key: Any, key_type: KeyType | None = None, *, nulls: Literal["mask"]
) -> _MaskedInts: ...
def hash_code(key: Any, key_type: KeyType | None = None, *, nulls: str = "raise") -> _Ints:
    """Return the Java hashCode of each key of an array.

    Raises what `keygroups.hash_code` raises, with the index of the key.

    >>> import numpy as np
    >>> from keygroups.types import INT, LONG
    >>> hash_code(np.array([7, -1]), LONG).tolist(), hash_code(np.array([7, -1]), INT).tolist()
    ([7, 0], [7, -1])
    """

    def step(codes: Codes, spare: Codes, out: Codes) -> None:
        np.copyto(out, codes)

    return run(key, key_type, nulls, step)


@overload
def assign_to_key_group(
    key: Any,
    max_parallelism: int,
    key_type: KeyType | None = None,
    *,
    nulls: Literal["raise"] = "raise",
) -> _Ints: ...
@overload
def assign_to_key_group(
    key: Any, max_parallelism: int, key_type: KeyType | None = None, *, nulls: Literal["mask"]
) -> _MaskedInts: ...
def assign_to_key_group(
    key: Any, max_parallelism: int, key_type: KeyType | None = None, *, nulls: str = "raise"
) -> _Ints:
    """Return the key group of each key of an array.

    1 <= max_parallelism <= 32768. Raises what `keygroups.assign_to_key_group` raises, with the
    index of the key.

    >>> import numpy as np
    >>> assign_to_key_group(np.array(["A", "B", "hello"]), 128).tolist()
    [104, 17, 35]
    """
    groups = check_max_parallelism(max_parallelism)

    def step(codes: Codes, spare: Codes, out: Codes) -> None:
        to_key_groups(codes, groups, spare, out)

    return run(key, key_type, nulls, step)


@overload
def assign_key_to_parallel_operator(
    key: Any,
    max_parallelism: int,
    parallelism: int,
    key_type: KeyType | None = None,
    *,
    nulls: Literal["raise"] = "raise",
) -> _Ints: ...
@overload
def assign_key_to_parallel_operator(
    key: Any,
    max_parallelism: int,
    parallelism: int,
    key_type: KeyType | None = None,
    *,
    nulls: Literal["mask"],
) -> _MaskedInts: ...
def assign_key_to_parallel_operator(
    key: Any,
    max_parallelism: int,
    parallelism: int,
    key_type: KeyType | None = None,
    *,
    nulls: str = "raise",
) -> _Ints:
    """Return the index of the subtask that Flink sends each key of an array to.

    1 <= parallelism <= max_parallelism <= 32768. Raises what
    `keygroups.assign_key_to_parallel_operator` raises, with the index of the key.

    >>> import numpy as np
    >>> from keygroups.types import SQL_ROW
    >>> columns = [np.array([7, 8]), np.array(["pen", "ink"])]
    >>> assign_key_to_parallel_operator(columns, 128, 16, SQL_ROW("BIGINT", "STRING")).tolist()
    [2, 14]
    """
    groups, subtasks = check_parallelisms(max_parallelism, parallelism)

    def step(codes: Codes, spare: Codes, out: Codes) -> None:
        to_key_groups(codes, groups, spare, out)
        to_operator_indexes(out, groups, subtasks, out)

    return run(key, key_type, nulls, step)


@overload
def compute_key_group_for_key_hash(
    key_hash: Any, max_parallelism: int, *, nulls: Literal["raise"] = "raise"
) -> _Ints: ...
@overload
def compute_key_group_for_key_hash(
    key_hash: Any, max_parallelism: int, *, nulls: Literal["mask"]
) -> _MaskedInts: ...
def compute_key_group_for_key_hash(
    key_hash: Any, max_parallelism: int, *, nulls: str = "raise"
) -> _Ints:
    """Return the key group of each key of which the Java hashCode is known.

    `key_hash` is an array of signed 32-bit integers, of any dtype that holds them. Raises what
    `keygroups.compute_key_group_for_key_hash` raises, with the index of the hash.

    >>> import numpy as np
    >>> compute_key_group_for_key_hash(np.array([99162322, -1]), 128).tolist()
    [35, 80]
    """
    groups = check_max_parallelism(max_parallelism)

    def step(codes: Codes, spare: Codes, out: Codes) -> None:
        to_key_groups(codes, groups, spare, out)

    return run_on_numbers("key_hash", key_hash, INT_MIN, INT_MAX, nulls, step)


@overload
def compute_operator_index_for_key_group(
    max_parallelism: int, parallelism: int, key_group_id: Any, *, nulls: Literal["raise"] = "raise"
) -> _Ints: ...
@overload
def compute_operator_index_for_key_group(
    max_parallelism: int, parallelism: int, key_group_id: Any, *, nulls: Literal["mask"]
) -> _MaskedInts: ...
def compute_operator_index_for_key_group(
    max_parallelism: int, parallelism: int, key_group_id: Any, *, nulls: str = "raise"
) -> _Ints:
    """Return the index of the subtask that each key group of an array belongs to.

    `key_group_id` is an array of integers from 0 to max_parallelism - 1. Raises what
    `keygroups.compute_operator_index_for_key_group` raises, with the index of the key group.

    >>> import numpy as np
    >>> compute_operator_index_for_key_group(128, 3, np.array([0, 85, 86])).tolist()
    [0, 1, 2]
    """
    groups, subtasks = check_parallelisms(max_parallelism, parallelism)

    def step(codes: Codes, spare: Codes, out: Codes) -> None:
        to_operator_indexes(codes, groups, subtasks, out)

    return run_on_numbers("key_group_id", key_group_id, 0, groups - 1, nulls, step)


def key_group_load(
    keys: Any, max_parallelism: int, key_type: KeyType | None = None
) -> KeyGroupLoad:
    """Count the keys of an array by key group, in a `KeyGroupLoad`.

    Its `per_subtask` adds the key groups of each subtask up. Raises what `assign_to_key_group`
    raises.

    >>> import numpy as np
    >>> key_group_load(np.arange(1000), 128).per_subtask(4)
    [271, 239, 238, 252]
    """
    groups = check_max_parallelism(max_parallelism)

    def step(codes: Codes, spare: Codes, out: Codes) -> None:
        to_key_groups(codes, groups, spare, out)

    return KeyGroupLoad(groups, count(keys, key_type, groups, step))
