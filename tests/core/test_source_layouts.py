"""Splits of other connectors, by bytes that are put together as their public source does it.

Those of MySQL CDC are of a file that a real connector wrote too, with other names and numbers.
"""

from __future__ import annotations

import pickle
import random
import re
import time
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.bytes.connector_bytes import (
    ARN,
    CASES,
    CDC_END,
    CDC_STREAM,
    CDC_TABLES,
    JAVA,
    LAST,
    MYSQL_END,
    MYSQL_STREAM,
    NO,
    OFFSET,
    RANGES,
    TASK,
    TOPIC,
    YES,
    Case,
    as_json,
    i32,
    i64,
    texts,
)
from support.bytes.source_bytes import coordinator, framed, of_hybrid, source, versioned
from support.inside.savepoints import connector_layouts, split_layouts

from keygroups import InvalidTypeError, InvalidValueError
from keygroups.errors import SavepointError
from keygroups.savepoint import (
    ConnectorSplit,
    SplitLayout,
    UnknownSplit,
    html_report,
    operator_reports,
    read_savepoint,
    sources,
)

TOO_LARGE = b"\x08" + b"\x80" * 9 + b"\2"  # 2^64, in a number of 64 bits
LAYOUTS, split_of = connector_layouts.LAYOUTS, split_layouts.split_of


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def test_splits(case: Case, tmp_path: Path) -> None:
    name, version, data, fields, split, position = case
    operator = source(tmp_path, [[versioned(version, data)]], coordinator(1, b"enumerator"))
    read = operator.source_splits()
    assert read.splits == (ConnectorSplit(name, 0, version, split, position, fields),)
    assert (read.enumerator_version, read.enumerator) == (1, b"enumerator")
    # The object in Paimon's may end anywhere, and MySQL's up to 2.2.0 ends a byte earlier.
    if name != "Paimon" and data not in {case[2][:-1] for case in CASES}:
        for damaged in (data[:-2], data + b"\0", b"\xff" + data[1:]):
            bad = source(tmp_path / damaged.hex()[-9:], [[versioned(version, damaged)]])
            assert bad.source_splits().splits == (UnknownSplit(0, version, damaged),)


def test_each_layout_has_a_case_and_a_row() -> None:
    """The table in the help of sources has the versions, each of which is read above."""
    help_text = sources.__doc__ or ""
    for layout in LAYOUTS:
        versions = {case[1] for case in CASES if case[0] == layout.source}
        assert versions == {*layout.versions}
        first, last = min(versions), max(versions)
        of_enumerator = layout.enumerator_versions
        row = rf"^    {layout.source} .*Serializer +{span(first, last)} +"
        assert re.search(rf"{row}{span(of_enumerator[0], of_enumerator[-1])} +\w", help_text, re.M)
        for case in CASES:
            if case[0] == layout.source:
                assert all(re.search(rf"\b{field}\b", help_text) for field in case[3])


def span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


def test_reports_say_where_they_go_on(tmp_path: Path) -> None:
    for number, (name, version, data, _, split, position) in enumerate(CASES):
        source(tmp_path / str(number), [[versioned(version, data)]])
        savepoint = read_savepoint(tmp_path / str(number))
        shown = position or "its start"
        for text in (*map(str, operator_reports(savepoint)), html_report(savepoint)):
            assert f"{name}: {split}"[:60] in text.replace("&#x27;", "'")
            assert shown[:60] in text.replace("&#x27;", "'")


def test_bytes_of_two_layouts_are_of_none(tmp_path: Path) -> None:
    """All splits of a source are of one serializer."""
    paimon, jdbc = CASES[-1], CASES[-6]
    elements = [versioned(case[1], case[2]) for case in (paimon, jdbc)]
    splits = source(tmp_path, [elements]).source_splits().splits
    assert [type(split) for split in splits] == [UnknownSplit, UnknownSplit]


