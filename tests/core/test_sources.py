"""Where the sources of a job go on: Kafka's splits written and read, those of files read.

Expected bytes are those of `support.bytes.source_bytes`, and what connectors wrote.
"""

from __future__ import annotations

import pickle
import random
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.real_savepoints import point
from support.bytes.source_bytes import (
    A0,
    A1,
    KAFKA,
    LOCAL,
    NEWEST,
    NO_STOP,
    NUMBER,
    OF_KAFKA,
    OF_TOPICS,
    OLDEST,
    PARTITION,
    SHARD,
    by_kryo,
    clusters,
    coordinator,
    file_split,
    framed,
    in_cluster,
    kafka_element,
    kafka_split,
    kryo_text,
    of_hybrid,
    partitions,
    path_bytes,
    pending,
    source,
    versioned,
)
from support.bytes.sst_bytes import varint
from support.inside.savepoints import has_same_content

from keygroups import InvalidTypeError, InvalidValueError
from keygroups.errors import KeyGroupsError, SavepointError
from keygroups.savepoint import (
    FileSplit,
    KafkaOffsets,
    KafkaSplit,
    KinesisSplit,
    Operator,
    Pojo,
    SavepointWriter,
    SourceSplits,
    SpecialOffset,
    UnknownSplit,
    html_report,
    operator_reports,
    read_savepoint,
)

EARLIEST = SpecialOffset.EARLIEST


def splits_of(operator: Operator, ends: Any = None) -> list[KafkaSplit]:
    """Return the splits of Kafka, which all of the operator's are."""
    splits = operator.source_splits(ends).splits
    assert all(isinstance(split, KafkaSplit) for split in splits)
    return [split for split in splits if isinstance(split, KafkaSplit)]


def consumer(folder: Path, name: str, snapshot: bytes, elements: Sequence[bytes]) -> Operator:
    """Return an operator whose two subtasks have elements in turn, in a union list."""
    options = {"OPERATOR_STATE_DISTRIBUTION_MODE": "UNION"}
    other = sb.meta_info("_default_", 1, options, {"VALUE_SERIALIZER": sb.simple("Long")})
    info = sb.meta_info(name, 1, options, {"VALUE_SERIALIZER": snapshot})
    subtasks = []
    for index in range(2):
        data, offsets = sb.operator_header([other, info], []), []
        for element in elements[index::2]:
            offsets.append(len(data))
            data += element
        handle = sb.operator_state([("_default_", 1, []), (name, 1, offsets)], sb.inline(data))
        subtasks.append(sb.subtask(index, managed_operator=handle))
    written = [sb.operator(subtasks, parallelism=2)]
    # Both versions of Kryo write these fields alike.
    (operator,) = read_savepoint(sb.write(folder, written)).operators
    return operator


# --- written -----------------------------------------------------------------------------------


def test_both_halves_are_written(tmp_path: Path) -> None:
    offsets = KafkaOffsets(
        {("orders", 0): 5, ("clicks", 1): EARLIEST, ("clicks", 0): 4711},
        {("orders", 0): 9, ("clicks", 0): SpecialOffset.LATEST},
    )
    with SavepointWriter(tmp_path / "savepoint") as writer:
        writer.add_source("kafka", offsets, 128, parallelism=2)
    operator = read_savepoint(tmp_path / "savepoint").operator("kafka")
    assert (operator.max_parallelism, operator.parallelism) == (128, 2)
    assert [(entry.state, entry.mode, entry.elements) for entry in operator.operator_state()] == [
        (
            "SourceReaderState",
            "SPLIT_DISTRIBUTE",
            [
                versioned(0, kafka_split("clicks", 0, 4711, -1)),
                versioned(0, kafka_split("clicks", 1, -2)),
            ],
        ),
        ("SourceReaderState", "SPLIT_DISTRIBUTE", [versioned(0, kafka_split("orders", 0, 5, 9))]),
    ]
    assert operator.coordinator_state() == coordinator(
        2, partitions(("clicks", 0, 0), ("clicks", 1, 0), ("orders", 0, 0))
    )
    # As Flink's own, in `_metadata` itself.
    (metadata,) = read_savepoint(tmp_path / "savepoint").metadata.operators
    assert metadata.coordinator is not None
    assert metadata.coordinator.name
    assert metadata.coordinator.data is not None


def test_initial_discovery_may_be_to_come(tmp_path: Path) -> None:
    offsets = KafkaOffsets({("clicks", 0): 1}, initial_discovery_finished=False)
    with SavepointWriter(tmp_path / "savepoint") as writer:
        writer.add_source("kafka", offsets, 128, parallelism=1)
    operator = read_savepoint(tmp_path / "savepoint").operator("kafka")
    expected = partitions(("clicks", 0, 0), is_finished=False)
    assert operator.coordinator_state() == coordinator(2, expected)
    assert operator.source_splits().initial_discovery_finished is False


def test_what_is_written_is_read(tmp_path: Path) -> None:
    choose = random.Random(5)
    starts = [0, 1, 2**63 - 1, *SpecialOffset]
    passed = {(topic, i): choose.choice(starts) for topic in ("a", "b.c-d_E") for i in range(20)}
    stops = dict.fromkeys(choose.sample(sorted(passed), 9), 2**63 - 1)
    with SavepointWriter(tmp_path / "savepoint") as writer:
        writer.add_source("kafka", KafkaOffsets(passed, stops), 128, parallelism=7)
    splits = read_savepoint(tmp_path / "savepoint").operator("kafka").source_splits().splits
    assert all(isinstance(split, KafkaSplit) and split.is_assigned for split in splits)
    found = [split for split in splits if isinstance(split, KafkaSplit)]
    assert {(split.topic, split.partition): split.offset for split in found} == passed
    assert {
        (split.topic, split.partition): split.stopping_offset
        for split in found
        if split.stopping_offset is not None
    } == stops
    sizes = [sum(split.subtask == subtask for split in found) for subtask in range(7)]
    assert sizes == [6, 6, 6, 6, 6, 5, 5]


def test_a_uid_is_there_once(tmp_path: Path) -> None:
    with SavepointWriter(tmp_path / "savepoint") as writer:
        writer.add_source("kafka", KafkaOffsets({("a", 0): 0}), 128, parallelism=1)
        with pytest.raises(InvalidValueError, match=r"job's, and new here, got 'kafka'$"):
            writer.add_source("kafka", KafkaOffsets({("a", 0): 0}), 128, parallelism=1)
        offsets: Any = {("a", 0): 0}
        with pytest.raises(InvalidTypeError, match="source must be KafkaOffsets, got"):
            writer.add_source("other", offsets, 128, parallelism=1)


class Index:
    """What is an int, and equal to none."""

    def __index__(self) -> int:
        return 0


