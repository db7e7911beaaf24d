"""Random states of Kafka's sources and sinks: the connector's serializers and ours, both ways.

`support/flink/java/KafkaStates.java` makes them. What it wrote is read here and written again:
the splits and enumerators of a KafkaSource as savepoints have them, all else, which is only read,
by the builders of the tests. Of the enumerators of a DynamicKafkaSource these build another, of
one stream, as what they say of streams is read over. What comes of it is read by the connector. Of
an enumerator without any partition nothing says that it is Kafka's.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.sink_bytes import COMMITTER, WRITER, collector, listed, request, sink
from support.bytes.source_bytes import clusters, coordinator, partitions, source, versioned
from support.flink.kafka_jobs import KafkaFlink, kafka_python

from keygroups.savepoint import (
    KafkaOffsets,
    KafkaSplit,
    KafkaTransaction,
    KafkaWriterState,
    Operator,
    SavepointWriter,
    SpecialOffset,
    read_savepoint,
)

pytestmark = [pytest.mark.flink, pytest.mark.slow]

KINDS = [
    f"{name}{what}" for name in ("", "dynamic_", "hybrid_") for what in ("split", "enumerator")
]
KINDS += ["writer", "committer"]
COUNT = 500
STATES = ("RECEIVED", "RETRY", "FAILED", "COMMITTED")
OWNERSHIPS = ("IMPLICIT_BY_SUBTASK_ID", "EXPLICIT_BY_WRITER_STATE")


@pytest.fixture(scope="module")
def flink(tmp_path_factory: pytest.TempPathFactory) -> KafkaFlink:
    return KafkaFlink(kafka_python(), tmp_path_factory.mktemp("kafka"))


@pytest.fixture(scope="module")
def states(flink: KafkaFlink) -> dict[str, list[tuple[bytes, Any]]]:
    """The bytes of random states, and their fields, by their kinds."""
    lines = [{"kind": kind, "seed": seed} for kind in KINDS for seed in range(COUNT)]
    made: dict[str, list[tuple[bytes, Any]]] = {kind: [] for kind in KINDS}
    for line, answer in zip(lines, flink.states(lines), strict=True):
        assert answer["version"] == version_of(str(line["kind"]))
        made[str(line["kind"])].append((bytes.fromhex(answer["bytes"]), answer["fields"]))
    return made


def version_of(kind: str) -> int:
    """Return the version that the connector writes."""
    versions = {"split": 0, "enumerator": 2, "writer": 2, "committer": 2}
    return versions.get(kind, 1 if kind.startswith("dynamic") else 0)


def read_by_connector(flink: KafkaFlink, kind: str, written: list[bytes]) -> list[dict[str, Any]]:
    """Return the answers of the connector, which reads bytes and writes them again."""
    version = version_of(kind)
    lines = [{"kind": kind, "version": version, "bytes": data.hex()} for data in written]
    return flink.states(lines)


def offset(number: int | None) -> int | SpecialOffset | None:
    return number if number is None or number >= 0 else SpecialOffset(number)


def number_of(place: int | SpecialOffset | None) -> int | None:
    return place.value if isinstance(place, SpecialOffset) else place


def split_of(fields: Any, cluster: str | None = None) -> KafkaSplit:
    topic, partition, start, stop = fields
    return KafkaSplit(topic, partition, offset(start), offset(stop), 0, cluster=cluster)


def splits_of(operator: Operator) -> list[KafkaSplit]:
    splits = operator.source_splits().splits
    assert all(isinstance(split, KafkaSplit) for split in splits)
    return [split for split in splits if isinstance(split, KafkaSplit)]


def enumerator(fields: Any, cluster: str | None = None) -> Iterator[KafkaSplit]:
    """Yield the splits of an enumerator; of a partition that is named both ways one, assigned."""
    named, _ = fields
    statuses: dict[tuple[str, int], bool] = {}
    for topic, partition, is_assigned in named:
        statuses[topic, partition] = is_assigned or statuses.get((topic, partition), False)
    for place, is_assigned in statuses.items():
        yield KafkaSplit(*place, is_assigned=is_assigned, cluster=cluster)


# --- splits --------------------------------------------------------------------------------------


def elements_of(folder: Path) -> list[bytes]:
    """Return the splits of the readers of a savepoint's one source."""
    [operator] = read_savepoint(folder).operators
    [*entries] = operator.operator_state(["SourceReaderState"])
    return [element for entry in entries for element in entry.elements]


