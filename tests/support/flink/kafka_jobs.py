"""Real Kafka sources and sinks: a broker, jobs that read from it and write to it, serializers.

`.ci/run kafka` makes a Python that has the broker and the jars of the connector, of one version,
and names it in KEYGROUPS_TEST_KAFKA.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.flink.flink_oracle import flink_jar
from support.flink.flink_sql import FlinkSql, jdk_folder

_TOPICS = Path(__file__).parent / "python" / "kafka_topics.py"
_KEPT = {"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}
_JARS = ("flink-connector-kafka", "flink-connector-base", "kafka-clients")


def kafka_python() -> Path:
    """Return the Python that has a broker, or skip the test."""
    python = os.environ.get("KEYGROUPS_TEST_KAFKA", "")
    if not python:
        pytest.skip("`.ci/run kafka` makes the Python of the broker and the connector")
    return Path(python)


class Answers:
    """A program that answers a line of standard input with a line, both of JSON."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process, self._log = process, log

    def ask(self, task: object) -> Any:
        """Return the answer to a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps(task)}\n")
        self._process.stdin.flush()
        return self.line()

    def line(self) -> Any:
        """Return the next line that it has written by itself."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(self._log.read_text(encoding="utf-8")[-4000:])
        return json.loads(line)


@contextmanager
def running(command: Sequence[str], log: Path) -> Iterator[Answers]:
    """Run a program that ends when its standard input does."""
    with (
        log.open("w", encoding="utf-8") as written,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=written,
            encoding="utf-8",
        ) as process,
    ):
        try:
            yield Answers(process, log)
        finally:
            process.communicate()


class Topic(NamedTuple):
    """A topic: the keys of the records of each partition, in their order."""

    name: str
    keys: tuple[tuple[str, ...], ...]

    @property
    def ends(self) -> dict[tuple[str, int], int]:
        """The offset after the last record of each partition."""
        return {(self.name, number): len(keys) for number, keys in enumerate(self.keys)}

    def more(self, records: int) -> Topic:
        """Return the topic with so many records more, of which no partition has the same share."""
        whole = [[*keys] for keys in self.keys]
        start = sum(map(len, whole))
        for number in range(start, start + records):
            whole[(number * number % 10 + number // 7) % len(whole)].append(f"user-{number % 37}")
        return Topic(self.name, tuple(map(tuple, whole)))

    def counts(self, offsets: Mapping[tuple[str, int], int] | None = None) -> Counter[str]:
        """Return the number of records of each key, in all or before some offsets."""
        ends = self.ends if offsets is None else offsets
        return Counter(
            key
            for number, keys in enumerate(self.keys)
            for key in keys[: ends.get((self.name, number), 0)]
        )


class Broker:
    """A broker of its own, with topics in memory."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self.address: str = answers.line()
        self._produced: dict[str, Topic] = {}

    def produce(self, topic: Topic, *, alone: bool = False) -> None:
        """Add the records that the topic has more than it had; with `alone` one a batch."""
        before = self._produced.get(topic.name, Topic(topic.name, ((),) * len(topic.keys)))
        records: list[tuple[int, str]] = []
        offsets: list[int] = []
        for number, keys in enumerate(topic.keys):
            start = len(before.keys[number])
            assert keys[:start] == before.keys[number]
            records += [(number, key) for key in keys[start:]]
            offsets += range(start, len(keys))
        task = {"produce": topic.name, "partitions": len(topic.keys), "records": records}
        assert self._answers.ask(task | {"alone": alone}) == offsets
        self._produced[topic.name] = topic

    def committed(self, topic: str) -> list[str]:
        """Return the values of all records of committed transactions."""
        values: list[str] = self._answers.ask({"committed": topic})
        return values


@contextmanager
def kafka_broker(python: Path, folder: Path) -> Iterator[Broker]:
    """Run a broker that ends with the block, with its log in a folder."""
    with running([str(python), str(_TOPICS)], folder / "broker.log") as answers:
        yield Broker(answers)


@dataclass(frozen=True)
class Job:
    """A job that counts the keys of topics; see `java/KafkaJobs.java`."""

    topics: Sequence[str]
    records: int
    points: Sequence[str] = ("canonical",)
    savepoint: Path | None = None
    source: str = "kafka"
    start: str = "earliest"
    sink: str | None = None
    guarantee: str = "EXACTLY_ONCE"
    uid: str = "by-user"
    source_uid: str = "clicks"
    state: str = "count"
    parallelism: int = 2
    max_parallelism: int = 128
    options: Mapping[str, str] = field(default_factory=dict)


class Ran(NamedTuple):
    """What a job has read, each as topic, partition, offset, key and count, and its points."""

    failure: str | None
    points: list[Path]
    records: list[tuple[str, int, int, str, int]]

    @property
    def offsets(self) -> list[tuple[str, int, int]]:
        """The topic, partition and offset of each record, sorted."""
        return sorted(record[:3] for record in self.records)

    def counts(self) -> dict[str, int]:
        """Return the last count of each key."""
        return {key: count for *_, key, count in self.records}


class KafkaFlink(FlinkSql):
    """A Flink with Kafka's connector on its class path, that of `python`."""

    def __init__(self, python: Path, folder: Path) -> None:
        dist, jdk = flink_jar(), jdk_folder()
        if dist is None or jdk is None:
            pytest.skip("needs Flink's jars and a JDK")
        super().__init__(jdk, dist.parent, folder)
        [lib] = (python.parent.parent / "lib").glob("python3.*/site-packages/pyflink/lib")
        jars = (str(lib / f"{name}.jar") for name in _JARS)
        self._class_path = os.pathsep.join([self._class_path, *jars])
        self._points = folder / "points"

    @contextmanager
    def cluster(self, broker: Broker) -> Iterator[KafkaCluster]:
        """Run a cluster that ends with the block."""
        with running(self._java("KafkaJobs", "4"), self._folder / "KafkaJobs.log") as answers:
            yield KafkaCluster(answers, broker, self._points)

    def states(self, lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the answer of `java/KafkaStates.java` to each line."""
        passed = "".join(f"{json.dumps(line)}\n" for line in lines)
        return [*map(json.loads, self._run("KafkaStates", passed=passed).splitlines())]


class KafkaCluster:
    """A cluster that runs one job after the other."""

    def __init__(self, answers: Answers, broker: Broker, points: Path) -> None:
        self._answers, self._broker, self._points = answers, broker, points

    def run(self, job: Job) -> Ran:
        """Run a job until it has read what it is to read, and cancel it."""
        folder = self._points.as_uri()
        options = _KEPT | {"execution.checkpointing.dir": folder, **job.options}
        savepoint = None if job.savepoint is None else job.savepoint.as_uri()
        task = vars(replace(job, options=options)) | {"savepoint": savepoint, "folder": folder}
        answer = self._answers.ask(task | {"servers": self._broker.address})
        return Ran(
            answer["failure"],
            [Path(path.removeprefix("file:")) for path in answer["points"]],
            [(*record,) for record in answer["records"]],
        )