@pytest.mark.parametrize(
    ("offsets", "stops", "error", "says"),
    [
        ({}, {}, InvalidValueError, "offsets must be of at least one partition, got none"),
        ([("a", 0)], {}, InvalidTypeError, "offsets must be a mapping of partitions"),
        ({("a", 0): 1}, 3, InvalidTypeError, "stopping_offsets must be a mapping of partitions"),
        ({"a-0": 1}, {}, InvalidTypeError, "partition in offsets must be a tuple of a topic"),
        ({("a", 0, 0): 1}, {}, InvalidTypeError, "partition in offsets must be a tuple of a"),
        ({(0, 0): 1}, {}, InvalidTypeError, "topic of partition in offsets must be a str, got 0"),
        ({("a", "0"): 1}, {}, InvalidTypeError, "number of partition in offsets must be an int"),
        ({("a", True): 1}, {}, InvalidTypeError, "number of partition in offsets must be an int"),
        ({("a", -1): 1}, {}, InvalidValueError, "number of partition in offsets must be from 0"),
        ({("a", 2**31): 1}, {}, InvalidValueError, "from 0 to 2147483647, got 2147483648"),
        ({("", 0): 1}, {}, InvalidValueError, "topic of partition in offsets must be 1 to 249"),
        ({("a" * 250, 0): 1}, {}, InvalidValueError, "topic of partition in offsets must be 1"),
        ({("a b", 0): 1}, {}, InvalidValueError, "topic of partition in offsets must be 1 to 249"),
        ({("ä", 0): 1}, {}, InvalidValueError, "topic of partition in offsets must be 1 to 249"),
        ({("a\n", 0): 1}, {}, InvalidValueError, "topic of partition in offsets must be 1 to 249"),
        ({(".", 0): 1}, {}, InvalidValueError, "not '.' or '..', got '.'$"),
        ({("..", 0): 1}, {}, InvalidValueError, "not '.' or '..', got '..'"),
        ({("a", 0): 1, ("a", Index()): 2}, {}, InvalidValueError, r"have \('a', 0\) once"),
        ({("a", 0): -1}, {}, InvalidValueError, "got -1: .* there is SpecialOffset"),
        ({("a", 0): 2**63}, {}, InvalidValueError, "from 0 to 9223372036854775807, got 92"),
        ({("a", 0): 1.0}, {}, InvalidTypeError, r"offsets of \('a', 0\) must be an int, got 1.0"),
        ({("a", 0): None}, {}, InvalidTypeError, "must be an int, got None"),
        ({("a", 0): 1}, {("a", 1): 2}, InvalidValueError, "stopping_offsets must be of partiti"),
        ({("a", 0): 1}, {("a", 0): EARLIEST}, InvalidValueError, "must not be EARLIEST"),
        ({("a", 0): 5}, {("a", 0): 4}, InvalidValueError, "must be at least its offset 5, got 4"),
    ],
)
def test_refused_offsets(offsets: Any, stops: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        KafkaOffsets(offsets, stops)


def test_offsets_at_their_bounds() -> None:
    partition = "a" * 249, 2**31 - 1
    offsets = KafkaOffsets({partition: 2**63 - 1}, {partition: 2**63 - 1})
    assert offsets.offsets == offsets.stopping_offsets
    assert KafkaOffsets({("a", 0): EARLIEST}, {("a", 0): 0}).stopping_offsets == {("a", 0): 0}
    passed: Any = 1
    with pytest.raises(InvalidTypeError, match="initial_discovery_finished must be a bool, got 1"):
        KafkaOffsets({("a", 0): 0}, initial_discovery_finished=passed)


def test_offsets_are_values() -> None:
    passed, stops = {("a", 0): 0}, {("a", 0): 5}
    offsets = KafkaOffsets(passed, stops)
    passed["b", 0] = stops["a", 0] = 1
    assert offsets == KafkaOffsets({("a", 0): 0}, {("a", 0): 5})
    assert hash(offsets) == hash(KafkaOffsets({("a", 0): 0}))
    assert pickle.loads(pickle.dumps(offsets)) == offsets


# --- Kafka's, read -------------------------------------------------------------------------------

READ_A0 = KafkaSplit("a", 0, 40, None, subtask=0, is_assigned=True)
READ_A1 = KafkaSplit("a", 1, SpecialOffset.COMMITTED, 90, subtask=1, is_assigned=True)


@pytest.mark.parametrize(
    ("version", "enumerator"),
    [(0, OLDEST), (1, OF_TOPICS), (2, partitions(("a", 0, 0), ("a", 1, 0))), (3, NEWEST)],
)
def test_all_versions_of_the_enumerator(version: int, enumerator: bytes, tmp_path: Path) -> None:
    elements = [[versioned(0, A0)], [versioned(0, A1)]]
    operator = source(tmp_path / "savepoint", elements, coordinator(version, enumerator))
    assert operator.source_splits() == SourceSplits(
        (READ_A0, READ_A1), enumerator, version, initial_discovery_finished=True
    )
    # Bytes that are no whole state of an enumerator make it that of a source that is not known.
    for damaged in (enumerator[:-1], enumerator + b"\0"):
        operator = source(tmp_path / "other", elements, coordinator(version, damaged))
        assert operator.source_splits() == SourceSplits(
            (UnknownSplit(0, 0, A0), UnknownSplit(1, 0, A1)), damaged, version
        )


def test_splits_that_are_not_with_a_reader(tmp_path: Path) -> None:
    """Unassigned ones, with their offsets from version 3 on, and those that nobody reads."""
    elements = [[versioned(0, A0)]]
    enumerator = partitions(("a", 0, 1), ("a", 1, 1), ("b", 0, 0), is_finished=False)
    found = source(tmp_path / "2", elements, coordinator(2, enumerator)).source_splits()
    assert found.splits == (
        READ_A0._replace(is_assigned=False),
        KafkaSplit("a", 1),
        KafkaSplit("b", 0, is_assigned=True),
    )
    assert found.initial_discovery_finished is False
    new = kafka_split("a", 1, 7, NO_STOP)
    enumerator = struct.pack(">ii", 2, 0) + framed(A0) + bytes(4) + framed(new) + b"\0\0\0\1\1"
    found = source(tmp_path / "3", elements, coordinator(3, enumerator)).source_splits()
    assert found.splits == (READ_A0, KafkaSplit("a", 1, 7))
    # KafkaPartitionSplit.MIGRATED: of an older version, whose offsets the readers have.
    migrated = kafka_split("b", 0, -(2**63))
    enumerator = struct.pack(">ii", 1, 0) + framed(migrated) + bytes(4) + b"\1"
    found = source(tmp_path / "4", elements, coordinator(3, enumerator)).source_splits()
    assert found.splits[1:] == (KafkaSplit("b", 0, is_assigned=True),)


def test_a_split_that_is_read_to_its_end_goes_on_nowhere(tmp_path: Path) -> None:
    """Its state of version 3 has the offset that its reader began with, and records to its stop.

    flink-connector-kafka v5.0.0: KafkaSourceEnumerator.assignPendingPartitionSplits puts splits
    in assignedSplits, which nothing changes when SourceReaderBase.finishSplit drops them.
    """
    done, later = kafka_split("b", 0, 100, 900), kafka_split("c", 0, 20, 70)
    enumerator = (
        *(struct.pack(">ii", 3, 0), framed(A0), bytes(4), framed(done), bytes(4)),
        *(framed(later), b"\0\0\0\1\1"),
    )
    state = coordinator(3, b"".join(enumerator))
    operator = source(tmp_path / "savepoint", [[versioned(0, A0)]], state)
    ends = {("a", 0): 100, ("b", 0): 1_000, ("c", 0): 60}
    splits = splits_of(operator, ends)
    assert splits == [
        READ_A0._replace(lag=60),
        KafkaSplit("b", 0, None, 900, is_assigned=True),
        KafkaSplit("c", 0, 20, 70, lag=40),
    ]
    [report] = operator_reports(read_savepoint(tmp_path / "savepoint", ends=ends))
    assert "100 records behind in 2 of them" in str(report)


def test_without_a_coordinator_no_split_is_assigned(tmp_path: Path) -> None:
    operator = source(tmp_path / "savepoint", [[versioned(0, A0)], []])
    assert operator.coordinator_state() is None
    assert operator.source_splits() == SourceSplits(
        (READ_A0._replace(is_assigned=False),), None, None
    )


def test_lag(tmp_path: Path) -> None:
    elements = [[versioned(0, A0), versioned(0, kafka_split("b", 0, 7))], [versioned(0, A1)]]
    enumerator = partitions(("a", 0, 0), ("a", 1, 0), ("b", 0, 0), ("c", 0, 0))
    operator = source(tmp_path / "savepoint", elements, coordinator(2, enumerator))
    ends = {("a", 0): 100, ("a", 1): 100, ("b", 0): 5, ("c", 0): 9, ("new", 0): 3}
    splits = splits_of(operator, ends)
    assert [split.lag for split in splits] == [60, -2, None, None]
    assert [split._replace(lag=None) for split in splits] == splits_of(operator)
    assert [split.lag for split in splits_of(operator, {})] == [None] * 4


@pytest.mark.parametrize(
    ("ends", "error", "says"),
    [
        ([("a", 0)], InvalidTypeError, "ends must be a mapping of partitions"),
        ({"a": 0}, InvalidTypeError, "partition in ends must be a tuple"),
        ({("a", 0): -1}, InvalidValueError, r"end of \('a', 0\) must be from 0"),
        ({("a", 0): None}, InvalidTypeError, r"end of \('a', 0\) must be an int"),
    ],
)
def test_refused_ends(ends: Any, error: type[KeyGroupsError], says: str, tmp_path: Path) -> None:
    operator = source(tmp_path / "savepoint", [[versioned(0, A0)]])
    with pytest.raises(error, match=says):
        operator.source_splits(ends)


def test_lag_in_reports(tmp_path: Path) -> None:
    """Of all sources of one cluster: what is not Kafka's, and what is of several, has none."""
    splits = [versioned(0, A0), versioned(0, kafka_split("b", 0, 7)), versioned(0, A1)]
    source(tmp_path / "savepoint", [splits])
    ends = {("a", 0): 100, ("b", 0): 1_007, ("c", 0): 5}
    savepoint = read_savepoint(tmp_path / "savepoint", ends=ends)
    [operator] = savepoint.operators
    assert [split.lag for split in splits_of(operator)] == [60, 1000, None]
    assert [split.lag for split in splits_of(operator, {})] == [None] * 3
    [report] = operator_reports(savepoint)
    assert "  3 splits; 1,060 records behind in 2 of them\n" in str(report)
    header, *rows = (line.split() for line in str(report).splitlines()[2:])
    assert header == ["split", "goes", "on", "at", "subtask", "records", "behind"]
    assert [row[-2:] for row in rows] == [["0", "60"], ["0", "1,000"], ["90", "0"]]
    assert "1,060 records behind in 2 of them" in html_report(savepoint)
    [report] = operator_reports(read_savepoint(tmp_path / "savepoint", ends={("a", 0): 99}))
    assert "records behind in 1 of them" in str(report)
    [report] = operator_reports(read_savepoint(tmp_path / "savepoint"))
    assert "behind" not in str(report)
    several = [in_cluster("x", A0)]
    state = coordinator(1, clusters(sb.utf("h:9092"), kafkas={"x": partitions(("a", 0, 0))}))
    for elements, enumerator in ((several, state), ([versioned(0, A0[:-1])], None)):
        path = source(tmp_path / "other", [elements], enumerator)._files.base
        [report] = operator_reports(read_savepoint(path, ends=ends))
        assert "  1 split\n" in str(report)
        assert "behind" not in str(report)


@pytest.mark.parametrize(
    ("ends", "error", "says"),
    [
        ([("a", 0)], InvalidTypeError, "ends must be a mapping of partitions"),
        ({("a", 0): -1}, InvalidValueError, r"end of \('a', 0\) must be from 0"),
    ],
)
def test_ends_are_checked_as_a_savepoint_is_read(
    ends: Any, error: type[KeyGroupsError], says: str, tmp_path: Path
) -> None:
    operator = source(tmp_path / "savepoint", [[versioned(0, A0)]])
    with pytest.raises(error, match=says):
        read_savepoint(operator._files.base, ends=ends)


NOT_KAFKAS = {
    "no topic": kafka_split("a b", 0, 1),
    "no name": kafka_split("", 0, 1),
    "no partition": kafka_split("a", -1, 1),
    "no offset": kafka_split("a", 0, -4),
    "no stop": kafka_split("a", 0, 1, -4),
    "a stop at the earliest": kafka_split("a", 0, 1, -2),
    "too short": A0[:-1],
    "too long": A0 + b"\0",
    "no text": b"\0\1\xff" + A0[3:],
}


@pytest.mark.parametrize("data", NOT_KAFKAS.values(), ids=NOT_KAFKAS)
def test_bytes_of_another_source(data: bytes, tmp_path: Path) -> None:
    operator = source(tmp_path / "savepoint", [[versioned(0, data)]])
    assert operator.source_splits().splits == (UnknownSplit(0, 0, data),)
    with pytest.raises(InvalidValueError, match="ends must be None for a source that is neither"):
        operator.source_splits({("a", 0): 1})


def test_a_split_of_another_version(tmp_path: Path) -> None:
    clusters = in_cluster("x", A0)[8:]
    for version, data in ((1, A0), (2, clusters)):
        operator = source(tmp_path / str(version), [[versioned(version, data)]])
        assert operator.source_splits().splits == (UnknownSplit(0, version, data),)


@pytest.mark.parametrize(
    ("version", "enumerator"),
    [
        (4, partitions(("a", 0, 0))),
        (-1, partitions(("a", 0, 0))),
        (2, partitions(("a", 0, 2))),
        (2, partitions(("a", 0, 0), ("a", 0, 0))),
        (2, partitions(("a", 0, 1), ("a", 0, 0), ("a", 0, 1))),
        (2, partitions(("a", 0, 0))[:-1] + b"\2"),
        (2, struct.pack(">i", 2**31 - 1)),
        (
            3,
            struct.pack(">ii", 2, 0)
            + framed(A0)
            + bytes(4)
            + framed(kafka_split("a", 0, 41))
            + bytes(4)
            + b"\1",
        ),
        (3, struct.pack(">ii", 1, 1) + framed(A0) + bytes(4) + b"\1"),
        (3, struct.pack(">ii", 1, 0) + framed(A0 + b"\0") + bytes(4) + b"\1"),
        (0, struct.pack(">iiii", 1, 0, 7, 1) + framed(A0[:-1])),
    ],
)
def test_enumerators_of_another_source(version: int, enumerator: bytes, tmp_path: Path) -> None:
    elements = [[versioned(0, A0)]]
    operator = source(tmp_path / "savepoint", elements, coordinator(version, enumerator))
    assert operator.source_splits() == SourceSplits((UnknownSplit(0, 0, A0),), enumerator, version)


@pytest.mark.parametrize(("first", "second"), [(0, 1), (1, 0)])
def test_a_partition_that_is_named_both_ways(first: int, second: int, tmp_path: Path) -> None:
    """Connectors to 4.0 do not assign it again, 5.0 does, as it has an offset then.

    Kafka's source: KafkaSourceEnumerator.getPartitionChange of 4.0.1, start of 5.0.0.
    """
    enumerator = partitions(("a", 0, first), ("a", 0, second))
    found = source(tmp_path / "2", [[versioned(0, A0)]], coordinator(2, enumerator))
    assert found.source_splits().splits == (READ_A0,)
    both = b"".join(framed(A0) + struct.pack(">i", status) for status in (first, second))
    enumerator = struct.pack(">ii", 2, 0) + both + b"\1"
    found = source(tmp_path / "3", [[versioned(0, A0)]], coordinator(3, enumerator))
    assert found.source_splits().splits == (READ_A0._replace(is_assigned=False),)


# What flink-connector-kafka 4.0.1 wrote in jobs of Flink 2.0.2: each element of two readers, and
# the enumerator with its version; what the job had read of each partition by then.
CONNECTORS: dict[str, Any] = {
    "a start with initial_discovery_finished=False": (
        [
            "000000000000001c0006636c69636b730000000300000000000000968000000000000000",
            "000000000000001c0006636c69636b7300000001ffffffffffffffff8000000000000000",
            "000000000000001c0006636c69636b730000000000000000000000c88000000000000000",
        ],
        ["000000000000001c0006636c69636b730000000200000000000000c88000000000000000"],
        2,
        "000000070006636c69636b7300000000000000010006636c69636b7300000002000000000006636c69636b73"
        "00000002000000010006636c69636b7300000001000000000006636c69636b7300000000000000000006636c"
        "69636b7300000003000000000006636c69636b73000000010000000101",
        [(3, 150), (1, SpecialOffset.LATEST), (0, 200), (2, 200)],
    ),
    "DynamicKafkaSource": (
        [
            "000000010000002b0009636c75737465722d61000000000006636c69636b73000000030000000000000096"
            "8000000000000000",
            "000000010000002b0009636c75737465722d61000000000006636c69636b73000000010000000000000096"
            "8000000000000000",
        ],
        [
            "000000010000002b0009636c75737465722d61000000000006636c69636b730000000200000000000000c8"
            "8000000000000000",
            "000000010000002b0009636c75737465722d61000000000006636c69636b730000000000000000000000c8"
            "8000000000000000",
        ],
        1,
        "000000010006636c69636b73000000010009636c75737465722d61000000010006636c69636b73000f313237"
        "2e302e302e313a313930393200000002000000010009636c75737465722d6100000045000000040006636c69"
        "636b7300000002000000000006636c69636b7300000001000000000006636c69636b73000000030000000000"
        "06636c69636b73000000000000000001",
        [(3, 150), (1, 150), (2, 200), (0, 200)],
    ),
    "HybridSource": (
        [
            "0000000000000032000000010008636c69636b732d33000000000000001c0006636c69636b730000000300"
            "000000000000ab8000000000000000",
            "0000000000000032000000010008636c69636b732d31000000000000001c0006636c69636b730000000100"
            "000000000000ac8000000000000000",
        ],
        [
            "0000000000000032000000010008636c69636b732d32000000000000001c0006636c69636b730000000200"
            "000000000000e58000000000000000",
            "0000000000000032000000010008636c69636b732d30000000000000001c0006636c69636b730000000000"
            "000000000000e48000000000000000",
        ],
        0,
        "000000010000000200000045000000040006636c69636b7300000001000000000006636c69636b7300000003"
        "000000000006636c69636b7300000000000000000006636c69636b73000000020000000001",
        [(3, 171), (1, 172), (2, 229), (0, 228)],
    ),
}


@pytest.mark.parametrize("name", CONNECTORS)
def test_what_the_connector_wrote(name: str, tmp_path: Path) -> None:
    *readers, version, enumerator, offsets = CONNECTORS[name]
    elements = [[bytes.fromhex(element) for element in elements] for elements in readers]
    state = coordinator(version, bytes.fromhex(enumerator))
    found = source(tmp_path / "savepoint", elements, state).source_splits()
    cluster = "cluster-a" if name == "DynamicKafkaSource" else None
    subtasks = [index for index, of_subtask in enumerate(elements) for _ in of_subtask]
    assert found.splits == tuple(
        KafkaSplit("clicks", number, offset, None, subtask, is_assigned=True, cluster=cluster)
        for (number, offset), subtask in zip(offsets, subtasks, strict=True)
    )
    assert found.initial_discovery_finished is True
    assert found.source_indexes == ((1,) * 4 if name == "HybridSource" else ())


# --- files ------------------------------------------------------------------------------------


def file_of(**changes: Any) -> FileSplit:
    split = FileSplit(
        "0000000001", "file:/data/a.csv", 10, 200, 1_700_000_000_000, 999, (), None, None
    )
    return split._replace(**changes)


def test_splits_of_files(tmp_path: Path) -> None:
    elements = [
        [versioned(1, file_split("0000000001", hosts=["n1", "n2"], position=(-1, 20)))],
        [versioned(1, file_split("0000000002"))],
    ]
    seen = [b"file:/data/a.csv", "file:/data/ä.csv".encode()]
    enumerator = pending([file_split("0000000003")], seen)
    operator = source(tmp_path / "savepoint", elements, coordinator(1, enumerator))
    assert operator.source_splits() == SourceSplits(
        (
            file_of(hosts=("n1", "n2"), position=(-1, 20), subtask=0),
            file_of(split_id="0000000002", subtask=1),
            file_of(split_id="0000000003"),
        ),
        enumerator,
        1,
        processed_paths=("file:/data/a.csv", "file:/data/ä.csv"),
    )
    with pytest.raises(InvalidValueError, match="ends must be None for a source that is neither"):
        operator.source_splits({("a", 0): 1})


@pytest.mark.parametrize("hosts", [(), ("n1",), ("", "")])
@pytest.mark.parametrize("position", [None, (0, 0), (12345, 0), (-1, 300)])
@pytest.mark.parametrize("times", [None, (0, 5), (1_700_000_000_000, 2**40)])
def test_both_layouts_of_a_split(
    hosts: tuple[str, ...],
    position: tuple[int, int] | None,
    times: tuple[int, int] | None,
    tmp_path: Path,
) -> None:
    data = file_split("0000000001", times=times, hosts=hosts, position=position)
    time, size = times or (None, None)
    assert source(tmp_path / "savepoint", [[versioned(1, data)]]).source_splits().splits == (
        file_of(modification_time=time, file_size=size, hosts=hosts, position=position, subtask=0),
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (path_bytes("s3", None, "bucket", "/a/b", None, None), "s3://bucket/a/b"),
        (path_bytes("hdfs", "me", "host", "/a", None, None, port=9000), "hdfs://me@host:9000/a"),
        (path_bytes("x", None, "host", "/a", None, None, port=0), "x://host:0/a"),
        (path_bytes(None, None, None, "a/b", None, None), "a/b"),
        (path_bytes("x", None, "", None, "q", "f"), "x://?q#f"),
    ],
)
def test_paths_as_flink_prints_them(data: bytes, expected: str, tmp_path: Path) -> None:
    operator = source(tmp_path / "savepoint", [[versioned(1, file_split("0000000001", data))]])
    assert operator.source_splits().splits == (file_of(path=expected, subtask=0),)


