"""The enumerators of sources and the committables of sinks that other connectors wrote.

What Iceberg 1.10.2 and flink-cdc's main branch (3.7-SNAPSHOT) make is in
`tests/vectors/connector_states.json`: their own serializers wrote it, those of flink-cdc with
names of tables and schemas of their own in place of Debezium's. The rest is put together as the
public source of the connectors has it.
"""

from __future__ import annotations

import json
import random
import struct
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.connector_bytes import (
    COMMITTABLES,
    ENUMERATORS,
    JOB,
    MANIFEST,
    PAIMON,
    REAL,
    TOPIC,
    YES,
    EnumeratorCase,
    as_json,
    i32,
    i64,
    paimon_row,
    texts,
)
from support.bytes.source_bytes import (
    coordinator,
    file_split,
    framed,
    of_hybrid,
    pending,
    source,
    versioned,
)
from support.inside.savepoints import (
    connector_committables,
    connector_layouts,
    has_same_content,
    split_layouts,
    splits_section,
)
from support.inside.serializers import Cursor

from keygroups import InvalidTypeError, InvalidValueError
from keygroups.cli import main
from keygroups.errors import SavepointError
from keygroups.savepoint import (
    Committable,
    ConnectorCommittable,
    ConnectorSplit,
    SinkState,
    SourceSplits,
    SplitLayout,
    UnknownCommittable,
    UnknownSplit,
    html_report,
    operator_reports,
    read_savepoint,
)
from keygroups.state_keys import BYTES

ICEBERG_STATE = "iceberg-files-committer-state"
READERS = connector_committables.READERS
read_connector_committable = connector_committables.read_connector_committable
read_manifests = connector_committables.read_manifests
read_paimon = connector_committables.read_paimon
enumerator_of, split_of = split_layouts.enumerator_of, split_layouts.split_of
LAYOUTS = connector_layouts.LAYOUTS
SECONDS, FLOOR, TIMES = 2.0, 1 << 20, 100
LAYOUT_OF = {layout.source: layout for layout in LAYOUTS}


def enumerator_in(folder: Path, version: int, data: bytes) -> SourceSplits:
    return source(folder, [[]], coordinator(version, data)).source_splits()


# --- enumerators --------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ENUMERATORS, ids=lambda case: f"{case[0]}-{case[1]}")
def test_enumerators(case: EnumeratorCase, tmp_path: Path) -> None:
    name, version, data, fields, names = case
    layout = LAYOUT_OF[name]
    read, splits = enumerator_of(layout, (version, data), "file")
    assert read == fields
    assert [split.name for split in splits] == names
    assert all((split.source, split.subtask) == (name, None) for split in splits)
    for damaged in (data[:-1], data + b"\0"):
        with pytest.raises(SavepointError):
            enumerator_of(layout, (version, damaged), "file")
    with pytest.raises(SavepointError, match=f"version of an enumerator of {name} 99 is not"):
        enumerator_of(layout, (99, data), "file")
    found = enumerator_in(tmp_path, version, data)
    assert found.enumerator == data
    if found.enumerator_fields is not None:  # It is, unless several layouts read it.
        assert found.enumerator_fields == fields
        assert [split.name for split in found.splits if isinstance(split, ConnectorSplit)] == names


def test_each_layout_has_a_case_of_its_enumerator() -> None:
    for layout in LAYOUTS:
        versions = {case[1] for case in ENUMERATORS if case[0] == layout.source}
        assert versions == {*layout.enumerator_versions}


def test_a_source_with_splits_of_both(tmp_path: Path) -> None:
    """Those of its readers are first; another version of an enumerator stays bytes."""
    kinesis = next(case for case in ENUMERATORS if case[:2] == ("Kinesis", 1))
    shard = texts("arn:aws:kinesis:eu-1:1:stream/clicks", "shard-9", "LATEST") + b"\0"
    element = versioned(0, shard)
    found = source(tmp_path / "1", [[element]], coordinator(1, kinesis[2])).source_splits()
    assert [(split.subtask, getattr(split, "name", "")[-7:]) for split in found.splits] == [
        (0, "shard-9"),
        (None, "shard-1"),
    ]
    assert found.enumerator_fields == kinesis[3]
    found = source(tmp_path / "2", [[element]], coordinator(9, kinesis[2])).source_splits()
    assert [split.subtask for split in found.splits] == [0]
    assert (found.enumerator_fields, found.enumerator_version) == (None, 9)
    inside = i32(0) + versioned(1, kinesis[2])
    hybrid = source(tmp_path / "3", [[of_hybrid(0, 0, shard)]], coordinator(0, inside))
    assert hybrid.source_splits().enumerator_fields == kinesis[3]


