"""Flink's KeyGroupRangeAssignment: the key group of a key, and the subtask of a key group.

The formulas are those of org.apache.flink.runtime.state.KeyGroupRangeAssignment. Where
Flink leaves a bound unchecked (a key group or operator index out of range), these raise.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from keygroups._checks import (
    INT_MAX,
    INT_MIN,
    UPPER_BOUND_MAX_PARALLELISM,
    check_int,
    check_max_parallelism,
    check_parallelisms,
    show,
)
from keygroups._show.tables import data_frame, html_table
from keygroups.hashing import TUPLE_NOTE, finalise, hash_code, infer_key_type
from keygroups.key_group_range import (
    DEFAULT_LOWER_BOUND_MAX_PARALLELISM,
    KeyGroupRange,
    compute_default_max_parallelism,
    compute_key_group_range_for_operator_index,
    compute_operator_index_for_key_group,
)
from keygroups.types import TUPLE, KeyType

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = [
    "DEFAULT_LOWER_BOUND_MAX_PARALLELISM",
    "UPPER_BOUND_MAX_PARALLELISM",
    "KeyTrace",
    "assign_key_to_parallel_operator",
    "assign_to_key_group",
    "compute_default_max_parallelism",
    "compute_key_group_for_key_hash",
    "compute_key_group_range_for_operator_index",
    "compute_operator_index_for_key_group",
    "trace_key",
]
__dir__ = __all__.copy


def compute_key_group_for_key_hash(key_hash: int, max_parallelism: int) -> int:
    """Return the key group of a key whose Java hashCode is known.

    `key_hash` is a signed 32-bit int; 1 <= max_parallelism <= 32768. The key group is
    in 0..max_parallelism-1. Raises InvalidTypeError or InvalidValueError for the hash,
    ParallelismError for the max parallelism.

    Flink: KeyGroupRangeAssignment.computeKeyGroupForKeyHash.

    >>> compute_key_group_for_key_hash(99162322, 128)
    35
    """
    code = check_int("key_hash", key_hash, INT_MIN, INT_MAX)
    return finalise(code) % check_max_parallelism(max_parallelism)


def assign_to_key_group(key: object, max_parallelism: int, key_type: KeyType | None = None) -> int:
    """Return the key group of a key.

    1 <= max_parallelism <= 32768, that of the Flink job; the key group is in
    0..max_parallelism-1. `key_type` is a value of `keygroups.types`, or None to infer it.
    Raises what `hash_code` raises, and ParallelismError.

    Flink: KeyGroupRangeAssignment.assignToKeyGroup.

    >>> assign_to_key_group("A", 128), assign_to_key_group("B", 128)
    (104, 17)
    """
    # The common case of check_max_parallelism without the call: this is the hot path.
    if type(max_parallelism) is not int or not 1 <= max_parallelism <= UPPER_BOUND_MAX_PARALLELISM:
        max_parallelism = check_max_parallelism(max_parallelism)
    return finalise(hash_code(key, key_type)) % max_parallelism


def assign_key_to_parallel_operator(
    key: object, max_parallelism: int, parallelism: int, key_type: KeyType | None = None
) -> int:
    """Return the index of the subtask that Flink sends a key to.

    1 <= parallelism <= max_parallelism <= 32768; the index is in 0..parallelism-1.
    Raises what `hash_code` raises, and ParallelismError.

    Flink: KeyGroupRangeAssignment.assignKeyToParallelOperator.

    >>> assign_key_to_parallel_operator("A", 128, 3)
    2
    """
    max_parallelism, parallelism = check_parallelisms(max_parallelism, parallelism)
    return finalise(hash_code(key, key_type)) % max_parallelism * parallelism // max_parallelism


@dataclass(frozen=True, slots=True, repr=False)
class KeyTrace:
    """Every step from a key to its subtask; `str()` explains them.

    `is_inferred` is True if nobody declared the key type; `str()` notes it for a TUPLE, as a key
    of Scala, SQL or PyFlink may be meant.
    """

    key: object
    key_type: KeyType
    hash_code: int
    murmur_hash: int
    max_parallelism: int
    key_group: int
    parallelism: int
    subtask: int
    key_group_range: KeyGroupRange
    is_inferred: bool = False

    def __repr__(self) -> str:
        place = f"key group {self.key_group} of {self.max_parallelism}, subtask {self.subtask}"
        return f"<KeyTrace: {show(self.key)} as {self.key_type!r}, {place} of {self.parallelism}>"

    def __str__(self) -> str:
        return "\n".join(f"{name:11}  {result}" for name, result in self._steps())

    def _repr_html_(self) -> str:
        caption = "From a key to its subtask"
        return html_table([], ("step", "result"), self._steps(), (1,), caption)

    def to_pandas(self) -> DataFrame:
        """Return a pandas DataFrame of one row, with a column for each field."""
        names = [field.name for field in fields(self)]
        return data_frame(names, [[getattr(self, name) for name in names]])

    def _steps(self) -> list[tuple[str, str]]:
        steps = [
            ("key", f"{show(self.key)} as {self.key_type!r}"),
            ("hashCode", f"{self.hash_code}"),
            ("murmur hash", f"{self.murmur_hash}"),
            ("key group", f"{self.key_group} = {self.murmur_hash} % {self.max_parallelism}"),
            (
                "subtask",
                f"{self.subtask} = {self.key_group} * {self.parallelism} // "
                f"{self.max_parallelism}, which has key groups {self.key_group_range}",
            ),
        ]
        if self.is_inferred and isinstance(self.key_type, TUPLE):
            steps.append(("note", TUPLE_NOTE))
        return steps


def trace_key(
    key: object, max_parallelism: int, parallelism: int, key_type: KeyType | None = None
) -> KeyTrace:
    """Return a `KeyTrace`, every step from a key to its subtask, for people who ask why.

    Takes and raises what `assign_key_to_parallel_operator` does.

    >>> print(trace_key("hello", 128, 3))
    key          'hello' as STRING
    hashCode     99162322
    murmur hash  1715862179
    key group    35 = 1715862179 % 128
    subtask      0 = 35 * 3 // 128, which has key groups [0, 42]
    """
    max_parallelism, parallelism = check_parallelisms(max_parallelism, parallelism)
    code = hash_code(key, key_type)
    scrambled = finalise(code)
    key_group = scrambled % max_parallelism
    subtask = compute_operator_index_for_key_group(max_parallelism, parallelism, key_group)
    return KeyTrace(
        key=key,
        key_type=infer_key_type(key) if key_type is None else key_type,
        hash_code=code,
        murmur_hash=scrambled,
        max_parallelism=max_parallelism,
        key_group=key_group,
        parallelism=parallelism,
        subtask=subtask,
        key_group_range=compute_key_group_range_for_operator_index(
            max_parallelism, parallelism, subtask
        ),
        is_inferred=key_type is None,
    )