def test_files_that_were_seen_tell_the_source(tmp_path: Path) -> None:
    enumerator = pending([], [b"file:/a"])
    operator = source(tmp_path / "savepoint", [[]], coordinator(1, enumerator))
    assert operator.source_splits() == SourceSplits(
        (), enumerator, 1, processed_paths=("file:/a",)
    )


@pytest.mark.parametrize(
    ("version", "enumerator"), [(1, bytes(4)), (2, partitions()), (1, pending([], []))]
)
def test_without_any_split_no_source_is_known(
    version: int, enumerator: bytes, tmp_path: Path
) -> None:
    operator = source(tmp_path / "savepoint", [[]], coordinator(version, enumerator))
    assert operator.source_splits() == SourceSplits((), enumerator, version)


def test_a_broadcast_state_has_no_splits(tmp_path: Path) -> None:
    """It is one of the name of a source's, which each subtask has a copy of."""
    types = {"KEY_SERIALIZER": sb.simple("Int"), "VALUE_SERIALIZER": sb.simple("Int")}
    header = sb.operator_header([], [sb.meta_info("SourceReaderState", 2, {}, types)])
    stream = sb.inline(header + sb.i32(1, 2, 3))
    handle = sb.operator_state([("SourceReaderState", 2, [len(header)])], stream)
    written = sb.operator([sb.subtask(managed_operator=handle)])
    (operator,) = read_savepoint(sb.write(tmp_path, [written])).operators
    assert operator.source_splits().splits == ()