@pytest.mark.parametrize(
    ("name", "version", "place", "known"),
    [("Kinesis", 1, -4, [0, 1]), ("DynamoDB Streams", 0, -12, [0, 1, 2])],
)
def test_statuses_of_shards(name: str, version: int, place: int, known: list[int]) -> None:
    """Kinesis' shards are assigned or not, those of DynamoDB finished too; there is no other.

    Kinesis' sources: SplitAssignmentStatus.
    """
    data = next(case[2] for case in ENUMERATORS if case[:2] == (name, version))
    for status in range(-1, 4):
        other = data[:place] + i32(status) + data[len(data) + place + 4 :]
        if status in known:
            enumerator_of(LAYOUT_OF[name], (version, other), "file")
        else:
            with pytest.raises(SavepointError, match=f"status of a shard {status} is not known"):
                enumerator_of(LAYOUT_OF[name], (version, other), "file")


def test_a_state_of_mysql_that_no_version_wrote() -> None:
    """Version 3 of 2.1.0 and of 2.2.0 are tried, and neither reads what is one byte longer."""
    data = next(case[2] for case in ENUMERATORS if case[:2] == ("MySQL CDC", 3))
    for damaged in (data + b"\0", data[:-1]):
        with pytest.raises(SavepointError, match="no enumerator of MySQL CDC"):
            enumerator_of(LAYOUT_OF["MySQL CDC"], (3, damaged), "file")


def test_a_source_of_which_nothing_is_known(tmp_path: Path) -> None:
    for version, data in ((1, b""), (0, i32(0, 0, 0)), (7, b"?")):
        found = enumerator_in(tmp_path / str(version), version, data)
        assert (found.splits, found.enumerator_fields) == ((), None)


def test_chunks_that_two_layouts_read_alike(tmp_path: Path) -> None:
    """A chunk of version 3 without a place of its end has the same bytes in both."""
    chunk = i32(1) + texts("a", "a:0", "ROW<`id` INT>", "aced000570", "aced000570")
    [split] = (
        source(tmp_path / "1", [[versioned(3, chunk + b"\0" + i32(0))]]).source_splits().splits
    )
    assert isinstance(split, ConnectorSplit)
    assert split.source == "MySQL CDC or CDC"
    of_mysql = chunk + YES + as_json({"file": "b.1", "pos": "4"}) + i32(0)
    [split] = source(tmp_path / "2", [[versioned(3, of_mysql)]]).source_splits().splits
    assert isinstance(split, ConnectorSplit)
    assert split.source == "MySQL CDC"


@pytest.mark.parametrize(
    ("name", "version", "data"),
    [
        ("Kinesis", 1, b"\0" + i32(1, 9) + framed(b"") + i32(0)),
        ("Kinesis", 1, b"\0" + i32(0, 2) + b"\0"),
        ("MySQL CDC", 5, i32(9, 2) + YES),
        ("MySQL CDC", 5, i32(4, 7) + YES),
        ("MySQL CDC", 3, i32(4, 1) + i32(0, 0, 0, 0) + i32(7) + i32(0) + b"\0"),
        (
            "MySQL CDC",
            4,
            i32(4, 1) + i32(0, 0, 0, 0, 0, 0) + b"\0" + i32(1) + texts("a") + framed(b"\xff"),
        ),
        ("Iceberg", 1, b"\0" + i32(3, 1) + framed(b"") + texts("LOST")),
        ("Iceberg", 1, YES + i32(2) + framed(b"\0\0") + i32(3, 0)),
        ("Paimon", 1, i32(0) + i64(-2)),
        ("MongoDB", 0, i32(0, 0, 0, 0) + b"\2"),
    ],
)
def test_damaged_enumerators(name: str, version: int, data: bytes) -> None:
    with pytest.raises(SavepointError):
        enumerator_of(LAYOUT_OF[name], (version, data), "file")


def read_queues(version: int, cursor: Any) -> dict[str, Any]:
    count = cursor.i32()
    return {"count": count, "splits": [(1, cursor.take(cursor.left))] * count}


def read_queue(version: int, cursor: Any) -> dict[str, Any]:
    return {"queue": cursor.utf()}


