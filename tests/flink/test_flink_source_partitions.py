"""Keys in the partitions that `partition_for_key` chose, in a job of real Flink without a keyBy.

Its source hands partitions to its readers by the rule of Kafka's, and what a reader emits is taken
to be keyed (`DataStreamUtils.reinterpretAsKeyedStream`): Flink throws where a key is in a subtask
that does not have its key group. How many records were counted is in each test's properties.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from support.flink.flink_sql import FlinkSql

from keygroups import assign_key_to_parallel_operator, assign_to_key_group
from keygroups.flink_exceptions import explain_exception
from keygroups.source_partitions import partition_for_key, split_owner
from keygroups.types import STRING

pytestmark = [
    pytest.mark.flink,
    pytest.mark.flink_since("1.17", "the API of its source"),
]


class Topic(NamedTuple):
    """A topic, and the job that reads it."""

    name: str
    partitions: int
    max_parallelism: int
    parallelism: int

    def partition(self, key: str) -> int:
        return partition_for_key(key, *self, key_type=STRING)

    def task(self, places: dict[str, int]) -> dict[str, object]:
        """Return a job of these keys in these partitions, a key as often as `TIMES` says."""
        partitions: dict[str, list[str]] = {
            f"{self.name}-{number}": [] for number in range(self.partitions)
        }
        for turn in range(max(TIMES.values())):
            for key, partition in places.items():
                if turn < TIMES[key]:
                    partitions[f"{self.name}-{partition}"].append(key)
        return {
            "parallelism": self.parallelism,
            "max_parallelism": self.max_parallelism,
            "partitions": partitions,
        }


TIMES = {f"user-{number}": number % 3 + 1 for number in range(600)}
TOPICS = [
    Topic("clicks", 3, 128, 3),
    Topic("clicks", 8, 128, 3),
    Topic("orders", 4, 720, 4),
    Topic("persistent://public/default/orders", 9, 720, 4),
]
STRAY = "user-7"


@pytest.fixture(scope="module")
def answers(flink_sql: FlinkSql) -> dict[tuple[Topic, bool], dict[str, Any]]:
    """Return the answers for each topic: every key in its place, and with one astray."""
    tasks = {}
    for topic in TOPICS:
        places = {key: topic.partition(key) for key in TIMES}
        tasks[topic, False] = topic.task(places)
        tasks[topic, True] = topic.task(places | {STRAY: wrong_partition(topic)})
    return dict(zip(tasks, flink_sql.partition_jobs(tasks.values()), strict=True))


def wrong_partition(topic: Topic) -> int:
    """Return a partition that another subtask reads than the one of the stray key."""
    own = split_owner(topic.name, topic.partition(STRAY), topic.parallelism)
    return next(
        partition
        for partition in range(topic.partitions)
        if split_owner(topic.name, partition, topic.parallelism) != own
    )


@pytest.mark.parametrize("topic", TOPICS, ids=str)
def test_every_key_is_counted_in_its_subtask(
    topic: Topic,
    answers: dict[tuple[Topic, bool], dict[str, Any]],
    record_property: Callable[[str, object], None],
) -> None:
    answer = answers[topic, False]
    assert answer["failure"] is None
    assert Counter(key for key, _, _ in answer["counts"]) == TIMES
    assert {key: count for key, _, count in answer["counts"]} == TIMES
    subtasks = {(key, subtask) for key, subtask, _ in answer["counts"]}
    assert subtasks == {
        (key, assign_key_to_parallel_operator(key, *topic[2:], STRING)) for key in TIMES
    }
    assert {subtask for _, subtask in subtasks} == set(range(topic.parallelism))
    assert {topic.partition(key) for key in TIMES} == set(range(topic.partitions))
    record_property("records counted", len(answer["counts"]))


@pytest.mark.parametrize("topic", TOPICS, ids=str)
def test_a_key_in_a_wrong_partition_fails_the_job(
    topic: Topic, answers: dict[tuple[Topic, bool], dict[str, Any]]
) -> None:
    """The exception is explained: which subtask had the key, and which one has its key group."""
    answer = answers[topic, True]
    key_group = assign_to_key_group(STRAY, topic.max_parallelism, STRING)
    assert f"Key group {key_group} is not in KeyGroupRange{{" in answer["failure"]
    assert STRAY not in {key for key, _, _ in answer["counts"]}
    wrong = split_owner(topic.name, wrong_partition(topic), topic.parallelism)
    own = assign_key_to_parallel_operator(STRAY, *topic[2:], STRING)
    explained = explain_exception(answer["failure"], topic.max_parallelism, topic.parallelism)
    assert explained.says[1:] == (
        f"at max parallelism {topic.max_parallelism} that is subtask {wrong} of "
        f"{topic.parallelism}; key group {key_group} belongs to subtask {own}",
    )
