"""Exact Apache Flink key groups: where Flink sends a key, without a JVM.

Start with `trace_key("user-1", 128, 3)`, which shows every step from a key to its subtask. The
functions here are those of Flink's KeyGroupRangeAssignment; `help("keygroups.types")` and so on
have the rest:

From a key to its subtask:

    types               the Java class of a key: INT, STRING, TUPLE, SQL_ROW, PYFLINK and so on
    hashing             hashCode of each of them, and the murmur hash
    assignment          key groups and subtasks, the default max parallelism, `trace_key`
    key_group_range     the key groups of a subtask
    arrays              whole arrays of keys: NumPy, pandas, Polars and Arrow
    binary_row          the bytes of a key of Flink SQL
    logical_types       its types, read as DDL writes them
    explain             the order of its columns, read from EXPLAIN
    routing_inference   the max parallelism and key type of a job, from keys and their subtasks
    flink_exceptions    the meaning of an exception about key groups or state, and what to do

Uneven load:

    load                the load of key groups and subtasks, the parallelisms that suit it
    skew                what uneven key groups add to a subtask, and what its keys add
    subtask_keys        keys that reach a chosen subtask, and salts
    local_key_by        the buffer that combines records before a keyBy
    reports             the reports of skew and of rescaling
    job                 a running job, read over REST: which of its subtasks are hot

Rescaling and state:

    max_parallelism     the one that suits the parallelisms that a job is to run with
    rescale             the key groups that move, and what a savepoint allows
    operator_state      the elements of state that is not keyed, by new subtask
    partitioners        the channels of forward, rebalance, rescale and the others
    savepoint           savepoints and checkpoints, read and written without a JVM
    source_partitions   the subtask that reads a partition of Kafka
    state_keys          the bytes of a key in RocksDB and in savepoints

In PySpark, in a shell, in tests:

    spark               columns and DataFrames of PySpark; `spark.functions`
    cli                 the command `keygroups`
    progress            the progress of long work, for a function of yours
    testing             assertions, and strategies of Hypothesis
    errors              the exceptions, each of them a KeyGroupsError
"""

from keygroups.assignment import (
    UPPER_BOUND_MAX_PARALLELISM,
    KeyTrace,
    assign_key_to_parallel_operator,
    assign_to_key_group,
    compute_key_group_for_key_hash,
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
from keygroups.key_group_range import (
    DEFAULT_LOWER_BOUND_MAX_PARALLELISM,
    KeyGroupRange,
    compute_default_max_parallelism,
    compute_key_group_range_for_operator_index,
    compute_operator_index_for_key_group,
)
from keygroups.load import KeyGroupLoad
from keygroups.local_key_by import LocalKeyBy
from keygroups.max_parallelism import suggest_max_parallelism
from keygroups.rescale import RescalePlan, check_restore
from keygroups.routing_inference import infer_routing
from keygroups.skew import SubtaskCounts
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
    "SubtaskCounts",
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
    "suggest_max_parallelism",
    "trace_key",
]
__dir__ = __all__.copy