QUEUES = SplitLayout("queues", (1,), read_queue, ("queue",), (), (2,), read_queues)


def test_an_enumerator_of_ones_own(tmp_path: Path) -> None:
    state = coordinator(2, i32(1) + texts("b"))
    operator_id = source(tmp_path, [[versioned(1, texts("a"))]], state).operator_id
    savepoint = read_savepoint(tmp_path, splits={operator_id: QUEUES})
    found = savepoint.operator(operator_id).source_splits()
    assert [(split.subtask, getattr(split, "name", "")) for split in found.splits] == [
        (0, "a"),
        (None, "b"),
    ]
    assert found.enumerator_fields == {"count": 1}
    bad = SplitLayout("q", (1,), read_queue, ("queue",), (), (2,), lambda *_: {"splits": [5]})
    with pytest.raises(
        InvalidTypeError, match="splits must be pairs of a version and bytes, got 5"
    ):
        enumerator_of(bad, (2, b""), "file")
    with pytest.raises(InvalidValueError, match=r"enumerator_versions must be those .*got \(\)"):
        SplitLayout("q", (1,), read_queue, read_enumerator=read_queues)
    with pytest.raises(InvalidTypeError, match="read_enumerator must be callable, got 5"):
        SplitLayout("q", (1,), read_queue, enumerator_versions=(1,), read_enumerator=5)  # type: ignore[arg-type]  # It is refused.


MONGO = i32(1) + texts("i", "d", "c")


@pytest.mark.parametrize(
    "text",
    ["NaN", "1e999", "-1e999", "[" * 51 + "]" * 51, '{"a":' * 51 + "1" + "}" * 51],
    ids=["no number", "no double", "no double below", "deep lists", "deep objects"],
)
def test_json_that_no_report_could_show(text: str) -> None:
    """What JSON does not have, and what nests deeper than is read, is no split."""
    data = MONGO + texts('{"a": ' + text + "}", "{}", "{}") + i32(0)
    with pytest.raises(SavepointError):
        split_of(LAYOUT_OF["MongoDB"], 0, data, 0, "file")
    data = MONGO + texts('{"a": [1.5, {"b": 2}]}', "{}", "{}") + i32(0)
    split = split_of(LAYOUT_OF["MongoDB"], 0, data, 0, "file")
    assert split.fields["min"] == {"a": [1.5, {"b": 2}]}


@pytest.mark.parametrize("opened", ["[", '{"a":'])
def test_json_that_is_as_deep_as_is_read(opened: str) -> None:
    """Fifty values within the object of a text are read, and one more is not."""
    closed = "]" if opened == "[" else "}"
    for depth in (49, 50, 51):
        text = opened * (depth - 1) + opened[0] + closed * depth
        data = MONGO + texts('{"a": ' + text + "}", "{}", "{}") + i32(0)
        if depth <= 50:
            assert split_of(LAYOUT_OF["MongoDB"], 0, data, 0, "file").fields["min"].keys() == {"a"}
        else:
            with pytest.raises(SavepointError, match="nests more than 50 deep"):
                split_of(LAYOUT_OF["MongoDB"], 0, data, 0, "file")


def test_a_serialized_split_of_another_class() -> None:
    """Each class and field of Iceberg's that a split has is looked at."""
    data = REAL["Iceberg split 1"]
    iceberg = LAYOUT_OF["Iceberg"]
    for name, other in (
        (b"IcebergSourceSplit", b"IcebergSourceSplut"),
        (b"BaseFileScanTask", b"BaseFileScanTusk"),
        (b"GenericDataFile", b"GenericDatuFile"),
        (b"fileOffset", b"fileOffsut"),
        (b"filePath", b"filePuth"),
    ):
        assert name in data
        with pytest.raises(SavepointError):
            split_of(iceberg, 1, data.replace(name, other), 0, "file")


# --- comparisons and reports --------------------------------------------------------------------


def compared(folder: Path, *states: bytes, splits: tuple[bytes, bytes] | None = None) -> Any:
    """Return the comparison of a source with two states of its coordinator, or two splits."""
    folder.mkdir(exist_ok=True)
    for number in range(2):
        elements = [] if splits is None else [splits[number]]
        source(folder / str(number), [elements], states[number] if states else None)
    [comparison] = read_savepoint(folder / "0").compare(read_savepoint(folder / "1")).operators
    return comparison