def test_splits(states: dict[str, Any], flink: KafkaFlink, tmp_path: Path) -> None:
    made = {tuple(fields[:2]): (data, fields) for data, fields in states["split"]}
    operator = source(tmp_path / "s", [[versioned(0, data) for data, _ in made.values()]])
    read = splits_of(operator)
    assert read == [split_of(fields) for _, fields in made.values()]
    offsets, stops = {}, {}
    for it in read:
        assert it.offset is not None
        offsets[it.topic, it.partition] = it.offset
        if it.stopping_offset is not None:
            stops[it.topic, it.partition] = it.stopping_offset
    with SavepointWriter(tmp_path / "new") as writer:
        writer.add_source("clicks", KafkaOffsets(offsets, stops), 128, parallelism=3)
    written = elements_of(tmp_path / "new")
    assert sorted(written) == sorted(versioned(0, data) for data, _ in made.values())
    answers = read_by_connector(flink, "split", [element[8:] for element in written])
    assert sorted(answer["fields"] for answer in answers) == sorted(
        fields for _, fields in made.values()
    )


def test_moved_splits(states: dict[str, Any], flink: KafkaFlink, tmp_path: Path) -> None:
    made = {tuple(fields[:2]): (data, fields) for data, fields in states["split"]}
    operator = source(tmp_path / "old", [[versioned(0, data) for data, _ in made.values()]])
    moved = {place: 0 if number % 2 else SpecialOffset.LATEST for number, place in enumerate(made)}
    with SavepointWriter.from_existing_savepoint(tmp_path / "old", tmp_path / "new") as editor:
        editor.operator(operator.operator_id).set_offsets(moved)
    written = [element[8:] for element in elements_of(tmp_path / "new")]
    answers = read_by_connector(flink, "split", written)
    assert [answer["fields"] for answer in answers] == [
        [*place, number_of(moved[place]), fields[3]] for place, (_, fields) in made.items()
    ]
    assert [answer["bytes"] for answer in answers] == [data.hex() for data in written]


def test_moved_splits_of_clusters(
    states: dict[str, Any], flink: KafkaFlink, tmp_path: Path
) -> None:
    """Every second partition is moved, each of its cluster; the bytes of the others stay."""
    made = {(cluster, *it[:2]): (data, it) for data, (cluster, it) in states["dynamic_split"]}
    operator = source(tmp_path / "old", [[versioned(1, data) for data, _ in made.values()]])
    moved = {place: 0 for number, place in enumerate(made) if number % 2}
    with SavepointWriter.from_existing_savepoint(tmp_path / "old", tmp_path / "new") as editor:
        editor.operator(operator.operator_id).set_offsets(moved)
    written = [element[8:] for element in elements_of(tmp_path / "new")]
    answers = read_by_connector(flink, "dynamic_split", written)
    assert [answer["bytes"] for answer in answers] == [data.hex() for data in written]
    for answer, data, (place, (old, fields)) in zip(answers, written, made.items(), strict=True):
        assert (data == old) == (place not in moved or fields[2] == 0)
        offset = moved.get(place, fields[2])
        assert answer["fields"] == [place[0], [*place[1:], offset, fields[3]]]


def test_moved_splits_of_sources_in_turn(
    states: dict[str, Any], flink: KafkaFlink, tmp_path: Path
) -> None:
    made = {tuple(it[:2]): (data, it) for data, (_, it) in states["hybrid_split"]}
    operator = source(tmp_path / "old", [[versioned(0, data) for data, _ in made.values()]])
    moved = {place: 0 for number, place in enumerate(made) if number % 2}
    with SavepointWriter.from_existing_savepoint(tmp_path / "old", tmp_path / "new") as editor:
        editor.operator(operator.operator_id).set_offsets(moved)
    written = [element[8:] for element in elements_of(tmp_path / "new")]
    answers = read_by_connector(flink, "hybrid_split", written)
    assert [answer["bytes"] for answer in answers] == [data.hex() for data in written]
    # Of the split inside, whose bytes are the last, only the offset is another: the 16 to 8 last.
    for data, (place, (old, _)) in zip(written, made.items(), strict=True):
        offset = bytes(8) if place in moved else old[-16:-8]
        assert data == old[:-16] + offset + old[-8:]


def test_splits_of_clusters(states: dict[str, Any], flink: KafkaFlink, tmp_path: Path) -> None:
    made = states["dynamic_split"]
    operator = source(tmp_path / "s", [[versioned(1, data) for data, _ in made]])
    read = splits_of(operator)
    assert read == [split_of(fields, cluster) for _, (cluster, fields) in made]
    written = [sb.utf(str(it.cluster)) + bytes(4) + as_bytes(it) for it in read]
    assert written == [data for data, _ in made]
    assert [answer["bytes"] for answer in read_by_connector(flink, "dynamic_split", written)] == [
        data.hex() for data in written
    ]