GOOD = file_split("1")
NOT_OF_FILES = {
    "another version": (2, GOOD, 1, pending([], [])),
    "too short": (1, GOOD[:-1], 1, pending([], [])),
    "too long": (1, GOOD + b"\0", 1, pending([], [])),
    "without a path": (1, file_split("1", b"\0"), 1, pending([], [])),
    "no path, and one behind it": (1, file_split("1", b"\0" + LOCAL[1:]), 1, pending([], [])),
    "a text too long": (1, sb.utf("1") + b"\1\1\xff\xff", 1, pending([], [])),
    "a text that is none": (1, sb.utf("1") + b"\1\1\2" + b"\xff" * 6, 1, pending([], [])),
    "another magic": (1, GOOD, 1, pending([], [], magic=0xDEADBEEE)),
    "another version of pending splits": (1, GOOD, 2, pending([], [])),
    "another version of splits": (1, GOOD, 1, pending([GOOD], [], version=2)),
    "too many": (1, GOOD, 1, struct.pack("<Iiii", 0xDEADBEEF, 1, 2**31 - 1, 0)),
    "no UTF-8": (1, GOOD, 1, pending([], [b"\xff"])),
    "left": (1, GOOD, 1, pending([], []) + b"\0"),
    "a longer one": (1, GOOD, 1, pending([GOOD + b"\0"], [])),
    "a split beyond the end": (
        1, GOOD, 1, struct.pack("<Iiiii", 0xDEADBEEF, 1, 1, 0, 2**31 - 1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", NOT_OF_FILES.values(), ids=NOT_OF_FILES)
def test_what_is_of_no_file_source(case: tuple[int, bytes, int, bytes], tmp_path: Path) -> None:
    version, data, enumerator_version, enumerator = case
    elements = [[versioned(version, data)]]
    state = coordinator(enumerator_version, enumerator)
    operator = source(tmp_path / "savepoint", elements, state)
    assert operator.source_splits() == SourceSplits(
        (UnknownSplit(0, version, data),), enumerator, enumerator_version
    )


def test_content_in_another_order() -> None:
    """Hash sets are written in any order; the splits that wait for a reader are in theirs."""
    one, two = ("a", 0, 0), ("b", 0, 1)
    own = coordinator(2, partitions(one, two))
    assert has_same_content(own, coordinator(2, partitions(two, one)))
    for same in (own, b"", b"of another source"):
        assert has_same_content(same, same)
    for other in (
        coordinator(2, partitions(one, ("b", 0, 0))),
        coordinator(2, partitions(one, two, is_finished=False)),
        coordinator(1, partitions(one, two)),
        coordinator(2, partitions(one)),
        coordinator(2, bytes(len(partitions(one, two)))),
        bytes(len(own)),
    ):
        assert not has_same_content(own, other)
    splits = [file_split("1"), file_split("2")]
    own = coordinator(1, pending(splits, [b"x", b"y"]))
    assert has_same_content(own, coordinator(1, pending(splits, [b"y", b"x"])))
    assert not has_same_content(own, coordinator(1, pending(splits, [b"z", b"x"])))
    assert not has_same_content(own, coordinator(1, pending(splits[::-1], [b"x", b"y"])))


# --- edited -------------------------------------------------------------------------------------


def written(folder: Path, offsets: KafkaOffsets) -> str:
    path = str(folder / "old")
    with SavepointWriter(path) as writer:
        writer.add_source("clicks", offsets, 128, parallelism=2)
    return path


def test_offsets_are_moved(tmp_path: Path) -> None:
    """Of some partitions; the others, where it stops and the coordinator's state stay."""
    offsets: dict[tuple[str, int], int | SpecialOffset] = {
        ("a", 0): 40,
        ("a", 1): EARLIEST,
        ("b", 0): 7,
    }
    old = written(tmp_path, KafkaOffsets(offsets, {("a", 0): 90, ("b", 0): SpecialOffset.LATEST}))
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as editor:
        source = editor.operator("clicks")
        source.set_offsets({("a", 0): 1})
        source.set_offsets({("a", 0): 90, ("a", 1): SpecialOffset.LATEST, ("b", 0): 2**63 - 1})
    before = read_savepoint(old).operator("clicks")
    after = read_savepoint(tmp_path / "new").operator("clicks")
    moved: dict[str, Any] = {"a0": 90, "a1": SpecialOffset.LATEST, "b0": 2**63 - 1}
    assert splits_of(after) == [
        split._replace(offset=moved[f"{split.topic}{split.partition}"])
        for split in splits_of(before)
    ]
    assert (after.coordinator_state(), after.parallelism) == (before.coordinator_state(), 2)
    [state] = editor.report().operators[0].states
    assert (state.new_name, state.kept, state.changed) == ("SourceReaderState", 0, 3)


def test_only_what_is_named_is_moved(tmp_path: Path) -> None:
    old = written(tmp_path, KafkaOffsets({("a", 0): 40, ("a", 1): 41}))
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as editor:
        editor.operator("clicks").set_offsets({("a", 1): 7})
    splits = read_savepoint(tmp_path / "new").operator("clicks").source_splits().splits
    assert {split[1:3] for split in splits} == {(0, 40), (1, 7)}


@pytest.mark.parametrize(
    ("offsets", "error", "says"),
    [
        ({}, InvalidValueError, "offsets must be of at least one partition, got none"),
        ({("a", 9): 1}, InvalidValueError, r"such as \('a', 0\), got \('a', 9\)"),
        ({("a", 0): -1}, InvalidValueError, "must be from 0 to"),
        ({("a", 0): 91}, InvalidValueError, "must be at least its offset 91, got 90"),
        ({"a": 1}, InvalidTypeError, "partition in offsets must be a tuple"),
        ({("a", 0): 1, ("a", Index()): 2}, InvalidValueError, "offsets must have .* once"),
        (None, InvalidTypeError, "offsets must be a mapping of partitions"),
    ],
)
def test_offsets_that_are_refused(
    offsets: Any, error: type[KeyGroupsError], says: str, tmp_path: Path
) -> None:
    old = written(tmp_path, KafkaOffsets({("a", 0): 40}, {("a", 0): 90}))
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as editor:
        with pytest.raises(error, match=says):
            editor.operator("clicks").set_offsets(offsets)
        source = editor.operator("clicks")
    with pytest.raises(InvalidValueError, match="clicks cannot be edited any more"):
        source.set_offsets({("a", 0): 41})


B7 = kafka_split("b", 0, 7, 90)


def moved_in(folder: Path, elements: list[bytes], offsets: Any) -> list[bytes]:
    """Move offsets of a source, whose coordinator stays, and return the new elements."""
    old, new = folder / "old", folder / "new"
    kafka = partitions(("a", 0, 0))
    state = coordinator(0, struct.pack(">i", 1) + versioned(2, kafka))
    if elements[0].startswith(sb.i32(1)):
        state = coordinator(2, clusters(sb.utf("h:9092") + b"\0\0", kafkas={"x": kafka}))
    operator = source(old, [elements[:1], elements[1:]], state)
    with SavepointWriter.from_existing_savepoint(old, new) as editor:
        editor.operator(operator.operator_id).set_offsets(offsets)
    [edited] = read_savepoint(new).operators
    assert edited.coordinator_state() == state
    [first, second] = edited.operator_state(["SourceReaderState"])
    return [*first.elements, *second.elements]


def test_offsets_of_several_clusters(tmp_path: Path) -> None:
    """Two clusters have one partition: it is named by cluster, topic and number."""
    elements = [in_cluster("x", A0), in_cluster("y", A0), in_cluster("x", B7)]
    offsets = {("y", "a", 0): 5, ("x", "b", 0): SpecialOffset.EARLIEST}
    assert moved_in(tmp_path, elements, offsets) == [
        elements[0],
        in_cluster("y", kafka_split("a", 0, 5)),
        in_cluster("x", kafka_split("b", 0, -2, 90)),
    ]


def test_offsets_of_sources_in_turn(tmp_path: Path) -> None:
    """Of a HybridSource the files before Kafka stay, and the ids of all splits."""
    file = of_hybrid(0, 1, file_split("1"))
    elements = [of_hybrid(1, 0, A0), file, of_hybrid(1, 0, B7)]
    assert moved_in(tmp_path, elements, {("b", 0): 90}) == [
        *elements[:2],
        of_hybrid(1, 0, kafka_split("b", 0, 90, 90)),
    ]


def test_offsets_of_several_clusters_in_turn(tmp_path: Path) -> None:
    """A KafkaSource and then a DynamicKafkaSource, and some files of version 1 as that has."""
    of_x = struct.pack(">h", 1) + b"x" + struct.pack(">i", 0)
    elements = [
        of_hybrid(0, 1, file_split("1")),
        of_hybrid(1, 0, A0),
        of_hybrid(2, 1, of_x + A0),
    ]
    moved = {("a", 0): 5, ("x", "a", 0): 6}
    assert moved_in(tmp_path, elements, moved) == [
        elements[0],
        of_hybrid(1, 0, kafka_split("a", 0, 5)),
        of_hybrid(2, 1, of_x + kafka_split("a", 0, 6)),
    ]


@pytest.mark.parametrize(
    ("elements", "offsets", "says"),
    [
        ([in_cluster("x", A0)], {("a", 0): 1}, r"such as \('x', 'a', 0\), got \('a', 0\)"),
        ([in_cluster("x", A0)], {("y", "a", 0): 1}, r"got \('y', 'a', 0\)"),
        ([in_cluster("x", A0)], {("x", "a b", 0): 1}, "must be 1 to 249 letters"),
        ([in_cluster("x", A0)], {("x", "a", 0): -1}, "must be from 0 to"),
        ([in_cluster("x", B7)], {("x", "b", 0): 91}, "must be at least its offset 91, got 90"),
        ([of_hybrid(1, 0, A0)], {("x", "a", 0): 1}, r"such as \('a', 0\)"),
        ([of_hybrid(1, 0, B7)], {("b", 0): 91}, "must be at least its offset 91, got 90"),
        (
            [of_hybrid(0, 0, A0), of_hybrid(1, 0, A0)],
            {("a", 0): 1},
            r"one source of .* has, got \('a', 0\), which 2 have",
        ),
    ],
)
def test_offsets_of_others_that_are_refused(
    elements: list[bytes], offsets: Any, says: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidValueError, match=says):
        moved_in(tmp_path, elements, offsets)


def test_a_cluster_is_a_text(tmp_path: Path) -> None:
    with pytest.raises(InvalidTypeError, match="cluster of partition in offsets must be a str"):
        moved_in(tmp_path, [in_cluster("x", A0)], {(1, "a", 0): 1})


@pytest.mark.parametrize("of_several", ["clusters", "sources", "files"])
def test_edits_of_other_sources(of_several: str, tmp_path: Path) -> None:
    elements = {
        "clusters": in_cluster("x", A0),
        "sources": of_hybrid(1, 0, A0),
        "files": versioned(1, file_split("1")),
    }
    old = tmp_path / "old"
    source(old, [[elements[of_several]]])
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as editor:
        [operator] = read_savepoint(old).operators
        edited = editor.operator(operator.operator_id)
        if of_several == "files":
            with pytest.raises(InvalidValueError, match="must be a source of Kafka that reads"):
                edited.set_offsets({("a", 0): 1})
        with pytest.raises(
            InvalidValueError, match="KafkaSource or a FlinkKafkaConsumer that reads"
        ):
            edited.remove_topics(["a"])
        editor.remove_operator(operator.operator_id)
        editor.add_source("b", KafkaOffsets({("a", 0): 1}), 128, parallelism=1)


def of_enumerator(version: int, topics: str) -> bytes:
    """Return the enumerator's state of a version with a partition of each topic."""
    entries = []
    for topic in topics:
        name = sb.utf(topic) + struct.pack(">i", 0)
        if version == 3:
            name = framed(kafka_split(topic, 0, 5))
        entries.append(name + (b"" if version == 1 else struct.pack(">i", 0)))
    head = struct.pack(">i", len(topics)) + (struct.pack(">i", 0) if version == 3 else b"")
    return head + b"".join(entries) + (b"" if version == 1 else b"\1")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_topics_are_removed(version: int, tmp_path: Path) -> None:
    """The readers and the coordinator know the others alone, whose bytes stay."""
    elements = [
        [versioned(0, kafka_split(topic, 0, 5)) for topic in item] for item in ("ab", "cd")
    ]
    state = coordinator(version, of_enumerator(version, "abcd"))
    [operator_id] = {source(tmp_path / "old", elements, state).operator_id}
    with SavepointWriter.from_existing_savepoint(tmp_path / "old", tmp_path / "new") as editor:
        edited = editor.operator(operator_id)
        edited.remove_topics(["b"])
        edited.set_offsets({("a", 0): 7})
        edited.remove_topics(["d", "c"])
        with pytest.raises(InvalidValueError, match="and not all, got"):
            edited.remove_topics(["a"])
    [new] = read_savepoint(tmp_path / "new").operators
    assert new.coordinator_state() == coordinator(version, of_enumerator(version, "a"))
    assert splits_of(new) == [KafkaSplit("a", 0, 7, None, 0, True)]
    [counts] = editor.report().operators[0].states
    assert (counts.changed, counts.deleted) == (1, 3)


@pytest.mark.parametrize(
    ("topics", "error", "says"),
    [
        (["b"], InvalidValueError, "which reads a, c, each once, got 'b'"),
        (["a", "a"], InvalidValueError, "each once, got 'a'"),
        ([], InvalidValueError, r"some of those of .*, and not all, got \[\]"),
        (["a", "c"], InvalidValueError, r"some of those of .*, and not all, got \['a', 'c'\]"),
        ("a", InvalidTypeError, "topics must be"),
        ([5], InvalidTypeError, "topic must be a str, got 5"),
    ],
)
def test_topics_that_are_refused(
    topics: Any, error: type[KeyGroupsError], says: str, tmp_path: Path
) -> None:
    old = written(tmp_path, KafkaOffsets({("a", 0): 40, ("c", 1): 5}))
    with (
        SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as editor,
        pytest.raises(error, match=says),
    ):
        editor.operator("clicks").remove_topics(topics)


def test_topics_that_an_older_coordinator_knows(tmp_path: Path) -> None:
    """Version 0, of connectors before 1.14, has the splits of each subtask."""
    splits = [kafka_split(topic, 0, 5) for topic in "ab"]
    state = struct.pack(">iiii", 1, 0, 0, 2) + b"".join(map(framed, splits))
    elements = [[versioned(0, split) for split in splits]]
    operator = source(tmp_path / "old", elements, coordinator(0, state))
    with (
        SavepointWriter.from_existing_savepoint(tmp_path / "old", tmp_path / "new") as editor,
        pytest.raises(SavepointError, match="an enumerator that is edited 0 is not known"),
    ):
        editor.operator(operator.operator_id).remove_topics(["a"])


def test_topics_without_a_coordinator(tmp_path: Path) -> None:
    splits = [versioned(0, kafka_split(topic, 0, 5)) for topic in "ab"]
    operator = source(tmp_path / "old", [splits])
    with SavepointWriter.from_existing_savepoint(tmp_path / "old", tmp_path / "new") as editor:
        editor.operator(operator.operator_id).remove_topics(["a"])
    [new] = read_savepoint(tmp_path / "new").operators
    assert [split.topic for split in splits_of(new)] == ["b"]
    assert new.coordinator_state() is None


# --- sources of several -------------------------------------------------------------------------


def test_several_clusters(tmp_path: Path) -> None:
    """One partition of each of two, and one that no reader has; a lag is of one cluster."""
    elements = [[in_cluster("x", A0)], [in_cluster("y", kafka_split("a", 0, 7))]]
    kafkas = {"x": partitions(("a", 0, 0)), "y": partitions(("b", 3, 1), is_finished=False)}
    java = struct.pack(">?i", True, 3) + b"\xac\xed\0"
    expected = (
        READ_A0._replace(cluster="x"),
        KafkaSplit("a", 0, 7, subtask=1, cluster="y"),
        KafkaSplit("b", 3, cluster="y"),
    )
    for version, rest in ((1, b""), (2, b"\0\0"), (2, java + b"\0"), (2, b"\0" + java)):
        state = clusters(sb.utf("h:9092") + rest, kafkas=kafkas)
        operator = source(tmp_path / "savepoint", elements, coordinator(version, state))
        found = operator.source_splits()
        assert found.splits == expected
        assert found.initial_discovery_finished is False
    lags = [split.lag for split in splits_of(operator, {("b", 3): 9})]
    assert lags == [None, None, None]
    with pytest.raises(InvalidValueError, match=r"got \('a', 0\), which 'x' and 'y' have"):
        operator.source_splits({("a", 0): 9})


@pytest.mark.parametrize(
    "state",
    [
        (3, clusters(sb.utf("h:1"), kafkas={"x": partitions(("a", 0, 0))})),
        (1, clusters(sb.utf("h:1"), kafkas={"x": partitions(("a", 0, 0))}) + b"\0"),
        (1, clusters(sb.utf("h:1"), kafkas={"x": partitions(("a", 0, 0))}, version=4)),
        (2, clusters(sb.utf("h:1") + b"\2\0", kafkas={"x": partitions(("a", 0, 0))})),
    ],
)
def test_clusters_that_are_not_known(state: tuple[int, bytes], tmp_path: Path) -> None:
    operator = source(tmp_path / "savepoint", [[in_cluster("x", A0)]], coordinator(*state))
    [split] = operator.source_splits().splits
    assert isinstance(split, UnknownSplit)


def test_files_and_then_kafka(tmp_path: Path) -> None:
    """While one reader still has a file, which is of source 0, the enumerator may be Kafka's."""
    elements = [
        [of_hybrid(1, 0, A0)],
        [of_hybrid(0, 1, file_split("0000000001")), of_hybrid(1, 0, A1)],
    ]
    state = struct.pack(">i", 1) + versioned(2, partitions(("a", 0, 0), ("b", 0, 1)))
    found = source(tmp_path / "1", elements, coordinator(0, state)).source_splits()
    assert found.splits == (
        file_of(subtask=1),
        READ_A0,
        READ_A1._replace(is_assigned=False),
        KafkaSplit("b", 0),
    )
    assert found.source_indexes == (0, 1, 1, 1)
    assert (found.enumerator, found.enumerator_version) == (state, 0)
    assert found.initial_discovery_finished is True
    found = source(tmp_path / "2", elements).source_splits()  # It has no coordinator.
    assert found.source_indexes == (0, 1, 1)
    # Bytes of a source that is not known stay bytes beside one that is.
    elements = [[of_hybrid(1, 0, A0), of_hybrid(2, 7, b"?")]]
    found = source(tmp_path / "3", elements).source_splits()
    assert found.splits == (READ_A0._replace(is_assigned=False), UnknownSplit(0, 7, b"?"))
    assert found.initial_discovery_finished is None


@pytest.mark.parametrize(
    ("element", "state"),
    [
        (of_hybrid(0, 7, b"?"), None),
        (
            of_hybrid(1, 0, A0),
            (1, struct.pack(">i", 1) + versioned(2, partitions(("a", 0, 0)))),  # version 1
        ),
        (of_hybrid(0, 0, A0) + b"", (1, struct.pack(">i", 0) + versioned(2, b""))),
        (versioned(0, struct.pack(">i", 0) + sb.utf("id") + versioned(0, A0) + b"\0"), None),
        (versioned(1, struct.pack(">i", 0) + sb.utf("id") + versioned(0, A0)), None),
    ],
)
def test_what_is_no_hybrid_source(
    element: bytes, state: tuple[int, bytes] | None, tmp_path: Path
) -> None:
    operator = source(tmp_path / "1", [[element]], state and coordinator(*state))
    found = operator.source_splits()
    assert found.splits == (UnknownSplit(0, int.from_bytes(element[:4], "big"), element[8:]),)
    assert found.source_indexes == ()


# --- other sources, and what is none ------------------------------------------------------------


def test_a_source_of_flink() -> None:
    """A NumberSequenceSource that Flink 2.3.0 wrote, whose enumerator has no split left."""
    (found,) = (
        operator.source_splits()
        for operator in point("2.3.0-pyflink-canonical").read().operators
        if any(entry.state == "SourceReaderState" for entry in operator.operator_state())
    )
    second, first = sb.utf("2"), sb.utf("1")
    assert found == SourceSplits(
        (
            UnknownSplit(0, 1, second + struct.pack(">qq", 500_001_002, 1_000_000_000)),
            UnknownSplit(1, 1, first + struct.pack(">qq", 1001, 500_000_000)),
        ),
        bytes(4),
        1,
    )


def test_an_operator_without_a_source() -> None:
    operator = point("2.3.0-heap-canonical").read().operator("offsets")
    with pytest.raises(InvalidValueError, match="'offsets' must be a source, got one"):
        operator.source_splits()
    assert operator.coordinator_state() is None


@pytest.mark.parametrize(
    ("element", "state", "says"),
    [
        (b"\0\0\0", None, "a split of subtask 0, offset 0: 4 bytes were to follow"),
        (versioned(0, A0) + b"\0", None, "a split of subtask 0, offset 31: 1 bytes are left"),
        (struct.pack(">ii", 0, 99) + A0, None, "a split of subtask 0, offset 8: 99 bytes were"),
        (versioned(0, A0), b"\0\0\0\2", "its coordinator, offset 4: version of a coordinator 2"),
        (versioned(0, A0), coordinator(2, b"")[:-1], "its coordinator, offset 8: 4 bytes were"),
        (versioned(0, A0), coordinator(2, b"") + b"\0", "its coordinator, offset 12: 1 bytes"),
    ],
)
def test_damaged_frames(element: bytes, state: bytes | None, says: str, tmp_path: Path) -> None:
    operator = source(tmp_path / "savepoint", [[element]], state)
    with pytest.raises(SavepointError, match=says):
        operator.source_splits()


def test_splits_are_bytes(tmp_path: Path) -> None:
    operator = source(tmp_path / "savepoint", [[bytes(8)]], snapshot=sb.simple("Long"))
    with pytest.raises(SavepointError, match="a split of subtask 0 is no bytes, but 0"):
        operator.source_splits()


def test_random_bytes_are_read_or_refused(tmp_path: Path) -> None:
    """Whatever is changed in them: a source that is not known, another split, or an error."""
    choose = random.Random(11)
    elements = [versioned(0, A0), versioned(1, file_split("1", hosts=["n"], position=(1, 2)))]
    states = [coordinator(3, NEWEST), coordinator(1, pending([GOOD], [b"file:/a"]))]
    kinds: set[type] = set()
    for number in range(150):
        element, state = (bytearray(choose.choice(passed)) for passed in (elements, states))
        for data in (element, state):
            for _ in range(choose.randrange(3)):
                data[choose.randrange(len(data))] = choose.choice((0, 1, 0x7F, 0x80, 0xFF))
        operator = source(tmp_path / str(number), [[bytes(element)]], bytes(state))
        try:
            kinds.update(type(split) for split in operator.source_splits().splits)
        except SavepointError:
            kinds.add(SavepointError)
    assert kinds == {KafkaSplit, FileSplit, UnknownSplit, SavepointError}


# --- the older consumers -------------------------------------------------------------------------


def test_kafka_consumer(tmp_path: Path) -> None:
    """It has the last record that was read, or one of KafkaTopicPartitionStateSentinel."""
    special = (-915623761776, -915623761775, -915623761774, -915623761773)
    numbers = (4711, -1, *special)
    elements = [kafka_element("clicks", place, number) for place, number in enumerate(numbers)]
    operator = consumer(tmp_path / "a", KAFKA, OF_KAFKA, elements)
    splits: Any = operator.source_splits().splits
    read = {split.partition: split for split in splits}
    assert read == {
        place: KafkaSplit("clicks", place, offset, None, place % 2, is_assigned=True)
        for place, offset in enumerate(
            (4712, 0, None, EARLIEST, SpecialOffset.LATEST, SpecialOffset.COMMITTED)
        )
    }
    splits = operator.source_splits({("clicks", 0): 5000}).splits
    assert [split.lag for split in splits if split.partition == 0] == [288]
    (entry, _) = operator.operator_state([KAFKA])
    assert entry.elements[0] == (
        Pojo(PARTITION, {"cachedHash": -2, "partition": 0, "topic": "clicks"}),
        4711,
    )
    assert {state.state for state in operator.operator_state(["_default_"])} == {"_default_"}
    assert len([*operator.operator_state()]) == 4
    with pytest.raises(
        InvalidValueError, match=r"states must be of .*, which has _default_, topic"
    ):
        operator.operator_state(["other"])


@pytest.mark.parametrize(
    "element",
    [
        kafka_element("clicks", 0, -2),
        by_kryo(PARTITION, b"\0", b"\1", kryo_text("clicks")) + bytes(8),
        by_kryo(PARTITION, b"\0", b"\0", b"\0") + bytes(8),
        b"\0" + bytes(8),
    ],
)
def test_no_partition_of_kafka_consumer(element: bytes, tmp_path: Path) -> None:
    operator = consumer(tmp_path, KAFKA, OF_KAFKA, [element])
    with pytest.raises(SavepointError, match=r"operator .*: an element of subtask 0 is no partit"):
        operator.source_splits()


def test_what_only_the_job_reads_of_a_consumer(tmp_path: Path) -> None:
    """Where the job has its own serializer of the class, an element is bytes, the others too."""
    own: dict[str, bytes | None] = {PARTITION: sb.utf(PARTITION) + sb.i32(7)}
    empty = sb.optional_map({})
    snapshot = sb.snapshot(
        f"{sb.JAVA}kryo.KryoSerializerSnapshot",
        2,
        sb.utf(PARTITION) + empty + sb.optional_map(own) + empty,
    )
    element = kafka_element("clicks", 0, 5)
    operator = consumer(tmp_path, KAFKA, sb.tuple_of(snapshot, sb.simple("Long")), [element])
    assert operator.source_splits().splits == (UnknownSplit(0, -1, element),)


def test_offsets_and_topics_of_a_consumer(tmp_path: Path) -> None:
    """It has the offset of the last record that was read, -1 before the first."""
    elements = [kafka_element(topic, number, 40) for topic in ("aa", "bb") for number in range(3)]
    old = consumer(tmp_path / "old", KAFKA, OF_KAFKA, elements)
    with SavepointWriter.from_existing_savepoint(tmp_path / "old", tmp_path / "new") as editor:
        edited = editor.operator(old.operator_id)
        edited.set_offsets({("aa", 0): 7, ("aa", 1): EARLIEST, ("aa", 2): 0, ("bb", 1): 9})
        edited.remove_topics(["bb"])
    [new] = read_savepoint(tmp_path / "new").operators
    assert {(split.topic, split.partition, split.offset) for split in splits_of(new)} == {
        *(("aa", 0, 7), ("aa", 1, EARLIEST), ("aa", 2, 0)),
    }
    stored = [element[1] for entry in new.operator_state([KAFKA]) for element in entry.elements]
    assert sorted(stored) == [-915_623_761_775, -1, 6]
    [state] = editor.report().operators[0].states
    assert (state.changed, state.deleted, state.kept) == (3, 3, 0)


def test_kinesis_consumer_of_flink_1_7(tmp_path: Path) -> None:
    """Its header has serializers as Java objects: the hash that the element keeps says it is one.

    The hash of the number and of -1 is that of Flink's own dump, Kinesis' consumer of 1.7.
    """
    legacy = sb.snapshot(
        "org.apache.flink.api.java.typeutils.runtime.TupleSerializerConfigSnapshot",
        0x7A53C4F0,
        sb.i32(1) + framed(b"\xac\xed\0\5p") + sb.i32(1),
    )
    code = varint(2 * 2_124_509_527 - 1)

    def element(code: bytes, text: bytes = kryo_text("987654321"), end: bytes = b"\1") -> bytes:
        shard = b"\2" + b"\1" * 4 + b"\0\3s0" + b"\1\1" + b"\0\5fake"
        return shard + b"\x57\1" + code + text + end

    name = "Kinesis-Stream-Shard-State"
    operator = consumer(tmp_path / "a", name, legacy, [element(code)])
    assert operator.source_splits().splits == (KinesisSplit("fake", "s0", "987654321", -1, 0),)
    others = [
        *(element(b"\5"), element(code, kryo_text("987654322")), element(code, b"\0")),
        *(element(code, end=b"\3"), element(code)[:-1], element(code) + b"\0", b"", b"\1"),
        element(code)[:29] + b"\2" + element(code)[30:],
    ]
    for number, data in enumerate(others):
        operator = consumer(tmp_path / f"{number}", name, legacy, [data])
        assert operator.source_splits().splits == (UnknownSplit(0, -1, data),)


def test_kinesis_consumer(tmp_path: Path) -> None:
    text = sb.simple("String")
    shard = sb.pojo_of(SHARD, {"shardId": text, "streamName": text})
    name = "Kinesis-Stream-Shard-State"

    def element(shard_id: bytes, sub_number: bytes = b"\1") -> bytes:
        number = by_kryo(NUMBER, b"\0", kryo_text("987654321"), sub_number)
        return b"\2\0" + shard_id + b"\0" + b"\5fake" + number

    snapshot = sb.tuple_of(shard, sb.kryo_of(NUMBER))
    operator = consumer(
        tmp_path / "a", name, snapshot, [element(b"\3s0"), element(b"\3s1", b"\4")]
    )
    assert operator.source_splits().splits == (
        KinesisSplit("fake", "s0", "987654321", -1, 0),
        KinesisSplit("fake", "s1", "987654321", 2, 1),
    )
    with pytest.raises(InvalidValueError, match="do not count the records between them"):
        operator.source_splits({("a", 0): 5})
    for number, bad in enumerate((element(b"\0"), b"\1" + b"\0", b"\2\1\1" + b"\0")):
        operator = consumer(tmp_path / f"{number}", name, snapshot, [bad])
        with pytest.raises(SavepointError, match="an element of subtask 0 is no shard"):
            operator.source_splits()