SHARDS = [
    texts("arn:aws:kinesis:eu-1:1:stream/clicks", f"shard-{number}", "LATEST") + b"\0"
    for number in range(3)
]


def kinesis_state(last: str, *shards: tuple[bytes, int]) -> bytes:
    known = b"".join(framed(shard) + i32(status) for shard, status in shards)
    return coordinator(1, YES + texts(last) + i32(len(shards), 0) + known)


def test_what_is_a_set_is_compared_as_one(tmp_path: Path) -> None:
    """Kinesis, Pulsar and the rest keep theirs in hash maps, whose order says nothing."""
    a, b, c = SHARDS
    first = kinesis_state("x", (a, 0), (b, 1))
    assert not compared(tmp_path / "1", first, kinesis_state("x", (b, 1), (a, 0))).has_differences
    new = kinesis_state("y", (a, 0), (b, 0), (c, 1))
    comparison = compared(tmp_path / "2", first, new)
    assert comparison.coordinator == "changed"
    assert [change.name for change in comparison.changes] == [
        "enumerator last_seen_shard",
        "enumerator assigned_splits",
    ]
    assert [(split.kind, str(split)) for split in comparison.splits] == [
        (
            "only_here",
            "split arn:aws:kinesis:eu-1:1:stream/clicks, shard-1: position 'LATEST' -> none",
        ),
        (
            "only_there",
            "split arn:aws:kinesis:eu-1:1:stream/clicks, shard-2: none -> position 'LATEST'",
        ),
    ]


def test_a_split_that_moved_on(tmp_path: Path) -> None:
    at = (
        texts("arn:aws:kinesis:eu-1:1:stream/clicks", "s", "AFTER_SEQUENCE_NUMBER")
        + YES
        + b"\0"
        + YES
    )
    old, new = (versioned(0, at + texts(marker)) for marker in ("49", "50"))
    [difference] = compared(tmp_path / "1", splits=(old, new)).splits
    assert str(difference).endswith("s: marker '49' -> '50'")


def test_orders_of_files_and_of_sources_in_a_hybrid(tmp_path: Path) -> None:
    splits = [file_split("1"), file_split("2")]
    files = [pending(splits, [b"x", b"y"]), pending(splits, [b"y", b"x"])]
    states = [coordinator(1, data) for data in files]
    assert not compared(tmp_path / "1", *states).has_differences
    assert not compared(tmp_path / "2", *map(in_hybrid, files)).has_differences
    unknown = (b"ab", b"ba")
    states = [coordinator(1, data) for data in unknown]
    assert compared(tmp_path / "3", *states).coordinator == "changed"
    assert compared(tmp_path / "4", *map(in_hybrid, unknown)).coordinator == "changed"


def test_states_that_are_of_no_coordinator() -> None:
    assert not has_same_content(b"ab", b"ba")


def in_hybrid(data: bytes) -> bytes:
    return coordinator(0, i32(1) + versioned(1, data))


def test_reports_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, (name, version, data, fields, _) in enumerate(ENUMERATORS):
        folder = tmp_path / str(number)
        found = enumerator_in(folder, version, data)
        savepoint = read_savepoint(folder)
        texts_of = [*map(str, operator_reports(savepoint)), html_report(savepoint)]
        if found.enumerator_fields:
            assert all("its enumerator: " in text for text in texts_of), name
        assert main(["savepoint", str(folder), "--quiet", "--json"]) == 0
        [report] = json.loads(capsys.readouterr().out)["reports"]
        if found.enumerator_fields is None:
            assert report["enumerator"] is None
        else:
            assert {*report["enumerator"]} == {*fields}


# --- lag ----------------------------------------------------------------------------------------


def pulsar_split(topic: bytes, message: bytes | None) -> bytes:
    data = topic + i32(1, 0, 65_535) + framed(b"\xac\xed\0\5p")
    return versioned(2, data + (b"\0" if message is None else YES + framed(message)) + b"\0")


