"""Jobs with the real KafkaSource and KafkaSink, which go on from savepoints of keygroups.

What a job reads is compared, record by record, with what was produced, and what it has counted
with plain Python's count. `.ci/run kafka` makes the Python of the broker and the connector.
"""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.flink.kafka_jobs import (
    Broker,
    Job,
    KafkaCluster,
    KafkaFlink,
    Ran,
    Topic,
    kafka_broker,
    kafka_python,
)

from keygroups.savepoint import (
    KafkaOffsets,
    KafkaSplit,
    KafkaTransaction,
    KafkaWriterState,
    Savepoint,
    SavepointWriter,
    SpecialOffset,
    ValueStateDescriptor,
    change_max_parallelism,
    read_savepoint,
)
from keygroups.types import LONG, STRING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.flink, pytest.mark.slow]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
Offsets = Mapping[tuple[str, int], int]


@pytest.fixture(scope="module")
def flink(tmp_path_factory: pytest.TempPathFactory) -> KafkaFlink:
    return KafkaFlink(kafka_python(), tmp_path_factory.mktemp("kafka"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with kafka_broker(kafka_python(), tmp_path_factory.mktemp("broker")) as made:
        yield made


@pytest.fixture(scope="module")
def cluster(flink: KafkaFlink, broker: Broker) -> Iterator[KafkaCluster]:
    with flink.cluster(broker) as started:
        yield started


def topic(name: str, records: int, partitions: int = 4) -> Topic:
    return Topic(name, ((),) * partitions).more(records)


def middle(read: Topic) -> dict[tuple[str, int], int]:
    """Return an offset of each partition that is another part of it, from its start on."""
    return {key: end * key[1] // len(read.keys) for key, end in read.ends.items()}


def splits_of(savepoint: Savepoint, ends: Offsets | None = None) -> list[KafkaSplit]:
    """Return the splits of the source, which all are Kafka's."""
    splits = savepoint.operator("clicks").source_splits(ends).splits
    assert all(isinstance(split, KafkaSplit) for split in splits)
    return [split for split in splits if isinstance(split, KafkaSplit)]


def offsets_of(savepoint: Savepoint) -> dict[tuple[str, int], int | SpecialOffset | None]:
    return {split[:2]: split.offset for split in splits_of(savepoint)}


def counts_of(savepoint: Savepoint) -> dict[Any, Any]:
    return {entry.key: entry.value for entry in savepoint.operator("by-user").entries()}


def assert_went_on(ran: Ran, topics: Sequence[Topic], offsets: Offsets) -> None:
    """Check that a job read each record from `offsets` on once, and counted every record once."""
    assert ran.failure is None
    assert ran.offsets == sorted(
        (*partition, offset)
        for read in topics
        for partition, end in read.ends.items()
        for offset in range(offsets.get(partition, 0), end)
    )
    whole = sum((read.counts() for read in topics), Counter[str]())
    assert {key: whole[key] for key in ran.counts()} == ran.counts()
    ends = {partition: end for read in topics for partition, end in read.ends.items()}
    for point in ran.points:
        savepoint = read_savepoint(point)
        assert offsets_of(savepoint) == ends
        assert {split.lag for split in splits_of(savepoint, ends)} == {0}
        assert counts_of(savepoint) == whole


def records_from(topics: Sequence[Topic], offsets: Offsets) -> int:
    """Return the number of records that the topics have from some offsets on."""
    return sum(
        end - offsets.get(partition, 0) for read in topics for partition, end in read.ends.items()
    )


# --- what the connector wrote is read ------------------------------------------------------------


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_points_of_each_kind(backend: str, cluster: KafkaCluster, broker: Broker) -> None:
    clicks, orders = topic(f"clicks-{backend}", 400), topic(f"orders-{backend}", 60, 3)
    broker.produce(clicks)
    broker.produce(orders)
    job = Job(
        [clicks.name, orders.name],
        460,
        ["canonical", "native", "checkpoint"],
        sink=f"out-{backend}",
        guarantee="AT_LEAST_ONCE",
        options={"state.backend.type": backend, "execution.checkpointing.incremental": "true"},
    )
    ran = cluster.run(job)
    assert len(ran.points) == 3
    assert_went_on(ran, [clicks, orders], {})


def test_a_source_of_several_clusters(cluster: KafkaCluster, broker: Broker) -> None:
    clicks = topic("several", 300)
    broker.produce(clicks)
    ran = cluster.run(Job([clicks.name], 300, ["canonical", "native"], source="dynamic"))
    assert_went_on(ran, [clicks], {})
    for point in ran.points:
        splits = splits_of(read_savepoint(point))
        assert {(split.cluster, split.is_assigned) for split in splits} == {("cluster-a", True)}


def test_a_source_of_two_topics_in_turn(cluster: KafkaCluster, broker: Broker) -> None:
    """A HybridSource, whose first source is read to its end: its splits are there no more."""
    first, second = topic("first", 60, 3), topic("second", 200)
    broker.produce(first, alone=True)  # or the broker has a wrong end
    broker.produce(second)
    ran = cluster.run(Job([first.name, second.name], 260, source="hybrid"))
    assert ran.offsets == sorted(
        (*partition, offset)
        for read in (first, second)
        for partition, end in read.ends.items()
        for offset in range(end)
    )
    [point] = map(read_savepoint, ran.points)
    assert counts_of(point) == first.counts() + second.counts()
    source = point.operator("clicks").source_splits()
    known = {
        split[:2]: (number, split.offset)
        for number, split in zip(source.source_indexes, source.splits, strict=True)
        if isinstance(split, KafkaSplit)
    }
    assert known == {partition: (1, end) for partition, end in second.ends.items()}


# --- a savepoint from nothing --------------------------------------------------------------------


def written(
    folder: Path,
    read: Topic,
    offsets: Offsets,
    parallelism: int = 2,
    *,
    special: Mapping[tuple[str, int], SpecialOffset] | None = None,
    is_discovered: bool = True,
) -> Path:
    """Return a savepoint with the counts of the records before some offsets."""
    source = KafkaOffsets({**offsets, **(special or {})}, initial_discovery_finished=is_discovered)
    with SavepointWriter(folder) as writer:
        writer.add_source("clicks", source, 128, parallelism)
        counts = [ValueStateDescriptor("count", LONG)]
        operator = writer.add_operator("by-user", STRING, counts, 128, parallelism, sort=True)
        for key, count in read.counts(offsets).items():
            operator.write("count", key, count)
    return folder


@pytest.mark.parametrize(("written_for", "run_with"), [(2, 2), (1, 3), (3, 1)])
def test_from_nothing(
    written_for: int, run_with: int, cluster: KafkaCluster, broker: Broker, tmp_path: Path
) -> None:
    clicks = topic(f"nothing-{run_with}", 400)
    broker.produce(clicks)
    offsets = middle(clicks)
    savepoint = written(tmp_path / "s", clicks, offsets, written_for)
    job = Job(
        [clicks.name], records_from([clicks], offsets), savepoint=savepoint, parallelism=run_with
    )
    assert_went_on(cluster.run(job), [clicks], offsets)


def test_special_offsets(cluster: KafkaCluster, broker: Broker, tmp_path: Path) -> None:
    """LATEST is known when the job has started: it reads nothing of what was there before."""
    clicks = topic("special", 400)
    broker.produce(clicks, alone=True)  # or the broker has a wrong end
    offsets = middle(clicks) | {(clicks.name, 0): 0, (clicks.name, 3): clicks.ends[clicks.name, 3]}
    special = {
        (clicks.name, 0): SpecialOffset.EARLIEST,
        (clicks.name, 3): SpecialOffset.LATEST,
    }
    savepoint = written(tmp_path / "s", clicks, offsets, special=special)
    ran = cluster.run(Job([clicks.name], records_from([clicks], offsets), savepoint=savepoint))
    assert ran.offsets == sorted(
        (*partition, offset)
        for partition, end in clicks.ends.items()
        for offset in range(offsets[partition], end)
    )
    [point] = map(read_savepoint, ran.points)
    assert counts_of(point) == clicks.counts()
    # A reader that has read nothing yet still has the name.
    assert offsets_of(point) == clicks.ends | {(clicks.name, 3): SpecialOffset.LATEST}


@pytest.mark.parametrize("is_discovered", [True, False])
def test_partitions_that_are_not_named(
    is_discovered: bool, cluster: KafkaCluster, broker: Broker, tmp_path: Path
) -> None:
    """They are found by the source: as new ones, or from where the job says, its latest offset.

    Where they are not discovered the coordinator of the connector names all that it then finds
    twice, as assigned and not.
    """
    clicks = topic(f"unnamed-{is_discovered}", 400)
    broker.produce(clicks, alone=True)  # or the broker has a wrong end
    offsets = {key: offset for key, offset in middle(clicks).items() if key[1] > 1}
    new = {(clicks.name, 0): 0, (clicks.name, 1): 0}
    if not is_discovered:
        new = {key: clicks.ends[key] for key in new}
    savepoint = written(tmp_path / "s", clicks, offsets, is_discovered=is_discovered)
    records = records_from([clicks], offsets | new)
    ran = cluster.run(Job([clicks.name], records, savepoint=savepoint, start="latest"))
    assert ran.offsets == sorted(
        (*partition, offset)
        for partition, end in clicks.ends.items()
        for offset in range({**offsets, **new}[partition], end)
    )
    [point] = map(read_savepoint, ran.points)
    assert offsets_of(point) == clicks.ends
    assert counts_of(point) == clicks.counts(offsets) + Counter(key for *_, key, _ in ran.records)
    assert all(split.is_assigned for split in splits_of(point))


def test_backfill(
    cluster: KafkaCluster,
    broker: Broker,
    spark: SparkSession,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    """The example, whose savepoint of Spark a job goes on from, in a topic as the example says."""
    sys.path.insert(0, str(EXAMPLES))
    backfill: Any = importlib.import_module("backfill")
    sys.path.pop(0)
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    flights = parquet.read_table(EXAMPLES / "data" / "nycflights13.parquet").to_pylist()
    flights.sort(key=lambda it: (it["time_hour"], it["carrier"], it["flight"], it["dest"]))
    read = Topic(
        "flights",
        tuple(
            tuple(flight["carrier"] for flight in flights if flight["origin"] == airport)
            for airport in backfill.AIRPORTS
        ),
    )
    broker.produce(read)
    backfill.main(["--output", str(tmp_path / "savepoint")])
    offsets = {
        ("flights", number): sum(
            flight["origin"] == airport and flight["time_hour"].isoformat() < "2013-10-01"
            for flight in flights
        )
        for number, airport in enumerate(backfill.AIRPORTS)
    }
    job = Job(
        ["flights"],
        records_from([read], offsets),
        savepoint=tmp_path / "savepoint",
        uid="flights-by-carrier",
        source_uid="flights",
        state="flights",
    )
    ran = cluster.run(job)
    assert ran.offsets == sorted(
        (*partition, offset)
        for partition, end in read.ends.items()
        for offset in range(offsets[partition], end)
    )
    assert {key: read.counts()[key] for key in ran.counts()} == ran.counts()
    [point] = map(read_savepoint, ran.points)
    entries = point.operator("flights-by-carrier").entries()
    assert {entry.key: entry.value for entry in entries} == read.counts()
    record_property("records read", len(ran.records))
    record_property("carriers", len(read.counts()))


# --- what a job left is edited -------------------------------------------------------------------


def test_offsets_are_rewound(cluster: KafkaCluster, broker: Broker, tmp_path: Path) -> None:
    """Of two partitions, with the counts that were there; all records after that are new ones."""
    clicks = topic("rewound", 400)
    broker.produce(clicks)
    first = cluster.run(Job([clicks.name], 400))
    back = {(clicks.name, 0): 7, (clicks.name, 2): 100}
    offsets = clicks.ends | back
    counts = clicks.counts(offsets)
    [old] = first.points
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as editor:
        editor.operator("clicks").set_offsets(back)
        editor.operator("by-user").map_entries("count", lambda entry: counts[entry.key])
    clicks = clicks.more(100)
    broker.produce(clicks)
    job = Job([clicks.name], records_from([clicks], offsets), savepoint=tmp_path / "new")
    assert_went_on(cluster.run(job), [clicks], offsets)


@pytest.mark.parametrize("parallelism", [2, 3])
def test_offsets_of_a_source_of_several_clusters_are_rewound(
    parallelism: int, cluster: KafkaCluster, broker: Broker, tmp_path: Path
) -> None:
    clicks = topic(f"several-rewound-{parallelism}", 400)
    broker.produce(clicks)
    first = cluster.run(Job([clicks.name], 400, source="dynamic"))
    back = {(clicks.name, 0): 7, (clicks.name, 2): 100}
    offsets = clicks.ends | back
    counts = clicks.counts(offsets)
    [old] = first.points
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as editor:
        moved = {("cluster-a", *partition): offset for partition, offset in back.items()}
        editor.operator("clicks").set_offsets(moved)
        editor.operator("by-user").map_entries("count", lambda entry: counts[entry.key])
    clicks = clicks.more(100)
    broker.produce(clicks)
    job = Job([clicks.name], records_from([clicks], offsets), source="dynamic")
    job = replace(job, savepoint=tmp_path / "new", parallelism=parallelism)
    assert_went_on(cluster.run(job), [clicks], offsets)


@pytest.mark.parametrize("parallelism", [2, 3])
def test_offsets_of_the_second_of_two_sources_are_rewound(
    parallelism: int, cluster: KafkaCluster, broker: Broker, tmp_path: Path
) -> None:
    """The first source of a HybridSource, which was read to its end, is not read again."""
    names = [f"{name}-rewound-{parallelism}" for name in ("first", "second")]
    read, clicks = topic(names[0], 60, 3), topic(names[1], 400)
    broker.produce(read, alone=True)  # or the broker has a wrong end
    broker.produce(clicks)
    first = cluster.run(Job(names, 460, source="hybrid"))
    back = {(clicks.name, 1): 0, (clicks.name, 3): 50}
    offsets = clicks.ends | back
    counts = read.counts() + clicks.counts(offsets)
    [old] = first.points
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as editor:
        editor.operator("clicks").set_offsets(back)
        editor.operator("by-user").map_entries("count", lambda entry: counts[entry.key])
    clicks = clicks.more(100)
    broker.produce(clicks)
    job = Job(names, records_from([clicks], offsets), source="hybrid")
    ran = cluster.run(replace(job, savepoint=tmp_path / "new", parallelism=parallelism))
    assert ran.failure is None
    assert ran.offsets == sorted(
        (*partition, offset)
        for partition, end in clicks.ends.items()
        for offset in range(offsets[partition], end)
    )
    [point] = map(read_savepoint, ran.points)
    assert counts_of(point) == read.counts() + clicks.counts()
    assert offsets_of(point) == clicks.ends


def test_a_topic_is_dropped(cluster: KafkaCluster, broker: Broker, tmp_path: Path) -> None:
    """A job that no longer names it reads it on, unless the savepoint has lost it too."""
    clicks, orders = topic("kept", 400), topic("dropped", 60, 3)
    broker.produce(clicks)
    broker.produce(orders)
    first = cluster.run(Job([clicks.name, orders.name], 460))
    [old] = first.points
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as editor:
        editor.operator("clicks").remove_topics([orders.name])
    before, counted = clicks.ends, orders.counts()
    clicks, more = clicks.more(100), orders.more(50)
    broker.produce(clicks)
    broker.produce(more)
    unedited = cluster.run(Job([clicks.name], 150, savepoint=old))
    assert_went_on(unedited, [clicks, more], before | orders.ends)
    ran = cluster.run(Job([clicks.name], 100, savepoint=tmp_path / "new"))
    assert ran.failure is None
    assert {name for name, _, _ in ran.offsets} == {clicks.name}
    assert len(set(ran.offsets)) == len(ran.offsets) == records_from([clicks], before)
    [point] = map(read_savepoint, ran.points)
    assert offsets_of(point) == clicks.ends
    assert counts_of(point) == clicks.counts() + counted


def test_another_max_parallelism_with_a_pending_transaction(
    cluster: KafkaCluster, broker: Broker, tmp_path: Path
) -> None:
    """A savepoint does not commit what its job has prepared; the job that goes on does, once."""
    clicks, out = topic("exactly-once", 400), "out-exactly-once"
    broker.produce(clicks)
    first = cluster.run(Job([clicks.name], 400, sink=out))
    [old] = map(read_savepoint, first.points)
    pending = old.operator("Sink Committer: out").sink_state().committables
    assert [waiting.state for waiting in pending] == ["RECEIVED", "RECEIVED"]
    names = {
        waiting.committable.transactional_id
        for waiting in pending
        if isinstance(waiting.committable, KafkaTransaction)
    }
    writers = old.operator("out").sink_state().writers
    assert names == {
        name
        for writer in writers
        if isinstance(writer, KafkaWriterState)
        for name, _ in writer.precommitted
    }
    assert len(names) == 2
    assert broker.committed(out) == []
    change_max_parallelism(old, 720, tmp_path / "new")
    assert read_savepoint(tmp_path / "new").operator("by-user").max_parallelism == 720
    before, clicks = clicks.ends, clicks.more(100)
    broker.produce(clicks)
    job = Job([clicks.name], 100, sink=out, max_parallelism=720, parallelism=3)
    ran = cluster.run(replace(job, savepoint=tmp_path / "new"))
    assert_went_on(ran, [clicks], before)
    last = cluster.run(replace(job, records=0, savepoint=ran.points[0]))
    assert_went_on(last, [clicks], clicks.ends)
    assert Counter(broker.committed(out)) == Counter(
        f"{key}={number}"
        for key, count in clicks.counts().items()
        for number in range(1, count + 1)
    )
