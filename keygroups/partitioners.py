"""Flink's channel selectors: which downstream subtask gets a record.

The classes are those of org.apache.flink.streaming.runtime.partitioner, by the same names.
Each `select_channel` answers for one record after the other, as one upstream subtask asks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple, get_args

from keygroups._checks import (
    UPPER_BOUND_MAX_PARALLELISM,
    check_bounds,
    check_callable,
    check_choice,
    check_int,
    check_max_parallelism,
)
from keygroups.assignment import assign_key_to_parallel_operator
from keygroups.errors import InvalidValueError, KeyGroupsError
from keygroups.key_group_range import (
    compute_key_group_range_for_operator_index,
    compute_operator_index_for_key_group,
)
from keygroups.types import KeyType

__all__ = [
    "BroadcastPartitioner",
    "CustomPartitionerWrapper",
    "ForwardPartitioner",
    "GlobalPartitioner",
    "KeyGroupStreamPartitioner",
    "PointwiseEdge",
    "RebalancePartitioner",
    "RescalePartitioner",
    "ShufflePartitioner",
    "StreamPartitioner",
    "SubtaskStateMapper",
    "pointwise_edges",
    "subtask_state_mapping",
]
__dir__ = __all__.copy

SubtaskStateMapper = Literal["ARBITRARY", "FIRST", "FULL", "RANGE", "ROUND_ROBIN", "UNSUPPORTED"]
"""The way in-flight data is handed out on a rescale: the enum of that name in Flink."""


class StreamPartitioner(ABC):
    """The base class of all channel selectors.

    `number_of_channels` is that of the upstream subtask, 1..32768: the downstream
    parallelism, or where the partitioner is pointwise the downstream subtasks that this one
    upstream subtask feeds. Raises ParallelismError.

    Flink: StreamPartitioner, whose `setup` takes the number of channels.
    """

    name: ClassVar[str]
    is_pointwise: ClassVar[bool] = False
    is_broadcast: ClassVar[bool] = False
    upstream_subtask_state_mapper: ClassVar[SubtaskStateMapper] = "ARBITRARY"
    downstream_subtask_state_mapper: ClassVar[SubtaskStateMapper]

    def __init__(self, number_of_channels: int) -> None:
        self.number_of_channels = check_bounds("number_of_channels", number_of_channels)

    @abstractmethod
    def select_channel(self, record: Any) -> int:
        """Return the channel of the next record, 0..number_of_channels-1."""


class _FirstChannel(StreamPartitioner):
    def select_channel(self, record: Any) -> int:
        """Return 0."""
        return 0


class _RoundRobin(StreamPartitioner):
    _last_channel = -1

    def select_channel(self, record: Any) -> int:
        """Return the channel after the last one."""
        self._last_channel = (self._last_channel + 1) % self.number_of_channels
        return self._last_channel


class ForwardPartitioner(_FirstChannel):
    """Sends every record to the first channel: the only one, the subtask of the same index.

    >>> ForwardPartitioner(1).select_channel("record")
    0
    """

    name = "FORWARD"
    is_pointwise = True
    upstream_subtask_state_mapper = "UNSUPPORTED"
    downstream_subtask_state_mapper = "UNSUPPORTED"


class GlobalPartitioner(_FirstChannel):
    """Sends every record to the first channel, so to downstream subtask 0.

    >>> GlobalPartitioner(4).select_channel("record")
    0
    """

    name = "GLOBAL"
    downstream_subtask_state_mapper = "FIRST"


class BroadcastPartitioner(StreamPartitioner):
    """Sends every record to every channel, so it selects none.

    >>> BroadcastPartitioner(4).is_broadcast
    True
    """

    name = "BROADCAST"
    is_broadcast = True
    upstream_subtask_state_mapper = "UNSUPPORTED"
    downstream_subtask_state_mapper = "UNSUPPORTED"

    def select_channel(self, record: Any) -> int:
        """Raise KeyGroupsError, as Flink does here."""
        raise KeyGroupsError("a broadcast record goes to every channel, there is none to select")


class RebalancePartitioner(_RoundRobin):
    """Sends records round robin to all channels.

    The first record goes to the channel after `start`, 0 <= start < number_of_channels.
    Flink draws `start` at random in each upstream subtask. Raises InvalidValueError or
    InvalidTypeError for it.

    >>> partitioner = RebalancePartitioner(3, start=0)
    >>> [partitioner.select_channel(record) for record in "abcd"]
    [1, 2, 0, 1]
    """

    name = "REBALANCE"
    downstream_subtask_state_mapper = "ROUND_ROBIN"

    def __init__(self, number_of_channels: int, start: int) -> None:
        super().__init__(number_of_channels)
        self._last_channel = check_int("start", start, 0, self.number_of_channels - 1)


class RescalePartitioner(_RoundRobin):
    """Sends records round robin to the channels of one upstream subtask, from channel 0.

    They lead to a few downstream subtasks, which `pointwise_edges` lists, not always in the order
    of their indexes.

    >>> partitioner = RescalePartitioner(2)
    >>> [partitioner.select_channel(record) for record in "abc"]
    [0, 1, 0]
    """

    name = "RESCALE"
    is_pointwise = True
    upstream_subtask_state_mapper = "UNSUPPORTED"
    downstream_subtask_state_mapper = "UNSUPPORTED"


class ShufflePartitioner(StreamPartitioner):
    """Sends each record to a channel drawn at random.

    `next_int` is the generator: given n it returns an int of 0..n-1, as `randrange` of a
    random.Random does. Flink's is java.util.Random, without a seed.

    >>> import random
    >>> ShufflePartitioner(4, random.Random(7).randrange).select_channel("record") in range(4)
    True
    """

    name = "SHUFFLE"
    downstream_subtask_state_mapper = "ROUND_ROBIN"

    def __init__(self, number_of_channels: int, next_int: Callable[[int], int]) -> None:
        super().__init__(number_of_channels)
        self._next_int = check_callable("next_int", next_int)

    def select_channel(self, record: Any) -> int:
        """Return the next draw; raises if it is no channel."""
        channel = self._next_int(self.number_of_channels)
        return check_int("what next_int gives", channel, 0, self.number_of_channels - 1)


class CustomPartitionerWrapper(StreamPartitioner):
    """Sends a record to the channel that a function of its key and the parallelism gives.

    `partitioner` takes the key and the number of channels, which is the downstream
    parallelism, as the Partitioner given to Flink's `partitionCustom` does. The records of
    `select_channel` are the keys.

    >>> CustomPartitionerWrapper(4, lambda key, parallelism: key % parallelism).select_channel(6)
    2
    """

    name = "CUSTOM"
    downstream_subtask_state_mapper = "FULL"

    def __init__(self, number_of_channels: int, partitioner: Callable[[Any, int], int]) -> None:
        super().__init__(number_of_channels)
        self._partitioner = check_callable("partitioner", partitioner)

    def select_channel(self, record: Any) -> int:
        """Return the channel of a key; raises if the function gives none."""
        channel = self._partitioner(record, self.number_of_channels)
        return check_int("what partitioner gives", channel, 0, self.number_of_channels - 1)


class KeyGroupStreamPartitioner(StreamPartitioner):
    """Sends a record to the subtask that has its key's key group: what `keyBy` does.

    1 <= number_of_channels <= max_parallelism <= 32768; the number of channels is the
    downstream parallelism. The records of `select_channel` are the keys, of a `key_type` or
    of an inferred one. Raises ParallelismError.

    >>> KeyGroupStreamPartitioner(3, max_parallelism=128).select_channel("A")
    2
    """

    name = "HASH"
    downstream_subtask_state_mapper = "RANGE"

    def __init__(
        self, number_of_channels: int, max_parallelism: int, key_type: KeyType | None = None
    ) -> None:
        self.max_parallelism = check_max_parallelism(max_parallelism)
        super().__init__(
            check_bounds(
                "number_of_channels", number_of_channels, self.max_parallelism, "max_parallelism"
            )
        )
        self.key_type = key_type

    def select_channel(self, record: Any) -> int:
        """Return the channel of a key; raises what `assign_key_to_parallel_operator` raises."""
        return assign_key_to_parallel_operator(
            record, self.max_parallelism, self.number_of_channels, self.key_type
        )


class PointwiseEdge(NamedTuple):
    """A channel of an upstream subtask, and the downstream subtask it leads to."""

    upstream_subtask: int
    channel: int
    downstream_subtask: int


def pointwise_edges(upstream_parallelism: int, downstream_parallelism: int) -> list[PointwiseEdge]:
    """Return the edges between upstream and downstream subtasks of `rescale` or `forward`.

    Both are 1..32768. The edges come in order of the upstream subtasks and their channels.
    With more downstream subtasks the channel is the downstream index modulo the fan-out, so
    a channel need not lead to the next subtask: below, subtask 1 feeds 4 first, then 3.
    Raises ParallelismError.

    Flink: VertexInputInfoComputationUtils.computeVertexInputInfoForPointwise.

    >>> [tuple(edge) for edge in pointwise_edges(2, 5)]
    [(0, 0, 0), (0, 1, 1), (0, 2, 2), (1, 0, 4), (1, 1, 3)]
    """
    up = check_bounds("upstream_parallelism", upstream_parallelism)
    down = check_bounds("downstream_parallelism", downstream_parallelism)
    edges = []
    if up >= down:
        for downstream in range(down):
            sources = range(downstream * up // down, (downstream + 1) * up // down)
            edges += [PointwiseEdge(upstream, 0, downstream) for upstream in sources]
        return edges
    for upstream in range(up):
        targets = range(-(-upstream * down // up), -(-(upstream + 1) * down // up))
        edges += [PointwiseEdge(upstream, target % len(targets), target) for target in targets]
    return sorted(edges)


def subtask_state_mapping(
    mapper: SubtaskStateMapper, old_parallelism: int, new_parallelism: int
) -> list[list[int]]:
    """Return the old subtasks whose in-flight data each new subtask reads.

    That is after an unaligned checkpoint whose job was rescaled; both parallelisms are
    1..32768. A partitioner's `downstream_subtask_state_mapper` maps the subtasks it sends
    to, its `upstream_subtask_state_mapper` those it sends from. RANGE goes by the key-group
    ranges of max parallelism 32768 whatever that of the job is. ARBITRARY is ROUND_ROBIN.
    A task whose own parallelism stays reads its own data, without asking a mapper; but if
    one of its inputs is FULL and an upstream's parallelism changed, it asks. With FULL all
    new subtasks have one and the same list.

    Raises ParallelismError, and InvalidValueError for UNSUPPORTED, as Flink does, and for
    an unknown mapper.

    Flink: SubtaskStateMapper.getOldSubtasks.

    >>> subtask_state_mapping("RANGE", 3, 2)
    [[0, 1], [1, 2]]
    >>> subtask_state_mapping("ROUND_ROBIN", 3, 2)
    [[0, 2], [1]]
    """
    old = check_bounds("old_parallelism", old_parallelism)
    new = check_bounds("new_parallelism", new_parallelism)
    check_choice("mapper", mapper, get_args(SubtaskStateMapper))
    if mapper in ("ARBITRARY", "ROUND_ROBIN"):
        return [list(range(subtask, old, new)) for subtask in range(new)]
    if mapper == "FIRST":
        return [list(range(old)), *([] for _ in range(new - 1))]
    if mapper == "FULL":
        return [list(range(old))] * new  # 32768 lists of 32768 numbers would fill the memory.
    if mapper == "RANGE":
        return [_overlapping(old, new, subtask) for subtask in range(new)]
    raise InvalidValueError(
        "mapper must not be UNSUPPORTED: the in-flight data behind a forward, rescale or "
        "broadcast partitioner cannot be rescaled"
    )


def _overlapping(old: int, new: int, subtask: int) -> list[int]:
    total = UPPER_BOUND_MAX_PARALLELISM
    groups = compute_key_group_range_for_operator_index(total, new, subtask)
    first = compute_operator_index_for_key_group(total, old, groups.start_key_group)
    last = compute_operator_index_for_key_group(total, old, groups.end_key_group)
    return list(range(first, last + 1))