def test_a_connector_in_a_hybrid_source(tmp_path: Path) -> None:
    name, version, data, *_ = CASES[0]
    operator = source(tmp_path, [[of_hybrid(1, version, data)]])
    read = operator.source_splits()
    [split] = read.splits
    assert isinstance(split, ConnectorSplit)
    assert (split.source, split.name) == (name, f"{ARN}, shardId-0")
    assert read.source_indexes == (1,)


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (0, texts("a", "s", "LATEST") + NO),
        (0, texts(ARN, "s", "NOW") + NO),
        (2, TOPIC + i32(1, 5, 4) + framed(JAVA) + LAST),
        (2, texts("") + i32(3) + RANGES + framed(JAVA) + LAST),
        (2, TOPIC + RANGES + framed(b"java") + LAST),
        (2, TOPIC + RANGES + framed(JAVA) + YES + framed(b"\x09\1") + NO),
        (2, TOPIC + RANGES + framed(JAVA) + YES + framed(b"\x08" + b"\xff" * 10) + NO),
        (2, TOPIC + RANGES + framed(JAVA) + YES + framed(TOO_LARGE + b"\x10\2") + NO),
        (4, i32(2) + texts("stream-split", "") + OFFSET + NO + MYSQL_END + i32(9)),
        (4, i32(2) + texts("binlog-split", "x") + OFFSET + NO + MYSQL_END + i32(9)),
        (4, MYSQL_STREAM + YES + framed(b"{") + NO + MYSQL_END + i32(9)),
        (4, MYSQL_STREAM + YES + framed(b"[]") + NO + MYSQL_END + i32(9)),
        (4, MYSQL_STREAM + YES + framed(b"[" * 100_000) + NO + MYSQL_END + i32(9)),
        (4, MYSQL_STREAM + YES + framed(b'{"a": %s}' % (b"9" * 5_000)) + NO + MYSQL_END + i32(9)),
        (3, CDC_STREAM + CDC_END + CDC_TABLES + i32(1)),
        (3, i32(2) + i64(0) + i32(1) + as_json(TASK)),
        (3, i32(0) + i64(-1) + i32(1) + as_json(TASK)),
        (1, texts("a") + b"java" + i64(7)),
        (1, texts("a") + JAVA + i64(-7)),
    ],
)
def test_what_is_of_no_connector(version: int, data: bytes, tmp_path: Path) -> None:
    operator = source(tmp_path, [[versioned(version, data)]])
    assert operator.source_splits().splits == (UnknownSplit(0, version, data),)


def test_damaged_bytes(tmp_path: Path) -> None:
    """Whatever is changed in them, little time and memory go by, and bytes are never read over."""
    chosen, kinds = random.Random(44), Counter[str]()
    for name, version, data, *_ in CASES:
        for _ in range(40):
            damaged = bytearray(data)
            for _ in range(chosen.randrange(1, 4)):
                damaged[chosen.randrange(len(data))] = chosen.choice((0, 1, 0x7F, 0x80, 0xFF))
            layout = next(layout for layout in LAYOUTS if layout.source == name)
            start = time.process_time()
            tracemalloc.start()
            try:
                str(split_of(layout, version, bytes(damaged), 0, "file"))
                kinds["read"] += 1
            except SavepointError:
                kinds["refused"] += 1
            finally:
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
            assert time.process_time() - start < SECONDS
            assert peak < FLOOR + TIMES * len(data)
    assert min(kinds.values()) > 100


SECONDS, FLOOR, TIMES = 2.0, 1 << 20, 100
STARTS = ["AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER", "TRIM_HORIZON", "LATEST", "AT_TIMESTAMP"]


@pytest.mark.parametrize("starts", STARTS)
def test_where_a_shard_may_start(starts: str, tmp_path: Path) -> None:
    """Where Kinesis' ShardIteratorType says."""
    operator = source(tmp_path, [[versioned(0, texts(ARN, "s", starts) + NO)]])
    [split] = operator.source_splits().splits
    assert split.position == starts  # type: ignore[union-attr]  # It is one of a connector.


