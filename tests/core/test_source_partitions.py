"""Which subtask reads a partition, and into which partition a key goes.

KAFKA has what `KafkaSourceEnumerator.getSplitOwner` of flink-connector-kafka 4.0.1-2.0 returned,
on OpenJDK 17, for the partitions 0, 1, 2, 9 and 1000 of a topic, by the number of readers.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keygroups import (
    InvalidTypeError,
    InvalidValueError,
    ParallelismError,
    assign_key_to_parallel_operator,
    assign_to_key_group,
)
from keygroups.source_partitions import (
    partition_for_key,
    partitions_of_key_groups,
    split_owner,
)
from keygroups.types import LONG

PARTITIONS = (0, 1, 2, 9, 1000)
KAFKA = {
    ("clicks", 1): [0, 0, 0, 0, 0],
    ("clicks", 3): [0, 1, 2, 0, 1],
    ("clicks", 4): [1, 2, 3, 2, 1],
    ("clicks", 7): [0, 1, 2, 2, 6],
    ("clicks", 128): [117, 118, 119, 126, 93],
    ("clicks", 32768): [4469, 4470, 4471, 4478, 5469],
    ("\u00e9\U0001f600", 3): [0, 1, 2, 0, 1],
    ("\u00e9\U0001f600", 128): [116, 117, 118, 125, 92],
    ("events", 4): [3, 0, 1, 0, 3],
    ("events", 7): [6, 0, 1, 1, 5],
    ("a", 3): [1, 2, 0, 1, 2],
    ("polygenelubricants", 7): [0, 1, 2, 2, 6],  # the hash code is -2^31
    ("user-events.v2", 32768): [6641, 6642, 6643, 6650, 7641],
}


@pytest.mark.parametrize(("topic", "readers"), KAFKA)
def test_owners_are_those_of_the_connector(topic: str, readers: int) -> None:
    owners = [split_owner(topic, partition, readers) for partition in PARTITIONS]
    assert owners == KAFKA[topic, readers]


def test_a_topic_of_pulsar_without_partitions() -> None:
    """Its number is -1: SplitAssignerImpl.calculatePartitionOwner adds it to the first owner.

    Of the sum flink-connector-pulsar v3.0.0 to v4.1.0 take Java's remainder, which is -1 where
    the first owner is 0: those splits wait for a reader that there is not. Math.floorMod stands
    there since FLINK-34629, which no release up to 4.1.0 has.
    """
    assert split_owner("a", -1, 3) == 0
    assert split_owner("clicks", -1, 1) == 0
    with pytest.raises(InvalidValueError, match=r"not be -1 for topic 'clicks' .* 3: no subtask"):
        split_owner("clicks", -1, 3)


@given(st.data())
def test_the_subtask_of_a_key_reads_its_partition(data: st.DataObject) -> None:
    groups = data.draw(st.integers(1, 500))
    parallelism = data.draw(st.integers(1, groups))
    partitions = data.draw(st.integers(parallelism, 4 * parallelism))
    topic, key = data.draw(st.text(max_size=9)), data.draw(st.integers(-(2**63), 2**63 - 1))
    partition = partition_for_key(key, topic, partitions, groups, parallelism, LONG)
    assert 0 <= partition < partitions
    subtask = assign_key_to_parallel_operator(key, groups, parallelism, LONG)
    assert split_owner(topic, partition, parallelism) == subtask
    by_group = partitions_of_key_groups(topic, partitions, groups, parallelism)
    assert by_group[assign_to_key_group(key, groups, LONG)] == partition
    assert len(by_group) == groups


def test_every_partition_is_used_where_there_are_key_groups_enough() -> None:
    for partitions in range(4, 30):
        assert set(partitions_of_key_groups("clicks", partitions, 128, 4)) == set(
            range(partitions)
        )


def test_what_is_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"at least the parallelism, 4, got 3: some sub"):
        partition_for_key("A", "clicks", 3, 128, 4)
    with pytest.raises(InvalidValueError, match=r"partition must be from -1 to 1073741823"):
        split_owner("clicks", 1 << 30, 4)
    for partitions in (0, (1 << 30) + 1):
        with pytest.raises(InvalidValueError, match=r"^partitions must be from 1 to 1073741824"):
            partitions_of_key_groups("clicks", partitions, 128, 1)
    with pytest.raises(InvalidTypeError, match="topic must be a str"):
        partitions_of_key_groups(b"clicks", 4, 128, 4)  # type: ignore[arg-type]
    with pytest.raises(ParallelismError, match="parallelism must be from 1 to 32768"):
        split_owner("clicks", 0, 0)