def as_bytes(it: KafkaSplit) -> bytes:
    """Return a split as KafkaPartitionSplitSerializer has it."""
    start, stop = number_of(it.offset), number_of(it.stopping_offset)
    assert start is not None
    none = -(2**63)
    return sb.utf(it.topic) + struct.pack(
        ">iqq", it.partition, start, none if stop is None else stop
    )


def test_splits_of_sources_in_turn(
    states: dict[str, Any], flink: KafkaFlink, tmp_path: Path
) -> None:
    made = states["hybrid_split"]
    operator = source(tmp_path / "s", [[versioned(0, data) for data, _ in made]])
    indexes = operator.source_splits().source_indexes
    in_turn = sorted(made, key=lambda it: int(it[1][0]))
    read = splits_of(operator)
    assert [*zip(indexes, read, strict=True)] == [
        (index, split_of(fields)) for _, (index, fields) in in_turn
    ]
    written = [
        struct.pack(">i", index)
        + sb.utf(f"{it.topic}-{it.partition}")
        + versioned(0, as_bytes(it))
        for index, it in zip(indexes, read, strict=True)
    ]
    assert written == [data for data, _ in in_turn]
    assert [answer["bytes"] for answer in read_by_connector(flink, "hybrid_split", written)] == [
        data.hex() for data in written
    ]


# --- enumerators ---------------------------------------------------------------------------------


def test_enumerators(states: dict[str, Any], flink: KafkaFlink, tmp_path: Path) -> None:
    """They are written for a source that has assigned all of its partitions."""
    written = []
    for number, (data, fields) in enumerate(states["enumerator"]):
        operator = source(tmp_path / f"{number}", [[]], coordinator(2, data))
        known = operator.source_splits()
        assert [*known.splits] == [*enumerator(fields)]
        assert known.initial_discovery_finished == (fields[1] if fields[0] else None)
        read = splits_of(operator)
        if not read or len(read) < len(fields[0]) or not all(it.is_assigned for it in read):
            continue
        offsets = KafkaOffsets({it[:2]: 5 for it in read}, initial_discovery_finished=fields[1])
        with SavepointWriter(tmp_path / f"new-{number}") as writer:
            writer.add_source("clicks", offsets, 128, parallelism=1)
        [new] = read_savepoint(tmp_path / f"new-{number}").operators
        assert new.coordinator_state() == coordinator(2, data)
        written.append((data, fields))
    assert len(written) > COUNT // 10
    answers = read_by_connector(flink, "enumerator", [data for data, _ in written])
    for answer, (_, (named, is_finished)) in zip(answers, written, strict=True):
        assert [sorted(answer["fields"][0]), answer["fields"][1]] == [named, is_finished]


def test_enumerators_without_a_topic(
    states: dict[str, Any], flink: KafkaFlink, tmp_path: Path
) -> None:
    written = []
    for number, (data, (named, is_finished)) in enumerate(states["enumerator"]):
        topics = sorted({topic for topic, *_ in named})
        if len(topics) < 2:
            continue
        elements = [versioned(0, as_bytes(KafkaSplit(topic, 0, 5))) for topic in topics]
        operator = source(tmp_path / f"{number}", [elements], coordinator(2, data))
        new = tmp_path / f"new-{number}"
        with SavepointWriter.from_existing_savepoint(tmp_path / f"{number}", new) as editor:
            editor.operator(operator.operator_id).remove_topics(topics[:1])
        [edited] = read_savepoint(new).operators
        kept = [it for it in named if it[0] != topics[0]]
        statuses = [(topic, place, int(not is_assigned)) for topic, place, is_assigned in kept]
        expected = partitions(*statuses, is_finished=is_finished)
        assert edited.coordinator_state() == coordinator(2, expected)
        written.append((expected, kept, is_finished))
    assert len(written) > COUNT // 3
    answers = read_by_connector(flink, "enumerator", [data for data, *_ in written])
    for answer, (_, kept, is_finished) in zip(answers, written, strict=True):
        assert [sorted(answer["fields"][0]), answer["fields"][1]] == [sorted(kept), is_finished]


def test_enumerators_of_clusters(
    states: dict[str, Any], flink: KafkaFlink, tmp_path: Path
) -> None:
    """They are only read; those that are built here, of one stream, the connector reads."""
    for number, (data, fields) in enumerate(states["dynamic_enumerator"]):
        known = source(tmp_path / f"{number}", [[]], coordinator(1, data)).source_splits()
        assert [*known.splits] == [
            it for cluster, state in fields.items() for it in enumerator(state, cluster)
        ]
        finished = all(state[1] for state in fields.values()) if known.splits else None
        assert known.initial_discovery_finished == finished
    servers = sb.utf("h:9092")
    fields_of_each = [fields for _, fields in states["dynamic_enumerator"]]
    written = [
        clusters(servers, kafkas={name: enumerator_bytes(*it) for name, it in fields.items()})
        for fields in fields_of_each
    ]
    answers = read_by_connector(flink, "dynamic_enumerator", written)
    for answer, fields in zip(answers, fields_of_each, strict=True):
        assert {name: in_order(it) for name, it in answer["fields"].items()} == {
            name: in_order(it) for name, it in fields.items()
        }