CDC_BEGIN = i32(2) + texts("stream-split", "") + NO + NO
MANY = 60  # elements, more than what follows has bytes
SHORTEST: dict[str, tuple[int, bytes, str]] = {
    "Kinesis": (
        1,
        texts(ARN, "s", "LATEST") + NO + i32(MANY) + texts(*[""] * (MANY + 2)),
        "parents",
    ),
    "Pulsar": (2, TOPIC + i32(MANY) + i32(0, 0) * MANY + framed(JAVA) + NO + NO, "ranges"),
    "MySQL CDC": (
        *(2, MYSQL_STREAM + NO + NO + i32(MANY) + (texts("", "", "", "") + NO) * MANY + i32(0)),
        "finished_chunks",
    ),
    "MySQL CDC 1": (
        *(
            1,
            MYSQL_STREAM + NO + NO + i32(0, MANY) + (texts("") + b"\0\0") * MANY,
        ),
        "tables",
    ),
    "CDC": (
        *(4, CDC_BEGIN + i32(MANY) + (texts("", "", "", "", "") + NO + NO) * MANY + i32(0, 0)),
        "finished_chunks",
    ),
    "CDC 1": (4, CDC_BEGIN + i32(0, MANY) + (NO + texts("") + i32(0)) * MANY + i32(0), "tables"),
    "Iceberg": (2, i32(1) + i64(0) + i32(MANY) + texts(*["{}"] * MANY), "files"),
}


@pytest.mark.parametrize("name", SHORTEST)
def test_as_many_elements_as_there_are_bytes_for(name: str) -> None:
    version, data, fields = SHORTEST[name]
    layout = next(layout for layout in LAYOUTS if layout.source == name.removesuffix(" 1"))
    split = split_of(layout, version, data, 0, "file")
    assert [len(split.fields[field]) for field in fields.split()] == [MANY] * len(fields.split())


def test_bounds_of_layouts() -> None:
    """Pulsar's TopicRange.MAX_RANGE, and what a layout may have."""
    pulsar = next(layout for layout in LAYOUTS if layout.source == "Pulsar")
    for end in (65_535, 65_536):
        data = TOPIC + i32(1, 0, end) + framed(JAVA) + NO + NO
        if end == 65_535:
            assert split_of(pulsar, 2, data, 0, "file").fields["ranges"] == ((0, end),)
        else:
            with pytest.raises(SavepointError, match="no partition of Pulsar"):
                split_of(pulsar, 2, data, 0, "file")
    for topic, partition in (("t", -1), ("t", -2), ("", -1), ("t", 0)):
        data = texts(topic) + i32(partition, 1, 0, 5) + framed(JAVA) + NO + NO
        if topic and partition >= -1:  # -1 is a topic without partitions
            fields = split_of(pulsar, 2, data, 0, "file").fields
            assert (fields["topic"], fields["partition"]) == (topic, partition)
        else:
            with pytest.raises(SavepointError, match="no partition of Pulsar"):
                split_of(pulsar, 2, data, 0, "file")
    most = SplitLayout("a", range(1_000), read_queue)  # type: ignore[arg-type]  # Any will do.
    assert len(most.versions) == 1_000


def test_numbers_of_64_bits() -> None:
    """A number of protobuf has ten bytes at most, and is one of Java's longs."""
    pulsar = next(layout for layout in LAYOUTS if layout.source == "Pulsar")
    for varint, number in {
        b"\xff" * 8 + b"\x7f": (1 << 63) - 1,
        b"\x80" * 9 + b"\1": -(1 << 63),
        b"\xff" * 9 + b"\1": -1,
        b"\x80\1": 128,
        b"\x7f": 127,
    }.items():
        data = TOPIC + RANGES + framed(JAVA) + YES + framed(b"\x08" + varint + b"\x10\2") + NO
        assert split_of(pulsar, 2, data, 0, "file").fields["last_message"] == (number, 2, -1, -1)


@pytest.mark.parametrize(
    ("message", "numbers"),
    [
        (b"\x08\0\x10\0", (0, 0, -1, -1)),
        (b"\x08\1\x10\2\x18\3", (1, 2, 3, -1)),
        (b"\x10\2\x08\1\x20\4", (1, 2, -1, 4)),
        (b"\x08\1", None),
        (b"\x10\2\x18\3\x20\4", None),
        (b"", None),
    ],
)
def test_numbers_that_a_message_leaves_out(
    message: bytes, numbers: tuple[int, ...] | None
) -> None:
    """PulsarApi.proto: ledgerId and entryId are required, the two others have -1 by default."""
    pulsar = next(layout for layout in LAYOUTS if layout.source == "Pulsar")
    data = TOPIC + RANGES + framed(JAVA) + YES + framed(message) + NO
    if numbers is None:
        with pytest.raises(SavepointError, match="Pulsar without a ledger or an entry"):
            split_of(pulsar, 2, data, 0, "file")
    else:
        assert split_of(pulsar, 2, data, 0, "file").fields["last_message"] == numbers


