"""Exact Apache Flink key groups: where Flink sends a key, without a JVM.

The functions are those of Flink's KeyGroupRangeAssignment; the key types are in
`keygroups.types`, the PySpark adapter in `keygroups.spark`.
"""

from keygroups.assignment import (
    DEFAULT_LOWER_BOUND_MAX_PARALLELISM,
    UPPER_BOUND_MAX_PARALLELISM,
    KeyTrace,
    assign_key_to_parallel_operator,
    assign_to_key_group,
    compute_default_max_parallelism,
    compute_key_group_for_key_hash,
    compute_key_group_range_for_operator_index,
    compute_operator_index_for_key_group,
    trace_key,
)
from keygroups.errors import (
    AmbiguousKeyTypeError,
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    ParallelismError,
    ParallelismTypeError,
    UnsupportedKeyTypeError,
)
from keygroups.hashing import hash_code, murmur_hash
from keygroups.key_group_range import KeyGroupRange
from keygroups.load import KeyGroupLoad
from keygroups.local_key_by import LocalKeyBy
from keygroups.rescale import RescalePlan, check_restore
from keygroups.routing_inference import infer_routing
from keygroups.subtask_keys import SubtaskKeySelector, keys_for_subtasks

__version__ = "0.2.0"

__all__ = [
    "DEFAULT_LOWER_BOUND_MAX_PARALLELISM",
    "UPPER_BOUND_MAX_PARALLELISM",
    "AmbiguousKeyTypeError",
    "InvalidTypeError",
    "InvalidValueError",
    "KeyGroupLoad",
    "KeyGroupRange",
    "KeyGroupsError",
    "KeyTrace",
    "LocalKeyBy",
    "ParallelismError",
    "ParallelismTypeError",
    "RescalePlan",
    "SubtaskKeySelector",
    "UnsupportedKeyTypeError",
    "assign_key_to_parallel_operator",
    "assign_to_key_group",
    "check_restore",
    "compute_default_max_parallelism",
    "compute_key_group_for_key_hash",
    "compute_key_group_range_for_operator_index",
    "compute_operator_index_for_key_group",
    "hash_code",
    "infer_routing",
    "keys_for_subtasks",
    "murmur_hash",
    "trace_key",
]
__dir__ = __all__.copy