def test_entries_behind_in_pulsar(tmp_path: Path) -> None:
    """Ledger 300, entry 7: two entries behind the last, 9."""
    a, b = "persistent://a/b/c", "persistent://a/b/d"
    elements = [
        pulsar_split(TOPIC, b"\x08\xac\x02\x10\x07"),
        pulsar_split(texts(b) + i32(-1), None),
    ]
    operator = source(tmp_path, [elements])
    found = operator.source_splits({(a, 3): (300, 9), (b, -1): (5, 5), ("x", 0): (1, 1)})
    assert [getattr(split, "lag", 0) for split in found.splits] == [2, None]
    assert [getattr(split, "lag", 0) for split in operator.source_splits({}).splits] == [None] * 2
    with pytest.raises(InvalidValueError, match=r"in the ledger 300, .* got ledger 301"):
        operator.source_splits({(a, 3): (301, 0)})
    wrong: list[tuple[Any, type[Exception], str]] = [
        ({(a, 3): 5}, InvalidTypeError, "must map a topic and a number to the ledger and"),
        ({(a, 3): (5, -2)}, InvalidValueError, "entry in the end of .* must be from -1"),
        ({(a, 3): (-1, 5)}, InvalidValueError, "ledger in the end of .* must be"),
        ({(a, -2): (1, 5)}, InvalidValueError, "number of .* in ends must be"),
        ([1], InvalidTypeError, "ends must be a mapping of partitions"),
    ]
    for ends, error, message in wrong:
        with pytest.raises(error, match=message):
            operator.source_splits(ends)


@pytest.mark.parametrize(
    "message",
    [
        b"",  # Pulsar: MessageIdData requires ledgerId and entryId
        b"\x08\xac\x02",
        b"\x10\x07",
        b"\x08" + b"\xff" * 9 + b"\2\x10\x07",  # 65 bits
    ],
)
def test_what_is_no_message_of_pulsar(tmp_path: Path, message: bytes) -> None:
    [split] = source(tmp_path, [[pulsar_split(TOPIC, message)]]).source_splits().splits
    assert type(split) is UnknownSplit


def test_splits_of_one_partition_that_two_subtasks_swap(tmp_path: Path) -> None:
    """A key-shared subscription of Pulsar has a partition several times, each with its ranges."""
    rest = framed(b"\xac\xed\0\5p") + b"\0\0"
    own, other = (versioned(2, TOPIC + i32(1, *ends) + rest) for ends in ((0, 9), (10, 65_535)))
    for number, elements in enumerate([[[own], [other]], [[other], [own]], [[other], []]]):
        source(tmp_path / str(number), elements)
    points = [read_savepoint(tmp_path / str(number)) for number in range(3)]
    assert points[0].compare(points[1]).operators[0].splits == ()
    [missing] = points[1].compare(points[2]).operators[0].splits
    assert missing.kind == "only_here"


def test_ends_of_a_source_without_splits(tmp_path: Path) -> None:
    """It may be one of Kafka or of Pulsar: ends of both have no lag there."""
    operator = source(tmp_path, [[]])
    for ends in ({("persistent://a/b/c", 3): (300, 9)}, {("clicks", 0): 5}):
        assert operator.source_splits(ends).splits == ()
    with pytest.raises(InvalidTypeError, match="ends must be a mapping of partitions"):
        operator.source_splits([1])  # type: ignore[arg-type]


def test_a_layout_of_ones_own_with_the_name_of_pulsar(tmp_path: Path) -> None:
    layout = SplitLayout("Pulsar", (9,), lambda _, cursor: {"queue": cursor.utf()}, ("queue",))
    for number, queue in enumerate("ab"):
        source(tmp_path / str(number), [[versioned(9, texts(queue))]])
    points = [
        read_savepoint(tmp_path / str(number), splits={"0" * 32: layout}) for number in range(2)
    ]
    with pytest.raises(InvalidValueError, match="neither Kafka's nor Pulsar's"):
        points[0].operators[0].source_splits({("x", 0): 5})
    kinds = [split.kind for split in points[0].compare(points[1]).operators[0].splits]
    assert kinds == ["only_here", "only_there"]


def test_lag_in_a_report(tmp_path: Path) -> None:
    operator = source(tmp_path, [[pulsar_split(TOPIC, b"\x08\xac\x02\x10\x07")]])
    ends: Any = {("persistent://a/b/c", 3): (300, 9)}
    section = splits_section(operator.source_splits(ends))
    assert section.texts == ["1 split; 2 entries behind"]
    assert section.header[-1] == "entries behind"


