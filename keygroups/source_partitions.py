"""The subtask that reads a partition of Kafka or Pulsar, and the partition to write a key to.

A job may read its records already where keyBy would send them, and go on without a shuffle
(`DataStreamUtils.reinterpretAsKeyedStream`): then each key has to be written into a partition
that the key's own subtask reads. `partition_for_key` computes it; `keygroups.spark.functions` has
it as a column, the `partition` of Spark's Kafka sink.

That works if the source has the parallelism of the keyed operator and is chained to it, the job
reads one topic from a fresh start, and neither the parallelism nor the number of partitions
changes later: on a rescale sources hand their partitions out anew by the same rule, but records
stay in the partition that they were written to. FileSource has no such rule: its readers ask for
files.
"""

from __future__ import annotations

from keygroups._checks import check_bounds, check_int, check_parallelisms, check_str, show
from keygroups.assignment import assign_to_key_group
from keygroups.errors import InvalidValueError
from keygroups.hashing import hash_code
from keygroups.types import STRING, KeyType

__all__ = ["partition_for_key", "partitions_of_key_groups", "split_owner"]
__dir__ = __all__.copy

_MOST_PARTITIONS = 1 << 30  # The sum with the first reader stays an int of Java.


def split_owner(topic: str, partition: int, parallelism: int) -> int:
    """Return the subtask of a source that reads a partition of a topic.

    `topic` is its name, for Pulsar the full one, such as "persistent://public/default/clicks".
    0 <= partition < 2^30, or -1 for a topic of Pulsar without partitions; `parallelism` is that
    of the source, 1..32768. Raises InvalidTypeError, InvalidValueError and ParallelismError; the
    second also for -1 where partition 0 would be that of subtask 0, as no subtask reads such a
    topic with flink-connector-pulsar 3.0.0 to 4.1.0, and the last one does with newer ones.

    It is the rule of KafkaSource, unless it was built with another selector of owners, of
    FlinkKafkaConsumer before it (KafkaTopicPartitionAssigner.assign), and of PulsarSource.

    Flink: KafkaSourceEnumerator.getSplitOwner, SplitAssignerImpl.calculatePartitionOwner.

    >>> [split_owner("clicks", partition, 4) for partition in range(5)]
    [1, 2, 3, 0, 1]
    """
    parallelism = check_bounds("parallelism", parallelism)
    partition = check_int("partition", partition, -1, _MOST_PARTITIONS - 1)
    owner = _first_owner(topic, parallelism) + partition
    if owner < 0 and parallelism > 1:
        raise InvalidValueError(
            f"partition must not be -1 for topic {show(topic)} and parallelism {parallelism}: no "
            f"subtask reads it with flink-connector-pulsar up to 4.1.0, {parallelism - 1} with "
            "newer ones (FLINK-34629)"
        )
    return owner % parallelism


def partition_for_key(
    key: object,
    topic: str,
    partitions: int,
    max_parallelism: int,
    parallelism: int,
    key_type: KeyType | None = None,
) -> int:
    """Return the partition of a topic that the subtask of a key reads.

    `topic` is as in `split_owner`, and `partitions` their number, parallelism..2^30. Where a
    subtask reads several, a key is always in the same of them, by its key group. All else is as
    in `keygroups.assign_key_to_parallel_operator`: 1 <= parallelism <= max_parallelism <= 32768.

    Raises what that function raises, and InvalidTypeError or InvalidValueError for the topic and
    the partitions.

    >>> partition_for_key("A", "clicks", 4, 128, 4), split_owner("clicks", 2, 4)
    (2, 3)
    >>> from keygroups import assign_key_to_parallel_operator
    >>> assign_key_to_parallel_operator("A", 128, 4)
    3
    """
    max_parallelism, parallelism = check_parallelisms(max_parallelism, parallelism)
    partitions = _check_partitions(partitions, parallelism)
    first = _first_owner(topic, parallelism)
    key_group = assign_to_key_group(key, max_parallelism, key_type)
    return _partition(key_group, first, partitions, max_parallelism, parallelism)


def partitions_of_key_groups(
    topic: str, partitions: int, max_parallelism: int, parallelism: int
) -> list[int]:
    """Return the partition that `partition_for_key` has for the keys of each key group.

    The arguments are its, and it raises the same. With `keygroups.arrays` it answers for whole
    arrays of keys: `np.array(result)[arrays.assign_to_key_group(keys, max_parallelism)]`.

    >>> partitions_of_key_groups("clicks", 5, max_parallelism=8, parallelism=4)
    [3, 3, 0, 4, 1, 1, 2, 2]
    """
    groups, parallelism = check_parallelisms(max_parallelism, parallelism)
    partitions = _check_partitions(partitions, parallelism)
    first = _first_owner(topic, parallelism)
    return [
        _partition(key_group, first, partitions, groups, parallelism)
        for key_group in range(groups)
    ]


def _partition(
    key_group: int, first: int, partitions: int, max_parallelism: int, parallelism: int
) -> int:
    least = (key_group * parallelism // max_parallelism - first) % parallelism
    read = (partitions - 1 - least) // parallelism + 1  # partitions that its subtask reads
    return least + key_group % read * parallelism


def _check_partitions(partitions: int, parallelism: int) -> int:
    """Return the number of partitions as an int, or raise where a subtask would read none."""
    partitions = check_int("partitions", partitions, 1, _MOST_PARTITIONS)
    if partitions < parallelism:
        raise InvalidValueError(
            f"partitions must be at least the parallelism, {parallelism}, got {partitions}: "
            "some subtasks would read none"
        )
    return partitions


def _first_owner(topic: str, parallelism: int) -> int:
    """Return the subtask that reads partition 0 of a topic."""
    code = hash_code(check_str("topic", topic), STRING)
    return (code * 31 & 0x7FFFFFFF) % parallelism