def enumerator_bytes(named: list[Any], is_finished: bool) -> bytes:
    statuses = [(topic, place, int(not is_assigned)) for topic, place, is_assigned in named]
    return partitions(*statuses, is_finished=is_finished)


def in_order(fields: Any) -> list[Any]:
    """Return the fields of an enumerator, whose partitions are a set."""
    named, is_finished = fields
    return [sorted(named), is_finished]


def test_enumerators_of_sources_in_turn(
    states: dict[str, Any], flink: KafkaFlink, tmp_path: Path
) -> None:
    written = []
    for number, (data, (index, fields)) in enumerate(states["hybrid_enumerator"]):
        written.append(struct.pack(">i", index) + versioned(2, enumerator_bytes(*fields)))
        assert written[-1] == data
        known = source(tmp_path / f"{number}", [[]], coordinator(0, data)).source_splits()
        assert [*known.splits] == [*enumerator(fields)]
        assert known.source_indexes == (index,) * len(known.splits)
        assert known.initial_discovery_finished == (fields[1] if known.splits else None)
    answers = read_by_connector(flink, "hybrid_enumerator", written)
    assert [answer["bytes"] for answer in answers] == [data.hex() for data in written]


# --- sinks ---------------------------------------------------------------------------------------


def test_writers(states: dict[str, Any], flink: KafkaFlink, tmp_path: Path) -> None:
    made = states["writer"]
    operator = sink(tmp_path / "s", [(WRITER, versioned(2, data)) for data, _ in made])
    read = operator.sink_state().writers
    written = []
    for number, (it, (_, fields)) in enumerate(zip(read, made, strict=True)):
        prefix, subtask, subtasks, ownership, transactions = fields
        precommitted = tuple((name, checkpoint) for name, checkpoint in transactions)
        assert it == KafkaWriterState(prefix, number, subtask, subtasks, ownership, precommitted)
        assert isinstance(it, KafkaWriterState)
        assert it.ownership is not None
        head = (it.owned_subtask, it.total_subtasks, OWNERSHIPS.index(it.ownership))
        data = sb.utf(it.transactional_id_prefix) + struct.pack(">iii", *head)
        data += struct.pack(">i", len(it.precommitted))
        data += b"".join(sb.utf(name) + sb.i64(checkpoint) for name, checkpoint in it.precommitted)
        written.append(data)
    assert written == [data for data, _ in made]
    answers = read_by_connector(flink, "writer", written)
    assert [answer["bytes"] for answer in answers] == [data.hex() for data in written]


def test_committers(states: dict[str, Any], flink: KafkaFlink, tmp_path: Path) -> None:
    made = states["committer"]
    operator = sink(tmp_path / "s", [(COMMITTER, versioned(2, data)) for data, _ in made])
    read = iter(operator.sink_state().committables)
    written, count = [], 0
    for number, (_, checkpoints) in enumerate(made):
        of_checkpoints = []
        for checkpoint, subtasks, writers in checkpoints:
            of_writers = []
            for writer, requests in writers:
                of_requests = []
                for name, producer, epoch, retries, state in requests:
                    it = next(read)
                    assert it.committable == KafkaTransaction(name, producer, epoch)
                    assert it[1:] == (checkpoint, number, writer, state, retries)
                    of_requests.append(as_request(it.committable, retries, state))
                    count += 1
                # How many there were, and that none was told of as failed.
                of_writers.append(
                    struct.pack(">i", writer)
                    + listed(0, *of_requests)
                    + struct.pack(">ii", len(requests), 0)
                )
            of_checkpoints.append(
                struct.pack(">qi", checkpoint, subtasks) + listed(2, *of_writers)
            )
        written.append(collector(*of_checkpoints)[8:])
    assert next(read, None) is None
    assert count > COUNT
    assert written == [data for data, _ in made]
    answers = read_by_connector(flink, "committer", written)
    assert [answer["bytes"] for answer in answers] == [data.hex() for data in written]


def as_request(transaction: KafkaTransaction, retries: int, state: str) -> bytes:
    data = struct.pack(">hq", transaction.epoch, transaction.producer_id)
    data += sb.utf(str(transaction.transactional_id))
    return request(data, retries=retries, state=STATES.index(state))