@pytest.mark.parametrize(
    ("name", "version", "number", "text"),
    [
        ("Kinesis", 0, 0, "last_seen_shard none, assigned_splits 0, finished_splits 0"),
        ("Kinesis", 1, 0, "last_seen_shard shard-1, assigned_splits 1, finished_splits 0"),
        ("JDBC", 0, 1, "completed_splits 0, pending_splits 1, state b'\\xac\\xed\\x00\\x05sr"),
        ("MySQL CDC", 1, 0, "is_stream_assigned True"),
        ("Iceberg", 2, 0, "snapshot 2, statuses 1, split_counts 2"),
        ("Paimon", 1, 0, "next_snapshot 12"),
    ],
)
def test_an_enumerator_in_a_report(
    name: str, version: int, number: int, text: str, tmp_path: Path
) -> None:
    """Of many things it says how many they are; a text and bytes are shown themselves."""
    data = [case[2] for case in ENUMERATORS if case[:2] == (name, version)][number]
    [words] = splits_section(enumerator_in(tmp_path, version, data)).texts
    assert f"; its enumerator: {text}" in words


def test_kinesis_has_no_lag(tmp_path: Path) -> None:
    operator = source(tmp_path, [[versioned(0, SHARDS[0])]])
    with pytest.raises(InvalidValueError, match="do not count the records between them"):
        operator.source_splits({("clicks", 0): 5})


# --- committables -------------------------------------------------------------------------------

MAGIC = bytes.fromhex("b91f252c")


def sink(folder: Path, state: str, element: bytes, snapshot: bytes | None = None) -> SinkState:
    options = {"OPERATOR_STATE_DISTRIBUTION_MODE": "SPLIT_DISTRIBUTE"}
    serializer = {"VALUE_SERIALIZER": snapshot or BYTES.snapshot_bytes()[4:]}
    header = sb.operator_header([sb.meta_info(state, 1, options, serializer)], [])
    data = header + (element if snapshot else framed(element))
    handle = sb.operator_state([(state, 0, [len(header)])], sb.inline(data))
    written = sb.operator([sb.subtask(0, managed_operator=handle)], uid="out", parallelism=1)
    [operator] = read_savepoint(sb.write(folder, [written])).operators
    return operator.sink_state()


def listed(version: int, *elements: bytes) -> bytes:
    return i32(version, len(elements)) + b"".join(map(framed, elements))


def in_flink(version: int, committable: bytes) -> bytes:
    """As the newest CommittableCollectorSerializer does, for checkpoint 7."""
    request = versioned(version, committable) + i32(0, 0)
    subtask = i32(0) + listed(0, request) + i32(1, 0)
    checkpoint = struct.pack(">qi", 7, 1) + listed(2, subtask)
    return versioned(2, MAGIC + listed(1, checkpoint))


COMMITTER = "streaming_committer_raw_states"


@pytest.mark.parametrize("case", COMMITTABLES, ids=lambda case: f"{case[0]}-{case[1]}-{case[3]}")
def test_committables(case: tuple[Any, ...], tmp_path: Path) -> None:
    name, version, data, text, fields = case
    expected = ConnectorCommittable(name, version, text, fields)
    if name == "Paimon":
        element, checkpoint = versioned(version, data), 9
        writer = None
    else:
        element, checkpoint, writer = in_flink(version, data), 7, 0
    found = sink(tmp_path / "1", COMMITTER, element).committables
    assert found == (Committable(expected, checkpoint, 0, writer, "RECEIVED", 0),)
    savepoint = read_savepoint(tmp_path / "1")
    for shown in (*map(str, operator_reports(savepoint)), html_report(savepoint)):
        assert f"{name}: {text}"[:50] in shown
    if name != "Paimon":
        [damaged] = sink(tmp_path / "2", COMMITTER, in_flink(version, data + b"\0")).committables
        assert damaged.committable == UnknownCommittable(version, data + b"\0")
    else:
        with pytest.raises(SavepointError):
            sink(tmp_path / "2", COMMITTER, versioned(version, data + b"\0"))


def test_each_reader_has_a_case() -> None:
    """A reader of committables that is new fails here, until it has one."""
    for read in READERS:
        assert any(_reads(read, case[1], case[2]) for case in COMMITTABLES)


def _reads(read: Callable[..., object], version: int, data: bytes) -> bool:
    try:
        read(version, Cursor(data, "file"))
    except SavepointError:
        return False
    return True


def test_several_tables_of_paimon(tmp_path: Path) -> None:
    inside = b"".join(framed(name) + framed(PAIMON[5]) for name in (b"db.a", b"db.b"))
    element = versioned(1, i64(9, 0) + i32(2) + inside)
    found = sink(tmp_path, COMMITTER, element).committables
    assert [getattr(what.committable, "name", "") for what in found] == [
        "db.a: 1 buckets, 2 new files",
        "db.b: 1 buckets, 2 new files",
    ]