# --- one's own ----------------------------------------------------------------------------------


def read_queue(version: int, cursor: Any) -> dict[str, Any]:
    queue = cursor.utf()
    if queue == "bad":
        raise ValueError("no queue")
    return {"queue": queue, "at": cursor.i64() if version == 2 else None}


QUEUES = SplitLayout("queues", (1, 2), read_queue, name=("queue",), position=("at",))


def test_the_text_of_a_layout() -> None:
    assert repr(QUEUES) == (
        "SplitLayout(source='queues', versions=(1, 2), name=('queue',), position=('at',), "
        "enumerator_versions=())"
    )


def test_splits_of_ones_own(tmp_path: Path) -> None:
    elements = [[versioned(1, texts("a"))], [versioned(2, texts("b") + i64(5))]]
    operator_id = source(tmp_path, elements).operator_id
    plain = read_savepoint(tmp_path)
    assert all(
        isinstance(split, UnknownSplit)
        for split in plain.operator(operator_id).source_splits().splits
    )
    savepoint = read_savepoint(tmp_path, splits={operator_id: QUEUES})
    expected = (
        ConnectorSplit("queues", 0, 1, "a", "", {"queue": "a", "at": None}),
        ConnectorSplit("queues", 1, 2, "b", "5", {"queue": "b", "at": 5}),
    )
    assert savepoint.operator(operator_id).source_splits().splits == expected
    [report] = operator_reports(savepoint)
    assert "queues: b  5" in str(report)
    sent = pickle.loads(pickle.dumps(savepoint))
    assert sent.operator(operator_id).source_splits().splits == expected
    with pytest.raises(InvalidValueError, match="that is neither Kafka's nor Pulsar's"):
        savepoint.operator(operator_id).source_splits({("a", 0): 5})


@pytest.mark.parametrize(
    ("version", "data", "message"),
    [
        (3, texts("a"), "version of a split of queues 3 is not known, only 1, 2"),
        (1, texts("a") + b"\0", "1 bytes are left after a split of queues"),
        (2, texts("a"), "8 bytes were to follow, and 0 are left"),
        (1, texts("bad"), "no split of queues: no queue"),
    ],
)
def test_what_is_none_of_ones_own(version: int, data: bytes, message: str, tmp_path: Path) -> None:
    """It raises, as the layout was named for this source."""
    operator_id = source(tmp_path, [[versioned(version, data)]]).operator_id
    operator = read_savepoint(tmp_path, splits={operator_id: QUEUES}).operator(operator_id)
    with pytest.raises(SavepointError, match=f"operator {operator_id}.*{message}"):
        operator.source_splits()


def test_refused_layouts(tmp_path: Path) -> None:
    operator_id = source(tmp_path, [[]]).operator_id
    wrong: list[tuple[Any, type[Exception], str]] = [
        (5, InvalidTypeError, "splits must be a mapping by operator, got 5"),
        ({5: QUEUES}, InvalidTypeError, "operator in splits must be a str, got 5"),
        ({operator_id: read_queue}, InvalidTypeError, "splits of .* must be a SplitLayout, got"),
        ({"no": QUEUES}, InvalidValueError, "operator must be .*, got 'no'"),
    ]
    for splits, error, message in wrong:
        with pytest.raises(error, match=message):
            read_savepoint(tmp_path, splits=splits)
    made: list[tuple[Any, str]] = [
        ((5, (1,), read_queue), "source must be a str, got 5"),
        (("a", 1, read_queue), "versions must be"),
        (("a", ("x",), read_queue), "version must be an int, got 'x'"),
        (("a", (1,), 5), "read must be callable, got 5"),
        (("a", (1,), read_queue, "queue"), "name must be"),
    ]
    for arguments, message in made:
        with pytest.raises(InvalidTypeError, match=message):
            SplitLayout(*arguments)
    with pytest.raises(InvalidValueError, match="versions must be at most 1,000, got more"):
        SplitLayout("a", range(1_001), read_queue)  # type: ignore[arg-type]  # Any will do.
    none = SplitLayout("a", (1,), lambda version, cursor: None)  # type: ignore[arg-type, return-value]  # A user may do so.
    with pytest.raises(InvalidTypeError, match="what read returns must be a mapping of fields"):
        split_of(none, 1, b"", 0, "file")