def test_manifests_of_the_older_iceberg_sink(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a checkpoint without files there is nothing. The bytes are Iceberg's own."""
    element, snapshot = REAL["Iceberg map 3"], REAL["Iceberg map snapshot 3"]
    [found] = sink(tmp_path, ICEBERG_STATE, element, snapshot).committables
    manifests = (("s3://a/m-1.avro", 512, 2, 16), ("s3://a/m-2.avro", 256, 1, 3))
    fields = {"checkpoint_id": 5, "manifests": manifests}
    what = ConnectorCommittable("Iceberg", 1, "s3://a/m-1.avro, s3://a/m-2.avro", fields)
    assert found == Committable(what, 5, 0, None, "RECEIVED", 0)
    assert main(["savepoint", str(tmp_path), "--quiet", "--json"]) == 0
    [report] = json.loads(capsys.readouterr().out)["reports"]
    [committable] = report["committables"]
    assert committable["committable"]["fields"]["manifests"][0] == [*manifests[0]]


def test_manifests_that_are_no_map(tmp_path: Path) -> None:
    with pytest.raises(SavepointError, match="has no map of checkpoints, but b'x'"):
        sink(tmp_path, ICEBERG_STATE, b"x")


AVRO = b"\xc2\1"


def avro(schema: object, data: bytes) -> bytes:
    return AVRO + texts(json.dumps({"fields": schema})) + data


PATH = {"name": "manifest_path", "type": "string"}
SIZE = {"name": "manifest_length", "type": "long"}
NULLABLE = {"name": "added_files_count", "type": ["null", "int"]}


def test_manifests_by_their_schema() -> None:
    """The first field of another type ends what is read."""
    rest = {"name": "partitions", "type": ["null", {"type": "array"}]}
    data = avro([PATH, SIZE, NULLABLE, rest], b"\2a\x0a\0???")
    found = read_manifests(5, Cursor(versioned(1, data), "file"))
    assert found.fields["manifests"] == (("a", 5, None, None),)
    behind = {"name": "added_files_count", "type": "int"}
    data = avro([PATH, SIZE, rest, behind], b"\2a\x0a\4\4\4")
    found = read_manifests(5, Cursor(versioned(1, data), "file"))
    assert found.fields["manifests"] == (("a", 5, None, None),)
    assert found.version == 1


def test_a_checkpoint_without_deletes() -> None:
    data = framed(avro([PATH, SIZE], b"\2a\x0a")) + i32(0, 0)
    found = read_manifests(5, Cursor(versioned(2, data), "file"))
    assert found.fields["manifests"] == (("a", 5, None, None),)


def test_longs_of_avro() -> None:
    """Zigzag, in ten bytes at most, and of 64 bits: Java's longs."""
    schema = [PATH, SIZE, {"name": "added_rows_count", "type": ["null", "long"]}]
    for long, number in {
        b"\xff" * 9 + b"\1": -(1 << 63),
        b"\xfe" + b"\xff" * 8 + b"\1": (1 << 63) - 1,
        b"\1": -1,
        b"\x80\1": 64,
        b"\x7f": -64,
    }.items():
        data = avro(schema, b"\2a\x0a\2" + long)
        found = read_manifests(5, Cursor(versioned(1, data), "file"))
        assert found.fields["manifests"] == (("a", 5, None, number),)
    for long in (b"\x80" * 9 + b"\2", b"\xff" * 9 + b"\x7f", b"\x80" * 10 + b"\0"):
        data = avro(schema, b"\2a\x0a\2" + long)
        with pytest.raises(SavepointError, match="a number of more than 64 bits"):
            read_manifests(5, Cursor(versioned(1, data), "file"))


@pytest.mark.parametrize(
    "data",
    [
        b"\0\0",
        AVRO + texts("{"),
        AVRO + texts("[" * 60_000),
        avro([5], b""),
        avro([PATH], b"\2a"),
        avro([PATH, SIZE], b"\0\x0a"),
        avro([PATH, SIZE], b"\2a\x09"),
        avro([PATH, SIZE], b"\2\xff\x0a"),
        avro([PATH, SIZE], b"\3a\x0a"),
        avro([PATH, SIZE], b"\2a" + b"\xff" * 10),
        avro([PATH, SIZE, NULLABLE], b"\2a\x0a\4\2"),
        avro([PATH, SIZE], b"\2a" + b"\xfe" * 9 + b"\2"),
        avro([PATH, SIZE, {"name": "added_files_count", "type": "string"}], b"\2a\x0a\2b"),
    ],
)
def test_damaged_manifests(data: bytes) -> None:
    with pytest.raises(SavepointError):
        read_manifests(5, Cursor(versioned(1, data), "file"))


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (1, i64(-1, 5) + texts("t")),
        (1, i64(1, 5) + texts("")),
        (1, texts("job", "operator") + i64(5) + framed(MANIFEST)),
        (2, texts("", "main", *JOB) + i64(5) + i32(0)),
        (3, i64(1, 5) + texts("t")),
        (3, texts("db.t", "main", *JOB) + i64(5) + framed(b"")),
    ],
)
def test_what_is_of_no_sink(version: int, data: bytes) -> None:
    with pytest.raises(SavepointError):
        read_connector_committable(version, Cursor(data, "file"))


def paimon_of(rows: bytes) -> bytes:
    """A committable of version 3 whose message, of version 3, has one new file."""
    message = framed(i32(0)) + i32(3) + i32(1) + framed(rows) + i32(0, 0, 0, 0, 0, 0, 0)
    return i64(9) + YES + i32(0, 3, 1) + message


@pytest.mark.parametrize(("version", "is_known"), [(1, False), (2, True), (13, True), (14, False)])
def test_versions_of_messages_of_paimon(version: int, is_known: bool) -> None:
    """Its CommitMessageSerializer has been of versions up to 13. Here none follows."""
    data = i64(9) + b"\1" + i32(0, version, 0)
    if is_known:
        [found] = read_paimon(5, Cursor(data, "file"))
        assert found.fields["messages"] == ()
    else:
        with pytest.raises(SavepointError):
            read_paimon(5, Cursor(data, "file"))


def test_names_of_paimon() -> None:
    """Up to seven bytes are in the field itself, longer ones behind the fields."""
    for name in ("d1", "1234567", "12345678", "\u00e9" * 9):
        [found] = read_paimon(3, Cursor(paimon_of(paimon_row(name)), "file"))
        assert found.fields["messages"][0]["new_files"] == (name,)
    good = paimon_row("12345678")
    for row in (good[:-1], good[:8] + b"\xff" * 7 + b"\0" + good[16:], good[:12] + bytes(4)):
        with pytest.raises(SavepointError):
            read_paimon(3, Cursor(paimon_of(row), "file"))
    for data in (i64(-1) + YES + i32(0, 3, 0), i64(9) + YES + i32(0, 14, 0)):
        with pytest.raises(SavepointError):
            read_paimon(3, Cursor(data, "file"))
    with pytest.raises(SavepointError):
        read_paimon(1, Cursor(i64(9, 0) + i32(1) + framed(b"t") + framed(b"?"), "file"))


# --- strangers ----------------------------------------------------------------------------------


Reader = tuple[str, Callable[[bytes], object], bytes]


def of_enumerator(name: str, version: int, data: bytes) -> Reader:
    return name, lambda damaged: enumerator_of(LAYOUT_OF[name], (version, damaged), "f"), data


def of_committable(name: str, version: int, data: bytes) -> Reader:
    read: Callable[[int, Cursor], object] = read_connector_committable
    if name == "Paimon":
        read = read_paimon
    return name, lambda damaged: read(version, Cursor(damaged, "f")), data


def test_damaged_bytes() -> None:
    """Whatever is changed in them, little time and memory go by, and nothing but our error."""
    chosen, kinds = random.Random(44), Counter[str]()
    readers = [of_enumerator(*case[:3]) for case in ENUMERATORS]
    readers += [of_committable(*case[:3]) for case in COMMITTABLES]
    for name, read, data in readers:
        for _ in range(20):
            damaged = bytearray(data)
            for _ in range(chosen.randrange(1, 4)):
                damaged[chosen.randrange(len(data))] = chosen.choice((0, 1, 0x7F, 0x80, 0xFF))
            start = time.process_time()
            tracemalloc.start()
            try:
                str(read(bytes(damaged)))
                kinds["read"] += 1
            except SavepointError:
                kinds["refused"] += 1
            finally:
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
            assert time.process_time() - start < SECONDS, name
            assert peak < FLOOR + TIMES * len(data), name
    assert min(kinds.values()) > 50
